/* test_cpu_math.c - how far the vector kernels' elementary functions are from the true values, in
 * units of the last place, over their whole ranges. Run once per instruction-set tier. */
#include "unit.h"

#include "cpu/core/kernels.h"
#include "cpu/elementwise/map.h"

#include <fenv.h>
#include <float.h>
#include <math.h>

enum { COUNT = 4096 };

/* The distance of floats around a value. */
static double unit_of(double value) {
    int exponent;
    frexp(value, &exponent);
    return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

/* The largest error of act over [low, high], evenly spaced or, if `even` is false, by magnitude. */
static double worst(sni_act act, double (*exact)(double), float low, float high, bool even) {
    static float x[COUNT], y[COUNT];
    double most = 0;
    for (int round = 0; round < 64; round++) {
        for (int i = 0; i < COUNT; i++) {
            double part = ((double)round * COUNT + i) / (64.0 * COUNT);
            double v = even ? (double)low + ((double)high - (double)low) * part
                            : (double)low * pow((double)high / (double)low, part);
            x[i] = (float)v;
        }
        sni_cpu_kernels_get()->maps->map[act](1, 1, x, y, COUNT);
        for (int i = 0; i < COUNT; i++) {
            double want = exact((double)x[i]);
            double error = fabs((double)y[i] - want) / unit_of(want);
            if (!(error <= most)) most = error;
        }
    }
    return most;
}

static double sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

static double softplus(double x) {
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double root(double x) {
    return sqrt(x);
}

static void errors_are_bounded(void **state) {
    (void)state;
    static const struct {
        const char *name;
        sni_act act;
        double (*exact)(double);
        float low, high;
        bool even;
        double most;
    } cases[] = {
        {"exp", SNI_ACT_EXP, exp, -87, 88.7f, true, 2},
        {"exp below normal", SNI_ACT_EXP, exp, -103.9f, -87, true, 2},
        {"exp near 0", SNI_ACT_EXP, exp, 1e-10f, 1, false, 2},
        {"log", SNI_ACT_LOG, log, 1e-37f, 3e38f, false, 2},
        {"log near 1", SNI_ACT_LOG, log, 0.5f, 2, true, 2},
        {"log of tiny numbers", SNI_ACT_LOG, log, 1e-44f, 1e-38f, false, 2},
        {"tanh", SNI_ACT_TANH, tanh, -10, 10, true, 2},
        {"tanh near 0", SNI_ACT_TANH, tanh, 1e-20f, 1, false, 2},
        {"tanh where it bends", SNI_ACT_TANH, tanh, 0.1f, 1, true, 2},
        {"erf", SNI_ACT_ERF, erf, -5, 5, true, 2},
        {"erf near 0", SNI_ACT_ERF, erf, 1e-20f, 1, false, 2},
        {"sigmoid", SNI_ACT_SIGMOID, sigmoid, -80, 80, true, 3},
        {"softplus", SNI_ACT_SOFTPLUS, softplus, -80, 80, true, 3},
        {"sqrt", SNI_ACT_SQRT, root, 1e-37f, 3e38f, false, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double found =
            worst(cases[i].act, cases[i].exact, cases[i].low, cases[i].high, cases[i].even);
        print_message("%-20s %.2f\n", cases[i].name, found);
        if (!(found <= cases[i].most))
            fail_msg("%s is off by %g units, more than %g", cases[i].name, found, cases[i].most);
    }
}

/* Gelu's error counts in parts of x: its result is a small part of it on the left. */
static void gelu_is_bounded(void **state) {
    (void)state;
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    double most = 0;
    for (float at = -14; at < 14; at += 1e-3f) {
        float x[16], y[16];
        for (int i = 0; i < 16; i++) x[i] = at + (float)i * 6.1e-5f;
        k->maps->map[SNI_ACT_GELU](0, 0, x, y, 16);
        for (int i = 0; i < 16; i++) {
            double v = (double)x[i], want = 0.5 * v * erfc(v * -0.70710678118654752);
            most = fmax(most, fabs((double)y[i] - want) / fmax(fabs(v), 1e-30));
        }
    }
    print_message("gelu, parts of x     %.3g\n", most);
    assert_true(most <= 1.5e-7);
    static const float ends[4] = {INFINITY, NAN, 1000, -1000};
    float y[4];
    k->maps->map[SNI_ACT_GELU](0, 0, ends, y, 4);
    assert_true(y[0] == INFINITY && isnan(y[1]) && y[2] == 1000 && y[3] == 0);
}

/* So does that of the functions that are x times a sigmoid. */
static void silu_is_bounded(void **state) {
    (void)state;
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    double most[3] = {0};
    for (float at = -100; at < 100; at += 1e-3f) {
        float x[16], y[3][16];
        for (int i = 0; i < 16; i++) x[i] = at + (float)i * 6.1e-5f;
        k->maps->map[SNI_ACT_SILU](0, 0, x, y[0], 16);
        k->maps->map[SNI_ACT_SWISH](1.702f, 0, x, y[1], 16);
        k->maps->map[SNI_ACT_GELU_TANH](0, 0, x, y[2], 16);
        for (int i = 0; i < 16; i++) {
            double v = (double)x[i];
            double u[3] = {v, (double)1.702f * v, 1.5957691216057308 * (v + 0.044715 * v * v * v)};
            for (int f = 0; f < 3; f++)
                most[f] =
                    fmax(most[f], fabs((double)y[f][i] - v * sigmoid(u[f])) / fmax(fabs(v), 1e-30));
        }
    }
    print_message("silu, swish, gelu by tanh, parts of x %.3g %.3g %.3g\n", most[0], most[1],
                  most[2]);
    assert_true(most[0] <= 1.5e-7 && most[1] <= 1.5e-7 && most[2] <= 1.5e-7);
    static const float ends[16] = {INFINITY, -INFINITY, 0,   -0.0f,  NAN,     1000, -1000, 89, -110,
                                   FLT_MAX,  -FLT_MAX,  -88, 1e-30f, -1e-30f, 200,  -200};
    float y[16];
    k->maps->map[SNI_ACT_SILU](0, 0, ends, y, 16);
    assert_true(y[0] == INFINITY && isnan(y[1]) && y[2] == 0 && y[3] == 0 && isnan(y[4]));
    assert_true(y[5] == 1000 && y[6] == 0 && y[7] == 89 && y[8] == 0 && y[9] == FLT_MAX);
    assert_true(y[10] == 0 && fabsf(y[11]) < 1e-35f && y[12] == 5e-31f && y[13] == -5e-31f);
    assert_true(y[14] == 200 && y[15] == 0);
}

/* Numbers below the normal range take a hundred cycles each: none may come up on the way where the
 * result is far from it. */
static void sigmoids_do_not_underflow(void **state) {
    (void)state;
    static const sni_act acts[] = {SNI_ACT_SIGMOID, SNI_ACT_SILU, SNI_ACT_SWISH, SNI_ACT_GELU_TANH,
                                   SNI_ACT_TANH};
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) {
        for (float at = 20; at < 2000; at += 7) {
            float x[16], y[16];
            for (int i = 0; i < 16; i++) x[i] = at + (float)i * 0.37f;
            feclearexcept(FE_ALL_EXCEPT);
            k->maps->map[acts[a]](1, 0, x, y, 16);
            if (fetestexcept(FE_UNDERFLOW)) fail_msg("function %zu, from %g on", a, (double)at);
        }
    }
}

static void ends_are_exact(void **state) {
    (void)state;
    static const float x[16] = {INFINITY, -INFINITY, 0,        -0.0f,  NAN,     1000, -1000, 89,
                                -110,     FLT_MAX,   -FLT_MAX, 1e-45f, -1e-45f, 20,   -20,   1};
    float y[16];
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    k->maps->map[SNI_ACT_EXP](0, 0, x, y, 16);
    assert_true(y[0] == INFINITY && y[1] == 0 && y[2] == 1 && y[3] == 1 && isnan(y[4]));
    assert_true(y[5] == INFINITY && y[6] == 0 && y[7] == INFINITY && y[8] == 0);
    k->maps->map[SNI_ACT_LOG](0, 0, x, y, 16);
    assert_true(y[0] == INFINITY && isnan(y[1]) && y[2] == -INFINITY && y[3] == -INFINITY);
    assert_true(isnan(y[4]) && isnan(y[6]) && isnan(y[12]) && y[15] == 0);
    k->maps->map[SNI_ACT_TANH](0, 0, x, y, 16);
    assert_true(y[0] == 1 && y[1] == -1 && y[2] == 0 && isnan(y[4]) && y[13] == 1 && y[14] == -1);
    k->maps->map[SNI_ACT_ERF](0, 0, x, y, 16);
    assert_true(y[0] == 1 && y[1] == -1 && y[2] == 0 && isnan(y[4]) && y[13] == 1 && y[14] == -1);
    k->maps->map[SNI_ACT_SIGMOID](0, 0, x, y, 16);
    assert_true(y[0] == 1 && y[1] == 0 && y[2] == 0.5f && isnan(y[4]) && y[5] == 1 && y[6] == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_bounded), cmocka_unit_test(gelu_is_bounded),
        cmocka_unit_test(silu_is_bounded),    cmocka_unit_test(sigmoids_do_not_underflow),
        cmocka_unit_test(ends_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
