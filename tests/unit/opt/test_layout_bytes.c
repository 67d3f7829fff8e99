/* test_layout_bytes.c - channels last over regions of operators on bytes, and tables of bytes: the
 * bytes of plain layout, no conversion inside a region, residuals in convolutions. */
#include "sink.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct text {
    char nodes[16384];
    int count;
    const char *type; /* uint8 or int8 */
} text;

#define NODE(t, ...) unit_append((t)->nodes, sizeof(t)->nodes, __VA_ARGS__)

/* y = QLinearConv(x) with `out` filters over `in` channels of each group. */
static void conv(text *t, const char *y, const char *x, int out, int in, int kernel, int stride,
                 int groups) {
    int i = t->count++, pad = kernel / 2;
    NODE(t,
         " n%d = Constant<value = int64 {%d}>() s%d = Constant<value = int64[4] {%d, %d, %d, %d}>()"
         " r%d = Range(zero, n%d, one) f%d = Cast<to = 1>(r%d) g%d = Sin(f%d) h%d = Mul(g%d, big)"
         " i%d = Cast<to = 3>(h%d) w%d = Reshape(i%d, s%d)",
         i, out * in * kernel * kernel, i, out, in, kernel, kernel, i, i, i, i, i, i, i, i, i, i, i,
         i, i);
    NODE(t,
         " %s = QLinearConv<pads = [%d, %d, %d, %d], strides = [%d, %d], group = %d>(%s, sx, zx, "
         "w%d, sw, zw, sy, zy)",
         y, pad, pad, pad, pad, stride, stride, groups, x, i);
}

static int count_of(const char *all, const char *word) {
    int n = 0;
    for (const char *at = all; (at = strstr(at, word)) != NULL; at += strlen(word)) n++;
    return n;
}

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

/* What the optimised graph must have. */
typedef struct expected {
    int transposes, convs, plain_convs, adds, tables;
} expected;

static void check_graph(const char *graph, const expected *e) {
    if (count_of(graph, "= Transpose") != e->transposes ||
        count_of(graph, "QLinearConvNhwc") != e->convs ||
        count_of(graph, "= QLinearConv ") + count_of(graph, "= QLinearConv<") != e->plain_convs ||
        count_of(graph, "QLinearAdd") != e->adds || count_of(graph, "ByteTable") != e->tables)
        fail_msg("%d transposes, %d convolutions, %d sums, %d tables in\n%s",
                 count_of(graph, "= Transpose"), count_of(graph, "QLinearConvNhwc"),
                 count_of(graph, "QLinearAdd"), count_of(graph, "ByteTable"), graph);
}

/* A body from x (2, channels, side, side) to y gives the same bytes in both layouts. */
static void check(const text *t, int channels, int side, const expected *e) {
    static char all[32768];
    bool is_signed = strcmp(t->type, "int8") == 0;
    sn_model *model;
    sn_error err;
    sn_value *x;
    char *plain, *last;
    snprintf(all, sizeof all,
             "<ir_version: 8, opset_import: [\"\" : 18, \"com.microsoft\" : 1]> g (%s[2,%d,%d,%d] "
             "x) => (%s y) <int64 zero = {0}, int64 one = {1}, float big = {100}, float sx = "
             "{0.04}, float sy = {0.05}, float sw = {0.01}, int8 zw = {0}, %s zx = {%d}, %s zy = "
             "{%d}> {%s }",
             t->type, channels, side, side, t->type, t->type, is_signed ? -5 : 120, t->type,
             is_signed ? 3 : 110, t->nodes);
    if (sn_model_load_text(all, strlen(all), &model, &err) != SN_OK) fail_msg("%s", err.message);
    int64_t dims[4] = {2, channels, side, side};
    assert_int_equal(sn_tensor_create(is_signed ? SN_INT8 : SN_UINT8, 4, dims, &x, &err), SN_OK);
    unsigned char *data = sn_tensor_data(x);
    for (size_t i = 0; i < sn_tensor_count(x); i++) data[i] = (unsigned char)(i * 37 + i / 50);
    sn_value *want = run(model, 2, x, &plain), *got = run(model, 3, x, &last);
    assert_int_equal(sn_tensor_count(got), sn_tensor_count(want));
    assert_memory_equal(sn_tensor_const_data(got), sn_tensor_const_data(want),
                        sn_tensor_count(want));
    assert_int_equal(count_of(plain, "QLinearConvNhwc"), 0);
    check_graph(last, e);
    free(plain);
    free(last);
    sn_value_destroy(want);
    sn_value_destroy(got);
    sn_value_destroy(x);
    sn_model_destroy(model);
}

