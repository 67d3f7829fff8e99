/* load.c - the load generator: as many connections as asked for, in one thread over epoll.
 *
 * Closed loop: each connection sends its next request when the last one is answered. Open loop:
 * requests fall due at a fixed rate whether or not the server keeps up, and their latency counts
 * from when they fell due. */
#include "server/load/load.h"
#include "server/load/load_client.h"
#include "server/load/load_report.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECOND 1000000000u
#define METHOD "/inference.GRPCInferenceService/"

typedef struct generator {
    const srv_load_options *options;
    const srv_load_protocol *protocol;
    srv_target target;
    srv_text request;
    srv_load_conn **conns;
    int epoll;
    uint64_t start_ns, measure_ns, end_ns;
    uint64_t due;          /* requests that fell due and have not begun (open loop) */
    double begun;          /* requests that have fallen due so far */
    uint64_t due_ns[4096]; /* when those were due, as a ring */
    size_t due_first;
    srv_load_result second, total;
} generator;

void srv_load_options_init(srv_load_options *options) {
    *options = (srv_load_options){.concurrency = 1, .seconds = 10, .warm_up = 1, .open = 1};
}

/* ---- Connections -------------------------------------------------------------------------- */

/* Looks the host up: a name, a numeric address, or an IPv6 one in brackets. */
static sn_status resolve(srv_target *target, sni_str host, uint64_t port, sn_error *err) {
    char name[80], service[8];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    bool six = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    snprintf(name, sizeof name, "%.*s", (int)(six ? host.n - 2 : host.n), host.p + (six ? 1 : 0));
    snprintf(service, sizeof service, "%u", (unsigned)port);
    int failed = getaddrinfo(name, service, &hints, &found);
    if (failed) {
        return sni_fail(err, SN_IO, "cannot find %s: %s", name, gai_strerror(failed));
    }
    memcpy(&target->address, found->ai_addr, found->ai_addrlen);
    target->address_size = found->ai_addrlen;
    freeaddrinfo(found);
    snprintf(target->host, sizeof target->host, "%.*s:%u", SNI_FMT(host), (unsigned)port);
    return SN_OK;
}

static sn_status parse_url(const char *url, srv_target *target, sn_error *err) {
    const char *at = strstr(url, "://");
    sni_str scheme = {url, at ? (size_t)(at - url) : 0};
    const char *host = at ? at + 3 : url;
    target->grpc = sni_str_is(scheme, "grpc");
    if (at && !target->grpc && !sni_str_is(scheme, "http")) {
        return sni_fail(err, SN_INVALID_ARGUMENT, "'%s' is neither http:// nor grpc://", url);
    }
    if (target->grpc && !srv_load_has_grpc()) {
        return sni_fail(err, SN_UNSUPPORTED, "this build has no gRPC: it needs nghttp2");
    }
    size_t length = strcspn(host, "/");
    const char *bracket = memchr(host, ']', length), *name_end = bracket ? bracket : host;
    const char *colon = memchr(name_end, ':', length - (size_t)(name_end - host));
    size_t name = colon ? (size_t)(colon - host) : length;
    uint64_t port = target->grpc ? 8001 : 8000;
    if (name == 0 || name > 64 ||
        (colon && !srv_parse_uint((sni_str){colon + 1, length - name - 1}, 65535, &port))) {
        return sni_fail(err, SN_INVALID_ARGUMENT,
                        "'%s' is not http://HOST:PORT or grpc://HOST:PORT", url);
    }
    return resolve(target, (sni_str){host, name}, port, err);
}

static bool connect_conn(srv_load_conn *conn, const srv_load_protocol *protocol) {
    int one = 1;
    conn->fd = socket(conn->target->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (conn->fd < 0) return false;
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(conn->fd, (const struct sockaddr *)&conn->target->address,
                conn->target->address_size) != 0 ||
        fcntl(conn->fd, F_SETFL, O_NONBLOCK) != 0 || !protocol->open(conn)) {
        int why = errno;
        close(conn->fd);
        conn->fd = -1;
        errno = why;
        return false;
    }
    conn->busy = conn->answered = false;
    return true;
}

