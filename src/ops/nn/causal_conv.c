/* CausalConvWithState: depthwise convolution of each channel along time with its past, whose last
 * part is an output. */
#include "base/threadpool.h"
#include "ops/core/compute.h"

#include <math.h>

typedef struct causal_params {
    int32_t activation; /* 0 none, 1 silu, 2 swish: the same */
} causal_params;

typedef struct causal {
    const void *x, *w, *bias, *past; /* (B,C,L), (C,1,kernel), (C), (B,C,kernel-1) */
    void *y, *present;
    int64_t channels, length, kernel;
    bool silu;
} causal;

#define BODY "ops/nn/causal_conv.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static sn_status causal_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    if (sni_infer_rank(c, 0) != 3 || sni_infer_rank(c, 1) != 3)
        return SNI_INFER_FAIL(c, "input and weight have ranks %d and %d, not 3",
                              sni_infer_rank(c, 0), sni_infer_rank(c, 1));
    sni_dim batch = sni_infer_dim(c, 0, 0), channels = sni_infer_dim(c, 0, 1);
    sni_dim kernel = sni_infer_dim(c, 1, 2);
    if (sni_dim_differ(channels, sni_infer_dim(c, 1, 0)) ||
        sni_dim_differ(1, sni_infer_dim(c, 1, 1)))
        return SNI_INFER_FAIL(c, "the weight is not (channels, 1, kernel) for %lld channels",
                              (long long)channels);
    if (sni_dim_known(kernel) && kernel < 1) return SNI_INFER_FAIL(c, "a kernel of 0 elements");
    sni_dim keep = sni_dim_sub(c->symbols, kernel, 1);
    if (sni_infer_shaped(c, 2) &&
        (sni_infer_rank(c, 2) != 1 || sni_dim_differ(sni_infer_dim(c, 2, 0), channels)))
        return SNI_INFER_FAIL(c, "the bias has not one element for each channel");
    if (sni_infer_shaped(c, 3) &&
        (sni_infer_rank(c, 3) != 3 || sni_dim_differ(sni_infer_dim(c, 3, 0), batch) ||
         sni_dim_differ(sni_infer_dim(c, 3, 1), channels) ||
         sni_dim_differ(sni_infer_dim(c, 3, 2), keep)))
        return SNI_INFER_FAIL(c, "past_state is not (batch, channels, kernel - 1)");
    SN_TRY(sni_infer_set_shape(c, 1, 3, (sni_dim[]){batch, channels, keep}));
    return sni_infer_same(c);
}

static sn_status causal_ref(sni_kernel *k) {
    const causal_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    causal c = {.channels = x->dims[1],
                .length = x->dims[2],
                .kernel = w->dims[2],
                .silu = p->activation != 0};
    SN_TRY(sni_in_as(k, x, dtype, &c.x));
    SN_TRY(sni_in_as(k, w, dtype, &c.w));
    SN_TRY(sni_in_as(k, sni_in(k, 2), dtype, &c.bias));
    SN_TRY(sni_in_as(k, sni_in(k, 3), dtype, &c.past));
    SN_TRY(sni_out_as(k, sni_out(k, 0), dtype, &c.y));
    SN_TRY(sni_out_as(k, sni_out(k, 1), dtype, &c.present));
    if (sni_in(k, 3) && sni_in(k, 3)->count == 0) c.past = NULL;
    if (sni_out(k, 1) && sni_out(k, 1)->count == 0) c.present = NULL;
    sni_parallel_for(k->threads, x->dims[0] * x->dims[1], 4096 / (c.length + 1) + 1,
                     dtype == SN_FLOAT64 ? channels_f64 : channels_f32, &c);
    sni_out_done(k, sni_out(k, 0), dtype, c.y);
    sni_out_done(k, sni_out(k, 1), dtype, c.present);
    return SN_OK;
}

const sni_op sni_op_CausalConvWithState = {
    .name = "CausalConvWithState",
    .versions = SNI_VERSIONS(27),
    .inputs = SNI_FORMALS({"input", "T"}, {"weight", "T"}, {"bias", "T", SNI_OPTIONAL},
                          {"past_state", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"present_state", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"activation", SNI_ATTR_STRING, offsetof(causal_params, activation),
                          .text = "none", .choices = "none|silu|swish"}),
    .params_size = sizeof(causal_params),
    .infer = causal_infer,
    .ref = causal_ref,
};
