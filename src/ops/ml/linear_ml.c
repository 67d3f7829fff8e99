/* LinearClassifier and LinearRegressor. */
#include "ops/ml/linear_ml.h"

#include "ops/ml/ml.h"
#include "ops/core/wide.h"

typedef struct linear_params {
    sni_floats coefficients, intercepts; /* (outputs, features); (outputs) */
    sni_ml_labels labels;
    int64_t targets, multi_class;
    int32_t transform;
} linear_params;

/* The first `outputs` columns of scores (rows, stride) get X C^T + b, X C^T by `fn`. */
static sn_status hooked_products(sni_kernel *k, sni_linear_ml_fn fn, int64_t outputs,
                                 int64_t stride, int64_t rows, double *scores) {
    const linear_params *p = k->params;
    void *sums = NULL;
    SN_TRY(sni_scratch_array(k, rows * outputs, sizeof(float), &sums));
    SN_TRY(fn(k, rows, sums));
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < outputs; o++)
            scores[r * stride + o] = (double)((const float *)sums)[r * outputs + o] +
                                     (p->intercepts.n ? (double)p->intercepts.v[o] : 0);
    return SN_OK;
}

/* scores (rows, stride) gets X C^T + b in its first `outputs` columns; with `fn` NULL, in plain C.
 */
static sn_status products(sni_kernel *k, sni_linear_ml_fn fn, int64_t outputs, int64_t stride,
                          sni_ml_rows *rows, double **scores) {
    const linear_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    SN_TRY(sni_ml_rows_of(k, x, rows));
    int64_t need;
    if (__builtin_mul_overflow(outputs, rows->width, &need) || need != (int64_t)p->coefficients.n ||
        (p->intercepts.n && (int64_t)p->intercepts.n != outputs))
        return SNI_KERNEL_FAIL(
            k, "%zu coefficients and %zu intercepts do not fit %lld features and %lld outputs",
            p->coefficients.n, p->intercepts.n, (long long)rows->width, (long long)outputs);
    const double *data = NULL;
    void *memory = NULL;
    SN_TRY(sni_scratch_array(k, rows->rows * stride, sizeof(double), &memory));
    *scores = memory;
    if (fn) return hooked_products(k, fn, outputs, stride, rows->rows, *scores);
    SN_TRY(sni_as_f64(k, x, &data));
    for (int64_t r = 0; r < rows->rows; r++) {
        for (int64_t o = 0; o < outputs; o++) {
            const float *c = p->coefficients.v + o * rows->width;
            double sum = p->intercepts.n ? (double)p->intercepts.v[o] : 0;
            for (int64_t i = 0; i < rows->width; i++)
                sum += data[r * rows->width + i] * (double)c[i];
            (*scores)[r * stride + o] = sum;
        }
    }
    return SN_OK;
}

/* ---- LinearRegressor ---- */

static sn_status run_regressor(sni_kernel *k, sni_linear_ml_fn fn) {
    const linear_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    sni_ml_rows rows;
    double *scores = NULL;
    SN_TRY(products(k, fn, p->targets, p->targets, &rows, &scores));
    for (int64_t r = 0; r < rows.rows; r++)
        sni_ml_finish(p->transform, scores + r * p->targets, p->targets);
    sni_store_numbers(y, SN_FLOAT64, scores, false);
    return SN_OK;
}

static sn_status regressor_ref(sni_kernel *k) {
    return run_regressor(k, NULL);
}

static sn_status regressor_infer(sni_infer *c) {
    const linear_params *p = c->params;
    if (p->targets < 1) return SNI_INFER_FAIL(c, "targets is %lld", (long long)p->targets);
    return sni_ml_infer_rows(c, p->targets);
}

const sni_op sni_op_LinearRegressor = {
    .name = "LinearRegressor",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "float"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FEATURES}),
    .params = SNI_PARAMS({"coefficients", SNI_ATTR_FLOATS, offsetof(linear_params, coefficients)},
                         {"intercepts", SNI_ATTR_FLOATS, offsetof(linear_params, intercepts)},
                         {"targets", SNI_ATTR_INT, offsetof(linear_params, targets), .number = 1},
                         {"post_transform", SNI_ATTR_STRING, offsetof(linear_params, transform),
                          .text = "NONE", .choices = SNI_ML_TRANSFORMS}),
    .params_size = sizeof(linear_params),
    .infer = regressor_infer,
    .ref = regressor_ref,
};

/* ---- LinearClassifier ---- */

