/* test_server_pair.c - two servers side by side in one process: nothing of one is seen in the
 * other, and each stops by itself. */
#include "unit.h"

#include "server/server.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* What differs between the two: y = x * factor. */
typedef struct side {
    const char *model;
    double factor;
    char folder[64], path[128], tokens[128];
    srv_server *server;
} side;

static side left = {.model = "twice", .factor = 2}, right = {.model = "thrice", .factor = 3};

/* ---- A repository of one model ------------------------------------------------------------- */

static int to_file(void *ctx, const void *bytes, size_t size) {
    return fwrite(bytes, 1, size, ctx) == size ? 0 : 1;
}

static void write_model(side *s) {
    char text[300];
    sn_model *model;
    sn_error err;
    snprintf(text, sizeof text,
             "<ir_version: 8, opset_import: [\"\" : 18]>\n"
             "m (float[N,2] x) => (float[N,2] y)\n"
             "<float k = {%g}> { y = Mul(x, k) }",
             s->factor);
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK) fail_msg("%s", err.message);
    FILE *file = fopen(s->path, "w");
    assert_non_null(file);
    assert_int_equal(sn_model_write(model, SN_FORMAT_ONNX, to_file, file, &err), SN_OK);
    fclose(file);
    sn_model_destroy(model);
}

static void make_repository(side *s) {
    char path[128];
    strcpy(s->folder, "/tmp/sinter-pair-XXXXXX");
    assert_non_null(mkdtemp(s->folder));
    snprintf(path, sizeof path, "%s/%s", s->folder, s->model);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/%s/1", s->folder, s->model);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(s->path, sizeof s->path, "%s/%s/1/model.onnx", s->folder, s->model);
    write_model(s);
    snprintf(s->tokens, sizeof s->tokens, "%s/tokens", s->folder);
    FILE *file = fopen(s->tokens, "w");
    assert_non_null(file);
    fprintf(file, "token-of-%s\n", s->model);
    fclose(file);
}

static void remove_repository(side *s) {
    char path[128];
    unlink(s->path);
    unlink(s->tokens);
    snprintf(path, sizeof path, "%s/%s/1", s->folder, s->model);
    rmdir(path);
    snprintf(path, sizeof path, "%s/%s", s->folder, s->model);
    rmdir(path);
    assert_int_equal(rmdir(s->folder), 0);
}

/* ---- A client ------------------------------------------------------------------------------ */

static int connect_to(const side *s) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)s->server->listeners[0].port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* Sends a request and keeps the answer, its body behind the head; returns the status. */
static int ask(const side *s, const char *method, const char *path, const char *headers,
               const char *body, char *answer, size_t size) {
    char text[2048];
    size_t got = 0;
    int fd = connect_to(s), status = 0;
    int length =
        snprintf(text, sizeof text,
                 "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%sContent-Length: "
                 "%zu\r\n\r\n%s",
                 method, path, headers, strlen(body), body);
    assert_true(length > 0 && (size_t)length < sizeof text);
    assert_int_equal(send(fd, text, (size_t)length, MSG_NOSIGNAL), length);
    for (ssize_t n; (n = recv(fd, answer + got, size - 1 - got, 0)) > 0;) got += (size_t)n;
    answer[got] = 0;
    close(fd);
    assert_int_equal(sscanf(answer, "HTTP/1.1 %d", &status), 1);
    return status;
}

static int get(const side *s, const char *path) {
    char answer[4096];
    return ask(s, "GET", path, "", "", answer, sizeof answer);
}

/* Infers with the model of `s` and checks the numbers. */
static void infer(const side *s) {
    char path[80], answer[4096], want[64], token[80];
    snprintf(path, sizeof path, "/v2/models/%s/infer", s->model);
    snprintf(token, sizeof token, "Authorization: Bearer token-of-%s\r\n", s->model);
    snprintf(want, sizeof want, "\"data\":[%.1f,%.1f]", 5 * s->factor, 7 * s->factor);
    int status = ask(s, "POST", path, token,
                     "{\"inputs\":[{\"name\":\"x\",\"shape\":[1,2],\"datatype\":\"FP32\","
                     "\"data\":[5,7]}]}",
                     answer, sizeof answer);
    if (status != 200 || !strstr(answer, want)) fail_msg("%d, %s", status, answer);
}

/* ---- The tests ----------------------------------------------------------------------------- */

static void start(side *s) {
    srv_options options;
    char rule[160];
    sn_error err;
    srv_options_init(&options);
    options.repository = s->folder;
    options.http_port = 0;
    options.metrics_port = 0;
    options.threads = options.io_threads = 2;
    options.quiet = true;
    options.admin = s == &left;
    snprintf(rule, sizeof rule, "infer,metrics=%s", s->tokens);
    options.auth[options.auth_count++] = rule; /* read while the server is made */
    if (s == &right) options.limits.header = 1024;
    if (srv_server_create(&options, &s->server, &err) != SN_OK) fail_msg("%s", err.message);
    assert_false(srv_server_ready(s->server));
    if (srv_server_listen(s->server, &err) != SN_OK) fail_msg("%s", err.message);
    if (srv_server_load(s->server, &err) != SN_OK) fail_msg("%s", err.message);
    srv_server_wait(s->server);
    assert_true(srv_server_ready(s->server));
}

