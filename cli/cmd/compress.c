/* compress.c - the course of sinter quantize and sinter prune. */
#include "cli/cmd/compress.h"
#include "cli/cmd/commands.h"
#include "cli/formats/file.h"
#include "cli/report/compression.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Options ------------------------------------------------------------------------------ */

void cli_compress_init(cli_compress *c, const cli_args *args) {
    *c = (cli_compress){.keep = cli_alloc((size_t)args->count, sizeof *c->keep)};
    cli_model_args_init(&c->model, args);
    sn_quantize_options_init(&c->options, sizeof c->options);
}

bool cli_compress_part(const cli_args *args, const char *value, double *out) {
    size_t n = strlen(value);
    bool percent = n && value[n - 1] == '%';
    char *text = cli_strdup(value);
    if (percent) text[n - 1] = 0;
    bool ok = cli_args_real(args, text, 0, percent ? 100 : 1e9, out);
    if (percent) *out /= 100;
    free(text);
    return ok;
}

int cli_compress_word(const cli_args *args, const char *value, const char *const *words) {
    cli_text all = {0};
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], value) == 0) return i;
    for (int i = 0; words[i]; i++) cli_text_addf(&all, "%s%s", i ? ", " : "", words[i]);
    cli_complain("%s: '%s' is none of %s", args->command->name, value, cli_text_str(&all));
    cli_text_free(&all);
    return -1;
}

static int take_measuring(cli_compress *c, cli_args *args, int id, const char *value) {
    static const char *const metrics[] = {"cosine", "top1", "kl", NULL};
    int at;
    switch (id) {
    case OPT_MAX_LOSS:
        return cli_compress_part(args, value, &c->options.max_loss) ? 1 : -1;
    case OPT_METRIC:
        at = cli_compress_word(args, value, metrics);
        c->options.metric = (sn_quantize_metric)at;
        return at < 0 ? -1 : 1;
    case OPT_TASK:
        c->task = value;
        c->options.metric = SN_METRIC_SCORE;
        return 1;
    case OPT_TEACHER:
        c->teacher = value;
        return 1;
    case OPT_SAMPLES:
        return cli_args_int(args, value, 1, INT32_MAX, &c->most) ? 1 : -1;
    default:
        return 0;
    }
}

int cli_compress_take(cli_compress *c, cli_args *args, int id, const char *value) {
    int taken = take_measuring(c, args, id, value);
    if (!taken) taken = cli_model_args_take(&c->model, args, id, value);
    if (taken) return taken;
    switch (id) {
    case OPT_OUTPUT:
        c->path = value;
        break;
    case OPT_DATA:
        c->data = value;
        break;
    case OPT_KEEP:
        c->keep[c->keep_count++] = value;
        break;
    case OPT_HTML:
        c->html = value;
        break;
    case OPT_STATE:
        c->state = value;
        break;
    case OPT_JSON:
        c->json = true;
        break;
    default:
        return 0;
    }
    return 1;
}

/* ---- The user's own score ----------------------------------------------------------------- */

/* Writes the model, atomically. */
static sn_status write_model(const sn_model *model, const char *path, sn_error *err) {
    cli_output file;
    sn_status status = cli_output_open(&file, path, err);
    if (status != SN_OK) return status;
    status = sn_model_write(model, SN_FORMAT_ONNX, cli_stream_write, file.stream, err);
    sn_status closed = cli_output_close(&file, status == SN_OK, status == SN_OK ? err : NULL);
    return status == SN_OK ? closed : status;
}

/* The last number that the command prints. */
static sn_status read_score(const char *command, double *score, sn_error *err) {
    char line[512];
    bool any = false;
    FILE *f = popen(command, "r");
    if (!f) return cli_fail(err, SN_IO, "--task: the command cannot be started");
    while (fgets(line, sizeof line, f)) {
        char *end;
        double v = strtod(line, &end);
        if (end != line) *score = v;
        any = any || end != line;
    }
    int code = pclose(f);
    if (code) return cli_fail(err, SN_BAD_DATA, "--task: the command ended with status %d", code);
    if (!any) return cli_fail(err, SN_BAD_DATA, "--task: the command printed no number");
    return SN_OK;
}

static sn_status run_task(void *ctx, const sn_model *model, double *score, sn_error *err) {
    const cli_compress *c = ctx;
    cli_text path = {0};
    cli_text_addf(&path, "%s.task.onnx", c->path);
    sn_status status = write_model(model, path.data, err);
    if (status == SN_OK && setenv("SINTER_MODEL", path.data, 1) != 0)
        status = cli_fail(err, SN_NO_MEMORY, "--task: no memory");
    if (status == SN_OK) status = read_score(c->task, score, err);
    unlink(path.data);
    cli_text_free(&path);
    return status;
}

