/* run.c - the run loop. */
#include "exec/run.h"

#include "base/checked.h"
#include "base/pages.h"
#include "exec/facts.h"
#include "ops/sinter/blocked.h"
#include "ops/sinter/part.h"
#include "ops/core/call.h"
#include "ops/core/tensor_util.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    SCRATCH_LIMIT = 64 /* pieces of memory one kernel may ask for */
};

/* One graph under way. Kernels' hosts point here. */
typedef struct activation {
    sni_run *run;
    sni_program *program;
    sni_frame *frame;
    const sni_plan *plan;
    const sni_datum *const *captures; /* of the step under way: its node's captured values */
    const sni_step *step;             /* the one under way */
    int depth;
    sni_symbols *symbols;             /* made when the first dynamic step needs it */
    const sni_impl *impl;             /* who ran the step */
    const sni_datum *given;           /* (outputs): tensors of the caller, where they are any */
    size_t scratch_used;              /* of the workspace's scratch, by the step under way */
    size_t scratch_asked;             /* all that the step asked for */
    size_t scratch_charged;           /* to the budget, until the step is over */
    sni_buffer *extra[SCRATCH_LIMIT]; /* where that was too small */
    int n_extra;
    sn_error *err;
} activation;

/* ---- What kernels may ask for ---- */

static size_t scratch_left(const activation *a) {
    const sni_buffer *own = a->frame->workspace->scratch;
    return own ? own->bytes - a->scratch_used : 0;
}

/* `bytes` of the workspace's scratch, which has them. What nobody has used yet is charged. */
static void *own_scratch(activation *a, sni_kernel *k, size_t bytes) {
    sni_workspace *w = a->frame->workspace;
    size_t end = a->scratch_used + bytes;
    if (end > w->scratch_touched) {
        if (sni_budget_take(k->budget, end - w->scratch_touched, k->err) != SN_OK) return NULL;
        a->scratch_charged += end - w->scratch_touched;
        if (w->scratch->mapped)
            sni_pages_use(w->scratch->data + w->scratch_touched, end - w->scratch_touched);
        w->scratch_touched = end;
    }
    a->scratch_used = end;
    return w->scratch->data + end - bytes;
}

/* From the workspace if it has so much left, else from memory that lasts until the step is over;
 * the workspace then grows, so that the next run needs none. */
static void *host_scratch(sni_kernel *k, size_t bytes) {
    activation *a = k->host_ctx;
    size_t rounded;
    if (!sni_add_size(bytes, SNI_ALIGN - 1, &rounded)) {
        sni_fail(k->err, SN_LIMIT, "the kernel asks for %zu bytes of memory", bytes);
        return NULL;
    }
    rounded &= ~(size_t)(SNI_ALIGN - 1);
    a->scratch_asked += rounded;
    sni_buffer *old;
    if (scratch_left(a) < rounded && a->n_extra < SCRATCH_LIMIT &&
        sni_workspace_reserve(a->frame->workspace, a->scratch_asked, &old)) {
        a->scratch_used = 0;
        if (old) a->extra[a->n_extra++] = old;
    }
    if (scratch_left(a) >= rounded) {
        void *memory = own_scratch(a, k, rounded);
        assert((uintptr_t)memory % SNI_ALIGN == 0);
        return memory;
    }
    if (a->n_extra == SCRATCH_LIMIT) {
        sni_fail(k->err, SN_LIMIT, "the kernel asks for more than %d pieces of memory",
                 SCRATCH_LIMIT);
        return NULL;
    }
    if (sni_buffer_new(bytes, k->budget, &a->extra[a->n_extra], k->err) != SN_OK) return NULL;
    return a->extra[a->n_extra++]->data;
}

static char *host_text(sni_kernel *k, size_t bytes) {
    activation *a = k->host_ctx;
    if (sni_budget_take(k->budget, bytes, k->err) != SN_OK) return NULL; /* until the run ends */
    char *p = sni_arena_alloc(&a->run->text, bytes);
    if (!p) sni_fail_memory(k->err);
    return p;
}

static sn_status poll_run(const sni_run *run, sn_error *err) {
    if (run->cancel && atomic_load_explicit(run->cancel, memory_order_relaxed))
        return sni_fail(err, SN_CANCELLED, "the run was cancelled");
    if (run->deadline_ns && sni_now_ns() >= run->deadline_ns)
        return sni_fail(err, SN_TIMEOUT, "the run reached its time limit");
    return SN_OK;
}

