/* test_cpu_inner_product.c - Winograd's inner products (cpu/gemm/inner_product.h) against double
 * precision and plain products: sizes of every remainder, what follows a product, rows and columns
 * of different sizes, NaN and infinities, and what a file may say. They are made here whether they
 * are quicker or not.
 */
#include "gemm_products.h"

#include "cpu/gemm/gemm_blocks.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/gemm/matmul_algorithms.h"

static versus v;

/* ---- Layers ---- */

/* Layers that may be computed so, where that is quicker; with slopes, too, and beside strassen. */
static void layers_match(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{14, 48, 48},   {41, 130, 160},  {98, 300, 768},
                                       {27, 63, 1600}, {128, 64, 2304}, {13, 48, 48},
                                       {40, 47, 64},   {60, 96, 100},   {200, 1000, 512}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int mode = 0; mode < 8; mode++)
            check_layer(&v, sizes[i], mode, (int)i, SNI_NUMERICS_INNER_PRODUCT,
                        SNI_NUMERICS_STRASSEN);
}

/* ---- Products ---- */

/* Ways of making a product: plainly, as inner products, those with columns of one size, and those
 * with what a file says instead of what was measured. */
enum { PLAIN, INNER, SCALED, TOLD, TOLD_SCALED };

static uint64_t told = 1; /* where what files say begins */

static void fill_bytes(unsigned char *p, size_t n) {
    for (size_t i = 0; i < n; i++) p[i] = (unsigned char)(unit_random(&told) >> 8);
}

static bool unsuited; /* products are not of a kind that inner products are for */

/* Makes product g with B (k,n), which is packed first. `tame` is the number of its panels that are
 * computed so; it may be NULL. */
static void multiply(sni_gemm_f32 g, const float *b, int way, int threads, int *tame) {
    bool scaled = way == SCALED || way == TOLD_SCALED;
    size_t sizes[] = {sni_gemm_packed_b_size(g.k, g.n) * sizeof(float),
                      sni_inner_product_numbers(g.k, g.n, scaled) * sizeof(float),
                      sni_inner_product_flags(g.n)};
    void *packed = versus_guarded(sizes[0]), *numbers = versus_guarded(sizes[1]),
         *flags = versus_guarded(sizes[2]);
    sni_gemm_pack_b(b, g.n, 1, g.k, g.n, packed);
    if (way != PLAIN && g.k % SNI_LEFT_STEPS == 0)
        sni_inner_product_measure(packed, g.k, g.n, scaled, numbers, flags);
    if (way >= TOLD) {
        fill_bytes(numbers, sizes[1]);
        fill_bytes(flags, sizes[2]);
    }
    sni_inner_product_b inner_product = {g.k, g.n, packed, numbers, flags, scaled};
    g.packed_b = packed;
    g.inner_product = way == PLAIN ? NULL : &inner_product;
    const sni_gemm_algorithm *row = sni_gemm_algorithm_named("inner-product");
    g.use = row; /* whatever it costs here */
    bool runs = sni_gemm_choose(&g, sni_costs_get()) == row;
    assert_int_equal(runs, way != PLAIN && !unsuited);
    size_t size = sni_gemm_scratch_size(&g, threads) * sizeof(float);
    void *scratch = versus_guarded(size);
    sni_gemm_f32_run(&g, threads, scratch);
    for (size_t i = 0; tame && i < sizes[2]; i++) *tame += inner_product.tame[i];
    drop(scratch, size, "scratch");
    drop(flags, sizes[2], "flags");
    drop(numbers, sizes[1], "numbers");
    drop(packed, sizes[0], "packed B");
}

static void multiply_so(sni_gemm_f32 g, const float *b, int way, int threads) {
    multiply(g, b, way, threads, NULL);
}

enum { M = 98, N = 256, K = 768 };

/* Every remainder of rows and columns, odd numbers of lines, several k-blocks. Errors were up to
 * 1e-7 times the root of the number of terms (plain products: 8e-8). */
