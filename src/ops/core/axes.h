/* axes.h - a tensor whose axes are of two kinds, those that results keep and those that are reduced
 * (or normalised along), in the order in which memory is read best. */
#ifndef SNI_OPS_CORE_AXES_H
#define SNI_OPS_CORE_AXES_H

#include "base/tensor.h"

/* Axes of size 1 are dropped and neighbours of one fate merged; what is left is read as
 * kept positions x (walk of reduced positions) x a contiguous run of `run` elements, which
 * is kept (each element has its own result) or reduced (all share one). */
typedef struct sni_axes {
    bool run_kept;
    int64_t run;   /* elements of the run */
    int64_t count; /* elements per result */
    int kept_rank, red_rank;
    int64_t kept_dims[SN_MAX_RANK], kept_strides[SN_MAX_RANK]; /* without the run */
    int64_t red_dims[SN_MAX_RANK], red_strides[SN_MAX_RANK];
} sni_axes;

sni_axes sni_axes_lay_out(const sni_tensor *x, const bool reduced[SN_MAX_RANK]);

/* Where kept position `index` begins, the run not counted as one. */
int64_t sni_axes_offset(const sni_axes *a, int64_t index);

/* Calls fn(ctx, at, rows, step) so that the places at, at + step, ... (`rows` of them) are, over
 * all calls, every reduced position of the kept one that begins at `offset`, in memory's order. */
void sni_axes_walk(const sni_axes *a, int64_t offset,
                   void (*fn)(void *ctx, int64_t at, int64_t rows, int64_t step), void *ctx);

#endif
