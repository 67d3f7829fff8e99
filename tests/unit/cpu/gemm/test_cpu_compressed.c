/* test_cpu_compressed.c - weights with compressed exponents: every bit comes back, products are
 * those of the same weights as floats, and no bytes of a file lead outside. Run once per tier
 * (SINTER_ISA). */
#include "unit.h"

#include "cpu/gemm/dense.h"

#include <math.h>
#include <stdlib.h>

static uint64_t seed = 1;

static uint32_t random_bits(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 32);
}

static float float_of(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* Like trained weights: a bell around 0. */
static float bell(void) {
    float sum = 0;
    for (int i = 0; i < 6; i++) sum += (float)(random_bits() >> 8) * 0x1p-24f;
    return (sum - 3) * 0.05f;
}

typedef enum kind { BELL, BITS, ZEROS, SUBNORMAL, EQUAL, SPECIAL, WIDE, SPARSE, KINDS } kind;

static float weight(kind k) {
    static const uint32_t special[] = {0x7f800000, 0xff800000, 0x7fc00001, 0xffa00003,
                                       0x80000000, 0,          0x7f7fffff, 1};
    switch (k) {
    case BITS:
        return float_of(random_bits());
    case ZEROS:
        return float_of(random_bits() & 0x80000000);
    case SUBNORMAL:
        return float_of(random_bits() & 0x807fffff);
    case EQUAL:
        return 0.75f;
    case SPECIAL:
        return float_of(special[random_bits() % 8]);
    case WIDE: /* 100 exponents */
        return ldexpf(bell(), (int)(random_bits() % 100) - 50);
    case SPARSE:
        return random_bits() % 10 ? 0 : bell();
    default:
        return bell();
    }
}

static float *weights_new(kind k, size_t count) {
    float *w = malloc((count + 1) * sizeof *w);
    assert_non_null(w);
    for (size_t i = 0; i < count; i++) w[i] = weight(k);
    return w;
}

static void *room_new(size_t bytes) {
    void *p = aligned_alloc(64, (bytes + 64) / 64 * 64);
    assert_non_null(p);
    return p;
}

/* ---- Codes ---- */

static void groups_come_back(void **state) {
    (void)state;
    const sni_compressed_kernels *c = sni_compressed_kernels_get();
    if (!c->group_bytes) skip();
    int64_t nr = sni_cpu_kernels_get()->nr, groups = 11, rows = groups * SNI_COMPRESSED_ROWS;
    size_t count = (size_t)(rows * nr);
    uint8_t *compressed = room_new((size_t)(groups * c->group_bytes));
    for (int k = 0; k < KINDS; k++) {
        for (int base = 0; base < 256; base += 17) { /* those from 128 on only a damaged file has */
            float *x = weights_new((kind)k, count), *y = malloc(count * sizeof *y);
            uint8_t *more = malloc(count * SNI_COMPRESSED_MORE);
            sni_compressed_list list = {.end = more, .last = -1};
            c->encode(x, 5, (uint8_t)base, compressed, &list);
            c->encode(x + 5 * SNI_COMPRESSED_ROWS * nr, groups - 5, (uint8_t)base,
                      compressed + 5 * c->group_bytes, &list);
            assert_in_range(list.end - more, 1, count * SNI_COMPRESSED_MORE);
            sni_compressed_piece piece = {compressed, more, list.end, -1, (uint8_t)base};
            c->decode(&piece, 6 * SNI_COMPRESSED_ROWS, y, NULL, 0);
            c->decode(&piece, rows - 6 * SNI_COMPRESSED_ROWS, y + 6 * SNI_COMPRESSED_ROWS * nr,
                      NULL, 0);
            assert_memory_equal(x, y, count * sizeof *x);
            assert_ptr_equal(piece.more, list.end);
            assert_ptr_equal(piece.groups, compressed + groups * c->group_bytes);
            free(x);
            free(y);
            free(more);
        }
    }
    free(compressed);
}

static void samples_tell_what_is_smaller(void **state) {
    (void)state;
    if (!sni_compressed_kernels_get()->group_bytes) skip();
    enum { COUNT = 50000 };
    float *bells = weights_new(BELL, COUNT), *bits = weights_new(BITS, COUNT);
    assert_true(sni_gemm_uncompressed_part(bells, COUNT) < 0.06);
    assert_true(sni_gemm_uncompressed_part(bits, COUNT) > 0.8);
    assert_true(sni_gemm_uncompressed_part(bells, 1) == 0);
    free(bells);
    free(bits);
}

/* ---- Products ---- */

typedef struct compressed_weights {
    sni_compressed_b b;
    void *compressed;
    uint8_t *room;
} compressed_weights;

static compressed_weights code(const float *b, bool transposed, int64_t k, int64_t n) {
    compressed_weights w = {.compressed = room_new(sni_gemm_compressed_b_size(k, n)),
                            .room = malloc(sni_gemm_compress_capacity(k, n))};
    w.b.compressed = w.compressed;
    sni_gemm_stream s = {b, transposed ? 1 : n, transposed ? k : 1, k, n, NULL, NULL};
    w.b.n_more = sni_gemm_compress_b(&s, w.compressed, w.room);
    w.b.more = realloc(w.room, w.b.n_more + 1);
    w.room = (uint8_t *)(uintptr_t)w.b.more;
    assert_non_null(w.room);
    return w;
}

static float *multiply(sni_gemm_f32 *g, int threads) {
    size_t size = sni_gemm_scratch_size(g, threads);
    float *scratch = room_new(size * sizeof *scratch), *c = calloc((size_t)(g->m * g->n) + 1, 4);
    for (int64_t i = 0; i < g->m * g->n; i++) c[i] = (float)i;
    g->c = c;
    sni_gemm_f32_run(g, threads, scratch);
    free(scratch);
    return c;
}

/* NaNs of any kind are alike: which of two comes out is the instruction's affair. */
static void expect_same(const float *x, const float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&x[i], &y[i], sizeof *x) != 0 && !(isnan(x[i]) && isnan(y[i])))
            fail_msg("element %lld is %a with floats, %a with codes", (long long)i, (double)x[i],
                     (double)y[i]);
}

