/* Attention and QAttention of com.microsoft: one product of the input with concatenated weights
 * gives queries, keys and values; then attention with a padding mask and a cache. */
#include "base/checked.h"
#include "ops/attention/kv_cache.h"
#include "ops/core/compute.h"
#include "ops/matmul/matmul_core.h"
#include "ops/quant/quant.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>
#include <math.h>

typedef struct fused_params {
    int64_t num_heads, unidirectional, do_rotary, rotary_dim, shares_buffer;
    float mask_filter_value, scale;
    sni_ints sizes; /* of query, key and value, all heads together */
} fused_params;

/* Inputs of an operator of the family; -1: it has none such. Input 0 is the data, 1 the weights,
 * 2 the bias. */
typedef struct fused_inputs {
    int mask, past, score_bias, past_length;
    int scale, zero; /* of input and weights, one after the other */
} fused_inputs;

static const fused_inputs plain = {3, 4, 5, 6, -1, -1};
static const fused_inputs quantized = {5, 8, -1, -1, 3, 6};

enum { CACHE_ROWS = 3 }; /* axis of a cache (2, batch, heads, rows, size) */

static sn_status fused_prepare(void *params, sni_arena *arena, sn_error *err) {
    const fused_params *p = params;
    (void)arena;
    if (p->num_heads < 1)
        return sni_fail(err, SN_INVALID_MODEL, "num_heads is %" PRId64, p->num_heads);
    if (p->do_rotary)
        return sni_fail(err, SN_UNSUPPORTED, "do_rotary inside attention is not supported");
    if (!p->sizes.n) return SN_OK;
    if (p->sizes.n != 3)
        return sni_fail(err, SN_INVALID_MODEL, "qkv_hidden_sizes has %zu elements", p->sizes.n);
    for (size_t i = 0; i < 3; i++)
        if (p->sizes.v[i] < 0 || p->sizes.v[i] > INT32_MAX || p->sizes.v[i] % p->num_heads)
            return sni_fail(err, SN_INVALID_MODEL,
                            "%" PRId64 " elements do not divide into %" PRId64 " heads",
                            p->sizes.v[i], p->num_heads);
    if (p->sizes.v[0] != p->sizes.v[1])
        return sni_fail(err, SN_INVALID_MODEL, "queries of %" PRId64 " and keys of %" PRId64,
                        p->sizes.v[0], p->sizes.v[1]);
    return SN_OK;
}

/* ---- Shapes ---- */

/* Sizes of a head of query or key, and of value, from the columns of the weights. */
static sn_status head_sizes(sni_infer *c, sni_dim columns, sni_dim *size, sni_dim *v_size) {
    const fused_params *p = c->params;
    sni_dim all = columns;
    if (p->sizes.n) {
        *size = p->sizes.v[0] / p->num_heads;
        *v_size = p->sizes.v[2] / p->num_heads;
        all = p->sizes.v[0] + p->sizes.v[1] + p->sizes.v[2];
    } else {
        int64_t parts;
        if (!sni_mul_i64(p->num_heads, 3, &parts) || (sni_dim_known(columns) && columns % parts))
            return SNI_INFER_FAIL(c, "%" PRId64 " columns for %" PRId64 " heads", columns,
                                  p->num_heads);
        *size = *v_size = sni_dim_floordiv(c->symbols, columns, parts);
    }
    if (sni_dim_differ(columns, all))
        return SNI_INFER_FAIL(c, "%" PRId64 " columns where qkv_hidden_sizes add up to %" PRId64,
                              columns, all);
    return SN_OK;
}

/* Input, weights and bias against each other. */
static sn_status check_product(sni_infer *c) {
    if (sni_infer_rank(c, 0) != 3 || sni_infer_rank(c, 1) != 2)
        return SNI_INFER_FAIL(c, "an input of rank %d and weights of rank %d", sni_infer_rank(c, 0),
                              sni_infer_rank(c, 1));
    if (sni_dim_differ(sni_infer_dim(c, 0, 2), sni_infer_dim(c, 1, 0)))
        return SNI_INFER_FAIL(c, "weights of %" PRId64 " rows for %" PRId64 " elements",
                              sni_infer_dim(c, 1, 0), sni_infer_dim(c, 0, 2));
    if (sni_infer_shaped(c, 2) && (sni_infer_rank(c, 2) != 1 ||
                                   sni_dim_differ(sni_infer_dim(c, 2, 0), sni_infer_dim(c, 1, 1))))
        return SNI_INFER_FAIL(c, "the bias has not one element for each column of the weights");
    return SN_OK;
}

