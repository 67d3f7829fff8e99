/* clone.c - copies of a graph, or a part of one, that can be changed without changing the original.
 */
#include "graph/part.h"

static void free_symbols(void *symbols) {
    sni_symbols_free(symbols);
}

static sn_status clone_value(sni_graph *to, const sni_value *from, sn_error *err) {
    sni_value *v;
    SN_TRY(sni_graph_add_value(to, from->name, &v, err));
    if (!sni_type_copy(&v->type, &from->type, &to->store->arena)) return sni_fail_memory(err);
    v->constant = from->constant;
    if (from->shape_value) {
        sni_dim *dims = SNI_NEW_ARRAY(&to->store->arena, sni_dim, from->shape_count);
        if (!dims) return sni_fail_memory(err);
        memcpy(dims, from->shape_value, (size_t)from->shape_count * sizeof *dims);
        v->shape_value = dims;
        v->shape_count = from->shape_count;
    }
    return SN_OK;
}

static sn_status clone_at(const sni_graph *g, sni_store *store, sni_symbols *symbols,
                          sni_graph *parent, int depth, sni_graph **out, sn_error *err);

/* `map` has the copies of values that nodes read, `made` of those that they make, by id. */
static sn_status clone_node(sni_graph *to, const int32_t *map, const int32_t *made,
                            const sni_node *from, int depth, sn_error *err) {
    sni_arena *arena = &to->store->arena;
    int32_t total = from->n_in + from->n_captures;
    int32_t *in = SNI_NEW_ARRAY(arena, int32_t, total);
    int32_t *out = SNI_NEW_ARRAY(arena, int32_t, from->n_out);
    if (!in || !out) return sni_fail_memory(err);
    for (int32_t i = 0; i < total; i++) in[i] = from->in[i] < 0 ? SNI_NO_ID : map[from->in[i]];
    for (int32_t i = 0; i < from->n_out; i++)
        out[i] = from->out[i] < 0 ? SNI_NO_ID : made[from->out[i]];
    sni_node *n;
    SN_TRY(sni_graph_add_node(
        to, SNI_NO_ID, &(sni_new_node){from->domain, from->type, in, total, out, from->n_out}, &n,
        err));
    n->n_in = from->n_in;
    n->n_captures = from->n_captures;
    n->name = sni_arena_str(arena, from->name);
    if (!n->name.p) return sni_fail_memory(err);
    n->version = from->version;
    n->op = from->op;
    n->params = from->params; /* immutable, in the store that the new one keeps alive */
    for (int32_t i = 0; i < from->n_attrs; i++)
        SN_TRY(sni_node_set_attr(to, n, &from->attrs[i], err));
    for (int32_t i = 0; i < from->n_subgraphs; i++) {
        sni_graph *sub;
        int32_t index;
        SN_TRY(clone_at(from->subgraphs[i], to->store, to->symbols, to, depth + 1, &sub, err));
        SN_TRY(sni_node_add_subgraph(to, n, sub, &index, err));
    }
    return SN_OK;
}

static sn_status clone_at(const sni_graph *g, sni_store *store, sni_symbols *symbols,
                          sni_graph *parent, int depth, sni_graph **out, sn_error *err) {
    SN_TRY(sni_check_nesting(depth, err));
    sni_graph *to;
    SN_TRY(sni_graph_new(store, symbols, parent, &to, err));
    to->name = sni_arena_str(&store->arena, g->name);
    int32_t *map = SNI_NEW_ARRAY(&store->arena, int32_t, g->value_count);
    if (!map || !to->name.p) return sni_fail_memory(err);
    for (int32_t i = 0; i < g->value_count; i++) {
        map[i] = to->value_count;
        if (g->values[i]) SN_TRY(clone_value(to, g->values[i], err));
    }
    for (int32_t i = 0; i < g->n_inputs; i++)
        SN_TRY(sni_graph_add_input(to, map[g->inputs[i]], err));
    for (int32_t i = 0; i < g->n_captures; i++)
        SN_TRY(sni_graph_add_capture(to, map[g->captures[i].value], g->captures[i].slot, err));
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        SN_TRY(clone_node(to, map, map, n, depth, err));
    for (int32_t i = 0; i < g->n_outputs; i++)
        SN_TRY(sni_graph_add_output(to, map[g->outputs[i]], g->output_names[i], err));
    *out = to;
    return SN_OK;
}

