/* depthwise.isa.c - rows of depthwise convolution, for one instruction-set tier (see tier.isa.c).
 */
#include "cpu/block.h"
#include "cpu/depthwise.h"

enum {
    MOST_PIXELS = 8, /* outputs whose sums are in registers at once */
    NEAR = 6144      /* floats of input that stay in the first cache */
};

INLINE void finish_pixels(const sni_depthwise_rows *r, int pixels, int64_t at, const vb *sum) {
    const vb least = VB_SPLAT(r->least), most = VB_SPLAT(r->most);
    UNROLL
    for (int o = 0; o < pixels; o++) {
        vb v = sum[o];
        if (r->residual) v += VB_CONST(r->residual + at + o * BLOCK);
        clamp_vb(&v, &least, &most);
        VB(r->y + at + o * BLOCK) = v;
    }
}

INLINE bool is_column(const sni_depthwise_rows *r, int64_t at) {
    return (uint64_t)at < (uint64_t)r->in_w;
}

/* Adds one row of the kernel to `pixels` outputs that see columns of `x` from `at` on; taps and
 * stride are constants too, so that each input is loaded once and every sum stays in a register.
 * `edge`: some columns lie beside the picture. */
INLINE void add_fixed(const sni_depthwise_rows *r, int taps, int stride, int pixels, bool edge,
                      const float *x, const float *w, int64_t at, vb *sum) {
    UNROLL
    for (int i = 0; i < (pixels - 1) * stride + taps; i++) {
        if (edge && !is_column(r, at + i)) continue;
        vb v = VB_CONST(x + (at + i) * BLOCK);
        UNROLL
        for (int o = 0; o < pixels; o++) {
            int tap = i - o * stride;
            if (tap >= 0 && tap < taps) sum[o] += v * VB_CONST(w + tap * BLOCK);
        }
    }
}

INLINE void add_any(const sni_depthwise_rows *r, int pixels, const float *x, const float *w,
                    int64_t at, vb *sum) {
    for (int64_t tap = 0; tap < r->taps; tap++, w += BLOCK) {
        vb weight = VB_CONST(w);
        UNROLL
        for (int o = 0; o < pixels; o++) {
            int64_t column = at + tap * r->dilation + o * r->stride;
            if (is_column(r, column)) sum[o] += weight * VB_CONST(x + column * BLOCK);
        }
    }
}

/* `pixels` outputs from `first` on of rows [from, to). taps 0: any; rows 0: as r says. */
INLINE void run_strip(const sni_depthwise_rows *r, int rows, int taps, int stride, int pixels,
                      bool edge, int64_t first, int64_t from, int64_t to) {
    const int64_t at = first * r->stride - r->pad, x_row = r->x_row, all = r->rows;
    const float *x = r->x + from * r->x_next, *w = r->w;
    vb start = {0};
    if (r->bias) start = VB_CONST(r->bias);
    for (int64_t n = from; n < to; n++, x += r->x_next) {
        vb sum[MOST_PIXELS];
        UNROLL
        for (int o = 0; o < pixels; o++) sum[o] = start;
        if (rows) {
            UNROLL
            for (int row = 0; row < rows; row++)
                add_fixed(r, taps, stride, pixels, edge, x + row * x_row, w + row * taps * BLOCK,
                          at, sum);
        } else {
            for (int64_t row = 0; row < all; row++) {
                if (taps)
                    add_fixed(r, taps, stride, pixels, edge, x + row * x_row,
                              w + row * taps * BLOCK, at, sum);
                else
                    add_any(r, pixels, x + row * x_row, w + row * r->taps * BLOCK, at, sum);
            }
        }
        finish_pixels(r, pixels, n * r->y_next + first * BLOCK, sum);
    }
}

INLINE void run_group(const sni_depthwise_rows *r, int taps, int stride, int pixels, int64_t first,
                      int64_t from, int64_t to) {
    int64_t at = first * r->stride - r->pad;
    int64_t last = at + (pixels - 1) * r->stride + (r->taps - 1) * r->dilation;
    bool edge = at < 0 || last >= r->in_w;
    if (taps == 3 && r->rows == 3 && !edge)
        run_strip(r, 3, taps, stride, pixels, false, first, from, to);
    else if (taps > 3 && !edge)
        run_strip(r, 0, taps, stride, pixels, false, first, from, to);
    else
        run_strip(r, 0, taps, stride, pixels, true, first, from, to);
}

/* Rows [from, to) in groups of nearly the same size. */
INLINE void run_groups(const sni_depthwise_rows *r, int taps, int stride, int64_t from,
                       int64_t to) {
    int groups = (int)((r->pixels + MOST_PIXELS - 1) / MOST_PIXELS), left = (int)r->pixels;
    for (int64_t first = 0; groups > 0; groups--) {
        int pixels = (left + groups - 1) / groups;
        switch (pixels) {
#define CASE(n)                                         \
    case n:                                             \
        run_group(r, taps, stride, n, first, from, to); \
        break;
            CASE(1)
            CASE(2)
            CASE(3)
            CASE(4)
            CASE(5)
            CASE(6)
            CASE(7)
            CASE(8)
#undef CASE
        }
        first += pixels;
        left -= pixels;
    }
}

/* Some rows at once, so that the inputs of a group are near when those of the next one are read. */
INLINE void run_rows(const sni_depthwise_rows *r, int taps, int stride) {
    int64_t some = NEAR / (r->in_w * BLOCK) / (r->stride < 2 ? 1 : 2);
    if (some < 1) some = 1;
    for (int64_t n = 0; n < r->count; n += some)
        run_groups(r, taps, stride, n, n + some < r->count ? n + some : r->count);
}

static void rows_3_1(const sni_depthwise_rows *r) {
    run_rows(r, 3, 1);
}
static void rows_3_2(const sni_depthwise_rows *r) {
    run_rows(r, 3, 2);
}
static void rows_5_1(const sni_depthwise_rows *r) {
    run_rows(r, 5, 1);
}
static void rows_5_2(const sni_depthwise_rows *r) {
    run_rows(r, 5, 2);
}
static void rows_7_1(const sni_depthwise_rows *r) {
    run_rows(r, 7, 1);
}
static void rows_any(const sni_depthwise_rows *r) {
    run_rows(r, 0, 0);
}

static void rows(const sni_depthwise_rows *r) {
    int64_t kind = r->dilation == 1 && r->stride <= 2 ? r->taps * 2 + r->stride : 0;
    switch (kind) {
    case 3 * 2 + 1:
        rows_3_1(r);
        break;
    case 3 * 2 + 2:
        rows_3_2(r);
        break;
    case 5 * 2 + 1:
        rows_5_1(r);
        break;
    case 5 * 2 + 2:
        rows_5_2(r);
        break;
    case 7 * 2 + 1:
        rows_7_1(r);
        break;
    default:
        rows_any(r);
        break;
    }
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_depthwise_kernels PASTE(sni_depthwise_kernels_, TIER);

const sni_depthwise_kernels PASTE(sni_depthwise_kernels_, TIER) = {.rows = rows};
