/* conv_strip.isa.c - the direct convolution's micro-kernel for one tap, for one instruction-set
 * tier: tiles side by side in one call, with little between the products of one and those of the
 * next. Few numbers are kept in registers for addresses: with AVX-512 compilers keep what they have
 * no room for in those of vectors, from where it comes back late. */
#include "cpu/conv/direct/conv_core.inc.c"

/* Has what p points to read again, and addresses counted from p. */
#define ANEW(p) __asm__("" : "+r"(p))

/* Adds the products of a tile over channels that lie in input blocks, and returns what is to be
 * fetched next. The input of the tile after it is fetched on the way. */
static INLINE uintptr_t strip_products(const sni_conv_tile *t, const float *x, uintptr_t prefetch,
                                       int pixels, int vectors, tile_sums sum) {
    const float *w = t->w;
    for (int64_t left = t->taps; left > 0; left--) {
        const int64_t channels = left > 1 ? BLOCK : t->last;
        const uintptr_t step = t->prefetch_step;
        const float *x_at = x, *w_at = w, *x_prefetch = x + pixels * BLOCK;
        UNROLL_SOME
        for (int64_t c = 0; c < channels; c++, x_at++, w_at += BLOCK) {
            __builtin_prefetch((const void *)prefetch, 0, 2);
            __builtin_prefetch(x_prefetch, 0, 2);
            x_prefetch += BLOCK;
            prefetch += step;
            add_channel(x_at, w_at, BLOCK, t->w_out, pixels, vectors, sum);
        }
        ANEW(t);
        x += t->x_tap;
        w += t->w_tap;
    }
    return prefetch;
}

/* The same over the channels of a list, from element `at` on. */
static INLINE uintptr_t strip_indirect(const sni_conv_tile *t, int64_t at, uintptr_t prefetch,
                                       int pixels, int vectors, tile_sums sum) {
    const float *const *list = t->list, *const *end = list + t->channels, *w = t->w;
    const uintptr_t step = t->prefetch_step;
    for (; list < end; list++, w += BLOCK) {
        const float *x = *list + at;
        ANEW(x);
        __builtin_prefetch((const void *)prefetch, 0, 2);
        prefetch += step;
        add_channel(x, w, BLOCK, t->w_out, pixels, vectors, sum);
    }
    return prefetch;
}

/* Residual, activations that are bounds, and the tile's way to y. */
static INLINE void finish_strip(const sni_conv_tile *t, int64_t at, int pixels, int vectors,
                                tile_sums sum) {
    const sni_conv_epilogue *e = t->epilogue;
    const int64_t y_block = t->y_block;
    float low, high, *y = t->y + at;
    const float *residual = e->residual;
    if (residual) {
        residual += at;
        ANEW(residual);
        UNROLL
        for (int p = 0; p < pixels; p++) UNROLL
        for (int v = 0; v < vectors; v++) sum[p][v] += load(residual + tile_at(y_block, p, v));
    }
    act_bounds(e, &low, &high);
    if (e->act == SNI_ACT_CLIP) {
        const vf least = splat(low), most = splat(high);
        UNROLL
        for (int p = 0; p < pixels; p++) UNROLL
        for (int v = 0; v < vectors; v++) sum[p][v] = min_vf(max_vf(sum[p][v], least), most);
    } else if (e->act == SNI_ACT_RELU) {
        UNROLL
        for (int p = 0; p < pixels; p++) UNROLL
        for (int v = 0; v < vectors; v++) sum[p][v] = max_vf(sum[p][v], splat(0));
    }
    ANEW(y);
    UNROLL
    for (int p = 0; p < pixels; p++) UNROLL
    for (int v = 0; v < vectors; v++) store(y + tile_at(y_block, p, v), sum[p][v]);
}

/* `indirect`, `pixels` and `width` are constants at every call. */
static INLINE void conv_strip(const sni_conv_tile *t, int64_t tiles, bool indirect, int pixels,
                              int width) {
    const int vectors = width * VECTORS;
    uintptr_t prefetch = t->prefetch;
    float low, high;
    const int64_t end = tiles * pixels * BLOCK;
    for (int64_t at = 0; at < end; at += pixels * BLOCK) {
        const float *bias = t->epilogue->bias;
        tile_sums sum;
        UNROLL
        for (int v = 0; v < vectors; v++) {
            vf start = bias ? load(bias + v * LANES) : splat(0);
            UNROLL
            for (int p = 0; p < pixels; p++) sum[p][v] = start;
        }
        if (indirect)
            prefetch = strip_indirect(t, t->x_at + at, prefetch, pixels, vectors, sum);
        else
            prefetch = strip_products(t, t->x + at, prefetch, pixels, vectors, sum);
        finish_strip(t, at, pixels, vectors, sum);
        ANEW(t);
    }
    const sni_conv_epilogue *e = t->epilogue;
    if (e->act != SNI_ACT_NONE && !act_bounds(e, &low, &high)) act_tile(t, tiles * pixels, width);
}

