/* Conv: convolution over any number of spatial axes, with groups, dilations and padding; and
 * FusedConv, which adds a tensor and applies an activation. */
#include "ops/core/compute.h"
#include "ops/nn/fused.h"
#include "ops/core/shape_util.h"

static sn_status conv_infer(sni_infer *c) {
    return sni_infer_conv(c, 0, 1, 2);
}

static int64_t conv_macs(const sni_infer *c) {
    return sni_conv_macs(c, 0, 1);
}

/* y = f(conv(x, w) + b + z); b, z and the slopes s may be NULL. */
static sn_status run_conv(sni_kernel *k, const sni_tensor *z, const sni_activation *f,
                          const sni_tensor *s) {
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1), *b = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    const void *bias, *more, *slopes;
    sni_conv conv = {.x_dtype = dtype, .add = b != NULL};
    SN_TRY(sni_conv_init(k, &conv, x, w, y));
    SN_TRY(sni_in_as(k, x, dtype, &conv.x));
    SN_TRY(sni_in_as(k, w, dtype, &conv.w));
    SN_TRY(sni_in_as(k, b, dtype, &bias));
    SN_TRY(sni_in_as(k, z, dtype, &more));
    SN_TRY(sni_in_as(k, s, dtype, &slopes));
    SN_TRY(sni_out_as(k, y, dtype, &conv.y));
    if (bias && y->count > 0)
        sni_fill_channels(conv.y, bias, conv.batch, conv.out_channels,
                          sni_tensor_span(y, 2, y->rank), sni_dtype_width(dtype));
    SN_TRY(sni_conv_run(k, &conv));
    sni_activate(f, dtype, conv.y, more, y->count, k->threads);
    if (slopes && y->count > 0)
        sni_fused_bend(dtype, conv.y, slopes, conv.batch, conv.out_channels,
                       sni_tensor_span(y, 2, y->rank));
    sni_out_done(k, y, dtype, conv.y);
    return SN_OK;
}

static sn_status conv_ref(sni_kernel *k) {
    return run_conv(k, NULL, &(sni_activation){.kind = SNI_FN_NONE}, NULL);
}

const sni_op sni_op_Conv = {
    .name = "Conv",
    .versions = SNI_VERSIONS(1, 11, 22),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"B", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_CONV_PARAMS,
    .params_size = sizeof(sni_fused_conv_params), /* without an activation: rows run both */
    .infer = conv_infer,
    .ref = conv_ref,
    .macs = conv_macs,
};

sn_status sni_fused_activation(sni_str name, const float *alpha, const float *beta,
                               sni_activation *out, sn_error *err) {
    sni_activation f = sni_activation_named(name);
    if (f.kind == SNI_FN_COUNT)
        return sni_fail(err, SN_INVALID_MODEL, "unknown activation '%.*s'", SNI_FMT(name));
    if (alpha) f.alpha = *alpha;
    if (beta) f.beta = *beta;
    *out = f;
    return SN_OK;
}

sn_status sni_fused_activation_list(sni_str name, const sni_floats *coefficients,
                                    sni_activation *out, sn_error *err) {
    const sni_floats *c = coefficients;
    SN_TRY(sni_fused_activation(name, c->n > 0 ? &c->v[0] : NULL, c->n > 1 ? &c->v[1] : NULL, out,
                                err));
    int most = sni_activation_parameters(out->kind);
    if (c->n > (size_t)most)
        return sni_fail(err, SN_INVALID_MODEL, "%zu activation_params for '%.*s', which takes %d",
                        c->n, SNI_FMT(name), most);
    return SN_OK;
}

sn_status sni_infer_slopes(sni_infer *c, int i, sni_dim channels, const sni_activation *f) {
    sni_dim dim;
    if (!sni_infer_given(c, i)) return SN_OK;
    if (f->kind != SNI_FN_NONE) return SNI_INFER_FAIL(c, "slopes besides another activation");
    if (!sni_infer_shaped(c, i)) return SN_OK;
    if (sni_infer_rank(c, i) != 1)
        return SNI_INFER_FAIL(c, "slopes of rank %d, not 1", sni_infer_rank(c, i));
    return sni_infer_join_dim(c, "slopes and weights", 0, channels, sni_infer_dim(c, i, 0), &dim);
}

void sni_fused_bend(sn_dtype dtype, void *y, const void *slopes, int64_t n, int64_t channels,
                    int64_t inner) {
    float *a = y;
    double *b = y;
    for (int64_t i = 0; i < n * channels; i++)
        for (int64_t x = i * inner; x < (i + 1) * inner; x++)
            if (dtype == SN_FLOAT32)
                a[x] = a[x] < 0 ? a[x] * ((const float *)slopes)[i % channels] : a[x];
            else
                b[x] = b[x] < 0 ? b[x] * ((const double *)slopes)[i % channels] : b[x];
}

sn_status sni_fused_conv_prepare(void *params, sni_arena *arena, sn_error *err) {
    sni_fused_conv_params *p = params;
    (void)arena;
    return sni_fused_activation_list(p->name, &p->coefficients, &p->activation, err);
}

static sn_status fused_infer(sni_infer *c) {
    const sni_fused_conv_params *p = c->params;
    SN_TRY(sni_infer_conv(c, 0, 1, 2));
    if (sni_infer_shaped(c, 1))
        SN_TRY(sni_infer_slopes(c, 4, sni_infer_dim(c, 1, 0), &p->activation));
    if (!c->out[0].has_shape || !sni_infer_shaped(c, 3)) return SN_OK;
    sni_dim dims[SN_MAX_RANK];
    int rank = c->out[0].rank;
    if (sni_infer_rank(c, 3) != rank)
        return SNI_INFER_FAIL(c, "Z has rank %d and the convolution %d", sni_infer_rank(c, 3),
                              rank);
    for (int i = 0; i < rank; i++)
        SN_TRY(sni_infer_join_dim(c, "Z and the convolution", i, c->out[0].dims[i],
                                  sni_infer_dim(c, 3, i), &dims[i]));
    return sni_infer_set_shape(c, 0, rank, dims);
}

static sn_status fused_ref(sni_kernel *k) {
    const sni_fused_conv_params *p = k->params;
    return run_conv(k, sni_in(k, 3), &p->activation, sni_in(k, 4));
}

const sni_op sni_op_ms_FusedConv = {
    .name = "FusedConv",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"B", "T", SNI_OPTIONAL},
                          {"Z", "T", SNI_OPTIONAL}, {"S", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(SNI_FUSED_CONV_FIELDS),
    .params_size = sizeof(sni_fused_conv_params),
    .prepare = sni_fused_conv_prepare,
    .infer = fused_infer,
    .ref = fused_ref,
    .macs = conv_macs,
};
