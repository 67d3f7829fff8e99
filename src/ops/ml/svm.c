/* SVMClassifier and SVMRegressor. */
#include "ops/ml/ml.h"
#include "ops/core/wide.h"

#include <math.h>

enum { LINEAR, POLY, RBF, SIGMOID };

typedef struct svm_params {
    int32_t kernel, transform;
    sni_floats kernel_params; /* gamma, coef0, degree */
    sni_floats coefficients, support_vectors, rho, prob_a, prob_b;
    sni_ints vectors_per_class;
    sni_ml_labels labels;
    int64_t n_supports, one_class;
    int64_t *first_vector; /* prepared: of each class; one more at the end */
} svm_params;

/* K(x, v) of two rows of n features. */
static double kernel(const svm_params *p, int32_t kind, const double *x, const float *v,
                     int64_t n) {
    double gamma = p->kernel_params.n > 0 ? (double)p->kernel_params.v[0] : 0;
    double coef0 = p->kernel_params.n > 1 ? (double)p->kernel_params.v[1] : 0;
    double degree = p->kernel_params.n > 2 ? (double)p->kernel_params.v[2] : 0;
    double sum = 0;
    if (kind == RBF) {
        for (int64_t i = 0; i < n; i++) sum += (x[i] - (double)v[i]) * (x[i] - (double)v[i]);
        return exp(-gamma * sum);
    }
    for (int64_t i = 0; i < n; i++) sum += x[i] * (double)v[i];
    if (kind == POLY) return pow(gamma * sum + coef0, degree);
    return kind == SIGMOID ? tanh(gamma * sum + coef0) : sum;
}

static bool fits(size_t have, int64_t a, int64_t b) {
    int64_t product;
    return !__builtin_mul_overflow(a, b, &product) && product == (int64_t)have;
}

/* ---- SVMRegressor ---- */

static sn_status regressor_ref(sni_kernel *k) {
    const svm_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sni_ml_rows rows;
    SN_TRY(sni_ml_rows_of(k, x, &rows));
    int64_t vectors = p->n_supports;
    if (vectors < 0 ||
        (vectors > 0 ? !fits(p->support_vectors.n, vectors, rows.width) ||
                           (int64_t)p->coefficients.n != vectors
                     : (int64_t)p->coefficients.n != rows.width) ||
        p->rho.n < 1 || y->count != rows.rows)
        return SNI_KERNEL_FAIL(k, "%lld support vectors do not fit %lld features",
                               (long long)vectors, (long long)rows.width);
    const double *data = NULL;
    void *memory = NULL;
    SN_TRY(sni_as_f64(k, x, &data));
    SN_TRY(sni_scratch_array(k, rows.rows, sizeof(double), &memory));
    double *out = memory;
    for (int64_t r = 0; r < rows.rows; r++) {
        const double *row = data + r * rows.width;
        double sum = (double)p->rho.v[0];
        for (int64_t i = 0; i < vectors; i++)
            sum += (double)p->coefficients.v[i] *
                   kernel(p, p->kernel, row, p->support_vectors.v + i * rows.width, rows.width);
        if (vectors == 0) sum += kernel(p, p->kernel, row, p->coefficients.v, rows.width);
        out[r] = p->one_class ? (sum > 0 ? 1 : -1) : sum;
        if (!p->one_class && (p->transform == SNI_ML_LOGISTIC || p->transform == SNI_ML_PROBIT))
            sni_ml_finish(p->transform, &out[r], 1);
        if (r % 64 == 0) SN_TRY(sni_poll(k));
    }
    sni_store_numbers(y, SN_FLOAT64, out, false);
    return SN_OK;
}

static sn_status regressor_infer(sni_infer *c) {
    return sni_ml_infer_rows(c, 1);
}