static void drop_conn(srv_load_conn *conn, const srv_load_protocol *protocol) {
    if (conn->fd < 0) return;
    protocol->close(conn);
    close(conn->fd);
    conn->fd = -1;
    conn->busy = false;
}

static srv_load_conn *new_conn(const generator *g, const srv_text *request) {
    srv_load_conn *conn = calloc(1, g->protocol->size);
    if (!conn) return NULL;
    conn->fd = -1;
    conn->request = request;
    conn->options = g->options;
    conn->target = &g->target;
    conn->path = METHOD "ModelInfer";
    return conn;
}

/* ---- One request, waited for -------------------------------------------------------------- */

static sn_status exchange(const generator *g, const srv_text *request, const char *path,
                          srv_text *body, sn_error *err) {
    srv_load_conn *conn = new_conn(g, request);
    if (!conn) return sni_fail_memory(err);
    conn->path = path;
    conn->keep_body = true;
    sn_status status = SN_OK;
    if (!connect_conn(conn, g->protocol)) {
        status = sni_fail(err, SN_IO, "cannot connect to %s: %s", g->target.host, strerror(errno));
    } else if (!g->protocol->begin(conn)) {
        status = sni_fail_memory(err);
    }
    uint64_t end = srv_now_ns() + 30ull * SECOND;
    while (status == SN_OK && !conn->answered) {
        if (!g->protocol->move(conn) || srv_now_ns() > end) {
            status = sni_fail(err, SN_IO, "%s does not answer", g->target.host);
        } else if (!conn->answered) {
            struct pollfd poller = {conn->fd, POLLIN | (conn->wants_write ? POLLOUT : 0), 0};
            poll(&poller, 1, 1000);
        }
    }
    if (status == SN_OK && !conn->good) {
        status = sni_fail(err, SN_NOT_FOUND, "%s", conn->error);
    }
    if (status == SN_OK) {
        *body = conn->body;
        conn->body = (srv_text){0};
    }
    drop_conn(conn, g->protocol);
    free(conn);
    return status;
}

/* Asks for the model's inputs and makes the request. */
static sn_status prepare_http(generator *g, srv_load_model *model, sn_error *err) {
    const srv_load_options *o = g->options;
    srv_text ask = {0}, body = {0};
    srv_text_addf(&ask, "GET /v2/models/%s%s%s HTTP/1.1\r\nHost: %s\r\n", o->model,
                  o->version ? "/versions/" : "", o->version ? o->version : "", g->target.host);
    if (o->token) srv_text_addf(&ask, "Authorization: Bearer %s\r\n", o->token);
    srv_text_adds(&ask, "\r\n");
    sn_status status = exchange(g, &ask, NULL, &body, err);
    if (status == SN_OK) status = srv_load_read_json(model, body.data, body.length, err);
    srv_text_free(&ask);
    srv_text_free(&body);
    if (status == SN_OK) status = srv_load_fill(model, o, err);
    if (status == SN_OK) status = srv_load_http_request(model, o, &g->target, &g->request, err);
    return status;
}

static sn_status prepare_grpc(generator *g, srv_load_model *model, sn_error *err) {
    srv_load_model nothing = {0};
    srv_text ask = {0}, body = {0};
    srv_load_options named = *g->options;
    /* name and version have the fields of a request without tensors */
    sn_status status = srv_load_grpc_request(&nothing, &named, &ask, err);
    if (status == SN_OK) status = exchange(g, &ask, METHOD "ModelMetadata", &body, err);
    if (status == SN_OK && body.length > 5) {
        status = srv_load_read_protobuf(model, body.data + 5, body.length - 5, err);
    }
    srv_text_free(&ask);
    srv_text_free(&body);
    if (status == SN_OK) status = srv_load_fill(model, g->options, err);
    if (status == SN_OK) status = srv_load_grpc_request(model, g->options, &g->request, err);
    return status;
}

