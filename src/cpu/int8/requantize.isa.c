/* requantize.isa.c - from 32-bit sums and floats to bytes and back, for one tier. Rows are
 * contiguous; one vector of LANES elements per step with a masked or overlapping tail. All are
 * limited by memory except on sums that are still in the first-level cache. */
#include "cpu/int8/requantize.h"

#include "cpu/int8/simd_bytes.h"

/* ---- Blocks of sums ---- */

static inline vi finished_sum(const sni_int_block *b, int64_t row, int64_t at, int64_t n) {
    vu s = (vu)load_ints(b->acc + row * b->acc_step, at, n);
    int64_t m = row * b->m_step;
    if (b->add_m) s += (uint32_t)b->add_m[m];
    if (b->add_n) s += (vu)load_ints(b->add_n, at, n);
    if (b->mul_n) s += (vu)load_ints(b->mul_n, at, n) * (uint32_t)b->mul_m[m];
    return (vi)s;
}

static inline vf finished_float(const sni_int_block *b, int64_t row, int64_t at, int64_t n) {
    vf v = to_floats(finished_sum(b, row, at, n));
    if (b->scale_m) return v * b->scale_m[row * b->m_step];
    return b->scale_n ? v * load_floats(b->scale_n, at, n) : v;
}

static void finish_sums(const sni_int_block *b) {
    int32_t *y = b->y;
    for (int64_t r = 0; r < b->rows; r++, y += b->y_step)
        for (int64_t at = 0; at < b->n; at += LANES) {
            int32_t some[LANES];
            int64_t n = b->n - at;
            store_vi(n >= LANES ? y + at : some, finished_sum(b, r, at, n));
            if (n < LANES) memcpy(y + at, some, (size_t)n * sizeof *some);
        }
}

static void finish_floats(const sni_int_block *b) {
    float *y = b->y;
    for (int64_t r = 0; r < b->rows; r++, y += b->y_step)
        for (int64_t at = 0; at < b->n; at += LANES) {
            int64_t n = b->n - at;
            vf v = finished_float(b, r, at, n);
            if (b->bias_n) v += load_floats(b->bias_n, at, n);
            if (n >= LANES)
                store(y + at, v);
            else
                store_some(y + at, n, v);
        }
}

/* LANES sums of one row, all with the same addend and scale. */
static inline vi finished_lanes(const int32_t *acc, vi add, vf scale, const limits *l) {
    return rounded(to_floats((vi)((vu)load_vi(acc) + (vu)add)) * scale, l);
}

/* Requantises 2 * LANES sums of a row. */
#if LANES == 8
/* Saturating pack instructions clamp to the range. */
static inline void finish_pair(const int32_t *acc, vi add, vf scale, const limits *l,
                               bool is_signed, uint8_t *y) {
    const __m256 most = _mm256_set1_ps(65536);
    __m256i v[2];
    for (int i = 0; i < 2; i++) {
        vf f = to_floats((vi)((vu)load_vi(acc + i * LANES) + (vu)add)) * scale;
        v[i] = _mm256_cvtps_epi32(_mm256_min_ps(most, (__m256)f)); /* NaN: the lowest */
    }
    __m256i words = _mm256_packs_epi32(v[0], v[1]);
    words = _mm256_adds_epi16(words, _mm256_packs_epi32((__m256i)l->zero, (__m256i)l->zero));
    words = _mm256_permute4x64_epi64(words, 0xd8);
    __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
    __m128i bytes = is_signed ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high);
    _mm_storeu_si128((__m128i_u *)y, bytes);
}
#else
static inline void finish_pair(const int32_t *acc, vi add, vf scale, const limits *l,
                               bool is_signed, uint8_t *y) {
    (void)is_signed;
    for (int i = 0; i < 2; i++)
        store_bytes(y + i * LANES, finished_lanes(acc + i * LANES, add, scale, l));
}
#endif

/* Requantises n sums of a row; the last vectors overlap those before. */
static inline void finish_row(const int32_t *acc, vi add, vf scale, const limits *l, bool is_signed,
                              int64_t n, uint8_t *y) {
    int64_t at = 0;
    for (; at + 2 * LANES <= n; at += 2 * LANES)
        finish_pair(acc + at, add, scale, l, is_signed, y + at);
    if (at == n) return;
    if (n > 2 * LANES) {
        finish_pair(acc + n - 2 * LANES, add, scale, l, is_signed, y + n - 2 * LANES);
        return;
    }
    if (n >= LANES) {
        store_bytes(y, finished_lanes(acc, add, scale, l));
        if (n > LANES) store_bytes(y + n - LANES, finished_lanes(acc + n - LANES, add, scale, l));
        return;
    }
    vi s = (vi)((vu)load_ints(acc, 0, n) + (vu)add);
    store_some_bytes(y, n, rounded(to_floats(s) * scale, l));
}

