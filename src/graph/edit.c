/* edit.c - the only code that changes how a graph is connected: it keeps use lists, producers and
 * the order of nodes right. */
#include "graph/graph.h"

#include <assert.h>
#include <stdlib.h>

/* The array, or a larger copy of it in the graph's arena, with space for one more element; NULL
 * without memory. */
static void *grow(sni_graph *g, void *array, int32_t count, int32_t *capacity, size_t size) {
    if (count < *capacity) return array;
    if (*capacity > INT32_MAX / 2) return NULL;
    int32_t more = *capacity ? *capacity * 2 : 4;
    void *bigger = sni_arena_array(&g->store->arena, (size_t)more, size);
    if (!bigger) return NULL;
    if (count) memcpy(bigger, array, (size_t)count * size);
    *capacity = more;
    return bigger;
}

static sn_status out_of_memory(const sni_graph *g, sn_error *err) {
    return sni_store_no_memory(g->store, err);
}

/* A value of the graph that has not been removed; for assertions. */
static inline bool is_value(const sni_graph *g, int32_t id) {
    return id >= 0 && id < g->value_count && g->values[id];
}

#define GROW(g, array, count, capacity) grow((g), (array), (count), &(capacity), sizeof *(array))

static void free_symbols(void *symbols) {
    sni_symbols_free(symbols);
}

sn_status sni_graph_new(sni_store *store, sni_symbols *symbols, sni_graph *parent, sni_graph **out,
                        sn_error *err) {
    if (!symbols) {
        symbols = sni_symbols_new();
        if (!symbols) return sni_fail_memory(err);
        SN_TRY(sni_store_own(store, symbols, free_symbols, err));
    }
    sni_graph *g = SNI_NEW(&store->arena, sni_graph);
    if (!g) return sni_store_no_memory(store, err);
    g->store = store;
    g->symbols = symbols;
    g->parent = parent;
    g->first = g->last = SNI_NO_ID;
    *out = g;
    return SN_OK;
}

/* ---- Values ---- */

sn_status sni_graph_add_value(sni_graph *g, sni_str name, sni_value **out, sn_error *err) {
    sni_value **values = GROW(g, g->values, g->value_count, g->value_capacity);
    sni_value *v = SNI_NEW(&g->store->arena, sni_value);
    if (!values || !v) return out_of_memory(g, err);
    g->values = values;
    if (name.n) {
        v->name = sni_arena_str(&g->store->arena, name);
        if (!v->name.p) return out_of_memory(g, err);
    }
    v->id = g->value_count;
    v->producer = SNI_NO_ID;
    g->values[g->value_count++] = v;
    *out = v;
    return SN_OK;
}

static sn_status set_tensor_type(sni_graph *g, sni_value *v, const sni_tensor *t, sn_error *err) {
    sni_dim *dims = SNI_NEW_ARRAY(&g->store->arena, sni_dim, t->rank);
    if (!dims) return out_of_memory(g, err);
    for (int i = 0; i < t->rank; i++) dims[i] = t->dims[i];
    v->type = (sni_type){.kind = SN_KIND_TENSOR,
                         .dtype = t->dtype,
                         .has_shape = true,
                         .rank = t->rank,
                         .dims = dims};
    return SN_OK;
}

sn_status sni_graph_set_const(sni_graph *g, sni_value *v, sni_const *c, sn_error *err) {
    SN_TRY(set_tensor_type(g, v, &c->tensor, err));
    v->constant = c;
    return SN_OK;
}

sn_status sni_graph_add_const(sni_graph *g, sni_str name, sni_const *c, sni_value **out,
                              sn_error *err) {
    sni_value *v;
    SN_TRY(sni_graph_add_value(g, name, &v, err));
    SN_TRY(sni_graph_set_const(g, v, c, err));
    *out = v;
    return SN_OK;
}

