/* SliceLike of ai.sinter: as much of the first positions of an axis as another tensor has on one of
 * its own: Y = data[0 : size of like's axis]. The optimiser makes it of Slice where the end comes
 * from Shape: it needs no arithmetic on shapes at run time. */
#include "ops/sinter/blocked.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

typedef struct slice_like_params {
    int64_t axis, like_axis;
} slice_like_params;

static sn_status slice_like_infer(sni_infer *c) {
    const slice_like_params *p = c->params;
    int axis, like_axis;
    sni_dim dims[SN_MAX_RANK];
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    SN_TRY(sni_infer_axis(c, p->axis, sni_infer_rank(c, 0), &axis));
    SN_TRY(sni_infer_axis(c, p->like_axis, sni_infer_rank(c, 1), &like_axis));
    sni_infer_get_dims(c, 0, dims);
    dims[axis] = sni_dim_min(c->symbols, dims[axis], sni_infer_dim(c, 1, like_axis));
    return sni_infer_set_shape(c, 0, sni_infer_rank(c, 0), dims);
}

static sn_status slice_like_ref(sni_kernel *k) {
    const slice_like_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    if (y->count > 0) sni_get_part(k, x, axis, 0, y->data, y->dims[axis]);
    return SN_OK;
}

const sni_op sni_op_sinter_SliceLike = {
    .name = "SliceLike",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"data", "T"}, {"like", "L"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY & ~SNI_T(SN_STRING)}, {"L", SNI_T_ANY}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(slice_like_params, axis)},
                         {"like_axis", SNI_ATTR_INT, offsetof(slice_like_params, like_axis)}),
    .params_size = sizeof(slice_like_params),
    .flags = SNI_OP_SPELLED,
    .infer = slice_like_infer,
    .ref = slice_like_ref,
};
