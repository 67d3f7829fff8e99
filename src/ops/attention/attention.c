/* Attention: softmax(scale * Q K^T + masks) V, with grouped heads and a cache of keys and values.
 * Query, key and value come as (batch, heads, length, head size) or as (batch, length, heads *
 * head size). FlexAttention: the first form only, and instead of masks and cache subgraphs that
 * change the scores before the softmax and the probabilities after it. */
#include "base/checked.h"
#include "ops/core/call.h"
#include "ops/attention/kv_cache.h"
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"

#include <math.h>

typedef struct attention_params {
    int64_t is_causal, q_num_heads, kv_num_heads, left_window, right_window;
    int64_t output_mode; /* of the 4th output: 0 products, 1 capped, 2 biased, 3 probabilities */
    int64_t softmax_precision;
    float scale, softcap;
    bool has_scale;
} attention_params;

typedef struct flex_params {
    attention_params base;
    int32_t score_mod, prob_mod;
    bool has_precision;
} flex_params;

/* ---- Shapes ---- */

typedef struct shapes {
    sni_dim batch, heads, length, size;
} shapes;

/* Reads input i, (batch, heads, length, size) or (batch, length, heads * size). */
static sn_status read_heads(sni_infer *c, int i, int64_t count, shapes *s) {
    int rank = sni_infer_rank(c, i);
    if (rank != 3 && rank != 4)
        return SNI_INFER_FAIL(c, "input %d has rank %d, not 3 or 4", i, rank);
    s->batch = sni_infer_dim(c, i, 0);
    s->length = sni_infer_dim(c, i, rank - 2);
    if (rank == 4) {
        s->heads = sni_infer_dim(c, i, 1);
        s->size = sni_infer_dim(c, i, 3);
        if (count > 0 && sni_dim_known(s->heads) && s->heads != count)
            return SNI_INFER_FAIL(c, "input %d has %lld heads, not %lld", i, (long long)s->heads,
                                  (long long)count);
        return SN_OK;
    }
    sni_dim wide = sni_infer_dim(c, i, 2);
    if (count < 1) return SNI_INFER_FAIL(c, "3-D inputs without the number of heads");
    if (sni_dim_known(wide) && (wide % count || wide < count))
        return SNI_INFER_FAIL(c, "%lld elements do not divide into %lld heads", (long long)wide,
                              (long long)count);
    s->heads = count;
    s->size = sni_dim_floordiv(c->symbols, wide, count);
    return SN_OK;
}

/* Fails with `blame`. */
static sn_status check_heads(const shapes *q, const shapes *k, const shapes *v, sn_status blame,
                             sn_error *err) {
    if (sni_dim_differ(q->batch, k->batch) || sni_dim_differ(q->batch, v->batch) ||
        sni_dim_differ(k->length, v->length))
        return sni_fail(err, blame, "batches or lengths of query, key and value do not fit");
    if (sni_dim_differ(q->size, k->size))
        return sni_fail(err, blame, "head sizes %lld of the query and %lld of the key",
                        (long long)q->size, (long long)k->size);
    if (sni_dim_differ(k->heads, v->heads) || (sni_dim_known(q->heads) && sni_dim_known(k->heads) &&
                                               (k->heads < 1 || q->heads % k->heads)))
        return sni_fail(err, blame, "%lld query heads for %lld key and %lld value heads",
                        (long long)q->heads, (long long)k->heads, (long long)v->heads);
    return SN_OK;
}

