/* test_decompositions.c - operators as exporters spell them out (torch.onnx.export at opsets 9 to
 * 20, converters of TensorFlow and Keras): what is left of them after optimising, with the same
 * numbers.
 *
 * In a text, {0.5} is a constant of one number, {int64 2,3} a list, {rand 6,1} random numbers,
 * {plus 6} positive ones, {fill 6 1} six times the number 1, {=1} what stands there in braces. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit.h"

#include "sinter.h"

enum { TEXT = 1 << 16, MOST_INPUTS = 4, MOST_OPS = 16 };

/* ---- Models ---- */

typedef struct text {
    char constants[TEXT / 2], body[TEXT / 4], all[TEXT];
    int serial;
    uint64_t random;
} text;

#define ADD(field, ...) unit_append(field, sizeof field, __VA_ARGS__)

/* A float constant of dimensions "6,1,1" with random numbers, or all `fill`. */
static void add_floats(text *t, const char *dims, size_t n, bool positive, const double *fill) {
    int64_t count = 1;
    for (const char *p = dims; p < dims + n; p += strcspn(p, ",") + 1) count *= strtol(p, NULL, 10);
    ADD(t->constants, "float[%.*s] k%d = {", (int)n, dims, t->serial);
    for (int64_t i = 0; i < count; i++) {
        double v = (double)(unit_random(&t->random) % 2001) / 1000 - 1;
        if (positive) v = fabs(v) + 0.5;
        ADD(t->constants, "%s%.4g", i ? ", " : "", fill ? *fill : v);
    }
    ADD(t->constants, "}");
}

/* The constant of "{...}" without its braces. */
static void add_constant(text *t, const char *spec, size_t n) {
    double fill;
    t->serial++;
    ADD(t->constants, "%s", t->constants[0] ? ",\n" : "");
    if (strncmp(spec, "int64 ", 6) == 0) {
        int count = 1;
        for (size_t i = 6; i < n; i++) count += spec[i] == ',';
        ADD(t->constants, "int64[%d] k%d = {%.*s}", count, t->serial, (int)n - 6, spec + 6);
    } else if (strncmp(spec, "rand ", 5) == 0 || strncmp(spec, "plus ", 5) == 0) {
        add_floats(t, spec + 5, n - 5, spec[0] == 'p', NULL);
    } else if (strncmp(spec, "fill ", 5) == 0) {
        size_t dims = strcspn(spec + 5, " ");
        fill = strtod(spec + 5 + dims, NULL);
        add_floats(t, spec + 5, dims, false, &fill);
    } else {
        ADD(t->constants, "float k%d = {%.*s}", t->serial, (int)n, spec);
    }
}

static void add_body(text *t, const char *from) {
    for (const char *p = from; *p;) {
        size_t n = strcspn(p, "{");
        ADD(t->body, "%.*s", (int)n, p);
        p += n;
        if (!*p) break;
        n = strcspn(p, "}");
        assert_true(p[n]);
        if (p[1] == '=') {
            ADD(t->body, "{%.*s}", (int)n - 2, p + 2);
        } else {
            add_constant(t, p + 1, n - 1);
            ADD(t->body, "k%d", t->serial);
        }
        p += n + 1;
    }
    ADD(t->body, "\n");
}

static text *make(int opset, const char *inputs, const char *first, const char *second) {
    text *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->random = 5;
    add_body(t, first);
    add_body(t, second);
    ADD(t->all, "<ir_version: 8, opset_import: [\"\" : %d]>\ng (%s) => (y)\n<%s>\n{\n%s}\n", opset,
        inputs, t->constants, t->body);
    return t;
}

/* ---- Running ---- */

static sn_session *session_of(const sn_model *model, int level, bool plain, const char *name) {
    static const char *const off[] = {"blocked-layout", "elementwise-group"};
    sn_session_options o;
    sn_session *s;
    sn_error err;
    sn_session_options_init(&o, sizeof o);
    o.optimize = level;
    if (plain) {
        o.disabled_rules = off;
        o.disabled_rule_count = sizeof off / sizeof *off;
    }
    if (sn_session_create(model, &o, &s, &err) != SN_OK) fail_msg("%s: %s", name, err.message);
    return s;
}

