/* conv.h - convolution of blocked tensors: the geometry, what follows, and the kernels' table.
 *
 * A blocked tensor is float32 of shape (N, ceil(C/c), H, W, c): c neighbouring channels of a pixel
 * lie side by side, where c is the `block` of the tier in force (sni_cpu_block). The channels
 * beyond C in the last block are finite numbers that mean nothing: whoever reads them gives them no
 * weight, and whoever writes them writes finite ones (convolutions write act(0)). */
#ifndef SNI_CPU_CONV_H
#define SNI_CPU_CONV_H

#include "cpu/kernels.h"

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

/* y = act(conv + bias + residual). */
typedef struct sni_conv_epilogue {
    sni_act act;
    float p0, p1;
    const float *bias;     /* one per output channel, zeros up to whole blocks; NULL: none */
    const float *residual; /* laid out like the output; NULL: none */
} sni_conv_epilogue;

#endif
