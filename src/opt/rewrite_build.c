/* rewrite_build.c - puts a rule's replacement where its pattern was found. */
#include "opt/rewrite.h"

#include "base/floats.h"

enum { HOIST_DEPTH = 8 }; /* nodes in a row that are moved before what replaces a pattern */

/* ---- Names that `build` binds ---- */

static sn_status slot_for(sni_match *m, const char *name, sni_rule_slot **out) {
    for (int i = 0; i < m->rule->n_names; i++) {
        if (!sni_str_is(m->rule->names[i].text, name)) continue;
        m->bound |= 1u << i;
        *out = &m->slots[i];
        return SN_OK;
    }
    return sni_fail(m->r->err, SN_INTERNAL, "rule %s has no name '%s'", m->rule->rule->name, name);
}

sn_status sni_match_set_value(sni_match *m, const char *name, int32_t value) {
    sni_rule_slot *s;
    SN_TRY(slot_for(m, name, &s));
    s->value = value;
    return SN_OK;
}

sn_status sni_match_set_number(sni_match *m, const char *name, double number) {
    sni_rule_slot *s;
    SN_TRY(slot_for(m, name, &s));
    s->number = number;
    return SN_OK;
}

sn_status sni_match_set_attr(sni_match *m, const char *name, sni_attr attr) {
    sni_rule_slot *s;
    SN_TRY(slot_for(m, name, &s));
    s->attr = attr;
    return SN_OK;
}

static sn_status add_const(sni_match *m, sn_dtype dtype, int rank, const int64_t *dims,
                           int32_t *value, void **data) {
    sni_const *c;
    sni_value *v;
    SN_TRY(sni_const_new(m->r->store, dtype, rank, dims, &c, m->r->err));
    SN_TRY(sni_graph_add_const(m->g, (sni_str){0}, c, &v, m->r->err));
    *data = c->tensor.data;
    *value = v->id;
    return SN_OK;
}

sn_status sni_match_new_const(sni_match *m, const char *name, sn_dtype dtype, int rank,
                              const int64_t *dims, void **data) {
    int32_t id = SNI_NO_ID;
    SN_TRY(add_const(m, dtype, rank, dims, &id, data));
    const sni_const *c = sni_value_const(m->g, id);
    size_t bytes = sni_tensor_bytes(&c->tensor);
    if (bytes) memset(*data, 0, bytes);
    return sni_match_set_value(m, name, id);
}

sn_status sni_match_new_floats(sni_match *m, const char *name, int rank, const int64_t *dims,
                               float **data) {
    void *memory;
    SN_TRY(sni_match_new_const(m, name, SN_FLOAT32, rank, dims, &memory));
    *data = memory;
    return SN_OK;
}

sn_status sni_match_list(sni_match *m, int64_t count, const int64_t *v, int32_t *out) {
    void *memory;
    SN_TRY(add_const(m, SN_INT64, 1, &count, out, &memory));
    if (count) memcpy(memory, v, (size_t)count * sizeof *v);
    return SN_OK;
}

sn_status sni_match_bind_const(sni_match *m, const char *name, sni_const *c) {
    sni_value *v;
    SN_TRY(sni_graph_add_const(m->g, (sni_str){0}, c, &v, m->r->err));
    return sni_match_set_value(m, name, v->id);
}

sn_status sni_match_new_lazy(sni_match *m, const char *name, const sni_tensor *shape,
                             sni_decode_fn decode, const void *source) {
    sni_const *c;
    SN_TRY(sni_const_new_lazy(m->r->store, shape, decode, source, &c, m->r->err));
    return sni_match_bind_const(m, name, c);
}

sn_status sni_match_new_ints(sni_match *m, const char *name, int64_t count, const int64_t *v) {
    int32_t id = SNI_NO_ID;
    SN_TRY(sni_match_list(m, count, v, &id));
    return sni_match_set_value(m, name, id);
}

sn_status sni_match_new_node(sni_match *m, const char *op, const int32_t *in, int32_t n_in,
                             const sni_attr *attrs, int n_attrs, int32_t *out) {
    sni_value *v;
    sni_node *n;
    SN_TRY(sni_graph_add_value(m->g, (sni_str){0}, &v, m->r->err));
    SN_TRY(sni_graph_add_node(m->g, m->place,
                              &(sni_new_node){SNI_STR(""), sni_str_of(op), in, n_in, &v->id, 1}, &n,
                              m->r->err));
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(m->r->err, SN_INTERNAL, "there is no operator %s", op);
    n->version = sni_op_version(n->op);
    n->name = m->root->name;
    for (int i = 0; i < n_attrs; i++) SN_TRY(sni_node_set_attr(m->g, n, &attrs[i], m->r->err));
    SN_TRY(sni_node_bind(m->g, n, m->r->err));
    *out = v->id;
    return sni_infer_node(m->g, n, m->r->err);
}

