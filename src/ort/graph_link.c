/* graph_link.c - connects nodes and values, orders nodes, and cuts parts out of graphs. */
#include "ort/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- Connecting ---- */

static bool add_use(OrtValueInfo *v, OrtNode *node, int64_t index) {
    ort_use *u = ort_append((void **)&v->uses, &v->use_count, sizeof *u);
    if (u) *u = (ort_use){node, index};
    return u != NULL;
}

static void clear_links(OrtGraph *g) {
    for (size_t i = 0; i < g->value_count; i++) {
        OrtValueInfo *v = g->values[i];
        v->producer = NULL;
        v->use_count = 0;
    }
    for (size_t i = 0; i < g->node_count; i++) {
        OrtNode *n = g->nodes[i];
        free(n->inputs);
        free(n->outputs);
        free(n->implicit);
        n->inputs = n->outputs = n->implicit = NULL;
        n->implicit_count = 0;
    }
}

static OrtStatus *link_node(OrtGraph *g, OrtNode *n) {
    n->graph = g;
    n->inputs = calloc(n->input_count + 1, sizeof(OrtValueInfo *));
    n->outputs = calloc(n->output_count + 1, sizeof(OrtValueInfo *));
    if (!n->inputs || !n->outputs) return ort_fail_memory();
    for (size_t i = 0; i < n->output_count; i++) {
        if (!n->output_names[i][0]) continue;
        OrtValueInfo *v = n->outputs[i] = ort_graph_value(g, n->output_names[i]);
        if (!v) return ort_fail_memory();
        if (v->producer || v->is_initializer)
            return ort_fail(ORT_INVALID_GRAPH, "node '%s' makes '%s', which is made already",
                            n->name, v->name);
        v->producer = n;
        v->output = i;
    }
    return NULL;
}

static OrtStatus *link_inputs(OrtGraph *g, OrtNode *n) {
    for (size_t i = 0; i < n->input_count; i++) {
        if (!n->input_names[i][0]) continue;
        OrtValueInfo *v = n->inputs[i] = ort_graph_value(g, n->input_names[i]);
        if (!v || !add_use(v, n, (int64_t)i)) return ort_fail_memory();
    }
    return NULL;
}

/* Values of `g` that node `n`'s bodies use become its implicit inputs. */
static OrtStatus *link_bodies(OrtGraph *g, OrtNode *n) {
    for (size_t b = 0; b < n->body_count; b++) {
        OrtGraph *body = n->bodies[b];
        body->parent = g;
        body->parent_node = n;
        body->model = g->model;
        ORT_TRY(ort_graph_link(body));
        for (size_t i = 0; i < body->value_count; i++) {
            if (!body->values[i]->is_outer) continue;
            OrtValueInfo *v = ort_graph_value(g, body->values[i]->name);
            size_t k = 0;
            while (v && k < n->implicit_count && n->implicit[k] != v) k++;
            if (v && k < n->implicit_count) continue;
            if (!v || !ort_list_add(&n->implicit, &n->implicit_count, v) || !add_use(v, n, -1))
                return ort_fail_memory();
        }
    }
    return NULL;
}

/* ---- Ordering ---- */

/* Moves the nodes whose producers are all placed to the front, again and again, in their order. */
static OrtStatus *order_nodes(OrtGraph *g) {
    size_t *waits = calloc(g->node_count + 1, sizeof *waits);
    OrtNode **ready = calloc(g->node_count + 1, sizeof *ready);
    if (!waits || !ready) {
        free(waits);
        free(ready);
        return ort_fail_memory();
    }
    for (size_t i = 0; i < g->node_count; i++) g->nodes[i]->index = i;
    for (size_t i = 0; i < g->value_count; i++)
        if (g->values[i]->producer)
            for (size_t k = 0; k < g->values[i]->use_count; k++)
                waits[g->values[i]->uses[k].node->index]++;
    size_t count = 0;
    for (size_t i = 0; i < g->node_count; i++)
        if (!waits[i]) ready[count++] = g->nodes[i];
    for (size_t done = 0; done < count; done++)
        for (size_t o = 0; o < ready[done]->output_count; o++) {
            const OrtValueInfo *v = ready[done]->outputs[o];
            for (size_t k = 0; v && k < v->use_count; k++)
                if (--waits[v->uses[k].node->index] == 0) ready[count++] = v->uses[k].node;
        }
    bool cycle = count != g->node_count;
    bool sorted = true; /* a file's order stays as it is */
    for (size_t i = 0; i < g->node_count; i++)
        for (size_t k = 0; k < g->nodes[i]->input_count; k++) {
            const OrtValueInfo *v = g->nodes[i]->inputs[k];
            if (v && v->producer && v->producer->index >= i) sorted = false;
        }
    if (!cycle && !sorted) memcpy(g->nodes, ready, count * sizeof(OrtNode *));
    free(waits);
    free(ready);
    return cycle ? ort_fail(ORT_INVALID_GRAPH, "the nodes of graph '%s' form a cycle", g->name)
                 : NULL;
}

