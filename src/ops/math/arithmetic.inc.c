/* arithmetic.inc.c - template by type (typed.h): loops of the arithmetic operators for type T.
 * Instances: arithmetic.c, for all numbers. */
#include "ops/core/wrap.inc.c"

static T FN(quotient)(T u, T v) {
#if defined(T_FLOAT)
    return u / v;
#elif defined(T_SIGNED)
    if (v == 0) return 0;
    if (v == -1) return (T)(0 - (uint64_t)u);
    return (T)(u / v);
#else
    if (v == 0) return 0;
    return (T)(u / v);
#endif
}
#define OP div
#define EXPR FN(quotient)(u, v)
#include "ops/core/binary_loop.inc.c"

/* The remainder has the sign of u if `truncate` is set, that of v if not. */
static T FN(remainder)(T u, T v, bool truncate) {
#if defined(T_FLOAT)
    T r = MATH(quick_fmod)(u, v);
    if (truncate) return r;
    if (r == 0) return MATH(copysign)(0, v);
    return (r < 0) != (v < 0) ? r + v : r;
#elif defined(T_SIGNED)
    if (v == 0 || v == -1) return 0;
    T r = (T)(u % v);
    return !truncate && r != 0 && (r < 0) != (v < 0) ? (T)(r + v) : r;
#else
    (void)truncate;
    if (v == 0) return 0;
    return (T)(u % v);
#endif
}
#define PARAMS mod_params
#define OP mod
#define EXPR FN(remainder)(u, v, p->fmod != 0)
#include "ops/core/binary_loop.inc.c"
#undef PARAMS
