/* test_cpu_loops.c - reductions, pools, normalisation of channels and along axes, and RoiAlign
 * against the reference kernels. */
#include "versus.h"

static versus v;

static int64_t draw(int64_t n) {
    return (int64_t)(unit_random(&v.seed) % (uint32_t)n);
}

/* ---- Reductions ---- */

static void reduce_case(const char *op, sn_dtype dtype, int rank, const int64_t *dims, int n_axes,
                        const int64_t *axes, int special) {
    versus_start(&v, "", op);
    v.special = special;
    versus_tensor(&v, dtype, rank, dims, NULL);
    if (n_axes) versus_weight(&v, SN_INT64, 1, (int64_t[]){n_axes}, axes);
    versus_run(&v, 1, 1e-6);
}

static void reductions_match(void **state) {
    (void)state;
    static const char *const ops[] = {"ReduceSum",       "ReduceMean", "ReduceMax",
                                      "ReduceMin",       "ReduceL1",   "ReduceL2",
                                      "ReduceSumSquare", "ReduceProd", "ReduceLogSumExp"};
    static const sn_dtype types[] = {SN_FLOAT32, SN_FLOAT64, SN_INT32, SN_INT64};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (int t = 0; t < 4; t++) {
            int special = t < 2 ? 50 : 0;
            if (t >= 2 && o == 8) continue;
            reduce_case(ops[o], types[t], 2, (int64_t[]){3, 67}, 1, (int64_t[]){1}, special);
            reduce_case(ops[o], types[t], 2, (int64_t[]){3, 67}, 1, (int64_t[]){0}, special);
            reduce_case(ops[o], types[t], 2, (int64_t[]){5, 300}, 0, NULL, special);
            reduce_case(ops[o], types[t], 3, (int64_t[]){4, 7, 33}, 2, (int64_t[]){0, 2}, special);
            reduce_case(ops[o], types[t], 3, (int64_t[]){4, 70, 1}, 1, (int64_t[]){1}, special);
            reduce_case(ops[o], types[t], 2, (int64_t[]){100, 700}, 1, (int64_t[]){-2}, 0);
            reduce_case(ops[o], types[t], 2, (int64_t[]){43, 1501}, 1, (int64_t[]){0},
                        20 * special);
            reduce_case(ops[o], types[t], 2, (int64_t[]){2, 1501}, 1, (int64_t[]){1}, 20 * special);
            reduce_case(ops[o], types[t], 2, (int64_t[]){2, 0}, 1, (int64_t[]){0}, 0);
            reduce_case(ops[o], types[t], 1, (int64_t[]){1}, 0, NULL, 0);
        }
}

static void extremes_match(void **state) {
    (void)state;
    static const sn_dtype types[] = {SN_FLOAT32, SN_UINT8, SN_INT8};
    static const int64_t sizes[] = {0, 1, 7, 15, 16, 17, 63, 64, 65, 100, 128, 769};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int special = 0; special <= (t == 0 ? 400 : 0); special += 200) {
                const int64_t dims[] = {5, sizes[i]};
                reduce_case("ReduceMax", types[t], 2, dims, 1, (int64_t[]){1}, special);
                reduce_case("ReduceMin", types[t], 2, dims, 1, (int64_t[]){1}, special);
                reduce_case("ReduceMin", types[t], 2, dims, 1, (int64_t[]){0}, special);
            }
}

/* ---- Functions of one number ---- */

static void map_case(const char *op, int64_t n, float scale, int special) {
    versus_start(&v, "", op);
    v.scale = scale;
    v.special = special;
    versus_tensor(&v, SN_FLOAT32, 1, &n, NULL);
    versus_run(&v, 1, 3e-7);
}

static void functions_match(void **state) {
    (void)state;
    static const char *const ops[] = {"Floor", "Ceil", "Round", "Sin", "Cos", "Atan"};
    static const int64_t sizes[] = {0, 1, 7, 16, 33, 1000};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            map_case(ops[o], sizes[s], 1, 0);
            map_case(ops[o], sizes[s], 7, 20);
            map_case(ops[o], sizes[s], 300, 0);
            map_case(ops[o], sizes[s], 8000, 0);
            map_case(ops[o], sizes[s], 1e6f, 0);
        }
    map_case("Sin", 200000, 1000, 0);
    map_case("Atan", 200000, 4, 0);
}

