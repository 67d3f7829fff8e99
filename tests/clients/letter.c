/* letter.c LIBRARY MODELS - what programs see of ONNX Runtime where they leave the usual path:
 * words of messages, what is refused and what is not. It prints the same on every library that
 * keeps to the letter. */
#include "client.h"

#include <stdint.h>
#include <time.h>

static OrtEnv *env;
static OrtMemoryInfo *cpu;
static OrtAllocator *heap;
static const char *models;

static const ONNXTensorElementDataType F = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;

/* Prints a call's code, and that its message has these words or that it has not. */
static void says(const char *what, OrtStatus *status, const char *words) {
    int code = status ? (int)ort->GetErrorCode(status) : 0;
    bool found = status && strstr(ort->GetErrorMessage(status), words);
    printf("%s: code %d, %s '%s'\n", what, code, found ? "with" : "without", words);
    if (status) {
        const char *text = ort->GetErrorMessage(status);
        printf("#   %.*s\n", (int)strcspn(text, "\n"), text);
    }
    ort->ReleaseStatus(status);
}

static void code(const char *what, OrtStatus *status) {
    says(what, status, "");
}

static OrtSessionOptions *options_with(const char *key, const char *value, int threads) {
    OrtSessionOptions *o = NULL;
    MUST(CreateSessionOptions(&o));
    if (key) MUST(AddSessionConfigEntry(o, key, value));
    MUST(SetIntraOpNumThreads(o, threads));
    return o;
}

static OrtStatus *try_open(const char *name, int threads, OrtSession **out) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.onnx", models, name);
    OrtSessionOptions *o = options_with(NULL, NULL, threads);
    OrtStatus *status = ort->CreateSession(env, path, o, out);
    ort->ReleaseSessionOptions(o);
    return status;
}

static OrtSession *open_model(const char *name, int threads) {
    OrtSession *s = NULL;
    must(try_open(name, threads, &s), name);
    return s;
}

static OrtValue *wrap(void *data, size_t bytes, const int64_t *dims, size_t rank,
                      ONNXTensorElementDataType type) {
    OrtValue *v = NULL;
    MUST(CreateTensorWithDataAsOrtValue(cpu, data, bytes, dims, rank, type, &v));
    return v;
}

static void print_floats(const char *what, OrtValue *v, size_t n) {
    void *p = NULL;
    MUST(GetTensorMutableData(v, &p));
    printf("%s:", what);
    for (size_t i = 0; i < n; i++) printf(" %.4g", (double)((float *)p)[i]);
    printf("\n");
}

/* ---- Settings ---- */

static void test_settings(void) {
    static char key[1100], value[9000];
    OrtSessionOptions *o = options_with(NULL, NULL, 1);
    OrtRunOptions *r = NULL;
    MUST(CreateRunOptions(&r));
    memset(key, 'k', sizeof key - 1);
    memset(value, 'v', sizeof value - 1);
    says("empty key", ort->AddSessionConfigEntry(o, "", "1"), "Config key is empty");
    says("long key", ort->AddSessionConfigEntry(o, key, "1"), "longer than maximum length");
    says("long value", ort->AddSessionConfigEntry(o, "k", value),
         "Config value is longer than maximum length");
    says("empty key of a run", ort->AddRunConfigEntry(r, "", "1"), "Config key is empty");
    code("empty value", ort->AddSessionConfigEntry(o, "k", ""));
    void *handle = NULL;
    says("a library without operators", ort->RegisterCustomOpsLibrary(o, "libm.so.6", &handle),
         "Failed to get symbol RegisterCustomOps");
    says("a library that is not there",
         ort->RegisterCustomOpsLibrary(o, "no_such_library.so", &handle), "Failed to load library");
    ort->ReleaseRunOptions(r);
    ort->ReleaseSessionOptions(o);
    o = options_with("session.intra_op_thread_affinities", "", 2);
    char path[1024];
    snprintf(path, sizeof path, "%s/mlp.onnx", models);
    OrtSession *s = NULL;
    says("empty affinities", ort->CreateSession(env, path, o, &s),
         "Affinity string must not be empty");
    ort->ReleaseSessionOptions(o);
    code("an allocator", ort->CreateAndRegisterAllocator(env, cpu, NULL));
    code("another in its place", ort->CreateAndRegisterAllocator(env, cpu, NULL));
    code("taken back", ort->UnregisterAllocator(env, cpu));
}

