/* indirect.c - channels that are gathered for pointwise convolutions alone are not copied: the
 * convolutions read them where they are. */
#include "ops/sinter/blocked.h"
#include "opt/opt.h"

/* Weights beyond so many come from behind the caches, and are fetched ahead by kernels that take
 * channels in order: copying them costs less. */
enum { MOST_WEIGHTS = 1 << 18, MOST_TENSORS = 16 };

static bool is_sinter(const sni_node *n, const char *type) {
    return n && sni_str_is(n->domain, SNI_SINTER_DOMAIN) && sni_str_is(n->type, type);
}

static bool is_small(const sni_graph *g, const sni_node *n) {
    const sni_const *w = sni_graph_value(g, n->in[1])->constant;
    return w && w->tensor.rank == 4 && w->tensor.count <= MOST_WEIGHTS;
}

/* The input after which a node takes more tensors to pick channels from; 0: it cannot. */
static int32_t room_of(const sni_graph *g, const sni_node *n) {
    if (is_sinter(n, "ExpandDepthwise")) {
        const sni_expand_params *p = n->params;
        return !p->indirect.indices.n && is_small(g, n) ? SNI_EXPAND_MORE : 0;
    }
    if (!is_sinter(n, "BlockedConv") || n->n_out != 1 || !is_small(g, n)) return 0;
    const sni_blocked_conv_params *p = n->params;
    bool factors = n->n_in > 5 && n->in[5] != SNI_NO_ID;
    const int64_t *w = sni_graph_value(g, n->in[1])->constant->tensor.dims;
    bool depthwise = p->fused.conv.group > 1 && w[1] == 1 && w[0] == p->fused.conv.group;
    return !p->indirect.indices.n && !factors && !depthwise &&
                   sni_blocked_is_flat(&p->fused.conv, w)
               ? SNI_BLOCKED_CONV_MORE
               : 0;
}

/* True if all that use a node's result are nodes that can pick, as their first input. Its shape is
 * known from the round on in which expand.c has joined convolutions. */
static bool all_pick(const sni_graph *g, const sni_node *n) {
    const sni_value *v = sni_graph_value(g, n->out[0]);
    for (int32_t i = 0; i < v->use_count; i++)
        if (v->uses[i].slot != 0 || !room_of(g, sni_graph_node(g, v->uses[i].node))) return false;
    return v->use_count > 0 && v->type.has_shape;
}

static sn_status pick(sni_rewrite *r, const sni_node *gather, sni_node *user) {
    sni_graph *g = r->graph;
    int32_t more = room_of(g, user);
    SN_TRY(sni_node_resize_inputs(g, user, more + gather->n_in - 1, r->err));
    for (int32_t i = 0; i < gather->n_in; i++)
        SN_TRY(sni_node_set_input(g, user, i ? more + i - 1 : 0, gather->in[i], r->err));
    SN_TRY(sni_node_set_attr(g, user, sni_node_attr(gather, "channels"), r->err));
    SN_TRY(sni_node_set_attr(g, user, sni_node_attr(gather, "indices"), r->err));
    return sni_node_bind(g, user, r->err);
}

sn_status sni_pass_indirect(sni_rewrite *r) {
    sni_graph *g = r->graph;
    sni_node *next;
    for (sni_node *n = sni_graph_first(g); n; n = next) {
        next = sni_graph_next(g, n);
        if (!is_sinter(n, "GatherChannels") || n->n_in > MOST_TENSORS || !all_pick(g, n)) continue;
        const sni_value *v = sni_graph_value(g, n->out[0]);
        while (v->use_count) SN_TRY(pick(r, n, sni_graph_node(g, v->uses[0].node)));
        sni_graph_remove_node(g, n);
        r->count++;
    }
    return SN_OK;
}
