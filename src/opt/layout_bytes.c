/* layout_bytes.c - channels last over regions of operators on bytes: convolutions read whole pixels
 * then, and gather nothing. What enters a region is transposed, and what plain nodes use of it is
 * transposed back. Additions of residuals go into the convolution before them. */
#include "opt/layout.h"

#include "base/lengths.h"
#include "ops/quant/quant.h"
#include "ops/sinter/nhwc.h"

#include <string.h>

#define MS_DOMAIN "com.microsoft"

/* ---- Looking ---- */

/* A picture of bytes. */
static bool is_picture(const sni_layout_pass *l, int32_t id) {
    const sni_value *v = sni_graph_value(l->g, id);
    return v && v->type.kind == SN_KIND_TENSOR && v->type.has_shape && v->type.rank == 4 &&
           (v->type.dtype == SN_UINT8 || v->type.dtype == SN_INT8);
}

static bool is_op(const sni_node *n, const char *domain, const char *type) {
    return n && n->op && sni_str_is(n->domain, domain) && sni_str_is(n->type, type);
}

static const sni_tensor *load_const(const sni_layout_pass *l, int32_t id) {
    sni_const *c = sni_layout_const(l, id);
    const sni_tensor *t;
    return c && sni_const_load(c, &t, NULL) == SN_OK ? t : NULL;
}

static bool same_consts(const sni_layout_pass *l, int32_t a, int32_t b) {
    if (a == b) return a != SNI_NO_ID;
    const sni_tensor *t = load_const(l, a), *u = load_const(l, b);
    return t && u && t->dtype == u->dtype && t->count == 1 && u->count == 1 &&
           memcmp(t->data, u->data, sni_dtype_width(t->dtype)) == 0;
}

/* True for weights whose zero points are 0 once the weights are signed. */
static bool has_no_zero(const sni_layout_pass *l, int32_t weights, int32_t zeros) {
    const sni_const *c = sni_layout_const(l, weights); /* whose contents may wait */
    const sni_tensor *w = c ? &c->tensor : NULL, *z = load_const(l, zeros);
    if (!w || !z || w->rank != 4 || w->count == 0 || z->dtype != w->dtype) return false;
    for (int64_t i = 0; i < z->count; i++)
        if (((const uint8_t *)z->data)[i] != (w->dtype == SN_UINT8 ? 128 : 0)) return false;
    return w->dtype == SN_UINT8 || w->dtype == SN_INT8;
}

static bool is_depthwise(const sni_tensor *w, int64_t groups) {
    return groups > 1 && w->dims[1] == 1 && w->dims[0] == groups;
}

/* ---- Making ---- */

static sn_status transpose(sni_layout_pass *l, int32_t id, bool to_last, const sni_node *before,
                           int32_t *out) {
    static const int64_t last[4] = {0, 2, 3, 1}, first[4] = {0, 3, 1, 2};
    sni_attr perm;
    SN_TRY(sni_layout_list(l, "perm", to_last ? last : first, 4, &perm));
    sni_layout_node node = {
        .domain = "", .type = "Transpose", .in = &id, .n_in = 1, .attrs = &perm, .n_attrs = 1};
    return sni_layout_emit(l, before, &node, out);
}

/* The variant of a picture with channels last, made before `before` if there is none yet. */
static sn_status need(sni_layout_pass *l, int32_t id, const sni_node *before, int32_t *out) {
    bool known = id < l->n_values;
    if (known && l->variants[id].real != SNI_NO_ID) {
        *out = l->variants[id].real;
        return SN_OK;
    }
    SN_TRY(transpose(l, id, true, before, out));
    if (known) l->variants[id].real = *out;
    return SN_OK;
}

static void done(sni_layout_pass *l, sni_node *n, int32_t real) {
    l->variants[n->out[0]].real = real;
    l->dead[n->id] = true;
    l->r->count++;
}

/* The node again with inputs `in`, attributes and `attr` (may be NULL), on variants. */
static sn_status again(sni_layout_pass *l, sni_node *n, const int32_t *in, const sni_attr *attr) {
    int32_t out;
    sni_layout_node node = {.domain = n->op->domain ? n->op->domain : "",
                            .type = n->op->name,
                            .in = in,
                            .n_in = n->n_in,
                            .like = n,
                            .attrs = attr,
                            .n_attrs = attr != NULL};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    done(l, n, out);
    return SN_OK;
}

