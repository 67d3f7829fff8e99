/* test_cpu_slices.c - convolutions over one and three axes, of groups too, and transposed ones over
 * one, against the reference kernels. */
#include "conv_rows.h"
#include "versus.h"

#include "cpu/core/cpu_ep.h"

static versus v;

typedef struct variant {
    int axes;
    int64_t batch, channels, m, in[3], kernel[3], stride[3], dilation[3], before[3], after[3];
    int64_t groups; /* 0: 1 */
} variant;

static const variant variants[] = {
    {1, 1, 33, 40, {200}, {3}, {1}, {1}, {1}, {1}},
    {1, 2, 16, 16, {64}, {2}, {1}, {1}, {0}, {1}},
    {1, 3, 1, 70, {640}, {16}, {8}, {1}, {0}, {0}},
    {1, 1, 64, 33, {700}, {3}, {1}, {9}, {4}, {14}},
    {1, 1, 20, 24, {513}, {7}, {3}, {2}, {6}, {5}},
    {1, 1, 100, 8, {1500}, {5}, {2}, {1}, {2}, {2}},
    {1, 2, 5, 9, {65}, {4}, {4}, {1}, {3}, {0}},
    {3, 1, 16, 32, {5, 9, 10}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {3, 2, 3, 17, {6, 13, 12}, {3, 5, 5}, {1, 2, 2}, {1, 1, 1}, {1, 2, 2}, {1, 2, 2}},
    {3, 1, 24, 20, {7, 6, 33}, {2, 3, 1}, {2, 1, 2}, {1, 2, 1}, {0, 2, 0}, {1, 1, 0}},
    {3, 2, 40, 8, {4, 5, 6}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
    {3, 1, 9, 48, {3, 4, 20}, {3, 1, 1}, {1, 1, 1}, {1, 1, 1}, {2, 0, 0}, {0, 0, 0}},
    {3, 1, 13, 33, {1, 3, 3}, {3, 3, 3}, {3, 2, 1}, {1, 1, 2}, {1, 1, 2}, {1, 1, 2}},
    {3, 1, 32, 16, {2, 1, 70}, {2, 1, 3}, {1, 1, 1}, {1, 1, 1}, {1, 0, 0}, {1, 0, 0}},
    {1, 1, 64, 64, {130}, {3}, {1}, {1}, {1}, {1}, 4},
    {1, 2, 96, 192, {101}, {9}, {2}, {1}, {4}, {4}, 3},
    {1, 1, 32, 64, {300}, {5}, {1}, {3}, {0}, {7}, 2},
};

/* Groups of few channels, by sums of the input's own rows. */
static const variant volumes[] = {
    {3, 1, 6, 6, {5, 9, 20}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 6},
    {3, 2, 8, 12, {5, 7, 8}, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 4},
    {3, 2, 10, 30, {4, 6, 37}, {2, 3, 1}, {2, 1, 2}, {1, 2, 1}, {0, 2, 0}, {1, 1, 0}, 5},
    {3, 1, 32, 32, {3, 5, 17}, {3, 1, 3}, {1, 1, 2}, {2, 1, 3}, {2, 0, 4}, {1, 0, 0}, 2},
    {3, 1, 4, 4, {6, 4, 9}, {3, 2, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 2},
    {3, 1, 7, 14, {1, 1, 1}, {3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, 7},
    {2, 2, 30, 30, {6, 21}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 3},
    {2, 1, 64, 16, {9, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 0}, {1, 2}, 16},
};

static void attributes(const variant *f) {
    static int64_t pads[6]; /* kept until the case has run */
    size_t n = (size_t)f->axes;
    for (int i = 0; i < f->axes; i++) {
        pads[i] = f->before[i];
        pads[i + f->axes] = f->after[i];
    }
    eval_ints(&v.e, "strides", f->stride, n);
    eval_ints(&v.e, "dilations", f->dilation, n);
    eval_ints(&v.e, "pads", pads, 2 * n);
}

/* mode: 1 bias, 2 activation, 4 something added, 8 slopes by channel, 16 by rows. */
static void conv_case(const variant *f, int mode, int special) {
    bool fused = mode & 14;
    int64_t groups = f->groups ? f->groups : 1, depth = f->channels / groups;
    int64_t x[5] = {f->batch, f->channels}, w[5] = {f->m, depth}, y[5] = {f->batch, f->m};
    for (int i = 0; i < f->axes; i++) {
        x[2 + i] = f->in[i];
        w[2 + i] = f->kernel[i];
        depth *= f->kernel[i];
        y[2 + i] =
            (f->in[i] + f->before[i] + f->after[i] - (f->kernel[i] - 1) * f->dilation[i] - 1) /
                f->stride[i] +
            1;
    }
    versus_start(&v, fused ? "com.microsoft" : "", fused ? "FusedConv" : "Conv");
    v.special = special;
    versus_tensor(&v, SN_FLOAT32, 2 + f->axes, x, NULL);
    v.special = 0;
    versus_weight(&v, SN_FLOAT32, 2 + f->axes, w, NULL);
    if (mode & 1)
        versus_weight(&v, SN_FLOAT32, 1, &f->m, NULL);
    else if (mode & 12)
        versus_without(&v);
    if (mode & 4)
        versus_tensor(&v, SN_FLOAT32, 2 + f->axes, y, NULL);
    else if (mode & 8)
        versus_without(&v);
    if (mode & 8) versus_weight(&v, SN_FLOAT32, 1, &f->m, NULL);
    attributes(f);
    eval_attr(&v.e, sni_attr_of_int("group", groups));
    if (mode & 2) eval_attr(&v.e, sni_attr_of_string("activation", "Relu"));
    v.use = conv_row(fused ? "FusedConv" : "Conv", mode & 16 ? "conv_line_f32" : "conv_slices_f32");
    versus_run(&v, 1, 3e-7 * (double)(depth + 10));
}

static void convolutions_match(void **state) {
    (void)state;
    static const int modes[] = {0, 1, 2, 3, 4, 7, 8, 9, 13};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
            conv_case(&variants[i], modes[m], 0);
    for (size_t i = 0; i < sizeof volumes / sizeof *volumes; i++)
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
            conv_case(&volumes[i], modes[m] | 16, 0);
}

/* NaN and infinities reach the outputs that see them, and no others. */
static void odd_numbers_match(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (variants[i].channels % 16 == 0) conv_case(&variants[i], 1, 4000);
    for (size_t i = 0; i < sizeof volumes / sizeof *volumes; i++) conv_case(&volumes[i], 17, 500);
}

/* Which of them a plan chooses, and that nothing is left to plain loops. */
static void chosen_by_shape(void **state) {
    (void)state;
    static const struct {
        variant f;
        int64_t group;
        const char *impl;
    } cases[] = {
        {{1, 1, 32, 32, {100}, {3}, {1}, {1}, {1}, {1}}, 1, "conv_line_f32"},
        {{1, 1, 64, 2, {100}, {5}, {1}, {1}, {1}, {1}}, 1, "conv_line_f32"},
        {{1, 1, 128, 128, {100}, {3}, {1}, {1}, {1}, {1}}, 1, "conv_slices_f32"},
        {{1, 1, 128, 128, {4}, {3}, {1}, {1}, {1}, {1}}, 1, "conv_slices_f32"},
        {{1, 1, 1, 258, {640}, {256}, {128}, {1}, {0}, {0}}, 1, "conv_slices_f32"},
        {{1, 1, 256, 256, {100}, {1}, {1}, {1}, {0}, {0}}, 1, "conv_gemm_f32"},
        {{3, 1, 16, 16, {3, 8, 8}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
         1,
         "conv_slices_f32"},
        {{3, 1, 16, 1, {3, 8, 8}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
         1,
         "conv_f32"},
        {{3, 1, 16, 16, {5, 8, 8}, {3, 3, 3}, {1, 1, 1}, {2, 1, 1}, {1, 1, 1}, {1, 1, 1}},
         1,
         "conv_f32"},
        {{3, 2, 8, 12, {5, 7, 8}, {3, 3, 3}, {1, 2, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
         4,
         "conv_line_f32"},
        {{3, 2, 70, 140, {3, 4, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
         70,
         "conv_line_f32"},
        {{1, 1, 64, 64, {100}, {3}, {1}, {1}, {1}, {1}}, 2, "conv_line_f32"},
        {{1, 1, 128, 256, {100}, {3}, {1}, {1}, {1}, {1}}, 2, "conv_slices_f32"},
        {{3, 2, 20, 30, {3, 4, 50}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
         1,
         "conv_gemm_f32"},
        {{3, 2, 20, 30, {3, 4, 50}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
         5,
         "conv_gemm_f32"},
        {{3, 1, 40, 200, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
         1,
         "conv_gemm_f32"},
        /* far apart along all axes: what is laid out would be far larger than it */
        {{2, 1, 30, 30, {5, 5}, {3, 3}, {1, 1}, {30000, 30000}, {30000, 30000}, {30000, 30000}},
         3,
         "conv_gemm_f32"},
        {{3,
          1,
          6,
          6,
          {2, 2, 2},
          {2, 2, 2},
          {1, 1, 1},
          {900, 900, 900},
          {450, 450, 450},
          {450, 450, 450}},
         6,
         "conv_f32"},
        {{3, 2, 20, 20, {3, 4, 5}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
         20,
         "conv_depthwise_f32"},
        /* more products than a kernel may ask for pieces of memory */
        {{3, 1, 1122, 1122, {1, 4, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
         66,
         "conv_f32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const variant *f = &cases[i].f;
        int64_t x[5] = {f->batch, f->channels}, w[5] = {f->m, f->channels / cases[i].group};
        for (int a = 0; a < f->axes; a++) {
            x[2 + a] = f->in[a];
            w[2 + a] = f->kernel[a];
        }
        versus_start(&v, "", "Conv");
        versus_tensor(&v, SN_FLOAT32, 2 + f->axes, x, NULL);
        versus_weight(&v, SN_FLOAT32, 2 + f->axes, w, NULL);
        attributes(f);
        eval_attr(&v.e, sni_attr_of_int("group", cases[i].group));
        versus_run(&v, 1, 1e-4);
        assert_string_equal(v.impl, cases[i].impl);
    }
}

/* ---- Transposed ---- */

typedef struct line {
    int64_t batch, channels, m, in, kernel, stride, before, after, more;
} line;

/* One in `special` numbers of the input is odd; 0: none. */
static void transpose_case(const line *l, bool bias, bool chosen, int special) {
    versus_start(&v, "", "ConvTranspose");
    v.special = special;
    versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){l->batch, l->channels, l->in}, NULL);
    v.special = 0;
    versus_weight(&v, SN_FLOAT32, 3, (int64_t[]){l->channels, l->m, l->kernel}, NULL);
    if (bias) versus_weight(&v, SN_FLOAT32, 1, &l->m, NULL);
    eval_ints(&v.e, "strides", &l->stride, 1);
    int64_t pads[2] = {l->before, l->after};
    eval_ints(&v.e, "pads", pads, 2);
    eval_ints(&v.e, "output_padding", &l->more, 1);
    if (!chosen) v.use = conv_row("ConvTranspose", "conv_transpose_f32");
    versus_run(&v, 1, 3e-7 * (double)(l->channels * l->kernel + 10));
    if (chosen) assert_string_equal(v.impl, "conv_transpose_f32");
}

static const line lines[] = {
    {1, 32, 16, 50, 16, 8, 4, 4, 0}, {2, 33, 20, 17, 4, 2, 1, 1, 0}, {1, 3, 40, 31, 5, 1, 2, 2, 0},
    {1, 16, 9, 16, 7, 3, 2, 0, 2},   {1, 20, 3, 1, 10, 5, 0, 0, 4},  {1, 8, 6, 40, 11, 4, 9, 10, 3},
    {3, 5, 5, 2, 3, 3, 1, 2, 0},     {1, 16, 8, 3, 4, 2, 5, 3, 1},   {1, 4, 2, 600, 2, 2, 0, 0, 1},
    {2, 16, 16, 60, 3, 2, 1, 1, 1},
};
enum { LINES = sizeof lines / sizeof *lines };

static void transposed_match(void **state) {
    (void)state;
    for (size_t i = 0; i < LINES; i++)
        for (int bias = 0; bias < 2; bias++) transpose_case(&lines[i], bias, false, 0);
    transpose_case(&lines[0], true, true, 0);
}

/* As odd_numbers_match, where the stride divides the kernel and where it does not. */
static void transposed_odd_numbers_match(void **state) {
    (void)state;
    for (size_t i = 0; i < LINES; i++)
        for (int bias = 0; bias < 2; bias++) transpose_case(&lines[i], bias, false, 150);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_match),
        cmocka_unit_test(odd_numbers_match),
        cmocka_unit_test(chosen_by_shape),
        cmocka_unit_test(transposed_match),
        cmocka_unit_test(transposed_odd_numbers_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
