/* load_grpc.c - the load generator's gRPC: calls on streams of an HTTP/2 connection. */
#include "server/load/load_client.h"

#ifdef SINTER_HAVE_NGHTTP2

#include "server/net/h2_header.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

typedef struct grpc_conn {
    srv_load_conn conn;
    nghttp2_session *session;
    size_t sent; /* of the request */
    int status;  /* gRPC's; -1: none has come */
    srv_text out;
    size_t written;
} grpc_conn;

bool srv_load_has_grpc(void) {
    return true;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_size, const uint8_t *value, size_t value_size, uint8_t flags,
                     void *user) {
    grpc_conn *grpc = user;
    (void)session, (void)frame, (void)flags;
    sni_str key = {(const char *)name, name_size}, text = {(const char *)value, value_size};
    uint64_t number;
    if (sni_str_is(key, "grpc-status") && srv_parse_uint(text, 16, &number)) {
        grpc->status = (int)number;
    } else if (sni_str_is(key, "grpc-message")) {
        snprintf(grpc->conn.error, sizeof grpc->conn.error, "%.*s", SNI_FMT(text));
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
                   size_t size, void *user) {
    grpc_conn *grpc = user;
    (void)session, (void)flags, (void)stream;
    grpc->conn.bytes_in += size;
    if (grpc->conn.keep_body) srv_text_add(&grpc->conn.body, data, size);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *user) {
    grpc_conn *grpc = user;
    (void)session, (void)stream, (void)code;
    grpc->conn.answered = true;
    grpc->conn.good = grpc->status == 0;
    if (!grpc->conn.good && !grpc->conn.error[0]) {
        snprintf(grpc->conn.error, sizeof grpc->conn.error, "grpc-status %d", grpc->status);
    }
    return 0;
}

static bool grpc_open(srv_load_conn *conn) {
    grpc_conn *grpc = (grpc_conn *)conn;
    nghttp2_session_callbacks *callbacks;
    if (nghttp2_session_callbacks_new(&callbacks) != 0) return false;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    int failed = nghttp2_session_client_new(&grpc->session, callbacks, grpc);
    nghttp2_session_callbacks_del(callbacks);
    if (failed) return false;
    nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 16 << 20},
                                         {NGHTTP2_SETTINGS_ENABLE_PUSH, 0}};
    return nghttp2_submit_settings(grpc->session, NGHTTP2_FLAG_NONE, settings, 2) == 0 &&
           nghttp2_session_set_local_window_size(grpc->session, NGHTTP2_FLAG_NONE, 0, 64 << 20) ==
               0;
}

static ssize_t read_request(nghttp2_session *session, int32_t stream, uint8_t *buffer,
                            size_t length, uint32_t *flags, nghttp2_data_source *source,
                            void *user) {
    grpc_conn *grpc = user;
    (void)session, (void)stream, (void)source;
    size_t left = grpc->conn.request->length - grpc->sent, take = left < length ? left : length;
    memcpy(buffer, grpc->conn.request->data + grpc->sent, take);
    grpc->sent += take;
    if (take == left) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)take;
}

static bool grpc_begin(srv_load_conn *conn) {
    grpc_conn *grpc = (grpc_conn *)conn;
    char token[600];
    nghttp2_nv headers[8] = {
        srv_header(":method", "POST"),      srv_header(":scheme", "http"),
        srv_header(":path", conn->path),    srv_header(":authority", conn->target->host),
        srv_header("te", "trailers"),       srv_header("content-type", "application/grpc"),
        srv_header("user-agent", "sinter"),
    };
    size_t count = 7;
    if (conn->options->token) {
        snprintf(token, sizeof token, "Bearer %s", conn->options->token);
        headers[count++] = srv_header("authorization", token);
    }
    grpc->sent = 0;
    grpc->status = -1;
    conn->error[0] = 0;
    srv_text_clear(&conn->body);
    nghttp2_data_provider provider = {.read_callback = read_request};
    return nghttp2_submit_request(grpc->session, NULL, headers, count, &provider, NULL) >= 0;
}

static bool write_frames(grpc_conn *grpc) {
    srv_load_conn *conn = &grpc->conn;
    conn->wants_write = false;
    for (;;) {
        const uint8_t *data;
        ssize_t size = 0;
        while (grpc->out.length - grpc->written < (64 << 10) &&
               (size = nghttp2_session_mem_send(grpc->session, &data)) > 0) {
            srv_text_add(&grpc->out, data, (size_t)size);
        }
        if (size < 0 || grpc->out.failed) return false;
        if (grpc->written == grpc->out.length) break;
        ssize_t put = send(conn->fd, grpc->out.data + grpc->written,
                           grpc->out.length - grpc->written, MSG_NOSIGNAL);
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            conn->wants_write = true;
            return true;
        }
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        grpc->written += (size_t)put;
        if (grpc->written == grpc->out.length) {
            srv_text_clear(&grpc->out);
            grpc->written = 0;
        }
    }
    return true;
}

static bool grpc_move(srv_load_conn *conn) {
    static _Thread_local unsigned char buffer[256 << 10];
    grpc_conn *grpc = (grpc_conn *)conn;
    if (!write_frames(grpc)) return false;
    for (;;) {
        ssize_t got = recv(conn->fd, buffer, sizeof buffer, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
        if (got <= 0 || nghttp2_session_mem_recv(grpc->session, buffer, (size_t)got) < 0) {
            return false;
        }
    }
    return write_frames(grpc);
}

static void grpc_close(srv_load_conn *conn) {
    grpc_conn *grpc = (grpc_conn *)conn;
    nghttp2_session_del(grpc->session);
    grpc->session = NULL;
    srv_text_free(&grpc->out);
    grpc->written = 0;
    srv_text_free(&conn->body);
}

const srv_load_protocol srv_load_grpc = {sizeof(grpc_conn), grpc_open, grpc_begin, grpc_move,
                                         grpc_close};

#else

bool srv_load_has_grpc(void) {
    return false;
}

const srv_load_protocol srv_load_grpc = {0};

#endif
