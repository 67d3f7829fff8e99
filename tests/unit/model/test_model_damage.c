/* test_model_damage.c - files with much of something, cut off, or changed: importing ends in
 * bounded time and memory, inside the file's bytes. */
#include "model_build.h"

#include <stdio.h>
#include <time.h>

/* ---- Much of something ---- */

/* Of work, so that a busy machine does not count. */
static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_long_chain(void **state) {
    (void)state;
    enum { N = 100000 };
    message *g = b_graph("", "");
    b_infos(g, ONNX_GRAPH_INPUT, "v0");
    for (int i = N; i > 0; i--) { /* backwards, so that sorting has all to do */
        char in[16], out[16];
        snprintf(in, sizeof in, "v%d", i - 1);
        snprintf(out, sizeof out, "v%d", i);
        b_message(g, ONNX_GRAPH_NODE, b_node("Relu", in, out));
    }
    sni_model *model = import_good(b_model(g));
    assert_int_equal(count_nodes(model->graph), N);
    assert_true(
        sni_str_is(model->graph->values[sni_graph_first(model->graph)->out[0]]->name, "v1"));
    sni_model_free(model);
}

/* Files of many tiny messages: refused, or imported within the heap that their size allows. */
static void test_tiny_messages(void **state) {
    (void)state;
    static const struct {
        uint32_t field;
        const char *inner;
        size_t size;
        size_t count;
        bool in_graph;
    } many[] = {
        {ONNX_GRAPH_NODE, "", 0, 1000000, true},
        {ONNX_GRAPH_NODE, "\x22\x01x", 3, 1100000, true},
        {ONNX_GRAPH_NODE, "\x22\x01x\x0a\x00\x0a\x00\x0a\x00\x12\x00", 11, 500000, true},
        {ONNX_GRAPH_INITIALIZER, "", 0, 1000000, true},
        {ONNX_GRAPH_VALUE_INFO, "", 0, 1000000, true},
        {ONNX_GRAPH_QUANTIZATION, "", 0, 1000000, true},
        {ONNX_GRAPH_INPUT, "\x0a\x01x", 3, 1000000, true},
        {ONNX_MODEL_METADATA, "", 0, 1000000, false},
        {ONNX_MODEL_OPSET, "\x10\x01", 2, 1000000, false},
        {ONNX_MODEL_FUNCTION, "", 0, 1000000, false},
    };
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        message *g = b_graph("x", "x"), *m = b_head(), *to = many[i].in_graph ? g : m;
        for (size_t k = 0; k < many[i].count; k++)
            b_bytes(to, many[i].field, many[i].inner, many[i].size);
        b_done(b_message(m, ONNX_MODEL_GRAPH, g));
        sni_model *model = NULL;
        sn_error err = {0};
        double start = seconds();
        if (import_bytes(m->bytes, m->size, NULL, &model, &err) == SN_OK)
            assert_true(model->store->arena.used <= 64 * m->size + (16 << 20));
        if (seconds() - start > 20) fail_msg("case %zu takes %f s", i, seconds() - start);
        sni_model_free(model);
        b_free(m);
    }
}

static void test_memory_limit(void **state) {
    (void)state;
    sni_import_options options = {.memory_limit = 20000};
    message *g = b_graph("x", "");
    for (int i = 0; i < 200; i++) {
        char out[16];
        snprintf(out, sizeof out, "v%d", i);
        b_message(g, ONNX_GRAPH_NODE, b_node("Relu", "x", out));
    }
    sni_model *model = NULL;
    sn_error err = {0};
    assert_int_equal(import_message(b_model(g), &options, &model, &err), SN_LIMIT);
    assert_non_null(strstr(err.message, "20000 bytes"));
}

/* ---- Damage ---- */

