/* search.c - the order in which ways to quantise are tried, and when the result is good enough. */
#include "quantize/quantize.h"

#include "exec/compiled_format.h"
#include "quantize/second_order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Measuring what is chosen now ---- */

/* The choice as a key of the state file. */
static void choice_key(const sni_quantizer *q, char *key, size_t size) {
    uint64_t sum = 0;
    for (size_t i = 0; i < q->n_layers; i++) {
        const sni_qlayer *l = &q->layers[i];
        int64_t numbers[] = {(int64_t)l->precision, (int64_t)l->by_moments};
        sum = sni_checksum(sum, numbers, sizeof numbers);
    }
    snprintf(key, size, "loss %d %d %d %016llx", (int)q->choice.calibration, (int)q->choice.correct,
             q->smoothed != NULL, (unsigned long long)sum);
}

sn_status sni_q_try(sni_quantizer *q, const char *what, sni_qloss *loss, sn_model **out) {
    char key[96];
    double v[SNI_STATE_NUMBERS];
    sn_model *model = NULL;
    choice_key(q, key, sizeof key);
    /* What a caller's score depends on is not known: it is asked for every time. */
    bool kept = q->o.metric != SN_METRIC_SCORE, known = kept && sni_q_state_get(q, key, v);
    sn_status status = known && !out ? SN_OK : sni_q_build(q, &model, q->err);
    if (status == SN_OK && !known) {
        sni_qloss l;
        status = sni_q_loss(q, model, &l, q->err);
        const double found[] = {l.cosine, l.top1, l.kl, l.asked, l.smooth};
        if (status == SN_OK) memcpy(v, found, sizeof v);
        if (status == SN_OK && kept) status = sni_q_state_put(q, key, v);
    }
    if (status == SN_OK && what) status = sni_q_report_trial(q, what, v[3], 0);
    if (status == SN_OK) *loss = (sni_qloss){v[0], v[1], v[2], v[3], v[4]};
    if (status == SN_OK && out)
        *out = model;
    else
        sn_model_destroy(model);
    return status;
}

static void set_all(sni_quantizer *q, sn_quantize_to p) {
    for (size_t i = 0; i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        l->precision = l->can >> p & 1 ? p : SN_QUANTIZE_TO_FLOAT;
    }
}

static size_t count_of(const sni_quantizer *q, sn_quantize_to p) {
    size_t count = 0;
    for (size_t i = 0; i < q->n_layers; i++) count += q->layers[i].can >> p & 1;
    return count;
}

/* ---- int8 ---- */

static sn_status try_calibrations(sni_quantizer *q, const char *prefix, double *best) {
    static const char *const names[] = {"", "min-max", "percentile", "entropy", "mse"};
    sn_calibration found = q->o.calibration;
    *best = INFINITY;
    for (int m = SN_CALIBRATE_MINMAX; m <= SN_CALIBRATE_MSE; m++) {
        char what[64];
        sni_qloss loss;
        if (q->o.calibration && q->o.calibration != (sn_calibration)m) continue;
        q->choice.calibration = (sn_calibration)m;
        snprintf(what, sizeof what, "%sint8, %s", prefix, names[m]);
        SN_TRY(sni_q_progress(q, "choosing ranges", (size_t)m - 1, 4));
        SN_TRY(sni_q_try(q, what, &loss, NULL));
        if (loss.smooth < *best) {
            *best = loss.smooth;
            found = (sn_calibration)m;
        }
    }
    q->choice.calibration = found;
    char what[64];
    sni_qloss loss;
    snprintf(what, sizeof what, "%sint8, biases corrected", prefix);
    q->choice.correct = true;
    SN_TRY(sni_q_try(q, what, &loss, NULL));
    q->choice.correct = loss.smooth < *best;
    if (q->choice.correct) *best = loss.smooth;
    return SN_OK;
}

/* Makes `q` work on the model with scales moved, if that loses less. */
static sn_status try_smooth(sni_quantizer *q, double best) {
    sn_model *model = NULL;
    double loss = INFINITY;
    SN_TRY(sni_q_smooth(q, &model, q->err));
    if (!model) return SN_OK;
    sni_quantizer other = *q;
    other.smoothed = model;
    other.store = NULL;
    other.base = NULL;
    other.plain = NULL;
    other.layers = NULL;
    other.n_layers = 0;
    other.seen = NULL;
    other.choice = (sni_qchoice){0};
    sn_status status = sni_q_open(&other);
    if (status == SN_OK) status = sni_q_calibrate(&other);
    if (status == SN_OK) {
        set_all(&other, SN_QUANTIZE_TO_INT8);
        status = try_calibrations(&other, "smoothed, ", &loss);
    }
    q->reference = other.reference;
    bool better = status == SN_OK && loss < 0.9 * best;
    sni_quantizer gone = better ? *q : other;
    gone.reference = NULL;
    if (better) *q = other;
    sni_q_close(&gone);
    if (!better) sn_model_destroy(model);
    return status;
}

