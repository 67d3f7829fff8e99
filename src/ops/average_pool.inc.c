/* Means over windows for one type. */

/* Adds the elements under every window of an output row. */
static void FN(sum_row)(const sni_pool *pool, int64_t plane, int64_t row, T *restrict y) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    int64_t lo, hi, shift, from, to, stride = w->stride[last];
    for (int64_t o = 0; o < w->out[last]; o++) y[o] = 0;
    sni_window_last_taps(w, &from, &to);
    sni_window_rows r;
    for (bool more = sni_window_rows_first(w, &r, row); more; more = sni_window_rows_next(w, &r)) {
        const T *src = x + r.in_row * w->in[last];
        for (int64_t tap = from; tap < to; tap++) {
            sni_window_span(w, tap, &lo, &hi, &shift);
            for (int64_t o = lo; o < hi; o++) y[o] += src[o * stride + shift];
        }
    }
}

static void FN(average)(const sni_pool *pool, int64_t plane, int64_t row) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    bool padding = pool->params->count_include_pad != 0;
    T *y = (T *)pool->y + (plane * pool->out_rows + row) * w->out[last];
    FN(sum_row)(pool, plane, row, y);
    T outer = 1;
    int64_t at = row;
    for (int i = last - 1; i >= 0; i--) {
        outer *= (T)sni_window_taps(w, i, at % w->out[i], padding);
        at /= w->out[i];
    }
    for (int64_t o = 0; o < w->out[last]; o++)
        y[o] /= outer * (T)sni_window_taps(w, last, o, padding);
}

static void FN(global_average)(const sni_pool *pool, int64_t plane, int64_t row) {
    (void)row;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    T sums[8] = {0}, sum = 0;
    int64_t i = 0;
    for (; i + 8 <= pool->in_plane; i += 8)
        for (int j = 0; j < 8; j++) sums[j] += x[i + j];
    for (; i < pool->in_plane; i++) sum += x[i];
    for (int j = 0; j < 8; j++) sum += sums[j];
    ((T *)pool->y)[plane] = sum / (T)pool->in_plane;
}