static void check(int64_t m, int64_t n, int64_t k, kind what, bool transposed) {
    float *a = weights_new(BELL, (size_t)(m * k)), *b = weights_new(what, (size_t)(k * n));
    float *bias = weights_new(BELL, (size_t)n);
    float *panels = room_new(sni_gemm_packed_b_size(k, n) * sizeof *panels);
    sni_gemm_pack_b(b, transposed ? 1 : n, transposed ? k : 1, k, n, panels);
    compressed_weights w = code(b, transposed, k, n);
    for (int add = 0; add < 2; add++) {
        sni_gemm_f32 g = {.m = m, .n = n, .k = k, .a = a, .a_row = k, .a_col = 1, .c_row = n};
        g.add = add;
        g.epilogue = (sni_epilogue){.act = SNI_ACT_RELU, .column_bias = bias};
        sni_gemm_f32 compressed = g;
        g.packed_b = panels;
        compressed.compressed_b = &w.b;
        float *want = multiply(&g, 1);
        for (int threads = 1; threads < 4; threads++) {
            float *got = multiply(&compressed, threads);
            expect_same(want, got, m * n);
            free(got);
        }
        free(want);
    }
    free(a);
    free(b);
    free(bias);
    free(panels);
    free(w.compressed);
    free(w.room);
}

static void products_are_those_of_floats(void **state) {
    (void)state;
    if (!sni_compressed_kernels_get()->group_bytes) skip();
    static const int64_t sizes[][3] = {
        {1, 1, 1},      {1, 70, 33},   {1, 33, 1700}, {2, 64, 800},  {6, 16, 64},    {14, 32, 65},
        {15, 31, 63},   {16, 100, 99}, {29, 65, 130}, {42, 40, 801}, {43, 33, 7},    {64, 64, 128},
        {70, 33, 1540}, {71, 64, 772}, {90, 70, 770}, {96, 32, 52},  {128, 65, 780}, {169, 32, 40},
        {341, 33, 776}, {65, 97, 49},  {97, 33, 33},  {150, 40, 32}, {257, 31, 47},  {360, 64, 31},
        {512, 33, 17},  {600, 70, 81}};
    for (int64_t k = 1; k < 70; k += 3) check(19 + 2 * k, 40, k, BELL, false);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int transposed = 0; transposed < 2; transposed++)
            check(sizes[i][0], sizes[i][1], sizes[i][2], BELL, transposed);
    for (int i = 0; i < 3 * KINDS; i++)
        check(1 + random_bits() % 35, 1 + random_bits() % 80, 1 + random_bits() % 150,
              (kind)(i % KINDS), i & 1);
}

