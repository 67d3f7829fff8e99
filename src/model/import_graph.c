/* import_graph.c - GraphProto, at the top and inside attributes. */
#include "model/import.h"
#include "model/onnx_fields.h"
#include "ops/core/op.h"

typedef sn_status (*field_fn)(sni_importer *imp, sni_scope *scope, sni_wire *inner);

/* Calls `fn` on the message of every field with that number. */
static sn_status each(sni_importer *imp, sni_scope *scope, sni_message message, uint32_t number,
                      field_fn fn) {
    sni_wire w = sni_import_open(imp, message), inner;
    sni_field f;
    while (sni_wire_next(&w, &f)) {
        if (f.number != number) continue;
        SN_TRY(sni_field_message(&w, &f, &inner));
        SN_TRY(fn(imp, scope, &inner));
    }
    return w.status;
}

static bool is_main(const sni_scope *scope) {
    return !scope->graph->parent;
}

/* ---- Initialisers and inputs ---- */

static sn_status add_constant(sni_importer *imp, sni_scope *scope, sni_const *c, sni_str name) {
    if (!name.n) return sni_fail(imp->err, SN_INVALID_MODEL, "an initialiser has no name");
    return sni_scope_define_const(imp, scope, name, c, -1);
}

static sn_status add_initializer(sni_importer *imp, sni_scope *scope, sni_wire *w) {
    sni_const *c;
    sni_str name;
    SN_TRY(sni_import_tensor(imp, w, &c, &name));
    return add_constant(imp, scope, c, name);
}

static sn_status add_sparse(sni_importer *imp, sni_scope *scope, sni_wire *w) {
    sni_const *c;
    sni_str name;
    SN_TRY(sni_import_sparse(imp, w, &c, &name));
    return add_constant(imp, scope, c, name);
}

/* The initialiser that is the default of an input; NULL: it has none. */
static sni_value *default_of(const sni_scope *scope, sni_str name) {
    const sni_name *e = sni_names_find(&scope->names, name);
    sni_value *v = e ? sni_graph_value(scope->graph, e->value) : NULL;
    return v && v->constant ? v : NULL;
}

static sn_status make_input(sni_importer *imp, sni_scope *scope, const sni_value *v) {
    if (v->is_input)
        return sni_fail(imp->err, SN_INVALID_MODEL, "value '%.*s' is defined twice",
                        SNI_FMT(v->name));
    return sni_graph_add_input(scope->graph, v->id, imp->err);
}

/* Whether the operator of a node that owns subgraphs has a flag. */
static bool owner_is(const sni_node *n, unsigned flag) {
    const sni_op *op = n ? sni_op_find(n->domain, n->type) : NULL;
    return op && op->flags & flag;
}

static sn_status add_input(sni_importer *imp, sni_scope *scope, sni_wire *w) {
    sni_str name;
    sni_type type;
    imp->skip_shapes = !is_main(scope) && !owner_is(scope->owner, SNI_OP_DECLARES) &&
                       (scope->graph->n_inputs >= 2 || !owner_is(scope->owner, SNI_OP_COUNTS));
    SN_TRY(sni_import_info(imp, w, &name, &type));
    if (!name.n) return sni_fail(imp->err, SN_INVALID_MODEL, "an input of a graph has no name");
    sni_value *v = default_of(scope, name);
    if (v && is_main(scope)) return SN_OK; /* comes after the required ones */
    if (!v) {
        SN_TRY(sni_scope_new_value(imp, scope, name, &v));
        v->type = type;
        SN_TRY(sni_scope_bind(imp, scope, name, v->id, -1));
    }
    return make_input(imp, scope, v);
}

static sn_status add_default_input(sni_importer *imp, sni_scope *scope, sni_wire *w) {
    sni_str name;
    sni_type type;
    SN_TRY(sni_import_info(imp, w, &name, &type));
    sni_value *v = default_of(scope, name);
    return v ? make_input(imp, scope, v) : SN_OK;
}

/* ---- Outputs and declared types ---- */

static sn_status add_output(sni_importer *imp, sni_scope *scope, sni_wire *w) {
    sni_str name;
    sni_type type;
    bool found;
    int32_t id;
    SN_TRY(sni_import_info(imp, w, &name, &type));
    SN_TRY(sni_scope_find(imp, scope, name, &found, &id));
    if (!found || id == SNI_NO_ID)
        return sni_fail(imp->err, SN_INVALID_MODEL, "output '%.*s' of a graph is not defined",
                        SNI_FMT(name));
    SN_TRY(sni_graph_add_output(scope->graph, id, name, imp->err));
    if (is_main(scope)) imp->output_types[scope->graph->n_outputs - 1] = type;
    return SN_OK;
}

