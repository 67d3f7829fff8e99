/* activation.h - activation functions by name, for operators that have one as an attribute:
 * recurrent networks, and products and convolutions fused with what follows them. */
#ifndef SNI_OPS_MATH_ACTIVATION_H
#define SNI_OPS_MATH_ACTIVATION_H

#include "ops/core/op.h"
#include "ops/core/scalar_math.h"

typedef enum sni_fn {
    SNI_FN_NONE, /* y = v */
    SNI_FN_RELU,
    SNI_FN_TANH,
    SNI_FN_SIGMOID,
    SNI_FN_AFFINE,
    SNI_FN_LEAKY_RELU,
    SNI_FN_THRESHOLDED_RELU,
    SNI_FN_SCALED_TANH,
    SNI_FN_HARD_SIGMOID,
    SNI_FN_ELU,
    SNI_FN_CELU,
    SNI_FN_SELU, /* beta is its gamma */
    SNI_FN_SOFTSIGN,
    SNI_FN_SOFTPLUS,
    SNI_FN_PARAMETRIC_SOFTPLUS,
    SNI_FN_CLIP, /* alpha is the minimum, beta the maximum */
    SNI_FN_HARD_SWISH,
    SNI_FN_SILU,
    SNI_FN_GELU,
    SNI_FN_FAST_GELU, /* the approximation by tanh; its other name is GeluTanh */
    SNI_FN_MISH,
    SNI_FN_COUNT
} sni_fn;

/* A function with its two parameters. */
typedef struct sni_activation {
    sni_fn kind;
    float alpha, beta;
} sni_activation;

/* The function of a name (upper and lower case are the same) with the defaults of its parameters;
 * kind SNI_FN_COUNT if there is none. "" is SNI_FN_NONE. */
sni_activation sni_activation_named(sni_str name);

/* How many parameters a function takes: 0 to 2. */
int sni_activation_parameters(sni_fn kind);

/* sni_activation_of_f32(f, v) and _f64: f of one number. */
#define BODY "ops/math/activation.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* y[i] = f(y[i] + more[i]) for n elements of FLOAT32 or FLOAT64; `more` may be NULL. */
void sni_activate(const sni_activation *f, sn_dtype dtype, void *y, const void *more, int64_t n,
                  int threads);

#endif
