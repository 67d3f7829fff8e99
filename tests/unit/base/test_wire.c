/* test_wire.c - the protobuf reader and writer: what one writes the other reads, and what is not
 * protobuf is refused with its place. */
#include "unit.h"

#include "model/wire.h"
#include "model/wire_write.h"

#include <stdlib.h>

typedef struct sink {
    unsigned char bytes[8192];
    size_t size;
    size_t limit; /* refuse to go beyond; 0: the buffer's size */
} sink;

static int sink_write(void *ctx, const void *bytes, size_t size) {
    sink *s = ctx;
    size_t limit = s->limit ? s->limit : sizeof s->bytes;
    if (size > limit - s->size) return 1;
    memcpy(s->bytes + s->size, bytes, size);
    s->size += size;
    return 0;
}

static void put_inner(sni_out *out, const void *message) {
    const int64_t *v = message;
    sni_put_int(out, 1, v[0]);
    sni_put_str(out, 2, SNI_STR("inner"));
}

static void put_outer(sni_out *out, const void *message) {
    sni_put_message(out, 7, put_inner, message);
    sni_put_message(out, 7, put_inner, message);
}

static const float some_floats[3] = {1, -2.5f, 0};
static const int64_t some_ints[4] = {0, 127, 128, INT64_MIN};

static void write_all(sink *s) {
    sni_out out;
    int64_t value = -5;
    sni_out_init(&out, sink_write, s, NULL);
    sni_put_int(&out, 1, INT64_MIN);
    sni_put_uint(&out, 2, UINT64_MAX);
    sni_put_float(&out, 3, 0.5f);
    sni_put_double(&out, 4, -0.25);
    sni_put_bytes(&out, 5, "a\0b", 3);
    sni_put_message(&out, 8, put_outer, &value);
    sni_put_packed_ints(&out, 6, some_ints, 4);
    sni_put_packed_floats(&out, 0x1fffffff, some_floats, 3);
    assert_int_equal(sni_out_finish(&out), SN_OK);
    assert_int_equal(out.bytes, s->size);
}

static void read_scalars(sni_wire *w) {
    sni_field f;
    int64_t i;
    float x;
    sni_str text;
    assert_true(sni_wire_next(w, &f));
    assert_int_equal(sni_field_int(w, &f, &i), SN_OK);
    assert_true(i == INT64_MIN && f.number == 1 && f.offset == 0);
    assert_true(sni_wire_next(w, &f));
    assert_true(f.value == UINT64_MAX);
    assert_true(sni_wire_next(w, &f));
    assert_int_equal(sni_field_float(w, &f, &x), SN_OK);
    assert_true(x == 0.5f);
    assert_true(sni_wire_next(w, &f));
    assert_true(f.type == SNI_WIRE_I64);
    assert_true(sni_wire_next(w, &f));
    assert_int_equal(sni_field_str(w, &f, &text), SN_OK);
    assert_true(sni_str_eq(text, (sni_str){"a\0b", 3}));
}

static void read_messages(sni_wire *w) {
    sni_wire inner, innermost;
    sni_field f;
    int64_t i;
    assert_true(sni_wire_next(w, &f));
    assert_int_equal(sni_field_message(w, &f, &inner), SN_OK);
    for (int k = 0; k < 2; k++) {
        assert_true(sni_wire_next(&inner, &f));
        assert_int_equal(sni_field_message(&inner, &f, &innermost), SN_OK);
        assert_true(sni_wire_next(&innermost, &f));
        assert_int_equal(sni_field_int(&innermost, &f, &i), SN_OK);
        assert_true(i == -5);
    }
    assert_false(sni_wire_next(&inner, &f));
}

static void read_lists(sni_wire *w) {
    sni_field f;
    sni_values values;
    uint64_t bits;
    size_t count;
    assert_true(sni_wire_next(w, &f));
    assert_int_equal(sni_field_count(w, &f, SNI_WIRE_VARINT, &count), SN_OK);
    assert_int_equal(count, 4);
    assert_int_equal(sni_field_values(w, &f, SNI_WIRE_VARINT, &values), SN_OK);
    for (int k = 0; k < 4; k++) {
        assert_true(sni_values_next(&values, &bits));
        assert_true((int64_t)bits == some_ints[k]);
    }
    assert_false(sni_values_next(&values, &bits));
    assert_int_equal(values.wire.status, SN_OK);
    assert_true(sni_wire_next(w, &f));
    assert_int_equal(f.number, 0x1fffffff);
    assert_int_equal(sni_field_values(w, &f, SNI_WIRE_I32, &values), SN_OK);
    for (int k = 0; k < 3; k++) {
        assert_true(sni_values_next(&values, &bits));
        assert_true(sni_bits_float(bits) == some_floats[k]);
    }
}

static void test_round_trip(void **state) {
    (void)state;
    sink s = {0};
    sni_wire_limits limits;
    sni_wire w;
    sni_field f;
    sn_error err = {0};
    write_all(&s);
    sni_wire_init(&w, s.bytes, s.size, &limits, &err);
    read_scalars(&w);
    read_messages(&w);
    read_lists(&w);
    assert_false(sni_wire_next(&w, &f));
    assert_int_equal(w.status, SN_OK);
}

