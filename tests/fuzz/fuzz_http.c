/* fuzz_http.c - any bytes on a connection of a running server: heads, bodies, chunks, requests.
 *
 * The first byte says in how many pieces the rest is sent. The server runs in this process, with
 * the demonstration's model; nothing of it may crash, leak or hang, whatever comes. */
#include "server/server.h"

#include "server/api/routes.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_size = sizeof address;

/* A server with all routes on a socket without a name in the file system. */
static bool start(void) {
    srv_options options;
    srv_server *server;
    sn_error err;
    srv_options_init(&options);
    options.repository = SINTER_SOURCE_DIR "/demo/digits.onnx";
    options.quiet = true;
    options.limits.body = 1 << 20;
    options.threads = options.io_threads = 1;
    options.metrics_port = -1;
    options.http_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    if (bind(options.http_fd, (struct sockaddr *)&any, sizeof(sa_family_t)) != 0 ||
        listen(options.http_fd, 64) != 0 ||
        getsockname(options.http_fd, (struct sockaddr *)&address, &address_size) != 0 ||
        srv_server_create(&options, &server, &err) != SN_OK) {
        return false;
    }
    server->listeners[0].routes = SRV_ROUTES_MAIN | SRV_ROUTES_METRICS;
    if (srv_server_listen(server, &err) != SN_OK || srv_server_load(server, &err) != SN_OK) {
        return false;
    }
    srv_server_wait(server);
    return true;
}

/* Reads what comes for a moment; false at the end of the connection. */
static bool listen_to(int fd, int milliseconds) {
    char scratch[65536];
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (poll(&ready, 1, milliseconds) > 0) {
        if (recv(fd, scratch, sizeof scratch, 0) <= 0) return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int started;
    if (!started) started = start() ? 1 : -1;
    if (started < 0 || size < 2) return 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return 0;
    if (connect(fd, (struct sockaddr *)&address, address_size) == 0) {
        size_t pieces = data[0] % 4 + 1, at = 1;
        for (size_t i = 1; i <= pieces; i++) {
            size_t end = 1 + (size - 1) * i / pieces;
            if (send(fd, data + at, end - at, MSG_NOSIGNAL) < 0) break;
            at = end;
            if (i < pieces && !listen_to(fd, 0)) break;
        }
        shutdown(fd, SHUT_WR);
        listen_to(fd, 50);
    }
    close(fd);
    return 0;
}
