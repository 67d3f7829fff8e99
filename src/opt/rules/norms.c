/* norms.c - normalisations as exporters spell them out. The core becomes the operator with scales
 * of 1 and offsets of 0; what follows it then takes their place. */
#include "opt/rules/rules.h"

/* ---- Axes ---- */

static int count_axes(const sni_match *m, uint32_t *set) {
    const sni_tensor *t = sni_match_const(m, "a");
    const sni_type *x = sni_match_type(m, "x");
    *set = 0;
    if (!t || t->dtype != SN_INT64 || !x->has_shape) return 0;
    for (int64_t i = 0; i < t->count; i++) {
        int64_t axis = ((const int64_t *)t->data)[i];
        if (axis < 0) axis += x->rank;
        if (axis < 0 || axis >= x->rank) return 0;
        *set |= 1u << axis;
    }
    return (int)t->count;
}

/* The axes are the last ones, and their sizes are known. */
static bool is_trailing(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    uint32_t set;
    int n = count_axes(m, &set);
    if (n < 1 || n > x->rank) return false;
    for (int i = x->rank - n; i < x->rank; i++)
        if (!(set >> i & 1) || x->dims[i] < 1) return false;
    return true;
}

static sn_status fill(sni_match *m, const char *name, int rank, const int64_t *dims, float v) {
    float *data;
    int64_t count = 1;
    SN_TRY(sni_match_new_floats(m, name, rank, dims, &data));
    for (int i = 0; i < rank; i++) count *= dims[i];
    for (int64_t i = 0; i < count; i++) data[i] = v;
    return SN_OK;
}

static sn_status bind_axis(sni_match *m) {
    uint32_t set;
    return sni_match_set_attr(m, "axis", sni_attr_of_int("axis", -count_axes(m, &set)));
}

static sn_status bind_rows(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    uint32_t set;
    int n = count_axes(m, &set);
    SN_TRY(fill(m, "one", n, x->dims + x->rank - n, 1));
    return bind_axis(m);
}

static bool is_float_rows(sni_match *m) {
    return is_trailing(m) && sni_match_type(m, "x")->dtype == SN_FLOAT32;
}

/* All axes after the channels of an image, whose number is known. A single one is taken for rows.
 */
static bool is_spatial(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    uint32_t set;
    int n = count_axes(m, &set);
    return n > 0 && x->rank >= 4 && n == x->rank - 2 && set == (1u << x->rank) - 4 &&
           x->dims[1] > 0 && x->dtype == SN_FLOAT32;
}

static sn_status bind_channels(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    SN_TRY(fill(m, "one", 1, &x->dims[1], 1));
    return fill(m, "zero", 1, &x->dims[1], 0);
}

/* ---- Scales and offsets ---- */

static bool is_all(const sni_match *m, const char *name, float v) {
    const sni_tensor *t = sni_match_const(m, name);
    if (!t || t->dtype != SN_FLOAT32) return false;
    for (int64_t i = 0; i < t->count; i++)
        if (((const float *)t->data)[i] != v) return false;
    return true;
}

/* Constant `name` has the shape of %one: one element for each of a row. */
static bool covers_row(const sni_match *m, const char *name) {
    const sni_const *one = sni_value_const(m->g, sni_match_value(m, "one"));
    const sni_const *c = sni_value_const(m->g, sni_match_value(m, name));
    if (!one || !c || c->tensor.rank < one->tensor.rank || c->tensor.count != one->tensor.count)
        return false;
    int extra = c->tensor.rank - one->tensor.rank;
    for (int i = 0; i < one->tensor.rank; i++)
        if (c->tensor.dims[extra + i] != one->tensor.dims[i]) return false;
    return extra == 0;
}

static bool takes_scale(sni_match *m) {
    return is_all(m, "one", 1) && covers_row(m, "g");
}

static bool takes_offset(sni_match *m) {
    return covers_row(m, "b");
}

/* Constant `name` has one element for each channel of x: (C,1,1) or (1,C,1,1). */
static bool covers_channels(const sni_match *m, const char *name) {
    const sni_type *x = sni_match_type(m, "x");
    return x->has_shape && x->rank >= 3 && x->dims[1] > 1 &&
           sni_is_channels(m, name, x->dims[1], x->rank - 2) &&
           sni_value_const(m->g, sni_match_value(m, name))->tensor.count == x->dims[1];
}

