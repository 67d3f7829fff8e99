/* cmd_test.c - sinter test: options, reports and verdicts of ONNX backend tests. */
#include "cli/cmd/commands.h"
#include "cli/formats/file.h"
#include "cli/cmd/inputs.h"
#include "cli/formats/json_write.h"
#include "cli/report/progress.h"
#include "cli/testing/test_find.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    cli_pool_options pool;
    const char *match;
    const char *expect_fail;
    const char *json;
    bool verbose;
    const char **roots; /* operands */
    size_t root_count;
} settings;

/* A whole run: what there is to test and how far its report has come. */
typedef struct report {
    const settings *settings;
    cli_test_list list;
    cli_expected expected;
    cli_progress progress;
    size_t done;
    size_t reported; /* cases before this one have been shown */
    size_t passed, failed, skipped, as_expected;
} report;

static int usable_cpus(void) {
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 0 ? count : 1;
}

/* Takes one option; false when its value is wrong. */
static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    settings *s = ctx;
    cli_case_options *options = &s->pool.case_options;
    int taken = cli_session_arg_take(&options->threads, &options->optimize, &options->disabled,
                                     args, id, value);
    if (!taken) taken = cli_provider_take(&options->providers, args, id, value);
    if (taken) return taken > 0;
    int64_t number = 0;
    double real = 0;
    bool ok = true;
    switch (id) {
    case OPT_PRECISION:
        ok = cli_precision_take(args, value, &options->precision);
        break;
    case OPT_JOBS:
        ok = cli_args_int(args, value, 1, 1024, &number);
        s->pool.jobs = (int)number;
        break;
    case OPT_TIMEOUT:
        ok = cli_args_real(args, value, 0.001, 1e6, &real);
        s->pool.timeout_ms = real * 1e3;
        break;
    case OPT_RTOL:
        ok = cli_args_real(args, value, 0, 1e300, &options->tolerance.rtol);
        break;
    case OPT_ATOL:
        ok = cli_args_real(args, value, 0, 1e300, &options->tolerance.atol);
        break;
    case CLI_ARG_OPERAND:
        s->roots[s->root_count++] = value;
        break;
    case OPT_MATCH:
        s->match = value;
        break;
    case OPT_EXPECT_FAIL:
        s->expect_fail = value;
        break;
    case OPT_JSON:
        s->json = value;
        break;
    case OPT_VERBOSE:
        s->verbose = true;
        break;
    default:
        break;
    }
    return ok;
}

/* Reads the command line; -1 to go on, an exit code to stop. */
static int read_settings(cli_args *args, settings *s) {
    *s = (settings){.roots = cli_alloc((size_t)args->count, sizeof *s->roots)};
    s->pool.jobs = usable_cpus();
    s->pool.timeout_ms = 60e3;
    s->pool.case_options =
        (cli_case_options){.threads = 1, .optimize = 3, .tolerance = {.rtol = 1e-3, .atol = 1e-7}};
    int code = cli_args_read(args, take_option, s);
    return code >= 0 || s->root_count ? code : cli_args_missing(args, "folder");
}

/* ---- The report on stdout ----------------------------------------------------------------- */

