/* quantize.c - tensors that are dequantised and quantised again the same way stay in integers. */
#include "opt/rules/rules.h"

#include <math.h>

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

/* ---- Limits ---- */

static bool limit_of(const sni_match *m, const char *name, double *out) {
    if (sni_match_value(m, name) == SNI_NO_ID) return true;
    const sni_tensor *t = sni_match_const(m, name);
    if (!t || t->count != 1 || t->dtype != SN_FLOAT32) return false;
    *out = (double)*(const float *)t->data;
    return *out == *out;
}

/* Lowest and greatest number of the quantised result, and its scale and zero point. */
typedef struct range {
    double low, high, scale, zero;
} range;

static bool range_of(const sni_match *m, range *r) {
    const sni_tensor *s = sni_match_const(m, "s"), *z = sni_match_const(m, "z");
    if (!s || !z || s->count != 1 || z->count != 1 || s->dtype != SN_FLOAT32) return false;
    if (z->dtype != SN_UINT8 && z->dtype != SN_INT8) return false;
    bool is_signed = z->dtype == SN_INT8;
    *r = (range){.low = is_signed ? -128 : 0, .high = is_signed ? 127 : 255};
    r->scale = (double)*(const float *)s->data;
    r->zero = is_signed ? *(const int8_t *)z->data : *(const uint8_t *)z->data;
    return r->scale > 1e-30 && r->scale < 1e30;
}

/* Limits beyond what bytes can say do nothing. */
static bool covers_range(sni_match *m) {
    double low = -INFINITY, high = INFINITY;
    range r;
    if (!limit_of(m, "low", &low) || !limit_of(m, "high", &high) || !range_of(m, &r)) return false;
    return low <= (r.low - r.zero) * r.scale && high >= (r.high - r.zero) * r.scale;
}

static bool has_limits(sni_match *m) {
    double limit;
    range r;
    return limit_of(m, "low", &limit) && limit_of(m, "high", &limit) && range_of(m, &r);
}

/* Binds a limit as a byte; it is rounded as the elements are. */
static sn_status build_limit(sni_match *m, const char *name, double v) {
    range r = {0};
    void *data;
    range_of(m, &r);
    SN_TRY(sni_match_new_const(m, name, root_type(m)->dtype, 0, NULL, &data));
    float q = rintf((float)v / (float)r.scale) + (float)r.zero;
    q = q > (float)r.low ? q : (float)r.low;
    q = q < (float)r.high ? q : (float)r.high;
    *(uint8_t *)data = (uint8_t)(int)q;
    return SN_OK;
}

static sn_status build_limits(sni_match *m) {
    double low = -INFINITY, high = INFINITY;
    limit_of(m, "low", &low);
    limit_of(m, "high", &high);
    SN_TRY(build_limit(m, "l", low));
    return build_limit(m, "h", high);
}

static sn_status build_zero_limit(sni_match *m) {
    return build_limit(m, "l", 0);
}

/* ---- Movers ---- */

/* Padding with 0.0 is padding with the zero point. */
static bool pads_with_zero(sni_match *m) {
    double v = 0;
    return is_round_trip(m) && limit_of(m, "v", &v) && v == 0;
}

static sn_status build_padding(sni_match *m) {
    const sni_tensor *z = sni_match_const(m, "z");
    void *data;
    SN_TRY(sni_match_new_const(m, "p2", root_type(m)->dtype, 0, NULL, &data));
    if (z) memcpy(data, z->data, 1);
    return SN_OK;
}

static bool copies_nearest(sni_match *m) {
    const sni_attr *a = sni_node_attr(sni_match_node(m, "t"), "coordinate_transformation_mode");
    return is_round_trip(m) && !(a && sni_str_is(a->u.s, "tf_crop_and_resize"));
}

