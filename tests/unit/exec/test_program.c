/* test_program.c - plans by shape: results, bounded memory, trimming, limits. */
#include "unit.h"

#include "exec/program.h"
#include "sinter.h"

#include <math.h>
#include <stdio.h>
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
    sn_session_options_init(&o, sizeof o);
    for (int small = 0; small < 2; small++) {
        o.plan_cache_bytes = small ? 1 : 0; /* one plan, or all */
        sn_session *session = make(text, &o);
        uint64_t seed = 1;
        for (int i = 0; i < 300; i++) check(session, unit_random(&seed) % 97);
        sn_session_destroy(session);
    }
}

/* A program that was built with an older or a newer header than the library. */
static void options_of_other_versions(void **state) {
    (void)state;
    struct {
        sn_session_options known;
        uint64_t later[2];
    } newer;
    memset(&newer, 0xa5, sizeof newer);
    sn_session_options_init(&newer.known, sizeof newer);
    assert_int_equal(newer.known.size, sizeof newer);
    assert_int_equal(newer.known.optimize, 3);
    assert_int_equal(newer.later[1], 0);
    sn_session_destroy(make(text, &newer.known));
    newer.later[1] = 1;
    sn_model *model = NULL;
    sn_session *session = NULL;
    sn_error err = {0};
    assert_int_equal(sn_model_load_text(text, strlen(text), &model, NULL), SN_OK);
    assert_int_equal(sn_session_create(model, &newer.known, &session, &err), SN_UNSUPPORTED);
    assert_null(session);
    sn_model_destroy(model);

    sn_session_options older;
    memset(&older, 0xa5, sizeof older);
    sn_session_options_init(&older, offsetof(sn_session_options, log));
    assert_int_equal(older.size, offsetof(sn_session_options, log));
    assert_int_equal(older.plan_cache_bytes, UINT64_C(0xa5a5a5a5a5a5a5a5)); /* not its to write */
    sn_session_destroy(make(text, &older));
}

static void trimming_frees_and_runs_go_on(void **state) {
    (void)state;
    sn_session *session = make(text, NULL);
    assert_int_equal(sn_session_trim(session), 0);
    assert_int_equal(sn_session_trim(NULL), 0);
    check(session, 5000);
    assert_true(sn_session_trim(session) >= 5000 * 16);
    assert_int_equal(sn_session_trim(session), 0);
    check(session, 5000);
    sn_session_destroy(session);
}

