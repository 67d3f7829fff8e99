/* test_convert.c - casts: every pair of types on values at the ends of their ranges, texts, and
 * quantization with one scale, one for each slice and one for each block. */
#include "eval.h"

#include "ops/core/convert.h"
#include "ops/core/tensor_util.h"

#include <math.h>

static const sn_dtype numbers[] = {SN_INT8,    SN_INT16,   SN_INT32,   SN_INT64,
                                   SN_UINT8,   SN_UINT16,  SN_UINT32,  SN_UINT64,
                                   SN_FLOAT32, SN_FLOAT64, SN_FLOAT16, SN_BFLOAT16};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static bool is_float(sn_dtype t) {
    sni_class cls = sni_dtype_get(t)->cls;
    return cls == SNI_CLASS_F || cls == SNI_CLASS_S;
}

/* The nearest end of an integer type's range, or the value cut towards 0. */
static double saturated(sn_dtype to, double v) {
    const sni_dtype_facts *f = sni_dtype_get(to);
    bool has_sign = f->cls == SNI_CLASS_I;
    double high = ldexp(1, (int)f->bits - has_sign), low = has_sign ? -high : 0;
    if (isnan(v)) return 0;
    if (v >= high) return high - 1; /* rounds to `high` for 64 bits, as the result does */
    return v < low ? low : trunc(v);
}

static void floats_to_integers_saturate(void **state) {
    (void)state;
    const double values[] = {
        0,         0.9,    -0.9,         127.5,        128,           -128.5,
        -129,      255.9,  256,          -1,           32767,         65535,
        65536,     1e9,    2147483647.0, 2147483648.0, -2147483649.0, 4294967296.0,
        9.3e18,    1.9e19, -9.3e18,      1e30,         -1e30,         INFINITY,
        -INFINITY, NAN,    3.99,         -7.01};
    for (int from = 0; from < NUMBERS; from++) {
        if (!is_float(numbers[from])) continue;
        for (int to = 0; to < NUMBERS; to++) {
            if (is_float(numbers[to])) continue;
            for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
                uint64_t source = 0, result = 0;
                double exact, got;
                sni_convert(SN_FLOAT64, &values[i], numbers[from], &source, 1, NULL);
                sni_convert(numbers[from], &source, SN_FLOAT64, &exact, 1, NULL);
                sni_convert(numbers[from], &source, numbers[to], &result, 1, NULL);
                sni_convert(numbers[to], &result, SN_FLOAT64, &got, 1, NULL);
                assert_true(got == saturated(numbers[to], exact));
            }
        }
    }
}

static void integers_keep_low_bits(void **state) {
    (void)state;
    const int64_t values[] = {0,         1,      -1,        127,       128,       255,       256,
                              65536 + 7, -32769, INT64_MIN, INT64_MAX, INT32_MIN, INT32_MAX, 200};
    for (int to = 0; to < NUMBERS; to++) {
        if (is_float(numbers[to])) continue;
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            uint64_t result = 0;
            sni_convert(SN_INT64, &values[i], numbers[to], &result, 1, NULL);
            assert_memory_equal(&result, &values[i], sni_dtype_width(numbers[to]));
        }
    }
    int8_t small[4];
    sni_convert(SN_INT32, (int32_t[]){7, 8, -9, 23}, SN_INT4, small, 4, NULL);
    assert_memory_equal(small, ((int8_t[]){7, -8, 7, 7}), 4);
    sni_convert(SN_FLOAT32, (float[]){-3, 2, 1.7f, -2}, SN_INT2, small, 4, NULL);
    assert_memory_equal(small, ((int8_t[]){1, -2, 1, -2}), 4);
    sni_convert(SN_FLOAT32, (float[]){NAN, -0.0f, 0.3f, -2}, SN_BOOL, small, 4, NULL);
    assert_memory_equal(small, ((int8_t[]){1, 0, 1, 1}), 4);
}

