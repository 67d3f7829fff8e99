/* seq_util.c - values other than tensors, and joining tensors. */
#include "ops/core/seq_util.h"

#include "base/checked.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>

void sni_out_give(sni_kernel *k, int i, sni_datum *d) {
    if (i >= k->n_out || !k->out[i]) {
        sni_datum_clear(d);
        return;
    }
    *k->out[i] = *d;
    *d = (sni_datum){0};
}

sn_status sni_out_share(sni_kernel *k, int i, const sni_datum *value) {
    if (i >= k->n_out || !k->out[i]) return SN_OK;
    return sni_datum_share(k->out[i], value, k->budget, k->err);
}

sn_status sni_datum_array(sni_kernel *k, int n, sni_datum **out) {
    void *p = NULL;
    SN_TRY(sni_scratch_array(k, n, sizeof(sni_datum), &p));
    memset(p, 0, (size_t)n * sizeof(sni_datum));
    *out = p;
    return SN_OK;
}

void sni_datum_clear_all(sni_datum *array, int n) {
    for (int i = 0; array && i < n; i++) sni_datum_clear(&array[i]);
}

/* Item i must be like item 0, but for its length along `axis` (below 0: in all). */
static sn_status check_item(sni_kernel *k, const sni_datum *items, size_t i, int axis) {
    const sni_tensor *first = &items[0].tensor, *t = &items[i].tensor;
    if (items[i].kind != SN_KIND_TENSOR) return SNI_KERNEL_FAIL(k, "item %zu is no tensor", i);
    if (t->dtype != first->dtype)
        return SNI_KERNEL_FAIL(k, "item %zu is %s, the first is %s", i, sn_dtype_name(t->dtype),
                               sn_dtype_name(first->dtype));
    if (t->rank != first->rank)
        return SNI_KERNEL_FAIL(k, "item %zu has rank %d, the first has %d", i, t->rank,
                               first->rank);
    for (int a = 0; a < t->rank; a++)
        if (a != axis && t->dims[a] != first->dims[a])
            return SNI_KERNEL_FAIL(k,
                                   "item %zu has length %" PRId64 " in axis %d, the first has "
                                   "%" PRId64,
                                   i, t->dims[a], a, first->dims[a]);
    return SN_OK;
}

sn_status sni_join_tensors(sni_kernel *k, const sni_datum *items, size_t n, int64_t axis,
                           bool stack, sni_datum *out) {
    const sni_tensor *first = &items[0].tensor;
    if (items[0].kind != SN_KIND_TENSOR) return SNI_KERNEL_FAIL(k, "item 0 is no tensor");
    int rank = first->rank + (stack ? 1 : 0);
    int64_t dims[SN_MAX_RANK + 1], at = 0, total = 0;
    SN_TRY(sni_wrap_index(k, "axis", axis, rank, &axis));
    for (size_t i = 0; i < n; i++) {
        SN_TRY(check_item(k, items, i, stack ? -1 : (int)axis));
        if (!sni_add_i64(total, stack ? 1 : items[i].tensor.dims[axis], &total))
            return sni_fail(k->err, SN_LIMIT, "the joined axis is too long");
    }
    for (int a = 0, j = 0; a < rank; a++) {
        dims[a] = a == axis ? total : first->dims[j];
        if (a != axis || !stack) j++;
    }
    SN_TRY(sni_tensor_new(&out->tensor, first->dtype, rank, dims, k->budget, k->err));
    out->kind = SN_KIND_TENSOR;
    for (size_t i = 0; i < n; i++) {
        int64_t length = stack ? 1 : items[i].tensor.dims[axis];
        sni_put_part(k, &out->tensor, (int)axis, at, items[i].tensor.data, length);
        at += length;
    }
    return SN_OK;
}

const sni_type *sni_subgraph_output(const sni_kernel *k, int32_t graph, int index) {
    const sni_graph *g = k->node->subgraphs[graph];
    return &sni_graph_value(g, g->outputs[index])->type;
}

/* The size that a dimension of the body has in the values it would be given; 0 if none tells. */
static int64_t bound_dim(const sni_graph *g, const sni_datum *const *in, sni_dim dim) {
    if (sni_dim_known(dim)) return dim;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const sni_type *type = &sni_graph_value(g, g->inputs[i])->type;
        if (!in[i] || in[i]->kind != SN_KIND_TENSOR || !type->has_shape ||
            type->rank != in[i]->tensor.rank)
            continue;
        for (int a = 0; a < type->rank; a++)
            if (type->dims[a] == dim) return in[i]->tensor.dims[a];
    }
    return 0;
}

int sni_empty_dims(const sni_kernel *k, int32_t graph, const sni_datum *const *in,
                   const sni_type *type, int64_t dims[SN_MAX_RANK]) {
    if (!type->has_shape) return 0;
    const sni_graph *g = k->node->subgraphs[graph];
    for (int i = 0; i < type->rank; i++) dims[i] = bound_dim(g, in, type->dims[i]);
    return type->rank;
}
