/* quantize.c - tensors that are dequantised and quantised again the same way stay in integers. */
#include "opt/rules/rules.h"

static const sni_type *root_type(const sni_match *m) {
    return &sni_graph_value(m->g, m->root->out[0])->type;
}

/* One scale for all of a tensor, and the integers are of the same type before and after. Then the
 * way to float and back changes nothing: the rounding of scale * n / scale is far below one half.
 */
static bool is_round_trip(sni_match *m) {
    const sni_const *s = sni_value_const(m->g, sni_match_value(m, "s"));
    const sni_type *x = sni_match_type(m, "x");
    if (!s || s->tensor.count != 1 || s->tensor.dtype != SN_FLOAT32) return false;
    const sni_tensor *t = sni_match_const(m, "s");
    float scale;
    if (!t) return false;
    memcpy(&scale, t->data, sizeof scale);
    return scale > 1e-30f && scale < 1e30f && x->dtype == root_type(m)->dtype &&
           (x->dtype == SN_UINT8 || x->dtype == SN_INT8);
}

/* The zero point is the lowest number of its type: what is below 0 becomes that without a Relu. */
static bool starts_at_zero(sni_match *m) {
    const sni_tensor *z = sni_match_const(m, "z");
    if (!z || z->count != 1) return false;
    if (z->dtype == SN_UINT8) return *(const uint8_t *)z->data == 0;
    return z->dtype == SN_INT8 && *(const int8_t *)z->data == INT8_MIN;
}

/* A zero point that is left out is written down: other rules need not know two forms. */
static bool makes_bytes(sni_match *m) {
    sn_dtype dtype = root_type(m)->dtype;
    return dtype == SN_UINT8 || dtype == SN_INT8;
}

static bool takes_bytes(sni_match *m) {
    sn_dtype dtype = sni_match_type(m, "x")->dtype;
    return dtype == SN_UINT8 || dtype == SN_INT8;
}

static sn_status build_zero(sni_match *m) {
    const sni_tensor *s = &sni_value_const(m->g, sni_match_value(m, "s"))->tensor;
    void *data;
    sn_dtype dtype = makes_bytes(m) ? root_type(m)->dtype : sni_match_type(m, "x")->dtype;
    return sni_match_new_const(m, "z", dtype, s->rank, s->dims, &data);
}

#define AGAIN(inner) "QuantizeLinear(" inner ", %s, %z)"
#define FLOAT "~DequantizeLinear(x, %s, %z)"
#define BYTES "x=uint8[N,3,4,5] %s=0.05 %z=uint8:128"

const sni_rule sni_rules_quantize[] = {
    {"quantize-zero", "q:QuantizeLinear(x, %s)", "QuantizeLinear<*q>(x, s, z)",
     .where = makes_bytes, .build = build_zero, .level = 1, .sample = "%s=0.02"},
    {"dequantize-zero", "q:DequantizeLinear(x, %s)", "DequantizeLinear<*q>(x, s, z)",
     .where = takes_bytes, .build = build_zero, .level = 1,
     .sample = "x=uint8[N,3,4] %s=0.02; x=int8[N,3,4] %s=0.05"},
    {"quantize-again", AGAIN(FLOAT), "x", .where = is_round_trip, .level = 1, .sample = BYTES},
    {"quantize-transpose", AGAIN("t:Transpose<perm = @p>(" FLOAT ")"), "Transpose<*t>(x)",
     .where = is_round_trip, .sample = BYTES " @p=[0,2,3,1]"},
    {"quantize-reshape", AGAIN("t:Reshape(" FLOAT ", h)"), "Reshape<*t>(x, h)",
     .where = is_round_trip, .sample = BYTES " h=int64{0,-1}"},
    {"quantize-flatten", AGAIN("t:Flatten<axis = @a>(" FLOAT ")"), "Flatten<*t>(x)",
     .where = is_round_trip, .sample = BYTES " @a=2"},
    {"quantize-unsqueeze", AGAIN("Unsqueeze(" FLOAT ", h)"), "Unsqueeze(x, h)",
     .where = is_round_trip, .sample = BYTES " h=int64{1}"},
    {"quantize-squeeze", AGAIN("Squeeze(" FLOAT ", h?)"), "Squeeze(x, h)", .where = is_round_trip,
     .sample = "x=uint8[2,1,5] %s=0.05 %z=uint8:128 h=int64{1}"},
    {"quantize-slice", AGAIN("Slice(" FLOAT ", b, e, a?, s1?)"), "Slice(x, b, e, a, s1)",
     .where = is_round_trip,
     .sample = BYTES " b=int64{0,1} e=int64{2,3} a=int64{1,2} s1=int64{1,1}"},
    {"quantize-max-pool", AGAIN("t:MaxPool<kernel_shape = @k>(" FLOAT ")"), "MaxPool<*t>(x)",
     .where = is_round_trip, .sample = BYTES " @k=[2,2]"},
    {"quantize-concat", AGAIN("t:Concat<axis = @a>(" FLOAT ", ~DequantizeLinear(y, %s, %z))"),
     "Concat<*t>(x, y)", .where = is_round_trip, .sample = BYTES " y=uint8[N,3,4,5] @a=1"},
    {"quantize-relu", "q:QuantizeLinear(Relu(x), %s, %z)", "QuantizeLinear<*q>(x, s, z)",
     .where = starts_at_zero, .sample = "%s=0.02 %z=uint8:0; %s=0.02 %z=int8:-128"},
    {0},
};
