/* conv.isa.c - the direct convolution's micro-kernel for one tile, for one instruction-set tier;
 * see tier.isa.c. */
#include "cpu/conv/direct/conv_core.inc.c"

/* Where the products of one tap begin: input, weights, and what lies between their pixels and
 * output blocks. */
typedef struct tap_start {
    const float *x, *w;
    int64_t step, w_out;
} tap_start;

/* What a tile fetches channel by channel: weights of the next tile and its input. */
typedef struct tile_fetch {
    uintptr_t w, w_step, x, x_step;
} tile_fetch;

/* Adds the products of one tap over the channels of an input block. */
static INLINE void add_channels(int64_t channels, tap_start at, tile_fetch fetch, int pixels,
                                int vectors, tile_sums sum) {
    UNROLL_SOME
    for (int64_t c = 0; c < channels; c++, at.x++, at.w += BLOCK) {
        __builtin_prefetch((const void *)fetch.w, 0, 2);
        __builtin_prefetch((const void *)fetch.x, 0, 2);
        fetch.w += fetch.w_step;
        fetch.x += fetch.x_step;
        add_channel(at.x, at.w, at.step, at.w_out, pixels, vectors, sum);
    }
}

/* Adds all products of a tile. */
static INLINE void add_products(const sni_conv_tile *t, int64_t step, int pixels, int vectors,
                                tile_sums sum) {
    const int64_t x_tap = t->x_tap, w_tap = t->w_tap;
    tap_start at = {.step = step, .w_out = t->w_out};
    tile_fetch fetch = {t->prefetch, t->prefetch_step, 0, t->x_prefetch_step};
    for (int64_t b = 0; b < t->blocks; b++)
        for (int64_t r = 0; r < t->rows; r++) {
            at.x = t->x + b * t->x_block + r * t->x_row;
            at.w = t->w + b * t->w_block + r * t->w_row;
            fetch.x = t->x_prefetch + (uintptr_t)b * t->x_prefetch_block +
                      (uintptr_t)r * t->x_prefetch_row;
            int64_t channels = t->taps > 1 ? t->channels : t->last;
            for (int64_t left = t->taps; left > 0; at.x += x_tap, at.w += w_tap) {
                add_channels(channels, at, fetch, pixels, vectors, sum);
                fetch.w += (uintptr_t)channels * fetch.w_step;
                fetch.x += t->x_prefetch_tap;
                if (--left == 1) channels = t->last;
            }
        }
}

/* The same for plain input whose taps of a row lie side by side, `taps` of them (0: any number): a
 * few channels, whose weights are near. */
static INLINE void add_taps(const sni_conv_tile *t, int taps, int64_t step, int pixels, int vectors,
                            tile_sums sum) {
    const int64_t x_row = t->x_row, w_row = t->w_row, w_out = t->w_out;
    for (int64_t b = 0; b < t->blocks; b++) {
        const float *x = t->x + b * t->x_block, *w = t->w + b * t->w_block;
        for (int64_t r = t->rows; r > 0; r--, x += x_row, w += w_row) {
            UNROLL
            for (int i = 0; i < taps; i++) {
                const float *at = x + i;
                __asm__("" : "+r"(at)); /* else inputs that taps share are kept, on the stack */
                add_channel(at, w + i * BLOCK, step, w_out, pixels, vectors, sum);
            }
            for (int64_t i = 0; !taps && i < t->channels; i++)
                add_channel(x + i, w + i * BLOCK, step, w_out, pixels, vectors, sum);
        }
    }
}

/* The same where the channels of a tap are those of a list. */
static INLINE void add_indirect(const sni_conv_tile *t, int pixels, int vectors, tile_sums sum) {
    const int64_t channels = t->channels, w_out = t->w_out;
    const float *const *list = t->list;
    const uintptr_t prefetch_step = t->prefetch_step, x_prefetch_step = t->x_prefetch_step;
    uintptr_t prefetch = t->prefetch, x_prefetch = t->x_prefetch;
    for (int64_t r = 0; r < t->rows; r++)
        for (int64_t tap = 0; tap < t->taps; tap++) {
            const float *w = t->w + r * t->w_row + tap * t->w_tap;
            int64_t at = t->x_at + r * t->x_row + tap * t->x_tap;
            for (int64_t c = 0; c < channels; c++, w += BLOCK) {
                const float *x = list[c] + at;
                __asm__("" : "+r"(x)); /* else the places of all pixels are kept, on the stack */
                __builtin_prefetch((const void *)prefetch, 0, 2);
                __builtin_prefetch((const void *)x_prefetch, 0, 2);
                prefetch += prefetch_step;
                x_prefetch += x_prefetch_step;
                add_channel(x, w, BLOCK, w_out, pixels, vectors, sum);
            }
        }
}

/* True if a sum of a tile is NaN. */
static INLINE bool any_nan(int pixels, int vectors, tile_sums sum) {
    const int count = pixels * vectors;
#if defined(__AVX512F__)
    __mmask16 clear = 0xffff;
#else
    vi nan = {0};
#endif
    UNROLL
    for (int i = 0; i < count; i += 2) { /* two at a time; the last one alone with itself */
        const int other = i + 1 < count ? i + 1 : i;
        vf a = sum[i / vectors][i % vectors], b = sum[other / vectors][other % vectors];
#if defined(__AVX512F__)
        clear = _mm512_mask_cmp_ps_mask(clear, (__m512)a, (__m512)b, _CMP_ORD_Q);
#elif defined(__AVX2__)
        nan |= (vi)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_UNORD_Q);
#else
        nan |= (a != a) | (b != b);
#endif
    }
