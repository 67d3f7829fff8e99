/* convex.c - sets of nodes that can stand as one node.
 *
 * Every node gets a phase: 0, or as much as its inputs' producers have, and one more where an edge
 * goes from a wanted node to another or the other way round. A path that leaves the wanted nodes of
 * a phase comes back to a higher one, so the wanted nodes of one phase are convex, and edges
 * between sets lead to higher phases only. */
#include "graph/convex.h"

#include <stdlib.h>

sn_status sni_convex_check(const sni_graph *g, const bool *member, bool *convex,
                           const sni_node **bad, sn_error *err) {
    bool *behind = calloc((size_t)g->node_count + 1, sizeof *behind); /* outside, reads a member */
    if (!behind) return sni_fail_memory(err);
    *convex = true;
    for (const sni_node *n = sni_graph_first(g); n && *convex; n = sni_graph_next(g, n)) {
        for (int32_t i = 0; i < n->n_in + n->n_captures; i++) {
            const sni_value *v = sni_graph_value(g, n->in[i]);
            if (!v || v->producer == SNI_NO_ID) continue;
            if (!member[n->id]) {
                behind[n->id] |= member[v->producer] || behind[v->producer];
            } else if (behind[v->producer]) {
                *convex = false;
                if (bad) *bad = g->nodes[v->producer];
            }
        }
    }
    free(behind);
    return SN_OK;
}

/* ---- Parts ---- */

typedef struct finder {
    const sni_graph *g;
    const bool *wanted;
    int32_t *phase; /* by node id */
    int32_t *root;  /* by node id: another node of its set, itself at the top */
    int32_t *user;  /* by value id: a node of the phase at hand that reads it */
} finder;

static void set_phases(finder *f) {
    for (const sni_node *n = sni_graph_first(f->g); n; n = sni_graph_next(f->g, n)) {
        int32_t phase = 0;
        for (int32_t i = 0; i < n->n_in + n->n_captures; i++) {
            const sni_value *v = sni_graph_value(f->g, n->in[i]);
            if (!v || v->producer == SNI_NO_ID) continue;
            int32_t least = f->phase[v->producer] + (f->wanted[v->producer] != f->wanted[n->id]);
            if (least > phase) phase = least;
        }
        f->phase[n->id] = phase;
    }
}

static int32_t find_root(finder *f, int32_t id) {
    while (f->root[id] != id) id = f->root[id] = f->root[f->root[id]];
    return id;
}

static void join(finder *f, int32_t a, int32_t b) {
    if (f->phase[a] == f->phase[b]) f->root[find_root(f, b)] = find_root(f, a);
}

/* Joins a wanted node with neighbours of its phase: who makes its inputs, who else reads them. */
static void join_neighbours(finder *f, const sni_node *n) {
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *v = sni_graph_value(f->g, n->in[i]);
        if (!v || (v->constant && !v->is_input)) continue;
        if (v->producer != SNI_NO_ID && f->wanted[v->producer]) join(f, v->producer, n->id);
        if (f->user[v->id] != SNI_NO_ID) join(f, f->user[v->id], n->id);
        f->user[v->id] = n->id;
    }
}

static void find_parts(finder *f, int32_t *part, int32_t *count) {
    const sni_graph *g = f->g;
    set_phases(f);
    for (int32_t i = 0; i < g->node_count; i++) {
        f->root[i] = i;
        part[i] = SNI_NO_ID;
    }
    for (int32_t i = 0; i < g->value_count; i++) f->user[i] = SNI_NO_ID;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        if (f->wanted[n->id]) join_neighbours(f, n);
    *count = 0;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        if (!f->wanted[n->id]) continue;
        int32_t root = find_root(f, n->id);
        if (part[root] == SNI_NO_ID) part[root] = (*count)++;
        part[n->id] = part[root];
    }
}

sn_status sni_convex_parts(const sni_graph *g, const bool *wanted, int32_t *part, int32_t *count,
                           sn_error *err) {
    size_t nodes = (size_t)g->node_count + 1, values = (size_t)g->value_count + 1;
    finder f = {.g = g,
                .wanted = wanted,
                .phase = calloc(nodes, sizeof *f.phase),
                .root = calloc(nodes, sizeof *f.root),
                .user = calloc(values, sizeof *f.user)};
    sn_status status = f.phase && f.root && f.user ? SN_OK : sni_fail_memory(err);
    if (status == SN_OK) find_parts(&f, part, count);
    free(f.phase);
    free(f.root);
    free(f.user);
    return status;
}
