/* loader.c - threads for what takes long: loading models, several at once; and for what is done
 * from time to time. */
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

#define WORKERS 4       /* models that load at once */
#define MOST_WORKERS 20 /* with those that take the place of threads that hang */
#define GRACE_NS 2000000000u
#define RETRY_NS 1000000000u

typedef struct worker {
    srv_loader *loader;
    pthread_t thread;
    srv_job *job; /* under way; NULL: none */
    uint64_t due; /* when it hangs; 0: never */
    bool hangs;
} worker;

struct srv_loader {
    srv_server *server;
    pthread_mutex_t lock;        /* guards what is below */
    pthread_cond_t change, work; /* for the thread that watches, for workers */
    pthread_t watcher;
    worker workers[MOST_WORKERS];
    int worker_count, hanging;
    srv_job *first; /* that waits */
    bool watching, rescan, stopping;
    timer scan, trim;
    uint64_t retry; /* when a look at the folder that failed is tried again; 0: none did */
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

static void sooner(uint64_t *until, uint64_t when) {
    if (when && (!*until || when < *until)) *until = when;
}

/* Waits for a change, a timer, or until a job should be over. */
static void wait_for_change(srv_loader *loader) {
    uint64_t until = 0;
    sooner(&until, loader->retry);
    if (loader->scan.every) sooner(&until, loader->scan.next);
    if (loader->trim.every) sooner(&until, loader->trim.next);
    for (int i = 0; i < loader->worker_count; i++) {
        const worker *w = &loader->workers[i];
        if (w->job && !w->hangs) sooner(&until, w->due);
    }
    srv_wait_until(&loader->change, &loader->lock, until);
}

/* ---- Trimming ----------------------------------------------------------------------------- */

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

/* ---- Jobs --------------------------------------------------------------------------------- */

static bool under_way(const srv_loader *loader, const char *key) {
    for (int i = 0; i < loader->worker_count; i++) {
        const srv_job *job = loader->workers[i].job;
        if (job && strcmp(job->key, key) == 0) return true;
    }
    return false;
}

/* Takes the first job off the list whose model is nobody's business at the moment. */
static srv_job *take_job(srv_loader *loader) {
    for (srv_job **at = &loader->first; *at; at = &(*at)->next) {
        srv_job *job = *at;
        if (under_way(loader, job->key)) continue;
        *at = job->next;
        return job;
    }
    return NULL;
}

/* Takes those off the list that wait for a model; NULL: all of them. */
static srv_job *take_waiting(srv_loader *loader, const char *key) {
    srv_job *taken = NULL, **end = &taken;
    for (srv_job **at = &loader->first; *at;) {
        srv_job *job = *at;
        if (key && strcmp(job->key, key) != 0) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        job->next = NULL;
        *end = job;
        end = &job->next;
    }
    return taken;
}

static void drop_jobs(srv_job *jobs) {
    while (jobs) {
        srv_job *job = jobs;
        jobs = job->next;
        job->drop(job);
    }
}

static void run_job(worker *w, srv_job *job) {
    srv_loader *loader = w->loader;
    uint64_t limit = loader->server->limits.load_ns;
    w->job = job;
    w->due = limit ? srv_now_ns() + limit + GRACE_NS : 0;
    pthread_cond_signal(&loader->change); /* there is something to watch */
    pthread_mutex_unlock(&loader->lock);
    job->run(job);
    pthread_mutex_lock(&loader->lock);
    w->job = NULL;
    if (w->hangs) loader->hanging--;
    w->hangs = false;
    pthread_cond_broadcast(&loader->work); /* others of its key may run now */
    pthread_mutex_unlock(&loader->lock);
    job->done(job);
    srv_state_changed(&loader->server->state);
    pthread_mutex_lock(&loader->lock);
}

static void *worker_main(void *ctx) {
    worker *w = ctx;
    srv_loader *loader = w->loader;
    pthread_mutex_lock(&loader->lock);
    while (!loader->stopping) {
        srv_job *job = take_job(loader);
        if (job) {
            run_job(w, job);
        } else {
            pthread_cond_wait(&loader->work, &loader->lock);
        }
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

/* Starts a thread; the lock is held. */
static bool add_worker(srv_loader *loader) {
    worker *w = &loader->workers[loader->worker_count];
    *w = (worker){.loader = loader};
    if (pthread_create(&w->thread, NULL, worker_main, w) != 0) return false;
    loader->worker_count++;
    return true;
}

/* ---- Watching ----------------------------------------------------------------------------- */

static worker *find_overdue(srv_loader *loader) {
    uint64_t now = srv_now_ns();
    for (int i = 0; i < loader->worker_count; i++) {
        worker *w = &loader->workers[i];
        if (w->job && !w->hangs && w->due && now >= w->due) return w;
    }
    return NULL;
}

/* The thread is lost for as long as its job hangs. */
static void give_up_on(srv_loader *loader, worker *w) {
    w->hangs = true;
    loader->hanging++;
    srv_log(&loader->server->log, SRV_LOG_ERROR, "loading a model hangs", "model", w->job->key,
            NULL);
    w->job->overdue(w->job);
    srv_job *waiting = take_waiting(loader, w->job->key);
    if (loader->worker_count - loader->hanging < WORKERS && loader->worker_count < MOST_WORKERS) {
        add_worker(loader);
    }
    pthread_mutex_unlock(&loader->lock);
    drop_jobs(waiting);
    srv_state_changed(&loader->server->state);
    pthread_mutex_lock(&loader->lock);
}

static void look_at_folder(srv_loader *loader) {
    loader->rescan = false;
    loader->retry = 0;
    pthread_mutex_unlock(&loader->lock);
    bool read = srv_repository_scan(loader->server->repository);
    srv_state_changed(&loader->server->state);
    pthread_mutex_lock(&loader->lock);
    if (!read) loader->retry = srv_now_ns() + RETRY_NS;
}

static void *watcher_main(void *ctx) {
    srv_loader *loader = ctx;
    worker *late;
    pthread_mutex_lock(&loader->lock);
    while (!loader->stopping) {
        bool again = loader->retry && srv_now_ns() >= loader->retry;
        if (loader->rescan || again || rings(&loader->scan)) {
            look_at_folder(loader);
        } else if (rings(&loader->trim)) {
            pthread_mutex_unlock(&loader->lock);
            trim_models(loader);
            pthread_mutex_lock(&loader->lock);
        } else if ((late = find_overdue(loader)) != NULL) {
            give_up_on(loader, late);
        } else {
            wait_for_change(loader);
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
    pthread_cond_init(&loader->work, NULL);
    return loader;
}

sn_status srv_loader_start(srv_loader *loader, uint64_t poll_ns, uint64_t idle_ns, sn_error *err) {
    set_timer(&loader->scan, poll_ns);
    set_timer(&loader->trim, idle_ns / 2);
    loader->idle_ns = idle_ns;
    loader->rescan = true;
    pthread_mutex_lock(&loader->lock);
    bool ok = true;
    while (ok && loader->worker_count < WORKERS) ok = add_worker(loader);
    if (ok) ok = pthread_create(&loader->watcher, NULL, watcher_main, loader) == 0;
    loader->watching = ok;
    pthread_mutex_unlock(&loader->lock);
    return ok ? SN_OK : sni_fail(err, SN_NO_MEMORY, "cannot start a thread");
}

void srv_loader_stop(srv_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    loader->stopping = true;
    srv_job *waiting = take_waiting(loader, NULL);
    pthread_cond_signal(&loader->change);
    pthread_cond_broadcast(&loader->work);
    pthread_mutex_unlock(&loader->lock);
    drop_jobs(waiting);
    if (loader->watching) pthread_join(loader->watcher, NULL); /* no more workers from here on */
    loader->watching = false;
    for (int i = 0; i < loader->worker_count; i++) pthread_join(loader->workers[i].thread, NULL);
    loader->worker_count = 0;
}

void srv_loader_destroy(srv_loader *loader) {
    if (!loader) return;
    pthread_cond_destroy(&loader->change);
    pthread_cond_destroy(&loader->work);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

static bool hangs(const srv_loader *loader, const char *key) {
    for (int i = 0; i < loader->worker_count; i++) {
        const worker *w = &loader->workers[i];
        if (w->hangs && strcmp(w->job->key, key) == 0) return true;
    }
    return false;
}

void srv_loader_post(srv_loader *loader, srv_job *job) {
    pthread_mutex_lock(&loader->lock);
    bool possible = !loader->stopping && !hangs(loader, job->key);
    if (possible) {
        srv_job **at = &loader->first;
        while (*at) at = &(*at)->next;
        job->next = NULL;
        *at = job;
        pthread_cond_signal(&loader->work);
    }
    pthread_mutex_unlock(&loader->lock);
    if (!possible) job->drop(job);
}

void srv_loader_rescan(srv_loader *loader) {
    pthread_mutex_lock(&loader->lock);
    loader->rescan = true;
    pthread_cond_signal(&loader->change);
    pthread_mutex_unlock(&loader->lock);
}

/* ---- Changes that clients ask for --------------------------------------------------------- */

static void change_told(srv_task *task) {
    srv_change *change = (srv_change *)((char *)task - offsetof(srv_change, task));
    change->done(change);
    free(change->config);
    free(change);
}

static void tell(srv_change *change) {
    change->task.fn = change_told;
    srv_loop_post(change->loop, &change->task);
}

static void change_run(srv_job *job) {
    srv_change *change = (srv_change *)job; /* its first member */
    srv_repository *repository = change->server->repository;
    sni_str name = sni_str_of(change->name);
    change->code =
        change->load
            ? srv_repository_load(repository, name, change->config, change->why, sizeof change->why)
            : srv_repository_unload(repository, name, change->why, sizeof change->why);
}

static void change_done(srv_job *job) {
    srv_change *change = (srv_change *)job;
    if (!change->answered) {
        tell(change);
        return;
    }
    free(change->config);
    free(change);
}

/* The client is not kept waiting: a copy brings the answer. */
static void change_overdue(srv_job *job) {
    srv_change *change = (srv_change *)job;
    srv_change *copy = malloc(sizeof *copy);
    srv_repository_overdue(change->server->repository, sni_str_of(change->name));
    if (!copy) return;
    change->answered = true;
    /* `code` and `why` are the running job's */
    *copy = (srv_change){.server = change->server,
                         .loop = change->loop,
                         .done = change->done,
                         .ctx = change->ctx,
                         .load = change->load,
                         .code = SRV_DEADLINE};
    snprintf(copy->why, sizeof copy->why, "loading '%s' takes longer than it may", change->name);
    tell(copy);
}

static void change_dropped(srv_job *job) {
    srv_change *change = (srv_change *)job;
    bool stopping = srv_state_stopping(&change->server->state);
    change->code = SRV_UNAVAILABLE;
    snprintf(change->why, sizeof change->why, "%s",
             stopping ? "the server is stopping" : "an earlier load of the model hangs");
    tell(change);
}

srv_code srv_change_begin(const srv_change *wanted, sni_str name) {
    bool possible = name.n && name.n < sizeof wanted->name && !memchr(name.p, 0, name.n);
    srv_change *change = possible ? malloc(sizeof *change) : NULL;
    if (!change) {
        free(wanted->config);
        return possible ? SRV_UNAVAILABLE : SRV_NOT_FOUND;
    }
    *change = *wanted;
    memcpy(change->name, name.p, name.n);
    change->name[name.n] = 0;
    change->job = (srv_job){.key = change->name,
                            .run = change_run,
                            .done = change_done,
                            .drop = change_dropped,
                            .overdue = change_overdue};
    srv_loader_post(change->server->loader, &change->job);
    return SRV_OK;
}
