/* activations.c - activations and softmax as exporters spell them out. */
#include "opt/rules/rules.h"

#define RELU6 "{Clip(Add(x, 3), 0, 6) | Min(Relu(Add(x, 3)), 6)}"
#define SIXTH "0.16666667"

static bool is_below_one(sni_match *m) {
    double a = sni_match_number(m, "a");
    return a > 0 && a < 1;
}

/* The only axis of a constant list. */
static bool is_one_axis(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "axes");
    return t && t->dtype == SN_INT64 && t->count == 1;
}

static sn_status read_axis(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "axes");
    sni_attr a = {.kind = SNI_ATTR_INT};
    if (!t) return sni_fail(m->r->err, SN_INTERNAL, "axes are no longer there");
    memcpy(&a.u.i, t->data, sizeof a.u.i);
    return sni_match_set_attr(m, "axis", a);
}

/* The same slope for all, of what is not widened by it. */
static bool is_one_slope(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "s");
    if (!t || t->dtype != SN_FLOAT32 || t->count < 1 || sni_match_type(m, "x")->dtype != SN_FLOAT32)
        return false;
    for (int64_t i = 1; i < t->count; i++)
        if (((const float *)t->data)[i] != ((const float *)t->data)[0]) return false;
    return true;
}

static sn_status read_one_slope(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "s");
    if (!t) return sni_fail(m->r->err, SN_INTERNAL, "the slope is no longer there");
    return sni_match_set_number(m, "slope", (double)((const float *)t->data)[0]);
}

/* Bounds in order: whichever is applied last, the result is the same. */
static bool is_range(sni_match *m) {
    return sni_match_number(m, "a") <= sni_match_number(m, "b");
}

static bool is_above_zero(sni_match *m) {
    return sni_match_number(m, "b") >= 0;
}

/* (x + b) * a. */
static sn_status read_shifted(sni_match *m) {
    return sni_match_set_number(m, "t", sni_match_number(m, "a") * sni_match_number(m, "b"));
}

/* Slopes of a parametric Relu, stated with the other sign. */
static bool is_slopes(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "n");
    const sni_type *x = sni_match_type(m, "x");
    return t && t->dtype == SN_FLOAT32 && x->has_shape && t->rank <= x->rank;
}

static sn_status transpose_slopes(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "n");
    float *to;
    if (!t) return sni_fail(m->r->err, SN_INTERNAL, "the slopes are no longer there");
    SN_TRY(sni_match_new_floats(m, "s", t->rank, t->dims, &to));
    for (int64_t i = 0; i < t->count; i++) to[i] = -((const float *)t->data)[i];
    return SN_OK;
}

/* x * a or x / d. */
static sn_status read_slope(sni_match *m) {
    bool divided = sni_match_value(m, "d") != SNI_NO_ID;
    return sni_match_set_number(m, "k",
                                divided ? 1 / sni_match_number(m, "d") : sni_match_number(m, "a"));
}

/* Before opset 13 a softmax took the axes from `axis` on as one: that of the last axis alone is
 * today's on that axis. */
static bool is_last_flattened(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    const sni_attr *axis = sni_match_attr(m, "a");
    const sni_type *y = &sni_graph_value(m->g, m->root->out[0])->type;
    return axis && x->has_shape && axis->u.i == x->rank - 1 && sni_types_equal(x, y);
}

/* Permutation q undoes p. */
static bool transposes_back(sni_match *m) {
    const sni_attr *p = sni_match_attr(m, "p"), *q = sni_match_attr(m, "q");
    if (!p || !q || p->count != q->count || p->count < 1) return false;
    for (size_t i = 0; i < p->count; i++)
        if (q->u.ints[i] < 0 || q->u.ints[i] >= (int64_t)p->count ||
            p->u.ints[q->u.ints[i]] != (int64_t)i)
            return false;
    return true;
}

static sn_status bind_transposed(sni_match *m) {
    const sni_attr *p = sni_match_attr(m, "p");
    return sni_match_set_attr(m, "axis", sni_attr_of_int("axis", p->u.ints[p->count - 1]));
}

#define TOTAL(x) "ReduceSum<keepdims = 1, noop_with_empty_axes = 0>(" x ", %axes)"
#define SHIFTED "Sub(x, ReduceMax<keepdims = 1, noop_with_empty_axes = 0>(x, %axes))"

