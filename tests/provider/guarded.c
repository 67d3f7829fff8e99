/* guarded.c - a provider for tests: a device of its own in the process, whose memory faults when
 * the host touches it, whose queues are late, and which fails when it is told to.
 *
 * It computes with the engine's own library: a part is a session. Settings:
 *   claim=WHAT        all (default), none, parts (each node a part), odd (every other node), wild
 *                     (nodes that do not exist), twice (overlapping parts), hole (a part that is
 * not convex: the first and the last node) fail=WHAT         open, claim, compile, prepare, alloc,
 * queue, copy, run, wait, silent (run says no reason), shape (run gives a wrong shape), missing
 * (run makes no output) at=N              at the N-th such call (default 1), and often=1 at all
 * after it seed=N            instead of `at`: each call fails with one chance in 8 delay=US that
 * work waits in a queue */
#include "sinter_ep.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u

struct sn_ep {
    const char *claim, *fail;
    char texts[2][32];
    int at, often, delay;
    unsigned long seed;
    pthread_mutex_t lock; /* of the counts below */
    int calls;            /* of the kind that fails */
    int blocks, queues, programs;
};

struct sn_ep_memory {
    sn_ep *ep;
    unsigned char *pages; /* the first is a guard, and so is the last */
    size_t bytes;         /* of the pages between */
    pthread_mutex_t lock;
    int open; /* work that is using them */
};

struct sn_ep_program {
    sn_ep *ep;
    sn_model *model;
    sn_session *session;
    size_t inputs, outputs;
};

struct sn_ep_ready {
    sn_ep_program *program;
};

/* A piece of work: a copy, or a run with tables of its own. */
typedef struct work {
    struct work *next;
    sn_ep_program *program; /* NULL: a copy */
    sn_ep_tensor from, to;
    sn_ep_tensor *in, *out;
} work;

struct sn_ep_queue {
    sn_ep *ep;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    work *first, *last;
    int busy, stop;
    sn_error failure;
};

static const sn_ep_host *host;

/* ---- Failing on purpose ---- */

/* Counts a call of a kind, and says whether it is the one to fail. */
static bool is_due(sn_ep *ep, const char *what) {
    bool due = false;
    if (strcmp(ep->fail, what) != 0) return false;
    pthread_mutex_lock(&ep->lock);
    ep->calls++;
    if (ep->seed) {
        ep->seed = ep->seed * 6364136223846793005u + 1442695040888963407u;
        due = ep->seed >> 61 == 0;
    } else {
        due = ep->calls == ep->at || (ep->often && ep->calls > ep->at);
    }
    pthread_mutex_unlock(&ep->lock);
    return due;
}

static sn_status fail_due(sn_error *err, sn_status status, const char *what) {
    return host->fail(err, status, "%s fails on purpose", what);
}

/* ---- Devices ---- */

static bool device(const sn_ep_api *api, size_t index, sn_ep_device *out) {
    (void)api;
    if (index > 1) return false;
    out->kind = SN_DEVICE_OTHER;
    out->name = index ? "broken device" : "guarded memory";
    out->vendor = "tests";
    out->driver = "1";
    out->memory_bytes = (uint64_t)1 << 30;
    out->types = UINT32_MAX & ~1u;
    out->unusable = index ? "it is there to be refused" : NULL;
    return true;
}

static bool take_setting(sn_ep *ep, const sn_ep_setting *s) {
    long number = strtol(s->value, NULL, 10);
    int which = strcmp(s->key, "fail") == 0;
    if (which || strcmp(s->key, "claim") == 0)
        snprintf(ep->texts[which], sizeof ep->texts[which], "%s", s->value);
    else if (strcmp(s->key, "at") == 0)
        ep->at = (int)number;
    else if (strcmp(s->key, "often") == 0)
        ep->often = (int)number;
    else if (strcmp(s->key, "delay") == 0)
        ep->delay = (int)number;
    else if (strcmp(s->key, "seed") == 0)
        ep->seed = (unsigned long)number;
    else
        return false;
    return true;
}

