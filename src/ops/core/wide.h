/* wide.h - float tensors as float or double, for kernels that work on whole tensors: narrow floats
 * are widened to float32 in scratch before the computation, and narrowed afterwards. */
#ifndef SNI_OPS_CORE_WIDE_H
#define SNI_OPS_CORE_WIDE_H

#include "ops/core/op.h"

/* The type a float type is computed in: float64 for itself, float32 for all others. */
static inline sn_dtype sni_wide_type(sn_dtype dtype) {
    return dtype == SN_FLOAT64 ? SN_FLOAT64 : SN_FLOAT32;
}

/* The elements of a float tensor in its wide type: the tensor's own memory, or scratch. */
sn_status sni_wide_in(sni_kernel *k, const sni_tensor *t, const void **data);

/* Memory for the elements of a float output in its wide type: the tensor's own, or scratch that
 * sni_wide_done() narrows into the tensor. */
sn_status sni_wide_out(sni_kernel *k, sni_tensor *t, void **data);
void sni_wide_done(sni_tensor *t, const void *data);

/* The elements of any tensor of numbers or bools as float or double: the tensor's own memory if
 * it is of that type, or converted in scratch. */
sn_status sni_as_f32(sni_kernel *k, const sni_tensor *t, const float **data);
sn_status sni_as_f64(sni_kernel *k, const sni_tensor *t, const double **data);

/* For weighted sums of numbers of any type: *type is the type to compute in (double where float
 * would lose digits), and *data the elements in that type. */
sn_status sni_blend_in(sni_kernel *k, const sni_tensor *x, sn_dtype *type, const void **data);
/* Memory for results of that type: the output's own if it has the type, otherwise scratch, from
 * which sni_store_numbers() fills the output. */
sn_status sni_blend_out(sni_kernel *k, sni_tensor *y, sn_dtype type, void **data);

/* Converts y->count numbers of `type` (float32 or float64) into a tensor of numbers or bools.
 * Integers saturate; they are truncated, or with `round` rounded to nearest even. Tensors of other
 * types are left as they are. */
void sni_store_numbers(sni_tensor *y, sn_dtype type, const void *data, bool round);

/* Scratch (sni_scratch) for `count` elements of `size` bytes. Fails with SN_NO_MEMORY or SN_LIMIT.
 */
sn_status sni_scratch_array(sni_kernel *k, int64_t count, size_t size, void **out);

#endif
