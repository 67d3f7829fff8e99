/* compress.h - what sinter quantize and sinter prune have in common: options, data, the result. */
#ifndef CLI_CMD_COMPRESS_H
#define CLI_CMD_COMPRESS_H

#include "cli/cmd/samples.h"
#include "cli/report/progress.h"

typedef struct cli_compress {
    cli_model_args model;
    sn_quantize_options options;
    const char *path;    /* -o */
    const char *data;    /* NULL: none */
    const char *teacher; /* path; NULL: none */
    const char *task;    /* a command that prints a score; NULL: none */
    const char *html;    /* NULL: none */
    const char *state;   /* NULL: beside the output, and removed in the end */
    const char **keep;
    size_t keep_count;
    int64_t most; /* samples; 0: all */
    bool json;
} cli_compress;

/* Makes a model; `loaded` options are complete. */
typedef sn_status (*cli_compress_fn)(void *ctx, const sn_model *model,
                                     const sn_quantize_options *options, sn_model **out,
                                     sn_quantize_report **report, sn_error *err);

void cli_compress_init(cli_compress *c, const cli_args *args);
/* Takes an option of both commands: 1, 0: another one, -1: wrong. */
int cli_compress_take(cli_compress *c, cli_args *args, int id, const char *value);
/* "0.01" or "1%". False after a complaint. */
bool cli_compress_part(const cli_args *args, const char *value, double *out);
/* The position of a word in a list that ends with NULL; -1 after a complaint. */
int cli_compress_word(const cli_args *args, const char *value, const char *const *words);

/* Reads the command line with `take`, loads everything, calls `fn`, writes the model and shows the
 * report. Returns the exit code. */
int cli_compress_run(cli_compress *c, cli_args *args, cli_take_fn take, cli_compress_fn fn,
                     void *ctx);

#endif
