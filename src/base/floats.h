/* floats.h - conversion between float and the narrow floating-point types.
 *
 * To narrow types: round to nearest, ties to even. float16 and bfloat16 keep NaN and infinity and
 * overflow to infinity. float8, float4 and float8e8m0: `saturate` chooses, as ONNX's Cast does,
 * between the largest finite value and NaN or infinity. */
#ifndef SNI_BASE_FLOATS_H
#define SNI_BASE_FLOATS_H

#include "base/dtype.h"

float sni_f16_to_f32(uint16_t h);
uint16_t sni_f32_to_f16(float f);
uint16_t sni_f64_to_f16(double d); /* rounds once */
float sni_bf16_to_f32(uint16_t h);
uint16_t sni_f32_to_bf16(float f);

/* One element of any type of class S (see dtype.def) to float. Sub-byte types: one a byte. */
float sni_narrow_to_f32(sn_dtype dtype, const void *element);

/* `count` elements of a type of class S to float, and back. */
void sni_widen(sn_dtype dtype, const void *src, float *dst, size_t count);
void sni_narrow(sn_dtype dtype, const float *src, void *dst, size_t count, bool saturate);

#endif
