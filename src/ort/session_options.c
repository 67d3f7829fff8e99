/* session_options.c - options of sessions. */
#include "ort/ort.h"

#include <stdlib.h>
#include <string.h>

/* ---- Making ---- */

OrtStatusPtr ort_CreateSessionOptions(OrtSessionOptions **options) {
    NEED(options);
    OrtSessionOptions *o = calloc(1, sizeof *o);
    if (!o) return ort_fail_memory();
    o->optimization = ORT_ENABLE_ALL;
    o->mem_pattern = o->arena = true;
    o->log_level = -1;
    *options = o;
    return NULL;
}

void ort_ReleaseSessionOptions(OrtSessionOptions *input) {
    if (!input) return;
    free(input->optimized_path);
    free(input->profile_prefix);
    free(input->log_id);
    ort_pairs_clear(&input->config);
    for (size_t i = 0; i < input->dimension_count; i++) free(input->dimensions[i].name);
    for (size_t i = 0; i < input->weight_count; i++) {
        free(input->weights[i].name);
        sn_value_destroy(input->weights[i].value);
    }
    for (size_t i = 0; i < input->file_count; i++) free(input->files[i].name);
    free(input->dimensions);
    free(input->weights);
    free(input->files);
    for (size_t i = 0; i < input->domain_count; i++) ort_ReleaseCustomOpDomain(input->domains[i]);
    free(input->domains);
    free(input->ep_devices);
    free(input);
}

void *ort_append(void **list, size_t *count, size_t size) {
    char *bigger = realloc(*list, (*count + 1) * size);
    if (!bigger) return NULL;
    *list = bigger;
    memset(bigger + *count * size, 0, size);
    return bigger + (*count)++ * size;
}

static bool add_dimension(OrtSessionOptions *o, const char *name, bool by_denotation,
                          int64_t size) {
    ort_dimension *d = ort_append((void **)&o->dimensions, &o->dimension_count, sizeof *d);
    if (!d) return false;
    d->by_denotation = by_denotation;
    d->size = size;
    return ort_replace_text(&d->name, name);
}

static bool add_weight(OrtSessionOptions *o, const char *name, sn_value *value) {
    ort_weight *w = ort_append((void **)&o->weights, &o->weight_count, sizeof *w);
    if (!w) return false;
    w->value = sn_value_retain(value);
    return ort_replace_text(&w->name, name);
}

static bool add_file(OrtSessionOptions *o, const char *name, const void *bytes, size_t size) {
    ort_file *f = ort_append((void **)&o->files, &o->file_count, sizeof *f);
    if (!f) return false;
    f->bytes = bytes;
    f->size = size;
    return ort_replace_text(&f->name, name);
}

bool ort_add_domain(OrtSessionOptions *o, OrtCustomOpDomain *domain) {
    OrtCustomOpDomain **d = ort_append((void **)&o->domains, &o->domain_count, sizeof *d);
    if (!d) return false;
    atomic_fetch_add(&domain->refs, 1);
    *d = domain;
    return true;
}

static bool copy_lists(OrtSessionOptions *to, const OrtSessionOptions *from) {
    bool good = ort_pairs_copy(&to->config, &from->config);
    for (size_t i = 0; good && i < from->dimension_count; i++) {
        const ort_dimension *d = &from->dimensions[i];
        good = add_dimension(to, d->name, d->by_denotation, d->size);
    }
    for (size_t i = 0; good && i < from->weight_count; i++)
        good = add_weight(to, from->weights[i].name, from->weights[i].value);
    for (size_t i = 0; good && i < from->file_count; i++)
        good = add_file(to, from->files[i].name, from->files[i].bytes, from->files[i].size);
    for (size_t i = 0; good && i < from->domain_count; i++)
        good = ort_add_domain(to, from->domains[i]);
    for (size_t i = 0; good && i < from->ep_device_count; i++)
        good = ort_add_device(to, from->ep_devices[i]);
    return good;
}

