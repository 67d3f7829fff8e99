/* qlinear.c - what stands between DequantizeLinear and QuantizeLinear runs on the integers
 * themselves: products, sums, pools and activations become the operators that ONNX and
 * com.microsoft have for them. The results are at most one step away from those of the long way,
 * which rounds to floats in between. */
#include "opt/rules/rules.h"

#include <math.h>

/* ---- Scales and zero points ---- */

static bool is_bytes(sn_dtype dtype) {
    return dtype == SN_UINT8 || dtype == SN_INT8;
}

static sn_dtype root_dtype(const sni_match *m) {
    return sni_graph_value(m->g, m->root->out[0])->type.dtype;
}

/* Scales that can be multiplied and divided by: positive, and neither tiny nor huge. */
static bool is_scale(const sni_match *m, const char *name, int64_t count) {
    const sni_tensor *t = sni_match_const(m, name);
    if (!t || t->dtype != SN_FLOAT32 || (t->count != 1 && (t->rank != 1 || t->count != count)))
        return false;
    for (int64_t i = 0; i < t->count; i++) {
        float s = ((const float *)t->data)[i];
        if (!(s > 1e-18f && s < 1e18f)) return false;
    }
    return true;
}

static bool is_zero(const sni_match *m, const char *name, sn_dtype dtype, int64_t count) {
    const sni_tensor *t = sni_match_const(m, name);
    return t && t->dtype == dtype && (t->count == 1 || (t->rank == 1 && t->count == count));
}

/* x, y, ... is a tensor of bytes with one scale s? and zero point z?. */
static bool is_quantised(const sni_match *m, const char *x, const char *s, const char *z) {
    sn_dtype dtype = sni_match_type(m, x)->dtype;
    return is_bytes(dtype) && is_scale(m, s, 1) && is_zero(m, z, dtype, 1);
}

/* The same of the match's root. */
static bool is_root_quantised(const sni_match *m) {
    sn_dtype dtype = root_dtype(m);
    return is_bytes(dtype) && is_scale(m, "sy", 1) && is_zero(m, "zy", dtype, 1);
}

/* A scale for each block of elements is a matter of its own. */
static bool is_blocked(const sni_node *n) {
    const sni_attr *a = sni_node_attr(n, "block_size");
    return a && a->u.i != 0;
}

static bool has_no_blocks(const sni_match *m) {
    for (int i = 0; i < m->n_nodes; i++)
        if (is_blocked(m->nodes[i])) return false;
    return true;
}

static float scale_at(const sni_match *m, const char *name, int64_t i) {
    const sni_tensor *t = sni_match_const(m, name);
    return ((const float *)t->data)[t->count == 1 ? 0 : i];
}

/* ---- Weights ---- */

/* Weights w with scales and zero points for the whole, or for each channel along `axis`. */
static bool is_weight(const sni_match *m, int rank, int axis) {
    const sni_type *w = sni_match_type(m, "w");
    if (!is_bytes(w->dtype) || !w->has_shape || (rank && w->rank != rank) || w->rank <= axis)
        return false;
    int64_t channels = w->dims[axis];
    if (!sni_dim_known(channels) || channels < 1 || !is_scale(m, "sw", channels) ||
        !is_zero(m, "zw", w->dtype, channels))
        return false;
    const sni_attr *at = sni_match_attr(m, "va");
    int64_t along = at ? at->u.i : 1;
    if (along < 0) along += w->rank;
    return sni_match_const(m, "sw")->count == 1 || along == axis;
}

/* The bias of `channels`: given as float or as integers with a scale, or left out. */
static bool bias_at(const sni_match *m, int64_t i, double *out) {
    const sni_tensor *b = sni_match_const(m, "b"), *bi = sni_match_const(m, "bi");
    *out = b ? (double)((const float *)b->data)[i] : 0;
    if (bi) *out = (double)((const int32_t *)bi->data)[i] * (double)scale_at(m, "sb", i);
    return isfinite(*out);
}

