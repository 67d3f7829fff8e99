/* test_cpu_group.c - random expressions of elementwise operators, grouped and not: the same bits,
 * with 1 thread and with 2, and what the reference kernel of Group says. */
#include "unit.h"

#include "sinter.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_RANK = 4, MOST_VALUES = 40, MOST_INPUTS = 6, MOST_OUTPUTS = 3 };

typedef struct value {
    char name[8];
    sn_dtype dtype;
    int rank;
    int64_t dims[MOST_RANK];
} value;

typedef struct expression {
    uint64_t seed;
    value values[MOST_VALUES];
    int count, n_in;
    int out[MOST_OUTPUTS], n_out;
    int64_t dims[MOST_RANK]; /* of the largest */
    int rank;
    bool symbolic; /* dimensions are names in the model */
    int special;   /* one in so many numbers is NaN or infinite; 0: none */
    int reduced;   /* the value that a reduction makes; 0: none */
    char axes[64]; /* of it, as a constant */
    char nodes[4096];
} expression;

static uint32_t below(expression *e, uint32_t n) {
    return unit_random(&e->seed) % n;
}

/* ---- Making one ---- */

static value *new_value(expression *e, sn_dtype dtype) {
    value *v = &e->values[e->count];
    snprintf(v->name, sizeof v->name, "v%d", e->count++);
    v->dtype = dtype;
    v->rank = 0;
    return v;
}

/* Lets v have the shape that it has broadcast with another value. */
static void broadcast(value *v, const value *with) {
    int64_t dims[MOST_RANK];
    int rank = v->rank > with->rank ? v->rank : with->rank;
    for (int i = 0; i < rank; i++) {
        int a = i - (rank - v->rank), b = i - (rank - with->rank);
        int64_t x = a < 0 ? 1 : v->dims[a], y = b < 0 ? 1 : with->dims[b];
        dims[i] = x == 1 ? y : x;
    }
    v->rank = rank;
    memcpy(v->dims, dims, sizeof dims);
}

static void choose_shape(expression *e) {
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 31, 33, 65, 130, 700};
    int64_t count = 1;
    e->rank = 1 + (int)below(e, MOST_RANK);
    for (int i = 0; i < e->rank; i++) {
        do {
            e->dims[i] = sizes[below(e, sizeof sizes / sizeof *sizes)];
        } while (count * e->dims[i] > 60000);
        count *= e->dims[i];
    }
    if (below(e, 40) == 0) e->dims[below(e, (uint32_t)e->rank)] = 0;
}

/* The first input has the whole shape; others lack leading axes or are 1 along some. */
static void make_inputs(expression *e) {
    static const sn_dtype types[] = {SN_FLOAT32, SN_FLOAT32, SN_FLOAT32,
                                     SN_BOOL,    SN_INT32,   SN_INT64};
    e->n_in = 2 + (int)below(e, MOST_INPUTS - 1);
    for (int i = 0; i < e->n_in; i++) {
        value *v = new_value(e, i ? types[below(e, 6)] : SN_FLOAT32);
        int lead = i && below(e, 2) ? (int)below(e, (uint32_t)e->rank + 1) : 0;
        for (int axis = lead; axis < e->rank; axis++)
            v->dims[v->rank++] = i && below(e, 3) == 0 ? 1 : e->dims[axis];
    }
}

/* A value of a type, or, of floats, a number now and then; the shape of `y` grows by it. */
static const char *operand(expression *e, sn_dtype dtype, value *y, char *text) {
    int with[MOST_VALUES], n = 0;
    for (int i = 0; i < e->count; i++)
        if (e->values[i].dtype == dtype && &e->values[i] != y) with[n++] = i;
    if (dtype == SN_FLOAT32 && below(e, 6) == 0) {
        sprintf(text, "c%d", (int)below(e, 4));
        return text;
    }
    const value *v = &e->values[n > 3 && below(e, 2) ? with[n - 1] : with[below(e, (uint32_t)n)]];
    broadcast(y, v);
    return strcpy(text, v->name);
}

static bool has_type(const expression *e, sn_dtype dtype, int before) {
    for (int i = 0; i < before; i++)
        if (e->values[i].dtype == dtype) return true;
    return false;
}

