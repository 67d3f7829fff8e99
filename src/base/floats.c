/* floats.c - conversion between float and the narrow floating-point types. */
#include "base/floats.h"

#include "base/cpu.h"

#ifdef SNI_X86
#include <immintrin.h>
#endif

static uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* ---- float16 and bfloat16 ---- */

float sni_f16_to_f32(uint16_t h) {
    const uint32_t smallest_normal = 113u << 23; /* 2^-14 */
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t magnitude = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t exponent = magnitude & (0x1fu << 23);
    uint32_t u = magnitude + (112u << 23);
    if (exponent == (0x1fu << 23))
        u += 112u << 23;
    else if (exponent == 0)
        u = bits_of(float_of(magnitude + smallest_normal) - float_of(smallest_normal));
    return float_of(u | sign);
}

uint16_t sni_f32_to_f16(float f) {
    const uint32_t overflow = (127u + 16) << 23, smallest_normal = 113u << 23;
    const uint32_t half_ulp = (127u - 15 + 13 + 1) << 23; /* adding it aligns a subnormal result */
    uint32_t u = bits_of(f), sign = u & 0x80000000u, h;
    u ^= sign;
    if (u >= overflow)
        h = u > 0x7f800000u ? 0x7e00u | (u >> 13 & 0x3ffu) : 0x7c00u;
    else if (u < smallest_normal)
        h = bits_of(float_of(u) + float_of(half_ulp)) - half_ulp;
    else
        h = (u - (112u << 23) + 0xfffu + (u >> 13 & 1)) >> 13;
    return (uint16_t)(h | sign >> 16);
}

float sni_bf16_to_f32(uint16_t h) {
    return float_of((uint32_t)h << 16);
}

uint16_t sni_f32_to_bf16(float f) {
    uint32_t u = bits_of(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

/* ---- Types of 8 bits and less ---- */

typedef struct narrow_format {
    uint8_t sign;      /* bit of the sign */
    uint8_t man_bits;  /* of the fraction */
    int8_t bias;       /* of the exponent */
    uint8_t largest;   /* code of the largest finite value */
    uint8_t infinity;  /* code of infinity; 0: none */
    uint8_t nan;       /* code written for NaN */
    bool nan_unsigned; /* NaN has that one code, whatever the sign; no -0 if it takes its place */
    bool always_saturates;
} narrow_format;

static const narrow_format formats[SNI_DTYPE_COUNT] = {
    [SN_FLOAT8E4M3FN] = {0x80, 3, 7, 0x7e, 0, 0x7f, false, false},
    [SN_FLOAT8E4M3FNUZ] = {0x80, 3, 8, 0x7f, 0, 0x80, true, false},
    [SN_FLOAT8E5M2] = {0x80, 2, 15, 0x7b, 0x7c, 0x7e, false, false},
    [SN_FLOAT8E5M2FNUZ] = {0x80, 2, 16, 0x7f, 0, 0x80, true, false},
    [SN_FLOAT4E2M1] = {0x08, 1, 1, 0x07, 0, 0x08, true, true},
};

/* Exponent and fraction, as one number, of a finite value of at least 0 in a format with that many
 * fraction bits and that bias; it may lie beyond the format's largest. `u` is a double's bits. */
static uint64_t round_magnitude(uint64_t u, unsigned man_bits, int bias) {
    int exponent = (int)(u >> 52) - 1023 + bias;
    uint64_t man = (u & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52, base = 0;
    unsigned shift = 52 - man_bits;
    if (exponent >= 1)
        base = (uint64_t)(exponent - 1) << man_bits;
    else if (exponent < -(int)man_bits)
        return 0;
    else
        shift += (unsigned)(1 - exponent);
    return base + ((man + ((uint64_t)1 << (shift - 1)) - 1 + (man >> shift & 1)) >> shift);
}

static uint64_t double_bits(double d) {
    uint64_t u;
    memcpy(&u, &d, sizeof u);
    return u;
}

uint16_t sni_f64_to_f16(double d) {
    const uint64_t infinity = (uint64_t)0x7ff << 52;
    uint64_t u = double_bits(d), magnitude = u & (((uint64_t)1 << 63) - 1);
    unsigned sign = (unsigned)(u >> 48) & 0x8000u;
    if (magnitude > infinity) return (uint16_t)(sign | 0x7e00u | (unsigned)(u >> 42 & 0x3ff));
    uint64_t h = magnitude == infinity ? 0x7c00 : round_magnitude(magnitude, 10, 15);
    return (uint16_t)(sign | (unsigned)(h > 0x7c00 ? 0x7c00 : h));
}

static uint8_t encode(const narrow_format *format, float f, bool saturate) {
    uint32_t u = bits_of(f), magnitude = u & 0x7fffffffu;
    unsigned sign = u >> 31 ? format->sign : 0;
    unsigned nan = format->nan_unsigned ? format->nan : format->nan | sign;
    if (magnitude > 0x7f800000u) return (uint8_t)nan;
    uint64_t code = UINT64_MAX;
    if (magnitude < 0x7f800000u)
        code = round_magnitude(double_bits((double)float_of(magnitude)), format->man_bits,
                               format->bias);
    if (code > format->largest) {
        if (saturate || format->always_saturates)
            code = format->largest;
        else
            return (uint8_t)(format->infinity ? format->infinity | sign : nan);
    }
    bool no_negative_zero = format->nan_unsigned && !format->always_saturates;
    return (uint8_t)(code | (code == 0 && no_negative_zero ? 0 : sign));
}

static float decode(const narrow_format *format, uint8_t code) {
    uint32_t sign = code & format->sign ? 0x80000000u : 0;
    uint32_t magnitude = code & (format->sign - 1u);
    if (format->nan_unsigned && !format->always_saturates && code == format->nan)
        return float_of(0x7fc00000u);
    if (magnitude > format->largest)
        return float_of(sign | (magnitude == format->infinity ? 0x7f800000u : 0x7fc00000u));
    uint32_t exponent = magnitude >> format->man_bits;
    uint32_t man = magnitude & ((1u << format->man_bits) - 1);
    uint32_t step = (uint32_t)(127 + 1 - format->bias - format->man_bits) << 23;
    uint32_t u = exponent == 0 ? bits_of((float)man * float_of(step))
                               : (uint32_t)((int)exponent - format->bias + 127) << 23 |
                                     man << (23 - format->man_bits);
    return float_of(u | sign);
}

static float decode_e8m0(uint8_t code) {
    if (code == 0xff) return float_of(0x7fc00000u);
    return float_of(code == 0 ? 0x00400000u : (uint32_t)code << 23);
}

/* `u` is above 0 and within 2^-127 to 2^127. A float below 2^-126 is subnormal: its exponent field
 * is 0, and 2^-127 is its fraction's highest bit. */
static uint8_t encode_e8m0(uint32_t u, sni_e8m0_round mode) {
    uint32_t exponent = u >> 23, rest = u & 0x7fffffu, half = 0x400000u;
    if (exponent == 0) {
        rest -= 0x400000u;
        half = 0x200000u;
    }
    bool up = mode == SNI_E8M0_UP ? rest != 0 : mode == SNI_E8M0_NEAREST && rest >= half;
    return (uint8_t)(exponent + up);
}

void sni_narrow_e8m0(const float *src, uint8_t *dst, size_t count, bool saturate,
                     sni_e8m0_round mode) {
    const uint32_t smallest = 0x00400000u, largest = 254u << 23;
    for (size_t i = 0; i < count; i++) {
        uint32_t u = bits_of(src[i]);
        if (u == 0x80000000u) u = 0;
        if (u > 0x7f800000u)
            dst[i] = 0xff;
        else if (u < smallest || u > largest)
            dst[i] = !saturate ? 0xff : u < smallest ? 0 : 0xfe;
        else
            dst[i] = encode_e8m0(u, mode);
    }
}

/* ---- Any narrow type ---- */

float sni_narrow_to_f32(sn_dtype dtype, const void *element) {
    float f;
    sni_widen(dtype, element, &f, 1);
    return f;
}

#ifdef SNI_X86
/* Eight at a time; how many were done. */
__attribute__((target("avx,f16c"))) static size_t widen_f16(const uint16_t *src, float *dst,
                                                            size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(src + i))));
    return i;
}