static sn_status host_poll(const sni_kernel *k, sn_error *err) {
    const activation *a = k->host_ctx;
    return poll_run(a->run, err);
}

static sn_status host_subgraph(sni_kernel *k, int32_t index, const sni_datum *const *in, int n_in,
                               sni_datum *out, int n_out) {
    activation *a = k->host_ctx;
    if (index < 0 || index >= k->node->n_subgraphs)
        return sni_fail(k->err, SN_INTERNAL, "there is no subgraph %d", (int)index);
    sni_program *child = sni_program_child(a->program, k->node, index);
    const sni_graph *g = sni_program_graph(child);
    if (n_in != g->n_inputs || n_out != g->n_outputs)
        return sni_fail(k->err, SN_INVALID_MODEL,
                        "its subgraph has %d inputs and %d outputs where %d and %d are needed",
                        g->n_inputs, g->n_outputs, n_in, n_out);
    SN_TRY(sni_poll(k));
    int32_t total = g->n_inputs + g->n_captures;
    const sni_datum **all = calloc((size_t)total + 1, sizeof *all);
    if (!all) return sni_fail_memory(k->err);
    for (int i = 0; i < n_in; i++) all[i] = in[i];
    for (int32_t i = 0; i < g->n_captures; i++) all[n_in + i] = a->captures[g->captures[i].slot];
    sn_status status = sni_run_program(a->run, child, all, total, out, a->depth + 1, k->err);
    free(all);
    return status;
}

static int host_prefetch(const sni_kernel *k, sni_span *spans) {
    const activation *a = k->host_ctx;
    const sni_step *next = a->step + 1, *end = a->plan->steps + a->plan->n_steps;
    while (next < end && next->view) next++;
    if (next >= end || next->dynamic || !next->impl || !next->impl->reads || !next->state) return 0;
    return next->impl->reads(next->state, spans);
}

static sni_run_extra *host_extra(const sni_kernel *k) {
    const activation *a = k->host_ctx;
    return &a->run->extra;
}

static unsigned host_watched(const sni_kernel *k) {
    const activation *a = k->host_ctx;
    return (a->run->on_step ? SNI_WATCHES_STEPS : 0u) |
           (a->run->on_value ? SNI_WATCHES_VALUES : 0u);
}

/* A transfer is told as a step inside the one under way. */
static void host_transfer(const sni_kernel *k, const sni_transfer *t) {
    const activation *a = k->host_ctx;
    if (!a->run->on_step) return;
    char label[256];
    snprintf(label, sizeof label, "%.*s", SNI_FMT(sni_node_label(a->plan->graph, k->node)));
    sn_step_event event = {.node = label,
                           .op = t->what,
                           .depth = a->depth + 1,
                           .start_ns = t->start_ns,
                           .end_ns = sni_now_ns(),
                           .output_bytes = t->bytes,
                           .input_bytes = t->bytes,
                           .impl = t->provider,
                           .shapes = ""};
    a->run->on_step(a->run->on_step_ctx, &event);
}

/* ---- Steps ---- */

static void end_step(activation *a, const sni_step *s) {
    sni_workspace *w = a->frame->workspace;
    for (int i = 0; i < a->n_extra; i++) sni_workspace_keep(w, a->extra[i]);
    a->n_extra = 0;
    sni_budget_give(&a->run->budget, a->scratch_charged);
    a->scratch_used = a->scratch_charged = 0;
    if (a->scratch_asked > w->scratch_wanted) w->scratch_wanted = a->scratch_asked;
    a->scratch_asked = 0;
    for (int32_t i = 0; i < s->n_release; i++) sni_datum_clear(&a->frame->slots[s->release[i]]);
}

/* Who runs a step whose types are known only now. */
static sn_status choose_dynamic(sni_kernel *k, const sni_type *const *in,
                                sn_status (**run)(sni_kernel *)) {
    activation *a = k->host_ctx;
    sni_assignment made;
    SN_TRY(sni_program_choose(a->program, k->node, in, &made, k->err));
    k->state = made.state;
    if (made.impl) *run = made.impl->run;
    a->impl = made.impl;
    return SN_OK;
}

