/* Tests of the text reader and printer. */
#include "unit.h"

#include "model/model.h"
#include "model/text.h"

#include <stdio.h>
#include <stdlib.h>

#define HEADER "<ir_version: 8, opset_import: [\"\" : 17]>\n"

typedef struct text {
    char *p;
    size_t n;
} text;

static int append(void *ctx, const void *bytes, size_t size) {
    text *t = ctx;
    t->p = realloc(t->p, t->n + size + 1);
    assert_non_null(t->p);
    memcpy(t->p + t->n, bytes, size);
    t->n += size;
    t->p[t->n] = 0;
    return 0;
}

static sni_model *load(const char *source) {
    sni_model *m = NULL;
    sn_error err;
    if (sni_model_import_text(source, strlen(source), &m, &err) != SN_OK)
        fail_msg("%s\nin\n%s", err.message, source);
    return m;
}

static char *print(const sni_model *m) {
    text t = {0};
    sn_error err;
    if (sni_write_text(m->graph, m, append, &t, &err) != SN_OK) fail_msg("%s", err.message);
    return t.p;
}

/* What is printed reads back to something that is printed the same. */
static void check_round_trip(const char *source) {
    sni_model *first = load(source);
    char *once = print(first);
    sni_model *second = load(once);
    char *twice = print(second);
    assert_string_equal(once, twice);
    assert_int_equal(first->graph->n_inputs, second->graph->n_inputs);
    free(once);
    free(twice);
    sni_model_free(first);
    sni_model_free(second);
}

static void check_error(const char *source, sn_status status, const char *part) {
    sni_text_bytes bytes = {0};
    sn_error err;
    assert_int_equal(sni_text_model(sni_str_of(source), &bytes, &err), status);
    if (!strstr(err.message, part)) fail_msg("'%s' is not in '%s'", part, err.message);
    assert_null(bytes.p);
}

static void round_trips(void **state) {
    (void)state;
    static const char *const sources[] = {
        HEADER "g (float[N,4] X) => (float[N,3] Y) <float[4,3] W = {1,2,3,4,5,6,7,8,9,10,11,12}>"
               "{ T = MatMul(X, W) Y = Softmax <axis = 1> (T) }",
        HEADER "g (bool C, float[2] X) => (float[2] Y) { Y = If (C) <"
               "then_branch = t () => (float[2] a) { a = Add(X, X) },"
               "else_branch = e () => (float[2] b) <float[2] k = {1, 2.5}> { b = Mul(X, k) }> }",
        HEADER "g (float[?,3] X) => (float[] Y, float[] Z) { Y = Relu(X) Z = Relu(Y) }",
        HEADER "g (float[2] X, float[2] W = {1, 2}) => (float[2] Y) { Y = Add(X, W) }",
        HEADER "\"a graph\" (float[\"batch size\"] \"x y\") => (float[\"batch size\"] \"out\\n\")"
               "{ [\"the node\"] \"out\\n\" = Neg(\"x y\") }",
        HEADER "g (seq(float[N]) S, optional(int64) O) => (seq(float[N]) T, bool B)"
               "{ T = Identity(S) B = OptionalHasElement(O) }",
        HEADER
        "g (string[2] X) => (string[3] Y) <string[1] S = {\"q\\\"\\\\\\x00\\xff\\xc3\\xa9\"}>"
        "{ Y = Concat <axis = 0> (X, S) }",
        HEADER
        "g (float[1] X) => (double[1] A, float16[5] H, float8e4m3fn[2] F, int4[3] I, bool[2] B,"
        " uint64[1] U, complex64[1] Z) <double[1] D = {0.1}, float16[5] H0 = {1.5, nan, -inf,"
        " 0.1, 15360}, float8e4m3fn[2] F0 = {1.75, 200.0}, int4[3] I0 = {-8, 7, 0},"
        " bool[2] B0 = {true, 0}, uint64[1] U0 = {18446744073709551615},"
        " complex64[1] Z0 = {1, -2.5}> { A = Identity(D) H = Identity(H0) F = Identity(F0)"
        " I = Identity(I0) B = Identity(B0) U = Identity(U0) Z = Identity(Z0) }",
    };
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) check_round_trip(sources[i]);
}

