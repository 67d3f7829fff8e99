/* loader.c - one thread for what takes long and must not happen twice at once: loading models; and
 * for what is done from time to time. */
#include "server/engine/loader.h"
#include "server/engine/repository.h"
#include "server/engine/scheduler.h"
#include "server/server.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

/* What is due every so many ns; 0: never. */
typedef struct timer {
    uint64_t every, next;
} timer;

struct srv_loader {
    srv_server *server;
    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_t thread;
    srv_job *first, *last;
    bool rescan, stopping, started;
    timer scan, trim;
    uint64_t idle_ns;
};

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

static void wait_for_work(srv_loader *loader) {
    const timer *scan = &loader->scan, *trim = &loader->trim;
    bool scan_first = scan->every && (!trim->every || scan->next < trim->next);
    uint64_t until = scan_first ? scan->next : trim->every ? trim->next : 0;
    srv_wait_until(&loader->change, &loader->lock, until);
}

/* ---- The thread --------------------------------------------------------------------------- */

typedef struct trimming {
    srv_loader *loader;
    bool any; /* model gave something back */
} trimming;

static void trim_model(void *ctx, const srv_index_entry *entry) {
    trimming *t = ctx;
    srv_server *server = t->loader->server;
    if (!entry->model ||
        !srv_scheduler_rests(server->scheduler, entry->model, t->loader->idle_ns)) {
        return;
    }
    char version[24], bytes[24];
    snprintf(version, sizeof version, "%lld", (long long)entry->version);
    snprintf(bytes, sizeof bytes, "%llu",
             (unsigned long long)sn_session_trim(entry->model->session));
    srv_log(&server->log, SRV_LOG_VERBOSE, "trimmed a model", "model", entry->name, "version",
            version, "bytes", bytes, NULL);
    t->any = true;
}

/* Gives back the memory of models without work. */
static void trim_models(srv_loader *loader) {
    trimming t = {.loader = loader};
    srv_repository_each(loader->server->repository, trim_model, &t);
    if (t.any) malloc_trim(0);
}

static void run_first(srv_loader *loader) {
    srv_job *job = loader->first;
    loader->first = job->next;
    if (!loader->first) loader->last = NULL;
    pthread_mutex_unlock(&loader->lock);
    job->run(job);
    srv_state_changed(&loader->server->state);
    pthread_mutex_lock(&loader->lock);
}

static void *loader_main(void *ctx) {
    srv_loader *loader = ctx;
    pthread_mutex_lock(&loader->lock);
    for (;;) {
        if (loader->first) {
            run_first(loader);
        } else if (loader->stopping) {
            break;
        } else if (loader->rescan || rings(&loader->scan)) {
            loader->rescan = false;
            pthread_mutex_unlock(&loader->lock);
            srv_repository_scan(loader->server->repository);
            srv_state_changed(&loader->server->state);
            pthread_mutex_lock(&loader->lock);
        } else if (rings(&loader->trim)) {
            pthread_mutex_unlock(&loader->lock);
            trim_models(loader);
            pthread_mutex_lock(&loader->lock);
        } else {
            wait_for_work(loader);
        }
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

srv_loader *srv_loader_create(srv_server *server) {
    srv_loader *loader = calloc(1, sizeof *loader);
    if (!loader) return NULL;
    loader->server = server;
    pthread_mutex_init(&loader->lock, NULL);
    srv_init_condition(&loader->change);
    return loader;
}

sn_status srv_loader_start(srv_loader *loader, uint64_t poll_ns, uint64_t idle_ns, sn_error *err) {
    set_timer(&loader->scan, poll_ns);
    set_timer(&loader->trim, idle_ns / 2);
    loader->idle_ns = idle_ns;
    if (pthread_create(&loader->thread, NULL, loader_main, loader) != 0) {
        return sni_fail(err, SN_NO_MEMORY, "cannot start a thread");
    }
    loader->started = true;
    return SN_OK;
}

void srv_loader_stop(srv_loader *loader) {
    if (!loader->started) return;
    pthread_mutex_lock(&loader->lock);
    loader->stopping = true;
    pthread_cond_signal(&loader->change);
    pthread_mutex_unlock(&loader->lock);
    pthread_join(loader->thread, NULL);
    loader->started = false;
}

void srv_loader_destroy(srv_loader *loader) {
    if (!loader) return;
    pthread_cond_destroy(&loader->change);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

void srv_loader_post(srv_loader *loader, srv_job *job) {
    pthread_mutex_lock(&loader->lock);
    job->next = NULL;
    if (loader->last) {
        loader->last->next = job;
    } else {
        loader->first = job;
    }
    loader->last = job;
    pthread_cond_signal(&loader->change);
    pthread_mutex_unlock(&loader->lock);
}

void srv_loader_rescan(srv_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    loader->rescan = true;
    pthread_cond_signal(&loader->change);
    pthread_mutex_unlock(&loader->lock);
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
    srv_repository *repository = change->server->repository;
    sni_str name = sni_str_of(change->name);
    change->code =
        change->load
            ? srv_repository_load(repository, name, change->config, change->why, sizeof change->why)
            : srv_repository_unload(repository, name, change->why, sizeof change->why);
    change->task.fn = change_done;
    srv_loop_post(change->loop, &change->task);
}

bool srv_change_begin(const srv_change *wanted, sni_str name) {
    bool possible = name.n && name.n < sizeof wanted->name && !memchr(name.p, 0, name.n);
    srv_change *change = possible ? malloc(sizeof *change) : NULL;
    if (!change) {
        free(wanted->config);
        return false;
    }
    *change = *wanted;
    change->job.run = change_run;
    memcpy(change->name, name.p, name.n);
    change->name[name.n] = 0;
    srv_loader_post(change->server->loader, &change->job);
    return true;
}
