/* trace.c - what requests spent their time on, as Chrome trace events in a file. */
#include "server/ops/trace.h"
#include "server/api/json_out.h"
#include "server/engine/model.h"

#include <errno.h>
#include <unistd.h>

void srv_trace_init(srv_trace *trace) {
    *trace = (srv_trace){.settings = {.rate = 1000, .count = -1}};
    pthread_mutex_init(&trace->lock, NULL);
}

sn_status srv_trace_open(srv_trace *trace, const char *path, sn_error *err) {
    trace->file = fopen(path, "we");
    if (!trace->file) return sni_fail(err, SN_IO, "%s: %s", path, strerror(errno));
    /* the format lets the closing bracket and the last comma be: a torn file is readable, too */
    fputs("[\n", trace->file);
    fflush(trace->file);
    return SN_OK;
}

void srv_trace_close(srv_trace *trace) {
    pthread_mutex_lock(&trace->lock);
    atomic_store(&trace->on, false);
    if (trace->file) {
        fputs("{}]\n", trace->file);
        fclose(trace->file);
    }
    trace->file = NULL;
    pthread_mutex_unlock(&trace->lock);
    pthread_mutex_destroy(&trace->lock);
}

bool srv_trace_possible(const srv_trace *trace) {
    return trace->file != NULL;
}

srv_trace_settings srv_trace_get(srv_trace *trace) {
    pthread_mutex_lock(&trace->lock);
    srv_trace_settings settings = trace->settings;
    pthread_mutex_unlock(&trace->lock);
    return settings;
}

void srv_trace_set(srv_trace *trace, const srv_trace_settings *settings) {
    pthread_mutex_lock(&trace->lock);
    trace->settings = *settings;
    atomic_store(&trace->on, settings->on && trace->file);
    pthread_mutex_unlock(&trace->lock);
}

static void span(srv_text *out, const srv_request *request, const char *name, uint64_t from,
                 uint64_t to, uint64_t row) {
    if (!from || to < from) return;
    srv_json_out json = {.text = out};
    srv_json_begin(&json, '{');
    srv_json_pair_string(&json, "name", name);
    srv_json_pair_string(&json, "ph", "X");
    srv_json_key(&json, "ts");
    srv_json_put_double(&json, (double)from / 1e3);
    srv_json_key(&json, "dur");
    srv_json_put_double(&json, (double)(to - from) / 1e3);
    srv_json_pair_uint(&json, "pid", (uint64_t)getpid());
    srv_json_pair_uint(&json, "tid", row);
    srv_json_key(&json, "args");
    srv_json_begin(&json, '{');
    srv_json_pair_string(&json, "model", request->model->name);
    srv_json_key(&json, "id");
    srv_json_put_str(&json, request->id);
    srv_json_key(&json, "traceparent");
    srv_json_put_str(&json, request->trace_id);
    srv_json_pair_string(&json, "outcome", srv_code_name(request->code));
    srv_json_end(&json, '}');
    srv_json_end(&json, '}');
    srv_text_adds(out, ",\n");
}

/* The lowest bit of a traceparent's flags, which are two hexadecimal digits at its end. */
static bool is_sampled(sni_str id) {
    return id.n == 55 && id.p[54] && strchr("13579bdf", id.p[54]);
}

void srv_trace_request(srv_trace *trace, const srv_request *request) {
    if (!atomic_load_explicit(&trace->on, memory_order_relaxed)) return;
    pthread_mutex_lock(&trace->lock);
    uint64_t number = trace->seen++;
    bool traced = trace->settings.on && trace->file && number % trace->settings.rate == 0 &&
                  trace->settings.count != 0;
    /* a client that sampled the request itself wants to see it */
    sni_str id = request->trace_id;
    if (trace->file && is_sampled(id) && trace->settings.count != 0) traced = true;
    if (traced) {
        const srv_times *t = &request->times;
        srv_text text = {0};
        uint64_t row = number % 64 + 1;
        span(&text, request, "request", t->received, t->finished, row);
        span(&text, request, "receive", t->received, t->queued, row);
        span(&text, request, "queue", t->queued, t->started, row);
        span(&text, request, "input", t->started, t->input, row);
        span(&text, request, "infer", t->input, t->computed, row);
        span(&text, request, "output", t->computed, t->finished, row);
        if (!text.failed && text.data) fwrite(text.data, 1, text.length, trace->file);
        fflush(trace->file);
        srv_text_free(&text);
        if (trace->settings.count > 0) trace->settings.count--;
    }
    pthread_mutex_unlock(&trace->lock);
}
