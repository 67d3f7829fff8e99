/* test_layout.c - blocked layout over typical bodies of networks: no conversion inside, one
 * implementation or the other, the same results as in plain layout. */
#include "sink.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Models in text: weights are sines, so that they are many different numbers ---- */

typedef struct text {
    char lists[8192], nodes[16384];
    int count;
} text;

#define NODE(t, ...) unit_append((t)->nodes, sizeof(t)->nodes, __VA_ARGS__)
#define LIST(t, ...) unit_append((t)->lists, sizeof(t)->lists, __VA_ARGS__)

static bool lines; /* bodies are over one axis: check() gives them (channels, side * side) */

/* y = Conv(x) with `out` filters over `in` channels of each group. */
static void conv(text *t, const char *y, const char *x, int out, int in, int kernel, int stride,
                 int groups) {
    int i = t->count++, pad = kernel / 2;
    LIST(t, ", int64 n%d = {%d}, ", i, out * in * kernel * (lines ? 1 : kernel));
    if (lines)
        LIST(t, "int64[3] s%d = {%d, %d, %d}", i, out, in, kernel);
    else
        LIST(t, "int64[4] s%d = {%d, %d, %d, %d}", i, out, in, kernel, kernel);
    NODE(t,
         " r%d = Range(zero, n%d, one) f%d = Cast<to = 1>(r%d) g%d = Sin(f%d) w%d = Reshape(g%d, "
         "s%d)",
         i, i, i, i, i, i, i, i, i);
    if (lines)
        NODE(t, " %s = Conv<pads = [%d, %d], strides = [%d], group = %d>(%s, w%d)", y, pad, pad,
             stride, groups, x, i);
    else
        NODE(t, " %s = Conv<pads = [%d, %d, %d, %d], strides = [%d, %d], group = %d>(%s, w%d)", y,
             pad, pad, pad, pad, stride, stride, groups, x, i);
}

static int count_of(const char *all, const char *word) {
    int n = 0;
    for (const char *at = all; (at = strstr(at, word)) != NULL; at += strlen(word)) n++;
    return n;
}

/* Runs the model at an optimisation level; the optimised graph's text goes to *graph. */
static sn_value *run(const sn_model *model, int level, const sn_value *x, char **graph) {
    sn_error err;
    sn_session_options options;
    sn_session *session;
    sink s = {0};
    sn_session_options_init(&options, sizeof options);
    options.optimize = level;
    if (sn_session_create(model, &options, &session, &err) != SN_OK) fail_msg("%s", err.message);
    if (sn_session_write(session, SN_STAGE_OPT, SN_FORMAT_TEXT, sink_append, &s, &err) != SN_OK)
        fail_msg("%s", err.message);
    sn_binding in = {.name = "x", .value = (sn_value *)x}, out = {.name = "y"};
    if (sn_session_run(session, NULL, &in, 1, &out, 1, &err) != SN_OK) fail_msg("%s", err.message);
    sn_session_destroy(session);
    *graph = s.p;
    return out.value;
}

static void compare(const sn_value *got, const sn_value *want) {
    size_t n = sn_tensor_count(want);
    const float *a = sn_tensor_const_data(got), *b = sn_tensor_const_data(want);
    float scale = 1e-20f;
    assert_int_equal(sn_tensor_count(got), n);
    for (size_t i = 0; i < n; i++) scale = fmaxf(scale, fabsf(b[i]));
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-4f * scale))
            fail_msg("element %zu is %g, not %g (of %g)", i, (double)a[i], (double)b[i],
                     (double)scale);
}

static bool small;               /* check() wants the conversion before the Resize */
static int bent;                 /* nodes of PRelu that it finds */
static int expanded, to_blocked; /* nodes of ExpandDepthwise and ToBlocked that check() finds */
static int squeezed;             /* and of SqueezeExcite */

/* Checks a body from x (channels, side, side) to y: conversions from blocked layout as told, none
 * to it, no convolution left in plain layout. */
