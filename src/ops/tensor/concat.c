/* Concat: concatenation of tensors along an axis. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

typedef struct concat_params {
    int64_t axis;
} concat_params;

/* Elements of the output where the inputs are lists of integers. */
static sn_status concat_lists(sni_infer *c) {
    sni_dim dims[SNI_LIST_MAX];
    int32_t n = 0;
    bool some = false;
    for (int i = 0; i < c->n_in; i++) {
        sni_list list;
        SN_TRY(sni_infer_list(c, i, &list));
        if (!list.known || list.count > SNI_LIST_MAX - n) return SN_OK;
        some = some || sni_list_has_elements(&list);
        for (int64_t j = 0; j < list.count; j++) dims[n++] = sni_list_item(c, &list, j);
    }
    return some ? sni_infer_set_dims(c, 0, n, dims) : SN_OK;
}

sn_status sni_infer_concat(sni_infer *c, int64_t along, int first, int step) {
    for (int i = first; i < c->n_in; i += step)
        if (!sni_infer_shaped(c, i)) return SN_OK;
    int rank = sni_infer_rank(c, first), axis;
    SN_TRY(sni_infer_axis(c, along, rank, &axis));
    sni_dim dims[SN_MAX_RANK];
    sni_infer_get_dims(c, first, dims);
    for (int i = first + step; i < c->n_in; i += step) {
        if (sni_infer_rank(c, i) != rank)
            return SNI_INFER_FAIL(c, "inputs %d and %d have ranks %d and %d", first, i, rank,
                                  sni_infer_rank(c, i));
        for (int a = 0; a < rank; a++) {
            sni_dim d = sni_infer_dim(c, i, a);
            if (a == axis)
                dims[a] = sni_dim_add(c->symbols, dims[a], d);
            else
                SN_TRY(sni_infer_join_dim(c, "inputs", a, dims[a], d, &dims[a]));
        }
    }
    return sni_infer_set_shape(c, 0, rank, dims);
}

static sn_status concat_infer(sni_infer *c) {
    const concat_params *p = c->params;
    SN_TRY(sni_infer_concat(c, p->axis, 0, 1));
    bool integer = c->in[0]->dtype == SN_INT64 || c->in[0]->dtype == SN_INT32;
    return c->out[0].has_shape && c->out[0].rank == 1 && integer ? concat_lists(c) : SN_OK;
}

static sn_status concat_ref(sni_kernel *k) {
    const concat_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    int axis = (int)(p->axis < 0 ? p->axis + y->rank : p->axis);
    int64_t at = 0;
    for (int i = 0; i < k->n_in; i++) {
        const sni_tensor *x = sni_in(k, i);
        /* The planner may have had an input made in its place already. */
        const char *place = sni_element(y->data, at * sni_tensor_span(y, axis + 1, y->rank),
                                        sni_dtype_width(y->dtype));
        if (x->data != place || sni_tensor_span(y, 0, axis) != 1)
            sni_put_part(k, y, axis, at, x->data, x->dims[axis]);
        at += x->dims[axis];
    }
    return SN_OK;
}

static sn_status concat_upgrade(sni_upgrade *u) {
    if (u->from >= 4 || sni_node_attr(u->node, "axis")) return SN_OK;
    sni_attr axis = sni_attr_of_int("axis", 1);
    return sni_node_set_attr(u->graph, u->node, &axis, u->err);
}

const sni_op sni_op_Concat = {
    .name = "Concat",
    .versions = SNI_VERSIONS(1, 4, 11, 13),
    .inputs = SNI_FORMALS({"inputs", "T", SNI_VARIADIC}),
    .outputs = SNI_FORMALS({"concat_result", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(concat_params, axis), .required = true}),
    .params_size = sizeof(concat_params),
    .flags = SNI_OP_JOINS,
    .upgrade = concat_upgrade,
    .infer = concat_infer,
    .ref = concat_ref,
};
