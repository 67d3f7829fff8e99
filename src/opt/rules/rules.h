/* rules.h - the tables of rules, and what their conditions share. */
#ifndef SNI_OPT_RULES_RULES_H
#define SNI_OPT_RULES_RULES_H

#include "opt/rewrite.h"

extern const sni_rule sni_rules_shape[];
extern const sni_rule sni_rules_gelu[];
extern const sni_rule sni_rules_activations[];
extern const sni_rule sni_rules_channels_last[];
extern const sni_rule sni_rules_norms[];
extern const sni_rule sni_rules_skip_norms[];
extern const sni_rule sni_rules_rotary[];
extern const sni_rule sni_rules_attention[];
extern const sni_rule sni_rules_packed[];
extern const sni_rule sni_rules_quantize[];
extern const sni_rule sni_rules_qlinear[];
extern const sni_rule sni_rules_lowbit[];
extern const sni_rule sni_rules_conv[];
extern const sni_rule sni_rules_linear[];

/* ---- affine.c: y * k + s for each channel ---- */

/* What a node does to each channel (axis `axis` of its input 0 of known shape) of a tensor. */
typedef struct sni_affine {
    int64_t channels;
    float *k, *s; /* `channels` each, in the store's arena */
} sni_affine;

/* True if constant `name` is float32 and has one element for each of `channels` on the axis that is
 * `from_end` from the last, and 1 on the others; or one element in all. */
bool sni_is_channels(const sni_match *m, const char *name, int64_t channels, int from_end);

/* Binds `to` to the constant `name` of float32 as a vector. */
sn_status sni_bind_flat(sni_match *m, const char *name, const char *to);

/* True if weights may be multiplied by constant `name` in place of their result: it is finite, and
 * not 0 if the match's root divides by it. */
bool sni_is_foldable(const sni_match *m, const char *name);

/* Reads %scale, %bias, %mean, %var and @eps of a BatchNormalization. */
sn_status sni_affine_of_norm(sni_match *m, int64_t channels, sni_affine *out);

/* Reads constant `name` of a node that adds, subtracts, multiplies or divides by it (Add, Sub, Mul,
 * Div of the match's root). */
sn_status sni_affine_of_root(sni_match *m, const char *name, int64_t channels, sni_affine *out);

/* Binds w2 and b2: constant w, whose channel of element i is (i / inner) % channels, times k, and
 * b (0 if left out) times k plus s. */
sn_status sni_affine_fold(sni_match *m, const sni_affine *a, int64_t inner);

/* ---- epilogue.c: activations as attributes of the node before ---- */

typedef struct sni_ending {
    const char *name;
    int n; /* parameters */
    float v[2];
} sni_ending;

/* False if a node is no activation, or not one that can be the end of another: a Clip between
 * bounds that are no constants, a Swish with a factor. */
bool sni_ending_of(const sni_graph *g, const sni_node *n, sni_ending *out);

/* `activation` and `activation_params`; the second is of kind NONE if there are no parameters. */
sn_status sni_ending_attrs(const sni_ending *e, sni_arena *arena, sni_attr attrs[2], sn_error *err);

/* Binds @act and @params to what sni_ending_attrs makes of the node `name`. */
sn_status sni_bind_activation(sni_match *m, const char *name);

/* Operators that sni_bind_activation knows and that have one input. */
#define SNI_ACTIVATIONS \
    "Relu|Sigmoid|Tanh|HardSwish|LeakyRelu|HardSigmoid|Swish|Gelu|Mish|Elu|Softplus"

#endif
