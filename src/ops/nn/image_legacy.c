/* ImageScaler and Crop: experimental operators on images (N, C, H, W) that ONNX dropped but old
 * models have. */
#include "ops/core/elementwise.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct scaler_params {
    float scale;
    sni_floats bias; /* C */
} scaler_params;

typedef struct channel_params {
    float scale, bias;
} channel_params;

#define PARAMS channel_params
#define BODY "ops/nn/image_legacy.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY
#undef PARAMS

static sn_status scaler_infer(sni_infer *c) {
    const scaler_params *p = c->params;
    if (sni_infer_shaped(c, 0)) {
        if (sni_infer_rank(c, 0) < 2)
            return SNI_INFER_FAIL(c, "the image has rank %d, not 4", sni_infer_rank(c, 0));
        sni_dim channels = sni_infer_dim(c, 0, 1);
        if (p->bias.n && sni_dim_known(channels) && (uint64_t)channels != p->bias.n)
            return SNI_INFER_FAIL(c, "%zu values of bias for %" PRId64 " channels", p->bias.n,
                                  channels);
    }
    return sni_infer_same(c);
}

/* y = scale * x + bias of the channel */
static sn_status scaler_ref(sni_kernel *k) {
    static const sni_unary_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(scale)};
    const scaler_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t plane = sni_tensor_span(x, 2, x->rank), planes = x->dims[0] * x->dims[1];
    sn_dtype as = sni_compute_type(x->dtype);
    size_t width = sni_dtype_width(x->dtype);
    for (int64_t i = 0; i < planes; i++) {
        channel_params channel = {p->scale, p->bias.n ? p->bias.v[i % x->dims[1]] : 0};
        sni_tensor from = {.data = sni_element(x->data, i * plane, width)};
        sni_tensor to = {.data = sni_element(y->data, i * plane, width)};
        SN_TRY(sni_tensor_shape(&from, x->dtype, 1, &plane, k->err));
        SN_TRY(sni_tensor_shape(&to, y->dtype, 1, &plane, k->err));
        sni_elementwise e = {.n_in = 1,
                             .in = {&from},
                             .in_as = {as},
                             .out = &to,
                             .out_as = as,
                             .unary = fns[as],
                             .params = &channel};
        sni_elementwise_run(k->threads, &e);
    }
    return SN_OK;
}

const sni_op sni_op_ImageScaler = {
    .name = "ImageScaler",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"scale", SNI_ATTR_FLOAT, offsetof(scaler_params, scale), .number = 1},
                         {"bias", SNI_ATTR_FLOATS, offsetof(scaler_params, bias)}),
    .params_size = sizeof(scaler_params),
    .inplace = 1,
    .infer = scaler_infer,
    .ref = scaler_ref,
};

typedef struct crop_params {
    sni_ints border; /* left, top, right, bottom */
    sni_ints scale;  /* height, width of what is kept, counted from left and top; may be absent */
} crop_params;

/* The size of the cut along one axis. */
static sn_status crop_axis(sni_infer *c, sni_dim size, int64_t before, int64_t after, int64_t keep,
                           sni_dim *out) {
    if (!sni_dim_known(size)) {
        *out = keep >= 0 ? keep : sni_dim_sub(c->symbols, size, before + after);
        return SN_OK;
    }
    int64_t kept = keep >= 0 ? keep : size - before - after;
    if (kept < 0 || before > size || kept > size - before)
        return SNI_INFER_FAIL(
            c, "a border of %" PRId64 " and %" PRId64 " does not fit an image of size %" PRId64,
            before, after, size);
    *out = kept;
    return SN_OK;
}

static sn_status crop_infer(sni_infer *c) {
    const crop_params *p = c->params;
    const int64_t limit = INT32_MAX;
    if (p->border.n != 4 || (p->scale.n != 0 && p->scale.n != 2))
        return SNI_INFER_FAIL(c, "'border' has %zu numbers, 'scale' %zu", p->border.n, p->scale.n);
    for (int i = 0; i < 4; i++)
        if (p->border.v[i] < 0 || p->border.v[i] > limit)
            return SNI_INFER_FAIL(c, "border %d is %" PRId64, i, p->border.v[i]);
    for (size_t i = 0; i < p->scale.n; i++)
        if (p->scale.v[i] < 0 || p->scale.v[i] > limit)
            return SNI_INFER_FAIL(c, "scale %zu is %" PRId64, i, p->scale.v[i]);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    if (sni_infer_rank(c, 0) != 4)
        return SNI_INFER_FAIL(c, "the image has rank %d, not 4", sni_infer_rank(c, 0));
    sni_dim dims[4];
    memcpy(dims, c->in[0]->dims, sizeof dims);
    SN_TRY(crop_axis(c, dims[2], p->border.v[1], p->border.v[3], p->scale.n ? p->scale.v[0] : -1,
                     &dims[2]));
    SN_TRY(crop_axis(c, dims[3], p->border.v[0], p->border.v[2], p->scale.n ? p->scale.v[1] : -1,
                     &dims[3]));
    return sni_infer_set_shape(c, 0, 4, dims);
}

static sn_status crop_ref(sni_kernel *k) {
    const crop_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    if (y->count == 0) return SN_OK;
    int64_t from[SN_MAX_RANK], to[SN_MAX_RANK];
    sni_strides(4, x->dims, from);
    sni_strides(4, y->dims, to);
    size_t width = sni_dtype_width(x->dtype);
    const void *corner =
        sni_element(x->data, p->border.v[1] * from[2] + p->border.v[0] * from[3], width);
    sni_copy_box(k, &(sni_box){4, y->dims, y->data, to, corner, from, width});
    return SN_OK;
}

const sni_op sni_op_Crop = {
    .name = "Crop",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"input", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"border", SNI_ATTR_INTS, offsetof(crop_params, border)},
                         {"scale", SNI_ATTR_INTS, offsetof(crop_params, scale)}),
    .params_size = sizeof(crop_params),
    .infer = crop_infer,
    .ref = crop_ref,
};
