/* finish.c - the last part of every import: raw nodes become canonical operators with types. */
#include "model/import.h"
#include "model/text.h"
#include "ops/core/op.h"

#include <stdlib.h>

/* An operator that is given by a function body in text, read once. */
typedef struct body {
    const sni_op *op;
    sni_function function;
    struct body *next;
} body;

typedef struct finisher {
    sni_importer *imp;
    body *bodies;
} finisher;

/* ---- Operators that are functions ---- */

static sn_status read_body(finisher *f, const sni_op *op, body **out) {
    sni_importer *imp = f->imp;
    sni_text_bytes bytes;
    SN_TRY(sni_text_function(sni_str_of(op->body), &bytes, imp->err));
    SN_TRY(sni_store_own(imp->store, bytes.p, free, imp->err));
    body *b = SNI_NEW(&imp->store->arena, body);
    sni_opset *opset = SNI_NEW(&imp->store->arena, sni_opset);
    if (!b || !opset) return sni_import_no_memory(imp);
    imp->limits.origin = bytes.p;
    SN_TRY(sni_function_read(imp, (sni_message){bytes.p, bytes.n}, &b->function));
    if (!b->function.opsets.n) {
        *opset = (sni_opset){{"", 0}, SNI_NEWEST_OPSET}; /* a body is of canonical operators */
        b->function.opsets = (sni_opsets){opset, 1};
    }
    b->op = op;
    b->next = f->bodies;
    f->bodies = b;
    *out = b;
    return SN_OK;
}

static sn_status find_body(finisher *f, const sni_op *op, body **out) {
    for (body *b = f->bodies; b; b = b->next) {
        if (b->op != op) continue;
        *out = b;
        return SN_OK;
    }
    sn_status status = read_body(f, op, out);
    if (status == SN_OK) return SN_OK;
    return sni_fail_context(f->imp->err, status, "the body of operator %s", op->name);
}

/* The default of a parameter as an attribute; false if it has none. */
static bool default_attr(const sni_param *p, sni_attr *out) {
    if (p->required || p->present) return false;
    switch (p->kind) {
    case SNI_ATTR_FLOAT:
        *out = sni_attr_of_float(p->name, (float)p->number);
        return true;
    case SNI_ATTR_INT:
        *out = sni_attr_of_int(p->name, (int64_t)p->number);
        return true;
    case SNI_ATTR_STRING:
        *out = sni_attr_of_string(p->name, p->text ? p->text : "");
        return p->text != NULL;
    default:
        return false;
    }
}

/* A node's attributes, and the defaults of those it does not have. */
static sn_status make_arguments(finisher *f, const sni_node *n, sni_arguments *out) {
    sni_arena *arena = &f->imp->store->arena;
    size_t most = (size_t)n->n_attrs, made = 0;
    for (const sni_param *p = n->op->params; p && p->name; p++) most++;
    sni_argument *all = SNI_NEW_ARRAY(arena, sni_argument, most);
    sni_attr *defaults = SNI_NEW_ARRAY(arena, sni_attr, most);
    if (!all || !defaults) return sni_import_no_memory(f->imp);
    for (; made < (size_t)n->n_attrs; made++)
        all[made] = (sni_argument){.name = n->attrs[made].name, .attr = &n->attrs[made]};
    for (const sni_param *p = n->op->params; p && p->name; p++) {
        if (sni_node_attr(n, p->name) || !default_attr(p, defaults)) continue;
        all[made++] = (sni_argument){.name = sni_str_of(p->name), .attr = defaults++};
    }
    *out = (sni_arguments){all, made};
    return SN_OK;
}

/* The names in use in a graph, for what is expanded into it. */
static sn_status take_names(finisher *f, const sni_graph *g, sni_scope *scope) {
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_value *v = g->values[i];
        if (!v || !v->name.n || sni_names_find(&scope->taken, v->name)) continue;
        SN_TRY(sni_names_add(&scope->taken, v->name, v->id, 0, f->imp->err));
    }
    return SN_OK;
}

/* Lets `to` stand for output `from` of a node that goes away. */
static sn_status take_over(finisher *f, sni_graph *g, int32_t from, int32_t to) {
    const sni_value *old = g->values[from];
    sni_value *v = g->values[to];
    v->name = old->name;
    if (v->type.kind == SN_KIND_NONE) v->type = old->type;
    return sni_graph_replace_uses(g, from, to, f->imp->err);
}

