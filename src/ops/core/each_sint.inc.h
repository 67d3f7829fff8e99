/* each_sint.inc.h - includes BODY once for the four signed integer types. The user undefines
 * BODY. */
#include "ops/core/typed.h"

#define T int8_t
#define SUFFIX i8
#define T_SIGNED 1
#include BODY
#undef T
#undef SUFFIX
#undef T_SIGNED

#define T int16_t
#define SUFFIX i16
#define T_SIGNED 1
#include BODY
#undef T
#undef SUFFIX
#undef T_SIGNED

#define T int32_t
#define SUFFIX i32
#define T_SIGNED 1
#include BODY
#undef T
#undef SUFFIX
#undef T_SIGNED

#define T int64_t
#define SUFFIX i64
#define T_SIGNED 1
#include BODY
#undef T
#undef SUFFIX
#undef T_SIGNED
