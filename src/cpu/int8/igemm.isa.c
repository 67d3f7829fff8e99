/* igemm.isa.c - integer kernels of one instruction-set tier: tiles of sums of products of bytes,
 * packing, and the way back to bytes. */
#include "cpu/int8/igemm.h"
#include "cpu/core/simd.h"

#if defined(__SSE2__) && !defined(__AVX2__)
#include <emmintrin.h>
#endif

#if defined(__AVX512VNNI__)
enum { MR = 12, NV = 2, GROUP = 4 };
#elif LANES == 16
enum { MR = 12, NV = 2, GROUP = 2 };
#elif LANES == 8
enum { MR = 6, NV = 2, GROUP = 2 };
#else
enum { MR = 4, NV = 2, GROUP = 2 };
#endif
enum { NR = NV * LANES };

/* f for each number of rows that a tile may have */
#if LANES == 16
#define EACH_ROWS(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12)
#elif LANES == 8
#define EACH_ROWS(f) f(1) f(2) f(3) f(4) f(5) f(6)
#else
#define EACH_ROWS(f) f(1) f(2) f(3) f(4)
#endif

typedef uint32_t vu __attribute__((vector_size(LANES * sizeof(int32_t))));
typedef int32_t vi_anywhere
    __attribute__((vector_size(LANES * sizeof(int32_t)), aligned(4), may_alias));

static inline vi load_vi(const int32_t *p) {
    return (vi) * (const vi_anywhere *)p;
}

static inline void store_vi(int32_t *p, vi v) {
    *(vi_anywhere *)p = v;
}

static inline vi splat_vi(int32_t x) {
    return x - (vi){0};
}

/* ---- Products ---- */

/* sum + the products of the elements of each lane's unit: u unsigned, s signed. */
static inline vi dot(vi sum, vi u, vi s) {
#if defined(__AVX512VNNI__)
    return (vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)u, (__m512i)s);
#elif LANES == 16
    return (vi)_mm512_add_epi32((__m512i)sum, _mm512_madd_epi16((__m512i)u, (__m512i)s));
#elif LANES == 8
    return (vi)_mm256_add_epi32((__m256i)sum, _mm256_madd_epi16((__m256i)u, (__m256i)s));
#elif defined(__SSE2__)
    return (vi)_mm_add_epi32((__m128i)sum, _mm_madd_epi16((__m128i)u, (__m128i)s));
#else
    vi low = ((u << 16) >> 16) * ((s << 16) >> 16), high = (u >> 16) * (s >> 16);
    return (vi)((vu)sum + (vu)low + (vu)high);
#endif
}

/* sum += the products of panels of A and B. `rows` and `a_signed` are constants at every call. */
static inline __attribute__((always_inline)) void products(int rows, bool a_signed, int64_t units,
                                                           const int32_t *restrict a,
                                                           const int32_t *restrict b,
                                                           vi sum[MR][NV]) {
    for (int64_t p = 0; p < units; p++, a += MR, b += NR) {
        vi right[NV];
        UNROLL
        for (int j = 0; j < NV; j++) right[j] = load_vi(b + j * LANES);
        UNROLL
        for (int i = 0; i < rows; i++) {
            vi left = splat_vi(a[i]);
            UNROLL
            for (int j = 0; j < NV; j++)
                sum[i][j] =
                    a_signed ? dot(sum[i][j], right[j], left) : dot(sum[i][j], left, right[j]);
        }
    }
}

static inline __attribute__((always_inline)) void tile(int rows, bool a_signed, int64_t units,
                                                       const int32_t *restrict a,
                                                       const int32_t *restrict b,
                                                       int32_t *restrict c) {
    vi sum[MR][NV];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < NV; j++) sum[i][j] = splat_vi(0);
    products(rows, a_signed, units, a, b, sum);
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < NV; j++) store_vi(c + i * NR + j * LANES, sum[i][j]);
}

#define TILE(rows)                                                                        \
    static void tile_u##rows(int64_t n, const int32_t *a, const int32_t *b, int32_t *c) { \
        tile(rows, false, n, a, b, c);                                                    \
    }                                                                                     \
    static void tile_s##rows(int64_t n, const int32_t *a, const int32_t *b, int32_t *c) { \
        tile(rows, true, n, a, b, c);                                                     \
    }
