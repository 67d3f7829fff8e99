/* UnfoldTensor of com.microsoft: windows along an axis, whose elements become the last axis. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct unfold_params {
    int64_t axis, size, step;
} unfold_params;

static sn_status unfold_prepare(void *params, sni_arena *arena, sn_error *err) {
    const unfold_params *p = params;
    (void)arena;
    if (p->size < 1 || p->step < 1)
        return sni_fail(err, SN_INVALID_MODEL, "windows of %" PRId64 " at steps of %" PRId64,
                        p->size, p->step);
    return SN_OK;
}

static sn_status unfold_infer(sni_infer *c) {
    const unfold_params *p = c->params;
    int axis;
    sni_dim dims[SN_MAX_RANK + 1];
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    sni_infer_get_dims(c, 0, dims);
    if (sni_dim_known(dims[axis]) && dims[axis] < p->size)
        return SNI_INFER_FAIL(c, "windows of %" PRId64 " in an axis of %" PRId64, p->size,
                              dims[axis]);
    sni_dim spare = sni_dim_add(c->symbols, dims[axis], -p->size);
    dims[axis] = sni_dim_add(c->symbols, sni_dim_floordiv(c->symbols, spare, p->step), 1);
    dims[rank] = p->size;
    return sni_infer_set_shape(c, 0, rank + 1, dims);
}

static sn_status unfold_ref(sni_kernel *k) {
    const unfold_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    size_t width = sni_dtype_width(x->dtype);
    int64_t inner = sni_tensor_span(x, axis + 1, x->rank), windows = y->dims[axis];
    for (int64_t i = 0; i < y->count; i++) {
        int64_t in_window = i % p->size, rest = i / p->size;
        int64_t at = rest % inner, window = rest / inner % windows, outer = rest / inner / windows;
        int64_t from = (outer * x->dims[axis] + window * p->step + in_window) * inner + at;
        memcpy((char *)y->data + (size_t)i * width, sni_element(x->data, from, width), width);
    }
    return SN_OK;
}

#define FIELD(f) offsetof(unfold_params, f)

const sni_op sni_op_ms_UnfoldTensor = {
    .name = "UnfoldTensor",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS | SNI_T(SN_BOOL)}),
    .params = SNI_PARAMS({"dim", SNI_ATTR_INT, FIELD(axis), .number = -1},
                         {"size", SNI_ATTR_INT, FIELD(size), .required = true},
                         {"step", SNI_ATTR_INT, FIELD(step), .number = 1}),
    .params_size = sizeof(unfold_params),
    .prepare = unfold_prepare,
    .infer = unfold_infer,
    .ref = unfold_ref,
};
