/* RoiAlign: regions of images, resampled to one size by bilinear interpolation. */
#include "ops/nn/roi_align.h"

#include "ops/core/compute.h"
#include "ops/core/long_work.h"

#include <limits.h>
#include <math.h>

typedef struct align {
    const void *x, *rois;
    void *y;
    const int64_t *batch; /* of each region */
    int64_t channels, h, w, out_h, out_w, ratio;
    double scale;
    bool half, max;
    const sni_kernel *kernel;
} align;

#define BODY "ops/nn/roi_align.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static sn_status roi_infer(sni_infer *c) {
    const sni_roi_params *p = c->params;
    if (p->output_height < 1 || p->output_width < 1 || p->output_height > INT_MAX ||
        p->output_width > INT_MAX || p->sampling_ratio < 0 || p->sampling_ratio > SNI_ROI_SAMPLES)
        return SNI_INFER_FAIL(c, "output of %lld x %lld with sampling_ratio %lld",
                              (long long)p->output_height, (long long)p->output_width,
                              (long long)p->sampling_ratio);
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    if (sni_infer_rank(c, 0) != 4 || sni_infer_rank(c, 1) != 2 ||
        sni_dim_differ(sni_infer_dim(c, 1, 1), 4))
        return SNI_INFER_FAIL(c, "X has rank %d, not 4, or rois are not (regions, 4)",
                              sni_infer_rank(c, 0));
    sni_dim regions = sni_infer_dim(c, 1, 0);
    if (sni_infer_shaped(c, 2) &&
        (sni_infer_rank(c, 2) != 1 || sni_dim_differ(sni_infer_dim(c, 2, 0), regions)))
        return SNI_INFER_FAIL(c, "batch_indices have not one element for each region");
    return sni_infer_set_shape(
        c, 0, 4, (sni_dim[]){regions, sni_infer_dim(c, 0, 1), p->output_height, p->output_width});
}

static sn_status roi_ref(sni_kernel *k) {
    const sni_roi_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *rois = sni_in(k, 1), *batch = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    align a = {.batch = batch->data,
               .channels = x->dims[1],
               .h = x->dims[2],
               .w = x->dims[3],
               .out_h = p->output_height,
               .out_w = p->output_width,
               .ratio = p->sampling_ratio,
               .scale = (double)p->spatial_scale,
               .half = p->half_pixel == 0,
               .max = p->mode == 1,
               .kernel = k};
    SN_TRY(sni_in_as(k, x, dtype, &a.x));
    SN_TRY(sni_in_as(k, rois, dtype, &a.rois));
    SN_TRY(sni_out_as(k, y, dtype, &a.y));
    if (y->count && (a.h < 1 || a.w < 1)) return SNI_KERNEL_FAIL(k, "the images are empty");
    for (int64_t r = 0; r < rois->dims[0]; r++) {
        SN_TRY(sni_poll(k));
        if (a.batch[r] < 0 || a.batch[r] >= x->dims[0])
            return SNI_KERNEL_FAIL(k, "region %lld is of image %lld, outside 0 to %lld",
                                   (long long)r, (long long)a.batch[r], (long long)x->dims[0] - 1);
        if (!(dtype == SN_FLOAT64 ? region_f64(&a, r) : region_f32(&a, r)))
            return SNI_KERNEL_FAIL(k, "region %lld is too large, or not finite", (long long)r);
    }
    SN_TRY(sni_poll(k)); /* the last region may have been left */
    sni_out_done(k, y, dtype, a.y);
    return SN_OK;
}

/* Opset 10 had no half-pixel shift of the input. */
static sn_status roi_upgrade(sni_upgrade *u) {
    if (u->from >= 16) return SN_OK;
    sni_attr mode = sni_attr_of_string("coordinate_transformation_mode", "output_half_pixel");
    return sni_node_set_attr(u->graph, u->node, &mode, u->err);
}

#define FIELD(f) offsetof(sni_roi_params, f)

const sni_op sni_op_RoiAlign = {
    .name = "RoiAlign",
    .versions = SNI_VERSIONS(10, 16, 22),
    .inputs = SNI_FORMALS({"X", "T1"}, {"rois", "T1"}, {"batch_indices", "int64"}),
    .outputs = SNI_FORMALS({"Y", "T1"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}),
    .params =
        SNI_PARAMS({"coordinate_transformation_mode", SNI_ATTR_STRING, FIELD(half_pixel),
                    .text = "half_pixel", .choices = "half_pixel|output_half_pixel"},
                   {"mode", SNI_ATTR_STRING, FIELD(mode), .text = "avg", .choices = "avg|max"},
                   {"output_height", SNI_ATTR_INT, FIELD(output_height), .number = 1},
                   {"output_width", SNI_ATTR_INT, FIELD(output_width), .number = 1},
                   {"sampling_ratio", SNI_ATTR_INT, FIELD(sampling_ratio)},
                   {"spatial_scale", SNI_ATTR_FLOAT, FIELD(spatial_scale), .number = 1}),
    .params_size = sizeof(sni_roi_params),
    .upgrade = roi_upgrade,
    .infer = roi_infer,
    .ref = roi_ref,
};
