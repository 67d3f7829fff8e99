/* inputs.h - the options that name a model and its inputs, and the values made from them. */
#ifndef CLI_CMD_INPUTS_H
#define CLI_CMD_INPUTS_H

#include "cli/cmd/args.h"
#include "cli/formats/image.h"

/* One --shape or --dim. */
typedef struct cli_shape_arg {
    const char *text; /* "name=..." */
    size_t name_length;
    int rank;
    int64_t dims[SN_MAX_RANK];
} cli_shape_arg;

/* What run, inspect and bench have in common. */
typedef struct cli_model_args {
    const char *model; /* path; NULL: none given */
    int threads;
    int optimize;
    cli_rule_names disabled;
    sn_precision precision;
    const char *cache;      /* value of --cache; NULL: none */
    uint64_t cache_limit;   /* bytes; 0: none */
    uint64_t time_limit_ns; /* of making the session, and of each run; 0: none */
    uint64_t memory_limit;  /* bytes of one run with packed weights, and of importing; 0: none */
    const char **libraries; /* values of --op-library */
    size_t library_count;
    co_providers providers; /* values of --provider */
    const char **files;     /* values of -i */
    size_t file_count;
    cli_shape_arg *shapes;
    size_t shape_count;
    cli_shape_arg *symbols; /* --dim: rank 1 */
    size_t symbol_count;
    bool random;
    bool portable; /* sn_session_options.portable */
    bool convert;
    bool strict;   /* sn_load_options.strict */
    sn_log_fn log; /* gets the session's lines; NULL: nobody */
    uint64_t seed;
    cli_image_options image;
} cli_model_args;

void cli_model_args_init(cli_model_args *m, const cli_args *args);
void cli_model_args_free(cli_model_args *m);
/* Takes an option or the model's path. 1: taken, 0: not one of these, -1: wrong (complained). */
int cli_model_args_take(cli_model_args *m, cli_args *args, int id, const char *value);

/* Sets --threads, --optimize and --disable-rule; 1: taken, 0: another option, -1: wrong. */
int cli_session_arg_take(int *threads, int *optimize, cli_rule_names *disabled, cli_args *args,
                         int id, const char *value);

/* What --precision names; false if it is none (complained). */
bool cli_precision_take(const cli_args *args, const char *value, sn_precision *out);

enum { CLI_MAX_RUNS = 10000000 };

/* How long bench and profile measure, and how they show it. */
typedef struct cli_measuring {
    int64_t runs;   /* 0: by time */
    double seconds; /* when by time */
    bool json;
} cli_measuring;

/* Takes --runs, --seconds and --json: 1, 0 and -1 as above. */
int cli_measuring_take(cli_measuring *m, cli_args *args, int id, const char *value);

/* Load the model; prepare it. They complain and return an exit code on failure, else CLI_OK. */
int cli_open_model(const cli_model_args *m, sn_model **model);
/* Writes a model's warnings to stderr; cli_open_session() does it, too. */
void cli_show_warnings(const sn_model *model);
int cli_open_session(const cli_model_args *m, const sn_model *model, sn_session **session);

/* Values for the model's inputs, with borrowed names. */
typedef struct cli_inputs {
    sn_binding *items;
    size_t count;
    cli_text ones; /* free dimensions that are 1 in random values: "'N', 'T'" */
} cli_inputs;

/* Reads the files and makes random values for the rest where that is allowed. SN_INVALID_ARGUMENT
 * means that the command line is wrong. */
sn_status cli_inputs_make(const cli_model_args *m, const sn_model *model, cli_inputs *out,
                          sn_error *err);
void cli_inputs_free(cli_inputs *inputs);

/* One fresh binding for each output of the model; freed by cli_inputs_free. */
sn_status cli_outputs_make(const sn_model *model, cli_inputs *out, sn_error *err);
/* Throws away what a run has made; the bindings are fresh again. */
void cli_outputs_drop(cli_inputs *outputs);

/* A model, a session of it, and values to run it on. */
typedef struct cli_loaded {
    sn_model *model;
    sn_session *session;
    cli_inputs inputs, outputs;
} cli_loaded;

/* Loads the model and makes the session. Complains and returns an exit code on failure, else
 * CLI_OK. */
int cli_load(const cli_model_args *m, cli_loaded *out);
void cli_loaded_free(cli_loaded *loaded);

/* A command that makes a file (-o) of a model. `model` and `*path` are parts of `settings`. */
typedef struct cli_conversion {
    cli_model_args *model;
    const char *const *path;
    cli_take_fn take; /* sets them, with `settings` as its ctx */
    int (*run)(void *settings, cli_loaded *l);
    void *settings;
    bool portable; /* sn_session_options.portable */
} cli_conversion;

/* Reads the command line, loads the model with random values for its inputs allowed, and runs the
 * command. Complains where something is missing; returns the exit code. */
int cli_convert(cli_args *args, const cli_conversion *c);

/* Makes inputs and outputs as the options say and runs the session once; complains with `what`, and
 * tells which free dimensions were 1 if that may be why the run failed. */
int cli_run_once(const char *what, const cli_model_args *m, const sn_model *model,
                 sn_session *session, cli_inputs *inputs, cli_inputs *outputs);

#endif
