/* MaxUnpool: puts each element back where MaxPool found it; everything else is 0. */
#include "ops/nn/sliding.h"
#include "ops/core/tensor_util.h"

#include <string.h>

/* Sizes that pooling with these windows came from. */
static sn_status natural_sizes(sni_infer *c, const sni_window *w, sni_dim *dims) {
    for (int i = 0; i < w->rank; i++) {
        sni_dim in = sni_infer_dim(c, 0, 2 + i);
        int64_t pads = w->begin[i] + w->end[i], extent = sni_window_extent(w, i);
        if (sni_dim_known(in) && (in < 1 || in > INT32_MAX))
            return SNI_INFER_FAIL(c, "%lld elements along spatial axis %d", (long long)in, i);
        sni_dim reach = sni_dim_mul(c->symbols, sni_dim_sub(c->symbols, in, 1), w->stride[i]);
        sni_dim full = sni_dim_add(c->symbols, reach, extent);
        if (sni_dim_known(full) && full < pads)
            return SNI_INFER_FAIL(c, "padding of %lld around %lld elements", (long long)pads,
                                  (long long)full);
        dims[2 + i] = sni_dim_sub(c->symbols, full, pads);
    }
    return SN_OK;
}

static sn_status unpool_infer(sni_infer *c) {
    const sni_window_params *p = c->params;
    sni_window w;
    sni_dim dims[SN_MAX_RANK];
    const sni_dim *asked = NULL;
    int32_t n = 0;
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    SN_TRY(sni_window_init(&w, p, rank - 2, NULL, c->err));
    for (int i = 0; i < rank && sni_infer_shaped(c, 1); i++)
        if (sni_infer_rank(c, 1) != rank ||
            sni_dim_differ(sni_infer_dim(c, 1, i), sni_infer_dim(c, 0, i)))
            return SNI_INFER_FAIL(c, "X and I have different shapes");
    dims[0] = sni_infer_dim(c, 0, 0);
    dims[1] = sni_infer_dim(c, 0, 1);
    SN_TRY(natural_sizes(c, &w, dims));
    if (!sni_infer_given(c, 2)) return sni_infer_set_shape(c, 0, rank, dims);
    SN_TRY(sni_infer_dims(c, 2, &asked, &n));
    if (!asked) {
        for (int i = 0; i < rank; i++) dims[i] = sni_dim_fresh(c->symbols);
        return sni_infer_set_shape(c, 0, rank, dims);
    }
    if (n != rank) return SNI_INFER_FAIL(c, "output_shape has %d elements, not %d", n, rank);
    for (int i = 0; i < rank; i++)
        if (sni_dim_known(asked[i]) && sni_dim_known(dims[i]) && asked[i] < dims[i])
            return SNI_INFER_FAIL(c, "output_shape[%d] is %lld, less than %lld", i,
                                  (long long)asked[i], (long long)dims[i]);
    return sni_infer_set_shape(c, 0, rank, asked);
}

/* Stores n elements of a width, which is a constant at every call, at their places below `count`;
 * false if a place is out of range. */
static inline __attribute__((always_inline)) bool put(const void *x, const int64_t *at, int64_t n,
                                                      int64_t count, void *y, size_t width) {
    for (int64_t i = 0; i < n; i++) {
        if ((uint64_t)at[i] >= (uint64_t)count) return false;
        memcpy(sni_element(y, at[i], width), sni_element(x, i, width), width);
    }
    return true;
}

static sn_status unpool_ref(sni_kernel *k) {
    const sni_window_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *indices = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    size_t width = sni_dtype_width(x->dtype);
    int64_t natural[SN_MAX_RANK], strides[SN_MAX_RANK], count = 1;
    bool same = true;
    sni_window w;
    SN_TRY(sni_window_init(&w, p, x->rank - 2, NULL, k->err));
    /* Indices count elements of the natural shape, whatever shape is asked for. */
    for (int i = 0; i < x->rank; i++) {
        natural[i] = i < 2 ? x->dims[i]
                           : (x->dims[i] - 1) * w.stride[i - 2] + sni_window_extent(&w, i - 2) -
                                 w.begin[i - 2] - w.end[i - 2];
        count *= natural[i];
        same = same && natural[i] == y->dims[i];
    }
    sni_strides(y->rank, y->dims, strides);
    if (y->count) memset(y->data, 0, sni_tensor_bytes(y));
    if (same && width == 4 && put(x->data, indices->data, x->count, count, y->data, 4))
        return SN_OK;
    for (int64_t i = 0; i < x->count; i++) {
        int64_t at = ((const int64_t *)indices->data)[i], to = 0;
        if (at < 0 || at >= count)
            return SNI_KERNEL_FAIL(k, "index %lld is outside 0 to %lld", (long long)at,
                                   (long long)count - 1);
        if (same) to = at;
        for (int a = same ? -1 : x->rank - 1; a >= 0; a--) {
            to += at % natural[a] * strides[a];
            at /= natural[a];
        }
        sni_copy_element(sni_element(y->data, to, width), sni_element(x->data, i, width), width);
    }
    return SN_OK;
}

const sni_op sni_op_MaxUnpool = {
    .name = "MaxUnpool",
    .versions = SNI_VERSIONS(9, 11, 22),
    .inputs = SNI_FORMALS({"X", "T1"}, {"I", "int64"}, {"output_shape", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T1"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"kernel_shape", SNI_ATTR_INTS, offsetof(sni_window_params, kernel_shape),
                          .required = true},
                         {"strides", SNI_ATTR_INTS, offsetof(sni_window_params, strides)},
                         {"pads", SNI_ATTR_INTS, offsetof(sni_window_params, pads)}),
    .params_size = sizeof(sni_window_params),
    .infer = unpool_infer,
    .ref = unpool_ref,
};