/* Random numbers for every input, letters in whose shape stand for 2 and 5. */
static sn_value *run(const sn_model *model, sn_session *s, const char *name) {
    sn_binding in[MOST_INPUTS], out = {0};
    size_t n = sn_model_input_count(model);
    uint64_t random = 9;
    sn_error err;
    assert_true(n <= MOST_INPUTS);
    for (size_t i = 0; i < n; i++) {
        sn_value_info info;
        int64_t dims[SN_MAX_RANK];
        assert_int_equal(sn_model_input(model, i, &info, &err), SN_OK);
        for (int d = 0; d < info.rank; d++) dims[d] = info.dims[d] >= 0 ? info.dims[d] : d ? 5 : 2;
        in[i].name = info.name;
        assert_int_equal(sn_tensor_create(SN_FLOAT32, info.rank, dims, &in[i].value, &err), SN_OK);
        float *v = sn_tensor_data(in[i].value);
        for (size_t k = 0; k < sn_tensor_count(in[i].value); k++)
            v[k] = (float)(unit_random(&random) % 6001) / 1000.0f - 3;
    }
    if (sn_session_run(s, NULL, in, n, &out, 1, &err) != SN_OK)
        fail_msg("%s: %s", name, err.message);
    for (size_t i = 0; i < n; i++) sn_value_destroy(in[i].value);
    return out.value;
}

static void compare(const sn_value *a, const sn_value *b, const char *name) {
    assert_int_equal(sn_tensor_count(a), sn_tensor_count(b));
    const float *x = sn_tensor_const_data(a), *y = sn_tensor_const_data(b);
    for (size_t i = 0; i < sn_tensor_count(a); i++)
        if (!(fabsf(x[i] - y[i]) <= 3e-5f + 1e-4f * fabsf(x[i])))
            fail_msg("%s: element %zu is %g and optimised %g", name, i, (double)x[i], (double)y[i]);
}

/* Operators that are left, "Op=2 domain.Other=1", in the order of their names. */
static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static void operators(const sn_session *s, char *to, size_t size) {
    char names[MOST_OPS][64];
    size_t n = 0;
    sn_operator_use use;
    for (; sn_session_operator(s, n, &use); n++) {
        assert_true(n < MOST_OPS);
        snprintf(names[n], sizeof names[n], "%s%s%s=%zu", use.domain, use.domain[0] ? "." : "",
                 use.name, use.count);
    }
    qsort(names, n, sizeof *names, by_name);
    to[0] = 0;
    for (size_t i = 0; i < n; i++) unit_append(to, size, "%s%s", i ? " " : "", names[i]);
}

/* Optimises, counts and compares; returns how many complaints there are. */
static int check(text *t, const char *name, bool plain, const char *left) {
    char found[1024];
    sn_model *model;
    sn_error err;
    int bad = 0;
    if (sn_model_load_text(t->all, strlen(t->all), &model, &err) != SN_OK)
        fail_msg("%s: %s\n%s", name, err.message, t->all);
    sn_session *a = session_of(model, 0, plain, name), *b = session_of(model, 3, plain, name);
    operators(b, found, sizeof found);
    if (strcmp(found, left) != 0) {
        print_message("%s leaves %s instead of %s\n", name, found, left);
        bad = 1;
    }
    sn_value *x = run(model, a, name), *y = run(model, b, name);
    compare(x, y, name);
    sn_value_destroy(x);
    sn_value_destroy(y);
    sn_session_destroy(a);
    sn_session_destroy(b);
    sn_model_destroy(model);
    free(t);
    return bad;
}

/* ---- Activations after layers ---- */

typedef struct layer {
    const char *name, *inputs, *text; /* makes c */
    const char *left;                 /* with any activation after it */
    const char *slopes;               /* shape of one for each channel */
    bool plain;                       /* without blocked layout */
} layer;

