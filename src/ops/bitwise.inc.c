/* Loops of the operators on bits for integer type T; shifts where T is unsigned. */
#define OP bitwise_and
#define EXPR (u & v)
#include "ops/binary_loop.inc.c"
#define OP bitwise_or
#define EXPR (u | v)
#include "ops/binary_loop.inc.c"
#define OP bitwise_xor
#define EXPR (u ^ v)
#include "ops/binary_loop.inc.c"
#define OP bitwise_not
#define EXPR (~v)
#include "ops/unary_loop.inc.c"

#ifdef T_UNSIGNED
#define PARAMS shift_params
#define OP bit_shift
#define EXPR (v >= sizeof(T) * 8 ? 0 : p->right ? (uint64_t)u >> v : (uint64_t)u << v)
#include "ops/binary_loop.inc.c"
#undef PARAMS
#endif
