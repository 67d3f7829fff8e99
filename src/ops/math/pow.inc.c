/* pow.inc.c - template by type (typed.h): loop of Pow for float type T. Instances: pow.c, for
 * float and double. */
#define OP power
#define EXPR MATH(pow)(u, v)
#include "ops/core/binary_loop.inc.c"
