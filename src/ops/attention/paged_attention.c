/* PagedAttention of com.microsoft: attention of sequences of different lengths whose tokens stand
 * one after the other, over caches of keys and values in pages that a table lists for each
 * sequence. */
#include "base/checked.h"
#include "base/lengths.h"
#include "ops/attention/kv_cache.h"
#include "ops/attention/rotary.h"
#include "ops/core/compute.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>
#include <math.h>

typedef struct paged_params {
    int64_t num_heads, kv_num_heads, do_rotary, interleaved, window, causal;
    int64_t rotary_offset, v_head_size;
    int32_t k_quant, v_quant; /* sni_kv_quant */
    float scale, softcap;
    sni_str layout, k_type, v_type;
} paged_params;

enum {
    QUERY,
    KEY,
    VALUE,
    KEY_CACHE,
    VALUE_CACHE,
    ENDS, /* cumulative_sequence_length */
    PAST,
    TABLE,
    COSINES,
    SINES,
    SLOTS,
    SINK,
    Q_NORM,
    K_NORM,
    KEY_SCALE,
    VALUE_SCALE,
    METADATA
};

static sn_status paged_prepare(void *params, sni_arena *arena, sn_error *err) {
    const paged_params *p = params;
    (void)arena;
    if (p->num_heads < 1 || p->kv_num_heads < 1 || p->num_heads > INT32_MAX ||
        p->num_heads % p->kv_num_heads)
        return sni_fail(err, SN_INVALID_MODEL, "%" PRId64 " heads over %" PRId64, p->num_heads,
                        p->kv_num_heads);
    if (!sni_str_is(p->layout, "SEPARATE") || p->rotary_offset || p->v_head_size)
        return sni_fail(err, SN_UNSUPPORTED, "latent caches are not supported");
    return SN_OK;
}

/* ---- Shapes ---- */

/* Elements of a row in bytes of the cache: pairs of 4 bits, or as many as a head has. */
static bool is_paired(const sni_infer *c) {
    return c->in[KEY_CACHE] && c->in[KEY_CACHE]->dtype == SN_UINT8;
}

static sn_status check_cache(sni_infer *c, int i, const paged_params *p, sni_str type,
                             int32_t quant, sni_dim size) {
    sn_dtype dtype = c->in[i] ? c->in[i]->dtype : SN_UNDEFINED;
    const bool whole = dtype == SN_INT8 || dtype == SN_UINT8;
    if (!sni_infer_given(c, i)) return SNI_INFER_FAIL(c, "input %d, a cache, is missing", i);
    if (dtype && whole != (quant != SNI_KV_PLAIN))
        return SNI_INFER_FAIL(c, "the cache at input %d is %s %s scales", i, sn_dtype_name(dtype),
                              quant ? "with" : "without");
    if (dtype == SN_UINT8 && !sni_str_is(type, "int4"))
        return sni_fail(c->err, SN_UNSUPPORTED, "bytes of a cache that are not 'int4' but '%.*s'",
                        SNI_FMT(type));
    if (!sni_infer_shaped(c, i)) return SN_OK;
    sni_dim row = is_paired(c) ? sni_dim_ceildiv(c->symbols, size, 2) : size;
    if (sni_infer_rank(c, i) != 4 || sni_dim_differ(sni_infer_dim(c, i, 2), p->kv_num_heads) ||
        sni_dim_differ(sni_infer_dim(c, i, 3), row))
        return SNI_INFER_FAIL(c, "the cache at input %d does not fit the heads", i);
    return SN_OK;
}

