/* editor.c - OrtModelEditorApi: models built in code, and models that a session changes before it
 * is made. */
#include "ort/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- Types ---- */

static OrtStatus *new_type(ONNXType kind, const OrtTypeInfo *element, OrtTypeInfo **out) {
    OrtTypeInfo *t = calloc(1, sizeof *t);
    if (!t) return ort_fail_memory();
    t->kind = kind;
    OrtStatus *status = element ? ort_type_copy(element, &t->element) : NULL;
    if (status)
        free(t);
    else
        *out = t;
    return status;
}

static OrtStatus *tensor_type(ONNXType kind, const OrtTensorTypeAndShapeInfo *tensor,
                              OrtTypeInfo **out) {
    NEED(tensor);
    NEED(out);
    OrtTypeInfo *t = NULL;
    ORT_TRY(new_type(kind, NULL, &t));
    OrtStatus *status = ort_shape_copy(tensor, &t->tensor);
    if (status)
        ort_ReleaseTypeInfo(t);
    else
        *out = t;
    return status;
}

static OrtStatusPtr create_tensor(const OrtTensorTypeAndShapeInfo *tensor, OrtTypeInfo **out) {
    return tensor_type(ONNX_TYPE_TENSOR, tensor, out);
}

static OrtStatusPtr create_sparse(const OrtTensorTypeAndShapeInfo *tensor, OrtTypeInfo **out) {
    return tensor_type(ONNX_TYPE_SPARSETENSOR, tensor, out);
}

static OrtStatusPtr create_map(ONNXTensorElementDataType key, const OrtTypeInfo *value,
                               OrtTypeInfo **out) {
    NEED(value);
    NEED(out);
    ORT_TRY(new_type(ONNX_TYPE_MAP, value, out));
    (*out)->key = key;
    return NULL;
}

static OrtStatusPtr create_sequence(const OrtTypeInfo *element, OrtTypeInfo **out) {
    NEED(element);
    NEED(out);
    return new_type(ONNX_TYPE_SEQUENCE, element, out);
}

static OrtStatusPtr create_optional(const OrtTypeInfo *contained, OrtTypeInfo **out) {
    NEED(contained);
    NEED(out);
    return new_type(ONNX_TYPE_OPTIONAL, contained, out);
}

/* ---- Values by name and type ---- */

void ort_ReleaseValueInfo(OrtValueInfo *input) {
    ort_value_info_free(input);
}

static OrtStatusPtr create_value_info(const char *name, const OrtTypeInfo *type,
                                      OrtValueInfo **out) {
    NEED(name);
    NEED(type);
    NEED(out);
    OrtValueInfo *v = calloc(1, sizeof *v);
    OrtStatus *status =
        v && ort_replace_text(&v->name, name) ? ort_type_copy(type, &v->type) : ort_fail_memory();
    if (status)
        ort_ReleaseValueInfo(v);
    else
        *out = v;
    return status;
}

OrtStatusPtr ort_GetValueInfoName(const OrtValueInfo *value_info, const char **name) {
    NEED(value_info);
    NEED(name);
    *name = value_info->name;
    return NULL;
}

OrtStatusPtr ort_GetValueInfoTypeInfo(const OrtValueInfo *value_info,
                                      const OrtTypeInfo **type_info) {
    NEED(value_info);
    NEED(type_info);
    *type_info = value_info->type;
    return NULL;
}

/* ---- Nodes ---- */

