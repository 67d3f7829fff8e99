/* editor.c - OrtModelEditorApi as far as clients call it to describe values; building and changing
 * models is not part of this library. */
#include "ort/ort.h"

#include <stdlib.h>
#include <string.h>

/* ---- Types ---- */

static OrtStatus *new_type(ONNXType kind, const OrtTypeInfo *element, OrtTypeInfo **out) {
    OrtTypeInfo *t = calloc(1, sizeof *t);
    if (!t) return ort_fail_memory();
    t->kind = kind;
    OrtStatus *status = element ? ort_type_copy(element, &t->element) : NULL;
    if (status)
        free(t);
    else
        *out = t;
    return status;
}

static OrtStatus *tensor_type(ONNXType kind, const OrtTensorTypeAndShapeInfo *tensor,
                              OrtTypeInfo **out) {
    NEED(tensor);
    NEED(out);
    OrtTypeInfo *t = NULL;
    ORT_TRY(new_type(kind, NULL, &t));
    OrtStatus *status = ort_shape_copy(tensor, &t->tensor);
    if (status)
        ort_ReleaseTypeInfo(t);
    else
        *out = t;
    return status;
}

static OrtStatusPtr create_tensor(const OrtTensorTypeAndShapeInfo *tensor, OrtTypeInfo **out) {
    return tensor_type(ONNX_TYPE_TENSOR, tensor, out);
}

static OrtStatusPtr create_sparse(const OrtTensorTypeAndShapeInfo *tensor, OrtTypeInfo **out) {
    return tensor_type(ONNX_TYPE_SPARSETENSOR, tensor, out);
}

static OrtStatusPtr create_map(ONNXTensorElementDataType key, const OrtTypeInfo *value,
                               OrtTypeInfo **out) {
    NEED(value);
    NEED(out);
    ORT_TRY(new_type(ONNX_TYPE_MAP, value, out));
    (*out)->key = key;
    return NULL;
}

static OrtStatusPtr create_sequence(const OrtTypeInfo *element, OrtTypeInfo **out) {
    NEED(element);
    NEED(out);
    return new_type(ONNX_TYPE_SEQUENCE, element, out);
}

static OrtStatusPtr create_optional(const OrtTypeInfo *contained, OrtTypeInfo **out) {
    NEED(contained);
    NEED(out);
    return new_type(ONNX_TYPE_OPTIONAL, contained, out);
}

/* ---- Values by name and type ---- */

struct OrtValueInfo {
    char *name;
    OrtTypeInfo *type;
};

void ort_ReleaseValueInfo(OrtValueInfo *input) {
    if (!input) return;
    free(input->name);
    ort_ReleaseTypeInfo(input->type);
    free(input);
}

static OrtStatusPtr create_value_info(const char *name, const OrtTypeInfo *type,
                                      OrtValueInfo **out) {
    NEED(name);
    NEED(type);
    NEED(out);
    OrtValueInfo *v = calloc(1, sizeof *v);
    OrtStatus *status =
        v && ort_replace_text(&v->name, name) ? ort_type_copy(type, &v->type) : ort_fail_memory();
    if (status)
        ort_ReleaseValueInfo(v);
    else
        *out = v;
    return status;
}

OrtStatusPtr ort_GetValueInfoName(const OrtValueInfo *value_info, const char **name) {
    NEED(value_info);
    NEED(name);
    *name = value_info->name;
    return NULL;
}

OrtStatusPtr ort_GetValueInfoTypeInfo(const OrtValueInfo *value_info,
                                      const OrtTypeInfo **type_info) {
    NEED(value_info);
    NEED(type_info);
    *type_info = value_info->type;
    return NULL;
}

