/* Loops of sums, differences and products for type T. Integers are computed without sign, so that
 * they wrap. */
#ifdef T_FLOAT
#define WRAP(x) (x)
#else
#define WRAP(x) ((uint64_t)(x))
#endif

#define OP add
#define EXPR (WRAP(u) + WRAP(v))
#include "ops/core/binary_loop.inc.c"
#define OP sub
#define EXPR (WRAP(u) - WRAP(v))
#include "ops/core/binary_loop.inc.c"
#define OP mul
#define EXPR (WRAP(u) * WRAP(v))
#include "ops/core/binary_loop.inc.c"
#undef WRAP
