/* forms.c - models of the precisions that have been chosen. */
#include "quantize/quantize.h"

static sn_status change(sni_quantizer *q, sni_graph *g, sn_error *err) {
    if (q->pruning) return sni_q_pruned(q, g, err);
    if (q->o.to == SN_QUANTIZE_TO_FP16) return sni_q_half(q, SN_FLOAT16, g, err);
    if (q->o.to == SN_QUANTIZE_TO_BF16) return sni_q_half(q, SN_BFLOAT16, g, err);
    SN_TRY(sni_q_static(q, g, err));
    SN_TRY(sni_q_dynamic(q, g, err));
    return sni_q_low_bits(q, g, err);
}

sn_status sni_q_build(sni_quantizer *q, sn_model **out, sn_error *err) {
    sni_graph *g;
    SN_TRY(sni_q_copy(q, &g, err));
    sn_status status = change(q, g, err);
    if (status == SN_OK) return sni_q_model(q, g, out, err);
    sni_store_release(g->store);
    return status;
}