static void add_one(expression *e, value *y) {
    static const char *const maps[] = {
        "Relu",      "Sigmoid",    "Tanh",
        "Erf",       "Exp",        "Log",
        "Sqrt",      "Abs",        "Neg",
        "HardSwish", "Reciprocal", "LeakyRelu<alpha = 0.3>",
        "Softplus",  "Softsign",   "HardSigmoid<alpha = 0.3, beta = 0.4>",
        "Mish",      "Gelu",       "Gelu<approximate = \"tanh\">",
        "Elu",       "Selu",       "Celu<alpha = 2.0>"};
    char a[8];
    operand(e, SN_FLOAT32, y, a);
    if (a[0] == 'c') { /* a node of constants alone is folded: that is not the matter here */
        strcpy(a, "v0");
        broadcast(y, &e->values[0]);
    }
    uint32_t which = below(e, 30);
    if (which >= 26) /* is not grouped: a value of the plan that a group may be put over, or a way
                        out of a group and back */
        unit_append(e->nodes, sizeof e->nodes, " %s = Sin(%s)", y->name, a);
    else if (which == 21)
        unit_append(e->nodes, sizeof e->nodes, " %s = Clip(%s, low, high)", y->name, a);
    else if (which == 22)
        unit_append(e->nodes, sizeof e->nodes, " %s = Clip(%s, , high)", y->name, a);
    else if (which >= 23)
        unit_append(e->nodes, sizeof e->nodes, " %s = Pow(%s, p%d)", y->name, a, (int)which - 23);
    else
        unit_append(e->nodes, sizeof e->nodes, " %s = %s(%s)", y->name, maps[which], a);
}

static void add_some(expression *e, value *y, const char *const *ops, uint32_t n, sn_dtype of) {
    char a[8], b[8], c[8];
    const char *op = ops[below(e, n)];
    operand(e, of, y, a);
    operand(e, of, y, b);
    if (a[0] == 'c' && b[0] == 'c') {
        strcpy(a, "v0");
        broadcast(y, &e->values[0]);
    }
    if (strcmp(op, "Max") == 0 && below(e, 2))
        unit_append(e->nodes, sizeof e->nodes, " %s = Max(%s, %s, %s)", y->name, a, b,
                    operand(e, of, y, c));
    else
        unit_append(e->nodes, sizeof e->nodes, " %s = %s(%s, %s)", y->name, op, a, b);
}

static void add_choice(expression *e, value *y) {
    char c[8], a[8], b[8];
    operand(e, SN_BOOL, y, c);
    operand(e, SN_FLOAT32, y, a);
    operand(e, SN_FLOAT32, y, b);
    unit_append(e->nodes, sizeof e->nodes, " %s = Where(%s, %s, %s)", y->name, c, a, b);
}

static void add_cast(expression *e, value *y, sn_dtype from) {
    char a[8];
    operand(e, from, y, a);
    if (a[0] == 'c') {
        strcpy(a, "v0");
        broadcast(y, &e->values[0]);
    }
    unit_append(e->nodes, sizeof e->nodes, " %s = Cast<to = %d>(%s)", y->name, (int)y->dtype, a);
}

static void add_node(expression *e) {
    static const char *const twos[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "PRelu"};
    static const char *const compares[] = {"Equal", "Less", "LessOrEqual", "Greater",
                                           "GreaterOrEqual"};
    static const char *const logic[] = {"And", "Or", "Xor"};
    uint32_t what = below(e, 16);
    int known = e->count;
    bool bools = has_type(e, SN_BOOL, known);
    value *y = new_value(e, SN_FLOAT32);
    if (what < 4) {
        add_one(e, y);
    } else if (what < 10) {
        add_some(e, y, twos, 8, SN_FLOAT32);
    } else if (what < 12 || !bools) {
        y->dtype = SN_BOOL;
        add_some(e, y, compares, 5, SN_FLOAT32);
    } else if (what == 12) {
        y->dtype = SN_BOOL;
        add_some(e, y, logic, 3, SN_BOOL);
    } else if (what == 13) {
        add_choice(e, y);
    } else if (what == 14) {
        y->dtype = SN_BOOL;
        add_cast(e, y, SN_FLOAT32);
    } else {
        add_cast(e, y,
                 has_type(e, SN_INT64, known)   ? SN_INT64
                 : has_type(e, SN_INT32, known) ? SN_INT32
                                                : SN_BOOL);
    }
}

