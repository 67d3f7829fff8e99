/* ml.h - what the operators of ai.onnx.ml share: rows of features, class labels, and what becomes
 * of scores at the end. */
#ifndef SNI_OPS_ML_ML_H
#define SNI_OPS_ML_ML_H

#include "ops/core/op.h"

#define SNI_ML "ai.onnx.ml"

/* Types of features that classifiers and regressors take. */
#define SNI_T_FEATURES (SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64) | SNI_T_INDEX)

/* In the order of SNI_ML_TRANSFORMS. */
typedef enum sni_ml_transform {
    SNI_ML_NONE,
    SNI_ML_SOFTMAX,
    SNI_ML_LOGISTIC,
    SNI_ML_SOFTMAX_ZERO,
    SNI_ML_PROBIT
} sni_ml_transform;
#define SNI_ML_TRANSFORMS "NONE|SOFTMAX|LOGISTIC|SOFTMAX_ZERO|PROBIT"

double sni_ml_logistic(double x);

/* Applies `post_transform` to the n scores of one row. */
void sni_ml_finish(int32_t transform, double *row, int64_t n);

/* Index of the largest; the first of equals. */
int64_t sni_ml_argmax(const double *row, int64_t n);

/* Class labels: integers, strings, or (neither) the classes' numbers. */
typedef struct sni_ml_labels {
    sni_ints ints;
    sni_strings strings;
} sni_ml_labels;

static inline int64_t sni_ml_label_count(const sni_ml_labels *l) {
    return (int64_t)(l->strings.n ? l->strings.n : l->ints.n);
}
static inline sn_dtype sni_ml_label_type(const sni_ml_labels *l) {
    return l->strings.n ? SN_STRING : SN_INT64;
}
/* Writes the label of a class as element `row` of a tensor of labels (which may be NULL). Classes
 * without a label are written by number, or as "". */
void sni_ml_put_label(const sni_ml_labels *l, sni_tensor *y, int64_t row, int64_t class);

/* X is (rows, width); a vector is one row. */
typedef struct sni_ml_rows {
    int64_t rows, width;
} sni_ml_rows;
sn_status sni_ml_rows_of(sni_kernel *k, const sni_tensor *x, sni_ml_rows *out);
/* The number of rows of input 0; SNI_DIM_FAIL with *ok false when its rank is not known. */
sn_status sni_ml_row_dim(sni_infer *c, sni_dim *rows, bool *known);
/* Outputs of a classifier: labels (rows), scores (rows, width) of float. */
sn_status sni_ml_infer_classifier(sni_infer *c, const sni_ml_labels *l, int64_t width);
/* Output 0 is (rows, width) of float. */
sn_status sni_ml_infer_rows(sni_infer *c, int64_t width);

#endif
