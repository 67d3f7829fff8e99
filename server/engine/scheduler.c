/* scheduler.c - takes requests in, gathers them into batches and runs them. */
#include "server/engine/scheduler.h"
#include "server/engine/batch.h"
#include "server/engine/cache.h"
#include "server/engine/queue.h"
#include "server/server.h"

#include "base/threadpool.h"

#include <assert.h>
#include <stdlib.h>

#define SHORT_NS 100000 /* a run that is over sooner than it takes to hand it over and back */
#define LONG_NS 5000000 /* the most that a run expected to be short may block its caller */

/* One of the threads that run batches. */
typedef struct worker {
    srv_scheduler *scheduler;
    pthread_t thread;
    sn_cancel *cancel; /* of the batch that it runs */
} worker;

struct srv_scheduler {
    srv_server *server;
    pthread_mutex_t lock;    /* guards what is below, the queues of models and the batches */
    pthread_cond_t work;     /* for the threads */
    pthread_cond_t deadline; /* for the timekeeper */
    worker *workers;
    pthread_t timekeeper;
    bool keeps_time; /* the timekeeper was started */
    int count;       /* workers that were started */
    int idle;
    int running;
    size_t pending;         /* requests that wait or run */
    srv_waiting waiting;    /* requests that nobody runs yet, by model */
    uint64_t next_deadline; /* the earliest of waiting requests; 0: none */
    bool stopping;
};

int srv_scheduler_threads(const srv_scheduler *s) {
    return s->count;
}

size_t srv_scheduler_load(srv_scheduler *s) {
    pthread_mutex_lock(&s->lock);
    size_t load = s->pending;
    pthread_mutex_unlock(&s->lock);
    return load;
}

void srv_scheduler_queue(srv_scheduler *s, const srv_model *model, uint64_t *waiting,
                         uint64_t *running) {
    pthread_mutex_lock(&s->lock);
    *waiting = model->queue.count;
    *running = (uint64_t)model->queue.running;
    pthread_mutex_unlock(&s->lock);
}

bool srv_scheduler_rests(srv_scheduler *s, srv_model *model, uint64_t ns) {
    srv_queue *q = &model->queue;
    uint64_t now = srv_now_ns();
    pthread_mutex_lock(&s->lock);
    bool rests = !q->rested && !q->count && !q->running && now >= q->busy && now - q->busy >= ns;
    if (rests) q->rested = true;
    pthread_mutex_unlock(&s->lock);
    return rests;
}

/* ---- Finishing ---------------------------------------------------------------------------- */

/* Hands requests (linked by `next`) back; not under the lock. */
static void finish(srv_scheduler *s, srv_request *list) {
    size_t count = 0;
    while (list) {
        srv_request *r = list;
        list = r->next;
        r->next = NULL;
        if (!r->times.finished) r->times.finished = srv_now_ns();
        srv_model *model = r->model;
        pthread_mutex_lock(&model->stats_lock);
        srv_stats_request(&model->stats, r);
        pthread_mutex_unlock(&model->stats_lock);
        srv_trace_request(&s->server->trace, r);
        r->done(r);
        count++;
    }
    pthread_mutex_lock(&s->lock);
    s->pending -= count;
    pthread_mutex_unlock(&s->lock);
}

/* ---- Runs (under the lock) ---------------------------------------------------------------- */

static bool precedes(uint64_t a, uint64_t b) {
    return a && (!b || a < b);
}

static void begin_run(srv_scheduler *s, srv_model *model) {
    s->running++;
    model->queue.running++;
}

static void end_run(srv_scheduler *s, srv_model *model) {
    s->running--;
    model->queue.running--;
    model->queue.rested = false;
    model->queue.busy = srv_now_ns();
}

/* ---- Forming a batch (under the lock) ----------------------------------------------------- */

static int runs_at_once(const srv_scheduler *s, const srv_model *model) {
    return model->instances < s->count ? model->instances : s->count;
}

/* What is queued, divided by the instances that can run at once: one that took everything would
 * leave the next one that frees with nothing to do. */
static int64_t fair_share(srv_scheduler *s, srv_model *model) {
    int64_t instances = runs_at_once(s, model);
    int64_t there = srv_queue_gather(&model->queue, model->max_batch * instances, NULL);
    int64_t share = (there + instances - 1) / instances;
    if (share > model->max_batch) share = model->max_batch;
    return srv_tune_rows(&model->queue.tuning, srv_queue_first(&model->queue)->signature, share);
}

