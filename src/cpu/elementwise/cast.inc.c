/* cast.inc.c - conversions between the common types. */

#define S_FLOAT 1
#define S float
#define SNAME f32
#define S_HIGH(bits) (bits == 31 ? 2147483520.0f : 9223371487098961920.0f)
#include "cpu/elementwise/cast_from.inc.c"
#undef S_HIGH
#define S double
#define SNAME f64
#define S_HIGH(bits) (bits == 31 ? 2147483647.0 : 9223372036854774784.0)
#include "cpu/elementwise/cast_from.inc.c"
#undef S_HIGH
#undef S_FLOAT
#define S int32_t
#define SNAME i32
#include "cpu/elementwise/cast_from.inc.c"
#define S int64_t
#define SNAME i64
#include "cpu/elementwise/cast_from.inc.c"
#define S int8_t
#define SNAME i8
#include "cpu/elementwise/cast_from.inc.c"
#define S uint8_t
#define SNAME u8
#include "cpu/elementwise/cast_from.inc.c"

#include "cpu/elementwise/cast_quick.inc.c"

/* The entries of integers; those of floats have `fast` ones to some types. */
#define CASTS(from)                                                         \
    {                                                                       \
        [SN_FLOAT32] = cast_##from##_f32, [SN_FLOAT64] = cast_##from##_f64, \
        [SN_FLOAT16] = cast_##from##_f16, [SN_INT32] = cast_##from##_i32,   \
        [SN_INT64] = cast_##from##_i64, [SN_UINT8] = cast_##from##_u8,      \
        [SN_INT8] = cast_##from##_i8, [SN_BOOL] = cast_##from##_b8,         \
    }
#define FLOAT_CASTS(from, ...)                                                  \
    {                                                                           \
        [SN_FLOAT64] = cast_##from##_f64, [SN_INT32] = fast_##from##_i32,       \
        [SN_INT64] = cast_##from##_i64, [SN_UINT8] = fast_##from##_u8,          \
        [SN_INT8] = fast_##from##_i8, [SN_BOOL] = cast_##from##_b8, __VA_ARGS__ \
    }
