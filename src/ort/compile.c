/* compile.c - OrtCompileApi: a compiled model is the model as it was understood, in one file. */
#include "ort/ort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_NO_NODES = 1, FLAG_FILE_EXISTS = 2 };

struct OrtModelCompilationOptions {
    OrtSessionOptions *session; /* a copy */
    char *input_path;
    const void *input_bytes; /* borrowed until CompileModel */
    size_t input_size;
    char *output_path;
    OrtAllocator *allocator; /* of the buffer that the output goes to */
    void **output_bytes;
    size_t *output_size;
    OrtWriteBufferFunc write;
    void *write_state;
    uint32_t flags;
};

static void release(OrtModelCompilationOptions *options) {
    if (!options) return;
    ort_ReleaseSessionOptions(options->session);
    free(options->input_path);
    free(options->output_path);
    free(options);
}

static OrtStatusPtr create(const OrtEnv *env, const OrtSessionOptions *session_options,
                           OrtModelCompilationOptions **out) {
    NEED(env);
    NEED(session_options);
    NEED(out);
    OrtModelCompilationOptions *o = calloc(1, sizeof *o);
    if (!o) return ort_fail_memory();
    OrtStatus *status = ort_CloneSessionOptions(session_options, &o->session);
    if (status)
        release(o);
    else
        *out = o;
    return status;
}

static OrtStatusPtr set_input_path(OrtModelCompilationOptions *options, const char *path) {
    NEED(options);
    NEED(path);
    options->input_bytes = NULL;
    return ort_replace_text(&options->input_path, path) ? NULL : ort_fail_memory();
}

static OrtStatusPtr set_input_bytes(OrtModelCompilationOptions *options, const void *bytes,
                                    size_t size) {
    NEED(options);
    NEED(bytes);
    ort_replace_text(&options->input_path, NULL);
    options->input_bytes = bytes;
    options->input_size = size;
    return NULL;
}

static OrtStatusPtr set_output_path(OrtModelCompilationOptions *options, const char *path) {
    NEED(options);
    NEED(path);
    return ort_replace_text(&options->output_path, path) ? NULL : ort_fail_memory();
}

/* The output is one file, weights included: that is what any threshold allows. */
static OrtStatusPtr set_weights_file(OrtModelCompilationOptions *options, const char *path,
                                     size_t threshold) {
    (void)threshold;
    NEED(options);
    NEED(path);
    return NULL;
}

static OrtStatusPtr set_output_bytes(OrtModelCompilationOptions *options, OrtAllocator *allocator,
                                     void **bytes, size_t *size) {
    NEED(options);
    NEED(allocator);
    NEED(bytes);
    NEED(size);
    options->allocator = allocator;
    options->output_bytes = bytes;
    options->output_size = size;
    return NULL;
}

static OrtStatusPtr set_embed(OrtModelCompilationOptions *options, bool embed) {
    (void)embed;
    NEED(options);
    return NULL;
}

static OrtStatusPtr set_flags(OrtModelCompilationOptions *options, uint32_t flags) {
    NEED(options);
    options->flags = flags;
    return NULL;
}

static OrtStatusPtr set_folder(OrtModelCompilationOptions *options, const char *folder,
                               const char *model_name) {
    NEED(options);
    NEED(folder);
    NEED(model_name);
    return NULL;
}

static OrtStatusPtr set_level(OrtModelCompilationOptions *options, GraphOptimizationLevel level) {
    NEED(options);
    return ort_SetSessionGraphOptimizationLevel(options->session, level);
}

static OrtStatusPtr set_write(OrtModelCompilationOptions *options, OrtWriteBufferFunc write,
                              void *state) {
    NEED(options);
    NEED(write);
    options->write = write;
    options->write_state = state;
    return NULL;
}

static OrtStatusPtr set_locate(OrtModelCompilationOptions *options,
                               OrtGetInitializerLocationFunc locate, void *state) {
    (void)locate, (void)state;
    NEED(options);
    return ort_not_implemented("ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc");
}

static OrtStatusPtr set_input_model(OrtModelCompilationOptions *options, const OrtModel *model) {
    (void)model;
    NEED(options);
    return ort_not_implemented("ModelCompilationOptions_SetInputModel");
}

