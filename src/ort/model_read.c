/* model_read.c - from a file's ModelProto to an OrtModel: names, nodes, attributes and bodies. What
 * values and weights are is learnt from the engine's importer. */
#include "model/onnx_fields.h"
#include "model/wire.h"
#include "ort/graph.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH_LIMIT = 64 };

/* ---- Pieces ---- */

static sn_status no_memory(sn_error *err) {
    return ort_to_sn(ort_fail_memory(), err);
}

static sn_status read_text(sni_wire *w, const sni_field *f, char **out) {
    sni_str s;
    SN_TRY(sni_field_str(w, f, &s));
    char *copy = strndup(s.n ? s.p : "", s.n);
    if (!copy) return no_memory(w->err);
    free(*out);
    *out = copy;
    return SN_OK;
}

static sn_status read_name(sni_wire *w, const sni_field *f, char ***names, size_t *count) {
    sni_str s;
    SN_TRY(sni_field_str(w, f, &s));
    return ort_node_add_name(names, count, s.n ? s.p : "", s.n) ? SN_OK : no_memory(w->err);
}

/* ---- Attributes ---- */

typedef struct attribute { /* as far as it has been read */
    char *name;
    int64_t type, i;
    float f;
    ort_sink data; /* of lists and texts */
    ort_bytes tensor, graph;
} attribute;

static sn_status read_numbers(sni_wire *w, const sni_field *f, sni_wire_type type, ort_sink *out) {
    sni_values v;
    uint64_t bits;
    SN_TRY(sni_field_values(w, f, type, &v));
    while (sni_values_next(&v, &bits)) {
        float number = sni_bits_float(bits);
        int failed = type == SNI_WIRE_I32 ? ort_sink_write(out, &number, sizeof number)
                                          : ort_sink_write(out, &bits, sizeof bits);
        if (failed) return no_memory(w->err);
    }
    return v.wire.status;
}

static sn_status read_attribute_field(sni_wire *w, const sni_field *f, attribute *a) {
    sni_str s;
    switch (f->number) {
    case ONNX_ATTR_NAME:
        return read_text(w, f, &a->name);
    case ONNX_ATTR_TYPE:
        return sni_field_int(w, f, &a->type);
    case ONNX_ATTR_I:
        return sni_field_int(w, f, &a->i);
    case ONNX_ATTR_F:
        return sni_field_float(w, f, &a->f);
    case ONNX_ATTR_INTS:
        return read_numbers(w, f, SNI_WIRE_VARINT, &a->data);
    case ONNX_ATTR_FLOATS:
        return read_numbers(w, f, SNI_WIRE_I32, &a->data);
    case ONNX_ATTR_S:
        SN_TRY(sni_field_str(w, f, &s));
        return ort_sink_write(&a->data, s.p, s.n) ? no_memory(w->err) : SN_OK;
    case ONNX_ATTR_STRINGS:
        SN_TRY(sni_field_str(w, f, &s));
        return ort_sink_write(&a->data, s.p, s.n) || ort_sink_write(&a->data, "", 1)
                   ? no_memory(w->err)
                   : SN_OK;
    case ONNX_ATTR_T:
        a->tensor = (ort_bytes){f->bytes, f->size};
        return SN_OK;
    case ONNX_ATTR_G:
        a->graph = (ort_bytes){f->bytes, f->size};
        return SN_OK;
    default:
        return SN_OK;
    }
}

static OrtOpAttr *tensor_attribute(const attribute *a) {
    sn_value *v;
    if (sn_value_decode(SN_KIND_TENSOR, a->tensor.p, a->tensor.size, &v, NULL) != SN_OK)
        return ort_attr_new(a->name, ORT_OP_ATTR_UNDEFINED, NULL, 0);
    OrtOpAttr *made = ort_attr_new(a->name, ORT_OP_ATTR_TENSOR, &v, sizeof v);
    if (!made) sn_value_destroy(v);
    return made;
}