static bool takes_channel_scale(sni_match *m) {
    return is_all(m, "one", 1) && is_all(m, "zero", 0) && covers_channels(m, "g");
}

static bool takes_channel_offset(sni_match *m) {
    return is_all(m, "zero", 0) && covers_channels(m, "b");
}

static sn_status flatten_scale(sni_match *m) {
    return sni_bind_flat(m, "g", "g2");
}

static sn_status flatten_offset(sni_match *m) {
    return sni_bind_flat(m, "b", "b2");
}

/* ---- Groups: a normalisation of instances on (N, groups, rest) ---- */

static bool is_grouped(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    const sni_value *inner = sni_graph_value(m->g, sni_match_node(m, "r")->out[0]);
    const sni_type *y = &sni_graph_value(m->g, m->root->out[0])->type;
    if (!is_all(m, "one", 1) || !is_all(m, "zero", 0) || !sni_types_equal(x, y)) return false;
    const sni_type *t = &inner->type;
    return t->has_shape && t->rank == 3 && x->rank >= 3 && t->dims[0] == x->dims[0] &&
           x->dims[1] > 0 && t->dims[1] > 0 && x->dims[1] % t->dims[1] == 0;
}

static sn_status bind_groups(sni_match *m) {
    const sni_value *inner = sni_graph_value(m->g, sni_match_node(m, "r")->out[0]);
    SN_TRY(bind_channels(m));
    return sni_match_set_attr(m, "groups", sni_attr_of_int("groups", inner->type.dims[1]));
}

/* ---- With scales and offsets in other places ---- */

/* Constant `name` has the shape of the axes that are normalised, which are the last. */
static bool covers_axes(const sni_match *m, const char *name) {
    const sni_const *c = sni_value_const(m->g, sni_match_value(m, name));
    const sni_type *x = sni_match_type(m, "x");
    uint32_t set;
    int n = count_axes(m, &set);
    if (!c || c->tensor.dtype != SN_FLOAT32 || c->tensor.rank != n) return false;
    for (int i = 0; i < n; i++)
        if (c->tensor.dims[i] != x->dims[x->rank - n + i]) return false;
    return true;
}

static bool scales_rows(sni_match *m) {
    return is_float_rows(m) && covers_axes(m, "g");
}

static bool offsets_rows(sni_match *m) {
    return is_float_rows(m) && covers_axes(m, "b");
}

static bool moves_rows(sni_match *m) {
    return scales_rows(m) && covers_axes(m, "b");
}

static bool scales_pictures(sni_match *m) {
    return is_spatial(m) && covers_channels(m, "g");
}

static bool moves_pictures(sni_match *m) {
    return scales_pictures(m) && covers_channels(m, "b");
}

static sn_status flatten_both(sni_match *m) {
    SN_TRY(sni_bind_flat(m, "g", "g2"));
    return sni_bind_flat(m, "b", "b2");
}

static sn_status bind_picture_scale(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    SN_TRY(sni_bind_flat(m, "g", "g2"));
    return fill(m, "zero", 1, &x->dims[1], 0);
}

/* ---- Channels last ---- */

/* Constant `name` has `count` elements, all of them on its last `axes` axes. */
static bool is_on_last(const sni_match *m, const char *name, int64_t count, int axes) {
    const sni_const *c = sni_value_const(m->g, sni_match_value(m, name));
    if (!c || c->tensor.dtype != SN_FLOAT32 || c->tensor.count != count) return false;
    for (int i = 0; i < c->tensor.rank - axes; i++)
        if (c->tensor.dims[i] != 1) return false;
    return true;
}

/* All axes between batch and channels. */
static bool is_spatial_last(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    uint32_t set;
    int n = count_axes(m, &set);
    if (n < 2 || x->rank < 4 || n != x->rank - 2 || set != (1u << (x->rank - 1)) - 2) return false;
    int64_t channels = x->dims[x->rank - 1];
    return x->dtype == SN_FLOAT32 && channels > 0 && is_on_last(m, "g", channels, 1) &&
           is_on_last(m, "b", channels, 1);
}