static void check(const text *t, int channels, int side, const char *y_type, int from,
                  int gathers) {
    static char all[32768];
    sn_model *model;
    sn_error err;
    sn_value *x;
    char *plain, *blocked;
    char shape[64];
    if (lines)
        snprintf(shape, sizeof shape, "1,%d,%d", channels, side * side);
    else
        snprintf(shape, sizeof shape, "1,%d,%d,%d", channels, side, side);
    snprintf(all, sizeof all,
             "<ir_version: 8, opset_import: [\"\" : 18]> g (float[%s] x) => (%s y) <int64 "
             "zero = {0}, int64 one = {1}%s> {%s }",
             shape, y_type, t->lists, t->nodes);
    if (sn_model_load_text(all, strlen(all), &model, &err) != SN_OK) fail_msg("%s", err.message);
    int64_t dims[4] = {1, channels, lines ? side * side : side, side};
    assert_int_equal(sn_tensor_create(SN_FLOAT32, lines ? 3 : 4, dims, &x, &err), SN_OK);
    float *data = sn_tensor_data(x);
    for (size_t i = 0; i < sn_tensor_count(x); i++) data[i] = cosf((float)i * 0.7f);
    sn_value *want = run(model, 2, x, &plain), *got = run(model, 3, x, &blocked);
    compare(got, want);
    if (count_of(blocked, "ToBlocked") != to_blocked ||
        (to_blocked && count_of(blocked, "= Transpose")) ||
        count_of(blocked, "FromBlocked") != from ||
        count_of(blocked, "GatherChannels") != gathers || count_of(blocked, "= Conv ") != 0 ||
        count_of(blocked, "SqueezeExcite") != squeezed ||
        count_of(blocked, "ExpandDepthwise") != expanded || count_of(blocked, "= PRelu ") != bent ||
        (small && !strstr(strstr(blocked, "FromBlocked"), "Resize")) ||
        count_of(blocked, "FusedConv") != 0)
        fail_msg("%d gathers, %d and %d conversions in\n%s", count_of(blocked, "GatherChannels"),
                 count_of(blocked, "ToBlocked"), count_of(blocked, "FromBlocked"), blocked);
    free(plain);
    free(blocked);
    sn_value_destroy(want);
    sn_value_destroy(got);
    sn_value_destroy(x);
    sn_model_destroy(model);
}

static void residual_blocks(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 32, 3, 7, 2, 1);
    NODE(&t, " b = Relu(a) c = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, "
             "1]>(b)");
    conv(&t, "d", "c", 32, 32, 3, 1, 1);
    NODE(&t, " e = Relu(d)");
    conv(&t, "f", "e", 32, 32, 3, 1, 1);
    NODE(&t, " h = Add(f, c) i = Relu(h)");
    conv(&t, "j", "i", 48, 32, 1, 2, 1);
    NODE(&t, " k = GlobalAveragePool(j) y = Flatten(k)");
    check(&t, 3, 32, "float[1,48]", 1, 0);
}

static void squeeze_and_excite(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 24, 3, 3, 2, 1);
    NODE(&t, " b = HardSwish(a)");
    conv(&t, "c", "b", 24, 1, 5, 1, 24);
    NODE(&t, " d = GlobalAveragePool(c)");
    conv(&t, "e", "d", 8, 24, 1, 1, 1);
    NODE(&t, " f = Relu(e)");
    conv(&t, "h", "f", 24, 8, 1, 1, 1);
    NODE(&t, " i = HardSigmoid(h) j = Mul(i, c)");
    conv(&t, "k", "j", 20, 24, 1, 1, 1);
    LIST(&t, ", int64[2] picture = {2, 3}");
    NODE(&t, " y = ReduceMean<keepdims = 0>(k, picture)");
    squeezed = 1;
    check(&t, 3, 20, "float[1,20]", 1, 0);
    squeezed = 0;
}

/* Means that others use as well, products whose first result is an output, and a convolution with
 * padding keep what they need. */