#define SVM_PARAMS                                                                   \
    {"kernel_type", SNI_ATTR_STRING, offsetof(svm_params, kernel), .text = "LINEAR", \
     .choices = "LINEAR|POLY|RBF|SIGMOID"},                                          \
        {"kernel_params", SNI_ATTR_FLOATS, offsetof(svm_params, kernel_params)},     \
        {"coefficients", SNI_ATTR_FLOATS, offsetof(svm_params, coefficients)},       \
        {"support_vectors", SNI_ATTR_FLOATS, offsetof(svm_params, support_vectors)}, \
        {"rho", SNI_ATTR_FLOATS, offsetof(svm_params, rho)}, {                       \
        "post_transform", SNI_ATTR_STRING, offsetof(svm_params, transform),          \
            .text = "NONE", .choices = SNI_ML_TRANSFORMS                             \
    }

const sni_op sni_op_SVMRegressor = {
    .name = "SVMRegressor",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "float"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FEATURES}),
    .params = SNI_PARAMS(SVM_PARAMS, {"n_supports", SNI_ATTR_INT, offsetof(svm_params, n_supports)},
                         {"one_class", SNI_ATTR_INT, offsetof(svm_params, one_class)}),
    .params_size = sizeof(svm_params),
    .infer = regressor_infer,
    .ref = regressor_ref,
};

/* ---- SVMClassifier ---- */

static int64_t class_count(const svm_params *p) {
    int64_t n = sni_ml_label_count(&p->labels);
    return n > 0 ? n : 1;
}

static int64_t vector_count(const svm_params *p) {
    return p->first_vector[p->vectors_per_class.n];
}

static int64_t pairs_of(int64_t classes) {
    return classes * (classes - 1) / 2;
}

/* Scores of a row before the last transform, and the final ones. */
static int64_t raw_width(const svm_params *p) {
    int64_t classes = class_count(p);
    return vector_count(p) > 0 && p->prob_a.n == 0 ? pairs_of(classes) : classes;
}

static bool adds_second(const svm_params *p) {
    return raw_width(p) == 1 && p->rho.n == 1 && sni_ml_label_count(&p->labels) == 2 &&
           p->transform != SNI_ML_PROBIT;
}

static sn_status classifier_prepare(void *params, sni_arena *arena, sn_error *err) {
    svm_params *p = params;
    int64_t total = 0, classes = class_count(p);
    if (classes > 100000)
        return sni_fail(err, SN_LIMIT, "%lld classes are too many", (long long)classes);
    p->first_vector = SNI_NEW_ARRAY(arena, int64_t, p->vectors_per_class.n + 1);
    if (!p->first_vector) return sni_fail_memory(err);
    for (size_t i = 0; i < p->vectors_per_class.n; i++) {
        if (p->vectors_per_class.v[i] < 0 ||
            __builtin_add_overflow(total, p->vectors_per_class.v[i], &total))
            return sni_fail(err, SN_INVALID_MODEL, "vectors_per_class has %lld",
                            (long long)p->vectors_per_class.v[i]);
        p->first_vector[i + 1] = total;
    }
    size_t pairs = (size_t)pairs_of(classes);
    if (total == 0)
        return p->rho.n >= 1 ? SN_OK : sni_fail(err, SN_INVALID_MODEL, "rho is missing");
    if ((int64_t)p->vectors_per_class.n != classes || p->rho.n < pairs ||
        (p->prob_a.n && (p->prob_a.n < pairs || p->prob_b.n < pairs)) ||
        !fits(p->coefficients.n, classes - 1, total))
        return sni_fail(err, SN_INVALID_MODEL,
                        "%zu coefficients, %zu rho and %zu prob_a do not fit %lld classes",
                        p->coefficients.n, p->rho.n, p->prob_a.n, (long long)classes);
    return SN_OK;
}

typedef struct svm_row {
    double *kernels;    /* of each vector */
    double *pairs;      /* score of each pair of classes */
    double *votes;      /* per class */
    double *r, *q, *qp; /* classes^2, classes^2, classes: for probabilities */
} svm_row;

