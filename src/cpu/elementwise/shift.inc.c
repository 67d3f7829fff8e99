/* shift.inc.c - shifts of unsigned type T, in the least width that instructions have; 0 from the
 * width of T on. */
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
