/* doubles.isa.c - functions and softmax of float64, for one tier. One vector of LANES / 2 doubles
 * per step and a masked tail; what limits them is the functions' instructions. */
#include "cpu/elementwise/doubles.h"

#include "cpu/elementwise/simd64_math.h"

/* ---- Functions of one number ---- */

static inline vd clamp_vd(vd x, vd low, vd high) {
    return min_vd(max_vd(x, low), high);
}

/* x tanh(ln(1 + e^x)), where tanh(ln(1 + e)) is e (e + 2) / (e (e + 2) + 2). */
static inline vd mish_vd(vd x) {
    vd e = exp_vd(min_vd(x, splat_vd(40.0)));
    vd t = e * (e + splat_vd(2.0));
    return keep_nan_vd(x, x * (t / (t + splat_vd(2.0))));
}

static inline vd gelu_vd(vd x) {
    vd e = erf_vd(x * splat_vd(0.70710678118654752440));
    return keep_nan_vd(x, splat_vd(0.5) * x * (splat_vd(1.0) + e));
}

static inline vd gelu_tanh_vd(vd x) {
    const vd a = splat_vd(0.79788456080286535588), b = splat_vd(0.044715);
    return splat_vd(0.5) * x * (splat_vd(1.0) + tanh_vd(a * (x + b * x * x * x)));
}

/* Elements between what is computed and what is prefetched; see map.isa.c. */
enum { PREFETCH = 256 };

