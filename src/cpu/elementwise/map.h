/* map.h - float32 functions of contiguous rows: the kernels of one tier. Tables are indexed by
 * sni_act and sni_binary (cpu/core/kernels.h). Strides sa and sb are 1, or 0 where the operand is
 * one number for the whole row. */
#ifndef SNI_CPU_ELEMENTWISE_MAP_H
#define SNI_CPU_ELEMENTWISE_MAP_H

#include "cpu/core/kernels.h"

struct sni_map_kernels {
    /* y[i] = act(x[i]) with coefficients p0 and p1 (cpu/core/act.def). y may be x. */
    void (*map[SNI_ACT_COUNT])(float p0, float p1, const float *x, float *y, int64_t n);
    /* y[i] = f(a[i * sa], b[i * sb]); a, b and y are float arrays and `params` is not used, as the
     * type is sni_binary_fn of the reference kernels. y may be an operand of stride 1. */
    void (*binary[SNI_BINARY_COUNT])(const void *a, const void *b, void *y, int64_t n, int64_t sa,
                                     int64_t sb, const void *params);
    /* y[i] = c[i] != 0 ? a[i * sa] : b[i * sb]. */
    void (*choose_row)(const float *c, const float *a, const float *b, float *y, int64_t n,
                       int64_t sa, int64_t sb);
    /* Bools (bytes) and integers to floats; floats to bools. */
    void (*from_bools)(const void *x, float *y, int64_t n);
    void (*from_int32)(const void *x, float *y, int64_t n);
    void (*from_int64)(const void *x, float *y, int64_t n);
    void (*to_bools)(const float *x, uint8_t *y, int64_t n);
};

#endif
