/* ml.c - helpers of ai.onnx.ml: rows of features, class labels and final scores. */
#include "ops/ml/ml.h"

#include <math.h>

double sni_ml_logistic(double x) {
    return x >= 0 ? 1 / (1 + exp(-x)) : 1 - 1 / (1 + exp(x));
}

/* The inverse of the error function, by Winitzki's approximation. */
static double inverse_erf(double x) {
    const double a = 0.147, pi = 3.14159265358979323846;
    double l = log((1 - x) * (1 + x)), v = 2 / (pi * a) + 0.5 * l;
    double r = sqrt(sqrt(v * v - l / a) - v);
    return x < 0 ? -r : r;
}

/* Softmax; with `zero`, scores of 0 stay 0 and the others share the sum. */
static void softmax(double *row, int64_t n, bool zero) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) max = row[i] > max ? row[i] : max;
    for (int64_t i = 0; i < n; i++) {
        if (zero && fabs(row[i]) <= 1e-7)
            row[i] *= exp(-max);
        else
            sum += row[i] = exp(row[i] - max);
    }
    for (int64_t i = 0; sum != 0 && i < n; i++) row[i] /= sum;
}

void sni_ml_finish(int32_t transform, double *row, int64_t n) {
    switch ((sni_ml_transform)transform) {
    case SNI_ML_NONE:
        break;
    case SNI_ML_SOFTMAX:
    case SNI_ML_SOFTMAX_ZERO:
        softmax(row, n, transform == SNI_ML_SOFTMAX_ZERO);
        break;
    case SNI_ML_LOGISTIC:
        for (int64_t i = 0; i < n; i++) row[i] = sni_ml_logistic(row[i]);
        break;
    case SNI_ML_PROBIT:
        for (int64_t i = 0; i < n; i++)
            row[i] = 1.41421356237309504880 * inverse_erf(2 * row[i] - 1);
        break;
    }
}

int64_t sni_ml_argmax(const double *row, int64_t n) {
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (row[i] > row[best]) best = i;
    return best;
}

void sni_ml_put_label(const sni_ml_labels *l, sni_tensor *y, int64_t row, int64_t class) {
    if (!y) return;
    bool known = class >= 0 && class < sni_ml_label_count(l);
    if (l->strings.n)
        ((sni_str *)y->data)[row] = known ? l->strings.v[class] : (sni_str){"", 0};
    else
        ((int64_t *)y->data)[row] = known ? l->ints.v[class] : class;
}

sn_status sni_ml_rows_of(sni_kernel *k, const sni_tensor *x, sni_ml_rows *out) {
    if (x->rank != 1 && x->rank != 2)
        return SNI_KERNEL_FAIL(k, "features have rank %d, not 1 or 2", x->rank);
    out->rows = x->rank == 2 ? x->dims[0] : 1;
    out->width = x->dims[x->rank - 1];
    return SN_OK;
}

sn_status sni_ml_row_dim(sni_infer *c, sni_dim *rows, bool *known) {
    *known = sni_infer_shaped(c, 0);
    if (!*known) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank != 1 && rank != 2) return SNI_INFER_FAIL(c, "features have rank %d, not 1 or 2", rank);
    *rows = rank == 2 ? sni_infer_dim(c, 0, 0) : 1;
    return SN_OK;
}

sn_status sni_ml_infer_classifier(sni_infer *c, const sni_ml_labels *l, int64_t width) {
    sni_dim rows = 0;
    bool known;
    SN_TRY(sni_infer_set_type(c, 0, sni_ml_label_type(l)));
    SN_TRY(sni_infer_set_type(c, 1, SN_FLOAT32));
    SN_TRY(sni_ml_row_dim(c, &rows, &known));
    if (!known) return SN_OK;
    SN_TRY(sni_infer_set_shape(c, 0, 1, &rows));
    return sni_infer_set_shape(c, 1, 2, (sni_dim[]){rows, width});
}

sn_status sni_ml_infer_rows(sni_infer *c, int64_t width) {
    sni_dim rows = 0;
    bool known;
    SN_TRY(sni_infer_set_type(c, 0, SN_FLOAT32));
    SN_TRY(sni_ml_row_dim(c, &rows, &known));
    return known ? sni_infer_set_shape(c, 0, 2, (sni_dim[]){rows, width}) : SN_OK;
}
