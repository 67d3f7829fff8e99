/* variadic.inc.c - template by type (typed.h): loops of Max, Min and Sum of two operands for type
 * T, and Mean's division. NaN wins. Instances: variadic.c, for all numbers. */
#include "ops/math/largest.inc.c"

#ifdef T_FLOAT
#define OP sum
#define EXPR (u + v)
#include "ops/core/binary_loop.inc.c"
#define OP share
#define PARAMS int64_t
#define EXPR (v / (T)*p)
#include "ops/core/unary_loop.inc.c"
#undef PARAMS
#endif
