/* test_rewrite.c - every rule of the optimiser, tested from its own text: the pattern is built as a
 * model in all its variants, run as it is and with the rule alone, and compared; and it must not
 * fire where an inner value is used elsewhere. */
#include <math.h>
#include <stdlib.h>

#include "base/cpu.h"
#include "model/model.h"
#include "rule_sample.h"
#include "sink.h"

enum { MOST_VARIANTS = 128, MOST_OUTPUTS = 4, MOST_NAMES = 1024 };

/* Everything but one rule. */
static size_t all_but(const char *rule, const char **names) {
    size_t n = 0;
    const char *name;
    for (size_t i = 0; (name = sni_opt_name(i)) != NULL; i++)
        if (strcmp(name, rule) != 0) names[n++] = name;
    assert_true(n < MOST_NAMES);
    return n;
}

static sn_session *make_session(const sample *s, sn_model *model, const char *rule) {
    const char *names[MOST_NAMES];
    sn_session_options o;
    sn_session *session;
    sn_error err;
    sn_session_options_init(&o, sizeof o);
    if (!rule) {
        o.optimize = 0;
    } else {
        o.disabled_rules = names;
        o.disabled_rule_count = all_but(rule, names);
    }
    if (sn_session_create(model, &o, &session, &err) != SN_OK)
        fail_msg("%s: %s\n%s", s->rule->rule->name, err.message, s->text);
    return session;
}

static size_t fired(const sn_session *session, const char *rule) {
    const char *name;
    size_t count;
    for (size_t i = 0; sn_session_rule(session, i, &name, &count); i++)
        if (strcmp(name, rule) == 0) return count;
    return 0;
}

static void run(sample *s, sn_session *session, sn_binding *out, size_t n_out) {
    sn_binding in[SAMPLE_INPUTS];
    sn_error err;
    uint64_t random = 7;
    for (int i = 0; i < s->n_inputs; i++) {
        const sample_input *d = &s->input[i];
        in[i].name = d->name;
        assert_int_equal(sn_tensor_create(d->dtype, d->rank, d->dims, &in[i].value, &err), SN_OK);
        if (d->dtype != SN_FLOAT32) {
            unsigned char *b = sn_tensor_data(in[i].value);
            for (size_t k = 0; k < sn_tensor_count(in[i].value); k++)
                b[k] = (unsigned char)(unit_random(&random) % 256);
            continue;
        }
        float *v = sn_tensor_data(in[i].value);
        for (size_t k = 0; k < sn_tensor_count(in[i].value); k++) {
            v[k] = (float)(unit_random(&random) % 6001) / 1000.0f - 3;
            if (d->positive) v[k] = fabsf(v[k]) / 2 + 0.5f;
        }
    }
    if (sn_session_run(session, NULL, in, (size_t)s->n_inputs, out, n_out, &err) != SN_OK)
        fail_msg("%s: %s\n%s", s->rule->rule->name, err.message, s->text);
    for (int i = 0; i < s->n_inputs; i++) sn_value_destroy(in[i].value);
}

