/* MultiHeadAttention of com.microsoft: queries, keys and values are separate or packed in one
 * tensor. It may have a bias on them, a padding mask, a bias on the scores and a cache, whose rows
 * may be those of other beams. DecoderMaskedMultiHeadAttention is the same for one token, with its
 * inputs in another order. */
#include "base/checked.h"
#include "ops/attention/kv_cache.h"
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>
#include <math.h>

typedef struct mha_params {
    int64_t num_heads, unidirectional;
    float mask_filter_value, scale;
} mha_params;

enum {
    QUERY,
    KEY,
    VALUE,
    BIAS,
    PADDING,
    SCORE_BIAS,
    PAST_KEY,
    PAST_VALUE,
    PAST_LENGTH,
    BEAMS,
    INPUTS
};
enum { PRESENT_KEY = 1, PRESENT_VALUE, SCORES };

/* The cache has a part only where the node hands it on: ONNX Runtime takes no notice of a cache
 * that comes in and does not go out. */
static sn_status mha_upgrade(sni_upgrade *u) {
    const sni_node *n = u->node;
    bool present = (n->n_out > PRESENT_KEY && n->out[PRESENT_KEY] != SNI_NO_ID) ||
                   (n->n_out > PRESENT_VALUE && n->out[PRESENT_VALUE] != SNI_NO_ID);
    bool fits = n->n_in <= SCORE_BIAS || n->in[SCORE_BIAS] == SNI_NO_ID;
    if (present || !fits) return SN_OK;
    for (int32_t i = PAST_KEY; i < INPUTS && i < n->n_in; i++)
        SN_TRY(sni_node_set_input(u->graph, u->node, i, SNI_NO_ID, u->err));
    return SN_OK;
}

/* ---- Shapes ---- */

typedef struct mha_shape {
    sni_dim batch, queries, keys, size, v_size; /* keys: the new ones */
} mha_shape;

/* An input (batch, length, heads * size). */
static sn_status read_flat(sni_infer *c, int i, int64_t heads, sni_dim *length, sni_dim *size) {
    sni_dim width = sni_infer_dim(c, i, 2);
    if (sni_dim_known(width) && width % heads)
        return SNI_INFER_FAIL(c, "%" PRId64 " elements do not divide into %" PRId64 " heads", width,
                              heads);
    *length = sni_infer_dim(c, i, 1);
    *size = sni_dim_floordiv(c->symbols, width, heads);
    return SN_OK;
}

/* An input (batch, length, heads, parts, size). */
static sn_status read_packed(sni_infer *c, int i, int64_t heads, int parts, sni_dim *length,
                             sni_dim *size) {
    if (sni_dim_differ(sni_infer_dim(c, i, 2), heads) ||
        sni_dim_differ(sni_infer_dim(c, i, 3), parts))
        return SNI_INFER_FAIL(c, "input %d is not (batch, length, %" PRId64 ", %d, size)", i, heads,
                              parts);
    *length = sni_infer_dim(c, i, 1);
    *size = sni_infer_dim(c, i, 4);
    return SN_OK;
}

/* An input (batch, heads, length, size). */
static sn_status read_cached(sni_infer *c, int i, int64_t heads, sni_dim *length, sni_dim *size) {
    if (sni_dim_differ(sni_infer_dim(c, i, 1), heads))
        return SNI_INFER_FAIL(c, "input %d has not %" PRId64 " heads", i, heads);
    *length = sni_infer_dim(c, i, 2);
    *size = sni_infer_dim(c, i, 3);
    return SN_OK;
}

