/* layer_norm.h - rows brought to mean 0 and mean square 1, then scaled and shifted. */
#ifndef SNI_OPS_NN_LAYER_NORM_H
#define SNI_OPS_NN_LAYER_NORM_H

#include "ops/core/op.h"

/* Scale or shift: its elements for row r are data[r * step ...]. */
typedef struct sni_spread {
    const void *data;
    int64_t step;
} sni_spread;

typedef struct sni_row_norm {
    const void *x;            /* (rows, n) */
    void *y, *mean, *inverse; /* (rows, n), (rows), (rows); any may be NULL */
    sni_spread scale, shift;  /* the data of shift may be NULL */
    int64_t n;
    float epsilon;
    bool centered; /* else the mean is taken to be 0 */
} sni_row_norm;

/* All of `dtype`, which is FLOAT32 or FLOAT64. y must not be x. The statistics of rows without
 * elements are NaN. */
void sni_normalize(const sni_kernel *k, sn_dtype dtype, int64_t rows, const sni_row_norm *norm);

#endif