static sn_status add_use(sni_graph *g, int32_t value, int32_t node, int32_t slot, sn_error *err) {
    assert(value == SNI_NO_ID || is_value(g, value));
    sni_value *v = sni_graph_value(g, value);
    if (!v) return SN_OK;
    sni_use *uses = GROW(g, v->uses, v->use_count, v->use_capacity);
    if (!uses) return out_of_memory(g, err);
    v->uses = uses;
    v->uses[v->use_count++] = (sni_use){.node = node, .slot = slot};
    return SN_OK;
}

static void drop_use(sni_graph *g, int32_t value, int32_t node, int32_t slot) {
    sni_value *v = sni_graph_value(g, value);
    if (!v) return;
    for (int32_t i = 0; i < v->use_count; i++) {
        if (v->uses[i].node != node || v->uses[i].slot != slot) continue;
        v->uses[i] = v->uses[--v->use_count];
        return;
    }
}

sn_status sni_graph_add_input(sni_graph *g, int32_t value, sn_error *err) {
    assert(is_value(g, value) && g->values[value]->producer == SNI_NO_ID);
    int32_t *inputs = GROW(g, g->inputs, g->n_inputs, g->inputs_capacity);
    if (!inputs) return out_of_memory(g, err);
    g->inputs = inputs;
    g->inputs[g->n_inputs++] = value;
    g->values[value]->is_input = true;
    return SN_OK;
}

void sni_graph_fold_input_defaults(sni_graph *g) {
    int32_t left = 0;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        sni_value *v = g->values[g->inputs[i]];
        if (v->constant)
            v->is_input = false;
        else
            g->inputs[left++] = g->inputs[i];
    }
    g->n_inputs = left;
}

sn_status sni_graph_add_output(sni_graph *g, int32_t value, sni_str name, sn_error *err) {
    int32_t capacity = g->outputs_capacity;
    sni_str *names = GROW(g, g->output_names, g->n_outputs, capacity);
    int32_t *outputs = GROW(g, g->outputs, g->n_outputs, g->outputs_capacity);
    sni_str copy = sni_arena_str(&g->store->arena, name);
    if (!names || !outputs || !copy.p) return out_of_memory(g, err);
    g->output_names = names;
    g->outputs = outputs;
    SN_TRY(add_use(g, value, SNI_NO_ID, g->n_outputs, err));
    g->output_names[g->n_outputs] = copy;
    g->outputs[g->n_outputs++] = value;
    return SN_OK;
}

sn_status sni_graph_add_capture(sni_graph *g, int32_t value, int32_t slot, sn_error *err) {
    assert(is_value(g, value) && g->values[value]->producer == SNI_NO_ID);
    sni_capture *captures = GROW(g, g->captures, g->n_captures, g->captures_capacity);
    if (!captures) return out_of_memory(g, err);
    g->captures = captures;
    g->captures[g->n_captures++] = (sni_capture){.value = value, .slot = slot};
    g->values[value]->is_capture = true;
    return SN_OK;
}

sn_status sni_graph_replace_uses(sni_graph *g, int32_t from, int32_t to, sn_error *err) {
    assert(is_value(g, from) && is_value(g, to));
    sni_value *v = g->values[from];
    if (from == to) return SN_OK;
    for (int32_t i = 0; i < v->use_count; i++)
        SN_TRY(add_use(g, to, v->uses[i].node, v->uses[i].slot, err));
    for (int32_t i = 0; i < v->use_count; i++) {
        sni_use u = v->uses[i];
        if (u.node == SNI_NO_ID)
            g->outputs[u.slot] = to;
        else
            g->nodes[u.node]->in[u.slot] = to;
    }
    v->use_count = 0;
    if (g->values[to]->stands_for.n == 0) {
        g->values[to]->stands_for = v->stands_for;
        g->values[to]->channels = v->channels;
    }
    return SN_OK;
}

void sni_graph_remove_dead_values(sni_graph *g) {
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_value *v = g->values[i];
        if (v && v->producer == SNI_NO_ID && !v->is_input && !v->is_capture && v->use_count == 0)
            g->values[i] = NULL;
    }
}

/* ---- The list of nodes ---- */

