/* reduce.isa.c - reductions of rows and columns, for one tier.
 *
 * ops/math/reduce.inc.c is the template of all reductions of one type; it is instantiated here for
 * float, double, int32_t, int64_t (all reductions) and int8_t, uint8_t (extremes). Floats have
 * their own kernels for sums, extremes and log-sum-exp below.
 *
 * Sums of floats: DEEP vectors are added in float, as a tree of three levels, and their sum is
 * added to doubles. The error is at most 3 * 2^-24 of the sum of magnitudes, besides the final
 * rounding. One conversion to double per DEEP vectors makes a sum run at the speed of loads. Where
 * a float sum overflows, the numbers are added as doubles one by one. */
#include "cpu/reduce/reduce.h"

#include "cpu/core/simd_math.h"
#include "ops/core/typed.h"

/* ---- Sums ---- */

enum { DEEP = 8 };

/* A double for each lane of a vector of floats: two registers. */
typedef double half_vd __attribute__((vector_size(LANES / 2 * sizeof(double))));
typedef double half_vd_anywhere
    __attribute__((vector_size(LANES / 2 * sizeof(double)), aligned(8), may_alias));
typedef struct vd {
    half_vd low, high;
} vd;

static inline __attribute__((always_inline)) vd load_doubles(const double *p) {
    return (vd){*(const half_vd_anywhere *)p, *(const half_vd_anywhere *)(p + LANES / 2)};
}

static inline __attribute__((always_inline)) void store_doubles(double *p, vd v) {
    *(half_vd_anywhere *)p = v.low;
    *(half_vd_anywhere *)(p + LANES / 2) = v.high;
}

static inline __attribute__((always_inline)) void add_floats(vd *to, vf v) {
#if defined(__AVX512F__)
    to->low += (half_vd)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
    to->high += (half_vd)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
#elif defined(__AVX2__)
    to->low += (half_vd)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
    to->high += (half_vd)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
#else
    to->low += (half_vd){(double)v[0], (double)v[1]};
    to->high += (half_vd){(double)v[2], (double)v[3]};
#endif
}

static inline double sum_doubles(const vd *v) {
    half_vd sums = v->low + v->high;
    double sum = 0;
    for (int j = 0; j < LANES / 2; j++) sum += sums[j];
    return sum;
}

/* total[j] += sum[j] for n lanes where that is finite; otherwise the DEEP numbers of the lane, one
 * by one. Each lane decides for itself, so that a column's result does not depend on its
 * neighbours. */
static __attribute__((noinline)) void add_lanes(const float *x, int64_t step, int64_t n,
                                                const float *sum, double *total) {
    for (int64_t j = 0; j < n; j++) {
        double lane = isfinite(sum[j]) ? (double)sum[j] : 0;
        for (int i = 0; i < DEEP && !isfinite(sum[j]); i++) lane += (double)x[i * step + j];
        total[j] += lane;
    }
}

/* `total` plus the sum of DEEP vectors, `step` apart, of n elements each (zeros fill them up). */
static inline __attribute__((always_inline)) vd add_deep(const float *x, int64_t step, int64_t n,
                                                         vd total) {
    vf v[DEEP];
    UNROLL for (int i = 0; i < DEEP; i++) v[i] =
        n == LANES ? load(x + i * step) : load_some(x + i * step, n, 0);
    vf sum = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    if (__builtin_expect(all_below(abs_vf(sum), splat(INFINITY)), 1)) {
        add_floats(&total, sum);
        return total;
    }
    float sums[LANES];
    double totals[LANES];
    store(sums, sum);
    store_doubles(totals, total);
    add_lanes(x, step, n, sums, totals);
    return load_doubles(totals);
}

static double sum_row(const float *x, int64_t n) {
    vd total = {{0}, {0}};
    int64_t i = 0;
    for (; i + DEEP * LANES <= n; i += DEEP * LANES) total = add_deep(x + i, LANES, LANES, total);
    for (; i + LANES <= n; i += LANES) add_floats(&total, load(x + i));
    if (i < n) add_floats(&total, load_some(x + i, n - i, 0));
    return sum_doubles(&total);
}

