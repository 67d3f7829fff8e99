/* test_pad_tile.c - Pad and Tile against one element at a time, over modes, widths and sizes that
 * take each of their ways. */
#include "eval.h"

enum { LIMIT = 1 << 20, AXES = 4 };

static unsigned char data[LIMIT];
static uint64_t seed = 5;

static int64_t draw(int64_t n) {
    return (int64_t)(unit_random(&seed) % (uint32_t)n);
}

static int64_t fill(sn_dtype dtype, int rank, const int64_t *dims) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dims[i];
    size_t bytes = (size_t)n * sni_dtype_width(dtype);
    assert_true(bytes <= LIMIT);
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)unit_random(&seed);
    return n;
}

/* The element of the input that one of the output is; -1: none, the value stands there. */
static int64_t source(const char *mode, int64_t at, int64_t before, int64_t after, int64_t length) {
    int64_t low = before < 0 ? -before : 0, n = length - low + (after < 0 ? after : 0);
    int64_t i = at - (before > 0 ? before : 0);
    if (i >= 0 && i < n) return low + i;
    if (mode[0] == 'c') return -1;
    if (mode[0] == 'e') return low + (i < 0 ? 0 : n - 1);
    while (i < 0 || i >= n) {
        if (mode[0] == 'w')
            i += i < 0 ? n : -n;
        else if (n == 1)
            i = 0;
        else
            i = i < 0 ? -i : 2 * (n - 1) - i;
    }
    return low + i;
}

static void pad_case(sn_dtype dtype, const char *mode, int rank, const int64_t *dims,
                     const int64_t *pads, bool value) {
    eval e;
    eval_start(&e, "Pad", 25);
    static const unsigned char odd[8] = {1, 2, 3, 4, 5, 6, 7, 8}, none[8];
    size_t width = sni_dtype_width(dtype);
    fill(dtype, rank, dims);
    eval_input(&e, dtype, rank, dims, data);
    eval_input(&e, SN_INT64, 1, (int64_t[]){2 * rank}, pads);
    if (value) eval_input(&e, dtype, 0, NULL, odd);
    eval_attr(&e, sni_attr_of_string("mode", mode));
    assert_int_equal(eval_run(&e, 1), SN_OK);
    const sni_tensor *y = &e.out[0].tensor;
    for (int64_t i = 0; i < y->count; i++) {
        int64_t rest = i, at = 0, step = 1;
        for (int a = rank - 1; a >= 0; a--) {
            int64_t from = source(mode, rest % y->dims[a], pads[a], pads[rank + a], dims[a]);
            rest /= y->dims[a];
            at = from < 0 || at < 0 ? -1 : at + from * step;
            step *= dims[a];
        }
        const unsigned char *want = at >= 0 ? data + (size_t)at * width : value ? odd : none;
        if (memcmp((const unsigned char *)y->data + (size_t)i * width, want, width) != 0)
            fail_msg("Pad %s of rank %d, width %zu: element %lld", mode, rank, width, (long long)i);
    }
    eval_end(&e);
}

static const sn_dtype TYPES[] = {SN_UINT8, SN_INT16, SN_FLOAT32, SN_INT64};

