/* act.inc.c - activations on rows of results. */

/* x tanh(ln(1 + e^x)), where tanh(ln(1 + e)) is e (e + 2) / (e (e + 2) + 2). */
static inline vf mish_vf(vf x) {
    vf e = exp_vf(min_vf(x, splat(20.0f)));
    vf t = e * (e + splat(2.0f));
    return x * (t / (t + splat(2.0f)));
}

#if defined(__AVX512F__)
/* The normal distribution function around multiples of its step, from -15 on: coefficients of r^0
 * to r^5. The first stands for all that is less, and is 0; the last for all that is more, and is 1.
 */
#define NORMAL_STEP 0.3875862f
/* clang-format off */
static const float normal_terms[6 * 32] __attribute__((aligned(64))) = {
    /* r^0 */
                  0,  2.8783322e-08f,  2.3445521e-07f,  1.6513936e-06f,
     1.0064879e-05f,  5.3124110e-05f,  2.4307342e-04f,  9.6535290e-04f,
     3.3328144e-03f,  1.0022158e-02f,  2.6315816e-02f,  6.0529385e-02f,
     1.2246373e-01f,  2.1911890e-01f,  3.4916115e-01f,  5.0000000e-01f,
     6.5083885e-01f,  7.8088110e-01f,  8.7753630e-01f,  9.3947060e-01f,
     9.7368420e-01f,  9.8997784e-01f,  9.9666720e-01f,  9.9903464e-01f,
     9.9975693e-01f,  9.9994690e-01f,  9.9998990e-01f,  9.9999833e-01f,
     9.9999976e-01f,  1.0000000e+00f,  1.0000000e+00f,               0,
    /* r^1 */
                  0,  1.6117373e-07f,  1.2247441e-06f,  8.0085990e-06f,
     4.5063770e-05f,  2.1820160e-04f,  9.0917530e-04f,  3.2598414e-03f,
     1.0057830e-02f,  2.6703682e-02f,  6.1009426e-02f,  1.1994487e-01f,
     2.0292023e-01f,  2.9541188e-01f,  3.7007480e-01f,  3.9894226e-01f,
     3.7007480e-01f,  2.9541188e-01f,  2.0292023e-01f,  1.1994487e-01f,
     6.1009426e-02f,  2.6703682e-02f,  1.0057830e-02f,  3.2598414e-03f,
     9.0917530e-04f,  2.1820160e-04f,  4.5063770e-05f,  8.0085990e-06f,
     1.2247441e-06f,  1.6117373e-07f,               0,               0,
    /* r^2 */
                  0,  4.3669738e-07f,  3.0826857e-06f,  1.8613000e-05f,
     9.6028490e-05f,  4.2277493e-04f,  1.5855829e-03f,  5.0537544e-03f,
     1.3644104e-02f,  3.1050611e-02f,  5.9117127e-02f,  9.2978610e-02f,
     1.1797276e-01f,  1.1449523e-01f,  7.1715824e-02f,  9.8376930e-15f,
    -7.1715824e-02f, -1.1449523e-01f, -1.1797276e-01f, -9.2978610e-02f,
    -5.9117127e-02f, -3.1050611e-02f, -1.3644104e-02f, -5.0537544e-03f,
    -1.5855829e-03f, -4.2277493e-04f, -9.6028490e-05f, -1.8613000e-05f,
    -3.0826857e-06f, -4.3669735e-07f,               0,               0,
    /* r^3 */
                  0,  7.6349790e-07f,  4.9757020e-06f,  2.7530928e-05f,
     1.2898925e-04f,  5.0991244e-04f,  1.6922638e-03f,  4.6802606e-03f,
     1.0663101e-02f,  1.9618781e-02f,  2.8019425e-02f,  2.8057886e-02f,
     1.1903879e-02f, -1.9650685e-02f, -5.2412733e-02f, -6.6488920e-02f,
    -5.2412733e-02f, -1.9650685e-02f,  1.1903879e-02f,  2.8057886e-02f,
     2.8019425e-02f,  1.9618781e-02f,  1.0663101e-02f,  4.6802606e-03f,
     1.6922638e-03f,  5.0991244e-04f,  1.2898925e-04f,  2.7530928e-05f,
     4.9757020e-06f,  7.6349810e-07f,               0,               0,
    /* r^4 */
                  0,  1.0043503e-06f,  5.9543077e-06f,  2.9699790e-05f,
     1.2396600e-04f,  4.2963654e-04f,  1.2217463e-03f,  2.7944841e-03f,
     4.9487986e-03f,  6.1830143e-03f,  3.6443770e-03f, -4.6682010e-03f,
    -1.6140556e-02f, -2.2724130e-02f, -1.6880730e-02f, -3.2624234e-13f,
     1.6880730e-02f,  2.2724130e-02f,  1.6140556e-02f,  4.6682010e-03f,
    -3.6443770e-03f, -6.1830143e-03f, -4.9487986e-03f, -2.7944841e-03f,
    -1.2217463e-03f, -4.2963654e-04f, -1.2396600e-04f, -2.9699790e-05f,
    -5.9543086e-06f, -1.0043509e-06f,               0,               0,
    /* r^5 */
                  0,  9.6048880e-07f,  5.1799710e-06f,  2.3194008e-05f,
     8.5336740e-05f,  2.5379580e-04f,  5.9269250e-04f,  1.0220222e-03f,
     1.0782875e-03f, -6.2889330e-05f, -2.7637673e-03f, -5.6098355e-03f,
    -5.4984265e-03f, -5.7521130e-04f,  6.5005460e-03f,  9.8958880e-03f,
     6.5005454e-03f, -5.7521130e-04f, -5.4984265e-03f, -5.6098355e-03f,
    -2.7637673e-03f, -6.2889350e-05f,  1.0782875e-03f,  1.0220222e-03f,
     5.9269250e-04f,  2.5379576e-04f,  8.5336740e-05f,  2.3194005e-05f,
     5.1799652e-06f,  9.6048350e-07f,               0,               0,
};
/* clang-format on */

