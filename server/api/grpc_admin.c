/* grpc_admin.c - configuration, statistics, the model repository, trace and log settings over
 * gRPC. */
#include "server/api/describe.h"
#include "server/api/grpc.h"
#include "server/engine/loader.h"
#include "server/engine/repository.h"
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>

/* The model that a message names, retained; NULL after the call has ended. */
static srv_model *model_of(srv_call *call, const srv_message *message) {
    srv_named named;
    return srv_named_of(call, message, &named) ? srv_call_model(call, &named) : NULL;
}

/* ---- Configuration ------------------------------------------------------------------------ */

/* The protocol's DataType by element type; 0: it has none. */
static int config_type(sn_dtype dtype) {
    static const signed char types[] = {
        [SN_BOOL] = 1,    [SN_UINT8] = 2,     [SN_UINT16] = 3,   [SN_UINT32] = 4,
        [SN_UINT64] = 5,  [SN_INT8] = 6,      [SN_INT16] = 7,    [SN_INT32] = 8,
        [SN_INT64] = 9,   [SN_FLOAT16] = 10,  [SN_FLOAT32] = 11, [SN_FLOAT64] = 12,
        [SN_STRING] = 13, [SN_BFLOAT16] = 14,
    };
    return (size_t)dtype < sizeof types ? types[dtype] : 0;
}

typedef struct config_io {
    const srv_io *io;
    bool batched, output;
} config_io;

static void emit_config_io(sni_out *out, const void *data) {
    const config_io *c = data;
    int from = c->batched && c->io->rank > 0 ? 1 : 0;
    sni_put_str(out, 1, sni_str_of(c->io->name));
    sni_put_int(out, 2, config_type(c->io->dtype));
    if (c->io->rank > from) {
        sni_put_packed_ints(out, c->output ? 3 : 4, c->io->dims + from,
                            (size_t)(c->io->rank - from));
    }
}

static void emit_queue_policy(sni_out *out, const void *data) {
    const srv_config *config = data;
    if (config->timeout_delays) sni_put_int(out, 1, 1);
    if (config->default_timeout_ns) sni_put_uint(out, 2, config->default_timeout_ns / 1000);
    if (config->allow_timeout_override) sni_put_int(out, 3, 1);
    if (config->max_queue_size) sni_put_uint(out, 4, config->max_queue_size);
}

static void emit_batching(sni_out *out, const void *data) {
    const srv_config *config = data;
    if (config->preferred_count) {
        sni_put_packed_ints(out, 1, config->preferred, (size_t)config->preferred_count);
    }
    if (config->queue_delay_ns) sni_put_uint(out, 2, config->queue_delay_ns / 1000);
    if (config->priority_levels) sni_put_uint(out, 4, config->priority_levels);
    if (config->default_priority) sni_put_uint(out, 5, config->default_priority);
    sni_put_message(out, 6, emit_queue_policy, config);
}

static void emit_version_list(sni_out *out, const void *data) {
    const srv_config *config = data;
    if (config->policy == SRV_VERSIONS_LATEST) sni_put_int(out, 1, config->versions[0]);
    if (config->policy == SRV_VERSIONS_SPECIFIC) {
        sni_put_packed_ints(out, 1, config->versions, (size_t)config->version_count);
    }
}

static void emit_version_policy(sni_out *out, const void *data) {
    const srv_config *config = data;
    uint32_t field = config->policy == SRV_VERSIONS_LATEST ? 1
                     : config->policy == SRV_VERSIONS_ALL  ? 2
                                                           : 3;
    sni_put_message(out, field, emit_version_list, config);
}

static void emit_text(sni_out *out, const void *text) {
    sni_put_str(out, 1, sni_str_of(text));
}

static void emit_parameter(sni_out *out, const void *data) {
    char *const *pair = data;
    sni_put_str(out, 1, sni_str_of(pair[0]));
    sni_put_message(out, 2, emit_text, pair[1]);
}

