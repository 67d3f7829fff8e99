/* nhwc.h - convolutions of bytes with channels last: the kernels of one tier.
 *
 * Pixels are the rows of a product and output channels its columns. Nothing is gathered: a tile is
 * given the place of each of its pixels for each tap, and reads the channels there as units
 * (cpu/int8/igemm.h). Where a unit is two words, and where channels do not fill units, the places
 * are in a staged copy of the input. */
#ifndef SNI_CPU_INT8_NHWC_H
#define SNI_CPU_INT8_NHWC_H

#include "cpu/core/dispatch.h"
#include "cpu/int8/igemm.h"
#include "ops/sinter/nhwc.h"

/* A tile: up to SNI_INT_MR pixels by a panel of weights, packed as a signed B of igemm.h with
 * taps * units units. */
typedef struct sni_nhwc_tile {
    const uint8_t *const *x; /* (tap, mr): of each pixel */
    int64_t shift;           /* bytes to add to each place */
    int64_t taps, units;     /* units of each tap */
    const int32_t *w;
} sni_nhwc_tile;

/* The bytes that a tile's sums become; `n` columns, at most nr. */
typedef struct sni_nhwc_block {
    const sni_nhwc_finish *how;
    int64_t n;
    const int32_t *add; /* for each column */
    const float *scale;
    uint8_t *y;
    const uint8_t *r; /* the residual, as y; or NULL */
    int64_t step;     /* from row to row of y and r */
} sni_nhwc_block;

/* One row of outputs of a depthwise convolution, all its channels. */
typedef struct sni_nhwc_depthwise {
    const sni_nhwc_finish *how;
    const uint8_t *const *x;   /* for each kernel row: the input row; NULL: padding */
    const uint8_t *pad;        /* a pixel of padding */
    int64_t channels, in, out; /* input and output pixels of a row */
    int64_t kernel[2], stride, dilation, begin; /* the last three along the row */
    uint8_t flip;                               /* of x, to make it unsigned */
    const int32_t *w;                           /* from depthwise_weight */
    const int32_t *add; /* for each channel, in the order of depthwise_channel and up to */
    const float *scale; /* the next whole block */
    uint8_t *y;
} sni_nhwc_depthwise;

struct sni_nhwc_kernels {
    int mr, nr, group; /* those of sni_int_kernels */
    /* So many pixels. [1]: the top bit of each byte is flipped first. [][1]: at most half of nr
     * columns, [][0]: more. */
    void (*tile[2][2][SNI_INT_MR + 1])(const sni_nhwc_tile *t, const sni_nhwc_block *b);
    /* n bytes, flipped, as elements of units: bytes or words. */
    void (*stage)(const uint8_t *x, int64_t n, uint8_t flip, void *to);
    /* Depthwise weights are int32 elements in blocks of `depthwise_block` channels, of
     * depthwise_size() for a whole block. Element i of a block holds taps as
     * depthwise_element(i) says. */
    int depthwise_block;
    int64_t (*depthwise_size)(const int64_t kernel[2]);
    /* Element i of the block of channels from `first` on. w is (channels, kernel), signed after its
     * bits are flipped. */
    int32_t (*depthwise_element)(const uint8_t *w, uint8_t flip, int64_t channels, int64_t first,
                                 const int64_t kernel[2], int64_t i);
    /* The channel of a block whose addend and scale stand at position i. */
    int (*depthwise_channel)(int i);
    void (*depthwise)(const sni_nhwc_depthwise *d);
};

#endif
