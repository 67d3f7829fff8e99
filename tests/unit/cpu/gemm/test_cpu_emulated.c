/* test_cpu_emulated.c - emulated matrix products (cpu/gemm/emulated.h): every kernel of the tier
 * against plain C, and products against double precision and plain products: sizes of every
 * remainder, what follows a product, rows and columns of different sizes, NaN and infinities, and
 * what a file may say. Where there are no tiles the kernels in plain C stand in for them. */
#include "gemm_products.h"

#include "base/lengths.h"
#include "cpu/gemm/emulated.h"

/* The kernels in plain C stand in for tiles where there are none. The linker puts this in the place
 * of sni_emulated_kernels_get(). */
static const sni_emulated_kernels *stand_in;
const sni_emulated_kernels *__real_sni_emulated_kernels_get(void);
const sni_emulated_kernels *__wrap_sni_emulated_kernels_get(void);
const sni_emulated_kernels *__wrap_sni_emulated_kernels_get(void) {
    return stand_in ? stand_in : __real_sni_emulated_kernels_get();
}

static versus v;

/* Whether this tier has tiles. */
static bool has_tiles;

static bool has_emulated(void) {
    return sni_emulated_can(64, 16);
}

/* ---- Kernels ---- */

static const sni_emulated_kernels *const plain = &sni_emulated_kernels_plain;

enum { STEPS = 5, TERMS = STEPS * SNI_EMULATED_TERMS, STRIP = SNI_EMULATED_COLUMNS };

/* Rows in parts: of several lengths, with and without factors, strided or not. */
typedef struct rows_case {
    int rows, parts;
    int64_t lines;
    sni_product_part part[4];
    float *numbers, *factors;
} rows_case;

static rows_case rows_new(int rows, int64_t lines, uint64_t seed) {
    rows_case c = {.rows = rows, .lines = lines};
    int64_t row = lines * SNI_LEFT_STEPS, left = lines;
    c.numbers = product_floats(rows * row, seed);
    c.factors = product_floats(row, seed + 1);
    for (int64_t at = 0; left > 0; c.parts++) {
        sni_product_part *p = &c.part[c.parts];
        p->lines = c.parts == 3 ? left : sni_min(left, (int64_t)(unit_random(&seed) % 7));
        p->factors = unit_random(&seed) % 2 ? c.factors + at * SNI_LEFT_STEPS : NULL;
        for (int i = 0; i < rows; i++) {
            p->from[i] = c.numbers + i * row + at * SNI_LEFT_STEPS;
            p->step[i] = i % 5 == 4 ? 0 : SNI_LEFT_STEPS; /* the same line again and again */
        }
        at += p->lines;
        left -= p->lines;
    }
    return c;
}

static void rows_free(rows_case *c) {
    free(c->numbers);
    free(c->factors);
}

/* What kernels make of rows. */
typedef struct rows_made {
    _Alignas(64) int32_t sizes[SNI_EMULATED_ROWS * SNI_LEFT_STEPS];
    _Alignas(64) float powers[SNI_EMULATED_ROWS], factors[SNI_EMULATED_ROWS];
    _Alignas(64) char emulated[STEPS * SNI_EMULATED_STEP];
    uint32_t wild;
} rows_made;

static void make_rows(const sni_emulated_kernels *k, const rows_case *c, rows_made *m) {
    memset(m, 0, sizeof *m);
    k->measure(c->rows, c->parts, c->part, m->sizes);
    m->wild = k->powers(c->rows, m->sizes, m->powers, m->factors);
    k->left(c->rows, c->parts, c->part, m->powers, m->emulated);
}

static void rows_match(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, 0, 1e-35f, 3e38f, 1e-30f, -1e20f};
    if (!has_tiles) skip();
    for (int transpose = 0; transpose < 200; transpose++) {
        rows_case c =
            rows_new(1 + transpose % SNI_EMULATED_ROWS,
                     1 + transpose * 7 % (TERMS / SNI_LEFT_STEPS), 1000 + (uint64_t)transpose);
        int64_t row = c.lines * SNI_LEFT_STEPS;
        for (int64_t p = 0; p < row; p++) /* a row of tiny numbers or zeros, or one odd number */
            if (transpose % 3 == 0 && (transpose % 7 > 1 || p == 0))
                c.numbers[p] = odd[transpose % 7];
        rows_made got, want;
        make_rows(sni_emulated_kernels_get(), &c, &got);
        make_rows(plain, &c, &want);
        assert_memory_equal(got.sizes, want.sizes, sizeof got.sizes);
        assert_memory_equal(got.powers, want.powers, sizeof got.powers);
        assert_memory_equal(got.factors, want.factors, sizeof got.factors);
        assert_int_equal(got.wild, want.wild);
        for (int i = 0; i < c.rows; i++)
            for (int t = 0; t < STEPS * SNI_EMULATED_SLICES; t++) {
                if (got.wild >> i & 1) continue;
                size_t at = (size_t)t * SNI_EMULATED_TILE + (size_t)i * 64;
                assert_memory_equal(got.emulated + at, want.emulated + at, 64);
            }
        rows_free(&c);
    }
}

