/* igemm.h - matrix products of bytes, summed exactly in 32 bits: C = finish(A B).
 *
 * One operand is unsigned (activations) and one signed (weights); whoever packs an operand flips
 * the top bit of bytes that are of the other kind, which moves their zero point by 128. Elements
 * are packed in units of 32 bits: `group` neighbours along k, 4 bytes or 2 words, as the tier's
 * instructions want them. A is packed in panels of at most mr rows, (unit, mr); B in panels of nr
 * columns, (unit, nr). Zero points are no business of the product: a finishing step adds what they
 * amount to. Sums wrap, in whatever order they are made: results are the same on every tier and for
 * any number of threads. */
#ifndef SNI_CPU_INT8_IGEMM_H
#define SNI_CPU_INT8_IGEMM_H

#include "base/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SNI_INT_MR = 12, SNI_INT_NR = 32, SNI_INT_GROUP = 4 };

typedef enum sni_int_kind { SNI_INT_SUMS, SNI_INT_FLOATS, SNI_INT_BYTES } sni_int_kind;

/* What becomes of a block of sums: s = acc + add_m + add_n + mul_m * mul_n, then
 * SUMS: s;  FLOATS: s * scale + bias;  BYTES: s * scale rounded to even, plus `zero`, in
 * [low, low + 255]. */
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

/* Where the sums of a tile go as bytes: s + add, times scale (below 1 in size) and rounded to even,
 * plus `zero`, in [low, low + 255], low being 0 or -128. */
typedef struct sni_int_bytes {
    const int32_t *add; /* for each row */
    const float *scale;
    float zero, low;
    uint8_t *y;
    int64_t y_step;
} sni_int_bytes;

/* A row of sums of products over taps, as floats that hold integers: fewer than SNI_INT_TAPS taps
 * of bytes keep below 2^24, where floats are exact. Rows of x may be read, and y written, up to
 * the next multiple of SNI_INT_SLACK elements. */
enum { SNI_INT_TAPS = 256, SNI_INT_SLACK = 64 };
typedef struct sni_int_taps {
    const float *const *x; /* for each tap: what it sees for output 0 */
    const float *w;        /* for each tap */
    int64_t taps, n;
    int32_t *y;
} sni_int_taps;

/* Sums over windows of bytes: y[o, i] = the sum over kernel rows r of the products of w's row r and
 * the bytes from x + (o * down + r) * x_row + i * across on. A row of w is `units` units of `group`
 * signed elements. Rows of x may be read up to SNI_INT_SLACK bytes past the last window; rows of y
 * are written up to the next multiple of 16. */
typedef struct sni_int_windows {
    const uint8_t *x;
    int64_t x_row;
    uint8_t flip; /* of x, to make it unsigned */
    const int32_t *w;
    int64_t kernel, units; /* rows of w, units of each */
    int64_t down, across;  /* strides; across is 1 or 2 */
    int64_t rows, n;
    int32_t *y;
    int64_t y_step;
} sni_int_windows;

/* y = (a - a_zero) * a_scale + (b - b_zero) * b_scale, or that times this times `scale`, plus zero,
 * rounded to even, in [low, low + 255]. */
typedef struct sni_int_pair {
    bool is_signed, product;
    float a_zero, a_scale, b_zero, b_scale, scale, zero, low;
} sni_int_pair;

