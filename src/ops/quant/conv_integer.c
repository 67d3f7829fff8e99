/* ConvInteger and QLinearConv: convolutions of 8-bit tensors, summed exactly. */
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/nn/conv_core.h"
#include "ops/quant/quant.h"
#include "ops/core/tensor_util.h"

/* Weights minus their zero point, which is one or one for each output channel. */
static sn_status centered_weights(sni_kernel *k, const sni_tensor *w, const sni_tensor *zero,
                                  const void **out) {
    sni_tensor flat = *w;
    const int32_t *v;
    if (zero && zero->count != 1 && (zero->rank != 1 || zero->dims[0] != w->dims[0]))
        return SNI_KERNEL_FAIL(k, "%lld zero points for %lld output channels",
                               (long long)zero->count, (long long)w->dims[0]);
    flat.rank = 2; /* (M, rest): a vector of zero points runs along the rows */
    flat.dims[1] = w->dims[0] ? w->count / w->dims[0] : 0;
    SN_TRY(sni_centered(k, &flat, zero, SNI_QUANT_ROWS, &v));
    *out = v;
    return SN_OK;
}

/* A convolution of bytes; zero points and bias may be NULL. */
typedef struct byte_conv {
    const sni_tensor *x, *x_zero, *w, *w_zero, *bias;
} byte_conv;

/* The int32 sums of a convolution whose output has the shape of y, to `acc`. */
static sn_status run_integer(sni_kernel *k, const byte_conv *c, const sni_tensor *y, void *acc) {
    sni_conv conv = {.x_dtype = c->x->dtype,
                     .x = c->x->data,
                     .x_zero = sni_zero_of(c->x_zero),
                     .y = acc,
                     .add = c->bias != NULL};
    SN_TRY(sni_conv_init(k, &conv, c->x, c->w, y));
    SN_TRY(centered_weights(k, c->w, c->w_zero, &conv.w));
    if (c->bias && y->count)
        sni_fill_channels(acc, c->bias->data, y->dims[0], y->dims[1],
                          sni_tensor_span(y, 2, y->rank), sizeof(int32_t));
    return sni_conv_run(k, &conv);
}

static sn_status integer_infer(sni_infer *c) {
    return sni_infer_conv(c, 0, 1, -1);
}

static int64_t integer_macs(const sni_infer *c) {
    return sni_conv_macs(c, 0, 1);
}

static sn_status integer_ref(sni_kernel *k) {
    sni_tensor *y = sni_out(k, 0);
    const byte_conv conv = {
        .x = sni_in(k, 0), .x_zero = sni_in(k, 2), .w = sni_in(k, 1), .w_zero = sni_in(k, 3)};
    return run_integer(k, &conv, y, y->data);
}

static sn_status linear_infer(sni_infer *c) {
    return sni_infer_conv(c, 0, 3, 8);
}

static int64_t linear_macs(const sni_infer *c) {
    return sni_conv_macs(c, 0, 3);
}

typedef struct store_job {
    const int32_t *acc;
    uint8_t *y;
    sn_dtype dtype;
    const sni_tensor *w_scale;
    float x_scale, y_scale;
    int32_t zero;
    int64_t channels, plane;
} store_job;

/* Rows are planes of one image's channel. All is float32 in this order, as in ONNX Runtime, whose
 * users expect the same bytes. */
static void store_rows(void *ctx, int64_t begin, int64_t end) {
    const store_job *j = ctx;
    for (int64_t row = begin; row < end; row++) {
        int64_t m = j->w_scale->count == 1 ? 0 : row % j->channels;
        float scale = j->x_scale * ((const float *)j->w_scale->data)[m] / j->y_scale;
        for (int64_t i = row * j->plane; i < (row + 1) * j->plane; i++)
            j->y[i] = sni_requantize_fast((float)j->acc[i] * scale, j->zero, j->dtype);
    }
}

static sn_status linear_ref(sni_kernel *k) {
    const sni_tensor *w = sni_in(k, 3), *w_scale = sni_in(k, 4);
    sni_tensor *y = sni_out(k, 0);
    void *acc = NULL;
    for (int i = 1; i < 8; i++) {
        int64_t n = sni_in(k, i)->count;
        if (i != 3 && n != 1 && !((i == 4 || i == 5) && n == w->dims[0]))
            return SNI_KERNEL_FAIL(k, "input %d has %lld elements", i, (long long)n);
    }
    SN_TRY(sni_scratch_array(k, y->count, sizeof(int32_t), &acc));
    const byte_conv conv = {.x = sni_in(k, 0),
                            .x_zero = sni_in(k, 2),
                            .w = w,
                            .w_zero = sni_in(k, 5),
                            .bias = sni_in(k, 8)};
    SN_TRY(run_integer(k, &conv, y, acc));
    if (y->count == 0) return SN_OK;
    store_job job = {.acc = acc,
                     .y = y->data,
                     .dtype = y->dtype,
                     .w_scale = w_scale,
                     .x_scale = *(const float *)sni_in(k, 1)->data,
                     .y_scale = *(const float *)sni_in(k, 6)->data,
                     .zero = sni_zero_of(sni_in(k, 7)),
                     .channels = y->dims[1],
                     .plane = sni_tensor_span(y, 2, y->rank)};
    sni_parallel_for(k->threads, y->dims[0] * y->dims[1], 16384 / job.plane + 1, store_rows, &job);
    return SN_OK;
}

#define BYTES (SNI_T(SN_INT8) | SNI_T(SN_UINT8))

const sni_op sni_op_ConvInteger = {
    .name = "ConvInteger",
    .versions = SNI_VERSIONS(10),
    .inputs = SNI_FORMALS({"x", "T1"}, {"w", "T2"}, {"x_zero_point", "T1", SNI_OPTIONAL},
                          {"w_zero_point", "T2", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"y", "int32"}),
    .types = SNI_TYPE_VARS({"T1", BYTES}, {"T2", BYTES}),
    .params = SNI_CONV_PARAMS,
    .params_size = sizeof(sni_conv_params),
    .infer = integer_infer,
    .ref = integer_ref,
    .macs = integer_macs,
};

const sni_op sni_op_QLinearConv = {
    .name = "QLinearConv",
    .versions = SNI_VERSIONS(10),
    .inputs = SNI_FORMALS({"x", "T1"}, {"x_scale", "float32"}, {"x_zero_point", "T1"}, {"w", "T2"},
                          {"w_scale", "float32"}, {"w_zero_point", "T2"}, {"y_scale", "float32"},
                          {"y_zero_point", "T3"}, {"B", "int32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"y", "T3"}),
    .types = SNI_TYPE_VARS({"T1", BYTES}, {"T2", BYTES}, {"T3", BYTES}),
    .params = SNI_CONV_PARAMS,
    .params_size = sizeof(sni_conv_params),
    .infer = linear_infer,
    .ref = linear_ref,
    .macs = linear_macs,
};
