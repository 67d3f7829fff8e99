/* activation.inc.c - template by type (typed.h): sni_activation_of_SUFFIX(), an activation of one
 * number. Instances: activation.h, for float and double. */

/* Activation functions of one number of a float type. */

static inline T FN(sni_activation_of)(const sni_activation *f, T v) {
    T a = (T)f->alpha, b = (T)f->beta;
    switch (f->kind) {
    case SNI_FN_RELU:
        return v < 0 ? 0 : v;
    case SNI_FN_TANH:
        return MATH(tanh)(v);
    case SNI_FN_SIGMOID:
        return FN(sni_sigmoid)(v);
    case SNI_FN_AFFINE:
        return a * v + b;
    case SNI_FN_LEAKY_RELU:
        return v < 0 ? a * v : v;
    case SNI_FN_THRESHOLDED_RELU:
        return v >= a ? v : 0;
    case SNI_FN_SCALED_TANH:
        return a * MATH(tanh)(b * v);
    case SNI_FN_HARD_SIGMOID:
        return FN(sni_clamp)(a * v + b, 0, 1);
    case SNI_FN_ELU:
        return v < 0 ? a * MATH(expm1)(v) : v;
    case SNI_FN_CELU:
        return v < 0 ? a * MATH(expm1)(v / a) : v;
    case SNI_FN_SELU:
        return b * (v > 0 ? v : a * MATH(expm1)(v));
    case SNI_FN_SOFTSIGN:
        return v / (1 + MATH(fabs)(v));
    case SNI_FN_SOFTPLUS:
        return FN(sni_softplus)(v);
    case SNI_FN_PARAMETRIC_SOFTPLUS:
        return a * FN(sni_softplus)(b * v);
    case SNI_FN_CLIP:
        return FN(sni_clamp)(v, a, b);
    case SNI_FN_HARD_SWISH:
        return v * FN(sni_clamp)(v / 6 + (T)0.5, 0, 1);
    case SNI_FN_SILU:
        return v * FN(sni_sigmoid)(v);
    case SNI_FN_GELU:
        return FN(sni_gelu)(v);
    case SNI_FN_FAST_GELU:
        return FN(sni_fast_gelu)(v);
    case SNI_FN_MISH:
        return v * MATH(tanh)(FN(sni_softplus)(v));
    default:
        return v;
    }
}
