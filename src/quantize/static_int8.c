/* static_int8.c - layers in int8 with ranges measured before: QuantizeLinear and DequantizeLinear
 * around them, as every runtime understands it. */
#include "quantize/quantize.h"

#include "ops/core/op.h"

#include <math.h>
#include <stdlib.h>

/* One copy of the graph under way. */
typedef struct editing {
    sni_quantizer *q;
    sni_graph *g;
    sni_qregion region;
    sn_error *err;
} editing;

/* The constants of a scale and a zero point. */
static sn_status add_params(editing *e, const sni_qparams *p, int32_t ids[2]) {
    SN_TRY(sni_q_add_floats(e->g, 0, NULL, &p->scale, &ids[0], e->err));
    return sni_q_add_zero(e->g, e->q->activation, p->zero, &ids[1], e->err);
}

static sn_status name_bytes(editing *e, int32_t value, int32_t bytes) {
    sni_graph *g = e->g;
    sni_str name = sni_arena_printf(&g->store->arena, "%.*s%s", (int)g->values[value]->name.n,
                                    g->values[value]->name.p, e->q->bytes_suffix);
    if (!name.p) return sni_fail_memory(e->err);
    g->values[bytes]->name = name;
    return SN_OK;
}

/* `value` quantised and dequantised, just behind what makes it. */
static sn_status add_pair(editing *e, int32_t value, int32_t before, const sni_qparams *p,
                          int32_t *first, int32_t *out) {
    int32_t in[3] = {value}, bytes;
    SN_TRY(add_params(e, p, in + 1));
    SN_TRY(sni_q_add_node(e->g, before, &(sni_qnode){"", "QuantizeLinear", in, 3}, &bytes, e->err));
    SN_TRY(name_bytes(e, value, bytes));
    *first = e->g->values[bytes]->producer;
    in[0] = bytes;
    return sni_q_add_node(e->g, before, &(sni_qnode){"", "DequantizeLinear", in, 3}, out, e->err);
}

static bool is_int8(const sni_quantizer *q, int32_t node) {
    for (size_t i = 0; i < q->n_layers; i++)
        if (q->layers[i].node == node) return q->layers[i].precision == SN_QUANTIZE_TO_INT8;
    return false;
}

/* Whether a node of the copy works on bytes, so that it reads what is dequantised. */
static bool reads_bytes(const editing *e, int32_t node) {
    if (node >= e->q->base->node_count) return false;
    if (is_int8(e->q, node)) return true;
    const sni_node *n = e->q->base->nodes[node];
    return n->n_out > 0 && n->out[0] >= 0 && (e->region.held[n->out[0]] & SNI_HELD_ALL);
}

static sn_status hold(editing *e, int32_t value) {
    sni_qparams p = sni_q_params(e->q, e->region.same_as[value]);
    if (!p.known)
        return sni_fail(e->err, SN_BAD_DATA, "value '%.*s' is empty in every sample",
                        SNI_FMT(e->q->base->values[value]->name));
    sni_value *v = e->g->values[value];
    int32_t first, dq, before = sni_q_after(e->g, v->producer);
    bool all = (e->region.held[value] & SNI_HELD_ALL) != 0;
    SN_TRY(add_pair(e, value, before, &p, &first, &dq));
    if (all) {
        SN_TRY(sni_graph_replace_uses(e->g, value, dq, e->err));
        return sni_node_set_input(e->g, e->g->nodes[first], 0, value, e->err);
    }
    for (int32_t i = v->use_count; i-- > 0;) {
        sni_use use = v->uses[i];
        if (use.node == SNI_NO_ID || use.node == first || !reads_bytes(e, use.node)) continue;
        SN_TRY(sni_node_set_input(e->g, e->g->nodes[use.node], use.slot, dq, e->err));
    }
    return SN_OK;
}

/* ---- Weights ---- */

static sn_status set_weights(editing *e, const sni_qlayer *l) {
    const sni_qweights *w = &l->made[SN_QUANTIZE_TO_INT8];
    sni_attr axis = sni_attr_of_int("axis", l->reads_rows ? 1 : 0);
    int32_t in[3], dq;
    SN_TRY(sni_q_add_const(e->g, w->data, &in[0], e->err));
    SN_TRY(sni_q_add_const(e->g, w->scales, &in[1], e->err));
    SN_TRY(sni_q_add_const(e->g, w->zeros, &in[2], e->err));
    SN_TRY(sni_q_add_node(e->g, l->node, &(sni_qnode){"", "DequantizeLinear", in, 3, &axis, 1}, &dq,
                          e->err));
    return sni_node_set_input(e->g, e->g->nodes[l->node], 1, dq, e->err);
}

/* What the rounding of the weights adds to output `row` on average, by the inputs' means. */
static double mean_error(const sni_quantizer *q, const sni_qlayer *l, const float *rows,
                         int64_t row) {
    const sni_observer *o = q->seen[l->x];
    const int8_t *bytes = l->made[SN_QUANTIZE_TO_INT8].data->tensor.data;
    const float *scales = l->made[SN_QUANTIZE_TO_INT8].scales->tensor.data;
    const sni_tensor *shape = &q->base->values[l->w]->constant->tensor;
    if (!o || !o->channels || !o->per_channel) return 0;
    int64_t taps = l->kind == SNI_Q_CONV ? l->k / shape->dims[1] : 1;
    int64_t in = l->k / taps, groups = l->kind == SNI_Q_CONV ? o->channels / in : 1;
    if (groups < 1 || l->n % groups) return 0;
    int64_t first = row / (l->n / groups) * in;
    double sum = 0;
    for (int64_t i = 0; i < l->k; i++) {
        int64_t at = l->reads_rows ? i * l->n + row : row * l->k + i, channel = first + i / taps;
        if (channel >= o->channels) return 0;
        double mean = o->sum[channel] / (double)o->per_channel;
        double held = (double)bytes[at] * (double)scales[row];
        sum += (held - (double)rows[row * l->k + i]) * mean;
    }
    return sum;
}

