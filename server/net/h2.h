/* h2.h - gRPC over HTTP/2: streams are calls, whose bytes are messages. nghttp2 does the framing.
 *
 * What a call means is the business of the method that its path names (grpc.h); this module knows
 * nothing of models. Everything runs in the thread of the connection's loop. */
#ifndef SRV_NET_H2_H
#define SRV_NET_H2_H

#include "server/ops/auth.h"
#include "server/net/net.h"
#include "server/ops/limits.h"

typedef struct srv_h2 srv_h2;
typedef struct srv_call srv_call;

/* A message that has come, whole and unpacked. */
typedef struct srv_message {
    srv_server *server;   /* whose buffers and budget it uses; NULL: it has none */
    unsigned char *bytes; /* from srv_buffer_take(capacity), 64-byte aligned; NULL: none */
    size_t size, capacity;
    size_t charged; /* of the server's budget */
} srv_message;

void srv_message_free(srv_message *message); /* leaves an empty one */

/* A message to send: pieces of `text` and of memory that somebody else keeps. */
typedef struct srv_reply {
    struct srv_reply *next;
    srv_text text;
    struct iovec *pieces; /* owned; what lies in `text` has been made to point there */
    size_t count, capacity;
    size_t piece, offset; /* sent so far */
    size_t marked;        /* bytes of `text` that pieces cover already */
    srv_budget *budget;   /* that it was charged to, or NULL */
    size_t charged;
    void (*release)(struct srv_reply *reply); /* the pieces' memory is not needed any more */
    void *owner;
} srv_reply;

srv_reply *srv_reply_new(void);        /* NULL without memory */
void srv_reply_free(srv_reply *reply); /* one that was not sent; NULL is fine */
/* Memory that follows what has been added to `text` up to here. */
void srv_reply_add(srv_reply *reply, const void *bytes, size_t size);

/* What a method does with a call (grpc.c has the table). */
typedef struct srv_method {
    const char *path;
    srv_group group;
    bool streams; /* takes any number of messages, and answers each */
    /* A message has come; takes it over. A call without `streams` has one. */
    void (*message)(srv_call *call, srv_message *message);
    /* The client has sent its last message (`streams` alone). */
    void (*last)(srv_call *call);
    /* The stream is closed while work is under way: stop what can be stopped. */
    void (*closed)(srv_call *call);
} srv_method;

/* A call that is not over; kept by its stream and by everything that works for it. */
struct srv_call {
    srv_h2 *h2;
    srv_call *next, *before; /* of the connection's */
    int32_t stream;
    int refs;
    bool closed; /* the stream is gone: nothing can be sent */
    const srv_method *method;
    void *work;          /* the method's */
    uint64_t started_ns; /* when its first byte was there */
    uint64_t message_ns; /* when that of the message was, in a stream */
    uint64_t timeout_ns; /* 0: the client set none */
    /* Headers, copied; cut where they are longer. */
    char path[160], authorization[512], api_key[256], traceparent[64], encoding[16], timeout[16];

    /* The message that is coming. */
    unsigned char prefix[5];
    size_t prefix_size, filled;
    srv_message message;
    bool packed, receiving;
    size_t messages; /* that have come */
    bool last;       /* the client's side is closed */

    /* What is going out. */
    srv_reply *first_reply, *last_reply;
    bool headers_sent, paused, ended;
    srv_code code;
    char status[700]; /* the error's text, encoded for a header */
};

/* The server and the loop of the call's connection. */
srv_server *srv_call_server(const srv_call *call);
srv_loop *srv_call_loop(const srv_call *call);

void srv_call_retain(srv_call *call);
void srv_call_release(srv_call *call);

/* Sends a message; takes it over. */
void srv_call_send(srv_call *call, srv_reply *reply);
/* Ends the call after the messages sent so far; `message` is for people. Only the first counts. */
void srv_call_end(srv_call *call, srv_code code, const char *message);
/* Writes out what was sent since; to be called by whoever works outside of the connection's own
 * callbacks. */
void srv_call_flush(srv_call *call);

/* grpc.c: the method of a path, or NULL. */
const srv_method *srv_method_find(const char *path);

extern const srv_protocol srv_h2_protocol;

#endif
