/* test_cpu_blocked.c - blocked convolutions against their reference kernel: odd shapes, strides,
 * pads, dilations, groups and channels that do not fill their blocks, from blocked and plain input.
 */
#include "conv_rows.h"
#include "versus.h"

#include "cpu/conv/conv.h"
#include "cpu/gemm/emulated.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/core/cpu_ep.h"
#include "ops/sinter/blocked.h"

/* The kernels in plain C stand in for tiles where there are none. The linker puts this in the place
 * of sni_emulated_kernels_get(). */
static const sni_emulated_kernels *stand_in;
const sni_emulated_kernels *__real_sni_emulated_kernels_get(void);
const sni_emulated_kernels *__wrap_sni_emulated_kernels_get(void);
const sni_emulated_kernels *__wrap_sni_emulated_kernels_get(void) {
    return stand_in ? stand_in : __real_sni_emulated_kernels_get();
}

static versus v;

typedef struct shape {
    int64_t n, in, out, groups, h, w, kernel[2], stride[2], pads[4], dilation[2];
    bool refused; /* no vector kernel takes it */
} shape;

static const shape shapes[] = {
    {1, 16, 16, 1, 5, 7, {1, 1}, {1, 1}, {0}, {1, 1}},
    {2, 24, 40, 1, 7, 7, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 3, 5, 1, 9, 11, {1, 1}, {2, 2}, {0}, {1, 1}},
    {1, 64, 70, 1, 13, 13, {1, 1}, {2, 2}, {0}, {1, 1}},
    {1, 32, 64, 1, 14, 14, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {1, 48, 128, 1, 7, 7, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {2, 20, 33, 1, 9, 30, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {1, 17, 50, 1, 8, 31, {3, 3}, {1, 1}, {0, 2, 1, 0}, {1, 1}},
    {1, 16, 48, 1, 17, 17, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}},
    {1, 16, 16, 1, 10, 29, {5, 5}, {1, 2}, {2, 2, 2, 2}, {1, 1}},
    {1, 33, 20, 1, 12, 12, {1, 7}, {1, 1}, {0, 3, 0, 3}, {1, 1}},
    {1, 20, 33, 1, 12, 5, {7, 1}, {1, 1}, {3, 0, 3, 0}, {1, 1}},
    {1, 16, 16, 1, 3, 2, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}},
    {1, 16, 32, 1, 10, 10, {3, 3}, {3, 3}, {1, 1, 1, 1}, {1, 1}},
    {1, 16, 16, 1, 1, 40, {1, 5}, {1, 1}, {0, 4, 0, 4}, {1, 2}},
    {1, 32, 40, 1, 1, 1000, {1, 5}, {1, 1}, {0, 2, 0, 2}, {1, 1}},
    {2, 20, 33, 1, 1, 900, {1, 3}, {1, 2}, {0, 3, 0, 0}, {1, 1}},
    {1, 24, 16, 1, 1, 1300, {1, 7}, {1, 1}, {0, 24, 0, 24}, {1, 8}},
    {1, 300, 20, 1, 3, 700, {3, 4}, {2, 1}, {0, 1, 0, 2}, {1, 2}},
    {1, 3, 64, 1, 1, 500, {1, 9}, {1, 3}, {0, 4, 0, 4}, {1, 1}},
    {1, 16, 16, 1, 4, 4, {2, 2}, {1, 1}, {5, 5, 5, 5}, {1, 1}},
    {1, 16, 16, 1, 4, 4, {2, 2}, {5, 5}, {3, 3, 6, 6}, {1, 3}},
    {1, 32, 64, 2, 9, 9, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {2, 64, 32, 2, 6, 9, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 32, 32, 8, 9, 9, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {1, 48, 96, 12, 5, 9, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {2, 37, 100, 1, 9, 6, {3, 3}, {2, 1}, {1, 2, 0, 3}, {1, 1}},
    {1, 600, 80, 1, 7, 7, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {1, 30, 30, 3, 6, 6, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
    /* Groups in a block, an odd number of them too, across blocks, and of whole ones. */
    {1, 88, 88, 11, 9, 13, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {2, 52, 52, 13, 8, 19, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {1, 6, 6, 3, 12, 7, {5, 3}, {1, 1}, {2, 1, 2, 1}, {1, 1}},
    {1, 24, 24, 3, 9, 9, {1, 1}, {1, 1}, {0}, {1, 1}},
    {2, 120, 120, 5, 7, 7, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {1, 48, 48, 2, 15, 26, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {1, 72, 72, 3, 9, 30, {3, 5}, {1, 2}, {1, 2, 1, 2}, {1, 2}},
    {1, 100, 100, 2, 6, 11, {3, 3}, {1, 1}, {0, 1, 0, 1}, {1, 1}},
    {2, 20, 60, 20, 9, 11, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, true},
    {1, 24, 48, 24, 12, 17, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {1, 40, 80, 5, 7, 12, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {1, 96, 48, 4, 9, 9, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}},
    {1, 48, 24, 3, 30, 9, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {1, 64, 64, 4, 28, 27, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {2, 96, 96, 3, 14, 14, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {1, 96, 192, 2, 20, 24, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {2, 40, 40, 40, 9, 9, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {1, 17, 17, 17, 40, 33, {5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}},
    {1, 64, 48, 1, 24, 23, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {1, 64, 40, 1, 20, 20, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}},
    {1, 40, 24, 1, 6, 9, {1, 1}, {1, 1}, {1, 2, 0, 3}, {1, 1}},
    {3, 512, 20, 1, 13, 15, {1, 1}, {1, 1}, {0}, {1, 1}},
    {3, 260, 17, 1, 21, 18, {1, 1}, {2, 2}, {0}, {1, 1}},
    {2, 250, 18, 1, 23, 25, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {1, 136, 136, 4, 9, 11, {1, 1}, {1, 1}, {0}, {1, 1}},
    {2, 24, 112, 4, 7, 7, {1, 1}, {1, 1}, {0}, {1, 1}},
    {3, 30, 42, 3, 1, 5, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 544, 544, 4, 7, 7, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 20, 60, 20, 5, 5, {1, 1}, {1, 1}, {0}, {1, 1}},
    {2, 99, 9, 3, 41, 40, {1, 1}, {1, 1}, {0}, {1, 1}},
    /* Dilations that leave many columns and rows without some taps, or without all. */
    {1, 40, 40, 1, 20, 19, {3, 3}, {1, 1}, {6, 6, 6, 6}, {6, 6}},
    {1, 33, 70, 1, 13, 30, {3, 3}, {1, 1}, {12, 12, 12, 12}, {12, 12}},
    {2, 24, 33, 1, 9, 11, {3, 3}, {1, 1}, {18, 18, 18, 18}, {18, 18}},
    {1, 20, 33, 1, 7, 25, {3, 5}, {2, 2}, {4, 10, 8, 9}, {3, 5}},
    {1, 920, 20, 1, 6, 7, {3, 3}, {1, 1}, {4, 4, 4, 4}, {4, 4}},
    {1, 32, 64, 2, 17, 9, {3, 3}, {1, 1}, {4, 4, 4, 4}, {4, 4}},
    {1, 16, 16, 1, 4, 6, {2, 3}, {1, 1}, {0, 20, 0, 20}, {1, 4}},
    {1, 32, 32, 8, 9, 9, {3, 3}, {1, 1}, {4, 4, 4, 4}, {4, 4}},
    {2, 17, 20, 1, 1, 40, {1, 5}, {1, 1}, {0, 16, 0, 16}, {1, 8}},
    {1, 24, 24, 1, 10, 30, {3, 3}, {1, 1}, {0, 3, 9, 14}, {5, 7}},
    {1, 18, 16, 1, 3, 5, {3, 3}, {1, 1}, {30, 30, 10, 9}, {16, 17}},
    {1, 16, 20, 1, 2, 3, {2, 2}, {7, 6}, {10, 11, 12, 3}, {12, 12}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t pads,
                        int64_t dilation) {
    return (in + pads - (kernel - 1) * dilation - 1) / stride + 1;
}

static int64_t
    odd_every; /* of so many elements of a blocked tensor one is no finite number; 0: none */
static int64_t odd_weights; /* the same of weights */
static sn_dtype narrow;     /* the type that weights are made of; SN_UNDEFINED: float32 */

static void put_odd(float *data, int64_t count, int64_t every) {
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    for (int64_t i = 0; every && i < count; i += every) data[i] = odd[i / every % 3];
}

/* A random blocked tensor whose last block ends with zeros. */
static void blocked_tensor(int64_t n, int64_t channels, int64_t h, int64_t w, int64_t block) {
    int64_t blocks = sni_blocks(channels, block), count = n * blocks * h * w * block;
    float *data = malloc((size_t)count * sizeof *data + 1);
    assert_non_null(data);
    versus_fill(&v, SN_FLOAT32, count, data);
    put_odd(data, count, odd_every);
    for (int64_t i = 0; i < count; i++)
        if (i / (h * w * block) % blocks * block + i % block >= channels) data[i] = 0;
    versus_tensor(&v, SN_FLOAT32, 5, (int64_t[]){n, blocks, h, w, block}, data);
    free(data);
}

enum {
    BIAS = 1,
    ADDED = 2,
    PLAIN = 4,
    WINOGRAD = 8,
    SLOPES = 16,
    FACTORS = 32,
    EACH = 64,
    MEANS = 128,
    ONTO = 256,
    INNER = 512,
    EMULATED = 1024,
    FORCED = 2048 /* inner products or emulated, whether that is quicker or not */
};

static void conv_case(const shape *s, int mode, const char *activation) {
    int64_t block = sni_cpu_kernels_get()->block;
    int64_t out_h =
        out_size(s->h, s->kernel[0], s->stride[0], s->pads[0] + s->pads[2], s->dilation[0]);
    int64_t out_w =
        out_size(s->w, s->kernel[1], s->stride[1], s->pads[1] + s->pads[3], s->dilation[1]);
    versus_start(&v, SNI_SINTER_DOMAIN, "BlockedConv");
    v.may_refuse = s->refused;
    if (mode & PLAIN)
        versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){s->n, s->in, s->h, s->w}, NULL);
    else
        blocked_tensor(s->n, s->in, s->h, s->w, block);
    versus_weight(&v, SN_FLOAT32, 4,
                  (int64_t[]){s->out, s->in / s->groups, s->kernel[0], s->kernel[1]}, NULL);
    float *weights[] = {v.e.in[1].tensor.data, v.constants[1]->tensor.data};
    for (int i = 0; i < 2; i++) put_odd(weights[i], v.e.in[1].tensor.count, odd_weights);
    if (narrow) versus_narrow(&v, 1, narrow);
    if (mode & BIAS)
        versus_weight(&v, SN_FLOAT32, 1, &s->out, NULL);
    else
        versus_without(&v);
    if (mode & ADDED)
        blocked_tensor(s->n, s->out, out_h, out_w, block);
    else if (mode & (SLOPES | FACTORS))
        versus_without(&v);
    if (mode & SLOPES)
        versus_weight(&v, SN_FLOAT32, 1, &s->out, NULL);
    else if (mode & FACTORS)
        versus_without(&v);
    if (mode & FACTORS) blocked_tensor(mode & EACH ? s->n : 1, s->in, 1, 1, block);
    eval_ints(&v.e, "strides", s->stride, 2);
    eval_ints(&v.e, "pads", s->pads, 4);
    eval_ints(&v.e, "dilations", s->dilation, 2);
    eval_attr(&v.e, sni_attr_of_int("group", s->groups));
    eval_attr(&v.e, sni_attr_of_int("block", block));
    v.numerics = (mode & WINOGRAD ? SNI_NUMERICS_WINOGRAD : 0) |
                 (mode & INNER ? SNI_NUMERICS_INNER_PRODUCT : 0) |
                 (mode & EMULATED ? SNI_NUMERICS_EMULATED : 0);
    if (mode & FORCED)
        v.use = conv_row("BlockedConv",
                         mode & EMULATED ? "conv_emulated_f32" : "conv_inner_product_f32");
    if (mode & ONTO) v.over = 3;
    if (activation) eval_attr(&v.e, sni_attr_of_string("activation", activation));
    double terms = (double)(s->in * s->kernel[0] * s->kernel[1]), error = 1e-6 * (terms + 10);
    /* 8 points along both axes: 5e-5 of the largest result, which is more than this root. */
    if (mode & PLAIN && mode & WINOGRAD && error < 5e-5 * sqrt(terms)) error = 5e-5 * sqrt(terms);
    if (mode & (INNER | EMULATED)) error = 2e-6 * sqrt(terms);
    versus_run(&v, mode & MEANS ? 2 : 1, error);
    assert_true(s->refused || v.impl);
}

static void blocked_matches(void **state) {
    (void)state;
    static const char *const activations[] = {NULL, "Relu", "HardSwish", "LeakyRelu"};
    for (int i = 0; i < SHAPES; i++)
        for (int mode = 0; mode < 4; mode++)
            conv_case(&shapes[i], mode, activations[(i + mode) % 4]);
}

/* Weights of 16 bits, by direct sums and beside Winograd's method. */
static void narrow_matches(void **state) {
    (void)state;
    static const sn_dtype types[] = {SN_FLOAT16, SN_BFLOAT16};
    static const int modes[] = {BIAS,   ADDED,        WINOGRAD | BIAS,        PLAIN | ADDED,
                                SLOPES, ADDED | ONTO, FACTORS | BIAS | ADDED, FACTORS | EACH};
    for (int i = 0; i < SHAPES; i++)
        for (size_t mode = 0; mode < sizeof modes / sizeof *modes; mode++) {
            const shape *s = &shapes[i];
            bool pointwise = s->kernel[0] * s->kernel[1] == 1;
            if ((modes[mode] & PLAIN && s->groups > 1) || (modes[mode] & ONTO && s->refused) ||
                (modes[mode] & FACTORS && (!pointwise || s->groups > 1)))
                continue;
            narrow = types[((size_t)i + mode) % 2];
            conv_case(s, modes[mode], modes[mode] & SLOPES ? NULL : "Relu");
        }
    narrow = SN_UNDEFINED;
}

/* Results over what is added to them. */
static void overwriting_matches(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++)
        for (int mode = 0; mode < 2; mode++) {
            if (shapes[i].refused) continue;
            const char *activation = i % 2 ? "Relu" : "LeakyRelu";
            conv_case(&shapes[i], mode | ADDED | ONTO, activation);
            conv_case(&shapes[i], mode | ADDED | ONTO | WINOGRAD, activation);
            if (shapes[i].groups > 1) continue;
            conv_case(&shapes[i], mode | ADDED | ONTO | PLAIN, activation);
        }
}

/* Infinities and NaN in a group's input reach outputs of that group alone, whether groups fill
 * blocks, share them or are merged. Outputs fill their blocks: what stands behind them is not
 * compared. */
static void groups_stay_apart(void **state) {
    (void)state;
    static const shape pictures[] = {
        {1, 48, 48, 2, 9, 11, {1, 1}, {1, 1}, {0}, {1, 1}},
        {2, 272, 272, 8, 7, 7, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 48, 96, 4, 5, 31, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 80, 80, 2, 6, 6, {1, 1}, {1, 1}, {0}, {1, 1}},
        {2, 24, 112, 4, 7, 7, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 60, 48, 12, 3, 40, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 32, 32, 8, 9, 9, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
        {2, 48, 96, 12, 5, 9, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 64, 64, 8, 14, 14, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 64, 128, 8, 6, 33, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 16, 32, 16, 12, 12, {5, 5}, {3, 3}, {2, 2, 2, 2}, {1, 1}},
        {1, 32, 32, 4, 9, 9, {1, 1}, {2, 2}, {0}, {1, 1}},
        {1, 48, 48, 2, 9, 14, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 240, 240, 10, 7, 7, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
        {1, 64, 64, 32, 9, 9, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 32, 64, 32, 9, 9, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 40, 80, 5, 7, 9, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}},
    };
    static const char *const activations[] = {NULL, "Relu", "Sigmoid", "LeakyRelu"};
    static const int64_t rates[] = {487, 61};
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
            for (int mode = 0; mode < 4; mode++) {
                odd_every = rates[r];
                conv_case(&pictures[i], mode, activations[(i + r) % 4]);
                if (mode & ADDED) conv_case(&pictures[i], mode | ONTO, activations[i % 4]);
            }
    odd_every = 0;
}

/* The slopes of PRelu, through every kernel. */
static void slopes_match(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++)
        for (int mode = 0; mode < 4; mode++) {
            conv_case(&shapes[i], mode | SLOPES, NULL);
            conv_case(&shapes[i], mode | SLOPES | WINOGRAD, NULL);
            if (shapes[i].groups > 1) continue;
            conv_case(&shapes[i], mode | SLOPES | PLAIN, NULL);
        }
}

/* Factors of input channels, of all images and of each: few pixels, where the picture is scaled,
 * and many, where the weights are. */
static void factors_match(void **state) {
    (void)state;
    static const shape pictures[] = {
        {1, 16, 16, 1, 5, 7, {1, 1}, {1, 1}, {0}, {1, 1}},
        {2, 24, 40, 1, 17, 17, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 24, 40, 1, 17, 17, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 3, 5, 1, 9, 11, {1, 1}, {2, 2}, {0}, {1, 1}},
        {1, 70, 20, 1, 29, 31, {1, 1}, {2, 2}, {0}, {1, 1}},
        {1, 33, 24, 1, 60, 61, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 600, 112, 1, 14, 14, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 1000, 130, 1, 20, 20, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 9, 200, 1, 3, 3, {1, 1}, {1, 1}, {0}, {1, 1}},
    };
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        for (int mode = 0; mode < 16; mode++)
            conv_case(&pictures[i],
                      (mode & 3) | FACTORS | (mode & 4 ? EACH : 0) | (mode & 8 ? SLOPES : 0),
                      mode & 8   ? NULL
                      : mode & 1 ? "HardSwish"
                                 : "Relu");
}

/* Means of channels besides the results, with and without another activation than bounds. */
static void means_match(void **state) {
    (void)state;
    static const shape pictures[] = {
        {2, 40, 40, 40, 9, 9, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 17, 17, 17, 40, 33, {5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}},
        {1, 32, 32, 32, 61, 70, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 5, 5, 5, 1, 1, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 16, 16, 16, 1, 300, {1, 5}, {1, 1}, {0, 4, 0, 4}, {1, 2}},
        {0, 16, 16, 16, 7, 7, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    };
    static const char *const activations[] = {NULL, "Relu", "HardSwish", "Silu"};
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        for (int mode = 0; mode < 4; mode++)
            conv_case(&pictures[i], mode | MEANS, activations[mode]);
}

static void squeeze_matches(void **state) {
    (void)state;
    static const struct {
        int64_t n, in, mid, out, h, w;
    } cases[] = {{1, 32, 8, 32, 1, 1},      {1, 96, 4, 96, 13, 11},    {2, 20, 6, 32, 7, 7},
                 {1, 1152, 48, 1152, 1, 1}, {1, 672, 28, 672, 14, 14}, {3, 1, 1, 16, 1, 5},
                 {1, 700, 130, 80, 1, 1},   {0, 16, 4, 16, 3, 3}};
    static const char *const first[] = {"Relu", "Silu", NULL, "HardSwish"};
    static const char *const second[] = {"Sigmoid", "HardSigmoid", "Relu", NULL};
    int64_t block = sni_cpu_kernels_get()->block;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int mode = 0; mode < 4; mode++) {
            versus_start(&v, SNI_SINTER_DOMAIN, "SqueezeExcite");
            v.special = i == 1 ? 50 : 0;
            blocked_tensor(cases[i].n, cases[i].in, cases[i].h, cases[i].w, block);
            v.special = 0;
            for (int p = 0; p < 2; p++) {
                int64_t in = p ? cases[i].mid : cases[i].in, out = p ? cases[i].out : cases[i].mid;
                versus_weight(&v, SN_FLOAT32, 4, (int64_t[]){out, in, 1, 1}, NULL);
                if (mode & (p + 1))
                    versus_weight(&v, SN_FLOAT32, 1, &out, NULL);
                else if (!p)
                    versus_without(&v);
            }
            eval_attr(&v.e, sni_attr_of_int("block", block));
            if (first[mode]) eval_attr(&v.e, sni_attr_of_string("squeeze_activation", first[mode]));
            if (second[mode])
                eval_attr(&v.e, sni_attr_of_string("excite_activation", second[mode]));
            versus_run(&v, 1, 1e-4);
            assert_true(v.impl);
        }
}

static void plain_input_matches(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++)
        if (shapes[i].groups == 1)
            for (int mode = 0; mode < 4; mode++)
                conv_case(&shapes[i], mode | PLAIN, mode & 1 ? "Relu" : NULL);
}

/* First convolutions of pictures: rows of every number of tiles, pixels at either end whose kernel
 * reaches over the edge, kernels wider than the picture. */
static void few_channels_match(void **state) {
    (void)state;
    static const int64_t kernels[] = {3, 3, 2, 5, 3}, pads[] = {1, 0, 1, 2, 4};
    for (int64_t w = 1; w <= 61; w += 4)
        for (int64_t stride = 1; stride <= 3; stride++) {
            int i = (int)((w / 4 + stride) % 5);
            shape s = {1 + w % 2,
                       1 + w / 4 % 4,
                       w % 3 ? 16 : 40,
                       1,
                       6,
                       w,
                       {kernels[i], kernels[i]},
                       {stride, stride},
                       {pads[i], pads[i], pads[i], pads[i]},
                       {1, 1}};
            if (s.w + 2 * pads[i] < kernels[i]) s.pads[1] = s.pads[3] = kernels[i];
            conv_case(&s, PLAIN | (w % 8 < 4 ? BIAS : ADDED), stride & 1 ? "Relu" : "Silu");
            s.dilation[1] = 2;
            if (s.w + s.pads[1] + s.pads[3] > 2 * kernels[i]) conv_case(&s, PLAIN | BIAS, NULL);
        }
}

/* Few rows and many, bands that hold the whole picture and ones that do not, rows of the output
 * that see padding alone. */
static void expanded_depthwise_matches(void **state) {
    (void)state;
    static const struct {
        int64_t n, in, out, h, w, kernel[2], stride[2], pads[4], dilation[2];
    } cases[] = {
        {1, 16, 96, 41, 60, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
        {1, 24, 40, 60, 90, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 10, 33, 70, 50, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}},
        {1, 40, 33, 90, 40, {5, 5}, {2, 2}, {2, 1, 2, 2}, {1, 1}},
        {2, 7, 20, 14, 14, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {3, 33, 50, 7, 7, {5, 3}, {1, 2}, {2, 1, 2, 1}, {1, 1}},
        {1, 3, 5, 1, 1, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
        {1, 20, 17, 30, 170, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}},
        {1, 17, 18, 60, 110, {7, 7}, {3, 3}, {3, 3, 3, 3}, {1, 1}},
        {1, 4, 9, 3, 5, {2, 2}, {1, 1}, {5, 4, 6, 3}, {1, 1}},
    };
    static const char *const activations[] = {"Relu", "Clip", "Silu", NULL};
    int64_t block = sni_cpu_kernels_get()->block;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int mode = 0; mode < 4; mode++) {
            int64_t m = cases[i].out;
            versus_start(&v, SNI_SINTER_DOMAIN, "ExpandDepthwise");
            blocked_tensor(cases[i].n, cases[i].in, cases[i].h, cases[i].w, block);
            versus_weight(&v, SN_FLOAT32, 4, (int64_t[]){m, cases[i].in, 1, 1}, NULL);
            if (mode & 1)
                versus_weight(&v, SN_FLOAT32, 1, &m, NULL);
            else
                versus_without(&v);
            versus_weight(&v, SN_FLOAT32, 4,
                          (int64_t[]){m, 1, cases[i].kernel[0], cases[i].kernel[1]}, NULL);
            if (mode & 2) versus_weight(&v, SN_FLOAT32, 1, &m, NULL);
            eval_ints(&v.e, "strides", cases[i].stride, 2);
            eval_ints(&v.e, "pads", cases[i].pads, 4);
            eval_ints(&v.e, "dilations", cases[i].dilation, 2);
            eval_attr(&v.e, sni_attr_of_int("group", m));
            eval_attr(&v.e, sni_attr_of_int("block", block));
            const char *first = activations[(i + (size_t)mode) % 4], *second = activations[mode];
            if (first) eval_attr(&v.e, sni_attr_of_string("expand_activation", first));
            if (second) eval_attr(&v.e, sni_attr_of_string("activation", second));
            versus_run(&v, i % 2 ? 2 : 1, 1e-4);
            assert_true(v.impl);
        }
}

static void pools_match(void **state) {
    (void)state;
    static const struct {
        int64_t h, w, kernel[3], stride[3], pads[6], dilation[3];
    } pools[] = {
        {9, 11, {3, 3, 1}, {2, 2, 1}, {1, 1, 0, 1, 1, 0}, {1, 1, 1}},
        {7, 7, {2, 3, 1}, {1, 2, 1}, {0, 1, 0, 1, 0, 0}, {1, 1, 1}},
        {8, 5, {5, 5, 1}, {1, 1, 1}, {2, 2, 0, 2, 2, 0}, {1, 1, 1}},
        {12, 12, {3, 2, 1}, {1, 1, 1}, {2, 1, 0, 2, 1, 0}, {2, 3, 1}},
    };
    int64_t block = sni_cpu_kernels_get()->block;
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        for (int mode = 0; mode < 3; mode++) {
            versus_start(&v, "", mode ? "AveragePool" : "MaxPool");
            if (!mode) v.special = 9;
            versus_tensor(&v, SN_FLOAT32, 5, (int64_t[]){2, 3, pools[i].h, pools[i].w, block},
                          NULL);
            v.special = 0;
            eval_ints(&v.e, "kernel_shape", pools[i].kernel, 3);
            eval_ints(&v.e, "strides", pools[i].stride, 3);
            eval_ints(&v.e, "pads", pools[i].pads, 6);
            eval_ints(&v.e, "dilations", pools[i].dilation, 3);
            if (mode == 2) eval_attr(&v.e, sni_attr_of_int("count_include_pad", 1));
            versus_run(&v, 1, 1e-6);
        }
}

static void pictures_match(void **state) {
    (void)state;
    static const char *const types[] = {"ReduceMean", "ReduceMax", "Mul", "Add"};
    int64_t block = sni_cpu_kernels_get()->block, axes[2] = {2, 3};
    for (int type = 0; type < 4; type++)
        for (int64_t side = 1; side < 60; side += 11) {
            versus_start(&v, "", types[type]);
            versus_tensor(&v, SN_FLOAT32, 5, (int64_t[]){2, 3, side, 7, block}, NULL);
            if (type < 2)
                versus_weight(&v, SN_INT64, 1, (int64_t[]){2}, axes);
            else
                versus_tensor(&v, SN_FLOAT32, 5, (int64_t[]){1 + side % 2, 3, 1, 1, block}, NULL);
            versus_run(&v, 1, 1e-5);
        }
}

static void gather_case(const int64_t sizes[2], const int64_t *indices, size_t n) {
    int64_t block = sni_cpu_kernels_get()->block;
    versus_start(&v, SNI_SINTER_DOMAIN, "GatherChannels");
    for (int i = 0; i < 2; i++) blocked_tensor(1 + (int64_t)n / block % 2, sizes[i], 11, 13, block);
    eval_attr(&v.e, sni_attr_of_int("block", block));
    eval_ints(&v.e, "channels", sizes, 2);
    eval_ints(&v.e, "indices", indices, n);
    versus_run(&v, 1, 0);
}

static void moves_match(void **state) {
    (void)state;
    int64_t block = sni_cpu_kernels_get()->block;
    for (int64_t channels = 1; channels < 50; channels += 7) {
        int64_t sizes[2] = {channels, 37}, indices[150];
        size_t n = (size_t)(channels * 3);
        for (int last = 0; last < 2; last++) {
            int64_t plain[4] = {2, channels, 5, channels}, transposed[4] = {2, 9, 13, channels};
            versus_start(&v, SNI_SINTER_DOMAIN, "ToBlocked");
            versus_tensor(&v, SN_FLOAT32, 4, last ? transposed : plain, NULL);
            eval_attr(&v.e, sni_attr_of_int("block", block));
            eval_attr(&v.e, sni_attr_of_int("channels_last", last));
            versus_run(&v, 1, 0);
            versus_start(&v, SNI_SINTER_DOMAIN, "FromBlocked");
            blocked_tensor(2, channels, 9, channels, block);
            eval_attr(&v.e, sni_attr_of_int("block", block));
            eval_attr(&v.e, sni_attr_of_int("channels", channels));
            eval_attr(&v.e, sni_attr_of_int("channels_last", last));
            versus_run(&v, 1, 0);
        }
        n -= n % (size_t)block; /* beyond the last channel both may write what they like */
        if (!n) continue;
        for (size_t i = 0; i < n; i++)
            indices[i] = (int64_t)i < channels
                             ? (int64_t)i
                             : (int64_t)(unit_random(&v.seed) % (uint32_t)(channels + 37));
        gather_case(sizes, indices, n);
        for (int64_t apart = 2; apart < 10; apart++) { /* as many blocks for each block of output */
            for (size_t i = 0; i < n; i++)
                indices[i] = ((int64_t)i % apart * block + (int64_t)i / apart) % (channels + 37);
            gather_case(sizes, indices, n);
        }
    }
}

/* Pointwise convolutions, of groups too, and expanding ones, whose channels come from all over one
 * to three tensors. */
static void indirect_case(int64_t n, int64_t channels, int64_t groups, int tensors, bool expands) {
    static const int64_t sizes[3] = {37, 16, 5}, pads[4] = {1, 1, 1, 1};
    int64_t block = sni_cpu_kernels_get()->block, h = 9, w = 11, out = 2 * channels, all = 0;
    int64_t indices[150];
    for (int i = 0; i < tensors; i++) all += sizes[i];
    for (int64_t i = 0; i < channels; i++) indices[i] = unit_random(&v.seed) % (uint32_t)all;
    versus_start(&v, SNI_SINTER_DOMAIN, expands ? "ExpandDepthwise" : "BlockedConv");
    blocked_tensor(n, sizes[0], h, w, block);
    versus_weight(&v, SN_FLOAT32, 4, (int64_t[]){out, channels / groups, 1, 1}, NULL);
    versus_weight(&v, SN_FLOAT32, 1, &out, NULL);
    if (expands)
        versus_weight(&v, SN_FLOAT32, 4, (int64_t[]){out, 1, 3, 3}, NULL);
    else
        blocked_tensor(n, out, h, w, block);
    for (int i = 4; i < (expands ? SNI_EXPAND_MORE : SNI_BLOCKED_CONV_MORE); i++)
        versus_without(&v);
    for (int i = 1; i < tensors; i++) blocked_tensor(n, sizes[i], h, w, block);
    eval_ints(&v.e, "channels", sizes, (size_t)tensors);
    eval_ints(&v.e, "indices", indices, (size_t)channels);
    if (expands) eval_ints(&v.e, "pads", pads, 4);
    eval_attr(&v.e, sni_attr_of_int("group", expands ? out : groups));
    eval_attr(&v.e, sni_attr_of_int("block", block));
    eval_attr(&v.e, sni_attr_of_string("activation", "Relu"));
    versus_run(&v, 1, 1e-4);
    assert_true(v.impl);
}

static void indirect_matches(void **state) {
    (void)state;
    for (int tensors = 1; tensors <= 3; tensors++)
        for (int64_t n = 0; n <= 3; n++) {
            indirect_case(n, 58, 1, tensors, false);
            indirect_case(n, 30, 3, tensors, false);
            indirect_case(n, 64, 2, tensors, false);
            indirect_case(n, 5, 1, tensors, true);
            indirect_case(n, 50, 1, tensors, true);
        }
}

/* Where it is allowed, some shapes are computed with fewer products, and only then. */
static void winograd_matches(void **state) {
    (void)state;
    int used = 0;
    for (int i = 0; i < SHAPES; i++)
        for (int mode = 0; mode < 4; mode++) {
            conv_case(&shapes[i], mode, "Relu");
            assert_true(!v.impl || strcmp(v.impl, "conv_winograd_f32") != 0);
            conv_case(&shapes[i], mode | WINOGRAD, mode & 1 ? "HardSwish" : "Relu");
            used += v.impl && strcmp(v.impl, "conv_winograd_f32") == 0;
        }
    assert_true(used >= 8);
}

/* Stride 2 over a plain picture: odd sizes, pads that begin in the middle of a pair or not, small
 * pictures. Large ones are computed over phases where that is allowed, and only then. */
static void phases_match(void **state) {
    (void)state;
    static const shape pictures[] = {
        {1, 3, 64, 1, 70, 70, {7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}},
        {2, 3, 40, 1, 51, 63, {7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}},
        {1, 1, 33, 1, 60, 45, {7, 7}, {2, 2}, {2, 3, 1, 4}, {1, 1}},
        {2, 4, 64, 1, 47, 64, {7, 7}, {2, 2}, {0, 1, 0, 0}, {1, 1}},
        {1, 5, 50, 1, 64, 61, {7, 5}, {2, 2}, {3, 2, 3, 2}, {1, 1}},
        {3, 3, 64, 1, 40, 40, {6, 7}, {2, 2}, {1, 8, 2, 9}, {1, 1}},
        {1, 3, 17, 1, 3, 2, {7, 7}, {2, 2}, {3, 3, 3, 3}, {1, 1}},
        {1, 3, 64, 1, 80, 81, {5, 5}, {2, 2}, {2, 2, 2, 2}, {1, 1}},
    };
    int used = 0;
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        for (int mode = 0; mode < 4; mode++) {
            conv_case(&pictures[i], mode | PLAIN, "Relu");
            assert_true(!v.impl || strcmp(v.impl, "conv_phases_f32") != 0);
            conv_case(&pictures[i], mode | PLAIN | WINOGRAD, mode & 1 ? "HardSwish" : "Relu");
            used += v.impl && strcmp(v.impl, "conv_phases_f32") == 0;
            conv_case(&pictures[i], mode | PLAIN | WINOGRAD | SLOPES, NULL);
        }
    assert_true(used >= 12);
}

/* Convolutions that may be computed as inner products or emulated: tiles of all sizes, halves of
 * panels and less, several images, strides, pads that see nothing, odd numbers of lines and several
 * k-blocks.
 */
static const shape products[] = {
    {1, 48, 48, 1, 5, 7, {1, 1}, {1, 1}, {0}, {1, 1}},
    {2, 64, 80, 1, 9, 11, {1, 1}, {1, 1}, {0}, {1, 1}},
    {3, 112, 65, 1, 13, 13, {1, 1}, {2, 2}, {0}, {1, 1}},
    {1, 80, 97, 1, 17, 10, {1, 1}, {2, 1}, {0}, {1, 1}},
    {2, 96, 64, 1, 6, 9, {1, 1}, {1, 1}, {1, 2, 0, 3}, {1, 1}},
    {1, 64, 63, 1, 7, 8, {1, 1}, {2, 2}, {4, 1, 3, 2}, {1, 1}},
    {2, 1600, 49, 1, 5, 5, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 784, 160, 1, 7, 7, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 2304, 33, 1, 4, 9, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 256, 512, 1, 20, 21, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 64, 70, 1, 1, 500, {1, 1}, {1, 1}, {0}, {1, 1}},
    {0, 64, 64, 1, 9, 9, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 48, 40, 1, 9, 10, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}},
    {2, 64, 48, 1, 11, 9, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}},
    {1, 160, 33, 1, 8, 7, {2, 5}, {1, 1}, {0, 2, 0, 2}, {1, 1}},
    {1, 32, 64, 1, 12, 12, {3, 3}, {1, 1}, {2, 2, 2, 2}, {2, 2}},
    /* What would not pay. */
    {5, 64, 100, 1, 3, 4, {1, 1}, {1, 1}, {0}, {1, 1}},
    {2, 32, 17, 1, 1, 1, {1, 1}, {1, 1}, {0}, {1, 1}},
    {1, 16, 5, 1, 9, 9, {1, 1}, {1, 1}, {0}, {1, 1}},
};
enum { INNER_SIZES = sizeof products / sizeof *products };

/* Whether inner products can be forced: the lines that they are packed by are blocks. */
static bool forces_inner_products(void) {
    return sni_inner_product_most() > 0 && sni_cpu_kernels_get()->block == SNI_LEFT_STEPS;
}

static void product_matches(const shape *s, int transpose, int how) {
    static const char *const activations[] = {NULL, "Relu", "HardSwish", "LeakyRelu"};
    for (int mode = 0; mode < 4; mode++) {
        int way = mode | how | FORCED;
        conv_case(s, way, activations[(transpose + mode) % 4]);
        conv_case(s, way, activations[(transpose + mode + 1) % 4]);
        conv_case(s, way | SLOPES, NULL);
        if (!(mode & ADDED)) continue;
        conv_case(s, way | ONTO, activations[(transpose + mode) % 2]);
        conv_case(s, way | ONTO, activations[2 + (transpose + mode) % 2]);
        conv_case(s, way | ONTO | SLOPES, NULL);
    }
}

static void inner_products_match(void **state) {
    (void)state;
    if (!forces_inner_products()) skip();
    for (int i = 0; i < INNER_SIZES; i++) product_matches(&products[i], i, INNER);
}

/* Emulated sums, by kernels in plain C where there are no tiles. */
static void emulated_match(void **state) {
    (void)state;
    bool tiles = sni_emulated_kernels_get() != NULL;
    if (sni_cpu_kernels_get()->block != SNI_LEFT_STEPS) skip();
    if (!tiles) stand_in = &sni_emulated_kernels_plain;
    for (int i = 0; i < INNER_SIZES; i++) {
        const shape *s = &products[i];
        int64_t terms = s->in * s->kernel[0] * s->kernel[1];
        if (!sni_emulated_can(terms, s->out)) continue;
        if (tiles || s->h * s->w * terms * s->out < 1 << 19) product_matches(s, i, EMULATED);
    }
    stand_in = NULL;
}

/* What is not finite is where it belongs, in the picture, in what is added and in weights. (Whether
 * weights that are not finite meet pads is not decided.) */
static void check_odd_numbers(int how) {
    static const shape pictures[] = {
        {2, 64, 80, 1, 9, 11, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 112, 64, 1, 13, 13, {1, 1}, {2, 2}, {0}, {1, 1}},
        {1, 1600, 48, 1, 7, 9, {1, 1}, {1, 1}, {0}, {1, 1}},
        {1, 64, 48, 1, 7, 9, {1, 1}, {1, 1}, {1, 0, 2, 1}, {1, 1}},
    };
    static const char *const activations[] = {NULL, "Relu", "LeakyRelu"};
    for (int i = 0; i < 4; i++)
        for (int transpose = 0; transpose < 24; transpose++) {
            int mode = (transpose & 3) | how | FORCED;
            odd_every = transpose & 4 ? 487 : 0;
            odd_weights = transpose & 4 || i == 3 ? 0 : 701;
            conv_case(&pictures[i], mode, activations[transpose / 8]);
            if (mode & ADDED) conv_case(&pictures[i], mode | ONTO, activations[transpose / 8]);
        }
    odd_every = 0;
    odd_weights = 0;
}

static void inner_products_keep_odd_numbers(void **state) {
    (void)state;
    if (!forces_inner_products()) skip();
    check_odd_numbers(INNER);
}

static void emulated_keep_odd_numbers(void **state) {
    (void)state;
    if (!sni_emulated_can(64, 64)) skip();
    check_odd_numbers(EMULATED);
}

/* Emulation is chosen where it is allowed and estimated to be quicker, and nowhere else; some
 * convolutions are large enough for that. */
static void emulation_is_chosen(void **state) {
    (void)state;
    static const shape large[] = {{1, 256, 256, 1, 14, 14, {1, 1}, {1, 1}, {0}, {1, 1}},
                                  {1, 128, 512, 1, 20, 20, {1, 1}, {2, 2}, {0}, {1, 1}},
                                  {1, 128, 128, 1, 21, 21, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}}};
    enum { LARGE = sizeof large / sizeof *large };
    bool tiles = sni_emulated_kernels_get() != NULL;
    for (int i = 0; i < INNER_SIZES + LARGE; i++) {
        const shape *s = i < INNER_SIZES ? &products[i] : &large[i - INNER_SIZES];
        conv_case(s, BIAS | INNER, "Relu");
        assert_true(!v.impl || strcmp(v.impl, "conv_emulated_f32") != 0);
        conv_case(s, BIAS | EMULATED, "Relu");
        bool used = v.impl && strcmp(v.impl, "conv_emulated_f32") == 0;
        int64_t terms = s->in * s->kernel[0] * s->kernel[1];
        assert_true(!used || sni_emulated_suits(s->h * s->w, s->out, terms));
        if (i >= INNER_SIZES) assert_int_equal(used, tiles);
    }
}

/* Inner products are chosen where they are allowed and quicker, and nowhere else. */
static void inner_products_are_chosen(void **state) {
    (void)state;
    int used = 0;
    for (int i = 0; i < INNER_SIZES + SHAPES; i++) {
        const shape *s = i < INNER_SIZES ? &products[i] : &shapes[i - INNER_SIZES];
        conv_case(s, BIAS, "Relu");
        assert_true(!v.impl || strcmp(v.impl, "conv_inner_product_f32") != 0);
        if (s->kernel[0] * s->kernel[1] > 1 || s->in % SNI_LEFT_STEPS) continue;
        conv_case(s, BIAS | INNER, "Relu");
        bool inner_product = v.impl && strcmp(v.impl, "conv_inner_product_f32") == 0;
        assert_true(!inner_product ||
                    (sni_inner_product_is_quicker() && forces_inner_products() && s->in >= 48));
        used += inner_product;
    }
    assert_true(sni_inner_product_is_quicker() ? used >= 5 : used == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocked_matches),
        cmocka_unit_test(narrow_matches),
        cmocka_unit_test(plain_input_matches),
        cmocka_unit_test(few_channels_match),
        cmocka_unit_test(expanded_depthwise_matches),
        cmocka_unit_test(overwriting_matches),
        cmocka_unit_test(groups_stay_apart),
        cmocka_unit_test(slopes_match),
        cmocka_unit_test(factors_match),
        cmocka_unit_test(means_match),
        cmocka_unit_test(squeeze_matches),
        cmocka_unit_test(pools_match),
        cmocka_unit_test(pictures_match),
        cmocka_unit_test(moves_match),
        cmocka_unit_test(indirect_matches),
        cmocka_unit_test(winograd_matches),
        cmocka_unit_test(phases_match),
        cmocka_unit_test(inner_products_match),
        cmocka_unit_test(inner_products_keep_odd_numbers),
        cmocka_unit_test(inner_products_are_chosen),
        cmocka_unit_test(emulated_match),
        cmocka_unit_test(emulation_is_chosen),
        cmocka_unit_test(emulated_keep_odd_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