static void compare(const sample *s, const sn_value *a, const sn_value *b) {
    assert_int_equal(sn_tensor_dtype(a), sn_tensor_dtype(b));
    assert_int_equal(sn_tensor_rank(a), sn_tensor_rank(b));
    for (int i = 0; i < sn_tensor_rank(a); i++)
        assert_int_equal(sn_tensor_dims(a)[i], sn_tensor_dims(b)[i]);
    int steps = s->rule->rule->steps;
    for (size_t i = 0; steps && sn_tensor_dtype(a) != SN_FLOAT32 && i < sn_tensor_count(a); i++) {
        bool is_signed = sn_tensor_dtype(a) == SN_INT8;
        const void *x = sn_tensor_const_data(a), *y = sn_tensor_const_data(b);
        int u = is_signed ? ((const signed char *)x)[i] : ((const unsigned char *)x)[i];
        int v = is_signed ? ((const signed char *)y)[i] : ((const unsigned char *)y)[i];
        if (abs(u - v) > steps)
            fail_msg("%s: element %zu is %d and fused %d\n%s", s->rule->rule->name, i, u, v,
                     s->text);
    }
    if (sn_tensor_dtype(a) != SN_FLOAT32) {
        if (steps) return;
        assert_memory_equal(sn_tensor_const_data(a), sn_tensor_const_data(b), sn_tensor_bytes(a));
        return;
    }
    const float *x = sn_tensor_const_data(a), *y = sn_tensor_const_data(b);
    for (size_t i = 0; i < sn_tensor_count(a); i++)
        if (!(fabsf(x[i] - y[i]) <= 2e-5f + 1e-4f * fabsf(x[i])))
            fail_msg("%s: element %zu is %g and fused %g\n%s", s->rule->rule->name, i, (double)x[i],
                     (double)y[i], s->text);
}

/* False if the model is none: rank 1 is not allowed where an operator wants a scalar, and some
 * inputs can only be left out together. */
static bool load(const sample *s, sn_model **model) {
    sn_error err;
    if (sn_model_load_text(s->text, strlen(s->text), model, &err) == SN_OK) return true;
    if (!s->wide && !s->partial) fail_msg("%s: %s\n%s", s->rule->rule->name, err.message, s->text);
    return false;
}

static bool check_variant(sample *s) {
    const char *rule = s->rule->rule->name;
    sn_model *model;
    sn_binding plain[MOST_OUTPUTS] = {{0}}, fused[MOST_OUTPUTS] = {{0}};
    if (!load(s, &model)) return false;
    size_t n_out = sn_model_output_count(model);
    assert_true(n_out <= MOST_OUTPUTS);
    sn_session *a = make_session(s, model, NULL), *b = make_session(s, model, rule);
    bool applies = fired(b, rule) > 0;
    if (!applies && !s->wide) fail_msg("%s does not fire\n%s", rule, s->text);
    if (applies) {
        run(s, a, plain, n_out);
        run(s, b, fused, n_out);
    }
    for (size_t i = 0; applies && i < n_out; i++) {
        compare(s, plain[i].value, fused[i].value);
        sn_value_destroy(plain[i].value);
        sn_value_destroy(fused[i].value);
    }
    sn_session_destroy(a);
    sn_session_destroy(b);
    sn_model_destroy(model);
    return applies;
}

/* With an inner value as an output of the graph, the rule must leave the pattern alone. */
static void check_interior(sample *s) {
    char names[SAMPLE_NODES][16];
    int n = s->n_interior;
    memcpy(names, s->interior, sizeof names);
    for (int i = 0; i < n; i++) {
        sn_model *model;
        sample_make(s, names[i]);
        if (!load(s, &model)) continue;
        sn_session *session = make_session(s, model, s->rule->rule->name);
        if (fired(session, s->rule->rule->name))
            fail_msg("%s fires though %s is used elsewhere\n%s", s->rule->rule->name, names[i],
                     s->text);
        sn_session_destroy(session);
        sn_model_destroy(model);
    }
}

static void check_case(sample *s) {
    int variants = 0, done = 0;
    memset(s->digit, 0, sizeof s->digit);
    do {
        sample_make(s, NULL);
        if (s->impossible) continue;
        if (!check_variant(s)) continue;
        if (!done++) check_interior(s);
    } while (++variants < MOST_VARIANTS && sample_next(s));
    if (!done) fail_msg("%s was never tried", s->rule->rule->name);
}