static sn_status open_device(const sn_ep_api *api, size_t index, const sn_ep_setting *settings,
                             size_t count, sn_ep **out, sn_error *err) {
    (void)api, (void)index;
    sn_ep *ep = calloc(1, sizeof *ep);
    if (!ep) return host->fail(err, SN_NO_MEMORY, "no memory");
    ep->at = 1;
    ep->claim = ep->texts[0];
    ep->fail = ep->texts[1];
    snprintf(ep->texts[0], sizeof ep->texts[0], "all");
    pthread_mutex_init(&ep->lock, NULL);
    for (size_t i = 0; i < count; i++) {
        if (take_setting(ep, &settings[i])) continue;
        host->fail(err, SN_INVALID_ARGUMENT, "there is no setting '%s'", settings[i].key);
        free(ep);
        return SN_INVALID_ARGUMENT;
    }
    if (is_due(ep, "open")) {
        free(ep);
        return fail_due(err, SN_IO, "open");
    }
    *out = ep;
    return SN_OK;
}

static void close_device(sn_ep *ep) {
    if (ep->blocks || ep->queues || ep->programs) {
        fprintf(stderr, "guarded: closed with %d blocks, %d queues and %d programs\n", ep->blocks,
                ep->queues, ep->programs);
        abort();
    }
    pthread_mutex_destroy(&ep->lock);
    free(ep);
}

static void count(sn_ep *ep, int *what, int by) {
    pthread_mutex_lock(&ep->lock);
    *what += by;
    pthread_mutex_unlock(&ep->lock);
}

/* ---- Claims ---- */

static sn_status claim(sn_ep *ep, const sn_ep_graph *graph, sn_ep_claims *claims, sn_error *err) {
    size_t n = host->node_count(graph), wild = n;
    const void *bytes;
    size_t size;
    if (is_due(ep, "claim")) return fail_due(err, SN_IO, "claim");
    if (host->graph_onnx(graph, 1024, &bytes, &size, err) != SN_OK) return SN_INTERNAL;
    if (strcmp(ep->claim, "wild") == 0) return host->claim(claims, SN_EP_NODES, &wild, 1, err);
    if (strcmp(ep->claim, "hole") == 0 || strcmp(ep->claim, "twice") == 0) {
        size_t ends[2] = {0, n - 1};
        sn_status status = host->claim(claims, SN_EP_PART, ends, n > 1 ? 2 : 1, err);
        if (status != SN_OK || strcmp(ep->claim, "hole") == 0) return status;
        return host->claim(claims, SN_EP_PART, ends, 1, err);
    }
    for (size_t i = 0; i < n; i++) {
        bool odd = strcmp(ep->claim, "odd") == 0 && i % 2 == 0;
        const char *type = host->node->node_type(host->node_at(graph, i));
        if (strcmp(type, "ImageDecoder") == 0) {
            host->refuse(claims, i, "the shared library has no decoders of pictures");
            continue;
        }
        if (strcmp(ep->claim, "none") == 0 || odd) {
            host->refuse(claims, i, "the test does not want it");
            continue;
        }
        sn_ep_claim_kind kind = strcmp(ep->claim, "parts") == 0 ? SN_EP_PART : SN_EP_NODES;
        sn_status status = host->claim(claims, kind, &i, 1, err);
        if (status != SN_OK) return status;
    }
    return SN_OK;
}

/* ---- Programs ---- */

static void program_free(sn_ep_program *p) {
    sn_session_destroy(p->session);
    sn_model_destroy(p->model);
    count(p->ep, &p->ep->programs, -1);
    free(p);
}

static sn_status compile(sn_ep *ep, const sn_ep_part *part, sn_ep_program **out, sn_error *err) {
    const void *blob;
    size_t size;
    if (is_due(ep, "compile")) return fail_due(err, SN_UNSUPPORTED, "compile");
    if (host->cache_get(part, "onnx", &blob, &size) &&
        (size != part->onnx_bytes || memcmp(blob, part->onnx, size) != 0))
        return host->fail(err, SN_INTERNAL, "the cache has another part");
    host->cache_put(part, "onnx", part->onnx, part->onnx_bytes);
    sn_ep_program *p = calloc(1, sizeof *p);
    if (!p) return host->fail(err, SN_NO_MEMORY, "no memory");
    p->ep = ep;
    p->inputs = part->input_count;
    p->outputs = part->output_count;
    count(ep, &ep->programs, 1);
    sn_session_options options;
    sn_session_options_init(&options, sizeof options);
    options.threads = 1;
    sn_status status = sn_model_load_memory(part->onnx, part->onnx_bytes, NULL, &p->model, err);
    if (status == SN_OK) status = sn_session_create(p->model, &options, &p->session, err);
    if (status != SN_OK) {
        program_free(p);
        return status;
    }
    *out = p;
    return SN_OK;
}

