/* moves.isa.c - loops that move elements: selection, transposition, resampling, rotation; for one
 * tier. All are limited by loads, stores and shuffles. */
#include "cpu/move/moves.h"

#include "cpu/core/simd.h"
#include "cpu/reduce/places.h"

/* ---- Resize and GridSample: elements at given places ----
 *
 * Places that rise and are close together, as when an image grows or shrinks by less than half, are
 * loaded as one or two whole vectors and permuted, which is faster than a gather. */

#if defined(__AVX2__)
/* The start of `count` consecutive elements of a row of `in` that contain all LANES places of `at`,
 * which rise; negative if there are none. Near the end of the row they start before at[0], so that
 * nothing is read beyond it. */
static inline int64_t lowest(const int32_t *at, int64_t in, int64_t count) {
    int64_t first = at[0], last = at[LANES - 1], low = first < in - count ? first : in - count;
    return last >= first && last - low < count ? low : -1;
}
#endif

/* LANES elements of x at places that rise. */
#if defined(__AVX512F__)
static inline vf pick(const float *x, int64_t in, const int32_t *at) {
    __m512i index = _mm512_loadu_si512(at);
    int64_t low = lowest(at, in, LANES);
    if (low >= 0)
        return (vf)_mm512_permutexvar_ps(_mm512_sub_epi32(index, _mm512_set1_epi32((int)low)),
                                         _mm512_loadu_ps(x + low));
    low = lowest(at, in, 2 * LANES);
    if (low >= 0)
        return (vf)_mm512_permutex2var_ps(_mm512_loadu_ps(x + low),
                                          _mm512_sub_epi32(index, _mm512_set1_epi32((int)low)),
                                          _mm512_loadu_ps(x + low + LANES));
    return (vf)_mm512_i32gather_ps(index, x, 4);
}
#elif defined(__AVX2__)
static inline vf pick(const float *x, int64_t in, const int32_t *at) {
    __m256i index = _mm256_loadu_si256((const void *)at);
    int64_t low = lowest(at, in, LANES);
    if (low >= 0)
        return (vf)_mm256_permutevar8x32_ps(_mm256_loadu_ps(x + low),
                                            _mm256_sub_epi32(index, _mm256_set1_epi32((int)low)));
    low = lowest(at, in, 2 * LANES);
    if (low >= 0) {
        __m256i near = _mm256_sub_epi32(index, _mm256_set1_epi32((int)low));
        __m256 a = _mm256_permutevar8x32_ps(_mm256_loadu_ps(x + low), near);
        __m256 b = _mm256_permutevar8x32_ps(_mm256_loadu_ps(x + low + LANES), near);
        __m256i far = _mm256_cmpgt_epi32(near, _mm256_set1_epi32(LANES - 1));
        return (vf)_mm256_blendv_ps(a, b, _mm256_castsi256_ps(far));
    }
    return (vf)_mm256_i32gather_ps(x, index, 4);
}
#else
static inline vf pick(const float *x, int64_t in, const int32_t *at) {
    vf v;
    (void)in;
    for (int i = 0; i < LANES; i++) v[i] = x[at[i]];
    return v;
}
#endif

/* LANES elements at places in any order. */
static inline vf pick_any(const float *x, const int32_t *at) {
#if defined(__AVX512F__)
    return (vf)_mm512_i32gather_ps(_mm512_loadu_si512(at), x, 4);
#elif defined(__AVX2__)
    return (vf)_mm256_i32gather_ps(x, _mm256_loadu_si256((const void *)at), 4);
#else
    return pick(x, 0, at);
#endif
}

static void pick_row(const float *x, int64_t in, const int32_t *at, int64_t n, float *y) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, pick(x, in, at + i));
    if (i < n) store_some(y + i, n - i, pick(x, in, at + i));
}

static inline vf weighted(const float *w, vf v) {
    vf weight = load(w);
    return select_vf(weight != 0, weight * v, splat(0)); /* a weight of 0 hides infinities */
}