/* Whatever a file says, nothing outside is read (which the address sanitizer sees). */
static void any_bytes_will_do(void **state) {
    (void)state;
    if (!sni_compressed_kernels_get()->group_bytes) skip();
    int64_t n = 70, k = 90;
    size_t size = sni_gemm_compressed_b_size(k, n);
    float *a = weights_new(BELL, (size_t)(20 * k));
    for (int round = 0; round < 20; round++) {
        uint8_t *compressed = room_new(size), *more = malloc((size_t)round + 1);
        for (size_t i = 0; i < size; i++)
            compressed[i] = round == 0 ? 0xff : (uint8_t)random_bits();
        for (int i = 0; i < round; i++) more[i] = (uint8_t)random_bits();
        sni_compressed_b b = {compressed, more, (size_t)round};
        sni_gemm_f32 g = {
            .n = n, .k = k, .a = a, .a_row = k, .a_col = 1, .compressed_b = &b, .c_row = n};
        for (g.m = 1; g.m <= 20; g.m += 19) free(multiply(&g, 1));
        free(compressed);
        free(more);
    }
    free(a);
}

/* ---- Weights of a node ---- */

enum { NODE_K = 520, NODE_N = 600 };

/* A MatMul of `rows` rows with weights in a model of so many bytes. */
typedef struct node_case {
    sni_store *store;
    sni_const w;
    sni_const *constants[2];
    sni_dim dims[2][2];
    sni_type types[2];
    const sni_type *in[2];
    sni_borrows borrows;
    sni_pack pack;
    sni_choice c;
} node_case;

static void node_init(node_case *t, float *weights, int64_t rows, uint64_t bytes) {
    *t = (node_case){.dims = {{rows, NODE_K}, {NODE_K, NODE_N}}, .c.matrix_bytes = bytes};
    sn_error err;
    assert_int_equal(sni_store_new(NULL, SIZE_MAX, &t->store, &err), SN_OK);
    t->w = (sni_const){.store = t->store,
                       .tensor = {.dtype = SN_FLOAT32,
                                  .rank = 2,
                                  .count = (int64_t)NODE_K * NODE_N,
                                  .dims = {NODE_K, NODE_N},
                                  .data = weights}};
    t->constants[1] = &t->w;
    for (int i = 0; i < 2; i++) {
        t->types[i] = (sni_type){.kind = SN_KIND_TENSOR,
                                 .dtype = SN_FLOAT32,
                                 .has_shape = true,
                                 .rank = 2,
                                 .dims = t->dims[i]};
        t->in[i] = &t->types[i];
    }
    t->c.n_in = 2;
    t->c.numerics = SNI_NUMERICS_COMPRESSED;
    t->c.in = t->in;
    t->c.constants = t->constants;
    t->c.pack = &t->pack;
    t->c.borrows = &t->borrows;
}

static sn_status node_pack(node_case *t, sni_dense **out, sn_error *err) {
    void *state = NULL;
    sn_status status =
        sni_dense_pack(&t->c, &(sni_dense_weight){1, false, 1}, t->c.numerics, &state, err);
    for (int i = 0; i < t->borrows.count; i++) sni_borrow_end(&t->borrows.of[i]);
    t->borrows.count = 0;
    *out = state;
    return status;
}

static void node_free(node_case *t, sni_dense *state) {
    free(state);
    sni_pack_clear(&t->pack);
    sni_store_release(t->store);
}