/* One against one: a score for each pair of classes, and votes. */
static void decide(const svm_params *p, const double *x, int64_t width, const svm_row *s) {
    int64_t classes = class_count(p), vectors = vector_count(p), pair = 0;
    for (int64_t i = 0; i < vectors; i++)
        s->kernels[i] = kernel(p, p->kernel, x, p->support_vectors.v + i * width, width);
    for (int64_t i = 0; i < classes; i++) s->votes[i] = 0;
    for (int64_t i = 0; i < classes; i++) {
        for (int64_t j = i + 1; j < classes; j++, pair++) {
            const float *ci = p->coefficients.v + (j - 1) * vectors;
            const float *cj = p->coefficients.v + i * vectors;
            double sum = (double)p->rho.v[pair];
            for (int64_t v = p->first_vector[i]; v < p->first_vector[i + 1]; v++)
                sum += (double)ci[v] * s->kernels[v];
            for (int64_t v = p->first_vector[j]; v < p->first_vector[j + 1]; v++)
                sum += (double)cj[v] * s->kernels[v];
            s->pairs[pair] = sum;
            s->votes[sum > 0 ? i : j] += 1;
        }
    }
}

/* Q of the coupling problem from the pairwise probabilities r. */
static void coupling_matrix(const svm_row *s, int64_t n) {
    for (int64_t t = 0; t < n; t++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++) {
            if (j == t) continue;
            sum += s->r[j * n + t] * s->r[j * n + t];
            s->q[t * n + j] = -s->r[j * n + t] * s->r[t * n + j];
        }
        s->q[t * n + t] = sum;
    }
}

/* Probabilities of classes from those of pairs: Wu, Lin and Weng's second method, by iteration. */
static void couple(const svm_row *s, int64_t n, double *prob) {
    const double *q = s->q;
    double *qp = s->qp;
    coupling_matrix(s, n);
    for (int64_t t = 0; t < n; t++) prob[t] = 1 / (double)n;
    int64_t most = n > 100 ? n : 100;
    for (int64_t round = 0; round < most; round++) {
        double pqp = 0, error = 0;
        for (int64_t t = 0; t < n; t++) {
            qp[t] = 0;
            for (int64_t j = 0; j < n; j++) qp[t] += q[t * n + j] * prob[j];
            pqp += prob[t] * qp[t];
        }
        for (int64_t t = 0; t < n; t++) error = fmax(error, fabs(qp[t] - pqp));
        if (error < 0.005 / (double)n) break;
        for (int64_t t = 0; t < n; t++) {
            double diff = (pqp - qp[t]) / q[t * n + t], scale = 1 / (1 + diff);
            prob[t] += diff;
            pqp = (pqp + diff * (diff * q[t * n + t] + 2 * qp[t])) * scale * scale;
            for (int64_t j = 0; j < n; j++) {
                qp[j] = (qp[j] + diff * q[t * n + j]) * scale;
                prob[j] *= scale;
            }
        }
    }
}

static void probabilities(const svm_params *p, const svm_row *s, double *prob) {
    int64_t n = class_count(p), pair = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = i + 1; j < n; j++, pair++) {
            double v = s->pairs[pair] * (double)p->prob_a.v[pair] + (double)p->prob_b.v[pair];
            double r = fmin(fmax(1 - sni_ml_logistic(v), 1e-7), 1 - 1e-7);
            s->r[i * n + j] = r;
            s->r[j * n + i] = 1 - r;
        }
    }
    couple(s, n, prob);
}

/* With one rho and two labels, weights decide what a score means. */
static int64_t choose_label(const svm_params *p, const double *ranked, int64_t n) {
    int64_t best = sni_ml_argmax(ranked, n);
    double weight = ranked[best];
    if (p->rho.n != 1) return best;
    if (sni_ml_label_count(&p->labels) != 2) return weight > 0 ? 1 : 0;
    bool positive = true;
    for (size_t i = 0; i < p->coefficients.n; i++) positive = positive && p->coefficients.v[i] >= 0;
    return p->prob_a.n == 0 && positive && weight >= 0.5 ? 1 : best;
}

static void write_scores(const svm_params *p, double *out, const double *raw, int64_t n) {
    if (adds_second(p)) {
        out[0] = -raw[0];
        out[1] = raw[0];
        sni_ml_finish(p->transform, out, 2);
        return;
    }
    for (int64_t i = 0; i < n; i++) out[i] = raw[i];
    sni_ml_finish(p->transform, out, n);
}

