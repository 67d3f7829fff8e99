/* env.c - the environment: one for the process, counted, with its log and thread settings. */
#include "ort/ep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_SIZE = 128 };

/* Calls may come after the last release, so that it is never destroyed. */
struct OrtEnv {
    pthread_mutex_t lock; /* guards what follows */
    size_t holders;
    ort_log log; /* its id is the array below */
    char id[ID_SIZE];
    bool has_threads; /* it was made with a thread pool for all sessions */
    int threads;
    ort_maker *maker; /* NULL: the engine's own threads */
    OrtKeyValuePairs config;
};

static OrtEnv the_env = {.lock = PTHREAD_MUTEX_INITIALIZER,
                         .log = {.level = ORT_LOGGING_LEVEL_WARNING}};

/* ---- Logging ---- */

static void write_line(OrtLoggingLevel level, const char *id, const char *where, const char *text) {
    fprintf(stderr, "[%c:%s, %s] %s\n", "VIWEF"[level], id ? id : "", where, text);
}

void ort_log_write(const ort_log *log, OrtLoggingLevel level, const char *where, const char *text) {
    if (level < log->level || level > ORT_LOGGING_LEVEL_FATAL || level < 0) return;
    if (log->function)
        log->function(log->param, level, "sinter", log->id ? log->id : "", where, text);
    else
        write_line(level, log->id, where, text);
}

ort_log ort_env_log(void) {
    pthread_mutex_lock(&the_env.lock);
    ort_log log = the_env.log;
    pthread_mutex_unlock(&the_env.lock);
    log.id = the_env.id; /* set once, by the first holder */
    return log;
}

int ort_env_threads(void) {
    pthread_mutex_lock(&the_env.lock);
    int threads = the_env.has_threads ? the_env.threads : 0;
    pthread_mutex_unlock(&the_env.lock);
    return threads;
}

/* ---- Making ---- */

/* The first holder decides about log and threads; later ones share what there is. */
static OrtStatus *hold(OrtLoggingFunction function, void *param, OrtLoggingLevel level,
                       const char *id, const OrtThreadingOptions *threading, OrtEnv **out) {
    OrtStatus *failed = NULL;
    pthread_mutex_lock(&the_env.lock);
    if (the_env.holders == 0 && threading)
        failed = ort_threads_hold(&threading->fns, &the_env.maker);
    if (!failed && the_env.holders++ == 0) {
        the_env.log = (ort_log){.function = function, .param = param, .level = level};
        snprintf(the_env.id, sizeof the_env.id, "%s", id);
        the_env.has_threads = threading != NULL;
        the_env.threads = threading ? threading->threads : 0;
    }
    pthread_mutex_unlock(&the_env.lock);
    if (!failed) *out = &the_env;
    return failed;
}

OrtStatusPtr ort_CreateEnvWithOptions(const OrtEnvCreationOptions *options, OrtEnv **out) {
    NEED(options);
    NEED(out);
    NEED(options->log_id);
    if (options->logging_severity_level < ORT_LOGGING_LEVEL_VERBOSE ||
        options->logging_severity_level > ORT_LOGGING_LEVEL_FATAL)
        return ort_fail(ORT_INVALID_ARGUMENT, "log level %d is not known",
                        options->logging_severity_level);
    ORT_TRY(hold(options->custom_logging_function, options->custom_logging_param,
                 (OrtLoggingLevel)options->logging_severity_level, options->log_id,
                 options->threading_options, out));
    if (!options->config_entries) return NULL;
    pthread_mutex_lock(&the_env.lock);
    bool good = the_env.holders > 1 || ort_pairs_copy(&the_env.config, options->config_entries);
    pthread_mutex_unlock(&the_env.lock);
    if (good) return NULL;
    ort_ReleaseEnv(*out);
    return ort_fail_memory();
}

OrtStatus *ort_env_config(OrtKeyValuePairs **out) {
    OrtKeyValuePairs *pairs = NULL;
    ort_CreateKeyValuePairs(&pairs);
    pthread_mutex_lock(&the_env.lock);
    bool good = pairs && ort_pairs_copy(pairs, &the_env.config);
    pthread_mutex_unlock(&the_env.lock);
    if (good) {
        *out = pairs;
        return NULL;
    }
    ort_ReleaseKeyValuePairs(pairs);
    return ort_fail_memory();
}

OrtStatusPtr ort_ep_GetEnvConfigEntries(OrtKeyValuePairs **out) {
    NEED(out);
    return ort_env_config(out);
}

OrtStatusPtr ort_CreateEnv(OrtLoggingLevel log_severity_level, const char *logid, OrtEnv **out) {
    NEED(logid);
    NEED(out);
    return hold(NULL, NULL, log_severity_level, logid, NULL, out);
}

OrtStatusPtr ort_CreateEnvWithCustomLogger(OrtLoggingFunction logging_function, void *logger_param,
                                           OrtLoggingLevel log_severity_level, const char *logid,
                                           OrtEnv **out) {
    NEED(logging_function);
    NEED(logid);
    NEED(out);
    return hold(logging_function, logger_param, log_severity_level, logid, NULL, out);
}