/* The terms of r^power, by the last five bits of `index`. */
static inline vf normal_term(int power, vf index) {
    return (vf)_mm512_permutex2var_ps(_mm512_load_ps(normal_terms + 32 * power), (__m512i)index,
                                      _mm512_load_ps(normal_terms + 32 * power + 16));
}

/* x times the normal distribution function of x, which a table's polynomials give: relative to the
 * size of x within 1.5e-7. */
static inline vf gelu_vf(vf x) {
    const vf magic = splat(12582912.0f + 15), end = splat(15 * NORMAL_STEP);
    vf t = min_vf(max_vf(x, -end), end);
    vf shifted = t * splat(1 / NORMAL_STEP) + magic;
    vf r = t - (shifted - magic) * splat(NORMAL_STEP);
    vf p = normal_term(5, shifted) * r + normal_term(4, shifted);
    for (int i = 3; i >= 0; i--) p = p * r + normal_term(i, shifted);
    return x * p;
}
#else
/* x times the normal distribution function of x, which is 1 - e for x > 0 and e below: e is half of
 * 2^-w with w / |x| a polynomial, and nothing from 5.6 on. Relative to the size of x within 1.5e-7.
 * Terms of polynomials are added in pairs: their time is that of one result after another. */
static inline vf gelu_vf(vf x) {
    const vf magic = splat(12582912.0f), end = splat(5.6f);
    vf size = abs_vf(x), t = min_vf(size, end), t2 = t * t;
    vf first = t2 * (splat(7.06342085e-3f) * t - splat(5.24961788e-2f)) -
               (splat(4.59208197e-1f) * t + splat(1.15110521f));
    vf second = t2 * (splat(3.93776353e-5f) - splat(2.83490806e-6f) * t) -
                (splat(1.86179983e-4f) * t + splat(1.36936964e-4f));
    vf w = (second * (t2 * t2) + first) * t;
    vf shifted = w + magic, n = shifted - magic, r = w - n, r2 = r * r;
    vf p = (splat(6.63820402e-4f) * r + splat(4.83777033e-3f)) * r2 +
           (splat(2.77535672e-2f) * r + splat(1.20110599e-1f));
    p = p * r2 + (splat(3.46573484e-1f) * r + splat(5.00000036e-1f));
    vf e = (vf)((vu)p + ((vu)shifted << 23)); /* 2^n by its bits; those of NaN do not matter */
    e = select_vf(size >= end, splat(0), e);
    return x * select_vf(x > splat(0), splat(1.0f) - e, e);
}
#endif

/* Gelu's approximation 0.5 x (1 + tanh(u)), which is x sigmoid(2 u). */
static inline vf gelu_tanh_vf(vf x) {
    const vf a = splat(1.59576912160573071f), b = splat(0.0713548162726f);
    vf u = x * (a + b * (x * x));
    return times_sigmoid_vf(x, u);
}

