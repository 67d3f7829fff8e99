/* session_run.c - runs of a session: bindings matched with the model's inputs and outputs, values
 * taken in and handed out. */
#include "api/session.h"
#include "api/value.h"
#include "base/threadpool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_BOUND = 4096 }; /* outputs of a run where some are asked for again */

struct sn_cancel {
    atomic_bool triggered;
};

void sn_run_options_init(sn_run_options *options, size_t size) {
    const sn_run_options defaults = {.size = sizeof defaults};
    sni_options_init(options, size, &defaults, sizeof defaults);
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
    for (size_t i = 0; i < count; i++) { /* most callers give them in order */
        size_t at = (position + i) % count;
        if (strcmp(ports[at].info.name, b->name) != 0) continue;
        *out = at;
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
    /* Programs know these beginnings from ONNX Runtime. */
    if (v->rank != p->info.rank)
        return sni_fail(
            err, SN_INVALID_ARGUMENT,
            "Invalid rank for input: %s Got: %d Expected: %d: input '%s' has shape [%s] "
            "where the model takes %s",
            p->info.name, v->rank, p->info.rank, p->info.name, text, p->info.type_text);
    return sni_fail(err, SN_INVALID_ARGUMENT,
                    "Got invalid dimensions for input: %s: input '%s' has shape [%s] where the "
                    "model takes %s",
                    p->info.name, p->info.name, text, p->info.type_text);
}

/* Whether a value has another shape than the scalar that an input is declared as. ONNX Runtime does
 * not check the shape of such inputs, and programs rely on it: [1] is what most of them pass. */
static bool is_open_scalar(const sni_port *p, const sn_value *v) {
    return v->kind == SN_KIND_TENSOR && p->info.has_shape && p->info.rank == 0 && v->rank != 0;
}

/* Sequences that are not empty say by their first element what they are of. */
static bool is_of_elements(const sni_port *p, const sn_value *v) {
    const sn_value_info *want = p->info.element;
    if (p->info.kind == SN_KIND_OPTIONAL && want) want = want->element; /* optional(seq(...)) */
    const sn_value *first = v->kind == SN_KIND_SEQUENCE ? sn_sequence_at(v, 0) : NULL;
    if (!first || !want || want->kind == SN_KIND_NONE) return true;
    if (sn_value_kind(first) != want->kind) return false;
    return want->kind != SN_KIND_TENSOR || !want->dtype || sn_tensor_dtype(first) == want->dtype;
}

/* `fixed`: the session has no other variant than the one for the shapes that are declared. */
static sn_status check_input(const sni_port *p, const sn_value *v, bool fixed, sn_error *err) {
    if (p->info.kind == SN_KIND_OPTIONAL) {
        if (v->kind == SN_KIND_NONE) return SN_OK;
    } else if (p->info.kind != SN_KIND_NONE && v->kind != p->info.kind) {
        return sni_fail(err, SN_INVALID_ARGUMENT, "input '%s' must be %s", p->info.name,
                        p->info.type_text);
    }
    if (!is_of_elements(p, v))
        return sni_fail(err, SN_INVALID_ARGUMENT, "input '%s' is a sequence of others than %s",
                        p->info.name, p->info.type_text);
    if (v->kind != SN_KIND_TENSOR) return SN_OK;
    if (p->info.dtype && v->dtype != p->info.dtype)
        return sni_fail(err, SN_INVALID_ARGUMENT,
                        "Unexpected input data type: input '%s' is %s where the model takes %s",
                        p->info.name, sn_dtype_name(v->dtype), p->info.type_text);
    if (!p->info.has_shape) return SN_OK;
    if (is_open_scalar(p, v) && !fixed) return SN_OK;
    if (v->rank != p->info.rank) return refuse_shape(p, v, err);
    for (int i = 0; i < v->rank; i++)
        if (p->info.dims[i] >= 0 && v->dims[i] != p->info.dims[i]) return refuse_shape(p, v, err);
    return SN_OK;
}

/* Looks for dimensions of one name that differ between inputs or within one; `text` says which. */
static bool symbols_agree(const sn_model *m, sn_value *const *values, char *text, size_t size) {
    for (size_t i = 0; i < m->n_inputs; i++) {
        if (!values[i] || values[i]->kind != SN_KIND_TENSOR || !m->inputs[i].info.has_shape)
            continue;
        for (int a = 0; a < m->inputs[i].info.rank; a++) {
            if (m->inputs[i].info.dims[a] >= 0) continue;
            for (size_t j = 0; j <= i; j++) {
                if (!values[j] || values[j]->kind != SN_KIND_TENSOR || !m->inputs[j].info.has_shape)
                    continue;
                for (int b = 0; b < m->inputs[j].info.rank; b++) {
                    if (m->inputs[i].type->dims[a] != m->inputs[j].type->dims[b] ||
                        values[i]->dims[a] == values[j]->dims[b])
                        continue;
                    snprintf(text, size,
                             "dimension '%s' is %" PRId64 " in input '%s' but %" PRId64
                             " in input '%s'",
                             m->inputs[i].info.symbols[a], values[i]->dims[a],
                             m->inputs[i].info.name, values[j]->dims[b], m->inputs[j].info.name);
                    return false;
                }
            }
        }
    }
    return true;
}

/* ---- Running ---- */

/* What one call works with. */
typedef struct call {
    sn_session *s;
    const sni_session_variant *variant;
    bool given;            /* the open variant is needed: see sni_session_choose_variant() */
    sn_value **values;     /* given inputs, by port */
    sni_datum *in;         /* by graph input */
    const sni_datum **ins; /* NULL: left to its default */
    sni_datum *out;        /* by graph output */
    size_t *out_port;      /* by output binding */
    bool *again;           /* by output binding: an earlier one is of the same output */
    sn_value **made;       /* new values for the caller, by output binding */
    size_t n_bound;        /* output bindings */
    sn_error *err;
} call;

/* Allocates the lists of a call with `n_bound` output bindings; close_call() frees them, after
 * failure too. */
static sn_status open_call(sn_session *s, size_t n_bound, call *c, sn_error *err) {
    size_t n_in = s->model->n_inputs, n_out = s->model->n_outputs;
    *c = (call){.s = s, .err = err};
    c->values = calloc(n_in + 1, sizeof *c->values);
    c->in = calloc(n_in + 1, sizeof *c->in);
    c->ins = calloc(n_in + 1, sizeof *c->ins);
    c->out = calloc(n_out + 1, sizeof *c->out);
    c->out_port = calloc(n_bound + 1, sizeof *c->out_port);
    c->again = calloc(n_bound + 1, sizeof *c->again);
    c->made = calloc(n_bound + 1, sizeof *c->made);
    c->n_bound = n_bound;
    bool all = c->values && c->in && c->ins && c->out && c->out_port && c->again && c->made;
    return all ? SN_OK : sni_fail_memory(err);
}

/* Values that were made and not handed over go, too. */
static void close_call(call *c) {
    for (size_t i = 0; c->made && i < c->n_bound; i++) sn_value_destroy(c->made[i]);
    for (size_t i = 0; c->in && i < c->s->model->n_inputs; i++) sni_datum_clear(&c->in[i]);
    free(c->made);
    free(c->values);
    free(c->in);
    free(c->ins);
    free(c->out);
    free(c->out_port);
    free(c->again);
}

/* Whether nothing in a model reads an input, so that a run need not give it. */
static bool is_unused(const sn_model *m, const sni_port *p) {
    const sni_graph *g = m->model->graph;
    return g->values[g->inputs[p->graph_index]]->use_count == 0;
}

/* Checks the inputs and puts each where the graph takes it. Dimensions that share a name may
 * differ, as in ONNX Runtime: the session says so in its log and runs a variant that does not count
 * on it. */
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
        if (!c->values[i] && (p->optional || is_unused(m, p))) continue;
        if (!c->values[i])
            return sni_fail(c->err, SN_INVALID_ARGUMENT, "input '%s' (%s) is missing", p->info.name,
                            p->info.type_text);
        SN_TRY(sni_value_to_datum(c->values[i], &c->in[p->graph_index], c->err));
        c->ins[p->graph_index] = &c->in[p->graph_index];
    }
    char text[512];
    if (symbols_agree(m, c->values, text, sizeof text)) return SN_OK;
    if (m->is_compiled) return sni_fail(c->err, SN_INVALID_ARGUMENT, "%s", text);
    sni_session_log(c->s, SN_LOG_WARNING, text);
    c->given = true;
    return SN_OK;
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
            if (c->out_port[j] == port) c->again[i] = true;
        c->out_port[i] = port;
        const sn_value *v = outputs[i].value;
        if (!v) continue;
        if (v->kind != SN_KIND_TENSOR)
            return sni_fail(c->err, SN_INVALID_ARGUMENT,
                            "output '%s': only tensors can be filled in place", name);
        if (!is_direct(v) || c->again[i]) continue;
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

