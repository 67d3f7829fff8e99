/* attend.h - the vector kernels of attention: the kernels of one tier. mr and nr are the tile sizes
 * of sni_cpu_kernels. */
#ifndef SNI_CPU_ATTENTION_ATTEND_H
#define SNI_CPU_ATTENTION_ATTEND_H

#include "base/dtype.h"

#include <stdint.h>

/* How a block of scores becomes weights: x = scale * score; with cap > 0, x = cap * tanh(x / cap);
 * then the biases are added. A bias of minus infinity masks its key. */
typedef struct sni_attend_block {
    float scale, cap;
    const float *key_bias; /* one per key; NULL: none */
    const float *bias;     /* laid out like the scores; NULL: none */
} sni_attend_block;

struct sni_attend_kernels {
    /* Online softmax over a block: scores s (keys, nr), a column per query, become e^(s - most) in
     * place. `most` and `sum` (nr each) hold the maxima and the sums of weights of all blocks so
     * far and are updated; fade (nr) receives the factor that results of earlier blocks are to be
     * multiplied by. */
    void (*attend_weigh)(const sni_attend_block *b, float *s, int64_t keys, float *most, float *sum,
                         float *fade);
    /* The same for one query with a contiguous row of scores; *most and *sum are updated. The
     * block's `bias` is not read. */
    void (*attend_row)(const sni_attend_block *b, float *s, int64_t keys, float *most, float *sum);
    /* s[j] = q . k[j * step .. + d] for each of `keys` keys. */
    void (*dot_rows)(const float *q, const float *k, int64_t step, int64_t keys, int64_t d,
                     float *s);
    /* y[i] = factor * sum over j of p[j] v[j * step + i], for i < d. */
    void (*weigh_rows)(const float *p, const float *v, int64_t step, int64_t keys, int64_t d,
                       float factor, float *y);
    /* y[i * y_row + c] = y[..] * fade[i] + sum over j of p[j * nr + i] v[j * columns + c] for i <
     * rows <= mr and c < columns = vectors * lanes, with 1 or 2 vectors. fade NULL: y is not read.
     * A leaf kernel that a tile calls once per block: its parameters stay in registers. */
    void (*attend_sum)(int rows, int vectors, int64_t keys, const float *p, const float *v,
                       float *y, int64_t y_row, const float *fade);
    /* A row of n elements as a cache stores them (ops/attention/heads.h) as floats: float16,
     * bfloat16, or integers times scale[i]. */
    void (*load_stored)(sn_dtype stored, const void *row, const float *scale, int64_t n, float *y);
};

#endif
