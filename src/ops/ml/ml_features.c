/* ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer and Scaler: features
 * before they go into a model. */
#include "ops/core/elementwise.h"
#include "ops/ml/ml.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include "base/checked.h"

#include <math.h>

/* ---- ArrayFeatureExtractor ---- */

static sn_status extractor_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    size_t width = sni_dtype_width(x->dtype);
    int64_t length = x->rank ? x->dims[x->rank - 1] : 1, rows = length ? x->count / length : 0;
    for (int64_t i = 0; i < index->count; i++) {
        int64_t at = sni_index_at(index, i);
        if (at < 0 || at >= length)
            return SNI_KERNEL_FAIL(k, "feature %lld of %lld", (long long)at, (long long)length);
        for (int64_t r = 0; r < rows; r++)
            memcpy((unsigned char *)y->data + (size_t)(r * index->count + i) * width,
                   (const unsigned char *)x->data + (size_t)(r * length + at) * width, width);
    }
    return SN_OK;
}

static sn_status extractor_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank == 0) return SNI_INFER_FAIL(c, "a scalar has no features");
    sni_dim count = 1, dims[SN_MAX_RANK];
    for (int i = 0; i < sni_infer_rank(c, 1); i++)
        count = sni_dim_mul(c->symbols, count, sni_infer_dim(c, 1, i));
    for (int i = 0; i < rank - 1; i++) dims[i] = sni_infer_dim(c, 0, i);
    dims[rank - 1] = count;
    if (rank > 1) return sni_infer_set_shape(c, 0, rank, dims);
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){1, count});
}

const sni_op sni_op_ArrayFeatureExtractor = {
    .name = "ArrayFeatureExtractor",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"Y", "int64"}),
    .outputs = SNI_FORMALS({"Z", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FEATURES | SNI_T(SN_STRING)}),
    .infer = extractor_infer,
    .ref = extractor_ref,
};

/* ---- Binarizer ---- */

typedef struct binarizer_params {
    float threshold;
} binarizer_params;

#define BODY "ops/ml/binarizer.inc.c"
#include "ops/core/each_float.inc.h"
#include "ops/core/each_sint.inc.h"
#undef BODY

static sn_status binarizer_ref(sni_kernel *k) {
    static const sni_unary_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(binarize),
                                                      SNI_EACH_SINT(binarize)};
    return sni_map_unary(k, fns);
}

const sni_op sni_op_Binarizer = {
    .name = "Binarizer",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FEATURES}),
    .params = SNI_PARAMS({"threshold", SNI_ATTR_FLOAT, offsetof(binarizer_params, threshold)}),
    .params_size = sizeof(binarizer_params),
    .inplace = 1,
    .infer = sni_infer_same,
    .ref = binarizer_ref,
};

/* ---- FeatureVectorizer ---- */

typedef struct vectorizer_params {
    sni_ints dimensions;
} vectorizer_params;

/* Columns that input i takes: as many as said, else as many as it has. */
static int64_t columns(const vectorizer_params *p, int i, int64_t width) {
    return (size_t)i < p->dimensions.n ? p->dimensions.v[i] : width;
}

static sn_status vectorizer_ref(sni_kernel *k) {
    const vectorizer_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    float *out = y->data;
    int64_t total = y->dims[1], start = 0;
    for (int64_t i = 0; i < y->count; i++) out[i] = 0;
    for (int i = 0; i < k->n_in; i++) {
        const sni_tensor *x = sni_in(k, i);
        int64_t rows = x->rank > 1 ? x->dims[0] : 1, width = rows ? x->count / rows : 0;
        int64_t wanted = columns(p, i, width);
        if (rows != y->dims[0] || wanted < 0 || wanted > total - start)
            return SNI_KERNEL_FAIL(k, "input %d with %lld rows does not fit %lld", i,
                                   (long long)rows, (long long)y->dims[0]);
        const float *data = NULL;
        SN_TRY(sni_as_f32(k, x, &data));
        int64_t n = wanted < width ? wanted : width;
        for (int64_t r = 0; r < rows && n; r++)
            memcpy(out + r * total + start, data + r * width, (size_t)n * sizeof *out);
        start += wanted;
    }
    return SN_OK;
}

static sn_status vectorizer_infer(sni_infer *c) {
    const vectorizer_params *p = c->params;
    sni_dim rows = 0, total = 0;
    for (int i = 0; i < c->n_in; i++) {
        if (!sni_infer_shaped(c, i)) return SN_OK;
        int rank = sni_infer_rank(c, i);
        sni_dim n = rank > 1 ? sni_infer_dim(c, i, 0) : 1, width = 1;
        for (int d = rank > 1 ? 1 : 0; d < rank; d++)
            width = sni_dim_mul(c->symbols, width, sni_infer_dim(c, i, d));
        if (i == 0 || sni_dim_known(n)) rows = n;
        if ((size_t)i < p->dimensions.n) width = p->dimensions.v[i];
        if (width < 0 && !sni_dim_is_symbol(width))
            return SNI_INFER_FAIL(c, "inputdimensions has %lld", (long long)width);
        total = sni_dim_add(c->symbols, total, width);
    }
    return sni_infer_set_shape(c, 0, 2, (sni_dim[]){rows, total});
}

const sni_op sni_op_FeatureVectorizer = {
    .name = "FeatureVectorizer",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T1", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .outputs = SNI_FORMALS({"Y", "float"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FEATURES}),
    .params =
        SNI_PARAMS({"inputdimensions", SNI_ATTR_INTS, offsetof(vectorizer_params, dimensions)}),
    .params_size = sizeof(vectorizer_params),
    .infer = vectorizer_infer,
    .ref = vectorizer_ref,
};