/* sums[i] += the sum of column i, for n columns of `rows` rows that are `step` apart. */
static void sum_cols(double *sums, const float *x, int64_t n, int64_t rows, int64_t step) {
    int64_t r = 0;
    for (; r + DEEP <= rows; r += DEEP, x += DEEP * step) {
        int64_t i = 0;
        for (; i + LANES <= n; i += LANES)
            store_doubles(sums + i, add_deep(x + i, step, LANES, load_doubles(sums + i)));
        if (i == n) continue;
        double rest[LANES] = {0};
        memcpy(rest, sums + i, (size_t)(n - i) * sizeof *rest);
        store_doubles(rest, add_deep(x + i, step, n - i, load_doubles(rest)));
        memcpy(sums + i, rest, (size_t)(n - i) * sizeof *rest);
    }
    for (; r < rows; r++, x += step)
        for (int64_t i = 0; i < n; i++) sums[i] += (double)x[i];
}

/* ---- Sums of exponentials ---- */

/* *largest = the maximum of n numbers and *result = the sum of e^(x - *largest). False, with
 * nothing written, if a number is not finite or n is 0. */
static bool exp_sum_row(const float *x, int64_t n, double *largest, double *result) {
    vf most = splat(-INFINITY), sizes = splat(0);
    vd total = {{0}, {0}};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        sizes += abs_vf(load(x + i));
        most = max_vf(most, load(x + i));
    }
    if (i < n) {
        sizes += abs_vf(load_some(x + i, n - i, 0));
        most = max_vf(most, load_some(x + i, n - i, -INFINITY));
    }
    if (n == 0 || !all_below(sizes, splat(INFINITY))) return false;
    vf max = splat(max_lanes(most));
    for (i = 0; i + LANES <= n; i += LANES) add_floats(&total, weight_vf(load(x + i) - max));
    if (i < n) add_floats(&total, weight_vf(load_some(x + i, n - i, -INFINITY) - max));
    *largest = (double)max[0];
    *result = sum_doubles(&total);
    return true;
}

/* For n <= LANES columns of `rows` rows that are `step` apart; all arrays have LANES elements. max
 * is raised to the columns' maxima, scale = e^(old max - max), sum = the sums of e^(x - max), and
 * sizes = the sums of |x|. Where sizes[i] is not finite, column i of the others is meaningless. */
static void exp_sum_cols(const float *x, int64_t n, int64_t rows, int64_t step, float *max,
                         float *scale, float *sum, float *sizes) {
    vf old = load(max), most = old, size = splat(0), total = splat(0);
    for (int64_t r = 0; r < rows; r++) {
        vf v = load_some(x + r * step, n, 0);
        size += abs_vf(v);
        most = max_vf(most, v);
    }
    for (int64_t r = 0; r < rows; r++) total += weight_vf(load_some(x + r * step, n, 0) - most);
    store(max, most);
    store(scale, weight_vf(old - most));
    store(sum, total);
    store(sizes, size);
}

/* ---- Extremes ---- */

/* Whether a NaN has been seen: a mask register where there are some, otherwise a vector. */
#if defined(__AVX512F__)
typedef uint32_t nan_notes;
#else
typedef vi nan_notes;
#endif

static inline nan_notes no_nan(void) {
#if defined(__AVX512F__)
    return 0;
#else
    return (vi){0};
#endif
}

static inline nan_notes note_nan(nan_notes notes, vf a, vf b) {
#if defined(__AVX512F__)
    return notes | _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q);
#elif defined(__AVX2__)
    return notes | (vi)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
#else
    return notes | (a != a) | (b != b);
#endif
}

static inline bool any_nan(nan_notes notes) {
#if defined(__AVX512F__)
    return notes != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)notes) != 0;
#else
    int32_t any = 0;
    for (int i = 0; i < LANES; i++) any |= notes[i];
    return any != 0;
