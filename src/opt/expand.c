/* expand.c - joins blocked convolutions with what stands around them in inverted residuals. A
 * pointwise one and the depthwise one that alone uses it become one node: the many channels between
 * them are then never in memory as a whole. Factors of a pointwise one's input channels become an
 * input of it: they can be those of the weights, which are often fewer than the numbers of the
 * picture. The means of a depthwise one's channels become a result of it, and the two products that
 * make factors of means one node. */
#include "ops/sinter/blocked.h"
#include "ops/math/reduce.h"
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

/* A tensor that is added, slopes by channel, factors, or means. */
static bool has_more(const sni_node *n) {
    for (int32_t i = 3; i < n->n_in; i++)
        if (n->in[i] != SNI_NO_ID) return true;
    return n->n_out > 1;
}

/* Every output is made of the one pixel under it, and the input is blocked. */
static bool is_pointwise(const sni_graph *g, const sni_node *n) {
    const sni_blocked_conv_params *p = blocked_conv(n);
    if (!p || has_more(n) || p->indirect.indices.n || p->fused.conv.group != 1 ||
        !has_constant_bias(g, n))
        return false;
    const int64_t *w = weights_of(g, n);
    const sni_type *x = &sni_graph_value(g, n->in[0])->type;
    return w && sni_blocked_is_flat(&p->fused.conv, w) && x->has_shape && x->rank == 5;
}

static bool is_depthwise(const sni_graph *g, const sni_node *n) {
    const sni_blocked_conv_params *p = blocked_conv(n);
    if (!p || has_more(n) || p->fused.conv.group < 2 || !has_constant_bias(g, n)) return false;
    const int64_t *w = weights_of(g, n);
    return w && w[1] == 1 && w[0] == p->fused.conv.group && (w[2] > 1 || w[3] > 1);
}

/* The node that alone uses a node's only result, as its first input; NULL if there is none. */
static sni_node *only_user(const sni_graph *g, const sni_node *n) {
    const sni_value *v = sni_graph_value(g, n->out[0]);
    if (n->n_out != 1 || v->use_count != 1 || v->uses[0].slot != 0) return NULL;
    return sni_graph_node(g, v->uses[0].node);
}

/* The depthwise convolution that alone uses a pointwise one; NULL if that is not so. */
static sni_node *partner_of(const sni_graph *g, const sni_node *n) {
    sni_node *user = is_pointwise(g, n) ? only_user(g, n) : NULL;
    return user && is_depthwise(g, user) ? user : NULL;
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

/* A node `type` before `second` with x and the weights and biases of both, without attributes. */
static sn_status begin_pair(sni_rewrite *r, const char *type, int32_t x, const sni_node *first,
                            const sni_node *second, sni_node **out) {
    sni_graph *g = r->graph;
    int32_t in[5] = {x, first->in[1], first->n_in > 2 ? first->in[2] : SNI_NO_ID, second->in[1],
                     second->n_in > 2 ? second->in[2] : SNI_NO_ID};
    sni_value *v;
    SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, r->err));
    SN_TRY(sni_graph_add_node(g, second->id,
                              &(sni_new_node){SNI_STR(SNI_SINTER_DOMAIN), sni_str_of(type), in,
                                              in[4] == SNI_NO_ID ? 4 : 5, &v->id, 1},
                              out, r->err));
    (*out)->name = second->name;
    return SN_OK;
}

/* Lets it take the place of both, the second of which used the first's result alone. */
static sn_status end_pair(sni_rewrite *r, sni_node *n, sni_node *first, sni_node *second) {
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(r->err, SN_INTERNAL, "an operator of blocked tensors is missing");
    n->version = sni_op_version(n->op);
    SN_TRY(sni_node_bind(r->graph, n, r->err));
    SN_TRY(sni_graph_replace_uses(r->graph, second->out[0], n->out[0], r->err));
    sni_graph_remove_node(r->graph, second);
    sni_graph_remove_node(r->graph, first);
    r->count++;
    return SN_OK;
}

