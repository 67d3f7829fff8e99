/* kernels.h - sni_cpu_kernels: the vector kernels of one tier that matrix products and convolutions
 * share, and pointers to the kernels of the modules. How a tier is chosen: cpu/core/dispatch.h.
 *
 * Leaf kernels never allocate, fail or start threads. They take their parameters one by one rather
 * than in a struct where they are called once per tile: the parameters then stay in registers. */
#ifndef SNI_CPU_CORE_KERNELS_H
#define SNI_CPU_CORE_KERNELS_H

#include "base/floats.h"
#include "cpu/core/dispatch.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SNI_MAX_MR = 14, /* largest tile of any tier */
    SNI_MAX_NR = 32,
    SNI_DOT_COLUMNS = 8, /* most columns of gemm_dots */
    SNI_LEFT_STEPS = 16  /* consecutive elements of a row in a packed left operand: a cache line */
};

/* Activations that are applied before a result is stored: cpu/core/act.def. */
typedef enum sni_act {
#define SNI_ACT(name) SNI_ACT_##name,
#include "cpu/core/act.def"
#undef SNI_ACT
    SNI_ACT_COUNT
} sni_act;

/* What is done to the result C of a product before it is stored:
 * C = act(C + biases + residual). */
typedef struct sni_epilogue {
    sni_act act;
    float p0, p1;
    const float *slopes;        /* of LEAKY_RELU on a row of blocked pixels: one for each channel of
                                   the block, in the place of p0; NULL: none */
    const float *row_slopes;    /* of LEAKY_RELU, one per row of C in the place of p0; NULL: none */
    const float *column_slopes; /* the same, one per column of C */
    const float *row_bias;      /* one per row of C; NULL: none */
    const float *column_bias;   /* one per column of C; NULL: none */
    const float *residual;      /* added before the activation; laid out like C; NULL: none */
    int64_t residual_row;       /* elements between its rows */
} sni_epilogue;

/* A GEMM tile: C (rows x nr) = A B, or C += A B with `add`. `a` is from pack_left(); `b` is k rows
 * of nr elements; C's rows are c_row elements apart. Sums start from `sums` (rows of nr; NULL: 0),
 * so that a long k can be processed in several calls with the same bits. With `apart` the sums are
 * stored there, in rows of nr, and C is only prefetched; `apart` may be `sums`. Meanwhile about
 * `lines` cache lines from `fetch` on are prefetched to the second-level cache; `fetch` may point
 * anywhere. */
typedef void (*sni_gemm_tile_fn)(int64_t k, const float *a, const float *b, const float *sums,
                                 float *c, int64_t c_row, bool add, float *apart,
                                 const float *fetch, int64_t lines);

/* The same with strided (unpacked) rows of A, a_row elements apart, and sums from 0. */
typedef void (*sni_gemm_strided_fn)(int64_t k, const float *a, int64_t a_row, const float *b,
                                    float *c, int64_t c_row, bool add, float *apart,
                                    const float *fetch, int64_t lines);

/* The tile of packed A with B - less, where `less` is laid out like B; sums are stored to `apart`.
 * Strassen's method needs such differences. */
typedef void (*sni_gemm_less_fn)(int64_t k, const float *a, const float *b, const float *less,
                                 const float *sums, float *c, int64_t c_row, float *apart,
                                 const float *fetch, int64_t lines);

typedef struct sni_map_kernels sni_map_kernels;             /* cpu/elementwise/map.h */
typedef struct sni_row_kernels sni_row_kernels;             /* cpu/reduce/rows.h */
typedef struct sni_attend_kernels sni_attend_kernels;       /* cpu/attention/attend.h */
typedef struct sni_conv_kernels sni_conv_kernels;           /* cpu/conv/conv.h */
typedef struct sni_conv_strips sni_conv_strips;             /* cpu/conv/conv.h */
typedef struct sni_wino_kernels sni_wino_kernels;           /* cpu/conv/winograd/winograd.h */
typedef struct sni_depthwise_kernels sni_depthwise_kernels; /* cpu/conv/depthwise/depthwise.h */
typedef struct sni_rnn_kernels sni_rnn_kernels;             /* cpu/rnn/rnn.h */
typedef struct sni_tree_kernels sni_tree_kernels;           /* cpu/ml/trees.h */
typedef struct sni_nms_kernels sni_nms_kernels;             /* cpu/select/nms.h */
typedef struct sni_inner_product_kernels sni_inner_product_kernels; /* cpu/gemm/inner_product.h */
typedef struct sni_strassen_kernels sni_strassen_kernels;           /* cpu/gemm/strassen.h */
typedef struct sni_blocked_kernels sni_blocked_kernels; /* cpu/blocked/blocked_kernels.h */

