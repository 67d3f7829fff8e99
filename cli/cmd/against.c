/* against.c - runs a model in another library that has the interface of libonnxruntime.so.1. */
#include "cli/cmd/against.h"

#include "ort/ort_abi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of element types are those of ONNX up to this one. */
enum { LAST_COMMON_TYPE = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 };

/* Everything that a run holds; all of it may be NULL. */
typedef struct other {
    const OrtApi *api;
    OrtEnv *env;
    OrtSessionOptions *options;
    OrtSession *session;
    OrtMemoryInfo *memory;
    OrtValue **inputs, **outputs;
    const char **input_names, **output_names;
    size_t n_inputs, n_outputs;
    sn_error *err;
} other;

static sn_status check(const other *o, OrtStatus *status, const char *what) {
    if (!status) return SN_OK;
    cli_fail(o->err, SN_BAD_DATA, "%s: %s", what, o->api->GetErrorMessage(status));
    o->api->ReleaseStatus(status);
    return SN_BAD_DATA;
}

#define ORT_TRY(o, call)                                        \
    do {                                                        \
        sn_status ort_try_ = check((o), (o)->api->call, #call); \
        if (ort_try_ != SN_OK) return ort_try_;                 \
    } while (0)

static sn_status open_library(other *o, const char *library) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return cli_fail(o->err, SN_NOT_FOUND, "%s", dlerror());
    const OrtApiBase *(*base)(void) = NULL;
    *(void **)&base = dlsym(handle, "OrtGetApiBase");
    if (!base) return cli_fail(o->err, SN_UNSUPPORTED, "%s has no OrtGetApiBase", library);
    o->api = base()->GetApi(1);
    if (!o->api) return cli_fail(o->err, SN_UNSUPPORTED, "%s gives no table", library);
    return SN_OK;
}

static sn_status open_session(other *o, const sn_model *model, int threads) {
    cli_text bytes = {0};
    sn_status status = sn_model_write(model, SN_FORMAT_ONNX, cli_text_write, &bytes, o->err);
    if (status == SN_OK)
        status =
            check(o, o->api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "sinter", &o->env), "CreateEnv");
    if (status == SN_OK)
        status = check(o, o->api->CreateSessionOptions(&o->options), "CreateSessionOptions");
    if (status == SN_OK)
        status = check(o, o->api->SetSessionGraphOptimizationLevel(o->options, ORT_DISABLE_ALL),
                       "SetSessionGraphOptimizationLevel");
    if (status == SN_OK)
        status =
            check(o, o->api->SetIntraOpNumThreads(o->options, threads), "SetIntraOpNumThreads");
    if (status == SN_OK)
        status = check(o,
                       o->api->CreateSessionFromArray(o->env, bytes.data, bytes.length, o->options,
                                                      &o->session),
                       "CreateSessionFromArray");
    cli_text_free(&bytes);
    return status;
}

static sn_status give_strings(other *o, const sn_value *v, OrtValue **out) {
    OrtAllocator *allocator;
    size_t count = sn_tensor_count(v), length;
    ORT_TRY(o, GetAllocatorWithDefaultOptions(&allocator));
    ORT_TRY(o, CreateTensorAsOrtValue(allocator, sn_tensor_dims(v), (size_t)sn_tensor_rank(v),
                                      ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, out));
    const char **texts = cli_alloc(count + 1, sizeof *texts);
    sn_status status = SN_OK;
    for (size_t i = 0; i < count && status == SN_OK; i++)
        status = sn_tensor_get_string(v, i, &texts[i], &length, o->err);
    if (status == SN_OK)
        status = check(o, o->api->FillStringTensor(*out, texts, count), "FillStringTensor");
    free(texts);
    return status;
}

static sn_status give_input(other *o, const sn_binding *input, OrtValue **out) {
    sn_value *v = input->value;
    sn_dtype type = sn_tensor_dtype(v);
    if (sn_value_kind(v) != SN_KIND_TENSOR || (int)type > LAST_COMMON_TYPE)
        return cli_fail(o->err, SN_UNSUPPORTED,
                        "input '%s' is of a type that cannot be given to another library",
                        input->name);
    if (type == SN_STRING) return give_strings(o, v, out);
    ORT_TRY(o, CreateTensorWithDataAsOrtValue(o->memory, sn_tensor_data(v), sn_tensor_bytes(v),
                                              sn_tensor_dims(v), (size_t)sn_tensor_rank(v),
                                              (ONNXTensorElementDataType)type, out));
    return SN_OK;
}