static sn_status read_key_value(sni_infer *c, int64_t heads, mha_shape *s) {
    int rank = sni_infer_rank(c, KEY);
    sni_dim size = 0, v_length = 0;
    if (rank == 5) {
        if (sni_infer_given(c, VALUE))
            return SNI_INFER_FAIL(c, "a value beside keys and values that are packed");
        SN_TRY(read_packed(c, KEY, heads, 2, &s->keys, &size));
        s->v_size = size;
        v_length = s->keys;
    } else if (rank == 3 || rank == 4) {
        if (!sni_infer_shaped(c, VALUE) || sni_infer_rank(c, VALUE) != rank)
            return SNI_INFER_FAIL(c, "a key of rank %d without such a value", rank);
        for (int i = KEY; i <= VALUE; i++) {
            sni_dim *length = i == KEY ? &s->keys : &v_length;
            sni_dim *of = i == KEY ? &size : &s->v_size;
            SN_TRY(rank == 3 ? read_flat(c, i, heads, length, of)
                             : read_cached(c, i, heads, length, of));
        }
    } else {
        return SNI_INFER_FAIL(c, "the key has rank %d, not 3, 4 or 5", rank);
    }
    if (sni_dim_differ(size, s->size) || sni_dim_differ(v_length, s->keys) ||
        sni_dim_differ(sni_infer_dim(c, KEY, 0), s->batch) ||
        (rank != 5 && sni_dim_differ(sni_infer_dim(c, VALUE, 0), s->batch)))
        return SNI_INFER_FAIL(c, "query, key and value do not fit each other");
    return SN_OK;
}

static sn_status read_shape(sni_infer *c, int64_t heads, mha_shape *s) {
    int rank = sni_infer_rank(c, QUERY);
    if (rank != 3 && rank != 5) return SNI_INFER_FAIL(c, "the query has rank %d", rank);
    if (rank == 3 && !sni_infer_given(c, KEY))
        return SNI_INFER_FAIL(c, "a query of rank 3 without a key");
    if (rank == 5 && (sni_infer_given(c, KEY) || sni_infer_given(c, VALUE)))
        return SNI_INFER_FAIL(c, "a key or value beside a query of rank 5");
    s->batch = sni_infer_dim(c, QUERY, 0);
    if (rank == 3) {
        SN_TRY(read_flat(c, QUERY, heads, &s->queries, &s->size));
        return read_key_value(c, heads, s);
    }
    SN_TRY(read_packed(c, QUERY, heads, 3, &s->queries, &s->size));
    s->keys = s->queries;
    s->v_size = s->size;
    return SN_OK;
}

static sn_status check_bias(sni_infer *c, const mha_shape *s, int64_t heads) {
    if (!sni_infer_shaped(c, BIAS)) return SN_OK;
    sni_dim both = sni_dim_mul(c->symbols, s->size, 2);
    sni_dim all = sni_dim_mul(c->symbols, sni_dim_add(c->symbols, both, s->v_size), heads);
    if (sni_infer_rank(c, BIAS) != 1 || sni_dim_differ(sni_infer_dim(c, BIAS, 0), all))
        return SNI_INFER_FAIL(c, "the bias has not one element for each of query, key and value");
    return SN_OK;
}

/* The number of keys in the cache, and its capacity. */
static sn_status read_past(sni_infer *c, const mha_shape *s, int64_t heads, sni_dim *past,
                           sni_dim *room) {
    sni_dim rows, v_rows;
    const sni_dim *given = NULL;
    int32_t count = 0;
    SN_TRY(sni_infer_cache(c, PAST_KEY, s->batch, heads, s->size, &rows));
    SN_TRY(sni_infer_cache(c, PAST_VALUE, s->batch, heads, s->v_size, &v_rows));
    if (sni_dim_differ(rows, v_rows)) return SNI_INFER_FAIL(c, "caches of different lengths");
    *past = rows;
    *room = sni_dim_add(c->symbols, rows, s->keys);
    if (!sni_infer_given(c, PAST_LENGTH)) return SN_OK;
    if (!sni_infer_given(c, PAST_KEY))
        return SNI_INFER_FAIL(c, "past_sequence_length without a cache");
    SN_TRY(sni_infer_dims(c, PAST_LENGTH, &given, &count));
    *room = rows;
    *past = given && count == 1 && (given[0] >= 0 || sni_dim_is_symbol(given[0]))
                ? given[0]
                : sni_dim_fresh(c->symbols);
    return SN_OK;
}

