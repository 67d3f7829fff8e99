/* conv_test.h - what tests of blocked convolution kernels share: guarded memory, random tensors and
 * an oracle in double precision. */
#ifndef CONV_TEST_H
#define CONV_TEST_H

#include "../plain_act.h"
#include "unit.h"

#include "cpu/conv/conv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GUARD = 64 };
#define GUARD_VALUE 12345.0f

static uint64_t conv_seed = 1;

static inline int64_t random_below(int64_t n) {
    return (int64_t)(unit_random(&conv_seed) % (uint32_t)n);
}

static inline float random_float(void) {
    return (float)random_below(2001) / 1000.0f - 1.0f;
}

/* `count` random floats with guards around them, aligned to 64 bytes. */
static inline float *random_floats(int64_t count) {
    size_t n = (size_t)count + 2 * GUARD;
    float *p = aligned_alloc(64, (n * sizeof *p + 63) / 64 * 64);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++) p[i] = GUARD_VALUE;
    p += GUARD;
    for (int64_t i = 0; i < count; i++) p[i] = random_float();
    return p;
}

static inline void floats_check(const float *p, int64_t count) {
    for (int i = 0; i < GUARD; i++) {
        assert_true(p[-1 - i] == GUARD_VALUE);
        assert_true(p[count + i] == GUARD_VALUE);
    }
}

static inline void floats_free(float *p) {
    if (p) free(p - GUARD);
}

/* One convolution with its tensors: x, y and residual are blocked, w is (M,C/groups,kH,kW). */
typedef struct conv_case {
    sni_conv_geometry g;
    sni_conv_epilogue e;
    float *x, *w, *bias, *residual, *y;
    double *reference; /* of conv_error(); NULL: not computed yet. x, w, bias and residual stay. */
    int64_t block, x_count, w_count, y_count;
} conv_case;

