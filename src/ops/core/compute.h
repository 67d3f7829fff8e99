/* compute.h - tensors in the type that a kernel computes in: narrow floats as float32, mixed types
 * as one type. A tensor that needs no conversion is used in place. */
#ifndef SNI_OPS_CORE_COMPUTE_H
#define SNI_OPS_CORE_COMPUTE_H

#include "ops/core/wide.h"

/* float32 for narrow floats, the type itself for all others. */
static inline sn_dtype sni_compute_dtype(sn_dtype dtype) {
    return sni_dtype_get(dtype)->cls == SNI_CLASS_S ? SN_FLOAT32 : dtype;
}

/* *out = the elements of `t` as `dtype`: the tensor's own memory, or scratch with converted
 * elements. NULL for a NULL tensor. */
sn_status sni_in_as(sni_kernel *k, const sni_tensor *t, sn_dtype dtype, const void **out);

/* *out = memory for the elements of output `t` as `dtype`: the tensor's own, or scratch, from which
 * sni_out_done() converts them into the tensor. To be called in pairs. NULL for a NULL tensor. */
sn_status sni_out_as(sni_kernel *k, sni_tensor *t, sn_dtype dtype, void **out);
void sni_out_done(sni_kernel *k, sni_tensor *t, sn_dtype dtype, const void *elements);

/* Scratch for `rows` times `columns` elements of `size` bytes. */
sn_status sni_scratch_matrix(sni_kernel *k, int64_t rows, int64_t columns, size_t size, void **out);

#endif
