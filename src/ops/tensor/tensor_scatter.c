/* TensorScatter: writes new entries into a cache along its sequence axis, at a position of its own
 * for each sample of the batch. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct tensor_scatter_params {
    int64_t axis;
    int32_t circular;
} tensor_scatter_params;

static sn_status tensor_scatter_infer(sni_infer *c) {
    const tensor_scatter_params *p = c->params;
    SN_TRY(sni_infer_same(c));
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 0), axis;
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    if (axis == 0) return SNI_INFER_FAIL(c, "axis 0 is the batch axis");
    if (sni_infer_rank(c, 1) != rank)
        return SNI_INFER_FAIL(c, "cache and update have ranks %d and %d", rank,
                              sni_infer_rank(c, 1));
    for (int i = 0; i < rank; i++) {
        sni_dim d = sni_infer_dim(c, 0, i), n = sni_infer_dim(c, 1, i);
        if (i != axis)
            SN_TRY(sni_infer_join_dim(c, "cache and update", i, d, n, &d));
        else if (sni_dim_known(d) && sni_dim_known(n) && n > d)
            return SNI_INFER_FAIL(c, "an update of length %" PRId64 " for a cache of %" PRId64, n,
                                  d);
    }
    if (!sni_infer_shaped(c, 2)) return SN_OK;
    if (sni_infer_rank(c, 2) != 1)
        return SNI_INFER_FAIL(c, "write_indices have rank %d, not 1", sni_infer_rank(c, 2));
    sni_dim batch;
    return sni_infer_join_dim(c, "cache and write_indices", 0, sni_infer_dim(c, 0, 0),
                              sni_infer_dim(c, 2, 0), &batch);
}

static sn_status tensor_scatter_ref(sni_kernel *k) {
    const tensor_scatter_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *update = sni_in(k, 1), *at = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    sni_copy_shared(k->threads, y->data, x->data, sni_tensor_bytes(x));
    if (update->count == 0) return SN_OK;
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    int64_t length = x->dims[axis], n = update->dims[axis];
    int64_t outer = sni_tensor_span(x, 1, axis);
    size_t row = (size_t)sni_tensor_span(x, axis + 1, x->rank) * sni_dtype_width(x->dtype);
    const unsigned char *src = update->data;
    for (int64_t i = 0; i < x->dims[0] * outer; i++) {
        int64_t start = at ? sni_index_at(at, i / outer) : 0;
        if (start < 0 || (!p->circular && start > length - n))
            return SNI_KERNEL_FAIL(k,
                                   "write index %" PRId64 " is out of range for %" PRId64
                                   " entries in a cache of %" PRId64,
                                   start, n, length);
        unsigned char *dst = (unsigned char *)y->data + (size_t)(i * length) * row;
        start %= length;
        int64_t first = n < length - start ? n : length - start;
        memcpy(dst + (size_t)start * row, src, (size_t)first * row);
        memcpy(dst, src + (size_t)first * row, (size_t)(n - first) * row);
        src += (size_t)n * row;
    }
    return SN_OK;
}

const sni_op sni_op_TensorScatter = {
    .name = "TensorScatter",
    .versions = SNI_VERSIONS(24),
    .inputs =
        SNI_FORMALS({"past_cache", "T"}, {"update", "T"}, {"write_indices", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"present_cache", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params =
        SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(tensor_scatter_params, axis), .number = -2},
                   {"mode", SNI_ATTR_STRING, offsetof(tensor_scatter_params, circular),
                    .text = "linear", .choices = "linear|circular"}),
    .params_size = sizeof(tensor_scatter_params),
    .inplace = 1,
    .infer = tensor_scatter_infer,
    .ref = tensor_scatter_ref,
};