/* ---- Operators ---- */

enum { MOST_INPUTS = 64 };

/* Input 0 alone is a picture. */
static sn_status layout_unary(sni_layout_pass *l, sni_node *n, const sni_attr *attr) {
    int32_t in[MOST_INPUTS];
    if (!sni_layout_has(l, n->in[0]) || !is_picture(l, n->out[0]) || n->n_in > MOST_INPUTS)
        return SN_OK;
    memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
    SN_TRY(need(l, n->in[0], n, &in[0]));
    return again(l, n, in, attr);
}

static sn_status layout_elements(sni_layout_pass *l, sni_node *n) {
    return layout_unary(l, n, NULL);
}

static sn_status layout_linear_pool(sni_layout_pass *l, sni_node *n) {
    const sni_attr *given = sni_node_attr(n, "channels_last");
    const sni_attr last = sni_attr_of_int("channels_last", 1);
    return given && given->u.i ? SN_OK : layout_unary(l, n, &last);
}

static sn_status layout_max_pool(sni_layout_pass *l, sni_node *n) {
    int32_t in, out;
    if (!sni_layout_has(l, n->in[0]) || !is_picture(l, n->out[0]) ||
        (n->n_out > 1 && n->out[1] != SNI_NO_ID))
        return SN_OK;
    SN_TRY(need(l, n->in[0], n, &in));
    sni_layout_node node = {
        .domain = SNI_SINTER_DOMAIN, .type = "MaxPoolNhwc", .in = &in, .n_in = 1, .like = n};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    done(l, n, out);
    return SN_OK;
}

/* Concat and QLinearConcat, whose tensors stand at inputs first, first + step, ... */
static sn_status join(sni_layout_pass *l, sni_node *n, int first, int step) {
    const sni_attr *given = sni_node_attr(n, "axis");
    static const int64_t place[4] = {0, 3, 1, 2};
    int32_t in[MOST_INPUTS];
    bool some = false;
    if (!given || n->n_in > MOST_INPUTS || !is_picture(l, n->out[0])) return SN_OK;
    memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
    for (int i = first; i < n->n_in; i += step) {
        if (!is_picture(l, n->in[i])) return SN_OK;
        some |= sni_layout_has(l, n->in[i]);
    }
    int64_t axis = given->u.i < 0 ? given->u.i + 4 : given->u.i;
    if (!some || axis < 0 || axis > 3) return SN_OK;
    const sni_attr to = sni_attr_of_int("axis", place[axis]);
    for (int i = first; i < n->n_in; i += step) SN_TRY(need(l, n->in[i], n, &in[i]));
    return again(l, n, in, &to);
}

static sn_status layout_concat(sni_layout_pass *l, sni_node *n) {
    return join(l, n, 0, 1);
}

static sn_status layout_linear_concat(sni_layout_pass *l, sni_node *n) {
    return join(l, n, 2, 3);
}

/* ---- Two operands ---- */

/* True for a single element, which is the same in every layout. */
static bool is_single(const sni_layout_pass *l, int32_t id) {
    const sni_const *c = sni_layout_const(l, id);
    return c && c->tensor.count == 1 && c->tensor.rank < 4;
}

/* The convolution that makes a value for the addition `n` alone; NULL: none. */
static sni_node *conv_before(const sni_layout_pass *l, const sni_node *n, int operand) {
    const sni_value *v = sni_graph_value(l->g, n->in[operand]);
    const sni_value *real = sni_graph_value(l->g, l->variants[n->in[operand]].real);
    sni_node *conv = real ? sni_value_producer(l->g, real) : NULL;
    if (!v || v->use_count != 1 || !is_op(conv, SNI_SINTER_DOMAIN, "QLinearConvNhwc") ||
        conv->n_in > SNI_NHWC_R || real->use_count != 0)
        return NULL;
    const sni_tensor *w = &sni_layout_const(l, conv->in[SNI_NHWC_W])->tensor;
    if (is_depthwise(w, ((const sni_conv_params *)conv->params)->group)) return NULL;
    return same_consts(l, n->in[operand + 1], conv->in[SNI_NHWC_Y_SCALE]) &&
                   same_consts(l, n->in[operand + 2], conv->in[SNI_NHWC_Y_ZERO])
               ? conv
               : NULL;
}

