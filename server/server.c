/* server.c - one server as an object: makes its parts in order and stops them in order. */
#include "server/server.h"

#include "server/api/routes.h"
#include "server/engine/cache.h"
#include "server/engine/loader.h"
#include "server/engine/repository.h"
#include "server/engine/scheduler.h"
#include "server/net/h2.h"
#include "server/net/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_IO_THREADS 4 /* unless the options say how many */

void srv_options_init(srv_options *options) {
    *options = (srv_options){.host = "127.0.0.1",
                             .http_port = 8000,
                             .grpc_port = -1,
                             .metrics_port = 8002,
                             .http_fd = -1,
                             .grpc_fd = -1,
                             .metrics_fd = -1,
                             .trim_seconds = 60,
                             .trace_rate = 1,
                             .drain_seconds = 30};
    srv_limits_init(&options->limits);
}

/* ---- Making ------------------------------------------------------------------------------- */

/* `wanted` says what is served there; it is left out without a port and a socket. */
static sn_status add_listener(srv_server *server, srv_listener wanted, int port, int fd,
                              sn_error *err) {
    if (port < 0 && fd < 0) return SN_OK;
    srv_listener *listener = &server->listeners[server->listener_count];
    *listener = wanted;
    listener->fd = -1;
    listener->server = server;
    listener->tls = server->tls;
    if (fd >= 0) {
        SN_TRY(srv_listener_adopt(listener, fd, err));
    } else {
        SN_TRY(srv_listener_open(listener, server->options.host, port, err));
    }
    server->listener_count++;
    return SN_OK;
}

static sn_status open_listeners(srv_server *server, sn_error *err) {
    const srv_options *o = &server->options;
    srv_listener http = {.name = "http", .protocol = &srv_http_protocol, .routes = SRV_ROUTES_MAIN};
    srv_listener metrics = {
        .name = "metrics", .protocol = &srv_http_protocol, .routes = SRV_ROUTES_METRICS};
    SN_TRY(add_listener(server, http, o->http_port, o->http_fd, err));
    SN_TRY(add_listener(server, metrics, o->metrics_port, o->metrics_fd, err));
#ifdef SINTER_HAVE_NGHTTP2
    srv_listener grpc = {.name = "grpc", .protocol = &srv_h2_protocol};
    SN_TRY(add_listener(server, grpc, o->grpc_port, o->grpc_fd, err));
#else
    if (o->grpc_port >= 0) {
        return sni_fail(err, SN_UNSUPPORTED, "this build has no gRPC: it needs nghttp2");
    }
#endif
    if (server->listener_count == 0) {
        return sni_fail(err, SN_INVALID_ARGUMENT, "there is no port to listen on");
    }
    return SN_OK;
}

