/* test_cpu_moves.c - operators that move elements against the reference kernels. */
#include "versus.h"

static versus v;

static const sn_dtype TYPES[] = {SN_FLOAT32, SN_INT64, SN_UINT8, SN_BOOL, SN_FLOAT64, SN_FLOAT16};
enum { N_TYPES = sizeof TYPES / sizeof *TYPES, LIMIT = 1 << 19 };

/* A tensor of any bytes; a float's may well be a NaN. */
static void any_bytes(sn_dtype dtype, int rank, const int64_t *dims) {
    static unsigned char bytes[LIMIT];
    size_t n = sni_dtype_width(dtype);
    for (int i = 0; i < rank; i++) n *= (size_t)dims[i];
    assert_true(n <= LIMIT);
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)unit_random(&v.seed);
    if (dtype == SN_BOOL)
        for (size_t i = 0; i < n; i++) bytes[i] &= 1;
    versus_tensor(&v, dtype, rank, dims, bytes);
}

/* ---- Where ---- */

static void where_case(sn_dtype dtype, int rank, const int64_t *c, const int64_t *a,
                       const int64_t *b) {
    versus_start(&v, "", "Where");
    versus_tensor(&v, SN_BOOL, rank, c, NULL);
    any_bytes(dtype, rank, a);
    any_bytes(dtype, rank, b);
    versus_run(&v, 1, 0);
}

static void where_matches(void **state) {
    (void)state;
    static const int64_t lengths[] = {0, 1, 3, 15, 16, 17, 63, 64, 65, 200, 20000};
    for (int t = 0; t < N_TYPES; t++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            int64_t n = lengths[i], one = 1;
            where_case(TYPES[t], 1, &n, &n, &n);
            where_case(TYPES[t], 1, &n, &one, &n);
            where_case(TYPES[t], 1, &n, &n, &one);
            where_case(TYPES[t], 1, &n, &one, &one);
            where_case(TYPES[t], 1, &one, &n, &n);
            where_case(TYPES[t], 1, &one, &one, &n);
            where_case(TYPES[t], 1, &one, &n, &one);
        }
        where_case(TYPES[t], 3, (int64_t[]){1, 5, 33}, (int64_t[]){3, 5, 33}, (int64_t[]){1, 1, 1});
        where_case(TYPES[t], 3, (int64_t[]){3, 5, 1}, (int64_t[]){3, 5, 33}, (int64_t[]){1, 1, 33});
        where_case(TYPES[t], 2, (int64_t[]){4, 1}, (int64_t[]){1, 70}, (int64_t[]){4, 1});
    }
}

/* ---- Transpose ---- */

static void transpose_case(sn_dtype dtype, int rank, const int64_t *dims, const int64_t *perm) {
    versus_start(&v, "", "Transpose");
    any_bytes(dtype, rank, dims);
    sni_attr a = {.name = sni_str_of("perm"), .kind = SNI_ATTR_INTS, .count = (size_t)rank};
    a.u.ints = perm;
    eval_attr(&v.e, a);
    versus_run(&v, 1, 0);
}

static void transpose_matches(void **state) {
    (void)state;
    static const int64_t sizes[][2] = {{1, 1},   {3, 5},   {16, 16}, {17, 15},  {64, 64}, {65, 33},
                                       {8, 100}, {100, 7}, {0, 5},   {128, 70}, {40, 200}};
    for (int t = 0; t < N_TYPES; t++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            const int64_t *s = sizes[i];
            transpose_case(TYPES[t], 2, s, (int64_t[]){1, 0});
            transpose_case(TYPES[t], 3, (int64_t[]){2, s[0], s[1]}, (int64_t[]){0, 2, 1});
            transpose_case(TYPES[t], 3, (int64_t[]){s[0], 2, s[1]}, (int64_t[]){2, 1, 0});
            transpose_case(TYPES[t], 4, (int64_t[]){2, 3, s[0], s[1]}, (int64_t[]){0, 2, 3, 1});
            transpose_case(TYPES[t], 4, (int64_t[]){2, s[0], 3, s[1]}, (int64_t[]){0, 2, 1, 3});
        }
    }
}

/* ---- Resize ---- */