static sn_status prepare_int8(sni_quantizer *q) {
    double best;
    SN_TRY(sni_q_calibrate(q));
    set_all(q, SN_QUANTIZE_TO_INT8);
    SN_TRY(try_calibrations(q, "", &best));
    SN_TRY(try_smooth(q, best));
    set_all(q, SN_QUANTIZE_TO_INT8);
    return SN_OK;
}

/* ---- Few bits ---- */

/* Weights fitted by the inputs' second moments, unless that loses more than without. */
static sn_status prepare_low_bits(sni_quantizer *q, sn_quantize_to p, bool measure) {
    sni_qloss plain = {0}, fitted = {0};
    set_all(q, p);
    for (size_t i = 0; i < q->n_layers; i++)
        if (q->layers[i].can >> p & 1) SN_TRY(sni_q_fit(q, &q->layers[i], p, q->err));
    if (!q->samples.count) return SN_OK;
    if (measure) SN_TRY(sni_q_try(q, "least squares of weights", &plain, NULL));
    sni_qweights *kept = calloc(q->n_layers + 1, sizeof *kept);
    if (!kept) return sni_fail_memory(q->err);
    for (size_t i = 0; i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        kept[i] = l->made[p];
        if (l->kind == SNI_Q_PRODUCT) l->made[p] = (sni_qweights){0};
        l->by_moments = l->kind == SNI_Q_PRODUCT;
    }
    sn_status status = sni_q_second_order(q, p);
    if (status == SN_OK && measure) status = sni_q_try(q, "second order", &fitted, NULL);
    if (status == SN_OK && measure && plain.smooth < fitted.smooth)
        for (size_t i = 0; i < q->n_layers; i++) {
            q->layers[i].made[p] = kept[i];
            q->layers[i].by_moments = false;
        }
    free(kept);
    return status;
}

/* ---- Narrow floats ---- */

static sn_status observe_range(void *ctx, size_t sample, sn_value *const *values, size_t count,
                               sn_error *err) {
    sni_quantizer *q = ctx;
    size_t at = 0;
    (void)sample;
    for (int32_t id = 0; id < q->base->value_count && at < count; id++) {
        if (!q->seen[id]) continue;
        const sn_value *v = values[at++];
        /* What is infinite in float32 is so in any type. */
        if (sn_tensor_dtype(v) == SN_FLOAT32)
            (void)sni_observer_add(q->seen[id], sn_tensor_const_data(v), sn_tensor_rank(v),
                                   sn_tensor_dims(v), NULL);
    }
    (void)err;
    return SN_OK;
}

/* Looks at every value, for those that a narrow type cannot hold. */
static sn_status prepare_half(sni_quantizer *q) {
    size_t count = 0;
    const char **names = calloc((size_t)q->base->value_count + 1, sizeof *names);
    sn_status status = names ? SN_OK : sni_fail_memory(q->err);
    for (int32_t id = 0; status == SN_OK && id < q->base->value_count; id++) {
        const sni_value *v = q->base->values[id];
        bool made = v->producer != SNI_NO_ID || v->is_input;
        if (!made || v->type.kind != SN_KIND_TENSOR || v->type.dtype != SN_FLOAT32) continue;
        q->seen[id] = sni_observer_new(0, 0);
        if (!q->seen[id]) status = sni_fail_memory(q->err);
        names[count++] = v->name.p;
    }
    sni_qwatch watch = {names, count, "looking at ranges", observe_range, q};
    if (status == SN_OK) status = sni_q_watch(q, &watch, q->err);
    free(names);
    return status;
}

/* ---- The result ---- */

static sn_status note_loss(sni_quantizer *q, const sni_qloss *loss) {
    sn_quantize_summary *s = sni_q_report_summary(q->report);
    s->loss = loss->asked;
    s->cosine = loss->cosine;
    s->top1 = loss->top1;
    s->kl = loss->kl;
    return SN_OK;
}

static const char *metric_name(sn_quantize_metric m) {
    static const char *const names[] = {"1 - cosine", "top-1 disagreement", "KL divergence",
                                        "relative loss of the score"};
    return names[m];
}

