/* convert.h - conversion of elements between types, as ONNX's Cast does for numbers and bools.
 *
 * Where ONNX leaves the result undefined: a float outside the range of an integer type gives the
 * nearest end of the range, and NaN gives 0. Integers keep their low bits; so do floats that are
 * converted to types below 8 bits. Narrow floats are rounded once, to nearest even. */
#ifndef SNI_OPS_CORE_CONVERT_H
#define SNI_OPS_CORE_CONVERT_H

#include "base/floats.h"

typedef struct sni_convert_mode {
    bool saturate; /* to float8, float4 and float8e8m0 */
    sni_e8m0_round round;
} sni_convert_mode;

/* True if both types are numbers or bools, which sni_convert() accepts. */
bool sni_convertible(sn_dtype from, sn_dtype to);

/* Converts n elements. src and dst must not overlap, except that they may be the same array if the
 * types have the same width. mode NULL: saturates and rounds float8e8m0 up. */
void sni_convert(sn_dtype from, const void *src, sn_dtype to, void *dst, size_t n,
                 const sni_convert_mode *mode);

/* Types below 8 bits are stored one per byte: keeps the low bits of n bytes and extends the sign of
 * signed types. Elements of other types are left as they are. */
void sni_keep_low_bits(sn_dtype dtype, void *elements, size_t n);

#endif