static const layer layers[] = {
    {"Conv", "float[N,4,6,6] x", "c = Conv(x, {rand 6,4,3,3}, {rand 6})",
     "com.microsoft.FusedConv=1", "6,1,1", true},
    {"Conv of rows", "float[N,4,9] x", "c = Conv(x, {rand 6,4,3})", "com.microsoft.FusedConv=1",
     "6,1", true},
    {"blocked Conv of rows", "float[N,32,9] x", "c = Conv(x, {rand 16,32,3})",
     "ai.sinter.BlockedConv=1 ai.sinter.FromBlocked=1 ai.sinter.ToBlocked=1", "16,1", false},
    {"blocked Conv", "float[N,4,6,6] x", "c = Conv(x, {rand 6,4,3,3}, {rand 6})",
     "ai.sinter.BlockedConv=1 ai.sinter.FromBlocked=1", "6,1,1", false},
    {"ConvTranspose of few channels", "float[N,4,6,6] x",
     "c = ConvTranspose<strides = [2, 2]>(x, {rand 4,6,2,2}, {rand 6})",
     "ai.sinter.BlockedConv=1 ai.sinter.FromBlocked=1 ai.sinter.InterleavePixels=1 "
     "ai.sinter.ToBlocked=1",
     "1,6,1,1", false},
    {"ConvTranspose", "float[N,4,6,6] x",
     "c = ConvTranspose<strides = [2, 2], pads = [1, 1, 1, 1]>(x, {rand 4,16,4,4}, {rand 16})",
     "ai.sinter.BlockedConv=4 ai.sinter.FromBlocked=1 ai.sinter.InterleavePixels=1 "
     "ai.sinter.ToBlocked=1",
     "1,16,1,1", false},
    {"ConvTranspose of groups", "float[N,8,5,6] x",
     "c = ConvTranspose<group = 2, strides = [2, 2], pads = [1, 1, 1, 1]>(x, {rand 8,3,4,3}, {rand "
     "6})",
     "ai.sinter.BlockedConv=4 ai.sinter.FromBlocked=1 ai.sinter.InterleavePixels=1 "
     "ai.sinter.ToBlocked=1",
     "1,6,1,1", false},
    {"depthwise ConvTranspose", "float[N,6,5,6] x",
     "c = ConvTranspose<group = 6, strides = [2, 1], pads = [1, 1, 1, 1]>(x, {rand 6,1,4,3}, {rand "
     "6})",
     "ai.sinter.BlockedConv=2 ai.sinter.FromBlocked=1 ai.sinter.InterleavePixels=1 "
     "ai.sinter.ToBlocked=1",
     "1,6,1,1", false},
    {"Gemm", "float[N,8] x", "c = Gemm<transB = 1>(x, {rand 6,8}, {rand 6})", "ai.sinter.Linear=1",
     "6", false},
    {"MatMul", "float[N,S,8] x", "product = MatMul(x, {rand 8,6})\nc = Add({rand 6}, product)",
     "ai.sinter.Linear=1", "1,1,6", false},
};

typedef struct decomposition {
    const char *name;
    int opset;
    const char *text; /* makes y of c */
} decomposition;

#define HALF_ERF "a = Div(c, {1.4142135623730951})\ne = Erf(a)\np = Add(e, {1})\n"
#define BENT_TANH                                                                                  \
    "q = Pow(c, {3})\nw = Mul({0.044715}, q)\nr = Add(c, w)\ni = Mul({0.7978845608028654}, r)\nt " \
    "= Tanh(i)\n"                                                                                  \
    "p = Add({1}, t)\n"

