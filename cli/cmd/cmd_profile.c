/* cmd_profile.c - sinter profile: where the time of a run goes, step by step. */
#include "cli/cmd/commands.h"
#include "cli/formats/file.h"
#include "cli/interrupt.h"
#include "cli/cmd/inputs.h"
#include "cli/cmd/providers.h"
#include "cli/report/profile.h"
#include "cli/report/progress.h"

typedef struct settings {
    cli_model_args model;
    cli_measuring how;
    int64_t top;
    const char *trace, *html; /* files to write; NULL: none */
    bool interrupted;
} settings;

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    settings *s = ctx;
    int taken = cli_model_args_take(&s->model, args, id, value);
    if (!taken) taken = cli_measuring_take(&s->how, args, id, value);
    if (taken) return taken > 0;
    switch (id) {
    case OPT_TOP:
        return cli_args_int(args, value, 0, INT32_MAX, &s->top);
    case OPT_TRACE:
        s->trace = value;
        return true;
    case OPT_HTML:
        s->html = value;
        return true;
    default:
        return false;
    }
}

/* What every run is given. */
typedef struct subject {
    sn_session *session;
    sn_cancel *cancel;
    const cli_inputs *inputs;
    cli_inputs *outputs;
} subject;

/* One run, watched if `profile` is given; its outputs are thrown away. */
static sn_status run_once(const subject *s, cli_profile *profile, double *us, sn_error *err) {
    sn_run_options options;
    sn_run_options_init(&options, sizeof options);
    options.cancel = s->cancel;
    if (profile) {
        options.on_step = cli_profile_step;
        options.on_step_ctx = profile;
        cli_profile_begin(profile);
    }
    double start = cli_now_ms();
    sn_status status = sn_session_run(s->session, &options, s->inputs->items, s->inputs->count,
                                      s->outputs->items, s->outputs->count, err);
    *us = (cli_now_ms() - start) * 1e3;
    if (profile && status == SN_OK) cli_profile_end(profile, *us);
    cli_outputs_drop(s->outputs);
    return status;
}

/* Watched and plain runs in turn, after two that only warm up. */
static sn_status measure(settings *s, subject *what, cli_profile *profile, sn_error *err) {
    cli_progress progress;
    double us, start = cli_now_ms();
    sn_status status = SN_OK;
    what->cancel = cli_interrupt_catch();
    for (int i = 0; i < 2 && status == SN_OK; i++) status = run_once(what, NULL, &us, err);
    cli_progress_start(&progress);
    for (int64_t i = 0; status == SN_OK && i < (s->how.runs ? s->how.runs : CLI_MAX_RUNS); i++) {
        double spent = (cli_now_ms() - start) * 1e-3;
        if (!s->how.runs && i >= 3 && spent >= s->how.seconds) break;
        status = run_once(what, profile, &us, err);
        if (status == SN_OK) status = run_once(what, NULL, &us, err);
        if (status != SN_OK && profile->plain_us > 0) break;
        if (i == 0 || us < profile->plain_us) profile->plain_us = us;
        double done = s->how.runs ? (double)i / (double)s->how.runs : spent / s->how.seconds;
        cli_progress_update(&progress, done, 1, "profiling");
    }
    cli_progress_clear(&progress);
    s->interrupted = cli_interrupt_release();
    if (status == SN_CANCELLED && profile->plain_us > 0 && profile->runs) status = SN_OK;
    return status;
}

static sn_status write_file(const cli_profile *p, const char *path,
                            void (*make)(const cli_profile *, cli_text *), sn_error *err) {
    cli_text text = {0};
    if (!path) return SN_OK;
    make(p, &text);
    sn_status status = cli_write_file(path, cli_text_str(&text), text.length, err);
    cli_text_free(&text);
    return status;
}

static sn_status show(const settings *s, const cli_profile *p, const sn_session *session,
                      sn_error *err) {
    cli_text out = {0};
    if (s->how.json)
        cli_profile_json(p, &out);
    else
        cli_profile_text(p, (size_t)s->top, &out);
    if (!s->how.json) cli_add_providers(&out, session);
    cli_text_print(&out);
    cli_text_free(&out);
    sn_status status = write_file(p, s->trace, cli_profile_trace, err);
    return status == SN_OK ? write_file(p, s->html, cli_profile_html, err) : status;
}

static int profile_model(settings *s, sn_model **model, sn_session **session) {
    cli_profile profile = {.model = s->model.model};
    cli_inputs inputs = {0}, outputs = {0};
    sn_error err = {0};
    int code = cli_open_model(&s->model, model);
    if (code == CLI_OK) code = cli_open_session(&s->model, *model, session);
    if (code != CLI_OK) return code;
    sn_status status = cli_inputs_make(&s->model, *model, &inputs, &err);
    code = status == SN_INVALID_ARGUMENT ? CLI_USAGE : CLI_UNREADABLE;
    if (status == SN_OK) status = cli_outputs_make(*model, &outputs, &err);
    if (status == SN_OK) {
        code = CLI_RUN_FAILED;
        status = sn_machine_measure(s->model.threads, &profile.machine, &err);
    }
    subject what = {.session = *session, .inputs = &inputs, .outputs = &outputs};
    if (status == SN_OK) status = measure(s, &what, &profile, &err);
    if (status == SN_OK) status = show(s, &profile, *session, &err);
    if (status == SN_OK)
        code = s->interrupted ? CLI_INTERRUPTED : CLI_OK;
    else
        cli_complain_error("profile", &err, code);
    cli_inputs_free(&inputs);
    cli_inputs_free(&outputs);
    cli_profile_free(&profile);
    return code;
}

int cli_cmd_profile(cli_args *args) {
    settings s = {.how.seconds = 2, .top = 20};
    sn_model *model = NULL;
    sn_session *session = NULL;
    cli_model_args_init(&s.model, args);
    s.model.random = true;
    int code = cli_args_read(args, take_option, &s);
    if (code < 0 && !s.model.model) code = cli_args_missing(args, "model");
    if (code < 0) code = profile_model(&s, &model, &session);
    sn_session_destroy(session);
    sn_model_destroy(model);
    cli_model_args_free(&s.model);
    return code;
}
