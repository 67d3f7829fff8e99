/* Loops of Max, Min and Sum of two operands for type T, and Mean's division. NaN wins. */
#ifdef T_FLOAT
#define IS_NAN(x) ((x) != (x))
#else
#define IS_NAN(x) 0
#endif
#define OP max
#define EXPR (u > v || IS_NAN(u) ? u : v)
#include "ops/binary_loop.inc.c"
#define OP min
#define EXPR (u < v || IS_NAN(u) ? u : v)
#include "ops/binary_loop.inc.c"
#undef IS_NAN

#ifdef T_FLOAT
#define OP sum
#define EXPR (u + v)
#include "ops/binary_loop.inc.c"
#define OP share
#define PARAMS int64_t
#define EXPR (v / (T)*p)
#include "ops/unary_loop.inc.c"
#undef PARAMS
#endif