/* The bias in units of the sums, as the integer that it was or rounded. */
static double bias_units(const sni_match *m, int64_t i) {
    double v, unit = (double)(scale_at(m, "sx", 0) * scale_at(m, "sw", i));
    const sni_tensor *bi = sni_match_const(m, "bi");
    if (bi && fabs((double)scale_at(m, "sb", i) - unit) < 1e-4 * unit)
        return ((const int32_t *)bi->data)[i];
    return bias_at(m, i, &v) ? rint(v / unit) : NAN;
}

static bool is_bias(const sni_match *m, int64_t channels) {
    if (sni_match_value(m, "bi") != SNI_NO_ID) {
        const sni_tensor *bi = sni_match_const(m, "bi"), *zb = sni_match_const(m, "zb");
        if (!bi || bi->dtype != SN_INT32 || bi->count != channels || !is_scale(m, "sb", channels))
            return false;
        for (int64_t i = 0; zb && i < zb->count; i++)
            if (zb->dtype != SN_INT32 || ((const int32_t *)zb->data)[i] != 0) return false;
    } else if (sni_match_value(m, "b") != SNI_NO_ID) {
        const sni_tensor *b = sni_match_const(m, "b");
        if (!b || b->dtype != SN_FLOAT32 || b->count != channels || b->rank < 1 ||
            b->dims[b->rank - 1] != channels)
            return false;
    } else {
        return true;
    }
    for (int64_t i = 0; i < channels; i++)
        if (!(fabs(bias_units(m, i)) < 2147483647.0)) return false;
    return true;
}

/* Binds b2, if there is a bias. */
static sn_status build_bias(sni_match *m, int64_t channels) {
    void *data;
    if (sni_match_value(m, "bi") == SNI_NO_ID && sni_match_value(m, "b") == SNI_NO_ID) return SN_OK;
    SN_TRY(sni_match_new_const(m, "b2", SN_INT32, 1, &channels, &data));
    for (int64_t i = 0; i < channels; i++) ((int32_t *)data)[i] = (int32_t)bias_units(m, i);
    return SN_OK;
}

/* ---- Products ---- */

static bool same_bytes(const sni_match *m) {
    return sni_match_type(m, "x")->dtype == root_dtype(m);
}

static bool is_conv(sni_match *m) {
    return is_quantised(m, "x", "sx", "zx") && is_root_quantised(m) && same_bytes(m) &&
           has_no_blocks(m) && is_weight(m, 0, 0) && is_bias(m, sni_match_type(m, "w")->dims[0]);
}

static sn_status build_conv(sni_match *m) {
    return build_bias(m, sni_match_type(m, "w")->dims[0]);
}

static int gemm_axis(const sni_match *m) {
    const sni_attr *t = sni_match_attr(m, "t");
    return t && t->u.i ? 0 : 1;
}

static bool is_gemm(sni_match *m) {
    int axis = gemm_axis(m);
    return is_quantised(m, "x", "sx", "zx") && is_root_quantised(m) && same_bytes(m) &&
           has_no_blocks(m) && is_weight(m, 2, axis) &&
           is_bias(m, sni_match_type(m, "w")->dims[axis]);
}

static sn_status build_gemm(sni_match *m) {
    return build_bias(m, sni_match_type(m, "w")->dims[gemm_axis(m)]);
}

/* One scale for all of w, or weights (k,n) with one for each column. */
static bool is_product(const sni_match *m) {
    const sni_type *w = sni_match_type(m, "w");
    if (!is_quantised(m, "x", "sx", "zx") || !has_no_blocks(m)) return false;
    return is_quantised(m, "w", "sw", "zw") ||
           (sni_match_const(m, "w") != NULL && w->rank == 2 && is_weight(m, 2, 1));
}

static bool is_matmul(sni_match *m) {
    return is_product(m) && is_root_quantised(m) && same_bytes(m);
}