static void sizes_match(void **state) {
    (void)state;
    static const int64_t rows[] = {14, 15, 19, 26, 27, 33, 40, 53, 97, 170};
    static const int64_t columns[] = {64, 80, 81, 95, 96, 97, 111, 193};
    static const int64_t terms[] = {112, 128, 144, 176, 768, 784, 1552, 1600, 2304};
    int transpose = 0;
    for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
        for (size_t p = 0; p < sizeof terms / sizeof *terms; p++, transpose++) {
            int64_t m = rows[(size_t)transpose % (sizeof rows / sizeof *rows)];
            product q = product_new(m, columns[j], terms[p], 100 + (uint64_t)transpose);
            for (int way = INNER; way <= SCALED; way++) {
                double error = threads_agree(multiply_so, &q, way), most = 2e-7 * sqrt((double)q.k);
                if (!(error < most))
                    fail_msg("%lld %lld %lld: %g", (long long)q.m, (long long)q.n, (long long)q.k,
                             error);
            }
            product_free(&q);
        }
}

/* Products that do not suit, and ends that inner products do not have, are made as if nothing were
 * said of them. */
static void others_are_plain(void **state) {
    (void)state;
    int64_t most = sni_inner_product_most();
    int64_t sizes[][3] = {{most, 96, 128}, {1, 96, 128}, {40, 96, 136}, {40, 96, 128}};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < SIZES + 3; i++) {
        const int64_t *s = sizes[i < SIZES ? i : SIZES - 1];
        product p = product_new(s[0], s[1], s[2], 200), q = product_new(s[0], s[1], s[2], 200);
        for (int way = PLAIN; way <= INNER; way++) {
            sni_gemm_f32 g = gemm_of(way == PLAIN ? &p : &q);
            if (i == SIZES) g.scale = 2;
            if (i == SIZES + 1) g.epilogue.row_bias = p.b;
            if (i == SIZES + 2) { /* transposed */
                g.a_row = 1;
                g.a_col = g.m;
            }
            unsuited = i != SIZES - 1;
            multiply(g, p.b, way, 2, NULL);
        }
        bool same = memcmp(p.c, q.c, (size_t)(p.m * p.n) * sizeof *p.c) == 0;
        assert_int_equal(same, i != SIZES - 1);
        product_free(&p);
        product_free(&q);
    }
    unsuited = false;
}

/* ---- Ends ---- */

static void ends_match(void **state) {
    (void)state;
    check_ends(multiply_so, INNER);
    check_ends(multiply_so, SCALED);
}

static bool at_once(const void *ctx) {
    (void)ctx;
    return true;
}

/* A product that is stopped before it begins writes nothing. */
static void stops(void **state) {
    (void)state;
    product p = product_new(M, N, K, 20);
    sni_gemm_f32 g = gemm_of(&p);
    size_t bytes = (size_t)(M * N) * sizeof *p.c;
    unsigned char *same = malloc(bytes);
    assert_non_null(same);
    memset(same, 0xA5, bytes);
    g.stop = at_once;
    multiply(g, p.b, INNER, 2, NULL);
    assert_memory_equal(p.c, same, bytes);
    free(same);
    product_free(&p);
}

/* ---- Errors ---- */

/* Against double precision, of the largest result of each row and column, for AVX-512, whose
 * k-blocks are the longest; the others err less. Plain products
 * have 1.7e-6, 2.5e-6, 1.9e-6, 1.3e-6, 2.9e-6 and 1.2e-5, and inner products were seen to
 * have 2.0e-6, 3.1e-6, 1.5e-6, 1.9e-6, 5.5e-6 and 1.7e-5. The root of the mean square, which
 * depends less on chance, is 0.8 to 1.35 times that of plain products. */
static void errors_are_bounded(void **state) {
    (void)state;
    static const double bounds[KINDS] = {4e-6, 6e-6, 4e-6, 4e-6, 1e-5, 3e-5};
    for (int kind = 0; kind < KINDS; kind++) {
        double means[3];
        for (int way = PLAIN; way <= SCALED; way++) {
            product p = product_new(M, N, K, 1);
            int tame = 0;
            make_kind(&p, kind);
            multiply(gemm_of(&p), p.b, way, 2, &tame);
            double error = error_of(&p);
            means[way] = product_error(p.m, p.n, p.k, p.a, p.b, p.c);
            if (!(error < bounds[kind]) || !(means[way] < 1.7 * means[PLAIN]))
                fail_msg("kind %d by %d: %g, mean %g, not %g", kind, way, error, means[way],
                         means[PLAIN]);
            if (way != PLAIN) assert_int_equal(tame, sni_inner_product_flags(N));
            product_free(&p);
        }
        assert_true(means[INNER] != means[PLAIN]);
    }
}

