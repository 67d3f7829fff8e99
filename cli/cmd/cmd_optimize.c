/* cmd_optimize.c - sinter optimize: an optimised model as an ONNX file, and what was done to it. */
#include "cli/cmd/commands.h"
#include "cli/testing/compare.h"
#include "cli/formats/file.h"
#include "cli/cmd/inputs.h"

#include <stdlib.h>
#include <string.h>

typedef struct settings {
    cli_model_args model;
    const char *path; /* -o */
    bool explain;
} settings;

/* What one run costs. */
typedef struct cost {
    uint64_t macs, bytes;
} cost;

/* One operator before and after. */
typedef struct row {
    char name[96];
    size_t before, after;
} row;

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    settings *s = ctx;
    int taken = cli_model_args_take(&s->model, args, id, value);
    if (taken) return taken > 0;
    if (id == OPT_OUTPUT) s->path = value;
    if (id == OPT_EXPLAIN) s->explain = true;
    return id == OPT_OUTPUT || id == OPT_EXPLAIN;
}

/* ---- Writing ------------------------------------------------------------------------------ */

/* SN_UNSUPPORTED if the file, with its functions inlined, holds operators that no other tool knows.
 */
static sn_status check_portable(const sn_model *optimised, sn_error *err) {
    sn_operator_use use;
    for (size_t i = 0; sn_model_operator(optimised, i, &use); i++)
        if (strcmp(use.domain, "ai.sinter") == 0)
            return cli_fail(err, SN_UNSUPPORTED, "%s of ai.sinter cannot be said in ONNX",
                            use.name);
    return SN_OK;
}

static sn_status write_optimised(const settings *s, const sn_session *session, sn_model **again,
                                 sn_error *err) {
    cli_text bytes = {0};
    sn_status status =
        sn_session_write(session, SN_STAGE_OPT, SN_FORMAT_ONNX, cli_text_write, &bytes, err);
    if (status == SN_OK) status = sn_model_load_memory(bytes.data, bytes.length, NULL, again, err);
    if (status == SN_OK) status = check_portable(*again, err);
    if (status == SN_OK) status = cli_write_file(s->path, bytes.data, bytes.length, err);
    cli_text_free(&bytes);
    return status;
}

/* ---- Running ------------------------------------------------------------------------------ */

static void add_cost(void *ctx, const sn_step_event *event) {
    cost *c = ctx;
    c->macs += event->macs;
    c->bytes += event->input_bytes + event->output_bytes;
}

/* Runs a model with its nodes as they are. */
static sn_status run_model(const settings *s, const sn_model *model, const cli_inputs *inputs,
                           cli_inputs *outputs, cost *c, sn_error *err) {
    sn_session_options options;
    sn_run_options run;
    sn_session *session = NULL;
    sn_session_options_init(&options, sizeof options);
    sn_run_options_init(&run, sizeof run);
    options.optimize = 0;
    options.threads = s->model.threads;
    options.time_limit_ns = options.prepare_limit_ns = s->model.time_limit_ns;
    options.memory_limit = s->model.memory_limit;
    run.on_step = add_cost;
    run.on_step_ctx = c;
    sn_status status = cli_outputs_make(model, outputs, err);
    if (status == SN_OK) status = sn_session_create(model, &options, &session, err);
    if (status == SN_OK)
        status = sn_session_run(session, &run, inputs->items, inputs->count, outputs->items,
                                outputs->count, err);
    sn_session_destroy(session);
    return status;
}

/* True if the outputs agree within 1e-3, and 1e-4 of the largest number of each. */
static bool agree(const cli_inputs *got, const cli_inputs *want, cli_text *why) {
    for (size_t i = 0; i < want->count; i++) {
        const sn_value *v = want->items[i].value;
        double largest = 0;
        if (sn_tensor_dtype(v) == SN_FLOAT32) {
            const float *x = sn_tensor_const_data(v);
            for (size_t k = 0; k < sn_tensor_count(v); k++) {
                double size = x[k] < 0 ? -(double)x[k] : (double)x[k];
                if (size > largest && size < 1e300) largest = size;
            }
        }
        cli_tolerance tolerance = {1e-3, 1e-7 + 1e-4 * largest};
        cli_text_addf(why, "output '%s': ", want->items[i].name);
        if (!cli_values_match(got->items[i].value, v, tolerance, why)) return false;
        cli_text_clear(why);
    }
    return true;
}

/* ---- Showing ------------------------------------------------------------------------------ */

