/* gemm_products.h - what tests of ways to make matrix products (cpu/gemm/gemm.h) share: operands,
 * and a way's results with threads and ends of all kinds. */
#ifndef GEMM_PRODUCTS_H
#define GEMM_PRODUCTS_H

#include "products.h"
#include "versus.h"

#include "cpu/gemm/gemm.h"

/* Makes product g with B (k,n), which is packed first, in some way. */
typedef void (*multiply_fn)(sni_gemm_f32 g, const float *b, int way, int threads);

static inline void drop(void *p, size_t bytes, const char *what) {
    versus_check_guard(p, bytes, what);
    free((unsigned char *)p - VERSUS_GUARD);
}

/* Operands and results of a product. */
typedef struct product {
    int64_t m, n, k;
    float *a, *b, *c;
} product;

static inline product product_new(int64_t m, int64_t n, int64_t k, uint64_t seed) {
    product p = {m, n, k, product_floats(m * k, seed), product_floats(k * n, seed + 1), NULL};
    p.c = (float *)(void *)versus_guarded((size_t)(m * n) * sizeof *p.c);
    return p;
}

static inline void product_free(product *p) {
    drop(p->c, (size_t)(p->m * p->n) * sizeof *p->c, "C");
    free(p->a);
    free(p->b);
}

static inline sni_gemm_f32 gemm_of(const product *p) {
    return (sni_gemm_f32){.m = p->m,
                          .n = p->n,
                          .k = p->k,
                          .a = p->a,
                          .a_row = p->k,
                          .a_col = 1,
                          .c = p->c,
                          .c_row = p->n};
}

/* The larger of the errors of rows and columns. */
static inline double error_of(const product *p) {
    return fmax(product_worst(p->m, p->n, p->k, p->a, p->b, p->c, false),
                product_worst(p->m, p->n, p->k, p->a, p->b, p->c, true));
}

/* A product with one thread, two and three has the same bits. Returns its error. */
static inline double threads_agree(multiply_fn multiply, product *p, int way) {
    size_t bytes = (size_t)(p->m * p->n) * sizeof(float);
    float *first = malloc(bytes);
    assert_non_null(first);
    for (int threads = 1; threads <= 3; threads++) {
        memset(p->c, 0xA5, bytes);
        multiply(gemm_of(p), p->b, way, threads);
        if (threads == 1) memcpy(first, p->c, bytes);
        if (memcmp(first, p->c, bytes) != 0)
            fail_msg("%d threads differ from 1 (%lld %lld %lld)", threads, (long long)p->m,
                     (long long)p->n, (long long)p->k);
    }
    free(first);
    return error_of(p);
}

/* ---- Ends ---- */

static inline double act_of(const sni_epilogue *e, int64_t j, double x) {
    switch (e->act) {
    case SNI_ACT_RELU:
        return fmax(x, 0);
    case SNI_ACT_CLIP:
        return fmin(fmax(x, (double)e->p0), (double)e->p1);
    case SNI_ACT_GELU:
        return 0.5 * x * (1 + erf(x * 0.70710678118654752));
    case SNI_ACT_LEAKY_RELU:
        return x < 0 ? x * (double)e->column_slopes[j] : x;
    default:
        return x;
    }
}

enum { GAP_A = 7, GAP_C = 3, GAP_RESIDUAL = 5 }; /* elements behind rows */

/* Product g of memory where rows have something behind them, which stays. */
static inline void check_end(multiply_fn multiply, sni_gemm_f32 g, const float *b, int way) {
    size_t count = (size_t)(g.m * g.c_row), bytes = count * sizeof(float);
    float *before = product_floats(g.m * g.c_row, 7);
    const sni_epilogue *e = &g.epilogue;
    g.c = (float *)(void *)versus_guarded(bytes);
    memcpy(g.c, before, bytes);
    multiply(g, b, way, 2);
    for (int64_t i = 0; i < g.m; i++)
        for (int64_t j = 0; j < g.c_row; j++) {
            double got = (double)g.c[i * g.c_row + j], want = (double)before[i * g.c_row + j];
            if (j >= g.n) {
                assert_true(got == want);
                continue;
            }
            if (!g.add) want = 0;
            for (int64_t p = 0; p < g.k; p++)
                want += (double)g.a[i * g.a_row + p] * (double)b[p * g.n + j];
            if (e->column_bias) want += (double)e->column_bias[j];
            if (e->residual) want += (double)e->residual[i * e->residual_row + j];
            want = act_of(e, j, want);
            if (!(fabs(got - want) <= 1e-6 * sqrt((double)g.k)))
                fail_msg("%lld, %lld by %d: %g, not %g", (long long)i, (long long)j, way, got,
                         want);
        }
    drop(g.c, bytes, "C");
    free(before);
}

