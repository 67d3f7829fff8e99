/* test_cpu_half.c - weights that stay in 16 bits: every number as float32, products to the bit
 * those of the same weights as floats, and products of bfloat16 with their own roundings. Run once
 * per tier (SINTER_ISA). */
#include "gemm_products.h"

#include "cpu/gemm/bf16.h"
#include "cpu/gemm/dense.h"
#include "cpu/gemm/gemm_blocks.h"
#include "cpu/gemm/matmul_algorithms.h"

static const sn_dtype types[SNI_HALF_TYPES] = {SN_FLOAT16, SN_BFLOAT16};

static bool same_bits(float a, float b) {
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

static void *room_new(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    assert_non_null(p);
    memset(p, 0, (bytes + 64) / 64 * 64);
    return p;
}

/* ---- Numbers ---- */

static void every_number(void **state) {
    (void)state;
    enum { CODES = 1 << 16, ODD = 3 };
    uint16_t *codes = malloc((CODES + ODD) * sizeof *codes);
    float *wide = malloc(CODES * sizeof *wide);
    assert_non_null(codes);
    assert_non_null(wide);
    for (int type = 0; type < SNI_HALF_TYPES; type++)
        for (int odd = 0; odd <= ODD; odd += ODD) {
            for (int i = 0; i < CODES; i++) codes[i + odd] = (uint16_t)i;
            sni_half_kernels_get()->widen[type](CODES - odd, codes + odd, wide);
            for (int i = 0; i < CODES - odd; i++) {
                float want = sni_narrow_to_f32(types[type], &codes[i + odd]);
                if (!same_bits(wide[i], want))
                    fail_msg("%04x is %g, not %g", (unsigned)i, (double)wide[i], (double)want);
            }
        }
    free(codes);
    free(wide);
}

/* ---- Packing ---- */

static uint64_t seed = 5;

/* Random codes, those of NaN and infinities among them if `special`. */
static uint16_t *codes_new(int64_t count, int type, bool special) {
    uint16_t *codes = malloc((size_t)(count + 1) * sizeof *codes);
    assert_non_null(codes);
    for (int64_t i = 0; i < count; i++) {
        float x = (float)(int)(unit_random(&seed) % 20001) / 10000.0f - 1.0f;
        codes[i] = type == SNI_HALF_BF16 ? sni_f32_to_bf16(x) : sni_f32_to_f16(x);
        if (special && unit_random(&seed) % 37 == 0) codes[i] = (uint16_t)unit_random(&seed);
    }
    return codes;
}

static const int64_t sizes[][2] = {{1, 1},    {2, 33},   {15, 64},  {16, 31},    {17, 8},
                                   {33, 100}, {768, 40}, {769, 33}, {1550, 129}, {3073, 16}};

/* Panels as floats are the panels of floats, whatever the strides and the address. */
static void panels_match(void **state) {
    (void)state;
    int nr = sni_cpu_kernels_get()->nr;
    for (size_t s = 0; s < 2 * 2 * sizeof sizes / sizeof *sizes; s++) {
        int64_t k = sizes[s / 4][0], n = sizes[s / 4][1], depth = sni_gemm_depth(k);
        int type = s & 1;
        bool transposed = s & 2;
        uint16_t *b = codes_new(k * n, type, true);
        char *anywhere = malloc((size_t)(k * n) * sizeof *b + 1);
        assert_non_null(anywhere);
        memcpy(anywhere + 1, b, (size_t)(k * n) * sizeof *b);
        size_t bytes = sni_half_size(k, n) * sizeof *b;
        unsigned char *packed = versus_guarded(bytes);
        memset(packed, 0, bytes);
        sni_half_source from = {anywhere + 1, transposed ? 1 : n, transposed ? k : 1, false};
        sni_half_pack(&from, k, n, type, (uint16_t *)(void *)packed);
        sni_half_b half = {type, (uint16_t *)(void *)packed};
        float *rows = room_new((size_t)(depth * nr) * sizeof *rows);
        for (int64_t p = 0; p < k; p += depth)
            for (int64_t j = 0; j < n; j += nr) {
                int64_t kc = sni_min(depth, k - p);
                sni_half_kernels_get()->panel[type](kc, sni_half_panel(&half, n, nr, p, kc, j),
                                                    rows);
                for (int64_t i = 0; i < kc * nr; i++) {
                    int64_t row = p + i / nr, column = j + i % nr;
                    uint16_t code =
                        column < n ? b[transposed ? column * k + row : row * n + column] : 0;
                    assert_true(same_bits(rows[i], sni_narrow_to_f32(types[type], &code)));
                }
            }
        free(rows);
        free(anywhere);
        free(b);
        drop(packed, bytes, "panels");
    }
}

/* ---- Products ---- */

static void run_product(const sni_gemm_f32 *g, int threads) {
    size_t size = sni_gemm_scratch_size(g, threads) * sizeof(float);
    unsigned char *scratch = versus_guarded(size);
    sni_gemm_f32_run(g, threads, (float *)(void *)scratch);
    drop(scratch, size, "scratch");
}

/* Row and tiles have the bits that floats have. Numbers of all kinds are in both operands. */
static void check_exact(int64_t m, int64_t n, int64_t k, int type, bool special) {
    uint16_t *codes = codes_new(k * n, type, special);
    product p = product_new(m, n, k, 3);
    sni_widen(types[type], codes, p.b, (size_t)(k * n));
    if (special)
        for (int64_t i = 0; i < m * k; i += 41) p.a[i] = i % 2 ? INFINITY : 1e-41f;
    float *floats = room_new(sni_gemm_packed_b_size(k, n) * sizeof *floats);
    uint16_t *halves = room_new(sni_half_size(k, n) * sizeof *halves);
    float *want = room_new((size_t)(m * n) * sizeof *want), *bias = product_floats(n, 4);
    sni_gemm_pack_b(p.b, n, 1, k, n, floats);
    sni_half_pack(&(sni_half_source){codes, n, 1, false}, k, n, type, halves);
    sni_half_b half = {type, halves};
    sni_gemm_f32 g = gemm_of(&p);
    g.epilogue = (sni_epilogue){.act = SNI_ACT_RELU, .column_bias = bias};
    g.packed_b = floats;
    run_product(&g, 1);
    memcpy(want, p.c, (size_t)(m * n) * sizeof *want);
    g.packed_b = NULL;
    g.half_b = &half;
    for (int threads = 1; threads <= 3; threads++) {
        memset(p.c, 0xA5, (size_t)(m * n) * sizeof *p.c);
        run_product(&g, threads);
        for (int64_t i = 0; i < m * n; i++)
            if (!same_bits(p.c[i], want[i]))
                fail_msg("%lld by %lld by %lld, element %lld: %g, not %g", (long long)m,
                         (long long)k, (long long)n, (long long)i, (double)p.c[i], (double)want[i]);
    }
    free(codes);
    free(floats);
    free(halves);
    free(want);
    free(bias);
    product_free(&p);
}

static void products_are_exact(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, 13, 45, 170};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int mode = 0; mode < 4; mode++)
                check_exact(rows[r], sizes[s][1], sizes[s][0], mode & 1, mode & 2);
}