/* Operands with the numbers that divisions of integers stumble over. */
static void whole_numbers(int64_t n) {
    static int32_t x[300];
    for (int64_t i = 0; i < n; i++) {
        x[i] = (int32_t)(unit_random(&v.seed) << draw(2) * 16) >> draw(31);
        if (draw(5) == 0) x[i] = (const int32_t[]){0, -1, 1, INT32_MIN, INT32_MAX}[draw(5)];
    }
    versus_tensor(&v, SN_INT32, 1, &n, x);
}

static void long_numbers(int64_t n) {
    static int64_t x[300];
    for (int64_t i = 0; i < n; i++) {
        x[i] = (int64_t)((uint64_t)unit_random(&v.seed) << 32 | unit_random(&v.seed)) >> draw(63);
        if (draw(5) == 0) x[i] = (const int64_t[]){0, -1, 1, INT64_MIN, INT64_MAX}[draw(5)];
    }
    versus_tensor(&v, SN_INT64, 1, &n, x);
}

static void whole_numbers_match(void **state) {
    (void)state;
    static const int64_t sizes[] = {0, 1, 5, 16, 33, 300};
    for (int s = 0; s < 6; s++)
        for (int round = 0; round < 20; round++) {
            int64_t n = sizes[s];
            for (int f = 0; f < 6; f++) {
                versus_start(&v, "", (const char *const[]){"Abs", "Neg", "Sign"}[f / 2]);
                if (f % 2)
                    long_numbers(n);
                else
                    whole_numbers(n);
                versus_run(&v, 1, 0);
            }
            for (int way = 0; way < 3; way++) {
                versus_start(&v, "", "Div");
                whole_numbers(way == 1 ? 1 : n);
                whole_numbers(way == 2 ? 1 : n);
                versus_run(&v, 1, 0);
            }
            versus_start(&v, "", "IsInf");
            v.special = 3;
            versus_tensor(&v, SN_FLOAT32, 1, &n, NULL);
            eval_attr(&v.e, sni_attr_of_int("detect_negative", round & 1));
            eval_attr(&v.e, sni_attr_of_int("detect_positive", round >> 1 & 1));
            versus_run(&v, 1, 0);
        }
}

/* Numbers whose roundings to float16 and to integers are close: between floats, between float16s,
 * beyond both. */
static double wide_number(float f) {
    switch (draw(6)) {
    case 0:
        return (double)f + 0.99999999;
    case 1: /* halfway between two float16, or next to it */
        return (1 + (double)(2 * draw(1024) + 1) / 2048) * ldexp(1, (int)draw(34) - 18) +
               (double)(draw(3) - 1) * 1e-13;
    case 2:
        return (double)f * 1e-8;
    case 3:
        return (double)f * (draw(2) ? 1e200 : 1e-200);
    default:
        return (double)f;
    }
}

static void cast_case(sn_dtype from, sn_dtype to, int64_t n) {
    static double values[512];
    unsigned char *bytes = (unsigned char *)values;
    versus_start(&v, "", "Cast");
    for (int64_t i = 0; i < n; i++) {
        float f = (const float[]){1, 200, 1e5f, 3e9f, 1e19f}[draw(5)] *
                  ((float)draw(20001) / 10000.0f - 1.0f);
        if (draw(6) == 0)
            f = (const float[]){NAN,
                                INFINITY,
                                -INFINITY,
                                -0.0f,
                                2147483648.0f,
                                -2147483648.0f,
                                9223372036854775808.0f,
                                255.5f,
                                -0.5f,
                                128}[draw(10)];
        if (from == SN_FLOAT32)
            memcpy(bytes + 4 * i, &f, 4);
        else if (from == SN_FLOAT64)
            values[i] = wide_number(f);
        else
            for (size_t b = 0; b < sni_dtype_width(from); b++)
                bytes[(size_t)i * sni_dtype_width(from) + b] =
                    (unsigned char)(from == SN_BOOL ? draw(2)
                                    : draw(3)       ? draw(256)
                                                    : 0);
    }
    versus_tensor(&v, from, 1, &n, values);
    eval_attr(&v.e, sni_attr_of_int("to", to));
    versus_run(&v, 1, 0);
}

