/* session.c - sessions from making to destroying: their optimised graphs, and their way to the
 * cache of compiled models. Runs are session_run.c, what can be asked of a session is
 * session_inspect.c. */
#include "api/cache.h"
#include "api/custom.h"
#include "api/session.h"
#include "ops/core/infer_graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MIN_PLAN_CACHE = 8 << 20, MAX_PLAN_CACHE = 64 << 20 };

void sn_session_options_init(sn_session_options *options, size_t size) {
    const sn_session_options defaults = {.size = sizeof defaults, .optimize = 3};
    sni_options_init(options, size, &defaults, sizeof defaults);
}

/* ---- Making ---- */

void sni_session_log(const sn_session *s, sn_log_level level, const char *text) {
    if (s->options.log) s->options.log(s->options.log_ctx, level, text);
}

/* Refuses a graph with an operator that this build cannot run; import has kept it for inspection.
 */
static sn_status check_operators(const sni_graph *g, int depth, sn_error *err) {
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        if (sni_is_part(n)) continue;
        if (!n->op || (!n->op->ref && !n->op->body))
            return sni_fail(err, SN_UNSUPPORTED,
                            "node '%.*s': operator %.*s%s%.*s (opset %" PRId64 ") is not supported",
                            SNI_FMT(sni_node_label(g, n)), SNI_FMT(n->domain),
                            n->domain.n ? "." : "", SNI_FMT(n->type), n->version);
        for (int32_t i = 0; i < n->n_subgraphs && depth < SNI_MAX_NESTING; i++)
            SN_TRY(check_operators(n->subgraphs[i], depth + 1, err));
    }
    return SN_OK;
}

static void report_optimisation(const sn_session *s) {
    char line[256];
    snprintf(line, sizeof line, "optimised %zu nodes to %zu", s->report.nodes_before,
             s->report.nodes_after);
    sni_session_log(s, SN_LOG_INFO, line);
}

/* A model's warnings, for whoever hears of sessions only. */
static void report_warnings(const sn_session *s) {
    const char *text;
    for (size_t i = 0; (text = sn_model_warning(s->model, i)); i++)
        sni_session_log(s, SN_LOG_WARNING, text);
}

/* Bytes of plans to keep: what the caller says, or in proportion to the model, so that the plans of
 * a small one do not outweigh its tensors. */
static size_t plan_cache_bytes(const sn_model *m, const sn_session_options *o) {
    if (o->plan_cache_bytes) return (size_t)o->plan_cache_bytes;
    uint64_t share = m->info.weight_bytes / 8;
    if (share < MIN_PLAN_CACHE) return MIN_PLAN_CACHE;
    return share < MAX_PLAN_CACHE ? (size_t)share : MAX_PLAN_CACHE;
}

/* Looks for the model's compiled variant in the cache, or remembers where it will go. */
static sn_status use_cache(sn_session *s, const sn_session_options *o, sn_error *err) {
    enum { MAX_PATH_LENGTH = 4096 };
    char path[MAX_PATH_LENGTH];
    if (!o->cache_folder || o->provider_count || !sni_cache_path(s->model, o, path, sizeof path))
        return SN_OK;
    s->kept = sni_cache_open(path, s->model);
    sni_session_log(s, SN_LOG_INFO, s->kept ? "found in the cache" : "not in the cache");
    if (s->kept) return SN_OK;
    s->cache_path = strdup(path);
    return s->cache_path ? SN_OK : sni_fail_memory(err);
}

/* Inputs of a copy are declared again as they were before it was optimised. */
static void declare_inputs(sni_graph *g, const sni_graph *as) {
    for (int32_t i = 0; i < g->n_inputs; i++)
        g->values[g->inputs[i]]->type = as->values[as->inputs[i]]->type;
}

/* Optimises a copy of the model's graph. `fold_defaults`: inputs with a default are constants in
 * it; otherwise they are inputs, and inputs may have other shapes than declared where
 * sni_infer_any_inputs() says so. `f` is freed by the caller, after failure too. */
