/* pool.isa.c - pools of float32, for one tier.
 *
 * An output row is made in two passes. First all input rows under it are joined (maximum or sum) to
 * one line, which is surrounded by neutral elements in place of padding. Then neighbours along the
 * line are joined. Both passes work on whole vectors, and a window of h x w costs h + w loads per
 * output instead of h * w. Windows too large for the line go to the loops of the reference kernel
 * (ops/nn/max_pool.inc.c and average_pool.inc.c), compiled here for float. */
#include "cpu/reduce/pool.h"

#include "cpu/core/simd.h"
#include "ops/core/typed.h"

#define LOWEST (-INFINITY)
#define IS_NAN(v) isnan(v)
#define BODY "ops/nn/max_pool.inc.c"
#define TYPE SNI_TYPE_F32
#include "ops/core/one_type.inc.h"
#undef BODY
#undef LOWEST
#undef IS_NAN
#define BODY "ops/nn/average_pool.inc.c"
#define TYPE SNI_TYPE_F32
#include "ops/core/one_type.inc.h"
#undef BODY

enum {
    POOL_ROWS = 64,              /* most input rows under a window */
    POOL_LINE = 4096,            /* most elements of the joined row */
    POOL_SIZE = POOL_LINE + 512, /* room for three more vectors; and the two lines differ in the low
                                    12 bits of their addresses, which avoids 4K aliasing between
                                    loads and stores */
};

/* Even elements of the 2 * LANES - 1 from p on. */
static inline vf load_even(const float *p) {
    vf a = load(p), b = load(p + LANES - 1);
#if LANES == 16
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
#elif LANES == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
#else
    return __builtin_shufflevector(a, b, 0, 2, 5, 7);
#endif
}

/* `max` is a constant at every call of the functions below. NaN never becomes a maximum. */
static inline __attribute__((always_inline)) vf pool_join(bool max, vf a, vf v) {
    return max ? max_vf(a, v) : a + v;
}

/* Joins `n_rows` rows of n elements to `line`; up to a vector of neutral elements is stored behind.
 */
static inline __attribute__((always_inline)) void pool_rows(bool max, const float *const *rows,
                                                            int n_rows, int64_t n, float *line) {
    const float rest = max ? -INFINITY : 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf a = splat(rest);
        UNROLL_SOME
        for (int r = 0; r < n_rows; r++) a = pool_join(max, a, load(rows[r] + i));
        store(line + i, a);
    }
    if (i == n) return;
    vf a = splat(rest);
    for (int r = 0; r < n_rows; r++) a = pool_join(max, a, load_some(rows[r] + i, n - i, rest));
    store(line + i, a);
}

static inline __attribute__((always_inline)) void pool_down(bool max, const float *const *rows,
                                                            int n_rows, int64_t n, float *line) {
    switch (n_rows) { /* a constant count unrolls the loop over rows */
    case 1:
        pool_rows(max, rows, 1, n, line);
        break;
    case 2:
        pool_rows(max, rows, 2, n, line);
        break;
    case 3:
        pool_rows(max, rows, 3, n, line);
        break;
    case 4:
        pool_rows(max, rows, 4, n, line);
        break;
    case 5:
        pool_rows(max, rows, 5, n, line);
        break;
    default:
        pool_rows(max, rows, n_rows, n, line);
    }
}

/* sum / (outer * taps[o]) for n sums: each is over so many elements. */
static inline vf pool_mean(vf sum, float outer, const float *taps, int64_t n) {
    return sum / (splat(outer) * (n < LANES ? load_some(taps, n, 1) : load(taps)));
}

/* Joins `taps` neighbours of the line for each output, with stride 1 or 2 (both constants at most
 * calls): every load is a whole vector. */
