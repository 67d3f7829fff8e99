/* QLinearConvNhwc and MaxPoolNhwc: convolutions and pools of bytes with channels last. */
#include "ops/sinter/nhwc.h"

#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/nn/pool.h"
#include "ops/quant/quant.h"
#include "ops/sinter/blocked.h"

/* ---- What the kernels share ---- */

sn_status sni_nhwc_window(sni_kernel *k, const sni_window_params *p, const sni_tensor *x,
                          const sni_tensor *y, const int64_t *kernel, sni_window *w) {
    SN_TRY(sni_window_init(w, p, 2, kernel, k->err));
    sni_window_place(w, p, x->dims + 1, y->dims + 1);
    return SN_OK;
}

static sn_status check_single(sni_kernel *k, int i) {
    const sni_tensor *t = sni_in(k, i);
    if (t && t->count != 1)
        return SNI_KERNEL_FAIL(k, "input %d has %lld elements", i, (long long)t->count);
    return SN_OK;
}

static sn_status residual_get(sni_kernel *k, float y_scale, sni_nhwc_finish *out) {
    const sni_tensor *r = sni_in(k, SNI_NHWC_R), *y = sni_out(k, 0);
    sni_qscale from, to;
    if (r->rank != y->rank || r->count != y->count || r->dtype != y->dtype)
        return SNI_KERNEL_FAIL(k, "the residual has not the type and shape of the result");
    SN_TRY(sni_qscale_get(k, SNI_NHWC_R_SCALE, r->dtype, &from));
    SN_TRY(sni_qscale_get(k, SNI_NHWC_Z_SCALE, y->dtype, &to));
    out->residual = true;
    out->y_scale = y_scale / to.scale;
    out->r_scale = from.scale / to.scale;
    out->r_zero = (float)from.zero;
    out->z_zero = (float)to.zero;
    return SN_OK;
}

sn_status sni_nhwc_finish_get(sni_kernel *k, int64_t channels, sni_nhwc_finish *out,
                              float *scales) {
    const sni_tensor *w_scale = sni_in(k, SNI_NHWC_W_SCALE);
    static const int single[] = {SNI_NHWC_X_SCALE, SNI_NHWC_X_ZERO, SNI_NHWC_Y_SCALE,
                                 SNI_NHWC_Y_ZERO};
    for (size_t i = 0; i < sizeof single / sizeof *single; i++) SN_TRY(check_single(k, single[i]));
    if (w_scale->count != 1 && w_scale->count != channels)
        return SNI_KERNEL_FAIL(k, "%lld scales for %lld output channels", (long long)w_scale->count,
                               (long long)channels);
    float x = *(const float *)sni_in(k, SNI_NHWC_X_SCALE)->data;
    float y = *(const float *)sni_in(k, SNI_NHWC_Y_SCALE)->data;
    for (int64_t i = 0; i < channels; i++)
        scales[i] = x * ((const float *)w_scale->data)[w_scale->count == 1 ? 0 : i] / y;
    *out = (sni_nhwc_finish){.zero = (float)sni_zero_of(sni_in(k, SNI_NHWC_Y_ZERO))};
    out->is_signed = sni_out(k, 0)->dtype == SN_INT8;
    out->low = out->is_signed ? -128 : 0;
    return sni_in(k, SNI_NHWC_R) ? residual_get(k, y, out) : SN_OK;
}

/* ---- QLinearConvNhwc ---- */

/* `infer` of a picture with channels last. */
static sn_status infer_picture(sni_infer *c, sn_status (*infer)(sni_infer *)) {
    if (sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) != 4)
        return SNI_INFER_FAIL(c, "input 0 of rank %d is no picture", sni_infer_rank(c, 0));
    return sni_infer_layout(c, SNI_CHANNELS_LAST, infer);
}

static sn_status infer_first(sni_infer *c) {
    return sni_infer_conv(c, SNI_NHWC_X, SNI_NHWC_W, SNI_NHWC_BIAS);
}

static sn_status conv_infer(sni_infer *c) {
    return infer_picture(c, infer_first);
}

static int64_t conv_macs(const sni_infer *c) {
    return sni_conv_macs(c, SNI_NHWC_X, SNI_NHWC_W);
}

typedef struct conv_job {
    const sni_window *w;
    const sni_tensor *x, *y;
    const int32_t *weights; /* centered */
    const int32_t *bias;
    const float *scales;
    const uint8_t *r;
    sni_nhwc_finish finish;
    int64_t in, out, groups; /* channels of a group */
    int32_t x_zero;
    const sni_kernel *kernel;
} conv_job;