EACH_ROWS(TILE)
#undef TILE

/* ---- Packing ---- */

static inline int32_t element(uint8_t byte, uint8_t flip, bool is_signed) {
    byte ^= flip;
    return is_signed ? (int8_t)byte : byte;
}

#if defined(__AVX512VNNI__)
static void interleave(const uint8_t *const *rows, uint8_t flip, bool is_signed, int32_t *panel) {
    __m256i x[4], f = _mm256_set1_epi8((char)flip);
    (void)is_signed;
    for (int i = 0; i < 4; i++)
        x[i] = _mm256_xor_si256(_mm256_loadu_si256((const __m256i_u *)rows[i]), f);
    __m256i a = _mm256_unpacklo_epi8(x[0], x[1]), b = _mm256_unpackhi_epi8(x[0], x[1]);
    __m256i c = _mm256_unpacklo_epi8(x[2], x[3]), d = _mm256_unpackhi_epi8(x[2], x[3]);
    __m256i e = _mm256_unpacklo_epi16(a, c), g = _mm256_unpackhi_epi16(a, c);
    __m256i h = _mm256_unpacklo_epi16(b, d), k = _mm256_unpackhi_epi16(b, d);
    __m256i_u *to = (__m256i_u *)panel;
    to[0] = _mm256_permute2x128_si256(e, g, 0x20);
    to[1] = _mm256_permute2x128_si256(h, k, 0x20);
    to[2] = _mm256_permute2x128_si256(e, g, 0x31);
    to[3] = _mm256_permute2x128_si256(h, k, 0x31);
}
#elif defined(__AVX2__)
static void interleave(const uint8_t *const *rows, uint8_t flip, bool is_signed, int32_t *panel) {
    __m128i f = _mm_set1_epi8((char)flip);
    for (int at = 0; at < NR; at += 16) {
        __m128i x = _mm_xor_si128(_mm_loadu_si128((const __m128i_u *)(rows[0] + at)), f);
        __m128i y = _mm_xor_si128(_mm_loadu_si128((const __m128i_u *)(rows[1] + at)), f);
        __m256i a = is_signed ? _mm256_cvtepi8_epi16(x) : _mm256_cvtepu8_epi16(x);
        __m256i b = is_signed ? _mm256_cvtepi8_epi16(y) : _mm256_cvtepu8_epi16(y);
        __m256i low = _mm256_unpacklo_epi16(a, b), high = _mm256_unpackhi_epi16(a, b);
        __m256i_u *to = (__m256i_u *)(panel + at);
        to[0] = _mm256_permute2x128_si256(low, high, 0x20);
        to[1] = _mm256_permute2x128_si256(low, high, 0x31);
    }
}
#else
static void interleave(const uint8_t *const *rows, uint8_t flip, bool is_signed, int32_t *panel) {
    for (int j = 0; j < NR; j++)
        panel[j] = (int32_t)((uint32_t)element(rows[0][j], flip, is_signed) & 0xffff) |
                   (int32_t)((uint32_t)element(rows[1][j], flip, is_signed) << 16);
}
#endif

/* The unit that starts at `row`, of which `n` bytes are there. */
static inline int32_t unit_of(const uint8_t *row, int64_t n, uint8_t flip, bool is_signed) {
    uint32_t unit = 0;
    int width = 32 / GROUP;
    for (int i = 0; i < GROUP && i < n; i++)
        unit |= ((uint32_t)element(row[i], flip, is_signed) & (GROUP == 4 ? 0xff : 0xffff))
                << (i * width);
    return (int32_t)unit;
}

static void units(const uint8_t *row, int64_t n, uint8_t flip, bool is_signed, int32_t *to,
                  int64_t step) {
    int64_t p = 0;
#if defined(__AVX512VNNI__)
    uint32_t flips = flip * 0x01010101u;
    for (; p + GROUP <= n; p += GROUP, to += step) {
        uint32_t unit;
        memcpy(&unit, row + p, sizeof unit);
        *to = (int32_t)(unit ^ flips);
    }
#else
    for (; p + GROUP <= n; p += GROUP, to += step)
        *to = (int32_t)(((uint32_t)element(row[p], flip, is_signed) & 0xffff) |
                        (uint32_t)element(row[p + 1], flip, is_signed) << 16);
#endif
    if (p < n) *to = unit_of(row + p, n - p, flip, is_signed);
}