__attribute__((target("avx,f16c"))) static size_t narrow_f16(const float *src, uint16_t *dst,
                                                             size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(dst + i), _mm256_cvtps_ph(_mm256_loadu_ps(src + i), 0));
    return i;
}
#endif

/* Float16 by the CPU's own instructions; how many were done. */
static size_t widen_some(const uint16_t *src, float *dst, size_t count) {
#ifdef SNI_X86
    if (sni_cpu_isa() >= SNI_ISA_AVX2) return widen_f16(src, dst, count);
#endif
    (void)src, (void)dst, (void)count;
    return 0;
}

static size_t narrow_some(const float *src, uint16_t *dst, size_t count) {
#ifdef SNI_X86
    if (sni_cpu_isa() >= SNI_ISA_AVX2) return narrow_f16(src, dst, count);
#endif
    (void)src, (void)dst, (void)count;
    return 0;
}

void sni_widen(sn_dtype dtype, const void *src, float *dst, size_t count) {
    const uint16_t *halves = src;
    const uint8_t *bytes = src;
    switch ((int)dtype) {
    case SN_FLOAT16:
        for (size_t i = widen_some(halves, dst, count); i < count; i++)
            dst[i] = sni_f16_to_f32(halves[i]);
        break;
    case SN_BFLOAT16:
        for (size_t i = 0; i < count; i++) dst[i] = sni_bf16_to_f32(halves[i]);
        break;
    case SN_FLOAT8E8M0:
        for (size_t i = 0; i < count; i++) dst[i] = decode_e8m0(bytes[i]);
        break;
    default:
        for (size_t i = 0; i < count; i++) dst[i] = decode(&formats[dtype], bytes[i]);
        break;
    }
}

void sni_narrow(sn_dtype dtype, const float *src, void *dst, size_t count, bool saturate) {
    uint16_t *halves = dst;
    uint8_t *bytes = dst;
    switch ((int)dtype) {
    case SN_FLOAT16:
        for (size_t i = narrow_some(src, halves, count); i < count; i++)
            halves[i] = sni_f32_to_f16(src[i]);
        break;
    case SN_BFLOAT16:
        for (size_t i = 0; i < count; i++) halves[i] = sni_f32_to_bf16(src[i]);
        break;
    case SN_FLOAT8E8M0:
        sni_narrow_e8m0(src, bytes, count, saturate, SNI_E8M0_UP);
        break;
    default:
        for (size_t i = 0; i < count; i++) bytes[i] = encode(&formats[dtype], src[i], saturate);
        break;
    }
}
