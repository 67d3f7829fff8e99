/* transpose.inc.c - blocks of LANES x LANES floats turned in registers, and panels packed so. */

/* Elements of a and b in turns: the first halves, the second halves. */
#if LANES == 16
static inline vf zip_low(vf a, vf b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
static inline vf zip_high(vf a, vf b) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15,
                                   31);
}
#elif LANES == 8
static inline vf zip_low(vf a, vf b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
static inline vf zip_high(vf a, vf b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
#else
static inline vf zip_low(vf a, vf b) {
    return __builtin_shufflevector(a, b, 0, 4, 1, 5);
}
static inline vf zip_high(vf a, vf b) {
    return __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
#endif

/* Rows become columns: after log2(LANES) rounds of zipping row i with row i + LANES / 2. */
static inline __attribute__((always_inline)) void turn_block(vf r[LANES]) {
    UNROLL
    for (int round = 1; round < LANES; round *= 2) {
        vf t[LANES];
        UNROLL
        for (int i = 0; i < LANES / 2; i++) {
            t[2 * i] = zip_low(r[i], r[i + LANES / 2]);
            t[2 * i + 1] = zip_high(r[i], r[i + LANES / 2]);
        }
        UNROLL
        for (int i = 0; i < LANES; i++) r[i] = t[i];
    }
}

/* to[p * width + i] = from[i * step + p] for p in [0, k) and up to LANES rows i; `room` columns may
 * be written at each p, zeros from `count` on. */
static void pack_turned_group(const sni_loose_float *from, int64_t step, int64_t count,
                              int64_t room, int width, int64_t k, float *to) {
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        vf r[LANES];
        for (int i = 0; i < LANES; i++) r[i] = i < count ? load(from + i * step + p) : splat(0);
        turn_block(r);
        /* A store may run into the next p's place, which is written later; not behind the last. */
        bool whole = room >= LANES || p + LANES < k;
        for (int q = 0; q < LANES; q++) {
            if (whole)
                store(to + (p + q) * width, r[q]);
            else
                memcpy(to + (p + q) * width, &r[q], (size_t)room * sizeof *to);
        }
    }
    for (; p < k; p++) {
        for (int64_t i = 0; i < count; i++) to[p * width + i] = from[i * step + p];
        for (int64_t i = count; i < room && i < LANES; i++) to[p * width + i] = 0;
    }
}

static void pack_turned(const sni_loose_float *from, int64_t step, int64_t count, int width,
                        int64_t k, float *to) {
    for (int64_t i = 0; i < width; i += LANES) {
        int64_t here = count - i < 0 ? 0 : count - i < LANES ? count - i : LANES;
        pack_turned_group(here ? from + i * step : from, step, here, width - i, width, k, to + i);
    }
}

/* to[j * to_step + i] = from[i * from_step + j] for a matrix of `rows` by `columns`. */
static void turn_matrix(const float *from, int64_t from_step, int64_t rows, int64_t columns,
                        float *to, int64_t to_step) {
    int64_t i = 0;
    for (; i + LANES <= rows; i += LANES) {
        int64_t j = 0;
        for (; j + LANES <= columns; j += LANES) {
            vf r[LANES];
            UNROLL
            for (int q = 0; q < LANES; q++) r[q] = load(from + (i + q) * from_step + j);
            turn_block(r);
            UNROLL
            for (int q = 0; q < LANES; q++) store(to + (j + q) * to_step + i, r[q]);
        }
        for (; j < columns; j++)
            for (int q = 0; q < LANES; q++) to[j * to_step + i + q] = from[(i + q) * from_step + j];
    }
    for (; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) to[j * to_step + i] = from[i * from_step + j];
}

/* to[p * width + i] = from[p * k_step + i] for i < count, zeros up to width. */
static void pack_straight(const sni_loose_float *from, int64_t k_step, int64_t count, int width,
                          int64_t k, float *to) {
    if (count == width && width % LANES == 0) {
        for (int64_t p = 0; p < k; p++, from += k_step, to += width)
            for (int i = 0; i < width; i += LANES) store(to + i, load(from + i));
        return;
    }
    for (int64_t p = 0; p < k; p++, from += k_step, to += width) {
        for (int64_t i = 0; i < width; i += LANES) {
            vf v = i + LANES <= count ? load(from + i)
                   : i < count        ? load_some(from + i, count - i, 0)
                                      : splat(0);
            /* A store may run into the next row's place, which is written later. */
            if (i + LANES <= width || p + 1 < k)
                store(to + i, v);
            else
                store_some(to + i, width - i, v);
        }
    }
}
