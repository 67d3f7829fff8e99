/* max_pool.inc.c - template: maxima over windows for type T. LOWEST is the lowest value; IS_NAN(v)
 * tells NaN. A NaN counts only where a window has nothing else. Instances: max_pool.c for four
 * types, cpu/reduce/pool.isa.c for float. */

/* y[o] = max(y[o], x[o * stride]) for n outputs. */
static inline void FN(raise_row)(T *restrict y, const T *restrict x, int64_t n, int64_t stride) {
    if (stride == 1)
        for (int64_t o = 0; o < n; o++) y[o] = x[o] > y[o] ? x[o] : y[o];
    else if (stride == 2)
        for (int64_t o = 0; o < n; o++) y[o] = x[2 * o] > y[o] ? x[2 * o] : y[o];
    else
        for (int64_t o = 0; o < n; o++) y[o] = x[o * stride] > y[o] ? x[o * stride] : y[o];
}

/* Asks of every element of a window whether it replaces the maximum so far. */
static void FN(find_taps)(T *restrict y, int64_t *restrict at, const T *restrict x,
                          const sni_pool_span *s, int64_t stride, int64_t first) {
    for (int64_t o = s->lo; o < s->hi; o++) {
        T v = x[o * stride + s->shift];
        if (at[o] >= 0 && !(v > y[o]) && !IS_NAN(y[o])) continue;
        y[o] = v;
        at[o] = first + o * stride + s->shift;
    }
}

#ifdef T_FLOAT
/* The same without a branch. A NaN, and an element that equals LOWEST, is never selected. */
static void FN(raise_taps)(T *restrict y, int64_t *restrict at, const T *restrict x,
                           const sni_pool_span *s, int64_t stride, int64_t first) {
    for (int64_t o = s->lo; o < s->hi; o++) {
        T v = x[o * stride + s->shift];
        int64_t above = -(int64_t)(v > y[o]);
        y[o] = v > y[o] ? v : y[o];
        at[o] ^= (at[o] ^ (first + o * stride + s->shift)) & above;
    }
}
#endif

/* One output row and the indices of its elements, by one of the two functions above; false if some
 * element has no index. */
static bool FN(find_row)(const sni_pool_window *pool, const T *x, int64_t row, T *restrict y,
                         int64_t *restrict at,
                         void (*taps)(T *restrict y, int64_t *restrict at, const T *restrict x,
                                      const sni_pool_span *s, int64_t stride, int64_t first)) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    int64_t lowest = 0;
    sni_window_rows r;
    for (int64_t o = 0; o < w->out[last]; o++) y[o] = LOWEST;
    for (int64_t o = 0; o < w->out[last]; o++) at[o] = -1;
    for (bool more = sni_window_rows_first(w, &r, row); more; more = sni_window_rows_next(w, &r)) {
        int64_t first = r.in_row * w->in[last];
        for (int64_t i = 0; i < pool->n_spans; i++) {
            const sni_pool_span *s = &pool->spans[i];
            if (s->lo >= s->hi) continue;
            if (sni_pool_stopping(pool)) return true;
            taps(y, at, x + first, s, w->stride[last], first);
        }
    }
    for (int64_t o = 0; o < w->out[last]; o++) lowest |= at[o];
    return lowest >= 0;
}

static void FN(max_window)(const sni_pool_window *pool, int64_t plane, int64_t row) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    int64_t at = (plane * pool->out_rows + row) * w->out[last];
    T *restrict y = (T *)pool->y + at;
    int64_t stride = w->stride[last];
    if (pool->indices) {
#ifdef T_FLOAT /* whole numbers are often the lowest of all */
        if (FN(find_row)(pool, x, row, y, pool->indices + at, FN(raise_taps))) return;
#endif
        FN(find_row)(pool, x, row, y, pool->indices + at, FN(find_taps));
        return;
    }
    for (int64_t o = 0; o < w->out[last]; o++) y[o] = LOWEST;
    sni_window_rows r;
    for (bool more = sni_window_rows_first(w, &r, row); more; more = sni_window_rows_next(w, &r)) {
        const T *src = x + r.in_row * w->in[last];
        for (int64_t i = 0; i < pool->n_spans; i++) {
            const sni_pool_span *s = &pool->spans[i];
            if (s->lo >= s->hi) continue;
            if (sni_pool_stopping(pool)) return;
            FN(raise_row)(y + s->lo, src + s->lo * stride + s->shift, s->hi - s->lo, stride);
        }
    }
}

#ifdef T_FLOAT
static void FN(global_max)(const sni_pool_window *pool, int64_t plane, int64_t row) {
    (void)row;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    T lanes[32], most = LOWEST;
    int64_t i = 0;
    for (int j = 0; j < 32; j++) lanes[j] = LOWEST;
    for (; i + 32 <= pool->in_plane; i += 32)
        for (int j = 0; j < 32; j++) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (; i < pool->in_plane; i++) most = x[i] > most ? x[i] : most;
    for (int j = 0; j < 32; j++) most = lanes[j] > most ? lanes[j] : most;
    ((T *)pool->y)[plane] = most;
}
#endif