static const decomposition activations[] = {
    {"Relu", 9, "y = Relu(c)"},
    {"Relu as Max", 12, "y = Max(c, {0})"},
    {"Relu as Clip", 13, "y = Clip(c, {0})"},
    {"LeakyRelu", 9, "y = LeakyRelu<alpha = 0.1>(c)"},
    {"LeakyRelu as Max", 13, "a = Mul(c, {0.2})\ny = Max(c, a)"},
    {"LeakyRelu as Max, turned", 13, "a = Mul({0.2}, c)\ny = Max(a, c)"},
    {"LeakyRelu as a Relu of each side", 13,
     "p = Relu(c)\nm = Neg(c)\nn = Relu(m)\ns = Mul(n, {0.3})\ny = Sub(p, s)"},
    {"PRelu of one slope", 9, "y = PRelu(c, {rand 1})"},
    {"Relu6 of opset 9", 9, "y = Clip<min = 0.0, max = 6.0>(c)"},
    {"Relu6 of opset 11", 11, "y = Clip(c, {0}, {6})"},
    {"Relu6 as Clip of a Relu", 11, "r = Relu(c)\ny = Clip(r, {0}, {6})"},
    {"Relu6 as Min of a Relu", 13, "r = Relu(c)\ny = Min(r, {6})"},
    {"Relu6 as Min of Max", 13, "r = Max(c, {0})\ny = Min({6}, r)"},
    {"Relu6 as Max of Min", 13, "r = Min(c, {6})\ny = Max(r, {0})"},
    {"Hardtanh", 11, "y = Clip(c, {-1}, {1})"},
    {"Hardtanh as Min of Max", 13, "r = Max(c, {-1})\ny = Min(r, {1})"},
    {"Hardtanh as Max of Min", 13, "r = Min(c, {1})\ny = Max({-1}, r)"},
    {"Sigmoid", 9, "y = Sigmoid(c)"},
    {"Sigmoid by Exp", 13, "n = Neg(c)\ne = Exp(n)\np = Add({1}, e)\ny = Div({1}, p)"},
    {"Sigmoid by Reciprocal", 13, "n = Neg(c)\ne = Exp(n)\np = Add({1}, e)\ny = Reciprocal(p)"},
    {"HardSigmoid of torch", 9, "y = HardSigmoid<alpha = 0.16666667, beta = 0.5>(c)"},
    {"HardSigmoid as a sixth of Relu6", 11,
     "a = Add(c, {3})\nk = Clip(a, {0}, {6})\ny = Div(k, {6})"},
    {"HardSigmoid of Keras", 13,
     "a = Mul({0.2}, c)\nb = Add(a, {0.5})\nm = Min(b, {1})\ny = Max(m, {0})"},
    {"HardSigmoid of Keras by Clip", 13,
     "a = Mul(c, {0.2})\nb = Add(a, {0.5})\ny = Clip(b, {0}, {1})"},
    {"HardSigmoid of Keras 3", 13,
     "a = Div(c, {6})\nb = Add(a, {0.5})\nm = Max(b, {0})\ny = Min(m, {1})"},
    {"HardSigmoid of MobileNetV3", 13,
     "a = Add({3}, c)\nr = Relu(a)\nm = Min(r, {6})\ny = Mul(m, {0.1666666716337204})"},
    {"HardSigmoid as Min of Max of a sum", 13,
     "a = Add(c, {3})\nr = Max(a, {0})\nm = Min(r, {6})\ny = Div(m, {6})"},
    {"HardSigmoid with the sum after the product", 13,
     "a = Add(c, {2.5})\nb = Mul(a, {0.2})\ny = Clip(b, {0}, {1})"},
    {"HardSwish", 14, "y = HardSwish(c)"},
    {"HardSwish of torch before 14", 11,
     "h = HardSigmoid<alpha = 0.16666667, beta = 0.5>(c)\ny = Mul(c, h)"},
    {"HardSwish as x Relu6 over 6", 11,
     "a = Add(c, {3})\nk = Clip(a, {0}, {6})\nm = Mul(c, k)\ny = Div(m, {6})"},
    {"HardSwish as x times a sixth", 11,
     "a = Add(c, {3})\nk = Clip(a, {0}, {6})\nd = Div(k, {6})\ny = Mul(c, d)"},
    {"HardSwish of Keras", 13,
     "a = Add(c, {3})\nr = Relu(a)\nm = Min(r, {6})\nh = Mul({0.16666667}, m)\ny = Mul(h, c)"},
    {"HardSwish by a sixth of x", 13,
     "a = Add(c, {3})\nk = Clip(a, {0}, {6})\nd = Mul(c, {0.16666667})\ny = Mul(d, k)"},
    {"HardSwish by x over 6", 13,
     "a = Add(c, {3})\nk = Clip(a, {0}, {6})\nd = Div(c, {6})\ny = Mul(k, d)"},
    {"SiLU", 9, "s = Sigmoid(c)\ny = Mul(c, s)"},
    {"SiLU, turned", 13, "s = Sigmoid(c)\ny = Mul(s, c)"},
    {"SiLU by division", 13, "n = Neg(c)\ne = Exp(n)\np = Add(e, {1})\ny = Div(c, p)"},
    {"SiLU with a factor of 1", 13, "b = Mul({1}, c)\ns = Sigmoid(b)\ny = Mul(c, s)"},
    {"Mish", 9, "s = Softplus(c)\nt = Tanh(s)\ny = Mul(c, t)"},
    {"Mish by Log", 13, "e = Exp(c)\np = Add(e, {1})\nl = Log(p)\nt = Tanh(l)\ny = Mul(t, c)"},
    {"Gelu of torch", 9, HALF_ERF "m = Mul(c, p)\ny = Mul(m, {0.5})"},
    {"Gelu of opset 20", 20, "y = Gelu(c)"},
    {"Gelu by tanh of opset 20", 20, "y = Gelu<approximate = \"tanh\">(c)"},
    {"Gelu of Keras", 13, HALF_ERF "h = Mul({0.5}, c)\ny = Mul(h, p)"},
    {"Gelu with half inside", 13, HALF_ERF "h = Mul({0.5}, p)\ny = Mul(c, h)"},
    {"Gelu with half of x by division", 13, HALF_ERF "h = Div(c, {2})\ny = Mul(h, p)"},
    {"Gelu by a half and half", 13,
     "a = Mul(c, {0.70710678})\ne = Erf(a)\nh = Mul(e, {0.5})\np = Add(h, {0.5})\ny = Mul(c, p)"},
    {"Gelu by erfc", 13,
     "n = Neg(c)\na = Mul(n, {0.70710678})\ne = Erf(a)\np = Sub({1}, e)\nh = Mul({0.5}, c)\ny = "
     "Mul(h, p)"},
    {"Gelu by erfc, the sign in the factor", 13,
     "a = Mul(c, {-0.70710678})\ne = Erf(a)\np = Sub({1}, e)\nh = Mul({0.5}, c)\ny = Mul(h, p)"},
    {"Gelu by tanh of Keras", 13, BENT_TANH "h = Mul({0.5}, c)\ny = Mul(h, p)"},
    {"Gelu by tanh with half inside", 13, BENT_TANH "h = Mul(p, {0.5})\ny = Mul(c, h)"},
    {"Gelu by tanh with half last", 13, BENT_TANH "m = Mul(c, p)\ny = Mul(m, {0.5})"},
    {"Gelu by tanh of torch", 13,
     "q = Mul(c, c)\nb = Mul(c, q)\nw = Mul({0.044715}, b)\nr = Add(c, w)\ni = Mul({0.79788456}, "
     "r)\nt = Tanh(i)\n"
     "p = Add(t, {1})\nh = Mul({0.5}, c)\ny = Mul(h, p)"},
    {"Gelu by tanh, fast", 13,
     "a = Mul(c, {0.7978845608})\nb = Mul({0.044715}, c)\nd = Mul(b, c)\np = Add({1}, d)\ni = "
     "Mul(a, p)\nt = Tanh(i)\n"
     "s = Add({1}, t)\nh = Mul({0.5}, c)\ny = Mul(h, s)"},
    {"Tanh", 9, "y = Tanh(c)"},
    {"Elu", 9, "y = Elu<alpha = 0.7>(c)"},
    {"Softplus", 9, "y = Softplus(c)"},
};