static sn_status paged_infer(sni_infer *c) {
    const paged_params *p = c->params;
    if (sni_infer_given(c, Q_NORM) || sni_infer_given(c, K_NORM))
        return sni_fail(c->err, SN_UNSUPPORTED, "norms of queries and keys are not supported");
    if (sni_infer_given(c, KEY) != sni_infer_given(c, VALUE))
        return SNI_INFER_FAIL(c, "key and value must be given together");
    if (p->do_rotary && (!sni_infer_given(c, COSINES) || !sni_infer_given(c, SINES)))
        return SNI_INFER_FAIL(c, "rotary embedding wants cos_cache and sin_cache");
    if (!sni_infer_shaped(c, QUERY)) return SN_OK;
    if (sni_infer_rank(c, QUERY) != 2)
        return SNI_INFER_FAIL(c, "the query has rank %d, not 2", sni_infer_rank(c, QUERY));
    int64_t heads = p->num_heads + (sni_infer_given(c, KEY) ? 0 : 2 * p->kv_num_heads);
    sni_dim width = sni_infer_dim(c, QUERY, 1), size = sni_dim_floordiv(c->symbols, width, heads);
    if (sni_dim_known(width) && width % heads)
        return SNI_INFER_FAIL(c, "%" PRId64 " elements do not divide into %" PRId64 " heads", width,
                              heads);
    for (int i = KEY; i <= VALUE; i++)
        if (sni_infer_shaped(c, i) &&
            (sni_infer_rank(c, i) != 2 ||
             sni_dim_differ(sni_infer_dim(c, i, 0), sni_infer_dim(c, QUERY, 0)) ||
             sni_dim_differ(sni_infer_dim(c, i, 1),
                            sni_dim_mul(c->symbols, size, p->kv_num_heads))))
            return SNI_INFER_FAIL(c, "input %d does not fit the query", i);
    SN_TRY(check_cache(c, KEY_CACHE, p, p->k_type, p->k_quant, size));
    SN_TRY(check_cache(c, VALUE_CACHE, p, p->v_type, p->v_quant, size));
    for (int i = 0; i < 2; i++)
        if (sni_infer_shaped(c, KEY_CACHE + i))
            SN_TRY(sni_infer_set_shape(c, 1 + i, sni_infer_rank(c, KEY_CACHE + i),
                                       c->in[KEY_CACHE + i]->dims));
    return sni_infer_set_shape(
        c, 0, 2,
        (sni_dim[]){sni_infer_dim(c, QUERY, 0), sni_dim_mul(c->symbols, size, p->num_heads)});
}

/* ---- What the call is about ---- */

typedef struct paged {
    sni_attention a; /* heads and sizes; q, k and v of all tokens; batches 1 */
    int64_t tokens, sequences, blocks, block, table_row;
    const int32_t *ends, *past, *table, *slots; /* slots NULL: by the table */
    int64_t *position;                          /* of each token in its sequence */
    int64_t *sequence;                          /* of each token */
    sni_heads keys, values;                     /* the caches */
    void *out;
} paged;

static const int32_t *ints(sni_kernel *k, int i, int64_t count, sn_status *status) {
    const sni_tensor *t = sni_in(k, i);
    if (*status == SN_OK && (!t || t->count != count))
        *status = SNI_KERNEL_FAIL(k, "input %d has %" PRId64 " elements, not %" PRId64, i,
                                  t ? t->count : 0, count);
    return t ? t->data : NULL;
}

