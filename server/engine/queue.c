/* queue.c - requests that wait: by model, priority and time. */
#include "server/engine/queue.h"
#include "server/engine/batch.h"

#include <assert.h>

#define LOOK_AHEAD 1024 /* waiting requests looked at for one batch */

/* ---- Models ------------------------------------------------------------------------------- */

static void list_model(srv_waiting *waiting, srv_model *model) {
    srv_queue *q = &model->queue;
    if (q->listed) return;
    q->listed = true;
    q->next = NULL;
    if (waiting->last) {
        waiting->last->queue.next = model;
    } else {
        waiting->first = model;
    }
    waiting->last = model;
}

static void unlist_model(srv_waiting *waiting, srv_model *model) {
    srv_model *before = NULL;
    for (srv_model *m = waiting->first; m; before = m, m = m->queue.next) {
        if (m != model) continue;
        if (before) {
            before->queue.next = m->queue.next;
        } else {
            waiting->first = m->queue.next;
        }
        if (waiting->last == m) waiting->last = before;
        m->queue.listed = false;
        return;
    }
}

void srv_waiting_rotate(srv_waiting *waiting, srv_model *model) {
    unlist_model(waiting, model);
    if (model->queue.count) list_model(waiting, model);
}

/* ---- Requests ----------------------------------------------------------------------------- */

void srv_waiting_add(srv_waiting *waiting, srv_request *r) {
    srv_queue *q = &r->model->queue;
    r->next = NULL;
    r->queued = true;
    if (q->last[r->level]) {
        q->last[r->level]->next = r;
    } else {
        q->first[r->level] = r;
    }
    q->last[r->level] = r;
    q->count++;
    list_model(waiting, r->model);
}

/* Takes `r` out, which follows `before` (NULL: it is the first). */
static void take_out(srv_queue *q, srv_request *before, srv_request *r) {
    assert(r->queued && q->count > 0 && (before ? before->next : q->first[r->level]) == r);
    if (before) {
        before->next = r->next;
    } else {
        q->first[r->level] = r->next;
    }
    if (q->last[r->level] == r) q->last[r->level] = before;
    r->next = NULL;
    r->queued = false;
    q->count--;
}

void srv_waiting_remove(srv_waiting *waiting, srv_request *request) {
    srv_queue *q = &request->model->queue;
    srv_request *before = NULL;
    for (srv_request *r = q->first[request->level]; r && r != request; r = r->next) before = r;
    take_out(q, before, request);
    if (q->count == 0) unlist_model(waiting, request->model);
}

uint64_t srv_waiting_expire(srv_waiting *waiting, srv_model *model, uint64_t now,
                            srv_request **list) {
    srv_queue *q = &model->queue;
    uint64_t earliest = 0;
    for (uint32_t level = 0; level < model->config.priority_levels; level++) {
        srv_request *before = NULL, *next;
        for (srv_request *r = q->first[level]; r; r = next) {
            next = r->next;
            if (r->deadline && now >= r->deadline) {
                take_out(q, before, r);
                if (model->config.timeout_delays) {
                    r->deadline = 0;
                    r->level = model->config.priority_levels - 1;
                    srv_waiting_add(waiting, r);
                    continue;
                }
                srv_request_fail(r, SRV_DEADLINE, "its time was up while it waited");
                r->next = *list;
                *list = r;
                continue;
            }
            if (r->deadline && (!earliest || r->deadline < earliest)) earliest = r->deadline;
            before = r;
        }
    }
    if (q->count == 0) unlist_model(waiting, model);
    return earliest;
}

/* ---- Batches ------------------------------------------------------------------------------ */

srv_request *srv_queue_first(const srv_queue *queue) {
    for (int level = 0; level < SRV_PRIORITIES; level++) {
        if (queue->first[level]) return queue->first[level];
    }
    return NULL;
}

int64_t srv_queue_gather(srv_queue *q, int64_t max, srv_batch *batch) {
    srv_request *head = srv_queue_first(q), **tail = batch ? &batch->first : NULL;
    int64_t rows = 0;
    int looked = 0;
    for (int level = 0; level < SRV_PRIORITIES; level++) {
        srv_request *before = NULL, *next;
        for (srv_request *r = q->first[level]; r && looked < LOOK_AHEAD; r = next, looked++) {
            next = r->next;
            bool fits = rows == 0 || (rows + r->rows <= max && srv_batch_alike(head, r));
            if (!fits) {
                before = r;
                continue;
            }
            rows += r->rows > 0 ? r->rows : 1;
            if (batch) {
                take_out(q, before, r);
                r->batch = batch;
                *tail = r;
                tail = &r->next;
                batch->count++;
            } else {
                before = r;
            }
            if (rows >= max) return rows;
        }
    }
    return rows;
}
