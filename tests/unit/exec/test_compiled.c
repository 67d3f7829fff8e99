/* test_compiled.c - compiled models: same results, shared pages, damage and misfits refused. */
#include "unit.h"

#include "base/cpu.h"
#include "exec/compiled_format.h"
#include "sinter.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 192 };

typedef struct buffer {
    unsigned char *data;
    size_t size;
} buffer;

static int add(void *ctx, const void *bytes, size_t size) {
    buffer *b = ctx;
    b->data = realloc(b->data, b->size + size);
    memcpy(b->data + b->size, bytes, size);
    b->size += size;
    return 0;
}

/* A product with a weight, in a branch too, and a convolution. */
static sn_model *make_model(void) {
    static char text[WIDTH * WIDTH * 8 + 2048];
    char *at = text;
    at += sprintf(at,
                  "<ir_version: 8, opset_import: [\"\": 17]>\n"
                  "g (float[N,%d] X, bool C) => (float[N,%d] Y) <float[%d,%d] W = {",
                  WIDTH, WIDTH, WIDTH, WIDTH);
    for (int i = 0; i < WIDTH * WIDTH; i++)
        at += sprintf(at, "%s%d", i ? "," : "", (i * 7) % 19 - 9);
    sprintf(at,
            "}> {\n  a = MatMul(X, W)\n  b = Relu(a)\n  Y = If (C) <\n"
            "    then_branch = yes () => (float[N,%d] p) { p = MatMul(b, W) },\n"
            "    else_branch = no () => (float[N,%d] q) { q = Neg(b) }\n  >\n}\n",
            WIDTH, WIDTH);
    sn_model *model;
    sn_error err = {0};
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK) fail_msg("%s", err.message);
    return model;
}

static sn_status run(sn_session *s, bool branch, float *result, sn_error *err) {
    float x[2 * WIDTH];
    for (int i = 0; i < 2 * WIDTH; i++) x[i] = (float)(i % 5) - 2;
    sn_binding in[2] = {{0}}, out = {0};
    assert_int_equal(
        sn_tensor_wrap(SN_FLOAT32, 2, (int64_t[]){2, WIDTH}, x, sizeof x, &in[0].value, NULL),
        SN_OK);
    assert_int_equal(sn_tensor_wrap(SN_BOOL, 0, NULL, &branch, 1, &in[1].value, NULL), SN_OK);
    sn_status status = sn_session_run(s, NULL, in, 2, &out, 1, err);
    if (status == SN_OK) memcpy(result, sn_tensor_const_data(out.value), sizeof x);
    sn_value_destroy(in[0].value);
    sn_value_destroy(in[1].value);
    sn_value_destroy(out.value);
    return status;
}

static float expected[2][2 * WIDTH];

static buffer compile(void) {
    buffer b = {0};
    sn_error err = {0};
    sn_session *session;
    sn_model *model = make_model();
    assert_int_equal(sn_session_create(model, NULL, &session, &err), SN_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(run(session, i, expected[i], &err), SN_OK);
    if (sn_session_compile(session, add, &b, &err) != SN_OK) fail_msg("%s", err.message);
    sn_session_destroy(session);
    sn_model_destroy(model);
    return b;
}

/* Loads and runs; on success the results must be right unless the weights may be damaged. */
static sn_status try_out(const buffer *b, const sn_load_options *options, bool exact) {
    sn_model *model;
    sn_session *session = NULL;
    sn_error err = {0};
    float got[2 * WIDTH];
    sn_status status = sn_model_load_memory(b->data, b->size, options, &model, &err);
    if (status != SN_OK) {
        assert_true(err.message[0] != 0);
        return status;
    }
    status = sn_session_create(model, NULL, &session, &err);
    for (int i = 0; i < 2 && status == SN_OK; i++) {
        status = run(session, i, got, &err);
        if (status == SN_OK && exact) assert_memory_equal(got, expected[i], sizeof got);
    }
    sn_session_destroy(session);
    sn_model_destroy(model);
    return status;
}

static void same_results(void **state) {
    (void)state;
    buffer b = compile();
    sn_load_options o;
    sn_load_options_init(&o, sizeof o);
    assert_int_equal(try_out(&b, NULL, true), SN_OK);
    o.verify = true;
    assert_int_equal(try_out(&b, &o, true), SN_OK);
    free(b.data);
}

static void damage_is_refused(void **state) {
    (void)state;
    buffer b = compile();
    sn_load_options o;
    sn_load_options_init(&o, sizeof o);
    o.verify = true;
    uint64_t seed = 3;
    for (int i = 0; i < 300; i++) { /* any byte: with all checksums nothing goes unnoticed */
        size_t at = i < 200 ? (size_t)i : unit_random(&seed) % b.size;
        unsigned char old = b.data[at];
        b.data[at] ^= (unsigned char)(1 + unit_random(&seed) % 255);
        sn_status status = try_out(&b, &o, true);
        if (status == SN_OK) assert_true(old == 0); /* what fills the space between sections */
        try_out(&b, NULL, false);
        b.data[at] = old;
    }
    for (size_t size = 0; size < b.size; size += size < 1000 ? 37 : b.size / 50) {
        buffer cut = {.data = b.data, .size = size};
        assert_int_not_equal(try_out(&cut, NULL, true), SN_OK);
    }
    free(b.data);
}

static void set_sum(unsigned char *header, size_t at) {
    uint64_t sum = 0;
    for (size_t i = 0; i < at; i += 8) {
        uint64_t word;
        memcpy(&word, header + i, 8);
        sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
        sum ^= sum >> 32;
    }
    memcpy(header + at, &sum, 8);
}

/* The header's numbers, with its checksum put right again, as somebody with bad intentions would.
 */
static void hostile_headers_are_refused(void **state) {
    (void)state;
    buffer b = compile();
    enum { HEADER = sizeof(sni_compiled_header), SUM = offsetof(sni_compiled_header, checksum) };
    static const uint64_t values[] = {0, 1, 63, 64, 4096, 1u << 31, UINT64_MAX, UINT64_MAX - 63};
    unsigned char header[HEADER];
    memcpy(header, b.data, HEADER);
    set_sum(b.data, SUM);
    assert_memory_equal(header, b.data, HEADER); /* the test knows how */
    for (size_t at = 88; at < SUM; at += 8) {
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            memcpy(b.data + at, &values[v], 8);
            set_sum(b.data, SUM);
            try_out(&b, NULL, false); /* must not crash */
            memcpy(b.data, header, HEADER);
        }
    }
    assert_int_equal(try_out(&b, NULL, true), SN_OK);
    free(b.data);
}

