/* import_function.c - model-local functions: a call is replaced by the nodes of the body.
 *
 * A body is read anew from its FunctionProto for every call, in a scope of its own, with the
 * call's inputs, outputs and attributes bound to its formal ones. Calls inside it are expanded in
 * the same way, outermost first, so that attributes are known wherever they are passed on. */
#include "model/import.h"
#include "model/onnx_fields.h"

/* ---- The functions of a file ---- */

/* "domain\0name\0overload": names that differ stay different. */
static sn_status make_key(sni_importer *imp, sni_str domain, sni_str name, sni_str overload,
                          sni_str *out) {
    size_t n = domain.n + name.n + overload.n + 2;
    char *p = sni_arena_alloc(&imp->store->arena, n);
    if (!p) return sni_import_no_memory(imp);
    if (domain.n) memcpy(p, domain.p, domain.n);
    if (name.n) memcpy(p + domain.n + 1, name.p, name.n);
    if (overload.n) memcpy(p + domain.n + name.n + 2, overload.p, overload.n);
    *out = (sni_str){p, n};
    return SN_OK;
}

sn_status sni_function_read(sni_importer *imp, sni_message message, sni_function *out) {
    sni_function fn = {.message = message};
    sni_field f;
    sni_wire w = sni_import_open(imp, message), inner;
    size_t n_opsets = 0;
    while (sni_wire_next(&w, &f)) {
        if (f.number == ONNX_FUNCTION_NAME) SN_TRY(sni_field_str(&w, &f, &fn.name));
        if (f.number == ONNX_FUNCTION_DOMAIN) SN_TRY(sni_field_str(&w, &f, &fn.domain));
        if (f.number == ONNX_FUNCTION_OVERLOAD) SN_TRY(sni_field_str(&w, &f, &fn.overload));
        n_opsets += f.number == ONNX_FUNCTION_OPSET;
    }
    SN_TRY(w.status);
    sni_opset *opsets = SNI_NEW_ARRAY(&imp->store->arena, sni_opset, n_opsets);
    if (!opsets) return sni_import_no_memory(imp);
    w = sni_import_open(imp, message);
    while (sni_wire_next(&w, &f)) {
        if (f.number != ONNX_FUNCTION_OPSET) continue;
        SN_TRY(sni_field_message(&w, &f, &inner));
        SN_TRY(sni_import_opset(imp, &inner, opsets, &fn.opsets.n));
    }
    fn.opsets.v = opsets;
    fn.domain = sni_import_domain(fn.domain);
    *out = fn;
    return SN_OK;
}

static sn_status add_function(sni_importer *imp, sni_message message) {
    sni_function *fn = &imp->functions[imp->n_functions];
    sni_str key;
    SN_TRY(sni_function_read(imp, message, fn));
    SN_TRY(make_key(imp, fn->domain, fn->name, fn->overload, &key));
    if (sni_names_find(&imp->function_index, key))
        return sni_fail(imp->err, SN_INVALID_MODEL, "function '%.*s' is defined twice",
                        SNI_FMT(fn->name));
    return sni_names_add(&imp->function_index, key, (int32_t)imp->n_functions++, 0, imp->err);
}

sn_status sni_import_functions(sni_importer *imp, sni_message model) {
    sni_wire w = sni_import_open(imp, model), inner;
    sni_field f;
    size_t n = 0;
    while (sni_wire_next(&w, &f)) n += f.number == ONNX_MODEL_FUNCTION;
    SN_TRY(w.status);
    if (!n) return SN_OK;
    if (n > SNI_MAX_NODES)
        return sni_fail(imp->err, SN_LIMIT, "the file has more than %d functions", SNI_MAX_NODES);
    imp->functions = SNI_NEW_ARRAY(&imp->store->arena, sni_function, n);
    if (!imp->functions) return sni_import_no_memory(imp);
    w = sni_import_open(imp, model);
    while (sni_wire_next(&w, &f)) {
        if (f.number != ONNX_MODEL_FUNCTION) continue;
        SN_TRY(sni_field_message(&w, &f, &inner));
        SN_TRY(add_function(imp, (sni_message){f.bytes, f.size}));
    }
    return w.status;
}

sn_status sni_function_find(sni_importer *imp, sni_str domain, sni_str name, sni_str overload,
                            sni_function **out) {
    *out = NULL;
    if (!imp->n_functions) return SN_OK;
    sni_str key;
    SN_TRY(make_key(imp, domain, name, overload, &key));
    const sni_name *e = sni_names_find(&imp->function_index, key);
    if (e) *out = &imp->functions[e->value];
    return SN_OK;
}