/* The attribute as an object; one of a kind that the interface does not have is UNDEFINED. */
static OrtOpAttr *make_attribute(const attribute *a) {
    switch (a->type) {
    case ONNX_ATTR_TYPE_INT:
        return ort_attr_new(a->name, ORT_OP_ATTR_INT, &a->i, sizeof a->i);
    case ONNX_ATTR_TYPE_FLOAT:
        return ort_attr_new(a->name, ORT_OP_ATTR_FLOAT, &a->f, sizeof a->f);
    case ONNX_ATTR_TYPE_INTS:
        return ort_attr_new(a->name, ORT_OP_ATTR_INTS, a->data.bytes, a->data.size);
    case ONNX_ATTR_TYPE_FLOATS:
        return ort_attr_new(a->name, ORT_OP_ATTR_FLOATS, a->data.bytes, a->data.size);
    case ONNX_ATTR_TYPE_STRING:
        return ort_attr_text(a->name, a->data.bytes, a->data.size);
    case ONNX_ATTR_TYPE_STRINGS:
        return ort_attr_new(a->name, ORT_OP_ATTR_STRINGS, a->data.bytes, a->data.size);
    case ONNX_ATTR_TYPE_TENSOR:
        return tensor_attribute(a);
    case ONNX_ATTR_TYPE_GRAPH:
        return ort_attr_new(a->name, ORT_OP_ATTR_GRAPH, NULL, 0);
    default:
        return ort_attr_new(a->name, ORT_OP_ATTR_UNDEFINED, NULL, 0);
    }
}

/* The type of one that does not tell it, from the one field that it has. */
static void guess_type(const sni_field *f, attribute *a) {
    static const int64_t types[] = {
        [ONNX_ATTR_F] = ONNX_ATTR_TYPE_FLOAT,   [ONNX_ATTR_I] = ONNX_ATTR_TYPE_INT,
        [ONNX_ATTR_S] = ONNX_ATTR_TYPE_STRING,  [ONNX_ATTR_T] = ONNX_ATTR_TYPE_TENSOR,
        [ONNX_ATTR_G] = ONNX_ATTR_TYPE_GRAPH,   [ONNX_ATTR_FLOATS] = ONNX_ATTR_TYPE_FLOATS,
        [ONNX_ATTR_INTS] = ONNX_ATTR_TYPE_INTS, [ONNX_ATTR_STRINGS] = ONNX_ATTR_TYPE_STRINGS,
    };
    if (!a->type && f->number < sizeof types / sizeof *types) a->type = types[f->number];
}

static sn_status read_graph(sni_wire *w, OrtGraph *g, int depth);

static sn_status add_body(sni_wire *w, OrtNode *n, const attribute *a, int depth) {
    OrtGraph *body = ort_graph_new("");
    size_t names = n->body_count;
    if (!body || !ort_node_add_name(&n->body_names, &names, a->name, strlen(a->name)) ||
        !ort_list_add(&n->bodies, &n->body_count, body)) {
        ort_graph_free(body);
        return no_memory(w->err);
    }
    sni_wire inner;
    sni_wire_reopen(&inner, a->graph.p, a->graph.size, w->limits, w->err);
    return read_graph(&inner, body, depth + 1);
}

static sn_status read_attribute(sni_wire *w, const sni_field *field, OrtNode *n, int depth) {
    sni_wire inner;
    sni_field f;
    attribute a = {0};
    sn_status status = sni_field_message(w, field, &inner);
    while (status == SN_OK && sni_wire_next(&inner, &f)) {
        status = read_attribute_field(&inner, &f, &a);
        guess_type(&f, &a);
    }
    if (status == SN_OK) status = inner.status;
    if (status == SN_OK && !a.name) a.name = strdup("");
    if (status == SN_OK) {
        OrtOpAttr *made = a.name ? make_attribute(&a) : NULL;
        if (!made || !ort_list_add(&n->attributes, &n->attribute_count, made)) {
            ort_ReleaseOpAttr(made);
            status = no_memory(w->err);
        }
    }
    if (status == SN_OK && a.type == ONNX_ATTR_TYPE_GRAPH && a.graph.p)
        status = add_body(w, n, &a, depth);
    free(a.name);
    free(a.data.bytes);
    return status;
}

/* ---- Nodes ---- */

static sn_status read_node_field(sni_wire *w, const sni_field *f, OrtNode *n, int depth) {
    switch (f->number) {
    case ONNX_NODE_INPUT:
        return read_name(w, f, &n->input_names, &n->input_count);
    case ONNX_NODE_OUTPUT:
        return read_name(w, f, &n->output_names, &n->output_count);
    case ONNX_NODE_NAME:
        return read_text(w, f, &n->name);
    case ONNX_NODE_OP_TYPE:
        return read_text(w, f, &n->op);
    case ONNX_NODE_DOMAIN:
        return read_text(w, f, &n->domain);
    case ONNX_NODE_ATTRIBUTE:
        return read_attribute(w, f, n, depth);
    default:
        return SN_OK;
    }
}

