/* sums.inc.c - sums of floats, and of their exponentials, in vectors.
 *
 * DEEP neighbours are added up in floats, as a tree of three levels, and what comes of them in
 * doubles: the error is at most 3 * 2^-24 of the sum of the numbers' sizes, besides the rounding of
 * the result. Where floats do not hold a sum of so many, they are added as doubles one by one. */

enum { DEEP = 8 };

/* Doubles for all lanes of a vector of floats, in two registers. */
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

/* total[j] += sum[j] for n lanes where that is finite, otherwise the DEEP numbers that it is of,
 * one by one: each lane goes its own way, so that it does not matter which numbers stand beside it.
 */
static __attribute__((noinline)) void add_lanes(const float *x, int64_t step, int64_t n,
                                                const float *sum, double *total) {
    for (int64_t j = 0; j < n; j++) {
        double lane = isfinite(sum[j]) ? (double)sum[j] : 0;
        for (int i = 0; i < DEEP && !isfinite(sum[j]); i++) lane += (double)x[i * step + j];
        total[j] += lane;
    }
}

/* `total` plus the sum of DEEP vectors, `step` apart, of n elements each; beyond them are zeros. */
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

/* sums[i] += the column's numbers of `rows` rows, `step` apart. */
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

/* Largest and sum of e^(x - largest) of n numbers; false if one is not finite, or n is 0. */
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

/* Of n (at most LANES) columns' numbers in `rows` rows, `step` apart: max[LANES] is raised to the
 * largest, sum[LANES] gets the sums of e^(x - max), scale[LANES] e^(old max - max), and
 * sizes[LANES] the sums of |x|. Where one of those is not finite, the rest means nothing. */
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
