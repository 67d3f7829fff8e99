/* softmax_row.h - the two passes of a softmax over a row of floats, for tier sources: softmax and
 * attention share them. Sums run in two vectors whose lanes are added in a fixed order, so that the
 * result depends on the row alone. */
#ifndef SNI_CPU_REDUCE_SOFTMAX_ROW_H
#define SNI_CPU_REDUCE_SOFTMAX_ROW_H

#include "cpu/core/simd_math.h"

/* The maximum of n elements; minus infinity if there are none. Two vectors are compared at once: a
 * comparison takes longer than a load. */
static inline float max_row(const float *x, int64_t n) {
    vf most = splat(-INFINITY), more = most;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        most = max_vf(most, load(x + i));
        more = max_vf(more, load(x + i + LANES));
    }
    for (; i < n; i += LANES)
        most = max_vf(most, n - i < LANES ? load_some(x + i, n - i, -INFINITY) : load(x + i));
    return max_lanes(max_vf(most, more));
}

/* y[i] = e^(x[i] - most) for n elements x <= most; subnormal results become 0. Returns the sum of
 * y. y may be x. */
static inline float exp_row(const float *x, float *y, int64_t n, float most) {
    vf sum = splat(0), more = sum, m = splat(most);
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        vf a = weight_vf(load(x + i) - m), b = weight_vf(load(x + i + LANES) - m);
        store(y + i, a);
        store(y + i + LANES, b);
        sum += a;
        more += b;
    }
    for (; i + LANES <= n; i += LANES) {
        vf a = weight_vf(load(x + i) - m);
        store(y + i, a);
        sum += a;
    }
    if (i < n) {
        vf a = weight_vf(load_some(x + i, n - i, -INFINITY) - m);
        store_some(y + i, n - i, a);
        sum += a;
    }
    return sum_lanes(sum + more);
}

#endif