static sn_status attention_infer(sni_infer *c) {
    const attention_params *p = c->params;
    shapes q, k, v;
    if (p->output_mode < 0 || p->output_mode > 3)
        return SNI_INFER_FAIL(c, "qk_matmul_output_mode is %lld", (long long)p->output_mode);
    if (sni_infer_given(c, 4) != sni_infer_given(c, 5))
        return SNI_INFER_FAIL(c, "past_key and past_value must be given together");
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1) || !sni_infer_shaped(c, 2)) return SN_OK;
    if (sni_infer_rank(c, 0) != sni_infer_rank(c, 1) ||
        sni_infer_rank(c, 0) != sni_infer_rank(c, 2))
        return SNI_INFER_FAIL(c, "query, key and value of ranks %d, %d and %d",
                              sni_infer_rank(c, 0), sni_infer_rank(c, 1), sni_infer_rank(c, 2));
    SN_TRY(read_heads(c, 0, p->q_num_heads, &q));
    SN_TRY(read_heads(c, 1, p->kv_num_heads, &k));
    SN_TRY(read_heads(c, 2, p->kv_num_heads, &v));
    SN_TRY(check_heads(&q, &k, &v, c->known ? SN_BAD_DATA : SN_INVALID_MODEL, c->err));
    sni_dim past_k, past_v;
    SN_TRY(sni_infer_cache(c, 4, k.batch, k.heads, k.size, &past_k));
    SN_TRY(sni_infer_cache(c, 5, v.batch, v.heads, v.size, &past_v));
    if (sni_dim_differ(past_k, past_v)) return SNI_INFER_FAIL(c, "caches of different lengths");
    if (sni_infer_shaped(c, 6) &&
        (sni_infer_rank(c, 6) != 1 || sni_dim_differ(sni_infer_dim(c, 6, 0), q.batch)))
        return SNI_INFER_FAIL(c, "nonpad_kv_seqlen has not one element for each batch");
    sni_dim total = sni_dim_add(c->symbols, past_k, k.length);
    sni_dim scores[4] = {q.batch, q.heads, q.length, total};
    SN_TRY(sni_infer_attention_mask(c, 3, scores, true));
    if (sni_infer_rank(c, 0) == 4)
        SN_TRY(sni_infer_set_shape(c, 0, 4, (sni_dim[]){q.batch, q.heads, q.length, v.size}));
    else
        SN_TRY(sni_infer_set_shape(
            c, 0, 3, (sni_dim[]){q.batch, q.length, sni_dim_mul(c->symbols, q.heads, v.size)}));
    SN_TRY(sni_infer_set_shape(c, 1, 4, (sni_dim[]){k.batch, k.heads, total, k.size}));
    SN_TRY(sni_infer_set_shape(c, 2, 4, (sni_dim[]){v.batch, v.heads, total, v.size}));
    return sni_infer_set_shape(c, 3, 4, scores);
}

static int64_t attention_macs(const sni_infer *c) {
    const attention_params *p = c->params;
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1) || !sni_infer_shaped(c, 2)) return -1;
    int rq = sni_infer_rank(c, 0), rv = sni_infer_rank(c, 2);
    int64_t past = sni_infer_shaped(c, 4) ? sni_infer_dim(c, 4, 2) : 0;
    int64_t queries = sni_infer_dim(c, 0, rq - 2), keys = sni_infer_dim(c, 1, rq - 2);
    int64_t heads_n = rq == 4 ? sni_infer_dim(c, 0, 1) : p->q_num_heads;
    int64_t kv_heads = rv == 4 ? 1 : p->kv_num_heads;
    int64_t size = rq == 4 ? sni_infer_dim(c, 0, 3) : sni_infer_dim(c, 0, 2);
    int64_t v_size = sni_infer_dim(c, 2, rv - 1);
    if (past < 0 || keys < 0 || heads_n < 1 || kv_heads < 1 || size < 0 || v_size < 0) return -1;
    if (rq == 3) size /= heads_n;
    v_size /= kv_heads;
    int64_t dims[4] = {sni_infer_dim(c, 0, 0), heads_n, queries, 0}, scores, macs, each;
    if (!sni_add_i64(past, keys, &dims[3]) || !sni_shape_count(4, dims, &scores) ||
        !sni_add_i64(size, v_size, &each) || !sni_mul_i64(scores, each, &macs))
        return -1;
    return macs;
}

/* ---- Running ---- */

static sni_heads heads_of(const sni_tensor *t, int64_t count, const void *data) {
    if (t->rank == 4) return sni_heads_outer(data, t->dims[1], t->dims[2], t->dims[3]);
    return sni_heads_inner(data, t->dims[1], t->dims[2], t->dims[2] / count);
}