static void every_rule_keeps_the_result(void **state) {
    (void)state;
    const sni_rule_set *set;
    sn_error err;
    const char *only = getenv("RULE");
    if (sni_rule_set_compile(&set, &err) != SN_OK) fail_msg("%s", err.message);
    sample *s = calloc(1, sizeof *s);
    assert_non_null(s);
    for (size_t i = 0; i < set->count; i++) {
        const char *text = set->rules[i].rule->sample ? set->rules[i].rule->sample : "";
        if (only && strcmp(only, set->rules[i].rule->name) != 0) continue;
        s->rule = &set->rules[i];
        for (const char *end;; text = end + 1) {
            end = text + strcspn(text, ";");
            s->spec = text;
            s->spec_n = (size_t)(end - text);
            check_case(s);
            if (!*end) break;
        }
    }
    free(s);
}

static void names_are_unique(void **state) {
    (void)state;
    const char *a, *b;
    for (size_t i = 0; (a = sni_opt_name(i)) != NULL; i++)
        for (size_t k = 0; k < i && (b = sni_opt_name(k)) != NULL; k++)
            assert_string_not_equal(a, b);
}

static void unknown_names_are_refused(void **state) {
    (void)state;
    const char text[] = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1] X) => (float[1] Y) "
                        "{ Y = Relu(X) }";
    const char *name = "gelu-erf-half-lost";
    sn_session_options o;
    sn_model *model;
    sn_session *session;
    sn_error err;
    assert_int_equal(sn_model_load_text(text, strlen(text), &model, &err), SN_OK);
    sn_session_options_init(&o, sizeof o);
    o.disabled_rules = &name;
    o.disabled_rule_count = 1;
    assert_int_equal(sn_session_create(model, &o, &session, &err), SN_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "gelu-erf-half-last"));
    sn_model_destroy(model);
}

/* Every rule stands in docs/OPTIMISER.md, whose tables `test_rewrite --markdown` prints. */
static void rules_are_documented(void **state) {
    (void)state;
    FILE *f = fopen(SINTER_SOURCE_DIR "/docs/OPTIMISER.md", "rb");
    static char text[1 << 18];
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = 0;
    const char *name;
    for (size_t i = 0; (name = sni_opt_name(i)) != NULL; i++) {
        char cell[80];
        snprintf(cell, sizeof cell, "| `%s` |", name);
        if (!strstr(text, cell)) fail_msg("docs/OPTIMISER.md does not have %s", name);
    }
}

enum { WIDTH = 96 }; /* the joined weights are more than what passes look into */

/* Attention over three products of one input, with weights (WIDTH, WIDTH). */
static char *attention_text(void) {
    char *text = malloc(3 * WIDTH * WIDTH * 4 + 1024), *at = text;
    assert_non_null(text);
    at += sprintf(at,
                  "<ir_version: 8, opset_import: [\"\" : 23]> g (float[1,S,%d] X) => "
                  "(float[1,S,%d] Y) <",
                  WIDTH, WIDTH);
    for (int i = 0; i < 3; i++) {
        at += sprintf(at, "%sfloat[%d,%d] w%d = {", i ? ", " : "", WIDTH, WIDTH, i);
        for (int k = 0; k < WIDTH * WIDTH; k++)
            at += sprintf(at, "%s%d", k ? "," : "", (k * 7 + i) % 10);
        at += sprintf(at, "}");
    }
    sprintf(at, "> { q = MatMul(X, w0) k = MatMul(X, w1) v = MatMul(X, w2) "
                "Y = Attention<q_num_heads = 4, kv_num_heads = 4>(q, k, v) }");
    return text;
}

