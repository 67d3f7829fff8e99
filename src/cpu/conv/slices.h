/* slices.h - convolutions over one or three axes as convolutions of blocked pictures
 * (conv_slices.c), for Conv and for what comes down to it. */
#ifndef SNI_CPU_CONV_SLICES_H
#define SNI_CPU_CONV_SLICES_H

#include "cpu/core/cpu_ep.h"

/* A convolution of (channels, depth, height, width) to m channels; a line has depth and height 1,
 * and may have several groups, which then fill blocks. plain: channels are few, pictures keep them
 * apart. */
typedef struct sni_slices_variant {
    int64_t channels, m, depth, kernel_h, kernel_w, groups;
    bool plain;
} sni_slices_variant;

/* True if blocks of so many channels would be mostly zeros. */
bool sni_slices_plain(int64_t channels);

/* Packed weights. */
typedef struct sni_sliced {
    sni_slices_variant variant;
    int64_t block, slice; /* channels of a block of input; blocks of a slice */
    float *bias, *slopes; /* up to whole blocks; NULL: none */
    void *direct;         /* of conv_direct.c */
} sni_sliced;

/* Writes weights as (m, depth, slice * block / groups, kernel_h * kernel_w) to zero-filled memory.
 */
typedef void (*sni_slices_transpose_fn)(const void *ctx, const sni_unaligned_float *from,
                                        const sni_sliced *s, float *to);

/* Packs input 1 of a choice. */
sn_status sni_slices_pack(const sni_choice *c, const sni_slices_variant *f,
                          sni_slices_transpose_fn transpose, const void *ctx, sni_sliced *out,
                          sn_error *err);
void sni_slices_end(sni_sliced *s, float *bias, float *slopes);
void sni_slices_release(void *state); /* a sni_sliced from sni_cpu_keep() */

/* One call: x is (batch, channels, d, h, w), y (batch, m, out_d, out_h, out_w); no size is 0. A
 * line has d 0, h 1, and neither padding nor stride but along w. */
typedef struct sni_slices_call {
    const float *x;
    float *y;
    int64_t batch, d, h, w, out_d, out_h, out_w;
    int64_t stride_d, stride_h, stride_w, dilation_h, dilation_w, pad_d, pad_h, pad_w;
} sni_slices_call;

/* y = act(conv + bias), of `act` the function and its coefficients. */
sn_status sni_slices_run(sni_kernel *k, const sni_sliced *w, const sni_slices_call *call,
                         const sni_epilogue *act);

#endif
