/* test_elementwise.c - what the elementwise operators do where C would trap or leave it open, and
 * broadcasting against a plain walk. */
#include "eval.h"

#include "base/floats.h"
#include "ops/core/tensor_util.h"

#include <math.h>

/* Runs `type` on two lists of n elements and compares the n elements it gives. */
static void binary_case(const char *type, int64_t version, sn_dtype dtype, int64_t n, const void *a,
                        const void *b, const void *expected) {
    eval e;
    eval_start(&e, type, version);
    eval_input(&e, dtype, 1, &n, a);
    eval_input(&e, dtype, 1, &n, b);
    if (strcmp(type, "BitShift") == 0) eval_attr(&e, sni_attr_of_string("direction", "LEFT"));
    assert_int_equal(eval_run(&e, 1), SN_OK);
    assert_int_equal(e.out[0].tensor.count, n);
    assert_memory_equal(e.out[0].tensor.data, expected, sni_tensor_bytes(&e.out[0].tensor));
    eval_end(&e);
}

static void integers_never_trap(void **state) {
    (void)state;
    binary_case("Div", 14, SN_INT32, 5, (int32_t[]){7, -7, 5, INT32_MIN, 0},
                (int32_t[]){2, 2, 0, -1, -1}, (int32_t[]){3, -3, 0, INT32_MIN, 0});
    binary_case("Div", 14, SN_INT64, 3, (int64_t[]){INT64_MIN, 9, INT64_MIN}, (int64_t[]){-1, 0, 1},
                (int64_t[]){INT64_MIN, 0, INT64_MIN});
    binary_case("Div", 14, SN_INT8, 3, (int8_t[]){-128, 127, 1}, (int8_t[]){-1, -1, 0},
                (int8_t[]){-128, -127, 0});
    binary_case("Div", 14, SN_UINT8, 2, (uint8_t[]){200, 9}, (uint8_t[]){3, 0}, (uint8_t[]){66, 0});
    binary_case("Mod", 13, SN_INT32, 7, (int32_t[]){7, -7, 7, -7, INT32_MIN, 5, 6},
                (int32_t[]){3, 3, -3, -3, -1, 0, 3}, (int32_t[]){1, 2, -2, -1, 0, 0, 0});
    binary_case("Mod", 13, SN_UINT16, 2, (uint16_t[]){7, 7}, (uint16_t[]){4, 0},
                (uint16_t[]){3, 0});
    binary_case("Add", 14, SN_INT8, 2, (int8_t[]){127, -128}, (int8_t[]){1, -1},
                (int8_t[]){-128, 127});
    binary_case("Mul", 14, SN_UINT16, 1, (uint16_t[]){65535}, (uint16_t[]){65535}, (uint16_t[]){1});
    binary_case("Mul", 14, SN_INT64, 1, (int64_t[]){INT64_MAX}, (int64_t[]){2}, (int64_t[]){-2});
    binary_case("Sub", 14, SN_UINT8, 1, (uint8_t[]){1}, (uint8_t[]){2}, (uint8_t[]){255});
    binary_case("BitShift", 11, SN_UINT8, 3, (uint8_t[]){1, 1, 3}, (uint8_t[]){7, 8, 255},
                (uint8_t[]){128, 0, 0});
    binary_case("BitShift", 11, SN_UINT64, 2, (uint64_t[]){1, 1}, (uint64_t[]){63, 64},
                (uint64_t[]){(uint64_t)1 << 63, 0});
}

/* n elements of a width moved by b[0] (single) or one by one, and against what C says. */
static void shift_case(sn_dtype dtype, int64_t n, const void *a, const void *b, bool single,
                       bool right) {
    eval e;
    size_t width = sni_dtype_width(dtype);
    eval_start(&e, "BitShift", 11);
    eval_input(&e, dtype, 1, &n, a);
    eval_input(&e, dtype, 1, single ? (int64_t[]){1} : &n, b);
    eval_attr(&e, sni_attr_of_string("direction", right ? "RIGHT" : "LEFT"));
    assert_int_equal(eval_run(&e, 1), SN_OK);
    for (int64_t i = 0; i < n; i++) {
        uint64_t u = 0, by = 0, got = 0, mask = UINT64_MAX >> (64 - 8 * width);
        memcpy(&u, sni_element(a, i, width), width);
        memcpy(&by, sni_element(b, single ? 0 : i, width), width);
        memcpy(&got, sni_element(e.out[0].tensor.data, i, width), width);
        assert_int_equal(got, by >= 8 * width ? 0 : right ? u >> by : u << by & mask);
    }
    eval_end(&e);
}

