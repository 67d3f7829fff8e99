/* plugin_compile.c - a provider that fuses Mul and Add of floats and keeps their weights. */
#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 };

typedef struct provider {
    OrtEp base;
    const char *name;
} provider;

typedef struct operand { /* an input of the part, a weight, or an earlier result */
    int input, step;     /* -1: not that */
    float *weight;
    size_t count;
} operand;

typedef struct part {
    OrtNodeComputeInfo base;
    bool mul[MOST];
    operand operands[MOST][2];
    int count, output;
} part;

static bool is_taken(const OrtNode *node) {
    const char *op = NULL, *domain = NULL;
    size_t inputs = 0;
    const OrtValueInfo *in[2];
    if (ort->Node_GetOperatorType(node, &op) || ort->Node_GetDomain(node, &domain) ||
        ort->Node_GetNumInputs(node, &inputs) || inputs != 2 || ort->Node_GetInputs(node, in, 2))
        return false;
    const OrtTypeInfo *type;
    const OrtTensorTypeAndShapeInfo *tensor;
    ONNXTensorElementDataType element;
    if (ort->GetValueInfoTypeInfo(in[0], &type) || ort->CastTypeInfoToTensorInfo(type, &tensor) ||
        ort->GetTensorElementType(tensor, &element))
        return false;
    bool constant; /* so that no Relu lies between two of them */
    if (ort->ValueInfo_IsConstantInitializer(in[1], &constant) || !constant) return false;
    return !*domain && (strcmp(op, "Mul") == 0 || strcmp(op, "Add") == 0) &&
           element == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}

static OrtStatusPtr get_capability(OrtEp *self, const OrtGraph *graph,
                                   OrtEpGraphSupportInfo *support) {
    (void)self;
    size_t count;
    const OrtNode *nodes[64], *taken[64];
    TRY(fail_at("GetCapability"));
    TRY(ort->Graph_GetNumNodes(graph, &count));
    if (count > 64) return NULL;
    TRY(ort->Graph_GetNodes(graph, nodes, count));
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (is_taken(nodes[i])) taken[n++] = nodes[i];
    if (!n) return NULL;
    OrtNodeFusionOptions options = {.ort_version_supported = 24,
                                    .drop_constant_initializers = true};
    return ep_api->EpGraphSupportInfo_AddNodesToFuse(support, taken, n, &options);
}

/* ---- Compiling ---- */

static OrtStatus *read_operand(const OrtValueInfo *v, const OrtNode *fused, const OrtNode **nodes,
                               size_t count, operand *out) {
    const char *name, *other;
    const OrtValueInfo *ports[MOST];
    size_t ports_count;
    bool constant;
    *out = (operand){.input = -1, .step = -1};
    TRY(ort->GetValueInfoName(v, &name));
    TRY(ort->ValueInfo_IsConstantInitializer(v, &constant));
    if (constant) {
        const OrtValue *value;
        const void *data;
        TRY(ort->ValueInfo_GetInitializerValue(v, &value));
        TRY(count_of(value, &out->count, NULL, NULL));
        TRY(ort->GetTensorData(value, &data));
        out->weight = malloc(out->count * sizeof(float));
        memcpy(out->weight, data, out->count * sizeof(float));
        note("weight kept");
        return NULL;
    }
    TRY(ort->Node_GetNumInputs(fused, &ports_count));
    TRY(ort->Node_GetInputs(fused, ports, ports_count));
    for (size_t i = 0; i < ports_count; i++) {
        TRY(ort->GetValueInfoName(ports[i], &other));
        if (strcmp(name, other) == 0) out->input = (int)i;
    }
    for (size_t i = 0; i < count; i++) {
        const OrtValueInfo *made;
        TRY(ort->Node_GetOutputs(nodes[i], &made, 1));
        TRY(ort->GetValueInfoName(made, &other));
        if (strcmp(name, other) == 0) out->step = (int)i;
    }
    return NULL;
}

static const float *data_of(const operand *o, OrtKernelContext *context, float *const *results,
                            size_t *count) {
    const OrtValue *value;
    const void *data;
    if (o->weight) {
        *count = o->count;
        return o->weight;
    }
    if (o->step >= 0) return results[o->step];
    if (ort->KernelContext_GetInput(context, (size_t)o->input, &value) ||
        count_of(value, count, NULL, NULL) || ort->GetTensorData(value, &data))
        return NULL;
    return data;
}

static OrtStatus *compute(OrtNodeComputeInfo *self, void *state, OrtKernelContext *context) {
    const part *p = (const part *)self;
    (void)state;
    note("Compute");
    TRY(fail_at("Compute"));
    const OrtValue *x;
    OrtValue *y;
    int64_t dims[8];
    size_t count, rank;
    float *results[MOST] = {0};
    void *out;
    TRY(ort->KernelContext_GetInput(context, 0, &x));
    TRY(count_of(x, &count, dims, &rank));
    TRY(ort->KernelContext_GetOutput(context, 0, dims, rank, &y));
    TRY(ort->GetTensorMutableData(y, &out));
    for (int i = 0; i < p->count; i++) {
        size_t n[2] = {count, count};
        const float *a = data_of(&p->operands[i][0], context, results, &n[0]);
        const float *b = data_of(&p->operands[i][1], context, results, &n[1]);
        results[i] = malloc((count + 1) * sizeof(float));
        for (size_t k = 0; k < count; k++)
            results[i][k] = p->mul[i] ? a[k % n[0]] * b[k % n[1]] : a[k % n[0]] + b[k % n[1]];
    }
    memcpy(out, results[p->output], count * sizeof(float));
    for (int i = 0; i < p->count; i++) free(results[i]);
    return NULL;
}