/* Ends with rows of the last floats made to one number each. */
static void add_reduction(expression *e) {
    static const char *const ops[] = {"ReduceSum", "ReduceMean", "ReduceMax",       "ReduceMin",
                                      "ReduceL1",  "ReduceL2",   "ReduceSumSquare", "ReduceLogSum"};
    int from = e->count - 1;
    while (e->values[from].dtype != SN_FLOAT32) from--;
    const value *x = &e->values[from];
    if (from < e->n_in || x->rank == 0) return;
    int gone = 1 + (int)below(e, (uint32_t)x->rank), keep = (int)below(e, 2);
    bool from_end = below(e, 2);
    value *y = new_value(e, SN_FLOAT32);
    for (int i = 0; i < x->rank; i++)
        if (i < x->rank - gone || keep) y->dims[y->rank++] = i < x->rank - gone ? x->dims[i] : 1;
    unit_append(e->axes, sizeof e->axes, ", int64[%d] axes = {", gone);
    for (int i = 0; i < gone; i++)
        unit_append(e->axes, sizeof e->axes, "%s%d", i ? ", " : "",
                    from_end ? -1 - i : x->rank - gone + i);
    unit_append(e->axes, sizeof e->axes, "}");
    unit_append(e->nodes, sizeof e->nodes, " %s = %s<keepdims = %d>(%s, axes)", y->name,
                ops[below(e, sizeof ops / sizeof *ops)], keep, x->name);
    e->reduced = e->count - 1;
}

/* Lets an output be made of a value instead of being it: what the group makes is then planned. */
static void add_end(expression *e, int *out) {
    const value *x = &e->values[*out];
    if (x->dtype != SN_FLOAT32 || *out == e->reduced || below(e, 3) == 0) return;
    value *y = new_value(e, SN_FLOAT32);
    broadcast(y, x);
    unit_append(e->nodes, sizeof e->nodes, " %s = Sin(%s)", y->name, x->name);
    *out = e->count - 1;
}

static void make(expression *e) {
    int nodes = 3 + (int)below(e, 14);
    choose_shape(e);
    make_inputs(e);
    if (below(e, 2)) {
        value *y = new_value(e, SN_FLOAT32);
        broadcast(y, &e->values[0]);
        unit_append(e->nodes, sizeof e->nodes, " %s = Sin(v0)", y->name);
    }
    for (int i = 0; i < nodes; i++) add_node(e);
    if (below(e, 2)) add_reduction(e);
    e->out[e->n_out++] = e->count - 1;
    for (int i = 0; i < 2; i++) {
        int v = e->count - 1 - (int)below(e, (uint32_t)nodes);
        if (below(e, 3) == 0 && v != e->out[0] && (e->n_out == 1 || v != e->out[1]))
            e->out[e->n_out++] = v;
    }
    for (int i = 0; i < e->n_out; i++) add_end(e, &e->out[i]);
}

/* ---- As text ---- */

static bool is_reduced(const expression *e, const value *v) {
    return e->reduced && v == &e->values[e->reduced];
}

static void say_type(const expression *e, char *to, size_t size, const value *v) {
    static const char *const names[] = {
        [SN_FLOAT32] = "float", [SN_BOOL] = "bool", [SN_INT32] = "int32", [SN_INT64] = "int64"};
    unit_append(to, size, "%s%s", names[v->dtype], v->rank ? "[" : "");
    for (int i = 0; i < v->rank; i++) {
        int axis = e->rank - v->rank + i;
        unit_append(to, size, "%s", i ? "," : "");
        if (e->symbolic && !is_reduced(e, v) && v->dims[i] == e->dims[axis] && v->dims[i] != 1)
            unit_append(to, size, "D%d", axis);
        else
            unit_append(to, size, "%lld", (long long)v->dims[i]);
    }
    unit_append(to, size, "%s %s", v->rank ? "]" : "", v->name);
}