static void casts_match(void **state) {
    (void)state;
    static const sn_dtype types[] = {SN_FLOAT32, SN_FLOAT64, SN_INT32, SN_INT64,
                                     SN_UINT8,   SN_INT8,    SN_BOOL,  SN_FLOAT16};
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < 8; b++) {
            bool halves = types[a] == SN_FLOAT16 || types[b] == SN_FLOAT16;
            if (halves && (a == b || types[a] == SN_FLOAT32 || types[b] == SN_FLOAT32)) continue;
            cast_case(types[a], types[b], 0);
            cast_case(types[a], types[b], 1);
            cast_case(types[a], types[b], 77);
            cast_case(types[a], types[b], 512);
        }
}

/* ---- Pools ---- */

/* The list is the caller's, until the case has run. */
static void list(const char *name, const int64_t *values, size_t n) {
    eval_attr(
        &v.e,
        (sni_attr){.name = sni_str_of(name), .kind = SNI_ATTR_INTS, .count = n, .u.ints = values});
}

static void pool_case(const char *op, const int64_t *dims, int64_t kernel, int64_t stride,
                      int64_t pad, int64_t dilation, int include) {
    int64_t across = kernel + draw(2);
    versus_start(&v, "", op);
    v.special = strcmp(op, "MaxPool") == 0 ? 60 : 400; /* sums of many overflow in another order */
    versus_tensor(&v, SN_FLOAT32, 4, dims, NULL);
    list("kernel_shape", (const int64_t[]){kernel, across}, 2);
    list("strides", (const int64_t[]){stride, stride}, 2);
    list("pads", (const int64_t[]){pad, pad, pad, pad}, 4);
    list("dilations", (const int64_t[]){dilation, dilation}, 2);
    if (include) eval_attr(&v.e, sni_attr_of_int("count_include_pad", 1));
    versus_run(&v, 1, 1e-6);
}

/* Of 1 and of 3 axes. */
static void deep_pool_case(const char *op, int64_t kernel, int64_t stride, int64_t pad) {
    static const int64_t dims[] = {2, 3, 9, 10, 37};
    for (int axes = 1; axes <= 3; axes += 2) {
        int64_t k[3] = {kernel, kernel + 1, kernel}, s[3] = {stride, stride, stride};
        int64_t p[6] = {pad, pad, pad, pad, 0, pad};
        int64_t shape[5] = {2, 3, axes == 1 ? 300 : dims[2], dims[3], dims[4]};
        versus_start(&v, "", op);
        versus_tensor(&v, SN_FLOAT32, 2 + axes, shape, NULL);
        list("kernel_shape", k, (size_t)axes);
        list("strides", s, (size_t)axes);
        list("pads", p, 2 * (size_t)axes);
        versus_run(&v, 1, 1e-6);
    }
}

