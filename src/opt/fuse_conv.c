/* fuse_conv.c - what follows a convolution becomes part of it: an added tensor of the same shape
 * and an activation are applied to each piece of the result while it is in the cache. The node that
 * says so is com.microsoft's FusedConv: Y = activation(Conv(X, W, B) + Z). */
#include "opt/opt.h"

#include <float.h>

enum { Z = 3 }; /* FusedConv's input that is added */

/* ---- Looking ---- */

static bool is(const sni_node *n, const char *domain, const char *type) {
    return n && n->op && sni_str_is(n->domain, domain) && sni_str_is(n->type, type);
}

static bool has_input(const sni_node *n, int32_t i) {
    return i < n->n_in && n->in[i] != SNI_NO_ID;
}

/* A float32 convolution with constant weights that has no activation yet. */
static bool is_open_conv(const sni_graph *g, const sni_node *n) {
    if (!is(n, "", "Conv") && !is(n, "com.microsoft", "FusedConv")) return false;
    const sni_attr *a = sni_node_attr(n, "activation");
    const sni_value *w = has_input(n, 1) ? sni_graph_value(g, n->in[1]) : NULL;
    return !(a && a->u.s.n) && w && w->constant && !w->is_input && w->type.dtype == SN_FLOAT32;
}

/* The only node that uses a value; NULL if there are more, or it leaves the graph. */
static sni_node *only_user(const sni_graph *g, int32_t id) {
    const sni_value *v = sni_graph_value(g, id);
    return v && v->use_count == 1 ? sni_graph_node(g, v->uses[0].node) : NULL;
}

/* A scalar float constant. */
static sn_status scalar_of(const sni_rewrite *r, int32_t id, float *out, bool *found) {
    const sni_value *v = sni_graph_value(r->graph, id);
    const sni_tensor *t;
    *found = v && v->constant && !v->is_input && v->constant->tensor.dtype == SN_FLOAT32 &&
             v->constant->tensor.count == 1;
    if (!*found) return SN_OK;
    SN_TRY(sni_const_load(v->constant, &t, r->err));
    *out = *(const float *)t->data;
    return SN_OK;
}

typedef struct activation {
    const char *name; /* NULL: none that can be fused */
    float params[2];
    int n_params;
} activation;

static float float_attr(const sni_node *n, const char *name, float otherwise) {
    const sni_attr *a = sni_node_attr(n, name);
    return a && a->kind == SNI_ATTR_FLOAT ? a->u.f : otherwise;
}

static sn_status read_clip(const sni_rewrite *r, const sni_node *n, activation *out) {
    bool low = true, high = true;
    activation a = {.name = "Clip", .params = {-FLT_MAX, FLT_MAX}, .n_params = 2};
    if (has_input(n, 1)) SN_TRY(scalar_of(r, n->in[1], &a.params[0], &low));
    if (has_input(n, 2)) SN_TRY(scalar_of(r, n->in[2], &a.params[1], &high));
    if (low && high) *out = a;
    return SN_OK;
}

static sn_status read_activation(const sni_rewrite *r, const sni_node *n, activation *out) {
    *out = (activation){0};
    if (is(n, "", "Relu") || is(n, "", "Sigmoid") || is(n, "", "Tanh") || is(n, "", "HardSwish")) {
        out->name = n->op->name;
    } else if (is(n, "", "LeakyRelu")) {
        *out = (activation){"LeakyRelu", {float_attr(n, "alpha", 0.01f)}, 1};
    } else if (is(n, "", "HardSigmoid")) {
        *out = (activation){
            "HardSigmoid", {float_attr(n, "alpha", 0.2f), float_attr(n, "beta", 0.5f)}, 2};
    } else if (is(n, "", "Clip")) {
        return read_clip(r, n, out);
    }
    return SN_OK;
}

/* ---- Rewriting ---- */

static sn_status set_activation(sni_rewrite *r, sni_node *n, const activation *a) {
    sni_attr name = sni_attr_of_string("activation", a->name);
    SN_TRY(sni_node_set_attr(r->graph, n, &name, r->err));
    if (!a->n_params) return SN_OK;
    float *params = SNI_NEW_ARRAY(&r->store->arena, float, a->n_params);
    if (!params) return sni_fail_memory(r->err);
    for (int i = 0; i < a->n_params; i++) params[i] = a->params[i];
    sni_attr list = {.name = SNI_STR("activation_params"),
                     .kind = SNI_ATTR_FLOATS,
                     .count = (size_t)a->n_params,
                     .u.floats = params};
    return sni_node_set_attr(r->graph, n, &list, r->err);
}

/* Puts a FusedConv where `last` stands: the convolution with `z` (SNI_NO_ID: as it has) added and
 * an activation (NULL: none). Removes `last`; the convolution has lost its use. */
