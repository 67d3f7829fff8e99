/* elementwise.h - drivers that carry a loop over contiguous elements to whole tensors: every
 * element type, broadcasting, threads. Tables are indexed by sn_dtype; a narrow float without an
 * entry of its own is computed by the float32 entry in blocks. */
#ifndef SNI_OPS_ELEMENTWISE_H
#define SNI_OPS_ELEMENTWISE_H

#include "ops/op.h"

/* y[i] = f(x[i]) for n elements; `params` is the node's parameter struct. x may be y. */
typedef void (*sni_unary_fn)(const void *x, void *y, int64_t n, const void *params);

/* Output 0 = f(input 0), of the same type. */
sn_status sni_map_unary(sni_kernel *k, const sni_unary_fn table[SNI_DTYPE_COUNT]);

/* y[i] = f(a[i * sa], b[i * sb]) for n elements; sa and sb are 0 or 1. y may be a or b where the
 * stride is 1. */
typedef void (*sni_binary_fn)(const void *a, const void *b, void *y, int64_t n, int64_t sa,
                              int64_t sb, const void *params);

/* Output 0 = f(input 0, input 1), broadcast. Both inputs have one type, which chooses the entry;
 * the output's type may be another (comparisons): then no conversion is made on it. */
sn_status sni_map_binary(sni_kernel *k, const sni_binary_fn table[SNI_DTYPE_COUNT]);

#endif