static void column_sums(const int32_t *panel, int64_t count, int32_t *sums) {
    vi sum[NV], ones = splat_vi(GROUP == 4 ? 0x01010101 : 0x00010001);
    for (int j = 0; j < NV; j++) sum[j] = splat_vi(0);
    for (int64_t p = 0; p < count; p++, panel += NR)
        for (int j = 0; j < NV; j++) sum[j] = dot(sum[j], load_vi(panel + j * LANES), ones);
    for (int j = 0; j < NV; j++) store_vi(sums + j * LANES, sum[j]);
}

static int64_t byte_sum(const uint8_t *x, int64_t n, uint8_t flip) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n;) {
        uint32_t part = 0;
        int64_t end = n - i < 65536 ? n : i + 65536;
        for (; i < end; i++) part += x[i] ^ flip;
        sum += part;
    }
    return sum;
}

static inline void copy_row(const uint8_t *from, int64_t n, uint8_t *to) {
#if LANES == 16
    int64_t i = 0;
    for (; i + 64 <= n; i += 64)
        _mm512_storeu_si512(to + i, _mm512_loadu_si512((const void *)(from + i)));
    if (i < n) {
        __mmask64 some = ~0ull >> (64 - (n - i));
        _mm512_mask_storeu_epi8(to + i, some, _mm512_maskz_loadu_epi8(some, from + i));
    }
#else
    if (n < 8) {
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
        return;
    }
    for (int64_t i = 0; i + 8 <= n; i += 8) memcpy(to + i, from + i, 8);
    memcpy(to + n - 8, from + n - 8, 8);
#endif
}

static inline void copy_every_second(const uint8_t *from, int64_t n, uint8_t *to) {
    int64_t i = 0;
#if LANES == 16 /* the last element of a vector is one that is not wanted: it must be there, too \
                 */
    for (; i + 32 < n; i += 32)
        _mm256_storeu_si256((__m256i_u *)(to + i),
                            _mm512_cvtepi16_epi8(_mm512_loadu_si512((const void *)(from + 2 * i))));
    if (i < n) {
        __mmask64 some = ~0ull >> (64 - (2 * (n - i) - 1));
        __mmask32 kept = ~0u >> (32 - (n - i));
        _mm512_mask_cvtepi16_storeu_epi8(to + i, kept, _mm512_maskz_loadu_epi8(some, from + 2 * i));
    }
#else
#if LANES == 8
    const __m128i even = _mm_set1_epi16(255);
    for (; i + 16 < n; i += 16) {
        __m128i a = _mm_loadu_si128((const __m128i_u *)(from + 2 * i));
        __m128i b = _mm_loadu_si128((const __m128i_u *)(from + 2 * i + 16));
        _mm_storeu_si128((__m128i_u *)(to + i),
                         _mm_packus_epi16(_mm_and_si128(a, even), _mm_and_si128(b, even)));
    }
#endif
    for (; i < n; i++) to[i] = from[2 * i];
#endif
}

static void copy_rows(const uint8_t *from, int64_t from_step, int64_t stride, int64_t rows,
                      int64_t n, uint8_t *to, int64_t to_step) {
    if (n <= 0) return;
    for (int64_t r = 0; r < rows; r++, from += from_step, to += to_step) {
        if (stride == 1)
            copy_row(from, n, to);
        else if (stride == 2)
            copy_every_second(from, n, to);
        else
            for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
    }
}

static void blend(const uint8_t *from, const uint8_t *mask, uint8_t other, uint8_t *to) {
    for (int i = 0; i < NR; i++) to[i] = (uint8_t)((from[i] & mask[i]) | (other & ~mask[i]));
}

/* ---- Back to what the outside wants ---- */

static inline vf to_floats(vi v) {
#if LANES == 16
    return (vf)_mm512_cvtepi32_ps((__m512i)v);
#elif LANES == 8
    return (vf)_mm256_cvtepi32_ps((__m256i)v);
#else
    return __builtin_convertvector(v, vf);
#endif
}

