/* paired.h - matrix products by pairs of terms: two terms of a sum for one product and two
 * additions.
 *
 * Winograd (1968) noticed that
 *
 *     x1 w1 + x2 w2 = (x1 + w2) (x2 + w1) - x1 x2 - w1 w2
 *
 * where the last two products belong to a row of X and to a column of W: they are summed once and
 * taken off at the end. That exchanges a product for an addition, which is worth nothing where both
 * take the same units. AMD's cores since Zen have units that add beside those that multiply: with
 * ten of sixteen pairs summed so, and six as they are, both kinds are busy all the time and a
 * product takes 0.69 of the time that its multiplications alone would need.
 *
 * Every other pair is taken with the opposite sign,
 *
 *     x1 w1 + x2 w2 = -(w2 - x1) (w1 - x2) + x1 x2 + w1 w2
 *
 * so that what is taken off stays small even where all numbers are positive, as behind a Relu. The
 * sums err least if rows and columns are of one size. So rows of X are brought to the size of W's
 * columns by powers of two while they are packed, and results back; columns, too, where W is packed
 * for this alone. Errors are then about 1.5 times those of plain sums. A row of zeros gives zeros.
 * Rows and columns with numbers that are not finite, or nearly so, are multiplied plainly. */
#ifndef SNI_CPU_PAIRED_H
#define SNI_CPU_PAIRED_H

#include "cpu/kernels.h"

#include <stddef.h>

/* A right operand (k,n) that sni_gemm_pack_b() has packed, and what sni_paired_measure() says of
 * it. k is a multiple of SNI_LEFT_STEPS. */
typedef struct sni_paired_b {
    int64_t k, n;
    const float *panels;
    const float *numbers; /* sni_paired_numbers() */
    const uint8_t *tame;  /* sni_paired_flags(): whether a panel may be multiplied by pairs */
    bool scaled;          /* its columns have been */
} sni_paired_b;

/* Floats and flags that are kept of such an operand. */
size_t sni_paired_numbers(int64_t k, int64_t n, bool scaled);
size_t sni_paired_flags(int64_t n);

/* Fills them. With `scaled`, the columns of `panels` are brought to one size. */
void sni_paired_measure(float *panels, int64_t k, int64_t n, bool scaled, float *numbers,
                        uint8_t *tame);

/* A panel of columns, from column j on, of packed panels in k-blocks of `depth` rows. */
typedef struct sni_paired_panel {
    float *panels;
    int64_t k, n, depth, j;
    float *less;       /* gets what is too much in the sums of its columns, */
    int64_t less_step; /* and so many floats on for each k-block */
    float *factors;    /* gets what leads back */
} sni_paired_panel;
/* Brings its columns to one size. False: some column has to be multiplied plainly. */
bool sni_paired_scale_panel(const sni_paired_panel *panel);

/* Lines of the left operand, SNI_LEFT_STEPS numbers each: those of row i follow each other at
 * step[i] elements from from[i] on, `lines` of them. */
typedef struct sni_paired_part {
    int64_t lines;
    const float *from[SNI_MAX_MR];
    int64_t step[SNI_MAX_MR];
    const float *factors; /* of the numbers of each line, line after line; NULL: 1 */
} sni_paired_part;
enum { SNI_PAIRED_PARTS = 64 }; /* most of them for a k-block, which has no more lines */

/* Where results of a tile go, row by row and vector by vector, and what is done to them before. */
typedef struct sni_paired_end {
    float *y;
    int64_t row, vector;   /* elements of y to the next row and to the next vector of a row */
    bool add;              /* to what y has, first */
    const float *bias;     /* of columns; NULL: none */
    const float *residual; /* added, with distances of its own; NULL: none */
    int64_t residual_row, residual_vector;
    bool bounded; /* at last, by these: */
    float low, high;
} sni_paired_end;

/* A tile of products by pairs of terms: A, k terms (a multiple of SNI_LEFT_STEPS), whose rows'
 * lines of so many lie side by side and a_step elements after one another, by a panel of B, less
 * what is too much, times factors. Meanwhile `each` lines of 64 bytes from `fetch` on come to the
 * second-level cache with every SNI_LEFT_STEPS terms, after which it moves on by fetch_step
 * elements; it may point anywhere. */
