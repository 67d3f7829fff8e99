/* simd.h - the thin vocabulary that tier sources are written in: one vector type of floats with as
 * many lanes as the tier has, and the few operations that C's operators do not cover. */
#ifndef SNI_CPU_SIMD_H
#define SNI_CPU_SIMD_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif

typedef float vf __attribute__((vector_size(LANES * sizeof(float))));
typedef float vf_anywhere
    __attribute__((vector_size(LANES * sizeof(float)), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(LANES * sizeof(int32_t))));

/* Before a loop whose count is a constant: all of it is laid out. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* Before a loop of any count: several rounds of it are laid out. */
#if defined(__clang__)
#define UNROLL_SOME _Pragma("clang loop unroll_count(2)")
#else
#define UNROLL_SOME _Pragma("GCC unroll 2")
#endif

static inline vf load(const float *p) {
    return *(const vf_anywhere *)p;
}

static inline void store(float *p, vf v) {
    *(vf_anywhere *)p = v;
}

static inline vf splat(float x) {
    return x - (vf){0};
}

static inline vf select_vf(vi mask, vf a, vf b) { /* mask lane all ones: a */
#if defined(__AVX512F__)
    return (vf)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), (__m512)b, (__m512)a);
#elif defined(__AVX2__)
    return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
#endif
}

/* As the scalar comparisons: NaN in `a` stays. The instructions return their second operand if
 * either is NaN. */
#if defined(__AVX512F__)
static inline vf max_vf(vf a, vf b) {
    return (vf)_mm512_max_ps((__m512)b, (__m512)a);
}
static inline vf min_vf(vf a, vf b) {
    return (vf)_mm512_min_ps((__m512)b, (__m512)a);
}
#elif defined(__AVX2__)
static inline vf max_vf(vf a, vf b) {
    return (vf)_mm256_max_ps((__m256)b, (__m256)a);
}
static inline vf min_vf(vf a, vf b) {
    return (vf)_mm256_min_ps((__m256)b, (__m256)a);
}
#else
static inline vf max_vf(vf a, vf b) {
#if defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)b, (__m512)a);
#elif defined(__AVX2__)
    return (vf)_mm256_max_ps((__m256)b, (__m256)a);
#else
    return select_vf(a < b, b, a);
#endif
}
static inline vf min_vf(vf a, vf b) {
#if defined(__AVX512F__)
    return (vf)_mm512_min_ps((__m512)b, (__m512)a);
#elif defined(__AVX2__)
    return (vf)_mm256_min_ps((__m256)b, (__m256)a);
#else
    return select_vf(a > b, b, a);
#endif
}
#endif

#endif
