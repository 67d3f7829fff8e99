/* Cast and CastLike: elements to another type; BitCast: the same bits as another type. */
#include "base/threadpool.h"
#include "ops/tensor/cast_text.h"
#include "ops/core/convert.h"
#include "ops/core/op.h"
#include "ops/core/tensor_util.h"

#include <ctype.h>
#include <inttypes.h>

enum { GRAIN = 16384 }; /* elements worth a thread */

#define CAST_TYPES (SNI_T_ANY & ~SNI_T_COMPLEX)

typedef struct cast_params {
    int64_t to; /* Cast and BitCast */
    int64_t saturate;
    int32_t round; /* sni_e8m0_round */
} cast_params;

typedef struct cast_job {
    const sni_tensor *x;
    sni_tensor *y;
    sni_convert_mode mode;
} cast_job;

static void cast_piece(void *ctx, int64_t begin, int64_t end) {
    const cast_job *j = ctx;
    const void *from = sni_element(j->x->data, begin, sni_dtype_width(j->x->dtype));
    void *to = sni_element(j->y->data, begin, sni_dtype_width(j->y->dtype));
    sni_convert(j->x->dtype, from, j->y->dtype, to, (size_t)(end - begin), &j->mode);
}

static sn_status cast_ref(sni_kernel *k) {
    const cast_params *p = k->params;
    cast_job j = {.x = sni_in(k, 0),
                  .y = sni_out(k, 0),
                  .mode = {p->saturate != 0, (sni_e8m0_round)p->round}};
    bool from_text = j.x->dtype == SN_STRING, to_text = j.y->dtype == SN_STRING;
    if (from_text && to_text)
        sni_copy_shared(k->threads, j.y->data, j.x->data, sni_tensor_bytes(j.x));
    else if (from_text)
        return sni_text_to_numbers(k, j.x, j.y, &j.mode);
    else if (to_text)
        return sni_numbers_to_text(k, j.x, j.y);
    else if (!sni_convertible(j.x->dtype, j.y->dtype))
        return sni_fail(k->err, SN_UNSUPPORTED, "no conversion from %s to %s",
                        sn_dtype_name(j.x->dtype), sn_dtype_name(j.y->dtype));
    else
        sni_parallel_for(k->threads, j.x->count, GRAIN, cast_piece, &j);
    return SN_OK;
}

/* The attribute `to` as a type that `allowed` has. */
static sn_status target_type(sni_infer *c, sni_types allowed, sn_dtype *to) {
    const cast_params *p = c->params;
    if (p->to <= 0 || p->to >= SNI_DTYPE_COUNT || !(SNI_T(p->to) & allowed))
        return SNI_INFER_FAIL(c, "'to' is %" PRId64 ", which is no type %s makes", p->to,
                              c->op->name);
    *to = (sn_dtype)p->to;
    return SN_OK;
}

/* Dimensions stay what they are as int64 and int32. */
static sn_status keep_dims(sni_infer *c) {
    const sni_dim *dims;
    int32_t count;
    if (c->out[0].dtype != SN_INT64 && c->out[0].dtype != SN_INT32) return SN_OK;
    SN_TRY(sni_infer_dims(c, 0, &dims, &count));
    return dims ? sni_infer_set_dims(c, 0, count, dims) : SN_OK;
}

static sn_status cast_infer(sni_infer *c) {
    sn_dtype to = SN_UNDEFINED;
    SN_TRY(target_type(c, CAST_TYPES, &to));
    SN_TRY(sni_infer_set_type(c, 0, to));
    SN_TRY(sni_infer_same(c));
    return keep_dims(c);
}

static sn_status cast_like_infer(sni_infer *c) {
    SN_TRY(sni_infer_same(c));
    return keep_dims(c);
}

/* Version 1 named the type: "FLOAT", "INT64", ... */
static sn_status cast_upgrade(sni_upgrade *u) {
    const sni_attr *to = sni_node_attr(u->node, "to");
    if (!to || to->kind != SNI_ATTR_STRING) return SN_OK;
    char name[16];
    sn_dtype dtype = SN_UNDEFINED;
    if (to->u.s.n < sizeof name) {
        for (size_t i = 0; i < to->u.s.n; i++) name[i] = (char)tolower((unsigned char)to->u.s.p[i]);
        dtype = sni_dtype_find((sni_str){name, to->u.s.n});
    }
    if (dtype == SN_UNDEFINED)
        return sni_fail(u->err, SN_INVALID_MODEL, "attribute 'to' is '%.*s', which is no type",
                        SNI_FMT(to->u.s));
    sni_attr number = sni_attr_of_int("to", dtype);
    return sni_node_set_attr(u->graph, u->node, &number, u->err);
}

/* Entries of the parameter tables. */
#define TO \
    { "to", SNI_ATTR_INT, offsetof(cast_params, to), .required = true }
#define MODE                                                                                      \
    {"saturate", SNI_ATTR_INT, offsetof(cast_params, saturate), .number = 1}, {                   \
        "round_mode", SNI_ATTR_STRING, offsetof(cast_params, round), .text = "up",                \
                                                                     .choices = "up|down|nearest" \
    }

const sni_op sni_op_Cast = {
    .name = "Cast",
    .versions = SNI_VERSIONS(1, 6, 9, 13, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"input", "T1"}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types = SNI_TYPE_VARS({"T1", CAST_TYPES}, {"T2", CAST_TYPES}),
    .params = SNI_PARAMS(TO, MODE),
    .params_size = sizeof(cast_params),
    .inplace = 1,
    .upgrade = cast_upgrade,
    .infer = cast_infer,
    .ref = cast_ref,
};

const sni_op sni_op_CastLike = {
    .name = "CastLike",
    .versions = SNI_VERSIONS(15, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"input", "T1"}, {"target_type", "T2"}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types = SNI_TYPE_VARS({"T1", CAST_TYPES}, {"T2", CAST_TYPES}),
    .params = SNI_PARAMS(MODE),
    .params_size = sizeof(cast_params),
    .inplace = 1,
    .infer = cast_like_infer,
    .ref = cast_ref,
};

static sn_status bit_cast_infer(sni_infer *c) {
    sn_dtype to = SN_UNDEFINED, from = c->in[0]->dtype;
    SN_TRY(target_type(c, SNI_T_ANY & ~SNI_T(SN_STRING), &to));
    if (from && sni_dtype_get(from)->bits != sni_dtype_get(to)->bits)
        return SNI_INFER_FAIL(c, "%s has %u bits and %s %u", sn_dtype_name(from),
                              sni_dtype_get(from)->bits, sn_dtype_name(to),
                              sni_dtype_get(to)->bits);
    SN_TRY(sni_infer_set_type(c, 0, to));
    return sni_infer_same(c);
}

static sn_status bit_cast_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sni_copy_shared(k->threads, y->data, x->data, sni_tensor_bytes(x));
    sni_keep_low_bits(y->dtype, y->data, (size_t)y->count);
    return SN_OK;
}

const sni_op sni_op_BitCast = {
    .name = "BitCast",
    .versions = SNI_VERSIONS(26),
    .inputs = SNI_FORMALS({"input", "T1"}),
    .outputs = SNI_FORMALS({"output", "T2"}),
    .types =
        SNI_TYPE_VARS({"T1", SNI_T_ANY & ~SNI_T(SN_STRING)}, {"T2", SNI_T_ANY & ~SNI_T(SN_STRING)}),
    .params = SNI_PARAMS(TO),
    .params_size = sizeof(cast_params),
    .inplace = 1,
    .infer = bit_cast_infer,
    .ref = bit_cast_ref,
};
