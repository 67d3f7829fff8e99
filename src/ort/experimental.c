/* experimental.c - functions that are found by name: callbacks for the data of compiled parts. */
#include "ort/experimental.h"

#include <stdlib.h>
#include <string.h>

typedef struct OrtEpContextConfig {
    ort_context_data data;
} OrtEpContextConfig;

static OrtStatusPtr test(int64_t *out) {
    NEED(out);
    *out = 42;
    return NULL;
}

static OrtStatusPtr set_read(OrtSessionOptions *options, OrtReadNamedBufferFunc read, void *state) {
    NEED(options);
    options->context_data.read = read;
    options->context_data.read_state = state;
    return NULL;
}

static OrtStatusPtr set_write(OrtModelCompilationOptions *options, OrtWriteNamedBufferFunc write,
                              void *state) {
    NEED(options);
    OrtSessionOptions *session = ort_compile_session_options(options);
    session->context_data.write = write;
    session->context_data.write_state = state;
    return NULL;
}

static OrtStatusPtr get_config(const OrtSessionOptions *options, OrtEpContextConfig **out) {
    NEED(options);
    NEED(out);
    OrtEpContextConfig *c = malloc(sizeof *c);
    if (!c) return ort_fail_memory();
    c->data = options->context_data;
    *out = c;
    return NULL;
}

static void release_config(OrtEpContextConfig *config) {
    free(config);
}

static OrtStatusPtr get_read(const OrtEpContextConfig *config, OrtReadNamedBufferFunc *read,
                             void **state) {
    NEED(config);
    NEED(read);
    NEED(state);
    *read = config->data.read;
    *state = config->data.read_state;
    return NULL;
}

static OrtStatusPtr get_write(const OrtEpContextConfig *config, OrtWriteNamedBufferFunc *write,
                              void **state) {
    NEED(config);
    NEED(write);
    NEED(state);
    *write = config->data.write;
    *state = config->data.write_state;
    return NULL;
}

#define FOUND(text, function) \
    { text "_SinceV28", (OrtExperimentalFnPtr)(void *)(function) }
OrtExperimentalFnPtr ort_GetExperimentalFunction(const char *name) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
    static const struct {
        const char *name;
        OrtExperimentalFnPtr function;
    } all[] = {
        FOUND("OrtApi_ExperimentalApiTest", test),
        FOUND("OrtApi_SessionOptions_SetEpContextDataReadFunc", set_read),
        FOUND("OrtCompileApi_ModelCompilationOptions_SetEpContextDataWriteFunc", set_write),
        FOUND("OrtEpApi_SessionOptions_GetEpContextConfig", get_config),
        FOUND("OrtEpApi_ReleaseEpContextConfig", release_config),
        FOUND("OrtEpApi_EpContextConfig_GetEpContextDataReadFunc", get_read),
        FOUND("OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc", get_write),
    };
#pragma GCC diagnostic pop
    for (size_t i = 0; name && i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0) return all[i].function;
    return NULL;
}
