/* h2.c - gRPC over HTTP/2: connections, streams, and what may not be done to them. */
#include "server/net/h2.h"
#include "server/net/h2_flood.h"
#include "server/net/h2_header.h"
#include "server/net/h2_message.h"
#include "server/server.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define STREAM_WINDOW (4 << 20)
#define CONNECTION_WINDOW (16 << 20)
#define MAX_FRAME (1 << 20)
#define MAX_STREAMS 256
#define READ_SIZE (256 << 10)
#define WRITE_SIZE (64 << 10)

struct srv_h2 {
    srv_conn conn;
    nghttp2_session *session;
    srv_call *calls;
    int call_count;
    srv_text out; /* frames that the socket has not taken yet */
    size_t written;
    srv_floods floods;
    bool flushing, ending;
};

static srv_h2 *of(srv_conn *conn) {
    return (srv_h2 *)conn;
}

static srv_server *server_of(const srv_h2 *h2) {
    return h2->conn.listener->server;
}

/* ---- Calls -------------------------------------------------------------------------------- */

srv_server *srv_call_server(const srv_call *call) {
    return server_of(call->h2);
}

srv_loop *srv_call_loop(const srv_call *call) {
    return call->h2->conn.loop;
}

static srv_call *new_call(srv_h2 *h2, int32_t stream) {
    srv_call *call = calloc(1, sizeof *call);
    if (!call) return NULL;
    call->h2 = h2;
    call->stream = stream;
    call->refs = 1;
    call->started_ns = srv_now_ns();
    call->next = h2->calls;
    if (h2->calls) h2->calls->before = call;
    h2->calls = call;
    h2->call_count++;
    srv_conn_hold(&h2->conn);
    return call;
}

void srv_call_retain(srv_call *call) {
    call->refs++;
}

void srv_call_release(srv_call *call) {
    assert(call->refs > 0);
    if (--call->refs) return;
    srv_h2 *h2 = call->h2;
    while (call->first_reply) srv_reply_pop(call);
    srv_message_free(&call->message);
    free(call);
    srv_conn_release(&h2->conn);
}

/* Takes a call off the connection: its stream is over, one way or the other. */
static void close_call(srv_call *call) {
    srv_h2 *h2 = call->h2;
    if (call->closed) return;
    call->closed = true;
    if (call->before) {
        call->before->next = call->next;
    } else {
        h2->calls = call->next;
    }
    if (call->next) call->next->before = call->before;
    h2->call_count--;
    while (call->first_reply) srv_reply_pop(call);
    if (call->method && call->method->closed) call->method->closed(call);
    srv_call_release(call);
}

/* ---- Answers ------------------------------------------------------------------------------ */

static size_t status_headers(const srv_call *call, char *number, nghttp2_nv *out) {
    size_t count = 0;
    snprintf(number, 12, "%d", srv_code_grpc(call->code));
    out[count++] = srv_header("grpc-status", number);
    if (call->status[0]) out[count++] = srv_header("grpc-message", call->status);
    return count;
}

/* nghttp2 asks for up to `length` bytes of the answer. */
static ssize_t read_answer(nghttp2_session *session, int32_t stream, uint8_t *buffer, size_t length,
                           uint32_t *flags, nghttp2_data_source *source, void *user) {
    srv_call *call = source->ptr;
    (void)user;
    size_t put = srv_reply_read(call, buffer, length);
    if (call->first_reply || put == length) return (ssize_t)put;
    if (!call->ended) {
        if (put) return (ssize_t)put;
        call->paused = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    char number[12];
    nghttp2_nv trailers[2];
    size_t count = status_headers(call, number, trailers);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    if (nghttp2_submit_trailer(session, stream, trailers, count) != 0) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)put;
}

