/* test_provider.c - providers by the C interface: several threads, cancelling, unloading in use,
 * memory, and a provider of the program itself. GUARDED is the library of tests/provider. */
#include "unit.h"

#include "sinter_ep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] =
    "<ir_version: 10, opset_import: [\"\" : 21]>\n"
    "g (float[n, 16] x) => (float[n, 16] y) <float[16] w = {1, 2, 3, 4, 5, 6, "
    "7, 8, 9, 10, 11, 12, 13, 14, 15, 16}> {\n"
    "  a = Mul (x, w)\n  b = Sigmoid (a)\n  c = Neg (b)\n"
    "  y = Abs (c)\n}\n";

static sn_session *open_session(const char *name, const sn_provider_setting *settings,
                                size_t count) {
    sn_model *model = NULL;
    sn_session *session = NULL;
    sn_session_options o;
    sn_error err = {0};
    sn_provider_use use = {.name = name, .settings = settings, .setting_count = count};
    sn_session_options_init(&o, sizeof o);
    o.threads = 1;
    o.providers = &use;
    o.provider_count = name != NULL;
    assert_int_equal(sn_model_load_text(text, sizeof text - 1, &model, &err), SN_OK);
    if (sn_session_create(model, &o, &session, &err) != SN_OK) fail_msg("%s", err.message);
    sn_model_destroy(model);
    return session;
}

/* Runs with `rows` rows; *sum is that of the results. */
static sn_status run(sn_session *s, int64_t rows, sn_cancel *cancel, double *sum, sn_error *err) {
    sn_binding in = {.name = "x"}, out = {.name = "y"};
    sn_run_options o;
    sn_run_options_init(&o, sizeof o);
    o.cancel = cancel;
    int64_t dims[] = {rows, 16};
    sn_status status = sn_tensor_create(SN_FLOAT32, 2, dims, &in.value, err);
    float *x = sn_tensor_data(in.value);
    for (int64_t i = 0; i < rows * 16; i++) x[i] = (float)(i % 7) / 50;
    if (status == SN_OK) status = sn_session_run(s, &o, &in, 1, &out, 1, err);
    *sum = 0;
    for (size_t i = 0; status == SN_OK && i < sn_tensor_count(out.value); i++)
        *sum += ((const float *)sn_tensor_const_data(out.value))[i];
    sn_value_destroy(in.value);
    sn_value_destroy(out.value);
    return status;
}

static double want(int64_t rows) {
    double sum;
    sn_session *s = open_session(NULL, NULL, 0);
    assert_int_equal(run(s, rows, NULL, &sum, NULL), SN_OK);
    sn_session_destroy(s);
    return sum;
}

/* ---- The guarded device ---- */

typedef struct worker {
    pthread_t thread;
    sn_session *session;
    double sums[4]; /* by rows */
    bool ok;
} worker;

static void *work(void *ctx) {
    worker *w = ctx;
    w->ok = true;
    for (int turn = 0; turn < 20 && w->ok; turn++) {
        double sum;
        int rows = turn % 3 + 1;
        sn_status status = run(w->session, rows, NULL, &sum, NULL);
        w->ok = status == SN_OK && sum - w->sums[rows] < 1e-3 && w->sums[rows] - sum < 1e-3;
    }
    return NULL;
}

static void test_threads(void **state) {
    (void)state;
    sn_provider_setting settings[] = {
        {"claim", "parts"}, {"delay", "50"}, {"sinter.shapes", "1"}, {"sinter.min_nodes", "1"}};
    assert_int_equal(sn_provider_load(GUARDED, NULL, NULL), SN_OK);
    worker workers[4];
    double sums[4] = {0, want(1), want(2), want(3)};
    sn_session *s = open_session("guarded", settings, 4);
    sn_provider_share share;
    assert_true(sn_session_provider(s, 0, &share));
    assert_string_equal(share.provider, "guarded");
    assert_int_equal(share.nodes, 4);
    assert_int_equal(share.parts, 4);
    for (int i = 0; i < 4; i++) {
        workers[i].session = s;
        memcpy(workers[i].sums, sums, sizeof sums);
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_true(workers[i].ok);
    }
    assert_true(sn_session_trim(s) > 0);
    double sum;
    assert_int_equal(run(s, 2, NULL, &sum, NULL), SN_OK);
    sn_session_destroy(s);
}

static void *cancel_soon(void *ctx) {
    usleep(20000);
    sn_cancel_trigger(ctx);
    return NULL;
}

