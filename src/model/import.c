/* import.c - ModelProto to a model.
 *
 *   import.c           the file as a whole: opsets, metadata, limits
 *   import_graph.c     graphs: initialisers, inputs, nodes, outputs, and graphs inside attributes
 *   import_node.c      nodes: all outputs are defined before any input is looked up
 *   import_attr.c      attributes        import_type.c   types
 *   import_const.c     tensors, decoded when first used; external data
 *   import_function.c  calls of model-local functions, replaced by their bodies
 *   scope.c            names, and captures of values around a subgraph
 *   finish.c           from raw nodes to canonical operators with inferred types
 *
 * Messages are re-read wherever they are needed; only what ends up in the model is stored. */
#include "model/import.h"
#include "model/onnx_fields.h"

#include <inttypes.h>
#include <stdlib.h>

/* The heap that a file may take, in bytes for each of its own and in any case. The most compact
 * useful node takes some 20 bytes in a file and about 600 here with its value, names and types;
 * real files stay below 15 bytes for each of their own. */
enum { HEAP_PER_BYTE = 64, HEAP_FLOOR = 16 << 20 };

/* Opset lists are searched for every node. */
enum { MAX_OPSETS = 256 };

sn_status sni_import_no_memory(sni_importer *imp) {
    return sni_store_no_memory(imp->store, imp->err);
}

sni_wire sni_import_open(sni_importer *imp, sni_message message) {
    sni_wire w;
    sni_wire_reopen(&w, message.bytes, message.size, &imp->limits, imp->err);
    return w;
}

sn_status sni_import_copy(sni_importer *imp, sni_str text, sni_str *out) {
    sni_str copy = sni_arena_str(&imp->store->arena, text);
    if (!copy.p) return sni_import_no_memory(imp);
    *out = copy;
    return SN_OK;
}

sn_status sni_import_ids(sni_importer *imp, size_t count) {
    if (imp->ids && count <= imp->ids_capacity) return SN_OK;
    size_t capacity = count < 64 ? 64 : count;
    int32_t *ids = realloc(imp->ids, capacity * sizeof *ids);
    if (!ids) return sni_fail_memory(imp->err);
    imp->ids = ids;
    imp->ids_capacity = capacity;
    return SN_OK;
}

sni_str sni_import_domain(sni_str domain) {
    return !domain.n || sni_str_is(domain, "ai.onnx") ? (sni_str){"", 0} : domain;
}

/* ---- Opsets ---- */

static int64_t newest_opset(sni_str domain) {
    if (!domain.n) return SNI_NEWEST_OPSET;
    return sni_str_is(domain, "ai.onnx.ml") ? SNI_NEWEST_ML_OPSET : INT16_MAX;
}

static sn_status refuse_opset(sni_importer *imp, const sni_opset *o) {
    return sni_fail(imp->err, SN_UNSUPPORTED,
                    "opset %" PRId64 " of domain '%.*s' is not supported (1 to %" PRId64 " are)",
                    o->version, SNI_FMT(o->domain), newest_opset(o->domain));
}

/* Opset 0 has no operators. Some exporters import it beside the one they mean, or for domains that
 * the graph does not use. */
static sn_status tolerate_zero(sni_importer *imp, const sni_opset *o) {
    if (!o->domain.n) imp->zero_opset = true;
    return sni_store_tolerate(imp->store, (sni_str){0}, imp->err,
                              "opset 0 of domain '%.*s' is imported, which has no operators",
                              SNI_FMT(o->domain));
}

