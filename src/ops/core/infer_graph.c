/* infer_graph.c - types and shapes of a whole graph, as far as they can be known before a call. */
#include "ops/core/infer_graph.h"

#include <stdlib.h>

typedef struct pass {
    sni_graph *graph;
    int depth;
    sn_error *err;
} pass;

static sn_status infer_at(sni_graph *g, int depth, sn_error *err);

/* Lets a value take on a type; a declared shape stays where the new type has none. */
static sn_status take_type(sni_graph *g, sni_value *v, const sni_type *type, sn_error *err) {
    if (!type || type->kind == SN_KIND_NONE) return SN_OK;
    if (type->kind == SN_KIND_TENSOR && !type->has_shape && v->type.kind == SN_KIND_TENSOR &&
        v->type.has_shape && (v->type.dtype == type->dtype || type->dtype == SN_UNDEFINED))
        return SN_OK;
    return sni_type_copy(&v->type, type, &g->store->arena) ? SN_OK : sni_fail_memory(err);
}

static sn_status infer_subgraph(sni_infer *c, int32_t index, const sni_type *const *inputs,
                                int n_inputs, const sni_type **outputs, int n_outputs) {
    const pass *p = c->host;
    if (index < 0 || index >= c->node->n_subgraphs)
        return SNI_INFER_FAIL(c, "it has no subgraph number %d", (int)index);
    sni_graph *sub = c->node->subgraphs[index];
    for (int i = 0; i < n_inputs && i < sub->n_inputs; i++)
        SN_TRY(take_type(sub, sub->values[sub->inputs[i]], inputs[i], c->err));
    for (int32_t i = 0; i < sub->n_captures; i++) {
        int32_t outer = c->node->in[c->node->n_in + sub->captures[i].slot];
        sni_value *inner = sub->values[sub->captures[i].value];
        const sni_value *from = p->graph->values[outer];
        SN_TRY(take_type(sub, inner, &from->type, c->err));
        inner->shape_value = from->shape_value;
        inner->shape_count = from->shape_count;
    }
    SN_TRY(infer_at(sub, p->depth + 1, c->err));
    for (int i = 0; i < n_outputs; i++)
        outputs[i] = i < sub->n_outputs ? &sub->values[sub->outputs[i]]->type : NULL;
    return SN_OK;
}

/* Arrays of one node's inference, all in one allocation that is reused while it is large enough. */
typedef struct arrays {
    void *memory;
    int in_capacity, out_capacity;
    const sni_type **in;
    sni_const **constants;
    const sni_dim **in_dims;
    int32_t *in_dims_count;
    sni_type *out;
    const sni_dim **out_dims;
    int32_t *out_dims_count;
} arrays;

static sn_status make_room(arrays *a, int n_in, int n_out, sn_error *err) {
    if (a->memory && n_in <= a->in_capacity && n_out <= a->out_capacity) return SN_OK;
    size_t in = (size_t)(n_in > 16 ? n_in : 16), out = (size_t)(n_out > 16 ? n_out : 16);
    size_t bytes = in * (sizeof *a->in + sizeof *a->constants + sizeof *a->in_dims) +
                   out * (sizeof *a->out + sizeof *a->out_dims) +
                   (in + out) * sizeof *a->in_dims_count;
    char *m = malloc(bytes);
    if (!m) return sni_fail_memory(err);
    free(a->memory);
    a->memory = m;
    a->in_capacity = (int)in;
    a->out_capacity = (int)out;
    a->out = (sni_type *)(void *)m;
    m += out * sizeof *a->out;
    a->in = (const sni_type **)(void *)m;
    m += in * sizeof *a->in;
    a->constants = (sni_const **)(void *)m;
    m += in * sizeof *a->constants;
    a->in_dims = (const sni_dim **)(void *)m;
    m += in * sizeof *a->in_dims;
    a->out_dims = (const sni_dim **)(void *)m;
    m += out * sizeof *a->out_dims;
    a->in_dims_count = (int32_t *)(void *)m;
    a->out_dims_count = a->in_dims_count + in;
    return SN_OK;
}

static void set_inputs(const sni_graph *g, const sni_node *n, arrays *a) {
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *v = sni_graph_value(g, n->in[i]);
        a->in[i] = v ? &v->type : NULL;
        /* A default that the caller may override is not known. */
        a->constants[i] = v && !v->is_input ? v->constant : NULL;
        a->in_dims[i] = v ? v->shape_value : NULL;
        a->in_dims_count[i] = v ? v->shape_count : 0;
    }
}

