/* value.c - tensors, sequences and maps: an OrtValue is an sn_value. */
#include "ort/ep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Element types ---- */

sn_dtype ort_dtype_in(ONNXTensorElementDataType type) {
    switch ((int)type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2:
        return SN_UINT2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2:
        return SN_INT2;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0:
        return SN_FLOAT8E8M0;
    default:
        return (int)type >= 0 && (int)type <= SN_FLOAT4E2M1 ? (sn_dtype)type : SN_UNDEFINED;
    }
}

ONNXTensorElementDataType ort_dtype_out(sn_dtype dtype) {
    switch (dtype) {
    case SN_UINT2:
        return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2;
    case SN_INT2:
        return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2;
    case SN_FLOAT8E8M0:
        return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0;
    default:
        return (ONNXTensorElementDataType)dtype;
    }
}

/* ---- Tensors ---- */

/* Whether a tensor may have this shape and element type. Sizes are multiplied where memory is made.
 * */
static OrtStatus *check_shape(const int64_t *shape, size_t rank, ONNXTensorElementDataType type) {
    if (rank > SN_MAX_RANK)
        return ort_fail(ORT_INVALID_ARGUMENT, "a tensor of rank %zu: at most %d is supported", rank,
                        SN_MAX_RANK);
    if (rank && !shape) return ort_fail(ORT_INVALID_ARGUMENT, "shape is NULL");
    for (size_t i = 0; i < rank; i++)
        if (shape[i] < 0)
            return ort_fail(ORT_INVALID_ARGUMENT, "dimension %zu of a tensor is %" PRId64, i,
                            shape[i]);
    if (ort_dtype_in(type) == SN_UNDEFINED)
        return ort_fail(ORT_NOT_IMPLEMENTED, "%d is no element type", (int)type);
    return NULL;
}

/* Says that tensors can be in memory of the CPU only. */
static OrtStatus *refuse_memory(const OrtMemoryInfo *info) {
    return ort_fail(ORT_INVALID_ARGUMENT, "tensors can be in 'Cpu' memory, not in '%s'",
                    info->name);
}

/* An sn_release_fn: the allocator that memory came from takes it back. */
static void free_with(void *allocator, void *data) {
    OrtAllocator *a = allocator;
    if (data) a->Free(a, data);
}

/* Memory of the caller's that goes back to the caller's allocator. */
static OrtStatus *adopt(OrtAllocator *allocator, void *data, size_t bytes, const int64_t *shape,
                        size_t rank, sn_dtype dtype, OrtValue **out) {
    sn_value *v;
    sn_error err;
    if (sn_tensor_adopt(dtype, (int)rank, shape, data, bytes, allocator ? free_with : NULL,
                        allocator, &v, &err) != SN_OK)
        return ort_fail_sn(&err);
    *out = ort_of_sn(v);
    return NULL;
}

OrtStatusPtr ort_CreateTensorAsOrtValue(OrtAllocator *allocator, const int64_t *shape,
                                        size_t shape_len, ONNXTensorElementDataType type,
                                        OrtValue **out) {
    NEED(allocator);
    NEED(out);
    ORT_TRY(check_shape(shape, shape_len, type));
    sn_dtype dtype = ort_dtype_in(type);
    sn_error err;
    sn_value *v;
    if (allocator == &ort_cpu_allocator || dtype == SN_STRING) {
        if (sn_tensor_create(dtype, (int)shape_len, shape, &v, &err) != SN_OK)
            return ort_fail_sn(&err);
        *out = ort_of_sn(v);
        return NULL;
    }
    const OrtMemoryInfo *info = allocator->Info ? allocator->Info(allocator) : &ort_cpu_memory;
    if (!ort_on_host(info)) return ort_tensor_on(allocator, dtype, (int)shape_len, shape, out);
    size_t count = 1;
    for (size_t i = 0; i < shape_len; i++)
        if (__builtin_mul_overflow(count, (size_t)shape[i], &count))
            return ort_fail(ORT_INVALID_ARGUMENT, "the shape of a tensor is too large");
    size_t bytes = sn_dtype_bytes(dtype, count);
    void *data = bytes ? allocator->Alloc(allocator, bytes) : NULL;
    if (bytes && !data) return ort_fail_memory();
    OrtStatus *status = adopt(allocator, data, bytes, shape, shape_len, dtype, out);
    if (status) free_with(allocator, data);
    return status;
}