static void test_write_failure(void **state) {
    (void)state;
    sink s = {.limit = 600};
    sni_out out;
    sn_error err = {0};
    char big[700] = {0};
    sni_out_init(&out, sink_write, &s, &err);
    sni_put_int(&out, 1, 1);
    sni_put_bytes(&out, 2, big, sizeof big);
    sni_put_int(&out, 3, 1);
    assert_int_equal(sni_out_finish(&out), SN_IO);
    assert_int_equal(err.status, SN_IO);
}

/* Reads all fields; returns the outcome. */
static sn_status walk(const void *bytes, size_t size, sn_error *err) {
    sni_wire_limits limits;
    sni_wire w;
    sni_field f;
    unsigned char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    if (size) memcpy(exact, bytes, size);
    sni_wire_init(&w, exact, size, &limits, err);
    while (sni_wire_next(&w, &f)) {
    }
    free(exact);
    return w.status;
}

static void test_malformed(void **state) {
    (void)state;
    static const struct {
        const char *what;
        const char *bytes;
        size_t size;
        sn_status status;
        const char *message;
    } cases[] = {
        {"nothing", "", 0, SN_OK, ""},
        {"an 11-byte number", "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12, SN_MALFORMED,
         "byte 1: a number has more than 64 bits"},
        {"65 bits", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, SN_MALFORMED,
         "byte 1: a number has more than 64 bits"},
        {"64 bits", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, SN_OK, ""},
        {"a cut-off number", "\x08\x80", 2, SN_MALFORMED, "byte 1: a number is cut off"},
        {"a tag alone", "\x08", 1, SN_MALFORMED, "byte 1: a number is cut off"},
        {"a cut-off float", "\x0d\x00\x00\x00", 4, SN_MALFORMED, "byte 1: a fixed-size"},
        {"a cut-off double", "\x09\x00\x00\x00\x00\x00\x00\x00", 8, SN_MALFORMED,
         "byte 1: a fixed-size"},
        {"a length past the end",
         "\x0a\x03"
         "ab",
         4, SN_MALFORMED, "byte 0: field 1 has 3 bytes but only 2 are left"},
        {"a length of 2^63", "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, SN_MALFORMED,
         "byte 0: field 1 has 9223372036854775808 bytes"},
        {"field 0", "\x00\x01", 2, SN_MALFORMED, "byte 0: 0 is not a field number"},
        {"a field of 30 bits", "\xf8\xff\xff\xff\x1f\x01", 6, SN_MALFORMED, "not a field number"},
        {"a group", "\x0b\x0c", 2, SN_MALFORMED, "byte 0: field 1 has wire type 3"},
        {"wire type 6", "\x08\x01\x0e", 3, SN_MALFORMED, "byte 2: field 1 has wire type 6"},
        {"wire type 7", "\x0f", 1, SN_MALFORMED, "wire type 7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sn_error err = {0};
        sn_status status = walk(cases[i].bytes, cases[i].size, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].message))
            fail_msg("%s: status %d, '%s'", cases[i].what, (int)status, err.message);
    }
}

static void test_wrong_types(void **state) {
    (void)state;
    sni_wire_limits limits;
    sni_wire w;
    sni_field f;
    sn_error err = {0};
    int64_t i;
    float x;
    sni_str s;
    sni_wire inner;
    sni_values values;
    size_t n;
#define START(bytes)                                            \
    sni_wire_init(&w, bytes, sizeof(bytes) - 1, &limits, &err); \
    assert_true(sni_wire_next(&w, &f))
    START("\x0a\x00");
    assert_int_equal(sni_field_int(&w, &f, &i), SN_MALFORMED);
    assert_false(sni_wire_next(&w, &f));
    START("\x08\x01");
    assert_int_equal(sni_field_float(&w, &f, &x), SN_MALFORMED);
    START("\x08\x01");
    assert_int_equal(sni_field_str(&w, &f, &s), SN_MALFORMED);
    START("\x08\x01");
    assert_int_equal(sni_field_message(&w, &f, &inner), SN_MALFORMED);
    START("\x08\x01");
    assert_int_equal(sni_field_values(&w, &f, SNI_WIRE_I32, &values), SN_MALFORMED);
    START("\x0a\x03\x00\x00\x00");
    assert_int_equal(sni_field_count(&w, &f, SNI_WIRE_I32, &n), SN_MALFORMED);
    START("\x0a\x02\x01\x80");
    assert_int_equal(sni_field_count(&w, &f, SNI_WIRE_VARINT, &n), SN_MALFORMED);
#undef START
}

