/* shape_values.c - shape arithmetic, solved: integer tensors whose elements inference knows become
 * constants, and those that are dimensions of the graph's inputs are read from there at once. */
#include "opt/opt.h"

enum { MOST = SN_MAX_RANK };

/* An int64 scalar or list whose elements inference has followed. */
static bool is_followed(const sni_value *v) {
    return v && v->shape_value && v->type.kind == SN_KIND_TENSOR && v->type.dtype == SN_INT64 &&
           v->type.has_shape && v->type.rank <= 1 && v->shape_count >= 0 && v->use_count > 0 &&
           (v->type.rank == 0 ? v->shape_count == 1 : v->type.dims[0] == v->shape_count);
}

static bool is_known(const sni_value *v) {
    for (int32_t i = 0; i < v->shape_count; i++)
        if (v->shape_value[i] <= SNI_DIM_LOWEST) return false;
    return true;
}

static sn_status make_constant(sni_rewrite *r, const sni_value *v) {
    int64_t count = v->shape_count;
    sni_const *c;
    sni_value *made;
    SN_TRY(sni_const_new(r->store, SN_INT64, v->type.rank, &count, &c, r->err));
    if (count) memcpy(c->tensor.data, v->shape_value, (size_t)count * sizeof *v->shape_value);
    SN_TRY(sni_graph_add_const(r->graph, v->name, c, &made, r->err));
    SN_TRY(sni_graph_replace_uses(r->graph, v->id, made->id, r->err));
    r->count++;
    return SN_OK;
}

/* The input of the main graph with these dimensions from axis *start on; NULL if there is none. */
static const sni_value *find_input(const sni_graph *g, const sni_value *v, int *start) {
    for (int32_t k = 0; k < g->n_inputs; k++) {
        const sni_value *x = g->values[g->inputs[k]];
        if (x->type.kind != SN_KIND_TENSOR || !x->type.has_shape) continue;
        for (*start = 0; *start + v->shape_count <= x->type.rank; ++*start) {
            int32_t same = 0;
            while (same < v->shape_count && v->shape_value[same] == x->type.dims[*start + same])
                same++;
            if (same == v->shape_count) return x;
        }
    }
    return NULL;
}

/* True for the Shape that would take a node's place. */
static bool is_shape_of(const sni_node *n, const sni_value *x) {
    return !n->domain.n && sni_str_is(n->type, "Shape") && n->n_in && n->in[0] == x->id;
}

static sn_status read_input(sni_rewrite *r, sni_node *n, const sni_value *v, const sni_value *x,
                            int start) {
    sni_graph *g = r->graph;
    sni_value *out;
    sni_node *shape;
    sni_attr from = sni_attr_of_int("start", start);
    sni_attr to = sni_attr_of_int("end", start + v->shape_count);
    SN_TRY(sni_graph_add_value(g, v->name, &out, r->err));
    SN_TRY(sni_graph_add_node(
        g, n->id, &(sni_new_node){SNI_STR(""), SNI_STR("Shape"), &x->id, 1, &out->id, 1}, &shape,
        r->err));
    shape->name = n->name;
    shape->op = sni_op_find(shape->domain, shape->type);
    if (!shape->op) return sni_fail(r->err, SN_INTERNAL, "there is no Shape");
    shape->version = sni_op_version(shape->op);
    SN_TRY(sni_node_set_attr(g, shape, &from, r->err));
    SN_TRY(sni_node_set_attr(g, shape, &to, r->err));
    SN_TRY(sni_node_bind(g, shape, r->err));
    SN_TRY(sni_infer_node(g, shape, r->err));
    SN_TRY(sni_graph_replace_uses(g, v->id, out->id, r->err));
    r->count++;
    return SN_OK;
}

static sn_status solve_output(sni_rewrite *r, sni_node *n, int32_t i) {
    const sni_value *v = sni_graph_value(r->graph, n->out[i]);
    int start;
    if (!is_followed(v)) return SN_OK;
    if (is_known(v)) return make_constant(r, v);
    if (r->graph->parent || v->type.rank != 1 || v->shape_count < 1 || v->shape_count > MOST)
        return SN_OK;
    const sni_value *x = find_input(r->graph, v, &start);
    return x && !is_shape_of(n, x) ? read_input(r, n, v, x, start) : SN_OK;
}

sn_status sni_pass_shape_values(sni_rewrite *r) {
    for (sni_node *n = sni_graph_first(r->graph), *next; n; n = next) {
        next = sni_graph_next(r->graph, n);
        if (!n->op || n->n_subgraphs || n->op->flags & (SNI_OP_RANDOM | SNI_OP_SUBGRAPHS)) continue;
        for (int32_t i = 0; i < n->n_out; i++) SN_TRY(solve_output(r, n, i));
    }
    return SN_OK;
}
