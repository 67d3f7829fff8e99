/* Maxima over windows for one type. LOWEST is what no element is below; IS_NAN tells. A
 * NaN counts only where there is nothing else. */

static void FN(max_row)(const sni_pool *pool, int64_t plane, int64_t row) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    int64_t at = (plane * pool->out_rows + row) * w->out[last];
    T *restrict y = (T *)pool->y + at;
    int64_t *restrict indices = pool->indices ? pool->indices + at : NULL;
    int64_t lo, hi, shift, from, to, stride = w->stride[last];
    for (int64_t o = 0; o < w->out[last]; o++) y[o] = LOWEST;
    for (int64_t o = 0; indices && o < w->out[last]; o++) indices[o] = -1;
    sni_window_last_taps(w, &from, &to);
    sni_window_rows r;
    for (bool more = sni_window_rows_first(w, &r, row); more; more = sni_window_rows_next(w, &r)) {
        const T *src = x + r.in_row * w->in[last];
        for (int64_t tap = from; tap < to; tap++) {
            sni_window_span(w, tap, &lo, &hi, &shift);
            if (!indices) {
                for (int64_t o = lo; o < hi; o++) {
                    T v = src[o * stride + shift];
                    y[o] = v > y[o] ? v : y[o];
                }
                continue;
            }
            for (int64_t o = lo; o < hi; o++) {
                T v = src[o * stride + shift];
                if (indices[o] >= 0 && !(v > y[o]) && !IS_NAN(y[o])) continue;
                y[o] = v;
                indices[o] = r.in_row * w->in[last] + o * stride + shift;
            }
        }
    }
}

#ifdef T_FLOAT
static void FN(global_max)(const sni_pool *pool, int64_t plane, int64_t row) {
    (void)row;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    T most = LOWEST;
    for (int64_t i = 0; i < pool->in_plane; i++) most = x[i] > most ? x[i] : most;
    ((T *)pool->y)[plane] = most;
}
#endif
