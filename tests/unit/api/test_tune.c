/* test_tune.c - ways to compute convolutions that are measured: each gives the same results, and
 * the ones chosen stay in a compiled model. */
#include "sink.h"

#include "api/session.h"

#include <math.h>
#include <stdio.h>

enum { CHANNELS = 32, SIDE = 21, MOST_CONVS = 8 };

/* ---- A model with a 3x3, a 1x7 and a 5x5 convolution, whose weights are sines ---- */

#define WEIGHTS(name, shape, count)                                                         \
    " " name "_r = Range(zero, " count ", one) " name "_f = Cast<to = 1>(" name "_r) " name \
    "_s = Sin(" name "_f) " name " = Reshape(" name "_s, " shape ")"

static const char text[] =
    "<ir_version: 8, opset_import: [\"\" : 18]> "
    "g (float[1,32,21,21] x) => (float[1,32,21,21] y) <int64 zero = {0}, int64 one = {1}, "
    "int64 n1 = {9216}, int64[4] s1 = {32, 32, 3, 3}, int64 n2 = {7168}, "
    "int64[4] s2 = {32, 32, 1, 7}, int64 n3 = {25600}, int64[4] s3 = {32, 32, 5, 5}> {" WEIGHTS(
        "w1", "s1", "n1") WEIGHTS("w2", "s2", "n2")
        WEIGHTS("w3", "s3", "n3") " a = Conv<pads = [1, 1, 1, 1]>(x, w1) b = Relu(a)"
                                  " c = Conv<pads = [0, 3, 0, 3]>(b, w2) d = Relu(c)"
                                  " y = Conv<pads = [2, 2, 2, 2]>(d, w3) }";

static sn_model *load(void) {
    sn_model *model;
    sn_error err = {0};
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK) fail_msg("%s", err.message);
    return model;
}

static sn_session *open_limited(const sn_model *model, uint64_t time_limit_ns) {
    sn_session *session;
    sn_error err = {0};
    sn_session_options options;
    sn_session_options_init(&options, sizeof options);
    options.time_limit_ns = time_limit_ns;
    if (sn_session_create(model, &options, &session, &err) != SN_OK) fail_msg("%s", err.message);
    return session;
}

static sn_session *open_session(const sn_model *model) {
    return open_limited(model, 0);
}

static sn_value *make_input(void) {
    sn_value *x;
    int64_t dims[4] = {1, CHANNELS, SIDE, SIDE};
    assert_int_equal(sn_tensor_create(SN_FLOAT32, 4, dims, &x, NULL), SN_OK);
    float *data = sn_tensor_data(x);
    for (size_t i = 0; i < sn_tensor_count(x); i++) data[i] = cosf((float)i * 0.7f);
    return x;
}

/* Who ran the convolutions, in order. */
typedef struct witness {
    char impls[MOST_CONVS][32];
    int count;
} witness;

static void see(void *ctx, const sn_step_event *event) {
    witness *w = ctx;
    if (strcmp(event->op, "BlockedConv") != 0 || w->count == MOST_CONVS) return;
    snprintf(w->impls[w->count++], sizeof w->impls[0], "%s", event->impl);
}

static sn_value *run(sn_session *session, witness *w) {
    sn_error err = {0};
    sn_run_options options;
    sn_run_options_init(&options, sizeof options);
    options.time_limit_ns = UINT64_MAX; /* whatever the session's is */
    options.on_step = w ? see : NULL;
    options.on_step_ctx = w;
    sn_binding in = {.name = "x", .value = make_input()}, out = {.name = "y"};
    if (sn_session_run(session, &options, &in, 1, &out, 1, &err) != SN_OK)
        fail_msg("%s", err.message);
    sn_value_destroy(in.value);
    return out.value;
}

/* Largest difference over the largest value. */
static float difference(const sn_value *a, const sn_value *b) {
    const float *p = sn_tensor_const_data(a), *q = sn_tensor_const_data(b);
    float scale = 1e-20f, worst = 0;
    assert_int_equal(sn_tensor_count(a), sn_tensor_count(b));
    for (size_t i = 0; i < sn_tensor_count(b); i++) {
        scale = fmaxf(scale, fabsf(q[i]));
        worst = fmaxf(worst, fabsf(p[i] - q[i]));
    }
    return worst / scale;
}

/* ---- Every candidate ---- */

/* The candidates of each convolution, in order. */
typedef struct candidates {
    struct {
        uint32_t position;
        int count;
        char names[SNI_MAX_CANDIDATES][SNI_IMPL_NAME];
    } of[MOST_CONVS];
    int count;
} candidates;