/* ---- Attributes ---- */

static const sni_param *param_of(const sni_op *op, sni_str name) {
    for (const sni_param *p = op->params; p && p->name; p++)
        if (sni_str_is(name, p->name)) return p;
    return NULL;
}

static sn_status set_number(sni_match *m, sni_node *n, sni_str name, double v) {
    const sni_param *p = param_of(n->op, name);
    if (!p)
        return sni_fail(m->r->err, SN_INTERNAL, "rule %s: %s has no attribute '%.*s'",
                        m->rule->rule->name, n->op->name, SNI_FMT(name));
    sni_attr a = {.name = name, .kind = p->kind};
    if (p->kind == SNI_ATTR_INT)
        a.u.i = (int64_t)v;
    else
        a.u.f = (float)v;
    return sni_node_set_attr(m->g, n, &a, m->r->err);
}

static sn_status set_all(sni_match *m, sni_node *n, const sni_node *from) {
    for (int32_t i = 0; i < from->n_attrs; i++)
        SN_TRY(sni_node_set_attr(m->g, n, &from->attrs[i], m->r->err));
    return SN_OK;
}

static sn_status set_attr(sni_match *m, sni_node *n, const sni_pat_attr *want) {
    sni_attr a = {.name = want->name};
    const sni_rule_slot *s = want->slot >= 0 ? &m->slots[want->slot] : NULL;
    switch (want->kind) {
    case SNI_PAT_ATTR_NUMBER:
        return set_number(m, n, want->name, want->number);
    case SNI_PAT_ATTR_SCALAR:
        return set_number(m, n, want->name, s->number);
    case SNI_PAT_ATTR_STRING:
        a.kind = SNI_ATTR_STRING;
        a.u.s = want->text;
        break;
    case SNI_PAT_ATTR_INTS:
        a.kind = SNI_ATTR_INTS;
        a.count = (size_t)want->n_ints;
        a.u.ints = want->ints;
        break;
    case SNI_PAT_ATTR_ALL:
        return set_all(m, n, s->node);
    case SNI_PAT_ATTR_NAME:
        if (s->attr.kind == SNI_ATTR_NONE) return SN_OK;
        a = s->attr;
        a.name = want->name;
        break;
    }
    return sni_node_set_attr(m->g, n, &a, m->r->err);
}

/* ---- Nodes ---- */

typedef struct builder {
    sni_match *m;
    int32_t before; /* where new nodes go */
    int n_made;
    sni_node *made[SNI_RULE_NODES];
    bool ok; /* false: it cannot be said here */
} builder;

static sn_status build_number(builder *b, double v, int32_t *out) {
    sn_dtype dtype = b->m->g->values[b->m->root->out[0]]->type.dtype;
    void *data;
    float f = (float)v;
    b->ok =
        dtype == SN_FLOAT32 || dtype == SN_FLOAT64 || dtype == SN_FLOAT16 || dtype == SN_BFLOAT16;
    if (!b->ok) return SN_OK;
    SN_TRY(add_const(b->m, dtype, 0, NULL, out, &data));
    if (dtype == SN_FLOAT64)
        memcpy(data, &v, sizeof v);
    else if (dtype == SN_FLOAT32)
        memcpy(data, &f, sizeof f);
    else
        sni_narrow(dtype, &f, data, 1, true);
    return SN_OK;
}

static sn_status build_value(builder *b, const sni_pat *p, int32_t *out);

/* Value that output i of the replacement replaces; SNI_NO_ID: none. */
static int32_t replaced(const sni_match *m, int i) {
    if (!m->rule->n_outputs) return i == 0 ? m->root->out[0] : SNI_NO_ID;
    int slot = m->rule->outputs[i].slot, out = m->rule->outputs[i].out;
    if (slot == -2) return SNI_NO_ID;
    const sni_node *n = slot == -1 ? m->root : m->slots[slot].node;
    return out < n->n_out ? n->out[out] : SNI_NO_ID;
}

