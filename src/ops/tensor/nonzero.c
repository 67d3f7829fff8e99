/* NonZero: the positions of elements that are not 0. Compress: slices chosen by a condition. */
#include "base/floats.h"
#include "ops/tensor/gather.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>

/* ---- NonZero ---- */

static bool bytes_zero(const unsigned char *p, size_t n) {
    unsigned any = 0;
    for (size_t i = 0; i < n; i++) any |= p[i];
    return any == 0;
}

/* Both zeros of floating point are 0, NaN is not; a string is 0 when it is empty. */
static bool element_zero(const sni_tensor *t, int64_t i) {
    size_t width = sni_dtype_width(t->dtype);
    const void *p = sni_element(t->data, i, width);
    switch (t->dtype) {
    case SN_FLOAT32:
        return *(const float *)p == 0;
    case SN_FLOAT64:
        return *(const double *)p == 0;
    case SN_COMPLEX64:
        return ((const float *)p)[0] == 0 && ((const float *)p)[1] == 0;
    case SN_COMPLEX128:
        return ((const double *)p)[0] == 0 && ((const double *)p)[1] == 0;
    case SN_STRING:
        return ((const sni_str *)p)->n == 0;
    default:
        if (sni_dtype_get(t->dtype)->cls == SNI_CLASS_S) return sni_narrow_to_f32(t->dtype, p) == 0;
        return bytes_zero(p, width);
    }
}

static sn_status nonzero_infer(sni_infer *c) {
    sni_dim rank = sni_infer_shaped(c, 0) ? sni_infer_rank(c, 0) : sni_dim_fresh(c->symbols);
    return sni_infer_set_shape(c, 0, 2, (const sni_dim[]){rank, sni_dim_fresh(c->symbols)});
}

/* Output (rank, n): column j is the position of the j-th element. */
static sn_status nonzero_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    int64_t n = 0, strides[SN_MAX_RANK];
    for (int64_t i = 0; i < x->count; i++) n += !element_zero(x, i);
    SN_TRY(sni_out_alloc(k, 0, SN_INT64, 2, (const int64_t[]){x->rank, n}));
    sni_tensor *y = sni_out(k, 0);
    if (!y || n == 0) return SN_OK;
    sni_strides(x->rank, x->dims, strides);
    int64_t *out = y->data, j = 0;
    for (int64_t i = 0; i < x->count; i++) {
        if (element_zero(x, i)) continue;
        int64_t rest = i;
        for (int a = 0; a < x->rank; a++) {
            out[a * n + j] = rest / strides[a];
            rest %= strides[a];
        }
        j++;
    }
    return SN_OK;
}

const sni_op sni_op_NonZero = {
    .name = "NonZero",
    .versions = SNI_VERSIONS(9, 13),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "int64"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .flags = SNI_OP_ALLOCATES,
    .infer = nonzero_infer,
    .ref = nonzero_ref,
};

/* ---- Compress ---- */

typedef struct compress_params {
    int64_t axis;
    bool has_axis; /* false: of the flattened input */
} compress_params;

static sn_status compress_infer(sni_infer *c) {
    const compress_params *p = c->params;
    if (sni_infer_shaped(c, 1) && sni_infer_rank(c, 1) != 1)
        return SNI_INFER_FAIL(c, "condition has rank %d, not 1", sni_infer_rank(c, 1));
    sni_dim dims[SN_MAX_RANK] = {sni_dim_fresh(c->symbols)};
    if (!p->has_axis) return sni_infer_set_shape(c, 0, 1, dims);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0), axis;
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    sni_infer_get_dims(c, 0, dims);
    dims[axis] = sni_dim_fresh(c->symbols);
    return sni_infer_set_shape(c, 0, rank, dims);
}

static sn_status compress_ref(sni_kernel *k) {
    const compress_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *condition = sni_in(k, 1);
    sni_tensor flat = *x;
    if (!p->has_axis) {
        flat.rank = 1;
        flat.dims[0] = x->count;
        x = &flat;
    }
    int64_t axis = 0;
    if (p->has_axis) SN_TRY(sni_wrap_index(k, "axis", p->axis, x->rank, &axis));
    const uint8_t *take = condition->data;
    int64_t dims[SN_MAX_RANK], n = 0;
    for (int64_t i = 0; i < condition->count; i++) {
        if (take[i] && i >= x->dims[axis])
            return SNI_KERNEL_FAIL(
                k, "condition chooses element %" PRId64 " of an axis of length %" PRId64, i,
                x->dims[axis]);
        n += take[i] != 0;
    }
    for (int i = 0; i < x->rank; i++) dims[i] = i == axis ? n : x->dims[i];
    SN_TRY(sni_out_alloc(k, 0, x->dtype, x->rank, dims));
    sni_tensor *y = sni_out(k, 0);
    if (!y || y->count == 0) return SN_OK;
    int64_t row = sni_tensor_span(x, (int)axis + 1, x->rank) * (int64_t)sni_dtype_width(x->dtype);
    int64_t *from = NULL;
    SN_TRY(sni_scratch_i64(k, n, &from));
    for (int64_t i = 0, j = 0; j < n; i++)
        if (take[i]) from[j++] = i * row;
    sni_rows rows = {.src = x->data,
                     .dst = y->data,
                     .from = from,
                     .period = n,
                     .step = x->dims[axis] * row,
                     .row = (size_t)row};
    sni_copy_rows(k->threads, &rows, n * sni_tensor_span(x, 0, (int)axis));
    return SN_OK;
}

const sni_op sni_op_Compress = {
    .name = "Compress",
    .versions = SNI_VERSIONS(9, 11),
    .inputs = SNI_FORMALS({"input", "T"}, {"condition", "bool"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(compress_params, axis),
                          .present = offsetof(compress_params, has_axis) + 1}),
    .params_size = sizeof(compress_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = compress_infer,
    .ref = compress_ref,
};