static void stop(side *s) {
    srv_server_drain(s->server, 10);
    assert_int_equal(srv_net_connections(s->server->net), 0);
    assert_int_equal(srv_budget_used(&s->server->budget), 0);
    srv_server_destroy(s->server);
    s->server = NULL;
}

static int setup(void **state) {
    (void)state;
    make_repository(&left);
    make_repository(&right);
    start(&left);
    start(&right);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    if (left.server) stop(&left);
    if (right.server) stop(&right);
    remove_repository(&left);
    remove_repository(&right);
    return 0;
}

static void each_has_its_own_model(void **state) {
    (void)state;
    for (int i = 0; i < 20; i++) {
        infer(&left);
        infer(&right);
    }
    assert_int_equal(get(&left, "/v2/models/twice/ready"), 200);
    assert_int_equal(get(&left, "/v2/models/thrice/ready"), 404);
    assert_int_equal(get(&right, "/v2/models/twice/ready"), 404);
    assert_int_equal(get(&right, "/v2/models/thrice/ready"), 200);
}

/* A counter of requests that went well, by the server's own account. */
static int served(const side *s) {
    char answer[16384], path[80];
    int count = -1;
    snprintf(path, sizeof path, "/v2/models/%s/stats", s->model);
    assert_int_equal(ask(s, "GET", path, "", "", answer, sizeof answer), 200);
    const char *at = strstr(answer, "\"success\":{\"count\":");
    assert_true(at && sscanf(at, "\"success\":{\"count\":%d", &count) == 1);
    return count;
}

static void each_counts_for_itself(void **state) {
    (void)state;
    for (int i = 0; i < 5; i++) infer(&left);
    infer(&right);
    assert_int_equal(served(&left), 5);
    assert_int_equal(served(&right), 1);
}

static void each_has_its_own_rules(void **state) {
    (void)state;
    char answer[4096], header[1400];
    const char *wrong = "Authorization: Bearer token-of-thrice\r\n";
    /* tokens */
    assert_int_equal(
        ask(&left, "POST", "/v2/models/twice/infer", wrong, "{}", answer, sizeof answer), 401);
    assert_int_equal(
        ask(&right, "POST", "/v2/models/thrice/infer", wrong, "{}", answer, sizeof answer), 400);
    /* groups of endpoints */
    assert_int_equal(get(&left, "/v2/logging"), 200);
    assert_int_equal(get(&right, "/v2/logging"), 403);
    /* limits */
    snprintf(header, sizeof header, "X-Long: %01200d\r\n", 0);
    assert_int_equal(ask(&left, "GET", "/v2", header, "", answer, sizeof answer), 200);
    assert_int_equal(ask(&right, "GET", "/v2", header, "", answer, sizeof answer), 431);
    /* settings that change while they serve */
    assert_int_equal(
        ask(&left, "POST", "/v2/logging", "", "{\"log_verbose_level\":3}", answer, sizeof answer),
        200);
    assert_int_equal(srv_log_get(&left.server->log).verbose, 3);
    assert_int_equal(srv_log_get(&right.server->log).verbose, 0);
}

static void one_stops_while_the_other_serves(void **state) {
    (void)state;
    int idle = connect_to(&left); /* a connection that says nothing is closed */
    infer(&left);
    infer(&right);
    stop(&left);
    char byte;
    assert_int_equal(recv(idle, &byte, 1, 0), 0);
    close(idle);
    assert_true(srv_server_ready(right.server));
    for (int i = 0; i < 20; i++) infer(&right);
    start(&left); /* and begins again */
    infer(&left);
    infer(&right);
    stop(&right);
    infer(&left);
}

/* A server can be given up at any point of its start. */
static void unfinished_servers_are_freed(void **state) {
    (void)state;
    srv_options options;
    srv_server *server;
    sn_error err = {0};
    srv_options_init(&options);
    options.http_port = 0;
    options.metrics_port = -1;
    options.quiet = true;
    options.repository = left.folder;
    assert_int_equal(srv_server_create(&options, &server, &err), SN_OK);
    srv_server_destroy(server);
    assert_int_equal(srv_server_create(&options, &server, &err), SN_OK);
    assert_int_equal(srv_server_listen(server, &err), SN_OK);
    srv_server_destroy(server);
    options.repository = "/no/such/folder";
    assert_int_equal(srv_server_create(&options, &server, &err), SN_OK);
    assert_int_equal(srv_server_listen(server, &err), SN_OK);
    assert_int_equal(srv_server_load(server, &err), SN_NOT_FOUND);
    assert_false(srv_server_ready(server));
    srv_server_destroy(server);
    options.http_port = left.server->listeners[0].port; /* taken */
    assert_int_equal(srv_server_create(&options, &server, &err), SN_IO);
    options.http_port = -1;
    assert_int_equal(srv_server_create(&options, &server, &err), SN_INVALID_ARGUMENT);
    srv_server_destroy(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_has_its_own_model, setup, teardown),
        cmocka_unit_test_setup_teardown(each_counts_for_itself, setup, teardown),
        cmocka_unit_test_setup_teardown(each_has_its_own_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(one_stops_while_the_other_serves, setup, teardown),
        cmocka_unit_test_setup_teardown(unfinished_servers_are_freed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
