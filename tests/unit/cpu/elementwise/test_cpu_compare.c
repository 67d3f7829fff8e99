/* test_cpu_compare.c - comparisons, logic of bools, shifts and plain arithmetic against the
 * reference kernels. Run once per instruction-set tier. */
#include "versus.h"

static versus v;

static const sn_dtype numbers[] = {SN_INT8,   SN_INT16,  SN_INT32,  SN_INT64,   SN_UINT8,
                                   SN_UINT16, SN_UINT32, SN_UINT64, SN_FLOAT32, SN_FLOAT64};
enum { NUMBERS = 10, INTEGERS = 8, UNSIGNED = 4 };

/* An input of n elements: small numbers of which many are the same, and the ends of the type. */
static void operand(sn_dtype dtype, int64_t n) {
    static unsigned char bytes[8 * 40000];
    size_t width = sni_dtype_width(dtype);
    for (int64_t i = 0; i < n; i++) {
        uint32_t r = unit_random(&v.seed);
        int64_t small = (int64_t)(r % 7) - 3;
        float f = (const float[]){NAN, INFINITY, -INFINITY, -0.0f, 0, 0.5f, -1}[r % 7];
        double d = (double)f;
        unsigned char *at = bytes + (size_t)i * width;
        if (dtype == SN_FLOAT32)
            memcpy(at, &f, width);
        else if (dtype == SN_FLOAT64)
            memcpy(at, &d, width);
        else if (dtype == SN_BOOL)
            *at = (unsigned char)(r % 2 ? 0 : r % 3 ? 1 : 255);
        else if (r >> 8 & 1)
            memcpy(at, &small, width);
        else
            for (size_t b = 0; b < width; b++) at[b] = (unsigned char)unit_random(&v.seed);
        if (dtype != SN_BOOL && dtype != SN_FLOAT32 && dtype != SN_FLOAT64 && (r >> 9) % 8 == 0) {
            memset(at, r & 1 << 12 ? 0xff : 0, width); /* the largest, -1 or the ends */
            if (r & 1 << 13) at[width - 1] = (unsigned char)(at[width - 1] ^ 0x80);
        }
    }
    versus_tensor(&v, dtype, 1, &n, bytes);
}

static const int64_t sizes[] = {0, 1, 5, 16, 31, 33, 67, 300, 40000};
enum { SIZES = 9 };

/* Of two tensors, or a tensor and a number. */
static void binary_case(const char *op, sn_dtype dtype, int64_t n, int way) {
    versus_start(&v, "", op);
    operand(dtype, way == 1 ? 1 : n);
    operand(dtype, way == 2 ? 1 : n);
    versus_run(&v, 1, 0);
}

static void comparisons_match(void **state) {
    (void)state;
    static const char *const ops[] = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"};
    for (int o = 0; o < 5; o++)
        for (int t = 0; t < NUMBERS; t++)
            for (int s = 0; s < SIZES; s++)
                for (int way = 0; way < 3; way++) binary_case(ops[o], numbers[t], sizes[s], way);
}

static void bools_match(void **state) {
    (void)state;
    static const char *const ops[] = {"Equal", "And", "Or", "Xor"};
    for (int s = 0; s < SIZES; s++) {
        for (int o = 0; o < 4; o++)
            for (int way = 0; way < 3; way++) binary_case(ops[o], SN_BOOL, sizes[s], way);
        versus_start(&v, "", "Not");
        operand(SN_BOOL, sizes[s]);
        versus_run(&v, 1, 0);
    }
}

static void arithmetic_matches(void **state) {
    (void)state;
    static const char *const ops[] = {"Max", "Min", "Add", "Sub", "Mul"};
    for (int o = 0; o < 5; o++)
        for (int t = 0; t < NUMBERS; t++)
            for (int s = 0; s < SIZES; s++)
                for (int way = 0; way < 3; way++) binary_case(ops[o], numbers[t], sizes[s], way);
    for (int t = 0; t < UNSIGNED; t++) /* the signed ones come first */
        for (int s = 0; s < SIZES; s++) {
            versus_start(&v, "", "Relu");
            operand(numbers[t], sizes[s]);
            versus_run(&v, 1, 0);
        }
}

/* By any number: from the width of the type on nothing is left. */
static void shifts_match(void **state) {
    (void)state;
    for (int t = 0; t < UNSIGNED; t++) {
        sn_dtype dtype = numbers[INTEGERS - UNSIGNED + t];
        size_t width = sni_dtype_width(dtype);
        for (int s = 0; s < SIZES; s++)
            for (int way = 0; way < 6; way++) {
                static unsigned char by[8 * 40000];
                int64_t n = way >= 4 ? 1 : sizes[s];
                versus_start(&v, "", "BitShift");
                operand(dtype, way >= 2 && way < 4 ? 1 : sizes[s]);
                for (int64_t i = 0; i < n; i++) {
                    uint64_t amount = unit_random(&v.seed) % (uint64_t)(8 * width + 4);
                    if (unit_random(&v.seed) % 9 == 0) amount = UINT64_MAX;
                    memcpy(by + (size_t)i * width, &amount, width);
                }
                versus_tensor(&v, dtype, 1, &n, by);
                eval_attr(&v.e, sni_attr_of_string("direction", way & 1 ? "LEFT" : "RIGHT"));
                versus_run(&v, 1, 0);
            }
    }
}

/* Axes that only one of the operands has. */
static void broadcast_matches(void **state) {
    (void)state;
    static const char *const ops[] = {"Less", "Max"};
    for (int o = 0; o < 2; o++) {
        versus_start(&v, "", ops[o]);
        versus_tensor(&v, SN_INT64, 3, (int64_t[]){4, 1, 37}, NULL);
        versus_tensor(&v, SN_INT64, 2, (int64_t[]){5, 1}, NULL);
        versus_run(&v, 1, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparisons_match),  cmocka_unit_test(bools_match),
        cmocka_unit_test(arithmetic_matches), cmocka_unit_test(shifts_match),
        cmocka_unit_test(broadcast_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
