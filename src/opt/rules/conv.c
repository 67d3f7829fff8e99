/* conv.c - what stands around a convolution becomes part of it: normalisations, scales and shifts
 * go into its weights; an added tensor and an activation become com.microsoft's FusedConv, Y =
 * activation(Conv(X, W, B) + Z). */
#include "opt/rules/rules.h"

/* ---- Folding into weights ---- */

static const sni_type *conv_type(const sni_match *m) {
    return &sni_graph_value(m->g, sni_match_node(m, "c")->out[0])->type;
}

/* The weights are float32 and belong to this convolution. */
static const sni_tensor *weights(const sni_match *m) {
    const sni_const *c = sni_value_const(m->g, sni_match_value(m, "w"));
    return c && c->tensor.dtype == SN_FLOAT32 && c->tensor.rank >= 3 ? &c->tensor : NULL;
}

static int64_t group_of(const sni_match *m) {
    const sni_attr *a = sni_node_attr(sni_match_node(m, "c"), "group");
    return a && a->u.i > 0 ? a->u.i : 1;
}

/* Channels of the result: axis 0 of a Conv's weights. A ConvTranspose has them on axis 1, which is
 * simple where there is one group. */
static int64_t channels_of(const sni_match *m, bool transposed) {
    const sni_tensor *w = weights(m);
    if (!w || (transposed && group_of(m) != 1)) return -1;
    return w->dims[transposed];
}

static bool has_plain_bias(const sni_match *m, int64_t channels) {
    const sni_const *b = sni_value_const(m->g, sni_match_value(m, "b"));
    return sni_match_value(m, "b") == SNI_NO_ID ||
           (b && b->tensor.dtype == SN_FLOAT32 && b->tensor.rank == 1 &&
            b->tensor.count == channels);
}

static bool can_fold_norm(const sni_match *m, bool transposed) {
    static const char *const names[] = {"scale", "bias", "mean", "var"};
    int64_t channels = channels_of(m, transposed);
    if (channels < 1 || !has_plain_bias(m, channels)) return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!sni_is_channels(m, names[i], channels, 0)) return false;
    return true;
}

static bool conv_norm(sni_match *m) {
    return can_fold_norm(m, false);
}

static bool transposed_norm(sni_match *m) {
    return can_fold_norm(m, true);
}

static int64_t kernel_size(const sni_match *m) {
    const sni_tensor *w = weights(m);
    int64_t size = 1;
    for (int i = 2; i < w->rank; i++) size *= w->dims[i];
    return size;
}

static sn_status fold(sni_match *m, const sni_affine *a, bool transposed) {
    int64_t inner = kernel_size(m) * (transposed ? 1 : weights(m)->dims[1]);
    return sni_affine_fold(m, a, inner);
}

static sn_status fold_norm(sni_match *m) {
    sni_affine a;
    SN_TRY(sni_affine_of_norm(m, channels_of(m, false), &a));
    return fold(m, &a, false);
}

static sn_status fold_transposed_norm(sni_match *m) {
    sni_affine a;
    SN_TRY(sni_affine_of_norm(m, channels_of(m, true), &a));
    return fold(m, &a, true);
}

static bool can_fold_constant(const sni_match *m, bool transposed) {
    const sni_type *y = conv_type(m);
    int64_t channels = channels_of(m, transposed);
    return channels > 0 && y->has_shape && has_plain_bias(m, channels) &&
           sni_is_channels(m, "v", channels, y->rank - 2) && sni_is_foldable(m, "v");
}

static bool conv_constant(sni_match *m) {
    return can_fold_constant(m, false);
}

static bool transposed_constant(sni_match *m) {
    return can_fold_constant(m, true);
}

static sn_status fold_constant(sni_match *m) {
    sni_affine a;
    SN_TRY(sni_affine_of_root(m, "v", channels_of(m, false), &a));
    return fold(m, &a, false);
}

static sn_status fold_transposed_constant(sni_match *m) {
    sni_affine a;
    SN_TRY(sni_affine_of_root(m, "v", channels_of(m, true), &a));
    return fold(m, &a, true);
}

/* ---- A normalisation that nothing before it can take in: a convolution of single channels ---- */

static bool norm_alone(sni_match *m) {
    static const char *const names[] = {"scale", "bias", "mean", "var"};
    const sni_type *x = sni_match_type(m, "x");
    if (!x->has_shape || x->rank < 3 || x->rank > 5 || x->dims[1] < 1 || x->dtype != SN_FLOAT32)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!sni_is_channels(m, names[i], x->dims[1], 0)) return false;
    return true;
}

