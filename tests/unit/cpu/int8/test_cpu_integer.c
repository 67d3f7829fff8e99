/* test_cpu_integer.c - quantised operators' fast implementations against the reference kernels: the
 * same bytes, for every kind of bytes, zero points, scales by channel, and odd shapes. */
#include "versus.h"

static versus v;

static int64_t draw(int64_t n) {
    return (int64_t)(unit_random(&v.seed) % (uint32_t)n);
}

enum {
    X_SIGNED = 1,
    W_UNSIGNED = 2,
    BY_CHANNEL = 4,
    W_ZERO = 8,
    BIAS = 16,
    EXTREME = 32, /* bytes at the ends of their range alone */
    ALL_FLAGS = 64
};

static void put_bytes(bool is_signed, int rank, const int64_t *dims, bool weight, int flags) {
    sn_dtype dtype = is_signed ? SN_INT8 : SN_UINT8;
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dims[i];
    unsigned char *data = malloc((size_t)n + 1);
    assert_non_null(data);
    for (int64_t i = 0; i < n; i++) {
        data[i] = (unsigned char)unit_random(&v.seed);
        if (flags & EXTREME) data[i] = (data[i] & 1 ? 0xff : 0) ^ (is_signed ? 0x80 : 0);
    }
    (weight ? versus_weight : versus_tensor)(&v, dtype, rank, dims, data);
    free(data);
}

static void put_zero(bool is_signed, int64_t count, bool constant, bool zero) {
    unsigned char z[512];
    assert_true(count <= 512);
    for (int64_t i = 0; i < count; i++) z[i] = zero ? 0 : (unsigned char)unit_random(&v.seed);
    (constant ? versus_weight : versus_tensor)(&v, is_signed ? SN_INT8 : SN_UINT8, count > 1,
                                               &count, z);
}

static void put_scale(float about, int64_t count, bool constant) {
    float s[512];
    assert_true(count <= 512);
    for (int64_t i = 0; i < count; i++) s[i] = about * (0.5f + (float)draw(1000) / 1000.0f);
    (constant ? versus_weight : versus_tensor)(&v, SN_FLOAT32, count > 1, &count, s);
}

static void put_ints(int rank, const int64_t *dims) {
    versus_tensor(&v, SN_INT32, rank, dims, NULL);
}

/* ---- Convolutions ---- */

typedef struct shape {
    int64_t n, c, h, w, m, kh, kw, groups, stride, dilation, pad;
} shape;

static const shape shapes[] = {
    {1, 3, 9, 7, 5, 3, 3, 1, 1, 1, 1},    {1, 16, 8, 8, 32, 1, 1, 1, 1, 1, 0},
    {2, 7, 5, 11, 13, 1, 1, 1, 1, 1, 0},  {1, 5, 13, 13, 4, 3, 3, 1, 2, 1, 1},
    {1, 4, 12, 33, 14, 3, 5, 1, 1, 2, 2}, {1, 3, 40, 40, 17, 7, 7, 1, 2, 1, 3},
    {1, 12, 6, 6, 9, 2, 2, 3, 1, 1, 0},   {1, 9, 14, 14, 9, 3, 3, 9, 1, 1, 1},
    {2, 8, 15, 70, 8, 3, 3, 8, 2, 1, 1},  {1, 6, 11, 9, 12, 5, 5, 6, 1, 1, 2},
    {1, 4, 9, 130, 4, 3, 3, 4, 1, 3, 3},  {1, 33, 7, 7, 65, 1, 1, 1, 1, 1, 0},
    {1, 2, 3, 3, 2, 3, 3, 1, 1, 1, 3},    {1, 8, 30, 31, 24, 3, 3, 1, 1, 1, 1},
    {1, 5, 1, 50, 7, 1, 9, 1, 1, 1, 0},   {3, 4, 4, 4, 4, 3, 3, 4, 3, 1, 2},
    {1, 2, 2, 2, 2, 2, 2, 2, 1, 1, 2},    {1, 64, 5, 5, 3, 3, 3, 1, 1, 1, 1},
    {1, 1, 20, 18, 6, 10, 4, 1, 2, 1, 4}, {1, 3, 16, 16, 8, 2, 2, 1, 2, 1, 0},
};

