/* igemm.h - matrix products of bytes, summed exactly in 32 bits: C = finish(A B).
 *
 * One operand is unsigned (activations) and one signed (weights); whoever packs an operand flips
 * the top bit of bytes that are of the other kind, which moves their zero point by 128. Elements
 * are packed in units of 32 bits: `group` neighbours along k, 4 bytes or 2 words, as the tier's
 * instructions need them. A is packed in panels of at most mr rows, (unit, mr); B in panels of nr
 * columns, (unit, nr). The product itself ignores zero points: the finishing step adds their
 * contribution. Sums wrap modulo 2^32, so their order does not matter: results are the same on
 * every tier and for any number of threads. */
#ifndef SNI_CPU_INT8_IGEMM_H
#define SNI_CPU_INT8_IGEMM_H

#include "cpu/int8/requantize.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SNI_INT_MR = 12, SNI_INT_NR = 32, SNI_INT_GROUP = 4 }; /* the largest of any tier */

/* Requantisation of a tile: (s + add) * scale with |scale| < 1, rounded to nearest even, plus
 * `zero`, clamped to [low, low + 255] with low 0 or -128. */
typedef struct sni_int_bytes {
    const int32_t *add; /* for each row */
    const float *scale;
    float zero, low;
    uint8_t *y;
    int64_t y_step;
} sni_int_bytes;

struct sni_int_kernels {
    int mr, nr, group; /* rows and columns of a tile; elements of a unit */
    /* Sums of a panel of A ([0] unsigned, [1] signed) with so many rows and one of B, to (rows,
     * nr). */
    void (*tile[2][SNI_INT_MR + 1])(int64_t units, const int32_t *a, const int32_t *b, int32_t *c);
    /* The same for a signed A, with all nr columns requantised from registers. NULL: none. */
    void (*tile_bytes[SNI_INT_MR + 1])(int64_t units, const int32_t *a, const int32_t *b,
                                       const sni_int_bytes *to);
    /* One unit of a panel of B from `group` rows of nr bytes, whose bits are flipped by `flip`. */
    void (*interleave)(const uint8_t *const *rows, uint8_t flip, bool is_signed, int32_t *panel);
    /* Units of one row of A, `step` apart, from n bytes; zeros fill up the last one. */
    void (*units)(const uint8_t *row, int64_t n, uint8_t flip, bool is_signed, int32_t *to,
                  int64_t step);
    /* sums[j] = the sum of column j of an unsigned panel of B. */
    void (*column_sums)(const int32_t *panel, int64_t units, int32_t *sums);
    /* The sum of n bytes, flipped. */
    int64_t (*byte_sum)(const uint8_t *x, int64_t n, uint8_t flip);
    /* Copies `rows` rows of n bytes that are `stride` apart within a row. */
    void (*copy_rows)(const uint8_t *from, int64_t from_step, int64_t stride, int64_t rows,
                      int64_t n, uint8_t *to, int64_t to_step);
    /* nr bytes: from[i] where mask[i] is 255, `other` where it is 0. */
    void (*blend)(const uint8_t *from, const uint8_t *mask, uint8_t other, uint8_t *to);
};

/* ---- The product ---- */

/* Writes columns [n0, n0 + cols) of B as one panel, all units. Columns from `cols` to nr must be
 * written with anything. Called from several threads at once. */
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
    /* Every thread calls it now and then; true: the rest of C is left unwritten. NULL: never. */
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
