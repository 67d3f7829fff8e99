/* convert.h - elements of one type to another, as ONNX's Cast does for numbers and bools.
 *
 * Where ONNX leaves the result open: a float outside the range of an integer type gives the nearest
 * end of it and NaN gives 0; integers, and floats on their way to types under 8 bits, keep their
 * low bits; narrow floats are rounded once. */
#ifndef SNI_OPS_CORE_CONVERT_H
#define SNI_OPS_CORE_CONVERT_H

#include "base/floats.h"

typedef struct sni_convert_mode {
    bool saturate; /* to float8, float4 and float8e8m0 */
    sni_e8m0_round round;
} sni_convert_mode;

/* True if both types are numbers or bools: what sni_convert takes. */
bool sni_convertible(sn_dtype from, sn_dtype to);

/* Converts n elements; src and dst do not overlap unless they are the same and neither type is
 * wider than the other. A NULL mode saturates and rounds up. */
void sni_convert(sn_dtype from, const void *src, sn_dtype to, void *dst, size_t n,
                 const sni_convert_mode *mode);

/* Brings bytes to what elements of a type under 8 bits look like: the low bits only, with the sign
 * spread for signed types. Other types are left alone. */
void sni_keep_low_bits(sn_dtype dtype, void *elements, size_t n);

#endif