/* What results are rounded to: least and most before the zero point is added. */
typedef struct limits {
    vf least, most;
    vi zero;
} limits;

static inline limits limits_of(float zero, float low) {
    return (limits){splat(low - zero), splat(low + 255 - zero), splat_vi((int32_t)zero)};
}

/* v rounded to even plus zero, in [low, low + 255]; NaN gives low. */
static inline vi rounded(vf v, const limits *l) {
#if LANES == 16
    v = (vf)_mm512_min_ps(_mm512_max_ps((__m512)v, (__m512)l->least), (__m512)l->most);
    return (vi)_mm512_cvtps_epi32((__m512)v) + l->zero;
#elif LANES == 8
    v = (vf)_mm256_min_ps(_mm256_max_ps((__m256)v, (__m256)l->least), (__m256)l->most);
    return (vi)_mm256_cvtps_epi32((__m256)v) + l->zero;
#else
    const vf magic = splat(12582912);
    v = select_vf(v > l->least, v, l->least);
    v = min_vf(v, l->most);
    return __builtin_convertvector((v + magic) - magic, vi) + l->zero;
#endif
}

/* The lowest bytes of the lanes. */
static inline void store_bytes(uint8_t *y, vi v) {
#if LANES == 16
    _mm_storeu_si128((__m128i_u *)y, _mm512_cvtepi32_epi8((__m512i)v));
#elif LANES == 8
    const __m256i pick =
        _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8, 12,
                         -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i x = _mm256_shuffle_epi8((__m256i)v, pick);
    __m128i z = _mm_unpacklo_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm_storel_epi64((__m128i_u *)y, z);
#else
    for (int i = 0; i < LANES; i++) y[i] = (uint8_t)v[i];
#endif
}

static inline void store_some_bytes(uint8_t *y, int64_t n, vi v) {
#if LANES == 16
    _mm512_mask_cvtepi32_storeu_epi8(y, (__mmask16)((1u << n) - 1), (__m512i)v);
#else
    uint8_t some[LANES];
    store_bytes(some, v);
    memcpy(y, some, (size_t)n);
#endif
}

/* Lanes [at, at + LANES) of a row, of which `n` are there. */
static inline vi load_ints(const int32_t *p, int64_t at, int64_t n) {
    if (n >= LANES) return load_vi(p + at);
#if LANES == 16
    return (vi)_mm512_maskz_loadu_epi32((__mmask16)((1u << n) - 1), p + at);
#else
    int32_t some[LANES] = {0};
    memcpy(some, p + at, (size_t)n * sizeof *some);
    return load_vi(some);
#endif
}

static inline vf load_floats(const float *p, int64_t at, int64_t n) {
    return n >= LANES ? load(p + at) : load_some(p + at, n, 0);
}

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

/* Sums of one row, all with the same addend and scale. */
static inline vi finished_lanes(const int32_t *acc, vi add, vf scale, const limits *l) {
    return rounded(to_floats((vi)((vu)load_vi(acc) + (vu)add)) * scale, l);
}

/* n sums to bytes: 2 * LANES at a time, the last of which overlap those before. */
#if LANES == 8
/* Saturating instructions keep results in range. */
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

/* Rows with a sum and a scale each, and nothing by column. Bytes that are written could be anything
 * to the compiler: what it reads in the loop is copied first. */
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

/* ---- Tiles that end as bytes ---- */

#if LANES >= 8
#if LANES == 16
typedef __m512i words;
#define VECTOR(f) _mm512_##f
static inline words rounded_words(vf v) {
    return _mm512_cvtps_epi32((__m512)v);
}
/* Bytes of two rows, which pack as they lie in quarters of 128 bits. */
static inline void store_two(words bytes, uint8_t *y0, uint8_t *y1) {
    const words order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    bytes = _mm512_permutexvar_epi32(order, bytes);
    _mm256_storeu_si256((__m256i_u *)y0, _mm512_castsi512_si256(bytes));
    _mm256_storeu_si256((__m256i_u *)y1, _mm512_extracti64x4_epi64(bytes, 1));
}
#else
typedef __m256i words;
#define VECTOR(f) _mm256_##f
static inline words rounded_words(vf v) {
    return _mm256_cvtps_epi32((__m256)v);
}
static inline void store_two(words bytes, uint8_t *y0, uint8_t *y1) {
    const words order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    bytes = _mm256_permutevar8x32_epi32(bytes, order);
    _mm_storeu_si128((__m128i_u *)y0, _mm256_castsi256_si128(bytes));
    _mm_storeu_si128((__m128i_u *)y1, _mm256_extracti128_si256(bytes, 1));
}
#endif