/* name_row: y = expr, of a vector v and the coefficients a and b. */
#define ROW(name, expr)                                                                          \
    static inline vd name##_of(vd v, vd a, vd b) {                                               \
        (void)a, (void)b;                                                                        \
        return expr;                                                                             \
    }                                                                                            \
    static void name##_row(const void *from, void *to, int64_t n, const void *params) {          \
        const double *x = from, *p = params;                                                     \
        double *y = to;                                                                          \
        vd a = splat_vd(p ? p[0] : 0), b = splat_vd(p ? p[1] : 0);                               \
        int64_t i = 0;                                                                           \
        for (; i + PREFETCH + DOUBLES <= n; i += DOUBLES) {                                      \
            __builtin_prefetch(x + i + PREFETCH, 0);                                             \
            __builtin_prefetch(y + i + PREFETCH, 1);                                             \
            store_vd(y + i, name##_of(load_vd(x + i), a, b));                                    \
        }                                                                                        \
        for (; i + DOUBLES <= n; i += DOUBLES) store_vd(y + i, name##_of(load_vd(x + i), a, b)); \
        if (i < n) store_some_vd(y + i, n - i, name##_of(load_some_vd(x + i, n - i, 1), a, b));  \
    }

ROW(floor, floor_vd(v))
ROW(ceil, ceil_vd(v))
ROW(round, round_vd(v))
ROW(relu, max_vd(v, splat_vd(0)))
ROW(clip, clamp_vd(v, a, b))
ROW(leaky_relu, select_vd(v < splat_vd(0), v *a, v))
ROW(hard_sigmoid, clamp_vd(v *a + b, splat_vd(0), splat_vd(1.0)))
ROW(hard_swish, v *clamp_vd(v / splat_vd(6.0) + splat_vd(0.5), splat_vd(0), splat_vd(1.0)))
ROW(sigmoid, sigmoid_vd(v))
ROW(tanh, tanh_vd(v))
ROW(gelu, gelu_vd(v))
ROW(erf, erf_vd(v))
ROW(gelu_tanh, gelu_tanh_vd(v))
ROW(mish, mish_vd(v))
ROW(elu, select_vd(v < splat_vd(0), a *expm1_vd(min_vd(v, splat_vd(0))), v))
ROW(celu, select_vd(v > splat_vd(0), v, a *expm1_vd(v / a)))
ROW(selu, b *select_vd(v > splat_vd(0), v, a *expm1_vd(min_vd(v, splat_vd(0)))))
ROW(softsign, v / (splat_vd(1.0) + abs_vd(v)))
ROW(softplus, a *softplus_vd(b *v))
ROW(swish, keep_nan_vd(v, v *sigmoid_vd(a *v)))
ROW(exp, exp_vd(v))
ROW(log, log_vd(v))
ROW(sqrt, sqrt_vd(v))
ROW(reciprocal, splat_vd(1.0) / v)
ROW(abs, abs_vd(v))
ROW(neg, -v)
ROW(none, v)
ROW(square, v *v)
ROW(cube, v *v *v)
#undef ROW

/* Lanes with large angles or NaN are computed one by one; the others must not be affected. */
static __attribute__((noinline)) vd far_sincos(vd v, int shift) {
    vl near = abs_vd(v) <= splat_vd(turns_limit);
    vd r = sincos_vd(select_vd(near, v, splat_vd(0)), shift);
    for (int j = 0; j < DOUBLES; j++)
        if (!near[j]) r[j] = shift ? cos(v[j]) : sin(v[j]);
    return r;
}

static inline __attribute__((always_inline)) void sincos_row(const double *x, double *y, int64_t n,
                                                             int shift) {
    for (int64_t i = 0; i < n; i += DOUBLES) {
        int64_t count = n - i < DOUBLES ? n - i : DOUBLES;
        vd v = count < DOUBLES ? load_some_vd(x + i, count, 0) : load_vd(x + i);
        vd r = all_below_vd(abs_vd(v), splat_vd(turns_limit)) ? sincos_vd(v, shift)
                                                              : far_sincos(v, shift);
        if (count < DOUBLES)
            store_some_vd(y + i, count, r);
        else
            store_vd(y + i, r);
    }
}

static void sin_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    sincos_row(x, y, n, 0);
}

static void cos_row(const void *x, void *y, int64_t n, const void *params) {
    (void)params;
    sincos_row(x, y, n, 1);
}

/* ---- Softmax ---- */

static double max_row(const double *x, int64_t n) {
    vd most = splat_vd(-INFINITY), more = most;
    int64_t i = 0;
    for (; i + 2 * DOUBLES <= n; i += 2 * DOUBLES) {
        most = max_vd(most, load_vd(x + i));
        more = max_vd(more, load_vd(x + i + DOUBLES));
    }
    for (; i < n; i += DOUBLES)
        most =
            max_vd(most, n - i < DOUBLES ? load_some_vd(x + i, n - i, -INFINITY) : load_vd(x + i));
    return max_lanes_vd(max_vd(most, more));
}

/* y = e^(x - most) for x <= most; returns the sum of y. */
static double exp_row_of(const double *x, double *y, int64_t n, double most) {
    vd sum = splat_vd(0), m = splat_vd(most);
    int64_t i = 0;
    for (; i + DOUBLES <= n; i += DOUBLES) {
        vd a = weight_vd(load_vd(x + i) - m);
        store_vd(y + i, a);
        sum += a;
    }
    if (i < n) {
        vd a = weight_vd(load_some_vd(x + i, n - i, -INFINITY) - m);
        store_some_vd(y + i, n - i, a);
        sum += a;
    }
    return sum_lanes_vd(sum);
}

static void softmax_row(const double *x, double *y, int64_t n) {
    vd inverse = splat_vd(1 / exp_row_of(x, y, n, max_row(x, n)));
    int64_t i = 0;
    for (; i + DOUBLES <= n; i += DOUBLES) store_vd(y + i, load_vd(y + i) * inverse);
    if (i < n) store_some_vd(y + i, n - i, load_some_vd(y + i, n - i, 0) * inverse);
}

/* `y` holds the exponentials while their sum is taken. */
static void log_softmax_row(const double *x, double *y, int64_t n) {
    double most = max_row(x, n), log_sum = log(exp_row_of(x, y, n, most));
    vd m = splat_vd(most), l = splat_vd(log_sum);
    int64_t i = 0;
    for (; i + DOUBLES <= n; i += DOUBLES) store_vd(y + i, load_vd(x + i) - m - l);
    if (i < n) store_some_vd(y + i, n - i, load_some_vd(x + i, n - i, 0) - m - l);
}

static void softmax_columns(const double *x, double *y, int64_t n, int64_t step, int64_t count,
                            bool logarithm) {
    const bool whole = count == DOUBLES;
    vd most = whole ? load_vd(x) : load_some_vd(x, count, 0), sum = splat_vd(0);
    for (int64_t i = 1; i < n; i++) {
        const double *at = x + i * step;
        vd v = whole ? load_vd(at) : load_some_vd(at, count, 0);
        most = select_vd(v > most, v, most);
    }
    for (int64_t i = 0; i < n; i++) {
        const double *at = x + i * step;
        sum += weight_vd((whole ? load_vd(at) : load_some_vd(at, count, 0)) - most);
    }
    vd inverse = splat_vd(1.0) / sum, log_sum = log_vd(sum);
    for (int64_t i = 0; i < n; i++) {
        const double *at = x + i * step;
        vd v = (whole ? load_vd(at) : load_some_vd(at, count, 0)) - most;
        v = logarithm ? v - log_sum : weight_vd(v) * inverse;
        if (whole)
            store_vd(y + i * step, v);
        else
            store_some_vd(y + i * step, count, v);
    }
}

SNI_DEFINE_TABLE(sni_doubles) = {
    .map = {[SNI_ACT_NONE] = none_row,
            [SNI_ACT_SQUARE] = square_row,
            [SNI_ACT_CUBE] = cube_row,
            [SNI_ACT_RELU] = relu_row,
            [SNI_ACT_CLIP] = clip_row,
            [SNI_ACT_LEAKY_RELU] = leaky_relu_row,
            [SNI_ACT_HARD_SIGMOID] = hard_sigmoid_row,
            [SNI_ACT_HARD_SWISH] = hard_swish_row,
            [SNI_ACT_SIGMOID] = sigmoid_row,
            [SNI_ACT_TANH] = tanh_row,
            [SNI_ACT_GELU] = gelu_row,
            [SNI_ACT_ERF] = erf_row,
            [SNI_ACT_GELU_TANH] = gelu_tanh_row,
            [SNI_ACT_MISH] = mish_row,
            [SNI_ACT_ELU] = elu_row,
            [SNI_ACT_CELU] = celu_row,
            [SNI_ACT_SELU] = selu_row,
            [SNI_ACT_SOFTSIGN] = softsign_row,
            [SNI_ACT_SOFTPLUS] = softplus_row,
            [SNI_ACT_SWISH] = swish_row,
            [SNI_ACT_EXP] = exp_row,
            [SNI_ACT_LOG] = log_row,
            [SNI_ACT_SQRT] = sqrt_row,
            [SNI_ACT_RECIPROCAL] = reciprocal_row,
            [SNI_ACT_ABS] = abs_row,
            [SNI_ACT_NEG] = neg_row},
#define FIELD(op, row) .row = row,
    SNI_DOUBLES_UNARY(FIELD)
#undef FIELD
        .softmax_row = softmax_row,
    .log_softmax_row = log_softmax_row,
    .lanes = DOUBLES,
    .softmax_columns = softmax_columns,
};
