/* layer_cost.c - what one layer costs: the model's loss when it alone is quantised, and its time in
 * each precision on this machine. */
#include "quantize/quantize.h"

#include "base/clock.h"

#include "sinter_part.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Losses ---- */

sn_status sni_q_layer_loss(sni_quantizer *q, sni_qlayer *l, sn_quantize_to p) {
    sni_qloss loss;
    if (l->losses[p] >= 0) return SN_OK;
    sn_quantize_to *kept = malloc(q->n_layers * sizeof *kept);
    if (!kept) return sni_fail_memory(q->err);
    for (size_t i = 0; i < q->n_layers; i++) {
        kept[i] = q->layers[i].precision;
        q->layers[i].precision = SN_QUANTIZE_TO_FLOAT;
    }
    l->precision = p;
    sn_status status = sni_q_try(q, NULL, &loss, NULL);
    for (size_t i = 0; i < q->n_layers; i++) q->layers[i].precision = kept[i];
    free(kept);
    if (status == SN_OK) l->losses[p] = loss.smooth;
    return status;
}

/* ---- Times ---- */

/* The shapes of the layers' inputs in the first sample. */
typedef struct shapes {
    sni_quantizer *q;
    int64_t (*dims)[SN_MAX_RANK]; /* by value */
    int *rank;
    const int32_t *ids;
} shapes;

static sn_status note_shapes(void *ctx, size_t sample, sn_value *const *values, size_t count,
                             sn_error *err) {
    const shapes *s = ctx;
    (void)sample;
    (void)err;
    for (size_t i = 0; i < count; i++) {
        int rank = sn_tensor_rank(values[i]);
        s->rank[s->ids[i]] = rank;
        if (rank)
            memcpy(s->dims[s->ids[i]], sn_tensor_dims(values[i]), sizeof(int64_t) * (size_t)rank);
    }
    return SN_OK;
}

static sn_status find_shapes(shapes *s) {
    sni_quantizer one = *s->q;
    size_t count = 0;
    int32_t *ids = calloc(one.n_layers + 1, sizeof *ids);
    const char **names = calloc(one.n_layers + 1, sizeof *names);
    bool *listed = calloc((size_t)one.base->value_count + 1, sizeof *listed);
    sn_status status = ids && names && listed ? SN_OK : sni_fail_memory(one.err);
    for (size_t i = 0; status == SN_OK && i < one.n_layers; i++) {
        const sni_qlayer *l = &one.layers[i];
        const sni_value *v = one.base->values[l->x];
        if (v->constant || listed[l->x]) continue;
        listed[l->x] = true;
        ids[count] = l->x;
        names[count++] = v->name.p;
    }
    one.samples.count = one.samples.count ? 1 : 0;
    s->ids = ids;
    sni_qwatch watch = {names, count, "reading shapes", note_shapes, s};
    if (status == SN_OK) status = sni_q_watch(&one, &watch, one.err);
    s->ids = NULL;
    free(ids);
    free(names);
    free(listed);
    return status;
}

static sn_status run_once(sn_session *session, const sn_binding *in, const char *out,
                          sn_error *err) {
    sn_binding result = {out, NULL};
    sn_status status = sn_session_run(session, NULL, in, 1, &result, 1, err);
    sn_value_destroy(result.value);
    return status;
}

/* Least time of a part of a model from one value to another. */
static sn_status time_part(const sni_quantizer *q, const sn_model *model, const char *from,
                           const char *to, sn_value *x, uint64_t *ns) {
    enum { RUNS = 5, MOST_RUNS = 50 };
    const uint64_t enough = 20000000;
    sn_model *part = NULL;
    sn_session *session = NULL;
    sn_binding in = {from, x};
    uint64_t begin = sni_now_ns(), least = 0;
    SN_TRY(sn_model_extract(model, &from, 1, &to, 1, &part, q->err));
    sn_status status = sni_q_session(q, part, &session, q->err);
    if (status == SN_OK) status = run_once(session, &in, to, q->err);
    begin = sni_now_ns();
    for (int i = 0; status == SN_OK && i < MOST_RUNS; i++) {
        uint64_t start = sni_now_ns();
        if (i >= RUNS && start - begin > enough) break;
        status = run_once(session, &in, to, q->err);
        uint64_t took = sni_now_ns() - start;
        if (!least || took < least) least = took;
    }
    sn_session_destroy(session);
    sn_model_destroy(part);
    if (status == SN_OK) *ns = least;
    return status;
}

/* Whether a layer's input is bytes while it is timed. */
static bool takes_bytes(const sni_quantizer *q, const sni_qlayer *l, sn_quantize_to p) {
    return p == SN_QUANTIZE_TO_INT8 && l->kind != SNI_Q_GATHER && !q->alone;
}