static void pools_match(void **state) {
    (void)state;
    for (int64_t kernel = 1; kernel <= 5; kernel++)
        for (int64_t stride = 1; stride <= 5; stride++)
            for (int64_t pad = 0; pad < (kernel > 1 ? 2 : 1); pad++) {
                deep_pool_case("MaxPool", kernel, stride, pad);
                deep_pool_case("AveragePool", kernel, stride, pad);
            }
    static const int64_t shapes[][4] = {{1, 3, 17, 40}, {2, 2, 9, 9}, {1, 1, 40, 7}, {0, 2, 9, 9}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int64_t kernel = 1; kernel <= 4; kernel++)
            for (int64_t stride = 1; stride <= 3; stride++)
                for (int64_t pad = 0; pad < (kernel > 1 ? 2 : 1); pad++)
                    for (int64_t dilation = 1; dilation <= (kernel < 4 ? 2 : 1); dilation++) {
                        pool_case("MaxPool", shapes[s], kernel, stride, pad, dilation, 0);
                        pool_case("AveragePool", shapes[s], kernel, stride, pad, dilation, 0);
                        pool_case("AveragePool", shapes[s], kernel, stride, pad, dilation, 1);
                    }
    pool_case("MaxPool", (int64_t[]){1, 2, 70, 5000}, 3, 2, 1, 1, 0);
    pool_case("AveragePool", (int64_t[]){1, 2, 70, 5000}, 3, 2, 1, 1, 1);
    pool_case("AveragePool", (int64_t[]){1, 2, 90, 90}, 70, 2, 9, 1, 1);
    static const char *const global[] = {"GlobalMaxPool", "GlobalAveragePool"};
    for (int i = 0; i < 2; i++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            versus_start(&v, "", global[i]);
            versus_tensor(&v, SN_FLOAT32, 4, shapes[s], NULL);
            versus_run(&v, 1, 1e-6);
        }
}

/* ---- Normalisation ---- */

static void norm_case(const char *op, int rank, const int64_t *dims, int64_t groups) {
    versus_start(&v, "", op);
    v.scale = 3;
    versus_tensor(&v, SN_FLOAT32, rank, dims, NULL);
    bool batch = strcmp(op, "BatchNormalization") == 0;
    for (int i = 0; i < (batch ? 4 : 2); i++) {
        float values[64];
        for (int64_t c = 0; c < dims[1]; c++) values[c] = (float)draw(1000) / 500.0f + 0.1f;
        versus_tensor(&v, SN_FLOAT32, 1, &dims[1], values);
    }
    if (groups) eval_attr(&v.e, sni_attr_of_int("num_groups", groups));
    eval_attr(&v.e, sni_attr_of_float("epsilon", 1e-3f));
    versus_run(&v, 1, 2e-5);
}

static void norms_match(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {
        {1, 6, 17, 40}, {2, 12, 9, 9}, {3, 6, 1, 1}, {1, 6, 3, 0}, {1, 6, 100, 90}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        norm_case("InstanceNormalization", 4, shapes[s], 0);
        norm_case("GroupNormalization", 4, shapes[s], 3);
        norm_case("BatchNormalization", 4, shapes[s], 0);
    }
    norm_case("InstanceNormalization", 3, (int64_t[]){1, 5, 333}, 0);
    norm_case("BatchNormalization", 2, (int64_t[]){7, 5}, 0);
}

/* Sizes of numbers from the least to the largest: sums of squares that floats do not hold. */
static void axes_case(int rank, const int64_t *dims, int n_axes, const int64_t *axes, float scale,
                      int special) {
    for (int64_t p = 0; p <= 2; p++) {
        versus_start(&v, "", p ? "LpNormalization" : "MeanVarianceNormalization");
        v.special = special;
        v.scale = scale;
        versus_tensor(&v, SN_FLOAT32, rank, dims, NULL);
        if (p) {
            eval_attr(&v.e, sni_attr_of_int("p", p));
            eval_attr(&v.e, sni_attr_of_int("axis", axes[0]));
        } else {
            list("axes", axes, (size_t)n_axes);
        }
        versus_run(&v, 1, 2e-6);
        assert_string_equal(v.impl, "axes_f32");
    }
}

