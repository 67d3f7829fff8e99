/* fuzz_load_client.c - any bytes as what a server answers to the load client (`sinter load`).
 *
 * Byte 0: what they are, and how they come. Over a connection the client has sent a request, reads
 * what is there, in one part or two, and meets the end of the connection. As metadata of a model
 * they become inputs, data for them and the request that would be sent. */
#include "server/load/load_client.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { HTTP, GRPC, JSON, PROTOBUF, KINDS };
enum { KEEPS_BODY = 4, TWO_PARTS = 8 };
enum { MOST = 32 << 10 }; /* fits a socket's buffer */

static void put(int fd, const uint8_t *data, size_t size) {
    while (size > 0) {
        ssize_t n = send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) return;
        data += n;
        size -= (size_t)n;
    }
}

static void answer(const srv_load_protocol *protocol, unsigned how, const uint8_t *data,
                   size_t size) {
    static const srv_target target = {.host = "127.0.0.1:8000"};
    srv_load_options options;
    srv_text request = {0};
    int ends[2];
    srv_load_options_init(&options);
    srv_load_conn *conn = calloc(1, protocol->size);
    if (!conn || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) abort();
    srv_text_adds(&request, "GET / HTTP/1.1\r\n\r\n");
    conn->fd = ends[0];
    conn->request = &request;
    conn->options = &options;
    conn->target = &target;
    conn->path = "/inference.GRPCInferenceService/ModelInfer";
    conn->keep_body = how & KEEPS_BODY;
    size_t first = how & TWO_PARTS ? size / 2 : size;
    put(ends[1], data, first);
    bool whole = protocol->open(conn) && protocol->begin(conn) && protocol->move(conn);
    put(ends[1], data + first, size - first);
    shutdown(ends[1], SHUT_WR);
    if (whole && !conn->answered) protocol->move(conn);
    if (conn->error[sizeof conn->error - 1]) abort(); /* a text always ends */
    protocol->close(conn);
    close(ends[0]);
    close(ends[1]);
    srv_text_free(&request);
    free(conn);
}

static void describe(bool json, const uint8_t *data, size_t size) {
    srv_load_model model = {0};
    srv_load_options options;
    srv_target target = {.host = "127.0.0.1:8000", .grpc = !json};
    srv_text request = {0};
    sn_error err;
    srv_load_options_init(&options);
    options.model = "m";
    options.shapes[options.shape_count++] = "x=1x2";
    options.json_tensors = json && size % 2;
    sni_arena_init(&model.arena, 1 << 20);
    char *text = srv_strndup((const char *)data, size);
    if (!text) abort();
    sn_status status = json ? srv_load_read_json(&model, text, size, &err)
                            : srv_load_read_protobuf(&model, text, size, &err);
    size_t bytes = 0;
    for (size_t i = 0; i < model.count; i++) bytes += (size_t)model.inputs[i].rank;
    if (status == SN_OK && bytes < 1024 && srv_load_fill(&model, &options, &err) == SN_OK) {
        if (json)
            srv_load_http_request(&model, &options, &target, &request, &err);
        else
            srv_load_grpc_request(&model, &options, &request, &err);
    }
    srv_text_free(&request);
    sni_arena_free(&model.arena);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0 || size > MOST) return 0;
    switch (data[0] % KINDS) {
    case HTTP:
        answer(&srv_load_http, data[0], data + 1, size - 1);
        break;
    case GRPC:
        if (srv_load_has_grpc()) answer(&srv_load_grpc, data[0], data + 1, size - 1);
        break;
    default:
        describe(data[0] % KINDS == JSON, data + 1, size - 1);
    }
    return 0;
}