/* Starts the answer, or wakes it up. */
static void push(srv_call *call) {
    nghttp2_session *session = call->h2->session;
    if (call->closed || !session) return;
    if (call->headers_sent) {
        if (call->paused) {
            call->paused = false;
            nghttp2_session_resume_data(session, call->stream);
        }
        return;
    }
    char number[12];
    nghttp2_nv headers[5] = {srv_header(":status", "200"),
                             srv_header("content-type", "application/grpc"),
                             srv_header("grpc-accept-encoding", "identity,deflate,gzip")};
    call->headers_sent = true;
    if (call->ended && !call->first_reply) {
        size_t count = 3 + status_headers(call, number, headers + 3);
        nghttp2_submit_response(session, call->stream, headers, count, NULL);
        return;
    }
    nghttp2_data_provider provider = {.source.ptr = call, .read_callback = read_answer};
    nghttp2_submit_response(session, call->stream, headers, 3, &provider);
}

void srv_call_send(srv_call *call, srv_reply *reply) {
    bool lives = !call->closed && !call->ended;
    bool streams = call->method && call->method->streams; /* unread, they could pile up */
    if (!lives || !srv_reply_seal(reply) ||
        (streams && !srv_reply_charge(reply, &srv_call_server(call)->budget))) {
        if (lives) {
            srv_call_end(call, SRV_UNAVAILABLE, "no memory is left for the answer");
        }
        srv_reply_free(reply);
        return;
    }
    srv_reply_push(call, reply);
    push(call);
}

static void log_call(const srv_call *call) {
    srv_logger *log = &srv_call_server(call)->log;
    if (!srv_log_wanted(log, SRV_LOG_VERBOSE)) return;
    char micros[32];
    snprintf(micros, sizeof micros, "%llu",
             (unsigned long long)((srv_now_ns() - call->started_ns) / 1000));
    srv_log(log, SRV_LOG_VERBOSE, "call", "peer", call->h2->conn.peer, "path", call->path, "status",
            srv_code_name(call->code), "us", micros, NULL);
}

void srv_call_end(srv_call *call, srv_code code, const char *message) {
    if (call->ended) return;
    call->ended = true;
    call->code = code;
    if (code != SRV_OK) srv_status_text(message, call->status, sizeof call->status);
    log_call(call);
    push(call);
}

/* ---- Writing ------------------------------------------------------------------------------ */

/* Collects frames until there is enough for a write; false when there are none left. */
static bool collect(srv_h2 *h2) {
    while (h2->out.length - h2->written < WRITE_SIZE) {
        const uint8_t *data;
        ssize_t size = nghttp2_session_mem_send(h2->session, &data);
        if (size < 0) h2->ending = true;
        if (size <= 0) return false;
        srv_text_add(&h2->out, data, (size_t)size);
    }
    return true;
}

static void set_deadline(srv_h2 *h2) {
    bool moving = h2->out.length > h2->written; /* one side must do something */
    for (const srv_call *call = h2->calls; call && !moving; call = call->next) {
        moving = call->receiving || call->first_reply || !call->method;
    }
    const srv_limits_table *limits = &server_of(h2)->limits;
    uint64_t wait = moving ? limits->body_ns : h2->calls ? 0 : limits->idle_ns;
    h2->conn.deadline = wait ? srv_now_ns() + wait : 0;
}

/* Writes what there is; closes a connection that has nothing more to say. */
static void flush(srv_h2 *h2) {
    if (h2->flushing || h2->conn.fd < 0) return;
    h2->flushing = true;
    bool more = true, blocked = false, broken = false;
    while (more && !blocked && !broken) {
        more = collect(h2);
        while (h2->written < h2->out.length && !blocked && !broken) {
            struct iovec piece = {h2->out.data + h2->written, h2->out.length - h2->written};
            ssize_t put = srv_conn_write(&h2->conn, &piece, 1);
            blocked = put == SRV_AGAIN;
            broken = put == SRV_BROKEN;
            if (put > 0) h2->written += (size_t)put;
        }
        if (h2->written == h2->out.length) {
            srv_text_clear(&h2->out);
            h2->written = 0;
        }
    }
    h2->flushing = false;
    broken = broken || h2->out.failed;
    bool idle = !blocked && !nghttp2_session_want_read(h2->session) &&
                !nghttp2_session_want_write(h2->session);
    if (broken || idle || (h2->ending && !blocked)) {
        srv_conn_close(&h2->conn);
        return;
    }
    set_deadline(h2);
    srv_conn_watch(&h2->conn, true, blocked);
}

