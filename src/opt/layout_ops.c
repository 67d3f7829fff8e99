/* layout_ops.c - operators in blocked layout: convolutions and what stands between them. Pools and
 * other operators over pictures are layout_picture.c. */
#include "opt/layout.h"

#include "ops/nn/resize.h"
#include "ops/sinter/conv_limits.h"

#include <math.h>

enum {
    MAX_OPERANDS = 8,
    FEW_STEPS = 3, /* operators between convolutions along a line that are looked for, */
    FEW_USERS = 4, /* among so many users of each */
};

static sn_status layout_conv(sni_layout_pass *l, sni_node *n);

/* ---- Convolution ---- */

static bool is_float_const(const sni_layout_pass *l, int32_t id, int rank) {
    const sni_const *c = sni_layout_const(l, id);
    return c && c->tensor.dtype == SN_FLOAT32 && c->tensor.rank == rank && c->tensor.count > 0;
}

/* True if the kernels for blocked tensors take a convolution with these weights, whose input has a
 * blocked variant or not. */
static bool takes_groups(const sni_layout_pass *l, const sni_conv_params *p, const int64_t *w,
                         bool has, bool *plain) {
    int64_t groups = p->group, in = w[1] * groups, out = w[0];
    if (groups > 1) *plain = false;
    return groups == 1 || sni_blocked_near(in, out, groups, w[2] * w[3], l->block) ||
           sni_blocked_merge(in, out, groups, l->block) > 0 || (has && sni_blocked_is_flat(p, w));
}

/* True if a convolution uses a node's result, or what few operators with a blocked variant make of
 * it.
 */
static bool feeds_conv(const sni_layout_pass *l, const sni_node *n, int steps) {
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(l->g, n->out[i]);
        for (int32_t u = 0; v && u < v->use_count && u < FEW_USERS; u++) {
            const sni_node *user = sni_graph_node(l->g, v->uses[u].node);
            sni_layout_fn handle = user ? sni_layout_handler(user) : NULL;
            if (handle == layout_conv) return true;
            if (handle && steps > 0 && feeds_conv(l, user, steps - 1)) return true;
        }
    }
    return false;
}

/* True for a convolution along a line that gains more by blocks than the way into them takes: of
 * several taps or with another one after it, over channels that fill blocks. */
static bool suits_blocked_line(const sni_layout_pass *l, const sni_node *n, const int64_t *w) {
    int64_t groups = ((const sni_conv_params *)n->params)->group, in = w[1] * groups;
    bool fills =
        (in <= SNI_PLAIN_MAX_IN && in > SNI_ROWS_MAX_IN) || sni_fills_input_blocks(in, l->block);
    return fills && sni_fills_output_block(w[0], l->block) && !(groups > 1 && w[1] == 1) &&
           (w[3] > 1 || feeds_conv(l, n, FEW_STEPS));
}

/* True for one tap by channel, which is a scale and a shift, and for few channels of a wide
 * picture: they go on with a region, but cost less than the conversions of one of their own. */
static bool begins_no_region(const sni_layout_pass *l, const sni_node *n, const int64_t *w) {
    int64_t groups = ((const sni_conv_params *)n->params)->group;
    const sni_type *x = &l->g->values[n->in[0]]->type;
    bool scales = w[0] > 1 && w[1] == 1 && w[2] == 1 && w[3] == 1 && groups == w[0];
    bool lines = groups == 1 && w[1] <= SNI_ROWS_MAX_IN && w[0] <= SNI_ROWS_MAX_OUT &&
                 x->dims[x->rank - 1] >= SNI_ROWS_MIN_WIDTH;
    if (x->rank == 3) lines = !suits_blocked_line(l, n, w);
    return (scales || lines) && !sni_layout_has(l, n->in[0]) &&
           !(sni_layout_given(n, 3) && sni_layout_has(l, n->in[3]));
}

/* True if a node's result, or what operators of one operand make of it, meets other values in
 * blocked layout. */
static bool goes_on(const sni_layout_pass *l, const sni_node *n, int steps) {
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(l->g, n->out[i]);
        for (int32_t u = 0; v && u < v->use_count; u++) {
            const sni_node *user = sni_graph_node(l->g, v->uses[u].node);
            if (!user || !sni_layout_handler(user)) continue;
            if (user->n_in > 1 || steps == 0 || goes_on(l, user, steps - 1)) return true;
        }
    }
    return false;
}