static void axes_match(void **state) {
    (void)state;
    static const struct {
        int rank, n_axes;
        int64_t dims[4], axes[3];
    } of[] = {{2, 1, {3, 67}, {1}},          {2, 1, {3, 67}, {0}},
              {2, 1, {300, 17}, {-1}},       {4, 3, {2, 5, 7, 19}, {0, 2, 3}},
              {4, 2, {2, 5, 7, 19}, {1, 3}}, {4, 1, {2, 5, 7, 19}, {2}},
              {3, 1, {2, 33, 301}, {1}},     {3, 2, {4, 33, 70}, {0, 1}},
              {3, 1, {4, 1, 70}, {1}},       {1, 1, {1}, {0}},
              {2, 1, {0, 5}, {1}},           {2, 1, {2, 40000}, {1}},
              {3, 2, {16, 9, 515}, {0, 2}}};
    static const float scales[] = {1, 1e-30f, 1e19f, 0};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int s = 0; s < 4; s++) {
            axes_case(of[i].rank, of[i].dims, of[i].n_axes, of[i].axes, scales[s], 0);
            axes_case(of[i].rank, of[i].dims, of[i].n_axes, of[i].axes, scales[s], 100);
        }
}

/* ---- Softmax ---- */

static void softmax_case(int rank, const int64_t *dims, int64_t axis, float scale, int special) {
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        versus_start(&v, "", logarithm ? "LogSoftmax" : "Softmax");
        v.scale = scale;
        v.special = special;
        versus_tensor(&v, SN_FLOAT32, rank, dims, NULL);
        eval_attr(&v.e, sni_attr_of_int("axis", axis));
        versus_run(&v, 1, 1e-6);
    }
}

static void softmax_matches(void **state) {
    (void)state;
    static const int64_t rows[] = {1, 15, 16, 64, 65, 700};
    for (int64_t n = 1; n <= 40; n++)
        for (int r = 0; r < 6; r++) {
            softmax_case(2, (int64_t[]){rows[r], n}, 1, 3, 0);
            softmax_case(2, (int64_t[]){rows[r], n}, -1, 200, 60);
        }
    for (int64_t axis = 0; axis < 3; axis++) {
        softmax_case(3, (int64_t[]){5, 21, 37}, axis, 3, 0);
        softmax_case(3, (int64_t[]){5, 21, 37}, axis, 50, 90);
        softmax_case(3, (int64_t[]){4, 70, 160}, axis, 3, 0);
    }
    softmax_case(2, (int64_t[]){4, 0}, 0, 1, 0);
}

/* ---- Pools that have one kernel: beside the definition ---- */

static sn_status run_reference(sni_kernel *k) {
    return k->node->op->ref(k);
}

static const sni_impl reference = {.name = "reference", .run = run_reference};

/* Whether two floats are the same number, or both NaN. */
static bool alike(float a, float b) {
    return isnan(a) ? isnan(b) : a == b;
}

typedef struct find_shape {
    int64_t h, w, kernel, stride, pad, dilation, order;
} find_shape;

static void find_start(const find_shape *f, const float *x) {
    static int64_t kernel[2], strides[2], pads[4], dilations[2];
    versus_start(&v, "", "MaxPool");
    versus_tensor(&v, SN_FLOAT32, 4, (int64_t[]){2, 3, f->h, f->w}, x);
    for (int i = 0; i < 4; i++) pads[i] = f->pad;
    for (int i = 0; i < 2; i++) {
        kernel[i] = f->kernel;
        strides[i] = f->stride;
        dilations[i] = f->dilation;
    }
    list("kernel_shape", kernel, 2);
    list("strides", strides, 2);
    list("pads", pads, 4);
    list("dilations", dilations, 2);
    eval_attr(&v.e, sni_attr_of_int("storage_order", f->order));
}

/* Output (p, r, c) and its place by the definition. */
static void find_one(const find_shape *f, const float *x, int64_t p, int64_t r, int64_t c,
                     float *most, int64_t *at) {
    *at = -1;
    *most = -INFINITY;
    for (int64_t i = 0; i < f->kernel; i++)
        for (int64_t j = 0; j < f->kernel; j++) {
            int64_t row = r * f->stride - f->pad + i * f->dilation;
            int64_t column = c * f->stride - f->pad + j * f->dilation;
            if (row < 0 || row >= f->h || column < 0 || column >= f->w) continue;
            float value = x[(p * f->h + row) * f->w + column];
            if (*at >= 0 && !(value > *most) && !isnan(*most)) continue;
            *most = value;
            *at = p * f->h * f->w + (f->order ? column * f->h + row : row * f->w + column);
        }
}

