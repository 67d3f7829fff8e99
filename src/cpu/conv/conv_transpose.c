/* conv_transpose.c - transposed convolution over one axis: the outputs of each remainder by the
 * stride are a convolution with every so-many-th tap. All remainders together are one convolution
 * of stride 1 with (M * stride) channels, whose rows are woven together at the end. Where the
 * stride does not divide the kernel, the last remainders have a first tap of weight 0, and outputs
 * that it makes NaN, as 0 times infinity is, are summed again without it. */
#include "base/threadpool.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/conv.h"
#include "cpu/conv/blocked.h"
#include "cpu/conv/slices.h"
#include "ops/core/compute.h"
#include "ops/sinter/conv_limits.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_TAPS = 4096, LEAST_PIXELS = 16 };

/* Sizes of the model's weights (channels, m, kernel). */
typedef struct line_variant {
    int64_t channels, m, kernel, stride;
} line_variant;

static line_variant variant_of(const sni_choice *c) {
    const sni_conv_params *p = c->params;
    const int64_t *w = c->constants[1]->tensor.dims;
    return (line_variant){w[0], w[1], w[2], p->window.strides.n ? p->window.strides.v[0] : 1};
}

bool sni_conv_transpose_supports(const sni_choice *c) {
    const sni_conv_params *p = c->params;
    const sni_tensor *w = c->constants[1] ? &c->constants[1]->tensor : NULL;
    sni_window window;
    return sni_choice_is(c, 0, SN_FLOAT32) && w && w->dtype == SN_FLOAT32 && w->rank == 3 &&
           w->count > 0 && p->group == 1 && (!sni_choice_given(c, 2) || c->constants[2]) &&
           (p->window.auto_pad == SNI_PAD_NOTSET || p->window.auto_pad == SNI_PAD_VALID) &&
           !sni_node_attr(c->node, "output_shape") &&
           sni_window_init(&window, &p->window, 1, w->dims + 2, NULL) == SN_OK &&
           window.dilation[0] == 1 && window.stride[0] <= window.kernel[0] &&
           window.kernel[0] <= MOST_TAPS;
}

/* Where pictures are long enough. */
bool sni_conv_transpose_suits(const sni_choice *c) {
    line_variant f = variant_of(c);
    return sni_fills_output_block(f.m * f.stride, sni_cpu_kernels_get()->block) &&
           sni_choice_rank(c, 0) == 3 && c->in[0]->dims[2] >= LEAST_PIXELS;
}

/* (C, M, kernel) as (M * stride, C up to whole blocks, taps), the last tap first. */
static void transpose_weights(const void *ctx, const sni_unaligned_float *from, const sni_sliced *s,
                              float *to) {
    const line_variant *f = ctx;
    int64_t taps = s->variant.kernel_w, wide = s->slice * s->block;
    for (int64_t c = 0; c < f->channels; c++)
        for (int64_t m = 0; m < f->m; m++, from += f->kernel)
            for (int64_t t = 0; t < f->kernel; t++)
                to[((m * f->stride + t % f->stride) * wide + c) * taps + taps - 1 - t / f->stride] =
                    from[t];
}

/* The bias of each channel, once for every remainder. */
static sn_status spread_bias(const sni_choice *c, const line_variant *f, float **out,
                             sn_error *err) {
    int64_t block = sni_cpu_kernels_get()->block, count = f->m * f->stride;
    const sni_tensor *bias;
    bool filled;
    *out = NULL;
    if (!sni_choice_given(c, 2)) return SN_OK;
    SN_TRY(sni_cpu_floats(c, (size_t)(sni_blocks(count, block) * block), out, &filled, err));
    if (filled) return SN_OK;
    SN_TRY(sni_cpu_weight(c, 2, &bias, err));
    for (int64_t i = 0; i < count; i++) (*out)[i] = ((const float *)bias->data)[i / f->stride];
    return SN_OK;
}

sn_status sni_conv_transpose_prepare(const sni_choice *c, void **state, sn_error *err) {
    line_variant f = variant_of(c);
    sni_slices_variant variant = {.channels = f.channels,
                                  .groups = 1,
                                  .m = f.m * f.stride,
                                  .depth = 1,
                                  .kernel_h = 1,
                                  .kernel_w = (f.kernel + f.stride - 1) / f.stride,
                                  .plain = sni_slices_plain(f.channels)};
    sni_sliced s;
    float *bias;
    SN_TRY(sni_slices_pack(c, &variant, transpose_weights, &f, &s, err));
    sn_status status = spread_bias(c, &f, &bias, err);
    if (status == SN_OK) {
        sni_slices_end(&s, bias, NULL);
        status = sni_cpu_keep(&s, sizeof s, state, err);
    }
    if (status != SN_OK) sni_conv_direct_release(s.direct);
    return status;
}

/* Rows (m, remainder, place) become rows (m, place * stride + remainder), less what `begin` cuts
 * off. */