/* y[i] = sum over t < taps of w[t * step + i] x[at[t * step + i]]. `anywhere` says that places do
 * not rise; it is a constant at every call, and so is `taps` at some. */
static inline __attribute__((always_inline)) void spread_taps(bool anywhere, const float *x,
                                                              int64_t in, const int32_t *at,
                                                              const float *w, int64_t taps,
                                                              int64_t step, int64_t n, float *y) {
    for (int64_t i = 0; i < n; i += LANES) {
        vf sum = splat(0);
        for (int64_t t = 0; t < taps; t++) {
            const int32_t *places = at + t * step + i;
            vf v = anywhere ? pick_any(x, places) : pick(x, in, places);
            sum += weighted(w + t * step + i, v);
        }
        if (i + LANES <= n)
            store(y + i, sum);
        else
            store_some(y + i, n - i, sum);
    }
}

static void spread_row(const float *x, int64_t in, const int32_t *at, const float *w, int64_t taps,
                       int64_t step, int64_t n, float *y) {
    if (taps == 2)
        spread_taps(false, x, in, at, w, 2, step, n, y);
    else
        spread_taps(false, x, in, at, w, taps, step, n, y);
}

static void sample_row(const float *x, int64_t in, const int32_t *at, const float *w, int64_t taps,
                       int64_t step, int64_t n, float *y) {
    if (taps == 4)
        spread_taps(true, x, in, at, w, 4, step, n, y);
    else
        spread_taps(true, x, in, at, w, taps, step, n, y);
}

#if LANES == 16
#define HALF(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#elif LANES == 8
#define HALF(f) f(0), f(1), f(2), f(3)
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#else
#define HALF(f) f(0), f(1)
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#endif

static inline double pair_at(const float *x) {
    double pair;
    memcpy(&pair, x, sizeof pair);
    return pair;
}

/* The elements at LANES places, and those behind them, as pairs of 64 bits. The vectors of pairs
 * are written as lists: compilers assemble vectors that are filled in a loop in memory. */
static inline void pick_pairs(const float *x, const int32_t *at, vf *first, vf *second) {
    typedef double pairs __attribute__((vector_size(sizeof(vf))));
#define LOW(i) pair_at(x + at[i])
#define HIGH(i) pair_at(x + at[LANES / 2 + (i)])
    const pairs low = {HALF(LOW)}, high = {HALF(HIGH)};
#undef LOW
#undef HIGH
    *first = __builtin_shufflevector((vf)low, (vf)high, EVEN);
    *second = __builtin_shufflevector((vf)low, (vf)high, ODD);
}

static void sample_pairs(const float *x, const int32_t *at, const float *w, int64_t step, int64_t n,
                         float *y) {
    for (int64_t i = 0; i < n; i += LANES) {
        vf sum = splat(0), first, second;
        UNROLL
        for (int r = 0; r < 2; r++) {
            pick_pairs(x, at + r * step + i, &first, &second);
            sum += weighted(w + 2 * r * step + i, first);
            sum += weighted(w + (2 * r + 1) * step + i, second);
        }
        if (i + LANES <= n)
            store(y + i, sum);
        else
            store_some(y + i, n - i, sum);
    }
}

/* ---- Rotary embedding: pairs of a head's elements rotated by their angles; y may be x ---- */

/* Elements i and half + i are a pair (GPT-NeoX style). */
static void rotate_halves(const void *from, const void *cos_of, const void *sin_of, int64_t half,
                          void *to) {
    const float *x = from, *cosines = cos_of, *sines = sin_of;
    float *y = to;
    int64_t i = 0;
    for (; i + LANES <= half; i += LANES) {
        vf u = load(x + i), v = load(x + half + i), c = load(cosines + i), s = load(sines + i);
        store(y + i, u * c - v * s);
        store(y + half + i, u * s + v * c);
    }
    for (; i < half; i++) {
        float u = x[i], v = x[half + i];
        y[i] = u * cosines[i] - v * sines[i];
        y[half + i] = u * sines[i] + v * cosines[i];
    }
}

