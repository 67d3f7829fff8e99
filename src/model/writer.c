/* writer.c - graphs as ONNX files. */
#include "model/export.h"
#include "model/onnx_fields.h"
#include "model/text_print.h"
#include "model/wire_write.h"

#include <stdio.h>

/* What the functions that emit messages are given. */
typedef struct model_parts {
    const sni_export *e;
    const sni_model *model; /* may be NULL */
    sni_export_versions versions;
    const sni_export_function *functions;
} model_parts;

typedef struct graph_parts {
    const sni_export *e;
    const sni_model *model; /* of the main graph; NULL for subgraphs */
} graph_parts;

typedef struct node_parts {
    const sni_export *e;
    const sni_node *node;
} node_parts;

typedef struct attr_parts {
    const sni_export *e;
    const sni_node *node;
    const sni_attr *attr;
} attr_parts;

typedef struct type_parts {
    const sni_type *type;
    const sni_symbols *symbols;
} type_parts;

typedef struct info_parts {
    sni_str name;
    type_parts type;
} info_parts;

typedef struct const_parts {
    sni_str name;
    sni_const *constant;
    const sni_places *places; /* may be NULL */
} const_parts;

typedef struct copy_parts {
    sni_str from, to;
} copy_parts;

static void emit_graph(sni_out *out, const void *message);

/* ---- Types ---- */

typedef struct dim_parts {
    sni_dim dim;
    const sni_symbols *symbols;
} dim_parts;

static void emit_dim(sni_out *out, const void *message) {
    const dim_parts *d = message;
    if (sni_dim_known(d->dim)) {
        sni_put_int(out, ONNX_DIM_VALUE, d->dim);
        return;
    }
    const char *text = sni_dim_text(d->symbols, d->dim);
    if (!strchr(text, '?')) sni_put_str(out, ONNX_DIM_PARAM, sni_str_of(text));
}

static void emit_shape(sni_out *out, const void *message) {
    const type_parts *t = message;
    for (int i = 0; i < t->type->rank; i++) {
        dim_parts d = {t->type->dims[i], t->symbols};
        sni_put_message(out, ONNX_SHAPE_DIM, emit_dim, &d);
    }
}

static void emit_type(sni_out *out, const void *message);

/* The message inside a TypeProto: of a tensor, sequence, optional or map. */
static void emit_inner_type(sni_out *out, const void *message) {
    const type_parts *t = message;
    if (t->type->kind == SN_KIND_TENSOR || t->type->kind == SN_KIND_SPARSE_TENSOR) {
        sni_put_int(out, ONNX_TENSOR_TYPE_ELEM, t->type->dtype);
        if (t->type->has_shape) sni_put_message(out, ONNX_TENSOR_TYPE_SHAPE, emit_shape, t);
        return;
    }
    type_parts inner = {t->type->inner, t->symbols};
    bool map = t->type->kind == SN_KIND_MAP;
    if (map) sni_put_int(out, ONNX_MAP_TYPE_KEY, t->type->dtype);
    sni_put_message(out, map ? ONNX_MAP_TYPE_VALUE : ONNX_SEQUENCE_TYPE_ELEM, emit_type, &inner);
}

/* The type must be printable. */
static void emit_type(sni_out *out, const void *message) {
    static const uint32_t fields[] = {[SN_KIND_TENSOR] = ONNX_TYPE_PROTO_TENSOR,
                                      [SN_KIND_SEQUENCE] = ONNX_TYPE_PROTO_SEQUENCE,
                                      [SN_KIND_MAP] = ONNX_TYPE_PROTO_MAP,
                                      [SN_KIND_OPTIONAL] = ONNX_TYPE_PROTO_OPTIONAL,
                                      [SN_KIND_SPARSE_TENSOR] = ONNX_TYPE_PROTO_SPARSE};
    const type_parts *t = message;
    sni_put_message(out, fields[t->type->kind], emit_inner_type, t);
}

static void emit_info(sni_out *out, const void *message) {
    const info_parts *i = message;
    sni_put_str(out, ONNX_INFO_NAME, i->name);
    if (sni_type_printable(i->type.type)) sni_put_message(out, ONNX_INFO_TYPE, emit_type, &i->type);
}

/* ---- Tensors ---- */

/* The offset of a constant that stands elsewhere; false: it does not. */
static bool find_place(const sni_places *places, const sni_const *c, uint64_t *offset) {
    size_t low = 0, high = places ? places->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)places->constants[middle] < (uintptr_t)c)
            low = middle + 1;
        else
            high = middle;
    }
    if (!places || low == places->count || places->constants[low] != c) return false;
    *offset = places->offsets[low];
    return true;
}

