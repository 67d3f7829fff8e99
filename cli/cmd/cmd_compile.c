/* cmd_compile.c - sinter compile: a model made ready to run, as one file that maps into memory. */
#include "cli/cmd/commands.h"
#include "cli/formats/file.h"
#include "cli/cmd/inputs.h"

#include <stdio.h>
#include <string.h>

typedef struct settings {
    cli_model_args model;
    const char *path; /* -o */
    bool tune;
} settings;

/* Shows what a session says of its tuning. */
static void show_line(void *ctx, sn_log_level level, const char *text) {
    (void)ctx;
    cli_text out = {0};
    if (strncmp(text, "tuned ", 6) != 0 && level > SN_LOG_WARNING) return;
    cli_text_add_name(&out, text);
    cli_text_addf(&out, "\n");
    cli_text_print(&out);
    cli_text_free(&out);
}

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    settings *s = ctx;
    int taken = cli_model_args_take(&s->model, args, id, value);
    if (taken) return taken > 0;
    if (id == OPT_TUNE) {
        s->tune = true;
        s->model.log = show_line;
        return true;
    }
    if (id != OPT_OUTPUT) return false;
    s->path = value;
    return true;
}

static sn_status write_compiled(const settings *s, sn_session *session, uint64_t *size,
                                sn_error *err) {
    cli_output file;
    sn_status status = cli_output_open(&file, s->path, err);
    if (status != SN_OK) return status;
    setvbuf(file.stream, NULL, _IONBF, 0); /* it comes in large pieces, which should stay whole */
    status = sn_session_compile(session, cli_stream_write, file.stream, err);
    *size = status == SN_OK ? (uint64_t)ftell(file.stream) : 0;
    sn_status closed = cli_output_close(&file, status == SN_OK, status == SN_OK ? err : NULL);
    return status == SN_OK ? closed : status;
}

/* Tunes a session that has run, and lets it pack what it has chosen. */
static sn_status tune(sn_session *session, const cli_inputs *inputs, cli_inputs *outputs,
                      sn_error *err) {
    size_t changed;
    sn_status status = sn_session_tune(session, inputs->items, inputs->count, &changed, err);
    if (status != SN_OK) return status;
    if (!changed) printf("tuned: nothing is quicker than what was estimated to be\n");
    return sn_session_run(session, NULL, inputs->items, inputs->count, outputs->items,
                          outputs->count, err);
}

static int compile(void *ctx, cli_loaded *l) {
    const settings *s = ctx;
    sn_session *session = l->session;
    sn_error err = {0};
    int code = cli_run_once("compile", &s->model, l->model, session, &l->inputs, &l->outputs);
    if (code != CLI_OK) return code;
    uint64_t size;
    if (s->tune && tune(session, &l->inputs, &l->outputs, &err) != SN_OK)
        return cli_complain_error("compile", &err, CLI_RUN_FAILED);
    if (write_compiled(s, session, &size, &err) != SN_OK)
        return cli_complain_error("compile", &err, CLI_RUN_FAILED);
    cli_text out = {0};
    size_t before, after;
    sn_session_node_counts(session, &before, &after);
    cli_text_add_name(&out, s->path);
    cli_text_addf(&out, ": %zu nodes (of %zu), ", after, before);
    cli_text_add_bytes(&out, size);
    cli_text_addf(&out, "\n");
    cli_text_print(&out);
    cli_text_free(&out);
    return CLI_OK;
}

int cli_cmd_compile(cli_args *args) {
    settings s = {0};
    cli_conversion c = {&s.model, &s.path, take_option, compile, &s, false};
    return cli_convert(args, &c);
}
