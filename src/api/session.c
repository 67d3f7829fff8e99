/* session.c - sessions: options, runs, and what can be asked of them. */
#include "api/cache.h"
#include "api/custom.h"
#include "api/session.h"
#include "api/value.h"
#include "base/threadpool.h"
#include "graph/input_defaults.h"
#include "ops/core/infer_graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLAN_CACHE_LEAST = 8 << 20, PLAN_CACHE_MOST = 64 << 20 };

struct sn_cancel {
    atomic_bool triggered;
};

void sn_session_options_init(sn_session_options *options, size_t size) {
    const sn_session_options defaults = {.size = sizeof defaults, .optimize = 3};
    sni_options_init(options, size, &defaults, sizeof defaults);
}

void sn_run_options_init(sn_run_options *options, size_t size) {
    const sn_run_options defaults = {.size = sizeof defaults};
    sni_options_init(options, size, &defaults, sizeof defaults);
}

/* ---- Making ---- */

void sni_session_log(const sn_session *s, sn_log_level level, const char *text) {
    if (s->options.log) s->options.log(s->options.log_ctx, level, text);
}

static sn_status check_operators(const sni_graph *g, int depth, sn_error *err) {
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
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

/* The moment that lies so many nanoseconds ahead; 0 for none. */
static uint64_t deadline_in(uint64_t limit_ns) {
    uint64_t now = limit_ns ? sni_now_ns() : 0;
    return limit_ns > UINT64_MAX - now ? UINT64_MAX : now + limit_ns;
}

/* Bytes of plans to keep: what the caller says, or in proportion to the model, so that the plans of
 * a small one do not outweigh its tensors. */
static size_t plan_cache_bytes(const sn_model *m, const sn_session_options *o) {
    if (o->plan_cache_bytes) return (size_t)o->plan_cache_bytes;
    uint64_t share = m->info.weight_bytes / 8;
    if (share < PLAN_CACHE_LEAST) return PLAN_CACHE_LEAST;
    return share < PLAN_CACHE_MOST ? (size_t)share : PLAN_CACHE_MOST;
}

/* Looks for the model's compiled variant in the cache, or remembers where it will go. */
static sn_status use_cache(sn_session *s, const sn_session_options *o, sn_error *err) {
    enum { LONGEST = 4096 };
    char path[LONGEST];
    if (!o->cache_folder || !sni_cache_path(s->model, o, path, sizeof path)) return SN_OK;
    s->kept = sni_cache_open(path, s->model);
    sni_session_log(s, SN_LOG_INFO, s->kept ? "found in the cache" : "not in the cache");
    if (s->kept) return SN_OK;
    s->cache_path = strdup(path);
    return s->cache_path ? SN_OK : sni_fail_memory(err);
}

/* Inputs of a copy are declared as scalars again where they were before it was optimised. */
static void declare_scalars(sni_graph *g, const sni_graph *as) {
    for (int32_t i = 0; i < g->n_inputs; i++) {
        const sni_type *t = &as->values[as->inputs[i]]->type;
        if (t->kind == SN_KIND_TENSOR && t->has_shape && t->rank == 0)
            g->values[g->inputs[i]]->type.has_shape = true;
    }
}

/* Optimises a copy of the model's graph; `f` is freed by the caller, after failure too. */
static sn_status make_variant(sn_session *s, const sn_model *source, bool settled,
                              sni_session_variant *f, sni_opt_report *report, sn_error *err) {
    const sn_session_options *o = &s->options;
    SN_TRY(sni_store_new(source->model->store, 0, &f->store, err));
    SN_TRY(sni_graph_clone(source->model->graph, f->store, &f->graph, err));
    if (settled)
        sni_graph_fold_input_defaults(f->graph);
    else
        SN_TRY(sni_infer_any_scalars(f->graph, err));
    int level = source->is_compiled ? 0 : o->optimize; /* that has been done */
    sni_opt_options options = {.level = level,
                               .disabled = o->disabled_rules,
                               .n_disabled = o->disabled_rule_count,
                               .portable = o->portable,
                               .deadline_ns = deadline_in(o->prepare_limit_ns)};
    SN_TRY(sni_optimize_with(f->graph, &options, report, err));
    if (!settled) declare_scalars(f->graph, source->model->graph);
    SN_TRY(sni_custom_prepare(f->graph, err));
    return sni_program_new(f->graph, &s->pool, &f->program, err);
}

static void free_variant(sni_session_variant *f) {
    sni_program_free(f->program);
    sni_store_release(f->store);
    *f = (sni_session_variant){0};
}

/* The disabled rules under the optimiser's own names for them, which stay. */
static sn_status keep_rules(sn_session *s, const sn_session_options *o, sn_error *err) {
    size_t count = o->disabled_rule_count;
    const char **kept = calloc(count + 1, sizeof *kept);
    if (!kept) return sni_fail_memory(err);
    for (size_t i = 0; i < count; i++) {
        const char *name;
        for (size_t j = 0; (name = sni_opt_name(j)); j++)
            if (strcmp(name, o->disabled_rules[i]) == 0) break;
        kept[i] = name;
    }
    s->options.disabled_rules = kept;
    return SN_OK;
}

/* The variant for a run: `given` tells that an input with a default has a value, or an input that
 * is declared as a scalar another shape. */
static sn_status choose_variant(sn_session *s, bool given, const sni_session_variant **out,
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

static sn_status prepare(sn_session *s, const sn_session_options *o, sn_error *err) {
    SN_TRY(sni_opt_check_names(o->disabled_rules, o->disabled_rule_count, err));
    SN_TRY(keep_rules(s, o, err));
    SN_TRY(use_cache(s, o, err));
    const sn_model *source = s->kept ? s->kept : s->model;
    SN_TRY(check_operators(source->model->graph, 0, err));
    SN_TRY(sni_pool_init(&s->pool, (size_t)o->memory_limit, plan_cache_bytes(s->model, o), err));
    s->has_pool = true;
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
    s->options.disabled_rules = NULL; /* until they are its own */
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
    sn_model_destroy(session->kept);
    sn_model_destroy(session->model);
    pthread_mutex_destroy(&session->lock);
    free((void *)session->options.disabled_rules);
    free(session->cache_path);
    free(session);
}

/* ---- Cancelling ---- */

sn_status sn_cancel_create(sn_cancel **out, sn_error *err) {
    if (!out) return sni_fail(err, SN_INVALID_ARGUMENT, "out is NULL");
    sn_cancel *c = calloc(1, sizeof *c);
    if (!c) return sni_fail_memory(err);
    atomic_init(&c->triggered, false);
    *out = c;
    return SN_OK;
}

void sn_cancel_trigger(sn_cancel *cancel) {
    if (cancel) atomic_store(&cancel->triggered, true);
}

void sn_cancel_reset(sn_cancel *cancel) {
    if (cancel) atomic_store(&cancel->triggered, false);
}

void sn_cancel_destroy(sn_cancel *cancel) {
    free(cancel);
}

/* ---- Matching bindings with ports ---- */

/* The port that a binding means: by name, or by its own position. */
static sn_status find_port(const sni_port *ports, size_t count, const sn_binding *b,
                           size_t position, const char *what, size_t *out, sn_error *err) {
    if (!b->name) {
        if (position >= count)
            return sni_fail(err, SN_INVALID_ARGUMENT, "%s %zu is given but the model has %zu", what,
                            position, count);
        *out = position;
        return SN_OK;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(ports[i].info.name, b->name) != 0) continue;
        *out = i;
        return SN_OK;
    }
    return sni_fail(err, SN_INVALID_ARGUMENT, "the model has no %s '%s'; %s%s%s", what, b->name,
                    count ? "its first is '" : "it has none", count ? ports[0].info.name : "",
                    count ? "'" : "");
}

static sn_status refuse_shape(const sni_port *p, const sn_value *v, sn_error *err) {
    char text[256];
    int n = 0;
    for (int i = 0; i < v->rank && (size_t)n < sizeof text; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64, i ? "," : "", v->dims[i]);
    if (!v->rank) text[0] = 0;
    return sni_fail(err, SN_INVALID_ARGUMENT, "input '%s' has shape [%s] where the model takes %s",
                    p->info.name, text, p->info.type_text);
}

/* Whether a value has another shape than the scalar that an input is declared as. ONNX Runtime does
 * not check the shape of such inputs, and programs rely on it: [1] is what most of them pass. */
static bool is_open_scalar(const sni_port *p, const sn_value *v) {
    return v->kind == SN_KIND_TENSOR && p->info.has_shape && p->info.rank == 0 && v->rank != 0;
}

static sn_status check_input(const sni_port *p, const sn_value *v, bool fixed, sn_error *err) {
    if (p->info.kind == SN_KIND_OPTIONAL) {
        if (v->kind == SN_KIND_NONE) return SN_OK;
    } else if (p->info.kind != SN_KIND_NONE && v->kind != p->info.kind) {
        return sni_fail(err, SN_INVALID_ARGUMENT, "input '%s' must be %s", p->info.name,
                        p->info.type_text);
    }
    if (v->kind != SN_KIND_TENSOR) return SN_OK;
    if (p->info.dtype && v->dtype != p->info.dtype)
        return sni_fail(err, SN_INVALID_ARGUMENT, "input '%s' is %s where the model takes %s",
                        p->info.name, sn_dtype_name(v->dtype), p->info.type_text);
    if (!p->info.has_shape) return SN_OK;
    if (is_open_scalar(p, v) && !fixed) return SN_OK;
    if (v->rank != p->info.rank) return refuse_shape(p, v, err);
    for (int i = 0; i < v->rank; i++)
        if (p->info.dims[i] >= 0 && v->dims[i] != p->info.dims[i]) return refuse_shape(p, v, err);
    return SN_OK;
}

/* Dimensions of the same name must agree between inputs. */
static sn_status check_symbols(const sn_model *m, sn_value *const *values, sn_error *err) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (!values[i] || values[i]->kind != SN_KIND_TENSOR || !m->inputs[i].info.has_shape)
            continue;
        for (int a = 0; a < values[i]->rank; a++) {
            if (m->inputs[i].info.dims[a] >= 0) continue;
            for (size_t j = 0; j <= i; j++) {
                if (!values[j] || values[j]->kind != SN_KIND_TENSOR || !m->inputs[j].info.has_shape)
                    continue;
                for (int b = 0; b < values[j]->rank; b++)
                    if (m->inputs[i].type->dims[a] == m->inputs[j].type->dims[b] &&
                        values[i]->dims[a] != values[j]->dims[b])
                        return sni_fail(err, SN_INVALID_ARGUMENT,
                                        "dimension '%s' is %" PRId64 " in input '%s' but %" PRId64
                                        " in input '%s'",
                                        m->inputs[i].info.symbols[a], values[i]->dims[a],
                                        m->inputs[i].info.name, values[j]->dims[b],
                                        m->inputs[j].info.name);
            }
        }
    }
    return SN_OK;
}

