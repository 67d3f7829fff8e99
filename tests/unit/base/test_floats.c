/* test_floats.c - every code of the narrow types, and rounding against exact arithmetic. */
#include "unit.h"

#include "base/floats.h"

#include <math.h>

static uint8_t narrow8(sn_dtype dtype, float f, bool saturate) {
    uint8_t code;
    sni_narrow(dtype, &f, &code, 1, saturate);
    return code;
}

static float widen8(sn_dtype dtype, unsigned code) {
    uint8_t byte = (uint8_t)code;
    return sni_narrow_to_f32(dtype, &byte);
}

static const sn_dtype small[] = {SN_FLOAT8E4M3FN, SN_FLOAT8E4M3FNUZ, SN_FLOAT8E5M2,
                                 SN_FLOAT8E5M2FNUZ, SN_FLOAT4E2M1};

static void half_known_values(void **state) {
    (void)state;
    assert_true(sni_f16_to_f32(0x3c00) == 1.0f);
    assert_true(sni_f16_to_f32(0xc000) == -2.0f);
    assert_true(sni_f16_to_f32(0x7bff) == 65504.0f);
    assert_true(sni_f16_to_f32(0x0001) == 0x1p-24f);
    assert_true(sni_f16_to_f32(0x03ff) == 1023 * 0x1p-24f);
    assert_true(isinf(sni_f16_to_f32(0x7c00)) && isnan(sni_f16_to_f32(0x7e01)));
    assert_int_equal(sni_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(sni_f32_to_f16(65519.0f), 0x7bff);
    assert_int_equal(sni_f32_to_f16(0x1p-25f), 0x0000);
    assert_int_equal(sni_f32_to_f16(0x1.8p-25f), 0x0001);
    assert_int_equal(sni_f32_to_f16(-0.0f), 0x8000);
    assert_int_equal(sni_f32_to_f16(-INFINITY), 0xfc00);
    assert_true((sni_f32_to_f16(NAN) & 0x7fff) > 0x7c00);
}

static void half_round_trip(void **state) {
    (void)state;
    for (unsigned h = 0; h < 0x10000; h++) {
        float f = sni_f16_to_f32((uint16_t)h), b = sni_bf16_to_f32((uint16_t)h);
        if (isnan(f))
            assert_true(isnan(sni_f16_to_f32(sni_f32_to_f16(f))));
        else
            assert_int_equal(sni_f32_to_f16(f), h);
        if (!isnan(f)) assert_int_equal(sni_f64_to_f16((double)f), h);
        if (isnan(b))
            assert_true(isnan(sni_bf16_to_f32(sni_f32_to_bf16(b))));
        else
            assert_int_equal(sni_f32_to_bf16(b), h);
    }
}

/* Between two neighbours the midpoint goes to the even one and its neighbours to either side. */
static void half_rounds_to_nearest_even(void **state) {
    (void)state;
    for (unsigned h = 0; h < 0x7bff; h++) {
        double low = sni_f16_to_f32((uint16_t)h), high = sni_f16_to_f32((uint16_t)(h + 1));
        double middle = (low + high) / 2;
        unsigned even = h % 2 ? h + 1 : h;
        assert_int_equal(sni_f32_to_f16((float)middle), even);
        assert_int_equal(sni_f64_to_f16(middle), even);
        assert_int_equal(sni_f64_to_f16(nextafter(middle, 0)), h);
        assert_int_equal(sni_f64_to_f16(nextafter(middle, INFINITY)), h + 1);
        assert_int_equal(sni_f32_to_f16(-nextafterf((float)middle, 0)), h | 0x8000);
        assert_int_equal(sni_f32_to_f16(nextafterf((float)middle, INFINITY)), h + 1);
    }
    assert_int_equal(sni_f64_to_f16(1e300), 0x7c00);
    assert_int_equal(sni_f64_to_f16(-1e-300), 0x8000);
}

static void bfloat_rounds(void **state) {
    (void)state;
    assert_int_equal(sni_f32_to_bf16(0x1.01p0f), 0x3f80); /* tie, to even */
    assert_int_equal(sni_f32_to_bf16(0x1.03p0f), 0x3f82);
    assert_int_equal(sni_f32_to_bf16(0x1.010002p0f), 0x3f81);
    assert_int_equal(sni_f32_to_bf16(3.4028235e38f), 0x7f80);
}

static void small_round_trip(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof small / sizeof *small; t++) {
        unsigned codes = small[t] == SN_FLOAT4E2M1 ? 16 : 256;
        for (unsigned code = 0; code < codes; code++) {
            float f = widen8(small[t], code);
            uint8_t back = narrow8(small[t], f, false);
            if (isnan(f))
                assert_true(isnan(widen8(small[t], back)));
            else
                assert_int_equal(back, code);
        }
    }
}

/* The nearest code by looking at all of them; ties to the even code. */
static unsigned nearest(sn_dtype dtype, unsigned codes, float f) {
    unsigned best = 0;
    double least = INFINITY;
    for (unsigned code = 0; code < codes / 2; code++) {
        float v = widen8(dtype, code);
        if (isnan(v) || isinf(v)) continue;
        double away = fabs((double)v - fabs((double)f));
        if (away < least || (away == least && code % 2 == 0)) {
            least = away;
            best = code;
        }
    }
    bool zero_is_one = dtype == SN_FLOAT8E4M3FNUZ || dtype == SN_FLOAT8E5M2FNUZ;
    return signbit(f) && !(best == 0 && zero_is_one) ? best | codes / 2 : best;
}

