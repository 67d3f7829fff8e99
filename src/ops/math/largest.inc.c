/* largest.inc.c - template by type (typed.h): loops of Max and Min of two operands for type T. NaN
 * wins. Instances: cpu/elementwise/compare.isa.c, for all numbers. */
#ifdef T_FLOAT
#define IS_NAN(x) ((x) != (x))
#else
#define IS_NAN(x) 0
#endif
#define OP max
#define EXPR (u > v || IS_NAN(u) ? u : v)
#include "ops/core/binary_loop.inc.c"
#define OP min
#define EXPR (u < v || IS_NAN(u) ? u : v)
#include "ops/core/binary_loop.inc.c"
#undef IS_NAN