/* The sum of output channel m at one pixel. */
static int32_t sum_at(const conv_job *j, int64_t image, int64_t row, int64_t col, int64_t m) {
    const sni_window *w = j->w;
    const uint8_t *x = j->x->data;
    bool is_signed = j->x->dtype == SN_INT8;
    int64_t all = j->in * j->groups, taps = w->kernel[0] * w->kernel[1];
    uint32_t sum = j->bias ? (uint32_t)j->bias[m] : 0;
    for (int64_t t = 0; t < taps; t++) {
        int64_t r = row * w->stride[0] + t / w->kernel[1] * w->dilation[0] - w->begin[0];
        int64_t c = col * w->stride[1] + t % w->kernel[1] * w->dilation[1] - w->begin[1];
        if (r < 0 || r >= w->in[0] || c < 0 || c >= w->in[1]) continue;
        const uint8_t *at = x + ((image * w->in[0] + r) * w->in[1] + c) * all + m / j->out * j->in;
        for (int64_t i = 0; i < j->in; i++)
            sum += (uint32_t)((is_signed ? (int8_t)at[i] : at[i]) - j->x_zero) *
                   (uint32_t)j->weights[(m * j->in + i) * taps + t];
    }
    return (int32_t)sum;
}

static uint8_t finished(const sni_nhwc_finish *f, int32_t sum, float scale, const uint8_t *r) {
    float high = f->low + 255, v = sni_round_shift((float)sum * scale, f->zero, f->low, high);
    if (!f->residual) return (uint8_t)(int32_t)v;
    float other = (float)(f->is_signed ? (int8_t)*r : *r) - f->r_zero;
    v = (v - f->zero) * f->y_scale + other * f->r_scale + f->z_zero;
    return (uint8_t)(int32_t)sni_round_shift(v, 0, f->low, high);
}

/* Pixels [begin, end), counted over all images. */
static void conv_pixels(void *ctx, int64_t begin, int64_t end) {
    const conv_job *j = ctx;
    int64_t channels = j->out * j->groups, width = j->w->out[1], plane = j->w->out[0] * width;
    uint8_t *y = j->y->data;
    for (int64_t p = begin; p < end && !sni_stopping(j->kernel); p++)
        for (int64_t m = 0; m < channels; m++) {
            int64_t at = p * channels + m;
            int32_t sum = sum_at(j, p / plane, p % plane / width, p % width, m);
            y[at] = finished(&j->finish, sum, j->scales[m], j->r ? j->r + at : NULL);
        }
}

static sn_status conv_ref(sni_kernel *k) {
    const sni_conv_params *p = k->params;
    const sni_tensor *x = sni_in(k, SNI_NHWC_X), *w = sni_in(k, SNI_NHWC_W);
    const sni_tensor *bias = sni_in(k, SNI_NHWC_BIAS), *r = sni_in(k, SNI_NHWC_R);
    const sni_tensor *w_zero = sni_in(k, SNI_NHWC_W_ZERO), *y = sni_out(k, 0);
    sni_window window;
    void *scales;
    if (w_zero && w_zero->count != 1 && w_zero->count != w->dims[0])
        return SNI_KERNEL_FAIL(k, "%lld zero points for %lld output channels",
                               (long long)w_zero->count, (long long)w->dims[0]);
    SN_TRY(sni_nhwc_window(k, &p->window, x, y, w->dims + 2, &window));
    SN_TRY(sni_scratch_array(k, w->dims[0], sizeof(float), &scales));
    conv_job j = {.w = &window,
                  .x = x,
                  .y = y,
                  .bias = bias ? bias->data : NULL,
                  .scales = scales,
                  .r = r ? r->data : NULL,
                  .in = w->dims[1],
                  .out = w->dims[0] / p->group,
                  .groups = p->group,
                  .x_zero = sni_zero_of(sni_in(k, SNI_NHWC_X_ZERO)),
                  .kernel = k};
    sni_tensor flat = *w;
    flat.rank = 2; /* (M, rest): a vector of zero points runs along the rows */
    flat.dims[1] = w->dims[0] ? w->count / w->dims[0] : 0;
    SN_TRY(sni_centered(k, &flat, w_zero, SNI_QUANT_ROWS, &j.weights));
    SN_TRY(sni_nhwc_finish_get(k, w->dims[0], &j.finish, scales));
    if (y->count == 0) return SN_OK;
    sni_parallel_for(k->threads, y->count / w->dims[0], 64, conv_pixels, &j);
    return sni_poll(k);
}

