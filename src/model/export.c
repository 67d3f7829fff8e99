/* export.c - names of values in the scopes of a graph that is written. */
#include "model/export.h"
#include "model/names.h"

#include <stdio.h>

/* A graph being named, and the graphs around it. */
typedef struct scope {
    sni_export *e;
    const struct scope *outer;
    sni_names taken;  /* names defined in this graph */
    bool *is_output;  /* by value id: it is an output that has been named */
    unsigned *serial; /* numbers for names in use; shared, so that none is tried twice */
    sni_arena *arena;
    sn_error *err;
} scope;

static bool in_use(const scope *s, sni_str name) {
    for (; s; s = s->outer)
        if (sni_names_find(&s->taken, name)) return true;
    return false;
}

/* `base` with "_k" after it; p NULL when memory runs out. */
static sni_str numbered(sni_arena *arena, sni_str base, unsigned k) {
    char suffix[16];
    size_t n = (size_t)snprintf(suffix, sizeof(suffix), "_%u", k);
    char *text = sni_arena_alloc(arena, base.n + n + 1);
    if (!text) return (sni_str){0};
    memcpy(text, base.p, base.n);
    memcpy(text + base.n, suffix, n);
    return (sni_str){text, base.n + n};
}

/* A name not in use: `wanted`, or with a number added. `id` tells values without a name apart. */
static sn_status claim(scope *s, sni_str wanted, int32_t id, sni_str *out) {
    sni_str base = wanted.n ? wanted : sni_arena_printf(s->arena, "v%d", id);
    sni_str name = base;
    while (name.p && in_use(s, name)) name = numbered(s->arena, base, ++*s->serial);
    if (!name.p) return sni_fail_memory(s->err);
    SN_TRY(sni_names_add(&s->taken, name, 0, 0, s->err));
    *out = name;
    return SN_OK;
}

static sn_status name_value(scope *s, int32_t id) {
    if (s->e->values[id].p) return SN_OK;
    return claim(s, s->e->graph->values[id]->name, id, &s->e->values[id]);
}

/* An output whose value has no name yet gives it its own; others are copies, as is a captured
 * value, which many readers do not take as an output. */
static sn_status name_output(scope *s, int32_t i) {
    const sni_graph *g = s->e->graph;
    int32_t id = g->outputs[i];
    sni_str *value = &s->e->values[id];
    bool first = !s->is_output[id];
    s->is_output[id] = true;
    if (!value->p) {
        SN_TRY(claim(s, g->output_names[i], id, value));
        s->e->outputs[i] = *value;
    } else if (first && !g->values[id]->is_capture && sni_str_eq(*value, g->output_names[i])) {
        s->e->outputs[i] = *value;
    } else {
        s->e->copied[i] = true;
        SN_TRY(claim(s, g->output_names[i], id, &s->e->outputs[i]));
    }
    return SN_OK;
}

static sn_status name_graph(const scope *outer, const sni_node *owner, const sni_graph *g,
                            sni_export *e, unsigned *serial, sni_arena *arena, sn_error *err);

static sn_status name_subgraphs(const scope *s, const sni_node *n) {
    sni_export *subs = SNI_NEW_ARRAY(s->arena, sni_export, n->n_subgraphs);
    if (!subs) return sni_fail_memory(s->err);
    s->e->subgraphs[n->id] = subs;
    for (int32_t i = 0; i < n->n_subgraphs; i++)
        SN_TRY(name_graph(s, n, n->subgraphs[i], &subs[i], s->serial, s->arena, s->err));
    return SN_OK;
}

static sn_status name_values(scope *s, const sni_node *owner) {
    const sni_graph *g = s->e->graph;
    for (int32_t i = 0; i < g->n_captures; i++)
        s->e->values[g->captures[i].value] =
            s->outer->e->values[owner->in[owner->n_in + g->captures[i].slot]];
    for (int32_t i = 0; i < g->n_inputs; i++) SN_TRY(name_value(s, g->inputs[i]));
    for (int32_t i = 0; i < g->n_outputs; i++) SN_TRY(name_output(s, i));
    for (int32_t i = 0; i < g->value_count; i++)
        if (g->values[i]) SN_TRY(name_value(s, i));
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        if (n->n_subgraphs) SN_TRY(name_subgraphs(s, n));
    return SN_OK;
}

/* Nodes that were one before, such as those of an operator of an older version, have one name. */
static sn_status name_nodes(const scope *s) {
    const sni_graph *g = s->e->graph;
    scope names = {.serial = s->serial, .arena = s->arena, .err = s->err};
    sn_status status = SN_OK;
    for (const sni_node *n = sni_graph_first(g); n && status == SN_OK; n = sni_graph_next(g, n))
        if (n->name.n) status = claim(&names, n->name, 0, &s->e->nodes[n->id]);
    sni_names_free(&names.taken);
    return status;
}

static sn_status name_graph(const scope *outer, const sni_node *owner, const sni_graph *g,
                            sni_export *e, unsigned *serial, sni_arena *arena, sn_error *err) {
    *e = (sni_export){.graph = g,
                      .values = SNI_NEW_ARRAY(arena, sni_str, g->value_count),
                      .outputs = SNI_NEW_ARRAY(arena, sni_str, g->n_outputs),
                      .nodes = SNI_NEW_ARRAY(arena, sni_str, g->node_count),
                      .copied = SNI_NEW_ARRAY(arena, bool, g->n_outputs),
                      .calls = SNI_NEW_ARRAY(arena, sni_str, g->node_count),
                      .subgraphs = SNI_NEW_ARRAY(arena, sni_export *, g->node_count)};
    scope s = {.e = e,
               .outer = outer,
               .is_output = SNI_NEW_ARRAY(arena, bool, g->value_count),
               .serial = serial,
               .arena = arena,
               .err = err};
    if (!e->values || !e->outputs || !e->calls || !e->nodes || !e->copied || !e->subgraphs ||
        !s.is_output)
        return sni_fail_memory(err);
    sn_status status = name_values(&s, owner);
    if (status == SN_OK) status = name_nodes(&s);
    sni_names_free(&s.taken);
    return status;
}

static void set_places(sni_export *e, const sni_places *places) {
    const sni_graph *g = e->graph;
    e->places = places;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        for (int32_t i = 0; i < n->n_subgraphs; i++) set_places(&e->subgraphs[n->id][i], places);
}

sn_status sni_export_names(const sni_graph *g, const sni_places *places, sni_arena *arena,
                           sni_export **out, sn_error *err) {
    sni_export *e = SNI_NEW(arena, sni_export);
    if (!e) return sni_fail_memory(err);
    unsigned serial = 0;
    SN_TRY(name_graph(NULL, NULL, g, e, &serial, arena, err));
    set_places(e, places);
    *out = e;
    return SN_OK;
}

const sni_type *sni_export_output_type(const sni_graph *g, const sni_model *model, int32_t i) {
    const sni_type *inferred = &g->values[g->outputs[i]]->type;
    if (!model || !model->output_types || i >= model->graph->n_outputs) return inferred;
    const sni_type *declared = &model->output_types[i];
    if (declared->kind == SN_KIND_NONE) return inferred;
    bool poor = inferred->kind == SN_KIND_NONE || inferred->dtype == SN_UNDEFINED ||
                (inferred->kind == SN_KIND_TENSOR && !inferred->has_shape && declared->has_shape);
    bool nested = inferred->kind == SN_KIND_SEQUENCE || inferred->kind == SN_KIND_OPTIONAL;
    return (nested ? !inferred->inner : poor) ? declared : inferred;
}
