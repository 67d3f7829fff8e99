/* test_model_hostile.c - model files made to do harm, or merely wrong: each is refused with an
 * error that says what and where, in bounded time and memory. */
#include "model_build.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static message *graph_of(const char *in, const char *out, message *node) {
    return b_message(b_graph(in, out), ONNX_GRAPH_NODE, node);
}

static message *one_node(const char *type, const char *in, const char *out) {
    return b_model(graph_of("x", "y", b_node(type, in, out)));
}

static message *custom(const char *in, const char *out) {
    return b_text(b_node("Custom", in, out), ONNX_NODE_DOMAIN, "d");
}

static message *with_tensor(message *t) {
    return b_model(b_message(b_graph("", "w"), ONNX_GRAPH_INITIALIZER, t));
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

static message *opset_0(void) {
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

static message *with_attr(message *a) {
    return b_model(graph_of("x", "y", b_message(custom("x", "y"), ONNX_NODE_ATTRIBUTE, a)));
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
        t = b_message(b_new(), ONNX_TYPE_SEQUENCE, b_message(b_new(), ONNX_SEQUENCE_TYPE_ELEM, t));
    message *info = b_message(b_text(b_new(), ONNX_INFO_NAME, "x"), ONNX_INFO_TYPE, t);
    return b_model(b_message(b_graph("", ""), ONNX_GRAPH_INPUT, info));
}

/* ---- Types and tensors ---- */

static message *type_elem(void) {
    message *t = b_message(b_new(), ONNX_TYPE_TENSOR, b_int(b_new(), ONNX_TENSOR_TYPE_ELEM, 77));
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

static message *calling(const char *function, message *f) {
    message *m = b_model(graph_of("x", "y", b_call(function, "x", "y")));
    return f ? b_message(m, ONNX_MODEL_FUNCTION, f) : m;
}

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
    {"initialiser twice", initializer_twice, SN_INVALID_MODEL, "'w' is defined twice"},
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
    {"exponential functions", exponential, SN_LIMIT, "expand to more than 1000000"},
    {"2^30 calls", exponential_calls, SN_LIMIT, "expand to more than 1000000"},
    {"calls 65 deep", tower_65, SN_LIMIT, "calls nest more than 64"},
    {"function twice", function_twice, SN_INVALID_MODEL, "function 'f' is defined twice"},
    {"function inputs", function_inputs, SN_INVALID_MODEL, "called with 3 inputs"},
    {"function output", function_output, SN_INVALID_MODEL, "output 'nowhere'"},
    {"function sees no caller", function_dangling, SN_INVALID_MODEL, "its input 'x'"},
    {"function input left out", function_left_out, SN_INVALID_MODEL, "leaves out"},
};

/* Imports, and loads all constants of the main graph. */
static sn_status import_and_load(message *m, sn_error *err) {
    sni_model *model = NULL;
    sn_status status = import_message(m, NULL, &model, err);
    for (int32_t i = 0; status == SN_OK && i < model->graph->value_count; i++) {
        const sni_value *v = model->graph->values[i];
        const sni_tensor *t;
        if (v && v->constant) status = sni_const_load(v->constant, &t, err);
    }
    sni_model_free(model);
    return status;
}

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

static void test_limits_are_reached(void **state) {
    (void)state;
    sni_model_free(import_good(nested_graphs(63)));
    sni_model *model = import_good(function_tower(64, 1));
    assert_int_equal(count_nodes(model->graph), 1);
    sni_model_free(model);
}

/* ---- External data ---- */

static char folder[64];

static const char *at(const char *name) {
    static char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void make_file(const char *name) {
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite("0123456789abcdef", 1, 16, f), 16);
    fclose(f);
}

static message *external_tensor(const char *key, const char *value, const char *location) {
    int64_t two = 2;
    message *t = b_int(b_tensor("w", SN_FLOAT32, &two, 1), ONNX_TENSOR_LOCATION, 1);
    if (location) b_message(t, ONNX_TENSOR_EXTERNAL, b_entry("location", location));
    if (key) b_message(t, ONNX_TENSOR_EXTERNAL, b_entry(key, value));
    return t;
}

/* The same tensor as an initialiser, in an attribute, as sparse values, in a subgraph, and in a
 * function: every way leads through the same checks. */
static message *external_in(int where, message *t) {
    int64_t indices[2] = {0, 1}, two = 2;
    if (where == 0) return with_tensor(t);
    if (where == 1) return with_attr(b_attr_message("t", ONNX_ATTR_TYPE_TENSOR, ONNX_ATTR_T, t));
    if (where == 2) {
        message *s = b_message(b_new(), ONNX_SPARSE_VALUES, t);
        b_message(s, ONNX_SPARSE_INDICES,
                  b_ints(b_tensor("", SN_INT64, &two, 1), ONNX_TENSOR_INT64_DATA, indices, 2));
        b_ints(s, ONNX_SPARSE_DIMS, &two, 1);
        return b_model(b_message(b_graph("", "w"), ONNX_GRAPH_SPARSE_INITIALIZER, s));
    }
    if (where == 3)
        return with_attr(
            b_attr_graph("body", b_message(b_graph("", "w"), ONNX_GRAPH_INITIALIZER, t)));
    message *c = b_message(b_node("Constant", "", "r"), ONNX_NODE_ATTRIBUTE,
                           b_attr_message("value", ONNX_ATTR_TYPE_TENSOR, ONNX_ATTR_T, t));
    return calling("f", b_message(b_function("f", "a", "r"), ONNX_FUNCTION_NODE, c));
}

static void test_external(void **state) {
    (void)state;
    static const struct {
        const char *name;
        const char *location, *key, *value;
        bool good;
    } files[] = {
        {"plain", "w.bin", NULL, NULL, true},
        {"offset at the end", "w.bin", "offset", "8", true},
        {"in a folder", "sub/w.bin", NULL, NULL, true},
        {"another runtime's notes", "w.bin", "prepacked_0", "x", true},
        {"missing", "none.bin", NULL, NULL, false},
        {"no location", NULL, NULL, NULL, false},
        {"empty location", "", NULL, NULL, false},
        {"two locations", "w.bin", "location", "w.bin", false},
        {"absolute", "/etc/hostname", NULL, NULL, false},
        {"above", "../w.bin", NULL, NULL, false},
        {"above by a detour", "sub/../../w.bin", NULL, NULL, false},
        {"symbolic link", "link.bin", NULL, NULL, false},
        {"linked folder", "linked/w.bin", NULL, NULL, false},
        {"hard link", "hard.bin", NULL, NULL, false},
        {"pipe", "pipe", NULL, NULL, false},
        {"folder", "sub", NULL, NULL, false},
        {"offset past the end", "w.bin", "offset", "17", false},
        {"reaches past the end", "w.bin", "offset", "9", false},
        {"negative offset", "w.bin", "offset", "-8", false},
        {"offset that wraps", "w.bin", "offset", "18446744073709551615", false},
        {"offset beyond 64 bits", "w.bin", "offset", "99999999999999999999999", false},
        {"hexadecimal offset", "w.bin", "offset", "0x8", false},
        {"offset with a space", "w.bin", "offset", " 8", false},
        {"empty offset", "w.bin", "offset", "", false},
        {"another length", "w.bin", "length", "4", false},
        {"huge length", "w.bin", "length", "9223372036854775807", false},
        {"unknown key", "w.bin", "mode", "rw", false},
    };
    snprintf(folder, sizeof folder, "/tmp/sinter-hostile-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(mkdir(at("sub"), 0700), 0);
    make_file("w.bin");
    make_file("sub/w.bin");
    make_file("other.bin");
    char target[160];
    snprintf(target, sizeof target, "%s", at("other.bin"));
    assert_int_equal(link(target, at("hard.bin")), 0);
    assert_int_equal(symlink("w.bin", at("link.bin")), 0);
    assert_int_equal(symlink("sub", at("linked")), 0);
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    sni_import_options options = {.base_path = folder};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        for (int where = 0; where < 5; where++) {
            sn_error err = {0};
            sni_model *model = NULL;
            message *t = external_tensor(files[i].key, files[i].value, files[i].location);
            sn_status status = import_message(external_in(where, t), &options, &model, &err);
            if ((status == SN_OK) != files[i].good)
                fail_msg("%s, place %d: %s '%s'", files[i].name, where, sn_status_name(status),
                         err.message);
            sni_model_free(model);
        }
    }
    /* Without a folder there is no external data at all. */
    sn_error err = {0};
    sni_model *model = NULL;
    assert_int_equal(
        import_message(with_tensor(external_tensor(NULL, NULL, "w.bin")), NULL, &model, &err),
        SN_INVALID_ARGUMENT);
    static const char *const names[] = {"sub/w.bin", "w.bin",  "other.bin", "hard.bin",
                                        "link.bin",  "linked", "pipe"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(at(names[i]));
    rmdir(at("sub"));
    rmdir(folder);
}

/* ---- Much of something ---- */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
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
        cmocka_unit_test(test_table),         cmocka_unit_test(test_limits_are_reached),
        cmocka_unit_test(test_external),      cmocka_unit_test(test_long_chain),
        cmocka_unit_test(test_tiny_messages), cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_truncation),    cmocka_unit_test(test_changed_bytes),
        cmocka_unit_test(test_random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
