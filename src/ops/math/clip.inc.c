/* clip.inc.c - template by type (typed.h): Clip, and the widest range of T. Instances: clip.c, for
 * all numbers. */

/* y = x in [low, high] for type T; params is low and high. NaN stays NaN. */
static T FN(clamp)(T v, T low, T high) {
    if (v < low) v = low;
    return v > high ? high : v;
}
#define PARAMS T
#define OP clip
#define EXPR FN(clamp)(v, p[0], p[1])
#include "ops/core/unary_loop.inc.c"
#undef PARAMS

/* The range that changes nothing. */
static void FN(widest)(void *range) {
    T *r = range;
#if defined(T_FLOAT)
    r[0] = -INFINITY;
    r[1] = INFINITY;
#elif defined(T_SIGNED)
    r[1] = (T)(((uint64_t)1 << (sizeof(T) * 8 - 1)) - 1);
    r[0] = (T)(-r[1] - 1);
#else
    r[0] = 0;
    r[1] = (T)UINT64_MAX;
#endif
}