/* Sums of a row by numbers of columns, whose greatest ones are 127 factors. */
static void check_plain(const sni_emulated_kernels *k, const float *numbers, const float *factors) {
    float *row = product_floats(SNI_EMULATED_TERMS, 77), sums[2][STRIP] = {{1, 2}, {1, 2}};
    k->plain(row, numbers, sums[0]);
    plain->plain(row, numbers, sums[1]);
    for (int i = 0; i < STRIP; i++) {
        double most = 2 + SNI_EMULATED_TERMS * 127 * (double)factors[i];
        double off = fabs((double)sums[0][i] - (double)sums[1][i]);
        bool overflows = most > 3e38; /* whether it does depends on the order */
        assert_true(overflows || off <= 1e-6 * most);
    }
    free(row);
}

static void columns_match(void **state) {
    (void)state;
    static const float scales[] = {1, 0, 1e-3f, 1e-33f, 1e-40f, 1e30f, 3e38f, 1e-31f};
    if (!has_tiles) skip();
    const sni_emulated_kernels *k = sni_emulated_kernels_get();
    for (int transpose = 0; transpose < 50; transpose++) {
        float *from = product_floats(SNI_EMULATED_TERMS * STRIP, 2000 + (uint64_t)transpose);
        _Alignas(64) int32_t sizes[2][STRIP] = {{0}};
        _Alignas(64) char emulated[2][SNI_EMULATED_STEP];
        _Alignas(64) float numbers[2][SNI_EMULATED_TERMS * STRIP], factors[2][STRIP];
        for (int i = 0; i < SNI_EMULATED_TERMS * STRIP; i++) {
            from[i] *= scales[(i % STRIP + transpose) % 8];
            if (i % 37 == transpose % 37) from[i] *= 1e-9f; /* numbers that round to none */
        }
        for (int i = 0; i < 2; i++) {
            const sni_emulated_kernels *these = i ? plain : k;
            these->sizes(from, sizes[i]);
            these->right(from, sizes[i], emulated[i]);
            these->factors(sizes[i], factors[i]);
            these->numbers(emulated[i], factors[i], numbers[i]);
        }
        assert_memory_equal(sizes[0], sizes[1], sizeof sizes[0]);
        assert_memory_equal(emulated[0], emulated[1], sizeof emulated[0]);
        assert_memory_equal(factors[0], factors[1], sizeof factors[0]);
        assert_memory_equal(numbers[0], numbers[1], sizeof numbers[0]);
        check_plain(k, numbers[0], factors[0]);
        for (int i = 0; i < SNI_EMULATED_TERMS * STRIP; i++) { /* as near as 24 bits can be */
            double most = (double)factors[0][i % STRIP] * 127;
            assert_true(fabs((double)numbers[0][i] - (double)from[i]) <= most * 0x1p-22 + 0x1p-142);
            if (most > 1e-30) assert_int_equal(numbers[0][i] != 0, from[i] != 0);
        }
        free(from);
    }
}

static void fill_bytes(void *p, size_t n, uint64_t seed) {
    unsigned char *bytes = p;
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)(unit_random(&seed) >> 8);
}

