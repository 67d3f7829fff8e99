/* test_cpu_maps.c - elementwise functions, softmax and normalisation on the vector kernels against
 * the reference kernels: odd lengths, broadcasting, NaN and infinity, nothing at all. */
#include "versus.h"

static versus v;

static const int64_t lengths[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 100, 1000, 20011};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void functions_of_one(void **state) {
    (void)state;
    static const char *const ops[] = {
        "Relu",       "Sigmoid", "Tanh",     "Erf",       "Exp",         "Log",       "Sqrt",
        "Reciprocal", "Abs",     "Neg",      "HardSwish", "HardSigmoid", "LeakyRelu", "Elu",
        "Celu",       "Selu",    "Softplus", "Softsign",  "Mish",        "Gelu",      "Swish"};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (int i = 0; i < LENGTHS; i++) {
            versus_start(&v, "", ops[o]);
            v.scale = i % 3 == 0 ? 1.0f : i % 3 == 1 ? 10.0f : 90.0f;
            v.special = i % 2 ? 7 : 0;
            versus_tensor(&v, SN_FLOAT32, 1, &lengths[i], NULL);
            versus_run(&v, 1, 4e-7);
        }
}

static void coefficients_count(void **state) {
    (void)state;
    int64_t n = 37;
    static const char *const ops[] = {"HardSigmoid", "LeakyRelu", "Elu", "Celu", "Swish"};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        versus_start(&v, "", ops[o]);
        v.scale = 5;
        versus_tensor(&v, SN_FLOAT32, 1, &n, NULL);
        eval_attr(&v.e, sni_attr_of_float("alpha", 0.7f));
        versus_run(&v, 1, 4e-7);
    }
    versus_start(&v, "", "Gelu");
    versus_tensor(&v, SN_FLOAT32, 1, &n, NULL);
    eval_attr(&v.e, sni_attr_of_string("approximate", "tanh"));
    versus_run(&v, 1, 4e-7);
}

static void clip_and_pow(void **state) {
    (void)state;
    static const float low = -0.3f, high = 0.4f, powers[] = {1, 2, 3, -1};
    for (int i = 0; i < LENGTHS; i++)
        for (int mode = 0; mode < 4; mode++) {
            versus_start(&v, "", "Clip");
            v.special = 9;
            versus_tensor(&v, SN_FLOAT32, 1, &lengths[i], NULL);
            if (mode & 1)
                versus_tensor(&v, SN_FLOAT32, 0, NULL, &low);
            else
                versus_without(&v);
            if (mode & 2) versus_weight(&v, SN_FLOAT32, 0, NULL, &high);
            versus_run(&v, 1, 0);
            versus_start(&v, "", "Pow");
            versus_tensor(&v, SN_FLOAT32, 1, &lengths[i], NULL);
            versus_weight(&v, SN_FLOAT32, 0, NULL, &powers[mode]);
            versus_run(&v, 1, 4e-7);
        }
}

static void functions_of_two(void **state) {
    (void)state;
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"};
    static const int64_t shapes[][6] = {
        {2, 3, 37, 2, 3, 37},     {2, 3, 37, 1, 1, 1}, {2, 3, 37, 1, 1, 37}, {2, 3, 37, 2, 3, 1},
        {2, 3, 37, 1, 3, 1},      {1, 1, 37, 2, 3, 1}, {1, 3, 1, 2, 1, 37},  {0, 3, 5, 1, 3, 5},
        {1, 130, 300, 1, 1, 300}, {5, 1, 1, 1, 1, 1}};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            bool one_way = strcmp(ops[o], "PRelu") == 0;
            if (one_way && (i == 5 || i == 6)) continue;
            versus_start(&v, "", ops[o]);
            v.special = i % 2 ? 11 : 0;
            versus_tensor(&v, SN_FLOAT32, 3, shapes[i], NULL);
            versus_tensor(&v, SN_FLOAT32, 3, shapes[i] + 3, NULL);
            versus_run(&v, 1, 1e-7);
        }
}

