/* threadpool.h - one pool of worker threads for the whole process.
 *
 * Any number of threads may call at once; each call's caller works too. Workers are started when
 * first needed, sleep when idle, and are started anew in a child after fork. */
#ifndef SNI_BASE_THREADPOOL_H
#define SNI_BASE_THREADPOOL_H

#include "sinter.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { SNI_MAX_PARTS = 256 }; /* threads of a loop, its caller's included */

/* Threads that may usefully run at once here: CPU affinity and cgroup quota, at least 1. */
int sni_threads_available(void);

/* Calls fn(ctx, begin, end) over disjoint pieces that cover [0, n), each of at least `grain`
 * elements where n allows, on at most `threads` threads (the caller's included; 0: all that
 * sni_threads_limit allows), and
 * returns when all have returned. The pieces depend on n, grain and `threads` only; with one
 * thread there is one piece. `fn` must not fail; it may call sni_parallel_for, which then runs in
 * the calling thread alone. */
void sni_parallel_for(int threads, int64_t n, int64_t grain,
                      void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);

/* A loop under way; its fields are the pool's. */
typedef struct sni_loop {
    void (*fn)(void *ctx, int64_t begin, int64_t end);
    void *ctx;
    int64_t n, pieces;
    atomic_int_least64_t claimed;    /* claims on a piece; those from `pieces` on found none left */
    atomic_int_least64_t of_workers; /* claims by workers that found one */
    int places;                      /* workers that may still join; under the pool's lock */
    bool posted;                     /* workers were called */
    bool asleep;                     /* the caller waits on `done`; under the pool's lock */
    atomic_int active;               /* workers inside; changed under the lock, read without it */
    struct sni_loop *before, *after;
} sni_loop;

/* The two halves of sni_parallel_for, for a caller with something else to do in between, which may
 * be loops of its own: workers begin at once, the caller takes part from sni_parallel_end() on,
 * which returns when all is done. `loop` is the pool's until then. */
void sni_parallel_begin(sni_loop *loop, int threads, int64_t n, int64_t grain,
                        void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);
void sni_parallel_end(sni_loop *loop);

/* Most threads of the calling thread's loops that name no number; 0: all there are. Returns what
 * was set before. */
int sni_threads_limit(int threads);

/* What sn_use_thread_functions says of it; false in a thread that is inside sni_parallel_for. */
bool sni_threads_by(const sn_thread_functions *functions);

#endif
