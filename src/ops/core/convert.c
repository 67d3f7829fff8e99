/* convert.c - conversion between element types by way of four carriers: int64, uint64, float and
 * double. */
#include "ops/core/convert.h"

#define BODY "ops/core/convert.inc.c"
#include "ops/core/each_number.inc.h"
#define TYPE SNI_TYPE_B8
#include "ops/core/one_type.inc.h"
#undef BODY

enum { BLOCK = 256 }; /* elements carried at a time */

typedef void (*copy_fn)(const void *src, void *dst, size_t n);

enum { I64, U64, F32, F64, CARRIERS };

typedef union carried {
    int64_t i64[BLOCK];
    uint64_t u64[BLOCK];
    float f32[BLOCK];
    double f64[BLOCK];
} carried;

/* The type whose bytes hold the elements: types under 8 bits are a byte each. */
static sn_dtype storage(sn_dtype dtype) {
    if (dtype == SN_INT4 || dtype == SN_INT2) return SN_INT8;
    if (dtype == SN_UINT4 || dtype == SN_UINT2) return SN_UINT8;
    return dtype;
}

static int carrier_of(sn_dtype dtype) {
    switch (sni_dtype_get(dtype)->cls) {
    case SNI_CLASS_I:
        return I64;
    case SNI_CLASS_U:
    case SNI_CLASS_B:
        return U64;
    case SNI_CLASS_F:
        return dtype == SN_FLOAT64 ? F64 : F32;
    case SNI_CLASS_S:
        return F32;
    default:
        return -1;
    }
}

bool sni_convertible(sn_dtype from, sn_dtype to) {
    return carrier_of(from) >= 0 && carrier_of(to) >= 0;
}

/* d as a float rounded to odd: truncated, with the last bit set if d is not exact. Rounding that
 * once more to fewer bits gives the same result as rounding d. */
static float f64_to_odd_f32(double d) {
    float f = (float)d;
    if ((double)f == d || d != d) return f;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    double a = d < 0 ? -d : d, b = f < 0 ? -(double)f : (double)f;
    if (b > a) bits--; /* towards zero: magnitudes are ordered as their bits */
    bits |= 1;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static void carrier_to_f32(int carrier, const void *src, float *dst, size_t n) {
    const int64_t *i64 = src;
    const uint64_t *u64 = src;
    const float *f32 = src;
    const double *f64 = src;
    for (size_t i = 0; i < n; i++) {
        switch (carrier) {
        case I64:
            dst[i] = f64_to_odd_f32((double)i64[i]);
            break;
        case U64:
            dst[i] = f64_to_odd_f32((double)u64[i]);
            break;
        case F64:
            dst[i] = f64_to_odd_f32(f64[i]);
            break;
        default:
            dst[i] = f32[i];
            break;
        }
    }
}

static void f32_to_narrow(sn_dtype to, const float *src, void *dst, size_t n,
                          const sni_convert_mode *mode) {
    if (to == SN_FLOAT8E8M0)
        sni_narrow_e8m0(src, dst, n, mode->saturate, mode->round);
    else
        sni_narrow(to, src, dst, n, mode->saturate);
}

void sni_keep_low_bits(sn_dtype dtype, void *elements, size_t n) {
    if (!sni_dtype_subbyte(dtype)) return;
    unsigned bits = sni_dtype_get(dtype)->bits;
    uint8_t mask = (uint8_t)((1u << bits) - 1), sign = 0;
    if (sni_dtype_get(dtype)->cls == SNI_CLASS_I) sign = (uint8_t)(1u << (bits - 1));
    uint8_t *d = elements;
    for (size_t i = 0; i < n; i++) d[i] = (uint8_t)(((d[i] & mask) ^ sign) - sign);
}

static void store_block(int carrier, const void *src, sn_dtype to, void *dst, size_t n,
                        const sni_convert_mode *mode) {
    static const copy_fn stores[CARRIERS][SNI_DTYPE_COUNT] = {
        [I64] = {SNI_EACH_NUMBER(store_i64), [SN_BOOL] = store_i64_b8},
        [U64] = {SNI_EACH_NUMBER(store_u64), [SN_BOOL] = store_u64_b8},
        [F32] = {SNI_EACH_NUMBER(store_f32), [SN_BOOL] = store_f32_b8},
        [F64] = {SNI_EACH_NUMBER(store_f64), [SN_BOOL] = store_f64_b8},
    };
    if (sni_dtype_get(to)->cls == SNI_CLASS_S) {
        float narrow[BLOCK];
        carrier_to_f32(carrier, src, narrow, n);
        f32_to_narrow(to, narrow, dst, n, mode);
    } else if (sni_dtype_subbyte(to)) {
        int64_t whole[BLOCK];
        stores[carrier][SN_INT64](src, whole, n);
        store_i64_i8(whole, dst, n);
        sni_keep_low_bits(to, dst, n);
    } else {
        stores[carrier][to](src, dst, n);
    }
}

void sni_convert(sn_dtype from, const void *src, sn_dtype to, void *dst, size_t n,
                 const sni_convert_mode *mode) {
    static const sni_convert_mode plain = {.saturate = true, .round = SNI_E8M0_UP};
    static const copy_fn loads[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(load), [SN_BOOL] = load_b8};
    if (!mode) mode = &plain;
    size_t from_width = sni_dtype_width(from), to_width = sni_dtype_width(to);
    bool from_narrow = sni_dtype_get(from)->cls == SNI_CLASS_S;
    if (n == 0) return;
    if (from == to) {
        memmove(dst, src, n * from_width);
        return;
    }
    if (from_narrow && to == SN_FLOAT32) {
        sni_widen(from, src, dst, n);
        return;
    }
    if (from == SN_FLOAT32 && sni_dtype_get(to)->cls == SNI_CLASS_S) {
        f32_to_narrow(to, src, dst, n, mode);
        return;
    }
    int carrier = carrier_of(from);
    carried block;
    const unsigned char *s = src;
    unsigned char *d = dst;
    for (size_t done = 0; done < n; done += BLOCK) {
        size_t m = n - done < BLOCK ? n - done : BLOCK;
        if (from_narrow)
            sni_widen(from, s, block.f32, m);
        else
            loads[storage(from)](s, &block, m);
        store_block(carrier, &block, to, d, m, mode);
        s += m * from_width;
        d += m * to_width;
    }
}
