/* repository_ask.c - what is served, what is not, and why. */
#include "server/engine/repository_table.h"
#include "server/server.h"

#include <stdio.h>

bool srv_entry_serves(const srv_entry *e) {
    for (const srv_version *v = e->versions; v; v = v->next) {
        if (v->model) return true;
    }
    return false;
}

/* Why an entry, or its version (NULL: none), is not served. Under the lock. */
static const char *reason_of(const srv_entry *e, const srv_version *v) {
    if (v && v->reason[0]) return v->reason;
    if (!v && e->reason[0]) return e->reason;
    return v && !v->loading ? "it could not be loaded" : "it is loading";
}

srv_code srv_repository_find(srv_repository *repo, sni_str name, int64_t number, srv_model **out,
                             char *why, size_t why_size) {
    srv_code code = SRV_NOT_FOUND;
    snprintf(why, why_size, "there is no model '%.*s'", SNI_FMT(name));
    pthread_rwlock_rdlock(&repo->lock);
    srv_entry *e = srv_find_entry(repo, name);
    const srv_version *found = NULL;
    for (srv_version *v = e ? e->versions : NULL; v; v = v->next) {
        if (number && v->number != number) continue;
        if (!found) found = v;
        if (!v->model) continue;
        *out = srv_model_retain(v->model);
        code = SRV_OK;
        break;
    }
    if (code != SRV_OK && e && (found || (!number && e->wanted))) {
        const char *reason = reason_of(e, found);
        code = SRV_UNAVAILABLE;
        snprintf(why, why_size, "model '%.*s' is not ready: %s", SNI_FMT(name), reason);
    } else if (code != SRV_OK && e && number) {
        snprintf(why, why_size, "model '%.*s' has no version %lld", SNI_FMT(name),
                 (long long)number);
    } else if (code != SRV_OK && e) {
        snprintf(why, why_size, "model '%.*s' is not loaded", SNI_FMT(name));
    }
    pthread_rwlock_unlock(&repo->lock);
    return code;
}

bool srv_repository_ready(srv_repository *repo) {
    pthread_rwlock_rdlock(&repo->lock);
    bool ready = repo->scanned;
    for (srv_entry *e = repo->entries; e && ready; e = e->next)
        ready = !e->wanted || srv_entry_serves(e);
    pthread_rwlock_unlock(&repo->lock);
    return ready;
}

void srv_repository_unready(srv_repository *repo, char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    pthread_rwlock_rdlock(&repo->lock);
    for (srv_entry *e = repo->entries; e && at < size; e = e->next) {
        if (!e->wanted || srv_entry_serves(e)) continue;
        int n = snprintf(text + at, size - at, "%smodel '%s': %s", at ? "; " : "", e->name,
                         reason_of(e, e->versions));
        at += n > 0 ? (size_t)n : 0;
    }
    pthread_rwlock_unlock(&repo->lock);
}

void srv_repository_each(srv_repository *repo, srv_index_fn fn, void *ctx) {
    pthread_rwlock_rdlock(&repo->lock);
    for (srv_entry *e = repo->entries; e; e = e->next) {
        if (!e->versions) {
            srv_index_entry line = {.name = e->name,
                                    .state = "UNAVAILABLE",
                                    .reason = e->wanted ? reason_of(e, NULL) : "unloaded",
                                    .wanted = e->wanted};
            fn(ctx, &line);
        }
        for (srv_version *v = e->versions; v; v = v->next) {
            srv_index_entry line = {.name = e->name,
                                    .version = v->number,
                                    .state = v->model     ? "READY"
                                             : v->loading ? "LOADING"
                                                          : "UNAVAILABLE",
                                    .reason = v->model ? "" : v->reason,
                                    .wanted = e->wanted,
                                    .model = v->model};
            fn(ctx, &line);
        }
    }
    pthread_rwlock_unlock(&repo->lock);
}

void srv_repository_overdue(srv_repository *repo, sni_str name) {
    double seconds = (double)repo->server->limits.load_ns / 1e9;
    pthread_rwlock_wrlock(&repo->lock);
    srv_entry *e = srv_find_entry(repo, name);
    for (srv_version *v = e ? e->versions : NULL; v; v = v->next) {
        if (!v->loading || v->model) continue;
        snprintf(v->reason, sizeof v->reason,
                 "loading it takes longer than %g s (--load-timeout) and does not end", seconds);
    }
    pthread_rwlock_unlock(&repo->lock);
}

/* ---- Texts -------------------------------------------------------------------------------- */

void srv_repository_hide_paths(const srv_repository *repo, char *text) {
    for (size_t i = 0; i < 2; i++) {
        size_t length = repo->hidden[i] ? strlen(repo->hidden[i]) : 0;
        if (length < 2) continue;
        for (char *at; (at = strstr(text, repo->hidden[i])) != NULL;) {
            size_t cut = length + (at[length] == '/' ? 1 : 0);
            memmove(at, at + cut, strlen(at + cut) + 1);
        }
    }
}
