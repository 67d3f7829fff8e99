/* calibrate.c - one pass over the samples that observes every tensor that may be held in bytes. */
#include "quantize/quantize.h"

#include <math.h>
#include <stdlib.h>

typedef struct observing {
    sni_quantizer *q;
    int32_t *ids;
    const char **names;
    size_t count;
} observing;

static sn_status observe(void *ctx, size_t sample, sn_value *const *values, size_t count,
                         sn_error *err) {
    const observing *o = ctx;
    for (size_t i = 0; i < count; i++) {
        const sn_value *v = values[i];
        if (sn_tensor_dtype(v) != SN_FLOAT32) continue;
        sn_status status = sni_observer_add(o->q->seen[o->ids[i]], sn_tensor_const_data(v),
                                            sn_tensor_rank(v), sn_tensor_dims(v), err);
        if (status != SN_OK)
            return sni_fail_context(err, status, "sample %zu: value '%s'", sample, o->names[i]);
    }
    return SN_OK;
}

/* Channels whose sums a layer wants of its input. */
static void channels_of(const sni_quantizer *q, const sni_qlayer *l, int64_t *count, int *axis) {
    const sni_tensor *w = &q->base->values[l->w]->constant->tensor;
    const sni_attr *group = sni_node_attr(q->base->nodes[l->node], "group");
    *count = l->kind == SNI_Q_CONV ? w->dims[1] * (group ? group->u.i : 1) : l->k;
    *axis = l->kind == SNI_Q_CONV ? 1 : -1;
}

static sn_status add_value(observing *o, int32_t id, int64_t channels, int axis, sn_error *err) {
    sni_quantizer *q = o->q;
    const sni_value *v = q->base->values[id];
    if (q->seen[id] || v->constant || v->type.dtype != SN_FLOAT32) return SN_OK;
    q->seen[id] = sni_observer_new(channels, axis);
    if (!q->seen[id]) return sni_fail_memory(err);
    o->names[o->count] = v->name.p;
    o->ids[o->count++] = id;
    return SN_OK;
}

static sn_status choose_values(observing *o, sn_error *err) {
    sni_quantizer *q = o->q;
    sni_qregion r;
    sn_status status = sni_q_region(q, true, &r, err);
    if (status != SN_OK) return status;
    for (size_t i = 0; i < q->n_layers && status == SN_OK; i++) {
        const sni_qlayer *l = &q->layers[i];
        int64_t channels;
        int axis;
        if (l->kind == SNI_Q_GATHER || l->x < 0) continue;
        channels_of(q, l, &channels, &axis);
        status = add_value(o, l->x, channels, axis, err);
    }
    for (int32_t v = 0; v < q->base->value_count && status == SN_OK; v++)
        if (r.held[v] && r.same_as[v] == v) status = add_value(o, v, 0, 0, err);
    sni_q_region_free(&r);
    return status;
}

sn_status sni_q_calibrate(sni_quantizer *q) {
    size_t most = (size_t)q->base->value_count + 1;
    observing o = {q, calloc(most, sizeof *o.ids), calloc(most, sizeof *o.names), 0};
    sn_status status = o.ids && o.names ? choose_values(&o, q->err) : sni_fail_memory(q->err);
    sni_qwatch watch = {o.names, o.count, "calibrating", observe, &o};
    if (status == SN_OK) status = sni_q_watch(q, &watch, q->err);
    free(o.ids);
    free(o.names);
    return status;
}

sni_qparams sni_q_params(const sni_quantizer *q, int32_t value) {
    const sni_observer *o = q->seen[value];
    sni_qparams p = {.scale = 1};
    if (!o || !o->count) return p;
    sn_calibration method = q->choice.calibration ? q->choice.calibration : SN_CALIBRATE_MINMAX;
    sni_observer_range(o, method, &p.low, &p.high);
    p.known = true;
    float step = (p.high - p.low) / 255;
    int lowest = q->activation == SN_INT8 ? -128 : 0;
    p.scale = step > 1e-12f ? step : 1e-12f;
    p.zero = lowest + (int32_t)fminf(fmaxf(rintf(-p.low / p.scale), 0), 255);
    return p;
}
