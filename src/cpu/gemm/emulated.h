/* emulated.h - float matrix products emulated on int8 tiles (Intel's AMX): split-int8 GEMM.
 *
 * Tiles multiply integers of 8 bits, 32 times as many at a time as vectors multiply floats, and add
 * them up in 32 bits without rounding. So a row of A and a column of B are brought to integers of
 * 24 bits by factors that take the greatest number of each to the greatest integer, and those are
 * split into three slices of 8 bits, of either sign:
 *
 *     x = f (d1 + d2 / 2^8 + d3 / 2^16)
 *
 * Of the nine products of two numbers' slices the three of least weight are left out, and those of
 * one weight have one sum. What errs is the rounding to 24 bits and what is left out: about 2^-24
 * of the product of the greatest number of the row and that of the column for each term, at random.
 * Plain sums, whose rounding grows with the sum, were seen to err two to six times as much where
 * rows have no number much greater than the others, and half as much where each has one that is a
 * hundred times greater.
 *
 * B takes three bytes for each number, which is all that is kept of it. Zeros stay zeros, and what
 * would round to zero becomes the least number of its sign, so that rows of A with numbers that are
 * not finite can be multiplied plainly; so are rows of huge and of tiny numbers. Of rows with NaN
 * nothing needs to be multiplied. A matrix B with numbers that are not finite is kept as floats. */
#ifndef SNI_CPU_GEMM_EMULATED_H
#define SNI_CPU_GEMM_EMULATED_H

#include "cpu/gemm/gemm.h"
#include "cpu/gemm/product.h"

enum {
    SNI_EMULATED_SLICES = 3,
    SNI_EMULATED_ROWS = 16,    /* of a tile: most of a panel of rows */
    SNI_EMULATED_COLUMNS = 16, /* of a tile: a strip */
    SNI_EMULATED_TERMS = 64,   /* of a tile: a step */
    SNI_EMULATED_TILE = 1024,  /* bytes of a tile */
    SNI_EMULATED_STEP = SNI_EMULATED_SLICES * SNI_EMULATED_TILE
};

/* A right operand (k,n), k a multiple of SNI_LEFT_STEPS, as sni_emulated_pack() leaves it. */
typedef struct sni_emulated_b {
    int64_t k, n;
    const char *strips;   /* step after step, the tiles of the slices one after the other; NULL: */
    const float *floats;  /* k rows of each strip */
    const float *factors; /* of columns; not with floats */
} sni_emulated_b;

/* Where a right operand comes from. */
typedef struct sni_emulated_source {
    int64_t k, n;
    sni_gemm_fill_fn fill;
    const void *ctx;
} sni_emulated_source;

/* True if the tier in force has such products, and they are of a size for them. */
bool sni_emulated_can(int64_t k, int64_t n);

/* Whether m rows by (k,n) are quicker so than by floats: by sizes alone. */
bool sni_emulated_suits(int64_t m, int64_t n, int64_t k);

/* Cycles of one thread that it takes; for comparing with other ways. */
double sni_emulated_cost(int64_t m, int64_t n, int64_t k);

/* Writes how great numbers are in each column, as bits, n rounded up to whole strips. False: some
 * number is not finite. */
bool sni_emulated_measure(const sni_emulated_source *s, int32_t *sizes);

/* Bytes of a packed operand, aligned to 64. */
size_t sni_emulated_size(int64_t k, int64_t n, bool floats);

/* Packs it; `sizes` are from sni_emulated_measure(), which with `floats` are not used. */
void sni_emulated_pack(const sni_emulated_source *s, const int32_t *sizes, bool floats, void *to);

/* What sni_emulated_pack() has written. */
sni_emulated_b sni_emulated_of(int64_t k, int64_t n, bool floats, const void *packed);

/* Bytes of scratch for so many threads, aligned to 64 bytes. */
size_t sni_emulated_scratch_size(const sni_product *p, const sni_emulated_b *b, int threads);

/* Runs a product whose row panels have at most SNI_EMULATED_ROWS rows, none more than the first. */
void sni_emulated_run(const sni_product *p, const sni_emulated_b *b, int threads, void *scratch);

/* ---- Kernels ---- */

/* A tile of sums, one array for each weight of slices' products. */
typedef struct sni_emulated_sums {
    _Alignas(64) int32_t of[SNI_EMULATED_SLICES][SNI_EMULATED_ROWS * SNI_EMULATED_COLUMNS];
} sni_emulated_sums;

/* Of the tier that has tiles. */
typedef struct sni_emulated_kernels {
    /* What a thread calls before it multiplies tiles of `rows` rows, and after it has. */
    void (*begin)(int rows);
    void (*end)(void);
    /* Takes the sizes of rows' numbers, as bits, into account: SNI_LEFT_STEPS of each row, the
     * greatest of which is the row's. */
    void (*measure)(int rows, int parts, const sni_product_part *part, int32_t *sizes);
    /* What takes rows of these sizes to slices, and what leads back, SNI_EMULATED_ROWS of each.
     * Returns which rows have to be multiplied plainly, a bit each. */
    uint32_t (*powers)(int rows, const int32_t *sizes, float *powers, float *factors);
    /* The slices of rows. */
    void (*left)(int rows, int parts, const sni_product_part *part, const float *powers, char *to);
    /* Takes the sizes of one step's numbers, a strip's SNI_EMULATED_TERMS rows, as bits, into
     * account. */
    void (*sizes)(const float *from, int32_t *sizes);
    /* The slices of such numbers, for columns of these sizes, and what leads back. */
    void (*right)(const float *from, const int32_t *sizes, char *to);
    void (*factors)(const int32_t *sizes, float *factors);
    /* A panel of rows by a strip of columns. Meanwhile `each` lines of 64 bytes from `fetch` on
     * come to the second-level cache with every step, and so on; it may point anywhere. Between
     * begin() and end(). */
    void (*product)(int64_t steps, const char *a, const char *b, const char *fetch, int64_t each,
                    sni_emulated_sums *sums);
    /* Sums of rows [from, to) to results. */
    void (*finish)(int from, int to, const sni_emulated_sums *sums, const float *row_factors,
                   const float *column_factors, const sni_product_end *end);
    /* The same of one row's sums in floats. */
    void (*finish_row)(int row, const float *sums, const sni_product_end *end);
    /* Numbers that slices of a step stand for, SNI_EMULATED_TERMS rows of a strip. */
    void (*numbers)(const char *emulated, const float *factors, float *to);
    /* Adds the products of a row's numbers and such ones, a step of them, to the sums of columns.
     */
    void (*plain)(const float *left, const float *right, float *sums);
} sni_emulated_kernels;

/* In plain C: what others are compared with. */
extern const sni_emulated_kernels sni_emulated_kernels_plain;

/* Those of the tier in force; NULL: it has none. */
const sni_emulated_kernels *sni_emulated_kernels_get(void);

#endif
