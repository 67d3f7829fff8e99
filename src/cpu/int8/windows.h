/* windows.h - depthwise convolutions of bytes: the kernels of one tier. */
#ifndef SNI_CPU_INT8_WINDOWS_H
#define SNI_CPU_INT8_WINDOWS_H

#include "cpu/core/dispatch.h"

#include <stdint.h>

/* A row of sums of products over taps, as floats that hold integers: fewer than SNI_INT_TAPS taps
 * of bytes keep below 2^24, where floats are exact. Rows of x may be read, and y written, up to
 * the next multiple of SNI_INT_SLACK elements. */
enum { SNI_INT_TAPS = 256, SNI_INT_SLACK = 64 };
typedef struct sni_int_taps {
    const float *const *x; /* for each tap: what it sees for output 0 */
    const float *w;        /* for each tap */
    int64_t taps, n;
    int32_t *y;
} sni_int_taps;

/* Sums over windows of bytes: y[o, i] = the sum over kernel rows r of the products of w's row r and
 * the bytes from x + (o * down + r) * x_row + i * across on. A row of w is `units` units of `group`
 * signed elements. Rows of x may be read up to SNI_INT_SLACK bytes past the last window; rows of y
 * are written up to the next multiple of 16. */
typedef struct sni_int_windows {
    const uint8_t *x;
    int64_t x_row;
    uint8_t flip; /* of x, to make it unsigned */
    const int32_t *w;
    int64_t kernel, units; /* rows of w, units of each */
    int64_t down, across;  /* strides; across is 1 or 2 */
    int64_t rows, n;
    int32_t *y;
    int64_t y_step;
} sni_int_windows;

struct sni_int_windows_kernels {
    void (*taps)(const sni_int_taps *t);
    void (*windows)(const sni_int_windows *w);
    /* n units that start at x + i * across, with across 1 or 2; x may be read as above. */
    void (*window_units)(const uint8_t *x, int64_t across, uint8_t flip, int64_t n, int32_t *to);
};

#endif
