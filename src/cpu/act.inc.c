/* act.inc.c - activations on rows of results. */

/* x tanh(ln(1 + e^x)), where tanh(ln(1 + e)) is e (e + 2) / (e (e + 2) + 2). */
static inline vf mish_vf(vf x) {
    vf e = exp_vf(min_vf(x, splat(20.0f)));
    vf t = e * (e + splat(2.0f));
    return x * (t / (t + splat(2.0f)));
}

/* x times the normal distribution function of x, which is 1 - e for x > 0 and e below: e is half of
 * 2^-w with w / |x| a polynomial, and nothing from 5.6 on. Relative to the size of x within 1.5e-7
 * ... Terms of polynomials are added in pairs: their time is that of one result after another. */
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
#if defined(__AVX512F__)
    vf e = scaled_vf(p, n);
#else
    vf e = (vf)((vu)p + ((vu)shifted << 23)); /* 2^n by its bits; those of NaN do not matter */
#endif
    e = select_vf(size >= end, splat(0), e);
    return x * select_vf(x > splat(0), splat(1.0f) - e, e);
}

/* ... and its approximation 0.5 x (1 + tanh(u)), which is x sigmoid(2 u). */
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