static bool same_shapes(const sni_layout_pass *l, int32_t a, int32_t b) {
    const sni_type *t = &l->g->values[a]->type, *u = &l->g->values[b]->type;
    for (int i = 0; i < 4; i++)
        if (t->dims[i] != u->dims[i]) return false;
    return t->dtype == u->dtype;
}

/* Adds operand `other` to what the convolution before operand `operand` makes. *is: it did. */
static sn_status fuse_residual(sni_layout_pass *l, sni_node *n, int operand, int other, bool *is) {
    int32_t in[SNI_NHWC_INPUTS], out;
    const sni_node *conv = n->n_in == 8 ? conv_before(l, n, operand) : NULL;
    *is = false;
    if (!conv || !same_shapes(l, n->in[operand], n->in[other]) || n->in[other + 2] == SNI_NO_ID ||
        n->in[7] == SNI_NO_ID || n->in[operand] == n->in[other])
        return SN_OK;
    for (int i = 0; i < SNI_NHWC_R; i++) in[i] = i < conv->n_in ? conv->in[i] : SNI_NO_ID;
    SN_TRY(need(l, n->in[other], n, &in[SNI_NHWC_R]));
    in[SNI_NHWC_R_SCALE] = n->in[other + 1];
    in[SNI_NHWC_R_ZERO] = n->in[other + 2];
    in[SNI_NHWC_Z_SCALE] = n->in[6];
    in[SNI_NHWC_Z_ZERO] = n->in[7];
    sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                            .type = "QLinearConvNhwc",
                            .in = in,
                            .n_in = SNI_NHWC_INPUTS,
                            .like = conv};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    done(l, n, out);
    *is = true;
    return SN_OK;
}

static sn_status layout_pair(sni_layout_pass *l, sni_node *n) {
    int32_t in[8];
    bool some = false, is = false;
    if (n->n_in < 7 || n->n_in > 8 || !is_picture(l, n->out[0])) return SN_OK;
    memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
    for (int i = 0; i <= 3; i += 3) {
        if (!is_picture(l, in[i]) && !is_single(l, in[i])) return SN_OK;
        some |= sni_layout_has(l, in[i]);
    }
    if (!some) return SN_OK;
    if (sni_str_is(n->type, "QLinearAdd") && is_picture(l, in[0]) && is_picture(l, in[3])) {
        SN_TRY(fuse_residual(l, n, 0, 3, &is));
        if (!is) SN_TRY(fuse_residual(l, n, 3, 0, &is));
    }
    if (is) return SN_OK;
    for (int i = 0; i <= 3; i += 3)
        if (!is_single(l, n->in[i])) SN_TRY(need(l, n->in[i], n, &in[i]));
    return again(l, n, in, NULL);
}

/* ---- Convolution ---- */

static sni_layout_fn handler(const sni_node *n);

/* True if an operator that can follow uses the result. */
static bool goes_on(const sni_layout_pass *l, int32_t id) {
    const sni_value *v = sni_graph_value(l->g, id);
    for (int32_t u = 0; v && u < v->use_count; u++) {
        const sni_node *user = sni_graph_node(l->g, v->uses[u].node);
        if (user && handler(user)) return true;
    }
    return false;
}

static sn_status layout_conv(sni_layout_pass *l, sni_node *n) {
    int32_t in[SNI_NHWC_R], out;
    if (n->n_in < SNI_NHWC_BIAS || n->n_in > SNI_NHWC_R || !is_picture(l, n->in[0]) ||
        !is_picture(l, n->out[0]) || !has_no_zero(l, n->in[SNI_NHWC_W], n->in[SNI_NHWC_W_ZERO]) ||
        (!sni_layout_has(l, n->in[0]) && !goes_on(l, n->out[0])))
        return SN_OK;
    const sni_tensor *w = &sni_layout_const(l, n->in[SNI_NHWC_W])->tensor;
    int64_t groups = ((const sni_conv_params *)n->params)->group;
    enum { MOST_TAPS = 255, UNIT = 4 };
    bool flat = w->dims[2] * w->dims[3] <= MOST_TAPS;
    if (!(groups == 1 || (is_depthwise(w, groups) && flat) || w->dims[1] % UNIT == 0)) return SN_OK;
    memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
    SN_TRY(need(l, n->in[0], n, &in[0]));
    sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                            .type = "QLinearConvNhwc",
                            .in = in,
                            .n_in = n->n_in,
                            .like = n};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    done(l, n, out);
    return SN_OK;
}

