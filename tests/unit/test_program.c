/* test_program.c - plans by shape: results, bounded memory, trimming, limits. */
#include "unit.h"

#include "exec/program.h"
#include "sinter.h"

#include <stdlib.h>

/* Softmax(X W) with W (4,4) and any number of rows, and its sum. */
static const char text[] =
    "<ir_version: 8, opset_import: [\"\": 17]>\n"
    "g (float[N,4] X) => (float[N,4] Y) <float[4,4] W = {1,2,3,4, 5,6,7,8, 1,0,1,0, 0,1,0,1}> {\n"
    "  a = MatMul(X, W)\n  b = Relu(a)\n  c = Add(b, X)\n  d = Mul(c, c)\n  Y = Sub(d, b)\n}\n";

static sn_session *make(const char *model_text, const sn_session_options *options) {
    sn_model *model;
    sn_session *session;
    sn_error err = {0};
    assert_int_equal(sn_model_load_text(model_text, strlen(model_text), &model, &err), SN_OK);
    if (sn_session_create(model, options, &session, &err) != SN_OK) fail_msg("%s", err.message);
    sn_model_destroy(model);
    return session;
}

/* Runs on `rows` rows of small numbers; the caller destroys the result. */
static sn_status run(sn_session *session, int64_t rows, sn_value **out, sn_error *err) {
    sn_binding in = {NULL, NULL}, result = {NULL, NULL};
    assert_int_equal(sn_tensor_create(SN_FLOAT32, 2, (int64_t[]){rows, 4}, &in.value, NULL), SN_OK);
    float *x = sn_tensor_data(in.value);
    for (int64_t i = 0; i < rows * 4; i++) x[i] = (float)(i % 7) - 2;
    sn_status status = sn_session_run(session, NULL, &in, 1, &result, 1, err);
    sn_value_destroy(in.value);
    *out = result.value;
    return status;
}

/* One row of the model above, worked out by hand. */
static float expected(const float *x, int column) {
    static const float w[4][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {1, 0, 1, 0}, {0, 1, 0, 1}};
    float a = 0;
    for (int k = 0; k < 4; k++) a += x[k] * w[k][column];
    float b = a > 0 ? a : 0, c = b + x[column];
    return c * c - b;
}

static void check(sn_session *session, int64_t rows) {
    sn_value *y;
    sn_error err = {0};
    if (run(session, rows, &y, &err) != SN_OK) fail_msg("%s", err.message);
    const float *got = sn_tensor_const_data(y);
    for (int64_t r = 0; r < rows; r++) {
        float x[4];
        for (int i = 0; i < 4; i++) x[i] = (float)((r * 4 + i) % 7) - 2;
        for (int i = 0; i < 4; i++) assert_float_equal(got[r * 4 + i], expected(x, i), 1e-3);
    }
    sn_value_destroy(y);
}

static void many_shapes_give_right_results(void **state) {
    (void)state;
    sn_session_options o;
    sn_session_options_init(&o);
    for (int small = 0; small < 2; small++) {
        o.plan_cache_bytes = small ? 1 : 0; /* one plan, or all */
        sn_session *session = make(text, &o);
        uint64_t seed = 1;
        for (int i = 0; i < 300; i++) check(session, unit_random(&seed) % 97);
        sn_session_destroy(session);
    }
}

static void trimming_frees_and_runs_go_on(void **state) {
    (void)state;
    sn_session *session = make(text, NULL);
    assert_int_equal(sn_session_trim(session), 0);
    assert_int_equal(sn_session_trim(NULL), 0);
    check(session, 5000);
    assert_true(sn_session_trim(session) > 5000 * 16);
    assert_int_equal(sn_session_trim(session), 0);
    check(session, 5000);
    sn_session_destroy(session);
}

static void packed_weights_count(void **state) {
    (void)state;
    sn_session_options o;
    sn_session_options_init(&o);
    o.memory_limit = 64; /* less than the packed form of W */
    sn_session *session = make(text, &o);
    sn_value *y;
    sn_error err = {0};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(run(session, 1, &y, &err), SN_LIMIT);
        assert_null(y);
    }
    sn_session_destroy(session);
}

static void note_step(void *ctx, const sn_step_event *event) {
    if (strcmp(event->op, "MatMul") == 0)
        *(char *)ctx = strcmp(event->impl, "reference") == 0 ? 'r' : 'i';
}

/* The rows that are kept are known at run time only; the product must still be the quick one. */
static void dynamic_steps_use_implementations(void **state) {
    (void)state;
    static const char dynamic[] =
        "<ir_version: 8, opset_import: [\"\": 17]>\n"
        "g (float[N,4] X) => (float[M,4] Y) <float[4,4] W = {1,2,3,4, 5,6,7,8, 1,0,1,0, 0,1,0,1},\n"
        "  float zero = {0}, int64[1] one = {1}> {\n"
        "  s = ReduceSum<keepdims = 0>(X, one)\n  c = Greater(s, zero)\n"
        "  k = Compress<axis = 0>(X, c)\n  Y = MatMul(k, W)\n}\n";
    sn_session *session = make(dynamic, NULL);
    char who = 0;
    sn_run_options options;
    sn_run_options_init(&options);
    options.on_step = note_step;
    options.on_step_ctx = &who;
    for (int round = 0; round < 2; round++) {
        sn_binding in = {NULL, NULL}, out = {NULL, NULL};
        sn_error err = {0};
        float x[20 * 4];
        for (int i = 0; i < 80; i++) x[i] = (float)(i % 7) - 3;
        assert_int_equal(
            sn_tensor_wrap(SN_FLOAT32, 2, (int64_t[]){20, 4}, x, sizeof x, &in.value, NULL), SN_OK);
        if (sn_session_run(session, &options, &in, 1, &out, 1, &err) != SN_OK)
            fail_msg("%s", err.message);
        assert_true(sn_tensor_dims(out.value)[0] > 0 && sn_tensor_dims(out.value)[0] < 20);
        assert_int_equal(who, 'i');
        sn_value_destroy(in.value);
        sn_value_destroy(out.value);
    }
    sn_session_destroy(session);
}

static void workspaces_shrink_and_go(void **state) {
    (void)state;
    sni_pool pool;
    sni_workspace *a, *b;
    assert_int_equal(sni_pool_init(&pool, 0, 0, NULL), SN_OK);
    assert_int_equal(sni_pool_take(&pool, 64 << 20, &a, NULL), SN_OK);
    assert_int_equal(sni_pool_take(&pool, 100, &b, NULL), SN_OK);
    sni_pool_return(&pool, a);
    sni_pool_return(&pool, b);
    assert_int_equal(sni_pool_take(&pool, 3 << 20, &a, NULL), SN_OK);
    assert_true(a->arena->bytes == 64 << 20); /* the one that is large enough */
    sni_pool_return(&pool, a);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(sni_pool_take(&pool, 3 << 20, &a, NULL), SN_OK);
        sni_pool_return(&pool, a);
    }
    assert_true(sni_pool_trim(&pool) == 3 << 20);
    sni_pool_free(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_shapes_give_right_results),
        cmocka_unit_test(trimming_frees_and_runs_go_on),
        cmocka_unit_test(packed_weights_count),
        cmocka_unit_test(dynamic_steps_use_implementations),
        cmocka_unit_test(workspaces_shrink_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
