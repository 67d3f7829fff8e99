/* kernels.h - the table of vector kernels. Each instruction-set tier is the same source
 * (tier.isa.c) compiled with its own flags; dispatch.c picks one when first asked.
 *
 * Leaf kernels never allocate, fail or start threads. */
#ifndef SNI_CPU_CORE_KERNELS_H
#define SNI_CPU_CORE_KERNELS_H

#include "base/cpu.h"
#include "base/floats.h"

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

/* What is done to a block of an attention's scores before they become weights: times `scale`, bent
 * by `cap` (cap * tanh(x / cap); 0: not), plus biases. A bias of minus infinity hides a key. */
typedef struct sni_attend_block {
    float scale, cap;
    const float *key_bias; /* one per key; NULL: none */
    const float *bias;     /* laid out like the scores; NULL: none */
} sni_attend_block;

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
    /* y[i] = act(x[i]) for n elements; x may be y. */
    void (*map[SNI_ACT_COUNT])(float p0, float p1, const float *x, float *y, int64_t n);
    /* y[i] = f(a[i * sa], b[i * sb]) in floats for n elements; strides are 0 or 1. `params` is not
     * used. */
    void (*binary[SNI_BINARY_COUNT])(const void *a, const void *b, void *y, int64_t n, int64_t sa,
                                     int64_t sb, const void *params);
    /* y[i] = c[i] != 0 ? a[i * sa] : b[i * sb] for n elements; strides are 0 or 1. */
    void (*choose_row)(const float *c, const float *a, const float *b, float *y, int64_t n,
                       int64_t sa, int64_t sb);
    /* Floats of n bools or integers, and bools of floats. */
    void (*from_bools)(const void *x, float *y, int64_t n);
    void (*from_int32)(const void *x, float *y, int64_t n);
    void (*from_int64)(const void *x, float *y, int64_t n);
    void (*to_bools)(const float *x, uint8_t *y, int64_t n);
    /* Softmax and its logarithm of n elements; y may be x for the former. */
    void (*softmax_row)(const float *x, float *y, int64_t n);
    void (*log_softmax_row)(const float *x, float *y, int64_t n);
    /* The same of `count` columns, at most `lanes`; their n rows are `step` elements apart. */
    int lanes;
    void (*softmax_columns)(const float *x, float *y, int64_t n, int64_t step, int64_t count,
                            bool logarithm);
    /* Mean (0 if not centered) of n elements, and 1 / sqrt(mean square around it + epsilon). */
    void (*moments)(const float *x, int64_t n, bool centered, float epsilon, float *mean,
                    float *inverse);
    /* y = (x - mean) * inverse * scale + shift; `shift` may be NULL. */
    void (*normalize_row)(const float *x, float *y, int64_t n, float mean, float inverse,
                          const float *scale, const float *shift);
    /* y = y * factor + shift. */
    void (*scale_row)(float *y, int64_t n, float factor, float shift);
    /* Scores s (keys x nr, a column per query) to weights e^(s - most), in place. `most` and `sum`
     * (nr each) are the greatest scores and the sums of weights of all blocks so far, and `fade`
     * becomes what earlier weights are to be multiplied by. */
    void (*attend_weigh)(const sni_attend_block *b, float *s, int64_t keys, float *most, float *sum,
                         float *fade);
    /* The same for one query, whose scores lie side by side. */
    void (*attend_row)(const sni_attend_block *b, float *s, int64_t keys, float *most, float *sum);
    /* s[j] = q . k[j * step] over d elements, for each key. */
    void (*dot_rows)(const float *q, const float *k, int64_t step, int64_t keys, int64_t d,
                     float *s);
    /* y[i] = factor * sum over j of p[j] v[j * step + i], for d elements. */
    void (*weigh_rows)(const float *p, const float *v, int64_t step, int64_t keys, int64_t d,
                       float factor, float *y);
    /* y[i * y_row + c] = y[...] * fade[i] + sum over j of p[j * nr + i] v[j * columns + c], for
     * `rows` queries (at most mr) and as many columns as 1 or 2 vectors have; fade NULL: nothing
     * stands in y. */
    void (*attend_sum)(int rows, int vectors, int64_t keys, const float *p, const float *v,
                       float *y, int64_t y_row, const float *fade);
    /* y[i] += w * x[i] for n elements. */
    void (*axpy)(float w, const float *x, float *y, int64_t n);
    /* What the machine can do at best: `rounds` times chain_flops operations in registers; the sum
     * of n floats. Their results mean nothing. */
    int64_t chain_flops;
    float (*fma_chain)(int64_t rounds);
    float (*read_sum)(const float *x, int64_t n);
    const sni_conv_kernels *conv;
    const sni_wino_kernels *wino;
    const sni_depthwise_kernels *depthwise;
    const sni_rnn_kernels *rnn;
    const sni_tree_kernels *trees;
    const sni_nms_kernels *nms;
    const sni_inner_product_kernels *inner_product;
    const sni_blocked_kernels *blocked;
} sni_cpu_kernels;

/* The kernels of the tier in force (SINTER_ISA or the best there is). */
const sni_cpu_kernels *sni_cpu_kernels_get(void);

/* The kernels of a tier; NULL if this machine or build has none. For tests. */
const sni_cpu_kernels *sni_cpu_kernels_of(sni_isa isa);

#endif
