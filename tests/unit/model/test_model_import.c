/* test_model_import.c - what the importer makes of well-formed models. */
#include "model_build.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Graphs ---- */

static void test_order_and_facts(void **state) {
    (void)state;
    message *g = b_graph("x", "z");
    b_message(g, ONNX_GRAPH_NODE, b_node("Relu", "y", "z"));
    b_message(g, ONNX_GRAPH_NODE, b_node("Relu", "x", "y"));
    message *m = b_model(g);
    b_text(m, ONNX_MODEL_PRODUCER_NAME, "test");
    b_text(m, ONNX_MODEL_DOC, "doc");
    b_int(m, ONNX_MODEL_VERSION, 7);
    b_message(m, ONNX_MODEL_METADATA, b_entry("k", "v"));
    b_message(m, ONNX_MODEL_OPSET, b_opset("ai.onnx", 17)); /* the same domain; 18 is higher */
    b_message(m, ONNX_MODEL_OPSET, b_opset("other", 3));
    sni_model *model = import_good(m);
    assert_true(sni_str_is(model->producer_name, "test") && sni_str_is(model->doc, "doc"));
    assert_true(sni_str_is(model->domain, ""));
    assert_true(model->ir_version == 8 && model->model_version == 7);
    assert_int_equal(model->n_metadata, 1);
    assert_true(sni_str_is(model->metadata[0].value, "v"));
    assert_int_equal(model->n_opsets, 2);
    assert_true(model->opsets[0].version == 18 && model->opsets[0].domain.n == 0);
    assert_true(model->opsets[1].version == 3);
    const sni_node *first = sni_graph_first(model->graph);
    assert_true(sni_str_is(model->graph->values[first->out[0]]->name, "y"));
    assert_true(model->output_types[0].has_shape && model->output_types[0].dims[0] == 2);
    sni_model_free(model);
}

static void test_no_nodes(void **state) {
    (void)state;
    sni_model *model = import_good(b_model(b_graph("x", "x")));
    assert_int_equal(count_nodes(model->graph), 0);
    assert_int_equal(model->graph->outputs[0], model->graph->inputs[0]);
    sni_model_free(model);
}

static void test_names_with_any_byte(void **state) {
    (void)state;
    message *n = b_bytes(b_names(b_new(), ONNX_NODE_INPUT, "x"), ONNX_NODE_OUTPUT, "a\0b", 3);
    b_text(n, ONNX_NODE_OP_TYPE, "Relu");
    message *n2 = b_bytes(b_new(), ONNX_NODE_INPUT, "a\0b", 3);
    b_text(b_names(n2, ONNX_NODE_OUTPUT, "\xff\xfe"), ONNX_NODE_OP_TYPE, "Relu");
    message *g = b_graph("x", "\xff\xfe");
    b_message(b_message(g, ONNX_GRAPH_NODE, n), ONNX_GRAPH_NODE, n2);
    sni_model *model = import_good(b_model(g));
    const sni_node *first = sni_graph_first(model->graph);
    assert_true(sni_str_eq(model->graph->values[first->out[0]]->name, (sni_str){"a\0b", 3}));
    sni_model_free(model);
}

static void test_defaults_come_last(void **state) {
    (void)state;
    float v[2] = {1, 2};
    message *g = b_graph("w,x", "y");
    b_message(g, ONNX_GRAPH_INITIALIZER, b_floats("w", v, 2));
    b_message(g, ONNX_GRAPH_NODE, b_node("Add", "x,w", "y"));
    sni_model *model = import_good(b_model(g));
    const sni_graph *gr = model->graph;
    assert_int_equal(gr->n_inputs, 2);
    assert_true(sni_str_is(gr->values[gr->inputs[0]]->name, "x"));
    const sni_value *w = gr->values[gr->inputs[1]];
    assert_true(sni_str_is(w->name, "w") && w->is_input && w->constant);
    sni_model_free(model);
}

static void test_left_out(void **state) {
    (void)state;
    message *g = b_graph("x", "y");
    b_message(g, ONNX_GRAPH_NODE,
              b_text(b_node("Custom", "x,,x,,", ",y,"), ONNX_NODE_DOMAIN, "some.where"));
    sni_model *model = import_good(b_model(g));
    const sni_node *n = sni_graph_first(model->graph);
    assert_true(n->n_in == 3 && n->in[1] == SNI_NO_ID && n->in[2] == n->in[0]);
    assert_true(n->n_out == 2 && n->out[0] == SNI_NO_ID);
    assert_null(n->op);
    sni_model_free(model);
}

/* ---- Attributes ---- */

