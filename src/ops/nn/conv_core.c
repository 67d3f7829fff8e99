/* conv_core.c - convolution as a matrix product: shapes, the gathered operand, groups and batch. */
#include "ops/nn/conv_core.h"

#include "base/checked.h"
#include "ops/matmul/matmul_core.h"
#include "ops/core/tensor_util.h"
#include "ops/core/typed.h"

static sn_status check_channels(sni_infer *c, int x, int w, int bias, int64_t group) {
    sni_dim channels = sni_infer_dim(c, x, 1), m = sni_infer_dim(c, w, 0);
    sni_dim per_group = sni_infer_dim(c, w, 1);
    if (sni_dim_known(m) && m % group)
        return SNI_INFER_FAIL(c, "%lld output channels do not divide into %lld groups",
                              (long long)m, (long long)group);
    if (sni_dim_known(channels) && channels % group)
        return SNI_INFER_FAIL(c, "%lld input channels do not divide into %lld groups",
                              (long long)channels, (long long)group);
    if (sni_dim_known(channels) && sni_dim_known(per_group) && channels / group != per_group)
        return SNI_INFER_FAIL(c, "input of %lld channels in %lld groups, but weights for %lld each",
                              (long long)channels, (long long)group, (long long)per_group);
    if (bias < 0 || !sni_infer_shaped(c, bias)) return SN_OK;
    if (sni_infer_rank(c, bias) != 1)
        return SNI_INFER_FAIL(c, "the bias has rank %d, not 1", sni_infer_rank(c, bias));
    sni_dim b = sni_infer_dim(c, bias, 0);
    if (sni_dim_known(b) && sni_dim_known(m) && b != m)
        return SNI_INFER_FAIL(c, "a bias of %lld elements for %lld output channels", (long long)b,
                              (long long)m);
    return SN_OK;
}

sn_status sni_infer_conv(sni_infer *c, int x, int w, int bias) {
    const sni_conv_params *p = c->params;
    if (p->group < 1) return SNI_INFER_FAIL(c, "group is %lld", (long long)p->group);
    if (!sni_infer_shaped(c, x) || !sni_infer_shaped(c, w)) return SN_OK;
    int rank = sni_infer_rank(c, x);
    sni_window window;
    sni_dim dims[SN_MAX_RANK];
    if (sni_infer_rank(c, w) != rank)
        return SNI_INFER_FAIL(c, "input of rank %d and weights of rank %d", rank,
                              sni_infer_rank(c, w));
    if (rank < 3) return SNI_INFER_FAIL(c, "an input of rank %d has no spatial axis", rank);
    SN_TRY(check_channels(c, x, w, bias, p->group));
    SN_TRY(sni_window_init(&window, &p->window, rank - 2, c->in[w]->dims + 2, c->err));
    dims[0] = sni_infer_dim(c, x, 0);
    dims[1] = sni_infer_dim(c, w, 0);
    SN_TRY(sni_window_sizes(&window, &p->window, c->in[x]->dims + 2, dims + 2, c->symbols, c->err));
    return sni_infer_set_shape(c, 0, rank, dims);
}

int64_t sni_conv_macs(const sni_infer *c, int x, int w) {
    int64_t outputs, taps;
    if (!sni_infer_shaped(c, x) || !sni_infer_shaped(c, w) || !c->out[0].has_shape) return -1;
    if (!sni_shape_count(c->out[0].rank, c->out[0].dims, &outputs) ||
        !sni_shape_count(sni_infer_rank(c, w) - 1, c->in[w]->dims + 1, &taps) ||
        !sni_mul_i64(outputs, taps, &outputs))
        return -1;
    return outputs;
}

sn_status sni_conv_init(sni_kernel *k, sni_conv *conv, const sni_tensor *x, const sni_tensor *w,
                        const sni_tensor *y) {
    const sni_conv_params *p = k->params;
    SN_TRY(sni_window_at_run(k, &conv->window, &p->window, x, y, w->dims + 2));
    conv->batch = x->dims[0];
    conv->in_channels = x->dims[1];
    conv->out_channels = w->dims[0];
    conv->groups = p->group;
    return SN_OK;
}