static void note_choice(void *ctx, uint32_t graph, uint32_t node, const sni_choice *c) {
    candidates *all = ctx;
    sni_candidate found[SNI_MAX_CANDIDATES];
    if (graph != 0 || !sni_str_is(c->node->type, "BlockedConv") || all->count == MOST_CONVS) return;
    int k = all->count++;
    all->of[k].position = node;
    all->of[k].count = sni_ep_candidates(c, found);
    for (int i = 0; i < all->of[k].count; i++)
        sni_candidate_name(found[i].impl, found[i].variant, all->of[k].names[i]);
}

static candidates find_candidates(const sn_model *model) {
    candidates all = {.count = 0};
    sn_session *session = open_session(model);
    session->pool.choosing.on_choice = note_choice;
    session->pool.choosing.on_choice_ctx = &all;
    sn_value_destroy(run(session, NULL));
    sn_session_destroy(session);
    return all;
}

/* Runs a model whose convolutions are tuned to the keys. */
static sn_value *run_tuned(const sn_model *model, const sni_finished_key *keys, size_t count,
                           witness *w) {
    sn_session *session = open_session(model);
    session->pool.choosing.tuned = keys;
    session->pool.choosing.n_tuned = count;
    sn_value *got = run(session, w);
    sn_session_destroy(session);
    return got;
}

static void test_candidates(void **state) {
    (void)state;
    sn_model *model = load();
    candidates all = find_candidates(model);
    sn_session *base = open_session(model);
    sn_value *want = run(base, NULL);
    bool again = true;
    int index = 0;
    assert_int_equal(all.count, 3);
    for (; again; index++) {
        sni_finished_key keys[MOST_CONVS] = {0};
        size_t n = 0;
        witness w = {0};
        again = false;
        for (int i = 0; i < all.count; i++) {
            if (index >= all.of[i].count) continue;
            keys[n].node = all.of[i].position;
            memcpy(keys[n++].impl, all.of[i].names[index], SNI_IMPL_NAME);
            again = true;
        }
        sn_value *got = run_tuned(model, keys, n, &w);
        assert_int_equal(w.count, 3);
        for (int i = 0; i < w.count; i++) {
            if (index >= all.of[i].count) continue;
            size_t length = strlen(w.impls[i]); /* the rest of the name is the variant */
            assert_memory_equal(w.impls[i], all.of[i].names[index], length);
        }
        float worst = difference(got, want);
        if (!(worst <= 1e-4f)) fail_msg("candidate %d differs by %g", index, (double)worst);
        sn_value_destroy(got);
    }
    assert_true(index >= 4); /* direct sums, two sizes of tiles or more, and no more */
    sn_value_destroy(want);
    sn_session_destroy(base);
    sn_model_destroy(model);
}

/* Names that are none of a node's candidates, as a damaged file may have them, change nothing. */
static void test_nonsense(void **state) {
    (void)state;
    static const char *const odd[] = {"",
                                      "conv_winograd_f32",
                                      "conv_winograd_f32#2",
                                      "conv_winograd_f32#255",
                                      "conv_winograd_f32#4294967295",
                                      "linear_f32",
                                      "conv_direct_f32#7"};
    sn_model *model = load();
    candidates all = find_candidates(model);
    sn_session *base = open_session(model);
    witness estimated = {0};
    sn_value *want = run(base, &estimated);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        sni_finished_key keys[MOST_CONVS] = {0};
        witness w = {0};
        for (int k = 0; k < all.count; k++) {
            keys[k].node = all.of[k].position;
            snprintf(keys[k].impl, SNI_IMPL_NAME, "%s", odd[i]);
        }
        sn_value *got = run_tuned(model, keys, (size_t)all.count, &w);
        assert_memory_equal(&w, &estimated, sizeof w);
        assert_memory_equal(sn_tensor_const_data(got), sn_tensor_const_data(want),
                            sn_tensor_count(want) * sizeof(float));
        sn_value_destroy(got);
    }
    sn_value_destroy(want);
    sn_session_destroy(base);
    sn_model_destroy(model);
}

/* ---- Tuning ---- */

