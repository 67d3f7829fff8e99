/* Loops of the operators on bools, as type T. */
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