/* ---- Running ---- */

/* What one call works with. */
typedef struct call {
    sn_session *s;
    const sni_session_variant *variant;
    bool given;            /* the open variant is needed: see choose_variant() */
    sn_value **values;     /* given inputs, by port */
    sni_datum *in;         /* by graph input */
    const sni_datum **ins; /* NULL: left to its default */
    sni_datum *out;        /* by graph output */
    size_t *out_port;      /* by output binding */
    sn_value **made;       /* new values for the caller, by output binding */
    sn_error *err;
} call;

/* Room for a call; close_call() frees it, after failure too. */
static sn_status open_call(sn_session *s, call *c, sn_error *err) {
    size_t n_in = s->model->n_inputs, n_out = s->model->n_outputs;
    *c = (call){.s = s, .err = err};
    c->values = calloc(n_in + 1, sizeof *c->values);
    c->in = calloc(n_in + 1, sizeof *c->in);
    c->ins = calloc(n_in + 1, sizeof *c->ins);
    c->out = calloc(n_out + 1, sizeof *c->out);
    c->out_port = calloc(n_out + 1, sizeof *c->out_port);
    c->made = calloc(n_out + 1, sizeof *c->made);
    bool all = c->values && c->in && c->ins && c->out && c->out_port && c->made;
    return all ? SN_OK : sni_fail_memory(err);
}

