/* node.c - brings a node from its form in the file to the form that its operator's functions
 * expect. */
#include "ops/core/arity.h"
#include "ops/core/op.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- Arity ---- */

static int count_formals(const sni_formal *formals, int *required, bool *variadic) {
    int n = 0;
    *required = 0;
    *variadic = false;
    for (; formals && formals[n].name; n++) {
        if (formals[n].flags & SNI_VARIADIC)
            *variadic = true;
        else if (!(formals[n].flags & SNI_OPTIONAL))
            *required = n + 1;
    }
    return n;
}

static sn_status check_arity(const sni_node *n, sn_error *err) {
    int required;
    bool variadic;
    int most = count_formals(n->op->inputs, &required, &variadic);
    if (variadic && n->op->min_inputs != SNI_MIN_FORMALS) {
        int least = n->op->min_inputs ? n->op->min_inputs : 1;
        if (n->op->min_inputs == SNI_MIN_NONE) least = 0;
        required = most - 1 + least;
    }
    if (n->n_in < required || (!variadic && n->n_in > most))
        return sni_fail(
            err, SN_INVALID_MODEL, "it has %d inputs where %s takes %d%s", n->n_in, n->op->name,
            n->n_in < required ? required : most,
            variadic || required != most ? (n->n_in < required ? " or more" : " at the most") : "");
    for (int i = 0; i < n->n_in; i++) {
        const sni_formal *formal = &n->op->inputs[i < most ? i : most - 1];
        if (n->in[i] == SNI_NO_ID && !(formal->flags & SNI_OPTIONAL))
            return sni_fail(err, SN_INVALID_MODEL, "input %d ('%s') is missing", i, formal->name);
    }
    most = count_formals(n->op->outputs, &required, &variadic);
    if (most && n->n_out == 0) return sni_fail(err, SN_INVALID_MODEL, "it has no outputs");
    if (!variadic && n->n_out > most)
        return sni_fail(err, SN_INVALID_MODEL, "it has %d outputs where %s makes %d at the most",
                        n->n_out, n->op->name, most);
    return SN_OK;
}

/* ---- Attributes to parameters ---- */

static sn_status parse_choice(const sni_param *p, sni_str text, int32_t *out, sn_error *err) {
    int32_t index = 0;
    for (const char *c = p->choices; *c; index++) {
        size_t n = strcspn(c, "|");
        if (sni_str_eq(text, (sni_str){c, n})) {
            *out = index;
            return SN_OK;
        }
        c += n + (c[n] == '|');
    }
    return sni_fail(err, SN_INVALID_MODEL, "attribute '%s' is '%.*s', which is none of %s", p->name,
                    SNI_FMT(text), p->choices);
}

/* Writes a field of the parameter struct: given, or default when `a` is NULL. */
static sn_status set_field(const sni_param *p, const sni_attr *a, unsigned char *params,
                           sn_error *err) {
    unsigned char *field = params + p->offset;
    switch (p->kind) {
    case SNI_ATTR_FLOAT: {
        float f = a ? a->u.f : (float)p->number;
        memcpy(field, &f, sizeof f);
        return SN_OK;
    }
    case SNI_ATTR_INT: {
        int64_t i = a ? a->u.i : (int64_t)p->number;
        memcpy(field, &i, sizeof i);
        return SN_OK;
    }
    case SNI_ATTR_STRING: {
        sni_str s = a ? a->u.s : sni_str_of(p->text ? p->text : "");
        if (p->choices) return parse_choice(p, s, (int32_t *)(void *)field, err);
        memcpy(field, &s, sizeof s);
        return SN_OK;
    }
    case SNI_ATTR_TENSOR: {
        const sni_tensor *t = NULL;
        if (a) SN_TRY(sni_const_load(a->u.tensor, &t, err));
        memcpy(field, &t, sizeof t);
        return SN_OK;
    }
    case SNI_ATTR_GRAPH: {
        int32_t index = a ? a->u.graph : -1;
        memcpy(field, &index, sizeof index);
        return SN_OK;
    }
    case SNI_ATTR_TYPE: {
        const sni_type *t = a ? a->u.type : NULL;
        memcpy(field, &t, sizeof t);
        return SN_OK;
    }
    case SNI_ATTR_FLOATS:
        *(sni_floats *)(void *)field =
            a ? (sni_floats){a->u.floats, a->count, true} : (sni_floats){0};
        return SN_OK;
    case SNI_ATTR_INTS:
        *(sni_ints *)(void *)field = a ? (sni_ints){a->u.ints, a->count, true} : (sni_ints){0};
        return SN_OK;
    case SNI_ATTR_STRINGS:
        *(sni_strings *)(void *)field =
            a ? (sni_strings){a->u.strings, a->count, true} : (sni_strings){0};
        return SN_OK;
    default:
        return sni_fail(err, SN_INTERNAL, "parameter '%s' has a kind without a field", p->name);
    }
}