/* Lets outputs of the step that are outputs of the graph be made in the caller's tensors. */
static sn_status offer_outputs(const activation *a, const sni_kernel *k, sni_arena *arena,
                               sni_call_options *options) {
    const sni_plan *p = a->plan;
    const sni_tensor **offered = NULL;
    for (int32_t i = 0; i < p->graph->n_outputs; i++) {
        if (p->outputs[i] < 0 || a->given[i].kind != SN_KIND_TENSOR) continue;
        const sni_datum *slot = &a->frame->slots[p->outputs[i]];
        for (int o = 0; o < k->n_out; o++) {
            if (k->out[o] != slot) continue;
            if (!offered) offered = SNI_NEW_ARRAY(arena, const sni_tensor *, k->n_out);
            if (!offered) return sni_fail_memory(a->err);
            offered[o] = &a->given[i].tensor;
        }
    }
    options->offered = offered;
    return SN_OK;
}

static sn_status call_dynamic(activation *a, sni_kernel *k) {
    if (!a->symbols) a->symbols = sni_symbols_new();
    if (!a->symbols) return sni_fail_memory(a->err);
    sni_arena *types = &a->frame->workspace->types;
    sni_arena_reset(types);
    sni_call_options options = {.choose = choose_dynamic};
    SN_TRY(offer_outputs(a, k, types, &options));
    return sni_call(k, a->symbols, types, &options);
}

static sn_status run_step(activation *a, const sni_step *s) {
    static const sni_host host = {.alloc = sni_call_alloc,
                                  .scratch = host_scratch,
                                  .text = host_text,
                                  .poll = host_poll,
                                  .subgraph = host_subgraph,
                                  .prefetch = host_prefetch,
                                  .extra = host_extra,
                                  .watched = host_watched,
                                  .transfer = host_transfer};
    const sni_node *n = s->node;
    const sni_datum **refs = a->frame->refs + s->refs;
    sni_kernel k = {.node = n,
                    .params = n->params,
                    .n_in = n->n_in,
                    .n_out = n->n_out,
                    .in = refs,
                    .out = (sni_datum *const *)(refs + n->n_in + n->n_captures),
                    .threads = a->run->threads,
                    .budget = &a->run->budget,
                    .host = &host,
                    .host_ctx = a,
                    .err = a->err};
    a->captures = refs + n->n_in;
    a->step = s;
    SN_TRY(poll_run(a->run, a->err));
    a->impl = s->impl;
    if (s->dynamic) return call_dynamic(a, &k);
    if (sni_call_is_void(&k)) return SN_OK;
    if (!s->impl) return sni_call_kernel(&k);
    k.state = s->state;
    return s->impl->run(&k);
}

/* Who ran a step: the provider of a part, an implementation, or the reference kernel. */
static const char *runner(const activation *a, const sni_node *n) {
    const sni_part_params *part = sni_is_part(n) ? n->params : NULL;
    if (part) return part->provider;
    return a->impl ? a->impl->name : "reference";
}

static void tell_step(const activation *a, const sni_step *s, uint64_t start) {
    uint64_t end = sni_now_ns();
    const sni_datum **in = a->frame->refs + s->refs;
    sni_step_facts facts;
    bool packed = s->impl && s->impl->packed_bytes && s->state;
    sni_step_describe(s->node, in, in + s->node->n_in + s->node->n_captures,
                      packed ? s->impl->packs : 0, &facts);
    if (packed) facts.input_bytes += s->impl->packed_bytes(s->state);
    char label[256];
    snprintf(label, sizeof label, "%.*s", SNI_FMT(sni_node_label(a->plan->graph, s->node)));
    sn_step_event event = {.node = label,
                           .op = s->node->op->name,
                           .depth = a->depth,
                           .start_ns = start,
                           .end_ns = end,
                           .output_bytes = facts.output_bytes,
                           .input_bytes = facts.input_bytes,
                           .macs = facts.macs,
                           .impl = runner(a, s->node),
                           .shapes = facts.shapes};
    a->run->on_step(a->run->on_step_ctx, &event);
}

/* A blocked tensor in plain layout; its memory is the caller's to clear. */
static sn_status unblock(const sni_tensor *t, int64_t channels, sni_datum *out) {
    const int64_t *d = t->dims;
    sni_datum plain = {.kind = SN_KIND_TENSOR};
    if (t->rank != 5 || d[1] * d[4] < channels) return SN_INTERNAL;
    SN_TRY(sni_tensor_new(&plain.tensor, t->dtype, 4, (int64_t[]){d[0], channels, d[2], d[3]}, NULL,
                          NULL));
    if (t->count) sni_from_blocked(t->data, plain.tensor.data, d[0], channels, d[2] * d[3], d[4]);
    *out = plain;
    return SN_OK;
}

