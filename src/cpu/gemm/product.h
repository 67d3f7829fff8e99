/* product.h - matrix products that are described by where their rows come from and where results
 * go, for methods that bring operands to a form of their own: Winograd's inner
 * product (cpu/gemm/inner_product.h) and emulation on int8 tiles (cpu/gemm/emulated.h). Rows are
 * dealt out to panels. */
#ifndef SNI_CPU_GEMM_PRODUCT_H
#define SNI_CPU_GEMM_PRODUCT_H

#include "cpu/core/kernels.h"

#include <stddef.h>

enum {
    SNI_PRODUCT_ROWS = 16, /* most of a panel, whatever the method */
    SNI_PRODUCT_PARTS = 64 /* most parts of a k-block, which has no more lines */
};

/* Lines of the left operand, SNI_LEFT_STEPS numbers each: those of row i follow each other at
 * step[i] elements from from[i] on, `lines` of them. */
typedef struct sni_product_part {
    int64_t lines;
    const float *from[SNI_PRODUCT_ROWS];
    int64_t step[SNI_PRODUCT_ROWS];
    const float *factors; /* of the numbers of each line, line after line; NULL: 1 */
} sni_product_part;

/* Where results of a tile go, row by row and vector by vector, and what is done to them before. */
typedef struct sni_product_end {
    float *y;
    int64_t row, vector;   /* elements of y to the next row and to the next vector of a row */
    bool add;              /* to what y has, first */
    const float *bias;     /* of columns; NULL: none */
    const float *residual; /* added, with distances of its own; NULL: none */
    int64_t residual_row, residual_vector;
    bool bounded; /* at last, by these: */
    float low, high;
} sni_product_end;

/* A panel of rows: how many, and where the first one's results are, for whom it may concern. */
typedef struct sni_product_rows {
    int count;
    int64_t at;
} sni_product_rows;

/* A tile of results: some columns of a panel of rows. */
typedef struct sni_product_place {
    sni_product_rows rows;
    int64_t column, columns;
    bool first, last; /* of the k-blocks: nothing is there yet, all is there now */
} sni_product_place;

typedef struct sni_product {
    int64_t panels; /* of rows */
    const void *ctx;
    sni_product_rows (*rows)(const void *ctx, int64_t panel);
    /* Lines [line, line + lines) of a panel's rows, in order. Returns the number of parts. */
    int (*left)(const void *ctx, int64_t panel, int64_t line, int64_t lines,
                sni_product_part *parts);
    /* Line `line` of a panel whose rows' lines lie side by side; *step leads to the next line. For
     * fetching alone: the panel may be one too many. NULL: their lines do not lie so. */
    const float *(*prefetch)(const void *ctx, int64_t panel, int64_t line, int64_t *step);
    /* Where a tile of one or two whole vectors goes. True: finish() is to be called after it. */
    bool (*end)(const void *ctx, const sni_product_place *place, sni_product_end *end);
    /* What is left to do to results that are in place or, if `sums` is not NULL, to sums that are
     * not: they are nr in a row there. */
    void (*finish)(const void *ctx, const sni_product_place *place, const float *sums);
    /* Asked between blocks by every thread; true: the rest is left undone. NULL: never. */
    bool (*stop)(const void *ctx);
    const void *stop_ctx;
} sni_product;

/* Lets results be bounded if that is all an activation does; else false. */
bool sni_product_bound(sni_act act, float p0, float p1, sni_product_end *end);

#endif
