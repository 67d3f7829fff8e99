/* state.c - how far a server is in its life, and who wants to know when that changes. */
#include "server/engine/state.h"

void srv_state_init(srv_state *state) {
    atomic_init(&state->loaded, false);
    atomic_init(&state->stopping, false);
    pthread_mutex_init(&state->lock, NULL);
    state->watchers = NULL;
}

void srv_state_destroy(srv_state *state) {
    pthread_mutex_destroy(&state->lock);
}

void srv_state_set_loaded(srv_state *state) {
    atomic_store(&state->loaded, true);
    srv_state_changed(state);
}

void srv_state_set_stopping(srv_state *state) {
    atomic_store(&state->stopping, true);
    srv_state_changed(state);
}

bool srv_state_loaded(const srv_state *state) {
    return atomic_load(&state->loaded);
}

bool srv_state_stopping(const srv_state *state) {
    return atomic_load(&state->stopping);
}

void srv_state_changed(srv_state *state) {
    pthread_mutex_lock(&state->lock);
    for (srv_watcher *w = state->watchers; w; w = w->next) {
        if (w->posted) continue;
        w->posted = true;
        srv_loop_post(w->loop, &w->task);
    }
    pthread_mutex_unlock(&state->lock);
}

void srv_state_watch(srv_state *state, srv_watcher *watcher) {
    pthread_mutex_lock(&state->lock);
    watcher->listed = true;
    watcher->before = NULL;
    watcher->next = state->watchers;
    if (state->watchers) state->watchers->before = watcher;
    state->watchers = watcher;
    pthread_mutex_unlock(&state->lock);
}

bool srv_state_unwatch(srv_state *state, srv_watcher *watcher) {
    pthread_mutex_lock(&state->lock);
    if (watcher->before) {
        watcher->before->next = watcher->next;
    } else {
        state->watchers = watcher->next;
    }
    if (watcher->next) watcher->next->before = watcher->before;
    watcher->listed = false;
    bool idle = !watcher->posted;
    pthread_mutex_unlock(&state->lock);
    return idle;
}

bool srv_state_told(srv_state *state, srv_watcher *watcher) {
    pthread_mutex_lock(&state->lock);
    watcher->posted = false;
    bool listed = watcher->listed;
    pthread_mutex_unlock(&state->lock);
    return listed;
}
