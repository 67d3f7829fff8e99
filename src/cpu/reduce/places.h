/* places.h - weighted sums of rows that begin at any places, for tier sources: RoiAlign
 * (loops.isa.c) and Resize (moves.isa.c). */
#ifndef SNI_CPU_REDUCE_PLACES_H
#define SNI_CPU_REDUCE_PLACES_H

#include "cpu/core/simd.h"

enum { STRIP = 4 }; /* vectors whose sums are kept in registers */

/* One strip of `vectors` vectors, a constant at every call. */
static inline __attribute__((always_inline)) void weigh_strip(const float *w, const int64_t *at,
                                                              int64_t count, const float *x,
                                                              float *y, bool add, int vectors) {
    vf sum[STRIP];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = add ? load(y + v * LANES) : splat(0);
    for (int64_t j = 0; j < count; j++) {
        const float *from = x + at[j];
        vf weight = splat(w[j]);
        UNROLL for (int v = 0; v < vectors; v++) sum[v] += weight * load(from + v * LANES);
    }
    UNROLL for (int v = 0; v < vectors; v++) store(y + v * LANES, sum[v]);
}

/* y[i] = sum over j of w[j] x[at[j] + i] for i < n, added to y where `add`. A strip of STRIP
 * vectors stays in registers over all places: one load and one multiply-add per place and vector.
 */
static inline void weigh_places(const float *w, const int64_t *at, int64_t count, const float *x,
                                int64_t n, float *y, bool add) {
    int64_t i = 0;
    for (; i + STRIP * LANES <= n; i += STRIP * LANES)
        weigh_strip(w, at, count, x + i, y + i, add, STRIP);
    for (; i + LANES <= n; i += LANES) weigh_strip(w, at, count, x + i, y + i, add, 1);
    if (i == n) return;
    vf sum = add ? load_some(y + i, n - i, 0) : splat(0);
    for (int64_t j = 0; j < count; j++) sum += splat(w[j]) * load_some(x + i + at[j], n - i, 0);
    store_some(y + i, n - i, sum);
}

#endif