static inline vf clamp_vf(vf x, vf low, vf high) {
    return min_vf(max_vf(x, low), high);
}

/* Functions that are seldom the end of something. */
static inline __attribute__((always_inline)) vf plain_vf(sni_act act, vf x) {
    switch (act) {
    case SNI_ACT_EXP:
        return exp_vf(x);
    case SNI_ACT_LOG:
        return log_vf(x);
    case SNI_ACT_ERF:
        return erf_vf(x);
    case SNI_ACT_SQRT:
        return sqrt_vf(x);
    case SNI_ACT_RECIPROCAL:
        return splat(1.0f) / x;
    case SNI_ACT_ABS:
        return abs_vf(x);
    case SNI_ACT_NEG:
        return -x;
    case SNI_ACT_SQUARE:
        return x * x;
    case SNI_ACT_CUBE:
        return x * x * x;
    default:
        return x;
    }
}

static inline __attribute__((always_inline)) vf act_vf(sni_act act, vf p0, vf p1, vf x) {
    switch (act) {
    case SNI_ACT_RELU:
        return max_vf(x, splat(0));
    case SNI_ACT_CLIP:
        return clamp_vf(x, p0, p1);
    case SNI_ACT_LEAKY_RELU:
        return select_vf(x < 0, x * p0, x);
    case SNI_ACT_HARD_SIGMOID:
        return clamp_vf(x * p0 + p1, splat(0), splat(1));
    case SNI_ACT_HARD_SWISH:
        return x * clamp_vf(x * splat(1.0f / 6.0f) + splat(0.5f), splat(0), splat(1));
    case SNI_ACT_SIGMOID:
        return sigmoid_vf(x);
    case SNI_ACT_SILU:
        return times_sigmoid_vf(x, x);
    case SNI_ACT_TANH:
        return tanh_vf(x);
    case SNI_ACT_GELU:
        return gelu_vf(x);
    case SNI_ACT_GELU_TANH:
        return gelu_tanh_vf(x);
    case SNI_ACT_MISH:
        return mish_vf(x);
    case SNI_ACT_ELU:
        return select_vf(x < 0, p0 * expm1_vf(min_vf(x, splat(0))), x);
    case SNI_ACT_CELU:
        return select_vf(x < 0, p0 * expm1_vf(min_vf(x / p0, splat(0))), x);
    case SNI_ACT_SELU:
        return p1 * select_vf(x > 0, x, p0 * expm1_vf(min_vf(x, splat(0))));
    case SNI_ACT_AFFINE:
        return p0 * x + p1;
    case SNI_ACT_THRESHOLDED_RELU:
        return select_vf(x >= p0, x, splat(0));
    case SNI_ACT_SCALED_TANH:
        return p0 * tanh_vf(p1 * x);
    case SNI_ACT_SOFTSIGN:
        return x / (splat(1.0f) + abs_vf(x));
    case SNI_ACT_SOFTPLUS:
        return p0 * softplus_vf(p1 * x);
    case SNI_ACT_SWISH:
        return times_sigmoid_vf(x, x * p0);
    default:
        return plain_vf(act, x);
    }
}

enum { BLOCK = LANES == 16 ? 16 : 8 }; /* channels of a blocked pixel */

/* Rows of results and what is done to them before they are stored for good. */
typedef struct ending {
    float p0, p1;
    const float *from; /* may be y */
    int64_t from_row;
    bool add; /* to y first */
    float *y;
    int64_t y_row, rows, n;
    const float *row_bias, *columns, *more; /* NULL: none */
    int64_t more_row;
    const float *slopes, *row_slopes, *column_slopes; /* sni_epilogue's */
} ending;