static void test_attributes(void **state) {
    (void)state;
    float floats[2] = {1.5f, -2};
    int64_t ints[3] = {1, -1, 300};
    message *n = b_text(b_node("Custom", "x", "y"), ONNX_NODE_DOMAIN, "d");
    b_message(n, ONNX_NODE_ATTRIBUTE, b_attr_int("i", -3));
    b_message(n, ONNX_NODE_ATTRIBUTE, b_attr_float("f", 0.5f));
    b_message(n, ONNX_NODE_ATTRIBUTE,
              b_text(b_attr("s", ONNX_ATTR_TYPE_STRING), ONNX_ATTR_S, "text"));
    message *fl = b_attr("fl", ONNX_ATTR_TYPE_FLOATS);
    sni_put_packed_floats(&fl->out, ONNX_ATTR_FLOATS, floats, 2);
    b_message(n, ONNX_NODE_ATTRIBUTE, fl);
    b_message(n, ONNX_NODE_ATTRIBUTE,
              b_int(b_ints(b_attr("is", ONNX_ATTR_TYPE_INTS), ONNX_ATTR_INTS, ints, 3),
                    ONNX_ATTR_INTS, 9)); /* packed, and one unpacked */
    b_message(n, ONNX_NODE_ATTRIBUTE,
              b_names(b_attr("ss", ONNX_ATTR_TYPE_STRINGS), ONNX_ATTR_STRINGS, "a,,c"));
    b_message(n, ONNX_NODE_ATTRIBUTE,
              b_attr_message("t", ONNX_ATTR_TYPE_TENSOR, ONNX_ATTR_T, b_floats("", floats, 2)));
    message *tensor =
        b_message(b_new(), ONNX_TYPE_PROTO_TENSOR, b_int(b_new(), ONNX_TENSOR_TYPE_ELEM, SN_INT8));
    message *seq = b_message(b_new(), ONNX_TYPE_PROTO_SEQUENCE,
                             b_message(b_new(), ONNX_SEQUENCE_TYPE_ELEM, tensor));
    b_message(n, ONNX_NODE_ATTRIBUTE,
              b_attr_message("tp", ONNX_ATTR_TYPE_TYPE_PROTO, ONNX_ATTR_TP, seq));
    b_message(n, ONNX_NODE_ATTRIBUTE, b_attr("zero", ONNX_ATTR_TYPE_INT));
    b_message(n, ONNX_NODE_ATTRIBUTE,
              b_int(b_text(b_new(), ONNX_ATTR_NAME, "old"), ONNX_ATTR_I, 4));
    sni_model *model = import_good(b_model(b_message(b_graph("x", "y"), ONNX_GRAPH_NODE, n)));
    const sni_node *got = sni_graph_first(model->graph);
    assert_int_equal(got->n_attrs, 10);
    assert_true(sni_node_attr(got, "i")->u.i == -3);
    assert_true(sni_node_attr(got, "f")->u.f == 0.5f);
    assert_true(sni_str_is(sni_node_attr(got, "s")->u.s, "text"));
    const sni_attr *a = sni_node_attr(got, "fl");
    assert_true(a->count == 2 && a->u.floats[1] == -2);
    a = sni_node_attr(got, "is");
    assert_true(a->count == 4 && a->u.ints[1] == -1 && a->u.ints[3] == 9);
    a = sni_node_attr(got, "ss");
    assert_true(a->count == 3 && a->u.strings[1].n == 0 && sni_str_is(a->u.strings[2], "c"));
    assert_true(sni_node_attr(got, "t")->u.tensor->tensor.count == 2);
    assert_int_equal(sni_node_attr(got, "tp")->u.type->kind, SN_KIND_SEQUENCE);
    assert_int_equal(sni_node_attr(got, "tp")->u.type->inner->dtype, SN_INT8);
    assert_true(sni_node_attr(got, "zero")->u.i == 0);
    assert_true(sni_node_attr(got, "old")->u.i == 4); /* IR 1 has no types */
    sni_model_free(model);
}

/* ---- Tensors ---- */

/* Imports a graph whose only initialiser is `t`, and loads it. */
static sni_model *import_tensor(message *t, const sni_tensor **out) {
    message *g = b_message(b_graph("", "w"), ONNX_GRAPH_INITIALIZER, t);
    sni_model *model = import_good(b_model(g));
    sn_error err = {0};
    const sni_value *v = value_named(model->graph, "w");
    assert_non_null(v);
    if (sni_const_load(v->constant, out, &err) != SN_OK) fail_msg("%s", err.message);
    return model;
}

