/* test_cpu_depthwise.c - depthwise convolution of blocked tensors, and that of groups that lie in a
 * block, against double precision: windows, odd shapes, pads, epilogues, threads. Run once per
 * instruction-set tier (SINTER_ISA). */
#include "conv_test.h"

#include "cpu/conv/depthwise/depthwise.h"

static void check(conv_case *c) {
    int64_t packed_count = (int64_t)sni_depthwise_packed_size(&c->g);
    float *packed = random_floats(packed_count), *first = random_floats(c->y_count);
    size_t bytes = (size_t)c->y_count * sizeof *c->y;
    assert_true(sni_depthwise_fits(&c->g));
    sni_depthwise_pack(&c->g, c->w, packed);
    floats_check(packed, packed_count);
    sni_depthwise_run(&c->g, packed, c->x, c->y, &c->e, 1);
    double error = conv_error(c);
    if (!(error <= 2e-6)) {
        conv_print(c);
        printf("error %g\n", error);
        fail();
    }
    memcpy(first, c->y, bytes);
    for (int threads = 2; threads <= 3; threads++) {
        sni_depthwise_run(&c->g, packed, c->x, c->y, &c->e, threads);
        assert_memory_equal(c->y, first, bytes);
    }
    floats_free(packed);
    floats_free(first);
    conv_case_free(c);
}

static conv_case case_of(int64_t channels, int64_t h, int64_t w, int64_t kernel_h, int64_t kernel_w,
                         int64_t stride, int64_t dilation, int64_t pad) {
    return (conv_case){.g = {.n = 1,
                             .in_channels = channels,
                             .out_channels = channels,
                             .groups = channels,
                             .in_h = h,
                             .in_w = w,
                             .kernel_h = kernel_h,
                             .kernel_w = kernel_w,
                             .stride_h = stride,
                             .stride_w = stride,
                             .dilation_h = dilation,
                             .dilation_w = dilation,
                             .pad_top = pad,
                             .pad_bottom = pad,
                             .pad_left = pad,
                             .pad_right = pad}};
}

/* Every kernel size and stride, on planes that are framed and ones that are not. */
static void test_windows(void **state) {
    (void)state;
    for (int64_t kernel = 1; kernel <= 7; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int large = 0; large <= 1; large++) {
                conv_case c = case_of(1 + random_below(40), 7 + random_below(7) + large * 24,
                                      7 + random_below(9) + large * 30, kernel, kernel, stride, 1,
                                      random_below(kernel));
                c.g.pad_left = random_below(kernel + 1);
                c.g.n = 1 + random_below(2);
                conv_case_init(&c, random_below(2), random_below(2));
                check(&c);
            }
}

/* Groups that divide a block, of which the last block may have fewer than others, and groups that
 * lie across blocks. */
static void test_groups(void **state) {
    (void)state;
    static const int64_t sizes[] = {2, 4, 8, 16, 24, 40, 17};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int64_t kernel = 1; kernel <= 5; kernel += 2)
            for (int64_t stride = 1; stride <= 3; stride++)
                for (int large = 0; large <= 1; large++) {
                    conv_case c =
                        case_of(sizes[i] * (1 + random_below(7)), 9 + random_below(5) + large * 9,
                                9 + random_below(7) + large * 20, kernel, kernel, stride,
                                1 + random_below(2), random_below(kernel));
                    c.g.groups = c.g.in_channels / sizes[i];
                    if (i < 4) c.g.out_channels *= 1 + large; /* more outputs than inputs */
                    c.g.n = 1 + random_below(2);
                    c.e.act = random_below(2) ? SNI_ACT_SILU : SNI_ACT_RELU;
                    conv_case_init(&c, random_below(2), random_below(2));
                    check(&c);
                }
}

