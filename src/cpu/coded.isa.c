/* coded.isa.c - coding and decoding of exponents, and one row times a coded piece. Compiled once
 * per tier.
 *
 * A float rotated left by one bit has its exponent in the highest byte. Four vectors of them, a
 * quad, are kept as two vectors of their low halves (16 bits), one vector of the bytes above, and
 * one vector's worth of codes: what the interleaving instructions make of these lies in order. */
#include "cpu/coded.h"

#include "cpu/kernels.h"
#include "cpu/simd.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_coded_kernels PASTE(sni_coded_kernels_, TIER);

#if LANES > 4

#include "cpu/gemm_core.inc.c"

enum {
    VECTOR = LANES * (int)sizeof(float),
    QUAD = 4 * LANES,                /* floats */
    QUADS = SNI_CODED_ROWS * NV / 4, /* of a group */
    LOW = 2 * VECTOR,                /* bytes of a quad's low halves */
    TOP = QUADS * LOW,               /* where a group's bytes above them begin */
    CODES = TOP + QUADS * VECTOR,    /* where its codes begin */
    NEAR = 4096,                     /* bytes ahead that a row brings to the first-level cache */
    DECODE_NEAR = 1024               /* the same of decoding */
};

#endif

#if LANES == 16

enum { ESCAPE = 7, LAST_BITS = CODES + QUADS * 16, GROUP = LAST_BITS + QUADS * 8 };

/* Two bits of a quad's codes, each of 16 bytes for four of them, and the third as a mask. */
static inline __m512i codes_of(const uint8_t *group, int quad) {
    const __m512i shifts = _mm512_set_epi32(6, 6, 6, 6, 4, 4, 4, 4, 2, 2, 2, 2, 0, 0, 0, 0);
    uint64_t third;
    memcpy(&third, group + LAST_BITS + quad * 8, sizeof third);
    __m512i two = _mm512_broadcast_i32x4(
        _mm_loadu_si128((const __m128i *)(const void *)(group + CODES + quad * 16)));
    two = _mm512_and_si512(_mm512_srlv_epi32(two, shifts), _mm512_set1_epi8(3));
    return _mm512_mask_add_epi8(two, (__mmask64)third, two, _mm512_set1_epi8(4));
}

static inline void write_codes(__m512i codes, uint8_t *group, int quad) {
    const __m512i shifts = _mm512_set_epi32(6, 6, 6, 6, 4, 4, 4, 4, 2, 2, 2, 2, 0, 0, 0, 0);
    uint64_t third = _mm512_test_epi8_mask(codes, _mm512_set1_epi8(4));
    __m512i two = _mm512_sllv_epi32(_mm512_and_si512(codes, _mm512_set1_epi8(3)), shifts);
    __m256i half = _mm256_or_si256(_mm512_castsi512_si256(two), _mm512_extracti64x4_epi64(two, 1));
    __m128i all = _mm_or_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    memcpy(group + LAST_BITS + quad * 8, &third, sizeof third);
    _mm_storeu_si128((__m128i *)(void *)(group + CODES + quad * 16), all);
}

/* The bytes of `e` in `mask` replaced by bytes from `more` on, in order. */
static inline __m512i expand(__m512i e, uint64_t mask, const uint8_t *more) {
    __m128i part[4];
    UNROLL
    for (int i = 0; i < 4; i++) {
        __mmask16 some = (__mmask16)(mask >> 16 * i);
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)more);
        part[i] =
            _mm512_cvtepi32_epi8(_mm512_maskz_expand_epi32(some, _mm512_cvtepu8_epi32(bytes)));
        more += __builtin_popcount(some);
    }
    __m512i all = _mm512_inserti32x4(_mm512_castsi128_si512(part[0]), part[1], 1);
    all = _mm512_inserti32x4(_mm512_inserti32x4(all, part[2], 2), part[3], 3);
    return _mm512_mask_mov_epi8(e, (__mmask64)mask, all);
}

