/* provider.c LIBRARY PLUGIN - models built in code and plug-in providers, through any library
 * with ONNX Runtime's interface. What it prints is the same on all of them. */
#include "ort/ort_ep_abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OrtApi *ort;
static const OrtModelEditorApi *editor;
static OrtEnv *env;
static int (*plugin_count)(const char *what);
static void (*plugin_fail)(const char *what);

static void check(OrtStatus *status, const char *what) {
    if (!status) return;
    fprintf(stderr, "%s: %s\n", what, ort->GetErrorMessage(status));
    exit(1);
}
#define DO(expr) check(expr, #expr)

static void refused(const char *what, OrtStatus *status) {
    printf("%s: %s\n", what, status ? "refused" : "taken");
    if (status) ort->ReleaseStatus(status);
}

/* ---- A model in code: y = Relu((x * w) + b), z = y * x ---- */

static OrtValueInfo *float_value(const char *name, int64_t rows, const char *symbol) {
    OrtTensorTypeAndShapeInfo *shape;
    OrtTypeInfo *type;
    OrtValueInfo *value;
    int64_t dims[2] = {rows, 3};
    const char *symbols[2] = {symbol, ""};
    DO(ort->CreateTensorTypeAndShapeInfo(&shape));
    DO(ort->SetTensorElementType(shape, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT));
    DO(ort->SetDimensions(shape, dims, 2));
    if (*symbol) DO(ort->SetSymbolicDimensions(shape, symbols, 2));
    DO(editor->CreateTensorTypeInfo(shape, &type));
    DO(editor->CreateValueInfo(name, type, &value));
    ort->ReleaseTypeInfo(type);
    ort->ReleaseTensorTypeAndShapeInfo(shape);
    return value;
}

static OrtValue *weight(const float *v) {
    OrtAllocator *allocator;
    OrtValue *value;
    void *data;
    int64_t dims[1] = {3};
    DO(ort->GetAllocatorWithDefaultOptions(&allocator));
    DO(ort->CreateTensorAsOrtValue(allocator, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                   &value));
    DO(ort->GetTensorMutableData(value, &data));
    memcpy(data, v, 3 * sizeof *v);
    return value;
}

static void add_node(OrtGraph *graph, const char *op, const char *a, const char *b,
                     const char *out) {
    const char *inputs[2] = {a, b};
    OrtNode *node;
    DO(editor->CreateNode(op, "", out, inputs, b ? 2 : 1, &out, 1, NULL, 0, &node));
    DO(editor->AddNodeToGraph(graph, node));
}

static OrtModel *build(int64_t rows, const char *symbol) {
    static const float w[3] = {2, -1, 0.5f}, b[3] = {1, 2, -3};
    static const char *const domains[1] = {""};
    static const int versions[1] = {17};
    OrtGraph *graph;
    OrtModel *model;
    OrtValueInfo *inputs[1] = {float_value("x", rows, symbol)};
    OrtValueInfo *outputs[2] = {float_value("y", rows, symbol), float_value("z", rows, symbol)};
    DO(editor->CreateGraph(&graph));
    DO(editor->SetGraphInputs(graph, inputs, 1));
    DO(editor->SetGraphOutputs(graph, outputs, 2));
    printf("ownership: %d %d\n", inputs[0] == NULL, outputs[1] == NULL);
    DO(editor->AddInitializerToGraph(graph, "w", weight(w), false));
    DO(editor->AddInitializerToGraph(graph, "b", weight(b), false));
    OrtValue *again = weight(w);
    refused("an initialiser twice", editor->AddInitializerToGraph(graph, "w", again, false));
    refused("a small external one", editor->AddInitializerToGraph(graph, "v", again, true));
    ort->ReleaseValue(again);
    add_node(graph, "Relu", "sum", NULL, "y"); /* in no order */
    add_node(graph, "Mul", "x", "w", "product");
    add_node(graph, "Add", "product", "b", "sum");
    add_node(graph, "Mul", "y", "x", "z");
    DO(editor->CreateModel(domains, versions, 1, &model));
    DO(editor->AddGraphToModel(model, graph));
    return model;
}

/* ---- Runs ---- */

