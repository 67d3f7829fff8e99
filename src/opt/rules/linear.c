/* linear.c - products with constant weights, and those with others that a constant vector is added
 * to, become Linear of ai.sinter, Y = activation(X W + B + residual), and take in what follows
 * them.
 */
#include "opt/rules/rules.h"

static const sni_tensor *weights(const sni_match *m) {
    const sni_const *c = sni_value_const(m->g, sni_match_value(m, "w"));
    return c && c->tensor.rank == 2 ? &c->tensor : NULL;
}

static bool is_float(sn_dtype t) {
    return t == SN_FLOAT32 || t == SN_FLOAT64 || t == SN_FLOAT16 || t == SN_BFLOAT16;
}

/* ---- Products of two results ---- */

/* The permutation p of value `name` changes its last two axes for each other, and no more. */
static bool transposes(const sni_match *m, const char *name) {
    const sni_attr *p = sni_match_attr(m, "p");
    const sni_type *x = sni_match_type(m, name);
    if (!p || !x->has_shape || x->rank < 2 || p->count != (size_t)x->rank || x->dtype != SN_FLOAT32)
        return false;
    for (int i = 0; i < x->rank; i++) {
        int from = i < x->rank - 2 ? i : 2 * x->rank - 3 - i;
        if (p->u.ints[i] != from) return false;
    }
    return true;
}

static bool is_matrices(const sni_match *m, const char *name) {
    const sni_type *x = sni_match_type(m, name);
    return x->has_shape && x->rank >= 2 && x->dtype == SN_FLOAT32;
}

static bool turns_left(sni_match *m) {
    return transposes(m, "a") && is_matrices(m, "b");
}

static bool turns_right(sni_match *m) {
    return transposes(m, "b") && is_matrices(m, "a");
}

static bool both_matrices(sni_match *m) {
    return is_matrices(m, "a") && is_matrices(m, "b");
}

static sn_status bind_alpha(sni_match *m) {
    bool divided = sni_match_value(m, "d") != SNI_NO_ID;
    return sni_match_set_number(m, "alpha",
                                divided ? 1 / sni_match_number(m, "d") : sni_match_number(m, "c"));
}

/* ---- Making ---- */

static bool is_matrix(sni_match *m) {
    const sni_tensor *w = weights(m);
    const sni_type *x = sni_match_type(m, "x");
    return w && is_float(w->dtype) && x->has_shape && x->rank >= 2;
}

/* Rows times a float32 matrix that is computed, and a constant with one element for each column. */
static bool is_computed_layer(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x"), *w = sni_match_type(m, "w");
    const sni_const *v = sni_value_const(m->g, sni_match_value(m, "v"));
    return x->has_shape && x->rank >= 2 && x->dtype == SN_FLOAT32 && w->has_shape && w->rank == 2 &&
           v && v->tensor.rank > 0 && v->tensor.rank <= x->rank && v->tensor.dtype == SN_FLOAT32 &&
           v->tensor.count == w->dims[1] && v->tensor.dims[v->tensor.rank - 1] == v->tensor.count;
}

/* A Gemm without factors whose C, if any, is a vector or a row for every row. */
static bool is_layer(sni_match *m) {
    const sni_tensor *w = weights(m);
    const sni_attr *transposed = sni_match_attr(m, "t");
    if (!w || !is_float(w->dtype)) return false;
    if (sni_match_value(m, "c") == SNI_NO_ID) return true;
    const sni_const *c = sni_value_const(m->g, sni_match_value(m, "c"));
    int64_t columns = w->dims[!(transposed && transposed->u.i)];
    return c && c->tensor.dtype == SN_FLOAT32 && c->tensor.rank > 0 && c->tensor.rank <= 2 &&
           c->tensor.count == columns && c->tensor.dims[c->tensor.rank - 1] == columns;
}

/* Binds b: the constant `name` as a vector. */
static sn_status as_vector(sni_match *m, const char *name, const char *out) {
    const sni_const *c = sni_value_const(m->g, sni_match_value(m, name));
    const sni_tensor *t;
    float *data;
    if (!c || c->tensor.rank == 1) return sni_match_set_value(m, out, sni_match_value(m, name));
    SN_TRY(sni_const_load(sni_value_const(m->g, sni_match_value(m, name)), &t, m->r->err));
    SN_TRY(sni_match_new_floats(m, out, 1, &t->count, &data));
    if (t->count) memcpy(data, t->data, (size_t)t->count * sizeof *data);
    return SN_OK;
}

