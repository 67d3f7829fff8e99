/* test_fold.c - folding constants is bounded over a whole session, not only node by node. */
#include "unit.h"

#include "sinter.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECES = 60 };

/* PIECES constants of `size` floats each, added up. */
static char *bomb_text(int size) {
    char *text = malloc(PIECES * 128 + 512), *at = text;
    assert_non_null(text);
    at += sprintf(at,
                  "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1] X) => (float[%d] Y)"
                  " <int64[1] S = {%d}> {",
                  size, size);
    for (int i = 0; i < PIECES; i++) {
        at += sprintf(at, " C%d = ConstantOfShape <value = float[1] {%d}> (S) T%d = Add(C%d, ", i,
                      i, i, i);
        at += i ? sprintf(at, "T%d)", i - 1) : sprintf(at, "X)");
    }
    sprintf(at, " Y = Identity(T%d) }", PIECES - 1);
    return text;
}

static sn_session *make(const char *text, uint64_t memory_limit) {
    sn_model *model;
    sn_session *session;
    sn_error err;
    sn_session_options o;
    sn_session_options_init(&o, sizeof o);
    o.memory_limit = memory_limit;
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK) fail_msg("%s", err.message);
    if (sn_session_create(model, &o, &session, &err) != SN_OK) fail_msg("%s", err.message);
    sn_model_destroy(model);
    return session;
}

static size_t folded(const sn_session *session) {
    const char *name;
    size_t count = 0;
    for (size_t i = 0; sn_session_rule(session, i, &name, &count); i++)
        if (strcmp(name, "fold-constants") == 0) return count;
    return SIZE_MAX;
}

static void many_large_constants_are_not_all_folded(void **state) {
    (void)state;
    char *text = bomb_text(15000000);
    sn_session *session = make(text, 0);
    assert_in_range(folded(session), 1, 10);
    sn_session_destroy(session);
    free(text);
}

/* Above what one folded constant may have: not computed, but made when a run needs it. */
static void larger_ones_are_limited_too(void **state) {
    (void)state;
    char *text = bomb_text(25000000);
    sn_session *session = make(text, 0);
    assert_int_equal(folded(session), 5);
    sn_session_destroy(session);
    free(text);
}

/* 80 MB of weights that are one number. */
static const char weight_text[] =
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2, 4000] X) => (float[2, 5000] Y)"
    " <int64[2] S = {4000, 5000}> {"
    " W = ConstantOfShape <value = float[1] {0.5}> (S) Y = MatMul(X, W) }";

static sn_status run_weight(sn_session *session, sn_error *err) {
    sn_binding in = {NULL, NULL}, out = {NULL, NULL};
    assert_int_equal(sn_tensor_create(SN_FLOAT32, 2, (int64_t[]){2, 4000}, &in.value, NULL), SN_OK);
    float *x = sn_tensor_data(in.value);
    for (int i = 0; i < 8000; i++) x[i] = i < 4000 ? 1 : -2;
    sn_status status = sn_session_run(session, NULL, &in, 1, &out, 1, err);
    if (status == SN_OK) {
        const float *y = sn_tensor_const_data(out.value);
        for (int i = 0; i < 10000; i++) assert_float_equal(y[i], i < 5000 ? 2000 : -4000, 0);
    }
    sn_value_destroy(in.value);
    sn_value_destroy(out.value);
    return status;
}

static void a_repeated_number_is_packed(void **state) {
    (void)state;
    sn_session *session = make(weight_text, 0);
    sn_error err;
    assert_int_equal(folded(session), 1);
    for (int i = 0; i < 2; i++)
        if (run_weight(session, &err) != SN_OK) fail_msg("%s", err.message);
    sn_session_destroy(session);
}

static void what_is_made_counts_as_memory(void **state) {
    (void)state;
    sn_session *session = make(weight_text, 100 << 20); /* the number and its packed form: more */
    for (int i = 0; i < 2; i++) assert_int_equal(run_weight(session, NULL), SN_LIMIT);
    sn_session_destroy(session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_large_constants_are_not_all_folded),
        cmocka_unit_test(larger_ones_are_limited_too),
        cmocka_unit_test(a_repeated_number_is_packed),
        cmocka_unit_test(what_is_made_counts_as_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
