/* elementwise.h - drivers that carry a loop over contiguous elements to whole tensors: every
 * element type, broadcasting, threads. Tables are indexed by sn_dtype; a narrow float without an
 * entry of its own is computed by the float32 entry in blocks.
 *
 * A family writes its loops as unary_loop.inc.c and binary_loop.inc.c describe, and its operators
 * as unary_op.inc.c and binary_op.inc.c do. */
#ifndef SNI_OPS_CORE_ELEMENTWISE_H
#define SNI_OPS_CORE_ELEMENTWISE_H

#include "ops/core/op.h"
#include "ops/core/typed.h"

/* The text of a macro's value. */
#define SNI_TEXT_(a) #a
#define SNI_TEXT(a) SNI_TEXT_(a)

/* y[i] = f(x[i]) for n elements; `params` is the node's parameter struct. x may be y. */
typedef void (*sni_unary_fn)(const void *x, void *y, int64_t n, const void *params);

/* y[i] = f(a[i * sa], b[i * sb]) for n elements; sa and sb are 0 or 1. y may be a or b where the
 * stride is 1. */
typedef void (*sni_binary_fn)(const void *a, const void *b, void *y, int64_t n, int64_t sa,
                              int64_t sb, const void *params);

/* The same of three operands; strides are 0 or 1. */
typedef void (*sni_ternary_fn)(const void *const x[3], const int64_t stride[3], void *y, int64_t n,
                               const void *params);

/* Output 0 = f(input 0). The output has the same type or, as for predicates, is bool. */
sn_status sni_map_unary(sni_kernel *k, const sni_unary_fn table[SNI_DTYPE_COUNT]);

/* Output 0 = f(input 0, input 1), broadcast. Both inputs have one type, which chooses the entry;
 * the output's type may be another (comparisons): then no conversion is made on it. */
sn_status sni_map_binary(sni_kernel *k, const sni_binary_fn table[SNI_DTYPE_COUNT]);

/* One loop over broadcast tensors, for what the two above do not cover. The function with as many
 * operands as `n_in` is set. Where `as` differs from a tensor's type, blocks are converted around
 * the function. The output may stand on an input of the same type and shape. */
typedef struct sni_elementwise {
    int n_in; /* 1 to 3 */
    const sni_tensor *in[3];
    sn_dtype in_as[3];
    sni_tensor *out; /* its shape is that of the inputs broadcast */
    sn_dtype out_as;
    sni_unary_fn unary;
    sni_binary_fn binary;
    sni_ternary_fn ternary;
    const void *params;
} sni_elementwise;
void sni_elementwise_run(int threads, const sni_elementwise *map);

/* The type whose table entry computes `dtype`: itself, or float32 for a narrow float. */
sn_dtype sni_compute_type(sn_dtype dtype);

/* As sni_infer_broadcast; and where every input is a short list of integers known as dimensions,
 * the output's elements are f folded over the inputs' (see sni_infer_set_dims). */
typedef sni_dim (*sni_dim_fn)(sni_symbols *symbols, sni_dim a, sni_dim b);
sn_status sni_infer_dim_math(sni_infer *c, sni_dim_fn f);

#endif