static void tell_value(const activation *a, const sni_node *n, sni_str name,
                       const sni_datum *value) {
    char text[256];
    snprintf(text, sizeof text, "%.*s", SNI_FMT(name));
    a->run->on_value(a->run->on_value_ctx, text, n->op->name, value);
}

/* Tells of the values that a step made; of blocked ones, which are the optimiser's own, under the
 * name and in the layout of the model's. */
static void tell_values(const activation *a, const sni_step *s) {
    const sni_node *n = s->node;
    const sni_datum **out = a->frame->refs + s->refs + n->n_in + n->n_captures;
    for (int32_t i = 0; i < n->n_out && a->depth == 0; i++) {
        sni_datum plain;
        if (!out[i]) continue;
        const sni_value *v = a->plan->graph->values[n->out[i]];
        if (v->stands_for.n == 0) {
            tell_value(a, n, v->name, out[i]);
        } else if (unblock(&out[i]->tensor, v->channels, &plain) == SN_OK) {
            tell_value(a, n, v->stands_for, &plain);
            sni_datum_clear(&plain);
        }
    }
}

static sn_status run_steps(activation *a) {
    for (int32_t i = 0; i < a->plan->n_steps; i++) {
        const sni_step *s = &a->plan->steps[i];
        if (s->view && a->run->on_value) tell_values(a, s);
        if (s->view) continue;
        uint64_t start = a->run->on_step ? sni_now_ns() : 0;
        sn_status status = run_step(a, s);
        if (status == SN_OK && a->run->on_step) tell_step(a, s, start);
        if (status == SN_OK && a->run->on_value) tell_values(a, s);
        end_step(a, s);
        if (status != SN_OK)
            return sni_fail_context(a->err, status, "node '%.*s' (%s)",
                                    SNI_FMT(sni_node_label(a->plan->graph, s->node)),
                                    s->node->op->name);
    }
    return SN_OK;
}

/* ---- Inputs and outputs ---- */

static void bind_inputs(activation *a, const sni_datum *const *in, int32_t n_in) {
    for (int32_t i = 0; i < n_in; i++)
        if (a->plan->inputs[i] >= 0 && in[i]) a->frame->slots[a->plan->inputs[i]] = *in[i];
}

static bool same_shape(const sni_tensor *a, const sni_tensor *b) {
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

static void shape_text(const sni_tensor *t, char *text, size_t size) {
    int n = snprintf(text, size, "%s[", sn_dtype_name(t->dtype));
    for (int i = 0; i < t->rank && n > 0 && (size_t)n < size; i++)
        n += snprintf(text + n, size - (size_t)n, "%s%lld", i ? "," : "", (long long)t->dims[i]);
    if (n > 0 && (size_t)n < size) snprintf(text + n, size - (size_t)n, "]");
}

static sn_status refuse_output(const activation *a, int32_t i, const sni_tensor *got,
                               const sni_tensor *given) {
    char x[160], y[160];
    shape_text(got, x, sizeof x);
    shape_text(given, y, sizeof y);
    return sni_fail(a->err, SN_INVALID_ARGUMENT,
                    "output '%.*s' is %s and does not fit the tensor given for it, which is %s",
                    SNI_FMT(a->plan->graph->output_names[i]), x, y);
}

/* Gives outputs of known shape the memory they will be made in. */
static sn_status bind_outputs(activation *a, sni_datum *out) {
    const sni_graph *g = a->plan->graph;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        if (a->plan->outputs[i] < 0) continue;
        const sni_slot *s = &a->plan->slots[a->plan->outputs[i]];
        sni_datum *d = &a->frame->slots[a->plan->outputs[i]];
        if (s->place != SNI_PLACE_OUTPUT || d->kind != SN_KIND_NONE) continue;
        if (out[i].kind == SN_KIND_TENSOR) {
            if (!same_shape(&s->tensor, &out[i].tensor))
                return refuse_output(a, i, &s->tensor, &out[i].tensor);
            *d = out[i];
            continue;
        }
        const sni_tensor *t = &s->tensor;
        SN_TRY(sni_tensor_new(&d->tensor, t->dtype, t->rank, t->dims, &a->run->budget, a->err));
        d->kind = SN_KIND_TENSOR;
    }
    return SN_OK;
}

