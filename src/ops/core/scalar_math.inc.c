/* scalar_math.inc.c - template: the functions of scalar_math.h for float type T. Instances: float
 * and double, in every file that includes scalar_math.h. */

/* exp only of what is not above 0: it never overflows, and both tails keep their precision. */
static inline T FN(sni_sigmoid)(T v) {
    T e = MATH(exp)(-MATH(fabs)(v));
    return v < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* ln(1 + exp(v)) */
static inline T FN(sni_softplus)(T v) {
    return (v > 0 ? v : v != v ? v : 0) + MATH(log1p)(MATH(exp)(-MATH(fabs)(v)));
}

/* v in [low, high]; NaN stays NaN. `high` wins if it is below `low`. */
static inline T FN(sni_clamp)(T v, T low, T high) {
    if (v < low) v = low;
    return v > high ? high : v;
}

/* v times the normal distribution function of v: 0.5 (1 + erf(v sqrt(1/2))), ... */
static inline T FN(sni_gelu)(T v) {
    return (T)0.5 * v * (1 + MATH(erf)(v * (T)0.70710678118654752440));
}

/* ... and its approximation by tanh, with sqrt(2/pi). */
static inline T FN(sni_fast_gelu)(T v) {
    return (T)0.5 * v * (1 + MATH(tanh)((T)0.79788456080286535588 * (v + (T)0.044715 * v * v * v)));
}
