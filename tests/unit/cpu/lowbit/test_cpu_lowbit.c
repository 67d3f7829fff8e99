/* test_cpu_lowbit.c - products with weights of few bits against the reference kernels: every number
 * of bits, blocks, zero points of every form, groups by g_idx, odd shapes, numbers that are not
 * finite. Run once per tier (SINTER_ISA). */
#include "versus.h"

#include "cpu/lowbit/lowbit.h"

static versus v;

static int64_t draw(int64_t n) {
    return (int64_t)(unit_random(&v.seed) % (uint32_t)n);
}

typedef enum zeros { NO_ZEROS, PACKED_ZEROS, FLOAT_ZEROS, ZERO_KINDS } zeros;

typedef struct problem {
    int bits;
    int64_t m, n, k, block;
    zeros zero;
    int level;
    bool bias, halves; /* scales that float16 holds */
    int groups;        /* 1: g_idx mixes whole groups; 2: at random */
    int odd_scales;    /* one in so many is zero, negative, NaN or infinite; 0: none */
    bool exact;        /* bytes hold the rows of A as they are */
    int special;       /* of versus.h, for A */
} problem;

static void put_int(const char *name, int64_t value) {
    eval_attr(&v.e, sni_attr_of_int(name, value));
}

/* Rows of A. Exact ones are whole numbers of a power of two, and each block's greatest is 127. */
static void put_rows(const problem *p) {
    const int64_t dims[] = {p->m, p->k};
    const int64_t block = p->block < SNI_LOWBIT_BLOCK ? p->block : SNI_LOWBIT_BLOCK;
    float *a = malloc((size_t)(p->m * p->k + 1) * sizeof *a);
    assert_non_null(a);
    v.special = p->special;
    for (int64_t i = 0; i < p->m * p->k; i++) {
        a[i] = versus_float(&v);
        if (!p->exact) continue;
        a[i] = (float)(draw(255) - 127) / 128;
        if (i % p->k % block == 0) a[i] = draw(2) ? 127.0f / 128 : -127.0f / 128;
    }
    v.special = 0;
    versus_tensor(&v, SN_FLOAT32, 2, dims, a);
    free(a);
}

static void put_scales(const problem *p, int64_t count) {
    static const float odd[] = {0, -0.01f, NAN, INFINITY, -INFINITY, 1e38f};
    float *s = malloc((size_t)count * sizeof *s);
    assert_non_null(s);
    for (int64_t i = 0; i < count; i++) {
        s[i] = (float)(draw(1000) + 500) * 1e-6f;
        if (p->halves) s[i] = sni_f16_to_f32(sni_f32_to_f16(s[i]));
        if (p->odd_scales && draw(p->odd_scales) == 0) s[i] = odd[draw(6)];
    }
    versus_weight(&v, SN_FLOAT32, 1, &count, s);
    free(s);
}

static void put_zeros(const problem *p, int64_t groups) {
    int64_t bytes = p->n * ((groups * p->bits + 7) / 8), count = p->n * groups;
    if (p->zero == NO_ZEROS) versus_without(&v);
    if (p->zero == PACKED_ZEROS) versus_weight(&v, SN_UINT8, 1, &bytes, NULL);
    if (p->zero != FLOAT_ZEROS) return;
    float *z = malloc((size_t)count * sizeof *z);
    assert_non_null(z);
    for (int64_t i = 0; i < count; i++) z[i] = (float)draw(1 << p->bits) + (float)draw(100) / 100;
    versus_weight(&v, SN_FLOAT32, 1, &count, z);
    free(z);
}

static void put_groups(const problem *p, int64_t groups) {
    int32_t *g = malloc((size_t)p->k * sizeof *g);
    assert_non_null(g);
    if (!p->groups) {
        versus_without(&v);
        free(g);
        return;
    }
    for (int64_t i = 0; i < p->k; i++)
        g[i] = (int32_t)(p->groups == 1 ? i * 7 % p->k / p->block : draw(groups));
    versus_weight(&v, SN_INT32, 1, &p->k, g);
    free(g);
}

