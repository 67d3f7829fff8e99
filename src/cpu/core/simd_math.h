/* simd_math.h - elementary functions on vectors of float32, for tier sources.
 *
 * Errors are given in units in the last place (ulp), found by comparison with double precision over
 * the whole range (tests/unit/cpu/test_cpu_math.c). NaN stays NaN everywhere. Functions have no
 * branches on lanes, so that a vector takes the same time whatever it holds; most take 10 to 25
 * instructions. */
#ifndef SNI_CPU_CORE_SIMD_MATH_H
#define SNI_CPU_CORE_SIMD_MATH_H

#include "cpu/core/simd.h"

/* True if a < b in every lane; not if either is NaN. */
static inline bool all_below(vf a, vf b) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ) == 0xffff;
#elif defined(__AVX2__)
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LT_OQ)) == 255;
#else
    for (int i = 0; i < LANES; i++)
        if (!(a[i] < b[i])) return false;
    return true;
#endif
}

static inline vf abs_vf(vf x) {
    return (vf)((vi)x & 0x7fffffff);
}

/* 2^n for integral n from -126 to 127. */
static inline vf power_of_two(vi n) {
    return (vf)((n + 127) << 23);
}

/* Range reduction: x = n ln(2) + r with |r| <= ln(2)/2. Returns a large number whose last bits are
 * n: adding 1.5 * 2^23 shifts the fraction out of the significand. */
static inline vf shift_exp(vf x, vf *n, vf *r) {
    const vf log2e = splat(1.44269504088896341f), magic = splat(12582912.0f);
    const vf ln2_high = splat(0.693145751953125f), ln2_low = splat(1.42860682030941723e-6f);
    vf shifted = x * log2e + magic;
    *n = shifted - magic;
    *r = x - *n * ln2_high - *n * ln2_low;
    return shifted;
}

/* The same; returns n. */
static inline vf reduce_exp(vf x, vf *r) {
    vf n;
    shift_exp(x, &n, r);
    return n;
}

/* p 2^n for integral n, where neither 2^n nor the result leaves the range of normal numbers. */
static inline vf scaled_vf(vf p, vf n) {
#if defined(__AVX512F__)
    return (vf)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
    return p * power_of_two(__builtin_convertvector(select_vf(n == n, n, splat(0)), vi));
#endif
}

/* (e^r - 1 - r) / r^2 for |r| <= ln(2)/2. */
static inline vf exp_rest(vf r) {
    vf p = splat(1.38145985e-3f);
    p = p * r + splat(8.36871688e-3f);
    p = p * r + splat(4.1668388e-2f);
    p = p * r + splat(1.66665206e-1f);
    return p * r + splat(4.99999934e-1f);
}

/* e^r for |r| <= ln(2)/2. */
static inline vf exp_small(vf r) {
    return (exp_rest(r) * r + splat(1.0f)) * r + splat(1.0f);
}

/* e^x within 2 ulp for |x| <= 87: the same bits as exp_vf. */
static inline vf exp_mid_vf(vf x) {
    vf n, r, shifted = shift_exp(x, &n, &r), p = exp_small(r);
#if defined(__AVX512F__)
    (void)shifted;
    return (vf)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
    return p * (vf)(((vu)shifted << 23) + (127u << 23));
#endif
}

/* p 2^n where that is below 2^-125, for integral n down to -150. The last place is computed as an
 * integer: a floating-point instruction with a subnormal result takes about 100 times as long. */
static inline vf scaled_tiny_vf(vf p, vf n) {
    vf last_places = scaled_vf(p, n + splat(149.0f));
#if defined(__AVX512F__)
    return (vf)_mm512_cvtps_epi32((__m512)last_places);
#elif defined(__AVX2__)
    return (vf)_mm256_cvtps_epi32((__m256)last_places);
#else
    const vf whole = splat(8388608.0f); /* 2^23: larger floats are integers */
    last_places = select_vf(last_places < whole, (last_places + whole) - whole, last_places);
    return (vf) __builtin_convertvector(select_vf(p == p, last_places, splat(0)), vi);
#endif
}