static sn_status read_node(sni_wire *w, const sni_field *field, OrtGraph *g, int depth) {
    sni_wire inner;
    sni_field f;
    SN_TRY(sni_field_message(w, field, &inner));
    OrtNode *n = calloc(1, sizeof *n);
    if (!n || !ort_list_add(&g->nodes, &g->node_count, n)) {
        free(n);
        return no_memory(w->err);
    }
    n->proto = (ort_bytes){field->bytes, field->size};
    if (!ort_replace_text(&n->name, "") || !ort_replace_text(&n->op, "") ||
        !ort_replace_text(&n->domain, ""))
        return no_memory(w->err);
    while (sni_wire_next(&inner, &f)) SN_TRY(read_node_field(&inner, &f, n, depth));
    if (strcmp(n->domain, "ai.onnx") == 0) n->domain[0] = 0;
    return inner.status;
}

/* ---- Graphs ---- */

/* The name of a ValueInfoProto or TensorProto. */
static sn_status name_of(sni_wire *w, const sni_field *field, uint32_t number, char **out) {
    sni_wire inner;
    sni_field f;
    SN_TRY(sni_field_message(w, field, &inner));
    while (sni_wire_next(&inner, &f))
        if (f.number == number) SN_TRY(read_text(&inner, &f, out));
    return inner.status;
}

static sn_status read_value(sni_wire *w, const sni_field *f, OrtGraph *g) {
    char *name = NULL;
    bool weight = f->number == ONNX_GRAPH_INITIALIZER;
    sn_status status = name_of(w, f, weight ? ONNX_TENSOR_NAME : ONNX_INFO_NAME, &name);
    OrtValueInfo *v = status == SN_OK ? ort_graph_value(g, name ? name : "") : NULL;
    free(name);
    if (!v) return status == SN_OK ? no_memory(w->err) : status;
    bool *kind = weight                          ? &v->is_initializer
                 : f->number == ONNX_GRAPH_INPUT ? &v->is_input
                                                 : &v->is_output;
    if (weight)
        v->tensor = (ort_bytes){f->bytes, f->size};
    else
        v->proto = (ort_bytes){f->bytes, f->size};
    if (*kind && f->number != ONNX_GRAPH_OUTPUT) return SN_OK; /* named twice */
    *kind = true;
    bool good = weight ? ort_list_add(&g->initializers, &g->initializer_count, v)
                : f->number == ONNX_GRAPH_INPUT ? ort_list_add(&g->inputs, &g->input_count, v)
                                                : ort_list_add(&g->outputs, &g->output_count, v);
    return good ? SN_OK : no_memory(w->err);
}

/* A field that goes to the copy as it is, its tag included. */
static sn_status keep(sni_wire *w, const sni_field *f, ort_bytes **rest, size_t *count) {
    ort_bytes *b = ort_append((void **)rest, count, sizeof *b);
    if (!b) return no_memory(w->err);
    const unsigned char *tag = w->limits->origin + f->offset;
    *b = (ort_bytes){tag, (size_t)(w->p - tag)};
    return SN_OK;
}

/* Before version 4 of the format weights had to be inputs as well: they are constants all the same.
 */
static void drop_weight_inputs(OrtModel *m) {
    OrtGraph *g = m->graph;
    size_t kept = 0;
    if (m->ir_version >= 4) return;
    for (size_t i = 0; i < g->input_count; i++) {
        if (g->inputs[i]->is_initializer)
            g->inputs[i]->is_input = false;
        else
            g->inputs[kept++] = g->inputs[i];
    }
    m->lists_weights = kept < g->input_count;
    g->input_count = kept;
}

/* Takes Constant nodes out of the list: what they make becomes an initialiser. */
static bool lift_constants(OrtGraph *g) {
    size_t kept = 0;
    bool good = true;
    for (size_t i = 0; i < g->node_count; i++) {
        OrtNode *n = g->nodes[i];
        bool constant = good && strcmp(n->op, "Constant") == 0 && !n->domain[0] &&
                        n->output_count == 1 && !n->input_count;
        OrtValueInfo *v = constant ? ort_graph_value(g, n->output_names[0]) : NULL;
        if (!v || v->is_initializer) {
            good = good && (!constant || v);
            g->nodes[kept++] = n;
            continue;
        }
        v->is_initializer = v->is_constant_node = true;
        good = ort_list_add(&g->initializers, &g->initializer_count, v) &&
               ort_list_add(&g->constants, &g->constant_count, n);
        if (!good) g->nodes[kept++] = n;
    }
    g->node_count = kept;
    return good;
}

