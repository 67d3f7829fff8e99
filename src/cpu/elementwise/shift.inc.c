/* shift.inc.c - template: shifts of unsigned type T by v; 0 where v is the width of T or more.
 * Narrow types are shifted as uint32_t, the narrowest shift that vectors have. Instances:
 * compare.isa.c, for the unsigned types. */
#define WIDTH (sizeof(T) * 8)
#define WIDE(u) (sizeof(T) < 8 ? (uint32_t)(u) : (u))
#define OP shift_left
#define EXPR (v >= WIDTH ? 0 : WIDE(u) << (v & (WIDTH - 1)))
#include "ops/core/binary_loop.inc.c"
#define OP shift_right
#define EXPR (v >= WIDTH ? 0 : WIDE(u) >> (v & (WIDTH - 1)))
#include "ops/core/binary_loop.inc.c"
#undef WIDTH
#undef WIDE
