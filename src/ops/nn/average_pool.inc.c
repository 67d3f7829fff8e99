/* average_pool.inc.c - template: means over windows for type T. Instances: average_pool.c for
 * floats, cpu/reduce/pool.isa.c for float. */

/* y[o] += x[o * stride] for n outputs. */
static inline void FN(add_row)(T *restrict y, const T *restrict x, int64_t n, int64_t stride) {
    if (stride == 1)
        for (int64_t o = 0; o < n; o++) y[o] += x[o];
    else if (stride == 2)
        for (int64_t o = 0; o < n; o++) y[o] += x[2 * o];
    else
        for (int64_t o = 0; o < n; o++) y[o] += x[o * stride];
}

/* Adds the elements under every window of an output row. */
static void FN(sum_window)(const sni_pool_window *pool, int64_t plane, int64_t row, T *restrict y) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    int64_t stride = w->stride[last];
    for (int64_t o = 0; o < w->out[last]; o++) y[o] = 0;
    sni_window_rows r;
    for (bool more = sni_window_rows_first(w, &r, row); more; more = sni_window_rows_next(w, &r)) {
        const T *src = x + r.in_row * w->in[last];
        for (int64_t i = 0; i < pool->n_spans; i++) {
            const sni_pool_span *s = &pool->spans[i];
            if (sni_pool_stopping(pool)) return;
            if (s->lo < s->hi)
                FN(add_row)(y + s->lo, src + s->lo * stride + s->shift, s->hi - s->lo, stride);
        }
    }
}

/* Sums of an output row become means. */
static void FN(divide_row)(const sni_pool_window *pool, int64_t row, T *restrict y) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    bool padding = pool->params->count_include_pad != 0;
    T outer = 1;
    int64_t at = row;
    for (int i = last - 1; i >= 0; i--) {
        outer *= (T)sni_window_taps(w, i, at % w->out[i], padding);
        at /= w->out[i];
    }
    const float *taps = pool->taps;
    for (int64_t o = 0; o < w->out[last]; o++) y[o] /= outer * (T)taps[o];
}

static void FN(average)(const sni_pool_window *pool, int64_t plane, int64_t row) {
    T *y = (T *)pool->y + (plane * pool->out_rows + row) * pool->window.out[pool->window.rank - 1];
    FN(sum_window)(pool, plane, row, y);
    FN(divide_row)(pool, row, y);
}
