/* Split: a tensor divided into parts along an axis. */
#include "base/checked.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct split_params {
    int64_t axis;
    int64_t num_outputs; /* 0: not given */
} split_params;

/* The length of part i of an axis of `length` that is divided into `n` even parts, of which the
 * last is shorter. */
static sni_dim even_piece(sni_infer *c, sni_dim length, int n, int i) {
    sni_dim piece = sni_dim_ceildiv(c->symbols, length, n);
    if (!sni_dim_known(length)) {
        if (i == 0 || sni_dim_mul(c->symbols, piece, n) == length) return piece;
        return sni_dim_fresh(c->symbols);
    }
    int64_t start = piece * i < length ? piece * i : length;
    return length - start < piece ? length - start : piece;
}

/* The lengths that the input `split` gives. */
static sn_status given_pieces(sni_infer *c, const sni_list *split, sni_dim length, sni_dim *out) {
    if (split->count != c->n_out)
        return SNI_INFER_FAIL(c, "split has %" PRId64 " lengths for %d outputs", split->count,
                              c->n_out);
    int64_t sum = 0;
    bool all = true;
    for (int i = 0; i < c->n_out; i++) {
        int64_t v;
        if (!sni_list_int(split, i, &v)) {
            all = false;
        } else if (v < 0 || !sni_add_i64(sum, v, &sum)) {
            return SNI_INFER_FAIL(c, "split has length %" PRId64 " at %d", v, i);
        }
        out[i] = sni_list_dim(c, split, i);
    }
    if (all && sni_dim_known(length) && sum != length)
        return SNI_INFER_FAIL(c, "split lengths add up to %" PRId64 ", not %" PRId64, sum, length);
    return SN_OK;
}

/* Elements of the outputs where the input is a list of integers. */
static sn_status split_list(sni_infer *c, const sni_dim *pieces) {
    sni_list list;
    SN_TRY(sni_infer_list(c, 0, &list));
    if (!sni_list_has_elements(&list) || list.count > SNI_LIST_MAX) return SN_OK;
    sni_dim dims[SNI_LIST_MAX];
    for (int64_t j = 0; j < list.count; j++) dims[j] = sni_list_item(c, &list, j);
    int64_t at = 0;
    for (int i = 0; i < c->n_out; i++) {
        if (!sni_dim_known(pieces[i]) || pieces[i] > list.count - at) return SN_OK;
        SN_TRY(sni_infer_set_dims(c, i, (int32_t)pieces[i], dims + at));
        at += pieces[i];
    }
    return SN_OK;
}

static sn_status split_infer(sni_infer *c) {
    const split_params *p = c->params;
    if (p->num_outputs != 0 && p->num_outputs != c->n_out)
        return SNI_INFER_FAIL(c, "num_outputs is %" PRId64 ", but there are %d outputs",
                              p->num_outputs, c->n_out);
    sni_list split;
    SN_TRY(sni_infer_list(c, 1, &split));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0), axis;
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    sni_dim length = sni_infer_dim(c, 0, axis);
    sni_dim *pieces = SNI_NEW_ARRAY(c->arena, sni_dim, c->n_out);
    if (!pieces) return sni_fail_memory(c->err);
    if (split.known) {
        SN_TRY(given_pieces(c, &split, length, pieces));
    } else {
        for (int i = 0; i < c->n_out; i++)
            pieces[i] = sni_infer_given(c, 1) ? sni_dim_fresh(c->symbols)
                                              : even_piece(c, length, c->n_out, i);
    }
    sni_dim dims[SN_MAX_RANK];
    sni_infer_get_dims(c, 0, dims);
    for (int i = 0; i < c->n_out; i++) {
        dims[axis] = pieces[i];
        SN_TRY(sni_infer_set_shape(c, i, rank, dims));
    }
    bool integer = c->in[0]->dtype == SN_INT64 || c->in[0]->dtype == SN_INT32;
    return rank == 1 && integer ? split_list(c, pieces) : SN_OK;
}

static sn_status split_ref(sni_kernel *k) {
    const split_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *split = sni_in(k, 1);
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    int64_t length = x->dims[axis], at = 0;
    int64_t piece = length / k->n_out + (length % k->n_out != 0);
    for (int i = 0; i < k->n_out; i++) {
        int64_t n = split ? sni_index_at(split, i) : piece < length - at ? piece : length - at;
        sni_tensor *y = sni_out(k, i);
        if (y) sni_get_part(k, x, axis, at, y->data, n);
        at += n;
    }
    return SN_OK;
}

static bool split_part(sni_infer *c, int out, int64_t *at) {
    const split_params *p = c->params;
    int rank = sni_infer_rank(c, 0), axis = (int)(p->axis < 0 ? p->axis + rank : p->axis);
    for (int i = 0; i < axis; i++)
        if (sni_infer_dim(c, 0, i) != 1) return false;
    *at = 0;
    for (int i = 0; i < out; i++) {
        int64_t count;
        if (!c->out[i].has_shape || !sni_shape_count(rank, c->out[i].dims, &count)) return false;
        *at += count;
    }
    return true;
}

/* Before 18 an even split had no attribute; version 1 took the lengths as floats too. */
static sn_status split_upgrade(sni_upgrade *u) {
    bool given = u->node->n_in > 1 && u->node->in[1] != SNI_NO_ID;
    if (u->from == 1 && given) {
        sni_attr to = sni_attr_of_int("to", SN_INT64);
        int32_t lengths;
        SN_TRY(sni_upgrade_insert(u, "Cast", &u->node->in[1], 1, &to, 1, &lengths));
        return sni_node_set_input(u->graph, u->node, 1, lengths, u->err);
    }
    if (u->from >= 18 || given) return SN_OK;
    sni_attr n = sni_attr_of_int("num_outputs", u->node->n_out);
    return sni_node_set_attr(u->graph, u->node, &n, u->err);
}

const sni_op sni_op_Split = {
    .name = "Split",
    .versions = SNI_VERSIONS(1, 2, 11, 13, 18),
    .inputs = SNI_FORMALS({"input", "T"}, {"split", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"outputs", "T", SNI_VARIADIC}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(split_params, axis)},
                         {"num_outputs", SNI_ATTR_INT, offsetof(split_params, num_outputs)}),
    .params_size = sizeof(split_params),
    .moves = SNI_ATTR_MOVES({"split", 13, 1}),
    .upgrade = split_upgrade,
    .infer = split_infer,
    .part = split_part,
    .ref = split_ref,
};
