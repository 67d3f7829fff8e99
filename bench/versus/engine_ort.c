/* engine_ort.c - drives any libonnxruntime.so.1 through its C table. */
#include "engine.h"

#include "ort/ort_abi.h"

#include <dlfcn.h>

static const OrtApi *api;
static OrtSession *session;
static OrtMemoryInfo *memory;
static OrtValue **inputs, **outputs;
static const char **input_names;
static char **output_names;
static size_t n_inputs, n_outputs;

static void check(OrtStatus *status, const char *what) {
    if (status) die("%s: %s", what, api->GetErrorMessage(status));
}

static void find_outputs(void) {
    OrtAllocator *allocator;
    check(api->GetAllocatorWithDefaultOptions(&allocator), "GetAllocatorWithDefaultOptions");
    check(api->SessionGetOutputCount(session, &n_outputs), "SessionGetOutputCount");
    outputs = allocate(n_outputs, sizeof *outputs);
    output_names = allocate(n_outputs, sizeof *output_names);
    for (size_t i = 0; i < n_outputs; i++)
        check(api->SessionGetOutputName(session, i, allocator, &output_names[i]),
              "SessionGetOutputName");
}

static const OrtApi *table(const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) die("%s", dlerror());
    const OrtApiBase *(*base)(void) = NULL;
    *(void **)&base = dlsym(handle, "OrtGetApiBase");
    if (!base) die("%s has no OrtGetApiBase", library);
    const OrtApi *found = base()->GetApi(16);
    if (!found) die("%s does not have version 16 of the interface", library);
    return found;
}

static void open_ort(const char *library, const char *model, int threads, const tensor *in,
                     int n_in, times *took) {
    OrtEnv *env;
    OrtSessionOptions *options;
    double start = now_ms();
    api = table(library);
    check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "versus", &env), "CreateEnv");
    took->library_ms = now_ms() - start;
    start = now_ms();
    check(api->CreateSessionOptions(&options), "CreateSessionOptions");
    check(api->SetIntraOpNumThreads(options, threads), "SetIntraOpNumThreads");
    check(api->SetInterOpNumThreads(options, 1), "SetInterOpNumThreads");
    check(api->CreateSession(env, model, options, &session), "CreateSession");
    took->session_ms = now_ms() - start;
    find_outputs();
    check(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory),
          "CreateCpuMemoryInfo");
    n_inputs = (size_t)n_in;
    inputs = allocate(n_inputs, sizeof *inputs);
    input_names = allocate(n_inputs, sizeof *input_names);
    for (size_t i = 0; i < n_inputs; i++) {
        input_names[i] = in[i].name;
        check(api->CreateTensorWithDataAsOrtValue(
                  memory, in[i].data, in[i].bytes, in[i].dims, (size_t)in[i].rank,
                  (ONNXTensorElementDataType)in[i].dtype, &inputs[i]),
              "CreateTensorWithDataAsOrtValue");
    }
}

static void run_ort(void) {
    OrtStatus *status = api->Run(session, NULL, input_names, (const OrtValue *const *)inputs,
                                 n_inputs, (const char *const *)output_names, n_outputs, outputs);
    if (status) check(status, "Run");
}

static void drop_ort(void) {
    for (size_t i = 0; i < n_outputs; i++) {
        api->ReleaseValue(outputs[i]);
        outputs[i] = NULL;
    }
}

static int count_ort(void) {
    return (int)n_outputs;
}

static void output_ort(int index, tensor *out) {
    OrtTensorTypeAndShapeInfo *info;
    ONNXTensorElementDataType type;
    size_t rank, count;
    check(api->GetTensorTypeAndShape(outputs[index], &info), "GetTensorTypeAndShape");
    check(api->GetTensorElementType(info, &type), "GetTensorElementType");
    check(api->GetDimensionsCount(info, &rank), "GetDimensionsCount");
    if (rank > 16) die("output %d has rank %zu", index, rank);
    check(api->GetDimensions(info, out->dims, rank), "GetDimensions");
    check(api->GetTensorShapeElementCount(info, &count), "GetTensorShapeElementCount");
    check(api->GetTensorMutableData(outputs[index], &out->data), "GetTensorMutableData");
    api->ReleaseTensorTypeAndShapeInfo(info);
    static const size_t sizes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8};
    size_t size = (size_t)type < sizeof sizes / sizeof *sizes ? sizes[type] : 0;
    out->name = output_names[index];
    out->dtype = (int)type;
    out->rank = (int)rank;
    out->bytes = count * size;
}

const engine engine_ort = {open_ort, run_ort, drop_ort, count_ort, output_ort};
