/* simd.h - the vector type that tier sources are written in. vf is a GCC vector of LANES floats: 16
 * with AVX-512, 8 with AVX2, 4 otherwise. C's operators work on it lane by lane; this header adds
 * the few operations that they do not cover. It must be included only by *.isa.c files, whose
 * compiler flags decide about LANES. */
#ifndef SNI_CPU_CORE_SIMD_H
#define SNI_CPU_CORE_SIMD_H

#include "base/floats.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
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
    __attribute__((vector_size(LANES * sizeof(float)), aligned(1), may_alias));
typedef int32_t vi __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef uint32_t vu __attribute__((vector_size(LANES * sizeof(uint32_t))));

/* Before a loop whose count is a constant: unrolls all of it. */
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

/* Before a loop of any count: unrolls it twice. */
#if defined(__clang__)
#define UNROLL_SOME _Pragma("clang loop unroll_count(2)")
#else
#define UNROLL_SOME _Pragma("GCC unroll 2")
#endif

/* Before a loop whose iterations are independent, although its result may be one of its operands:
 * allows the compiler to vectorise without checks for aliasing. */
#if defined(__clang__)
#define SAFE_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define SAFE_LOOP _Pragma("GCC ivdep")
#endif

/* Loads, stores and broadcasts; any alignment. */
static inline vf load(const sni_unaligned_float *p) {
    return *(const vf_anywhere *)p;
}

static inline void store(float *p, vf v) {
    *(vf_anywhere *)p = v;
}

static inline vf splat(float x) {
    return x - (vf){0};
}

/* Lane by lane: a where the mask is all ones, b where it is 0. */
static inline vf select_vf(vi mask, vf a, vf b) {
#if defined(__AVX512F__)
    return (vf)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), (__m512)b, (__m512)a);
#elif defined(__AVX2__)
    return (vf)_mm256_blendv_ps((__m256)b, (__m256)a, (__m256)mask);
#else
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
#endif
}

/* Lane by lane a < b ? b : a, and a > b ? b : a: a NaN in `a` stays, one in `b` is ignored. (The
 * instructions return their second operand if either is NaN.) */
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

static inline vi max_vi(vi a, vi b) {
#if defined(__AVX512F__)
    return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    vi more = a > b;
    return (a & more) | (b & ~more);
#endif
}

static inline int32_t greatest_lane(vi v) {
    int32_t most = v[0];
    for (int i = 1; i < LANES; i++) most = v[i] > most ? v[i] : most;
    return most;
}

/* *sum += a * b, in one instruction where there is FMA. With AVX2's sixteen registers the form of
 * the instruction is fixed by hand: compilers choose forms that overwrite another operand, copy
 * sums from register to register in unrolled loops, and spill one of them. */
static inline __attribute__((always_inline)) void add_product(vf *sum, vf a, vf b) {
#if defined(__AVX2__) && !defined(__AVX512F__)
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(*sum) : "x"(a), "x"(b));
#else
    *sum += a * b;
#endif
}

/* Permutations that swap halves, then quarters, ... of a vector: folding v with each of them in
 * turn combines all lanes. */
#if LANES == 16
#define FOLDS(step)                                             \
    step(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7); \
    step(4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11); \
    step(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13); \
    step(1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#elif LANES == 8
#define FOLDS(step)               \
    step(4, 5, 6, 7, 0, 1, 2, 3); \
    step(2, 3, 0, 1, 6, 7, 4, 5); \
    step(1, 0, 3, 2, 5, 4, 7, 6)
#else
#define FOLDS(step)   \
    step(2, 3, 0, 1); \
    step(1, 0, 3, 2)
#endif

/* The sum and the maximum of all lanes, in a fixed order. */
static inline float sum_lanes(vf v) {
#define STEP(...) v += __builtin_shufflevector(v, v, __VA_ARGS__)
    FOLDS(STEP);
#undef STEP
    return v[0];
}

static inline float max_lanes(vf v) {
#define STEP(...) v = max_vf(v, __builtin_shufflevector(v, v, __VA_ARGS__))
    FOLDS(STEP);
#undef STEP
    return v[0];
}
#undef FOLDS

#if defined(__AVX2__) && !defined(__AVX512F__)
/* All ones in the first n lanes. */
static inline __m256i first_lanes(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

/* Loads or stores n < LANES elements and touches no others; the other lanes are `rest`. */
static inline vf load_some(const sni_unaligned_float *p, int64_t n, float rest) {
#if defined(__AVX512F__)
    return (vf)_mm512_mask_loadu_ps((__m512)splat(rest), (__mmask16)((1u << n) - 1), p);
#elif defined(__AVX2__)
    __m256i mask = first_lanes(n);
    return select_vf((vi)mask, (vf)_mm256_maskload_ps((const void *)p, mask), splat(rest));
#else
    float a[LANES];
    for (int i = 0; i < LANES; i++) a[i] = i < n ? p[i] : rest;
    return load(a);
#endif
}

static inline void store_some(float *p, int64_t n, vf v) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
#elif defined(__AVX2__)
    _mm256_maskstore_ps(p, first_lanes(n), (__m256)v);
#else
    float a[LANES];
    store(a, v);
    memcpy(p, a, (size_t)n * sizeof *p);
#endif
}

/* x rounded down, up, and in the current rounding direction. */
#if defined(__AVX512F__)
#define ROUNDED(name, scalar, way)                                             \
    static inline vf name(vf x) {                                              \
        return (vf)_mm512_roundscale_ps((__m512)x, (way) | _MM_FROUND_NO_EXC); \
    }
#elif defined(__AVX2__)
#define ROUNDED(name, scalar, way)                                        \
    static inline vf name(vf x) {                                         \
        return (vf)_mm256_round_ps((__m256)x, (way) | _MM_FROUND_NO_EXC); \
    }
#else
#define ROUNDED(name, scalar, way)                           \
    static inline vf name(vf x) {                            \
        vf y;                                                \
        for (int i = 0; i < LANES; i++) y[i] = scalar(x[i]); \
        return y;                                            \
    }
#endif
ROUNDED(floor_vf, floorf, _MM_FROUND_TO_NEG_INF)
ROUNDED(ceil_vf, ceilf, _MM_FROUND_TO_POS_INF)
ROUNDED(round_vf, nearbyintf, _MM_FROUND_CUR_DIRECTION)
#undef ROUNDED

#endif
