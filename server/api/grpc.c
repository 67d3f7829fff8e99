/* grpc.c - the table of gRPC methods; health and metadata. */
#include "server/api/grpc.h"
#include "server/api/describe.h"
#include "server/engine/repository.h"
#include "server/server.h"

#include <stdio.h>

/* ---- What methods share ------------------------------------------------------------------- */

void srv_reader_open(srv_reader *reader, const srv_message *message) {
    sni_wire_init(&reader->wire, message->bytes, message->size, &reader->limits, &reader->err);
}

bool srv_reader_close(srv_reader *reader, srv_call *call) {
    if (reader->wire.status == SN_OK) return true;
    srv_call_end(call, SRV_INVALID, reader->err.message);
    return false;
}

void srv_reply_emit(srv_reply *reply, sni_emit_fn emit, const void *data) {
    sni_out out;
    sni_out_init(&out, srv_text_write, &reply->text, NULL);
    emit(&out, data);
    if (sni_out_finish(&out) != SN_OK) reply->text.failed = true;
}

void srv_call_answer(srv_call *call, sni_emit_fn emit, const void *data) {
    srv_reply *reply = srv_reply_new();
    if (!reply) {
        srv_call_end(call, SRV_UNAVAILABLE, "out of memory");
        return;
    }
    srv_reply_emit(reply, emit, data);
    srv_call_send(call, reply);
    srv_call_end(call, SRV_OK, "");
}

void srv_read_named(srv_reader *reader, srv_named *out) {
    sni_field field;
    *out = (srv_named){{"", 0}, {"", 0}};
    while (sni_wire_next(&reader->wire, &field)) {
        if (field.number == 1) sni_field_str(&reader->wire, &field, &out->name);
        if (field.number == 2) sni_field_str(&reader->wire, &field, &out->version);
    }
}

srv_code srv_version_parse(sni_str text, int64_t *out) {
    uint64_t number = 0;
    if (text.n && (!srv_parse_uint(text, INT64_MAX, &number) || !number)) return SRV_INVALID;
    *out = (int64_t)number;
    return SRV_OK;
}

srv_model *srv_call_model(srv_call *call, const srv_named *named) {
    char why[SRV_MESSAGE] = "a version is a positive number";
    srv_model *model = NULL;
    int64_t version;
    srv_code code = srv_version_parse(named->version, &version);
    if (code == SRV_OK)
        code = srv_repository_find(srv_call_server(call)->repository, named->name, version, &model,
                                   why, sizeof why);
    if (code != SRV_OK) srv_call_end(call, code, why);
    return model;
}

bool srv_read_entry(sni_wire *wire, const sni_field *field, sni_str *key, sni_wire *value) {
    sni_wire entry;
    sni_field inner;
    *key = (sni_str){"", 0};
    if (sni_field_message(wire, field, &entry) != SN_OK) return false;
    *value = entry;
    value->p = value->end; /* an entry without a value holds an empty one */
    while (sni_wire_next(&entry, &inner)) {
        if (inner.number == 1) sni_field_str(&entry, &inner, key);
        if (inner.number == 2) sni_field_message(&entry, &inner, value);
    }
    if (entry.status != SN_OK) wire->status = entry.status;
    return entry.status == SN_OK;
}

/* ---- Health ------------------------------------------------------------------------------- */

static void emit_flag(sni_out *out, const void *flag) {
    if (*(const bool *)flag) sni_put_int(out, 1, 1);
}

static void answer_flag(srv_call *call, srv_message *message, bool flag) {
    srv_message_free(message);
    srv_call_answer(call, emit_flag, &flag);
}

static void server_live(srv_call *call, srv_message *message) {
    answer_flag(call, message, true);
}

static void server_ready(srv_call *call, srv_message *message) {
    answer_flag(call, message, srv_server_ready(srv_call_server(call)));
}

bool srv_named_of(srv_call *call, const srv_message *message, srv_named *out) {
    srv_reader reader;
    srv_reader_open(&reader, message);
    srv_read_named(&reader, out);
    return srv_reader_close(&reader, call);
}

static void model_ready(srv_call *call, srv_message *message) {
    srv_named named;
    char why[SRV_MESSAGE];
    int64_t version;
    srv_model *model = NULL;
    bool ready = false;
    if (srv_named_of(call, message, &named)) {
        ready = srv_version_parse(named.version, &version) == SRV_OK &&
                srv_repository_find(srv_call_server(call)->repository, named.name, version, &model,
                                    why, sizeof why) == SRV_OK;
        srv_model_release(model);
    }
    answer_flag(call, message, ready);
}

