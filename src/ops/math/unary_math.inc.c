/* unary_math.inc.c - template by type (typed.h): loops of the mathematical functions for type T;
 * those of floats where T_FLOAT is defined. Instances: unary_math.c, for all numbers. */
#define OP sign
#if defined(T_UNSIGNED)
#define EXPR (v != 0)
#elif defined(T_SIGNED)
#define EXPR ((v > 0) - (v < 0))
#else
#define EXPR (v > 0 ? 1 : v < 0 ? -1 : v == v ? 0 : v)
#endif
#include "ops/core/unary_loop.inc.c"

#define OP abs
#if defined(T_FLOAT)
#define EXPR MATH(fabs)(v)
#elif defined(T_SIGNED)
#define EXPR (v < 0 ? 0 - (uint64_t)v : (uint64_t)v)
#else
#define EXPR v
#endif
#include "ops/core/unary_loop.inc.c"

#define OP erf
#if defined(T_FLOAT)
#define EXPR MATH(erf)(v)
#else
#define EXPR (erf((double)v))
#endif
#include "ops/core/unary_loop.inc.c"

#ifndef T_UNSIGNED
#define OP neg
#if defined(T_FLOAT)
#define EXPR (-v)
#else
#define EXPR (0 - (uint64_t)v)
#endif
#include "ops/core/unary_loop.inc.c"
#endif

#ifdef T_FLOAT
#define OP acos
#define EXPR MATH(acos)(v)
#include "ops/core/unary_loop.inc.c"
#define OP acosh
#define EXPR MATH(acosh)(v)
#include "ops/core/unary_loop.inc.c"
#define OP asin
#define EXPR MATH(asin)(v)
#include "ops/core/unary_loop.inc.c"
#define OP asinh
#define EXPR MATH(asinh)(v)
#include "ops/core/unary_loop.inc.c"
#define OP atan
#define EXPR MATH(atan)(v)
#include "ops/core/unary_loop.inc.c"
#define OP atanh
#define EXPR MATH(atanh)(v)
#include "ops/core/unary_loop.inc.c"
#define OP ceil
#define EXPR MATH(ceil)(v)
#include "ops/core/unary_loop.inc.c"
#define OP cos
#define EXPR MATH(cos)(v)
#include "ops/core/unary_loop.inc.c"
#define OP cosh
#define EXPR MATH(cosh)(v)
#include "ops/core/unary_loop.inc.c"
#define OP exp
#define EXPR MATH(exp)(v)
#include "ops/core/unary_loop.inc.c"
#define OP floor
#define EXPR MATH(floor)(v)
#include "ops/core/unary_loop.inc.c"
#define OP log
#define EXPR MATH(log)(v)
#include "ops/core/unary_loop.inc.c"
#define OP reciprocal
#define EXPR (1 / v)
#include "ops/core/unary_loop.inc.c"
#define OP round
#define EXPR MATH(nearbyint)(v)
#include "ops/core/unary_loop.inc.c"
#define OP sigmoid
#define EXPR FN(sni_sigmoid)(v)
#include "ops/core/unary_loop.inc.c"
#define OP sin
#define EXPR MATH(sin)(v)
#include "ops/core/unary_loop.inc.c"
#define OP sinh
#define EXPR MATH(sinh)(v)
#include "ops/core/unary_loop.inc.c"
#define OP sqrt
#define EXPR MATH(sqrt)(v)
#include "ops/core/unary_loop.inc.c"
#define OP tan
#define EXPR MATH(tan)(v)
#include "ops/core/unary_loop.inc.c"
#define OP tanh
#define EXPR MATH(tanh)(v)
#include "ops/core/unary_loop.inc.c"

#define R uint8_t
#define OP is_nan
#define EXPR isnan(v)
#include "ops/core/unary_loop.inc.c"
#define PARAMS inf_params
#define OP is_inf
#define EXPR (isinf(v) && (v < 0 ? p->negative : p->positive))
#include "ops/core/unary_loop.inc.c"
#undef PARAMS
#undef R
#endif