/* ---- Products of bfloat16 ---- */

static void multiply_bf16(sni_gemm_f32 g, const float *b, int way, int threads) {
    uint16_t *halves = room_new(sni_half_size(g.k, g.n) * sizeof *halves);
    (void)way;
    sni_half_pack(&(sni_half_source){b, g.n, 1, true}, g.k, g.n, SNI_HALF_BF16, halves);
    sni_half_b half = {SNI_HALF_BF16, halves};
    g.half_b = &half;
    g.round_left = true;
    const sni_gemm_algorithm *row = sni_gemm_algorithm_named("bf16");
    if (!g.add) assert_true(row->supports(&g));
    if (row->supports(&g)) g.use = row;
    run_product(&g, threads);
    free(halves);
}

static void round_all(float *x, int64_t count) {
    for (int64_t i = 0; i < count; i++) x[i] = sni_bf16_to_f32(sni_f32_to_bf16(x[i]));
}

/* Of numbers that are bfloat16 already the products are as good as those of floats. */
static void bf16_products(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 40, 48},   {3, 33, 16},   {14, 32, 800},
                                        {15, 64, 784}, {50, 97, 144}, {129, 31, 1600},
                                        {200, 300, 64}};
    if (!sni_bf16_kernels_get()) skip();
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        product p = product_new(shapes[s][0], shapes[s][1], shapes[s][2], 8);
        round_all(p.a, p.m * p.k);
        round_all(p.b, p.k * p.n);
        double error = threads_agree(multiply_bf16, &p, 0);
        if (!(error < 4e-7 * sqrt((double)p.k) + 1e-6)) fail_msg("error %g", error);
        product_free(&p);
    }
}

