/* blocked.h - operators of domain "ai.sinter" on blocked tensors, which the layout pass puts in the
 * place of convolutions and their neighbours. A blocked tensor is float32 of shape
 * (N, ceil(C/c), H, W, c) with c neighbouring channels side by side; its C is known by whoever uses
 * it. Channels beyond C are finite numbers that mean nothing (see cpu/conv/conv.h).
 *
 * What the operators of ai.onnx can say of such a tensor needs no operator here: elementwise ones
 * as they are; MaxPool, AveragePool, Resize and Pad with a third spatial axis on which they do
 * nothing; a global pool as ReduceMean or ReduceMax over axes 2 and 3; Concat and Split of whole
 * blocks along axis 1. */
#ifndef SNI_OPS_SINTER_BLOCKED_H
#define SNI_OPS_SINTER_BLOCKED_H

#include "ops/core/arity.h"
#include "ops/nn/fused.h"

#define SNI_SINTER_DOMAIN "ai.sinter"
enum { SNI_MOST_BLOCK = 64 }; /* channels of a block, at most */

/* ToBlocked: X (N,C,H,W) to (N,ceil(C/block),H,W,block), zeros beyond C; a line (N,C,W) as a
 * picture one row high. FromBlocked: back; `channels` says how many there are, and `line` that it
 * is one. With `channels_last` the plain tensor of either is (N,H,W,C) or (N,W,C). */
typedef struct sni_blocked_params {
    int64_t block, channels, channels_last, line;
} sni_blocked_params;

/* The plain tensor's channels and pixels. */
static inline void sni_blocked_plain(const sni_blocked_params *p, const sni_tensor *plain,
                                     int64_t *channels, int64_t *pixels) {
    const int64_t *d = plain->dims, last = plain->rank - 1;
    int64_t rows = last == 2 ? 1 : p->channels_last ? d[1] : d[2];
    *channels = p->channels_last ? d[last] : d[1];
    *pixels = rows * (p->channels_last ? d[last - 1] : d[last]);
}

/* Channels picked one by one from several blocked tensors with pictures of the same size:
 * `channels` has the number of each one's, and channel i is indices[i] of them all, one tensor
 * after the other. Both are empty where channels are those of one tensor, as they are. */
typedef struct sni_indirect {
    sni_ints channels, indices;
} sni_indirect;
#define SNI_INDIRECT_FIELDS(type, need)                                                 \
    {"channels", SNI_ATTR_INTS, offsetof(type, indirect.channels), .required = need}, { \
        "indices", SNI_ATTR_INTS, offsetof(type, indirect.indices), .required = need    \
    }

/* Where a picked channel comes from. */
typedef struct sni_origin {
    int32_t tensor, channel;
} sni_origin;
sni_origin sni_indirect_origin(const sni_indirect *p, int64_t i);

/* BlockedConv: Y = activation(Conv(X F, W, B) + Z). X is blocked, or plain (N,C,H,W); W is plain
 * (M,C/group,kH,kW) and B (M); Y and Z are blocked. With S (M), the slopes of
 * numbers below zero by channel, there is no other activation. F, factors of the channels of a
 * blocked X, is (N or 1,ceil(C/c),1,1,c). The second output M, if it is wanted, are the means of
 * Y's channels, (N,ceil(M/c),1,1,c). Where the channels are picked, X is the first tensor of those
 * they come from, and further inputs are the others. Attributes are FusedConv's and `block`. */
typedef struct sni_blocked_conv_params {
    sni_fused_conv_params fused;
    int64_t block;
    sni_indirect indirect;
} sni_blocked_conv_params;
enum { SNI_BLOCKED_CONV_MORE = 6 }; /* the first of the further inputs */

/* ExpandDepthwise: Y = activation(Conv(expand_activation(Conv(X, W, B)), V, D)), where W is
 * (M,C,1,1) and V (M,1,kH,kW): a pointwise convolution and a depthwise one after it, whose values
 * between them are needed a few rows at a time only. X and Y are blocked; window and `group` (M)
 * are those of the second, and so is the second output, means of Y's channels. The channels of X
 * may be picked, as BlockedConv's. */
