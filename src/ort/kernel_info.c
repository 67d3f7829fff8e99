/* kernel_info.c - what a custom operator's kernel can learn of its node when it is made. */
#include "ort/ep_host.h"

#include <stdlib.h>
#include <string.h>

static OrtStatus *no_attribute(const char *name) {
    return ort_fail(ORT_FAIL, "the node has no attribute '%s' of this type", name);
}

/* ---- Attributes ---- */

/* An attribute of a plug-in's node; NULL: it has none of that name and type. */
static const OrtOpAttr *attribute_of(const OrtKernelInfo *info, const char *name,
                                     OrtOpAttrType type) {
    const OrtOpAttr *a = ort_node_attribute(info->ep_node, name);
    return a && a->type == type ? a : NULL;
}

static OrtStatus *read_attribute(const OrtKernelInfo *info, const char *name, OrtOpAttrType type,
                                 void *out, size_t size) {
    const OrtOpAttr *a = attribute_of(info, name, type);
    if (!a) return no_attribute(name);
    memcpy(out, a->data, size);
    return NULL;
}

OrtStatusPtr ort_KernelInfoGetAttribute_float(const OrtKernelInfo *info, const char *name,
                                              float *out) {
    NEED(info);
    NEED(name);
    NEED(out);
    if (info->ep_node) return read_attribute(info, name, ORT_OP_ATTR_FLOAT, out, sizeof *out);
    return sn_operators_api()->node_float(info->node, name, out) ? NULL : no_attribute(name);
}

OrtStatusPtr ort_KernelInfoGetAttribute_int64(const OrtKernelInfo *info, const char *name,
                                              int64_t *out) {
    NEED(info);
    NEED(name);
    NEED(out);
    if (info->ep_node) return read_attribute(info, name, ORT_OP_ATTR_INT, out, sizeof *out);
    return sn_operators_api()->node_int(info->node, name, out) ? NULL : no_attribute(name);
}

OrtStatusPtr ort_KernelInfoGetAttribute_string(const OrtKernelInfo *info, const char *name,
                                               char *out, size_t *size) {
    NEED(info);
    NEED(name);
    NEED(size);
    if (info->ep_node) {
        const OrtOpAttr *a = attribute_of(info, name, ORT_OP_ATTR_STRING);
        return a ? ort_give_text(a->data, a->size - 1, out, size) : no_attribute(name);
    }
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
    if (info->ep_node) {
        const OrtOpAttr *a = attribute_of(info, name, ORT_OP_ATTR_FLOATS);
        return a ? give_list(a->data, a->size / sizeof *out, sizeof *out, out, size)
                 : no_attribute(name);
    }
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
    if (info->ep_node) {
        const OrtOpAttr *a = attribute_of(info, name, ORT_OP_ATTR_INTS);
        return a ? give_list(a->data, a->size / sizeof *out, sizeof *out, out, size)
                 : no_attribute(name);
    }
    const int64_t *v;
    size_t count;
    if (!sn_operators_api()->node_ints(info->node, name, &v, &count)) return no_attribute(name);
    return give_list(v, count, sizeof *v, out, size);
}

static OrtStatus *texts_of(const OrtKernelInfo *info, const char *name, OrtAllocator *allocator,
                           char ***out, size_t *size) {
    const OrtOpAttr *a = attribute_of(info, name, ORT_OP_ATTR_STRINGS);
    if (!a) return no_attribute(name);
    size_t count = 0;
    for (size_t i = 0; i < a->size; i++) count += !a->data[i];
    *out = NULL;
    *size = count;
    if (!count) return NULL;
    char **list = allocator->Alloc(allocator, count * sizeof *list);
    if (!list) return ort_fail_memory();
    const char *at = a->data;
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1) {
        OrtStatus *status = ort_copy_text(allocator, at, &list[i]);
        if (!status) continue;
        while (i > 0) allocator->Free(allocator, list[--i]);
        allocator->Free(allocator, list);
        return status;
    }
    *out = list;
    return NULL;
}

OrtStatusPtr ort_KernelInfoGetAttributeArray_string(const OrtKernelInfo *info, const char *name,
                                                    OrtAllocator *allocator, char ***out,
                                                    size_t *size) {
    NEED(info);
    NEED(name);
    NEED(allocator);
    NEED(out);
    NEED(size);
    if (info->ep_node) return texts_of(info, name, allocator, out, size);
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
    const OrtOpAttr *a = info->ep_node ? attribute_of(info, name, ORT_OP_ATTR_TENSOR) : NULL;
    const sn_value *v = a               ? ort_sn(ort_attr_tensor(a))
                        : info->ep_node ? NULL
                                        : sn_operators_api()->node_tensor(info->node, name);
    return v ? ort_copy_tensor(v, allocator, out) : no_attribute(name);
}

/* ---- The node ---- */

