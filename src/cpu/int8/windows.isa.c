/* windows.isa.c - depthwise convolutions of bytes, for one tier: sums over taps of rows that were
 * widened to floats (sni_int_taps), and sums over windows of rows of bytes (sni_int_windows). */
#include "cpu/int8/windows.h"

#include "cpu/int8/simd_int.h"

/* ---- Taps ---- */

static inline vf multiply_add(vf a, vf b, vf sum) {
#if LANES == 16
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)sum);
#elif LANES == 8
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
#else
    return a * b + sum;
#endif
}

/* `vectors` vectors of outputs from `at` on: one load and one multiply-add per tap and vector. */
static inline __attribute__((always_inline)) void taps_of(const sni_int_taps *t, int64_t at,
                                                          int vectors) {
    vf sum[4];
    UNROLL
    for (int v = 0; v < vectors; v++) sum[v] = splat(0);
    for (int64_t p = 0; p < t->taps; p++) {
        const float *x = t->x[p] + at;
        vf w = splat(t->w[p]);
        UNROLL
        for (int v = 0; v < vectors; v++) sum[v] = multiply_add(load(x + v * LANES), w, sum[v]);
    }
    UNROLL
    for (int v = 0; v < vectors; v++) {
#if LANES == 16
        vi whole = (vi)_mm512_cvttps_epi32((__m512)sum[v]);
#elif LANES == 8
        vi whole = (vi)_mm256_cvttps_epi32((__m256)sum[v]);
#else
        vi whole = __builtin_convertvector(sum[v], vi);
#endif
        store_vi(t->y + at + v * LANES, whole);
    }
}

static void taps(const sni_int_taps *t) {
    int64_t at = 0;
    for (; t->n - at > 3 * LANES; at += 4 * LANES) taps_of(t, at, 4);
    for (; t->n - at > LANES; at += 2 * LANES) taps_of(t, at, 2);
    if (at < t->n) taps_of(t, at, 1);
}

/* ---- Windows ---- */

/* Lane i: the unit that starts at x + i * across, with across 1 or 2. One load, one flip and one or
 * two shuffles make a vector of units. */
#if LANES == 16
static inline vi window(const uint8_t *x, int64_t across, vi flip) {
    const __m512i one = _mm512_setr_epi32(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
    const __m512i two = _mm512_setr_epi32(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9);
#if defined(__AVX512VNNI__)
    const __m128i near = _mm_setr_epi8(0, 1, 2, 3, 1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6);
    const __m128i far = _mm_setr_epi8(0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7, 8, 9);
#else
    const __m128i near = _mm_setr_epi8(0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, -1, 4, -1);
    const __m128i far = _mm_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 4, -1, 5, -1, 6, -1, 7, -1);
#endif
    __m512i bytes = _mm512_xor_si512(_mm512_loadu_si512((const void *)x), (__m512i)flip);
    bytes = _mm512_permutexvar_epi32(across == 1 ? one : two, bytes);
    return (vi)_mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(across == 1 ? near : far));
}
#elif LANES == 8
static inline vi window(const uint8_t *x, int64_t across, vi flip) {
    const __m256i near = _mm256_setr_epi8(0, -1, 1, -1, 1, -1, 2, -1, 2, -1, 3, -1, 3, -1, 4, -1, 4,
                                          -1, 5, -1, 5, -1, 6, -1, 6, -1, 7, -1, 7, -1, 8, -1);
    const __m256i far = _mm256_setr_epi8(0, -1, 1, -1, 2, -1, 3, -1, 4, -1, 5, -1, 6, -1, 7, -1, 8,
                                         -1, 9, -1, 10, -1, 11, -1, 12, -1, 13, -1, 14, -1, 15, -1);
    __m256i bytes = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i_u *)x));
    bytes = _mm256_xor_si256(bytes, (__m256i)flip);
    return (vi)_mm256_shuffle_epi8(bytes, across == 1 ? near : far);
}
#else
static inline vi window(const uint8_t *x, int64_t across, vi flip) {
    vi units;
    uint8_t f = (uint8_t)flip[0];
    for (int i = 0; i < LANES; i++, x += across)
        units[i] = (x[0] ^ f) | (int32_t)((uint32_t)(x[1] ^ f) << 16);
    return units;
}
#endif