static sn_status norm_to_conv(sni_match *m) {
    const sni_type *x = sni_match_type(m, "x");
    int64_t dims[SN_MAX_RANK] = {x->dims[1]};
    sni_affine a;
    float *w2, *b2;
    for (int i = 1; i < x->rank; i++) dims[i] = 1;
    SN_TRY(sni_affine_of_norm(m, x->dims[1], &a));
    SN_TRY(sni_match_new_floats(m, "w2", x->rank, dims, &w2));
    SN_TRY(sni_match_new_floats(m, "b2", 1, dims, &b2));
    memcpy(w2, a.k, (size_t)dims[0] * sizeof *w2);
    memcpy(b2, a.s, (size_t)dims[0] * sizeof *b2);
    return sni_match_set_attr(m, "channels", sni_attr_of_int("channels", dims[0]));
}

/* ---- Padding ---- */

static int64_t pad_at(const sni_tensor *t, int64_t i) {
    int64_t v;
    memcpy(&v, (const char *)t->data + (size_t)i * sizeof v, sizeof v);
    return v;
}

/* Zeros around the spatial axes alone, of a node that states its padding by numbers. */
static bool pads_space(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "pads");
    const sni_attr *pads = sni_match_attr(m, "p");
    const sni_type *x = sni_match_type(m, "x");
    if (!t || t->dtype != SN_INT64 || !x->has_shape || x->rank < 3 || t->count != 2 * x->rank)
        return false;
    if (pads && pads->count != (size_t)(2 * (x->rank - 2))) return false;
    for (int i = 0; i < x->rank; i++) {
        int64_t from = pad_at(t, i), to = pad_at(t, x->rank + i);
        if (from < 0 || to < 0 || from > INT32_MAX || to > INT32_MAX || (i < 2 && (from || to)))
            return false;
    }
    return true;
}

/* A pool that has no padding of its own. */
static bool pads_pool(sni_match *m) {
    const sni_attr *pads = sni_match_attr(m, "p");
    for (size_t i = 0; pads && i < pads->count; i++)
        if (pads->u.ints[i] != 0) return false;
    return pads_space(m);
}

static sn_status add_pads(sni_match *m) {
    const sni_tensor *t = sni_match_const(m, "pads");
    const sni_attr *pads = sni_match_attr(m, "p");
    int space = sni_match_type(m, "x")->rank - 2;
    int64_t *sum = SNI_NEW_ARRAY(&m->r->store->arena, int64_t, 2 * space);
    if (!sum || !t) return sni_fail_memory(m->r->err);
    for (int i = 0; i < 2 * space; i++) {
        int axis = i < space ? 2 + i : (space + 2) + 2 + (i - space);
        sum[i] = pad_at(t, axis) + (pads ? pads->u.ints[i] : 0);
    }
    sni_attr a = {.kind = SNI_ATTR_INTS, .count = (size_t)(2 * space), .u.ints = sum};
    return sni_match_set_attr(m, "sum", a);
}

/* ---- Cropping ---- */

/* Results that a slice with step 1 leaves out at either end of an axis of `size`; false if that is
 * not known. */
static bool read_crop(int64_t from, int64_t to, sni_dim size, int64_t *before, int64_t *behind) {
    if (to < -INT32_MAX || ((from < 0 || (to >= 0 && to < INT32_MAX)) && !sni_dim_known(size)))
        return false;
    if (from < 0) from += size;
    *before = from;
    *behind = to < 0 ? -to : to >= INT32_MAX || to >= size ? 0 : size - to;
    return *before >= 0 && *before < INT32_MAX && *behind >= 0 && *behind < INT32_MAX;
}

/* The padding of a convolution that makes no more results than a slice of its spatial axes keeps;
 * false if there is none. `less` holds two numbers for each of those axes. */
static bool crop_pads(sni_match *m, int64_t *less) {
    const sni_tensor *starts = sni_match_const(m, "starts"), *ends = sni_match_const(m, "ends");
    const sni_tensor *axes = sni_match_const(m, "axes"), *steps = sni_match_const(m, "steps");
    const sni_attr *pads = sni_match_attr(m, "p");
    const sni_attr *strides = sni_node_attr(sni_match_node(m, "c"), "strides");
    const sni_type *y = conv_type(m);
    int space = y->rank - 2;
    if (!y->has_shape || space < 1 || !pads || pads->count != (size_t)(2 * space) || !starts ||
        !ends || !axes || starts->dtype != SN_INT64 || ends->dtype != SN_INT64 ||
        axes->dtype != SN_INT64 || starts->count != axes->count || ends->count != axes->count ||
        (strides && strides->count != (size_t)space) ||
        (steps && (steps->dtype != SN_INT64 || steps->count != axes->count)))
        return false;
    for (int i = 0; i < 2 * space; i++) {
        less[i] = pads->u.ints[i];
        if (less[i] < 0 || less[i] > INT32_MAX) return false;
    }
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t axis = pad_at(axes, i), before, behind;
        if (axis < 0) axis += y->rank;
        if (axis < 2 || axis >= y->rank || (steps && pad_at(steps, i) != 1) ||
            !read_crop(pad_at(starts, i), pad_at(ends, i), y->dims[axis], &before, &behind))
            return false;
        int64_t stride = strides ? strides->u.ints[axis - 2] : 1;
        if (stride < 1 || stride > INT32_MAX) return false;
        less[axis - 2] -= before * stride;
        less[space + axis - 2] -= behind * stride;
        if (less[axis - 2] < 0 || less[space + axis - 2] < 0) return false;
    }
    return true;
}