static void link_before(sni_graph *g, sni_node *n, int32_t before) {
    sni_node *next = sni_graph_node(g, before);
    n->next = before;
    n->prev = next ? next->prev : g->last;
    if (n->prev == SNI_NO_ID)
        g->first = n->id;
    else
        g->nodes[n->prev]->next = n->id;
    if (next)
        next->prev = n->id;
    else
        g->last = n->id;
}

static void unlink_node(sni_graph *g, sni_node *n) {
    if (n->prev == SNI_NO_ID)
        g->first = n->next;
    else
        g->nodes[n->prev]->next = n->next;
    if (n->next == SNI_NO_ID)
        g->last = n->prev;
    else
        g->nodes[n->next]->prev = n->prev;
}

/* ---- Nodes ---- */

static int32_t *copy_ids(sni_graph *g, const int32_t *ids, int32_t count) {
    int32_t *copy = SNI_NEW_ARRAY(&g->store->arena, int32_t, count);
    if (copy && count) memcpy(copy, ids, (size_t)count * sizeof *ids);
    return copy;
}

static void claim_output(sni_graph *g, const sni_node *n, int32_t slot) {
    sni_value *v = sni_graph_value(g, n->out[slot]);
    if (!v) return;
    assert(v->producer == SNI_NO_ID);
    v->producer = n->id;
    v->producer_slot = slot;
}

void sni_graph_move_node(sni_graph *g, sni_node *n, int32_t before) {
    unlink_node(g, n);
    link_before(g, n, before);
}

sn_status sni_graph_add_node(sni_graph *g, int32_t before, const sni_new_node *wanted,
                             sni_node **result, sn_error *err) {
    sni_arena *arena = &g->store->arena;
    sni_node **nodes = GROW(g, g->nodes, g->node_count, g->node_capacity);
    sni_node *n = SNI_NEW(arena, sni_node);
    if (!nodes || !n) return out_of_memory(g, err);
    g->nodes = nodes;
    n->id = g->node_count;
    n->domain = sni_arena_str(arena, wanted->domain);
    n->type = sni_arena_str(arena, wanted->type);
    n->in = copy_ids(g, wanted->in, wanted->n_in);
    n->out = copy_ids(g, wanted->out, wanted->n_out);
    if (!n->domain.p || !n->type.p || !n->in || !n->out) return out_of_memory(g, err);
    n->n_in = wanted->n_in;
    n->n_out = wanted->n_out;
    for (int32_t i = 0; i < n->n_in; i++) SN_TRY(add_use(g, n->in[i], n->id, i, err));
    for (int32_t i = 0; i < n->n_out; i++) claim_output(g, n, i);
    g->nodes[g->node_count++] = n;
    link_before(g, n, before);
    *result = n;
    return SN_OK;
}

/* Removes a value that its node no longer makes. */
static void remove_output(sni_graph *g, int32_t id) {
    if (id == SNI_NO_ID) return;
    assert(is_value(g, id) && g->values[id]->use_count == 0);
    g->values[id] = NULL;
}

void sni_graph_remove_node(sni_graph *g, sni_node *n) {
    for (int32_t i = 0; i < n->n_in + n->n_captures; i++) drop_use(g, n->in[i], n->id, i);
    for (int32_t i = 0; i < n->n_out; i++) remove_output(g, n->out[i]);
    unlink_node(g, n);
    n->removed = true;
    g->nodes[n->id] = NULL;
}

sn_status sni_node_set_input(sni_graph *g, sni_node *n, int32_t slot, int32_t value,
                             sn_error *err) {
    assert(slot >= 0 && slot < n->n_in + n->n_captures);
    SN_TRY(add_use(g, value, n->id, slot, err));
    drop_use(g, n->in[slot], n->id, slot);
    n->in[slot] = value;
    return SN_OK;
}

/* Replaces in[0 .. n_in + n_captures) by an array with `n_in` formal inputs and `n_captures`
 * captures, moving the captures' uses. New entries are left out. */
