/* observer.h - what is remembered of a tensor over all samples, in memory that does not grow with
 * them: extremes, a histogram, and sums by channel. */
#ifndef SNI_QUANTIZE_OBSERVER_H
#define SNI_QUANTIZE_OBSERVER_H

#include "base/tensor.h"

#include "sinter_quantize.h"

enum { SNI_OBSERVER_BINS = 2048 };

typedef struct sni_observer {
    float low, high;    /* extremes seen; low > high: nothing yet */
    double from, width; /* where the histogram begins, and of one bin; width 0: none yet */
    uint64_t bins[SNI_OBSERVER_BINS];
    uint64_t count;       /* numbers seen */
    int64_t channels;     /* of the sums; 0: none are kept */
    int channel_axis;     /* counted from the end if below 0 */
    double *sum, *square; /* by channel */
    float *largest;       /* by channel: of the magnitudes */
    uint64_t per_channel; /* numbers seen of each channel */
} sni_observer;

/* An observer that also sums along an axis, if `channels` is above 0; NULL without memory. */
sni_observer *sni_observer_new(int64_t channels, int channel_axis);
void sni_observer_free(sni_observer *o); /* NULL is fine */

/* Adds the numbers of a float32 tensor. SN_BAD_DATA: one of them is NaN or infinite. */
sn_status sni_observer_add(sni_observer *o, const float *x, int rank, const int64_t *dims,
                           sn_error *err);

/* The range by a method (not AUTO); it contains 0. Both are 0 if nothing was seen. */
void sni_observer_range(const sni_observer *o, sn_calibration method, float *low, float *high);

#endif
