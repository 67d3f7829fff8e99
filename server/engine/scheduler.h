/* scheduler.h - takes requests in, gathers them into batches and runs them.
 *
 * There are as many threads as CPUs, for all models together; a run uses the library's pool with a
 * share of it that shrinks as more runs are under way, so that the machine is never oversubscribed.
 * A model has as many runs at once as it has instances. An instance that frees takes what is
 * queued: requests that agree in everything but the rows of their first dimension, up to the
 * model's largest batch or to the size that has cost least a row (tune.h); others are run as they
 * are, nothing is padded. A run that is known to be short is not handed to another thread at all.
 */
#ifndef SRV_ENGINE_SCHEDULER_H
#define SRV_ENGINE_SCHEDULER_H

#include "server/engine/model.h"

typedef struct srv_scheduler srv_scheduler;

/* A scheduler of the server without threads; NULL without memory. Its functions may be called in
 * any thread, but for this one, start and destroy. */
srv_scheduler *srv_scheduler_create(srv_server *server);
/* Starts the threads (0: as many as CPUs). To be called once. */
sn_status srv_scheduler_start(srv_scheduler *scheduler, int threads, sn_error *err);
/* Ends them and frees everything, after the last request is done. NULL, and one that was not
 * started or only in part, are fine. */
void srv_scheduler_destroy(srv_scheduler *scheduler);
int srv_scheduler_threads(const srv_scheduler *scheduler); /* 0 before it is started */

/* Takes a checked request to its server's scheduler. `done` is called when it is over, whatever
 * happens: perhaps before this returns, perhaps in another thread. */
void srv_submit(srv_request *request);

/* Whoever waited for it is gone: it is taken out of the queue, or its run is stopped once nobody
 * else waits for it. `done` is still called. To be called before `done` has been, which the caller
 * sees to. */
void srv_cancel(srv_request *request);

/* Requests that wait for a model, and runs of it under way. */
void srv_scheduler_queue(srv_scheduler *scheduler, const srv_model *model, uint64_t *waiting,
                         uint64_t *running);

/* Whether a model has had nothing to do for `ns` for the first time since its last run. */
bool srv_scheduler_rests(srv_scheduler *scheduler, srv_model *model, uint64_t ns);

/* Requests that wait or run, of all models. */
size_t srv_scheduler_load(srv_scheduler *scheduler);

#endif