static const sni_param *find_param(const sni_op *op, sni_str name) {
    for (const sni_param *p = op->params; p && p->name; p++)
        if (sni_str_is(name, p->name)) return p;
    return NULL;
}

static const char *attr_kind_name(sni_attr_kind kind) {
    static const char *const names[] = {"none",    "float",  "int",    "string", "tensor",
                                        "graph",   "type",   "floats", "ints",   "strings",
                                        "tensors", "graphs", "types"};
    return names[kind];
}

/* An empty list has no element type in some files: it fits every plural kind. */
static bool kind_fits(const sni_param *p, const sni_attr *a) {
    return p->kind == a->kind ||
           (a->kind >= SNI_ATTR_FLOATS && p->kind >= SNI_ATTR_FLOATS && a->count == 0);
}

/* Whether an attribute that an operator does not have is let pass: every name that begins with two
 * underscores, which tools leave behind, and others as the operator says. */
static bool may_pass(const sni_op *op, sni_str name) {
    return op->flags & SNI_OP_LENIENT || (name.n > 2 && name.p[0] == '_' && name.p[1] == '_');
}

/* Takes attributes away that the operator does not have and that are let pass. */
static sn_status drop_unknown(sni_graph *g, sni_node *n, sn_error *err) {
    for (int32_t i = n->n_attrs - 1; i >= 0; i--) {
        sni_str name = n->attrs[i].name;
        if (find_param(n->op, name) || !may_pass(n->op, name)) continue;
        SN_TRY(sni_store_tolerate(g->store, sni_node_label(g, n), err,
                                  "%s has no attribute '%.*s': it has no effect", n->op->name,
                                  SNI_FMT(name)));
        memmove(&n->attrs[i], &n->attrs[i + 1], (size_t)(n->n_attrs - i - 1) * sizeof *n->attrs);
        n->n_attrs--;
    }
    return SN_OK;
}

static sn_status check_attrs(sni_graph *g, sni_node *n, sn_error *err) {
    if (n->op->flags & SNI_OP_CUSTOM) return SN_OK;
    SN_TRY(drop_unknown(g, n, err));
    for (int32_t i = 0; i < n->n_attrs; i++) {
        const sni_attr *a = &n->attrs[i];
        const sni_param *p = find_param(n->op, a->name);
        if (!p)
            return sni_fail(err, SN_INVALID_MODEL, "%s has no attribute '%.*s'", n->op->name,
                            SNI_FMT(a->name));
        if (!kind_fits(p, a))
            return sni_fail(err, SN_INVALID_MODEL, "attribute '%s' is of kind %s, not %s", p->name,
                            attr_kind_name(a->kind), attr_kind_name(p->kind));
    }
    return SN_OK;
}

