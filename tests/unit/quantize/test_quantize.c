/* test_quantize.c - the parts of quantisation and what its interface refuses. */
#include "unit.h"

#include "quantize/fit.h"
#include "quantize/second_order.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* ---- Observers ---- */

static sni_observer *observed(const float *x, int64_t count, int64_t channels) {
    sni_observer *o = sni_observer_new(channels, -1);
    int64_t dims[2] = {channels ? count / channels : 1, channels ? channels : count};
    assert_non_null(o);
    assert_int_equal(sni_observer_add(o, x, 2, dims, NULL), SN_OK);
    return o;
}

static void test_observer_grows(void **state) {
    (void)state;
    float small[4] = {0.1f, 0.2f, -0.1f, 0}, large[2] = {1000, -3};
    int64_t dims[1] = {2};
    sni_observer *o = observed(small, 4, 0);
    assert_int_equal(sni_observer_add(o, large, 1, dims, NULL), SN_OK);
    uint64_t sum = 0;
    for (int i = 0; i < SNI_OBSERVER_BINS; i++) sum += o->bins[i];
    assert_int_equal(sum, 6);
    assert_int_equal(o->count, 6);
    assert_true(o->from <= -3 && o->from + o->width * SNI_OBSERVER_BINS > 1000);
    assert_true(o->low == -3 && o->high == 1000);
    sni_observer_free(o);
}

static void test_observer_is_the_same_in_any_pieces(void **state) {
    (void)state;
    enum { N = 1000 };
    float x[N];
    for (int i = 0; i < N; i++) x[i] = sinf((float)i) * (float)(i % 7);
    sni_observer *whole = observed(x, N, 10), *parts = sni_observer_new(10, 1);
    for (int i = 0; i < N; i += 100) {
        int64_t dims[2] = {10, 10};
        assert_int_equal(sni_observer_add(parts, x + i, 2, dims, NULL), SN_OK);
    }
    assert_true(whole->low == parts->low && whole->high == parts->high);
    for (int i = 0; i < 10; i++) {
        assert_true(fabs(whole->sum[i] - parts->sum[i]) < 1e-9);
        assert_true(whole->largest[i] == parts->largest[i]);
    }
    assert_int_equal(whole->per_channel, parts->per_channel);
    sni_observer_free(whole);
    sni_observer_free(parts);
}

static void test_observer_refuses_nan(void **state) {
    (void)state;
    sni_observer *o = sni_observer_new(0, 0);
    float x[3] = {1, NAN, INFINITY};
    int64_t dims[1] = {3}, none[2] = {3, 0};
    sn_error err = {0};
    float low, high;
    assert_int_equal(sni_observer_add(o, x, 2, none, &err), SN_OK);
    assert_int_equal(sni_observer_add(o, x, 1, dims, &err), SN_BAD_DATA);
    assert_non_null(strstr(err.message, "2 of its 3"));
    for (int m = SN_CALIBRATE_MINMAX; m <= SN_CALIBRATE_MSE; m++) {
        sni_observer_range(o, (sn_calibration)m, &low, &high);
        assert_true(low == 0 && high == 0);
    }
    sni_observer_free(o);
}

/* One far number among many near ones: min-max keeps it, the others clip it. */
static void test_ranges(void **state) {
    (void)state;
    enum { N = 100000 };
    float *x = malloc(N * sizeof *x), low, high;
    for (int i = 0; i < N; i++) x[i] = (float)(i % 1000) / 1000 - 0.5f;
    x[77] = 40;
    sni_observer *o = observed(x, N, 0);
    sni_observer_range(o, SN_CALIBRATE_MINMAX, &low, &high);
    assert_true(low == -0.5f && high == 40);
    for (int m = SN_CALIBRATE_PERCENTILE; m <= SN_CALIBRATE_MSE; m++) {
        sni_observer_range(o, (sn_calibration)m, &low, &high);
        assert_true(low <= 0 && low >= -0.55f);
        assert_true(high >= 0 && high <= 40);
    }
    sni_observer_range(o, SN_CALIBRATE_PERCENTILE, &low, &high);
    assert_true(high < 1 && low < -0.4f);
    sni_observer_free(o);
    free(x);
}

/* ---- Fits ---- */