static inline __attribute__((always_inline)) void pool_taps(bool max, const sni_window *w,
                                                            int64_t taps, int64_t stride,
                                                            const float *line, float outer,
                                                            const float *counts, float *y) {
    const int64_t n = w->out[w->rank - 1], step = w->dilation[w->rank - 1];
    for (int64_t o = 0; o < n; o += LANES) {
        vf a = splat(max ? -INFINITY : 0);
        const float *x = line + o * stride;
        for (int64_t t = 0; t < taps; t++) {
            const float *from = x + t * step;
            a = pool_join(max, a, stride == 1 ? load(from) : load_even(from));
        }
        if (!max) a = pool_mean(a, outer, counts + o, n - o);
        if (o + LANES <= n)
            store(y + o, a);
        else
            store_some(y + o, n - o, a);
    }
}

#if defined(__AVX512F__)
static inline vf pool_spread(const float *x, vi at) {
    return (vf)_mm512_i32gather_ps((__m512i)at, x, 4);
}
#elif defined(__AVX2__)
static inline vf pool_spread(const float *x, vi at) {
    return (vf)_mm256_i32gather_ps(x, (__m256i)at, 4);
}
#endif

/* The same with a stride above 2: gathered. */
static inline __attribute__((always_inline)) void pool_far(bool max, const sni_window *w,
                                                           const float *line, float outer,
                                                           const float *counts, float *y) {
    const int last = w->rank - 1;
    int64_t o = 0;
#if defined(__AVX512F__) || defined(__AVX2__)
    vi at;
    for (int i = 0; i < LANES; i++) at[i] = (int32_t)(i * w->stride[last]);
    for (; o + LANES <= w->out[last]; o += LANES) {
        vf a = splat(max ? -INFINITY : 0);
        const float *x = line + o * w->stride[last];
        for (int64_t t = 0; t < w->kernel[last]; t++)
            a = pool_join(max, a, pool_spread(x + t * w->dilation[last], at));
        store(y + o, max ? a : pool_mean(a, outer, counts + o, LANES));
    }
#endif
    for (; o < w->out[last]; o++) {
        float a = max ? -INFINITY : 0;
        const float *x = line + o * w->stride[last];
        for (int64_t t = 0; t < w->kernel[last]; t++) {
            float v = x[t * w->dilation[last]];
            a = max ? (v > a ? v : a) : a + v;
        }
        y[o] = max ? a : a / (outer * counts[o]);
    }
}

static inline __attribute__((always_inline)) void pool_along(bool max, const sni_window *w,
                                                             const float *line, float outer,
                                                             const float *counts, float *y) {
    const int64_t stride = w->stride[w->rank - 1], taps = w->kernel[w->rank - 1];
    if (stride > 2)
        pool_far(max, w, line, outer, counts, y);
    else if (stride == 2 && taps == 2)
        pool_taps(max, w, 2, 2, line, outer, counts, y);
    else if (stride == 2 && taps == 3)
        pool_taps(max, w, 3, 2, line, outer, counts, y);
    else if (stride == 1 && taps == 3)
        pool_taps(max, w, 3, 1, line, outer, counts, y);
    else if (stride == 1 && taps == 5)
        pool_taps(max, w, 5, 1, line, outer, counts, y);
    else if (stride == 1)
        pool_taps(max, w, taps, 1, line, outer, counts, y);
    else
        pool_taps(max, w, taps, 2, line, outer, counts, y);
}

/* Finds the input rows under an output row; returns their number, -1 if there are more than
 * POOL_ROWS. */
