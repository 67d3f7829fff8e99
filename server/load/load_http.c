/* load_http.c - the load generator's HTTP/1.1: sends a prepared request, reads the answer. */
#include "server/load/load_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define HEAD 16384

typedef struct http_conn {
    srv_load_conn conn;
    size_t sent;
    char head[HEAD + 1];
    size_t head_size;
    bool in_body;
    uint64_t left; /* of the body */
} http_conn;

static bool http_open(srv_load_conn *conn) {
    (void)conn;
    return true;
}

static bool http_begin(srv_load_conn *conn) {
    http_conn *http = (http_conn *)conn;
    http->sent = http->head_size = 0;
    http->in_body = false;
    http->left = 0;
    srv_text_clear(&conn->body);
    return true;
}

/* Whether more can be sent; false on a broken connection. */
static bool send_more(http_conn *http) {
    srv_load_conn *conn = &http->conn;
    conn->wants_write = false;
    while (http->sent < conn->request->length) {
        ssize_t put = send(conn->fd, conn->request->data + http->sent,
                           conn->request->length - http->sent, MSG_NOSIGNAL);
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            conn->wants_write = true;
            return true;
        }
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        http->sent += (size_t)put;
    }
    return true;
}

/* The head is there: what it says of the body. False: it makes no sense. */
static bool read_head(http_conn *http, size_t end) {
    srv_load_conn *conn = &http->conn;
    char *length = NULL;
    http->head[end - 1] = 0;
    for (char *line = strchr(http->head, '\n'); line && !length; line = strchr(line + 1, '\n')) {
        if (strncasecmp(line + 1, "content-length:", 15) == 0) length = line + 16;
    }
    if (strncmp(http->head, "HTTP/1.", 7) != 0 || !length) return false;
    conn->good = strncmp(http->head + 8, " 200", 4) == 0;
    if (!conn->good) snprintf(conn->error, sizeof conn->error, "status %.4s", http->head + 8);
    http->left = strtoull(length, NULL, 10);
    http->in_body = true;
    return true;
}

static void take_body(http_conn *http, const char *data, size_t size) {
    srv_load_conn *conn = &http->conn;
    if (size > http->left) size = (size_t)http->left;
    if (conn->keep_body || (!conn->good && conn->body.length < 200)) {
        srv_text_add(&conn->body, data, size);
    }
    http->left -= size;
    if (http->left) return;
    conn->answered = true;
    if (!conn->good && conn->body.length) {
        snprintf(conn->error, sizeof conn->error, "status %.3s: %.150s", http->head + 9,
                 conn->body.data);
    }
}

static bool http_move(srv_load_conn *conn) {
    static _Thread_local char buffer[256 << 10];
    http_conn *http = (http_conn *)conn;
    if (!send_more(http)) return false;
    while (!conn->answered) {
        char *to = http->in_body ? buffer : http->head + http->head_size;
        size_t space = http->in_body ? sizeof buffer : HEAD - http->head_size;
        if (space == 0) return false;
        ssize_t got = recv(conn->fd, to, space, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
        if (got == 0) return false;
        conn->bytes_in += (uint64_t)got;
        if (http->in_body) {
            take_body(http, buffer, (size_t)got);
            continue;
        }
        http->head_size += (size_t)got;
        http->head[http->head_size] = 0;
        char *end = strstr(http->head, "\r\n\r\n");
        if (!end) continue;
        size_t size = (size_t)(end - http->head) + 4;
        if (!read_head(http, size)) return false;
        take_body(http, http->head + size, http->head_size - size);
    }
    return true;
}

static void http_close(srv_load_conn *conn) {
    srv_text_free(&conn->body);
}

const srv_load_protocol srv_load_http = {sizeof(http_conn), http_open, http_begin, http_move,
                                         http_close};