static OrtValue *input(size_t rows, float *data) {
    OrtMemoryInfo *memory;
    OrtValue *value;
    int64_t dims[2] = {(int64_t)rows, 3};
    for (size_t i = 0; i < rows * 3; i++) data[i] = (float)i - 2.5f;
    DO(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &memory));
    DO(ort->CreateTensorWithDataAsOrtValue(memory, data, rows * 3 * sizeof *data, dims, 2,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    ort->ReleaseMemoryInfo(memory);
    return value;
}

static void run(OrtSession *session, size_t rows) {
    static const char *const in[1] = {"x"}, *const out[2] = {"y", "z"};
    float data[64];
    OrtValue *x = input(rows, data), *results[2] = {NULL, NULL};
    DO(ort->Run(session, NULL, in, (const OrtValue *const *)&x, 1, out, 2, results));
    for (int i = 0; i < 2; i++) {
        void *values;
        DO(ort->GetTensorMutableData(results[i], &values));
        printf("%s:", out[i]);
        for (size_t k = 0; k < rows * 3; k++) printf(" %g", (double)((float *)values)[k]);
        printf("\n");
        ort->ReleaseValue(results[i]);
    }
    ort->ReleaseValue(x);
}

static void tell_assignment(const OrtSession *session) {
    const OrtEpAssignedSubgraph *const *parts;
    size_t count;
    int taken = 0, cpu = 0;
    DO(ort->Session_GetEpGraphAssignmentInfo(session, &parts, &count));
    for (size_t i = 0; i < count; i++) {
        const char *name, *op;
        const OrtEpAssignedNode *const *nodes;
        size_t n;
        DO(ort->EpAssignedSubgraph_GetEpName(parts[i], &name));
        DO(ort->EpAssignedSubgraph_GetNodes(parts[i], &nodes, &n));
        bool is_cpu = strcmp(name, "CPUExecutionProvider") == 0;
        for (size_t k = 0; k < n; k++) {
            DO(ort->EpAssignedNode_GetOperatorType(nodes[k], &op));
            *(is_cpu ? &cpu : &taken) += 1;
        }
    }
    printf("nodes: %d with the provider, %d on the CPU\n", taken, cpu);
}

static void tell_counts(const char *const *what) {
    for (; *what; what++) printf("  %s: %d\n", *what, plugin_count(*what));
}

static const OrtEpDevice *find_device(const char *name) {
    const OrtEpDevice *const *devices;
    size_t count;
    DO(ort->GetEpDevices(env, &devices, &count));
    for (size_t i = 0; i < count; i++)
        if (strcmp(ort->EpDevice_EpName(devices[i]), name) == 0) return devices[i];
    return NULL;
}

static OrtSessionOptions *options_for(const char *name) {
    static const char *const keys[1] = {"speed"}, *const values[1] = {"slow"};
    const OrtEpDevice *device = find_device(name);
    OrtSessionOptions *options;
    if (!device) {
        fprintf(stderr, "there is no device of %s\n", name);
        exit(1);
    }
    DO(ort->CreateSessionOptions(&options));
    DO(ort->AddSessionConfigEntry(options, "session.record_ep_graph_assignment_info", "1"));
    DO(ort->SessionOptionsAppendExecutionProvider_V2(options, env, &device, 1, keys, values, 1));
    return options;
}

static void with_provider(const char *name, int64_t rows, const char *symbol,
                          const char *const *counts) {
    printf("== %s, %s rows\n", name, *symbol ? symbol : "two");
    OrtSessionOptions *options = options_for(name);
    OrtModel *model = build(rows, symbol);
    OrtSession *session;
    DO(editor->CreateSessionFromModel(env, model, options, &session));
    ort->ReleaseModel(model);
    tell_assignment(session);
    run(session, 2);
    if (*symbol) run(session, 3);
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
    tell_counts(counts);
}

/* ---- The parts of the test ---- */

static void devices(void) {
    static const char *const names[3] = {"TestCompiling", "TestKernels", "TestDevice"};
    for (int i = 0; i < 3; i++) {
        const OrtEpDevice *d = find_device(names[i]);
        if (!d) continue;
        const OrtKeyValuePairs *metadata = ort->EpDevice_EpMetadata(d);
        const OrtMemoryInfo *memory = ort->EpDevice_MemoryInfo(d, OrtDeviceMemoryType_DEFAULT);
        const char *memory_name = "none";
        if (memory) DO(ort->MemoryInfoGetName(memory, &memory_name));
        printf("%s of %s: version %s, kind %s, speed %s, hardware %d, memory %s\n", names[i],
               ort->EpDevice_EpVendor(d), ort->GetKeyValue(metadata, "version"),
               ort->GetKeyValue(metadata, "kind"),
               ort->GetKeyValue(ort->EpDevice_EpOptions(d), "speed"),
               (int)ort->HardwareDevice_Type(ort->EpDevice_Device(d)), memory_name);
    }
}

/* Tensors on the device, copied there and back. */
static void copies(void) {
    const OrtEpDevice *d = find_device("TestDevice");
    const OrtMemoryInfo *memory = ort->EpDevice_MemoryInfo(d, OrtDeviceMemoryType_DEFAULT), *told;
    OrtAllocator *allocator;
    OrtSyncStream *stream;
    OrtValue *there, *back;
    OrtMemoryInfoDeviceType type;
    float data[6], again[6] = {0};
    int64_t dims[2] = {2, 3};
    OrtMemoryInfo *host;
    printf("== copies\n");
    plugin_count("copy up");
    plugin_count("copy down");
    DO(ort->GetSharedAllocator(env, memory, &allocator));
    DO(ort->CreateTensorAsOrtValue(allocator, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                   &there));
    DO(ort->GetTensorMemoryInfo(there, &told));
    ort->MemoryInfoGetDeviceType(told, &type);
    printf("a tensor on device type %d\n", (int)type);
    OrtValue *x = input(2, data);
    DO(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &host));
    DO(ort->CreateTensorWithDataAsOrtValue(host, again, sizeof again, dims, 2,
                                           ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &back));
    DO(ort->CreateSyncStreamForEpDevice(d, NULL, &stream));
    printf("a stream with a handle: %d\n", ort->SyncStream_GetHandle(stream) != NULL);
    DO(ort->CopyTensors(env, (const OrtValue *const *)&x, &there, stream, 1));
    DO(ort->CopyTensors(env, (const OrtValue *const *)&there, &back, NULL, 1));
    printf("back:");
    for (int i = 0; i < 6; i++) printf(" %g", (double)again[i]);
    printf("\n");
    ort->ReleaseSyncStream(stream);
    ort->ReleaseMemoryInfo(host);
    ort->ReleaseValue(x);
    ort->ReleaseValue(back);
    ort->ReleaseValue(there);
    static const char *const counts[] = {"copy up", "copy down", NULL};
    tell_counts(counts);
    plugin_count("stream made");
    plugin_count("stream released");
    plugin_count("Alloc");
    plugin_count("Free");
}

