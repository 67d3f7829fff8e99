/* serve.c - starts the server's parts in order, waits for signals, and stops them in order. */
#include "server/serve.h"
#include "server/ops/auth.h"
#include "server/engine/cache.h"
#include "server/net/h2.h"
#include "server/engine/loader.h"
#include "server/ops/log.h"
#include "server/net/net.h"
#include "server/engine/repository.h"
#include "server/api/routes.h"
#include "server/engine/scheduler.h"
#include "server/engine/state.h"
#include "server/ops/trace.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DOORS 3

static int http_routes = SRV_DOOR_HTTP, metrics_routes = SRV_DOOR_METRICS;

void srv_options_init(srv_options *options) {
    *options = (srv_options){.host = "127.0.0.1",
                             .http_port = 8000,
                             .grpc_port = -1,
                             .metrics_port = 8002,
                             .trim_seconds = 60,
                             .trace_rate = 1,
                             .drain_seconds = 30};
    srv_limits_init(&options->limits);
}

/* ---- Doors -------------------------------------------------------------------------------- */

typedef struct doors {
    srv_door items[DOORS];
    srv_door *list[DOORS];
    const char *names[DOORS];
    size_t count;
} doors;

/* Sockets that systemd opened for us begin at descriptor 3; their names say which door is which,
 * or their order does: HTTP, gRPC, metrics. -1: none for this door. */
static int inherited(const char *name, int position) {
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS"),
               *names = getenv("LISTEN_FDNAMES");
    uint64_t number, fds;
    if (!pid || !count || !srv_parse_uint(sni_str_of(pid), INT32_MAX, &number) ||
        number != (uint64_t)getpid() || !srv_parse_uint(sni_str_of(count), 16, &fds)) {
        return -1;
    }
    int fd = 3;
    for (const char *at = names; at && *at; fd++) {
        size_t length = strcspn(at, ":");
        if (length == strlen(name) && memcmp(at, name, length) == 0) return fd;
        at += length + (at[length] == ':' ? 1 : 0);
    }
    bool named = names && (strstr(names, "http") || strstr(names, "grpc"));
    return !named && position < (int)fds ? 3 + position : -1;
}

static sn_status add_door(doors *d, const srv_options *options, const char *name, int port,
                          const srv_protocol *protocol, void *ctx, srv_tls *tls, sn_error *err) {
    static const char *const order[] = {"http", "grpc", "metrics"};
    int position = 0;
    while (strcmp(order[position], name) != 0) position++;
    int fd = inherited(name, position);
    if (port < 0 && fd < 0) return SN_OK;
    srv_door *door = &d->items[d->count];
    *door = (srv_door){.fd = -1, .protocol = protocol, .ctx = ctx, .tls = tls};
    if (fd >= 0) {
        SN_TRY(srv_door_adopt(door, fd, err));
    } else {
        SN_TRY(srv_door_open(door, options->host, port, err));
    }
    d->names[d->count] = name;
    d->list[d->count++] = door;
    return SN_OK;
}

static void close_doors(doors *d) {
    for (size_t i = 0; i < d->count; i++) close(d->items[i].fd);
    d->count = 0;
}

static void announce(const doors *d, const srv_options *options) {
    for (size_t i = 0; i < d->count; i++) {
        bool six = strchr(options->host, ':') != NULL;
        printf("%s %s://%s%s%s:%d\n", d->names[i], d->items[i].tls ? "https" : "http",
               six ? "[" : "", options->host, six ? "]" : "", d->items[i].port);
    }
    fflush(stdout);
}

/* ---- Stopping ----------------------------------------------------------------------------- */

/* Waits until every connection has been answered, for `seconds` at most. */
static void drain(double seconds) {
    uint64_t end = srv_now_ns() + (uint64_t)(seconds * 1e9);
    srv_net_drain();
    while (srv_now_ns() < end && (srv_net_connections() > 0 || srv_scheduler_load() > 0)) {
        usleep(10000);
    }
    char left[24];
    snprintf(left, sizeof left, "%d", srv_net_connections());
    srv_log(SRV_LOG_INFO, "stopped", "connections_cut", left, NULL);
}