/* Somebody will quantise the result: then there is a better rule. */
static bool is_quantised_next(const sni_match *m) {
    const sni_value *v = sni_graph_value(m->g, m->root->out[0]);
    for (int depth = 0; depth < 3; depth++) {
        const sni_node *n = v && v->use_count == 1 && v->uses[0].node != SNI_NO_ID
                                ? sni_graph_node(m->g, v->uses[0].node)
                                : NULL;
        if (!n || !n->op) return false;
        if (sni_str_is(n->type, "QuantizeLinear")) return true;
        if (!sni_str_is(n->type, "Relu") && !sni_str_is(n->type, "Clip")) return false;
        v = sni_graph_value(m->g, n->out[0]);
    }
    return false;
}

static bool is_float_matmul(sni_match *m) {
    const sni_tensor *w = sni_match_const(m, "w");
    return w && w->rank == 2 && is_product(m) && !is_quantised_next(m);
}

static bool is_float_gemm(sni_match *m) {
    const sni_type *b = sni_match_value(m, "b") == SNI_NO_ID ? NULL : sni_match_type(m, "b");
    int axis = gemm_axis(m);
    if (!is_quantised(m, "x", "sx", "zx") || !has_no_blocks(m) || !is_weight(m, 2, axis) ||
        !sni_match_const(m, "w") || is_quantised_next(m))
        return false;
    return !b || (b->has_shape && b->rank == 1 && b->dims[0] == sni_match_type(m, "w")->dims[axis]);
}

/* Binds w2: the weights as (k,n). */
static sn_status build_float_gemm(sni_match *m) {
    const sni_tensor *w = sni_match_const(m, "w");
    void *data;
    if (!w) return sni_fail(m->r->err, SN_INTERNAL, "the weights are no longer there");
    if (gemm_axis(m) == 1) return sni_match_set_value(m, "w2", sni_match_value(m, "w"));
    int64_t n = w->dims[0], k = w->dims[1], dims[2] = {k, n};
    SN_TRY(sni_match_new_const(m, "w2", w->dtype, 2, dims, &data));
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = 0; p < k; p++)
            ((uint8_t *)data)[p * n + i] = ((const uint8_t *)w->data)[i * k + p];
    return SN_OK;
}

/* A single element, whose rank does not show in the result. */
static bool is_single(const sni_type *t) {
    return t->dtype == SN_FLOAT32 && t->has_shape &&
           (t->rank == 0 || (t->rank == 1 && t->dims[0] == 1));
}

/* The scales of a product of integers, put on afterwards: one of A, one or one a column of B. */
static bool is_scaled_product(sni_match *m) {
    const sni_tensor *w = sni_match_const(m, "w"), *sw = sni_match_const(m, "sw");
    if (!w || !sw || w->rank != 2 || sw->dtype != SN_FLOAT32 || !is_single(sni_match_type(m, "sa")))
        return false;
    const sni_tensor *zw = sni_match_const(m, "zw");
    if (zw && zw->count != 1 && (zw->rank != 1 || zw->count != w->dims[1])) return false;
    return sw->count == 1 ? sw->rank < 2 : sw->rank == 1 && sw->count == w->dims[1];
}

static bool is_row(sni_match *m) {
    const sni_tensor *w = sni_match_const(m, "w"), *b = sni_match_const(m, "b");
    return w && b && b->dtype == SN_FLOAT32 && b->rank == 1 && b->count == w->dims[1];
}

/* ---- Sums, pools and activations ---- */

static bool is_pair(sni_match *m) {
    return is_quantised(m, "x", "sx", "zx") && is_quantised(m, "w", "sw", "zw") &&
           is_root_quantised(m) && same_bytes(m) &&
           sni_match_type(m, "w")->dtype == root_dtype(m) && has_no_blocks(m);
}