OrtStatusPtr ort_CreateTensorWithDataAsOrtValue(const OrtMemoryInfo *info, void *p_data,
                                                size_t p_data_len, const int64_t *shape,
                                                size_t shape_len, ONNXTensorElementDataType type,
                                                OrtValue **out) {
    NEED(info);
    NEED(out);
    ORT_TRY(check_shape(shape, shape_len, type));
    if (!ort_on_host(info)) {
        if (ort_dtype_in(type) == SN_STRING) return refuse_memory(info);
        return ort_tensor_over(NULL, info, p_data, p_data_len,
                               &(ort_tensor_shape){ort_dtype_in(type), (int)shape_len, shape}, out);
    }
    return adopt(NULL, p_data, p_data_len, shape, shape_len, ort_dtype_in(type), out);
}

OrtStatusPtr ort_CreateTensorWithDataAndDeleterAsOrtValue(OrtAllocator *deleter, void *p_data,
                                                          size_t p_data_len, const int64_t *shape,
                                                          size_t shape_len,
                                                          ONNXTensorElementDataType type,
                                                          OrtValue **out) {
    NEED(deleter);
    NEED(out);
    ORT_TRY(check_shape(shape, shape_len, type));
    return adopt(deleter, p_data, p_data_len, shape, shape_len, ort_dtype_in(type), out);
}

void ort_ReleaseValue(OrtValue *input) {
    sn_value_destroy(ort_sn(input));
}

/* Sequences and maps have no elements. `function` is a __func__ of ort_*. */
static OrtStatus *check_tensor(const OrtValue *value, const char *function) {
    if (sn_value_kind(ort_sn(value)) == SN_KIND_TENSOR) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT, "%s: the value is not a tensor", function + 4);
}

/* Returns from a slot when a value is NULL or no tensor. */
#define NEED_TENSOR(value)                      \
    do {                                        \
        NEED(value);                            \
        ORT_TRY(check_tensor(value, __func__)); \
    } while (0)

OrtStatusPtr ort_IsTensor(const OrtValue *value, int *out) {
    NEED(value);
    NEED(out);
    *out = sn_value_kind(ort_sn(value)) == SN_KIND_TENSOR;
    return NULL;
}

OrtStatusPtr ort_IsSparseTensor(const OrtValue *value, int *out) {
    NEED(value);
    NEED(out);
    *out = 0;
    return NULL;
}

OrtStatusPtr ort_HasValue(const OrtValue *value, int *out) {
    NEED(value);
    NEED(out);
    *out = sn_value_kind(ort_sn(value)) != SN_KIND_NONE;
    return NULL;
}

/* Strings have no memory that callers could write. */
static OrtStatus *check_data(const OrtValue *value, const char *function) {
    ORT_TRY(check_tensor(value, function));
    if (sn_tensor_dtype(ort_sn(value)) != SN_STRING) return NULL;
    return ort_fail(ORT_NOT_IMPLEMENTED, "%s: use the functions for string tensors", function + 4);
}

OrtStatusPtr ort_GetTensorMutableData(OrtValue *value, void **out) {
    NEED(value);
    NEED(out);
    ORT_TRY(check_data(value, __func__));
    *out = sn_tensor_data(ort_sn(value));
    return NULL;
}

OrtStatusPtr ort_GetTensorData(const OrtValue *value, const void **out) {
    NEED(value);
    NEED(out);
    ORT_TRY(check_data(value, __func__));
    *out = sn_tensor_const_data(ort_sn(value));
    return NULL;
}

OrtStatusPtr ort_GetTensorSizeInBytes(const OrtValue *ort_value, size_t *size) {
    NEED_TENSOR(ort_value);
    NEED(size);
    if (sn_tensor_dtype(ort_sn(ort_value)) == SN_STRING)
        return ort_fail(ORT_INVALID_ARGUMENT, "GetTensorSizeInBytes: the tensor is of strings");
    *size = sn_tensor_bytes(ort_sn(ort_value));
    return NULL;
}

