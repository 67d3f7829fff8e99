/* resize.h - interpolation along axes, shared by Resize and Upsample. */
#ifndef SNI_OPS_NN_RESIZE_H
#define SNI_OPS_NN_RESIZE_H

#include "ops/core/op.h"

typedef enum sni_resize_mode {
    SNI_RESIZE_NEAREST,
    SNI_RESIZE_LINEAR,
    SNI_RESIZE_CUBIC
} sni_resize_mode;

/* In the order of Resize's `coordinate_transformation_mode` choices. */
typedef enum sni_resize_coord {
    SNI_RESIZE_HALF_PIXEL,
    SNI_RESIZE_HALF_PIXEL_SYMMETRIC,
    SNI_RESIZE_PYTORCH_HALF_PIXEL,
    SNI_RESIZE_ALIGN_CORNERS,
    SNI_RESIZE_ASYMMETRIC,
    SNI_RESIZE_CROP,
    SNI_RESIZE_HALF_PIXEL_NN
} sni_resize_coord;

/* In the order of Resize's `nearest_mode` choices. SIMPLE is that of opset 10: down on axes that
 * grow, up on axes that shrink. */
typedef enum sni_resize_round {
    SNI_RESIZE_PREFER_FLOOR,
    SNI_RESIZE_PREFER_CEIL,
    SNI_RESIZE_FLOOR,
    SNI_RESIZE_CEIL,
    SNI_RESIZE_SIMPLE
} sni_resize_round;

typedef struct sni_resize_params {
    int32_t mode, coord, round, keep_aspect; /* the last: 0 stretch, 1 not_larger, 2 not_smaller */
    int64_t antialias, exclude_outside;
    float cubic_coeff_a, extrapolation_value;
    sni_ints axes;
} sni_resize_params;

/* How one axis is resized. */
typedef struct sni_resize_axis {
    int64_t in, out;
    double scale;      /* out / in, or the factor that was given */
    double start, end; /* region of interest, SNI_RESIZE_CROP */
} sni_resize_axis;

/* Kernel hooks (ops/core/kernel_hooks.h). Places are below 2^31; lists of places and weights have a
 * multiple of `lanes` entries. */
typedef struct sni_resize_hooks {
    int lanes;
    /* y[i] = x[at[i]] for n elements of four bytes, out of `in`. */
    void (*pick)(const float *x, int64_t in, const int32_t *at, int64_t n, float *y);
    /* y[i] = sum over t of w[t * step + i] x[at[t * step + i]], ignoring weights of 0. The places
     * of a tap rise or fall, as those of `pick` do; those of `sample` are in any order. Leaf
     * kernels, called once per row: eight parameters stay in registers. */
    void (*sample)(const float *x, int64_t in, const int32_t *at, const float *w, int64_t taps,
                   int64_t step, int64_t n, float *y);
    void (*spread)(const float *x, int64_t in, const int32_t *at, const float *w, int64_t taps,
                   int64_t step, int64_t n, float *y);
    /* The same for taps that are two times two neighbours: w[t * step + i] is for
     * x[at[t / 2 * step + i] + t % 2]. */
    void (*sample_pairs)(const float *x, const int32_t *at, const float *w, int64_t step, int64_t n,
                         float *y);
    /* y[i] = sum over j of w[j] x[at[j] + i] for n elements, added to y where `add`. */
    void (*weigh)(const float *w, const int64_t *at, int64_t count, const float *x, int64_t n,
                  float *y, bool add);
} sni_resize_hooks;

/* Output 0 = input 0, each axis as `axes` says; all axes have in and out above 0. Types that are
 * not numbers only with NEAREST. */
sn_status sni_resize_run(sni_kernel *k, const sni_resize_params *p, const sni_resize_axis *axes);

/* Reads scales (float32, one per axis of the list); fails unless they are positive and finite. */
sn_status sni_resize_check_scale(double scale, sn_error *err);
/* The size of an axis scaled by a factor; `in` may be a symbol. */
sni_dim sni_resize_scaled(sni_symbols *symbols, sni_dim in, float scale);

#endif
