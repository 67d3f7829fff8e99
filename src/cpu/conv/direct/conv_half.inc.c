/* conv_half.inc.c - strips of an output block whose upper half is padding, for vectors of a whole
 * block: half a vector for each pixel, which takes half the time where wide vectors take two turns.
 * The upper half gets zeros, or what the activation makes of them. */

#define INLINE inline __attribute__((always_inline))
#define ANEW(p) __asm__("" : "+r"(p))

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

#undef HALVES
#undef VH
#undef ANEW
#undef INLINE
