/* conv_test.h - what tests of blocked convolution kernels share: guarded memory, random tensors and
 * an oracle in double precision. */
#ifndef CONV_TEST_H
#define CONV_TEST_H

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
}

static inline double conv_activate(const sni_conv_epilogue *e, double x) {
    double p0 = (double)e->p0, p1 = (double)e->p1;
    switch (e->act) {
    case SNI_ACT_RELU:
        return x < 0 ? 0 : x;
    case SNI_ACT_CLIP:
        return x < p0 ? p0 : x > p1 ? p1 : x;
    case SNI_ACT_HARD_SWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case SNI_ACT_SILU:
        return x / (1 + exp(-x));
    default:
        return x;
    }
}

/* Where element (image, channel, row, column) of a blocked tensor is. */
static inline int64_t blocked_at(int64_t image, int64_t channel, int64_t row, int64_t column,
                                 int64_t channels, int64_t h, int64_t w, int64_t block) {
    return (((image * sni_blocks(channels, block) + channel / block) * h + row) * w + column) *
               block +
           channel % block;
}

/* One output in double precision before the activation. */
static inline double conv_oracle(const conv_case *c, int64_t image, int64_t out, int64_t row,
                                 int64_t column) {
    const sni_conv_geometry *g = &c->g;
    int64_t depth = g->in_channels / g->groups;
    int64_t first = out / (g->out_channels / g->groups) * depth;
    double sum = c->bias ? (double)c->bias[out] : 0;
    for (int64_t i = 0; i < depth; i++)
        for (int64_t a = 0; a < g->kernel_h; a++)
            for (int64_t b = 0; b < g->kernel_w; b++) {
                int64_t r = row * g->stride_h - g->pad_top + a * g->dilation_h;
                int64_t q = column * g->stride_w - g->pad_left + b * g->dilation_w;
                if (r < 0 || r >= g->in_h || q < 0 || q >= g->in_w) continue;
                sum += (double)c->x[blocked_at(image, first + i, r, q, g->in_channels, g->in_h,
                                               g->in_w, c->block)] *
                       (double)c->w[((out * depth + i) * g->kernel_h + a) * g->kernel_w + b];
            }
    int64_t at = blocked_at(image, out, row, column, g->out_channels, g->out_h, g->out_w, c->block);
    return sum + (c->residual ? (double)c->residual[at] : 0);
}

/* The largest error of y against the oracle, over the largest result before the activation. */
static inline double conv_error(const conv_case *c) {
    const sni_conv_geometry *g = &c->g;
    double worst = 0, scale = 1e-3;
    for (int64_t n = 0; n < g->n; n++)
        for (int64_t m = 0; m < g->out_channels; m++)
            for (int64_t h = 0; h < g->out_h; h++)
                for (int64_t w = 0; w < g->out_w; w++) {
                    double sum = conv_oracle(c, n, m, h, w), want = conv_activate(&c->e, sum);
                    double got = (double)c->y[blocked_at(n, m, h, w, g->out_channels, g->out_h,
                                                         g->out_w, c->block)];
                    if (!(fabs(got - want) <= worst)) worst = fabs(got - want);
                    if (fabs(sum) > scale) scale = fabs(sum);
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
