/* clean.c - passes that remove what is not needed: dead nodes, identities, repeated work. */
#include "opt/opt.h"

#include <stdlib.h>

/* ---- Dead code ---- */

static bool is_dead(const sni_graph *g, const sni_node *n) {
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        if (v && v->use_count > 0) return false;
    }
    return true;
}

sn_status sni_pass_dead_code(sni_rewrite *r) {
    sni_graph *g = r->graph;
    for (sni_node *n = sni_graph_node(g, g->last), *prev; n; n = prev) {
        prev = sni_graph_node(g, n->prev);
        if (!is_dead(g, n)) continue;
        sni_graph_remove_node(g, n);
        r->count++;
    }
    sni_graph_remove_dead_values(g);
    return SN_OK;
}

/* ---- Identities ---- */

static bool same_known_shape(const sni_type *a, const sni_type *b) {
    if (!a->has_shape || !b->has_shape || a->rank != b->rank || a->dtype != b->dtype) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

/* The number that a constant of one element holds: a flag or a ratio; `otherwise` if it is left
 * out, -1 if it is not known. */
static double known_number(const sni_graph *g, const sni_node *n, int32_t i, double otherwise) {
    const sni_value *v = i < n->n_in ? sni_graph_value(g, n->in[i]) : NULL;
    const sni_tensor *t;
    if (!v) return otherwise;
    if (!v->constant || v->is_input || v->constant->tensor.count != 1 ||
        sni_const_load(v->constant, &t, NULL) != SN_OK)
        return -1;
    if (t->dtype == SN_BOOL) return *(const unsigned char *)t->data != 0;
    return t->dtype == SN_FLOAT32 ? (double)*(const float *)t->data : -1;
}

/* True if a Dropout drops nothing: it does not train, or nothing is its share. */
static bool keeps_all(const sni_graph *g, const sni_node *n) {
    return known_number(g, n, 2, 0) == 0 || known_number(g, n, 1, 0.5) == 0;
}

/* Whether the elements of a Reshape's or an Expand's shape are those of the result. A type may hold
 * only for runs that succeed, and a shape that only a run brings must be looked at by it. */
static bool shape_is_told(const sni_graph *g, const sni_node *n, const sni_type *y) {
    const sni_value *s = n->n_in > 1 ? sni_graph_value(g, n->in[1]) : NULL;
    if (!s || s->constant) return true;
    if (!s->shape_value || s->shape_count > y->rank) return false;
    for (int32_t i = 0; i < s->shape_count; i++) {
        sni_dim d = s->shape_value[i];
        if (sni_dim_is_symbol(d) && d != y->dims[y->rank - s->shape_count + i]) return false;
    }
    return true;
}

/* True if output 0 is input 0, element for element and in shape. */
static bool is_identity(const sni_graph *g, const sni_node *n) {
    if (n->domain.n || n->n_in < 1 || n->in[0] == SNI_NO_ID || n->out[0] == SNI_NO_ID) return false;
    const sni_value *x = g->values[n->in[0]], *y = g->values[n->out[0]];
    if (sni_str_is(n->type, "Identity")) return true;
    if (sni_str_is(n->type, "Dropout")) {
        /* Nobody looks at the mask. */
        const sni_value *mask = n->n_out > 1 ? sni_graph_value(g, n->out[1]) : NULL;
        return keeps_all(g, n) && (!mask || mask->use_count == 0);
    }
    static const char *const views[] = {"Reshape",   "Flatten", "Squeeze",
                                        "Unsqueeze", "Expand",  "Cast"};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++)
        if (sni_str_is(n->type, views[i]))
            return same_known_shape(&x->type, &y->type) && shape_is_told(g, n, &y->type);
    return false;
}

/* A graph output must not become one of the graph's inputs, captures or constants by name alone:
 * the planner copies those, which is what Identity did. */