static sn_status bind_c(sni_match *m) {
    return as_vector(m, "c", "b");
}

static sn_status bind_v(sni_match *m) {
    return as_vector(m, "v", "b");
}

/* ---- Taking in ---- */

static bool is_transposed(const sni_match *m) {
    const sni_attr *a = sni_node_attr(sni_match_node(m, "l"), "trans_w");
    return a && a->u.i;
}

static int64_t columns_of(const sni_match *m) {
    const sni_tensor *w = weights(m);
    return w ? w->dims[!is_transposed(m)] : -1;
}

static bool is_open(const sni_match *m) {
    const sni_attr *a = sni_node_attr(sni_match_node(m, "l"), "activation");
    return !(a && a->u.s.n);
}

static const sni_type *result_type(const sni_match *m) {
    return &sni_graph_value(m->g, sni_match_node(m, "l")->out[0])->type;
}

/* A float32 constant with one element for each column. */
static bool adds_vector(sni_match *m) {
    const sni_const *v = sni_value_const(m->g, sni_match_value(m, "v"));
    return is_open(m) && v && v->tensor.count == columns_of(m) && v->tensor.rank > 0 &&
           v->tensor.dims[v->tensor.rank - 1] == v->tensor.count && v->tensor.dtype == SN_FLOAT32;
}

static bool adds_alike(sni_match *m) {
    return is_open(m) && sni_types_equal(result_type(m), sni_match_type(m, "z"));
}

static bool is_vector_or_none(const sni_match *m) {
    const sni_const *b = sni_value_const(m->g, sni_match_value(m, "b"));
    return sni_match_value(m, "b") == SNI_NO_ID ||
           (b && b->tensor.dtype == SN_FLOAT32 && b->tensor.count == columns_of(m));
}

static bool scales_columns(sni_match *m) {
    const sni_tensor *w = weights(m);
    return is_open(m) && w && w->dtype == SN_FLOAT32 && is_vector_or_none(m) &&
           sni_is_channels(m, "v", columns_of(m), 0) && sni_is_foldable(m, "v");
}

/* The channels of (N, C) are the columns. */
static bool normalises_columns(sni_match *m) {
    static const char *const names[] = {"scale", "bias", "mean", "var"};
    const sni_tensor *w = weights(m);
    if (!is_open(m) || !w || w->dtype != SN_FLOAT32 || !is_vector_or_none(m) ||
        result_type(m)->rank != 2)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!sni_is_channels(m, names[i], columns_of(m), 0)) return false;
    return true;
}

static sn_status fold(sni_match *m, const sni_affine *a) {
    const sni_tensor *w = weights(m);
    return sni_affine_fold(m, a, is_transposed(m) ? w->dims[1] : 1);
}

static sn_status fold_constant(sni_match *m) {
    sni_affine a;
    SN_TRY(sni_affine_of_root(m, "v", columns_of(m), &a));
    return fold(m, &a);
}

static sn_status fold_norm(sni_match *m) {
    sni_affine a;
    SN_TRY(sni_affine_of_norm(m, columns_of(m), &a));
    return fold(m, &a);
}

static bool can_activate(sni_match *m) {
    sni_ending e;
    return is_open(m) && sni_ending_of(m->g, sni_match_node(m, "f"), &e);
}

static sn_status bind_activation(sni_match *m) {
    return sni_bind_activation(m, "f");
}

/* Rows of x stay rows whatever shape is around them. */
static bool keeps_rows(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    const sni_tensor *w = weights(m);
    return w && x->has_shape && x->rank >= 2 && x->dims[x->rank - 1] == w->dims[is_transposed(m)];
}

/* One element for each channel, where the channels come from the last axis of y. */
static bool scales_channels(sni_match *m) {
    const sni_type *y = sni_match_type(m, "y");
    const sni_const *v = sni_value_const(m->g, sni_match_value(m, "v"));
    return y->has_shape && y->rank == 4 && y->dims[3] > 1 && v && v->tensor.count == y->dims[3] &&
           sni_is_channels(m, "v", y->dims[3], 2);
}

static sn_status bind_v2(sni_match *m) {
    return as_vector(m, "v", "v2");
}

static bool is_square_matrix(const sni_match *m, const char *name) {
    return sni_match_type(m, name)->has_shape && sni_match_type(m, name)->rank == 2;
}

static bool transposes_a(sni_match *m) {
    return is_square_matrix(m, "a");
}

static bool transposes_b(sni_match *m) {
    return is_square_matrix(m, "b");
}

