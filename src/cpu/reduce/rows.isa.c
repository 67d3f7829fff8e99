/* rows.isa.c - softmax and normalisation of rows of float32, for one tier.
 *
 * Rows are contiguous and are read two vectors at a time, so that additions overlap. Every pass
 * over a row that fits the first-level cache costs one load per vector; what limits softmax is e^x
 * (about 15 instructions per vector), what limits normalisation is memory. Lanes are added in a
 * fixed order: a row's result depends neither on its neighbours nor on the number of threads. */
#include "cpu/core/kernels.h"
#include "cpu/reduce/rows.h"
#include "cpu/reduce/softmax_row.h"

static void scale_row(float *y, int64_t n, float factor, float shift) {
    vf f = splat(factor), s = splat(shift);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, load(y + i) * f + s);
    if (i < n) store_some(y + i, n - i, load_some(y + i, n - i, 0) * f + s);
}

static void softmax_row(const float *x, float *y, int64_t n) {
    float sum = exp_row(x, y, n, max_row(x, n));
    scale_row(y, n, 1 / sum, 0);
}

/* `y` holds the exponentials while their sum is taken. */
static void log_softmax_row(const float *x, float *y, int64_t n) {
    float most = max_row(x, n), log_sum = logf(exp_row(x, y, n, most));
    vf m = splat(most), l = splat(log_sum);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, load(x + i) - m - l);
    if (i < n) store_some(y + i, n - i, load_some(x + i, n - i, 0) - m - l);
}

/* Softmax of `count` columns (one per lane) of n rows that are `step` apart. `whole` says that
 * count is LANES and is a constant at every call. */
static inline __attribute__((always_inline)) void columns(const float *x, float *y, int64_t n,
                                                          int64_t step, int64_t count,
                                                          bool logarithm, bool whole) {
    vf most = whole ? load(x) : load_some(x, count, 0), sum = splat(0);
    for (int64_t i = 1; i < n; i++) {
        const float *at = x + i * step;
        vf v = whole ? load(at) : load_some(at, count, 0);
        most = select_vf(v > most, v, most);
    }
    for (int64_t i = 0; i < n; i++) {
        const float *at = x + i * step;
        vf v = weight_vf((whole ? load(at) : load_some(at, count, 0)) - most);
        sum += v;
        if (logarithm) continue;
        if (whole)
            store(y + i * step, v);
        else
            store_some(y + i * step, count, v);
    }
    vf inverse = splat(1) / sum, log_sum = log_vf(sum);
    for (int64_t i = 0; i < n; i++) {
        const float *at = (logarithm ? x : y) + i * step;
        vf v = whole ? load(at) : load_some(at, count, 0);
        v = logarithm ? v - most - log_sum : v * inverse;
        if (whole)
            store(y + i * step, v);
        else
            store_some(y + i * step, count, v);
    }
}

static void softmax_columns(const float *x, float *y, int64_t n, int64_t step, int64_t count,
                            bool logarithm) {
    if (count == LANES)
        columns(x, y, n, step, count, logarithm, true);
    else
        columns(x, y, n, step, count, logarithm, false);
}

/* ---- Normalisation ---- */

enum {
    CHUNK = 4096
}; /* elements that are summed in float; the sums of chunks are added in double */

/* The sum of n elements. */
static double sum_row(const float *x, int64_t n) {
    double total = 0;
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t end = at + CHUNK < n ? at + CHUNK : n, i = at;
        vf a = splat(0), b = a;
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            a += load(x + i);
            b += load(x + i + LANES);
        }
        for (; i + LANES <= end; i += LANES) a += load(x + i);
        if (i < end) b += load_some(x + i, end - i, 0);
        total += (double)sum_lanes(a + b);
    }
    return total;
}

/* The sum of (x - mean)^2 over n elements. */
static double square_row(const float *x, int64_t n, float mean) {
    double total = 0;
    vf m = splat(mean);
    for (int64_t at = 0; at < n; at += CHUNK) {
        int64_t end = at + CHUNK < n ? at + CHUNK : n, i = at;
        vf a = splat(0), b = a;
        for (; i + 2 * LANES <= end; i += 2 * LANES) {
            vf u = load(x + i) - m, v = load(x + i + LANES) - m;
            a += u * u;
            b += v * v;
        }
        for (; i + LANES <= end; i += LANES) {
            vf u = load(x + i) - m;
            a += u * u;
        }
        if (i < end) {
            vf u = load_some(x + i, end - i, mean) - m;
            b += u * u;
        }
        total += (double)sum_lanes(a + b);
    }
    return total;
}

static void moments(const float *x, int64_t n, bool centered, float epsilon, float *mean,
                    float *inverse) {
    float middle = centered ? (float)(sum_row(x, n) / (double)n) : 0;
    double variance = square_row(x, n, middle) / (double)n;
    *mean = middle;
    *inverse = (float)(1 / sqrt(variance + (double)epsilon));
}

static void normalize_row(const float *x, float *y, int64_t n, float mean, float inverse,
                          const float *scale, const float *shift) {
    vf m = splat(mean), f = splat(inverse);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf v = (load(x + i) - m) * f * load(scale + i);
        store(y + i, shift ? v + load(shift + i) : v);
    }
    if (i < n) {
        vf v = (load_some(x + i, n - i, 0) - m) * f * load_some(scale + i, n - i, 0);
        store_some(y + i, n - i, shift ? v + load_some(shift + i, n - i, 0) : v);
    }
}

SNI_DEFINE_TABLE(sni_row_kernels) = {
    .softmax_row = softmax_row,
    .log_softmax_row = log_softmax_row,
    .lanes = LANES,
    .softmax_columns = softmax_columns,
    .moments = moments,
    .normalize_row = normalize_row,
    .scale_row = scale_row,
};
