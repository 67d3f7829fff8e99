/* compressed.isa.c - compressing and decompressing exponents, and one row times a compressed piece.
 * Compiled once per tier.
 *
 * Four vectors of floats are a quad. Of its floats' lower 16 bits two vectors are kept and of the
 * bytes above them one, arranged so that few instructions put them together again with a vector
 * of the highest bytes, which a table gives for the codes. A group is the codes, those of two quads
 * side by side, then these vectors of each quad. */
#include "cpu/gemm/compressed.h"

#include "cpu/core/kernels.h"
#include "cpu/core/simd.h"

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_compressed_kernels PASTE(sni_compressed_kernels_, TIER);

#if LANES > 4

#include "cpu/gemm/gemm_core.inc.c"

enum {
    VECTOR = LANES * (int)sizeof(float),
    QUAD = 4 * LANES,                     /* floats */
    QUADS = SNI_COMPRESSED_ROWS * NV / 4, /* of a group */
    KEPT = 3 * VECTOR,                    /* bytes of a quad that are kept as they are */
    CODE_BITS = LANES == 16 ? 3 : 4,      /* one of them for the sign */
    NEIGHBOURS = 1 << (CODE_BITS - 1),    /* that have a code */
    CODES = 2 * QUAD * CODE_BITS / 8,     /* bytes of two quads' codes */
    KEPT_AT = QUADS / 2 * CODES,          /* where what is kept of a group begins */
    GROUP = KEPT_AT + QUADS * KEPT,
    LINES = GROUP / 64,
    FURTHEST = 256,     /* floats from one of a list to the next */
    SLAB = 4,           /* groups that are decoded before their list is looked at */
    WAYS = 4,           /* as those of gemm_row */
    NEAR = 4096,        /* bytes ahead that a row brings to the first-level cache */
    DECODE_NEAR = 1024, /* the same of decoding */
    FIRST_AHEAD = 2     /* groups that a first tile decodes ahead of its products */
};

#endif

#if LANES == 16

typedef __m512i bits;

static inline bits at(const void *p) {
    return _mm512_loadu_si512(p);
}

static inline void put(void *p, bits v) {
    _mm512_storeu_si512(p, v);
}

/* Of the floats at x those whose highest byte has no code, a bit each. */
static inline uint64_t uncoded(const float *x, uint8_t base) {
    bits top = _mm512_and_si512(_mm512_srli_epi32(at(x), 24), _mm512_set1_epi32(127));
    return _mm512_cmpge_epu32_mask(_mm512_sub_epi32(top, _mm512_set1_epi32(base)),
                                   _mm512_set1_epi32(NEIGHBOURS));
}

static const __mmask32 HIGH_WORDS = 0xaaaaaaaa;
static const __mmask64 HIGH_BYTES = 0xaaaaaaaaaaaaaaaa;

/* Writes what is kept of a quad and returns its highest bytes. Of two vectors, the low halves of
 * the second lie above those of the first, and the high halves the other way round; the same with
 * the bytes of those. */
static inline bits split_quad(const float *x, uint8_t *kept) {
    bits high[2];
    UNROLL
    for (int i = 0; i < 2; i++) {
        bits a = at(x + 2 * i * LANES), b = at(x + (2 * i + 1) * LANES);
        put(kept + i * VECTOR, _mm512_mask_blend_epi16(HIGH_WORDS, a, _mm512_slli_epi32(b, 16)));
        high[i] = _mm512_mask_blend_epi16(HIGH_WORDS, _mm512_srli_epi32(b, 16), a);
    }
    put(kept + 2 * VECTOR,
        _mm512_mask_blend_epi8(HIGH_BYTES, high[0], _mm512_slli_epi16(high[1], 8)));
    return _mm512_mask_blend_epi8(HIGH_BYTES, _mm512_srli_epi16(high[1], 8), high[0]);
}

static inline bits code_of(bits top, uint8_t base) {
    bits code = _mm512_and_si512(top, _mm512_set1_epi8(127));
    code = _mm512_min_epu8(_mm512_sub_epi8(code, _mm512_set1_epi8((char)base)),
                           _mm512_set1_epi8(NEIGHBOURS - 1));
    return _mm512_mask_add_epi8(code, _mm512_movepi8_mask(top), code, _mm512_set1_epi8(NEIGHBOURS));
}