/* How many rows to take now, or 0 when it is worth waiting until `*until`. */
static int64_t rows_now(srv_scheduler *s, srv_model *model, uint64_t now, uint64_t *until) {
    const srv_config *config = &model->config;
    int64_t max = model->max_batch;
    if (max <= 1) return 1;
    if (config->queue_delay_ns == 0 && config->preferred_count == 0) return fair_share(s, model);
    int64_t there = srv_queue_gather(&model->queue, max, NULL), preferred = 0, largest = 0;
    for (int i = 0; i < config->preferred_count; i++) {
        int64_t size = config->preferred[i] < max ? config->preferred[i] : max;
        if (size <= there && size > preferred) preferred = size;
        if (size > largest) largest = size;
    }
    if (there >= max || (largest && there >= largest)) return preferred ? preferred : there;
    uint64_t end = srv_queue_first(&model->queue)->times.queued + config->queue_delay_ns;
    if (now >= end) return preferred ? preferred : there;
    if (precedes(end, *until)) *until = end;
    return 0;
}

/* The next batch to run; false when there is none before `*until` (0: before something comes). */
static bool next_batch(srv_scheduler *s, srv_batch *batch, uint64_t *until, srv_request **expired) {
    uint64_t now = srv_now_ns();
    *until = 0;
    srv_model *next;
    for (srv_model *model = s->waiting.first; model; model = next) {
        next = model->queue.next;
        if (model->queue.running >= model->instances) continue;
        srv_waiting_expire(&s->waiting, model, now, expired);
        if (model->queue.count == 0) continue;
        int64_t rows = rows_now(s, model, now, until);
        if (rows == 0) continue;
        batch->model = model;
        batch->rows = srv_queue_gather(&model->queue, rows, batch);
        batch->live = batch->count;
        begin_run(s, model);
        srv_waiting_rotate(&s->waiting, model); /* others have their turn first */
        return true;
    }
    return false;
}

/* ---- Running ------------------------------------------------------------------------------ */

/* The time that the run may take: until the last of the requests' deadlines, if all have one. */
static uint64_t time_limit(const srv_scheduler *s, const srv_batch *batch, uint64_t now) {
    uint64_t latest = 0;
    uint64_t limit = batch->model->config.time_limit_ns ? batch->model->config.time_limit_ns
                                                        : s->server->limits.time_ns;
    for (const srv_request *r = batch->first; r; r = r->next) {
        if (!r->deadline) return limit;
        if (r->deadline > latest) latest = r->deadline;
    }
    uint64_t left = latest > now ? latest - now : 1;
    return limit && limit < left ? limit : left;
}

static void count_run(srv_scheduler *s, srv_batch *batch) {
    srv_model *model = batch->model;
    srv_times times = batch->first->times;
    for (srv_request *r = batch->first; r; r = r->next) {
        if (r->code == SRV_OK && r->deadline && r->times.finished > r->deadline) {
            srv_request_fail(r, SRV_DEADLINE, "its time was up before the run was over");
        }
        srv_cache_store(s->server->cache, r);
    }
    pthread_mutex_lock(&model->stats_lock);
    srv_stats_run(&model->stats, &times, batch->rows);
    pthread_mutex_unlock(&model->stats_lock);
}

/* Counts the run's time (under the lock). */
static void count_cost(const srv_batch *batch, bool busy) {
    const srv_request *r = batch->first;
    if (r->code != SRV_OK) return;
    srv_tune_add(&batch->model->queue.tuning, r->signature, batch->count, batch->rows,
                 batch->threads, busy, r->times.finished - r->times.started);
}

