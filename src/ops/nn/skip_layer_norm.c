/* SkipLayerNormalization and SkipSimplifiedLayerNormalization: the input, a residual and a bias
 * added up, and every row of the sum normalised. */
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/nn/layer_norm.h"
#include "ops/core/shape_util.h"

typedef struct skip_params {
    float epsilon;
} skip_params;

/* y = x + skip + bias, row by row; the rows of skip repeat. */
typedef struct skip_sum {
    const void *x, *skip, *bias; /* bias: (n), or NULL */
    void *y;
    int64_t n, skip_rows;
} skip_sum;

#define BODY "ops/nn/skip_layer_norm.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* Skip is the input's shape, or that of its last axes, perhaps with axes of 1 in front. */
static sn_status check_skip(sni_infer *c) {
    if (!sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 0), own = sni_infer_rank(c, 1);
    bool repeated = false; /* axes in front of here are repeated */
    if (own < 1 || own > rank)
        return SNI_INFER_FAIL(c, "skip has rank %d where the input has %d", own, rank);
    for (int i = own - 1; i >= 0; i--) {
        sni_dim d = sni_infer_dim(c, 1, i), x = sni_infer_dim(c, 0, rank - own + i);
        if (!sni_dim_differ(d, x) && !(repeated && d != 1)) continue;
        if (d != 1 || i == own - 1)
            return SNI_INFER_FAIL(c, "skip has size %lld in axis %d, and the input %lld",
                                  (long long)d, i, (long long)x);
        repeated = true;
    }
    return SN_OK;
}

static sn_status skip_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    sni_dim dims[SN_MAX_RANK];
    if (rank < 1) return SNI_INFER_FAIL(c, "the input is a scalar");
    sni_infer_get_dims(c, 0, dims);
    SN_TRY(check_skip(c));
    for (int i = 2; i < c->n_in; i++)
        if (sni_infer_shaped(c, i) &&
            (sni_infer_rank(c, i) != 1 || sni_dim_differ(sni_infer_dim(c, i, 0), dims[rank - 1])))
            return SNI_INFER_FAIL(c, "input %d has not one element for each of a row's", i);
    SN_TRY(sni_infer_set_shape(c, 3, rank, dims));
    dims[rank - 1] = 1;
    SN_TRY(sni_infer_set_shape(c, 1, rank, dims));
    SN_TRY(sni_infer_set_shape(c, 2, rank, dims));
    return sni_infer_same(c);
}

static sn_status run_skip(sni_kernel *k, const sni_tensor *shift, const sni_tensor *bias,
                          bool centered) {
    const skip_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *skip = sni_in(k, 1);
    sni_tensor *outs[4] = {sni_out(k, 0), sni_out(k, 1), sni_out(k, 2), sni_out(k, 3)};
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    int64_t n = x->dims[x->rank - 1];
    skip_sum s = {.n = n, .skip_rows = n ? skip->count / n : 0};
    sni_row_norm norm = {.n = n, .epsilon = p->epsilon, .centered = centered};
    SN_TRY(sni_in_as(k, x, dtype, &s.x));
    SN_TRY(sni_in_as(k, skip, dtype, &s.skip));
    SN_TRY(sni_in_as(k, bias, dtype, &s.bias));
    if (outs[3])
        SN_TRY(sni_out_as(k, outs[3], dtype, &s.y));
    else
        SN_TRY(sni_scratch_array(k, x->count, sni_dtype_width(dtype), &s.y));
    SN_TRY(sni_in_as(k, sni_in(k, 2), dtype, &norm.scale.data));
    SN_TRY(sni_in_as(k, shift, dtype, &norm.shift.data));
    SN_TRY(sni_out_as(k, outs[0], dtype, &norm.y));
    SN_TRY(sni_out_as(k, outs[1], dtype, &norm.mean));
    SN_TRY(sni_out_as(k, outs[2], dtype, &norm.inverse));
    norm.x = s.y;
    int64_t rows = sni_tensor_span(x, 0, x->rank - 1);
    sni_parallel_for(k->threads, n ? rows : 0, 16384 / (n + 1) + 1,
                     dtype == SN_FLOAT64 ? add_rows_f64 : add_rows_f32, &s);
    sni_normalize(k, dtype, rows, &norm);
    sni_out_done(k, outs[0], dtype, norm.y);
    sni_out_done(k, outs[1], dtype, norm.mean);
    sni_out_done(k, outs[2], dtype, norm.inverse);
    sni_out_done(k, outs[3], dtype, s.y);
    return SN_OK;
}

static sn_status skip_layer_norm_ref(sni_kernel *k) {
    return run_skip(k, sni_in(k, 3), sni_in(k, 4), true);
}

static sn_status skip_rms_norm_ref(sni_kernel *k) {
    return run_skip(k, NULL, sni_in(k, 3), false);
}

#define SKIP_OUTPUTS                                                \
    SNI_FORMALS({"output", "T"}, {"mean", "float32", SNI_OPTIONAL}, \
                {"inv_std_var", "float32", SNI_OPTIONAL},           \
                {"input_skip_bias_sum", "T", SNI_OPTIONAL})
#define SKIP_PARAMS \
    SNI_PARAMS({"epsilon", SNI_ATTR_FLOAT, offsetof(skip_params, epsilon), .number = 1e-12})

const sni_op sni_op_ms_SkipLayerNormalization = {
    .name = "SkipLayerNormalization",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input", "T"}, {"skip", "T"}, {"gamma", "T"},
                          {"beta", "T", SNI_OPTIONAL}, {"bias", "T", SNI_OPTIONAL}),
    .outputs = SKIP_OUTPUTS,
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SKIP_PARAMS,
    .params_size = sizeof(skip_params),
    .infer = skip_infer,
    .ref = skip_layer_norm_ref,
};

const sni_op sni_op_ms_SkipSimplifiedLayerNormalization = {
    .name = "SkipSimplifiedLayerNormalization",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs =
        SNI_FORMALS({"input", "T"}, {"skip", "T"}, {"gamma", "T"}, {"bias", "T", SNI_OPTIONAL}),
    .outputs = SKIP_OUTPUTS,
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SKIP_PARAMS,
    .params_size = sizeof(skip_params),
    .infer = skip_infer,
    .ref = skip_rms_norm_ref,
};
