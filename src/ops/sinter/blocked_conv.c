/* BlockedConv: FusedConv on blocked tensors. */
#include "ops/sinter/blocked.h"
#include "ops/core/compute.h"
#include "ops/core/shape_util.h"

/* ---- Inference: that of the plain convolution between plain shapes ---- */

static sn_status plain_input(sni_infer *c, int64_t block, sni_type *type, sni_dim dims[4],
                             bool *known) {
    const sni_conv_params *p = c->params;
    const sni_indirect *indirect = &((const sni_blocked_conv_params *)c->params)->indirect;
    *type = *c->in[0];
    *known = true;
    if (sni_infer_rank(c, 0) == 4 && !indirect->indices.n) return SN_OK;
    sni_dim channels = sni_dim_mul(c->symbols, sni_infer_dim(c, 1, 1), p->group);
    if (channels == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    if (indirect->indices.n)
        SN_TRY(sni_infer_indirect(c, indirect, SNI_BLOCKED_CONV_MORE, block, dims, known));
    else
        SN_TRY(sni_infer_unblocked(c, 0, block, channels, dims));
    type->rank = 4;
    type->dims = dims;
    return SN_OK;
}

/* Z must be as the output is. */
static sn_status check_added(sni_infer *c) {
    if (!sni_infer_shaped(c, 3)) return SN_OK;
    sni_dim dim;
    if (sni_infer_rank(c, 3) != 5)
        return SNI_INFER_FAIL(c, "Z has rank %d, not 5", sni_infer_rank(c, 3));
    for (int i = 0; i < 5; i++)
        SN_TRY(sni_infer_join_dim(c, "Z and the convolution", i, c->out[0].dims[i],
                                  sni_infer_dim(c, 3, i), &dim));
    return SN_OK;
}

/* F has a factor for each channel of X, of all images or of each. */
static sn_status check_factors(sni_infer *c, int64_t block, const sni_dim plain[4]) {
    sni_dim dims[4];
    if (!sni_infer_given(c, 5)) return SN_OK;
    if (sni_infer_rank(c, 0) != 5) return SNI_INFER_FAIL(c, "factors of a plain input");
    if (!sni_infer_shaped(c, 5)) return SN_OK;
    SN_TRY(sni_infer_unblocked(c, 5, block, plain[1], dims));
    if (sni_dim_differ(dims[2], 1) || sni_dim_differ(dims[3], 1) ||
        (sni_dim_differ(dims[0], 1) && sni_dim_differ(dims[0], plain[0])))
        return SNI_INFER_FAIL(c, "factors are not one for each channel");
    return SN_OK;
}

static sn_status blocked_conv_infer(sni_infer *c) {
    const sni_blocked_conv_params *p = c->params;
    SN_TRY(sni_infer_block(c, p->block));
    if (p->fused.conv.group < 1)
        return SNI_INFER_FAIL(c, "group is %lld", (long long)p->fused.conv.group);
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    if (sni_infer_rank(c, 1) != 4)
        return SNI_INFER_FAIL(c, "weights of rank %d, not 4", sni_infer_rank(c, 1));
    sni_type x;
    sni_dim dims[4];
    bool known;
    SN_TRY(sni_infer_slopes(c, 4, sni_infer_dim(c, 1, 0), &p->fused.activation));
    if (c->n_in > SNI_BLOCKED_CONV_MORE && !p->indirect.indices.n)
        return SNI_INFER_FAIL(c, "%d inputs without indices", c->n_in);
    SN_TRY(plain_input(c, p->block, &x, dims, &known));
    if (!known) return SN_OK;
    SN_TRY(check_factors(c, p->block, dims));
    const sni_type *in[3] = {&x, c->in[1], sni_infer_given(c, 2) ? c->in[2] : NULL};
    sni_infer plain = *c;
    plain.in = in;
    plain.n_in = 3;
    SN_TRY(sni_infer_conv(&plain, 0, 1, 2));
    if (!c->out[0].has_shape) return SN_OK;
    SN_TRY(sni_infer_set_means(c, c->out[0].dims, p->block));
    SN_TRY(sni_infer_set_blocked(c, c->out[0].dims, p->block));
    return check_added(c);
}

static int64_t blocked_conv_macs(const sni_infer *c) {
    if (!sni_infer_shaped(c, 1) || !c->out[0].has_shape) return -1;
    const sni_dim *y = c->out[0].dims;
    const sni_dim plain[4] = {y[0], sni_infer_dim(c, 1, 0), y[2], y[3]};
    sni_type out = c->out[0];
    sni_infer view = *c;
    out.rank = 4;
    out.dims = plain;
    view.out = &out;
    return sni_conv_macs(&view, 1, 1);
}

/* ---- The reference: plain, convolved, blocked again ---- */

/* A blocked tensor of `channels` channels in plain order, in scratch; a NULL tensor gives NULL. */
static sn_status unblocked(sni_kernel *k, const sni_tensor *t, int64_t channels, int64_t block,
                           void **out) {
    *out = NULL;
    if (!t) return SN_OK;
    int64_t pixels = t->dims[2] * t->dims[3];
    SN_TRY(sni_scratch_matrix(k, t->dims[0] * channels, pixels, sizeof(float), out));
    if (t->count) sni_from_blocked(t->data, *out, t->dims[0], channels, pixels, block);
    return SN_OK;
}

/* x (n, channels, pixels) times the factors of its channels, which are blocked. */
static void stretch(float *x, const sni_tensor *factors, int64_t n, int64_t channels,
                    int64_t pixels) {
    const float *f = factors->data;
    int64_t all = factors->dims[1] * factors->dims[4];
    for (int64_t i = 0; i < n * channels; i++) {
        int64_t image = factors->dims[0] > 1 ? i / channels : 0;
        for (int64_t p = i * pixels; p < (i + 1) * pixels; p++)
            x[p] *= f[image * all + i % channels];
    }
}

static sn_status blocked_conv_ref(sni_kernel *k) {
    const sni_blocked_conv_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1), *b = sni_in(k, 2), *y = sni_out(k, 0);
    int64_t channels = w->dims[1] * p->fused.conv.group, m = w->dims[0];
    int64_t pixels = y->dims[2] * y->dims[3];
    void *plain_x = x->data, *plain_y, *more;
    if (y->count == 0) return sni_blocked_set_means(k, NULL, y->dims[0], m, 0, p->block);
    sni_conv conv = {.batch = x->dims[0],
                     .in_channels = channels,
                     .out_channels = m,
                     .groups = p->fused.conv.group,
                     .x_dtype = SN_FLOAT32,
                     .w = w->data,
                     .add = b != NULL};
    SN_TRY(sni_blocked_window(k, &conv.window, x, w, y));
    if (p->indirect.indices.n) {
        SN_TRY(sni_scratch_matrix(k, conv.batch * channels, x->dims[2] * x->dims[3], sizeof(float),
                                  &plain_x));
        sni_pick_plain(k, &p->indirect, SNI_BLOCKED_CONV_MORE, p->block, plain_x);
    } else if (x->rank == 5) {
        SN_TRY(unblocked(k, x, channels, p->block, &plain_x));
    }
    if (sni_in(k, 5)) stretch(plain_x, sni_in(k, 5), conv.batch, channels, x->dims[2] * x->dims[3]);
    SN_TRY(unblocked(k, sni_in(k, 3), m, p->block, &more));
    SN_TRY(sni_scratch_matrix(k, conv.batch * m, pixels, sizeof(float), &plain_y));
    conv.x = plain_x;
    conv.y = plain_y;
    if (b) sni_fill_channels(plain_y, b->data, conv.batch, m, pixels, sizeof(float));
    SN_TRY(sni_conv_run(k, &conv));
    sni_activate(&p->fused.activation, SN_FLOAT32, plain_y, more, conv.batch * m * pixels,
                 k->threads);
    if (sni_in(k, 4))
        sni_fused_bend(SN_FLOAT32, plain_y, sni_in(k, 4)->data, conv.batch, m, pixels);
    sni_to_blocked(plain_y, y->data, conv.batch, m, pixels, p->block);
    return sni_blocked_set_means(k, plain_y, conv.batch, m, pixels, p->block);
}