/* How many keys and values count, and where queries stand among them: `used` is the cache's
 * length for every batch. */
static sn_status read_lengths(sni_kernel *k, sni_attention *a, const int64_t *used) {
    const sni_tensor *t = sni_in(k, 6);
    int64_t *before;
    a->before = used;
    if (!t) return SN_OK;
    a->lengths = t->data;
    for (int64_t b = 0; b < a->batches; b++)
        if (a->lengths[b] < 0 || a->lengths[b] > a->total)
            return SNI_KERNEL_FAIL(k, "nonpad_kv_seqlen[%lld] is %lld, outside 0 to %lld",
                                   (long long)b, (long long)a->lengths[b], (long long)a->total);
    if (sni_in(k, 4) && sni_in(k, 4)->dims[2]) return SN_OK;
    SN_TRY(sni_scratch_i64(k, a->batches, &before));
    for (int64_t b = 0; b < a->batches; b++) before[b] = a->lengths[b] - a->q_length;
    a->before = before;
    return SN_OK;
}

static void set_sizes(sni_attention *a, const attention_params *p, const sni_tensor *q,
                      const sni_tensor *key, const sni_tensor *v, const sni_tensor *past) {
    bool flat = q->rank == 3;
    a->batches = q->dims[0];
    a->q_heads = flat ? p->q_num_heads : q->dims[1];
    a->kv_heads = flat ? p->kv_num_heads : key->dims[1];
    a->q_length = q->dims[q->rank - 2];
    a->total = (past ? past->dims[2] : 0) + key->dims[key->rank - 2];
    a->head_size = q->dims[q->rank - 1] / (flat ? a->q_heads : 1);
    a->v_size = v->dims[v->rank - 1] / (flat ? a->kv_heads : 1);
    a->scale = p->has_scale ? (double)p->scale : 1 / sqrt((double)a->head_size);
    a->softcap = (double)p->softcap;
    a->keep = (sni_attention_step)p->output_mode;
    a->causal = p->is_causal != 0;
    a->left = p->left_window;
    a->right = p->right_window;
}

static sn_status attention_run(sni_kernel *k, const attention_params *p,
                               const sni_score_mods *mods) {
    const sni_tensor *q = sni_in(k, 0), *key = sni_in(k, 1), *v = sni_in(k, 2),
                     *past = sni_in(k, 4);
    sni_tensor *y = sni_out(k, 0);
    bool wide = q->dtype == SN_FLOAT64 || v->dtype == SN_FLOAT64;
    if (mods && mods->dtype == SN_FLOAT64) wide = true;
    sni_attention a = {.dtype = wide ? SN_FLOAT64 : SN_FLOAT32, .mods = mods};
    int64_t fresh = key->dims[key->rank - 2];
    const void *data[3];
    void *out = NULL;
    const int64_t *used;
    set_sizes(&a, p, q, key, v, past);
    SN_TRY(sni_same_i64(k, a.batches, a.total - fresh, &used));
    for (int i = 0; i < 3; i++) SN_TRY(sni_in_as(k, sni_in(k, i), a.dtype, &data[i]));
    a.q = heads_of(q, a.q_heads, data[0]);
    a.k = heads_of(key, a.kv_heads, data[1]);
    a.v = heads_of(v, a.kv_heads, data[2]);
    SN_TRY(sni_attention_join_tensors(
        k, &a, past, sni_out(k, 1), &(sni_append){a.total, used, fresh, a.head_size, NULL}, &a.k));
    SN_TRY(sni_attention_join_tensors(k, &a, sni_in(k, 5), sni_out(k, 2),
                                      &(sni_append){a.total, used, fresh, a.v_size, NULL}, &a.v));
    SN_TRY(sni_attention_mask(k, &a, sni_in(k, 3)));
    SN_TRY(read_lengths(k, &a, used));
    SN_TRY(sni_out_as(k, sni_out(k, 3), a.dtype, &a.kept));
    if (y) {
        SN_TRY(sni_out_as(k, y, a.dtype, &out));
    } else {
        SN_TRY(sni_scratch_matrix(k, a.batches * a.q_heads * a.q_length, a.v_size,
                                  sni_dtype_width(a.dtype), &out));
    }
    a.y = q->rank == 4 ? sni_heads_outer(out, a.q_heads, a.q_length, a.v_size)
                       : sni_heads_inner(out, a.q_length, a.q_heads * a.v_size, a.v_size);
    SN_TRY(sni_attend(k, &a));
    sni_out_done(k, y, a.dtype, out);
    sni_out_done(k, sni_out(k, 3), a.dtype, a.kept);
    return SN_OK;
}

