/* floats.h - conversion between float and the narrow floating-point types.
 *
 * To narrow types: round to nearest, ties to even. float16 and bfloat16 keep NaN and infinity and
 * overflow to infinity. The float8 types: `saturate` chooses, as ONNX's Cast does, between the
 * largest finite value and NaN or infinity. float4e2m1 has neither: it always saturates, and NaN
 * becomes -0. float8e8m0 holds powers of two only: see sni_narrow_e8m0(). */
#ifndef SNI_BASE_FLOATS_H
#define SNI_BASE_FLOATS_H

#include "base/dtype.h"

/* A float at any address, as they lie in files. */
typedef float sni_unaligned_float __attribute__((aligned(1)));

/* One number each; the narrow ones as their bits. */
float sni_f16_to_f32(uint16_t h);
uint16_t sni_f32_to_f16(float f);
uint16_t sni_f64_to_f16(double d); /* rounds once */
float sni_bf16_to_f32(uint16_t h);
uint16_t sni_f32_to_bf16(float f);

/* One element of any type of class S (see dtype.def) to float. Sub-byte types: one a byte. */
float sni_narrow_to_f32(sn_dtype dtype, const void *element);

/* `count` elements of a type of class S to float, and back. Source and result must not overlap. */
void sni_widen(sn_dtype dtype, const void *src, float *dst, size_t count);
void sni_narrow(sn_dtype dtype, const float *src, void *dst, size_t count, bool saturate);

typedef enum sni_e8m0_round {
    SNI_E8M0_UP,     /* to the next power of two above; what sni_narrow() does */
    SNI_E8M0_DOWN,   /* to the next one below */
    SNI_E8M0_NEAREST /* ties go up */
} sni_e8m0_round;

/* To float8e8m0, whose values are 2^-127 to 2^127 and NaN. What lies outside (0 too) becomes the
 * nearest end with `saturate` and NaN without; NaN and values below 0 become NaN. */
void sni_narrow_e8m0(const float *src, uint8_t *dst, size_t count, bool saturate,
                     sni_e8m0_round mode);

#endif
