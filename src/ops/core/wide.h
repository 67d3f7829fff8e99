/* wide.h - float tensors seen as float or double, for kernels that work on whole tensors: narrow
 * floats are widened to float32 in scratch before, and narrowed after. */
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

/* For weighted sums of numbers of any type: *type is what to compute in (double where float would
 * lose digits), and the elements in that type. */
sn_status sni_blend_in(sni_kernel *k, const sni_tensor *x, sn_dtype *type, const void **data);
/* Memory for results of that type: the output's own if it is of it; otherwise scratch, which
 * sni_store_numbers() brings to the output. */
sn_status sni_blend_out(sni_kernel *k, sni_tensor *y, sn_dtype type, void **data);

/* Writes y->count computed numbers (`type` is float32 or float64) into a tensor of numbers or
 * bools. Integers saturate; they are cut towards 0, or with `round` rounded to even. Elements of
 * other types are left alone. */
void sni_store_numbers(sni_tensor *y, sn_dtype type, const void *data, bool round);

/* `count` elements of `size` bytes of scratch; SN_NO_MEMORY or SN_LIMIT when there is none. */
sn_status sni_scratch_array(sni_kernel *k, int64_t count, size_t size, void **out);

#endif
