/* rotate.inc.c - pairs of a head's elements turned by their angles; y may be x. */

/* Elements i and half + i are a pair. */
static void rotate_halves(const void *from, const void *cos_of, const void *sin_of, int64_t half,
                          void *to) {
    const float *x = from, *cosines = cos_of, *sines = sin_of;
    float *y = to;
    int64_t i = 0;
    for (; i + LANES <= half; i += LANES) {
        vf u = load(x + i), v = load(x + half + i), c = load(cosines + i), s = load(sines + i);
        store(y + i, u * c - v * s);
        store(y + half + i, u * s + v * c);
    }
    for (; i < half; i++) {
        float u = x[i], v = x[half + i];
        y[i] = u * cosines[i] - v * sines[i];
        y[half + i] = u * sines[i] + v * cosines[i];
    }
}

/* Elements 2 i and 2 i + 1 are a pair. */
static void rotate_neighbours(const void *from, const void *cos_of, const void *sin_of,
                              int64_t half, void *to) {
    const float *x = from, *cosines = cos_of, *sines = sin_of;
    float *y = to;
    SAFE_LOOP for (int64_t i = 0; i < half; i++) {
        float u = x[2 * i], v = x[2 * i + 1];
        y[2 * i] = u * cosines[i] - v * sines[i];
        y[2 * i + 1] = u * sines[i] + v * cosines[i];
    }
}