/* When profiling began is told by the clock that dates are made of. */
static void test_profile_clock(void) {
    char path[1024], prefix[1024];
    struct timespec t;
    uint64_t start = 0;
    snprintf(path, sizeof path, "%s/mlp.onnx", models);
    snprintf(prefix, sizeof prefix, "%s/letter", models);
    OrtSessionOptions *o = options_with(NULL, NULL, 1);
    OrtSession *s = NULL;
    MUST(EnableProfiling(o, prefix));
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t before = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    MUST(CreateSession(env, path, o, &s));
    MUST(SessionGetProfilingStartTimeNs(s, &start));
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t after = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    printf("profiling began %s the call that began it\n",
           before <= start && start <= after ? "within" : "outside");
    ort->ReleaseSession(s);
    ort->ReleaseSessionOptions(o);
}

/* ---- Inputs that do not fit ---- */

static OrtStatus *run_with(OrtSession *s, const OrtRunOptions *r, OrtValue *value) {
    const char *name = "x", *output = "y";
    OrtValue *out = NULL;
    OrtStatus *status = ort->Run(s, r, &name, (const OrtValue *const *)&value, 1, &output, 1, &out);
    ort->ReleaseValue(value);
    ort->ReleaseValue(out);
    return status;
}

static void test_words(void) {
    float x[64] = {0};
    OrtSession *s = open_model("mlp", 1);
    says("a rank", run_with(s, NULL, wrap(x, 32, (int64_t[]){8}, 1, F)),
         "Invalid rank for input: x Got: 1 Expected: 2");
    says("a size", run_with(s, NULL, wrap(x, 32, (int64_t[]){2, 4}, 2, F)),
         "Got invalid dimensions for input: x");
    says("a type",
         run_with(s, NULL, wrap(x, 64, (int64_t[]){1, 8}, 2, ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE)),
         "Unexpected input data type");
    OrtRunOptions *r = NULL;
    MUST(CreateRunOptions(&r));
    MUST(RunOptionsSetTerminate(r));
    says("terminated before it began", run_with(s, r, wrap(x, 32, (int64_t[]){1, 8}, 2, F)),
         "Exiting due to terminate flag being set to true.");
    MUST(RunOptionsUnsetTerminate(r));
    code("no longer terminated", run_with(s, r, wrap(x, 32, (int64_t[]){1, 8}, 2, F)));
    ort->ReleaseRunOptions(r);
    ort->ReleaseSession(s);
}

/* ---- Outputs ---- */

static void test_outputs(void) {
    float x[8] = {1, -2, 3, -4, 5, -6, 7, -8};
    OrtSession *s = open_model("mlp", 1);
    const char *in = "x", *twice[2] = {"y", "y"};
    OrtValue *value = wrap(x, 32, (int64_t[]){1, 8}, 2, F), *out[2] = {NULL, NULL};
    must(ort->Run(s, NULL, &in, (const OrtValue *const *)&value, 1, twice, 2, out), "twice");
    print_floats("an output", out[0], 4);
    print_floats("and once more", out[1], 4);
    ort->ReleaseValue(out[0]);
    ort->ReleaseValue(out[1]);
    OrtIoBinding *b = NULL;
    MUST(CreateIoBinding(s, &b));
    MUST(BindInput(b, "x", value));
    code("binding an output that is not there", ort->BindOutputToDevice(b, "nothing", cpu));
    code("running with it", ort->RunWithBinding(s, NULL, b));
    ort->ReleaseIoBinding(b);
    ort->ReleaseValue(value);
    ort->ReleaseSession(s);
}

static void never(void *user_data, OrtValue **outputs, size_t count, OrtStatus *status) {
    (void)user_data, (void)outputs, (void)count, (void)status;
    die("RunAsync", "ran");
}

static void test_async(void) {
    float x[8] = {0};
    OrtSession *s = open_model("mlp", 1);
    const char *in = "x", *name = "y";
    OrtValue *value = wrap(x, 32, (int64_t[]){1, 8}, 2, F), *out = NULL;
    says("one thread in the background",
         ort->RunAsync(s, NULL, &in, (const OrtValue *const *)&value, 1, &name, 1, &out, never,
                       NULL),
         "intra op thread pool must have at least one thread for RunAsync");
    ort->ReleaseValue(value);
    ort->ReleaseSession(s);
}

/* ---- Values ---- */