OrtStatusPtr ort_GetTensorElementTypeAndShapeDataReference(const OrtValue *value,
                                                           ONNXTensorElementDataType *elem_type,
                                                           const int64_t **shape_data,
                                                           size_t *shape_data_count) {
    NEED_TENSOR(value);
    NEED(elem_type);
    NEED(shape_data);
    NEED(shape_data_count);
    *elem_type = ort_dtype_out(sn_tensor_dtype(ort_sn(value)));
    *shape_data = sn_tensor_dims(ort_sn(value));
    *shape_data_count = (size_t)sn_tensor_rank(ort_sn(value));
    return NULL;
}

OrtStatusPtr ort_TensorAt(OrtValue *value, const int64_t *location_values,
                          size_t location_values_count, void **out) {
    NEED_TENSOR(value);
    NEED(out);
    const sn_value *v = ort_sn(value);
    size_t rank = (size_t)sn_tensor_rank(v);
    if (rank) NEED(location_values);
    sn_dtype dtype = sn_tensor_dtype(v);
    if (dtype == SN_STRING || sn_dtype_bytes(dtype, 2) == sn_dtype_bytes(dtype, 1))
        return ort_fail(ORT_INVALID_ARGUMENT, "TensorAt: elements of %s have no address",
                        sn_dtype_name(dtype));
    if (location_values_count != rank)
        return ort_fail(ORT_INVALID_ARGUMENT, "TensorAt: %zu coordinates for a tensor of rank %zu",
                        location_values_count, rank);
    size_t at = 0;
    for (size_t i = 0; i < rank; i++) {
        int64_t size = sn_tensor_dims(v)[i];
        if (location_values[i] < 0 || location_values[i] >= size)
            return ort_fail(ORT_INVALID_ARGUMENT,
                            "TensorAt: coordinate %zu is %" PRId64 " of %" PRId64, i,
                            location_values[i], size);
        at = at * (size_t)size + (size_t)location_values[i];
    }
    *out = (char *)sn_tensor_data(ort_sn(value)) + sn_dtype_bytes(dtype, at);
    return NULL;
}

OrtStatusPtr ort_GetTensorMemoryInfo(const OrtValue *value, const OrtMemoryInfo **mem_info) {
    NEED_TENSOR(value);
    NEED(mem_info);
    *mem_info = ort_value_memory(value);
    return NULL;
}

/* ---- Strings ---- */

/* The same for functions that take tensors of strings. */
static OrtStatus *check_strings(const OrtValue *value, const char *function) {
    if (sn_tensor_dtype(ort_sn(value)) == SN_STRING) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT, "%s: the value is not a tensor of strings", function + 4);
}

#define NEED_STRINGS(value)                      \
    do {                                         \
        NEED(value);                             \
        ORT_TRY(check_strings(value, __func__)); \
    } while (0)

OrtStatusPtr ort_FillStringTensor(OrtValue *value, const char *const *s, size_t s_len) {
    NEED_STRINGS(value);
    if (s_len) NEED(s);
    size_t count = sn_tensor_count(ort_sn(value));
    if (s_len != count)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "FillStringTensor: %zu strings for a tensor of %zu elements", s_len, count);
    sn_error err;
    for (size_t i = 0; i < count; i++) {
        if (!s[i]) return ort_fail(ORT_INVALID_ARGUMENT, "FillStringTensor: string %zu is NULL", i);
        if (sn_tensor_set_string(ort_sn(value), i, s[i], strlen(s[i]), &err) != SN_OK)
            return ort_fail_sn(&err);
    }
    return NULL;
}

OrtStatusPtr ort_FillStringTensorElement(OrtValue *value, const char *s, size_t index) {
    NEED_STRINGS(value);
    NEED(s);
    sn_error err;
    if (sn_tensor_set_string(ort_sn(value), index, s, strlen(s), &err) != SN_OK)
        return ort_fail_sn(&err);
    return NULL;
}