static sn_status join(sni_rewrite *r, sni_node *first, sni_node *second) {
    sni_node *n;
    SN_TRY(begin_pair(r, "ExpandDepthwise", first->in[0], first, second, &n));
    for (int32_t i = 0; i < second->n_attrs; i++)
        if (!sni_str_is(second->attrs[i].name, "winograd")) /* of an old file */
            SN_TRY(sni_node_set_attr(r->graph, n, &second->attrs[i], r->err));
    SN_TRY(take_attr(r, n, first, "activation", "expand_activation"));
    SN_TRY(take_attr(r, n, first, "activation_params", "expand_params"));
    return end_pair(r, n, first, second);
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
    if (!p || p->indirect.indices.n || p->fused.conv.group != 1 ||
        (n->n_in > 5 && n->in[5] != SNI_NO_ID))
        return false;
    const int64_t *w = weights_of(g, n);
    return w && w[2] == 1 && w[3] == 1 && sni_ints_are(&p->fused.conv.window.pads, 0);
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

/* ---- Means, and factors that follow from them ---- */

/* The mean of a blocked value's pictures. */
static bool is_mean(const sni_graph *g, const sni_node *n) {
    const sni_tensor *axes;
    if (n->domain.n || !sni_str_is(n->type, "ReduceMean") || n->n_in != 2) return false;
    const sni_type *x = &sni_graph_value(g, n->in[0])->type;
    const sni_value *v = sni_graph_value(g, n->in[1]);
    if (!x->has_shape || x->rank != 5 || !v || v->is_input || !v->constant ||
        !((const sni_reduce_params *)n->params)->keepdims || v->constant->tensor.count != 2 ||
        v->constant->tensor.dtype != SN_INT64 || sni_const_load(v->constant, &axes, NULL) != SN_OK)
        return false;
    const int64_t *a = axes->data;
    return (a[0] == 2 && a[1] == 3) || (a[0] == 3 && a[1] == 2);
}

/* The depthwise convolution whose result a node takes first, if it has room for means. */
static sni_node *depthwise_before(const sni_graph *g, const sni_node *n) {
    sni_node *from = sni_value_producer(g, sni_graph_value(g, n->in[0]));
    if (!from || from->n_out != 1) return NULL;
    bool expands =
        sni_str_is(from->domain, SNI_SINTER_DOMAIN) && sni_str_is(from->type, "ExpandDepthwise");
    if (expands) return from;
    const sni_blocked_conv_params *p = blocked_conv(from);
    const int64_t *w = p ? weights_of(g, from) : NULL;
    bool factors = from->n_in > 5 && from->in[5] != SNI_NO_ID;
    return w && !factors && w[1] == 1 && w[0] == p->fused.conv.group && w[0] > 1 ? from : NULL;
}

sn_status sni_pass_depthwise_means(sni_rewrite *r) {
    sni_graph *g = r->graph;
    sni_node *next;
    for (sni_node *n = sni_graph_first(g); n; n = next) {
        next = sni_graph_next(g, n);
        sni_node *from = is_mean(g, n) ? depthwise_before(g, n) : NULL;
        sni_value *v;
        if (!from) continue;
        SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, r->err));
        SN_TRY(sni_node_resize_outputs(g, from, 2, r->err));
        SN_TRY(sni_node_set_output(g, from, 1, v->id, r->err));
        SN_TRY(sni_graph_replace_uses(g, n->out[0], v->id, r->err));
        sni_graph_remove_node(g, n);
        r->count++;
    }
    return SN_OK;
}

/* A product with the means of a picture's channels: a pointwise convolution of one pixel. */
static bool is_product(const sni_graph *g, const sni_node *n) {
    if (!is_pointwise(g, n)) return false;
    const sni_type *x = &sni_graph_value(g, n->in[0])->type;
    return x->dims[2] == 1 && x->dims[3] == 1;
}

/* Two products one after the other, and the mean before them that nobody else uses. */
static sn_status join_products(sni_rewrite *r, sni_node *first, sni_node *second) {
    sni_graph *g = r->graph;
    sni_node *mean = sni_value_producer(g, sni_graph_value(g, first->in[0])), *n;
    bool take = mean && is_mean(g, mean) && only_user(g, mean) == first;
    SN_TRY(begin_pair(r, "SqueezeExcite", take ? mean->in[0] : first->in[0], first, second, &n));
    SN_TRY(take_attr(r, n, second, "block", "block"));
    SN_TRY(take_attr(r, n, first, "activation", "squeeze_activation"));
    SN_TRY(take_attr(r, n, first, "activation_params", "squeeze_params"));
    SN_TRY(take_attr(r, n, second, "activation", "excite_activation"));
    SN_TRY(take_attr(r, n, second, "activation_params", "excite_params"));
    SN_TRY(end_pair(r, n, first, second));
    if (take) sni_graph_remove_node(g, mean);
    return SN_OK;
}

sn_status sni_pass_squeeze_excite(sni_rewrite *r) {
    sni_graph *g = r->graph;
    sni_node *next;
    for (sni_node *n = sni_graph_first(g); n; n = next) {
        sni_node *second = is_product(g, n) ? only_user(g, n) : NULL;
        next = sni_graph_next(g, n);
        if (!second || !is_pointwise(g, second)) continue;
        if (next == second) next = sni_graph_next(g, second);
        SN_TRY(join_products(r, n, second));
    }
    return SN_OK;
}