typedef struct sni_paired_tile {
    int64_t k;
    const float *a, *b;
    int64_t a_step;
    const float *row_less, *row_factors;
    const float *column_less, *column_factors; /* the factors may be NULL: 1 */
    const float *fetch;
    int64_t fetch_step, each;
    sni_paired_end end;
} sni_paired_tile;
typedef void (*sni_paired_tile_fn)(const sni_paired_tile *t);

/* The kernels of a tier. */
struct sni_paired_kernels {
    int most; /* rows of a tile */
    /* By number of rows: tiles of all columns of a panel, and of the first half of them. */
    sni_paired_tile_fn tile[SNI_MAX_MR + 1], half[SNI_MAX_MR + 1];
    /* Packs rows side by side, line after line to_step elements apart, each row times a power of
     * two that makes the square of its length about `size`. Writes what is too much in the sums of
     * each, and the factors that lead back; a row of zeros has 0. Returns which rows have to be
     * multiplied plainly, a bit each. */
    uint32_t (*left)(int rows, int parts, const sni_paired_part *part, float size, float *to,
                     int64_t to_step, float *less, float *factors);
    /* The same for rows that lie so already, `lines` lines of them. */
    uint32_t (*scale)(int rows, int64_t lines, float size, float *at, int64_t step, float *less,
                      float *factors);
    /* Adds the squares of the columns of a panel (k x nr) to `squares`, and what is too much in
     * their sums to `less`; k is a multiple of SNI_LEFT_STEPS. */
    void (*columns)(int64_t k, const float *b, double *squares, double *less);
};

/* A panel of rows: how many, and where the first one's results are, for whom it may concern. */
typedef struct sni_paired_rows {
    int count;
    int64_t at;
} sni_paired_rows;

/* A tile of results: some columns of a panel of rows. */
typedef struct sni_paired_place {
    sni_paired_rows rows;
    int64_t column, columns;
    bool first, last; /* of the k-blocks: nothing is there yet, all is there now */
} sni_paired_place;

/* A product: rows in panels of at most sni_paired_most(). */
typedef struct sni_paired {
    const sni_paired_b *b;
    int64_t panels;
    const void *ctx;
    sni_paired_rows (*rows)(const void *ctx, int64_t panel);
    /* Lines [line, line + lines) of a panel's rows, in order. Returns the number of parts. */
    int (*left)(const void *ctx, int64_t panel, int64_t line, int64_t lines,
                sni_paired_part *parts);
    /* Line `line` of a panel whose rows' lines lie side by side; *step leads to the next line. For
     * fetching alone: the panel may be one too many. NULL: their lines do not lie so. */
    const float *(*ahead)(const void *ctx, int64_t panel, int64_t line, int64_t *step);
    /* Where a tile of one or two whole vectors goes. True: finish() is to be called after it. */
    bool (*end)(const void *ctx, const sni_paired_place *place, sni_paired_end *end);
    /* What is left to do to results that are in place or, if `sums` is not NULL, to sums that are
     * not: they are nr in a row there. */
    void (*finish)(const void *ctx, const sni_paired_place *place, const float *sums);
    /* Asked between blocks by every thread; true: the rest is left undone. NULL: never. */
    bool (*stop)(const void *ctx);
    const void *stop_ctx;
} sni_paired;

/* True where products by pairs are the quicker ones, and there are kernels for them. */
bool sni_paired_pays(void);

/* Most rows of a panel; 0: this tier has no such products. */
int sni_paired_most(void);

/* Whether m rows by (k,n) are worth the packing: by sizes alone. */
bool sni_paired_suits(int64_t m, int64_t n, int64_t k);

/* Lets results be bounded if that is all an activation does; else false. */
bool sni_paired_bound(sni_act act, float p0, float p1, sni_paired_end *end);

/* Floats of scratch for so many threads, aligned to 64 bytes. */
size_t sni_paired_scratch_size(const sni_paired *p, int threads);
void sni_paired_run(const sni_paired *p, int threads, float *scratch);

#endif
