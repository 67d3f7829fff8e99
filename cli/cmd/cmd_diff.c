/* cmd_diff.c - sinter diff: runs a model in two configurations, or in this engine and another, and
 * names the first value that differs. */
#include "cli/cmd/against.h"
#include "cli/cmd/commands.h"
#include "cli/formats/element.h"
#include "cli/cmd/inputs.h"

#include "sinter_part.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct settings {
    cli_model_args model;
    int levels[2];
    int n_levels;
    const char *against; /* another library; NULL: the second level */
    double rtol, atol;
    bool all;
} settings;

/* What was made under a name. */
typedef struct made {
    char *name, *op;
    sn_value *value;
} made;

typedef struct trace {
    made *items;
    size_t count, capacity;
} trace;

/* How two tensors differ. */
typedef struct difference {
    double abs, rel; /* the largest of any element */
    double ulp;      /* largest distance in floats of the type between; -1: not of float32 */
    double cosine;
    double scale; /* largest number of the first */
    size_t at;    /* element of the largest absolute difference */
    bool comparable;
} difference;

static bool take_option(cli_args *args, int id, const char *value, void *ctx) {
    settings *s = ctx;
    int64_t level;
    switch (id) {
    case OPT_LEVEL:
        if (s->n_levels == 2) {
            cli_complain("diff: --level is given more than twice");
            return false;
        }
        if (!cli_args_int(args, value, 0, 3, &level)) return false;
        s->levels[s->n_levels++] = (int)level;
        return true;
    case OPT_AGAINST:
        s->against = value;
        return true;
    case OPT_RTOL:
        return cli_args_real(args, value, 0, 1e30, &s->rtol);
    case OPT_ATOL:
        return cli_args_real(args, value, 0, 1e30, &s->atol);
    case OPT_VERBOSE:
        s->all = true;
        return true;
    default:
        return cli_model_args_take(&s->model, args, id, value) > 0;
    }
}

/* ---- Values of a run ---------------------------------------------------------------------- */

/* A copy of a tensor of numbers; NULL of anything else. */
static sn_value *copy_tensor(const sn_value *v) {
    sn_value *copy = NULL;
    if (sn_value_kind(v) != SN_KIND_TENSOR || sn_tensor_dtype(v) == SN_STRING) return NULL;
    if (sn_tensor_create(sn_tensor_dtype(v), sn_tensor_rank(v), sn_tensor_dims(v), &copy, NULL) !=
        SN_OK)
        return NULL;
    if (sn_tensor_bytes(v))
        memcpy(sn_tensor_data(copy), sn_tensor_const_data(v), sn_tensor_bytes(v));
    return copy;
}

static void keep_value(void *ctx, const char *name, const char *op, const sn_value *value) {
    trace *t = ctx;
    sn_value *copy = name[0] ? copy_tensor(value) : NULL;
    if (!copy) return;
    if (t->count == t->capacity) {
        size_t capacity = t->capacity * 2 + 64;
        made *grown = cli_alloc(capacity, sizeof *grown);
        if (t->count) memcpy(grown, t->items, t->count * sizeof *grown);
        free(t->items);
        t->items = grown;
        t->capacity = capacity;
    }
    t->items[t->count++] = (made){cli_strdup(name), cli_strdup(op), copy};
}

static void trace_free(trace *t) {
    for (size_t i = 0; i < t->count; i++) {
        free(t->items[i].name);
        free(t->items[i].op);
        sn_value_destroy(t->items[i].value);
    }
    free(t->items);
}

static const made *find(const trace *t, const char *name, size_t hint) {
    for (size_t k = 0; k < t->count; k++) {
        const made *m = &t->items[(hint + k) % t->count];
        if (strcmp(m->name, name) == 0) return m;
    }
    return NULL;
}

