/* test_cpu_doubles.c - functions of float64 tensors: how far they are from the true values, in
 * units of the last place, over their whole ranges; what they make of odd numbers; and their
 * operators against the reference kernels. Run once per instruction-set tier. */
#include "versus.h"

#include "cpu/elementwise/doubles.h"

#include <float.h>

enum { COUNT = 2048, ROUNDS = 32 };

static versus v;

/* The distance of doubles around a value. */
static long double unit_of(long double value) {
    int exponent;
    frexpl(value, &exponent);
    return ldexpl(1, (exponent < -1021 ? -1021 : exponent) - 53);
}

typedef long double (*exact_fn)(long double);

/* The largest error of `fn` over [low, high], evenly spaced or, if `even` is false, by magnitude.
 * Where the last bit of x matters it is a random one. */
static double worst(sni_unary_fn fn, exact_fn exact, double low, double high, bool even) {
    static double x[COUNT], y[COUNT];
    static const double ones[2] = {1, 1};
    long double most = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            double part = ((double)round * COUNT + i) / ((double)ROUNDS * COUNT);
            part += (double)(unit_random(&v.seed) % 1000) / (1001.0 * ROUNDS * COUNT);
            double by = log(fabs(low)) + (log(fabs(high)) - log(fabs(low))) * part;
            x[i] = even ? low + (high - low) * part : copysign(exp(by), low);
        }
        fn(x, y, COUNT, ones);
        for (int i = 0; i < COUNT; i++) {
            long double want = exact((long double)x[i]);
            long double error = fabsl((long double)y[i] - want) / unit_of(want);
            if (!(error <= most)) most = error;
        }
    }
    return (double)most;
}

static long double sigmoid(long double x) {
    return 1 / (1 + expl(-x));
}