/* A session whose model gets one more node before it is made. */
static void augmented(void) {
    printf("== a model that is changed\n");
    OrtModel *model = build(2, ""), *more;
    OrtSession *session;
    void *bytes = NULL;
    size_t size = 0;
    OrtSessionOptions *options;
    OrtAllocator *allocator;
    OrtModelCompilationOptions *compile;
    const OrtCompileApi *api = ort->GetCompileApi();
    DO(ort->CreateSessionOptions(&options));
    DO(ort->GetAllocatorWithDefaultOptions(&allocator));
    DO(api->CreateModelCompilationOptionsFromSessionOptions(env, options, &compile));
    DO(api->ModelCompilationOptions_SetInputModel(compile, model));
    DO(api->ModelCompilationOptions_SetOutputModelBuffer(compile, allocator, &bytes, &size));
    DO(api->CompileModel(env, compile));
    api->ReleaseModelCompilationOptions(compile);
    ort->ReleaseModel(model);
    DO(editor->CreateModelEditorSessionFromArray(env, bytes, size, options, &session));
    int opset = 0;
    DO(editor->SessionGetOpsetForDomain(session, "", &opset));
    OrtGraph *graph;
    OrtValueInfo *outputs[2] = {float_value("y", 2, ""), float_value("n", 2, "")};
    static const char *const domains[1] = {""};
    DO(editor->CreateGraph(&graph));
    add_node(graph, "Neg", "z", NULL, "n");
    DO(editor->SetGraphOutputs(graph, outputs, 2));
    DO(editor->CreateModel(domains, &opset, 1, &more));
    DO(editor->AddGraphToModel(more, graph));
    DO(editor->ApplyModelToModelEditorSession(session, more));
    ort->ReleaseModel(more);
    DO(editor->FinalizeModelEditorSession(session, options, NULL));
    float data[6];
    static const char *const in[1] = {"x"}, *const out[1] = {"n"};
    OrtValue *x = input(2, data), *n = NULL;
    void *values;
    DO(ort->Run(session, NULL, in, (const OrtValue *const *)&x, 1, out, 1, &n));
    DO(ort->GetTensorMutableData(n, &values));
    printf("n:");
    for (int i = 0; i < 6; i++) printf(" %g", (double)((float *)values)[i]);
    printf("\n");
    ort->ReleaseValue(n);
    ort->ReleaseValue(x);
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
    DO(ort->AllocatorFree(allocator, bytes));
}