/* Half of an ulp and a little: rounding to float first would make it a tie. */
static void doubles_round_once(void **state) {
    (void)state;
    const double v[] = {1 + ldexp(1, -8) + ldexp(1, -40), 1 + ldexp(1, -8) - ldexp(1, -40),
                        -1 - ldexp(1, -8) - ldexp(1, -40), ldexp(1, -160), 1e300};
    uint16_t h[5];
    sni_convert(SN_FLOAT64, v, SN_BFLOAT16, h, 5, NULL);
    assert_int_equal(h[0], 0x3f81);
    assert_int_equal(h[1], 0x3f80);
    assert_int_equal(h[2], 0xbf81);
    assert_int_equal(h[3], 0);
    assert_int_equal(h[4], 0x7f80);
    const double w[] = {1 + ldexp(1, -11) + ldexp(1, -40), 65519.999999};
    sni_convert(SN_FLOAT64, w, SN_FLOAT16, h, 2, NULL);
    assert_int_equal(h[0], 0x3c01);
    assert_int_equal(h[1], 0x7bff);
}

static void cast_case(sn_dtype from, const void *data, sn_dtype to, int64_t n, eval *e) {
    eval_start(e, "Cast", 25);
    eval_input(e, from, 1, &n, data);
    eval_attr(e, sni_attr_of_int("to", to));
    assert_int_equal(eval_run(e, 1), SN_OK);
}

static void numbers_as_text(void **state) {
    (void)state;
    const double v[] = {
        0,   -0.5,    314.15926, 1e15, 1e16,     1e-4,      1e-5, -12345678.9,
        0.1, 1.0 / 3, 5e-324,    NAN,  INFINITY, -INFINITY, 100,  1.7976931348623157e308};
    const char *const texts[] = {
        "0",     "-0.5",        "314.15926", "1000000000000000",       "1e+16",  "0.0001",
        "1e-05", "-12345678.9", "0.1",       "0.3333333333333333",     "5e-324", "NaN",
        "INF",   "-INF",        "100",       "1.7976931348623157e+308"};
    enum { N = sizeof v / sizeof *v };
    eval e;
    cast_case(SN_FLOAT64, v, SN_STRING, N, &e);
    const sni_str *s = e.out[0].tensor.data;
    for (int i = 0; i < N; i++) assert_string_equal(s[i].p, texts[i]);
    eval_end(&e);
    cast_case(SN_FLOAT32, (float[]){0.039187793f, 16777216, 0.1f}, SN_STRING, 3, &e);
    s = e.out[0].tensor.data;
    assert_string_equal(s[0].p, "0.039187793");
    assert_string_equal(s[1].p, "16777216");
    assert_string_equal(s[2].p, "0.1");
    eval_end(&e);
    cast_case(SN_UINT64, (uint64_t[]){UINT64_MAX, 0}, SN_STRING, 2, &e);
    s = e.out[0].tensor.data;
    assert_string_equal(s[0].p, "18446744073709551615");
    eval_end(&e);
}

static void text_as_numbers(void **state) {
    (void)state;
    const sni_str texts[] = {SNI_STR("3.14"), SNI_STR("1e-5"), SNI_STR("+INF"),
                             SNI_STR("-inf"), SNI_STR("nan"),  SNI_STR("1E8")};
    eval e;
    cast_case(SN_STRING, texts, SN_FLOAT32, 6, &e);
    const float *f = e.out[0].tensor.data;
    assert_true(f[0] == 3.14f && f[1] == 1e-5f && f[2] == INFINITY && f[3] == -INFINITY);
    assert_true(isnan(f[4]) && f[5] == 1e8f);
    eval_end(&e);
    const sni_str whole[] = {SNI_STR("100.5"), SNI_STR("-7"), SNI_STR("9223372036854775807")};
    cast_case(SN_STRING, whole, SN_INT64, 3, &e);
    assert_memory_equal(e.out[0].tensor.data, ((int64_t[]){100, -7, INT64_MAX}), 24);
    eval_end(&e);
    const sni_str bad[] = {SNI_STR("12 monkeys"), SNI_STR(""), SNI_STR("1\0002")};
    for (int i = 0; i < 3; i++) {
        eval_start(&e, "Cast", 25);
        eval_input(&e, SN_STRING, 1, (int64_t[]){1}, &bad[i]);
        eval_attr(&e, sni_attr_of_int("to", SN_FLOAT32));
        assert_int_equal(eval_run(&e, 1), SN_BAD_DATA);
        eval_end(&e);
    }
}