#define BYTES (SNI_T(SN_INT8) | SNI_T(SN_UINT8))

const sni_op sni_op_sinter_QLinearConvNhwc = {
    .name = "QLinearConvNhwc",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs =
        SNI_FORMALS({"x", "T1"}, {"x_scale", "float32"}, {"x_zero_point", "T1"}, {"w", "T2"},
                    {"w_scale", "float32"}, {"w_zero_point", "T2"}, {"y_scale", "float32"},
                    {"y_zero_point", "T3"}, {"B", "int32", SNI_OPTIONAL}, {"R", "T3", SNI_OPTIONAL},
                    {"r_scale", "float32", SNI_OPTIONAL}, {"r_zero_point", "T3", SNI_OPTIONAL},
                    {"z_scale", "float32", SNI_OPTIONAL}, {"z_zero_point", "T3", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"y", "T3"}),
    .types = SNI_TYPE_VARS({"T1", BYTES}, {"T2", BYTES}, {"T3", BYTES}),
    .params = SNI_CONV_PARAMS,
    .params_size = sizeof(sni_conv_params),
    .infer = conv_infer,
    .ref = conv_ref,
    .macs = conv_macs,
};

/* ---- MaxPoolNhwc ---- */

static sn_status pool_infer(sni_infer *c) {
    return infer_picture(c, sni_infer_window_pool);
}

typedef struct pool_job {
    const sni_window *w;
    const sni_tensor *x, *y;
    const sni_kernel *kernel;
} pool_job;

static void widen_max(uint8_t *y, const uint8_t *x, int64_t n, bool is_signed) {
    if (is_signed)
        for (int64_t i = 0; i < n; i++) y[i] = (int8_t)x[i] > (int8_t)y[i] ? x[i] : y[i];
    else
        for (int64_t i = 0; i < n; i++) y[i] = x[i] > y[i] ? x[i] : y[i];
}

/* Output rows [begin, end), counted over all images: the loops over channels are innermost, and
 * compilers make vectors of them. */
static void pool_rows(void *ctx, int64_t begin, int64_t end) {
    const pool_job *j = ctx;
    const sni_window *w = j->w;
    int64_t channels = j->x->dims[3], taps = w->kernel[0] * w->kernel[1];
    bool is_signed = j->x->dtype == SN_INT8;
    for (int64_t row = begin; row < end && !sni_stopping(j->kernel); row++)
        for (int64_t col = 0; col < w->out[1]; col++) {
            uint8_t *y = (uint8_t *)j->y->data + (row * w->out[1] + col) * channels;
            memset(y, is_signed ? 0x80 : 0, (size_t)channels);
            for (int64_t t = 0; t < taps; t++) {
                int64_t r = row % w->out[0] * w->stride[0] + t / w->kernel[1] * w->dilation[0] -
                            w->begin[0];
                int64_t c = col * w->stride[1] + t % w->kernel[1] * w->dilation[1] - w->begin[1];
                if (r < 0 || r >= w->in[0] || c < 0 || c >= w->in[1]) continue;
                int64_t at = (row / w->out[0] * w->in[0] + r) * w->in[1] + c;
                widen_max(y, (const uint8_t *)j->x->data + at * channels, channels, is_signed);
            }
        }
}

static sn_status pool_ref(sni_kernel *k) {
    const sni_pool_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *y = sni_out(k, 0);
    sni_window w;
    SN_TRY(sni_nhwc_window(k, &p->window, x, y, NULL, &w));
    if (y->count == 0) return SN_OK;
    pool_job j = {.w = &w, .x = x, .y = y, .kernel = k};
    sni_parallel_for(k->threads, y->dims[0] * y->dims[1], 16384 / (y->dims[2] * y->dims[3]) + 1,
                     pool_rows, &j);
    return sni_poll(k);
}

const sni_op sni_op_sinter_MaxPoolNhwc = {
    .name = "MaxPoolNhwc",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", BYTES}),
    .params = SNI_PARAMS(SNI_POOL_PARAMS, {"storage_order", SNI_ATTR_INT, .ignored = true}),
    .params_size = sizeof(sni_pool_params),
    .infer = pool_infer,
    .ref = pool_ref,
};
