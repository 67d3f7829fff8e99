/* winograd.c - lets blocked convolutions with wide kernels be computed with fewer
 * products (cpu/winograd.h), where that pays. Leaving this pass out keeps the direct sums. */
#include "ops/blocked.h"
#include "opt/opt.h"

static bool all_are(const sni_ints *v, int64_t value) {
    for (size_t i = 0; i < v->n; i++)
        if (v->v[i] != value) return false;
    return true;
}

static bool can_be(const sni_graph *g, const sni_node *n) {
    if (!sni_str_is(n->domain, SNI_SINTER_DOMAIN) || !sni_str_is(n->type, "BlockedConv"))
        return false;
    const sni_blocked_conv_params *p = n->params;
    const sni_window_params *window = &p->fused.conv.window;
    const sni_type *w = &sni_graph_value(g, n->in[1])->type;
    return !p->winograd && p->fused.conv.group == 1 &&
           (all_are(&window->strides, 1) || all_are(&window->strides, 2)) &&
           all_are(&window->dilations, 1) && w->has_shape && w->rank == 4 &&
           (w->dims[2] > 1 || w->dims[3] > 1);
}

sn_status sni_pass_winograd(sni_rewrite *r) {
    for (sni_node *n = sni_graph_first(r->graph); n; n = sni_graph_next(r->graph, n)) {
        if (!can_be(r->graph, n)) continue;
        sni_attr yes = {.name = SNI_STR("winograd"), .kind = SNI_ATTR_INT, .u.i = 1};
        SN_TRY(sni_node_set_attr(r->graph, n, &yes, r->err));
        SN_TRY(sni_node_bind(r->graph, n, r->err));
        r->count++;
    }
    return SN_OK;
}
