/* SplitToSequence and ConcatFromSequence: from a tensor to a sequence of its parts, and back. */
#include "ops/core/seq_util.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

/* ---- SplitToSequence ---- */

typedef struct split_params {
    int64_t axis, keepdims; /* keepdims counts only where no lengths are given */
} split_params;

static sn_status split_infer(sni_infer *c) {
    const split_params *p = c->params;
    sni_type item = {.kind = SN_KIND_TENSOR, .dtype = c->in[0]->dtype};
    sni_dim dims[SN_MAX_RANK];
    if (sni_infer_shaped(c, 0)) {
        int rank = sni_infer_rank(c, 0), axis, n = 0;
        SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
        bool given = sni_infer_given(c, 1);
        for (int i = 0; i < rank; i++) {
            if (i != axis)
                dims[n++] = sni_infer_dim(c, 0, i);
            else if (given || p->keepdims)
                dims[n++] = given ? sni_dim_fresh(c->symbols) : 1;
        }
        item.has_shape = true;
        item.rank = n;
        item.dims = dims;
    }
    return sni_infer_set_full_type(c, 0, &(sni_type){.kind = SN_KIND_SEQUENCE, .inner = &item});
}

/* The number of parts; their lengths must add up to that of the axis. */
static sn_status count_pieces(sni_kernel *k, const sni_tensor *split, int64_t length,
                              int64_t *out) {
    if (!split) {
        *out = length;
        return SN_OK;
    }
    if (split->rank == 0) {
        int64_t piece = sni_index_at(split, 0);
        if (piece <= 0) return SNI_KERNEL_FAIL(k, "pieces of length %" PRId64, piece);
        *out = length / piece + (length % piece != 0);
        return SN_OK;
    }
    int64_t left = length;
    for (int64_t i = 0; i < split->count; i++) {
        int64_t piece = sni_index_at(split, i);
        if (piece < 0 || piece > left)
            return SNI_KERNEL_FAIL(
                k, "length %" PRId64 " at %" PRId64 " of split for %" PRId64 " elements", piece, i,
                left);
        left -= piece;
    }
    if (left)
        return SNI_KERNEL_FAIL(k, "split leaves %" PRId64 " of %" PRId64 " elements", left, length);
    *out = split->count;
    return SN_OK;
}

/* Piece of `length` from `at` on; its axis goes if `drop`. */
static sn_status make_piece(sni_kernel *k, const sni_tensor *x, int axis, int64_t at,
                            int64_t length, bool drop, sni_datum *out) {
    int64_t dims[SN_MAX_RANK];
    int n = 0;
    for (int i = 0; i < x->rank; i++)
        if (i != axis)
            dims[n++] = x->dims[i];
        else if (!drop)
            dims[n++] = length;
    SN_TRY(sni_tensor_new(&out->tensor, x->dtype, n, dims, k->budget, k->err));
    out->kind = SN_KIND_TENSOR;
    sni_get_part(k, x, axis, at, out->tensor.data, length);
    return SN_OK;
}

static sn_status split_ref(sni_kernel *k) {
    const split_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *split = sni_in(k, 1);
    int64_t axis = 0, n = 0, at = 0;
    SN_TRY(sni_wrap_index(k, "axis", p->axis, x->rank, &axis));
    int64_t length = x->dims[axis];
    SN_TRY(count_pieces(k, split, length, &n));
    sni_datum d = {.kind = SN_KIND_SEQUENCE};
    SN_TRY(sni_sequence_new((size_t)n, x->dtype, &d.seq, k->err));
    sn_status status = SN_OK;
    for (int64_t i = 0; i < n && status == SN_OK; i++) {
        int64_t piece = !split ? 1 : sni_index_at(split, split->rank == 0 ? 0 : i);
        if (piece > length - at) piece = length - at;
        status = make_piece(k, x, (int)axis, at, piece, !split && !p->keepdims, &d.seq->items[i]);
        at += piece;
    }
    if (status == SN_OK) sni_out_give(k, 0, &d);
    sni_datum_clear(&d);
    return status;
}

const sni_op sni_op_SplitToSequence = {
    .name = "SplitToSequence",
    .versions = SNI_VERSIONS(11, 24),
    .inputs = SNI_FORMALS({"input", "T"}, {"split", "I", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output_sequence", "S"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"I", SNI_T_INDEX}, {"S", SNI_T_SEQ}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(split_params, axis)},
                         {"keepdims", SNI_ATTR_INT, offsetof(split_params, keepdims), .number = 1}),
    .params_size = sizeof(split_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = split_infer,
    .ref = split_ref,
};

/* ---- ConcatFromSequence ---- */

typedef struct concat_params {
    int64_t axis, new_axis;
} concat_params;

static sn_status concat_infer(sni_infer *c) {
    const concat_params *p = c->params;
    const sni_type *item = c->in[0]->inner;
    if (!item || item->kind != SN_KIND_TENSOR || !item->dtype) return SN_OK;
    SN_TRY(sni_infer_set_type(c, 0, item->dtype));
    if (!item->has_shape) return SN_OK;
    int rank = item->rank + (p->new_axis ? 1 : 0), axis;
    if (rank > SN_MAX_RANK) return SNI_INFER_FAIL(c, "the output has a rank above %d", SN_MAX_RANK);
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int from = p->new_axis && i > axis ? i - 1 : i;
        dims[i] = i == axis ? sni_dim_fresh(c->symbols) : item->dims[from];
    }
    return sni_infer_set_shape(c, 0, rank, dims);
}

static sn_status concat_ref(sni_kernel *k) {
    const concat_params *p = k->params;
    const sni_sequence *s = k->in[0]->seq;
    if (s->count == 0) return SNI_KERNEL_FAIL(k, "the sequence is empty");
    sni_datum d = {0};
    sn_status status = sni_join_tensors(k, s->items, s->count, p->axis, p->new_axis != 0, &d);
    if (status == SN_OK) sni_out_give(k, 0, &d);
    sni_datum_clear(&d);
    return status;
}

const sni_op sni_op_ConcatFromSequence = {
    .name = "ConcatFromSequence",
    .versions = SNI_VERSIONS(11),
    .inputs = SNI_FORMALS({"input_sequence", "S"}),
    .outputs = SNI_FORMALS({"concat_result", "T"}),
    .types = SNI_TYPE_VARS({"S", SNI_T_SEQ}, {"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(concat_params, axis), .required = true},
                         {"new_axis", SNI_ATTR_INT, offsetof(concat_params, new_axis)}),
    .params_size = sizeof(concat_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = concat_infer,
    .ref = concat_ref,
};
