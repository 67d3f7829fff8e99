/* kernel_info.c - what a custom operator's kernel can learn of its node when it is made. */
#include "ort/ort.h"

#include <stdlib.h>
#include <string.h>

static OrtStatus *no_attribute(const char *name) {
    return ort_fail(ORT_FAIL, "the node has no attribute '%s' of this type", name);
}

/* ---- Attributes ---- */

OrtStatusPtr ort_KernelInfoGetAttribute_float(const OrtKernelInfo *info, const char *name,
                                              float *out) {
    NEED(info);
    NEED(name);
    NEED(out);
    return sn_operators_api()->node_float(info->node, name, out) ? NULL : no_attribute(name);
}

OrtStatusPtr ort_KernelInfoGetAttribute_int64(const OrtKernelInfo *info, const char *name,
                                              int64_t *out) {
    NEED(info);
    NEED(name);
    NEED(out);
    return sn_operators_api()->node_int(info->node, name, out) ? NULL : no_attribute(name);
}

OrtStatusPtr ort_KernelInfoGetAttribute_string(const OrtKernelInfo *info, const char *name,
                                               char *out, size_t *size) {
    NEED(info);
    NEED(name);
    NEED(size);
    const char *text;
    size_t length;
    if (!sn_operators_api()->node_text(info->node, name, &text, &length)) return no_attribute(name);
    return ort_give_text(text, length, out, size);
}

/* Gives a list to a caller who says how many elements there is room for, as ort_give_text does. */
static OrtStatus *give_list(const void *list, size_t count, size_t width, void *out, size_t *size) {
    size_t room = *size;
    *size = count;
    if (!out) return NULL;
    if (room < count)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "the attribute has %zu elements and there is room for %zu", count, room);
    if (count) memcpy(out, list, count * width);
    return NULL;
}

OrtStatusPtr ort_KernelInfoGetAttributeArray_float(const OrtKernelInfo *info, const char *name,
                                                   float *out, size_t *size) {
    NEED(info);
    NEED(name);
    NEED(size);
    const float *v;
    size_t count;
    if (!sn_operators_api()->node_floats(info->node, name, &v, &count)) return no_attribute(name);
    return give_list(v, count, sizeof *v, out, size);
}

OrtStatusPtr ort_KernelInfoGetAttributeArray_int64(const OrtKernelInfo *info, const char *name,
                                                   int64_t *out, size_t *size) {
    NEED(info);
    NEED(name);
    NEED(size);
    const int64_t *v;
    size_t count;
    if (!sn_operators_api()->node_ints(info->node, name, &v, &count)) return no_attribute(name);
    return give_list(v, count, sizeof *v, out, size);
}

OrtStatusPtr ort_KernelInfoGetAttributeArray_string(const OrtKernelInfo *info, const char *name,
                                                    OrtAllocator *allocator, char ***out,
                                                    size_t *size) {
    NEED(info);
    NEED(name);
    NEED(allocator);
    NEED(out);
    NEED(size);
    const sn_op_api *api = sn_operators_api();
    size_t count;
    if (!api->node_texts(info->node, name, &count)) return no_attribute(name);
    *out = NULL;
    *size = count;
    if (!count) return NULL;
    char **list = allocator->Alloc(allocator, count * sizeof *list);
    if (!list) return ort_fail_memory();
    for (size_t i = 0; i < count; i++) {
        const char *text = "";
        api->node_text_at(info->node, name, i, &text, NULL);
        OrtStatus *status = ort_copy_text(allocator, text, &list[i]);
        if (!status) continue;
        while (i > 0) allocator->Free(allocator, list[--i]);
        allocator->Free(allocator, list);
        return status;
    }
    *out = list;
    return NULL;
}

OrtStatus *ort_copy_tensor(const sn_value *from, OrtAllocator *allocator, OrtValue **out) {
    OrtValue *made = NULL;
    ORT_TRY(ort_CreateTensorAsOrtValue(allocator, sn_tensor_dims(from),
                                       (size_t)sn_tensor_rank(from),
                                       ort_dtype_out(sn_tensor_dtype(from)), &made));
    OrtStatus *status = NULL;
    sn_error err;
    if (sn_tensor_dtype(from) == SN_STRING) {
        for (size_t i = 0; i < sn_tensor_count(from) && !status; i++) {
            const char *text;
            size_t length;
            if (sn_tensor_get_string(from, i, &text, &length, &err) != SN_OK ||
                sn_tensor_set_string(ort_sn(made), i, text, length, &err) != SN_OK)
                status = ort_fail_sn(&err);
        }
    } else if (sn_tensor_bytes(from)) {
        memcpy(sn_tensor_data(ort_sn(made)), sn_tensor_const_data(from), sn_tensor_bytes(from));
    }
    if (status)
        ort_ReleaseValue(made);
    else
        *out = made;
    return status;
}

OrtStatusPtr ort_KernelInfoGetAttribute_tensor(const OrtKernelInfo *info, const char *name,
                                               OrtAllocator *allocator, OrtValue **out) {
    NEED(info);
    NEED(name);
    NEED(allocator);
    NEED(out);
    const sn_value *v = sn_operators_api()->node_tensor(info->node, name);
    return v ? ort_copy_tensor(v, allocator, out) : no_attribute(name);
}

/* ---- The node ---- */