OrtStatusPtr ort_GetResizedStringTensorElementBuffer(OrtValue *value, size_t index,
                                                     size_t length_in_bytes, char **buffer) {
    NEED_STRINGS(value);
    NEED(buffer);
    sn_error err;
    if (sn_tensor_resize_string(ort_sn(value), index, length_in_bytes, buffer, &err) != SN_OK)
        return ort_fail_sn(&err);
    return NULL;
}

/* Text of an element, borrowed until the element changes. Fails beyond the last one. */
static OrtStatus *string_at(const OrtValue *value, size_t index, const char **text,
                            size_t *length) {
    sn_error err;
    if (sn_tensor_get_string(ort_sn(value), index, text, length, &err) != SN_OK)
        return ort_fail_sn(&err);
    return NULL;
}

OrtStatusPtr ort_GetStringTensorDataLength(const OrtValue *value, size_t *len) {
    NEED_STRINGS(value);
    NEED(len);
    size_t total = 0, length = 0;
    const char *text;
    for (size_t i = 0; i < sn_tensor_count(ort_sn(value)); i++) {
        ORT_TRY(string_at(value, i, &text, &length));
        total += length;
    }
    *len = total;
    return NULL;
}

OrtStatusPtr ort_GetStringTensorContent(const OrtValue *value, void *s, size_t s_len,
                                        size_t *offsets, size_t offsets_len) {
    NEED_STRINGS(value);
    size_t count = sn_tensor_count(ort_sn(value)), total = 0;
    ORT_TRY(ort_GetStringTensorDataLength(value, &total));
    if (count) NEED(offsets);
    if (total) NEED(s);
    if (offsets_len != count)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "GetStringTensorContent: room for %zu offsets of %zu strings", offsets_len,
                        count);
    if (s_len < total)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "GetStringTensorContent: the strings take %zu bytes and there is room for "
                        "%zu",
                        total, s_len);
    size_t at = 0, length = 0;
    const char *text;
    for (size_t i = 0; i < count; i++) {
        ORT_TRY(string_at(value, i, &text, &length));
        offsets[i] = at;
        if (length) memcpy((char *)s + at, text, length);
        at += length;
    }
    return NULL;
}

OrtStatusPtr ort_GetStringTensorElementLength(const OrtValue *value, size_t index, size_t *out) {
    NEED_STRINGS(value);
    NEED(out);
    const char *text;
    return string_at(value, index, &text, out);
}

OrtStatusPtr ort_GetStringTensorElement(const OrtValue *value, size_t s_len, size_t index,
                                        void *s) {
    NEED_STRINGS(value);
    const char *text;
    size_t length = 0;
    ORT_TRY(string_at(value, index, &text, &length));
    if (s_len < length)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "GetStringTensorElement: the string takes %zu bytes and there is room for "
                        "%zu",
                        length, s_len);
    if (length) NEED(s);
    if (length) memcpy(s, text, length);
    return NULL;
}

/* ---- Sequences and maps ---- */

OrtStatusPtr ort_GetValueType(const OrtValue *value, ONNXType *out) {
    NEED(value);
    NEED(out);
    switch (sn_value_kind(ort_sn(value))) {
    case SN_KIND_TENSOR:
        *out = ONNX_TYPE_TENSOR;
        break;
    case SN_KIND_SEQUENCE:
        *out = ONNX_TYPE_SEQUENCE;
        break;
    case SN_KIND_MAP:
        *out = ONNX_TYPE_MAP;
        break;
    default:
        *out = ONNX_TYPE_UNKNOWN;
    }
    return NULL;
}

OrtStatusPtr ort_GetValueCount(const OrtValue *value, size_t *out) {
    NEED(value);
    NEED(out);
    sn_kind kind = sn_value_kind(ort_sn(value));
    if (kind != SN_KIND_SEQUENCE && kind != SN_KIND_MAP)
        return ort_fail(ORT_FAIL, "GetValueCount: the value is no sequence and no map");
    *out = kind == SN_KIND_MAP ? 2 : sn_sequence_length(ort_sn(value));
    return NULL;
}

