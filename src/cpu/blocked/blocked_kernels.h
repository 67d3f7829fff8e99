/* blocked_kernels.h - vector kernels for what stands between convolutions in blocked layout
 * (cpu/conv/conv.h).
 */
#ifndef SNI_CPU_BLOCKED_BLOCKED_KERNELS_H
#define SNI_CPU_BLOCKED_BLOCKED_KERNELS_H

#include "cpu/core/kernels.h"

/* One output row of a pool in one block. Distances are in pixels along the row and in elements
 * between rows. */
typedef struct sni_pool_row {
    const float *x; /* the first row of input that a tap of this row sees */
    float *y;
    int64_t rows, x_row;                              /* input rows, and elements between them */
    int64_t in_w, out_w, taps, stride, dilation, pad; /* along the row */
    /* A mean: pixel o's sum is divided by divisor * columns[o]. A maximum: columns is NULL. */
    float divisor;
    const float *columns;
} sni_pool_row;

struct sni_blocked_kernels {
    void (*pool_row)(const sni_pool_row *row);
    /* y (block) = the mean, or the largest, of `pixels` vectors of a block. */
    void (*mean)(const float *x, float *y, int64_t pixels);
    void (*max)(const float *x, float *y, int64_t pixels);
    /* y[p][c] = x[p][c] * s[c], and + s[c]; y may be x. */
    void (*scale)(const float *x, const float *s, float *y, int64_t pixels);
    void (*shift)(const float *x, const float *s, float *y, int64_t pixels);
    /* y[r][c] = x[r][c] * s[r] for rows of a block. */
    void (*scale_rows)(const float *x, const float *s, float *y, int64_t rows);
    /* y[p][c] = from[c][p][lanes[c]] for a block of pointers to blocks. */
    void (*gather)(const float *const *from, const int32_t *lanes, float *y, int64_t pixels);
};

#endif
