/* session.c - sessions: making them, and what can be asked of them. */
#include "ort/ep_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Loading ---- */

/* What options say about a model, as sinter.h wants it. */
typedef struct load {
    sn_load_options options;
    sn_dimension *dimensions;
    sn_binding *weights;
    sn_file *files;
} load;

/* Frees the arrays. What they point to belongs to the session options. */
static void load_clear(load *l) {
    free(l->dimensions);
    free(l->weights);
    free(l->files);
}

/* Makes `l` of the options, NULL being those by default. It borrows from them until load_clear(),
 * which only success asks for. */
static OrtStatus *load_init(load *l, const OrtSessionOptions *o) {
    *l = (load){0};
    sn_load_options_init(&l->options, sizeof l->options);
    l->options.allow_hard_links = true; /* as ONNX Runtime; the session's log warns */
    if (!o) return NULL;
    const char *links = ort_pairs_get(&o->config, "sinter.allow_hard_links");
    const char *strict = ort_pairs_get(&o->config, "sinter.strict");
    l->options.allow_hard_links = !links || strcmp(links, "0") != 0;
    l->options.strict = strict && strcmp(strict, "1") == 0;
    l->dimensions = calloc(o->dimension_count + 1, sizeof *l->dimensions);
    l->weights = calloc(o->weight_count + 1, sizeof *l->weights);
    l->files = calloc(o->file_count + 1, sizeof *l->files);
    if (!l->dimensions || !l->weights || !l->files) {
        load_clear(l);
        return ort_fail_memory();
    }
    for (size_t i = 0; i < o->dimension_count; i++)
        l->dimensions[i] = (sn_dimension){.name = o->dimensions[i].name,
                                          .by_denotation = o->dimensions[i].by_denotation,
                                          .size = o->dimensions[i].size};
    for (size_t i = 0; i < o->weight_count; i++)
        l->weights[i] = (sn_binding){.name = o->weights[i].name, .value = o->weights[i].value};
    for (size_t i = 0; i < o->file_count; i++)
        l->files[i] = (sn_file){
            .name = o->files[i].name, .bytes = o->files[i].bytes, .size = o->files[i].size};
    l->options.dimensions = l->dimensions;
    l->options.dimension_count = o->dimension_count;
    l->options.weights = l->weights;
    l->options.weight_count = o->weight_count;
    l->options.files = l->files;
    l->options.file_count = o->file_count;
    l->options.base_path =
        ort_pairs_get(&o->config, "session.model_external_initializers_file_folder_path");
    return NULL;
}

OrtStatus *ort_model_load(const OrtSession *s, const ort_source *source, const OrtSessionOptions *o,
                          sn_model **out) {
    load l;
    sn_error err;
    ORT_TRY(load_init(&l, o));
    if (s->folder && !l.options.base_path) l.options.base_path = s->folder;
    sn_operators *operators = NULL;
    OrtStatus *failed = ort_custom_set(o, &s->log, &operators);
    if (!failed && s->host) failed = ort_host_operators(s->host, &operators);
    if (!failed) {
        l.options.operators = operators;
        bool here = !source->path && !l.options.base_path;
        if (here) l.options.base_path = "."; /* external data is in the working directory */
        sn_status status =
            source->path ? sn_model_load(source->path, &l.options, out, &err)
                         : sn_model_load_memory(source->bytes, source->size, &l.options, out, &err);
        if (status != SN_OK && here && strstr(err.message, "escapes model directory"))
            failed =
                ort_fail(ORT_FAIL, "External data path escapes working directory: %s", err.message);
        else if (status != SN_OK)
            failed = ort_fail_sn(&err);
    }
    sn_operators_destroy(operators);
    load_clear(&l);
    return failed;
}

/* ---- Making ---- */

/* An sn_log_fn: what the engine says goes to the log of the session that loads. */
static void log_line(void *ctx, sn_log_level level, const char *text) {
    static const OrtLoggingLevel levels[] = {[SN_LOG_ERROR] = ORT_LOGGING_LEVEL_ERROR,
                                             [SN_LOG_WARNING] = ORT_LOGGING_LEVEL_WARNING,
                                             [SN_LOG_INFO] = ORT_LOGGING_LEVEL_INFO};
    const OrtSession *s = ctx;
    ort_log_write(&s->log, levels[level], "session", text);
}

