/* nms.h - NonMaxSuppression around the choice of one class's boxes, which implementations replace.
 */
#ifndef SNI_OPS_NN_NMS_H
#define SNI_OPS_NN_NMS_H

#include "ops/core/op.h"

#include <math.h>

typedef struct sni_nms {
    const float *boxes, *scores; /* of one batch; of one class */
    int64_t count;               /* boxes of a batch */
    int64_t most;                /* boxes to select of a class */
    float iou_threshold, score_threshold;
    bool has_score_threshold, centered;
} sni_nms;

typedef struct sni_nms_box {
    float y1, x1, y2, x2, area;
} sni_nms_box;

/* Whether a box takes part at all. */
static inline bool sni_nms_counts(const sni_nms *j, float score) {
    return score == score && !(j->has_score_threshold && !(score > j->score_threshold));
}

/* fminf and fmaxf without a call: a number beside NaN. */
static inline float sni_nms_less(float a, float b) {
    return a < b || b != b ? a : b;
}

static inline float sni_nms_more(float a, float b) {
    return a > b || b != b ? a : b;
}

static inline sni_nms_box sni_nms_get(const sni_nms *j, int64_t i) {
    const float *b = j->boxes + 4 * i;
    sni_nms_box r;
    if (j->centered) { /* x center, y center, width, height */
        r = (sni_nms_box){b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2, 0};
    } else { /* two opposite corners, y first */
        r = (sni_nms_box){sni_nms_less(b[0], b[2]), sni_nms_less(b[1], b[3]),
                          sni_nms_more(b[0], b[2]), sni_nms_more(b[1], b[3]), 0};
    }
    r.area = (r.y2 - r.y1) * (r.x2 - r.x1);
    return r;
}

/* A way to choose the boxes of one class. */
typedef struct sni_nms_way {
    /* Bytes of memory that one choice needs; SIZE_MAX if that is too much. */
    size_t (*bytes)(const sni_nms *j);
    /* Writes the boxes to `selected` (which holds `most`), the best first. */
    sn_status (*select)(sni_kernel *k, const sni_nms *j, void *buffer, int64_t *selected,
                        int64_t *n_selected);
} sni_nms_way;

/* Runs a node that way. */
sn_status sni_nms_run(sni_kernel *k, const sni_nms_way *way);

#endif
