/* rewrite_match.c - does a rule's pattern stand in a graph, and what are its captures? */
#include "opt/rewrite.h"

#include "base/floats.h"

#include <math.h>

/* ---- Constants ---- */

sni_const *sni_value_const(const sni_graph *g, int32_t id) {
    const sni_value *v = sni_graph_value(g, id);
    return v && !v->is_input ? v->constant : NULL;
}

static bool read_real(const sni_tensor *t, double *out) {
    int64_t whole = 0;
    float f;
    switch (t->dtype) {
    case SN_FLOAT32:
        memcpy(&f, t->data, sizeof f);
        *out = (double)f;
        return true;
    case SN_FLOAT64:
        memcpy(out, t->data, sizeof *out);
        return true;
    case SN_FLOAT16:
    case SN_BFLOAT16:
        sni_widen(t->dtype, t->data, &f, 1);
        *out = (double)f;
        return true;
    case SN_INT32: {
        int32_t i;
        memcpy(&i, t->data, sizeof i);
        *out = i;
        return true;
    }
    case SN_INT64:
        memcpy(&whole, t->data, sizeof whole);
        *out = (double)whole;
        return true;
    default:
        return false;
    }
}

bool sni_value_scalar(const sni_graph *g, int32_t id, double *out) {
    sni_const *c = sni_value_const(g, id);
    const sni_tensor *t;
    if (!c || c->tensor.count != 1) return false;
    return sni_const_load(c, &t, NULL) == SN_OK && read_real(t, out);
}

