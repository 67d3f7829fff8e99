/* unary.isa.c - functions of one number over contiguous rows, for one tier. One vector per step and
 * a masked tail. */
#include "cpu/elementwise/unary.h"

#include "cpu/core/simd.h"

/* ---- Rounding: compilers call floorf and its like once per number ---- */

/* y = way(x); `way` is a constant at every call. */
static inline __attribute__((always_inline)) void rounded_row(const float *x, float *y, int64_t n,
                                                              vf (*way)(vf)) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, way(load(x + i)));
    if (i < n) store_some(y + i, n - i, way(load_some(x + i, n - i, 0)));
}

static void floor_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    rounded_row(x, y, n, floor_vf);
}

static void ceil_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    rounded_row(x, y, n, ceil_vf);
}

static void round_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    rounded_row(x, y, n, round_vf);
}

/* ---- Sine, cosine, arc tangent: within 3 ulp of the larger of the result and 2^-23 ---- */

enum { TURNS_LIMIT = 8192 }; /* larger angles are left to libm */

/* Range reduction (Cody-Waite): x less the nearest multiple n of pi/2; the last bits of *quadrant
 * are n. pi/2 is in three parts; the first two are so short that their products with n < 2^14 are
 * exact. */
static inline vf quarter_turns(vf x, vi *quadrant) {
    const vf magic = splat(12582912.0f);
    vf shifted = x * splat(0.636619772367581343f) + magic, n = shifted - magic;
    *quadrant = (vi)shifted;
    return x - n * splat(1.5703125f) - n * splat(4.837512969970703125e-4f) -
           n * splat(7.54978995489188216e-8f);
}

static inline vf sine_part(vf r) { /* for |r| <= pi / 4; a zero keeps its sign */
    vf z = r * r, p = splat(-1.9515295891e-4f);
    p = p * z + splat(8.3321608736e-3f);
    p = p * z + splat(-1.6666654611e-1f);
    return select_vf(r == splat(0), r, p * z * r + r);
}

static inline vf cosine_part(vf r) {
    vf z = r * r, p = splat(2.443315711809948e-5f);
    p = p * z + splat(-1.388731625493765e-3f);
    p = p * z + splat(4.166664568298827e-2f);
    return p * z * z - z * splat(0.5f) + splat(1.0f);
}

/* sin(x + shift * pi / 2) for |x| <= TURNS_LIMIT. */
static inline vf sincos_vf(vf x, int shift) {
    vi quadrant;
    vf r = quarter_turns(x, &quadrant);
    quadrant += shift;
    vf v = select_vf((quadrant & 1) == 1, cosine_part(r), sine_part(r));
    return (vf)((vi)v ^ (quadrant & 2) << 30);
}

static inline __attribute__((always_inline)) void sincos_row(const float *x, float *y, int64_t n,
                                                             int shift) {
    for (int64_t i = 0; i < n; i += LANES) {
        int64_t count = n - i < LANES ? n - i : LANES;
        vf v = count < LANES ? load_some(x + i, count, 0) : load(x + i);
        /* Lanes with large angles or NaN are computed one by one; the others must not be affected.
         */
        vi near = (vf)((vi)v & 0x7fffffff) <= splat((float)TURNS_LIMIT);
        vf r = sincos_vf(select_vf(near, v, splat(0)), shift);
        int far = 0;
        for (int j = 0; j < LANES; j++) far |= ~near[j];
        for (int j = 0; far && j < LANES; j++)
            if (!near[j]) r[j] = shift ? cosf(v[j]) : sinf(v[j]);
        if (count < LANES)
            store_some(y + i, count, r);
        else
            store(y + i, r);
    }
}

static void sin_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    sincos_row(x, y, n, 0);
}

static void cos_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    sincos_row(x, y, n, 1);
}

/* Arc tangent: reduced to |t| <= tan(pi/8) by atan(x) = base + atan(t), then an odd polynomial. */
static inline vf atan_vf(vf x) {
    vf size = (vf)((vi)x & 0x7fffffff);
    vi large = size > splat(2.414213562373095f), middle = size > splat(0.4142135623730950f);
    vf base = select_vf(large, splat(1.57079632679489662f),
                        select_vf(middle, splat(0.785398163397448310f), splat(0)));
    vf over = select_vf(large, splat(-1.0f), select_vf(middle, size - splat(1.0f), size));
    vf under = select_vf(large, size, select_vf(middle, size + splat(1.0f), splat(1.0f)));
    vf t = over / under, z = t * t, p = splat(8.05374449538e-2f);
    p = p * z + splat(-1.38776856032e-1f);
    p = p * z + splat(1.99777106478e-1f);
    p = p * z + splat(-3.33329491539e-1f);
    vf r = base + (p * z * t + t);
    return (vf)((vi)r | ((vi)x & (int32_t)0x80000000));
}

static void atan_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    const float *from = x;
    float *to = y;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(to + i, atan_vf(load(from + i)));
    if (i < n) store_some(to + i, n - i, atan_vf(load_some(from + i, n - i, 0)));
}

/* ---- Predicates of floats, arithmetic of integers ---- */

static void is_infinite(const void *from, void *to, int64_t n, const void *params) {
    const float *restrict x = from;
    uint8_t *restrict y = to;
    const sni_which_infinity *which = params;
    const float low = which->negative ? -INFINITY : INFINITY;
    const float high = which->positive ? INFINITY : -INFINITY;
    if (!which->negative && !which->positive)
        for (int64_t i = 0; i < n; i++) y[i] = 0;
    else
        for (int64_t i = 0; i < n; i++) y[i] = (uint8_t)((x[i] == low) | (x[i] == high));
}