OrtStatusPtr ort_CloneSessionOptions(const OrtSessionOptions *in_options,
                                     OrtSessionOptions **out_options) {
    NEED(in_options);
    NEED(out_options);
    OrtSessionOptions *o = malloc(sizeof *o);
    if (!o) return ort_fail_memory();
    *o = *in_options;
    o->optimized_path = o->profile_prefix = o->log_id = NULL;
    o->config = (OrtKeyValuePairs){0};
    o->dimensions = NULL;
    o->weights = NULL;
    o->files = NULL;
    o->domains = NULL;
    o->ep_devices = NULL;
    o->ep_device_count = 0;
    o->dimension_count = o->weight_count = o->file_count = o->domain_count = 0;
    bool good = ort_replace_text(&o->optimized_path, in_options->optimized_path) &&
                ort_replace_text(&o->profile_prefix, in_options->profile_prefix) &&
                ort_replace_text(&o->log_id, in_options->log_id) && copy_lists(o, in_options);
    if (!good) {
        ort_ReleaseSessionOptions(o);
        return ort_fail_memory();
    }
    *out_options = o;
    return NULL;
}

/* ---- Texts and numbers ---- */

static OrtStatus *set_text(char **text, const char *by) {
    return ort_replace_text(text, by) ? NULL : ort_fail_memory();
}

OrtStatusPtr ort_SetOptimizedModelFilePath(OrtSessionOptions *options,
                                           const char *optimized_model_filepath) {
    NEED(options);
    NEED(optimized_model_filepath);
    return set_text(&options->optimized_path,
                    *optimized_model_filepath ? optimized_model_filepath : NULL);
}

OrtStatusPtr ort_SetSessionExecutionMode(OrtSessionOptions *options, ExecutionMode execution_mode) {
    NEED(options);
    if (execution_mode != ORT_SEQUENTIAL && execution_mode != ORT_PARALLEL)
        return ort_fail(ORT_INVALID_ARGUMENT, "execution mode %d is not known",
                        (int)execution_mode);
    options->mode = execution_mode;
    return NULL;
}

OrtStatusPtr ort_GetSessionExecutionMode(const OrtSessionOptions *options, ExecutionMode *out) {
    NEED(options);
    NEED(out);
    *out = options->mode;
    return NULL;
}

OrtStatusPtr ort_EnableProfiling(OrtSessionOptions *options, const char *profile_file_prefix) {
    NEED(options);
    NEED(profile_file_prefix);
    return set_text(&options->profile_prefix, profile_file_prefix);
}

OrtStatusPtr ort_DisableProfiling(OrtSessionOptions *options) {
    NEED(options);
    return set_text(&options->profile_prefix, NULL);
}

OrtStatusPtr ort_EnableMemPattern(OrtSessionOptions *options) {
    NEED(options);
    options->mem_pattern = true;
    return NULL;
}

OrtStatusPtr ort_DisableMemPattern(OrtSessionOptions *options) {
    NEED(options);
    options->mem_pattern = false;
    return NULL;
}

OrtStatusPtr ort_GetMemPatternEnabled(const OrtSessionOptions *options, int *out) {
    NEED(options);
    NEED(out);
    *out = options->mem_pattern;
    return NULL;
}

OrtStatusPtr ort_EnableCpuMemArena(OrtSessionOptions *options) {
    NEED(options);
    options->arena = true;
    return NULL;
}

OrtStatusPtr ort_DisableCpuMemArena(OrtSessionOptions *options) {
    NEED(options);
    options->arena = false;
    return NULL;
}

OrtStatusPtr ort_SetSessionLogId(OrtSessionOptions *options, const char *logid) {
    NEED(options);
    NEED(logid);
    return set_text(&options->log_id, logid);
}

OrtStatusPtr ort_SetSessionLogVerbosityLevel(OrtSessionOptions *options,
                                             int session_log_verbosity_level) {
    NEED(options);
    options->verbosity = session_log_verbosity_level;
    return NULL;
}

OrtStatusPtr ort_SetSessionLogSeverityLevel(OrtSessionOptions *options,
                                            int session_log_severity_level) {
    NEED(options);
    if (session_log_severity_level < -1 || session_log_severity_level > ORT_LOGGING_LEVEL_FATAL)
        return ort_fail(ORT_INVALID_ARGUMENT, "log level %d is not known",
                        session_log_severity_level);
    options->log_level = session_log_severity_level;
    return NULL;
}

OrtStatusPtr ort_SetUserLoggingFunction(OrtSessionOptions *options,
                                        OrtLoggingFunction user_logging_function,
                                        void *user_logging_param) {
    NEED(options);
    options->log_function = user_logging_function;
    options->log_param = user_logging_param;
    return NULL;
}

