/* quantize.c - the public function, and what it checks first. */
#include "quantize/quantize.h"

#include "base/cpu.h"

#include <stdlib.h>

void sn_quantize_options_init(sn_quantize_options *options, size_t size) {
    const sn_quantize_options defaults = {
        .size = sizeof defaults, .to = SN_QUANTIZE_TO_INT8, .max_loss = -1, .block_size = 32};
    sni_options_init(options, size, &defaults, sizeof defaults);
}

static sn_status check_options(const sn_quantize_options *o, sn_error *err) {
    int b = o->block_size;
    if (o->to <= SN_QUANTIZE_TO_FLOAT || o->to > SN_QUANTIZE_TO_MIXED)
        return sni_fail(err, SN_INVALID_ARGUMENT, "there is no precision %d to quantise to",
                        (int)o->to);
    if (b != 16 && b != 32 && b != 64 && b != 128 && b != 256)
        return sni_fail(err, SN_INVALID_ARGUMENT, "blocks of %d: 16, 32, 64, 128 or 256", b);
    if ((unsigned)o->metric > SN_METRIC_SCORE || (unsigned)o->calibration > SN_CALIBRATE_MSE ||
        (unsigned)o->target > SN_TARGET_NEON)
        return sni_fail(err, SN_INVALID_ARGUMENT, "there is no such metric, calibration or target");
    if (o->metric == SN_METRIC_SCORE && !o->score)
        return sni_fail(err, SN_INVALID_ARGUMENT, "a score needs a function that tells it");
    if (o->samples && !o->samples->get)
        return sni_fail(err, SN_INVALID_ARGUMENT, "samples without a function that gets them");
    if (o->samples && !o->samples->count)
        return sni_fail(err, SN_INVALID_ARGUMENT, "there are no samples");
    if (!o->samples && (o->max_loss >= 0 || o->to == SN_QUANTIZE_TO_MIXED))
        return sni_fail(err, SN_INVALID_ARGUMENT, "%s cannot be measured without samples",
                        o->max_loss >= 0 ? "a loss" : "mixed precision");
    if ((o->keep_count && !o->keep) || o->threads < 0)
        return sni_fail(err, SN_INVALID_ARGUMENT, "keep is NULL, or threads is below 0");
    return SN_OK;
}

/* Sums of two products of a byte and a weight fit 16 bits if weights have 7: where nothing adds
 * four at once, other runtimes saturate. */
static void choose_target(sni_quantizer *q) {
    sn_quantize_target t = q->o.target;
    sni_isa isa = sni_cpu_isa();
    bool narrow = t == SN_TARGET_AVX2 ||
                  (t == SN_TARGET_THIS && isa >= SNI_ISA_AVX2 && isa < SNI_ISA_AVX512VNNI);
    q->weight_levels = narrow ? 63 : 127;
    q->activation = t == SN_TARGET_NEON ? SN_INT8 : SN_UINT8;
}

sn_status sni_q_begin(sni_quantizer *q, const sn_model *model, const sn_quantize_options *given,
                      sn_error *err) {
    *q = (sni_quantizer){.model = model, .err = err};
    sn_quantize_options_init(&q->o, sizeof q->o);
    SN_TRY(sni_options_read(given, &q->o, sizeof q->o, "sn_quantize_options_init", err));
    SN_TRY(check_options(&q->o, err));
    if (q->o.samples) q->samples = *q->o.samples;
    choose_target(q);
    SN_TRY(sni_q_report_new(&q->report, err));
    SN_TRY(sni_q_open(q));
    return sni_q_state_open(q);
}

static void end(sni_quantizer *q) {
    sni_q_state_close(q);
    if (q->model) sni_q_close(q);
    sn_model_destroy(q->smoothed);
    sn_quantize_report_destroy(q->report);
}

sn_status sni_q_finish(sni_quantizer *q, sn_status status, sn_model *made, sn_model **out,
                       sn_quantize_report **report) {
    bool tell = report && q->report && q->base && (status == SN_OK || status == SN_LIMIT);
    sn_status filled = tell ? sni_q_report_fill(q) : SN_OK;
    if (status == SN_OK) status = filled;
    if (tell && filled == SN_OK) {
        *report = q->report;
        q->report = NULL;
    }
    end(q);
    if (status == SN_OK)
        *out = made;
    else
        sn_model_destroy(made);
    return status;
}

sn_status sn_quantize(const sn_model *model, const sn_quantize_options *options, sn_model **out,
                      sn_quantize_report **report, sn_error *err) {
    if (!model || !out) return sni_fail(err, SN_INVALID_ARGUMENT, "model or out is NULL");
    sni_quantizer q;
    sn_model *made = NULL;
    sn_status status = sni_q_begin(&q, model, options, err);
    if (status == SN_OK) status = sni_q_search(&q, &made);
    return sni_q_finish(&q, status, made, out, report);
}