/* The attribute `from` the other way round. */
static sn_status bind_other(sni_match *m) {
    const sni_attr *t = sni_match_attr(m, "t");
    return sni_match_set_attr(m, "u", sni_attr_of_int("u", !(t && t->u.i)));
}

/* One slope for each column. */
static bool bends_columns(sni_match *m) {
    const sni_const *s = sni_value_const(m->g, sni_match_value(m, "s"));
    return is_open(m) && s && s->tensor.count == columns_of(m) &&
           sni_is_channels(m, "s", columns_of(m), 0) && weights(m)->dtype == SN_FLOAT32;
}

static sn_status bind_slopes(sni_match *m) {
    return sni_bind_flat(m, "s", "slopes");
}

#define LAYER "l:ai.sinter.Linear<trans_w = @t>(x, w, b?, z?)"
#define FUSED "ai.sinter.Linear<*l, activation = @act, activation_params = @params>(x, w, b, z)"
#define SHAPES "x=[N,S,8] %w=[8,6] b=[6] z=[N,S,6]; x=[4,8] %w=[6,8] b=[6] z=[4,6] @t=1"
#define COMPUTED "; x=[N,S,8] w=[8,6] b=[6] z=[N,S,6]"
#define FOLDED "x=[N,S,8] %w=[8,6] %b=[6]"
#define TRANSPOSED "x=[4,8] %w=[6,8] %b=[6] @t=1"