static void resize_case(sn_dtype dtype, int rank, const int64_t *dims, float scale,
                        const char *mode, const char *coord, bool antialias) {
    float scales[5] = {1, 1, scale, scale, scale},
          roi[10] = {0, 0, 0.1f, 0.2f, 0.3f, 1, 1, 1, 0.7f};
    int64_t n = rank, twice = 2 * rank;
    versus_start(&v, "", "Resize");
    if (rank == 2) scales[1] = scale;
    for (int i = 0; i < rank; i++) roi[rank + i] = 0.8f;
    v.special = 40;
    versus_tensor(&v, dtype, rank, dims, NULL);
    if (strcmp(coord, "tf_crop_and_resize") == 0)
        versus_tensor(&v, SN_FLOAT32, 1, &twice, roi);
    else
        versus_without(&v);
    versus_weight(&v, SN_FLOAT32, 1, &n, scales);
    eval_attr(&v.e, sni_attr_of_string("mode", mode));
    eval_attr(&v.e, sni_attr_of_string("coordinate_transformation_mode", coord));
    eval_attr(&v.e, sni_attr_of_int("antialias", antialias));
    versus_run(&v, 1, 1e-5);
}

static void resize_matches(void **state) {
    (void)state;
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const coords[] = {"half_pixel", "align_corners", "asymmetric",
                                         "tf_crop_and_resize"};
    static const float scales[] = {2, 0.5f, 1.3f, 0.3f, 4, 0.07f, 1};
    for (int m = 0; m < 3; m++)
        for (int c = 0; c < 4; c++)
            for (int s = 0; s < 7; s++) {
                bool anti = m > 0 && scales[s] < 1;
                resize_case(SN_FLOAT32, 4, (int64_t[]){1, 2, 17, 75}, scales[s], modes[m],
                            coords[c], false);
                resize_case(SN_FLOAT32, 4, (int64_t[]){2, 1, 40, 33}, scales[s], modes[m],
                            coords[c], anti);
                resize_case(SN_FLOAT32, 3, (int64_t[]){2, 2, 200}, scales[s], modes[m], coords[c],
                            false);
                resize_case(SN_UINT8, 4, (int64_t[]){1, 2, 20, 40}, scales[s], modes[m], coords[c],
                            false);
            }
    resize_case(SN_INT64, 4, (int64_t[]){1, 2, 20, 40}, 2, "nearest", "asymmetric", false);
    resize_case(SN_INT32, 4, (int64_t[]){1, 2, 20, 40}, 1.7f, "nearest", "asymmetric", false);
    resize_case(SN_FLOAT64, 4, (int64_t[]){1, 2, 20, 40}, 1.7f, "linear", "asymmetric", false);
    resize_case(SN_FLOAT32, 4, (int64_t[]){1, 0, 20, 40}, 2, "linear", "half_pixel", false);
    resize_case(SN_FLOAT32, 5, (int64_t[]){1, 3, 17, 19, 8}, 2, "nearest", "half_pixel", false);
    resize_case(SN_FLOAT32, 5, (int64_t[]){1, 2, 6, 9, 21}, 2, "linear", "half_pixel", false);
    resize_case(SN_FLOAT32, 4, (int64_t[]){1, 16, 100, 90}, 2, "linear", "half_pixel", false);
}

/* (2, 3, 4, 5, last) floats, each its own number, to `up` times as many rows and `wide` times as
 * many columns. */
static void nearest_case(int64_t last, int64_t up, int64_t wide) {
    int64_t dims[5] = {2, 3, 4, 5, last}, n = 5, count = 2 * 3 * 4 * 5 * last;
    float scales[5] = {1, 1, (float)up, (float)wide, 1}, *x = malloc((size_t)count * sizeof *x);
    eval e;
    assert_non_null(x);
    for (int64_t i = 0; i < count; i++) x[i] = (float)i;
    eval_start(&e, "Resize", 13);
    eval_input(&e, SN_FLOAT32, 5, dims, x);
    eval_input(&e, SN_FLOAT32, 0, NULL, NULL);
    eval_input(&e, SN_FLOAT32, 1, &n, scales);
    eval_attr(&e, sni_attr_of_string("mode", "nearest"));
    eval_attr(&e, sni_attr_of_string("coordinate_transformation_mode", "asymmetric"));
    eval_attr(&e, sni_attr_of_string("nearest_mode", "floor"));
    assert_int_equal(eval_run(&e, 1), SN_OK);
    assert_int_equal(e.out[0].tensor.count, count * up * wide);
    const float *y = e.out[0].tensor.data;
    for (int64_t i = 0; i < count * up * wide; i++) {
        int64_t column = i / last % (5 * wide), row = i / last / (5 * wide) % (4 * up);
        int64_t plane = i / last / (5 * wide) / (4 * up);
        int64_t from = ((plane * 4 + row / up) * 5 + column / wide) * last + i % last;
        assert_true(y[i] == (float)from);
    }
    eval_end(&e);
    free(x);
}

