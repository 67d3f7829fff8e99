/* type_info.c - types of inputs, outputs and values. */
#include "ort/ort.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 64 };

/* ---- Shapes ---- */

void ort_shape_clear(OrtTensorTypeAndShapeInfo *shape) {
    for (int i = 0; i < SN_MAX_RANK; i++) free(shape->symbols[i]);
    *shape = (OrtTensorTypeAndShapeInfo){0};
}

OrtStatus *ort_shape_copy(const OrtTensorTypeAndShapeInfo *from, OrtTensorTypeAndShapeInfo *to) {
    OrtTensorTypeAndShapeInfo copy = *from;
    memset(copy.symbols, 0, sizeof copy.symbols);
    for (int i = 0; i < from->rank; i++) {
        if (ort_replace_text(&copy.symbols[i], from->symbols[i])) continue;
        ort_shape_clear(&copy);
        return ort_fail_memory();
    }
    *to = copy;
    return NULL;
}

static void shape_of_value(const sn_value *value, OrtTensorTypeAndShapeInfo *out) {
    *out = (OrtTensorTypeAndShapeInfo){.type = ort_dtype_out(sn_tensor_dtype(value)),
                                       .has_shape = true,
                                       .rank = sn_tensor_rank(value)};
    const int64_t *dims = sn_tensor_dims(value);
    for (int i = 0; i < out->rank; i++) out->dims[i] = dims[i];
}

static OrtStatus *shape_of_info(const sn_value_info *info, OrtTensorTypeAndShapeInfo *out) {
    OrtTensorTypeAndShapeInfo s = {.type = ort_dtype_out(info->dtype),
                                   .has_shape = info->has_shape,
                                   .rank = info->has_shape ? info->rank : 0};
    for (int i = 0; i < s.rank; i++) {
        s.dims[i] = info->dims[i];
        if (info->dims[i] >= 0 || !info->symbols[i][0] || info->symbols[i][0] == '?')
            continue; /* known, or without a name of the model's */
        if (ort_replace_text(&s.symbols[i], info->symbols[i])) continue;
        ort_shape_clear(&s);
        return ort_fail_memory();
    }
    *out = s;
    return NULL;
}

/* ---- Types ---- */

void ort_ReleaseTypeInfo(OrtTypeInfo *input) {
    while (input) {
        OrtTypeInfo *element = input->element;
        ort_shape_clear(&input->tensor);
        free(input);
        input = element;
    }
}

static ONNXType kind_out(sn_kind kind) {
    switch (kind) {
    case SN_KIND_TENSOR:
        return ONNX_TYPE_TENSOR;
    case SN_KIND_SEQUENCE:
        return ONNX_TYPE_SEQUENCE;
    case SN_KIND_MAP:
        return ONNX_TYPE_MAP;
    case SN_KIND_OPTIONAL:
        return ONNX_TYPE_OPTIONAL;
    case SN_KIND_SPARSE_TENSOR:
        return ONNX_TYPE_SPARSETENSOR;
    default:
        return ONNX_TYPE_UNKNOWN;
    }
}

OrtStatus *ort_type_of_info(const sn_value_info *info, OrtTypeInfo **out) {
    OrtTypeInfo *first = NULL, **next = &first;
    OrtStatus *status = NULL;
    for (int depth = 0; info && !status && depth < DEPTH_LIMIT; depth++, info = info->element) {
        OrtTypeInfo *t = calloc(1, sizeof *t);
        if (!t) {
            status = ort_fail_memory();
            break;
        }
        *next = t;
        next = &t->element;
        t->kind = kind_out(info->kind);
        t->key = ort_dtype_out(info->key);
        if (t->kind == ONNX_TYPE_TENSOR || t->kind == ONNX_TYPE_SPARSETENSOR)
            status = shape_of_info(info, &t->tensor);
    }
    if (status)
        ort_ReleaseTypeInfo(first);
    else
        *out = first;
    return status;
}

/* What a collection holds, as far as its first element tells. */
static const sn_value *element_of(const sn_value *value) {
    switch (sn_value_kind(value)) {
    case SN_KIND_SEQUENCE:
        return sn_sequence_at(value, 0);
    case SN_KIND_MAP:
        return sn_map_values(value);
    default:
        return NULL;
    }
}

/* A map's values are one tensor here, and the type of each is told: a scalar tensor, or the element
 * of their sequence. */
static void fill_type(const sn_value *value, bool of_map, OrtTypeInfo *t) {
    t->kind = value ? kind_out(sn_value_kind(value)) : ONNX_TYPE_UNKNOWN;
    if (t->kind == ONNX_TYPE_TENSOR) shape_of_value(value, &t->tensor);
    if (of_map && t->kind == ONNX_TYPE_TENSOR) {
        t->tensor.rank = 0;
        t->tensor.has_shape = false;
    }
    if (t->kind == ONNX_TYPE_MAP) t->key = ort_dtype_out(sn_tensor_dtype(sn_map_keys(value)));
}

