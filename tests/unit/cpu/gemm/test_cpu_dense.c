/* test_cpu_dense.c - matrix products of every operator that has them against the reference kernels:
 * odd sizes, transposed operands, what follows a product, one row, nothing. */
#include "versus.h"

static versus v;

static const int64_t sizes[][3] = {
    {1, 1, 1},     {1, 64, 48},    {1, 2100, 33}, {2, 77, 130},  {5, 33, 400},  {16, 96, 64},
    {29, 200, 47}, {130, 50, 350}, {0, 5, 3},     {3, 0, 5},     {3, 5, 0},     {1, 7, 0},
    {7, 31, 9},    {90, 530, 21},  {1, 1, 700},   {200, 7, 300}, {40, 1, 130},  {100, 4, 90},
    {300, 16, 40}, {6, 50, 200},   {33, 49, 32},  {17, 8, 1},    {64, 3, 1000}, {20, 130, 64},
    {50, 2, 2048}, {3, 300, 150},  {12, 1, 5}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void linear_case(int i, const char *activation, int transposed, int mode) {
    int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
    versus_start(&v, "ai.sinter", "Linear");
    if (m % 2)
        versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){m, k}, NULL);
    else
        versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){2, m / 2, k}, NULL);
    int64_t w[2] = {transposed ? n : k, transposed ? k : n};
    if (mode & 1)
        versus_weight(&v, SN_FLOAT32, 2, w, NULL);
    else
        versus_tensor(&v, SN_FLOAT32, 2, w, NULL);
    if (mode & 2)
        versus_weight(&v, SN_FLOAT32, 1, &n, NULL);
    else
        versus_without(&v);
    if ((mode & 4) && m % 2)
        versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){m, n}, NULL);
    else if (mode & 4)
        versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){2, m / 2, n}, NULL);
    eval_attr(&v.e, sni_attr_of_int("trans_w", transposed));
    if (activation) eval_attr(&v.e, sni_attr_of_string("activation", activation));
    versus_run(&v, 1, 3e-6 * (double)(k + 10));
}

static void linear_matches(void **state) {
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int mode = 0; mode < 8; mode++)
            linear_case(i, mode & 2 ? "Relu" : NULL, mode % 3 == 0, mode);
}

static void every_activation_matches(void **state) {
    (void)state;
    static const char *const names[] = {"",
                                        "Relu",
                                        "Tanh",
                                        "Sigmoid",
                                        "Affine",
                                        "LeakyRelu",
                                        "ScaledTanh",
                                        "HardSigmoid",
                                        "Elu",
                                        "Celu",
                                        "Selu",
                                        "Softsign",
                                        "Softplus",
                                        "Clip",
                                        "HardSwish",
                                        "Silu",
                                        "Gelu",
                                        "FastGelu",
                                        "Mish",
                                        "GeluTanh",
                                        "ThresholdedRelu",
                                        "ParametricSoftplus"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) linear_case(4, names[i], 0, 7);
    linear_case(4, "geLU", 1, 7);
}

static void gemm_matches(void **state) {
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int mode = 0; mode < 8; mode++) {
            int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            bool fused = mode & 4;
            versus_start(&v, fused ? "com.microsoft" : "", fused ? "FusedGemm" : "Gemm");
            versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){mode & 1 ? k : m, mode & 1 ? m : k}, NULL);
            versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){mode & 2 ? n : k, mode & 2 ? k : n}, NULL);
            if (i % 2) versus_weight(&v, SN_FLOAT32, 1, &n, NULL);
            eval_attr(&v.e, sni_attr_of_int("transA", mode & 1));
            eval_attr(&v.e, sni_attr_of_int("transB", (mode & 2) != 0));
            eval_attr(&v.e, sni_attr_of_float("alpha", mode & 2 ? 0.5f : 1.0f));
            if (fused) eval_attr(&v.e, sni_attr_of_string("activation", "Gelu"));
            versus_run(&v, 1, 3e-6 * (double)(k + 10));
        }
}

