/* test_model_hostile.c - model files made to do harm, or merely wrong: each is refused with an
 * error that says what and where, in bounded time and memory. */
#include "model_build.h"

#include <stdio.h>

static message *one_node(const char *type, const char *in, const char *out) {
    return b_model(graph_of("x", "y", b_node(type, in, out)));
}

/* ---- The file as a whole ---- */

static message *empty_file(void) {
    return b_new();
}

static message *not_protobuf(void) {
    return b_raw(b_new(), "PK\3\4 this is a zip file", 22);
}

static message *no_graph(void) {
    return b_head();
}

static message *two_graphs(void) {
    return b_message(b_model(b_graph("x", "x")), ONNX_MODEL_GRAPH, b_graph("x", "x"));
}

static message *graph_is_a_number(void) {
    return b_int(b_head(), ONNX_MODEL_GRAPH, 5);
}

static message *with_opset(const char *domain, int64_t version) {
    return b_message(b_model(b_graph("x", "x")), ONNX_MODEL_OPSET, b_opset(domain, version));
}

/* Alone: beside another one it is let pass. */
static message *opset_0(void) {
    message *m =
        b_message(b_int(b_new(), ONNX_MODEL_IR_VERSION, 8), ONNX_MODEL_OPSET, b_opset("", 0));
    return b_message(m, ONNX_MODEL_GRAPH, b_graph("x", "x"));
}

static message *opset_0_beside(void) {
    return with_opset("", 0);
}

static message *opset_huge(void) {
    return with_opset("", (int64_t)1 << 62);
}

static message *opset_negative(void) {
    return with_opset("some.domain", -1);
}

static message *opset_ml(void) {
    return with_opset("ai.onnx.ml", 99);
}

static message *no_opset(void) {
    message *m = b_int(b_new(), ONNX_MODEL_IR_VERSION, 8);
    return b_message(m, ONNX_MODEL_GRAPH, graph_of("x", "y", b_node("Relu", "x", "y")));
}

/* ---- Names ---- */

static message *defined_twice(void) {
    message *g = graph_of("x", "y", b_node("Relu", "x", "y"));
    return b_model(b_message(g, ONNX_GRAPH_NODE, b_node("Relu", "x", "y")));
}

static message *twice_by_one_node(void) {
    return b_model(graph_of("x", "y", custom("x", "y,y")));
}

static message *redefines_input(void) {
    return b_model(graph_of("x", "x", b_node("Relu", "x", "x")));
}

static message *input_twice(void) {
    return b_model(b_graph("x,x", "x"));
}

static message *initializer_twice(void) {
    float v[1] = {1};
    message *g = b_message(b_graph("", "w"), ONNX_GRAPH_INITIALIZER, b_floats("w", v, 1));
    return b_model(b_message(g, ONNX_GRAPH_INITIALIZER, b_floats("w", v, 1)));
}

static message *default_twice(void) {
    float v[1] = {1};
    return b_model(b_message(b_graph("w,w", "w"), ONNX_GRAPH_INITIALIZER, b_floats("w", v, 1)));
}

static message *dangling(void) {
    return one_node("Relu", "nowhere", "y");
}

static message *dangling_output(void) {
    return b_model(b_graph("x", "nowhere"));
}

static message *cycle(void) {
    message *g = graph_of("x", "y", custom("x,b", "a"));
    b_message(g, ONNX_GRAPH_NODE, custom("a", "b"));
    return b_model(b_message(g, ONNX_GRAPH_NODE, custom("a", "y")));
}

static message *self_loop(void) {
    return b_model(graph_of("x", "y", custom("x,y", "y")));
}

static message *subgraph_cycle(void) {
    message *sub = graph_of("", "p", custom("y", "p"));
    return b_model(graph_of(
        "x", "y", b_message(custom("x", "y"), ONNX_NODE_ATTRIBUTE, b_attr_graph("body", sub))));
}

static message *shadowing(void) {
    message *sub = graph_of("", "t", custom("x", "t"));
    message *g = graph_of("x", "y", custom("x", "t"));
    return b_model(
        b_message(g, ONNX_GRAPH_NODE,
                  b_message(custom("t", "y"), ONNX_NODE_ATTRIBUTE, b_attr_graph("body", sub))));
}