static void shifts_of_all_widths(void **state) {
    (void)state;
    static uint8_t bytes[2][65536];
    static uint16_t halves[2][8191];
    static uint32_t words[2][4099];
    uint64_t seed = 3;
    for (int i = 0; i < 65536; i++) {
        bytes[0][i] = (uint8_t)i;
        bytes[1][i] = (uint8_t)(i >> 8);
    }
    for (int i = 0; i < 8191; i++) {
        halves[0][i] = (uint16_t)unit_random(&seed);
        halves[1][i] = (uint16_t)(i % 16 ? i % 23 : 251 * i);
    }
    for (int i = 0; i < 4099; i++) {
        words[0][i] = unit_random(&seed);
        words[1][i] = (uint32_t)i % 41;
    }
    for (int right = 0; right < 2; right++) {
        shift_case(SN_UINT8, 65536, bytes[0], bytes[1], false, right);
        shift_case(SN_UINT16, 8191, halves[0], halves[1], false, right);
        shift_case(SN_UINT32, 4099, words[0], words[1], false, right);
        for (int by = 0; by < 18; by++) {
            shift_case(SN_UINT8, 300, bytes[0], bytes[1] + 256 * by, true, right);
            shift_case(SN_UINT16, 300, halves[0], halves[1] + by, true, right);
        }
    }
}

static void powers_of_integers(void **state) {
    (void)state;
    binary_case("Pow", 15, SN_INT32, 7, (int32_t[]){2, -3, 0, 0, 1, -1, 2},
                (int32_t[]){10, 3, 0, -1, -5, -3, -1}, (int32_t[]){1024, -27, 1, 0, 1, -1, 0});
    binary_case("Pow", 15, SN_INT64, 3, (int64_t[]){2, 3, -1}, (int64_t[]){63, 1000, INT64_MAX},
                (int64_t[]){INT64_MIN, (int64_t)0x5616937bd3b85b21, -1});
    eval e;
    eval_start(&e, "Pow", 15);
    eval_input(&e, SN_INT32, 1, (int64_t[]){3}, (int32_t[]){2, 4, -2});
    eval_input(&e, SN_FLOAT32, 1, (int64_t[]){3}, (float[]){40, 0.5f, 0.5f});
    assert_int_equal(eval_run(&e, 1), SN_OK);
    const int32_t *z = e.out[0].tensor.data;
    assert_int_equal(z[0], INT32_MAX);
    assert_int_equal(z[1], 2);
    assert_int_equal(z[2], 0);
    eval_end(&e);
}

/* The remainder of floats: the divisor's sign without fmod, the dividend's with it. */
static void float_mod(void **state) {
    (void)state;
    const float a[] = {-4.3f, 7.2f, 5.0f, -6.0f}, b[] = {2.1f, -3.4f, 8.0f, 3.0f};
    for (int fmod_attr = 0; fmod_attr < 2; fmod_attr++) {
        eval e;
        eval_start(&e, "Mod", 13);
        eval_input(&e, SN_FLOAT32, 1, (int64_t[]){4}, a);
        eval_input(&e, SN_FLOAT32, 1, (int64_t[]){4}, b);
        eval_attr(&e, sni_attr_of_int("fmod", fmod_attr));
        assert_int_equal(eval_run(&e, 1), SN_OK);
        const float *c = e.out[0].tensor.data;
        for (int i = 0; i < 4; i++) {
            float r = fmodf(a[i], b[i]);
            if (!fmod_attr && r != 0 && (r < 0) != (b[i] < 0)) r += b[i];
            assert_true(c[i] == r);
        }
        eval_end(&e);
    }
}

