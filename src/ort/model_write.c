/* model_write.c - an OrtModel as a file: what came from a file goes back as it was. */
#include "model/onnx_fields.h"
#include "model/wire_write.h"
#include "ort/graph.h"

#include <stdlib.h>
#include <string.h>

int ort_sink_write(void *sink, const void *bytes, size_t size) {
    ort_sink *s = sink;
    if (size > s->capacity - s->size) {
        size_t capacity = s->capacity + s->capacity / 2 + size;
        char *bigger = realloc(s->bytes, capacity);
        if (!bigger) return 1;
        s->bytes = bigger;
        s->capacity = capacity;
    }
    if (size) memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
    return 0;
}

static void put_text(sni_out *out, uint32_t field, const char *text) {
    if (text && *text) sni_put_bytes(out, field, text, strlen(text));
}

static int put_piece(void *out, const void *bytes, size_t size) {
    sni_put_raw(out, bytes, size);
    return 0;
}

static int count_piece(void *total, const void *bytes, size_t size) {
    (void)bytes;
    *(uint64_t *)total += size;
    return 0;
}

static void put_tensor(sni_out *out, uint32_t field, const OrtValue *value, const char *name) {
    uint64_t size = 0;
    sn_status status = sn_value_encode(ort_sn(value), name, count_piece, &size, out->err);
    if (status == SN_OK) {
        sni_put_header(out, field, size);
        status = sn_value_encode(ort_sn(value), name, put_piece, out, out->err);
    }
    if (status != SN_OK) sni_out_fail(out, status);
}

/* ---- Types ---- */

static void emit_dim(sni_out *out, const void *message) {
    const OrtTensorTypeAndShapeInfo *t = ((const void *const *)message)[0];
    size_t i = *(const size_t *)((const void *const *)message)[1];
    if (t->dims[i] >= 0)
        sni_put_int(out, ONNX_DIM_VALUE, t->dims[i]);
    else
        put_text(out, ONNX_DIM_PARAM, t->symbols[i]);
}

static void emit_shape(sni_out *out, const void *message) {
    const OrtTensorTypeAndShapeInfo *t = message;
    for (size_t i = 0; i < (size_t)t->rank; i++)
        sni_put_message(out, ONNX_SHAPE_DIM, emit_dim, (const void *[]){t, &i});
}

static void emit_tensor_type(sni_out *out, const void *message) {
    const OrtTensorTypeAndShapeInfo *t = message;
    sni_put_int(out, ONNX_TENSOR_TYPE_ELEM, (int64_t)ort_dtype_in(t->type));
    if (t->has_shape) sni_put_message(out, ONNX_TENSOR_TYPE_SHAPE, emit_shape, t);
}

static void emit_type(sni_out *out, const void *message);

static void emit_element(sni_out *out, const void *message) {
    const OrtTypeInfo *t = message;
    sni_put_message(out, ONNX_SEQUENCE_TYPE_ELEM, emit_type, t->element);
}

static void emit_map(sni_out *out, const void *message) {
    const OrtTypeInfo *t = message;
    sni_put_int(out, ONNX_MAP_TYPE_KEY, (int64_t)ort_dtype_in(t->key));
    sni_put_message(out, ONNX_MAP_TYPE_VALUE, emit_type, t->element);
}

static void emit_type(sni_out *out, const void *message) {
    const OrtTypeInfo *t = message;
    if (!t) return;
    switch (t->kind) {
    case ONNX_TYPE_SEQUENCE:
        sni_put_message(out, ONNX_TYPE_PROTO_SEQUENCE, emit_element, t);
        break;
    case ONNX_TYPE_OPTIONAL:
        sni_put_message(out, ONNX_TYPE_PROTO_OPTIONAL, emit_element, t);
        break;
    case ONNX_TYPE_MAP:
        sni_put_message(out, ONNX_TYPE_PROTO_MAP, emit_map, t);
        break;
    case ONNX_TYPE_SPARSETENSOR:
        sni_put_message(out, ONNX_TYPE_PROTO_SPARSE, emit_tensor_type, &t->tensor);
        break;
    case ONNX_TYPE_TENSOR:
        sni_put_message(out, ONNX_TYPE_PROTO_TENSOR, emit_tensor_type, &t->tensor);
        break;
    default:
        break;
    }
}