static void emit_entry(sni_out *out, const void *message) {
    const sni_pair *p = message;
    sni_put_str(out, ONNX_ENTRY_KEY, p->key);
    sni_put_str(out, ONNX_ENTRY_VALUE, p->value);
}

/* A tensor whose contents are `bytes` at `offset` of another file. */
static void put_external(sni_out *out, const const_parts *c, uint64_t offset) {
    const sni_tensor *t = &c->constant->tensor;
    char at[24], length[24];
    snprintf(at, sizeof at, "%llu", (unsigned long long)offset);
    snprintf(length, sizeof length, "%zu", sni_tensor_bytes(t));
    const sni_pair entries[] = {{SNI_STR("location"), sni_str_of(c->places->location)},
                                {SNI_STR("offset"), sni_str_of(at)},
                                {SNI_STR("length"), sni_str_of(length)}};
    if (t->rank) sni_put_packed_ints(out, ONNX_TENSOR_DIMS, t->dims, (size_t)t->rank);
    sni_put_int(out, ONNX_TENSOR_DATA_TYPE, (int64_t)t->dtype);
    if (c->name.n) sni_put_str(out, ONNX_TENSOR_NAME, c->name);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        sni_put_message(out, ONNX_TENSOR_EXTERNAL, emit_entry, &entries[i]);
    sni_put_int(out, ONNX_TENSOR_LOCATION, 1);
}

static void emit_const(sni_out *out, const void *message) {
    const const_parts *c = message;
    const sni_tensor *t = &c->constant->tensor;
    uint64_t offset;
    if (find_place(c->places, c->constant, &offset)) {
        put_external(out, c, offset);
        return;
    }
    bool sized = t->dtype != SN_STRING && !sni_dtype_subbyte(t->dtype); /* without its contents */
    if (!sized || !sni_out_counting(out)) {
        sn_status status = sni_const_load(c->constant, &t, out->err);
        if (status != SN_OK) {
            sni_out_fail(out, status);
            return;
        }
    }
    sni_put_tensor(out, t, c->name);
}

/* ---- Attributes ---- */

static void put_const(sni_out *out, uint32_t field, const sni_export *e, sni_str name,
                      sni_const *c) {
    sni_put_message(out, field, emit_const, &(const_parts){name, c, e->places});
}

static void put_type(sni_out *out, uint32_t field, const sni_export *e, const sni_type *type) {
    if (sni_type_printable(type))
        sni_put_message(out, field, emit_type, &(type_parts){type, e->graph->symbols});
    else
        sni_out_fail(out, sni_fail(out->err, SN_UNSUPPORTED,
                                   "an attribute's type is not known well enough to write"));
}

static void put_list(sni_out *out, const attr_parts *p) {
    const sni_attr *a = p->attr;
    const sni_export *subs = p->e->subgraphs[p->node->id];
    for (size_t i = 0; i < a->count; i++) {
        switch (a->kind) {
        case SNI_ATTR_FLOATS:
            sni_put_float(out, ONNX_ATTR_FLOATS, a->u.floats[i]);
            break;
        case SNI_ATTR_INTS:
            sni_put_int(out, ONNX_ATTR_INTS, a->u.ints[i]);
            break;
        case SNI_ATTR_STRINGS:
            sni_put_str(out, ONNX_ATTR_STRINGS, a->u.strings[i]);
            break;
        case SNI_ATTR_TENSORS:
            put_const(out, ONNX_ATTR_TENSORS, p->e, (sni_str){0}, a->u.tensors[i]);
            break;
        case SNI_ATTR_GRAPHS:
            sni_put_message(out, ONNX_ATTR_GRAPHS, emit_graph,
                            &(graph_parts){&subs[a->u.graphs[i]], NULL});
            break;
        default:
            put_type(out, ONNX_ATTR_TYPE_PROTOS, p->e, &a->u.types[i]);
            break;
        }
    }
}

