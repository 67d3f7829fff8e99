/* scale.h - weights times factors of their channels. */
#ifndef SNI_OPS_NN_SCALE_H
#define SNI_OPS_NN_SCALE_H

#include "base/floats.h"

#include <stdint.h>

/* to[i] = from[i] * by[i / inner % channels] for `count` elements, a multiple of channels * inner,
 * on as many threads as the caller may use. */
void sni_scale_channels(const sni_unaligned_float *from, int64_t count, const float *by,
                        int64_t channels, int64_t inner, float *to);

#endif