static void test_typed_data(void **state) {
    (void)state;
    static const struct {
        sn_dtype dtype;
        uint32_t field;
        int64_t count; /* elements */
        size_t n;      /* numbers */
        int64_t v[4];
        unsigned char expected[16];
    } cases[] = {
        {SN_INT32, ONNX_TENSOR_INT32_DATA, 2, 2, {-1, 258}, {255, 255, 255, 255, 2, 1, 0, 0}},
        {SN_INT16, ONNX_TENSOR_INT32_DATA, 2, 2, {-2, 258}, {254, 255, 2, 1}},
        {SN_UINT16, ONNX_TENSOR_INT32_DATA, 1, 1, {65535}, {255, 255}},
        {SN_INT8, ONNX_TENSOR_INT32_DATA, 2, 2, {-128, 5}, {128, 5}},
        {SN_UINT8, ONNX_TENSOR_INT32_DATA, 1, 1, {200}, {200}},
        {SN_BOOL, ONNX_TENSOR_INT32_DATA, 2, 2, {1, 0}, {1, 0}},
        {SN_FLOAT16, ONNX_TENSOR_INT32_DATA, 1, 1, {0x3c00}, {0, 0x3c}},
        {SN_BFLOAT16, ONNX_TENSOR_INT32_DATA, 1, 1, {0x3f80}, {0x80, 0x3f}},
        {SN_FLOAT8E4M3FN, ONNX_TENSOR_INT32_DATA, 2, 2, {0x38, 0xb8}, {0x38, 0xb8}},
        {SN_FLOAT8E8M0, ONNX_TENSOR_INT32_DATA, 1, 1, {127}, {127}},
        {SN_INT4, ONNX_TENSOR_INT32_DATA, 3, 2, {0xf1, 0x08}, {1, 255, 0xf8}},
        {SN_UINT4, ONNX_TENSOR_INT32_DATA, 3, 2, {0xf1, 0x08}, {1, 15, 8}},
        {SN_FLOAT4E2M1, ONNX_TENSOR_INT32_DATA, 2, 1, {0x32}, {2, 3}},
        {SN_UINT2, ONNX_TENSOR_INT32_DATA, 4, 1, {0xe4}, {0, 1, 2, 3}},
        {SN_INT2, ONNX_TENSOR_INT32_DATA, 4, 1, {0xe4}, {0, 1, 254, 255}},
        {SN_INT64, ONNX_TENSOR_INT64_DATA, 1, 1, {-2}, {254, 255, 255, 255, 255, 255, 255, 255}},
        {SN_UINT64, ONNX_TENSOR_UINT64_DATA, 1, 1, {-1}, {255, 255, 255, 255, 255, 255, 255, 255}},
        {SN_UINT32, ONNX_TENSOR_UINT64_DATA, 1, 1, {0xffffffff}, {255, 255, 255, 255}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int packed = 0; packed < 2; packed++) {
            message *t = b_tensor("w", cases[i].dtype, &cases[i].count, 1);
            if (packed) b_ints(t, cases[i].field, cases[i].v, cases[i].n);
            for (size_t k = 0; !packed && k < cases[i].n; k++)
                b_int(t, cases[i].field, cases[i].v[k]);
            const sni_tensor *got;
            sni_model *model = import_tensor(t, &got);
            if (memcmp(got->data, cases[i].expected, sni_tensor_bytes(got)) != 0)
                fail_msg("%s, packed %d", sn_dtype_name(cases[i].dtype), packed);
            sni_model_free(model);
        }
    }
}

static void test_typed_floats(void **state) {
    (void)state;
    float v[4] = {1, -2, 3.5f, 0};
    int64_t four = 4, two = 2;
    const sni_tensor *got;
    message *t = b_tensor("w", SN_FLOAT32, &four, 1);
    sni_put_packed_floats(&t->out, ONNX_TENSOR_FLOAT_DATA, v, 4);
    sni_model *model = import_tensor(t, &got);
    assert_memory_equal(got->data, v, sizeof v);
    sni_model_free(model);
    t = b_tensor("w", SN_COMPLEX64, &two, 1);
    sni_put_packed_floats(&t->out, ONNX_TENSOR_FLOAT_DATA, v, 4);
    model = import_tensor(t, &got);
    assert_memory_equal(got->data, v, sizeof v);
    sni_model_free(model);
    t = b_tensor("w", SN_COMPLEX128, &two, 1);
    for (int i = 0; i < 4; i++) sni_put_double(&t->out, ONNX_TENSOR_DOUBLE_DATA, v[i]);
    model = import_tensor(t, &got);
    for (int i = 0; i < 4; i++) assert_true(((const double *)got->data)[i] == (double)v[i]);
    sni_model_free(model);
}

