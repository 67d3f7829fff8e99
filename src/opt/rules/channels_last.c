/* channels_last.c - converters from TensorFlow turn tensors before and after each convolution, and
 * what stands between works on channels that come last. It moves in front of the transposition that
 * brings them there, to meet the convolution, and the transposition the one that follows. */
#include "opt/rules/rules.h"

/* p brings the channels from the second place to the last. */
static bool brings_last(const sni_attr *p) {
    if (!p || p->kind != SNI_ATTR_INTS || p->count < 4) return false;
    for (size_t i = 0; i < p->count; i++) {
        int64_t from = i == 0 ? 0 : i + 1 < p->count ? (int64_t)i + 1 : 1;
        if (p->u.ints[i] != from) return false;
    }
    return true;
}

static bool is_transposed(sni_match *m) {
    return brings_last(sni_match_attr(m, "p"));
}

/* Two of them that are transposed alike, of the same rank. */
static bool are_transposed(sni_match *m) {
    const sni_attr *q = sni_match_attr(m, "q");
    const sni_type *x = sni_match_type(m, "x"), *y = sni_match_type(m, "y");
    return is_transposed(m) && brings_last(q) && x->has_shape && y->has_shape && x->rank == y->rank;
}

/* Three of them. */
static bool are_all_transposed(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x"), *z = sni_match_type(m, "z");
    return are_transposed(m) && brings_last(sni_match_attr(m, "r")) && z->has_shape &&
           x->rank == z->rank;
}

/* A constant v with one number for each channel. */
static bool is_by_channel(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    const sni_const *v = sni_value_const(m->g, sni_match_value(m, "v"));
    return is_transposed(m) && x->has_shape && x->rank >= 3 && x->dims[1] > 1 && v &&
           v->tensor.count == x->dims[1] && v->tensor.rank <= x->rank &&
           sni_is_channels(m, "v", x->dims[1], 0);
}

/* The same numbers before the transposition: (C, 1, ...). */
static sn_status bind_channels(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    const sni_tensor *t = sni_match_const(m, "v");
    int64_t dims[SN_MAX_RANK] = {x->dims[1]};
    float *to;
    if (!t) return sni_fail(m->r->err, SN_INTERNAL, "a constant is no longer there");
    for (int i = 1; i < x->rank - 1; i++) dims[i] = 1;
    SN_TRY(sni_match_new_floats(m, "u", x->rank - 1, dims, &to));
    memcpy(to, t->data, (size_t)t->count * sizeof *to);
    return SN_OK;
}

/* Lists of axes, and of what is put around them. */
static bool is_list(const sni_match *m, const char *name) {
    const sni_tensor *t = sni_match_const(m, name);
    return t && t->dtype == SN_INT64 && t->rank == 1 && t->count > 0 && t->count <= 2 * SN_MAX_RANK;
}

/* The axes of the picture, all of them, so that what is left is in order. */
static bool reduces_picture(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    uint32_t set = 0;
    if (!is_transposed(m) || !x->has_shape || !is_list(m, "a")) return false;
    const sni_tensor *t = sni_match_const(m, "a");
    for (int64_t i = 0; i < t->count; i++) {
        int64_t axis = ((const int64_t *)t->data)[i];
        if (axis < 0) axis += x->rank;
        if (axis < 1 || axis >= x->rank - 1) return false;
        set |= 1u << axis;
    }
    return t->count == x->rank - 2 && set == (1u << (x->rank - 1)) - 2;
}

static sn_status bind_axes(sni_match *m) {
    int rank = sni_match_type(m, "x")->rank;
    int64_t axes[SN_MAX_RANK];
    for (int i = 2; i < rank; i++) axes[i - 2] = i;
    return sni_match_new_ints(m, "axes", rank - 2, axes);
}

static bool pads_transposed(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    return is_transposed(m) && x->has_shape && is_list(m, "pads") &&
           sni_match_const(m, "pads")->count == 2 * x->rank;
}

static sn_status bind_pads(sni_match *m) {
    const sni_attr *p = sni_match_attr(m, "p");
    const int64_t *from = sni_match_const(m, "pads")->data;
    int64_t pads[2 * SN_MAX_RANK], rank = (int64_t)p->count;
    for (int64_t i = 0; i < 2 * rank; i++) pads[i / rank * rank + p->u.ints[i % rank]] = from[i];
    return sni_match_new_ints(m, "around", 2 * rank, pads);
}