/* ---- Binding ---- */

/* What one expansion is made of. */
typedef struct expansion {
    sni_importer *imp;
    sni_function *function;
    sni_scope scope;
    sni_names results;
    sni_arguments arguments;
    const sni_function_call *call;
    size_t formal_in, formal_out;
} expansion;

static sn_status bind_input(expansion *x, sni_str name) {
    int32_t value = x->formal_in < x->call->n_in ? x->call->in[x->formal_in] : SNI_NO_ID;
    x->formal_in++;
    return sni_scope_bind(x->imp, &x->scope, name, value, -1);
}

/* A name that stands twice among the outputs is bound to the first. */
static sn_status bind_result(expansion *x, sni_str name) {
    int32_t value = x->formal_out < x->call->n_out ? x->call->out[x->formal_out] : SNI_NO_ID;
    x->formal_out++;
    if (sni_names_find(&x->results, name)) return SN_OK;
    return sni_names_add(&x->results, name, value, 0, x->imp->err);
}

static sn_status bind_formals(expansion *x) {
    sni_wire w = sni_import_open(x->imp, x->function->message);
    sni_field f;
    sni_str name;
    while (sni_wire_next(&w, &f)) {
        if (f.number == ONNX_FUNCTION_INPUT) {
            SN_TRY(sni_field_str(&w, &f, &name));
            SN_TRY(bind_input(x, name));
        } else if (f.number == ONNX_FUNCTION_OUTPUT) {
            SN_TRY(sni_field_str(&w, &f, &name));
            SN_TRY(bind_result(x, name));
        }
    }
    SN_TRY(w.status);
    if (x->call->n_in > x->formal_in || x->call->n_out > x->formal_out)
        return sni_fail(x->imp->err, SN_INVALID_MODEL,
                        "it is called with %zu inputs and %zu outputs, but has %zu and %zu",
                        x->call->n_in, x->call->n_out, x->formal_in, x->formal_out);
    return SN_OK;
}

/* The call's attributes, then the defaults of those it does not give. */
static sn_status bind_arguments(expansion *x) {
    const sni_arguments *given = x->call->given;
    sni_wire w = sni_import_open(x->imp, x->function->message), inner;
    sni_field f;
    size_t max = given->n;
    while (sni_wire_next(&w, &f)) max += f.number == ONNX_FUNCTION_ATTRIBUTE_PROTO;
    SN_TRY(w.status);
    sni_argument *all = SNI_NEW_ARRAY(&x->imp->store->arena, sni_argument, max);
    if (!all) return sni_import_no_memory(x->imp);
    for (size_t i = 0; i < given->n; i++) all[i] = given->v[i];
    x->arguments = (sni_arguments){all, given->n};
    w = sni_import_open(x->imp, x->function->message);
    while (sni_wire_next(&w, &f)) {
        sni_str name, reference;
        if (f.number != ONNX_FUNCTION_ATTRIBUTE_PROTO) continue;
        SN_TRY(sni_field_message(&w, &f, &inner));
        sni_message message = {f.bytes, f.size};
        SN_TRY(sni_import_attr_names(x->imp, message, &name, &reference));
        if (reference.n)
            return sni_wire_fail(&w, &f, "the default of attribute '%.*s' is a reference",
                                 SNI_FMT(name));
        if (sni_argument_find(&x->arguments, name)) continue;
        all[x->arguments.n++] = (sni_argument){.name = name, .message = message};
    }
    return w.status;
}

/* ---- Expanding ---- */

/* Outputs that no node of the body makes under that name: inputs, constants and repetitions. */
static sn_status pass_through(expansion *x, sni_str name, int32_t to) {
    sni_importer *imp = x->imp;
    bool found;
    int32_t from;
    SN_TRY(sni_scope_find(imp, &x->scope, name, &found, &from));
    if (!found)
        return sni_fail(imp->err, SN_INVALID_MODEL, "its output '%.*s' is not defined",
                        SNI_FMT(name));
    if (to == SNI_NO_ID || to == from) return SN_OK;
    if (from == SNI_NO_ID)
        return sni_fail(imp->err, SN_INVALID_MODEL,
                        "its output '%.*s' is an input that the call leaves out", SNI_FMT(name));
    sni_node *n;
    SN_TRY(sni_graph_add_node(x->scope.graph, x->scope.before,
                              &(sni_new_node){SNI_STR(""), SNI_STR("Identity"), &from, 1, &to, 1},
                              &n, imp->err));
    n->name = (sni_str){"", 0};
    return sni_import_version(imp, &x->scope, n->domain, &n->version);
}