/* Runs one batch; called and returns with the lock held. */
static void run(srv_scheduler *s, srv_batch *batch) {
    srv_model *model = srv_model_retain(batch->model);
    int share = s->count / s->running;
    bool busy = s->running >= runs_at_once(s, model);
    batch->threads = model->config.threads > 0 ? model->config.threads : share > 0 ? share : 1;
    sn_cancel_reset(batch->cancel);
    size_t live = 0;
    for (srv_request *r = batch->first; r; r = r->next) live += r->cancelled ? 0 : 1;
    batch->live = live;
    pthread_mutex_unlock(&s->lock);
    uint64_t now = srv_now_ns();
    for (srv_request *r = batch->first; r; r = r->next) r->times.started = now;
    batch->time_limit_ns = time_limit(s, batch, now);
    srv_batch_run(batch);
    count_run(s, batch);
    pthread_mutex_lock(&s->lock);
    for (srv_request *r = batch->first; r; r = r->next) r->batch = NULL;
    count_cost(batch, busy);
    end_run(s, model);
    pthread_mutex_unlock(&s->lock);
    finish(s, batch->first);
    srv_model_release(model);
    pthread_mutex_lock(&s->lock);
    /* this instance is free: this thread looks again itself, and so may another */
    if (s->waiting.first && s->idle > 0) pthread_cond_signal(&s->work);
}

/* Whether the caller may run a request itself (under the lock): nothing waits, a run is free, and
 * it takes less time than a thread to wake up. */
static bool is_short(const srv_scheduler *s, srv_request *r) {
    srv_model *model = r->model;
    return !s->waiting.first && s->running < s->count && model->queue.running < model->instances &&
           !model->config.queue_delay_ns && !model->config.preferred_count &&
           srv_tune_is_short(&model->queue.tuning, r->signature, r->rows, SHORT_NS);
}

/* Runs a short request in the caller's thread. False: it was not short after all, may have another
 * try by another thread, and no other is tried like this. Called and returns with the lock held. */
static bool run_here(srv_scheduler *s, srv_request *r) {
    srv_model *model = srv_model_retain(r->model);
    srv_batch batch = {.model = model, .first = r, .count = 1, .rows = r->rows, .threads = 1};
    begin_run(s, model);
    pthread_mutex_unlock(&s->lock);
    r->times.started = srv_now_ns();
    uint64_t limit = time_limit(s, &batch, r->times.started);
    bool own = !limit || limit > LONG_NS; /* the limit is this function's */
    batch.time_limit_ns = own ? LONG_NS : limit;
    srv_batch_run(&batch);
    bool done = !own || r->code != SRV_DEADLINE;
    if (done) count_run(s, &batch);
    pthread_mutex_lock(&s->lock);
    count_cost(&batch, s->running >= runs_at_once(s, model));
    end_run(s, model);
    if (!done) {
        srv_tune_was_long(&model->queue.tuning);
        r->code = SRV_OK;
        r->message[0] = 0;
        r->times.finished = 0;
    }
    if (s->waiting.first && s->idle > 0) pthread_cond_signal(&s->work);
    srv_model_release(model); /* the request has it, too */
    return done;
}

