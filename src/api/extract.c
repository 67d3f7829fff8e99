/* extract.c - the nodes of a model, and models made of a part of them. */
#include "api/model.h"
#include "graph/part.h"
#include "model/names.h"
#include "ops/core/op.h"

#include "sinter_part.h"

#include <stdlib.h>

/* ---- Nodes ---- */

static const char *c_string(sni_str s) {
    return s.p ? s.p : "";
}

/* By position in the order of the file; NULL past the end. Takes time in proportion to `index`. */
static const sni_node *find_node(const sn_model *model, size_t index) {
    if (!model) return NULL;
    const sni_graph *g = model->model->graph;
    const sni_node *n = sni_graph_first(g);
    while (n && index--) n = sni_graph_next(g, n);
    return n;
}

size_t sn_model_node_count(const sn_model *model) {
    size_t count = 0;
    if (!model) return 0;
    const sni_graph *g = model->model->graph;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) count++;
    return count;
}

bool sn_model_node(const sn_model *model, size_t index, sn_node_info *out) {
    const sni_node *n = find_node(model, index);
    if (!n || !out) return false;
    *out = (sn_node_info){.name = c_string(n->name),
                          .domain = c_string(n->domain),
                          .op = c_string(n->type),
                          .input_count = (size_t)(n->n_in + n->n_captures),
                          .output_count = (size_t)n->n_out};
    return true;
}

static const char *value_name(const sn_model *model, const int32_t *ids, int32_t count,
                              size_t index) {
    if (index >= (size_t)count) return NULL;
    const sni_value *v = sni_graph_value(model->model->graph, ids[index]);
    return v ? c_string(v->name) : "";
}

const char *sn_model_node_input(const sn_model *model, size_t node, size_t index) {
    const sni_node *n = find_node(model, node);
    return n ? value_name(model, n->in, n->n_in + n->n_captures, index) : NULL;
}

const char *sn_model_node_output(const sn_model *model, size_t node, size_t index) {
    const sni_node *n = find_node(model, node);
    return n ? value_name(model, n->out, n->n_out, index) : NULL;
}

/* ---- Names to ids ---- */

static sn_status add_name(sni_names *names, sni_str name, int32_t id, sn_error *err) {
    if (!name.n || sni_names_find(names, name)) return SN_OK;
    return sni_names_add(names, name, id, 0, err);
}

/* Values by name; an output goes by the name that callers know it by. */
static sn_status index_values(const sni_graph *g, sni_names *names, sn_error *err) {
    for (int32_t i = 0; i < g->n_outputs; i++)
        SN_TRY(add_name(names, g->output_names[i], g->outputs[i], err));
    for (int32_t i = 0; i < g->value_count; i++)
        if (g->values[i]) SN_TRY(add_name(names, g->values[i]->name, i, err));
    return SN_OK;
}

static bool has_id(const int32_t *ids, size_t count, int32_t id) {
    for (size_t i = 0; i < count; i++)
        if (ids[i] == id) return true;
    return false;
}

static sn_status find_values(const sni_names *names, const char *const *wanted, size_t count,
                             int32_t *ids, sn_error *err) {
    for (size_t i = 0; i < count; i++) {
        const sni_name *found = wanted[i] ? sni_names_find(names, sni_str_of(wanted[i])) : NULL;
        if (!found)
            return sni_fail(err, SN_NOT_FOUND, "the model has no value '%s'",
                            wanted[i] ? wanted[i] : "");
        if (has_id(ids, i, found->value))
            return sni_fail(err, SN_INVALID_ARGUMENT, "value '%s' is named twice", wanted[i]);
        ids[i] = found->value;
    }
    return SN_OK;
}

/* ---- The new model ---- */

/* Forgets the types of all values that nodes make. */
static void clear_types(sni_graph *g, int depth) {
    if (depth > SNI_MAX_NESTING) return;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        for (int32_t i = 0; i < n->n_out; i++) {
            sni_value *v = sni_graph_value(g, n->out[i]);
            if (!v) continue;
            v->type = (sni_type){0};
            v->shape_value = NULL;
            v->shape_count = 0;
        }
        for (int32_t i = 0; i < n->n_subgraphs; i++) clear_types(n->subgraphs[i], depth + 1);
    }
}

static sn_status cut(const sni_model *whole, const sni_part *part, sni_store *store,
                     sni_model **out, sn_error *err) {
    bool forgot = false;
    sni_model *m = SNI_NEW(&store->arena, sni_model);
    if (!m) return sni_store_no_memory(store, err);
    *m = *whole;
    m->store = store;
    m->output_types = NULL;
    SN_TRY(sni_graph_clone_part(whole->graph, part, store, &m->graph, &forgot, err));
    if (forgot) {
        clear_types(m->graph, 0);
        SN_TRY(sni_infer_graph(m->graph, err));
    }
    SN_TRY(sni_graph_verify(m->graph, err));
    *out = m;
    return SN_OK;
}

/* Ids of the part that the names mean: `ids` holds both lists. */
static sn_status choose(const sni_graph *g, const char *const *inputs, const char *const *outputs,
                        sni_part *part, int32_t *ids, sni_str *output_names, sn_error *err) {
    sni_names names = {0};
    sn_status status = index_values(g, &names, err);
    if (status == SN_OK) status = find_values(&names, inputs, part->n_inputs, ids, err);
    if (status == SN_OK)
        status = find_values(&names, outputs, part->n_outputs, ids + part->n_inputs, err);
    sni_names_free(&names);
    for (size_t i = 0; status == SN_OK && i < part->n_outputs; i++)
        output_names[i] = sni_str_of(outputs[i]);
    part->inputs = ids;
    part->outputs = ids + part->n_inputs;
    part->output_names = output_names;
    return status;
}

sn_status sn_model_extract(const sn_model *model, const char *const *inputs, size_t input_count,
                           const char *const *outputs, size_t output_count, sn_model **out,
                           sn_error *err) {
    if (!model || !out || (input_count && !inputs) || !outputs || !output_count)
        return sni_fail(err, SN_INVALID_ARGUMENT, "model, out or a list of names is missing");
    sni_part part = {.n_inputs = input_count, .n_outputs = output_count};
    int32_t *ids = calloc(input_count + output_count, sizeof *ids);
    sni_str *output_names = calloc(output_count, sizeof *output_names);
    sni_store *store = NULL;
    sni_model *made = NULL;
    sn_status status = ids && output_names ? SN_OK : sni_fail_memory(err);
    if (status == SN_OK)
        status = choose(model->model->graph, inputs, outputs, &part, ids, output_names, err);
    if (status == SN_OK) status = sni_store_new(model->model->store, 0, &store, err);
    if (status == SN_OK) status = cut(model->model, &part, store, &made, err);
    if (status == SN_OK)
        status = sni_model_make(made, out, err);
    else
        sni_store_release(store);
    free(ids);
    free(output_names);
    return status;
}