/* Which beam each row of the cache is of, (batch, beams, rows or more). */
static sn_status check_beams(sni_infer *c, const mha_shape *s) {
    if (!sni_infer_shaped(c, BEAMS)) return SN_OK;
    if (sni_infer_rank(c, BEAMS) != 3)
        return SNI_INFER_FAIL(c, "cache_indirection has rank %d, not 3", sni_infer_rank(c, BEAMS));
    if (!sni_infer_given(c, PAST_KEY))
        return SNI_INFER_FAIL(c, "cache_indirection without a cache");
    sni_dim rows = sni_dim_mul(c->symbols, sni_infer_dim(c, BEAMS, 0), sni_infer_dim(c, BEAMS, 1));
    if (sni_dim_differ(rows, s->batch))
        return SNI_INFER_FAIL(c, "cache_indirection is of another number of sequences");
    return SN_OK;
}

static sn_status mha_infer(sni_infer *c) {
    const mha_params *p = c->params;
    mha_shape s = {0};
    sni_dim past = 0, room = 0;
    if (p->num_heads < 1) return SNI_INFER_FAIL(c, "num_heads is %" PRId64, p->num_heads);
    if (sni_infer_given(c, PAST_KEY) != sni_infer_given(c, PAST_VALUE))
        return SNI_INFER_FAIL(c, "past_key and past_value must be given together");
    for (int i = QUERY; i <= VALUE; i++)
        if (sni_infer_given(c, i) && !sni_infer_shaped(c, i)) return SN_OK;
    SN_TRY(read_shape(c, p->num_heads, &s));
    SN_TRY(check_bias(c, &s, p->num_heads));
    SN_TRY(check_beams(c, &s));
    SN_TRY(read_past(c, &s, p->num_heads, &past, &room));
    sni_dim scores[4] = {s.batch, p->num_heads, s.queries, sni_dim_add(c->symbols, past, s.keys)};
    SN_TRY(sni_infer_padding(c, PADDING, scores));
    SN_TRY(sni_infer_attention_mask(c, SCORE_BIAS, scores, false));
    sni_dim dims[4] = {s.batch, s.queries, sni_dim_mul(c->symbols, p->num_heads, s.v_size)};
    SN_TRY(sni_infer_set_shape(c, 0, 3, dims));
    SN_TRY(
        sni_infer_set_shape(c, PRESENT_KEY, 4, (sni_dim[]){s.batch, p->num_heads, room, s.size}));
    SN_TRY(sni_infer_set_shape(c, PRESENT_VALUE, 4,
                               (sni_dim[]){s.batch, p->num_heads, room, s.v_size}));
    return sni_infer_set_shape(c, SCORES, 4, scores);
}

/* ---- Running ---- */

/* The layout of query, key and value in `a->dtype`, without bias; and the number of new keys. */
static sn_status read_inputs(sni_kernel *k, sni_attention *a, int64_t *fresh) {
    const sni_tensor *q = sni_in(k, QUERY), *key = sni_in(k, KEY), *v = sni_in(k, VALUE);
    size_t width = sni_dtype_width(a->dtype);
    const void *data[3];
    for (int i = 0; i < 3; i++) SN_TRY(sni_in_as(k, sni_in(k, i), a->dtype, &data[i]));
    a->batches = q->dims[0];
    a->q_length = q->dims[1];
    const sni_tensor *packed = q->rank == 5 ? q : key->rank == 5 ? key : NULL;
    if (q->rank == 3) {
        a->head_size = q->dims[2] / a->q_heads;
        a->q = sni_heads_inner(data[QUERY], a->q_length, q->dims[2], a->head_size);
    }
    if (packed) {
        int64_t parts = packed->dims[3], size = packed->dims[4];
        const void *from = data[packed == q ? QUERY : KEY];
        sni_heads h =
            sni_heads_inner(from, packed->dims[1], a->q_heads * parts * size, parts * size);
        a->head_size = a->v_size = size;
        *fresh = packed->dims[1];
        a->v = a->k = h;
        a->k.data = sni_element(from, (parts - 2) * size, width);
        a->v.data = sni_element(from, (parts - 1) * size, width);
        if (packed == q) a->q = h;
        return SN_OK;
    }
    bool flat = key->rank == 3;
    *fresh = key->dims[flat ? 1 : 2];
    a->v_size = flat ? v->dims[2] / a->q_heads : v->dims[3];
    a->k = flat ? sni_heads_inner(data[KEY], *fresh, key->dims[2], a->head_size)
                : sni_heads_outer(data[KEY], a->q_heads, *fresh, a->head_size);
    a->v = flat ? sni_heads_inner(data[VALUE], *fresh, v->dims[2], a->v_size)
                : sni_heads_outer(data[VALUE], a->q_heads, *fresh, a->v_size);
    return SN_OK;
}

