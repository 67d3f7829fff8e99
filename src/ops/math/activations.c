/* Activation functions with up to two coefficients: Celu, Elu, Gelu, ..., and the experimental ones
 * that ONNX dropped but old models have: Affine, ParametricSoftplus, ScaledTanh. */
#include "ops/core/convert.h"
#include "ops/core/elementwise.h"
#include "ops/core/scalar_math.h"

#define PARAMS activation_params
typedef struct activation_params {
    float alpha, beta; /* beta also: Selu's gamma, Shrink's bias; alpha also: Shrink's lambd */
    int32_t tanh;      /* Gelu */
} activation_params;

#define BODY "ops/math/activations.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* Entries of a parameter table. */
#define ALPHA(value) \
    { "alpha", SNI_ATTR_FLOAT, offsetof(PARAMS, alpha), .number = (value) }
#define BETA(value) \
    { "beta", SNI_ATTR_FLOAT, offsetof(PARAMS, beta), .number = (value) }

#define NAME Affine
#define VERSIONS 1
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(affine)
#define ATTRIBUTES ALPHA(1), BETA(0)
#include "ops/core/unary_op.inc.c"

#define NAME Celu
#define VERSIONS 12, 28
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(celu)
#define ATTRIBUTES ALPHA(1)
#include "ops/core/unary_op.inc.c"

#define NAME Elu
#define VERSIONS 1, 6, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(elu)
#define ATTRIBUTES ALPHA(1)
#include "ops/core/unary_op.inc.c"

#define NAME Gelu
#define VERSIONS 20
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(gelu)
#define ATTRIBUTES                                                                     \
    {                                                                                  \
        "approximate", SNI_ATTR_STRING, offsetof(PARAMS, tanh), .text = "none",        \
                                                                .choices = "none|tanh" \
    }
#include "ops/core/unary_op.inc.c"

#define NAME HardSigmoid
#define VERSIONS 1, 6, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(hard_sigmoid)
#define ATTRIBUTES ALPHA(0.2), BETA(0.5)
#include "ops/core/unary_op.inc.c"

#define NAME HardSwish
#define VERSIONS 14, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(hard_swish)
#include "ops/core/unary_op.inc.c"

#define NAME LeakyRelu
#define VERSIONS 1, 6, 16
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(leaky_relu)
#define ATTRIBUTES ALPHA(0.01)
#include "ops/core/unary_op.inc.c"

#define NAME Mish
#define VERSIONS 18, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(mish)
#include "ops/core/unary_op.inc.c"

#define NAME ParametricSoftplus
#define VERSIONS 1
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(parametric_softplus)
#define ATTRIBUTES ALPHA(1), BETA(1)
#include "ops/core/unary_op.inc.c"

#define NAME ScaledTanh
#define VERSIONS 1
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(scaled_tanh)
#define ATTRIBUTES ALPHA(1), BETA(1)
#include "ops/core/unary_op.inc.c"

/* Version 1 had shorter defaults. */
static sn_status selu_upgrade(sni_upgrade *u) {
    if (u->from >= 6) return SN_OK;
    sni_attr alpha = sni_attr_of_float("alpha", 1.6732f),
             gamma = sni_attr_of_float("gamma", 1.0507f);
    if (!sni_node_attr(u->node, "alpha"))
        SN_TRY(sni_node_set_attr(u->graph, u->node, &alpha, u->err));
    if (!sni_node_attr(u->node, "gamma"))
        SN_TRY(sni_node_set_attr(u->graph, u->node, &gamma, u->err));
    return SN_OK;
}

#define NAME Selu
#define VERSIONS 1, 6, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(selu)
#define ATTRIBUTES                                                                           \
    ALPHA(1.67326319217681884765625), {                                                      \
        "gamma", SNI_ATTR_FLOAT, offsetof(PARAMS, beta), .number = 1.05070102214813232421875 \
    }
#define UPGRADE selu_upgrade
#include "ops/core/unary_op.inc.c"

#define NAME Softplus
#define VERSIONS 1, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(softplus)
#include "ops/core/unary_op.inc.c"

#define NAME Softsign
#define VERSIONS 1, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(softsign)
#include "ops/core/unary_op.inc.c"

#define NAME SwiGLU
#define VERSIONS 28
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(swiglu)
#define ATTRIBUTES ALPHA(1)
#include "ops/core/binary_op.inc.c"

#define NAME Swish
#define VERSIONS 24
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(swish)
#define ATTRIBUTES ALPHA(1)
#include "ops/core/unary_op.inc.c"

#define NAME ThresholdedRelu
#define VERSIONS 1, 10, 22
#define TYPES SNI_T_FLOATS
#define FNS SNI_EACH_FLOAT(thresholded_relu)
#define ATTRIBUTES ALPHA(1)
#include "ops/core/unary_op.inc.c"

/* Integers are computed as doubles: their bias and threshold may be fractions. */
static sn_status shrink_ref(sni_kernel *k) {
    static const sni_unary_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(shrink)};
    const sni_tensor *x = sni_in(k, 0);
    sn_dtype as = sni_compute_type(x->dtype);
    if (!fns[as]) as = SN_FLOAT64;
    sni_elementwise e = {.n_in = 1,
                         .in = {x},
                         .in_as = {as},
                         .out = sni_out(k, 0),
                         .out_as = as,
                         .unary = fns[as],
                         .params = k->params};
    sni_elementwise_run(k->threads, &e);
    return SN_OK;
}

const sni_op sni_op_Shrink = {
    .name = "Shrink",
    .versions = SNI_VERSIONS(9),
    .inputs = SNI_FORMALS({"input", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .params = SNI_PARAMS({"lambd", SNI_ATTR_FLOAT, offsetof(PARAMS, alpha), .number = 0.5},
                         {"bias", SNI_ATTR_FLOAT, offsetof(PARAMS, beta)}),
    .params_size = sizeof(PARAMS),
    .inplace = 1,
    .infer = sni_infer_same,
    .ref = shrink_ref,
};