typedef struct sni_int_kernels {
    int mr, nr, group;
    /* Sums of a panel of A ([0] unsigned, [1] signed) of so many rows and one of B to (rows, nr).
     */
    void (*tile[2][SNI_INT_MR + 1])(int64_t units, const int32_t *a, const int32_t *b, int32_t *c);
    /* The same for a signed A, with all nr columns finished on the spot. NULL: not there. */
    void (*tile_bytes[SNI_INT_MR + 1])(int64_t units, const int32_t *a, const int32_t *b,
                                       const sni_int_bytes *to);
    /* One unit of a panel of B from `group` rows of nr bytes, whose bits are flipped by `flip`. */
    void (*interleave)(const uint8_t *const *rows, uint8_t flip, bool is_signed, int32_t *panel);
    /* Units of one row of A, `step` apart, from n bytes; the last is filled up with zeros. */
    void (*units)(const uint8_t *row, int64_t n, uint8_t flip, bool is_signed, int32_t *to,
                  int64_t step);
    /* sums[j] = the sum of column j of an unsigned panel of B. */
    void (*column_sums)(const int32_t *panel, int64_t units, int32_t *sums);
    int64_t (*byte_sum)(const uint8_t *x, int64_t n, uint8_t flip);
    void (*finish[3])(const sni_int_block *b); /* by kind */
    /* Rows of n bytes, `stride` apart within a row. */
    void (*copy_rows)(const uint8_t *from, int64_t from_step, int64_t stride, int64_t rows,
                      int64_t n, uint8_t *to, int64_t to_step);
    /* nr bytes: from[i] where mask[i] is 255, `other` where it is 0. */
    void (*blend)(const uint8_t *from, const uint8_t *mask, uint8_t other, uint8_t *to);
    void (*widen)(const uint8_t *x, int64_t n, bool is_signed, float zero, float *y); /* x - zero */
    void (*taps)(const sni_int_taps *t);
    void (*windows)(const sni_int_windows *w);
    /* n units of bytes from x + i * across on (1 or 2), which may be read as above. */
    void (*window_units)(const uint8_t *x, int64_t across, uint8_t flip, int64_t n, int32_t *to);
    /* y = (x - zero) * scale; x / scale rounded to even, plus zero, in [low, low + 255]. */
    void (*dequantize)(const uint8_t *x, int64_t n, bool is_signed, float zero, float scale,
                       float *y);
    void (*quantize)(const float *x, int64_t n, float scale, float zero, float low, uint8_t *y);
    void (*pair)(const sni_int_pair *p, const uint8_t *a, int64_t a_step, const uint8_t *b,
                 int64_t b_step, uint8_t *y, int64_t n);
    void (*range)(const float *x, int64_t n, float *least,
                  float *most); /* NaN counts for nothing */
} sni_int_kernels;

/* Those of the tier in force, and of any tier that the machine has (NULL otherwise; for tests). */
const sni_int_kernels *sni_int_kernels_get(void);
const sni_int_kernels *sni_int_kernels_of(sni_isa isa);

/* ---- The product ---- */

/* Writes panel columns [n0, n0 + cols) of B, all units; columns from `cols` on may be anything but
 * must be written. Called from several threads. */
typedef void (*sni_int_fill_fn)(const void *ctx, int64_t n0, int64_t cols, int32_t *panel);

typedef struct sni_igemm {
    int64_t m, n, units;
    bool a_signed;
    const int32_t *packed_a; /* from sni_igemm_pack_a; NULL: `a` */
    const uint8_t *a;        /* rows of `a_k` bytes */
    int64_t a_row, a_k;
    uint8_t a_flip;
    const int32_t *packed_b; /* NULL: `fill` */
    sni_int_fill_fn fill;
    const void *fill_ctx;
    /* How sums are finished: for each row (i) or column (j), NULL where there is nothing. */
    sni_int_kind kind;
    const int32_t *row_add, *col_add;
    const int32_t *row_mul, *col_mul; /* times the sum over k of the other side's elements */
    const float *row_scale, *col_scale;
    const float *col_bias;
    float zero, low;
    void *c; /* rows are c_row elements apart */
    int64_t c_row;
    /* Asked now and then by every thread; true: the rest of C is left undone. NULL: never. */
    bool (*stop)(const void *ctx);
    const void *stop_ctx;
} sni_igemm;

int64_t sni_int_units(int64_t k); /* of k elements */

/* Numbers of int32 of a packed operand. */
size_t sni_igemm_packed_a_size(int64_t m, int64_t units);
size_t sni_igemm_packed_b_size(int64_t n, int64_t units);

/* An element of an operand to pack, for position p of so many of side i (a row of A, a column of
 * B); positions past the end give 0. */
typedef int (*sni_int_element_fn)(const void *ctx, int64_t i, int64_t p);
int32_t sni_int_unit(sni_int_element_fn at, const void *ctx, int64_t i, int64_t u); /* unit u */
void sni_igemm_pack_a(int64_t m, int64_t units, sni_int_element_fn at, const void *ctx,
                      int32_t *to);
void sni_igemm_pack_b(int64_t n, int64_t units, sni_int_element_fn at, const void *ctx,
                      int32_t *to);

/* B as rows of bytes in memory: a fill function and its context. */
typedef struct sni_int_rows {
    const uint8_t *b;
    int64_t row, k; /* bytes from row to row; rows */
    uint8_t flip;
    bool is_signed;
} sni_int_rows;
void sni_int_fill_rows(const void *ctx, int64_t n0, int64_t cols, int32_t *panel);

/* Bytes of scratch, aligned to 64, that a product needs with so many threads. */
size_t sni_igemm_scratch_size(const sni_igemm *g, int threads);
void sni_igemm_run(const sni_igemm *g, int threads, void *scratch);

#endif
