/* linear_ml.h - LinearClassifier and LinearRegressor with products made elsewhere. */
#ifndef SNI_OPS_ML_LINEAR_ML_H
#define SNI_OPS_ML_LINEAR_ML_H

#include "ops/core/op.h"

/* Coefficients (outputs, features) of either operator; false if attributes alone do not tell the
 * sizes. */
typedef struct sni_linear_ml {
    const float *coefficients;
    int64_t outputs, features;
} sni_linear_ml;
bool sni_linear_ml_of(const sni_op *op, const void *params, sni_linear_ml *out);

/* sums (rows, outputs) = X C^T in float. */
typedef sn_status (*sni_linear_ml_fn)(sni_kernel *k, int64_t rows, float *sums);

/* The reference kernel of k's operator with these products, X being FLOAT32. */
sn_status sni_linear_ml_run(sni_kernel *k, sni_linear_ml_fn fn);

#endif