const sni_rule sni_rules_activations[] = {
    {"sum-add", "Sum(x, y)", "Add(x, y)"},
    {"sigmoid", "Div(1, Add(Exp(Neg(x)), 1))", "Sigmoid(x)"},
    {"sigmoid-reciprocal", "Reciprocal(Add(Exp(Neg(x)), 1))", "Sigmoid(x)"},
    {"silu", "Mul(x, Sigmoid(x))", "Swish<alpha = 1>(x)"},
    {"silu-div", "Div(x, Add(Exp(Neg(x)), 1))", "Swish<alpha = 1>(x)"},
    {"swish", "Mul(x, Sigmoid(Mul(x, #a)))", "Swish<alpha = #a>(x)", .sample = "#a=1.702; #a=-0.5"},
    {"mish", "Mul(x, Tanh({Softplus(x) | Log(Add(Exp(x), 1))}))", "Mish(x)"},
    {"hard-sigmoid", "Div(" RELU6 ", 6)", "HardSigmoid<alpha = " SIXTH ", beta = 0.5>(x)"},
    {"hard-sigmoid-mul", "Mul(" RELU6 ", " SIXTH ")",
     "HardSigmoid<alpha = " SIXTH ", beta = 0.5>(x)"},
    {"hard-sigmoid-affine", "Clip({Add(Mul(x, #a), #b) | Add(Div(x, #d), #b)}, 0, 1)",
     "HardSigmoid<alpha = #k, beta = #b>(x)", .build = read_slope},
    {"hard-sigmoid-shifted", "Clip(Mul(Add(x, #b), #a), 0, 1)",
     "HardSigmoid<alpha = #a, beta = #t>(x)", .build = read_shifted},
    {"hard-swish", "Mul(x, HardSigmoid<alpha = " SIXTH ", beta = 0.5>(x))", "HardSwish(x)"},
    {"hard-swish-div", "Div(Mul(x, " RELU6 "), 6)", "HardSwish(x)"},
    {"hard-swish-mul", "Mul(Mul(x, " RELU6 "), " SIXTH ")", "HardSwish(x)"},
    {"hard-swish-part", "Mul({Div(x, 6) | Mul(x, " SIXTH ")}, " RELU6 ")", "HardSwish(x)"},
    {"prelu-sides", "Add(Relu(x), Mul(Relu(Neg(x)), %n))", "PRelu(x, s)", .where = is_slopes,
     .build = transpose_slopes, .sample = "x=[N,3,5] %n=[3,1]; x=[2,3,8] %n=0.3"},
    {"prelu-sides-sub", "Sub(Relu(x), Mul(Relu(Neg(x)), %n))", "PRelu(x, n)", .where = is_slopes,
     .sample = "x=[N,3,5] %n=[3,1]; x=[2,3,8] %n=0.3"},
    {"prelu-leaky", "PRelu(x, %s)", "LeakyRelu<alpha = #slope>(x)", .where = is_one_slope,
     .build = read_one_slope, .sample = "x=[N,3,5] %s=0.25; x=[N,3,5] %s=2[3,1]"},
    {"relu", "Max(x, 0)", "Relu(x)"},
    {"relu6", "Min(Relu(x), #a)", "Clip(x, 0, #a)"},
    {"clip-relu", "Clip(Relu(x), {0 | _}, #a)", "Clip(x, 0, #a)"},
    {"clip-min-max", "Min(Max(x, #a), #b)", "Clip(x, #a, #b)", .where = is_range,
     .sample = "#a=-0.5 #b=1.5"},
    {"clip-max-min", "Max(Min(x, #b), #a)", "Clip(x, #a, #b)", .where = is_range,
     .sample = "#a=-0.5 #b=1.5"},
    {"clip-relu-min", "Relu(Min(x, #b))", "Clip(x, 0, #b)", .where = is_above_zero,
     .sample = "#b=1.5"},
    {"leaky-relu", "Max(x, Mul(x, #a))", "LeakyRelu<alpha = #a>(x)", .where = is_below_one,
     .sample = "#a=0.2"},
    {"softmax", "Div(e:Exp(" SHIFTED "), " TOTAL("e") ")", "Softmax<axis = @axis>(x)",
     .where = is_one_axis, .build = read_axis,
     .sample = "%axes=int64{-1}; %axes=int64{1} x=[N,5,3]"},
    {"softmax-reciprocal",
     "Mul(e:Exp(" SHIFTED "), {Reciprocal(" TOTAL("e") ") | Div(1, " TOTAL("e") ")})",
     "Softmax<axis = @axis>(x)", .where = is_one_axis, .build = read_axis,
     .sample = "%axes=int64{-1}; %axes=int64{1} x=[N,5,3]"},
    {"log-softmax-sum", "Sub(x, ReduceLogSumExp<keepdims = 1, noop_with_empty_axes = 0>(x, %axes))",
     "LogSoftmax<axis = @axis>(x)", .where = is_one_axis, .build = read_axis,
     .sample = "%axes=int64{-1}; %axes=int64{1} x=[N,5,3]"},
    {"log-softmax", "Sub(s:" SHIFTED ", Log(" TOTAL("Exp(s)") "))", "LogSoftmax<axis = @axis>(x)",
     .where = is_one_axis, .build = read_axis,
     .sample = "%axes=int64{-1}; %axes=int64{1} x=[N,5,3]"},
    {"softmax-transposed", "Transpose<perm = @q>(Softmax<axis = -1>(Transpose<perm = @p>(x)))",
     "Softmax<axis = @axis>(x)", .where = transposes_back, .build = bind_transposed,
     .sample = "x=[N,5,3] @p=[0,2,1] @q=[0,2,1]; x=[2,3,4,5] @p=[0,2,3,1] @q=[0,3,1,2]"},
    {"log-softmax-transposed",
     "Transpose<perm = @q>(LogSoftmax<axis = -1>(Transpose<perm = @p>(x)))",
     "LogSoftmax<axis = @axis>(x)", .where = transposes_back, .build = bind_transposed,
     .sample = "x=[N,5,3] @p=[0,2,1] @q=[0,2,1]"},
    {"softmax-flattened", "Reshape(Softmax<axis = -1>(Flatten<axis = @a>(x)), s)",
     "Softmax<axis = -1>(x)", .where = is_last_flattened,
     .sample = "x=[N,3,8] @a=2 s=Shape(x); x=[2,3,4,5] @a=3 s=int64{2,3,4,5}"},
    {"log-softmax-flattened", "Reshape(LogSoftmax<axis = -1>(Flatten<axis = @a>(x)), s)",
     "LogSoftmax<axis = -1>(x)", .where = is_last_flattened, .sample = "x=[N,3,8] @a=2 s=Shape(x)"},
    {0},
};
