/* compare.isa.c - comparisons, logic, shifts and arithmetic, for one tier: the templates of the
 * reference kernels, which compilers vectorise, instantiated with the tier's flags. */
#include "cpu/elementwise/compare.h"

#define BODY "ops/math/compare.inc.c"
#include "ops/core/each_number.inc.h"
#define TYPE SNI_TYPE_B8
#include "ops/core/one_type.inc.h"
#undef BODY

#define BODY "ops/math/largest.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

#define BODY "ops/core/wrap.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

#define BODY "ops/math/relu.inc.c"
#include "ops/core/each_sint.inc.h"
#undef BODY

#define BODY "cpu/elementwise/shift.inc.c"
#include "ops/core/each_uint.inc.h"
#undef BODY

#define BODY "ops/math/logic.inc.c"
#define TYPE SNI_TYPE_B8
#include "ops/core/one_type.inc.h"
#undef BODY

SNI_DEFINE_TABLE(sni_compare_kernels) = {
    .Equal = {SNI_EACH_NUMBER(equal), [SN_BOOL] = equal_b8},
    .Greater = {SNI_EACH_NUMBER(greater)},
    .GreaterOrEqual = {SNI_EACH_NUMBER(greater_or_equal)},
    .Less = {SNI_EACH_NUMBER(less)},
    .LessOrEqual = {SNI_EACH_NUMBER(less_or_equal)},
    .And = {[SN_BOOL] = and_b8},
    .Or = {[SN_BOOL] = or_b8},
    .Xor = {[SN_BOOL] = xor_b8},
    .Add = {SNI_EACH_NUMBER(add)},
    .Sub = {SNI_EACH_NUMBER(sub)},
    .Mul = {SNI_EACH_NUMBER(mul)},
    .Max = {SNI_EACH_NUMBER(max)},
    .Min = {SNI_EACH_NUMBER(min)},
    .shift_left = {SNI_EACH_UINT(shift_left)},
    .shift_right = {SNI_EACH_UINT(shift_right)},
    .Relu = {SNI_EACH_SINT(relu)},
    .Not = {[SN_BOOL] = not_b8},
};