typedef struct sni_expand_params {
    sni_fused_conv_params fused;
    int64_t block;
    sni_str name; /* of expand_activation */
    sni_floats coefficients;
    sni_activation activation;
    sni_indirect indirect;
} sni_expand_params;
enum { SNI_EXPAND_MORE = 5 };

/* SqueezeExcite: F = excite_activation(V squeeze_activation(W m + B) + D), where m are the means of
 * the channels of X, which is blocked; W is (R,C,1,1), V (M,R,1,1), and F (N,ceil(M/c),1,1,c). */
typedef struct sni_named_activation {
    sni_str name;
    sni_floats coefficients;
    sni_activation activation;
} sni_named_activation;

typedef struct sni_squeeze_params {
    int64_t block;
    sni_named_activation squeeze, excite;
} sni_squeeze_params;

/* means[i] of the i-th of `planes` pictures of a plain x. */
void sni_plain_means(const float *x, float *means, int64_t planes, int64_t pixels);

/* Output 1, if it is wanted, from a plain y (n, channels, pixels). */
sn_status sni_blocked_set_means(sni_kernel *k, const float *y, int64_t n, int64_t channels,
                                int64_t pixels, int64_t block);

/* y (n, ceil(channels/block), pixels, block) from x (n, channels, pixels), zeros beyond `channels`;
 * and back. */
void sni_to_blocked(const float *x, float *y, int64_t n, int64_t channels, int64_t pixels,
                    int64_t block);
void sni_from_blocked(const float *x, float *y, int64_t n, int64_t channels, int64_t pixels,
                      int64_t block);

/* GatherChannels: indirect channels of its inputs. */
typedef struct sni_gather_channels_params {
    int64_t block;
    sni_indirect indirect;
} sni_gather_channels_params;

/* Checks the lists and the tensors they pick from, input 0 and those from `more` on, and gives the
 * plain shape (N, channels, H, W) of what is picked; *known is false if some shape is not. */
sn_status sni_infer_indirect(sni_infer *c, const sni_indirect *p, int more, int64_t block,
                             sni_dim plain[4], bool *known);
/* The indirect channels in plain order, (N, channels, pixels). */
void sni_pick_plain(sni_kernel *k, const sni_indirect *p, int more, int64_t block, float *to);

/* True for groups whose n-th input channels lie in two blocks at most for each block of outputs,
 * single channels, and windows of so many taps that are not large: those that the kernels of
 * depthwise convolutions take. */
enum { SNI_NEAR_CHANNELS = 256 }; /* most of a group */
bool sni_blocked_near(int64_t in, int64_t out, int64_t groups, int64_t taps, int64_t block);

/* Groups of a convolution that are merged into one, with zeros between them, so that the channels
 * of a group fill whole blocks; 0 if that cannot be. */
int64_t sni_blocked_merge(int64_t in, int64_t out, int64_t groups, int64_t block);

/* True if every pixel of a convolution with weights of these dimensions is made of the one input
 * pixel under it. */
bool sni_blocked_is_flat(const sni_conv_params *p, const int64_t *weights);

/* Checks a `block` attribute. */
sn_status sni_infer_block(sni_infer *c, int64_t block);

/* Checks that input i, whose shape is known, is blocked by `block` with `channels` channels (a
 * symbol: any number), and gives its plain shape (N, channels, H, W). */
sn_status sni_infer_unblocked(sni_infer *c, int i, int64_t block, sni_dim channels,
                              sni_dim plain[4]);

/* Output 0 gets the blocked shape of a plain one. */
sn_status sni_infer_set_blocked(sni_infer *c, const sni_dim plain[4], int64_t block);

/* Output 1, if there is one, gets the shape of means of a plain shape's channels. */
sn_status sni_infer_set_means(sni_infer *c, const sni_dim plain[4], int64_t block);

/* The window of a convolution of `x` (plain or blocked) to `y` (blocked). */
sn_status sni_blocked_window(sni_kernel *k, sni_window *w, const sni_tensor *x,
                             const sni_tensor *weights, const sni_tensor *y);

#endif