static void nan_wins(void **state) {
    (void)state;
    const char *const types[] = {"Max", "Min"};
    for (int t = 0; t < 2; t++) {
        eval e;
        eval_start(&e, types[t], 13);
        eval_input(&e, SN_FLOAT32, 1, (int64_t[]){4}, (float[]){NAN, 1, 2, 3});
        eval_input(&e, SN_FLOAT32, 1, (int64_t[]){4}, (float[]){1, NAN, 5, 3});
        eval_input(&e, SN_FLOAT32, 0, NULL, (float[]){2.5f});
        assert_int_equal(eval_run(&e, 1), SN_OK);
        const float *y = e.out[0].tensor.data;
        assert_true(isnan(y[0]) && isnan(y[1]));
        assert_true(y[2] == (t == 0 ? 5 : 2) && y[3] == (t == 0 ? 3 : 2.5f));
        eval_end(&e);
    }
}

static void clip_with_crossed_ends(void **state) {
    (void)state;
    eval e;
    eval_start(&e, "Clip", 13);
    eval_input(&e, SN_FLOAT32, 1, (int64_t[]){4}, (float[]){-9, 1.5f, 9, NAN});
    eval_input(&e, SN_FLOAT32, 0, NULL, (float[]){2});
    eval_input(&e, SN_FLOAT32, 0, NULL, (float[]){1});
    assert_int_equal(eval_run(&e, 1), SN_OK);
    const float *y = e.out[0].tensor.data;
    assert_true(y[0] == 1 && y[1] == 1 && y[2] == 1 && isnan(y[3]));
    eval_end(&e);

    eval_start(&e, "Clip", 13);
    eval_input(&e, SN_INT8, 1, (int64_t[]){3}, (int8_t[]){-128, 0, 127});
    eval_input(&e, SN_INT8, 0, NULL, NULL);
    eval_input(&e, SN_INT8, 0, NULL, (int8_t[]){5});
    assert_int_equal(eval_run(&e, 1), SN_OK);
    assert_memory_equal(e.out[0].tensor.data, ((int8_t[]){-128, 0, 5}), 3);
    eval_end(&e);
}

static void attributes_became_inputs(void **state) {
    (void)state;
    eval e;
    eval_start(&e, "Selu", 1);
    eval_input(&e, SN_FLOAT32, 1, (int64_t[]){2}, (float[]){1, -1000});
    assert_int_equal(eval_run(&e, 1), SN_OK);
    const float *y = e.out[0].tensor.data;
    assert_true(y[0] == 1.0507f && y[1] == 1.0507f * (1.6732f * -1.0f));
    eval_end(&e);

    eval_start(&e, "Cast", 1);
    eval_input(&e, SN_FLOAT32, 1, (int64_t[]){2}, (float[]){1.9f, -1.9f});
    eval_attr(&e, sni_attr_of_string("to", "INT64"));
    assert_int_equal(eval_run(&e, 1), SN_OK);
    assert_int_equal(e.out[0].tensor.dtype, SN_INT64);
    assert_memory_equal(e.out[0].tensor.data, ((int64_t[]){1, -1}), 16);
    eval_end(&e);
}

/* A shape of up to 5 axes and a second one that is broadcast to it or that it is broadcast to. */
static void random_shapes(uint64_t *seed, int *rank, int64_t *dims, int ranks[2],
                          int64_t shapes[2][SN_MAX_RANK]) {
    *rank = (int)(unit_random(seed) % 6);
    for (int i = 0; i < *rank; i++)
        dims[i] = unit_random(seed) % 9 == 0 ? (int64_t)(unit_random(seed) % 40)
                                             : 1 + (int64_t)(unit_random(seed) % 5);
    int whole = (int)(unit_random(seed) % 2);
    for (int t = 0; t < 2; t++) {
        ranks[t] = t == whole ? *rank : (int)(unit_random(seed) % (uint32_t)(*rank + 1));
        for (int i = 0; i < ranks[t]; i++) {
            int64_t size = dims[*rank - ranks[t] + i];
            bool one = unit_random(seed) % 3 == 0;
            shapes[t][i] = one ? 1 : size;
        }
    }
    for (int i = 0; i < *rank; i++) {
        int64_t size = 1;
        for (int t = 0; t < 2; t++) {
            int at = i - (*rank - ranks[t]);
            if (at >= 0 && shapes[t][at] != 1) size = shapes[t][at];
        }
        dims[i] = size;
    }
}

