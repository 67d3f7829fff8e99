/* attend.isa.c - the vector kernels of attention between its two matrix products, for one tier.
 *
 * Scores of a block are (keys, nr): one column per query, so that maxima, exponentials and sums run
 * lane by lane and no lanes are ever added up. NV vectors make up nr. What limits attend_weigh is
 * e^x; attend_sum is a GEMM tile and is limited by multiply-adds. */
#include "cpu/attention/attend.h"
#include "cpu/core/kernels.h"
#include "cpu/reduce/softmax_row.h"

/* The tile of this tier: the same as that of the GEMM (cpu/gemm/gemm_core.inc.c). */
#if LANES == 16
enum { MR = 14, NV = 2 };
#elif LANES == 8
enum { MR = 6, NV = 2 };
#else
enum { MR = 4, NV = 2 };
#endif
enum { NR = NV * LANES };

/* What is subtracted from scores before e^x: the maximum, or 0 while every key is masked (where the
 * maximum is minus infinity, and the difference would be NaN). */
static inline vf above_most(vf most) {
    return select_vf(most == splat(-INFINITY), splat(0), most);
}

static inline vf score_vf(vf x, float scale, float cap) {
    x = x * splat(scale);
    return cap > 0 ? splat(cap) * tanh_vf(x * splat(1 / cap)) : x;
}

/* A bias of minus infinity masks its key whatever the score, even NaN. */
static inline vf biased_vf(vf x, vf bias) {
    return select_vf(bias == splat(-INFINITY), bias, x + bias);
}

/* Scales, caps and biases a block of scores in place and raises `most` to its column maxima: the
 * general variant, with any mask. */
static inline void adjust_scores(const sni_attend_block *b, float *s, int64_t keys, vf most[NV]) {
    for (int64_t j = 0; j < keys; j++) {
        UNROLL
        for (int v = 0; v < NV; v++) {
            float *at = s + j * NR + v * LANES;
            vf x = score_vf(load(at), b->scale, b->cap);
            if (b->key_bias) x = biased_vf(x, splat(b->key_bias[j]));
            if (b->bias) x = biased_vf(x, load(b->bias + j * NR + v * LANES));
            store(at, x);
            most[v] = max_vf(most[v], x);
        }
    }
}

/* Raises `most` to the maximum of each column times a positive scale. Two rows at once, as a
 * comparison takes longer than a load. */
static inline void greatest_scores(const float *s, int64_t keys, float scale, vf most[NV]) {
    enum { APART = 2 };
    vf m[APART][NV];
    UNROLL
    for (int v = 0; v < NV; v++) m[0][v] = m[1][v] = splat(-INFINITY);
    int64_t j = 0;
    for (; j + APART <= keys; j += APART) {
        UNROLL
        for (int k = 0; k < APART * NV; k++)
            m[k / NV][k % NV] = max_vf(m[k / NV][k % NV], load(s + j * NR + k * LANES));
    }
    UNROLL
    for (int v = 0; v < NV; v++) {
        vf last = j < keys ? load(s + j * NR + v * LANES) : splat(-INFINITY);
        most[v] = max_vf(most[v], max_vf(max_vf(m[0][v], last), m[1][v]) * splat(scale));
    }
}

static void attend_weigh(const sni_attend_block *b, float *s, int64_t keys, float *most, float *sum,
                         float *fade) {
    bool plain = !b->key_bias && !b->bias && !(b->cap > 0) && b->scale > 0;
    vf m[NV], total[NV], safe[NV];
    UNROLL
    for (int v = 0; v < NV; v++) m[v] = load(most + v * LANES);
    if (plain)
        greatest_scores(s, keys, b->scale, m);
    else
        adjust_scores(b, s, keys, m);
    UNROLL
    for (int v = 0; v < NV; v++) {
        safe[v] = above_most(m[v]);
        store(fade + v * LANES, weight_vf(load(most + v * LANES) - safe[v]));
        store(most + v * LANES, m[v]);
        total[v] = splat(0);
    }
    vf scale = splat(plain ? b->scale : 1);
    for (int64_t j = 0; j < keys; j++) {
        UNROLL
        for (int v = 0; v < NV; v++) {
            vf p = weight_vf(load(s + j * NR + v * LANES) * scale - safe[v]);
            store(s + j * NR + v * LANES, p);
            total[v] += p;
        }
    }
    UNROLL
    for (int v = 0; v < NV; v++)
        store(sum + v * LANES, load(sum + v * LANES) * load(fade + v * LANES) + total[v]);
}

