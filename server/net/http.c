/* http.c - HTTP/1.1 over a connection: heads, answers, timeouts, and what follows what. */
#include "server/net/http.h"
#include "server/api/json_out.h"
#include "server/net/pack.h"
#include "server/api/routes.h"
#include "server/server.h"

#include <stdlib.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#define IN_EXTRA 16384 /* of the buffer beyond the largest head */
#define LINGER_NS 2000000000u
#define MAX_TURNS 32 /* pipelined requests answered before others have their turn */

static void go_on(srv_http *http);

static srv_http *of(srv_conn *conn) {
    return (srv_http *)conn;
}

static const srv_limits_table *limits_of(const srv_http *http) {
    return &srv_http_server(http)->limits;
}

/* ---- Answers ------------------------------------------------------------------------------ */

static void add_date(srv_text *out) {
    static _Thread_local time_t last;
    static _Thread_local char text[64];
    time_t now = time(NULL);
    if (now != last) {
        struct tm parts;
        gmtime_r(&now, &parts);
        strftime(text, sizeof text, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
        last = now;
    }
    srv_text_adds(out, text);
}

static size_t tail_bytes(const srv_http *http) {
    size_t total = 0;
    for (size_t i = 0; i < http->tail_count; i++) total += http->tail[i].iov_len;
    return total;
}

static void log_request(const srv_http *http) {
    srv_logger *log = &srv_http_server(http)->log;
    if (!srv_log_wanted(log, SRV_LOG_VERBOSE)) return;
    char status[16], micros[32], path[200];
    snprintf(status, sizeof status, "%d", srv_code_http(http->code));
    snprintf(micros, sizeof micros, "%llu",
             (unsigned long long)((srv_now_ns() - http->started_ns) / 1000));
    snprintf(path, sizeof path, "%.*s", SNI_FMT(http->head.path));
    srv_log(log, SRV_LOG_VERBOSE, "request", "peer", http->conn.peer, "path", path, "status",
            status, "us", micros, NULL);
}

void srv_http_reply(srv_http *http, srv_code code, const char *type, const char *headers) {
    srv_text *out = &http->out_head;
    if (http->conn.fd < 0 || http->replied) return;
    http->replied = true;
    http->code = code;
    const char *packed = srv_pack_reply(http);
    if (!http->head.keep_alive || http->conn.draining) http->close = true;
    srv_text_clear(out);
    srv_text_addf(out, "HTTP/1.1 %d %s\r\n", srv_code_http(code), srv_code_reason(code));
    add_date(out);
    srv_text_adds(out, "Content-Length: ");
    srv_text_add_uint(out, http->out.length + tail_bytes(http));
    srv_text_adds(out, "\r\n");
    if (type) srv_text_addf(out, "Content-Type: %s\r\n", type);
    if (packed) srv_text_addf(out, "Content-Encoding: %s\r\n", packed);
    if (http->close) srv_text_adds(out, "Connection: close\r\n");
    if (!http->close && http->head.minor == 0) srv_text_adds(out, "Connection: keep-alive\r\n");
    if (headers) srv_text_adds(out, headers);
    srv_text_adds(out, "X-Content-Type-Options: nosniff\r\n\r\n");
    if (sni_str_is(http->head.method, "HEAD")) {
        srv_text_clear(&http->out);
        http->tail_count = 0;
    }
    log_request(http);
    http->written = 0;
    bool waited = http->state == SRV_HTTP_WAIT;
    http->state = SRV_HTTP_WRITE;
    if (out->failed || http->out.failed) {
        srv_conn_close(&http->conn);
        return;
    }
    if (waited) go_on(http);
}

void srv_http_error(srv_http *http, srv_code code, const char *fmt, ...) {
    char message[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    if (http->replied) return;
    srv_text_clear(&http->out);
    srv_json_out json = {.text = &http->out};
    srv_json_begin(&json, '{');
    srv_json_pair_string(&json, "error", message);
    srv_json_end(&json, '}');
    http->tail_count = 0;
    const char *headers = NULL;
    if (code == SRV_UNAVAILABLE) headers = "Retry-After: 1\r\n";
    if (code == SRV_UNAUTHENTICATED) headers = "WWW-Authenticate: Bearer\r\n";
    srv_http_reply(http, code, "application/json", headers);
}

void srv_http_wait(srv_http *http, void *work, void (*cancel)(srv_http *http)) {
    http->work = work;
    http->cancel = cancel;
    http->state = SRV_HTTP_WAIT;
    http->conn.deadline = 0;
    srv_conn_watch(&http->conn, false, false);
}

/* Gives back what the answer borrowed. */
static void release_answer(srv_http *http) {
    void (*finished)(srv_http *) = http->finished;
    http->finished = NULL;
    http->tail_count = 0;
    if (finished) finished(http);
}

/* ---- Heads -------------------------------------------------------------------------------- */

/* Answers a request whose head is wrong; the connection cannot go on after it. */
static void refuse(srv_http *http, srv_code code, const char *why) {
    http->close = true;
    http->head.keep_alive = false;
    srv_http_error(http, code, "%s", why);
}

static void refuse_route(srv_http *http, srv_code code, const char *allow) {
    if (code == SRV_BAD_METHOD) {
        char headers[64];
        snprintf(headers, sizeof headers, "Allow: %s\r\n", allow);
        srv_text_clear(&http->out);
        srv_text_adds(&http->out, "{\"error\":\"this path takes another method\"}");
        srv_http_reply(http, code, "application/json", headers);
    } else {
        srv_http_error(http, code,
                       code == SRV_INVALID ? "a version is a positive number"
                                           : "there is nothing at this path");
    }
}

static void dispatch(srv_http *http) {
    const char *allow, *why = "";
    http->route = NULL;
    srv_code code = srv_route_find(http, http->conn.listener->routes, &allow);
    bool found = code == SRV_OK;
    if (found) {
        code = srv_auth_check(&srv_http_server(http)->auth, http->route->group,
                              http->head.authorization, http->head.api_key, &why);
    }
    if (code == SRV_OK) {
        bool changes = strcmp(http->route->method, "GET") != 0;
        code = srv_sites_check(&srv_http_server(http)->sites, &http->head, changes, &why);
    }
    bool ignore = code != SRV_OK || http->route->body == SRV_BODY_NONE;
    http->state = SRV_HTTP_BODY;
    http->body.discard = ignore;
    int result = srv_body_begin(http);
    if (result < 0) return;
    if (code != SRV_OK) {
        if (result == 0) http->close = true; /* the rest of the body is not waited for */
        if (found) {
            srv_http_error(http, code, "%s", why);
        } else {
            refuse_route(http, code, allow);
        }
        return;
    }
    if (result == 1) http->route->handle(http);
}

/* Looks for a whole head in the buffer; false when more must come or the connection is done. */
static bool take_head(srv_http *http) {
    size_t skip, there = http->in_to - http->in_from;
    const char *start = http->in + http->in_from, *why;
    size_t size = there ? srv_head_end(start, there, &skip) : 0, max = limits_of(http)->header;
    if (size == 0 || size > max) {
        if (there < max && size == 0) return false;
        bool line = there && memchr(start, '\n', there < max ? there : max) != NULL;
        refuse(http, line ? SRV_LARGE_HEADERS : SRV_LONG_TARGET, "the head is too large");
        return true;
    }
    srv_code code = srv_head_parse(start + skip, size, &http->head, &why);
    http->in_from += skip + size;
    http->head_end = http->in_from;
    if (code != SRV_OK) {
        refuse(http, code, why);
        return true;
    }
    dispatch(http);
    return true;
}

/* Reads until there is a head: true when a request has begun. */
static bool read_head(srv_http *http) {
    for (;;) {
        if (http->in_to > http->in_from && !http->started_ns) {
            http->started_ns = srv_now_ns();
            http->conn.deadline = http->started_ns + limits_of(http)->head_ns;
        }
        if (take_head(http)) return true;
        if (http->conn.draining && http->in_from == http->in_to) {
            srv_conn_close(&http->conn);
            return false;
        }
        ssize_t got =
            srv_conn_read(&http->conn, http->in + http->in_to, http->in_capacity - http->in_to);
        if (got == SRV_AGAIN) {
            srv_conn_watch(&http->conn, true, false);
            return false;
        }
        if (got <= 0) {
            srv_conn_close(&http->conn);
            return false;
        }
        http->in_to += (size_t)got;
    }
}

/* ---- Sending ------------------------------------------------------------------------------ */

static int pieces_left(const srv_http *http, struct iovec *out, int max) {
    size_t skip = http->written;
    int count = 0;
    struct iovec first[2] = {{http->out_head.data, http->out_head.length},
                             {http->out.data, http->out.length}};
    for (size_t i = 0; i < 2 + http->tail_count && count < max; i++) {
        struct iovec piece = i < 2 ? first[i] : http->tail[i - 2];
        if (skip >= piece.iov_len) {
            skip -= piece.iov_len;
            continue;
        }
        out[count++] = (struct iovec){(char *)piece.iov_base + skip, piece.iov_len - skip};
        skip = 0;
    }
    return count;
}

/* True when everything is out. */
static bool send_answer(srv_http *http) {
    for (;;) {
        struct iovec pieces[64];
        int count = pieces_left(http, pieces, 64);
        if (count == 0) return true;
        ssize_t put = srv_conn_write(&http->conn, pieces, count);
        if (put == SRV_AGAIN) {
            http->conn.deadline = srv_now_ns() + limits_of(http)->body_ns;
            srv_conn_watch(&http->conn, false, true);
            return false;
        }
        if (put < 0) {
            srv_conn_close(&http->conn);
            return false;
        }
        http->written += (size_t)put;
    }
}

/* Everything of this request is over: ready for the next. */
static void next_request(srv_http *http) {
    release_answer(http);
    srv_body_reset(http);
    if (http->out.capacity > 65536) srv_text_free(&http->out);
    srv_text_clear(&http->out);
    size_t left = http->in_to - http->in_from;
    if (left) memmove(http->in, http->in + http->in_from, left);
    http->in_from = http->head_end = 0;
    http->in_to = left;
    http->started_ns = 0;
    http->head = (srv_head){0};
    http->route = NULL;
    http->replied = false;
    http->work = NULL;
    http->cancel = NULL;
    http->state = SRV_HTTP_HEAD;
    http->conn.deadline = srv_now_ns() + limits_of(http)->idle_ns;
}

/* The peer may still be sending what nobody reads: closing at once would destroy the answer on its
 * way to it. */
static void linger(srv_http *http) {
    release_answer(http);
    if (http->conn.tls) {
        srv_conn_close(&http->conn);
        return;
    }
    shutdown(http->conn.fd, SHUT_WR);
    http->state = SRV_HTTP_LINGER;
    http->conn.deadline = srv_now_ns() + LINGER_NS;
    srv_conn_watch(&http->conn, true, false);
}

static void read_away(srv_http *http) {
    char scratch[16384];
    for (int i = 0; i < 64; i++) {
        ssize_t got = srv_conn_read(&http->conn, scratch, sizeof scratch);
        if (got == SRV_AGAIN) return;
        if (got <= 0) {
            srv_conn_close(&http->conn);
            return;
        }
    }
}

static void read_body(srv_http *http) {
    int result = srv_body_read(http);
    if (result == 0 && http->conn.fd >= 0) srv_conn_watch(&http->conn, true, false);
    if (result == 1) http->route->handle(http);
}

/* Takes the connection as far as it goes without waiting. */
static void go_on(srv_http *http) {
    http->turns = 0;
    srv_conn_hold(&http->conn);
    while (http->conn.fd >= 0) {
        srv_http_state before = http->state;
        if (before == SRV_HTTP_HEAD) {
            if (!read_head(http)) break;
        } else if (before == SRV_HTTP_BODY) {
            read_body(http);
            if (http->state == SRV_HTTP_BODY) break;
        } else if (before == SRV_HTTP_WRITE) {
            if (!send_answer(http)) break;
            if (http->close) {
                linger(http);
                continue;
            }
            next_request(http);
            if (++http->turns >= MAX_TURNS && http->in_to > 0) {
                /* writable is at once: the loop comes back after the others */
                srv_conn_watch(&http->conn, true, true);
                break;
            }
        } else if (before == SRV_HTTP_LINGER) {
            read_away(http);
            break;
        } else {
            break;
        }
    }
    if (http->conn.fd >= 0 && http->state == SRV_HTTP_BODY) {
        srv_conn_watch(&http->conn, true, false);
    }
    srv_conn_release(&http->conn);
}

/* ---- The protocol's table ----------------------------------------------------------------- */

static bool http_open(srv_conn *conn) {
    srv_http *http = of(conn);
    http->in_capacity = limits_of(http)->header + IN_EXTRA;
    http->in = malloc(http->in_capacity);
    conn->deadline = srv_now_ns() + limits_of(http)->head_ns;
    return http->in != NULL;
}

static void http_ready(srv_conn *conn) {
    if (of(conn)->state != SRV_HTTP_WAIT) go_on(of(conn));
}

static void http_late(srv_conn *conn) {
    srv_http *http = of(conn);
    bool asked = http->started_ns && (http->state == SRV_HTTP_HEAD || http->state == SRV_HTTP_BODY);
    if (!asked) {
        srv_conn_close(conn);
        return;
    }
    srv_conn_hold(conn);
    refuse(http, SRV_SLOW, "the request did not come in time");
    if (conn->fd >= 0) go_on(http);
    srv_conn_release(conn);
}

static void http_gone(srv_conn *conn) {
    srv_conn_close(conn);
}

static void http_drain(srv_conn *conn) {
    srv_http *http = of(conn);
    if (http->state == SRV_HTTP_HEAD && !http->started_ns) srv_conn_close(conn);
}

static void http_closed(srv_conn *conn) {
    srv_http *http = of(conn);
    if (http->state == SRV_HTTP_WAIT && http->cancel) {
        http->cancel(http); /* and `work` is the route's to finish */
    } else {
        release_answer(http);
    }
    srv_body_reset(http);
    srv_text_free(&http->text);
    srv_text_free(&http->out);
    srv_text_free(&http->out_head);
    free(http->in);
    http->in = NULL;
}

const srv_protocol srv_http_protocol = {
    .name = "http",
    .alpn = "http/1.1",
    .conn_size = sizeof(srv_http),
    .open = http_open,
    .ready = http_ready,
    .late = http_late,
    .gone = http_gone,
    .drain = http_drain,
    .closed = http_closed,
};
