/* fuzz_grpc.c - any bytes as the messages of a gRPC call, and as frames of HTTP/2.
 *
 * Byte 0 names the method (or that the rest is sent as it is, after the preface), byte 1 says what
 * becomes of the rest (see below), byte 2 the call's timeout. The server runs in this process, with
 * the demonstration's model. Nothing may crash or leak, and a call that is whole must be
 * answered. */
#include "server/server.h"

#include "server/engine/loader.h"
#include "server/engine/repository.h"

#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef SINTER_HAVE_ZLIB
#include <zlib.h>
#endif

/* Bits of byte 1; the upper two choose the encoding that the call says its messages have. */
enum {
    PIECES = 7,   /* into how many more DATA frames the messages are cut */
    WHOLE = 8,    /* the rest is one message and gets its prefix here */
    PACKED = 16,  /* such a message is packed here, as the encoding says */
    HANGS_UP = 32 /* the client goes away without ending its side */
};
enum { HEADERS = 1, RST_STREAM = 3, GOAWAY = 7, DATA = 0, END_STREAM = 1, END_HEADERS = 4 };
enum { MOST = 32 << 10 }; /* bytes of a call: less than a stream's first window */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const methods[] = {
    "/inference.GRPCInferenceService/ModelInfer",
    "/inference.GRPCInferenceService/ModelStreamInfer",
    "/inference.GRPCInferenceService/ModelReady",
    "/inference.GRPCInferenceService/ModelMetadata",
    "/inference.GRPCInferenceService/ModelConfig",
    "/inference.GRPCInferenceService/ModelStatistics",
    "/inference.GRPCInferenceService/RepositoryIndex",
    "/inference.GRPCInferenceService/TraceSetting",
    "/inference.GRPCInferenceService/LogSettings",
    "/grpc.health.v1.Health/Check",
    "/inference.GRPCInferenceService/ServerMetadata",
    "/inference.GRPCInferenceService/RepositoryModelLoad",
    "/inference.GRPCInferenceService/RepositoryModelUnload",
    "/grpc.health.v1.Health/Watch",
};
enum { LOAD = 11, UNLOAD = 12, WATCH = 13, METHODS = 14 };

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_size = sizeof address;
static srv_server *server;

/* A server with all methods on a socket without a name in the file system. */
static bool start(void) {
    srv_options options;
    sn_error err;
    srv_options_init(&options);
    options.repository = SINTER_SOURCE_DIR "/demo/digits.onnx";
    options.quiet = true;
    options.limits.body = 1 << 20;
    options.admin = true;
    options.threads = options.io_threads = 1;
    options.trim_seconds = 0;
    options.http_port = options.metrics_port = -1;
    options.grpc_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un any = {.sun_family = AF_UNIX};
    bool ok = bind(options.grpc_fd, (struct sockaddr *)&any, sizeof(sa_family_t)) == 0 &&
              listen(options.grpc_fd, 64) == 0 &&
              getsockname(options.grpc_fd, (struct sockaddr *)&address, &address_size) == 0 &&
              srv_server_create(&options, &server, &err) == SN_OK &&
              srv_server_listen(server, &err) == SN_OK && srv_server_load(server, &err) == SN_OK;
    if (ok) srv_server_wait(server);
    return ok;
}

/* ---- The model as it was, after inputs that load and unload it ----------------------------- */

typedef struct restoring {
    srv_job job;
    sem_t done;
} restoring;

static void restore_run(srv_job *job) {
    char why[600];
    (void)job;
    srv_repository_load(server->repository, sni_str_of("digits"), NULL, why, sizeof why);
}

static void restore_done(srv_job *job) {
    sem_post(&((restoring *)job)->done);
}

static void restore_overdue(srv_job *job) {
    (void)job;
}

static void restore(void) {
    restoring work = {.job = {.key = "digits",
                              .run = restore_run,
                              .done = restore_done,
                              .drop = restore_done,
                              .overdue = restore_overdue}};
    sem_init(&work.done, 0, 0);
    srv_loader_post(server->loader, &work.job);
    while (sem_wait(&work.done) != 0) {
    }
    sem_destroy(&work.done);
}

/* ---- The client ---------------------------------------------------------------------------- */

static void add_frame(srv_text *out, int type, int flags, int stream, const void *bytes,
                      size_t size) {
    unsigned char head[9] = {(unsigned char)(size >> 16),
                             (unsigned char)(size >> 8),
                             (unsigned char)size,
                             (unsigned char)type,
                             (unsigned char)flags,
                             0,
                             0,
                             0,
                             (unsigned char)stream};
    srv_text_add(out, head, sizeof head);
    if (size) srv_text_add(out, bytes, size);
}

/* A header that is not to be remembered; `index` is its name's in HPACK's table, or 0. */
static void add_header(srv_text *out, int index, const char *name, const char *value) {
    unsigned char byte = (unsigned char)index, length = (unsigned char)strlen(name);
    srv_text_add(out, &byte, 1);
    if (!index) {
        srv_text_add(out, &length, 1);
        srv_text_add(out, name, length);
    }
    length = (unsigned char)strlen(value);
    srv_text_add(out, &length, 1);
    srv_text_add(out, value, length);
}

