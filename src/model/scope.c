/* scope.c - which value a name stands for, and how subgraphs come by values around them. */
#include "model/import.h"

#include <stdio.h>

void sni_scope_free(sni_scope *scope) {
    sni_names_free(&scope->names);
    sni_names_free(&scope->taken);
}

static sn_status join(sni_importer *imp, sni_str a, const char *between, sni_str b, sni_str *out) {
    size_t middle = strlen(between);
    char *p = sni_arena_alloc(&imp->store->arena, a.n + middle + b.n + 1);
    if (!p) return sni_import_no_memory(imp);
    if (a.n) memcpy(p, a.p, a.n);
    memcpy(p + a.n, between, middle);
    if (b.n) memcpy(p + a.n + middle, b.p, b.n);
    *out = (sni_str){p, a.n + middle + b.n};
    return SN_OK;
}

sn_status sni_scope_prefixed(sni_importer *imp, const sni_scope *scope, sni_str name,
                             sni_str *out) {
    if (scope->prefix.n) return join(imp, scope->prefix, "/", name, out);
    return sni_import_copy(imp, name, out);
}

/* A name for a value that no other value of the graph has. Names that the file itself gives in this
 * graph are kept as they are: that they differ is checked when they are bound. */
static sn_status pick_name(sni_importer *imp, sni_scope *scope, sni_str name, sni_str *out) {
    sni_scope *home = scope->home;
    sni_str pick = name;
    if (scope->prefix.n) SN_TRY(sni_scope_prefixed(imp, scope, name, &pick));
    sni_str base = pick;
    bool own = !scope->prefix.n;
    while (sni_names_find(&home->taken, pick) || (!own && sni_names_find(&home->names, pick))) {
        char number[16];
        snprintf(number, sizeof number, "%u", ++home->serial);
        SN_TRY(join(imp, base, "_", sni_str_of(number), &pick));
        own = false;
    }
    if (!own) SN_TRY(sni_names_add(&home->taken, pick, SNI_NO_ID, 0, imp->err));
    *out = pick;
    return SN_OK;
}

sn_status sni_scope_new_value(sni_importer *imp, sni_scope *scope, sni_str name, sni_value **out) {
    sni_str pick;
    SN_TRY(pick_name(imp, scope, name, &pick));
    return sni_graph_add_value(scope->graph, pick, out, imp->err);
}

sn_status sni_scope_new_const(sni_importer *imp, sni_scope *scope, sni_str name, sni_const *c,
                              sni_value **out) {
    sni_str pick;
    SN_TRY(pick_name(imp, scope, name, &pick));
    return sni_graph_add_const(scope->graph, pick, c, out, imp->err);
}

sn_status sni_scope_bind(sni_importer *imp, sni_scope *scope, sni_str name, int32_t value,
                         int32_t order) {
    if (sni_names_find(&scope->names, name))
        return sni_fail(imp->err, SN_INVALID_MODEL, "value '%.*s' is defined twice", SNI_FMT(name));
    return sni_names_add(&scope->names, name, value, order, imp->err);
}

sn_status sni_scope_define_const(sni_importer *imp, sni_scope *scope, sni_str name, sni_const *c,
                                 int32_t order) {
    const sni_name *e = sni_names_find(&scope->names, name);
    sni_value *v = e ? sni_graph_value(scope->graph, e->value) : NULL;
    if (v && v->constant && !v->is_input) {
        SN_TRY(sni_store_tolerate(imp->store, (sni_str){0}, imp->err,
                                  "value '%.*s' is defined twice: the last constant counts",
                                  SNI_FMT(name)));
        return sni_graph_set_const(scope->graph, v, c, imp->err);
    }
    SN_TRY(sni_scope_new_const(imp, scope, name, c, &v));
    return sni_scope_bind(imp, scope, name, v->id, order);
}

sn_status sni_scope_check_shadow(sni_importer *imp, const sni_scope *scope, sni_str name) {
    for (const sni_scope *s = scope->parent; s; s = s->parent) {
        const sni_name *e = sni_names_find(&s->names, name);
        if (e && e->order < s->position)
            return sni_fail(imp->err, SN_INVALID_MODEL,
                            "value '%.*s' of a subgraph hides one of the graph around it",
                            SNI_FMT(name));
    }
    return SN_OK;
}

/* Brings value `outer` of the graph around the scope into it. */
static sn_status capture(sni_importer *imp, sni_scope *scope, sni_str name, int32_t outer,
                         int32_t *out) {
    sni_graph *around = scope->parent->graph;
    const sni_value *from = around->values[outer];
    sni_value *v;
    if (from->constant && !from->is_input) {
        SN_TRY(sni_scope_new_const(imp, scope, name, from->constant, &v));
    } else {
        int32_t slot;
        SN_TRY(sni_scope_new_value(imp, scope, name, &v));
        v->type = from->type;
        SN_TRY(sni_node_add_capture(around, scope->owner, outer, &slot, imp->err));
        SN_TRY(sni_graph_add_capture(scope->graph, v->id, slot, imp->err));
    }
    *out = v->id;
    return sni_names_add(&scope->names, name, v->id, -1, imp->err);
}

sn_status sni_scope_find(sni_importer *imp, sni_scope *scope, sni_str name, bool *found,
                         int32_t *out) {
    const sni_name *e = sni_names_find(&scope->names, name);
    if (e) {
        *found = true;
        *out = e->value;
        return SN_OK;
    }
    *found = false;
    if (!scope->parent) return SN_OK;
    int32_t outer; /* nesting, and so recursion, is at most SNI_MAX_NESTING deep */
    SN_TRY(sni_scope_find(imp, scope->parent, name, found, &outer));
    if (!*found) return SN_OK;
    if (outer != SNI_NO_ID) return capture(imp, scope, name, outer, out);
    *out = SNI_NO_ID;
    return SN_OK;
}