static double error_of(const float *w, int64_t count, int levels, float scale, int zero) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        float v = fminf(fmaxf(rintf(w[i] / scale) + (float)zero, 0), (float)(levels - 1));
        sum += pow((double)(w[i] - (v - (float)zero) * scale), 2);
    }
    return sum;
}

static void test_fit_block(void **state) {
    (void)state;
    float w[32], scale;
    int zero;
    for (int levels = 4; levels <= 16; levels *= 4)
        for (int seed = 0; seed < 50; seed++) {
            float low = 0, high = 0;
            for (int i = 0; i < 32; i++) {
                w[i] = sinf((float)(i * 7 + seed * 13)) * expf(cosf((float)(i + seed)));
                low = fminf(low, w[i]);
                high = fmaxf(high, w[i]);
            }
            sni_q_fit_block(w, NULL, 32, levels, &scale, &zero);
            float plain = (high - low) / (float)(levels - 1);
            assert_true(scale > 0 && zero >= 0 && zero < levels);
            assert_true(error_of(w, 32, levels, scale, zero) <=
                        error_of(w, 32, levels, plain, (int)rintf(-low / plain)) * 1.0001);
        }
    memset(w, 0, sizeof w);
    sni_q_fit_block(w, NULL, 32, 16, &scale, &zero);
    assert_true(scale > 0 && isfinite(scale));
    for (int i = 0; i < 32; i++) w[i] = (float)(i % 16 - 8) * 0.25f; /* on the grid: no error */
    sni_q_fit_block(w, NULL, 32, 16, &scale, &zero);
    assert_true(error_of(w, 32, 16, scale, zero) < 1e-10);
}

/* ---- The whole, on a model of text ---- */

static const char TEXT[] =
    "<ir_version: 8, opset_import: [\"\": 17]>\n"
    "g (float[N,16] x) => (float[N,4] y)\n"
    "<float[16,4] W = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,"
    "29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,50,51,52,53,54,55,56,57,58,59,"
    "60,61,62,63,64}> {\n"
    "  y = MatMul(x, W)\n"
    "}\n";

static sn_model *load(const char *text) {
    sn_model *model = NULL;
    sn_error err = {0};
    if (sn_model_load_text(text, strlen(text), &model, &err) != SN_OK) fail_msg("%s", err.message);
    return model;
}

enum { ROWS = 8 };

static sn_status get_sample(void *ctx, size_t index, sn_binding *inputs, size_t *count,
                            sn_error *err) {
    int64_t dims[2] = {ROWS, 16};
    const float *value = ctx;
    SN_TRY(sn_tensor_create(SN_FLOAT32, 2, dims, &inputs[0].value, err));
    float *x = sn_tensor_data(inputs[0].value);
    for (size_t i = 0; i < ROWS * 16; i++) x[i] = value ? *value : sinf((float)(i * (index + 3)));
    inputs[0].name = "x";
    *count = 1;
    return SN_OK;
}

static const sn_samples SAMPLES = {3, get_sample, NULL};

static sn_quantize_options options_of(sn_quantize_to to) {
    sn_quantize_options o;
    sn_quantize_options_init(&o, sizeof o);
    o.to = to;
    o.samples = &SAMPLES;
    o.may_be_slower = true;
    return o;
}

static void test_every_precision(void **state) {
    (void)state;
    static const double most[] = {0, 1e-3, 1e-3, 2e-2, 0.3, 1e-5, 1e-3, 2e-2};
    sn_model *model = load(TEXT), *made;
    for (int to = SN_QUANTIZE_TO_INT8; to <= SN_QUANTIZE_TO_MIXED; to++) {
        sn_quantize_options o = options_of((sn_quantize_to)to);
        sn_quantize_report *report = NULL;
        sn_quantize_summary s;
        sn_quantize_layer l;
        sn_error err = {0};
        made = NULL;
        if (sn_quantize(model, &o, &made, &report, &err) != SN_OK) fail_msg("%s", err.message);
        sn_quantize_report_summary(report, &s);
        assert_true(s.loss >= 0 && s.loss <= most[to]);
        assert_int_equal(s.layer_count, 1);
        assert_true(sn_quantize_report_layer(report, 0, &l));
        assert_false(sn_quantize_report_layer(report, 1, &l));
        assert_string_not_equal(sn_quantize_to_name(l.precision), "");
        sn_quantize_report_destroy(report);
        sn_model_destroy(made);
    }
    sn_model_destroy(model);
}