static void residual_blocks(void **state) {
    (void)state;
    static const char *const types[] = {"uint8", "int8"};
    for (int i = 0; i < 2; i++) {
        text t = {.type = types[i]};
        conv(&t, "a", "x", 32, 3, 7, 2, 1);
        NODE(&t, " c = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(a)");
        conv(&t, "d", "c", 32, 32, 3, 1, 1);
        conv(&t, "f", "d", 32, 32, 3, 1, 1);
        NODE(&t, " h = com.microsoft.QLinearAdd(f, sy, zy, c, sx, zx, sy, zy)");
        conv(&t, "j", "h", 48, 32, 1, 2, 1);
        conv(&t, "k", "h", 48, 32, 3, 2, 1);
        NODE(&t, " m = com.microsoft.QLinearAdd(j, sy, zy, k, sy, zy, sx, zx)"
                 " y = com.microsoft.QLinearGlobalAveragePool(m, sx, zx, sy, zy)");
        check(&t, 3, 32, &(expected){2, 5, 0, 0, 0});
    }
}

/* Gates, tables and joined channels between depthwise and other convolutions. */
static void gated_blocks(void **state) {
    (void)state;
    static const char *const types[] = {"uint8", "int8"};
    for (int i = 0; i < 2; i++) {
        text t = {.type = types[i]};
        conv(&t, "a", "x", 24, 3, 3, 2, 1);
        NODE(&t, " b = com.microsoft.QLinearSigmoid(a, sx, zx, sw, zx)"
                 " c = com.microsoft.QLinearMul(a, sx, zx, b, sw, zx, sy, zy)");
        conv(&t, "d", "c", 24, 1, 5, 1, 24);
        NODE(&t, " e = com.microsoft.QLinearGlobalAveragePool(d, sx, zx, sy, zy)");
        conv(&t, "f", "e", 24, 24, 1, 1, 1);
        NODE(&t, " g = com.microsoft.QLinearSigmoid(f, sy, zy, sw, zx)"
                 " h = com.microsoft.QLinearMul(d, sx, zx, g, sw, zx, sy, zy)");
        conv(&t, "j", "h", 30, 24, 3, 1, 1);
        NODE(&t, " k = com.microsoft.QLinearConcat<axis = 1>(sy, zy, j, sy, zy, d, sx, zx)"
                 " l = com.microsoft.QLinearLeakyRelu<alpha = 0.3>(k, sy, zy, sx, zx)");
        conv(&t, "y", "l", 8, 54, 1, 1, 1);
        check(&t, 3, 20, &(expected){2, 5, 0, 0, 3});
    }
}

/* A sum whose convolution others use as well, one with another shape, and a convolution alone. */
static void kept_as_they_are(void **state) {
    (void)state;
    text t = {.type = "uint8"};
    conv(&t, "a", "x", 16, 16, 3, 1, 1);
    conv(&t, "b", "a", 16, 16, 3, 1, 1);
    NODE(&t, " c = com.microsoft.QLinearAdd(b, sy, zy, a, sy, zy, sx, zx)"
             " d = com.microsoft.QLinearAdd(b, sx, zx, c, sy, zy, sx, zx)"
             " y = com.microsoft.QLinearMul(d, sx, zx, b, sy, zy, sx, zx)");
    check(&t, 16, 9, &(expected){2, 2, 0, 2, 0});
    text alone = {.type = "uint8"};
    conv(&alone, "y", "x", 16, 16, 3, 1, 1);
    check(&alone, 16, 9, &(expected){0, 0, 1, 0, 0});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(residual_blocks),
                                       cmocka_unit_test(gated_blocks),
                                       cmocka_unit_test(kept_as_they_are)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