static sn_status clone_symbols(const sni_graph *g, sni_store *store, sni_symbols **out,
                               sn_error *err) {
    sni_symbols *symbols = sni_symbols_clone(g->symbols);
    if (!symbols) return sni_fail_memory(err);
    SN_TRY(sni_store_own(store, symbols, free_symbols, err));
    *out = symbols;
    return SN_OK;
}

sn_status sni_graph_clone(const sni_graph *g, sni_store *store, sni_graph **out, sn_error *err) {
    sni_symbols *symbols = NULL;
    SN_TRY(clone_symbols(g, store, &symbols, err));
    return clone_at(g, store, symbols, NULL, 0, out, err);
}

/* ---- A part ---- */

/* Which values and nodes of the whole belong to a part, by id. */
typedef struct members {
    bool *cut;   /* values that become inputs */
    bool *value; /* values that are needed */
    bool *node;
} members;

static sn_status find_members(const sni_graph *g, const sni_part *part, sni_arena *arena,
                              members *m, sn_error *err) {
    m->cut = SNI_NEW_ARRAY(arena, bool, g->value_count);
    m->value = SNI_NEW_ARRAY(arena, bool, g->value_count);
    m->node = SNI_NEW_ARRAY(arena, bool, g->node_count);
    if (!m->cut || !m->value || !m->node) return sni_fail_memory(err);
    for (size_t i = 0; i < part->n_inputs; i++) m->cut[part->inputs[i]] = true;
    for (size_t i = 0; i < part->n_outputs; i++) m->value[part->outputs[i]] = true;
    for (const sni_node *n = sni_graph_node(g, g->last); n; n = sni_graph_node(g, n->prev)) {
        for (int32_t i = 0; i < n->n_out && !m->node[n->id]; i++)
            m->node[n->id] = n->out[i] >= 0 && m->value[n->out[i]] && !m->cut[n->out[i]];
        if (!m->node[n->id]) continue;
        for (int32_t i = 0; i < n->n_in + n->n_captures; i++)
            if (n->in[i] >= 0) m->value[n->in[i]] = true;
    }
    return SN_OK;
}

/* Copies the values of a part; a value that is cut off from a node that stays leaves a nameless one
 * behind for the node to make. `map` is for who reads values, `made` for who makes them. */
static sn_status clone_values(const sni_graph *g, const members *m, sni_graph *to, int32_t *map,
                              int32_t *made, bool *forgot, sn_error *err) {
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_value *from = g->values[i];
        map[i] = made[i] = SNI_NO_ID;
        if (!from) continue;
        bool is_made = from->producer >= 0 && m->node[from->producer];
        if (m->value[i] || (is_made && !m->cut[i])) {
            map[i] = made[i] = to->value_count;
            SN_TRY(clone_value(to, from, err));
        }
        if (!m->cut[i]) continue;
        if (map[i] >= 0) {
            sni_value *v = to->values[map[i]];
            if (v->constant || v->shape_value) *forgot = true;
            v->constant = NULL;
            v->shape_value = NULL;
            v->shape_count = 0;
        }
        if (is_made) {
            made[i] = to->value_count;
            sni_value nameless = *from;
            nameless.name = (sni_str){0};
            SN_TRY(clone_value(to, &nameless, err));
        }
    }
    return SN_OK;
}

sn_status sni_graph_clone_part(const sni_graph *g, const sni_part *part, sni_store *store,
                               sni_graph **out, bool *forgot, sn_error *err) {
    sni_symbols *symbols = NULL;
    members m;
    sni_graph *to;
    SN_TRY(clone_symbols(g, store, &symbols, err));
    SN_TRY(find_members(g, part, &store->arena, &m, err));
    SN_TRY(sni_graph_new(store, symbols, NULL, &to, err));
    to->name = sni_arena_str(&store->arena, g->name);
    int32_t *map = SNI_NEW_ARRAY(&store->arena, int32_t, g->value_count);
    int32_t *made = SNI_NEW_ARRAY(&store->arena, int32_t, g->value_count);
    if (!map || !made || !to->name.p) return sni_fail_memory(err);
    SN_TRY(clone_values(g, &m, to, map, made, forgot, err));
    for (int32_t i = 0; i < g->n_inputs; i++)
        if (map[g->inputs[i]] >= 0 && !m.cut[g->inputs[i]])
            SN_TRY(sni_graph_add_input(to, map[g->inputs[i]], err));
    for (size_t i = 0; i < part->n_inputs; i++)
        if (map[part->inputs[i]] >= 0) SN_TRY(sni_graph_add_input(to, map[part->inputs[i]], err));
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        if (m.node[n->id]) SN_TRY(clone_node(to, map, made, n, 0, err));
    for (size_t i = 0; i < part->n_outputs; i++)
        SN_TRY(sni_graph_add_output(to, map[part->outputs[i]], part->output_names[i], err));
    *out = to;
    return SN_OK;
}