/* The session's log: the environment's, where the options say nothing else. */
static OrtStatus *set_log(OrtSession *s, const OrtSessionOptions *o) {
    s->log = ort_env_log();
    if (o && o->log_function) {
        s->log.function = o->log_function;
        s->log.param = o->log_param;
    }
    if (o && o->log_level >= 0) s->log.level = (OrtLoggingLevel)o->log_level;
    if (o && o->log_id) {
        if (!ort_replace_text(&s->log_id, o->log_id)) return ort_fail_memory();
        s->log.id = s->log_id;
    }
    return NULL;
}

/* A number of bytes; absent is 0. */
static OrtStatus *read_bytes(const OrtSessionOptions *o, const char *key, uint64_t *out) {
    const char *text = ort_pairs_get(&o->config, key);
    char *end = NULL;
    errno = 0;
    *out = text ? strtoull(text, &end, 10) : 0;
    if (!text || (text[0] >= '0' && text[0] <= '9' && !*end && !errno)) return NULL;
    return ort_fail(ORT_INVALID_ARGUMENT, "%s is '%s', which is no number of bytes", key, text);
}

/* What options say about a session, as sinter.h wants it. `out` borrows from both. */
static OrtStatus *read_options(const OrtSessionOptions *o, OrtSession *s, sn_session_options *out) {
    sn_session_options_init(out, sizeof *out);
    out->log = log_line;
    out->log_ctx = s;
    if (!o) return NULL;
    const char *affinities = ort_pairs_get(&o->config, "session.intra_op_thread_affinities");
    if (affinities && !*affinities) return ort_fail(ORT_FAIL, "Affinity string must not be empty");
    out->threads = o->shared_threads ? ort_env_threads() : o->threads;
    s->threads = out->threads;
    out->optimize = o->optimization >= ORT_ENABLE_LAYOUT ? 3 : (int)o->optimization;
    out->cache_folder = ort_pairs_get(&o->config, "sinter.cache_folder");
    return read_bytes(o, "sinter.cache_limit", &out->cache_limit);
}

/* An sn_write_fn over a FILE. */
static int write_file(void *file, const void *bytes, size_t size) {
    return fwrite(bytes, 1, size, file) == size ? 0 : 1;
}

/* Writes the optimised model (SetOptimizedModelFilePath). A file that could not be finished stays
 * where it is. */
static OrtStatus *write_optimized(const OrtSession *s, const char *path) {
    FILE *f = fopen(path, "wb");
    if (!f) return ort_fail(ORT_FAIL, "the optimised model cannot be written to '%s'", path);
    sn_error err;
    sn_status status =
        sn_session_write(s->session, SN_STAGE_OPT, SN_FORMAT_ONNX, write_file, f, &err);
    bool closed = fclose(f) == 0;
    if (status != SN_OK) return ort_fail_sn(&err);
    return closed ? NULL : ort_fail(ORT_FAIL, "the optimised model did not fit into '%s'", path);
}

/* Inputs that must be given come first; initialisers that an input overrides come after them. */
static void count_ports(OrtSession *s) {
    size_t all = sn_model_input_count(s->model);
    while (s->input_count < all && !sn_model_input_is_optional(s->model, s->input_count))
        s->input_count++;
    s->initializer_count = all - s->input_count;
    s->output_count = sn_model_output_count(s->model);
}

/* The folder of a file, where its external data is. */
static OrtStatus *set_folder(OrtSession *s, const char *path) {
    const char *end = strrchr(path, '/');
    char *folder = end ? strndup(path, (size_t)(end - path) + (end == path)) : strdup(".");
    if (!folder) return ort_fail_memory();
    free(s->folder);
    s->folder = folder;
    return NULL;
}

