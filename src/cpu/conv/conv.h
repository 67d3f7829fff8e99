/* conv.h - convolution of blocked tensors: the geometry, what follows, and the kernels' table.
 *
 * A blocked tensor is float32 of shape (N, ceil(C/c), H, W, c): c neighbouring channels of a pixel
 * lie side by side, where c is the `block` of the tier in force (sni_cpu_block). The channels
 * beyond C in the last block are numbers that mean nothing, finite as long as the others are
 * (convolutions write act(0)): whoever sums over channels leaves them out. */
#ifndef SNI_CPU_CONV_CONV_H
#define SNI_CPU_CONV_CONV_H

#include "cpu/core/kernels.h"
#include "cpu/costs/costs.h"

#include <stddef.h>

/* A convolution over two spatial axes; one axis is a picture one row high. All sizes are at least
 * 1, pads at least 0. Channels are those of all groups. */
typedef struct sni_conv_geometry {
    int64_t n, in_channels, out_channels, groups;
    int64_t in_h, in_w, out_h, out_w;
    int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w;
    int64_t pad_top, pad_left, pad_bottom, pad_right;
} sni_conv_geometry;

static inline int64_t sni_blocks(int64_t channels, int64_t block) {
    return (channels + block - 1) / block;
}

/* A picture in which every output pixel sees its own input pixel alone. */
static inline bool sni_conv_is_flat(const sni_conv_geometry *g) {
    return g->kernel_h == 1 && g->kernel_w == 1 && g->stride_h == 1 && g->stride_w == 1 &&
           g->in_h == g->out_h && g->in_w == g->out_w && !g->pad_top && !g->pad_left;
}

/* y = act(conv + bias + residual). */
typedef struct sni_conv_epilogue {
    sni_act act;
    float p0, p1;
    const float *bias;     /* one per output channel, zeros up to whole blocks; NULL: none */
    const float *slopes;   /* of LEAKY_RELU, one per output channel like the bias; NULL: p0 */
    const float *residual; /* laid out like the output; NULL: none */
    float *row_means;      /* depthwise: gets the means of rows of output, (planes, rows, block) */
} sni_conv_epilogue;

/* ---- Direct kernels ---- */

/* A tile of output: some neighbouring pixels of a row, in some neighbouring output blocks, as sums
 * over input blocks, rows and taps of the kernel, and channels of an input block. Distances are in
 * elements. The weights of an output block are (blocks, rows, taps, channels, block).
 *
 * The same kernel reads plain input (N,C,H,W): an "input block" is then one channel, and the taps
 * of a row take the place of the channels of a block. In a kernel of one tap the input blocks are
 * the taps, and the last one may have fewer channels.
 *
 * A listed kernel (SNI_CONV_INDIRECT) finds its channels anywhere: channel i of the first pixel's
 * first tap is list[i][x_at], and there is one "input block" of `channels` of them. */
typedef struct sni_conv_tile {
    const float *x; /* of the first pixel's first tap */
    const float *const *list;
    int64_t x_at;
    const float *w;
    float *y;
    int64_t blocks;                         /* of input */
    int64_t channels, last;                 /* of an input block; of the last tap of a row */
    int64_t rows, taps;                     /* of the kernel; 0: no products */
    int64_t x_pixel, x_block, x_row, x_tap; /* x_pixel: of output pixels */
    int64_t w_out, w_block, w_row, w_tap;   /* w_out: of output blocks */
    int64_t y_block;
    uintptr_t prefetch, prefetch_step; /* address of weights to fetch into the cache, and bytes that
                                    it moves on with each channel */
    uintptr_t x_prefetch;              /* the same for input, with its distances in bytes: */
    uintptr_t x_prefetch_step, x_prefetch_tap, x_prefetch_row, x_prefetch_block;
    bool add;      /* to what y has */
    bool finish;   /* with the epilogue */
    bool *unclear; /* set, and y left as it is, if a sum is NaN before it is finished; NULL: sums
                      are taken as they come */
    const sni_conv_epilogue
        *epilogue; /* bias, slopes and residual moved to the tile's first block, pixel */
} sni_conv_tile;

typedef void (*sni_conv_tile_fn)(const sni_conv_tile *t);

/* So many tiles side by side, of one tap over the channels of blocked input or of a list. They are
 * finished; nothing is added to what y has, and `unclear` is NULL. */
typedef void (*sni_conv_strip_fn)(const sni_conv_tile *t, int64_t tiles);

/* Distances of pixels that kernels are made for: their x_pixel. */
typedef enum sni_conv_step {
    SNI_CONV_BLOCKED_1, /* block */
    SNI_CONV_BLOCKED_2, /* 2 * block */
    SNI_CONV_INDIRECT,  /* block; the channels are those of a list */
    SNI_CONV_PLAIN_1,   /* 1 */
    SNI_CONV_PLAIN_2,   /* 2 */
    SNI_CONV_ANY,
    SNI_CONV_STEPS
} sni_conv_step;

enum { SNI_CONV_MOST_WIDTH = 4, SNI_CONV_MOST_PIXELS = 14 };

struct sni_conv_strips {
    /* strip[indirect][output blocks][pixels], for the same tiles as those of blocked input. */
    const sni_conv_strip_fn (*strip[2])[SNI_CONV_MOST_PIXELS + 1];
    /* half[pixels]: strips of one output block of whose channels the upper half is padding, over
     * blocked input; NULL: such a block is as any other. */
    const sni_conv_strip_fn *half;
};

struct sni_conv_kernels {
    int pixels[SNI_CONV_MOST_WIDTH + 1]; /* most pixels of a tile by its output blocks; 0: none */
    /* tile[step][output blocks][pixels]; NULL: none. From PLAIN_1 on 2 blocks are the most. */
    const sni_conv_tile_fn (*tile[SNI_CONV_STEPS])[SNI_CONV_MOST_PIXELS + 1];
    const sni_conv_strips *strips;
};

/* True if the last of these blocks is one that strips->half is for, and is quicker with it. */
static inline bool sni_conv_ends_half(const sni_conv_kernels *k, int64_t channels, int64_t block) {
    int64_t last = channels % block;
    return k->strips->half && sni_cpu_halves_vectors() && last > 0 && last <= block / 2;
}

/* Packs filters (out, in, taps) as (output blocks, input blocks, taps, in_block, block), or if taps
 * are to lie apart as (output blocks, taps, input blocks, in_block, block), where an input block is
 * of 1 channel or a block of them (a block if taps lie apart). Places of channels behind the last
 * input channel are left as they are. */
void sni_conv_pack_filters(const sni_unaligned_float *w, int64_t out, int64_t in, int64_t taps,
                           int64_t in_block, bool apart, float *to);

#endif
