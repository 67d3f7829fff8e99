/* load_client.h - what the parts of the load generator share: the request, which is the same every
 * time, and connections that send it and wait for the answer. */
#ifndef SRV_LOAD_LOAD_CLIENT_H
#define SRV_LOAD_LOAD_CLIENT_H

#include "base/arena.h"
#include "server/load/load.h"
#include "server/util.h"

#include <netinet/in.h>

/* Where the load goes. */
typedef struct srv_target {
    struct sockaddr_storage address;
    socklen_t address_size;
    char host[80]; /* "127.0.0.1:8000", for headers */
    bool grpc;
} srv_target;

/* One input as the model describes it, with the shape that is sent. */
typedef struct srv_load_input {
    sni_str name;
    sn_dtype dtype;
    int rank;
    int64_t dims[SN_MAX_RANK];
    size_t bytes; /* of its elements in binary form */
    void *data;
} srv_load_input;

typedef struct srv_load_model {
    sni_arena arena;
    srv_load_input *inputs;
    size_t count, capacity;
} srv_load_model;

/* load_body.c */
srv_load_input *srv_load_add_input(srv_load_model *model); /* NULL without memory */
/* Fixes shapes as the options say and makes up data. */
sn_status srv_load_fill(srv_load_model *model, const srv_load_options *options, sn_error *err);
/* The whole request: an HTTP message, or a protobuf message with gRPC's prefix. */
sn_status srv_load_http_request(const srv_load_model *model, const srv_load_options *options,
                                const srv_target *target, srv_text *out, sn_error *err);
sn_status srv_load_grpc_request(const srv_load_model *model, const srv_load_options *options,
                                srv_text *out, sn_error *err);
/* What a metadata answer says of the inputs. */
sn_status srv_load_read_json(srv_load_model *model, const char *text, size_t size, sn_error *err);
sn_status srv_load_read_protobuf(srv_load_model *model, const void *bytes, size_t size,
                                 sn_error *err);

/* A connection. One request is under way on it at a time. */
typedef struct srv_load_conn srv_load_conn;
typedef struct srv_load_protocol {
    size_t size; /* of its connection struct, which begins with an srv_load_conn */
    bool (*open)(srv_load_conn *conn);
    /* Starts sending the request. */
    bool (*begin)(srv_load_conn *conn);
    /* Moves bytes both ways; false when the connection is broken. Sets `answered`. */
    bool (*move)(srv_load_conn *conn);
    void (*close)(srv_load_conn *conn);
} srv_load_protocol;

struct srv_load_conn {
    int fd; /* -1: not connected */
    const srv_text *request;
    const srv_load_options *options;
    const srv_target *target;
    const char *path;          /* gRPC: the method */
    bool busy, answered, good; /* good: the answer is no error */
    bool wants_write;
    srv_text body; /* of an answer, where keep_body is set */
    bool keep_body;
    char error[200]; /* of the last bad answer */
    uint64_t begun_ns, bytes_in;
};

extern const srv_load_protocol srv_load_http, srv_load_grpc;

/* Whether this build can speak gRPC. */
bool srv_load_has_grpc(void);

#endif
