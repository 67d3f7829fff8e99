/* simd_int.h - what the int8 tier sources share: vectors of 32-bit integers and units of products.
 */
#ifndef SNI_CPU_INT8_SIMD_INT_H
#define SNI_CPU_INT8_SIMD_INT_H

#include "cpu/core/simd.h"

#if defined(__SSE2__) && !defined(__AVX2__)
#include <emmintrin.h>
#endif

/* Elements of a 32-bit unit: 4 bytes with VNNI, otherwise 2 words. */
#if defined(__AVX512VNNI__)
enum { GROUP = 4 };
#else
enum { GROUP = 2 };
#endif

typedef int32_t vi_anywhere
    __attribute__((vector_size(LANES * sizeof(int32_t)), aligned(4), may_alias));

static inline vi load_vi(const int32_t *p) {
    return (vi) * (const vi_anywhere *)p;
}

static inline void store_vi(int32_t *p, vi v) {
    *(vi_anywhere *)p = v;
}

static inline vi splat_vi(int32_t x) {
    return x - (vi){0};
}

/* sum + the dot product of each lane's units: u unsigned, s signed. One instruction with VNNI
 * (vpdpbusd, no saturation), otherwise a multiplication of words and an addition. */
static inline vi dot(vi sum, vi u, vi s) {
#if defined(__AVX512VNNI__)
    return (vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)u, (__m512i)s);
#elif LANES == 16
    return (vi)_mm512_add_epi32((__m512i)sum, _mm512_madd_epi16((__m512i)u, (__m512i)s));
#elif LANES == 8
    return (vi)_mm256_add_epi32((__m256i)sum, _mm256_madd_epi16((__m256i)u, (__m256i)s));
#elif defined(__SSE2__)
    return (vi)_mm_add_epi32((__m128i)sum, _mm_madd_epi16((__m128i)u, (__m128i)s));
#else
    vi low = ((u << 16) >> 16) * ((s << 16) >> 16), high = (u >> 16) * (s >> 16);
    return (vi)((vu)sum + (vu)low + (vu)high);
#endif
}

/* A byte as a number, after its bits are flipped. */
static inline int32_t element(uint8_t byte, uint8_t flip, bool is_signed) {
    byte ^= flip;
    return is_signed ? (int8_t)byte : byte;
}

static inline vf to_floats(vi v) {
#if LANES == 16
    return (vf)_mm512_cvtepi32_ps((__m512i)v);
#elif LANES == 8
    return (vf)_mm256_cvtepi32_ps((__m256i)v);
#else
    return __builtin_convertvector(v, vf);
#endif
}

#endif
