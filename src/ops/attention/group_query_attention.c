/* GroupQueryAttention of com.microsoft: causal attention of many query heads over few heads of keys
 * and values, which join a cache whose batches are filled to different lengths; optionally with
 * rotary embedding, a window, capped scores and a sink in the softmax. The cache may hold integers
 * of 8 or 4 bits. */
#include "base/checked.h"
#include "ops/attention/kv_cache.h"
#include "ops/core/compute.h"
#include "ops/attention/rotary.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>
#include <math.h>

typedef struct gqa_params {
    int64_t num_heads, kv_num_heads, do_rotary, interleaved, window, smooth, keep;
    int64_t bit_width;
    int32_t k_quant, v_quant; /* sni_kv_quant */
    float scale, softcap;
} gqa_params;

enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LENGTHS,
    TOTAL,
    COSINES,
    SINES,
    POSITIONS,
    SCORE_BIAS,
    SINK,
    KEY_SCALE,
    VALUE_SCALE
};
enum { PRESENT_KEY = 1, PRESENT_VALUE, SCORES };
enum { KEEP_NONE, KEEP_BEFORE_SOFTMAX, KEEP_AFTER_SOFTMAX };

static sn_status gqa_prepare(void *params, sni_arena *arena, sn_error *err) {
    const gqa_params *p = params;
    (void)arena;
    if (p->num_heads < 1 || p->kv_num_heads < 1 || p->num_heads > INT32_MAX ||
        p->num_heads % p->kv_num_heads)
        return sni_fail(err, SN_INVALID_MODEL, "%" PRId64 " heads over %" PRId64, p->num_heads,
                        p->kv_num_heads);
    if ((p->k_quant == SNI_KV_PLAIN) != (p->v_quant == SNI_KV_PLAIN))
        return sni_fail(err, SN_UNSUPPORTED, "one of keys and values is quantised");
    if (p->k_quant && p->bit_width != 4 && p->bit_width != 8)
        return sni_fail(err, SN_INVALID_MODEL, "kv_cache_bit_width is %" PRId64 ", not 4 or 8",
                        p->bit_width);
    if (p->keep < KEEP_NONE || p->keep > KEEP_AFTER_SOFTMAX)
        return sni_fail(err, SN_INVALID_MODEL, "qk_output is %" PRId64, p->keep);
    return SN_OK;
}

/* ---- Shapes ---- */

/* Size of a head; queries, keys and values may be packed in the query. */
static sn_status head_size(sni_infer *c, sni_dim *size) {
    const gqa_params *p = c->params;
    if (sni_infer_given(c, KEY) != sni_infer_given(c, VALUE))
        return SNI_INFER_FAIL(c, "key and value must be given together");
    bool packed = !sni_infer_given(c, KEY);
    int64_t heads = p->num_heads + (packed ? 2 * p->kv_num_heads : 0);
    sni_dim width = sni_infer_dim(c, QUERY, 2);
    if (sni_dim_known(width) && width % heads)
        return SNI_INFER_FAIL(c, "%" PRId64 " elements do not divide into %" PRId64 " heads", width,
                              heads);
    *size = sni_dim_floordiv(c->symbols, width, heads);
    for (int i = KEY; i <= VALUE && !packed; i++) {
        if (!sni_infer_shaped(c, i)) continue;
        if (sni_infer_rank(c, i) != 3 ||
            sni_dim_differ(sni_infer_dim(c, i, 0), sni_infer_dim(c, QUERY, 0)) ||
            sni_dim_differ(sni_infer_dim(c, i, 1), sni_infer_dim(c, QUERY, 1)) ||
            sni_dim_differ(sni_infer_dim(c, i, 2), sni_dim_mul(c->symbols, *size, p->kv_num_heads)))
            return SNI_INFER_FAIL(c, "input %d does not fit the query", i);
    }
    return SN_OK;
}