/* In another process, which may use a lesser instruction set: refused, or packed anew. */
static int child(const char *path, bool repack) {
    sn_load_options o;
    sn_load_options_init(&o, sizeof o);
    o.repack = repack;
    sn_model *model;
    sn_error err = {0};
    sn_status status = sn_model_load(path, &o, &model, &err);
    if (status != SN_OK) return status == SN_UNSUPPORTED ? 10 : 11;
    sn_session *session;
    float got[2 * WIDTH];
    if (sn_session_create(model, NULL, &session, &err) != SN_OK) return 12;
    if (run(session, true, got, &err) != SN_OK) return 13;
    sn_session_destroy(session);
    sn_model_destroy(model);
    return memcmp(got, expected[1], sizeof got) == 0 ? 0 : 14;
}

static int in_another_process(const char *path, const char *mode) {
    char command[512];
    snprintf(command, sizeof command, "SINTER_ISA=baseline /proc/self/fd/9 %s %s 9</proc/%d/exe",
             mode, path, (int)getpid());
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void misfits_are_refused_or_packed_anew(void **state) {
    (void)state;
    if (sni_cpu_isa() == SNI_ISA_BASELINE) skip();
    buffer b = compile();
    char path[] = "/tmp/sinter-compiled-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(write(fd, b.data, b.size) == (ssize_t)b.size);
    close(fd);
    assert_int_equal(in_another_process(path, "refuse"), 10);
    assert_int_equal(in_another_process(path, "repack"), 0);
    unlink(path);
    free(b.data);
}

/* ---- Operators that pack several pieces ---- */

enum { PARTS = 5, MOST_OUT = 256 };

static char *put_numbers(char *at, const char *declared, int count, int step, int range) {
    at += sprintf(at, "%s = {", declared);
    for (int i = 0; i < count; i++) at += sprintf(at, "%s%d", i ? "," : "", i * step % range);
    return at + sprintf(at, "}");
}

static sn_model *make_many_pieces(void) {
    static char text[16384];
    char *at = text;
    at += sprintf(at, "<ir_version: 8, opset_import: [\"\": 17]>\n"
                      "g (float[2,1,3] X, uint8[1,4,6,6] Q, uint8[2,8] A) => (float[2,1,1,5] Y,"
                      " uint8[1,3,4,4] C, uint8[1,4,4,4] D, uint8[1,4,4,4] E, uint8[2,6] M) <");
    at = put_numbers(at, "float[1,15,3] W", 45, 5, 7);
    at = put_numbers(at, ", float[1,15,5] R", 75, 3, 4);
    at = put_numbers(at, ", float[1,30] B", 30, 3, 5);
    at = put_numbers(at, ", int8[3,4,3,3] K", 108, 7, 100);
    at = put_numbers(at, ", int8[4,1,3,3] L", 36, 11, 90);
    at = put_numbers(at, ", int8[8,6] P", 48, 13, 60);
    sprintf(at, ", float s = {0.01}, float u = {1}, uint8 z = {3}, int8 o = {0}, int8 n = {2}> {\n"
                "  Y, H = GRU <hidden_size = 5, linear_before_reset = 1> (X, W, R, B)\n"
                "  C = QLinearConv (Q, s, z, K, u, o, u, z)\n"
                "  D = QLinearConv <group = 4> (Q, s, z, L, u, o, u, z)\n"
                "  E = QLinearConv <group = 4> (Q, s, z, L, u, n, u, z)\n"
                "  M = QLinearMatMul (A, s, z, P, u, n, u, z)\n}\n");
    sn_model *model;
    sn_error err = {0};
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK) fail_msg("%s", err.message);
    return model;
}