/* ---- Metadata ----------------------------------------------------------------------------- */

static void emit_server(sni_out *out, const void *unused) {
    (void)unused;
    sni_put_str(out, 1, sni_str_of("sinter"));
    sni_put_str(out, 2, sni_str_of(sn_version()));
    for (size_t i = 0; srv_extensions[i]; i++) sni_put_str(out, 3, sni_str_of(srv_extensions[i]));
}

static void server_metadata(srv_call *call, srv_message *message) {
    srv_message_free(message);
    srv_call_answer(call, emit_server, NULL);
}

static void emit_io(sni_out *out, const void *data) {
    const srv_io *io = data;
    sni_put_str(out, 1, sni_str_of(io->name));
    sni_put_str(out, 2, sni_str_of(srv_type_name(io->dtype)));
    if (io->rank) sni_put_packed_ints(out, 3, io->dims, (size_t)io->rank);
}

static void emit_model(sni_out *out, const void *data) {
    const srv_model *model = data;
    char version[24];
    snprintf(version, sizeof version, "%lld", (long long)model->version);
    sni_put_str(out, 1, sni_str_of(model->name));
    sni_put_str(out, 2, sni_str_of(version));
    sni_put_str(out, 3, sni_str_of("onnx_sinter"));
    for (size_t i = 0; i < model->input_count; i++) {
        if (model->inputs[i].dtype) sni_put_message(out, 4, emit_io, &model->inputs[i]);
    }
    for (size_t i = 0; i < model->output_count; i++) {
        if (model->outputs[i].dtype) sni_put_message(out, 5, emit_io, &model->outputs[i]);
    }
}

static void model_metadata(srv_call *call, srv_message *message) {
    srv_named named;
    srv_model *model = srv_named_of(call, message, &named) ? srv_call_model(call, &named) : NULL;
    srv_message_free(message);
    if (model) srv_call_answer(call, emit_model, model);
    srv_model_release(model);
}

/* ---- The table ---------------------------------------------------------------------------- */

static const srv_method methods[] = {
    {SRV_SERVICE "ModelInfer", SRV_GROUP_INFER, false, srv_grpc_infer, NULL, srv_grpc_infer_closed},
    {SRV_SERVICE "ModelStreamInfer", SRV_GROUP_INFER, true, srv_grpc_infer, srv_grpc_stream_last,
     srv_grpc_infer_closed},
    {SRV_SERVICE "ServerLive", SRV_GROUP_HEALTH, false, server_live, NULL, NULL},
    {SRV_SERVICE "ServerReady", SRV_GROUP_HEALTH, false, server_ready, NULL, NULL},
    {SRV_SERVICE "ModelReady", SRV_GROUP_HEALTH, false, model_ready, NULL, NULL},
    {SRV_SERVICE "ServerMetadata", SRV_GROUP_METADATA, false, server_metadata, NULL, NULL},
    {SRV_SERVICE "ModelMetadata", SRV_GROUP_METADATA, false, model_metadata, NULL, NULL},
    {SRV_SERVICE "ModelConfig", SRV_GROUP_METADATA, false, srv_grpc_config, NULL, NULL},
    {SRV_SERVICE "ModelStatistics", SRV_GROUP_METADATA, false, srv_grpc_statistics, NULL, NULL},
    {SRV_SERVICE "RepositoryIndex", SRV_GROUP_ADMIN, false, srv_grpc_index, NULL, NULL},
    {SRV_SERVICE "RepositoryModelLoad", SRV_GROUP_ADMIN, false, srv_grpc_load, NULL, NULL},
    {SRV_SERVICE "RepositoryModelUnload", SRV_GROUP_ADMIN, false, srv_grpc_unload, NULL, NULL},
    {SRV_SERVICE "TraceSetting", SRV_GROUP_ADMIN, false, srv_grpc_trace, NULL, NULL},
    {SRV_SERVICE "LogSettings", SRV_GROUP_ADMIN, false, srv_grpc_logging, NULL, NULL},
    {"/grpc.health.v1.Health/Check", SRV_GROUP_HEALTH, false, srv_grpc_health_check, NULL, NULL},
    {"/grpc.health.v1.Health/Watch", SRV_GROUP_HEALTH, true, srv_grpc_health_watch,
     srv_grpc_watch_last, srv_grpc_watch_closed},
};

const srv_method *srv_method_find(const char *path) {
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (strcmp(methods[i].path, path) == 0) return &methods[i];
    }
    return NULL;
}