static OrtStatus *add_names(const char *what, const char *const *names, size_t count, char ***to,
                            size_t *to_count) {
    for (size_t i = 0; i < count; i++) {
        if (!names || !names[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "CreateNode: the name of %s %zu is NULL", what,
                            i);
        if (!ort_node_add_name(to, to_count, names[i], strlen(names[i]))) return ort_fail_memory();
    }
    return NULL;
}

static OrtStatus *check_attributes(OrtOpAttr **attributes, size_t count) {
    if (count && !attributes)
        return ort_fail(ORT_INVALID_ARGUMENT, "CreateNode: the attributes are NULL");
    for (size_t i = 0; i < count; i++) {
        if (!attributes[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "CreateNode: attribute %zu is NULL", i);
        for (size_t k = 0; k < i; k++)
            if (attributes[k] == attributes[i])
                return ort_fail(ORT_INVALID_ARGUMENT, "CreateNode: attribute '%s' is given twice",
                                attributes[i]->name);
    }
    return NULL;
}

static OrtStatus *new_node(const char *op, const char *domain, const char *name, OrtNode **out) {
    OrtNode *n = calloc(1, sizeof *n);
    if (n && ort_replace_text(&n->op, op) && ort_replace_text(&n->domain, domain) &&
        ort_replace_text(&n->name, name)) {
        *out = n;
        return NULL;
    }
    ort_node_free(n);
    return ort_fail_memory();
}

/* The node takes the attributes over: their entries become NULL. */
static OrtStatusPtr create_node(const char *op, const char *domain, const char *name,
                                const char *const *inputs, size_t input_count,
                                const char *const *outputs, size_t output_count,
                                OrtOpAttr **attributes, size_t attribute_count, OrtNode **out) {
    NEED(op);
    NEED(name);
    NEED(out);
    if (!*op) return ort_fail(ORT_INVALID_ARGUMENT, "CreateNode: the operator's name is empty");
    ORT_TRY(check_attributes(attributes, attribute_count));
    OrtNode *n = NULL;
    ORT_TRY(new_node(op, domain && strcmp(domain, "ai.onnx") != 0 ? domain : "", name, &n));
    OrtStatus *status = add_names("input", inputs, input_count, &n->input_names, &n->input_count);
    if (!status)
        status = add_names("output", outputs, output_count, &n->output_names, &n->output_count);
    if (!status && attribute_count) {
        n->attributes = calloc(attribute_count, sizeof(OrtOpAttr *));
        if (!n->attributes) status = ort_fail_memory();
    }
    if (status) {
        ort_node_free(n);
        return status;
    }
    for (size_t i = 0; i < attribute_count; i++) {
        n->attributes[n->attribute_count++] = attributes[i];
        attributes[i] = NULL;
    }
    *out = n;
    return NULL;
}

void ort_ReleaseNode(OrtNode *input) {
    ort_node_free(input);
}

/* ---- Graphs ---- */

static OrtStatusPtr create_graph(OrtGraph **out) {
    NEED(out);
    OrtGraph *g = ort_graph_new("");
    if (!g) return ort_fail_memory();
    *out = g;
    return NULL;
}

void ort_ReleaseGraph(OrtGraph *input) {
    ort_graph_free(input);
}

static OrtStatus *check_ports(OrtValueInfo **ports, size_t count) {
    if (count && !ports) return ort_fail(ORT_INVALID_ARGUMENT, "the list of values is NULL");
    for (size_t i = 0; i < count; i++) {
        if (!ports[i]) return ort_fail(ORT_INVALID_ARGUMENT, "value %zu of the list is NULL", i);
        if (ports[i]->graph)
            return ort_fail(ORT_INVALID_ARGUMENT, "value '%s' belongs to a graph already",
                            ports[i]->name);
        for (size_t k = 0; k < i; k++)
            if (ports[k] == ports[i])
                return ort_fail(ORT_INVALID_ARGUMENT, "value '%s' is in the list twice",
                                ports[i]->name);
    }
    return NULL;
}

/* The graph takes the values over: their entries become NULL. */
static OrtStatus *set_ports(OrtGraph *graph, OrtValueInfo **ports, size_t count, bool inputs) {
    NEED(graph);
    ORT_TRY(check_ports(ports, count));
    OrtValueInfo **list = calloc(count + 1, sizeof(OrtValueInfo *));
    if (!list) return ort_fail_memory();
    for (size_t i = 0; i < count; i++) {
        list[i] = ort_graph_value(graph, ports[i]->name);
        if (list[i]) continue;
        free(list);
        return ort_fail_memory();
    }
    OrtValueInfo ***place = inputs ? &graph->inputs : &graph->outputs;
    size_t *place_count = inputs ? &graph->input_count : &graph->output_count;
    for (size_t i = 0; i < *place_count; i++)
        *(inputs ? &(*place)[i]->is_input : &(*place)[i]->is_output) = false;
    free(*place);
    *place = list;
    *place_count = count;
    for (size_t i = 0; i < count; i++) {
        *(inputs ? &list[i]->is_input : &list[i]->is_output) = true;
        list[i]->proto = (ort_bytes){0};
        ort_ReleaseTypeInfo(list[i]->type);
        list[i]->type = ports[i]->type;
        ports[i]->type = NULL;
        ort_value_info_free(ports[i]);
        ports[i] = NULL;
    }
    return NULL;
}

static OrtStatusPtr set_inputs(OrtGraph *graph, OrtValueInfo **inputs, size_t count) {
    return set_ports(graph, inputs, count, true);
}

static OrtStatusPtr set_outputs(OrtGraph *graph, OrtValueInfo **outputs, size_t count) {
    return set_ports(graph, outputs, count, false);
}

enum { SMALL = 127 }; /* bytes: tensors up to here cannot be called external */

static OrtStatusPtr add_initializer(OrtGraph *graph, const char *name, OrtValue *tensor,
                                    bool data_is_external) {
    NEED(graph);
    NEED(name);
    NEED(tensor);
    if (!*name) return ort_fail(ORT_INVALID_ARGUMENT, "name cannot be null or empty");
    if (sn_value_kind(ort_sn(tensor)) != SN_KIND_TENSOR)
        return ort_fail(ORT_INVALID_ARGUMENT, "initialiser '%s' is not a tensor", name);
    if (data_is_external && sn_tensor_bytes(ort_sn(tensor)) <= SMALL)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "data_is_external=true requires the tensor to be larger than %d bytes",
                        SMALL);
    for (size_t i = 0; i < graph->initializer_count; i++)
        if (graph->initializers[i]->weight == tensor)
            return ort_fail(ORT_INVALID_ARGUMENT, "the tensor is an initialiser already");
    OrtValueInfo *v = ort_graph_value(graph, name);
    if (!v) return ort_fail_memory();
    if (v->is_initializer)
        return ort_fail(ORT_INVALID_ARGUMENT, "there is an initialiser '%s' already", name);
    if (!v->type) ORT_TRY(ort_type_of_value(ort_sn(tensor), &v->type));
    if (!ort_list_add(&graph->initializers, &graph->initializer_count, v)) return ort_fail_memory();
    v->is_initializer = true;
    v->weight = tensor;
    return NULL;
}

static OrtStatusPtr add_node(OrtGraph *graph, OrtNode *node) {
    NEED(graph);
    NEED(node);
    if (node->graph)
        return ort_fail(ORT_INVALID_ARGUMENT, "node '%s' is in a graph already", node->name);
    if (!ort_list_add(&graph->nodes, &graph->node_count, node)) return ort_fail_memory();
    node->graph = graph;
    node->index = node->id = graph->node_count - 1;
    return NULL;
}

/* ---- Models ---- */

static OrtStatusPtr create_model(const char *const *domains, const int *versions, size_t count,
                                 OrtModel **out) {
    NEED(out);
    if (count) NEED(domains);
    if (count) NEED(versions);
    OrtModel *m = ort_model_new();
    bool good = m != NULL;
    for (size_t i = 0; i < count && good; i++)
        good = domains[i] && ort_model_set_opset(m, domains[i], versions[i]);
    if (good) {
        *out = m;
        return NULL;
    }
    ort_model_free(m);
    return ort_fail_memory();
}

static OrtStatusPtr add_graph(OrtModel *model, OrtGraph *graph) {
    NEED(model);
    NEED(graph);
    if (model->graph) return ort_fail(ORT_INVALID_ARGUMENT, "the model has a graph already");
    if (graph->model) return ort_fail(ORT_INVALID_ARGUMENT, "the graph is in a model already");
    model->graph = graph;
    graph->model = model;
    return NULL;
}

void ort_ReleaseModel(OrtModel *input) {
    ort_model_free(input);
}

OrtStatus *ort_model_to_bytes(const OrtModel *model, ort_sink *out) {
    if (!model->graph) return ort_fail(ORT_INVALID_ARGUMENT, "the model has no graph");
    ORT_TRY(ort_graph_link(model->graph));
    OrtStatus *status = ort_model_write(model, out);
    if (status) free(out->bytes);
    return status;
}

static OrtStatusPtr session_from_model(const OrtEnv *env, const OrtModel *model,
                                       const OrtSessionOptions *options, OrtSession **out) {
    NEED(env);
    NEED(model);
    NEED(out);
    ort_sink bytes = {0};
    ORT_TRY(ort_model_to_bytes(model, &bytes));
    OrtStatus *status =
        ort_session_make(&(ort_source){.bytes = bytes.bytes, .size = bytes.size}, options, out);
    free(bytes.bytes);
    return status;
}

/* ---- Models that a session changes before it is made ---- */

static OrtStatusPtr editor_session(const OrtEnv *env, const char *path,
                                   const OrtSessionOptions *options, OrtSession **out) {
    NEED(env);
    NEED(path);
    NEED(out);
    ort_file_bytes file;
    ORT_TRY(ort_file_read(path, &file));
    OrtStatus *status = ort_session_draft(
        &(ort_source){.bytes = file.p, .size = file.size, .origin = path}, options, out);
    ort_file_free(&file);
    return status;
}

static OrtStatusPtr editor_session_from_bytes(const OrtEnv *env, const void *bytes, size_t size,
                                              const OrtSessionOptions *options, OrtSession **out) {
    NEED(env);
    NEED(bytes);
    NEED(out);
    return ort_session_draft(&(ort_source){.bytes = bytes, .size = size}, options, out);
}

/* Moves inputs or outputs that a model sets to the session's. */
static OrtStatus *move_ports(OrtGraph *to, OrtValueInfo *const *ports, size_t count, bool inputs) {
    if (!count) return NULL;
    OrtValueInfo **copies = calloc(count, sizeof(OrtValueInfo *));
    OrtStatus *status = copies ? NULL : ort_fail_memory();
    for (size_t i = 0; i < count && !status; i++)
        status = create_value_info(ports[i]->name, ports[i]->type, &copies[i]);
    if (!status) status = set_ports(to, copies, count, inputs);
    for (size_t i = 0; copies && i < count; i++) ort_value_info_free(copies[i]);
    free(copies);
    return status;
}

static OrtStatus *merge_graph(OrtGraph *to, OrtGraph *from) {
    for (size_t i = 0; i < from->initializer_count; i++) {
        OrtValueInfo *v = from->initializers[i];
        if (!v->weight) continue;
        ORT_TRY(add_initializer(to, v->name, v->weight, false));
        v->weight = NULL;
    }
    for (size_t i = 0; i < from->node_count; i++) {
        from->nodes[i]->graph = NULL;
        ORT_TRY(add_node(to, from->nodes[i]));
    }
    from->node_count = 0;
    ORT_TRY(move_ports(to, from->inputs, from->input_count, true));
    return move_ports(to, from->outputs, from->output_count, false);
}

static OrtStatusPtr apply_model(OrtSession *session, OrtModel *model) {
    NEED(session);
    NEED(model);
    if (!session->draft)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "the session was not made by CreateModelEditorSession");
    if (!model->graph) return ort_fail(ORT_INVALID_ARGUMENT, "the model has no graph");
    for (size_t i = 0; i < model->opset_count; i++) {
        const ort_opset *o = &model->opsets[i];
        int64_t have = ort_model_opset(session->draft, o->domain);
        if (have && have != o->version)
            return ort_fail(ORT_FAIL, "the model uses version %lld of domain '%s', not %lld",
                            (long long)have, o->domain, (long long)o->version);
        if (!ort_model_set_opset(session->draft, o->domain, o->version)) return ort_fail_memory();
    }
    ORT_TRY(merge_graph(session->draft->graph, model->graph));
    return ort_graph_link(session->draft->graph);
}

