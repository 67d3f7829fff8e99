/* one_type.inc.h - includes BODY for the type that TYPE names (typed.h). TYPE is undefined again;
 * the user undefines BODY. */
#include "ops/core/typed.h"

#if TYPE == SNI_TYPE_F32
#define T float
#define SUFFIX f32
#define T_FLOAT 1
#define MATH(name) name##f
#elif TYPE == SNI_TYPE_F64
#define T double
#define SUFFIX f64
#define T_FLOAT 1
#define MATH(name) name
#elif TYPE == SNI_TYPE_I8
#define T int8_t
#define SUFFIX i8
#define T_SIGNED 1
#elif TYPE == SNI_TYPE_I16
#define T int16_t
#define SUFFIX i16
#define T_SIGNED 1
#elif TYPE == SNI_TYPE_I32
#define T int32_t
#define SUFFIX i32
#define T_SIGNED 1
#elif TYPE == SNI_TYPE_I64
#define T int64_t
#define SUFFIX i64
#define T_SIGNED 1
#elif TYPE == SNI_TYPE_U8
#define T uint8_t
#define SUFFIX u8
#define T_UNSIGNED 1
#elif TYPE == SNI_TYPE_U16
#define T uint16_t
#define SUFFIX u16
#define T_UNSIGNED 1
#elif TYPE == SNI_TYPE_U32
#define T uint32_t
#define SUFFIX u32
#define T_UNSIGNED 1
#elif TYPE == SNI_TYPE_U64
#define T uint64_t
#define SUFFIX u64
#define T_UNSIGNED 1
#elif TYPE == SNI_TYPE_B8
#define T uint8_t
#define SUFFIX b8
#define T_BOOL 1
#else
#error "TYPE is not one of SNI_TYPE_*"
#endif

#include BODY

#undef T
#undef SUFFIX
#undef MATH
#undef T_FLOAT
#undef T_SIGNED
#undef T_UNSIGNED
#undef T_BOOL
#undef TYPE
