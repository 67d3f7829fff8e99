/* samples.c - the caller's inputs, and runs over all of them. */
#include "quantize/quantize.h"

#include "base/clock.h"

#include "sinter_part.h"

#include <math.h>
#include <stdlib.h>

sn_status sni_q_progress(const sni_quantizer *q, const char *phase, size_t done, size_t total) {
    if (!q->o.progress || q->o.progress(q->o.progress_ctx, phase, done, total) == 0) return SN_OK;
    return sni_fail(q->err, SN_CANCELLED, "cancelled while %s", phase);
}

sn_status sni_q_session(const sni_quantizer *q, const sn_model *model, sn_session **out,
                        sn_error *err) {
    sn_session_options options;
    sn_session_options_init(&options, sizeof options);
    options.threads = q->o.threads;
    return sn_session_create(model, &options, out, err);
}

/* ---- One sample ---- */

void sni_q_sample_free(sni_qsample *s) {
    for (size_t i = 0; i < s->count; i++) sn_value_destroy(s->inputs[i].value);
    free(s->inputs);
    *s = (sni_qsample){0};
}

static sn_status check_sample(const sni_qsample *s, sn_error *err) {
    for (size_t i = 0; i < s->count; i++) {
        const sn_value *v = s->inputs[i].value;
        const float *x = sn_tensor_const_data(v);
        if (!v) return sni_fail(err, SN_INVALID_ARGUMENT, "an input has no value");
        if (sn_tensor_dtype(v) != SN_FLOAT32) continue;
        for (size_t j = 0; j < sn_tensor_count(v); j++)
            if (!isfinite(x[j]))
                return sni_fail(err, SN_BAD_DATA, "input '%s': number %zu is NaN or infinite",
                                s->inputs[i].name ? s->inputs[i].name : "", j);
    }
    return SN_OK;
}

sn_status sni_q_sample(const sni_quantizer *q, size_t index, sni_qsample *out, sn_error *err) {
    sni_qsample s = {0};
    s.inputs = calloc(sn_model_input_count(q->model) + 1, sizeof *s.inputs);
    if (!s.inputs) return sni_fail_memory(err);
    sn_status status = q->samples.get(q->samples.ctx, index, s.inputs, &s.count, err);
    if (status == SN_OK) status = check_sample(&s, err);
    if (status != SN_OK) {
        sni_q_sample_free(&s);
        return sni_fail_context(err, status, "sample %zu", index);
    }
    *out = s;
    return SN_OK;
}

/* ---- Watching values ---- */

/* What is watched, as a model. */
typedef struct watched {
    sn_model *model;
    sn_session *session;
} watched;

/* Moves the inputs that the model has to the front; returns how many. */
static size_t wanted_inputs(const sn_model *model, sni_qsample *s) {
    size_t kept = 0;
    for (size_t i = 0; i < s->count; i++)
        for (size_t j = 0; j < sn_model_input_count(model); j++) {
            sn_value_info info;
            const char *name = s->inputs[i].name;
            if (sn_model_input(model, j, &info, NULL) != SN_OK || !name ||
                strcmp(info.name, name) != 0)
                continue;
            sn_binding found = s->inputs[i];
            s->inputs[i] = s->inputs[kept];
            s->inputs[kept++] = found;
            break;
        }
    return kept;
}

static sn_status watch_sample(const sni_quantizer *q, const sni_qwatch *watch, const watched *w,
                              size_t index, sn_error *err) {
    sni_qsample s;
    sn_binding *outputs = calloc(watch->count, sizeof *outputs);
    sn_value **values = calloc(watch->count, sizeof *values);
    sn_status status = outputs && values ? sni_q_sample(q, index, &s, err) : sni_fail_memory(err);
    if (status == SN_OK) {
        for (size_t i = 0; i < watch->count; i++) outputs[i].name = watch->names[i];
        size_t inputs = wanted_inputs(w->model, &s);
        status = sn_session_run(w->session, NULL, s.inputs, inputs, outputs, watch->count, err);
        if (status != SN_OK) sni_fail_context(err, status, "sample %zu", index);
        for (size_t i = 0; i < watch->count; i++) values[i] = outputs[i].value;
        if (status == SN_OK) status = watch->fn(watch->ctx, index, values, watch->count, err);
        for (size_t i = 0; i < watch->count; i++) sn_value_destroy(values[i]);
        sni_q_sample_free(&s);
    }
    free(outputs);
    free(values);
    return status;
}

sn_status sni_q_watch(const sni_quantizer *q, const sni_qwatch *watch, sn_error *err) {
    watched w = {NULL, NULL};
    if (!watch->count) return SN_OK;
    sn_status status =
        sn_model_extract(q->plain, NULL, 0, watch->names, watch->count, &w.model, err);
    if (status == SN_OK) status = sni_q_session(q, w.model, &w.session, err);
    for (size_t i = 0; i < q->samples.count && status == SN_OK; i++) {
        status = sni_q_progress(q, watch->phase, i, q->samples.count);
        if (status == SN_OK) status = watch_sample(q, watch, &w, i, err);
    }
    sn_session_destroy(w.session);
    sn_model_destroy(w.model);
    return status;
}

/* ---- Times ---- */

typedef struct timing {
    sn_session *session;
    sn_binding *outputs;
    size_t n_outputs;
    uint64_t least;
} timing;

static sn_status time_once(timing *t, const sni_qsample *s, bool first, sn_error *err) {
    uint64_t begin = sni_now_ns();
    sn_status status =
        sn_session_run(t->session, NULL, s->inputs, s->count, t->outputs, t->n_outputs, err);
    uint64_t took = sni_now_ns() - begin;
    if (!first && (t->least == 0 || took < t->least)) t->least = took;
    for (size_t i = 0; i < t->n_outputs; i++) {
        sn_value_destroy(t->outputs[i].value);
        t->outputs[i].value = NULL;
    }
    return status;
}

static sn_status open_timing(const sni_quantizer *q, const sn_model *model, timing *t,
                             sn_error *err) {
    sn_value_info info;
    t->n_outputs = sn_model_output_count(model);
    t->outputs = calloc(t->n_outputs + 1, sizeof *t->outputs);
    if (!t->outputs) return sni_fail_memory(err);
    for (size_t i = 0; i < t->n_outputs; i++) {
        SN_TRY(sn_model_output(model, i, &info, err));
        t->outputs[i].name = info.name;
    }
    return sni_q_session(q, model, &t->session, err);
}

sn_status sni_q_times(const sni_quantizer *q, sn_model *const *models, size_t count, uint64_t *ns,
                      sn_error *err) {
    enum { RUNS = 7, MOST_RUNS = 200 };
    const uint64_t enough = 300000000;
    sni_qsample s = {0};
    timing *t = calloc(count, sizeof *t);
    sn_status status = t ? sni_q_sample(q, 0, &s, err) : sni_fail_memory(err);
    for (size_t i = 0; i < count && status == SN_OK; i++)
        status = open_timing(q, models[i], &t[i], err);
    uint64_t begin = sni_now_ns();
    for (int run = 0; status == SN_OK && run < MOST_RUNS; run++) {
        if (run >= RUNS && sni_now_ns() - begin > enough * count) break;
        for (size_t i = 0; i < count && status == SN_OK; i++)
            status = time_once(&t[i], &s, run == 0, err);
    }
    for (size_t i = 0; t && i < count; i++) {
        if (status == SN_OK) ns[i] = t[i].least;
        sn_session_destroy(t[i].session);
        free(t[i].outputs);
    }
    sni_q_sample_free(&s);
    free(t);
    return status;
}