#endif
}

static inline __attribute__((always_inline)) vf pick_vf(vf a, vf b, bool least) {
    return least ? min_vf(a, b) : max_vf(a, b);
}

/* *best = the minimum or maximum of n floats. False, with nothing written, if the row is shorter
 * than a vector or has a NaN. Four independent vectors hide the latency of a comparison; the last
 * vector of the row may overlap the one before. */
static inline __attribute__((always_inline)) bool extreme_row(const float *x, int64_t n, bool least,
                                                              float *best) {
    enum { AT_ONCE = 4 };
    if (n < LANES) return false;
    vf last = load(x + n - LANES), picks[AT_ONCE] = {last, last, last, last};
    nan_notes notes = note_nan(no_nan(), last, last);
    int64_t i = 0;
    for (; i + AT_ONCE * LANES <= n; i += AT_ONCE * LANES) {
        vf a = load(x + i), b = load(x + i + LANES);
        vf c = load(x + i + 2 * LANES), d = load(x + i + 3 * LANES);
        notes = note_nan(note_nan(notes, a, b), c, d);
        picks[0] = pick_vf(picks[0], a, least);
        picks[1] = pick_vf(picks[1], b, least);
        picks[2] = pick_vf(picks[2], c, least);
        picks[3] = pick_vf(picks[3], d, least);
    }
    for (; i + LANES <= n; i += LANES) {
        vf a = load(x + i);
        notes = note_nan(notes, a, a);
        picks[0] = pick_vf(picks[0], a, least);
    }
    if (any_nan(notes)) return false;
    vf all = pick_vf(pick_vf(picks[0], picks[1], least), pick_vf(picks[2], picks[3], least), least);
    *best = least ? -max_lanes(-all) : max_lanes(all);
    return true;
}

static bool most_row(const float *x, int64_t n, float *best) {
    return extreme_row(x, n, false, best);
}

static bool least_row(const float *x, int64_t n, float *best) {
    return extreme_row(x, n, true, best);
}

/* ---- Sums of terms, for LpNormalization and MeanVarianceNormalization ---- */

static inline __attribute__((always_inline)) vd widen_floats(vf v) {
    vd wide = {{0}, {0}};
    add_floats(&wide, v);
    return wide;
}

static inline __attribute__((always_inline)) vf narrow_doubles(vd v) {
#if defined(__AVX512F__)
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)v.low)),
                                  _mm512_cvtpd_ps((__m512d)v.high), 1);
#elif defined(__AVX2__)
    return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps((__m256d)v.low)),
                                    _mm256_cvtpd_ps((__m256d)v.high), 1);
#else
    return (vf){(float)v.low[0], (float)v.low[1], (float)v.high[0], (float)v.high[1]};
#endif
}

static inline __attribute__((always_inline)) vd splat_double(double x) {
    half_vd half = (half_vd){0} + x;
    return (vd){half, half};
}

/* `term` is a constant at every call of the functions below. */
static inline __attribute__((always_inline)) vd add_term(sni_term term, vd to, vf v, vd center) {
    vd wide = widen_floats(term == SNI_TERM_SIZE ? abs_vf(v) : v);
    if (term == SNI_TERM_SQUARE) {
        wide.low -= center.low;
        wide.high -= center.high;
        wide.low *= wide.low;
        wide.high *= wide.high;
    }
    return (vd){to.low + wide.low, to.high + wide.high};
}

static inline __attribute__((always_inline)) double term_of(sni_term term, float x, double center) {
    double d = (double)x;
    return term == SNI_TERM_SELF   ? d
           : term == SNI_TERM_SIZE ? fabs(d)
                                   : (d - center) * (d - center);
}

