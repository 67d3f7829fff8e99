/* test_work_stealing.c - threads that help each other: every unit is done once, whoever is slow. */
#include "unit.h"

#include "base/work_stealing.h"
#include "base/threadpool.h"

#include <unistd.h>

enum { PARTS = 4, UNITS = 60, ROUNDS = 5 };

typedef struct task {
    sni_stealing stealing;
    int parts, slow;                        /* the part that sleeps with every unit; -1: none */
    atomic_int done[PARTS][ROUNDS * UNITS]; /* how often */
    atomic_int by_others[PARTS];            /* units of a part that others did */
    int seen[PARTS];                        /* the round that a part's work belongs to */
    atomic_bool bad;
} task;

/* Work that is on its owner's stack, as it is wherever threads steal work. */
typedef struct work {
    int owner, round;
} work;

static void run(void *ctx, int part, const void *given, int64_t unit) {
    task *t = ctx;
    const work *w = given;
    if (w->owner < 0 || w->round != t->seen[w->owner]) {
        atomic_store(&t->bad, true);
        return;
    }
    atomic_fetch_add(&t->done[w->owner][w->round * UNITS + unit], 1);
    if (part != w->owner) atomic_fetch_add(&t->by_others[w->owner], 1);
    if (part == t->slow) usleep(300);
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    task *t = ctx;
    for (int part = (int)begin; part < (int)end; part++) {
        for (int round = 0; round < ROUNDS; round++) {
            work w = {.owner = part, .round = round};
            t->seen[part] = round;
            sni_stealing_do(&t->stealing, part, &w, UNITS);
            for (int i = 0; i < UNITS; i++) /* nobody is at it any more */
                if (atomic_load(&t->done[part][round * UNITS + i]) != 1)
                    atomic_store(&t->bad, true);
            w = (work){.owner = -1, .round = -1};
        }
        sni_stealing_help(&t->stealing, part);
    }
}

static void run_stealing(task *t, int parts, int slow) {
    *t = (task){.parts = parts, .slow = slow};
    sni_stealing_init(&t->stealing, parts, run, t);
    sni_parallel_for(parts, parts, 1, run_parts, t);
    assert_false(atomic_load(&t->bad));
    for (int part = 0; part < parts; part++)
        for (int i = 0; i < ROUNDS * UNITS; i++)
            assert_int_equal(atomic_load(&t->done[part][i]), 1);
}

static void every_unit_is_done_once(void **state) {
    (void)state;
    static task t;
    for (int round = 0; round < 200; round++)
        for (int parts = 1; parts <= PARTS; parts++) run_stealing(&t, parts, -1);
}

/* Others finish first and do units of the slow one, which is the loop's caller. */
static void the_slow_one_is_helped(void **state) {
    (void)state;
    static task t;
    int helped = 0;
    if (sni_threads_available() < 2) skip();
    for (int round = 0; round < 20; round++) {
        run_stealing(&t, 2, 0);
        helped += atomic_load(&t.by_others[0]) > 0;
    }
    assert_true(helped > 0);
}

static void no_units_are_no_work(void **state) {
    (void)state;
    static task t;
    t = (task){.parts = 1, .slow = -1};
    sni_stealing_init(&t.stealing, 1, run, &t);
    sni_stealing_do(&t.stealing, 0, NULL, 0);
    sni_stealing_help(&t.stealing, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_unit_is_done_once),
        cmocka_unit_test(the_slow_one_is_helped),
        cmocka_unit_test(no_units_are_no_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
