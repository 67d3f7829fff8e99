/* regions.c - where tensors are held in bytes: around int8 layers, and through what stands between
 * them and can be done on the bytes. */
#include "quantize/quantize.h"

#include <stdlib.h>

/* Operators that only move elements: the result has the scale of input 0. */
static bool moves(const sni_node *n) {
    static const char *const names[] = {"MaxPool", "Reshape",   "Transpose", "Flatten",
                                        "Squeeze", "Unsqueeze", "Slice",     "DepthToSpace"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (sni_str_is(n->type, names[i])) return n->n_out == 1 || n->out[1] == SNI_NO_ID;
    const sni_attr *mode = sni_node_attr(n, "mode");
    return sni_str_is(n->type, "Resize") && (!mode || sni_str_is(mode->u.s, "nearest"));
}

/* Operators with a form for bytes that takes scales of its own; *n_in: inputs that are such. */
static bool computes(const sni_node *n, int *n_in) {
    static const struct {
        const char *name;
        int n_in;
    } ops[] = {{"Add", 2},
               {"Mul", 2},
               {"Concat", 0},
               {"AveragePool", 1},
               {"GlobalAveragePool", 1},
               {"Sigmoid", 1},
               {"LeakyRelu", 1}};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (!sni_str_is(n->type, ops[i].name)) continue;
        *n_in = ops[i].n_in ? ops[i].n_in : n->n_in;
        return true;
    }
    return false;
}

/* Whether bounds of a Clip, or 0 of a Relu, are such that a range chosen from its results, which
 * contains 0, implies them. */
static bool is_bound(const sni_graph *g, const sni_node *n) {
    if (n->domain.n) return false;
    if (sni_str_is(n->type, "Relu")) return true;
    if (!sni_str_is(n->type, "Clip")) return false;
    for (int slot = 1; slot < 3 && slot < n->n_in; slot++) {
        const sni_value *v = sni_graph_value(g, n->in[slot]);
        const sni_tensor *t = NULL;
        if (!v) continue;
        if (!v->constant || v->constant->tensor.dtype != SN_FLOAT32 ||
            v->constant->tensor.count != 1 || sni_const_load(v->constant, &t, NULL) != SN_OK)
            return false;
        float bound = *(const float *)t->data;
        if (slot == 1 ? !(bound <= 0) : !(bound >= 0)) return false;
    }
    return true;
}

/* The value to hold for the result `v` of a node that ends in bytes. */
static int32_t hold_result(const sni_graph *g, int32_t v, sni_qregion *r) {
    for (;;) {
        const sni_value *value = g->values[v];
        if (value->use_count != 1 || value->uses[0].node == SNI_NO_ID) break;
        const sni_node *next = g->nodes[value->uses[0].node];
        if (value->uses[0].slot != 0 || !is_bound(g, next)) break;
        r->dropped[next->id] = true;
        v = next->out[0];
    }
    r->held[v] |= SNI_HELD | SNI_HELD_ALL;
    return v;
}

static bool is_float(const sni_graph *g, int32_t v) {
    return v >= 0 && g->values[v]->type.kind == SN_KIND_TENSOR &&
           g->values[v]->type.dtype == SN_FLOAT32;
}

static void enter_layer(const sni_quantizer *q, const sni_qlayer *l, sni_qregion *r) {
    r->held[l->x] |= SNI_HELD;
    if (l->kind == SNI_Q_CONV) hold_result(q->base, q->base->nodes[l->node]->out[0], r);
}

/* A node between int8 layers, all of whose inputs are held already. */
static void enter_between(const sni_graph *g, const sni_node *n, sni_qregion *r) {
    int n_in = 1;
    bool move = moves(n);
    if (n->domain.n || n->n_out < 1 || !is_float(g, n->out[0])) return;
    if (!move && !computes(n, &n_in)) return;
    for (int i = 0; i < n_in; i++)
        if (i >= n->n_in || !is_float(g, n->in[i]) || !(r->held[n->in[i]] & SNI_HELD)) return;
    if (!move) {
        hold_result(g, n->out[0], r);
        return;
    }
    r->held[n->out[0]] |= SNI_HELD | SNI_HELD_ALL;
    r->same_as[n->out[0]] = r->same_as[n->in[0]];
}

sn_status sni_q_region(const sni_quantizer *q, bool any, sni_qregion *out, sn_error *err) {
    const sni_graph *g = q->base;
    sni_qregion r = {.held = calloc((size_t)g->value_count + 1, 1),
                     .same_as = calloc((size_t)g->value_count + 1, sizeof(int32_t)),
                     .dropped = calloc((size_t)g->node_count + 1, sizeof(bool))};
    if (!r.held || !r.same_as || !r.dropped) {
        sni_q_region_free(&r);
        return sni_fail_memory(err);
    }
    for (int32_t i = 0; i < g->value_count; i++) r.same_as[i] = i;
    size_t at = 0;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        bool layer = at < q->n_layers && q->layers[at].node == n->id;
        const sni_qlayer *l = &q->layers[at];
        at += layer;
        bool could = layer && l->kind != SNI_Q_GATHER && (l->can & 1u << SN_QUANTIZE_TO_INT8);
        if (could && (any || l->precision == SN_QUANTIZE_TO_INT8))
            enter_layer(q, l, &r);
        else if (!layer)
            enter_between(g, n, &r);
    }
    *out = r;
    return SN_OK;
}

void sni_q_region_free(sni_qregion *r) {
    free(r->held);
    free(r->same_as);
    free(r->dropped);
    *r = (sni_qregion){0};
}