static sn_status check_rotary(sni_infer *c, sni_dim size) {
    const gqa_params *p = c->params;
    if (sni_infer_given(c, COSINES) != sni_infer_given(c, SINES) ||
        (p->do_rotary && !sni_infer_given(c, COSINES)))
        return SNI_INFER_FAIL(c, "rotary embedding wants cos_cache and sin_cache");
    for (int i = COSINES; i <= SINES; i++) {
        if (!sni_infer_shaped(c, i)) continue;
        if (sni_infer_rank(c, i) != 2)
            return SNI_INFER_FAIL(c, "the cache at input %d has rank %d", i, sni_infer_rank(c, i));
        sni_dim half = sni_infer_dim(c, i, 1);
        if (sni_dim_known(half) && sni_dim_known(size) && half > size / 2)
            return SNI_INFER_FAIL(c, "%" PRId64 " angles for heads of %" PRId64 " elements", half,
                                  size);
    }
    for (int i = 0; i < 2; i++)
        if (sni_infer_shaped(c, COSINES) && sni_infer_shaped(c, SINES) &&
            sni_dim_differ(sni_infer_dim(c, COSINES, i), sni_infer_dim(c, SINES, i)))
            return SNI_INFER_FAIL(c, "cos_cache and sin_cache of different shapes");
    return SN_OK;
}

/* Inputs with one element for each batch, head, or position. */
static sn_status check_lists(sni_infer *c, sni_dim batch, sni_dim length) {
    const gqa_params *p = c->params;
    if (sni_infer_shaped(c, LENGTHS)) {
        sni_dim n = sni_dims_product(c, c->in[LENGTHS]->dims, 0, c->in[LENGTHS]->rank);
        if (sni_dim_differ(n, batch))
            return SNI_INFER_FAIL(c, "seqlens_k has %" PRId64 " elements for %" PRId64 " batches",
                                  n, batch);
    }
    if (sni_infer_shaped(c, SINK) &&
        (sni_infer_rank(c, SINK) != 1 || sni_dim_differ(sni_infer_dim(c, SINK, 0), p->num_heads)))
        return SNI_INFER_FAIL(c, "head_sink has not one element for each head");
    if (sni_infer_shaped(c, POSITIONS) && (sni_infer_rank(c, POSITIONS) != 2 ||
                                           sni_dim_differ(sni_infer_dim(c, POSITIONS, 0), batch) ||
                                           sni_dim_differ(sni_infer_dim(c, POSITIONS, 1), length)))
        return SNI_INFER_FAIL(c, "position_ids do not fit batch and length of the query");
    return SN_OK;
}

/* Bias (batch or 1, heads or 1, queries, keys); it may have more keys than the call. */
static sn_status check_bias(sni_infer *c, const sni_dim scores[4]) {
    if (!sni_infer_shaped(c, SCORE_BIAS)) return SN_OK;
    if (sni_infer_rank(c, SCORE_BIAS) != 4)
        return SNI_INFER_FAIL(c, "attention_bias has rank %d", sni_infer_rank(c, SCORE_BIAS));
    sni_dim wide = sni_infer_dim(c, SCORE_BIAS, 3);
    sni_dim room[4] = {scores[0], scores[1], scores[2], wide};
    if (sni_dim_known(wide) && sni_dim_known(scores[3]) && wide < scores[3])
        return SNI_INFER_FAIL(c, "a bias for %" PRId64 " keys of %" PRId64, wide, scores[3]);
    return sni_infer_attention_mask(c, SCORE_BIAS, room, false);
}

/* What the cache stores: SN_UNDEFINED if that is what queries are. */
static sn_dtype stored_type(const gqa_params *p) {
    return !p->k_quant ? SN_UNDEFINED : p->bit_width == 8 ? SN_INT8 : SN_UINT8;
}