static void emit_true(sni_out *out, const void *unused) {
    (void)unused;
    sni_put_int(out, 1, 1);
}

static void emit_instances(sni_out *out, const void *data) {
    const srv_model *model = data;
    sni_put_str(out, 1, sni_str_of(model->name));
    sni_put_int(out, 2, model->instances);
    sni_put_int(out, 4, 2); /* KIND_CPU */
}

static void emit_config_ios(sni_out *out, uint32_t field, const srv_io *list, size_t count,
                            bool batched, bool output) {
    for (size_t i = 0; i < count; i++) {
        config_io io = {&list[i], batched, output};
        if (list[i].dtype) sni_put_message(out, field, emit_config_io, &io);
    }
}

static void emit_config(sni_out *out, const void *data) {
    const srv_model *model = data;
    bool batched = model->max_batch > 0;
    sni_put_str(out, 1, sni_str_of(model->name));
    sni_put_str(out, 2, sni_str_of("onnx_sinter"));
    sni_put_message(out, 3, emit_version_policy, &model->config);
    sni_put_int(out, 4, model->max_batch);
    emit_config_ios(out, 5, model->inputs, model->input_count, batched, false);
    emit_config_ios(out, 6, model->outputs, model->output_count, batched, true);
    sni_put_message(out, 7, emit_instances, model);
    if (batched) sni_put_message(out, 11, emit_batching, &model->config);
    for (int i = 0; i < model->config.parameter_count; i++) {
        sni_put_message(out, 14, emit_parameter, model->config.parameters[i]);
    }
    sni_put_str(out, 17, sni_str_of("sinter"));
    if (model->config.cache) sni_put_message(out, 24, emit_true, NULL);
}

static void emit_config_response(sni_out *out, const void *data) {
    sni_put_message(out, 1, emit_config, data);
}

void srv_grpc_config(srv_call *call, srv_message *message) {
    srv_model *model = model_of(call, message);
    srv_message_free(message);
    if (model) srv_call_answer(call, emit_config_response, model);
    srv_model_release(model);
}

/* ---- Statistics --------------------------------------------------------------------------- */

typedef struct model_stats {
    srv_model *model;
    srv_stats stats;
    struct model_stats *next;
} model_stats;

static void emit_duration(sni_out *out, const void *data) {
    const srv_duration *duration = data;
    sni_put_uint(out, 1, duration->count);
    sni_put_uint(out, 2, duration->ns);
}

static void emit_totals(sni_out *out, const void *data) {
    const srv_stats *stats = data;
    const srv_duration *fields[] = {&stats->success,   &stats->fail,      &stats->queue,
                                    &stats->input,     &stats->infer,     &stats->output,
                                    &stats->cache_hit, &stats->cache_miss};
    for (uint32_t i = 0; i < 8; i++) sni_put_message(out, i + 1, emit_duration, fields[i]);
}

typedef struct sized_batch {
    uint64_t size;
    const srv_batch_stats *stats;
} sized_batch;

static void emit_batch(sni_out *out, const void *data) {
    const sized_batch *batch = data;
    uint64_t ns[] = {batch->stats->input_ns, batch->stats->infer_ns, batch->stats->output_ns};
    sni_put_uint(out, 1, batch->size);
    for (uint32_t i = 0; i < 3; i++) {
        sni_put_message(out, i + 2, emit_duration, &(srv_duration){batch->stats->count, ns[i]});
    }
}

static void emit_model_stats(sni_out *out, const void *data) {
    const model_stats *entry = data;
    char version[24];
    snprintf(version, sizeof version, "%lld", (long long)entry->model->version);
    sni_put_str(out, 1, sni_str_of(entry->model->name));
    sni_put_str(out, 2, sni_str_of(version));
    sni_put_uint(out, 3, entry->stats.last_inference_ms);
    sni_put_uint(out, 4, entry->stats.inference_count);
    sni_put_uint(out, 5, entry->stats.execution_count);
    sni_put_message(out, 6, emit_totals, &entry->stats);
    for (size_t i = 0; i <= SRV_BATCH_STATS; i++) {
        sized_batch batch = {i, &entry->stats.batches[i]};
        if (batch.stats->count) sni_put_message(out, 7, emit_batch, &batch);
    }
}