static void *work(void *ctx) {
    const worker *w = ctx;
    srv_scheduler *s = w->scheduler;
    pthread_mutex_lock(&s->lock);
    for (;;) {
        srv_batch batch = {.cancel = w->cancel};
        srv_request *expired = NULL;
        uint64_t until;
        bool found = next_batch(s, &batch, &until, &expired);
        if (expired) {
            pthread_mutex_unlock(&s->lock);
            finish(s, expired);
            pthread_mutex_lock(&s->lock);
        }
        if (found) {
            run(s, &batch);
            continue;
        }
        if (expired) continue;
        if (s->stopping) break;
        s->idle++;
        srv_wait_until(&s->work, &s->lock, until);
        s->idle--;
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Answers requests whose time is up while every thread is busy. */
static void *keep_time(void *ctx) {
    srv_scheduler *s = ctx;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping) {
        uint64_t now = srv_now_ns();
        if (!s->next_deadline || now < s->next_deadline) {
            srv_wait_until(&s->deadline, &s->lock, s->next_deadline);
            continue;
        }
        srv_request *expired = NULL;
        uint64_t earliest = 0;
        srv_model *next;
        for (srv_model *model = s->waiting.first; model; model = next) {
            next = model->queue.next;
            uint64_t left = srv_waiting_expire(&s->waiting, model, now, &expired);
            if (precedes(left, earliest)) earliest = left;
        }
        s->next_deadline = earliest;
        pthread_mutex_unlock(&s->lock);
        finish(s, expired);
        pthread_mutex_lock(&s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- The front ---------------------------------------------------------------------------- */

static void admit(srv_request *r) {
    const srv_config *config = &r->model->config;
    r->times.queued = srv_now_ns();
    if (!r->times.received) r->times.received = r->times.queued;
    uint64_t timeout = config->default_timeout_ns;
    if (r->timeout_ns && config->allow_timeout_override) timeout = r->timeout_ns;
    r->deadline = timeout ? r->times.queued + timeout : 0;
    uint64_t priority = r->priority ? r->priority : config->default_priority;
    uint64_t lowest = config->priority_levels ? config->priority_levels : 1;
    r->level = (uint32_t)(priority < lowest ? priority : lowest) - 1;
    r->signature = srv_batch_signature(r);
    r->next = NULL;
}

void srv_submit(srv_request *r) {
    srv_scheduler *s = r->server->scheduler;
    assert(r->model && r->done && r->code == SRV_OK && !r->queued);
    admit(r);
    uint64_t max_queue = r->model->config.max_queue_size;
    if (!max_queue) max_queue = s->server->limits.max_queue;
    bool hit = srv_cache_find(s->server->cache, r);
    pthread_mutex_lock(&s->lock);
    s->pending++;
    bool full = !hit && r->model->queue.count >= max_queue;
    bool here = !hit && !full && is_short(s, r) && run_here(s, r);
    if (!hit && !full && !here) {
        srv_waiting_add(&s->waiting, r);
        if (precedes(r->deadline, s->next_deadline)) {
            s->next_deadline = r->deadline;
            pthread_cond_signal(&s->deadline);
        }
        if (s->idle > 0) pthread_cond_signal(&s->work);
    }
    pthread_mutex_unlock(&s->lock);
    if (full) {
        srv_request_fail(r, SRV_UNAVAILABLE, "%llu requests wait for this model already",
                         (unsigned long long)max_queue);
    }
    if (hit || full || here) finish(s, r);
}

void srv_cancel(srv_request *r) {
    srv_scheduler *s = r->server->scheduler;
    srv_request *gone = NULL;
    pthread_mutex_lock(&s->lock);
    if (r->queued) {
        srv_waiting_remove(&s->waiting, r);
        srv_request_fail(r, SRV_CANCELLED, "the client is gone");
        gone = r;
    } else if (!r->cancelled && r->batch) {
        r->cancelled = true;
        if (--r->batch->live == 0) sn_cancel_trigger(r->batch->cancel);
    }
    pthread_mutex_unlock(&s->lock);
    if (gone) finish(s, gone);
}

/* ---- Life --------------------------------------------------------------------------------- */

srv_scheduler *srv_scheduler_create(srv_server *server) {
    srv_scheduler *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->server = server;
    pthread_mutex_init(&s->lock, NULL);
    srv_init_condition(&s->work);
    srv_init_condition(&s->deadline);
    return s;
}

static sn_status start_worker(srv_scheduler *s, worker *w, sn_error *err) {
    w->scheduler = s;
    SN_TRY(sn_cancel_create(&w->cancel, err));
    if (pthread_create(&w->thread, NULL, work, w) == 0) return SN_OK;
    sn_cancel_destroy(w->cancel);
    return sni_fail(err, SN_NO_MEMORY, "cannot start a thread");
}

sn_status srv_scheduler_start(srv_scheduler *s, int threads, sn_error *err) {
    int count = threads > 0 ? threads : sni_threads_available();
    s->workers = calloc((size_t)count, sizeof *s->workers);
    if (!s->workers) return sni_fail_memory(err);
    s->keeps_time = pthread_create(&s->timekeeper, NULL, keep_time, s) == 0;
    sn_status status = SN_OK;
    if (!s->keeps_time) status = sni_fail(err, SN_NO_MEMORY, "cannot start a thread");
    pthread_mutex_lock(&s->lock); /* the workers read `count` */
    while (status == SN_OK && s->count < count) {
        status = start_worker(s, &s->workers[s->count], err);
        if (status == SN_OK) s->count++;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

void srv_scheduler_destroy(srv_scheduler *s) {
    if (!s) return;
    assert(s->pending == 0);
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->deadline);
    pthread_mutex_unlock(&s->lock);
    for (int i = 0; i < s->count; i++) {
        pthread_join(s->workers[i].thread, NULL);
        sn_cancel_destroy(s->workers[i].cancel);
    }
    if (s->keeps_time) pthread_join(s->timekeeper, NULL);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->deadline);
    pthread_mutex_destroy(&s->lock);
    free(s->workers);
    free(s);
}