static sn_status make_variant(sn_session *s, const sn_model *source, bool fold_defaults,
                              sni_session_variant *f, sni_opt_report *report, sn_error *err) {
    const sn_session_options *o = &s->options;
    SN_TRY(sni_store_new(source->model->store, 0, &f->store, err));
    SN_TRY(sni_graph_clone(source->model->graph, f->store, &f->graph, err));
    if (fold_defaults)
        sni_graph_fold_input_defaults(f->graph);
    else
        SN_TRY(sni_infer_any_inputs(f->graph, err));
    int level = source->is_compiled ? 0 : o->optimize; /* that has been done */
    sni_opt_options options = {.level = level,
                               .disabled = o->disabled_rules,
                               .n_disabled = o->disabled_rule_count,
                               .portable = o->portable,
                               .deadline_ns = sni_deadline_in(o->prepare_limit_ns),
                               .memory_limit = (size_t)o->memory_limit};
    if (s->engines.count) {
        options.partition = sni_engines_partition;
        options.partition_ctx = &s->engines;
    }
    SN_TRY(sni_optimize(f->graph, &options, report, err));
    if (s->engines.count) {
        SN_TRY(check_operators(f->graph, 0, err)); /* those that providers left */
        sni_engines_connect(f->graph);
    }
    if (!fold_defaults) declare_inputs(f->graph, source->model->graph);
    SN_TRY(sni_custom_prepare(f->graph, err));
    return sni_program_new(f->graph, &s->pool, &f->program, err);
}

static void free_variant(sni_session_variant *f) {
    sni_program_free(f->program);
    sni_store_release(f->store);
    *f = (sni_session_variant){0};
}

static void warn_of_name(const sn_session *s, const char *given, const char *current) {
    char line[128];
    snprintf(line, sizeof line, "'%s' is an old name of '%s', which the next version will not know",
             given, current);
    sni_session_log(s, SN_LOG_WARNING, line);
}

/* The disabled rules under the optimiser's own names for them, which stay. */
static sn_status keep_rules(sn_session *s, const sn_session_options *o, sn_error *err) {
    size_t count = o->disabled_rule_count;
    const char **kept = calloc(count + 1, sizeof *kept);
    if (!kept) return sni_fail_memory(err);
    for (size_t i = 0; i < count; i++) {
        const char *name, *given = o->disabled_rules[i], *current = sni_opt_current_name(given);
        for (size_t j = 0; (name = sni_opt_name(j)); j++)
            if (strcmp(name, current) == 0) break;
        kept[i] = name;
        if (current != given) warn_of_name(s, given, current);
    }
    s->options.disabled_rules = kept;
    return SN_OK;
}

/* Whether a model has convolutions or layers of narrow floats. */
static bool has_narrow_weights(const sni_graph *g) {
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_const *c = g->values[i] ? g->values[i]->constant : NULL;
        if (c && c->tensor.rank > 1 &&
            (c->tensor.dtype == SN_FLOAT16 || c->tensor.dtype == SN_BFLOAT16))
            return true;
    }
    return false;
}

/* How the session's programs choose who runs their nodes; a compiled model has decided it. */
static void set_choosing(sni_choosing *c, const sn_model *source, const sn_session_options *o) {
    const sni_compiled *compiled = &source->compiled;
    sni_opt_options options = {.level = o->optimize,
                               .disabled = o->disabled_rules,
                               .n_disabled = o->disabled_rule_count,
                               .portable = o->portable,
                               .precision = o->precision};
    *c = (sni_choosing){.numerics = sni_opt_numerics(&options)};
    if (has_narrow_weights(source->model->graph)) c->numerics |= SNI_NUMERICS_NARROW;
    if (source->is_compiled)
        *c = (sni_choosing){
            .numerics = compiled->numerics, .tuned = compiled->tuned, .n_tuned = compiled->n_tuned};
}

sn_status sni_session_choose_variant(sn_session *s, bool given, const sni_session_variant **out,
                                     sn_error *err) {
    sni_opt_report report = {0};
    sn_status status = SN_OK;
    *out = &s->main;
    if (!given) return SN_OK;
    pthread_mutex_lock(&s->lock);
    if (!s->open.program) status = make_variant(s, s->model, false, &s->open, &report, err);
    if (status != SN_OK) free_variant(&s->open);
    pthread_mutex_unlock(&s->lock);
    *out = &s->open;
    return status;
}