static void stacks_match(void **state) {
    (void)state;
    for (int i = 0; i < SIZES; i++)
        for (int mode = 0; mode < 8; mode++) {
            int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            bool fused = mode & 4;
            versus_start(&v, fused ? "com.microsoft" : "", fused ? "FusedMatMul" : "MatMul");
            bool ta = fused && (mode & 1), tb = fused && (mode & 2);
            versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){2, 3, ta ? k : m, ta ? m : k}, NULL);
            if (mode & 2)
                versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){3, tb ? n : k, tb ? k : n}, NULL);
            else
                versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){k, n}, NULL);
            if (fused) {
                eval_attr(&v.e, sni_attr_of_int("transA", ta));
                eval_attr(&v.e, sni_attr_of_int("transB", tb));
                eval_attr(&v.e, sni_attr_of_float("alpha", 0.125f));
            }
            versus_run(&v, 1, 3e-6 * (double)(k + 10));
        }
}

static void vectors_match(void **state) {
    (void)state;
    versus_start(&v, "", "MatMul");
    versus_tensor(&v, SN_FLOAT32, 1, (int64_t[]){50}, NULL);
    versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){50, 33}, NULL);
    versus_run(&v, 1, 1e-5);
    versus_start(&v, "", "MatMul");
    versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){2, 9, 50}, NULL);
    versus_tensor(&v, SN_FLOAT32, 1, (int64_t[]){50}, NULL);
    versus_run(&v, 1, 1e-5);
    versus_start(&v, "", "MatMul");
    versus_tensor(&v, SN_FLOAT32, 1, (int64_t[]){50}, NULL);
    versus_tensor(&v, SN_FLOAT32, 1, (int64_t[]){50}, NULL);
    versus_run(&v, 1, 1e-5);
}

static void odd_numbers_stay(void **state) {
    (void)state;
    for (int m = 1; m < 20; m += 9) {
        versus_start(&v, "", "MatMul");
        v.special = 9;
        versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){m, 3}, NULL);
        v.special = 0;
        versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){3, 40}, NULL);
        versus_run(&v, 1, 1e-5);
    }
}

/* ---- Other types ---- */

static void wide_case(sn_dtype dtype, int64_t m, int64_t k, int64_t n, int transposes,
                      int special) {
    double tolerance = dtype == SN_FLOAT64 ? 1e-12 : 0;
    const char *ops[] = {"MatMul", "Gemm"};
    for (int op = 0; op < 2; op++) {
        bool a = op && transposes & 1, b = op && transposes & 2;
        versus_start(&v, "", ops[op]);
        v.special = special;
        versus_tensor(&v, dtype, 2, a ? (int64_t[]){k, m} : (int64_t[]){m, k}, NULL);
        versus_tensor(&v, dtype, 2, b ? (int64_t[]){n, k} : (int64_t[]){k, n}, NULL);
        if (op) versus_tensor(&v, dtype, 1, &n, NULL);
        if (op) eval_attr(&v.e, sni_attr_of_int("transA", a));
        if (op) eval_attr(&v.e, sni_attr_of_int("transB", b));
        versus_run(&v, 1, tolerance);
        assert_string_equal(v.impl, "gemm_tiles");
    }
}

/* Products of doubles and of integers, on tiles of the tier. */
static void other_types_match(void **state) {
    (void)state;
    static const sn_dtype types[] = {SN_FLOAT64, SN_INT32, SN_INT64};
    static const int64_t products[][3] = {{1, 1, 1},    {5, 7, 9},     {6, 128, 64}, {13, 129, 65},
                                          {70, 300, 3}, {2, 260, 131}, {4, 1, 33},   {0, 3, 4},
                                          {3, 0, 5},    {65, 20, 130}};
    for (int t = 0; t < 3; t++)
        for (size_t i = 0; i < sizeof products / sizeof *products; i++)
            for (int transposes = 0; transposes < 4; transposes++) {
                const int64_t *s = products[i];
                wide_case(types[t], s[0], s[1], s[2], transposes, 0);
                if (t == 0) wide_case(types[t], s[0], s[1], s[2], transposes, 200);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_matches),    cmocka_unit_test(every_activation_matches),
        cmocka_unit_test(gemm_matches),      cmocka_unit_test(stacks_match),
        cmocka_unit_test(vectors_match),     cmocka_unit_test(odd_numbers_stay),
        cmocka_unit_test(other_types_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