/* The type of the cache, and its scales. */
static sn_status infer_quantized(sni_infer *c) {
    const gqa_params *p = c->params;
    sn_dtype type = c->in[QUERY]->dtype, cache = p->k_quant ? stored_type(p) : type;
    if (!type) return SN_OK;
    if (p->k_quant && type == SN_FLOAT64)
        return sni_fail(c->err, SN_UNSUPPORTED, "a quantised cache for float64 is not supported");
    for (int i = PAST_KEY; i <= PAST_VALUE; i++)
        if (sni_infer_given(c, i) && c->in[i]->dtype && c->in[i]->dtype != cache)
            return SNI_INFER_FAIL(c, "the cache at input %d is %s, not %s", i,
                                  sn_dtype_name(c->in[i]->dtype), sn_dtype_name(cache));
    for (int i = KEY_SCALE; i <= VALUE_SCALE && p->k_quant; i++)
        if (!sni_infer_given(c, i)) return SNI_INFER_FAIL(c, "input %d, scales, is missing", i);
    SN_TRY(sni_infer_set_type(c, PRESENT_KEY, cache));
    return sni_infer_set_type(c, PRESENT_VALUE, cache);
}

static sn_status gqa_infer(sni_infer *c) {
    const gqa_params *p = c->params;
    sni_dim size = 0, past, v_past, total, row;
    sni_list list;
    if (sni_infer_given(c, PAST_KEY) != sni_infer_given(c, PAST_VALUE))
        return SNI_INFER_FAIL(c, "past_key and past_value must be given together");
    SN_TRY(infer_quantized(c));
    if (!sni_infer_shaped(c, QUERY)) return SN_OK;
    if (sni_infer_rank(c, QUERY) != 3)
        return SNI_INFER_FAIL(c, "the query has rank %d, not 3", sni_infer_rank(c, QUERY));
    sni_dim batch = sni_infer_dim(c, QUERY, 0), length = sni_infer_dim(c, QUERY, 1);
    SN_TRY(head_size(c, &size));
    SN_TRY(check_rotary(c, size));
    SN_TRY(check_lists(c, batch, length));
    row = stored_type(p) == SN_UINT8 ? sni_dim_ceildiv(c->symbols, size, 2) : size;
    SN_TRY(sni_infer_cache(c, PAST_KEY, batch, p->kv_num_heads, row, &past));
    SN_TRY(sni_infer_cache(c, PAST_VALUE, batch, p->kv_num_heads, row, &v_past));
    if (sni_dim_differ(past, v_past)) return SNI_INFER_FAIL(c, "caches of different lengths");
    SN_TRY(sni_infer_list(c, TOTAL, &list));
    if (list.known && list.count != 1)
        return SNI_INFER_FAIL(c, "total_sequence_length has %" PRId64 " elements", list.count);
    int64_t given;
    if (sni_list_has_elements(&list) && sni_list_int(&list, 0, &given) && given < 0)
        return SNI_INFER_FAIL(c, "total_sequence_length is %" PRId64, given);
    total = sni_list_has_elements(&list) ? sni_list_dim(c, &list, 0) : sni_dim_fresh(c->symbols);
    sni_dim scores[4] = {batch, p->num_heads, length, total};
    SN_TRY(check_bias(c, scores));
    sni_dim present[4] = {batch, p->kv_num_heads, sni_dim_max(c->symbols, past, total), row};
    SN_TRY(sni_infer_set_shape(c, PRESENT_KEY, 4, present));
    SN_TRY(sni_infer_set_shape(c, PRESENT_VALUE, 4, present));
    SN_TRY(sni_infer_set_shape(c, SCORES, 4, scores));
    sni_dim width = sni_dim_mul(c->symbols, size, p->num_heads);
    return sni_infer_set_shape(c, 0, 3, (sni_dim[]){batch, length, width});
}

/* ---- Running ---- */

/* How far the batches are filled. */
typedef struct fill {
    bool prompt;  /* the first tokens of every batch, padded at their end */
    int64_t *old; /* keys in the cache before, by batch */
    int64_t *all; /* with the new ones */
} fill;