/* Keys in the cache (2, batch, heads, rows, size), and the rows of the one that goes out. */
static sn_status read_past(sni_infer *c, const fused_inputs *in, const sni_dim scores[4],
                           sni_dim size, sni_dim *past, sni_dim *rows) {
    const fused_params *p = c->params;
    bool given = sni_infer_given(c, in->past), shared = given && p->shares_buffer;
    sni_dim held = 0;
    if (given) held = sni_dim_fresh(c->symbols);
    if (sni_infer_shaped(c, in->past)) {
        const sni_type *t = c->in[in->past];
        if (t->rank != 5 || sni_dim_differ(t->dims[0], 2) ||
            sni_dim_differ(t->dims[1], scores[0]) || sni_dim_differ(t->dims[2], scores[1]) ||
            sni_dim_differ(t->dims[4], size))
            return SNI_INFER_FAIL(c, "the cache is not (2, batch, heads, length, head size)");
        held = t->dims[CACHE_ROWS];
    }
    *past = held;
    *rows = sni_dim_add(c->symbols, held, scores[2]);
    if (!shared) return SN_OK;
    sni_list list;
    if (in->past_length < 0 || !sni_infer_given(c, in->past_length))
        return SNI_INFER_FAIL(c, "a shared cache without past_sequence_length");
    SN_TRY(sni_infer_list(c, in->past_length, &list));
    *past = sni_list_has_elements(&list) && list.count == 1 ? sni_list_dim(c, &list, 0)
                                                            : sni_dim_fresh(c->symbols);
    *rows = held;
    return SN_OK;
}

static sn_status fused_shapes(sni_infer *c, const fused_inputs *in) {
    const fused_params *p = c->params;
    sni_dim size = 0, v_size = 0, past = 0, rows = 0;
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    SN_TRY(check_product(c));
    SN_TRY(head_sizes(c, sni_infer_dim(c, 1, 1), &size, &v_size));
    sni_dim scores[4] = {sni_infer_dim(c, 0, 0), p->num_heads, sni_infer_dim(c, 0, 1)};
    bool cached = sni_infer_given(c, in->past) || c->n_out > 1;
    if (cached && sni_dim_differ(size, v_size))
        return SNI_INFER_FAIL(c, "a cache of keys of %" PRId64 " and values of %" PRId64, size,
                              v_size);
    SN_TRY(read_past(c, in, scores, size, &past, &rows));
    scores[3] = sni_dim_add(c->symbols, past, scores[2]);
    SN_TRY(sni_infer_padding(c, in->mask, scores));
    if (in->score_bias >= 0) SN_TRY(sni_infer_attention_mask(c, in->score_bias, scores, false));
    SN_TRY(sni_infer_set_shape(c, 1, 5, (sni_dim[]){2, scores[0], scores[1], rows, size}));
    sni_dim width = sni_dim_mul(c->symbols, p->num_heads, v_size);
    return sni_infer_set_shape(c, 0, 3, (sni_dim[]){scores[0], scores[2], width});
}

static sn_status attention_infer(sni_infer *c) {
    return fused_shapes(c, &plain);
}

/* Scales and zero points have one element, or those of the weights one for each column. */
static sn_status qattention_infer(sni_infer *c) {
    for (int i = 0; i < 4; i++) {
        int input = i < 2 ? quantized.scale + i : quantized.zero + i - 2;
        if (!sni_infer_shaped(c, input)) continue;
        int rank = sni_infer_rank(c, input);
        if (rank > 1) return SNI_INFER_FAIL(c, "input %d has rank %d", input, rank);
        sni_dim n = rank ? sni_infer_dim(c, input, 0) : 1;
        bool columns = i % 2 && sni_infer_shaped(c, 1) && sni_infer_rank(c, 1) == 2 &&
                       !sni_dim_differ(n, sni_infer_dim(c, 1, 1));
        if (sni_dim_differ(n, 1) && !columns)
            return SNI_INFER_FAIL(c, "input %d has %" PRId64 " elements", input, n);
    }
    return fused_shapes(c, &quantized);
}

/* ---- Running ---- */

/* Every row of (rows, columns) becomes the bias; NULL: zeros. */
static void start_rows(sn_dtype dtype, void *out, int64_t rows, int64_t columns, const void *bias) {
    size_t width = sni_dtype_width(dtype), bytes = (size_t)columns * width;
    for (int64_t r = 0; r < rows && bytes; r++) {
        void *row = sni_element(out, r * columns, width);
        if (bias)
            memcpy(row, bias, bytes);
        else
            memset(row, 0, bytes);
    }
}