/* True if something besides the match uses a value, or it leaves the graph. */
static bool is_wanted(const sni_match *m, int32_t id) {
    const sni_value *v = sni_graph_value(m->g, id);
    for (int32_t u = 0; v && u < v->use_count; u++) {
        bool own = false;
        for (int i = 0; i < m->n_nodes && !own; i++) own = m->nodes[i]->id == v->uses[u].node;
        if (!own) return true;
    }
    return false;
}

static sn_status make_outputs(builder *b, const sni_pat *p, int32_t *out, int32_t *count) {
    const sni_compiled_rule *rule = b->m->rule;
    bool several = p == rule->replacement && rule->n_outputs;
    *count = several ? rule->n_outputs : p->out + 1;
    for (int32_t i = 0; i < *count; i++) {
        sni_value *v;
        out[i] = SNI_NO_ID;
        if (several ? !is_wanted(b->m, replaced(b->m, i)) && i > 0 : i != p->out) continue;
        SN_TRY(sni_graph_add_value(b->m->g, (sni_str){0}, &v, b->m->r->err));
        out[i] = v->id;
    }
    return SN_OK;
}

static sn_status build_node(builder *b, const sni_pat *p, int32_t *out) {
    sni_match *m = b->m;
    const sni_op *op = p->ops[0];
    int32_t in[SNI_PAT_INPUTS], outs[SNI_PAT_OUTPUTS], n_in = 0, n_out;
    sni_node *n;
    for (int i = 0; i < p->n_in; i++) {
        SN_TRY(build_value(b, p->in[i], &in[i]));
        if (!b->ok) return SN_OK;
        if (in[i] != SNI_NO_ID) n_in = i + 1;
    }
    SN_TRY(make_outputs(b, p, outs, &n_out));
    SN_TRY(sni_graph_add_node(m->g, b->before,
                              &(sni_new_node){sni_str_of(op->domain ? op->domain : ""),
                                              sni_str_of(op->name), in, n_in, outs, n_out},
                              &n, m->r->err));
    if (b->n_made < SNI_RULE_NODES) b->made[b->n_made++] = n;
    n->op = op;
    n->version = sni_op_version(op);
    n->name = m->root->name;
    for (int i = 0; i < p->n_attrs; i++) SN_TRY(set_attr(m, n, &p->attrs[i]));
    SN_TRY(sni_node_bind(m->g, n, m->r->err));
    b->ok = sni_infer_node(m->g, n, NULL) == SN_OK;
    *out = outs[p->out];
    return SN_OK;
}

static sn_status build_value(builder *b, const sni_pat *p, int32_t *out) {
    sni_match *m = b->m;
    *out = SNI_NO_ID;
    switch (p->kind) {
    case SNI_PAT_NODE:
        return build_node(b, p, out);
    case SNI_PAT_NUMBER:
        return build_number(b, p->number, out);
    case SNI_PAT_SCALAR:
        return build_number(b, m->slots[p->slot].number, out);
    case SNI_PAT_INTS:
        return sni_match_list(m, p->n_ints, p->ints, out);
    case SNI_PAT_ABSENT:
        return SN_OK;
    default:
        if (m->bound & 1u << p->slot) *out = m->slots[p->slot].value;
        return SN_OK;
    }
}

/* ---- Replacing ---- */

/* Where the replacement goes: before the root, or before the first node of the pattern that others
 * use too. */
static const sni_node *first_exposed(const sni_match *m) {
    const sni_node *first = m->root;
    int left = 0;
    for (int i = 0; i < m->rule->n_outputs; i++) left += m->rule->outputs[i].slot >= 0;
    for (const sni_node *n = m->root; n && left; n = sni_graph_node(m->g, n->prev))
        for (int i = 0; i < m->rule->n_outputs; i++) {
            int slot = m->rule->outputs[i].slot;
            if (slot < 0 || m->slots[slot].node != n) continue;
            first = n;
            left--;
        }
    return first;
}

static bool made_between(const sni_match *m, int32_t value, const sni_node *from) {
    const sni_value *v = sni_graph_value(m->g, value);
    if (!v || v->producer == SNI_NO_ID) return false;
    for (const sni_node *n = from; n && n != m->root; n = sni_graph_next(m->g, n))
        if (n->id == v->producer) return true;
    return false;
}

static bool is_matched(const sni_match *m, const sni_node *n) {
    for (int i = 0; i < m->n_nodes; i++)
        if (m->nodes[i] == n) return true;
    return false;
}

/* True if a value is made before `place` or can be, since that does not need what is matched. With
 * `move` its producers go there. */
