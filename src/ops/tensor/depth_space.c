/* DepthToSpace and SpaceToDepth: blocks of pixels to channels and back, on (N, C, H, W). */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct depth_space_params {
    int64_t block;
    int32_t column_first; /* DepthToSpace: mode CRD */
} depth_space_params;

/* Checks for rank 4 and a block of at least 1; *shaped tells whether the input's shape is known. */
static sn_status check_block(sni_infer *c, bool *shaped) {
    const depth_space_params *p = c->params;
    if (p->block < 1 || p->block > INT32_MAX)
        return SNI_INFER_FAIL(c, "blocksize is %" PRId64, p->block);
    *shaped = sni_infer_shaped(c, 0);
    if (*shaped && sni_infer_rank(c, 0) != 4)
        return SNI_INFER_FAIL(c, "the input has rank %d, not 4", sni_infer_rank(c, 0));
    return SN_OK;
}

static sn_status quotient(sni_infer *c, int axis, int64_t by, sni_dim *out) {
    sni_dim d = sni_infer_dim(c, 0, axis);
    if (sni_dim_known(d) && d % by != 0)
        return SNI_INFER_FAIL(c, "axis %d of length %" PRId64 " is no multiple of %" PRId64, axis,
                              d, by);
    *out = sni_dim_floordiv(c->symbols, d, by);
    return SN_OK;
}

/* Copies between the two forms: `wide` is (N, C, H*b, W*b), `deep` (N, C*b*b, H, W). */
static void move_blocks(sni_kernel *k, const sni_tensor *wide, const sni_tensor *deep, bool crd,
                        bool to_wide) {
    const depth_space_params *p = k->params;
    int64_t b = p->block, n = deep->dims[0], ch = wide->dims[1], h = deep->dims[2],
            w = deep->dims[3];
    /* Axes: n, channel, block row, block column, h, w. */
    int64_t dims[6] = {n, ch, b, b, h, w};
    int64_t plane = h * w, deep_strides[6], wide_strides[6];
    deep_strides[0] = ch * b * b * plane;
    deep_strides[1] = crd ? b * b * plane : plane;
    deep_strides[2] = crd ? b * plane : b * ch * plane;
    deep_strides[3] = crd ? plane : ch * plane;
    deep_strides[4] = w;
    deep_strides[5] = 1;
    wide_strides[0] = ch * b * b * plane;
    wide_strides[1] = b * b * plane;
    wide_strides[2] = w * b;
    wide_strides[3] = 1;
    wide_strides[4] = b * b * w;
    wide_strides[5] = b;
    if (wide->count == 0) return;
    size_t width = sni_dtype_width(wide->dtype);
    if (to_wide)
        sni_copy_box(
            k, &(sni_box){6, dims, wide->data, wide_strides, deep->data, deep_strides, width});
    else
        sni_copy_box(
            k, &(sni_box){6, dims, deep->data, deep_strides, wide->data, wide_strides, width});
}

static sn_status depth_to_space_infer(sni_infer *c) {
    const depth_space_params *p = c->params;
    bool shaped = false;
    SN_TRY(check_block(c, &shaped));
    if (!shaped) return SN_OK;
    sni_dim channels = 0;
    SN_TRY(quotient(c, 1, p->block * p->block, &channels));
    return sni_infer_set_shape(
        c, 0, 4,
        (const sni_dim[]){sni_infer_dim(c, 0, 0), channels,
                          sni_dim_mul(c->symbols, sni_infer_dim(c, 0, 2), p->block),
                          sni_dim_mul(c->symbols, sni_infer_dim(c, 0, 3), p->block)});
}

static sn_status depth_to_space_ref(sni_kernel *k) {
    const depth_space_params *p = k->params;
    move_blocks(k, sni_out(k, 0), sni_in(k, 0), p->column_first, true);
    return SN_OK;
}

const sni_op sni_op_DepthToSpace = {
    .name = "DepthToSpace",
    .versions = SNI_VERSIONS(1, 11, 13),
    .inputs = SNI_FORMALS({"input", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS(
        {"blocksize", SNI_ATTR_INT, offsetof(depth_space_params, block), .required = true},
        {"mode", SNI_ATTR_STRING, offsetof(depth_space_params, column_first), .text = "DCR",
         .choices = "DCR|CRD"}),
    .params_size = sizeof(depth_space_params),
    .infer = depth_to_space_infer,
    .ref = depth_to_space_ref,
};

static sn_status space_to_depth_infer(sni_infer *c) {
    const depth_space_params *p = c->params;
    bool shaped = false;
    SN_TRY(check_block(c, &shaped));
    if (!shaped) return SN_OK;
    sni_dim h = 0, w = 0;
    SN_TRY(quotient(c, 2, p->block, &h));
    SN_TRY(quotient(c, 3, p->block, &w));
    return sni_infer_set_shape(
        c, 0, 4,
        (const sni_dim[]){sni_infer_dim(c, 0, 0),
                          sni_dim_mul(c->symbols, sni_infer_dim(c, 0, 1), p->block * p->block), h,
                          w});
}

static sn_status space_to_depth_ref(sni_kernel *k) {
    move_blocks(k, sni_in(k, 0), sni_out(k, 0), false, false);
    return SN_OK;
}

const sni_op sni_op_SpaceToDepth = {
    .name = "SpaceToDepth",
    .versions = SNI_VERSIONS(1, 13),
    .inputs = SNI_FORMALS({"input", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS(
        {"blocksize", SNI_ATTR_INT, offsetof(depth_space_params, block), .required = true}),
    .params_size = sizeof(depth_space_params),
    .infer = space_to_depth_infer,
    .ref = space_to_depth_ref,
};