static sn_status pass_outputs(expansion *x) {
    sni_wire w = sni_import_open(x->imp, x->function->message);
    sni_field f;
    size_t at = 0;
    while (sni_wire_next(&w, &f)) {
        sni_str name;
        if (f.number != ONNX_FUNCTION_OUTPUT) continue;
        SN_TRY(sni_field_str(&w, &f, &name));
        SN_TRY(pass_through(x, name, at < x->call->n_out ? x->call->out[at] : SNI_NO_ID));
        at++;
    }
    return w.status;
}

static sn_status expand(expansion *x) {
    SN_TRY(bind_formals(x));
    SN_TRY(bind_arguments(x));
    x->scope.results = &x->results;
    x->scope.arguments = &x->arguments;
    SN_TRY(sni_import_nodes(x->imp, &x->scope, x->function->message, ONNX_FUNCTION_NODE));
    return pass_outputs(x);
}

sn_status sni_expand_function(sni_importer *imp, sni_scope *caller, sni_function *function,
                              const sni_function_call *call) {
    if (function->active)
        return sni_fail(imp->err, SN_INVALID_MODEL, "function '%.*s' calls itself",
                        SNI_FMT(function->name));
    if (caller->calls >= SNI_MAX_NESTING)
        return sni_fail(imp->err, SN_LIMIT, "function calls nest more than %d deep",
                        SNI_MAX_NESTING);
    expansion x = {.imp = imp,
                   .function = function,
                   .scope = {.graph = caller->graph,
                             .home = caller->home,
                             .opsets = function->opsets,
                             .before = caller->before,
                             .nesting = caller->nesting,
                             .calls = caller->calls + 1},
                   .call = call};
    SN_TRY(sni_scope_prefixed(imp, caller, call->label, &x.scope.prefix));
    function->active = true;
    sn_status status = expand(&x);
    function->active = false;
    if (status != SN_OK && imp->told++ < SNI_MAX_TOLD)
        sni_fail_context(imp->err, status, "function '%.*s'", SNI_FMT(function->name));
    sni_scope_free(&x.scope);
    sni_names_free(&x.results);
    return status;
}

/* The attributes of a call; a reference passes on what the calling function was given. */
static sn_status read_arguments(sni_importer *imp, sni_scope *scope, const sni_node_view *node,
                                sni_arguments *out) {
    sni_argument *all = SNI_NEW_ARRAY(&imp->store->arena, sni_argument, node->n_attrs);
    if (!all) return sni_import_no_memory(imp);
    sni_wire w = sni_import_open(imp, node->message), inner;
    sni_field f;
    size_t n = 0;
    while (sni_wire_next(&w, &f)) {
        sni_argument a = {.scope = scope};
        sni_str reference;
        if (f.number != ONNX_NODE_ATTRIBUTE) continue;
        SN_TRY(sni_field_message(&w, &f, &inner));
        a.message = (sni_message){f.bytes, f.size};
        SN_TRY(sni_import_attr_names(imp, a.message, &a.name, &reference));
        if (reference.n) {
            const sni_argument *given =
                scope->arguments ? sni_argument_find(scope->arguments, reference) : NULL;
            if (!scope->arguments)
                return sni_wire_fail(&w, &f, "attribute '%.*s' refers to a function's outside one",
                                     SNI_FMT(a.name));
            if (!given) continue;
            sni_str name = a.name;
            a = *given;
            a.name = name;
        }
        if (sni_argument_find(&(sni_arguments){all, n}, a.name))
            return sni_wire_fail(&w, &f, "attribute '%.*s' is given twice", SNI_FMT(a.name));
        all[n++] = a;
    }
    SN_TRY(w.status);
    *out = (sni_arguments){all, n};
    return SN_OK;
}

sn_status sni_import_call(sni_importer *imp, sni_scope *scope, const sni_node_view *node,
                          sni_function *function) {
    sni_arguments given;
    size_t total = node->n_in + node->n_out;
    int32_t *ids = SNI_NEW_ARRAY(&imp->store->arena, int32_t, total);
    if (!ids) return sni_import_no_memory(imp);
    SN_TRY(sni_import_values(imp, scope, node));
    if (total) memcpy(ids, imp->ids, total * sizeof *ids);
    SN_TRY(read_arguments(imp, scope, node, &given));
    sni_function_call call = {.label = sni_node_view_label(imp, node),
                              .in = ids,
                              .n_in = node->n_in,
                              .out = ids + node->n_in,
                              .n_out = node->n_out,
                              .given = &given};
    return sni_expand_function(imp, scope, function, &call);
}