#define AGAIN(inner) "QuantizeLinear(" inner ", %s, %z)"
#define FLOAT "~DequantizeLinear(x, %s, %z)"
/* Sums and products of what was dequantised: there is no NaN for limits to let through. */
#define CONV "n:Conv(~DequantizeLinear(x, a, d?), y, c?)"
#define PAIR "n:Add|Mul|MatMul(~DequantizeLinear(x, a, d?), y)"
#define LIMITED(inner) "q:QuantizeLinear(" inner ", %s, %z)"
#define CLIPPED "Clip(QuantizeLinear<*q>(n, s, z), l"
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
    {"quantize-clip-away", "q:QuantizeLinear(Clip(x, %low?, %high?), %s, %z)",
     "QuantizeLinear<*q>(x, s, z)", .where = covers_range,
     .sample = "%low=0 %high=6 %s=0.0235 %z=uint8:0"},
    {"quantize-clip-conv", LIMITED("Clip(" CONV ", %low?, %high?)"), CLIPPED ", h)",
     .where = has_limits, .build = build_limits,
     .sample = "x=uint8[N,2,5,5] a=+[1] d=uint8[1] y=[3,2,3,3] c=[3] %low=0.3 %high=0.9 %s=0.02 "
               "%z=uint8:100"},
    {"quantize-clip", LIMITED("Clip(" PAIR ", %low?, %high?)"), CLIPPED ", h)", .where = has_limits,
     .build = build_limits,
     .sample = "x=int8[N,8,8] a=+[1] d=int8[1] y=[8,8] %low=0.3 %high=0.9 %s=0.02 %z=int8:-100"},
    {"quantize-relu-conv", LIMITED("Relu(" CONV ")"), CLIPPED ")", .where = has_limits,
     .build = build_zero_limit,
     .sample = "x=uint8[N,2,5,5] a=+[1] d=uint8[1] y=[3,2,3,3] c=[3] %s=0.2 %z=uint8:100"},
    {"quantize-relu-at-zero", LIMITED("Relu(" PAIR ")"), CLIPPED ")", .where = has_limits,
     .build = build_zero_limit,
     .sample = "x=int8[N,8,8] a=+[1] d=int8[1] y=[8,8] %s=0.02 %z=int8:-100"},
    {"quantize-gather", AGAIN("t:Gather<axis = @a>(" FLOAT ", i)"), "Gather<*t>(x, i)",
     .where = is_round_trip, .sample = BYTES " i=int64{2,0} @a=1"},
    {"quantize-pad", AGAIN("t:Pad<mode = \"constant\">(" FLOAT ", p, %v?, a?)"),
     "Pad<*t>(x, p, p2, a)", .where = pads_with_zero, .build = build_padding,
     .sample = BYTES " p=int64{1,0} %v=0 a=int64{3}"},
    {"quantize-resize", AGAIN("t:Resize<mode = \"nearest\">(" FLOAT ", r?, %sc)"),
     "Resize<*t>(x, r, sc)", .where = copies_nearest, .sample = BYTES " r=[0] %sc=1[4]"},
    {"quantize-resize-sizes", AGAIN("t:Resize<mode = \"nearest\">(" FLOAT ", r?, _, si)"),
     "Resize<*t>(x, r, _, si)", .where = copies_nearest,
     .sample = "x=uint8[2,3,4,5] %s=0.05 %z=uint8:128 r=[0] si=int64{2,3,8,10}"},
    {"quantize-depth-to-space", AGAIN("t:DepthToSpace<blocksize = @b>(" FLOAT ")"),
     "DepthToSpace<*t>(x)", .where = is_round_trip,
     .sample = "x=uint8[N,8,4,5] %s=0.05 %z=uint8:128 @b=2"},
    {"quantize-expand", AGAIN("Expand(" FLOAT ", h)"), "Expand(x, h)", .where = is_round_trip,
     .sample = "x=uint8[3,1] %s=0.05 %z=uint8:128 h=int64{2,3,5}"},
    {"quantize-tile", AGAIN("Tile(" FLOAT ", h)"), "Tile(x, h)", .where = is_round_trip,
     .sample = "x=uint8[3,2] %s=0.05 %z=uint8:128 h=int64{2,3}"},
    {0},
};
