/* batch.h - one run for one or more requests: inputs put together, outputs taken apart. */
#ifndef SRV_ENGINE_BATCH_H
#define SRV_ENGINE_BATCH_H

#include "server/engine/model.h"

struct srv_batch {
    srv_model *model;
    srv_request *first; /* linked by `next` */
    size_t count;
    int64_t rows;
    size_t live;       /* requests that somebody still waits for; the scheduler's lock guards it */
    sn_cancel *cancel; /* the thread's */
    int threads;
    uint64_t time_limit_ns; /* 0: the model's */
};

/* Runs it and fills outcome, outputs and times of every request. Requests that cannot be run
 * together after all are run one by one. */
void srv_batch_run(srv_batch *batch);

/* A number that differs between requests that cannot share a run (and rarely agrees for others); of
 * a model without batching, between all that differ in shape. */
uint64_t srv_batch_signature(const srv_request *request);
/* Whether they can. */
bool srv_batch_alike(const srv_request *a, const srv_request *b);

#endif
