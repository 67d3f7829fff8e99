/* blocked.h - what implementations of BlockedConv share: they look at a choice, prepare packed
 * weights and a padded bias, and run with a geometry in plain numbers. */
#ifndef SNI_CPU_CONV_BLOCKED_H
#define SNI_CPU_CONV_BLOCKED_H

#include "cpu/conv/conv.h"
#include "cpu/core/cpu_ep.h"
#include "ops/sinter/blocked.h"

/* The geometry as far as a choice tells it; sizes that are not known yet (n, in_h, in_w, out_h,
 * out_w, and pads of auto_pad) are -1. False if it is no blocked convolution that vector kernels
 * can run: float32, constant weights and bias, the block of the tier in force, an activation that
 * they know. *plain tells that the input is not blocked. No channels are indirect. */
bool sni_blocked_geometry(const sni_choice *c, sni_conv_geometry *g, bool *plain);
/* The same of a blocked input whose channels may be indirect. */
bool sni_blocked_any_geometry(const sni_choice *c, sni_conv_geometry *g);

/* Where the channels of an input are in memory: all that a state keeps of sni_indirect. */
typedef struct sni_blocked_origins {
    int64_t count; /* 0: those of input 0, as they are */
    sni_origin of[];
} sni_blocked_origins;
/* Made of `p`, for free(). */
sn_status sni_blocked_origins_new(const sni_indirect *p, sni_blocked_origins **out, sn_error *err);
/* The first pixel of each of `channels` channels, image after image, in scratch. Tensors are input
 * 0 and those from `more` on. */
sn_status sni_blocked_list(sni_kernel *k, const sni_blocked_origins *o, int more, int64_t channels,
                           const float ***out);

/* The bias of a choice, zeros up to whole blocks; *out NULL if it has none. Packed data: not freed.
 */
sn_status sni_blocked_bias(const sni_choice *c, float **out, sn_error *err);
/* The same for the slopes of a choice. */
sn_status sni_blocked_slopes(const sni_choice *c, float **out, sn_error *err);
/* The same for a bias that is another input than the third. */
sn_status sni_blocked_bias_of(const sni_choice *c, int i, float **out, sn_error *err);

/* Weights (M,C,1,1) of a pointwise convolution as (output blocks, input channels up to whole
 * blocks, block). Packed data. */
sn_status sni_blocked_pack_pointwise(const sni_choice *c, int i, float **out, sn_error *err);

/* Kernel, strides, dilations, pads and sizes of a window whose sizes are known. */
void sni_blocked_set_window(sni_conv_geometry *g, const sni_window *w);

/* One call in plain numbers. */
typedef struct sni_blocked_call {
    sni_conv_geometry geometry;
    sni_conv_epilogue epilogue;
    const float *x;
    bool plain; /* x is (N,C,H,W) */
    /* Blocks of input (channels, if plain) from an image to the next, which may have blocks in
     * common; 0: as many as an image has. */
    int64_t image_blocks;
    float *y;
} sni_blocked_call;

/* Reads a kernel's tensors. `bias` and `slopes` are what sni_blocked_bias and sni_blocked_slopes
 * gave. */
sn_status sni_blocked_call_init(sni_kernel *k, const float *bias, const float *slopes,
                                sni_blocked_call *out);

/* Output blocks of a tile, `most` at most, with which spans of so many pixels of `blocks` output
 * blocks take least. */
int64_t sni_conv_width(const sni_conv_kernels *k, int64_t blocks, int64_t span, int64_t most);

/* What a depthwise convolution of blocked tensors writes besides its result. */
typedef struct sni_blocked_extra {
    float *means, *rows; /* output 1, and a buffer for the means of rows; NULL: not wanted */
    int64_t planes, height;
} sni_blocked_extra;
/* Reads output 1. */
sn_status sni_blocked_extra_init(sni_kernel *k, sni_blocked_extra *out);
void sni_blocked_extra_done(const sni_blocked_extra *e);

/* Means of planes (`pixels` vectors of a block) of x. */
void sni_blocked_means(const sni_kernel *k, const float *x, float *means, int64_t planes,
                       int64_t pixels);

/* ---- How planes (channel blocks of images) are shared out ---- */

/* Parts that each plane of so many pixels and rows (or pixels again, where rows do not matter) is
 * cut into, so that a thread takes the stretch of the picture that it has in the convolutions
 * around: 1 where those share out images or channels. */
int64_t sni_blocked_parts(const sni_kernel *k, int64_t images, int64_t pixels, int64_t rows);

/* Item i of planes * parts items: stretch after stretch of an image, each over all its planes. */
typedef struct sni_blocked_share {
    int64_t plane, part;
} sni_blocked_share;
sni_blocked_share sni_blocked_share_of(int64_t i, int64_t planes, int64_t parts);

/* sni_parallel_for over items of so many elements, in as few pieces as there are threads. */
void sni_blocked_for(const sni_kernel *k, int64_t items, int64_t elements,
                     void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx);

/* y = x s, where x and y are (images, blocks, pixels, block) and s has blocks for all images or for
 * each, `factors` of them in all. */
typedef struct sni_blocked_scaling {
    const float *x, *s;
    float *y;
    int64_t images, blocks, pixels, block, factors;
} sni_blocked_scaling;
void sni_blocked_scale(const sni_kernel *k, const sni_blocked_scaling *s);

/* Packed weights of a convolution, piece by piece: memory for them, and whether a compiled file has
 * filled it; if not, their contents from (out_channels, in_channels / groups, kernel_h, kernel_w);
 * then bias and slopes as from sni_blocked_bias() and sni_blocked_slopes(). */
sn_status sni_conv_direct_start(const sni_choice *c, const sni_conv_geometry *g, bool plain,
                                void **state, bool *filled, sn_error *err);
void sni_conv_direct_pack(void *state, const sni_unaligned_float *w);
void sni_conv_direct_end(void *state, float *bias, float *slopes);
/* One of the packed weights of a convolution without groups or dilations. */
float sni_conv_direct_weight(const void *state, int64_t out, int64_t in, int64_t tap);

/* Runs one call. Factors of input channels are those of a BlockedConv; NULL: none. */
sn_status sni_conv_direct_call(sni_kernel *k, const void *state, const sni_blocked_call *call,
                               const sni_tensor *factors);

void sni_conv_direct_release(void *state);

#endif
