/* test_case.h - one folder of an ONNX backend test: loads, runs and compares it. */
#ifndef CLI_TESTING_TEST_CASE_H
#define CLI_TESTING_TEST_CASE_H

#include "cli/cmd/args.h"
#include "cli/testing/compare.h"

typedef enum cli_verdict { CLI_PASSED = 0, CLI_FAILED_CASE = 1, CLI_SKIPPED = 2 } cli_verdict;

typedef struct cli_case_options {
    int threads;
    int optimize;
    cli_rule_names disabled;
    sn_precision precision;
    co_providers providers;
    cli_tolerance tolerance; /* where data.json says nothing */
} cli_case_options;

/* Runs every data set of the folder on one session. Adds to `message` why the verdict is not
 * CLI_PASSED; several failing data sets take a line each. */
cli_verdict cli_case_run(const char *folder, const cli_case_options *options, cli_text *message);

#endif