/* Row r, for an activation that is a constant at every call. */
static inline __attribute__((always_inline)) void finish(sni_act act, const ending *e, int64_t r) {
    const bool leaky = act == SNI_ACT_LEAKY_RELU;
    const float bias = e->row_bias ? e->row_bias[r] : 0;
    const float *columns = e->columns, *more = e->more ? e->more + r * e->more_row : NULL;
    const float *from = e->from + r * e->from_row;
    float *y = e->y + r * e->y_row;
    vf p0 = splat(leaky && e->row_slopes ? e->row_slopes[r] : e->p0), p1 = splat(e->p1);
    vf b = splat(bias);
    const bool biased = bias != 0;
    int64_t i = 0, n = e->n;
    for (; i + LANES <= n; i += LANES) {
        vf x = load(from + i);
        if (e->add) x += load(y + i);
        if (biased) x += b;
        if (columns) x += load(columns + i);
        if (more) x += load(more + i);
        if (leaky && e->slopes) p0 = load(e->slopes + i % BLOCK);
        if (leaky && e->column_slopes) p0 = load(e->column_slopes + i);
        store(y + i, act_vf(act, p0, p1, x));
    }
    if (i == n) return;
    vf x = load_some(from + i, n - i, 0);
    if (e->add) x += load_some(y + i, n - i, 0);
    if (biased) x += b;
    if (columns) x += load_some(columns + i, n - i, 0);
    if (more) x += load_some(more + i, n - i, 0);
    if (leaky && e->column_slopes) p0 = load_some(e->column_slopes + i, n - i, 0);
    store_some(y + i, n - i, act_vf(act, p0, p1, x));
}

/* Rows of two whole vectors with nothing but a bias for each column and a residual, as tiles of
 * products have them: the same, with less to decide. */
static inline __attribute__((always_inline)) void finish_vectors(sni_act act, const ending *e) {
    enum { VECTORS = 2 };
    vf p0 = splat(e->p0), p1 = splat(e->p1), bias[VECTORS];
    const float *from = e->from, *more = e->more;
    const bool add = e->add;
    float *y = e->y;
    UNROLL
    for (int j = 0; j < VECTORS; j++) /* what is added to no effect is -0 */
        bias[j] = e->columns ? load(e->columns + j * LANES) : splat(-0.0f);
    for (int64_t r = e->rows; r > 0; r--, y += e->y_row, from += e->from_row) {
        UNROLL
        for (int j = 0; j < VECTORS; j++) {
            vf x = load(from + j * LANES);
            if (add) x += load(y + j * LANES);
            x += bias[j];
            if (more) x += load(more + j * LANES);
            store(y + j * LANES, act_vf(act, p0, p1, x));
        }
        if (more) more += e->more_row;
    }
}

/* All rows. */
static inline __attribute__((always_inline)) void finish_rows(sni_act act, const ending *e) {
    if (e->n == 2 * LANES && !e->row_bias && !e->slopes && !e->row_slopes && !e->column_slopes)
        finish_vectors(act, e);
    else
        for (int64_t r = 0; r < e->rows; r++) finish(act, e, r);
}

typedef void (*finish_fn)(const ending *e);

#define SNI_ACT(name)                            \
    static void finish_##name(const ending *e) { \
        finish_rows(SNI_ACT_##name, e);          \
    }
#include "cpu/core/act.def"
#undef SNI_ACT

static const finish_fn finishers[SNI_ACT_COUNT] = {
#define SNI_ACT(name) [SNI_ACT_##name] = finish_##name,
#include "cpu/core/act.def"
#undef SNI_ACT
};

/* The activation alone: it makes no ending in memory, whose words would have to be written before
 * they are read again, after all results that are still on their way there. */
typedef void (*apply_fn)(const sni_epilogue *e, float *y, int64_t n);

#define SNI_ACT(name)                                                                            \
    static void apply_##name(const sni_epilogue *e, float *y, int64_t n) {                       \
        finish(                                                                                  \
            SNI_ACT_##name,                                                                      \
            &(ending){.p0 = e->p0, .p1 = e->p1, .from = y, .y = y, .n = n, .slopes = e->slopes}, \
            0);                                                                                  \
    }
#include "cpu/core/act.def"
#undef SNI_ACT

static const apply_fn appliers[SNI_ACT_COUNT] = {
#define SNI_ACT(name) [SNI_ACT_##name] = apply_##name,
#include "cpu/core/act.def"
#undef SNI_ACT
};

static void finish_row(const sni_epilogue *e, float *y, float bias, const float *columns,
                       const float *more, int64_t n) {
    if (bias == 0 && !columns && !more) {
        appliers[e->act](e, y, n);
        return;
    }
    finishers[e->act](&(ending){.p0 = e->p0,
                                .p1 = e->p1,
                                .from = y,
                                .y = y,
                                .rows = 1,
                                .n = n,
                                .row_bias = &bias,
                                .columns = columns,
                                .more = more,
                                .slopes = e->slopes});
}