/* ---- The course --------------------------------------------------------------------------- */

static int show_progress(void *ctx, const char *phase, size_t done, size_t total) {
    cli_progress_update(ctx, (double)done, (double)total, phase);
    return 0;
}

/* What is open while the command runs. */
typedef struct work {
    sn_model *model, *teacher, *made;
    sn_quantize_report *report;
    cli_samples files;
    sn_samples samples;
    cli_progress progress;
    cli_text state;
} work;

static void close_work(work *w) {
    sn_model_destroy(w->model);
    sn_model_destroy(w->teacher);
    sn_model_destroy(w->made);
    sn_quantize_report_destroy(w->report);
    if (w->files.folder) cli_samples_free(&w->files);
    cli_text_free(&w->state);
}

/* Opens model, teacher and data and completes the options. */
static int open_work(cli_compress *c, const char *name, work *w) {
    sn_error err = {0};
    sn_quantize_options *o = &c->options;
    int code = cli_open_model(&c->model, &w->model);
    if (code == CLI_OK && c->teacher) {
        cli_model_args teacher = c->model;
        teacher.model = c->teacher;
        code = cli_open_model(&teacher, &w->teacher);
        o->teacher = w->teacher;
    }
    if (code != CLI_OK) return code;
    if (c->data) {
        size_t most = (size_t)c->most;
        sn_status status = cli_samples_open(&w->files, &c->model, w->model, c->data, most, &err);
        if (status != SN_OK) return cli_complain_error(name, &err, CLI_UNREADABLE);
        w->samples = (sn_samples){w->files.count, cli_samples_get, &w->files};
        o->samples = &w->samples;
    }
    cli_progress_start(&w->progress);
    o->progress = show_progress;
    o->progress_ctx = &w->progress;
    o->threads = c->model.threads;
    o->keep = c->keep;
    o->keep_count = c->keep_count;
    o->score = c->task ? run_task : NULL;
    o->score_ctx = c;
    cli_text_addf(&w->state, "%s.state", c->path);
    if (c->data) o->state_path = c->state ? c->state : w->state.data;
    return CLI_OK;
}

static int show_report(const cli_compress *c, const work *w) {
    sn_error err = {0};
    cli_text out = {0};
    sn_status status = SN_OK;
    if (!w->report) return CLI_OK;
    if (c->html) {
        cli_compression_html(w->report, c->model.model, &out);
        status = cli_write_file(c->html, out.data, out.length, &err);
        cli_text_clear(&out);
    }
    if (c->json)
        cli_compression_json(w->report, &out);
    else
        cli_compression_table(w->report, c->path, &out);
    cli_text_print(&out);
    cli_text_free(&out);
    return status == SN_OK ? CLI_OK : cli_complain_error(c->html, &err, CLI_RUN_FAILED);
}

static int work_on(cli_compress *c, const char *name, work *w, cli_compress_fn fn, void *ctx) {
    sn_error err = {0};
    sn_status status = fn(ctx, w->model, &c->options, &w->made, &w->report, &err);
    cli_progress_clear(&w->progress);
    int code = status == SN_OK ? CLI_OK
               : status == SN_INVALID_ARGUMENT || status == SN_NOT_FOUND
                   ? cli_complain_error(name, &err, CLI_USAGE)
                   : cli_complain_error(name, &err, CLI_RUN_FAILED);
    if (code == CLI_OK && write_model(w->made, c->path, &err) != SN_OK)
        code = cli_complain_error(c->path, &err, CLI_RUN_FAILED);
    int shown = show_report(c, w);
    if (code == CLI_OK && c->data && !c->state) unlink(w->state.data);
    return code == CLI_OK ? shown : code;
}

int cli_compress_run(cli_compress *c, cli_args *args, cli_take_fn take, cli_compress_fn fn,
                     void *ctx) {
    work w = {0};
    int code = cli_args_read(args, take, ctx);
    if (code < 0 && !c->model.model) code = cli_args_missing(args, "model");
    if (code < 0 && !c->path) code = cli_args_missing(args, "-o FILE");
    if (code < 0) code = open_work(c, args->command->name, &w);
    if (code == CLI_OK && w.model) code = work_on(c, args->command->name, &w, fn, ctx);
    close_work(&w);
    free(c->keep);
    cli_model_args_free(&c->model);
    return code;
}