void srv_call_flush(srv_call *call) {
    flush(call->h2);
}

/* Says goodbye and closes: the peer has done what it must not. */
static void cut_off(srv_h2 *h2, uint32_t reason, const char *why) {
    srv_log(&server_of(h2)->log, SRV_LOG_WARNING, "connection cut off", "peer", h2->conn.peer,
            "reason", why, NULL);
    nghttp2_session_terminate_session(h2->session, reason);
    h2->ending = true;
}

/* ---- What nghttp2 tells ------------------------------------------------------------------- */

static int begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    srv_call *call = new_call(user, frame->hd.stream_id);
    if (!call) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, call);
    return 0;
}

static const struct {
    const char *name;
    size_t offset, size;
} kept_headers[] = {
#define KEPT(name, field) \
    { name, offsetof(srv_call, field), sizeof((srv_call *)0)->field }
    KEPT(":path", path),
    KEPT("authorization", authorization),
    KEPT("x-api-key", api_key),
    KEPT("traceparent", traceparent),
    KEPT("grpc-encoding", encoding),
    KEPT("grpc-timeout", timeout),
#undef KEPT
};

static int header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                  size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                  void *user) {
    srv_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    (void)flags, (void)user;
    if (!call || call->method) return 0; /* trailers of the request say nothing here */
    for (size_t i = 0; i < sizeof kept_headers / sizeof kept_headers[0]; i++) {
        if (strlen(kept_headers[i].name) != name_size ||
            memcmp(name, kept_headers[i].name, name_size) != 0) {
            continue;
        }
        char *to = (char *)call + kept_headers[i].offset;
        if (value_size >= kept_headers[i].size) value_size = kept_headers[i].size - 1;
        memcpy(to, value, value_size);
        to[value_size] = 0;
    }
    return 0;
}

/* All headers are there: who may call what. */
static void dispatch(srv_call *call) {
    const char *why = "";
    const srv_method *method = srv_method_find(call->path);
    if (!method) {
        srv_call_end(call, SRV_UNIMPLEMENTED, "there is no such method");
        return;
    }
    call->method = method;
    srv_code code =
        srv_auth_check(&srv_call_server(call)->auth, method->group, sni_str_of(call->authorization),
                       sni_str_of(call->api_key), &why);
    if (code != SRV_OK) {
        srv_call_end(call, code, why);
    } else if (call->timeout[0] && !srv_timeout_parse(call->timeout, &call->timeout_ns)) {
        srv_call_end(call, SRV_INVALID, "grpc-timeout is not a time");
    }
}

/* The client will send no more. */
static void half_closed(srv_call *call) {
    if (call->last) return;
    call->last = true;
    if (call->ended) return;
    if (call->receiving || call->prefix_size) {
        srv_call_end(call, SRV_INVALID, "the stream ends inside a message");
    } else if (call->method && call->method->streams) {
        call->method->last(call);
    } else if (!call->messages) {
        srv_call_end(call, SRV_INVALID, "the call has no message");
    }
}

static int frame_begins(nghttp2_session *session, const nghttp2_frame_hd *head, void *user) {
    srv_h2 *h2 = user;
    (void)session;
    if (!srv_floods_frame(&h2->floods, head)) {
        cut_off(h2, NGHTTP2_ENHANCE_YOUR_CALM, "it sends too many frames with nothing in them");
    }
    return 0;
}

static int frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    srv_h2 *h2 = user;
    (void)session;
    if (frame->hd.type == NGHTTP2_DATA) srv_floods_work(&h2->floods);
    return 0;
}

/* Frames of other types are counted and passed over. */
static int pass_over(nghttp2_session *session, void **payload, const nghttp2_frame_hd *head,
                     void *user) {
    (void)session, (void)payload, (void)head, (void)user;
    return NGHTTP2_ERR_CANCEL;
}

/* Streams that are opened and reset at once cost us work and the peer nothing. */
static void count_reset(srv_h2 *h2) {
    if (!srv_floods_reset(&h2->floods)) {
        cut_off(h2, NGHTTP2_ENHANCE_YOUR_CALM, "it resets too many streams");
    }
}

