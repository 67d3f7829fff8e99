/* test_quantised.c - models in QDQ form: what is left after optimising, and results within a step
 * of the float form. */
#include "sink.h"

#include <stdio.h>
#include <stdlib.h>

/* Calls of an operator in the text of a graph. */
static int count_of(const char *all, const char *name) {
    int n = 0;
    size_t length = strlen(name);
    for (const char *at = all; (at = strstr(at, name)) != NULL; at += length) {
        char before = at > all ? at[-1] : ' ', after = at[length];
        n += (before == ' ' || before == '.') && (after == ' ' || after == '(' || after == '<');
    }
    return n;
}

static sn_session *make_session(const sn_model *model, int level, char **graph) {
    sn_session_options o;
    sn_session *session;
    sn_error err;
    sink text = {0};
    sn_session_options_init(&o, sizeof o);
    o.optimize = level;
    if (sn_session_create(model, &o, &session, &err) != SN_OK) fail_msg("%s", err.message);
    if (!graph) return session;
    assert_int_equal(
        sn_session_write(session, SN_STAGE_OPT, SN_FORMAT_TEXT, sink_append, &text, &err), SN_OK);
    *graph = text.p;
    return session;
}

static void expect(const char *graph, const char *name, int count) {
    if (count_of(graph, name) != count)
        fail_msg("%d times %s, not %d, in\n%s", count_of(graph, name), name, count, graph);
}

/* ---- A small network with all that a quantised one is made of ---- */

#define Q(y, x) y "_q = QuantizeLinear(" x ", s, z) " y " = DequantizeLinear(" y "_q, s, z) "

static const char network[] =
    "<ir_version: 8, opset_import: [\"\" : 13]>"
    "g (float[N, 2, 8, 8] X) => (float[N, 5] Y)"
    "<float s = {0.05}, uint8 z = {110}, float[4] ws = {0.01, 0.02, 0.015, 0.01}, int8[4] wz = "
    "{0, 0, 0, 0}, int8[4, 2, 1, 1] wq = {100, -90, 30, 40, -128, 127, 5, -6}, "
    "int32[4] bq = {500, -300, 20, 1}, float[4] bs = {0.0005, 0.001, 0.00075, 0.0005}, "
    "int32[4] bz = {0, 0, 0, 0}, float ds = {0.02}, int8 dz = {0}, int8[4, 1, 1, 3] dq = {1, 2, 3, "
    "-4, 50, 6, 70, -80, 9, 10, 11, -12}, float[4] db = {0.1, -0.2, 0.3, 0.4}, int64[2] flat = {0, "
    "-1}, int8[4, 5] gq = {1, -20, 30, -40, 50, 60, -70, 80, -90, 100, 11, 12, 13, 14, 15, -16, "
    "-17, 18, 19, 20}, float[5] gb = {1, 2, 3, -4, 0.5}, int64[1] zero = {0}, int64[1] four = {4}, "
    "int64[1] one = {1}, float low = {0}, float high = {6}> {" //
    Q("x",
      "X") "w = DequantizeLinear<axis = 0>(wq, ws, wz) b = DequantizeLinear<axis = 0>(bq, bs, bz) "
           "c0 = Conv(x, w, b) c1 = Relu(c0) " Q(
               "c", "c1") "v = DequantizeLinear(dq, ds, dz) d0 = Conv<group = 4, pads = [0, 1, 0, "
                          "1]>(c, v, db) "
                          "d1 = Clip(d0, low, high) " Q("d", "d1") "a0 = Add(c, d) " Q("a", "a0") "p0 = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(a) " Q("p", "p0") "k0 = Concat<axis = 1>(p, p) " Q(
                              "k",
                              "k0") "t0 = Slice(k, zero, four, one) " Q("t",
                                                                        "t0") "g0 = "
                                                                              "GlobalAveragePool(t)"
                                                                              " " Q(
                                                                                  "g",
                                                                                  "g0") "r0 = "
                                                                                        "Reshape("
                                                                                        "g, "
                                                                                        "flat)"
                                                                                        " " Q(
                                                                                            "r",
                                                                                            "r"
                                                                                            "0") "u"
                                                                                                 " "
                                                                                                 "="
                                                                                                 " "
                                                                                                 "D"
                                                                                                 "e"
                                                                                                 "q"
                                                                                                 "u"
                                                                                                 "a"
                                                                                                 "n"
                                                                                                 "t"
                                                                                                 "i"
                                                                                                 "z"
                                                                                                 "e"
                                                                                                 "L"
                                                                                                 "i"
                                                                                                 "n"
                                                                                                 "e"
                                                                                                 "a"
                                                                                                 "r"
                                                                                                 "("
                                                                                                 "g"
                                                                                                 "q"
                                                                                                 ","
                                                                                                 " "
                                                                                                 "d"
                                                                                                 "s"
                                                                                                 ","
                                                                                                 " "
                                                                                                 "d"
                                                                                                 "z"
                                                                                                 ")"
                                                                                                 " "
                                                                                                 "m"
                                                                                                 "0"
                                                                                                 " "
                                                                                                 "="
                                                                                                 " "
                                                                                                 "G"
                                                                                                 "e"
                                                                                                 "m"
                                                                                                 "m"
                                                                                                 "("
                                                                                                 "r"
                                                                                                 ","
                                                                                                 " "
                                                                                                 "u"
                                                                                                 ","
                                                                                                 " "
                                                                                                 "g"
                                                                                                 "b"
                                                                                                 ")"
                                                                                                 " " Q(
                                                                                                     "m",
                                                                                                     "m0") "Y = Softmax<axis = 1>(m) }";