static sn_status read_fill(sni_kernel *k, sni_attention *a, int64_t past_rows, fill *f) {
    const sni_tensor *lengths = sni_in(k, LENGTHS);
    int64_t total = sni_index_at(sni_in(k, TOTAL), 0);
    if (total < a->q_length)
        return SNI_KERNEL_FAIL(k,
                               "total_sequence_length is %" PRId64 " with %" PRId64 " new tokens",
                               total, a->q_length);
    SN_TRY(sni_scratch_i64(k, a->batches, &f->old));
    SN_TRY(sni_scratch_i64(k, a->batches, &f->all));
    f->prompt = a->q_length == total;
    a->total = total;
    for (int64_t b = 0; b < a->batches; b++) {
        int64_t all = sni_index_at(lengths, b) + 1, old = f->prompt ? 0 : all - a->q_length;
        if (all < (f->prompt ? 0 : a->q_length) || all > total || old > past_rows)
            return SNI_KERNEL_FAIL(k,
                                   "seqlens_k[%" PRId64 "] is %" PRId64 ": %" PRId64
                                   " tokens in all, a cache of %" PRId64 " and %" PRId64
                                   " new ones",
                                   b, all - 1, total, past_rows, a->q_length);
        f->old[b] = old;
        f->all[b] = all;
    }
    a->before = f->old;
    a->lengths = f->all;
    return SN_OK;
}

/* The layout of queries and of new keys and values. */
static sn_status read_inputs(sni_kernel *k, sni_attention *a) {
    const sni_tensor *q = sni_in(k, QUERY);
    size_t width = sni_dtype_width(a->dtype);
    const void *data[3];
    int64_t length = q->dims[1];
    for (int i = 0; i < 3; i++) SN_TRY(sni_in_as(k, sni_in(k, i), a->dtype, &data[i]));
    a->batches = q->dims[0];
    a->q_length = length;
    if (sni_in(k, KEY)) {
        a->head_size = q->dims[2] / a->q_heads;
        a->q = sni_heads_inner(data[QUERY], length, q->dims[2], a->head_size);
        a->k = sni_heads_inner(data[KEY], length, sni_in(k, KEY)->dims[2], a->head_size);
        a->v = a->k;
        a->v.data = data[VALUE];
    } else {
        a->head_size = q->dims[2] / (a->q_heads + 2 * a->kv_heads);
        a->q = a->k = a->v = sni_heads_inner(data[QUERY], length, q->dims[2], a->head_size);
        a->k.data = sni_element(data[QUERY], a->q_heads * a->head_size, width);
        a->v.data = sni_element(data[QUERY], (a->q_heads + a->kv_heads) * a->head_size, width);
    }
    a->v_size = a->head_size;
    return SN_OK;
}

/* Positions of the new tokens: those given, or those after the cache. Of a prompt only the first
 * one given counts. */
static sn_status read_positions(sni_kernel *k, const sni_attention *a, const fill *f,
                                const int64_t **out) {
    const sni_tensor *given = sni_in(k, POSITIONS);
    int64_t *ids = NULL, rows = sni_in(k, COSINES)->dims[0];
    int64_t count = a->batches * a->q_length;
    SN_TRY(sni_scratch_i64(k, count, &ids));
    for (int64_t i = 0; i < count; i++) {
        int64_t first = given ? sni_index_at(given, f->prompt ? 0 : i) : f->old[i / a->q_length];
        if (!sni_add_i64(first, given && !f->prompt ? 0 : i % a->q_length, &ids[i])) ids[i] = -1;
    }
    *out = ids;
    return sni_rotary_check(k, ids, count, rows);
}

