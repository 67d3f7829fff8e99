/* tune.c - choosing how nodes are computed by measuring them in runs of the whole model, where they
 * find caches as they will find them later. */
#include "api/session.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    LEAST_RUNS = 5, /* that are measured with each setting */
    MOST_RUNS = 50,
    ENOUGH_NS = 50000000, /* of such runs */
    WORTH_PERCENT = 97    /* of the estimated way's time at most: less may be chance */
};

/* A node with settings to choose from. */
typedef struct site {
    sni_node *node;
    sni_str label;
    sni_settings settings;
    uint64_t least[SNI_MOST_SETTINGS]; /* ns, of all runs; 0: not measured */
    int chosen;                        /* index into the settings */
} site;

typedef struct tuning {
    sn_session *session;
    site *sites;
    size_t count;
    int rounds; /* the most settings that a site has */
    int round;  /* under way */
} tuning;

/* ---- Sites ---- */

static sn_status find_sites(tuning *t, sn_error *err) {
    sni_graph *g = t->session->main.graph;
    t->sites = calloc((size_t)g->node_count + 1, sizeof *t->sites);
    if (!t->sites) return sni_fail_memory(err);
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        site *s = &t->sites[t->count];
        sni_ep_settings(g, n, &s->settings);
        if (s->settings.count < 2) continue;
        s->node = n;
        s->label = sni_node_label(g, n);
        if (s->settings.count > t->rounds) t->rounds = s->settings.count;
        t->count++;
    }
    return SN_OK;
}

/* The setting of a site in a round; rounds that it does not need repeat the first. */
static int setting_in(const site *s, int round) {
    return round < s->settings.count ? round : 0;
}

static sn_status set(sni_graph *g, const site *s, int setting, sn_error *err) {
    sni_attr attr = {.name = sni_str_of(s->settings.attr),
                     .kind = SNI_ATTR_INT,
                     .u.i = s->settings.values[setting]};
    SN_TRY(sni_node_set_attr(g, s->node, &attr, err));
    return sni_node_bind(g, s->node, err);
}

/* A program of the graph as it is now takes the place of the one there was. */
static sn_status renew(sn_session *session, sn_error *err) {
    sni_program *made;
    SN_TRY(sni_program_new(session->main.graph, &session->pool, &made, err));
    sni_program_free(session->main.program);
    session->main.program = made;
    return SN_OK;
}

/* ---- Measuring ---- */

/* Nodes of the same label share their times. */
static void note_step(void *ctx, const sn_step_event *event) {
    tuning *t = ctx;
    uint64_t ns = event->end_ns - event->start_ns;
    for (size_t i = 0; event->depth == 0 && i < t->count; i++) {
        site *s = &t->sites[i];
        if (!sni_str_is(s->label, event->node)) continue;
        uint64_t *least = &s->least[setting_in(s, t->round)];
        if (!*least || ns < *least) *least = ns ? ns : 1;
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
    for (int i = 0; i < MOST_RUNS && (i < LEAST_RUNS || sni_now_ns() - start < ENOUGH_NS); i++)
        SN_TRY(run_once(t, &o, inputs, count, err));
    return SN_OK;
}

static sn_status measure_all(tuning *t, const sn_binding *inputs, size_t count, sn_error *err) {
    for (t->round = 0; t->round < t->rounds; t->round++) {
        for (size_t i = 0; i < t->count; i++)
            SN_TRY(
                set(t->session->main.graph, &t->sites[i], setting_in(&t->sites[i], t->round), err));
        SN_TRY(renew(t->session, err));
        SN_TRY(measure(t, inputs, count, err));
    }
    return SN_OK;
}

/* ---- Choosing ---- */

static void tell(const tuning *t, const site *s) {
    char line[512];
    snprintf(line, sizeof line, "tuned '%.*s': %s, %.3f ms instead of %.3f", SNI_FMT(s->label),
             s->settings.names[s->chosen], (double)s->least[s->chosen] * 1e-6,
             (double)s->least[0] * 1e-6);
    sni_session_log(t->session, SN_LOG_INFO, line);
}

static size_t choose(tuning *t) {
    size_t changed = 0;
    for (size_t i = 0; i < t->count; i++) {
        site *s = &t->sites[i];
        for (int k = 1; k < s->settings.count; k++)
            if (s->least[k] && s->least[k] < s->least[s->chosen]) s->chosen = k;
        if (s->least[s->chosen] * 100 > s->least[0] * WORTH_PERCENT) s->chosen = 0;
        if (!s->chosen) continue;
        tell(t, s);
        changed++;
    }
    return changed;
}

/* Sets what was chosen; after a failure that is what was there before. */
static sn_status settle(tuning *t, sn_error *err) {
    for (size_t i = 0; i < t->count; i++)
        SN_TRY(set(t->session->main.graph, &t->sites[i], t->sites[i].chosen, err));
    return renew(t->session, err);
}

sn_status sn_session_tune(sn_session *session, const sn_binding *inputs, size_t input_count,
                          size_t *changed, sn_error *err) {
    SN_TRY(sni_session_check_inputs(session, inputs, input_count, err));
    tuning t = {.session = session};
    size_t count = 0;
    bool cached = atomic_exchange(&session->cached, true); /* not what is only tried */
    sn_status status = find_sites(&t, err);
    if (status == SN_OK && t.count) {
        status = measure_all(&t, inputs, input_count, err);
        if (status == SN_OK) count = choose(&t);
        sn_status settled = settle(&t, status == SN_OK ? err : NULL);
        if (status == SN_OK) status = settled;
    }
    atomic_store(&session->cached, cached && !count);
    if (status == SN_OK && changed) *changed = count;
    free(t.sites);
    return status;
}