/* Some rows, or some columns, times a factor: each keeps its precision, against its own largest
 * result. Columns that stay up to 8 times larger or smaller than others lose some (7.3e-6 where
 * plain products have 1.5e-6); all others have 2.7e-6 at most. */
static void check_sizes(float factor, bool by_column, int way) {
    product p = product_new(M, N, K, 4);
    for (int64_t i = 0; i < M && !by_column; i += 5) scale_row(&p, i, factor);
    for (int64_t j = 0; j < N && by_column; j += 7) scale_column(&p, j, factor);
    multiply(gemm_of(&p), p.b, way, 2, NULL);
    double error = product_worst(M, N, K, p.a, p.b, p.c, by_column);
    bool near = way == INNER && by_column && factor > 0.1f && factor < 12;
    if (!(error < (near ? 1.5e-5 : 5e-6)))
        fail_msg("%s times %g by %d: %g", by_column ? "columns" : "rows", (double)factor, way,
                 error);
    product_free(&p);
}

/* Rows and columns that are much smaller or larger than their neighbours keep their precision, and
 * those that are zero stay it. */
static void sizes_do_not_mix(void **state) {
    (void)state;
    static const float factors[] = {1,  1e-6f,  1e6f,  0,      1e-3f, 1e3f,   7,    0.15f,
                                    10, 1e-12f, 1e12f, 1e-18f, 1e18f, 1e-21f, 1e22f};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        for (int transpose = 0; transpose < 4; transpose++)
            check_sizes(factors[i], transpose & 1, transpose & 2 ? SCALED : INNER);
}

/* Rows and columns are not zero because their squares are. */
static void small_rows_stay(void **state) {
    (void)state;
    static const float factors[] = {1e-23f, 1e-25f, 1e-30f};
    for (int i = 0; i < 3; i++)
        for (int way = INNER; way <= SCALED; way++) check_sizes(factors[i], false, way);
}

static void small_columns_stay(void **state) {
    (void)state;
    static const float factors[] = {1e-23f, 1e-25f, 1e-30f};
    for (int i = 0; i < 3; i++)
        for (int way = INNER; way <= SCALED; way++) check_sizes(factors[i], true, way);
}

/* Rows at one end of what floats hold by columns that bring their results back to the middle: where
 * columns are brought to one size, they still meet. */
static void far_sizes_meet(void **state) {
    (void)state;
    static const float factors[][2] = {{3e38f, 1e-6f}, {1e36f, 1e-12f}, {1e-37f, 1e6f}};
    for (int i = 0; i < 3; i++)
        for (int way = INNER; way <= SCALED; way++) {
            product p = product_new(M, N, K, 4);
            make_kind(&p, BOTH_POSITIVE);
            for (int64_t r = 0; r < M; r += 5) scale_row(&p, r, factors[i][0]);
            for (int64_t j = 0; j < N; j++) scale_column(&p, j, factors[i][1]);
            multiply(gemm_of(&p), p.b, way, 2, NULL);
            double error = product_worst(M, N, K, p.a, p.b, p.c, false);
            if (!(error < 5e-6))
                fail_msg("%g by %g, way %d: %g", (double)factors[i][0], (double)factors[i][1], way,
                         error);
            product_free(&p);
        }
}

/* Rows and columns of which one k-block is much larger than others, or zero. */
static void blocks_differ(void **state) {
    (void)state;
    static const float factors[] = {1e-6f, 1e6f, 0, 1e-15f};
    for (int i = 0; i < 4; i++)
        for (int transpose = 0; transpose < 4; transpose++) {
            product p = product_new(41, 96, 1600, 30);
            for (int64_t q = 0; q < p.k / 2; q++) {
                for (int64_t r = 0; r < p.m && transpose & 1; r += 2)
                    p.a[r * p.k + q] *= factors[i];
                for (int64_t r = 0; r < p.n && !(transpose & 1); r += 3)
                    p.b[q * p.n + r] *= factors[i];
            }
            double error = threads_agree(multiply_so, &p, transpose & 2 ? SCALED : INNER);
            if (!(error < 8e-6))
                fail_msg("factor %g, turn %d: %g", (double)factors[i], transpose, error);
            product_free(&p);
        }
}

/* Columns that are more than 8 times larger or smaller than others make their panel plain, unless
 * they are scaled. */
