/* test_cpu_matmul_algorithms.c - the table of matrix product algorithms: every row against plain
 * sums in double precision over odd sizes, strides and ends, within the scratch that it asks for;
 * and the choice between rows, which threads do not change and a session's mask does. */
#include "gemm_products.h"

#include "cpu/costs/costs.h"
#include "cpu/gemm/dense.h"
#include "cpu/gemm/bf16.h"
#include "cpu/gemm/gemm_blocks.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/gemm/matmul_algorithms.h"

enum { MAX_THREADS = 3 };

/* ---- Operands in every form ---- */

/* What a product's B is packed into, by row. */
typedef struct forms {
    float *panels;
    uint8_t *even, *tame;
    float *numbers;
    void *compressed;
    uint8_t *room;
    sni_inner_product_b inner;
    sni_compressed_b compressed_b;
    uint16_t *halves[SNI_HALF_TYPES];
    sni_half_b half[SNI_HALF_TYPES];
} forms;

static void *aligned(size_t bytes) {
    void *p = aligned_alloc(64, bytes / 64 * 64 + 64);
    assert_non_null(p);
    memset(p, 0, bytes / 64 * 64 + 64);
    return p;
}

static void pack_forms(forms *f, const float *b, int64_t k, int64_t n) {
    size_t even = sni_gemm_even_size(k, n), code = sni_gemm_compressed_b_size(k, n);
    *f = (forms){.panels = aligned(sni_gemm_packed_b_size(k, n) * sizeof(float)),
                 .even = aligned(even),
                 .tame = aligned(sni_inner_product_flags(n)),
                 .numbers = aligned(sni_inner_product_numbers(k, n, false) * sizeof(float)),
                 .compressed = aligned(code),
                 .room = aligned(code ? sni_gemm_compress_capacity(k, n) : 0)};
    sni_gemm_pack_b(b, n, 1, k, n, f->panels);
    if (even) sni_gemm_find_even(f->panels, k, n, f->even);
    if (sni_inner_product_most() && k % SNI_LEFT_STEPS == 0 && k)
        sni_inner_product_measure(f->panels, k, n, false, f->numbers, f->tame);
    f->inner = (sni_inner_product_b){
        .k = k, .n = n, .panels = f->panels, .numbers = f->numbers, .tame = f->tame};
    f->compressed_b = (sni_compressed_b){.compressed = f->compressed, .more = f->room};
    if (code)
        f->compressed_b.n_more = sni_gemm_compress_b(&(sni_gemm_stream){b, n, 1, k, n, NULL, NULL},
                                                     f->compressed, f->room);
    for (int type = 0; type < SNI_HALF_TYPES; type++) {
        f->halves[type] = aligned(sni_half_size(k, n) * sizeof(uint16_t));
        sni_half_pack(&(sni_half_source){b, n, 1, true}, k, n, type, f->halves[type]);
        f->half[type] = (sni_half_b){type, f->halves[type]};
    }
}

static void free_forms(forms *f) {
    free(f->panels);
    free(f->even);
    free(f->tame);
    free(f->numbers);
    free(f->compressed);
    free(f->room);
    for (int type = 0; type < SNI_HALF_TYPES; type++) free(f->halves[type]);
}

/* Ways in which a product's operands can be given. */
enum {
    UNPACKED,
    B_TRANSPOSED,
    A_TRANSPOSED,
    PACKED,
    PACKED_A_TRANSPOSED,
    COMPRESSED,
    HALF_F16,
    HALF_BF16,
    WAYS
};

/* The product of p in a way; `t` is room for a transposed operand. */
static sni_gemm_f32 given(const product *p, const forms *f, int way, float *t) {
    sni_gemm_f32 g = gemm_of(p);
    g.b = p->b;
    g.b_row = p->n;
    g.b_col = 1;
    g.may_stay_unpacked = true;
    if (way == B_TRANSPOSED) {
        for (int64_t i = 0; i < p->k; i++)
            for (int64_t j = 0; j < p->n; j++) t[j * p->k + i] = p->b[i * p->n + j];
        g.b = t;
        g.b_row = 1;
        g.b_col = p->k;
    }
    if (way == A_TRANSPOSED || way == PACKED_A_TRANSPOSED) {
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->k; j++) t[j * p->m + i] = p->a[i * p->k + j];
        g.a = t;
        g.a_row = 1;
        g.a_col = p->m;
    }
    if (way >= PACKED) g.b = NULL;
    if (way == PACKED || way == PACKED_A_TRANSPOSED) {
        g.packed_b = f->panels;
        if (sni_gemm_even_size(p->k, p->n)) g.even = f->even;
        if (sni_inner_product_most() && p->k % SNI_LEFT_STEPS == 0) g.inner_product = &f->inner;
    }
    if (way == COMPRESSED) g.compressed_b = &f->compressed_b;
    if (way >= HALF_F16) g.half_b = &f->half[way - HALF_F16];
    g.round_left = way == HALF_BF16;
    return g;
}

