/* each_uint.inc.h - includes BODY once for the four unsigned integer types. The user undefines
 * BODY. */
#include "ops/core/typed.h"

#define T uint8_t
#define SUFFIX u8
#define T_UNSIGNED 1
#include BODY
#undef T
#undef SUFFIX
#undef T_UNSIGNED

#define T uint16_t
#define SUFFIX u16
#define T_UNSIGNED 1
#include BODY
#undef T
#undef SUFFIX
#undef T_UNSIGNED

#define T uint32_t
#define SUFFIX u32
#define T_UNSIGNED 1
#include BODY
#undef T
#undef SUFFIX
#undef T_UNSIGNED

#define T uint64_t
#define SUFFIX u64
#define T_UNSIGNED 1
#include BODY
#undef T
#undef SUFFIX
#undef T_UNSIGNED