/* Values that were made and not handed over go, too. */
static void close_call(call *c) {
    for (size_t i = 0; c->made && i < c->s->model->n_outputs; i++) sn_value_destroy(c->made[i]);
    for (size_t i = 0; c->in && i < c->s->model->n_inputs; i++) sni_datum_clear(&c->in[i]);
    free(c->made);
    free(c->values);
    free(c->in);
    free(c->ins);
    free(c->out);
    free(c->out_port);
}

/* Checks the inputs and puts each where the graph takes it. */
static sn_status bind_inputs(call *c, const sn_binding *inputs, size_t count) {
    const sn_model *m = c->s->model;
    for (size_t i = 0; i < count; i++) {
        size_t port;
        SN_TRY(find_port(m->inputs, m->n_inputs, &inputs[i], i, "input", &port, c->err));
        const char *name = m->inputs[port].info.name;
        if (!inputs[i].value)
            return sni_fail(c->err, SN_INVALID_ARGUMENT, "input '%s' has no value", name);
        if (c->values[port])
            return sni_fail(c->err, SN_INVALID_ARGUMENT, "input '%s' is given twice", name);
        SN_TRY(check_input(&m->inputs[port], inputs[i].value, m->is_compiled, c->err));
        c->values[port] = inputs[i].value;
        c->given |= m->inputs[port].optional || is_open_scalar(&m->inputs[port], inputs[i].value);
    }
    for (size_t i = 0; i < m->n_inputs; i++) {
        const sni_port *p = &m->inputs[i];
        if (!c->values[i] && p->optional) continue;
        if (!c->values[i])
            return sni_fail(c->err, SN_INVALID_ARGUMENT, "input '%s' (%s) is missing", p->info.name,
                            p->info.type_text);
        SN_TRY(sni_value_to_datum(c->values[i], &c->in[p->graph_index], c->err));
        c->ins[p->graph_index] = &c->in[p->graph_index];
    }
    return check_symbols(m, c->values, c->err);
}

