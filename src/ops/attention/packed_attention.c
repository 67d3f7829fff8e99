/* PackedAttention of ai.sinter: Attention whose queries, keys and values are in the rows of one
 * product, X (batch, length, (q_num_heads + 2 kv_num_heads) * head size). The optimiser makes it of
 * Attention and the Split or Slice nodes that cut the product up. */
#include "base/checked.h"
#include "ops/attention/kv_cache.h"
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"

#include <math.h>

typedef struct packed_params {
    int64_t is_causal, q_heads, kv_heads;
    float scale;
    bool has_scale;
} packed_params;

enum { X, MASK, PAST_KEY, PAST_VALUE };

static sn_status packed_prepare(void *params, sni_arena *arena, sn_error *err) {
    const packed_params *p = params;
    (void)arena;
    if (p->q_heads < 1 || p->kv_heads < 1 || p->q_heads > INT32_MAX || p->q_heads % p->kv_heads)
        return sni_fail(err, SN_INVALID_MODEL, "%lld query heads for %lld key heads",
                        (long long)p->q_heads, (long long)p->kv_heads);
    return SN_OK;
}

static int64_t all_heads(const packed_params *p) {
    return p->q_heads + 2 * p->kv_heads;
}

static sn_status packed_infer(sni_infer *c) {
    const packed_params *p = c->params;
    sni_dim past, past_v;
    if (sni_infer_given(c, PAST_KEY) != sni_infer_given(c, PAST_VALUE))
        return SNI_INFER_FAIL(c, "past_key and past_value must be given together");
    if (!sni_infer_shaped(c, X)) return SN_OK;
    if (sni_infer_rank(c, X) != 3)
        return SNI_INFER_FAIL(c, "X has rank %d, not 3", sni_infer_rank(c, X));
    sni_dim batch = sni_infer_dim(c, X, 0), length = sni_infer_dim(c, X, 1);
    sni_dim width = sni_infer_dim(c, X, 2), all = all_heads(p);
    if (sni_dim_known(width) && (width % all || width < all))
        return SNI_INFER_FAIL(c, "%lld elements do not divide into %lld heads", (long long)width,
                              (long long)all);
    sni_dim size = sni_dim_floordiv(c->symbols, width, all);
    SN_TRY(sni_infer_cache(c, PAST_KEY, batch, p->kv_heads, size, &past));
    SN_TRY(sni_infer_cache(c, PAST_VALUE, batch, p->kv_heads, size, &past_v));
    if (sni_dim_differ(past, past_v)) return SNI_INFER_FAIL(c, "caches of different lengths");
    sni_dim total = sni_dim_add(c->symbols, past, length);
    SN_TRY(sni_infer_attention_mask(c, MASK, (sni_dim[]){batch, p->q_heads, length, total}, true));
    for (int i = 1; i < 3; i++)
        SN_TRY(sni_infer_set_shape(c, i, 4, (sni_dim[]){batch, p->kv_heads, total, size}));
    return sni_infer_set_shape(
        c, 0, 3, (sni_dim[]){batch, length, sni_dim_mul(c->symbols, size, p->q_heads)});
}

static int64_t packed_macs(const sni_infer *c) {
    const packed_params *p = c->params;
    if (!sni_infer_shaped(c, X)) return -1;
    int64_t past = sni_infer_shaped(c, PAST_KEY) ? sni_infer_dim(c, PAST_KEY, 2) : 0;
    int64_t length = sni_infer_dim(c, X, 1), width = sni_infer_dim(c, X, 2), macs;
    if (past < 0 || length < 0 || width < 0) return -1;
    int64_t dims[4] = {sni_infer_dim(c, X, 0), length, 0, 2 * p->q_heads * (width / all_heads(p))};
    if (!sni_add_i64(past, length, &dims[2]) || !sni_shape_count(4, dims, &macs)) return -1;
    return macs;
}

static sn_status packed_ref(sni_kernel *k) {
    const packed_params *p = k->params;
    const sni_tensor *x = sni_in(k, X), *past = sni_in(k, PAST_KEY);
    sni_tensor *y = sni_out(k, 0);
    int64_t length = x->dims[1], width = x->dims[2], size = width / all_heads(p);
    int64_t before = past ? past->dims[2] : 0;
    sni_attention a = {.batches = x->dims[0],
                       .q_heads = p->q_heads,
                       .kv_heads = p->kv_heads,
                       .q_length = length,
                       .total = before + length,
                       .head_size = size,
                       .v_size = size,
                       .scale = p->has_scale ? (double)p->scale : 1 / sqrt((double)size),
                       .left = -1,
                       .right = -1,
                       .causal = p->is_causal != 0,
                       .dtype = sni_compute_dtype(x->dtype)};
    size_t bytes = sni_dtype_width(a.dtype);
    const void *data;
    void *out = NULL;
    SN_TRY(sni_same_i64(k, a.batches, before, &a.before));
    SN_TRY(sni_in_as(k, x, a.dtype, &data));
    a.q = a.k = a.v = sni_heads_inner(data, length, width, size);
    if (x->count) {
        a.k.data = sni_element(data, p->q_heads * size, bytes);
        a.v.data = sni_element(data, (p->q_heads + p->kv_heads) * size, bytes);
    }
    SN_TRY(sni_attention_join_tensors(k, &a, past, sni_out(k, 1),
                                      &(sni_append){a.total, a.before, length, size, NULL}, &a.k));
    SN_TRY(sni_attention_join_tensors(k, &a, sni_in(k, PAST_VALUE), sni_out(k, 2),
                                      &(sni_append){a.total, a.before, length, size, NULL}, &a.v));
    SN_TRY(sni_attention_mask(k, &a, sni_in(k, MASK)));
    SN_TRY(sni_out_as(k, y, a.dtype, &out));
    a.y = sni_heads_inner(out, length, p->q_heads * size, size);
    SN_TRY(sni_attend(k, &a));
    sni_out_done(k, y, a.dtype, out);
    return SN_OK;
}

#define FIELD(f) offsetof(packed_params, f)

const sni_op sni_op_sinter_PackedAttention = {
    .name = "PackedAttention",
    .domain = "ai.sinter",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"attn_mask", "U", SNI_OPTIONAL},
                          {"past_key", "T", SNI_OPTIONAL}, {"past_value", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}, {"present_key", "T", SNI_OPTIONAL},
                           {"present_value", "T", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"U", SNI_T_NUMBERS | SNI_T(SN_BOOL)}),
    .params = SNI_PARAMS({"is_causal", SNI_ATTR_INT, FIELD(is_causal)},
                         {"q_num_heads", SNI_ATTR_INT, FIELD(q_heads), .required = true},
                         {"kv_num_heads", SNI_ATTR_INT, FIELD(kv_heads), .required = true},
                         {"scale", SNI_ATTR_FLOAT, FIELD(scale), .present = FIELD(has_scale) + 1}),
    .params_size = sizeof(packed_params),
    .prepare = packed_prepare,
    .infer = packed_infer,
    .ref = packed_ref,
    .macs = packed_macs,
};
