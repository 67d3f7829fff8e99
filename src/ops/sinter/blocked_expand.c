/* ExpandDepthwise: a pointwise convolution and the depthwise one that follows it. */
#include "base/checked.h"
#include "ops/sinter/blocked.h"
#include "ops/core/compute.h"
#include "ops/core/shape_util.h"

enum { X, W, B, V, D }; /* inputs */

static sn_status expand_prepare(void *params, sni_arena *arena, sn_error *err) {
    sni_expand_params *p = params;
    SN_TRY(sni_fused_conv_prepare(params, arena, err));
    return sni_fused_activation_list(p->name, &p->coefficients, &p->activation, err);
}

/* ---- Inference ---- */

static sn_status check_weights(sni_infer *c) {
    sni_dim dim;
    for (int i = W; i <= V; i += V - W)
        if (sni_infer_rank(c, i) != 4)
            return SNI_INFER_FAIL(c, "input %d has rank %d, not 4", i, sni_infer_rank(c, i));
    for (int i = 2; i < 4; i++)
        if (sni_dim_differ(sni_infer_dim(c, W, i), 1))
            return SNI_INFER_FAIL(c, "the first convolution is not pointwise");
    if (sni_dim_differ(sni_infer_dim(c, V, 1), 1))
        return SNI_INFER_FAIL(c, "the second convolution is not depthwise");
    SN_TRY(sni_infer_join_dim(c, "the two convolutions", 0, sni_infer_dim(c, W, 0),
                              sni_infer_dim(c, V, 0), &dim));
    if (!sni_infer_shaped(c, B)) return SN_OK;
    if (sni_infer_rank(c, B) != 1)
        return SNI_INFER_FAIL(c, "B has rank %d, not 1", sni_infer_rank(c, B));
    return sni_infer_join_dim(c, "W and B", 0, sni_infer_dim(c, W, 0), sni_infer_dim(c, B, 0),
                              &dim);
}

/* The plain shape of the input. */
static sn_status expand_input(sni_infer *c, sni_dim dims[4], bool *known) {
    const sni_expand_params *p = c->params;
    sni_dim dim;
    *known = true;
    if (!p->indirect.indices.n) {
        if (c->n_in > SNI_EXPAND_MORE)
            return SNI_INFER_FAIL(c, "%d inputs without indices", c->n_in);
        return sni_infer_unblocked(c, X, p->block, sni_infer_dim(c, W, 1), dims);
    }
    SN_TRY(sni_infer_indirect(c, &p->indirect, SNI_EXPAND_MORE, p->block, dims, known));
    return *known ? sni_infer_join_dim(c, "indices and W", 1, dims[1], sni_infer_dim(c, W, 1), &dim)
                  : SN_OK;
}

static sn_status expand_infer(sni_infer *c) {
    const sni_expand_params *p = c->params;
    SN_TRY(sni_infer_block(c, p->block));
    if (!sni_infer_shaped(c, X) || !sni_infer_shaped(c, W) || !sni_infer_shaped(c, V)) return SN_OK;
    SN_TRY(check_weights(c));
    sni_dim dims[4];
    bool known;
    SN_TRY(expand_input(c, dims, &known));
    if (!known) return SN_OK;
    dims[1] = sni_infer_dim(c, W, 0);
    sni_type middle = *c->in[X];
    middle.rank = 4;
    middle.dims = dims;
    const sni_type *in[3] = {&middle, c->in[V], sni_infer_given(c, D) ? c->in[D] : NULL};
    sni_infer second = *c;
    second.in = in;
    second.n_in = 3;
    SN_TRY(sni_infer_conv(&second, 0, 1, 2));
    if (!c->out[0].has_shape) return SN_OK;
    SN_TRY(sni_infer_set_means(c, c->out[0].dims, p->block));
    return sni_infer_set_blocked(c, c->out[0].dims, p->block);
}

static int64_t expand_macs(const sni_infer *c) {
    if (!sni_infer_shaped(c, X) || !sni_infer_shaped(c, W) || !sni_infer_shaped(c, V) ||
        !c->out[0].has_shape)
        return -1;
    const sni_dim *y = c->out[0].dims, *x = c->in[X]->dims, *w = c->in[W]->dims,
                  *v = c->in[V]->dims;
    const sni_dim first[5] = {x[0], x[2], x[3], w[0], w[1]};
    const sni_dim second[6] = {y[0], y[2], y[3], v[0], v[2], v[3]};
    int64_t a, b;
    if (!sni_shape_count(5, first, &a) || !sni_shape_count(6, second, &b) || !sni_add_i64(a, b, &a))
        return -1;
    return a;
}