static long double softplus(long double x) {
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

static long double silu(long double x) {
    return x / (1 + expl(-x));
}

static long double mish(long double x) {
    return x * tanhl(softplus(x));
}

static long double elu(long double x) {
    return x < 0 ? expm1l(x) : x;
}

static void errors_are_bounded(void **state) {
    (void)state;
    const sni_doubles *d = sni_doubles_get();
    const sni_unary_fn *map = d->map;
    const struct {
        const char *name;
        sni_unary_fn fn;
        exact_fn exact;
        double low, high;
        bool even;
        double most;
    } cases[] = {
        {"exp", map[SNI_ACT_EXP], expl, -708, 709.7, true, 1},
        {"exp around 0", map[SNI_ACT_EXP], expl, -2, 2, true, 1},
        {"exp below normal", map[SNI_ACT_EXP], expl, -745, -707, true, 1},
        {"exp at its end", map[SNI_ACT_EXP], expl, 707, 709.78, true, 1},
        {"exp near 0", map[SNI_ACT_EXP], expl, 1e-20, 1, false, 1},
        {"log", map[SNI_ACT_LOG], logl, 1e-307, 1e308, false, 1},
        {"log near 1", map[SNI_ACT_LOG], logl, 0.5, 2, true, 1},
        {"log next to 1", map[SNI_ACT_LOG], logl, 1 - 1e-9, 1 + 1e-9, true, 1},
        {"log of tiny numbers", map[SNI_ACT_LOG], logl, 1e-322, 1e-307, false, 1},
        {"tanh", map[SNI_ACT_TANH], tanhl, -22, 22, true, 2},
        {"tanh near 0", map[SNI_ACT_TANH], tanhl, 1e-300, 1, false, 2},
        {"tanh where it bends", map[SNI_ACT_TANH], tanhl, 0.1, 1, true, 2},
        {"sigmoid", map[SNI_ACT_SIGMOID], sigmoid, -708, 50, true, 2},
        {"sigmoid around 0", map[SNI_ACT_SIGMOID], sigmoid, -5, 5, true, 2},
        {"sigmoid below normal", map[SNI_ACT_SIGMOID], sigmoid, -745, -708, true, 2},
        {"softplus", map[SNI_ACT_SOFTPLUS], softplus, -708, 50, true, 2},
        {"softplus around 0", map[SNI_ACT_SOFTPLUS], softplus, -5, 5, true, 2},
        {"silu", map[SNI_ACT_SWISH], silu, -20, 20, true, 3},
        {"mish", map[SNI_ACT_MISH], mish, -20, 20, true, 5},
        {"elu", map[SNI_ACT_ELU], elu, -45, 5, true, 2},
        {"elu near 0", map[SNI_ACT_ELU], elu, -1, -1e-300, false, 2},
        {"erf", map[SNI_ACT_ERF], erfl, -6.5, 6.5, true, 2},
        {"erf where it bends", map[SNI_ACT_ERF], erfl, 0.9, 2.5, true, 2},
        {"erf near 0", map[SNI_ACT_ERF], erfl, 1e-300, 1, false, 2},
        {"sin", d->sin_row, sinl, -10, 10, true, 1},
        {"sin, many turns", d->sin_row, sinl, -1e6, 1e6, true, 1},
        {"sin, more turns", d->sin_row, sinl, 9e5, 1e15, false, 1},
        {"sin near 0", d->sin_row, sinl, 1e-300, 1, false, 1},
        {"sin near pi", d->sin_row, sinl, 3.14159, 3.1416, true, 1},
        {"cos", d->cos_row, cosl, -10, 10, true, 1},
        {"cos, many turns", d->cos_row, cosl, -1e6, 1e6, true, 1},
        {"cos near pi/2", d->cos_row, cosl, 1.57079, 1.5708, true, 1},
        {"sqrt", map[SNI_ACT_SQRT], sqrtl, 1e-307, 1e308, false, 0.51},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double found =
            worst(cases[i].fn, cases[i].exact, cases[i].low, cases[i].high, cases[i].even);
        print_message("%-22s %.3f\n", cases[i].name, found);
        if (!(found <= cases[i].most))
            fail_msg("%s is off by %g units, more than %g", cases[i].name, found, cases[i].most);
    }
}

/* Multiples of pi/2, where all but the last bits of an angle cancel. */
static void multiples_of_half_pi(void **state) {
    (void)state;
    enum { N = 600000 };
    const sni_doubles *d = sni_doubles_get();
    double *x = malloc(2 * N * sizeof *x), *y = x + N;
    assert_non_null(x);
    for (int i = 0; i < N; i++) x[i] = (double)(1.5707963267948966192313216916397514L * (i + 1));
    for (int way = 0; way < 2; way++) {
        (way ? d->cos_row : d->sin_row)(x, y, N, NULL);
        for (int i = 0; i < N; i++) {
            long double want = way ? cosl((long double)x[i]) : sinl((long double)x[i]);
            if (fabsl((long double)y[i] - want) > unit_of(want))
                fail_msg("%s of %.17g is %.17g, not %.17Lg", way ? "cos" : "sin", x[i], y[i], want);
        }
    }
    free(x);
}

/* Both NaN, or equal with the same sign. */
static void same(const char *what, double x, double got, double want) {
    if (isnan(want) ? isnan(got) : got == want && !signbit(got) == !signbit(want)) return;
    fail_msg("%s of %.17g is %.17g, not %.17g", what, x, got, want);
}

static double round_even(double x) {
    return nearbyint(x);
}
static double relu(double x) {
    return x < 0 ? 0 : x;
}
static double minus(double x) {
    return -x;
}
static double inverse(double x) {
    return 1 / x;
}
static double logistic(double x) {
    double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* Each odd number in each lane, among others. */
static void odd_numbers(void **state) {
    (void)state;
    const sni_doubles *d = sni_doubles_get();
    const struct {
        const char *name;
        sni_unary_fn fn;
        double (*exact)(double);
        bool to_the_bit;
    } cases[] = {
        {"floor", d->floor_row, floor, true},
        {"ceil", d->ceil_row, ceil, true},
        {"round", d->round_row, round_even, true},
        {"relu", d->map[SNI_ACT_RELU], relu, true},
        {"abs", d->map[SNI_ACT_ABS], fabs, true},
        {"neg", d->map[SNI_ACT_NEG], minus, true},
        {"sqrt", d->map[SNI_ACT_SQRT], sqrt, true},
        {"reciprocal", d->map[SNI_ACT_RECIPROCAL], inverse, true},
        {"exp", d->map[SNI_ACT_EXP], exp, false},
        {"log", d->map[SNI_ACT_LOG], log, false},
        {"tanh", d->map[SNI_ACT_TANH], tanh, false},
        {"sigmoid", d->map[SNI_ACT_SIGMOID], logistic, false},
        {"erf", d->map[SNI_ACT_ERF], erf, false},
        {"sin", d->sin_row, sin, false},
        {"cos", d->cos_row, cos, false},
    };
    static const double odd[] = {NAN,      INFINITY,  -INFINITY, 0.0,       -0.0,
                                 DBL_MIN,  -DBL_MIN,  5e-324,    -5e-324,   DBL_MAX,
                                 -DBL_MAX, 1e-310,    -1e-310,   709.78271, 709.7828,
                                 -745.133, -745.14,   -708.4,    -708,      708,
                                 0.5,      -0.5,      1.5,       2.5,       -2.5,
                                 1e15,     -1e15 - 1, 2e15,      1e16,      4503599627370495.5,
                                 1e6,      1e22};
    enum { ODD = sizeof odd / sizeof *odd, SPAN = 21 };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int at = 0; at < SPAN; at++)
            for (int o = 0; o < ODD; o++) {
                double x[SPAN], y[SPAN + 1];
                for (int i = 0; i < SPAN; i++) x[i] = 0.25 + i;
                x[at] = odd[o];
                y[SPAN] = 77;
                cases[c].fn(x, y, SPAN, NULL);
                assert_true(y[SPAN] == 77);
                for (int i = 0; i < SPAN; i++) {
                    double want = cases[c].exact(x[i]);
                    bool near = fabs(y[i] - want) <= 2 * (double)unit_of((long double)want);
                    if (cases[c].to_the_bit || want == 0 || !isfinite(want) || !near)
                        same(cases[c].name, x[i], y[i], want);
                }
            }
}

/* An element's result must not depend on what stands beside it. */
static void neighbours_do_not_tell(void **state) {
    (void)state;
    static const double ones[2] = {1, 1};
    static const double beside[] = {NAN, INFINITY, -INFINITY, 800, -800, 1e300, 0.1, -745};
    const sni_doubles *d = sni_doubles_get();
    sni_unary_fn fns[SNI_ACT_COUNT + 2] = {d->sin_row, d->cos_row};
    memcpy(fns + 2, d->map, sizeof d->map);
    for (size_t f = 0; f < sizeof fns / sizeof *fns; f++)
        for (int i = 0; fns[f] && i < 30000; i++) {
            double x[8], alone, y[8], at = (double)(int)(unit_random(&v.seed) % 1600001) / 1000.0;
            for (int j = 0; j < 8; j++) x[j] = beside[(i + j) % 8];
            x[i % 8] = at = i & 1 ? at - 800 : (at - 800) / 100;
            fns[f](x, y, 8, ones);
            fns[f](&at, &alone, 1, ones);
            if (memcmp(&y[i % 8], &alone, sizeof alone) != 0)
                fail_msg("function %zu of %.17g is %.17g or %.17g", f, at, alone, y[i % 8]);
        }
}

/* ---- Operators ---- */

static void unary_case(const char *op, int64_t n, float scale, int special) {
    versus_start(&v, "", op);
    v.scale = scale;
    v.special = special;
    versus_tensor(&v, SN_FLOAT64, 1, &n, NULL);
    versus_run(&v, 1, 2e-15);
}

static void operators_match(void **state) {
    (void)state;
    static const char *const ops[] = {
        "Relu", "Sigmoid",  "Tanh",      "Exp",         "Log",       "Sqrt", "Reciprocal",
        "Abs",  "Neg",      "HardSwish", "HardSigmoid", "LeakyRelu", "Elu",  "Celu",
        "Selu", "Softplus", "Softsign",  "Mish",        "Swish",     "Erf",  "Gelu",
        "Sin",  "Cos",      "Floor",     "Ceil",        "Round"};
    static const int64_t sizes[] = {0, 1, 3, 8, 13, 300, 50000};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            unary_case(ops[o], sizes[s], 1, 0);
            unary_case(ops[o], sizes[s], 9, 20);
            unary_case(ops[o], sizes[s], 900, 7);
        }
}

