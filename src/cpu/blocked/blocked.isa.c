/* blocked.isa.c - pools, scales and indirect channels in blocked layout, for one instruction-set
 * tier; see tier.isa.c. */
#include "cpu/blocked/blocked_kernels.h"
#include "cpu/core/simd.h"

enum { BLOCK = LANES == 16 ? 16 : 8, VECTORS = BLOCK / LANES };

/* ---- Pools ---- */

/* Taps [*lo, *hi) of output pixel o that lie in the row. */
static inline void taps_of(const sni_pool_row *r, int64_t o, int64_t *lo, int64_t *hi) {
    int64_t at = o * r->stride - r->pad;
    *lo = at >= 0 ? 0 : (-at + r->dilation - 1) / r->dilation;
    *hi = at >= r->in_w ? 0 : (r->in_w - at + r->dilation - 1) / r->dilation;
    if (*hi > r->taps) *hi = r->taps;
}

/* One pixel, from taps [lo, hi); what is constant at a call is so in the loops. */
static inline __attribute__((always_inline)) void
pool_pixel(const sni_pool_row *r, bool mean, int64_t o, int64_t lo, int64_t hi, int64_t dilation) {
    vf sum[VECTORS];
    const float *x = r->x + (o * r->stride - r->pad) * BLOCK;
    for (int v = 0; v < VECTORS; v++) sum[v] = splat(mean ? 0 : -__builtin_inff());
    for (int64_t row = 0; row < r->rows; row++, x += r->x_row) {
        UNROLL
        for (int64_t tap = lo; tap < hi; tap++)
            for (int v = 0; v < VECTORS; v++) {
                vf next = load(x + tap * dilation * BLOCK + v * LANES);
                sum[v] = mean ? sum[v] + next : max_vf(sum[v], next);
            }
    }
    for (int v = 0; v < VECTORS; v++)
        store(r->y + o * BLOCK + v * LANES,
              mean ? sum[v] / splat(r->divisor * r->columns[o]) : sum[v]);
}

/* Pixels [from, to) that have all their taps in the row. */
static inline __attribute__((always_inline)) void pool_inside(const sni_pool_row *r, bool mean,
                                                              int64_t from, int64_t to) {
    int64_t taps = r->dilation == 1 ? r->taps : 0;
    if (taps == 2)
        for (int64_t o = from; o < to; o++) pool_pixel(r, mean, o, 0, 2, 1);
    else if (taps == 3)
        for (int64_t o = from; o < to; o++) pool_pixel(r, mean, o, 0, 3, 1);
    else if (taps == 5)
        for (int64_t o = from; o < to; o++) pool_pixel(r, mean, o, 0, 5, 1);
    else
        for (int64_t o = from; o < to; o++) pool_pixel(r, mean, o, 0, r->taps, r->dilation);
}

static void pool_edge(const sni_pool_row *r, int64_t from, int64_t to) {
    for (int64_t o = from; o < to; o++) {
        int64_t lo, hi;
        taps_of(r, o, &lo, &hi);
        pool_pixel(r, r->columns != NULL, o, lo, hi > lo ? hi : lo, r->dilation);
    }
}

static void pool_row(const sni_pool_row *r) {
    int64_t from = (r->pad + r->stride - 1) / r->stride;
    int64_t room = r->in_w + r->pad - (r->taps - 1) * r->dilation - 1;
    int64_t to = room >= 0 ? room / r->stride + 1 : 0;
    if (from > r->out_w) from = r->out_w;
    if (to > r->out_w) to = r->out_w;
    if (to < from) to = from;
    pool_edge(r, 0, from);
    if (r->columns)
        pool_inside(r, true, from, to);
    else
        pool_inside(r, false, from, to);
    pool_edge(r, to, r->out_w);
}

enum { CHAINS = 4 }; /* sums that run side by side */

static void mean(const float *x, float *y, int64_t pixels) {
    for (int v = 0; v < VECTORS; v++) {
        vf sum[CHAINS] = {0};
        int64_t p = 0;
        for (; p + CHAINS <= pixels; p += CHAINS)
            for (int i = 0; i < CHAINS; i++) sum[i] += load(x + (p + i) * BLOCK + v * LANES);
        for (; p < pixels; p++) sum[0] += load(x + p * BLOCK + v * LANES);
        store(y + v * LANES, ((sum[0] + sum[1]) + (sum[2] + sum[3])) / splat((float)pixels));
    }
}