/* (rows, K) times weights with the layout of w (K, columns). */
static sni_gemm product_of(const sni_tensor *w, int64_t rows, const void *from, const void *weights,
                           void *to) {
    int64_t depth = w->dims[0], columns = w->dims[1];
    return (sni_gemm){.m = rows,
                      .n = columns,
                      .k = depth,
                      .a = from,
                      .a_row = depth,
                      .a_col = 1,
                      .b = weights,
                      .b_row = columns,
                      .b_col = 1,
                      .c = to,
                      .c_row = columns};
}

/* Input times weights plus bias: (batches * queries, columns) in `dtype`. */
static sn_status project(sni_kernel *k, sn_dtype dtype, const void **out) {
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1);
    int64_t rows = x->dims[0] * x->dims[1], columns = w->dims[1];
    const void *bias, *from, *weights;
    void *y = NULL;
    SN_TRY(sni_in_as(k, x, dtype, &from));
    SN_TRY(sni_in_as(k, w, dtype, &weights));
    SN_TRY(sni_in_as(k, sni_in(k, 2), dtype, &bias));
    SN_TRY(sni_scratch_matrix(k, rows, columns, sni_dtype_width(dtype), &y));
    start_rows(dtype, y, rows, columns, bias);
    sni_gemm g = product_of(w, rows, from, weights, y);
    g.add = true;
    SN_TRY(sni_gemm_run(k, dtype, &g));
    *out = y;
    return SN_OK;
}

/* The same with integers: sums of products, then scaled, then the bias. */
static sn_status project_integers(sni_kernel *k, const float **out) {
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1);
    const sni_tensor *w_scale = sni_in(k, quantized.scale + 1);
    int64_t rows = x->dims[0] * x->dims[1], columns = w->dims[1];
    const int32_t *from, *weights;
    const float *bias, *scales;
    void *sums = NULL, *y = NULL;
    SN_TRY(sni_centered(k, x, sni_in(k, quantized.zero), SNI_QUANT_ROWS, &from));
    SN_TRY(sni_centered(k, w, sni_in(k, quantized.zero + 1), SNI_QUANT_COLUMNS, &weights));
    SN_TRY(sni_as_f32(k, sni_in(k, 2), &bias));
    SN_TRY(sni_as_f32(k, w_scale, &scales));
    SN_TRY(sni_scratch_matrix(k, rows, columns, sizeof(int32_t), &sums));
    SN_TRY(sni_scratch_matrix(k, rows, columns, sizeof(float), &y));
    sni_gemm g = product_of(w, rows, from, weights, sums);
    SN_TRY(sni_gemm_run(k, SN_INT32, &g));
    float scale = (float)sni_number_at(sni_in(k, quantized.scale), 0);
    for (int64_t i = 0; i < rows * columns; i++) {
        int64_t j = i % columns;
        ((float *)y)[i] =
            (float)((int32_t *)sums)[i] * (scale * scales[w_scale->count > 1 ? j : 0]) + bias[j];
    }
    *out = y;
    return SN_OK;
}

/* Keys and values with the cache in front: its first half is keys. */
static sn_status join_caches(sni_kernel *k, sni_attention *a, const sni_tensor *past,
                             int64_t rows) {
    sni_tensor *present = sni_out(k, 1);
    size_t width = sni_dtype_width(a->dtype);
    const void *old;
    void *all;
    if (!past && !present) return SN_OK;
    SN_TRY(sni_in_as(k, past, a->dtype, &old));
    SN_TRY(sni_out_as(k, present, a->dtype, &all));
    for (int i = 0; i < 2; i++) {
        sni_cache c = {.past_rows = past ? past->dims[CACHE_ROWS] : 0, .rows = rows};
        c.past = past ? sni_element(old, i * (past->count / 2), width) : NULL;
        c.present = present ? sni_element(all, i * (present->count / 2), width) : NULL;
        SN_TRY(
            sni_attention_join(k, a, &c, a->before, a->q_length, a->head_size, i ? &a->v : &a->k));
    }
    sni_out_done(k, present, a->dtype, all);
    return SN_OK;
}

