/* nms.h - a box against many, for NonMaxSuppression: the kernels of one tier. */
#ifndef SNI_CPU_SELECT_NMS_H
#define SNI_CPU_SELECT_NMS_H

#include "cpu/core/kernels.h"

enum { SNI_NMS_PAD = 16 }; /* elements after the last box that may be read */

/* Selected boxes, an array per field. Areas are above 0. */
typedef struct sni_nms_taken {
    const float *y1, *x1, *y2, *x2, *area;
} sni_nms_taken;

struct sni_nms_kernels {
    /* Whether any of boxes [from, to) overlaps the box b (y1, x1, y2, x2, area) with an
     * intersection over union above `threshold`. Arithmetic has no fused operations, so that every
     * tier decides alike. */
    bool (*overlaps)(const sni_nms_taken *t, int64_t from, int64_t to, const float *b,
                     float threshold);
};

#endif