/* All of making but the struct itself; after a failure sn_session_destroy() frees what there is. */
static sn_status prepare(sn_session *s, const sn_session_options *o, sn_error *err) {
    SN_TRY(sni_opt_check_names(o->disabled_rules, o->disabled_rule_count, err));
    SN_TRY(keep_rules(s, o, err));
    report_warnings(s);
    SN_TRY(use_cache(s, o, err));
    const sn_model *source = s->kept ? s->kept : s->model;
    SN_TRY(sni_engines_open(&s->engines, o, err));
    if (!s->engines.count) SN_TRY(check_operators(source->model->graph, 0, err));
    if (s->engines.count && source->is_compiled)
        return sni_fail(err, SN_UNSUPPORTED,
                        "a compiled model runs on the CPU that it was made for; providers take the "
                        "model itself");
    SN_TRY(sni_pool_init(&s->pool, (size_t)o->memory_limit, plan_cache_bytes(s->model, o), err));
    s->has_pool = true;
    set_choosing(&s->pool.choosing, source, &s->options);
    if (source->is_compiled) s->pool.finished = &source->compiled.finished;
    SN_TRY(make_variant(s, source, true, &s->main, &s->report, err));
    report_optimisation(s);
    return sni_model_intact(source->model, err);
}

sn_status sn_session_create(const sn_model *model, const sn_session_options *options,
                            sn_session **out, sn_error *err) {
    if (!model || !out) return sni_fail(err, SN_INVALID_ARGUMENT, "model or out is NULL");
    sn_session_options o;
    sn_session_options_init(&o, sizeof o);
    SN_TRY(sni_options_read(options, &o, sizeof o, "sn_session_options_init", err));
    if (o.threads < 0 || o.optimize < 0 || o.optimize > 3)
        return sni_fail(err, SN_INVALID_ARGUMENT,
                        "threads is %d (0 or more) and optimize is %d (0 to 3)", o.threads,
                        o.optimize);
    if (o.precision < SN_PRECISION_EXACT || o.precision > SN_PRECISION_FP16)
        return sni_fail(err, SN_INVALID_ARGUMENT, "there is no precision %d (0 to 3)",
                        (int)o.precision);
    if (o.disabled_rule_count && !o.disabled_rules)
        return sni_fail(err, SN_INVALID_ARGUMENT, "disabled_rules is NULL");
    sn_session *s = calloc(1, sizeof *s);
    if (!s || pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return sni_fail_memory(err);
    }
    s->model = sni_model_retain((sn_model *)model);
    s->options = o;
    s->options.disabled_rules = NULL; /* the caller's; keep_rules() makes our own */
    s->options.cache_folder = NULL;
    s->options.providers = NULL; /* they are open */
    s->options.provider_count = 0;
    atomic_init(&s->cached, false);
    sn_status status = prepare(s, &o, err);
    if (status == SN_OK)
        *out = s;
    else
        sn_session_destroy(s);
    return status;
}

void sn_session_destroy(sn_session *session) {
    if (!session) return;
    sni_program_free(session->main.program);
    sni_program_free(session->open.program);
    if (session->has_pool) sni_pool_free(&session->pool);
    sni_store_release(session->main.store);
    sni_store_release(session->open.store);
    sni_engines_close(&session->engines);
    sn_model_destroy(session->kept);
    sn_model_destroy(session->model);
    pthread_mutex_destroy(&session->lock);
    free((void *)session->options.disabled_rules);
    free(session->cache_path);
    free(session->tuned);
    free(session);
}

/* ---- Compiling and trimming ---- */

void sni_session_fill_cache(sn_session *s) {
    sn_error err = {0};
    char line[sizeof err.message + 32];
    if (!s->cache_path || atomic_exchange(&s->cached, true)) return;
    bool done = sni_cache_write(s->cache_path, s->options.cache_limit, s, &err) == SN_OK;
    snprintf(line, sizeof line, "%s%s",
             done ? "written to the cache" : "not cached: ", done ? "" : err.message);
    sni_session_log(s, done ? SN_LOG_INFO : SN_LOG_WARNING, line);
}

sn_status sn_session_compile(sn_session *session, sn_write_fn write, void *ctx, sn_error *err) {
    if (!session || !write) return sni_fail(err, SN_INVALID_ARGUMENT, "session or write is NULL");
    if (session->engines.count)
        return sni_fail(err, SN_UNSUPPORTED,
                        "a session with providers cannot be written as a compiled model; what "
                        "providers compile is kept in cache_folder");
    return sni_compiled_write(session->model->model, session->main.program, write, ctx, err);
}

uint64_t sn_session_trim(sn_session *session) {
    if (!session) return 0;
    sni_program_trim(session->main.program);
    pthread_mutex_lock(&session->lock);
    if (session->open.program) sni_program_trim(session->open.program);
    pthread_mutex_unlock(&session->lock);
    return sni_pool_trim(&session->pool) + sni_engines_trim(&session->engines);
}
