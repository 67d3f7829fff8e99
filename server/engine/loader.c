/* loader.c - one thread for what takes long and must not happen twice at once: loading models; and
 * for what is done from time to time. */
#include "server/engine/loader.h"
#include "server/ops/log.h"
#include "server/engine/repository.h"
#include "server/engine/scheduler.h"
#include "server/engine/state.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* What is due every so many ns; 0: never. */
typedef struct timer {
    uint64_t every, next;
} timer;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_t thread;
    srv_job *first, *last;
    bool rescan, stopping, started;
    timer scan, trim;
    uint64_t idle_ns;
} loader = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Timers ------------------------------------------------------------------------------- */

static void set_timer(timer *t, uint64_t every) {
    *t = (timer){every, srv_now_ns() + every};
}

static bool rings(timer *t) {
    uint64_t now = srv_now_ns();
    if (!t->every || now < t->next) return false;
    t->next = now + t->every;
    return true;
}

static void wait_for_work(void) {
    const timer *scan = &loader.scan, *trim = &loader.trim;
    if (!scan->every && !trim->every) {
        pthread_cond_wait(&loader.change, &loader.lock);
        return;
    }
    bool scan_first = scan->every && (!trim->every || scan->next < trim->next);
    uint64_t until = scan_first ? scan->next : trim->next;
    struct timespec when = {.tv_sec = (time_t)(until / 1000000000u),
                            .tv_nsec = (long)(until % 1000000000u)};
    pthread_cond_timedwait(&loader.change, &loader.lock, &when);
}

/* ---- The thread --------------------------------------------------------------------------- */

static void trim_model(void *ctx, const srv_index_entry *entry) {
    bool *trimmed = ctx;
    if (!entry->model || !srv_scheduler_rests(entry->model, loader.idle_ns)) return;
    char version[24], bytes[24];
    snprintf(version, sizeof version, "%lld", (long long)entry->version);
    snprintf(bytes, sizeof bytes, "%llu",
             (unsigned long long)sn_session_trim(entry->model->session));
    srv_log(SRV_LOG_VERBOSE, "trimmed a model", "model", entry->name, "version", version, "bytes",
            bytes, NULL);
    *trimmed = true;
}

/* Gives back the memory of models without work. */
static void trim_models(void) {
    bool trimmed = false;
    srv_repository_each(trim_model, &trimmed);
    if (trimmed) malloc_trim(0);
}

static void *load(void *ctx) {
    (void)ctx;
    pthread_mutex_lock(&loader.lock);
    for (;;) {
        if (loader.first) {
            srv_job *job = loader.first;
            loader.first = job->next;
            if (!loader.first) loader.last = NULL;
            pthread_mutex_unlock(&loader.lock);
            job->run(job);
            srv_state_changed();
            pthread_mutex_lock(&loader.lock);
        } else if (loader.stopping) {
            break;
        } else if (loader.rescan || rings(&loader.scan)) {
            loader.rescan = false;
            pthread_mutex_unlock(&loader.lock);
            srv_repository_scan();
            srv_state_changed();
            pthread_mutex_lock(&loader.lock);
        } else if (rings(&loader.trim)) {
            pthread_mutex_unlock(&loader.lock);
            trim_models();
            pthread_mutex_lock(&loader.lock);
        } else {
            wait_for_work();
        }
    }
    pthread_mutex_unlock(&loader.lock);
    return NULL;
}

sn_status srv_loader_start(uint64_t poll_ns, uint64_t idle_ns, sn_error *err) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&loader.change, &attributes);
    pthread_condattr_destroy(&attributes);
    set_timer(&loader.scan, poll_ns);
    set_timer(&loader.trim, idle_ns / 2);
    loader.idle_ns = idle_ns;
    loader.stopping = false;
    if (pthread_create(&loader.thread, NULL, load, NULL) != 0) {
        return sni_fail(err, SN_NO_MEMORY, "cannot start a thread");
    }
    loader.started = true;
    return SN_OK;
}

void srv_loader_stop(void) {
    if (!loader.started) return;
    pthread_mutex_lock(&loader.lock);
    loader.stopping = true;
    pthread_cond_signal(&loader.change);
    pthread_mutex_unlock(&loader.lock);
    pthread_join(loader.thread, NULL);
    loader.started = false;
}

void srv_loader_post(srv_job *job) {
    pthread_mutex_lock(&loader.lock);
    job->next = NULL;
    if (loader.last) {
        loader.last->next = job;
    } else {
        loader.first = job;
    }
    loader.last = job;
    pthread_cond_signal(&loader.change);
    pthread_mutex_unlock(&loader.lock);
}

void srv_loader_rescan(void) {
    pthread_mutex_lock(&loader.lock);
    loader.rescan = true;
    pthread_cond_signal(&loader.change);
    pthread_mutex_unlock(&loader.lock);
}

/* ---- Changes that clients ask for --------------------------------------------------------- */

static void change_done(srv_task *task) {
    srv_change *change = (srv_change *)((char *)task - offsetof(srv_change, task));
    change->done(change);
    free(change->config);
    free(change);
}

static void change_run(srv_job *job) {
    srv_change *change = (srv_change *)job; /* its first member */
    sni_str name = sni_str_of(change->name);
    change->code = change->load
                       ? srv_repository_load(name, change->config, change->why, sizeof change->why)
                       : srv_repository_unload(name, change->why, sizeof change->why);
    change->task.fn = change_done;
    srv_loop_post(change->loop, &change->task);
}

bool srv_change_begin(bool load, sni_str name, char *config, srv_loop *loop,
                      void (*done)(const srv_change *change), void *ctx) {
    bool possible = name.n && name.n < sizeof((srv_change *)0)->name && !memchr(name.p, 0, name.n);
    srv_change *change = possible ? calloc(1, sizeof *change) : NULL;
    if (!change) {
        free(config);
        return false;
    }
    *change = (srv_change){.job.run = change_run,
                           .loop = loop,
                           .done = done,
                           .ctx = ctx,
                           .load = load,
                           .config = config};
    memcpy(change->name, name.p, name.n);
    srv_loader_post(&change->job);
    return true;
}