static message *unnamed_input(void) {
    return b_model(b_message(b_graph("", ""), ONNX_GRAPH_INPUT, b_new()));
}

/* ---- Nodes and attributes ---- */

static message *no_operator(void) {
    return b_model(graph_of("x", "y", b_names(b_new(), ONNX_NODE_OUTPUT, "y")));
}

static message *attr_kind(void) {
    return with_attr(b_attr("a", 99));
}

static message *attr_unnamed(void) {
    return with_attr(b_attr_int("", 1));
}

static message *attr_empty(void) {
    return with_attr(b_attr("a", ONNX_ATTR_TYPE_TENSOR));
}

static message *attr_two_values(void) {
    return with_attr(b_int(b_attr_int("a", 1), ONNX_ATTR_I, 2));
}

static message *attr_twice(void) {
    message *n = b_message(custom("x", "y"), ONNX_NODE_ATTRIBUTE, b_attr_int("a", 1));
    return b_model(graph_of("x", "y", b_message(n, ONNX_NODE_ATTRIBUTE, b_attr_int("a", 2))));
}

static message *attr_wrong_wire(void) {
    return with_attr(b_text(b_attr("a", ONNX_ATTR_TYPE_INT), ONNX_ATTR_I, "text"));
}

static message *attr_many(void) {
    message *n = custom("x", "y");
    for (int i = 0; i < 300; i++) {
        char name[16];
        snprintf(name, sizeof name, "a%d", i);
        b_message(n, ONNX_NODE_ATTRIBUTE, b_attr_int(name, 1));
    }
    return b_model(graph_of("x", "y", n));
}

static message *attr_reference_outside(void) {
    return with_attr(b_attr_ref("a", ONNX_ATTR_TYPE_INT, "b"));
}

static message *constant_without_value(void) {
    return b_model(graph_of("", "c", b_node("Constant", "", "c")));
}

static message *constant_odd(void) {
    return b_model(graph_of(
        "", "c",
        b_message(b_node("Constant", "", "c"), ONNX_NODE_ATTRIBUTE, b_attr_int("value_float", 1))));
}

/* ---- Nesting ---- */

/* A graph with `depth` graphs inside one another. */
static message *nested_graphs(int depth) {
    message *g = graph_of("", "y0", custom("", "y0"));
    for (int i = 1; i <= depth; i++) {
        char name[16];
        snprintf(name, sizeof name, "y%d", i);
        message *n = b_message(custom("", name), ONNX_NODE_ATTRIBUTE, b_attr_graph("body", g));
        g = graph_of("", name, n);
    }
    return b_model(g);
}

static message *nesting_65(void) {
    return nested_graphs(65);
}

static message *nesting_400(void) {
    return nested_graphs(400);
}

static message *nested_type(void) {
    message *t = b_new();
    for (int i = 0; i < 2000; i++)
        t = b_message(b_new(), ONNX_TYPE_PROTO_SEQUENCE,
                      b_message(b_new(), ONNX_SEQUENCE_TYPE_ELEM, t));
    message *info = b_message(b_text(b_new(), ONNX_INFO_NAME, "x"), ONNX_INFO_TYPE, t);
    return b_model(b_message(b_graph("", ""), ONNX_GRAPH_INPUT, info));
}

/* ---- Types and tensors ---- */

static message *type_elem(void) {
    message *t =
        b_message(b_new(), ONNX_TYPE_PROTO_TENSOR, b_int(b_new(), ONNX_TENSOR_TYPE_ELEM, 77));
    message *info = b_message(b_text(b_new(), ONNX_INFO_NAME, "x"), ONNX_INFO_TYPE, t);
    return b_model(b_message(b_graph("", ""), ONNX_GRAPH_INPUT, info));
}

static message *rank_17(void) {
    int64_t dims[17] = {0};
    return b_model(b_message(b_graph("", ""), ONNX_GRAPH_INPUT, b_info("x", dims, 17)));
}

static message *tensor_of(sn_dtype dtype, int64_t a, int64_t b, size_t rank) {
    int64_t dims[2] = {a, b};
    return b_tensor("w", dtype, dims, rank);
}

static message *tensor_dtype(void) {
    return with_tensor(tensor_of((sn_dtype)99, 1, 0, 1));
}

static message *tensor_dtype_0(void) {
    return with_tensor(tensor_of(SN_UNDEFINED, 1, 0, 1));
}

