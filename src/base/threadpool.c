/* threadpool.c - one pool of worker threads for the whole process. */
#include "base/threadpool.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum {
    PIECES_PER_THREAD = 4, /* more than one lets a quick thread help a slow one */
    MOST_WORKERS = 255,
    SPIN_SHORTEST = 1000, /* nanoseconds */
    SPIN_LONGEST = 50000
};

/* One sni_parallel_for under way; lives on its caller's stack. */
typedef struct job {
    void (*fn)(void *ctx, int64_t begin, int64_t end);
    void *ctx;
    int64_t n, pieces;
    atomic_int_least64_t next; /* first piece that nobody has taken yet */
    int room;                  /* workers that may still join; under the pool's lock */
    bool asleep;               /* the caller waits on `done`; under the pool's lock */
    atomic_int active;         /* workers inside; changed under the lock, read without it */
    struct job *before, *after;
} job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake; /* for workers: a job was posted */
    pthread_cond_t done; /* for callers: a job's last worker left */
    job *first, *last;   /* jobs that workers may join */
    int workers, sleeping;
    atomic_uint posted; /* counts jobs: what a spinning worker watches */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static _Thread_local bool inside; /* this thread is running a piece */

/* ---- fork: the child has no workers and nobody else's jobs ---- */

static void before_fork(void) {
    pthread_mutex_lock(&pool.lock);
}

static void after_fork_parent(void) {
    pthread_mutex_unlock(&pool.lock);
}

static void after_fork_child(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.first = pool.last = NULL;
    pool.workers = pool.sleeping = 0;
}

static void pool_prepare(void) {
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* ---- Waiting ---- */

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void relax(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spins until ready(arg) or `limit` nanoseconds have passed. True if it got ready. */
static bool spin(bool (*ready)(const void *arg), const void *arg, int64_t limit) {
    int64_t end = now_ns() + limit;
    do {
        for (int i = 0; i < 16; i++) {
            if (ready(arg)) return true;
            relax();
        }
    } while (now_ns() < end);
    return false;
}

static bool posted_since(const void *arg) {
    return atomic_load_explicit(&pool.posted, memory_order_relaxed) != *(const unsigned *)arg;
}

static bool all_left(const void *arg) {
    return atomic_load_explicit(&((const job *)arg)->active, memory_order_acquire) == 0;
}

/* ---- Work ---- */

static void run_piece(const job *j, int64_t piece) {
    int64_t size = j->n / j->pieces, longer = j->n % j->pieces;
    int64_t begin = piece * size + (piece < longer ? piece : longer);
    j->fn(j->ctx, begin, begin + size + (piece < longer));
}

static void run_pieces(job *j) {
    inside = true;
    for (;;) {
        int64_t piece = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (piece >= j->pieces) break;
        run_piece(j, piece);
    }
    inside = false;
}

/* With the lock held. */
static void unlist(job *j) {
    if (j->before)
        j->before->after = j->after;
    else if (pool.first == j)
        pool.first = j->after;
    else
        return;
    if (j->after)
        j->after->before = j->before;
    else
        pool.last = j->before;
    j->before = j->after = NULL;
}

/* The oldest job that has room, joined; NULL if there is none. With the lock held. */
static job *join(void) {
    job *j = pool.first;
    if (!j) return NULL;
    atomic_fetch_add_explicit(&j->active, 1, memory_order_relaxed);
    if (--j->room == 0) unlist(j);
    return j;
}

/* With the lock held. Once `active` is 0 the caller may return: the job is not touched again. */
static void leave(job *j) {
    bool asleep = j->asleep;
    atomic_fetch_sub_explicit(&j->active, 1, memory_order_release);
    if (asleep) pthread_cond_broadcast(&pool.done);
}

static void *worker(void *unused) {
    (void)unused;
    bool may_spin = sni_threads_available() > 1;
    int64_t patience = SPIN_LONGEST;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        job *j = join();
        if (j) {
            pthread_mutex_unlock(&pool.lock);
            run_pieces(j);
            pthread_mutex_lock(&pool.lock);
            leave(j);
            continue;
        }
        unsigned seen = atomic_load_explicit(&pool.posted, memory_order_relaxed);
        if (may_spin) {
            pthread_mutex_unlock(&pool.lock);
            bool found = spin(posted_since, &seen, patience);
            patience = found ? SPIN_LONGEST : patience / 2 + SPIN_SHORTEST / 2;
            pthread_mutex_lock(&pool.lock);
        }
        pool.sleeping++;
        while (!pool.first) pthread_cond_wait(&pool.wake, &pool.lock);
        pool.sleeping--;
    }
    return NULL;
}

/* Starts workers until there are `wanted`, or as many as the system allows. With the lock held.
 * Workers take no signals but those of their own faults. */
static void start_workers(int wanted) {
    if (wanted > MOST_WORKERS) wanted = MOST_WORKERS;
    if (pool.workers >= wanted) return;
    sigset_t all, old;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) return;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    while (pool.workers < wanted && pthread_create(&thread, &attr, worker, NULL) == 0)
        pool.workers++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

static void post(job *j) {
    pthread_mutex_lock(&pool.lock);
    start_workers(j->room);
    j->before = pool.last;
    if (pool.last)
        pool.last->after = j;
    else
        pool.first = j;
    pool.last = j;
    atomic_fetch_add_explicit(&pool.posted, 1, memory_order_relaxed);
    int sleepers = j->room < pool.sleeping ? j->room : pool.sleeping;
    for (int i = 0; i < sleepers; i++) pthread_cond_signal(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
}

/* Closes the job to new workers and waits for those inside. */
static void finish(job *j) {
    pthread_mutex_lock(&pool.lock);
    unlist(j);
    pthread_mutex_unlock(&pool.lock);
    if (all_left(j) || (sni_threads_available() > 1 && spin(all_left, j, SPIN_LONGEST))) return;
    pthread_mutex_lock(&pool.lock);
    j->asleep = true;
    while (atomic_load_explicit(&j->active, memory_order_acquire) > 0)
        pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

void sni_parallel_for(int threads, int64_t n, int64_t grain,
                      void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx) {
    if (n <= 0) return;
    if (threads <= 0) threads = sni_threads_available();
    int64_t pieces = grain > 1 ? n / grain : n;
    int64_t most = threads == 1 ? 1 : (int64_t)threads * PIECES_PER_THREAD;
    if (pieces > most) pieces = most;
    if (pieces <= 1) {
        fn(ctx, 0, n);
        return;
    }
    job j = {.fn = fn, .ctx = ctx, .n = n, .pieces = pieces};
    if (inside) {
        for (int64_t piece = 0; piece < pieces; piece++) run_piece(&j, piece);
        return;
    }
    j.room = threads - 1 < pieces - 1 ? threads - 1 : (int)(pieces - 1);
    pthread_once(&pool_once, pool_prepare);
    post(&j);
    run_pieces(&j);
    finish(&j);
}