/* Blocks with an addend and a scale per row and nothing per column. Stores of bytes may alias
 * anything as far as the compiler knows: what the loop reads is copied to locals first. */
static void finish_rows(const sni_int_block *block) {
    const sni_int_block b = *block;
    const limits l = limits_of(b.zero, b.low);
    const bool is_signed = b.low < 0;
    for (int64_t r = 0; r < b.rows; r++)
        finish_row(b.acc + r * b.acc_step, splat_vi(b.add_m[r * b.m_step]),
                   splat(b.scale_m[r * b.m_step]), &l, is_signed, b.n,
                   (uint8_t *)b.y + r * b.y_step);
}

static void finish_bytes(const sni_int_block *b) {
    uint8_t *y = b->y;
    const limits l = limits_of(b->zero, b->low);
    if (b->add_m && b->scale_m && !b->add_n && !b->mul_n) {
        finish_rows(b);
        return;
    }
    for (int64_t r = 0; r < b->rows; r++, y += b->y_step)
        for (int64_t at = 0; at < b->n; at += LANES) {
            int64_t n = b->n - at;
            vi v = rounded(finished_float(b, r, at, n), &l);
            if (n >= LANES)
                store_bytes(y + at, v);
            else
                store_some_bytes(y + at, n, v);
        }
}

/* ---- Rows of bytes and floats ---- */

static void dequantize(const uint8_t *x, int64_t n, bool is_signed, float zero, float scale,
                       float *y) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, (to_floats(load_bytes(x + i, is_signed)) - zero) * scale);
    for (; i < n; i++) y[i] = ((float)element(x[i], 0, is_signed) - zero) * scale;
}

static void widen(const uint8_t *x, int64_t n, bool is_signed, float zero, float *y) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) store(y + i, to_floats(load_bytes(x + i, is_signed)) - zero);
    for (; i < n; i++) y[i] = (float)element(x[i], 0, is_signed) - zero;
}

static void quantize(const float *x, int64_t n, float scale, float zero, float low, uint8_t *y) {
    int64_t i = 0;
    vf s = splat(scale);
    const limits l = limits_of(zero, low);
    for (; i + LANES <= n; i += LANES) store_bytes(y + i, rounded(load(x + i) / s, &l));
    if (i < n) store_some_bytes(y + i, n - i, rounded(load_some(x + i, n - i, 0) / s, &l));
}

static void range(const float *x, int64_t n, float *least, float *most) {
    vf low = splat(0), high = splat(0);
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vf v = load(x + i);
        low = select_vf(v < low, v, low);
        high = select_vf(v > high, v, high);
    }
    if (i < n) {
        vf v = load_some(x + i, n - i, 0);
        low = select_vf(v < low, v, low);
        high = select_vf(v > high, v, high);
    }
    *least = -max_lanes(-low);
    *most = max_lanes(high);
}

/* n lanes of bytes that lie `step` (0 or 1) apart. */
static inline vf load_operand(const uint8_t *p, int64_t step, int64_t n, bool is_signed) {
    if (!step) return splat((float)element(*p, 0, is_signed));
    if (n >= LANES) return to_floats(load_bytes(p, is_signed));
    uint8_t some[LANES] = {0};
    memcpy(some, p, (size_t)n);
    return to_floats(load_bytes(some, is_signed));
}

static inline __attribute__((always_inline)) void pair_of(const sni_int_pair *p, const uint8_t *a,
                                                          int64_t a_step, const uint8_t *b,
                                                          int64_t b_step, uint8_t *y, int64_t n) {
    const limits l = limits_of(0, p->low);
    for (int64_t i = 0; i < n; i += LANES) {
        vf u = load_operand(a + i * a_step, a_step, n - i, p->is_signed) - p->a_zero;
        vf v = load_operand(b + i * b_step, b_step, n - i, p->is_signed) - p->b_zero;
        vf s = p->product ? u * v * p->scale : u * p->a_scale + v * p->b_scale;
        vi r = rounded(s + p->zero, &l);
        if (n - i >= LANES)
            store_bytes(y + i, r);
        else
            store_some_bytes(y + i, n - i, r);
    }
}

