/* expand.c - joins blocked convolutions with what stands around them in inverted residuals. A
 * pointwise one and the depthwise one that alone uses it become one node: the many channels between
 * them are then never in memory as a whole. Factors of a pointwise one's input channels become an
 * input of it: they can be those of the weights, which are often fewer than the numbers of the
 * picture. */
#include "ops/blocked.h"
#include "opt/opt.h"

static const sni_blocked_conv_params *blocked_conv(const sni_node *n) {
    bool is = n && sni_str_is(n->domain, SNI_SINTER_DOMAIN) && sni_str_is(n->type, "BlockedConv");
    return is ? n->params : NULL;
}

/* Dimensions of constant weights; NULL if they are none. */
static const int64_t *weights_of(const sni_graph *g, const sni_node *n) {
    const sni_value *w = sni_graph_value(g, n->in[1]);
    return w->constant && w->constant->tensor.rank == 4 ? w->constant->tensor.dims : NULL;
}

static bool has_constant_bias(const sni_graph *g, const sni_node *n) {
    return n->n_in < 3 || n->in[2] == SNI_NO_ID || sni_graph_value(g, n->in[2])->constant;
}

static bool all_are(const sni_ints *v, int64_t what) {
    for (size_t i = 0; i < v->n; i++)
        if (v->v[i] != what) return false;
    return true;
}

/* A tensor that is added, or slopes by channel. */
static bool has_more(const sni_node *n) {
    return (n->n_in > 3 && n->in[3] != SNI_NO_ID) || (n->n_in > 4 && n->in[4] != SNI_NO_ID);
}

/* Every output is made of the one pixel under it, and the input is blocked. */
static bool is_pointwise(const sni_graph *g, const sni_node *n) {
    const sni_blocked_conv_params *p = blocked_conv(n);
    if (!p || has_more(n) || p->fused.conv.group != 1 || !has_constant_bias(g, n)) return false;
    const int64_t *w = weights_of(g, n);
    const sni_type *x = &sni_graph_value(g, n->in[0])->type;
    return w && w[2] == 1 && w[3] == 1 && all_are(&p->fused.conv.window.strides, 1) &&
           all_are(&p->fused.conv.window.pads, 0) && x->has_shape && x->rank == 5;
}

static bool is_depthwise(const sni_graph *g, const sni_node *n) {
    const sni_blocked_conv_params *p = blocked_conv(n);
    if (!p || has_more(n) || p->fused.conv.group < 2 || !has_constant_bias(g, n)) return false;
    const int64_t *w = weights_of(g, n);
    return w && w[1] == 1 && w[0] == p->fused.conv.group && (w[2] > 1 || w[3] > 1);
}

static bool is_output(const sni_graph *g, int32_t id) {
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (g->outputs[i] == id) return true;
    return false;
}

/* The depthwise convolution that alone uses a pointwise one; NULL if that is not so. */
static sni_node *partner_of(const sni_graph *g, const sni_node *n) {
    if (!is_pointwise(g, n)) return NULL;
    const sni_value *v = sni_graph_value(g, n->out[0]);
    if (v->use_count != 1 || is_output(g, v->id)) return NULL;
    sni_node *user = sni_graph_node(g, v->uses[0].node);
    return user && is_depthwise(g, user) && user->in[0] == v->id ? user : NULL;
}

/* `from`'s attribute under another name, if it has it. */
static sn_status take_attr(sni_rewrite *r, sni_node *to, const sni_node *from, const char *name,
                           const char *as) {
    const sni_attr *found = sni_node_attr(from, name);
    if (!found) return SN_OK;
    sni_attr renamed = *found;
    renamed.name = sni_str_of(as);
    return sni_node_set_attr(r->graph, to, &renamed, r->err);
}

