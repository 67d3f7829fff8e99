/* test_cpu_few.c - convolutions with few pixels, others with long kernels, and the linear models of
 * ai.onnx.ml, against the reference kernels. */
#include "conv_rows.h"
#include "versus.h"

#include "cpu/core/cpu_ep.h"

static versus v;

/* ---- Convolution ---- */

typedef struct variant {
    int64_t batch, channels, in[2], m, kernel[2], stride, dilation, pad, group;
    int axes;
} variant;

static const variant variants[] = {
    {1, 1, {640}, 258, {256}, 128, 1, 0, 1, 1}, {1, 129, {4}, 128, {3}, 1, 1, 1, 1, 1},
    {2, 33, {5}, 67, {3}, 2, 1, 1, 1, 1},       {1, 64, {1}, 128, {3}, 1, 1, 1, 1, 1},
    {3, 17, {1}, 64, {1}, 1, 1, 0, 1, 1},       {1, 24, {3}, 70, {1}, 1, 1, 0, 1, 1},
    {1, 12, {9}, 96, {3}, 1, 3, 1, 2, 1},       {2, 64, {2, 2}, 96, {3, 3}, 1, 1, 1, 1, 2},
    {1, 30, {1, 1}, 65, {1, 1}, 1, 1, 0, 1, 2}, {1, 20, {5, 3}, 130, {3, 2}, 2, 1, 1, 2, 2},
    {1, 8, {6, 1}, 64, {2, 1}, 2, 2, 1, 1, 2},  {4, 6, {1, 4}, 33, {1, 3}, 1, 2, 2, 1, 2},
    {1, 2100, {1}, 40, {1}, 1, 1, 0, 1, 1},
};

/* Implementations: the one that is chosen, or one that was for another shape. */
enum { CHOSEN, PACKED };

/* mode: 1 bias, 2 activation, 4 something added. */
static void conv_case(const variant *f, int mode, int by) {
    int64_t x[4] = {f->batch, f->channels}, w[4] = {f->m, f->channels / f->group};
    int64_t y[4] = {f->batch, f->m}, strides[2], dilations[2], pads[4];
    for (int i = 0; i < f->axes; i++) {
        x[2 + i] = f->in[i];
        w[2 + i] = f->kernel[i];
        strides[i] = f->stride;
        dilations[i] = f->dilation;
        pads[i] = pads[i + f->axes] = f->pad;
        y[2 + i] = (f->in[i] + 2 * f->pad - (f->kernel[i] - 1) * f->dilation - 1) / f->stride + 1;
    }
    versus_start(&v, mode & 6 ? "com.microsoft" : "", mode & 6 ? "FusedConv" : "Conv");
    versus_tensor(&v, SN_FLOAT32, 2 + f->axes, x, NULL);
    versus_weight(&v, SN_FLOAT32, 2 + f->axes, w, NULL);
    if (mode & 1)
        versus_tensor(&v, SN_FLOAT32, 1, &f->m, NULL);
    else if (mode & 4)
        versus_without(&v);
    if (mode & 4) versus_tensor(&v, SN_FLOAT32, 2 + f->axes, y, NULL);
    eval_ints(&v.e, "strides", strides, (size_t)f->axes);
    eval_ints(&v.e, "dilations", dilations, (size_t)f->axes);
    eval_ints(&v.e, "pads", pads, (size_t)f->axes * 2);
    eval_attr(&v.e, sni_attr_of_int("group", f->group));
    if (mode & 2) eval_attr(&v.e, sni_attr_of_string("activation", "Relu"));
    int64_t depth = w[1] * f->kernel[0] * (f->axes > 1 ? f->kernel[1] : 1);
    if (by == PACKED) v.use = conv_row(mode & 6 ? "FusedConv" : "Conv", "conv_gemm_f32");
    versus_run(&v, 1, 3e-7 * (double)(depth + 10));
}

/* Kernels whose neighbouring taps are gathered together: windows that overlap and that do not,
 * padding, several channels and groups, kernels that end within a stretch of depth. */
static void long_kernels_match(void **state) {
    (void)state;
    static const variant longer[] = {
        {1, 1, {2600}, 65, {512}, 16, 1, 0, 1, 1},   {2, 3, {900}, 19, {40}, 7, 1, 0, 1, 1},
        {1, 2, {400}, 30, {11}, 2, 1, 5, 1, 1},      {1, 4, {700}, 12, {9}, 20, 1, 4, 2, 1},
        {1, 3, {40, 70}, 18, {8, 8}, 2, 1, 3, 1, 2}, {1, 1, {5, 300}, 7, {1, 33}, 3, 1, 0, 1, 2},
        {1, 2, {900}, 6, {31}, 3, 2, 9, 1, 1},       {1, 40, {200}, 33, {17}, 4, 1, 8, 1, 1}};
    for (size_t i = 0; i < sizeof longer / sizeof *longer; i++)
        for (int mode = 0; mode < 8; mode++) conv_case(&longer[i], mode, PACKED);
}