/* True for a convolution along a line to so few channels that plain rows are quicker even if its
 * input has to be converted, where nothing goes on in blocked layout after it. */
static bool ends_region(const sni_layout_pass *l, const sni_node *n, const int64_t *w) {
    return sni_layout_is_line(l, n->in[0]) && !sni_fills_output_block(w[0], l->block) &&
           ((const sni_conv_params *)n->params)->group == 1 && !sni_layout_given(n, 3) &&
           sni_rows_take(w[0], w[1] * w[3]) && !goes_on(l, n, FEW_STEPS);
}

/* The shape of a convolution's weights as that of one over a picture; false if they are not
 * constants of its rank. */
static bool read_weights(const sni_layout_pass *l, const sni_node *n, int64_t w[4]) {
    bool line = sni_layout_is_line(l, n->in[0]);
    if (!is_float_const(l, n->in[1], line ? 3 : 4)) return false;
    const int64_t *dims = sni_layout_const(l, n->in[1])->tensor.dims;
    for (int i = 0; i < 4; i++) w[i] = !line || i < 2 ? dims[i] : i == 2 ? 1 : dims[2];
    return true;
}

/* The weights in that shape. */
static sn_status shape_weights(sni_layout_pass *l, int32_t id, const int64_t w[4], int32_t *out) {
    sni_const *c;
    sni_value *v;
    SN_TRY(sni_const_reshaped(sni_layout_const(l, id), 4, w, &c, l->r->err));
    SN_TRY(sni_graph_add_const(l->g, (sni_str){0}, c, &v, l->r->err));
    *out = v->id;
    return SN_OK;
}

/* A plain line as a picture. */
static sn_status lift(sni_layout_pass *l, const sni_node *n, int32_t *id) {
    int32_t in[2] = {*id};
    SN_TRY(sni_layout_const_ints(l, (int64_t[]){2}, 1, &in[1]));
    sni_layout_node node = {.domain = "", .type = "Unsqueeze", .in = in, .n_in = 2};
    return sni_layout_emit(l, n, &node, id);
}

static sn_status layout_conv(sni_layout_pass *l, sni_node *n) {
    int64_t w[4];
    if (!sni_layout_channels(l, n->in[0]) || !sni_layout_channels(l, n->out[0]) ||
        !read_weights(l, n, w) || (sni_layout_given(n, 2) && !is_float_const(l, n->in[2], 1)) ||
        (sni_layout_given(n, 4) && !is_float_const(l, n->in[4], 1)))
        return SN_OK;
    const sni_conv_params *p = n->params;
    bool line = sni_layout_is_line(l, n->in[0]);
    bool has = sni_layout_has(l, n->in[0]);
    bool plain = !has && w[1] <= SNI_PLAIN_MAX_IN;
    if (!takes_groups(l, p, w, has, &plain) || begins_no_region(l, n, w) || ends_region(l, n, w))
        return SN_OK;
    bool done = false;
    if (!line) SN_TRY(sni_layout_shuffled_conv(l, n, &done));
    if (done) return SN_OK;
    int32_t in[5] = {n->in[0], n->in[1], sni_layout_given(n, 2) ? n->in[2] : SNI_NO_ID, SNI_NO_ID,
                     sni_layout_given(n, 4) ? n->in[4] : SNI_NO_ID};
    int32_t n_in = 5, out;
    while (in[n_in - 1] == SNI_NO_ID && !sni_layout_given(n, n_in - 1)) n_in--;
    if (!plain) SN_TRY(sni_layout_need(l, n->in[0], n, &in[0]));
    if (sni_layout_given(n, 3)) SN_TRY(sni_layout_need(l, n->in[3], n, &in[3]));
    sni_attr attrs[SNI_LAYOUT_LISTS + 1];
    int32_t n_attrs = 0;
    if (line) {
        if (plain) SN_TRY(lift(l, n, &in[0]));
        SN_TRY(shape_weights(l, n->in[1], w, &in[1]));
        SN_TRY(sni_layout_longer_lists(l, n, false, attrs, &n_attrs));
    }
    attrs[n_attrs++] = sni_attr_of_int("block", l->block);
    sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                            .type = "BlockedConv",
                            .in = in,
                            .n_in = n_in,
                            .like = n,
                            .attrs = attrs,
                            .n_attrs = n_attrs};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    sni_layout_done(l, n, out);
    return SN_OK;
}

/* ---- Normalisation ---- */