static void test_strings(void **state) {
    (void)state;
    int64_t three = 3;
    const sni_tensor *got;
    message *t = b_tensor("w", SN_STRING, &three, 1);
    b_text(b_text(t, ONNX_TENSOR_STRING_DATA, "a"), ONNX_TENSOR_STRING_DATA, "");
    b_bytes(t, ONNX_TENSOR_STRING_DATA, "x\0y", 3);
    sni_model *model = import_tensor(t, &got);
    const sni_str *s = got->data;
    assert_true(sni_str_is(s[0], "a") && s[0].p[1] == 0);
    assert_true(s[1].n == 0 && s[2].n == 3 && s[2].p[1] == 0);
    sni_model_free(model);
}

/* The same contents at every alignment; where it fits, they are used in place. */
static void test_raw_alignment(void **state) {
    (void)state;
    double v[2] = {1.25, -3};
    int64_t two = 2;
    int in_place = 0;
    for (int shift = 0; shift < 8; shift++) {
        char pad[9] = "";
        memset(pad, 'p', (size_t)shift);
        message *t = b_tensor("w", SN_FLOAT64, &two, 1);
        b_text(t, ONNX_TENSOR_DOC, pad);
        b_bytes(t, ONNX_TENSOR_RAW_DATA, v, sizeof v);
        const sni_tensor *got;
        sni_model *model = import_tensor(t, &got);
        assert_memory_equal(got->data, v, sizeof v);
        assert_int_equal((uintptr_t)got->data % 8, 0);
        in_place += value_named(model->graph, "w")->constant->decode == NULL;
        sni_model_free(model);
    }
    assert_int_equal(in_place, 1);
}

static void test_raw_subbyte(void **state) {
    (void)state;
    int64_t three = 3;
    static const unsigned char raw[2] = {0x2f, 0x08}, expected[3] = {0xff, 2, 0xf8};
    const sni_tensor *got;
    sni_model *model = import_tensor(
        b_bytes(b_tensor("w", SN_INT4, &three, 1), ONNX_TENSOR_RAW_DATA, raw, 2), &got);
    assert_memory_equal(got->data, expected, 3);
    sni_model_free(model);
}

static message *sparse(const int64_t *indices, const int64_t *index_dims, size_t index_rank,
                       size_t n) {
    float v[2] = {5, 7};
    static const int64_t dims[2] = {2, 3};
    message *i =
        b_ints(b_tensor("", SN_INT64, index_dims, index_rank), ONNX_TENSOR_INT64_DATA, indices, n);
    message *m = b_message(b_new(), ONNX_SPARSE_VALUES, b_floats("w", v, 2));
    return b_ints(b_message(m, ONNX_SPARSE_INDICES, i), ONNX_SPARSE_DIMS, dims, 2);
}

static void test_sparse(void **state) {
    (void)state;
    static const float expected[6] = {0, 5, 0, 0, 0, 7};
    static const int64_t linear[2] = {1, 5}, pairs[4] = {0, 1, 1, 2};
    static const int64_t linear_dims[1] = {2}, pair_dims[2] = {2, 2};
    for (int form = 0; form < 2; form++) {
        message *s = form ? sparse(pairs, pair_dims, 2, 4) : sparse(linear, linear_dims, 1, 2);
        message *g = b_message(b_graph("", "w"), ONNX_GRAPH_SPARSE_INITIALIZER, s);
        sni_model *model = import_good(b_model(g));
        const sni_tensor *got;
        assert_int_equal(sni_const_load(value_named(model->graph, "w")->constant, &got, NULL),
                         SN_OK);
        assert_true(got->rank == 2 && got->dims[1] == 3);
        assert_memory_equal(got->data, expected, sizeof expected);
        sni_model_free(model);
    }
}