static void broadcasting(void **state) {
    (void)state;
    static const sn_dtype types[] = {SN_FLOAT32, SN_FLOAT16, SN_INT16, SN_FLOAT64};
    uint64_t seed = 5;
    for (int round = 0; round < 400; round++) {
        sn_dtype dtype = types[round % 4];
        int rank, ranks[2];
        int64_t dims[SN_MAX_RANK], shapes[2][SN_MAX_RANK], strides[2][SN_MAX_RANK];
        random_shapes(&seed, &rank, dims, ranks, shapes);
        eval e;
        eval_start(&e, "Sub", 14);
        for (int t = 0; t < 2; t++) {
            int64_t count = 1;
            for (int i = 0; i < ranks[t]; i++) count *= shapes[t][i];
            int16_t *codes = test_calloc((size_t)count + 1, 8);
            eval_input(&e, dtype, ranks[t], shapes[t], codes);
            test_free(codes);
            for (int64_t i = 0; i < count; i++) {
                float v = (float)(unit_random(&seed) % 64);
                void *p = sni_element(e.in[t].tensor.data, i, sni_dtype_width(dtype));
                if (dtype == SN_FLOAT32) *(float *)p = v;
                if (dtype == SN_FLOAT64) *(double *)p = (double)v;
                if (dtype == SN_INT16) *(int16_t *)p = (int16_t)v;
                if (dtype == SN_FLOAT16) *(uint16_t *)p = sni_f32_to_f16(v);
            }
        }
        assert_int_equal(eval_run(&e, 1), SN_OK);
        const sni_tensor *y = &e.out[0].tensor;
        assert_int_equal(y->rank, rank);
        for (int i = 0; i < rank; i++) assert_int_equal(y->dims[i], dims[i]);
        if (y->count) {
            for (int t = 0; t < 2; t++)
                sni_broadcast_strides(&e.in[t].tensor, rank, dims, strides[t]);
            sni_walk w;
            sni_walk_init(&w, rank, dims, 2, (const int64_t *[]){strides[0], strides[1]});
            int64_t i = 0;
            do {
                double expected = sni_number_at(&e.in[0].tensor, w.offset[0]) -
                                  sni_number_at(&e.in[1].tensor, w.offset[1]);
                assert_true(sni_number_at(y, i++) == expected);
            } while (sni_walk_next(&w));
            assert_int_equal(i, y->count);
        }
        eval_end(&e);
    }
}

static void long_rows_with_threads(void **state) {
    (void)state;
    enum { ROWS = 3, COLUMNS = 50001 };
    float *a = test_calloc(ROWS * COLUMNS, sizeof *a), b[ROWS] = {1, 2, 3};
    for (int i = 0; i < ROWS * COLUMNS; i++) a[i] = (float)(i % 1000);
    eval e;
    eval_start(&e, "Mul", 14);
    eval_input(&e, SN_FLOAT32, 2, (int64_t[]){ROWS, COLUMNS}, a);
    eval_input(&e, SN_FLOAT32, 2, (int64_t[]){ROWS, 1}, b);
    assert_int_equal(eval_run(&e, 1), SN_OK);
    const float *y = e.out[0].tensor.data;
    for (int i = 0; i < ROWS * COLUMNS; i++) assert_true(y[i] == a[i] * b[i / COLUMNS]);
    eval_end(&e);
    test_free(a);
}

static void wrong_shapes_are_refused(void **state) {
    (void)state;
    eval e;
    eval_start(&e, "Add", 14);
    eval_input(&e, SN_FLOAT32, 1, (int64_t[]){3}, (float[]){1, 2, 3});
    eval_input(&e, SN_FLOAT32, 1, (int64_t[]){2}, (float[]){1, 2});
    assert_int_equal(eval_run(&e, 1), SN_BAD_DATA);
    eval_end(&e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_never_trap),
        cmocka_unit_test(shifts_of_all_widths),
        cmocka_unit_test(powers_of_integers),
        cmocka_unit_test(float_mod),
        cmocka_unit_test(nan_wins),
        cmocka_unit_test(clip_with_crossed_ends),
        cmocka_unit_test(attributes_became_inputs),
        cmocka_unit_test(broadcasting),
        cmocka_unit_test(long_rows_with_threads),
        cmocka_unit_test(wrong_shapes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
