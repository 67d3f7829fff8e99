/* Float tensors as float or double. */
#include "ops/wide.h"

#include "base/checked.h"
#include "base/floats.h"
#include "ops/tensor_util.h"

static bool narrow(sn_dtype dtype) {
    return sni_dtype_get(dtype)->cls == SNI_CLASS_S;
}

sn_status sni_scratch_array(sni_kernel *k, int64_t count, size_t size, void **out) {
    size_t bytes;
    if (count < 0 || !sni_mul_size((size_t)count, size, &bytes))
        return sni_fail(k->err, SN_LIMIT, "%lld elements of %zu bytes do not fit in memory",
                        (long long)count, size);
    void *p = sni_scratch(k, bytes ? bytes : 1);
    if (!p) {
        sn_status status = k->err ? k->err->status : SN_NO_MEMORY;
        return status != SN_OK ? status : SN_NO_MEMORY;
    }
    *out = p;
    return SN_OK;
}

sn_status sni_wide_in(sni_kernel *k, const sni_tensor *t, const void **data) {
    if (!narrow(t->dtype)) {
        *data = t->data;
        return SN_OK;
    }
    void *p = NULL;
    SN_TRY(sni_scratch_array(k, t->count, sizeof(float), &p));
    if (t->count) sni_widen(t->dtype, t->data, p, (size_t)t->count);
    *data = p;
    return SN_OK;
}

sn_status sni_wide_out(sni_kernel *k, sni_tensor *t, void **data) {
    if (narrow(t->dtype)) return sni_scratch_array(k, t->count, sizeof(float), data);
    *data = t->data;
    return SN_OK;
}

void sni_wide_done(sni_tensor *t, const void *data) {
    if (narrow(t->dtype) && t->count) sni_narrow(t->dtype, data, t->data, (size_t)t->count, true);
}

sn_status sni_as_f32(sni_kernel *k, const sni_tensor *t, const float **data) {
    if (t->dtype == SN_FLOAT32) {
        *data = t->data;
        return SN_OK;
    }
    void *p = NULL;
    SN_TRY(sni_scratch_array(k, t->count, sizeof(float), &p));
    float *f = p;
    if (narrow(t->dtype)) {
        if (t->count) sni_widen(t->dtype, t->data, f, (size_t)t->count);
    } else {
        for (int64_t i = 0; i < t->count; i++) f[i] = (float)sni_number_at(t, i);
    }
    *data = f;
    return SN_OK;
}

sn_status sni_as_f64(sni_kernel *k, const sni_tensor *t, const double **data) {
    if (t->dtype == SN_FLOAT64) {
        *data = t->data;
        return SN_OK;
    }
    void *p = NULL;
    SN_TRY(sni_scratch_array(k, t->count, sizeof(double), &p));
    double *d = p;
    for (int64_t i = 0; i < t->count; i++) d[i] = sni_number_at(t, i);
    *data = d;
    return SN_OK;
}
