/* ConstantOfShape: a tensor of a given shape, filled with one value. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct constant_of_shape_params {
    const sni_tensor *value; /* one element; NULL: float 0 */
} constant_of_shape_params;

static sn_status constant_of_shape_infer(sni_infer *c) {
    const constant_of_shape_params *p = c->params;
    if (p->value && p->value->count != 1)
        return SNI_INFER_FAIL(c, "value has %" PRId64 " elements, not 1", p->value->count);
    SN_TRY(sni_infer_set_type(c, 0, p->value ? p->value->dtype : SN_FLOAT32));
    sni_list shape;
    SN_TRY(sni_infer_list(c, 0, &shape));
    if (!shape.known) return SN_OK;
    if (shape.count > SN_MAX_RANK)
        return SNI_INFER_FAIL(c, "shape has %" PRId64 " elements: more than %d", shape.count,
                              SN_MAX_RANK);
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < shape.count; i++) {
        int64_t v;
        if (sni_list_int(&shape, i, &v) && v < 0)
            return SNI_INFER_FAIL(c, "shape has %" PRId64 " at %d", v, i);
        dims[i] = sni_list_dim(c, &shape, i);
    }
    SN_TRY(sni_infer_set_shape(c, 0, (int)shape.count, dims));
    int64_t n = shape.count == 0 ? 1 : dims[0];
    bool integer = p->value && (p->value->dtype == SN_INT64 || p->value->dtype == SN_INT32);
    if (!integer || shape.count > 1 || !sni_dim_known(n) || n > SNI_LIST_MAX) return SN_OK;
    sni_dim list[SNI_LIST_MAX], v = sni_index_at(p->value, 0);
    for (int64_t i = 0; i < n; i++) list[i] = v < SNI_DIM_LOWEST ? SNI_DIM_LOWEST : v;
    return sni_infer_set_dims(c, 0, (int32_t)n, list);
}

static sn_status constant_of_shape_ref(sni_kernel *k) {
    const constant_of_shape_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    static const float zero = 0;
    sni_fill_shared(k->threads, y->data, p->value ? p->value->data : &zero, y->count,
                    sni_dtype_width(y->dtype));
    return SN_OK;
}

const sni_op sni_op_ConstantOfShape = {
    .name = "ConstantOfShape",
    .versions = SNI_VERSIONS(9, 20, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"input", "int64"}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types = SNI_TYPE_VARS({"T2", SNI_T_ANY}),
    .params = SNI_PARAMS({"value", SNI_ATTR_TENSOR, offsetof(constant_of_shape_params, value)}),
    .params_size = sizeof(constant_of_shape_params),
    .infer = constant_of_shape_infer,
    .ref = constant_of_shape_ref,
};
