/* OneHot: a new axis of length depth that is `on` at the index and `off` elsewhere. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>
#include <math.h>

typedef struct onehot_params {
    int64_t axis;
} onehot_params;

/* A number of any type as an integer, rounded towards 0. */
static bool integer_at(const sni_tensor *t, int64_t i, int64_t *out) {
    if (t->dtype == SN_INT64) {
        *out = ((const int64_t *)t->data)[i];
        return true;
    }
    double v = trunc(sni_number_at(t, i));
    if (!(v > -9e18 && v < 9e18)) return false;
    *out = (int64_t)v;
    return true;
}

static sn_status depth_of(sni_infer *c, sni_dim *out) {
    const sni_tensor *depth;
    SN_TRY(sni_infer_known(c, 1, &depth));
    if (depth) {
        int64_t v;
        if (depth->count != 1 || !integer_at(depth, 0, &v) || v < 0)
            return SNI_INFER_FAIL(c, "depth is not one number from 0 on");
        *out = v;
        return SN_OK;
    }
    const sni_dim *dims;
    int32_t count;
    SN_TRY(sni_infer_dims(c, 1, &dims, &count));
    *out = dims && count == 1 ? dims[0] : sni_dim_fresh(c->symbols);
    return SN_OK;
}

static sn_status onehot_infer(sni_infer *c) {
    const onehot_params *p = c->params;
    if (sni_infer_shaped(c, 2) &&
        (sni_infer_rank(c, 2) != 1 ||
         (sni_dim_known(sni_infer_dim(c, 2, 0)) && sni_infer_dim(c, 2, 0) != 2)))
        return SNI_INFER_FAIL(c, "values is not a list of two");
    sni_dim depth = 0;
    SN_TRY(depth_of(c, &depth));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0) + 1, axis;
    if (rank > SN_MAX_RANK) return SNI_INFER_FAIL(c, "the output has a rank above %d", SN_MAX_RANK);
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? depth : sni_infer_dim(c, 0, i < axis ? i : i - 1);
    return sni_infer_set_shape(c, 0, rank, dims);
}

static sn_status onehot_ref(sni_kernel *k) {
    const onehot_params *p = k->params;
    const sni_tensor *index = sni_in(k, 0), *values = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    if (y->count == 0) return SN_OK;
    int axis = (int)(p->axis < 0 ? p->axis + y->rank : p->axis);
    size_t width = sni_dtype_width(y->dtype);
    const void *on = sni_element(values->data, 1, width);
    sni_fill_shared(k->threads, y->data, values->data, y->count, width);
    int64_t depth = y->dims[axis], inner = sni_tensor_span(y, axis + 1, y->rank);
    for (int64_t i = 0; i < index->count; i++) {
        int64_t at;
        if (!integer_at(index, i, &at)) continue;
        if (at < 0) at += depth;
        if (at < 0 || at >= depth) continue;
        int64_t to = i / inner * depth * inner + at * inner + i % inner;
        sni_copy_element(sni_element(y->data, to, width), on, width);
    }
    return SN_OK;
}

const sni_op sni_op_OneHot = {
    .name = "OneHot",
    .versions = SNI_VERSIONS(9, 11),
    .inputs = SNI_FORMALS({"indices", "T1"}, {"depth", "T2"}, {"values", "T3"}),
    .outputs = SNI_FORMALS({"output", "T3"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_NUMBERS}, {"T2", SNI_T_NUMBERS}, {"T3", SNI_T_ANY}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(onehot_params, axis), .number = -1}),
    .params_size = sizeof(onehot_params),
    .infer = onehot_infer,
    .ref = onehot_ref,
};