/* Products and what follows them, of any slices. */
static void tiles_match(void **state) {
    (void)state;
    if (!has_tiles) skip();
    const sni_emulated_kernels *k = sni_emulated_kernels_get();
    _Alignas(64) static char a[STEPS * SNI_EMULATED_STEP], b[STEPS * SNI_EMULATED_STEP];
    enum { ROW = 20, ROWS = SNI_EMULATED_ROWS };
    for (int transpose = 0; transpose < 100; transpose++) {
        static sni_emulated_sums sums[2];
        int rows = 1 + transpose % ROWS, from = transpose * 3 % rows;
        fill_bytes(a, sizeof a, 1 + (uint64_t)transpose);
        fill_bytes(b, sizeof b, 7 + (uint64_t)transpose);
        k->begin(rows);
        k->product(transpose % (STEPS + 1), a, b, b, transpose % 4, &sums[0]);
        k->end();
        plain->product(transpose % (STEPS + 1), a, b, b, 0, &sums[1]);
        for (int w = 0; w < SNI_EMULATED_SLICES; w++)
            for (int i = 0; i < rows * STRIP; i++)
                assert_int_equal(sums[0].of[w][i], sums[1].of[w][i]);
        float *factors = product_floats(ROWS + STRIP, 5), *bias = product_floats(STRIP, 6);
        float *more = product_floats(ROWS * STRIP, 7), *y[2];
        for (int i = 0; i < 2; i++) {
            y[i] = product_floats(ROWS * ROW, 8);
            sni_product_end e = {.y = y[i], .row = ROW, .add = transpose & 1};
            if (transpose & 2) e.bias = bias;
            if (transpose & 4) e.residual = more;
            e.residual_row = STRIP;
            e.bounded = transpose & 8;
            e.low = -1e3f;
            e.high = transpose & 16 ? 1e4f : INFINITY;
            const sni_emulated_kernels *these = i ? plain : k;
            these->finish(from, rows, &sums[1], factors, factors + ROWS, &e);
            if (from > 0) these->finish_row(from - 1, more, &e);
        }
        for (int i = 0; i < ROWS * ROW; i++)
            assert_true(fabsf(y[0][i] - y[1][i]) <= 1e-6f * fmaxf(1, fabsf(y[1][i])));
        free(factors);
        free(bias);
        free(more);
        free(y[0]);
        free(y[1]);
    }
}

/* ---- Products ---- */

/* Ways of making a product: plainly, emulated, by floats in their place, and by what a file says.
 */
enum { PLAIN, EMULATED, FLOATS, TOLD };

static void fill_b(const void *ctx, int64_t k0, int64_t rows, int64_t n0, int64_t cols, int nr,
                   float *panel) {
    const product *p = ctx;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < nr; c++)
            panel[r * nr + c] = c < cols ? p->b[(k0 + r) * p->n + n0 + c] : 0;
}

static void *pack(const sni_gemm_f32 *g, const float *b, int way, size_t *bytes, bool *floats) {
    product p = {.n = g->n, .b = (float *)(uintptr_t)b};
    sni_emulated_source s = {g->k, g->n, fill_b, &p};
    int32_t *sizes = malloc((size_t)sni_round_up(g->n, STRIP) * sizeof *sizes);
    assert_non_null(sizes);
    *floats = !sni_emulated_measure(&s, sizes) || way == FLOATS;
    *bytes = sni_emulated_size(g->k, g->n, *floats);
    void *packed = versus_guarded(*bytes);
    if (way == TOLD)
        fill_bytes(packed, *bytes, 9);
    else
        sni_emulated_pack(&s, sizes, *floats, packed);
    free(sizes);
    return packed;
}

static void multiply(sni_gemm_f32 g, const float *b, int way, int threads) {
    size_t bytes = sni_gemm_packed_b_size(g.k, g.n) * sizeof(float);
    bool floats = false;
    void *packed = way == PLAIN ? versus_guarded(bytes) : pack(&g, b, way, &bytes, &floats);
    sni_emulated_b emulated = sni_emulated_of(g.k, g.n, floats, packed);
    if (way == PLAIN) {
        sni_gemm_pack_b(b, g.n, 1, g.k, g.n, packed);
        g.packed_b = packed;
    } else {
        g.emulated = &emulated;
    }
    size_t size = sni_gemm_scratch_size(&g, threads) * sizeof(float);
    void *scratch = versus_guarded(size);
    sni_gemm_f32_run(&g, threads, scratch);
    drop(scratch, size, "scratch");
    drop(packed, bytes, "packed B");
}

enum { M = 98, N = 256, K = 768 };