const sni_rule sni_rules_linear[] = {
    {"gemm-transpose-a", "g:Gemm<transA = @t>(Transpose<perm = [1, 0]>(a), b, c?)",
     "Gemm<*g, transA = @u>(a, b, c)", .where = transposes_a, .build = bind_other,
     .sample = "a=[8,4] b=[8,6] c=[6] @t=0; a=[4,8] b=[8,6] c=[6] @t=1"},
    {"gemm-transpose-b", "g:Gemm<transB = @t>(a, Transpose<perm = [1, 0]>(b), c?)",
     "Gemm<*g, transB = @u>(a, b, c)", .where = transposes_b, .build = bind_other,
     .sample = "a=[4,8] b=[6,8] c=[6] @t=0; a=[4,8] b=[8,6] c=[6] @t=1"},
    {"matmul-transpose-a", "MatMul(Transpose<perm = @p>(a), b)",
     "com.microsoft.FusedMatMul<transA = 1>(a, b)", .where = turns_left,
     .sample = "a=[N,3,4,5] b=[N,3,4,6] @p=[0,1,3,2]; a=[4,5] b=[N,4,6] @p=[1,0]"},
    {"matmul-transpose-b", "MatMul(a, Transpose<perm = @p>(b))",
     "com.microsoft.FusedMatMul<transB = 1>(a, b)", .where = turns_right,
     .sample = "a=[N,3,5,4] b=[N,3,6,4] @p=[0,1,3,2]; a=[N,5,4] b=[6,4] @p=[1,0]"},
    {"fused-matmul-transpose-a",
     "f:com.microsoft.FusedMatMul<transA = 0, transBatchA = 0, transB = @t>(Transpose<perm = "
     "@p>(a), b)",
     "com.microsoft.FusedMatMul<*f, transA = 1>(a, b)", .where = turns_left,
     .sample = "a=[N,3,4,5] b=[N,3,6,4] @p=[0,1,3,2] @t=1"},
    {"fused-matmul-transpose-b",
     "f:com.microsoft.FusedMatMul<transB = 0, transBatchB = 0, transA = @t>(a, Transpose<perm = "
     "@p>(b))",
     "com.microsoft.FusedMatMul<*f, transB = 1>(a, b)", .where = turns_right,
     .sample = "a=[N,3,4,5] b=[N,3,6,4] @p=[0,1,3,2] @t=1"},
    {"matmul-scale", "Mul(MatMul(a, b), #c)", "com.microsoft.FusedMatMul<alpha = #alpha>(a, b)",
     .where = both_matrices, .build = bind_alpha, .sample = "a=[N,3,5,4] b=[N,3,4,6]"},
    {"matmul-divide", "Div(MatMul(a, b), #d)", "com.microsoft.FusedMatMul<alpha = #alpha>(a, b)",
     .where = both_matrices, .build = bind_alpha, .sample = "a=[N,3,5,4] b=[N,3,4,6]"},
    {"linear-matmul", "MatMul(x, %w)", "ai.sinter.Linear(x, w)", .where = is_matrix,
     .sample = "x=[N,S,8] %w=[8,6]; x=[4,8] %w=[8,6]"},
    {"linear-computed", "Add(MatMul(x, w), %v)", "ai.sinter.Linear(x, w, b)",
     .where = is_computed_layer, .build = bind_v,
     .sample = "x=[N,S,8] w=[8,6] %v=[6]; x=[4,8] w=[8,6] %v=[1,6]"},
    {"linear-gemm", "Gemm<alpha = 1, beta = 1, transA = 0, transB = @t>(x, %w, %c?)",
     "ai.sinter.Linear<trans_w = @t>(x, w, b)", .where = is_layer, .build = bind_c,
     .sample = "x=[N,8] %w=[8,6] %c=[6]; x=[3,8] %w=[6,8] %c=[1,6] @t=1"},
    {"linear-bias", "Add(l:ai.sinter.Linear<trans_w = @t>(x, %w), %v)",
     "ai.sinter.Linear<*l>(x, w, b)", .where = adds_vector, .build = bind_v,
     .sample = "x=[N,S,8] %w=[8,6] %v=[6]; x=[4,8] %w=[6,8] %v=[1,6] @t=1"},
    {"linear-mul", "Mul|Add(l:ai.sinter.Linear<trans_w = @t>(x, %w, %b?), %v)",
     "ai.sinter.Linear<*l>(x, w2, b2)", .where = scales_columns, .build = fold_constant,
     .sample = FOLDED " %v=[6]; " TRANSPOSED " %v=[6]; " FOLDED " %v=[]"},
    {"linear-div", "Sub|Div(l:ai.sinter.Linear<trans_w = @t>(x, %w, %b?), %v)",
     "ai.sinter.Linear<*l>(x, w2, b2)", .where = scales_columns, .build = fold_constant,
     .sample = FOLDED " %v=+[6]; " TRANSPOSED " %v=+[6]"},
    {"linear-scale-transpose",
     "Mul(Transpose<perm = [0, 3, 1, 2]>(~y:ai.sinter.Linear(x, %w, b?)), %v)",
     "Transpose<perm = [0, 3, 1, 2]>(Mul(y, v2))", .where = scales_channels, .build = bind_v2,
     .sample = "x=[N,4,5,8] %w=[8,6] b=[6] %v=[6,1,1]"},
    {"linear-batchnorm",
     "BatchNormalization<epsilon = @eps, training_mode = 0>(l:ai.sinter.Linear<trans_w = @t>(x, "
     "%w, %b?), %scale, %bias, %mean, %var)",
     "ai.sinter.Linear<*l>(x, w2, b2)", .where = normalises_columns, .build = fold_norm,
     .sample = "x=[N,8] %w=[8,6] %b=[6] %scale=[6] %bias=[6] %mean=[6] %var=+[6]; " TRANSPOSED
               " %scale=[6] %bias=[6] %mean=[6] %var=+[6]"},
    {"linear-reshape", "Reshape(l:ai.sinter.Linear<trans_w = @t>(Reshape(x, s), %w, b?), r)",
     "ai.sinter.Linear<*l>(x, w, b)", .where = keeps_rows,
     .sample = "x=[2,3,8] s=int64{6,8} %w=[8,6] b=[6] r=int64{2,3,6}"},
    {"linear-residual", "Add(l:ai.sinter.Linear<trans_w = @t>(x, %w, b?), z)",
     "ai.sinter.Linear<*l>(x, w, b, z)", .where = adds_alike, .sample = SHAPES},
    {"linear-activation", "f:" SNI_ACTIVATIONS "(" LAYER ")", FUSED, .where = can_activate,
     .build = bind_activation, .sample = SHAPES COMPUTED},
    {"linear-prelu", "PRelu(l:ai.sinter.Linear<trans_w = @t>(x, %w, b?, z?), %s)",
     "ai.sinter.Linear<*l>(x, w, b, z, slopes)", .where = bends_columns, .build = bind_slopes,
     .sample = "x=[N,S,8] %w=[8,6] b=[6] z=[N,S,6] %s=[6]; x=[4,8] %w=[6,8] b=[6] z=[4,6] @t=1 "
               "%s=[1,6]"},
    {"linear-clip", "f:Clip(" LAYER ", #low?, #high?)", FUSED, .where = can_activate,
     .build = bind_activation, .sample = "x=[N,S,8] %w=[8,6] b=[6] z=[N,S,6] #low=-0.25 #high=0.5"},
    {0},
};