/* A constant of one number for each channel. */
static sn_status load_channels(const sni_layout_pass *l, const sni_node *n, int32_t i,
                               int64_t channels, const float **out) {
    sni_const *c = sni_layout_given(n, i) ? sni_layout_const(l, n->in[i]) : NULL;
    const sni_tensor *t;
    *out = NULL;
    if (!c || c->tensor.dtype != SN_FLOAT32 || c->tensor.count != channels) return SN_OK;
    SN_TRY(sni_const_load(c, &t, l->r->err));
    *out = t->data;
    return SN_OK;
}

/* A Relu that is all that uses a node's output; NULL: none. */
static sni_node *relu_after(const sni_layout_pass *l, const sni_node *n) {
    const sni_value *v = l->g->values[n->out[0]];
    sni_node *user = v->use_count == 1 ? sni_graph_node(l->g, v->uses[0].node) : NULL;
    return user && user->domain.n == 0 && sni_str_is(user->type, "Relu") ? user : NULL;
}

/* BatchNormalization, and a Relu after it, as a depthwise convolution of one tap. */
static sn_status layout_norm(sni_layout_pass *l, sni_node *n) {
    int64_t channels = sni_layout_channels(l, n->out[0]);
    const float *scale, *bias, *mean, *var;
    const sni_attr *epsilon = sni_node_attr(n, "epsilon");
    const sni_attr *training = sni_node_attr(n, "training_mode");
    if (!channels || !sni_layout_has(l, n->in[0]) || n->n_out != 1 || (training && training->u.i))
        return SN_OK;
    SN_TRY(load_channels(l, n, 1, channels, &scale));
    SN_TRY(load_channels(l, n, 2, channels, &bias));
    SN_TRY(load_channels(l, n, 3, channels, &mean));
    SN_TRY(load_channels(l, n, 4, channels, &var));
    if (!scale || !bias || !mean || !var) return SN_OK;
    float *w, *b;
    int32_t in[3], out;
    SN_TRY(sni_layout_need(l, n->in[0], n, &in[0]));
    SN_TRY(sni_layout_const_floats(l, 4, (int64_t[]){channels, 1, 1, 1}, &w, &in[1]));
    SN_TRY(sni_layout_const_floats(l, 1, &channels, &b, &in[2]));
    double eps = epsilon ? (double)epsilon->u.f : (double)1e-5f;
    for (int64_t c = 0; c < channels; c++) {
        double k = (double)scale[c] / sqrt((double)var[c] + eps);
        w[c] = (float)k;
        b[c] = (float)((double)bias[c] - (double)mean[c] * k);
    }
    sni_node *relu = relu_after(l, n);
    const sni_attr attrs[3] = {sni_attr_of_int("block", l->block),
                               sni_attr_of_int("group", channels),
                               sni_attr_of_string("activation", "Relu")};
    sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                            .type = "BlockedConv",
                            .in = in,
                            .n_in = 3,
                            .attrs = attrs,
                            .n_attrs = relu ? 3 : 2};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    if (relu) sni_layout_done(l, relu, out);
    sni_layout_done(l, n, out);
    return SN_OK;
}

/* ---- One operand ---- */

/* Applies to each element alone; further inputs, such as bounds, stay as they are. */
static sn_status layout_unary(sni_layout_pass *l, sni_node *n) {
    int32_t in[MAX_OPERANDS], out;
    if (!sni_layout_has(l, n->in[0]) || !sni_layout_channels(l, n->out[0]) ||
        n->n_in > MAX_OPERANDS)
        return SN_OK;
    for (int32_t i = 1; i < n->n_in; i++) in[i] = n->in[i];
    SN_TRY(sni_layout_need(l, n->in[0], n, &in[0]));
    sni_layout_node node = {
        .domain = n->op->domain, .type = n->op->name, .in = in, .n_in = n->n_in, .like = n};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    sni_layout_done(l, n, out);
    return SN_OK;
}

/* ---- Several operands ---- */

bool sni_layout_is_channels(const sni_layout_pass *l, int32_t id, int64_t channels, int rank) {
    const sni_const *c = sni_layout_const(l, id);
    if (!c || c->tensor.dtype != SN_FLOAT32 || c->tensor.count != channels ||
        (c->tensor.rank != rank - 1 && c->tensor.rank != rank))
        return false;
    return c->tensor.dims[c->tensor.rank - rank + 1] == channels;
}

/* How an operand comes into an operation on blocked tensors of `channels` channels, plain ones of
 * which have this rank. */
