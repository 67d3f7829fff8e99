/* simd64_math.h - elementary functions on vectors of float64, for tier sources.
 *
 * Errors are given in units in the last place (ulp), found by comparison with long double over the
 * whole range (tests/unit/cpu/test_cpu_doubles.c). NaN stays NaN everywhere. Error bounds hold with
 * and without fused multiply-adds. */
#ifndef SNI_CPU_ELEMENTWISE_SIMD64_MATH_H
#define SNI_CPU_ELEMENTWISE_SIMD64_MATH_H

#include "cpu/core/simd64.h"

/* 1.5 * 2^52: a number that is added to it loses its fraction and becomes the last bits of the sum.
 */
static const double whole_magic = 6755399441055744.0;

/* 2^n for n from -1022 to 1023 that was added to whole_magic. */
static inline vd power_of_magic_vd(vd shifted) {
    return (vd)(((vul)shifted << 52) + (UINT64_C(1023) << 52));
}

/* Range reduction: x = n ln(2) + *r + *low with |r| <= ln(2)/2, for |x| < 800. Returns whole_magic
 * + n. The first part of ln(2) has 32 bits, so that its multiples are exact; *low is the rounding
 * error of *r. */
static inline vd reduce_exp_vd(vd x, vd *n, vd *r, vd *low) {
    const vd magic = splat_vd(whole_magic);
    vd shifted = x * splat_vd(1.4426950408889634) + magic;
    *n = shifted - magic;
    vd most = x - *n * splat_vd(0.6931471803691238), less = *n * splat_vd(1.9082149292705877e-10);
    *r = most - less;
    *low = (most - *r) - less;
    return shifted;
}

/* (e^r - 1 - r) / r^2 for |r| <= ln(2)/2; the error is below 2^-61 of e^r - 1. */
static inline vd exp_rest_vd(vd r) {
    vd p = splat_vd(2.092447181488609e-09);
    p = p * r + splat_vd(2.5109066469377188e-08);
    p = p * r + splat_vd(2.7557242678240183e-07);
    p = p * r + splat_vd(2.755724413513147e-06);
    p = p * r + splat_vd(2.4801587360633155e-05);
    p = p * r + splat_vd(0.00019841269886187852);
    p = p * r + splat_vd(0.0013888888888866813);
    p = p * r + splat_vd(0.008333333333321612);
    p = p * r + splat_vd(0.0416666666666667);
    p = p * r + splat_vd(0.16666666666666677);
    return p * r + splat_vd(0.5);
}

/* e^x / 2^n within 1 ulp for |x| < 800; *shifted becomes whole_magic + n. */
static inline vd exp_part_vd(vd x, vd *shifted, vd *n) {
    vd r, low;
    *shifted = reduce_exp_vd(x, n, &r, &low);
    return (exp_rest_vd(r) * (r * r) + r) + splat_vd(1.0);
}

/* e^x within 1 ulp for |x| < 708: the same bits as exp_vd. */
static inline vd exp_mid_vd(vd x) {
    vd n, shifted, p = exp_part_vd(x, &shifted, &n);
    return p * power_of_magic_vd(shifted);
}

/* The same for any x: 2^n in two factors. Lanes whose result is 0 are computed for x = 0 instead,
 * as subnormal intermediate results would be slow. */
static __attribute__((noinline)) vd exp_far_vd(vd x) {
    const vd magic = splat_vd(whole_magic);
    vl none = x < splat_vd(-745.14);
    vd t = min_vd(select_vd(none, splat_vd(0), x), splat_vd(710.0));
    vd n, shifted, p = exp_part_vd(t, &shifted, &n);
    vd half = n * splat_vd(0.5) + magic, rest = (n - (half - magic)) + magic;
    return select_vd(none, splat_vd(0), p * power_of_magic_vd(half) * power_of_magic_vd(rest));
}

/* e^x within 1 ulp; 0 below -745.13, infinity above 709.78. */
static inline vd exp_vd(vd x) {
    if (__builtin_expect(all_below_vd(abs_vd(x), splat_vd(708.0)), 1)) return exp_mid_vd(x);
    return exp_far_vd(x);
}

/* e^x within 1 ulp for x <= 0, for sums that softmax divides by: 0 below -708, as such terms do not
 * change the sum. */
static inline vd weight_vd(vd x) {
    const vd end = splat_vd(-708.0);
    return select_vd(x < end, splat_vd(0), exp_mid_vd(max_vd(x, end)));
}

/* e^x - 1 within 1 ulp for x <= 0; *more is its rounding error. With e^x = 2^n e^r it is the sum of
 * (2^n - 1) + 2^n r, whose rounding error is known exactly, and 2^n (e^r - 1 - r). */
static inline vd expm1_parts_vd(vd x, vd *more) {
    vd n, r, low, scale;
    scale = power_of_magic_vd(reduce_exp_vd(max_vd(x, splat_vd(-50.0)), &n, &r, &low));
    vd less = scale - splat_vd(1.0), line = scale * r, sum = less + line;
    vd rest = (line - (sum - less)) + scale * (exp_rest_vd(r) * (r * r) + low);
    vd all = sum + rest;
    *more = rest - (all - sum);
    return all;
}