static OrtStatus *create_state(OrtNodeComputeInfo *self, OrtNodeComputeContext *context,
                               void **state) {
    TRY(fail_at("CreateState"));
    note(ep_api->NodeComputeContext_NodeName(context)[0] ? "CreateState" : "state without a name");
    *state = self;
    return NULL;
}

static void release_state(OrtNodeComputeInfo *self, void *state) {
    note(state == self ? "ReleaseState" : "a wrong state");
}

static OrtStatus *compile_one(const OrtGraph *graph, const OrtNode *fused, part *p) {
    size_t count, outputs;
    const OrtNode *nodes[MOST];
    const OrtValueInfo *in[2], *made, *result;
    TRY(ort->Graph_GetNumNodes(graph, &count));
    TRY(ort->Graph_GetNodes(graph, nodes, count));
    TRY(ort->Node_GetNumOutputs(fused, &outputs));
    if (outputs != 1) return ort->CreateStatus(ORT_EP_FAIL, "a part has one output");
    TRY(ort->Node_GetOutputs(fused, &result, 1));
    for (size_t i = 0; i < count; i++) {
        const char *op, *name, *wanted;
        TRY(ort->Node_GetOperatorType(nodes[i], &op));
        p->mul[i] = strcmp(op, "Mul") == 0;
        TRY(ort->Node_GetInputs(nodes[i], in, 2));
        for (int k = 0; k < 2; k++)
            TRY(read_operand(in[k], fused, nodes, count, &p->operands[i][k]));
        TRY(ort->Node_GetOutputs(nodes[i], &made, 1));
        TRY(ort->GetValueInfoName(made, &name));
        TRY(ort->GetValueInfoName(result, &wanted));
        if (strcmp(name, wanted) == 0) p->output = (int)i;
        p->count++;
    }
    return NULL;
}

static OrtStatusPtr compile(OrtEp *self, const OrtGraph **graphs, const OrtNode **fused,
                            size_t count, OrtNodeComputeInfo **infos, OrtNode **contexts) {
    (void)self, (void)contexts;
    note("Compile");
    TRY(fail_at("Compile"));
    for (size_t i = 0; i < count; i++) {
        part *p = calloc(1, sizeof *p);
        p->base = (OrtNodeComputeInfo){.ort_version_supported = 24,
                                       .CreateState = create_state,
                                       .Compute = compute,
                                       .ReleaseState = release_state};
        infos[i] = &p->base;
        TRY(compile_one(graphs[i], fused[i], p));
    }
    return NULL;
}

static void release_infos(OrtEp *self, OrtNodeComputeInfo **infos, size_t count) {
    (void)self;
    for (size_t i = 0; i < count; i++) {
        part *p = (part *)infos[i];
        for (int k = 0; k < p->count; k++)
            for (int o = 0; o < 2; o++) free(p->operands[k][o].weight);
        free(p);
        note("part released");
    }
}

/* ---- The provider ---- */

static const char *get_name(const OrtEp *self) {
    return ((const provider *)self)->name;
}

static OrtStatusPtr on_run_start(OrtEp *self, const OrtRunOptions *options) {
    (void)self, (void)options;
    note("OnRunStart");
    return fail_at("OnRunStart");
}

static OrtStatusPtr on_run_end(OrtEp *self, const OrtRunOptions *options, bool sync) {
    (void)self, (void)options, (void)sync;
    note("OnRunEnd");
    return NULL;
}

static OrtStatusPtr create_ep(OrtEpFactory *self, const OrtHardwareDevice *const *devices,
                              const OrtKeyValuePairs *const *metadata, size_t count,
                              const OrtSessionOptions *options, const OrtLogger *logger,
                              OrtEp **out) {
    (void)devices, (void)logger;
    char text[32];
    size_t size = sizeof text;
    TRY(fail_at("CreateEp"));
    note(count == 1 && strcmp(ort->GetKeyValue(metadata[0], "kind"), "TestCompiling") == 0
             ? "CreateEp with metadata"
             : "CreateEp without metadata");
    TRY(ort->GetSessionConfigEntry(options, "ep.testcompiling.speed", text, &size));
    note(strcmp(text, "slow") == 0 ? "an option of the caller's" : "a default option");
    provider *p = calloc(1, sizeof *p);
    p->name = ((factory *)self)->name;
    p->base = (OrtEp){.ort_version_supported = 24,
                      .GetName = get_name,
                      .GetCapability = get_capability,
                      .Compile = compile,
                      .ReleaseNodeComputeInfos = release_infos,
                      .OnRunStart = on_run_start,
                      .OnRunEnd = on_run_end};
    *out = &p->base;
    return NULL;
}

void compiling_init(factory *f) {
    factory_init(f, "TestCompiling");
    f->base.CreateEp = create_ep;
}