static void put_window(const shape *s) {
    static int64_t strides[2], dilations[2], pads[4];
    for (int i = 0; i < 2; i++) {
        strides[i] = s->stride;
        dilations[i] = s->dilation;
        pads[i] = s->kh > 1 ? s->pad : 0;
        pads[2 + i] = s->kh > 1 && s->pad ? s->pad - 1 : 0;
    }
    pads[1] = s->pad;
    eval_attr(&v.e, (sni_attr){.name = SNI_STR("strides"),
                               .kind = SNI_ATTR_INTS,
                               .count = 2,
                               .u.ints = strides});
    eval_attr(&v.e, (sni_attr){.name = SNI_STR("dilations"),
                               .kind = SNI_ATTR_INTS,
                               .count = 2,
                               .u.ints = dilations});
    eval_attr(
        &v.e,
        (sni_attr){.name = SNI_STR("pads"), .kind = SNI_ATTR_INTS, .count = 4, .u.ints = pads});
    eval_attr(&v.e, sni_attr_of_int("group", s->groups));
}

static void linear_conv_case(const shape *s, int flags) {
    bool x_signed = flags & X_SIGNED, w_signed = !(flags & W_UNSIGNED);
    int64_t each = flags & BY_CHANNEL ? s->m : 1;
    versus_start(&v, "", "QLinearConv");
    put_bytes(x_signed, 4, (int64_t[]){s->n, s->c, s->h, s->w}, false, flags);
    put_scale(0.02f, 1, false);
    put_zero(x_signed, 1, false, false);
    put_bytes(w_signed, 4, (int64_t[]){s->m, s->c / s->groups, s->kh, s->kw}, true, flags);
    put_scale(0.01f, each, true);
    put_zero(w_signed, each, true, !(flags & W_ZERO));
    put_scale(flags == (EXTREME | BIAS) ? 0 : 0.3f, 1, false); /* 0: sums become NaN or infinite */
    put_zero(x_signed, 1, false, false);
    if (flags & BIAS) put_ints(1, &s->m);
    put_window(s);
    versus_run(&v, 1, 0);
    assert_string_equal(v.impl, "conv_i8");
}

static void conv_integer_case(const shape *s, int flags) {
    bool x_signed = flags & X_SIGNED, w_signed = !(flags & W_UNSIGNED);
    versus_start(&v, "", "ConvInteger");
    put_bytes(x_signed, 4, (int64_t[]){s->n, s->c, s->h, s->w}, false, flags);
    put_bytes(w_signed, 4, (int64_t[]){s->m, s->c / s->groups, s->kh, s->kw}, true, flags);
    if (flags & BIAS) {
        put_zero(x_signed, 1, false, false);
        put_zero(w_signed, flags & BY_CHANNEL ? s->m : 1, true, !(flags & W_ZERO));
    }
    put_window(s);
    versus_run(&v, 1, 0);
    assert_string_equal(v.impl, "conv_i8");
}

static void convolutions_match(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int flags = (int)i % 2; flags < ALL_FLAGS; flags += 2) {
            linear_conv_case(&shapes[i], flags);
            conv_integer_case(&shapes[i], flags);
        }
}

/* ---- Convolutions with channels last ---- */

static const shape last_shapes[] = {
    {2, 64, 6, 7, 40, 3, 3, 1, 1, 1, 1},       {1, 96, 9, 9, 96, 3, 3, 96, 1, 1, 1},
    {1, 130, 11, 10, 130, 3, 3, 130, 2, 1, 1}, {2, 66, 9, 8, 66, 5, 5, 66, 1, 1, 2},
    {1, 16, 13, 12, 16, 5, 5, 16, 2, 1, 2},    {1, 24, 7, 9, 72, 3, 3, 3, 1, 1, 1},
    {1, 70, 5, 3, 70, 3, 3, 70, 1, 2, 2},      {1, 128, 7, 7, 33, 1, 1, 1, 2, 1, 0},
    {1, 520, 7, 7, 300, 3, 3, 1, 1, 1, 1},     {2, 24, 9, 11, 40, 1, 1, 1, 1, 1, 0},
    {1, 12, 6, 9, 97, 1, 1, 1, 1, 1, 1},       {1, 20, 21, 40, 48, 3, 3, 1, 2, 1, 1},
    {3, 16, 5, 29, 64, 1, 1, 1, 1, 1, 0},      {1, 4, 7, 60, 31, 1, 3, 1, 3, 1, 0},
};

