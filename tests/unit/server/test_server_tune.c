/* test_server_tune.c - batch sizes and short runs by what runs have cost. */
#include "unit.h"

#include "server/engine/tune.h"

#include <stdlib.h>

#define SHAPE 77u

/* Serves `turns` batches of a model whose run of n rows takes cost(n) and says the last size. */
static int64_t serve(srv_tuning *tuning, int64_t there, int rounds,
                     uint64_t (*cost)(int64_t rows)) {
    int64_t rows = 0;
    for (int i = 0; i < rounds; i++) {
        rows = srv_tune_rows(tuning, SHAPE, there);
        srv_tune_add(tuning, SHAPE, (size_t)rows, rows, 1, true, cost(rows));
    }
    return rows;
}

static uint64_t weights_dominate(int64_t rows) {
    return (uint64_t)(5000 + 1000 * rows);
}

static uint64_t cache_dominates(int64_t rows) {
    return (uint64_t)(100 + rows * (rows > 2 ? 1100 : 1000));
}

static uint64_t all_the_same(int64_t rows) {
    return (uint64_t)(1000 * rows);
}

static void the_cheapest_size_is_taken(void **state) {
    (void)state;
    srv_tuning *tuning = calloc(3, sizeof *tuning);
    assert_true(srv_tune_rows(tuning, SHAPE, 1) == 1);
    assert_true(serve(&tuning[0], 12, 60, weights_dominate) == 8);
    assert_true(serve(&tuning[1], 12, 60, cache_dominates) == 2);
    assert_true(serve(&tuning[2], 12, 60, all_the_same) == 1);
    /* what was learnt is given up again when it does not hold any more */
    int64_t rows = 0;
    for (int i = 0; i < 20000; i++) rows = serve(&tuning[1], 12, 1, weights_dominate);
    assert_true(rows == 8);
    free(tuning);
}

static void one_bad_value_changes_nothing(void **state) {
    (void)state;
    srv_tuning *tuning = calloc(1, sizeof *tuning);
    serve(tuning, 8, 60, weights_dominate);
    srv_tune_add(tuning, SHAPE, 8, 8, 1, true, 1000000000);
    assert_true(srv_tune_rows(tuning, SHAPE, 8) == 8);
    free(tuning);
}

static void short_runs(void **state) {
    (void)state;
    srv_tuning *tuning = calloc(1, sizeof *tuning);
    assert_true(!srv_tune_is_short(tuning, SHAPE, 1, 1000));
    for (int i = 0; i < 10; i++) srv_tune_add(tuning, SHAPE, 1, 1, 2, false, 400);
    assert_true(srv_tune_is_short(tuning, SHAPE, 1, 1000));
    assert_true(!srv_tune_is_short(tuning, SHAPE, 2, 1000)); /* rows count */
    assert_true(!srv_tune_is_short(tuning, SHAPE, 1, 700));  /* and so do threads */
    assert_true(!srv_tune_is_short(tuning, SHAPE + SRV_TUNE_SHAPES, 1, 1000));
    srv_tune_was_long(tuning);
    int after = 0, again = 0;
    while (!srv_tune_is_short(tuning, SHAPE, 1, 1000)) after++;
    srv_tune_was_long(tuning);
    while (!srv_tune_is_short(tuning, SHAPE, 1, 1000)) again++;
    assert_true(after > 100 && again == 2 * after);
    free(tuning);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheapest_size_is_taken),
        cmocka_unit_test(one_bad_value_changes_nothing),
        cmocka_unit_test(short_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
