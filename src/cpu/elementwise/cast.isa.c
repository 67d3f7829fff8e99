/* cast.isa.c - conversions between the common element types, for one tier. All are limited by
 * memory once they fill vectors.
 *
 * cast_from.inc.c instantiates cast_pair.inc.c, a loop without branches that compilers vectorise,
 * for each target type; cast.isa.c instantiates cast_from.inc.c for each source type. Conversions
 * from floats that compilers vectorise badly have intrinsics below (`fast_`). */
#include "cpu/elementwise/cast.h"

#include "base/floats.h"
#include "cpu/core/simd.h"

#define S_FLOAT 1
#define S float
#define SNAME f32
#define S_HIGH(bits) (bits == 31 ? 2147483520.0f : 9223371487098961920.0f)
#include "cpu/elementwise/cast_from.inc.c"
#undef S_HIGH
#define S double
#define SNAME f64
#define S_HIGH(bits) (bits == 31 ? 2147483647.0 : 9223372036854774784.0)
#include "cpu/elementwise/cast_from.inc.c"
#undef S_HIGH
#undef S_FLOAT
#define S int32_t
#define SNAME i32
#include "cpu/elementwise/cast_from.inc.c"
#define S int64_t
#define SNAME i64
#include "cpu/elementwise/cast_from.inc.c"
#define S int8_t
#define SNAME i8
#include "cpu/elementwise/cast_from.inc.c"
#define S uint8_t
#define SNAME u8
#include "cpu/elementwise/cast_from.inc.c"

/* ---- Floats to integers and float16 ---- */

#if defined(__AVX512F__)

enum { QUICK_F32 = 16, QUICK_F64 = 8 }; /* elements at a time */

static inline __m256i quick_clamp_f64(const double *x, double low, double high) {
    __m512d v = _mm512_loadu_pd(x);
    v = _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(v, v, _CMP_ORD_Q), v);
    v = _mm512_min_pd(_mm512_max_pd(v, _mm512_set1_pd(low)), _mm512_set1_pd(high));
    return _mm512_cvttpd_epi32(v);
}

static inline void quick_f32_bytes(const float *x, uint8_t *y, float low, float high) {
    __m512 v = _mm512_loadu_ps(x);
    v = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), v);
    v = _mm512_min_ps(_mm512_max_ps(v, _mm512_set1_ps(low)), _mm512_set1_ps(high));
    _mm_storeu_si128((void *)y, _mm512_cvtepi32_epi8(_mm512_cvttps_epi32(v)));
}

static inline void quick_f64_bytes(const double *x, uint8_t *y, double low, double high) {
    _mm_storel_epi64((void *)y, _mm256_cvtepi32_epi8(quick_clamp_f64(x, low, high)));
}

static inline void quick_f32_i32(const float *x, int32_t *y) {
    __m512 v = _mm512_loadu_ps(x);
    __mmask16 large = _mm512_cmp_ps_mask(v, _mm512_set1_ps(2147483648.0f), _CMP_GE_OQ);
    __m512i r = _mm512_mask_mov_epi32(_mm512_cvttps_epi32(v), large, _mm512_set1_epi32(INT32_MAX));
    _mm512_storeu_si512(y, _mm512_maskz_mov_epi32(_mm512_cmp_ps_mask(v, v, _CMP_ORD_Q), r));
}

static inline void quick_f64_i32(const double *x, int32_t *y) {
    _mm256_storeu_si256((void *)y, quick_clamp_f64(x, -2147483648.0, 2147483647.0));
}

/* By way of float, rounded to odd: then the second rounding gives the same result as a single one.
 */
static inline void quick_f64_f16(const double *x, uint16_t *y) {
    __m512d v = _mm512_loadu_pd(x);
    __m256 f = _mm512_cvt_roundpd_ps(v, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask8 inexact = _mm512_cmp_pd_mask(_mm512_cvtps_pd(f), v, _CMP_NEQ_UQ);
    __m256i bits = _mm256_castps_si256(f);
    bits = _mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1));
    _mm_storeu_si128((void *)y,
                     _mm256_cvtps_ph(_mm256_castsi256_ps(bits), _MM_FROUND_TO_NEAREST_INT));
}