/* ---- The reference ---- */

/* mid (N,M,pixels) of x (N,C,pixels). */
static void expand(sni_kernel *k, const float *x, int64_t n, int64_t pixels, float *mid) {
    const sni_expand_params *p = k->params;
    const sni_tensor *w = sni_in(k, W), *b = sni_in(k, B);
    int64_t m = w->dims[0], channels = w->dims[1];
    for (int64_t i = 0; i < n * m; i++)
        for (int64_t at = 0; at < pixels; at++) {
            double sum = b ? (double)((const float *)b->data)[i % m] : 0;
            const float *from = x + i / m * channels * pixels + at;
            for (int64_t c = 0; c < channels; c++)
                sum += (double)from[c * pixels] *
                       (double)((const float *)w->data)[i % m * channels + c];
            mid[i * pixels + at] = (float)sum;
        }
    sni_activate(&p->activation, SN_FLOAT32, mid, NULL, n * m * pixels, k->threads);
}

static sn_status expand_ref(sni_kernel *k) {
    const sni_expand_params *p = k->params;
    const sni_tensor *x = sni_in(k, X), *w = sni_in(k, W), *v = sni_in(k, V), *d = sni_in(k, D);
    const sni_tensor *y = sni_out(k, 0);
    int64_t n = x->dims[0], channels = w->dims[1], m = w->dims[0];
    int64_t in = x->dims[2] * x->dims[3], out = y->dims[2] * y->dims[3];
    void *plain, *mid, *result;
    if (y->count == 0) return sni_blocked_set_means(k, NULL, n, m, 0, p->block);
    SN_TRY(sni_scratch_matrix(k, n * channels, in, sizeof(float), &plain));
    SN_TRY(sni_scratch_matrix(k, n * m, in, sizeof(float), &mid));
    SN_TRY(sni_scratch_matrix(k, n * m, out, sizeof(float), &result));
    if (p->indirect.indices.n)
        sni_pick_plain(k, &p->indirect, SNI_EXPAND_MORE, p->block, plain);
    else if (x->count)
        sni_from_blocked(x->data, plain, n, channels, in, p->block);
    expand(k, plain, n, in, mid);
    sni_conv conv = {.batch = n,
                     .in_channels = m,
                     .out_channels = m,
                     .groups = p->fused.conv.group,
                     .x_dtype = SN_FLOAT32,
                     .x = mid,
                     .w = v->data,
                     .y = result,
                     .add = d != NULL};
    SN_TRY(sni_blocked_window(k, &conv.window, x, v, y));
    if (d) sni_fill_channels(result, d->data, n, m, out, sizeof(float));
    SN_TRY(sni_conv_run(k, &conv));
    sni_activate(&p->fused.activation, SN_FLOAT32, result, NULL, n * m * out, k->threads);
    sni_to_blocked(result, y->data, n, m, out, p->block);
    return sni_blocked_set_means(k, result, n, m, out, p->block);
}

const sni_op sni_op_sinter_ExpandDepthwise = {
    .name = "ExpandDepthwise",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"B", "T", SNI_OPTIONAL}, {"V", "T"},
                          {"D", "T", SNI_OPTIONAL}, {"More", "T", SNI_VARIADIC}),
    .min_inputs = SNI_MIN_FORMALS,
    .outputs = SNI_FORMALS({"Y", "T"}, {"M", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32)}),
    .params =
        SNI_PARAMS(SNI_FUSED_CONV_FIELDS,
                   {"block", SNI_ATTR_INT, offsetof(sni_expand_params, block), .required = true},
                   {"expand_activation", SNI_ATTR_STRING, offsetof(sni_expand_params, name)},
                   {"expand_params", SNI_ATTR_FLOATS, offsetof(sni_expand_params, coefficients)},
                   SNI_INDIRECT_FIELDS(sni_expand_params, false)),
    .params_size = sizeof(sni_expand_params),
    .prepare = expand_prepare,
    .infer = expand_infer,
    .ref = expand_ref,
    .macs = expand_macs,
};