static void run_many(sn_session *s, unsigned char results[PARTS][MOST_OUT]) {
    static const int64_t dims[3][4] = {{2, 1, 3}, {1, 4, 6, 6}, {2, 8}};
    static const int rank[3] = {3, 4, 2};
    static const size_t bytes[3] = {6 * sizeof(float), 144, 16};
    float x[6] = {0.5f, -1, 2, 0, 1, -0.25f};
    unsigned char q[144];
    for (int i = 0; i < 144; i++) q[i] = (unsigned char)(i * 37);
    void *const data[3] = {x, q, q + 50};
    sn_binding in[3] = {{0}}, out[PARTS] = {{0}};
    sn_error err = {0};
    for (int i = 0; i < 3; i++)
        assert_int_equal(sn_tensor_wrap(i ? SN_UINT8 : SN_FLOAT32, rank[i], dims[i], data[i],
                                        bytes[i], &in[i].value, NULL),
                         SN_OK);
    if (sn_session_run(s, NULL, in, 3, out, PARTS, &err) != SN_OK) fail_msg("%s", err.message);
    static const size_t sizes[PARTS] = {10 * sizeof(float), 48, 64, 64, 12};
    for (int i = 0; i < PARTS; i++)
        memcpy(results[i], sn_tensor_const_data(out[i].value), sizes[i]);
    for (int i = 0; i < 3; i++) sn_value_destroy(in[i].value);
    for (int i = 0; i < PARTS; i++) sn_value_destroy(out[i].value);
}

/* A file of these bytes, mapped: what it brings cannot be written. */
static void run_mapped(const buffer *b, unsigned char results[PARTS][MOST_OUT]) {
    char path[] = "/tmp/sinter-compiled-XXXXXX";
    int fd = mkstemp(path);
    sn_model *model;
    sn_session *session;
    sn_error err = {0};
    assert_true(fd >= 0);
    assert_true(write(fd, b->data, b->size) == (ssize_t)b->size);
    close(fd);
    if (sn_model_load(path, NULL, &model, &err) != SN_OK) fail_msg("%s", err.message);
    assert_int_equal(sn_session_create(model, NULL, &session, &err), SN_OK);
    run_many(session, results);
    sn_session_destroy(session);
    sn_model_destroy(model);
    unlink(path);
}

/* Of several pieces that are written together a file lacks one, or has it in another size: they are
 * made anew, and what the file did bring is not written. */
static void pieces_come_together(void **state) {
    (void)state;
    static unsigned char wanted[PARTS][MOST_OUT], got[PARTS][MOST_OUT];
    buffer b = {0};
    sn_error err = {0};
    sn_session *session;
    sn_model *model = make_many_pieces();
    assert_int_equal(sn_session_create(model, NULL, &session, &err), SN_OK);
    run_many(session, wanted);
    if (sn_session_compile(session, add, &b, &err) != SN_OK) fail_msg("%s", err.message);
    sn_session_destroy(session);
    sn_model_destroy(model);
    run_mapped(&b, got);
    assert_memory_equal(got, wanted, sizeof got);

    sni_compiled_header h;
    memcpy(&h, b.data, sizeof h);
    sni_section *table = &h.parts[SNI_PART_TABLE];
    size_t count = (size_t)table->size / sizeof(sni_compiled_entry);
    assert_true(count >= 4 + 3 + 4 + 4 + 3);
    for (size_t i = 0; i < 2 * count; i++) {
        unsigned char *at = b.data + table->offset + i / 2 * sizeof(sni_compiled_entry);
        sni_compiled_entry old, e;
        memcpy(&old, at, sizeof old);
        e = old;
        if (i % 2)
            e.key.impl[0] ^= 1;
        else
            e.bytes -= 1;
        memcpy(at, &e, sizeof e);
        table->checksum = sni_checksum(0, b.data + table->offset, (size_t)table->size);
        h.checksum = sni_checksum(0, &h, offsetof(sni_compiled_header, checksum));
        memcpy(b.data, &h, sizeof h);
        memset(got, 0, sizeof got);
        run_mapped(&b, got);
        assert_memory_equal(got, wanted, sizeof got);
        memcpy(at, &old, sizeof old);
    }
    free(b.data);
}

int main(int argc, char **argv) {
    if (argc == 3) {
        for (int i = 0; i < 2; i++) free(compile().data); /* for what is expected */
        return child(argv[2], strcmp(argv[1], "repack") == 0);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_results),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(misfits_are_refused_or_packed_anew),
        cmocka_unit_test(pieces_come_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
