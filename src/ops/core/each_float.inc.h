/* each_float.inc.h - includes BODY once for float and double. The user undefines BODY. */
#include "ops/core/typed.h"

#define T float
#define SUFFIX f32
#define MATH(name) name##f
#define T_FLOAT 1
#include BODY
#undef T
#undef SUFFIX
#undef MATH
#undef T_FLOAT

#define T double
#define SUFFIX f64
#define MATH(name) name
#define T_FLOAT 1
#include BODY
#undef T
#undef SUFFIX
#undef MATH
#undef T_FLOAT
