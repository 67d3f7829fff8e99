/* TopK: the k largest or smallest elements along an axis, and their positions. The result is always
 * sorted, which `sorted` = 0 allows too. */
#include "base/floats.h"
#include "base/threadpool.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"
#include "ops/math/topk.h"
#include "ops/core/wide.h"

#include <inttypes.h>

#define BODY "ops/math/topk.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

typedef void (*topk_fn)(const void *lane, int64_t n, int64_t k, bool largest, int64_t *heap);

static sn_status topk_infer(sni_infer *c) {
    const sni_topk_params *p = c->params;
    sni_list list;
    SN_TRY(sni_infer_list(c, 1, &list));
    if (list.known && list.count != 1)
        return SNI_INFER_FAIL(c, "K has %" PRId64 " elements, not 1", list.count);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0), axis;
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    sni_dim dims[SN_MAX_RANK];
    sni_infer_get_dims(c, 0, dims);
    int64_t n;
    if (list.known && sni_list_int(&list, 0, &n) &&
        (n < 0 || (sni_dim_known(dims[axis]) && n > dims[axis])))
        return SNI_INFER_FAIL(c, "K is %" PRId64 " for an axis of length %s", n,
                              sni_dim_text(c->symbols, dims[axis]));
    dims[axis] = list.known ? sni_list_dim(c, &list, 0) : sni_dim_fresh(c->symbols);
    SN_TRY(sni_infer_set_shape(c, 0, rank, dims));
    return sni_infer_set_shape(c, 1, rank, dims);
}

static sn_status topk_ref(sni_kernel *k) {
    static const topk_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(topk)};
    const sni_topk_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *values = sni_out(k, 0), *indices = sni_out(k, 1);
    const sni_tensor *shape = values ? values : indices;
    if (!shape || shape->count == 0) return SN_OK;
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    int64_t n = x->dims[axis], take = shape->dims[axis];
    int64_t inner = sni_tensor_span(x, axis + 1, x->rank);
    bool narrow = sni_dtype_get(x->dtype)->cls == SNI_CLASS_S;
    topk_fn fn = fns[narrow ? SN_FLOAT32 : x->dtype];
    size_t width = sni_dtype_width(x->dtype);
    void *lane = NULL, *wide = NULL;
    int64_t *heap = NULL;
    SN_TRY(sni_scratch_array(k, n, width, &lane));
    if (narrow) SN_TRY(sni_scratch_array(k, n, sizeof(float), &wide));
    SN_TRY(sni_scratch_i64(k, take, &heap));
    for (int64_t i = 0; i < shape->count / take; i++) {
        if (i % 256 == 0) SN_TRY(sni_poll(k));
        int64_t from = i / inner * n * inner + i % inner, to = i / inner * take * inner + i % inner;
        sni_copy_strided(lane, 1, sni_element(x->data, from, width), inner, n, width);
        if (narrow) sni_widen(x->dtype, lane, wide, (size_t)n);
        fn(narrow ? wide : lane, n, take, p->largest != 0, heap);
        for (int64_t j = 0; j < take; j++) {
            int64_t at = to + j * inner;
            if (indices) ((int64_t *)indices->data)[at] = heap[j];
            if (values)
                sni_copy_element(sni_element(values->data, at, width),
                                 sni_element(lane, heap[j], width), width);
        }
    }
    return SN_OK;
}

/* Before 10 k was an attribute; K is a list of one element since. */
static sn_status topk_upgrade(sni_upgrade *u) {
    if (u->from >= 10) return SN_OK;
    int64_t k = sni_upgrade_int(u, "k", 0);
    int32_t value;
    SN_TRY(sni_upgrade_ints(u, &k, 1, &value));
    SN_TRY(sni_node_resize_inputs(u->graph, u->node, 2, u->err));
    SN_TRY(sni_node_set_input(u->graph, u->node, 1, value, u->err));
    sni_node_remove_attr(u->node, "k");
    return SN_OK;
}

const sni_op sni_op_TopK = {
    .name = "TopK",
    .versions = SNI_VERSIONS(1, 10, 11, 24),
    .inputs = SNI_FORMALS({"X", "T"}, {"K", "int64"}),
    .outputs = SNI_FORMALS({"Values", "T"}, {"Indices", "int64"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(sni_topk_params, axis), .number = -1},
                         {"largest", SNI_ATTR_INT, offsetof(sni_topk_params, largest), .number = 1},
                         {"sorted", SNI_ATTR_INT, offsetof(sni_topk_params, sorted), .number = 1}),
    .params_size = sizeof(sni_topk_params),
    .upgrade = topk_upgrade,
    .infer = topk_infer,
    .ref = topk_ref,
};
