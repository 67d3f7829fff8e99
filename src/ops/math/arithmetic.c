/* Add, Sub, Mul, Div and Mod.
 *
 * Floats follow IEEE 754. Integers wrap; a division truncates, the smallest integer divided by -1
 * gives itself, and a quotient or remainder of 0 as divisor is 0. */
#include "ops/core/elementwise.h"

#include <math.h>

typedef struct mod_params {
    int64_t fmod;
} mod_params;

static double quick_fmod(double u, double v) {
    return fmod(u, v);
}

/* Exact: unless the quotient of two floats is an integer, its distance from the next integer is
 * more than the spacing of doubles below 2^28; and its product with v has at most 52 bits. */
static float quick_fmodf(float u, float v) {
    double q = (double)u / (double)v;
    if (!(fabs(q) < 268435456.0) || !isfinite(v)) return fmodf(u, v);
    return (float)copysign((double)u - trunc(q) * (double)v, (double)u);
}

#define BODY "ops/math/arithmetic.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

static sn_status add_infer(sni_infer *c) {
    return sni_infer_dim_math(c, sni_dim_add);
}

#define NAME Add
#define VERSIONS 1, 6, 7, 13, 14
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(add)
#define UPGRADE sni_upgrade_legacy_broadcast
#define INFER add_infer
#include "ops/core/binary_op.inc.c"

/* Sizes are not negative: rounding down and truncating are the same for them. */
static sni_dim dim_div(sni_symbols *symbols, sni_dim a, sni_dim b) {
    if (sni_dim_is_symbol(a) || sni_dim_is_symbol(b) || b == 0)
        return sni_dim_floordiv(symbols, a, b);
    return a / b;
}

static sn_status div_infer(sni_infer *c) {
    return sni_infer_dim_math(c, dim_div);
}

#define NAME Div
#define VERSIONS 1, 6, 7, 13, 14
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(div)
#define UPGRADE sni_upgrade_legacy_broadcast
#define INFER div_infer
#include "ops/core/binary_op.inc.c"

#define PARAMS mod_params
#define NAME Mod
#define VERSIONS 10, 13
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(mod)
#define ATTRIBUTES \
    { "fmod", SNI_ATTR_INT, offsetof(PARAMS, fmod) }
#include "ops/core/binary_op.inc.c"
#undef PARAMS

static sn_status mul_infer(sni_infer *c) {
    return sni_infer_dim_math(c, sni_dim_mul);
}

#define NAME Mul
#define VERSIONS 1, 6, 7, 13, 14
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(mul)
#define UPGRADE sni_upgrade_legacy_broadcast
#define INFER mul_infer
#include "ops/core/binary_op.inc.c"

static sn_status sub_infer(sni_infer *c) {
    return sni_infer_dim_math(c, sni_dim_sub);
}

#define NAME Sub
#define VERSIONS 1, 6, 7, 13, 14
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(sub)
#define UPGRADE sni_upgrade_legacy_broadcast
#define INFER sub_infer
#include "ops/core/binary_op.inc.c"