static sn_status give_inputs(other *o, const sn_model *model, const cli_inputs *inputs) {
    o->inputs = cli_alloc(inputs->count + 1, sizeof *o->inputs);
    o->input_names = cli_alloc(inputs->count + 1, sizeof *o->input_names);
    ORT_TRY(o, CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &o->memory));
    for (size_t i = 0; i < sn_model_input_count(model); i++) {
        sn_value_info info;
        sn_status status = sn_model_input(model, i, &info, o->err);
        if (status != SN_OK) return status;
        for (size_t k = 0; k < inputs->count; k++) {
            if (strcmp(inputs->items[k].name, info.name) != 0) continue;
            o->input_names[o->n_inputs] = inputs->items[k].name;
            status = give_input(o, &inputs->items[k], &o->inputs[o->n_inputs++]);
            if (status != SN_OK) return status;
            break;
        }
    }
    return SN_OK;
}

static sn_status name_outputs(other *o, const sn_model *model) {
    o->n_outputs = sn_model_output_count(model);
    o->outputs = cli_alloc(o->n_outputs + 1, sizeof *o->outputs);
    o->output_names = cli_alloc(o->n_outputs + 1, sizeof *o->output_names);
    for (size_t i = 0; i < o->n_outputs; i++) {
        sn_value_info info;
        sn_status status = sn_model_output(model, i, &info, o->err);
        if (status != SN_OK) return status;
        o->output_names[i] = info.name;
    }
    return SN_OK;
}

/* A copy of an output; NULL if it is no tensor of numbers. */
static sn_status copy_output(const other *o, const OrtTensorTypeAndShapeInfo *info, OrtValue *from,
                             sn_value **out) {
    ONNXTensorElementDataType type;
    size_t rank;
    int64_t dims[SN_MAX_RANK];
    void *data;
    ORT_TRY(o, GetTensorElementType(info, &type));
    ORT_TRY(o, GetDimensionsCount(info, &rank));
    if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING || (int)type > LAST_COMMON_TYPE ||
        rank > SN_MAX_RANK)
        return SN_OK;
    ORT_TRY(o, GetDimensions(info, dims, rank));
    ORT_TRY(o, GetTensorMutableData(from, &data));
    sn_value *copy;
    sn_status status = sn_tensor_create((sn_dtype)type, (int)rank, dims, &copy, o->err);
    if (status != SN_OK) return status;
    if (sn_tensor_bytes(copy)) memcpy(sn_tensor_data(copy), data, sn_tensor_bytes(copy));
    *out = copy;
    return SN_OK;
}

static sn_status take_output(const other *o, size_t index, sn_value_fn take, void *ctx) {
    int is_tensor = 0;
    ORT_TRY(o, IsTensor(o->outputs[index], &is_tensor));
    if (!is_tensor) return SN_OK;
    OrtTensorTypeAndShapeInfo *info;
    sn_value *value = NULL;
    ORT_TRY(o, GetTensorTypeAndShape(o->outputs[index], &info));
    sn_status status = copy_output(o, info, o->outputs[index], &value);
    o->api->ReleaseTensorTypeAndShapeInfo(info);
    if (value) take(ctx, o->output_names[index], "", value);
    sn_value_destroy(value);
    return status;
}

static void release(other *o) {
    for (size_t i = 0; i < o->n_inputs; i++)
        if (o->inputs[i]) o->api->ReleaseValue(o->inputs[i]);
    for (size_t i = 0; i < o->n_outputs; i++)
        if (o->outputs[i]) o->api->ReleaseValue(o->outputs[i]);
    if (o->memory) o->api->ReleaseMemoryInfo(o->memory);
    if (o->session) o->api->ReleaseSession(o->session);
    if (o->options) o->api->ReleaseSessionOptions(o->options);
    if (o->env) o->api->ReleaseEnv(o->env);
    free(o->inputs);
    free(o->outputs);
    free(o->input_names);
    free(o->output_names);
}

sn_status cli_against_run(const char *library, const sn_model *model, const cli_inputs *inputs,
                          int threads, sn_value_fn take, void *ctx, sn_error *err) {
    other o = {.err = err};
    sn_status status = open_library(&o, library);
    if (status == SN_OK) status = open_session(&o, model, threads);
    if (status == SN_OK) status = give_inputs(&o, model, inputs);
    if (status == SN_OK) status = name_outputs(&o, model);
    if (status == SN_OK)
        status = check(&o,
                       o.api->Run(o.session, NULL, o.input_names, (const OrtValue *const *)o.inputs,
                                  o.n_inputs, o.output_names, o.n_outputs, o.outputs),
                       "Run");
    for (size_t i = 0; i < o.n_outputs && status == SN_OK; i++)
        status = take_output(&o, i, take, ctx);
    release(&o);
    if (status != SN_OK) cli_fail_context(err, "%s", library);
    return status;
}
