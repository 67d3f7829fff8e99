/* wide.c - float tensors as float or double. */
#include "ops/core/wide.h"

#include "base/checked.h"
#include "base/floats.h"
#include "ops/core/convert.h"

#include <math.h>

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

/* The elements in another type, in scratch. */
static sn_status converted(sni_kernel *k, const sni_tensor *t, sn_dtype to, void **out) {
    void *p = NULL;
    SN_TRY(sni_scratch_array(k, t->count, sni_dtype_width(to), &p));
    if (t->count) sni_convert(t->dtype, t->data, to, p, (size_t)t->count, NULL);
    *out = p;
    return SN_OK;
}

sn_status sni_as_f32(sni_kernel *k, const sni_tensor *t, const float **data) {
    void *p = t->data;
    if (t->dtype != SN_FLOAT32) SN_TRY(converted(k, t, SN_FLOAT32, &p));
    *data = p;
    return SN_OK;
}

sn_status sni_as_f64(sni_kernel *k, const sni_tensor *t, const double **data) {
    void *p = t->data;
    if (t->dtype != SN_FLOAT64) SN_TRY(converted(k, t, SN_FLOAT64, &p));
    *data = p;
    return SN_OK;
}

sn_status sni_blend_in(sni_kernel *k, const sni_tensor *x, sn_dtype *type, const void **data) {
    const sni_dtype_facts *f = sni_dtype_get(x->dtype);
    if (f->bits >= 32 && x->dtype != SN_FLOAT32) {
        const double *d = NULL;
        SN_TRY(sni_as_f64(k, x, &d));
        *data = d;
        *type = SN_FLOAT64;
    } else {
        const float *s = NULL;
        SN_TRY(sni_as_f32(k, x, &s));
        *data = s;
        *type = SN_FLOAT32;
    }
    return SN_OK;
}

sn_status sni_blend_out(sni_kernel *k, sni_tensor *y, sn_dtype type, void **data) {
    if (y->dtype != type) return sni_scratch_array(k, y->count, sni_dtype_width(type), data);
    *data = y->data;
    return SN_OK;
}

void sni_store_numbers(sni_tensor *y, sn_dtype type, const void *data, bool round) {
    const sni_dtype_facts *f = sni_dtype_get(y->dtype);
    bool whole = f->cls == SNI_CLASS_I || f->cls == SNI_CLASS_U;
    if (!sni_convertible(type, y->dtype) || y->count == 0) return;
    if (!round || !whole) {
        sni_convert(type, data, y->dtype, y->data, (size_t)y->count, NULL);
        return;
    }
    unsigned char *dst = y->data;
    for (int64_t i = 0; i < y->count; i++, dst += f->width) {
        double v =
            type == SN_FLOAT64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
        v = rint(v);
        sni_convert(SN_FLOAT64, &v, y->dtype, dst, 1, NULL);
    }
}
