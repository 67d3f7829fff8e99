/* requantize.h - from 32-bit sums and floats to bytes and back: the kernels of one tier. */
#ifndef SNI_CPU_INT8_REQUANTIZE_H
#define SNI_CPU_INT8_REQUANTIZE_H

#include "cpu/core/dispatch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a product's sums become. */
typedef enum sni_int_kind { SNI_INT_SUMS, SNI_INT_FLOATS, SNI_INT_BYTES } sni_int_kind;

/* A block of sums and how it is finished: s = acc + add_m + add_n + mul_m * mul_n, then
 *   SUMS     s
 *   FLOATS   s * scale + bias
 *   BYTES    s * scale rounded to nearest even, plus `zero`, clamped to [low, low + 255] */
typedef struct sni_int_block {
    int64_t rows, n;
    const int32_t *acc;
    int64_t acc_step;             /* from row to row */
    const int32_t *add_m, *mul_m; /* for each row; NULL: none */
    const float *scale_m;         /* NULL: scale_n, or 1 */
    int64_t m_step;               /* 1; 0 if all rows have the first of these */
    const int32_t *add_n, *mul_n; /* for each column; NULL: none */
    const float *scale_n;         /* for each column, if scale_m is NULL */
    const float *bias_n;          /* NULL: none */
    float zero, low;
    void *y;
    int64_t y_step; /* in elements */
} sni_int_block;

/* A sum or product of bytes: y = (a - a_zero) * a_scale + (b - b_zero) * b_scale, or with `product`
 * (a - a_zero) * (b - b_zero) * scale; plus zero, rounded to nearest even, clamped to
 * [low, low + 255]. */
typedef struct sni_int_pair {
    bool is_signed, product;
    float a_zero, a_scale, b_zero, b_scale, scale, zero, low;
} sni_int_pair;

/* What a byte weighs by its distance from the greatest of its lane, at most 2^30, and how a
 * weight's share in the sum becomes a byte: share / y_scale rounded to nearest even, plus zero,
 * clamped to [low, low + 255]. */
typedef struct sni_int_softmax {
    const uint32_t *weight; /* 256 */
    float y_scale, zero, low;
    uint8_t flip;
} sni_int_softmax;

struct sni_requantize_kernels {
    void (*finish[3])(const sni_int_block *b); /* by sni_int_kind */
    /* y = x - zero, for n bytes. */
    void (*widen)(const uint8_t *x, int64_t n, bool is_signed, float zero, float *y);
    /* y = (x - zero) * scale, for n bytes. */
    void (*dequantize)(const uint8_t *x, int64_t n, bool is_signed, float zero, float scale,
                       float *y);
    /* y = x / scale rounded to nearest even, plus zero, clamped to [low, low + 255]. */
    void (*quantize)(const float *x, int64_t n, float scale, float zero, float low, uint8_t *y);
    /* n elements; a_step and b_step are 1, or 0 where the operand is one byte. */
    void (*pair)(const sni_int_pair *p, const uint8_t *a, int64_t a_step, const uint8_t *b,
                 int64_t b_step, uint8_t *y, int64_t n);
    /* y[i] = table[x[i]] for n bytes. */
    void (*look_up)(const uint8_t table[256], const uint8_t *x, int64_t n, uint8_t *y);
    /* A lane of QLinearSoftmax: n bytes, unsigned once they are flipped. */
    void (*softmax)(const sni_int_softmax *s, const uint8_t *x, int64_t n, uint8_t *y);
    /* The minimum and maximum of n floats and of 0; NaN is ignored. */
    void (*range)(const float *x, int64_t n, float *min, float *max);
};

#endif