static void softmax_matches(void **state) {
    (void)state;
    for (int i = 0; i < LENGTHS; i++)
        for (int mode = 0; mode < 8; mode++) {
            int64_t n = lengths[i] > 2000 ? 2000 : lengths[i], step = mode & 2 ? 19 : 1;
            versus_start(&v, "", mode & 1 ? "LogSoftmax" : "Softmax");
            v.scale = mode & 4 ? 30 : 1;
            versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){3, n, step}, NULL);
            eval_attr(&v.e, sni_attr_of_int("axis", 1));
            versus_run(&v, 1, 2e-6);
        }
    versus_start(&v, "", "Softmax");
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){3, 5},
                  (float[]){NAN, 1, 2, 3, 4, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
                            1, -INFINITY, 2, -INFINITY, 0});
    versus_run(&v, 1, 1e-6);
}

static void normalisation_matches(void **state) {
    (void)state;
    static const char *const ops[] = {"LayerNormalization", "RMSNormalization",
                                      "SimplifiedLayerNormalization"};
    for (int o = 0; o < 3; o++)
        for (int i = 0; i < LENGTHS; i++)
            for (int mode = 0; mode < 2; mode++) {
                int64_t n = lengths[i];
                versus_start(&v, "", ops[o]);
                v.scale = mode ? 100 : 1;
                versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){2, 3, n}, NULL);
                v.scale = 1;
                versus_weight(&v, SN_FLOAT32, 1, &n, NULL);
                if (o == 0 && mode) versus_weight(&v, SN_FLOAT32, 1, &n, NULL);
                versus_run(&v, o == 0 ? 3 : o == 2 ? 2 : 1, 5e-6);
            }
    /* A scale that is not one row. */
    versus_start(&v, "", "LayerNormalization");
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){6, 9}, NULL);
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){6, 1}, NULL);
    versus_run(&v, 1, 5e-6);
}

static void sums_are_normalised(void **state) {
    (void)state;
    for (int i = 1; i < LENGTHS; i++) {
        int64_t n = lengths[i];
        versus_start(&v, "com.microsoft", "SkipLayerNormalization");
        versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){2, 3, n}, NULL);
        versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){i % 2 ? 2 : 1, 3, n}, NULL);
        versus_weight(&v, SN_FLOAT32, 1, &n, NULL);
        versus_weight(&v, SN_FLOAT32, 1, &n, NULL);
        if (i % 3) versus_weight(&v, SN_FLOAT32, 1, &n, NULL);
        /* One element has no deviation: only epsilon, 1e-12, stands against rounding. */
        eval_attr(&v.e, sni_attr_of_float("epsilon", 1e-5f));
        versus_run(&v, 4, 1e-5);
    }
}

static void transposition_matches(void **state) {
    (void)state;
    static const int64_t perms[][3] = {{2, 1, 0}, {0, 2, 1}, {1, 0, 2}, {2, 0, 1}, {1, 2, 0}};
    for (size_t i = 0; i < sizeof perms / sizeof *perms; i++)
        for (int j = 0; j < LENGTHS - 1; j++) {
            versus_start(&v, "", "Transpose");
            versus_tensor(&v, j % 2 ? SN_FLOAT32 : SN_INT32, 3,
                          (int64_t[]){lengths[(j + 3) % 11], lengths[j], lengths[(j + 7) % 11]},
                          NULL);
            eval_attr(&v.e, (sni_attr){.name = SNI_STR("perm"),
                                       .kind = SNI_ATTR_INTS,
                                       .count = 3,
                                       .u.ints = perms[i]});
            versus_run(&v, 1, 0);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_one),    cmocka_unit_test(coefficients_count),
        cmocka_unit_test(clip_and_pow),        cmocka_unit_test(functions_of_two),
        cmocka_unit_test(softmax_matches),     cmocka_unit_test(normalisation_matches),
        cmocka_unit_test(sums_are_normalised), cmocka_unit_test(transposition_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