/* ---- Models: not here ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define ABSENT(name, parameters)              \
    static OrtStatusPtr name parameters {     \
        return ort_not_implemented(__func__); \
    }
ABSENT(CreateNode, (const char *op, const char *domain, const char *name, const char *const *inputs,
                    size_t input_count, const char *const *outputs, size_t output_count,
                    OrtOpAttr **attributes, size_t attribute_count, OrtNode **out))
ABSENT(CreateGraph, (OrtGraph * *out))
ABSENT(SetGraphInputs, (OrtGraph * graph, OrtValueInfo **inputs, size_t count))
ABSENT(SetGraphOutputs, (OrtGraph * graph, OrtValueInfo **outputs, size_t count))
ABSENT(AddInitializerToGraph,
       (OrtGraph * graph, const char *name, OrtValue *tensor, bool data_is_external))
ABSENT(AddNodeToGraph, (OrtGraph * graph, OrtNode *node))
ABSENT(CreateModel, (const char *const *domains, const int *versions, size_t count, OrtModel **out))
ABSENT(AddGraphToModel, (OrtModel * model, OrtGraph *graph))
ABSENT(CreateSessionFromModel, (const OrtEnv *env, const OrtModel *model,
                                const OrtSessionOptions *options, OrtSession **out))
ABSENT(CreateModelEditorSession,
       (const OrtEnv *env, const char *path, const OrtSessionOptions *options, OrtSession **out))
ABSENT(CreateModelEditorSessionFromArray, (const OrtEnv *env, const void *bytes, size_t size,
                                           const OrtSessionOptions *options, OrtSession **out))
ABSENT(ApplyModelToModelEditorSession, (OrtSession * session, OrtModel *model))
ABSENT(FinalizeModelEditorSession, (OrtSession * session, const OrtSessionOptions *options,
                                    OrtPrepackedWeightsContainer *container))
#pragma GCC diagnostic pop

static OrtStatusPtr opset_of(const OrtSession *session, const char *domain, int *out) {
    NEED(session);
    NEED(domain);
    NEED(out);
    const char *name;
    int64_t version;
    for (size_t i = 0; sn_model_opset(session->model, i, &name, &version); i++) {
        if (strcmp(name, domain) != 0) continue;
        *out = (int)version;
        return NULL;
    }
    return ort_fail(ORT_INVALID_ARGUMENT, "the model uses no operators of domain '%s'", domain);
}

void ort_ReleaseNode(OrtNode *input) {
    (void)input;
}

void ort_ReleaseGraph(OrtGraph *input) {
    (void)input;
}

void ort_ReleaseModel(OrtModel *input) {
    (void)input;
}

const OrtModelEditorApi *ort_GetModelEditorApi(void) {
    static const OrtModelEditorApi api = {
        .CreateTensorTypeInfo = create_tensor,
        .CreateSparseTensorTypeInfo = create_sparse,
        .CreateMapTypeInfo = create_map,
        .CreateSequenceTypeInfo = create_sequence,
        .CreateOptionalTypeInfo = create_optional,
        .CreateValueInfo = create_value_info,
        .CreateNode = CreateNode,
        .CreateGraph = CreateGraph,
        .SetGraphInputs = SetGraphInputs,
        .SetGraphOutputs = SetGraphOutputs,
        .AddInitializerToGraph = AddInitializerToGraph,
        .AddNodeToGraph = AddNodeToGraph,
        .CreateModel = CreateModel,
        .AddGraphToModel = AddGraphToModel,
        .CreateSessionFromModel = CreateSessionFromModel,
        .CreateModelEditorSession = CreateModelEditorSession,
        .CreateModelEditorSessionFromArray = CreateModelEditorSessionFromArray,
        .SessionGetOpsetForDomain = opset_of,
        .ApplyModelToModelEditorSession = ApplyModelToModelEditorSession,
        .FinalizeModelEditorSession = FinalizeModelEditorSession,
    };
    return &api;
}

/* ---- Where weights lie ---- */

struct OrtExternalInitializerInfo {
    char *path;
    int64_t offset;
    size_t size;
};

OrtStatusPtr ort_CreateExternalInitializerInfo(const char *filepath, int64_t file_offset,
                                               size_t byte_size, OrtExternalInitializerInfo **out) {
    NEED(filepath);
    NEED(out);
    OrtExternalInitializerInfo *info = calloc(1, sizeof *info);
    if (!info || !ort_replace_text(&info->path, filepath)) {
        free(info);
        return ort_fail_memory();
    }
    info->offset = file_offset;
    info->size = byte_size;
    *out = info;
    return NULL;
}

void ort_ReleaseExternalInitializerInfo(OrtExternalInitializerInfo *input) {
    if (!input) return;
    free(input->path);
    free(input);
}

const char *ort_ExternalInitializerInfo_GetFilePath(const OrtExternalInitializerInfo *info) {
    return info ? info->path : "";
}

int64_t ort_ExternalInitializerInfo_GetFileOffset(const OrtExternalInitializerInfo *info) {
    return info ? info->offset : 0;
}

size_t ort_ExternalInitializerInfo_GetByteSize(const OrtExternalInitializerInfo *info) {
    return info ? info->size : 0;
}