sn_status sni_node_bind(sni_graph *g, sni_node *n, sn_error *err) {
    SN_TRY(check_arity(n, err));
    SN_TRY(check_attrs(g, n, err));
    if (!n->op->params) return SN_OK;
    unsigned char *params = sni_arena_alloc(&g->store->arena, n->op->params_size);
    if (!params) return sni_fail_memory(err);
    for (const sni_param *p = n->op->params; p->name; p++) {
        const sni_attr *a = sni_node_attr(n, p->name);
        if (p->ignored) continue;
        if (!a && p->required)
            return sni_fail(err, SN_INVALID_MODEL, "attribute '%s' is missing", p->name);
        SN_TRY(set_field(p, a, params, err));
        if (p->present) params[p->present - 1] = a != NULL;
    }
    if (n->op->prepare) SN_TRY(n->op->prepare(params, &g->store->arena, err));
    n->params = params;
    return SN_OK;
}

/* ---- Opset versions ---- */

/* The version in force at an opset: the latest that is not newer; 0 if the operator is younger. */
static int version_at(const sni_op *op, int64_t opset) {
    int found = 0;
    for (const int16_t *v = op->versions; *v; v++)
        if (*v <= opset) found = *v;
    return found;
}

static sn_status move_attr(sni_upgrade *u, const sni_attr_move *m) {
    const sni_attr *a = sni_node_attr(u->node, m->attr);
    if (!a) return SN_OK;
    int32_t value;
    if (a->kind == SNI_ATTR_INTS) {
        SN_TRY(sni_upgrade_ints(u, a->u.ints, a->count, &value));
    } else if (a->kind == SNI_ATTR_FLOATS) {
        SN_TRY(sni_upgrade_floats(u, a->u.floats, a->count, &value));
    } else if (a->kind == SNI_ATTR_INT || a->kind == SNI_ATTR_FLOAT) {
        double number = a->kind == SNI_ATTR_INT ? (double)a->u.i : (double)a->u.f;
        SN_TRY(sni_upgrade_scalar(u, m->scalar, number, &value));
    } else {
        return sni_fail(u->err, SN_INVALID_MODEL, "attribute '%s' is of kind %s", m->attr,
                        attr_kind_name(a->kind));
    }
    if (u->node->n_in <= m->input)
        SN_TRY(sni_node_resize_inputs(u->graph, u->node, m->input + 1, u->err));
    SN_TRY(sni_node_set_input(u->graph, u->node, m->input, value, u->err));
    sni_node_remove_attr(u->node, m->attr);
    return SN_OK;
}

static sn_status upgrade(sni_upgrade *u) {
    const sni_op *op = u->node->op;
    if (u->from < 6) sni_node_remove_attr(u->node, "consumed_inputs");
    for (const sni_attr_move *m = op->moves; m && m->attr; m++)
        if (u->from < m->since) SN_TRY(move_attr(u, m));
    return op->upgrade ? op->upgrade(u) : SN_OK;
}

sn_status sni_node_resolve(sni_graph *g, sni_node *n, sn_error *err) {
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return SN_OK;
    int from = version_at(n->op, n->version), canonical = sni_op_version(n->op);
    if (from == 0)
        return sni_fail(err, SN_INVALID_MODEL,
                        "%s is not part of opset %" PRId64 " (it came with %d)", n->op->name,
                        n->version, n->op->versions[0]);
    sni_upgrade u = {.graph = g, .node = n, .from = from, .err = err};
    bool rewrites = from == canonical && n->op->flags & SNI_OP_REWRITES;
    if (rewrites) SN_TRY(sni_node_bind(g, n, err));
    if (from < canonical || rewrites) {
        SN_TRY(upgrade(&u));
        /* An upgrade may turn the node into another operator. */
        n->op = sni_op_find(n->domain, n->type);
        if (!n->op) return sni_fail(err, SN_INTERNAL, "the upgrade made an unknown operator");
    }
    n->version = sni_op_version(n->op);
    return sni_node_bind(g, n, err);
}