static sn_status prepare(sn_ep_program *program, const sn_ep_call *shapes, uint64_t *scratch,
                         sn_ep_ready **out, sn_error *err) {
    if (is_due(program->ep, "prepare")) return fail_due(err, SN_UNSUPPORTED, "prepare");
    sn_ep_ready *r = calloc(1, sizeof *r);
    if (!r) return host->fail(err, SN_NO_MEMORY, "no memory");
    r->program = program;
    *scratch = 100 * shapes->input_count;
    *out = r;
    return SN_OK;
}

static void ready_free(sn_ep_ready *ready) {
    free(ready);
}

/* ---- Memory ---- */

static sn_status allocate(sn_ep *ep, uint64_t bytes, sn_ep_memory **out, sn_error *err) {
    if (is_due(ep, "alloc")) return fail_due(err, SN_NO_MEMORY, "alloc");
    sn_ep_memory *m = calloc(1, sizeof *m);
    if (!m) return host->fail(err, SN_NO_MEMORY, "no memory");
    m->ep = ep;
    m->bytes = ((size_t)bytes + PAGE - 1) / PAGE * PAGE;
    m->pages = mmap(NULL, m->bytes + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->pages == MAP_FAILED) {
        free(m);
        return host->fail(err, SN_NO_MEMORY, "no pages");
    }
    pthread_mutex_init(&m->lock, NULL);
    count(ep, &ep->blocks, 1);
    *out = m;
    return SN_OK;
}

