/* pool.h - what the pools share: parameters, and running a row function over all output rows. */
#ifndef SNI_OPS_NN_POOL_H
#define SNI_OPS_NN_POOL_H

#include "ops/nn/sliding.h"

typedef struct sni_pool_params {
    sni_window_params window;
    int64_t count_include_pad; /* AveragePool */
    int64_t storage_order;     /* MaxPool: 1 numbers Indices column by column */
    int64_t p;                 /* LpPool */
    int64_t channels_last;     /* operators of com.microsoft on 8-bit tensors */
} sni_pool_params;

/* Outputs [lo, hi) of a row for which a tap is inside the input: output o reads element o * stride
 * + shift of the row. */
typedef struct sni_pool_span {
    int64_t lo, hi, shift;
} sni_pool_span;

/* `global`: the window is the whole plane. */
typedef struct sni_pool_window {
    sni_window window;
    const sni_pool_params *params;
    const void *x;
    void *y;
    int64_t *indices; /* MaxPool: NULL if not wanted */
    int64_t out_rows, in_plane;
    const sni_pool_span *spans; /* of the taps along the last axis that meet the input */
    int64_t n_spans;
    const float *taps;       /* that count for the mean, along the last axis, of each output */
    const float *tap_rows;   /* rows of taps that count for it, of each output row; or NULL */
    const sni_kernel *watch; /* NULL unless a row takes long: whether to stop is asked tap by tap */
} sni_pool_window;

/* True if the run should stop: the rest of a row may be left undone. */
static inline bool sni_pool_stopping(const sni_pool_window *pool) {
    return pool->watch && sni_stopping(pool->watch);
}

/* Computes output row `row` of plane `plane` (one image's channel) into its place in y. */
typedef void (*sni_pool_fn)(const sni_pool_window *pool, int64_t plane, int64_t row);

/* The same for rows [begin, end), counted over all planes. */
typedef void (*sni_pool_rows_fn)(const sni_pool_window *pool, int64_t begin, int64_t end);

/* Output 0 from input 0, of floats, by a function of float32; no indices. `means`: it wants
 * tap_rows. */
sn_status sni_pool_run_rows(sni_kernel *k, sni_pool_rows_fn fn, bool means);

/* Output 0 from input 0 by the function of their type, float32's for narrow floats. */
sn_status sni_pool_run(sni_kernel *k, const sni_pool_fn table[SNI_DTYPE_COUNT], bool global);

/* A pool of elements in memory: x and y give the shapes (channels first) of the elements at `in`
 * and `out`, which are of fn's type. */
typedef struct sni_pool_planes {
    sni_pool_fn fn;
    bool global; /* the window is the whole plane */
    const sni_tensor *x, *y;
    const void *in;
    void *out;
    int64_t *indices; /* may be NULL */
} sni_pool_planes;

/* Calls fn for all rows of all planes, with the parameters of k (sni_pool_params). */
sn_status sni_pool_run_planes(sni_kernel *k, const sni_pool_planes *planes);

/* (N, C, 1, ...): `.infer` of global pools. */
sn_status sni_infer_global_pool(sni_infer *c);

#define SNI_POOL_PARAMS                                \
    SNI_WINDOW_KERNEL(sni_pool_params, window, true),  \
        SNI_WINDOW_DILATIONS(sni_pool_params, window), \
        SNI_WINDOW_AUTO_PAD(sni_pool_params, window), SNI_WINDOW_CEIL(sni_pool_params, window)

/* `.infer` of pools with SNI_POOL_PARAMS. */
sn_status sni_infer_window_pool(sni_infer *c);

/* LpPool and GlobalLpPool: opset 1 had `p` as a float. */
sn_status sni_upgrade_lp_order(sni_upgrade *u);

#endif