/* Fills a tensor that the caller gave with a value that was made elsewhere. */
static sn_status copy_output(const activation *a, int32_t i, const sni_datum *from, sni_datum *to) {
    if (from->kind != SN_KIND_TENSOR)
        return sni_fail(a->err, SN_INVALID_ARGUMENT, "output '%.*s' is not a tensor",
                        SNI_FMT(a->plan->graph->output_names[i]));
    if (!same_shape(&from->tensor, &to->tensor))
        return refuse_output(a, i, &from->tensor, &to->tensor);
    sni_copy_shared(a->run->threads, to->tensor.data, from->tensor.data,
                    sni_tensor_bytes(&from->tensor));
    return SN_OK;
}

/* Hands results over. A value that is several outputs is shared or copied. */
static sn_status take_outputs(activation *a, sni_datum *out) {
    const sni_graph *g = a->plan->graph;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        const sni_datum *d = sni_frame_at(a->frame, a->plan->outputs[i]);
        if (out[i].kind == SN_KIND_TENSOR)
            SN_TRY(copy_output(a, i, d, &out[i]));
        else
            SN_TRY(sni_datum_share(&out[i], d, &a->run->budget, a->err));
    }
    return SN_OK;
}

/* Leaves nothing of this run in the frame. */
static void unbind(activation *a) {
    for (int32_t i = 0; i < a->plan->n_slots; i++) {
        sni_datum *d = &a->frame->slots[i];
        switch (a->plan->slots[i].place) {
        case SNI_PLACE_DYNAMIC:
        case SNI_PLACE_OUTPUT:
            sni_datum_clear(d);
            break;
        case SNI_PLACE_INPUT:
            *d = (sni_datum){0};
            break;
        default:
            break;
        }
    }
}

/* ---- The whole ---- */

void sni_run_end(sni_run *run) {
    if (run->extra.state) run->extra.free(run->extra.state);
    run->extra.state = NULL;
    sni_arena_free(&run->text);
}

static sn_status run_frame(activation *a, const sni_datum *const *in, int32_t n_in,
                           sni_datum *out) {
    a->given = out;
    bind_inputs(a, in, n_in);
    sn_status status = bind_outputs(a, out);
    if (status == SN_OK) status = run_steps(a);
    if (status == SN_OK) status = take_outputs(a, out);
    unbind(a);
    return status;
}

/* Packed weights count as memory of a run, once. */
static sn_status charge_packed(sni_run *run, const sni_program *program, int depth, sn_error *err) {
    size_t packed = atomic_load(&sni_program_pool(program)->packed.used);
    if (depth > 0 || !run->budget.limit || !packed) return SN_OK;
    sn_status status = sni_budget_take(&run->budget, packed, err);
    return status == SN_OK ? SN_OK : sni_fail_context(err, status, "packed weights");
}

sn_status sni_run_program(sni_run *run, sni_program *program, const sni_datum *const *in,
                          int32_t n_in, sni_datum *out, int depth, sn_error *err) {
    assert(n_in == sni_program_graph(program)->n_inputs + sni_program_graph(program)->n_captures);
    SN_TRY(sni_check_nesting(depth, err));
    if (depth == 0) SN_TRY(poll_run(run, err)); /* there may be no step that asks */
    sni_type *types = calloc((size_t)n_in * 2 + 1, sizeof *types);
    activation *a = calloc(1, sizeof *a);
    sn_status status = types && a ? SN_OK : sni_fail_memory(err);
    if (status == SN_OK) {
        for (int32_t i = 0; i < n_in; i++) sni_datum_describe(in[i], &types[i], &types[n_in + i]);
        *a = (activation){.run = run, .program = program, .depth = depth, .err = err};
        sni_signature signature = {.types = types, .count = n_in};
        status = sni_program_frame(program, &signature, &run->budget, &a->frame, err);
    }
    if (status == SN_OK) {
        a->plan = sni_frame_plan(a->frame);
        status = charge_packed(run, program, depth, err);
        if (status == SN_OK) status = run_frame(a, in, n_in, out);
        sni_program_return(program, a->frame, &run->budget);
        sni_symbols_free(a->symbols);
    }
    free(types);
    free(a);
    return status;
}
