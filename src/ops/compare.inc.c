/* Loops of the comparisons for type T; y is bool. */
#define R uint8_t
#define OP equal
#define EXPR (u == v)
#include "ops/binary_loop.inc.c"
#define OP greater
#define EXPR (u > v)
#include "ops/binary_loop.inc.c"
#define OP greater_or_equal
#define EXPR (u >= v)
#include "ops/binary_loop.inc.c"
#define OP less
#define EXPR (u < v)
#include "ops/binary_loop.inc.c"
#define OP less_or_equal
#define EXPR (u <= v)
#include "ops/binary_loop.inc.c"
#undef R
