/* kernels.h - the table of vector kernels. Each instruction-set tier is the same source
 * (tier.isa.c) compiled with its own flags; dispatch.c picks one when first asked.
 *
 * Leaf kernels never allocate, fail or start threads. */
#ifndef SNI_CPU_CORE_KERNELS_H
#define SNI_CPU_CORE_KERNELS_H

#include "base/floats.h"
#include "cpu/core/dispatch.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    SNI_MAX_MR = 14, /* largest tile of any tier */
    SNI_MAX_NR = 32,
    SNI_DOT_COLUMNS = 8, /* of products along k */
    SNI_LEFT_STEPS = 16  /* of k that lie together in a packed left operand: lines of the cache */
};

/* What is done to a result before it is stored for good: cpu/core/act.def. */
typedef enum sni_act {
#define SNI_ACT(name) SNI_ACT_##name,
#include "cpu/core/act.def"
#undef SNI_ACT
    SNI_ACT_COUNT
} sni_act;

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

/* C (rows x nr) = A B, or C += A B. `a` is from pack_left(), `b` is k rows of nr elements; C's rows
 * are c_row elements apart. Sums go on from `sums` (nr in a row; NULL: from 0) as if they had never
 * left the registers. With `apart`, they go there, nr in a row, and C is only brought near; `apart`
 * may be `sums`. Meanwhile about `lines` lines of 64 bytes from `fetch` on are brought to the
 * second-level cache; it may point anywhere. */
typedef void (*sni_gemm_tile_fn)(int64_t k, const float *a, const float *b, const float *sums,
                                 float *c, int64_t c_row, bool add, float *apart,
                                 const float *fetch, int64_t lines);

/* The same with rows of A that lie as they are, a_row elements apart, and sums from 0. */
typedef void (*sni_gemm_strided_fn)(int64_t k, const float *a, int64_t a_row, const float *b,
                                    float *c, int64_t c_row, bool add, float *apart,
                                    const float *fetch, int64_t lines);

/* That of packed A with B less `less`, which lies as B does, and sums that go to `apart`. */
typedef void (*sni_gemm_less_fn)(int64_t k, const float *a, const float *b, const float *less,
                                 const float *sums, float *c, int64_t c_row, float *apart,
                                 const float *fetch, int64_t lines);

typedef struct sni_map_kernels sni_map_kernels;             /* cpu/elementwise/map.h */
typedef struct sni_row_kernels sni_row_kernels;             /* cpu/reduce/rows.h */
typedef struct sni_attend_kernels sni_attend_kernels;       /* cpu/attention/attend.h */
typedef struct sni_conv_kernels sni_conv_kernels;           /* cpu/conv/conv.h */
typedef struct sni_wino_kernels sni_wino_kernels;           /* cpu/conv/winograd/winograd.h */
typedef struct sni_depthwise_kernels sni_depthwise_kernels; /* cpu/conv/depthwise/depthwise.h */
typedef struct sni_rnn_kernels sni_rnn_kernels;             /* cpu/rnn/rnn.h */
typedef struct sni_tree_kernels sni_tree_kernels;           /* cpu/ml/trees.h */
typedef struct sni_nms_kernels sni_nms_kernels;             /* cpu/select/nms.h */
typedef struct sni_inner_product_kernels sni_inner_product_kernels; /* cpu/gemm/inner_product.h */
typedef struct sni_blocked_kernels sni_blocked_kernels; /* cpu/blocked/blocked_kernels.h */

/* Functions of two numbers: cpu/core/binary.def. */
typedef enum sni_binary {
#define SNI_BINARY(name) SNI_BINARY_##name,
#include "cpu/core/binary.def"
#undef SNI_BINARY
    SNI_BINARY_COUNT
} sni_binary;

typedef struct sni_cpu_kernels {
    int block;  /* channels side by side in a blocked tensor (cpu/conv/conv.h): sni_cpu_block() */
    int mr, nr; /* of a tile */
    int kc;     /* most rows of B that a tile goes through at once */
    sni_gemm_tile_fn gemm_tile[SNI_MAX_MR + 1]; /* by number of rows, 1 to mr */
    sni_gemm_tile_fn gemm_half[SNI_MAX_MR + 1]; /* the same for the first half of B's columns; sums
                                                   are nr in a row all the same */
    sni_gemm_less_fn gemm_less[SNI_MAX_MR + 1]; /* the same as gemm_tile */
    sni_gemm_strided_fn gemm_strided[SNI_MAX_MR + 1],
        gemm_strided_half[SNI_MAX_MR + 1]; /* the same */
    /* Products of operands as they lie, k along both of them: C's rows and columns are c_row and
     * c_col apart. Of the second there are at most SNI_DOT_COLUMNS lines. */
    void (*gemm_dots)(int64_t rows, int cols, int64_t k, const float *a, int64_t a_row,
                      const float *b, int64_t b_col, float *c, int64_t c_row, int64_t c_col,
                      bool add);
    /* The same with n along B. */
    void (*gemm_across)(int64_t rows, int64_t k, const float *a, int64_t a_row, int64_t a_col,
                        const float *b, int64_t b_row, int64_t n, float *c, int64_t c_row,
                        bool add);
    /* The same for one row, the rows of B from end to end. */
    void (*gemm_along)(int64_t k, const float *a, int64_t a_col, const float *b, int64_t b_row,
                       int64_t n, float *c, bool add);
    /* C = A B, or C += A B, for one row of A that lies as it is and a panel of B. */
    void (*gemm_row)(int64_t k, const float *a, const float *b, float *c, bool add);
    /* Packs a pair of row panels for products by seven (cpu/gemm/strassen.c): rows i and rows + i
     * of `from`, which are `step` elements apart and have 2 * half columns; where i is not below
     * `lower` the second is the first again. What is written are the first and last quarter, A11
     * and A22, then A11 + A22, A21 + A22, A11 + A12, A11 - A21 and A12 - A22, one after the other.
     * sizes[i] and sizes[mr + i] become the bits of the greatest number, without sign, in both. */
    void (*strassen_left)(const float *from, int64_t step, int64_t rows, int64_t lower,
                          int64_t half, float *to, int32_t *sizes);
    /* sizes[j] becomes the greatest of itself and the bits of column j of a panel of B. */
    void (*column_sizes)(int64_t k, const float *b, int32_t *sizes);
    /* A panel of `count` rows as tiles read it, element p of row i being from[i * step + p] for
     * p < k: SNI_LEFT_STEPS elements of each of mr rows, then the next ones. Zeros fill it up. */
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
    /* All of e on rows [i, i + rows) and columns [j, j + columns) of C, which begin at `y` and are
     * y_row elements apart. `sums`: first takes them from there, nr in a row, or adds them to C;
     * NULL: C has them. */
    void (*finish_tile)(const sni_epilogue *e, const float *sums, bool add, float *y, int64_t y_row,
                        int64_t i, int64_t rows, int64_t j, int64_t columns);
    int lanes; /* floats of a vector */
    /* y[i] += w * x[i] for n elements. */
    void (*axpy)(float w, const float *x, float *y, int64_t n);
    /* What the machine can do at best: `rounds` times chain_flops operations in registers; the sum
     * of n floats. Their results mean nothing. */
    int64_t chain_flops;
    float (*fma_chain)(int64_t rounds);
    float (*read_sum)(const float *x, int64_t n);
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
    const sni_blocked_kernels *blocked;
} sni_cpu_kernels;

#endif