static void emit_all_stats(sni_out *out, const void *data) {
    for (const model_stats *entry = data; entry; entry = entry->next) {
        sni_put_message(out, 1, emit_model_stats, entry);
    }
}

/* Statistics are copied first: a message must be the same each time that it is written. */
static void add_stats(void *ctx, const srv_index_entry *entry) {
    model_stats **list = ctx;
    model_stats *stats = entry->model ? malloc(sizeof *stats) : NULL;
    if (!stats) return;
    stats->model = srv_model_retain(entry->model);
    srv_model_stats(stats->model, &stats->stats);
    stats->next = *list;
    *list = stats;
}

void srv_grpc_statistics(srv_call *call, srv_message *message) {
    srv_named named;
    model_stats *list = NULL;
    if (srv_named_of(call, message, &named)) {
        srv_model *model = named.name.n ? srv_call_model(call, &named) : NULL;
        if (model) {
            add_stats(&list, &(srv_index_entry){.model = model});
        } else if (!named.name.n) {
            srv_repository_each(srv_call_server(call)->repository, add_stats, &list);
        }
        srv_model_release(model);
    }
    srv_message_free(message);
    srv_call_answer(call, emit_all_stats, list);
    while (list) {
        model_stats *next = list->next;
        srv_model_release(list->model);
        free(list);
        list = next;
    }
}

/* ---- The repository ----------------------------------------------------------------------- */

typedef struct index_list {
    srv_text bytes; /* ModelIndex messages, each a field 1 */
    bool only_ready;
} index_list;

static void emit_entry(sni_out *out, const void *data) {
    const srv_index_entry *entry = data;
    char version[24];
    snprintf(version, sizeof version, "%lld", (long long)entry->version);
    sni_put_str(out, 1, sni_str_of(entry->name));
    if (entry->version) sni_put_str(out, 2, sni_str_of(version));
    sni_put_str(out, 3, sni_str_of(entry->state));
    if (entry->reason[0]) sni_put_str(out, 4, sni_str_of(entry->reason));
}

static void add_index(void *ctx, const srv_index_entry *entry) {
    index_list *list = ctx;
    sni_out out;
    if (list->only_ready && !entry->model) return;
    sni_out_init(&out, srv_text_write, &list->bytes, NULL);
    sni_put_message(&out, 1, emit_entry, entry);
    sni_out_finish(&out);
}

static void emit_bytes(sni_out *out, const void *data) {
    const srv_text *text = data;
    if (text->length) sni_put_raw(out, text->data, text->length);
}

void srv_grpc_index(srv_call *call, srv_message *message) {
    srv_reader reader;
    sni_field field;
    int64_t ready = 0;
    srv_reader_open(&reader, message);
    while (sni_wire_next(&reader.wire, &field)) {
        if (field.number == 2) sni_field_int(&reader.wire, &field, &ready);
    }
    bool ok = srv_reader_close(&reader, call);
    srv_message_free(message);
    if (!ok) return;
    index_list list = {.only_ready = ready != 0};
    srv_repository_each(srv_call_server(call)->repository, add_index, &list);
    srv_call_answer(call, emit_bytes, &list.bytes);
    srv_text_free(&list.bytes);
}

static void change_done(const srv_change *change) {
    srv_call *call = change->ctx;
    if (change->code == SRV_OK) {
        srv_call_answer(call, emit_bytes, &(srv_text){0});
    } else {
        srv_call_end(call, change->code, change->why);
    }
    if (!call->closed) srv_call_flush(call);
    srv_call_release(call);
}

/* Field 3 of the request: parameters, of which "config" is a string (field 3 of the value). False:
 * the parameter is a file. */