/* y[i] = f(v), where v is x[i] as an unsigned integer, so that nothing overflows: the absolute
 * value of the lowest integer is itself. */
#define WHOLE(name, type, bits, f)                                                \
    static void name(const void *from, void *to, int64_t n, const void *params) { \
        (void)params;                                                             \
        const type *x = from;                                                     \
        type *y = to;                                                             \
        for (int64_t i = 0; i < n; i++) {                                         \
            bits v = (bits)x[i];                                                  \
            y[i] = (type)(f);                                                     \
        }                                                                         \
    }
WHOLE(Abs_i32, int32_t, uint32_t, x[i] < 0 ? 0 - v : v)
WHOLE(Abs_i64, int64_t, uint64_t, x[i] < 0 ? 0 - v : v)
WHOLE(Neg_i32, int32_t, uint32_t, 0 - v)
WHOLE(Neg_i64, int64_t, uint64_t, 0 - v)
WHOLE(Sign_i32, int32_t, uint32_t, (x[i] > 0) - (int32_t)(v >> 31))
WHOLE(Sign_i64, int64_t, uint64_t, (x[i] > 0) - (int64_t)(v >> 63))
#undef WHOLE

/* u / v truncated; 0 for v = 0. By way of doubles: the quotient of two int32 rounds to a double
 * whose integer part is right. There is no vector instruction that divides integers. */
static inline int32_t quotient_of(int32_t u, int32_t v) {
    if (v == 0) return 0;
    return v == -1 ? (int32_t)(0 - (uint32_t)u) : (int32_t)((double)u / (double)v);
}

/* QUOTIENTS of these at once; an operand of stride 0 is one number. */
#if defined(__AVX512F__)
enum { QUOTIENTS = 8 };
static inline void quotients(const int32_t *u, const int32_t *v, int64_t su, int64_t sv,
                             int32_t *y) {
    const __m256i one = _mm256_set1_epi32(1), none = _mm256_setzero_si256();
    __m256i a = su ? _mm256_loadu_si256((const void *)u) : _mm256_set1_epi32(*u);
    __m256i b = sv ? _mm256_loadu_si256((const void *)v) : _mm256_set1_epi32(*v);
    __mmask8 zero = _mm256_cmpeq_epi32_mask(b, none);
    __mmask8 negate = _mm256_cmpeq_epi32_mask(b, _mm256_set1_epi32(-1));
    __m256i by = _mm256_mask_mov_epi32(b, (__mmask8)(zero | negate), one);
    __m256i q = _mm512_cvttpd_epi32(_mm512_div_pd(_mm512_cvtepi32_pd(a), _mm512_cvtepi32_pd(by)));
    q = _mm256_mask_sub_epi32(q, negate, none, a);
    _mm256_storeu_si256((void *)y, _mm256_mask_mov_epi32(q, zero, none));
}
#elif defined(__AVX2__)
enum { QUOTIENTS = 4 };
static inline void quotients(const int32_t *u, const int32_t *v, int64_t su, int64_t sv,
                             int32_t *y) {
    const __m128i one = _mm_set1_epi32(1), none = _mm_setzero_si128();
    __m128i a = su ? _mm_loadu_si128((const void *)u) : _mm_set1_epi32(*u);
    __m128i b = sv ? _mm_loadu_si128((const void *)v) : _mm_set1_epi32(*v);
    __m128i zero = _mm_cmpeq_epi32(b, none), negate = _mm_cmpeq_epi32(b, _mm_set1_epi32(-1));
    __m128i by = _mm_blendv_epi8(b, one, _mm_or_si128(zero, negate));
    __m128i q = _mm256_cvttpd_epi32(_mm256_div_pd(_mm256_cvtepi32_pd(a), _mm256_cvtepi32_pd(by)));
    q = _mm_blendv_epi8(q, _mm_sub_epi32(none, a), negate);
    _mm_storeu_si128((void *)y, _mm_andnot_si128(zero, q));
}
#else
enum { QUOTIENTS = 1 };
static inline void quotients(const int32_t *u, const int32_t *v, int64_t su, int64_t sv,
                             int32_t *y) {
    (void)su;
    (void)sv;
    *y = quotient_of(*u, *v);
}
#endif

static void quotient_i32(const void *a, const void *b, void *to, int64_t n, int64_t sa, int64_t sb,
                         const void *params) {
    (void)params;
    const int32_t *u = a, *v = b;
    int32_t *y = to;
    int64_t i = 0;
    for (; i + QUOTIENTS <= n; i += QUOTIENTS) quotients(u + i * sa, v + i * sb, sa, sb, y + i);
    for (; i < n; i++) y[i] = quotient_of(u[i * sa], v[i * sb]);
}

SNI_DEFINE_TABLE(sni_unary_kernels) = {
#define FIELD(op, row) .op = row,
    SNI_UNARY_FLOATS(FIELD)
#undef FIELD
        .is_infinite = is_infinite,
#define FIELD(op) .op##_i32 = op##_i32, .op##_i64 = op##_i64,
    SNI_UNARY_INTS(FIELD)
#undef FIELD
        .quotient_i32 = quotient_i32,
};