/* Lengths of the sequences, and the pages that they use. */
static sn_status read_sequences(sni_kernel *k, paged *c) {
    const sni_tensor *past = sni_in(k, PAST), *table = sni_in(k, TABLE),
                     *cache = sni_in(k, KEY_CACHE);
    sn_status status = SN_OK;
    c->sequences = past->count;
    c->blocks = cache->dims[0];
    c->block = cache->dims[1];
    if (table->rank != 2 || table->dims[0] != c->sequences || c->block < 1)
        return SNI_KERNEL_FAIL(k, "block_table has not one row for each of %" PRId64 " sequences",
                               c->sequences);
    c->table_row = table->dims[1];
    c->past = past->data;
    c->table = table->data;
    c->ends = ints(k, ENDS, c->sequences + 1, &status);
    c->slots = sni_in(k, SLOTS) ? ints(k, SLOTS, c->tokens, &status) : NULL;
    SN_TRY(status);
    if (c->ends[0] != 0 || c->ends[c->sequences] != c->tokens)
        return SNI_KERNEL_FAIL(k, "cumulative_sequence_length is not from 0 to %" PRId64,
                               c->tokens);
    for (int64_t s = 0; s < c->sequences; s++) {
        int64_t fresh = (int64_t)c->ends[s + 1] - c->ends[s], all = c->past[s] + fresh;
        if (fresh < 0 || c->past[s] < 0 || sni_ceil_div(all, c->block) > c->table_row)
            return SNI_KERNEL_FAIL(k,
                                   "sequence %" PRId64 " has %d tokens and %" PRId64
                                   " new ones, which do not fit %" PRId64 " pages of %" PRId64,
                                   s, c->past[s], fresh, c->table_row, c->block);
        for (int64_t i = 0; fresh && i < sni_ceil_div(all, c->block); i++) {
            int32_t page = c->table[s * c->table_row + i];
            if (page < 0 || page >= c->blocks)
                return SNI_KERNEL_FAIL(k, "page %d of %" PRId64, page, c->blocks);
        }
    }
    for (int64_t t = 0; c->slots && t < c->tokens; t++)
        if (c->slots[t] < -1 || c->slots[t] >= c->blocks * c->block)
            return SNI_KERNEL_FAIL(k, "slot %d of %" PRId64, c->slots[t], c->blocks * c->block);
    return SN_OK;
}

static sn_status place_tokens(sni_kernel *k, paged *c) {
    SN_TRY(sni_scratch_i64(k, c->tokens, &c->position));
    SN_TRY(sni_scratch_i64(k, c->tokens, &c->sequence));
    for (int64_t s = 0; s < c->sequences; s++)
        for (int64_t t = c->ends[s]; t < c->ends[s + 1]; t++) {
            c->position[t] = (int64_t)c->past[s] + t - c->ends[s];
            c->sequence[t] = s;
        }
    return SN_OK;
}

/* Queries, keys and values as floats, each token a row. */
static sn_status read_inputs(sni_kernel *k, paged *c) {
    const sni_tensor *q = sni_in(k, QUERY), *key = sni_in(k, KEY);
    sni_attention *a = &c->a;
    const void *data[3];
    for (int i = 0; i < 3; i++) SN_TRY(sni_in_as(k, sni_in(k, i), SN_FLOAT32, &data[i]));
    const int64_t width = q->dims[1];
    c->tokens = q->dims[0];
    a->head_size = width / (a->q_heads + (key ? 0 : 2 * a->kv_heads));
    a->v_size = a->head_size;
    a->q = a->k = a->v = sni_heads_inner(data[QUERY], c->tokens, width, a->head_size);
    if (key) {
        a->k = sni_heads_inner(data[KEY], c->tokens, key->dims[1], a->head_size);
        a->v = a->k;
        a->v.data = data[VALUE];
    } else if (q->count) {
        a->k.data = sni_element(data[QUERY], a->q_heads * a->head_size, sizeof(float));
        a->v.data =
            sni_element(data[QUERY], (a->q_heads + a->kv_heads) * a->head_size, sizeof(float));
    }
    return SN_OK;
}

static sn_status rotate(sni_kernel *k, const paged *c, sni_rotary *r, int64_t heads, sni_heads *h) {
    void *out = NULL;
    int64_t rows;
    if (!sni_mul_i64(c->tokens, heads, &rows)) return sni_fail_memory(k->err);
    SN_TRY(sni_scratch_matrix(k, rows, c->a.head_size, sizeof(float), &out));
    r->heads = heads;
    r->x = *h;
    r->y = sni_heads_inner(out, c->tokens, heads * c->a.head_size, c->a.head_size);
    sni_rotate(k->threads, SN_FLOAT32, r);
    *h = r->y;
    return SN_OK;
}