static void test_tuned(void **state) {
    (void)state;
    sn_error err = {0};
    size_t changed = 99;
    sink file = {0};
    sn_model *model = load(), *compiled = NULL;
    sn_session *base = open_session(model), *tuned = open_session(model);
    sn_binding in = {.name = "x", .value = make_input()};
    sn_value *want = run(base, NULL);
    if (sn_session_tune(tuned, &in, 1, &changed, &err) != SN_OK) fail_msg("%s", err.message);
    assert_true(changed <= 3);
    witness first = {0}, second = {0};
    sn_value *got = run(tuned, &first);
    assert_true(difference(got, want) <= 1e-4f);
    if (sn_session_compile(tuned, sink_append, &file, &err) != SN_OK ||
        sn_model_load_memory(file.p, file.n, NULL, &compiled, &err) != SN_OK)
        fail_msg("%s", err.message);
    sn_session *later = open_session(compiled);
    sn_value *again = run(later, &second);
    assert_memory_equal(sn_tensor_const_data(again), sn_tensor_const_data(got),
                        sn_tensor_count(got) * sizeof(float));
    assert_memory_equal(&first, &second, sizeof first);
    sn_value_destroy(again);
    sn_value_destroy(got);
    sn_value_destroy(want);
    sn_value_destroy(in.value);
    sn_session_destroy(later);
    sn_model_destroy(compiled);
    sn_session_destroy(tuned);
    sn_session_destroy(base);
    sn_model_destroy(model);
    free(file.p);
}

/* A failure leaves the session as it was: here, runs that take longer than the session allows. */
static void test_failure(void **state) {
    (void)state;
    sn_error err = {0};
    sn_model *model = load();
    sn_session *base = open_session(model), *session = open_limited(model, 1);
    sn_binding in = {.name = "x", .value = make_input()};
    size_t changed = 99;
    assert_int_equal(sn_session_tune(session, &in, 1, &changed, &err), SN_TIMEOUT);
    assert_int_equal(changed, 99);
    sn_value *want = run(base, NULL), *got = run(session, NULL);
    assert_memory_equal(sn_tensor_const_data(got), sn_tensor_const_data(want),
                        sn_tensor_count(want) * sizeof(float));
    sn_value_destroy(want);
    sn_value_destroy(got);
    sn_value_destroy(in.value);
    sn_session_destroy(session);
    sn_session_destroy(base);
    sn_model_destroy(model);
}

/* Tuning refuses inputs with the words of a run. */
static void refused_alike(sn_session *session, const sn_binding *inputs, size_t count) {
    sn_error run_err = {0}, tune_err = {0};
    sn_binding out = {.name = "y"};
    size_t changed = 99;
    assert_int_equal(sn_session_run(session, NULL, inputs, count, &out, 1, &run_err),
                     SN_INVALID_ARGUMENT);
    assert_int_equal(sn_session_tune(session, inputs, count, &changed, &tune_err),
                     SN_INVALID_ARGUMENT);
    assert_string_equal(tune_err.message, run_err.message);
    assert_int_equal(changed, 99);
}

static void check_refusals(sn_session *session) {
    sn_value *flat, *x = make_input();
    assert_int_equal(sn_tensor_create(SN_FLOAT32, 1, (int64_t[]){2}, &flat, NULL), SN_OK);
    const sn_binding wrong = {.name = "x", .value = flat}, unknown = {.name = "z", .value = x};
    const sn_binding twice[] = {{.name = "x", .value = x}, {.name = "x", .value = x}};
    refused_alike(session, NULL, 0);
    refused_alike(session, NULL, 1);
    refused_alike(session, &wrong, 1);
    refused_alike(session, &unknown, 1);
    refused_alike(session, twice, 2);
    sn_value_destroy(flat);
    sn_value_destroy(x);
}

/* Inputs are checked whether there is something to choose or not. */
static void test_inputs(void **state) {
    (void)state;
    static const char relu[] = "<ir_version: 8, opset_import: [\"\" : 18]> g (float[1,32,21,21] x) "
                               "=> (float[1,32,21,21] y) { y = Relu(x) }";
    sn_model *model = load(), *plain;
    sn_error err = {0};
    sn_session *session = open_session(model);
    check_refusals(session);
    sn_session_destroy(session);
    sn_model_destroy(model);
    if (sn_model_load_text(relu, strlen(relu), &plain, &err) != SN_OK) fail_msg("%s", err.message);
    session = open_session(plain);
    check_refusals(session);
    sn_session_destroy(session);
    sn_model_destroy(plain);
    assert_int_equal(sn_session_tune(NULL, NULL, 0, NULL, &err), SN_INVALID_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_candidates), cmocka_unit_test(test_nonsense),
        cmocka_unit_test(test_tuned),      cmocka_unit_test(test_failure),
        cmocka_unit_test(test_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