OrtStatusPtr ort_KernelInfo_GetInputCount(const OrtKernelInfo *info, size_t *out) {
    NEED(info);
    NEED(out);
    *out = sn_operators_api()->node_input_count(info->node);
    return NULL;
}

OrtStatusPtr ort_KernelInfo_GetOutputCount(const OrtKernelInfo *info, size_t *out) {
    NEED(info);
    NEED(out);
    *out = sn_operators_api()->node_output_count(info->node);
    return NULL;
}

static OrtStatus *port(const OrtKernelInfo *info, bool input, size_t index, sn_value_info *out) {
    const sn_op_api *api = sn_operators_api();
    size_t count = input ? api->node_input_count(info->node) : api->node_output_count(info->node);
    if (index >= count)
        return ort_fail(ORT_INVALID_ARGUMENT, "%s %zu of a node that has %zu",
                        input ? "input" : "output", index, count);
    bool found =
        input ? api->node_input(info->node, index, out) : api->node_output(info->node, index, out);
    if (!found) *out = (sn_value_info){.name = ""}; /* left out */
    return NULL;
}

static OrtStatus *port_name(const OrtKernelInfo *info, bool input, size_t index, char *out,
                            size_t *size) {
    sn_value_info v;
    ORT_TRY(port(info, input, index, &v));
    return ort_give_text(v.name, strlen(v.name), out, size);
}

OrtStatusPtr ort_KernelInfo_GetInputName(const OrtKernelInfo *info, size_t index, char *out,
                                         size_t *size) {
    NEED(info);
    NEED(size);
    return port_name(info, true, index, out, size);
}

OrtStatusPtr ort_KernelInfo_GetOutputName(const OrtKernelInfo *info, size_t index, char *out,
                                          size_t *size) {
    NEED(info);
    NEED(size);
    return port_name(info, false, index, out, size);
}

OrtStatusPtr ort_KernelInfo_GetInputTypeInfo(const OrtKernelInfo *info, size_t index,
                                             OrtTypeInfo **type_info) {
    NEED(info);
    NEED(type_info);
    sn_value_info v;
    ORT_TRY(port(info, true, index, &v));
    return ort_type_of_info(&v, type_info);
}

OrtStatusPtr ort_KernelInfo_GetOutputTypeInfo(const OrtKernelInfo *info, size_t index,
                                              OrtTypeInfo **type_info) {
    NEED(info);
    NEED(type_info);
    sn_value_info v;
    ORT_TRY(port(info, false, index, &v));
    return ort_type_of_info(&v, type_info);
}

OrtStatusPtr ort_KernelInfoGetConstantInput_tensor(const OrtKernelInfo *info, size_t index,
                                                   int *is_constant, const OrtValue **out) {
    NEED(info);
    NEED(is_constant);
    NEED(out);
    const sn_op_api *api = sn_operators_api();
    if (index >= api->node_input_count(info->node))
        return ort_fail(ORT_INVALID_ARGUMENT, "input %zu of a node that has %zu", index,
                        api->node_input_count(info->node));
    const sn_value *v = api->node_constant(info->node, index);
    *is_constant = v != NULL;
    *out = ort_of_sn(v);
    return NULL;
}

static OrtStatus *give(const char *text, char *out, size_t *size) {
    return ort_give_text(text, strlen(text), out, size);
}

OrtStatusPtr ort_KernelInfo_GetNodeName(const OrtKernelInfo *info, char *out, size_t *size) {
    NEED(info);
    NEED(size);
    return give(sn_operators_api()->node_name(info->node), out, size);
}

OrtStatusPtr ort_KernelInfo_GetOperatorDomain(const OrtKernelInfo *info, char *out, size_t *size) {
    NEED(info);
    NEED(size);
    return give(sn_operators_api()->node_domain(info->node), out, size);
}

OrtStatusPtr ort_KernelInfo_GetOperatorType(const OrtKernelInfo *info, char *out, size_t *size) {
    NEED(info);
    NEED(size);
    return give(sn_operators_api()->node_type(info->node), out, size);
}

OrtStatusPtr ort_KernelInfo_GetOperatorSinceVersion(const OrtKernelInfo *info, int *since_version) {
    NEED(info);
    NEED(since_version);
    *since_version = (int)sn_operators_api()->node_version(info->node);
    return NULL;
}

OrtStatusPtr ort_KernelInfo_GetLogger(const OrtKernelInfo *info, const OrtLogger **logger) {
    NEED(info);
    NEED(logger);
    *logger = info->logger;
    return NULL;
}

OrtStatusPtr ort_KernelInfoGetAllocator(const OrtKernelInfo *info, OrtMemType mem_type,
                                        OrtAllocator **out) {
    (void)mem_type;
    NEED(info);
    NEED(out);
    *out = &ort_cpu_allocator;
    return NULL;
}

/* A copy is as good as the original: both point to what lives as long as the session. */
OrtStatusPtr ort_CopyKernelInfo(const OrtKernelInfo *info, OrtKernelInfo **info_copy) {
    NEED(info);
    NEED(info_copy);
    OrtKernelInfo *copy = malloc(sizeof *copy);
    if (!copy) return ort_fail_memory();
    *copy = *info;
    *info_copy = copy;
    return NULL;
}

void ort_ReleaseKernelInfo(OrtKernelInfo *input) {
    free(input);
}