static bool precedes(const sni_match *m, int32_t value, const sni_node *place, bool move,
                     int depth) {
    if (!made_between(m, value, place)) return true;
    sni_node *n = sni_value_producer(m->g, sni_graph_value(m->g, value));
    if (is_matched(m, n) || n->n_subgraphs || depth == HOIST_DEPTH) return false;
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != SNI_NO_ID && !precedes(m, n->in[i], place, move, depth + 1)) return false;
    if (move) sni_graph_move_node(m->g, n, place->id);
    return true;
}

/* True if everything that the replacement takes precedes `place`. */
static bool inputs_precede(const sni_match *m, const sni_pat *p, const sni_node *place, bool move) {
    if (p->kind == SNI_PAT_NODE) {
        for (int i = 0; i < p->n_in; i++)
            if (!inputs_precede(m, p->in[i], place, move)) return false;
        return true;
    }
    if (p->slot < 0 || !(m->bound & 1u << p->slot)) return true;
    return precedes(m, m->slots[p->slot].value, place, move, 0);
}

/* A dimension that inference knew nothing of. */
static bool is_open(const sni_graph *g, sni_dim d) {
    return sni_dim_is_symbol(d) && sni_dim_text(g->symbols, d)[0] == '?';
}

/* A value may take the place of another if it is of the same type and shape, or tells more of it.
 */
static bool can_replace(const sni_graph *g, int32_t old, int32_t new) {
    const sni_type *a = &g->values[old]->type, *b = &g->values[new]->type;
    if (a->kind != SN_KIND_TENSOR || a->kind != b->kind || a->dtype != b->dtype) return false;
    if (!a->has_shape) return true;
    if (!b->has_shape || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i] && !is_open(g, a->dims[i])) return false;
    return true;
}

static sn_status take_over(sni_match *m, int32_t old, int32_t new) {
    sni_value *from = m->g->values[old], *to = m->g->values[new];
    if (!to->name.n && to->producer != SNI_NO_ID) {
        to->name = from->name;
        from->name = (sni_str){0};
    }
    return sni_graph_replace_uses(m->g, old, new, m->r->err);
}

static void undo(builder *b) {
    while (b->n_made) sni_graph_remove_node(b->m->g, b->made[--b->n_made]);
}

static bool is_unused(const sni_graph *g, const sni_node *n) {
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        if (v && v->use_count) return false;
    }
    return true;
}

/* Removes what was matched, users before producers, as far as nobody needs it. */
static void remove_matched(sni_match *m) {
    for (int gone = 1; gone;) {
        gone = 0;
        for (int i = 0; i < m->n_nodes; i++) {
            if (!m->nodes[i] || m->nodes[i]->removed || !is_unused(m->g, m->nodes[i])) continue;
            sni_graph_remove_node(m->g, m->nodes[i]);
            m->nodes[i] = NULL;
            gone = 1;
        }
    }
}

sn_status sni_rule_apply(sni_match *m, bool *done) {
    const sni_compiled_rule *rule = m->rule;
    const sni_node *place = first_exposed(m);
    builder b = {.m = m, .before = place->id, .ok = true};
    int32_t new = SNI_NO_ID;
    *done = false;
    if (place != m->root) {
        if (!inputs_precede(m, rule->replacement, place, false)) return SN_OK;
        inputs_precede(m, rule->replacement, place, true);
    }
    m->place = place->id;
    if (rule->rule->build) SN_TRY(rule->rule->build(m));
    SN_TRY(build_value(&b, rule->replacement, &new));
    const sni_node *made = b.n_made ? b.made[b.n_made - 1] : NULL;
    int outputs = rule->n_outputs ? rule->n_outputs : 1;
    for (int i = 0; b.ok && i < outputs; i++) {
        int32_t old = replaced(m, i), value = rule->n_outputs ? made->out[i] : new;
        if (old != SNI_NO_ID && value != SNI_NO_ID) b.ok = can_replace(m->g, old, value);
    }
    if (!b.ok || new == SNI_NO_ID) {
        undo(&b);
        return SN_OK;
    }
    for (int i = 0; i < outputs; i++) {
        int32_t old = replaced(m, i), value = rule->n_outputs ? made->out[i] : new;
        if (old != SNI_NO_ID && value != SNI_NO_ID) SN_TRY(take_over(m, old, value));
    }
    m->made = b.n_made ? b.made[0] : NULL;
    remove_matched(m);
    *done = true;
    return SN_OK;
}
