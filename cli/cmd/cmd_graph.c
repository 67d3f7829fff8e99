/* cmd_graph.c - sinter graph: draws a model with Graphviz. */
#include "cli/cmd/commands.h"
#include "cli/formats/file.h"
#include "cli/cmd/inputs.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

typedef struct settings {
    cli_model_args model;
    const char *path; /* -o */
    sn_stage stage;
} settings;

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    static const char *const stages[] = {"import", "opt", "plan"};
    settings *s = ctx;
    int taken = cli_model_args_take(&s->model, args, id, value);
    if (taken) return taken > 0;
    if (id == OPT_OUTPUT) s->path = value;
    if (id != OPT_STAGE) return id == OPT_OUTPUT;
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, stages[i]) != 0) continue;
        s->stage = (sn_stage)i;
        return true;
    }
    cli_complain("graph: --stage wants import, opt or plan, not '%s'", value);
    return false;
}

/* Has Graphviz make a picture of a DOT file. */
static sn_status call_dot(const char *from, const char *to, sn_error *err) {
    char format[32];
    const char *extension = cli_path_extension(to);
    snprintf(format, sizeof format, "-T%s", extension[0] ? extension : "svg");
    char *arguments[] = {"dot", format, "-o", (char *)to, (char *)from, NULL};
    pid_t child;
    int failed = posix_spawnp(&child, "dot", NULL, NULL, arguments, environ), status = 0;
    if (failed == ENOENT)
        return cli_fail(err, SN_NOT_FOUND,
                        "drawing needs the program dot of Graphviz, which is not there (Debian: "
                        "graphviz); -o FILE.dot writes what it would be given");
    if (failed) return cli_fail(err, SN_IO, "dot does not start: %s", strerror(failed));
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return SN_OK;
    return cli_fail(err, SN_IO, "dot failed to draw %s", to);
}

static sn_status write_graph(const settings *s, const sn_session *session, const char *path,
                             sn_error *err) {
    cli_output file;
    sn_status status = cli_output_open(&file, path, err);
    if (status != SN_OK) return status;
    status = sn_session_write(session, s->stage, SN_FORMAT_DOT, cli_stream_write, file.stream, err);
    sn_status closed = cli_output_close(&file, status == SN_OK, status == SN_OK ? err : NULL);
    return status == SN_OK ? closed : status;
}

static int draw(void *ctx, cli_loaded *l) {
    const settings *s = ctx;
    sn_error err = {0};
    if (s->stage == SN_STAGE_PLAN) {
        int code = cli_run_once("graph", &s->model, l->model, l->session, &l->inputs, &l->outputs);
        if (code != CLI_OK) return code;
    }
    if (strcmp(cli_path_extension(s->path), "dot") == 0) {
        sn_status status = write_graph(s, l->session, s->path, &err);
        return status == SN_OK ? CLI_OK : cli_complain_error("graph", &err, CLI_RUN_FAILED);
    }
    cli_text source = {0};
    cli_text_addf(&source, "%s.%d.dot", s->path, (int)getpid());
    sn_status status = write_graph(s, l->session, source.data, &err);
    if (status == SN_OK) status = call_dot(source.data, s->path, &err);
    unlink(source.data);
    cli_text_free(&source);
    return status == SN_OK ? CLI_OK : cli_complain_error("graph", &err, CLI_RUN_FAILED);
}

int cli_cmd_graph(cli_args *args) {
    settings s = {.stage = SN_STAGE_OPT};
    cli_conversion c = {&s.model, &s.path, take_option, draw, &s, false};
    return cli_convert(args, &c);
}