/* ---- The loop ----------------------------------------------------------------------------- */

static void watch(generator *g, srv_load_conn *conn, int operation) {
    struct epoll_event event = {.events = EPOLLIN | (conn->wants_write ? EPOLLOUT : 0u),
                                .data.ptr = conn};
    epoll_ctl(g->epoll, operation, conn->fd, &event);
}

/* A connection that ended is counted, and opened again. */
static void lost(generator *g, srv_load_conn *conn) {
    g->second.broken++;
    if (conn->busy) g->second.failed++;
    drop_conn(conn, g->protocol);
    if (connect_conn(conn, g->protocol)) watch(g, conn, EPOLL_CTL_ADD);
}

/* Counts an answer, and the connection is free for the next request. */
static void count_answer(generator *g, srv_load_conn *conn) {
    uint64_t now = srv_now_ns();
    conn->busy = conn->answered = false;
    g->second.bytes_in += conn->bytes_in;
    g->second.bytes_out += conn->request->length;
    conn->bytes_in = 0;
    if (conn->good) {
        srv_latency_add(&g->second.latency, now - conn->begun_ns);
    } else {
        if (!g->total.error[0]) memcpy(g->total.error, conn->error, sizeof g->total.error);
        g->second.failed++;
    }
}

static void move(generator *g, srv_load_conn *conn) {
    bool wanted = conn->wants_write;
    if (!g->protocol->move(conn)) {
        lost(g, conn);
        return;
    }
    if (conn->answered) count_answer(g, conn);
    if (conn->wants_write != wanted) watch(g, conn, EPOLL_CTL_MOD);
}

static void begin(generator *g, srv_load_conn *conn, uint64_t when) {
    conn->busy = true;
    conn->answered = false;
    conn->begun_ns = when;
    if (!g->protocol->begin(conn)) {
        lost(g, conn);
        return;
    }
    move(g, conn);
}

/* How far the ramp is: 0 to 1. */
static double ramp(const generator *g, uint64_t now) {
    if (g->options->ramp <= 0) return 1;
    double at = (double)(now - g->start_ns) * 1e-9 / g->options->ramp;
    return at < 1 ? at : 1;
}

/* Requests that have fallen due by now join the ring; what does not fit is dropped as failed. */
static void fall_due(generator *g, uint64_t now, uint64_t last) {
    const size_t capacity = sizeof g->due_ns / sizeof g->due_ns[0];
    g->begun += (double)(now - last) * 1e-9 * g->options->rate * ramp(g, now);
    for (; g->begun >= 1; g->begun -= 1) {
        if (g->due == capacity) {
            g->second.failed++;
        } else {
            g->due_ns[(g->due_first + g->due++) % capacity] = now;
        }
    }
}

/* True when one was answered at once: its connection has nothing to wait for. */
static bool start_requests(generator *g, uint64_t now) {
    bool at_once = false;
    const size_t capacity = sizeof g->due_ns / sizeof g->due_ns[0];
    int allowed = g->options->rate > 0 ? g->options->concurrency
                                       : (int)(g->options->concurrency * ramp(g, now) + 0.999);
    for (int i = 0; i < allowed; i++) {
        srv_load_conn *conn = g->conns[i];
        if (conn->busy) continue;
        if (conn->fd < 0) {
            lost(g, conn);
            if (conn->fd < 0) continue;
        }
        if (g->options->rate <= 0) {
            begin(g, conn, srv_now_ns());
            at_once = at_once || !conn->busy;
        } else if (g->due) {
            uint64_t when = g->due_ns[g->due_first];
            g->due_first = (g->due_first + 1) % capacity;
            g->due--;
            begin(g, conn, when);
            at_once = at_once || (!conn->busy && g->due);
        }
    }
    return at_once;
}