static void test_limits(void **state) {
    (void)state;
    /* Each message holds the next: 0a NN ... */
    unsigned char bytes[120];
    for (size_t i = 0; i < sizeof bytes; i += 2) {
        bytes[i] = 0x0a;
        bytes[i + 1] = (unsigned char)(sizeof bytes - i - 2);
    }
    sni_wire_limits limits;
    sni_wire w, inner;
    sni_field f;
    sn_error err = {0};
    sni_wire_init(&w, bytes, sizeof bytes, &limits, &err);
    limits.depth = 10;
    int depth = 0;
    while (sni_wire_next(&w, &f) && sni_field_message(&w, &f, &inner) == SN_OK) {
        w = inner;
        depth++;
    }
    assert_int_equal(w.status, SN_LIMIT);
    assert_int_equal(depth, 9);
    sni_wire_init(&w, bytes, sizeof bytes, &limits, &err);
    limits.messages = 1;
    assert_true(sni_wire_next(&w, &f));
    assert_int_equal(sni_field_message(&w, &f, &inner), SN_OK);
    assert_int_equal(sni_field_message(&w, &f, &inner), SN_LIMIT);
}

/* Lists that are not packed, by one field after the other and in one go. */
static void test_alike(void **state) {
    (void)state;
    static const int64_t ints[] = {0, 1, 127, 128, -1, INT64_MIN, INT64_MAX, 5};
    sink s = {0};
    sni_out out;
    sni_out_init(&out, sink_write, &s, NULL);
    for (int i = 0; i < 8; i++) sni_put_int(&out, 8, ints[i]);
    for (int i = 0; i < 3; i++) sni_put_float(&out, 7, some_floats[i]);
    for (int i = 0; i < 3; i++) sni_put_str(&out, 9, SNI_STR("text"));
    for (int i = 0; i < 3; i++) sni_put_int(&out, 16, i); /* a tag of two bytes: one at a time */
    assert_int_equal(sni_out_finish(&out), SN_OK);
    sni_wire w;
    sni_wire_limits limits;
    sni_field field;
    int64_t read[8];
    float floats[2];
    sni_wire_init(&w, s.bytes, s.size, &limits, NULL);
    assert_true(sni_wire_next(&w, &field));
    sni_wire again = w;
    assert_int_equal(sni_wire_ints_alike(&w, &field, read, 8), 7);
    assert_memory_equal(read, ints + 1, 7 * sizeof *read);
    assert_int_equal(sni_wire_skip_alike(&again, &field), 7);
    assert_ptr_equal(again.p, w.p);
    assert_true(sni_wire_next(&w, &field));
    assert_int_equal(field.number, 7);
    assert_int_equal(sni_wire_ints_alike(&w, &field, read, 8), 0);
    assert_int_equal(sni_wire_floats_alike(&w, &field, floats, 1), 1);
    assert_true(floats[0] == some_floats[1]);
    assert_int_equal(sni_wire_skip_alike(&w, &field), 1);
    assert_true(sni_wire_next(&w, &field));
    assert_int_equal(field.number, 9);
    assert_int_equal(sni_wire_skip_alike(&w, &field), 2);
    assert_true(sni_wire_next(&w, &field));
    assert_int_equal(field.number, 16);
    assert_int_equal(sni_wire_skip_alike(&w, &field), 0);
    assert_true(sni_wire_next(&w, &field));
    assert_true(sni_wire_next(&w, &field));
    assert_false(sni_wire_next(&w, &field));
    assert_int_equal(w.status, SN_OK);
}

/* What is cut off is left for the reader of single fields, which says so. */
static void test_alike_cut(void **state) {
    (void)state;
    static const struct {
        unsigned char bytes[14];
        size_t size;
    } cut[] = {{{0x40, 1, 0x40, 0x80}, 4},
               {{0x40, 1, 0x40}, 3},
               {{0x3d, 0, 0, 0, 0, 0x3d, 0, 0, 0}, 9},
               {{0x4a, 1, 'a', 0x4a, 2, 'b'}, 6},
               {{0x40, 1, 0x40, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2}, 13}};
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        sni_wire w;
        sni_wire_limits limits;
        sni_field field;
        int64_t ints[4];
        float floats[4];
        sni_wire_init(&w, cut[i].bytes, cut[i].size, &limits, NULL);
        assert_true(sni_wire_next(&w, &field));
        assert_int_equal(sni_wire_skip_alike(&w, &field), 0);
        assert_int_equal(sni_wire_ints_alike(&w, &field, ints, 4), 0);
        assert_int_equal(sni_wire_floats_alike(&w, &field, floats, 4), 0);
        assert_false(sni_wire_next(&w, &field));
        assert_int_equal(w.status, SN_MALFORMED);
    }
}

/* Random bytes end in success or failure, never outside the memory (for sanitizers). */
static void test_random(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int round = 0; round < 20000; round++) {
        unsigned char bytes[48];
        size_t size = unit_random(&seed) % sizeof bytes;
        for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)unit_random(&seed);
        walk(bytes, size, NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_write_failure),
        cmocka_unit_test(test_malformed),  cmocka_unit_test(test_wrong_types),
        cmocka_unit_test(test_limits),     cmocka_unit_test(test_random),
        cmocka_unit_test(test_alike),      cmocka_unit_test(test_alike_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