static bool is_loopback(const char *address) {
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

static sn_status apply_options(srv_server *server, sn_error *err) {
    const srv_options *o = &server->options;
    server->auth.admin = o->admin;
    server->sites = (srv_sites){.names = server->options.hosts,
                                .count = o->host_count,
                                .loopback = o->http_fd < 0 && is_loopback(o->host)};
    for (size_t i = 0; i < o->auth_count; i++) {
        SN_TRY(srv_auth_add(&server->auth, o->auth[i], err));
    }
    if (o->trace_file) {
        SN_TRY(srv_trace_open(&server->trace, o->trace_file, err));
        srv_trace_settings traces = {.on = true, .rate = o->trace_rate, .count = -1};
        srv_trace_set(&server->trace, &traces);
    }
    if (!o->tls_certificate) return SN_OK;
    return srv_tls_load(o->tls_certificate, o->tls_key, o->tls_client_ca, &server->tls, err);
}

sn_status srv_server_create(const srv_options *options, srv_server **out, sn_error *err) {
    srv_server *server = calloc(1, sizeof *server);
    if (!server) return sni_fail_memory(err);
    server->options = *options;
    server->limits = options->limits;
    srv_log_settings logs = {.error = true,
                             .warning = true,
                             .info = !options->quiet,
                             .verbose = options->log_verbose,
                             .json = options->log_json};
    srv_logger_init(&server->log, &logs);
    srv_budget_init(&server->budget, options->limits.memory);
    srv_buffers_init(&server->buffers);
    srv_trace_init(&server->trace);
    srv_state_init(&server->state);
    atomic_init(&server->loads, 0);
    server->scheduler = srv_scheduler_create(server);
    server->cache = srv_cache_create(options->limits.cache);
    server->repository = srv_repository_create(server);
    server->loader = srv_loader_create(server);
    sn_status status = apply_options(server, err);
    if (!server->scheduler || !server->cache || !server->repository || !server->loader) {
        status = sni_fail_memory(err);
    }
    if (status == SN_OK) status = open_listeners(server, err);
    if (status != SN_OK) {
        srv_server_destroy(server);
        return status;
    }
    *out = server;
    return SN_OK;
}

/* ---- Serving ------------------------------------------------------------------------------ */

sn_status srv_server_listen(srv_server *server, sn_error *err) {
    SN_TRY(srv_scheduler_start(server->scheduler, server->options.threads, err));
    int loops = server->options.io_threads, threads = srv_scheduler_threads(server->scheduler);
    if (loops <= 0) loops = threads < MAX_IO_THREADS ? threads : MAX_IO_THREADS;
    return srv_net_start(server->listeners, server->listener_count, loops, &server->net, err);
}

sn_status srv_server_load(srv_server *server, sn_error *err) {
    const srv_options *o = &server->options;
    srv_repository_options repository = {.path = o->repository,
                                         .startup = o->models,
                                         .startup_count = o->model_count,
                                         .explicit_only = o->explicit_only};
    SN_TRY(srv_repository_open(server->repository, &repository, err));
    return srv_loader_start(server->loader, (uint64_t)(o->poll_seconds * 1e9),
                            (uint64_t)(o->trim_seconds * 1e9), err);
}

void srv_server_wait(const srv_server *server) {
    while (!srv_state_loaded(&server->state)) usleep(1000);
}

bool srv_server_ready(const srv_server *server) {
    return srv_state_loaded(&server->state) && !srv_state_stopping(&server->state) &&
           srv_repository_ready(server->repository);
}

void srv_server_reload(srv_server *server) {
    srv_loader_rescan(server->loader);
    sn_error err = {0};
    if (server->tls && srv_tls_reload(server->tls, &err) != SN_OK) {
        srv_log(&server->log, SRV_LOG_ERROR, "the certificate could not be renewed", "reason",
                err.message, NULL);
    }
}

/* ---- Stopping ----------------------------------------------------------------------------- */

/* Whether a connection is open or a request waits or runs. */
static bool is_busy(const srv_server *server) {
    return srv_net_connections(server->net) > 0 || srv_scheduler_load(server->scheduler) > 0;
}

void srv_server_drain(srv_server *server, double seconds) {
    uint64_t end = srv_now_ns() + (uint64_t)(seconds * 1e9);
    srv_state_set_stopping(&server->state);
    srv_net_drain(server->net);
    while (srv_now_ns() < end && is_busy(server)) usleep(10000);
    char left[24];
    snprintf(left, sizeof left, "%d", srv_net_connections(server->net));
    srv_log(&server->log, SRV_LOG_INFO, "stopped", "connections_cut", left, NULL);
}

/* Requests whose connections are cut are cancelled and come back before the loops end. */
static void stop_net(srv_server *server) {
    if (!server->net) return;
    srv_net_cut(server->net);
    srv_loader_stop(server->loader);
    while (is_busy(server)) usleep(1000);
    srv_net_stop(server->net);
}

void srv_server_destroy(srv_server *server) {
    if (!server) return;
    stop_net(server);
    srv_scheduler_destroy(server->scheduler);
    srv_loader_destroy(server->loader);
    srv_cache_destroy(server->cache);
    srv_repository_destroy(server->repository);
    for (size_t i = 0; i < server->listener_count; i++) close(server->listeners[i].fd);
    srv_tls_free(server->tls);
    srv_state_destroy(&server->state);
    srv_trace_close(&server->trace);
    srv_auth_destroy(&server->auth);
    srv_buffers_destroy(&server->buffers);
    srv_logger_destroy(&server->log);
    free(server);
}
