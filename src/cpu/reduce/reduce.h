/* reduce.h - reductions along rows and columns: the kernels of one tier. */
#ifndef SNI_CPU_REDUCE_REDUCE_H
#define SNI_CPU_REDUCE_REDUCE_H

#include "cpu/core/dispatch.h"
#include "ops/math/reduce.h"

#include <stdbool.h>

/* The reductions: each(operator, the name of its sni_reducer). */
#define SNI_REDUCTIONS(each)                                                                      \
    each(ReduceSum, sum) each(ReduceMean, mean) each(ReduceMax, max) each(ReduceMin, min)         \
        each(ReduceProd, prod) each(ReduceL1, l1) each(ReduceL2, l2) each(ReduceSumSquare, sumsq) \
            each(ReduceLogSum, logsum) each(ReduceLogSumExp, lse)

/* The term that an element x adds to a sum: x, |x|, or (x - center)^2. */
typedef enum sni_term { SNI_TERM_SELF, SNI_TERM_SIZE, SNI_TERM_SQUARE } sni_term;

struct sni_reduce_kernels {
    /* By sn_dtype: float32, float64, int32 and int64; ReduceMax and ReduceMin also int8 and uint8.
     * NULL: none. */
#define SNI_FIELD(op, reducer) const sni_reducer *op[SNI_DTYPE_COUNT];
    SNI_REDUCTIONS(SNI_FIELD)
#undef SNI_FIELD
    /* The sum of n elements' terms, in double. */
    double (*row_terms)(sni_term term, const float *x, int64_t n, double center);
    /* sums[i] += the term of x[i] with center centers[i], for i < n. `centers` must be readable,
     * and `sums` readable and writable, for 16 elements more. */
    void (*column_terms)(sni_term term, const float *x, int64_t n, const double *centers,
                         double *sums);
    /* y[i] = (x[i] - center) * factor, computed in double. With `each`, element i has centers[i]
     * and factors[i] (padded as above), otherwise all have *centers and *factors. */
    void (*measure)(const float *x, float *y, int64_t n, const double *centers,
                    const double *factors, bool each);
};

#endif
