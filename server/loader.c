/* loader.c - one thread for what takes long and must not happen twice at once: loading models. */
#include "loader.h"
#include "repository.h"
#include "state.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_t thread;
    srv_job *first, *last;
    bool rescan, stopping, started;
    uint64_t poll_ns;
} loader = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void wait_for_work(void) {
    if (!loader.poll_ns) {
        pthread_cond_wait(&loader.change, &loader.lock);
        return;
    }
    uint64_t until = srv_now_ns() + loader.poll_ns;
    struct timespec when = {.tv_sec = (time_t)(until / 1000000000u),
                            .tv_nsec = (long)(until % 1000000000u)};
    if (pthread_cond_timedwait(&loader.change, &loader.lock, &when) != 0) loader.rescan = true;
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
        } else if (loader.rescan) {
            loader.rescan = false;
            pthread_mutex_unlock(&loader.lock);
            srv_repository_scan();
            srv_state_changed();
            pthread_mutex_lock(&loader.lock);
        } else {
            wait_for_work();
        }
    }
    pthread_mutex_unlock(&loader.lock);
    return NULL;
}

sn_status srv_loader_start(uint64_t poll_ns, sn_error *err) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&loader.change, &attributes);
    pthread_condattr_destroy(&attributes);
    loader.poll_ns = poll_ns;
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
