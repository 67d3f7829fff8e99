/* import_node.c - NodeProto: outputs are defined first, so that nodes may stand in any order. */
#include "model/import.h"
#include "model/onnx_fields.h"

#include <inttypes.h>

/* Duplicate names are found by comparing all pairs, so their number must be small. */
enum { MAX_ATTRS = 256 };

static sn_status read_view(sni_importer *imp, sni_wire *w, const sni_field *at,
                           sni_node_view *out) {
    sni_wire inner;
    sni_field f;
    sni_node_view v = {.message = {at->bytes, at->size}, .offset = at->offset};
    SN_TRY(sni_field_message(w, at, &inner));
    size_t in = 0, made = 0;
    while (sni_wire_next(&inner, &f)) {
        switch (f.number) {
        case ONNX_NODE_INPUT:
            in++;
            if (f.size) v.n_in = in; /* trailing ones that are left out do not count */
            break;
        case ONNX_NODE_OUTPUT:
            made++;
            if (f.size) v.n_out = made;
            break;
        case ONNX_NODE_NAME:
            SN_TRY(sni_field_str(&inner, &f, &v.name));
            break;
        case ONNX_NODE_OP_TYPE:
            SN_TRY(sni_field_str(&inner, &f, &v.type));
            break;
        case ONNX_NODE_DOMAIN:
            SN_TRY(sni_field_str(&inner, &f, &v.domain));
            break;
        case ONNX_NODE_OVERLOAD:
            SN_TRY(sni_field_str(&inner, &f, &v.overload));
            break;
        case ONNX_NODE_ATTRIBUTE:
            v.n_attrs++;
            break;
        default:
            break;
        }
    }
    SN_TRY(inner.status);
    v.domain = sni_import_domain(v.domain);
    if (!v.type.n)
        return sni_fail(imp->err, SN_MALFORMED, "byte %zu: a node has no operator", at->offset);
    if (v.n_attrs > MAX_ATTRS || v.n_in > INT32_MAX / 2 || v.n_out > INT32_MAX / 2)
        return sni_fail(imp->err, SN_LIMIT, "byte %zu: a node has too many attributes or values",
                        at->offset);
    *out = v;
    return SN_OK;
}

/* Its name for messages: that of the node, or of its first output. */
sni_str sni_node_view_label(sni_importer *imp, const sni_node_view *v) {
    sni_wire w = sni_import_open(imp, v->message);
    sni_field f;
    if (v->name.n) return v->name;
    while (sni_wire_next(&w, &f))
        if (f.number == ONNX_NODE_OUTPUT && f.type == SNI_WIRE_LEN && f.size)
            return (sni_str){(const char *)f.bytes, f.size};
    return v->type;
}

static bool is_constant(const sni_node_view *v) {
    return !v->domain.n && sni_str_is(v->type, "Constant");
}

static sn_status count_node(sni_importer *imp, const sni_scope *scope) {
    if (scope->calls == 0) {
        if (++imp->nodes > SNI_MAX_NODES)
            return sni_fail(imp->err, SN_LIMIT, "the file has more than %d nodes", SNI_MAX_NODES);
        return SN_OK;
    }
    if (++imp->expanded > imp->most_expanded)
        return sni_fail(imp->err, SN_LIMIT,
                        "its functions expand to more than %" PRId64
                        " nodes, too many for its size",
                        imp->most_expanded);
    if (imp->grows) imp->store->arena.limit += SNI_EXPANDED_NODE_BYTES;
    return SN_OK;
}

/* ---- Attributes ---- */

static sn_status check_new_attr(sni_importer *imp, const sni_attr *attrs, int32_t n) {
    for (int32_t i = 0; i < n; i++)
        if (sni_str_eq(attrs[i].name, attrs[n].name))
            return sni_fail(imp->err, SN_INVALID_MODEL, "attribute '%.*s' is given twice",
                            SNI_FMT(attrs[n].name));
    return SN_OK;
}