/* Run 0 or 1: the first one is exact and, if `alone`, without the providers that are given. */
static int run_level(const settings *s, int which, bool alone, int level, const sn_model *model,
                     const cli_inputs *inputs, trace *t) {
    cli_model_args with = s->model;
    sn_session *session = NULL;
    sn_run_options options;
    cli_inputs outputs = {0};
    sn_error err = {0};
    with.optimize = level;
    if (which == 0) with.precision = SN_PRECISION_EXACT;
    if (alone) with.providers.count = 0;
    int code = cli_open_session(&with, model, &session);
    if (code != CLI_OK) return code;
    sn_run_options_init(&options, sizeof options);
    options.on_value = keep_value;
    options.on_value_ctx = t;
    sn_status status = cli_outputs_make(model, &outputs, &err);
    if (status == SN_OK)
        status = sn_session_run(session, &options, inputs->items, inputs->count, outputs.items,
                                outputs.count, &err);
    for (size_t i = 0; status == SN_OK && i < outputs.count; i++)
        if (!find(t, outputs.items[i].name, 0))
            keep_value(t, outputs.items[i].name, "output", outputs.items[i].value);
    cli_inputs_free(&outputs);
    sn_session_destroy(session);
    return status == SN_OK ? CLI_OK : cli_complain_error("diff", &err, CLI_RUN_FAILED);
}

/* ---- Another library ------------------------------------------------------------------------ */

