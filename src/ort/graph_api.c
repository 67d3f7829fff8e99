/* graph_api.c - what plug-ins ask graphs and values: the slots Graph_* and ValueInfo_*. */
#include "model/onnx_fields.h"
#include "model/wire.h"
#include "ort/graph.h"

#include <stdlib.h>
#include <string.h>

OrtStatus *ort_give_pointers(const char *what, const void *from, size_t count, void *to,
                             size_t room) {
    if (room < count)
        return ort_fail(ORT_INVALID_ARGUMENT, "there are %zu %s and there is room for %zu", count,
                        what, room);
    if (count && !to) return ort_fail(ORT_INVALID_ARGUMENT, "the place for %s is NULL", what);
    if (count) memcpy(to, from, count * sizeof(void *));
    return NULL;
}

/* Slots that tell one fact of an object. */
#define TELL(type, slot, member, out_type, out)                  \
    OrtStatusPtr ort_##slot(const type *object, out_type *out) { \
        NEED(object);                                            \
        NEED(out);                                               \
        *out = object->member;                                   \
        return NULL;                                             \
    }
/* Slots that fill a list. */
#define LIST(type, slot, member, count_member, out_type, what)                           \
    OrtStatusPtr ort_##slot(const type *object, const out_type **out, size_t room) {     \
        NEED(object);                                                                    \
        return ort_give_pointers(what, object->member, object->count_member, out, room); \
    }

TELL(OrtGraph, Graph_GetName, name, const char *, out)
TELL(OrtGraph, Graph_GetNumInputs, input_count, size_t, out)
TELL(OrtGraph, Graph_GetNumOutputs, output_count, size_t, out)
TELL(OrtGraph, Graph_GetNumInitializers, initializer_count, size_t, out)
TELL(OrtGraph, Graph_GetNumNodes, node_count, size_t, out)
TELL(OrtGraph, Graph_GetParentNode, parent_node, const OrtNode *, out)
LIST(OrtGraph, Graph_GetInputs, inputs, input_count, OrtValueInfo, "inputs")
LIST(OrtGraph, Graph_GetOutputs, outputs, output_count, OrtValueInfo, "outputs")
LIST(OrtGraph, Graph_GetInitializers, initializers, initializer_count, OrtValueInfo, "initialisers")
LIST(OrtGraph, Graph_GetNodes, nodes, node_count, OrtNode, "nodes")

OrtStatusPtr ort_Graph_GetModelPath(const OrtGraph *graph, const char **model_path) {
    NEED(graph);
    NEED(model_path);
    *model_path = graph->model ? graph->model->path : "";
    return NULL;
}

OrtStatusPtr ort_Graph_GetOnnxIRVersion(const OrtGraph *graph, int64_t *onnx_ir_version) {
    NEED(graph);
    NEED(onnx_ir_version);
    *onnx_ir_version = graph->model ? graph->model->ir_version : 0;
    return NULL;
}

OrtStatusPtr ort_Graph_GetNumOperatorSets(const OrtGraph *graph, size_t *num_operator_sets) {
    NEED(graph);
    NEED(num_operator_sets);
    *num_operator_sets = graph->model ? graph->model->opset_count : 0;
    return NULL;
}

OrtStatusPtr ort_Graph_GetOperatorSets(const OrtGraph *graph, const char **domains,
                                       int64_t *opset_versions, size_t num_operator_sets) {
    NEED(graph);
    NEED(domains);
    NEED(opset_versions);
    size_t count = graph->model ? graph->model->opset_count : 0;
    if (num_operator_sets < count)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "there are %zu operator sets and there is room for %zu", count,
                        num_operator_sets);
    for (size_t i = 0; i < count; i++) {
        domains[i] = graph->model->opsets[i].domain;
        opset_versions[i] = graph->model->opsets[i].version;
    }
    return NULL;
}

OrtStatusPtr ort_Graph_GetGraphView(const OrtGraph *src_graph, const OrtNode **nodes,
                                    size_t num_nodes, OrtGraph **dst_graph) {
    NEED(src_graph);
    NEED(nodes);
    NEED(dst_graph);
    return ort_graph_cut(src_graph, nodes, num_nodes, true, dst_graph);
}

OrtStatusPtr ort_Graph_GetModelMetadata(const OrtGraph *graph, OrtModelMetadata **out) {
    NEED(graph);
    NEED(out);
    if (!graph->model) return ort_fail(ORT_INVALID_ARGUMENT, "the graph belongs to no model");
    const OrtModel *m = graph->model;
    return ort_metadata_make(&(ort_metadata){m->producer, m->graph ? m->graph->name : "", m->domain,
                                             m->doc, m->version, &m->metadata},
                             out);
}

/* ---- Values ---- */

OrtStatusPtr ort_ValueInfo_GetValueProducer(const OrtValueInfo *value_info,
                                            const OrtNode **producer_node,
                                            size_t *producer_output_index) {
    NEED(value_info);
    NEED(producer_node);
    *producer_node = value_info->producer;
    if (producer_output_index) *producer_output_index = value_info->output;
    return NULL;
}