static inline vd expm1_vd(vd x) {
    vd more;
    return expm1_parts_vd(x, &more);
}

/* (a + a_more) / (b + b_more) for b from 1 to 2, where a_more and b_more are rounding errors. */
static inline vd quotient_vd(vd a, vd a_more, vd b, vd b_more) {
    vd q = a / b, inverse = (splat_vd(0.34) * b - splat_vd(1.51)) * b + splat_vd(2.16); /* about */
    return q + (a_more - q * b_more) * inverse;
}

/* Natural logarithm within 1 ulp; minus infinity of 0, NaN below 0. With s = f / (2 + f) the
 * logarithm of 1 + f is 2 (s + s^3/3 + ...), which is f - f^2/2 + s (f^2/2 + s^2 R(s^2)). */
static inline vd log_vd(vd x) {
    vl tiny = x < splat_vd(2.2250738585072014e-308);
    vd y = select_vd(tiny, x * splat_vd(18014398509481984.0), x);
    /* Counted from the bits of sqrt(1/2): the significand is in [sqrt(1/2), sqrt(2)). */
    vul bits = (vul)y - UINT64_C(0x3fe6a09e667f3bcd) + (UINT64_C(1023) << 52);
    vd n = (vd)((bits >> 52) | UINT64_C(0x4330000000000000)) - splat_vd(4503599627370496.0 + 1023);
    n -= (vd)(tiny & (vl)splat_vd(54.0));
    vd f = (vd)((bits & UINT64_C(0xfffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd)) - splat_vd(1.0);
    vd s = f / (splat_vd(2.0) + f), z = s * s, half = splat_vd(0.5) * f * f;
    vd p = splat_vd(0.14793499457920037);
    p = p * z + splat_vd(0.15314332525958907);
    p = p * z + splat_vd(0.18183551547207968);
    p = p * z + splat_vd(0.22222198861733752);
    p = p * z + splat_vd(0.2857142873902125);
    p = p * z + splat_vd(0.3999999999943343);
    p = p * z + splat_vd(0.6666666666666731);
    vd low = s * (half + p * z) + n * splat_vd(1.9082149292705877e-10);
    vd result = n * splat_vd(0.6931471803691238) - ((half - low) - f);
    result = select_vd(x < splat_vd(INFINITY), result, x); /* infinity, and NaN as it is */
    result = select_vd(x == splat_vd(0), splat_vd(-INFINITY), result);
    return select_vd(x < splat_vd(0), splat_vd(NAN), result);
}

/* ln(1 + x) within 2 ulp for 0 <= x <= 1. */
static inline vd log1p_vd(vd x) {
    vd sum = splat_vd(1.0) + x;
    vd lost = x - (sum - splat_vd(1.0)); /* rounded away when 1 was added */
    return log_vd(sum) + lost / sum;
}

/* 1 / (1 + e^-x) within 2 ulp, as (x < 0 ? e^-|x| : 1) / (1 + e^-|x|). */
static inline vd sigmoid_vd(vd x) {
    const vd one = splat_vd(1.0);
    vd e = exp_vd(-abs_vd(x)), sum = one + e, a = select_vd(x < splat_vd(0), e, one);
    return quotient_vd(a, splat_vd(0), sum, e - (sum - one));
}

/* tanh |x| = -m / (2 + m) with m = e^-2|x| - 1, within 2 ulp; m is -1 from |x| = 20 on. */
static inline vd tanh_vd(vd x) {
    const vd two = splat_vd(2.0);
    vd more, m = expm1_parts_vd(max_vd(abs_vd(x) * -two, splat_vd(-40.0)), &more), sum = two + m;
    return with_sign_vd(abs_vd(quotient_vd(m, more, sum, (m - (sum - two)) + more)), x);
}

/* y, or x where x is NaN. An operation on two NaNs returns one of them, and compilers may swap the
 * operands: without this the sign of a NaN would depend on the element's place in the row. */
static inline vd keep_nan_vd(vd x, vd y) {
    return select_vd(x == x, y, x);
}

/* ln(1 + e^x) within 2 ulp. */
static inline vd softplus_vd(vd x) {
    return keep_nan_vd(x, max_vd(x, splat_vd(0)) + log1p_vd(exp_vd(-abs_vd(x))));
}

/* -ln(1 - erf(t)) for 1 <= t <= 6: one polynomial below 2.25 and one above, in t less the middle of
 * its interval. */
static inline vd erf_tail_vd(vd t) {
    static const double terms[][2] = {
        {2.834249445485729e-10, -1.5922899296606133e-10},
        {2.594316630850129e-08, -1.5793168728877347e-09},
        {-1.5277756361466266e-07, -6.325703348280998e-09},
        {5.830598515209105e-07, -2.2851780283705925e-08},
        {-1.500131904872179e-06, 7.1368144085672776e-09},
        {4.96651498311871e-07, -2.9867984357500004e-07},
        {2.3963843790446674e-05, 1.841389471354536e-06},
        {-0.00019549045385839088, -1.2387147873864695e-05},
        {0.0011028409336130386, 8.110322573270163e-05},
        {-0.005270029324061775, -0.0005284233979357063},
        {0.023008967325315165, 0.0035157587226726777},
        {0.9017850296578718, 0.9748141681262475},
        {3.733125959072621, 8.479911403871885},
        {3.837088703777943, 19.032542764457453},
    };
    vl far = t >= splat_vd(2.25);
    vd u = t - select_vd(far, splat_vd(4.125), splat_vd(1.625)), q = splat_vd(0);
    UNROLL for (int i = 0; i < (int)(sizeof terms / sizeof *terms); i++) q =
        q * u + select_vd(far, splat_vd(terms[i][1]), splat_vd(terms[i][0]));
    return q;
}

/* erf within 2 ulp: an odd polynomial up to 1, above that 1 - e^-erf_tail. */
static inline vd erf_vd(vd x) {
    vd size = abs_vd(x), z = x * x, p = splat_vd(5.96069472563374e-11);
    p = p * z + splat_vd(-1.1374960365156406e-09);
    p = p * z + splat_vd(1.4660329653293905e-08);
    p = p * z + splat_vd(-1.6350396316591782e-07);
    p = p * z + splat_vd(1.646100848190051e-06);
    p = p * z + splat_vd(-1.4925595772101988e-05);
    p = p * z + splat_vd(0.0001205533113293673);
    p = p * z + splat_vd(-0.0008548326981424524);
    p = p * z + splat_vd(0.005223977624828403);
    p = p * z + splat_vd(-0.02686617064507787);
    p = p * z + splat_vd(0.11283791670954885);
    p = p * z + splat_vd(-0.3761263890318375);
    p = p * z + splat_vd(0.1283791670955126);
    vd large = splat_vd(1.0) - exp_mid_vd(-erf_tail_vd(min_vd(size, splat_vd(6.0))));
    return select_vd(size < splat_vd(1.0), p * x + x, with_sign_vd(large, x));
}

/* ---- Sine and cosine ---- */

/* a + b as their rounded sum and its rounding error (Knuth's TwoSum). */
static inline vd two_sum_vd(vd a, vd b, vd *missing) {
    vd sum = a + b, part = sum - a;
    *missing = (a - (sum - part)) + (b - part);
    return sum;
}

static const double turns_limit = 1e6; /* larger angles are left to libm */

/* Range reduction (Cody-Waite): x = n pi/2 + r + *low with |r| < 0.79, for |x| <= turns_limit.
 * Returns r; the last bits of *quadrant are n. pi/2 is in four parts. The first three have 33 bits
 * and n has 20, so that their products are exact. */
static inline vd quarter_turns_vd(vd x, vl *quadrant, vd *low) {
    const vd magic = splat_vd(whole_magic);
    vd shifted = x * splat_vd(0.6366197723675814) + magic, n = shifted - magic, e1, e2;
    *quadrant = (vl)shifted;
    vd r = x - n * splat_vd(1.5707963267341256);
    r = two_sum_vd(r, n * splat_vd(-6.077100506303966e-11), &e1);
    r = two_sum_vd(r, n * splat_vd(-2.0222662487111665e-21), &e2);
    vd rest = (e1 + e2) - n * splat_vd(8.4784276603689e-32), sum = r + rest;
    *low = (r - sum) + rest;
    return sum;
}

static inline vd sine_part_vd(vd r, vd low) {
    vd z = r * r, p = splat_vd(1.5896859473673916e-10);
    p = p * z + splat_vd(-2.5050759678340727e-08);
    p = p * z + splat_vd(2.755731370572636e-06);
    p = p * z + splat_vd(-0.00019841269829862769);
    p = p * z + splat_vd(0.00833333333332251);
    p = p * z + splat_vd(-0.16666666666666632);
    return p * (z * r) + low * (splat_vd(1.0) - splat_vd(0.5) * z) + r;
}

static inline vd cosine_part_vd(vd r, vd low) {
    vd z = r * r, half = splat_vd(0.5) * z, p = splat_vd(-1.136120944957082e-11);
    p = p * z + splat_vd(2.087575632953378e-09);
    p = p * z + splat_vd(-2.755731462223278e-07);
    p = p * z + splat_vd(2.4801587290536547e-05);
    p = p * z + splat_vd(-0.0013888888888876074);
    p = p * z + splat_vd(0.041666666666666616);
    vd most = splat_vd(1.0) - half, lost = (splat_vd(1.0) - most) - half;
    return most + (lost + (p * (z * z) - r * low));
}

/* sin(x + shift pi/2) within 1 ulp for |x| <= turns_limit; a zero keeps its sign. */
static inline vd sincos_vd(vd x, int shift) {
    vl quadrant;
    vd low, r = quarter_turns_vd(x, &quadrant, &low);
    vul quarters = (vul)quadrant + (uint64_t)shift;
    vl odd = (vl)((quarters & 1) << 63) < 0;
    vd v = select_vd(odd, cosine_part_vd(r, low), sine_part_vd(r, low));
    v = (vd)((vul)v ^ (quarters & 2) << 62);
    return shift ? v : select_vd(x == splat_vd(0), x, v);
}

#endif