/* The value in which a layer's result would end if it were int8: behind bounds that bytes imply. */
static sn_status find_result(const sni_quantizer *q, sni_qlayer *l, int32_t *out) {
    const sni_graph *g = q->base;
    sn_quantize_to kept = l->precision;
    sni_qregion r;
    *out = g->nodes[l->node]->out[0];
    if (l->kind != SNI_Q_CONV || !(l->can & 1u << SN_QUANTIZE_TO_INT8)) return SN_OK;
    l->precision = SN_QUANTIZE_TO_INT8;
    sn_status status = sni_q_region(q, false, &r, q->err);
    l->precision = kept;
    if (status != SN_OK) return status;
    while (!(r.held[*out] & SNI_HELD_ALL)) *out = g->nodes[g->values[*out]->uses[0].node]->out[0];
    sni_q_region_free(&r);
    return SN_OK;
}

/* Where the layer begins and ends in a model in which it alone has its precision. */
static sn_status find_ends(const sni_quantizer *q, sni_qlayer *l, char *from, char *to,
                           size_t size) {
    const sni_graph *g = q->base;
    int32_t result;
    SN_TRY(find_result(q, l, &result));
    sni_str x = g->values[l->x]->name, y = g->values[result]->name;
    bool bytes = takes_bytes(q, l, l->precision);
    const char *suffix = bytes ? q->bytes_suffix : "";
    snprintf(from, size, "%.*s%s", (int)x.n, x.p, suffix);
    snprintf(to, size, "%.*s%s", (int)y.n, y.p, l->kind == SNI_Q_CONV ? suffix : "");
    return SN_OK;
}

static sn_status time_layer(sni_quantizer *q, sni_qlayer *l, sn_quantize_to p, const shapes *s) {
    enum { NAME = 1024 };
    char from[NAME], to[NAME];
    sn_model *model = NULL;
    sn_value *x = NULL;
    bool bytes = takes_bytes(q, l, p);
    sn_dtype dtype = bytes ? q->activation : q->base->values[l->x]->type.dtype;
    l->precision = p;
    sn_status status = find_ends(q, l, from, to, NAME);
    if (status == SN_OK) status = sni_q_build(q, &model, q->err);
    if (status == SN_OK) status = sn_tensor_create(dtype, s->rank[l->x], s->dims[l->x], &x, q->err);
    if (status == SN_OK) status = time_part(q, model, from, to, x, &l->ns[p]);
    l->precision = SN_QUANTIZE_TO_FLOAT;
    sn_value_destroy(x);
    sn_model_destroy(model);
    return status == SN_OK ? status
                           : sni_fail_context(q->err, status, "timing layer '%s'", l->name);
}

/* The time of layer and precision, from the state file if it is there. */
static sn_status know_time(sni_quantizer *q, sni_qlayer *l, sn_quantize_to p, const shapes *s) {
    char key[64];
    double v[SNI_STATE_NUMBERS] = {0};
    snprintf(key, sizeof key, "ns %d %d %d %d", (int)l->node, (int)p, q->smoothed != NULL,
             q->alone);
    if (sni_q_state_get(q, key, v)) {
        l->ns[p] = (uint64_t)v[0];
        return SN_OK;
    }
    SN_TRY(time_layer(q, l, p, s));
    v[0] = (double)l->ns[p];
    return sni_q_state_put(q, key, v);
}

static sn_status time_all(sni_quantizer *q, uint32_t bits, const shapes *s) {
    for (size_t i = 0; i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        SN_TRY(sni_q_progress(q, "timing layers", i, q->n_layers));
        if (!(l->can & bits & ~1u) || l->x < 0) continue;
        for (int p = 0; p < SNI_PRECISIONS; p++)
            if (((bits & l->can) >> p & 1) && !l->ns[p])
                SN_TRY(know_time(q, l, (sn_quantize_to)p, s));
    }
    return SN_OK;
}

sn_status sni_q_layer_times(sni_quantizer *q, uint32_t bits) {
    shapes s = {.q = q};
    size_t count = (size_t)q->base->value_count + 1;
    sn_quantize_to *kept = malloc((q->n_layers + 1) * sizeof *kept);
    s.dims = calloc(count, sizeof *s.dims);
    s.rank = calloc(count, sizeof *s.rank);
    sn_status status = kept && s.dims && s.rank ? find_shapes(&s) : sni_fail_memory(q->err);
    for (size_t i = 0; status == SN_OK && i < q->n_layers; i++) {
        kept[i] = q->layers[i].precision;
        q->layers[i].precision = SN_QUANTIZE_TO_FLOAT;
    }
    if (status == SN_OK) {
        status = time_all(q, bits, &s);
        for (size_t i = 0; i < q->n_layers; i++) q->layers[i].precision = kept[i];
    }
    free(kept);
    free(s.dims);
    free(s.rank);
    return status;
}