/* True if a run can write a caller's tensor directly: same layout, aligned. */
static bool is_direct(const sn_value *v) {
    size_t width = sni_dtype_width(v->dtype);
    return v->dtype != SN_STRING && !sni_dtype_subbyte(v->dtype) &&
           (uintptr_t)v->data % (width > 8 ? 8 : width) == 0;
}

static sn_status bind_outputs(call *c, const sn_binding *outputs, size_t count) {
    const sn_model *m = c->s->model;
    for (size_t i = 0; i < count; i++) {
        size_t port;
        SN_TRY(find_port(m->outputs, m->n_outputs, &outputs[i], i, "output", &port, c->err));
        const char *name = m->outputs[port].info.name;
        for (size_t j = 0; j < i; j++)
            if (c->out_port[j] == port)
                return sni_fail(c->err, SN_INVALID_ARGUMENT, "output '%s' is asked for twice",
                                name);
        c->out_port[i] = port;
        const sn_value *v = outputs[i].value;
        if (!v) continue;
        if (v->kind != SN_KIND_TENSOR)
            return sni_fail(c->err, SN_INVALID_ARGUMENT,
                            "output '%s': only tensors can be filled in place", name);
        if (!is_direct(v)) continue;
        sni_datum *d = &c->out[m->outputs[port].graph_index];
        SN_TRY(sni_tensor_shape(&d->tensor, v->dtype, v->rank, v->dims, c->err));
        d->kind = SN_KIND_TENSOR;
        d->tensor.data = v->data;
    }
    return SN_OK;
}

/* A result into a caller's tensor that could not be written directly. */
static sn_status copy_out(sni_datum *d, sn_value *to, const char *name, sn_error *err) {
    sn_value *made;
    SN_TRY(sni_value_from_datum(d, &made, err));
    bool fits = made->kind == SN_KIND_TENSOR && made->dtype == to->dtype && made->rank == to->rank;
    for (int i = 0; fits && i < to->rank; i++) fits = made->dims[i] == to->dims[i];
    sn_status status = SN_OK;
    if (!fits)
        status =
            sni_fail(err, SN_INVALID_ARGUMENT,
                     "output '%s' has another type or shape than the tensor given for it", name);
    else if (to->dtype == SN_STRING) {
        sni_str *old = to->strings;
        to->strings = made->strings;
        made->strings = old;
    } else if (to->bytes) {
        memcpy(to->data, made->data, to->bytes);
    }
    sn_value_destroy(made);
    return status;
}

