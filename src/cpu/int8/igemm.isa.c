/* igemm.isa.c - the int8 GEMM of one tier: tiles, and packing of operands.
 *
 * A tile is MR rows of A by NR = NV * LANES columns of B; its 32-bit sums stay in registers over
 * all of k. Units of GROUP elements along k are 32 bits, so that a unit of A is one broadcast and a
 * unit of B's panel is NV vectors. VNNI multiplies 4 bytes per lane in one instruction; the other
 * tiers widen to words when they pack and multiply pairs (pmaddwd), which cannot saturate. */
#include "cpu/int8/igemm.h"
#include "cpu/int8/simd_int.h"

#if LANES == 16
enum { MR = 12, NV = 2 };
#elif LANES == 8
enum { MR = 6, NV = 2 };
#else
enum { MR = 4, NV = 2 };
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

/* ---- Products ---- */

/* sum += A B over `units` units, for a tile of rows x NV vectors that stays in registers. Each unit
 * takes NV loads of B and `rows` broadcasts of A for rows * NV dot products, so that the
 * multipliers are the limit. `rows` and `a_signed` are constants at every call. */
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

/* The unit of the n < GROUP bytes at `row`, filled up with zeros. */
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
#if LANES == 16 /* a vector reads one element beyond the last that is wanted: it must exist */
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

/* ---- Tiles requantised from registers ---- */

#if LANES >= 8
#if LANES == 16
typedef __m512i words;
#define VECTOR(f) _mm512_##f
static inline words rounded_words(vf v) {
    return _mm512_cvtps_epi32((__m512)v);
}
/* Stores two rows of bytes. Pack instructions work within 128-bit lanes; the permutation undoes
 * that. */
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

/* Saturating pack instructions clamp to the range; |scale| < 1 keeps the sums within 32 bits. NaN
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

#define ROWS(n) [n] = tile_u##n,
#define SIGNED_ROWS(n) [n] = tile_s##n,
#define BYTE_ROWS(n) [n] = tile_bytes##n,

SNI_DEFINE_TABLE(sni_int_kernels) = {
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
    .copy_rows = copy_rows,
    .blend = blend,
};
