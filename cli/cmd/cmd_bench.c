/* cmd_bench.c - sinter bench: how fast a model runs, and whether the figures can be trusted. */
#include "cli/cmd/bench_shapes.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/inputs.h"
#include "cli/formats/json_write.h"
#include "cli/interrupt.h"
#include "cli/report/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_RUNS 5

typedef struct settings {
    cli_model_args model;
    cli_measuring how;
    int64_t warm_up;    /* runs before the measured ones */
    const char *shapes; /* NULL: one shape */
} settings;

typedef struct samples {
    double *ms;
    size_t count;
    size_t capacity;
} samples;

typedef struct results {
    double load_ms, prepare_ms, first_ms;
    samples all; /* in order of time, later sorted */
    double total_ms, drift;
    double min, median, p90, p99, max, mean;
    bool interrupted;
    uint64_t peak_bytes, arena_bytes;
} results;

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    settings *s = ctx;
    int taken = cli_model_args_take(&s->model, args, id, value);
    if (!taken) taken = cli_measuring_take(&s->how, args, id, value);
    if (taken) return taken > 0;
    switch (id) {
    case OPT_WARMUP:
        return cli_args_int(args, value, 0, CLI_MAX_RUNS, &s->warm_up);
    case OPT_SHAPES:
        s->shapes = value;
        return true;
    default:
        return false;
    }
}

static void add_sample(samples *list, double ms) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 1024;
        double *grown = cli_alloc(capacity, sizeof *grown);
        if (list->count) memcpy(grown, list->ms, list->count * sizeof *grown);
        free(list->ms);
        list->ms = grown;
        list->capacity = capacity;
    }
    list->ms[list->count++] = ms;
}

/* ---- Measuring ---------------------------------------------------------------------------- */

/* One run; its outputs are thrown away after the clock has stopped. */
static sn_status run_once(sn_session *session, sn_cancel *cancel, const cli_inputs *inputs,
                          cli_inputs *outputs, double *ms, sn_error *err) {
    sn_run_options options;
    sn_run_options_init(&options, sizeof options);
    options.cancel = cancel;
    double start = cli_now_ms();
    sn_status status = sn_session_run(session, &options, inputs->items, inputs->count,
                                      outputs->items, outputs->count, err);
    *ms = cli_now_ms() - start;
    cli_outputs_drop(outputs);
    return status;
}

static bool has_enough(const settings *s, size_t runs, double spent_ms) {
    if (s->how.runs) return runs >= (size_t)s->how.runs;
    return (runs >= MIN_RUNS && spent_ms >= s->how.seconds * 1e3) || runs >= CLI_MAX_RUNS;
}

