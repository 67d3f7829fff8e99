/* test_cpu.c - vector kernels against plain C: odd sizes, tails, NaN and infinity, guarded memory.
 * Run once per instruction-set tier (SINTER_ISA). */
#include "../plain_act.h"
#include "unit.h"

#include "base/tensor.h"
#include "cpu/core/dispatch.h"
#include "cpu/gemm/gemm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { GUARD = 64 };
static const float GUARD_VALUE = 12345.0f;

static uint32_t seed = 1;

static uint32_t next_random(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static float random_float(void) {
    return (float)(next_random() % 2001) / 1000.0f - 1.0f;
}

static int64_t random_below(int64_t n) {
    return (int64_t)(next_random() % (uint32_t)n);
}

/* `count` floats with guards around them, aligned to the guard's end. */
static float *floats_new(size_t count) {
    float *p = aligned_alloc(64, ((count + 2 * GUARD) * sizeof *p + 63) / 64 * 64);
    assert_non_null(p);
    for (size_t i = 0; i < count + 2 * GUARD; i++) p[i] = GUARD_VALUE;
    return p + GUARD;
}

static float *random_floats(size_t count) {
    float *p = floats_new(count);
    for (size_t i = 0; i < count; i++) p[i] = random_float();
    return p;
}

static void floats_check(const float *p, size_t count) {
    for (int i = 0; i < GUARD; i++) {
        assert_true(p[-1 - i] == GUARD_VALUE);
        assert_true(p[count + (size_t)i] == GUARD_VALUE);
    }
}

static void floats_free(float *p) {
    free(p - GUARD);
}

/* ---- Activations ---- */

static void close_to(double got, double want, double tolerance, const char *what, double x) {
    if (isnan(want) ? isnan(got) : got == want || fabs(got - want) <= tolerance) return;
    fail_msg("%s(%g) is %.9g, not %.9g", what, x, got, want);
}

static void activations_match(void **state) {
    (void)state;
    static const char *const names[] = {"none",       "relu",         "clip",
                                        "leaky_relu", "hard_sigmoid", "hard_swish",
                                        "sigmoid",    "silu",         "tanh"};
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    for (int act = SNI_ACT_NONE; act <= SNI_ACT_TANH; act++) {
        sni_epilogue e = {
            .act = (sni_act)act, .p0 = act == SNI_ACT_CLIP ? -0.5f : 0.2f, .p1 = 0.5f};
        for (int64_t n = 0; n < 70; n++) {
            float *y = floats_new((size_t)n), *x = floats_new((size_t)n);
            for (int64_t i = 0; i < n; i++) {
                static const float special[] = {0,        -0.0f,     1e-20f, -1e-20f, 88,
                                                -88,      104,       -104,   500,     -500,
                                                INFINITY, -INFINITY, 0.625f, 1e-4f};
                x[i] = i % 3 ? random_float() * 20 : special[random_below(14)];
                y[i] = x[i];
            }
            k->finish_row(&e, y, 0, NULL, NULL, n);
            for (int64_t i = 0; i < n; i++) {
                double want = plain_act(e.act, e.p0, e.p1, (double)x[i]);
                close_to((double)y[i], want, 3e-7 * fmax(1, fabs(want)), names[act], (double)x[i]);
            }
            floats_check(y, (size_t)n);
            floats_free(x);
            floats_free(y);
        }
        float nan_row[17];
        for (int i = 0; i < 17; i++) nan_row[i] = NAN;
        k->finish_row(&e, nan_row, 0, NULL, NULL, 17);
        for (int i = 0; i < 17; i++) assert_true(isnan(nan_row[i]));
    }
}

static void rows_are_finished(void **state) {
    (void)state;
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    sni_epilogue e = {.act = SNI_ACT_RELU};
    for (int64_t n = 1; n < 50; n++) {
        float *y = random_floats((size_t)n), *columns = random_floats((size_t)n);
        float *more = random_floats((size_t)n), *want = floats_new((size_t)n);
        for (int64_t i = 0; i < n; i++) want[i] = fmaxf(y[i] + 0.25f + columns[i] + more[i], 0);
        k->finish_row(&e, y, 0.25f, columns, more, n);
        for (int64_t i = 0; i < n; i++) assert_true(fabsf(y[i] - want[i]) <= 1e-6f);
        k->axpy(0.5f, more, y, n);
        for (int64_t i = 0; i < n; i++)
            assert_true(fabsf(y[i] - want[i] - 0.5f * more[i]) <= 1e-6f);
        floats_check(y, (size_t)n);
        floats_free(y);
        floats_free(columns);
        floats_free(more);
        floats_free(want);
    }
}

/* ---- Products ---- */

typedef struct filler {
    const float *b;
    int64_t n;
} filler;

static void fill(const void *ctx, int64_t k0, int64_t rows, int64_t n0, int64_t cols, int nr,
                 float *panel) {
    const filler *f = ctx;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < nr; c++)
            panel[r * nr + c] = c < cols ? f->b[(k0 + r) * f->n + n0 + c] : 0;
}

