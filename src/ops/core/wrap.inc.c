/* wrap.inc.c - template: sums, differences and products for type T. Integers are computed as
 * uint64_t, so that they wrap. Instances: arithmetic.c and cpu/elementwise/compare.isa.c, for all
 * numbers. */
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
