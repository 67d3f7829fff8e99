/* session_inspect.c - what can be asked of a session: what the optimiser did, and its graph and
 * plan as text, drawing or file. */
#include "api/session.h"

#include <stdio.h>

/* ---- What the optimiser did ---- */

typedef struct family_use {
    uint32_t family;
    size_t count;
} family_use;

static sn_status add_uses(void *ctx, const sni_plan *plan) {
    family_use *use = ctx;
    for (int32_t i = 0; i < plan->n_steps; i++)
        use->count += (plan->steps[i].numerics & use->family) != 0;
    return SN_OK;
}

/* Steps of the plan that ran last that use a family of numerics. */
static size_t count_uses(const sn_session *s, uint32_t family) {
    family_use use = {family, 0};
    sn_status status;
    sni_program_last_plan(s->main.program, add_uses, &use, &status);
    return use.count;
}

bool sn_session_rule(const sn_session *session, size_t index, const char **name, size_t *count) {
    if (!session) return false;
    const char *known = sni_opt_name(index);
    if (!known) return false;
    if (name) *name = known;
    if (count) *count = session->report.counts ? session->report.counts[index] : 0;
    if (count && sni_opt_family(index)) *count = count_uses(session, sni_opt_family(index));
    return true;
}

bool sn_session_rewrite(const sn_session *session, size_t index, const char **rule,
                        const char **node) {
    const sni_opt_event *e = session ? session->report.events : NULL;
    for (; e && index; index--) e = e->next;
    if (!e) return false;
    if (rule) *rule = e->rule;
    if (node) *node = e->node.p ? e->node.p : "";
    return true;
}

enum { MAX_KINDS = 256 };

/* Operators and how many nodes each has; those beyond MAX_KINDS are not counted. */
typedef struct kinds {
    const sni_op *op[MAX_KINDS];
    size_t count[MAX_KINDS], n;
} kinds;

/* Adds the nodes of a graph and its subgraphs. */
static void count_kinds(const sni_graph *g, kinds *k, int depth) {
    for (const sni_node *n = sni_graph_first(g); n && depth < SNI_MAX_NESTING;
         n = sni_graph_next(g, n)) {
        size_t i = 0;
        for (int32_t sub = 0; sub < n->n_subgraphs; sub++)
            count_kinds(n->subgraphs[sub], k, depth + 1);
        while (i < k->n && k->op[i] != n->op) i++;
        if (i == MAX_KINDS || !n->op) continue;
        k->op[i] = n->op;
        k->count[i]++;
        if (i == k->n) k->n++;
    }
}

bool sn_session_operator(const sn_session *session, size_t index, sn_operator_use *out) {
    kinds k = {.n = 0};
    if (!session || !out) return false;
    count_kinds(session->main.graph, &k, 0);
    if (index >= k.n) return false;
    const char *domain = k.op[index]->domain;
    *out = (sn_operator_use){domain ? domain : "", k.op[index]->name, k.count[index], true};
    return true;
}

void sn_session_node_counts(const sn_session *session, size_t *before, size_t *after) {
    if (before) *before = session ? session->report.nodes_before : 0;
    if (after) *after = session ? session->report.nodes_after : 0;
}

/* ---- Plans and graphs as files ---- */

typedef struct plan_bytes {
    uint64_t arena, lower_bound;
} plan_bytes;

/* Of the plan that ran last, under the program's lock. */
static sn_status read_bytes(void *ctx, const sni_plan *plan) {
    *(plan_bytes *)ctx = (plan_bytes){plan->arena_bytes, plan->lower_bound};
    return SN_OK;
}

void sn_session_plan_bytes(const sn_session *session, uint64_t *arena, uint64_t *lower_bound) {
    plan_bytes bytes = {0, 0};
    sn_status status;
    if (session) sni_program_last_plan(session->main.program, read_bytes, &bytes, &status);
    if (arena) *arena = bytes.arena;
    if (lower_bound) *lower_bound = bytes.lower_bound;
}

typedef struct plan_sink {
    sn_format format;
    sn_write_fn write;
    void *ctx;
    sn_error *err;
} plan_sink;

/* Who runs a node and where its first output goes; nothing of nodes in subgraphs. */
static void note_step(void *ctx, const sni_node *n, char *text, size_t size) {
    const sni_plan *plan = ctx;
    if (n->id >= plan->graph->node_count || plan->graph->nodes[n->id] != n) return;
    const sni_step *s = NULL;
    for (int32_t i = 0; i < plan->n_steps && !s; i++)
        if (plan->steps[i].node == n) s = &plan->steps[i];
    if (!s) {
        snprintf(text, size, "worked out beforehand");
        return;
    }
    const char *who = s->view ? "view" : s->dynamic ? "at run time" : "reference";
    if (s->impl && !s->view) who = s->impl->name;
    if (sni_is_part(n)) who = ((const sni_part_params *)n->params)->provider;
    sni_ref r = n->n_out ? sni_step_outputs(plan, s)[0] : SNI_REF_NONE;
    bool placed = r >= 0 && plan->slots[r].place == SNI_PLACE_ARENA;
    if (placed)
        snprintf(text, size, "%s, %zu bytes at %zu", who, sni_tensor_bytes(&plan->slots[r].tensor),
                 plan->slots[r].offset);
    else
        snprintf(text, size, "%s", who);
}

static sn_status write_plan(void *ctx, const sni_plan *plan) {
    const plan_sink *s = ctx;
    sni_dot_notes notes = {note_step, (void *)plan};
    if (s->format == SN_FORMAT_DOT)
        return sni_write_dot(plan->graph, &notes, s->write, s->ctx, s->err);
    return sni_plan_write(plan, s->write, s->ctx, s->err);
}

/* A file keeps inputs with a default as inputs, so it is written from the variant that has them. */
static sn_status write_optimised(const sn_session *s, sn_format format, sn_write_fn write,
                                 void *ctx, sn_error *err) {
    const sni_model *m = s->model->model;
    const sni_session_variant *f = &s->main;
    if (format == SN_FORMAT_DOT) return sni_write_dot(f->graph, NULL, write, ctx, err);
    if (format != SN_FORMAT_ONNX) return sni_write_text(f->graph, m, write, ctx, err);
    bool defaults = s->main.graph->n_inputs < m->graph->n_inputs; /* the file keeps those inputs */
    SN_TRY(sni_session_choose_variant((sn_session *)s, defaults, &f, err));
    return (s->options.portable ? sni_write_portable : sni_write_onnx)(f->graph, m, write, ctx,
                                                                       err);
}

sn_status sn_session_write(const sn_session *session, sn_stage stage, sn_format format,
                           sn_write_fn write, void *ctx, sn_error *err) {
    if (!session || !write) return sni_fail(err, SN_INVALID_ARGUMENT, "session or write is NULL");
    if (stage == SN_STAGE_IMPORT) return sn_model_write(session->model, format, write, ctx, err);
    if (stage == SN_STAGE_OPT) return write_optimised(session, format, write, ctx, err);
    if (stage != SN_STAGE_PLAN || format == SN_FORMAT_ONNX)
        return sni_fail(err, SN_INVALID_ARGUMENT, "a plan is written as text or drawn");
    plan_sink sink = {.format = format, .write = write, .ctx = ctx, .err = err};
    sn_status status = SN_OK;
    if (!sni_program_last_plan(session->main.program, write_plan, &sink, &status))
        return sni_fail(err, SN_INVALID_ARGUMENT, "there is no plan before the first run");
    return status;
}
