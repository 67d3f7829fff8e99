/* test_concurrent.c - one model and one session, used by many threads at once. */
#include "unit.h"

#include "sinter.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 6, ROUNDS = 20, CLASSES = 10, LARGEST = 4 };

static sn_model *model;
static sn_session *session;
static float expected[LARGEST + 1][CLASSES * LARGEST]; /* by batch size */
static atomic_int failures;

static void fill(float *pixels, int batch) {
    uint64_t seed = (uint64_t)batch;
    for (int i = 0; i < batch * 64; i++) pixels[i] = (float)(unit_random(&seed) % 17) / 16;
}

/* Runs a batch of that size; false if it failed. */
static bool run(sn_session *s, int batch, int threads, float *result) {
    float pixels[LARGEST * 64];
    fill(pixels, batch);
    sn_binding in = {"image", NULL}, out = {"probabilities", NULL};
    sn_run_options options;
    sn_run_options_init(&options, sizeof options);
    options.threads = threads;
    int64_t dims[] = {batch, 1, 8, 8};
    bool ok =
        sn_tensor_wrap(SN_FLOAT32, 4, dims, pixels, sizeof pixels, &in.value, NULL) == SN_OK &&
        sn_session_run(s, &options, &in, 1, &out, 1, NULL) == SN_OK;
    if (ok) memcpy(result, sn_tensor_const_data(out.value), sn_tensor_bytes(out.value));
    sn_value_destroy(in.value);
    sn_value_destroy(out.value);
    return ok;
}

static bool same(int batch, const float *result) {
    return memcmp(result, expected[batch], (size_t)batch * CLASSES * sizeof *result) == 0;
}

static int setup(void **state) {
    (void)state;
    sn_error err;
    if (sn_model_load(SINTER_SOURCE_DIR "/demo/digits.onnx", NULL, &model, &err) != SN_OK ||
        sn_session_create(model, NULL, &session, &err) != SN_OK) {
        print_error("%s\n", err.message);
        return -1;
    }
    for (int batch = 1; batch <= LARGEST; batch++)
        if (!run(session, batch, 3, expected[batch])) return -1;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    sn_session_destroy(session);
    sn_model_destroy(model);
    return 0;
}

static void in_threads(void *(*body)(void *)) {
    pthread_t threads[THREADS];
    failures = 0;
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, body, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(failures, 0);
}

static void *run_often(void *arg) {
    float result[CLASSES * LARGEST];
    for (int i = 0; i < ROUNDS; i++) {
        int batch = 1 + ((int)(intptr_t)arg + i) % LARGEST;
        if (!run(session, batch, 3, result) || !same(batch, result)) failures++;
    }
    return NULL;
}

static void one_session_many_threads(void **state) {
    (void)state;
    in_threads(run_often);
}

static void *create_often(void *arg) {
    float result[CLASSES * LARGEST];
    for (int i = 0; i < 3; i++) {
        sn_session *own = NULL;
        int batch = 1 + (int)(intptr_t)arg % LARGEST;
        if (sn_session_create(model, NULL, &own, NULL) != SN_OK || !run(own, batch, 3, result) ||
            !same(batch, result))
            failures++;
        sn_session_destroy(own);
    }
    return NULL;
}

static void one_model_many_sessions(void **state) {
    (void)state;
    in_threads(create_often);
}

static void *load_often(void *arg) {
    (void)arg;
    for (int i = 0; i < 3; i++) {
        sn_model *own = NULL;
        if (sn_model_load(SINTER_SOURCE_DIR "/demo/digits.onnx", NULL, &own, NULL) != SN_OK)
            failures++;
        sn_model_destroy(own);
    }
    return NULL;
}

static void many_models(void **state) {
    (void)state;
    in_threads(load_often);
}

static void session_outlives_model(void **state) {
    (void)state;
    sn_model *own = NULL;
    sn_session *left = NULL;
    float result[CLASSES * LARGEST];
    assert_int_equal(sn_model_load(SINTER_SOURCE_DIR "/demo/digits.onnx", NULL, &own, NULL), SN_OK);
    assert_int_equal(sn_session_create(own, NULL, &left, NULL), SN_OK);
    sn_model_destroy(own);
    assert_true(run(left, 2, 3, result) && same(2, result));
    sn_session_destroy(left);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_session_many_threads),
        cmocka_unit_test(one_model_many_sessions),
        cmocka_unit_test(many_models),
        cmocka_unit_test(session_outlives_model),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
