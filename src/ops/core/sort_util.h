/* sort_util.h - order of elements, and stable sorting of positions. */
#ifndef SNI_OPS_CORE_SORT_UTIL_H
#define SNI_OPS_CORE_SORT_UTIL_H

#include "ops/core/op.h"

/* Negative, 0 or positive as *a comes before, with or after *b. Numbers by value, NaN after all
 * others; complex numbers by real part, then imaginary; strings by bytes. */
typedef int (*sni_compare_fn)(sn_dtype dtype, const void *a, const void *b);

/* The comparison for elements of a type; every type has one. */
sni_compare_fn sni_compare_of(sn_dtype dtype);

/* Sorts n positions by compare(ctx, p, q), whose sign is as above; equal ones keep their order.
 * `spare` is room for n positions. Fails as sni_poll() does. */
sn_status sni_sort_positions(sni_kernel *k, int64_t *positions, int64_t *spare, int64_t n,
                             int (*compare)(const void *ctx, int64_t p, int64_t q),
                             const void *ctx);

#endif