static void emit_info(sni_out *out, const void *message) {
    const OrtValueInfo *v = message;
    put_text(out, ONNX_INFO_NAME, v->name);
    if (v->type) sni_put_message(out, ONNX_INFO_TYPE, emit_type, v->type);
}

static void put_info(sni_out *out, uint32_t field, const OrtValueInfo *v) {
    if (v->proto.p)
        sni_put_bytes(out, field, v->proto.p, v->proto.size);
    else
        sni_put_message(out, field, emit_info, v);
}

/* ---- Nodes ---- */

static void emit_texts(sni_out *out, const OrtOpAttr *a) {
    for (size_t at = 0; at < a->size; at += strlen(a->data + at) + 1)
        sni_put_bytes(out, ONNX_ATTR_STRINGS, a->data + at, strlen(a->data + at));
}

static void emit_attribute(sni_out *out, const void *message) {
    static const int64_t types[] = {
        [ORT_OP_ATTR_INT] = ONNX_ATTR_TYPE_INT,
        [ORT_OP_ATTR_INTS] = ONNX_ATTR_TYPE_INTS,
        [ORT_OP_ATTR_FLOAT] = ONNX_ATTR_TYPE_FLOAT,
        [ORT_OP_ATTR_FLOATS] = ONNX_ATTR_TYPE_FLOATS,
        [ORT_OP_ATTR_STRING] = ONNX_ATTR_TYPE_STRING,
        [ORT_OP_ATTR_STRINGS] = ONNX_ATTR_TYPE_STRINGS,
        [ORT_OP_ATTR_TENSOR] = ONNX_ATTR_TYPE_TENSOR,
    };
    const OrtOpAttr *a = message;
    put_text(out, ONNX_ATTR_NAME, a->name);
    if ((size_t)a->type >= sizeof types / sizeof *types) return;
    sni_put_int(out, ONNX_ATTR_TYPE, types[a->type]);
    const void *data = a->data;
    switch (a->type) {
    case ORT_OP_ATTR_INT:
        sni_put_int(out, ONNX_ATTR_I, *(const int64_t *)data);
        break;
    case ORT_OP_ATTR_FLOAT:
        sni_put_float(out, ONNX_ATTR_F, *(const float *)data);
        break;
    case ORT_OP_ATTR_INTS:
        for (size_t i = 0; i < a->size / 8; i++)
            sni_put_int(out, ONNX_ATTR_INTS, ((const int64_t *)data)[i]);
        break;
    case ORT_OP_ATTR_FLOATS:
        for (size_t i = 0; i < a->size / 4; i++)
            sni_put_float(out, ONNX_ATTR_FLOATS, ((const float *)data)[i]);
        break;
    case ORT_OP_ATTR_STRING:
        sni_put_bytes(out, ONNX_ATTR_S, data, a->size - 1);
        break;
    case ORT_OP_ATTR_STRINGS:
        emit_texts(out, a);
        break;
    case ORT_OP_ATTR_TENSOR:
        put_tensor(out, ONNX_ATTR_T, ort_attr_tensor(a), NULL);
        break;
    default:
        break;
    }
}

static void put_name(sni_out *out, uint32_t field, const char *name) {
    sni_put_bytes(out, field, name, strlen(name));
}

static void emit_node(sni_out *out, const void *message) {
    const OrtNode *n = message;
    for (size_t i = 0; i < n->input_count; i++) put_name(out, ONNX_NODE_INPUT, n->input_names[i]);
    for (size_t i = 0; i < n->output_count; i++)
        put_name(out, ONNX_NODE_OUTPUT, n->output_names[i]);
    put_text(out, ONNX_NODE_NAME, n->name);
    put_text(out, ONNX_NODE_OP_TYPE, n->op);
    put_text(out, ONNX_NODE_DOMAIN, n->domain);
    for (size_t i = 0; i < n->attribute_count; i++)
        sni_put_message(out, ONNX_NODE_ATTRIBUTE, emit_attribute, n->attributes[i]);
}

static void put_node(sni_out *out, const OrtNode *n) {
    if (n->proto.p)
        sni_put_bytes(out, ONNX_GRAPH_NODE, n->proto.p, n->proto.size);
    else
        sni_put_message(out, ONNX_GRAPH_NODE, emit_node, n);
}