OrtStatusPtr ort_CreateEnvWithGlobalThreadPools(OrtLoggingLevel log_severity_level,
                                                const char *logid,
                                                const OrtThreadingOptions *tp_options,
                                                OrtEnv **out) {
    NEED(logid);
    NEED(tp_options);
    NEED(out);
    return hold(NULL, NULL, log_severity_level, logid, tp_options, out);
}

OrtStatusPtr ort_CreateEnvWithCustomLoggerAndGlobalThreadPools(
    OrtLoggingFunction logging_function, void *logger_param, OrtLoggingLevel log_severity_level,
    const char *logid, const OrtThreadingOptions *tp_options, OrtEnv **out) {
    NEED(logging_function);
    NEED(logid);
    NEED(tp_options);
    NEED(out);
    return hold(logging_function, logger_param, log_severity_level, logid, tp_options, out);
}

void ort_ReleaseEnv(OrtEnv *input) {
    if (!input) return;
    ort_maker *maker = NULL;
    pthread_mutex_lock(&the_env.lock);
    if (the_env.holders && --the_env.holders == 0) { /* the program's functions may be gone */
        the_env.log = (ort_log){.level = ORT_LOGGING_LEVEL_WARNING};
        maker = the_env.maker;
        the_env.maker = NULL;
        ort_pairs_clear(&the_env.config);
    }
    pthread_mutex_unlock(&the_env.lock);
    ort_threads_release(maker);
}

OrtStatusPtr ort_UpdateEnvWithCustomLogLevel(OrtEnv *ort_env, OrtLoggingLevel log_severity_level) {
    NEED(ort_env);
    pthread_mutex_lock(&the_env.lock);
    the_env.log.level = log_severity_level;
    pthread_mutex_unlock(&the_env.lock);
    return NULL;
}

/* Nothing is ever reported to anybody. */
OrtStatusPtr ort_EnableTelemetryEvents(const OrtEnv *env) {
    NEED(env);
    return NULL;
}

OrtStatusPtr ort_DisableTelemetryEvents(const OrtEnv *env) {
    NEED(env);
    return NULL;
}

OrtStatusPtr ort_SetLanguageProjection(const OrtEnv *ort_env, OrtLanguageProjection projection) {
    (void)projection;
    NEED(ort_env);
    return NULL;
}

/* ---- Thread settings ---- */

OrtStatusPtr ort_CreateThreadingOptions(OrtThreadingOptions **out) {
    NEED(out);
    OrtThreadingOptions *o = calloc(1, sizeof *o);
    if (!o) return ort_fail_memory();
    *out = o;
    return NULL;
}

void ort_ReleaseThreadingOptions(OrtThreadingOptions *input) {
    free(input);
}

OrtStatusPtr ort_SetGlobalIntraOpNumThreads(OrtThreadingOptions *tp_options,
                                            int intra_op_num_threads) {
    NEED(tp_options);
    if (intra_op_num_threads < 0)
        return ort_fail(ORT_INVALID_ARGUMENT, "%d threads are asked for", intra_op_num_threads);
    tp_options->threads = intra_op_num_threads;
    return NULL;
}

/* Steps of one run follow each other here: there are no threads between them. */
OrtStatusPtr ort_SetGlobalInterOpNumThreads(OrtThreadingOptions *tp_options,
                                            int inter_op_num_threads) {
    NEED(tp_options);
    if (inter_op_num_threads < 0)
        return ort_fail(ORT_INVALID_ARGUMENT, "%d threads are asked for", inter_op_num_threads);
    return NULL;
}

/* "1,2;3,4;5-8": the processors of each thread but the caller's. The engine's threads go where the
 * system puts them, so that the text is checked and has no effect. */
static bool is_affinity(const char *text) {
    bool digit = false; /* a number stands before */
    for (const char *p = text; *p; p++) {
        bool now = *p >= '0' && *p <= '9';
        if (!now && (!strchr(",;-", *p) || !digit)) return false;
        digit = now;
    }
    return digit;
}

OrtStatusPtr ort_SetGlobalIntraOpThreadAffinity(OrtThreadingOptions *tp_options,
                                                const char *affinity_string) {
    NEED(tp_options);
    NEED(affinity_string);
    size_t length = strnlen(affinity_string, 2048);
    if (length == 2048)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "Size of affinity string cannot exceed %d. Please consider using integers "
                        "separated by '-' to define ranges.",
                        2048);
    if (length == 0) return ort_fail(ORT_INVALID_ARGUMENT, "Affinity string must not be empty.");
    if (!is_affinity(affinity_string))
        return ort_fail(ORT_INVALID_ARGUMENT, "'%s' is no list of processors", affinity_string);
    return NULL;
}

/* Workers spin for some microseconds only, whatever is asked for. */
OrtStatusPtr ort_SetGlobalSpinControl(OrtThreadingOptions *tp_options, int allow_spinning) {
    NEED(tp_options);
    if (allow_spinning != 0 && allow_spinning != 1)
        return ort_fail(ORT_INVALID_ARGUMENT, "allow_spinning is %d, not 0 or 1", allow_spinning);
    return NULL;
}

/* Results with and without denormals differ below 1e-38 only; kernels keep them. */
OrtStatusPtr ort_SetGlobalDenormalAsZero(OrtThreadingOptions *tp_options) {
    NEED(tp_options);
    return NULL;
}
