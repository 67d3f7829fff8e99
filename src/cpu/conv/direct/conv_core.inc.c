/* conv_core.inc.c - what the direct convolution's micro-kernels share (conv.isa.c,
 * conv_strip.isa.c): a tile of output stays in registers over all channels and taps. */
#include "cpu/conv/conv.h"
#include "cpu/core/kernels.h"
#include "cpu/core/simd.h"

enum {
    BLOCK = LANES == 16 ? 16 : 8, /* channels of a blocked pixel */
    VECTORS = BLOCK / LANES,
    INDIRECT = -1 /* a step: blocks, by a list of channels */
};

extern const sni_cpu_kernels SNI_TIERED(sni_cpu_kernels);

/* Activations that the epilogue leaves to rows in memory. */
static void act_tile(const sni_conv_tile *t, int64_t pixels, int width) {
    sni_epilogue e = {.act = t->epilogue->act, .p0 = t->epilogue->p0, .p1 = t->epilogue->p1};
    for (int b = 0; b < width; b++) {
        if (t->epilogue->slopes) e.slopes = t->epilogue->slopes + b * BLOCK;
        SNI_TIERED(sni_cpu_kernels)
            .finish_row(&e, t->y + b * t->y_block, 0, NULL, NULL, pixels * BLOCK);
    }
}

/* Bounds of activations that are no more than bounds; false for others. */
static inline bool act_bounds(const sni_conv_epilogue *e, float *low, float *high) {
    *low = e->act == SNI_ACT_CLIP ? e->p0 : 0;
    *high = e->act == SNI_ACT_CLIP ? e->p1 : __builtin_inff();
    return e->act == SNI_ACT_RELU || e->act == SNI_ACT_CLIP;
}

#define INLINE inline __attribute__((always_inline))

/* The sums of a tile: by pixel, then vector by vector over its output blocks. */
typedef vf tile_sums[SNI_CONV_MOST_PIXELS][SNI_CONV_MOST_WIDTH * VECTORS];

/* Where vector v of pixel p lies in the output, or in what is laid out like it. */
static INLINE int64_t tile_at(int64_t y_block, int p, int v) {
    return (v / VECTORS) * y_block + p * BLOCK + v % VECTORS * LANES;
}

/* Adds the products of one channel of a tap. */
static INLINE void add_channel(const float *x, const float *w, int64_t step, int64_t w_out,
                               int pixels, int vectors, tile_sums sum) {
    vf right[SNI_CONV_MOST_WIDTH * VECTORS];
    UNROLL
    for (int v = 0; v < vectors; v++)
        right[v] = load(w + (v / VECTORS) * w_out + v % VECTORS * LANES);
    UNROLL
    for (int p = 0; p < pixels; p++) {
        vf left = splat(x[p * step]);
        UNROLL
        for (int v = 0; v < vectors; v++) sum[p][v] += left * right[v];
    }
}
