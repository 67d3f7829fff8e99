/* conv_direct.h - what the files of direct convolutions share. */
#ifndef SNI_EP_CPU_CONV_DIRECT_H
#define SNI_EP_CPU_CONV_DIRECT_H

#include "ep/cpu/blocked.h"

/* Packed as (groups, output blocks, input blocks, kh, kw, channels of an input block, block), or if
 * taps lie apart as (groups, output blocks, kh, kw, input blocks, channels of one, block).
 * Groups of fewer channels than a block are merged until they fill one, with zeros between them;
 * tiles that are NaN then, as 0 times infinity is, are summed again group by group. */
typedef struct sni_direct_weights {
    int64_t groups, in, out;       /* merged ones, and channels of one */
    int64_t merged;                /* groups of the model in one of these */
    int64_t in_block;              /* channels of an input block: 1 if the input is plain */
    int64_t taps, kernel_w;        /* of a channel, and of a row of them */
    bool apart;                    /* taps of a channel lie apart */
    float *panels, *bias, *slopes; /* the last two may be NULL */
} sni_direct_weights;

/* A stretch of rows or columns of a kernel. */
typedef struct sni_stretch {
    int64_t from, to;
} sni_stretch;

/* Leaves out taps of an axis that no output has in the picture, and returns which are left. The pad
 * of those stays 0 or more. */
sni_stretch sni_dilated_trim(int64_t in, int64_t out, int64_t stride, int64_t dilation,
                             int64_t *kernel, int64_t *pad);

/* Where the taps that columns have in the picture change first after column `from`, or `to`. */
int64_t sni_dilated_band(const sni_conv_geometry *g, int64_t from, int64_t to);

/* The row of output that comes `place`-th. Rows that a dilated kernel reads together come one after
 * another, so that what one of them has read is near when the next one needs it. */
int64_t sni_dilated_row(const sni_conv_geometry *g, int64_t place);

/* Rows of the kernel that a row of output has in the picture. */
sni_stretch sni_kernel_rows(const sni_conv_geometry *g, int64_t row);

/* How far the last row of input of the row that comes after the `span`-th is from that of this one;
 * 0 if there is none. */
int64_t sni_dilated_below(const sni_conv_geometry *g, int64_t span);

#endif
