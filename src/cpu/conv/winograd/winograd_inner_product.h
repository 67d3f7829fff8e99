/* winograd_inner_product.h - the products of Winograd's method by pairs of terms
 * (cpu/gemm/inner_product.h): rows are the channels of a tile at one point, columns those of a pair
 * of blocks of output channels there. For the files of Winograd's method alone. */
#ifndef SNI_CPU_CONV_WINOGRAD_WINOGRAD_INNER_PRODUCT_H
#define SNI_CPU_CONV_WINOGRAD_WINOGRAD_INNER_PRODUCT_H

#include "cpu/conv/winograd/winograd_parts.h"

/* One panel of transformed weights, k rows of two blocks, is brought to columns of one size. Writes
 * SNI_WINO_NUMBERS: what is too much in the sums, factors back, and then a flag, not 0 if the panel
 * has to be multiplied plainly. */
enum { SNI_WINO_NUMBERS = 2 * SNI_MAX_NR + 16 };
void sni_wino_pair_columns(float *panel, int64_t k, float *numbers);

/* Where those of the first point of a pair of output channel blocks begin in packed weights: behind
 * all of the weights, `floats` of them. */
static inline int64_t sni_wino_numbers_at(int64_t floats, const sni_wino_variant *f, int64_t pair) {
    return floats + pair * sni_wino_points(f) * SNI_WINO_NUMBERS;
}

/* Rows of one point: what is too much and factors back, `most` of each, and then as many flags, not
 * 0 for those that have to be multiplied plainly. */
static inline int64_t sni_wino_row_numbers(int64_t most) {
    return 3 * most;
}

/* Brings rows [first, first + rows) of a point to one size; their lines, `lines` of them from `v`
 * on, are v_block elements apart. */
void sni_wino_pair_rows(float *v, int64_t v_block, int64_t lines, int64_t first, int64_t rows,
                        int64_t most, float *numbers);

/* The product of a group of such rows and a panel. */
typedef struct sni_wino_product {
    int nv; /* blocks of the panel; 1: it has not been brought to one size */
    const float *v;
    int64_t v_block, k;
    int64_t first, rows, most; /* of the point's numbers */
    const float *row_numbers, *column_numbers;
    const float *u;
    float *to;
    int64_t to_block;  /* from block to block of output channels */
    const float *next; /* weights to fetch, */
    int64_t step;      /* so many floats with each row of u */
} sni_wino_product;
void sni_wino_multiply_inner_product(const sni_wino_product *p);

#endif
