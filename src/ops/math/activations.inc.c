/* activations.inc.c - template by type (typed.h): loops of the activation functions for float type
 * T. Instances: activations.c, for float and double. */
#define OP affine
#define EXPR (p->alpha * v + p->beta)
#include "ops/core/unary_loop.inc.c"
#define OP celu
#define EXPR (v > 0 ? v : p->alpha * MATH(expm1)(v / p->alpha))
#include "ops/core/unary_loop.inc.c"
#define OP elu
#define EXPR (v < 0 ? p->alpha * MATH(expm1)(v) : v)
#include "ops/core/unary_loop.inc.c"
#define OP hard_sigmoid
#define EXPR FN(sni_clamp)(p->alpha * v + p->beta, 0, 1)
#include "ops/core/unary_loop.inc.c"
#define OP hard_swish
#define EXPR (v * FN(sni_clamp)(v / 6 + (T)0.5, 0, 1))
#include "ops/core/unary_loop.inc.c"
#define OP leaky_relu
#define EXPR (v < 0 ? p->alpha * v : v)
#include "ops/core/unary_loop.inc.c"
#define OP mish
#define EXPR (v * MATH(tanh)(FN(sni_softplus)(v)))
#include "ops/core/unary_loop.inc.c"
#define OP parametric_softplus
#define EXPR (p->alpha * FN(sni_softplus)(p->beta * v))
#include "ops/core/unary_loop.inc.c"
#define OP scaled_tanh
#define EXPR (p->alpha * MATH(tanh)(p->beta * v))
#include "ops/core/unary_loop.inc.c"
#define OP selu
#define EXPR (p->beta * (v > 0 ? v : p->alpha * MATH(expm1)(v)))
#include "ops/core/unary_loop.inc.c"
#define OP shrink
#define EXPR (v < -p->alpha ? v + p->beta : v > p->alpha ? v - p->beta : 0)
#include "ops/core/unary_loop.inc.c"
#define OP softplus
#define EXPR FN(sni_softplus)(v)
#include "ops/core/unary_loop.inc.c"
#define OP softsign
#define EXPR (v / (1 + MATH(fabs)(v)))
#include "ops/core/unary_loop.inc.c"
#define OP swish
#define EXPR (v * FN(sni_sigmoid)(p->alpha * v))
#include "ops/core/unary_loop.inc.c"
#define OP thresholded_relu
#define EXPR (v > p->alpha ? v : 0)
#include "ops/core/unary_loop.inc.c"
#define OP swiglu
#define EXPR (u * FN(sni_sigmoid)(p->alpha * u) * v)
#include "ops/core/binary_loop.inc.c"

#define OP gelu
#define EXPR (p->tanh ? FN(sni_fast_gelu)(v) : FN(sni_gelu)(v))
#include "ops/core/unary_loop.inc.c"
