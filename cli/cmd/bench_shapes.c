/* bench_shapes.c - sinter bench --shapes: a list of shapes in rotation, the cost of each when it is
 * seen first and later. */
#include "cli/cmd/bench_shapes.h"
#include "cli/formats/json_write.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SHAPES = 4096, MAX_SYMBOLS = 8 };

/* One shape: values of named dimensions. */
typedef struct shape {
    char *text; /* "N=1,T=16"; owned: the symbols point into it */
    cli_shape_arg symbols[MAX_SYMBOLS];
    size_t count;
    double first_ms, least_ms, total_ms;
    size_t runs; /* after the first */
} shape;

typedef struct rotation {
    shape *shapes;
    size_t count;
} rotation;

/* ---- The list ----------------------------------------------------------------------------- */

/* "N=1,T=16" into symbols; false when it is no such thing. */
static bool read_symbols(shape *s) {
    char *rest = s->text;
    for (char *part; (part = strsep(&rest, ",")) != NULL;) {
        char *equals = strrchr(part, '=');
        int64_t dim;
        if (!equals || equals == part || s->count == MAX_SYMBOLS ||
            !cli_parse_int(equals + 1, &dim) || dim < 0)
            return false;
        s->symbols[s->count++] = (cli_shape_arg){
            .text = part, .name_length = (size_t)(equals - part), .rank = 1, .dims = {dim}};
    }
    return s->count > 0;
}

static bool add_shape(rotation *r, const char *text) {
    if (r->count == MAX_SHAPES) return false;
    shape *s = &r->shapes[r->count++];
    s->text = cli_strdup(text);
    return read_symbols(s);
}

/* An entry, "N=1,T=16" or "T=1..512" for one shape each. */
static bool add_entry(rotation *r, const char *entry) {
    const char *dots = strstr(entry, "..");
    if (!dots) return add_shape(r, entry);
    const char *equals = memchr(entry, '=', (size_t)(dots - entry));
    int64_t low, high;
    char number[24];
    if (!equals || dots - equals > 20) return false;
    snprintf(number, sizeof number, "%.*s", (int)(dots - equals - 1), equals + 1);
    if (!cli_parse_int(number, &low) || !cli_parse_int(dots + 2, &high) || low < 0 || high < low)
        return false;
    bool ok = true;
    for (int64_t v = low; v <= high && ok; v++) {
        cli_text one = {0};
        cli_text_add(&one, entry, (size_t)(equals - entry));
        cli_text_addf(&one, "=%lld", (long long)v);
        ok = add_shape(r, one.data);
        cli_text_free(&one);
    }
    return ok;
}

static bool read_list(rotation *r, const char *list) {
    char *copy = cli_strdup(list), *rest = copy;
    bool ok = true;
    r->shapes = cli_alloc(MAX_SHAPES, sizeof *r->shapes);
    for (char *entry; ok && (entry = strsep(&rest, "; ")) != NULL;)
        if (entry[0]) ok = add_entry(r, entry);
    free(copy);
    return ok && r->count > 0;
}

static void rotation_free(rotation *r) {
    for (size_t i = 0; i < r->count; i++) free(r->shapes[i].text);
    free(r->shapes);
}

/* ---- Measuring ---------------------------------------------------------------------------- */

static sn_status run_shape(const cli_model_args *m, const cli_loaded *l, shape *s, sn_error *err) {
    cli_model_args with = *m;
    cli_inputs inputs = {0}, outputs = {0};
    with.symbols = s->symbols;
    with.symbol_count = s->count;
    sn_status status = cli_inputs_make(&with, l->model, &inputs, err);
    if (status == SN_OK) status = cli_outputs_make(l->model, &outputs, err);
    double start = cli_now_ms();
    if (status == SN_OK)
        status = sn_session_run(l->session, NULL, inputs.items, inputs.count, outputs.items,
                                outputs.count, err);
    double ms = cli_now_ms() - start;
    if (s->first_ms == 0) {
        s->first_ms = ms;
    } else {
        s->total_ms += ms;
        if (!s->runs || ms < s->least_ms) s->least_ms = ms;
        s->runs++;
    }
    cli_inputs_free(&inputs);
    cli_inputs_free(&outputs);
    return status;
}

