/* Operators on sequences: SequenceConstruct, SequenceEmpty, SequenceAt, SequenceErase,
 * SequenceInsert, SequenceLength. Sequences never change: each operator makes a new one that shares
 * the items. */
#include "ops/core/seq_util.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

static sn_status set_sequence(sni_infer *c, const sni_type *item) {
    return sni_infer_set_full_type(c, 0, &(sni_type){.kind = SN_KIND_SEQUENCE, .inner = item});
}

/* Items [from, from + n) of `src` become holders in dst from `at` on. */
static sn_status share_items(sni_kernel *k, sni_sequence *dst, size_t at, const sni_datum *src,
                             size_t n) {
    for (size_t i = 0; i < n; i++)
        SN_TRY(sni_datum_share(&dst->items[at + i], &src[i], k->budget, k->err));
    return SN_OK;
}

/* A position input (negative ones count from the end), brought to [0, n). */
static sn_status position(sni_kernel *k, const sni_tensor *t, size_t n, size_t *out) {
    int64_t at = 0;
    if (t->count != 1)
        return SNI_KERNEL_FAIL(k, "position has %" PRId64 " elements, not 1", t->count);
    SN_TRY(sni_wrap_index(k, "position", sni_index_at(t, 0), (int64_t)n, &at));
    *out = (size_t)at;
    return SN_OK;
}

/* ---- SequenceConstruct ---- */

static sn_status construct_infer(sni_infer *c) {
    sni_type item = *c->in[0];
    for (int i = 1; i < c->n_in; i++) {
        sni_type both;
        SN_TRY(sni_infer_union(c, &item, c->in[i], &both));
        item = both;
    }
    return set_sequence(c, &item);
}

static sn_status construct_ref(sni_kernel *k) {
    sni_datum d = {.kind = SN_KIND_SEQUENCE};
    SN_TRY(sni_sequence_new((size_t)k->n_in, sni_in(k, 0)->dtype, &d.seq, k->err));
    for (int i = 0; i < k->n_in; i++) {
        sn_status status = sni_datum_share(&d.seq->items[i], k->in[i], k->budget, k->err);
        if (status != SN_OK) {
            sni_datum_clear(&d);
            return status;
        }
    }
    sni_out_give(k, 0, &d);
    return SN_OK;
}

const sni_op sni_op_SequenceConstruct = {
    .name = "SequenceConstruct",
    .versions = SNI_VERSIONS(11),
    .inputs = SNI_FORMALS({"inputs", "T", SNI_VARIADIC}),
    .outputs = SNI_FORMALS({"output_sequence", "S"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"S", SNI_T_SEQ}),
    .flags = SNI_OP_ALLOCATES,
    .infer = construct_infer,
    .ref = construct_ref,
};

/* ---- SequenceEmpty ---- */

typedef struct empty_params {
    int64_t dtype;
} empty_params;

static sn_status empty_infer(sni_infer *c) {
    const empty_params *p = c->params;
    if (p->dtype <= 0 || p->dtype >= SNI_DTYPE_COUNT || !sni_dtype_valid((sn_dtype)p->dtype))
        return SNI_INFER_FAIL(c, "dtype %" PRId64 " is no element type", p->dtype);
    return set_sequence(c, &(sni_type){.kind = SN_KIND_TENSOR, .dtype = (sn_dtype)p->dtype});
}

static sn_status empty_ref(sni_kernel *k) {
    const empty_params *p = k->params;
    sni_datum d = {.kind = SN_KIND_SEQUENCE};
    SN_TRY(sni_sequence_new(0, (sn_dtype)p->dtype, &d.seq, k->err));
    sni_out_give(k, 0, &d);
    return SN_OK;
}

