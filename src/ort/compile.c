/* compile.c - OrtCompileApi: a compiled model is the model as it was understood, in one file. */
#include "ort/ep_host.h"
#include "ort/experimental.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_NO_NODES = 1, FLAG_FILE_EXISTS = 2 };

struct OrtModelCompilationOptions {
    OrtSessionOptions *session; /* a copy */
    char *input_path;
    const OrtModel *input_model; /* borrowed until CompileModel */
    const void *input_bytes;     /* borrowed until CompileModel */
    size_t input_size;
    char *output_path;
    char *context_path;      /* that providers name their files after; NULL: the output's */
    OrtAllocator *allocator; /* of the buffer that the output goes to */
    void **output_bytes;
    size_t *output_size;
    OrtWriteBufferFunc write;
    void *write_state;
    uint32_t flags;
};

OrtSessionOptions *ort_compile_session_options(OrtModelCompilationOptions *options) {
    return options->session;
}

static void release(OrtModelCompilationOptions *options) {
    if (!options) return;
    ort_ReleaseSessionOptions(options->session);
    free(options->input_path);
    free(options->output_path);
    free(options->context_path);
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
    options->input_model = NULL;
    return ort_replace_text(&options->input_path, path) ? NULL : ort_fail_memory();
}

static OrtStatusPtr set_input_bytes(OrtModelCompilationOptions *options, const void *bytes,
                                    size_t size) {
    NEED(options);
    NEED(bytes);
    ort_replace_text(&options->input_path, NULL);
    options->input_model = NULL;
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
    NEED(options);
    return ort_AddSessionConfigEntry(options->session, "ep.context_embed_mode", embed ? "1" : "0");
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
    char path[4096];
    if (!*folder || !*model_name)
        return ort_fail(ORT_INVALID_ARGUMENT, "the folder or the model's name is empty");
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, model_name) >= sizeof path)
        return ort_fail(ORT_INVALID_ARGUMENT, "the folder's name is too long");
    return ort_replace_text(&options->context_path, path) ? NULL : ort_fail_memory();
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
    NEED(options);
    NEED(model);
    ort_replace_text(&options->input_path, NULL);
    options->input_bytes = NULL;
    options->input_model = model;
    return NULL;
}

static OrtStatusPtr set_weightless(OrtModelCompilationOptions *options, bool weightless) {
    NEED(options);
    return weightless ? ort_not_implemented("ModelCompilationOptions_SetWeightlessEnabled") : NULL;
}

/* ---- Compiling ---- */

static OrtStatus *to_file(const OrtModelCompilationOptions *o, const ort_sink *s) {
    FILE *f = fopen(o->output_path, o->flags & FLAG_FILE_EXISTS ? "wbx" : "wb");
    if (!f) return ort_fail(ORT_FAIL, "CompileModel: '%s' cannot be written", o->output_path);
    bool good = fwrite(s->bytes, 1, s->size, f) == s->size;
    good = fclose(f) == 0 && good;
    return good ? NULL : ort_fail(ORT_FAIL, "CompileModel: '%s' is not complete", o->output_path);
}

static OrtStatus *deliver(const OrtModelCompilationOptions *o, const ort_sink *s) {
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

/* A session with providers that compile; its host has the compiled model then. */
static OrtStatus *open_session(const OrtModelCompilationOptions *o, OrtSession **out) {
    ort_sink built = {0};
    ort_source source = {.path = o->input_path, .bytes = o->input_bytes, .size = o->input_size};
    const char *place = o->context_path ? o->context_path : o->output_path ? o->output_path : "";
    ORT_TRY(ort_AddSessionConfigEntry(o->session, "ep.context_enable", "1"));
    if (*place) ORT_TRY(ort_AddSessionConfigEntry(o->session, "ep.context_file_path", place));
    if (o->input_model) {
        ORT_TRY(ort_model_to_bytes(o->input_model, &built));
        source = (ort_source){.bytes = built.bytes, .size = built.size};
    }
    o->session->compiles = true;
    OrtStatus *status = ort_session_make(&source, o->session, out);
    free(built.bytes);
    return status;
}

/* Without compiled parts the output is the model as it was understood. */
static OrtStatus *collect_output(const OrtSession *session, uint32_t flags, ort_sink *out) {
    const ort_host *host = session->host;
    sn_error err;
    if (host && host->context.size)
        return ort_sink_write(out, host->context.bytes, host->context.size) ? ort_fail_memory()
                                                                            : NULL;
    if (flags & FLAG_NO_NODES)
        return ort_fail(ORT_FAIL, "Unable to compile any nodes: no provider took any");
    if (sn_model_write(session->model, SN_FORMAT_ONNX, ort_sink_write, out, &err) != SN_OK)
        return ort_fail_sn(&err);
    return NULL;
}

static OrtStatusPtr compile(const OrtEnv *env, const OrtModelCompilationOptions *options) {
    NEED(env);
    NEED(options);
    if (!options->input_path && !options->input_bytes && !options->input_model)
        return ort_fail(ORT_INVALID_ARGUMENT, "CompileModel: there is no input model");
    if (!options->output_path && !options->write && !options->output_bytes)
        return ort_fail(ORT_INVALID_ARGUMENT, "CompileModel: there is no place for the output");
    OrtSession *session = NULL;
    ORT_TRY(open_session(options, &session));
    ort_sink s = {0};
    OrtStatus *status = collect_output(session, options->flags, &s);
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