/* An output that was asked for before: the same value once more. */
static sn_status take_again(call *c, const sn_binding *output, size_t i) {
    const sni_port *p = &c->s->model->outputs[c->out_port[i]];
    sni_datum copy = {.kind = SN_KIND_NONE};
    sn_status status = sni_datum_share(&copy, &c->out[p->graph_index], NULL, c->err);
    if (status == SN_OK && output->value)
        status = copy_out(&copy, output->value, p->info.name, c->err);
    else if (status == SN_OK)
        status = sni_value_from_datum(&copy, &c->made[i], c->err);
    sni_datum_clear(&copy);
    return status;
}

static sn_status take_outputs(call *c, const sn_binding *outputs, size_t count) {
    const sn_model *m = c->s->model;
    for (size_t i = 0; i < count; i++)
        if (c->again[i]) SN_TRY(take_again(c, &outputs[i], i));
    for (size_t i = 0; i < count; i++) {
        const sni_port *p = &m->outputs[c->out_port[i]];
        sni_datum *d = &c->out[p->graph_index];
        if (c->again[i]) continue;
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

/* The run's options over the session's. */
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
    run->deadline_ns = sni_deadline_in(limit);
    sni_arena_init(&run->text, 0);
}

/* Everything from the caller's bindings to the values handed back, which are in `made`. */
static sn_status run_call(call *c, const sn_run_options *o, const sn_binding *inputs,
                          size_t input_count, const sn_binding *outputs, size_t output_count) {
    SN_TRY(bind_inputs(c, inputs, input_count));
    SN_TRY(sni_session_choose_variant(c->s, c->given, &c->variant, c->err));
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
    sni_run_end(&run);
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
    if (output_count > s->model->n_outputs && output_count > MOST_BOUND)
        return sni_fail(err, SN_INVALID_ARGUMENT, "%zu outputs are asked for and the model has %zu",
                        output_count, s->model->n_outputs);
    return SN_OK;
}

sn_status sn_session_run(sn_session *session, const sn_run_options *options,
                         const sn_binding *inputs, size_t input_count, sn_binding *outputs,
                         size_t output_count, sn_error *err) {
    SN_TRY(check_run_arguments(session, inputs, input_count, outputs, output_count, err));
    sn_run_options o;
    sn_run_options_init(&o, sizeof o);
    SN_TRY(sni_options_read(options, &o, sizeof o, "sn_run_options_init", err));
    call c;
    sn_status status = open_call(session, output_count, &c, err);
    if (status == SN_OK) status = run_call(&c, &o, inputs, input_count, outputs, output_count);
    if (status == SN_OK && c.variant == &session->main) sni_session_fill_cache(session);
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
    sn_status status = open_call(s, 0, &c, err);
    if (status == SN_OK) status = bind_inputs(&c, inputs, count);
    close_call(&c);
    return status;
}