/* Adds bias (heads, size) to every row of *h, in scratch. */
static sn_status add_bias(sni_kernel *k, const sni_attention *a, int64_t length, int64_t size,
                          const void *bias, sni_heads *h) {
    size_t width = sni_dtype_width(a->dtype);
    int64_t rows, row = a->q_heads * size;
    void *out = NULL;
    if (!sni_mul_i64(a->batches, length, &rows)) return sni_fail_memory(k->err);
    SN_TRY(sni_scratch_matrix(k, rows, row, width, &out));
    sni_heads to = sni_heads_inner(out, length, row, size);
    int64_t dims[4] = {a->batches, a->q_heads, length, size};
    if (rows && row)
        sni_copy_box(k, &(sni_box){4, dims, out, (int64_t[]){to.batch, to.head, to.row, 1}, h->data,
                                   (int64_t[]){h->batch, h->head, h->row, 1}, width});
    for (int64_t i = 0; i < rows * row; i++) {
        if (a->dtype == SN_FLOAT64)
            ((double *)out)[i] += ((const double *)bias)[i % row];
        else
            ((float *)out)[i] += ((const float *)bias)[i % row];
    }
    *h = to;
    return SN_OK;
}

/* Keys and values of rank 4 have their bias already. */
static sn_status add_biases(sni_kernel *k, sni_attention *a, int64_t fresh) {
    size_t width = sni_dtype_width(a->dtype);
    int64_t part = a->q_heads * a->head_size;
    const void *bias;
    SN_TRY(sni_in_as(k, sni_in(k, BIAS), a->dtype, &bias));
    if (!bias) return SN_OK;
    SN_TRY(add_bias(k, a, a->q_length, a->head_size, bias, &a->q));
    if (sni_in(k, KEY) && sni_in(k, KEY)->rank == 4) return SN_OK;
    SN_TRY(add_bias(k, a, fresh, a->head_size, sni_element(bias, part, width), &a->k));
    return add_bias(k, a, fresh, a->v_size, sni_element(bias, 2 * part, width), &a->v);
}

/* Checks that the first `past` rows of every sequence are of beams that there are. */
static sn_status check_rows(sni_kernel *k, const sni_tensor *beams, int64_t past) {
    int64_t width = beams->dims[2];
    if (width < past)
        return SNI_KERNEL_FAIL(k, "cache_indirection tells of %" PRId64 " rows of %" PRId64, width,
                               past);
    for (int64_t i = 0; i < beams->dims[0] * beams->dims[1] * past; i++) {
        int32_t beam = ((const int32_t *)beams->data)[i / past * width + i % past];
        if (beam < 0 || beam >= beams->dims[1])
            return SNI_KERNEL_FAIL(k, "cache_indirection has beam %d of %" PRId64, (int)beam,
                                   beams->dims[1]);
    }
    return SN_OK;
}

/* Lets the first `past` rows of *h be those of the beams that they are said to be of, in scratch.
 * The cache that is handed on keeps its own. */
