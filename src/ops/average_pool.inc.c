/* Means over windows for one type. */

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
static void FN(sum_window)(const sni_pool *pool, int64_t plane, int64_t row, T *restrict y) {
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
            if (s->lo < s->hi)
                FN(add_row)(y + s->lo, src + s->lo * stride + s->shift, s->hi - s->lo, stride);
        }
    }
}

static void FN(average)(const sni_pool *pool, int64_t plane, int64_t row) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    bool padding = pool->params->count_include_pad != 0;
    T *restrict y = (T *)pool->y + (plane * pool->out_rows + row) * w->out[last];
    FN(sum_window)(pool, plane, row, y);
    T outer = 1;
    int64_t at = row;
    for (int i = last - 1; i >= 0; i--) {
        outer *= (T)sni_window_taps(w, i, at % w->out[i], padding);
        at /= w->out[i];
    }
    int64_t lo = 0, hi = w->out[last]; /* the outputs under which all taps are inside */
    for (int64_t i = 0; i < pool->n_spans; i++) {
        if (pool->spans[i].lo > lo) lo = pool->spans[i].lo;
        if (pool->spans[i].hi < hi) hi = pool->spans[i].hi;
    }
    if (pool->n_spans < w->kernel[last] || lo > hi) lo = hi = 0;
    T full = outer * (T)w->kernel[last];
    for (int64_t o = 0; o < lo; o++) y[o] /= outer * (T)sni_window_taps(w, last, o, padding);
    for (int64_t o = lo; o < hi; o++) y[o] /= full;
    for (int64_t o = hi; o < w->out[last]; o++)
        y[o] /= outer * (T)sni_window_taps(w, last, o, padding);
}

static void FN(global_average)(const sni_pool *pool, int64_t plane, int64_t row) {
    (void)row;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    T sums[32] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 32 <= pool->in_plane; i += 32)
        for (int j = 0; j < 32; j++) sums[j] += x[i + j];
    for (; i < pool->in_plane; i++) sum += x[i];
    for (int j = 0; j < 32; j++) sum += sums[j];
    ((T *)pool->y)[plane] = sum / (T)pool->in_plane;
}
