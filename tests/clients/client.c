/* client.c LIBRARY MODELS CUSTOM - drives a libonnxruntime.so.1 by path through the function table.
 *
 * What it prints is the same for the real ONNX Runtime and for Sinter, but for lines that start
 * with
 * '#'. */
#include "client.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

static OrtEnv *env;
static OrtMemoryInfo *cpu;
static OrtAllocator *heap;
static const char *models;

static OrtSession *open_model(const char *name, const OrtSessionOptions *given) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.onnx", models, name);
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    if (!given) MUST(CreateSessionOptions(&options));
    MUST(CreateSession(env, path, given ? given : options, &session));
    ort->ReleaseSessionOptions(options);
    return session;
}

static OrtValue *wrap(void *data, size_t bytes, const int64_t *dims, size_t rank,
                      ONNXTensorElementDataType type) {
    OrtValue *value = NULL;
    MUST(CreateTensorWithDataAsOrtValue(cpu, data, bytes, dims, rank, type, &value));
    return value;
}

static OrtValue *floats(float *data, int64_t rows, int64_t columns) {
    int64_t dims[2] = {rows, columns};
    return wrap(data, (size_t)(rows * columns) * sizeof *data, dims, 2,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
}

static void print_info(const OrtTensorTypeAndShapeInfo *info) {
    ONNXTensorElementDataType type;
    size_t rank;
    int64_t dims[16];
    const char *symbols[16];
    MUST(GetTensorElementType(info, &type));
    MUST(GetDimensionsCount(info, &rank));
    MUST(GetDimensions(info, dims, rank));
    MUST(GetSymbolicDimensions(info, symbols, rank));
    printf("type %d [", (int)type);
    for (size_t i = 0; i < rank; i++)
        printf("%s%lld'%s'", i ? "," : "", (long long)dims[i], symbols[i]);
    printf("]");
}

static void print_value(const char *name, OrtValue *value) {
    OrtTensorTypeAndShapeInfo *info = NULL;
    ONNXTensorElementDataType type;
    size_t count;
    void *data = NULL;
    MUST(GetTensorTypeAndShape(value, &info));
    MUST(GetTensorElementType(info, &type));
    MUST(GetTensorShapeElementCount(info, &count));
    printf("%s: ", name);
    print_info(info);
    ort->ReleaseTensorTypeAndShapeInfo(info);
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) {
        size_t total, offsets[64];
        char text[1024];
        CHECK(count < 64);
        MUST(GetStringTensorDataLength(value, &total));
        CHECK(total < sizeof text);
        MUST(GetStringTensorContent(value, text, total, offsets, count));
        text[total] = 0;
        for (size_t i = 0; i < count; i++) printf(" @%zu", offsets[i]);
        printf(" %s\n", text);
        return;
    }
    MUST(GetTensorMutableData(value, &data));
    for (size_t i = 0; i < count; i++) {
        if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)
            printf(" %.4f", (double)((float *)data)[i] + 0.0);
        else if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64)
            printf(" %lld", (long long)((int64_t *)data)[i]);
        else
            printf(" %d", ((uint8_t *)data)[i]);
    }
    printf("\n");
}

static void print_ports(const OrtSession *session) {
    size_t inputs, outputs;
    MUST(SessionGetInputCount(session, &inputs));
    MUST(SessionGetOutputCount(session, &outputs));
    for (size_t i = 0; i < inputs + outputs; i++) {
        OrtTypeInfo *type = NULL;
        const OrtTensorTypeAndShapeInfo *tensor = NULL;
        ONNXType kind;
        char *name = NULL;
        if (i < inputs) {
            MUST(SessionGetInputName(session, i, heap, &name));
            MUST(SessionGetInputTypeInfo(session, i, &type));
        } else {
            MUST(SessionGetOutputName(session, i - inputs, heap, &name));
            MUST(SessionGetOutputTypeInfo(session, i - inputs, &type));
        }
        MUST(GetOnnxTypeFromTypeInfo(type, &kind));
        MUST(CastTypeInfoToTensorInfo(type, &tensor));
        printf("%s %s kind %d ", i < inputs ? "input" : "output", name, (int)kind);
        if (tensor) print_info(tensor);
        printf("\n");
        ort->ReleaseTypeInfo(type);
        MUST(AllocatorFree(heap, name));
    }
}