static sn_status measure(const settings *s, sn_session *session, const cli_inputs *inputs,
                         cli_inputs *outputs, results *r, sn_error *err) {
    cli_progress progress;
    double ms;
    sn_cancel *cancel = cli_interrupt_catch();
    sn_status status = run_once(session, cancel, inputs, outputs, &r->first_ms, err);
    for (int64_t i = 1; i < s->warm_up && status == SN_OK; i++) {
        status = run_once(session, cancel, inputs, outputs, &ms, err);
    }
    cli_progress_start(&progress);
    while (status == SN_OK && !has_enough(s, r->all.count, r->total_ms)) {
        status = run_once(session, cancel, inputs, outputs, &ms, err);
        if (status != SN_OK) break;
        add_sample(&r->all, ms);
        r->total_ms += ms;
        double done = s->how.runs ? (double)r->all.count : r->total_ms;
        double total = s->how.runs ? (double)s->how.runs : s->how.seconds * 1e3;
        cli_progress_update(&progress, done, total, "measuring");
    }
    cli_progress_clear(&progress);
    r->interrupted = cli_interrupt_release();
    if (status == SN_CANCELLED && r->all.count) status = SN_OK;
    return status;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* The smallest sample that is at least as large as `part` of all; `ms` is sorted. */
static double percentile(const double *ms, size_t count, double part) {
    size_t rank = (size_t)ceil(part * (double)count);
    return ms[rank > 0 ? rank - 1 : 0];
}

static double median_of(const double *ms, size_t count) {
    double *copy = cli_alloc(count, sizeof *copy);
    memcpy(copy, ms, count * sizeof *copy);
    qsort(copy, count, sizeof *copy, by_size);
    double median = percentile(copy, count, 0.5);
    free(copy);
    return median;
}

static void summarise(results *r) {
    size_t count = r->all.count, third = count / 3;
    if (third > 0) {
        r->drift = median_of(r->all.ms + count - third, third) / median_of(r->all.ms, third) - 1;
    }
    qsort(r->all.ms, count, sizeof *r->all.ms, by_size);
    r->min = r->all.ms[0];
    r->max = r->all.ms[count - 1];
    r->median = percentile(r->all.ms, count, 0.5);
    r->p90 = percentile(r->all.ms, count, 0.9);
    r->p99 = percentile(r->all.ms, count, 0.99);
    r->mean = r->total_ms / (double)count;
    r->peak_bytes = cli_process_bytes("VmHWM");
}

/* Adds one line for each reason to distrust the figures. */
static void add_warnings(const results *r, cli_text *out) {
    if (r->interrupted) cli_text_addf(out, "interrupted\n");
    if (r->all.count < 3 * MIN_RUNS) {
        cli_text_addf(out, "only %zu runs were measured\n", r->all.count);
    }
    if (r->p90 > 1.2 * r->median) {
        cli_text_addf(out, "unsteady: 1 run in 10 takes %.0f %% longer than the median or more\n",
                      (r->p90 / r->median - 1) * 100);
    }
    if (fabs(r->drift) > 0.1) {
        cli_text_addf(out, "drift: the last third is %.0f %% %s than the first\n",
                      fabs(r->drift) * 100, r->drift > 0 ? "slower" : "faster");
    }
}

/* ---- Showing ------------------------------------------------------------------------------ */

static void show_text(const settings *s, const results *r) {
    cli_text out = {0}, warnings = {0};
    cli_text_add_name(&out, s->model.model);
    cli_text_addf(&out, "\n  load        %10.3f ms\n  prepare     %10.3f ms\n", r->load_ms,
                  r->prepare_ms);
    cli_text_addf(&out, "  first run   %10.3f ms\n", r->first_ms);
    cli_text_addf(&out, "  min         %10.3f ms\n  median      %10.3f ms\n", r->min, r->median);
    cli_text_addf(&out, "  p90         %10.3f ms\n  p99         %10.3f ms\n", r->p90, r->p99);
    cli_text_addf(&out, "  mean        %10.3f ms\n", r->mean);
    cli_text_addf(&out, "  throughput  %10.2f runs/s (%zu runs)\n",
                  (double)r->all.count * 1e3 / r->total_ms, r->all.count);
    cli_text_addf(&out, "  peak memory ");
    cli_text_add_bytes(&out, r->peak_bytes);
    cli_text_addf(&out, ", of it tensors of one run ");
    cli_text_add_bytes(&out, r->arena_bytes);
    cli_text_addf(&out, "\n");
    add_warnings(r, &warnings);
    char *rest = warnings.data;
    for (char *line; rest && *rest && (line = strsep(&rest, "\n")) != NULL;) {
        cli_text_addf(&out, "  warning: %s\n", line);
    }
    cli_text_print(&out);
    cli_text_free(&out);
    cli_text_free(&warnings);
}

static void show_json(const settings *s, const results *r) {
    cli_text out = {0}, warnings = {0};
    cli_json json = {.out = &out};
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"load_ms", r->load_ms},
        {"prepare_ms", r->prepare_ms},
        {"first_run_ms", r->first_ms},
        {"min_ms", r->min},
        {"median_ms", r->median},
        {"p90_ms", r->p90},
        {"p99_ms", r->p99},
        {"max_ms", r->max},
        {"mean_ms", r->mean},
        {"drift", r->drift},
        {"runs_per_second", (double)r->all.count * 1e3 / r->total_ms},
    };
    cli_json_begin(&json, '{');
    cli_json_key(&json, "model");
    cli_json_cstring(&json, s->model.model);
    cli_json_key(&json, "threads");
    cli_json_integer(&json, s->model.threads);
    cli_json_key(&json, "optimize");
    cli_json_integer(&json, s->model.optimize);
    cli_json_key(&json, "runs");
    cli_json_unsigned(&json, r->all.count);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        cli_json_key(&json, numbers[i].key);
        cli_json_number(&json, numbers[i].value);
    }
    cli_json_key(&json, "peak_memory_bytes");
    cli_json_unsigned(&json, r->peak_bytes);
    cli_json_key(&json, "arena_bytes");
    cli_json_unsigned(&json, r->arena_bytes);
    cli_json_key(&json, "warnings");
    cli_json_begin(&json, '[');
    add_warnings(r, &warnings);
    char *rest = warnings.data;
    for (char *line; rest && *rest && (line = strsep(&rest, "\n")) != NULL;) {
        cli_json_cstring(&json, line);
    }
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
    cli_text_print(&out);
    cli_text_free(&out);
    cli_text_free(&warnings);
}

/* ---- The command -------------------------------------------------------------------------- */

static int bench(const settings *s, sn_model **model, sn_session **session) {
    results r = {0};
    cli_inputs inputs = {0}, outputs = {0};
    sn_error err = {0};
    double start = cli_now_ms();
    int code = cli_open_model(&s->model, model);
    if (code != CLI_OK) return code;
    r.load_ms = cli_now_ms() - start;
    start = cli_now_ms();
    code = cli_open_session(&s->model, *model, session);
    if (code != CLI_OK) return code;
    r.prepare_ms = cli_now_ms() - start;
    sn_status status = cli_inputs_make(&s->model, *model, &inputs, &err);
    code = status == SN_INVALID_ARGUMENT ? CLI_USAGE : CLI_UNREADABLE;
    if (status == SN_OK) status = cli_outputs_make(*model, &outputs, &err);
    if (status == SN_OK) {
        code = CLI_RUN_FAILED;
        status = measure(s, *session, &inputs, &outputs, &r, &err);
    }
    if (status == SN_OK) {
        code = r.interrupted ? CLI_INTERRUPTED : CLI_OK;
        uint64_t lower;
        sn_session_plan_bytes(*session, &r.arena_bytes, &lower);
        summarise(&r);
        if (s->how.json) {
            show_json(s, &r);
        } else {
            show_text(s, &r);
        }
    } else {
        cli_complain_error("bench", &err, code);
    }
    cli_inputs_free(&inputs);
    cli_inputs_free(&outputs);
    free(r.all.ms);
    return code;
}

int cli_cmd_bench(cli_args *args) {
    settings s = {.how.seconds = 3, .warm_up = 3};
    sn_model *model = NULL;
    sn_session *session = NULL;
    cli_model_args_init(&s.model, args);
    s.model.random = true;
    int code = cli_args_read(args, take_option, &s);
    if (code < 0 && !s.model.model) code = cli_args_missing(args, "model");
    if (code < 0 && s.shapes)
        code = cli_bench_shapes(&s.model, s.shapes, s.how.runs ? s.how.runs : MIN_RUNS, s.how.json);
    if (code < 0) code = bench(&s, &model, &session);
    sn_session_destroy(session);
    sn_model_destroy(model);
    cli_model_args_free(&s.model);
    return code;
}
