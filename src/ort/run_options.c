/* run_options.c - options of one run. */
#include "ort/ort.h"

#include <stdlib.h>

OrtStatusPtr ort_CreateRunOptions(OrtRunOptions **out) {
    NEED(out);
    OrtRunOptions *o = calloc(1, sizeof *o);
    sn_error err;
    if (!o) return ort_fail_memory();
    if (sn_cancel_create(&o->cancel, &err) != SN_OK) {
        free(o);
        return ort_fail_sn(&err);
    }
    o->log_level = -1;
    *out = o;
    return NULL;
}

void ort_ReleaseRunOptions(OrtRunOptions *input) {
    if (!input) return;
    sn_cancel_destroy(input->cancel);
    free(input->tag);
    free(input->profile_prefix);
    ort_pairs_clear(&input->config);
    free(input);
}

OrtStatusPtr ort_RunOptionsSetRunLogVerbosityLevel(OrtRunOptions *options,
                                                   int log_verbosity_level) {
    NEED(options);
    options->verbosity = log_verbosity_level;
    return NULL;
}

OrtStatusPtr ort_RunOptionsSetRunLogSeverityLevel(OrtRunOptions *options, int log_severity_level) {
    NEED(options);
    if (log_severity_level < -1 || log_severity_level > ORT_LOGGING_LEVEL_FATAL)
        return ort_fail(ORT_INVALID_ARGUMENT, "log level %d is not known", log_severity_level);
    options->log_level = log_severity_level;
    return NULL;
}

OrtStatusPtr ort_RunOptionsSetRunTag(OrtRunOptions *options, const char *run_tag) {
    NEED(options);
    NEED(run_tag);
    return ort_replace_text(&options->tag, run_tag) ? NULL : ort_fail_memory();
}

OrtStatusPtr ort_RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions *options,
                                                   int *log_verbosity_level) {
    NEED(options);
    NEED(log_verbosity_level);
    *log_verbosity_level = options->verbosity;
    return NULL;
}

OrtStatusPtr ort_RunOptionsGetRunLogSeverityLevel(const OrtRunOptions *options,
                                                  int *log_severity_level) {
    NEED(options);
    NEED(log_severity_level);
    *log_severity_level = options->log_level;
    return NULL;
}

OrtStatusPtr ort_RunOptionsGetRunTag(const OrtRunOptions *options, const char **run_tag) {
    NEED(options);
    NEED(run_tag);
    *run_tag = options->tag ? options->tag : "";
    return NULL;
}

OrtStatusPtr ort_RunOptionsSetTerminate(OrtRunOptions *options) {
    NEED(options);
    sn_cancel_trigger(options->cancel);
    return NULL;
}

OrtStatusPtr ort_RunOptionsUnsetTerminate(OrtRunOptions *options) {
    NEED(options);
    sn_cancel_reset(options->cancel);
    return NULL;
}

OrtStatusPtr ort_AddRunConfigEntry(OrtRunOptions *options, const char *config_key,
                                   const char *config_value) {
    NEED(options);
    NEED(config_key);
    NEED(config_value);
    ORT_TRY(ort_check_entry(config_key, config_value));
    return ort_pairs_set(&options->config, config_key, config_value) ? NULL : ort_fail_memory();
}

const char *ort_GetRunConfigEntry(const OrtRunOptions *options, const char *config_key) {
    return options && config_key ? ort_pairs_get(&options->config, config_key) : NULL;
}

OrtStatusPtr ort_RunOptionsEnableProfiling(OrtRunOptions *options,
                                           const char *profile_file_prefix) {
    NEED(options);
    NEED(profile_file_prefix);
    return ort_replace_text(&options->profile_prefix, profile_file_prefix) ? NULL
                                                                           : ort_fail_memory();
}

OrtStatusPtr ort_RunOptionsDisableProfiling(OrtRunOptions *options) {
    NEED(options);
    ort_replace_text(&options->profile_prefix, NULL);
    return NULL;
}

/* Runs have no streams of a device. */
void ort_RunOptionsSetSyncStream(OrtRunOptions *options, OrtSyncStream *sync_stream) {
    (void)options, (void)sync_stream;
}
