/* against.h - runs a model in another library that has the interface of libonnxruntime.so.1. */
#ifndef CLI_CMD_AGAINST_H
#define CLI_CMD_AGAINST_H

#include "cli/cmd/inputs.h"

/* Opens the library, which stays loaded, runs `model` in it once without optimisations, and gives
 * every output that is a tensor of numbers to `take`, with "" for the operator. `inputs` may hold
 * more than the model takes. `threads` 0: as many as the library likes. */
sn_status cli_against_run(const char *library, const sn_model *model, const cli_inputs *inputs,
                          int threads, sn_value_fn take, void *ctx, sn_error *err);

#endif
