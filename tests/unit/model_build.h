/* model_build.h - ONNX messages made by hand, for tests of the importer.
 *
 * A message is put together with the b_ functions and handed to its parent with b_message(), which
 * takes it over. Names in lists are separated by commas. */
#ifndef MODEL_BUILD_H
#define MODEL_BUILD_H

#include "unit.h"

#include "model/model.h"
#include "model/onnx_fields.h"
#include "model/wire_write.h"

#include <stdlib.h>

typedef struct message {
    sni_out out;
    unsigned char *bytes;
    size_t size, capacity;
} message;

static inline int message_write(void *ctx, const void *bytes, size_t size) {
    message *m = ctx;
    if (size > m->capacity - m->size) {
        size_t capacity = (m->size + size) * 2;
        unsigned char *larger = realloc(m->bytes, capacity);
        if (!larger) return 1;
        m->bytes = larger;
        m->capacity = capacity;
    }
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
    return 0;
}

static inline message *b_new(void) {
    message *m = calloc(1, sizeof *m);
    assert_non_null(m);
    sni_out_init(&m->out, message_write, m, NULL);
    return m;
}

static inline void b_free(message *m) {
    free(m->bytes);
    free(m);
}

static inline message *b_done(message *m) {
    assert_int_equal(sni_out_finish(&m->out), SN_OK);
    return m;
}

static inline message *b_int(message *m, uint32_t field, int64_t v) {
    sni_put_int(&m->out, field, v);
    return m;
}

static inline message *b_text(message *m, uint32_t field, const char *text) {
    sni_put_str(&m->out, field, sni_str_of(text));
    return m;
}

static inline message *b_bytes(message *m, uint32_t field, const void *bytes, size_t size) {
    sni_put_bytes(&m->out, field, bytes, size);
    return m;
}

static inline message *b_raw(message *m, const void *bytes, size_t size) {
    sni_put_raw(&m->out, bytes, size);
    return m;
}

static inline message *b_ints(message *m, uint32_t field, const int64_t *v, size_t n) {
    sni_put_packed_ints(&m->out, field, v, n);
    return m;
}

static inline message *b_message(message *m, uint32_t field, message *inner) {
    b_done(inner);
    sni_put_bytes(&m->out, field, inner->bytes, inner->size);
    b_free(inner);
    return m;
}

/* One field for each name of "a,b,c"; two commas leave one out. "" is no name at all. */
static inline message *b_names(message *m, uint32_t field, const char *names) {
    while (*names) {
        size_t n = strcspn(names, ",");
        sni_put_str(&m->out, field, (sni_str){names, n});
        names += n;
        if (*names) names++;
    }
    return m;
}

/* ---- ONNX ---- */

static inline message *b_node(const char *type, const char *in, const char *out) {
    message *m = b_new();
    b_names(m, ONNX_NODE_INPUT, in);
    b_names(m, ONNX_NODE_OUTPUT, out);
    return b_text(m, ONNX_NODE_OP_TYPE, type);
}

static inline message *b_attr(const char *name, int64_t type) {
    return b_int(b_text(b_new(), ONNX_ATTR_NAME, name), ONNX_ATTR_TYPE, type);
}

static inline message *b_attr_int(const char *name, int64_t v) {
    return b_int(b_attr(name, ONNX_ATTR_TYPE_INT), ONNX_ATTR_I, v);
}

static inline message *b_attr_float(const char *name, float v) {
    message *m = b_attr(name, ONNX_ATTR_TYPE_FLOAT);
    sni_put_float(&m->out, ONNX_ATTR_F, v);
    return m;
}

static inline message *b_attr_ref(const char *name, int64_t type, const char *ref) {
    return b_text(b_attr(name, type), ONNX_ATTR_REF, ref);
}

static inline message *b_attr_message(const char *name, int64_t type, uint32_t field,
                                      message *value) {
    return b_message(b_attr(name, type), field, value);
}

static inline message *b_attr_graph(const char *name, message *graph) {
    return b_attr_message(name, ONNX_ATTR_TYPE_GRAPH, ONNX_ATTR_G, graph);
}

/* A tensor without contents. */
static inline message *b_tensor(const char *name, sn_dtype dtype, const int64_t *dims, size_t n) {
    message *m = b_ints(b_new(), ONNX_TENSOR_DIMS, dims, n);
    b_int(m, ONNX_TENSOR_DATA_TYPE, (int64_t)dtype);
    return b_text(m, ONNX_TENSOR_NAME, name);
}

static inline message *b_floats(const char *name, const float *v, size_t n) {
    int64_t dims[1] = {(int64_t)n};
    return b_bytes(b_tensor(name, SN_FLOAT32, dims, 1), ONNX_TENSOR_RAW_DATA, v, n * sizeof *v);
}

static inline message *b_entry(const char *key, const char *value) {
    return b_text(b_text(b_new(), ONNX_ENTRY_KEY, key), ONNX_ENTRY_VALUE, value);
}

