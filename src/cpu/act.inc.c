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
#define NORMAL_STEP 0.3586207f
/* clang-format off */
static const float normal_terms[6 * 32] __attribute__((aligned(64))) = {
    /* r^0 */
                  0,  2.5743510e-07f,  1.5652438e-06f,  8.4080410e-06f,
     3.9928780e-05f,  1.6776148e-04f,  6.2419700e-04f,  2.0590827e-03f,
     6.0306640e-03f,  1.5709540e-02f,  3.6478184e-02f,  7.5717260e-02f,
     1.4099446e-01f,  2.3661257e-01f,  3.5993943e-01f,  5.0000000e-01f,
     6.4006054e-01f,  7.6338744e-01f,  8.5900550e-01f,  9.2428270e-01f,
     9.6352184e-01f,  9.8429050e-01f,  9.9396930e-01f,  9.9794090e-01f,
     9.9937580e-01f,  9.9983220e-01f,  9.9996006e-01f,  9.9999160e-01f,
     9.9999845e-01f,  9.9999976e-01f,  1.0000000e+00f,               0,
    /* r^1 */
                  0,  1.3403279e-06f,  7.6074703e-06f,  3.7967830e-05f,
     1.6662398e-04f,  6.4299160e-04f,  2.1818213e-03f,  6.5099695e-03f,
     1.7079875e-02f,  3.9403640e-02f,  7.9934426e-02f,  1.4258614e-01f,
     2.2364883e-01f,  3.0846214e-01f,  3.7409595e-01f,  3.9894226e-01f,
     3.7409595e-01f,  3.0846214e-01f,  2.2364883e-01f,  1.4258614e-01f,
     7.9934426e-02f,  3.9403640e-02f,  1.7079875e-02f,  6.5099695e-03f,
     2.1818213e-03f,  6.4299160e-04f,  1.6662398e-04f,  3.7967830e-05f,
     7.6074703e-06f,  1.3403279e-06f,               0,               0,
    /* r^2 */
                  0,  3.3624765e-06f,  1.7725422e-05f,  8.1673265e-05f,
     3.2859726e-04f,  1.1528542e-03f,  3.5208990e-03f,  9.3384350e-03f,
     2.1438478e-02f,  4.2393558e-02f,  7.1666140e-02f,  1.0226890e-01f,
     1.2030673e-01f,  1.1061911e-01f,  6.7077800e-02f,  7.7129795e-15f,
    -6.7077800e-02f, -1.1061911e-01f, -1.2030673e-01f, -1.0226890e-01f,
    -7.1666140e-02f, -4.2393558e-02f, -2.1438478e-02f, -9.3384350e-03f,
    -3.5208990e-03f, -1.1528542e-03f, -3.2859726e-04f, -8.1673265e-05f,
    -1.7725422e-05f, -3.3624765e-06f,               0,               0,
    /* r^3 */
                  0,  5.4057523e-06f,  2.6284244e-05f,  1.1084999e-04f,
     4.0436240e-04f,  1.2710504e-03f,  3.4245000e-03f,  7.8456800e-03f,
     1.5092673e-02f,  2.3838860e-02f,  2.9511945e-02f,  2.5135951e-02f,
     5.8692694e-03f, -2.4963295e-02f, -5.4330020e-02f, -6.6489310e-02f,
    -5.4330020e-02f, -2.4963295e-02f,  5.8692694e-03f,  2.5135951e-02f,
     2.9511945e-02f,  2.3838860e-02f,  1.5092673e-02f,  7.8456800e-03f,
     3.4245000e-03f,  1.2710504e-03f,  4.0436240e-04f,  1.1084999e-04f,
     2.6284244e-05f,  5.4057523e-06f,               0,               0,
    /* r^4 */
                  0,  6.4078190e-06f,  2.8331417e-05f,  1.0755641e-04f,
     3.4851120e-04f,  9.5541496e-04f,  2.1854440e-03f,  4.0712142e-03f,
     5.8748703e-03f,  5.7021743e-03f,  1.2202067e-03f, -8.0484190e-03f,
    -1.8395755e-02f, -2.2763534e-02f, -1.5928067e-02f, -2.9103843e-13f,
     1.5928067e-02f,  2.2763534e-02f,  1.8395755e-02f,  8.0484190e-03f,
    -1.2202067e-03f, -5.7021743e-03f, -5.8748703e-03f, -4.0712142e-03f,
    -2.1854440e-03f, -9.5541496e-04f, -3.4851120e-04f, -1.0755641e-04f,
    -2.8331417e-05f, -6.4078200e-06f,               0,               0,
    /* r^5 */
                  0,  5.5557850e-06f,  2.2224423e-05f,  7.5168870e-05f,
     2.1229802e-04f,  4.9036720e-04f,  8.9013170e-04f,  1.1514301e-03f,
     6.8311290e-04f, -1.1104894e-03f, -3.9588027e-03f, -6.0381440e-03f,
    -4.8091714e-03f,  4.7238142e-04f,  6.9589880e-03f,  9.9070180e-03f,
     6.9589880e-03f,  4.7238142e-04f, -4.8091714e-03f, -6.0381440e-03f,
    -3.9588027e-03f, -1.1104894e-03f,  6.8311290e-04f,  1.1514301e-03f,
     8.9013170e-04f,  4.9036720e-04f,  2.1229801e-04f,  7.5168864e-05f,
     2.2224413e-05f,  5.5557760e-06f,               0,               0,
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
#include "cpu/act.def"
#undef SNI_ACT

static const finish_fn finishers[SNI_ACT_COUNT] = {
#define SNI_ACT(name) [SNI_ACT_##name] = finish_##name,
#include "cpu/act.def"
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
#include "cpu/act.def"
#undef SNI_ACT

static const apply_fn appliers[SNI_ACT_COUNT] = {
#define SNI_ACT(name) [SNI_ACT_##name] = apply_##name,
#include "cpu/act.def"
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