static void max(const float *x, float *y, int64_t pixels) {
    for (int v = 0; v < VECTORS; v++) {
        vf most = splat(-__builtin_inff());
        for (int64_t p = 0; p < pixels; p++) most = max_vf(most, load(x + p * BLOCK + v * LANES));
        store(y + v * LANES, most);
    }
}

/* ---- By channel ---- */

static void scale(const float *x, const float *s, float *y, int64_t pixels) {
    for (int v = 0; v < VECTORS; v++) {
        vf factor = load(s + v * LANES);
        for (int64_t p = 0; p < pixels; p++)
            store(y + p * BLOCK + v * LANES, load(x + p * BLOCK + v * LANES) * factor);
    }
}

static void shift(const float *x, const float *s, float *y, int64_t pixels) {
    for (int v = 0; v < VECTORS; v++) {
        vf more = load(s + v * LANES);
        for (int64_t p = 0; p < pixels; p++)
            store(y + p * BLOCK + v * LANES, load(x + p * BLOCK + v * LANES) + more);
    }
}

static void scale_rows(const float *x, const float *s, float *y, int64_t rows) {
    for (int64_t r = 0; r < rows; r++) {
        vf factor = splat(s[r]);
        for (int v = 0; v < VECTORS; v++)
            store(y + r * BLOCK + v * LANES, load(x + r * BLOCK + v * LANES) * factor);
    }
}

/* One by one. */
static void gather_any(const float *const *from, const int32_t *lanes, float *y, int64_t pixels) {
    for (int half = 0; half < BLOCK; half += 8) {
        const float *f[8];
        for (int c = 0; c < 8; c++) f[c] = from[half + c] + lanes[half + c];
        for (int64_t p = 0; p < pixels * BLOCK; p += BLOCK)
            for (int c = 0; c < 8; c++) y[p + half + c] = f[c][p];
    }
}

#if LANES >= 8
enum { SOURCES = LANES == 16 ? 8 : 4 }; /* blocks from which picking beats single channels */

/* Lanes `lanes` of x where `mask` says so, else those of v. */
static inline vf pick(vf v, vi mask, vi lanes, vf x) {
#if defined(__AVX512F__)
    return (vf)_mm512_mask_permutexvar_ps((__m512)v, _mm512_movepi32_mask((__m512i)mask),
                                          (__m512i)lanes, (__m512)x);
#else
    return select_vf(mask, (vf)_mm256_permutevar8x32_ps((__m256)x, (__m256i)lanes), v);
#endif
}

/* From `count` blocks, which is a constant at every call. */
static inline __attribute__((always_inline)) void gather_some(int count, const float *const *block,
                                                              const vi *mask, vi lanes, float *y,
                                                              int64_t pixels) {
    for (int64_t p = 0; p < pixels * BLOCK; p += BLOCK) {
        vf v = splat(0);
        UNROLL
        for (int i = 0; i < count; i++) v = pick(v, mask[i], lanes, load(block[i] + p));
        store(y + p, v);
    }
}

static void gather(const float *const *from, const int32_t *lanes, float *y, int64_t pixels) {
    const float *block[SOURCES];
    vi mask[SOURCES] = {0}, lane = {0};
    int count = 0;
    for (int c = 0; c < BLOCK; c++) {
        int i = 0;
        while (i < count && block[i] != from[c]) i++;
        if (i == SOURCES) {
            gather_any(from, lanes, y, pixels);
            return;
        }
        if (i == count) block[count++] = from[c];
        mask[i][c] = -1;
        lane[c] = lanes[c];
    }
    switch (count) {
#define CASE(n)                                       \
    case n:                                           \
        gather_some(n, block, mask, lane, y, pixels); \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
#if LANES == 16
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
#endif
#undef CASE
    }
}
#else
static void gather(const float *const *from, const int32_t *lanes, float *y, int64_t pixels) {
    gather_any(from, lanes, y, pixels);
}
#endif

SNI_DEFINE_TABLE(sni_blocked_kernels) = {
    .pool_row = pool_row,
    .mean = mean,
    .max = max,
    .scale = scale,
    .shift = shift,
    .scale_rows = scale_rows,
    .gather = gather,
};
