/* loops.isa.c - loops that have no module of their own, for one tier: weighted sums of rows
 * (RoiAlign, one-dimensional convolutions), the affine map of a channel, and matrix products of
 * other types than float32. */
#include "cpu/core/loops.h"

#include "cpu/core/simd.h"
#include "cpu/reduce/places.h"
#include "ops/core/typed.h"
#include "ops/matmul/matmul_panel.h"

/* ---- Maxima over places: max pooling of RoiAlign ---- */

/* The maximum of `most` and of samples, each of which is the maximum of four weighted places. A NaN
 * is never a maximum, and a sample whose first place is NaN is ignored. */
static inline __attribute__((always_inline)) vf
most_of(const float *w, const int64_t *at, int64_t count, const float *x, vf most, int64_t n) {
    for (int64_t j = 0; j < count; j += 4) {
        vf sample = splat(0);
        UNROLL for (int i = 0; i < 4; i++) {
            const float *from = x + at[j + i];
            vf v = splat(w[j + i]) * (n < LANES ? load_some(from, n, 0) : load(from));
            sample = i ? max_vf(sample, v) : v;
        }
        most = max_vf(most, sample);
    }
    return most;
}

static void most_places(const float *w, const int64_t *at, int64_t count, const float *x, int64_t n,
                        float *y, bool add) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, most_of(w, at, count, x + i, add ? load(y + i) : splat(-INFINITY), LANES));
    if (i < n) {
        vf most = add ? load_some(y + i, n - i, 0) : splat(-INFINITY);
        store_some(y + i, n - i, most_of(w, at, count, x + i, most, n - i));
    }
}

/* ---- Sums over taps for a few rows of results at once (sni_line) ----
 *
 * A tile of rows x vectors fills the registers: 8 x 3 to 1 x 8 with AVX-512, 4 x 2 to 1 x 6 with
 * AVX2. Each loaded vector of the input serves all rows, so that multiply-adds are the limit. */

#if LANES == 16
enum { LINE_ROWS = 8 };
#else
enum { LINE_ROWS = 4 };
#endif

/* A tile of `rows` rows of results by `vectors` vectors, all in registers over the taps. Both are
 * constants at every call; the last vector has n elements. */
static inline __attribute__((always_inline)) void line_tile(const sni_line *l, int rows,
                                                            int vectors, int64_t first, int64_t n) {
    vf sum[LINE_ROWS][8];
    const bool whole = n == LANES;
    const float *w = l->w, *x = l->x + first;
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = splat(l->bias ? l->bias[r] : 0);
    }
    for (int64_t j = 0; j < l->count; j++, w += rows) {
        const float *from = x + l->at[j];
        vf in[8];
        UNROLL for (int v = 0; v < vectors; v++) in[v] =
            whole ? load(from + v * LANES) : load_some(from, n, 0);
        UNROLL for (int r = 0; r < rows; r++) {
            vf weight = splat(w[r]);
            UNROLL for (int v = 0; v < vectors; v++) sum[r][v] += weight * in[v];
        }
    }
    UNROLL for (int r = 0; r < rows; r++) {
        float *y = l->y + r * l->y_row + first;
        UNROLL for (int v = 0; v < vectors; v++) {
            if (whole)
                store(y + v * LANES, sum[r][v]);
            else
                store_some(y, n, sum[r][v]);
        }
    }
}

static inline __attribute__((always_inline)) void line_rows(const sni_line *l, int rows,
                                                            int vectors) {
    int64_t i = 0, step = (int64_t)vectors * LANES;
    for (; i + step <= l->n; i += step) line_tile(l, rows, vectors, i, LANES);
    for (; i + LANES <= l->n; i += LANES) line_tile(l, rows, 1, i, LANES);
    if (i < l->n) line_tile(l, rows, 1, i, l->n - i);
}

static void line(const sni_line *l) {
    switch (l->rows) {
    case 1:
        line_rows(l, 1, LANES == 16 ? 8 : 6);
        break;
    case 2:
        line_rows(l, 2, LANES == 16 ? 6 : 4);
        break;
    case 4:
        line_rows(l, 4, LANES == 16 ? 4 : 2);
        break;
#if LANES == 16
    default:
        line_rows(l, 8, 3);
#else
    default:
        break;
#endif
    }
}

/* ---- Matrix products of float64 and of integers: ops/matmul/matmul_types.inc.c, compiled for this
 * tier with larger tiles ---- */

#if LANES == 16
enum { MR = 6, TILE_VECTORS = 4 };
#else
enum { MR = 6, TILE_VECTORS = 2 };
#endif
enum { TILE_BYTES = LANES * 4 };

#include "ops/matmul/matmul_types.inc.c"

/* ---- Normalised channels ---- */

static void center_row(const float *x, float *y, int64_t n, float center, float factor,
                       float shift) {
    vf c = splat(center), f = splat(factor), s = splat(shift);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, (load(x + i) - c) * f + s);
    if (i < n) store_some(y + i, n - i, (load_some(x + i, n - i, 0) - c) * f + s);
}

SNI_DEFINE_TABLE(sni_loops) = {
    .gemm = {[SN_FLOAT64] = &gemm_core_f64,
             [SN_INT32] = &gemm_core_u32,
             [SN_UINT32] = &gemm_core_u32,
             [SN_INT64] = &gemm_core_u64,
             [SN_UINT64] = &gemm_core_u64},
    .weigh_places = weigh_places,
    .most_places = most_places,
    .line = line,
    .line_rows = LINE_ROWS,
    .center_row = center_row,
};
