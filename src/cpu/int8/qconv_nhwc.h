/* qconv_nhwc.h - what the two ways of a convolution of bytes with channels last share: products of
 * pixels and panels of weights (qconv_nhwc.c), and depthwise (qconv_nhwc_depthwise.c). */
#ifndef SNI_CPU_INT8_QCONV_NHWC_H
#define SNI_CPU_INT8_QCONV_NHWC_H

#include "cpu/int8/integer.h"
#include "cpu/int8/nhwc.h"
#include "cpu/int8/windows.h"

/* Packed weights. The product has `taps` taps of `units` units each: a tap is one of the kernel's
 * and its run the group's channels; or, joined, a row of the kernel and its run the row's taps with
 * all their channels, which lie side by side in the staged input. */
typedef struct sni_nhwc_conv {
    sni_int_weights w;
    int64_t groups, in, out; /* channels of a group */
    int64_t taps, run, units;
    bool depthwise, staged, joined;
} sni_nhwc_conv;

/* One call. */
typedef struct sni_nhwc_call {
    const sni_nhwc_conv *p;
    sni_window window;
    const sni_tensor *x;
    sni_tensor *y;
    int32_t x_zero;          /* of the unflipped bytes */
    const int32_t *adds;     /* bias and corrections for each output channel */
    const float *scales;     /* for each output channel */
    const uint8_t *residual; /* or NULL */
    const uint8_t *pad;      /* a pixel of padding, unflipped */
    sni_nhwc_finish finish;
    /* Pictures that places are in: the input or its staged copy. */
    const uint8_t *from;
    int64_t height, width, pixel; /* pixel: bytes */
    int64_t top, left;            /* rows and columns of padding that they lack */
} sni_nhwc_call;

/* Elements of 4 bytes that the weights of a depthwise convolution take; packs them to p->w.extra.
 */
size_t sni_nhwc_depthwise_size(int64_t channels, const int64_t kernel[2]);
void sni_nhwc_fill_depthwise(sni_nhwc_conv *p, const sni_tensor *w);
sn_status sni_nhwc_run_depthwise(sni_kernel *k, const sni_nhwc_call *c);

#endif