static void test_values(void) {
    float a[2] = {1, 2}, b[2] = {3, 4};
    OrtValue *in[2] = {wrap(a, 8, (int64_t[]){2}, 1, F), wrap(b, 8, (int64_t[]){2}, 1, F)};
    OrtValue *sequence = NULL, *element = NULL, *scalar = NULL;
    MUST(CreateValue((const OrtValue *const *)in, 2, ONNX_TYPE_SEQUENCE, &sequence));
    code("a sequence of sequences",
         ort->CreateValue((const OrtValue *const[]){sequence}, 1, ONNX_TYPE_SEQUENCE, &element));
    MUST(GetValue(sequence, 1, heap, &element));
    code("an element that is not there", ort->GetValue(sequence, 9, heap, &scalar));
    b[0] = 30;
    print_floats("an element taken before a change", element, 2);
    ort->ReleaseValue(element);
    MUST(CreateTensorAsOrtValue(heap, NULL, 0, F, &scalar));
    void *data = NULL;
    MUST(GetTensorMutableData(scalar, &data));
    *(float *)data = 5;
    print_floats("a scalar without a shape", scalar, 1);
    ort->ReleaseValue(scalar);
    ort->ReleaseValue(sequence);
    ort->ReleaseValue(in[0]);
    ort->ReleaseValue(in[1]);
}

static void test_attributes(void) {
    OrtOpAttr *attr = NULL;
    char text[8] = "???????";
    size_t n = 0;
    MUST(CreateOpAttr("s", "abc", 3, ORT_OP_ATTR_STRING, &attr));
    code("a text where there is room for it",
         ort->ReadOpAttr(attr, ORT_OP_ATTR_STRING, text, 3, &n));
    printf("%zu bytes: %.7s\n", n, text);
    code("a text where there is not", ort->ReadOpAttr(attr, ORT_OP_ATTR_STRING, text, 2, &n));
    ort->ReleaseOpAttr(attr);
}

/* ---- Custom operators ---- */

typedef struct variadic {
    OrtCustomOp op;
    size_t ports;
    int least_in, least_out, alike;
    bool open; /* inputs of any type */
} variadic;

static const variadic *of(const OrtCustomOp *op) {
    return (const variadic *)(const void *)op;
}
static const char *its_name(const OrtCustomOp *op) {
    (void)op;
    return "VariadicNode";
}
static const char *its_provider(const OrtCustomOp *op) {
    (void)op;
    return NULL;
}
static size_t its_ports(const OrtCustomOp *op) {
    return of(op)->ports;
}
static size_t one_port(const OrtCustomOp *op) {
    (void)op;
    return 1;
}
static ONNXTensorElementDataType its_input(const OrtCustomOp *op, size_t i) {
    (void)i;
    return of(op)->open ? ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED : F;
}
static ONNXTensorElementDataType its_output(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return F;
}
static OrtCustomOpInputOutputCharacteristic any_number(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return INPUT_OUTPUT_VARIADIC;
}
static OrtMemType in_memory(const OrtCustomOp *op, size_t i) {
    (void)op, (void)i;
    return OrtMemTypeDefault;
}
static int least_inputs(const OrtCustomOp *op) {
    return of(op)->least_in;
}
static int least_outputs(const OrtCustomOp *op) {
    return of(op)->least_out;
}
static int are_alike(const OrtCustomOp *op) {
    return of(op)->alike;
}
static int no(const OrtCustomOp *op) {
    (void)op;
    return 0;
}
static void *make_kernel(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info) {
    (void)api, (void)info;
    return (void *)(uintptr_t)op;
}
static void run_kernel(void *kernel, OrtKernelContext *context) {
    (void)kernel, (void)context;
}
static void drop_kernel(void *kernel) {
    (void)kernel;
}

static void test_variadic(const char *what, const char *model, variadic v, const char *words) {
    v.op = (OrtCustomOp){.version = 14,
                         .CreateKernel = make_kernel,
                         .GetName = its_name,
                         .GetExecutionProviderType = its_provider,
                         .GetInputType = its_input,
                         .GetInputTypeCount = its_ports,
                         .GetOutputType = its_output,
                         .GetOutputTypeCount = one_port,
                         .KernelCompute = run_kernel,
                         .KernelDestroy = drop_kernel,
                         .GetInputCharacteristic = any_number,
                         .GetOutputCharacteristic = any_number,
                         .GetInputMemoryType = in_memory,
                         .GetVariadicInputMinArity = least_inputs,
                         .GetVariadicInputHomogeneity = are_alike,
                         .GetVariadicOutputMinArity = least_outputs,
                         .GetVariadicOutputHomogeneity = no};
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.onnx", models, model);
    OrtSessionOptions *o = options_with(NULL, NULL, 1);
    OrtCustomOpDomain *d = NULL;
    OrtSession *s = NULL;
    MUST(CreateCustomOpDomain("test", &d));
    MUST(CustomOpDomain_Add(d, &v.op));
    MUST(AddCustomOpDomain(o, d));
    OrtStatus *status = ort->CreateSession(env, path, o, &s);
    bool found = status && strstr(ort->GetErrorMessage(status), words);
    printf("%s: %s, %s '%s'\n", what, status ? "refused" : "taken", found ? "with" : "without",
           words);
    if (status)
        printf("#   %.*s\n", (int)strcspn(ort->GetErrorMessage(status), "\n"),
               ort->GetErrorMessage(status));
    ort->ReleaseStatus(status);
    ort->ReleaseSession(s);
    ort->ReleaseSessionOptions(o);
    ort->ReleaseCustomOpDomain(d);
}

