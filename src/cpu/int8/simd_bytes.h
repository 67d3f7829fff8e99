/* simd_bytes.h - what the int8 tier sources share: loads of bytes as numbers, and numbers rounded
 * and stored as bytes. */
#ifndef SNI_CPU_INT8_SIMD_BYTES_H
#define SNI_CPU_INT8_SIMD_BYTES_H

#include "cpu/int8/simd_int.h"

/* The range of results before the zero point is added, and the zero point. */
typedef struct limits {
    vf least, most;
    vi zero;
} limits;

static inline limits limits_of(float zero, float low) {
    return (limits){splat(low - zero), splat(low + 255 - zero), splat_vi((int32_t)zero)};
}

/* v rounded to nearest even, plus zero, clamped to [low, low + 255]; NaN gives low. */
static inline vi rounded(vf v, const limits *l) {
#if LANES == 16
    v = (vf)_mm512_min_ps(_mm512_max_ps((__m512)v, (__m512)l->least), (__m512)l->most);
    return (vi)_mm512_cvtps_epi32((__m512)v) + l->zero;
#elif LANES == 8
    v = (vf)_mm256_min_ps(_mm256_max_ps((__m256)v, (__m256)l->least), (__m256)l->most);
    return (vi)_mm256_cvtps_epi32((__m256)v) + l->zero;
#else
    const vf magic = splat(12582912);
    v = select_vf(v > l->least, v, l->least);
    v = min_vf(v, l->most);
    return __builtin_convertvector((v + magic) - magic, vi) + l->zero;
#endif
}

/* The lowest bytes of the lanes. */
static inline void store_bytes(uint8_t *y, vi v) {
#if LANES == 16
    _mm_storeu_si128((__m128i_u *)y, _mm512_cvtepi32_epi8((__m512i)v));
#elif LANES == 8
    const __m256i pick =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i x = _mm256_shuffle_epi8((__m256i)v, pick);
    __m128i z = _mm_unpacklo_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storel_epi64((__m128i_u *)y, z);
#else
    for (int i = 0; i < LANES; i++) y[i] = (uint8_t)v[i];
#endif
}

static inline void store_some_bytes(uint8_t *y, int64_t n, vi v) {
#if LANES == 16
    _mm512_mask_cvtepi32_storeu_epi8(y, (__mmask16)((1u << n) - 1), (__m512i)v);
#else
    uint8_t some[LANES];
    store_bytes(some, v);
    memcpy(y, some, (size_t)n);
#endif
}

/* Elements [at, at + LANES) of a row, of which n exist; zeros fill up. */
static inline vi load_ints(const int32_t *p, int64_t at, int64_t n) {
    if (n >= LANES) return load_vi(p + at);
#if LANES == 16
    return (vi)_mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1), p + at);
#else
    int32_t some[LANES] = {0};
    memcpy(some, p + at, (size_t)n * sizeof *some);
    return load_vi(some);
#endif
}

static inline vf load_floats(const float *p, int64_t at, int64_t n) {
    return n >= LANES ? load(p + at) : load_some(p + at, n, 0);
}

static inline vi load_bytes(const uint8_t *p, bool is_signed) {
#if LANES == 16
    __m128i x = _mm_loadu_si128((const __m128i_u *)p);
    return (vi)(is_signed ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x));
#elif LANES == 8
    __m128i x = _mm_loadl_epi64((const __m128i_u *)p);
    return (vi)(is_signed ? _mm256_cvtepi8_epi32(x) : _mm256_cvtepu8_epi32(x));
#else
    vi v;
    for (int i = 0; i < LANES; i++) v[i] = is_signed ? (int8_t)p[i] : p[i];
    return v;
#endif
}

#endif