static bool crops_padding(sni_match *m) {
    int64_t less[2 * SN_MAX_RANK];
    return crop_pads(m, less);
}

static sn_status bind_less(sni_match *m) {
    size_t count = 2 * (size_t)(conv_type(m)->rank - 2);
    int64_t *less = SNI_NEW_ARRAY(&m->r->store->arena, int64_t, count);
    if (!less) return sni_fail_memory(m->r->err);
    crop_pads(m, less);
    sni_attr a = {.kind = SNI_ATTR_INTS, .count = count, .u.ints = less};
    return sni_match_set_attr(m, "less", a);
}

/* ---- Epilogues ---- */

/* A float32 convolution that has no activation yet. */
static bool is_open(sni_match *m) {
    const sni_attr *a = sni_node_attr(sni_match_node(m, "c"), "activation");
    return !(a && a->u.s.n) && sni_match_type(m, "w")->dtype == SN_FLOAT32;
}

static bool adds_alike(sni_match *m) {
    return is_open(m) && sni_types_equal(conv_type(m), sni_match_type(m, "z"));
}

static bool is_plain_activation(sni_match *m) {
    sni_ending e;
    return is_open(m) && sni_ending_of(m->g, sni_match_node(m, "f"), &e);
}

static sn_status bind_activation(sni_match *m) {
    return sni_bind_activation(m, "f");
}

/* One slope for each channel. */
static bool bends_channels(sni_match *m) {
    const sni_type *y = conv_type(m), *w = sni_match_type(m, "w");
    const sni_const *s = sni_value_const(m->g, sni_match_value(m, "s"));
    return is_open(m) && s && y->has_shape && w->has_shape && w->dims[0] > 0 &&
           s->tensor.count == w->dims[0] && sni_is_channels(m, "s", w->dims[0], y->rank - 2);
}

static sn_status bind_slopes(sni_match *m) {
    return sni_bind_flat(m, "s", "slopes");
}

#define CONV "c:Conv|com.microsoft.FusedConv(x, w, b?, z?)"
#define FUSED \
    "com.microsoft.FusedConv<*c, activation = @act, activation_params = @params>(x, w, b, z)"
#define SHAPES "x=[N,4,7,7] w=[6,4,3,3] b=[6] z=[N,6,5,5]; x=[1,2,9] w=[6,2,2] b=[6] z=[1,6,8]"
#define NORM "%scale=[6] %bias=[6] %mean=[6] %var=+[6]"
#define TRANSPOSED "x=[N,4,7,7] %w=[4,6,3,3] %b=[6] "

#define SLICED "%starts, %ends, %axes, %steps?"
#define CROPPED                                                                                 \
    "x=[N,4,7,9] w=[6,4,3,3] b=[6] @p=[1,2,3,2] %starts=int64{0,1} %ends=int64{-2,2147483647} " \
    "%axes=int64{2,-1} %steps=int64{1,1}; x=[1,4,9] w=[6,4,3] b=[6] @p=[2,4] "                  \
    "%starts=int64{-12} %ends=int64{9} %axes=int64{2} %steps=int64{1}"
#define PADDED "Pad<mode = \"constant\">(x, %pads, {0 | _})"