/* Every remainder of rows, columns and terms, few rows and many, and B that is near or is not. */
static void sizes_match(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 2, 15, 16, 17, 33, 49, 97, 170, 400};
    static const int64_t columns[] = {16, 17, 31, 32, 64, 81, 193};
    static const int64_t terms[] = {48, 64, 80, 112, 768, 1040, 1552, 4608};
    int transpose = 0;
    if (!has_emulated()) skip();
    for (size_t j = 0; j < sizeof columns / sizeof *columns; j++)
        for (size_t p = 0; p < sizeof terms / sizeof *terms; p++, transpose++) {
            int64_t m = rows[(size_t)transpose % (sizeof rows / sizeof *rows)];
            if (!has_tiles && m * columns[j] * terms[p] > 1 << 20) continue;
            product q = product_new(m, columns[j], terms[p], 100 + (uint64_t)transpose);
            for (int way = EMULATED; way <= FLOATS; way++) {
                double error = threads_agree(multiply, &q, way), most = 2e-7 * sqrt((double)q.k);
                if (m < 15) /* a column's largest result may be next to nothing */
                    error = product_worst(q.m, q.n, q.k, q.a, q.b, q.c, false);
                if (!(error < most))
                    fail_msg("%lld %lld %lld by %d: %g", (long long)q.m, (long long)q.n,
                             (long long)q.k, way, error);
            }
            product_free(&q);
        }
}

/* B that is in no cache, and more rows than one block has. */
static void blocks_match(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{230, 1200, 1024}, {1100, 300, 1200}, {1500, 80, 64}};
    if (!has_tiles) skip();
    for (int i = 0; i < 3; i++) {
        product p = product_new(sizes[i][0], sizes[i][1], sizes[i][2], 3);
        double error = threads_agree(multiply, &p, EMULATED);
        if (!(error < 4e-6)) fail_msg("%d: %g", i, error);
        product_free(&p);
    }
}

static void ends_match(void **state) {
    (void)state;
    if (!has_emulated()) skip();
    check_ends(multiply, EMULATED);
    check_ends(multiply, FLOATS);
}

static bool at_once(const void *ctx) {
    (void)ctx;
    return true;
}

/* A product that is stopped before it begins writes nothing. */
static void stops(void **state) {
    (void)state;
    if (!has_emulated()) skip();
    for (int m = 40; m <= 400; m += 360) {
        product p = product_new(m, 64, 64, 20);
        sni_gemm_f32 g = gemm_of(&p);
        size_t bytes = (size_t)(m * 64) * sizeof *p.c;
        unsigned char *same = malloc(bytes);
        assert_non_null(same);
        memset(same, 0xA5, bytes);
        g.stop = at_once;
        multiply(g, p.b, EMULATED, 2);
        assert_memory_equal(p.c, same, bytes);
        free(same);
        product_free(&p);
    }
}

/* ---- Layers ---- */

/* Layers that may be computed so, with slopes, too, and beside another way. */
static void layers_match(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{14, 48, 48},   {41, 130, 160}, {1, 300, 768},
                                       {27, 63, 1600}, {13, 48, 100},  {40, 15, 64},
                                       {60, 96, 100},  {200, 333, 512}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int mode = 0; mode < 8; mode++)
            if (has_tiles || sizes[i][0] * sizes[i][1] * sizes[i][2] <= 1 << 20)
                check_layer(&v, sizes[i], mode, (int)i, SNI_NUMERICS_EMULATED,
                            SNI_NUMERICS_INNER_PRODUCT);
}

/* ---- Errors ---- */

/* Against double precision, of the largest result of each row and column. Plain products have
 * 1.7e-6, 2.5e-6, 1.9e-6, 1.3e-6, 2.9e-6 and 1.2e-5. */
static void errors_are_bounded(void **state) {
    (void)state;
    static const double bounds[KINDS] = {2e-6, 2e-6, 1e-6, 2e-6, 4e-5, 2e-5};
    if (!has_tiles) skip();
    for (int kind = 0; kind < KINDS; kind++) {
        product p = product_new(M, N, K, 1);
        make_kind(&p, kind);
        multiply(gemm_of(&p), p.b, EMULATED, 2);
        double error = error_of(&p), mean = product_error(M, N, K, p.a, p.b, p.c);
        multiply(gemm_of(&p), p.b, PLAIN, 2);
        double others = product_error(M, N, K, p.a, p.b, p.c);
        if (getenv("SINTER_TEST_FIGURES"))
            printf("kind %d: %.2g, %.2f times as much as plainly\n", kind, error, mean / others);
        if (!(error < bounds[kind])) fail_msg("kind %d: %g", kind, error);
        product_free(&p);
    }
}

/* Rows and columns that are much smaller or larger than their neighbours keep their precision, and
 * those that are zero stay it. */
