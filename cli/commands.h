/* commands.h - the commands of the program and the ids of their options. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "args.h"

enum {
    OPT_JOBS = 1,
    OPT_TIMEOUT,
    OPT_EXPECT_FAIL,
    OPT_MATCH,
    OPT_JSON,
    OPT_THREADS,
    OPT_OPTIMIZE,
    OPT_DISABLE_RULE,
    OPT_VERBOSE,
    OPT_RTOL,
    OPT_ATOL,
    OPT_INPUT,
    OPT_OUTPUT,
    OPT_SHAPE,
    OPT_DIM,
    OPT_RANDOM,
    OPT_SEED,
    OPT_TOP,
    OPT_FORMAT,
    OPT_CONVERT,
    OPT_MEAN,
    OPT_STD,
    OPT_LAYOUT,
    OPT_COLOR,
    OPT_SCALE,
    OPT_STAGE,
    OPT_WEIGHTS,
    OPT_RUNS,
    OPT_SECONDS,
    OPT_WARMUP,
    OPT_MARKDOWN,
    OPT_TRACE,
    OPT_HTML
};

/* Ends with a NULL name. */
extern const cli_command cli_commands[];

int cli_cmd_test(cli_args *args);
int cli_cmd_run(cli_args *args);
int cli_cmd_inspect(cli_args *args);
int cli_cmd_bench(cli_args *args);
int cli_cmd_profile(cli_args *args);
int cli_cmd_ops(cli_args *args);

#endif
