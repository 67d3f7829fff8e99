/* DeformConv: a convolution whose taps are moved by offsets, position by position. */
#include "ops/core/compute.h"
#include "ops/nn/conv_core.h"
#include "ops/matmul/matmul_core.h"
#include "ops/core/tensor_util.h"

#include <math.h>

typedef struct deform_params {
    sni_conv_params conv;
    int64_t offset_group;
} deform_params;

typedef struct deform {
    sni_window window;
    int64_t channels, groups, offset_groups, taps, in_plane, out_plane;
    int64_t group_w, group_out; /* elements of a group's weights and output */
    const void *x, *w, *offset, *mask;
    void *y;
    size_t width;
} deform;

#define BODY "ops/nn/deform_conv.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* Input i is (N, offset_group * taps * each, output...). */
static sn_status check_field(sni_infer *c, int i, int64_t each) {
    const deform_params *p = c->params;
    if (!sni_infer_shaped(c, i) || !c->out[0].has_shape) return SN_OK;
    int rank = c->out[0].rank;
    if (sni_infer_rank(c, i) != rank)
        return SNI_INFER_FAIL(c, "input %d has rank %d, not %d", i, sni_infer_rank(c, i), rank);
    sni_dim fields = sni_dim_mul(c->symbols, p->offset_group, each);
    for (int a = 2; a < rank; a++) fields = sni_dim_mul(c->symbols, fields, sni_infer_dim(c, 1, a));
    for (int a = 0; a < rank; a++) {
        sni_dim want = a == 1 ? fields : c->out[0].dims[a], d = sni_infer_dim(c, i, a);
        if (sni_dim_known(want) && sni_dim_known(d) && want != d)
            return SNI_INFER_FAIL(c, "input %d has size %lld along axis %d, not %lld", i,
                                  (long long)d, a, (long long)want);
    }
    return SN_OK;
}

static sn_status deform_infer(sni_infer *c) {
    const deform_params *p = c->params;
    if (p->offset_group < 1)
        return SNI_INFER_FAIL(c, "offset_group is %lld", (long long)p->offset_group);
    SN_TRY(sni_infer_conv(c, 0, 1, 3));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    sni_dim channels = sni_infer_dim(c, 0, 1);
    if (sni_dim_known(channels) && channels % p->offset_group)
        return SNI_INFER_FAIL(c, "%lld channels do not divide into %lld offset groups",
                              (long long)channels, (long long)p->offset_group);
    SN_TRY(check_field(c, 2, sni_infer_rank(c, 0) - 2));
    return check_field(c, 4, 1);
}

static int64_t deform_macs(const sni_infer *c) {
    return sni_conv_macs(c, 0, 1);
}

static void deform_locate(const void *ctx, int64_t i, sni_gemm *g) {
    const deform *d = ctx;
    g->a = sni_element(d->w, i % d->groups * d->group_w, d->width);
    g->c = sni_element(d->y, i * d->group_out, d->width);
}

static sn_status deform_ref(sni_kernel *k) {
    const deform_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    deform d = {.channels = x->dims[1],
                .groups = p->conv.group,
                .offset_groups = p->offset_group,
                .taps = sni_tensor_span(w, 2, w->rank),
                .in_plane = sni_tensor_span(x, 2, x->rank),
                .out_plane = sni_tensor_span(y, 2, y->rank),
                .width = sni_dtype_width(dtype)};
    const void *bias;
    if (y->count == 0) return SN_OK;
    SN_TRY(sni_window_at_run(k, &d.window, &p->conv.window, x, y, w->dims + 2));
    SN_TRY(sni_in_as(k, x, dtype, &d.x));
    SN_TRY(sni_in_as(k, w, dtype, &d.w));
    SN_TRY(sni_in_as(k, sni_in(k, 2), dtype, &d.offset));
    SN_TRY(sni_in_as(k, sni_in(k, 3), dtype, &bias));
    SN_TRY(sni_in_as(k, sni_in(k, 4), dtype, &d.mask));
    SN_TRY(sni_out_as(k, y, dtype, &d.y));
    sni_gemm g = {.m = w->dims[0] / d.groups,
                  .n = d.out_plane,
                  .k = w->dims[1] * d.taps,
                  .a_col = 1,
                  .fill = dtype == SN_FLOAT64 ? deform_f64 : deform_f32,
                  .fill_ctx = &d,
                  .c_row = d.out_plane,
                  .add = bias != NULL};
    g.a_row = g.k;
    d.group_w = g.m * g.k;
    d.group_out = g.m * g.n;
    if (bias) sni_fill_channels(d.y, bias, y->dims[0], y->dims[1], d.out_plane, d.width);
    SN_TRY(sni_gemm_batch(k, dtype, &g, x->dims[0] * d.groups, deform_locate, &d));
    sni_out_done(k, y, dtype, d.y);
    return SN_OK;
}

const sni_op sni_op_DeformConv = {
    .name = "DeformConv",
    .versions = SNI_VERSIONS(19, 22),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"offset", "T"}, {"B", "T", SNI_OPTIONAL},
                          {"mask", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        SNI_WINDOW_KERNEL(deform_params, conv.window, false),
        SNI_WINDOW_DILATIONS(deform_params, conv.window),
        {"group", SNI_ATTR_INT, offsetof(deform_params, conv.group), .number = 1},
        {"offset_group", SNI_ATTR_INT, offsetof(deform_params, offset_group), .number = 1}),
    .params_size = sizeof(deform_params),
    .infer = deform_infer,
    .ref = deform_ref,
    .macs = deform_macs,
};
