/* tune.c - choosing who runs nodes by measuring the rows of the table of implementations that
 * could, in runs of the whole model, where they find caches as they will find them later. What is
 * chosen is kept in the session by node; the graph stays as it is. */
#include "api/session.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    MIN_RUNS = 5, /* that are measured with each candidate */
    MAX_RUNS = 50,
    ENOUGH_NS = 50000000, /* of such runs */
    WORTH_PERCENT = 97    /* of the estimated row's time at most: less may be chance */
};

/* A node with rows to choose from. */
typedef struct site {
    uint32_t graph, position; /* as in sni_finished_key */
    sni_str label;
    int count;
    char names[SNI_MAX_CANDIDATES][SNI_IMPL_NAME]; /* sni_candidate_name() */
    uint64_t best[SNI_MAX_CANDIDATES];             /* ns of all runs; 0: not measured */
    uint64_t estimated;                            /* ns of the row that estimates choose */
    int chosen; /* index of a candidate; -1: what estimates choose */
} site;

typedef struct tuning {
    sn_session *session;
    site *sites;
    size_t count, capacity;
    int rounds;  /* most candidates of a site */
    int round;   /* under way; -1: that of the estimates */
    bool failed; /* no memory for a site */
    sni_choosing before;
    sni_finished_key *keys; /* choices of the round, one for each site at most */
} tuning;

/* ---- Sites ---- */

/* Nodes of subgraphs stay as they are. */
static void add_site(void *ctx, uint32_t graph, uint32_t position, const sni_choice *c) {
    tuning *t = ctx;
    sni_candidate all[SNI_MAX_CANDIDATES];
    if (graph != 0) return;
    for (size_t i = 0; i < t->count; i++)
        if (t->sites[i].position == position) return;
    int n = sni_ep_candidates(c, all);
    if (n < 2) return;
    if (t->count == t->capacity) {
        size_t more = t->capacity ? 2 * t->capacity : 32;
        site *sites = realloc(t->sites, more * sizeof *sites);
        t->failed |= !sites;
        if (!sites) return;
        t->sites = sites;
        t->capacity = more;
    }
    site *s = &t->sites[t->count++];
    *s = (site){.graph = graph, .position = position, .count = n, .chosen = -1};
    s->label = sni_node_label(t->session->main.graph, c->node);
    for (int i = 0; i < n; i++) sni_candidate_name(all[i].impl, all[i].variant, s->names[i]);
    if (n > t->rounds) t->rounds = n;
}

/* ---- Choices in force ---- */

/* A program with the choices that there are now takes the place of the one there was. Graphs have
 * the numbers that they had. */
static sn_status renew(tuning *t, sn_error *err) {
    sn_session *session = t->session;
    sni_program *made;
    uint32_t programs = session->pool.programs;
    session->pool.programs = 0;
    sn_status status = sni_program_new(session->main.graph, &session->pool, &made, err);
    if (session->pool.programs < programs) session->pool.programs = programs;
    if (status != SN_OK) return status;
    sni_program_free(session->main.program);
    session->main.program = made;
    return SN_OK;
}

/* The choice of a site in a round; -1: what estimates choose. */
static int choice_in(const site *s, int round) {
    return round < s->count ? round : -1;
}

/* Puts each site's `chosen`, or its candidate of a round, in force. */
static sn_status put_in_force(tuning *t, bool chosen, sn_error *err) {
    sni_choosing *c = &t->session->pool.choosing;
    size_t n = 0;
    for (size_t i = 0; i < t->count; i++) {
        const site *s = &t->sites[i];
        int k = chosen ? s->chosen : choice_in(s, t->round);
        if (k < 0) continue;
        t->keys[n] = (sni_finished_key){.graph = s->graph, .node = s->position};
        memcpy(t->keys[n++].impl, s->names[k], SNI_IMPL_NAME);
    }
    c->tuned = t->keys;
    c->n_tuned = n;
    return renew(t, err);
}

/* ---- Measuring ---- */

/* Nodes of the same label share their times. */
static void note_step(void *ctx, const sn_step_event *event) {
    tuning *t = ctx;
    uint64_t ns = event->end_ns - event->start_ns;
    for (size_t i = 0; event->depth == 0 && i < t->count; i++) {
        site *s = &t->sites[i];
        if (!sni_str_is(s->label, event->node)) continue;
        int k = t->round < 0 ? -1 : choice_in(s, t->round);
        uint64_t *best = k < 0 ? &s->estimated : &s->best[k];
        if (!*best || ns < *best) *best = ns ? ns : 1;
    }
}