static void pair(const sni_int_pair *given, const uint8_t *a, int64_t a_step, const uint8_t *b,
                 int64_t b_step, uint8_t *y, int64_t n) {
    const sni_int_pair copy = *given, *p = &copy;
    if (a_step && b_step) {
        pair_of(p, a, 1, b, 1, y, n);
    } else {
        pair_of(p, a, a_step, b, b_step, y, n);
    }
}

/* ---- Tables ---- */

#if LANES >= 8
#if LANES == 16
typedef __m512i bytes;
#define VECTOR(f) _mm512_##f
#define WHOLE(f) _mm512_##f##_si512
static inline bytes rows_of_16(const uint8_t *p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i_u *)(const void *)p));
}
#else
typedef __m256i bytes;
#define VECTOR(f) _mm256_##f
#define WHOLE(f) _mm256_##f##_si256
static inline bytes rows_of_16(const uint8_t *p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i_u *)(const void *)p));
}
#endif

/* The table in 16 parts of 16: a byte's lower half is its place in each. A shuffle gives 0 where
 * the top bit of a place is set, which saturation sets in all parts but the byte's own. */
static inline bytes look_up_vector(const bytes part[16], bytes x) {
    const bytes beyond = VECTOR(set1_epi8)(0x70);
    bytes y = VECTOR(shuffle_epi8)(part[0], VECTOR(adds_epu8)(x, beyond));
    UNROLL
    for (int i = 1; i < 16; i++) {
        bytes place = VECTOR(adds_epu8)(WHOLE(xor)(x, VECTOR(set1_epi8)((char)(i * 16))), beyond);
        y = WHOLE(or)(y, VECTOR(shuffle_epi8)(part[i], place));
    }
    return y;
}

static void look_up(const uint8_t table[256], const uint8_t *x, int64_t n, uint8_t *y) {
    enum { WIDTH = sizeof(bytes) };
    int64_t i = 0;
    if (n >= WIDTH) {
        bytes part[16];
        UNROLL
        for (int p = 0; p < 16; p++) part[p] = rows_of_16(table + 16 * p);
        for (; i + WIDTH <= n; i += WIDTH) WHOLE(storeu)
        ((void *)(y + i), look_up_vector(part, WHOLE(loadu)((const void *)(x + i))));
    }
    for (; i < n; i++) y[i] = table[x[i]];
}
#undef VECTOR
#undef WHOLE
#else
static void look_up(const uint8_t table[256], const uint8_t *x, int64_t n, uint8_t *y) {
    for (int64_t i = 0; i < n; i++) y[i] = table[x[i]];
}
#endif

/* y holds the distances from the greatest first, by which both tables are read. */
static void softmax(const sni_int_softmax *s, const uint8_t *x, int64_t n, uint8_t *y) {
    const limits l = limits_of(s->zero, s->low);
    const uint8_t flip = s->flip;
    uint8_t most = 0, result[256];
    uint64_t sum[4] = {0};
    int64_t i = 0;
    for (int64_t k = 0; k < n; k++) {
        uint8_t v = x[k] ^ flip;
        most = v > most ? v : most;
    }
    for (int64_t k = 0; k < n; k++) y[k] = (uint8_t)(most - (x[k] ^ flip));
    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) sum[k] += s->weight[y[i + k]];
    for (; i < n; i++) sum[0] += s->weight[y[i]];
    const double all = (double)(sum[0] + sum[1] + sum[2] + sum[3]);
    const vf scale = splat((float)(1.0 / all / (double)s->y_scale));
    for (int d = 0; d < 256; d += LANES)
        store_bytes(result + d,
                    rounded(to_floats(load_vi((const int32_t *)s->weight + d)) * scale, &l));
    look_up(result, y, n, y);
}

SNI_DEFINE_TABLE(sni_requantize_kernels) = {
    .finish = {[SNI_INT_SUMS] = finish_sums,
               [SNI_INT_FLOATS] = finish_floats,
               [SNI_INT_BYTES] = finish_bytes},
    .widen = widen,
    .dequantize = dequantize,
    .quantize = quantize,
    .pair = pair,
    .look_up = look_up,
    .softmax = softmax,
    .range = range,
};
