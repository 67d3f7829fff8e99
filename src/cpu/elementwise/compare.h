/* compare.h - comparisons, logic, shifts and plain arithmetic: the kernels of one tier. */
#ifndef SNI_CPU_ELEMENTWISE_COMPARE_H
#define SNI_CPU_ELEMENTWISE_COMPARE_H

#include "cpu/core/dispatch.h"
#include "ops/core/elementwise.h"

/* Operators of two tensors whose loops are those of the reference kernels, compiled for the tier.
 */
#define SNI_COMPARE_BINARY(each)                                                                   \
    each(Equal) each(Greater) each(GreaterOrEqual) each(Less) each(LessOrEqual) each(And) each(Or) \
        each(Add) each(Sub) each(Mul) each(Xor) each(Max) each(Min)

/* Tables are indexed by sn_dtype; NULL: none for that type. */
struct sni_compare_kernels {
#define SNI_FIELD(op) sni_binary_fn op[SNI_DTYPE_COUNT];
    SNI_COMPARE_BINARY(SNI_FIELD)
#undef SNI_FIELD
    sni_binary_fn shift_left[SNI_DTYPE_COUNT], shift_right[SNI_DTYPE_COUNT];
    sni_unary_fn Relu[SNI_DTYPE_COUNT], Not[SNI_DTYPE_COUNT];
};

#endif
