/* test_server_json.c - the server's JSON: numbers in and out, strings, depth, and configurations.
 */
#include "unit.h"

#include "server/engine/config.h"
#include "server/api/float_text.h"
#include "server/api/json_in.h"
#include "server/api/tensor_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The fewest significant digits that read back as `value`. */
static int fewest(float value) {
    char text[64];
    for (int digits = 1; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, (double)value);
        if (strtof(text, NULL) == value) return digits;
    }
    return 9;
}

static int significant(const char *text) {
    int count = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9') continue;
        if (*text == '0') {
            zeros += count > 0;
        } else {
            count += zeros + 1;
            zeros = 0;
        }
    }
    return count;
}

static void floats_are_shortest(void **state) {
    (void)state;
    uint64_t seed = 7;
    static const uint32_t corners[] = {0,          0x80000000, 1,          0x7FFFFF,   0x800000,
                                       0x7F7FFFFF, 0x3F800000, 0x4B800000, 0x33D6BF95, 0x00800001};
    for (uint32_t i = 0; i < 300000; i++) {
        uint32_t bits = i < 10 ? corners[i] : unit_random(&seed) ^ unit_random(&seed) << 8;
        float value = float_of(bits);
        if (!isfinite(value)) continue;
        char text[SRV_FLOAT_TEXT + 1];
        text[srv_float_text(value, text)] = 0;
        uint32_t back;
        float read = strtof(text, NULL);
        memcpy(&back, &read, sizeof back);
        assert_int_equal(back, bits);
        if (i % 16 == 0 && value != 0) assert_int_equal(significant(text), fewest(value));
    }
}

static void doubles_read_back(void **state) {
    (void)state;
    uint64_t seed = 8;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = (uint64_t)unit_random(&seed) << 32 | unit_random(&seed);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value)) continue;
        char text[SRV_FLOAT_TEXT + 1];
        text[srv_double_text(value, text)] = 0;
        assert_true(strtod(text, NULL) == value);
    }
}

/* Every way to write a number, against the C library. */
static void numbers_are_exact(void **state) {
    (void)state;
    uint64_t seed = 9;
    sni_arena arena;
    sni_arena_init(&arena, 0);
    for (int i = 0; i < 300000; i++) {
        char text[80];
        int digits = 1 + (int)(unit_random(&seed) % 20);
        uint64_t bits = (uint64_t)unit_random(&seed) << 32 | unit_random(&seed);
        double value;
        float narrow;
        memcpy(&value, &bits, sizeof value);
        memcpy(&narrow, &bits, sizeof narrow);
        if (!isfinite(value) || !isfinite(narrow)) continue;
        snprintf(text, sizeof text, i % 3 ? "%.*e" : "%.*g", digits,
                 i % 2 ? (double)narrow : fmod(value, 1e6));
        srv_json_in in;
        float got_float = 0;
        double got_double = 0;
        srv_json_open(&in, text, strlen(text), &arena, NULL);
        assert_true(srv_json_double(&in, &got_double) && srv_json_close(&in) == SN_OK);
        assert_true(got_double == strtod(text, NULL));
        srv_json_open(&in, text, strlen(text), &arena, NULL);
        bool fits = isfinite(strtof(text, NULL));
        assert_int_equal(srv_json_float(&in, &got_float), fits);
        if (fits) assert_true(got_float == strtof(text, NULL));
    }
    sni_arena_free(&arena);
}

static bool reads(const char *text) {
    sni_arena arena;
    srv_json_in in;
    sni_arena_init(&arena, 0);
    srv_json_open(&in, text, strlen(text), &arena, NULL);
    srv_json_skip(&in);
    bool ok = srv_json_close(&in) == SN_OK;
    sni_arena_free(&arena);
    return ok;
}

static void only_json_is_read(void **state) {
    (void)state;
    static const char *const good[] = {"0",
                                       "-0.5e+10",
                                       "[]",
                                       "{}",
                                       "[[],{\"a\":[1,{}]}]",
                                       " true ",
                                       "\"\\u00e9\\ud83d\\ude00\\n\"",
                                       "[1 , 2]",
                                       "null"};
    static const char *const bad[] = {
        "",      "01",      "1.",         "-",     "+1",       ".5",     "1e",       "[1,]",
        "[1 2]", "{\"a\"}", "{\"a\":1,}", "{a:1}", "\"",       "\"\t\"", "[",        "]",
        "tru",   "nulll",   "\"\\",       "1 1",   "{\"a\":}", "[1,2}",  "\"\xff\"", "NaN"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) assert_true(reads(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (reads(bad[i])) fail_msg("%s was read", bad[i]);
    }
    char deep[200];
    memset(deep, '[', SRV_JSON_DEPTH);
    memset(deep + SRV_JSON_DEPTH, ']', SRV_JSON_DEPTH);
    deep[2 * SRV_JSON_DEPTH] = 0;
    assert_true(reads(deep));
    memset(deep, '[', SRV_JSON_DEPTH + 1);
    memset(deep + SRV_JSON_DEPTH + 1, ']', SRV_JSON_DEPTH + 1);
    deep[2 * SRV_JSON_DEPTH + 2] = 0;
    assert_false(reads(deep));
}

static void text_format_means_the_same(void **state) {
    (void)state;
    static const char text[] = "name: \"m\" # a comment\nmax_batch_size: 8\n"
                               "input [ { name: 'x' data_type: TYPE_FP32 dims: [ -1, 3 ] } ]\n"
                               "input { name: \"y\" dims: 4 dims: 5 }\n"
                               "dynamic_batching { preferred_batch_size: [ 2, 4 ] }\n"
                               "parameters { key: \"a\" value: { string_value: \"b\\n\" } }\n";
    static const char json[] =
        "{\"name\":\"m\",\"max_batch_size\":8,"
        "\"input\":[{\"name\":\"x\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1,3]},"
        "{\"name\":\"y\",\"dims\":[4,5]}],"
        "\"dynamic_batching\":{\"preferred_batch_size\":[2,4]},"
        "\"parameters\":{\"a\":{\"string_value\":\"b\\n\"}}}";
    srv_text out = {0};
    sn_error err;
    assert_int_equal(srv_pbtxt_to_json(text, sizeof text - 1, &out, &err), SN_OK);
    assert_string_equal(out.data, json);
    srv_text_free(&out);
    srv_config config;
    srv_config_init(&config);
    assert_int_equal(srv_config_pbtxt(&config, text, sizeof text - 1, &err), SN_OK);
    assert_int_equal(config.max_batch_size, 8);
    assert_int_equal(config.preferred_count, 2);
    assert_int_equal(config.input_count, 2);
    srv_config_free(&config);
    static const char *const bad[] = {"a: [", "a: {", "a", "a: \"x", "a: 1 a: 2", "{", "a: }"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_not_equal(srv_pbtxt_to_json(bad[i], strlen(bad[i]), &out, &err), SN_OK);
        srv_text_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_are_shortest),        cmocka_unit_test(doubles_read_back),
        cmocka_unit_test(numbers_are_exact),          cmocka_unit_test(only_json_is_read),
        cmocka_unit_test(text_format_means_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