/* y = y * fade + weights * V for a tile of `rows` queries by `vectors` vectors of output columns.
 * The sums stay in registers over all keys; per key there are `vectors` loads, `rows` broadcasts
 * and rows * vectors multiply-adds, as in the GEMM tile. `rows` and `vectors` are constants at
 * every call. */
static inline __attribute__((always_inline)) void sum_values(int rows, int vectors, int64_t keys,
                                                             const float *p, const float *v,
                                                             float *y, int64_t y_row,
                                                             const float *fade) {
    vf sum[MR][NV];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < vectors; j++) sum[i][j] = splat(0);
    UNROLL_SOME
    for (int64_t k = 0; k < keys; k++, p += NR, v += vectors * LANES) {
        UNROLL
        for (int i = 0; i < rows; i++) {
            vf weight = splat(p[i]);
            UNROLL
            for (int j = 0; j < vectors; j++) sum[i][j] += weight * load(v + j * LANES);
        }
    }
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < vectors; j++) {
        float *at = y + i * y_row + j * LANES;
        store(at, fade ? load(at) * splat(fade[i]) + sum[i][j] : sum[i][j]);
    }
}

static void attend_sum(int rows, int vectors, int64_t keys, const float *p, const float *v,
                       float *y, int64_t y_row, const float *fade) {
#define SUM(n)                                            \
    case n:                                               \
        if (vectors == 1)                                 \
            sum_values(n, 1, keys, p, v, y, y_row, fade); \
        else                                              \
            sum_values(n, 2, keys, p, v, y, y_row, fade); \
        break
    switch (rows) {
        SUM(1);
        SUM(2);
        SUM(3);
        SUM(4);
#if LANES > 4
        SUM(5);
        SUM(6);
#endif
#if LANES > 8
        SUM(7);
        SUM(8);
        SUM(9);
        SUM(10);
        SUM(11);
        SUM(12);
        SUM(13);
        SUM(14);
#endif
    default:
        break;
    }
#undef SUM
}

/* One query: its scores are a contiguous row, so vectors run along the keys. */
static void attend_row(const sni_attend_block *b, float *s, int64_t keys, float *most, float *sum) {
    int64_t whole = keys / LANES * LANES;
    for (int64_t j = 0; j < keys; j += LANES) {
        bool all = j < whole;
        vf x = score_vf(all ? load(s + j) : load_some(s + j, keys - j, 0), b->scale, b->cap);
        if (b->key_bias)
            x = biased_vf(x, all ? load(b->key_bias + j) : load_some(b->key_bias + j, keys - j, 0));
        if (all)
            store(s + j, x);
        else
            store_some(s + j, keys - j, x);
    }
    float row = max_row(s, keys), m = row > *most ? row : *most;
    float safe = m == -INFINITY ? 0 : m;
    float before[LANES] = {0};
    store(before, weight_vf(splat(*most - safe)));
    *sum = *sum * before[0] + exp_row(s, s, keys, safe);
    *most = m;
}

/* Two independent sums per key: the next key's loads overlap this key's additions. */
static void dot_rows(const float *q, const float *k, int64_t step, int64_t keys, int64_t d,
                     float *s) {
    int64_t whole = d / LANES * LANES;
    for (int64_t j = 0; j < keys; j++, k += step) {
        vf a = splat(0), b = a;
        int64_t i = 0;
        for (; i + 2 * LANES <= d; i += 2 * LANES) {
            a += load(q + i) * load(k + i);
            b += load(q + i + LANES) * load(k + i + LANES);
        }
        if (i < whole) a += load(q + i) * load(k + i);
        float dot = sum_lanes(a + b);
        for (i = whole; i < d; i++) dot += q[i] * k[i];
        s[j] = dot;
    }
}

