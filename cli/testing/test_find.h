/* test_find.h - finds test folders, and reads lists of expected failures. */
#ifndef CLI_TESTING_TEST_FIND_H
#define CLI_TESTING_TEST_FIND_H

#include "cli/testing/test_pool.h"

typedef struct cli_test_list {
    cli_test *items;
    size_t count;
    size_t capacity;
} cli_test_list;

/* Adds every folder at or below `root` that holds a model.onnx, in order of name, and whose name
 * contains `match` (NULL: all). A case's name is its path from `root`, or the last component of
 * `root` when that is the case itself. */
sn_status cli_find_tests(const char *root, const char *match, cli_test_list *list, sn_error *err);
void cli_test_list_free(cli_test_list *list);

/* Names of cases that are known to fail. */
typedef enum cli_expectation {
    CLI_EXPECT_PASS,
    CLI_EXPECT_FAIL,
    CLI_EXPECT_ANY /* written with a '?' before its name: chance decides */
} cli_expectation;

typedef struct cli_expected {
    char **names;
    bool *seen;
    size_t count;
} cli_expected;

/* One name a line; '#' starts a comment, empty lines count for nothing. */
sn_status cli_expected_read(const char *path, cli_expected *out, sn_error *err);
void cli_expected_free(cli_expected *list);
/* What the list says of a case: by its name, or by the last components of its folder's path. */
cli_expectation cli_expected_of(cli_expected *list, const cli_test *test);

#endif
