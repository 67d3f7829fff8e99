/* linear_ml.c - LinearClassifier and LinearRegressor over float32 features: a matrix product with
 * packed coefficients. The reference kernels turn scores into labels and probabilities. */
#include "ops/ml/linear_ml.h"

#include "cpu/attention/attend.h"
#include "cpu/gemm/dense.h"

#include <stdlib.h>

static bool accepts(const sni_choice *c) {
    sni_linear_ml l;
    return sni_choice_is(c, 0, SN_FLOAT32) && sni_linear_ml_of(c->node->op, c->params, &l);
}

static sn_status prepare(const sni_choice *c, void **state, sn_error *err) {
    sni_linear_ml l;
    bool filled;
    if (!sni_linear_ml_of(c->node->op, c->params, &l))
        return sni_fail(err, SN_INTERNAL, "coefficients of unknown size");
    sni_dense p = {.k = l.features, .n = l.outputs};
    SN_TRY(sni_cpu_floats(c, sni_gemm_packed_b_size(p.k, p.n), &p.panels, &filled, err));
    if (!filled)
        sni_gemm_pack_b((const sni_unaligned_float *)l.coefficients, 1, p.k, p.k, p.n, p.panels);
    return sni_cpu_keep(&p, sizeof p, state, err);
}

/* Few rows and outputs: dot products with the unpacked coefficients, as panels would be mostly
 * zeros. False: not such a case. */
static bool multiply_few(sni_kernel *k, int64_t rows, float *sums) {
    const sni_cpu_kernels *kernels = sni_cpu_kernels_get();
    sni_linear_ml l;
    if (rows >= kernels->mr || !sni_linear_ml_of(k->node->op, k->params, &l) ||
        2 * l.outputs > kernels->nr)
        return false;
    const float *x = sni_in(k, 0)->data;
    for (int64_t r = 0; r < rows; r++)
        kernels->attend->dot_rows(x + r * l.features, l.coefficients, l.features, l.outputs,
                                  l.features, sums + r * l.outputs);
    return true;
}

static sn_status multiply(sni_kernel *k, int64_t rows, float *sums) {
    const sni_dense *w = k->state;
    if (rows == 0 || multiply_few(k, rows, sums)) return SN_OK;
    sni_gemm_f32 g = {.m = rows,
                      .n = w->n,
                      .k = w->k,
                      .a = sni_in(k, 0)->data,
                      .a_row = w->k,
                      .a_col = 1,
                      .packed_b = w->panels,
                      .c = sums,
                      .c_row = w->n};
    return sni_dense_run(k, &g);
}

static sn_status run(sni_kernel *k) {
    return sni_linear_ml_run(k, multiply);
}

const sni_impl sni_cpu_linear_classifier = {
    .name = "linear_f32",
    .op = "LinearClassifier",
    .domain = "ai.onnx.ml",
    .accepts = accepts,
    .prepare = prepare,
    .release = free,
    .run = run,
};

const sni_impl sni_cpu_linear_regressor = {
    .name = "linear_f32",
    .op = "LinearRegressor",
    .domain = "ai.onnx.ml",
    .accepts = accepts,
    .prepare = prepare,
    .release = free,
    .run = run,
};
