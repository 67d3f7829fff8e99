/* inner_product.h - matrix products by Winograd's inner product: two terms of a sum for one product
 * and two additions.
 *
 * Winograd (1968) noticed that
 *
 *     x1 w1 + x2 w2 = (x1 + w2) (x2 + w1) - x1 x2 - w1 w2
 *
 * where the last two products belong to a row of X and to a column of W: they are summed once and
 * taken off at the end. That exchanges a product for an addition, which gains nothing where both
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
#ifndef SNI_CPU_GEMM_INNER_PRODUCT_H
#define SNI_CPU_GEMM_INNER_PRODUCT_H

#include "cpu/costs/costs.h"
#include "cpu/gemm/product.h"

#include <stddef.h>

/* A right operand (k,n) that sni_gemm_pack_b() has packed, and what sni_inner_product_measure()
 * says of it. k is a multiple of SNI_LEFT_STEPS. */
typedef struct sni_inner_product_b {
    int64_t k, n;
    const float *panels;
    const float *numbers; /* sni_inner_product_numbers() */
    const uint8_t *tame;  /* sni_inner_product_flags(): whether a panel may be multiplied so */
    bool scaled;          /* its columns have been */
} sni_inner_product_b;

/* Floats and flags that are kept of such an operand. */
size_t sni_inner_product_numbers(int64_t k, int64_t n, bool scaled);
size_t sni_inner_product_flags(int64_t n);

/* Fills them. With `scaled`, the columns of `panels` are brought to one size. */
void sni_inner_product_measure(float *panels, int64_t k, int64_t n, bool scaled, float *numbers,
                               uint8_t *tame);

/* A panel of columns, from column j on, of packed panels in k-blocks of `depth` rows. */
typedef struct sni_inner_product_panel {
    float *panels;
    int64_t k, n, depth, j;
    float *less;       /* gets what is too much in the sums of its columns, */
    int64_t less_step; /* and so many floats on for each k-block */
    float *factors;    /* gets what leads back */
} sni_inner_product_panel;
/* Brings its columns to one size. False: some column has to be multiplied plainly. */
bool sni_inner_product_scale_panel(const sni_inner_product_panel *panel);

/* A tile of inner products: A, k terms (a multiple of SNI_LEFT_STEPS), whose rows'
 * lines of so many lie side by side and a_step elements after one another, by a panel of B, less
 * what is too much, times factors. Meanwhile `each` lines of 64 bytes from `fetch` on come to the
 * second-level cache with every SNI_LEFT_STEPS terms, after which it moves on by fetch_step
 * elements; it may point anywhere. */
typedef struct sni_inner_product_tile {
    int64_t k;
    const float *a, *b;
    int64_t a_step;
    const float *row_less, *row_factors;
    const float *column_less, *column_factors; /* the factors may be NULL: 1 */
    const float *fetch;
    int64_t fetch_step, each;
    sni_product_end end;
} sni_inner_product_tile;
typedef void (*sni_inner_product_tile_fn)(const sni_inner_product_tile *t);

/* The kernels of a tier. */
struct sni_inner_product_kernels {
    int most; /* rows of a tile */
    /* By number of rows: tiles of all columns of a panel, and of the first half of them. */
    sni_inner_product_tile_fn tile[SNI_MAX_MR + 1], half[SNI_MAX_MR + 1];
    /* Packs rows side by side, line after line to_step elements apart, each row times a power of
     * two that makes the square of its length about `size`. Writes what is too much in the sums of
     * each, and the factors that lead back; a row of zeros has 0. Returns which rows have to be
     * multiplied plainly, a bit each. */
    uint32_t (*left)(int rows, int parts, const sni_product_part *part, float size, float *to,
                     int64_t to_step, float *less, float *factors);
    /* The same for rows that lie so already, `lines` lines of them. */
    uint32_t (*scale)(int rows, int64_t lines, float size, float *at, int64_t step, float *less,
                      float *factors);
    /* Adds the squares of the columns of a panel (k x nr) to `squares`, and what is too much in
     * their sums to `less`; k is a multiple of SNI_LEFT_STEPS. */
    void (*columns)(int64_t k, const float *b, double *squares, double *less);
};

/* True where it saves cycles at all, and there are kernels for it. */
bool sni_inner_product_is_quicker(void);

/* Cycles that it saves for each row: by sizes alone. A row by a panel of columns takes fewer for
 * each term, some more at the end, and the row has to be packed. */
double sni_inner_product_gain(int64_t n, int64_t k, const sni_gemm_costs *c);

/* Most rows of a panel; 0: this tier has no such products. */
int sni_inner_product_most(void);

/* Whether m rows by (k,n) are worth the packing: by sizes alone. */
bool sni_inner_product_suits(int64_t m, int64_t n, int64_t k);

/* Floats of scratch for so many threads, aligned to 64 bytes. */
size_t sni_inner_product_scratch_size(const sni_product *p, const sni_inner_product_b *b,
                                      int threads);

/* Runs a product whose row panels have at most sni_inner_product_most() rows. */
void sni_inner_product_run(const sni_product *p, const sni_inner_product_b *b, int threads,
                           float *scratch);

#endif