/* Functions of two numbers: cpu/core/binary.def. */
typedef enum sni_binary {
#define SNI_BINARY(name) SNI_BINARY_##name,
#include "cpu/core/binary.def"
#undef SNI_BINARY
    SNI_BINARY_COUNT
} sni_binary;

/* C (m x n) = A B, or C += A B if `add`, of operands that are read where they lie. X_row and X_col
 * are the elements from one row, or column, of X to the next. */
typedef struct sni_unpacked_product {
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t a_row, a_col, b_row, b_col, c_row, c_col;
    bool add;
} sni_unpacked_product;

typedef struct sni_cpu_kernels {
    int block;  /* channels of a block of a blocked tensor (cpu/conv/conv.h): sni_cpu_block() */
    int mr, nr; /* rows and columns of a tile */
    int kc;     /* the largest k of one tile call */
    sni_gemm_tile_fn gemm_tile[SNI_MAX_MR + 1]; /* by number of rows, 1 to mr */
    sni_gemm_tile_fn gemm_half[SNI_MAX_MR + 1]; /* for the first half of B's columns; rows of sums
                                                   have nr elements all the same */
    sni_gemm_less_fn gemm_less[SNI_MAX_MR + 1];
    sni_gemm_strided_fn gemm_strided[SNI_MAX_MR + 1], gemm_strided_half[SNI_MAX_MR + 1];
    /* Products of unpacked operands that are both contiguous along k (a_col and b_row are 1): dot
     * products. n <= SNI_DOT_COLUMNS. */
    void (*gemm_dots)(const sni_unpacked_product *p);
    /* Of a B and a C whose rows are contiguous (b_col and c_col are 1); A has any strides. */
    void (*gemm_across)(const sni_unpacked_product *p);
    /* The same for one row of A: each row of B is read from beginning to end. */
    void (*gemm_along)(const sni_unpacked_product *p);
    /* C = A B, or +=, for one unpacked row of A and a packed panel of B. */
    void (*gemm_row)(int64_t k, const float *a, const float *b, float *c, bool add);
    /* Packs a panel of a left operand with `count` <= mr rows, element p of row i being
     * from[i * step + p] for p < k: SNI_LEFT_STEPS elements of each of mr rows, then the next ones.
     * Zeros fill it up. */
    void (*pack_left)(const sni_unaligned_float *from, int64_t step, int64_t count, int64_t k,
                      float *to);
    /* to[p * width + i] = from[i * step + p] for i < count, 0 from there to width, p < k. */
    void (*pack_transposed)(const sni_unaligned_float *from, int64_t step, int64_t count, int width,
                            int64_t k, float *to);
    /* to[p * width + i] = from[p * k_step + i] likewise. */
    void (*pack_straight)(const sni_unaligned_float *from, int64_t k_step, int64_t count, int width,
                          int64_t k, float *to);
    /* to[j * to_step + i] = from[i * from_step + j] for i < rows, j < columns. */
    void (*transpose_matrix)(const sni_unaligned_float *from, int64_t from_step, int64_t rows,
                             int64_t columns, float *to, int64_t to_step);
    /* y[i] = act(y[i] + bias + columns[i] + more[i]) for n elements, with e's act; `columns` and
     * `more` may be NULL. */
    void (*finish_row)(const sni_epilogue *e, float *y, float bias, const float *columns,
                       const float *more, int64_t n);
    /* The epilogue e on rows [i, i + rows) and columns [j, j + columns) of C, which begin at `y`
     * and are y_row elements apart. The sums are in C (`sums` NULL) or in rows of nr at `sums`,
     * which `add` adds to C. */
    void (*finish_tile)(const sni_epilogue *e, const float *sums, bool add, float *y, int64_t y_row,
                        int64_t i, int64_t rows, int64_t j, int64_t columns);
    int lanes; /* floats of a vector */
    /* y[i] += w * x[i] for n elements. */
    void (*axpy)(float w, const float *x, float *y, int64_t n);
    const sni_map_kernels *maps;
    const sni_row_kernels *rows;
    const sni_attend_kernels *attend;
    const sni_conv_kernels *conv;
    const sni_wino_kernels *wino;
    const sni_depthwise_kernels *depthwise;
    const sni_rnn_kernels *rnn;
    const sni_tree_kernels *trees;
    const sni_nms_kernels *nms;
    const sni_inner_product_kernels *inner_product;
    const sni_strassen_kernels *strassen;
    const sni_blocked_kernels *blocked;
} sni_cpu_kernels;

#endif