static void few_pixels_match(void **state) {
    (void)state;
    int taken = 0;
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        for (int mode = 0; mode < 8; mode++) {
            conv_case(&variants[i], mode, PACKED);
            conv_case(&variants[i], mode, CHOSEN);
            taken += strcmp(v.impl, "conv_slices_f32") == 0;
        }
    assert_true(taken >= 3 * 8);
}

/* A node keeps the implementation of its first shape: it must take any other. */
static void many_pixels_match(void **state) {
    (void)state;
    static const variant many[] = {
        {2, 5, {300}, 37, {3}, 1, 1, 1, 1, 1},       {1, 6, {64}, 10, {1}, 1, 1, 0, 2, 1},
        {1, 3, {13, 11}, 33, {3, 3}, 1, 1, 1, 1, 2}, {1, 4, {9, 65}, 3, {1, 1}, 1, 1, 0, 1, 2},
        {2, 8, {12, 20}, 16, {3, 2}, 2, 2, 2, 4, 2}, {1, 4, {65}, 5, {1}, 1, 1, 0, 1, 1}};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++)
        for (int mode = 0; mode < 8; mode++) conv_case(&many[i], mode, PACKED);
}

/* Few channels: rows of the input are summed as they lie, or laid out with pads and by phases. */
static void lines_match(void **state) {
    (void)state;
    static const variant lines[] = {
        {1, 1, {4000}, 1, {3}, 1, 1, 0, 1, 1},      {1, 1, {1700}, 1, {400}, 1, 1, 0, 1, 1},
        {2, 1, {333}, 8, {25}, 1, 1, 12, 1, 1},     {1, 2, {3301}, 1, {25}, 1, 1, 0, 1, 1},
        {1, 1, {2000}, 13, {16}, 8, 1, 3, 1, 1},    {3, 6, {200}, 6, {17}, 1, 1, 8, 6, 1},
        {1, 4, {500}, 14, {9}, 2, 3, 4, 2, 1},      {1, 1, {64, 96}, 1, {5, 5}, 1, 1, 2, 1, 2},
        {2, 2, {20, 70}, 3, {3, 2}, 1, 2, 1, 1, 2}, {1, 1, {19, 201}, 4, {3, 7}, 3, 1, 2, 1, 2},
        {1, 1, {64}, 3, {1}, 1, 1, 0, 1, 1},        {1, 1, {1537}, 7, {2}, 1, 5, 0, 1, 1},
        {2, 8, {700}, 8, {11}, 1, 3, 15, 1, 1},     {1, 15, {190}, 3, {4}, 2, 1, 1, 1, 1},
        {1, 5, {333}, 16, {1}, 1, 1, 0, 1, 1},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (int mode = 0; mode < 8; mode++) {
            conv_case(&lines[i], mode, CHOSEN);
            assert_string_equal(v.impl, "conv_line_f32");
        }
}

/* ---- Linear models ---- */

enum { MOST = 4096 };

static float coefficients[MOST], intercepts[64];
static const int64_t labels[64] = {5, 4, 3, 2, 1, 0, -1, -2};

static void linear_case(int64_t rows, int64_t features, int64_t outputs, const char *transform,
                        bool classifier, int64_t n_labels) {
    versus_start(&v, "ai.onnx.ml", classifier ? "LinearClassifier" : "LinearRegressor");
    v.scale = 0.3f;
    versus_fill(&v, SN_FLOAT32, outputs * features, coefficients);
    versus_fill(&v, SN_FLOAT32, outputs, intercepts);
    v.scale = 1;
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){rows, features}, NULL);
    eval_floats(&v.e, "coefficients", coefficients, (size_t)(outputs * features));
    if (classifier || rows % 2) eval_floats(&v.e, "intercepts", intercepts, (size_t)outputs);
    eval_attr(&v.e, sni_attr_of_string("post_transform", transform));
    if (classifier)
        eval_ints(&v.e, "classlabels_ints", labels, (size_t)n_labels);
    else
        eval_attr(&v.e, sni_attr_of_int("targets", outputs));
    versus_run(&v, classifier ? 2 : 1, 1e-6 * (double)(features + 10));
    assert_string_equal(v.impl, "linear_f32");
}

static void linear_models_match(void **state) {
    (void)state;
    static const char *const transforms[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"};
    static const int64_t sizes[][3] = {{1, 780, 5}, {0, 7, 3},    {3, 1, 1},   {2, 33, 2},
                                       {70, 4, 3},  {129, 64, 8}, {1, 515, 1}, {5, 17, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int t = 0; t < 4; t++) {
            const int64_t *s = sizes[i];
            linear_case(s[0], s[1], s[2], transforms[t], false, 0);
            linear_case(s[0], s[1], s[2], transforms[t], true, s[2] == 1 ? 2 : s[2]);
            if (s[2] == 1) linear_case(s[0], s[1], s[2], transforms[t], true, 1);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_pixels_match),    cmocka_unit_test(many_pixels_match),
        cmocka_unit_test(long_kernels_match),  cmocka_unit_test(lines_match),
        cmocka_unit_test(linear_models_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
