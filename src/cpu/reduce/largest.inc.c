/* largest.inc.c - the largest of weighted runs of elements that lie at any places. */

/* The largest of what is in `most` and of samples, each the largest of four weighted places. NaN is
 * never larger, and a sample that begins with it counts for nothing. */
static inline __attribute__((always_inline)) vf
most_of(const float *w, const int64_t *at, int64_t count, const float *x, vf most, int64_t n) {
    for (int64_t j = 0; j < count; j += 4) {
        vf sample = splat(0);
        UNROLL for (int i = 0; i < 4; i++) {
            const float *from = x + at[j + i];
            vf v = splat(w[j + i]) * (n < LANES ? load_some(from, n, 0) : load(from));
            sample = i ? max_vf(sample, v) : v;
        }
        most = max_vf(most, sample);
    }
    return most;
}

static void most_places(const float *w, const int64_t *at, int64_t count, const float *x, int64_t n,
                        float *y, bool add) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, most_of(w, at, count, x + i, add ? load(y + i) : splat(-INFINITY), LANES));
    if (i < n) {
        vf most = add ? load_some(y + i, n - i, 0) : splat(-INFINITY);
        store_some(y + i, n - i, most_of(w, at, count, x + i, most, n - i));
    }
}