static bool is_unary(sni_match *m) {
    return is_quantised(m, "x", "sx", "zx") && is_root_quantised(m) && same_bytes(m) &&
           has_no_blocks(m);
}

static bool is_average(sni_match *m) {
    const sni_attr *a = sni_node_attr(sni_match_node(m, "p"), "dilations");
    for (size_t i = 0; a && i < a->count; i++)
        if (a->u.ints[i] != 1) return false;
    return is_unary(m);
}

static bool is_concat(sni_match *m) {
    static const char *const names[][3] = {
        {"x", "sx", "zx"}, {"w", "sw", "zw"}, {"u", "su", "zu"}, {"v", "sv", "zv"}};
    for (int i = 0; i < 4; i++)
        if (sni_match_value(m, names[i][0]) != SNI_NO_ID &&
            (!is_quantised(m, names[i][0], names[i][1], names[i][2]) ||
             sni_match_type(m, names[i][0])->dtype != root_dtype(m)))
            return false;
    return is_root_quantised(m) && has_no_blocks(m);
}

/* ---- The rules ---- */

#define DQ(x, s, z) "~DequantizeLinear(" x ", %" s ", %" z ")"
#define X DQ("x", "sx", "zx")
#define W DQ("w", "sw", "zw")
#define WEIGHTS "~DequantizeLinear<axis = @va>(%w, %sw, %zw)"
#define BIAS "{~DequantizeLinear(%bi, %sb, %zb?) | %b?}"
#define Q(inner) "QuantizeLinear(" inner ", %sy, %zy)"
#define MS "com.microsoft."
#define UNARY(op) MS "QLinear" op "(x, sx, zx, sy, zy)"

#define X_U8 "%sx=0.03 %zx=uint8:120 "
#define X_S8 "%sx=0.03 %zx=int8:-3 "
#define Y_U8 "%sy=0.11 %zy=uint8:100"
#define Y_S8 "%sy=0.11 %zy=int8:7"
#define W_S8 "%sw=0.01 %zw=int8:0 "

