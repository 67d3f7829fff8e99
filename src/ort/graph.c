/* graph.c - graphs, nodes and values as objects: making, finding and freeing them. */
#include "ort/graph.h"

#include <stdlib.h>
#include <string.h>

bool ort_list_add(void *list, size_t *count, void *entry) {
    void ***entries = list;
    void **place = ort_append((void **)entries, count, sizeof *place);
    if (place) *place = entry;
    return place != NULL;
}

bool ort_node_add_name(char ***names, size_t *count, const char *name, size_t length) {
    char *copy = strndup(name, length);
    if (copy && ort_list_add(names, count, copy)) return true;
    free(copy);
    return false;
}

/* ---- Freeing ---- */

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; texts && i < count; i++) free(texts[i]);
    free(texts);
}

void ort_value_info_free(OrtValueInfo *value) {
    if (!value) return;
    free(value->name);
    ort_ReleaseTypeInfo(value->type);
    sn_value_destroy(ort_sn(value->weight));
    free(value->uses);
    free(value);
}

void ort_node_free(OrtNode *node) {
    if (!node) return;
    free(node->name);
    free(node->op);
    free(node->domain);
    free_texts(node->input_names, node->input_count);
    free_texts(node->output_names, node->output_count);
    for (size_t i = 0; i < node->attribute_count; i++) ort_ReleaseOpAttr(node->attributes[i]);
    for (size_t i = 0; i < node->body_count; i++) ort_graph_free(node->bodies[i]);
    free_texts(node->body_names, node->body_count);
    free(node->attributes);
    free(node->bodies);
    free(node->inputs);
    free(node->outputs);
    free(node->implicit);
    free(node);
}

void ort_graph_free(OrtGraph *graph) {
    if (!graph) return;
    for (size_t i = 0; i < graph->node_count; i++) ort_node_free(graph->nodes[i]);
    for (size_t i = 0; i < graph->constant_count; i++) ort_node_free(graph->constants[i]);
    for (size_t i = 0; i < graph->value_count; i++) ort_value_info_free(graph->values[i]);
    free(graph->name);
    free(graph->nodes);
    free(graph->constants);
    free(graph->values);
    free(graph->table);
    free(graph->inputs);
    free(graph->outputs);
    free(graph->initializers);
    free(graph->rest);
    free(graph);
}

void ort_model_free(OrtModel *model) {
    if (!model) return;
    ort_graph_free(model->graph);
    for (size_t i = 0; i < model->opset_count; i++) free(model->opsets[i].domain);
    free(model->opsets);
    free(model->path);
    free(model->producer);
    free(model->domain);
    free(model->doc);
    ort_pairs_clear(&model->metadata);
    free(model->rest);
    free(model);
}

/* ---- Making ---- */

OrtGraph *ort_graph_new(const char *name) {
    OrtGraph *g = calloc(1, sizeof *g);
    if (g && ort_replace_text(&g->name, name)) return g;
    free(g);
    return NULL;
}

OrtModel *ort_model_new(void) {
    OrtModel *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->ir_version = 10;
    m->version = INT64_MAX;
    if (ort_replace_text(&m->path, "") && ort_replace_text(&m->producer, "") &&
        ort_replace_text(&m->domain, "") && ort_replace_text(&m->doc, ""))
        return m;
    ort_model_free(m);
    return NULL;
}

static bool same_domain(const char *a, const char *b) {
    return strcmp(strcmp(a, "ai.onnx") ? a : "", strcmp(b, "ai.onnx") ? b : "") == 0;
}

bool ort_model_set_opset(OrtModel *model, const char *domain, int64_t version) {
    for (size_t i = 0; i < model->opset_count; i++) {
        if (!same_domain(model->opsets[i].domain, domain)) continue;
        model->opsets[i].version = version;
        return true;
    }
    char *copy = strdup(domain);
    ort_opset *o =
        copy ? ort_append((void **)&model->opsets, &model->opset_count, sizeof *o) : NULL;
    if (!o) {
        free(copy);
        return false;
    }
    *o = (ort_opset){copy, version};
    return true;
}

int64_t ort_model_opset(const OrtModel *model, const char *domain) {
    for (size_t i = 0; model && i < model->opset_count; i++)
        if (same_domain(model->opsets[i].domain, domain)) return model->opsets[i].version;
    return 0;
}

/* ---- Values by name ---- */

static size_t hash_of(const char *name) {
    uint64_t h = 14695981039346656037u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* The place of a name: taken by its value, or free. The table has free places. */
static OrtValueInfo **place_of(OrtValueInfo **table, size_t size, const char *name) {
    size_t at = hash_of(name) & (size - 1);
    while (table[at] && strcmp(table[at]->name, name) != 0) at = (at + 1) & (size - 1);
    return &table[at];
}

static bool grow_table(OrtGraph *g) {
    if ((g->value_count + 1) * 2 <= g->table_size) return true;
    size_t size = g->table_size ? g->table_size * 2 : 64;
    OrtValueInfo **table = calloc(size, sizeof(OrtValueInfo *));
    if (!table) return false;
    for (size_t i = 0; i < g->value_count; i++)
        *place_of(table, size, g->values[i]->name) = g->values[i];
    free(g->table);
    g->table = table;
    g->table_size = size;
    return true;
}

OrtValueInfo *ort_graph_find(const OrtGraph *graph, const char *name) {
    return graph->table_size ? *place_of(graph->table, graph->table_size, name) : NULL;
}

OrtValueInfo *ort_graph_value(OrtGraph *graph, const char *name) {
    OrtValueInfo *v = ort_graph_find(graph, name);
    if (v) return v;
    if (!grow_table(graph)) return NULL;
    v = calloc(1, sizeof *v);
    if (!v || !ort_replace_text(&v->name, name) ||
        !ort_list_add(&graph->values, &graph->value_count, v)) {
        ort_value_info_free(v);
        return NULL;
    }
    v->graph = graph;
    v->number = graph->value_count - 1;
    *place_of(graph->table, graph->table_size, name) = v;
    return v;
}