/* Ends every part; requests whose connections are cut are cancelled and come back first. */
static void stop_parts(void) {
    srv_net_cut();
    srv_loader_stop();
    while (srv_net_connections() > 0 || srv_scheduler_load() > 0) usleep(1000);
    srv_net_stop();
    srv_scheduler_stop();
    srv_cache_clear();
    srv_repository_close();
}

static void wait_for_end(const sigset_t *signals, srv_tls *tls) {
    for (;;) {
        int number = sigwaitinfo(signals, NULL);
        if (number == SIGTERM || number == SIGINT) return;
        if (number != SIGHUP) continue;
        srv_loader_rescan();
        sn_error err = {0};
        if (tls && srv_tls_reload(tls, &err) != SN_OK) {
            srv_log(SRV_LOG_ERROR, "the certificate could not be renewed", "reason", err.message,
                    NULL);
        }
    }
}

/* ---- The whole ---------------------------------------------------------------------------- */

static sn_status prepare(const srv_options *options, srv_tls **tls, sn_error *err) {
    srv_log_settings logs = {.error = true,
                             .warning = true,
                             .info = !options->quiet,
                             .verbose = options->log_verbose,
                             .json = options->log_json};
    srv_log_set(&logs);
    srv_limits_set(&options->limits);
    /* memory of large tensors is kept for the next request instead of going back to the system */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    if (options->admin) srv_auth_enable_admin();
    for (size_t i = 0; i < options->auth_count; i++) SN_TRY(srv_auth_add(options->auth[i], err));
    if (options->trace_file) {
        SN_TRY(srv_trace_open(options->trace_file, err));
        srv_trace_settings traces = {.on = true, .rate = options->trace_rate, .count = -1};
        srv_trace_set(&traces);
    }
    if (!options->tls_certificate) return SN_OK;
    return srv_tls_load(options->tls_certificate, options->tls_key, options->tls_client_ca, tls,
                        err);
}

static sn_status open_doors(doors *d, const srv_options *options, srv_tls *tls, sn_error *err) {
    SN_TRY(add_door(d, options, "http", options->http_port, &srv_http_protocol, &http_routes, tls,
                    err));
    SN_TRY(add_door(d, options, "metrics", options->metrics_port, &srv_http_protocol,
                    &metrics_routes, tls, err));
#ifdef SINTER_HAVE_NGHTTP2
    SN_TRY(add_door(d, options, "grpc", options->grpc_port, &srv_h2_protocol, NULL, tls, err));
#else
    if (options->grpc_port >= 0) {
        return sni_fail(err, SN_UNSUPPORTED, "this build has no gRPC: it needs nghttp2");
    }
#endif
    if (d->count == 0) return sni_fail(err, SN_INVALID_ARGUMENT, "there is no port to listen on");
    return SN_OK;
}

static sn_status run(const srv_options *options, doors *d, srv_tls *tls, sn_error *err) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    SN_TRY(srv_scheduler_start(options->threads, err));
    int loops = options->io_threads;
    if (loops <= 0) loops = srv_scheduler_threads() < 4 ? srv_scheduler_threads() : 4;
    sn_status status = srv_net_start(d->list, d->count, loops, err);
    if (status == SN_OK) {
        announce(d, options);
        srv_repository_options repository = {.path = options->repository,
                                             .startup = options->models,
                                             .startup_count = options->model_count,
                                             .explicit_only = options->explicit_only};
        status = srv_repository_open(&repository, err);
    }
    if (status == SN_OK) {
        status = srv_loader_start((uint64_t)(options->poll_seconds * 1e9),
                                  (uint64_t)(options->trim_seconds * 1e9), err);
    }
    if (status == SN_OK) {
        srv_state_set_loaded();
        srv_log(SRV_LOG_INFO, "ready", NULL);
        wait_for_end(&signals, tls);
        srv_state_set_stopping();
        drain(options->drain_seconds);
    }
    stop_parts();
    return status;
}

sn_status srv_serve(const srv_options *options, sn_error *err) {
    srv_tls *tls = NULL;
    doors d = {.count = 0};
    sn_status status = prepare(options, &tls, err);
    if (status == SN_OK) status = open_doors(&d, options, tls, err);
    if (status == SN_OK) status = run(options, &d, tls, err);
    close_doors(&d);
    srv_tls_free(tls);
    srv_trace_close();
    return status;
}