static bool read_config(sni_wire *wire, const sni_field *field, char **config) {
    sni_wire value;
    sni_field inner;
    sni_str key, text;
    if (!srv_read_entry(wire, field, &key, &value)) return true;
    if (key.n >= 5 && memcmp(key.p, "file:", 5) == 0) return false;
    if (!sni_str_is(key, "config") || *config) return true;
    while (sni_wire_next(&value, &inner)) {
        if (inner.number == 3 && sni_field_str(&value, &inner, &text) == SN_OK && !*config) {
            *config = srv_strndup(text.p, text.n);
        }
    }
    return true;
}

static void begin_change(srv_call *call, srv_message *message, bool load) {
    srv_reader reader;
    sni_field field;
    sni_str name = {"", 0};
    srv_change change = {.server = srv_call_server(call),
                         .loop = srv_call_loop(call),
                         .done = change_done,
                         .ctx = call,
                         .load = load};
    bool from_folder = true;
    srv_reader_open(&reader, message);
    while (sni_wire_next(&reader.wire, &field)) {
        if (field.number == 2) sni_field_str(&reader.wire, &field, &name);
        if (field.number == 3) from_folder &= read_config(&reader.wire, &field, &change.config);
    }
    if (!srv_reader_close(&reader, call)) {
        free(change.config);
    } else if (!from_folder) {
        free(change.config);
        srv_call_end(call, SRV_INVALID, SRV_NO_FILES);
    } else {
        srv_code code = srv_change_begin(&change, name);
        if (code == SRV_OK) {
            srv_call_retain(call);
        } else {
            srv_call_end(call, code,
                         code == SRV_NOT_FOUND ? "there is no such model" : "out of memory");
        }
    }
    srv_message_free(message);
}

void srv_grpc_load(srv_call *call, srv_message *message) {
    begin_change(call, message, true);
}

void srv_grpc_unload(srv_call *call, srv_message *message) {
    begin_change(call, message, false);
}

/* ---- Trace and log settings --------------------------------------------------------------- */

/* An entry of a map of settings in an answer: its name, and its value by kind. */
typedef struct setting {
    const char *name;
    char kind; /* 's' a list of one string, 'b' bool, 'u' uint32, 't' string */
    uint64_t number;
    const char *text;
} setting;

static void emit_value(sni_out *out, const void *data) {
    const setting *s = data;
    if (s->kind == 's') sni_put_str(out, 1, sni_str_of(s->text));
    if (s->kind == 'b') sni_put_uint(out, 1, s->number);
    if (s->kind == 'u') sni_put_uint(out, 2, s->number);
    if (s->kind == 't') sni_put_str(out, 3, sni_str_of(s->text));
}

static void emit_setting(sni_out *out, const void *data) {
    const setting *s = data;
    sni_put_str(out, 1, sni_str_of(s->name));
    sni_put_message(out, 2, emit_value, s);
}

static void emit_settings(sni_out *out, const void *data) {
    for (const setting *s = data; s->name; s++) sni_put_message(out, 1, emit_setting, s);
}

static bool set_trace(void *ctx, sni_str key, sni_wire *value) {
    srv_trace_settings *settings = ctx;
    sni_field field;
    sni_str text = {"", 0};
    uint64_t number = 0;
    bool on = false;
    while (sni_wire_next(value, &field)) {
        if (field.number != 1 || sni_field_str(value, &field, &text) != SN_OK) continue;
        on = on || sni_str_is(text, "TIMESTAMPS") || sni_str_is(text, "TENSORS");
    }
    if (sni_str_is(key, "trace_level")) {
        settings->on = on;
        return true;
    }
    if (sni_str_is(key, "trace_rate")) {
        bool ok = srv_parse_uint(text, INT64_MAX, &number) && number > 0;
        if (ok) settings->rate = number;
        return ok;
    }
    if (!sni_str_is(key, "trace_count")) return false;
    bool endless = sni_str_is(text, "-1");
    if (!endless && !srv_parse_uint(text, INT64_MAX, &number)) return false;
    settings->count = endless ? -1 : (int64_t)number;
    return true;
}

