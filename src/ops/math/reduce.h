/* reduce.h - the driver of the reductions: which axes go, in what order memory is read, and the
 * functions that fold elements. */
#ifndef SNI_OPS_MATH_REDUCE_H
#define SNI_OPS_MATH_REDUCE_H

#include "ops/core/op.h"

#define SNI_REDUCE_ACC_MAX 16 /* bytes of one accumulator at most */

enum { SNI_REDUCE_LANES = 32 }; /* accumulators of a row at once */

typedef struct sni_reduce_params {
    int64_t keepdims, noop_with_empty_axes;
} sni_reduce_params;

/* One reduction of one element type. */
typedef struct sni_reducer {
    size_t acc_size;                                  /* of one accumulator */
    void (*init)(void *acc, int64_t n);               /* n accumulators: of the empty set */
    void (*row)(void *acc, const void *x, int64_t n); /* folds n elements into acc[0] */
    void (*col)(void *acc, const void *x, int64_t n); /* folds x[j] into acc[j] */
    void (*finish)(const void *acc, void *y, int64_t n, int64_t count); /* n results, each of
                                                                           `count` elements */
    /* Folds x[r * step + j] into acc[j] for r < rows and j < n. NULL: `col`, row by row. */
    void (*cols)(void *acc, const void *x, int64_t n, int64_t rows, int64_t step);
} sni_reducer;

/* Output 0 = input 0 reduced over the axes of input 1. The table is indexed by sn_dtype; narrow
 * floats use float32's entry, bool uint8's. */
sn_status sni_reduce_run(sni_kernel *k, const sni_reducer *const table[SNI_DTYPE_COUNT]);

/* The shape of output 0. */
sn_status sni_reduce_infer(sni_infer *c);

#endif
