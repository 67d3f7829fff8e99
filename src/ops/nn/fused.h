/* fused.h - parameters of products and convolutions that are fused with what follows them, for
 * whoever makes such nodes or runs them faster. The first member is what the plain operator has. */
#ifndef SNI_OPS_NN_FUSED_H
#define SNI_OPS_NN_FUSED_H

#include "ops/math/activation.h"
#include "ops/nn/conv_core.h"
#include "ops/matmul/matmul.h"

/* com.microsoft FusedConv: Y = activation(Conv(X, W, B) + Z). Besides the activations of ONNX
 * Runtime (Relu, Tanh, Sigmoid, LeakyRelu, Clip, HardSigmoid) every other of activation.h is
 * understood, HardSwish and Silu among them; or, with S (M), PRelu with slopes by channel. */
typedef struct sni_fused_conv_params {
    sni_conv_params conv;
    sni_str name;
    sni_floats coefficients; /* activation_params: alpha and beta */
    sni_activation activation;
} sni_fused_conv_params;

/* Entries of a parameter table for a struct that is, or starts with, a sni_fused_conv_params, and
 * its `.prepare`. */
#define SNI_FUSED_CONV_FIELDS                                                                  \
    SNI_CONV_FIELDS, {"activation", SNI_ATTR_STRING, offsetof(sni_fused_conv_params, name)}, { \
        "activation_params", SNI_ATTR_FLOATS, offsetof(sni_fused_conv_params, coefficients)    \
    }
sn_status sni_fused_conv_prepare(void *params, sni_arena *arena, sn_error *err);

/* com.microsoft FusedGemm: Y = activation(Gemm(A, B, C)). */
typedef struct sni_fused_gemm_params {
    sni_gemm_params gemm;
    sni_str name;
    float alpha, beta, gamma; /* of the activation */
    bool has_alpha, has_beta, has_gamma;
    sni_activation activation;
} sni_fused_gemm_params;

/* com.microsoft FusedMatMul, TransposeMatMul and FusedMatMulActivation:
 * Y = activation(alpha * A' B'), where A' and B' may be transposed. */
typedef struct sni_fused_matmul_params {
    float alpha;
    int64_t trans_a, trans_b, batch_a, batch_b;
    sni_str name;
    float act_alpha, act_beta, act_gamma;
    bool has_alpha, has_beta, has_gamma;
    int64_t axis; /* activation_axis, which no activation here has a use for */
    sni_activation activation;
} sni_fused_matmul_params;

/* ai.sinter Linear: Y = activation(X W + B + residual); or PRelu with slopes by column. */
typedef struct sni_linear_params {
    int64_t trans_w; /* W is (N,K) */
    sni_str name;
    sni_floats coefficients; /* activation_params: alpha and beta */
    sni_activation activation;
} sni_linear_params;

/* Slopes at input i: one for each of `channels`, and all the activation there is. */
sn_status sni_infer_slopes(sni_infer *c, int i, sni_dim channels, const sni_activation *f);

/* Numbers below 0 of y (n, channels, inner), of FLOAT32 or FLOAT64, times the slopes of their
 * channels. */
void sni_fused_bend(sn_dtype dtype, void *y, const void *slopes, int64_t n, int64_t channels,
                    int64_t inner);

/* The activation `name` with the coefficients that are given (NULL: left at its default).
 * SN_INVALID_MODEL if there is none of that name. */
sn_status sni_fused_activation(sni_str name, const float *alpha, const float *beta,
                               sni_activation *out, sn_error *err);
/* The same with a list of coefficients, which must not be longer than it takes. */
sn_status sni_fused_activation_list(sni_str name, const sni_floats *coefficients,
                                    sni_activation *out, sn_error *err);

#endif