const sni_rule sni_rules_qlinear[] = {
    {"quantised-conv", Q("c:Conv(" X ", " WEIGHTS ", " BIAS ")"),
     "QLinearConv<*c>(x, sx, zx, w, sw, zw, sy, zy, b2)", .where = is_conv, .build = build_conv,
     .steps = 1,
     .sample = "x=uint8[N,3,6,5] %w=int8[4,3,3,3] %bi=int32[4] %sb=0.0003 %zb=int32:0 "
               "%b=[4] " X_U8 W_S8 Y_U8 "; x=int8[2,2,7,7] %w=int8[6,2,1,1] %bi=int32[6] "
               "%sb=0.002 %zb=int32:0 %b=[6] " X_S8 "%sw=+[6] %zw=int8[6] @va=0 %sy=9 %zy=int8:7; "
               "x=uint8[1,4,9] %w=uint8[3,4,2] %bi=int32[3] %sb=0.002 %zb=int32:0 "
               "%b=[3] " X_U8 "%sw=0.01 %zw=uint8:127 " Y_U8},
    {"quantised-gemm",
     Q("Gemm<alpha = 1, beta = 1, transA = 0, transB = @t>(" X ", " WEIGHTS ", " BIAS ")"),
     MS "QGemm<transB = @t>(x, sx, zx, w, sw, zw, b2, sy, zy)", .where = is_gemm,
     .build = build_gemm, .steps = 1,
     .sample =
         "x=uint8[5,7] %w=int8[7,4] @t=0 %bi=int32[4] %sb=0.0003 %zb=int32:0 %b=[4] " X_U8 W_S8 Y_U8
         "; x=int8[5,7] %w=int8[4,7] @t=1 @va=0 %bi=int32[4] %sb=0.0003 "
         "%zb=int32:0 %b=[4] " X_S8 "%sw=+[4] %zw=int8[4] %sy=9 %zy=int8:7"},
    {"quantised-matmul", Q("MatMul(" X ", ~DequantizeLinear<axis = @va>(w, %sw, %zw))"),
     "QLinearMatMul(x, sx, zx, w, sw, zw, sy, zy)", .where = is_matmul, .steps = 1,
     .sample = "x=uint8[2,5,7] w=uint8[2,7,4] " X_U8 "%sw=0.01 %zw=uint8:128 " Y_U8
               "; x=int8[5,7] w=int8[7,4] " X_S8 W_S8 Y_S8},
    {"quantised-matmul-columns", Q("MatMul(" X ", " WEIGHTS ")"),
     "QLinearMatMul(x, sx, zx, w, sw, zw, sy, zy)", .where = is_matmul, .steps = 1,
     .sample = "x=int8[N,5,7] %w=int8[7,4] @va=1 " X_S8 "%sw=+[4] %zw=int8[4] %sy=9 %zy=int8:7"},
    {"quantised-matmul-float", "MatMul(" X ", " WEIGHTS ")",
     MS "MatMulIntegerToFloat(x, w, sx, sw, zx, zw)", .where = is_float_matmul,
     .sample = "x=uint8[N,5,7] %w=int8[7,4] @va=1 " X_U8 "%sw=+[4] %zw=int8[4]"},
    {"quantised-gemm-float",
     "Gemm<alpha = 1, beta = 1, transA = 0, transB = @t>(" X ", " WEIGHTS ", b?)",
     MS "MatMulIntegerToFloat(x, w2, sx, sw, zx, zw, b)", .where = is_float_gemm,
     .build = build_float_gemm,
     .sample = "x=uint8[5,7] %w=int8[7,4] @t=0 @va=1 " X_U8 "%sw=+[4] %zw=int8[4] b=[4]; "
               "x=int8[5,7] %w=int8[4,7] @t=1 @va=0 " X_S8 "%sw=+[4] %zw=int8[4] b=[4]"},
    {"scaled-integers", "Mul(Cast<to = 1>(MatMulInteger(a, %w, za?, %zw?)), Mul(sa, %sw))",
     MS "MatMulIntegerToFloat(a, w, sa, sw, za, zw)", .where = is_scaled_product,
     .sample = "a=uint8[N,5,7] %w=int8[7,4] za=uint8[1] %zw=int8:3 sa=[1] %sw=[4]"},
    {"scaled-integers-bias", "Add(" MS "MatMulIntegerToFloat(a, %w, sa, sw, za?, zw?), %b)",
     MS "MatMulIntegerToFloat(a, w, sa, sw, za, zw, b)", .where = is_row,
     .sample = "a=uint8[N,5,7] %w=int8[7,4] za=uint8[1] zw=int8[1] sa=[1] sw=[4] %b=[4]"},
    {"quantised-add", Q("Add(" X ", " W ")"), MS "QLinearAdd(x, sx, zx, w, sw, zw, sy, zy)",
     .where = is_pair, .steps = 1,
     .sample = "x=uint8[N,3,8] w=uint8[3,1] " X_U8 "%sw=0.05 %zw=uint8:90 " Y_U8
               "; x=int8[N,3,8] w=int8[N,3,8] " X_S8 "%sw=0.07 %zw=int8:5 " Y_S8},
    {"quantised-mul", Q("Mul(" X ", " W ")"), MS "QLinearMul(x, sx, zx, w, sw, zw, sy, zy)",
     .where = is_pair, .steps = 1,
     .sample = "x=uint8[N,3,8] w=uint8[3,1] " X_U8 "%sw=0.05 %zw=uint8:90 " Y_U8
               "; x=int8[N,3,8] w=int8[N,3,8] " X_S8 "%sw=0.07 %zw=int8:5 " Y_S8},
    {"quantised-where", Q("Where(c, " X ", " W ")"),
     MS "QLinearWhere(c, x, sx, zx, w, sw, zw, sy, zy)", .where = is_pair, .steps = 1,
     .sample = "c=bool[N,3,8] x=uint8[N,3,8] w=uint8[3,1] " X_U8 "%sw=0.05 %zw=uint8:90 " Y_U8},
    {"quantised-sigmoid", Q("Sigmoid(" X ")"), UNARY("Sigmoid"), .where = is_unary, .steps = 1,
     .sample = "x=uint8[N,3,8] " X_U8 "%sy=0.004 %zy=uint8:0; x=int8[N,8] " X_S8
               "%sy=0.004 %zy=int8:-128"},
    {"quantised-leaky-relu", Q("LeakyRelu<alpha = @a>(" X ")"),
     MS "QLinearLeakyRelu<alpha = @a>(x, sx, zx, sy, zy)", .where = is_unary, .steps = 1,
     .sample = "x=uint8[N,3,8] @a=0.1 " X_U8 "%sy=0.03 %zy=uint8:40"},
    {"quantised-softmax", Q("Softmax<axis = @a>(" X ")"),
     MS "QLinearSoftmax<axis = @a, opset = 13>(x, sx, zx, sy, zy)", .where = is_unary, .steps = 1,
     .sample = "x=uint8[N,3,8] @a=1 " X_U8 "%sy=0.004 %zy=uint8:0; x=int8[N,8] @a=-1 " X_S8
               "%sy=0.004 %zy=int8:-128"},
    {"quantised-global-average", Q("GlobalAveragePool(" X ")"), UNARY("GlobalAveragePool"),
     .where = is_unary, .steps = 1,
     .sample = "x=uint8[N,3,5,7] " X_U8 Y_U8 "; x=int8[2,5,6,4] " X_S8 Y_S8},
    {"quantised-average",
     Q("p:AveragePool<kernel_shape = @k, strides = @st, pads = @pads, auto_pad = @ap, "
       "ceil_mode = @c, count_include_pad = @i>(" X ")"),
     MS "QLinearAveragePool<kernel_shape = @k, strides = @st, pads = @pads, auto_pad = @ap, "
        "ceil_mode = @c, count_include_pad = @i>(x, sx, zx, sy, zy)",
     .where = is_average, .steps = 1, .sample = "x=uint8[N,3,5,7] @k=[2,3] " X_U8 Y_U8},
    {"quantised-concat", Q("Concat<axis = @a>(" X ", " W ")"),
     MS "QLinearConcat<axis = @a>(sy, zy, x, sx, zx, w, sw, zw)", .where = is_concat, .steps = 1,
     .sample = "x=uint8[N,3,8] w=uint8[N,2,8] @a=1 " X_U8 "%sw=0.05 %zw=uint8:90 " Y_U8},
    {"quantised-concat-3", Q("Concat<axis = @a>(" X ", " W ", " DQ("u", "su", "zu") ")"),
     MS "QLinearConcat<axis = @a>(sy, zy, x, sx, zx, w, sw, zw, u, su, zu)", .where = is_concat,
     .steps = 1,
     .sample = "x=uint8[N,3,8] w=uint8[N,2,8] u=uint8[N,1,8] @a=1 " X_U8
               "%sw=0.05 %zw=uint8:90 %su=0.2 %zu=uint8:128 " Y_U8},
    {"quantised-concat-4",
     Q("Concat<axis = @a>(" X ", " W ", " DQ("u", "su", "zu") ", " DQ("v", "sv", "zv") ")"),
     MS "QLinearConcat<axis = @a>(sy, zy, x, sx, zx, w, sw, zw, u, su, zu, v, sv, zv)",
     .where = is_concat, .steps = 1,
     .sample = "x=uint8[N,3,8] w=uint8[N,2,8] u=uint8[N,1,8] v=uint8[N,4,8] @a=1 " X_U8
               "%sw=0.05 %zw=uint8:90 %su=0.2 %zu=uint8:128 %sv=0.1 %zv=uint8:3 " Y_U8},
    {0},
};