static sn_status fuse(sni_rewrite *r, const sni_node *conv, sni_node *last, int32_t z,
                      const activation *a) {
    sni_graph *g = r->graph;
    int32_t in[4] = {conv->in[0], conv->in[1], has_input(conv, 2) ? conv->in[2] : SNI_NO_ID,
                     has_input(conv, Z) ? conv->in[Z] : z};
    const sni_value *old = g->values[last->out[0]];
    sni_value *v;
    sni_node *n;
    SN_TRY(sni_graph_add_value(g, old->name, &v, r->err));
    v->type = old->type;
    SN_TRY(sni_graph_add_node(g, last->id, SNI_STR("com.microsoft"), SNI_STR("FusedConv"), in,
                              in[Z] == SNI_NO_ID ? (in[2] == SNI_NO_ID ? 2 : 3) : 4, &v->id, 1, &n,
                              r->err));
    n->name = conv->name;
    for (int32_t i = 0; i < conv->n_attrs; i++)
        SN_TRY(sni_node_set_attr(g, n, &conv->attrs[i], r->err));
    if (a) SN_TRY(set_activation(r, n, a));
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(r->err, SN_INTERNAL, "there is no FusedConv");
    n->version = sni_op_version(n->op);
    SN_TRY(sni_node_bind(g, n, r->err));
    SN_TRY(sni_graph_replace_uses(g, last->out[0], v->id, r->err));
    sni_graph_remove_node(g, last);
    r->count++;
    return SN_OK;
}

/* Removes a node whose outputs nobody uses any more. */
static void remove_unused(sni_graph *g, sni_node *n) {
    if (g->values[n->out[0]]->use_count == 0) sni_graph_remove_node(g, n);
}

static bool same_shape(const sni_value *a, const sni_value *b) {
    if (!a->type.has_shape || !b->type.has_shape || a->type.rank != b->type.rank) return false;
    for (int i = 0; i < a->type.rank; i++)
        if (a->type.dims[i] != b->type.dims[i]) return false;
    return a->type.dtype == b->type.dtype;
}

/* Conv then Add of a tensor of the same shape. */
static sn_status fuse_add(sni_rewrite *r, sni_node *conv, sni_node *add) {
    const sni_graph *g = r->graph;
    if (has_input(conv, Z) || !is(add, "", "Add") || add->in[0] == add->in[1]) return SN_OK;
    int32_t other = add->in[add->in[0] == conv->out[0]];
    if (!same_shape(g->values[conv->out[0]], g->values[other])) return SN_OK;
    SN_TRY(fuse(r, conv, add, other, NULL));
    remove_unused(r->graph, conv);
    return SN_OK;
}

/* Conv then x * sigmoid(x). */
static sn_status fuse_silu(sni_rewrite *r, sni_node *conv) {
    const sni_graph *g = r->graph;
    const sni_value *y = g->values[conv->out[0]];
    if (y->use_count != 2) return SN_OK;
    for (int i = 0; i < 2; i++) {
        sni_node *sigmoid = sni_graph_node(g, y->uses[i].node);
        sni_node *mul = sni_graph_node(g, y->uses[!i].node);
        if (!is(sigmoid, "", "Sigmoid") || !is(mul, "", "Mul")) continue;
        if (only_user(g, sigmoid->out[0]) != mul) continue;
        activation silu = {.name = "Silu"};
        SN_TRY(fuse(r, conv, mul, SNI_NO_ID, &silu));
        remove_unused(r->graph, sigmoid);
        remove_unused(r->graph, conv);
        return SN_OK;
    }
    return SN_OK;
}

static sn_status fuse_one(sni_rewrite *r, sni_node *conv) {
    sni_node *user = only_user(r->graph, conv->out[0]);
    if (!user) return fuse_silu(r, conv);
    activation a;
    SN_TRY(read_activation(r, user, &a));
    if (!a.name) return fuse_add(r, conv, user);
    SN_TRY(fuse(r, conv, user, SNI_NO_ID, &a));
    remove_unused(r->graph, conv);
    return SN_OK;
}

sn_status sni_pass_fuse_conv(sni_rewrite *r) {
    for (sni_node *n = sni_graph_first(r->graph), *next; n; n = next) {
        sni_node *after = sni_graph_node(r->graph, n->prev);
        next = sni_graph_next(r->graph, n);
        if (!is_open_conv(r->graph, n)) continue;
        SN_TRY(fuse_one(r, n));
        /* What it took in may have been the next node: then go on from the one before. */
        if (next && next->removed)
            next = after ? sni_graph_next(r->graph, after) : sni_graph_first(r->graph);
    }
    return SN_OK;
}