typedef enum operand {
    OPERAND_NONE,     /* it cannot */
    OPERAND_BLOCKED,  /* in its blocked variant */
    OPERAND_AS_IS,    /* one element */
    OPERAND_CHANNELS, /* a constant by channel */
    OPERAND_PICTURE   /* one channel for all */
} operand;

static operand classify(const sni_layout_pass *l, int32_t id, int64_t channels, int rank) {
    const sni_value *v = sni_graph_value(l->g, id);
    if (!v || v->type.dtype != SN_FLOAT32 || !v->type.has_shape) return OPERAND_NONE;
    const sni_type *t = &v->type;
    int64_t count = 1;
    for (int i = 0; i < t->rank; i++) count = t->dims[i] == 1 ? count : 0;
    if (count == 1 && !sni_layout_has(l, id)) return OPERAND_AS_IS;
    if (sni_layout_const(l, id))
        return sni_layout_is_channels(l, id, channels, rank) ? OPERAND_CHANNELS : OPERAND_NONE;
    if (t->rank != rank) return OPERAND_NONE;
    if (sni_layout_channels(l, id) == channels) return OPERAND_BLOCKED;
    return sni_layout_channels(l, id) == 1 ? OPERAND_PICTURE : OPERAND_NONE;
}

static sn_status place(sni_layout_pass *l, sni_node *n, int32_t i, int64_t channels, float tail,
                       int32_t *out) {
    int rank = l->g->values[n->out[0]]->type.rank;
    int32_t in[2] = {n->in[i]};
    const sni_tensor *t;
    *out = n->in[i];
    switch (classify(l, n->in[i], channels, rank)) {
    case OPERAND_BLOCKED:
        return sni_layout_need(l, n->in[i], n, out);
    case OPERAND_CHANNELS:
        SN_TRY(sni_const_load(sni_layout_const(l, n->in[i]), &t, l->r->err));
        return sni_layout_const_channels(l, t->data, channels, tail, out);
    case OPERAND_PICTURE:
        if (rank == 3) SN_TRY(lift(l, n, &in[0]));
        SN_TRY(sni_layout_const_ints(l, (int64_t[]){4}, 1, &in[1]));
        sni_layout_node node = {.domain = "", .type = "Unsqueeze", .in = in, .n_in = 2};
        return sni_layout_emit(l, n, &node, out);
    default:
        return SN_OK;
    }
}

/* Operators that combine their operands element by element. `tail` stands beyond the channels of a
 * constant operand. */
static sn_status combine(sni_layout_pass *l, sni_node *n, float tail, bool divides) {
    int64_t channels = sni_layout_channels(l, n->out[0]);
    int32_t in[MAX_OPERANDS], out;
    bool some = false;
    if (!channels || n->n_in > MAX_OPERANDS) return SN_OK;
    for (int32_t i = 0; i < n->n_in; i++) {
        operand o = classify(l, n->in[i], channels, l->g->values[n->out[0]]->type.rank);
        if (o == OPERAND_NONE) return SN_OK;
        if (divides && i == 1 && o != OPERAND_CHANNELS && o != OPERAND_AS_IS) return SN_OK;
        some = some || (o == OPERAND_BLOCKED && sni_layout_has(l, n->in[i]));
    }
    if (!some) return SN_OK;
    for (int32_t i = 0; i < n->n_in; i++) SN_TRY(place(l, n, i, channels, tail, &in[i]));
    sni_layout_node node = {
        .domain = n->op->domain, .type = n->op->name, .in = in, .n_in = n->n_in, .like = n};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    sni_layout_done(l, n, out);
    return SN_OK;
}

static sn_status layout_combine(sni_layout_pass *l, sni_node *n) {
    return combine(l, n, 0, false);
}

static sn_status layout_divide(sni_layout_pass *l, sni_node *n) {
    return combine(l, n, 1, true);
}

sn_status sni_layout_slopes(sni_layout_pass *l, int32_t id, int64_t channels, int32_t *out) {
    const sni_tensor *t;
    float *slopes;
    SN_TRY(sni_const_load(sni_layout_const(l, id), &t, l->r->err));
    SN_TRY(sni_layout_const_floats(l, 1, &channels, &slopes, out));
    memcpy(slopes, t->data, (size_t)channels * sizeof *slopes);
    return SN_OK;
}

/* ---- Shape ---- */

