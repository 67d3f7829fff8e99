/* Tests of the ONNX writer: what it writes reads back to the same graph. */
#include "unit.h"

#include "model/model.h"

#include <stdlib.h>

#define HEADER                                                                               \
    "<ir_version: 8, opset_import: [\"\" : 17], producer_name: \"tests\", model_version: 3," \
    " metadata_props: [\"key\" : \"value\"]>\n"

typedef struct bytes {
    unsigned char *p;
    size_t n;
} bytes;

static int append(void *ctx, const void *data, size_t size) {
    bytes *b = ctx;
    b->p = realloc(b->p, b->n + size + 1);
    assert_non_null(b->p);
    memcpy(b->p + b->n, data, size);
    b->n += size;
    b->p[b->n] = 0;
    return 0;
}

static int refuse(void *ctx, const void *data, size_t size) {
    (void)data;
    (void)size;
    return --*(int *)ctx < 0;
}

static sni_model *load_text(const char *source) {
    sni_model *m = NULL;
    sn_error err;
    if (sni_model_import_text(source, strlen(source), &m, &err) != SN_OK)
        fail_msg("%s\nin\n%s", err.message, source);
    return m;
}

/* The bytes go to the model's store. */
static sni_model *load_bytes(bytes b) {
    sni_store *store;
    sni_model *m = NULL;
    sn_error err;
    assert_int_equal(sni_store_new(NULL, 0, &store, NULL), SN_OK);
    assert_int_equal(sni_store_own(store, b.p, free, NULL), SN_OK);
    if (sni_model_import(b.p, b.n, store, &(sni_import_options){0}, &m, &err) != SN_OK)
        fail_msg("%s", err.message);
    return m;
}

static bytes write_with(const sni_model *m, sn_status (*write)(const sni_graph *, const sni_model *,
                                                               sn_write_fn, void *, sn_error *)) {
    bytes b = {0};
    sn_error err;
    if (write(m->graph, m, append, &b, &err) != SN_OK) fail_msg("%s", err.message);
    return b;
}

static void check(const char *source) {
    sni_model *first = load_text(source);
    bytes before = write_with(first, sni_write_text);
    sni_model *second = load_bytes(write_with(first, sni_write_onnx));
    bytes after = write_with(second, sni_write_text);
    assert_string_equal((char *)before.p, (char *)after.p);
    free(before.p);
    free(after.p);
    sni_model_free(first);
    sni_model_free(second);
}

static void files_read_back(void **state) {
    (void)state;
    check(HEADER "g (float[N,4] X) => (float[N,3] Y) <float[4,3] W = {1,2,3,4,5,6,7,8,9,10,11,12}>"
                 "{ T = MatMul(X, W) Y = Softmax <axis = 1> (T) }");
    check(HEADER "g (bool C, float[2] X) => (float[2] Y) { Y = If (C) <"
                 "then_branch = t () => (float[2] a) { a = Add(X, X) },"
                 "else_branch = e () => (float[2] b) <float[2] k = {1, 2}> { b = Mul(X, k) }> }");
    check(HEADER "g (seq(float[N]) S, optional(int64) O, float[] R, string[2] T)"
                 " => (seq(float[N]) Q, bool B, float[] P, string[2] U)"
                 "{ Q = Identity(S) B = OptionalHasElement(O) P = Neg(R) U = Identity(T) }");
    check(HEADER "g (float[2] X, float[2] W = {1, 2}) => (float[2] Y) { Y = Add(X, W) }");
    check(HEADER
          "g (float[1] X) => (int4[3] I, string[2] S, float16[2] H)"
          " <int4[3] I0 = {-8, 7, 0}, string[2] S0 = {\"\", \"a\\x00b\"},"
          " float16[2] H0 = {1.5, inf}> { I = Identity(I0) S = Identity(S0) H = Identity(H0) }");
    check(HEADER "g (float X) => (float Y) { Y = my.domain.Thing <f = 1.5, i = -7, s = \"x\","
                 " t = float[2] {1, 2}, ty = seq(float[N]), fs = [1.0, 2.5], is = [1, -2],"
                 " ss = [\"a\", \"\"], e : strings = [], ts = [int64 {3}, float {4}],"
                 " tys = [float[2], int64], gs = [a () => (float z) { z = Neg(X) },"
                 " b () => (float z) { z = Abs(X) }]> (X) }");
}

