/* test_threadpool.c - every element is visited once, by the same pieces every time, from many
 * callers at once, nested, and after fork. */
#include "unit.h"

#include "base/cpu.h"
#include "base/threadpool.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct visits {
    int64_t n, grain;
    atomic_int *seen; /* per element */
    atomic_int pieces;
    atomic_bool bad;
} visits;

static void visit(void *ctx, int64_t begin, int64_t end) {
    visits *v = ctx;
    atomic_fetch_add(&v->pieces, 1);
    if (begin < 0 || begin >= end || end > v->n) {
        atomic_store(&v->bad, true);
        return;
    }
    if (end - begin < v->grain && end - begin != v->n) atomic_store(&v->bad, true);
    for (int64_t i = begin; i < end; i++) atomic_fetch_add(&v->seen[i], 1);
}

static void covers_everything_once(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 2, 3, 7, 64, 1000, 4097};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int threads = 0; threads <= 5; threads++)
            for (int64_t grain = 0; grain <= 100; grain += 33) {
                visits v = {.n = sizes[s], .grain = grain};
                v.seen = calloc((size_t)v.n, sizeof *v.seen);
                sni_parallel_for(threads, v.n, grain, visit, &v);
                assert_false(v.bad);
                for (int64_t i = 0; i < v.n; i++) assert_int_equal(v.seen[i], 1);
                if (threads == 1) assert_int_equal(v.pieces, 1);
                free(v.seen);
            }
    sni_parallel_for(2, 0, 1, visit, NULL);
    sni_parallel_for(2, -5, 1, visit, NULL);
}

enum { N = 1000 };

static void mark(void *ctx, int64_t begin, int64_t end) {
    int64_t *cut = ctx;
    cut[begin] = end;
}

static void pieces_do_not_depend_on_timing(void **state) {
    (void)state;
    int64_t first[N] = {0};
    sni_parallel_for(4, N, 10, mark, first);
    for (int round = 0; round < 200; round++) {
        int64_t again[N] = {0};
        sni_parallel_for(4, N, 10, mark, again);
        assert_memory_equal(first, again, sizeof first);
    }
}

typedef struct owners {
    pthread_t caller;
    bool callers[N]; /* per element: the caller visited it */
} owners;

static void own(void *ctx, int64_t begin, int64_t end) {
    owners *o = ctx;
    for (int64_t i = begin; i < end; i++)
        o->callers[i] = pthread_equal(pthread_self(), o->caller) != 0;
}

/* Whoever gets how many: what the caller runs lies before what the workers run. */
static void callers_work_from_the_front(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        owners o = {.caller = pthread_self()};
        sni_parallel_for(2 + round % 3, N, 10, own, &o);
        for (int i = 1; i < N; i++) assert_true(o.callers[i - 1] || !o.callers[i]);
    }
}

typedef struct sums {
    int64_t inner[64];
} sums;

static void add_range(void *ctx, int64_t begin, int64_t end) {
    atomic_llong *sum = ctx;
    long long part = 0;
    for (int64_t i = begin; i < end; i++) part += i;
    atomic_fetch_add(sum, part);
}

static void nest(void *ctx, int64_t begin, int64_t end) {
    sums *s = ctx;
    for (int64_t i = begin; i < end; i++) {
        atomic_llong sum = 0;
        sni_parallel_for(4, 100, 1, add_range, &sum);
        s->inner[i] = (int64_t)sum;
    }
}

static void nested_calls_work(void **state) {
    (void)state;
    sums s = {0};
    sni_parallel_for(4, 64, 1, nest, &s);
    for (int i = 0; i < 64; i++) assert_int_equal(s.inner[i], 4950);
}

/* Between the halves of a loop its caller runs others, one after the other and one in another. */
static void halves_of_loops(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        for (int threads = 1; threads <= 4; threads++) {
            atomic_llong outer = 0, inner = 0, between = 0;
            sni_loop first, second;
            sni_parallel_begin(&first, threads, 1000, 10, add_range, &outer);
            sni_parallel_begin(&second, threads, 500, 1, add_range, &inner);
            sni_parallel_for(threads, 100, 1, add_range, &between);
            assert_int_equal(between, 4950);
            sni_parallel_end(round % 2 ? &first : &second);
            sni_parallel_end(round % 2 ? &second : &first);
            assert_int_equal(outer, 499500);
            assert_int_equal(inner, 124750);
            sni_parallel_begin(&first, threads, 0, 1, add_range, NULL);
            sni_parallel_end(&first);
        }
    }
}