static sn_status follow_beams(sni_kernel *k, const sni_attention *a, int64_t past, int64_t size,
                              sni_heads *h) {
    const sni_tensor *beams = sni_in(k, BEAMS);
    if (!beams || past == 0) return SN_OK;
    size_t width = sni_dtype_width(a->dtype);
    int64_t rows = a->total, count = beams->dims[1], heads;
    void *to = NULL;
    SN_TRY(check_rows(k, beams, past));
    if (!sni_mul_i64(a->batches, a->q_heads, &heads)) return sni_fail_memory(k->err);
    SN_TRY(sni_scratch_matrix(k, heads * rows, size, width, &to));
    for (int64_t i = 0; i < heads * rows; i++) {
        int64_t b = i / rows / a->q_heads, head = i / rows % a->q_heads, row = i % rows;
        const int32_t *beam = (const int32_t *)beams->data + b * beams->dims[2];
        int64_t from = row < past ? b / count * count + beam[row] : b;
        sni_copy_bytes((char *)to + (size_t)(i * size) * width,
                       sni_element(h->data, from * h->batch + head * h->head + row * h->row, width),
                       (size_t)size * width);
    }
    *h = sni_heads_outer(to, a->q_heads, rows, size);
    return SN_OK;
}

static sn_status mha_ref(sni_kernel *k) {
    const mha_params *p = k->params;
    sni_tensor *y = sni_out(k, 0), *kept = sni_out(k, SCORES);
    sni_attention a = {.q_heads = p->num_heads,
                       .kv_heads = p->num_heads,
                       .causal = p->unidirectional != 0,
                       .lowest = true,
                       .left = -1,
                       .right = -1,
                       .keep = SNI_SCORES_MASKED,
                       .dtype = sni_compute_dtype(sni_in(k, QUERY)->dtype)};
    const sni_tensor *old = sni_in(k, PAST_KEY);
    int64_t fresh = 0, past = old ? old->dims[2] : 0, room = 0;
    void *out = NULL;
    SN_TRY(read_inputs(k, &a, &fresh));
    SN_TRY(add_biases(k, &a, fresh));
    SN_TRY(sni_attention_past(k, sni_in(k, PAST_LENGTH), fresh, &past, &room));
    a.total = past + fresh;
    a.scale = p->scale != 0 ? (double)p->scale : 1 / sqrt((double)a.head_size);
    SN_TRY(sni_same_i64(k, a.batches, past, &a.before));
    SN_TRY(sni_attention_join_tensors(k, &a, old, sni_out(k, PRESENT_KEY),
                                      &(sni_append){room, a.before, fresh, a.head_size, NULL},
                                      &a.k));
    SN_TRY(sni_attention_join_tensors(k, &a, sni_in(k, PAST_VALUE), sni_out(k, PRESENT_VALUE),
                                      &(sni_append){room, a.before, fresh, a.v_size, NULL}, &a.v));
    SN_TRY(follow_beams(k, &a, past, a.head_size, &a.k));
    SN_TRY(follow_beams(k, &a, past, a.v_size, &a.v));
    SN_TRY(sni_attention_mask(k, &a, sni_in(k, SCORE_BIAS)));
    SN_TRY(sni_attention_padding(k, &a, sni_in(k, PADDING), p->mask_filter_value));
    SN_TRY(sni_out_as(k, kept, a.dtype, &a.kept));
    SN_TRY(sni_out_as(k, y, a.dtype, &out));
    a.y = sni_heads_inner(out, a.q_length, a.q_heads * a.v_size, a.v_size);
    SN_TRY(sni_attend(k, &a));
    sni_out_done(k, y, a.dtype, out);
    sni_out_done(k, kept, a.dtype, a.kept);
    return SN_OK;
}

#define FIELD(f) offsetof(mha_params, f)