sn_status sni_import_opset(sni_importer *imp, sni_wire *w, sni_opset *list, size_t *n) {
    sni_opset o = {.domain = {"", 0}};
    sni_field f;
    while (sni_wire_next(w, &f)) {
        if (f.number == ONNX_OPSET_DOMAIN) SN_TRY(sni_field_str(w, &f, &o.domain));
        if (f.number == ONNX_OPSET_VERSION) SN_TRY(sni_field_int(w, &f, &o.version));
    }
    SN_TRY(w->status);
    o.domain = sni_import_domain(o.domain);
    if (o.version == 0) return tolerate_zero(imp, &o);
    if (o.version < 1 || o.version > newest_opset(o.domain)) return refuse_opset(imp, &o);
    for (size_t i = 0; i < *n; i++) {
        if (!sni_str_eq(list[i].domain, o.domain)) continue;
        if (list[i].version < o.version) list[i].version = o.version; /* the highest counts */
        return SN_OK;
    }
    if (*n == MAX_OPSETS)
        return sni_fail(imp->err, SN_LIMIT, "the file imports more than %d opsets", MAX_OPSETS);
    SN_TRY(sni_import_copy(imp, o.domain, &o.domain));
    list[(*n)++] = o;
    return SN_OK;
}

/* ---- The model's own fields ---- */

typedef struct counts {
    size_t opsets, metadata;
    sni_message graph;
} counts;

static sn_status read_text(sni_importer *imp, sni_wire *w, const sni_field *f, sni_str *out) {
    sni_str text;
    SN_TRY(sni_field_str(w, f, &text));
    return sni_import_copy(imp, text, out);
}

static sn_status read_field(sni_importer *imp, sni_wire *w, const sni_field *f, counts *c) {
    sni_model *m = imp->model;
    sni_wire inner;
    switch (f->number) {
    case ONNX_MODEL_IR_VERSION:
        return sni_field_int(w, f, &m->ir_version);
    case ONNX_MODEL_VERSION:
        m->has_model_version = true;
        return sni_field_int(w, f, &m->model_version);
    case ONNX_MODEL_PRODUCER_NAME:
        return read_text(imp, w, f, &m->producer_name);
    case ONNX_MODEL_PRODUCER_VERSION:
        return read_text(imp, w, f, &m->producer_version);
    case ONNX_MODEL_DOMAIN:
        return read_text(imp, w, f, &m->domain);
    case ONNX_MODEL_DOC:
        return read_text(imp, w, f, &m->doc);
    case ONNX_MODEL_OPSET:
        c->opsets++;
        return SN_OK;
    case ONNX_MODEL_METADATA:
        c->metadata++;
        return SN_OK;
    case ONNX_MODEL_GRAPH:
        SN_TRY(sni_field_message(w, f, &inner));
        if (c->graph.bytes) return sni_wire_fail(w, f, "the file has two graphs");
        c->graph = (sni_message){f->bytes, f->size};
        return SN_OK;
    default:
        return SN_OK;
    }
}

static sn_status read_pair(sni_importer *imp, sni_wire *w, sni_pair *out) {
    sni_pair p = {{"", 0}, {"", 0}};
    sni_field f;
    while (sni_wire_next(w, &f)) {
        if (f.number == ONNX_ENTRY_KEY) SN_TRY(read_text(imp, w, &f, &p.key));
        if (f.number == ONNX_ENTRY_VALUE) SN_TRY(read_text(imp, w, &f, &p.value));
    }
    *out = p;
    return w->status;
}

/* Opset 0 of ai.onnx counts for nothing only where there is another one. */
static sn_status check_zero(sni_importer *imp) {
    const sni_model *m = imp->model;
    for (size_t i = 0; i < m->n_opsets; i++)
        if (!m->opsets[i].domain.n) return SN_OK;
    return refuse_opset(imp, &(sni_opset){.domain = {"", 0}});
}

static sn_status read_lists(sni_importer *imp, sni_message file, const counts *c) {
    sni_model *m = imp->model;
    m->opsets = SNI_NEW_ARRAY(&imp->store->arena, sni_opset, c->opsets);
    m->metadata = SNI_NEW_ARRAY(&imp->store->arena, sni_pair, c->metadata);
    if (!m->opsets || !m->metadata) return sni_import_no_memory(imp);
    sni_wire w = sni_import_open(imp, file), inner;
    sni_field f;
    while (sni_wire_next(&w, &f)) {
        if (f.number == ONNX_MODEL_OPSET) {
            SN_TRY(sni_field_message(&w, &f, &inner));
            SN_TRY(sni_import_opset(imp, &inner, m->opsets, &m->n_opsets));
        } else if (f.number == ONNX_MODEL_METADATA) {
            SN_TRY(sni_field_message(&w, &f, &inner));
            SN_TRY(read_pair(imp, &inner, &m->metadata[m->n_metadata++]));
        }
    }
    SN_TRY(w.status);
    return imp->zero_opset ? check_zero(imp) : SN_OK;
}

