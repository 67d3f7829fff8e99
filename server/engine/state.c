/* state.c - whether the server takes requests, and who wants to know when that changes. */
#include "server/engine/state.h"
#include "server/engine/repository.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_bool loaded, stopping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static srv_watcher *watchers;

void srv_state_set_loaded(void) {
    atomic_store(&loaded, true);
    srv_state_changed();
}

void srv_state_set_stopping(void) {
    atomic_store(&stopping, true);
    srv_state_changed();
}

bool srv_state_ready(void) {
    return atomic_load(&loaded) && !atomic_load(&stopping) && srv_repository_ready();
}

bool srv_state_stopping(void) {
    return atomic_load(&stopping);
}

void srv_state_changed(void) {
    pthread_mutex_lock(&lock);
    for (srv_watcher *w = watchers; w; w = w->next) {
        if (w->posted) continue;
        w->posted = true;
        srv_loop_post(w->loop, &w->task);
    }
    pthread_mutex_unlock(&lock);
}

void srv_state_watch(srv_watcher *watcher) {
    pthread_mutex_lock(&lock);
    watcher->listed = true;
    watcher->before = NULL;
    watcher->next = watchers;
    if (watchers) watchers->before = watcher;
    watchers = watcher;
    pthread_mutex_unlock(&lock);
}

bool srv_state_unwatch(srv_watcher *watcher) {
    pthread_mutex_lock(&lock);
    if (watcher->before) {
        watcher->before->next = watcher->next;
    } else {
        watchers = watcher->next;
    }
    if (watcher->next) watcher->next->before = watcher->before;
    watcher->listed = false;
    bool idle = !watcher->posted;
    pthread_mutex_unlock(&lock);
    return idle;
}

bool srv_state_told(srv_watcher *watcher) {
    pthread_mutex_lock(&lock);
    watcher->posted = false;
    bool listed = watcher->listed;
    pthread_mutex_unlock(&lock);
    return listed;
}