static void test_cancel(void **state) {
    (void)state;
    sn_provider_setting settings[] = {{"claim", "parts"}, {"delay", "30000"}};
    sn_session *s = open_session("guarded", settings, 2);
    sn_cancel *cancel = NULL;
    pthread_t thread;
    double sum;
    sn_error err = {0};
    assert_int_equal(sn_cancel_create(&cancel, NULL), SN_OK);
    assert_int_equal(pthread_create(&thread, NULL, cancel_soon, cancel), 0);
    assert_int_equal(run(s, 3, cancel, &sum, &err), SN_CANCELLED);
    pthread_join(thread, NULL);
    sn_cancel_reset(cancel);
    assert_int_equal(run(s, 3, cancel, &sum, &err), SN_OK);
    sn_session_destroy(s);
    sn_cancel_destroy(cancel);
}

static void test_unload(void **state) {
    (void)state;
    double sum;
    sn_session *s = open_session("guarded", NULL, 0);
    assert_int_equal(sn_provider_unload("guarded", NULL), SN_OK);
    assert_int_equal(sn_provider_unload("guarded", NULL), SN_NOT_FOUND);
    assert_int_equal(run(s, 1, NULL, &sum, NULL), SN_OK);
    sn_device_info d;
    for (size_t i = 0; sn_device(i, &d); i++) assert_string_not_equal(d.provider, "guarded");
    sn_session_destroy(s);
}

/* ---- A provider of the program itself: it takes Neg ---- */

static int opened;

static bool own_device(const sn_ep_api *api, size_t index, sn_ep_device *out) {
    out->name = "own";
    return index == 0 && strcmp(api->ctx, "context") == 0;
}

static sn_status own_open(const sn_ep_api *api, size_t device, const sn_ep_setting *settings,
                          size_t count, sn_ep **out, sn_error *err) {
    (void)device, (void)settings, (void)err;
    if (count) return SN_INVALID_ARGUMENT;
    opened++;
    *out = (sn_ep *)api->ctx;
    return SN_OK;
}

static void own_close(sn_ep *ep) {
    (void)ep;
    opened--;
}

static sn_status own_claim(sn_ep *ep, const sn_ep_graph *graph, sn_ep_claims *claims,
                           sn_error *err) {
    const sn_ep_host *host = sn_provider_host();
    (void)ep;
    assert_int_equal(host->depth(graph), 0);
    for (size_t i = 0; i < host->node_count(graph); i++)
        if (strcmp(host->node->node_type(host->node_at(graph, i)), "Neg") == 0)
            return host->claim(claims, SN_EP_PART, &i, 1, err);
    return SN_OK;
}

static sn_status own_compile(sn_ep *ep, const sn_ep_part *part, sn_ep_program **out,
                             sn_error *err) {
    (void)err;
    assert_int_equal(part->node_count, 1);
    assert_int_equal(part->inputs[0].dtype, SN_FLOAT32);
    assert_int_equal(part->inputs[0].dims[1], 16);
    *out = (sn_ep_program *)ep;
    return SN_OK;
}

static void own_program_free(sn_ep_program *program) {
    (void)program;
}

static sn_status own_run(sn_ep_program *program, sn_ep_ready *ready, sn_ep_queue *queue,
                         sn_ep_call *call, sn_error *err) {
    (void)program, (void)ready, (void)queue, (void)err;
    const float *x = call->inputs[0].host;
    float *y = call->outputs[0].host;
    for (size_t i = 0; i < call->outputs[0].bytes / sizeof *y; i++) y[i] = -x[i];
    return SN_OK;
}

static void test_own(void **state) {
    (void)state;
    static const sn_ep_api api = {.size = sizeof api,
                                  .version = SN_EP_VERSION,
                                  .name = "own",
                                  .ctx = "context",
                                  .device = own_device,
                                  .open = own_open,
                                  .close = own_close,
                                  .claim = own_claim,
                                  .compile = own_compile,
                                  .program_free = own_program_free,
                                  .run = own_run};
    sn_error err = {0};
    double sum;
    assert_int_equal(sn_provider_register(&api, &err), SN_OK);
    assert_int_equal(sn_provider_register(&api, &err), SN_INVALID_ARGUMENT);
    assert_int_equal(sn_provider_register(NULL, &err), SN_INVALID_ARGUMENT);
    sn_session *s = open_session("own", NULL, 0);
    assert_int_equal(opened, 1);
    assert_int_equal(run(s, 2, NULL, &sum, &err), SN_OK);
    assert_true(sum - want(2) < 1e-3 && want(2) - sum < 1e-3);
    sn_provider_refusal r;
    assert_true(sn_session_refusal(s, 0, &r));
    assert_string_equal(r.reason, "it was not claimed");
    sn_session_destroy(s);
    assert_int_equal(opened, 0);
    assert_int_equal(sn_provider_unload("own", NULL), SN_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_cancel), cmocka_unit_test(test_unload),
                                       cmocka_unit_test(test_own)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