static int frame_received(nghttp2_session *session, const nghttp2_frame *frame, void *user) {
    if (frame->hd.type == NGHTTP2_RST_STREAM) count_reset(user);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    srv_call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!call) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        dispatch(call);
    }
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) half_closed(call);
    return 0;
}

static int data_received(nghttp2_session *session, uint8_t flags, int32_t stream,
                         const uint8_t *data, size_t size, void *user) {
    srv_call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)flags, (void)user;
    if (call) srv_call_receive(call, data, size);
    return 0;
}

static int stream_closed(nghttp2_session *session, int32_t stream, uint32_t code, void *user) {
    srv_call *call = nghttp2_session_get_stream_user_data(session, stream);
    (void)code, (void)user;
    if (call) close_call(call);
    return 0;
}

/* ---- The connection ----------------------------------------------------------------------- */

static nghttp2_session *new_session(srv_h2 *h2) {
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *options;
    nghttp2_session *session = NULL;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) return NULL;
    if (nghttp2_option_new(&options) != 0) {
        nghttp2_session_callbacks_del(callbacks);
        return NULL;
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, frame_begins);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frame_sent);
    nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, pass_over);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_received);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_received);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
    nghttp2_option_set_max_send_header_block_length(options, 16384);
    nghttp2_option_set_max_outbound_ack(options, 256);
    for (int type = NGHTTP2_CONTINUATION + 1; type <= UINT8_MAX; type++) {
        nghttp2_option_set_user_recv_extension_type(options, (uint8_t)type);
    }
    nghttp2_session_server_new2(&session, callbacks, h2, options);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    return session;
}

static bool h2_open(srv_conn *conn) {
    srv_h2 *h2 = of(conn);
    h2->session = new_session(h2);
    if (!h2->session) return false;
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MAX_STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, MAX_FRAME},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)server_of(h2)->limits.header},
    };
    if (nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings, 4) != 0 ||
        nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                              CONNECTION_WINDOW) != 0) {
        nghttp2_session_del(h2->session);
        h2->session = NULL;
        return false;
    }
    conn->deadline = srv_now_ns() + server_of(h2)->limits.head_ns;
    srv_conn_watch(conn, true, false);
    return true;
}

static void h2_ready(srv_conn *conn) {
    static _Thread_local unsigned char buffer[READ_SIZE];
    srv_h2 *h2 = of(conn);
    for (int turns = 0; turns < 16 && !h2->ending; turns++) {
        ssize_t got = srv_conn_read(conn, buffer, sizeof buffer);
        if (got == SRV_AGAIN) break;
        if (got <= 0 || nghttp2_session_mem_recv(h2->session, buffer, (size_t)got) < 0) {
            srv_conn_close(conn);
            return;
        }
        if ((size_t)got < sizeof buffer && !conn->tls) break;
    }
    flush(h2);
}

static void h2_late(srv_conn *conn) {
    srv_h2 *h2 = of(conn);
    if (h2->ending || h2->out.length > h2->written) {
        srv_conn_close(conn);
        return;
    }
    nghttp2_session_terminate_session(h2->session, NGHTTP2_NO_ERROR);
    h2->ending = true;
    flush(h2);
}

static void h2_gone(srv_conn *conn) {
    srv_conn_close(conn);
}

static void h2_drain(srv_conn *conn) {
    srv_h2 *h2 = of(conn);
    nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(h2->session), NGHTTP2_NO_ERROR,
                          NULL, 0);
    flush(h2);
}

static void h2_closed(srv_conn *conn) {
    srv_h2 *h2 = of(conn);
    nghttp2_session *session = h2->session;
    h2->session = NULL;
    while (h2->calls) close_call(h2->calls);
    nghttp2_session_del(session);
    srv_text_free(&h2->out);
}

const srv_protocol srv_h2_protocol = {
    .name = "grpc",
    .alpn = "h2",
    .conn_size = sizeof(srv_h2),
    .open = h2_open,
    .ready = h2_ready,
    .late = h2_late,
    .gone = h2_gone,
    .drain = h2_drain,
    .closed = h2_closed,
};