/* ---- Every row ---- */

static void run_row(const sni_gemm_algorithm *row, const sni_gemm_f32 *g, int threads) {
    size_t size = row->scratch(g, threads) * sizeof(float);
    unsigned char *scratch = versus_guarded(size);
    row->run(g, threads, (float *)(void *)scratch);
    drop(scratch, size, row->name);
}

/* A number as a way's operands have it. */
static double rounded(float x, int way, bool left) {
    if (way == HALF_F16 && !left) return (double)sni_f16_to_f32(sni_f32_to_f16(x));
    if (way == HALF_BF16) return (double)sni_bf16_to_f32(sni_f32_to_bf16(x));
    return (double)x;
}

/* C with a bias and Relu, against double precision. */
static void check_result(const sni_gemm_algorithm *row, const product *p, int way,
                         const float *bias) {
    bool round_left = row->numerics == SNI_NUMERICS_BF16;
    double bound = 4e-6 * sqrt((double)p->k) + 1e-6;
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = (double)bias[j], got = (double)p->c[i * p->n + j];
            for (int64_t q = 0; q < p->k; q++)
                sum += rounded(p->a[i * p->k + q], round_left ? way : UNPACKED, true) *
                       rounded(p->b[q * p->n + j], way, false);
            if (!(fabs(fmax(sum, 0) - got) <= bound))
                fail_msg("%s, %lld by %lld by %lld: [%lld,%lld] is %g, not %g", row->name,
                         (long long)p->m, (long long)p->k, (long long)p->n, (long long)i,
                         (long long)j, got, fmax(sum, 0));
        }
}

static void check_rows(const product *p, const sni_gemm_f32 *g, int way, const float *bias,
                       int *runs) {
    size_t bytes = (size_t)(p->m * p->n) * sizeof(float);
    float *first = aligned(bytes);
    const sni_gemm_algorithm *row;
    bool empty = sni_gemm_algorithm_named("empty")->supports(g);
    for (int i = 0; (row = sni_gemm_algorithm_at(i)) != NULL; i++) {
        if (empty && strcmp(row->name, "empty") != 0) continue; /* others are not asked */
        if (!row->supports(g) || (row->available && !row->available())) continue;
        assert_true(row->cycles(g, &sni_costs_get()->gemm) >= 0);
        for (int threads = 1; threads <= MAX_THREADS; threads++) {
            memset(p->c, 0xA5, bytes);
            run_row(row, g, threads);
            if (threads == 1) memcpy(first, p->c, bytes);
            if (memcmp(first, p->c, bytes) != 0) fail_msg("%s: threads differ", row->name);
        }
        check_result(row, p, way, bias);
        runs[i]++;
    }
    free(first);
}

static const int64_t sizes[][3] = {
    {1, 1, 1},    {1, 40, 33},    {1, 300, 128}, {2, 5, 17},     {7, 8, 16},     {16, 3, 100},
    {17, 64, 48}, {40, 192, 128}, {41, 97, 144}, {96, 200, 160}, {98, 257, 768}, {130, 33, 1040},
    {33, 1, 70},  {5, 70, 1},     {0, 4, 4},     {4, 4, 0},      {101, 450, 256}};

static void rows_match(void **state) {
    (void)state;
    int runs[32] = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        product p = product_new(m, n, k, 9 + s);
        float *t = aligned((size_t)(k * (m > n ? m : n)) * sizeof *t), *bias = product_floats(n, s);
        forms f;
        pack_forms(&f, p.b, k, n);
        for (int way = 0; way < WAYS; way++) {
            if (way == COMPRESSED && !sni_gemm_compressed_b_size(k, n)) continue;
            sni_gemm_f32 g = given(&p, &f, way, t);
            g.epilogue = (sni_epilogue){.act = SNI_ACT_RELU, .column_bias = bias};
            check_rows(&p, &g, way, bias, runs);
        }
        free_forms(&f);
        free(t);
        free(bias);
        product_free(&p);
    }
    const sni_gemm_algorithm *row;
    for (int i = 0; (row = sni_gemm_algorithm_at(i)) != NULL; i++) {
        bool here = !row->available || row->available();
        if (row->numerics == SNI_NUMERICS_EMULATED) continue; /* test_cpu_emulated.c */
        if (row->numerics == SNI_NUMERICS_COMPRESSED)
            here = sni_compressed_kernels_get()->group_bytes != 0;
        if (!runs[i] && here) fail_msg("%s was never run", row->name);
    }
}