static void packed_weights_count(void **state) {
    (void)state;
    sn_session_options o;
    sn_session_options_init(&o, sizeof o);
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

/* Weights below the normal range count as 0 beside normal ones, and for what they are among their
 * like. */
static void subnormal_weights(void **state) {
    (void)state;
    static const char *const weights[] = {"{1, 1e-40, 0, 1e-40, 2, 1e-40, 1e-39, 1e-40}",
                                          "{0, 1e-40, 0, 1e-40, 0, 1e-40, 1e-39, 1e-40}"};
    static const float want[2][2] = {{-2, 0}, {1e-39f, -2e-40f}}; /* for -2, -1, 0, 1 */
    for (int i = 0; i < 2; i++) {
        char model[256] = "";
        unit_append(
            model, sizeof model,
            "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N, 4] X) => (float[N, 2] Y)"
            " <float[4, 2] W = %s> { Y = MatMul(X, W) }",
            weights[i]);
        sn_session *session = make(model, NULL);
        sn_value *y;
        sn_error err = {0};
        if (run(session, 1, &y, &err) != SN_OK) fail_msg("%s", err.message);
        const float *got = sn_tensor_const_data(y);
        assert_float_equal(got[0], want[i][0], 1e-42);
        assert_float_equal(got[1], want[i][1], 1e-42);
        sn_value_destroy(y);
        sn_session_destroy(session);
    }
}

/* sn_write_fn: adds to a text of 16384 bytes. */
static int keep_text(void *ctx, const void *bytes, size_t size) {
    char *text_so_far = ctx;
    size_t used = strlen(text_so_far);
    if (used + size >= 16384) return 1;
    memcpy(text_so_far + used, bytes, size);
    text_so_far[used + size] = 0;
    return 0;
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
    sn_session_options o;
    sn_session_options_init(&o, sizeof o);
    o.optimize = 0; /* the product stays one */
    sn_session *session = make(dynamic, &o);
    char who = 0;
    sn_run_options options;
    sn_run_options_init(&options, sizeof options);
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

/* Runs `model_text` on X = -8, -7, ... 7 and gives its 16-wide rows. */
static void run_rows(const char *model_text, int optimize, int rows, float *out, char *plan) {
    sn_session_options o;
    sn_session_options_init(&o, sizeof o);
    o.optimize = optimize;
    sn_session *session = make(model_text, &o);
    sn_binding in = {NULL, NULL}, result = {NULL, NULL};
    float x[16];
    sn_error err = {0};
    for (int i = 0; i < 16; i++) x[i] = (float)i - 8;
    assert_int_equal(
        sn_tensor_wrap(SN_FLOAT32, 2, (int64_t[]){1, 16}, x, sizeof x, &in.value, NULL), SN_OK);
    if (sn_session_run(session, NULL, &in, 1, &result, 1, &err) != SN_OK)
        fail_msg("%s", err.message);
    assert_int_equal(sn_tensor_count(result.value), rows * 16);
    memcpy(out, sn_tensor_const_data(result.value), sn_tensor_bytes(result.value));
    assert_int_equal(
        sn_session_write(session, SN_STAGE_PLAN, SN_FORMAT_TEXT, keep_text, plan, &err), SN_OK);
    sn_value_destroy(in.value);
    sn_value_destroy(result.value);
    sn_session_destroy(session);
}

static int count_of(const char *plan, const char *what) {
    int n = 0;
    for (const char *at = plan; (at = strstr(at, what)) != NULL; at++) n++;
    return n;
}

/* Operands and parts that stand in the same memory must not be overwritten too early. */
static void views_hold_what_they_show(void **state) {
    (void)state;
    static const char views[] =
        "<ir_version: 8, opset_import: [\"\": 17]>\n"
        "g (float[1,16] X) => (float[N,16] Y) <int64[1] one = {1}, int64[1] two = {2},\n"
        "  int64[1] zero = {0}> {\n"
        "  a = Relu(X)\n  b = Neg(X)\n  c = Concat<axis = 0>(a, b, a)\n"
        "  p, q, r = Split<axis = 0>(c)\n  d = Add(p, q)\n  e = Sub(d, r)\n"
        "  g = Concat<axis = 0>(c, e)\n  h = Slice(g, one, two, zero)\n  i = Mul(h, h)\n"
        "  j = Concat<axis = 0>(g, i)\n  k = Add(h, h)\n  Y = Sub(j, k)\n}\n";
    for (int level = 0; level <= 3; level++) {
        float got[5 * 16];
        static char plan[16384];
        plan[0] = 0;
        run_rows(views, level, 5, got, plan);
        for (int i = 0; i < 16; i++) {
            float x = (float)i - 8, a = x > 0 ? x : 0, b = -x;
            const float want[] = {a - 2 * b, b - 2 * b, a - 2 * b, b - 2 * b, b * b - 2 * b};
            for (int row = 0; row < 5; row++) assert_float_equal(got[row * 16 + i], want[row], 0);
        }
        assert_true(count_of(plan, " view ") >= 3); /* the slice, the split and a concatenation */
    }
}

/* Nor may results stand on an operand that the same step reads in another place, or again for
 * several elements; halves and the same elements may. */
static void views_of_one_value_stay_apart(void **state) {
    (void)state;
    static const char views[] =
        "<ir_version: 8, opset_import: [\"\": 17]>\n"
        "g (float[1,16] X) => (float[N,16] Y) <int64[1] one = {1}, int64[1] two = {2},\n"
        "  int64[1] zero = {0}, int64[1] three = {3}> {\n"
        "  a = Relu(X)\n  b = Neg(X)\n  c = Concat<axis = 0>(a, b, a)\n"
        "  p = Slice(c, one, three, zero)\n  q = Slice(c, zero, two, zero)\n"
        "  d = Sub(p, q)\n  e = Softplus(d)\n  f = Slice(e, zero, one, zero)\n"
        "  g = Max(f, e)\n  h = Softplus(g)\n  i = Slice(h, one, two, zero)\n"
        "  j = Sub(h, i)\n  k = Tanh(j)\n  l, m = Split<axis = 0>(k)\n"
        "  n = Sub(m, l)\n  o = Tanh(n)\n  r = Mul(o, o)\n  Y = Neg(r)\n}\n";
    for (int level = 0; level <= 3; level++) {
        float got[16];
        static char plan[16384];
        plan[0] = 0;
        run_rows(views, level, 1, got, plan);
        for (int i = 0; i < 16; i++) {
            double x = i - 8, a = x > 0 ? x : 0, b = -x;
            double e0 = log1p(exp(b - a)), e1 = log1p(exp(a - b)), g1 = e0 > e1 ? e0 : e1;
            double n = tanh(0) - tanh(log1p(exp(e0)) - log1p(exp(g1))), o = tanh(n);
            assert_float_equal(got[i], (float)(-o * o), 1e-5f);
        }
    }
}

/* A convolution of so many channels, kernel 3, over pictures of any size; its weights are folded.
 */
typedef struct picture {
    int64_t channels;
    const char *text;
} picture;

#define PICTURE(channels, weights)                                                        \
    {                                                                                     \
        channels, "<ir_version: 8, opset_import: [\"\": 17]>\n"                           \
                  "g (float[1," #channels ",H,W] X) => (float[1," #channels ",H,W] Y)\n"  \
                  "  <float zero = {0}, float most = {" #weights "}, float one = {1},\n"  \
                  "   int64[4] shape = {" #channels "," #channels ",3,3}> {\n"            \
                  "  r = Range(zero, most, one)\n  s = Sin(r)\n  w = Reshape(s, shape)\n" \
                  "  a = Conv<pads = [1,1,1,1]>(X, w)\n  Y = Relu(a)\n}\n"                \
    }

static const picture many = PICTURE(32, 9216), few = PICTURE(2, 36);

typedef struct seen {
    char impl[64]; /* of the convolution */
} seen;

static void note_conv(void *ctx, const sn_step_event *event) {
    if (strstr(event->op, "Conv")) snprintf(((seen *)ctx)->impl, 64, "%s", event->impl);
}

/* Runs on a picture of `size` x `size`; `out` has room for its results. */
static void run_picture(sn_session *session, const picture *p, int64_t size, seen *s, float *out) {
    sn_binding in = {NULL, NULL}, result = {NULL, NULL};
    sn_error err = {0};
    sn_run_options options;
    sn_run_options_init(&options, sizeof options);
    options.on_step = note_conv;
    options.on_step_ctx = s;
    assert_int_equal(
        sn_tensor_create(SN_FLOAT32, 4, (int64_t[]){1, p->channels, size, size}, &in.value, NULL),
        SN_OK);
    float *x = sn_tensor_data(in.value);
    for (int64_t i = 0; i < p->channels * size * size; i++) x[i] = (float)(i * 7 % 23) / 8 - 1;
    if (sn_session_run(session, &options, &in, 1, &result, 1, &err) != SN_OK)
        fail_msg("%s", err.message);
    memcpy(out, sn_tensor_const_data(result.value), sn_tensor_bytes(result.value));
    sn_value_destroy(in.value);
    sn_value_destroy(result.value);
}

/* A large picture runs the same way after a small one as it does alone, and the small one again. */
static void check_order(const picture *p, const char *disabled, const int64_t sizes[2]) {
    enum { MOST = 32 * 64 * 64 };
    static float alone[2][MOST], mixed[MOST];
    seen want[2] = {{{0}}}, got = {{0}};
    sn_session_options o;
    sn_session_options_init(&o, sizeof o);
    o.disabled_rules = &disabled;
    o.disabled_rule_count = disabled ? 1 : 0;
    for (int i = 0; i < 2; i++) {
        sn_session *session = make(p->text, &o);
        run_picture(session, p, sizes[i], &want[i], alone[i]);
        sn_session_destroy(session);
    }
    assert_string_not_equal(want[0].impl, want[1].impl);
    sn_session *session = make(p->text, &o);
    for (int round = 0; round < 4; round++) {
        int i = round % 2;
        run_picture(session, p, sizes[i], &got, mixed);
        assert_string_equal(got.impl, want[i].impl);
        assert_memory_equal(mixed, alone[i],
                            (size_t)(p->channels * sizes[i] * sizes[i]) * sizeof *mixed);
    }
    sn_session_destroy(session);
}

static void convolutions_follow_shapes(void **state) {
    (void)state;
    check_order(&many, NULL, (int64_t[]){1, 64}); /* direct sums, then fewer products */
    check_order(&many, NULL, (int64_t[]){64, 1});
    check_order(&few, "blocked-layout", (int64_t[]){1, 64}); /* a product, then sums of rows */
    check_order(&few, "blocked-layout", (int64_t[]){64, 1});
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
    assert_true(a->arena.bytes == 64 << 20); /* the one that is large enough */
    sni_pool_return(&pool, a);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(sni_pool_take(&pool, 3 << 20, &a, NULL), SN_OK);
        sni_pool_return(&pool, a);
    }
    assert_true(sni_pool_trim(&pool) == 3 << 20);
    sni_pool_free(&pool);
}

/* An arena that has grown once grows on where it is, and all of it can be written. */
static void workspaces_grow_in_place(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1000, 300 << 10, 500 << 10, 3 << 20, 5 << 20, (6 << 20) - 1};
    sni_pool pool;
    sni_workspace *w;
    const unsigned char *data = NULL;
    int moved = 0;
    assert_int_equal(sni_pool_init(&pool, 0, 0, NULL), SN_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(sni_pool_take(&pool, sizes[i], &w, NULL), SN_OK);
        assert_non_null(w->arena.data);
        assert_int_equal((uintptr_t)w->arena.data % SNI_ALIGN, 0);
        if (sizes[i]) memset(w->arena.data, 1, sizes[i]);
        if (i > 2) moved += w->arena.data != data;
        data = w->arena.data;
        assert_true(w->arena.bytes == sizes[i]);
        sni_pool_return(&pool, w);
    }
    assert_int_equal(moved, 1); /* from 500 KB to 3 MB */
    assert_true(sni_pool_trim(&pool) == sizes[6]);
    sni_pool_free(&pool);
}

