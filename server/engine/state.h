/* state.h - how far a server is in its life, and who wants to know when that changes. */
#ifndef SRV_ENGINE_STATE_H
#define SRV_ENGINE_STATE_H

#include "server/net/net.h"

#include <stdatomic.h>

typedef struct srv_watcher srv_watcher;

/* Of one server. All functions may be called in any thread. */
typedef struct srv_state {
    atomic_bool loaded, stopping;
    pthread_mutex_t lock; /* guards the list */
    srv_watcher *watchers;
} srv_state;

void srv_state_init(srv_state *state);
void srv_state_destroy(srv_state *state); /* when nobody watches any more */

/* The server loads its models, serves, and stops. */
void srv_state_set_loaded(srv_state *state);
void srv_state_set_stopping(srv_state *state);
bool srv_state_loaded(const srv_state *state); /* which does not mean that every model is there */
bool srv_state_stopping(const srv_state *state);

/* The server's state or that of a model may have changed: tells the watchers. */
void srv_state_changed(srv_state *state);

/* Somebody who is told so, in the thread of `loop`: task.fn is called, once for any number of
 * changes since. The owner sets `loop` and `task.fn`, and keeps the struct until it is taken off.
 */
struct srv_watcher {
    srv_task task;
    srv_loop *loop;
    bool posted, listed; /* state.c's */
    srv_watcher *next, *before;
};

void srv_state_watch(srv_state *state, srv_watcher *watcher);
/* No more of that. False: task.fn is on its way and is called once more. */
bool srv_state_unwatch(srv_state *state, srv_watcher *watcher);
/* To be called first in task.fn. False: it is the last time, after srv_state_unwatch. */
bool srv_state_told(srv_state *state, srv_watcher *watcher);

#endif
