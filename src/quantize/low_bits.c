/* low_bits.c - layers whose weights are blocks of few bits: MatMulNBits of com.microsoft, and
 * GatherBlockQuantized for tables that are gathered from, of 8 bits too. */
#include "quantize/quantize.h"

#include "ops/core/op.h"

static sn_status replace_product(const sni_quantizer *q, sni_graph *g, const sni_qlayer *l,
                                 const int32_t *in, sn_error *err) {
    sni_node *n = g->nodes[l->node];
    int bits = sni_q_bits(l, l->precision);
    const sni_attr attrs[] = {sni_attr_of_int("K", l->k), sni_attr_of_int("N", l->n),
                              sni_attr_of_int("bits", bits),
                              sni_attr_of_int("block_size", q->o.block_size)};
    int32_t y;
    SN_TRY(sni_q_add_node(g, n->id, &(sni_qnode){"com.microsoft", "MatMulNBits", in, 4, attrs, 4},
                          &y, err));
    if (l->bias >= 0) {
        int32_t sum[] = {y, l->bias};
        SN_TRY(sni_q_add_node(g, n->id, &(sni_qnode){"", "Add", sum, 2}, &y, err));
    }
    return sni_q_replace_node(g, n, y, err);
}

static sn_status replace_table(sni_graph *g, const sni_qlayer *l, const sni_qweights *w,
                               const int32_t *in, sn_error *err) {
    sni_node *n = g->nodes[l->node];
    int64_t block = l->k / w->scales->tensor.dims[1];
    const int32_t order[] = {in[1], in[0], in[2], in[3]};
    const sni_attr attrs[] = {
        sni_attr_of_int("gather_axis", 0), sni_attr_of_int("quantize_axis", 1),
        sni_attr_of_int("block_size", block), sni_attr_of_int("bits", sni_q_bits(l, l->precision))};
    int32_t y;
    SN_TRY(sni_q_add_node(g, n->id,
                          &(sni_qnode){"com.microsoft", "GatherBlockQuantized", order, 4, attrs, 4},
                          &y, err));
    return sni_q_replace_node(g, n, y, err);
}

sn_status sni_q_low_bits(sni_quantizer *q, sni_graph *g, sn_error *err) {
    for (size_t i = 0; i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        bool few = l->precision == SN_QUANTIZE_TO_INT4 || l->precision == SN_QUANTIZE_TO_INT2;
        if (!few && (l->kind != SNI_Q_GATHER || l->precision == SN_QUANTIZE_TO_FLOAT)) continue;
        SN_TRY(sni_q_fit(q, l, l->precision, err));
        const sni_qweights *w = &l->made[few ? l->precision : SN_QUANTIZE_TO_INT8];
        int32_t in[4] = {g->nodes[l->node]->in[l->kind == SNI_Q_GATHER ? 1 : 0]};
        SN_TRY(sni_q_add_const(g, w->data, &in[1], err));
        SN_TRY(sni_q_add_const(g, w->scales, &in[2], err));
        SN_TRY(sni_q_add_const(g, w->zeros, &in[3], err));
        if (l->kind == SNI_Q_GATHER)
            SN_TRY(replace_table(g, l, w, in, err));
        else
            SN_TRY(replace_product(q, g, l, in, err));
    }
    return SN_OK;
}