static void coefficients_match(void **state) {
    (void)state;
    static const char *const ops[] = {"HardSigmoid", "LeakyRelu", "Elu", "Celu", "Selu", "Swish"};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (int way = 0; way < 3; way++) {
            versus_start(&v, "", ops[o]);
            v.scale = 5;
            v.special = 30;
            versus_tensor(&v, SN_FLOAT64, 1, (int64_t[]){99}, NULL);
            eval_attr(&v.e, sni_attr_of_float("alpha", (const float[]){0.3f, 1.7f, 40}[way]));
            if (o == 0) eval_attr(&v.e, sni_attr_of_float("beta", 0.4f));
            if (o == 4) eval_attr(&v.e, sni_attr_of_float("gamma", -2.5f));
            versus_run(&v, 1, 2e-15);
        }
    versus_start(&v, "", "Gelu");
    v.scale = 5;
    versus_tensor(&v, SN_FLOAT64, 1, (int64_t[]){99}, NULL);
    eval_attr(&v.e, sni_attr_of_string("approximate", "tanh"));
    versus_run(&v, 1, 2e-15);
    for (int ends = 0; ends < 4; ends++) {
        versus_start(&v, "", "Clip");
        v.special = 9;
        versus_tensor(&v, SN_FLOAT64, 2, (int64_t[]){7, 9}, NULL);
        if (ends & 1)
            versus_tensor(&v, SN_FLOAT64, 0, NULL, (const double[]){-0.30000000000000004});
        else
            versus_without(&v);
        if (ends & 2) versus_tensor(&v, SN_FLOAT64, 0, NULL, (const double[]){0.7});
        versus_run(&v, 1, 0);
    }
}