static void test_dilation(void **state) {
    (void)state;
    for (int64_t dilation = 2; dilation <= 12; dilation += 5) {
        conv_case small = case_of(17, 33 - dilation, 27, 3, 3, 1, dilation, dilation);
        conv_case_init(&small, true, false);
        check(&small);
        conv_case large = case_of(5, 40, 50, 3, 5, 2, dilation, 2 * dilation);
        conv_case_init(&large, false, true);
        check(&large);
    }
}

static void test_epilogues(void **state) {
    (void)state;
    static const sni_act acts[] = {SNI_ACT_NONE, SNI_ACT_RELU, SNI_ACT_CLIP, SNI_ACT_HARD_SWISH,
                                   SNI_ACT_SILU};
    for (size_t i = 0; i < 2 * sizeof acts / sizeof *acts; i++) {
        conv_case c = case_of(33, i % 2 ? 9 : 40, 11, 3, 3, 1, 1, 1);
        c.e.act = acts[i / 2];
        c.e.p0 = -0.5f;
        c.e.p1 = 0.75f;
        conv_case_init(&c, i % 3 > 0, i / 3 % 2);
        check(&c);
    }
}

/* 3x3 over pictures of every height and width that pairs of rows and groups of columns begin or end
 * in, with padding above and below that differs. */
static void test_pairs_of_rows(void **state) {
    (void)state;
    for (int64_t h = 1; h <= 9; h++)
        for (int64_t w = 1; w <= 29; w += 1 + random_below(2)) {
            conv_case c = case_of(1 + random_below(20), h, w, 3, 3, 1, 1, 1);
            c.g.pad_top = h < 3 ? 2 : random_below(3);
            c.g.pad_bottom = random_below(3);
            c.e.act = random_below(2) ? SNI_ACT_RELU : SNI_ACT_NONE;
            conv_case_init(&c, random_below(2), random_below(2));
            check(&c);
        }
}

/* Wide kernels, kernels wider than the picture, padding that covers whole rows. */
static void test_extremes(void **state) {
    (void)state;
    conv_case wide = case_of(9, 35, 37, 31, 31, 1, 1, 15);
    conv_case_init(&wide, true, false);
    check(&wide);
    conv_case tiny = case_of(3, 1, 2, 5, 5, 1, 1, 4);
    conv_case_init(&tiny, true, true);
    check(&tiny);
    conv_case thin = case_of(20, 300, 1, 3, 3, 1, 1, 2);
    conv_case_init(&thin, true, false);
    check(&thin);
}

/* NaN reaches the channels of its group and no others. */
static void check_not_numbers(int64_t few) {
    conv_case c = case_of(8, 9, 9, 3, 3, 1, 1, 1);
    c.g.groups = 8 / few;
    c.e.act = SNI_ACT_RELU;
    conv_case_init(&c, true, false);
    c.x[blocked_at(0, 2, 4, 4, 8, 9, 9, c.block)] = NAN;
    float *packed = random_floats((int64_t)sni_depthwise_packed_size(&c.g));
    sni_depthwise_pack(&c.g, c.w, packed);
    sni_depthwise_run(&c.g, packed, c.x, c.y, &c.e, 1);
    for (int64_t channel = 0; channel < 8; channel++)
        for (int64_t h = 0; h < 9; h++)
            for (int64_t w = 0; w < 9; w++) {
                bool seen = channel / few == 2 / few && llabs(h - 4) <= 1 && llabs(w - 4) <= 1;
                float y = c.y[blocked_at(0, channel, h, w, 8, 9, 9, c.block)];
                assert_int_equal(isnan(y) != 0, seen);
            }
    floats_free(packed);
    conv_case_free(&c);
}

static void test_not_numbers(void **state) {
    (void)state;
    for (int64_t few = 1; few <= 4; few *= 2) check_not_numbers(few);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows),     cmocka_unit_test(test_groups),
        cmocka_unit_test(test_dilation),    cmocka_unit_test(test_epilogues),
        cmocka_unit_test(test_extremes),    cmocka_unit_test(test_pairs_of_rows),
        cmocka_unit_test(test_not_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