/* Whatever a provider fails at, the program hears of it and goes on. */
static void failures(void) {
    static const char *const where[] = {"CreateEp",   "GetCapability", "Compile", "CreateState",
                                        "OnRunStart", "Compute",       NULL};
    static const char *const in[1] = {"x"}, *const out[1] = {"y"};
    printf("== failures\n");
    for (int i = 0; where[i]; i++) {
        OrtSessionOptions *options = options_for("TestCompiling");
        OrtModel *model = build(2, "");
        OrtSession *session = NULL;
        float data[6];
        plugin_fail(where[i]);
        OrtStatus *status = editor->CreateSessionFromModel(env, model, options, &session);
        printf("%s: session %s", where[i], status ? "refused" : "made");
        if (!status) {
            OrtValue *x = input(2, data), *y = NULL;
            status = ort->Run(session, NULL, in, (const OrtValue *const *)&x, 1, out, 1, &y);
            printf(", run %s", status ? "refused" : "done");
            ort->ReleaseValue(x);
            ort->ReleaseValue(y);
        }
        bool told = status && strstr(ort->GetErrorMessage(status), "told to fail");
        /* ONNX Runtime keeps to itself why no state was made. */
        printf(", told why: %d\n", told || strcmp(where[i], "CreateState") == 0);
        if (status) ort->ReleaseStatus(status);
        ort->ReleaseSession(session);
        ort->ReleaseModel(model);
        ort->ReleaseSessionOptions(options);
    }
    plugin_fail("");
}

static void wrong(const char *plugin) {
    printf("== mistakes\n");
    const OrtEpDevice *d[2] = {find_device("TestKernels"), find_device("TestDevice")};
    OrtSessionOptions *options;
    DO(ort->CreateSessionOptions(&options));
    refused("a library twice", ort->RegisterExecutionProviderLibrary(env, "tests", plugin));
    refused("no library", ort->RegisterExecutionProviderLibrary(env, "no", "/nowhere.so"));
    refused("an unknown one", ort->UnregisterExecutionProviderLibrary(env, "unknown"));
    refused("devices of two providers",
            ort->SessionOptionsAppendExecutionProvider_V2(options, env, d, 2, NULL, NULL, 0));
    refused("no devices",
            ort->SessionOptionsAppendExecutionProvider_V2(options, env, d, 0, NULL, NULL, 0));
    OrtSyncStream *stream;
    refused("streams of a provider without",
            ort->CreateSyncStreamForEpDevice(find_device("TestKernels"), NULL, &stream));
    ort->ReleaseSessionOptions(options);
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    void *library = dlopen(argv[1], RTLD_NOW), *plugin = dlopen(argv[2], RTLD_NOW);
    if (!library || !plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    const OrtApiBase *(*base)(void);
    void *symbol = dlsym(library, "OrtGetApiBase"), *counter = dlsym(plugin, "plugin_count"),
         *failer = dlsym(plugin, "plugin_fail");
    memcpy(&base, &symbol, sizeof base);
    memcpy(&plugin_count, &counter, sizeof plugin_count);
    memcpy(&plugin_fail, &failer, sizeof plugin_fail);
    ort = base()->GetApi(24);
    editor = ort->GetModelEditorApi();
    DO(ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "provider", &env));
    DO(ort->RegisterExecutionProviderLibrary(env, "tests", argv[2]));
    devices();
    static const char *const compiling[] = {"CreateEp with metadata",
                                            "an option of the caller's",
                                            "Compile",
                                            "weight kept",
                                            "CreateState",
                                            "OnRunStart",
                                            "Compute",
                                            "OnRunEnd",
                                            "ReleaseState",
                                            "part released",
                                            "ReleaseEp",
                                            NULL};
    static const char *const kernels[] = {"kernel made",     "PrePackWeight", "Compute",
                                          "kernel released", "ReleaseEp",     NULL};
    static const char *const device[] = {"Compute", "an output on the host", "no stream",
                                         "ReleaseEp", NULL};
    with_provider("TestKernels", 2, "", kernels);
    with_provider("TestKernels", -1, "rows", kernels);
    with_provider("TestDevice", 2, "", device);
    with_provider("TestDevice", -1, "rows", device);
    copies();
    with_provider("TestCompiling", 2, "", compiling);
    with_provider("TestCompiling", -1, "rows", compiling);
    failures();
    augmented();
    wrong(argv[2]);
    DO(ort->UnregisterExecutionProviderLibrary(env, "tests"));
    printf("after: %d\n", find_device("TestKernels") != NULL);
    ort->ReleaseEnv(env);
    return 0;
}