/* Attention of the projected (batches, queries, columns). */
static sn_status attend_projected(sni_kernel *k, const fused_inputs *in, sn_dtype dtype,
                                  const void *projected) {
    const fused_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    const sni_tensor *cache = sni_in(k, in->past);
    bool shared = cache && p->shares_buffer && in->past_length >= 0;
    int64_t columns = sni_in(k, 1)->dims[1], past = cache ? cache->dims[CACHE_ROWS] : 0, rows;
    int64_t part = p->sizes.n ? p->sizes.v[0] : columns / 3;
    size_t width = sni_dtype_width(dtype);
    void *out = NULL;
    sni_attention a = {.batches = x->dims[0],
                       .q_heads = p->num_heads,
                       .kv_heads = p->num_heads,
                       .q_length = x->dims[1],
                       .head_size = part / p->num_heads,
                       .v_size = (columns - 2 * part) / p->num_heads,
                       .causal = p->unidirectional != 0,
                       .lowest = true,
                       .left = -1,
                       .right = -1,
                       .dtype = dtype};
    SN_TRY(sni_attention_past(k, shared ? sni_in(k, in->past_length) : NULL, a.q_length, &past,
                              &rows));
    a.total = past + a.q_length;
    a.scale = p->scale != 0 ? (double)p->scale : 1 / sqrt((double)a.head_size);
    SN_TRY(sni_same_i64(k, a.batches, past, &a.before));
    a.q = a.k = sni_heads_inner(projected, a.q_length, columns, a.head_size);
    a.v = sni_heads_inner(sni_element(projected, 2 * part, width), a.q_length, columns, a.v_size);
    a.k.data = sni_element(projected, part, width);
    SN_TRY(join_caches(k, &a, cache, rows));
    if (in->score_bias >= 0) SN_TRY(sni_attention_mask(k, &a, sni_in(k, in->score_bias)));
    SN_TRY(sni_attention_padding(k, &a, sni_in(k, in->mask), p->mask_filter_value));
    SN_TRY(sni_out_as(k, sni_out(k, 0), dtype, &out));
    a.y = sni_heads_inner(out, a.q_length, a.q_heads * a.v_size, a.v_size);
    SN_TRY(sni_attend(k, &a));
    sni_out_done(k, sni_out(k, 0), dtype, out);
    return SN_OK;
}

static sn_status attention_ref(sni_kernel *k) {
    sn_dtype dtype = sni_compute_dtype(sni_in(k, 0)->dtype);
    const void *projected;
    SN_TRY(project(k, dtype, &projected));
    return attend_projected(k, &plain, dtype, projected);
}

static sn_status qattention_ref(sni_kernel *k) {
    const float *projected;
    SN_TRY(project_integers(k, &projected));
    return attend_projected(k, &quantized, SN_FLOAT32, projected);
}

#define FIELD(f) offsetof(fused_params, f)
#define COMMON_PARAMS                                                                        \
    {"num_heads", SNI_ATTR_INT, FIELD(num_heads), .required = true},                         \
        {"unidirectional", SNI_ATTR_INT, FIELD(unidirectional)},                             \
        {"do_rotary", SNI_ATTR_INT, FIELD(do_rotary)},                                       \
        {"past_present_share_buffer", SNI_ATTR_INT, FIELD(shares_buffer)},                   \
        {"mask_filter_value", SNI_ATTR_FLOAT, FIELD(mask_filter_value), .number = -10000}, { \
        "scale", SNI_ATTR_FLOAT, FIELD(scale)                                                \
    }

const sni_op sni_op_ms_Attention = {
    .name = "Attention",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input", "T"}, {"weights", "T"}, {"bias", "T", SNI_OPTIONAL},
                          {"mask_index", "int32", SNI_OPTIONAL}, {"past", "T", SNI_OPTIONAL},
                          {"attention_bias", "T", SNI_OPTIONAL},
                          {"past_sequence_length", "int32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"present", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(COMMON_PARAMS, {"qkv_hidden_sizes", SNI_ATTR_INTS, FIELD(sizes)},
                         {"rotary_embedding_dim", SNI_ATTR_INT, FIELD(rotary_dim)}),
    .params_size = sizeof(fused_params),
    .prepare = fused_prepare,
    .infer = attention_infer,
    .ref = attention_ref,
};

const sni_op sni_op_ms_QAttention = {
    .name = "QAttention",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input", "T1"}, {"weight", "T2"}, {"bias", "T3"}, {"input_scale", "T3"},
                          {"weight_scale", "T3"}, {"mask_index", "int32", SNI_OPTIONAL},
                          {"input_zero_point", "T1", SNI_OPTIONAL},
                          {"weight_zero_point", "T2", SNI_OPTIONAL}, {"past", "T3", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T3"}, {"present", "T3", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T1", SNI_T(SN_INT8) | SNI_T(SN_UINT8)},
                           {"T2", SNI_T(SN_INT8) | SNI_T(SN_UINT8)},
                           {"T3", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT16)}),
    .params = SNI_PARAMS(COMMON_PARAMS),
    .params_size = sizeof(fused_params),
    .prepare = fused_prepare,
    .infer = qattention_infer,
    .ref = qattention_ref,
};