static void window_units(const uint8_t *x, int64_t across, uint8_t flip, int64_t n, int32_t *to) {
    vi flips = splat_vi((int32_t)(flip * 0x01010101u));
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store_vi(to + i, window(x + i * across, across, flips));
    if (i == n) return;
    int32_t some[LANES];
    store_vi(some, window(x + i * across, across, flips));
    for (int64_t k = 0; k < n - i; k++) to[i + k] = some[k];
}

enum { ROWS_AT_ONCE = 4 };

/* One vector of outputs in each of `rows` <= ROWS_AT_ONCE rows. Neighbouring output rows share
 * input rows, whose units are made once. Strides, kernel and rows are constants at most calls. */
static inline __attribute__((always_inline)) void windows_of(const sni_int_windows *w, int64_t at,
                                                             int64_t row, int rows, int64_t kernel,
                                                             int64_t down, int64_t across) {
    vi sum[ROWS_AT_ONCE], flip = splat_vi((int32_t)(w->flip * 0x01010101u));
    const uint8_t *x = w->x + row * down * w->x_row + at * across;
    UNROLL
    for (int o = 0; o < rows; o++) sum[o] = splat_vi(0);
    for (int64_t u = 0; u < w->units; u++) {
        UNROLL
        for (int64_t r = 0; r < (rows - 1) * down + kernel; r++) {
            vi units = window(x + r * w->x_row + u * GROUP, across, flip);
            UNROLL
            for (int o = 0; o < rows; o++) {
                int64_t t = r - o * down;
                if (t >= 0 && t < kernel)
                    sum[o] = dot(sum[o], units, splat_vi(w->w[t * w->units + u]));
            }
        }
    }
    UNROLL
    for (int o = 0; o < rows; o++) store_vi(w->y + (row + o) * w->y_step + at, sum[o]);
}

/* All outputs, for a kernel height and strides that are constants. */
static inline __attribute__((always_inline)) void
windows_as(const sni_int_windows *w, int64_t kernel, int64_t down, int64_t across) {
    for (int64_t at = 0; at < w->n; at += LANES) {
        int64_t row = 0;
        for (; row + ROWS_AT_ONCE <= w->rows; row += ROWS_AT_ONCE)
            windows_of(w, at, row, ROWS_AT_ONCE, kernel, down, across);
        for (; row < w->rows; row++) windows_of(w, at, row, 1, kernel, down, across);
    }
}

/* Any kernel and stride, one output row at a time. */
static void windows_any(const sni_int_windows *w) {
    for (int64_t row = 0; row < w->rows; row++)
        for (int64_t at = 0; at < w->n; at += LANES) {
            vi sum = splat_vi(0), flip = splat_vi((int32_t)(w->flip * 0x01010101u));
            const uint8_t *x = w->x + row * w->down * w->x_row + at * w->across;
            for (int64_t r = 0; r < w->kernel; r++)
                for (int64_t u = 0; u < w->units; u++)
                    sum = dot(sum, window(x + r * w->x_row + u * GROUP, w->across, flip),
                              splat_vi(w->w[r * w->units + u]));
            store_vi(w->y + row * w->y_step + at, sum);
        }
}

static void windows(const sni_int_windows *w) {
    if (w->kernel == 3 && w->down == 1 && w->across == 1)
        windows_as(w, 3, 1, 1);
    else if (w->kernel == 3 && w->down == 2 && w->across == 2)
        windows_as(w, 3, 2, 2);
    else if (w->kernel == 5 && w->down == 1 && w->across == 1)
        windows_as(w, 5, 1, 1);
    else if (w->kernel == 5 && w->down == 2 && w->across == 2)
        windows_as(w, 5, 2, 2);
    else
        windows_any(w);
}

SNI_DEFINE_TABLE(sni_int_windows_kernels) = {
    .taps = taps,
    .windows = windows,
    .window_units = window_units,
};