static void check(const problem *p, double tolerance) {
    int64_t groups = (p->k + p->block - 1) / p->block;
    int64_t weights[] = {p->n, groups, p->block * p->bits / 8};
    versus_start(&v, "com.microsoft", "MatMulNBits");
    put_int("K", p->k);
    put_int("N", p->n);
    put_int("bits", p->bits);
    put_int("block_size", p->block);
    put_int("accuracy_level", p->level);
    put_rows(p);
    versus_weight(&v, SN_UINT8, 3, weights, NULL);
    put_scales(p, p->n * groups);
    put_zeros(p, groups);
    put_groups(p, groups);
    if (p->bias) versus_tensor(&v, SN_FLOAT32, 1, &p->n, NULL);
    versus_run(&v, 1, tolerance);
}

/* Sums of up to 500 products of numbers up to 1 and weights up to 0.4 in size. */
static const double floats_differ = 2e-5;
/* A number of a block errs by 1/254 of its greatest at most. */
static const double bytes_differ = 0.3;

static void every_kind(int level) {
    static const int64_t blocks[] = {16, 32, 64, 128, 256, 512};
    for (int bits = 2; bits <= 8; bits *= 2)
        for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
            for (int zero = 0; zero < ZERO_KINDS; zero++)
                for (int groups = 0; groups < 3; groups++) {
                    problem p = {.bits = bits,
                                 .m = 1 + draw(4),
                                 .n = 1 + draw(40),
                                 .k = 1 + draw(500),
                                 .block = blocks[b],
                                 .zero = (zeros)zero,
                                 .level = level,
                                 .bias = draw(2),
                                 .halves = draw(2),
                                 .groups = groups,
                                 .exact = level == 4 && groups == 0};
                    check(&p, level == 4 && groups ? bytes_differ : floats_differ);
                }
}

static void floats_match(void **state) {
    (void)state;
    every_kind(0);
}

static void bytes_match(void **state) {
    (void)state;
    every_kind(4);
}

static void any_number_of_rows(void **state) {
    (void)state;
    for (int64_t m = 0; m <= 40; m++)
        for (int level = 0; level <= 4; level += 4)
            for (int bits = 2; bits <= 8; bits *= 2) {
                problem p = {.bits = bits, .m = m, .n = 35, .k = 95, .block = 32, .level = level};
                p.zero = (zeros)draw(ZERO_KINDS);
                p.exact = level == 4;
                check(&p, floats_differ);
            }
}

/* Greatest bytes against greatest weights: sums of 16 bits stay within them. */
static void extremes_do_not_saturate(void **state) {
    (void)state;
    for (int bits = 2; bits <= 8; bits *= 2)
        for (int64_t block = 16; block <= 256; block *= 2) {
            const int64_t k = 512, a_dims[] = {1, k};
            const int64_t weights[] = {16, k / block, block * bits / 8}, count = 16 * k / block;
            unsigned char *q = malloc((size_t)(16 * k));
            float a[512], s[512];
            assert_non_null(q);
            memset(q, 0xff, (size_t)(16 * k));
            for (int64_t i = 0; i < k; i++) a[i] = draw(64) ? 127 : -127;
            for (int64_t i = 0; i < count; i++) s[i] = 1;
            versus_start(&v, "com.microsoft", "MatMulNBits");
            put_int("K", k);
            put_int("N", 16);
            put_int("bits", bits);
            put_int("block_size", block);
            put_int("accuracy_level", 4);
            versus_tensor(&v, SN_FLOAT32, 2, a_dims, a);
            versus_weight(&v, SN_UINT8, 3, weights, q);
            versus_weight(&v, SN_FLOAT32, 1, &count, s);
            memset(q, 0, (size_t)(16 * k));
            int64_t zero_bytes = 16 * ((k / block * bits + 7) / 8);
            versus_weight(&v, SN_UINT8, 1, &zero_bytes, q);
            free(q);
            versus_run(&v, 1, 1e-6);
        }
}

static void numbers_that_are_not_finite(void **state) {
    (void)state;
    for (int i = 0; i < 120; i++) {
        problem p = {.bits = 2 << i % 3, .m = 1 + draw(14), .n = 1 + draw(40)};
        p.block = 16 << draw(3);
        p.k = 1 + draw(300);
        p.zero = (zeros)draw(ZERO_KINDS);
        p.level = i % 2 ? 4 : 0;
        p.exact = true;
        if (i % 4 < 2) p.odd_scales = 20;
        check(&p, floats_differ);
        p.exact = false; /* a row with such a number is multiplied as floats */
        p.odd_scales = 0;
        p.level = 0;
        p.special = 600; /* rarely two in a row, whose products might cancel out */
        check(&p, floats_differ);
    }
}

