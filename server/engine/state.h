/* state.h - whether the server takes requests, and who wants to know when that changes. */
#ifndef SRV_ENGINE_STATE_H
#define SRV_ENGINE_STATE_H

#include "server/net/net.h"

/* What the server is doing: it loads its models, serves, and stops. */
void srv_state_set_loaded(void);
void srv_state_set_stopping(void);
bool srv_state_ready(void); /* models are loaded and it is not stopping */
bool srv_state_stopping(void);

/* The server's state or that of a model may have changed. Any thread. */
void srv_state_changed(void);

/* Somebody who is told so, in the thread of `loop`: task.fn is called, once for any number of
 * changes since. The owner sets `loop` and `task.fn`. */
typedef struct srv_watcher {
    srv_task task;
    srv_loop *loop;
    bool posted, listed; /* state.c's */
    struct srv_watcher *next, *before;
} srv_watcher;

void srv_state_watch(srv_watcher *watcher);
/* No more of that. False: task.fn is on its way and is called once more. */
bool srv_state_unwatch(srv_watcher *watcher);
/* To be called first in task.fn. False: it is the last time, after srv_state_unwatch. */
bool srv_state_told(srv_watcher *watcher);

#endif