static OrtStatusPtr finalize(OrtSession *session, const OrtSessionOptions *options,
                             OrtPrepackedWeightsContainer *container) {
    (void)container;
    NEED(session);
    if (!session->draft)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "the session was not made by CreateModelEditorSession");
    return ort_session_finish(session, options);
}

static OrtStatusPtr opset_of(const OrtSession *session, const char *domain, int *out) {
    NEED(session);
    NEED(domain);
    NEED(out);
    const char *name;
    int64_t version;
    for (size_t i = 0; sn_model_opset(session->model, i, &name, &version); i++) {
        if (strcmp(name, domain) != 0) continue;
        *out = (int)version;
        return NULL;
    }
    return ort_fail(ORT_INVALID_ARGUMENT, "the model uses no operators of domain '%s'", domain);
}

const OrtModelEditorApi *ort_GetModelEditorApi(void) {
    static const OrtModelEditorApi api = {
        .CreateTensorTypeInfo = create_tensor,
        .CreateSparseTensorTypeInfo = create_sparse,
        .CreateMapTypeInfo = create_map,
        .CreateSequenceTypeInfo = create_sequence,
        .CreateOptionalTypeInfo = create_optional,
        .CreateValueInfo = create_value_info,
        .CreateNode = create_node,
        .CreateGraph = create_graph,
        .SetGraphInputs = set_inputs,
        .SetGraphOutputs = set_outputs,
        .AddInitializerToGraph = add_initializer,
        .AddNodeToGraph = add_node,
        .CreateModel = create_model,
        .AddGraphToModel = add_graph,
        .CreateSessionFromModel = session_from_model,
        .CreateModelEditorSession = editor_session,
        .CreateModelEditorSessionFromArray = editor_session_from_bytes,
        .SessionGetOpsetForDomain = opset_of,
        .ApplyModelToModelEditorSession = apply_model,
        .FinalizeModelEditorSession = finalize,
    };
    return &api;
}