sn_status sni_pass_identity(sni_rewrite *r) {
    sni_graph *g = r->graph;
    for (sni_node *n = sni_graph_first(g), *next; n; n = next) {
        next = sni_graph_next(g, n);
        if (!n->op || !is_identity(g, n)) continue;
        SN_TRY(sni_graph_replace_uses(g, n->out[0], n->in[0], r->err));
        sni_graph_remove_node(g, n);
        r->count++;
    }
    return SN_OK;
}

/* ---- Constants that stand twice ---- */

enum {
    SAMPLED = 64,           /* bytes at each end of a constant that are looked at first */
    MOST_FLOATS = 64 << 10, /* bytes of a constant of floats: to read large weights takes long */
    MOST_OTHERS = 4 << 20   /* of another: masks and tables of indices stand in every layer */
};

static uint64_t mix(uint64_t h, uint64_t v) {
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h;
}

static uint64_t hash_bytes(uint64_t h, const unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

static uint64_t hash_const(const sni_tensor *t, size_t bytes) {
    uint64_t h = mix((uint64_t)t->dtype, (uint64_t)t->rank);
    size_t n = bytes < SAMPLED ? bytes : SAMPLED;
    for (int i = 0; i < t->rank; i++) h = mix(h, (uint64_t)t->dims[i]);
    h = hash_bytes(h, t->data, n);
    return n ? hash_bytes(h, (const unsigned char *)t->data + bytes - n, n) : h;
}

bool sni_const_same(sni_const *a, sni_const *b) {
    const sni_tensor *x, *y;
    if (a == b) return true;
    if (a->tensor.dtype != b->tensor.dtype || a->tensor.rank != b->tensor.rank ||
        a->tensor.dtype == SN_STRING)
        return false;
    for (int i = 0; i < a->tensor.rank; i++)
        if (a->tensor.dims[i] != b->tensor.dims[i]) return false;
    if (a->narrow && b->narrow && a->narrow->tensor.dtype == b->narrow->tensor.dtype) {
        a = a->narrow;
        b = b->narrow;
    }
    if (sni_const_load(a, &x, NULL) != SN_OK || sni_const_load(b, &y, NULL) != SN_OK) return false;
    size_t bytes = sni_tensor_bytes(x);
    return bytes == 0 || memcmp(x->data, y->data, bytes) == 0;
}

static bool is_quickly_read(const sni_const *c) {
    bool floats = c->tensor.dtype == SN_FLOAT32 || c->tensor.dtype == SN_FLOAT16 ||
                  c->tensor.dtype == SN_BFLOAT16 || c->tensor.dtype == SN_FLOAT64;
    return c->tensor.dtype != SN_STRING &&
           sni_tensor_bytes(&c->tensor) <= (size_t)(floats ? MOST_FLOATS : MOST_OTHERS);
}

/* A constant that callers cannot override, and that is used. */
static bool is_plain_const(const sni_value *v) {
    return v && v->constant && !v->is_input && !v->is_capture && v->use_count > 0 &&
           is_quickly_read(v->constant);
}

static sn_status merge_const(sni_rewrite *r, int32_t *table, size_t size, const sni_value *v) {
    const sni_tensor *t;
    if (sni_const_load(v->constant, &t, NULL) != SN_OK) return SN_OK;
    size_t at = (size_t)hash_const(t, sni_tensor_bytes(t)) & (size - 1);
    while (table[at] != SNI_NO_ID &&
           !sni_const_same(r->graph->values[table[at]]->constant, v->constant))
        at = (at + 1) & (size - 1);
    if (table[at] == SNI_NO_ID) {
        table[at] = v->id;
        return SN_OK;
    }
    r->count++;
    return sni_graph_replace_uses(r->graph, v->id, table[at], r->err);
}

sn_status sni_pass_duplicate_constants(sni_rewrite *r) {
    const sni_graph *g = r->graph;
    size_t size = 16, count = 0;
    for (int32_t i = 0; i < g->value_count; i++) count += is_plain_const(g->values[i]);
    while (size < count * 2) size *= 2;
    int32_t *table = malloc(size * sizeof *table);
    if (!table) return sni_fail_memory(r->err);
    for (size_t i = 0; i < size; i++) table[i] = SNI_NO_ID;
    sn_status status = SN_OK;
    for (int32_t i = 0; i < g->value_count && status == SN_OK; i++)
        if (is_plain_const(g->values[i])) status = merge_const(r, table, size, g->values[i]);
    free(table);
    return status;
}

/* ---- Common subexpressions ---- */

static uint64_t hash_node(const sni_node *n) {
    uint64_t h = (uint64_t)(uintptr_t)n->op;
    for (int32_t i = 0; i < n->n_in; i++) h = mix(h, (uint64_t)(uint32_t)n->in[i]);
    h = mix(h, (uint64_t)n->n_attrs);
    return mix(h, (uint64_t)n->n_out);
}

static bool same_bytes(const void *a, const void *b, size_t size) {
    return size == 0 || memcmp(a, b, size) == 0;
}

static bool same_attr(const sni_attr *a, const sni_attr *b) {
    if (a->kind != b->kind || a->count != b->count || !sni_str_eq(a->name, b->name)) return false;
    switch (a->kind) {
    case SNI_ATTR_FLOAT:
        return memcmp(&a->u.f, &b->u.f, sizeof a->u.f) == 0;
    case SNI_ATTR_INT:
        return a->u.i == b->u.i;
    case SNI_ATTR_STRING:
        return sni_str_eq(a->u.s, b->u.s);
    case SNI_ATTR_FLOATS:
        return same_bytes(a->u.floats, b->u.floats, a->count * sizeof *a->u.floats);
    case SNI_ATTR_INTS:
        return same_bytes(a->u.ints, b->u.ints, a->count * sizeof *a->u.ints);
    default:
        return a->u.tensor == b->u.tensor && a->kind == SNI_ATTR_TENSOR;
    }
}

static bool same_node(const sni_node *a, const sni_node *b) {
    if (a->op != b->op || a->n_in != b->n_in || a->n_out != b->n_out || a->n_attrs != b->n_attrs)
        return false;
    if (!same_bytes(a->in, b->in, (size_t)a->n_in * sizeof *a->in)) return false;
    for (int32_t i = 0; i < a->n_attrs; i++) {
        const sni_attr *other = NULL;
        for (int32_t j = 0; j < b->n_attrs && !other; j++)
            if (sni_str_eq(a->attrs[i].name, b->attrs[j].name)) other = &b->attrs[j];
        if (!other || !same_attr(&a->attrs[i], other)) return false;
    }
    for (int32_t i = 0; i < a->n_out; i++)
        if ((a->out[i] == SNI_NO_ID) != (b->out[i] == SNI_NO_ID)) return false;
    return true;
}

static sn_status merge(sni_rewrite *r, const sni_node *keep, sni_node *n) {
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != SNI_NO_ID)
            SN_TRY(sni_graph_replace_uses(r->graph, n->out[i], keep->out[i], r->err));
    sni_graph_remove_node(r->graph, n);
    r->count++;
    return SN_OK;
}

sn_status sni_pass_common_subexpressions(sni_rewrite *r) {
    sni_graph *g = r->graph;
    size_t size = 16;
    while (size < (size_t)g->node_count * 2) size *= 2;
    int32_t *table = malloc(size * sizeof *table);
    if (!table) return sni_fail_memory(r->err);
    for (size_t i = 0; i < size; i++) table[i] = SNI_NO_ID;
    sn_status status = SN_OK;
    for (sni_node *n = sni_graph_first(g), *next; n && status == SN_OK; n = next) {
        next = sni_graph_next(g, n);
        if (!n->op || n->n_subgraphs || (n->op->flags & (SNI_OP_RANDOM | SNI_OP_SUBGRAPHS)))
            continue;
        size_t at = hash_node(n) & (size - 1);
        while (table[at] != SNI_NO_ID && !same_node(g->nodes[table[at]], n))
            at = (at + 1) & (size - 1);
        if (table[at] == SNI_NO_ID)
            table[at] = n->id;
        else
            status = merge(r, g->nodes[table[at]], n);
    }
    free(table);
    return status;
}