/* The layer and precision with the least of what was measured; NULL: nothing was. */
static const sni_qlayer *least_of(const sni_quantizer *q, bool times, double *least, int *at) {
    const sni_qlayer *found = NULL;
    *least = INFINITY;
    for (size_t i = 0; i < q->n_layers; i++)
        for (int p = 1; p < SNI_PRECISIONS; p++) {
            const sni_qlayer *l = &q->layers[i];
            double v = times ? l->ns[p] ? (double)l->ns[p] / (double)l->ns[0] : -1 : l->losses[p];
            if (v < 0 || v >= *least) continue;
            *least = v;
            *at = p;
            found = l;
        }
    return found;
}

/* No choice is within the loss: names the layer that alone loses least. */
static sn_status refuse_loss(const sni_quantizer *q, double got) {
    double loss;
    int at;
    const sni_qlayer *least = least_of(q, false, &loss, &at);
    if (!least)
        return sni_fail(q->err, SN_LIMIT, "a loss of %.3g (%s) cannot be reached: it is %.3g",
                        q->o.max_loss, metric_name(q->o.metric), got);
    return sni_fail(q->err, SN_LIMIT,
                    "a loss of %.3g (%s) cannot be reached: all layers together lose %.3g, and "
                    "'%s' alone, which loses least, %.3g",
                    q->o.max_loss, metric_name(q->o.metric), got, least->name, loss);
}

/* No choice was found at all: for the loss, or because no layer is quicker in fewer bits. */
static sn_status refuse_all(const sni_quantizer *q, bool by_time, double got) {
    double loss, part;
    int at = 0;
    sni_q_report_summary(q->report)->ns_after = 0; /* of nothing that there is */
    least_of(q, false, &loss, &at);
    if (!by_time || (q->o.max_loss >= 0 && loss > q->o.max_loss)) return refuse_loss(q, got);
    const sni_qlayer *l = least_of(q, true, &part, &at);
    return sni_fail(
        q->err, SN_LIMIT,
        "no choice of layers within the loss is as fast as the model: '%s', which gains "
        "most, takes %.4f ms in %s and %.4f ms in float32",
        l ? l->name : "", l ? (double)l->ns[at] * 1e-6 : 0, sn_quantize_to_name((sn_quantize_to)at),
        l ? (double)l->ns[0] * 1e-6 : 0);
}

/* The result is slower: names the layer that loses most time. */
static sn_status refuse_time(const sni_quantizer *q, const uint64_t ns[2]) {
    const sni_qlayer *worst = NULL;
    double most = 0;
    for (size_t i = 0; i < q->n_layers; i++) {
        const sni_qlayer *l = &q->layers[i];
        double more = (double)l->ns[l->precision] - (double)l->ns[SN_QUANTIZE_TO_FLOAT];
        if (l->precision == SN_QUANTIZE_TO_FLOAT || (worst && more <= most)) continue;
        worst = l;
        most = more;
    }
    return sni_fail(q->err, SN_LIMIT,
                    "the result takes %.3f ms where the model takes %.3f ms; layer '%s' takes %.4f "
                    "ms instead of %.4f",
                    (double)ns[1] * 1e-6, (double)ns[0] * 1e-6, worst ? worst->name : "",
                    worst ? (double)worst->ns[worst->precision] * 1e-6 : 0,
                    worst ? (double)worst->ns[SN_QUANTIZE_TO_FLOAT] * 1e-6 : 0);
}

/* Times input and result side by side. */
static sn_status note_times(sni_quantizer *q, sn_model *result, uint64_t ns[2]) {
    sn_model *models[2] = {(sn_model *)(uintptr_t)q->model, result};
    SN_TRY(sni_q_times(q, models, 2, ns, q->err));
    sn_quantize_summary *s = sni_q_report_summary(q->report);
    s->ns_before = ns[0];
    s->ns_after = ns[1];
    return sni_q_report_trial(q, "result", s->loss, ns[1]);
}

/* Within noise as fast as the input. */
static bool is_fast(const uint64_t ns[2]) {
    return (double)ns[1] <= 1.03 * (double)ns[0] || ns[1] < ns[0] + 2000;
}

/* Chooses by layers because of the loss, or the time if `by_time`, and measures the result. */
static sn_status refine(sni_quantizer *q, uint32_t bits, bool by_time, double got,
                        sn_model **model) {
    sni_qloss loss;
    sn_model *found = NULL;
    SN_TRY(sni_q_knapsack(q, bits, by_time, &found));
    if (!found) return refuse_all(q, by_time, got);
    sn_model_destroy(*model);
    *model = found;
    SN_TRY(sni_q_try(q, NULL, &loss, NULL));
    return note_loss(q, &loss);
}

