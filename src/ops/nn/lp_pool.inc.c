/* lp_pool.inc.c - template by type (typed.h): LpPool. Instances: lp_pool.c, for float and double.
 */

/* Norms over windows for one type. */

/* |v|^p for p >= 1, without pow() for the usual ones. */
static T FN(power)(T v, int64_t p) {
    v = MATH(fabs)(v);
    return p == 1 ? v : p == 2 ? v * v : MATH(pow)(v, (T)p);
}

static T FN(root)(T v, int64_t p) {
    return p == 1 ? v : p == 2 ? MATH(sqrt)(v) : MATH(pow)(v, 1 / (T)p);
}

static void FN(lp)(const sni_pool_window *pool, int64_t plane, int64_t row) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    int64_t p = pool->params->p;
    const T *x = (const T *)pool->x + plane * pool->in_plane;
    T *restrict y = (T *)pool->y + (plane * pool->out_rows + row) * w->out[last];
    int64_t lo, hi, shift, from, to, stride = w->stride[last];
    for (int64_t o = 0; o < w->out[last]; o++) y[o] = 0;
    sni_window_last_taps(w, &from, &to);
    sni_window_rows r;
    for (bool more = sni_window_rows_first(w, &r, row); more; more = sni_window_rows_next(w, &r)) {
        const T *src = x + r.in_row * w->in[last];
        for (int64_t tap = from; tap < to; tap++) {
            if (sni_pool_stopping(pool)) return;
            sni_window_span(w, tap, &lo, &hi, &shift);
            for (int64_t o = lo; o < hi; o++) y[o] += FN(power)(src[o * stride + shift], p);
        }
    }
    for (int64_t o = 0; o < w->out[last]; o++) y[o] = FN(root)(y[o], p);
}