/* ---- The table ---- */

static void test_table(void) {
    CHECK(strncmp(base->GetVersionString(), "1.", 2) == 0);
    for (uint32_t v = 1; v <= ORT_API_VERSION; v++) CHECK(base->GetApi(v));
    void *slots[ORT_SLOT_COUNT];
    memcpy(slots, ort, sizeof slots);
    for (int i = 0; i < ORT_SLOT_COUNT; i++) CHECK(slots[i]);
    const OrtCompileApi *compile = ort->GetCompileApi();
    void *more[sizeof *compile / sizeof(void *)];
    CHECK(compile);
    memcpy(more, compile, sizeof more);
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) CHECK(more[i]);
}

/* ---- Runs ---- */

static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = (float)((i * 37 + 11) % 17) / 8 - 1;
}

static void run_mlp(OrtSession *session, float *x, int64_t rows, const OrtRunOptions *options,
                    OrtValue **out) {
    const char *in_names[] = {"x"}, *out_names[] = {"y"};
    OrtValue *in = floats(x, rows, 8);
    must(ort->Run(session, options, in_names, (const OrtValue *const *)&in, 1, out_names, 1, out),
         "Run");
    ort->ReleaseValue(in);
}

static void test_mlp(void) {
    float x[32], y[12];
    char bytes[33 * sizeof(float)];
    OrtSession *session = open_model("mlp", NULL);
    print_ports(session);
    OrtRunOptions *options = NULL;
    MUST(CreateRunOptions(&options));
    for (int64_t rows = 1; rows <= 3; rows += 2) {
        OrtValue *out = NULL;
        fill(x, 32);
        run_mlp(session, x, rows, rows == 1 ? NULL : options, &out);
        print_value("y", out);
        ort->ReleaseValue(out);
    }
    memcpy(bytes + 1, x, 2 * 8 * sizeof(float));
    OrtValue *given = floats(y, 2, 4), *kept = given;
    run_mlp(session, (float *)(void *)(bytes + 1), 2, NULL, &given); /* unaligned */
    CHECK(given == kept);
    print_value("preallocated", given);
    ort->ReleaseValue(given);
    MUST(RunOptionsSetTerminate(options));
    const char *in_names[] = {"x"}, *out_names[] = {"y"};
    OrtValue *in = floats(x, 1, 8), *out = NULL;
    refused(
        ort->Run(session, options, in_names, (const OrtValue *const *)&in, 1, out_names, 1, &out),
        "terminated");
    MUST(RunOptionsUnsetTerminate(options));
    must(ort->Run(session, options, in_names, (const OrtValue *const *)&in, 1, out_names, 1, &out),
         "Run");
    ort->ReleaseValue(in);
    ort->ReleaseValue(out);
    ort->ReleaseRunOptions(options);
    ort->ReleaseSession(session);
}

static void test_array(void) {
    char path[1024];
    snprintf(path, sizeof path, "%s/mlp.onnx", models);
    FILE *f = fopen(path, "rb");
    CHECK(f);
    char *bytes = malloc(1 << 16);
    size_t size = fread(bytes, 1, 1 << 16, f);
    fclose(f);
    OrtSession *session = NULL;
    OrtSessionOptions *options = NULL;
    MUST(CreateSessionOptions(&options));
    MUST(CreateSessionFromArray(env, bytes, size, options, &session));
    memset(bytes, 0, size);
    free(bytes);
    float x[8];
    fill(x, 8);
    OrtValue *out = NULL;
    run_mlp(session, x, 1, NULL, &out);
    print_value("from memory", out);
    ort->ReleaseValue(out);
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
}

