/* depthwise.isa.c - rows of depthwise convolution, for one instruction-set tier (see tier.isa.c).
 */
#include "cpu/block.h"
#include "cpu/depthwise.h"

enum { MOST_PIXELS = 8 }; /* outputs whose sums are in registers at once */

INLINE void finish_pixels(const sni_depthwise_row *r, int pixels, int64_t at, const vb *sum) {
    const vb least = VB_SPLAT(r->least), most = VB_SPLAT(r->most);
    UNROLL
    for (int o = 0; o < pixels; o++) {
        vb v = sum[o];
        if (r->residual) v += VB_CONST(r->residual + at + o * BLOCK);
        clamp_vb(&v, &least, &most);
        VB(r->y + at + o * BLOCK) = v;
    }
}

/* `pixels` outputs from output `first` of row `n` on; taps and stride are constants too, so that
 * each input is loaded once and every sum stays in a register. */
INLINE void run_fixed(const sni_depthwise_row *r, int taps, int stride, int pixels, int64_t n,
                      int64_t first) {
    vb sum[MOST_PIXELS], start = {0};
    if (r->bias) start = VB_CONST(r->bias);
    UNROLL
    for (int o = 0; o < pixels; o++) sum[o] = start;
    for (int64_t row = 0; row < r->rows; row++) {
        const float *x = r->x[row] + n * r->x_next + first * stride * BLOCK;
        const float *w = r->w + row * taps * BLOCK;
        UNROLL
        for (int i = 0; i < (pixels - 1) * stride + taps; i++) {
            vb v = VB_CONST(x + i * BLOCK);
            UNROLL
            for (int o = 0; o < pixels; o++) {
                int tap = i - o * stride;
                if (tap >= 0 && tap < taps) sum[o] += v * VB_CONST(w + tap * BLOCK);
            }
        }
    }
    finish_pixels(r, pixels, n * r->y_next + first * BLOCK, sum);
}

INLINE void run_any(const sni_depthwise_row *r, int pixels, int64_t n, int64_t first) {
    vb sum[MOST_PIXELS], start = {0};
    if (r->bias) start = VB_CONST(r->bias);
    UNROLL
    for (int o = 0; o < pixels; o++) sum[o] = start;
    const float *w = r->w;
    for (int64_t row = 0; row < r->rows; row++) {
        const float *x = r->x[row] + n * r->x_next + first * r->stride * BLOCK;
        for (int64_t tap = 0; tap < r->taps; tap++, w += BLOCK, x += r->dilation * BLOCK) {
            vb weight = VB_CONST(w);
            UNROLL
            for (int o = 0; o < pixels; o++) sum[o] += weight * VB_CONST(x + o * r->stride * BLOCK);
        }
    }
    finish_pixels(r, pixels, n * r->y_next + first * BLOCK, sum);
}

/* All rows, `pixels` outputs from `first` on. taps 0: any. */
INLINE void run_group(const sni_depthwise_row *r, int taps, int stride, int pixels, int64_t first) {
    for (int64_t n = 0; n < r->count; n++) {
        if (taps)
            run_fixed(r, taps, stride, pixels, n, first);
        else
            run_any(r, pixels, n, first);
    }
}

/* Rows in groups of nearly the same size. */
INLINE void run_row(const sni_depthwise_row *r, int taps, int stride) {
    int groups = (int)((r->pixels + MOST_PIXELS - 1) / MOST_PIXELS), left = (int)r->pixels;
    for (int64_t first = 0; groups > 0; groups--) {
        int pixels = (left + groups - 1) / groups;
        switch (pixels) {
#define CASE(n)                               \
    case n:                                   \
        run_group(r, taps, stride, n, first); \
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

static void row_3_1(const sni_depthwise_row *r) {
    run_row(r, 3, 1);
}
static void row_3_2(const sni_depthwise_row *r) {
    run_row(r, 3, 2);
}
static void row_5_1(const sni_depthwise_row *r) {
    run_row(r, 5, 1);
}
static void row_5_2(const sni_depthwise_row *r) {
    run_row(r, 5, 2);
}
static void row_7_1(const sni_depthwise_row *r) {
    run_row(r, 7, 1);
}
static void row_any(const sni_depthwise_row *r) {
    run_row(r, 0, 0);
}

static void row(const sni_depthwise_row *r) {
    int64_t kind = r->dilation == 1 && r->stride <= 2 ? r->taps * 2 + r->stride : 0;
    switch (kind) {
    case 3 * 2 + 1:
        row_3_1(r);
        break;
    case 3 * 2 + 2:
        row_3_2(r);
        break;
    case 5 * 2 + 1:
        row_5_1(r);
        break;
    case 5 * 2 + 2:
        row_5_2(r);
        break;
    case 7 * 2 + 1:
        row_7_1(r);
        break;
    default:
        row_any(r);
        break;
    }
}

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_depthwise_kernels PASTE(sni_depthwise_kernels_, TIER);

const sni_depthwise_kernels PASTE(sni_depthwise_kernels_, TIER) = {.row = row};