/* WIDE: the list of tiles is that of blocked input (conv_tile_list.inc.c). */
#define WIDE 1
#define STRIP_NAME blocked
#define INDIRECT_STRIP false
#include "cpu/conv/direct/conv_strip_fns.inc.c"
#define STRIP_NAME indirect
#define INDIRECT_STRIP true
#include "cpu/conv/direct/conv_strip_fns.inc.c"

/* ---- Strips of an output block whose upper half is padding ----
 *
 * For vectors of a whole block: half a vector for each pixel, which takes half the time where wide
 * vectors take two turns. The upper half gets zeros, or what the activation makes of them. */

#if LANES == 16
typedef float vh __attribute__((vector_size(LANES / 2 * sizeof(float))));
typedef float vh_anywhere
    __attribute__((vector_size(LANES / 2 * sizeof(float)), aligned(4), may_alias));
typedef vh half_sums[SNI_CONV_MOST_PIXELS];

#define VH(p) (*(const vh_anywhere *)(p))

static INLINE uintptr_t half_products(const sni_conv_tile *t, const float *x, uintptr_t prefetch,
                                      int pixels, half_sums sum) {
    const float *w = t->w;
    for (int64_t left = t->taps; left > 0; left--) {
        const int64_t channels = left > 1 ? BLOCK : t->last;
        const uintptr_t step = t->prefetch_step;
        const float *x_at = x, *w_at = w;
        UNROLL_SOME
        for (int64_t c = 0; c < channels; c++, x_at++, w_at += BLOCK) {
            __builtin_prefetch((const void *)prefetch, 0, 2);
            prefetch += step;
            vh right = VH(w_at);
            UNROLL
            for (int p = 0; p < pixels; p++) sum[p] += (x_at[p * BLOCK] - (vh){0}) * right;
        }
        ANEW(t);
        x += t->x_tap;
        w += t->w_tap;
    }
    return prefetch;
}

static INLINE void finish_half(const sni_conv_tile *t, int64_t at, int pixels, half_sums sum) {
    const sni_conv_epilogue *e = t->epilogue;
    float low, high, *y = t->y + at;
    const float *residual = e->residual;
    if (residual) {
        residual += at;
        ANEW(residual);
        UNROLL
        for (int p = 0; p < pixels; p++) sum[p] += VH(residual + p * BLOCK);
    }
    if (act_bounds(e, &low, &high)) {
        const __m256 least = _mm256_set1_ps(low), most = _mm256_set1_ps(high);
        UNROLL
        for (int p = 0; p < pixels; p++)
            sum[p] = (vh)_mm256_min_ps(most, _mm256_max_ps(least, (__m256)sum[p]));
    }
    ANEW(y);
    UNROLL
    for (int p = 0; p < pixels; p++)
        _mm512_storeu_ps(y + p * BLOCK, _mm512_zextps256_ps512((__m256)sum[p]));
}

/* `pixels` is a constant at every call. */
static INLINE void half_strip(const sni_conv_tile *t, int64_t tiles, int pixels) {
    uintptr_t prefetch = t->prefetch;
    float low, high;
    const int64_t end = tiles * pixels * BLOCK;
    for (int64_t at = 0; at < end; at += pixels * BLOCK) {
        const float *bias = t->epilogue->bias;
        half_sums sum;
        vh start = {0};
        if (bias) start = VH(bias);
        UNROLL
        for (int p = 0; p < pixels; p++) sum[p] = start;
        prefetch = half_products(t, t->x + at, prefetch, pixels, sum);
        finish_half(t, at, pixels, sum);
        ANEW(t);
    }
    const sni_conv_epilogue *e = t->epilogue;
    if (e->act != SNI_ACT_NONE && !act_bounds(e, &low, &high)) act_tile(t, tiles * pixels, 1);
}

#define HALVES(of) \
    of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8) of(9) of(10) of(11) of(12) of(13) of(14)
#define HALF(pixels)                                                   \
    static void half_##pixels(const sni_conv_tile *t, int64_t tiles) { \
        half_strip(t, tiles, pixels);                                  \
    }
HALVES(HALF)
#undef HALF

static const sni_conv_strip_fn halves[SNI_CONV_MOST_PIXELS + 1] = {
#define HALF(pixels) [pixels] = half_##pixels,
    HALVES(HALF)
#undef HALF
};
#endif

SNI_DEFINE_TABLE(sni_conv_strips) = {
    .strip = {strip_blocked_allxtiles, strip_indirect_allxtiles},
#if LANES == 16
    .half = halves,
#endif
};