static void emit_attr(sni_out *out, const void *message) {
    static const int types[] = {
        [SNI_ATTR_FLOAT] = ONNX_ATTR_TYPE_FLOAT,     [SNI_ATTR_INT] = ONNX_ATTR_TYPE_INT,
        [SNI_ATTR_STRING] = ONNX_ATTR_TYPE_STRING,   [SNI_ATTR_TENSOR] = ONNX_ATTR_TYPE_TENSOR,
        [SNI_ATTR_GRAPH] = ONNX_ATTR_TYPE_GRAPH,     [SNI_ATTR_TYPE] = ONNX_ATTR_TYPE_TYPE_PROTO,
        [SNI_ATTR_FLOATS] = ONNX_ATTR_TYPE_FLOATS,   [SNI_ATTR_INTS] = ONNX_ATTR_TYPE_INTS,
        [SNI_ATTR_STRINGS] = ONNX_ATTR_TYPE_STRINGS, [SNI_ATTR_TENSORS] = ONNX_ATTR_TYPE_TENSORS,
        [SNI_ATTR_GRAPHS] = ONNX_ATTR_TYPE_GRAPHS,   [SNI_ATTR_TYPES] = ONNX_ATTR_TYPE_TYPE_PROTOS};
    const attr_parts *p = message;
    const sni_attr *a = p->attr;
    sni_put_str(out, ONNX_ATTR_NAME, a->name);
    sni_put_int(out, ONNX_ATTR_TYPE, types[a->kind]);
    switch (a->kind) {
    case SNI_ATTR_FLOAT:
        sni_put_float(out, ONNX_ATTR_F, a->u.f);
        break;
    case SNI_ATTR_INT:
        sni_put_int(out, ONNX_ATTR_I, a->u.i);
        break;
    case SNI_ATTR_STRING:
        sni_put_str(out, ONNX_ATTR_S, a->u.s);
        break;
    case SNI_ATTR_TENSOR:
        put_const(out, ONNX_ATTR_T, p->e, (sni_str){0}, a->u.tensor);
        break;
    case SNI_ATTR_GRAPH:
        sni_put_message(out, ONNX_ATTR_G, emit_graph,
                        &(graph_parts){&p->e->subgraphs[p->node->id][a->u.graph], NULL});
        break;
    case SNI_ATTR_TYPE:
        put_type(out, ONNX_ATTR_TP, p->e, a->u.type);
        break;
    default:
        put_list(out, p);
        break;
    }
}

/* ---- Nodes and graphs ---- */

static void put_ids(sni_out *out, uint32_t field, const sni_export *e, const int32_t *ids,
                    int32_t n) {
    for (int32_t i = 0; i < n; i++)
        sni_put_str(out, field, ids[i] == SNI_NO_ID ? SNI_STR("") : e->values[ids[i]]);
}

/* A call has what the node has of inputs and outputs, and no attributes. */
static void put_call(sni_out *out, const sni_export *e, const sni_node *n) {
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != SNI_NO_ID) put_ids(out, ONNX_NODE_INPUT, e, &n->in[i], 1);
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != SNI_NO_ID) put_ids(out, ONNX_NODE_OUTPUT, e, &n->out[i], 1);
    if (e->nodes[n->id].n) sni_put_str(out, ONNX_NODE_NAME, e->nodes[n->id]);
    sni_put_str(out, ONNX_NODE_OP_TYPE, e->calls[n->id]);
    sni_put_str(out, ONNX_NODE_DOMAIN, SNI_STR("ai.sinter"));
}

static void emit_node(sni_out *out, const void *message) {
    const node_parts *p = message;
    const sni_node *n = p->node;
    if (p->e->calls[n->id].n) {
        put_call(out, p->e, n);
        return;
    }
    put_ids(out, ONNX_NODE_INPUT, p->e, n->in, n->n_in);
    put_ids(out, ONNX_NODE_OUTPUT, p->e, n->out, n->n_out);
    if (p->e->nodes[n->id].n) sni_put_str(out, ONNX_NODE_NAME, p->e->nodes[n->id]);
    sni_put_str(out, ONNX_NODE_OP_TYPE, n->type);
    for (int32_t i = 0; i < n->n_attrs; i++)
        sni_put_message(out, ONNX_NODE_ATTRIBUTE, emit_attr, &(attr_parts){p->e, n, &n->attrs[i]});
    if (n->domain.n) sni_put_str(out, ONNX_NODE_DOMAIN, n->domain);
}

static void emit_copy(sni_out *out, const void *message) {
    const copy_parts *p = message;
    sni_put_str(out, ONNX_NODE_INPUT, p->from);
    sni_put_str(out, ONNX_NODE_OUTPUT, p->to);
    sni_put_str(out, ONNX_NODE_OP_TYPE, SNI_STR("Identity"));
}

static void put_info(sni_out *out, uint32_t field, const sni_export *e, sni_str name,
                     const sni_type *type) {
    sni_put_message(out, field, emit_info, &(info_parts){name, {type, e->graph->symbols}});
}

static bool is_output(const sni_value *v) {
    for (int32_t i = 0; i < v->use_count; i++)
        if (v->uses[i].node == SNI_NO_ID) return true;
    return false;
}