enum { RESIDUAL = W_UNSIGNED }; /* weights are signed in this layout */

static void nhwc_case(const shape *s, int flags) {
    bool x_signed = flags & X_SIGNED, depthwise = s->groups == s->c && s->m == s->c;
    int64_t each = flags & BY_CHANNEL ? s->m : 1;
    int64_t ph = s->kh > 1 ? s->pad + (s->pad ? s->pad - 1 : 0) : 0;
    int64_t pw = s->pad + (s->kh > 1 && s->pad ? s->pad - 1 : 0);
    int64_t oh = (s->h + ph - (s->kh - 1) * s->dilation - 1) / s->stride + 1;
    int64_t ow = (s->w + pw - (s->kw - 1) * s->dilation - 1) / s->stride + 1;
    versus_start(&v, "ai.sinter", "QLinearConvNhwc");
    put_bytes(x_signed, 4, (int64_t[]){s->n, s->h, s->w, s->c}, false, flags);
    put_scale(0.02f, 1, false);
    put_zero(x_signed, 1, false, false);
    put_bytes(true, 4, (int64_t[]){s->m, s->c / s->groups, s->kh, s->kw}, true, flags);
    put_scale(0.01f, each, true);
    put_zero(true, each, true, !(flags & W_ZERO));
    put_scale(flags == (EXTREME | BIAS) ? 0 : 0.3f, 1, false);
    put_zero(x_signed, 1, false, false);
    if (flags & BIAS)
        put_ints(1, &s->m);
    else if (flags & RESIDUAL)
        versus_without(&v);
    if (flags & RESIDUAL && !depthwise) {
        put_bytes(x_signed, 4, (int64_t[]){s->n, oh, ow, s->m}, false, flags);
        put_scale(0.2f, 1, false);
        put_zero(x_signed, 1, false, false);
        put_scale(0.35f, 1, false);
        put_zero(x_signed, 1, false, false);
    }
    put_window(s);
    versus_run(&v, 1, 0);
    assert_string_equal(v.impl, "conv_nhwc_i8");
}

static void channels_last_match(void **state) {
    (void)state;
    for (int flags = 0; flags < ALL_FLAGS; flags++) {
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) nhwc_case(&shapes[i], flags);
        for (size_t i = 0; i < sizeof last_shapes / sizeof *last_shapes; i++)
            if (flags % 4 == (int)i % 4) nhwc_case(&last_shapes[i], flags);
    }
}

static void one_axis(void **state) {
    (void)state;
    for (int flags = 0; flags < ALL_FLAGS; flags += 5) {
        bool x_signed = flags & X_SIGNED, w_signed = !(flags & W_UNSIGNED);
        versus_start(&v, "", "QLinearConv");
        put_bytes(x_signed, 3, (int64_t[]){2, 5, 37}, false, flags);
        put_scale(0.02f, 1, false);
        put_zero(x_signed, 1, false, false);
        put_bytes(w_signed, 3, (int64_t[]){6, 5, 3}, true, flags);
        put_scale(0.01f, 1, true);
        put_zero(w_signed, 1, true, !(flags & W_ZERO));
        put_scale(0.3f, 1, false);
        put_zero(x_signed, 1, false, false);
        versus_run(&v, 1, 0);
    }
}

/* ---- Products ---- */

static const int64_t sizes[][3] = {{1, 1, 1},   {1, 64, 33},  {3, 5, 7},     {13, 31, 65},
                                   {25, 4, 16}, {40, 129, 8}, {100, 63, 40}, {2, 300, 257},
                                   {0, 5, 6},   {7, 3, 0},    {50, 512, 500}};