static sn_status read_graph(sni_wire *w, OrtGraph *g, int depth) {
    sni_field f;
    if (depth > DEPTH_LIMIT)
        return ort_to_sn(
            ort_fail(ORT_INVALID_GRAPH, "bodies are nested more than %d deep", DEPTH_LIMIT),
            w->err);
    while (sni_wire_next(w, &f)) {
        switch (f.number) {
        case ONNX_GRAPH_NODE:
            SN_TRY(read_node(w, &f, g, depth));
            break;
        case ONNX_GRAPH_NAME:
            SN_TRY(read_text(w, &f, &g->name));
            break;
        case ONNX_GRAPH_INITIALIZER:
        case ONNX_GRAPH_INPUT:
        case ONNX_GRAPH_OUTPUT:
            SN_TRY(read_value(w, &f, g));
            break;
        default:
            SN_TRY(keep(w, &f, &g->rest, &g->rest_count));
        }
    }
    SN_TRY(w->status);
    return lift_constants(g) ? SN_OK : no_memory(w->err);
}

/* ---- Models ---- */

static sn_status read_opset(sni_wire *w, const sni_field *field, OrtModel *m) {
    sni_wire inner;
    sni_field f;
    char *domain = NULL;
    int64_t version = 0;
    sn_status status = sni_field_message(w, field, &inner);
    while (status == SN_OK && sni_wire_next(&inner, &f)) {
        if (f.number == ONNX_OPSET_DOMAIN) status = read_text(&inner, &f, &domain);
        if (f.number == ONNX_OPSET_VERSION) status = sni_field_int(&inner, &f, &version);
    }
    if (status == SN_OK) status = inner.status;
    if (status == SN_OK && !ort_model_set_opset(m, domain ? domain : "", version))
        status = no_memory(w->err);
    free(domain);
    return status;
}

static sn_status read_entry(sni_wire *w, const sni_field *field, OrtModel *m) {
    sni_wire inner;
    sni_field f;
    char *key = NULL, *value = NULL;
    sn_status status = sni_field_message(w, field, &inner);
    while (status == SN_OK && sni_wire_next(&inner, &f)) {
        if (f.number == ONNX_ENTRY_KEY) status = read_text(&inner, &f, &key);
        if (f.number == ONNX_ENTRY_VALUE) status = read_text(&inner, &f, &value);
    }
    if (status == SN_OK) status = inner.status;
    if (status == SN_OK && key && !ort_pairs_set(&m->metadata, key, value ? value : ""))
        status = no_memory(w->err);
    free(key);
    free(value);
    return status;
}

static sn_status read_model_field(sni_wire *w, const sni_field *f, OrtModel *m) {
    sni_wire inner;
    switch (f->number) {
    case ONNX_MODEL_GRAPH:
        SN_TRY(sni_field_message(w, f, &inner));
        return read_graph(&inner, m->graph, 0);
    case ONNX_MODEL_OPSET:
        return read_opset(w, f, m);
    case ONNX_MODEL_IR_VERSION:
        return sni_field_int(w, f, &m->ir_version);
    case ONNX_MODEL_METADATA:
        return read_entry(w, f, m);
    case ONNX_MODEL_PRODUCER_NAME:
        return read_text(w, f, &m->producer);
    case ONNX_MODEL_DOMAIN:
        return read_text(w, f, &m->domain);
    case ONNX_MODEL_DOC:
        return read_text(w, f, &m->doc);
    case ONNX_MODEL_VERSION:
        return sni_field_int(w, f, &m->version);
    default:
        return keep(w, f, &m->rest, &m->rest_count);
    }
}

OrtStatus *ort_model_read(const void *bytes, size_t size, const char *path, OrtModel **out) {
    OrtModel *m = ort_model_new();
    if (m) m->graph = ort_graph_new("");
    if (!m || !m->graph || !ort_replace_text(&m->path, path)) {
        ort_model_free(m);
        return ort_fail_memory();
    }
    m->graph->model = m;
    sni_wire w;
    sni_wire_limits limits;
    sni_field f;
    sn_error err;
    sni_wire_init(&w, bytes, size, &limits, &err);
    sn_status status = SN_OK;
    while (status == SN_OK && sni_wire_next(&w, &f)) status = read_model_field(&w, &f, m);
    if (status == SN_OK) status = w.status;
    if (status == SN_OK) drop_weight_inputs(m);
    OrtStatus *failed = status == SN_OK ? ort_graph_link(m->graph) : ort_fail_sn(&err);
    if (failed)
        ort_model_free(m);
    else
        *out = m;
    return failed;
}