/* Quantizes x of shape (2, 5, 3) with the given scales, brings it back, and compares each element
 * with a scale picked by hand. */
static void quantize_case(int scale_rank, const int64_t *scale_dims, int64_t block) {
    enum { A = 2, B = 5, C = 3 };
    float x[A][B][C], scales[A * B * C];
    uint8_t zeros[A * B * C];
    uint64_t seed = 3;
    for (int i = 0; i < A * B * C; i++) {
        (&x[0][0][0])[i] = (float)(unit_random(&seed) % 2000) / 10 - 100;
        scales[i] = 0.5f + (float)(unit_random(&seed) % 8) / 4;
        zeros[i] = (uint8_t)(100 + unit_random(&seed) % 50);
    }
    eval e;
    eval_start(&e, "QuantizeLinear", 25);
    eval_input(&e, SN_FLOAT32, 3, (int64_t[]){A, B, C}, x);
    eval_input(&e, SN_FLOAT32, scale_rank, scale_dims, scales);
    eval_input(&e, SN_UINT8, scale_rank, scale_dims, zeros);
    if (block) eval_attr(&e, sni_attr_of_int("block_size", block));
    assert_int_equal(eval_run(&e, 1), SN_OK);
    const uint8_t *y = e.out[0].tensor.data;
    for (int i = 0; i < A * B * C; i++) {
        int a = i / (B * C), b = i / C % B, c = i % C;
        int at = scale_rank == 0 ? 0 : b;
        if (block) at = (a * (int)((B + block - 1) / block) + b / (int)block) * C + c;
        float q = rintf(x[a][b][c] / scales[at]) + zeros[at];
        assert_int_equal(y[i], q < 0 ? 0 : q > 255 ? 255 : (int)q);
    }
    eval back;
    eval_start(&back, "DequantizeLinear", 25);
    eval_input(&back, SN_UINT8, 3, (int64_t[]){A, B, C}, y);
    eval_input(&back, SN_FLOAT32, scale_rank, scale_dims, scales);
    eval_input(&back, SN_UINT8, scale_rank, scale_dims, zeros);
    if (block) eval_attr(&back, sni_attr_of_int("block_size", block));
    assert_int_equal(eval_run(&back, 1), SN_OK);
    const float *again = back.out[0].tensor.data;
    for (int i = 0; i < A * B * C; i++)
        if (y[i] != 0 && y[i] != 255) assert_true(fabsf(again[i] - (&x[0][0][0])[i]) <= 1.13f);
    eval_end(&back);
    eval_end(&e);
}

static void quantization_grids(void **state) {
    (void)state;
    quantize_case(0, NULL, 0);
    quantize_case(1, (int64_t[]){5}, 0);
    quantize_case(3, (int64_t[]){2, 3, 3}, 2);
    quantize_case(3, (int64_t[]){2, 1, 3}, 5);
    quantize_case(3, (int64_t[]){2, 5, 3}, 1);
    eval e;
    eval_start(&e, "QuantizeLinear", 25);
    eval_input(&e, SN_FLOAT32, 2, (int64_t[]){1, 4}, (float[]){1, 2, 3, 4});
    eval_input(&e, SN_FLOAT32, 1, (int64_t[]){3}, (float[]){1, 1, 1});
    assert_int_equal(eval_run(&e, 1), SN_BAD_DATA);
    eval_end(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floats_to_integers_saturate),
        cmocka_unit_test(integers_keep_low_bits),
        cmocka_unit_test(doubles_round_once),
        cmocka_unit_test(numbers_as_text),
        cmocka_unit_test(text_as_numbers),
        cmocka_unit_test(quantization_grids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