/* The bias by channel, corrected if that is chosen; *any: there is one. The caller frees. */
static sn_status bias_of(editing *e, const sni_qlayer *l, double **out, bool *any) {
    const float *b = sni_q_floats(e->q, l->bias, NULL);
    float *rows = NULL;
    double *bias = calloc((size_t)l->n, sizeof *bias);
    sn_status status = bias ? SN_OK : sni_fail_memory(e->err);
    bool correct = e->q->choice.correct && (l->kind == SNI_Q_CONV || b);
    if (status == SN_OK && correct) status = sni_q_rows(e->q, l, &rows, e->err);
    for (int64_t i = 0; status == SN_OK && i < l->n; i++) {
        bias[i] = b ? (double)b[i] : 0;
        if (correct) bias[i] -= mean_error(e->q, l, rows, i);
    }
    free(rows);
    *any = b || correct;
    if (status == SN_OK)
        *out = bias;
    else
        free(bias);
    return status;
}

/* The bias in units of the sums, as 32-bit integers: what runtimes expect beside int8. */
static sn_status set_bias(editing *e, const sni_qlayer *l) {
    sni_qparams p = sni_q_params(e->q, e->region.same_as[l->x]);
    const float *scales = l->made[SN_QUANTIZE_TO_INT8].scales->tensor.data;
    sni_const *ints, *units, *zeros;
    double *bias;
    bool any;
    SN_TRY(bias_of(e, l, &bias, &any));
    sn_status status = SN_OK;
    if (!any) goto done;
    status = sni_const_new(e->g->store, SN_INT32, 1, &l->n, &ints, e->err);
    if (status == SN_OK) status = sni_const_new(e->g->store, SN_FLOAT32, 1, &l->n, &units, e->err);
    if (status == SN_OK) status = sni_const_new(e->g->store, SN_INT32, 1, &l->n, &zeros, e->err);
    if (status != SN_OK) goto done;
    memset(zeros->tensor.data, 0, sni_tensor_bytes(&zeros->tensor));
    for (int64_t i = 0; i < l->n; i++) {
        float unit = p.scale * scales[i];
        double v = rint(bias[i] / (double)unit);
        ((float *)units->tensor.data)[i] = unit;
        ((int32_t *)ints->tensor.data)[i] = (int32_t)fmin(fmax(v, -2147483647.0), 2147483647.0);
    }
    int32_t in[3], dq;
    sni_attr axis = sni_attr_of_int("axis", 0);
    status = sni_q_add_const(e->g, ints, &in[0], e->err);
    if (status == SN_OK) status = sni_q_add_const(e->g, units, &in[1], e->err);
    if (status == SN_OK) status = sni_q_add_const(e->g, zeros, &in[2], e->err);
    if (status == SN_OK)
        status = sni_q_add_node(e->g, l->node,
                                &(sni_qnode){"", "DequantizeLinear", in, 3, &axis, 1}, &dq, e->err);
    sni_node *n = e->g->nodes[l->node];
    if (status == SN_OK && n->n_in < 3) status = sni_node_resize_inputs(e->g, n, 3, e->err);
    if (status == SN_OK) status = sni_node_set_input(e->g, n, 2, dq, e->err);
done:
    free(bias);
    return status;
}

/* ---- The graph ---- */

static sn_status drop_bounds(editing *e) {
    for (int32_t i = 0; i < e->q->base->node_count; i++) {
        sni_node *n = e->g->nodes[i];
        if (!e->region.dropped[i]) continue;
        /* Its result keeps name and readers; what came before it makes it from now on. */
        sni_value *from = e->g->values[n->in[0]];
        int32_t result = n->out[0], slot = from->producer_slot;
        sni_node *maker = e->g->nodes[from->producer];
        int32_t unnamed;
        sni_value *v;
        SN_TRY(sni_graph_add_value(e->g, (sni_str){0}, &v, e->err));
        unnamed = v->id;
        v->type = e->g->values[result]->type;
        SN_TRY(sni_node_replace_output(e->g, n, 0, unnamed, e->err));
        sni_graph_remove_node(e->g, n);
        SN_TRY(sni_node_replace_output(e->g, maker, slot, result, e->err));
    }
    return SN_OK;
}

sn_status sni_q_static(sni_quantizer *q, sni_graph *g, sn_error *err) {
    editing e = {.q = q, .g = g, .err = err};
    SN_TRY(sni_q_region(q, false, &e.region, err));
    sn_status status = SN_OK;
    for (size_t i = 0; status == SN_OK && i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        if (l->precision != SN_QUANTIZE_TO_INT8 || l->kind == SNI_Q_GATHER) continue;
        status = sni_q_fit(q, l, SN_QUANTIZE_TO_INT8, err);
        if (status == SN_OK && !sni_q_params(q, e.region.same_as[l->x]).known)
            status = sni_fail(err, SN_BAD_DATA, "layer '%s' saw no input in any sample", l->name);
        if (status == SN_OK) status = set_weights(&e, l);
        if (status == SN_OK && (l->kind == SNI_Q_CONV || l->bias >= 0)) status = set_bias(&e, l);
    }
    if (status == SN_OK) status = drop_bounds(&e);
    for (int32_t v = 0; status == SN_OK && v < q->base->value_count; v++)
        if (e.region.held[v] && g->values[v]) status = hold(&e, v);
    sni_q_region_free(&e.region);
    return status;
}