/* Weights that are joined are put together when somebody asks for them, row by row. */
static void joined_weights_wait(void **state) {
    (void)state;
    char *text = attention_text();
    sni_model *model;
    sn_error err = {0};
    sni_opt_report report;
    if (sni_model_import_text(text, strlen(text), &model, &err) != SN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sni_optimize(model->graph, &(sni_opt_options){.level = 2}, &report, &err),
                     SN_OK);
    sni_const *joined = NULL;
    const sni_graph *g = model->graph;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        if (sni_str_is(n->type, "Linear")) joined = g->values[n->in[1]]->constant;
    assert_non_null(joined);
    assert_int_equal(joined->tensor.dims[1], 3 * WIDTH);
    assert_null(joined->tensor.data);
    for (int kept = 0; kept < 2; kept++) {
        sni_borrow borrow = {0};
        const sni_tensor *t = &borrow.tensor;
        if (kept)
            assert_int_equal(sni_const_load(joined, &t, &err), SN_OK);
        else
            assert_int_equal(sni_const_borrow(joined, true, &borrow, &err), SN_OK);
        const float *w = t->data;
        for (int r = 0; r < WIDTH; r++)
            for (int c = 0; c < 3 * WIDTH; c++)
                assert_float_equal(w[r * 3 * WIDTH + c],
                                   (float)(((r * WIDTH + c % WIDTH) * 7 + c / WIDTH) % 10), 0);
        if (!kept) sni_borrow_end(&borrow);
        assert_true((joined->tensor.data != NULL) == (kept == 1));
    }
    sni_model_free(model);
    free(text);
}

/* ---- Slices beside causal convolutions ---- */

enum { CAUSAL_LENGTH = 7, CAUSAL_CHANNELS = 2 };

/* Bodies of a convolution with two zeros at each end and a slice of its last axis. */
static const char *const sliced_bodies[] = {
    "c = Conv<pads = [2, 2]>(x, w) y = Slice(c, from, to, axis, step)",
    "c = Conv<pads = [2, 2]>(x, w) d = Relu(c) y = Slice(d, from, to, axis, step)",
    "c = Slice(x, from, to, axis, step) y = Conv<pads = [2, 2]>(c, w)"};

static sn_model *load_sliced(const char *body, bool known, int64_t from, int64_t to, int step) {
    char text[1024];
    sn_model *model;
    sn_error err;
    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,2,%s] x) => (float[1,2,L] y) "
             "<float[2,2,3] w = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12}, int64[1] from = "
             "{%lld}, int64[1] to = {%lld}, int64[1] axis = {2}, int64[1] step = {%d}> { %s }",
             known ? "7" : "T", (long long)from, (long long)to, step, body);
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK)
        fail_msg("%s\n%s", err.message, text);
    return model;
}

/* The result at an optimisation level. *cropped: how often the slice was taken into the
 * convolution. */
static sn_value *run_sliced(const sn_model *model, int level, size_t *cropped) {
    sn_session_options o;
    sn_session *session;
    sn_error err;
    sn_session_options_init(&o, sizeof o);
    o.optimize = level;
    if (sn_session_create(model, &o, &session, &err) != SN_OK) fail_msg("%s", err.message);
    sn_binding in = {.name = "x"}, out = {.name = "y"};
    const int64_t dims[] = {1, CAUSAL_CHANNELS, CAUSAL_LENGTH};
    assert_int_equal(sn_tensor_create(SN_FLOAT32, 3, dims, &in.value, &err), SN_OK);
    float *x = sn_tensor_data(in.value);
    for (int i = 0; i < CAUSAL_CHANNELS * CAUSAL_LENGTH; i++) x[i] = (float)(i * i % 11);
    *cropped = fired(session, "conv-slice") + fired(session, "fused-conv-slice");
    if (sn_session_run(session, NULL, &in, 1, &out, 1, &err) != SN_OK) fail_msg("%s", err.message);
    sn_value_destroy(in.value);
    sn_session_destroy(session);
    return out.value;
}

/* Optimised or not, the same shape and numbers (small integers, so exactly). Returns how often the
 * optimiser took the slice into the convolution. */