static size_t ports_of(const OrtKernelInfo *info, bool input) {
    const sn_op_api *api = sn_operators_api();
    const OrtNode *n = info->ep_node;
    if (n) return input ? n->input_count : n->output_count;
    return input ? api->node_input_count(info->node) : api->node_output_count(info->node);
}

/* A port of a plug-in's node; *out NULL: left out. */
static OrtStatus *ep_port(const OrtKernelInfo *info, bool input, size_t index,
                          const OrtValueInfo **out) {
    const OrtNode *n = info->ep_node;
    if (index >= ports_of(info, input))
        return ort_fail(ORT_INVALID_ARGUMENT, "%s %zu of a node that has %zu",
                        input ? "input" : "output", index, ports_of(info, input));
    *out = input ? n->inputs[index] : n->outputs[index];
    return NULL;
}

OrtStatusPtr ort_KernelInfo_GetInputCount(const OrtKernelInfo *info, size_t *out) {
    NEED(info);
    NEED(out);
    *out = ports_of(info, true);
    return NULL;
}

OrtStatusPtr ort_KernelInfo_GetOutputCount(const OrtKernelInfo *info, size_t *out) {
    NEED(info);
    NEED(out);
    *out = ports_of(info, false);
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
    if (info->ep_node) {
        const OrtValueInfo *found = NULL;
        ORT_TRY(ep_port(info, input, index, &found));
        const char *name = found ? found->name : "";
        return ort_give_text(name, strlen(name), out, size);
    }
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

static OrtStatus *port_type(const OrtKernelInfo *info, bool input, size_t index,
                            OrtTypeInfo **out) {
    sn_value_info v;
    if (!info->ep_node) {
        ORT_TRY(port(info, input, index, &v));
        return ort_type_of_info(&v, out);
    }
    const OrtValueInfo *found = NULL;
    ORT_TRY(ep_port(info, input, index, &found));
    if (!found || !found->type)
        return ort_fail(ORT_FAIL, "the type of %s %zu is not known", input ? "input" : "output",
                        index);
    return ort_type_copy(found->type, out);
}

OrtStatusPtr ort_KernelInfo_GetInputTypeInfo(const OrtKernelInfo *info, size_t index,
                                             OrtTypeInfo **type_info) {
    NEED(info);
    NEED(type_info);
    return port_type(info, true, index, type_info);
}

OrtStatusPtr ort_KernelInfo_GetOutputTypeInfo(const OrtKernelInfo *info, size_t index,
                                              OrtTypeInfo **type_info) {
    NEED(info);
    NEED(type_info);
    return port_type(info, false, index, type_info);
}

OrtStatusPtr ort_KernelInfoGetConstantInput_tensor(const OrtKernelInfo *info, size_t index,
                                                   int *is_constant, const OrtValue **out) {
    NEED(info);
    NEED(is_constant);
    NEED(out);
    if (info->ep_node) {
        const OrtValueInfo *found = NULL;
        ORT_TRY(ep_port(info, true, index, &found));
        *is_constant = found && found->is_initializer && !found->is_input && found->weight;
        *out = *is_constant ? found->weight : NULL;
        return NULL;
    }
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
    return give(info->ep_node ? info->ep_node->name : sn_operators_api()->node_name(info->node),
                out, size);
}

OrtStatusPtr ort_KernelInfo_GetOperatorDomain(const OrtKernelInfo *info, char *out, size_t *size) {
    NEED(info);
    NEED(size);
    return give(info->ep_node ? info->ep_node->domain : sn_operators_api()->node_domain(info->node),
                out, size);
}

OrtStatusPtr ort_KernelInfo_GetOperatorType(const OrtKernelInfo *info, char *out, size_t *size) {
    NEED(info);
    NEED(size);
    return give(info->ep_node ? info->ep_node->op : sn_operators_api()->node_type(info->node), out,
                size);
}

OrtStatusPtr ort_KernelInfo_GetOperatorSinceVersion(const OrtKernelInfo *info, int *since_version) {
    NEED(info);
    NEED(since_version);
    *since_version = info->ep_node ? ort_node_since(info->ep_node)
                                   : (int)sn_operators_api()->node_version(info->node);
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
    NEED(info);
    NEED(out);
    bool device = info->provider && info->provider->allocator && mem_type == OrtMemTypeDefault;
    *out = device ? info->provider->allocator : &ort_cpu_allocator;
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

OrtStatusPtr ort_KernelInfo_GetConfigEntries(const OrtKernelInfo *info, OrtKeyValuePairs **out) {
    NEED(info);
    NEED(out);
    OrtKeyValuePairs *pairs = NULL;
    ort_CreateKeyValuePairs(&pairs);
    if (pairs && (!info->config || ort_pairs_copy(pairs, info->config))) {
        *out = pairs;
        return NULL;
    }
    ort_ReleaseKeyValuePairs(pairs);
    return ort_fail_memory();
}
