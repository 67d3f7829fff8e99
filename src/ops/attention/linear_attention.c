/* LinearAttention: keys and values are added step by step to a state of fixed size, which decays,
 * may be corrected (delta rule), and is read by the queries. */
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"

#include <math.h>
#include <string.h>

enum { RULE_LINEAR, RULE_GATED, RULE_DELTA, RULE_GATED_DELTA };

typedef struct linear_params {
    int64_t chunk_size, kv_num_heads, q_num_heads; /* chunk_size is a hint for tuning only */
    float scale;                                   /* 0: 1 / sqrt(key size) */
    int32_t rule;
} linear_params;

typedef struct linear {
    const void *q, *k, *v, *decay, *beta; /* (batch, steps, heads * size) */
    void *y, *state, *write; /* state (batch, kv heads, dk, dv); write (batch, kv heads, dv) */
    int64_t steps, q_heads, kv_heads, dk, dv;
    int64_t decay_row, decay_each, beta_row;
    double scale;
} linear;

#define BODY "ops/attention/linear_attention.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static sn_status check_inputs(sni_infer *c) {
    const linear_params *p = c->params;
    bool gated = p->rule == RULE_GATED || p->rule == RULE_GATED_DELTA;
    bool delta = p->rule == RULE_DELTA || p->rule == RULE_GATED_DELTA;
    if (p->q_num_heads < 1 || p->kv_num_heads < 1 || p->q_num_heads % p->kv_num_heads)
        return SNI_INFER_FAIL(c, "%lld query heads for %lld key heads", (long long)p->q_num_heads,
                              (long long)p->kv_num_heads);
    if (gated != sni_infer_given(c, 4) || delta != sni_infer_given(c, 5))
        return SNI_INFER_FAIL(c, "decay or beta is missing, or not part of this update_rule");
    for (int i = 0; i < 6; i++) {
        if (i == 3 || !sni_infer_shaped(c, i)) continue;
        if (sni_infer_rank(c, i) != 3)
            return SNI_INFER_FAIL(c, "input %d has rank %d, not 3", i, sni_infer_rank(c, i));
        if (sni_dim_differ(sni_infer_dim(c, i, 0), sni_infer_dim(c, 0, 0)) ||
            sni_dim_differ(sni_infer_dim(c, i, 1), sni_infer_dim(c, 0, 1)))
            return SNI_INFER_FAIL(c, "batch or length of input %d differ from the query's", i);
    }
    return SN_OK;
}

/* Size of one of `heads` heads in the last axis of input i. */
static sn_status size_of(sni_infer *c, int i, int64_t heads, sni_dim *size) {
    sni_dim wide = sni_infer_dim(c, i, 2);
    if (sni_dim_known(wide) && (wide % heads || wide < heads))
        return SNI_INFER_FAIL(c, "input %d: %lld elements do not divide into %lld heads", i,
                              (long long)wide, (long long)heads);
    *size = sni_dim_floordiv(c->symbols, wide, heads);
    return SN_OK;
}

static sn_status check_gates(sni_infer *c, sni_dim dk) {
    const linear_params *p = c->params;
    sni_dim d = sni_infer_shaped(c, 4) ? sni_infer_dim(c, 4, 2) : -1;
    sni_dim b = sni_infer_shaped(c, 5) ? sni_infer_dim(c, 5, 2) : -1;
    if (sni_dim_known(d) && d != p->kv_num_heads && sni_dim_known(dk) && d != p->kv_num_heads * dk)
        return SNI_INFER_FAIL(c, "decay has %lld elements in a step", (long long)d);
    if (sni_dim_known(b) && b != p->kv_num_heads && b != 1)
        return SNI_INFER_FAIL(c, "beta has %lld elements in a step", (long long)b);
    return SN_OK;
}

