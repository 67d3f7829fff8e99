/* nhwc.h - operators of domain "ai.sinter" on tensors of bytes (N,H,W,C), which the layout pass for
 * bytes (opt/layout_bytes.c) puts in the place of convolutions and pools of (N,C,H,W). Operators of
 * com.microsoft that take channels last, and those that know no layout, stay what they are. */
#ifndef SNI_OPS_SINTER_NHWC_H
#define SNI_OPS_SINTER_NHWC_H

#include "ops/nn/conv_core.h"
#include "ops/quant/qlinear.h"

/* QLinearConvNhwc: the inputs of QLinearConv, with X and Y (N,H,W,C) and weights as they are,
 * (M,C/group,kH,kW). With R the result is QLinearAdd's of the convolution's bytes and R, which has
 * Y's shape: then y_scale and y_zero_point are those of the convolution, and z_scale and
 * z_zero_point those of the sum. */
enum {
    SNI_NHWC_X,
    SNI_NHWC_X_SCALE,
    SNI_NHWC_X_ZERO,
    SNI_NHWC_W,
    SNI_NHWC_W_SCALE,
    SNI_NHWC_W_ZERO,
    SNI_NHWC_Y_SCALE,
    SNI_NHWC_Y_ZERO,
    SNI_NHWC_BIAS,
    SNI_NHWC_R,
    SNI_NHWC_R_SCALE,
    SNI_NHWC_R_ZERO,
    SNI_NHWC_Z_SCALE,
    SNI_NHWC_Z_ZERO,
    SNI_NHWC_INPUTS
};

/* How the convolution's sums become bytes: round(s * scale[channel]) + zero; and, with a residual,
 * the sum of those bytes and the residual's. Everything is float32 in the order of QLinearConv and
 * QLinearAdd. */
typedef struct sni_nhwc_finish {
    float zero, low; /* of the convolution's bytes; low is -128 or 0 for both results */
    bool residual, is_signed;
    float y_scale, r_zero, r_scale, z_zero; /* scales are over that of the sum */
} sni_nhwc_finish;

/* Sets *out and the scale of each of `channels` output channels from the kernel's inputs. */
sn_status sni_nhwc_finish_get(sni_kernel *k, int64_t channels, sni_nhwc_finish *out, float *scales);

/* The window over H and W, and sizes, from the kernel's tensors. */
sn_status sni_nhwc_window(sni_kernel *k, const sni_window_params *p, const sni_tensor *x,
                          const sni_tensor *y, const int64_t *kernel, sni_window *w);

#endif