/* By one number, of whatever type and whether it is part of the model or not; and by others, which
 * are left to the reference. */
static void powers_match(void **state) {
    (void)state;
    static const double powers[] = {1, 2, 3, -1, 0.5, 1e300, NAN};
    for (int p = 0; p < 7; p++)
        for (int way = 0; way < 8; way++) {
            int64_t whole = p < 4 ? (int64_t)powers[p] : 5;
            versus_start(&v, "", "Pow");
            v.scale = 3;
            v.special = way & 1 ? 9 : 0;
            versus_tensor(&v, way & 2 ? SN_FLOAT64 : SN_FLOAT32, 1, (int64_t[]){51}, NULL);
            if (way & 4)
                versus_tensor(&v, SN_INT64, 0, NULL, &whole);
            else
                versus_weight(&v, SN_FLOAT64, 1, (int64_t[]){1}, &powers[p]);
            versus_run(&v, 1, way & 2 ? 2e-15 : 3e-7);
        }
    versus_start(&v, "", "Pow");
    versus_tensor(&v, SN_FLOAT64, 0, NULL, (const double[]){3});
    versus_tensor(&v, SN_FLOAT64, 2, (int64_t[]){1, 1}, (const double[]){2});
    versus_run(&v, 1, 0);
    versus_start(&v, "", "Pow");
    versus_tensor(&v, SN_FLOAT64, 1, (int64_t[]){7}, NULL);
    versus_tensor(&v, SN_FLOAT64, 2, (int64_t[]){3, 1}, NULL);
    versus_run(&v, 1, 0);
}

static void softmax_case(const char *op, int rank, const int64_t *dims, int64_t axis, float scale,
                         int special) {
    versus_start(&v, "", op);
    v.scale = scale;
    v.special = special;
    versus_tensor(&v, SN_FLOAT64, rank, dims, NULL);
    eval_attr(&v.e, sni_attr_of_int("axis", axis));
    versus_run(&v, 1, 1e-14);
}

static void softmax_matches(void **state) {
    (void)state;
    static const char *const ops[] = {"Softmax", "LogSoftmax"};
    static const int64_t widths[] = {1, 2, 7, 8, 17, 100, 1000};
    for (int o = 0; o < 2; o++) {
        for (int w = 0; w < 7; w++)
            for (int64_t axis = 0; axis < 3; axis++) {
                softmax_case(ops[o], 3, (int64_t[]){3, 5, widths[w]}, axis, 3, 0);
                softmax_case(ops[o], 3, (int64_t[]){3, 5, widths[w]}, axis, 900, 0);
            }
        softmax_case(ops[o], 2, (int64_t[]){70, 700}, 1, 3, 0);
        softmax_case(ops[o], 2, (int64_t[]){70, 700}, 0, 3, 0);
        softmax_case(ops[o], 2, (int64_t[]){4, 0}, 0, 3, 0);
        softmax_case(ops[o], 2, (int64_t[]){40, 9}, 1, 3, 40);
    }
    double masked[24];
    for (int i = 0; i < 24; i++) masked[i] = i % 3 ? -INFINITY : i * 0.1;
    for (int64_t axis = 0; axis < 2; axis++) {
        versus_start(&v, "", "Softmax");
        versus_tensor(&v, SN_FLOAT64, 2, (int64_t[]){3, 8}, masked);
        eval_attr(&v.e, sni_attr_of_int("axis", axis));
        versus_run(&v, 1, 1e-15);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_bounded), cmocka_unit_test(multiples_of_half_pi),
        cmocka_unit_test(odd_numbers),        cmocka_unit_test(neighbours_do_not_tell),
        cmocka_unit_test(operators_match),    cmocka_unit_test(coefficients_match),
        cmocka_unit_test(powers_match),       cmocka_unit_test(softmax_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