static size_t check_sliced(const char *body, bool known, int64_t from, int64_t to, int step) {
    size_t none, cropped;
    sn_model *model = load_sliced(body, known, from, to, step);
    sn_value *want = run_sliced(model, 0, &none), *got = run_sliced(model, 3, &cropped);
    const float *a = sn_tensor_const_data(want), *b = sn_tensor_const_data(got);
    bool same = !none;
    for (int i = 0; i < 3; i++) same &= sn_tensor_dims(want)[i] == sn_tensor_dims(got)[i];
    for (size_t i = 0; same && i < sn_tensor_count(want); i++) same = a[i] == b[i];
    if (!same)
        fail_msg("%s from %lld to %lld by %d, %s length", body, (long long)from, (long long)to,
                 step, known ? "known" : "free");
    sn_value_destroy(want);
    sn_value_destroy(got);
    sn_model_destroy(model);
    return cropped;
}

/* Wherever a slice beside a causal convolution begins and ends, out of range too. */
static void slices_of_any_range(void **state) {
    (void)state;
    static const int64_t starts[] = {INT64_MIN, INT64_MIN + 1, -9, -1, 0, 2, 3, INT64_MAX};
    static const int64_t ends[] = {
        INT64_MIN, INT64_MIN + 1, INT32_MIN - 1LL, INT32_MIN, -INT32_MAX, -9, -3, -2, -1, 0, 1, 8,
        9,         INT32_MAX,     INT32_MAX + 1LL, INT64_MAX};
    size_t cropped = 0;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
            for (int body = 0; body < 3; body++)
                for (int form = 0; form < 4; form++)
                    cropped += check_sliced(sliced_bodies[body], form & 1, starts[i], ends[k],
                                            form & 2 ? -1 : 1);
    assert_true(cropped > 0);
    for (int body = 0; body < 2; body++) {
        assert_int_equal(check_sliced(sliced_bodies[body], false, 2, INT64_MAX, 1), 1);
        assert_int_equal(check_sliced(sliced_bodies[body], false, 0, -2, 1), 1);
        assert_int_equal(check_sliced(sliced_bodies[body], true, 0, INT64_MIN, 1), 0);
    }
}

/* A wide convolution and a dense layer, with weights that are computed. */
static const char layers_text[] =
    "<ir_version: 8, opset_import: [\"\" : 18]> g (float[1,64,28,28] x, float[128,256] u) => "
    "(float[1,64,28,28] y, float[128,256] z) <int64 zero = {0}, int64 one = {1}, "
    "int64 n2 = {36864}, int64 n3 = {65536}, int64[4] s2 = {64,64,3,3}, int64[2] s3 = {256,256}> { "
    "r2 = Range(zero, n2, one) f2 = Cast<to = 1>(r2) g2 = Sin(f2) w2 = Reshape(g2, s2) "
    "r3 = Range(zero, n3, one) f3 = Cast<to = 1>(r3) g3 = Sin(f3) w3 = Reshape(g3, s3) "
    "y = Conv<pads = [1,1,1,1]>(x, w2) e = Gemm(u, w3) z = Relu(e) }";

static void run_layers(sn_session *session) {
    sn_error err;
    sn_binding in[2] = {{.name = "x"}, {.name = "u"}}, out[2] = {{.name = "y"}, {.name = "z"}};
    assert_int_equal(
        sn_tensor_create(SN_FLOAT32, 4, (int64_t[]){1, 64, 28, 28}, &in[0].value, &err), SN_OK);
    assert_int_equal(sn_tensor_create(SN_FLOAT32, 2, (int64_t[]){128, 256}, &in[1].value, &err),
                     SN_OK);
    for (int i = 0; i < 2; i++) {
        float *p = sn_tensor_data(in[i].value);
        for (size_t k = 0; k < sn_tensor_count(in[i].value); k++) p[k] = (float)(k % 7);
    }
    if (sn_session_run(session, NULL, in, 2, out, 2, &err) != SN_OK) fail_msg("%s", err.message);
    for (int i = 0; i < 2; i++) {
        sn_value_destroy(in[i].value);
        sn_value_destroy(out[i].value);
    }
}

static void count_warnings(void *ctx, sn_log_level level, const char *text) {
    if (level == SN_LOG_WARNING && strstr(text, "old name")) ++*(int *)ctx;
}