static inline void quick_f16_f32(const uint16_t *x, float *y) {
    _mm512_storeu_ps(y, _mm512_cvtph_ps(_mm256_loadu_si256((const void *)x)));
}

#elif defined(__AVX2__)

enum { QUICK_F32 = 16, QUICK_F64 = 8 };

static inline __m256i quick_clamp_f32(const float *x, float low, float high) {
    __m256 v = _mm256_loadu_ps(x);
    v = _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q));
    v = _mm256_min_ps(_mm256_max_ps(v, _mm256_set1_ps(low)), _mm256_set1_ps(high));
    return _mm256_cvttps_epi32(v);
}

static inline __m128i quick_clamp_f64(const double *x, double low, double high) {
    __m256d v = _mm256_loadu_pd(x);
    v = _mm256_and_pd(v, _mm256_cmp_pd(v, v, _CMP_ORD_Q));
    v = _mm256_min_pd(_mm256_max_pd(v, _mm256_set1_pd(low)), _mm256_set1_pd(high));
    return _mm256_cvttpd_epi32(v);
}

/* The low bytes of 8 words, all of which are in the range of int8 or uint8. */
static inline __m128i quick_low_bytes(__m128i words) {
    return _mm_shuffle_epi8(
        words, _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, -1, -1, -1, -1, -1, -1, -1, -1));
}

static inline void quick_f32_bytes(const float *x, uint8_t *y, float low, float high) {
    __m256i a = quick_clamp_f32(x, low, high), b = quick_clamp_f32(x + 8, low, high);
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8);
    _mm_storel_epi64((void *)y, quick_low_bytes(_mm256_castsi256_si128(words)));
    _mm_storel_epi64((void *)(y + 8), quick_low_bytes(_mm256_extracti128_si256(words, 1)));
}

static inline void quick_f64_bytes(const double *x, uint8_t *y, double low, double high) {
    __m128i words =
        _mm_packs_epi32(quick_clamp_f64(x, low, high), quick_clamp_f64(x + 4, low, high));
    _mm_storel_epi64((void *)y, quick_low_bytes(words));
}

static inline void quick_f32_i32(const float *x, int32_t *y) {
    for (int i = 0; i < QUICK_F32; i += 8) {
        __m256 v = _mm256_loadu_ps(x + i);
        __m256 large = _mm256_cmp_ps(v, _mm256_set1_ps(2147483648.0f), _CMP_GE_OQ);
        __m256i r = _mm256_xor_si256(_mm256_cvttps_epi32(v), _mm256_castps_si256(large));
        r = _mm256_and_si256(r, _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_ORD_Q)));
        _mm256_storeu_si256((void *)(y + i), r);
    }
}

static inline void quick_f64_i32(const double *x, int32_t *y) {
    for (int i = 0; i < QUICK_F64; i += 4)
        _mm_storeu_si128((void *)(y + i), quick_clamp_f64(x + i, -2147483648.0, 2147483647.0));
}

/* All ones in the lanes of 32 bits where those of 64 bits are. */
static inline __m128i quick_narrow_mask(__m256d mask) {
    __m256 m = _mm256_castpd_ps(mask);
    return _mm_castps_si128(
        _mm_shuffle_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1), 0x88));
}

/* By way of float, rounded to odd: then the second rounding gives the same result as a single one.
 * Rounding to odd is done on the bits, which are ordered as magnitudes are. */
static inline void quick_f64_f16(const double *x, uint16_t *y) {
    const __m256d sign = _mm256_set1_pd(-0.0);
    for (int i = 0; i < QUICK_F64; i += 4) {
        __m256d v = _mm256_loadu_pd(x + i);
        __m128 f = _mm256_cvtpd_ps(v);
        __m256d back = _mm256_cvtps_pd(f);
        __m256d above =
            _mm256_cmp_pd(_mm256_andnot_pd(sign, back), _mm256_andnot_pd(sign, v), _CMP_GT_OQ);
        __m128i bits = _mm_add_epi32(_mm_castps_si128(f), quick_narrow_mask(above));
        __m128i inexact = quick_narrow_mask(_mm256_cmp_pd(back, v, _CMP_NEQ_UQ));
        bits = _mm_or_si128(bits, _mm_and_si128(inexact, _mm_set1_epi32(1)));
        _mm_storel_epi64((void *)(y + i),
                         _mm_cvtps_ph(_mm_castsi128_ps(bits), _MM_FROUND_TO_NEAREST_INT));
    }
}

