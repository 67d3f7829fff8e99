/* bitwise.inc.c - template by type (typed.h): loops of the operators on bits for integer type T;
 * shifts where T is unsigned. Instances: logic.c, for the integers. */
#define OP bitwise_and
#define EXPR (u & v)
#include "ops/core/binary_loop.inc.c"
#define OP bitwise_or
#define EXPR (u | v)
#include "ops/core/binary_loop.inc.c"
#define OP bitwise_xor
#define EXPR (u ^ v)
#include "ops/core/binary_loop.inc.c"
#define OP bitwise_not
#define EXPR (~v)
#include "ops/core/unary_loop.inc.c"

#ifdef T_UNSIGNED
/* u moved by a power of two if that bit of v is set. */
static inline T FN(shift_step)(T u, T v, int bit, bool right) {
    int by = 1 << bit;
    T moved = (T)(right ? u >> by : u << by), mask = (T)(0 - (v >> bit & 1));
    return (T)((u & ~mask) | (moved & mask));
}

/* u moved by v bits, all of them gone if v is no less than the width. Vectors have no shifts of
 * bytes and halves by numbers of their own: those go by steps. */
static inline T FN(shift)(T u, T v, bool right) {
    const T width = sizeof(T) * 8;
    if (width > 16) return v >= width ? 0 : (T)(right ? (uint64_t)u >> v : (uint64_t)u << v);
    if (width == 16) u = FN(shift_step)(u, v, 3, right);
    for (int bit = 2; bit >= 0; bit--) u = FN(shift_step)(u, v, bit, right);
    return (T)(u & (T)(0 - (v < width)));
}

#define PARAMS shift_params
#define OP bit_shift
#define EXPR FN(shift)(u, v, p->right != 0)
#include "ops/core/binary_loop.inc.c"
#undef PARAMS
#endif