static sn_status linear_infer(sni_infer *c) {
    const linear_params *p = c->params;
    sni_dim dk = 0, dk2 = 0, dv = 0;
    bool past = sni_infer_given(c, 3);
    if (c->in[past ? 3 : 0]->dtype) SN_TRY(sni_infer_set_type(c, 1, c->in[past ? 3 : 0]->dtype));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    SN_TRY(check_inputs(c));
    if (!sni_infer_shaped(c, 1) || !sni_infer_shaped(c, 2)) return SN_OK;
    SN_TRY(size_of(c, 0, p->q_num_heads, &dk));
    SN_TRY(size_of(c, 1, p->kv_num_heads, &dk2));
    SN_TRY(size_of(c, 2, p->kv_num_heads, &dv));
    if (sni_dim_differ(dk, dk2)) return SNI_INFER_FAIL(c, "queries and keys of different sizes");
    SN_TRY(check_gates(c, dk));
    sni_dim state[4] = {sni_infer_dim(c, 0, 0), p->kv_num_heads, dk, dv};
    for (int i = 0; i < 4 && sni_infer_shaped(c, 3); i++)
        if (sni_infer_rank(c, 3) != 4 || sni_dim_differ(sni_infer_dim(c, 3, i), state[i]))
            return SNI_INFER_FAIL(c, "past_state is not (batch, heads, key size, value size)");
    SN_TRY(sni_infer_set_shape(c, 1, 4, state));
    return sni_infer_set_shape(
        c, 0, 3,
        (sni_dim[]){state[0], sni_infer_dim(c, 0, 1), sni_dim_mul(c->symbols, dv, p->q_num_heads)});
}

static sn_status linear_ref(sni_kernel *k) {
    const linear_params *p = k->params;
    const sni_tensor *q = sni_in(k, 0), *v = sni_in(k, 2), *past = sni_in(k, 3);
    const sni_tensor *decay = sni_in(k, 4), *beta = sni_in(k, 5);
    sn_dtype dtype = sni_compute_dtype(q->dtype);
    size_t width = sni_dtype_width(dtype);
    linear l = {.steps = q->dims[1],
                .q_heads = p->q_num_heads,
                .kv_heads = p->kv_num_heads,
                .dk = q->dims[2] / p->q_num_heads,
                .dv = v->dims[2] / p->kv_num_heads,
                .decay_row = decay ? decay->dims[2] : 0,
                .beta_row = beta ? beta->dims[2] : 0};
    l.decay_each = l.decay_row / l.kv_heads;
    l.scale = p->scale != 0 ? (double)p->scale : 1 / sqrt((double)l.dk);
    int64_t rows = q->dims[0] * l.kv_heads, cells;
    const void *start;
    SN_TRY(sni_in_as(k, q, dtype, &l.q));
    SN_TRY(sni_in_as(k, sni_in(k, 1), dtype, &l.k));
    SN_TRY(sni_in_as(k, v, dtype, &l.v));
    SN_TRY(sni_in_as(k, decay, dtype, &l.decay));
    SN_TRY(sni_in_as(k, beta, dtype, &l.beta));
    SN_TRY(sni_in_as(k, past, dtype, &start));
    SN_TRY(sni_out_as(k, sni_out(k, 0), dtype, &l.y));
    cells = l.dk * l.dv; /* fits: the state is a tensor */
    SN_TRY(sni_scratch_matrix(k, rows, cells, width, &l.state));
    SN_TRY(sni_scratch_matrix(k, rows, l.dv, width, &l.write));
    if (past)
        sni_copy_bytes(l.state, start, (size_t)(rows * cells) * width);
    else
        memset(l.state, 0, (size_t)(rows * cells) * width);
    sni_parallel_for(k->threads, rows, 1, dtype == SN_FLOAT64 ? heads_f64 : heads_f32, &l);
    sni_out_done(k, sni_out(k, 0), dtype, l.y);
    if (!sni_out(k, 1)) return SN_OK;
    if (sni_out(k, 1)->dtype == dtype)
        sni_copy_bytes(sni_out(k, 1)->data, l.state, (size_t)(rows * cells) * width);
    sni_out_done(k, sni_out(k, 1), dtype, l.state);
    return SN_OK;
}

#define FIELD(f) offsetof(linear_params, f)

const sni_op sni_op_LinearAttention = {
    .name = "LinearAttention",
    .versions = SNI_VERSIONS(27),
    .inputs =
        SNI_FORMALS({"query", "T"}, {"key", "T"}, {"value", "T"}, {"past_state", "S", SNI_OPTIONAL},
                    {"decay", "T", SNI_OPTIONAL}, {"beta", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"present_state", "S"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"S", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"chunk_size", SNI_ATTR_INT, FIELD(chunk_size), .number = 64},
                         {"kv_num_heads", SNI_ATTR_INT, FIELD(kv_num_heads), .required = true},
                         {"q_num_heads", SNI_ATTR_INT, FIELD(q_num_heads), .required = true},
                         {"scale", SNI_ATTR_FLOAT, FIELD(scale)},
                         {"update_rule", SNI_ATTR_STRING, FIELD(rule), .text = "gated_delta",
                          .choices = "linear|gated|delta|gated_delta"}),
    .params_size = sizeof(linear_params),
    .infer = linear_infer,
    .ref = linear_ref,
};
