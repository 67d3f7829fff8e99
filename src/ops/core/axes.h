/* axes.h - the axes of a reduction or normalisation, split into kept and reduced ones and arranged
 * so that memory is read in order. */
#ifndef SNI_OPS_CORE_AXES_H
#define SNI_OPS_CORE_AXES_H

#include "base/tensor.h"

/* Axes of size 1 are dropped, and neighbouring axes of the same kind merged. What remains is read
 * as kept positions x reduced positions x a contiguous run of `run` elements. The run is the last
 * axis: it is kept (each element has its own result) or reduced (all share one result). */
typedef struct sni_axes {
    bool run_kept;
    int64_t run;   /* elements of the run */
    int64_t count; /* elements per result */
    int kept_rank, red_rank;
    int64_t kept_dims[SN_MAX_RANK], kept_strides[SN_MAX_RANK]; /* without the run */
    int64_t red_dims[SN_MAX_RANK], red_strides[SN_MAX_RANK];
} sni_axes;

/* The arrangement for a tensor; reduced[axis] tells which axes are reduced. */
sni_axes sni_axes_lay_out(const sni_tensor *x, const bool reduced[SN_MAX_RANK]);

/* The offset of kept position `index` in elements; a kept run is not counted as positions. */
int64_t sni_axes_offset(const sni_axes *a, int64_t index);

/* Visits every reduced position of the kept position at `offset`, in memory order: each call
 * fn(ctx, at, rows, step) stands for the `rows` positions at, at + step, at + 2 * step, ... */
void sni_axes_walk(const sni_axes *a, int64_t offset,
                   void (*fn)(void *ctx, int64_t at, int64_t rows, int64_t step), void *ctx);

#endif