static inline int64_t conv_out(int64_t in, int64_t kernel, int64_t stride, int64_t dilation,
                               int64_t pads) {
    return (in + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

/* Fills in what follows from the geometry's input and window, with random tensors. Channels beyond
 * the last are random numbers, too. */
static inline void conv_case_init(conv_case *c, bool bias, bool residual) {
    sni_conv_geometry *g = &c->g;
    c->block = sni_cpu_kernels_get()->block;
    g->out_h =
        conv_out(g->in_h, g->kernel_h, g->stride_h, g->dilation_h, g->pad_top + g->pad_bottom);
    g->out_w =
        conv_out(g->in_w, g->kernel_w, g->stride_w, g->dilation_w, g->pad_left + g->pad_right);
    int64_t out = sni_blocks(g->out_channels, c->block) * c->block;
    c->x_count = g->n * sni_blocks(g->in_channels, c->block) * c->block * g->in_h * g->in_w;
    c->y_count = g->n * out * g->out_h * g->out_w;
    c->w_count = g->out_channels * (g->in_channels / g->groups) * g->kernel_h * g->kernel_w;
    c->x = random_floats(c->x_count);
    c->w = random_floats(c->w_count);
    c->y = random_floats(c->y_count);
    c->bias = bias ? random_floats(out) : NULL;
    for (int64_t i = g->out_channels; bias && i < out; i++) c->bias[i] = 0;
    c->residual = residual ? random_floats(c->y_count) : NULL;
    c->e.bias = c->bias;
    c->e.residual = c->residual;
}

static inline void conv_case_free(conv_case *c) {
    floats_check(c->x, c->x_count);
    floats_check(c->y, c->y_count);
    floats_free(c->x);
    floats_free(c->w);
    floats_free(c->y);
    floats_free(c->bias);
    floats_free(c->residual);
    free(c->reference);
}

/* Where element (image, channel, row, column) of a blocked tensor is. */
static inline int64_t blocked_at(int64_t image, int64_t channel, int64_t row, int64_t column,
                                 int64_t channels, int64_t h, int64_t w, int64_t block) {
    return (((image * sni_blocks(channels, block) + channel / block) * h + row) * w + column) *
               block +
           channel % block;
}

/* The picture of one channel and the taps it meets, added to `sums` (out_h, out_w). */
static inline void conv_add_channel(const conv_case *c, int64_t image, int64_t channel,
                                    const float *taps, double *sums) {
    const sni_conv_geometry *g = &c->g;
    const float *x =
        c->x + blocked_at(image, channel, 0, 0, g->in_channels, g->in_h, g->in_w, c->block);
    for (int64_t a = 0; a < g->kernel_h; a++)
        for (int64_t b = 0; b < g->kernel_w; b++, taps++)
            for (int64_t h = 0; h < g->out_h; h++) {
                int64_t row = h * g->stride_h - g->pad_top + a * g->dilation_h;
                if (row < 0 || row >= g->in_h) continue;
                for (int64_t w = 0; w < g->out_w; w++) {
                    int64_t column = w * g->stride_w - g->pad_left + b * g->dilation_w;
                    if (column < 0 || column >= g->in_w) continue;
                    sums[h * g->out_w + w] +=
                        (double)x[(row * g->in_w + column) * c->block] * (double)*taps;
                }
            }
}

/* Results before the activation in double precision, (n, out_channels, out_h, out_w). */
static inline double *conv_reference(const conv_case *c) {
    const sni_conv_geometry *g = &c->g;
    int64_t depth = g->in_channels / g->groups, pixels = g->out_h * g->out_w;
    int64_t taps = g->kernel_h * g->kernel_w;
    double *sums = calloc((size_t)(g->n * g->out_channels * pixels) + 1, sizeof *sums);
    assert_non_null(sums);
    for (int64_t i = 0; i < g->n * g->out_channels; i++) {
        int64_t image = i / g->out_channels, out = i % g->out_channels;
        int64_t first = out / (g->out_channels / g->groups) * depth;
        double *to = sums + i * pixels;
        for (int64_t k = 0; k < depth; k++)
            conv_add_channel(c, image, first + k, c->w + (out * depth + k) * taps, to);
        int64_t at = blocked_at(image, out, 0, 0, g->out_channels, g->out_h, g->out_w, c->block);
        for (int64_t p = 0; p < pixels; p++) {
            if (c->bias) to[p] += (double)c->bias[out];
            if (c->residual) to[p] += (double)c->residual[at + p * c->block];
        }
    }
    return sums;
}

/* The largest error of y against the reference, which is computed once for a case, over the largest
 * result before the activation. */
static inline double conv_error(conv_case *c) {
    const sni_conv_geometry *g = &c->g;
    int64_t pixels = g->out_h * g->out_w;
    double worst = 0, scale = 1e-3;
    if (!c->reference) c->reference = conv_reference(c);
    for (int64_t i = 0; i < g->n * g->out_channels; i++) {
        int64_t at = blocked_at(i / g->out_channels, i % g->out_channels, 0, 0, g->out_channels,
                                g->out_h, g->out_w, c->block);
        for (int64_t p = 0; p < pixels; p++) {
            double sum = c->reference[i * pixels + p];
            double error =
                fabs((double)c->y[at + p * c->block] - plain_act(c->e.act, c->e.p0, c->e.p1, sum));
            if (!(error <= worst)) worst = error;
            if (fabs(sum) > scale) scale = fabs(sum);
        }
    }
    return worst / scale;
}

static inline void conv_print(const conv_case *c) {
    const sni_conv_geometry *g = &c->g;
    printf("n %d channels %d to %d, groups %d, %dx%d kernel %dx%d stride %d,%d dilation %d,%d pads "
           "%d,%d,%d,%d act %d\n",
           (int)g->n, (int)g->in_channels, (int)g->out_channels, (int)g->groups, (int)g->in_h,
           (int)g->in_w, (int)g->kernel_h, (int)g->kernel_w, (int)g->stride_h, (int)g->stride_w,
           (int)g->dilation_h, (int)g->dilation_w, (int)g->pad_top, (int)g->pad_left,
           (int)g->pad_bottom, (int)g->pad_right, (int)c->e.act);
}

#endif
