/* matmul_types.inc.c - the loops of the matrix product for every type but float, which tiers have a
 * kernel of their own for. Integers are unsigned: products and sums wrap. */
#define T double
#define SUFFIX f64
#include "ops/matmul/matmul_core.inc.c"
#undef T
#undef SUFFIX

#define T uint32_t
#define SUFFIX u32
#include "ops/matmul/matmul_core.inc.c"
#undef T
#undef SUFFIX

#define T uint64_t
#define SUFFIX u64
#include "ops/matmul/matmul_core.inc.c"
#undef T
#undef SUFFIX
