/* conv_plane.h - what ways to convolve plain tensors in float32 share. */
#ifndef SNI_CPU_CONV_CONV_PLANE_H
#define SNI_CPU_CONV_CONV_PLANE_H

#include "cpu/core/cpu_ep.h"
#include "ops/nn/fused.h"

/* A convolution over two spatial axes; one axis is a picture one row high. */
typedef struct sni_plane {
    int64_t h, w, out_h, out_w;
    int64_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
    const float *x; /* the group's first channel */
} sni_plane;

/* The last two axes of a window, or its only one; all rows of a volume whose outputs see one pixel
 * each. */
sni_plane sni_plane_of(const sni_window *w);

/* The first of three axes; what sni_plane_of() holds as a whole is one plane deep. */
typedef struct sni_depth {
    int64_t in, out, kernel, stride, dilation, pad;
} sni_depth;

sni_depth sni_depth_of(const sni_window *w);

/* `count` elements of a row from position `at` on, `stride` apart; zeros outside [0, w). */
void sni_plane_row(const float *row, int64_t w, int64_t at, int64_t stride, int64_t count,
                   float *to);

/* True if every pixel's patch is the pixel itself. */
bool sni_plane_is_pointwise(const sni_plane *p);

/* Pixels of the output of an image; -1: not known. */
int64_t sni_plain_conv_pixels(const sni_choice *c);

/* Whether a Conv or FusedConv has float32 input and constant weights, and an activation that
 * kernels have: over one axis or two (or three that sni_plane_of() holds); over three. */
bool sni_plain_conv_supports(const sni_choice *c);
bool sni_plain_conv_is_volume(const sni_choice *c);

/* The activation of a convolution, with slopes by channel for those of its first group. */
sni_epilogue sni_plain_conv_epilogue(const sni_kernel *k);

#endif