/* e^x within 2 ulp; 0 below -104, infinity above 88.8. */
static inline vf exp_vf(vf x) {
#if defined(__AVX2__)
    if (__builtin_expect(all_below(abs_vf(x), splat(87.0f)), 1)) return exp_mid_vf(x);
#endif
    vf r, n = reduce_exp(min_vf(max_vf(x, splat(-104.0f)), splat(104.0f)), &r);
    vf p = exp_small(r), tiny = scaled_tiny_vf(p, min_vf(n, splat(-126.0f)));
#if defined(__AVX512F__)
    __mmask16 normal = _mm512_cmp_ps_mask((__m512)n, (__m512)splat(-126.0f), _CMP_NLE_UQ);
    return (vf)_mm512_mask_scalef_ps((__m512)tiny, normal, (__m512)p, (__m512)n);
#else
    /* 2^n in two factors, so that results near the upper end of the range keep their bits. */
    vi whole = __builtin_convertvector(select_vf(n > splat(-126.0f), n, splat(0)), vi);
    vi half = whole >> 1;
    return select_vf(n <= splat(-126.0f), tiny,
                     p * power_of_two(half) * power_of_two(whole - half));
#endif
}

/* e^x within 2 ulp for x <= 0, for sums that softmax divides by. Below -87 it is 0: such terms do
 * not change the sum, and subnormal numbers would slow later instructions down. */
static inline vf weight_vf(vf x) {
    vf r, n = reduce_exp(max_vf(x, splat(-87.0f)), &r);
    vf p = exp_small(r);
#if defined(__AVX512F__)
    __mmask16 some = _mm512_cmp_ps_mask((__m512)x, (__m512)splat(-87.0f), _CMP_NLT_UQ);
    return (vf)_mm512_maskz_scalef_ps(some, (__m512)p, (__m512)n);
#else
    return select_vf(x < splat(-87.0f), splat(0), scaled_vf(p, n));
#endif
}

/* e^x - 1 within 2 ulp for x <= 0. */
static inline vf expm1_vf(vf x) {
    vf r, n = reduce_exp(max_vf(x, splat(-50.0f)), &r);
    vf scale = scaled_vf(splat(1.0f), n);
    vf rest = exp_rest(r) * (r * r) + r;
    return rest * scale + (scale - splat(1.0f));
}

/* Natural logarithm within 2 ulp; minus infinity of 0, NaN below 0. */
static inline vf log_vf(vf x) {
    vi tiny = x < splat(1.17549435e-38f);
    vf y = select_vf(tiny, x * splat(8388608.0f), x);
    vi bits =
        (vi)y - 0x3f3504f3; /* bits of sqrt(1/2): the significand is in [sqrt(1/2), sqrt(2)) */
    vf n = __builtin_convertvector((bits >> 23) - (tiny & 23), vf);
    vf f = (vf)((bits & 0x7fffff) + 0x3f3504f3) - splat(1.0f);
    vf p = splat(6.74664111e-2f);
    p = p * f + splat(-1.1675652e-1f);
    p = p * f + splat(1.18881621e-1f);
    p = p * f + splat(-1.24055889e-1f);
    p = p * f + splat(1.42195524e-1f);
    p = p * f + splat(-1.66679959e-1f);
    p = p * f + splat(2.00021187e-1f);
    p = p * f + splat(-2.50000096e-1f);
    p = p * f + splat(3.33333126e-1f);
    vf square = f * f;
    vf low = p * f * square + n * splat(-2.12194440e-4f) - square * splat(0.5f);
    vf result = f + low + n * splat(0.693359375f);
    result = select_vf(x < splat(INFINITY), result, x); /* infinity, and NaN as it is */
    result = select_vf(x == splat(0), splat(-INFINITY), result);
    return select_vf(x < splat(0), splat(NAN), result);
}

/* ln(1 + x) within 2 ulp for x >= 0. */
static inline vf log1p_vf(vf x) {
    vf sum = splat(1.0f) + x;
    vf lost = x - (sum - splat(1.0f)); /* rounded away when 1 was added */
    vf result = log_vf(sum) + lost / sum;
    return select_vf(x < splat(INFINITY), result, x);
}

/* 1 + e^-x within 2 ulp for x >= end, at least 1. Below `end` it is the value at `end` with AVX-512
 * and infinity without. exp_vf is not called: this ends many convolutions, and e^-x needs fewer
 * instructions when its range is known. */