/* One product in one way: bit 0 of `mode` packs A before, bits 1 and 2 choose where B comes from,
 * bit 3 adds bias and activation, bit 4 transposes both operands. */
static void check_product(int64_t m, int64_t n, int64_t k, int mode, int threads, const float *a,
                          const float *b, const double *product) {
    bool transposed = mode & 16;
    float *c = floats_new((size_t)(m * n)), *bias = random_floats((size_t)m);
    float *packed_a = floats_new(sni_gemm_packed_a_size(m, k));
    float *packed_b = floats_new(sni_gemm_packed_b_size(k, n));
    filler f = {.b = b, .n = n};
    sni_gemm_f32 g = {.m = m, .n = n, .k = k, .a = a, .b = b, .c = c, .c_row = n};
    g.a_row = transposed ? 1 : k;
    g.a_col = transposed ? m : 1;
    g.b_row = transposed ? 1 : n;
    g.b_col = transposed ? k : 1;
    if (mode & 1) {
        sni_gemm_pack_a(a, g.a_row, g.a_col, m, k, packed_a);
        g.packed_a = packed_a;
    }
    if (mode & 2) {
        sni_gemm_pack_b(b, g.b_row, g.b_col, k, n, packed_b);
        g.packed_b = packed_b;
    } else if ((mode & 4) && !transposed) {
        g.fill = fill;
        g.fill_ctx = &f;
    }
    if (mode & 8) g.epilogue = (sni_epilogue){.act = SNI_ACT_RELU, .row_bias = bias};
    float *scratch = floats_new(sni_gemm_scratch_size(&g, threads));
    sni_gemm_f32_run(&g, threads, scratch);
    for (int64_t i = 0; i < m * n; i++) {
        double want = product[i];
        if (mode & 8) want = fmax(want + (double)bias[i / n], 0);
        if (fabs((double)c[i] - want) > 1e-5 * (double)(k + 1))
            fail_msg("%lldx%lldx%lld mode %d: element %lld is %g, not %g", (long long)m,
                     (long long)n, (long long)k, mode, (long long)i, (double)c[i], want);
    }
    floats_check(c, (size_t)(m * n));
    floats_check(scratch, sni_gemm_scratch_size(&g, threads));
    floats_free(c);
    floats_free(bias);
    floats_free(packed_a);
    floats_free(packed_b);
    floats_free(scratch);
}

static void check_sizes(int64_t m, int64_t n, int64_t k) {
    float *a = random_floats((size_t)(m * k)), *b = random_floats((size_t)(k * n));
    for (int transposed = 0; transposed < 2; transposed++) {
        double *product = calloc((size_t)(m * n) + 1, sizeof *product);
        for (int64_t i = 0; i < m; i++)
            for (int64_t p = 0; p < k; p++)
                for (int64_t j = 0; j < n; j++)
                    product[i * n + j] += (double)(transposed ? a[p * m + i] : a[i * k + p]) *
                                          (double)(transposed ? b[j * k + p] : b[p * n + j]);
        for (int mode = 0; mode < 16; mode++)
            check_product(m, n, k, mode | transposed << 4, mode % 3 + 1, a, b, product);
        free(product);
    }
    floats_free(a);
    floats_free(b);
}

static void products_match(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1},    {1, 100, 50},  {100, 1, 50},  {3, 5, 0},
                                       {6, 16, 320}, {14, 32, 321}, {13, 31, 700}, {200, 9, 33},
                                       {7, 1100, 3}, {0, 4, 4},     {4, 0, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_sizes(sizes[i][0], sizes[i][1], sizes[i][2]);
    for (int i = 0; i < 20; i++)
        check_sizes(1 + random_below(60), 1 + random_below(80), 1 + random_below(90));
}

/* B may be (n, k) as well as (k, n). */
static void check_threads(int64_t m, int64_t n, int64_t k, bool transposed) {
    enum { THREADS = 3 };
    float *a = random_floats((size_t)(m * k)), *b = random_floats((size_t)(k * n)), *c[THREADS];
    for (int t = 0; t < THREADS; t++) {
        c[t] = floats_new((size_t)(m * n));
        sni_gemm_f32 g = {.m = m,
                          .n = n,
                          .k = k,
                          .a = a,
                          .a_row = k,
                          .a_col = 1,
                          .b = b,
                          .b_row = transposed ? 1 : n,
                          .b_col = transposed ? k : 1,
                          .c = c[t],
                          .c_row = n,
                          .may_stay_unpacked = true};
        float *scratch = floats_new(sni_gemm_scratch_size(&g, t + 1));
        sni_gemm_f32_run(&g, t + 1, scratch);
        floats_free(scratch);
        assert_memory_equal(c[0], c[t], (size_t)(m * n) * sizeof *c[0]);
    }
    floats_free(a);
    floats_free(b);
    for (int t = 0; t < THREADS; t++) floats_free(c[t]);
}