const sni_op sni_op_sinter_BlockedConv = {
    .name = "BlockedConv",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"B", "T", SNI_OPTIONAL},
                          {"Z", "T", SNI_OPTIONAL}, {"S", "T", SNI_OPTIONAL},
                          {"F", "T", SNI_OPTIONAL}, {"More", "T", SNI_VARIADIC}),
    .min_inputs = SNI_MIN_FORMALS,
    .outputs = SNI_FORMALS({"Y", "T"}, {"M", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32)}),
    .params = SNI_PARAMS(
        SNI_FUSED_CONV_FIELDS,
        {"block", SNI_ATTR_INT, offsetof(sni_blocked_conv_params, block), .required = true},
        /* of files that were written when nodes said how they may be computed */
        {"winograd", SNI_ATTR_INT, .ignored = true}, {"paired", SNI_ATTR_INT, .ignored = true},
        {"digits", SNI_ATTR_INT, .ignored = true},
        SNI_INDIRECT_FIELDS(sni_blocked_conv_params, false)),
    .params_size = sizeof(sni_blocked_conv_params),
    .inplace = 1u << 3,
    .prepare = sni_fused_conv_prepare,
    .infer = blocked_conv_infer,
    .ref = blocked_conv_ref,
    .macs = blocked_conv_macs,
};