static void pads_stand_where_they_should(void **state) {
    (void)state;
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    for (int at = 0; at < 4 * 4; at++) {
        const char *mode = modes[at % 4];
        sn_dtype t = TYPES[at / 4];
        for (int value = 0; value < 2; value++) {
            pad_case(t, mode, 1, (int64_t[]){1}, (int64_t[]){2, 1}, value);
            pad_case(t, mode, 1, (int64_t[]){16000}, (int64_t[]){200, 200}, value);
            pad_case(t, mode, 1, (int64_t[]){100000}, (int64_t[]){31, 7}, value);
            pad_case(t, mode, 1, (int64_t[]){9}, (int64_t[]){50, 41}, value);
            pad_case(t, mode, 1, (int64_t[]){900}, (int64_t[]){-3, 41}, value);
            pad_case(t, mode, 1, (int64_t[]){900}, (int64_t[]){3, -41}, value);
            pad_case(t, mode, 3, (int64_t[]){2, 40, 300}, (int64_t[]){0, 0, 1, 0, 0, 1}, value);
            pad_case(t, mode, 3, (int64_t[]){2, 40, 30}, (int64_t[]){0, 3, 0, 1, 2, 0}, value);
            pad_case(t, mode, 3, (int64_t[]){2, 40, 30}, (int64_t[]){1, -2, 2, 0, 5, -9}, value);
            pad_case(t, mode, 4, (int64_t[]){1, 8, 20, 20}, (int64_t[]){0, 0, 1, 1, 0, 0, 1, 1},
                     value);
        }
        for (int i = 0; i < 60; i++) {
            int64_t dims[AXES], pads[2 * AXES];
            int rank = (int)draw(AXES) + 1;
            for (int a = 0; a < rank; a++) {
                dims[a] = draw(9) + 4;
                pads[a] = draw(7) - 2;
                pads[rank + a] = draw(7) - 2;
            }
            pad_case(t, mode, rank, dims, pads, i % 2);
        }
    }
    pad_case(SN_FLOAT32, "constant", 2, (int64_t[]){3, 0}, (int64_t[]){1, 2, 0, 300}, true);
    pad_case(SN_FLOAT32, "constant", 1, (int64_t[]){5}, (int64_t[]){-9, 400}, true);
    pad_case(SN_FLOAT32, "constant", 1, (int64_t[]){5}, (int64_t[]){400, -90}, false);
    pad_case(SN_FLOAT32, "constant", 1, (int64_t[]){400}, (int64_t[]){INT64_MAX, 1 - INT64_MAX},
             true);
}

static void tile_case(sn_dtype dtype, int rank, const int64_t *dims, const int64_t *times) {
    eval e;
    eval_start(&e, "Tile", 13);
    size_t width = sni_dtype_width(dtype);
    fill(dtype, rank, dims);
    eval_input(&e, dtype, rank, dims, data);
    eval_input(&e, SN_INT64, 1, (int64_t[]){rank}, times);
    assert_int_equal(eval_run(&e, 1), SN_OK);
    const sni_tensor *y = &e.out[0].tensor;
    for (int64_t i = 0; i < y->count; i++) {
        int64_t rest = i, at = 0, step = 1;
        for (int a = rank - 1; a >= 0; a--) {
            at += rest % y->dims[a] % dims[a] * step;
            rest /= y->dims[a];
            step *= dims[a];
        }
        if (memcmp((const unsigned char *)y->data + (size_t)i * width, data + (size_t)at * width,
                   width) != 0)
            fail_msg("Tile of rank %d, width %zu: element %lld", rank, width, (long long)i);
    }
    eval_end(&e);
}

static void tiles_repeat(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof TYPES / sizeof *TYPES; i++) {
        sn_dtype t = TYPES[i];
        for (int64_t n = 1; n < 20; n++) {
            tile_case(t, 2, (int64_t[]){37, n}, (int64_t[]){1, 9});
            tile_case(t, 2, (int64_t[]){n, 3}, (int64_t[]){3, 2});
            tile_case(t, 1, (int64_t[]){n}, (int64_t[]){1000});
        }
        tile_case(t, 1, (int64_t[]){9000}, (int64_t[]){11});
        tile_case(t, 2, (int64_t[]){50, 200}, (int64_t[]){1, 1});
        tile_case(t, 4, (int64_t[]){1, 12, 28, 28}, (int64_t[]){1, 1, 2, 2});
        tile_case(t, 4, (int64_t[]){3, 1, 28, 28}, (int64_t[]){1, 7, 1, 1});
        tile_case(t, 4, (int64_t[]){3, 5, 28, 2}, (int64_t[]){2, 1, 3, 2});
        tile_case(t, 3, (int64_t[]){3, 0, 2}, (int64_t[]){2, 4, 3});
        tile_case(t, 2, (int64_t[]){3, 2}, (int64_t[]){2, 0});
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pads_stand_where_they_should),
        cmocka_unit_test(tiles_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
