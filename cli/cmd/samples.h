/* samples.h - a folder of inputs to calibrate and measure with. */
#ifndef CLI_CMD_SAMPLES_H
#define CLI_CMD_SAMPLES_H

#include "cli/cmd/inputs.h"

#include "sinter_quantize.h"

/* The samples of a folder, by name. A sample is a file of the one input that the model needs, an
 * .npz with a member for each input, or a folder with a file for each: NAME.npy and the like, or
 * input_0.pb, input_1.pb, ... as the ONNX backend tests have them. Other files of such a folder,
 * and names that begin with a dot, are not looked at. */
typedef struct cli_samples {
    const cli_model_args *args; /* how pictures are read, sizes of free dimensions */
    const sn_model *model;
    char *folder;
    char **names;
    size_t count;
    cli_inputs current; /* the last sample: its names are borrowed by the library */
} cli_samples;

/* At most `most` samples (0: all), evenly spread. SN_INVALID_ARGUMENT: there are none. */
sn_status cli_samples_open(cli_samples *s, const cli_model_args *args, const sn_model *model,
                           const char *folder, size_t most, sn_error *err);
void cli_samples_free(cli_samples *s);

/* sn_samples.get, of a cli_samples. */
sn_status cli_samples_get(void *ctx, size_t index, sn_binding *inputs, size_t *count,
                          sn_error *err);

#endif
