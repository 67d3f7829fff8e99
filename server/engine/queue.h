/* queue.h - requests that wait: by model, priority and time. The scheduler's lock guards everything
 * here. */
#ifndef SRV_ENGINE_QUEUE_H
#define SRV_ENGINE_QUEUE_H

#include "server/engine/model.h"

/* Models with waiting requests, those that have waited longest for their turn first. */
typedef struct srv_waiting {
    srv_model *first, *last; /* linked by queue.next */
} srv_waiting;

/* Puts a request at the end of its priority in its model's queue. */
void srv_waiting_add(srv_waiting *waiting, srv_request *request);
/* Takes out a request that waits. */
void srv_waiting_remove(srv_waiting *waiting, srv_request *request);
/* After a batch was taken of a model: the others come first, and it goes if nothing waits for it.
 */
void srv_waiting_rotate(srv_waiting *waiting, srv_model *model);

/* Takes every request whose time is up out of the model's queue and puts it before `*list`; returns
 * the earliest deadline left (0: none). Where the policy is to delay, they go last instead. */
uint64_t srv_waiting_expire(srv_waiting *waiting, srv_model *model, uint64_t now,
                            srv_request **list);

/* The request whose turn it is; NULL: none waits. */
srv_request *srv_queue_first(const srv_queue *queue);
/* Rows, up to `max`, of requests that can share a run with the first one (which may have more).
 * `batch` not NULL: moves the requests there; srv_waiting_rotate is to follow. */
int64_t srv_queue_gather(srv_queue *queue, int64_t max, srv_batch *batch);

#endif
