/* threadpool.c - one pool of worker threads for the whole process. */
#include "base/threadpool.h"

#include "base/clock.h"
#include "base/cpu_pause.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PIECES_PER_THREAD = 4, /* more than one lets a quick thread help a slow one */
    MAX_WORKERS = SNI_MAX_PARTS - 1,
    SPIN_SHORTEST = 1000, /* nanoseconds */
    SPIN_LONGEST = 50000,
    LOCK_TRIES = 50,
    MOVE_PAUSE = 10000000 /* nanoseconds between two moves of a worker to another CPU */
};

typedef sni_loop job;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;   /* for workers: a job was posted */
    pthread_cond_t done;   /* for callers: a job's last worker left */
    job *first, *last;     /* jobs that workers may join */
    int workers, sleeping; /* workers: those of this crew */
    unsigned crew;         /* workers of an earlier one leave */
    atomic_uint posted;    /* counts jobs: what a waiting worker watches */
    int64_t posted_at;     /* when the latest job came while somebody slept, in nanoseconds */
    int posted_from;       /* the CPU of whoever posted it */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

/* How workers are made. `lock` is held while they are made and joined; inside it the pool's may be
 * taken, never the other way round, so that functions of the program run without the pool's. */
static struct {
    pthread_mutex_t lock;
    sn_thread_functions by; /* create NULL: detached threads of the library's own */
    void *handles[MAX_WORKERS];
} hiring = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static _Thread_local bool inside;   /* this thread is running a piece */
static _Thread_local int most_here; /* sni_threads_limit */

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
    pthread_mutex_init(&hiring.lock, NULL);
}

