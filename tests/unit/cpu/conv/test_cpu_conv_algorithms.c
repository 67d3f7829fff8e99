/* test_cpu_conv_algorithms.c - every row of the table of convolution algorithms against the
 * reference kernel, over odd shapes that it supports, whether it would be chosen for them or not.
 * Scratch has guards, and 1 and 2 threads must give the same bits. Run once per instruction-set
 * tier (SINTER_ISA). */
#include "conv_rows.h"
#include "versus.h"

#include "cpu/conv/conv.h"
#include "ops/sinter/blocked.h"

#include <math.h>

static versus v;

enum { MAX_ROWS = 64 };
static int runs[MAX_ROWS]; /* of each row */

/* in, kernel ...: of the last `axes` axes. */
typedef struct shape {
    int axes;
    int64_t n, in, out, groups, size[3], kernel[3], stride[3], before[3], after[3], dilation[3];
} shape;

static const shape shapes[] = {
    /* Lines: few channels, many, groups, strides, dilations, one pixel. */
    {1, 1, 1, 7, 1, {203}, {9}, {1}, {4}, {4}, {1}},
    {1, 2, 2, 5, 1, {190}, {11}, {3}, {2}, {0}, {2}},
    {1, 1, 33, 40, 1, {77}, {3}, {1}, {1}, {1}, {1}},
    {1, 2, 48, 20, 1, {131}, {5}, {2}, {0}, {3}, {3}},
    {1, 3, 64, 64, 2, {65}, {3}, {1}, {2}, {2}, {2}},
    {1, 1, 12, 12, 12, {90}, {7}, {1}, {3}, {3}, {1}},
    {1, 1, 70, 33, 1, {5}, {3}, {1}, {1}, {1}, {1}},
    {1, 1, 24, 70, 1, {1}, {1}, {1}, {0}, {0}, {1}},
    {1, 0, 16, 16, 1, {70}, {3}, {1}, {1}, {1}, {1}},
    /* Pictures. */
    {2, 1, 16, 24, 1, {9, 13}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 2, 64, 96, 1, {15, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 80, 80, 1, {20, 19}, {3, 3}, {2, 2}, {1, 1}, {1, 0}, {1, 1}},
    {2, 1, 37, 50, 1, {12, 11}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {2, 2, 96, 192, 1, {14, 14}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {2, 1, 3, 32, 1, {31, 34}, {7, 7}, {2, 2}, {3, 3}, {3, 2}, {1, 1}},
    {2, 1, 3, 64, 1, {48, 48}, {6, 6}, {2, 2}, {2, 2}, {2, 2}, {1, 1}},
    {2, 1, 2, 3, 1, {20, 70}, {3, 2}, {1, 1}, {1, 1}, {1, 1}, {2, 1}},
    {2, 2, 20, 20, 20, {13, 11}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 48, 96, 12, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 64, 64, 2, {9, 10}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    {2, 1, 40, 40, 1, {15, 16}, {3, 3}, {1, 1}, {4, 4}, {4, 4}, {4, 4}},
    {2, 1, 136, 136, 4, {9, 7}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
    {2, 0, 32, 32, 1, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
    /* Volumes. */
    {3, 1, 8, 8, 4, {7, 9, 20}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {3, 2, 5, 33, 1, {6, 7, 9}, {3, 3, 3}, {2, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {3, 1, 20, 24, 1, {4, 5, 6}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, {1, 1, 1}},
};

enum { BIAS = 1, ACTIVATION = 2, ADDED = 4, SLOPES = 8, MODES = 16, PLAIN = 16 };

static void set_window(const shape *s, int first) {
    int axes = s->axes - first;
    static int64_t pads[6]; /* the node refers to them */
    for (int i = 0; i < axes; i++) {
        pads[i] = s->before[first + i];
        pads[i + axes] = s->after[first + i];
    }
    eval_ints(&v.e, "strides", s->stride + first, (size_t)axes);
    eval_ints(&v.e, "dilations", s->dilation + first, (size_t)axes);
    eval_ints(&v.e, "pads", pads, 2 * (size_t)axes);
    eval_attr(&v.e, sni_attr_of_int("group", s->groups));
}

static int64_t out_size(const shape *s, int i) {
    int64_t reach = (s->kernel[i] - 1) * s->dilation[i] + 1;
    return (s->size[i] + s->before[i] + s->after[i] - reach) / s->stride[i] + 1;
}

/* Bias, what is added, and slopes, after input and weights. */
static void set_optional(const shape *s, int mode, void (*add)(const shape *s)) {
    if (mode & BIAS)
        versus_weight(&v, SN_FLOAT32, 1, &s->out, NULL);
    else if (mode & (ADDED | SLOPES))
        versus_without(&v);
    if (mode & ADDED)
        add(s);
    else if (mode & SLOPES)
        versus_without(&v);
    if (mode & SLOPES) versus_weight(&v, SN_FLOAT32, 1, &s->out, NULL);
    if (mode & ACTIVATION) eval_attr(&v.e, sni_attr_of_string("activation", "HardSwish"));
}

static void add_plain(const shape *s) {
    int64_t y[5] = {s->n, s->out};
    for (int i = 0; i < s->axes; i++) y[2 + i] = out_size(s, i);
    versus_tensor(&v, SN_FLOAT32, 2 + s->axes, y, NULL);
}

static double depth_of(const shape *s) {
    double depth = (double)s->in / (double)s->groups;
    for (int i = 0; i < s->axes; i++) depth *= (double)s->kernel[i];
    return depth;
}

static void plain_case(const shape *s, int mode, const sni_impl *row) {
    int64_t x[5] = {s->n, s->in}, w[5] = {s->out, s->in / s->groups};
    for (int i = 0; i < s->axes; i++) {
        x[2 + i] = s->size[i];
        w[2 + i] = s->kernel[i];
    }
    versus_start(&v, row->domain ? row->domain : "", row->op);
    versus_tensor(&v, SN_FLOAT32, 2 + s->axes, x, NULL);
    versus_weight(&v, SN_FLOAT32, 2 + s->axes, w, NULL);
    set_optional(s, mode, add_plain);
    set_window(s, 0);
    v.use = row;
    v.if_supported = true;
    versus_run(&v, 1, 3e-7 * (depth_of(s) + 10));
    runs[row - sni_cpu_convolutions] += v.impl != NULL;
}

/* A random blocked tensor whose last block ends with zeros. */
static void blocked_tensor(int64_t n, int64_t channels, int64_t h, int64_t w) {
    int64_t block = sni_cpu_kernels_get()->block, blocks = sni_blocks(channels, block);
    int64_t count = n * blocks * h * w * block;
    float *data = malloc((size_t)count * sizeof *data + 1);
    assert_non_null(data);
    versus_fill(&v, SN_FLOAT32, count, data);
    for (int64_t i = 0; i < count; i++)
        if (i / (h * w * block) % blocks * block + i % block >= channels) data[i] = 0;
    versus_tensor(&v, SN_FLOAT32, 5, (int64_t[]){n, blocks, h, w, block}, data);
    free(data);
}

static void add_blocked(const shape *s) {
    blocked_tensor(s->n, s->out, out_size(s, 0), out_size(s, 1));
}

/* Numerics that the default level of optimisation allows. */
static void allow_all(void) {
    eval_attr(&v.e, sni_attr_of_int("winograd", 1));
    eval_attr(&v.e, sni_attr_of_int("paired", 1));
    eval_attr(&v.e, sni_attr_of_int("digits", 1));
}

static void blocked_case(const shape *s, int mode, const sni_impl *row) {
    double depth = depth_of(s);
    versus_start(&v, row->domain, row->op);
    if (mode & PLAIN)
        versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){s->n, s->in, s->size[0], s->size[1]}, NULL);
    else
        blocked_tensor(s->n, s->in, s->size[0], s->size[1]);
    versus_weight(&v, SN_FLOAT32, 4,
                  (int64_t[]){s->out, s->in / s->groups, s->kernel[0], s->kernel[1]}, NULL);
    set_optional(s, mode, add_blocked);
    set_window(s, 0);
    eval_attr(&v.e, sni_attr_of_int("block", sni_cpu_kernels_get()->block));
    allow_all();
    v.use = row;
    v.if_supported = true;
    /* 8 points along both axes err by 5e-5 of the largest result, which is less than this root. */
    versus_run(&v, 1, fmax(1e-6 * (depth + 10), 5e-5 * sqrt(depth)));
    runs[row - sni_cpu_convolutions] += v.impl != NULL;
}

static void transpose_case(const shape *s, int mode, const sni_impl *row) {
    if (s->axes != 1) return;
    versus_start(&v, "", row->op);
    versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){s->n, s->in, s->size[0]}, NULL);
    versus_weight(&v, SN_FLOAT32, 3, (int64_t[]){s->in, s->out / s->groups, s->kernel[0]}, NULL);
    if (mode & BIAS) versus_weight(&v, SN_FLOAT32, 1, &s->out, NULL);
    eval_ints(&v.e, "strides", s->stride, 1);
    eval_attr(&v.e, sni_attr_of_int("group", s->groups));
    v.use = row;
    v.if_supported = true;
    versus_run(&v, 1, 3e-7 * (double)(s->in * s->kernel[0] + 10));
    runs[row - sni_cpu_convolutions] += v.impl != NULL;
}

static void run_shape(const shape *s, const sni_impl *row) {
    bool plain = !strcmp(row->op, "Conv"), fused = !strcmp(row->op, "FusedConv");
    for (int mode = 0; mode < 2 * MODES; mode++) {
        if ((mode & ACTIVATION && mode & SLOPES) || (!fused && plain && mode > BIAS)) continue;
        if ((plain || fused) && mode < MODES) plain_case(s, mode, row);
        if (!strcmp(row->op, "BlockedConv") && s->axes == 2 && (s->groups == 1 || mode < MODES))
            blocked_case(s, mode, row);
        if (!strcmp(row->op, "ConvTranspose") && mode <= BIAS) transpose_case(s, mode, row);
    }
}

static void rows_match(void **state) {
    (void)state;
    for (const sni_impl *row = sni_cpu_convolutions; row->op; row++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) run_shape(&shapes[i], row);
}

/* Every row that this tier has kernels for has run. */
static void rows_have_run(void **state) {
    (void)state;
    for (const sni_impl *row = sni_cpu_convolutions; row->op; row++) {
        int count = runs[row - sni_cpu_convolutions];
        bool special = strcmp(row->name, "conv_emulated_f32") == 0 ||
                       strcmp(row->name, "conv_inner_product_f32") == 0;
        if (count == 0 && !special) fail_msg("%s of %s has not run", row->name, row->op);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_match),
                                       cmocka_unit_test(rows_have_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