static void small_rounds_to_nearest_even(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (size_t t = 0; t < sizeof small / sizeof *small; t++) {
        unsigned codes = small[t] == SN_FLOAT4E2M1 ? 16 : 256;
        for (int i = 0; i < 4000; i++) {
            float f = ldexpf((float)unit_random(&seed) / 0x1p31f - 0.5f,
                             (int)(unit_random(&seed) % 36) - 20);
            if (i % 4 == 0) { /* exactly between two codes */
                unsigned code = unit_random(&seed) % (codes / 2 - 6);
                f = (widen8(small[t], code) + widen8(small[t], code + 1)) / 2;
            }
            assert_int_equal(narrow8(small[t], f, true), nearest(small[t], codes, f));
        }
    }
}

/* The tables of ONNX's Cast for values that no code stands for. */
static void small_special_values(void **state) {
    (void)state;
    static const struct {
        sn_dtype dtype;
        uint8_t inf_saturated, inf, large, nan, minus_zero;
    } rows[] = {{SN_FLOAT8E4M3FN, 0x7e, 0x7f, 0x7f, 0x7f, 0x80},
                {SN_FLOAT8E4M3FNUZ, 0x7f, 0x80, 0x80, 0x80, 0x00},
                {SN_FLOAT8E5M2, 0x7b, 0x7c, 0x7c, 0x7e, 0x80},
                {SN_FLOAT8E5M2FNUZ, 0x7f, 0x80, 0x80, 0x80, 0x00},
                {SN_FLOAT4E2M1, 0x07, 0x07, 0x07, 0x08, 0x08}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sn_dtype d = rows[i].dtype;
        assert_int_equal(narrow8(d, INFINITY, true), rows[i].inf_saturated);
        assert_int_equal(narrow8(d, 1e6f, true), rows[i].inf_saturated);
        assert_int_equal(narrow8(d, INFINITY, false), rows[i].inf);
        assert_int_equal(narrow8(d, 1e6f, false), rows[i].large);
        assert_int_equal(narrow8(d, NAN, true), rows[i].nan);
        assert_int_equal(narrow8(d, -0.0f, true), rows[i].minus_zero);
        assert_int_equal(narrow8(d, 0.0f, true), 0);
    }
    assert_int_equal(narrow8(SN_FLOAT8E4M3FN, 464.0f, false), 0x7e); /* [x] is 448 */
    assert_int_equal(narrow8(SN_FLOAT8E4M3FN, 465.0f, false), 0x7f);
    assert_int_equal(narrow8(SN_FLOAT8E4M3FN, -INFINITY, true), 0xfe);
    assert_int_equal(narrow8(SN_FLOAT8E4M3FN, -NAN, true), 0xff);
}

static unsigned e8m0(float f, bool saturate, sni_e8m0_round mode) {
    uint8_t code;
    sni_narrow_e8m0(&f, &code, 1, saturate, mode);
    return code;
}

static void powers_of_two(void **state) {
    (void)state;
    for (unsigned code = 0; code < 255; code++) {
        float f = widen8(SN_FLOAT8E8M0, code);
        assert_true(f == ldexpf(1, (int)code - 127));
        for (int mode = SNI_E8M0_UP; mode <= SNI_E8M0_NEAREST; mode++)
            assert_int_equal(e8m0(f, false, (sni_e8m0_round)mode), code);
        if (code == 254) break;
        assert_int_equal(e8m0(f * 1.25f, true, SNI_E8M0_UP), code + 1);
        assert_int_equal(e8m0(f * 1.25f, true, SNI_E8M0_DOWN), code);
        assert_int_equal(e8m0(f * 1.25f, true, SNI_E8M0_NEAREST), code);
        assert_int_equal(e8m0(f * 1.5f, true, SNI_E8M0_NEAREST), code + 1);
    }
    assert_true(isnan(widen8(SN_FLOAT8E8M0, 255)));
    assert_int_equal(e8m0(0, true, SNI_E8M0_UP), 0);
    assert_int_equal(e8m0(0, false, SNI_E8M0_NEAREST), 255);
    assert_int_equal(e8m0(0x1p-130f, true, SNI_E8M0_DOWN), 0);
    assert_int_equal(e8m0(INFINITY, true, SNI_E8M0_UP), 254);
    assert_int_equal(e8m0(INFINITY, false, SNI_E8M0_UP), 255);
    assert_int_equal(e8m0(-1, true, SNI_E8M0_UP), 255);
    assert_int_equal(e8m0(NAN, true, SNI_E8M0_UP), 255);
    assert_int_equal(narrow8(SN_FLOAT8E8M0, 1.1f, true), 128);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_known_values),
        cmocka_unit_test(half_round_trip),
        cmocka_unit_test(half_rounds_to_nearest_even),
        cmocka_unit_test(bfloat_rounds),
        cmocka_unit_test(small_round_trip),
        cmocka_unit_test(small_rounds_to_nearest_even),
        cmocka_unit_test(small_special_values),
        cmocka_unit_test(powers_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
