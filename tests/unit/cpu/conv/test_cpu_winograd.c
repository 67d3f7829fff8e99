/* test_cpu_winograd.c - Winograd convolution against double precision: every variant, odd shapes,
 * tails, pads, epilogues, threads. Run once per instruction-set tier (SINTER_ISA). */
#include "conv_test.h"

#include "cpu/conv/winograd/winograd.h"

/* Largest errors that the variants may have, over the largest result, by points along an axis: for
 * one axis and for both. Of 300 channels, 36 draws had 9e-7 with 4 points along both axes, 5e-6
 * with 6 and 3e-5 with 8 at most. With stride 2, four phases added up, it was 2.7e-6 and 1.4e-5. */
static double bound(const sni_wino_variant *f) {
    int t = f->t_h > f->t_w ? f->t_h : f->t_w;
    bool both = f->t_h > 1 && f->t_w > 1;
    switch (t) {
    case 4:
        return f->stride * (both ? 1.5e-6 : 6e-7);
    case 6:
        return f->stride * (both ? 7e-6 : 2e-6);
    case 8:
        return both ? 5e-5 : 6e-6;
    default:
        return both ? 1e-4 : 1e-5;
    }
}

static float *run_wino(conv_case *c, const sni_wino_variant *f, int threads) {
    int64_t packed_count = (int64_t)sni_wino_packed_size(&c->g, f);
    int64_t scratch_count = (int64_t)sni_wino_scratch_size(&c->g, f, threads);
    float *packed = random_floats(packed_count), *scratch = random_floats(scratch_count);
    sni_wino_pack(&c->g, f, c->w, packed, threads);
    sni_wino_run(&(sni_wino_call){.g = &c->g,
                                  .variant = f,
                                  .packed = packed,
                                  .x = c->x,
                                  .y = c->y,
                                  .epilogue = c->e,
                                  .threads = threads,
                                  .scratch = scratch,
                                  .scratch_floats = (size_t)scratch_count});
    floats_check(packed, packed_count);
    floats_check(scratch, scratch_count);
    floats_free(packed);
    floats_free(scratch);
    return c->y;
}

static void check_variant(conv_case *c, const sni_wino_variant *f) {
    run_wino(c, f, 1);
    double error = conv_error(c);
    if (!(error <= bound(f))) {
        conv_print(c);
        printf("points %d,%d: error %g\n", f->t_h, f->t_w, error);
        fail();
    }
    size_t bytes = (size_t)c->y_count * sizeof *c->y;
    float *first = random_floats(c->y_count);
    memcpy(first, c->y, bytes);
    for (int threads = 2; threads <= 5; threads += 3)
        assert_memory_equal(run_wino(c, f, threads), first, bytes);
    floats_free(first);
}

/* All variants, with Winograd inner products or plain ones. */
static void check_variants(conv_case *c, bool inner_product) {
    static const int points[] = {1, 4, 6, 8, 10};
    int found = 0;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            sni_wino_variant f;
            if (!sni_wino_variant_of(&c->g, points[i], points[j], &f)) continue;
            f.inner_product = inner_product;
            check_variant(c, &f);
            found++;
        }
    sni_wino_variant taps;
    if (!inner_product && sni_wino_variant_of_taps(&c->g, &taps)) check_variant(c, &taps);
    assert_true(found > 0);
}

static void check_all_variants(conv_case *c) {
    check_variants(c, false);
}

static conv_case case_of(int64_t in, int64_t out, int64_t h, int64_t w, int64_t kernel_h,
                         int64_t kernel_w, int64_t pad) {
    return (conv_case){.g = {.n = 1,
                             .in_channels = in,
                             .out_channels = out,
                             .groups = 1,
                             .in_h = h,
                             .in_w = w,
                             .kernel_h = kernel_h,
                             .kernel_w = kernel_w,
                             .stride_h = 1,
                             .stride_w = 1,
                             .dilation_h = 1,
                             .dilation_w = 1,
                             .pad_top = kernel_h > 1 ? pad : 0,
                             .pad_bottom = kernel_h > 1 ? pad : 0,
                             .pad_left = kernel_w > 1 ? pad : 0,
                             .pad_right = kernel_w > 1 ? pad : 0}};
}

static void test_shapes(void **state) {
    (void)state;
    static const int64_t kernels[][2] = {{3, 3}, {1, 3}, {3, 1}, {5, 5}, {1, 5}, {7, 1},
                                         {1, 7}, {3, 5}, {7, 7}, {4, 4}, {4, 3}, {1, 4},
                                         {2, 2}, {2, 1}, {1, 2}, {2, 3}, {2, 2}};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        conv_case c = case_of(1 + random_below(40), 1 + random_below(40), 7 + random_below(10),
                              7 + random_below(10), kernels[i][0], kernels[i][1], random_below(4));
        c.g.n = 1 + random_below(3);
        c.g.pad_bottom = random_below(3);
        conv_case_init(&c, random_below(2), random_below(2));
        check_all_variants(&c);
        conv_case_free(&c);
    }
}

