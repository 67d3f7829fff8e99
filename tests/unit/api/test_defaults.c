/* test_defaults.c - what a run may give beside what is declared: values for inputs with a default,
 * and other shapes for scalars. */
#include "unit.h"

#include "sinter.h"

#include <stdio.h>
#include <stdlib.h>

static const char TEXT[] = "<ir_version: 8, opset_import: [\"\": 17]>\n"
                           "g (float[2,3] X, float[3,2] W = {1,2,3,4,5,6}, float[2] B = {10,20})\n"
                           "  => (float[2,2] Y) {\n"
                           "  s = Add(B, B)\n"
                           "  a = MatMul(X, W)\n"
                           "  Y = Add(a, s)\n"
                           "}\n";

static const float PLAIN[4] = {42, 68, 43, 68}, /* of X below with both defaults */
    WITH_W[4] = {26, 46, 25, 45}, WITH_B[4] = {24, 30, 25, 30};

typedef struct buffer {
    char bytes[65536];
    size_t used;
} buffer;

static int to_buffer(void *ctx, const void *bytes, size_t size) {
    buffer *b = ctx;
    if (size > sizeof b->bytes - b->used) return 1;
    memcpy(b->bytes + b->used, bytes, size);
    b->used += size;
    return 0;
}

static sn_model *load(void) {
    sn_model *model;
    sn_error err = {0};
    if (sn_model_load_text(TEXT, strlen(TEXT), &model, &err) != SN_OK) fail_msg("%s", err.message);
    return model;
}

static sn_session *session_of(const sn_model *model, const sn_session_options *options) {
    sn_session *s;
    sn_error err = {0};
    if (sn_session_create(model, options, &s, &err) != SN_OK) fail_msg("%s", err.message);
    return s;
}

static void wrap(sn_binding *b, const char *name, int rank, const int64_t *dims, float *data,
                 size_t n) {
    sn_error err = {0};
    b->name = name;
    sn_tensor_wrap(SN_FLOAT32, rank, dims, data, n * sizeof *data, &b->value, &err);
    assert_non_null(b->value);
}

/* Runs with X, and with W of ones or B of ones in the place of their defaults. */
static void expect(sn_session *s, bool w, bool b, const float want[4]) {
    float x[6] = {1, 2, 3, 0, 1, 4}, ones[6] = {1, 1, 1, 1, 1, 1};
    sn_binding in[3] = {{0}}, out = {0};
    sn_error err = {0};
    size_t n = 0;
    wrap(&in[n++], "X", 2, (int64_t[]){2, 3}, x, 6);
    if (w) wrap(&in[n++], "W", 2, (int64_t[]){3, 2}, ones, 6);
    if (b) wrap(&in[n++], "B", 1, (int64_t[]){2}, ones, 2);
    if (sn_session_run(s, NULL, in, n, &out, 1, &err) != SN_OK) fail_msg("%s", err.message);
    const float *y = sn_tensor_const_data(out.value);
    for (int i = 0; i < 4; i++)
        if (y[i] != want[i]) fail_msg("element %d is %g, not %g", i, (double)y[i], (double)want[i]);
    for (size_t i = 0; i < n; i++) sn_value_destroy(in[i].value);
    sn_value_destroy(out.value);
}

static void are_taken_and_forgotten(void **state) {
    (void)state;
    for (int level = 0; level <= 3; level++) {
        sn_session_options o;
        sn_session_options_init(&o, sizeof o);
        o.optimize = level;
        o.disabled_rules = (const char *const[]){"fold-constants"};
        o.disabled_rule_count = level == 2;
        sn_model *model = load();
        sn_session *s = session_of(model, &o);
        for (int i = 0; i < 2; i++) {
            expect(s, false, false, PLAIN);
            expect(s, true, false, WITH_W);
            expect(s, false, true, WITH_B);
            sn_session_trim(s);
        }
        sn_session_destroy(s);
        s = session_of(model, &o); /* the first run may be one that gives */
        expect(s, false, true, WITH_B);
        expect(s, false, false, PLAIN);
        sn_session_destroy(s);
        sn_model_destroy(model);
    }
}

/* Without values for them the sum of B with itself and the product's packing are done beforehand.
 */
static void are_folded(void **state) {
    (void)state;
    sn_model *model = load();
    sn_session *s = session_of(model, NULL);
    size_t before, after;
    sn_session_node_counts(s, &before, &after);
    assert_int_equal(before, 3);
    assert_int_equal(after, 1);
    sn_session_destroy(s);
    sn_model_destroy(model);
}

