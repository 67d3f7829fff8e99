/* logic.inc.c - template by type (typed.h): the operators on bools. Instances: logic.c, for bool;
 * cpu/elementwise/compare.isa.c, for bool. */
#define OP and
#define EXPR (u != 0 && v != 0)
#include "ops/core/binary_loop.inc.c"
#define OP or
#define EXPR (u != 0 || v != 0)
#include "ops/core/binary_loop.inc.c"
#define OP xor
#define EXPR ((u != 0) != (v != 0))
#include "ops/core/binary_loop.inc.c"
#define OP not
#define EXPR (v == 0)
#include "ops/core/unary_loop.inc.c"