/* Saturating instructions keep results in range, once the scale keeps them within 32 bits. NaN
 * becomes the lowest integer. */
static inline words finish_words(const vi sum[NV], float scale, words zero) {
    words a = rounded_words(to_floats(sum[0]) * scale);
    words b = rounded_words(to_floats(sum[1]) * scale);
    return VECTOR(adds_epi16)(VECTOR(packs_epi32)(a, b), zero);
}

static inline __attribute__((always_inline)) void
tile_bytes(int rows, int64_t units, const int32_t *a, const int32_t *b, const sni_int_bytes *to) {
    const words zero = VECTOR(set1_epi16)((short)to->zero);
    const bool is_signed = to->low < 0;
    const int64_t step = to->y_step;
    uint8_t *y = to->y;
    const float *scale = to->scale;
    vi sum[MR][NV];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < NV; j++) sum[i][j] = splat_vi(to->add[i]);
    products(rows, true, units, a, b, sum);
    UNROLL
    for (int i = 0; i < rows; i += 2) {
        int last = i + 1 < rows ? i + 1 : i;
        words v = finish_words(sum[i], scale[i], zero), w = v;
        if (last > i) w = finish_words(sum[last], scale[last], zero);
        v = is_signed ? VECTOR(packs_epi16)(v, w) : VECTOR(packus_epi16)(v, w);
        store_two(v, y + i * step, y + last * step);
    }
}
#undef VECTOR

#define TILE(rows)                                                              \
    static void tile_bytes##rows(int64_t n, const int32_t *a, const int32_t *b, \
                                 const sni_int_bytes *to) {                     \
        tile_bytes(rows, n, a, b, to);                                          \
    }
EACH_ROWS(TILE)
#undef TILE
#endif

/* ---- Rows of bytes and floats ---- */

static inline vi load_bytes(const uint8_t *p, bool is_signed) {
#if LANES == 16
    __m128i x = _mm_loadu_si128((const __m128i_u *)p);
    return (vi)(is_signed ? _mm512_cvtepi8_epi32(x) : _mm512_cvtepu8_epi32(x));
#elif LANES == 8
    __m128i x = _mm_loadl_epi64((const __m128i_u *)p);
    return (vi)(is_signed ? _mm256_cvtepi8_epi32(x) : _mm256_cvtepu8_epi32(x));
#else
    vi v;
    for (int i = 0; i < LANES; i++) v[i] = is_signed ? (int8_t)p[i] : p[i];
    return v;
#endif
}

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

/* `vectors` of outputs from `at` on. */
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

#include "cpu/int8/igemm_windows.inc.c"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_int_kernels PASTE(sni_int_kernels_, TIER);

#define ROWS(n) [n] = tile_u##n,
#define SIGNED_ROWS(n) [n] = tile_s##n,
#define BYTE_ROWS(n) [n] = tile_bytes##n,

const sni_int_kernels PASTE(sni_int_kernels_, TIER) = {
    .mr = MR,
    .nr = NR,
    .group = GROUP,
    .tile = {{EACH_ROWS(ROWS)}, {EACH_ROWS(SIGNED_ROWS)}},
#if LANES >= 8
    .tile_bytes = {EACH_ROWS(BYTE_ROWS)},
#endif
    .interleave = interleave,
    .units = units,
    .column_sums = column_sums,
    .byte_sum = byte_sum,
    .finish = {[SNI_INT_SUMS] = finish_sums,
               [SNI_INT_FLOATS] = finish_floats,
               [SNI_INT_BYTES] = finish_bytes},
    .copy_rows = copy_rows,
    .blend = blend,
    .widen = widen,
    .taps = taps,
    .windows = windows,
    .window_units = window_units,
    .dequantize = dequantize,
    .quantize = quantize,
    .pair = pair,
    .range = range,
};
