/* roi_align.h - attributes of RoiAlign, and what an implementation may expect of its regions. */
#ifndef SNI_OPS_NN_ROI_ALIGN_H
#define SNI_OPS_NN_ROI_ALIGN_H

#include <stdint.h>

typedef struct sni_roi_params {
    int32_t half_pixel, mode; /* 0 half_pixel, 1 output_half_pixel; 0 avg, 1 max */
    int64_t output_height, output_width, sampling_ratio;
    float spatial_scale;
} sni_roi_params;

enum { SNI_ROI_SAMPLES = 16384 }; /* most along one axis of one output element */

#endif
