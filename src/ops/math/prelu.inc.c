/* prelu.inc.c - template by type (typed.h): y = x where x is not below 0, x * slope elsewhere.
 * Instances: prelu.c, for all numbers. */
#define OP prelu
#if defined(T_FLOAT)
#define EXPR (u < 0 ? u * v : u)
#elif defined(T_SIGNED)
#define EXPR (u < 0 ? (uint64_t)u * (uint64_t)v : (uint64_t)u)
#else
#define EXPR ((void)v, u)
#endif
#include "ops/core/binary_loop.inc.c"
