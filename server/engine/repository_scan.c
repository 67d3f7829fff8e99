/* repository_scan.c - looks at the folder, and has the loader bring each model into line with it.
 */
#include "server/engine/loader.h"
#include "server/engine/repository_table.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

/* A job of the loader: brings a model into line with the folder. */
typedef struct update {
    srv_job job;
    srv_repository *repo;
    srv_entry *e;
    bool first; /* of the first scan, and not counted as tried yet */
} update;

typedef struct tally {
    int wanted, served;
} tally;

static void report_first_scan(srv_repository *repo) {
    tally t = {0};
    pthread_rwlock_rdlock(&repo->lock);
    for (srv_entry *e = repo->entries; e; e = e->next) {
        t.wanted += e->wanted;
        t.served += e->wanted && srv_entry_serves(e);
    }
    pthread_rwlock_unlock(&repo->lock);
    char served[16], missing[16];
    snprintf(served, sizeof served, "%d", t.served);
    snprintf(missing, sizeof missing, "%d", t.wanted - t.served);
    srv_logger *log = &repo->server->log;
    if (t.served < t.wanted) {
        srv_log(log, SRV_LOG_ERROR, "not ready", "served", served, "missing", missing, NULL);
    } else if (!t.served && !repo->explicit_only) {
        srv_log(log, SRV_LOG_WARNING, "ready, but there is no model to serve", "expected",
                "NAME.onnx, NAME/model.onnx or NAME/1/model.onnx", NULL);
    } else {
        srv_log(log, SRV_LOG_INFO, "ready", "served", served, NULL);
    }
}

/* One of the first scan's models was tried, or (`one` false) all of them are found. */
static void count_first(srv_repository *repo, bool one) {
    pthread_rwlock_wrlock(&repo->lock);
    if (one) repo->first_left--;
    bool over = (repo->searched || !one) && !repo->scanned && repo->first_left == 0;
    if (!one) repo->searched = true;
    if (over) repo->scanned = true;
    pthread_rwlock_unlock(&repo->lock);
    if (!over) return;
    report_first_scan(repo);
    srv_state_set_loaded(&repo->server->state);
}

static void tried(update *u) {
    if (u->first) count_first(u->repo, true);
    u->first = false;
}

static void not_queued(const update *u) {
    pthread_rwlock_wrlock(&u->repo->lock);
    u->e->queued = false;
    pthread_rwlock_unlock(&u->repo->lock);
}

static void update_run(srv_job *job) {
    update *u = (update *)job; /* its first member */
    sn_error err = {0};
    not_queued(u);
    if (!srv_folder_has(&u->repo->folder, sni_str_of(u->e->name))) {
        srv_entry_want(u->repo, u->e, false);
        srv_entry_drop(u->repo, u->e);
    } else if (u->e->wanted) {
        srv_entry_update(u->repo, u->e, false, &err);
    }
}

static void update_done(srv_job *job) {
    tried((update *)job);
    free(job);
}

static void update_dropped(srv_job *job) {
    not_queued((update *)job);
    update_done(job);
}

static void update_overdue(srv_job *job) {
    update *u = (update *)job;
    srv_repository_overdue(u->repo, sni_str_of(u->e->name));
    tried(u);
}

static void queue_update(srv_repository *repo, srv_entry *e) {
    pthread_rwlock_wrlock(&repo->lock);
    bool first = !repo->searched;
    update *u = e->queued ? NULL : malloc(sizeof *u);
    if (u) {
        e->queued = true;
        repo->first_left += first;
    }
    pthread_rwlock_unlock(&repo->lock);
    if (!u) return;
    *u = (update){.job = {.key = e->name,
                          .run = update_run,
                          .done = update_done,
                          .drop = update_dropped,
                          .overdue = update_overdue},
                  .repo = repo,
                  .e = e,
                  .first = first};
    srv_loader_post(repo->server->loader, &u->job);
}

/* Says once what cannot be served for its name, or for want of room. */
static void log_unfit(srv_repository *repo, const char *name, const char *reason) {
    srv_log(&repo->server->log, repo->searched ? SRV_LOG_VERBOSE : SRV_LOG_ERROR,
            "a model is not served", "model", name, "reason", reason, NULL);
}

bool srv_repository_scan(srv_repository *repo) {
    srv_name_list names, unfit;
    if (!srv_folder_names(&repo->folder, &names, &unfit)) {
        srv_log(&repo->server->log, SRV_LOG_ERROR, "cannot read the model folder", NULL);
        return false;
    }
    for (size_t i = 0; i < unfit.count; i++) {
        log_unfit(repo, unfit.items[i], "a name has letters, digits, '-', '_' and '.' only");
    }
    for (size_t i = 0; i < names.count; i++) {
        if (!srv_add_entry(repo, sni_str_of(names.items[i]), !repo->explicit_only)) {
            log_unfit(repo, names.items[i], "there are too many models");
        }
    }
    srv_name_list_free(&names);
    srv_name_list_free(&unfit);
    pthread_rwlock_rdlock(&repo->lock);
    srv_entry *e = repo->entries;
    pthread_rwlock_unlock(&repo->lock);
    while (e) {
        queue_update(repo, e);
        pthread_rwlock_rdlock(&repo->lock);
        e = e->next;
        pthread_rwlock_unlock(&repo->lock);
    }
    if (!repo->searched) count_first(repo, false);
    return true;
}