/* All activations with and without bias, residual and what C has. */
static inline void check_ends(multiply_fn multiply, int way) {
    static const sni_act acts[] = {SNI_ACT_NONE, SNI_ACT_RELU, SNI_ACT_CLIP, SNI_ACT_GELU,
                                   SNI_ACT_LEAKY_RELU};
    static const int64_t sizes[][3] = {{41, 113, 80}, {29, 80, 1600}};
    for (int transpose = 0; transpose < 2 * 5 * 8; transpose++) {
        const int64_t *s = sizes[transpose % 2];
        int mode = transpose / 10;
        int64_t m = s[0], n = s[1], k = s[2];
        float *a = product_floats(m * (k + GAP_A), 11), *b = product_floats(k * n, 12);
        float *bias = product_floats(n, 13), *slopes = product_floats(n, 14);
        float *residual = product_floats(m * (n + GAP_RESIDUAL), 15);
        sni_gemm_f32 g = {.m = m,
                          .n = n,
                          .k = k,
                          .a = a,
                          .a_row = k + GAP_A,
                          .a_col = 1,
                          .c_row = n + GAP_C,
                          .add = mode & 1};
        g.epilogue = (sni_epilogue){.act = acts[transpose / 2 % 5], .p0 = -2.5f, .p1 = 3.25f};
        if (g.epilogue.act == SNI_ACT_LEAKY_RELU) g.epilogue.column_slopes = slopes;
        if (mode & 2) g.epilogue.column_bias = bias;
        if (mode & 4) g.epilogue.residual = residual;
        g.epilogue.residual_row = n + GAP_RESIDUAL;
        check_end(multiply, g, b, way);
        free(a);
        free(b);
        free(bias);
        free(slopes);
        free(residual);
    }
}

/* ---- Layers ---- */

/* A Linear of m rows, n columns and k terms that may be computed by one family of numerics or, in
 * half of the modes, two. */
static inline void check_layer(versus *v, const int64_t size[3], int mode, int transpose,
                               uint32_t family, uint32_t beside) {
    static const char *const activations[] = {NULL, "Relu", "Gelu", "HardSwish"};
    int64_t m = size[0], n = size[1], k = size[2];
    bool slopes = mode == 6, transposed = mode & 1;
    versus_start(v, "ai.sinter", "Linear");
    versus_tensor(v, SN_FLOAT32, 2, (int64_t[]){m, k}, NULL);
    versus_weight(v, SN_FLOAT32, 2, (int64_t[]){transposed ? n : k, transposed ? k : n}, NULL);
    if (mode & 1)
        versus_weight(v, SN_FLOAT32, 1, &n, NULL);
    else
        versus_without(v);
    if (mode & 2)
        versus_tensor(v, SN_FLOAT32, 2, (int64_t[]){m, n}, NULL);
    else
        versus_without(v);
    if (slopes) versus_weight(v, SN_FLOAT32, 1, &n, NULL);
    eval_attr(&v->e, sni_attr_of_int("trans_w", transposed));
    v->numerics = family | (mode & 4 ? beside : 0);
    const char *act = slopes ? NULL : activations[(transpose + mode) % 4];
    if (act) eval_attr(&v->e, sni_attr_of_string("activation", act));
    versus_run(v, 1, 3e-6 * sqrt((double)k));
}

/* ---- Kinds of operands ---- */

/* What operands are like. */
enum { ANY, POSITIVE, BOTH_POSITIVE, BEHIND_RELU, ONE_OUTLIER, OUTLIERS, KINDS };

static inline void make_kind(product *p, int kind) {
    for (int64_t i = 0; i < p->m * p->k; i++) {
        int64_t term = i % p->k;
        if (kind == POSITIVE || kind == BOTH_POSITIVE) p->a[i] = fabsf(p->a[i]);
        if (kind == BEHIND_RELU) p->a[i] = fmaxf(p->a[i], 0);
        if (kind == ONE_OUTLIER && term == 6) p->a[i] *= 100;
        if (kind == OUTLIERS && term % 97 == 5) p->a[i] = 100;
    }
    for (int64_t i = 0; kind == BOTH_POSITIVE && i < p->k * p->n; i++) p->b[i] = fabsf(p->b[i]);
}

static inline void scale_row(product *p, int64_t i, float factor) {
    for (int64_t q = 0; q < p->k; q++) p->a[i * p->k + q] *= factor;
}

static inline void scale_column(product *p, int64_t j, float factor) {
    for (int64_t q = 0; q < p->k; q++) p->b[q * p->n + j] *= factor;
}

static inline void check_alike(const float *got, const float *want, int64_t n, int transpose) {
    for (int64_t i = 0; i < n; i++) {
        double x = (double)got[i], y = (double)want[i];
        bool same = isnan(y) ? isnan(x) : x == y || fabs(x - y) <= 5e-5 * fmax(1, fabs(y));
        if (!same) fail_msg("turn %d, element %lld: %g, not %g", transpose, (long long)i, x, y);
    }
}

#endif