static void not_squeezed(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 24, 3, 3, 2, 1);
    NODE(&t, " d = GlobalAveragePool(a)");
    conv(&t, "e", "d", 8, 24, 1, 1, 1);
    NODE(&t, " f = Relu(e)");
    conv(&t, "h", "f", 24, 8, 1, 1, 1);
    NODE(&t, " i = Sigmoid(h) j = Mul(a, i)");
    conv(&t, "k", "j", 24, 24, 3, 1, 1);
    NODE(&t, " l = Add(k, d) m = Add(l, i) o = GlobalAveragePool(m)");
    conv(&t, "p", "o", 8, 24, 1, 1, 1);
    conv(&t, "q", "p", 8, 8, 1, 1, 1);
    NODE(&t, " y = Add(p, q)");
    squeezed = 1;
    check(&t, 3, 20, "float[1,8,1,1]", 1, 0);
    squeezed = 0;
}

/* An expanding convolution and the depthwise one that alone uses it become one node; not so where
 * somebody else uses the first. */
static void inverted_residual(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 20, 3, 3, 1, 1);
    conv(&t, "b", "a", 40, 20, 1, 1, 1);
    NODE(&t, " c = Clip(b, zero_f, six)");
    conv(&t, "d", "c", 40, 1, 3, 1, 40);
    NODE(&t, " e = Relu(d)");
    conv(&t, "f", "e", 20, 40, 1, 1, 1);
    NODE(&t, " h = Add(f, a)");
    conv(&t, "i", "h", 24, 20, 1, 1, 1);
    conv(&t, "j", "i", 24, 1, 3, 1, 24);
    NODE(&t, " y = Add(i, j)");
    LIST(&t, ", float zero_f = {0}, float six = {6}");
    expanded = 1;
    check(&t, 3, 13, "float[1,24,13,13]", 1, 0);
    expanded = 0;
}

/* Transposes around what takes channels last are part of the conversions. */
static void channels_last(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 20, 3, 3, 1, 1);
    conv(&t, "b", "a", 20, 1, 7, 1, 20);
    NODE(&t, " c = Transpose<perm = [0, 2, 3, 1]>(b) d = Softmax<axis = -1>(c) "
             "e = Transpose<perm = [0, 3, 1, 2]>(d)");
    conv(&t, "f", "e", 20, 20, 3, 1, 1);
    NODE(&t, " h = Add(a, f) y = GlobalAveragePool(h)");
    to_blocked = 1;
    check(&t, 3, 11, "float[1,20,1,1]", 2, 0);
    to_blocked = 0;
}

/* A picture that grows at the end is made plain before that: the convolution's 36 pixels. */
static void grown_at_the_end(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 20, 3, 3, 1, 1);
    LIST(&t, ", float[4] more = {1, 1, 3, 3}");
    NODE(&t, " y = Resize<mode = \"linear\">(a, , more)");
    small = true;
    check(&t, 3, 6, "float[1,20,18,18]", 1, 0);
    small = false;
}

static void channel_shuffle(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 20, 3, 3, 1, 1);
    conv(&t, "b", "x", 20, 3, 3, 1, 1);
    LIST(&t, ", int64[5] five = {1, 2, 20, 9, 9}, int64[4] four = {1, 40, 9, 9}, int64[2] halves = "
             "{20, 20}");
    NODE(&t, " c = Concat<axis = 1>(a, b) d = Reshape(c, five) e = Transpose<perm = [0, 2, 1, 3, "
             "4]>(d) f = Reshape(e, four) h, i = Split<axis = 1>(f, halves)");
    conv(&t, "j", "i", 20, 20, 1, 1, 1);
    NODE(&t, " y = Concat<axis = 1>(h, j)");
    check(&t, 3, 9, "float[1,40,9,9]", 1, 1);
}

/* What is put together for a convolution has a plain user before that. */
static void plain_user_first(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 32, 3, 3, 1, 1);
    conv(&t, "b", "x", 16, 3, 3, 1, 1);
    NODE(&t, " c = Concat<axis = 1>(a, b) d = CumSum(c, one)");
    conv(&t, "e", "c", 48, 48, 1, 1, 1);
    NODE(&t, " y = Concat<axis = 0>(d, e)");
    check(&t, 3, 9, "float[2,48,9,9]", 2, 0);
}

#define SIXTEEN "1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8"