/* Eight bytes of 3 bits, as 24 bits. */
static inline bits narrow(bits x) {
    x = _mm512_and_si512(_mm512_or_si512(x, _mm512_srli_epi64(x, 5)), _mm512_set1_epi16(0x3f));
    x = _mm512_and_si512(_mm512_or_si512(x, _mm512_srli_epi64(x, 10)), _mm512_set1_epi32(0xfff));
    x = _mm512_or_si512(x, _mm512_srli_epi64(x, 20));
    return _mm512_and_si512(x, _mm512_set1_epi64(0xffffff));
}

static inline bits widen(bits x) {
    x = _mm512_and_si512(_mm512_or_si512(x, _mm512_slli_epi64(x, 20)), _mm512_set1_epi32(0xfff));
    x = _mm512_and_si512(_mm512_or_si512(x, _mm512_slli_epi64(x, 10)), _mm512_set1_epi16(0x3f));
    return _mm512_and_si512(_mm512_or_si512(x, _mm512_slli_epi64(x, 5)), _mm512_set1_epi8(7));
}

/* Both quads' codes of eight floats are 48 bits, three words. */
static inline void write_codes(const bits code[2], uint8_t *to) {
    const bits words = _mm512_set_epi16(0, 0, 0, 0, 0, 0, 0, 0, 30, 29, 28, 26, 25, 24, 22, 21, 20,
                                        18, 17, 16, 14, 13, 12, 10, 9, 8, 6, 5, 4, 2, 1, 0);
    bits both = _mm512_or_si512(narrow(code[0]), _mm512_slli_epi64(narrow(code[1]), 24));
    _mm512_mask_storeu_epi64(to, 0x3f, _mm512_permutexvar_epi16(words, both));
}

static inline bits read_codes(const uint8_t *from) {
    const bits words = _mm512_set_epi16(0, 23, 22, 21, 0, 20, 19, 18, 0, 17, 16, 15, 0, 14, 13, 12,
                                        0, 11, 10, 9, 0, 8, 7, 6, 0, 5, 4, 3, 0, 2, 1, 0);
    return _mm512_maskz_permutexvar_epi16(0x77777777, words, at(from));
}

/* The highest bytes by their codes. */
static inline bits table_of(uint8_t base) {
    const bits codes = _mm512_set1_epi64((long long)0x8382818003020100);
    return _mm512_and_si512(_mm512_add_epi8(codes, _mm512_set1_epi8((char)base)),
                            _mm512_or_si512(codes, _mm512_set1_epi8(127)));
}

#elif LANES == 8

typedef __m256i bits;

static inline bits at(const void *p) {
    return _mm256_loadu_si256((const __m256i *)p);
}

static inline void put(void *p, bits v) {
    _mm256_storeu_si256((__m256i *)p, v);
}

static inline uint64_t uncoded(const float *x, uint8_t base) {
    bits top = _mm256_and_si256(_mm256_srli_epi32(at(x), 24), _mm256_set1_epi32(127));
    bits code = _mm256_sub_epi32(top, _mm256_set1_epi32(base));
    bits none = _mm256_cmpeq_epi32(code, _mm256_max_epu32(code, _mm256_set1_epi32(NEIGHBOURS)));
    return (uint32_t)_mm256_movemask_ps((__m256)none);
}

/* Writes what is kept of a quad and returns its highest bytes, as the interleaving instructions
 * take them. */
static inline bits split_quad(const float *x, uint8_t *kept) {
    const bits half = _mm256_set1_epi32(0xffff), byte = _mm256_set1_epi16(0xff);
    bits high[2];
    UNROLL
    for (int i = 0; i < 2; i++) {
        bits a = at(x + 2 * i * LANES), b = at(x + (2 * i + 1) * LANES);
        put(kept + i * VECTOR,
            _mm256_packus_epi32(_mm256_and_si256(a, half), _mm256_and_si256(b, half)));
        high[i] = _mm256_packus_epi32(_mm256_srli_epi32(a, 16), _mm256_srli_epi32(b, 16));
    }
    put(kept + 2 * VECTOR,
        _mm256_packus_epi16(_mm256_and_si256(high[0], byte), _mm256_and_si256(high[1], byte)));
    return _mm256_packus_epi16(_mm256_srli_epi16(high[0], 8), _mm256_srli_epi16(high[1], 8));
}