/* Runs the model and forgets its outputs. */
static sn_status run_once(const tuning *t, const sn_run_options *o, const sn_binding *inputs,
                          size_t count, sn_error *err) {
    size_t n_out = sn_model_output_count(t->session->model);
    sn_binding *outputs = calloc(n_out + 1, sizeof *outputs);
    if (!outputs) return sni_fail_memory(err);
    sn_status status = sn_session_run(t->session, o, inputs, count, outputs, n_out, err);
    for (size_t i = 0; i < n_out; i++) sn_value_destroy(outputs[i].value);
    free(outputs);
    return status;
}

static sn_status measure(tuning *t, const sn_binding *inputs, size_t count, sn_error *err) {
    sn_run_options o;
    sn_run_options_init(&o, sizeof o);
    SN_TRY(run_once(t, &o, inputs, count, err)); /* packs weights */
    o.on_step = note_step;
    o.on_step_ctx = t;
    uint64_t start = sni_now_ns();
    for (int i = 0; i < MAX_RUNS && (i < MIN_RUNS || sni_now_ns() - start < ENOUGH_NS); i++)
        SN_TRY(run_once(t, &o, inputs, count, err));
    return SN_OK;
}

/* The first round is that of the estimates, and finds the sites. */
static sn_status measure_all(tuning *t, const sn_binding *inputs, size_t count, sn_error *err) {
    sni_choosing *c = &t->session->pool.choosing;
    *c = (sni_choosing){.numerics = c->numerics, .on_choice = add_site, .on_choice_ctx = t};
    t->round = -1;
    SN_TRY(renew(t, err));
    SN_TRY(measure(t, inputs, count, err));
    c->on_choice = NULL;
    if (t->failed) return sni_fail_memory(err);
    t->keys = calloc(t->count + 1, sizeof *t->keys);
    if (!t->keys) return sni_fail_memory(err);
    for (t->round = 0; t->round < t->rounds; t->round++) {
        SN_TRY(put_in_force(t, false, err));
        SN_TRY(measure(t, inputs, count, err));
    }
    return SN_OK;
}

/* ---- Choosing ---- */

static void tell(const tuning *t, const site *s) {
    char line[512];
    snprintf(line, sizeof line, "tuned '%.*s': %s, %.3f ms instead of %.3f", SNI_FMT(s->label),
             s->names[s->chosen], (double)s->best[s->chosen] * 1e-6, (double)s->estimated * 1e-6);
    sni_session_log(t->session, SN_LOG_INFO, line);
}

static size_t choose(tuning *t) {
    size_t changed = 0;
    for (size_t i = 0; i < t->count; i++) {
        site *s = &t->sites[i];
        int best = 0;
        for (int k = 1; k < s->count; k++)
            if (s->best[k] && (!s->best[best] || s->best[k] < s->best[best])) best = k;
        if (!s->best[best] || s->best[best] * 100 > s->estimated * WORTH_PERCENT) continue;
        s->chosen = best;
        tell(t, s);
        changed++;
    }
    return changed;
}

/* Puts what was chosen in force; after a failure that is what was there before. */
static sn_status finish(tuning *t, bool measured, sn_error *err) {
    sn_session *session = t->session;
    session->pool.choosing = t->before;
    if (!measured) return renew(t, err);
    SN_TRY(put_in_force(t, true, err));
    free(session->tuned);
    session->tuned = t->keys;
    t->keys = NULL;
    return SN_OK;
}

sn_status sn_session_tune(sn_session *session, const sn_binding *inputs, size_t input_count,
                          size_t *changed, sn_error *err) {
    SN_TRY(sni_session_check_inputs(session, inputs, input_count, err));
    tuning t = {.session = session, .before = session->pool.choosing};
    bool cached = atomic_exchange(&session->cached, true); /* not what is only tried */
    sn_status status = measure_all(&t, inputs, input_count, err);
    size_t count = status == SN_OK ? choose(&t) : 0;
    sn_status finished = finish(&t, status == SN_OK, status == SN_OK ? err : NULL);
    if (status == SN_OK) status = finished;
    atomic_store(&session->cached, cached && !count);
    if (status == SN_OK && changed) *changed = count;
    free(t.keys);
    free(t.sites);
    return status;
}