TELL(OrtValueInfo, ValueInfo_GetValueNumConsumers, use_count, size_t, out)

OrtStatusPtr ort_ValueInfo_GetValueConsumers(const OrtValueInfo *value_info, const OrtNode **nodes,
                                             int64_t *input_indices, size_t num_consumers) {
    NEED(value_info);
    if (num_consumers < value_info->use_count)
        return ort_fail(ORT_INVALID_ARGUMENT, "there are %zu consumers and there is room for %zu",
                        value_info->use_count, num_consumers);
    if (value_info->use_count) NEED(nodes);
    if (value_info->use_count) NEED(input_indices);
    for (size_t i = 0; i < value_info->use_count; i++) {
        nodes[i] = value_info->uses[i].node;
        input_indices[i] = value_info->uses[i].index;
    }
    return NULL;
}

/* The value where it is defined: in this graph, or in one around it. */
static const OrtValueInfo *defined(const OrtValueInfo *v) {
    while (v->is_outer && v->graph->parent) {
        const OrtValueInfo *outer = ort_graph_find(v->graph->parent, v->name);
        if (!outer) break;
        v = outer;
    }
    return v;
}

OrtStatusPtr ort_ValueInfo_GetInitializerValue(const OrtValueInfo *value_info,
                                               const OrtValue **initializer_value) {
    NEED(value_info);
    NEED(initializer_value);
    const OrtValueInfo *v = defined(value_info);
    if (v->is_initializer && !v->weight)
        return ort_fail(ORT_FAIL, "the contents of initialiser '%s' are not at hand", v->name);
    *initializer_value = v->is_initializer ? v->weight : NULL;
    return NULL;
}

typedef struct external {
    char *location;
    int64_t offset, length;
} external;

static sn_status read_entry(sni_wire *w, const sni_field *field, external *out) {
    sni_wire inner;
    sni_field f;
    sni_str key = {0}, value = {0};
    SN_TRY(sni_field_message(w, field, &inner));
    while (sni_wire_next(&inner, &f)) {
        if (f.number == ONNX_ENTRY_KEY) SN_TRY(sni_field_str(&inner, &f, &key));
        if (f.number == ONNX_ENTRY_VALUE) SN_TRY(sni_field_str(&inner, &f, &value));
    }
    char text[32] = "";
    if (value.n < sizeof text && value.n) memcpy(text, value.p, value.n);
    if (sni_str_eq(key, SNI_STR("location"))) {
        free(out->location);
        out->location = strndup(value.n ? value.p : "", value.n);
    }
    if (sni_str_eq(key, SNI_STR("offset"))) out->offset = strtoll(text, NULL, 10);
    if (sni_str_eq(key, SNI_STR("length"))) out->length = strtoll(text, NULL, 10);
    return inner.status;
}

OrtStatusPtr ort_ValueInfo_GetExternalInitializerInfo(const OrtValueInfo *value_info,
                                                      OrtExternalInitializerInfo **info) {
    NEED(value_info);
    NEED(info);
    const OrtValueInfo *v = defined(value_info);
    *info = NULL;
    if (!v->is_initializer || !v->tensor.p) return NULL;
    sni_wire w;
    sni_wire_limits limits;
    sni_field f;
    sn_error err;
    external found = {0};
    sn_status status = SN_OK;
    sni_wire_init(&w, v->tensor.p, v->tensor.size, &limits, &err);
    while (status == SN_OK && sni_wire_next(&w, &f))
        if (f.number == ONNX_TENSOR_EXTERNAL) status = read_entry(&w, &f, &found);
    OrtStatus *failed = status == SN_OK ? NULL : ort_fail_sn(&err);
    if (!failed && found.location) {
        size_t size = v->weight ? sn_tensor_bytes(ort_sn(v->weight)) : (size_t)found.length;
        failed = ort_CreateExternalInitializerInfo(found.location, found.offset, size, info);
    }
    free(found.location);
    return failed;
}

OrtStatusPtr ort_ValueInfo_IsRequiredGraphInput(const OrtValueInfo *value_info,
                                                bool *is_required_graph_input) {
    NEED(value_info);
    NEED(is_required_graph_input);
    *is_required_graph_input = value_info->is_input && !value_info->is_initializer;
    return NULL;
}

OrtStatusPtr ort_ValueInfo_IsOptionalGraphInput(const OrtValueInfo *value_info,
                                                bool *is_optional_graph_input) {
    NEED(value_info);
    NEED(is_optional_graph_input);
    *is_optional_graph_input = value_info->is_input && value_info->is_initializer;
    return NULL;
}

TELL(OrtValueInfo, ValueInfo_IsGraphOutput, is_output, bool, out)
TELL(OrtValueInfo, ValueInfo_IsFromOuterScope, is_outer, bool, out)

OrtStatusPtr ort_ValueInfo_IsConstantInitializer(const OrtValueInfo *value_info,
                                                 bool *is_constant_initializer) {
    NEED(value_info);
    NEED(is_constant_initializer);
    const OrtValueInfo *v = defined(value_info);
    *is_constant_initializer = v->is_initializer && !v->is_input;
    return NULL;
}