#define CONSTANTS                                                                           \
    "float c0 = {0.5}, float[1] c1 = {-1.25}, float c2 = {0}, float c3 = {3}, float low = " \
    "{-0.5}, float high = {0.75}, float p0 = {2}, float p1 = {3}, float p2 = {-1}"

/* The model; with `grouped` its nodes stand in a Group together with one that only its reference
 * kernel knows. */
static void write_text(const expression *e, bool grouped, char *text, size_t size) {
    char in[512] = "", out[512] = "", names[128] = "", made[128] = "";
    for (int i = 0; i < e->n_in; i++) {
        unit_append(in, sizeof in, "%s", i ? ", " : "");
        say_type(e, in, sizeof in, &e->values[i]);
        unit_append(names, sizeof names, "%s%s", i ? ", " : "", e->values[i].name);
    }
    for (int i = 0; i < e->n_out; i++) {
        unit_append(out, sizeof out, "%s", i ? ", " : "");
        say_type(e, out, sizeof out, &e->values[e->out[i]]);
        unit_append(made, sizeof made, "%s%s", i ? ", " : "", e->values[e->out[i]].name);
    }
    text[0] = 0;
    unit_append(
        text, size,
        "<ir_version: 10, opset_import: [\"\" : 20, \"ai.sinter\" : 1]> g (%s) => (%s) <" CONSTANTS
        "%s> {",
        in, out, e->axes);
    if (!grouped) {
        unit_append(text, size, "%s }", e->nodes);
        return;
    }
    /* Inner names are other ones than outside. */
    char inner[8192] = "";
    unit_append(inner, sizeof inner, "body = b (%s) => (%s, float[", in, out);
    for (int i = 0; i < e->rank; i++) unit_append(inner, sizeof inner, "%s?", i ? "," : "");
    unit_append(inner, sizeof inner, "] vs) <" CONSTANTS "%s> {%s vs = Sin(v0) }", e->axes,
                e->nodes);
    for (char *at = inner; *at; at++)
        if (*at == 'v' && at[1] >= '0' && at[1] <= '9') *at = 'w';
    unit_append(text, size, " %s, rest = ai.sinter.Group(%s) <%s> }", made, names, inner);
}

/* ---- Running ---- */

typedef struct results {
    sn_value *out[MOST_OUTPUTS];
    size_t groups; /* that the optimiser made */
} results;

static sn_value *make_input(expression *e, const value *v) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-40f, 3e38f};
    sn_value *x;
    sn_error err;
    assert_int_equal(sn_tensor_create(v->dtype, v->rank, v->dims, &x, &err), SN_OK);
    void *data = sn_tensor_data(x);
    for (size_t i = 0; i < sn_tensor_count(x); i++) {
        float f = (float)(int)below(e, 4001) / 1000.0f - 2.0f;
        if (e->special && below(e, (uint32_t)e->special) == 0) f = odd[below(e, 6)];
        if (v->dtype == SN_FLOAT32)
            ((float *)data)[i] = f;
        else if (v->dtype == SN_BOOL)
            ((uint8_t *)data)[i] = (uint8_t)below(e, 2);
        else if (v->dtype == SN_INT32)
            ((int32_t *)data)[i] = (int32_t)below(e, 2000001) - 1000000;
        else
            ((int64_t *)data)[i] =
                ((int64_t)below(e, 2000001) - 1000000) * ((int64_t)1 << below(e, 30));
    }
    return x;
}