static inline void quick_f16_f32(const uint16_t *x, float *y) {
    for (int i = 0; i < QUICK_F32; i += 8)
        _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(x + i))));
}

#else

enum { QUICK_F32 = 1, QUICK_F64 = 1 };

static inline void quick_f32_bytes(const float *x, uint8_t *y, float low, float high) {
    float v = *x == *x ? *x : 0;
    v = v < low ? low : v > high ? high : v;
    *y = (uint8_t)(int32_t)v;
}

static inline void quick_f64_bytes(const double *x, uint8_t *y, double low, double high) {
    double v = *x == *x ? *x : 0;
    v = v < low ? low : v > high ? high : v;
    *y = (uint8_t)(int32_t)v;
}

static inline void quick_f32_i32(const float *x, int32_t *y) {
    cast_f32_i32(x, y, 1, NULL);
}

static inline void quick_f64_i32(const double *x, int32_t *y) {
    cast_f64_i32(x, y, 1, NULL);
}

static inline void quick_f64_f16(const double *x, uint16_t *y) {
    *y = sni_f64_to_f16(*x);
}

static inline void quick_f16_f32(const uint16_t *x, float *y) {
    *y = sni_f16_to_f32(*x);
}

#endif

/* A sni_unary_fn `name` from S to D: `step` elements at a time by `body`, the rest by `rest`. */
#define QUICK(name, S, D, step, body, rest)                                       \
    static void name(const void *from, void *to, int64_t n, const void *params) { \
        const S *x = from;                                                        \
        D *y = to;                                                                \
        int64_t i = 0;                                                            \
        for (; i + (step) <= n; i += (step)) body;                                \
        if (i < n) rest(x + i, y + i, n - i, params);                             \
    }

static void rest_f64_f16(const double *x, uint16_t *y, int64_t n, const void *params) {
    (void)params;
    for (int64_t i = 0; i < n; i++) y[i] = sni_f64_to_f16(x[i]);
}

static void rest_f16_f32(const uint16_t *x, float *y, int64_t n) {
    for (int64_t i = 0; i < n; i++) y[i] = sni_f16_to_f32(x[i]);
}

QUICK(fast_f32_u8, float, uint8_t, QUICK_F32, quick_f32_bytes(x + i, y + i, 0, 255), cast_f32_u8)
QUICK(fast_f32_i8, float, uint8_t, QUICK_F32, quick_f32_bytes(x + i, y + i, -128, 127), cast_f32_i8)
QUICK(fast_f64_u8, double, uint8_t, QUICK_F64, quick_f64_bytes(x + i, y + i, 0, 255), cast_f64_u8)
QUICK(fast_f64_i8, double, uint8_t, QUICK_F64, quick_f64_bytes(x + i, y + i, -128, 127),
      cast_f64_i8)
QUICK(fast_f32_i32, float, int32_t, QUICK_F32, quick_f32_i32(x + i, y + i), cast_f32_i32)
QUICK(fast_f64_i32, double, int32_t, QUICK_F64, quick_f64_i32(x + i, y + i), cast_f64_i32)
QUICK(fast_f64_f16, double, uint16_t, QUICK_F64, quick_f64_f16(x + i, y + i), rest_f64_f16)
#undef QUICK

/* ---- float16 and integers: by way of another type, in blocks ---- */

enum { CAST_BLOCK = 256 };