static sn_status row_memory(sni_kernel *k, const svm_params *p, svm_row *s) {
    int64_t n = class_count(p), square = p->prob_a.n ? n * n : 0;
    int64_t sizes[6] = {vector_count(p), pairs_of(n), n, square, square, n};
    double **parts[6] = {&s->kernels, &s->pairs, &s->votes, &s->r, &s->q, &s->qp};
    for (int i = 0; i < 6; i++) {
        void *memory = NULL;
        SN_TRY(sni_scratch_array(k, sizes[i], sizeof(double), &memory));
        *parts[i] = memory;
    }
    return SN_OK;
}

static sn_status classifier_ref(sni_kernel *k) {
    const svm_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *labels = sni_out(k, 0), *z = sni_out(k, 1);
    int64_t classes = class_count(p), vectors = vector_count(p);
    int64_t raw_n = raw_width(p), width = adds_second(p) ? 2 : raw_n;
    sni_ml_rows rows;
    SN_TRY(sni_ml_rows_of(k, x, &rows));
    if (vectors ? !fits(p->support_vectors.n, vectors, rows.width)
                : !fits(p->coefficients.n, classes, rows.width))
        return SNI_KERNEL_FAIL(k, "rows of %lld features do not fit the support vectors",
                               (long long)rows.width);
    const double *data = NULL;
    void *raw_memory = NULL, *out_memory = NULL;
    svm_row s;
    SN_TRY(sni_as_f64(k, x, &data));
    SN_TRY(row_memory(k, p, &s));
    SN_TRY(sni_scratch_array(k, raw_n > classes ? raw_n : classes, sizeof(double), &raw_memory));
    SN_TRY(sni_scratch_array(k, rows.rows * width, sizeof(double), &out_memory));
    double *raw = raw_memory, *out = out_memory;
    for (int64_t r = 0; r < rows.rows; r++) {
        const double *row = data + r * rows.width;
        if (vectors) {
            decide(p, row, rows.width, &s);
            if (p->prob_a.n)
                probabilities(p, &s, raw);
            else
                memcpy(raw, s.pairs, (size_t)raw_n * sizeof *raw);
        } else {
            for (int64_t c = 0; c < classes; c++)
                raw[c] = (double)p->rho.v[0] +
                         kernel(p, LINEAR, row, p->coefficients.v + c * rows.width, rows.width);
        }
        sni_ml_put_label(&p->labels, labels, r, choose_label(p, vectors ? s.votes : raw, classes));
        write_scores(p, out + r * width, raw, raw_n);
        SN_TRY(sni_poll(k));
    }
    if (z) sni_store_numbers(z, SN_FLOAT64, out, false);
    return SN_OK;
}

static sn_status classifier_infer(sni_infer *c) {
    const svm_params *p = c->params;
    return sni_ml_infer_classifier(c, &p->labels, adds_second(p) ? 2 : raw_width(p));
}

const sni_op sni_op_SVMClassifier = {
    .name = "SVMClassifier",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}, {"Z", "float"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FEATURES}, {"T2", SNI_T(SN_STRING) | SNI_T(SN_INT64)}),
    .params =
        SNI_PARAMS(SVM_PARAMS, {"prob_a", SNI_ATTR_FLOATS, offsetof(svm_params, prob_a)},
                   {"prob_b", SNI_ATTR_FLOATS, offsetof(svm_params, prob_b)},
                   {"vectors_per_class", SNI_ATTR_INTS, offsetof(svm_params, vectors_per_class)},
                   {"classlabels_ints", SNI_ATTR_INTS, offsetof(svm_params, labels.ints)},
                   {"classlabels_strings", SNI_ATTR_STRINGS, offsetof(svm_params, labels.strings)}),
    .params_size = sizeof(svm_params),
    .prepare = classifier_prepare,
    .infer = classifier_infer,
    .ref = classifier_ref,
};