/* The precisions that a layer may have in the end. */
static uint32_t allowed(const sni_quantizer *q) {
    uint32_t int8 = 1u << SN_QUANTIZE_TO_INT8 | 1u << SN_QUANTIZE_TO_INT8_DYNAMIC;
    if (q->o.to == SN_QUANTIZE_TO_MIXED) return int8 | 1u << SN_QUANTIZE_TO_INT4;
    return q->o.to == SN_QUANTIZE_TO_INT8 ? int8 : 1u << q->o.to;
}

/* Makes a model that is not fast enough again: with the times of layers among others in bytes, and
 * if that is not quick either with those of layers on their own, which no neighbour can spoil. */
static sn_status make_faster(sni_quantizer *q, uint32_t bits, double got, sn_model **model) {
    uint64_t ns[2] = {0};
    for (int turn = 0; turn < 2; turn++) {
        q->alone = turn == 1;
        for (size_t i = 0; i < q->n_layers; i++) memset(q->layers[i].ns, 0, sizeof q->layers[i].ns);
        SN_TRY(refine(q, bits, true, got, model));
        SN_TRY(note_times(q, *model, ns));
        if (is_fast(ns)) return SN_OK;
    }
    return refuse_time(q, ns);
}

sn_status sni_q_judge(sni_quantizer *q, uint32_t bits, bool by_time, sn_model **model) {
    sni_qloss loss;
    uint64_t ns[2];
    SN_TRY(sni_q_try(q, "all layers", &loss, model));
    SN_TRY(note_loss(q, &loss));
    bool over = q->o.max_loss >= 0 && !(loss.asked <= q->o.max_loss);
    if (over && !bits) return refuse_loss(q, loss.asked);
    if (over || q->o.to == SN_QUANTIZE_TO_MIXED)
        SN_TRY(refine(q, bits, by_time, loss.asked, model));
    SN_TRY(note_times(q, *model, ns));
    if (!by_time || is_fast(ns)) return SN_OK;
    return make_faster(q, bits, loss.asked, model);
}

static sn_status prepare(sni_quantizer *q) {
    sn_quantize_to to = q->o.to;
    bool data = q->samples.count > 0;
    if (to == SN_QUANTIZE_TO_FP16 || to == SN_QUANTIZE_TO_BF16)
        return data ? prepare_half(q) : SN_OK;
    if (to == SN_QUANTIZE_TO_INT8 && data) return prepare_int8(q);
    if (to == SN_QUANTIZE_TO_MIXED) {
        SN_TRY(prepare_int8(q));
        SN_TRY(prepare_low_bits(q, SN_QUANTIZE_TO_INT4, false));
        set_all(q, SN_QUANTIZE_TO_INT8);
        return SN_OK;
    }
    if (to == SN_QUANTIZE_TO_INT4 || to == SN_QUANTIZE_TO_INT2)
        return prepare_low_bits(q, to, data);
    set_all(q, to);
    return SN_OK;
}

sn_status sni_q_search(sni_quantizer *q, sn_model **out) {
    sn_model *model = NULL;
    if (q->o.to == SN_QUANTIZE_TO_INT8 && !q->samples.count) q->o.to = SN_QUANTIZE_TO_INT8_DYNAMIC;
    bool half = q->o.to == SN_QUANTIZE_TO_FP16 || q->o.to == SN_QUANTIZE_TO_BF16;
    sn_quantize_to first = q->o.to == SN_QUANTIZE_TO_MIXED ? SN_QUANTIZE_TO_INT8 : q->o.to;
    if (!half && !count_of(q, first))
        return sni_fail(q->err, SN_INVALID_MODEL, "no layer of the model can be %s: %s%s%s",
                        sn_quantize_to_name(first), q->n_layers ? "'" : "it has none with weights",
                        q->n_layers ? q->layers[0].name : "",
                        !q->n_layers           ? ""
                        : q->layers[0].note[0] ? "' stays"
                                               : "' is no product");
    sn_status status = prepare(q);
    bool speed =
        !q->o.may_be_slower && (q->o.to == SN_QUANTIZE_TO_INT8 || q->o.to == SN_QUANTIZE_TO_MIXED);
    if (status == SN_OK)
        status = q->samples.count ? sni_q_judge(q, half ? 0 : allowed(q), speed, &model)
                                  : sni_q_build(q, &model, q->err);
    if (status == SN_OK)
        *out = model;
    else
        sn_model_destroy(model);
    return status;
}
