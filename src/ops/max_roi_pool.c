/* MaxRoiPool: regions of images, each cut into bins whose largest elements are taken. */
#include "ops/compute.h"

#include <limits.h>
#include <math.h>

typedef struct roi_pool_params {
    sni_ints pooled_shape;
    float spatial_scale;
} roi_pool_params;

typedef struct roi_pool {
    const void *x, *rois; /* rois: (regions, 5): image, x0, y0, x1, y1 */
    void *y;
    int64_t images, channels, h, w, out_h, out_w;
    double scale;
} roi_pool;

/* The element nearest to v, kept far from overflow. */
static int64_t near_element(double v) {
    return v != v ? 0 : v < INT_MIN ? INT_MIN : v > INT_MAX ? INT_MAX : (int64_t)round(v);
}

#define BODY "ops/max_roi_pool.inc.c"
#include "ops/each_float.inc.h"
#undef BODY

static sn_status pool_infer(sni_infer *c) {
    const sni_ints s = ((const roi_pool_params *)c->params)->pooled_shape;
    if (s.n != 2 || s.v[0] < 1 || s.v[1] < 1 || s.v[0] > INT_MAX || s.v[1] > INT_MAX)
        return SNI_INFER_FAIL(c, "pooled_shape is not two sizes above 0");
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    if (sni_infer_rank(c, 0) != 4 || sni_infer_rank(c, 1) != 2 ||
        sni_dim_differ(sni_infer_dim(c, 1, 1), 5))
        return SNI_INFER_FAIL(c, "X has rank %d, not 4, or rois are not (regions, 5)",
                              sni_infer_rank(c, 0));
    return sni_infer_set_shape(
        c, 0, 4, (sni_dim[]){sni_infer_dim(c, 1, 0), sni_infer_dim(c, 0, 1), s.v[0], s.v[1]});
}

static sn_status pool_ref(sni_kernel *k) {
    const roi_pool_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *rois = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    bool wide = dtype == SN_FLOAT64;
    roi_pool r = {.images = x->dims[0],
                  .channels = x->dims[1],
                  .h = x->dims[2],
                  .w = x->dims[3],
                  .out_h = p->pooled_shape.v[0],
                  .out_w = p->pooled_shape.v[1],
                  .scale = (double)p->spatial_scale};
    SN_TRY(sni_in_as(k, x, dtype, &r.x));
    SN_TRY(sni_in_as(k, rois, dtype, &r.rois));
    SN_TRY(sni_out_as(k, y, dtype, &r.y));
    for (int64_t i = 0; i < rois->dims[0]; i++) {
        SN_TRY(sni_poll(k));
        if (!(wide ? image_ok_f64(&r, i) : image_ok_f32(&r, i)))
            return SNI_KERNEL_FAIL(k, "region %lld is of an image outside 0 to %lld", (long long)i,
                                   (long long)r.images - 1);
        if (wide)
            pool_region_f64(&r, i);
        else
            pool_region_f32(&r, i);
    }
    sni_out_done(k, y, dtype, r.y);
    return SN_OK;
}

const sni_op sni_op_MaxRoiPool = {
    .name = "MaxRoiPool",
    .versions = SNI_VERSIONS(1, 22),
    .inputs = SNI_FORMALS({"X", "T"}, {"rois", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"pooled_shape", SNI_ATTR_INTS, offsetof(roi_pool_params, pooled_shape), .required = true},
        {"spatial_scale", SNI_ATTR_FLOAT, offsetof(roi_pool_params, spatial_scale), .number = 1}),
    .params_size = sizeof(roi_pool_params),
    .infer = pool_infer,
    .ref = pool_ref,
};