static void stay_inputs_of_what_is_written(void **state) {
    (void)state;
    static buffer file, compiled;
    sn_error err = {0};
    sn_model *model = load(), *again;
    sn_session *s = session_of(model, NULL);
    expect(s, false, false, PLAIN);
    assert_int_equal(sn_session_write(s, SN_STAGE_OPT, SN_FORMAT_ONNX, to_buffer, &file, &err),
                     SN_OK);
    assert_int_equal(sn_session_compile(s, to_buffer, &compiled, &err), SN_OK);
    sn_session_destroy(s);
    sn_model_destroy(model);

    if (sn_model_load_memory(file.bytes, file.used, NULL, &again, &err) != SN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sn_model_input_count(again), 3);
    s = session_of(again, NULL);
    expect(s, true, false, WITH_W);
    sn_session_destroy(s);
    sn_model_destroy(again);

    if (sn_model_load_memory(compiled.bytes, compiled.used, NULL, &again, &err) != SN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sn_model_input_count(again), 1);
    s = session_of(again, NULL);
    expect(s, false, false, PLAIN);
    sn_session_destroy(s);
    sn_model_destroy(again);
}

/* ---- Scalars ---- */

static const char SCALAR[] = "<ir_version: 8, opset_import: [\"\": 17]>\n"
                             "g (float[2,3] X, float S) => (float[2,3] Y, int64[r] R, float Q) {\n"
                             "  t = Mul(S, S)\n"
                             "  Q = Neg(t)\n"
                             "  Y = Add(X, t)\n"
                             "  R = Shape(S)\n"
                             "}\n";

/* Runs with S of a shape: each result has what that shape makes of it. */
static void expect_scalar(sn_session *s, int rank, const int64_t *dims, size_t count) {
    float x[6] = {1, 2, 3, 4, 5, 6}, v[3] = {2, 3, 4};
    sn_binding in[2] = {{0}}, out[3] = {{0}};
    sn_error err = {0};
    wrap(&in[0], "X", 2, (int64_t[]){2, 3}, x, 6);
    wrap(&in[1], "S", rank, dims, v, count);
    if (sn_session_run(s, NULL, in, 2, out, 3, &err) != SN_OK) fail_msg("%s", err.message);
    const float *y = sn_tensor_const_data(out[0].value), *q = sn_tensor_const_data(out[2].value);
    for (size_t i = 0; i < 6; i++) {
        float t = v[count == 1 ? 0 : i % 3];
        if (y[i] != x[i] + t * t) fail_msg("rank %d: element %zu is %g", rank, i, (double)y[i]);
    }
    assert_int_equal(sn_tensor_dims(out[1].value)[0], rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(((const int64_t *)sn_tensor_const_data(out[1].value))[i], dims[i]);
    assert_int_equal(sn_tensor_rank(out[2].value), rank);
    for (size_t i = 0; i < count; i++) assert_true(q[i] == -v[i] * v[i]);
    for (int i = 0; i < 3; i++) sn_value_destroy(out[i].value);
    for (int i = 0; i < 2; i++) sn_value_destroy(in[i].value);
}

static void scalars_take_any_shape(void **state) {
    (void)state;
    static buffer compiled;
    sn_error err = {0};
    for (int level = 0; level <= 3; level++) {
        sn_model *model;
        sn_session_options o;
        sn_session_options_init(&o, sizeof o);
        o.optimize = level;
        if (sn_model_load_text(SCALAR, strlen(SCALAR), &model, &err) != SN_OK)
            fail_msg("%s", err.message);
        sn_session *s = session_of(model, &o);
        for (int i = 0; i < 2; i++) {
            expect_scalar(s, 0, NULL, 1);
            expect_scalar(s, 1, (int64_t[]){1}, 1);
            expect_scalar(s, 2, (int64_t[]){1, 1}, 1);
            expect_scalar(s, 1, (int64_t[]){3}, 3);
        }
        compiled.used = 0;
        assert_int_equal(sn_session_compile(s, to_buffer, &compiled, &err), SN_OK);
        sn_session_destroy(s);
        sn_model_destroy(model);
    }
    sn_model *again;
    assert_int_equal(sn_model_load_memory(compiled.bytes, compiled.used, NULL, &again, &err),
                     SN_OK);
    sn_session *s = session_of(again, NULL);
    expect_scalar(s, 0, NULL, 1);
    float x[6] = {0};
    sn_binding in[2] = {{0}}, out = {0};
    wrap(&in[0], "X", 2, (int64_t[]){2, 3}, x, 6);
    wrap(&in[1], "S", 1, (int64_t[]){1}, x, 1);
    assert_int_equal(sn_session_run(s, NULL, in, 2, &out, 1, &err), SN_INVALID_ARGUMENT);
    for (int i = 0; i < 2; i++) sn_value_destroy(in[i].value);
    sn_session_destroy(s);
    sn_model_destroy(again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(are_taken_and_forgotten),
        cmocka_unit_test(are_folded),
        cmocka_unit_test(stay_inputs_of_what_is_written),
        cmocka_unit_test(scalars_take_any_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