static void nearest_picks(void **state) {
    (void)state;
    static const int64_t lasts[] = {16, 8, 1, 5, 33};
    for (int i = 0; i < 5; i++)
        for (int64_t up = 1; up <= 3; up++)
            for (int64_t wide = 1; wide <= 3; wide++) nearest_case(lasts[i], up, wide);
}

/* ---- GridSample ---- */

static void sample_case(int rank, const int64_t *dims, const int64_t *points, const char *mode,
                        const char *padding, int align) {
    static float grid[4000];
    int64_t shape[5] = {dims[0]}, n = dims[0];
    for (int i = 1; i < rank - 1; i++) n *= shape[i] = points[i - 1];
    n *= shape[rank - 1] = rank - 2;
    versus_start(&v, "", "GridSample");
    v.special = 50;
    versus_tensor(&v, SN_FLOAT32, rank, dims, NULL);
    for (int64_t i = 0; i < n; i++) {
        grid[i] = (float)(unit_random(&v.seed) % 3001) / 1000.0f - 1.5f;
        if (unit_random(&v.seed) % 8 == 0)
            grid[i] = (const float[]){-1, 0, 1, NAN, INFINITY}[unit_random(&v.seed) % 5];
    }
    versus_tensor(&v, SN_FLOAT32, rank, shape, grid);
    eval_attr(&v.e, sni_attr_of_string("mode", mode));
    eval_attr(&v.e, sni_attr_of_string("padding_mode", padding));
    eval_attr(&v.e, sni_attr_of_int("align_corners", align));
    versus_run(&v, 1, 2e-6);
}

static void sample_matches(void **state) {
    (void)state;
    static const char *const modes[] = {"linear", "nearest", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    for (int m = 0; m < 3; m++)
        for (int p = 0; p < 3; p++)
            for (int align = 0; align < 2; align++) {
                sample_case(4, (int64_t[]){2, 3, 9, 11}, (int64_t[]){13, 17}, modes[m], paddings[p],
                            align);
                sample_case(4, (int64_t[]){1, 2, 1, 40}, (int64_t[]){3, 3}, modes[m], paddings[p],
                            align);
                sample_case(4, (int64_t[]){1, 5, 30, 30}, (int64_t[]){0, 3}, modes[m], paddings[p],
                            align);
                sample_case(5, (int64_t[]){1, 2, 5, 6, 7}, (int64_t[]){4, 5, 9}, modes[m],
                            paddings[p], align);
            }
}

/* ---- RotaryEmbedding ---- */

static void rotary_case(int64_t heads, int64_t length, int64_t size, int64_t rotated,
                        int interleaved) {
    int64_t half = (rotated ? rotated : size) / 2;
    versus_start(&v, "", "RotaryEmbedding");
    v.special = 100;
    versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){2, heads, length, size}, NULL);
    v.special = 0;
    for (int i = 0; i < 2; i++)
        versus_tensor(&v, SN_FLOAT32, 3, (int64_t[]){2, length, half}, NULL);
    eval_attr(&v.e, sni_attr_of_int("interleaved", interleaved));
    if (rotated) eval_attr(&v.e, sni_attr_of_int("rotary_embedding_dim", rotated));
    versus_run(&v, 1, 1e-6);
}

static void rotary_matches(void **state) {
    (void)state;
    static const int64_t sizes[] = {2, 6, 16, 32, 34, 64, 66, 128};
    for (int s = 0; s < 8; s++)
        for (int interleaved = 0; interleaved < 2; interleaved++) {
            rotary_case(3, 5, sizes[s], 0, interleaved);
            rotary_case(1, 1, sizes[s], 0, interleaved);
            rotary_case(2, 0, sizes[s], 0, interleaved);
            if (sizes[s] > 16) rotary_case(2, 7, sizes[s], sizes[s] / 4 * 2, interleaved);
        }
    rotary_case(12, 128, 64, 0, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resize_matches),    cmocka_unit_test(rotary_matches),
        cmocka_unit_test(sample_matches),    cmocka_unit_test(where_matches),
        cmocka_unit_test(transpose_matches), cmocka_unit_test(nearest_picks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