static sn_status apply_rotary(sni_kernel *k, paged *c) {
    const paged_params *p = k->params;
    if (!p->do_rotary) return SN_OK;
    const sni_tensor *cosines = sni_in(k, COSINES), *sines = sni_in(k, SINES);
    if (cosines->rank != 2 || sines->rank != 2 || cosines->dims[0] != sines->dims[0] ||
        cosines->dims[1] != sines->dims[1] || cosines->dims[1] > c->a.head_size / 2)
        return SNI_KERNEL_FAIL(k, "cos_cache and sin_cache do not fit heads of %" PRId64,
                               c->a.head_size);
    sni_rotary r = {.batches = 1,
                    .length = c->tokens,
                    .size = c->a.head_size,
                    .rotated = 2 * cosines->dims[1],
                    .interleaved = p->interleaved != 0,
                    .ids = c->position};
    SN_TRY(sni_rotary_check(k, c->position, c->tokens, cosines->dims[0]));
    SN_TRY(sni_in_as(k, cosines, SN_FLOAT32, &r.cosines));
    SN_TRY(sni_in_as(k, sines, SN_FLOAT32, &r.sines));
    SN_TRY(rotate(k, c, &r, c->a.q_heads, &c->a.q));
    return rotate(k, c, &r, c->a.kv_heads, &c->a.k);
}

/* ---- Caches ---- */

/* The new rows of keys (at 0) or values go to their places in the output cache, which is the input
 * or a copy of it. */
static sn_status write_cache(sni_kernel *k, const paged *c, int at, sni_kv_quant quant,
                             const sni_heads *rows, sni_heads *cache) {
    const sni_tensor *old = sni_in(k, KEY_CACHE + at);
    sni_tensor *out = sni_out(k, 1 + at);
    const int64_t size = c->a.head_size, heads = c->a.kv_heads;
    const size_t width = sni_dtype_width(old->dtype);
    void *data = out ? out->data : NULL;
    if (old->dims[0] != c->blocks || old->dims[1] != c->block)
        return SNI_KERNEL_FAIL(k, "caches of different shapes");
    if (!out) SN_TRY(sni_scratch_matrix(k, old->count, 1, width, &data));
    sni_copy_shared(k->threads, data, old->data, sni_tensor_bytes(old));
    *cache = sni_heads_inner(data, 0, heads * old->dims[3], old->dims[3]);
    cache->stored = old->dtype == SN_FLOAT32 ? SN_UNDEFINED : old->dtype;
    SN_TRY(sni_kv_scales(k, &c->a, KEY_SCALE + at, quant, &cache->scale));
    for (int64_t t = 0; t < c->tokens; t++) {
        int64_t p = c->position[t], s = c->sequence[t];
        int64_t slot = c->slots
                           ? c->slots[t]
                           : c->table[s * c->table_row + p / c->block] * c->block + p % c->block;
        for (int64_t h = 0; slot >= 0 && h < heads; h++) {
            const float *from = (const float *)rows->data + sni_heads_at(rows, 0, h, t);
            void *to = sni_element(data, sni_heads_at(cache, 0, h, slot), width);
            if (cache->stored)
                sni_kv_store(cache->stored, cache->scale ? cache->scale + h * size : NULL, from,
                             size, to);
            else
                sni_copy_bytes(to, from, (size_t)size * sizeof *from);
        }
    }
    cache->page = c->block;
    return SN_OK;
}

/* ---- Attention ---- */

/* Sequences are attended to together with those of similar numbers of new tokens: 1, up to 4, 16,
 * and so on. Their queries are brought side by side, the shorter ones filled up with the last. */
enum { GROWTH = 4 };

typedef struct batch {
    int64_t least, most; /* new tokens of its sequences */
    int64_t count, longest, total;
    int64_t *of; /* sequences */
} batch;

static void choose_sequences(const paged *c, batch *b) {
    b->count = b->longest = b->total = 0;
    for (int64_t s = 0; s < c->sequences; s++) {
        int64_t fresh = c->ends[s + 1] - c->ends[s];
        if (fresh < b->least || fresh > b->most) continue;
        b->of[b->count++] = s;
        b->longest = sni_max(b->longest, fresh);
        b->total = sni_max(b->total, c->past[s] + fresh);
    }
}