/* ---- Imputer ---- */

typedef struct imputer_params {
    sni_floats floats;
    sni_ints ints;
    float replaced_float;
    int64_t replaced_int;
} imputer_params;

#define BODY "ops/ml/imputer.inc.c"
#define REPLACED replaced_float
#define IMPUTED floats
#include "ops/core/each_float.inc.h"
#undef REPLACED
#undef IMPUTED
#define REPLACED replaced_int
#define IMPUTED ints
#include "ops/core/each_sint.inc.h"
#undef BODY

static sn_status imputer_ref(sni_kernel *k) {
    typedef void (*impute_fn)(const imputer_params *, const void *, void *, int64_t, int64_t);
    static const impute_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(impute), SNI_EACH_SINT(impute)};
    const imputer_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    bool whole = sni_dtype_get(x->dtype)->cls == SNI_CLASS_I;
    int64_t width = x->rank ? x->dims[x->rank - 1] : 1;
    int64_t n = (int64_t)(whole ? p->ints.n : p->floats.n);
    if (n != 1 && n != width)
        return SNI_KERNEL_FAIL(k, "%lld imputed values for %lld features", (long long)n,
                               (long long)width);
    fns[x->dtype](p, x->data, sni_out(k, 0)->data, x->count, n);
    return SN_OK;
}

const sni_op sni_op_Imputer = {
    .name = "Imputer",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FEATURES}),
    .params = SNI_PARAMS(
        {"imputed_value_floats", SNI_ATTR_FLOATS, offsetof(imputer_params, floats)},
        {"imputed_value_int64s", SNI_ATTR_INTS, offsetof(imputer_params, ints)},
        {"replaced_value_float", SNI_ATTR_FLOAT, offsetof(imputer_params, replaced_float)},
        {"replaced_value_int64", SNI_ATTR_INT, offsetof(imputer_params, replaced_int)}),
    .params_size = sizeof(imputer_params),
    .inplace = 1,
    .infer = sni_infer_same,
    .ref = imputer_ref,
};

/* ---- Normalizer ---- */

typedef struct normalizer_params {
    int32_t norm;
} normalizer_params;

enum { NORM_MAX, NORM_L1, NORM_L2 };

/* A row of zeros stays what it is. */
static void normalise(int32_t norm, const double *x, double *y, int64_t n) {
    double size = norm == NORM_MAX ? -INFINITY : 0;
    for (int64_t i = 0; i < n; i++)
        size = norm == NORM_MAX  ? fmax(size, x[i])
               : norm == NORM_L1 ? size + fabs(x[i])
                                 : size + x[i] * x[i];
    if (norm == NORM_L2) size = sqrt(size);
    for (int64_t i = 0; i < n; i++) y[i] = size != 0 ? x[i] / size : x[i];
}

static sn_status normalizer_ref(sni_kernel *k) {
    const normalizer_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sni_ml_rows rows;
    const double *data = NULL;
    void *memory = NULL;
    SN_TRY(sni_ml_rows_of(k, x, &rows));
    SN_TRY(sni_as_f64(k, x, &data));
    SN_TRY(sni_scratch_array(k, x->count, sizeof(double), &memory));
    double *out = memory;
    for (int64_t r = 0; r < rows.rows; r++)
        normalise(p->norm, data + r * rows.width, out + r * rows.width, rows.width);
    sni_store_numbers(y, SN_FLOAT64, out, false);
    return SN_OK;
}

const sni_op sni_op_Normalizer = {
    .name = "Normalizer",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "float"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FEATURES}),
    .params = SNI_PARAMS({"norm", SNI_ATTR_STRING, offsetof(normalizer_params, norm), .text = "MAX",
                          .choices = "MAX|L1|L2"}),
    .params_size = sizeof(normalizer_params),
    .infer = sni_infer_same,
    .ref = normalizer_ref,
};

/* ---- Scaler ---- */

typedef struct scaler_params {
    sni_floats offset, scale;
} scaler_params;

static sn_status scaler_ref(sni_kernel *k) {
    const scaler_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t width = x->rank ? x->dims[x->rank - 1] : 1;
    const sni_floats *lists[2] = {&p->offset, &p->scale};
    for (int i = 0; i < 2; i++)
        if (lists[i]->n != 0 && lists[i]->n != 1 && (int64_t)lists[i]->n != width)
            return SNI_KERNEL_FAIL(k, "%zu offsets or scales for %lld features", lists[i]->n,
                                   (long long)width);
    const double *data = NULL;
    SN_TRY(sni_as_f64(k, x, &data));
    float *out = y->data;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = i % width;
        double offset = p->offset.n ? (double)p->offset.v[p->offset.n > 1 ? at : 0] : 0;
        double scale = p->scale.n ? (double)p->scale.v[p->scale.n > 1 ? at : 0] : 1;
        out[i] = (float)((data[i] - offset) * scale);
    }
    return SN_OK;
}

const sni_op sni_op_Scaler = {
    .name = "Scaler",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "float"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FEATURES}),
    .params = SNI_PARAMS({"offset", SNI_ATTR_FLOATS, offsetof(scaler_params, offset)},
                         {"scale", SNI_ATTR_FLOATS, offsetof(scaler_params, scale)}),
    .params_size = sizeof(scaler_params),
    .infer = sni_infer_same,
    .ref = scaler_ref,
};