static sn_status take_outputs(call *c, const sn_binding *outputs, size_t count) {
    const sn_model *m = c->s->model;
    for (size_t i = 0; i < count; i++) {
        const sni_port *p = &m->outputs[c->out_port[i]];
        sni_datum *d = &c->out[p->graph_index];
        if (!outputs[i].value)
            SN_TRY(sni_value_from_datum(d, &c->made[i], c->err));
        else if (!is_direct(outputs[i].value))
            SN_TRY(copy_out(d, outputs[i].value, p->info.name, c->err));
    }
    return SN_OK;
}

/* Hands a copy of a value to the caller's function; one that cannot be copied is left out. */
static void tell_value(void *ctx, const char *name, const char *op, const sni_datum *datum) {
    const sn_run_options *o = ctx;
    sni_datum copy = {.kind = SN_KIND_NONE};
    sn_value *value = NULL;
    if (sni_datum_share(&copy, datum, NULL, NULL) == SN_OK &&
        sni_value_from_datum(&copy, &value, NULL) == SN_OK)
        o->on_value(o->on_value_ctx, name, op, value);
    sn_value_destroy(value);
    sni_datum_clear(&copy);
}

static void setup_run(const sn_session *s, const sn_run_options *o, sni_run *run) {
    *run = (sni_run){.on_step = o->on_step, .on_step_ctx = o->on_step_ctx};
    run->budget.limit = (size_t)s->options.memory_limit;
    if (o->on_value) {
        run->on_value = tell_value;
        run->on_value_ctx = (void *)o;
    }
    run->threads = o->threads ? o->threads : s->options.threads;
    if (run->threads == 0) run->threads = sni_threads_available();
    run->cancel = o->cancel ? &o->cancel->triggered : NULL;
    uint64_t limit = o->time_limit_ns ? o->time_limit_ns : s->options.time_limit_ns;
    run->deadline_ns = deadline_in(limit);
    sni_arena_init(&run->text, 0);
}

static sn_status run_call(call *c, const sn_run_options *o, const sn_binding *inputs,
                          size_t input_count, const sn_binding *outputs, size_t output_count) {
    SN_TRY(bind_inputs(c, inputs, input_count));
    SN_TRY(choose_variant(c->s, c->given, &c->variant, c->err));
    SN_TRY(bind_outputs(c, outputs, output_count));
    sni_run run;
    setup_run(c->s, o, &run);
    const sni_graph *g = c->variant->graph;
    const sn_model *source = c->variant == &c->s->main && c->s->kept ? c->s->kept : c->s->model;
    int before = sni_threads_limit(run.threads); /* packing weights is part of the run */
    sn_status status =
        sni_run_program(&run, c->variant->program, c->ins, g->n_inputs, c->out, 0, c->err);
    sni_threads_limit(before);
    if (status ==
        SN_INVALID_MODEL) { /* it was accepted: this call's sizes or values are at fault */
        status = SN_BAD_DATA;
        if (c->err) c->err->status = status;
    }
    if (status == SN_OK) status = sni_model_watch(source->model, c->err);
    if (status == SN_OK) status = take_outputs(c, outputs, output_count);
    for (int32_t i = 0; i < g->n_outputs; i++) sni_datum_clear(&c->out[i]);
    sni_arena_free(&run.text);
    return status;
}

static sn_status check_run_arguments(const sn_session *s, const sn_binding *inputs,
                                     size_t input_count, const sn_binding *outputs,
                                     size_t output_count, sn_error *err) {
    if (!s) return sni_fail(err, SN_INVALID_ARGUMENT, "session is NULL");
    if ((input_count && !inputs) || (output_count && !outputs))
        return sni_fail(err, SN_INVALID_ARGUMENT, "%s is NULL", inputs ? "outputs" : "inputs");
    if (input_count > s->model->n_inputs)
        return sni_fail(err, SN_INVALID_ARGUMENT, "%zu inputs are given and the model has %zu",
                        input_count, s->model->n_inputs);
    if (output_count > s->model->n_outputs)
        return sni_fail(err, SN_INVALID_ARGUMENT, "%zu outputs are asked for and the model has %zu",
                        output_count, s->model->n_outputs);
    return SN_OK;
}

