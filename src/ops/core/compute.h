/* compute.h - tensors in the type a kernel computes in: narrow floats as float32, mixed types as
 * one. What needs no conversion is used where it lies. */
#ifndef SNI_OPS_CORE_COMPUTE_H
#define SNI_OPS_CORE_COMPUTE_H

#include "ops/core/wide.h"

/* float32 for narrow floats, the type itself for all others. */
static inline sn_dtype sni_compute_dtype(sn_dtype dtype) {
    return sni_dtype_get(dtype)->cls == SNI_CLASS_S ? SN_FLOAT32 : dtype;
}

/* The elements of `t` as `dtype`, converted in scratch where the types differ. A NULL tensor gives
 * NULL. */
sn_status sni_in_as(sni_kernel *k, const sni_tensor *t, sn_dtype dtype, const void **out);

/* Memory for the elements of output `t` as `dtype`, to be carried into the tensor by
 * sni_out_done() when filled. A NULL tensor gives NULL. */
sn_status sni_out_as(sni_kernel *k, sni_tensor *t, sn_dtype dtype, void **out);
void sni_out_done(sni_kernel *k, sni_tensor *t, sn_dtype dtype, const void *elements);

/* Scratch for `rows` times `columns` elements of `size` bytes. */
sn_status sni_scratch_matrix(sni_kernel *k, int64_t rows, int64_t columns, size_t size, void **out);

#endif
