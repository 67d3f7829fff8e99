/* InterleavePixels: pictures woven together, as the phases of a transposed convolution are. Each is
 * an input, or, where `channels` are given, all are one input that has that many channels of each,
 * phase after phase. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "ops/sinter/blocked.h"
#include "ops/core/shape_util.h"

#include <string.h>

typedef struct interleave_params {
    sni_ints strides; /* pictures down and across */
    int64_t channels; /* 0: a picture is an input */
} interleave_params;

enum { MOST_STRIDE = 64, MOST_CHANNELS = 1 << 24 };

static sn_status check(sni_infer *c, const interleave_params *p) {
    if (p->strides.n != 2) return SNI_INFER_FAIL(c, "strides has %zu numbers, not 2", p->strides.n);
    for (int i = 0; i < 2; i++)
        if (p->strides.v[i] < 1 || p->strides.v[i] > MOST_STRIDE)
            return SNI_INFER_FAIL(c, "strides[%d] is %lld", i, (long long)p->strides.v[i]);
    int64_t pictures = p->channels ? 1 : p->strides.v[0] * p->strides.v[1];
    if (p->channels < 0 || p->channels > MOST_CHANNELS)
        return SNI_INFER_FAIL(c, "channels is %lld", (long long)p->channels);
    if (c->n_in != pictures)
        return SNI_INFER_FAIL(c, "%d pictures, not %lld", c->n_in, (long long)pictures);
    for (int i = 0; i < c->n_in; i++)
        if (sni_infer_shaped(c, i) && sni_infer_rank(c, i) != 5)
            return SNI_INFER_FAIL(c, "input %d has rank %d, not 5", i, sni_infer_rank(c, i));
    return SN_OK;
}

/* With known sizes: input (a, b) has every row and column of the output that belongs to it. */
static sn_status check_sizes(sni_infer *c, const interleave_params *p, const sni_dim *out) {
    for (int i = 0; i < c->n_in; i++)
        for (int axis = 2; axis < 4; axis++) {
            int64_t stride = p->strides.v[axis - 2];
            int64_t phase = axis == 2 ? i / p->strides.v[1] : i % p->strides.v[1];
            sni_dim size = sni_infer_dim(c, i, axis);
            if (sni_dim_known(out[axis]) && sni_dim_known(size) &&
                size != (out[axis] - phase + stride - 1) / stride)
                return SNI_INFER_FAIL(c, "input %d has %lld of %lld along axis %d", i,
                                      (long long)size, (long long)out[axis], axis);
        }
    return SN_OK;
}