typedef void (*product_case)(int64_t m, int64_t k, int64_t n, int flags);

static void linear_case(int64_t m, int64_t k, int64_t n, int flags) {
    bool a_signed = flags & X_SIGNED, b_signed = !(flags & W_UNSIGNED);
    int64_t each = flags & BY_CHANNEL && n ? n : 1;
    versus_start(&v, "", "QLinearMatMul");
    put_bytes(a_signed, 3, (int64_t[]){1, m, k}, false, flags);
    put_scale(0.02f, 1, false);
    put_zero(a_signed, 1, false, false);
    put_bytes(b_signed, 2, (int64_t[]){k, n}, true, flags);
    put_scale(0.01f, each, true);
    put_zero(b_signed, each, true, !(flags & W_ZERO));
    put_scale(0.3f, 1, false);
    put_zero(a_signed, 1, false, false);
    versus_run(&v, 1, 0);
}

static void gemm_case(int64_t m, int64_t k, int64_t n, int flags) {
    bool a_signed = flags & X_SIGNED, b_signed = !(flags & W_UNSIGNED), transposed = m % 2;
    int64_t each = flags & BY_CHANNEL && n ? n : 1;
    versus_start(&v, "com.microsoft", "QGemm");
    put_bytes(a_signed, 2, (int64_t[]){m, k}, false, flags);
    put_scale(0.02f, 1, false);
    put_zero(a_signed, 1, false, false);
    put_bytes(b_signed, 2, transposed ? (int64_t[]){n, k} : (int64_t[]){k, n}, true, flags);
    put_scale(0.01f, each, true);
    put_zero(b_signed, each, true, !(flags & W_ZERO));
    if (flags & BIAS)
        put_ints(1 + (k & 1), (int64_t[]){k & 1 ? 1 : n, n});
    else
        versus_without(&v);
    if (!(flags & EXTREME)) {
        put_scale(0.3f, 1, false);
        put_zero(a_signed, 1, false, false);
    }
    eval_attr(&v.e, sni_attr_of_int("transB", transposed));
    eval_attr(&v.e, sni_attr_of_float("alpha", 0.75f));
    versus_run(&v, 1, 0);
}

static void integer_case(int64_t m, int64_t k, int64_t n, int flags) {
    bool a_signed = flags & X_SIGNED, b_signed = !(flags & W_UNSIGNED);
    versus_start(&v, "", "MatMulInteger");
    put_bytes(a_signed, 2, (int64_t[]){m, k}, false, flags);
    put_bytes(b_signed, 2, (int64_t[]){k, n}, true, flags);
    if (flags & BIAS) {
        put_zero(a_signed, 1, false, false);
        put_zero(b_signed, flags & BY_CHANNEL && n ? n : 1, true, !(flags & W_ZERO));
    }
    versus_run(&v, 1, 0);
}

static void to_float_case(int64_t m, int64_t k, int64_t n, int flags) {
    bool a_signed = flags & X_SIGNED, b_signed = !(flags & W_UNSIGNED);
    int64_t each = flags & BY_CHANNEL && n ? n : 1;
    versus_start(&v, "com.microsoft", "MatMulIntegerToFloat");
    put_bytes(a_signed, 2, (int64_t[]){m, k}, false, flags);
    put_bytes(b_signed, 2, (int64_t[]){k, n}, true, flags);
    put_scale(0.02f, 1, false);
    put_scale(0.01f, each, true);
    put_zero(a_signed, 1, false, false);
    put_zero(b_signed, each, true, !(flags & W_ZERO));
    if (flags & BIAS) versus_tensor(&v, SN_FLOAT32, 1, &n, NULL);
    versus_run(&v, 1, 0);
}