/* Numbers that are not finite reach the results of their rows and columns, and no others. */
static void bf16_special(void **state) {
    (void)state;
    if (!sni_bf16_kernels_get()) skip();
    product p = product_new(30, 70, 96, 2);
    for (int64_t i = 0; i < p.m * p.k; i++) p.a[i] = fabsf(p.a[i]) + 1;
    for (int64_t i = 0; i < p.k * p.n; i++) p.b[i] = fabsf(p.b[i]) + 1;
    p.a[3 * p.k + 7] = NAN;
    p.a[20 * p.k + 95] = INFINITY;
    p.b[11 * p.n + 69] = -INFINITY;
    multiply_bf16(gemm_of(&p), p.b, 0, 2);
    for (int64_t i = 0; i < p.m; i++)
        for (int64_t j = 0; j < p.n; j++) {
            float got = p.c[i * p.n + j];
            bool lost = i == 3 || (i == 20 && j == 69), infinite = i == 20 || j == 69;
            if (lost ? !isnan(got) : infinite ? !isinf(got) : !isfinite(got))
                fail_msg("%lld, %lld: %g", (long long)i, (long long)j, (double)got);
        }
    product_free(&p);
}

/* ---- Layers ---- */

static versus v;

/* A Linear whose weights are made of narrow numbers. */
static void layers_match(void **state) {
    (void)state;
    static const int64_t shapes[][3] = {{1, 130, 97}, {5, 64, 768}, {70, 33, 129}, {33, 200, 800}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int mode = 0; mode < 8; mode++) {
            int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2];
            bool transposed = mode & 1;
            versus_start(&v, "ai.sinter", "Linear");
            v.special = mode & 4 ? 500 : 0;
            versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){m, k}, NULL);
            v.special = 0;
            versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){transposed ? n : k, transposed ? k : n},
                          NULL);
            versus_narrow(&v, 1, types[mode >> 1 & 1]);
            versus_weight(&v, SN_FLOAT32, 1, &n, NULL);
            eval_attr(&v.e, sni_attr_of_int("trans_w", transposed));
            versus_run(&v, 1, 3e-6 * sqrt((double)k));
        }
}

/* What a session's precision rounds: errors are those of the weights, and not less. */
static void precision_rounds(void **state) {
    (void)state;
    static const struct {
        uint32_t family;
        double error;
    } cases[] = {{0, 2e-6},
                 {SNI_NUMERICS_TO_TF32, 6e-4},
                 {SNI_NUMERICS_TO_FP16, 6e-4},
                 {SNI_NUMERICS_TO_BF16, 8e-3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        versus_start(&v, "ai.sinter", "Linear");
        versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){40, 256}, NULL);
        versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){256, 96}, NULL);
        v.numerics = cases[i].family;
        versus_run(&v, 1, cases[i].error * sqrt(256));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number),       cmocka_unit_test(panels_match),
        cmocka_unit_test(products_are_exact), cmocka_unit_test(bf16_products),
        cmocka_unit_test(bf16_special),       cmocka_unit_test(layers_match),
        cmocka_unit_test(precision_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