/* A second is over: it is shown, and counted if it is measured. */
static void turn_second(generator *g, srv_live *live, uint64_t now, uint64_t began) {
    g->second.seconds = (double)(now - began) * 1e-9;
    if (!g->options->quiet) srv_live_line(live, (double)(now - g->start_ns) * 1e-9, &g->second);
    if (began >= g->measure_ns) {
        srv_latency_merge(&g->total.latency, &g->second.latency);
        g->total.failed += g->second.failed;
        g->total.broken += g->second.broken;
        g->total.bytes_in += g->second.bytes_in;
        g->total.bytes_out += g->second.bytes_out;
        g->total.seconds += g->second.seconds;
    }
    g->second = (srv_load_result){0};
}

static void run(generator *g) {
    srv_live live = {.count = 0};
    uint64_t now = srv_now_ns(), last = now, began = now;
    g->start_ns = now;
    g->measure_ns = now + (uint64_t)(g->options->warm_up * 1e9);
    g->end_ns = g->measure_ns + (uint64_t)(g->options->seconds * 1e9);
    while (now < g->end_ns) {
        struct epoll_event events[256];
        if (g->options->rate > 0) fall_due(g, now, last);
        last = now;
        bool at_once = start_requests(g, now);
        int wait = at_once ? 0 : g->options->rate > 0 ? 1 : 50;
        int count = epoll_wait(g->epoll, events, 256, wait);
        for (int i = 0; i < count; i++) move(g, events[i].data.ptr);
        now = srv_now_ns();
        bool warm = began < g->measure_ns && now >= g->measure_ns;
        if (now - began >= SECOND || warm || now >= g->end_ns) {
            turn_second(g, &live, now, began);
            began = now;
        }
    }
    if (!g->options->quiet && isatty(2)) fputc('\n', stderr);
}

static sn_status open_conns(generator *g, sn_error *err) {
    g->conns = calloc((size_t)g->options->concurrency, sizeof(srv_load_conn *));
    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!g->conns || g->epoll < 0) return sni_fail_memory(err);
    for (int i = 0; i < g->options->concurrency; i++) {
        g->conns[i] = new_conn(g, &g->request);
        if (!g->conns[i]) return sni_fail_memory(err);
        if (!connect_conn(g->conns[i], g->protocol)) {
            return sni_fail(err, SN_IO, "cannot connect to %s: %s", g->target.host,
                            strerror(errno));
        }
        watch(g, g->conns[i], EPOLL_CTL_ADD);
    }
    return SN_OK;
}

static void close_conns(generator *g) {
    for (int i = 0; g->conns && i < g->options->concurrency; i++) {
        if (g->conns[i]) drop_conn(g->conns[i], g->protocol);
        free(g->conns[i]);
    }
    free(g->conns);
    if (g->epoll >= 0) close(g->epoll);
}

sn_status srv_load(const srv_load_options *options, sn_error *err) {
    srv_load_model model = {0};
    generator *g = calloc(1, sizeof *g);
    if (!g) return sni_fail_memory(err);
    g->options = options;
    g->epoll = -1;
    sni_arena_init(&model.arena, (size_t)1 << 31);
    sn_status status = parse_url(options->url, &g->target, err);
    g->protocol = g->target.grpc ? &srv_load_grpc : &srv_load_http;
    if (status == SN_OK) {
        status = g->target.grpc ? prepare_grpc(g, &model, err) : prepare_http(g, &model, err);
    }
    if (status == SN_OK) status = open_conns(g, err);
    if (status == SN_OK) {
        run(g);
        srv_load_print(options, &g->total);
        if (g->total.failed || !g->total.latency.count) {
            status = sni_fail(err, SN_BAD_DATA, "%llu requests failed: %s",
                              (unsigned long long)g->total.failed, g->total.error);
        }
    }
    close_conns(g);
    srv_text_free(&g->request);
    sni_arena_free(&model.arena);
    free(g);
    return status;
}
