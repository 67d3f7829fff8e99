/* depthwise.h - convolution of blocked tensors where each output channel sees its own input channel
 * alone. */
#ifndef SNI_CPU_DEPTHWISE_H
#define SNI_CPU_DEPTHWISE_H

#include "cpu/conv.h"

enum { SNI_DEPTHWISE_TAPS = 64 }; /* most rows of a kernel */

/* Some neighbouring outputs of one row or several whose taps all lie in memory, of one channel
 * block. */
typedef struct sni_depthwise_row {
    const float *x[SNI_DEPTHWISE_TAPS]; /* for each row of the kernel: output 0's first tap */
    int64_t count, x_next, y_next;      /* rows of output, and floats from one to the next */
    int64_t rows, taps;                 /* of the kernel */
    const float *w;                     /* (rows, taps, block) */
    int64_t stride, dilation;           /* along the row, in pixels */
    int64_t pixels;
    const float *bias, *residual; /* NULL: none */
    float least, most;            /* results are clamped */
    float *y;
} sni_depthwise_row;

struct sni_depthwise_kernels {
    void (*row)(const sni_depthwise_row *r);
};

/* True for convolutions that this can run. */
bool sni_depthwise_fits(const sni_conv_geometry *g);

/* Floats of packed weights: (channel blocks, kernel_h, kernel_w, block). */
size_t sni_depthwise_packed_size(const sni_conv_geometry *g);
void sni_depthwise_pack(const sni_conv_geometry *g, const float *w, float *to);

/* Runs it; x and y are aligned to 64 bytes. Results are the same for any number of threads. */
void sni_depthwise_run(const sni_conv_geometry *g, const float *packed, const float *x, float *y,
                       const sni_conv_epilogue *e, int threads);

#endif