static void large_scratch_stays_in_its_place(void **state) {
    (void)state;
    sni_pool pool;
    sni_workspace *w;
    sni_buffer *old = NULL;
    assert_int_equal(sni_pool_init(&pool, 0, 0, NULL), SN_OK);
    assert_int_equal(sni_pool_take(&pool, 100, &w, NULL), SN_OK);
    assert_false(sni_workspace_reserve(w, 1000, &old)); /* that little may move */
    assert_null(w->scratch);
    assert_true(sni_workspace_reserve(w, 1 << 20, &old));
    assert_null(old);
    assert_true(w->scratch->bytes > 16 << 20);
    assert_false(sni_workspace_reserve(w, 2 << 20, &old));
    w->scratch->data[0] = w->scratch->data[w->scratch->bytes - 1] = 1;
    sni_pool_return(&pool, w);
    assert_true(sni_pool_trim(&pool) == 100); /* no step has been given any of it */
    sni_pool_free(&pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_shapes_give_right_results),
        cmocka_unit_test(options_of_other_versions),
        cmocka_unit_test(trimming_frees_and_runs_go_on),
        cmocka_unit_test(packed_weights_count),
        cmocka_unit_test(subnormal_weights),
        cmocka_unit_test(dynamic_steps_use_implementations),
        cmocka_unit_test(views_hold_what_they_show),
        cmocka_unit_test(views_of_one_value_stay_apart),
        cmocka_unit_test(convolutions_follow_shapes),
        cmocka_unit_test(workspaces_shrink_and_go),
        cmocka_unit_test(workspaces_grow_in_place),
        cmocka_unit_test(large_scratch_stays_in_its_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