/* Tokens of the batch's queries, row by row, from or to their places among all. */
static void move_rows(const paged *c, const batch *b, float *rows, bool back) {
    const int64_t width = c->a.q_heads * c->a.head_size;
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t s = b->of[i], fresh = c->ends[s + 1] - c->ends[s];
        for (int64_t t = 0; t < (back ? fresh : b->longest); t++) {
            const int64_t token = c->ends[s] + sni_min(t, fresh - 1);
            float *row = rows + (i * b->longest + t) * width;
            if (back)
                sni_copy_bytes((float *)c->out + token * width, row, (size_t)width * sizeof *row);
            for (int64_t h = 0; !back && h < c->a.q_heads; h++)
                sni_copy_bytes(row + h * c->a.head_size,
                               (const float *)c->a.q.data + sni_heads_at(&c->a.q, 0, h, token),
                               (size_t)c->a.head_size * sizeof *row);
        }
    }
}

static sn_status attend_batch(sni_kernel *k, const paged *c, const batch *b) {
    sni_attention a = c->a;
    const int64_t pages = sni_ceil_div(b->total, c->block), width = a.q_heads * a.head_size;
    int64_t *before = NULL, *lengths = NULL, rows, listed;
    void *q = NULL, *y = NULL, *table = NULL;
    if (!sni_mul_i64(b->count, b->longest, &rows) || !sni_mul_i64(b->count, pages, &listed))
        return sni_fail_memory(k->err);
    SN_TRY(sni_scratch_i64(k, b->count, &before));
    SN_TRY(sni_scratch_i64(k, b->count, &lengths));
    SN_TRY(sni_scratch_matrix(k, rows, width, sizeof(float), &q));
    SN_TRY(sni_scratch_matrix(k, rows, width, sizeof(float), &y));
    SN_TRY(sni_scratch_matrix(k, listed, 1, sizeof(int32_t), &table));
    for (int64_t i = 0; i < b->count; i++) {
        const int64_t s = b->of[i];
        before[i] = c->past[s];
        lengths[i] = c->past[s] + c->ends[s + 1] - c->ends[s];
        for (int64_t p = 0; p < pages; p++) /* behind the end any page will do: it is not seen */
            ((int32_t *)table)[i * pages + p] =
                c->table[s * c->table_row + sni_min(p, (lengths[i] - 1) / c->block)];
    }
    move_rows(c, b, q, false);
    a.batches = b->count;
    a.q_length = b->longest;
    a.total = b->total;
    a.before = before;
    a.lengths = lengths;
    a.q = sni_heads_inner(q, b->longest, width, a.head_size);
    a.y = sni_heads_inner(y, b->longest, width, a.head_size);
    a.k = c->keys;
    a.v = c->values;
    a.k.pages = a.v.pages = table;
    a.k.batch_pages = a.v.batch_pages = pages;
    SN_TRY(sni_attend(k, &a));
    move_rows(c, b, y, true);
    return SN_OK;
}