static sn_status attention_ref(sni_kernel *k) {
    return attention_run(k, k->params, NULL);
}

#define FIELD(f) offsetof(attention_params, f)

const sni_op sni_op_Attention = {
    .name = "Attention",
    .versions = SNI_VERSIONS(23, 24, 25),
    .inputs = SNI_FORMALS({"Q", "T1"}, {"K", "T1"}, {"V", "T2"}, {"attn_mask", "U", SNI_OPTIONAL},
                          {"past_key", "T1", SNI_OPTIONAL}, {"past_value", "T2", SNI_OPTIONAL},
                          {"nonpad_kv_seqlen", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T1"}, {"present_key", "T1", SNI_OPTIONAL},
                           {"present_value", "T2", SNI_OPTIONAL},
                           {"qk_matmul_output", "T1", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}, {"T2", SNI_T_FLOATS},
                           {"U", SNI_T_NUMBERS | SNI_T(SN_BOOL)}),
    .params = SNI_PARAMS({"is_causal", SNI_ATTR_INT, FIELD(is_causal)},
                         {"q_num_heads", SNI_ATTR_INT, FIELD(q_num_heads)},
                         {"kv_num_heads", SNI_ATTR_INT, FIELD(kv_num_heads)},
                         {"left_window_size", SNI_ATTR_INT, FIELD(left_window), .number = -1},
                         {"right_window_size", SNI_ATTR_INT, FIELD(right_window), .number = -1},
                         {"qk_matmul_output_mode", SNI_ATTR_INT, FIELD(output_mode)},
                         {"softmax_precision", SNI_ATTR_INT, FIELD(softmax_precision)},
                         {"scale", SNI_ATTR_FLOAT, FIELD(scale), .present = FIELD(has_scale) + 1},
                         {"softcap", SNI_ATTR_FLOAT, FIELD(softcap)}),
    .params_size = sizeof(attention_params),
    .infer = attention_infer,
    .ref = attention_ref,
    .macs = attention_macs,
};

/* ---- FlexAttention ---- */

static sn_status flex_prepare(void *params, sni_arena *arena, sn_error *err) {
    flex_params *p = params;
    int64_t type = p->base.softmax_precision;
    (void)arena;
    p->base.left_window = p->base.right_window = -1;
    if (p->has_precision && (type < 0 || type > 63 || !(SNI_T(type) & SNI_T_FLOATS)))
        return sni_fail(err, SN_INVALID_MODEL, "softmax_precision is %lld, no float type",
                        (long long)type);
    return SN_OK;
}

/* What the subgraphs are given when query, key and value are of a type. */
static sn_dtype flex_precision(const flex_params *p, sn_dtype type) {
    return p->has_precision ? (sn_dtype)p->base.softmax_precision : sni_wide_type(type);
}

static sn_status flex_infer_mod(sni_infer *c, int32_t graph, const sni_type *scores) {
    if (graph < 0) return SN_OK;
    const sni_graph *g = c->node->subgraphs[graph];
    if (g->n_inputs != 1 || g->n_outputs != 1)
        return SNI_INFER_FAIL(c, "a subgraph has %d inputs and %d outputs, not 1 and 1",
                              g->n_inputs, g->n_outputs);
    const sni_type *made = NULL;
    if (!c->subgraph || !scores->dtype) return SN_OK;
    SN_TRY(c->subgraph(c, graph, &scores, 1, &made, 1));
    if (!made || made->kind == SN_KIND_NONE) return SN_OK;
    if (made->kind != SN_KIND_TENSOR || (made->dtype && made->dtype != scores->dtype))
        return SNI_INFER_FAIL(c, "subgraph %d does not keep the type of what it is given",
                              (int)graph);
    if (!made->has_shape || !scores->has_shape) return SN_OK;
    bool same = made->rank == scores->rank;
    for (int i = 0; same && i < made->rank; i++)
        same = !sni_dim_differ(made->dims[i], scores->dims[i]);
    return same ? SN_OK
                : SNI_INFER_FAIL(c, "subgraph %d does not keep the shape of what it is given",
                                 (int)graph);
}

static sn_status flex_infer(sni_infer *c) {
    const flex_params *p = c->params;
    sni_dim dims[4];
    sni_type scores = {.kind = SN_KIND_TENSOR, .dtype = c->in[0]->dtype, .rank = 4, .dims = dims};
    for (int i = 0; i < 3; i++)
        if (sni_infer_shaped(c, i) && sni_infer_rank(c, i) != 4)
            return SNI_INFER_FAIL(c, "input %d has rank %d, not 4", i, sni_infer_rank(c, i));
    SN_TRY(attention_infer(c));
    scores.has_shape = sni_infer_shaped(c, 0) && sni_infer_shaped(c, 1);
    for (int i = 0; scores.has_shape && i < 4; i++)
        dims[i] = i < 3 ? sni_infer_dim(c, 0, i) : sni_infer_dim(c, 1, 2);
    if (scores.dtype) scores.dtype = flex_precision(p, scores.dtype);
    SN_TRY(flex_infer_mod(c, p->score_mod, &scores));
    return flex_infer_mod(c, p->prob_mod, &scores);
}

static shapes shapes_of(const sni_tensor *t) {
    return (shapes){t->dims[0], t->dims[1], t->dims[2], t->dims[3]};
}

static sn_status flex_ref(sni_kernel *k) {
    const flex_params *p = k->params;
    const sni_tensor *in[3];
    shapes s[3];
    for (int i = 0; i < 3; i++) {
        in[i] = sni_in(k, i);
        if (in[i]->rank != 4)
            return SNI_KERNEL_FAIL(k, "input %d has rank %d, not 4", i, in[i]->rank);
        s[i] = shapes_of(in[i]);
    }
    SN_TRY(check_heads(&s[0], &s[1], &s[2], SN_BAD_DATA, k->err));
    int64_t dims[4] = {s[0].batch, s[0].heads, s[0].length, s[2].size};
    SN_TRY(sni_out_alloc(k, 0, in[0]->dtype, 4, dims));
    if (sni_call_is_void(k)) return SN_OK;
    sni_score_mods mods = {p->score_mod, p->prob_mod, flex_precision(p, in[0]->dtype)};
    return attention_run(k, &p->base, mods.score < 0 && mods.prob < 0 ? NULL : &mods);
}

#undef FIELD
#define FIELD(f) offsetof(flex_params, f)

const sni_op sni_op_FlexAttention = {
    .name = "FlexAttention",
    .domain = "ai.onnx.preview",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"Q", "T1"}, {"K", "T1"}, {"V", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T1"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"score_mod", SNI_ATTR_GRAPH, FIELD(score_mod)},
        {"prob_mod", SNI_ATTR_GRAPH, FIELD(prob_mod)},
        {"softmax_precision", SNI_ATTR_INT, FIELD(base.softmax_precision),
         .present = FIELD(has_precision) + 1},
        {"scale", SNI_ATTR_FLOAT, FIELD(base.scale), .present = FIELD(base.has_scale) + 1}),
    .params_size = sizeof(flex_params),
    .flags = SNI_OP_ALLOCATES | SNI_OP_SUBGRAPHS,
    .prepare = flex_prepare,
    .infer = flex_infer,
    .ref = flex_ref,
    .macs = attention_macs,
};
