/* commands.h - the commands of the program and the ids of their options. */
#ifndef CLI_CMD_COMMANDS_H
#define CLI_CMD_COMMANDS_H

#include "cli/cmd/args.h"

enum {
    OPT_JOBS = 1,
    OPT_TIMEOUT,
    OPT_EXPECT_FAIL,
    OPT_MATCH,
    OPT_JSON,
    OPT_THREADS,
    OPT_OPTIMIZE,
    OPT_DISABLE_RULE,
    OPT_PRECISION,
    OPT_OP_LIBRARY,
    OPT_PROVIDER,
    OPT_PROVIDER_LIBRARY,
    OPT_STRICT,
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
    OPT_EXPLAIN,
    OPT_TUNE,
    OPT_SHAPES,
    OPT_LEVEL,
    OPT_AGAINST,
    OPT_COMMAND,
    OPT_STATUS,
    OPT_TRACE,
    OPT_HTML,
    OPT_HTTP,
    OPT_GRPC,
    OPT_METRICS,
    OPT_HOST,
    OPT_IO_THREADS,
    OPT_MODEL,
    OPT_AUTH,
    OPT_ALLOW_HOST,
    OPT_ADMIN,
    OPT_EXPLICIT,
    OPT_POLL,
    OPT_TRIM,
    OPT_DRAIN,
    OPT_TLS_CERT,
    OPT_TLS_KEY,
    OPT_TLS_CLIENT_CA,
    OPT_TRACE_RATE,
    OPT_LOG_JSON,
    OPT_QUIET,
    OPT_MAX_BODY,
    OPT_MAX_HEADER,
    OPT_MAX_DEPTH,
    OPT_MAX_MEMORY,
    OPT_MAX_QUEUE,
    OPT_MAX_CONNECTIONS,
    OPT_MAX_PER_ADDRESS,
    OPT_HEAD_SECONDS,
    OPT_BODY_SECONDS,
    OPT_BODY_RATE,
    OPT_IDLE_SECONDS,
    OPT_RUN_MEMORY,
    OPT_RUN_SECONDS,
    OPT_LOAD_SECONDS,
    OPT_CACHE,
    OPT_CACHE_LIMIT,
    OPT_TIME_LIMIT,
    OPT_MEMORY_LIMIT,
    OPT_VERSION_OF,
    OPT_CONCURRENCY,
    OPT_RATE,
    OPT_RAMP,
    OPT_OPEN,
    OPT_TOKEN,
    OPT_JSON_TENSORS,
    OPT_DATA,
    OPT_MAX_LOSS,
    OPT_METRIC,
    OPT_TASK,
    OPT_TEACHER,
    OPT_SAMPLES,
    OPT_KEEP,
    OPT_STATE,
    OPT_TO,
    OPT_TARGET,
    OPT_CALIBRATION,
    OPT_BLOCK,
    OPT_SLOWER,
    OPT_SPARSITY,
    OPT_PATTERN
};

/* Ends with a NULL name. */
extern const cli_command cli_commands[];

int cli_cmd_test(cli_args *args);
int cli_cmd_run(cli_args *args);
int cli_cmd_inspect(cli_args *args);
int cli_cmd_bench(cli_args *args);
int cli_cmd_profile(cli_args *args);
int cli_cmd_devices(cli_args *args);
int cli_cmd_ops(cli_args *args);
int cli_cmd_compile(cli_args *args);
int cli_cmd_optimize(cli_args *args);
int cli_cmd_graph(cli_args *args);
int cli_cmd_diff(cli_args *args);
int cli_cmd_reduce(cli_args *args);
int cli_cmd_quantize(cli_args *args);
int cli_cmd_prune(cli_args *args);
int cli_cmd_serve(cli_args *args);
int cli_cmd_load(cli_args *args);

#endif
