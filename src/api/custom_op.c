/* custom_op.c - sets of operators: adding them, loading libraries of them, finding one. */
#include "api/custom.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_PORTS = 1024 };

/* ---- Sets ---- */

sn_status sn_operators_create(sn_operators **out, sn_error *err) {
    if (!out) return sni_fail(err, SN_INVALID_ARGUMENT, "out is NULL");
    sn_operators *set = calloc(1, sizeof *set);
    if (!set) return sni_fail_memory(err);
    atomic_init(&set->refs, 1);
    sni_arena_init(&set->arena, 0);
    *out = set;
    return SN_OK;
}

sn_operators *sni_operators_retain(const sn_operators *set) {
    sn_operators *s = (sn_operators *)set;
    atomic_fetch_add(&s->refs, 1);
    return s;
}

void sn_operators_destroy(sn_operators *set) {
    if (!set || atomic_fetch_sub(&set->refs, 1) != 1) return;
    for (size_t i = 0; i < set->count; i++) {
        const sn_op *op = &set->ops[i]->given;
        if (op->release) op->release(op->ctx);
    }
    free(set->ops);
    sni_arena_free(&set->arena);
    free(set);
}

/* Whether an entry is for that opset version; `until` 0: for all later ones. */
static bool covers(const sni_custom *c, int64_t version) {
    return version >= c->given.since && (!c->given.until || version <= c->given.until);
}

const sni_op *sni_operators_find(const void *set, sni_str domain, sni_str name, int64_t version) {
    const sn_operators *s = set;
    const sni_custom *best = NULL;
    for (size_t i = 0; i < s->count; i++) {
        const sni_custom *c = s->ops[i];
        if (!sni_str_is(domain, c->op.domain) || !sni_str_is(name, c->op.name)) continue;
        if (covers(c, version) && (!best || c->given.since > best->given.since)) best = c;
    }
    return best ? &best->op : NULL;
}

/* ---- From a caller's description to the engine's ---- */

static const char *copy_text(sni_arena *arena, const char *text) {
    return sni_arena_str(arena, sni_str_of(text)).p;
}

/* How an input or output names its type: an element type, or a variable of its own. An output of
 * several types shares input 0's. */
static const char *port_type(sni_arena *arena, const sn_op_port *p, size_t index, bool input) {
    for (int t = 1; t < SNI_DTYPE_COUNT; t++)
        if (p->types == SN_OP_TYPE(t)) return sn_dtype_name((sn_dtype)t);
    return sni_arena_printf(arena, "T%zu", input ? index : 0).p;
}

/* An optional that may stand in the middle is a variadic of one kind to the engine. */
static unsigned port_flags(const sn_op_port *p) {
    unsigned flags = 0;
    if (p->flags & SN_OP_OPTIONAL) flags |= SNI_OPTIONAL;
    if (p->flags & (SN_OP_VARIADIC | SN_OP_HETEROGENEOUS | SN_OP_NONE_ALLOWED))
        flags |= SNI_VARIADIC;
    if (p->flags & SN_OP_HETEROGENEOUS) flags |= SNI_HETEROGENEOUS;
    return flags;
}

static sn_status make_formals(sni_arena *arena, const sn_op_port *ports, size_t count, bool input,
                              const sni_formal **out, sn_error *err) {
    sni_formal *formals = SNI_NEW_ARRAY(arena, sni_formal, count + 1);
    if (!formals) return sni_fail_memory(err);
    for (size_t i = 0; i < count; i++) {
        formals[i].name = copy_text(arena, ports[i].name ? ports[i].name : "");
        formals[i].type = port_type(arena, &ports[i], i, input);
        formals[i].flags = port_flags(&ports[i]);
        if (!formals[i].name || !formals[i].type) return sni_fail_memory(err);
    }
    *out = formals;
    return SN_OK;
}

/* One type variable for each input, so that inputs need not agree unless the operator says so. */
static sn_status make_types(sni_arena *arena, const sn_op *op, const sni_type_var **out,
                            sn_error *err) {
    sni_type_var *vars = SNI_NEW_ARRAY(arena, sni_type_var, op->input_count + 1);
    if (!vars) return sni_fail_memory(err);
    for (size_t i = 0; i < op->input_count; i++) {
        uint32_t types = op->inputs[i].types;
        vars[i].name = sni_arena_printf(arena, "T%zu", i).p;
        vars[i].types = types ? types : SNI_T_ALL;
        if (!vars[i].name) return sni_fail_memory(err);
    }
    *out = vars;
    return SN_OK;
}