static void small_network_runs_in_integers(void **state) {
    (void)state;
    sn_model *model;
    sn_error err;
    char *graph;
    if (sn_model_load_text(network, strlen(network), &model, &err) != SN_OK)
        fail_msg("%s", err.message);
    sn_session *plain = make_session(model, 0, NULL), *fast = make_session(model, 3, &graph);
    expect(graph, "QuantizeLinear", 1);
    expect(graph, "DequantizeLinear", 1);
    expect(graph, "QLinearConvNhwc", 2);
    expect(graph, "QLinearAdd", 1);
    expect(graph, "QLinearGlobalAveragePool", 1);
    expect(graph, "QGemm", 1);
    expect(graph, "MaxPoolNhwc", 1);
    expect(graph, "Conv", 0);
    expect(graph, "Relu", 0);
    sn_binding in = {.name = "X"}, a = {.name = "Y"}, b = {.name = "Y"};
    assert_int_equal(sn_tensor_create(SN_FLOAT32, 4, (int64_t[]){3, 2, 8, 8}, &in.value, &err),
                     SN_OK);
    float *x = sn_tensor_data(in.value);
    uint64_t seed = 5;
    for (size_t i = 0; i < sn_tensor_count(in.value); i++)
        x[i] = (float)(unit_random(&seed) % 12000) / 1000.0f - 6.0f;
    assert_int_equal(sn_session_run(plain, NULL, &in, 1, &a, 1, &err), SN_OK);
    assert_int_equal(sn_session_run(fast, NULL, &in, 1, &b, 1, &err), SN_OK);
    const float *u = sn_tensor_const_data(a.value), *v = sn_tensor_const_data(b.value);
    /* The steps of four operators in a row, seen through a Softmax. */
    for (size_t i = 0; i < sn_tensor_count(a.value); i++)
        if (!(u[i] - v[i] < 0.06f && v[i] - u[i] < 0.06f))
            fail_msg("element %zu is %g and in integers %g", i, (double)u[i], (double)v[i]);
    sn_value_destroy(in.value);
    sn_value_destroy(a.value);
    sn_value_destroy(b.value);
    sn_session_destroy(plain);
    sn_session_destroy(fast);
    sn_model_destroy(model);
    free(graph);
}

/* ---- An exported network, if it lies beside the checkout ---- */

static void exported_network_runs_in_integers(void **state) {
    (void)state;
    sn_model *model;
    sn_error err;
    char *graph;
    const char *path = SINTER_SHARED_DIR "/models/mobilenetv2_int8_qdq/model.onnx";
    FILE *f = fopen(path, "rb");
    if (!f) skip();
    fclose(f);
    if (sn_model_load(path, NULL, &model, &err) != SN_OK) fail_msg("%s", err.message);
    sn_session *session = make_session(model, 3, &graph);
    expect(graph, "QuantizeLinear", 1);
    expect(graph, "DequantizeLinear", 1);
    expect(graph, "QLinearConvNhwc", 52);
    expect(graph, "QLinearAdd", 0);
    expect(graph, "QGemm", 1);
    expect(graph, "Conv", 0);
    sn_session_destroy(session);
    sn_model_destroy(model);
    free(graph);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(small_network_runs_in_integers),
                                       cmocka_unit_test(exported_network_runs_in_integers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