/* Providers may take parts of the model over, which are loaded as operators then. */
static OrtStatus *load_with_host(OrtSession *s, const ort_source *source,
                                 const OrtSessionOptions *o) {
    ort_file_bytes file = {.p = (void *)source->bytes, .size = source->size};
    const char *path = source->path ? source->path : source->origin;
    if (path) ORT_TRY(set_folder(s, path));
    if (source->path) ORT_TRY(ort_file_read(source->path, &file));
    ort_sink changed = {0};
    OrtStatus *status = ort_host_open(s, o, &file, path ? path : "", &changed);
    if (!status) {
        ort_source from = {.bytes = changed.size ? changed.bytes : file.p,
                           .size = changed.size ? changed.size : file.size};
        status = ort_model_load(s, &from, o, &s->model);
    }
    if (source->path) ort_file_free(&file);
    free(changed.bytes);
    return status;
}

/* All of making a session. On failure the caller releases what is there so far. */
static OrtStatus *prepare(OrtSession *s, const ort_source *source, const OrtSessionOptions *o) {
    ORT_TRY(set_log(s, o));
    if (o && !o->shared_threads) ORT_TRY(ort_threads_hold(&o->thread_fns, &s->maker));
    if (o && o->profile_prefix) ORT_TRY(ort_profile_open(o->profile_prefix, &s->profile));
    s->profile_start = ort_now_ns();
    ORT_TRY(ort_host_wanted(o) ? load_with_host(s, source, o)
                               : ort_model_load(s, source, o, &s->model));
    uint64_t loaded = ort_now_ns();
    sn_session_options so;
    sn_error err;
    ORT_TRY(read_options(o, s, &so));
    if (sn_session_create(s->model, &so, &s->session, &err) != SN_OK) return ort_fail_sn(&err);
    count_ports(s);
    const char *record =
        o ? ort_pairs_get(&o->config, "session.record_ep_graph_assignment_info") : NULL;
    if (record && strcmp(record, "1") == 0) ORT_TRY(ort_assignment_make(s));
    if (s->profile) {
        ort_profile_run(s->profile, "model_loading", s->profile_start, loaded);
        ort_profile_run(s->profile, "session_initialization", loaded, ort_now_ns());
    }
    return o && o->optimized_path ? write_optimized(s, o->optimized_path) : NULL;
}

static OrtSession *new_session(void) {
    OrtSession *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->idle, NULL);
    return s;
}

OrtStatus *ort_session_make(const ort_source *source, const OrtSessionOptions *options,
                            OrtSession **out) {
    if (options && options->cancelled)
        return ort_fail(ORT_MODEL_LOAD_CANCELED, "loading the model was cancelled");
    OrtSession *s = new_session();
    if (!s) return ort_fail_memory();
    if (source->origin) {
        OrtStatus *failed = set_folder(s, source->origin);
        if (failed) {
            ort_ReleaseSession(s);
            return failed;
        }
    }
    OrtStatus *status = prepare(s, source, options);
    if (status)
        ort_ReleaseSession(s);
    else
        *out = s;
    return status;
}

/* ---- Sessions whose model is changed first ---- */

static OrtStatus *read_draft(OrtSession *s, const ort_source *source,
                             const OrtSessionOptions *options) {
    if (source->origin) ORT_TRY(set_folder(s, source->origin));
    ORT_TRY(set_log(s, options));
    s->draft_bytes = malloc(source->size + 1);
    if (!s->draft_bytes) return ort_fail_memory();
    memcpy(s->draft_bytes, source->bytes, source->size);
    ORT_TRY(ort_model_read(s->draft_bytes, source->size, source->origin ? source->origin : "",
                           &s->draft));
    ORT_TRY(ort_model_load(s, source, options, &s->model));
    count_ports(s);
    return NULL;
}

OrtStatus *ort_session_draft(const ort_source *source, const OrtSessionOptions *options,
                             OrtSession **out) {
    OrtSession *s = new_session();
    if (!s) return ort_fail_memory();
    OrtStatus *status = read_draft(s, source, options);
    if (status)
        ort_ReleaseSession(s);
    else
        *out = s;
    return status;
}