static void prints_readably(void **state) {
    (void)state;
    sni_model *m = load(HEADER "g (float[N,2] X) => (float[N,2] Y) <float[2] B = {1, 0.1}>"
                               "{ [n] T = Add(X, B) Y = LeakyRelu <alpha = 0.5> (T) }");
    char *printed = print(m);
    assert_string_equal(printed, "<\n"
                                 "  ir_version: 8,\n"
                                 "  opset_import: [\"\" : 17]\n"
                                 ">\n"
                                 "g (float[N,2] X) => (float[N,2] Y) <\n"
                                 "  float[2] B = {1, 0.1}\n"
                                 "> {\n"
                                 "  [n] T = Add (X, B)  # float[N,2]\n"
                                 "  Y = LeakyRelu <alpha = 0.5> (T)  # float[N,2]\n"
                                 "}\n");
    free(printed);
    sni_model_free(m);
}

static void elides_large_tensors(void **state) {
    (void)state;
    sni_model *m = load(
        HEADER "g (int64[1] S) => (float[] Y) <float[200] W = {"
               "0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,"
               "0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,"
               "0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,"
               "0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,"
               "0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9"
               "}> { Y = Expand(W, S) }");
    char *printed = print(m);
    assert_non_null(strstr(printed, "float[200] W = {...}  # 800 bytes\n"));
    check_error(printed, SN_MALFORMED, "without the contents");
    free(printed);
    sni_model_free(m);
}

static void errors_have_a_place(void **state) {
    (void)state;
    check_error("", SN_MALFORMED, "line 1, column 1: expected a name, found the end of the text");
    check_error("g (float X) => (float Y) {\n  Y = Neg(X]\n}", SN_MALFORMED,
                "line 2, column 12: expected ')', found ']'");
    check_error("g (float X", SN_MALFORMED, "expected ')'");
    check_error("g () => () { \"a\nb\" = }", SN_MALFORMED, "line 2");
    check_error("g () => () { $ }", SN_MALFORMED, "unexpected '$'");
    check_error("g () => () { \x01 }", SN_MALFORMED, "unexpected byte 1");
    check_error("g () => () { \"abc", SN_MALFORMED, "closing quote");
    check_error("g () => () { \"\\x1g\" = F() }", SN_MALFORMED, "two hex digits");
    check_error("g () => () { y = F<a = -> () }", SN_MALFORMED, "'-' without a number");
    check_error("g () => () { y = F<a = 1e> () }", SN_MALFORMED, "exponent");
    check_error("g () => () { y = F<a = 9223372036854775808> () }", SN_MALFORMED, "out of range");
    check_error("g () => () { y = F<a = 1e999> () }", SN_MALFORMED, "out of range");
    check_error("g () => () { y = F<a = []> () }", SN_MALFORMED, "needs its kind");
    check_error("g () => () { y = F<a : int = 1.5> () }", SN_MALFORMED, "kind int, found float");
    check_error("g () => () { y = F<a : banana = 1> () }", SN_MALFORMED, "kind of an attribute");
    check_error("g () => () { y = F<a = [1, \"x\"]> () }", SN_MALFORMED, "found string");
    check_error("g (int8 x = {200}) => () {}", SN_MALFORMED, "200 is out of range");
    check_error("g (uint4 x = {-1}) => () {}", SN_MALFORMED, "out of range");
    check_error("g (bool x = {2}) => () {}", SN_MALFORMED, "out of range");
    check_error("g (float[2] x = {1}) => () {}", SN_MALFORMED, "2 elements but its contents are 1");
    check_error("g (float[N] x = {1}) => () {}", SN_MALFORMED, "a size");
    check_error("g (float[4611686018427387904,4] x = {}) => () {}", SN_LIMIT, "64 bits");
    check_error("<banana: 3> g () => () {}", SN_MALFORMED, "keyword");
    check_error("g () => () {} }", SN_MALFORMED, "expected a name");
}

