/* report.c - what was found out, for callers. */
#include "quantize/quantize.h"

#include <math.h>
#include <stdlib.h>

struct sn_quantize_report {
    sni_arena arena; /* of all strings and lists */
    sn_quantize_summary summary;
    sn_quantize_layer *layers;
    size_t n_layers;
    sn_quantize_trial *trials;
    size_t n_trials, trial_capacity;
};

sn_status sni_q_report_new(sn_quantize_report **out, sn_error *err) {
    sn_quantize_report *r = calloc(1, sizeof *r);
    if (!r) return sni_fail_memory(err);
    sni_arena_init(&r->arena, 0);
    r->summary =
        (sn_quantize_summary){.loss = -1, .cosine = -1, .top1 = -1, .kl = -1, .calibration = ""};
    *out = r;
    return SN_OK;
}

void sn_quantize_report_destroy(sn_quantize_report *report) {
    if (!report) return;
    sni_arena_free(&report->arena);
    free(report->trials);
    free(report);
}

sn_quantize_summary *sni_q_report_summary(sn_quantize_report *report) {
    return &report->summary;
}

void sn_quantize_report_summary(const sn_quantize_report *report, sn_quantize_summary *out) {
    if (report && out) *out = report->summary;
}

bool sn_quantize_report_layer(const sn_quantize_report *report, size_t index,
                              sn_quantize_layer *out) {
    if (!report || !out || index >= report->n_layers) return false;
    *out = report->layers[index];
    return true;
}

bool sn_quantize_report_trial(const sn_quantize_report *report, size_t index,
                              sn_quantize_trial *out) {
    if (!report || !out || index >= report->n_trials) return false;
    *out = report->trials[index];
    return true;
}

const char *sn_quantize_to_name(sn_quantize_to precision) {
    static const char *const names[] = {"float32", "int8",    "int8 dynamic", "int4",
                                        "int2",    "float16", "bfloat16",     "mixed"};
    size_t i = (size_t)precision;
    return i < sizeof names / sizeof *names ? names[i] : "";
}

uint64_t sni_q_bytes(const sni_quantizer *q) {
    uint64_t sum = 0;
    for (size_t i = 0; i < q->n_layers; i++) {
        const sni_qlayer *l = &q->layers[i];
        sn_quantize_to p =
            l->precision == SN_QUANTIZE_TO_INT8_DYNAMIC ? SN_QUANTIZE_TO_INT8 : l->precision;
        uint64_t made = l->made[p].bytes;
        sum += p == SN_QUANTIZE_TO_FLOAT || !made ? l->bytes : made;
    }
    return sum;
}

sn_status sni_q_report_trial(sni_quantizer *q, const char *what, double loss, uint64_t ns) {
    sn_quantize_report *r = q->report;
    if (r->n_trials == r->trial_capacity) {
        size_t capacity = r->trial_capacity * 2 + 16;
        sn_quantize_trial *grown = realloc(r->trials, capacity * sizeof *grown);
        if (!grown) return sni_fail_memory(q->err);
        r->trials = grown;
        r->trial_capacity = capacity;
    }
    sni_str text = sni_arena_str(&r->arena, sni_str_of(what));
    if (!text.p) return sni_fail_memory(q->err);
    r->trials[r->n_trials++] = (sn_quantize_trial){text.p, loss, ns, sni_q_bytes(q)};
    return SN_OK;
}

static sn_status copy_observed(const sni_quantizer *q, const sni_qlayer *l, sn_quantize_report *r,
                               sn_quantize_layer *out) {
    const sni_observer *o = l->x >= 0 ? q->seen[l->x] : NULL;
    if (!o || !o->count) return SN_OK;
    sni_qparams p = sni_q_params(q, l->x);
    uint64_t *bins = SNI_NEW_ARRAY(&r->arena, uint64_t, SNI_OBSERVER_BINS);
    if (!bins) return sni_fail_memory(q->err);
    memcpy(bins, o->bins, sizeof o->bins);
    out->low = p.low;
    out->high = p.high;
    out->seen_low = (float)o->from;
    out->seen_high = (float)(o->from + o->width * SNI_OBSERVER_BINS);
    out->histogram = bins;
    out->bins = SNI_OBSERVER_BINS;
    return SN_OK;
}

