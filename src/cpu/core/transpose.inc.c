/* transpose.inc.c - blocks of LANES x LANES floats turned in registers, and panels packed so. */

/* Rows become columns. Fours of rows are turned inside quarters (halves, wholes) of the vectors
 * first; then what belongs together is brought together. */
static inline __attribute__((always_inline)) void transpose_block(vf r[LANES]) {
    vf t[LANES];
    UNROLL
    for (int i = 0; i < LANES; i += 4) {
#if LANES == 16
#define LOW(a, b) (vf) _mm512_unpacklo_ps((__m512)(a), (__m512)(b))
#define HIGH(a, b) (vf) _mm512_unpackhi_ps((__m512)(a), (__m512)(b))
#define LOW2(a, b) (vf) _mm512_unpacklo_pd((__m512d)(a), (__m512d)(b))
#define HIGH2(a, b) (vf) _mm512_unpackhi_pd((__m512d)(a), (__m512d)(b))
#elif LANES == 8
#define LOW(a, b) (vf) _mm256_unpacklo_ps((__m256)(a), (__m256)(b))
#define HIGH(a, b) (vf) _mm256_unpackhi_ps((__m256)(a), (__m256)(b))
#define LOW2(a, b) (vf) _mm256_unpacklo_pd((__m256d)(a), (__m256d)(b))
#define HIGH2(a, b) (vf) _mm256_unpackhi_pd((__m256d)(a), (__m256d)(b))
#else
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW2(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define HIGH2(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#endif
        vf low = LOW(r[i], r[i + 1]), high = HIGH(r[i], r[i + 1]);
        vf low2 = LOW(r[i + 2], r[i + 3]), high2 = HIGH(r[i + 2], r[i + 3]);
        t[i] = LOW2(low, low2);
        t[i + 1] = HIGH2(low, low2);
        t[i + 2] = LOW2(high, high2);
        t[i + 3] = HIGH2(high, high2);
#undef LOW
#undef HIGH
#undef LOW2
#undef HIGH2
    }
#if LANES == 16
#define EVEN(a, b) (vf) _mm512_shuffle_f32x4((__m512)(a), (__m512)(b), 0x88)
#define ODD(a, b) (vf) _mm512_shuffle_f32x4((__m512)(a), (__m512)(b), 0xdd)
    UNROLL
    for (int c = 0; c < 4; c++) {
        vf even = EVEN(t[c], t[c + 4]), odd = ODD(t[c], t[c + 4]);
        vf even2 = EVEN(t[c + 8], t[c + 12]), odd2 = ODD(t[c + 8], t[c + 12]);
        r[c] = EVEN(even, even2);
        r[c + 4] = EVEN(odd, odd2);
        r[c + 8] = ODD(even, even2);
        r[c + 12] = ODD(odd, odd2);
    }
#undef EVEN
#undef ODD
#elif LANES == 8
    UNROLL
    for (int c = 0; c < 4; c++) {
        r[c] = (vf)_mm256_permute2f128_ps((__m256)t[c], (__m256)t[c + 4], 0x20);
        r[c + 4] = (vf)_mm256_permute2f128_ps((__m256)t[c], (__m256)t[c + 4], 0x31);
    }
#else
    UNROLL
    for (int c = 0; c < 4; c++) r[c] = t[c];
#endif
}

/* The first `columns` elements of `count` rows, zeros everywhere else, turned. */
static inline void load_transposed(const sni_unaligned_float *from, int64_t step, int64_t count,
                                   int64_t columns, vf r[LANES]) {
    static const float zeros[LANES];
    if (columns >= LANES) {
        UNROLL
        for (int i = 0; i < LANES; i++) r[i] = load(i < count ? from + i * step : zeros);
    } else {
        UNROLL
        for (int i = 0; i < LANES; i++)
            r[i] = i < count ? load_some(from + i * step, columns, 0) : splat(0);
    }
    transpose_block(r);
}

/* to[p * width + i] = from[i * step + p] for p in [0, k) and up to LANES rows i; `room` columns may
 * be written at each p, zeros from `count` on. */
static void pack_transposed_group(const sni_unaligned_float *from, int64_t step, int64_t count,
                                  int64_t room, int width, int64_t k, float *to) {
    int64_t p = 0;
    for (; p + LANES <= k; p += LANES) {
        vf r[LANES];
        load_transposed(from + p, step, count, LANES, r);
        /* A store may run into the next p's place, which is written later; not behind the last. */
        bool whole = room >= LANES || p + LANES < k;
        if (whole) {
            UNROLL
            for (int q = 0; q < LANES; q++) store(to + (p + q) * width, r[q]);
        } else {
            UNROLL
            for (int q = 0; q < LANES; q++) store_some(to + (p + q) * width, room, r[q]);
        }
    }
    for (; p < k; p++) {
        for (int64_t i = 0; i < count; i++) to[p * width + i] = from[i * step + p];
        for (int64_t i = count; i < room && i < LANES; i++) to[p * width + i] = 0;
    }
}

static void pack_transposed(const sni_unaligned_float *from, int64_t step, int64_t count, int width,
                            int64_t k, float *to) {
    for (int64_t i = 0; i < width; i += LANES) {
        int64_t here = count - i < 0 ? 0 : count - i < LANES ? count - i : LANES;
        pack_transposed_group(here ? from + i * step : from, step, here, width - i, width, k,
                              to + i);
    }
}

/* A block of turn_matrix at an edge. */
static void transpose_edge(const sni_unaligned_float *from, int64_t from_step, int64_t rows,
                           int64_t columns, float *to, int64_t to_step) {
    vf r[LANES];
    load_transposed(from, from_step, rows, columns, r);
    for (int q = 0; q < LANES && q < columns; q++) {
        if (rows >= LANES)
            store(to + q * to_step, r[q]);
        else
            store_some(to + q * to_step, rows, r[q]);
    }
}

/* to[j * to_step + i] = from[i * from_step + j] for a matrix of `rows` by `columns`. */
static void transpose_matrix(const sni_unaligned_float *from, int64_t from_step, int64_t rows,
                             int64_t columns, float *to, int64_t to_step) {
    for (int64_t i = 0; i < rows; i += LANES) {
        int64_t j = 0;
        for (; i + LANES <= rows && j + LANES <= columns; j += LANES) {
            vf r[LANES];
            UNROLL
            for (int q = 0; q < LANES; q++) r[q] = load(from + (i + q) * from_step + j);
            transpose_block(r);
            UNROLL
            for (int q = 0; q < LANES; q++) store(to + (j + q) * to_step + i, r[q]);
        }
        for (; j < columns; j += LANES)
            transpose_edge(from + i * from_step + j, from_step, rows - i, columns - j,
                           to + j * to_step + i, to_step);
    }
}

static void pack_left(const sni_unaligned_float *from, int64_t step, int64_t count, int64_t k,
                      float *to) {
    for (int64_t p = 0; p < k; p += SNI_LEFT_STEPS, from += SNI_LEFT_STEPS) {
        const sni_unaligned_float *x = from;
        float *end = to + count * SNI_LEFT_STEPS, *last = to + MR * SNI_LEFT_STEPS;
        if (k - p >= SNI_LEFT_STEPS) {
            for (; to < end; to += SNI_LEFT_STEPS, x += step) {
                UNROLL
                for (int i = 0; i < SNI_LEFT_STEPS; i += LANES) store(to + i, load(x + i));
            }
        } else {
            for (; to < end; to += SNI_LEFT_STEPS, x += step)
                for (int64_t i = 0; i < SNI_LEFT_STEPS; i++) to[i] = i < k - p ? x[i] : 0;
        }
        for (; to < last; to += LANES) store(to, splat(0));
    }
}

/* to[p * width + i] = from[p * k_step + i] for i < count, zeros up to width. */
static void pack_straight(const sni_unaligned_float *from, int64_t k_step, int64_t count, int width,
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
