/* body_util.c - inference of bodies of loops. */
#include "ops/core/body_util.h"

#include "ops/core/shape_util.h"

sn_status sni_body_init(sni_infer *c, sni_body *body) {
    const sni_graph *g = c->node->subgraphs[body->graph];
    if (g->n_inputs != body->n_in)
        return SNI_INFER_FAIL(c, "the body has %d inputs where %d are needed", g->n_inputs,
                              body->n_in);
    if (g->n_outputs != body->n_out)
        return SNI_INFER_FAIL(c, "the body has %d outputs where %d are needed", g->n_outputs,
                              body->n_out);
    body->in = SNI_NEW_ARRAY(c->arena, const sni_type *, body->n_in);
    body->out = SNI_NEW_ARRAY(c->arena, const sni_type *, body->n_out);
    return body->in && body->out ? SN_OK : sni_fail_memory(c->err);
}

static sn_status infer_once(sni_infer *c, sni_body *body) {
    if (!c->subgraph) return SN_OK;
    return c->subgraph(c, body->graph, body->in, body->n_in, body->out, body->n_out);
}

/* A tensor type whose every dimension is a symbol of its own; other types stay. */
static sn_status loosen(sni_infer *c, const sni_type *type, const sni_type **out) {
    *out = type;
    if (!type || type->kind != SN_KIND_TENSOR || !type->has_shape) return SN_OK;
    sni_type *unaligned = SNI_NEW(c->arena, sni_type);
    sni_dim *dims = SNI_NEW_ARRAY(c->arena, sni_dim, type->rank);
    if (!unaligned || !dims) return sni_fail_memory(c->err);
    for (int i = 0; i < type->rank; i++) {
        dims[i] = sni_dim_fresh(c->symbols);
        if (dims[i] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    }
    *unaligned = *type;
    unaligned->dims = dims;
    *out = unaligned;
    return SN_OK;
}

/* The type of a carried value in every iteration: a dimension that the body hands on unchanged, or
 * always makes the size it had at first, is the initial one. */
static sn_status invariant(sni_infer *c, const sni_type *first, const sni_type *unaligned,
                           const sni_type *made, const sni_type **out) {
    *out = unaligned;
    if (!first || !made || made->kind == SN_KIND_NONE) return SN_OK;
    sni_type *type = SNI_NEW(c->arena, sni_type);
    if (!type) return sni_fail_memory(c->err);
    if (first->kind != SN_KIND_TENSOR || !first->has_shape || !made->has_shape ||
        made->rank != first->rank) {
        SN_TRY(sni_infer_union(c, first, made, type));
        *out = type;
        return SN_OK;
    }
    SN_TRY(sni_infer_union(c, unaligned, made, type));
    sni_dim *dims = SNI_NEW_ARRAY(c->arena, sni_dim, first->rank);
    if (!dims) return sni_fail_memory(c->err);
    for (int i = 0; i < first->rank; i++) {
        bool kept = made->dims[i] == unaligned->dims[i] || made->dims[i] == first->dims[i];
        dims[i] = kept ? first->dims[i] : type->dims[i];
    }
    type->dims = dims;
    *out = type;
    return SN_OK;
}

/* True if no node of the body has a body of its own: only then is it inferred twice, or nesting
 * would multiply the work. */
static bool is_leaf(const sni_graph *g) {
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        if (n->n_subgraphs) return false;
    return true;
}

sn_status sni_body_infer(sni_infer *c, sni_body *body) {
    if (!c->subgraph) return SN_OK;
    const sni_type **first = SNI_NEW_ARRAY(c->arena, const sni_type *, body->n_state);
    if (!first) return sni_fail_memory(c->err);
    const sni_type **state = body->in + body->lead;
    for (int i = 0; i < body->n_state; i++) {
        first[i] = state[i];
        SN_TRY(loosen(c, first[i], &state[i]));
    }
    SN_TRY(infer_once(c, body));
    for (int i = 0; i < body->n_state; i++)
        SN_TRY(invariant(c, first[i], state[i], body->out[body->lead_out + i], &state[i]));
    return is_leaf(c->node->subgraphs[body->graph]) ? infer_once(c, body) : SN_OK;
}