static void test_constants(void **state) {
    (void)state;
    float floats[2] = {1, 2};
    int64_t ints[2] = {3, 4};
    static const int64_t linear[2] = {1, 5}, linear_dims[1] = {2};
    message *fl = b_attr("value_floats", ONNX_ATTR_TYPE_FLOATS);
    sni_put_packed_floats(&fl->out, ONNX_ATTR_FLOATS, floats, 2);
    struct {
        message *attr;
        sn_dtype dtype;
        int rank;
        int64_t count;
    } cases[] = {
        {b_attr_message("value", ONNX_ATTR_TYPE_TENSOR, ONNX_ATTR_T, b_floats("", floats, 2)),
         SN_FLOAT32, 1, 2},
        {b_attr_message("sparse_value", ONNX_ATTR_TYPE_SPARSE_TENSOR, ONNX_ATTR_SPARSE,
                        sparse(linear, linear_dims, 1, 2)),
         SN_FLOAT32, 2, 6},
        {b_attr_float("value_float", 3), SN_FLOAT32, 0, 1},
        {fl, SN_FLOAT32, 1, 2},
        {b_attr_int("value_int", 3), SN_INT64, 0, 1},
        {b_ints(b_attr("value_ints", ONNX_ATTR_TYPE_INTS), ONNX_ATTR_INTS, ints, 2), SN_INT64, 1,
         2},
        {b_text(b_attr("value_string", ONNX_ATTR_TYPE_STRING), ONNX_ATTR_S, "s"), SN_STRING, 0, 1},
        {b_names(b_attr("value_strings", ONNX_ATTR_TYPE_STRINGS), ONNX_ATTR_STRINGS, "a,b"),
         SN_STRING, 1, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        message *n = b_message(b_node("Constant", "", "c"), ONNX_NODE_ATTRIBUTE, cases[i].attr);
        sni_model *model = import_good(b_model(b_message(b_graph("", "c"), ONNX_GRAPH_NODE, n)));
        const sni_tensor *t;
        const sni_value *v = value_named(model->graph, "c");
        assert_int_equal(count_nodes(model->graph), 0);
        assert_int_equal(sni_const_load(v->constant, &t, NULL), SN_OK);
        assert_true(t->dtype == cases[i].dtype && t->rank == cases[i].rank &&
                    t->count == cases[i].count);
        sni_model_free(model);
    }
}

/* ---- External data ---- */

static message *external(const char *name, const char *location, const char *offset,
                         const char *length) {
    static const int64_t two = 2;
    message *t = b_int(b_tensor(name, SN_FLOAT32, &two, 1), ONNX_TENSOR_LOCATION, 1);
    if (location) b_message(t, ONNX_TENSOR_EXTERNAL, b_entry("location", location));
    if (offset) b_message(t, ONNX_TENSOR_EXTERNAL, b_entry("offset", offset));
    if (length) b_message(t, ONNX_TENSOR_EXTERNAL, b_entry("length", length));
    return b_message(t, ONNX_TENSOR_EXTERNAL, b_entry("checksum", "whatever"));
}

static void test_external(void **state) {
    (void)state;
    char folder[64] = "/tmp/sinter-external-XXXXXX", path[128];
    float v[4] = {1, 2, 3, 4};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/w.bin", folder);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(v, sizeof *v, 4, f), 4);
    fclose(f);
    message *sub =
        b_message(b_graph("", "c"), ONNX_GRAPH_INITIALIZER, external("c", "w.bin", "4", "8"));
    message *n = b_text(b_node("Custom", "a,b", "y"), ONNX_NODE_DOMAIN, "d");
    b_message(n, ONNX_NODE_ATTRIBUTE, b_attr_graph("body", sub));
    b_message(
        n, ONNX_NODE_ATTRIBUTE,
        b_attr_message("t", ONNX_ATTR_TYPE_TENSOR, ONNX_ATTR_T, external("", "w.bin", "8", NULL)));
    message *g = b_graph("", "y");
    b_message(g, ONNX_GRAPH_INITIALIZER, external("a", "w.bin", NULL, "8"));
    b_message(g, ONNX_GRAPH_INITIALIZER, external("b", "w.bin", "8", NULL));
    b_message(g, ONNX_GRAPH_NODE, n);
    sni_model *model = NULL;
    sn_error err = {0};
    sni_import_options options = {.base_path = folder};
    if (import_message(b_model(g), &options, &model, &err) != SN_OK) fail_msg("%s", err.message);
    assert_int_equal(model->n_mappings, 1);
    const sni_tensor *t;
    assert_int_equal(sni_const_load(value_named(model->graph, "b")->constant, &t, &err), SN_OK);
    assert_memory_equal(t->data, v + 2, 8);
    const sni_node *got = sni_graph_first(model->graph);
    assert_int_equal(sni_const_load(value_named(got->subgraphs[0], "c")->constant, &t, &err),
                     SN_OK);
    assert_memory_equal(t->data, v + 1, 8);
    assert_int_equal(sni_model_intact(model, &err), SN_OK);
    sni_model_free(model);
    unlink(path);
    rmdir(folder);
}

/* ---- Subgraphs ---- */

static message *with_body(message *node, message *body) {
    return b_message(node, ONNX_NODE_ATTRIBUTE, b_attr_graph("body", body));
}

static void test_captures(void **state) {
    (void)state;
    float v[2] = {1, 2};
    message *inner = b_message(b_graph("", "p"), ONNX_GRAPH_NODE, custom("x,w,h", "p"));
    message *outer =
        b_message(b_graph("i", "q"), ONNX_GRAPH_NODE, with_body(custom("i", "q"), inner));
    message *g = b_graph("x", "y");
    b_message(g, ONNX_GRAPH_INITIALIZER, b_floats("w", v, 2));
    b_message(g, ONNX_GRAPH_NODE, with_body(custom("x", "y"), outer));
    b_message(g, ONNX_GRAPH_NODE, custom("x", "h")); /* later, but used before */
    sni_model *model = import_good(b_model(g));
    const sni_graph *main = model->graph;
    const sni_node *n = sni_graph_next(main, sni_graph_first(main));
    assert_int_equal(n->n_subgraphs, 1);
    assert_int_equal(n->n_captures, 2); /* x and h; w is a constant and is shared */
    const sni_graph *sub = n->subgraphs[0];
    const sni_node *m = sni_graph_first(sub);
    assert_int_equal(m->n_captures, 2);
    const sni_graph *innermost = m->subgraphs[0];
    assert_int_equal(innermost->n_captures, 2);
    assert_true(value_named(innermost, "w")->constant == value_named(main, "w")->constant);
    for (int i = 0; i < 2; i++) {
        int32_t outside = m->in[m->n_in + innermost->captures[i].slot];
        int32_t inside = innermost->captures[i].value;
        assert_true(sni_str_eq(sub->values[outside]->name, innermost->values[inside]->name));
    }
    sni_model_free(model);
}

static void test_siblings_may_share_names(void **state) {
    (void)state;
    message *a = b_message(b_graph("", "t"), ONNX_GRAPH_NODE, custom("x", "t"));
    message *b = b_message(b_graph("", "t"), ONNX_GRAPH_NODE, custom("x", "t"));
    message *n = with_body(custom("x", "y"), a);
    b_message(n, ONNX_NODE_ATTRIBUTE, b_attr_graph("other", b));
    message *g = b_message(b_graph("x", "y"), ONNX_GRAPH_NODE, n);
    b_message(g, ONNX_GRAPH_NODE, custom("x", "t")); /* after it: hides nothing */
    sni_model *model = import_good(b_model(g));
    assert_int_equal(sni_graph_first(model->graph)->n_captures, 1);
    sni_model_free(model);
}

/* ---- Functions ---- */

static void test_function(void **state) {
    (void)state;
    /* f(a, b) { t = Custom(a, b) <alpha = @alpha, beta = @beta, gone = @gone>; r = Relu(t) } */
    message *body = custom("a,b", "t");
    b_message(body, ONNX_NODE_ATTRIBUTE, b_attr_ref("alpha", ONNX_ATTR_TYPE_FLOAT, "alpha"));
    b_message(body, ONNX_NODE_ATTRIBUTE, b_attr_ref("be", ONNX_ATTR_TYPE_INT, "beta"));
    b_message(body, ONNX_NODE_ATTRIBUTE, b_attr_ref("gone", ONNX_ATTR_TYPE_INT, "gone"));
    message *f = b_function("f", "a,b", "r,a,r");
    b_names(f, ONNX_FUNCTION_ATTRIBUTE, "alpha,gone");
    b_message(f, ONNX_FUNCTION_ATTRIBUTE_PROTO, b_attr_int("beta", 5));
    b_message(f, ONNX_FUNCTION_NODE, body);
    b_message(f, ONNX_FUNCTION_NODE, b_node("Relu", "t", "r"));
    message *g = b_graph("x", "y,z,same,again");
    b_message(g, ONNX_GRAPH_NODE,
              b_message(b_call("f", "x", "y,same,again"), ONNX_NODE_ATTRIBUTE,
                        b_attr_float("alpha", 0.5f)));
    b_message(g, ONNX_GRAPH_NODE, b_call("f", "y,x", "z"));
    sni_model *model = import_good(b_message(b_model(g), ONNX_MODEL_FUNCTION, f));
    const sni_graph *gr = model->graph;
    assert_int_equal(count_nodes(gr), 6);
    const sni_node *n = sni_graph_first(gr);
    assert_true(sni_str_is(n->type, "Custom"));
    assert_int_equal(n->n_attrs, 2);
    assert_true(sni_node_attr(n, "alpha")->u.f == 0.5f && sni_node_attr(n, "be")->u.i == 5);
    assert_true(n->n_in == 1 || n->in[1] == SNI_NO_ID);
    n = sni_graph_next(gr, n);
    assert_true(sni_str_is(gr->values[n->out[0]]->name, "y"));
    assert_non_null(value_named(gr, "y/t"));
    assert_non_null(value_named(gr, "z/t"));
    assert_true(sni_str_is(sni_value_producer(gr, value_named(gr, "same"))->type, "Identity"));
    assert_true(sni_str_is(sni_value_producer(gr, value_named(gr, "again"))->type, "Identity"));
    sni_model_free(model);
}

/* g passes its attribute on to f; when it has none itself, f's default holds. */
static void test_nested_functions(void **state) {
    (void)state;
    message *f = b_function("f", "a", "r");
    b_message(f, ONNX_FUNCTION_ATTRIBUTE_PROTO, b_attr_int("k", 7));
    b_message(
        f, ONNX_FUNCTION_NODE,
        b_message(custom("a", "r"), ONNX_NODE_ATTRIBUTE, b_attr_ref("v", ONNX_ATTR_TYPE_INT, "k")));
    message *h = b_function("h", "a", "r");
    b_names(h, ONNX_FUNCTION_ATTRIBUTE, "outer");
    b_message(h, ONNX_FUNCTION_NODE,
              b_message(b_call("f", "a", "r"), ONNX_NODE_ATTRIBUTE,
                        b_attr_ref("k", ONNX_ATTR_TYPE_INT, "outer")));
    message *g = b_graph("x", "z");
    b_message(g, ONNX_GRAPH_NODE,
              b_message(b_call("h", "x", "y"), ONNX_NODE_ATTRIBUTE, b_attr_int("outer", 3)));
    b_message(g, ONNX_GRAPH_NODE, b_call("h", "y", "z"));
    message *m = b_model(g);
    b_message(b_message(m, ONNX_MODEL_FUNCTION, h), ONNX_MODEL_FUNCTION, f);
    sni_model *model = import_good(m);
    const sni_graph *gr = model->graph;
    assert_int_equal(count_nodes(gr), 2);
    const sni_node *n = sni_graph_first(gr);
    assert_true(sni_node_attr(n, "v")->u.i == 3);
    assert_true(sni_node_attr(sni_graph_next(gr, n), "v")->u.i == 7);
    sni_model_free(model);
}

/* A body with a subgraph that captures the formal inputs; a Constant whose value is an attribute;
 * overloads; an opset of its own. */
static void test_function_details(void **state) {
    (void)state;
    message *sub = b_message(b_graph("", "p"), ONNX_GRAPH_NODE, custom("a,c,b", "p"));
    message *f = b_function("f", "a,b", "r");
    b_text(f, ONNX_FUNCTION_OVERLOAD, "two");
    b_message(f, ONNX_FUNCTION_OPSET, b_opset("d", 9));
    b_message(f, ONNX_FUNCTION_NODE,
              b_message(b_node("Constant", "", "c"), ONNX_NODE_ATTRIBUTE,
                        b_attr_ref("value_float", ONNX_ATTR_TYPE_FLOAT, "k")));
    b_message(f, ONNX_FUNCTION_NODE, with_body(custom("a", "r"), sub));
    message *plain = b_function("f", "a", "r");
    b_message(plain, ONNX_FUNCTION_NODE, b_node("Relu", "a", "r"));
    message *g = b_graph("a", "z");
    message *call = b_text(b_call("f", "a", "y"), ONNX_NODE_OVERLOAD, "two");
    b_message(call, ONNX_NODE_ATTRIBUTE, b_attr_float("k", 2));
    b_message(b_message(g, ONNX_GRAPH_NODE, call), ONNX_GRAPH_NODE, b_call("f", "y", "z"));
    message *m = b_model(g);
    b_message(m, ONNX_MODEL_OPSET, b_opset("d", 4));
    b_message(b_message(m, ONNX_MODEL_FUNCTION, f), ONNX_MODEL_FUNCTION, plain);
    sni_model *model = import_good(m);
    const sni_graph *gr = model->graph;
    const sni_node *n = sni_graph_first(gr);
    assert_int_equal(count_nodes(gr), 2);
    assert_int_equal(n->version, 9);
    assert_true(sni_str_is(sni_graph_next(gr, n)->type, "Relu"));
    const sni_graph *inner = n->subgraphs[0];
    const sni_node *in = sni_graph_first(inner);
    assert_int_equal(inner->n_captures, 1); /* a; b is left out and c is a constant */
    assert_int_equal(in->n_in, 3);
    assert_int_equal(in->in[2], SNI_NO_ID);
    assert_non_null(inner->values[in->in[1]]->constant);
    sni_model_free(model);
}

/* ---- Values ---- */

static int collect(void *ctx, const void *bytes, size_t size) {
    return message_write(ctx, bytes, size);
}

static void round_trip(sn_kind kind, const sni_datum *in, sni_arena *arena, sni_datum *out) {
    message m = {0};
    sn_error err = {0};
    assert_int_equal(sni_datum_encode(in, SNI_STR("name"), collect, &m, &err), SN_OK);
    if (sni_datum_decode(kind, m.bytes, m.size, arena, out, &err) != SN_OK)
        fail_msg("%s", err.message);
    free(m.bytes);
}

static sni_datum scalar_of(sn_dtype dtype, const void *bytes) {
    sni_datum d = {.kind = SN_KIND_TENSOR};
    assert_int_equal(sni_tensor_new(&d.tensor, dtype, 0, NULL, NULL, NULL), SN_OK);
    memcpy(d.tensor.data, bytes, sni_dtype_width(dtype));
    return d;
}

static void test_values(void **state) {
    (void)state;
    sni_arena arena;
    sni_arena_init(&arena, 0);
    int8_t nibbles[3] = {-8, 7, 1};
    int64_t dims[2] = {3, 1};
    sni_datum d = {.kind = SN_KIND_TENSOR}, got = {0};
    assert_int_equal(sni_tensor_new(&d.tensor, SN_INT4, 2, dims, NULL, NULL), SN_OK);
    memcpy(d.tensor.data, nibbles, 3);
    round_trip(SN_KIND_TENSOR, &d, &arena, &got);
    assert_true(got.tensor.rank == 2 && got.tensor.dims[0] == 3 && got.tensor.dtype == SN_INT4);
    assert_memory_equal(got.tensor.data, nibbles, 3);
    sni_datum_clear(&d);
    sni_datum_clear(&got);

    /* A sequence that holds a number, a sequence of a string, a map and nothing. */
    float f = 2.5f;
    int64_t key = 42;
    sni_str text = SNI_STR("text");
    sni_sequence *seq, *inner;
    sni_map *map;
    assert_int_equal(sni_sequence_new(4, SN_FLOAT32, &seq, NULL), SN_OK);
    assert_int_equal(sni_sequence_new(1, SN_STRING, &inner, NULL), SN_OK);
    assert_int_equal(sni_map_new(&map, NULL), SN_OK);
    inner->items[0] = scalar_of(SN_STRING, &text);
    map->keys = scalar_of(SN_INT64, &key);
    map->values = scalar_of(SN_FLOAT32, &f);
    seq->items[0] = scalar_of(SN_FLOAT32, &f);
    seq->items[1] = (sni_datum){.kind = SN_KIND_SEQUENCE, .seq = inner};
    seq->items[2] = (sni_datum){.kind = SN_KIND_MAP, .map = map};
    d = (sni_datum){.kind = SN_KIND_SEQUENCE, .seq = seq};
    round_trip(SN_KIND_SEQUENCE, &d, &arena, &got);
    assert_int_equal(got.seq->count, 4);
    assert_int_equal(got.seq->dtype, SN_FLOAT32);
    assert_memory_equal(got.seq->items[0].tensor.data, &f, sizeof f);
    assert_true(sni_str_is(*(sni_str *)got.seq->items[1].seq->items[0].tensor.data, "text"));
    assert_int_equal(got.seq->items[2].kind, SN_KIND_MAP);
    assert_memory_equal(got.seq->items[2].map->keys.tensor.data, &key, sizeof key);
    assert_memory_equal(got.seq->items[2].map->values.tensor.data, &f, sizeof f);
    assert_int_equal(got.seq->items[3].kind, SN_KIND_NONE);
    sni_datum_clear(&d);
    sni_datum_clear(&got);

    round_trip(SN_KIND_OPTIONAL, &d, &arena, &got); /* nothing */
    assert_int_equal(got.kind, SN_KIND_NONE);
    sni_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_facts),
        cmocka_unit_test(test_no_nodes),
        cmocka_unit_test(test_names_with_any_byte),
        cmocka_unit_test(test_defaults_come_last),
        cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_typed_data),
        cmocka_unit_test(test_typed_floats),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_raw_alignment),
        cmocka_unit_test(test_raw_subbyte),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_external),
        cmocka_unit_test(test_captures),
        cmocka_unit_test(test_siblings_may_share_names),
        cmocka_unit_test(test_function),
        cmocka_unit_test(test_nested_functions),
        cmocka_unit_test(test_function_details),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