static void pool_prepare(void) {
    pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

/* ---- Waiting ---- */

/* Spins until ready(arg) or `limit` nanoseconds have passed. True if it got ready. */
static bool spin(bool (*ready)(const void *arg), const void *arg, int64_t limit) {
    int64_t end = (int64_t)sni_now_ns() + limit;
    do {
        for (int i = 0; i < 16; i++) {
            if (ready(arg)) return true;
            sni_cpu_pause();
        }
    } while ((int64_t)sni_now_ns() < end);
    return false;
}

/* Takes the pool's lock, which is never held for long: a thread that would sleep for it, and
 * whoever must then wake that, lose far more than a moment's spinning costs. */
static void lock_pool(void) {
    for (int i = 0; i < LOCK_TRIES; i++) {
        if (pthread_mutex_trylock(&pool.lock) == 0) return;
        sni_cpu_pause();
    }
    pthread_mutex_lock(&pool.lock);
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

/* True if a piece is left, which the calling thread must then run. */
static bool claim(job *j) {
    return atomic_fetch_add_explicit(&j->claimed, 1, memory_order_relaxed) < j->pieces;
}

/* The caller runs pieces from the front, workers from the back: with as many claims as pieces they
 * never meet. A thread thus finds most of what it read and wrote in the loop before in its own
 * cache. */
static void run_as_caller(job *j) {
    inside = true;
    for (int64_t piece = 0; claim(j); piece++) run_piece(j, piece);
    inside = false;
}

static void run_as_worker(job *j) {
    inside = true;
    while (claim(j)) {
        int64_t nth = atomic_fetch_add_explicit(&j->of_workers, 1, memory_order_relaxed);
        run_piece(j, j->pieces - 1 - nth);
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

/* The oldest job that takes more workers, joined; NULL if there is none. With the lock held. */
static job *join(void) {
    job *j = pool.first;
    if (!j) return NULL;
    atomic_fetch_add_explicit(&j->active, 1, memory_order_relaxed);
    if (--j->places == 0) unlist(j);
    return j;
}

/* With the lock held. Once `active` is 0 the caller may return: the job is not touched again. */
static void leave(job *j) {
    bool asleep = j->asleep;
    atomic_fetch_sub_explicit(&j->active, 1, memory_order_release);
    if (asleep) pthread_cond_broadcast(&pool.done);
}

/* Takes the calling thread from this CPU to another one that it may use; after that it may use all
 * of them again. Where that is refused, or there are more CPUs than the type holds, it stays. */
static void leave_cpu(int cpu) {
    cpu_set_t all, others;
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof all, &all) != 0) return;
    others = all;
    CPU_CLR((size_t)cpu, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof all, &all);
}

/* What a worker knows of the jobs so far; times are in nanoseconds. */
typedef struct habits {
    int64_t patience; /* how long it spins for the next one */
    int64_t moved;    /* when it last moved to another CPU */
} habits;

/* Sleeps until a job is posted after `seen`, which others may have done by the time this worker is
 * awake, or the crew is not the pool's any more. With the lock held. `idle`: since when there has
 * been nothing to do. Systems may wake a worker on the CPU of the thread that posted the job
 * although another is idle, and again next time; it then waits for that thread, or that thread for
 * it. */
static void sleep_until_posted(unsigned seen, unsigned crew, int64_t idle, habits *h) {
    pool.sleeping++;
    while (!posted_since(&seen) && crew == pool.crew) pthread_cond_wait(&pool.wake, &pool.lock);
    pool.sleeping--;
    if (pool.posted_at - idle < SPIN_LONGEST) h->patience = SPIN_LONGEST; /* it would have paid */
    int cpu = pool.posted_from;
    int64_t now = (int64_t)sni_now_ns();
    if (cpu != sched_getcpu() || now - h->moved < MOVE_PAUSE) return;
    h->moved = now;
    pthread_mutex_unlock(&pool.lock);
    leave_cpu(cpu);
    lock_pool();
}

/* Spins until a job is posted after `seen`. Who has spun in vain spins for half as long next time.
 */
static bool spin_until_posted(unsigned seen, habits *h) {
    bool found = spin(posted_since, &seen, h->patience);
    h->patience = found ? SPIN_LONGEST : h->patience / 2 + SPIN_SHORTEST / 2;
    return found;
}

static void worker(void *crew_number) {
    unsigned crew = (unsigned)(uintptr_t)crew_number;
    habits h = {.patience = SPIN_LONGEST};
    lock_pool();
    while (crew == pool.crew) {
        job *j = join();
        if (j) {
            pthread_mutex_unlock(&pool.lock);
            run_as_worker(j);
            lock_pool();
            leave(j);
            continue;
        }
        unsigned seen = atomic_load_explicit(&pool.posted, memory_order_relaxed);
        int64_t idle = (int64_t)sni_now_ns();
        pthread_mutex_unlock(&pool.lock);
        bool found = sni_threads_available() > 1 && spin_until_posted(seen, &h);
        lock_pool();
        if (found) continue; /* even if others have done the job meanwhile: more will come */
        sleep_until_posted(seen, crew, idle, &h);
    }
    pthread_mutex_unlock(&pool.lock);
}

/* ---- Workers ---- */

static void *worker_thread(void *crew_number) {
    worker(crew_number);
    return NULL;
}

static bool start_detached(void *crew_number) {
    pthread_attr_t attr;
    pthread_t thread;
    if (pthread_attr_init(&attr) != 0) return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    bool made = pthread_create(&thread, &attr, worker_thread, crew_number) == 0;
    pthread_attr_destroy(&attr);
    return made;
}

static bool start_by_program(void *crew_number, void **handle) {
    *handle = hiring.by.create(hiring.by.ctx, worker, crew_number);
    return *handle != NULL;
}

/* How many workers the crew has. */
static int crew_size(void) {
    lock_pool();
    int size = pool.workers;
    pthread_mutex_unlock(&pool.lock);
    return size;
}

/* Starts workers until there are `wanted`, or as many as the system allows. Workers take no signals
 * but those of their own faults. */
static void start_workers(int wanted) {
    pthread_mutex_lock(&hiring.lock);
    void *crew_number = (void *)(uintptr_t)pool.crew; /* changed under both locks */
    sigset_t all, old;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    for (int have = crew_size(); have < wanted; have++) {
        bool made = hiring.by.create ? start_by_program(crew_number, &hiring.handles[have])
                                     : start_detached(crew_number);
        if (!made) break;
        lock_pool();
        pool.workers++;
        pthread_mutex_unlock(&pool.lock);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_mutex_unlock(&hiring.lock);
}

/* Sends the crew away. Returns how many it had. */
static int dismiss(void) {
    lock_pool();
    int size = pool.workers;
    pool.workers = 0;
    pool.crew++;
    atomic_fetch_add_explicit(&pool.posted, 1, memory_order_relaxed);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    return size;
}

bool sni_threads_by(const sn_thread_functions *functions) {
    if (inside) return false;
    pthread_once(&pool_once, pool_prepare);
    pthread_mutex_lock(&hiring.lock);
    int size = dismiss();
    for (int i = 0; hiring.by.create && i < size; i++)
        hiring.by.join(hiring.by.ctx, hiring.handles[i]);
    lock_pool(); /* so that fork sees the whole of it */
    hiring.by = functions ? *functions : (sn_thread_functions){0};
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&hiring.lock);
    return true;
}

/* ---- Jobs ---- */

static void post(job *j) {
    int wanted = j->places < MAX_WORKERS ? j->places : MAX_WORKERS;
    lock_pool();
    if (pool.workers < wanted) {
        pthread_mutex_unlock(&pool.lock);
        start_workers(wanted);
        lock_pool();
    }
    j->before = pool.last;
    if (pool.last)
        pool.last->after = j;
    else
        pool.first = j;
    pool.last = j;
    atomic_fetch_add_explicit(&pool.posted, 1, memory_order_relaxed);
    if (pool.sleeping > 0) {
        pool.posted_at = (int64_t)sni_now_ns();
        pool.posted_from = sched_getcpu();
    }
    int sleepers = j->places < pool.sleeping ? j->places : pool.sleeping;
    for (int i = 0; i < sleepers; i++) pthread_cond_signal(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
}

/* Closes the job to new workers and waits for those inside. */
static void finish(job *j) {
    lock_pool();
    unlist(j);
    pthread_mutex_unlock(&pool.lock);
    if (all_left(j) || (sni_threads_available() > 1 && spin(all_left, j, SPIN_LONGEST))) return;
    lock_pool();
    j->asleep = true;
    while (atomic_load_explicit(&j->active, memory_order_acquire) > 0)
        pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

int sni_threads_limit(int threads) {
    int before = most_here;
    most_here = threads;
    return before;
}

void sni_parallel_begin(sni_loop *loop, int threads, int64_t n, int64_t grain,
                        void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx) {
    if (threads <= 0) threads = most_here > 0 ? most_here : sni_threads_available();
    int64_t pieces = grain > 1 ? n / grain : n;
    int64_t most = threads == 1 ? 1 : (int64_t)threads * PIECES_PER_THREAD;
    if (pieces > most) pieces = most;
    if (pieces < 1) pieces = n > 0;
    bool posted = pieces > 1 && !inside;
    *loop = (sni_loop){.fn = fn, .ctx = ctx, .n = n, .pieces = pieces, .posted = posted};
    if (!posted) return;
    loop->places = threads - 1 < pieces - 1 ? threads - 1 : (int)(pieces - 1);
    pthread_once(&pool_once, pool_prepare);
    post(loop);
}

void sni_parallel_end(sni_loop *loop) {
    if (loop->posted) {
        run_as_caller(loop);
        finish(loop);
    } else {
        for (int64_t piece = 0; piece < loop->pieces; piece++) run_piece(loop, piece);
    }
}

void sni_parallel_for(int threads, int64_t n, int64_t grain,
                      void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx) {
    sni_loop loop;
    sni_parallel_begin(&loop, threads, n, grain, fn, ctx);
    sni_parallel_end(&loop);
}