/* An output that is an input, an output that stands twice, and names that clash across scopes. */
static void outputs_are_named(void **state) {
    (void)state;
    sni_model *m = load_text(HEADER "g (float[2] X, bool C) => (float[2] Y) {"
                                    " T = Neg(X) Y = If (C) <"
                                    "then_branch = t () => (float[2] a) { a = Identity(T) },"
                                    "else_branch = e () => (float[2] b) { b = Abs(T) }> }");
    sni_graph *g = m->graph;
    sn_error err;
    int32_t x = g->inputs[0];
    assert_int_equal(sni_graph_add_output(g, x, SNI_STR("X_again"), &err), SN_OK);
    assert_int_equal(sni_graph_add_output(g, g->outputs[0], SNI_STR("Y_again"), &err), SN_OK);
    bytes b = {0};
    if (sni_write_onnx(g, NULL, append, &b, &err) != SN_OK) fail_msg("%s", err.message);
    sni_model *again = load_bytes(b);
    assert_int_equal(again->graph->n_outputs, 3);
    assert_true(sni_str_is(again->graph->output_names[0], "Y"));
    assert_true(sni_str_is(again->graph->output_names[1], "X_again"));
    assert_true(sni_str_is(again->graph->output_names[2], "Y_again"));
    sni_model_free(m);
    sni_model_free(again);
}

/* A model of an old operator set is not declared to be of a new one. */
static void operator_sets_stay_low(void **state) {
    (void)state;
    sni_model *m =
        load_text("<ir_version: 7, opset_import: [\"\" : 13]> g (float[2,3] X) => (float[3,2] Y)"
                  " <int64[2] S = {3, 2}> { T = Transpose(X) U = Identity(T) Y = Reshape(U, S) }");
    sni_model *again = load_bytes(write_with(m, sni_write_onnx));
    assert_int_equal(again->n_opsets, 1);
    assert_int_equal(again->opsets[0].version, 14); /* Reshape as it is now came with 14 */
    assert_int_equal(again->ir_version, 7);
    sni_model_free(m);
    sni_model_free(again);
}

/* Element types that came later bring their operator set with them. */
static void operator_sets_have_the_types(void **state) {
    (void)state;
    sni_model *m = load_text("<ir_version: 8, opset_import: [\"\" : 13, \"com.microsoft\" : 1]>"
                             "g (uint16[2] X, float S, uint16 Z) => (float[2] Y)"
                             " { Y = com.microsoft.DequantizeLinear(X, S, Z) }");
    sni_model *again = load_bytes(write_with(m, sni_write_onnx));
    assert_int_equal(again->opsets[0].version, 21);
    sni_model_free(m);
    sni_model_free(again);
    m = load_text("<ir_version: 8, opset_import: [\"\" : 13]> g (uint8[2] X, float S, uint8 Z)"
                  " => (float[2] Y) { Y = DequantizeLinear(X, S, Z) }");
    again = load_bytes(write_with(m, sni_write_onnx));
    assert_int_equal(again->opsets[0].version, 13);
    sni_model_free(m);
    sni_model_free(again);
}

static void failures_are_reported(void **state) {
    (void)state;
    sni_model *m = load_text(HEADER "g (float[2] X) => (float[2] Y) { Y = Neg(X) }");
    int pieces = 0;
    sn_error err;
    assert_int_equal(sni_write_onnx(m->graph, m, refuse, &pieces, &err), SN_IO);
    pieces = 0;
    assert_int_equal(sni_write_text(m->graph, m, refuse, &pieces, &err), SN_IO);
    sni_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_read_back),        cmocka_unit_test(outputs_are_named),
        cmocka_unit_test(operator_sets_stay_low), cmocka_unit_test(operator_sets_have_the_types),
        cmocka_unit_test(failures_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