/* The permutations that bring the last axis of `rank` to the second place, and back. */
static sn_status bind_transposes(sni_match *m, int rank) {
    int64_t *to = SNI_NEW_ARRAY(&m->r->store->arena, int64_t, 2 * rank);
    if (!to) return sni_fail_memory(m->r->err);
    int64_t *back = to + rank;
    for (int i = 0; i < rank; i++) {
        to[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
        back[to[i]] = i;
    }
    sni_attr a = {.kind = SNI_ATTR_INTS, .count = (size_t)rank, .u.ints = to};
    SN_TRY(sni_match_set_attr(m, "to", a));
    a.u.ints = back;
    return sni_match_set_attr(m, "back", a);
}

static sn_status bind_last_channels(sni_match *m) {
    SN_TRY(flatten_both(m));
    return bind_transposes(m, sni_match_type(m, "x")->rank);
}

/* z is (N, ..., C), x is (N, ..., groups, C / groups), normalised over all but batch and groups. */
static bool is_grouped_last(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x"), *z = sni_match_type(m, "z");
    uint32_t set;
    int n = count_axes(m, &set), last = z->rank - 1;
    if (!z->has_shape || z->rank < 3 || x->rank != z->rank + 1 || x->dtype != SN_FLOAT32 ||
        n != x->rank - 2 || set != ((1u << x->rank) - 2) - (1u << last))
        return false;
    for (int i = 0; i < last; i++)
        if (x->dims[i] != z->dims[i]) return false;
    return x->dims[last] > 0 && x->dims[last + 1] > 0 && z->dims[last] > 0 &&
           z->dims[last] % x->dims[last] == 0 && is_on_last(m, "g", z->dims[last], 2) &&
           is_on_last(m, "b", z->dims[last], 2) &&
           sni_types_equal(z, &sni_graph_value(m->g, m->root->out[0])->type);
}

static sn_status bind_last_groups(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x"), *z = sni_match_type(m, "z");
    sni_attr groups = sni_attr_of_int("groups", x->dims[z->rank - 1]);
    SN_TRY(flatten_both(m));
    SN_TRY(sni_match_set_attr(m, "groups", groups));
    return bind_transposes(m, z->rank);
}

/* ---- Rows as a batch or as instances ---- */

/* Value `name` is v everywhere: a constant, or a ConstantOfShape. */
static bool is_filled(const sni_match *m, const char *name, float v) {
    const sni_value *value = sni_graph_value(m->g, sni_match_value(m, name));
    const sni_node *n = value ? sni_value_producer(m->g, value) : NULL;
    if (!n || !sni_str_is(n->type, "ConstantOfShape") || n->domain.n) return is_all(m, name, v);
    const sni_attr *a = sni_node_attr(n, "value");
    const sni_tensor *t;
    if (!a) return v == 0;
    return a->kind == SNI_ATTR_TENSOR && sni_const_load(a->u.tensor, &t, NULL) == SN_OK &&
           t->dtype == SN_FLOAT32 && t->count == 1 && ((const float *)t->data)[0] == v;
}

/* Rows of x are the channels (1, rows, length, 1) of a batch normalisation by their own mean and
 * variance. */
static bool is_batch_of_rows(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x"), *r = sni_match_type(m, "r");
    if (!x->has_shape || x->rank < 2 || x->dtype != SN_FLOAT32 || !r->has_shape || r->rank != 4)
        return false;
    int64_t length = x->dims[x->rank - 1];
    return length > 0 && r->dims[0] == 1 && r->dims[2] == length && r->dims[3] == 1 &&
           sni_match_number(m, "n") == (double)length && is_filled(m, "one", 1) &&
           is_filled(m, "zero", 0) &&
           sni_types_equal(x, &sni_graph_value(m->g, m->root->out[0])->type);
}

static sn_status bind_last_ones(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    return fill(m, "ones", 1, &x->dims[x->rank - 1], 1);
}

/* Rows of (N, rows, length) as channels, with a scale along the row after it. */
static bool is_instance_of_rows(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    const sni_const *g = sni_value_const(m->g, sni_match_value(m, "g"));
    return x->has_shape && x->rank == 3 && x->dtype == SN_FLOAT32 && x->dims[2] > 0 && g &&
           g->tensor.rank == 1 && g->tensor.count == x->dims[2] && is_filled(m, "one", 1) &&
           is_filled(m, "zero", 0);
}

/* ---- Sums before normalisations ---- */

static bool adds_alike(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    return x->dtype == SN_FLOAT32 && x->rank == 3 && sni_types_equal(x, sni_match_type(m, "y"));
}

#define MEAN(x) "ReduceMean<keepdims = 1, noop_with_empty_axes = 0>(" x ", %a)"
#define SQUARE(x) "{Pow(" x ", 2) | Mul(" x ", " x ")}"
#define DEVIATION "d:Sub(x, " MEAN("x") ")"
#define VARIANCE(square) "Add(" MEAN(square) ", #e)"
#define SPREAD(square) "{Sqrt(" VARIANCE(square) ") | Pow(" VARIANCE(square) ", 0.5)}"
#define INVERSE(square)                                                             \
    "{Reciprocal(" SPREAD(square) ") | Div(1, " SPREAD(square) ") | Pow(" VARIANCE( \
        square) ", -0.5)}"
/* By a division, or by a product with the reciprocal. */
#define CORE_DIV "Div(" DEVIATION ", " SPREAD(SQUARE("d")) ")"
#define CORE_MUL "Mul(" DEVIATION ", " INVERSE(SQUARE("d")) ")"
/* The same with a scale on either side of the product. */
#define SCALED_INVERSE "Mul(" DEVIATION ", Mul(" INVERSE(SQUARE("d")) ", %g))"
#define SCALED_DEVIATION "Mul(Mul(" DEVIATION ", %g), " INVERSE(SQUARE("d")) ")"
/* x s + (b - m s), where s is the reciprocal, or that times a scale. */
#define SLOPE                    \
    "Reciprocal(Sqrt(Add(" MEAN( \
        "{Mul(d:Sub(x, m:" MEAN("x") "), d) | Pow(d:Sub(x, m:" MEAN("x") "), 2)}") ", #e)))"
#define KERAS(x, s) "Add(Mul(" x ", " s "), Sub(%b, Mul(m, s)))"
#define KERAS_SCALED(x) KERAS(x, "s:Mul(" SLOPE ", %g)")
#define AXES "%a=int64{-1} #e=1e-5 x=[N,S,8]; %a=int64{2,3} #e=1e-3 x=[N,3,4,5]"
#define SPATIAL "%a=int64{2,3} #e=1e-5 x=[N,3,4,5]; %a=int64{2,3,4} #e=1e-3 x=[2,3,4,5,2]"
#define LAYER "LayerNormalization<axis = @axis, epsilon = #e>(x, one)"
#define INSTANCE "InstanceNormalization<epsilon = #e>(x, one, zero)"
#define RMS "RMSNormalization<axis = @axis, epsilon = #e>(x, one)"

const sni_rule sni_rules_norms[] = {
    {"instance-norm", CORE_DIV, INSTANCE, .where = is_spatial, .build = bind_channels,
     .sample = SPATIAL},
    {"instance-norm-mul", CORE_MUL, INSTANCE, .where = is_spatial, .build = bind_channels,
     .sample = SPATIAL},
    {"layer-norm", CORE_DIV, LAYER, .where = is_float_rows, .build = bind_rows, .sample = AXES},
    {"layer-norm-mul", CORE_MUL, LAYER, .where = is_float_rows, .build = bind_rows, .sample = AXES},
    {"layer-norm-scaled", SCALED_INVERSE, "LayerNormalization<axis = @axis, epsilon = #e>(x, g)",
     .where = scales_rows, .build = bind_axis, .sample = "%a=int64{-1} #e=1e-5 x=[N,S,8] %g=[8]"},
    {"layer-norm-scaled-first", SCALED_DEVIATION,
     "LayerNormalization<axis = @axis, epsilon = #e>(x, g)", .where = scales_rows,
     .build = bind_axis, .sample = "%a=int64{-1} #e=1e-5 x=[N,S,8] %g=[8]"},
    {"instance-norm-scaled", SCALED_INVERSE, "InstanceNormalization<epsilon = #e>(x, g2, zero)",
     .where = scales_pictures, .build = bind_picture_scale,
     .sample = "%a=int64{2,3} #e=1e-5 x=[N,3,4,5] %g=[1,3,1,1]"},
    {"instance-norm-scaled-first", SCALED_DEVIATION,
     "InstanceNormalization<epsilon = #e>(x, g2, zero)", .where = scales_pictures,
     .build = bind_picture_scale, .sample = "%a=int64{2,3} #e=1e-5 x=[N,3,4,5] %g=[1,3,1,1]"},
    {"layer-norm-keras", KERAS_SCALED("x"),
     "LayerNormalization<axis = @axis, epsilon = #e>(x, g, b)", .where = moves_rows,
     .build = bind_axis, .sample = "%a=int64{-1} #e=1e-3 x=[N,S,8] %g=[8] %b=[8]"},
    {"layer-norm-keras-offset", KERAS("x", "s:" SLOPE),
     "LayerNormalization<axis = @axis, epsilon = #e>(x, one, b)", .where = offsets_rows,
     .build = bind_rows, .sample = "%a=int64{-1} #e=1e-3 x=[N,S,8] %b=[8]"},
    {"layer-norm-keras-alone", "Add(Mul(x, s:" SLOPE "), Neg(Mul(m, s)))", LAYER,
     .where = is_float_rows, .build = bind_rows, .sample = "%a=int64{-1} #e=1e-3 x=[N,S,8]"},
    {"layer-norm-batch",
     "Reshape(BatchNormalization<epsilon = @e, training_mode = 0>(r:Reshape(x, q), one, zero, "
     "Squeeze(m:ReduceMean<keepdims = 1, noop_with_empty_axes = 0>(r, [0, 2, 3]), [0, 2, 3]), "
     "Div(ReduceSumSquare<keepdims = 0, noop_with_empty_axes = 0>(Sub(r, m), [0, 2, 3]), #n)), t)",
     "LayerNormalization<axis = -1, epsilon = @e>(x, ones)", .where = is_batch_of_rows,
     .build = bind_last_ones,
     .sample = "x=[2,5,8] q=int64{1,-1,8,1} one=1[10] zero=0[10] #n=8 t=int64{2,5,8}"},
    {"layer-norm-instance", "Mul(InstanceNormalization<epsilon = @e>(x, one, zero), %g)",
     "LayerNormalization<axis = -1, epsilon = @e>(x, g)", .where = is_instance_of_rows,
     .sample = "x=[2,5,8] one=1[5] zero=0[5] %g=[8]; x=[N,5,8] one=1[5] zero=0[5] %g=[8]"},
    {"instance-norm-keras", KERAS_SCALED("x"), "InstanceNormalization<epsilon = #e>(x, g2, b2)",
     .where = moves_pictures, .build = flatten_both,
     .sample = "%a=int64{2,3} #e=1e-3 x=[N,3,4,5] %g=[1,3,1,1] %b=[1,3,1,1]"},
    {"instance-norm-last", KERAS_SCALED("x"),
     "Transpose<perm = @back>(InstanceNormalization<epsilon = #e>(Transpose<perm = @to>(x), g2, "
     "b2))",
     .where = is_spatial_last, .build = bind_last_channels,
     .sample = "%a=int64{1,2} #e=1e-3 x=[N,4,5,3] %g=[3] %b=[1,1,1,3]; "
               "%a=int64{1,2,3} #e=1e-3 x=[N,4,5,2,3] %g=[3] %b=[3]"},
    {"group-norm-last", "Reshape(" KERAS_SCALED("x:Reshape(z, q)") ", t)",
     "Transpose<perm = @back>(GroupNormalization<epsilon = #e, num_groups = @groups>("
     "Transpose<perm = @to>(z), g2, b2))",
     .where = is_grouped_last, .build = bind_last_groups,
     .sample = "z=[2,4,5,6] q=int64{2,4,5,3,2} %a=int64{1,2,4} #e=1e-3 %g=[1,1,1,3,2] "
               "%b=[1,1,1,3,2] t=int64{2,4,5,6}"},
    {"layer-norm-scale", "Mul(n:LayerNormalization<axis = @axis>(x, %one), %g)",
     "LayerNormalization<*n>(x, g)", .where = takes_scale,
     .sample = "%one=1[8] %g=[8]; %one=1[3,8] %g=[3,8] @axis=-2"},
    {"layer-norm-offset", "Add(n:LayerNormalization(x, %one), %b)",
     "LayerNormalization<*n>(x, one, b)", .where = takes_offset, .sample = "%one=[8] %b=[8]"},
    {"rms-norm", "Div(x, " SPREAD(SQUARE("x")) ")", RMS, .where = is_float_rows, .build = bind_rows,
     .sample = "%a=int64{-1} #e=1e-5 x=[N,S,8]"},
    {"rms-norm-mul", "Mul(x, " INVERSE(SQUARE("x")) ")", RMS, .where = is_float_rows,
     .build = bind_rows, .sample = "%a=int64{-1} #e=1e-5 x=[N,S,8]"},
    {"rms-norm-scaled", "Mul(x, Mul(" INVERSE(SQUARE("x")) ", %g))",
     "RMSNormalization<axis = @axis, epsilon = #e>(x, g)", .where = scales_rows, .build = bind_axis,
     .sample = "%a=int64{-1} #e=1e-5 x=[N,S,8] %g=[8]"},
    {"rms-norm-scale", "Mul(n:RMSNormalization(x, %one), %g)", "RMSNormalization<*n>(x, g)",
     .where = takes_scale, .sample = "%one=1[8] %g=[8]"},
    {"group-norm", "Reshape(InstanceNormalization<epsilon = @e>(r:Reshape(x, s), %one, %zero), t)",
     "GroupNormalization<epsilon = @e, num_groups = @groups>(x, one, zero)", .where = is_grouped,
     .build = bind_groups,
     .sample = "x=[2,6,4,5] s=int64{0,3,-1} %one=1[3] %zero=0[3] "
               "t=int64{2,6,4,5}"},
    {"group-norm-scale", "Mul(n:GroupNormalization<num_groups = @groups>(x, %one, %zero), %g)",
     "GroupNormalization<*n>(x, g2, zero)", .where = takes_channel_scale, .build = flatten_scale,
     .sample = "x=[N,6,4,5] %one=1[6] %zero=0[6] %g=[6,1,1] @groups=2"},
    {"group-norm-offset", "Add(n:GroupNormalization<num_groups = @groups>(x, %one, %zero), %b)",
     "GroupNormalization<*n>(x, one, b2)", .where = takes_channel_offset, .build = flatten_offset,
     .sample = "x=[N,6,4,5] %one=[6] %zero=0[6] %b=[6,1,1] @groups=2"},
    {"instance-norm-scale", "Mul(n:InstanceNormalization(x, %one, %zero), %g)",
     "InstanceNormalization<*n>(x, g2, zero)", .where = takes_channel_scale, .build = flatten_scale,
     .sample = "x=[N,6,4,5] %one=1[6] %zero=0[6] %g=[6,1,1]"},
    {"instance-norm-offset", "Add(n:InstanceNormalization(x, %one, %zero), %b)",
     "InstanceNormalization<*n>(x, one, b2)", .where = takes_channel_offset,
     .build = flatten_offset, .sample = "x=[N,6,4,5] %one=[6] %zero=0[6] %b=[6,1,1] @groups=2"},
    {0},
};

const sni_rule sni_rules_skip_norms[] = {
    {"skip-layer-norm", "LayerNormalization<axis = -1, epsilon = @e>(s:Add(x, y), %g, %b?)",
     "(root, _, _, s) = com.microsoft.SkipLayerNormalization<epsilon = @e>(x, y, g, b)",
     .where = adds_alike, .sample = "x=[N,S,8] y=[N,S,8] %g=[8] %b=[8]"},
    {"skip-rms-norm", "RMSNormalization<axis = -1, epsilon = @e>(s:Add(x, y), %g)",
     "(root, _, _, s) = com.microsoft.SkipSimplifiedLayerNormalization<epsilon = @e>(x, y, g)",
     .where = adds_alike, .sample = "x=[N,S,8] y=[N,S,8] %g=[8]"},
    {0},
};
