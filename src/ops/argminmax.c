/* ArgMax and ArgMin: where the largest or smallest element along an axis stands. */
#include "ops/shape_util.h"
#include "ops/tensor_util.h"
#include "ops/wide.h"

#include <inttypes.h>

#define BODY "ops/argminmax.inc.c"
#include "ops/each_number.inc.h"
#undef BODY

typedef struct arg_params {
    int64_t axis, keepdims, select_last_index;
} arg_params;

typedef int64_t (*arg_fn)(const void *from, int64_t n, int64_t step, bool last);

static sn_status arg_infer(sni_infer *c) {
    const arg_params *p = c->params;
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0), axis, n = 0;
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    if (sni_infer_dim(c, 0, axis) == 0)
        return SNI_INFER_FAIL(c, "axis %d has no elements to choose from", axis);
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        if (i != axis)
            dims[n++] = sni_infer_dim(c, 0, i);
        else if (p->keepdims)
            dims[n++] = 1;
    }
    return sni_infer_set_shape(c, 0, n, dims);
}

static sn_status arg_run(sni_kernel *k, const arg_fn *fns) {
    const arg_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    int64_t *y = sni_out(k, 0)->data;
    if (x->count == 0) return SN_OK;
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    bool narrow = sni_dtype_get(x->dtype)->cls == SNI_CLASS_S;
    sn_dtype dtype = narrow ? SN_FLOAT32 : x->dtype;
    const void *from = x->data;
    if (narrow) SN_TRY(sni_wide_in(k, x, &from));
    int64_t n = x->dims[axis], inner = sni_tensor_span(x, axis + 1, x->rank);
    for (int64_t i = 0; i < x->count / n; i++) {
        int64_t at = i / inner * n * inner + i % inner;
        y[i] = fns[dtype](sni_element(from, at, sni_dtype_width(dtype)), n, inner,
                          p->select_last_index != 0);
    }
    return SN_OK;
}

static sn_status argmax_ref(sni_kernel *k) {
    static const arg_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(argmax)};
    return arg_run(k, fns);
}

static sn_status argmin_ref(sni_kernel *k) {
    static const arg_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(argmin)};
    return arg_run(k, fns);
}

#define ARG_PARAMS                                                                      \
    SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(arg_params, axis)},                      \
               {"keepdims", SNI_ATTR_INT, offsetof(arg_params, keepdims), .number = 1}, \
               {"select_last_index", SNI_ATTR_INT, offsetof(arg_params, select_last_index)})

const sni_op sni_op_ArgMax = {
    .name = "ArgMax",
    .versions = SNI_VERSIONS(1, 11, 12, 13),
    .inputs = SNI_FORMALS({"data", "T"}),
    .outputs = SNI_FORMALS({"reduced", "int64"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .params = ARG_PARAMS,
    .params_size = sizeof(arg_params),
    .infer = arg_infer,
    .ref = argmax_ref,
};

const sni_op sni_op_ArgMin = {
    .name = "ArgMin",
    .versions = SNI_VERSIONS(1, 11, 12, 13),
    .inputs = SNI_FORMALS({"data", "T"}),
    .outputs = SNI_FORMALS({"reduced", "int64"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .params = ARG_PARAMS,
    .params_size = sizeof(arg_params),
    .infer = arg_infer,
    .ref = argmin_ref,
};
