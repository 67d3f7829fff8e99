/* compare.c - do two values agree? */
#include "compare.h"

#include "base/dtype.h"
#include "base/floats.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *kind_name(sn_kind kind) {
    static const char *const names[] = {"none", "tensor", "sequence", "map", "optional", "sparse"};
    return names[kind];
}

static void shape_text(const sn_value *v, char *text, size_t size) {
    int used = snprintf(text, size, "%s[", sn_dtype_name(sn_tensor_dtype(v)));
    for (int i = 0; i < sn_tensor_rank(v) && used < (int)size; i++)
        used += snprintf(text + used, size - (size_t)used, i ? ",%" PRId64 : "%" PRId64,
                         sn_tensor_dims(v)[i]);
    if (used < (int)size) snprintf(text + used, size - (size_t)used, "]");
}

static bool same_shape(const sn_value *a, const sn_value *b) {
    if (sn_tensor_dtype(a) != sn_tensor_dtype(b) || sn_tensor_rank(a) != sn_tensor_rank(b))
        return false;
    for (int i = 0; i < sn_tensor_rank(a); i++)
        if (sn_tensor_dims(a)[i] != sn_tensor_dims(b)[i]) return false;
    return true;
}

/* Element i of a type of class F or S, or a part of one of class C, as a double. */
static double real_at(sn_dtype dtype, const unsigned char *data, size_t i) {
    float f;
    double d;
    if (dtype == SN_FLOAT32 || dtype == SN_COMPLEX64) {
        memcpy(&f, data + i * sizeof(f), sizeof(f));
        return (double)f;
    }
    if (dtype == SN_FLOAT64 || dtype == SN_COMPLEX128) {
        memcpy(&d, data + i * sizeof(d), sizeof(d));
        return d;
    }
    return (double)sni_narrow_to_f32(dtype, data + i * sni_dtype_width(dtype));
}

static bool reals_agree(double want, double got, tolerance t) {
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
    if (isinf(want) || isinf(got)) return want == got;
    return fabs(want - got) <= t.absolute + t.relative * fabs(want);
}

static int64_t integer_at(sn_dtype dtype, const unsigned char *data, size_t i) {
    const sni_dtype_facts *f = sni_dtype_get(dtype);
    uint64_t bits = 0;
    memcpy(&bits, data + i * f->width, f->width);
    unsigned unused = 64 - 8 * f->width;
    return f->cls == SNI_CLASS_I ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

static bool numbers_agree(sn_dtype dtype, const unsigned char *want, const unsigned char *got,
                          size_t count, tolerance t, char *why, size_t size) {
    sni_class cls = sni_dtype_get(dtype)->cls;
    bool real = cls == SNI_CLASS_F || cls == SNI_CLASS_S || cls == SNI_CLASS_C;
    if (cls == SNI_CLASS_C) count *= 2;
    for (size_t i = 0; i < count; i++) {
        if (real) {
            double w = real_at(dtype, want, i), g = real_at(dtype, got, i);
            if (reals_agree(w, g, t)) continue;
            snprintf(why, size, "number %zu is %.9g, expected %.9g", i, g, w);
            return false;
        }
        int64_t w = integer_at(dtype, want, i), g = integer_at(dtype, got, i);
        if (w == g) continue;
        snprintf(why, size, "element %zu is %" PRId64 ", expected %" PRId64, i, g, w);
        return false;
    }
    return true;
}

static bool strings_agree(const sn_value *want, const sn_value *got, char *why, size_t size) {
    for (size_t i = 0; i < sn_tensor_count(want); i++) {
        const char *w, *g;
        size_t wn, gn;
        if (sn_tensor_get_string(want, i, &w, &wn, NULL) ||
            sn_tensor_get_string(got, i, &g, &gn, NULL)) {
            snprintf(why, size, "element %zu cannot be read", i);
            return false;
        }
        if (wn == gn && memcmp(w, g, wn) == 0) continue;
        snprintf(why, size, "element %zu is \"%.60s\", expected \"%.60s\"", i, g, w);
        return false;
    }
    return true;
}

static bool tensors_agree(const sn_value *want, const sn_value *got, tolerance t, char *why,
                          size_t size) {
    char w[200], g[200];
    if (!same_shape(want, got)) {
        shape_text(want, w, sizeof(w));
        shape_text(got, g, sizeof(g));
        snprintf(why, size, "it is %s, expected %s", g, w);
        return false;
    }
    sn_dtype dtype = sn_tensor_dtype(want);
    size_t count = sn_tensor_count(want);
    if (dtype == SN_STRING) return strings_agree(want, got, why, size);
    if (!sni_dtype_subbyte(dtype))
        return numbers_agree(dtype, sn_tensor_const_data(want), sn_tensor_const_data(got), count, t,
                             why, size);
    unsigned char *elements = malloc(2 * count + 1);
    if (!elements) abort();
    sni_subbyte_unpack(dtype, sn_tensor_const_data(want), elements, count);
    sni_subbyte_unpack(dtype, sn_tensor_const_data(got), elements + count, count);
    bool agree = numbers_agree(dtype, elements, elements + count, count, t, why, size);
    free(elements);
    return agree;
}

static bool sequences_agree(const sn_value *want, const sn_value *got, tolerance t, char *why,
                            size_t size) {
    if (sn_sequence_length(want) != sn_sequence_length(got)) {
        snprintf(why, size, "it has %zu items, expected %zu", sn_sequence_length(got),
                 sn_sequence_length(want));
        return false;
    }
    for (size_t i = 0; i < sn_sequence_length(want); i++) {
        char inner[400];
        if (values_agree(sn_sequence_at(want, i), sn_sequence_at(got, i), t, inner, sizeof(inner)))
            continue;
        snprintf(why, size, "item %zu: %s", i, inner);
        return false;
    }
    return true;
}

bool values_agree(const sn_value *want, const sn_value *got, tolerance t, char *why, size_t size) {
    sn_kind kind = sn_value_kind(want);
    if (kind != sn_value_kind(got)) {
        snprintf(why, size, "it is a %s, expected a %s", kind_name(sn_value_kind(got)),
                 kind_name(kind));
        return false;
    }
    if (kind == SN_KIND_TENSOR) return tensors_agree(want, got, t, why, size);
    if (kind == SN_KIND_SEQUENCE) return sequences_agree(want, got, t, why, size);
    return true;
}
