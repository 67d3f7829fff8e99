/* dynamic_int8.c - products in int8 whose inputs' ranges are measured in every run. */
#include "quantize/quantize.h"

#include "ops/core/op.h"

#include <stdlib.h>

/* What DynamicQuantizeLinear makes of a value: bytes, scale, zero point; -1: not there yet. */
typedef struct held {
    int32_t ids[3];
} held;

static sn_status quantize_input(sni_graph *g, int32_t x, int32_t before, held *out, sn_error *err) {
    sni_value *v[3];
    sni_node *n;
    if (out->ids[0] >= 0) return SN_OK;
    int32_t ids[3];
    for (int i = 0; i < 3; i++) {
        SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v[i], err));
        ids[i] = v[i]->id;
    }
    sni_new_node made = {SNI_STR(""), SNI_STR("DynamicQuantizeLinear"), &x, 1, ids, 3};
    SN_TRY(sni_graph_add_node(g, before, &made, &n, err));
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(err, SN_INTERNAL, "there is no DynamicQuantizeLinear");
    n->version = sni_op_version(n->op);
    SN_TRY(sni_node_bind(g, n, err));
    SN_TRY(sni_infer_node(g, n, err));
    memcpy(out->ids, ids, sizeof ids);
    return SN_OK;
}

/* The weights as MatMulInteger has them, (k,n): a Gemm may read (n,k). */
static sn_status add_weights(sni_graph *g, const sni_qlayer *l, int32_t *out, sn_error *err) {
    sni_const *from = l->made[SN_QUANTIZE_TO_INT8].data, *turned;
    if (l->reads_rows) return sni_q_add_const(g, from, out, err);
    const int64_t dims[] = {l->k, l->n};
    SN_TRY(sni_const_new(g->store, SN_INT8, 2, dims, &turned, err));
    const int8_t *w = from->tensor.data;
    int8_t *to = turned->tensor.data;
    for (int64_t i = 0; i < l->k; i++)
        for (int64_t r = 0; r < l->n; r++) to[i * l->n + r] = w[r * l->k + i];
    return sni_q_add_const(g, turned, out, err);
}

static sn_status replace(sni_graph *g, const sni_qlayer *l, const held *x, sn_error *err) {
    const sni_qweights *w = &l->made[SN_QUANTIZE_TO_INT8];
    int32_t data, scales, sums, floats, scale, y;
    sni_node *n = g->nodes[l->node];
    int32_t bias = l->bias;
    SN_TRY(add_weights(g, l, &data, err));
    SN_TRY(sni_q_add_const(g, w->scales, &scales, err));
    int32_t in[] = {x->ids[0], data, x->ids[2]}, pair[] = {x->ids[1], scales};
    SN_TRY(sni_q_add_node(g, n->id, &(sni_qnode){"", "MatMulInteger", in, 3}, &sums, err));
    sni_attr to = sni_attr_of_int("to", SN_FLOAT32);
    SN_TRY(sni_q_add_node(g, n->id, &(sni_qnode){"", "Cast", &sums, 1, &to, 1}, &floats, err));
    SN_TRY(sni_q_add_node(g, n->id, &(sni_qnode){"", "Mul", pair, 2}, &scale, err));
    int32_t product[] = {floats, scale};
    SN_TRY(sni_q_add_node(g, n->id, &(sni_qnode){"", "Mul", product, 2}, &y, err));
    if (bias >= 0) {
        int32_t sum[] = {y, bias};
        SN_TRY(sni_q_add_node(g, n->id, &(sni_qnode){"", "Add", sum, 2}, &y, err));
    }
    return sni_q_replace_node(g, n, y, err);
}

sn_status sni_q_dynamic(sni_quantizer *q, sni_graph *g, sn_error *err) {
    held *inputs = calloc((size_t)q->base->value_count + 1, sizeof *inputs);
    sn_status status = inputs ? SN_OK : sni_fail_memory(err);
    for (int32_t i = 0; inputs && i < q->base->value_count; i++) inputs[i].ids[0] = -1;
    for (size_t i = 0; status == SN_OK && i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        if (l->precision != SN_QUANTIZE_TO_INT8_DYNAMIC || l->kind == SNI_Q_GATHER) continue;
        status = sni_q_fit(q, l, SN_QUANTIZE_TO_INT8, err);
        if (status == SN_OK) status = quantize_input(g, l->x, l->node, &inputs[l->x], err);
        if (status == SN_OK) status = replace(g, l, &inputs[l->x], err);
    }
    free(inputs);
    return status;
}