OrtStatusPtr ort_SetSessionGraphOptimizationLevel(OrtSessionOptions *options,
                                                  GraphOptimizationLevel graph_optimization_level) {
    NEED(options);
    switch (graph_optimization_level) {
    case ORT_DISABLE_ALL:
    case ORT_ENABLE_BASIC:
    case ORT_ENABLE_EXTENDED:
    case ORT_ENABLE_LAYOUT:
    case ORT_ENABLE_ALL:
        options->optimization = graph_optimization_level;
        return NULL;
    }
    return ort_fail(ORT_INVALID_ARGUMENT, "optimisation level %d is not known",
                    (int)graph_optimization_level);
}

OrtStatusPtr ort_SetIntraOpNumThreads(OrtSessionOptions *options, int intra_op_num_threads) {
    NEED(options);
    options->threads = intra_op_num_threads > 0 ? intra_op_num_threads : 0;
    return NULL;
}

/* Steps of one run follow each other here: there are no threads between them. */
OrtStatusPtr ort_SetInterOpNumThreads(OrtSessionOptions *options, int inter_op_num_threads) {
    (void)inter_op_num_threads;
    NEED(options);
    return NULL;
}

OrtStatusPtr ort_DisablePerSessionThreads(OrtSessionOptions *options) {
    NEED(options);
    options->shared_threads = true;
    return NULL;
}

/* Results are the same bits for every call and thread count in any case. */
OrtStatusPtr ort_SetDeterministicCompute(OrtSessionOptions *options, bool value) {
    NEED(options);
    options->deterministic = value;
    return NULL;
}

OrtStatusPtr ort_SessionOptionsSetLoadCancellationFlag(OrtSessionOptions *options, bool cancel) {
    NEED(options);
    options->cancelled = cancel;
    return NULL;
}

/* ---- Settings by name: unknown ones are accepted ---- */

OrtStatus *ort_check_entry(const char *key, const char *value) {
    enum { MAX_KEY = 1024, MAX_VALUE = 8192 };
    size_t n = strlen(key);
    if (n == 0 || n > MAX_KEY)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Config key is empty or longer than maximum length %d", MAX_KEY);
    if (strlen(value) > MAX_VALUE)
        return ort_fail(ORT_INVALID_ARGUMENT, "Config value is longer than maximum length: %d",
                        MAX_VALUE);
    return NULL;
}

OrtStatusPtr ort_AddSessionConfigEntry(OrtSessionOptions *options, const char *config_key,
                                       const char *config_value) {
    NEED(options);
    NEED(config_key);
    NEED(config_value);
    ORT_TRY(ort_check_entry(config_key, config_value));
    return ort_pairs_set(&options->config, config_key, config_value) ? NULL : ort_fail_memory();
}

OrtStatusPtr ort_HasSessionConfigEntry(const OrtSessionOptions *options, const char *config_key,
                                       int *out) {
    NEED(options);
    NEED(config_key);
    NEED(out);
    *out = ort_pairs_get(&options->config, config_key) != NULL;
    return NULL;
}

OrtStatusPtr ort_GetSessionConfigEntry(const OrtSessionOptions *options, const char *config_key,
                                       char *config_value, size_t *size) {
    NEED(options);
    NEED(config_key);
    NEED(size);
    const char *value = ort_pairs_get(&options->config, config_key);
    if (!value)
        return ort_fail(ORT_FAIL, "GetSessionConfigEntry: there is no entry '%s'", config_key);
    return ort_give_text(value, strlen(value), config_value, size);
}

OrtStatusPtr ort_GetSessionOptionsConfigEntries(const OrtSessionOptions *options,
                                                OrtKeyValuePairs **out) {
    NEED(options);
    NEED(out);
    OrtKeyValuePairs *pairs = NULL;
    ort_CreateKeyValuePairs(&pairs);
    if (!pairs || !ort_pairs_copy(pairs, &options->config)) {
        ort_ReleaseKeyValuePairs(pairs);
        return ort_fail_memory();
    }
    *out = pairs;
    return NULL;
}

/* ---- What a model is given ---- */

static OrtStatus *fix_dimension(OrtSessionOptions *options, const char *name, bool by_denotation,
                                int64_t size) {
    if (size < 0)
        return ort_fail(ORT_INVALID_ARGUMENT, "dimension '%s' cannot be %lld", name,
                        (long long)size);
    return add_dimension(options, name, by_denotation, size) ? NULL : ort_fail_memory();
}