/* The nodes of the model, with every value of a trace as an output. */
static sn_status show_values(const sn_model *model, const trace *t, sn_model **out, sn_error *err) {
    const char **names = cli_alloc(t->count + 1, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        if (find(t, t->items[i].name, 0) == &t->items[i]) names[count++] = t->items[i].name;
    sn_status status = sn_model_extract(model, NULL, 0, names, count, out, err);
    free(names);
    return status;
}

/* Runs the model in the other library; the values to compare are those of `ours`, a run at level
 * 0, where each is one of the model's own. */
static int run_against(const settings *s, const sn_model *model, const cli_inputs *inputs,
                       const trace *ours, trace *t) {
    sn_model *open = NULL;
    sn_error err = {0};
    sn_status status = show_values(model, ours, &open, &err);
    if (status == SN_OK)
        status = cli_against_run(s->against, open, inputs, s->model.threads, keep_value, t, &err);
    sn_model_destroy(open);
    if (status == SN_OK) return CLI_OK;
    return cli_complain_error("diff", &err, status == SN_NOT_FOUND ? CLI_USAGE : CLI_RUN_FAILED);
}

/* ---- Comparing ---------------------------------------------------------------------------- */

/* Floats in the order of their values as integers without gaps. */
static int64_t float_rank(double v) {
    float f = (float)v;
    int32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits < 0 ? -(int64_t)(bits & INT32_MAX) : bits;
}

static void add_element(difference *d, double a, double b, size_t i, double sums[3]) {
    if (isnan(a) && isnan(b)) return;
    double gap = a == b ? 0 : fabs(a - b);
    if (isnan(gap)) gap = INFINITY;
    sums[0] += a * b;
    sums[1] += a * a;
    sums[2] += b * b;
    if (fabs(a) > d->scale && isfinite(a)) d->scale = fabs(a);
    if (gap > d->abs) {
        d->abs = gap;
        d->at = i;
    }
    double rel = gap == 0 ? 0 : gap / (fabs(a) > 1e-30 ? fabs(a) : 1e-30);
    if (rel > d->rel) d->rel = rel;
    if (d->ulp >= 0 && isfinite(a) && isfinite(b)) {
        double ulp = (double)llabs((long long)(float_rank(a) - float_rank(b)));
        if (ulp > d->ulp) d->ulp = ulp;
    }
}

static difference compare(const sn_value *a, const sn_value *b) {
    difference d = {.ulp = sn_tensor_dtype(a) == SN_FLOAT32 ? 0 : -1, .cosine = 1};
    double sums[3] = {0};
    size_t n = sn_tensor_count(a);
    d.comparable = sn_tensor_dtype(a) == sn_tensor_dtype(b) && n == sn_tensor_count(b);
    cli_view x = cli_view_of(a), y = cli_view_of(b);
    for (size_t i = 0; d.comparable && i < n; i++)
        add_element(&d, cli_view_real(&x, i), cli_view_real(&y, i), i, sums);
    if (sums[1] > 0 && sums[2] > 0) d.cosine = sums[0] / (sqrt(sums[1]) * sqrt(sums[2]));
    return d;
}

static void show_difference(cli_text *out, const char *mark, const made *a, const made *b,
                            const difference *d) {
    cli_text_addf(out, "%s ", mark);
    cli_text_add_name(out, a->name);
    cli_text_addf(out, " (%s", a->op);
    if (b->op[0] && strcmp(a->op, b->op) != 0) cli_text_addf(out, " and %s", b->op);
    cli_text_addf(out, ") %s", sn_dtype_name(sn_tensor_dtype(a->value)));
    cli_text_add_dims(out, sn_tensor_rank(a->value), sn_tensor_dims(a->value));
    if (!d->comparable) {
        cli_text_addf(out, " has another type or size\n");
        return;
    }
    cli_text_addf(out, ": max abs %.3g (element %zu) rel %.3g", d->abs, d->at, d->rel);
    if (d->ulp >= 0) cli_text_addf(out, " ulp %.0f", d->ulp);
    cli_text_addf(out, " cosine %.9f\n", d->cosine);
}

/* ---- The command -------------------------------------------------------------------------- */

/* The levels of both runs: those given, or 0 and 3; with a precision both are of one. */
static bool set_levels(settings *s) {
    bool precise = s->model.precision == SN_PRECISION_EXACT;
    if (s->n_levels == 2 && (s->against || !precise)) {
        cli_complain("diff: with --%s there is one --level", s->against ? "against" : "precision");
        return false;
    }
    if (s->against && !precise) {
        cli_complain("diff: --precision compares with no other library");
        return false;
    }
    if (!precise) {
        s->levels[0] = s->levels[1] = s->n_levels ? s->levels[0] : 3;
        return true;
    }
    if (s->n_levels == 0) s->levels[1] = 3;
    if (s->n_levels == 1 && !s->against) s->levels[1] = s->levels[0], s->levels[0] = 0;
    return true;
}

static int report(const settings *s, const trace *a, const trace *b) {
    cli_text out = {0};
    size_t common = 0, differing = 0;
    for (size_t i = 0; i < a->count; i++) {
        const made *x = &a->items[i], *y = b->count ? find(b, x->name, i % b->count) : NULL;
        if (!y) continue;
        common++;
        difference d = compare(x->value, y->value);
        bool bad = !d.comparable || !(d.abs <= s->atol + s->rtol * d.scale);
        if (bad && differing++ == 0)
            show_difference(&out, "first to differ:", x, y, &d);
        else if (s->all)
            show_difference(&out, bad ? "  differs" : "  agrees", x, y, &d);
    }
    if (s->against)
        cli_text_addf(&out, "level %d and %s", s->levels[0], s->against);
    else if (s->model.precision)
        cli_text_addf(&out, "level %d, exact and in another precision", s->levels[0]);
    else
        cli_text_addf(&out, "levels %d and %d", s->levels[0], s->levels[1]);
    cli_text_addf(&out, ": %zu values in common, %zu differ\n", common, differing);
    cli_text_print(&out);
    cli_text_free(&out);
    return differing ? CLI_FAILED : CLI_OK;
}

static int diff(const settings *s, sn_model *model) {
    sn_error err = {0};
    cli_inputs inputs = {0};
    trace traces[2] = {{0}}, plain = {0};
    sn_status status = cli_inputs_make(&s->model, model, &inputs, &err);
    int code = CLI_OK;
    if (status != SN_OK)
        code = cli_complain_error("diff", &err,
                                  status == SN_INVALID_ARGUMENT ? CLI_USAGE : CLI_UNREADABLE);
    for (int i = 0; i < (s->against ? 1 : 2) && code == CLI_OK; i++)
        code = run_level(s, i, i == 0, s->levels[i], model, &inputs, &traces[i]);
    if (s->against && s->levels[0] > 0 && code == CLI_OK)
        code = run_level(s, 0, true, 0, model, &inputs, &plain);
    if (s->against && code == CLI_OK)
        code = run_against(s, model, &inputs, s->levels[0] > 0 ? &plain : &traces[0], &traces[1]);
    if (code == CLI_OK) code = report(s, &traces[0], &traces[1]);
    trace_free(&traces[0]);
    trace_free(&traces[1]);
    trace_free(&plain);
    cli_inputs_free(&inputs);
    return code;
}

int cli_cmd_diff(cli_args *args) {
    settings s = {.rtol = 1e-4, .atol = 1e-7};
    sn_model *model = NULL;
    cli_model_args_init(&s.model, args);
    s.model.random = true;
    int code = cli_args_read(args, take_option, &s);
    if (code < 0 && !set_levels(&s)) code = CLI_USAGE;
    if (code < 0 && !s.model.model) code = cli_args_missing(args, "model");
    if (code < 0) code = cli_open_model(&s.model, &model);
    if (model) code = diff(&s, model);
    sn_model_destroy(model);
    cli_model_args_free(&s.model);
    return code;
}