static inline vf one_plus_exp_minus(vf x, vf end) {
    const vf magic = splat(12582912.0f), log2e = splat(1.44269504088896341f);
#if defined(__AVX512F__)
    vf t = min_vf(max_vf(x, end), splat(87.0f));
#else
    vf t = min_vf(select_vf(x < end, splat(-89.0f), x), splat(87.0f));
#endif
    vf shifted = magic - t * log2e, n = shifted - magic;
    /* t = -n ln(2) + r with |r| <= ln(2)/2 */
    vf r = t + n * splat(0.693145751953125f) + n * splat(1.42860682030941723e-6f);
    vf p = splat(-8.36871688e-3f) + splat(1.38145985e-3f) * r;
    p = p * r + splat(4.1668388e-2f);
    p = p * r + splat(-1.66665206e-1f);
    p = p * r + splat(4.99999934e-1f);
    p = p * r + splat(-1.0f);
    p = p * r + splat(1.0f);
#if defined(__AVX512F__)
    return (vf)_mm512_scalef_ps((__m512)p, (__m512)n) + splat(1.0f);
#else
    /* The last bits of `shifted` are n; n = 128 makes infinity. */
    vu scale = ((vu)shifted << 23) + (127u << 23);
    return p * (vf)scale + splat(1.0f);
#endif
}

/* 1 / (1 + e^-x) within 3 ulp where the result is a normal number; 0 where it is not. */
static inline vf sigmoid_vf(vf x) {
    const vf end = splat(-87.33f);
    vf sum = one_plus_exp_minus(x, end);
#if defined(__AVX512F__)
    __m512 one = _mm512_set1_ps(1), y = _mm512_rcp14_ps((__m512)sum);
    __mmask16 some = _mm512_cmp_ps_mask((__m512)x, (__m512)end, _CMP_NLT_UQ);
    return (vf)_mm512_maskz_fmadd_ps(some, _mm512_fnmadd_ps((__m512)sum, y, one), y, y);
#else
    return splat(1.0f) / sum;
#endif
}

#if defined(__AVX512F__)
/* 2^(i/32). */
static const float thirty_seconds[32] __attribute__((aligned(64))) = {
    1.0f,        1.02189715f, 1.04427378f, 1.0671404f,  1.09050773f, 1.11438674f, 1.13878863f,
    1.16372486f, 1.18920712f, 1.21524736f, 1.24185781f, 1.26905096f, 1.29683955f, 1.32523664f,
    1.35425555f, 1.38390988f, 1.41421356f, 1.44518081f, 1.47682615f, 1.50916443f, 1.54221083f,
    1.57598085f, 1.61049033f, 1.64575548f, 1.68179283f, 1.7186193f,  1.75625216f, 1.79470908f,
    1.83400809f, 1.87416763f, 1.91520656f, 1.95714412f};
#endif

/* x sigmoid(u) = x / (1 + 2^t) with 2^t = e^-u, with an error of at most 1.5e-7 |x|. SiLU and
 * GELU's tanh approximation end many convolutions, so this function has the fewest instructions:
 * the integer part of t becomes the exponent; with AVX-512 the next five bits index a table of
 * 2^(i/32) and the rest needs two terms. t is clamped where 2^t is infinite and where it no longer
 * changes 1, which avoids subnormal powers (about 100 cycles each). The division runs beside the
 * multiply-add units. */