/* A walk through all shapes in an order that differs from round to round, the same every time. */
static size_t shuffled(size_t i, size_t round, size_t count) {
    size_t step = 1 + round * 7919 % count;
    for (;; step++) { /* a step without a common divisor visits each once */
        size_t a = step, b = count;
        while (b) {
            size_t c = a % b;
            a = b;
            b = c;
        }
        if (a == 1) return (i * step + round) % count;
    }
}

/* ---- Showing ------------------------------------------------------------------------------ */

static void show_text(const rotation *r, uint64_t memory) {
    cli_text out = {0};
    cli_text_addf(&out, "  %-28s %12s %12s %12s %12s\n", "shape", "first ms", "mean ms", "min ms",
                  "first - min");
    for (size_t i = 0; i < r->count; i++) {
        const shape *s = &r->shapes[i];
        cli_text name = {0};
        for (size_t k = 0; k < s->count; k++) {
            cli_text_addf(&name, "%s", k ? "," : "");
            cli_text_add_name(&name, s->symbols[k].text);
        }
        cli_text_addf(&out, "  %-28s %12.3f %12.3f %12.3f %12.3f\n", cli_text_str(&name),
                      s->first_ms, s->total_ms / (double)s->runs, s->least_ms,
                      s->first_ms - s->least_ms);
        cli_text_free(&name);
    }
    cli_text_addf(&out, "  memory now ");
    cli_text_add_bytes(&out, memory);
    cli_text_addf(&out, "\n");
    cli_text_print(&out);
    cli_text_free(&out);
}

static void show_json(const rotation *r, uint64_t memory) {
    cli_text out = {0};
    cli_json json = {.out = &out};
    cli_json_begin(&json, '{');
    cli_json_key(&json, "shapes");
    cli_json_begin(&json, '[');
    for (size_t i = 0; i < r->count; i++) {
        const shape *s = &r->shapes[i];
        cli_json_begin(&json, '{');
        for (size_t k = 0; k < s->count; k++) {
            cli_text name = {0};
            cli_text_add(&name, s->symbols[k].text, s->symbols[k].name_length);
            cli_json_key(&json, cli_text_str(&name));
            cli_json_integer(&json, s->symbols[k].dims[0]);
            cli_text_free(&name);
        }
        cli_json_key(&json, "first_ms");
        cli_json_number(&json, s->first_ms);
        cli_json_key(&json, "mean_ms");
        cli_json_number(&json, s->total_ms / (double)s->runs);
        cli_json_key(&json, "min_ms");
        cli_json_number(&json, s->least_ms);
        cli_json_end(&json, '}');
    }
    cli_json_end(&json, ']');
    cli_json_key(&json, "memory_bytes");
    cli_json_unsigned(&json, memory);
    cli_json_end(&json, '}');
    cli_text_print(&out);
    cli_text_free(&out);
}

int cli_bench_shapes(const cli_model_args *m, const char *list, int64_t rounds, bool as_json) {
    rotation r = {0};
    cli_loaded l = {0};
    sn_error err = {0};
    int code = CLI_USAGE;
    sn_status status = SN_OK;
    if (!read_list(&r, list))
        cli_complain(
            "bench: --shapes wants \"T=16;T=32\", \"N=1,T=8;N=4,T=8\" or \"T=1..64\", not '%s'",
            list);
    else
        code = cli_load(m, &l);
    for (int64_t round = 0; code == CLI_OK && round <= rounds; round++)
        for (size_t i = 0; i < r.count && status == SN_OK; i++)
            status = run_shape(m, &l, &r.shapes[shuffled(i, (size_t)round, r.count)], &err);
    if (status != SN_OK)
        code = cli_complain_error("bench", &err,
                                  status == SN_INVALID_ARGUMENT ? CLI_USAGE : CLI_RUN_FAILED);
    if (code == CLI_OK) (as_json ? show_json : show_text)(&r, cli_process_bytes("VmRSS"));
    cli_loaded_free(&l);
    rotation_free(&r);
    return code;
}