/* Lines go the way of pictures one row high: padding and slices along them, pools, and what has one
 * number for each channel, as a matrix or with a batch. */
static void along_lines(void **state) {
    (void)state;
    text t = {0};
    lines = true;
    conv(&t, "a", "x", 32, 3, 5, 2, 1);
    LIST(&t, ", float[32,1] slopes = {" SIXTEEN ", " SIXTEEN "}, float[1,32,1] shifts = {" SIXTEEN
             ", " SIXTEEN "}, float[32] k = {" SIXTEEN ", " SIXTEEN "}, int64[6] pads = {0, 0, 4, "
             "0, 0, 1}, int64[1] from = {2}, int64[1] to = {-3}, int64[1] last = {-1}");
    NODE(&t, " b = PRelu(a, slopes) c = MaxPool<kernel_shape = [3], strides = [2], pads = [1, "
             "1]>(b)");
    conv(&t, "d", "c", 32, 1, 3, 1, 32);
    NODE(&t, " e = BatchNormalization(d, k, k, k, k) f = Pad<mode = \"edge\">(e, pads)");
    conv(&t, "h", "f", 32, 32, 3, 1, 1);
    NODE(&t, " i = Tanh(h) j = Slice(i, from, to, last) k1 = Add(c, shifts)");
    conv(&t, "l", "j", 64, 32, 1, 1, 1);
    conv(&t, "m", "k1", 64, 32, 3, 1, 1);
    NODE(&t, " n = Sigmoid(l) o = Mul(m, n) y = ReduceMean<keepdims = 0>(o, last)");
    check(&t, 3, 12, "float[1,64]", 1, 0);
    lines = false;
}

/* One channel for all of a line, lists of its channels, and its shape. */
static void channels_of_lines(void **state) {
    (void)state;
    text t = {0};
    lines = true;
    conv(&t, "a", "x", 48, 3, 3, 1, 1);
    LIST(&t, ", int64[2] halves = {32, 16}, int64[1] nought = {0}");
    NODE(&t, " b, c = Split<axis = -2>(a, halves)");
    conv(&t, "d", "b", 32, 16, 3, 1, 2);
    conv(&t, "e", "b", 1, 32, 1, 1, 1);
    NODE(&t, " f = Concat<axis = -2>(d, c) h = Mul(f, e) i = Shape(h) j = Cast<to = 1>(i) "
             "k = ReduceMax<keepdims = 0>(j, nought)");
    conv(&t, "l", "h", 16, 48, 1, 1, 1);
    NODE(&t, " m = GlobalAveragePool(l) y = Mul(m, k)");
    check(&t, 3, 7, "float[1,16,1]", 2, 2);
    lines = false;
}

/* Groups that fill no blocks, shuffled: the depthwise convolution takes the channels as they are,
 * and the one after it picks them. */
static void shuffled_groups(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 68, 3, 3, 1, 1);
    conv(&t, "b", "a", 68, 17, 1, 1, 4);
    LIST(&t, ", int64[5] five = {1, 4, 17, 9, 9}, int64[4] four = {1, 68, 9, 9}, float[68,1,1] "
             "slopes = {0.5");
    for (int i = 1; i < 68; i++) LIST(&t, ", %d.25", i % 7);
    LIST(&t, "}");
    NODE(&t, " c = Relu(b) d = Reshape(c, five) e = Transpose<perm = [0, 2, 1, 3, 4]>(d) "
             "f = Reshape(e, four)");
    conv(&t, "h", "f", 68, 1, 3, 1, 68);
    NODE(&t, " i = PRelu(h, slopes)");
    conv(&t, "j", "i", 68, 17, 1, 1, 4);
    NODE(&t, " k = Add(j, a) y = Relu(k)");
    check(&t, 3, 9, "float[1,68,9,9]", 1, 0);
}