static void add_headers(srv_text *out, const char *path, const char *encoding,
                        const char *timeout) {
    srv_text block = {0};
    srv_text_add(&block, "\x83\x86", 2); /* :method POST, :scheme http */
    add_header(&block, 4, ":path", path);
    add_header(&block, 1, ":authority", "a");
    add_header(&block, 0, "content-type", "application/grpc");
    add_header(&block, 0, "te", "trailers");
    if (encoding[0]) add_header(&block, 0, "grpc-encoding", encoding);
    if (timeout[0]) add_header(&block, 0, "grpc-timeout", timeout);
    add_frame(out, HEADERS, END_HEADERS, 1, block.data, block.length);
    srv_text_free(&block);
}

/* A message with its prefix. */
static void add_message(srv_text *out, const uint8_t *data, size_t size, const char *encoding) {
    uint8_t prefix[5] = {0};
    const uint8_t *bytes = data;
#ifdef SINTER_HAVE_ZLIB
    static uint8_t packed[2 * MOST];
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)data,
                       .avail_in = (uInt)size,
                       .next_out = packed,
                       .avail_out = sizeof packed};
    int window = strcmp(encoding, "gzip") == 0 ? 31 : 15;
    if (encoding[0] && deflateInit2(&stream, 1, Z_DEFLATED, window, 8, 0) == Z_OK) {
        deflate(&stream, Z_FINISH);
        bytes = packed;
        size = stream.total_out;
        prefix[0] = 1;
        deflateEnd(&stream);
    }
#else
    (void)encoding;
#endif
    for (int i = 0; i < 4; i++) prefix[1 + i] = (uint8_t)(size >> (24 - 8 * i));
    srv_text_add(out, prefix, sizeof prefix);
    if (size) srv_text_add(out, bytes, size);
}

static void add_call(srv_text *out, const uint8_t *data, size_t size) {
    static const char *const encodings[] = {"", "gzip", "deflate", "br"};
    static const char *const timeouts[] = {"", "1n", "9S", "99999999H", "x"};
    const char *encoding = encodings[data[1] >> 6];
    size_t pieces = (size_t)(data[1] & PIECES) + 1, at = 0;
    srv_text body = {0};
    add_headers(out, methods[data[0] % (METHODS + 1)], encoding, timeouts[data[2] % 5]);
    if (data[1] & WHOLE) {
        add_message(&body, data + 3, size - 3, data[1] & PACKED ? encoding : "");
    } else if (size > 3) {
        srv_text_add(&body, data + 3, size - 3);
    }
    for (size_t i = 1; i <= pieces; i++) {
        size_t end = body.length * i / pieces;
        bool last = i == pieces && !(data[1] & HANGS_UP);
        for (size_t take; at < end || (last && at == end); at += take) { /* frames of 16 KiB */
            take = end - at < 16384 ? end - at : 16384;
            bool ends = last && at + take == end;
            add_frame(out, DATA, ends ? END_STREAM : 0, 1, body.data ? body.data + at : NULL, take);
            if (ends) break;
        }
        at = end;
    }
    srv_text_free(&body);
}

/* Reads frames until the call is over; false when nothing more comes. */
static bool listen_to(int fd, int rounds) {
    uint8_t buffer[32 << 10];
    size_t filled = 0, skip = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    for (; rounds > 0; rounds--) {
        if (poll(&ready, 1, 100) <= 0) continue;
        ssize_t got = recv(fd, buffer + filled, sizeof buffer - filled, 0);
        if (got <= 0) return true; /* the server has hung up */
        filled += (size_t)got;
        size_t at = 0;
        while (at < filled) {
            size_t pass = skip < filled - at ? skip : filled - at;
            skip -= pass;
            at += pass;
            if (skip || filled - at < 9) break;
            const uint8_t *head = buffer + at;
            if ((head[3] == HEADERS && (head[4] & END_STREAM)) || head[3] == RST_STREAM ||
                head[3] == GOAWAY) {
                return true;
            }
            skip = 9 + ((size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2]);
        }
        memmove(buffer, buffer + at, filled - at);
        filled -= at;
    }
    return false;
}

static void talk(const srv_text *out, bool waits) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    if (connect(fd, (struct sockaddr *)&address, address_size) == 0) {
        send(fd, out->data, out->length, MSG_NOSIGNAL);
        if (!waits) shutdown(fd, SHUT_WR);
        if (!listen_to(fd, waits ? 150 : 1) && waits) {
            fprintf(stderr, "the call is not answered\n");
            abort();
        }
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int started;
    if (!started) started = start() ? 1 : -1;
    if (started < 0 || size < 3 || size > MOST) return 0;
    static const srv_log_settings silent;
    srv_text out = {0};
    int method = data[0] % (METHODS + 1);
    srv_log_set(&server->log, &silent);
    srv_text_add(&out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    if (method == METHODS) {
        srv_text_add(&out, data + 1, size - 1);
    } else {
        add_frame(&out, 4, 0, 0, NULL, 0);
        add_call(&out, data, size);
    }
    talk(&out, method < WATCH && !(data[1] & HANGS_UP));
    if (method == LOAD || method == UNLOAD) restore();
    srv_text_free(&out);
    return 0;
}
