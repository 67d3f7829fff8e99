/* test_pool.h - runs test cases in processes of their own, several at once, each with a deadline.
 */
#ifndef CLI_TESTING_TEST_POOL_H
#define CLI_TESTING_TEST_POOL_H

#include "cli/testing/test_case.h"

typedef struct cli_test {
    char *name;   /* as shown and as lists of expected failures spell it */
    char *folder; /* where it lies */
    cli_verdict verdict;
    char *message;       /* why it did not pass; NULL when it did */
    double milliseconds; /* of the whole case: start, load, run and compare */
    bool done;
    bool expected; /* a listed failure that failed */
} cli_test;

typedef struct cli_pool_options {
    int jobs;
    double timeout_ms; /* for one case */
    cli_case_options case_options;
    /* Called after each case, in the order in which they end. */
    void (*on_done)(void *ctx, cli_test *test);
    void *ctx;
} cli_pool_options;

/* Runs all of them. A case that crashes, hangs or leaves is a failed case. The calling process
 * must not have started threads. */
sn_status cli_pool_run(cli_test *tests, size_t count, const cli_pool_options *options,
                       sn_error *err);

#endif