static inline vf times_sigmoid_vf(vf x, vf u) {
    const vf one = splat(1.0f), log2e = splat(1.44269504f);
#if defined(__AVX512F__)
    const vf magic = splat(393216.0f); /* 1.5 * 2^18 */
    vf v = max_vf(min_vf(u, splat(44.0f)), splat(-104.0f));
    vf shifted = magic - v * log2e, n = shifted - magic, rest = -n - v * log2e;
    vf part = (vf)_mm512_permutex2var_ps(_mm512_load_ps(thirty_seconds), (__m512i)shifted,
                                         _mm512_load_ps(thirty_seconds + 16));
    vf p = rest * splat(2.4022688e-1f) + splat(6.93157315e-1f);
    p = (part * rest) * p + part;
    return x / ((vf)_mm512_scalef_ps((__m512)p, (__m512)n) + one);
#else
    const vf magic = splat(12582912.0f);
    vf t = min_vf(max_vf(-log2e * u, splat(-64.0f)), splat(128.0f));
    vf shifted = t + magic, r = t - (shifted - magic);
    vf p = splat(1.32647261e-3f) * r + splat(9.67151299e-3f);
    p = p * r + splat(5.55073358e-2f);
    p = p * r + splat(2.40222424e-1f);
    p = p * r + splat(6.93147004e-1f);
    p = p * r + one; /* n = 128, the upper end, makes infinity of p = 1 */
    return x / ((vf)((vu)p + ((vu)shifted << 23)) + one);
#endif
}

static inline vf sqrt_vf(vf x) {
#if defined(__AVX512F__)
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX2__)
    return (vf)_mm256_sqrt_ps((__m256)x);
#else
    vf y;
    for (int i = 0; i < LANES; i++) y[i] = sqrtf(x[i]);
    return y;
#endif
}

/* x >= 0 with the sign of `sign`. */
static inline vf with_sign(vf x, vf sign) {
    return (vf)((vi)x | ((vi)sign & (int32_t)0x80000000));
}

/* |x| with the sign of `sign`. */
static inline vf copy_sign(vf x, vf sign) {
#if defined(__AVX512F__)
    __m512i mask = _mm512_set1_epi32((int)0x80000000);
    return (vf)_mm512_ternarylogic_epi32(mask, (__m512i)sign, (__m512i)x, 0xca);
#else
    return with_sign(abs_vf(x), sign);
#endif
}

/* tanh within 2 ulp, as (1 - w) / (1 + w) with w = e^-2|x|. Let 2^n be the power of two in w and
 * h = -|x| - n ln(2) / 2. Half of the numerator is computed as 2^n (e^2h - 1) / 2 + (2^n - 1) / 2,
 * and half of the denominator likewise, so that no leading digits cancel. */
static inline vf tanh_vf(vf x) {
    const vf magic = splat(12582912.0f), half = splat(0.5f);
    vf t = max_vf((vf)((vu)x | 0x80000000u), splat(-9.1f)); /* beyond that tanh rounds to 1 */
    vf shifted = t * splat(2.88539008f) + magic, n = shifted - magic;
    vf h = t - n * splat(0.346573590f), square = h * h;
    vf low = h * splat(0.666661859f) + splat(0.99999994f);
    vf p = h * splat(0.133860186f) + splat(0.333339483f);
    p = square * splat(0.0443861f) + p;
    p = p * square + low;
    p = p * square + h;
    vf scale = (vf)(((vu)shifted << 23) + (127u << 23));
    return copy_sign((p * scale + (scale * half - half)) / (p * scale + (scale * half + half)), x);
}

/* erf within 2 ulp: an odd polynomial up to 0.875, above that 1 - e^-q with a polynomial q. */
static inline vf erf_vf(vf x) {
    vf size = abs_vf(x), square = x * x;
    vf p = splat(8.67539119e-5f);
    p = p * square + splat(-8.21110382e-4f);
    p = p * square + splat(5.20674742e-3f);
    p = p * square + splat(-2.68615847e-2f);
    p = p * square + splat(1.1283733e-1f);
    p = p * square + splat(-3.76126361e-1f);
    p = p * square + splat(1.28379167e-1f);
    vf t = min_vf(size, splat(4.0f));
    vf q = splat(-2.15224918e-4f);
    q = q * t + splat(3.22512324e-3f);
    q = q * t + splat(-2.29223819e-2f);
    q = q * t + splat(1.05312092e-1f);
    q = q * t + splat(6.3568043e-1f);
    q = q * t + splat(1.12852548f);
    vf large = splat(1.0f) - exp_mid_vf(-(q * t));
    return select_vf(size < splat(0.875f), p * x + x, with_sign(large, x));
}

/* ln(1 + e^x) within 3 ulp. */
static inline vf softplus_vf(vf x) {
    return max_vf(x, splat(0)) + log1p_vf(exp_vf(-abs_vf(x)));
}

#endif