static bool holds_maps(const sn_value *v) {
    const sn_value *first = sn_value_kind(v) == SN_KIND_SEQUENCE ? sn_sequence_at(v, 0) : NULL;
    return first && sn_value_kind(first) == SN_KIND_MAP;
}

/* An element of a sequence, or a map's keys (0) or values (1). Tensors are copied: a sequence may
 * hold memory of the caller's, which is free to change. */
OrtStatusPtr ort_GetValue(const OrtValue *value, int index, OrtAllocator *allocator,
                          OrtValue **out) {
    NEED(value);
    NEED(out);
    size_t count = 0;
    ORT_TRY(ort_GetValueCount(value, &count));
    if (index < 0 || (size_t)index >= count)
        return ort_fail(holds_maps(ort_sn(value)) ? ORT_RUNTIME_EXCEPTION : ORT_FAIL,
                        "GetValue: element %d of %zu", index, count);
    const sn_value *v = ort_sn(value);
    const sn_value *element = sn_value_kind(v) == SN_KIND_SEQUENCE
                                  ? sn_sequence_at(v, (size_t)index)
                              : index == 0 ? sn_map_keys(v)
                                           : sn_map_values(v);
    if (allocator && sn_value_kind(element) == SN_KIND_TENSOR)
        return ort_copy_tensor(element, allocator, out);
    *out = ort_of_sn(sn_value_retain((sn_value *)element));
    return NULL;
}

static OrtStatus *make_map(const OrtValue *const *in, size_t count, OrtValue **out) {
    if (count != 2)
        return ort_fail(ORT_INVALID_ARGUMENT, "CreateValue: a map takes keys and values, not %zu",
                        count);
    sn_value *keys = sn_value_retain(ort_sn(in[0])), *values = sn_value_retain(ort_sn(in[1]));
    sn_value *map;
    sn_error err;
    if (sn_map_create(keys, values, &map, &err) != SN_OK) {
        sn_value_destroy(keys);
        sn_value_destroy(values);
        return ort_fail_sn(&err);
    }
    *out = ort_of_sn(map);
    return NULL;
}

static OrtStatus *make_sequence(const OrtValue *const *in, size_t count, OrtValue **out) {
    sn_kind kind = sn_value_kind(ort_sn(in[0]));
    if (kind != SN_KIND_TENSOR && kind != SN_KIND_MAP)
        return ort_fail(ORT_FAIL, "CreateValue: a sequence is of tensors or of maps");
    for (size_t i = 1; i < count; i++)
        if (sn_value_kind(ort_sn(in[i])) != sn_value_kind(ort_sn(in[0])) ||
            sn_tensor_dtype(ort_sn(in[i])) != sn_tensor_dtype(ort_sn(in[0])))
            return ort_fail(ORT_INVALID_ARGUMENT,
                            "CreateValue: elements 0 and %zu are of different types", i);
    sn_value *sequence;
    sn_error err;
    if (sn_sequence_create((sn_value *const *)(const void *)in, count, &sequence, &err) != SN_OK)
        return ort_fail_sn(&err);
    for (size_t i = 0; i < count; i++) sn_value_retain(ort_sn(in[i]));
    *out = ort_of_sn(sequence);
    return NULL;
}

OrtStatusPtr ort_CreateValue(const OrtValue *const *in, size_t num_values, ONNXType value_type,
                             OrtValue **out) {
    NEED(in);
    NEED(out);
    if (num_values == 0) return ort_fail(ORT_INVALID_ARGUMENT, "CreateValue: of no values");
    for (size_t i = 0; i < num_values; i++)
        if (!in[i]) return ort_fail(ORT_INVALID_ARGUMENT, "CreateValue: value %zu is NULL", i);
    if (value_type == ONNX_TYPE_MAP) return make_map(in, num_values, out);
    if (value_type == ONNX_TYPE_SEQUENCE) return make_sequence(in, num_values, out);
    return ort_fail(ORT_NOT_IMPLEMENTED, "CreateValue: type %d is no sequence and no map",
                    (int)value_type);
}