static void dynamic_case(int64_t m, int64_t k, int64_t n, int flags) {
    bool b_signed = !(flags & W_UNSIGNED);
    int64_t each = flags & BY_CHANNEL && n ? n : 1;
    versus_start(&v, "com.microsoft", "DynamicQuantizeMatMul");
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){m, k}, NULL);
    put_bytes(b_signed, 2, (int64_t[]){k, n}, true, flags);
    put_scale(0.01f, each, true);
    put_zero(b_signed, each, true, !(flags & W_ZERO));
    if (flags & BIAS) versus_tensor(&v, SN_FLOAT32, 1, &n, NULL);
    versus_run(&v, 1, 0);
}

static void products_match(void **state) {
    (void)state;
    static const product_case cases[] = {linear_case, gemm_case, integer_case, to_float_case,
                                         dynamic_case};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int flags = (int)i & 1; flags < ALL_FLAGS; flags += 1 + (i > 3))
                cases[c](sizes[i][0], sizes[i][1], sizes[i][2], flags);
}

/* Neither operand is part of the model. */
static void stacks_match(void **state) {
    (void)state;
    static const int64_t dims[][6] = {{1, 1, 5, 7, 9, 1},  {2, 3, 17, 33, 40, 1},
                                      {5, 1, 1, 64, 3, 1}, {2, 2, 30, 5, 65, 0},
                                      {1, 3, 0, 4, 4, 1},  {1, 1, 3, 0, 4, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++)
        for (int flags = 0; flags < ALL_FLAGS; flags++) {
            const int64_t *d = dims[i];
            bool a_signed = flags & X_SIGNED, b_signed = !(flags & W_UNSIGNED);
            bool is_linear = flags & BY_CHANNEL;
            versus_start(&v, "", is_linear ? "QLinearMatMul" : "MatMulInteger");
            put_bytes(a_signed, 4, (int64_t[]){d[0], d[1], d[2], d[3]}, false, flags);
            if (is_linear) {
                put_scale(0.02f, 1, false);
                put_zero(a_signed, 1, false, false);
            }
            if (d[5])
                put_bytes(b_signed, 4, (int64_t[]){d[0], 1, d[3], d[4]}, false, flags);
            else
                put_bytes(b_signed, 2, (int64_t[]){d[3], d[4]}, false, flags);
            if (is_linear) put_scale(0.01f, 1, false);
            if (!is_linear) put_zero(a_signed, 1, false, false);
            put_zero(b_signed, 1, false, !(flags & W_ZERO));
            if (is_linear) {
                put_scale(0.3f, 1, false);
                put_zero(a_signed, 1, false, false);
            }
            versus_run(&v, 1, 0);
            assert_string_equal(v.impl, "gemm_i8");
        }
}

/* ---- Rows ---- */

static const int64_t lengths[] = {0, 1, 7, 16, 33, 1000, 70001};

static void rows_match(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int flags = 0; flags < 16; flags++) {
            bool is_signed = flags & X_SIGNED;
            versus_start(&v, "", "QuantizeLinear");
            v.special = flags & 4 ? 9 : 0;
            v.scale = 100;
            versus_tensor(&v, SN_FLOAT32, 1, &lengths[i], NULL);
            put_scale(flags & 8 ? 2.0f : 0.5f, 1, false);
            if (is_signed || flags & 2) put_zero(is_signed, 1, false, false);
            versus_run(&v, 1, 0);
            assert_string_equal(v.impl, "rows_i8");
            versus_start(&v, "", "DequantizeLinear");
            put_bytes(is_signed, 1, &lengths[i], false, 0);
            put_scale(0.5f, 1, false);
            if (flags & 2) put_zero(is_signed, 1, false, false);
            versus_run(&v, 1, 0);
            assert_string_equal(v.impl, "rows_i8");
            versus_start(&v, "", "DynamicQuantizeLinear");
            v.special = flags & 4 ? 99 : 0;
            v.scale = flags & 8 ? 0 : 3;
            versus_tensor(&v, SN_FLOAT32, 1, &lengths[i], NULL);
            versus_run(&v, 3, 0);
            assert_string_equal(v.impl, "rows_i8");
        }
}

