/* grpc.h - the methods of the inference protocol over gRPC, and what they share.
 *
 * Messages are read with the protobuf reader of the library and written with its writer; the field
 * numbers are those of the Open Inference Protocol and its extensions. */
#ifndef SRV_API_GRPC_H
#define SRV_API_GRPC_H

#include "server/net/h2.h"
#include "server/engine/model.h"

#include "model/wire.h"
#include "model/wire_write.h"

#define SRV_SERVICE "/inference.GRPCInferenceService/"

/* A reader over a message that has come. */
typedef struct srv_reader {
    sni_wire wire;
    sni_wire_limits limits;
    sn_error err;
} srv_reader;

void srv_reader_open(srv_reader *reader, const srv_message *message);
/* Whether all was well formed; otherwise the call has ended. */
bool srv_reader_close(srv_reader *reader, srv_call *call);

/* Ends a call that gets one message, which `emit` writes. */
void srv_call_answer(srv_call *call, sni_emit_fn emit, const void *data);
/* Puts the message's fields into a reply. */
void srv_reply_emit(srv_reply *reply, sni_emit_fn emit, const void *data);

/* "name" and "version", fields 1 and 2 of many requests. */
typedef struct srv_named {
    sni_str name, version;
} srv_named;
void srv_read_named(srv_reader *reader, srv_named *out);
/* A message of no more than these; false after the call has ended. They lie in the message. */
bool srv_named_of(srv_call *call, const srv_message *message, srv_named *out);
/* The model, retained; NULL after the call has ended. */
srv_model *srv_call_model(srv_call *call, const srv_named *named);
srv_code srv_version_parse(sni_str text, int64_t *out); /* "" is 0: the newest */

/* An entry of a map<string, message>: its key and a reader of its value. */
bool srv_read_entry(sni_wire *wire, const sni_field *field, sni_str *key, sni_wire *value);

/* grpc_infer_read.c: from a message to a request that can be submitted. The outcome is in the
 * request, too; raw inputs point into the message, which must live as long. */
srv_code srv_grpc_read_request(srv_request *request, const srv_message *message);

/* What methods do (srv_method): `message` is theirs to free.
 * grpc_infer.c */
void srv_grpc_infer(srv_call *call, srv_message *message); /* of a call or a stream */
void srv_grpc_stream_last(srv_call *call);
void srv_grpc_infer_closed(srv_call *call);

/* grpc_health.c */
void srv_grpc_health_check(srv_call *call, srv_message *message);
void srv_grpc_health_watch(srv_call *call, srv_message *message);
void srv_grpc_watch_last(srv_call *call);
void srv_grpc_watch_closed(srv_call *call);

/* grpc_admin.c */
void srv_grpc_config(srv_call *call, srv_message *message);
void srv_grpc_statistics(srv_call *call, srv_message *message);
void srv_grpc_index(srv_call *call, srv_message *message);
void srv_grpc_load(srv_call *call, srv_message *message);
void srv_grpc_unload(srv_call *call, srv_message *message);
void srv_grpc_trace(srv_call *call, srv_message *message);
void srv_grpc_logging(srv_call *call, srv_message *message);

#endif