static void threads_do_not_change_results(void **state) {
    static const int64_t sizes[][3] = {{75, 130, 400}, {300, 7, 500}, {1, 700, 130}, {9, 300, 90},
                                       {201, 33, 64},  {50, 1, 900},  {5, 333, 70}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int transposed = 0; transposed < 2; transposed++)
            check_threads(sizes[i][0], sizes[i][1], sizes[i][2], transposed);
}

/* Counts down to the time to stop. */
static bool count_down(const void *left) {
    return --*(int *)(uintptr_t)left < 0;
}

/* Over three blocks of k, the product is left after so many of them as it was allowed. */
static void products_stop(void **state) {
    (void)state;
    int64_t m = 5, n = 40, k = 3 * sni_cpu_kernels_get()->kc;
    float *a = random_floats((size_t)(m * k)), *b = random_floats((size_t)(k * n));
    float *c = floats_new((size_t)(m * n)), *want = floats_new((size_t)(m * n));
    for (int blocks = 0; blocks <= 3; blocks++) {
        int left = blocks;
        sni_gemm_f32 g = {.m = m,
                          .n = n,
                          .k = k,
                          .a = a,
                          .a_row = k,
                          .a_col = 1,
                          .b = b,
                          .b_row = n,
                          .b_col = 1,
                          .c = want,
                          .c_row = n,
                          .add = true};
        memset(want, 0, (size_t)(m * n) * sizeof *want);
        memset(c, 0, (size_t)(m * n) * sizeof *c);
        float *scratch = floats_new(sni_gemm_scratch_size(&g, 1));
        g.k = blocks * sni_cpu_kernels_get()->kc;
        sni_gemm_f32_run(&g, 1, scratch);
        g.k = k;
        g.c = c;
        g.stop = count_down;
        g.stop_ctx = &left;
        sni_gemm_f32_run(&g, 1, scratch);
        assert_int_equal(left, blocks < 3 ? -1 : 0);
        assert_memory_equal(c, want, (size_t)(m * n) * sizeof *c);
        floats_free(scratch);
    }
    floats_free(a);
    floats_free(b);
    floats_free(c);
    floats_free(want);
}

/* ---- Convolution through a session ---- */

typedef struct conv_case {
    int64_t n, c, h, w, m, kh, kw, group, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
    bool bias;
} conv_case;

static int64_t out_size(int64_t in, int64_t k, int64_t stride, int64_t pad, int64_t dilation) {
    return (in + 2 * pad - (k - 1) * dilation - 1) / stride + 1;
}

static double conv_at(const conv_case *t, const float *x, const float *w, int64_t n, int64_t m,
                      int64_t oh, int64_t ow) {
    int64_t per = t->c / t->group, group = m / (t->m / t->group);
    double sum = 0;
    for (int64_t c = 0; c < per; c++)
        for (int64_t a = 0; a < t->kh; a++)
            for (int64_t b = 0; b < t->kw; b++) {
                int64_t row = oh * t->stride_h - t->pad_h + a * t->dilation_h;
                int64_t col = ow * t->stride_w - t->pad_w + b * t->dilation_w;
                if (row < 0 || row >= t->h || col < 0 || col >= t->w) continue;
                sum += (double)x[((n * t->c + group * per + c) * t->h + row) * t->w + col] *
                       (double)w[((m * per + c) * t->kh + a) * t->kw + b];
            }
    return sum;
}

static char *put_floats(char *at, const float *v, int64_t count) {
    for (int64_t i = 0; i < count; i++) at += sprintf(at, "%s%.9g", i ? ", " : "", (double)v[i]);
    return at;
}

static sn_session *conv_session(const conv_case *t, const float *w, const float *bias) {
    int64_t per = t->c / t->group, count = t->m * per * t->kh * t->kw;
    char *text = malloc((size_t)(count + t->m) * 20 + 2000), *at = text;
    at += sprintf(
        at,
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,%lld,H,W] X) => (float[N,M,P,Q] Y) "
        "<float[%lld,%lld,%lld,%lld] W = {",
        (long long)t->c, (long long)t->m, (long long)per, (long long)t->kh, (long long)t->kw);
    at = put_floats(at, w, count);
    at += sprintf(at, "}, float[%lld] B = {", (long long)t->m);
    at = put_floats(at, bias, t->m);
    at +=
        sprintf(at,
                "}> { Y = Conv <group = %lld, strides = [%lld, %lld], pads = [%lld, %lld, %lld, "
                "%lld], dilations = [%lld, %lld]> (X, W%s) }",
                (long long)t->group, (long long)t->stride_h, (long long)t->stride_w,
                (long long)t->pad_h, (long long)t->pad_w, (long long)t->pad_h, (long long)t->pad_w,
                (long long)t->dilation_h, (long long)t->dilation_w, t->bias ? ", B" : "");
    sn_model *model;
    sn_session *session;
    sn_error err;
    if (sn_model_load_text(text, (size_t)(at - text), &model, &err) != SN_OK)
        fail_msg("%s", err.message);
    if (sn_session_create(model, NULL, &session, &err) != SN_OK) fail_msg("%s", err.message);
    sn_model_destroy(model);
    free(text);
    return session;
}