static void panels_are_told_apart(void **state) {
    (void)state;
    static const struct {
        float factor;
        int lost, lost_scaled;
    } cases[] = {{7, 0, 0},     {0.15f, 0, 0}, {9.5f, 1, 0},     {0.1f, 1, 0},  {0, 1, 0},
                 {1e30f, 1, 1}, {NAN, 1, 1},   {INFINITY, 1, 1}, {1e-16f, 1, 1}};
    int64_t nr = sni_cpu_kernels_get()->nr;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int way = INNER; way <= SCALED; way++) {
            product p = product_new(40, 20 * nr, 64, 40);
            int tame = 0;
            scale_column(&p, 2 * nr + 5, cases[i].factor);
            multiply(gemm_of(&p), p.b, way, 1, &tame);
            assert_int_equal(tame, 20 - (way == SCALED ? cases[i].lost_scaled : cases[i].lost));
            product_free(&p);
        }
}

/* ---- Odd numbers ---- */

/* What is not finite, or overflows, is where the plain products have it. */
static void odd_numbers_stay(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e30f, 1e13f, -1e-40f};
    for (int transpose = 0; transpose < 16; transpose++)
        for (int way = INNER; way <= SCALED; way++) {
            product p = product_new(M, N, K, 7), q = product_new(M, N, K, 7);
            int64_t row = transpose * 37 % M, term = transpose * 101 % K,
                    column = transpose * 37 % N;
            if (transpose % 2)
                p.a[row * K + term] = q.a[row * K + term] = odd[transpose / 2];
            else
                p.b[term * N + column] = q.b[term * N + column] = odd[transpose / 2];
            multiply(gemm_of(&p), p.b, way, 2, NULL);
            multiply(gemm_of(&q), q.b, PLAIN, 2, NULL);
            check_alike(p.c, q.c, M * N, transpose);
            product_free(&p);
            product_free(&q);
        }
}

/* The same of what follows: bounds keep NaN. */
static void odd_ends_stay(void **state) {
    (void)state;
    static const sni_act acts[] = {SNI_ACT_NONE, SNI_ACT_RELU, SNI_ACT_CLIP, SNI_ACT_GELU};
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 3e38f};
    for (int transpose = 0; transpose < 8; transpose++)
        for (int way = INNER; way <= SCALED; way++) {
            product p = product_new(27, 80, 128, 50), q = product_new(27, 80, 128, 50);
            float *bias = product_floats(80, 51), *residual = product_floats(27 * 80, 52);
            for (int i = 0; i < 5; i++) {
                if (transpose % 2) bias[17 * i % 80] = odd[i];
                if (transpose % 2 == 0) residual[i * 397] = odd[i];
            }
            sni_epilogue e = {.act = acts[transpose / 2], .p0 = -1, .p1 = 2, .column_bias = bias};
            e.residual = residual;
            e.residual_row = 80;
            sni_gemm_f32 g = gemm_of(&p), h = gemm_of(&q);
            g.epilogue = h.epilogue = e;
            multiply(g, p.b, way, 2, NULL);
            multiply(h, q.b, PLAIN, 2, NULL);
            check_alike(p.c, q.c, 27 * 80, transpose);
            product_free(&p);
            product_free(&q);
            free(bias);
            free(residual);
        }
}

/* Numbers and flags that come from a file can be anything: results are, too, but nothing else is
 * written, which multiply() checks. */
static void files_say_anything(void **state) {
    (void)state;
    for (int transpose = 0; transpose < 40; transpose++) {
        product p = product_new(41, 113, transpose % 2 ? 80 : 1600, 60);
        multiply(gemm_of(&p), p.b, transpose % 4 < 2 ? TOLD : TOLD_SCALED, 1 + transpose % 3, NULL);
        product_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_match),
        cmocka_unit_test(sizes_match),
        cmocka_unit_test(others_are_plain),
        cmocka_unit_test(ends_match),
        cmocka_unit_test(stops),
        cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(sizes_do_not_mix),
        cmocka_unit_test(small_rows_stay),
        cmocka_unit_test(small_columns_stay),
        cmocka_unit_test(far_sizes_meet),
        cmocka_unit_test(blocks_differ),
        cmocka_unit_test(panels_are_told_apart),
        cmocka_unit_test(odd_numbers_stay),
        cmocka_unit_test(odd_ends_stay),
        cmocka_unit_test(files_say_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