/* All attributes of a node; `n` owns the subgraphs among them. */
static sn_status read_attrs(sni_importer *imp, sni_scope *scope, sni_node *n,
                            const sni_node_view *v, sni_attr **out, int32_t *count) {
    sni_attr *attrs = SNI_NEW_ARRAY(&imp->store->arena, sni_attr, v->n_attrs);
    if (!attrs) return sni_import_no_memory(imp);
    sni_wire w = sni_import_open(imp, v->message);
    sni_field f;
    int32_t made = 0;
    while (sni_wire_next(&w, &f)) {
        sni_wire inner;
        bool present;
        if (f.number != ONNX_NODE_ATTRIBUTE) continue;
        SN_TRY(sni_field_message(&w, &f, &inner));
        SN_TRY(
            sni_import_attr(imp, scope, n, (sni_message){f.bytes, f.size}, &attrs[made], &present));
        if (!present) continue;
        SN_TRY(check_new_attr(imp, attrs, made));
        made++;
    }
    SN_TRY(w.status);
    *out = attrs;
    *count = made;
    return SN_OK;
}

/* ---- Pass 1: what every node defines ---- */

static sn_status define_output(sni_importer *imp, sni_scope *scope, sni_str name, int32_t order) {
    const sni_name *result = scope->results ? sni_names_find(scope->results, name) : NULL;
    SN_TRY(sni_scope_check_shadow(imp, scope, name));
    if (result && result->value != SNI_NO_ID)
        return sni_scope_bind(imp, scope, name, result->value, order);
    sni_value *v;
    SN_TRY(sni_scope_new_value(imp, scope, name, &v));
    return sni_scope_bind(imp, scope, name, v->id, order);
}

static sn_status define_constant(sni_importer *imp, sni_scope *scope, const sni_node_view *v,
                                 sni_str name, int32_t order) {
    sni_attr *attrs;
    int32_t n_attrs;
    sni_const *c;
    if (v->n_in || v->n_out > 1)
        return sni_fail(imp->err, SN_INVALID_MODEL, "a Constant has %zu inputs and %zu outputs",
                        v->n_in, v->n_out);
    SN_TRY(read_attrs(imp, scope, NULL, v, &attrs, &n_attrs));
    SN_TRY(sni_import_constant(imp, attrs, n_attrs, &c));
    SN_TRY(sni_scope_check_shadow(imp, scope, name));
    return sni_scope_define_const(imp, scope, name, c, order);
}

static sn_status define_outputs(sni_importer *imp, sni_scope *scope, const sni_node_view *v,
                                int32_t order) {
    sni_wire w = sni_import_open(imp, v->message);
    sni_field f;
    SN_TRY(count_node(imp, scope));
    while (sni_wire_next(&w, &f)) {
        sni_str name;
        if (f.number != ONNX_NODE_OUTPUT) continue;
        SN_TRY(sni_field_str(&w, &f, &name));
        if (!name.n) continue;
        if (is_constant(v))
            SN_TRY(define_constant(imp, scope, v, name, order));
        else
            SN_TRY(define_output(imp, scope, name, order));
    }
    return w.status;
}

/* ---- Pass 2: the nodes ---- */

sn_status sni_import_version(sni_importer *imp, const sni_scope *scope, sni_str domain,
                             int64_t *out) {
    sni_opsets lists[2] = {scope->opsets, {imp->model->opsets, imp->model->n_opsets}};
    for (int l = 0; l < 2; l++)
        for (size_t i = 0; i < lists[l].n; i++)
            if (sni_str_eq(lists[l].v[i].domain, domain)) {
                *out = lists[l].v[i].version;
                return SN_OK;
            }
    /* Files before IR 3 cannot name opsets. Of a domain that a file uses without naming it, the
     * first version is what it can mean. */
    if (!domain.n && imp->model->ir_version >= 3)
        return sni_fail(imp->err, SN_INVALID_MODEL, "the model imports no opset of ai.onnx");
    *out = 1;
    return SN_OK;
}