static void count_piece(void *ctx, int64_t begin, int64_t end) {
    (void)begin;
    (void)end;
    atomic_fetch_add((atomic_llong *)ctx, 1);
}

/* A limit counts where no number of threads is named, and until it is taken back. */
static void limit_is_kept(void **state) {
    (void)state;
    atomic_llong pieces = 0;
    assert_int_equal(sni_threads_limit(1), 0);
    sni_parallel_for(0, 1000, 1, count_piece, &pieces);
    assert_int_equal(pieces, 1);
    pieces = 0;
    sni_parallel_for(4, 1000, 1, count_piece, &pieces);
    assert_true(pieces > 1);
    pieces = 0;
    assert_int_equal(sni_threads_limit(4), 1);
    sni_parallel_for(0, 1000, 1, count_piece, &pieces);
    assert_true(pieces > 1);
    assert_int_equal(sni_threads_limit(0), 4);
}

static void *call_often(void *arg) {
    (void)arg;
    for (int i = 0; i < 300; i++) {
        atomic_llong sum = 0;
        sni_parallel_for(1 + i % 4, 5000, 16, add_range, &sum);
        if (sum != 5000LL * 4999 / 2) return (void *)1;
    }
    return NULL;
}

static void many_callers_at_once(void **state) {
    (void)state;
    enum { CALLERS = 6 };
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++) pthread_create(&threads[i], NULL, call_often, NULL);
    for (int i = 0; i < CALLERS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

/* Whether the thread with this name in /proc/self/task sleeps. One that just ended does. */
static bool sleeps(const char *id) {
    char path[300], line[512] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", id);
    FILE *f = fopen(path, "r");
    if (!f) return true;
    bool got = fgets(line, sizeof line, f) != NULL;
    fclose(f);
    const char *after_name = strrchr(line, ')');
    return !got || (after_name && after_name[2] == 'S');
}

/* Waits until all threads but the calling one sleep. */
static void wait_until_asleep(void) {
    char own[32];
    snprintf(own, sizeof own, "%d", (int)gettid());
    for (bool awake = true; awake;) {
        awake = false;
        DIR *tasks = opendir("/proc/self/task");
        assert_non_null(tasks);
        for (const struct dirent *e; (e = readdir(tasks)) != NULL;)
            if (e->d_name[0] != '.' && strcmp(e->d_name, own) != 0 && !sleeps(e->d_name))
                awake = true;
        closedir(tasks);
        if (awake) sched_yield();
    }
}

static void idle_pool_wakes(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        wait_until_asleep();
        assert_null(call_often(NULL));
    }
}

typedef struct freedom {
    cpu_set_t all;
    pthread_t caller;
    atomic_bool less; /* a thread may not use all of them */
    atomic_int pieces, of_workers;
} freedom;

static void compare_cpus(void *ctx, int64_t begin, int64_t end) {
    freedom *f = ctx;
    cpu_set_t own;
    (void)begin, (void)end;
    if (sched_getaffinity(0, sizeof own, &own) != 0 || !CPU_EQUAL(&own, &f->all)) f->less = true;
    f->pieces++;
    if (!pthread_equal(pthread_self(), f->caller)) f->of_workers++;
    while (f->of_workers == 0) sched_yield(); /* until a worker has come */
}

/* Workers that were woken, on whatever CPU, may use all CPUs that their caller may. */
static void woken_workers_use_any_cpu(void **state) {
    (void)state;
    freedom f = {.caller = pthread_self()};
    if (sched_getaffinity(0, sizeof f.all, &f.all) != 0) skip(); /* more CPUs than the type has */
    for (int i = 0; i < 20; i++) {
        f.of_workers = 0;
        sni_parallel_for(3, 12, 1, compare_cpus, &f);
        wait_until_asleep();
    }
    assert_false(f.less);
    assert_int_equal(f.pieces, 20 * 12);
}

