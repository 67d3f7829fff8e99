/* Inverse of com.microsoft: inverses of a stack of square matrices, by elimination with pivots in
 * double precision. What has no inverse gives infinities or NaN. */
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <math.h>

static sn_status inverse_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank < 2 || sni_dim_differ(sni_infer_dim(c, 0, rank - 1), sni_infer_dim(c, 0, rank - 2)))
        return SNI_INFER_FAIL(c, "the input of rank %d is no stack of square matrices", rank);
    return sni_infer_same(c);
}

static void swap_rows(double *m, int64_t n, int64_t a, int64_t b) {
    for (int64_t j = 0; j < n && a != b; j++) {
        double kept = m[a * n + j];
        m[a * n + j] = m[b * n + j];
        m[b * n + j] = kept;
    }
}

/* row -= factor * other, in both matrices */
static void subtract_row(double *m, double *y, int64_t n, int64_t row, int64_t other,
                         double factor) {
    for (int64_t j = 0; j < n; j++) {
        m[row * n + j] -= factor * m[other * n + j];
        y[row * n + j] -= factor * y[other * n + j];
    }
}

/* y = the inverse of m, which is used up. */
static sn_status invert(sni_kernel *k, double *m, double *y, int64_t n) {
    for (int64_t i = 0; i < n * n; i++) y[i] = i / n == i % n;
    for (int64_t c = 0; c < n; c++) {
        int64_t pivot = c;
        for (int64_t r = c + 1; r < n; r++)
            if (fabs(m[r * n + c]) > fabs(m[pivot * n + c])) pivot = r;
        swap_rows(m, n, c, pivot);
        swap_rows(y, n, c, pivot);
        double by = m[c * n + c];
        for (int64_t j = 0; j < n; j++) {
            m[c * n + j] /= by;
            y[c * n + j] /= by;
        }
        for (int64_t r = 0; r < n; r++)
            if (r != c) subtract_row(m, y, n, r, c, m[r * n + c]);
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

static sn_status inverse_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t n = x->dims[x->rank - 1];
    const double *data;
    void *work = NULL, *out = NULL;
    SN_TRY(sni_as_f64(k, x, &data));
    SN_TRY(sni_scratch_array(k, x->count, sizeof(double), &work));
    SN_TRY(sni_scratch_array(k, x->count, sizeof(double), &out));
    sni_copy_bytes(work, data, (size_t)x->count * sizeof(double));
    for (int64_t at = 0; at < x->count; at += n * n)
        SN_TRY(invert(k, (double *)work + at, (double *)out + at, n));
    sni_store_numbers(y, SN_FLOAT64, out, false);
    return SN_OK;
}

const sni_op sni_op_ms_Inverse = {
    .name = "Inverse",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT16) | SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64)}),
    .infer = inverse_infer,
    .ref = inverse_ref,
};
