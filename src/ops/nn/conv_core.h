/* conv_core.h - convolution as a matrix product whose right operand is gathered from the input
 * panel by panel (implicit im2col). */
#ifndef SNI_OPS_NN_CONV_CORE_H
#define SNI_OPS_NN_CONV_CORE_H

#include "ops/nn/sliding.h"

typedef struct sni_conv_params {
    sni_window_params window;
    int64_t group;
} sni_conv_params;

/* Entries of a parameter table for a struct that is, or starts with, a sni_conv_params. */
#define SNI_CONV_FIELDS                                                      \
    SNI_WINDOW_KERNEL(sni_conv_params, window, false),                       \
        SNI_WINDOW_DILATIONS(sni_conv_params, window),                       \
        SNI_WINDOW_AUTO_PAD(sni_conv_params, window), {                      \
        "group", SNI_ATTR_INT, offsetof(sni_conv_params, group), .number = 1 \
    }
#define SNI_CONV_PARAMS SNI_PARAMS(SNI_CONV_FIELDS)

/* Infers output 0 of a convolution with data, weights and bias (or -1) at these inputs. */
sn_status sni_infer_conv(sni_infer *c, int x, int w, int bias);
int64_t sni_conv_macs(const sni_infer *c, int x, int w);

/* y (N,M,out...) = x (N,C,in...) convolved with w (M,C/groups,kernel...). */
typedef struct sni_conv {
    sni_window window;
    int64_t batch, in_channels, out_channels, groups;
    sn_dtype x_dtype; /* FLOAT32, FLOAT64, INT8 or UINT8 */
    int32_t x_zero;   /* 8-bit input: subtracted from it; padding is 0 after that */
    const void *x;
    const void *w; /* FLOAT32, FLOAT64, or INT32 with 8-bit input */
    void *y;       /* the same type as w */
    bool add;      /* y += */
} sni_conv;

/* Sizes and window from a kernel's tensors. */
sn_status sni_conv_init(sni_kernel *k, sni_conv *conv, const sni_tensor *x, const sni_tensor *w,
                        const sni_tensor *y);
sn_status sni_conv_run(sni_kernel *k, const sni_conv *conv);

/* Fills y (N,M,plane): channel m of every image with the m-th element of `bias`, which has y's
 * type of `width` bytes. */
void sni_fill_channels(void *y, const void *bias, int64_t batch, int64_t channels, int64_t plane,
                       size_t width);

#endif