static inline uint8_t *encode_quad(const float *x, uint8_t base, uint8_t *group, int quad,
                                   uint8_t *more) {
    __m512i v[4], low[2], high[2];
    UNROLL
    for (int i = 0; i < 4; i++) v[i] = _mm512_rol_epi32((__m512i)load(x + i * LANES), 1);
    UNROLL
    for (int i = 0; i < 2; i++) {
        const __m512i half = _mm512_set1_epi32(0xffff);
        low[i] = _mm512_packus_epi32(_mm512_and_si512(v[2 * i], half),
                                     _mm512_and_si512(v[2 * i + 1], half));
        high[i] = _mm512_packus_epi32(_mm512_srli_epi32(v[2 * i], 16),
                                      _mm512_srli_epi32(v[2 * i + 1], 16));
        _mm512_storeu_si512(group + quad * LOW + i * VECTOR, low[i]);
    }
    const __m512i byte = _mm512_set1_epi16(0xff);
    __m512i top =
        _mm512_packus_epi16(_mm512_and_si512(high[0], byte), _mm512_and_si512(high[1], byte));
    __m512i e = _mm512_packus_epi16(_mm512_srli_epi16(high[0], 8), _mm512_srli_epi16(high[1], 8));
    _mm512_storeu_si512(group + TOP + quad * VECTOR, top);
    __m512i codes =
        _mm512_min_epu8(_mm512_sub_epi8(e, _mm512_set1_epi8((char)base)), _mm512_set1_epi8(ESCAPE));
    write_codes(codes, group, quad);
    uint8_t bytes[QUAD];
    uint64_t rest = _mm512_cmpeq_epi8_mask(codes, _mm512_set1_epi8(ESCAPE));
    if (rest) _mm512_storeu_si512(bytes, e);
    for (; rest; rest &= rest - 1) *more++ = bytes[__builtin_ctzll(rest)];
    return more;
}

/* Four vectors from the parts of a quad, with the exponents `e`. */
static inline void join_quad(const uint8_t *group, int quad, __m512i e, vf v[4]) {
    __m512i top = _mm512_loadu_si512(group + TOP + quad * VECTOR);
    __m512i high[2] = {_mm512_unpacklo_epi8(top, e), _mm512_unpackhi_epi8(top, e)};
    UNROLL
    for (int i = 0; i < 2; i++) {
        __m512i low = _mm512_loadu_si512(group + quad * LOW + i * VECTOR);
        v[2 * i] = (vf)_mm512_ror_epi32(_mm512_unpacklo_epi16(low, high[i]), 1);
        v[2 * i + 1] = (vf)_mm512_ror_epi32(_mm512_unpackhi_epi16(low, high[i]), 1);
    }
}

static uint8_t *encode(const float *x, int64_t groups, uint8_t base, uint8_t *to, uint8_t *more) {
    for (; groups > 0; groups--, x += QUADS * QUAD, to += GROUP) {
        UNROLL
        for (int q = 0; q < QUADS; q++) more = encode_quad(x + q * QUAD, base, to, q, more);
    }
    return more;
}

/* A piece as far as it has been read. */
typedef struct reader {
    const uint8_t *group, *more, *end;
    __m512i base;
} reader;

static inline reader reader_of(const sni_coded_piece *p) {
    return (reader){p->groups, p->more, p->end, _mm512_set1_epi8((char)p->base)};
}

#define TARGET
#define NAME(name) name
#define EXPAND expand
#include "cpu/coded512.inc.c"
#undef TARGET
#undef NAME
#undef EXPAND

#define TARGET __attribute__((target("avx512vbmi2")))
#define NAME(name) name##_vbmi2
#define EXPAND(e, mask, more) \
    _mm512_mask_expand_epi8(e, (__mmask64)(mask), _mm512_loadu_si512(more))
#include "cpu/coded512.inc.c"

static const sni_coded_tile_fn tiles[SNI_MAX_MR + 1];

static const sni_coded_kernels kernels_vbmi2 = {
    .group_bytes = GROUP,
    .codes = ESCAPE,
    .rows = 32,
    .encode = encode,
    .decode = decode_vbmi2,
    .row = row_vbmi2,
    .tiles = tiles,
};

#elif LANES == 8

enum { ESCAPE = 15, GROUP = CODES + VECTOR };

static inline __m256i rotate_left(__m256i x) {
    return _mm256_or_si256(_mm256_slli_epi32(x, 1), _mm256_srli_epi32(x, 31));
}

static inline __m256i rotate_right(__m256i x) {
    return _mm256_or_si256(_mm256_srli_epi32(x, 1), _mm256_slli_epi32(x, 31));
}

static inline __m256i at(const uint8_t *p) {
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline void put(uint8_t *p, __m256i v) {
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}

/* The bytes of `codes` that are the escape, a bit each. */
static inline uint32_t escapes_of(__m256i codes) {
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(codes, _mm256_set1_epi8(ESCAPE)));
}