/* A tensor of floats of that shape; a dimension below 0 is not known. */
static inline message *b_info(const char *name, const int64_t *dims, size_t n) {
    message *shape = b_new();
    for (size_t i = 0; i < n; i++) {
        message *dim = b_new();
        if (dims[i] >= 0) b_int(dim, ONNX_DIM_VALUE, dims[i]);
        b_message(shape, ONNX_SHAPE_DIM, dim);
    }
    message *tensor = b_int(b_new(), ONNX_TENSOR_TYPE_ELEM, SN_FLOAT32);
    b_message(tensor, ONNX_TENSOR_TYPE_SHAPE, shape);
    message *type = b_message(b_new(), ONNX_TYPE_PROTO_TENSOR, tensor);
    return b_message(b_text(b_new(), ONNX_INFO_NAME, name), ONNX_INFO_TYPE, type);
}

/* Adds inputs or outputs of shape [2], or nodes, to a graph. */
static inline message *b_infos(message *graph, uint32_t field, const char *names) {
    static const int64_t two[1] = {2};
    while (*names) {
        char name[64];
        size_t n = strcspn(names, ",");
        assert_true(n < sizeof name);
        memcpy(name, names, n);
        name[n] = 0;
        b_message(graph, field, b_info(name, two, 1));
        names += n + (names[n] == ',');
    }
    return graph;
}

static inline message *b_graph(const char *in, const char *out) {
    message *m = b_text(b_new(), ONNX_GRAPH_NAME, "g");
    b_infos(m, ONNX_GRAPH_INPUT, in);
    return b_infos(m, ONNX_GRAPH_OUTPUT, out);
}

static inline message *b_opset(const char *domain, int64_t version) {
    return b_int(b_text(b_new(), ONNX_OPSET_DOMAIN, domain), ONNX_OPSET_VERSION, version);
}

/* A model of IR 8 and opset 18 without its graph. */
static inline message *b_head(void) {
    message *m = b_int(b_new(), ONNX_MODEL_IR_VERSION, 8);
    return b_message(m, ONNX_MODEL_OPSET, b_opset("", 18));
}

static inline message *b_model(message *graph) {
    return b_message(b_head(), ONNX_MODEL_GRAPH, graph);
}

static inline message *b_function(const char *name, const char *in, const char *out) {
    message *m = b_text(b_new(), ONNX_FUNCTION_NAME, name);
    b_text(m, ONNX_FUNCTION_DOMAIN, "local");
    b_names(m, ONNX_FUNCTION_INPUT, in);
    b_names(m, ONNX_FUNCTION_OUTPUT, out);
    return b_message(m, ONNX_FUNCTION_OPSET, b_opset("", 18));
}

static inline message *b_call(const char *function, const char *in, const char *out) {
    return b_text(b_node(function, in, out), ONNX_NODE_DOMAIN, "local");
}

/* A graph of one node. */
static inline message *graph_of(const char *in, const char *out, message *node) {
    return b_message(b_graph(in, out), ONNX_GRAPH_NODE, node);
}

/* A node of an unknown operator, so that no operator's own rules interfere. */
static inline message *custom(const char *in, const char *out) {
    return b_text(b_node("Custom", in, out), ONNX_NODE_DOMAIN, "d");
}

/* Models whose only content is an initialiser `w`, or a node with an attribute. */
static inline message *with_tensor(message *t) {
    return b_model(b_message(b_graph("", "w"), ONNX_GRAPH_INITIALIZER, t));
}

static inline message *with_attr(message *a) {
    return b_model(graph_of("x", "y", b_message(custom("x", "y"), ONNX_NODE_ATTRIBUTE, a)));
}

/* A model that calls a function, and has it if `f` is not NULL. */
static inline message *calling(const char *function, message *f) {
    message *m = b_model(graph_of("x", "y", b_call(function, "x", "y")));
    return f ? b_message(m, ONNX_MODEL_FUNCTION, f) : m;
}

/* ---- Importing ---- */

/* Imports bytes from memory of exactly their size, so that a sanitizer sees any step outside; the
 * memory lives as long as the model. */
static inline sn_status import_bytes(const unsigned char *bytes, size_t size,
                                     const sni_import_options *options, sni_model **out,
                                     sn_error *err) {
    sni_store *store;
    unsigned char *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    if (size) memcpy(copy, bytes, size);
    assert_int_equal(sni_store_new(NULL, 0, &store, err), SN_OK);
    assert_int_equal(sni_store_own(store, copy, free, err), SN_OK);
    return sni_model_import(copy, size, store, options, out, err);
}

/* Imports and frees a message. */
static inline sn_status import_message(message *m, const sni_import_options *options,
                                       sni_model **out, sn_error *err) {
    b_done(m);
    sn_status status = import_bytes(m->bytes, m->size, options, out, err);
    b_free(m);
    return status;
}

/* Imports what must be importable. */
static inline sni_model *import_good(message *m) {
    sni_model *model = NULL;
    sn_error err = {0};
    if (import_message(m, NULL, &model, &err) != SN_OK) fail_msg("%s", err.message);
    return model;
}

/* Imports, and loads all constants of the main graph. */
static inline sn_status import_and_load(message *m, sn_error *err) {
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

static inline sni_value *value_named(const sni_graph *g, const char *name) {
    for (int32_t i = 0; i < g->value_count; i++)
        if (g->values[i] && sni_str_is(g->values[i]->name, name)) return g->values[i];
    return NULL;
}

static inline sni_node *node_of_type(const sni_graph *g, const char *type) {
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        if (sni_str_is(n->type, type)) return n;
    return NULL;
}

static inline int count_nodes(const sni_graph *g) {
    int count = 0;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) count++;
    return count;
}

#endif
