/* simd64.h - vectors of doubles, as simd.h has those of floats: DOUBLES = LANES / 2 lanes. */
#ifndef SNI_CPU_CORE_SIMD64_H
#define SNI_CPU_CORE_SIMD64_H

#include "cpu/core/simd.h"

#define DOUBLES (LANES / 2)

typedef double vd __attribute__((vector_size(DOUBLES * sizeof(double))));
typedef double vd_anywhere
    __attribute__((vector_size(DOUBLES * sizeof(double)), aligned(1), may_alias));
typedef int64_t vl __attribute__((vector_size(DOUBLES * sizeof(int64_t))));
typedef uint64_t vul __attribute__((vector_size(DOUBLES * sizeof(uint64_t))));

static inline vd load_vd(const double *p) {
    return *(const vd_anywhere *)p;
}

static inline void store_vd(double *p, vd v) {
    *(vd_anywhere *)p = v;
}

static inline vd splat_vd(double x) {
    return x - (vd){0};
}

/* Lane by lane: a where the mask is all ones, b where it is 0. */
static inline vd select_vd(vl mask, vd a, vd b) {
#if defined(__AVX512F__)
    return (vd)_mm512_mask_blend_pd(_mm512_movepi64_mask((__m512i)mask), (__m512d)b, (__m512d)a);
#elif defined(__AVX2__)
    return (vd)_mm256_blendv_pd((__m256d)b, (__m256d)a, (__m256d)mask);
#else
    return (vd)((mask & (vl)a) | (~mask & (vl)b));
#endif
}

/* Lane by lane a < b ? b : a, and a > b ? b : a: a NaN in `a` stays, and so does a zero of `a` if b
 * is a zero of the other sign. */
static inline vd max_vd(vd a, vd b) {
#if defined(__AVX512F__)
    return (vd)_mm512_max_pd((__m512d)b, (__m512d)a);
#elif defined(__AVX2__)
    return (vd)_mm256_max_pd((__m256d)b, (__m256d)a);
#else
    return select_vd(a < b, b, a);
#endif
}

static inline vd min_vd(vd a, vd b) {
#if defined(__AVX512F__)
    return (vd)_mm512_min_pd((__m512d)b, (__m512d)a);
#elif defined(__AVX2__)
    return (vd)_mm256_min_pd((__m256d)b, (__m256d)a);
#else
    return select_vd(a > b, b, a);
#endif
}

/* True if a < b in every lane; not if either is NaN. */
static inline bool all_below_vd(vd a, vd b) {
#if defined(__AVX512F__)
    return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_LT_OQ) == 0xff;
#elif defined(__AVX2__)
    return _mm256_movemask_pd(_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_LT_OQ)) == 15;
#else
    for (int i = 0; i < DOUBLES; i++)
        if (!(a[i] < b[i])) return false;
    return true;
#endif
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/* All ones in the first n lanes. */
static inline __m256i first_doubles(int64_t n) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}
#endif

/* Loads or stores n < DOUBLES elements and touches no others; the other lanes are `rest`. */
static inline vd load_some_vd(const double *p, int64_t n, double rest) {
#if defined(__AVX512F__)
    return (vd)_mm512_mask_loadu_pd((__m512d)splat_vd(rest), (__mmask8)((1u << n) - 1), p);
#elif defined(__AVX2__)
    __m256i mask = first_doubles(n);
    return select_vd((vl)mask, (vd)_mm256_maskload_pd(p, mask), splat_vd(rest));
#else
    double a[DOUBLES];
    for (int i = 0; i < DOUBLES; i++) a[i] = i < n ? p[i] : rest;
    return load_vd(a);
#endif
}

static inline void store_some_vd(double *p, int64_t n, vd v) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v);
#elif defined(__AVX2__)
    _mm256_maskstore_pd(p, first_doubles(n), (__m256d)v);
#else
    double a[DOUBLES];
    store_vd(a, v);
    memcpy(p, a, (size_t)n * sizeof *p);
#endif
}

/* The sum and the maximum of all lanes, in a fixed order. */
static inline double sum_lanes_vd(vd v) {
    double sum = v[0];
    for (int i = 1; i < DOUBLES; i++) sum += v[i];
    return sum;
}

static inline double max_lanes_vd(vd v) {
    double most = v[0];
    for (int i = 1; i < DOUBLES; i++) most = v[i] > most ? v[i] : most;
    return most;
}

static inline vd abs_vd(vd x) {
    return (vd)((vl)x & INT64_MAX);
}

/* x >= 0 with the sign of `sign`. */
static inline vd with_sign_vd(vd x, vd sign) {
    return (vd)((vl)x | ((vl)sign & INT64_MIN));
}

static inline vd sqrt_vd(vd x) {
#if defined(__AVX512F__)
    return (vd)_mm512_sqrt_pd((__m512d)x);
#elif defined(__AVX2__)
    return (vd)_mm256_sqrt_pd((__m256d)x);
#else
    vd y;
    for (int i = 0; i < DOUBLES; i++) y[i] = sqrt(x[i]);
    return y;
#endif
}

/* x rounded down, up, and in the current rounding direction. */
#if defined(__AVX512F__)
#define ROUNDED(name, scalar, way)                                              \
    static inline vd name(vd x) {                                               \
        return (vd)_mm512_roundscale_pd((__m512d)x, (way) | _MM_FROUND_NO_EXC); \
    }
#elif defined(__AVX2__)
#define ROUNDED(name, scalar, way)                                         \
    static inline vd name(vd x) {                                          \
        return (vd)_mm256_round_pd((__m256d)x, (way) | _MM_FROUND_NO_EXC); \
    }
#else
#define ROUNDED(name, scalar, way)                             \
    static inline vd name(vd x) {                              \
        vd y;                                                  \
        for (int i = 0; i < DOUBLES; i++) y[i] = scalar(x[i]); \
        return y;                                              \
    }
#endif
ROUNDED(floor_vd, floor, _MM_FROUND_TO_NEG_INF)
ROUNDED(ceil_vd, ceil, _MM_FROUND_TO_POS_INF)
ROUNDED(round_vd, nearbyint, _MM_FROUND_CUR_DIRECTION)
#undef ROUNDED

#endif