static void test_custom(void) {
    test_variadic("any number of values", "variadic", (variadic){.ports = 1, .least_in = 1}, "");
    test_variadic("not the last", "variadic", (variadic){.ports = 2, .least_in = 1},
                  "Only the last input to a custom op may be marked variadic.");
    test_variadic("too few inputs", "variadic", (variadic){.ports = 1, .least_in = 4},
                  "has input size 3 not in range [min=4,");
    test_variadic("too few outputs", "variadic",
                  (variadic){.ports = 1, .least_in = 1, .least_out = 4},
                  "has output size 2 not in range [min=4,");
    test_variadic("unlike inputs", "variadic_unlike",
                  (variadic){.ports = 1, .least_in = 1, .alike = 1, .open = true},
                  "Type Error: Type parameter (Input0) of Optype (VariadicNode) bound to different "
                  "types");
    variadic newer = {.ports = 1, .least_in = 1};
    newer.op.version = ORT_API_VERSION + 1;
    newer.op.GetName = its_name;
    newer.op.GetInputTypeCount = newer.op.GetOutputTypeCount = one_port;
    newer.op.GetInputType = its_input;
    newer.op.GetOutputType = its_output;
    OrtCustomOpDomain *d = NULL;
    MUST(CreateCustomOpDomain("test", &d));
    code("an operator of a newer version", ort->CustomOpDomain_Add(d, &newer.op));
    ort->ReleaseCustomOpDomain(d);
}

/* ---- Models ---- */

/* Runs a model of one input x (2, 3) and one output y. */
static void test_model(const char *name) {
    float x[6] = {0, 1, 2, 3, 4, 5};
    OrtSession *s = NULL;
    OrtStatus *status = try_open(name, 1, &s);
    if (status) { /* the two do not always agree on its code */
        const char *text = ort->GetErrorMessage(status);
        printf("%s: refused\n#   %.*s\n", name, (int)strcspn(text, "\n"), text);
        ort->ReleaseStatus(status);
        return;
    }
    const char *in = "x", *output = "y";
    OrtValue *value = wrap(x, 24, (int64_t[]){2, 3}, 2, F), *out = NULL;
    status = ort->Run(s, NULL, &in, (const OrtValue *const *)&value, 1, &output, 1, &out);
    if (status)
        code(name, status);
    else
        print_floats(name, out, 6);
    ort->ReleaseValue(out);
    ort->ReleaseValue(value);
    ort->ReleaseSession(s);
}

static void test_models(void) {
    static const char *const names[] = {"norm_typo",  "simplified_typo", "tool_attribute",
                                        "relu_typo",  "constant_twice",  "weight_twice",
                                        "relu_twice", "opset_zero",      "opset_zero_only",
                                        "loop_list",  "hard_link",       "unused_input"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) test_model(names[i]);
    OrtSession *s = NULL;
    OrtSessionOptions *o = options_with(NULL, NULL, 1);
    static char bytes[64];
    code("2^31 bytes", ort->CreateSessionFromArray(env, bytes, (size_t)1 << 31, o, &s));
    ort->ReleaseSessionOptions(o);
}

int main(int argc, char **argv) {
    if (argc != 3) die(argv[0], "LIBRARY MODELS");
    models = argv[2];
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_library(argv[1]);
    MUST(CreateEnv(ORT_LOGGING_LEVEL_FATAL, "letter", &env));
    MUST(CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault, &cpu));
    MUST(GetAllocatorWithDefaultOptions(&heap));
    test_settings();
    test_profile_clock();
    test_custom();
    test_words();
    test_outputs();
    test_async();
    test_values();
    test_attributes();
    test_models();
    ort->ReleaseMemoryInfo(cpu);
    ort->ReleaseEnv(env);
    return 0;
}