static void pairs_match(void **state) {
    (void)state;
    static const int64_t shape_a[][3] = {{1, 1, 1},  {2, 3, 50},    {2, 1, 17},
                                         {4, 5, 1},  {1, 1, 40000}, {1, 1, 9},
                                         {3, 1, 24}, {1, 70, 31},   {2, 90, 1}};
    static const int64_t shape_b[][3] = {{1, 1, 1},    {2, 3, 50},  {2, 3, 17},
                                         {4, 5, 9},    {1, 1, 1},   {70, 30, 9},
                                         {3, 200, 24}, {5, 70, 31}, {2, 90, 40}};
    for (size_t i = 0; i < sizeof shape_a / sizeof *shape_a; i++)
        for (int flags = 0; flags < 16; flags++) {
            bool is_signed = flags & X_SIGNED;
            versus_start(&v, "com.microsoft", flags & 2 ? "QLinearMul" : "QLinearAdd");
            put_bytes(is_signed, 3, flags & 8 ? shape_b[i] : shape_a[i], false, 0);
            put_scale(0.03f, 1, false);
            put_zero(is_signed, 1, false, false);
            put_bytes(is_signed, 3, flags & 8 ? shape_a[i] : shape_b[i], false, 0);
            put_scale(0.03f, 1, false);
            put_zero(is_signed, 1, false, false);
            put_scale(flags & 2 ? 0.2f : 0.05f, 1, false);
            if (flags & 4) put_zero(is_signed, 1, false, false);
            versus_run(&v, 1, 0);
            assert_string_equal(v.impl, "rows_i8");
        }
}

static void softmax_matches(void **state) {
    (void)state;
    static const int64_t extents[][3] = {
        {2, 3, 5}, {1, 4, 197}, {3, 1, 128}, {2, 16, 33}, {1, 1, 1}};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++)
        for (int flags = 0; flags < ALL_FLAGS; flags++) {
            bool is_signed = flags & X_SIGNED;
            versus_start(&v, "com.microsoft", "QLinearSoftmax");
            put_bytes(is_signed, 3, extents[i], false, flags);
            put_scale(flags & 2 ? 0.05f : flags & 16 ? 1e-20f : 3e-3f, 1, false);
            put_zero(is_signed, 1, false, false);
            put_scale(flags & 8 ? 0.1f : 1.0f / 256, 1, false);
            put_zero(is_signed, 1, false, false);
            eval_attr(&v.e, sni_attr_of_int("axis", flags & 4 ? 1 : -1));
            eval_attr(&v.e, sni_attr_of_int("opset", 13));
            versus_run(&v, 1, 0);
            assert_string_equal(v.impl, "table_i8");
        }
}

static void tables_match(void **state) {
    (void)state;
    static const int64_t all = 256;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int flags = 0; flags < 4; flags++) {
            bool is_signed = flags & X_SIGNED;
            versus_start(&v, "ai.sinter", "ByteTable");
            put_bytes(is_signed, 1, &lengths[i], false, 0);
            put_bytes(is_signed, 1, &all, false, 0);
            versus_run(&v, 1, 0);
            assert_string_equal(v.impl, "table_i8");
            versus_start(&v, "com.microsoft", "QLinearConcat");
            put_scale(0.05f, 1, false);
            put_zero(is_signed, 1, false, false);
            for (int part = 0; part < 2; part++) {
                put_bytes(is_signed, 3, (int64_t[]){2, part + 1, lengths[i]}, false, 0);
                put_scale(flags & 2 ? 0.3f : 0.02f, 1, false);
                put_zero(is_signed, 1, false, false);
            }
            eval_attr(&v.e, sni_attr_of_int("axis", 1));
            versus_run(&v, 1, 0);
            assert_string_equal(v.impl, "table_i8");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_match),  cmocka_unit_test(one_axis),
        cmocka_unit_test(channels_last_match), cmocka_unit_test(softmax_matches),
        cmocka_unit_test(tables_match),        cmocka_unit_test(products_match),
        cmocka_unit_test(stacks_match),        cmocka_unit_test(rows_match),
        cmocka_unit_test(pairs_match)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