/* Kind and element type of a node's output, where declared. Shapes are not taken over: they are
 * often those of the example that an exporter ran, and inference finds what holds. */
static sn_status seed_type(sni_importer *imp, sni_scope *scope, sni_wire *w) {
    sni_str name;
    sni_type type;
    SN_TRY(sni_import_info(imp, w, &name, &type));
    const sni_name *e = sni_names_find(&scope->names, name);
    sni_value *v = e ? sni_graph_value(scope->graph, e->value) : NULL;
    if (v && v->type.kind == SN_KIND_NONE) v->type = type;
    return SN_OK;
}

static sn_status make_output_types(sni_importer *imp, sni_message message) {
    sni_wire w = sni_import_open(imp, message);
    sni_field f;
    size_t n = 0;
    while (sni_wire_next(&w, &f)) n += f.number == ONNX_GRAPH_OUTPUT;
    SN_TRY(w.status);
    imp->output_types = SNI_NEW_ARRAY(&imp->store->arena, sni_type, n);
    imp->model->output_types = imp->output_types;
    return imp->output_types ? SN_OK : sni_import_no_memory(imp);
}

/* The name of a graph, and the main one's description. */
static sn_status read_texts(sni_importer *imp, sni_message message, bool main, sni_graph *g) {
    sni_wire w = sni_import_open(imp, message);
    sni_field f;
    sni_str name = {"", 0}, doc = {"", 0};
    while (sni_wire_next(&w, &f)) {
        if (f.number == ONNX_GRAPH_NAME) SN_TRY(sni_field_str(&w, &f, &name));
        if (f.number == ONNX_GRAPH_DOC && main) SN_TRY(sni_field_str(&w, &f, &doc));
    }
    SN_TRY(w.status);
    if (main) SN_TRY(sni_import_copy(imp, doc, &imp->model->graph_doc));
    return sni_import_copy(imp, name, &g->name);
}

sn_status sni_import_graph(sni_importer *imp, sni_scope *scope, sni_message message) {
    bool main = is_main(scope);
    SN_TRY(read_texts(imp, message, main, scope->graph));
    if (main) SN_TRY(make_output_types(imp, message));
    imp->takes_given = main;
    SN_TRY(each(imp, scope, message, ONNX_GRAPH_INITIALIZER, add_initializer));
    SN_TRY(each(imp, scope, message, ONNX_GRAPH_SPARSE_INITIALIZER, add_sparse));
    SN_TRY(each(imp, scope, message, ONNX_GRAPH_INPUT, add_input));
    /* Before version 4 every initialiser had to be listed as an input, which said nothing about
     * callers: there they are weights and nothing else. */
    if (main && imp->model->ir_version >= 4)
        SN_TRY(each(imp, scope, message, ONNX_GRAPH_INPUT, add_default_input));
    SN_TRY(sni_import_nodes(imp, scope, message, ONNX_GRAPH_NODE));
    imp->skip_shapes = !main;
    SN_TRY(each(imp, scope, message, ONNX_GRAPH_OUTPUT, add_output));
    imp->skip_shapes = true;
    SN_TRY(each(imp, scope, message, ONNX_GRAPH_OUTPUT, seed_type));
    return each(imp, scope, message, ONNX_GRAPH_VALUE_INFO, seed_type);
}

sn_status sni_import_subgraph(sni_importer *imp, sni_scope *scope, sni_node *n, sni_message message,
                              int32_t *index) {
    if (scope->nesting >= SNI_MAX_NESTING)
        return sni_fail(imp->err, SN_LIMIT, "subgraphs nest more than %d deep", SNI_MAX_NESTING);
    sni_graph *sub;
    SN_TRY(sni_graph_new(imp->store, scope->graph->symbols, scope->graph, &sub, imp->err));
    SN_TRY(sni_node_add_subgraph(scope->graph, n, sub, index, imp->err));
    sni_scope inner = {.graph = sub,
                       .parent = scope,
                       .owner = n,
                       .prefix = scope->prefix,
                       .opsets = scope->opsets,
                       .arguments = scope->arguments,
                       .before = SNI_NO_ID,
                       .nesting = scope->nesting + 1,
                       .calls = scope->calls};
    inner.home = &inner;
    sn_status status = sni_import_graph(imp, &inner, message);
    sni_scope_free(&inner);
    return status;
}
