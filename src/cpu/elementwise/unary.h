/* unary.h - functions of one number that are not activations, and division of int32: the kernels of
 * one tier. */
#ifndef SNI_CPU_ELEMENTWISE_UNARY_H
#define SNI_CPU_ELEMENTWISE_UNARY_H

#include "cpu/core/dispatch.h"
#include "ops/core/elementwise.h"

/* Of float32: each(operator, its function). */
#define SNI_UNARY_FLOATS(each)                                                            \
    each(Floor, floor_row) each(Ceil, ceil_row) each(Round, round_row) each(Sin, sin_row) \
        each(Cos, cos_row) each(Atan, atan_row)

/* Of int32 and int64: each(operator). The absolute value of the lowest integer is itself. */
#define SNI_UNARY_INTS(each) each(Abs) each(Neg) each(Sign)

/* Parameters of is_infinite: which infinities count. */
typedef struct sni_which_infinity {
    bool negative, positive;
} sni_which_infinity;

struct sni_unary_kernels {
#define SNI_FIELD(op, row) sni_unary_fn op;
    SNI_UNARY_FLOATS(SNI_FIELD)
#undef SNI_FIELD
    sni_unary_fn is_infinite; /* float32 to bool; params: sni_which_infinity */
#define SNI_FIELD(op) sni_unary_fn op##_i32, op##_i64;
    SNI_UNARY_INTS(SNI_FIELD)
#undef SNI_FIELD
    sni_binary_fn quotient_i32; /* truncated; 0 where the divisor is 0 */
};

#endif
