/* act.c - maps the activations of ops/math/activation.h (sni_fn) to those of the vector kernels
 * (sni_act). */
#include "cpu/core/cpu_ep.h"

static const sni_act acts[SNI_FN_COUNT] = {
    [SNI_FN_NONE] = SNI_ACT_NONE,
    [SNI_FN_RELU] = SNI_ACT_RELU,
    [SNI_FN_TANH] = SNI_ACT_TANH,
    [SNI_FN_SIGMOID] = SNI_ACT_SIGMOID,
    [SNI_FN_AFFINE] = SNI_ACT_AFFINE,
    [SNI_FN_LEAKY_RELU] = SNI_ACT_LEAKY_RELU,
    [SNI_FN_THRESHOLDED_RELU] = SNI_ACT_THRESHOLDED_RELU,
    [SNI_FN_SCALED_TANH] = SNI_ACT_SCALED_TANH,
    [SNI_FN_HARD_SIGMOID] = SNI_ACT_HARD_SIGMOID,
    [SNI_FN_ELU] = SNI_ACT_ELU,
    [SNI_FN_CELU] = SNI_ACT_CELU,
    [SNI_FN_SELU] = SNI_ACT_SELU,
    [SNI_FN_SOFTSIGN] = SNI_ACT_SOFTSIGN,
    [SNI_FN_SOFTPLUS] = SNI_ACT_SOFTPLUS,
    [SNI_FN_PARAMETRIC_SOFTPLUS] = SNI_ACT_SOFTPLUS,
    [SNI_FN_CLIP] = SNI_ACT_CLIP,
    [SNI_FN_HARD_SWISH] = SNI_ACT_HARD_SWISH,
    [SNI_FN_SILU] = SNI_ACT_SILU,
    [SNI_FN_GELU] = SNI_ACT_GELU,
    [SNI_FN_FAST_GELU] = SNI_ACT_GELU_TANH,
    [SNI_FN_MISH] = SNI_ACT_MISH,
};

bool sni_cpu_act(const sni_activation *f, sni_act *act, float *p0, float *p1) {
    *act = acts[f->kind];
    *p0 = f->alpha;
    *p1 = f->beta;
    if (f->kind == SNI_FN_SOFTPLUS) *p0 = *p1 = 1;
    return f->kind == SNI_FN_NONE || *act != SNI_ACT_NONE;
}