static message *dims_overflow(void) {
    return with_tensor(tensor_of(SN_FLOAT32, INT64_MAX, 16, 2));
}

static message *dims_overflow_bytes(void) {
    return with_tensor(tensor_of(SN_FLOAT64, (int64_t)1 << 61, 1, 2));
}

static message *dims_zero_and_huge(void) {
    int64_t dims[3] = {0, INT64_MAX, INT64_MAX};
    return with_tensor(b_tensor("w", SN_FLOAT32, dims, 3));
}

static message *dims_negative(void) {
    return with_tensor(tensor_of(SN_FLOAT32, -1, 0, 1));
}

static message *dims_many(void) {
    int64_t dims[20] = {1};
    return with_tensor(b_tensor("w", SN_FLOAT32, dims, 20));
}

static message *raw_short(void) {
    return with_tensor(b_bytes(tensor_of(SN_FLOAT32, 2, 0, 1), ONNX_TENSOR_RAW_DATA, "1234567", 7));
}

static message *raw_long(void) {
    return with_tensor(
        b_bytes(tensor_of(SN_FLOAT32, 2, 0, 1), ONNX_TENSOR_RAW_DATA, "123456789", 9));
}

static message *raw_int4(void) {
    return with_tensor(b_bytes(tensor_of(SN_INT4, 3, 0, 1), ONNX_TENSOR_RAW_DATA, "123", 3));
}

static message *raw_int2(void) {
    return with_tensor(b_bytes(tensor_of(SN_INT2, 5, 0, 1), ONNX_TENSOR_RAW_DATA, "1", 1));
}

static message *raw_string(void) {
    return with_tensor(b_bytes(tensor_of(SN_STRING, 1, 0, 1), ONNX_TENSOR_RAW_DATA, "a", 1));
}

static message *no_data(void) {
    return with_tensor(tensor_of(SN_FLOAT32, 2, 0, 1));
}

static message *stored_twice(void) {
    message *t = b_bytes(tensor_of(SN_INT8, 1, 0, 1), ONNX_TENSOR_RAW_DATA, "a", 1);
    return with_tensor(b_int(t, ONNX_TENSOR_INT32_DATA, 1));
}

static message *wrong_field(void) {
    return with_tensor(b_int(tensor_of(SN_FLOAT32, 1, 0, 1), ONNX_TENSOR_INT64_DATA, 1));
}

static message *typed_count(void) {
    int64_t v[3] = {1, 2, 3};
    return with_tensor(b_ints(tensor_of(SN_INT64, 2, 0, 1), ONNX_TENSOR_INT64_DATA, v, 3));
}

static message *typed_int4(void) {
    int64_t v[3] = {1, 2, 3};
    return with_tensor(b_ints(tensor_of(SN_INT4, 3, 0, 1), ONNX_TENSOR_INT32_DATA, v, 3));
}

static message *segment(void) {
    return with_tensor(b_message(tensor_of(SN_FLOAT32, 0, 0, 1), ONNX_TENSOR_SEGMENT, b_new()));
}

static message *location_2(void) {
    return with_tensor(b_int(tensor_of(SN_FLOAT32, 0, 0, 1), ONNX_TENSOR_LOCATION, 2));
}

/* ---- Sparse tensors ---- */

static message *sparse(const int64_t *indices, size_t n, const int64_t *index_dims, size_t rank,
                       const int64_t *dims, size_t dense_rank) {
    float v[2] = {5, 7};
    message *i =
        b_ints(b_tensor("", SN_INT64, index_dims, rank), ONNX_TENSOR_INT64_DATA, indices, n);
    message *m = b_message(b_new(), ONNX_SPARSE_VALUES, b_floats("w", v, 2));
    b_ints(b_message(m, ONNX_SPARSE_INDICES, i), ONNX_SPARSE_DIMS, dims, dense_rank);
    return b_model(b_message(b_graph("", "w"), ONNX_GRAPH_SPARSE_INITIALIZER, m));
}

static message *sparse_shape(void) {
    int64_t indices[3] = {0, 1, 2}, index_dims[1] = {3}, dims[1] = {4};
    return sparse(indices, 3, index_dims, 1, dims, 1);
}

