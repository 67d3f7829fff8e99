/* plain_act.h - activations of epilogues in double precision, which tests compare kernels with. */
#ifndef TESTS_PLAIN_ACT_H
#define TESTS_PLAIN_ACT_H

#include "cpu/core/kernels.h"

#include <math.h>

/* NaN stays NaN. Activations that are not here give x. */
static inline double plain_act(sni_act act, float a, float b, double x) {
    double p0 = (double)a, p1 = (double)b;
    switch (act) {
    case SNI_ACT_RELU:
        return x < 0 ? 0 : x;
    case SNI_ACT_CLIP:
        return x < p0 ? p0 : x > p1 ? p1 : x;
    case SNI_ACT_LEAKY_RELU:
        return x < 0 ? x * p0 : x;
    case SNI_ACT_HARD_SIGMOID:
        return fmin(fmax(x * p0 + p1, 0), 1);
    case SNI_ACT_HARD_SWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case SNI_ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case SNI_ACT_SILU:
        return x / (1 + exp(-x));
    case SNI_ACT_TANH:
        return tanh(x);
    case SNI_ACT_GELU:
        return 0.5 * x * (1 + erf(x * 0.70710678118654752));
    default:
        return x;
    }
}

#endif
