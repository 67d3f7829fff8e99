/* activation.c - activation functions by name, and over rows. */
#include "ops/math/activation.h"

#include "base/threadpool.h"
#include "ops/core/tensor_util.h"

#include <float.h>
#include <strings.h>

enum { GRAIN = 16384 }; /* elements worth a thread */

/* In the order of sni_fn: with the defaults of their parameters. */
static const struct {
    const char *name;
    int parameters;
    float alpha, beta;
} functions[SNI_FN_COUNT] = {
    [SNI_FN_NONE] = {"", 0, 0, 0},
    [SNI_FN_RELU] = {"Relu", 0, 0, 0},
    [SNI_FN_TANH] = {"Tanh", 0, 0, 0},
    [SNI_FN_SIGMOID] = {"Sigmoid", 0, 0, 0},
    [SNI_FN_AFFINE] = {"Affine", 2, 1, 0},
    [SNI_FN_LEAKY_RELU] = {"LeakyRelu", 1, 0.01f, 0},
    [SNI_FN_THRESHOLDED_RELU] = {"ThresholdedRelu", 1, 1, 0},
    [SNI_FN_SCALED_TANH] = {"ScaledTanh", 2, 1, 1},
    [SNI_FN_HARD_SIGMOID] = {"HardSigmoid", 2, 0.2f, 0.5f},
    [SNI_FN_ELU] = {"Elu", 1, 1, 0},
    [SNI_FN_CELU] = {"Celu", 1, 1, 0},
    [SNI_FN_SELU] = {"Selu", 2, 1.67326319f, 1.05070102f},
    [SNI_FN_SOFTSIGN] = {"Softsign", 0, 0, 0},
    [SNI_FN_SOFTPLUS] = {"Softplus", 0, 0, 0},
    [SNI_FN_PARAMETRIC_SOFTPLUS] = {"ParametricSoftplus", 2, 1, 1},
    [SNI_FN_CLIP] = {"Clip", 2, -FLT_MAX, FLT_MAX},
    [SNI_FN_HARD_SWISH] = {"HardSwish", 0, 0, 0},
    [SNI_FN_SILU] = {"Silu", 0, 0, 0},
    [SNI_FN_GELU] = {"Gelu", 0, 0, 0},
    [SNI_FN_FAST_GELU] = {"FastGelu", 0, 0, 0},
    [SNI_FN_MISH] = {"Mish", 0, 0, 0},
};

static bool is_named(sni_str name, const char *text) {
    return name.n == strlen(text) && (name.n == 0 || strncasecmp(name.p, text, name.n) == 0);
}

sni_activation sni_activation_named(sni_str name) {
    for (int i = 0; i < SNI_FN_COUNT; i++)
        if (is_named(name, functions[i].name) ||
            (i == SNI_FN_FAST_GELU && is_named(name, "GeluTanh")))
            return (sni_activation){(sni_fn)i, functions[i].alpha, functions[i].beta};
    return (sni_activation){.kind = SNI_FN_COUNT};
}

int sni_activation_parameters(sni_fn kind) {
    return functions[kind].parameters;
}

#define BODY "ops/math/activation_run.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

typedef struct act_job {
    const sni_activation *f;
    sn_dtype dtype;
    void *y;
    const void *more;
} act_job;

static void act_piece(void *ctx, int64_t begin, int64_t end) {
    const act_job *j = ctx;
    size_t width = sni_dtype_width(j->dtype);
    void *y = sni_element(j->y, begin, width);
    const void *more = j->more ? sni_element(j->more, begin, width) : NULL;
    if (j->dtype == SN_FLOAT64)
        activate_f64(j->f, y, more, end - begin);
    else
        activate_f32(j->f, y, more, end - begin);
}

void sni_activate(const sni_activation *f, sn_dtype dtype, void *y, const void *more, int64_t n,
                  int threads) {
    if (n == 0 || (f->kind == SNI_FN_NONE && !more)) return;
    act_job job = {f, dtype, y, more};
    sni_parallel_for(threads, n, GRAIN, act_piece, &job);
}
