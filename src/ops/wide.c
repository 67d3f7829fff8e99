/* Float tensors as float or double. */
#include "ops/wide.h"

#include "base/checked.h"
#include "base/floats.h"
#include "ops/tensor_util.h"

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

/* The bits of an integer of f->bits bits nearest to v. */
static uint64_t to_integer(const sni_dtype_facts *f, double v, bool round) {
    bool sign = f->cls == SNI_CLASS_I;
    double limit = ldexp(1, (int)f->bits - (sign ? 1 : 0));
    if (round) v = rint(v);
    if (v != v) return 0;
    if (v >= limit) return (UINT64_MAX >> (64 - f->bits)) >> (sign ? 1 : 0);
    if (sign) return (uint64_t)(int64_t)(v < -limit ? -limit : v);
    return v > 0 ? (uint64_t)v : 0;
}

void sni_store_numbers(sni_tensor *y, sn_dtype type, const void *data, bool round) {
    const sni_dtype_facts *f = sni_dtype_get(y->dtype);
    unsigned char *dst = y->data;
    for (int64_t i = 0; i < y->count; i++, dst += f->width) {
        double v =
            type == SN_FLOAT64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
        float narrowed = (float)v;
        uint64_t bits;
        switch (f->cls) {
        case SNI_CLASS_I:
        case SNI_CLASS_U:
            bits = to_integer(f, v, round);
            memcpy(dst, &bits, f->width); /* little-endian */
            break;
        case SNI_CLASS_B:
            *dst = v != 0;
            break;
        case SNI_CLASS_S:
            sni_narrow(y->dtype, &narrowed, dst, 1, true);
            break;
        case SNI_CLASS_F:
        case SNI_CLASS_C: /* its real part */
            if (y->dtype == SN_FLOAT64 || y->dtype == SN_COMPLEX128)
                memcpy(dst, &v, sizeof v);
            else
                memcpy(dst, &narrowed, sizeof narrowed);
            break;
        default:
            break;
        }
    }
}