const sni_op sni_op_ms_MultiHeadAttention = {
    .name = "MultiHeadAttention",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"query", "T"}, {"key", "T", SNI_OPTIONAL}, {"value", "T", SNI_OPTIONAL},
                          {"bias", "T", SNI_OPTIONAL}, {"key_padding_mask", "int32", SNI_OPTIONAL},
                          {"attention_bias", "T", SNI_OPTIONAL}, {"past_key", "T", SNI_OPTIONAL},
                          {"past_value", "T", SNI_OPTIONAL},
                          {"past_sequence_length", "int32", SNI_OPTIONAL},
                          {"cache_indirection", "int32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"present_key", "T", SNI_OPTIONAL},
                           {"present_value", "T", SNI_OPTIONAL}, {"qk", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"num_heads", SNI_ATTR_INT, FIELD(num_heads), .required = true},
        {"unidirectional", SNI_ATTR_INT, FIELD(unidirectional)},
        {"mask_filter_value", SNI_ATTR_FLOAT, FIELD(mask_filter_value), .number = -10000},
        {"scale", SNI_ATTR_FLOAT, FIELD(scale)}),
    .params_size = sizeof(mha_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = mha_upgrade,
    .infer = mha_infer,
    .ref = mha_ref,
};

/* ---- One token ---- */

typedef struct decoder_params {
    mha_params shared;
    int64_t shares_buffer, output_qk;
} decoder_params;

/* Its inputs in the order of MultiHeadAttention's. Without a cache the keys are those of an
 * encoder. */
static sn_status decoder_upgrade(sni_upgrade *u) {
    static const int32_t from[INPUTS] = {0, 1, 2, 10, 3, 4, 5, 6, 7, 9};
    sni_node *n = u->node;
    int32_t in[INPUTS];
    for (int32_t i = 0; i < INPUTS; i++) in[i] = from[i] < n->n_in ? n->in[from[i]] : SNI_NO_ID;
    bool cached = in[PAST_KEY] != SNI_NO_ID;
    if (!cached || !sni_upgrade_int(u, "past_present_share_buffer", 0)) in[PAST_LENGTH] = SNI_NO_ID;
    if (!cached) in[BEAMS] = SNI_NO_ID;
    sni_node_remove_attr(n, "past_present_share_buffer");
    sni_node_remove_attr(n, "output_qk");
    SN_TRY(sni_node_resize_inputs(u->graph, n, INPUTS, u->err));
    for (int32_t i = 0; i < INPUTS; i++) SN_TRY(sni_node_set_input(u->graph, n, i, in[i], u->err));
    n->type = SNI_STR("MultiHeadAttention");
    return SN_OK;
}

#define DECODER_FIELD(f) offsetof(decoder_params, f)

const sni_op sni_op_ms_DecoderMaskedMultiHeadAttention = {
    .name = "DecoderMaskedMultiHeadAttention",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(
        {"query", "T"}, {"key", "T", SNI_OPTIONAL}, {"value", "T", SNI_OPTIONAL},
        {"mask_index", "int32", SNI_OPTIONAL}, {"attention_bias", "T", SNI_OPTIONAL},
        {"past_key", "T", SNI_OPTIONAL}, {"past_value", "T", SNI_OPTIONAL},
        {"past_sequence_length", "int32", SNI_OPTIONAL}, {"beam_width", "int32", SNI_OPTIONAL},
        {"cache_indirection", "int32", SNI_OPTIONAL}, {"bias", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"present_key", "T", SNI_OPTIONAL},
                           {"present_value", "T", SNI_OPTIONAL}, {"qk", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params =
        SNI_PARAMS({"num_heads", SNI_ATTR_INT, DECODER_FIELD(shared.num_heads), .required = true},
                   {"mask_filter_value", SNI_ATTR_FLOAT, DECODER_FIELD(shared.mask_filter_value),
                    .number = -10000},
                   {"scale", SNI_ATTR_FLOAT, DECODER_FIELD(shared.scale)},
                   {"past_present_share_buffer", SNI_ATTR_INT, DECODER_FIELD(shares_buffer)},
                   {"output_qk", SNI_ATTR_INT, DECODER_FIELD(output_qk)}),
    .params_size = sizeof(decoder_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = decoder_upgrade,
};