/* Turns `count` heads of *h, in scratch. */
static sn_status rotate(sni_kernel *k, const sni_attention *a, sni_rotary *r, int64_t count,
                        sni_heads *h) {
    void *out = NULL;
    int64_t rows;
    if (!sni_mul_i64(a->batches * a->q_length, count, &rows)) return sni_fail_memory(k->err);
    SN_TRY(sni_scratch_matrix(k, rows, a->head_size, sni_dtype_width(a->dtype), &out));
    r->heads = count;
    r->x = *h;
    r->y = sni_heads_inner(out, a->q_length, count * a->head_size, a->head_size);
    sni_rotate(k->threads, a->dtype, r);
    *h = r->y;
    return SN_OK;
}

static sn_status apply_rotary(sni_kernel *k, sni_attention *a, const fill *f) {
    const gqa_params *p = k->params;
    if (!p->do_rotary) return SN_OK;
    sni_rotary r = {.batches = a->batches,
                    .length = a->q_length,
                    .size = a->head_size,
                    .rotated = 2 * sni_in(k, COSINES)->dims[1],
                    .interleaved = p->interleaved != 0};
    SN_TRY(read_positions(k, a, f, &r.ids));
    SN_TRY(sni_in_as(k, sni_in(k, COSINES), a->dtype, &r.cosines));
    SN_TRY(sni_in_as(k, sni_in(k, SINES), a->dtype, &r.sines));
    SN_TRY(rotate(k, a, &r, a->q_heads, &a->q));
    return rotate(k, a, &r, a->kv_heads, &a->k);
}

/* The new keys and values join the cache. */
static sn_status join_cache(sni_kernel *k, sni_attention *a) {
    const gqa_params *p = k->params;
    const sni_tensor *past = sni_in(k, PAST_KEY);
    int64_t rows = past && past->dims[2] > a->total ? past->dims[2] : a->total;
    sni_append keys = {rows, a->before, a->q_length, a->head_size, NULL}, values = keys;
    SN_TRY(sni_kv_scales(k, a, KEY_SCALE, (sni_kv_quant)p->k_quant, &keys.scale));
    SN_TRY(sni_kv_scales(k, a, VALUE_SCALE, (sni_kv_quant)p->v_quant, &values.scale));
    SN_TRY(sni_attention_join_tensors(k, a, past, sni_out(k, PRESENT_KEY), &keys, &a->k));
    return sni_attention_join_tensors(k, a, sni_in(k, PAST_VALUE), sni_out(k, PRESENT_VALUE),
                                      &values, &a->v);
}

/* The score of the sink of each head: given, or 0 for a smooth softmax. */
static sn_status read_sink(sni_kernel *k, sni_attention *a) {
    const gqa_params *p = k->params;
    void *zeros = NULL;
    if (sni_in(k, SINK)) return sni_in_as(k, sni_in(k, SINK), a->dtype, &a->sink);
    if (!p->smooth) return SN_OK;
    SN_TRY(sni_scratch_matrix(k, a->q_heads, 1, sni_dtype_width(a->dtype), &zeros));
    memset(zeros, 0, (size_t)a->q_heads * sni_dtype_width(a->dtype));
    a->sink = zeros;
    return SN_OK;
}

/* In scores before the softmax, keys that are not seen count 0. */
static void clear_unseen(const sni_attention *a) {
    int64_t n = a->batches * a->q_heads * a->q_length * a->total;
    for (int64_t i = 0; i < n; i++) {
        if (a->dtype == SN_FLOAT64 && ((double *)a->kept)[i] == -INFINITY)
            ((double *)a->kept)[i] = 0;
        else if (a->dtype != SN_FLOAT64 && ((float *)a->kept)[i] == -INFINITY)
            ((float *)a->kept)[i] = 0;
    }
}