/* The same halves for an inverted residual, which picks its channels from both. */
static void indirect_and_expanded(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 20, 3, 3, 1, 1);
    conv(&t, "b", "x", 20, 3, 1, 1, 1);
    LIST(&t, ", int64[5] five = {1, 2, 20, 9, 9}, int64[4] four = {1, 40, 9, 9}, int64[2] halves = "
             "{20, 20}");
    NODE(&t, " c = Concat<axis = 1>(a, b) d = Reshape(c, five) e = Transpose<perm = [0, 2, 1, 3, "
             "4]>(d) f = Reshape(e, four) h, i = Split<axis = 1>(f, halves)");
    conv(&t, "j", "i", 40, 20, 1, 1, 1);
    NODE(&t, " k = Relu(j)");
    conv(&t, "l", "k", 40, 1, 3, 2, 40);
    conv(&t, "m", "h", 20, 20, 1, 1, 1);
    NODE(&t, " o = GlobalAveragePool(m) q = GlobalAveragePool(l) y = Concat<axis = 1>(o, q)");
    expanded = 1;
    check(&t, 3, 9, "float[1,60,1,1]", 1, 1);
    expanded = 0;
}

static void up_and_together(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 32, 3, 3, 1, 1);
    NODE(&t, " b = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(a)");
    conv(&t, "c", "b", 64, 32, 3, 1, 1);
    LIST(
        &t,
        ", float[4] twice = {1, 1, 2, 2}, int64[8] pads = {0, 0, 1, 1, 0, 0, 0, 1}, float[64] "
        "k = {%s}",
        "1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, "
        "7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, "
        "5, 6, 7, 8");
    NODE(&t,
         " m = BatchNormalization(c, k, k, k, k) n = Relu(m) d = Resize<mode = \"nearest\">(n, , "
         "twice) e = Concat<axis = 1>(a, d) f = Pad(e, pads)");
    conv(&t, "h", "f", 10, 96, 3, 1, 1);
    NODE(&t, " y = Sigmoid(h)");
    check(&t, 3, 12, "float[1,10,13,14]", 1, 0);
}

/* y = ConvTranspose(x) of `in` channels to `out`, with these attributes. */
static void transposed(text *t, const char *y, const char *x, int in, int out, int kernel,
                       const char *attributes, const char *bias) {
    int i = t->count++;
    LIST(t, ", int64 n%d = {%d}, int64[4] s%d = {%d, %d, %d, %d}", i, in * out * kernel * kernel, i,
         in, out, kernel, kernel);
    NODE(t,
         " r%d = Range(zero, n%d, one) f%d = Cast<to = 1>(r%d) g%d = Sin(f%d) w%d = Reshape(g%d, "
         "s%d) %s = ConvTranspose<%s>(%s, w%d%s)",
         i, i, i, i, i, i, i, i, i, y, attributes, x, i, bias);
}

/* Phases apart, and those of few channels in one convolution, with and without a last block that is
 * full, and channels of a phase in two blocks. */
