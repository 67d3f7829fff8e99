/* Equal, Greater, GreaterOrEqual, Less and LessOrEqual. Comparisons with NaN are false. */
#include "ops/core/elementwise.h"

#define BODY "ops/math/compare.inc.c"
#include "ops/core/each_number.inc.h"
#define TYPE SNI_TYPE_B8
#include "ops/core/one_type.inc.h"
#undef BODY

#define R uint8_t
#define T sni_str
#define SUFFIX str
#define OP equal
#define EXPR sni_str_eq(u, v)
#include "ops/core/binary_loop.inc.c"
#undef T
#undef SUFFIX
#undef R

/* 1 or 0 where it is certain. Symbols stand for sizes: none is negative. */
static sni_dim dim_equal(sni_symbols *symbols, sni_dim a, sni_dim b) {
    if (a == b) return 1;
    bool a_symbol = sni_dim_is_symbol(a), b_symbol = sni_dim_is_symbol(b);
    if (!a_symbol && !b_symbol) return 0;
    if ((!a_symbol && a < 0) || (!b_symbol && b < 0)) return 0;
    return sni_dim_fresh(symbols);
}

static sn_status equal_infer(sni_infer *c) {
    return sni_infer_dim_math(c, dim_equal);
}

#define NAME Equal
#define VERSIONS 1, 7, 11, 13, 19
#define TYPES SNI_T_NUMBERS | SNI_T(SN_BOOL) | SNI_T(SN_STRING)
#define FNS SNI_EACH_NUMBER(equal), [SN_BOOL] = equal_b8, [SN_STRING] = equal_str
#define TO_BOOL 1
#define UPGRADE sni_upgrade_legacy_broadcast
#define INFER equal_infer
#include "ops/core/binary_op.inc.c"

#define NAME Greater
#define VERSIONS 1, 7, 9, 13
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(greater)
#define TO_BOOL 1
#define UPGRADE sni_upgrade_legacy_broadcast
#include "ops/core/binary_op.inc.c"

#define NAME GreaterOrEqual
#define VERSIONS 12, 16
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(greater_or_equal)
#define TO_BOOL 1
#include "ops/core/binary_op.inc.c"

#define NAME Less
#define VERSIONS 1, 7, 9, 13
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(less)
#define TO_BOOL 1
#define UPGRADE sni_upgrade_legacy_broadcast
#include "ops/core/binary_op.inc.c"

#define NAME LessOrEqual
#define VERSIONS 12, 16
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(less_or_equal)
#define TO_BOOL 1
#include "ops/core/binary_op.inc.c"
