/* fewer_products.c - lets nodes be computed otherwise than by their definition, with somewhat
 * larger rounding errors, where that pays: blocked convolutions with wide kernels by Winograd's
 * method (cpu/conv/winograd/winograd.h), dense layers by Strassen's (cpu/gemm/strassen.c), both
 * by pairs of terms (cpu/gemm/inner_product.h) and as products of digits (cpu/gemm/emulated.h).
 * Leaving these passes out keeps the direct sums. */
#include "ops/sinter/blocked.h"
#include "ops/nn/fused.h"
#include "opt/opt.h"

static bool is_sinter(const sni_node *n, const char *type) {
    return sni_str_is(n->domain, SNI_SINTER_DOMAIN) && sni_str_is(n->type, type);
}

/* True for one group, and for groups that fill whole blocks. */
static bool fills_blocks(const sni_blocked_conv_params *p, const int64_t *w) {
    int64_t groups = p->fused.conv.group;
    return sni_blocked_merge(w[1] * groups, w[0], groups, p->block) == 1;
}

static bool can_be_winograd(const sni_graph *g, const sni_node *n) {
    if (!is_sinter(n, "BlockedConv")) return false;
    const sni_blocked_conv_params *p = n->params;
    const sni_window_params *window = &p->fused.conv.window;
    const sni_type *w = &sni_graph_value(g, n->in[1])->type;
    return !p->winograd &&
           (sni_ints_are(&window->strides, 1) || sni_ints_are(&window->strides, 2)) &&
           sni_ints_are(&window->dilations, 1) && w->has_shape && w->rank == 4 &&
           (w->dims[2] > 1 || w->dims[3] > 1) && fills_blocks(p, w->dims);
}

/* Weights of less than that many rows or columns have no use for it. */
enum { LEAST_SIDE = 128 };

static bool can_be_strassen(const sni_graph *g, const sni_node *n) {
    if (!is_sinter(n, "Linear")) return false;
    const sni_linear_params *p = n->params;
    const sni_value *w = sni_graph_value(g, n->in[1]);
    return !p->strassen && w->constant && w->type.has_shape && w->type.rank == 2 &&
           w->type.dims[0] >= LEAST_SIDE && w->type.dims[1] >= LEAST_SIDE;
}

/* A dense layer with a constant matrix, or a convolution without groups. */
static bool is_matrix_product(const sni_graph *g, const sni_node *n) {
    if (is_sinter(n, "Linear")) {
        const sni_value *w = sni_graph_value(g, n->in[1]);
        return w->constant && w->type.has_shape && w->type.rank == 2;
    }
    if (!is_sinter(n, "BlockedConv")) return false;
    const sni_blocked_conv_params *p = n->params;
    return p->fused.conv.group == 1;
}

static bool can_be_inner_product(const sni_graph *g, const sni_node *n) {
    if (!is_matrix_product(g, n)) return false;
    return is_sinter(n, "Linear") ? !((const sni_linear_params *)n->params)->inner_product
                                  : !((const sni_blocked_conv_params *)n->params)->inner_product;
}

static bool can_be_emulated(const sni_graph *g, const sni_node *n) {
    if (!is_matrix_product(g, n)) return false;
    return is_sinter(n, "Linear") ? !((const sni_linear_params *)n->params)->emulated
                                  : !((const sni_blocked_conv_params *)n->params)->emulated;
}

/* Sets attribute `name` of the nodes that can have it. */
static sn_status allow(sni_rewrite *r, const char *name,
                       bool (*can_be)(const sni_graph *g, const sni_node *n)) {
    for (sni_node *n = sni_graph_first(r->graph); n; n = sni_graph_next(r->graph, n)) {
        if (!can_be(r->graph, n)) continue;
        sni_attr yes = sni_attr_of_int(name, 1);
        SN_TRY(sni_node_set_attr(r->graph, n, &yes, r->err));
        SN_TRY(sni_node_bind(r->graph, n, r->err));
        r->count++;
    }
    return SN_OK;
}

sn_status sni_pass_winograd(sni_rewrite *r) {
    return allow(r, "winograd", can_be_winograd);
}

sn_status sni_pass_inner_product(sni_rewrite *r) {
    return allow(r, "paired", can_be_inner_product);
}

sn_status sni_pass_emulated(sni_rewrite *r) {
    return allow(r, "digits", can_be_emulated);
}

sn_status sni_pass_strassen(sni_rewrite *r) {
    return allow(r, "strassen", can_be_strassen);
}