sn_status sni_import_values(sni_importer *imp, sni_scope *scope, const sni_node_view *v) {
    SN_TRY(sni_import_ids(imp, v->n_in + v->n_out));
    sni_wire w = sni_import_open(imp, v->message);
    sni_field f;
    size_t in = 0, made = 0;
    while (sni_wire_next(&w, &f)) {
        bool is_input = f.number == ONNX_NODE_INPUT;
        sni_str name;
        if (!is_input && f.number != ONNX_NODE_OUTPUT) continue;
        SN_TRY(sni_field_str(&w, &f, &name));
        size_t at = is_input ? in++ : v->n_in + made++;
        if (at >= (is_input ? v->n_in : v->n_in + v->n_out)) continue;
        int32_t id = SNI_NO_ID;
        bool found = true;
        if (name.n) SN_TRY(sni_scope_find(imp, scope, name, &found, &id));
        if (!found)
            return sni_fail(imp->err, SN_INVALID_MODEL, "its input '%.*s' is not defined anywhere",
                            SNI_FMT(name));
        imp->ids[at] = id;
    }
    return w.status;
}

static sn_status make_node(sni_importer *imp, sni_scope *scope, const sni_node_view *v) {
    sni_node *n;
    int64_t version;
    SN_TRY(sni_import_version(imp, scope, v->domain, &version));
    SN_TRY(sni_import_values(imp, scope, v));
    const int32_t *made = v->n_out ? imp->ids + v->n_in : NULL;
    SN_TRY(sni_graph_add_node(
        scope->graph, scope->before,
        &(sni_new_node){v->domain, v->type, imp->ids, (int32_t)v->n_in, made, (int32_t)v->n_out},
        &n, imp->err));
    n->version = version;
    n->name = (sni_str){"", 0};
    if (v->name.n) SN_TRY(sni_scope_prefixed(imp, scope, v->name, &n->name));
    if (!v->n_attrs) return SN_OK;
    return read_attrs(imp, scope, n, v, &n->attrs, &n->n_attrs);
}

static sn_status import_node(sni_importer *imp, sni_scope *scope, const sni_node_view *v) {
    if (is_constant(v)) return SN_OK;
    sni_function *function;
    SN_TRY(sni_function_find(imp, v->domain, v->type, v->overload, &function));
    if (function) return sni_import_call(imp, scope, v, function);
    return make_node(imp, scope, v);
}

typedef sn_status (*pass_fn)(sni_importer *imp, sni_scope *scope, const sni_node_view *v,
                             int32_t order);

static sn_status import_at(sni_importer *imp, sni_scope *scope, const sni_node_view *v,
                           int32_t order) {
    scope->position = order;
    return import_node(imp, scope, v);
}

static sn_status each_node(sni_importer *imp, sni_scope *scope, sni_message message, uint32_t field,
                           pass_fn pass) {
    sni_wire w = sni_import_open(imp, message);
    sni_field f;
    int32_t order = 0;
    while (sni_wire_next(&w, &f)) {
        sni_node_view v;
        if (f.number != field) continue;
        SN_TRY(read_view(imp, &w, &f, &v));
        sn_status status = pass(imp, scope, &v, order++);
        if (status == SN_OK) continue;
        if (imp->told++ >= SNI_MAX_TOLD) return status;
        return sni_fail_context(imp->err, status, "node '%.*s' (%.*s)",
                                SNI_FMT(sni_node_view_label(imp, &v)), SNI_FMT(v.type));
    }
    return w.status;
}

sn_status sni_import_nodes(sni_importer *imp, sni_scope *scope, sni_message message,
                           uint32_t field) {
    SN_TRY(each_node(imp, scope, message, field, define_outputs));
    return each_node(imp, scope, message, field, import_at);
}