/* Four vectors of the output stay in registers over all keys; each key's row is read once. */
static void weigh_rows(const float *p, const float *v, int64_t step, int64_t keys, int64_t d,
                       float factor, float *y) {
    enum { WIDE = 4 };
    int64_t i = 0;
    for (; i + WIDE * LANES <= d; i += WIDE * LANES) {
        vf sum[WIDE];
        UNROLL
        for (int q = 0; q < WIDE; q++) sum[q] = splat(0);
        for (int64_t j = 0; j < keys; j++) {
            vf w = splat(p[j]);
            UNROLL
            for (int q = 0; q < WIDE; q++) sum[q] += w * load(v + j * step + i + q * LANES);
        }
        UNROLL
        for (int q = 0; q < WIDE; q++) store(y + i + q * LANES, sum[q] * splat(factor));
    }
    for (; i + LANES <= d; i += LANES) {
        vf sum = splat(0);
        for (int64_t j = 0; j < keys; j++) sum += splat(p[j]) * load(v + j * step + i);
        store(y + i, sum * splat(factor));
    }
    for (; i < d; i++) {
        float sum = 0;
        for (int64_t j = 0; j < keys; j++) sum += p[j] * v[j * step + i];
        y[i] = sum * factor;
    }
}

/* ---- Rows of a cache ---- */

#if LANES >= 8
/* LANES elements of a row from number i on, as integers or as floats. */
static inline vf load_bytes(const int8_t *row, int64_t i) {
#if LANES == 16
    return (vf)_mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i_u *)(row + i))));
#else
    return (vf)_mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i_u *)(row + i))));
#endif
}

/* Each pair goes to two lanes; the odd ones take its upper half. */
static inline vf load_pairs(const uint8_t *row, int64_t i) {
    const uint8_t *at = row + i / 2;
    const __m128i low = _mm_set1_epi8(15);
    __m128i pairs, numbers;
#if LANES == 16
    pairs = _mm_loadl_epi64((const __m128i_u *)at);
#else
    pairs = _mm_loadu_si32(at);
#endif
    numbers =
        _mm_unpacklo_epi8(_mm_and_si128(pairs, low), _mm_and_si128(_mm_srli_epi16(pairs, 4), low));
#if LANES == 16
    return (vf)_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(numbers)) - 8;
#else
    return (vf)_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(numbers)) - 8;
#endif
}

static inline vf load_halves(const uint16_t *row, int64_t i) {
#if LANES == 16
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i_u *)(row + i)));
#else
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)(row + i)));
#endif
}

static inline vf load_brains(const uint16_t *row, int64_t i) {
#if LANES == 16
    __m512i v = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(row + i)));
#else
    __m256i v = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(row + i)));
#endif
    return (vf)((vu)v << 16);
}

/* Whole vectors of a row; returns how many elements they are. */
static int64_t load_vectors(sn_dtype stored, const void *row, const float *scale, int64_t n,
                            float *y) {
    const int64_t whole = n / LANES * LANES;
    switch (stored) {
    case SN_INT8:
        for (int64_t i = 0; i < whole; i += LANES)
            store(y + i, load_bytes(row, i) * load(scale + i));
        return whole;
    case SN_UINT8:
        for (int64_t i = 0; i < whole; i += LANES)
            store(y + i, load_pairs(row, i) * load(scale + i));
        return whole;
    case SN_FLOAT16:
        for (int64_t i = 0; i < whole; i += LANES) store(y + i, load_halves(row, i));
        return whole;
    case SN_BFLOAT16:
        for (int64_t i = 0; i < whole; i += LANES) store(y + i, load_brains(row, i));
        return whole;
    default:
        return 0;
    }
}
#else
static int64_t load_vectors(sn_dtype stored, const void *row, const float *scale, int64_t n,
                            float *y) {
    (void)stored, (void)row, (void)scale, (void)n, (void)y;
    return 0;
}
#endif

static void load_stored(sn_dtype stored, const void *row, const float *scale, int64_t n, float *y) {
    for (int64_t i = load_vectors(stored, row, scale, n, y); i < n; i++) {
        if (stored == SN_INT8)
            y[i] = (float)((const int8_t *)row)[i] * scale[i];
        else if (stored == SN_UINT8)
            y[i] = (float)((((const uint8_t *)row)[i / 2] >> i % 2 * 4 & 15) - 8) * scale[i];
        else if (stored == SN_FLOAT16)
            y[i] = sni_f16_to_f32(((const uint16_t *)row)[i]);
        else
            y[i] = sni_bf16_to_f32(((const uint16_t *)row)[i]);
    }
}

SNI_DEFINE_TABLE(sni_attend_kernels) = {
    .attend_weigh = attend_weigh,
    .attend_row = attend_row,
    .dot_rows = dot_rows,
    .weigh_rows = weigh_rows,
    .attend_sum = attend_sum,
    .load_stored = load_stored,
};