static void transposed_convolutions(void **state) {
    (void)state;
    static const struct {
        int out, kernel;
        const char *attributes, *type;
    } cases[] = {
        {20, 4, "strides = [2, 2], pads = [1, 1, 1, 1]", "float[1,20,18,18]"},
        {3, 4, "strides = [2, 2], pads = [1, 1, 1, 1]", "float[1,3,18,18]"},
        {1, 4, "strides = [2, 2], pads = [1, 1, 1, 1]", "float[1,1,18,18]"},
        {3, 4, "strides = [2, 2], pads = [0, 1, 1, 0]", "float[1,3,19,19]"},
        {24, 2, "strides = [2, 2]", "float[1,24,18,18]"},
        {5, 3, "strides = [3, 2], output_padding = [0, 1]", "float[1,5,27,20]"},
        {4, 3, "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]",
         "float[1,4,18,18]"},
        {3, 3, "strides = [1, 3]", "float[1,3,11,27]"},
        {2, 5, "strides = [2, 2], pads = [2, 2, 2, 2]", "float[1,2,17,17]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int end = 0; end < 3; end++) {
            static const char *const ends[] = {"Identity(b)", "Relu(b)", "PRelu(b, slopes)"};
            text t = {0};
            conv(&t, "a", "x", 20, 3, 3, 1, 1);
            LIST(&t, ", float[%d] bias = {0.5", cases[i].out);
            for (int k = 1; k < cases[i].out; k++) LIST(&t, ", %d.25", k);
            LIST(&t, "}, float[%d,1,1] slopes = {-1", cases[i].out);
            for (int k = 1; k < cases[i].out; k++) LIST(&t, ", 0.%d", k);
            LIST(&t, "}");
            transposed(&t, "b", "a", 20, cases[i].out, cases[i].kernel, cases[i].attributes,
                       end ? ", bias" : "");
            NODE(&t, " y = %s", ends[end]);
            check(&t, 3, 9, cases[i].type, 1, 0);
        }
}

/* PRelu by channel is part of the convolution before it, unless somebody else uses that. */
static void slopes_by_channel(void **state) {
    (void)state;
    text t = {0};
    conv(&t, "a", "x", 20, 3, 3, 1, 1);
    NODE(&t, " b = PRelu(a, slopes)");
    conv(&t, "c", "b", 20, 1, 3, 1, 20);
    NODE(&t, " d = PRelu(c, slopes)");
    conv(&t, "e", "d", 20, 20, 1, 1, 1);
    NODE(&t, " f = Add(e, b) h = PRelu(f, slopes)");
    conv(&t, "i", "h", 20, 20, 3, 1, 1);
    NODE(&t, " j = PRelu(i, slopes) y = Add(i, j)");
    LIST(&t, ", float[20,1,1] slopes = {0.1, -0.2, 0.3, 0.4, 2, 0, 0.7, 0.8, 0.9, 1, 0.1, 0.2, "
             "0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 3}");
    bent = 1;
    check(&t, 3, 13, "float[1,20,13,13]", 1, 0);
    bent = 0;
}

/* A normalisation by itself stays in plain layout, with the activation, pool or sum after it. */
static void scales_alone(void **state) {
    (void)state;
    static const char *const after[] = {"Identity(m)", "Relu(m)", "HardSwish(m)", "Add(m, x)",
                                        "MaxPool<kernel_shape = [2, 2]>(m)"};
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        char all[1024], *plain, *fast;
        const int64_t dims[4] = {2, 5, 7, 9};
        sn_model *model;
        sn_value *x;
        sn_error err;
        snprintf(
            all, sizeof all,
            "<ir_version: 8, opset_import: [\"\" : 18]> g (float[2,5,7,9] x) => (float[2,5,H,W] "
            "y) <float[5] k = {-1, 2, 0.5, 3, 4}, float[5] v = {1, 2, 0.5, 3, 4}> { m = "
            "BatchNormalization(x, k, k, k, v) y = %s }",
            after[i]);
        if (sn_model_load_text(all, strlen(all), &model, &err) != SN_OK)
            fail_msg("%s", err.message);
        assert_int_equal(sn_tensor_create(SN_FLOAT32, 4, dims, &x, &err), SN_OK);
        float *data = sn_tensor_data(x);
        for (size_t j = 0; j < sn_tensor_count(x); j++) data[j] = cosf((float)j * 0.7f);
        sn_value *want = run(model, 0, x, &plain), *got = run(model, 3, x, &fast);
        compare(got, want);
        if (count_of(fast, "Blocked")) fail_msg("%s: conversions in\n%s", after[i], fast);
        free(plain);
        free(fast);
        sn_value_destroy(want);
        sn_value_destroy(got);
        sn_value_destroy(x);
        sn_model_destroy(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(residual_blocks),       cmocka_unit_test(squeeze_and_excite),
        cmocka_unit_test(not_squeezed),          cmocka_unit_test(inverted_residual),
        cmocka_unit_test(channels_last),         cmocka_unit_test(grown_at_the_end),
        cmocka_unit_test(channel_shuffle),       cmocka_unit_test(plain_user_first),
        cmocka_unit_test(along_lines),           cmocka_unit_test(channels_of_lines),
        cmocka_unit_test(up_and_together),       cmocka_unit_test(scales_alone),
        cmocka_unit_test(slopes_by_channel),     cmocka_unit_test(shuffled_groups),
        cmocka_unit_test(indirect_and_expanded), cmocka_unit_test(transposed_convolutions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