bool sni_types_equal(const sni_type *a, const sni_type *b) {
    if (a->kind != b->kind || a->dtype != b->dtype || !a->has_shape || !b->has_shape ||
        a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

/* ---- Attributes ---- */

static const sni_param *param_of(const sni_op *op, sni_str name) {
    for (const sni_param *p = op->params; p && p->name; p++)
        if (sni_str_is(name, p->name)) return p;
    return NULL;
}

/* The attribute as it stands, or its default; kind NONE: neither. */
static sni_attr attr_of(const sni_node *n, sni_str name) {
    for (int32_t i = 0; i < n->n_attrs; i++)
        if (sni_str_eq(n->attrs[i].name, name)) return n->attrs[i];
    sni_attr a = {.name = name};
    const sni_param *p = param_of(n->op, name);
    if (!p || p->required || p->present) return a;
    a.kind = p->kind;
    if (p->kind == SNI_ATTR_INT)
        a.u.i = (int64_t)p->number;
    else if (p->kind == SNI_ATTR_FLOAT)
        a.u.f = (float)p->number;
    else if (p->kind == SNI_ATTR_STRING)
        a.u.s = sni_str_of(p->text ? p->text : "");
    else
        a.kind = SNI_ATTR_NONE;
    return a;
}

/* Axes are the same if they are after counting from the rank of input 0. */
static bool same_axis(const sni_match *m, const sni_node *n, int64_t a, int64_t b) {
    if (a == b) return true;
    const sni_value *x = n->n_in ? sni_graph_value(m->g, n->in[0]) : NULL;
    if (!x || !x->type.has_shape) return false;
    return (a < 0 ? a + x->type.rank : a) == (b < 0 ? b + x->type.rank : b);
}

static bool match_attr(sni_match *m, const sni_node *n, const sni_pat_attr *want) {
    sni_attr a = attr_of(n, want->name);
    switch (want->kind) {
    case SNI_PAT_ATTR_NUMBER:
        if (a.kind == SNI_ATTR_FLOAT) return fabs((double)a.u.f - want->number) < 1e-6;
        if (a.kind != SNI_ATTR_INT) return false;
        if (sni_str_is(want->name, "axis")) return same_axis(m, n, a.u.i, (int64_t)want->number);
        return a.u.i == (int64_t)want->number;
    case SNI_PAT_ATTR_STRING:
        return a.kind == SNI_ATTR_STRING && sni_str_eq(a.u.s, want->text);
    case SNI_PAT_ATTR_INTS:
        if (a.kind != SNI_ATTR_INTS || a.count != (size_t)want->n_ints) return false;
        for (int i = 0; i < want->n_ints; i++)
            if (a.u.ints[i] != want->ints[i]) return false;
        return true;
    case SNI_PAT_ATTR_NAME:
        m->slots[want->slot].attr = a;
        m->bound |= 1u << want->slot;
        return true;
    default:
        return false;
    }
}

/* ---- Values ---- */

/* What is still to be matched: a stack, newest first. */
typedef struct goal {
    const sni_pat *pat;
    int32_t value;
    const sni_node *user; /* whose input it is; NULL for the root */
    const struct goal *rest;
} goal;

static bool bind(sni_match *m, int slot, int32_t value) {
    if (m->bound & 1u << slot) return m->slots[slot].value == value;
    m->bound |= 1u << slot;
    m->slots[slot].value = value;
    m->slots[slot].node = NULL;
    return true;
}

/* A constant of one element must not raise the rank of what it is combined with: where shapes are
 * not known, only a true scalar is sure not to. */
static bool scalar_is_harmless(const sni_match *m, const goal *g) {
    const sni_const *c = sni_value_const(m->g, g->value);
    if (!c) return false;
    if (c->tensor.rank == 0) return true;
    const sni_value *out = g->user ? sni_graph_value(m->g, g->user->out[0]) : NULL;
    return out && out->type.has_shape;
}

static bool match_scalar(sni_match *m, const goal *g) {
    double v;
    if (!scalar_is_harmless(m, g) || !sni_value_scalar(m->g, g->value, &v)) return false;
    if (g->pat->kind == SNI_PAT_SCALAR) {
        if (!bind(m, g->pat->slot, g->value)) return false;
        m->slots[g->pat->slot].number = v;
        return true;
    }
    double off = fabs(v - g->pat->number), size = fabs(g->pat->number);
    return off <= size * (g->pat->approximate ? 1e-3 : 2e-7);
}

/* The same name may mean constants of the same contents. */
static bool match_const(sni_match *m, const goal *g) {
    sni_const *c = sni_value_const(m->g, g->value);
    if (!c) return false;
    if (!(m->bound & 1u << g->pat->slot)) return bind(m, g->pat->slot, g->value);
    sni_const *other = sni_value_const(m->g, m->slots[g->pat->slot].value);
    return other && sni_const_same(other, c);
}

static bool match_ints(const sni_match *m, const goal *g) {
    sni_const *c = sni_value_const(m->g, g->value);
    const sni_tensor *t;
    if (!c || c->tensor.dtype != SN_INT64 || c->tensor.rank > 1 ||
        c->tensor.count != g->pat->n_ints || sni_const_load(c, &t, NULL) != SN_OK)
        return false;
    for (int i = 0; i < g->pat->n_ints; i++) {
        int64_t v;
        memcpy(&v, (const char *)t->data + (size_t)i * sizeof v, sizeof v);
        if (!same_axis(m, g->user, v, g->pat->ints[i])) return false;
    }
    return true;
}

static bool solve(sni_match *m, const goal *g);

static bool is_op(const sni_pat *p, const sni_op *op) {
    for (int i = 0; i < p->n_ops; i++)
        if (p->ops[i] == op) return true;
    return false;
}

static bool match_inputs(sni_match *m, const goal *g, const sni_node *n, bool transposed) {
    goal goals[SNI_PAT_INPUTS];
    const goal *rest = g->rest;
    const sni_pat *p = g->pat;
    uint32_t bound = m->bound;
    int n_nodes = m->n_nodes;
    /* Names alone are looked at last: whatever is more particular fails sooner. */
    for (int plain = 1; plain >= 0; plain--)
        for (int i = p->n_in - 1; i >= 0; i--) {
            const sni_pat *in = p->in[i];
            int from = transposed ? 1 - i : i;
            if ((in->kind == SNI_PAT_VALUE) != (plain == 1)) continue;
            goals[i] = (goal){in, from < n->n_in ? n->in[from] : SNI_NO_ID, n, rest};
            rest = &goals[i];
        }
    if (solve(m, rest)) return true;
    m->bound = bound;
    m->n_nodes = n_nodes;
    return false;
}

static bool match_node(sni_match *m, const goal *g) {
    const sni_pat *p = g->pat;
    const sni_value *v = sni_graph_value(m->g, g->value);
    sni_node *n = v ? sni_value_producer(m->g, v) : NULL;
    if (!n || !is_op(p, n->op) || v->producer_slot != p->out || n->n_subgraphs) return false;
    if (m->n_nodes == SNI_RULE_NODES) return false;
    for (int32_t i = p->n_in; i < n->n_in; i++)
        if (n->in[i] != SNI_NO_ID) return false;
    uint32_t bound = m->bound;
    int n_nodes = m->n_nodes;
    m->shared[m->n_nodes] = p->shared;
    m->nodes[m->n_nodes++] = n;
    bool ok = true;
    for (int i = 0; ok && i < p->n_attrs; i++) ok = match_attr(m, n, &p->attrs[i]);
    if (ok && p->slot >= 0) {
        m->bound |= 1u << p->slot;
        m->slots[p->slot].value = g->value;
        m->slots[p->slot].node = n;
    }
    ok = ok && (match_inputs(m, g, n, false) ||
                (p->commutative && n->n_in == 2 && match_inputs(m, g, n, true)));
    if (ok) return true;
    m->bound = bound;
    m->n_nodes = n_nodes;
    return false;
}

static bool match_again(sni_match *m, const goal *g) {
    const sni_node *n = m->bound & 1u << g->pat->slot ? m->slots[g->pat->slot].node : NULL;
    return n && g->pat->out < n->n_out && n->out[g->pat->out] == g->value;
}

static bool match_choice(sni_match *m, const goal *g) {
    for (int i = 0; i < g->pat->n_in; i++) {
        goal one = {g->pat->in[i], g->value, g->user, g->rest};
        if (solve(m, &one)) return true;
    }
    return false;
}

static bool is_matched(const sni_match *m, int32_t node) {
    for (int i = 0; i < m->n_nodes; i++)
        if (m->nodes[i]->id == node) return true;
    return false;
}

/* An output that the replacement makes as well may be used by others. */
static bool is_exposed(const sni_match *m, const sni_node *n, int32_t out) {
    for (int i = 0; i < m->rule->n_outputs; i++) {
        int slot = m->rule->outputs[i].slot;
        const sni_node *from = slot >= 0 ? m->slots[slot].node : slot == -1 ? m->root : NULL;
        if (from == n && m->rule->outputs[i].out == out) return true;
    }
    return n == m->root && out == 0;
}

static bool is_private(const sni_match *m, const sni_node *n) {
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(m->g, n->out[i]);
        if (is_exposed(m, n, i)) continue;
        for (int32_t u = 0; v && u < v->use_count; u++)
            if (v->uses[u].node == SNI_NO_ID || !is_matched(m, v->uses[u].node)) return false;
    }
    return true;
}

/* Everything is bound: whether the replacement may take the place of the matched nodes. */
static bool is_replaceable(sni_match *m) {
    for (int i = 0; i < m->n_nodes; i++)
        if (!m->shared[i] && !is_private(m, m->nodes[i])) return false;
    return !m->rule->rule->where || m->rule->rule->where(m);
}

static bool solve(sni_match *m, const goal *g) {
    if (!g) return is_replaceable(m);
    const sni_pat *p = g->pat;
    if (g->value == SNI_NO_ID && p->kind != SNI_PAT_CHOICE)
        return (p->optional || p->kind == SNI_PAT_ABSENT) && solve(m, g->rest);
    uint32_t bound = m->bound;
    bool ok = false;
    switch (p->kind) {
    case SNI_PAT_ABSENT:
        return false;
    case SNI_PAT_NODE:
        return match_node(m, g);
    case SNI_PAT_CHOICE:
        return match_choice(m, g);
    case SNI_PAT_AGAIN:
        ok = match_again(m, g);
        break;
    case SNI_PAT_VALUE:
        ok = bind(m, p->slot, g->value);
        break;
    case SNI_PAT_CONST:
        ok = match_const(m, g);
        break;
    case SNI_PAT_SCALAR:
    case SNI_PAT_NUMBER:
        ok = match_scalar(m, g);
        break;
    case SNI_PAT_INTS:
        ok = match_ints(m, g);
        break;
    }
    if (ok && solve(m, g->rest)) return true;
    m->bound = bound;
    return false;
}

bool sni_rule_match(sni_match *m, const sni_compiled_rule *rule, sni_node *root) {
    m->rule = rule;
    m->root = root;
    m->bound = 0;
    m->n_nodes = 0;
    goal g = {rule->pattern, root->out[0], NULL, NULL};
    return root->out[0] != SNI_NO_ID && solve(m, &g);
}

/* ---- Lookups ---- */

/* The slot of a name that is bound; NULL if it is not. */
static const sni_rule_slot *slot_of(const sni_match *m, const char *name) {
    for (int i = 0; i < m->rule->n_names; i++)
        if (sni_str_is(m->rule->names[i].text, name))
            return m->bound & 1u << i ? &m->slots[i] : NULL;
    return NULL;
}

int32_t sni_match_value(const sni_match *m, const char *name) {
    const sni_rule_slot *s = slot_of(m, name);
    return s ? s->value : SNI_NO_ID;
}

sni_node *sni_match_node(const sni_match *m, const char *name) {
    const sni_rule_slot *s = slot_of(m, name);
    return s ? s->node : NULL;
}

double sni_match_number(const sni_match *m, const char *name) {
    const sni_rule_slot *s = slot_of(m, name);
    return s ? s->number : 0;
}

const sni_attr *sni_match_attr(const sni_match *m, const char *name) {
    const sni_rule_slot *s = slot_of(m, name);
    return s && s->attr.kind != SNI_ATTR_NONE ? &s->attr : NULL;
}

const sni_type *sni_match_type(const sni_match *m, const char *name) {
    static const sni_type unknown;
    const sni_value *v = sni_graph_value(m->g, sni_match_value(m, name));
    return v ? &v->type : &unknown;
}

const sni_tensor *sni_match_const(const sni_match *m, const char *name) {
    sni_const *c = sni_value_const(m->g, sni_match_value(m, name));
    const sni_tensor *t = NULL;
    return c && sni_const_load(c, &t, NULL) == SN_OK ? t : NULL;
}