static message *sparse_bomb(void) {
    int64_t indices[2] = {0, 1}, index_dims[1] = {2}, dims[1] = {(int64_t)1 << 36};
    return sparse(indices, 2, index_dims, 1, dims, 1);
}

static message *sparse_overflow(void) {
    int64_t indices[2] = {0, 1}, index_dims[1] = {2}, dims[2] = {INT64_MAX, INT64_MAX};
    return sparse(indices, 2, index_dims, 1, dims, 2);
}

static message *sparse_outside(void) {
    int64_t indices[2] = {0, 4}, index_dims[1] = {2}, dims[1] = {4};
    return sparse(indices, 2, index_dims, 1, dims, 1);
}

static message *sparse_negative(void) {
    int64_t indices[2] = {-1, 1}, index_dims[1] = {2}, dims[1] = {4};
    return sparse(indices, 2, index_dims, 1, dims, 1);
}

static message *sparse_outside_pair(void) {
    int64_t indices[4] = {0, 0, 1, 2}, index_dims[2] = {2, 2}, dims[2] = {2, 2};
    return sparse(indices, 4, index_dims, 2, dims, 2);
}

static message *sparse_order(void) {
    int64_t indices[2] = {1, 1}, index_dims[1] = {2}, dims[1] = {4};
    return sparse(indices, 2, index_dims, 1, dims, 1);
}

/* ---- Functions ---- */

static message *recursion(void) {
    return calling("f",
                   b_message(b_function("f", "a", "r"), ONNX_FUNCTION_NODE, b_call("f", "a", "r")));
}

static message *mutual_recursion(void) {
    message *f = b_message(b_function("f", "a", "r"), ONNX_FUNCTION_NODE, b_call("g", "a", "r"));
    message *g = b_message(b_function("g", "a", "r"), ONNX_FUNCTION_NODE, b_call("f", "a", "r"));
    return b_message(calling("f", f), ONNX_MODEL_FUNCTION, g);
}

static message *recursion_in_subgraph(void) {
    message *n = b_message(custom("a", "r"), ONNX_NODE_ATTRIBUTE,
                           b_attr_graph("body", graph_of("", "p", b_call("f", "a", "p"))));
    return calling("f", b_message(b_function("f", "a", "r"), ONNX_FUNCTION_NODE, n));
}

/* A chain of functions, each calling the next `width` times. */
static message *function_tower(int height, int width) {
    message *m = calling("f0", NULL);
    for (int i = 0; i < height; i++) {
        char name[16], next[16];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(next, sizeof next, "f%d", i + 1);
        message *f = b_function(name, "a", "r0");
        for (int k = 0; k < width; k++) {
            char out[16];
            snprintf(out, sizeof out, "r%d", k);
            b_message(f, ONNX_FUNCTION_NODE,
                      i + 1 < height ? b_call(next, "a", out) : b_node("Relu", "a", out));
        }
        b_message(m, ONNX_MODEL_FUNCTION, f);
    }
    return m;
}

static message *exponential(void) {
    return function_tower(20, 10);
}

static message *exponential_calls(void) {
    return function_tower(30, 2);
}

static message *tower_65(void) {
    return function_tower(65, 1);
}

static message *function_twice(void) {
    message *m = calling("f", b_function("f", "a", "a"));
    return b_message(m, ONNX_MODEL_FUNCTION, b_function("f", "a", "a"));
}

static message *function_inputs(void) {
    return b_message(b_model(graph_of("x", "y", b_call("f", "x,x,x", "y"))), ONNX_MODEL_FUNCTION,
                     b_function("f", "a,b", "a"));
}

static message *function_output(void) {
    return calling("f", b_function("f", "a", "nowhere"));
}

static message *function_dangling(void) {
    return calling("f", b_message(b_function("f", "a", "r"), ONNX_FUNCTION_NODE,
                                  b_node("Relu", "x", "r"))); /* x is the caller's */
}

static message *function_left_out(void) {
    return b_message(b_model(graph_of("x", "y", b_call("f", "", "y"))), ONNX_MODEL_FUNCTION,
                     b_function("f", "a", "a"));
}

/* ---- The table ---- */

