/* serve.c - the server as a program: what belongs to the process (signals, stdout, sockets that
 * were inherited), around one server object. */
#include "server/serve.h"
#include "server/server.h"

#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Sockets that systemd opened for us begin at descriptor 3; their names say which listener each is
 * for, or their order does: HTTP, gRPC, metrics. -1: none for this one. */
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

static void announce(const srv_server *server) {
    const char *host = server->options.host;
    bool six = strchr(host, ':') != NULL;
    for (size_t i = 0; i < server->listener_count; i++) {
        const srv_listener *listener = &server->listeners[i];
        printf("%s %s://%s%s%s:%d\n", listener->name, listener->tls ? "https" : "http",
               six ? "[" : "", host, six ? "]" : "", listener->port);
    }
    fflush(stdout);
}

/* Signals are taken by one thread: the others, which inherit the mask, never see them. */
static sigset_t block_signals(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signals;
}

static void wait_for_end(const sigset_t *signals, srv_server *server) {
    for (;;) {
        int number = sigwaitinfo(signals, NULL);
        if (number == SIGTERM || number == SIGINT) return;
        if (number == SIGHUP) srv_server_reload(server);
    }
}

/* A kernel that does not hear must not keep the process: it ends a second from now, or at the next
 * signal. */
static void *end_process(void *signals) {
    const struct timespec second = {.tv_sec = 1};
    sigtimedwait(signals, NULL, &second);
    _exit(0);
}

static void end_soon(void) {
    static sigset_t ends;
    pthread_t thread;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    if (pthread_create(&thread, NULL, end_process, &ends) == 0) {
        pthread_detach(thread);
    } else {
        alarm(1);
    }
}

static sn_status run(srv_server *server, sn_error *err) {
    sigset_t signals = block_signals();
    SN_TRY(srv_server_listen(server, err));
    announce(server);
    SN_TRY(srv_server_load(server, err));
    wait_for_end(&signals, server);
    srv_server_drain(server, server->options.drain_seconds);
    end_soon();
    return SN_OK;
}

sn_status srv_serve(const srv_options *options, sn_error *err) {
    srv_options own = *options;
    srv_server *server;
    own.http_fd = inherited("http", 0);
    own.grpc_fd = inherited("grpc", 1);
    own.metrics_fd = inherited("metrics", 2);
    /* memory of large tensors is kept for the next request instead of going back to the system */
    mallopt(M_MMAP_THRESHOLD, 64 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    SN_TRY(srv_server_create(&own, &server, err));
    sn_status status = run(server, err);
    srv_server_destroy(server);
    return status;
}