typedef struct weave_job {
    const sni_cpu_kernels *kernels;
    const sni_sliced *w;
    const float *x, *rows, *bias; /* bias: of channel and remainder; NULL: none */
    float *y;
    int64_t channels, stride, in, places, begin, out;
    int64_t whole; /* remainders before this have all taps */
} weave_job;

/* Element i of an output row. */
static float woven(const weave_job *j, const float *rows, int64_t row, int64_t i) {
    int64_t place = (i + j->begin) / j->stride, rest = (i + j->begin) % j->stride;
    if (place < j->places) return rows[rest * j->places + place];
    return j->bias ? j->bias[row % j->channels * j->stride] : 0;
}

/* Sums tell, in vectors, whether there may be NaN among n numbers. */
static bool may_have_nan(const float *y, int64_t n) {
    enum { SUMS = 16 };
    float sums[SUMS] = {0}, all = 0;
    int64_t i = 0;
    for (; i + SUMS <= n; i += SUMS)
        for (int j = 0; j < SUMS; j++) sums[j] += y[i + j];
    for (; i < n; i++) all += y[i];
    for (int j = 0; j < SUMS; j++) all += sums[j];
    return isnan(all);
}

/* Element (row, place) of a remainder whose first tap has no weight. */
static float sum_apart(const weave_job *j, int64_t row, int64_t rest, int64_t place) {
    int64_t taps = j->w->variant.kernel_w, out = row % j->channels * j->stride + rest;
    float sum = j->bias ? j->bias[out] : 0;
    for (int64_t c = 0; c < j->w->variant.channels; c++) {
        const float *x = j->x + (row / j->channels * j->w->variant.channels + c) * j->in;
        for (int64_t tap = 1; tap < taps; tap++) {
            int64_t at = place + tap - (taps - 1);
            if (at >= 0 && at < j->in)
                sum += x[at] * sni_conv_direct_weight(j->w->direct, out, c, tap);
        }
    }
    return sum;
}

static void mend_row(const weave_job *j, int64_t row, float *y) {
    for (int64_t i = 0; i < j->out; i++) {
        int64_t place = (i + j->begin) / j->stride, rest = (i + j->begin) % j->stride;
        if (isnan(y[i]) && rest >= j->whole && place < j->places)
            y[i] = sum_apart(j, row, rest, place);
    }
}

static void weave(void *ctx, int64_t begin, int64_t end) {
    const weave_job *j = ctx;
    int64_t s = j->stride, from = (j->begin + s - 1) / s, to = (j->begin + j->out) / s;
    if (to > j->places) to = j->places;
    if (to < from) to = from;
    for (int64_t row = begin; row < end; row++) {
        const float *rows = j->rows + row * s * j->places;
        float *y = j->y + row * j->out;
        int64_t i = 0, first = from * s - j->begin, last = to * s - j->begin;
        if (to == from) first = last = j->out;
        for (; i < first; i++) y[i] = woven(j, rows, row, i);
        if (to > from)
            j->kernels->transpose_matrix(rows + from, j->places, s, to - from, y + first, s);
        for (i = last; i < j->out; i++) y[i] = woven(j, rows, row, i);
        if (j->whole < s && may_have_nan(y, j->out)) mend_row(j, row, y);
    }
}

sn_status sni_conv_transpose_run(sni_kernel *k) {
    const sni_conv_params *p = k->params;
    const sni_sliced *s = k->state;
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    sni_window window;
    void *rows;
    if (y->count == 0) return SN_OK;
    SN_TRY(sni_window_init(&window, &p->window, 1, w->dims + 2, k->err));
    int64_t taps = s->variant.kernel_w, places = x->dims[2] + taps - 1;
    SN_TRY(sni_scratch_matrix(k, x->dims[0] * s->variant.m, places, sizeof(float), &rows));
    sni_slices_call call = {.x = x->data,
                            .y = rows,
                            .batch = x->dims[0],
                            .h = 1,
                            .w = x->dims[2],
                            .out_h = 1,
                            .out_w = places,
                            .stride_d = 1,
                            .stride_h = 1,
                            .stride_w = 1,
                            .dilation_h = 1,
                            .dilation_w = 1,
                            .pad_w = taps - 1};
    SN_TRY(sni_slices_run(k, s, &call, &(sni_epilogue){0}));
    int64_t stride = window.stride[0], more = w->dims[2] % stride;
    weave_job j = {.kernels = sni_cpu_kernels_get(),
                   .w = s,
                   .x = x->data,
                   .rows = rows,
                   .bias = s->bias,
                   .y = y->data,
                   .channels = y->dims[1],
                   .stride = stride,
                   .in = x->dims[2],
                   .places = places,
                   .begin = window.begin[0],
                   .out = y->dims[2],
                   .whole = more ? more : stride};
    sni_parallel_for(k->threads, y->dims[0] * y->dims[1], sni_cpu_grain(j.out), weave, &j);
    return SN_OK;
}
