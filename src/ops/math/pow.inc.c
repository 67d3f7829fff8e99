/* Loop of Pow for float type T. */
#define OP power
#define EXPR MATH(pow)(u, v)
#include "ops/core/binary_loop.inc.c"
