/* loader.c - one thread for what takes long and must not happen twice at once: loading models. */
#include "loader.h"
#include "repository.h"

#include <pthread.h>
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
            pthread_mutex_lock(&loader.lock);
        } else if (loader.stopping) {
            break;
        } else if (loader.rescan) {
            loader.rescan = false;
            pthread_mutex_unlock(&loader.lock);
            srv_repository_scan();
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
