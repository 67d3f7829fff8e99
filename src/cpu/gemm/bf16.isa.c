/* bf16.isa.c - tiles of products of bfloat16. Compiled twice: for AVX512-BF16, whose tile keeps 14
 * rows by 32 columns of sums in registers, and for AMX-BF16, whose tiles have 16 by 32. Both are
 * limited by multiplications. */
#include "cpu/gemm/bf16.h"

#include <immintrin.h>

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

extern const sni_bf16_kernels PASTE(sni_bf16_kernels_, TIER);

enum { NR = 32, LINE = SNI_BF16_TERMS };

#ifdef __AMX_BF16__
enum { MR = 16 };
#else
enum { MR = 14 };
#endif

/* ---- The left operand ---- */

static inline __m512 read_line(const sni_product_part *part, int row, int64_t line) {
    __m512 x = _mm512_loadu_ps(part->from[row] + line * part->step[row]);
    return part->factors ? _mm512_mul_ps(x, _mm512_loadu_ps(part->factors + line * SNI_LEFT_STEPS))
                         : x;
}

/* Two lines of floats make one of bfloat16; the second may be of the next part. */
static void left(int rows, int count, const sni_product_part *parts, uint16_t *to) {
    int64_t at = 0;
    for (const sni_product_part *part = parts; part < parts + count; part++)
        for (int64_t line = 0; line < part->lines; line++, at++) {
            uint16_t *half = to + at / 2 * MR * LINE + at % 2 * SNI_LEFT_STEPS;
            for (int i = 0; i < rows; i++, half += LINE)
                _mm256_storeu_si256((void *)half,
                                    (__m256i)_mm512_cvtneps_pbh(read_line(part, i, line)));
        }
    if (at % 2 == 0) return;
    uint16_t *half = to + at / 2 * MR * LINE + SNI_LEFT_STEPS;
    for (int i = 0; i < rows; i++, half += LINE)
        _mm256_storeu_si256((void *)half, _mm256_setzero_si256());
}

#ifdef __AMX_BF16__

/* ---- Tiles of AMX ---- */

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

enum { PAIRS = LINE / 2 };

static void configure(int rows, int pairs) {
    tile_config c = {.palette = 1};
    for (int i = 0; i < 2; i++) { /* sums */
        c.rows[i] = (uint8_t)rows;
        c.row_bytes[i] = 64;
    }
    c.rows[2] = (uint8_t)rows; /* A */
    c.row_bytes[2] = (uint16_t)(pairs * 4);
    for (int i = 3; i < 5; i++) { /* B */
        c.rows[i] = (uint8_t)pairs;
        c.row_bytes[i] = 64;
    }
    _tile_loadconfig(&c);
}

/* A step of up to a line of terms. */
static inline void multiply(const uint16_t *a, const uint16_t *b) {
    _tile_loadd(2, a, LINE * 2);
    _tile_loadd(3, b, NR * 4);
    _tile_loadd(4, b + NR, NR * 4);
    _tile_dpbf16ps(0, 2, 3);
    _tile_dpbf16ps(1, 2, 4);
}

static void tile(int rows, int64_t k, const uint16_t *a, const uint16_t *b, bool add, float *sums) {
    if (!add)
        for (int64_t i = 0; i < (int64_t)rows * NR; i += 16)
            _mm512_storeu_ps(sums + i, _mm512_setzero_ps());
    for (int64_t at = 0; at < k;) { /* whole lines, then what is left */
        int64_t lines = (k - at) / LINE, pairs = lines ? PAIRS : (k - at) / 2;
        configure(rows, (int)pairs);
        _tile_loadd(0, sums, NR * sizeof(float));
        _tile_loadd(1, sums + NR / 2, NR * sizeof(float));
        for (int64_t i = 0; i < (lines ? lines : 1); i++, at += 2 * pairs) {
            multiply(a, b);
            a += MR * LINE;
            b += 2 * pairs * NR;
        }
        _tile_stored(0, sums, NR * sizeof(float));
        _tile_stored(1, sums + NR / 2, NR * sizeof(float));
    }
}

static void end(void) {
    _tile_release();
}

#else

/* ---- Tiles of vectors ---- */

#define UNROLL _Pragma("GCC unroll 32")
#if defined(__clang__)
#undef UNROLL
#define UNROLL _Pragma("clang loop unroll(full)")
#endif

static inline __attribute__((always_inline)) void pair_step(int rows, const uint16_t *a,
                                                            const uint16_t *b, __m512 sum[MR][2]) {
    __m512bh right[2];
    UNROLL
    for (int j = 0; j < 2; j++) right[j] = (__m512bh)_mm512_loadu_si512(b + j * NR);
    UNROLL
    for (int i = 0; i < rows; i++) {
        int32_t pair;
        __builtin_memcpy(&pair, a + i * LINE, sizeof pair);
        __m512bh left_pair = (__m512bh)_mm512_set1_epi32(pair);
        UNROLL
        for (int j = 0; j < 2; j++) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], right[j], left_pair);
    }
}

/* `rows` is a constant at every call. */
static inline __attribute__((always_inline)) void
sum_tile(int rows, int64_t k, const uint16_t *a, const uint16_t *b, bool add, float *sums) {
    enum { TOGETHER = 8 }; /* terms of a round of the loop */
    __m512 sum[MR][2];
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < 2; j++)
        sum[i][j] = add ? _mm512_loadu_ps(sums + i * NR + j * 16) : _mm512_setzero_ps();
    for (; k >= LINE; k -= LINE, a += (MR - 1) * LINE)
        for (const uint16_t *line_end = a + LINE; a < line_end; a += TOGETHER, b += TOGETHER * NR) {
            UNROLL
            for (int s = 0; s < TOGETHER; s += 2) pair_step(rows, a + s, b + s * NR, sum);
        }
    for (; k > 0; k -= 2, a += 2, b += 2 * NR) pair_step(rows, a, b, sum);
    UNROLL
    for (int i = 0; i < rows; i++) UNROLL
    for (int j = 0; j < 2; j++) _mm512_storeu_ps(sums + i * NR + j * 16, sum[i][j]);
}

static void tile(int rows, int64_t k, const uint16_t *a, const uint16_t *b, bool add, float *sums) {
    switch (rows) {
#define TILE(count)                          \
    case count:                              \
        sum_tile(count, k, a, b, add, sums); \
        break;
#define LANES 16
#include "cpu/gemm/gemm_sizes.inc.c"
#undef TILE
    }
}

#endif

const sni_bf16_kernels PASTE(sni_bf16_kernels_, TIER) = {
    .rows = MR,
    .left = left,
    .tile = tile,
#ifdef __AMX_BF16__
    .end = end,
#endif
};