static void rows_of_odd_numbers_stay_floats(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        problem p = {.bits = 4, .m = 1 + draw(3), .n = 20, .k = 64, .block = 32, .level = 4};
        p.special = 3; /* hardly a row has none */
        check(&p, floats_differ);
    }
}

/* Errors of a product with one row and of plain sums of floats, against sums in double. */
static void few_rows_are_as_exact_as_floats(void **state) {
    (void)state;
    enum { N = 48, K = 2048, BLOCK = 32 };
    const int64_t groups = K / BLOCK;
    sni_lowbit w = {.bits = 4, .n = N, .k = K, .block = BLOCK, .blocks = groups};
    assert_true(sni_lowbit_layout(&w));
    uint8_t *q = malloc(N * K / 2), plain[N];
    float *scales = malloc(sizeof(float) * N * (size_t)groups), a[K], c[N];
    w.panels = aligned_alloc(64, w.panel_bytes * (size_t)sni_lowbit_panels(&w));
    w.plain = plain;
    assert_true(q && scales && w.panels);
    for (int64_t i = 0; i < N * K / 2; i++) q[i] = (uint8_t)unit_random(&v.seed);
    for (int64_t i = 0; i < N * groups; i++) scales[i] = (float)(draw(1000) + 500) * 1e-6f;
    for (int outliers = 0; outliers < 2; outliers++) {
        for (int64_t i = 0; i < K; i++)
            a[i] = versus_float(&v) * (outliers && draw(50) == 0 ? 100.0f : 1.0f);
        sni_lowbit_source s = {.q = q,
                               .row_bytes = K / 2,
                               .group = BLOCK,
                               .groups = groups,
                               .scale_type = SN_FLOAT32,
                               .scales = scales};
        sni_lowbit_pack(&w, &s, 1);
        sni_lowbit_call call = {.w = &w, .m = 1, .a = a, .c = c, .threads = 1};
        void *scratch = aligned_alloc(64, (sni_lowbit_scratch_size(&call) + 63) / 64 * 64);
        assert_non_null(scratch);
        sni_lowbit_run(&call, scratch);
        double ours = 0, floats = 0;
        for (int64_t j = 0; j < N; j++) {
            double exact = 0;
            float sum = 0;
            for (int64_t p = 0; p < K; p++) {
                exact += (double)a[p] * (double)sni_lowbit_element(&w, j, p);
                sum += a[p] * sni_lowbit_element(&w, j, p);
            }
            ours = fmax(ours, fabs((double)c[j] - exact));
            floats = fmax(floats, fabs((double)sum - exact));
        }
        if (getenv("SINTER_TEST_FIGURES"))
            printf("errors: %.3g, of plain sums %.3g\n", ours, floats);
        assert_true(ours <= floats);
        free(scratch);
    }
    free(q);
    free(scales);
    free(w.panels);
}

static void bnb_matches(void **state) {
    (void)state;
    for (int i = 0; i < 60; i++) {
        int64_t block = 16 << draw(6), k = 16 * (1 + draw(20)), n = 1 + draw(50), m = 1 + draw(14);
        int64_t count = (n * k + 1) / 2, scales = (n * k - 1) / block + 1, dims[] = {m, k};
        versus_start(&v, "com.microsoft", "MatMulBnb4");
        put_int("K", k);
        put_int("N", n);
        put_int("block_size", block);
        put_int("quant_type", i % 2);
        versus_tensor(&v, SN_FLOAT32, 2, dims, NULL);
        versus_weight(&v, SN_UINT8, 1, &count, NULL);
        versus_weight(&v, SN_FLOAT32, 1, &scales, NULL);
        versus_run(&v, 1, floats_differ);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(floats_match),
                                       cmocka_unit_test(bytes_match),
                                       cmocka_unit_test(any_number_of_rows),
                                       cmocka_unit_test(extremes_do_not_saturate),
                                       cmocka_unit_test(numbers_that_are_not_finite),
                                       cmocka_unit_test(rows_of_odd_numbers_stay_floats),
                                       cmocka_unit_test(few_rows_are_as_exact_as_floats),
                                       cmocka_unit_test(bnb_matches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
