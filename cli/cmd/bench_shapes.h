/* bench_shapes.h - sinter bench --shapes. */
#ifndef CLI_CMD_BENCH_SHAPES_H
#define CLI_CMD_BENCH_SHAPES_H

#include "cli/cmd/inputs.h"

/* Runs the model on each shape of the list once and then `rounds` times in rotation, and shows the
 * costs. Returns an exit code. */
int cli_bench_shapes(const cli_model_args *m, const char *list, int64_t rounds, bool as_json);

#endif