/* ---- Some nodes ---- */

typedef struct cutter {
    sni_graph *g, *body;
    int32_t *map; /* by value id: the body's; SNI_NO_ID: none yet */
    bool *member; /* by node id */
    sni_cutout *out;
} cutter;

/* The body's copy of a value that a node reads. */
static sn_status cut_input(cutter *c, int32_t id, sn_error *err) {
    const sni_value *from = sni_graph_value(c->g, id);
    if (!from || c->map[id] != SNI_NO_ID) return SN_OK;
    c->map[id] = c->body->value_count;
    SN_TRY(clone_value(c->body, from, err));
    if (from->constant && !from->is_input) return SN_OK;
    sni_value *v = c->body->values[c->map[id]];
    v->constant = NULL;
    v->shape_value = NULL;
    v->shape_count = 0;
    c->out->in[c->out->n_in++] = id;
    return sni_graph_add_input(c->body, v->id, err);
}

static sn_status cut_node(cutter *c, const sni_node *n, sn_error *err) {
    for (int32_t i = 0; i < n->n_in + n->n_captures; i++) SN_TRY(cut_input(c, n->in[i], err));
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(c->g, n->out[i]);
        if (!v) continue;
        c->map[v->id] = c->body->value_count;
        SN_TRY(clone_value(c->body, v, err));
    }
    return clone_node(c->body, c->map, c->map, n, 0, err);
}

static bool leaves(const cutter *c, const sni_value *v) {
    for (int32_t i = 0; i < v->use_count; i++)
        if (v->uses[i].node == SNI_NO_ID || !c->member[v->uses[i].node]) return true;
    return false;
}

static sn_status cut_outputs(cutter *c, const sni_node *n, sn_error *err) {
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(c->g, n->out[i]);
        if (!v || !leaves(c, v)) continue;
        sni_str name = v->name;
        if (!name.n) name = sni_arena_printf(&c->g->store->arena, "output%d", (int)c->out->n_out);
        if (!name.p) return sni_fail_memory(err);
        SN_TRY(sni_graph_add_output(c->body, c->map[v->id], name, err));
        c->out->out[c->out->n_out++] = v->id;
    }
    return SN_OK;
}

sn_status sni_graph_cut_out(sni_graph *g, sni_node *const *nodes, size_t count, sni_cutout *out,
                            sn_error *err) {
    sni_arena *arena = &g->store->arena;
    sni_cutout made = {0};
    cutter c = {.g = g, .out = &made};
    int32_t n_in = 0, n_out = 0;
    c.map = SNI_NEW_ARRAY(arena, int32_t, g->value_count);
    c.member = SNI_NEW_ARRAY(arena, bool, g->node_count);
    if (!c.map || !c.member) return sni_fail_memory(err);
    for (int32_t i = 0; i < g->value_count; i++) c.map[i] = SNI_NO_ID;
    for (size_t i = 0; i < count; i++) {
        c.member[nodes[i]->id] = true;
        n_in += nodes[i]->n_in + nodes[i]->n_captures;
        n_out += nodes[i]->n_out;
    }
    made.in = SNI_NEW_ARRAY(arena, int32_t, n_in);
    made.out = SNI_NEW_ARRAY(arena, int32_t, n_out);
    if (!made.in || !made.out) return sni_fail_memory(err);
    SN_TRY(sni_graph_new(g->store, g->symbols, g, &c.body, err));
    for (size_t i = 0; i < count; i++) SN_TRY(cut_node(&c, nodes[i], err));
    for (size_t i = 0; i < count; i++) SN_TRY(cut_outputs(&c, nodes[i], err));
    made.body = c.body;
    *out = made;
    return SN_OK;
}