static sn_status resize_in(sni_graph *g, sni_node *n, int32_t n_in, int32_t n_captures,
                           sn_error *err) {
    int32_t *in = SNI_NEW_ARRAY(&g->store->arena, int32_t, n_in + n_captures);
    if (!in) return out_of_memory(g, err);
    for (int32_t i = 0; i < n_in + n_captures; i++) in[i] = SNI_NO_ID;
    int32_t keep = n->n_in < n_in ? n->n_in : n_in;
    for (int32_t i = 0; i < keep; i++) in[i] = n->in[i];
    for (int32_t i = keep; i < n->n_in; i++) drop_use(g, n->in[i], n->id, i);
    for (int32_t i = 0; i < n->n_captures; i++) {
        int32_t value = n->in[n->n_in + i];
        in[n_in + i] = value;
        SN_TRY(add_use(g, value, n->id, n_in + i, err));
        drop_use(g, value, n->id, n->n_in + i);
    }
    n->in = in;
    n->n_in = n_in;
    n->n_captures = n_captures;
    return SN_OK;
}

sn_status sni_node_resize_inputs(sni_graph *g, sni_node *n, int32_t n_in, sn_error *err) {
    return n_in == n->n_in ? SN_OK : resize_in(g, n, n_in, n->n_captures, err);
}

sn_status sni_node_add_capture(sni_graph *g, sni_node *n, int32_t value, int32_t *slot,
                               sn_error *err) {
    for (int32_t i = 0; i < n->n_captures; i++) {
        if (n->in[n->n_in + i] != value) continue;
        *slot = i;
        return SN_OK;
    }
    int32_t index = n->n_captures;
    SN_TRY(resize_in(g, n, n->n_in, n->n_captures + 1, err));
    SN_TRY(sni_node_set_input(g, n, n->n_in + index, value, err));
    *slot = index;
    return SN_OK;
}

sn_status sni_node_resize_outputs(sni_graph *g, sni_node *n, int32_t n_out, sn_error *err) {
    int32_t *out = SNI_NEW_ARRAY(&g->store->arena, int32_t, n_out);
    if (!out) return out_of_memory(g, err);
    for (int32_t i = 0; i < n_out; i++) out[i] = i < n->n_out ? n->out[i] : SNI_NO_ID;
    for (int32_t i = n_out; i < n->n_out; i++) remove_output(g, n->out[i]);
    n->out = out;
    n->n_out = n_out;
    return SN_OK;
}

sn_status sni_node_set_output(sni_graph *g, sni_node *n, int32_t slot, int32_t value,
                              sn_error *err) {
    if (slot >= n->n_out) SN_TRY(sni_node_resize_outputs(g, n, slot + 1, err));
    n->out[slot] = value;
    claim_output(g, n, slot);
    return SN_OK;
}

sn_status sni_node_replace_output(sni_graph *g, sni_node *n, int32_t slot, int32_t value,
                                  sn_error *err) {
    sni_value *old = sni_graph_value(g, n->out[slot]);
    if (old) old->producer = SNI_NO_ID;
    return sni_node_set_output(g, n, slot, value, err);
}

/* ---- Attributes and subgraphs ---- */

sn_status sni_node_set_attr(sni_graph *g, sni_node *n, const sni_attr *attr, sn_error *err) {
    for (int32_t i = 0; i < n->n_attrs; i++) {
        if (!sni_str_eq(n->attrs[i].name, attr->name)) continue;
        n->attrs[i] = *attr;
        return SN_OK;
    }
    sni_attr *attrs = SNI_NEW_ARRAY(&g->store->arena, sni_attr, n->n_attrs + 1);
    if (!attrs) return out_of_memory(g, err);
    if (n->n_attrs) memcpy(attrs, n->attrs, (size_t)n->n_attrs * sizeof *attrs);
    attrs[n->n_attrs++] = *attr;
    n->attrs = attrs;
    return SN_OK;
}

void sni_node_remove_attr(sni_node *n, const char *name) {
    int32_t kept = 0;
    for (int32_t i = 0; i < n->n_attrs; i++)
        if (!sni_str_is(n->attrs[i].name, name)) n->attrs[kept++] = n->attrs[i];
    n->n_attrs = kept;
}