static sn_status join(sni_rewrite *r, sni_node *first, sni_node *second) {
    sni_graph *g = r->graph;
    int32_t in[5] = {first->in[0], first->in[1], first->n_in > 2 ? first->in[2] : SNI_NO_ID,
                     second->in[1], second->n_in > 2 ? second->in[2] : SNI_NO_ID};
    sni_value *v;
    sni_node *n;
    SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, r->err));
    SN_TRY(sni_graph_add_node(g, second->id, SNI_STR(SNI_SINTER_DOMAIN), SNI_STR("ExpandDepthwise"),
                              in, in[4] == SNI_NO_ID ? 4 : 5, &v->id, 1, &n, r->err));
    for (int32_t i = 0; i < second->n_attrs; i++)
        if (!sni_str_is(second->attrs[i].name, "winograd"))
            SN_TRY(sni_node_set_attr(g, n, &second->attrs[i], r->err));
    SN_TRY(take_attr(r, n, first, "activation", "expand_activation"));
    SN_TRY(take_attr(r, n, first, "activation_params", "expand_params"));
    n->name = second->name;
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(r->err, SN_INTERNAL, "there is no ExpandDepthwise");
    n->version = sni_op_version(n->op);
    SN_TRY(sni_node_bind(g, n, r->err));
    SN_TRY(sni_graph_replace_uses(g, second->out[0], v->id, r->err));
    sni_graph_remove_node(g, second);
    sni_graph_remove_node(g, first);
    r->count++;
    return SN_OK;
}

sn_status sni_pass_expand(sni_rewrite *r) {
    sni_node *next;
    for (sni_node *n = sni_graph_first(r->graph); n; n = next) {
        sni_node *second = partner_of(r->graph, n);
        next = sni_graph_next(r->graph, n);
        if (!second) continue;
        if (next == second) next = sni_graph_next(r->graph, second);
        SN_TRY(join(r, n, second));
    }
    return SN_OK;
}

/* ---- Factors of input channels ---- */

/* One for each channel of a blocked picture. */
static bool is_by_channel(const sni_type *x, const sni_type *f) {
    if (!x->has_shape || x->rank != 5 || !f->has_shape || f->rank != 5) return false;
    const sni_dim *a = x->dims, *b = f->dims;
    return b[2] == 1 && b[3] == 1 && (a[2] != 1 || a[3] != 1) && a[1] == b[1] && a[4] == b[4] &&
           (b[0] == 1 || a[0] == b[0]);
}

/* The product that alone makes the input of a convolution, and which of its operands has the
 * factors; NULL if it is none. */
static sni_node *scaling_of(const sni_graph *g, const sni_node *conv, int *factors) {
    const sni_value *v = sni_graph_value(g, conv->in[0]);
    sni_node *mul = sni_value_producer(g, v);
    if (!mul || v->use_count != 1 || mul->domain.n || !sni_str_is(mul->type, "Mul")) return NULL;
    const sni_type *a = &sni_graph_value(g, mul->in[0])->type;
    const sni_type *b = &sni_graph_value(g, mul->in[1])->type;
    *factors = is_by_channel(a, b) ? 1 : 0;
    return *factors || is_by_channel(b, a) ? mul : NULL;
}

/* A pointwise convolution of a blocked input that has no factors yet. */
static bool can_scale(const sni_graph *g, const sni_node *n) {
    const sni_blocked_conv_params *p = blocked_conv(n);
    if (!p || p->fused.conv.group != 1 || (n->n_in > 5 && n->in[5] != SNI_NO_ID)) return false;
    const int64_t *w = weights_of(g, n);
    return w && w[2] == 1 && w[3] == 1 && all_are(&p->fused.conv.window.pads, 0);
}

sn_status sni_pass_conv_factors(sni_rewrite *r) {
    sni_graph *g = r->graph;
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        int factors;
        sni_node *mul = can_scale(g, n) ? scaling_of(g, n, &factors) : NULL;
        if (!mul) continue;
        if (n->n_in < 6) SN_TRY(sni_node_resize_inputs(g, n, 6, r->err));
        SN_TRY(sni_node_set_input(g, n, 5, mul->in[factors], r->err));
        SN_TRY(sni_node_set_input(g, n, 0, mul->in[1 - factors], r->err));
        sni_graph_remove_node(g, mul);
        r->count++;
    }
    return SN_OK;
}
