/* act_vf.h - the activations of cpu/core/act.def on vectors of float32, for tier sources. */
#ifndef SNI_CPU_CORE_ACT_VF_H
#define SNI_CPU_CORE_ACT_VF_H

#include "cpu/core/kernels.h"
#include "cpu/core/simd_math.h"

/* x tanh(ln(1 + e^x)), where tanh(ln(1 + e)) is e (e + 2) / (e (e + 2) + 2). */
static inline vf mish_vf(vf x) {
    vf e = exp_vf(min_vf(x, splat(20.0f)));
    vf t = e * (e + splat(2.0f));
    return x * (t / (t + splat(2.0f)));
}

#if defined(__AVX512F__)
/* Taylor coefficients (r^0 to r^5) of the normal distribution function around multiples of
 * NORMAL_STEP, from -15 to 15 steps. Entry 0 is 0, as everything below -15 steps; entry 30 is 1. 32
 * entries are two vectors, which one permutation indexes. */
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

/* The coefficients of r^power that the last five bits of `index` choose. */
static inline vf normal_term(int power, vf index) {
    return (vf)_mm512_permutex2var_ps(_mm512_load_ps(normal_terms + 32 * power), (__m512i)index,
                                      _mm512_load_ps(normal_terms + 32 * power + 16));
}

/* GELU: x times the normal distribution function of x, from the table above. The error is at most
 * 1.5e-7 |x|. */
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
/* GELU: x times the normal distribution function of x, which is 1 - e for x > 0 and e for x < 0. e
 * is 2^-w / 2 with a polynomial w / |x|, and 0 from |x| = 5.6 on. The error is at most 1.5e-7 |x|.
 * Polynomials are evaluated in pairs of terms (Estrin), which shortens the chain of dependent
 * instructions. */
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
    vf e = (vf)((vu)p + ((vu)shifted << 23)); /* times 2^n; what becomes of NaN does not matter */
    e = select_vf(size >= end, splat(0), e);
    return x * select_vf(x > splat(0), splat(1.0f) - e, e);
}
#endif

/* GELU's approximation 0.5 x (1 + tanh(u)) = x sigmoid(2 u). */
static inline vf gelu_tanh_vf(vf x) {
    const vf a = splat(1.59576912160573071f), b = splat(0.0713548162726f);
    vf u = x * (a + b * (x * x));
    return times_sigmoid_vf(x, u);
}

static inline vf clamp_vf(vf x, vf low, vf high) {
    return min_vf(max_vf(x, low), high);
}

/* act(x) for functions that are rarely fused into an epilogue. */
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

/* act(x) with coefficients p0 and p1 (cpu/core/act.def). `act` is a constant at every call: the
 * switch leaves no code. */
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

#endif