static void nesting_is_limited(void **state) {
    (void)state;
    text t = {0};
    append(&t, "g (", 3);
    for (int i = 0; i < 100000; i++) append(&t, "seq(", 4);
    check_error(t.p, SN_LIMIT, "nested deeper");
    t.n = 0;
    for (int i = 0; i < 1000; i++) append(&t, "g () => () { y = F<a = ", 23);
    check_error(t.p, SN_LIMIT, "nested deeper");
    free(t.p);
}

static void attributes_of_every_kind(void **state) {
    (void)state;
    sni_model *m = load(HEADER "g (float X) => (float Y) { Y = Unknown <f = 1.5, f2 : float = 2,"
                               " i = -7, s = \"a\\\"b\", t = float[2] {1, 2}, ty = seq(float[N]),"
                               " fs = [1, 2.5], is = [1, -2], ss = [\"a\", \"\"], e : strings = [],"
                               " ts = [int64 {3}, float {4}], n = nan, g = q () => (float z) { z ="
                               " Neg(X) }> (X) }");
    const sni_node *n = sni_graph_first(m->graph);
    assert_int_equal(n->n_attrs, 13);
    assert_int_equal(sni_node_attr(n, "f")->kind, SNI_ATTR_FLOAT);
    assert_int_equal(sni_node_attr(n, "f2")->kind, SNI_ATTR_FLOAT);
    assert_int_equal(sni_node_attr(n, "i")->u.i, -7);
    assert_true(sni_str_is(sni_node_attr(n, "s")->u.s, "a\"b"));
    assert_int_equal(sni_node_attr(n, "t")->u.tensor->tensor.count, 2);
    assert_int_equal(sni_node_attr(n, "ty")->u.type->kind, SN_KIND_SEQUENCE);
    assert_int_equal(sni_node_attr(n, "fs")->kind, SNI_ATTR_FLOATS);
    assert_true(sni_node_attr(n, "fs")->u.floats[1] == 2.5f);
    assert_int_equal(sni_node_attr(n, "is")->u.ints[1], -2);
    assert_int_equal(sni_node_attr(n, "ss")->count, 2);
    assert_int_equal(sni_node_attr(n, "e")->kind, SNI_ATTR_STRINGS);
    assert_int_equal(sni_node_attr(n, "ts")->count, 2);
    assert_int_equal(n->n_subgraphs, 1);
    assert_int_equal(n->n_captures, 1);
    sni_model_free(m);
}

static void reads_values(void **state) {
    (void)state;
    sni_text_bytes bytes;
    sn_kind kind;
    assert_int_equal(sni_text_value(SNI_STR("float[2] {1, 2}"), &kind, &bytes, NULL), SN_OK);
    assert_int_equal(kind, SN_KIND_TENSOR);
    free(bytes.p);
    assert_int_equal(sni_text_value(SNI_STR("[float {1}, float {2}]"), &kind, &bytes, NULL), SN_OK);
    assert_int_equal(kind, SN_KIND_SEQUENCE);
    free(bytes.p);
    assert_int_equal(sni_text_value(SNI_STR("none"), &kind, &bytes, NULL), SN_OK);
    assert_int_equal(kind, SN_KIND_OPTIONAL);
    free(bytes.p);
    assert_int_equal(sni_text_value(SNI_STR("float {1} 2"), &kind, &bytes, NULL), SN_MALFORMED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),          cmocka_unit_test(prints_readably),
        cmocka_unit_test(elides_large_tensors), cmocka_unit_test(errors_have_a_place),
        cmocka_unit_test(nesting_is_limited),   cmocka_unit_test(attributes_of_every_kind),
        cmocka_unit_test(reads_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