const sni_rule sni_rules_conv[] = {
    {"pad-conv", "c:Conv<auto_pad = \"NOTSET\", pads = @p>(" PADDED ", w, b?)",
     "Conv<*c, pads = @sum>(x, w, b)", .where = pads_space, .build = add_pads,
     .sample = "x=[N,4,7,7] w=[6,4,3,3] b=[6] %pads=int64{0,0,1,2,0,0,3,0} @p=[1,0,0,1]; "
               "x=[N,4,7] w=[6,4,3] b=[6] %pads=int64{0,0,1,0,0,2}"},
    {"conv-slice", "Slice(c:Conv<auto_pad = \"NOTSET\", pads = @p>(x, w, b?), " SLICED ")",
     "Conv<*c, pads = @less>(x, w, b)", .where = crops_padding, .build = bind_less,
     .sample = CROPPED},
    {"fused-conv-slice",
     "Slice(c:com.microsoft.FusedConv<auto_pad = \"NOTSET\", pads = @p>(x, w, b?), " SLICED ")",
     "com.microsoft.FusedConv<*c, pads = @less>(x, w, b)", .where = crops_padding,
     .build = bind_less, .sample = CROPPED},
    {"pad-average-pool",
     "c:AveragePool<auto_pad = \"NOTSET\", pads = @p, ceil_mode = 0, kernel_shape = @k>(" PADDED
     ")",
     "AveragePool<*c, pads = @sum, count_include_pad = 1>(x)", .where = pads_pool,
     .build = add_pads, .sample = "x=[N,4,7,7] @k=[3,3] %pads=int64{0,0,1,2,0,0,1,0}"},
    {"conv-batchnorm",
     "BatchNormalization<epsilon = @eps, training_mode = 0>(c:Conv(x, %w, %b?), %scale, %bias, "
     "%mean, %var)",
     "Conv<*c>(x, w2, b2)", .where = conv_norm, .build = fold_norm,
     .sample = "x=[N,4,7,7] %w=[6,4,3,3] %b=[6] " NORM "; x=[1,2,9] %w=[6,2,2] %b=[6] " NORM},
    {"conv-transpose-batchnorm",
     "BatchNormalization<epsilon = @eps, training_mode = 0>(c:ConvTranspose(x, %w, %b?), %scale, "
     "%bias, %mean, %var)",
     "ConvTranspose<*c>(x, w2, b2)", .where = transposed_norm, .build = fold_transposed_norm,
     .sample = TRANSPOSED NORM},
    {"conv-mul", "Mul|Add(c:Conv(x, %w, %b?), %v)", "Conv<*c>(x, w2, b2)", .where = conv_constant,
     .build = fold_constant,
     .sample =
         "x=[N,4,7,7] %w=[6,4,3,3] %b=[6] %v=[1,6,1,1]; x=[1,4,7,7] %w=[6,4,3,3] %b=[6] %v=[]"},
    {"conv-div", "Sub|Div(c:Conv(x, %w, %b?), %v)", "Conv<*c>(x, w2, b2)", .where = conv_constant,
     .build = fold_constant, .sample = "x=[N,4,7,7] %w=[6,4,3,3] %b=[6] %v=+[6,1,1]"},
    {"conv-transpose-mul", "Mul|Add(c:ConvTranspose(x, %w, %b?), %v)",
     "ConvTranspose<*c>(x, w2, b2)", .where = transposed_constant,
     .build = fold_transposed_constant, .sample = TRANSPOSED "%v=[1,6,1,1]"},
    {"conv-transpose-div", "Sub|Div(c:ConvTranspose(x, %w, %b?), %v)",
     "ConvTranspose<*c>(x, w2, b2)", .where = transposed_constant,
     .build = fold_transposed_constant, .sample = TRANSPOSED "%v=+[1,6,1,1]"},
    {"batchnorm-conv",
     "BatchNormalization<epsilon = @eps, training_mode = 0>(x, %scale, %bias, %mean, %var)",
     "Conv<group = @channels>(x, w2, b2)", .where = norm_alone, .build = norm_to_conv,
     .sample = "x=[N,6,4,5] " NORM "; x=[N,6,9] " NORM},
    {"conv-residual", "Add(c:Conv|com.microsoft.FusedConv(x, w, b?), z)",
     "com.microsoft.FusedConv<*c>(x, w, b, z)", .where = adds_alike, .sample = SHAPES},
    {"conv-activation", "f:" SNI_ACTIVATIONS "(" CONV ")", FUSED, .where = is_plain_activation,
     .build = bind_activation, .sample = SHAPES},
    {"conv-prelu", "PRelu(" CONV ", %s)", "com.microsoft.FusedConv<*c>(x, w, b, z, slopes)",
     .where = bends_channels, .build = bind_slopes,
     .sample = "x=[N,4,7,7] w=[6,4,3,3] b=[6] z=[N,6,5,5] %s=[6,1,1]; "
               "x=[1,2,9] w=[6,2,2] b=[6] z=[1,6,8] %s=[6,1]"},
    {"conv-clip", "f:Clip(" CONV ", #low?, #high?)", FUSED, .where = is_plain_activation,
     .build = bind_activation, .sample = SHAPES " #low=-0.25 #high=0.5"},
    {0},
};
