/* SqueezeExcite: factors of channels from the means of a blocked picture's channels. */
#include "base/checked.h"
#include "ops/sinter/blocked.h"
#include "ops/core/compute.h"
#include "ops/core/shape_util.h"

enum { X, W, B, V, D }; /* inputs */

static sn_status squeeze_prepare(void *params, sni_arena *arena, sn_error *err) {
    sni_squeeze_params *p = params;
    (void)arena;
    SN_TRY(sni_fused_activation_list(p->squeeze.name, &p->squeeze.coefficients,
                                     &p->squeeze.activation, err));
    return sni_fused_activation_list(p->excite.name, &p->excite.coefficients, &p->excite.activation,
                                     err);
}

/* ---- Inference ---- */

/* Weights `w` are (M,C,1,1), and their bias, if it is given, (M). */
static sn_status check_pair(sni_infer *c, int w, int bias) {
    sni_dim dim;
    if (sni_infer_rank(c, w) != 4)
        return SNI_INFER_FAIL(c, "input %d has rank %d, not 4", w, sni_infer_rank(c, w));
    for (int i = 2; i < 4; i++)
        if (sni_dim_differ(sni_infer_dim(c, w, i), 1))
            return SNI_INFER_FAIL(c, "input %d is not that of a pointwise convolution", w);
    if (!sni_infer_shaped(c, bias)) return SN_OK;
    if (sni_infer_rank(c, bias) != 1)
        return SNI_INFER_FAIL(c, "input %d has rank %d, not 1", bias, sni_infer_rank(c, bias));
    return sni_infer_join_dim(c, "weights and bias", 0, sni_infer_dim(c, w, 0),
                              sni_infer_dim(c, bias, 0), &dim);
}

static sn_status squeeze_infer(sni_infer *c) {
    const sni_squeeze_params *p = c->params;
    sni_dim plain[4], dim;
    SN_TRY(sni_infer_block(c, p->block));
    if (!sni_infer_shaped(c, X) || !sni_infer_shaped(c, W) || !sni_infer_shaped(c, V)) return SN_OK;
    SN_TRY(check_pair(c, W, B));
    SN_TRY(check_pair(c, V, D));
    SN_TRY(sni_infer_join_dim(c, "the two products", 0, sni_infer_dim(c, W, 0),
                              sni_infer_dim(c, V, 1), &dim));
    SN_TRY(sni_infer_unblocked(c, X, p->block, sni_infer_dim(c, W, 1), plain));
    plain[1] = sni_infer_dim(c, V, 0);
    plain[2] = plain[3] = 1;
    return sni_infer_set_blocked(c, plain, p->block);
}

static int64_t squeeze_macs(const sni_infer *c) {
    if (!sni_infer_shaped(c, X) || !sni_infer_shaped(c, W) || !sni_infer_shaped(c, V)) return -1;
    const sni_dim *x = c->in[X]->dims, *w = c->in[W]->dims, *v = c->in[V]->dims;
    const sni_dim first[3] = {x[0], w[0], w[1]}, second[3] = {x[0], v[0], v[1]};
    int64_t a, b;
    if (!sni_shape_count(3, first, &a) || !sni_shape_count(3, second, &b) || !sni_add_i64(a, b, &a))
        return -1;
    return a;
}

/* ---- The reference ---- */

/* y (n,M) = W x + b for x (n,C). */
static void multiply(const float *x, const sni_tensor *w, const sni_tensor *b, int64_t n,
                     float *y) {
    int64_t m = w->dims[0], channels = w->dims[1];
    for (int64_t i = 0; i < n * m; i++) {
        const float *row = (const float *)w->data + i % m * channels;
        double sum = b ? (double)((const float *)b->data)[i % m] : 0;
        for (int64_t c = 0; c < channels; c++)
            sum += (double)x[i / m * channels + c] * (double)row[c];
        y[i] = (float)sum;
    }
}

static sn_status squeeze_ref(sni_kernel *k) {
    const sni_squeeze_params *p = k->params;
    const sni_tensor *x = sni_in(k, X), *w = sni_in(k, W), *v = sni_in(k, V), *y = sni_out(k, 0);
    int64_t n = x->dims[0], channels = w->dims[1], pixels = x->dims[2] * x->dims[3];
    void *plain, *means, *mid, *result;
    if (y->count == 0) return SN_OK;
    SN_TRY(sni_scratch_matrix(k, n * channels, pixels, sizeof(float), &plain));
    SN_TRY(sni_scratch_matrix(k, n, channels, sizeof(float), &means));
    SN_TRY(sni_scratch_matrix(k, n, w->dims[0], sizeof(float), &mid));
    SN_TRY(sni_scratch_matrix(k, n, v->dims[0], sizeof(float), &result));
    if (x->count) sni_from_blocked(x->data, plain, n, channels, pixels, p->block);
    sni_plain_means(plain, means, n * channels, pixels);
    multiply(means, w, sni_in(k, B), n, mid);
    sni_activate(&p->squeeze.activation, SN_FLOAT32, mid, NULL, n * w->dims[0], k->threads);
    multiply(mid, v, sni_in(k, D), n, result);
    sni_activate(&p->excite.activation, SN_FLOAT32, result, NULL, n * v->dims[0], k->threads);
    sni_to_blocked(result, y->data, n, v->dims[0], 1, p->block);
    return SN_OK;
}

const sni_op sni_op_sinter_SqueezeExcite = {
    .name = "SqueezeExcite",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"B", "T", SNI_OPTIONAL}, {"V", "T"},
                          {"D", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"F", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32)}),
    .params = SNI_PARAMS(
        {"block", SNI_ATTR_INT, offsetof(sni_squeeze_params, block), .required = true},
        {"squeeze_activation", SNI_ATTR_STRING, offsetof(sni_squeeze_params, squeeze.name)},
        {"squeeze_params", SNI_ATTR_FLOATS, offsetof(sni_squeeze_params, squeeze.coefficients)},
        {"excite_activation", SNI_ATTR_STRING, offsetof(sni_squeeze_params, excite.name)},
        {"excite_params", SNI_ATTR_FLOATS, offsetof(sni_squeeze_params, excite.coefficients)}),
    .params_size = sizeof(sni_squeeze_params),
    .prepare = squeeze_prepare,
    .infer = squeeze_infer,
    .ref = squeeze_ref,
    .macs = squeeze_macs,
};
