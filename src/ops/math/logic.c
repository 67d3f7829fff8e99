/* And, Or, Xor and Not of bools; BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitShift of
 * integers. Shifts by the width of the type or more give 0. */
#include "ops/core/elementwise.h"

typedef struct shift_params {
    int32_t right;
} shift_params;

#define BODY "ops/math/bitwise.inc.c"
#include "ops/core/each_int.inc.h"
#undef BODY

#define BODY "ops/math/logic.inc.c"
#define TYPE SNI_TYPE_B8
#include "ops/core/one_type.inc.h"
#undef BODY

#define NAME And
#define VERSIONS 1, 7
#define TYPES SNI_T(SN_BOOL)
#define FNS [SN_BOOL] = and_b8
#define UPGRADE sni_upgrade_legacy_broadcast
#include "ops/core/binary_op.inc.c"

#define PARAMS shift_params
#define NAME BitShift
#define VERSIONS 11
#define TYPES SNI_T_UINTS
#define FNS SNI_EACH_UINT(bit_shift)
#define ATTRIBUTES                                                                     \
    {                                                                                  \
        "direction", SNI_ATTR_STRING, offsetof(PARAMS, right), .required = 1,          \
                                                               .choices = "LEFT|RIGHT" \
    }
#include "ops/core/binary_op.inc.c"
#undef PARAMS

#define NAME BitwiseAnd
#define VERSIONS 18
#define TYPES SNI_T_INTS
#define FNS SNI_EACH_INT(bitwise_and)
#include "ops/core/binary_op.inc.c"

#define NAME BitwiseNot
#define VERSIONS 18
#define TYPES SNI_T_INTS
#define FNS SNI_EACH_INT(bitwise_not)
#include "ops/core/unary_op.inc.c"

#define NAME BitwiseOr
#define VERSIONS 18
#define TYPES SNI_T_INTS
#define FNS SNI_EACH_INT(bitwise_or)
#include "ops/core/binary_op.inc.c"

#define NAME BitwiseXor
#define VERSIONS 18
#define TYPES SNI_T_INTS
#define FNS SNI_EACH_INT(bitwise_xor)
#include "ops/core/binary_op.inc.c"

#define NAME Not
#define VERSIONS 1
#define TYPES SNI_T(SN_BOOL)
#define FNS [SN_BOOL] = not_b8
#include "ops/core/unary_op.inc.c"

#define NAME Or
#define VERSIONS 1, 7
#define TYPES SNI_T(SN_BOOL)
#define FNS [SN_BOOL] = or_b8
#define UPGRADE sni_upgrade_legacy_broadcast
#include "ops/core/binary_op.inc.c"

#define NAME Xor
#define VERSIONS 1, 7
#define TYPES SNI_T(SN_BOOL)
#define FNS [SN_BOOL] = xor_b8
#define UPGRADE sni_upgrade_legacy_broadcast
#include "ops/core/binary_op.inc.c"