static void release(sn_ep_memory *m) {
    if (m->open) {
        fprintf(stderr, "guarded: memory is freed that work is using\n");
        abort();
    }
    munmap(m->pages, m->bytes + 2 * PAGE);
    count(m->ep, &m->ep->blocks, -1);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* Lets the device at memory, or no longer. */
static void open_memory(sn_ep_memory *m, int by) {
    if (!m) return;
    pthread_mutex_lock(&m->lock);
    m->open += by;
    mprotect(m->pages + PAGE, m->bytes, m->open ? PROT_READ | PROT_WRITE : PROT_NONE);
    pthread_mutex_unlock(&m->lock);
}

/* Where a tensor's elements are; it ends where the guard begins, as far as its alignment allows. */
static void *place(const sn_ep_tensor *t) {
    if (!t->memory) return t->host;
    size_t lead = (t->memory->bytes - t->bytes) / 64 * 64;
    return t->memory->pages + PAGE + lead + t->offset;
}

/* ---- Work ---- */

/* Runs a part on tensors that are open; outputs of unknown shape come back in `values`. */
static sn_status compute(sn_ep_program *p, const sn_ep_tensor *in, sn_ep_tensor *out,
                         sn_value **values, sn_error *err) {
    sn_binding *b = calloc(p->inputs + p->outputs + 1, sizeof *b);
    sn_status status = b ? SN_OK : host->fail(err, SN_NO_MEMORY, "no memory");
    for (size_t i = 0; i < p->inputs && status == SN_OK; i++)
        status = sn_tensor_wrap(in[i].dtype, in[i].rank, in[i].dims, place(&in[i]), in[i].bytes,
                                &b[i].value, err);
    if (status == SN_OK)
        status = sn_session_run(p->session, NULL, b, p->inputs, b + p->inputs, p->outputs, err);
    for (size_t i = 0; i < p->outputs && status == SN_OK; i++) {
        sn_value *v = b[p->inputs + i].value;
        if (values) values[i] = sn_value_retain(v);
        if (values) continue;
        if (sn_tensor_bytes(v) != out[i].bytes)
            status = host->fail(err, SN_INTERNAL, "output %zu has %zu bytes and not %zu", i,
                                sn_tensor_bytes(v), out[i].bytes);
        else if (out[i].bytes)
            memcpy(place(&out[i]), sn_tensor_const_data(v), out[i].bytes);
    }
    for (size_t i = 0; b && i < p->inputs + p->outputs; i++) sn_value_destroy(b[i].value);
    free(b);
    return status;
}

static void open_all(sn_ep_program *p, const sn_ep_tensor *in, const sn_ep_tensor *out, int by) {
    for (size_t i = 0; i < p->inputs; i++) open_memory(in[i].memory, by);
    for (size_t i = 0; i < p->outputs; i++) open_memory(out[i].memory, by);
}

static void do_work(sn_ep_queue *q, work *w) {
    sn_error err = {0};
    sn_status status = SN_OK;
    if (q->ep->delay) usleep((useconds_t)q->ep->delay);
    if (q->failure.status != SN_OK) return; /* what comes after a failure is left out */
    if (w->program) {
        open_all(w->program, w->in, w->out, 1);
        status = compute(w->program, w->in, w->out, NULL, &err);
        open_all(w->program, w->in, w->out, -1);
    } else {
        open_memory(w->from.memory, 1);
        open_memory(w->to.memory, 1);
        memcpy(place(&w->to), place(&w->from), w->to.bytes);
        open_memory(w->from.memory, -1);
        open_memory(w->to.memory, -1);
    }
    if (status == SN_OK) return;
    err.status = status;
    pthread_mutex_lock(&q->lock);
    q->failure = err;
    pthread_mutex_unlock(&q->lock);
}

static void *serve(void *ctx) {
    sn_ep_queue *q = ctx;
    pthread_mutex_lock(&q->lock);
    while (!q->stop || q->first) {
        work *w = q->first;
        if (!w) {
            pthread_cond_wait(&q->changed, &q->lock);
            continue;
        }
        q->first = w->next;
        q->busy = 1;
        pthread_mutex_unlock(&q->lock);
        do_work(q, w);
        free(w->in);
        free(w->out);
        free(w);
        pthread_mutex_lock(&q->lock);
        q->busy = 0;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

static void submit(sn_ep_queue *q, work *w) {
    pthread_mutex_lock(&q->lock);
    *(q->first ? &q->last->next : &q->first) = w;
    q->last = w;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* ---- Queues ---- */

static sn_status queue_new(sn_ep *ep, sn_ep_queue **out, sn_error *err) {
    if (is_due(ep, "queue")) return fail_due(err, SN_IO, "queue");
    sn_ep_queue *q = calloc(1, sizeof *q);
    if (!q) return host->fail(err, SN_NO_MEMORY, "no memory");
    q->ep = ep;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    if (pthread_create(&q->thread, NULL, serve, q) != 0) {
        free(q);
        return host->fail(err, SN_NO_MEMORY, "no thread");
    }
    count(ep, &ep->queues, 1);
    *out = q;
    return SN_OK;
}

static void queue_free(sn_ep_queue *q) {
    pthread_mutex_lock(&q->lock);
    q->stop = 1;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    count(q->ep, &q->ep->queues, -1);
    free(q);
}

static void drain(sn_ep_queue *q) {
    pthread_mutex_lock(&q->lock);
    while (q->first || q->busy) pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

static sn_status wait_queue(sn_ep_queue *q, sn_error *err) {
    drain(q);
    if (is_due(q->ep, "wait")) return fail_due(err, SN_IO, "wait");
    if (q->failure.status == SN_OK) return SN_OK;
    return host->fail(err, q->failure.status, "%s", q->failure.message);
}

static sn_status copy(sn_ep_queue *q, const sn_ep_tensor *from, const sn_ep_tensor *to,
                      sn_error *err) {
    if (is_due(q->ep, "copy")) return fail_due(err, SN_IO, "copy");
    work *w = calloc(1, sizeof *w);
    if (!w) return host->fail(err, SN_NO_MEMORY, "no memory");
    w->from = *from;
    w->to = *to;
    submit(q, w);
    return SN_OK;
}

/* ---- Runs ---- */

/* Outputs whose shape nobody knew: everything before is waited for, and they are given room. */
static sn_status run_now(sn_ep_program *p, sn_ep_queue *queue, sn_ep_call *call, sn_error *err) {
    sn_value **values = calloc(p->outputs + 1, sizeof *values);
    if (!values) return host->fail(err, SN_NO_MEMORY, "no memory");
    if (queue) drain(queue);
    for (size_t i = 0; i < p->inputs; i++) open_memory(call->inputs[i].memory, 1);
    sn_status status = compute(p, call->inputs, call->outputs, values, err);
    for (size_t i = 0; i < p->inputs; i++) open_memory(call->inputs[i].memory, -1);
    for (size_t i = 0; i < p->outputs && status == SN_OK; i++) {
        int64_t dims[SN_MAX_RANK];
        int rank = sn_tensor_rank(values[i]);
        memcpy(dims, sn_tensor_dims(values[i]), sizeof(int64_t) * (size_t)rank);
        if (is_due(p->ep, "missing")) continue;
        if (is_due(p->ep, "shape")) dims[rank > 0 ? rank - 1 : rank++] = 77;
        status = host->output(call, i, rank, dims, err);
        if (status != SN_OK) break;
        sn_ep_tensor *t = &call->outputs[i];
        open_memory(t->memory, 1);
        if (t->bytes) memcpy(place(t), sn_tensor_const_data(values[i]), t->bytes);
        open_memory(t->memory, -1);
    }
    for (size_t i = 0; i < p->outputs; i++) sn_value_destroy(values[i]);
    free(values);
    return status;
}

static sn_status run(sn_ep_program *p, sn_ep_ready *ready, sn_ep_queue *queue, sn_ep_call *call,
                     sn_error *err) {
    bool known = queue != NULL && strcmp(p->ep->fail, "shape") != 0;
    if (ready->program != p || call->scratch.bytes != 100 * p->inputs)
        return host->fail(err, SN_INTERNAL, "it is called with another program's shapes");
    if (is_due(p->ep, "run")) return fail_due(err, SN_IO, "run");
    if (is_due(p->ep, "silent")) return (sn_status)1234;
    if (host->stopping(call)) return host->fail(err, SN_CANCELLED, "cancelled");
    for (size_t i = 0; i < p->outputs; i++) known = known && call->outputs[i].rank >= 0;
    if (!known) return run_now(p, queue, call, err);
    work *w = calloc(1, sizeof *w);
    sn_ep_tensor *in = calloc(p->inputs + 1, sizeof *in);
    sn_ep_tensor *out = calloc(p->outputs + 1, sizeof *out);
    if (!w || !in || !out) {
        free(w);
        free(in);
        free(out);
        return host->fail(err, SN_NO_MEMORY, "no memory");
    }
    if (p->inputs) memcpy(in, call->inputs, p->inputs * sizeof *in);
    memcpy(out, call->outputs, p->outputs * sizeof *out);
    w->program = p;
    w->in = in;
    w->out = out;
    submit(queue, w);
    return SN_OK;
}

/* ---- The tables ---- */

#define COMMON                                                                               \
    .size = sizeof(sn_ep_api), .version = SN_EP_VERSION, .vendor = "tests", .revision = "1", \
    .device = device, .open = open_device, .close = close_device, .claim = claim,            \
    .compile = compile, .program_free = program_free, .prepare = prepare,                    \
    .ready_free = ready_free, .run = run

static const sn_ep_api guarded = {COMMON,          .name = "guarded",      .alloc = allocate,
                                  .free = release, .queue_new = queue_new, .queue_free = queue_free,
                                  .copy = copy,    .wait = wait_queue};
static const sn_ep_api plain = {COMMON, .name = "plain"};
static const sn_ep_api old = {COMMON, .name = "old", .alloc = allocate};
static const sn_ep_api late = {.size = sizeof late, .version = 99, .name = "late"};

/* GUARDED_AS chooses the table: a library whose memory is the host's, or one that is not fit. */
sn_status sinter_ep_entry(const sn_ep_host *given, const sn_ep_api **out, sn_error *err) {
    const char *as = getenv("GUARDED_AS");
    host = given;
    *out = &guarded;
    if (!as) return SN_OK;
    if (strcmp(as, "plain") == 0) *out = &plain;
    if (strcmp(as, "old") == 0) *out = &old;
    if (strcmp(as, "late") == 0) *out = &late;
    if (strcmp(as, "nothing") == 0) *out = NULL;
    if (strcmp(as, "failing") == 0) return host->fail(err, SN_IO, "the entry fails on purpose");
    return SN_OK;
}
