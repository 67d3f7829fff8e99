/* pool.inc.c - pools of float32, row by row: first all input rows under an output row are joined to
 * one, which stands between what changes nothing, then neighbours along it are. */

enum {
    POOL_ROWS = 64,   /* most input rows under a window */
    POOL_LINE = 4096, /* most elements of the joined row */
};

/* Even elements of the 2 * LANES - 1 from p on. */
static inline vf load_even(const float *p) {
    vf a = load(p), b = load(p + LANES - 1);
#if LANES == 16
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
#elif LANES == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
#else
    return __builtin_shufflevector(a, b, 0, 2, 5, 7);
#endif
}

/* `max` is a constant at every call. A NaN is not taken for a maximum. */
static inline __attribute__((always_inline)) vf pool_join(bool max, vf a, vf v) {
    return max ? max_vf(a, v) : a + v;
}

static inline __attribute__((always_inline)) void pool_down(bool max, const float *const *rows,
                                                            int n_rows, int64_t n, float *line) {
    const vf none = splat(max ? -INFINITY : 0);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf a = none;
        for (int r = 0; r < n_rows; r++) a = pool_join(max, a, load(rows[r] + i));
        store(line + i, a);
    }
    if (i == n) return;
    vf a = none;
    for (int r = 0; r < n_rows; r++)
        a = pool_join(max, a, load_some(rows[r] + i, n - i, max ? -INFINITY : 0));
    store(line + i, a);
}

static inline __attribute__((always_inline)) void pool_along(bool max, const sni_window *w,
                                                             const float *line, float *y) {
    const int last = w->rank - 1;
    const int64_t n = w->out[last], stride = w->stride[last], step = w->dilation[last];
    const int64_t taps = w->kernel[last];
    for (int64_t o = 0; o < n && stride <= 2; o += LANES) {
        vf a = splat(max ? -INFINITY : 0);
        const float *x = line + o * stride;
        if (stride == 1)
            for (int64_t t = 0; t < taps; t++) a = pool_join(max, a, load(x + t * step));
        else
            for (int64_t t = 0; t < taps; t++) a = pool_join(max, a, load_even(x + t * step));
        if (o + LANES <= n)
            store(y + o, a);
        else
            store_some(y + o, n - o, a);
    }
    for (int64_t o = 0; o < n && stride > 2; o++) {
        float a = max ? -INFINITY : 0;
        for (int64_t t = 0; t < taps; t++) {
            float v = line[o * stride + t * step];
            a = max ? (v > a ? v : a) : a + v;
        }
        y[o] = a;
    }
}

/* The folded window of every output of a row; false if it is too large for this. */
static inline __attribute__((always_inline)) bool pool_fold(bool max, const sni_pool *pool,
                                                            int64_t plane, int64_t row, float *y) {
    const sni_window *w = &pool->window;
    const int last = w->rank - 1;
    const int64_t in = w->in[last], before = w->begin[last];
    const float *x = (const float *)pool->x + plane * pool->in_plane, *rows[POOL_ROWS];
    float line[POOL_LINE + 3 * LANES];
    int64_t reach = (w->out[last] - 1) * w->stride[last] + sni_window_extent(w, last);
    int64_t end = before + in > reach ? before + in : reach;
    if (end > POOL_LINE) return false;
    int n = 0;
    sni_window_rows r;
    for (bool more = sni_window_rows_first(w, &r, row); more; more = sni_window_rows_next(w, &r)) {
        if (n == POOL_ROWS) return false;
        rows[n++] = x + r.in_row * in;
    }
    for (int64_t i = 0; i < before; i++) line[i] = max ? -INFINITY : 0;
    pool_down(max, rows, n, in, line + before);
    /* Outputs beyond the last one read up to two vectors more. */
    for (int64_t i = before + in; i < end + 2 * LANES; i++) line[i] = max ? -INFINITY : 0;
    pool_along(max, w, line, y);
    return true;
}

static void max_pool(const sni_pool *pool, int64_t plane, int64_t row) {
    float *y =
        (float *)pool->y + (plane * pool->out_rows + row) * pool->window.out[pool->window.rank - 1];
    if (!pool_fold(true, pool, plane, row, y)) max_window_f32(pool, plane, row);
}

static void global_average_pool(const sni_pool *pool, int64_t plane, int64_t row) {
    (void)row;
    const int64_t n = pool->in_plane;
    const float *x = (const float *)pool->x + plane * n;
    vf a = splat(0), b = a;
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        a += load(x + i);
        b += load(x + i + LANES);
    }
    for (; i + LANES <= n; i += LANES) a += load(x + i);
    if (i < n) b += load_some(x + i, n - i, 0);
    ((float *)pool->y)[plane] = sum_lanes(a + b) / (float)n;
}

static void average_pool(const sni_pool *pool, int64_t plane, int64_t row) {
    const sni_window *w = &pool->window;
    int last = w->rank - 1;
    float *y = (float *)pool->y + (plane * pool->out_rows + row) * w->out[last];
    if (pool_fold(false, pool, plane, row, y))
        divide_row_f32(pool, row, y);
    else
        average_f32(pool, plane, row);
}
