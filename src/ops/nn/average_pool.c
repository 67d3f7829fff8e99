/* AveragePool and GlobalAveragePool: the mean of the elements under each window; and the same of
 * 8-bit tensors, QLinearAveragePool and QLinearGlobalAveragePool. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "ops/nn/pool.h"
#include "ops/quant/qlinear.h"
#include "ops/core/wide.h"

#define BODY "ops/nn/average_pool.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY
#define BODY "ops/nn/global_average.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static sn_status average_ref(sni_kernel *k) {
    static const sni_pool_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(average)};
    return sni_pool_run(k, fns, false);
}

static sn_status global_average_ref(sni_kernel *k) {
    static const sni_pool_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(global_average)};
    return sni_pool_run(k, fns, true);
}

const sni_op sni_op_AveragePool = {
    .name = "AveragePool",
    .versions = SNI_VERSIONS(1, 7, 10, 11, 19, 22),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(SNI_POOL_PARAMS, {"count_include_pad", SNI_ATTR_INT,
                                           offsetof(sni_pool_params, count_include_pad)}),
    .params_size = sizeof(sni_pool_params),
    .infer = sni_infer_window_pool,
    .ref = average_ref,
};

const sni_op sni_op_GlobalAveragePool = {
    .name = "GlobalAveragePool",
    .versions = SNI_VERSIONS(1, 22),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .infer = sni_infer_global_pool,
    .ref = global_average_ref,
};

/* ---- com.microsoft ---- */

static sni_channel_order layout_of(const sni_pool_params *p) {
    return p->channels_last ? SNI_CHANNELS_LAST : SNI_CHANNELS_FIRST;
}

static sn_status linear_infer(sni_infer *c) {
    return sni_infer_layout(c, layout_of(c->params), sni_infer_window_pool);
}

static sn_status global_linear_infer(sni_infer *c) {
    return sni_infer_layout(c, layout_of(c->params), sni_infer_global_pool);
}

/* The pool of the numbers that the bytes stand for. */
static sn_status linear_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0), x_shape, y_shape;
    sni_channel_order layout = layout_of(k->params);
    sni_qscale qx, qy;
    float *in = NULL;
    void *out = NULL;
    SN_TRY(sni_qscale_get(k, 1, x->dtype, &qx));
    SN_TRY(sni_qscale_get(k, 3, y->dtype, &qy));
    SN_TRY(sni_dequantized(k, x, &qx, layout, &in));
    SN_TRY(sni_scratch_array(k, y->count, sizeof(float), &out));
    sni_channels_first(x, layout, &x_shape);
    sni_channels_first(y, layout, &y_shape);
    SN_TRY(sni_pool_run_planes(
        k,
        &(sni_pool_planes){.fn = average_f32, .x = &x_shape, .y = &y_shape, .in = in, .out = out}));
    qy.zero_first = true; /* as ONNX Runtime has it */
    sni_quantize_into(k, out, &qy, layout, y);
    return SN_OK;
}

/* Means of whole planes of bytes, as numbers. */
typedef struct byte_means {
    const sni_qscale *q;
    const uint8_t *x;
    float *means; /* by image and channel */
    int64_t channels, pixels;
} byte_means;

static int flip_of(const byte_means *j) {
    return j->q->dtype == SN_INT8 ? 128 : 0; /* int8 v is (v ^ 128) - 128 as a uint8 */
}

/* The mean of a plane whose flipped bytes have this sum. */
static float mean_of(const byte_means *j, int64_t sum) {
    sum -= (flip_of(j) + j->q->zero) * j->pixels;
    return (float)((double)sum * (double)j->q->scale / (double)j->pixels);
}

static void mean_planes(void *ctx, int64_t begin, int64_t end) {
    const byte_means *j = ctx;
    const int flip = flip_of(j);
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t sum = 0;
        for (int64_t i = 0; i < j->pixels; i++) sum += j->x[plane * j->pixels + i] ^ flip;
        j->means[plane] = mean_of(j, sum);
    }
}

/* Channels [begin, end), counted over all images, in runs that stand side by side in a pixel. */
static void mean_channels(void *ctx, int64_t begin, int64_t end) {
    enum { RUN = 64, PIXELS = 1 << 23 }; /* whose sum fits 32 bits */
    const byte_means *j = ctx;
    const uint8_t flip = (uint8_t)flip_of(j);
    for (int64_t at = begin, n; at < end; at += n) {
        int64_t sums[RUN] = {0}, image = at / j->channels, channel = at % j->channels;
        const uint8_t *x = j->x + image * j->pixels * j->channels + channel;
        n = sni_min(RUN, sni_min(end - at, j->channels - channel));
        for (int64_t p = 0; p < j->pixels; p += PIXELS) {
            uint32_t some[RUN] = {0};
            int64_t last = sni_min(j->pixels, p + PIXELS);
            if (n == RUN)
                for (int64_t i = p; i < last; i++)
                    for (int c = 0; c < RUN; c++) some[c] += x[i * j->channels + c] ^ flip;
            else
                for (int64_t i = p; i < last; i++)
                    for (int64_t c = 0; c < n; c++) some[c] += x[i * j->channels + c] ^ flip;
            for (int64_t c = 0; c < n; c++) sums[c] += some[c];
        }
        for (int64_t c = 0; c < n; c++) j->means[at + c] = mean_of(j, sums[c]);
    }
}

static sn_status global_linear_ref(sni_kernel *k) {
    enum { GRAIN = 16384 }; /* elements worth a thread */
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0), shape;
    sni_channel_order layout = layout_of(k->params);
    sni_qscale qx, qy;
    void *means = NULL;
    SN_TRY(sni_qscale_get(k, 1, x->dtype, &qx));
    SN_TRY(sni_qscale_get(k, 3, y->dtype, &qy));
    SN_TRY(sni_scratch_array(k, y->count, sizeof(float), &means));
    sni_channels_first(x, layout, &shape);
    byte_means j = {.q = &qx,
                    .x = x->data,
                    .means = means,
                    .channels = shape.dims[1],
                    .pixels = sni_tensor_span(&shape, 2, shape.rank)};
    sni_parallel_for(k->threads, y->count, GRAIN / (j.pixels + 1) + 1,
                     layout == SNI_CHANNELS_LAST ? mean_channels : mean_planes, &j);
    sni_quantize_into(k, means, &qy, layout, y);
    return SN_OK;
}

#define CHANNELS_LAST \
    { "channels_last", SNI_ATTR_INT, offsetof(sni_pool_params, channels_last) }

const sni_op sni_op_ms_QLinearAveragePool = {
    .name = "QLinearAveragePool",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(SNI_QLINEAR_UNARY_INPUTS),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .params = SNI_PARAMS(
        SNI_POOL_PARAMS, CHANNELS_LAST,
        {"count_include_pad", SNI_ATTR_INT, offsetof(sni_pool_params, count_include_pad)}),
    .params_size = sizeof(sni_pool_params),
    .infer = linear_infer,
    .ref = linear_ref,
};

const sni_op sni_op_ms_QLinearGlobalAveragePool = {
    .name = "QLinearGlobalAveragePool",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(SNI_QLINEAR_UNARY_INPUTS),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .params = SNI_PARAMS(CHANNELS_LAST),
    .params_size = sizeof(sni_pool_params),
    .infer = global_linear_infer,
    .ref = global_linear_ref,
};