/* Initializers, and the types of values between nodes. */
static void put_values(sni_out *out, const sni_export *e) {
    const sni_graph *g = e->graph;
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_value *v = g->values[i];
        if (v && v->constant) put_const(out, ONNX_GRAPH_INITIALIZER, e, e->values[i], v->constant);
    }
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        for (int32_t i = 0; i < n->n_out; i++) {
            const sni_value *v = sni_graph_value(g, n->out[i]);
            if (v && sni_type_printable(&v->type) && !is_output(v))
                put_info(out, ONNX_GRAPH_VALUE_INFO, e, e->values[v->id], &v->type);
        }
}

static void emit_graph(sni_out *out, const void *message) {
    const graph_parts *p = message;
    const sni_export *e = p->e;
    const sni_graph *g = e->graph;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        sni_put_message(out, ONNX_GRAPH_NODE, emit_node, &(node_parts){e, n});
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (e->copied[i])
            sni_put_message(out, ONNX_GRAPH_NODE, emit_copy,
                            &(copy_parts){e->values[g->outputs[i]], e->outputs[i]});
    sni_put_str(out, ONNX_GRAPH_NAME, g->name.n ? g->name : SNI_STR("graph"));
    for (int32_t i = 0; i < g->n_inputs; i++)
        put_info(out, ONNX_GRAPH_INPUT, e, e->values[g->inputs[i]], &g->values[g->inputs[i]]->type);
    for (int32_t i = 0; i < g->n_outputs; i++)
        put_info(out, ONNX_GRAPH_OUTPUT, e, e->outputs[i], sni_export_output_type(g, p->model, i));
    put_values(out, e);
}

/* ---- Models ---- */

static void emit_opset(sni_out *out, const void *message) {
    const sni_opset *o = message;
    sni_put_str(out, ONNX_OPSET_DOMAIN, o->domain);
    sni_put_int(out, ONNX_OPSET_VERSION, o->version);
}

static void put_model(sni_out *out, const model_parts *p) {
    const sni_model *m = p->model;
    sni_put_int(out, ONNX_MODEL_IR_VERSION, p->versions.ir_version);
    for (size_t i = 0; i < p->versions.n_opsets; i++)
        sni_put_message(out, ONNX_MODEL_OPSET, emit_opset, &p->versions.opsets[i]);
    if (m) {
        if (m->producer_name.n) sni_put_str(out, ONNX_MODEL_PRODUCER_NAME, m->producer_name);
        if (m->producer_version.n)
            sni_put_str(out, ONNX_MODEL_PRODUCER_VERSION, m->producer_version);
        if (m->domain.n) sni_put_str(out, ONNX_MODEL_DOMAIN, m->domain);
        if (m->model_version) sni_put_int(out, ONNX_MODEL_VERSION, m->model_version);
        if (m->doc.n) sni_put_str(out, ONNX_MODEL_DOC, m->doc);
        for (size_t i = 0; i < m->n_metadata; i++)
            sni_put_message(out, ONNX_MODEL_METADATA, emit_entry, &m->metadata[i]);
    }
    sni_put_message(out, ONNX_MODEL_GRAPH, emit_graph, &(graph_parts){p->e, m});
    for (const sni_export_function *f = p->functions; f; f = f->next)
        sni_put_str(out, ONNX_MODEL_FUNCTION, f->bytes);
}

static sn_status write_model(const sni_graph *graph, const sni_model *model,
                             const sni_places *places, bool spell, sn_write_fn write, void *ctx,
                             sn_error *err) {
    sni_arena arena;
    sni_arena_init(&arena, 0);
    model_parts parts = {.model = model};
    sni_export *e = NULL;
    sni_export_function *functions = NULL;
    sn_status status = sni_export_names(graph, places, &arena, &e, err);
    if (status == SN_OK)
        status = sni_export_choose(graph, model, spell, &arena, &parts.versions, err);
    if (status == SN_OK && spell)
        status = sni_export_spell(e, &parts.versions, &arena, &functions, err);
    if (status == SN_OK) {
        sni_out out;
        parts.e = e;
        parts.functions = functions;
        sni_out_init(&out, write, ctx, err);
        put_model(&out, &parts);
        status = sni_out_finish(&out);
    }
    sni_arena_free(&arena);
    return status;
}

sn_status sni_write_onnx(const sni_graph *graph, const sni_model *model, sn_write_fn write,
                         void *ctx, sn_error *err) {
    return write_model(graph, model, NULL, false, write, ctx, err);
}

sn_status sni_write_portable(const sni_graph *graph, const sni_model *model, sn_write_fn write,
                             void *ctx, sn_error *err) {
    return write_model(graph, model, NULL, true, write, ctx, err);
}

sn_status sni_write_onnx_beside(const sni_graph *graph, const sni_model *model,
                                const sni_places *places, sn_write_fn write, void *ctx,
                                sn_error *err) {
    return write_model(graph, model, places, false, write, ctx, err);
}