static void check_conv(const conv_case *t) {
    int64_t per = t->c / t->group;
    float *w = random_floats((size_t)(t->m * per * t->kh * t->kw));
    float *bias = random_floats((size_t)t->m);
    float *x = random_floats((size_t)(t->n * t->c * t->h * t->w));
    sn_session *session = conv_session(t, w, bias);
    int64_t dims[4] = {t->n, t->c, t->h, t->w};
    sn_binding in = {.name = "X"}, out = {.name = "Y"};
    sn_error err;
    assert_int_equal(sn_tensor_wrap(SN_FLOAT32, 4, dims, x,
                                    (size_t)(t->n * t->c * t->h * t->w) * sizeof *x, &in.value,
                                    &err),
                     SN_OK);
    if (sn_session_run(session, NULL, &in, 1, &out, 1, &err) != SN_OK) fail_msg("%s", err.message);
    int64_t oh = out_size(t->h, t->kh, t->stride_h, t->pad_h, t->dilation_h);
    int64_t ow = out_size(t->w, t->kw, t->stride_w, t->pad_w, t->dilation_w);
    assert_int_equal(sn_tensor_count(out.value), t->n * t->m * oh * ow);
    const float *y = sn_tensor_const_data(out.value);
    for (int64_t i = 0; i < t->n * t->m * oh * ow; i++) {
        int64_t m = i / (oh * ow) % t->m;
        double want = conv_at(t, x, w, i / (oh * ow * t->m), m, i / ow % oh, i % ow);
        if (t->bias) want += (double)bias[m];
        if (fabs((double)y[i] - want) > 1e-5 * (double)(per * t->kh * t->kw + 1))
            fail_msg("%lldx%lld kernel, group %lld: element %lld is %g, not %g", (long long)t->kh,
                     (long long)t->kw, (long long)t->group, (long long)i, (double)y[i], want);
    }
    sn_value_destroy(in.value);
    sn_value_destroy(out.value);
    sn_session_destroy(session);
    floats_free(w);
    floats_free(bias);
    floats_free(x);
}

static void convolutions_match(void **state) {
    (void)state;
    for (int i = 0; i < 150; i++) {
        conv_case t = {.n = 1 + random_below(2),
                       .kh = 1 + random_below(4),
                       .kw = 1 + random_below(4),
                       .group = 1 + random_below(3),
                       .stride_h = 1 + random_below(3),
                       .stride_w = 1 + random_below(3),
                       .pad_h = random_below(3),
                       .pad_w = random_below(3),
                       .dilation_h = 1 + random_below(2),
                       .dilation_w = 1 + random_below(2),
                       .bias = random_below(2)};
        t.c = t.group * (1 + random_below(5));
        t.m = t.group * (1 + random_below(9));
        t.h = (t.kh - 1) * t.dilation_h + 1 + random_below(20);
        t.w = (t.kw - 1) * t.dilation_w + 1 + random_below(40);
        if (i % 4 == 0 || i % 8 == 5) t.group = t.c = t.m; /* depthwise */
        if (i % 4 == 1) t.kh = t.kw = t.stride_h = t.stride_w = 1, t.pad_h = t.pad_w = 0;
        check_conv(&t);
    }
}

/* Every table of tiers.def: that in force is the one of SINTER_ISA's tier, each tier that the
 * machine has is there, and no other. */
static void tiers_are_chosen(void **state) {
    (void)state;
#define SNI_TIER_TABLE(type, best)                            \
    assert_ptr_equal(type##_get(), type##_of(sni_cpu_isa())); \
    for (int isa = 0; isa < SNI_ISA_COUNT; isa++)             \
        assert_int_equal(type##_of((sni_isa)isa) != NULL, isa <= (int)sni_cpu_best());
#include "cpu/core/tiers.def"
#undef SNI_TIER_TABLE
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiers_are_chosen),
        cmocka_unit_test(activations_match),
        cmocka_unit_test(rows_are_finished),
        cmocka_unit_test(products_match),
        cmocka_unit_test(threads_do_not_change_results),
        cmocka_unit_test(products_stop),
        cmocka_unit_test(convolutions_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
