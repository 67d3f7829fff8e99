/* sliding.h - sliding windows: kernel sizes, strides, dilations and padding of convolutions and
 * pools, in any number of spatial axes. Tensors are (N, C, spatial...). */
#ifndef SNI_OPS_NN_SLIDING_H
#define SNI_OPS_NN_SLIDING_H

#include "ops/core/op.h"

enum { SNI_PAD_NOTSET, SNI_PAD_SAME_UPPER, SNI_PAD_SAME_LOWER, SNI_PAD_VALID };

/* The attributes that say it; part of the operators' parameter structs. */
typedef struct sni_window_params {
    int32_t auto_pad; /* SNI_PAD_... */
    int64_t ceil_mode;
    sni_ints kernel_shape, strides, pads, dilations;
} sni_window_params;

/* Entries of a parameter table for field `w` (a sni_window_params) of struct type S. */
#define SNI_WINDOW_KERNEL(S, w, must)                                                 \
    {"kernel_shape", SNI_ATTR_INTS, offsetof(S, w.kernel_shape), .required = (must)}, \
        {"strides", SNI_ATTR_INTS, offsetof(S, w.strides)}, {                         \
        "pads", SNI_ATTR_INTS, offsetof(S, w.pads)                                    \
    }
#define SNI_WINDOW_DILATIONS(S, w) \
    { "dilations", SNI_ATTR_INTS, offsetof(S, w.dilations) }
#define SNI_WINDOW_AUTO_PAD(S, w)                                             \
    {                                                                         \
        "auto_pad", SNI_ATTR_STRING, offsetof(S, w.auto_pad),                 \
            .text = "NOTSET", .choices = "NOTSET|SAME_UPPER|SAME_LOWER|VALID" \
    }
#define SNI_WINDOW_CEIL(S, w) \
    { "ceil_mode", SNI_ATTR_INT, offsetof(S, w.ceil_mode) }

/* A window over `rank` spatial axes. Every field is in [0, 2^31), and stride, dilation and kernel
 * are above 0, so that sums and products of two of them do not overflow. */
typedef struct sni_window {
    int rank;
    int64_t kernel[SN_MAX_RANK]; /* -1: not known */
    int64_t stride[SN_MAX_RANK];
    int64_t dilation[SN_MAX_RANK];
    int64_t begin[SN_MAX_RANK], end[SN_MAX_RANK]; /* padding */
    int64_t in[SN_MAX_RANK], out[SN_MAX_RANK];    /* sizes; set by sni_window_place */
} sni_window;

/* Checks the attributes. `kernel` (NULL: none) has the sizes that the weights tell, which may be
 * symbols. Padding is the explicit one (0 for VALID, and for SAME until sni_window_place). */
sn_status sni_window_init(sni_window *w, const sni_window_params *p, int rank,
                          const sni_dim *kernel, sn_error *err);

/* Sizes of the output for sizes of the input, which may be symbols. */
sn_status sni_window_sizes(const sni_window *w, const sni_window_params *p, const sni_dim *in,
                           sni_dim *out, sni_symbols *symbols, sn_error *err);

/* At run time: sets `in` and `out` from the tensors' sizes, and the padding that SAME asks for. */
void sni_window_place(sni_window *w, const sni_window_params *p, const int64_t *in,
                      const int64_t *out);

/* init and place for a kernel with input `x` and output `y`; `kernel` as above. */
sn_status sni_window_at_run(sni_kernel *k, sni_window *w, const sni_window_params *p,
                            const sni_tensor *x, const sni_tensor *y, const int64_t *kernel);

/* Elements between the first and the last tap along an axis, both included. */
static inline int64_t sni_window_extent(const sni_window *w, int axis) {
    return (w->kernel[axis] - 1) * w->dilation[axis] + 1;
}

/* The last axis is walked along rows; these are products over all axes but the last. */
int64_t sni_window_in_rows(const sni_window *w);
int64_t sni_window_out_rows(const sni_window *w);
int64_t sni_window_tap_rows(const sni_window *w);

/* Where the taps of an output row begin, along all axes but the last: out * stride - begin. */
void sni_window_origin(const sni_window *w, int64_t out_row, int64_t *origin);
/* The next tap row in order: adds 1 to the coordinates `tap`, which start at 0. */
void sni_window_next_tap(const sni_window *w, int64_t *tap);
/* The input row under a tap row; -1 if it is in the padding. */
int64_t sni_window_in_row(const sni_window *w, const int64_t *origin, const int64_t *tap);

/* Outputs [lo, hi) along the last axis for which tap `tap` is inside the input; output o then reads
 * element o * stride + *shift of the row. */
void sni_window_span(const sni_window *w, int64_t tap, int64_t *lo, int64_t *hi, int64_t *shift);

/* Taps [from, to) along the last axis that are inside the input for some output. */
void sni_window_last_taps(const sni_window *w, int64_t *from, int64_t *to);

/* A walk over the input rows under one output row, padding left out:
 *
 *     sni_window_rows r;
 *     for (bool more = sni_window_rows_first(w, &r, out_row); more;
 *          more = sni_window_rows_next(w, &r)) ... r.in_row ... */
typedef struct sni_window_rows {
    int64_t in_row;
    int64_t origin[SN_MAX_RANK], from[SN_MAX_RANK], to[SN_MAX_RANK], tap[SN_MAX_RANK];
} sni_window_rows;
bool sni_window_rows_first(const sni_window *w, sni_window_rows *r, int64_t out_row);
bool sni_window_rows_next(const sni_window *w, sni_window_rows *r);

/* The number of taps of output o along an axis that are in the input, or in the input and its
 * padding. */
int64_t sni_window_taps(const sni_window *w, int axis, int64_t o, bool padding);

/* `.infer` of pools: output `o` is (N, C, sizes) for input 0. Any number of outputs. */
sn_status sni_infer_pool(sni_infer *c, const sni_window_params *p);

#endif