/* (C, N, blocks, H, W, block) of a blocked value. */
static sn_status blocked_shape(sni_layout_pass *l, sni_node *n, int64_t channels, int32_t *out) {
    int32_t in[2];
    SN_TRY(sni_layout_need(l, n->in[0], n, &in[0]));
    sni_layout_node shape = {.domain = "", .type = "Shape", .in = in, .n_in = 1};
    SN_TRY(sni_layout_emit(l, n, &shape, &in[1]));
    SN_TRY(sni_layout_const_ints(l, &channels, 1, &in[0]));
    sni_attr axis = sni_attr_of_int("axis", 0);
    sni_layout_node both = {
        .domain = "", .type = "Concat", .in = in, .n_in = 2, .attrs = &axis, .n_attrs = 1};
    return sni_layout_emit(l, n, &both, out);
}

/* The shape of a value that has a blocked variant: the constant that it is, or made of the blocked
 * one's. */
static sn_status layout_shape(sni_layout_pass *l, sni_node *n) {
    const int64_t *known;
    int64_t count, channels = sni_layout_channels(l, n->in[0]);
    int32_t in[2], out;
    if (!channels || !sni_layout_has(l, n->in[0])) return SN_OK;
    if (sni_layout_ints(l, n->out[0], &known, &count)) {
        SN_TRY(sni_layout_const_ints(l, known, count, &out));
    } else {
        if (sni_node_attr(n, "start") || sni_node_attr(n, "end")) return SN_OK;
        SN_TRY(blocked_shape(l, n, channels, &in[0]));
        if (sni_layout_is_line(l, n->in[0]))
            SN_TRY(sni_layout_const_ints(l, (int64_t[]){1, 0, 4}, 3, &in[1]));
        else
            SN_TRY(sni_layout_const_ints(l, (int64_t[]){1, 0, 3, 4}, 4, &in[1]));
        sni_layout_node pick = {.domain = "", .type = "Gather", .in = in, .n_in = 2};
        SN_TRY(sni_layout_emit(l, n, &pick, &out));
    }
    SN_TRY(sni_graph_replace_uses(l->g, n->out[0], out, l->r->err));
    l->dead[n->id] = true;
    return SN_OK;
}

/* ---- Which ---- */

typedef struct handler {
    const char *type;
    sni_layout_fn fn;
} handler;

/* Functions of one element are finite at 0 and do not grow beyond bounds: channels that mean
 * nothing stay finite. */
static const handler handlers[] = {
    {"Add", layout_combine},
    {"AveragePool", sni_layout_pool},
    {"BatchNormalization", layout_norm},
    {"Celu", layout_unary},
    {"Clip", layout_unary},
    {"Concat", sni_layout_concat},
    {"Conv", layout_conv},
    {"ConvTranspose", sni_layout_conv_transpose},
    {"Div", layout_divide},
    {"Elu", layout_unary},
    {"Erf", layout_unary},
    {"Gelu", layout_unary},
    {"GlobalAveragePool", sni_layout_global_pool},
    {"GlobalMaxPool", sni_layout_global_pool},
    {"HardSigmoid", layout_unary},
    {"HardSwish", layout_unary},
    {"LeakyRelu", layout_unary},
    {"Max", layout_combine},
    {"MaxPool", sni_layout_pool},
    {"Min", layout_combine},
    {"Mish", layout_unary},
    {"Mul", layout_combine},
    {"Neg", layout_unary},
    {"PRelu", layout_combine},
    {"Pad", sni_layout_pad},
    {"ReduceMax", sni_layout_reduce},
    {"ReduceMean", sni_layout_reduce},
    {"Relu", layout_unary},
    {"Reshape", sni_layout_shuffle},
    {"Resize", sni_layout_resize},
    {"Selu", layout_unary},
    {"Shape", layout_shape},
    {"Sigmoid", layout_unary},
    {"Slice", sni_layout_slice},
    {"Softplus", layout_unary},
    {"Softsign", layout_unary},
    {"Split", sni_layout_split},
    {"Sub", layout_combine},
    {"Sum", layout_combine},
    {"Swish", layout_unary},
    {"Tanh", layout_unary},
};

sni_layout_fn sni_layout_handler(const sni_node *n) {
    if (!n->op) return NULL;
    if (sni_str_is(n->domain, "com.microsoft"))
        return sni_str_is(n->type, "FusedConv") ? layout_conv : NULL;
    if (n->domain.n) return NULL;
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (sni_str_is(n->type, handlers[i].type)) return handlers[i].fn;
    return NULL;
}