OrtStatus *ort_type_of_value(const sn_value *value, OrtTypeInfo **out) {
    OrtTypeInfo *first = NULL, **next = &first;
    bool of_map = false;
    for (int depth = 0; depth < DEPTH_LIMIT; depth++) {
        OrtTypeInfo *t = calloc(1, sizeof *t);
        if (!t) {
            ort_ReleaseTypeInfo(first);
            return ort_fail_memory();
        }
        *next = t;
        next = &t->element;
        fill_type(value, of_map, t);
        if (t->kind != ONNX_TYPE_SEQUENCE && t->kind != ONNX_TYPE_MAP) break;
        of_map = t->kind == ONNX_TYPE_MAP;
        value = element_of(value);
        if (of_map && sn_value_kind(value) == SN_KIND_SEQUENCE) value = element_of(value);
    }
    *out = first;
    return NULL;
}

OrtStatus *ort_type_copy(const OrtTypeInfo *type, OrtTypeInfo **out) {
    OrtTypeInfo *first = NULL, **next = &first;
    OrtStatus *status = NULL;
    for (; type && !status; type = type->element) {
        OrtTypeInfo *t = calloc(1, sizeof *t);
        if (!t) {
            status = ort_fail_memory();
            break;
        }
        *next = t;
        next = &t->element;
        t->kind = type->kind;
        t->key = type->key;
        status = ort_shape_copy(&type->tensor, &t->tensor);
    }
    if (status)
        ort_ReleaseTypeInfo(first);
    else
        *out = first;
    return status;
}

OrtStatusPtr ort_GetTypeInfo(const OrtValue *value, OrtTypeInfo **out) {
    NEED(value);
    NEED(out);
    return ort_type_of_value(ort_sn(value), out);
}

OrtStatusPtr ort_GetOnnxTypeFromTypeInfo(const OrtTypeInfo *type_info, ONNXType *out) {
    NEED(type_info);
    NEED(out);
    *out = type_info->kind;
    return NULL;
}

OrtStatusPtr ort_GetDenotationFromTypeInfo(const OrtTypeInfo *type_info, const char **denotation,
                                           size_t *len) {
    NEED(type_info);
    NEED(denotation);
    NEED(len);
    *denotation = "";
    *len = 0;
    return NULL;
}

/* ---- Casts: NULL when the type is another kind; borrowed from the type ---- */

OrtStatusPtr ort_CastTypeInfoToTensorInfo(const OrtTypeInfo *type_info,
                                          const OrtTensorTypeAndShapeInfo **out) {
    NEED(type_info);
    NEED(out);
    bool is = type_info->kind == ONNX_TYPE_TENSOR || type_info->kind == ONNX_TYPE_SPARSETENSOR;
    *out = is ? &type_info->tensor : NULL;
    return NULL;
}

static const void *cast(const OrtTypeInfo *type, ONNXType kind) {
    return type->kind == kind ? type : NULL;
}

OrtStatusPtr ort_CastTypeInfoToMapTypeInfo(const OrtTypeInfo *type_info,
                                           const OrtMapTypeInfo **out) {
    NEED(type_info);
    NEED(out);
    *out = cast(type_info, ONNX_TYPE_MAP);
    return NULL;
}

OrtStatusPtr ort_CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo *type_info,
                                                const OrtSequenceTypeInfo **out) {
    NEED(type_info);
    NEED(out);
    *out = cast(type_info, ONNX_TYPE_SEQUENCE);
    return NULL;
}

OrtStatusPtr ort_CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo *type_info,
                                                const OrtOptionalTypeInfo **out) {
    NEED(type_info);
    NEED(out);
    *out = cast(type_info, ONNX_TYPE_OPTIONAL);
    return NULL;
}

static OrtStatus *copy_element(const void *container, OrtTypeInfo **out) {
    const OrtTypeInfo *type = container;
    if (!type->element) return ort_fail(ORT_FAIL, "the type of the elements is not known");
    return ort_type_copy(type->element, out);
}

OrtStatusPtr ort_GetMapKeyType(const OrtMapTypeInfo *map_type_info,
                               ONNXTensorElementDataType *out) {
    NEED(map_type_info);
    NEED(out);
    *out = ((const OrtTypeInfo *)map_type_info)->key;
    return NULL;
}

OrtStatusPtr ort_GetMapValueType(const OrtMapTypeInfo *map_type_info, OrtTypeInfo **type_info) {
    NEED(map_type_info);
    NEED(type_info);
    return copy_element(map_type_info, type_info);
}

OrtStatusPtr ort_GetSequenceElementType(const OrtSequenceTypeInfo *sequence_type_info,
                                        OrtTypeInfo **type_info) {
    NEED(sequence_type_info);
    NEED(type_info);
    return copy_element(sequence_type_info, type_info);
}

