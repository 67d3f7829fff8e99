/* pool.h - memory that the runs of a session share, whatever graph and shape they are of.
 *
 * A workspace is what one run of one graph needs beside its tables: the arena of planned tensors
 * and the scratch of kernels. It grows to the largest need and serves any plan, so that memory does
 * not grow with the number of shapes. There are as many as runs at once, bodies included. One that
 * the last runs had no use for is freed, and one far larger than they needed is made smaller. */
#ifndef SNI_EXEC_POOL_H
#define SNI_EXEC_POOL_H

#include "base/arena.h"
#include "plan/plan.h"

#include <pthread.h>

/* Memory for planned tensors. */
typedef struct sni_run_buffer {
    unsigned char *data; /* NULL: none yet */
    size_t bytes;        /* most that was asked for */
    size_t size;         /* what there is; more than `bytes` once it has grown, not in memory yet */
} sni_run_buffer;

typedef struct sni_workspace {
    sni_run_buffer arena;
    sni_buffer *scratch;        /* kernels' working memory, kept from step to step and run to run */
    size_t scratch_touched;     /* bytes of it that have been used; the rest may cost nothing yet */
    size_t scratch_wanted;      /* most bytes that one step has asked for so far */
    sni_arena types;            /* what the dynamic step under way infers */
    size_t recent;              /* largest arena that the last runs needed */
    uint64_t used;              /* sni_pool.clock when it was last taken */
    uint64_t measured;          /* sni_pool.clock when `recent` was last started anew */
    struct sni_workspace *next; /* while it is idle */
} sni_workspace;

typedef struct sni_pool {
    pthread_mutex_t lock;
    sni_workspace *idle;
    uint64_t clock;               /* workspaces taken so far */
    sni_budget packed;            /* packed weights of the session; its limit is the session's */
    size_t plan_limit;            /* bytes of plans that are kept */
    atomic_size_t plan_bytes;     /* of all plans that are kept */
    sni_choosing choosing;        /* of the session's programs */
    const sni_finished *finished; /* packed data of a compiled model; NULL: none */
    atomic_bool fetched;          /* its pages have been mapped */
    uint32_t programs;            /* made so far */
} sni_pool;

sn_status sni_pool_init(sni_pool *pool, size_t memory_limit, size_t plan_limit, sn_error *err);
void sni_pool_free(sni_pool *pool); /* when no workspace is taken any more */

/* A workspace with at least `arena_bytes` of arena. Thread-safe. */
sn_status sni_pool_take(sni_pool *pool, size_t arena_bytes, sni_workspace **out, sn_error *err);

/* Where steps ask for so much working memory that it should not move any more when it grows: gives
 * the workspace all the addresses that it may ever need, whose pages come when they are used. *old,
 * if set, is the scratch of before, which the step may still be using. False: nothing changed. */
bool sni_workspace_reserve(sni_workspace *w, size_t asked, sni_buffer **old);

/* Offers the workspace memory that a step took beside its scratch: it becomes the scratch if it is
 * the larger one, no longer charged to a budget, and goes otherwise. */
void sni_workspace_keep(sni_workspace *w, sni_buffer *extra);

/* Hands a workspace back. Thread-safe. */
void sni_pool_return(sni_pool *pool, sni_workspace *w);

/* Frees every idle workspace; returns the bytes. Thread-safe. */
size_t sni_pool_trim(sni_pool *pool);

#endif
