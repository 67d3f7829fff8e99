/* Mathematical functions of one tensor: Abs, Acos, ..., Tanh, and the predicates IsInf and IsNaN.
 *
 * Round takes ties to even. Abs and Neg of the smallest integer of a type give that integer. */
#include "ops/core/elementwise.h"
#include "ops/core/scalar_math.h"

typedef struct inf_params {
    int64_t negative, positive;
} inf_params;

#define BODY "ops/math/unary_math.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

#define NAME Abs
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(abs)
#include "ops/core/unary_op.inc.c"

#define NAME Acos
#define VERSIONS 7, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(acos)
#include "ops/core/unary_op.inc.c"

#define NAME Acosh
#define VERSIONS 9, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(acosh)
#include "ops/core/unary_op.inc.c"

#define NAME Asin
#define VERSIONS 7, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(asin)
#include "ops/core/unary_op.inc.c"

#define NAME Asinh
#define VERSIONS 9, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(asinh)
#include "ops/core/unary_op.inc.c"

#define NAME Atan
#define VERSIONS 7, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(atan)
#include "ops/core/unary_op.inc.c"

#define NAME Atanh
#define VERSIONS 9, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(atanh)
#include "ops/core/unary_op.inc.c"

#define NAME Ceil
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(ceil)
#include "ops/core/unary_op.inc.c"

#define NAME Cos
#define VERSIONS 7, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(cos)
#include "ops/core/unary_op.inc.c"

#define NAME Cosh
#define VERSIONS 9, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(cosh)
#include "ops/core/unary_op.inc.c"

#define NAME Erf
#define VERSIONS 9, 13
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(erf)
#include "ops/core/unary_op.inc.c"

#define NAME Exp
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(exp)
#include "ops/core/unary_op.inc.c"

#define NAME Floor
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(floor)
#include "ops/core/unary_op.inc.c"

#define NAME IsInf
#define VERSIONS 10, 20
#define TYPES SNI_T_FLOATS | SNI_T_FLOAT8
#define FNS SNI_EACH_FLOAT(is_inf)
#define TO_BOOL 1
#define PARAMS inf_params
#define ATTRIBUTES                                                                    \
    {"detect_negative", SNI_ATTR_INT, offsetof(inf_params, negative), .number = 1}, { \
        "detect_positive", SNI_ATTR_INT, offsetof(inf_params, positive), .number = 1  \
    }
#include "ops/core/unary_op.inc.c"
#undef PARAMS

#define NAME IsNaN
#define VERSIONS 9, 13, 20
#define TYPES SNI_T_FLOATS | SNI_T_FLOAT8
#define FNS SNI_EACH_FLOAT(is_nan)
#define TO_BOOL 1
#include "ops/core/unary_op.inc.c"

#define NAME Log
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(log)
#include "ops/core/unary_op.inc.c"

static sn_status neg_infer(sni_infer *c) {
    const sni_dim *dims;
    int32_t count;
    SN_TRY(sni_infer_same(c));
    SN_TRY(sni_infer_dims(c, 0, &dims, &count));
    if (!dims) return SN_OK;
    sni_dim *negative = SNI_NEW_ARRAY(c->arena, sni_dim, count);
    if (!negative) return sni_fail_memory(c->err);
    for (int32_t i = 0; i < count; i++) negative[i] = sni_dim_sub(c->symbols, 0, dims[i]);
    return sni_infer_set_dims(c, 0, count, negative);
}

#define NAME Neg
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_FLOATS | SNI_T_SINTS
#define FNS SNI_EACH_FLOAT(neg), SNI_EACH_SINT(neg)
#define INFER neg_infer
#include "ops/core/unary_op.inc.c"

#define NAME Reciprocal
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(reciprocal)
#include "ops/core/unary_op.inc.c"

#define NAME Round
#define VERSIONS 11, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(round)
#include "ops/core/unary_op.inc.c"

#define NAME Sigmoid
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(sigmoid)
#include "ops/core/unary_op.inc.c"

#define NAME Sign
#define VERSIONS 9, 13
#define TYPES SNI_T_NUMBERS
#define FNS SNI_EACH_NUMBER(sign)
#include "ops/core/unary_op.inc.c"

#define NAME Sin
#define VERSIONS 7, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(sin)
#include "ops/core/unary_op.inc.c"

#define NAME Sinh
#define VERSIONS 9, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(sinh)
#include "ops/core/unary_op.inc.c"

#define NAME Sqrt
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(sqrt)
#include "ops/core/unary_op.inc.c"

#define NAME Tan
#define VERSIONS 7, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(tan)
#include "ops/core/unary_op.inc.c"

#define NAME Tanh
#define VERSIONS 1, 6, 13
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(tanh)
#include "ops/core/unary_op.inc.c"