OrtStatus *ort_graph_link(OrtGraph *graph) {
    clear_links(graph);
    OrtStatus *status = NULL;
    for (size_t i = 0; i < graph->node_count && !status; i++)
        status = link_node(graph, graph->nodes[i]);
    for (size_t i = 0; i < graph->node_count && !status; i++)
        status = link_inputs(graph, graph->nodes[i]);
    for (size_t i = 0; i < graph->node_count && !status; i++)
        status = link_bodies(graph, graph->nodes[i]);
    for (size_t i = 0; i < graph->value_count && !status; i++) {
        OrtValueInfo *v = graph->values[i];
        v->is_outer = graph->parent && !v->producer && !v->is_input && !v->is_initializer;
    }
    if (!status) status = order_nodes(graph);
    for (size_t i = 0; i < graph->node_count && !status; i++) {
        graph->nodes[i]->index = i;
        if (!graph->is_cut) graph->nodes[i]->id = i;
    }
    return status;
}

/* ---- Cutting ---- */

static bool copy_names(char ***to, size_t *count, char *const *from, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!ort_node_add_name(to, count, from[i], strlen(from[i]))) return false;
    return true;
}

static OrtGraph *copy_body(const OrtGraph *from);

static OrtNode *copy_node(const OrtNode *from) {
    OrtNode *n = calloc(1, sizeof *n);
    if (!n) return NULL;
    n->proto = from->proto;
    n->ep = from->ep;
    n->id = from->id;
    bool good =
        ort_replace_text(&n->name, from->name) && ort_replace_text(&n->op, from->op) &&
        ort_replace_text(&n->domain, from->domain) &&
        copy_names(&n->input_names, &n->input_count, from->input_names, from->input_count) &&
        copy_names(&n->output_names, &n->output_count, from->output_names, from->output_count);
    for (size_t i = 0; i < from->attribute_count && good; i++) {
        OrtOpAttr *a = ort_attr_copy(from->attributes[i]);
        good = a && ort_list_add(&n->attributes, &n->attribute_count, a);
    }
    for (size_t i = 0; i < from->body_count && good; i++) {
        OrtGraph *body = copy_body(from->bodies[i]);
        size_t names = n->body_count;
        good = body &&
               ort_node_add_name(&n->body_names, &names, from->body_names[i],
                                 strlen(from->body_names[i])) &&
               ort_list_add(&n->bodies, &n->body_count, body);
    }
    if (good) return n;
    ort_node_free(n);
    return NULL;
}

/* The value of a name in `g`, with what `from` knows of it. */
static OrtValueInfo *copy_value(OrtGraph *g, const OrtValueInfo *from) {
    OrtValueInfo *v = ort_graph_value(g, from->name);
    if (!v) return NULL;
    v->proto = from->proto;
    v->tensor = from->tensor;
    if (!v->weight && from->weight) v->weight = ort_of_sn(sn_value_retain(ort_sn(from->weight)));
    if (!v->type && from->type && ort_type_copy(from->type, &v->type)) return NULL;
    return v;
}