static sn_status import_graph(sni_importer *imp, sni_message graph) {
    sni_model *m = imp->model;
    sni_scope scope = {.graph = m->graph, .opsets = {m->opsets, m->n_opsets}, .before = SNI_NO_ID};
    scope.home = &scope;
    sn_status status = sni_import_graph(imp, &scope, graph);
    sni_scope_free(&scope);
    return status;
}

static sn_status import_model(sni_importer *imp, sni_message file) {
    counts c = {0};
    sni_wire w = sni_import_open(imp, file);
    sni_field f;
    while (sni_wire_next(&w, &f)) SN_TRY(read_field(imp, &w, &f, &c));
    SN_TRY(w.status);
    if (!c.graph.bytes)
        return sni_fail(imp->err, SN_INVALID_MODEL, "the file has no graph: is it an ONNX model?");
    SN_TRY(read_lists(imp, file, &c));
    SN_TRY(sni_import_functions(imp, file));
    return import_graph(imp, c.graph);
}

/* ---- The whole ---- */

static sn_status make_model(sni_importer *imp, sni_model **out) {
    sni_model *m = SNI_NEW(&imp->store->arena, sni_model);
    if (!m) return sni_import_no_memory(imp);
    m->store = imp->store;
    m->producer_name = m->producer_version = m->domain = m->doc = m->graph_doc = (sni_str){"", 0};
    if (imp->options.file) {
        m->mappings = SNI_NEW(&imp->store->arena, sni_mapping *);
        if (!m->mappings) return sni_import_no_memory(imp);
        m->mappings[m->n_mappings++] = imp->options.file;
    }
    SN_TRY(sni_graph_new(imp->store, NULL, NULL, &m->graph, imp->err));
    *out = m;
    return SN_OK;
}

static size_t heap_limit(size_t size) {
    return size > (SIZE_MAX - HEAP_FLOOR) / HEAP_PER_BYTE ? SIZE_MAX
                                                          : size * HEAP_PER_BYTE + HEAP_FLOOR;
}

sn_status sni_model_import(const unsigned char *bytes, size_t size, sni_store *store,
                           const sni_import_options *options, sni_model **out, sn_error *err) {
    sni_importer imp = {.store = store, .err = err};
    if (options) imp.options = *options;
    store->strict = imp.options.strict;
    imp.grows = imp.options.memory_limit == 0;
    imp.most_expanded = size < SNI_MAX_EXPANDED - SNI_FREE_EXPANDED
                            ? (int64_t)size + SNI_FREE_EXPANDED
                            : SNI_MAX_EXPANDED;
    store->arena.limit = imp.grows ? heap_limit(size) : (size_t)imp.options.memory_limit;
    sni_wire w;
    sni_wire_init(&w, bytes, size, &imp.limits, err);
    sn_status status = make_model(&imp, &imp.model);
    if (status == SN_OK) status = import_model(&imp, (sni_message){w.p, size});
    if (status == SN_OK) status = sni_import_finish(&imp);
    free(imp.ids);
    free(imp.files);
    sni_names_free(&imp.file_index);
    sni_names_free(&imp.function_index);
    if (status == SN_OK)
        *out = imp.model;
    else
        sni_store_release(store);
    return status;
}

void sni_model_free(sni_model *model) {
    if (model) sni_store_release(model->store);
}

sn_status sni_model_watch(const sni_model *model, sn_error *err) {
    for (size_t i = 0; i < model->n_mappings; i++)
        SN_TRY(sni_mapping_watch(model->mappings[i], err));
    return SN_OK;
}

sn_status sni_model_intact(const sni_model *model, sn_error *err) {
    for (size_t i = 0; i < model->n_mappings; i++)
        SN_TRY(sni_mapping_intact(model->mappings[i], err));
    return SN_OK;
}