/* To float16 by way of double, which represents every integer below the overflow of float16. */
static void to_f16(const void *from, size_t width, void *to, int64_t n, sni_unary_fn widen) {
    double block[CAST_BLOCK];
    for (int64_t i = 0; i < n; i += CAST_BLOCK) {
        int64_t m = n - i < CAST_BLOCK ? n - i : CAST_BLOCK;
        widen((const char *)from + (size_t)i * width, block, m, NULL);
        fast_f64_f16(block, (uint16_t *)to + i, m, NULL);
    }
}

static void from_f16(const void *from, void *to, size_t width, int64_t n, sni_unary_fn narrow) {
    float block[CAST_BLOCK];
    const uint16_t *x = from;
    for (int64_t i = 0; i < n; i += CAST_BLOCK) {
        int64_t m = n - i < CAST_BLOCK ? n - i : CAST_BLOCK, j = 0;
        for (; j + QUICK_F32 <= m; j += QUICK_F32) quick_f16_f32(x + i + j, block + j);
        rest_f16_f32(x + i + j, block + j, m - j);
        narrow(block, (char *)to + (size_t)i * width, m, NULL);
    }
}

#define TO_F16(name, S)                                                                        \
    static void cast_##name##_f16(const void *from, void *to, int64_t n, const void *params) { \
        (void)params;                                                                          \
        to_f16(from, sizeof(S), to, n, cast_##name##_f64);                                     \
    }
TO_F16(i32, int32_t)
TO_F16(i64, int64_t)
TO_F16(i8, int8_t)
TO_F16(u8, uint8_t)
#undef TO_F16

#define FROM_F16(name, D, narrow)                                                            \
    static void cast_f16_##name(const void *from, void *to, int64_t n, const void *params) { \
        (void)params;                                                                        \
        from_f16(from, to, sizeof(D), n, narrow);                                            \
    }
FROM_F16(f64, double, cast_f32_f64)
FROM_F16(i32, int32_t, fast_f32_i32)
FROM_F16(i64, int64_t, cast_f32_i64)
FROM_F16(u8, uint8_t, fast_f32_u8)
FROM_F16(i8, int8_t, fast_f32_i8)
FROM_F16(b8, uint8_t, cast_f32_b8)
#undef FROM_F16

/* ---- The table ---- */

/* Rows of the table: integers as sources, and floats, which have `fast` conversions. */
#define CASTS(from)                                                         \
    {                                                                       \
        [SN_FLOAT32] = cast_##from##_f32, [SN_FLOAT64] = cast_##from##_f64, \
        [SN_FLOAT16] = cast_##from##_f16, [SN_INT32] = cast_##from##_i32,   \
        [SN_INT64] = cast_##from##_i64, [SN_UINT8] = cast_##from##_u8,      \
        [SN_INT8] = cast_##from##_i8, [SN_BOOL] = cast_##from##_b8,         \
    }
#define FLOAT_CASTS(from, ...)                                                  \
    {                                                                           \
        [SN_FLOAT64] = cast_##from##_f64, [SN_INT32] = fast_##from##_i32,       \
        [SN_INT64] = cast_##from##_i64, [SN_UINT8] = fast_##from##_u8,          \
        [SN_INT8] = fast_##from##_i8, [SN_BOOL] = cast_##from##_b8, __VA_ARGS__ \
    }

SNI_DEFINE_TABLE(sni_cast_kernels) = {
    .fns = {[SN_FLOAT32] = FLOAT_CASTS(f32, [SN_FLOAT32] = cast_f32_f32),
            [SN_FLOAT64] =
                FLOAT_CASTS(f64, [SN_FLOAT32] = cast_f64_f32, [SN_FLOAT16] = fast_f64_f16),
            [SN_FLOAT16] = {[SN_FLOAT64] = cast_f16_f64,
                            [SN_INT32] = cast_f16_i32,
                            [SN_INT64] = cast_f16_i64,
                            [SN_UINT8] = cast_f16_u8,
                            [SN_INT8] = cast_f16_i8,
                            [SN_BOOL] = cast_f16_b8},
            [SN_INT32] = CASTS(i32),
            [SN_INT64] = CASTS(i64),
            [SN_UINT8] = CASTS(u8),
            [SN_INT8] = CASTS(i8),
            [SN_BOOL] = CASTS(u8)},
};