static sn_status gqa_ref(sni_kernel *k) {
    const gqa_params *p = k->params;
    const sni_tensor *past = sni_in(k, PAST_KEY);
    sni_tensor *y = sni_out(k, 0), *kept = p->keep ? sni_out(k, SCORES) : NULL;
    sni_attention a = {.q_heads = p->num_heads,
                       .kv_heads = p->kv_num_heads,
                       .softcap = (double)p->softcap,
                       .causal = true,
                       .left = p->window > 0 ? p->window - 1 : -1,
                       .right = -1,
                       .keep = p->keep == KEEP_AFTER_SOFTMAX ? SNI_SCORES_PROBABILITIES
                                                             : SNI_SCORES_MASKED,
                       .dtype = sni_compute_dtype(sni_in(k, QUERY)->dtype)};
    fill f = {0};
    void *out = NULL;
    SN_TRY(read_inputs(k, &a));
    SN_TRY(read_fill(k, &a, past ? past->dims[2] : 0, &f));
    a.scale = p->scale != 0 ? (double)p->scale : 1 / sqrt((double)a.head_size);
    SN_TRY(apply_rotary(k, &a, &f));
    SN_TRY(join_cache(k, &a));
    SN_TRY(sni_attention_mask(k, &a, sni_in(k, SCORE_BIAS)));
    SN_TRY(read_sink(k, &a));
    SN_TRY(sni_out_as(k, kept, a.dtype, &a.kept));
    SN_TRY(sni_out_as(k, y, a.dtype, &out));
    a.y = sni_heads_inner(out, a.q_length, a.q_heads * a.v_size, a.v_size);
    SN_TRY(sni_attend(k, &a));
    if (a.kept && a.keep == SNI_SCORES_MASKED) clear_unseen(&a);
    sni_out_done(k, y, a.dtype, out);
    sni_out_done(k, kept, a.dtype, a.kept);
    return SN_OK;
}

#define FIELD(f) offsetof(gqa_params, f)

const sni_op sni_op_ms_GroupQueryAttention = {
    .name = "GroupQueryAttention",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(
        {"query", "T"}, {"key", "T", SNI_OPTIONAL}, {"value", "T", SNI_OPTIONAL},
        {"past_key", "C", SNI_OPTIONAL}, {"past_value", "C", SNI_OPTIONAL}, {"seqlens_k", "int32"},
        {"total_sequence_length", "int32"}, {"cos_cache", "T", SNI_OPTIONAL},
        {"sin_cache", "T", SNI_OPTIONAL}, {"position_ids", "int64", SNI_OPTIONAL},
        {"attention_bias", "T", SNI_OPTIONAL}, {"head_sink", "T", SNI_OPTIONAL},
        {"k_scale", "float32", SNI_OPTIONAL}, {"v_scale", "float32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"present_key", "C", SNI_OPTIONAL},
                           {"present_value", "C", SNI_OPTIONAL}, {"output_qk", "T", SNI_OPTIONAL}),
    .types =
        SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"C", SNI_T_FLOATS | SNI_T(SN_INT8) | SNI_T(SN_UINT8)}),
    .params = SNI_PARAMS(
        {"num_heads", SNI_ATTR_INT, FIELD(num_heads), .required = true},
        {"kv_num_heads", SNI_ATTR_INT, FIELD(kv_num_heads), .required = true},
        {"do_rotary", SNI_ATTR_INT, FIELD(do_rotary)},
        {"rotary_interleaved", SNI_ATTR_INT, FIELD(interleaved)},
        {"local_window_size", SNI_ATTR_INT, FIELD(window), .number = -1},
        {"smooth_softmax", SNI_ATTR_INT, FIELD(smooth)}, {"qk_output", SNI_ATTR_INT, FIELD(keep)},
        {"scale", SNI_ATTR_FLOAT, FIELD(scale)}, {"softcap", SNI_ATTR_FLOAT, FIELD(softcap)},
        {"kv_cache_bit_width", SNI_ATTR_INT, FIELD(bit_width)},
        {"k_quant_type", SNI_ATTR_STRING, FIELD(k_quant), SNI_KV_QUANT_TYPES},
        {"v_quant_type", SNI_ATTR_STRING, FIELD(v_quant), SNI_KV_QUANT_TYPES}),
    .params_size = sizeof(gqa_params),
    .prepare = gqa_prepare,
    .infer = gqa_infer,
    .ref = gqa_ref,
};