/* Why a layer stayed as it was, where that is known. */
static const char *note_of(const sni_quantizer *q, const sni_qlayer *l) {
    bool whole = q->o.to == SN_QUANTIZE_TO_FP16 || q->o.to == SN_QUANTIZE_TO_BF16;
    if (l->note[0] || l->precision != SN_QUANTIZE_TO_FLOAT || whole || q->pruning) return l->note;
    if (q->o.to == SN_QUANTIZE_TO_MIXED || l->can >> q->o.to & 1) return "";
    return "it has no form of this precision";
}

static sn_status copy_layer(const sni_quantizer *q, const sni_qlayer *l, sn_quantize_report *r,
                            sn_quantize_layer *out) {
    sni_str name = sni_arena_str(&r->arena, sni_str_of(l->name));
    sni_str op = sni_arena_str(&r->arena, sni_str_of(l->op));
    sni_str note = sni_arena_str(&r->arena, sni_str_of(note_of(q, l)));
    if (!name.p || !op.p || !note.p) return sni_fail_memory(q->err);
    sn_quantize_to p = l->precision,
                   made = p == SN_QUANTIZE_TO_INT8_DYNAMIC ? SN_QUANTIZE_TO_INT8 : p;
    *out = (sn_quantize_layer){.name = name.p,
                               .op = op.p,
                               .note = note.p,
                               .precision = q->pruning ? SN_QUANTIZE_TO_FLOAT : p,
                               .loss = l->losses[p],
                               .ns_before = l->ns[SN_QUANTIZE_TO_FLOAT],
                               .ns_after = l->ns[p],
                               .bytes_before = l->bytes,
                               .bytes_after = l->bytes,
                               .weight_error = -1,
                               .sparsity = l->sparsity};
    if (p != SN_QUANTIZE_TO_FLOAT && l->made[made].bytes) out->bytes_after = l->made[made].bytes;
    if (p != SN_QUANTIZE_TO_FLOAT && l->made[made].data) out->weight_error = l->made[made].error;
    /* A layer that stayed shows what quantising it would have cost. */
    for (int i = 1; i < SNI_PRECISIONS && out->loss < 0; i++) out->loss = l->losses[i];
    return copy_observed(q, l, r, out);
}

sn_status sni_q_report_fill(sni_quantizer *q) {
    static const char *const methods[] = {"", "min-max", "percentile", "entropy", "mse"};
    sn_quantize_report *r = q->report;
    r->layers = SNI_NEW_ARRAY(&r->arena, sn_quantize_layer, q->n_layers + 1);
    if (!r->layers) return sni_fail_memory(q->err);
    sn_quantize_summary *s = &r->summary;
    double zeros = 0, all = 0;
    for (size_t i = 0; i < q->n_layers; i++) {
        const sni_qlayer *l = &q->layers[i];
        SN_TRY(copy_layer(q, l, r, &r->layers[i]));
        s->quantized_count += q->pruning ? l->sparsity > 0 : l->precision != SN_QUANTIZE_TO_FLOAT;
        s->bytes_before += l->bytes;
        zeros += l->sparsity * (double)(l->n * l->k);
        all += (double)(l->n * l->k);
    }
    r->n_layers = s->layer_count = q->n_layers;
    s->bytes_after = sni_q_bytes(q);
    s->sample_count = q->samples.count;
    s->calibration = methods[q->choice.calibration];
    s->smoothed = q->smoothed != NULL;
    s->bias_corrected = q->choice.correct;
    s->sparsity = all > 0 ? zeros / all : 0;
    return SN_OK;
}