static sn_status infer_many(sni_infer *c, const interleave_params *p, sni_dim dims[5]) {
    for (int axis = 0; axis < 5; axis++) {
        if (axis == 2 || axis == 3) continue;
        dims[axis] = sni_infer_dim(c, 0, axis);
        for (int i = 1; i < c->n_in; i++)
            SN_TRY(sni_infer_join_dim(c, "inputs", axis, dims[axis], sni_infer_dim(c, i, axis),
                                      &dims[axis]));
    }
    for (int64_t i = 0; i < p->strides.v[0]; i++)
        dims[2] = sni_dim_add(c->symbols, dims[2], sni_infer_dim(c, (int)(i * p->strides.v[1]), 2));
    for (int64_t i = 0; i < p->strides.v[1]; i++)
        dims[3] = sni_dim_add(c->symbols, dims[3], sni_infer_dim(c, (int)i, 3));
    if (dims[2] == SNI_DIM_FAIL || dims[3] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    return check_sizes(c, p, dims);
}

static sn_status infer_one(sni_infer *c, const interleave_params *p, sni_dim dims[5]) {
    sni_dim blocks = sni_infer_dim(c, 0, 1), block = sni_infer_dim(c, 0, 4);
    int64_t channels = p->channels * p->strides.v[0] * p->strides.v[1];
    if (!sni_dim_known(block) || block < 1 || block > SNI_MOST_BLOCK)
        return SNI_INFER_FAIL(c, "the last dimension is not that of a block");
    if (sni_dim_known(blocks) && blocks != sni_ceil_div(channels, block))
        return SNI_INFER_FAIL(c, "%lld blocks of %lld for %lld channels", (long long)blocks,
                              (long long)block, (long long)channels);
    dims[0] = sni_infer_dim(c, 0, 0);
    dims[1] = sni_ceil_div(p->channels, block);
    dims[4] = block;
    for (int i = 0; i < 2; i++) {
        dims[2 + i] = sni_dim_mul(c->symbols, sni_infer_dim(c, 0, 2 + i), p->strides.v[i]);
        if (dims[2 + i] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    }
    return SN_OK;
}

static sn_status interleave_infer(sni_infer *c) {
    const interleave_params *p = c->params;
    sni_dim dims[5] = {0};
    SN_TRY(check(c, p));
    for (int i = 0; i < c->n_in; i++)
        if (!sni_infer_shaped(c, i)) return SN_OK;
    SN_TRY(p->channels ? infer_one(c, p, dims) : infer_many(c, p, dims));
    return sni_infer_set_shape(c, 0, 5, dims);
}

/* ---- Running ---- */

/* Every `step`-th of `count` pixels of `size` bytes at `to`. */
static void spread(const unsigned char *from, unsigned char *to, int64_t count, int64_t step,
                   size_t size) {
    if (size == 64) {
        for (int64_t i = 0; i < count; i++) memcpy(to + i * step * 64, from + i * 64, 64);
        return;
    }
    if (size == 32) {
        for (int64_t i = 0; i < count; i++) memcpy(to + i * step * 32, from + i * 32, 32);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * step * (int64_t)size, from + i * (int64_t)size, size);
}

static void weave_rows(void *ctx, int64_t begin, int64_t end) {
    sni_kernel *k = ctx;
    const interleave_params *p = k->params;
    const sni_tensor *y = sni_out(k, 0);
    int64_t down = p->strides.v[0], across = p->strides.v[1], height = y->dims[2];
    int64_t width = y->dims[3];
    size_t size = (size_t)y->dims[4] * sizeof(float);
    for (int64_t row = begin; row < end; row++) {
        int64_t plane = row / height, h = row % height;
        for (int64_t b = 0; b < across; b++) {
            const sni_tensor *x = sni_in(k, (int)(h % down * across + b));
            int64_t at = (plane * x->dims[2] + h / down) * x->dims[3];
            spread((const unsigned char *)x->data + (size_t)at * size,
                   (unsigned char *)y->data + (size_t)(row * width + b) * size, x->dims[3], across,
                   size);
        }
    }
}

/* How the lanes of an output pixel are taken from input pixels: `first` of `lanes` from the pixel
 * itself, the others from the next block of channels, `plane` floats away. Zeros fill the rest of
 * the block. Output pixels are `step` pixels apart. */
typedef struct lane_run {
    int64_t plane, first, lanes, step, block;
} lane_run;

static void spread_lanes(const lane_run *r, const float *from, float *to, int64_t count) {
    for (int64_t i = 0; i < count; i++, from += r->block, to += r->step * r->block) {
        int64_t l = 0;
        for (; l < r->first; l++) to[l] = from[l];
        for (; l < r->lanes; l++) to[l] = from[r->plane + l - r->block];
        for (; l < r->block; l++) to[l] = 0;
    }
}

/* Rows of the output, from one input. */
static void weave_channels(void *ctx, int64_t begin, int64_t end) {
    sni_kernel *k = ctx;
    const interleave_params *p = k->params;
    const sni_tensor *y = sni_out(k, 0), *x = sni_in(k, 0);
    int64_t down = p->strides.v[0], across = p->strides.v[1], height = y->dims[2];
    int64_t block = y->dims[4], line = x->dims[3] * block, plane = x->dims[2] * line;
    const float *from = x->data;
    float *to = y->data;
    for (int64_t row = begin; row < end; row++) {
        int64_t h = row % height, at = row / height % y->dims[1] * block;
        int64_t image = row / height / y->dims[1];
        int64_t lanes = sni_min(block, p->channels - at);
        for (int64_t b = 0; b < across; b++) {
            int64_t channel = (h % down * across + b) * p->channels + at, lane = channel % block;
            const lane_run run = {plane, sni_min(lanes, block - lane), lanes, across, block};
            spread_lanes(&run,
                         from + (image * x->dims[1] + channel / block) * plane + h / down * line +
                             lane,
                         to + (row * y->dims[3] + b) * block, x->dims[3]);
        }
    }
}

static sn_status interleave_ref(sni_kernel *k) {
    const sni_tensor *y = sni_out(k, 0);
    const interleave_params *p = k->params;
    if (y->count == 0) return SN_OK;
    int64_t row = y->dims[3] * y->dims[4];
    sni_parallel_for(k->threads, y->dims[0] * y->dims[1] * y->dims[2], 16384 / row + 1,
                     p->channels ? weave_channels : weave_rows, k);
    return SN_OK;
}

const sni_op sni_op_sinter_InterleavePixels = {
    .name = "InterleavePixels",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T", SNI_VARIADIC}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32)}),
    .params = SNI_PARAMS(
        {"strides", SNI_ATTR_INTS, offsetof(interleave_params, strides), .required = true},
        {"channels", SNI_ATTR_INT, offsetof(interleave_params, channels)}),
    .params_size = sizeof(interleave_params),
    .infer = interleave_infer,
    .ref = interleave_ref,
};