static void activations_become_part_of_layers(void **state) {
    (void)state;
    int bad = 0;
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
        for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
            char name[128];
            snprintf(name, sizeof name, "%s after %s", activations[i].name, layers[l].name);
            bad += check(
                make(activations[i].opset, layers[l].inputs, layers[l].text, activations[i].text),
                name, layers[l].plain, layers[l].left);
        }
    assert_int_equal(bad, 0);
}

/* Slopes by channel, as the operator and as Keras writes it. */
static void slopes_become_part_of_layers(void **state) {
    (void)state;
    static const char *const forms[] = {
        "y = PRelu(c, {rand %s})",
        "p = Relu(c)\nm = Neg(c)\nn = Relu(m)\ns = Mul({rand %s}, n)\ny = Add(p, s)",
        "p = Relu(c)\nm = Neg(c)\nn = Relu(m)\ns = Mul(n, {rand %s})\ny = Sub(p, s)"};
    int bad = 0;
    for (size_t l = 0; l < sizeof layers / sizeof *layers; l++)
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
            char name[128], end[256];
            const char *at = strstr(forms[i], "%s");
            snprintf(name, sizeof name, "slopes %zu after %s", i, layers[l].name);
            snprintf(end, sizeof end, "%.*s%s%s", (int)(at - forms[i]), forms[i], layers[l].slopes,
                     at + 2);
            bad += check(make(13, layers[l].inputs, layers[l].text, end), name, layers[l].plain,
                         layers[l].left);
        }
    assert_int_equal(bad, 0);
}