static results run(const expression *e, const char *text, sn_value *const *in, int level,
                   const char *disabled, int threads) {
    results r = {.groups = 0};
    sn_model *model;
    sn_session *session;
    sn_session_options options;
    sn_binding ins[MOST_INPUTS] = {{0}}, outs[MOST_OUTPUTS] = {{0}};
    sn_error err;
    const char *name;
    size_t count;
    sn_session_options_init(&options, sizeof options);
    options.optimize = level;
    options.threads = threads;
    options.disabled_rules = &disabled;
    options.disabled_rule_count = disabled != NULL;
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK)
        fail_msg("%s\n%s", err.message, text);
    if (sn_session_create(model, &options, &session, &err) != SN_OK)
        fail_msg("%s\n%s", err.message, text);
    for (int i = 0; i < e->n_in; i++) ins[i] = (sn_binding){e->values[i].name, in[i]};
    for (int i = 0; i < e->n_out; i++) outs[i].name = e->values[e->out[i]].name;
    if (sn_session_run(session, NULL, ins, (size_t)e->n_in, outs, (size_t)e->n_out, &err) != SN_OK)
        fail_msg("%s\n%s", err.message, text);
    for (int i = 0; i < e->n_out; i++) r.out[i] = outs[i].value;
    for (size_t i = 0; sn_session_rule(session, i, &name, &count); i++)
        if (strcmp(name, "elementwise-group") == 0) r.groups = count;
    sn_session_destroy(session);
    sn_model_destroy(model);
    return r;
}

static bool close_to(float a, float b, double tolerance) {
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b || fabs((double)a - (double)b) <= tolerance * fmax(1, fabs((double)b));
}

/* `sums` is the tolerance for results of a reduction. */
static void compare(const expression *e, const results *got, const results *want, double tolerance,
                    double sums, const char *what, const char *text) {
    for (int o = 0; o < e->n_out; o++) {
        const void *a = sn_tensor_const_data(got->out[o]), *b = sn_tensor_const_data(want->out[o]);
        size_t n = sn_tensor_count(want->out[o]);
        assert_int_equal(sn_tensor_count(got->out[o]), n);
        for (size_t i = 0; i < n; i++) {
            bool floats = e->values[e->out[o]].dtype == SN_FLOAT32;
            double most = is_reduced(e, &e->values[e->out[o]]) ? sums : tolerance;
            bool same = floats ? close_to(((const float *)a)[i], ((const float *)b)[i], most)
                               : ((const uint8_t *)a)[i] == ((const uint8_t *)b)[i];
            if (same) continue;
            fail_msg("%s: element %zu of output %d is %.9g, not %.9g\n%s", what, i, o,
                     floats ? (double)((const float *)a)[i] : (double)((const uint8_t *)a)[i],
                     floats ? (double)((const float *)b)[i] : (double)((const uint8_t *)b)[i],
                     text);
        }
    }
}

static void release(results *r, int n) {
    for (int i = 0; i < n; i++) sn_value_destroy(r->out[i]);
}

/* Grouped against not grouped; returns how many groups there were. */
static size_t check(uint64_t seed) {
    static char text[16384], body[16384];
    expression e = {.seed = seed * 0x9e3779b97f4a7c15u + 1};
    sn_value *in[MOST_INPUTS];
    e.symbolic = below(&e, 2);
    e.special = below(&e, 2) ? 9 : 0;
    make(&e);
    write_text(&e, false, text, sizeof text);
    for (int i = 0; i < e.n_in; i++) in[i] = make_input(&e, &e.values[i]);
    results one = run(&e, text, in, 3, NULL, 1), two = run(&e, text, in, 3, NULL, 2);
    results apart = run(&e, text, in, 3, "elementwise-group", 1);
    compare(&e, &one, &apart, 0, 1e-6, "grouped", text);
    compare(&e, &two, &one, 0, 0, "two threads", text);
    size_t groups = one.groups;
    if (!groups) assert_int_equal(apart.groups, 0);
    write_text(&e, true, body, sizeof body);
    results whole = run(&e, body, in, 0, NULL, 1);
    compare(&e, &whole, &apart, 1e-3, 1e-3, "reference", body);
    release(&whole, e.n_out);
    release(&one, e.n_out);
    release(&two, e.n_out);
    release(&apart, e.n_out);
    for (int i = 0; i < e.n_in; i++) sn_value_destroy(in[i]);
    return groups;
}

static void random_expressions(void **state) {
    (void)state;
    enum { COUNT = 600 };
    size_t with_groups = 0;
    for (uint64_t seed = 0; seed < COUNT; seed++) with_groups += check(seed) > 0;
    if (with_groups < COUNT * 3 / 4)
        fail_msg("only %zu of %d expressions were grouped", with_groups, COUNT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_expressions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