/* ---- The choice ---- */

/* Some row takes every product, the same again and again; scratch is that of the row. */
static void choice_is_total(void **state) {
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
        product p = product_new(m, n, k, 3);
        float *t = aligned((size_t)(k * (m > n ? m : n)) * sizeof *t);
        forms f;
        pack_forms(&f, p.b, k, n);
        for (int way = 0; way < WAYS; way++) {
            sni_gemm_f32 g = given(&p, &f, way, t);
            const sni_gemm_algorithm *row = sni_gemm_choose(&g, sni_costs_get());
            assert_non_null(row);
            assert_true(row->supports(&g));
            for (int threads = 1; threads <= MAX_THREADS; threads++) {
                sni_gemm_call call = sni_gemm_plan(&g, threads);
                assert_ptr_equal(call.algorithm, row);
                assert_int_equal(call.scratch, row->scratch(&g, threads));
            }
        }
        free_forms(&f);
        free(t);
        product_free(&p);
    }
}

/* On every processor there is a table for, large products take what its costs say. */
static void costs_decide(void **state) {
    (void)state;
    const sni_costs *costs;
    if (!sni_inner_product_most()) skip();
    float one = 1;
    uint8_t even = 1;
    sni_inner_product_b inner = {.k = 768, .n = 768};
    sni_gemm_f32 g = {.m = 256, .n = 768, .k = 768, .a_row = 768, .a_col = 1, .packed_b = &one};
    for (int i = 0; (costs = sni_costs_at(i)) != NULL; i++) {
        g.inner_product = &inner;
        g.even = &even;
        bool gains = costs->gemm.inner_gain > 0;
        assert_string_equal(sni_gemm_choose(&g, costs)->name, gains ? "inner-product" : "strassen");
        g.inner_product = NULL;
        assert_string_equal(sni_gemm_choose(&g, costs)->name, "strassen");
        g.even = NULL;
        assert_string_equal(sni_gemm_choose(&g, costs)->name, "tiled");
    }
}

/* ---- The mask ---- */

static versus v;

/* Who runs a layer of 128 rows with these families allowed, and what it uses. */
static uint32_t uses_of(uint32_t numerics) {
    sni_dim dims[2][2] = {{128, 512}, {512, 512}};
    sni_type types[2];
    const sni_type *in[2];
    sni_borrows borrows = {.count = 0};
    sni_pack pack = {0};
    sn_error err;
    void *state;
    versus_start(&v, "ai.sinter", "Linear");
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){128, 512}, NULL);
    versus_weight(&v, SN_FLOAT32, 2, (int64_t[]){512, 512}, NULL);
    versus_add_node(&v, 1);
    for (int i = 0; i < 2; i++) {
        types[i] = (sni_type){.kind = SN_KIND_TENSOR,
                              .dtype = SN_FLOAT32,
                              .has_shape = true,
                              .rank = 2,
                              .dims = dims[i]};
        in[i] = &types[i];
    }
    const sni_node *n = sni_graph_first(v.e.graph);
    sni_choice c = {.node = n,
                    .params = n->params,
                    .n_in = 2,
                    .in = in,
                    .left = in[0],
                    .constants = v.constants,
                    .numerics = numerics,
                    .pack = &pack,
                    .borrows = &borrows};
    assert_int_equal(sni_dense_pack(&c, &(sni_dense_weight){1, false, 1}, numerics, &state, &err),
                     SN_OK);
    uint32_t uses = sni_dense_uses(&c, state);
    for (int i = 0; i < borrows.count; i++) sni_borrow_end(&borrows.of[i]);
    free(state);
    sni_pack_clear(&pack);
    eval_end(&v.e);
    return uses;
}

static void mask_decides(void **state) {
    (void)state;
    const uint32_t all = SNI_NUMERICS_STRASSEN | SNI_NUMERICS_INNER_PRODUCT |
                         SNI_NUMERICS_EMULATED | SNI_NUMERICS_COMPRESSED;
    assert_int_equal(uses_of(0), 0);
    assert_int_equal(uses_of(SNI_NUMERICS_STRASSEN), SNI_NUMERICS_STRASSEN);
    for (uint32_t left_out = 1; left_out <= all; left_out *= 2)
        assert_int_equal(uses_of(all & ~left_out) & left_out, 0);
    assert_int_not_equal(uses_of(all), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_match),
        cmocka_unit_test(choice_is_total),
        cmocka_unit_test(costs_decide),
        cmocka_unit_test(mask_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