static void find_case(const find_shape *f, int special) {
    static float x[2 * 3 * 64 * 128];
    for (int64_t i = 0; i < 6 * f->h * f->w; i++) {
        x[i] = (float)draw(50);
        if (special && draw(special) == 0) x[i] = (float[]){NAN, -INFINITY, INFINITY}[draw(3)];
    }
    find_start(f, x);
    assert_int_equal(eval_run(&v.e, 2), SN_OK);
    const sni_tensor *y = &v.e.out[0].tensor, *at = &v.e.out[1].tensor;
    for (int64_t i = 0; i < y->count; i++) {
        float most;
        int64_t place, plane = y->dims[2] * y->dims[3];
        find_one(f, x, i / plane, i % plane / y->dims[3], i % y->dims[3], &most, &place);
        assert_true(alike(((float *)y->data)[i], most));
        assert_int_equal(((int64_t *)at->data)[i], place);
    }
    eval_end(&v.e);
    find_start(f, x);
    v.use = &reference;
    versus_run(&v, 2, 0);
}

static void places_match(void **state) {
    (void)state;
    for (int64_t kernel = 1; kernel <= 4; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = 0; pad <= kernel / 2; pad++)
                for (int special = 0; special <= 9; special += 3) {
                    find_shape f = {17, 21, kernel, stride, pad, 1 + draw(2), draw(2)};
                    find_case(&f, special);
                }
    find_case(&(find_shape){64, 128, 2, 2, 0, 1, 0}, 0);
    find_case(&(find_shape){64, 128, 3, 2, 1, 1, 1}, 0);
    find_case(&(find_shape){64, 128, 3, 2, 1, 1, 0}, 1);
}

/* A bin's largest element by the definition: bin i of n along each axis. */
static float bin_of(const float *plane, const int64_t *size, const float *roi, const int64_t *n,
                    const int64_t *at) {
    int64_t from[2], to[2];
    for (int a = 0; a < 2; a++) {
        double start = round((double)roi[2 - a] * 0.25), end = round((double)roi[4 - a] * 0.25);
        double length = end - start + 1 > 1 ? end - start + 1 : 1;
        from[a] = (int64_t)(start + floor((double)at[a] * (length / (double)n[a])));
        to[a] = (int64_t)(start + ceil((double)(at[a] + 1) * (length / (double)n[a])));
        from[a] = from[a] < 0 ? 0 : from[a] > size[a] ? size[a] : from[a];
        to[a] = to[a] < 0 ? 0 : to[a] > size[a] ? size[a] : to[a];
    }
    if (from[0] >= to[0] || from[1] >= to[1]) return 0;
    float most = NAN;
    for (int64_t r = from[0]; r < to[0]; r++)
        for (int64_t c = from[1]; c < to[1]; c++) {
            float value = plane[r * size[1] + c];
            if (value > most || isnan(most)) most = value;
        }
    return most;
}

static void roi_start(const int64_t *dims, const float *x, int64_t regions, const float *rois,
                      const int64_t *n) {
    versus_start(&v, "", "MaxRoiPool");
    versus_tensor(&v, SN_FLOAT32, 4, dims, x);
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){regions, 5}, rois);
    list("pooled_shape", n, 2);
    eval_attr(&v.e, sni_attr_of_float("spatial_scale", 0.25f));
}

