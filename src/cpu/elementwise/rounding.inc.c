/* rounding.inc.c - rows of numbers, rounded by vectors: compilers take floorf and its like one
 * number at a time. */

/* `way` is a constant at every call. */
static inline __attribute__((always_inline)) void rounded_row(const float *x, float *y, int64_t n,
                                                              vf (*way)(vf)) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, way(load(x + i)));
    if (i < n) store_some(y + i, n - i, way(load_some(x + i, n - i, 0)));
}

static void floor_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    rounded_row(x, y, n, floor_vf);
}

static void ceil_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    rounded_row(x, y, n, ceil_vf);
}

static void round_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    rounded_row(x, y, n, round_vf);
}
