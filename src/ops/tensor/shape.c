/* Shape and Size: the dimensions of a tensor, and their product, as int64. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

typedef struct shape_params {
    int64_t start, end;
    bool has_end;
} shape_params;

/* The axes [*from, *to) that the parameters choose of `rank`. */
static void shape_range(const shape_params *p, int rank, int *from, int *to) {
    int64_t start = p->start < 0 ? p->start + rank : p->start;
    int64_t end = !p->has_end ? rank : p->end < 0 ? p->end + rank : p->end;
    start = start < 0 ? 0 : start > rank ? rank : start;
    end = end < start ? start : end > rank ? rank : end;
    *from = (int)start;
    *to = (int)end;
}

static sn_status shape_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0))
        return sni_infer_set_shape(c, 0, 1, (const sni_dim[]){sni_dim_fresh(c->symbols)});
    int from, to;
    shape_range(c->params, sni_infer_rank(c, 0), &from, &to);
    SN_TRY(sni_infer_set_shape(c, 0, 1, (const sni_dim[]){to - from}));
    sni_dim dims[SN_MAX_RANK];
    sni_infer_get_dims(c, 0, dims);
    return sni_infer_set_dims(c, 0, to - from, dims + from);
}

static sn_status shape_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    int from, to;
    shape_range(k->params, x->rank, &from, &to);
    sni_copy_bytes(sni_out(k, 0)->data, x->dims + from, (size_t)(to - from) * sizeof(int64_t));
    return SN_OK;
}

const sni_op sni_op_Shape = {
    .name = "Shape",
    .versions = SNI_VERSIONS(1, 13, 15, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"data", "T"}),
    .outputs = SNI_FORMALS({"shape", "int64"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"start", SNI_ATTR_INT, offsetof(shape_params, start)},
                         {"end", SNI_ATTR_INT, offsetof(shape_params, end),
                          .present = offsetof(shape_params, has_end) + 1}),
    .params_size = sizeof(shape_params),
    .infer = shape_infer,
    .ref = shape_ref,
};

static sn_status size_infer(sni_infer *c) {
    SN_TRY(sni_infer_set_shape(c, 0, 0, NULL));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    sni_dim size = sni_dims_product(c, c->in[0]->dims, 0, sni_infer_rank(c, 0));
    return sni_infer_set_dims(c, 0, 1, &size);
}

static sn_status size_ref(sni_kernel *k) {
    *(int64_t *)sni_out(k, 0)->data = sni_in(k, 0)->count;
    return SN_OK;
}

const sni_op sni_op_Size = {
    .name = "Size",
    .versions = SNI_VERSIONS(1, 13, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"data", "T"}),
    .outputs = SNI_FORMALS({"size", "int64"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .infer = size_infer,
    .ref = size_ref,
};