#if defined(__AVX512F__)
    return clear != 0xffff;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)nan) != 0;
#else
    int32_t any = 0;
    for (int i = 0; i < LANES; i++) any |= nan[i];
    return any != 0;
#endif
}

/* Bias (unless the sums began with it), residual and activations that are bounds. */
static INLINE void finish_sums(const sni_conv_tile *t, int pixels, int vectors, tile_sums sum) {
    const sni_conv_epilogue *e = t->epilogue;
    float low, high;
    if (e->bias && t->add) {
        UNROLL
        for (int v = 0; v < vectors; v++) {
            vf bias = load(e->bias + v * LANES);
            UNROLL
            for (int p = 0; p < pixels; p++) sum[p][v] += bias;
        }
    }
    if (e->residual) {
        UNROLL
        for (int p = 0; p < pixels; p++) UNROLL
        for (int v = 0; v < vectors; v++)
            sum[p][v] += load(e->residual + tile_at(t->y_block, p, v));
    }
    if (!act_bounds(e, &low, &high)) return;
    vf least = splat(low);
    UNROLL
    for (int p = 0; p < pixels; p++) UNROLL
    for (int v = 0; v < vectors; v++) sum[p][v] = max_vf(sum[p][v], least);
    if (e->act == SNI_ACT_RELU) return;
    vf most = splat(high);
    UNROLL
    for (int p = 0; p < pixels; p++) UNROLL
    for (int v = 0; v < vectors; v++) sum[p][v] = min_vf(sum[p][v], most);
}

/* Has what finish_sums will add come near while the products are summed. */
static INLINE void fetch_residual(const sni_conv_tile *t, int pixels, int vectors) {
    const float *residual = t->finish ? t->epilogue->residual : NULL;
    if (!residual) return;
    UNROLL
    for (int p = 0; p < pixels; p++) UNROLL
    for (int v = 0; v < vectors; v += VECTORS)
        __builtin_prefetch(residual + tile_at(t->y_block, p, v), 0, 3);
}

/* `pixels` and `width`, and `step` where it is not 0, are constants at every call, so that the
 * loops unroll and the tile needs no memory. A step of 0 is t->x_pixel, INDIRECT a block. */
static INLINE void conv_tile(const sni_conv_tile *t, int64_t step, int pixels, int width) {
    tile_sums sum;
    const int vectors = width * VECTORS;
    float low, high;
    if (!step) step = t->x_pixel;
    fetch_residual(t, pixels, vectors);
    if (t->add) {
        UNROLL
        for (int p = 0; p < pixels; p++) UNROLL
        for (int v = 0; v < vectors; v++) sum[p][v] = load(t->y + tile_at(t->y_block, p, v));
    } else {
        const float *bias = t->finish ? t->epilogue->bias : NULL;
        UNROLL
        for (int v = 0; v < vectors; v++) {
            vf start = bias ? load(bias + v * LANES) : splat(0);
            UNROLL
            for (int p = 0; p < pixels; p++) sum[p][v] = start;
        }
    }
    if (step == INDIRECT)
        add_indirect(t, pixels, vectors, sum);
    else if (step < BLOCK && t->taps == 1 && t->channels == 3)
        add_taps(t, 3, step, pixels, vectors, sum);
    else if (step < BLOCK && t->taps == 1)
        add_taps(t, 0, step, pixels, vectors, sum);
    else
        add_products(t, step, pixels, vectors, sum);
    if (t->finish && t->unclear && any_nan(pixels, vectors, sum)) {
        *t->unclear = true;
        return;
    }
    if (t->finish) finish_sums(t, pixels, vectors, sum);
    float *const y = t->y;
    const int64_t y_block = t->y_block;
    UNROLL
    for (int p = 0; p < pixels; p++) UNROLL
    for (int v = 0; v < vectors; v++) store(y + tile_at(y_block, p, v), sum[p][v]);
    if (t->finish && t->epilogue->act != SNI_ACT_NONE && !act_bounds(t->epilogue, &low, &high))
        act_tile(t, pixels, width);
}

/* ---- The tiles ---- */

#define WIDE 1
#define STEP_NAME blocked_1
#define STEP BLOCK
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#define STEP_NAME blocked_2
#define STEP (2 * BLOCK)
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#define STEP_NAME indirect
#define STEP INDIRECT
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#undef WIDE
#define WIDE 0
#define STEP_NAME plain_1
#define STEP 1
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#define STEP_NAME plain_2
#define STEP 2
#include "cpu/conv/direct/conv_tile_fns.inc.c"
#define STEP_NAME any
#define STEP 0
#include "cpu/conv/direct/conv_tile_fns.inc.c"

extern const sni_conv_strips SNI_TIERED(sni_conv_strips);

SNI_DEFINE_TABLE(sni_conv_kernels) = {
#if LANES == 16
    .pixels = {0, 14, 14, 9, 7},
#elif LANES == 8
    .pixels = {0, 12, 6, 4},
#else
    .pixels = {0, 6},
#endif
    .tile = {[SNI_CONV_BLOCKED_1] = conv_blocked_1_allxtiles,
             [SNI_CONV_BLOCKED_2] = conv_blocked_2_allxtiles,
             [SNI_CONV_INDIRECT] = conv_indirect_allxtiles,
             [SNI_CONV_PLAIN_1] = conv_plain_1_allxtiles,
             [SNI_CONV_PLAIN_2] = conv_plain_2_allxtiles,
             [SNI_CONV_ANY] = conv_any_allxtiles},
    .strips = &SNI_TIERED(sni_conv_strips),
};