/* How many nodes of a run use a family of numerics where these names are left out. */
static size_t used(sn_model *model, const char *family, const char *const *left_out, size_t count) {
    sn_session_options o;
    sn_session *session;
    sn_error err;
    int warnings = 0, old = 0;
    sn_session_options_init(&o, sizeof o);
    o.disabled_rules = left_out;
    o.disabled_rule_count = count;
    o.log = count_warnings;
    o.log_ctx = &warnings;
    if (sn_session_create(model, &o, &session, &err) != SN_OK) fail_msg("%s", err.message);
    assert_int_equal(fired(session, family), 0); /* nothing has run */
    run_layers(session);
    size_t uses = fired(session, family);
    for (size_t i = 0; i < count; i++)
        old += strcmp(left_out[i], "paired") == 0 || strcmp(left_out[i], "digits") == 0;
    assert_int_equal(warnings, old);
    sn_session_destroy(session);
    return uses;
}

/* What rounds otherwise than plain sums is counted where it is used, and can be left out under its
 * name or the one that it had. */
static void families_can_be_left_out(void **state) {
    (void)state;
    static const char *const names[] = {"winograd", "strassen", "inner-product", "emulated-gemm"};
    static const char *const old[] = {"paired", "digits"};
    static const char *const others[] = {"winograd", "inner-product", "emulated-gemm"};
    sn_model *model;
    sn_error err;
    bool vectors = sni_cpu_isa() >= SNI_ISA_AVX2;
    if (sn_model_load_text(layers_text, strlen(layers_text), &model, &err) != SN_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < 4; i++) assert_int_equal(used(model, names[i], &names[i], 1), 0);
    for (int i = 0; i < 2; i++) assert_int_equal(used(model, names[2 + i], &old[i], 1), 0);
    assert_int_equal(used(model, "strassen", others, 3), 1);
    assert_int_equal(used(model, "winograd", NULL, 0), vectors);
    sn_model_destroy(model);
}

/* Files of earlier versions say on nodes how they may be computed. */
static void old_attributes_are_ignored(void **state) {
    (void)state;
    static const char text_of_old[] =
        "<ir_version: 8, opset_import: [\"\" : 18, \"ai.sinter\" : 1]> g (float[2,4] x) => "
        "(float[2,4] y) <float[4,4] w = {1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,1}> "
        "{ y = ai.sinter.Linear<strassen = 1, paired = 1, digits = 1>(x, w) }";
    sn_model *model = NULL;
    sn_session *session = NULL;
    sn_error err;
    if (sn_model_load_text(text_of_old, strlen(text_of_old), &model, &err) != SN_OK ||
        sn_session_create(model, NULL, &session, &err) != SN_OK)
        fail_msg("%s", err.message);
    sn_session_destroy(session);
    sn_model_destroy(model);
}

static void print_cell(const char *text) {
    putchar('`');
    for (; *text; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
    printf("` |");
}

static int print_tables(void) {
    for (const sni_rule_table *t = sni_rule_tables; t->rules; t++) {
        printf("\n### %s\n\n| rule | pattern | becomes |\n|---|---|---|\n", t->theme);
        for (const sni_rule *r = t->rules; r->name; r++) {
            printf("| `%s` | ", r->name);
            print_cell(r->pattern);
            putchar(' ');
            print_cell(r->replacement);
            putchar('\n');
        }
    }
    return 0;
}

int main(int count, char **args) {
    if (count > 1 && strcmp(args[1], "--markdown") == 0) return print_tables();
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_rule_keeps_the_result),
                                       cmocka_unit_test(names_are_unique),
                                       cmocka_unit_test(rules_are_documented),
                                       cmocka_unit_test(unknown_names_are_refused),
                                       cmocka_unit_test(joined_weights_wait),
                                       cmocka_unit_test(slices_of_any_range),
                                       cmocka_unit_test(families_can_be_left_out),
                                       cmocka_unit_test(old_attributes_are_ignored)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
