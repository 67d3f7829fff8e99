/* Det: determinants of a stack of square matrices, by elimination with pivots. */
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"

#include <math.h>

#define BODY "ops/math/det.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static sn_status det_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank < 2 || sni_dim_differ(sni_infer_dim(c, 0, rank - 1), sni_infer_dim(c, 0, rank - 2)))
        return SNI_INFER_FAIL(c, "the input of rank %d is no stack of square matrices", rank);
    return sni_infer_set_shape(c, 0, rank - 2, c->in[0]->dims);
}

static sn_status det_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    int64_t n = x->dims[x->rank - 1];
    size_t width = sni_dtype_width(dtype);
    const void *data;
    void *work = NULL, *out = NULL;
    SN_TRY(sni_in_as(k, x, dtype, &data));
    SN_TRY(sni_scratch_array(k, x->count, width, &work));
    SN_TRY(sni_out_as(k, y, dtype, &out));
    sni_copy_bytes(work, data, (size_t)x->count * width);
    if (dtype == SN_FLOAT64)
        determinants_f64(work, out, y->count, n);
    else
        determinants_f32(work, out, y->count, n);
    sni_out_done(k, y, dtype, out);
    return SN_OK;
}

const sni_op sni_op_Det = {
    .name = "Det",
    .versions = SNI_VERSIONS(11, 22),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .infer = det_infer,
    .ref = det_ref,
};