/* ---- The pass ---- */

static const struct {
    const char *domain, *type;
    sni_layout_fn handle;
} handlers[] = {
    {"", "QLinearConv", layout_conv},
    {"", "MaxPool", layout_max_pool},
    {"", "Clip", layout_elements},
    {"", "Concat", layout_concat},
    {MS_DOMAIN, "QLinearAdd", layout_pair},
    {MS_DOMAIN, "QLinearMul", layout_pair},
    {MS_DOMAIN, "QLinearConcat", layout_linear_concat},
    {SNI_SINTER_DOMAIN, "ByteTable", layout_elements},
    {MS_DOMAIN, "QLinearAveragePool", layout_linear_pool},
    {MS_DOMAIN, "QLinearGlobalAveragePool", layout_linear_pool},
};

static sni_layout_fn handler(const sni_node *n) {
    for (size_t i = 0; i < sizeof handlers / sizeof *handlers; i++)
        if (is_op(n, handlers[i].domain, handlers[i].type)) return handlers[i].handle;
    return NULL;
}

/* Removes dead nodes, last ones first, and gives plain users of their outputs a plain tensor. */
static sn_status sweep(sni_layout_pass *l) {
    for (int32_t id = l->g->last; id != SNI_NO_ID;) {
        sni_node *n = l->g->nodes[id];
        int32_t plain;
        id = n->prev;
        if (n->id >= l->n_nodes || !l->dead[n->id]) continue;
        if (l->g->values[n->out[0]]->use_count > 0) {
            SN_TRY(
                transpose(l, l->variants[n->out[0]].real, false, sni_graph_next(l->g, n), &plain));
            SN_TRY(sni_graph_replace_uses(l->g, n->out[0], plain, l->r->err));
        }
        sni_graph_remove_node(l->g, n);
    }
    sni_graph_remove_dead_values(l->g);
    return SN_OK;
}

/* Pictures that are transposed from channels last have such a variant already: those of earlier
 * rounds, and of models that were made with channels last. */
static void find_variants(sni_layout_pass *l) {
    static const int64_t perm[4] = {0, 3, 1, 2};
    for (const sni_node *n = sni_graph_first(l->g); n; n = sni_graph_next(l->g, n)) {
        const sni_attr *a = is_op(n, "", "Transpose") ? sni_node_attr(n, "perm") : NULL;
        if (a && a->count == 4 && memcmp(a->u.ints, perm, sizeof perm) == 0 &&
            is_picture(l, n->in[0]) && n->out[0] < l->n_values)
            l->variants[n->out[0]].real = n->in[0];
    }
}

static sn_status run(sni_layout_pass *l) {
    l->variants = SNI_NEW_ARRAY(&l->temp, sni_layout_variant, (size_t)l->n_values + 1);
    l->dead = SNI_NEW_ARRAY(&l->temp, bool, (size_t)l->n_nodes + 1);
    if (!l->variants || !l->dead) return sni_fail_memory(l->r->err);
    for (int32_t i = 0; i < l->n_values; i++) l->variants[i].real = SNI_NO_ID;
    find_variants(l);
    for (sni_node *n = sni_graph_first(l->g); n; n = sni_graph_next(l->g, n)) {
        sni_layout_fn handle = n->id < l->n_nodes ? handler(n) : NULL;
        if (handle && n->n_in > 0 && n->n_out > 0) SN_TRY(handle(l, n));
    }
    return sweep(l);
}

sn_status sni_pass_layout_bytes(sni_rewrite *r) {
    sni_layout_pass l = {
        .r = r, .g = r->graph, .n_values = r->graph->value_count, .n_nodes = r->graph->node_count};
    sni_arena_init(&l.temp, 0);
    sn_status status = run(&l);
    sni_arena_free(&l.temp);
    return status;
}