static inline bits code_of(bits top, uint8_t base) {
    bits sign = _mm256_and_si256(_mm256_srli_epi16(top, 4), _mm256_set1_epi8(NEIGHBOURS));
    bits code = _mm256_and_si256(top, _mm256_set1_epi8(127));
    code = _mm256_min_epu8(_mm256_sub_epi8(code, _mm256_set1_epi8((char)base)),
                           _mm256_set1_epi8(NEIGHBOURS - 1));
    return _mm256_or_si256(code, sign);
}

static inline void write_codes(const bits code[2], uint8_t *to) {
    put(to, _mm256_or_si256(code[0], _mm256_slli_epi16(code[1], 4)));
}

static inline bits read_codes(const uint8_t *from) {
    return at(from);
}

static inline bits table_of(uint8_t base) {
    const bits codes = _mm256_set_epi64x((long long)0x8786858483828180, 0x0706050403020100,
                                         (long long)0x8786858483828180, 0x0706050403020100);
    return _mm256_and_si256(_mm256_add_epi8(codes, _mm256_set1_epi8((char)base)),
                            _mm256_or_si256(codes, _mm256_set1_epi8(127)));
}

#endif

#if LANES > 4

/* ---- Coding ---- */

/* Adds float `place` of those at x, which come behind what the list has. */
static void add_more(sni_compressed_list *list, const float *x, int64_t place) {
    uint32_t number;
    memcpy(&number, x + place, sizeof number);
    *list->end++ = (uint8_t)(place - list->last - 1);
    *list->end++ = (uint8_t)(number >> 24);
    list->last = place;
}

/* The quad of floats from `first` on of those at x. No two of the list are further apart than it
 * can say: a float that has a code can stand there too. */
static void list_quad(const float *x, int64_t first, uint8_t base, sni_compressed_list *list) {
    uint64_t rest = 0;
    for (int i = 0; i < 4; i++) rest |= uncoded(x + first + i * LANES, base) << (i * LANES);
    if (first + QUAD - list->last > FURTHEST) rest |= 1;
    for (; rest; rest &= rest - 1) add_more(list, x, first + __builtin_ctzll(rest));
}

static void encode(const float *x, int64_t groups, uint8_t base, uint8_t *to,
                   sni_compressed_list *list) {
    int64_t first = 0;
    for (int64_t g = 0; g < groups; g++, to += GROUP) {
        bits code[2];
        for (int q = 0; q < QUADS; q++, first += QUAD) {
            code[q & 1] = code_of(split_quad(x + first, to + KEPT_AT + q * KEPT), base);
            list_quad(x, first, base, list);
            if (q & 1) write_codes(code, to + q / 2 * CODES);
        }
    }
    list->last -= first;
}

/* ---- Decoding ---- */

/* Sets what the list says of `count` floats that have been decoded. */
static inline void set_more(sni_compressed_piece *p, int64_t count, float *to) {
    const uint8_t *more = p->more, *end = p->end;
    uint8_t *highest = (uint8_t *)to + 3;
    int64_t last = p->last;
    for (; end - more >= SNI_COMPRESSED_MORE; more += SNI_COMPRESSED_MORE) {
        uint16_t both;
        memcpy(&both, more, sizeof both);
        int64_t next = last + 1 + (both & 255);
        if (next >= count) break;
        highest[next * (int64_t)sizeof(float)] = (uint8_t)(both >> 8);
        last = next;
    }
    p->more = more;
    p->last = last - count;
}

#endif

#if LANES == 16

#define TARGET
#define NAME(name) name

static inline bits tops_of(bits codes, int quad, bits table) {
    bits some =
        quad ? _mm512_srli_epi64(codes, 24) : _mm512_and_si512(codes, _mm512_set1_epi64(0xffffff));
    return _mm512_shuffle_epi8(table, widen(some));
}