/* Elements 2 i and 2 i + 1 are a pair (GPT-J style). */
static void rotate_neighbours(const void *from, const void *cos_of, const void *sin_of,
                              int64_t half, void *to) {
    const float *x = from, *cosines = cos_of, *sines = sin_of;
    float *y = to;
    SAFE_LOOP for (int64_t i = 0; i < half; i++) {
        float u = x[2 * i], v = x[2 * i + 1];
        y[2 * i] = u * cosines[i] - v * sines[i];
        y[2 * i + 1] = u * sines[i] + v * cosines[i];
    }
}

/* ---- Selection and transposition by element width: four instances of two templates ----
 *
 * ZIP_LOW_n and ZIP_HIGH_n: the indices that interleave the first, and the second, halves of two
 * vectors of n elements. */
#define ZIP_LOW_2 0, 2
#define ZIP_HIGH_2 1, 3
#define ZIP_LOW_4 0, 4, 1, 5
#define ZIP_HIGH_4 2, 6, 3, 7
#define ZIP_LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define ZIP_LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

typedef uint8_t bytes_16 __attribute__((vector_size(16)));
typedef uint16_t words_8 __attribute__((vector_size(16)));
typedef uint32_t vector_32 __attribute__((vector_size(4 * LANES)));
typedef uint64_t vector_64 __attribute__((vector_size(4 * LANES)));

#define T uint8_t
#define SUFFIX u8
#define V bytes_16
#define SIDE 16
#define ZIP_LOW ZIP_LOW_16
#define ZIP_HIGH ZIP_HIGH_16
#include "cpu/elementwise/choose.inc.c"
#include "cpu/move/transpose_block.inc.c"

#define T uint16_t
#define SUFFIX u16
#define V words_8
#define SIDE 8
#define ZIP_LOW ZIP_LOW_8
#define ZIP_HIGH ZIP_HIGH_8
#include "cpu/elementwise/choose.inc.c"
#include "cpu/move/transpose_block.inc.c"

#if LANES == 16
#define ZIP_LOW ZIP_LOW_16
#define ZIP_HIGH ZIP_HIGH_16
#elif LANES == 8
#define ZIP_LOW ZIP_LOW_8
#define ZIP_HIGH ZIP_HIGH_8
#else
#define ZIP_LOW ZIP_LOW_4
#define ZIP_HIGH ZIP_HIGH_4
#endif
#define T uint32_t
#define SUFFIX u32
#define V vector_32
#define SIDE LANES
#include "cpu/elementwise/choose.inc.c"
#include "cpu/move/transpose_block.inc.c"

#if LANES == 16
#define ZIP_LOW ZIP_LOW_8
#define ZIP_HIGH ZIP_HIGH_8
#elif LANES == 8
#define ZIP_LOW ZIP_LOW_4
#define ZIP_HIGH ZIP_HIGH_4
#else
#define ZIP_LOW ZIP_LOW_2
#define ZIP_HIGH ZIP_HIGH_2
#endif
#define T uint64_t
#define SUFFIX u64
#define V vector_64
#define SIDE (LANES / 2)
#include "cpu/elementwise/choose.inc.c"
#include "cpu/move/transpose_block.inc.c"

SNI_DEFINE_TABLE(sni_moves) = {
    .choose = {choose_u8, choose_u16, choose_u32, choose_u64},
    .transpose = {transpose_u8, transpose_u16, transpose_u32, transpose_u64},
    .rotary = {.halves = rotate_halves, .neighbours = rotate_neighbours},
    .resize = {.lanes = LANES,
               .pick = pick_row,
               .spread = spread_row,
               .sample = sample_row,
               .sample_pairs = sample_pairs,
               .weigh = weigh_places},
};