static void answer_trace(srv_call *call) {
    srv_trace_settings settings = srv_trace_get(&srv_call_server(call)->trace);
    char rate[24], count[24];
    snprintf(rate, sizeof rate, "%llu", (unsigned long long)settings.rate);
    snprintf(count, sizeof count, "%lld", (long long)settings.count);
    setting list[] = {{"trace_level", 's', 0, settings.on ? "TIMESTAMPS" : "OFF"},
                      {"trace_rate", 's', 0, rate},
                      {"trace_count", 's', 0, count},
                      {"trace_mode", 's', 0, "chrome"},
                      {0}};
    srv_call_answer(call, emit_settings, list);
}

/* Gives the entries of a message's map of settings (field 1) to `set`; frees the message. False
 * after the call has ended: it was malformed, or `set` did not take an entry (`refusal`). */
static bool take_settings(srv_call *call, srv_message *message,
                          bool (*set)(void *settings, sni_str key, sni_wire *value), void *settings,
                          const char *refusal, bool *any) {
    srv_reader reader;
    sni_field field;
    sni_str key;
    sni_wire value;
    *any = false;
    srv_reader_open(&reader, message);
    while (sni_wire_next(&reader.wire, &field)) {
        if (field.number != 1 || !srv_read_entry(&reader.wire, &field, &key, &value)) continue;
        *any = true;
        if (!set(settings, key, &value)) srv_call_end(call, SRV_INVALID, refusal);
    }
    bool ok = srv_reader_close(&reader, call) && !call->ended;
    srv_message_free(message);
    return ok;
}

void srv_grpc_trace(srv_call *call, srv_message *message) {
    srv_trace *trace = &srv_call_server(call)->trace;
    srv_trace_settings settings = srv_trace_get(trace);
    bool any;
    if (!take_settings(call, message, set_trace, &settings,
                       "a trace setting is unknown or has a wrong value", &any)) {
        return;
    }
    if (any && settings.on && !srv_trace_possible(trace)) {
        srv_call_end(call, SRV_INVALID, "start the server with --trace FILE to trace");
        return;
    }
    if (any) srv_trace_set(trace, &settings);
    answer_trace(call);
}

static bool set_log(void *ctx, sni_str key, sni_wire *value) {
    srv_log_settings *settings = ctx;
    sni_field field;
    sni_str text = {"", 0};
    uint64_t number = 0;
    while (sni_wire_next(value, &field)) {
        if (field.number == 3) sni_field_str(value, &field, &text);
        if (field.type == SNI_WIRE_VARINT) number = field.value;
    }
    if (sni_str_is(key, "log_info")) {
        settings->info = number != 0;
    } else if (sni_str_is(key, "log_warning")) {
        settings->warning = number != 0;
    } else if (sni_str_is(key, "log_error")) {
        settings->error = number != 0;
    } else if (sni_str_is(key, "log_verbose_level")) {
        settings->verbose = number > 9 ? 9 : (int)number;
    } else if (sni_str_is(key, "log_format")) {
        settings->json = sni_str_is(text, "json");
    } else {
        return false;
    }
    return true;
}

void srv_grpc_logging(srv_call *call, srv_message *message) {
    srv_logger *log = &srv_call_server(call)->log;
    srv_log_settings settings = srv_log_get(log);
    bool any;
    if (!take_settings(call, message, set_log, &settings, "a log setting is unknown", &any)) return;
    if (any) srv_log_set(log, &settings);
    setting list[] = {{"log_info", 'b', settings.info, NULL},
                      {"log_warning", 'b', settings.warning, NULL},
                      {"log_error", 'b', settings.error, NULL},
                      {"log_verbose_level", 'u', (uint64_t)settings.verbose, NULL},
                      {"log_format", 't', 0, settings.json ? "json" : "default"},
                      {0}};
    srv_call_answer(call, emit_settings, list);
}