static inline __attribute__((always_inline)) double row_terms_of(sni_term term, const float *x,
                                                                 int64_t n, double center) {
    vd total[2] = {{{0}, {0}}, {{0}, {0}}}, middle = splat_double(center);
    double rest = 0;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        total[0] = add_term(term, total[0], load(x + i), middle);
        total[1] = add_term(term, total[1], load(x + i + LANES), middle);
    }
    for (; i + LANES <= n; i += LANES) total[0] = add_term(term, total[0], load(x + i), middle);
    for (; i < n; i++) rest += term_of(term, x[i], center);
    total[0].low += total[1].low;
    total[0].high += total[1].high;
    return sum_doubles(&total[0]) + rest;
}

static double row_terms(sni_term term, const float *x, int64_t n, double center) {
    if (term == SNI_TERM_SELF) return row_terms_of(SNI_TERM_SELF, x, n, 0);
    if (term == SNI_TERM_SIZE) return row_terms_of(SNI_TERM_SIZE, x, n, 0);
    return row_terms_of(SNI_TERM_SQUARE, x, n, center);
}

static inline __attribute__((always_inline)) void
column_terms_of(sni_term term, const float *x, int64_t n, const double *centers, double *sums) {
    for (int64_t i = 0; i < n; i += LANES) {
        vf v = i + LANES <= n ? load(x + i) : load_some(x + i, n - i, 0);
        store_doubles(sums + i,
                      add_term(term, load_doubles(sums + i), v, load_doubles(centers + i)));
    }
}

static void column_terms(sni_term term, const float *x, int64_t n, const double *centers,
                         double *sums) {
    if (term == SNI_TERM_SELF)
        column_terms_of(SNI_TERM_SELF, x, n, centers, sums);
    else if (term == SNI_TERM_SIZE)
        column_terms_of(SNI_TERM_SIZE, x, n, centers, sums);
    else
        column_terms_of(SNI_TERM_SQUARE, x, n, centers, sums);
}

static inline __attribute__((always_inline)) void measure_of(bool each, const float *x, float *y,
                                                             int64_t n, const double *centers,
                                                             const double *factors) {
    vd center = splat_double(*centers), factor = splat_double(*factors);
    for (int64_t i = 0; i < n; i += LANES) {
        bool whole = i + LANES <= n;
        vd v = widen_floats(whole ? load(x + i) : load_some(x + i, n - i, 0));
        if (each) {
            center = load_doubles(centers + i);
            factor = load_doubles(factors + i);
        }
        vf result = narrow_doubles(
            (vd){(v.low - center.low) * factor.low, (v.high - center.high) * factor.high});
        if (whole)
            store(y + i, result);
        else
            store_some(y + i, n - i, result);
    }
}

static void measure(const float *x, float *y, int64_t n, const double *centers,
                    const double *factors, bool each) {
    if (each)
        measure_of(true, x, y, n, centers, factors);
    else
        measure_of(false, x, y, n, centers, factors);
}

/* ---- Instances of the template ---- */

#define BODY "ops/math/reduce.inc.c"
#define SUMS 1
#define TYPE SNI_TYPE_F32
#include "ops/core/one_type.inc.h"
#undef SUMS
#define TYPE SNI_TYPE_F64
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_I32
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_I64
#include "ops/core/one_type.inc.h"
#define EXTREMES 1
#define TYPE SNI_TYPE_I8
#include "ops/core/one_type.inc.h"
#define TYPE SNI_TYPE_U8
#include "ops/core/one_type.inc.h"
#undef EXTREMES
#undef BODY

SNI_DEFINE_TABLE(sni_reduce_kernels) = {
#define FIELD(op, reducer)                \
    .op = {[SN_FLOAT32] = &reducer##_f32, \
           [SN_FLOAT64] = &reducer##_f64, \
           [SN_INT32] = &reducer##_i32,   \
           [SN_INT64] = &reducer##_i64},
    SNI_REDUCTIONS(FIELD)
#undef FIELD
        .ReduceMax[SN_INT8] = &max_i8,
    .ReduceMax[SN_UINT8] = &max_u8,
    .ReduceMin[SN_INT8] = &min_i8,
    .ReduceMin[SN_UINT8] = &min_u8,
    .row_terms = row_terms,
    .column_terms = column_terms,
    .measure = measure,
};