/* A model with a bit of everything. */
static message *rich_model(void) {
    float v[2] = {1, 2};
    int64_t two = 2, indices[2] = {1, 3}, dims[2] = {2, 2}, ints[2] = {1, 300};
    message *sub = graph_of("i", "p", custom("x,w,i", "p"));
    message *f = b_function("f", "a,b", "r");
    b_message(f, ONNX_FUNCTION_ATTRIBUTE_PROTO, b_attr_int("k", 7));
    b_message(f, ONNX_FUNCTION_NODE,
              b_message(custom("a,b", "t"), ONNX_NODE_ATTRIBUTE,
                        b_attr_ref("v", ONNX_ATTR_TYPE_INT, "k")));
    b_message(f, ONNX_FUNCTION_NODE, b_node("Relu", "t", "r"));
    message *s = b_message(b_new(), ONNX_SPARSE_VALUES, b_floats("s", v, 2));
    b_message(s, ONNX_SPARSE_INDICES,
              b_ints(b_tensor("", SN_INT64, &two, 1), ONNX_TENSOR_INT64_DATA, indices, 2));
    b_ints(s, ONNX_SPARSE_DIMS, dims, 2);
    message *g = b_graph("x", "y,z");
    b_message(g, ONNX_GRAPH_INITIALIZER, b_floats("w", v, 2));
    b_message(g, ONNX_GRAPH_INITIALIZER,
              b_ints(b_tensor("q", SN_INT16, &two, 1), ONNX_TENSOR_INT32_DATA, ints, 2));
    message *strings = b_tensor("text", SN_STRING, &two, 1);
    b_names(strings, ONNX_TENSOR_STRING_DATA, "ab,c");
    b_message(b_message(g, ONNX_GRAPH_INITIALIZER, strings), ONNX_GRAPH_SPARSE_INITIALIZER, s);
    b_message(g, ONNX_GRAPH_NODE,
              b_message(b_message(custom("x,s,q,text", "y"), ONNX_NODE_ATTRIBUTE,
                                  b_attr_graph("body", sub)),
                        ONNX_NODE_ATTRIBUTE,
                        b_ints(b_attr("is", ONNX_ATTR_TYPE_INTS), ONNX_ATTR_INTS, ints, 2)));
    b_message(g, ONNX_GRAPH_NODE, b_call("f", "y", "z"));
    b_infos(g, ONNX_GRAPH_VALUE_INFO, "y");
    message *m = b_message(b_model(g), ONNX_MODEL_FUNCTION, f);
    return b_done(b_message(m, ONNX_MODEL_METADATA, b_entry("k", "v")));
}

/* Whatever happens, it happens inside the file's memory and leaks nothing (for sanitizers). */
static void try_bytes(const unsigned char *bytes, size_t size) {
    sn_error err = {0};
    import_and_load(b_raw(b_new(), bytes, size), &err);
}

static void test_truncation(void **state) {
    (void)state;
    message *m = rich_model();
    sni_model *model = NULL;
    sn_error err = {0};
    if (import_bytes(m->bytes, m->size, NULL, &model, &err) != SN_OK) fail_msg("%s", err.message);
    sni_model_free(model);
    for (size_t size = 0; size < m->size; size++) try_bytes(m->bytes, size);
    b_free(m);
}

static void test_changed_bytes(void **state) {
    (void)state;
    static const unsigned char values[] = {0, 1, 2, 0x0a, 0x12, 0x7f, 0x80, 0xff};
    message *m = rich_model();
    for (size_t i = 0; i < m->size; i++) {
        unsigned char saved = m->bytes[i];
        for (size_t k = 0; k < sizeof values; k++) {
            m->bytes[i] = values[k];
            try_bytes(m->bytes, m->size);
        }
        m->bytes[i] = saved ^ 1;
        try_bytes(m->bytes, m->size);
        m->bytes[i] = saved;
    }
    b_free(m);
}

static void test_random_damage(void **state) {
    (void)state;
    message *m = rich_model();
    unsigned char *copy = malloc(m->size);
    assert_non_null(copy);
    uint64_t seed = 7;
    for (int round = 0; round < 3000; round++) {
        memcpy(copy, m->bytes, m->size);
        unsigned changes = 1 + unit_random(&seed) % 6;
        for (unsigned c = 0; c < changes; c++)
            copy[unit_random(&seed) % m->size] = (unsigned char)unit_random(&seed);
        try_bytes(copy, m->size);
    }
    free(copy);
    b_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_long_chain),    cmocka_unit_test(test_tiny_messages),
        cmocka_unit_test(test_memory_limit),  cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_changed_bytes), cmocka_unit_test(test_random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