OrtStatusPtr ort_GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo *optional_type_info,
                                              OrtTypeInfo **out) {
    NEED(optional_type_info);
    NEED(out);
    return copy_element(optional_type_info, out);
}

/* Casts are borrowed: there is nothing of their own to release. */
void ort_ReleaseMapTypeInfo(OrtMapTypeInfo *input) {
    (void)input;
}

void ort_ReleaseSequenceTypeInfo(OrtSequenceTypeInfo *input) {
    (void)input;
}

/* ---- Tensor types ---- */

OrtStatusPtr ort_CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo **out) {
    NEED(out);
    OrtTensorTypeAndShapeInfo *s = calloc(1, sizeof *s);
    if (!s) return ort_fail_memory();
    *out = s;
    return NULL;
}

void ort_ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo *input) {
    if (!input) return;
    ort_shape_clear(input);
    free(input);
}

OrtStatusPtr ort_GetTensorTypeAndShape(const OrtValue *value, OrtTensorTypeAndShapeInfo **out) {
    NEED(value);
    NEED(out);
    if (sn_value_kind(ort_sn(value)) != SN_KIND_TENSOR)
        return ort_fail(ORT_INVALID_ARGUMENT, "GetTensorTypeAndShape: the value is not a tensor");
    OrtTensorTypeAndShapeInfo *s = malloc(sizeof *s);
    if (!s) return ort_fail_memory();
    shape_of_value(ort_sn(value), s);
    *out = s;
    return NULL;
}

OrtStatusPtr ort_SetTensorElementType(OrtTensorTypeAndShapeInfo *info,
                                      ONNXTensorElementDataType type) {
    NEED(info);
    info->type = type;
    return NULL;
}

static OrtStatus *check_rank(size_t rank) {
    if (rank <= SN_MAX_RANK) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT, "a shape of rank %zu: at most %d is supported", rank,
                    SN_MAX_RANK);
}

OrtStatusPtr ort_SetDimensions(OrtTensorTypeAndShapeInfo *info, const int64_t *dim_values,
                               size_t dim_count) {
    NEED(info);
    if (dim_count) NEED(dim_values);
    ORT_TRY(check_rank(dim_count));
    info->has_shape = true;
    info->rank = (int)dim_count;
    for (size_t i = 0; i < dim_count; i++) info->dims[i] = dim_values[i];
    return NULL;
}

OrtStatusPtr ort_SetSymbolicDimensions(OrtTensorTypeAndShapeInfo *info, const char **dim_params,
                                       size_t dim_params_length) {
    NEED(info);
    if (dim_params_length) NEED(dim_params);
    ORT_TRY(check_rank(dim_params_length));
    if (info->rank < (int)dim_params_length) {
        for (int i = info->rank; i < (int)dim_params_length; i++) info->dims[i] = -1;
        info->rank = (int)dim_params_length;
        info->has_shape = true;
    }
    for (size_t i = 0; i < dim_params_length; i++)
        if (!ort_replace_text(&info->symbols[i], dim_params[i])) return ort_fail_memory();
    return NULL;
}

OrtStatusPtr ort_GetTensorElementType(const OrtTensorTypeAndShapeInfo *info,
                                      ONNXTensorElementDataType *out) {
    NEED(info);
    NEED(out);
    *out = info->type;
    return NULL;
}

OrtStatusPtr ort_GetDimensionsCount(const OrtTensorTypeAndShapeInfo *info, size_t *out) {
    NEED(info);
    NEED(out);
    *out = (size_t)info->rank;
    return NULL;
}

OrtStatusPtr ort_GetDimensions(const OrtTensorTypeAndShapeInfo *info, int64_t *dim_values,
                               size_t dim_values_length) {
    NEED(info);
    if (dim_values_length) NEED(dim_values);
    for (size_t i = 0; i < dim_values_length && i < (size_t)info->rank; i++)
        dim_values[i] = info->dims[i];
    return NULL;
}

OrtStatusPtr ort_GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo *info,
                                       const char **dim_params, size_t dim_params_length) {
    NEED(info);
    if (dim_params_length) NEED(dim_params);
    for (size_t i = 0; i < dim_params_length; i++) {
        const char *symbol = i < (size_t)info->rank ? info->symbols[i] : NULL;
        dim_params[i] = symbol ? symbol : "";
    }
    return NULL;
}

OrtStatusPtr ort_GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo *info, size_t *out) {
    NEED(info);
    NEED(out);
    int64_t count = 1;
    for (int i = 0; i < info->rank; i++) {
        if (info->dims[i] < 0) {
            count = -1; /* as clients of shapes with unknown dimensions expect it */
            break;
        }
        if (__builtin_mul_overflow(count, info->dims[i], &count))
            return ort_fail(ORT_INVALID_ARGUMENT,
                            "the shape has more elements than can be counted");
    }
    *out = (size_t)count;
    return NULL;
}

bool ort_TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo *info) {
    return info && info->has_shape;
}