/* `known` rows by the graph, -1: any number. */
static bool is_compressed_of(float *weights, int64_t rows, sni_dim known, uint64_t bytes) {
    node_case t;
    sni_dim dims[2] = {known, NODE_K};
    sni_type left = {.has_shape = true, .rank = 2, .dims = dims};
    sni_dense *d;
    sn_error err;
    node_init(&t, weights, rows, bytes);
    t.c.left = &left;
    assert_int_equal(node_pack(&t, &d, &err), SN_OK);
    bool compressed = !d->panels;
    node_free(&t, d);
    return compressed;
}

/* What the library is told of costs: those of a processor that gains by compressed weights, or does
 * not. The linker puts this in the place of sni_costs_get(). */
static const sni_costs *costs_of_test;
const sni_costs *__real_sni_costs_get(void);
const sni_costs *__wrap_sni_costs_get(void);
const sni_costs *__wrap_sni_costs_get(void) {
    return costs_of_test ? costs_of_test : __real_sni_costs_get();
}

static const sni_costs *costs_named(const char *name) {
    const sni_costs *costs;
    for (int i = 0; (costs = sni_costs_at(i)) != NULL; i++)
        if (strcmp(costs->name, name) == 0) return costs;
    fail_msg("no costs of %s", name);
    return NULL;
}

static bool is_compressed(float *weights, int64_t rows, uint64_t bytes) {
    return is_compressed_of(weights, rows, rows, bytes);
}

static void few_rows_of_large_models_are_compressed(void **state) {
    (void)state;
    float *bells = weights_new(BELL, NODE_K * NODE_N), *bits = weights_new(BITS, NODE_K * NODE_N);
    bool has = sni_compressed_kernels_get()->group_bytes != 0;
    uint64_t large = 1u << 30;
    costs_of_test = costs_named("zen4");
    assert_false(is_compressed(bells, 1, large));
    costs_of_test = costs_named("ice-lake");
    assert_int_equal(is_compressed(bells, 1, large), has);
    assert_false(is_compressed(bells, 1, 4 << 20));
    assert_false(is_compressed(bells, 64, large));
    assert_false(is_compressed(bells, -1, large)); /* not known */
    assert_false(is_compressed(bits, 1, large));
    assert_int_equal(is_compressed_of(bells, 1, -1, large), has);
    assert_int_equal(is_compressed_of(bells, 100, -1, large), has);
    assert_int_equal(is_compressed_of(bells, 256, -1, large), has);
    assert_false(is_compressed(bells, 256, large)); /* never fewer */
    assert_false(is_compressed_of(bells, 256, -1, 4 << 20));
    assert_false(is_compressed_of(bits, 256, -1, large));
    free(bells);
    free(bits);
}

/* What a compiled file brings is taken as it is, for any shape, or refused. */
static void finished_codes_are_taken(void **state) {
    (void)state;
    if (!sni_compressed_kernels_get()->group_bytes) skip();
    float *weights = weights_new(BELL, NODE_K * NODE_N);
    node_case made, taken;
    sni_dense *first, *second;
    sn_error err;
    costs_of_test = costs_named("ice-lake");
    node_init(&made, weights, 1, 1u << 30);
    assert_int_equal(node_pack(&made, &first, &err), SN_OK);
    assert_int_equal(made.pack.count, 2);
    for (int given = 2; given > 0; given--) {
        node_init(&taken, NULL, 64, 0);
        taken.pack.given = made.pack.blobs;
        taken.pack.n_given = given;
        assert_int_equal(node_pack(&taken, &second, &err), given == 2 ? SN_OK : SN_INVALID_MODEL);
        if (given == 2) {
            assert_null(second->panels);
            assert_ptr_equal(second->compressed.compressed, first->compressed.compressed);
            assert_ptr_equal(second->compressed.more, first->compressed.more);
            assert_int_equal(second->compressed.n_more, first->compressed.n_more);
        }
        node_free(&taken, second);
    }
    node_free(&made, first);
    free(weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_come_back),
        cmocka_unit_test(samples_tell_what_is_smaller),
        cmocka_unit_test(products_are_those_of_floats),
        cmocka_unit_test(any_bytes_will_do),
        cmocka_unit_test(few_rows_of_large_models_are_compressed),
        cmocka_unit_test(finished_codes_are_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
