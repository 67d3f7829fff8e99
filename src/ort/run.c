/* run.c - runs of a session, at once and in the background. */
#include "ort/ep_host.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 16 }; /* bindings that need no memory from the heap */

/* ---- At once ---- */

/* Names and values side by side. Inputs need a value; outputs without one (NULL) get theirs from
 * the run. */
static OrtStatus *fill_bindings(const char *const *names, const OrtValue *const *values,
                                size_t count, bool inputs, sn_binding *out) {
    for (size_t i = 0; i < count; i++) {
        if (!names[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "Run: the name of %s %zu is NULL",
                            inputs ? "input" : "output", i);
        if (inputs && !values[i])
            return ort_fail(ORT_INVALID_ARGUMENT, "Run: the value of input '%s' is NULL", names[i]);
        out[i] = (sn_binding){.name = names[i], .value = ort_sn(values[i])};
    }
    return NULL;
}

/* One run. Without options or a profile the engine's own options by default are used, which costs
 * nothing. */
static OrtStatus *run_bindings(OrtSession *s, const OrtRunOptions *options, const sn_binding *in,
                               size_t n_in, sn_binding *out, size_t n_out) {
    sn_error err;
    if (!options && !s->profile) {
        if (sn_session_run(s->session, NULL, in, n_in, out, n_out, &err) != SN_OK)
            return ort_fail_sn(&err);
        return NULL;
    }
    sn_run_options o;
    sn_run_options_init(&o, sizeof o);
    o.cancel = options ? options->cancel : NULL;
    ort_profile *own = NULL, *profile = s->profile;
    if (options && options->profile_prefix) {
        ORT_TRY(ort_profile_open(options->profile_prefix, &own));
        profile = own;
    }
    uint64_t start = 0;
    if (profile) {
        o.on_step = ort_profile_step;
        o.on_step_ctx = profile;
        start = ort_now_ns();
    }
    sn_status status = sn_session_run(s->session, &o, in, n_in, out, n_out, &err);
    if (profile) ort_profile_run(profile, "model_run", start, ort_now_ns());
    ort_profile_free(own);
    if (status == SN_CANCELLED)
        return ort_fail(ORT_FAIL, "Exiting due to terminate flag being set to true. %s",
                        err.message);
    return status == SN_OK ? NULL : ort_fail_sn(&err);
}

/* Providers hear of the end of every run whose start they heard of. */
static OrtStatus *run_hosted(OrtSession *s, const OrtRunOptions *options, const sn_binding *in,
                             size_t n_in, sn_binding *out, size_t n_out) {
    if (!s->session)
        return ort_fail(ORT_FAIL, "Run: the session's model is not finalised (see "
                                  "FinalizeModelEditorSession)");
    if (!s->host) return run_bindings(s, options, in, n_in, out, n_out);
    ORT_TRY(ort_host_run_start(s->host, options));
    OrtStatus *status = run_bindings(s, options, in, n_in, out, n_out);
    OrtStatus *ended = ort_host_run_end(s->host, options);
    if (!status) return ended;
    ort_ReleaseStatus(ended);
    return status;
}

OrtStatus *ort_run(OrtSession *session, const OrtRunOptions *options,
                   const char *const *input_names, const OrtValue *const *inputs,
                   size_t input_count, const char *const *output_names, size_t output_count,
                   OrtValue **outputs) {
    sn_binding few[2 * FEW], *in = few;
    if (input_count > SIZE_MAX / 4 / sizeof *in || output_count > SIZE_MAX / 4 / sizeof *in)
        return ort_fail(ORT_INVALID_ARGUMENT, "Run: %zu inputs and %zu outputs", input_count,
                        output_count);
    if (input_count + output_count > 2 * FEW)
        in = malloc((input_count + output_count) * sizeof *in);
    if (!in) return ort_fail_memory();
    sn_binding *out = in + input_count;
    OrtStatus *status = fill_bindings(input_names, inputs, input_count, true, in);
    if (!status)
        status =
            fill_bindings(output_names, (const OrtValue *const *)outputs, output_count, false, out);
    if (!status) status = run_hosted(session, options, in, input_count, out, output_count);
    for (size_t i = 0; i < output_count && !status; i++) outputs[i] = ort_of_sn(out[i].value);
    if (in != few) free(in);
    return status;
}

/* Whether what a caller gives for a run can be read at all. */
static OrtStatus *check_lists(size_t input_len, const void *input_names, const void *inputs,
                              size_t output_len, const void *output_names, const void *outputs) {
    if (input_len && (!input_names || !inputs))
        return ort_fail(ORT_INVALID_ARGUMENT, "Run: input names or values are NULL");
    if (output_len == 0) return ort_fail(ORT_INVALID_ARGUMENT, "Run: no outputs are asked for");
    if (!output_names || !outputs)
        return ort_fail(ORT_INVALID_ARGUMENT, "Run: output names or values are NULL");
    return NULL;
}

OrtStatusPtr ort_Run(OrtSession *session, const OrtRunOptions *run_options,
                     const char *const *input_names, const OrtValue *const *inputs,
                     size_t input_len, const char *const *output_names, size_t output_names_len,
                     OrtValue **outputs) {
    NEED(session);
    ORT_TRY(check_lists(input_len, input_names, inputs, output_names_len, output_names, outputs));
    return ort_run(session, run_options, input_names, inputs, input_len, output_names,
                   output_names_len, outputs);
}

/* ---- In the background ---- */

typedef struct job {
    OrtSession *session;
    const OrtRunOptions *options; /* the caller's until the callback */
    size_t n_in, n_out;
    char **names;       /* n_in + n_out, copied */
    sn_value **inputs;  /* retained */
    OrtValue **outputs; /* the caller's, until the callback */
    RunAsyncCallbackFn callback;
    void *user_data;
} job;

/* Frees a job and gives its inputs back. */
static void job_free(job *j) {
    for (size_t i = 0; j->names && i < j->n_in + j->n_out; i++) free(j->names[i]);
    for (size_t i = 0; j->inputs && i < j->n_in; i++) sn_value_destroy(j->inputs[i]);
    free(j->names);
    free(j->inputs);
    free(j);
}

/* The thread of an asynchronous run. The session is not touched once its lock is released: the
 * callback may release it. */
static void *work(void *arg) {
    job *j = arg;
    OrtSession *s = j->session;
    OrtStatus *status = ort_run(s, j->options, (const char *const *)j->names,
                                (const OrtValue *const *)(const void *)j->inputs, j->n_in,
                                (const char *const *)j->names + j->n_in, j->n_out, j->outputs);
    pthread_mutex_lock(&s->lock); /* the callback may release the session */
    if (--s->running == 0) pthread_cond_broadcast(&s->idle);
    pthread_mutex_unlock(&s->lock);
    j->callback(j->user_data, j->outputs, status ? 0 : j->n_out, status);
    job_free(j);
    return NULL;
}

/* A job with copies of the names and a hold on the inputs, since the caller may free both when
 * RunAsync returns; NULL when memory runs out. */
static job *job_new(const char *const *input_names, const OrtValue *const *inputs, size_t n_in,
                    const char *const *output_names, size_t n_out) {
    job *j = calloc(1, sizeof *j);
    if (!j) return NULL;
    j->n_in = n_in;
    j->n_out = n_out;
    j->names = calloc(n_in + n_out + 1, sizeof *j->names);
    j->inputs = calloc(n_in + 1, sizeof *j->inputs);
    bool good = j->names && j->inputs;
    for (size_t i = 0; good && i < n_in; i++) {
        j->inputs[i] = sn_value_retain(ort_sn(inputs[i]));
        good = ort_replace_text(&j->names[i], input_names[i]);
    }
    for (size_t i = 0; good && i < n_out; i++)
        good = ort_replace_text(&j->names[n_in + i], output_names[i]);
    if (good) return j;
    job_free(j);
    return NULL;
}

/* Starts the thread, detached. On failure the job is still the caller's. ReleaseSession waits for
 * `running` to be 0. */
static OrtStatus *start(job *j) {
    OrtSession *s = j->session;
    pthread_mutex_lock(&s->lock);
    s->running++;
    pthread_mutex_unlock(&s->lock);
    pthread_t thread;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attr, work, j);
    pthread_attr_destroy(&attr);
    if (!failed) return NULL;
    pthread_mutex_lock(&s->lock);
    s->running--;
    pthread_mutex_unlock(&s->lock);
    return ort_fail(ORT_FAIL, "RunAsync: no thread could be started (%s)", strerror(failed));
}

OrtStatusPtr ort_RunAsync(OrtSession *session, const OrtRunOptions *run_options,
                          const char *const *input_names, const OrtValue *const *input,
                          size_t input_len, const char *const *output_names,
                          size_t output_names_len, OrtValue **output,
                          RunAsyncCallbackFn run_async_callback, void *user_data) {
    NEED(session);
    NEED(run_async_callback);
    if (session->threads == 1)
        return ort_fail(ORT_INVALID_ARGUMENT,
                        "intra op thread pool must have at least one thread for RunAsync");
    ORT_TRY(check_lists(input_len, input_names, input, output_names_len, output_names, output));
    job *j = job_new(input_names, input, input_len, output_names, output_names_len);
    if (!j) return ort_fail_memory();
    j->session = session;
    j->options = run_options;
    j->outputs = output;
    j->callback = run_async_callback;
    j->user_data = user_data;
    OrtStatus *status = start(j);
    if (status) job_free(j);
    return status;
}
