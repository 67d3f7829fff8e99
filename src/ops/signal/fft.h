/* fft.h - discrete Fourier transforms of any length, in double. Complex numbers are pairs. */
#ifndef SNI_OPS_SIGNAL_FFT_H
#define SNI_OPS_SIGNAL_FFT_H

#include "ops/core/op.h"

/* One set of transforms of length n: `load` fills n complex numbers, the forward transform (sum of
 * x[i] e^(-2 pi j i k / n)) is made in place, `store` takes the result. Both are called for each
 * of `lines` lines, from several threads at once. */
typedef struct sni_fft_job {
    int64_t n, lines;
    void (*load)(const void *ctx, int64_t line, double *buffer);
    void (*store)(const void *ctx, int64_t line, const double *buffer);
    const void *ctx;
} sni_fft_job;

/* n is at least 1. */
sn_status sni_fft_run(sni_kernel *k, const sni_fft_job *job);

#endif