static sn_status take_outputs(sni_graph *g, const sni_node *n, const arrays *a, sn_error *err) {
    for (int32_t i = 0; i < n->n_out; i++) {
        sni_value *v = sni_graph_value(g, n->out[i]);
        if (!v) continue;
        SN_TRY(take_type(g, v, &a->out[i], err));
        v->shape_value = a->out_dims[i];
        v->shape_count = a->out_dims[i] ? a->out_dims_count[i] : 0;
    }
    return SN_OK;
}

static sn_status infer_node(const pass *p, const sni_node *n, arrays *a) {
    if (!n->op) return SN_OK;
    SN_TRY(make_room(a, n->n_in, n->n_out, p->err));
    set_inputs(p->graph, n, a);
    sni_infer c = {.op = n->op,
                   .node = n,
                   .params = n->params,
                   .n_in = n->n_in,
                   .n_out = n->n_out,
                   .in = a->in,
                   .constants = a->constants,
                   .in_dims = a->in_dims,
                   .in_dims_count = a->in_dims_count,
                   .out = a->out,
                   .out_dims = a->out_dims,
                   .out_dims_count = a->out_dims_count,
                   .symbols = p->graph->symbols,
                   .arena = &p->graph->store->arena,
                   .subgraph = infer_subgraph,
                   .host = (void *)p,
                   .err = p->err};
    sn_status status = sni_infer_call(&c);
    if (status == SN_OK) status = take_outputs(p->graph, n, a, p->err);
    if (status != SN_OK)
        return sni_fail_context(p->err, status, "node '%.*s' (%s)",
                                SNI_FMT(sni_node_label(p->graph, n)), n->op->name);
    return SN_OK;
}

static sn_status infer_at(sni_graph *g, int depth, sn_error *err) {
    SN_TRY(sni_check_nesting(depth, err));
    pass p = {.graph = g, .depth = depth, .err = err};
    arrays a = {0};
    sn_status status = SN_OK;
    for (const sni_node *n = sni_graph_first(g); n && status == SN_OK; n = sni_graph_next(g, n))
        status = infer_node(&p, n, &a);
    free(a.memory);
    return status;
}

sn_status sni_infer_graph(sni_graph *g, sn_error *err) {
    return infer_at(g, 0, err);
}

/* Forgets the shapes of what nodes make, and of what subgraphs are given. */
static void forget_shapes(sni_graph *g) {
    for (int32_t i = 0; i < g->value_count; i++) {
        sni_value *v = g->values[i];
        if (!v || v->constant || (v->is_input && !g->parent)) continue;
        if (v->type.kind == SN_KIND_TENSOR) v->type.has_shape = false;
        v->shape_value = NULL;
        v->shape_count = 0;
    }
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        if (n->op && n->op->flags & SNI_OP_DECLARES) continue;
        for (int32_t i = 0; i < n->n_subgraphs; i++) forget_shapes(n->subgraphs[i]);
    }
}

/* A scalar loses its shape, and every symbol becomes one of its own. */
static sn_status open_input(sni_graph *g, sni_value *v, sn_error *err) {
    sni_type *t = &v->type;
    if (t->kind != SN_KIND_TENSOR || !t->has_shape) return SN_OK;
    t->has_shape = t->rank > 0;
    sni_dim *dims = SNI_NEW_ARRAY(&g->store->arena, sni_dim, t->rank);
    if (!dims) return sni_fail_memory(err);
    for (int i = 0; i < t->rank; i++) {
        dims[i] = sni_dim_known(t->dims[i]) ? t->dims[i] : sni_dim_fresh(g->symbols);
        if (dims[i] == SNI_DIM_FAIL) return sni_fail_memory(err);
    }
    t->dims = dims;
    return SN_OK;
}

sn_status sni_infer_any_inputs(sni_graph *g, sn_error *err) {
    for (int32_t i = 0; i < g->n_inputs; i++) SN_TRY(open_input(g, g->values[g->inputs[i]], err));
    forget_shapes(g);
    return sni_infer_graph(g, err);
}

sn_status sni_infer_node(sni_graph *g, const sni_node *n, sn_error *err) {
    pass p = {.graph = g, .err = err};
    arrays a = {0};
    sn_status status = infer_node(&p, n, &a);
    free(a.memory);
    return status;
}