OrtStatusPtr ort_AddFreeDimensionOverride(OrtSessionOptions *options, const char *dim_denotation,
                                          int64_t dim_value) {
    NEED(options);
    NEED(dim_denotation);
    return fix_dimension(options, dim_denotation, true, dim_value);
}

OrtStatusPtr ort_AddFreeDimensionOverrideByName(OrtSessionOptions *options, const char *dim_name,
                                                int64_t dim_value) {
    NEED(options);
    NEED(dim_name);
    return fix_dimension(options, dim_name, false, dim_value);
}

OrtStatusPtr ort_AddInitializer(OrtSessionOptions *options, const char *name, const OrtValue *val) {
    NEED(options);
    NEED(name);
    NEED(val);
    if (sn_value_kind(ort_sn(val)) != SN_KIND_TENSOR)
        return ort_fail(ORT_INVALID_ARGUMENT, "AddInitializer: '%s' is not a tensor", name);
    for (size_t i = 0; i < options->weight_count; i++)
        if (strcmp(options->weights[i].name, name) == 0)
            return ort_fail(ORT_INVALID_ARGUMENT, "AddInitializer: '%s' is there already", name);
    return add_weight(options, name, ort_sn(val)) ? NULL : ort_fail_memory();
}

OrtStatusPtr ort_AddExternalInitializers(OrtSessionOptions *options,
                                         const char *const *initializer_names,
                                         const OrtValue *const *initializers,
                                         size_t num_initializers) {
    NEED(options);
    if (num_initializers) NEED(initializer_names);
    if (num_initializers) NEED(initializers);
    for (size_t i = 0; i < num_initializers; i++)
        ORT_TRY(ort_AddInitializer(options, initializer_names[i], initializers[i]));
    return NULL;
}

OrtStatusPtr ort_AddExternalInitializersFromFilesInMemory(
    OrtSessionOptions *options, const char *const *external_initializer_file_names,
    char *const *external_initializer_file_buffer_array,
    const size_t *external_initializer_file_lengths, size_t num_external_initializer_files) {
    NEED(options);
    if (!num_external_initializer_files) return NULL;
    NEED(external_initializer_file_names);
    NEED(external_initializer_file_buffer_array);
    NEED(external_initializer_file_lengths);
    for (size_t i = 0; i < num_external_initializer_files; i++) {
        const char *name = external_initializer_file_names[i];
        const void *bytes = external_initializer_file_buffer_array[i];
        if (!name || !*name || (!bytes && external_initializer_file_lengths[i]))
            return ort_fail(ORT_INVALID_ARGUMENT, "external file %zu has no name or no contents",
                            i);
        if (!add_file(options, name, bytes, external_initializer_file_lengths[i]))
            return ort_fail_memory();
    }
    return NULL;
}

/* ---- Providers: the CPU is always there ---- */

static const char cpu_provider[] = "CPUExecutionProvider";

OrtStatus *OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions *options, int use_arena) {
    NEED(options);
    options->arena = use_arena != 0;
    return NULL;
}

OrtStatusPtr ort_SessionOptionsAppendExecutionProvider(OrtSessionOptions *options,
                                                       const char *provider_name,
                                                       const char *const *provider_options_keys,
                                                       const char *const *provider_options_values,
                                                       size_t num_keys) {
    (void)provider_options_keys, (void)provider_options_values, (void)num_keys;
    NEED(options);
    NEED(provider_name);
    if (strcmp(provider_name, cpu_provider) == 0 || strcmp(provider_name, "CPU") == 0) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT,
                    "the execution provider '%s' is not in this library, which has '%s'",
                    provider_name, cpu_provider);
}

OrtStatusPtr ort_GetAvailableProviders(char ***out_ptr, int *provider_length) {
    NEED(out_ptr);
    NEED(provider_length);
    char **names = calloc(2, sizeof *names);
    if (!names || !ort_replace_text(&names[0], cpu_provider)) {
        free(names);
        return ort_fail_memory();
    }
    *out_ptr = names;
    *provider_length = 1;
    return NULL;
}

OrtStatusPtr ort_ReleaseAvailableProviders(char **ptr, int providers_length) {
    for (int i = 0; ptr && i < providers_length; i++) free(ptr[i]);
    free(ptr);
    return NULL;
}