static inline int pool_find(const sni_window *w, const float *x, int64_t row, const float **rows) {
    const int64_t in = w->in[w->rank - 1];
    int n = 0;
    if (w->rank == 2) {
        if (w->kernel[0] > POOL_ROWS) return -1;
        int64_t at = row * w->stride[0] - w->begin[0];
        for (int64_t t = 0; t < w->kernel[0]; t++, at += w->dilation[0])
            if (at >= 0 && at < w->in[0]) rows[n++] = x + at * in;
        return n;
    }
    if (w->rank == 3) {
        if (w->kernel[0] > POOL_ROWS || w->kernel[0] * w->kernel[1] > POOL_ROWS) return -1;
        int64_t deep = row / w->out[1] * w->stride[0] - w->begin[0];
        for (int64_t s = 0; s < w->kernel[0]; s++, deep += w->dilation[0]) {
            int64_t at = row % w->out[1] * w->stride[1] - w->begin[1];
            if (deep < 0 || deep >= w->in[0]) continue;
            for (int64_t t = 0; t < w->kernel[1]; t++, at += w->dilation[1])
                if (at >= 0 && at < w->in[1]) rows[n++] = x + (deep * w->in[1] + at) * in;
        }
        return n;
    }
    sni_window_rows r;
    for (bool more = sni_window_rows_first(w, &r, row); more; more = sni_window_rows_next(w, &r)) {
        if (n == POOL_ROWS) return -1;
        rows[n++] = x + r.in_row * in;
    }
    return n;
}

/* Rows [begin, end) of all planes. There are two lines: while the input rows of one output row are
 * joined, the line of the output row before is finished. A load that overlaps two recent stores
 * waits for both to reach the cache; by then they have. */
static inline __attribute__((always_inline)) void pool_many(bool max, const sni_pool_window *pool,
                                                            int64_t begin, int64_t end) {
    const sni_window *w = &pool->window;
    const int last = w->rank - 1;
    const int64_t in = w->in[last], before = w->begin[last];
    const float *rows[POOL_ROWS];
    float lines[2][POOL_SIZE];
    int64_t reach = (w->out[last] - 1) * w->stride[last] + sni_window_extent(w, last);
    int64_t stop = before + in > reach ? before + in : reach;
    bool fits = stop <= POOL_LINE;
    /* Outputs beyond the last one read up to two vectors more. */
    for (int l = 0; fits && l < 2; l++) {
        for (int64_t i = 0; i < before; i++) lines[l][i] = max ? -INFINITY : 0;
        for (int64_t i = before + in; i < stop + 2 * LANES; i++) lines[l][i] = max ? -INFINITY : 0;
    }
    int64_t plane = begin / pool->out_rows, row = begin % pool->out_rows;
    int64_t joined = -1; /* the output row within its plane whose line is there; -1: none */
    for (int64_t i = begin; i <= end; i++) {
        const float *x = (const float *)pool->x + plane * pool->in_plane;
        int n = fits && i < end ? pool_find(w, x, row, rows) : -1;
        if (n >= 0) pool_down(max, rows, n, in, lines[i & 1] + before);
        if (joined >= 0)
            pool_along(max, w, lines[(i - 1) & 1], max ? 1 : pool->tap_rows[joined], pool->taps,
                       (float *)pool->y + (i - 1) * w->out[last]);
        joined = n >= 0 ? row : -1;
        if (i == end) break;
        if (n < 0 && max) max_window_f32(pool, plane, row);
        if (n < 0 && !max) average_f32(pool, plane, row);
        if (++row == pool->out_rows) {
            row = 0;
            plane++;
        }
    }
}

static void max_pool(const sni_pool_window *pool, int64_t begin, int64_t end) {
    pool_many(true, pool, begin, end);
}

static void average_pool(const sni_pool_window *pool, int64_t begin, int64_t end) {
    pool_many(false, pool, begin, end);
}

static void global_average_pool(const sni_pool_window *pool, int64_t plane, int64_t row) {
    (void)row;
    const int64_t n = pool->in_plane;
    const float *x = (const float *)pool->x + plane * n;
    vf a = splat(0), b = a;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        a += load(x + i);
        b += load(x + i + LANES);
    }
    for (; i + LANES <= n; i += LANES) a += load(x + i);
    if (i < n) b += load_some(x + i, n - i, 0);
    ((float *)pool->y)[plane] = sum_lanes(a + b) / (float)n;
}

SNI_DEFINE_TABLE(sni_pool_kernels) = {
    .max = max_pool,
    .average = average_pool,
    .global_max = global_max_f32,
    .global_average = global_average_pool,
};