#define T(perm, x) "Transpose<perm = @" perm ">(" x ")"
#define UNARY(name, op)                                                  \
    {                                                                    \
        name, "f:" op "(" T("p", "x") ")", T("p", op "<*f>(x)"),         \
            .where = is_transposed, .sample = "x=[2,3,4,5] @p=[0,2,3,1]" \
    }
#define BINARY(name, op)                                                                      \
    {                                                                                         \
        name, op "(" T("p", "x") ", " T("q", "y") ")", T("p", op "(x, y)"),                   \
            .where = are_transposed,                                                          \
            .sample =                                                                         \
                "x=[2,3,4,5] y=[2,3,4,5] @p=[0,2,3,1] @q=[0,2,3,1]; x=[2,3,4,5] y=[2,3,1,1] " \
                "@p=[0,2,3,1] @q=[0,2,3,1]"                                                   \
    }
#define CHANNELS(name, op)                                     \
    {                                                          \
        name, op "(" T("p", "x") ", %v)", T("p", op "(x, u)"), \
            .where = is_by_channel, .build = bind_channels,    \
            .sample = "x=[2,3,4,5] %v=+[3] @p=[0,2,3,1]"       \
    }
#define REDUCE(name, op)                                                                  \
    {name,                                                                                \
     op "<keepdims = 0, noop_with_empty_axes = 0>(" T("p", "x") ", %a)",                  \
     op "<keepdims = 0>(x, axes)",                                                        \
     .where = reduces_picture,                                                            \
     .build = bind_axes,                                                                  \
     .sample = "x=[2,3,4,5] %a=int64{1,2} @p=[0,2,3,1]"},                                 \
    {                                                                                     \
        name "-kept", op "<keepdims = 1, noop_with_empty_axes = 0>(" T("p", "x") ", %a)", \
            T("p", op "(x, axes)"), .where = reduces_picture, .build = bind_axes,         \
                                    .sample = "x=[2,3,4,5] %a=int64{-2,1} @p=[0,2,3,1]"   \
    }

const sni_rule sni_rules_channels_last[] = {
    UNARY("last-relu", "Relu"),
    UNARY("last-leaky-relu", "LeakyRelu"),
    UNARY("last-sigmoid", "Sigmoid"),
    UNARY("last-tanh", "Tanh"),
    UNARY("last-hard-sigmoid", "HardSigmoid"),
    UNARY("last-hard-swish", "HardSwish"),
    UNARY("last-swish", "Swish"),
    UNARY("last-mish", "Mish"),
    UNARY("last-gelu", "Gelu"),
    UNARY("last-elu", "Elu"),
    UNARY("last-softplus", "Softplus"),
    {"last-clip", "Clip(" T("p", "x") ", l?, h?)", T("p", "Clip(x, l, h)"), .where = is_transposed,
     .sample = "x=[2,3,4,5] l=[] h=[] @p=[0,2,3,1]"},
    CHANNELS("last-add-channels", "Add"),
    CHANNELS("last-sub-channels", "Sub"),
    CHANNELS("last-mul-channels", "Mul"),
    CHANNELS("last-div-channels", "Div"),
    CHANNELS("last-prelu", "PRelu"),
    BINARY("last-add", "Add"),
    BINARY("last-mul", "Mul"),
    {"last-concat", "Concat<axis = -1>(" T("p", "x") ", " T("q", "y") ")",
     T("p", "Concat<axis = 1>(x, y)"), .where = are_transposed,
     .sample = "x=[2,3,4,5] y=[2,2,4,5] @p=[0,2,3,1] @q=[0,2,3,1]"},
    {"last-concat-3", "Concat<axis = -1>(" T("p", "x") ", " T("q", "y") ", " T("r", "z") ")",
     T("p", "Concat<axis = 1>(x, y, z)"), .where = are_all_transposed,
     .sample = "x=[2,3,4,5] y=[2,2,4,5] z=[2,1,4,5] @p=[0,2,3,1] @q=[0,2,3,1] @r=[0,2,3,1]"},
    REDUCE("last-mean", "ReduceMean"),
    REDUCE("last-max", "ReduceMax"),
    {"last-pad", "d:Pad<mode = @m>(" T("p", "x") ", %pads, v?)", T("p", "Pad<*d>(x, around, v)"),
     .where = pads_transposed, .build = bind_pads,
     .sample = "x=[2,3,4,5] %pads=int64{0,1,2,0,0,3,0,1} v=[] @p=[0,2,3,1]"},
    {0},
};