static sn_status expand_node(finisher *f, sni_scope *scope, sni_node *n) {
    sni_graph *g = scope->graph;
    sn_error *err = f->imp->err;
    body *b = NULL;
    sni_arguments given;
    SN_TRY(find_body(f, n->op, &b));
    SN_TRY(make_arguments(f, n, &given));
    if (!scope->taken.count) SN_TRY(take_names(f, g, scope));
    int32_t *out = SNI_NEW_ARRAY(&f->imp->store->arena, int32_t, n->n_out);
    if (!out) return sni_import_no_memory(f->imp);
    for (int32_t i = 0; i < n->n_out; i++) {
        sni_value *v;
        out[i] = SNI_NO_ID;
        if (n->out[i] == SNI_NO_ID) continue;
        SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, err));
        out[i] = v->id;
    }
    scope->before = n->id;
    f->imp->limits.origin = b->function.message.bytes;
    sni_function_call call = {.label = sni_node_label(g, n),
                              .in = n->in,
                              .n_in = (size_t)n->n_in,
                              .out = out,
                              .n_out = (size_t)n->n_out,
                              .given = &given};
    SN_TRY(sni_expand_function(f->imp, scope, &b->function, &call));
    for (int32_t i = 0; i < n->n_out; i++)
        if (out[i] != SNI_NO_ID) SN_TRY(take_over(f, g, n->out[i], out[i]));
    sni_graph_remove_node(g, n);
    return SN_OK;
}

/* ---- Every node of every graph ---- */

static sn_status resolve_graph(finisher *f, sni_graph *g, int depth);

/* A node whose operator this build does not know may be one of the caller's. */
static sn_status resolve_custom(finisher *f, sni_graph *g, sni_node *n) {
    const sni_import_options *o = &f->imp->options;
    n->op = o->find_op ? o->find_op(o->find_ctx, n->domain, n->type, n->version) : NULL;
    return n->op ? sni_node_bind(g, n, f->imp->err) : SN_OK;
}

static sn_status resolve_node(finisher *f, sni_scope *scope, sni_node *n, int depth) {
    SN_TRY(sni_node_resolve(scope->graph, n, f->imp->err));
    if (!n->op) SN_TRY(resolve_custom(f, scope->graph, n));
    for (int32_t i = 0; i < n->n_subgraphs; i++)
        SN_TRY(resolve_graph(f, n->subgraphs[i], depth + 1));
    return SN_OK;
}

static sn_status fail_at(finisher *f, const sni_graph *g, const sni_node *n, sn_status status) {
    if (f->imp->told++ >= SNI_MAX_TOLD) return status;
    return sni_fail_context(f->imp->err, status, "node '%.*s' (%.*s)",
                            SNI_FMT(sni_node_label(g, n)), SNI_FMT(n->type));
}

static sn_status resolve_nodes(finisher *f, sni_scope *scope, int depth) {
    sni_graph *g = scope->graph;
    for (sni_node *n = sni_graph_first(g); n;) {
        int32_t before = n->prev;
        sn_status status = resolve_node(f, scope, n, depth);
        bool expands = status == SN_OK && n->op && n->op->body && !n->op->ref;
        if (expands) status = expand_node(f, scope, n);
        if (status != SN_OK) return fail_at(f, g, n, status);
        /* What was put in the node's place is raw: go on with its first node. */
        n = !expands ? sni_graph_next(g, n)
                     : sni_graph_node(g, before == SNI_NO_ID ? g->first : g->nodes[before]->next);
    }
    return SN_OK;
}

static sn_status resolve_graph(finisher *f, sni_graph *g, int depth) {
    SN_TRY(sni_check_nesting(depth, f->imp->err));
    SN_TRY(sni_graph_sort(g, f->imp->err));
    sni_scope scope = {.graph = g, .before = SNI_NO_ID, .nesting = depth};
    scope.home = &scope;
    sn_status status = resolve_nodes(f, &scope, depth);
    sni_scope_free(&scope);
    return status;
}

sn_status sni_import_finish(sni_importer *imp) {
    finisher f = {.imp = imp};
    sni_graph *g = imp->model->graph;
    SN_TRY(resolve_graph(&f, g, 0));
    SN_TRY(sni_graph_verify(g, imp->err));
    return sni_infer_graph(g, imp->err);
}