static OrtStatusPtr set_weightless(OrtModelCompilationOptions *options, bool weightless) {
    NEED(options);
    return weightless ? ort_not_implemented("ModelCompilationOptions_SetWeightlessEnabled") : NULL;
}

/* ---- Compiling ---- */

/* Output that is collected in memory. */
typedef struct sink {
    char *bytes;
    size_t size, capacity;
} sink;

static int collect(void *ctx, const void *bytes, size_t size) {
    sink *s = ctx;
    if (size > s->capacity - s->size) {
        size_t capacity = s->capacity * 2 + size;
        char *bigger = realloc(s->bytes, capacity);
        if (!bigger) return 1;
        s->bytes = bigger;
        s->capacity = capacity;
    }
    if (size) memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
    return 0;
}

static OrtStatus *to_file(const OrtModelCompilationOptions *o, const sink *s) {
    FILE *f = fopen(o->output_path, o->flags & FLAG_FILE_EXISTS ? "wbx" : "wb");
    if (!f) return ort_fail(ORT_FAIL, "CompileModel: '%s' cannot be written", o->output_path);
    bool good = fwrite(s->bytes, 1, s->size, f) == s->size;
    good = fclose(f) == 0 && good;
    return good ? NULL : ort_fail(ORT_FAIL, "CompileModel: '%s' is not complete", o->output_path);
}

static OrtStatus *deliver(const OrtModelCompilationOptions *o, const sink *s) {
    if (o->output_path) ORT_TRY(to_file(o, s));
    if (o->write) ORT_TRY(o->write(o->write_state, s->bytes, s->size));
    if (!o->output_bytes) return NULL;
    void *copy = o->allocator->Alloc(o->allocator, s->size);
    if (!copy) return ort_fail_memory();
    memcpy(copy, s->bytes, s->size);
    *o->output_bytes = copy;
    *o->output_size = s->size;
    return NULL;
}

static OrtStatusPtr compile(const OrtEnv *env, const OrtModelCompilationOptions *options) {
    NEED(env);
    NEED(options);
    if (!options->input_path && !options->input_bytes)
        return ort_fail(ORT_INVALID_ARGUMENT, "CompileModel: there is no input model");
    if (!options->output_path && !options->write && !options->output_bytes)
        return ort_fail(ORT_INVALID_ARGUMENT, "CompileModel: there is no place for the output");
    if (options->flags & FLAG_NO_NODES)
        return ort_fail(ORT_FAIL, "CompileModel: no provider here compiles nodes");
    OrtSession *session = NULL;
    ORT_TRY(options->input_path
                ? ort_CreateSession(env, options->input_path, options->session, &session)
                : ort_CreateSessionFromArray(env, options->input_bytes, options->input_size,
                                             options->session, &session));
    sink s = {0};
    sn_error err;
    OrtStatus *status = NULL;
    if (sn_model_write(session->model, SN_FORMAT_ONNX, collect, &s, &err) != SN_OK)
        status = ort_fail_sn(&err);
    if (!status) status = deliver(options, &s);
    free(s.bytes);
    ort_ReleaseSession(session);
    return status;
}

const OrtCompileApi *ort_GetCompileApi(void) {
    static const OrtCompileApi api = {
        .ReleaseModelCompilationOptions = release,
        .CreateModelCompilationOptionsFromSessionOptions = create,
        .ModelCompilationOptions_SetInputModelPath = set_input_path,
        .ModelCompilationOptions_SetInputModelFromBuffer = set_input_bytes,
        .ModelCompilationOptions_SetOutputModelPath = set_output_path,
        .ModelCompilationOptions_SetOutputModelExternalInitializersFile = set_weights_file,
        .ModelCompilationOptions_SetOutputModelBuffer = set_output_bytes,
        .ModelCompilationOptions_SetEpContextEmbedMode = set_embed,
        .CompileModel = compile,
        .ModelCompilationOptions_SetFlags = set_flags,
        .ModelCompilationOptions_SetEpContextBinaryInformation = set_folder,
        .ModelCompilationOptions_SetGraphOptimizationLevel = set_level,
        .ModelCompilationOptions_SetOutputModelWriteFunc = set_write,
        .ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc = set_locate,
        .ModelCompilationOptions_SetInputModel = set_input_model,
        .ModelCompilationOptions_SetWeightlessEnabled = set_weightless,
    };
    return &api;
}