/* Columns of the scores: one per row of coefficients, but two for one row and two labels. */
static int64_t classes_of(const linear_params *p, int64_t outputs) {
    return outputs == 1 && sni_ml_label_count(&p->labels) == 2 ? 2 : outputs;
}

static sn_status run_classifier(sni_kernel *k, sni_linear_ml_fn fn) {
    const linear_params *p = k->params;
    sni_tensor *labels = sni_out(k, 0), *z = sni_out(k, 1);
    sni_ml_rows rows;
    double *scores = NULL;
    SN_TRY(sni_ml_rows_of(k, sni_in(k, 0), &rows));
    int64_t outputs = p->intercepts.n ? (int64_t)p->intercepts.n
                      : rows.width    ? (int64_t)p->coefficients.n / rows.width
                                      : 0;
    int64_t classes = classes_of(p, outputs);
    if (outputs < 1) return SNI_KERNEL_FAIL(k, "there are no coefficients");
    SN_TRY(products(k, fn, outputs, classes, &rows, &scores));
    if (z && z->count != rows.rows * classes)
        return SNI_KERNEL_FAIL(k, "%lld classes do not fit the output", (long long)classes);
    for (int64_t r = 0; r < rows.rows; r++) {
        double *row = scores + r * classes, s = row[0];
        int64_t class;
        if (classes > outputs) {
            row[1] = s;
            row[0] = -s;
        }
        sni_ml_finish(p->transform, row, classes);
        if (classes > 1)
            class = sni_ml_argmax(row, classes);
        else
            class = row[0] >= (p->transform == SNI_ML_NONE ? 0 : 0.5) ? 0 : -1;
        if (class < 0 && labels && labels->dtype == SN_INT64)
            ((int64_t *)labels->data)[r] = 0;
        else
            sni_ml_put_label(&p->labels, labels, r, class);
    }
    if (z) sni_store_numbers(z, SN_FLOAT64, scores, false);
    return SN_OK;
}

static sn_status classifier_ref(sni_kernel *k) {
    return run_classifier(k, NULL);
}

static sn_status classifier_infer(sni_infer *c) {
    const linear_params *p = c->params;
    int64_t outputs = (int64_t)p->intercepts.n;
    if (outputs == 0 && sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) > 0) {
        sni_dim width = sni_infer_dim(c, 0, sni_infer_rank(c, 0) - 1);
        if (sni_dim_known(width) && width > 0) outputs = (int64_t)p->coefficients.n / width;
    }
    if (outputs == 0) outputs = sni_ml_label_count(&p->labels);
    return sni_ml_infer_classifier(c, &p->labels, classes_of(p, outputs));
}

const sni_op sni_op_LinearClassifier = {
    .name = "LinearClassifier",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}, {"Z", "float"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FEATURES}, {"T2", SNI_T(SN_STRING) | SNI_T(SN_INT64)}),
    .params = SNI_PARAMS(
        {"coefficients", SNI_ATTR_FLOATS, offsetof(linear_params, coefficients), .required = true},
        {"intercepts", SNI_ATTR_FLOATS, offsetof(linear_params, intercepts)},
        {"multi_class", SNI_ATTR_INT, offsetof(linear_params, multi_class)},
        {"classlabels_ints", SNI_ATTR_INTS, offsetof(linear_params, labels.ints)},
        {"classlabels_strings", SNI_ATTR_STRINGS, offsetof(linear_params, labels.strings)},
        {"post_transform", SNI_ATTR_STRING, offsetof(linear_params, transform), .text = "NONE",
         .choices = SNI_ML_TRANSFORMS}),
    .params_size = sizeof(linear_params),
    .infer = classifier_infer,
    .ref = classifier_ref,
};

/* ---- For faster kernels ---- */

bool sni_linear_ml_of(const sni_op *op, const void *params, sni_linear_ml *out) {
    const linear_params *p = params;
    int64_t count = (int64_t)p->coefficients.n;
    bool classifier = op == &sni_op_LinearClassifier;
    int64_t outputs = classifier ? (int64_t)p->intercepts.n : p->targets;
    if (outputs < 1 || count < 1 || count % outputs) return false;
    *out = (sni_linear_ml){p->coefficients.v, outputs, count / outputs};
    return true;
}

sn_status sni_linear_ml_run(sni_kernel *k, sni_linear_ml_fn fn) {
    bool classifier = k->node->op == &sni_op_LinearClassifier;
    return classifier ? run_classifier(k, fn) : run_regressor(k, fn);
}