const sni_op sni_op_SequenceEmpty = {
    .name = "SequenceEmpty",
    .versions = SNI_VERSIONS(11),
    .outputs = SNI_FORMALS({"output", "S"}),
    .types = SNI_TYPE_VARS({"S", SNI_T_SEQ}),
    .params =
        SNI_PARAMS({"dtype", SNI_ATTR_INT, offsetof(empty_params, dtype), .number = SN_FLOAT32}),
    .params_size = sizeof(empty_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = empty_infer,
    .ref = empty_ref,
};

/* ---- SequenceAt ---- */

static sn_status at_infer(sni_infer *c) {
    return c->in[0]->inner ? sni_infer_set_full_type(c, 0, c->in[0]->inner) : SN_OK;
}

static sn_status at_ref(sni_kernel *k) {
    const sni_sequence *s = k->in[0]->seq;
    size_t at = 0;
    SN_TRY(position(k, sni_in(k, 1), s->count, &at));
    return sni_out_share(k, 0, &s->items[at]);
}

const sni_op sni_op_SequenceAt = {
    .name = "SequenceAt",
    .versions = SNI_VERSIONS(11),
    .inputs = SNI_FORMALS({"input_sequence", "S"}, {"position", "I"}),
    .outputs = SNI_FORMALS({"tensor", "T"}),
    .types = SNI_TYPE_VARS({"S", SNI_T_SEQ}, {"I", SNI_T_INDEX}, {"T", SNI_T_ALL}),
    .flags = SNI_OP_ALLOCATES,
    .infer = at_infer,
    .ref = at_ref,
};

/* ---- SequenceErase ---- */

static sn_status same_sequence_infer(sni_infer *c) {
    return c->in[0]->kind == SN_KIND_SEQUENCE ? sni_infer_set_full_type(c, 0, c->in[0]) : SN_OK;
}

static sn_status erase_ref(sni_kernel *k) {
    const sni_sequence *s = k->in[0]->seq;
    const sni_tensor *where = sni_in(k, 1);
    if (s->count == 0) return SNI_KERNEL_FAIL(k, "the sequence is empty");
    size_t at = s->count - 1;
    if (where) SN_TRY(position(k, where, s->count, &at));
    sni_datum d = {.kind = SN_KIND_SEQUENCE};
    SN_TRY(sni_sequence_new(s->count - 1, s->dtype, &d.seq, k->err));
    sn_status status = share_items(k, d.seq, 0, s->items, at);
    if (status == SN_OK) status = share_items(k, d.seq, at, s->items + at + 1, s->count - 1 - at);
    if (status == SN_OK) sni_out_give(k, 0, &d);
    sni_datum_clear(&d);
    return status;
}

const sni_op sni_op_SequenceErase = {
    .name = "SequenceErase",
    .versions = SNI_VERSIONS(11),
    .inputs = SNI_FORMALS({"input_sequence", "S"}, {"position", "I", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output_sequence", "S"}),
    .types = SNI_TYPE_VARS({"S", SNI_T_SEQ}, {"I", SNI_T_INDEX}),
    .flags = SNI_OP_ALLOCATES,
    .infer = same_sequence_infer,
    .ref = erase_ref,
};

/* ---- SequenceInsert ---- */

static sn_status insert_infer(sni_infer *c) {
    sni_type item = *c->in[1];
    if (c->in[0]->inner) SN_TRY(sni_infer_union(c, c->in[0]->inner, c->in[1], &item));
    return set_sequence(c, &item);
}

static sn_status insert_ref(sni_kernel *k) {
    const sni_sequence *s = k->in[0]->seq;
    const sni_tensor *t = sni_in(k, 1), *where = sni_in(k, 2);
    if (s->dtype && s->dtype != t->dtype)
        return SNI_KERNEL_FAIL(k, "a tensor of %s for a sequence of %s", sn_dtype_name(t->dtype),
                               sn_dtype_name(s->dtype));
    size_t at = s->count;
    if (where) {
        /* One place more than there are items; -1 is before the last item. */
        int64_t v = where->count == 1 ? sni_index_at(where, 0) : 0, n = (int64_t)s->count;
        if (where->count != 1 || v < -n || v > n)
            return SNI_KERNEL_FAIL(k, "position %" PRId64 " for a sequence of %" PRId64, v, n);
        at = (size_t)(v < 0 ? v + n : v);
    }
    sni_datum d = {.kind = SN_KIND_SEQUENCE};
    SN_TRY(sni_sequence_new(s->count + 1, t->dtype, &d.seq, k->err));
    sn_status status = share_items(k, d.seq, 0, s->items, at);
    if (status == SN_OK) status = share_items(k, d.seq, at, k->in[1], 1);
    if (status == SN_OK) status = share_items(k, d.seq, at + 1, s->items + at, s->count - at);
    if (status == SN_OK) sni_out_give(k, 0, &d);
    sni_datum_clear(&d);
    return status;
}

const sni_op sni_op_SequenceInsert = {
    .name = "SequenceInsert",
    .versions = SNI_VERSIONS(11),
    .inputs =
        SNI_FORMALS({"input_sequence", "S"}, {"tensor", "T"}, {"position", "I", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output_sequence", "S"}),
    .types = SNI_TYPE_VARS({"S", SNI_T_SEQ}, {"T", SNI_T_ANY}, {"I", SNI_T_INDEX}),
    .flags = SNI_OP_ALLOCATES,
    .infer = insert_infer,
    .ref = insert_ref,
};

/* ---- SequenceLength ---- */

static sn_status length_infer(sni_infer *c) {
    return sni_infer_set_shape(c, 0, 0, NULL);
}

static sn_status length_ref(sni_kernel *k) {
    *(int64_t *)sni_out(k, 0)->data = (int64_t)k->in[0]->seq->count;
    return SN_OK;
}

const sni_op sni_op_SequenceLength = {
    .name = "SequenceLength",
    .versions = SNI_VERSIONS(11),
    .inputs = SNI_FORMALS({"input_sequence", "S"}),
    .outputs = SNI_FORMALS({"length", "int64"}),
    .types = SNI_TYPE_VARS({"S", SNI_T_SEQ}),
    .infer = length_infer,
    .ref = length_ref,
};