static OrtGraph *copy_body(const OrtGraph *from) {
    OrtGraph *g = ort_graph_new(from->name);
    bool good = g != NULL;
    for (size_t i = 0; i < from->value_count && good; i++) {
        OrtValueInfo *v = copy_value(g, from->values[i]);
        good = v != NULL;
        if (!good) break;
        v->is_initializer = from->values[i]->is_initializer;
        v->is_constant_node = from->values[i]->is_constant_node;
        v->is_input = from->values[i]->is_input;
        v->is_output = from->values[i]->is_output;
    }
    for (size_t i = 0; i < from->input_count && good; i++)
        good = ort_list_add(&g->inputs, &g->input_count, ort_graph_find(g, from->inputs[i]->name));
    for (size_t i = 0; i < from->output_count && good; i++)
        good =
            ort_list_add(&g->outputs, &g->output_count, ort_graph_find(g, from->outputs[i]->name));
    for (size_t i = 0; i < from->initializer_count && good; i++)
        good = ort_list_add(&g->initializers, &g->initializer_count,
                            ort_graph_find(g, from->initializers[i]->name));
    for (size_t i = 0; i < from->node_count && good; i++) {
        OrtNode *n = copy_node(from->nodes[i]);
        good = n && ort_list_add(&g->nodes, &g->node_count, n);
    }
    if (good) return g;
    ort_graph_free(g);
    return NULL;
}

/* What a node reads, its bodies included. */
static const OrtValueInfo *read_at(const OrtNode *n, size_t i) {
    return i < n->input_count ? n->inputs[i] : n->implicit[i - n->input_count];
}

static bool made_inside(const OrtValueInfo *v, const bool *inside) {
    return v->producer && inside[v->producer->index];
}

static bool add_border(OrtGraph *g, const OrtValueInfo *from, bool with_weights) {
    OrtValueInfo *v = copy_value(g, from);
    if (!v) return false;
    bool constant = from->is_initializer && !from->is_input;
    if (from->is_initializer && !v->is_initializer) {
        v->is_initializer = true;
        if (!ort_list_add(&g->initializers, &g->initializer_count, v)) return false;
    }
    if (v->is_input || (constant && !with_weights)) return true;
    v->is_input = !constant; /* a constant in the list of inputs stays a constant */
    for (size_t i = 0; i < g->input_count; i++)
        if (g->inputs[i] == v) return true;
    return ort_list_add(&g->inputs, &g->input_count, v);
}

static bool used_outside(const OrtValueInfo *v, const bool *inside) {
    for (size_t i = 0; i < v->use_count; i++)
        if (!inside[v->uses[i].node->index]) return true;
    return v->is_output;
}

static bool add_outputs(OrtGraph *g, const OrtNode *n, const bool *inside) {
    for (size_t i = 0; i < n->output_count; i++) {
        if (!n->outputs[i]) continue;
        OrtValueInfo *v = copy_value(g, n->outputs[i]);
        if (!v) return false;
        if (!used_outside(n->outputs[i], inside)) continue;
        v->is_output = true;
        if (!ort_list_add(&g->outputs, &g->output_count, v)) return false;
    }
    return true;
}

static bool cut(OrtGraph *g, const OrtGraph *from, const bool *inside, bool with_weights) {
    for (size_t k = 0; k < from->node_count; k++) {
        const OrtNode *n = from->nodes[k];
        if (!inside[n->index]) continue;
        OrtNode *copy = copy_node(n);
        if (!copy || !ort_list_add(&g->nodes, &g->node_count, copy)) return false;
        for (size_t i = 0; i < n->input_count + n->implicit_count; i++) {
            const OrtValueInfo *v = read_at(n, i);
            if (v && !made_inside(v, inside) && !add_border(g, v, with_weights)) return false;
        }
        if (!add_outputs(g, n, inside)) return false;
    }
    return true;
}

OrtStatus *ort_graph_cut(const OrtGraph *from, const OrtNode *const *nodes, size_t count,
                         bool with_weights, OrtGraph **out) {
    bool *inside = calloc(from->node_count + 1, sizeof *inside);
    OrtGraph *g = ort_graph_new(from->name);
    OrtStatus *status = inside && g ? NULL : ort_fail_memory();
    for (size_t i = 0; i < count && !status; i++) {
        if (!nodes[i] || nodes[i]->index >= from->node_count ||
            from->nodes[nodes[i]->index] != nodes[i])
            status =
                ort_fail(ORT_INVALID_ARGUMENT, "node %zu is none of graph '%s'", i, from->name);
        else
            inside[nodes[i]->index] = true;
    }
    if (!status && !cut(g, from, inside, with_weights)) status = ort_fail_memory();
    free(inside);
    if (!status) {
        g->model = from->model;
        g->is_cut = true;
        status = ort_graph_link(g);
    }
    if (!status) {
        *out = g;
        return NULL;
    }
    ort_graph_free(g);
    return status;
}
