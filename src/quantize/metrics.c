/* metrics.c - how far the outputs of a model are from those of the one it is compared with. */
#include "quantize/quantize.h"

#include <math.h>
#include <stdlib.h>

/* Outputs to compare with: kept as far as they fit, made again where not. */
typedef struct sni_qreference {
    const sn_model *model;
    sn_session *session;
    sn_binding *names; /* outputs, without values */
    size_t n_outputs;
    sn_value ***kept; /* by sample: its outputs, or NULL */
    size_t n_samples;
    uint64_t room; /* bytes that may still be kept */
    double score;
    bool has_score;
} sni_qreference;

static const uint64_t KEPT_BYTES = 64u << 20;

void sni_q_reference_free(struct sni_qreference *r) {
    if (!r) return;
    for (size_t i = 0; r->kept && i < r->n_samples; i++) {
        for (size_t j = 0; r->kept[i] && j < r->n_outputs; j++) sn_value_destroy(r->kept[i][j]);
        free(r->kept[i]);
    }
    free(r->kept);
    free(r->names);
    sn_session_destroy(r->session);
    free(r);
}

static sn_status open_reference(sni_quantizer *q, sn_error *err) {
    sni_qreference *r = calloc(1, sizeof *r);
    if (!r) return sni_fail_memory(err);
    q->reference = r;
    r->model = q->o.teacher ? q->o.teacher : q->model;
    r->room = KEPT_BYTES;
    r->n_samples = q->samples.count;
    r->n_outputs = sn_model_output_count(r->model);
    r->names = calloc(r->n_outputs + 1, sizeof *r->names);
    r->kept = calloc(r->n_samples + 1, sizeof *r->kept);
    if (!r->names || !r->kept) return sni_fail_memory(err);
    if (r->n_outputs != sn_model_output_count(q->model))
        return sni_fail(err, SN_INVALID_ARGUMENT, "the teacher has %zu outputs, the model %zu",
                        r->n_outputs, sn_model_output_count(q->model));
    for (size_t i = 0; i < r->n_outputs; i++) {
        sn_value_info info;
        SN_TRY(sn_model_output(r->model, i, &info, err));
        r->names[i].name = info.name;
    }
    return sni_q_session(q, r->model, &r->session, err);
}

static sn_status run(sn_session *session, const sni_qsample *s, sn_binding *outputs, size_t count,
                     size_t index, sn_error *err) {
    sn_status status = sn_session_run(session, NULL, s->inputs, s->count, outputs, count, err);
    return status == SN_OK ? status : sni_fail_context(err, status, "sample %zu", index);
}

static void drop(sn_binding *outputs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        sn_value_destroy(outputs[i].value);
        outputs[i].value = NULL;
    }
}

/* Fills r->names with the values of a sample; drop() frees them. */
static sn_status reference_outputs(sni_qreference *r, const sni_qsample *s, size_t index,
                                   sn_error *err) {
    if (r->kept[index]) {
        for (size_t i = 0; i < r->n_outputs; i++)
            r->names[i].value = sn_value_retain(r->kept[index][i]);
        return SN_OK;
    }
    SN_TRY(run(r->session, s, r->names, r->n_outputs, index, err));
    uint64_t bytes = 0;
    for (size_t i = 0; i < r->n_outputs; i++) bytes += sn_tensor_bytes(r->names[i].value);
    if (bytes > r->room) return SN_OK;
    sn_value **kept = calloc(r->n_outputs + 1, sizeof *kept);
    if (!kept) return SN_OK;
    for (size_t i = 0; i < r->n_outputs; i++) kept[i] = sn_value_retain(r->names[i].value);
    r->kept[index] = kept;
    r->room -= bytes;
    return SN_OK;
}

/* ---- Comparing ---- */

typedef struct sums {
    double cosine, top1, kl;
    size_t tensors, rows;
    size_t different; /* numbers compared for being equal, if there are no rows */
} sums;

static void add_row(sums *s, const float *a, const float *b, int64_t count) {
    int64_t most_a = 0, most_b = 0;
    double sum_a = 0, sum_b = 0, kl = 0;
    for (int64_t i = 1; i < count; i++) {
        if (a[i] > a[most_a]) most_a = i;
        if (b[i] > b[most_b]) most_b = i;
    }
    for (int64_t i = 0; i < count; i++) {
        sum_a += exp((double)(a[i] - a[most_a]));
        sum_b += exp((double)(b[i] - b[most_b]));
    }
    for (int64_t i = 0; i < count; i++) {
        double p = (double)(a[i] - a[most_a]) - log(sum_a);
        double r = (double)(b[i] - b[most_b]) - log(sum_b);
        if (p > -700) kl += exp(p) * (p - r);
    }
    s->top1 += most_a != most_b;
    s->kl += isfinite(kl) ? fmax(kl, 0) : 1e9;
    s->rows++;
}

static void add_cosine(sums *s, const float *a, const float *b, size_t count) {
    double ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < count; i++) {
        ab += (double)a[i] * (double)b[i];
        aa += (double)a[i] * (double)a[i];
        bb += (double)b[i] * (double)b[i];
    }
    double cosine = aa == 0 && bb == 0 ? 1 : ab / sqrt(aa * bb);
    s->cosine += isfinite(cosine) ? fmax(1 - cosine, 0) : 1;
    s->tensors++;
}