/* Even and odd sizes, pads that begin with either phase, channels that fill no block. */
static void test_strided(void **state) {
    (void)state;
    static const int64_t kernels[][2] = {{3, 3}, {3, 3}, {3, 3}, {3, 3}, {5, 5},
                                         {7, 7}, {3, 5}, {5, 3}, {7, 3}, {3, 3}};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        conv_case c = case_of(1 + random_below(40), 1 + random_below(40), 7 + random_below(20),
                              7 + random_below(20), kernels[i][0], kernels[i][1], random_below(4));
        c.g.stride_h = c.g.stride_w = 2;
        c.g.n = 1 + random_below(3);
        c.g.pad_bottom = random_below(3);
        c.g.pad_left = random_below(3);
        c.e.act = i % 3 == 2 ? SNI_ACT_RELU : SNI_ACT_NONE;
        conv_case_init(&c, random_below(2), random_below(2));
        check_all_variants(&c);
        conv_case_free(&c);
    }
}

static void test_epilogues(void **state) {
    (void)state;
    static const sni_act acts[] = {SNI_ACT_NONE, SNI_ACT_RELU, SNI_ACT_CLIP, SNI_ACT_HARD_SWISH,
                                   SNI_ACT_SILU};
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
        conv_case c = case_of(20, 33, 9, 11, 3, 3, 1);
        c.e.act = acts[i];
        c.e.p0 = -0.5f;
        c.e.p1 = 0.75f;
        conv_case_init(&c, i % 2, i / 2 % 2);
        check_all_variants(&c);
        conv_case_free(&c);
    }
}

/* Winograd inner products: whole blocks of input channels, odd numbers of blocks of output
 * channels, all kernels. */
static void test_inner_product(void **state) {
    (void)state;
    static const int64_t cases[][8] = {
        {48, 80, 11, 13, 3, 3, 1, 1}, {64, 96, 30, 30, 3, 3, 1, 1},  {304, 130, 14, 14, 3, 3, 1, 1},
        {32, 40, 9, 9, 5, 5, 2, 1},   {16, 33, 17, 12, 1, 7, 3, 1},  {80, 64, 12, 17, 7, 1, 3, 1},
        {64, 48, 9, 40, 2, 2, 0, 1},  {32, 64, 15, 19, 3, 3, 1, 2},  {48, 50, 18, 21, 5, 5, 2, 2},
        {112, 96, 5, 3, 3, 3, 1, 1},  {256, 256, 28, 28, 3, 3, 1, 1}};
    if (sni_cpu_kernels_get()->block != SNI_LEFT_STEPS) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t *p = cases[i];
        conv_case c = case_of(p[0], p[1], p[2], p[3], p[4], p[5], p[6]);
        c.g.stride_h = c.g.stride_w = p[7];
        c.g.n = 1 + random_below(2);
        c.e.act = i % 2 ? SNI_ACT_RELU : SNI_ACT_NONE;
        conv_case_init(&c, i % 3 != 0, i % 4 == 1);
        check_variants(&c, true);
        conv_case_free(&c);
    }
}

/* Blocks of tiles, groups of output channels, and threads that share a block. */
static void test_large(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{64, 96, 30, 30}, {300, 130, 14, 14}, {17, 16, 61, 90}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int stride = 1; stride <= 2; stride++) {
            conv_case c = case_of(shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3], 3, 3, 1);
            c.g.stride_h = c.g.stride_w = stride;
            conv_case_init(&c, true, true);
            sni_wino_variant f;
            for (int t = 4; t <= (stride == 1 ? 8 : 6); t += 2) {
                assert_true(sni_wino_variant_of(&c.g, t, t, &f));
                check_variant(&c, &f);
            }
            conv_case_free(&c);
        }
    }
}

static void test_refused(void **state) {
    (void)state;
    sni_wino_variant f;
    conv_case c = case_of(8, 8, 9, 9, 3, 3, 1);
    assert_true(sni_wino_variant_of(&c.g, 6, 6, &f));
    assert_false(sni_wino_variant_of(&c.g, 5, 5, &f));
    assert_false(sni_wino_variant_of(&c.g, 1, 6, &f));
    c.g.stride_w = 2;
    assert_false(sni_wino_variant_of(&c.g, 6, 6, &f));
    c.g.stride_h = 2;
    assert_true(sni_wino_variant_of(&c.g, 6, 6, &f));
    assert_false(sni_wino_variant_of(&c.g, 8, 6, &f));
    c.g.kernel_w = 4;
    assert_false(sni_wino_variant_of(&c.g, 6, 6, &f));
    c.g.kernel_w = 3;
    c.g.stride_h = c.g.stride_w = 3;
    assert_false(sni_wino_variant_of(&c.g, 6, 6, &f));
    c.g.stride_h = c.g.stride_w = 1;
    c.g.dilation_h = 2;
    assert_false(sni_wino_variant_of(&c.g, 6, 6, &f));
    c.g.dilation_h = 1;
    c.g.groups = 2;
    assert_false(sni_wino_variant_of(&c.g, 6, 6, &f));
    c = case_of(8, 8, 9, 9, 1, 1, 0);
    assert_false(sni_wino_variant_of(&c.g, 1, 1, &f));
    c = case_of(8, 8, 9, 9, 5, 5, 0);
    assert_false(sni_wino_variant_of(&c.g, 4, 4, &f));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),    cmocka_unit_test(test_strided),
        cmocka_unit_test(test_epilogues), cmocka_unit_test(test_large),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_inner_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