/* ---- Graphs and models ---- */

/* The types of what a new node makes: nobody may know its operator. */
static void put_results(sni_out *out, const OrtGraph *g, const OrtNode *n) {
    for (size_t i = 0; i < n->output_count && !n->proto.p; i++) {
        const OrtValueInfo *v = ort_graph_find(g, n->output_names[i]);
        if (v && v->type && !v->is_output)
            sni_put_message(out, ONNX_GRAPH_VALUE_INFO, emit_info, v);
    }
}

static bool is_unwritten(const OrtGraph *g, const OrtNode *constant) {
    const OrtValueInfo *v = ort_graph_find(g, constant->output_names[0]);
    return v && v->is_unwritten;
}

static void emit_graph(sni_out *out, const void *message) {
    const OrtGraph *g = message;
    for (size_t i = 0; i < g->constant_count; i++)
        if (!g->constants[i]->is_gone && !is_unwritten(g, g->constants[i]))
            put_node(out, g->constants[i]);
    for (size_t i = 0; i < g->node_count; i++) put_node(out, g->nodes[i]);
    put_name(out, ONNX_GRAPH_NAME, g->name[0] ? g->name : "graph");
    for (size_t i = 0; i < g->initializer_count; i++) {
        const OrtValueInfo *v = g->initializers[i];
        if (v->is_constant_node || v->is_unwritten) continue;
        if (v->tensor.p)
            sni_put_bytes(out, ONNX_GRAPH_INITIALIZER, v->tensor.p, v->tensor.size);
        else if (v->weight)
            put_tensor(out, ONNX_GRAPH_INITIALIZER, v->weight, v->name);
    }
    for (size_t i = 0; i < g->input_count; i++) put_info(out, ONNX_GRAPH_INPUT, g->inputs[i]);
    for (size_t i = 0; i < g->output_count; i++) put_info(out, ONNX_GRAPH_OUTPUT, g->outputs[i]);
    for (size_t i = 0; i < g->node_count; i++) put_results(out, g, g->nodes[i]);
    for (size_t i = 0; i < g->rest_count; i++) sni_put_raw(out, g->rest[i].p, g->rest[i].size);
}

static void emit_opset(sni_out *out, const void *message) {
    const ort_opset *o = message;
    put_text(out, ONNX_OPSET_DOMAIN, o->domain);
    sni_put_int(out, ONNX_OPSET_VERSION, o->version);
}

static void emit_entry(sni_out *out, const void *message) {
    const char *const *entry = message;
    put_name(out, ONNX_ENTRY_KEY, entry[0]);
    put_name(out, ONNX_ENTRY_VALUE, entry[1]);
}

static void put_model(sni_out *out, const OrtModel *m) {
    sni_put_int(out, ONNX_MODEL_IR_VERSION, m->lists_weights ? 4 : m->ir_version);
    put_text(out, ONNX_MODEL_PRODUCER_NAME, m->producer);
    put_text(out, ONNX_MODEL_DOMAIN, m->domain);
    put_text(out, ONNX_MODEL_DOC, m->doc);
    if (m->version != INT64_MAX) sni_put_int(out, ONNX_MODEL_VERSION, m->version);
    for (size_t i = 0; i < m->opset_count; i++)
        sni_put_message(out, ONNX_MODEL_OPSET, emit_opset, &m->opsets[i]);
    for (size_t i = 0; i < m->metadata.count; i++)
        sni_put_message(out, ONNX_MODEL_METADATA, emit_entry,
                        (const char *const[]){m->metadata.keys[i], m->metadata.values[i]});
    sni_put_message(out, ONNX_MODEL_GRAPH, emit_graph, m->graph);
    for (size_t i = 0; i < m->rest_count; i++) sni_put_raw(out, m->rest[i].p, m->rest[i].size);
}

OrtStatus *ort_model_write(const OrtModel *model, ort_sink *out) {
    sni_out o;
    sn_error err;
    sni_out_init(&o, ort_sink_write, out, &err);
    put_model(&o, model);
    return sni_out_finish(&o) == SN_OK ? NULL : ort_fail_sn(&err);
}