/* Of numbers that are no floats: the part that differs. */
static void add_different(sums *s, const sn_value *a, const sn_value *b, size_t count) {
    const unsigned char *x = sn_tensor_const_data(a), *y = sn_tensor_const_data(b);
    size_t width = sn_tensor_bytes(a) / count, different = 0;
    if (!x || !y || !width) return; /* strings, and less than a byte each */
    for (size_t i = 0; i < count; i++)
        different += memcmp(x + i * width, y + i * width, width) != 0;
    double part = (double)different / (double)count;
    s->cosine += part;
    s->tensors++;
    if (s->rows) return;
    s->top1 += part * (double)count;
    s->different += count;
}

static sn_status check_reference(const sn_value *v, size_t index, sn_error *err) {
    const float *x = sn_tensor_const_data(v);
    for (size_t i = 0; i < sn_tensor_count(v); i++)
        if (isnan(x[i]))
            return sni_fail(err, SN_BAD_DATA,
                            "sample %zu: the model to compare with gives NaN for it", index);
    return SN_OK;
}

/* Adds two outputs; rows are counted of the first that has any. */
static sn_status add_output(sums *s, const sn_value *a, const sn_value *b, bool rows, size_t index,
                            sn_error *err) {
    size_t count = sn_tensor_count(a);
    int rank = sn_tensor_rank(a);
    if (!count && !sn_tensor_count(b)) return SN_OK;
    if (count != sn_tensor_count(b) || sn_tensor_dtype(a) != sn_tensor_dtype(b)) {
        s->cosine += 1; /* what is found, as by NonMaxSuppression, may differ in number */
        s->tensors++;
        return SN_OK;
    }
    if (sn_tensor_dtype(a) != SN_FLOAT32) {
        add_different(s, a, b, count);
        return SN_OK;
    }
    SN_TRY(check_reference(a, index, err));
    const float *x = sn_tensor_const_data(a), *y = sn_tensor_const_data(b);
    add_cosine(s, x, y, count);
    int64_t width = rank ? sn_tensor_dims(a)[rank - 1] : 1;
    for (size_t at = 0; rows && width > 1 && at < count; at += (size_t)width)
        add_row(s, x + at, y + at, width);
    return SN_OK;
}

static sn_status compare_sample(sni_quantizer *q, sn_session *session, sn_binding *outputs,
                                size_t index, sums *s, sn_error *err) {
    sni_qreference *r = q->reference;
    sni_qsample sample;
    SN_TRY(sni_q_sample(q, index, &sample, err));
    sn_status status = reference_outputs(r, &sample, index, err);
    if (status == SN_OK) status = run(session, &sample, outputs, r->n_outputs, index, err);
    bool rows = true;
    for (size_t i = 0; i < r->n_outputs && status == SN_OK; i++) {
        size_t before = s->rows;
        status = add_output(s, r->names[i].value, outputs[i].value, rows, index, err);
        rows = rows && s->rows == before;
    }
    drop(r->names, r->n_outputs);
    drop(outputs, r->n_outputs);
    sni_q_sample_free(&sample);
    return status;
}

static sn_status add_score(sni_quantizer *q, const sn_model *model, double *loss, sn_error *err) {
    sni_qreference *r = q->reference;
    double score;
    if (!r->has_score) SN_TRY(q->o.score(q->o.score_ctx, r->model, &r->score, err));
    r->has_score = true;
    SN_TRY(q->o.score(q->o.score_ctx, model, &score, err));
    *loss = (r->score - score) / fmax(fabs(r->score), 1e-12);
    return SN_OK;
}

/* Compares all samples. */
static sn_status compare(sni_quantizer *q, const sn_model *model, sums *s, sn_error *err) {
    sni_qreference *r = q->reference;
    sn_session *session = NULL;
    sn_binding *outputs = calloc(r->n_outputs + 1, sizeof *outputs);
    sn_status status = outputs ? sni_q_session(q, model, &session, err) : sni_fail_memory(err);
    for (size_t i = 0; i < r->n_outputs && status == SN_OK; i++) {
        sn_value_info info;
        status = sn_model_output(model, i, &info, err);
        if (status == SN_OK) outputs[i].name = info.name;
    }
    for (size_t i = 0; i < q->samples.count && status == SN_OK; i++)
        status = compare_sample(q, session, outputs, i, s, err);
    sn_session_destroy(session);
    free(outputs);
    return status;
}

sn_status sni_q_loss(sni_quantizer *q, const sn_model *model, sni_qloss *out, sn_error *err) {
    sums s = {0};
    if (!q->reference) SN_TRY(open_reference(q, err));
    SN_TRY(compare(q, model, &s, err));
    sni_qloss loss = {0};
    if (!s.tensors)
        return sni_fail(err, SN_UNSUPPORTED, "the model has no output of numbers to compare");
    loss.cosine = s.cosine / (double)s.tensors;
    size_t counted = s.rows ? s.rows : s.different;
    loss.top1 = counted ? fmin(s.top1 / (double)counted, 1) : 0;
    loss.kl = s.rows ? s.kl / (double)s.rows : 0;
    loss.asked = q->o.metric == SN_METRIC_TOP1 ? loss.top1
                 : q->o.metric == SN_METRIC_KL ? loss.kl
                                               : loss.cosine;
    loss.smooth = q->o.metric == SN_METRIC_TOP1 ? loss.kl : loss.asked;
    if (q->o.metric == SN_METRIC_SCORE) {
        SN_TRY(add_score(q, model, &loss.asked, err));
        loss.smooth = loss.cosine;
    }
    *out = loss;
    return SN_OK;
}
