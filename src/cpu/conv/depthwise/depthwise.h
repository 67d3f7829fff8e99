/* depthwise.h - convolution of blocked tensors where each output channel sees its own input channel
 * alone, or the few of its group. */
#ifndef SNI_CPU_CONV_DEPTHWISE_DEPTHWISE_H
#define SNI_CPU_CONV_DEPTHWISE_DEPTHWISE_H

#include "cpu/conv/conv.h"

/* Some neighbouring rows of output of one channel block. Rows of the kernel above and below the
 * picture are left out, columns beside it are taken to be zeros. Distances are in floats. */
typedef struct sni_depthwise_rows {
    const float *x;              /* column 0 of row x_first of the input: where `few` and `shares`
                                    are 1 in the same block, else in its first */
    int64_t x_first, in_h, in_w; /* rows and columns of the whole picture */
    int64_t x_line, y_line;      /* from row to row */
    int64_t top, left;           /* of the input under the first tap of the first output */
    int64_t count, pixels;       /* rows of output, and pixels of each */
    int64_t rows, taps;          /* of the kernel */
    int64_t stride_h, stride_w;  /* in pixels */
    int64_t dilation_h, dilation_w; /* in pixels */
    int64_t few, shares;            /* input and output channels of a group */
    int64_t channel, channels;      /* the first of the block of output, and all there are */
    int64_t x_block;                /* from a channel block of the input to the next */
    const float *w;                 /* (rows, channels of a group, taps, block) */
    const float *bias, *residual;   /* NULL: none */
    float least, most;              /* results are clamped */
    float *y;
} sni_depthwise_rows;

enum { SNI_DEPTHWISE_FEW = 256 }; /* most channels of a group */

struct sni_depthwise_kernels {
    void (*rows)(const sni_depthwise_rows *r);
};

/* True for convolutions that this can run, if in addition the n-th channels of the groups that an
 * output block's channels are of lie in two input blocks at most, whatever n is. */
bool sni_depthwise_fits(const sni_conv_geometry *g);

/* Floats of packed weights: (blocks of output channels, kernel_h, input channels of a group,
 * kernel_w, block). */
size_t sni_depthwise_packed_size(const sni_conv_geometry *g);
void sni_depthwise_pack(const sni_conv_geometry *g, const float *w, float *to);

/* Rows [from, to) of one plane (`channels`: its channel block) to y, which is its first row. x is
 * row `x_first` of the input, in the block that sni_depthwise_rows says; e->residual and
 * e->row_means, too, are the plane's first row. */
typedef struct sni_depthwise_part {
    const float *x;
    int64_t x_first, channels, from, to;
    float *y;
} sni_depthwise_part;
void sni_depthwise_run_part(const sni_conv_geometry *g, const float *packed,
                            const sni_conv_epilogue *e, const sni_depthwise_part *part);

/* Means of planes of `rows` rows each, from those of the rows. */
void sni_depthwise_means(const float *row_means, float *means, int64_t planes, int64_t rows);

/* Runs it; x and y are aligned to 64 bytes. Results are the same for any number of threads. */
void sni_depthwise_run(const sni_conv_geometry *g, const float *packed, const float *x, float *y,
                       const sni_conv_epilogue *e, int threads);

#endif