static void works_after_fork(void **state) {
    (void)state;
    assert_null(call_often(NULL));
    pid_t child = fork();
    if (child == 0) {
        alarm(600);
        _exit(call_often(NULL) ? 1 : 0);
    }
    assert_null(call_often(NULL));
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* ---- Threads that the program makes ---- */

typedef struct crew {
    atomic_int made, joined, refused;
    int most; /* threads that it makes */
    bool nested_taken;
} crew;

typedef struct crew_thread {
    pthread_t id;
    void (*work)(void *arg);
    void *arg;
} crew_thread;

static void *crew_start(void *thread) {
    crew_thread *t = thread;
    t->work(t->arg);
    return NULL;
}

static void *crew_create(void *ctx, void (*work)(void *arg), void *arg) {
    crew *c = ctx;
    if (c->made == c->most) {
        c->refused++;
        return NULL;
    }
    crew_thread *t = malloc(sizeof *t);
    *t = (crew_thread){.work = work, .arg = arg};
    assert_int_equal(pthread_create(&t->id, NULL, crew_start, t), 0);
    c->made++;
    return t;
}

static void crew_join(void *ctx, void *thread) {
    crew *c = ctx;
    crew_thread *t = thread;
    assert_int_equal(pthread_join(t->id, NULL), 0);
    free(t);
    c->joined++;
}

static void change_inside(void *ctx, int64_t begin, int64_t end) {
    (void)begin;
    (void)end;
    sn_error err;
    if (sn_use_thread_functions(NULL, &err) == SN_OK) ((crew *)ctx)->nested_taken = true;
}

static void program_makes_threads(void **state) {
    (void)state;
    sn_error err;
    crew a = {.most = 9}, b = {.most = 1};
    sn_thread_functions by = {.create = crew_create, .join = crew_join, .ctx = &a};
    assert_null(call_often(NULL)); /* there are workers already */
    assert_int_equal(sn_use_thread_functions(&by, &err), SN_OK);
    assert_int_equal(a.made, 0);
    assert_null(call_often(NULL));
    assert_true(a.made > 0);
    assert_int_equal(a.joined, 0);
    sni_parallel_for(4, 100, 1, change_inside, &a);
    assert_false(a.nested_taken);
    by.ctx = &b;
    assert_int_equal(sn_use_thread_functions(&by, &err), SN_OK);
    assert_int_equal(a.joined, a.made);
    assert_null(call_often(NULL));
    assert_int_equal(b.made, 1);
    assert_true(b.refused > 0); /* and the work was done nevertheless */
    by.join = NULL;
    assert_int_equal(sn_use_thread_functions(&by, &err), SN_INVALID_ARGUMENT);
    assert_int_equal(b.joined, 0);
    assert_int_equal(sn_use_thread_functions(NULL, &err), SN_OK);
    assert_int_equal(b.joined, 1);
    assert_null(call_often(NULL));
    assert_int_equal(a.made + b.made, a.joined + b.joined);
}

static void *change_often(void *stop) {
    crew c = {.most = 1000000};
    sn_thread_functions by = {.create = crew_create, .join = crew_join, .ctx = &c};
    sn_error err;
    while (!*(atomic_bool *)stop) {
        sn_use_thread_functions(&by, &err);
        sn_use_thread_functions(NULL, &err);
    }
    return c.made == c.joined ? NULL : stop;
}

static void workers_change_during_calls(void **state) {
    (void)state;
    atomic_bool stop = false;
    pthread_t changer;
    void *failed;
    assert_int_equal(pthread_create(&changer, NULL, change_often, &stop), 0);
    for (int i = 0; i < 5; i++) assert_null(call_often(NULL));
    stop = true;
    pthread_join(changer, &failed);
    assert_null(failed);
}

static void processors(void **state) {
    (void)state;
    assert_true(sni_threads_available() >= 1);
    assert_true(sni_threads_available() <= sysconf(_SC_NPROCESSORS_CONF));
    assert_true(sni_cpu_isa() <= sni_cpu_best());
    assert_string_equal(sni_isa_name(SNI_ISA_AVX2), "avx2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_everything_once),
        cmocka_unit_test(pieces_do_not_depend_on_timing),
        cmocka_unit_test(callers_work_from_the_front),
        cmocka_unit_test(nested_calls_work),
        cmocka_unit_test(halves_of_loops),
        cmocka_unit_test(limit_is_kept),
        cmocka_unit_test(many_callers_at_once),
        cmocka_unit_test(idle_pool_wakes),
        cmocka_unit_test(woken_workers_use_any_cpu),
        cmocka_unit_test(works_after_fork),
        cmocka_unit_test(program_makes_threads),
        cmocka_unit_test(workers_change_during_calls),
        cmocka_unit_test(processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
