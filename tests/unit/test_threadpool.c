/* test_threadpool.c - every element is visited once, by the same pieces every time, from many
 * callers at once, nested, and after fork. */
#include "unit.h"

#include "base/cpu.h"
#include "base/threadpool.h"

#include <pthread.h>
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

static void idle_pool_wakes(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) {
        usleep(3000);
        assert_null(call_often(NULL));
    }
}

static void works_after_fork(void **state) {
    (void)state;
    assert_null(call_often(NULL));
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(call_often(NULL) ? 1 : 0);
    }
    assert_null(call_often(NULL));
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
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
        cmocka_unit_test(nested_calls_work),
        cmocka_unit_test(many_callers_at_once),
        cmocka_unit_test(idle_pool_wakes),
        cmocka_unit_test(works_after_fork),
        cmocka_unit_test(processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
