/* conv_tile.inc.c - the direct convolution's micro-kernel: a tile of output stays in registers over
 * all channels and taps. */

enum { BLOCK = LANES == 16 ? 16 : 8, VECTORS = BLOCK / LANES };

/* Activations that the epilogue leaves to rows in memory. */
static void act_tile(const sni_conv_tile *t, int pixels, int width) {
    sni_epilogue e = {.act = t->epilogue->act, .p0 = t->epilogue->p0, .p1 = t->epilogue->p1};
    for (int b = 0; b < width; b++)
        finish_row(&e, t->y + b * t->y_block, 0, NULL, NULL, (int64_t)pixels * BLOCK);
}

/* Bounds of activations that are no more than bounds; false for others. */
static inline bool act_bounds(const sni_conv_epilogue *e, float *low, float *high) {
    *low = e->act == SNI_ACT_CLIP ? e->p0 : 0;
    *high = e->act == SNI_ACT_CLIP ? e->p1 : __builtin_inff();
    return e->act == SNI_ACT_RELU || e->act == SNI_ACT_CLIP;
}

/* `pixels` and `width`, and `step` where it is not 0, are constants at every call, so that the
 * loops unroll and the tile needs no memory. A step of 0 is t->x_pixel. */
static inline __attribute__((always_inline)) void conv_tile(const sni_conv_tile *t, int64_t step,
                                                            int pixels, int width) {
    vf sum[SNI_CONV_MOST_PIXELS][SNI_CONV_MOST_WIDTH * VECTORS];
    const int vectors = width * VECTORS;
    if (!step) step = t->x_pixel;
    UNROLL
    for (int p = 0; p < pixels; p++) UNROLL
    for (int v = 0; v < vectors; v++) sum[p][v] = splat(0);
    if (t->add) {
        UNROLL
        for (int p = 0; p < pixels; p++) UNROLL
        for (int v = 0; v < vectors; v++)
            sum[p][v] = load(t->y + (v / VECTORS) * t->y_block + p * BLOCK + v % VECTORS * LANES);
    }
    const int64_t w_out = t->w_out;
    for (int64_t b = 0; b < t->blocks; b++) {
        const int64_t channels = b + 1 < t->blocks ? t->channels : t->last;
        for (int64_t r = 0; r < t->rows; r++) {
            for (int64_t tap = 0; tap < t->taps; tap++) {
                const float *x = t->x + b * t->x_block + r * t->x_row + tap * t->x_tap;
                const float *w = t->w + b * t->w_block + r * t->w_row + tap * t->w_tap;
                for (int64_t c = 0; c < channels; c++, x++, w += BLOCK) {
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
            }
        }
    }
    const sni_conv_epilogue *e = t->epilogue;
    bool late = false;
    if (t->finish) {
        float low, high;
        if (e->bias) {
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
                sum[p][v] += load(e->residual + (v / VECTORS) * t->y_block + p * BLOCK +
                                  v % VECTORS * LANES);
        }
        if (act_bounds(e, &low, &high)) {
            vf least = splat(low), most = splat(high);
            UNROLL
            for (int p = 0; p < pixels; p++) UNROLL
            for (int v = 0; v < vectors; v++) sum[p][v] = min_vf(max_vf(sum[p][v], least), most);
        } else {
            late = e->act != SNI_ACT_NONE;
        }
    }
    UNROLL
    for (int p = 0; p < pixels; p++) UNROLL
    for (int v = 0; v < vectors; v++)
        store(t->y + (v / VECTORS) * t->y_block + p * BLOCK + v % VECTORS * LANES, sum[p][v]);
    if (late) act_tile(t, pixels, width);
}
