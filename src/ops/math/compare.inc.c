/* compare.inc.c - template by type (typed.h): the comparisons; y is bool. Bools (T_BOOL) have
 * equality only. Instances: compare.c, for all numbers and bool; cpu/elementwise/compare.isa.c,
 * for all numbers and bool. */
#define R uint8_t
#define OP equal
#ifdef T_BOOL
#define EXPR ((u != 0) == (v != 0))
#else
#define EXPR (u == v)
#endif
#include "ops/core/binary_loop.inc.c"
#ifndef T_BOOL
#define OP greater
#define EXPR (u > v)
#include "ops/core/binary_loop.inc.c"
#define OP greater_or_equal
#define EXPR (u >= v)
#include "ops/core/binary_loop.inc.c"
#define OP less
#define EXPR (u < v)
#include "ops/core/binary_loop.inc.c"
#define OP less_or_equal
#define EXPR (u <= v)
#include "ops/core/binary_loop.inc.c"
#endif
#undef R
