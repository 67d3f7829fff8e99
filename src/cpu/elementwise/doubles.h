/* doubles.h - functions and softmax of float64: the kernels of one tier. */
#ifndef SNI_CPU_ELEMENTWISE_DOUBLES_H
#define SNI_CPU_ELEMENTWISE_DOUBLES_H

#include "cpu/core/kernels.h"
#include "ops/core/elementwise.h"

/* Functions that are not activations: each(operator, its function). */
#define SNI_DOUBLES_UNARY(each)                                                           \
    each(Floor, floor_row) each(Ceil, ceil_row) each(Round, round_row) each(Sin, sin_row) \
        each(Cos, cos_row)

struct sni_doubles {
    /* By activation; params: its two coefficients, as doubles. NULL: there is none. */
    sni_unary_fn map[SNI_ACT_COUNT];
#define SNI_FIELD(op, row) sni_unary_fn row;
    SNI_DOUBLES_UNARY(SNI_FIELD) /* params are not used */
#undef SNI_FIELD
    /* As those of sni_row_kernels (cpu/reduce/rows.h). */
    void (*softmax_row)(const double *x, double *y, int64_t n);
    void (*log_softmax_row)(const double *x, double *y, int64_t n);
    int lanes;
    void (*softmax_columns)(const double *x, double *y, int64_t n, int64_t step, int64_t count,
                            bool logarithm);
};

#endif
