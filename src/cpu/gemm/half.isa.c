/* half.isa.c - float16 and bfloat16 panels as float32, for one tier: a panel at a time, limited by
 * stores, and a row times a panel, limited by memory. */
#include "cpu/gemm/half.h"

#include "cpu/core/simd.h"

enum {
    NV = 2, /* vectors of a row of a panel, as in gemm_core.inc.c */
    NR = NV * LANES,
    WAYS = 4 /* steps of k that are added up apart, as in gemm_row */
};

/* ---- Vectors ---- */

/* LANES numbers of 16 bits. */
typedef uint16_t v16 __attribute__((vector_size(LANES * sizeof(uint16_t))));
typedef uint16_t v16_anywhere
    __attribute__((vector_size(LANES * sizeof(uint16_t)), aligned(1), may_alias));
typedef uint32_t vu_anywhere
    __attribute__((vector_size(LANES * sizeof(uint32_t)), aligned(1), may_alias));

static inline vu wide_bits(const uint16_t *p) {
    return __builtin_convertvector(*(const v16_anywhere *)p, vu);
}

static inline vf load_f16(const uint16_t *p) {
#if defined(__AVX512F__)
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
#elif defined(__AVX2__)
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
#else
    /* The exponent is 112 too small for float32, which a product makes good, subnormal numbers
     * included; that of infinity and NaN must be the greatest there is. */
    vu bits = wide_bits(p), size = (bits & 0x7fff) << 13;
    vu special = (vu)((vi)size >= 0x1f << 23) & 0x7f800000;
    return (vf)((vu)((vf)size * splat(0x1p112f)) | special | (bits & 0x8000) << 16);
#endif
}

static inline vf load_bf16(const uint16_t *p) {
    return (vf)(wide_bits(p) << 16);
}

/* Pairs of bfloat16: the first numbers of the pairs, or the second ones. */
static inline vf pair_first(const uint16_t *p) {
    return (vf)(*(const vu_anywhere *)(const void *)p << 16);
}
static inline vf pair_second(const uint16_t *p) {
    return (vf)(*(const vu_anywhere *)(const void *)p & 0xffff0000u);
}

/* Vector j of row p of a panel; `p` is a constant, counted from an even row. */
static inline vf panel_f16(const uint16_t *b, int p, int j) {
    return load_f16(b + p * NR + j * LANES);
}
static inline vf panel_bf16(const uint16_t *b, int p, int j) {
    const uint16_t *pair = b + p / 2 * 2 * NR + 2 * j * LANES;
    return p % 2 ? pair_second(pair) : pair_first(pair);
}

/* ---- Kernels ---- */

#define HALF(name)                                                                                 \
    static void widen_##name(int64_t n, const uint16_t *from, float *to) {                         \
        int64_t i = 0;                                                                             \
        for (; i + LANES <= n; i += LANES) store(to + i, load_##name(from + i));                   \
        if (i == n) return;                                                                        \
        uint16_t rest[LANES] = {0};                                                                \
        float wide[LANES];                                                                         \
        memcpy(rest, from + i, (size_t)(n - i) * sizeof *rest);                                    \
        store(wide, load_##name(rest));                                                            \
        memcpy(to + i, wide, (size_t)(n - i) * sizeof *to);                                        \
    }                                                                                              \
    static void panel_rows_##name(int64_t k, const uint16_t *from, float *to) {                    \
        for (; k >= 2; k -= 2, from += 2 * NR, to += 2 * NR) {                                     \
            UNROLL                                                                                 \
            for (int p = 0; p < 2; p++) UNROLL                                                     \
            for (int j = 0; j < NV; j++) store(to + p * NR + j * LANES, panel_##name(from, p, j)); \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int j = 0; j < NV && k > 0; j++) store(to + j * LANES, panel_##name(from, 0, j));     \
    }                                                                                              \
    static void row_##name(int64_t k, const float *restrict a, const uint16_t *restrict b,         \
                           float *restrict c, bool add) {                                          \
        vf sum[WAYS][NV];                                                                          \
        UNROLL                                                                                     \
        for (int w = 0; w < WAYS; w++) UNROLL                                                      \
        for (int j = 0; j < NV; j++) sum[w][j] = splat(0);                                         \
        int64_t p = 0;                                                                             \
        for (; p + WAYS <= k; p += WAYS, b += WAYS * NR) {                                         \
            UNROLL                                                                                 \
            for (int w = 0; w < WAYS; w++) {                                                       \
                vf x = splat(a[p + w]);                                                            \
                UNROLL                                                                             \
                for (int j = 0; j < NV; j++) sum[w][j] += x * panel_##name(b, w, j);               \
            }                                                                                      \
        }                                                                                          \
        for (int odd = 0; p < k; p++, b += odd ? 2 * NR : 0, odd ^= 1) {                           \
            vf x = splat(a[p]);                                                                    \
            UNROLL                                                                                 \
            for (int j = 0; j < NV; j++)                                                           \
                sum[0][j] += x * (odd ? panel_##name(b, 1, j) : panel_##name(b, 0, j));            \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int j = 0; j < NV; j++) {                                                             \
            vf total = sum[0][j];                                                                  \
            UNROLL                                                                                 \
            for (int w = 1; w < WAYS; w++) total += sum[w][j];                                     \
            store(c + j * LANES, add ? load(c + j * LANES) + total : total);                       \
        }                                                                                          \
    }
HALF(f16)
HALF(bf16)
#undef HALF

SNI_DEFINE_TABLE(sni_half_kernels) = {
    .widen = {widen_f16, widen_bf16},
    .panel = {panel_rows_f16, panel_rows_bf16},
    .row = {row_f16, row_bf16},
};