static int by_count(const void *a, const void *b) {
    const row *x = a, *y = b;
    size_t most_x = x->before > x->after ? x->before : x->after;
    size_t most_y = y->before > y->after ? y->before : y->after;
    if (most_x != most_y) return most_x < most_y ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* The row of an operator, which is new at rows[*count]. */
static row *row_of(row *rows, size_t *count, const sn_operator_use *use) {
    row r = {0};
    size_t at = 0;
    snprintf(r.name, sizeof r.name, "%s%s%s", use->domain, use->domain[0] ? "." : "", use->name);
    while (at < *count && strcmp(rows[at].name, r.name) != 0) at++;
    if (at == *count) rows[(*count)++] = r;
    return &rows[at];
}

/* Operators of the model and of the optimised graph. A fused one may stand in the file as a call of
 * a function that spells it out. */
static void show_table(cli_text *out, const sn_model *before, const sn_session *after) {
    sn_model_info a;
    sn_operator_use use;
    size_t count = 0, made = 0, nodes;
    sn_model_get_info(before, &a);
    sn_session_node_counts(after, NULL, &nodes);
    while (sn_session_operator(after, made, &use)) made++;
    row *rows = cli_alloc(a.operator_count + made + 1, sizeof *rows);
    for (size_t i = 0; sn_model_operator(before, i, &use); i++)
        row_of(rows, &count, &use)->before = use.count;
    for (size_t i = 0; sn_session_operator(after, i, &use); i++)
        row_of(rows, &count, &use)->after = use.count;
    qsort(rows, count, sizeof *rows, by_count);
    cli_text_addf(out, "  %-36s %8s %8s\n", "operator", "before", "after");
    for (size_t i = 0; i < count; i++)
        cli_text_addf(out, "  %-36s %8zu %8zu\n", rows[i].name, rows[i].before, rows[i].after);
    cli_text_addf(out, "  %-36s %8zu %8zu\n", "all nodes", a.node_count, nodes);
    free(rows);
}

static void show_costs(cli_text *out, const cost *before, const cost *after) {
    cli_text_addf(out, "  multiply-accumulates of one run  ");
    cli_text_add_count(out, before->macs);
    cli_text_addf(out, " before, ");
    cli_text_add_count(out, after->macs);
    cli_text_addf(out, " after\n  bytes that nodes read and write  ");
    cli_text_add_bytes(out, before->bytes);
    cli_text_addf(out, " before, ");
    cli_text_add_bytes(out, after->bytes);
    cli_text_addf(out, " after\n");
}

static void show_rules(cli_text *out, const sn_session *session, bool where) {
    const char *name, *node;
    size_t count;
    cli_text_addf(out, "  rules that fired\n");
    for (size_t i = 0; sn_session_rule(session, i, &name, &count); i++)
        if (count) cli_text_addf(out, "  %8zu  %s\n", count, name);
    if (where) cli_text_addf(out, "  where\n");
    for (size_t i = 0; where && sn_session_rewrite(session, i, &name, &node); i++) {
        cli_text_addf(out, "    %-28s at ", name);
        cli_text_add_name(out, node);
        cli_text_addf(out, "\n");
    }
}

/* ---- The command -------------------------------------------------------------------------- */

static int check_and_show(const settings *s, const cli_loaded *l, const sn_model *again,
                          cli_inputs *got, cli_inputs *want, cli_text *out) {
    sn_error err = {0};
    cost before = {0}, after = {0};
    cli_text why = {0};
    sn_status status = run_model(s, l->model, &l->inputs, want, &before, &err);
    if (status == SN_OK) status = run_model(s, again, &l->inputs, got, &after, &err);
    if (status != SN_OK) return cli_complain_error("optimize", &err, CLI_RUN_FAILED);
    cli_text_add_name(out, s->path);
    cli_text_addf(out, "\n");
    show_table(out, l->model, l->session);
    show_costs(out, &before, &after);
    show_rules(out, l->session, s->explain);
    bool same = agree(got, want, &why);
    cli_text_addf(out, "  outputs on random inputs %s %s\n",
                  same ? "agree" : "DIFFER:", same ? "" : cli_text_str(&why));
    cli_text_free(&why);
    return same ? CLI_OK : CLI_FAILED;
}

static int optimize(void *ctx, cli_loaded *l) {
    const settings *s = ctx;
    sn_error err = {0};
    sn_model *again = NULL;
    cli_inputs got = {0}, want = {0};
    cli_text out = {0};
    sn_status status = cli_inputs_make(&s->model, l->model, &l->inputs, &err);
    if (status != SN_OK)
        return cli_complain_error("optimize", &err,
                                  status == SN_INVALID_ARGUMENT ? CLI_USAGE : CLI_UNREADABLE);
    int code = CLI_RUN_FAILED;
    if (write_optimised(s, l->session, &again, &err) != SN_OK)
        cli_complain_error("optimize", &err, code);
    else
        code = check_and_show(s, l, again, &got, &want, &out);
    cli_text_print(&out);
    cli_text_free(&out);
    cli_inputs_free(&got);
    cli_inputs_free(&want);
    sn_model_destroy(again);
    return code;
}

int cli_cmd_optimize(cli_args *args) {
    settings s = {0};
    cli_conversion c = {&s.model, &s.path, take_option, optimize, &s, true};
    return cli_convert(args, &c);
}
