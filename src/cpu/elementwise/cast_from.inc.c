/* cast_from.inc.c - template: conversions of S to every common type. Instances: cast.isa.c, six.
 *   S            the source type; SNAME is its name in functions' names
 *   S_FLOAT      defined if S is a float type; then S_HIGH(bits) is the largest S below 2^bits
 * Makes cast_SNAME_f32, _f64, _i32, _i64, _u8, _i8 and _b8. S and SNAME are undefined again. */
#define CAST_NAME_(a, b) cast_##a##_##b
#define CAST_NAME(a, b) CAST_NAME_(a, b)

#define TO_FLOAT 1
#define D float
#define FN_CAST CAST_NAME(SNAME, f32)
#include "cpu/elementwise/cast_pair.inc.c"
#define D double
#define FN_CAST CAST_NAME(SNAME, f64)
#include "cpu/elementwise/cast_pair.inc.c"
#undef TO_FLOAT

#define TO_INT 1
#define D int32_t
#define WIDE int32_t
#define LOW (-2147483648.0)
#define HIGH S_HIGH(31)
#define BEYOND 2147483648.0
#define MOST INT32_MAX
#define FN_CAST CAST_NAME(SNAME, i32)
#include "cpu/elementwise/cast_pair.inc.c"

#define D int64_t
#define WIDE int64_t
#define LOW (-9223372036854775808.0)
#define HIGH S_HIGH(63)
#define BEYOND 9223372036854775808.0
#define MOST INT64_MAX
#define FN_CAST CAST_NAME(SNAME, i64)
#include "cpu/elementwise/cast_pair.inc.c"

#define D uint8_t
#define WIDE int32_t
#define LOW 0
#define HIGH 255
#define BEYOND 256
#define MOST UINT8_MAX
#define FN_CAST CAST_NAME(SNAME, u8)
#include "cpu/elementwise/cast_pair.inc.c"

#define D int8_t
#define WIDE int32_t
#define LOW (-128)
#define HIGH 127
#define BEYOND 128
#define MOST INT8_MAX
#define FN_CAST CAST_NAME(SNAME, i8)
#include "cpu/elementwise/cast_pair.inc.c"
#undef TO_INT

#define TO_BOOL 1
#define D uint8_t
#define FN_CAST CAST_NAME(SNAME, b8)
#include "cpu/elementwise/cast_pair.inc.c"
#undef TO_BOOL

#undef CAST_NAME_
#undef CAST_NAME
#undef S
#undef SNAME
