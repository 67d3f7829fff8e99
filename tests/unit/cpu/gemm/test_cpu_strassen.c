/* test_cpu_strassen.c - dense layers by Strassen's method (cpu/gemm/strassen.c) against the
 * reference kernel: sizes of every remainder, what follows a product, rows and columns of different
 * sizes, NaN and infinities. */
#include "products.h"
#include "versus.h"

#include "cpu/gemm/gemm.h"
#include "cpu/core/kernels.h"

static versus v;

/* A layer of X (m,k) and W (k,n), random where they are NULL. */
static void start(int64_t m, int64_t n, int64_t k, const float *x, const float *w) {
    versus_start(&v, "ai.sinter", "Linear");
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){m, k}, x);
    versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){k, n}, w);
    v.numerics = SNI_NUMERICS_STRASSEN;
}

static void sizes_match(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {
        {40, 128, 128},  {41, 130, 160},   {97, 300, 256}, {128, 384, 768}, {107, 131, 1600},
        {300, 200, 128}, {143, 161, 2304}, {39, 128, 128}, {128, 100, 130}, {64, 1000, 512}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int mode = 0; mode < 4; mode++) {
            int64_t m = sizes[i][0], n = sizes[i][1], k = sizes[i][2];
            start(m, n, k, NULL, NULL);
            if (mode & 1) versus_weight(&v, SN_FLOAT32, 1, &n, NULL);
            if (mode == 3) versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){m, n}, NULL);
            if (mode & 2) eval_attr(&v.e, sni_attr_of_string("activation", "Gelu"));
            versus_run(&v, 1, 3e-6 * sqrt((double)k));
        }
}

/* What the product of packed weights gives by seven products, by eight, or by seven for columns
 * that a file says may be added up. */
enum { EIGHT, STRASSEN, TOLD };
static void multiply(int64_t m, int64_t n, int64_t k, const float *a, const float *b, int way,
                     float *c) {
    float *packed =
        aligned_alloc(64, (sni_gemm_packed_b_size(k, n) * sizeof(float) + 63) / 64 * 64);
    uint8_t *even = malloc(sni_gemm_even_size(k, n) + 1);
    assert_true(packed && even && sni_gemm_even_size(k, n) > 0);
    sni_gemm_pack_b(b, n, 1, k, n, packed);
    sni_gemm_find_even(packed, k, n, even);
    if (way == TOLD) memset(even, 255, sni_gemm_even_size(k, n));
    sni_gemm_f32 g = {.m = m, .n = n, .k = k, .a = a, .a_row = k, .a_col = 1, .c = c, .c_row = n};
    g.packed_b = packed;
    g.even = way == EIGHT ? NULL : even;
    size_t size = sni_gemm_scratch_size(&g, 2) * sizeof(float);
    float *scratch = aligned_alloc(64, (size + 63) / 64 * 64);
    assert_non_null(scratch);
    sni_gemm_f32_run(&g, 2, scratch);
    free(scratch);
    free(even);
    free(packed);
}

enum { M = 98, N = 256, K = 768 };

/* Against double precision, of the largest result of each row and column: twice what plain products
 * err by, about. */
static void errors_are_bounded(void **state) {
    (void)state;
    float *a = product_floats(M * K, 1), *b = product_floats(K * N, 2),
          *c = product_floats(M * N, 3);
    multiply(M, N, K, a, b, STRASSEN, c);
    assert_true(product_worst(M, N, K, a, b, c, false) < 6e-6);
    assert_true(product_worst(M, N, K, a, b, c, true) < 6e-6);
    free(a);
    free(b);
    free(c);
}

/* Rows and columns that are much smaller than their neighbours keep their precision, and those that
 * are zero stay it. */
static void sizes_do_not_mix(void **state) {
    (void)state;
    static const float factors[] = {1, 1e-6f, 1e6f, 0, 1e-3f, 1e3f, 7};
    for (int transpose = 0; transpose < 14; transpose++) {
        float *a = product_floats(M * K, 4), *b = product_floats(K * N, 5),
              *c = product_floats(M * N, 6);
        float factor = factors[transpose / 2];
        for (int64_t i = 0; i < M && transpose % 2; i += 5)
            for (int64_t p = 0; p < K; p++) a[i * K + p] *= factor;
        for (int64_t j = 0; j < N && transpose % 2 == 0; j += 7)
            for (int64_t p = 0; p < K; p++) b[p * N + j] *= factor;
        multiply(M, N, K, a, b, STRASSEN, c);
        assert_true(product_worst(M, N, K, a, b, c, transpose % 2 == 0) < 3e-5);
        free(a);
        free(b);
        free(c);
    }
}

/* What is not finite, or overflows, is where the plain products have it. */
static void odd_numbers_stay(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e30f};
    for (int transpose = 0; transpose < 12; transpose++) {
        float *a = product_floats(M * K, 7), *b = product_floats(K * N, 8),
              *c = product_floats(M * N, 9), *d = product_floats(M * N, 9);
        if (transpose % 2)
            a[transpose * 37 % M * K + transpose * 101 % K] = odd[transpose / 2];
        else
            b[transpose * 101 % K * N + transpose * 37 % N] = odd[transpose / 2];
        multiply(M, N, K, a, b, STRASSEN, c);
        multiply(M, N, K, a, b, EIGHT, d);
        for (int64_t i = 0; i < M * N; i++) {
            double x = (double)c[i], y = (double)d[i];
            bool same = isnan(y) ? isnan(x) : x == y || fabs(x - y) <= 1e-4 * fmax(1, fabs(y));
            if (!same) fail_msg("element %lld: %g, not %g", (long long)i, x, y);
        }
        free(a);
        free(b);
        free(c);
        free(d);
    }
}

/* Flags that come from a file can be anything: the last panel of an odd number has no partner. */
static void flags_do_not_matter(void **state) {
    (void)state;
    int64_t nr = sni_cpu_kernels_get()->nr, n = 7 * nr - 3;
    float *a = product_floats(M * K, 10), *b = product_floats(K * n, 11),
          *c = product_floats(M * n, 12);
    multiply(M, n, K, a, b, TOLD, c);
    assert_true(product_worst(M, n, K, a, b, c, false) < 6e-6);
    free(a);
    free(b);
    free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_match),         cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(sizes_do_not_mix),    cmocka_unit_test(odd_numbers_stay),
        cmocka_unit_test(flags_do_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