static void sizes_do_not_mix(void **state) {
    (void)state;
    static const float factors[] = {1,     1e-6f,  1e6f,   0,      1e-3f,  1e3f,  1e-12f,
                                    1e12f, 1e-18f, 1e-25f, 1e-30f, 1e-34f, 1e30f, 1e36f};
    if (!has_emulated()) skip();
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        for (int by_column = 0; by_column < 2; by_column++) {
            product p = product_new(33, 81, 80, 4);
            for (int64_t r = 0; r < p.m && !by_column; r += 5) scale_row(&p, r, factors[i]);
            for (int64_t j = 0; j < p.n && by_column; j += 7) scale_column(&p, j, factors[i]);
            multiply(gemm_of(&p), p.b, EMULATED, 2);
            double error = product_worst(p.m, p.n, p.k, p.a, p.b, p.c, by_column);
            if (!(error < 2e-6))
                fail_msg("%s times %g: %g", by_column ? "columns" : "rows", (double)factors[i],
                         error);
            product_free(&p);
        }
}

/* Results of p are those of q, as far as they can be where a column has one number that is much
 * greater than others. */
static void check_columns(const product *p, const product *q, int transpose) {
    for (int64_t j = 0; j < p->n; j++) {
        double most = 1;
        for (int64_t i = 0; i < p->k; i++)
            if (isfinite(p->b[i * p->n + j])) most = fmax(most, fabs((double)p->b[i * p->n + j]));
        for (int64_t i = 0; i < p->m; i++) {
            double x = (double)p->c[i * p->n + j], y = (double)q->c[i * p->n + j];
            bool same = isnan(y) ? isnan(x) : x == y || fabs(x - y) <= 5e-6 * most;
            if (!same) fail_msg("turn %d, %d, %d: %g, not %g", transpose, (int)i, (int)j, x, y);
        }
    }
}

/* What is not finite, or overflows, is where the plain products have it, and what a row is does not
 * depend on its neighbours. */
static void odd_numbers_stay(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e30f, 1e13f, -1e-40f};
    if (!has_emulated()) skip();
    for (int transpose = 0; transpose < 16; transpose++) {
        product p = product_new(40, 81, 112, 7), q = product_new(40, 81, 112, 7);
        product r = product_new(40, 81, 112, 7);
        int64_t row = transpose * 37 % p.m, term = transpose * 101 % p.k,
                column = transpose * 37 % p.n;
        p.b[3] = q.b[3] = r.b[3] = 1e-12f; /* both meet infinity */
        p.b[4] = q.b[4] = r.b[4] = 0;
        if (isinf(odd[transpose / 2])) term = 0;
        if (transpose % 2)
            p.a[row * p.k + term] = q.a[row * p.k + term] = odd[transpose / 2];
        else
            p.b[term * p.n + column] = q.b[term * p.n + column] = odd[transpose / 2];
        multiply(gemm_of(&p), p.b, EMULATED, 2);
        multiply(gemm_of(&q), q.b, PLAIN, 2);
        multiply(gemm_of(&r), r.b, EMULATED, 2);
        if (transpose % 2)
            check_alike(p.c, q.c, p.m * p.n, transpose);
        else
            check_columns(&p, &q, transpose);
        for (int64_t i = 0; i < p.m && transpose % 2; i++)
            if (i != row)
                assert_memory_equal(p.c + i * p.n, r.c + i * p.n, (size_t)p.n * sizeof *p.c);
        product_free(&p);
        product_free(&q);
        product_free(&r);
    }
}

/* What comes from a file can be anything: results are, too, but nothing else is written, which
 * multiply() checks. */
static void files_say_anything(void **state) {
    (void)state;
    if (!has_emulated()) skip();
    for (int transpose = 0; transpose < 12; transpose++) {
        product p = product_new(transpose % 3 ? 41 : 300, 113, transpose % 2 ? 80 : 400, 60);
        if (transpose % 4 == 3) p.a[5] = NAN;
        multiply(gemm_of(&p), p.b, TOLD, 1 + transpose % 3);
        product_free(&p);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_match),
        cmocka_unit_test(columns_match),
        cmocka_unit_test(tiles_match),
        cmocka_unit_test(sizes_match),
        cmocka_unit_test(blocks_match),
        cmocka_unit_test(ends_match),
        cmocka_unit_test(stops),
        cmocka_unit_test(layers_match),
        cmocka_unit_test(sizes_do_not_mix),
        cmocka_unit_test(errors_are_bounded),
        cmocka_unit_test(odd_numbers_stay),
        cmocka_unit_test(files_say_anything),
    };
    has_tiles = sni_emulated_kernels_get() != NULL;
    if (!has_tiles) stand_in = &sni_emulated_kernels_plain;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