static inline void join_quad(const uint8_t *kept, bits top, float *to) {
    const bits swap =
        _mm512_broadcast_i32x4(_mm_set_epi8(14, 15, 12, 13, 10, 11, 8, 9, 6, 7, 4, 5, 2, 3, 0, 1));
    bits middle = at(kept + 2 * VECTOR);
    bits high[2] = {
        _mm512_mask_blend_epi8(HIGH_BYTES, middle, top),
        _mm512_shuffle_epi8(_mm512_mask_blend_epi8(HIGH_BYTES, top, middle), swap),
    };
    UNROLL
    for (int i = 0; i < 2; i++) {
        bits low = at(kept + i * VECTOR);
        bits second = _mm512_mask_blend_epi16(HIGH_WORDS, high[i], low);
        put(to + 2 * i * LANES, _mm512_mask_blend_epi16(HIGH_WORDS, low, high[i]));
        put(to + (2 * i + 1) * LANES, _mm512_rol_epi32(second, 16));
    }
}

#include "cpu/gemm/compressed_run.inc.c"
#undef TARGET
#undef NAME

#define TARGET __attribute__((target("avx512vbmi,avx512vbmi2")))
#define NAME(name) name##_vbmi2

TARGET static inline bits tops_of_vbmi2(bits codes, int quad, bits table) {
    const bits places = _mm512_set1_epi64(0x15120f0c09060300);
    bits index = _mm512_multishift_epi64_epi8(
        _mm512_add_epi8(places, _mm512_set1_epi8((char)(24 * quad))), codes);
    return _mm512_permutexvar_epi8(index, table);
}

TARGET static inline void join_quad_vbmi2(const uint8_t *kept, bits top, float *to) {
    bits middle = at(kept + 2 * VECTOR);
    bits high[2] = {
        _mm512_mask_blend_epi8(HIGH_BYTES, middle, top),
        _mm512_shrdi_epi16(middle, top, 8),
    };
    UNROLL
    for (int i = 0; i < 2; i++) {
        bits low = at(kept + i * VECTOR);
        put(to + 2 * i * LANES, _mm512_mask_blend_epi16(HIGH_WORDS, low, high[i]));
        put(to + (2 * i + 1) * LANES, _mm512_shrdi_epi32(low, high[i], 16));
    }
}

#include "cpu/gemm/compressed_run.inc.c"

#elif LANES == 8

#define TARGET
#define NAME(name) name

static inline bits tops_of(bits codes, int quad, bits table) {
    bits some = quad ? _mm256_srli_epi16(codes, 4) : codes;
    return _mm256_shuffle_epi8(table, _mm256_and_si256(some, _mm256_set1_epi8(15)));
}

static inline void join_quad(const uint8_t *kept, bits top, float *to) {
    bits middle = at(kept + 2 * VECTOR);
    bits high[2] = {_mm256_unpacklo_epi8(middle, top), _mm256_unpackhi_epi8(middle, top)};
    UNROLL
    for (int i = 0; i < 2; i++) {
        bits low = at(kept + i * VECTOR);
        put(to + 2 * i * LANES, _mm256_unpacklo_epi16(low, high[i]));
        put(to + (2 * i + 1) * LANES, _mm256_unpackhi_epi16(low, high[i]));
    }
}

#include "cpu/gemm/compressed_run.inc.c"

#endif

#if LANES > 4

#if LANES == 16
static const sni_compressed_kernels kernels_vbmi2 = {
    .group_bytes = GROUP,
    .codes = NEIGHBOURS,
    .rows = 48,
    .encode = encode,
    .decode = decode_vbmi2,
    .row = row_vbmi2,
    .firsts = firsts_vbmi2,
};
#endif

const sni_compressed_kernels PASTE(sni_compressed_kernels_, TIER) = {
    .group_bytes = GROUP,
    .codes = NEIGHBOURS,
    .rows = LANES == 16 ? 32 : 16,
    .encode = encode,
    .decode = decode,
    .row = row,
    .firsts = firsts,
#if LANES == 16
    .with_vbmi2 = &kernels_vbmi2,
#endif
};
#else
const sni_compressed_kernels PASTE(sni_compressed_kernels_, TIER) = {.group_bytes = 0};
#endif