/* The message, each of its lines indented. */
static void add_message(cli_text *out, const char *message) {
    const char *line = message;
    while (*line) {
        size_t length = strcspn(line, "\n");
        cli_text_addf(out, "     %.*s\n", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void show(report *r, const char *verdict, const cli_test *test) {
    cli_text out = {0};
    cli_text_addf(&out, "%s ", verdict);
    cli_text_add_name(&out, test->name);
    cli_text_addf(&out, " (%.0f ms)\n", test->milliseconds);
    if (test->message) add_message(&out, test->message);
    cli_progress_clear(&r->progress);
    cli_text_print(&out);
    fflush(stdout);
    cli_text_free(&out);
}

/* Turns the raw verdict into the one that counts, by the list of expected failures. */
static void apply_expectation(report *r, cli_test *test) {
    cli_expectation expectation = cli_expected_of(&r->expected, test);
    if (test->verdict == CLI_SKIPPED || expectation == CLI_EXPECT_PASS) return;
    if (expectation == CLI_EXPECT_ANY) {
        test->verdict = CLI_SKIPPED;
        return;
    }
    if (test->verdict == CLI_FAILED_CASE) {
        test->expected = true;
        test->verdict = CLI_PASSED;
        return;
    }
    cli_text message = {0};
    cli_text_addf(&message, "passed, but %s lists it as a failure: take it off the list",
                  r->settings->expect_fail);
    test->message = cli_strdup(cli_text_str(&message));
    test->verdict = CLI_FAILED_CASE;
    cli_text_free(&message);
}

static void report_one(report *r, cli_test *test) {
    apply_expectation(r, test);
    if (test->expected) {
        r->as_expected++;
        r->passed++;
        if (r->settings->verbose) show(r, "EXPECTED", test);
    } else if (test->verdict == CLI_PASSED) {
        r->passed++;
        if (r->settings->verbose) show(r, "PASS", test);
    } else if (test->verdict == CLI_SKIPPED) {
        r->skipped++;
        if (r->settings->verbose) show(r, "SKIP", test);
    } else {
        r->failed++;
        show(r, "FAIL", test);
    }
}

/* Cases end in any order and are reported in theirs. */
static void on_done(void *ctx, cli_test *test) {
    report *r = ctx;
    (void)test;
    r->done++;
    while (r->reported < r->list.count && r->list.items[r->reported].done) {
        report_one(r, &r->list.items[r->reported++]);
    }
    char note[64];
    snprintf(note, sizeof note, "%zu of %zu, %zu failed", r->done, r->list.count, r->failed);
    cli_progress_update(&r->progress, (double)r->done, (double)r->list.count, note);
}

static void show_summary(report *r) {
    cli_text out = {0};
    if (r->as_expected) {
        cli_text_addf(&out, "%zu failed as expected and count as passed:\n", r->as_expected);
        for (size_t i = 0; i < r->list.count; i++) {
            const cli_test *test = &r->list.items[i];
            if (!test->expected) continue;
            cli_text_addf(&out, "     ");
            cli_text_add_name(&out, test->name);
            cli_text_add(&out, "\n", 1);
        }
    }
    size_t unseen = 0;
    for (size_t i = 0; i < r->expected.count; i++) unseen += !r->expected.seen[i];
    if (unseen && !r->settings->match) {
        cli_text_addf(&out, "%zu of the listed failures did not run\n", unseen);
    }
    cli_text_addf(&out, "%zu passed, %zu failed, %zu skipped\n", r->passed, r->failed, r->skipped);
    cli_text_print(&out);
    cli_text_free(&out);
}

/* ---- The report as JSON ------------------------------------------------------------------- */

static const char *verdict_name(const cli_test *test) {
    if (test->expected) return "failed as expected";
    if (test->verdict == CLI_PASSED) return "passed";
    return test->verdict == CLI_SKIPPED ? "skipped" : "failed";
}

static sn_status write_json(const report *r, const char *path, sn_error *err) {
    cli_text out = {0};
    cli_json json = {.out = &out};
    cli_json_begin(&json, '{');
    cli_json_key(&json, "passed");
    cli_json_unsigned(&json, r->passed);
    cli_json_key(&json, "failed");
    cli_json_unsigned(&json, r->failed);
    cli_json_key(&json, "skipped");
    cli_json_unsigned(&json, r->skipped);
    cli_json_key(&json, "failed_as_expected");
    cli_json_unsigned(&json, r->as_expected);
    cli_json_key(&json, "cases");
    cli_json_begin(&json, '[');
    for (size_t i = 0; i < r->list.count; i++) {
        const cli_test *test = &r->list.items[i];
        cli_json_begin(&json, '{');
        cli_json_key(&json, "name");
        cli_json_cstring(&json, test->name);
        cli_json_key(&json, "folder");
        cli_json_cstring(&json, test->folder);
        cli_json_key(&json, "verdict");
        cli_json_cstring(&json, verdict_name(test));
        cli_json_key(&json, "message");
        cli_json_cstring(&json, test->message ? test->message : "");
        cli_json_key(&json, "milliseconds");
        cli_json_number(&json, test->milliseconds);
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    cli_json_end(&json, '}');
    sn_status status = cli_write_file(path, cli_text_str(&out), out.length, err);
    cli_text_free(&out);
    return status;
}

/* ---- The command -------------------------------------------------------------------------- */

static sn_status find_all(const settings *s, report *r, sn_error *err) {
    for (size_t i = 0; i < s->root_count; i++) {
        sn_status status = cli_find_tests(s->roots[i], s->match, &r->list, err);
        if (status != SN_OK) return status;
    }
    if (r->list.count == 0) {
        return cli_fail(err, SN_NOT_FOUND, "no test case found%s%s",
                        s->match ? " whose name contains " : "", s->match ? s->match : "");
    }
    return s->expect_fail ? cli_expected_read(s->expect_fail, &r->expected, err) : SN_OK;
}

static int run_tests(settings *s) {
    report r = {.settings = s};
    sn_error err = {0};
    int code = CLI_UNREADABLE;
    if (find_all(s, &r, &err) != SN_OK) {
        cli_complain_error("test", &err, code);
    } else {
        s->pool.on_done = on_done;
        s->pool.ctx = &r;
        cli_progress_start(&r.progress);
        sn_status status = cli_pool_run(r.list.items, r.list.count, &s->pool, &err);
        cli_progress_clear(&r.progress);
        if (status == SN_OK && s->json) status = write_json(&r, s->json, &err);
        if (status == SN_OK) {
            code = r.failed ? CLI_FAILED : CLI_OK;
        } else {
            code = cli_complain_error("test", &err, CLI_RUN_FAILED);
        }
        show_summary(&r);
    }
    cli_test_list_free(&r.list);
    cli_expected_free(&r.expected);
    return code;
}

int cli_cmd_test(cli_args *args) {
    settings s;
    int code = read_settings(args, &s);
    if (code < 0) code = run_tests(&s);
    co_providers_free(&s.pool.case_options.providers);
    free(s.roots);
    return code;
}