static void roi_case(const int64_t *dims, int64_t regions, const int64_t *n, int special) {
    static float x[60000];
    float rois[60 * 5];
    int64_t count = dims[0] * dims[1] * dims[2] * dims[3];
    for (int64_t i = 0; i < count; i++) {
        x[i] = (float)draw(50) - 25.0f;
        if (special && draw(special) == 0) x[i] = (float[]){NAN, -INFINITY, INFINITY}[draw(3)];
    }
    for (int64_t r = 0; r < regions; r++) {
        rois[5 * r] = (float)draw(dims[0]);
        for (int i = 1; i < 5; i++)
            rois[5 * r + i] = (float)draw(5 * dims[i & 1 ? 3 : 2]) - (float)draw(40);
    }
    roi_start(dims, x, regions, rois, n);
    assert_int_equal(eval_run(&v.e, 1), SN_OK);
    const float *y = v.e.out[0].tensor.data;
    for (int64_t i = 0; i < v.e.out[0].tensor.count; i++) {
        int64_t at[2] = {i / n[1] % n[0], i % n[1]}, item = i / n[1] / n[0];
        const float *roi = rois + item / dims[1] * 5;
        int64_t plane = (int64_t)roi[0] * dims[1] + item % dims[1];
        assert_true(alike(y[i], bin_of(x + plane * dims[2] * dims[3], dims + 2, roi, n, at)));
    }
    eval_end(&v.e);
    roi_start(dims, x, regions, rois, n);
    v.use = &reference;
    versus_run(&v, 1, 0);
}

static void bins_match(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {
        {2, 3, 17, 20}, {1, 2, 5, 700}, {1, 70, 9, 9}, {3, 1, 1, 5}};
    static const int64_t bins[][2] = {{7, 7}, {1, 1}, {3, 11}, {30, 2}};
    for (int s = 0; s < 4; s++)
        for (int b = 0; b < 4; b++)
            for (int special = 0; special <= 4; special += 2)
                roi_case(shapes[s], s == 2 ? 60 : 9, bins[b], special);
    roi_case(shapes[0], 0, bins[0], 0);
    roi_case(shapes[0], 20, bins[0], 1);
}

/* ---- RoiAlign ---- */

static void align_case(const int64_t *dims, int64_t regions, int64_t size, int64_t ratio, bool old,
                       bool largest) {
    float boxes[64 * 4];
    int64_t batch[64];
    for (int64_t r = 0; r < regions; r++) {
        for (int i = 0; i < 4; i++) boxes[4 * r + i] = (float)draw(600) / 10.0f - 5.0f;
        batch[r] = draw(dims[0]);
    }
    versus_start(&v, "", "RoiAlign");
    v.special = largest && ratio ? 30 : 0;
    versus_tensor(&v, SN_FLOAT32, 4, dims, NULL);
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){regions, 4}, boxes);
    versus_tensor(&v, SN_INT64, 1, &regions, batch);
    eval_attr(&v.e, sni_attr_of_int("output_height", size));
    eval_attr(&v.e, sni_attr_of_int("output_width", size + 1));
    eval_attr(&v.e, sni_attr_of_int("sampling_ratio", ratio));
    eval_attr(&v.e, sni_attr_of_float("spatial_scale", 0.5f));
    if (largest) eval_attr(&v.e, sni_attr_of_string("mode", "max"));
    if (old)
        eval_attr(&v.e, sni_attr_of_string("coordinate_transformation_mode", "output_half_pixel"));
    versus_run(&v, 1, 1e-5);
}

static void regions_match(void **state) {
    (void)state;
    static const int64_t shapes[][4] = {{1, 3, 17, 20}, {2, 70, 9, 9}, {1, 130, 1, 5}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
        for (int64_t ratio = 0; ratio <= 2; ratio++)
            for (int way = 0; way < 4; way++) {
                align_case(shapes[s], 7, 1, ratio, way & 1, way >> 1);
                align_case(shapes[s], 40, 7, ratio, way & 1, way >> 1);
                align_case(shapes[s], 3, 9, ratio ? 11 : 0, way & 1, way >> 1);
                align_case(shapes[s], 0, 7, ratio, way & 1, way >> 1);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reductions_match),    cmocka_unit_test(extremes_match),
        cmocka_unit_test(functions_match),     cmocka_unit_test(casts_match),
        cmocka_unit_test(whole_numbers_match), cmocka_unit_test(pools_match),
        cmocka_unit_test(norms_match),         cmocka_unit_test(regions_match),
        cmocka_unit_test(axes_match),          cmocka_unit_test(softmax_matches),
        cmocka_unit_test(places_match),        cmocka_unit_test(bins_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