/* ---- Others ---- */

typedef struct whole {
    const char *name;
    int opset;
    const char *inputs, *text, *left;
    bool blocked; /* with blocked layout and groups */
} whole;

#define MEAN(y, x, axes) y " = ReduceMean<axes = [" axes "], keepdims = 1>(" x ")\n"
#define SQUARED(axes)    \
    MEAN("m", "x", axes) \
    "d = Sub(x, m)\nq = Mul(d, d)\n" MEAN("v", "q", axes) "e = Add(v, {0.001})\n"
#define RSQRT(axes) SQUARED(axes) "s = Sqrt(e)\nr = Reciprocal(s)\n"
#define KERAS "g = Mul(x, k)\nh = Mul(m, k)\no = Sub("

static const whole wholes[] = {
    {"LayerNorm of torch", 13, "float[N,S,8] x",
     MEAN("m", "x", "-1") "d = Sub(x, m)\nq = Pow(d, {2})\n" MEAN(
         "v", "q", "-1") "e = Add(v, {1e-5})\ns = Sqrt(e)\nn = Div(d, s)\nw = Mul(n, {rand 8})\ny "
                         "= Add(w, {rand 8})",
     "LayerNormalization=1", 0},
    {"LayerNorm with two differences", 9, "float[N,S,8] x",
     MEAN("m", "x", "-1") "d = Sub(x, m)\nd2 = Sub(x, m)\nq = Pow(d2, {2})\n" MEAN(
         "v", "q", "-1") "e = Add(v, {1e-5})\ns = Sqrt(e)\nn = Div(d, s)\nw = Mul(n, {rand 8})\ny "
                         "= Add(w, {rand 8})",
     "LayerNormalization=1", 0},
    {"LayerNorm by Pow", 13, "float[N,S,8] x",
     SQUARED("-1") "s = Pow(e, {0.5})\nn = Div(d, s)\nw = Mul(n, {rand 8})\ny = Add(w, {rand 8})",
     "LayerNormalization=1", 0},
    {"LayerNorm by the inverse Pow", 13, "float[N,S,8] x",
     SQUARED("-1") "s = Pow(e, {-0.5})\nn = Mul(d, s)\nw = Mul(n, {rand 8})\ny = Add(w, {rand 8})",
     "LayerNormalization=1", 0},
    {"LayerNorm by Reciprocal", 13, "float[N,S,8] x",
     RSQRT("2") "n = Mul(d, r)\nw = Mul({rand 8}, n)\ny = Add(w, {rand 8})", "LayerNormalization=1",
     0},
    {"LayerNorm with the scale in the reciprocal", 13, "float[N,S,8] x",
     RSQRT("2") "k = Mul(r, {rand 8})\nn = Mul(d, k)\ny = Add(n, {rand 8})", "LayerNormalization=1",
     0},
    {"LayerNorm with the scale in the difference", 13, "float[N,S,8] x",
     RSQRT("2") "k = Mul(d, {rand 8})\nn = Mul(k, r)\ny = Add(n, {rand 8})", "LayerNormalization=1",
     0},
    {"LayerNorm of Keras", 13, "float[N,S,8] x",
     RSQRT("2") "k = Mul(r, {rand 8})\n" KERAS "{rand 8}, h)\ny = Add(g, o)",
     "LayerNormalization=1", 0},
    {"LayerNorm of Keras without a scale", 13, "float[N,S,8] x",
     RSQRT("2") "g = Mul(x, r)\nh = Mul(m, r)\no = Sub({rand 8}, h)\ny = Add(g, o)",
     "LayerNormalization=1", 0},
    {"LayerNorm of Keras without scale and offset", 13, "float[N,S,8] x",
     RSQRT("2") "g = Mul(x, r)\nh = Mul(m, r)\no = Neg(h)\ny = Add(g, o)", "LayerNormalization=1",
     0},
    {"LayerNorm of Keras as a batch of rows", 13, "float[2,5,8] x",
     "b = Reshape(x, {int64 1,-1,8,1})\n" MEAN(
         "m", "b",
         "0, 2, 3") "mm = Squeeze(m, {int64 0,2,3})\nd = Sub(b, m)\nq = ReduceSumSquare<axes = [0, "
                    "2, 3], keepdims = 0>(d)\n"
                    "v = Div(q, {8})\nn = BatchNormalization<epsilon = 0.001>(b, {fill 10 1}, "
                    "{fill 10 0}, mm, v)\n"
                    "f = Reshape(n, {int64 2,5,8})\nw = Mul(f, {rand 8})\ny = Add(w, {rand 8})",
     "LayerNormalization=1", 0},
    {"LayerNorm as a norm of instances", 13, "float[N,S,8] x",
     "h = Shape(x)\nl = Slice(h, {int64 1}, {int64 2}, {int64 0})\none = ConstantOfShape<value = "
     "float[1] {=1}>(l)\n"
     "zero = ConstantOfShape<value = float[1] {=0}>(l)\nn = InstanceNormalization<epsilon = "
     "0.001>(x, one, zero)\n"
     "w = Mul(n, {rand 8})\ny = Add(w, {rand 8})",
     "LayerNormalization=1", 0},
    {"RMSNorm of torch", 13, "float[N,S,8] x",
     "q = Pow(x, {2})\n" MEAN(
         "v", "q", "-1") "e = Add(v, {1e-6})\ns = Sqrt(e)\nr = Div({1}, s)\nn = Mul(x, r)\n"
                         "y = Mul({rand 8}, n)",
     "RMSNormalization=1", 0},
    {"RMSNorm with the scale in the reciprocal", 13, "float[N,S,8] x",
     "q = Mul(x, x)\n" MEAN(
         "v", "q",
         "-1") "e = Add(v, {1e-6})\ns = Sqrt(e)\nr = Reciprocal(s)\nk = Mul(r, {rand 8})\n"
               "y = Mul(x, k)",
     "RMSNormalization=1", 0},
    {"InstanceNorm in parts", 13, "float[N,4,6,6] x",
     RSQRT("2, 3") "n = Mul(d, r)\nw = Mul(n, {rand 1,4,1,1})\ny = Add(w, {rand 1,4,1,1})",
     "InstanceNormalization=1", 0},
    {"InstanceNorm in the form of Keras", 13, "float[N,4,6,6] x",
     RSQRT("2, 3") "k = Mul(r, {rand 1,4,1,1})\n" KERAS "{rand 1,4,1,1}, h)\ny = Add(g, o)",
     "InstanceNormalization=1", 0},
    {"InstanceNorm of Keras, channels last", 13, "float[N,6,6,4] x",
     RSQRT("1, 2") "k = Mul(r, {rand 4})\n" KERAS "{rand 4}, h)\ny = Add(g, o)",
     "InstanceNormalization=1 Transpose=2", 0},
    {"GroupNorm of torch", 13, "float[2,6,4,4] x",
     "a = Reshape(x, {int64 0,3,-1})\nn = InstanceNormalization<epsilon = 0.001>(a, {fill 3 1}, "
     "{fill 3 0})\n"
     "b = Reshape(n, {int64 2,6,4,4})\nw = Mul(b, {rand 6,1,1})\ny = Add(w, {rand 6,1,1})",
     "GroupNormalization=1", 0},
    {"GroupNorm of Keras, channels last", 13, "float[2,4,4,6] z",
     "x = Reshape(z, {int64 2,4,4,3,2})\n" RSQRT(
         "1, 2, 4") "k = Mul(r, {rand 1,1,1,3,2})\n" KERAS
                    "{rand 1,1,1,3,2}, h)\nf = Add(g, o)\ny = Reshape(f, {int64 2,4,4,6})",
     "GroupNormalization=1 Transpose=2", 0},
    {"BatchNorm as product and sum", 13, "float[N,4,6,6] x",
     "c = Conv(x, {rand 6,4,3,3})\nm = Mul(c, {rand 1,6,1,1})\na = Add(m, {rand 1,6,1,1})\ny = "
     "Relu(a)",
     "com.microsoft.FusedConv=1", 0},
    {"BatchNorm in parts", 13, "float[N,4,6,6] x",
     "c = Conv(x, {rand 6,4,3,3})\nd = Sub(c, {rand 6,1,1})\nv = Add({plus 6,1,1}, {0.001})\ns = "
     "Sqrt(v)\nn = Div(d, s)\n"
     "m = Mul(n, {rand 6,1,1})\na = Add(m, {rand 6,1,1})\ny = Relu(a)",
     "com.microsoft.FusedConv=1", 0},
    {"BatchNorm after a dense layer", 13, "float[N,8] x",
     "c = MatMul(x, {rand 8,6})\nb = Add(c, {rand 6})\nm = Mul(b, {rand 6})\na = Add(m, {rand "
     "6})\ny = Relu(a)",
     "ai.sinter.Linear=1", 0},
    {"residual block with channels last", 13, "float[N,6,6,4] x",
     "a = Transpose<perm = [0, 3, 1, 2]>(x)\nb = Conv<pads = [1, 1, 1, 1]>(a, {rand 6,4,3,3})\n"
     "c = Transpose<perm = [0, 2, 3, 1]>(b)\nd = Add(c, {rand 6})\ne = Relu(d)\n"
     "f = Transpose<perm = [0, 3, 1, 2]>(e)\ng = Conv<pads = [1, 1, 1, 1]>(f, {rand 6,6,3,3})\n"
     "h = Transpose<perm = [0, 2, 3, 1]>(g)\ni = Mul(h, {rand 6})\nj = Add(i, {rand 1,1,1,6})\n"
     "k = Add(j, e)\nl = Sigmoid(k)\nm = Mul(k, l)\ny = ReduceMean<axes = [1, 2], keepdims = 0>(m)",
     "ReduceMean=1 Transpose=1 com.microsoft.FusedConv=2", 0},
    {"Concat and Pad with channels last", 13, "float[N,4,6,6] x",
     "a = Conv(x, {rand 6,4,3,3})\nb = Conv(x, {rand 4,4,3,3})\nc = Transpose<perm = [0, 2, 3, "
     "1]>(a)\n"
     "d = Transpose<perm = [0, 2, 3, 1]>(b)\ne = Concat<axis = 3>(c, d)\n"
     "f = Pad(e, {int64 0,1,2,0,0,1,0,0})\ng = Transpose<perm = [0, 3, 1, 2]>(f)\n"
     "h = Conv(g, {rand 5,10,3,3})\ny = Relu(h)",
     "Concat=1 Conv=2 com.microsoft.FusedConv=1", 0},
    {"Softmax in parts", 13, "float[N,S,8] x",
     "m = ReduceMax<axes = [-1], keepdims = 1>(x)\nd = Sub(x, m)\ne = Exp(d)\ns = "
     "ReduceSum<keepdims = 1>(e, {int64 -1})\n"
     "y = Div(e, s)",
     "Softmax=1", 0},
    {"Softmax by the reciprocal", 13, "float[N,S,8] x",
     "m = ReduceMax<axes = [-1], keepdims = 1>(x)\nd = Sub(x, m)\ne = Exp(d)\ns = "
     "ReduceSum<keepdims = 1>(e, {int64 -1})\n"
     "r = Reciprocal(s)\ny = Mul(e, r)",
     "Softmax=1", 0},
    {"LogSoftmax in parts", 13, "float[N,S,8] x",
     "m = ReduceMax<axes = [-1], keepdims = 1>(x)\nd = Sub(x, m)\ne = Exp(d)\ns = "
     "ReduceSum<keepdims = 1>(e, {int64 -1})\n"
     "l = Log(s)\ny = Sub(d, l)",
     "LogSoftmax=1", 0},
    {"LogSoftmax by ReduceLogSumExp", 13, "float[N,S,8] x",
     "l = ReduceLogSumExp<axes = [-1], keepdims = 1>(x)\ny = Sub(x, l)", "LogSoftmax=1", 0},
};

static void others_become_one_node(void **state) {
    (void)state;
    int bad = 0;
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
        bad += check(make(wholes[i].opset, wholes[i].inputs, wholes[i].text, ""), wholes[i].name,
                     !wholes[i].blocked, wholes[i].left);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(activations_become_part_of_layers),
                                       cmocka_unit_test(slopes_become_part_of_layers),
                                       cmocka_unit_test(others_become_one_node)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
