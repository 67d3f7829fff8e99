/* rows.h - softmax and normalisation of rows of float32: the kernels of one tier. */
#ifndef SNI_CPU_REDUCE_ROWS_H
#define SNI_CPU_REDUCE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

struct sni_row_kernels {
    /* Softmax and its logarithm of n > 0 elements. y may be x for softmax_row, not for the other.
     */
    void (*softmax_row)(const float *x, float *y, int64_t n);
    void (*log_softmax_row)(const float *x, float *y, int64_t n);
    /* The same for `count` neighbouring columns, at most `lanes` (one per lane of a vector), whose
     * n rows are `step` elements apart. */
    int lanes;
    void (*softmax_columns)(const float *x, float *y, int64_t n, int64_t step, int64_t count,
                            bool logarithm);
    /* *mean is the mean of n elements (0 unless `centered`), *inverse is
     * 1 / sqrt(mean of (x - *mean)^2 + epsilon). Sums are made in float over 4096 elements and
     * beyond that in double. */
    void (*moments)(const float *x, int64_t n, bool centered, float epsilon, float *mean,
                    float *inverse);
    /* y = (x - mean) * inverse * scale[i] + shift[i] for n elements; `shift` may be NULL. y may be
     * x. */
    void (*normalize_row)(const float *x, float *y, int64_t n, float mean, float inverse,
                          const float *scale, const float *shift);
    /* y = y * factor + shift. */
    void (*scale_row)(float *y, int64_t n, float factor, float shift);
};

#endif