/* After a run: what it packed goes to the cache, once. */
static void fill_cache(sn_session *s) {
    sn_error err = {0};
    char line[sizeof err.message + 32];
    if (!s->cache_path || atomic_exchange(&s->cached, true)) return;
    bool done = sni_cache_write(s->cache_path, s->options.cache_limit, s, &err) == SN_OK;
    snprintf(line, sizeof line, "%s%s",
             done ? "written to the cache" : "not cached: ", done ? "" : err.message);
    sni_session_log(s, done ? SN_LOG_INFO : SN_LOG_WARNING, line);
}

sn_status sn_session_run(sn_session *session, const sn_run_options *options,
                         const sn_binding *inputs, size_t input_count, sn_binding *outputs,
                         size_t output_count, sn_error *err) {
    SN_TRY(check_run_arguments(session, inputs, input_count, outputs, output_count, err));
    sn_run_options o;
    sn_run_options_init(&o, sizeof o);
    SN_TRY(sni_options_read(options, &o, sizeof o, "sn_run_options_init", err));
    call c;
    sn_status status = open_call(session, &c, err);
    if (status == SN_OK) status = run_call(&c, &o, inputs, input_count, outputs, output_count);
    if (status == SN_OK && c.variant == &session->main) fill_cache(session);
    for (size_t i = 0; status == SN_OK && i < output_count; i++) {
        if (c.made[i]) outputs[i].value = c.made[i];
        c.made[i] = NULL;
    }
    close_call(&c);
    return status;
}

sn_status sni_session_check_inputs(sn_session *s, const sn_binding *inputs, size_t count,
                                   sn_error *err) {
    SN_TRY(check_run_arguments(s, inputs, count, NULL, 0, err));
    call c;
    sn_status status = open_call(s, &c, err);
    if (status == SN_OK) status = bind_inputs(&c, inputs, count);
    close_call(&c);
    return status;
}

sn_status sn_session_compile(sn_session *session, sn_write_fn write, void *ctx, sn_error *err) {
    if (!session || !write) return sni_fail(err, SN_INVALID_ARGUMENT, "session or write is NULL");
    return sni_compiled_write(session->main.graph, session->model->model, session->main.program,
                              write, ctx, err);
}

uint64_t sn_session_trim(sn_session *session) {
    if (!session) return 0;
    sni_program_trim(session->main.program);
    pthread_mutex_lock(&session->lock);
    if (session->open.program) sni_program_trim(session->open.program);
    pthread_mutex_unlock(&session->lock);
    return sni_pool_trim(&session->pool);
}

/* ---- Asking ---- */

bool sn_session_rule(const sn_session *session, size_t index, const char **name, size_t *count) {
    if (!session) return false;
    const char *known = sni_opt_name(index);
    if (!known) return false;
    if (name) *name = known;
    if (count) *count = session->report.counts ? session->report.counts[index] : 0;
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

enum { KINDS = 256 };

/* Operators and how many nodes each has; those beyond KINDS are not counted. */
typedef struct kinds {
    const sni_op *op[KINDS];
    size_t count[KINDS], n;
} kinds;

static void count_kinds(const sni_graph *g, kinds *k, int depth) {
    for (const sni_node *n = sni_graph_first(g); n && depth < SNI_MAX_NESTING;
         n = sni_graph_next(g, n)) {
        size_t i = 0;
        for (int32_t sub = 0; sub < n->n_subgraphs; sub++)
            count_kinds(n->subgraphs[sub], k, depth + 1);
        while (i < k->n && k->op[i] != n->op) i++;
        if (i == KINDS || !n->op) continue;
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

typedef struct plan_bytes {
    uint64_t arena, lower_bound;
} plan_bytes;

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

static sn_status write_optimised(const sn_session *s, sn_format format, sn_write_fn write,
                                 void *ctx, sn_error *err) {
    const sni_model *m = s->model->model;
    const sni_session_variant *f = &s->main;
    if (format == SN_FORMAT_DOT) return sni_write_dot(f->graph, NULL, write, ctx, err);
    if (format != SN_FORMAT_ONNX) return sni_write_text(f->graph, m, write, ctx, err);
    bool defaults = s->main.graph->n_inputs < m->graph->n_inputs; /* the file keeps those inputs */
    SN_TRY(choose_variant((sn_session *)s, defaults, &f, err));
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