OrtStatus *ort_session_finish(OrtSession *s, const OrtSessionOptions *options) {
    ort_sink bytes = {0};
    ORT_TRY(ort_model_to_bytes(s->draft, &bytes));
    sn_model_destroy(s->model);
    s->model = NULL;
    s->input_count = s->initializer_count = s->output_count = 0;
    OrtStatus *status =
        prepare(s, &(ort_source){.bytes = bytes.bytes, .size = bytes.size}, options);
    free(bytes.bytes);
    if (status) return status;
    ort_model_free(s->draft);
    free(s->draft_bytes);
    s->draft = NULL;
    s->draft_bytes = NULL;
    return NULL;
}

void ort_ReleaseSession(OrtSession *input) {
    if (!input) return;
    pthread_mutex_lock(&input->lock);
    while (input->running) pthread_cond_wait(&input->idle, &input->lock);
    pthread_mutex_unlock(&input->lock);
    sn_session_destroy(input->session);
    sn_model_destroy(input->model);
    ort_host_close(input->host);
    ort_assignment_free(input->assignment);
    ort_model_free(input->draft);
    free(input->draft_bytes);
    free(input->folder);
    ort_threads_release(input->maker);
    ort_profile_free(input->profile);
    free(input->log_id);
    pthread_cond_destroy(&input->idle);
    pthread_mutex_destroy(&input->lock);
    free(input);
}

OrtStatusPtr ort_CreateSession(const OrtEnv *env, const char *model_path,
                               const OrtSessionOptions *options, OrtSession **out) {
    NEED(env);
    NEED(model_path);
    NEED(out);
    return ort_session_make(&(ort_source){.path = model_path}, options, out);
}

OrtStatusPtr ort_CreateSessionFromArray(const OrtEnv *env, const void *model_data,
                                        size_t model_data_length, const OrtSessionOptions *options,
                                        OrtSession **out) {
    NEED(env);
    NEED(model_data);
    NEED(out);
    if (model_data_length > INT32_MAX)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Model data size exceeds maximum supported size (2GB): %zu bytes",
                        model_data_length);
    return ort_session_make(&(ort_source){.bytes = model_data, .size = model_data_length}, options,
                            out);
}

/* ---- Packed weights are the session's own: a container has nothing to share ---- */

struct OrtPrepackedWeightsContainer {
    char unused;
};

OrtStatusPtr ort_CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer **out) {
    NEED(out);
    OrtPrepackedWeightsContainer *c = calloc(1, sizeof *c);
    if (!c) return ort_fail_memory();
    *out = c;
    return NULL;
}

void ort_ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer *input) {
    free(input);
}

OrtStatusPtr ort_CreateSessionWithPrepackedWeightsContainer(
    const OrtEnv *env, const char *model_path, const OrtSessionOptions *options,
    OrtPrepackedWeightsContainer *prepacked_weights_container, OrtSession **out) {
    NEED(prepacked_weights_container);
    return ort_CreateSession(env, model_path, options, out);
}

OrtStatusPtr ort_CreateSessionFromArrayWithPrepackedWeightsContainer(
    const OrtEnv *env, const void *model_data, size_t model_data_length,
    const OrtSessionOptions *options, OrtPrepackedWeightsContainer *prepacked_weights_container,
    OrtSession **out) {
    NEED(prepacked_weights_container);
    return ort_CreateSessionFromArray(env, model_data, model_data_length, options, out);
}

/* ---- Profiling ---- */

OrtStatusPtr ort_SessionEndProfiling(OrtSession *session, OrtAllocator *allocator, char **out) {
    NEED(session);
    NEED(allocator);
    NEED(out);
    return ort_copy_text(allocator, session->profile ? ort_profile_close(session->profile) : "",
                         out);
}

OrtStatusPtr ort_SessionGetProfilingStartTimeNs(const OrtSession *session, uint64_t *out) {
    NEED(session);
    NEED(out);
    *out = ort_wall_clock(session->profile_start);
    return NULL;
}