static OrtValue *strings(const char *const *texts, size_t count) {
    OrtValue *value = NULL;
    int64_t dims[1] = {(int64_t)count};
    MUST(CreateTensorAsOrtValue(heap, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
    MUST(FillStringTensor(value, texts, count));
    return value;
}

static void test_types(void) {
    OrtSession *session = open_model("types", NULL);
    print_ports(session);
    int64_t i[2] = {5000000000, -7}, dims[1] = {2};
    bool b[2] = {true, false};
    const char *texts[2] = {"one", ""};
    const char *in_names[] = {"i", "b", "s"}, *out_names[] = {"i2", "nb", "s2"};
    OrtValue *in[3] = {wrap(i, sizeof i, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64),
                       wrap(b, sizeof b, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL),
                       strings(texts, 2)};
    OrtValue *out[3] = {NULL, NULL, NULL};
    must(ort->Run(session, NULL, in_names, (const OrtValue *const *)in, 3, out_names, 3, out),
         "Run");
    for (int k = 0; k < 3; k++) {
        print_value(out_names[k], out[k]);
        ort->ReleaseValue(out[k]);
        ort->ReleaseValue(in[k]);
    }
    ort->ReleaseSession(session);
}

static void test_metadata(void) {
    OrtSession *session = open_model("default", NULL);
    size_t count;
    char *text = NULL, **keys = NULL;
    int64_t version, n;
    OrtModelMetadata *m = NULL;
    MUST(SessionGetOverridableInitializerCount(session, &count));
    MUST(SessionGetOverridableInitializerName(session, 0, heap, &text));
    printf("%zu overridable: %s\n", count, text);
    MUST(AllocatorFree(heap, text));
    print_ports(session);
    MUST(SessionGetModelMetadata(session, &m));
    MUST(ModelMetadataGetVersion(m, &version));
    MUST(ModelMetadataGetProducerName(m, heap, &text));
    printf("version %lld producer %s\n", (long long)version, text);
    MUST(AllocatorFree(heap, text));
    MUST(ModelMetadataGetGraphDescription(m, heap, &text));
    printf("%s\n", text);
    MUST(AllocatorFree(heap, text));
    MUST(ModelMetadataGetCustomMetadataMapKeys(m, heap, &keys, &n));
    for (int64_t i = 0; i < n; i++) MUST(AllocatorFree(heap, keys[i]));
    MUST(AllocatorFree(heap, keys));
    MUST(ModelMetadataLookupCustomMetadataMap(m, heap, "author", &text));
    printf("%lld keys, author %s\n", (long long)n, text);
    MUST(AllocatorFree(heap, text));
    MUST(ModelMetadataLookupCustomMetadataMap(m, heap, "nothing", &text));
    CHECK(!text);
    ort->ReleaseModelMetadata(m);
    float x[2] = {1, 2}, scale[1] = {10};
    int64_t one[1] = {1};
    OrtValue *in[2] = {floats(x, 1, 2),
                       wrap(scale, 4, one, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)};
    const char *in_names[] = {"x", "scale"}, *out_names[] = {"y"};
    for (size_t given = 1; given <= 2; given++) {
        OrtValue *out = NULL;
        must(ort->Run(session, NULL, in_names, (const OrtValue *const *)in, given, out_names, 1,
                      &out),
             "Run");
        print_value(given == 1 ? "default" : "overridden", out);
        ort->ReleaseValue(out);
    }
    ort->ReleaseValue(in[0]);
    ort->ReleaseValue(in[1]);
    ort->ReleaseSession(session);
    session = open_model("mlp", NULL);
    MUST(SessionGetModelMetadata(session, &m));
    MUST(ModelMetadataGetVersion(m, &version));
    printf("version without one: %lld\n", (long long)version);
    ort->ReleaseModelMetadata(m);
    ort->ReleaseSession(session);
}

static void test_sequence(void) {
    OrtSession *session = open_model("sequence", NULL);
    print_ports(session);
    float x[6] = {1, 2, 3, 4, 5, 6};
    OrtValue *in = floats(x, 3, 2), *out = NULL;
    const char *in_names[] = {"x"}, *out_names[] = {"seq"};
    must(ort->Run(session, NULL, in_names, (const OrtValue *const *)&in, 1, out_names, 1, &out),
         "Run");
    ONNXType kind;
    size_t count;
    MUST(GetValueType(out, &kind));
    MUST(GetValueCount(out, &count));
    printf("kind %d of %zu\n", (int)kind, count);
    OrtValue *items[3];
    for (int i = 0; i < 3; i++) {
        MUST(GetValue(out, i, heap, &items[i]));
        print_value("item", items[i]);
    }
    ort->ReleaseValue(out);
    MUST(CreateValue((const OrtValue *const *)items, 2, ONNX_TYPE_SEQUENCE, &out));
    MUST(GetValueCount(out, &count));
    printf("made a sequence of %zu\n", count);
    for (int i = 0; i < 3; i++) ort->ReleaseValue(items[i]);
    MUST(GetValue(out, 1, heap, &items[0]));
    print_value("item", items[0]);
    ort->ReleaseValue(items[0]);
    ort->ReleaseValue(out);
    ort->ReleaseValue(in);
    int64_t keys[2] = {7, 9}, dims[1] = {2};
    OrtValue *pair[2] = {wrap(keys, sizeof keys, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64),
                         wrap(x, 2 * sizeof *x, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)};
    MUST(CreateValue((const OrtValue *const *)pair, 2, ONNX_TYPE_MAP, &out));
    MUST(GetValueType(out, &kind));
    MUST(GetValueCount(out, &count));
    printf("map: kind %d, %zu parts\n", (int)kind, count);
    for (int i = 0; i < 2; i++) {
        MUST(GetValue(out, i, heap, &items[i]));
        print_value("part", items[i]);
        ort->ReleaseValue(items[i]);
        ort->ReleaseValue(pair[i]);
    }
    ort->ReleaseValue(out);
    ort->ReleaseSession(session);
}

static void test_binding(void) {
    OrtSession *session = open_model("mlp", NULL);
    OrtIoBinding *binding = NULL;
    float x[16];
    fill(x, 16);
    MUST(CreateIoBinding(session, &binding));
    OrtValue *in = floats(x, 2, 8);
    MUST(BindInput(binding, "x", in));
    ort->ReleaseValue(in); /* the binding holds it */
    MUST(BindOutputToDevice(binding, "y", cpu));
    for (int i = 0; i < 2; i++) {
        MUST(RunWithBinding(session, NULL, binding));
        OrtValue **outputs = NULL;
        size_t count, *lengths = NULL, names;
        char *text = NULL;
        MUST(GetBoundOutputValues(binding, heap, &outputs, &count));
        MUST(GetBoundOutputNames(binding, heap, &text, &lengths, &names));
        CHECK(count == 1 && names == 1 && lengths[0] == 1 && text[0] == 'y');
        print_value("bound", outputs[0]);
        ort->ReleaseValue(outputs[0]);
        MUST(AllocatorFree(heap, outputs));
        MUST(AllocatorFree(heap, text));
        MUST(AllocatorFree(heap, lengths));
    }
    ort->ClearBoundInputs(binding);
    ort->ClearBoundOutputs(binding);
    ort->ReleaseIoBinding(binding);
    ort->ReleaseSession(session);
}

/* ---- Options ---- */

static void test_options(void) {
    OrtSessionOptions *options = NULL, *copy = NULL;
    float w2[64];
    int64_t dims[2] = {16, 4};
    for (int i = 0; i < 64; i++) w2[i] = (float)(i % 5);
    OrtValue *weight = wrap(w2, sizeof w2, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
    MUST(CreateSessionOptions(&options));
    MUST(SetIntraOpNumThreads(options, 1));
    MUST(SetSessionGraphOptimizationLevel(options, ORT_ENABLE_BASIC));
    MUST(AddSessionConfigEntry(options, "session.no_such_setting", "1"));
    MUST(AddFreeDimensionOverrideByName(options, "N", 2));
    MUST(AddInitializer(options, "w2", weight));
    MUST(CloneSessionOptions(options, &copy));
    ort->ReleaseSessionOptions(options);
    OrtSession *session = open_model("mlp", copy);
    print_ports(session);
    float x[16];
    fill(x, 16);
    OrtValue *out = NULL;
    run_mlp(session, x, 2, NULL, &out);
    print_value("other weights", out);
    ort->ReleaseValue(out);
    ort->ReleaseValue(weight);
    ort->ReleaseSession(session);
    int has;
    char text[8];
    size_t size = sizeof text;
    MUST(HasSessionConfigEntry(copy, "session.no_such_setting", &has));
    MUST(GetSessionConfigEntry(copy, "session.no_such_setting", text, &size));
    printf("config: %d %s %zu\n", has, text, size);
    ort->ReleaseSessionOptions(copy);
}

/* ---- Threads that the program makes ---- */

typedef struct crew {
    int made, joined;
} crew;

typedef struct crew_thread {
    pthread_t id;
    crew *of;
    OrtThreadWorkerFn work;
    void *param;
} crew_thread;

static void *crew_start(void *thread) {
    crew_thread *t = thread;
    t->work(t->param);
    return NULL;
}

static OrtCustomThreadHandle crew_create(void *options, OrtThreadWorkerFn work, void *param) {
    crew_thread *t = malloc(sizeof *t);
    *t = (crew_thread){.of = options, .work = work, .param = param};
    if (pthread_create(&t->id, NULL, crew_start, t) != 0) die("pthread_create", "failed");
    t->of->made++;
    return (OrtCustomThreadHandle)t;
}

static void crew_join(OrtCustomThreadHandle handle) {
    crew_thread *t = (crew_thread *)(uintptr_t)handle;
    pthread_join(t->id, NULL);
    t->of->joined++;
    free(t);
}

static void run_rows(OrtSession *session, float *x, int64_t rows, float *y) {
    OrtValue *out = floats(y, rows, 4);
    run_mlp(session, x, rows, NULL, &out);
    ort->ReleaseValue(out);
}

static void set_crew(OrtSessionOptions *options, crew *c) {
    MUST(SetIntraOpNumThreads(options, 2));
    MUST(SessionOptionsSetCustomCreateThreadFn(options, crew_create));
    MUST(SessionOptionsSetCustomThreadCreationOptions(options, c));
    MUST(SessionOptionsSetCustomJoinThreadFn(options, crew_join));
}

/* Two sessions with functions of their own, one without; all threads are joined with the session
 * they were made for, at the latest. */
static void test_crews(void) {
    enum { ROWS = 60000 };
    crew a = {0, 0}, b = {0, 0};
    float *x = malloc(ROWS * 8 * sizeof *x), *y = malloc(ROWS * 4 * sizeof *y);
    float *again = malloc(ROWS * 4 * sizeof *y);
    fill(x, ROWS * 8);
    OrtSessionOptions *options = NULL;
    MUST(CreateSessionOptions(&options));
    OrtSession *plain = open_model("mlp", options);
    run_rows(plain, x, ROWS, y);
    set_crew(options, &a);
    OrtSession *first = open_model("mlp", options);
    set_crew(options, &b);
    run_rows(first, x, ROWS, again);
    printf("crew: made %d joined %d same %d\n", a.made > 0, a.joined,
           memcmp(y, again, ROWS * 4 * sizeof *y) == 0);
    OrtSession *second = open_model("mlp", options);
    run_rows(second, x, ROWS, again);
    printf("second crew: made %d joined %d same %d\n", b.made > 0, b.joined,
           memcmp(y, again, ROWS * 4 * sizeof *y) == 0);
    ort->ReleaseSession(second);
    printf("second crew: all joined %d\n", b.made == b.joined);
    run_rows(first, x, ROWS, again);
    ort->ReleaseSession(first);
    printf("crew: all joined %d\n", a.made == a.joined);
    int made = a.made + b.made;
    run_rows(plain, x, ROWS, again);
    printf("no crew: made %d\n", a.made + b.made - made);
    MUST(SessionOptionsSetCustomJoinThreadFn(options, NULL));
    OrtSession *none = NULL;
    char path[1024];
    snprintf(path, sizeof path, "%s/mlp.onnx", models);
    OrtStatus *status = ort->CreateSession(env, path, options, &none);
    printf("no join: refused %d\n", status != NULL);
    ort->ReleaseStatus(status);
    ort->ReleaseSession(plain);
    ort->ReleaseSessionOptions(options);
    free(x);
    free(y);
    free(again);
}

/* The same for the threads of all sessions, which the environment holds. There must be no other. */
static void test_global_crew(void) {
    enum { ROWS = 60000 };
    crew a = {0, 0};
    float *x = malloc(ROWS * 8 * sizeof *x), *y = malloc(ROWS * 4 * sizeof *y);
    fill(x, ROWS * 8);
    OrtThreadingOptions *threading = NULL;
    MUST(CreateThreadingOptions(&threading));
    MUST(SetGlobalIntraOpNumThreads(threading, 2));
    MUST(SetGlobalCustomCreateThreadFn(threading, crew_create));
    MUST(SetGlobalCustomThreadCreationOptions(threading, &a));
    MUST(SetGlobalCustomJoinThreadFn(threading, crew_join));
    MUST(CreateEnvWithGlobalThreadPools(ORT_LOGGING_LEVEL_FATAL, "global", threading, &env));
    ort->ReleaseThreadingOptions(threading);
    OrtSessionOptions *options = NULL;
    MUST(CreateSessionOptions(&options));
    MUST(DisablePerSessionThreads(options));
    OrtSession *session = open_model("mlp", options);
    ort->ReleaseSessionOptions(options);
    run_rows(session, x, ROWS, y);
    printf("global crew: made %d joined %d\n", a.made > 0, a.joined);
    ort->ReleaseSession(session);
    ort->ReleaseEnv(env);
    printf("global crew: all joined %d\n", a.made == a.joined);
    free(x);
    free(y);
}

/* A model from memory whose external data is in memory, too, and may go after loading. */
static void test_files(void) {
    char path[1024], bytes[4096];
    snprintf(path, sizeof path, "%s/external.onnx", models);
    FILE *f = fopen(path, "rb");
    CHECK(f);
    size_t size = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    float weights[3] = {0, 2, 3};
    const char *names[] = {"weights.bin"};
    char *const contents[] = {(char *)weights};
    size_t lengths[] = {sizeof weights};
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    MUST(CreateSessionOptions(&options));
    MUST(AddExternalInitializersFromFilesInMemory(options, names, contents, lengths, 1));
    MUST(CreateSessionFromArray(env, bytes, size, options, &session));
    memset(bytes, 0, sizeof bytes);
    float x[4] = {1, 1, 10, 100};
    OrtValue *in = floats(x, 2, 2), *out = NULL;
    const char *in_names[] = {"x"}, *out_names[] = {"y"};
    must(ort->Run(session, NULL, in_names, (const OrtValue *const *)&in, 1, out_names, 1, &out),
         "Run");
    print_value("external data in memory", out);
    ort->ReleaseValue(in);
    ort->ReleaseValue(out);
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
}

static void test_profile(void) {
    OrtSessionOptions *options = NULL;
    char prefix[] = "/tmp/sinter_client_profile", optimized[] = "/tmp/sinter_client_XXXXXX";
    CHECK(mkstemp(optimized) >= 0);
    MUST(CreateSessionOptions(&options));
    MUST(EnableProfiling(options, prefix));
    MUST(SetOptimizedModelFilePath(options, optimized));
    OrtSession *session = open_model("mlp", options);
    float x[8];
    fill(x, 8);
    OrtValue *out = NULL;
    run_mlp(session, x, 1, NULL, &out);
    ort->ReleaseValue(out);
    char *name = NULL, start[1];
    MUST(SessionEndProfiling(session, heap, &name));
    FILE *f = fopen(name, "r"), *g = fopen(optimized, "r");
    CHECK(f && g && fread(start, 1, 1, f) == 1 && start[0] == '[' && fread(start, 1, 1, g) == 1);
    fclose(f);
    fclose(g);
    CHECK(remove(name) == 0 && remove(optimized) == 0);
    MUST(AllocatorFree(heap, name));
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
}

/* ---- Cancelling, in the background ---- */

static void *terminate_soon(void *options) {
    struct timespec pause = {0, 50000000};
    nanosleep(&pause, NULL);
    MUST(RunOptionsSetTerminate(options));
    return NULL;
}

static void test_terminate(void) {
    OrtSession *session = open_model("loop", NULL);
    OrtRunOptions *options = NULL;
    MUST(CreateRunOptions(&options));
    int64_t n = 2000000000, dims[1] = {4};
    float x[4] = {1, 2, 3, 4};
    OrtValue *in[2] = {wrap(&n, sizeof n, dims, 0, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64),
                       wrap(x, sizeof x, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT)};
    const char *in_names[] = {"n", "x"}, *out_names[] = {"y"};
    OrtValue *out = NULL;
    pthread_t thread;
    pthread_create(&thread, NULL, terminate_soon, options);
    refused(
        ort->Run(session, options, in_names, (const OrtValue *const *)in, 2, out_names, 1, &out),
        "terminated meanwhile");
    pthread_join(thread, NULL);
    ort->ReleaseValue(in[0]);
    ort->ReleaseValue(in[1]);
    ort->ReleaseRunOptions(options);
    ort->ReleaseSession(session);
}

typedef struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
} waiter;

static void when_done(void *user_data, OrtValue **outputs, size_t count, OrtStatus *status) {
    waiter *w = user_data;
    must(status, "RunAsync");
    CHECK(count == 1);
    print_value("in the background", outputs[0]);
    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static void test_async(void) {
    OrtSessionOptions *options = NULL;
    MUST(CreateSessionOptions(&options));
    MUST(SetIntraOpNumThreads(options, 2));
    OrtSession *session = open_model("mlp", options);
    waiter w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    float x[8];
    fill(x, 8);
    OrtValue *in = floats(x, 1, 8), *out = NULL;
    const char *in_names[] = {"x"}, *out_names[] = {"y"};
    MUST(RunAsync(session, NULL, in_names, (const OrtValue *const *)&in, 1, out_names, 1, &out,
                  when_done, &w));
    pthread_mutex_lock(&w.lock);
    while (!w.done) pthread_cond_wait(&w.cond, &w.lock);
    pthread_mutex_unlock(&w.lock);
    ort->ReleaseValue(out);
    ort->ReleaseValue(in);
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
}

/* ---- Custom operators ---- */

static void test_custom(const char *library) {
    OrtSessionOptions *options = NULL;
    MUST(CreateSessionOptions(&options));
    MUST(RegisterCustomOpsLibrary_V2(options, library));
    OrtSession *session = open_model("custom", options);
    print_ports(session);
    float a[9], b[9];
    fill(a, 9);
    for (int i = 0; i < 9; i++) b[i] = -a[8 - i];
    const char *s[2] = {"a", "bc"}, *t[2] = {"!", ""};
    const char *in_names[] = {"a", "b", "s", "t"}, *out_names[] = {"y", "n2", "nk", "j"};
    for (int64_t rows = 1; rows <= 3; rows++) {
        OrtValue *in[4] = {floats(a, rows, 3), floats(b, rows, 3), strings(s, 2), strings(t, 2)};
        OrtValue *out[4] = {NULL, NULL, NULL, NULL};
        must(ort->Run(session, NULL, in_names, (const OrtValue *const *)in, 4, out_names, 4, out),
             "Run");
        for (int i = 0; i < 4; i++) {
            print_value(out_names[i], out[i]);
            ort->ReleaseValue(out[i]);
            ort->ReleaseValue(in[i]);
        }
    }
    ort->ReleaseSession(session);
    session = open_model("refuse", options);
    int64_t one[1] = {1};
    OrtValue *in = wrap(a, sizeof *a, one, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT), *out = NULL;
    const char *x[] = {"x"}, *y[] = {"y"};
    OrtStatus *status = ort->Run(session, NULL, x, (const OrtValue *const *)&in, 1, y, 1, &out);
    CHECK(status && strstr(ort->GetErrorMessage(status), "Refuse refuses everything"));
    printf("#   %s\n", ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    ort->ReleaseValue(in);
    ort->ReleaseSession(session);
    ort->ReleaseSessionOptions(options);
    MUST(CreateSessionOptions(&options));
    char path[1024];
    snprintf(path, sizeof path, "%s/custom.onnx", models);
    status = ort->CreateSession(env, path, options, &session);
    CHECK(status);
    printf("#   %s\n", ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    ort->ReleaseSessionOptions(options);
}

/* ---- What is wrong ---- */

static OrtStatus *run_with(OrtSession *session, const char *name, OrtValue *value,
                           const char *output) {
    OrtValue *out = NULL;
    OrtStatus *status =
        ort->Run(session, NULL, &name, (const OrtValue *const *)&value, 1, &output, 1, &out);
    ort->ReleaseValue(value);
    ort->ReleaseValue(out);
    return status;
}

static void test_wrong(void) {
    OrtSession *session = NULL;
    OrtSessionOptions *options = NULL;
    MUST(CreateSessionOptions(&options));
    refused(ort->CreateSession(env, "/no/such/file.onnx", options, &session), "no file");
    refused(ort->CreateSessionFromArray(env, "not a model", 11, options, &session), "no model");
    ort->ReleaseSessionOptions(options);
    session = open_model("mlp", NULL);
    float x[64];
    int64_t longs[8] = {0}, dims[2] = {1, 8};
    fill(x, 64);
    refused(run_with(session, "x", floats(x, 8, 1), "y"), "wrong shape");
    refused(run_with(session, "x",
                     wrap(longs, sizeof longs, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64), "y"),
            "wrong type");
    refused(run_with(session, "z", floats(x, 1, 8), "y"), "wrong input name");
    refused(run_with(session, "x", floats(x, 1, 8), "z"), "wrong output name");
    OrtValue *value = NULL;
    refused(ort->CreateTensorWithDataAsOrtValue(cpu, x, 4, dims, 2,
                                                ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value),
            "too little memory");
    dims[0] = -1;
    OrtStatus *status =
        ort->CreateTensorAsOrtValue(heap, dims, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value);
    CHECK(status); /* the two do not agree on its code */
    ort->ReleaseStatus(status);
    OrtMemoryInfo *info = NULL;
    refused(ort->CreateMemoryInfo("NoSuchDevice", OrtDeviceAllocator, 0, OrtMemTypeDefault, &info),
            "no device");
    ort->ReleaseSession(session);
    ort->ReleaseValue(NULL);
    ort->ReleaseStatus(NULL);
    ort->ReleaseSession(NULL);
}

int main(int argc, char **argv) {
    if (argc != 4) die(argv[0], "LIBRARY MODELS CUSTOM");
    models = argv[2];
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_library(argv[1]);
    test_table();
    MUST(CreateEnv(ORT_LOGGING_LEVEL_FATAL, "client", &env));
    MUST(CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu));
    MUST(GetAllocatorWithDefaultOptions(&heap));
    test_mlp();
    test_array();
    test_types();
    test_metadata();
    test_sequence();
    test_binding();
    test_options();
    test_crews();
    test_files();
    test_profile();
    test_terminate();
    test_async();
    test_custom(argv[3]);
    test_wrong();
    ort->ReleaseEnv(env);
    test_global_crew();
    ort->ReleaseMemoryInfo(cpu);
    return 0;
}