static const struct {
    const char *name;
    message *(*build)(void);
    sn_status status;
    const char *text; /* part of the message */
} cases[] = {
    {"empty file", empty_file, SN_INVALID_MODEL, "no graph"},
    {"not protobuf", not_protobuf, SN_MALFORMED, "byte "},
    {"no graph", no_graph, SN_INVALID_MODEL, "no graph"},
    {"two graphs", two_graphs, SN_MALFORMED, "two graphs"},
    {"graph is a number", graph_is_a_number, SN_MALFORMED, "wire type 0 instead of 2"},
    {"opset 0", opset_0, SN_UNSUPPORTED, "opset 0 of domain ''"},
    {"opset 2^62", opset_huge, SN_UNSUPPORTED, "opset 4611686018427387904"},
    {"opset -1", opset_negative, SN_UNSUPPORTED, "opset -1 of domain 'some.domain'"},
    {"ml opset 99", opset_ml, SN_UNSUPPORTED, "opset 99 of domain 'ai.onnx.ml'"},
    {"no opset", no_opset, SN_INVALID_MODEL, "imports no opset"},
    {"defined twice", defined_twice, SN_INVALID_MODEL,
     "node 'y' (Relu): value 'y' is defined twice"},
    {"twice by one node", twice_by_one_node, SN_INVALID_MODEL, "'y' is defined twice"},
    {"redefines an input", redefines_input, SN_INVALID_MODEL, "'x' is defined twice"},
    {"input twice", input_twice, SN_INVALID_MODEL, "'x' is defined twice"},
    {"default twice", default_twice, SN_INVALID_MODEL, "'w' is defined twice"},
    {"dangling input", dangling, SN_INVALID_MODEL, "node 'y' (Relu): its input 'nowhere'"},
    {"dangling output", dangling_output, SN_INVALID_MODEL, "output 'nowhere'"},
    {"cycle", cycle, SN_INVALID_MODEL, "part of a cycle"},
    {"self loop", self_loop, SN_INVALID_MODEL, "node 'y' (Custom) is part of a cycle"},
    {"cycle through a subgraph", subgraph_cycle, SN_INVALID_MODEL, "part of a cycle"},
    {"shadowing", shadowing, SN_INVALID_MODEL, "value 't' of a subgraph hides"},
    {"unnamed input", unnamed_input, SN_INVALID_MODEL, "no name"},
    {"no operator", no_operator, SN_MALFORMED, "a node has no operator"},
    {"attribute kind", attr_kind, SN_MALFORMED, "attribute 'a' has kind 99"},
    {"attribute without name", attr_unnamed, SN_MALFORMED, "no name"},
    {"attribute without value", attr_empty, SN_MALFORMED, "attribute 'a' has no value"},
    {"attribute with two values", attr_two_values, SN_MALFORMED, "two values"},
    {"attribute twice", attr_twice, SN_INVALID_MODEL, "attribute 'a' is given twice"},
    {"attribute wire type", attr_wrong_wire, SN_MALFORMED, "wire type 2 instead of 0"},
    {"many attributes", attr_many, SN_LIMIT, "too many attributes"},
    {"reference outside", attr_reference_outside, SN_INVALID_MODEL, "refers to 'b'"},
    {"Constant without value", constant_without_value, SN_INVALID_MODEL, "0 attributes"},
    {"Constant of odd kind", constant_odd, SN_INVALID_MODEL, "'value_float'"},
    {"65 subgraphs deep", nesting_65, SN_LIMIT, "nest more than 64"},
    {"400 subgraphs deep", nesting_400, SN_LIMIT, "nest more than 64"},
    {"deep type", nested_type, SN_LIMIT, "a type is nested"},
    {"element type 77", type_elem, SN_MALFORMED, "element type 77"},
    {"rank 17", rank_17, SN_MALFORMED, "more than 16 dimensions"},
    {"tensor type 99", tensor_dtype, SN_MALFORMED, "tensor 'w': element type 99"},
    {"tensor type 0", tensor_dtype_0, SN_MALFORMED, "tensor 'w': element type 0"},
    {"dims overflow", dims_overflow, SN_MALFORMED, "tensor 'w'"},
    {"bytes overflow", dims_overflow_bytes, SN_MALFORMED, "tensor 'w'"},
    {"zero beside huge dims", dims_zero_and_huge, SN_MALFORMED, "tensor 'w'"},
    {"negative dim", dims_negative, SN_MALFORMED, "dimension 0 is negative (-1)"},
    {"rank 20", dims_many, SN_MALFORMED, "more than 16 dimensions"},
    {"raw data too short", raw_short, SN_MALFORMED, "7 bytes of raw data where its shape needs 8"},
    {"raw data too long", raw_long, SN_MALFORMED, "9 bytes of raw data where its shape needs 8"},
    {"int4 raw data", raw_int4, SN_MALFORMED, "3 bytes of raw data where its shape needs 2"},
    {"int2 raw data", raw_int2, SN_MALFORMED, "1 bytes of raw data where its shape needs 2"},
    {"raw strings", raw_string, SN_MALFORMED, "strings cannot be raw data"},
    {"no data", no_data, SN_MALFORMED, "0 numbers or strings where its shape needs 2"},
    {"stored twice", stored_twice, SN_MALFORMED, "stored twice"},
    {"wrong field", wrong_field, SN_MALFORMED, "field 7 does not hold elements of type float32"},
    {"typed count", typed_count, SN_MALFORMED, "3 numbers or strings where its shape needs 2"},
    {"typed int4", typed_int4, SN_MALFORMED, "3 numbers or strings where its shape needs 2"},
    {"segment", segment, SN_MALFORMED, "segments"},
    {"data location 2", location_2, SN_MALFORMED, "data location 2"},
    {"sparse shape", sparse_shape, SN_MALFORMED, "indices do not fit"},
    {"sparse bomb", sparse_bomb, SN_LIMIT, "when dense"},
    {"sparse overflow", sparse_overflow, SN_MALFORMED, "tensor 'w'"},
    {"sparse index outside", sparse_outside, SN_MALFORMED, "index 1 lies outside"},
    {"sparse index negative", sparse_negative, SN_MALFORMED, "index 0 lies outside"},
    {"sparse pair outside", sparse_outside_pair, SN_MALFORMED, "index 1 lies outside"},
    {"sparse order", sparse_order, SN_MALFORMED, "index 1 is not above"},
    {"recursion", recursion, SN_INVALID_MODEL, "function 'f' calls itself"},
    {"mutual recursion", mutual_recursion, SN_INVALID_MODEL, "function 'f' calls itself"},
    {"recursion in a subgraph", recursion_in_subgraph, SN_INVALID_MODEL, "'f' calls itself"},
    {"exponential functions", exponential, SN_LIMIT, "nodes, too many for its size"},
    {"2^30 calls", exponential_calls, SN_LIMIT, "nodes, too many for its size"},
    {"calls 65 deep", tower_65, SN_LIMIT, "calls nest more than 64"},
    {"function twice", function_twice, SN_INVALID_MODEL, "function 'f' is defined twice"},
    {"function inputs", function_inputs, SN_INVALID_MODEL, "called with 3 inputs"},
    {"function output", function_output, SN_INVALID_MODEL, "output 'nowhere'"},
    {"function sees no caller", function_dangling, SN_INVALID_MODEL, "its input 'x'"},
    {"function input left out", function_left_out, SN_INVALID_MODEL, "leaves out"},
};

static void test_table(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_error err = {0};
        sn_status status = import_and_load(cases[i].build(), &err);
        if (status != cases[i].status || err.status != status ||
            !strstr(err.message, cases[i].text))
            fail_msg("%s: %s, '%s'", cases[i].name, sn_status_name(status), err.message);
    }
}

/* What is let pass, unless the import is strict. */
static void test_strictness(void **state) {
    static message *(*const builds[])(void) = {opset_0_beside, initializer_twice};
    (void)state;
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        sn_error err = {0};
        sni_model *model = NULL;
        const sni_import_options strict = {.strict = true};
        assert_int_equal(import_message(builds[i](), &strict, &model, &err), SN_INVALID_MODEL);
        assert_int_equal(import_message(builds[i](), NULL, &model, &err), SN_OK);
        assert_int_equal(model->store->n_notes, 1);
        assert_true(model->store->notes->text.n > 0);
        sni_model_free(model);
    }
}

static void test_limits_are_reached(void **state) {
    (void)state;
    sni_model_free(import_good(nested_graphs(63)));
    sni_model *model = import_good(function_tower(64, 1));
    assert_int_equal(count_nodes(model->graph), 1);
    sni_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_strictness),
        cmocka_unit_test(test_limits_are_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