static sn_status paged_ref(sni_kernel *k) {
    const paged_params *p = k->params;
    sni_tensor *y = sni_out(k, 0);
    paged c = {.a = {.q_heads = p->num_heads,
                     .kv_heads = p->kv_num_heads,
                     .batches = 1,
                     .softcap = (double)p->softcap,
                     .causal = p->causal != 0,
                     .left = p->window > 0 ? p->window - 1 : -1,
                     .right = -1,
                     .dtype = SN_FLOAT32}};
    batch b = {.most = 1, .least = 1};
    SN_TRY(read_inputs(k, &c));
    SN_TRY(read_sequences(k, &c));
    SN_TRY(place_tokens(k, &c));
    SN_TRY(apply_rotary(k, &c));
    SN_TRY(write_cache(k, &c, 0, (sni_kv_quant)p->k_quant, &c.a.k, &c.keys));
    SN_TRY(write_cache(k, &c, 1, (sni_kv_quant)p->v_quant, &c.a.v, &c.values));
    c.a.scale = p->scale != 0 ? (double)p->scale : 1 / sqrt((double)c.a.head_size);
    if (sni_in(k, SINK) && sni_in(k, SINK)->count != p->num_heads)
        return SNI_KERNEL_FAIL(k, "head_sink has not one element for each head");
    SN_TRY(sni_in_as(k, sni_in(k, SINK), SN_FLOAT32, &c.a.sink));
    SN_TRY(sni_out_as(k, y, SN_FLOAT32, &c.out));
    SN_TRY(sni_scratch_i64(k, c.sequences, &b.of));
    for (; b.least <= c.tokens; b.least = b.most + 1, b.most *= GROWTH) {
        choose_sequences(&c, &b);
        if (b.count) SN_TRY(attend_batch(k, &c, &b));
    }
    sni_out_done(k, y, SN_FLOAT32, c.out);
    return SN_OK;
}

#define FIELD(f) offsetof(paged_params, f)
#define FLOATS (SNI_T(SN_FLOAT32) | SNI_T_HALVES)

const sni_op sni_op_ms_PagedAttention = {
    .name = "PagedAttention",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS(
        {"query", "T"}, {"key", "T", SNI_OPTIONAL}, {"value", "T", SNI_OPTIONAL},
        {"key_cache", "C"}, {"value_cache", "C", SNI_OPTIONAL},
        {"cumulative_sequence_length", "int32"}, {"past_seqlens", "int32"},
        {"block_table", "int32"}, {"cos_cache", "T", SNI_OPTIONAL},
        {"sin_cache", "T", SNI_OPTIONAL}, {"slot_mapping", "int32", SNI_OPTIONAL},
        {"head_sink", "T", SNI_OPTIONAL}, {"q_norm_weight", "T", SNI_OPTIONAL},
        {"k_norm_weight", "T", SNI_OPTIONAL}, {"k_scale", "float32", SNI_OPTIONAL},
        {"v_scale", "float32", SNI_OPTIONAL}, {"attention_metadata", "int32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"key_cache_out", "C", SNI_OPTIONAL},
                           {"value_cache_out", "C", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", FLOATS}, {"C", FLOATS | SNI_T(SN_INT8) | SNI_T(SN_UINT8)}),
    .params = SNI_PARAMS({"num_heads", SNI_ATTR_INT, FIELD(num_heads), .required = true},
                         {"kv_num_heads", SNI_ATTR_INT, FIELD(kv_num_heads), .required = true},
                         {"do_rotary", SNI_ATTR_INT, FIELD(do_rotary)},
                         {"rotary_interleaved", SNI_ATTR_INT, FIELD(interleaved)},
                         {"rotary_offset", SNI_ATTR_INT, FIELD(rotary_offset)},
                         {"local_window_size", SNI_ATTR_INT, FIELD(window), .number = -1},
                         {"is_causal", SNI_ATTR_INT, FIELD(causal), .number = 1},
                         {"scale", SNI_ATTR_FLOAT, FIELD(scale)},
                         {"softcap", SNI_ATTR_FLOAT, FIELD(softcap)},
                         {"v_head_size", SNI_ATTR_INT, FIELD(v_head_size)},
                         {"kv_cache_layout", SNI_ATTR_STRING, FIELD(layout), .text = "SEPARATE"},
                         {"k_cache_dtype", SNI_ATTR_STRING, FIELD(k_type), .text = ""},
                         {"v_cache_dtype", SNI_ATTR_STRING, FIELD(v_type), .text = ""},
                         {"k_quant_type", SNI_ATTR_STRING, FIELD(k_quant), SNI_KV_QUANT_TYPES},
                         {"v_quant_type", SNI_ATTR_STRING, FIELD(v_quant), SNI_KV_QUANT_TYPES}),
    .params_size = sizeof(paged_params),
    .prepare = paged_prepare,
    .infer = paged_infer,
    .ref = paged_ref,
};