static void expect(const sn_model *model, const sn_quantize_options *o, sn_status want,
                   const char *word) {
    sn_model *made = NULL;
    sn_error err = {0};
    assert_int_equal(sn_quantize(model, o, &made, NULL, &err), want);
    if (!strstr(err.message, word)) fail_msg("'%s' lacks '%s'", err.message, word);
    assert_null(made);
}

static int stop(void *ctx, const char *phase, size_t done, size_t total) {
    (void)phase;
    (void)done;
    (void)total;
    return --*(int *)ctx <= 0;
}

static void test_refused(void **state) {
    (void)state;
    sn_model *model = load(TEXT);
    sn_quantize_options o = options_of(SN_QUANTIZE_TO_INT8);
    o.max_loss = 0;
    expect(model, &o, SN_LIMIT, "cannot be reached");
    int left = 2;
    o = options_of(SN_QUANTIZE_TO_INT8);
    o.progress = stop;
    o.progress_ctx = &left;
    expect(model, &o, SN_CANCELLED, "cancelled");
    float nan = NAN;
    const sn_samples bad = {1, get_sample, &nan}, none = {0, get_sample, NULL};
    o = options_of(SN_QUANTIZE_TO_INT4);
    o.samples = &bad;
    expect(model, &o, SN_BAD_DATA, "sample 0: input 'x'");
    o.samples = &none;
    expect(model, &o, SN_INVALID_ARGUMENT, "no samples");
    o.samples = NULL;
    o.max_loss = 0.1;
    expect(model, &o, SN_INVALID_ARGUMENT, "without samples");
    o = options_of((sn_quantize_to)9);
    expect(model, &o, SN_INVALID_ARGUMENT, "no precision");
    o = options_of(SN_QUANTIZE_TO_FLOAT);
    expect(model, &o, SN_INVALID_ARGUMENT, "no precision");
    o = options_of(SN_QUANTIZE_TO_INT4);
    o.block_size = 33;
    expect(model, &o, SN_INVALID_ARGUMENT, "blocks of 33");
    o = options_of(SN_QUANTIZE_TO_INT4);
    o.metric = SN_METRIC_SCORE;
    expect(model, &o, SN_INVALID_ARGUMENT, "a score");
    sn_model_destroy(model);
    model = load("<ir_version: 8, opset_import: [\"\": 17]>\n"
                 "g (float[N,16] x) => (float[N,16] y) { y = Relu(x) }");
    o = options_of(SN_QUANTIZE_TO_INT8);
    expect(model, &o, SN_INVALID_MODEL, "none with weights");
    sn_model_destroy(model);
}

static void test_prune_refuses(void **state) {
    (void)state;
    sn_model *model = load(TEXT), *made = NULL;
    sn_prune_options o;
    sn_error err = {0};
    sn_prune_options_init(&o, sizeof o);
    for (int i = 0; i < 3; i++) {
        o.sparsity = i == 0 ? 0 : i == 1 ? 1 : (double)NAN;
        assert_int_equal(sn_prune(model, &o, &made, NULL, &err), SN_INVALID_ARGUMENT);
    }
    o.sparsity = 0.5;
    assert_int_equal(sn_prune(model, &o, &made, NULL, &err), SN_OK);
    sn_model_destroy(made);
    sn_model_destroy(model);
}

/* ---- Second order ---- */

/* What is made up for leaves the outputs nearer than what is only rounded. */
static void test_compensation(void **state) {
    (void)state;
    /* U of H = [[2, 1], [1, 2]]: H^-1 = U^T U = [[2/3, -1/3], [-1/3, 2/3]]. */
    float u[4] = {sqrtf(2.0f / 3), -sqrtf(1.0f / 6), 0, sqrtf(1.0f / 2)}, row[2] = {1, 1};
    sni_qfactor f = {2, u};
    sni_q_compensate(&f, row, 0, 0);
    assert_true(row[0] == 0);
    assert_true(fabsf(row[1] - 1.5f) < 1e-6f); /* least e^T H e with e[0] = -1: e[1] = 1/2 */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_observer_grows),
        cmocka_unit_test(test_observer_is_the_same_in_any_pieces),
        cmocka_unit_test(test_observer_refuses_nan),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_fit_block),
        cmocka_unit_test(test_every_precision),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_prune_refuses),
        cmocka_unit_test(test_compensation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
