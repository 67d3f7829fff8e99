/* MaxRoiPool: regions of images, each cut into bins whose largest elements are taken. */
#include "ops/core/compute.h"
#include "ops/core/long_work.h"
#include "ops/core/tensor_util.h"

#include <limits.h>
#include <math.h>

typedef struct roi_pool_params {
    sni_ints pooled_shape;
    float spatial_scale;
} roi_pool_params;

enum {
    LINE_MOST = 512,  /* columns of a region that are joined in one row */
    LINE_STEP = 8,    /* of them at once */
    POOL_WORK = 16384 /* operations worth a thread */
};

/* Elements [from, to) of an axis. */
typedef struct roi_span {
    int64_t from, to;
} roi_span;

typedef struct roi_pool {
    const void *x, *rois; /* rois: (regions, 5): image, x0, y0, x1, y1 */
    void *y;
    int64_t images, channels, h, w, out_h, out_w;
    double scale;
    roi_span *spans; /* (regions, out_h + out_w): rows of bins, columns of bins */
} roi_pool;

/* The element nearest to v, kept far from overflow. */
static int64_t near_element(double v) {
    return v != v ? 0 : v < INT_MIN ? INT_MIN : v > INT_MAX ? INT_MAX : (int64_t)round(v);
}

/* The n bins between two coordinates, cut to [0, most]. */
static void place_bins(double first, double last, int64_t n, int64_t most, roi_span *spans) {
    int64_t start = near_element(first), length = near_element(last) - start + 1;
    double size = (double)(length > 1 ? length : 1) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        int64_t from = start + (int64_t)floor((double)i * size);
        int64_t to = start + (int64_t)ceil((double)(i + 1) * size);
        spans[i].from = from < 0 ? 0 : from > most ? most : from;
        spans[i].to = to < 0 ? 0 : to > most ? most : to;
    }
}

#define BODY "ops/nn/max_roi_pool.inc.c"
#include "ops/core/each_float.inc.h"
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
    void *buffer = NULL;
    SN_TRY(sni_scratch_matrix(k, rois->dims[0], r.out_h + r.out_w, sizeof *r.spans, &buffer));
    r.spans = buffer;
    for (int64_t i = 0; i < rois->dims[0]; i++)
        if (!(wide ? place_region_f64(&r, i) : place_region_f32(&r, i)))
            return SNI_KERNEL_FAIL(k, "region %lld is of an image outside 0 to %lld", (long long)i,
                                   (long long)r.images - 1);
    if (y->count == 0) return SN_OK;
    double bins = (double)r.out_h * (double)r.out_w, work = bins + (double)r.h * (double)r.w;
    int64_t grain = bins < POOL_WORK ? POOL_WORK / (8 * r.out_h * r.out_w) + 1 : 1;
    SN_TRY(sni_long_for(k, rois->dims[0] * r.channels, grain, work,
                        wide ? pool_items_f64 : pool_items_f32, &r));
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