/* A quad's codes. */
static inline __m256i encode_quad(const float *x, uint8_t base, uint8_t *group, int quad,
                                  uint8_t **more) {
    __m256i v[4], high[2];
    UNROLL
    for (int i = 0; i < 4; i++) v[i] = rotate_left((__m256i)load(x + i * LANES));
    UNROLL
    for (int i = 0; i < 2; i++) {
        const __m256i half = _mm256_set1_epi32(0xffff);
        __m256i low = _mm256_packus_epi32(_mm256_and_si256(v[2 * i], half),
                                          _mm256_and_si256(v[2 * i + 1], half));
        high[i] = _mm256_packus_epi32(_mm256_srli_epi32(v[2 * i], 16),
                                      _mm256_srli_epi32(v[2 * i + 1], 16));
        put(group + quad * LOW + i * VECTOR, low);
    }
    const __m256i byte = _mm256_set1_epi16(0xff);
    put(group + TOP + quad * VECTOR,
        _mm256_packus_epi16(_mm256_and_si256(high[0], byte), _mm256_and_si256(high[1], byte)));
    __m256i e = _mm256_packus_epi16(_mm256_srli_epi16(high[0], 8), _mm256_srli_epi16(high[1], 8));
    __m256i codes =
        _mm256_min_epu8(_mm256_sub_epi8(e, _mm256_set1_epi8((char)base)), _mm256_set1_epi8(ESCAPE));
    uint8_t bytes[QUAD];
    uint32_t rest = escapes_of(codes);
    if (rest) put(bytes, e);
    for (; rest; rest &= rest - 1) *(*more)++ = bytes[__builtin_ctz(rest)];
    return codes;
}

static uint8_t *encode(const float *x, int64_t groups, uint8_t base, uint8_t *to, uint8_t *more) {
    for (; groups > 0; groups--, x += QUADS * QUAD, to += GROUP) {
        __m256i first = encode_quad(x, base, to, 0, &more);
        __m256i second = encode_quad(x + QUAD, base, to, 1, &more);
        put(to + CODES, _mm256_or_si256(first, _mm256_slli_epi16(second, 4)));
    }
    return more;
}

/* A piece as far as it has been read. */
typedef struct reader {
    const uint8_t *group, *more, *end;
    __m256i base;
} reader;

static inline reader reader_of(const sni_coded_piece *p) {
    return (reader){p->groups, p->more, p->end, _mm256_set1_epi8((char)p->base)};
}

/* Exponents that have no code: few. */
static __attribute__((noinline)) __m256i expand(reader *r, __m256i e, uint32_t rest) {
    uint8_t bytes[QUAD];
    put(bytes, e);
    for (; rest; rest &= rest - 1) {
        bytes[__builtin_ctz(rest)] = *r->more;
        if (r->more < r->end) r->more++;
    }
    return at(bytes);
}

static inline __attribute__((always_inline)) void read_quad(reader *r, int quad, vf v[4]) {
    __m256i codes = at(r->group + CODES);
    if (quad) codes = _mm256_srli_epi16(codes, 4);
    codes = _mm256_and_si256(codes, _mm256_set1_epi8(15));
    __m256i e = _mm256_add_epi8(codes, r->base);
    uint32_t rest = escapes_of(codes);
    if (__builtin_expect(rest != 0, 0)) e = expand(r, e, rest);
    __m256i top = at(r->group + TOP + quad * VECTOR);
    __m256i high[2] = {_mm256_unpacklo_epi8(top, e), _mm256_unpackhi_epi8(top, e)};
    UNROLL
    for (int i = 0; i < 2; i++) {
        __m256i low = at(r->group + quad * LOW + i * VECTOR);
        v[2 * i] = (vf)rotate_right(_mm256_unpacklo_epi16(low, high[i]));
        v[2 * i + 1] = (vf)rotate_right(_mm256_unpackhi_epi16(low, high[i]));
    }
}

static inline __attribute__((always_inline)) void read_group(reader *r, vf v[SNI_CODED_ROWS][NV]) {
    UNROLL
    for (int q = 0; q < QUADS; q++) read_quad(r, q, &v[q * 4 / NV][0]);
    r->group += GROUP;
}

#define TARGET
#define NAME(name) name
#include "cpu/coded_run.inc.c"

#endif

#if LANES > 4

#define TILE(rows)                                                                            \
    static void go_on_##rows(int64_t k, const float *a, const float *b, float *c, bool go_on, \
                             const float *fetch, int64_t lines) {                             \
        tile(rows, k, a, b, c, NR, false, go_on, fetch, lines);                               \
    }
#include "cpu/gemm_sizes.inc.c"
#undef TILE

static const sni_coded_tile_fn tiles[SNI_MAX_MR + 1] = {
#define TILE(rows) [rows] = go_on_##rows,
#include "cpu/gemm_sizes.inc.c"
#undef TILE
};

const sni_coded_kernels PASTE(sni_coded_kernels_, TIER) = {
    .group_bytes = GROUP,
    .codes = ESCAPE,
    .rows = LANES == 8 ? 8 : 1,
    .encode = encode,
    .decode = decode,
    .row = row,
    .tiles = tiles,
#if LANES == 16
    .with_vbmi2 = &kernels_vbmi2,
#endif
};
#else
const sni_coded_kernels PASTE(sni_coded_kernels_, TIER) = {.group_bytes = 0};
#endif
