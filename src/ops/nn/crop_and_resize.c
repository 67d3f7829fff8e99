/* CropAndResize of com.microsoft: boxes of pictures, each resized to one size. */
#include "ops/core/compute.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>
#include <math.h>

enum { PICTURES, BOXES, BATCH, SIZE };
enum { BILINEAR, NEAREST };

typedef struct crop_params {
    int32_t mode;
    float outside;
} crop_params;

static sn_status crop_infer(sni_infer *c) {
    static const int ranks[] = {4, 2, 1, 1};
    sni_list size;
    for (int i = 0; i <= SIZE; i++)
        if (sni_infer_shaped(c, i) && sni_infer_rank(c, i) != ranks[i])
            return SNI_INFER_FAIL(c, "input %d has rank %d, not %d", i, sni_infer_rank(c, i),
                                  ranks[i]);
    if (sni_infer_shaped(c, BOXES) && sni_dim_differ(sni_infer_dim(c, BOXES, 1), 4))
        return SNI_INFER_FAIL(c, "a box has four numbers");
    if (sni_infer_shaped(c, BOXES) && sni_infer_shaped(c, BATCH) &&
        sni_dim_differ(sni_infer_dim(c, BOXES, 0), sni_infer_dim(c, BATCH, 0)))
        return SNI_INFER_FAIL(c, "boxes and their pictures are of different numbers");
    SN_TRY(sni_infer_list(c, SIZE, &size));
    if (size.known && size.count != 2)
        return SNI_INFER_FAIL(c, "crop_size has %" PRId64 " elements, not 2", size.count);
    if (!sni_infer_shaped(c, PICTURES) || !sni_infer_shaped(c, BATCH)) return SN_OK;
    sni_dim dims[4] = {sni_infer_dim(c, BATCH, 0), sni_infer_dim(c, PICTURES, 1)};
    for (int i = 0; i < 2; i++) {
        int64_t v;
        dims[2 + i] = size.known ? sni_list_dim(c, &size, i) : sni_dim_fresh(c->symbols);
        if (size.known && sni_list_int(&size, i, &v) && v < 1)
            return SNI_INFER_FAIL(c, "crop_size has %" PRId64, v);
    }
    return sni_infer_set_shape(c, 0, 4, dims);
}

/* Where point i of n lies between `from` and `to`, which are shares of a side of `length`. */
static float point(float from, float to, int64_t length, int64_t i, int64_t n) {
    float side = (float)(length - 1);
    if (n == 1) return 0.5f * (from + to) * side;
    if (i == 0) return from * side;
    if (i == n - 1) return to * side;
    return from * side + (float)i * ((to - from) * side / (float)(n - 1));
}

/* A plane (height, width) at a point inside of it. */
static float sample(const float *plane, int64_t width, float y, float x, int32_t mode) {
    if (mode == NEAREST) return plane[(int64_t)roundf(y) * width + (int64_t)roundf(x)];
    int64_t top = (int64_t)floorf(y), low = (int64_t)ceilf(y);
    int64_t left = (int64_t)floorf(x), right = (int64_t)ceilf(x);
    float dy = y - (float)top, dx = x - (float)left;
    float a = plane[top * width + left], b = plane[top * width + right];
    float c = plane[low * width + left], d = plane[low * width + right];
    float above = a + (b - a) * dx, below = c + (d - c) * dx;
    return above + (below - above) * dy;
}

/* Sizes of the pictures, (batch, channels, height, width), and of what is made of a box. */
typedef struct crop {
    int64_t channels, height, width;
    int64_t out_height, out_width;
} crop;

/* One box of a picture for all channels. */
static void crop_box(const crop *j, const crop_params *p, const float *picture, const float *box,
                     float *to) {
    for (int64_t i = 0; i < j->out_height * j->out_width; i++) {
        float y = point(box[0], box[2], j->height, i / j->out_width, j->out_height);
        float x = point(box[1], box[3], j->width, i % j->out_width, j->out_width);
        bool inside = y >= 0 && y <= (float)(j->height - 1) && x >= 0 && x <= (float)(j->width - 1);
        for (int64_t c = 0; c < j->channels; c++)
            to[c * j->out_height * j->out_width + i] =
                inside ? sample(picture + c * j->height * j->width, j->width, y, x, p->mode)
                       : p->outside;
    }
}

static sn_status crop_ref(sni_kernel *k) {
    const crop_params *p = k->params;
    const sni_tensor *x = sni_in(k, PICTURES), *batch = sni_in(k, BATCH);
    sni_tensor *y = sni_out(k, 0);
    const void *pictures, *boxes;
    void *out = NULL;
    crop j = {.channels = x->dims[1],
              .height = x->dims[2],
              .width = x->dims[3],
              .out_height = y->dims[2],
              .out_width = y->dims[3]};
    SN_TRY(sni_in_as(k, x, SN_FLOAT32, &pictures));
    SN_TRY(sni_in_as(k, sni_in(k, BOXES), SN_FLOAT32, &boxes));
    SN_TRY(sni_out_as(k, y, SN_FLOAT32, &out));
    for (int64_t n = 0; n < y->dims[0]; n++) {
        int32_t picture = ((const int32_t *)batch->data)[n];
        if (picture < 0 || picture >= x->dims[0])
            return SNI_KERNEL_FAIL(k, "box %" PRId64 " is of picture %d of %" PRId64, n,
                                   (int)picture, x->dims[0]);
        crop_box(&j, p, (const float *)pictures + picture * j.channels * j.height * j.width,
                 (const float *)boxes + n * 4,
                 (float *)out + n * j.channels * j.out_height * j.out_width);
        SN_TRY(sni_poll(k));
    }
    sni_out_done(k, y, SN_FLOAT32, out);
    return SN_OK;
}

#define FIELD(f) offsetof(crop_params, f)

const sni_op sni_op_ms_CropAndResize = {
    .name = "CropAndResize",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T1"}, {"rois", "T1"}, {"batch_indices", "int32"},
                          {"crop_size", "int32"}),
    .outputs = SNI_FORMALS({"Y", "T1"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T(SN_FLOAT16) | SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64)}),
    .params = SNI_PARAMS(
        {"mode", SNI_ATTR_STRING, FIELD(mode), .text = "bilinear", .choices = "bilinear|nearest"},
        {"extrapolation_value", SNI_ATTR_FLOAT, FIELD(outside)}),
    .params_size = sizeof(crop_params),
    .infer = crop_infer,
    .ref = crop_ref,
};
