/* verify.c - what a valid graph is. */
#include "graph/graph.h"

#include <stdlib.h>

#define BROKEN(...) sni_fail(err, SN_INTERNAL, "invalid graph: " __VA_ARGS__)

static bool has_use(const sni_value *v, int32_t node, int32_t slot) {
    for (int32_t i = 0; i < v->use_count; i++)
        if (v->uses[i].node == node && v->uses[i].slot == slot) return true;
    return false;
}

static sn_status verify_uses(const sni_graph *g, const sni_value *v, sn_error *err) {
    for (int32_t i = 0; i < v->use_count; i++) {
        sni_use u = v->uses[i];
        if (u.node == SNI_NO_ID) {
            if (u.slot < 0 || u.slot >= g->n_outputs || g->outputs[u.slot] != v->id)
                return BROKEN("value %d says it is output %d", v->id, u.slot);
            continue;
        }
        const sni_node *n = u.node < g->node_count ? g->nodes[u.node] : NULL;
        if (!n || u.slot < 0 || u.slot >= n->n_in + n->n_captures || n->in[u.slot] != v->id)
            return BROKEN("value %d says node %d uses it", v->id, u.node);
    }
    return SN_OK;
}

static sn_status verify_value(const sni_graph *g, const sni_value *v, sn_error *err) {
    int origins = (v->producer != SNI_NO_ID) + v->is_capture + (v->is_input || v->constant);
    if (origins > 1) return BROKEN("value '%.*s' has two origins", SNI_FMT(v->name));
    if (v->producer != SNI_NO_ID) {
        const sni_node *n = v->producer < g->node_count ? g->nodes[v->producer] : NULL;
        if (!n || v->producer_slot >= n->n_out || n->out[v->producer_slot] != v->id)
            return BROKEN("value '%.*s' has a wrong producer", SNI_FMT(v->name));
    } else if (origins == 0 && v->use_count > 0) {
        return BROKEN("value '%.*s' is used but nothing makes it", SNI_FMT(v->name));
    }
    return verify_uses(g, v, err);
}

static sn_status verify_node(const sni_graph *g, const sni_node *n, const unsigned char *made,
                             sn_error *err) {
    for (int32_t i = 0; i < n->n_in + n->n_captures; i++) {
        if (n->in[i] == SNI_NO_ID) continue;
        const sni_value *v = n->in[i] < g->value_count ? g->values[n->in[i]] : NULL;
        if (!v) return BROKEN("node %d uses a removed value", n->id);
        if (v->use_count < 64 && !has_use(v, n->id, i))
            return BROKEN("node %d is not among the uses of its input %d", n->id, i);
        if (v->producer != SNI_NO_ID && !made[v->producer])
            return BROKEN("node '%.*s' stands before its input's producer",
                          SNI_FMT(sni_node_label(g, n)));
    }
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        if (v && v->producer != n->id) return BROKEN("node %d does not own output %d", n->id, i);
    }
    return SN_OK;
}

static sn_status verify_at(const sni_graph *g, int depth, sn_error *err);

static sn_status verify_subgraph(const sni_graph *g, const sni_node *n, const sni_graph *sub,
                                 int depth, sn_error *err) {
    if (sub->parent != g) return BROKEN("a subgraph of node %d has another parent", n->id);
    for (int32_t i = 0; i < sub->n_captures; i++) {
        sni_capture c = sub->captures[i];
        if (c.slot < 0 || c.slot >= n->n_captures || !sni_graph_value(sub, c.value))
            return BROKEN("capture %d of node %d is not bound", i, n->id);
    }
    return verify_at(sub, depth + 1, err);
}

static sn_status verify_nodes(const sni_graph *g, int depth, unsigned char *made, sn_error *err) {
    int32_t last = SNI_NO_ID;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        if (n->removed || n->prev != last) return BROKEN("the list of nodes is torn at %d", n->id);
        SN_TRY(verify_node(g, n, made, err));
        for (int32_t i = 0; i < n->n_subgraphs; i++)
            SN_TRY(verify_subgraph(g, n, n->subgraphs[i], depth, err));
        made[n->id] = 1;
        last = n->id;
    }
    return last == g->last ? SN_OK : BROKEN("the list of nodes has a wrong end");
}

static sn_status verify_at(const sni_graph *g, int depth, sn_error *err) {
    if (depth > SNI_MAX_NESTING) return BROKEN("subgraphs nest more than %d deep", SNI_MAX_NESTING);
    for (int32_t i = 0; i < g->value_count; i++)
        if (g->values[i]) SN_TRY(verify_value(g, g->values[i], err));
    for (int32_t i = 0; i < g->n_outputs; i++)
        if (!sni_graph_value(g, g->outputs[i])) return BROKEN("output %d is removed", i);
    unsigned char *made = calloc((size_t)g->node_count + 1, 1);
    if (!made) return sni_fail_memory(err);
    sn_status status = verify_nodes(g, depth, made, err);
    free(made);
    return status;
}

sn_status sni_check_nesting(int depth, sn_error *err) {
    if (depth <= SNI_MAX_NESTING) return SN_OK;
    return sni_fail(err, SN_LIMIT, "subgraphs nest more than %d deep", SNI_MAX_NESTING);
}

sn_status sni_graph_verify(const sni_graph *g, sn_error *err) {
    return verify_at(g, 0, err);
}