sn_status sni_node_add_subgraph(sni_graph *g, sni_node *n, sni_graph *sub, int32_t *index,
                                sn_error *err) {
    sni_graph **subs = SNI_NEW_ARRAY(&g->store->arena, sni_graph *, n->n_subgraphs + 1);
    if (!subs) return out_of_memory(g, err);
    if (n->n_subgraphs) memcpy(subs, n->subgraphs, (size_t)n->n_subgraphs * sizeof *subs);
    subs[n->n_subgraphs] = sub;
    n->subgraphs = subs;
    *index = n->n_subgraphs++;
    return SN_OK;
}

/* ---- Looking ---- */

sni_str sni_node_label(const sni_graph *g, const sni_node *n) {
    if (n->name.n) return n->name;
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        if (v && v->name.n) return v->name;
    }
    return n->type;
}

const sni_attr *sni_node_attr(const sni_node *n, const char *name) {
    for (int32_t i = 0; i < n->n_attrs; i++)
        if (sni_str_is(n->attrs[i].name, name)) return &n->attrs[i];
    return NULL;
}

/* ---- Order ---- */

/* Appends to the list every node whose inputs are all made, given that `waiting` counts the inputs
 * that are not. Returns the number appended. */
static int32_t relink_ready(sni_graph *g, int32_t *waiting, int32_t *queue, int32_t queued) {
    g->first = g->last = SNI_NO_ID;
    for (int32_t head = 0; head < queued; head++) {
        sni_node *n = g->nodes[queue[head]];
        link_before(g, n, SNI_NO_ID);
        for (int32_t i = 0; i < n->n_out; i++) {
            const sni_value *v = sni_graph_value(g, n->out[i]);
            for (int32_t u = 0; v && u < v->use_count; u++) {
                int32_t user = v->uses[u].node;
                if (user != SNI_NO_ID && --waiting[user] == 0) queue[queued++] = user;
            }
        }
    }
    return queued;
}

static bool is_sorted(const sni_graph *g, unsigned char *made) {
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        for (int32_t i = 0; i < n->n_in + n->n_captures; i++) {
            const sni_value *v = sni_graph_value(g, n->in[i]);
            if (v && v->producer != SNI_NO_ID && !made[v->producer]) return false;
        }
        made[n->id] = 1;
    }
    return true;
}

static sn_status fail_cycle(const sni_graph *g, const int32_t *waiting, sn_error *err) {
    for (int32_t i = 0; i < g->node_count; i++)
        if (g->nodes[i] && waiting[i] > 0)
            return sni_fail(err, SN_INVALID_MODEL, "node '%.*s' (%.*s) is part of a cycle",
                            SNI_FMT(sni_node_label(g, g->nodes[i])), SNI_FMT(g->nodes[i]->type));
    return sni_fail(err, SN_INTERNAL, "sorting lost a node");
}

sn_status sni_graph_sort(sni_graph *g, sn_error *err) {
    size_t count = (size_t)g->node_count;
    unsigned char *made = calloc(count + 1, 1);
    int32_t *waiting = calloc(count + 1, sizeof *waiting);
    int32_t *queue = calloc(count + 1, sizeof *queue);
    sn_status status = SN_OK;
    if (!made || !waiting || !queue) {
        status = sni_fail_memory(err);
        goto done;
    }
    if (is_sorted(g, made)) goto done;
    int32_t queued = 0, alive = 0;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        alive++;
        for (int32_t i = 0; i < n->n_in + n->n_captures; i++) {
            const sni_value *v = sni_graph_value(g, n->in[i]);
            if (v && v->producer != SNI_NO_ID) waiting[n->id]++;
        }
        if (waiting[n->id] == 0) queue[queued++] = n->id;
    }
    if (relink_ready(g, waiting, queue, queued) != alive) status = fail_cycle(g, waiting, err);
done:
    free(made);
    free(waiting);
    free(queue);
    return status;
}