/* Coordinates of tap row number `row`. */
static void decode_tap(const sni_window *w, int64_t row, int64_t *tap) {
    for (int i = w->rank - 2; i >= 0; i--) {
        tap[i] = row % w->kernel[i];
        row /= w->kernel[i];
    }
}

#define LOAD(v) (v)
#define S float
#define T float
#define SUFFIX f32
#include "ops/nn/conv_panel.inc.c"
#undef S
#undef T
#undef SUFFIX
#define S double
#define T double
#define SUFFIX f64
#include "ops/nn/conv_panel.inc.c"
#undef S
#undef T
#undef SUFFIX
#undef LOAD

#define LOAD(v) ((int32_t)(v)-zero)
#define S int8_t
#define T int32_t
#define SUFFIX i8
#include "ops/nn/conv_panel.inc.c"
#undef S
#undef SUFFIX
#define S uint8_t
#define SUFFIX u8
#include "ops/nn/conv_panel.inc.c"
#undef S
#undef T
#undef SUFFIX
#undef LOAD

/* True if the gathered matrix is the input itself: one tap, no stride, no padding. */
static bool is_pointwise(const sni_window *w) {
    for (int i = 0; i < w->rank; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->begin[i] || w->end[i]) return false;
    return true;
}

typedef struct conv_job {
    const sni_conv *conv;
    size_t width;
    int64_t group_in, group_w, group_out; /* elements of one group's part of x, w and y */
} conv_job;

/* Product i is group i % groups of image i / groups. */
static void conv_locate(const void *ctx, int64_t i, sni_gemm *g) {
    const conv_job *j = ctx;
    int64_t group = i % j->conv->groups;
    g->a = (const char *)j->conv->w + (size_t)(group * j->group_w) * j->width;
    g->c = (char *)j->conv->y + (size_t)(i * j->group_out) * j->width;
    if (!g->fill) g->b = (const char *)j->conv->x + (size_t)(i * j->group_in) * j->width;
}

sn_status sni_conv_run(sni_kernel *k, const sni_conv *conv) {
    if (conv->batch == 0 || conv->out_channels == 0) return SN_OK;
    const sni_window *w = &conv->window;
    int last = w->rank - 1;
    int64_t out_plane = sni_window_out_rows(w) * w->out[last];
    int64_t in_plane = sni_window_in_rows(w) * w->in[last];
    int64_t per_group = conv->in_channels / conv->groups, m = conv->out_channels / conv->groups;
    int64_t depth = per_group * sni_window_tap_rows(w) * w->kernel[last];
    sn_dtype compute = conv->x_dtype;
    sni_gemm g = {.m = m,
                  .n = out_plane,
                  .k = depth,
                  .a_row = depth,
                  .a_col = 1,
                  .b_row = in_plane,
                  .b_col = 1,
                  .c_row = out_plane,
                  .add = conv->add};
    g.fill_ctx = conv;
    if (conv->x_dtype == SN_INT8 || conv->x_dtype == SN_UINT8) {
        compute = SN_INT32;
        g.fill = conv->x_dtype == SN_INT8 ? gather_i8 : gather_u8;
    } else if (!is_pointwise(w)) {
        g.fill = conv->x_dtype == SN_FLOAT64 ? gather_f64 : gather_f32;
    }
    conv_job job = {.conv = conv,
                    .width = sni_dtype_width(compute),
                    .group_in = per_group * in_plane,
                    .group_w = m * depth,
                    .group_out = m * out_plane};
    return sni_gemm_batch(k, compute, &g, conv->batch * conv->groups, conv_locate, &job);
}

void sni_fill_channels(void *y, const void *bias, int64_t batch, int64_t channels, int64_t plane,
                       size_t width) {
    for (int64_t row = 0; row < batch * channels; row++)
        sni_fill(sni_element(y, row * plane, width), sni_element(bias, row % channels, width),
                 plane, width);
}
