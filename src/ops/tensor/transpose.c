/* Transpose: axes in another order. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct transpose_params {
    sni_ints perm;
} transpose_params;

/* Axis of the input that becomes axis i of the output; the default reverses. */
static int source_axis(const transpose_params *p, int rank, int i) {
    return p->perm.given ? (int)p->perm.v[i] : rank - 1 - i;
}

static sn_status transpose_infer(sni_infer *c) {
    const transpose_params *p = c->params;
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (p->perm.given && p->perm.n != (size_t)rank)
        return SNI_INFER_FAIL(c, "perm has %zu axes for a tensor of rank %d", p->perm.n, rank);
    uint32_t seen = 0;
    for (size_t i = 0; i < p->perm.n; i++) {
        int64_t axis = p->perm.v[i];
        if (axis < 0 || axis >= rank || seen >> axis & 1)
            return SNI_INFER_FAIL(c, "perm is not a permutation: %" PRId64 " at %zu", axis, i);
        seen |= 1u << axis;
    }
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = sni_infer_dim(c, 0, source_axis(p, rank, i));
    SN_TRY(sni_infer_set_shape(c, 0, rank, dims));
    return sni_infer_pass_dims(c);
}

static sn_status transpose_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t own[SN_MAX_RANK], from[SN_MAX_RANK], to[SN_MAX_RANK];
    sni_strides(x->rank, x->dims, own);
    sni_strides(y->rank, y->dims, to);
    for (int i = 0; i < x->rank; i++) from[i] = own[source_axis(k->params, x->rank, i)];
    sni_copy_box(
        k, &(sni_box){y->rank, y->dims, y->data, to, x->data, from, sni_dtype_width(x->dtype)});
    return SN_OK;
}

const sni_op sni_op_Transpose = {
    .name = "Transpose",
    .versions = SNI_VERSIONS(1, 13, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"data", "T"}),
    .outputs = SNI_FORMALS({"transposed", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"perm", SNI_ATTR_INTS, offsetof(transpose_params, perm)}),
    .params_size = sizeof(transpose_params),
    .infer = transpose_infer,
    .ref = transpose_ref,
};
