/* transpose.h - LANES x LANES floats transposed in registers, for tier sources. */
#ifndef SNI_CPU_CORE_TRANSPOSE_H
#define SNI_CPU_CORE_TRANSPOSE_H

#include "cpu/core/simd.h"

/* Transposes LANES x LANES floats in registers: first 4 x 4 blocks within each 128-bit lane, then
 * the 128-bit lanes across vectors. */
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

#endif