/* Makes the engine's description. Texts and lists are copied: the caller's need not live on. */
static sn_status describe(sn_operators *set, const sn_op *op, sni_custom *c, sn_error *err) {
    sni_arena *arena = &set->arena;
    c->given = *op;
    c->versions[0] = (int16_t)(op->since > 0 ? op->since : 1);
    c->op.name = copy_text(arena, op->name);
    c->op.domain = copy_text(arena, op->domain);
    if (!c->op.name || !c->op.domain) return sni_fail_memory(err);
    SN_TRY(make_formals(arena, op->inputs, op->input_count, true, &c->op.inputs, err));
    SN_TRY(make_formals(arena, op->outputs, op->output_count, false, &c->op.outputs, err));
    SN_TRY(make_types(arena, op, &c->op.types, err));
    c->op.versions = c->versions;
    if (op->input_count && op->inputs[op->input_count - 1].flags & SN_OP_NONE_ALLOWED)
        c->op.min_inputs = SNI_MIN_NONE;
    /* Nothing is known of what it does: it is neither folded nor merged. */
    c->op.flags = SNI_OP_CUSTOM | SNI_OP_RANDOM;
    c->op.inplace = op->inplace;
    c->op.infer = sni_custom_infer;
    c->op.ref = sni_custom_run;
    c->given.name = c->op.name;
    c->given.domain = c->op.domain;
    c->given.inputs = c->given.outputs = NULL;
    return SN_OK;
}

/* Copies an operator of a caller that may know fewer members than this library. */
static sn_status read_op(const sn_op *given, sn_op *out, sn_error *err) {
    *out = (sn_op){.size = sizeof *out};
    if (given->size < offsetof(sn_op, destroy) || given->size > 4096)
        return sni_fail(err, SN_INVALID_ARGUMENT, "an operator without its size");
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (!out->name || !*out->name || !out->run)
        return sni_fail(err, SN_INVALID_ARGUMENT, "an operator without a name or a run function");
    if (!out->domain) out->domain = "";
    if (out->input_count > MAX_PORTS || out->output_count > MAX_PORTS ||
        (out->input_count && !out->inputs) || (out->output_count && !out->outputs))
        return sni_fail(err, SN_INVALID_ARGUMENT,
                        "operator '%s' has %zu inputs and %zu outputs, or their lists are NULL",
                        out->name, out->input_count, out->output_count);
    if (out->since < 0 || out->since > INT16_MAX || (out->until && out->until < out->since))
        return sni_fail(err, SN_INVALID_ARGUMENT, "operator '%s' is of versions %d to %d",
                        out->name, out->since, out->until);
    return SN_OK;
}

/* Entries may share a name if they begin at different versions. */
static bool same_op(const sni_custom *c, const sn_op *op) {
    return strcmp(c->op.name, op->name) == 0 && strcmp(c->op.domain, op->domain) == 0 &&
           c->given.since == op->since;
}

sn_status sn_operators_add(sn_operators *set, const sn_op *op, sn_error *err) {
    if (!set || !op) return sni_fail(err, SN_INVALID_ARGUMENT, "set or op is NULL");
    sn_op read;
    SN_TRY(read_op(op, &read, err));
    for (size_t i = 0; i < set->count; i++)
        if (same_op(set->ops[i], &read))
            return sni_fail(err, SN_INVALID_ARGUMENT, "operator '%s.%s' is there already",
                            read.domain, read.name);
    if (set->count == set->capacity) {
        size_t capacity = set->capacity ? set->capacity * 2 : 8;
        sni_custom **ops = realloc(set->ops, capacity * sizeof *ops);
        if (!ops) return sni_fail_memory(err);
        set->ops = ops;
        set->capacity = capacity;
    }
    sni_custom *c = SNI_NEW(&set->arena, sni_custom);
    if (!c) return sni_fail_memory(err);
    SN_TRY(describe(set, &read, c, err));
    set->ops[set->count++] = c;
    return SN_OK;
}

/* ---- Libraries ---- */

/* A library that has registered operators stays loaded: their functions are called until the
 * process ends. */
static sn_status load(sn_operators *set, const char *path, sn_error *err) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return sni_fail(err, SN_NOT_FOUND, "%s", dlerror());
    sn_register_operators_fn add = NULL;
    void *symbol = dlsym(library, "sn_register_operators");
    memcpy(&add, &symbol, sizeof add);
    if (!add) {
        bool other = dlsym(library, "RegisterCustomOps") != NULL;
        dlclose(library);
        return sni_fail(err, SN_INVALID_ARGUMENT, "it does not export sn_register_operators%s",
                        other ? "; it is written for ONNX Runtime: use it by way of "
                                "libonnxruntime.so.1"
                              : "");
    }
    return add(set, &sni_op_api, err);
}

sn_status sn_operators_load(sn_operators *set, const char *path, sn_error *err) {
    if (!set || !path) return sni_fail(err, SN_INVALID_ARGUMENT, "set or path is NULL");
    sn_error unwanted;
    if (!err) err = &unwanted;
    *err = (sn_error){0};
    sn_status status = load(set, path, err);
    if (status == SN_OK) return SN_OK;
    if (!err->message[0]) sni_fail(err, status, "it could not be registered");
    return sni_fail_context(err, status, "operator library '%s'", path);
}

const sn_op_api *sn_operators_api(void) {
    return &sni_op_api;
}
