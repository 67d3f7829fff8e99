/* Resize: interpolation along any axes. This file reads what the node says; resize_run.c
 * interpolates. */
#include "ops/nn/resize.h"

#include "ops/core/tensor_util.h"

#include <math.h>

typedef struct resize_axes {
    int count; /* axes that scales, sizes and roi speak of */
    int axis[SN_MAX_RANK];
} resize_axes;

static sn_status list_axes(const sni_resize_params *p, int rank, resize_axes *out, sn_error *err) {
    if (!p->axes.given) {
        out->count = rank;
        for (int i = 0; i < rank; i++) out->axis[i] = i;
        return SN_OK;
    }
    bool seen[SN_MAX_RANK] = {false};
    out->count = 0;
    for (size_t i = 0; i < p->axes.n; i++) {
        int64_t axis = p->axes.v[i] < 0 ? p->axes.v[i] + rank : p->axes.v[i];
        if (axis < 0 || axis >= rank || seen[axis])
            return sni_fail(err, SN_INVALID_MODEL,
                            "axis %lld is given twice or outside a tensor of rank %d",
                            (long long)p->axes.v[i], rank);
        seen[axis] = true;
        out->axis[out->count++] = (int)axis;
    }
    return SN_OK;
}

sn_status sni_resize_check_scale(double scale, sn_error *err) {
    if (scale > 0 && isfinite(scale)) return SN_OK;
    return sni_fail(err, SN_BAD_DATA, "a scale of %g is not above 0", scale);
}

sni_dim sni_resize_scaled(sni_symbols *symbols, sni_dim in, float scale) {
    if (scale == 1.0f) return in;
    if (sni_dim_known(in)) {
        float size = floorf((float)in * scale);
        if (size < 9.0e18f) return (sni_dim)size;
        return sni_dim_fresh(symbols);
    }
    if (scale < 1.0e9f && scale == floorf(scale)) return sni_dim_mul(symbols, in, (sni_dim)scale);
    return sni_dim_fresh(symbols);
}

/* Sizes under a policy that keeps the aspect ratio: one factor for all axes, sizes rounded. */
static double common_scale(const sni_resize_params *p, const resize_axes *list, const int64_t *in,
                           const int64_t *sizes) {
    double scale = 0;
    for (int i = 0; i < list->count; i++) {
        double s = (double)sizes[i] / (double)in[list->axis[i]];
        if (i == 0 || (p->keep_aspect == 1 ? s < scale : s > scale)) scale = s;
    }
    return scale;
}

static sn_status sized_dims(sni_infer *c, const resize_axes *list, const sni_dim *sizes,
                            sni_dim *dims) {
    const sni_resize_params *p = c->params;
    bool known = true;
    int64_t in[SN_MAX_RANK];
    for (int i = 0; i < list->count; i++) {
        in[list->axis[i]] = dims[list->axis[i]];
        known = known && sni_dim_known(sizes[i]) && dims[list->axis[i]] > 0;
    }
    double scale = known && p->keep_aspect ? common_scale(p, list, in, sizes) : 0;
    for (int i = 0; i < list->count; i++) {
        sni_dim *d = &dims[list->axis[i]];
        if (!p->keep_aspect) {
            *d = sizes[i];
        } else if (known && scale * (double)*d < 9.0e18) {
            *d = (sni_dim)floor(scale * (double)*d + 0.5);
        } else {
            *d = sni_dim_fresh(c->symbols);
            if (*d == SNI_DIM_FAIL) return sni_fail_memory(c->err);
        }
    }
    return SN_OK;
}

static sn_status count_is(sni_infer *c, const char *what, int64_t count, const resize_axes *list) {
    if (count == list->count) return SN_OK;
    return SNI_INFER_FAIL(c, "%lld %s for %d axes", (long long)count, what, list->count);
}

/* True if input i is there and not a list known to be empty. */
static bool indirect(const sni_infer *c, int i) {
    if (!sni_infer_given(c, i)) return false;
    return !sni_infer_shaped(c, i) || sni_infer_rank(c, i) != 1 || sni_infer_dim(c, i, 0) != 0;
}

static sn_status resize_dims(sni_infer *c, const resize_axes *list, sni_dim *dims, bool *known) {
    *known = false;
    if (indirect(c, 3)) {
        const sni_dim *sizes;
        int32_t count;
        SN_TRY(sni_infer_dims(c, 3, &sizes, &count));
        if (sizes && count > 0) {
            SN_TRY(count_is(c, "sizes", count, list));
            *known = true;
            return sized_dims(c, list, sizes, dims);
        }
        if (!sizes) return SN_OK;
    }
    if (!indirect(c, 2)) return SNI_INFER_FAIL(c, "neither scales nor sizes are given");
    const sni_tensor *scales;
    SN_TRY(sni_infer_known(c, 2, &scales));
    if (!scales) return SN_OK;
    SN_TRY(count_is(c, "scales", scales->count, list));
    for (int i = 0; i < list->count; i++) {
        float scale = ((const float *)scales->data)[i];
        SN_TRY(sni_resize_check_scale((double)scale, c->err));
        sni_dim *d = &dims[list->axis[i]];
        if (sni_dim_known(*d) && (double)*d * (double)scale >= 9.0e18)
            return SNI_INFER_FAIL(c, "scales[%d] is %g for a size of %lld", i, (double)scale,
                                  (long long)*d);
        *d = sni_resize_scaled(c->symbols, *d, scale);
        if (*d == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    }
    *known = true;
    return SN_OK;
}

static sn_status resize_infer(sni_infer *c) {
    const sni_resize_params *p = c->params;
    const sni_types numbers = SNI_T_NUMBERS;
    if (c->in[0] && c->in[0]->dtype != SN_UNDEFINED && p->mode != SNI_RESIZE_NEAREST &&
        !(SNI_T(c->in[0]->dtype) & numbers))
        return SNI_INFER_FAIL(c, "%s elements can only be resized by mode nearest",
                              sn_dtype_name(c->in[0]->dtype));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = sni_infer_dim(c, 0, i);
    resize_axes list;
    bool known;
    SN_TRY(list_axes(p, rank, &list, c->err));
    SN_TRY(resize_dims(c, &list, dims, &known));
    if (!known) {
        for (int i = 0; i < list.count; i++) {
            dims[list.axis[i]] = sni_dim_fresh(c->symbols);
            if (dims[list.axis[i]] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
        }
    }
    return sni_infer_set_shape(c, 0, rank, dims);
}

/* ---- Kernel ---- */

static sn_status read_roi(sni_kernel *k, const resize_axes *list, sni_resize_axis *axes) {
    const sni_tensor *roi = sni_in(k, 1);
    if (!roi || roi->count != 2 * list->count)
        return SNI_KERNEL_FAIL(k, "roi has %lld elements, not %d",
                               roi ? (long long)roi->count : 0LL, 2 * list->count);
    for (int i = 0; i < list->count; i++) {
        axes[list->axis[i]].start = sni_number_at(roi, i);
        axes[list->axis[i]].end = sni_number_at(roi, i + list->count);
    }
    return SN_OK;
}

static sn_status read_scales(sni_kernel *k, const resize_axes *list, sni_resize_axis *axes) {
    const sni_resize_params *p = k->params;
    const sni_tensor *scales = sni_in(k, 2), *sizes = sni_in(k, 3), *x = sni_in(k, 0);
    bool sized = sizes && sizes->count > 0;
    const sni_tensor *list_of = sized ? sizes : scales;
    if (!list_of || list_of->count != list->count)
        return SNI_KERNEL_FAIL(k, "%lld scales or sizes for %d axes",
                               list_of ? (long long)list_of->count : 0LL, list->count);
    if (sized) {
        if (!p->keep_aspect) return SN_OK; /* out / in, as set already */
        int64_t wanted[SN_MAX_RANK];
        for (int i = 0; i < list->count; i++) wanted[i] = sni_index_at(sizes, i);
        double scale = common_scale(p, list, x->dims, wanted);
        for (int i = 0; i < list->count; i++) axes[list->axis[i]].scale = scale;
        return SN_OK;
    }
    for (int i = 0; i < list->count; i++) {
        double scale = (double)((const float *)scales->data)[i];
        SN_TRY(sni_resize_check_scale(scale, k->err));
        axes[list->axis[i]].scale = scale;
    }
    return SN_OK;
}

static sn_status resize_ref(sni_kernel *k) {
    const sni_resize_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    const sni_tensor *y = sni_out(k, 0);
    if (y->count == 0) return SN_OK;
    if (x->count == 0) return SNI_KERNEL_FAIL(k, "an empty tensor cannot be resized to a full one");
    resize_axes list;
    sni_resize_axis axes[SN_MAX_RANK];
    SN_TRY(list_axes(p, x->rank, &list, k->err));
    for (int i = 0; i < x->rank; i++)
        axes[i] = (sni_resize_axis){x->dims[i], y->dims[i], (double)y->dims[i] / (double)x->dims[i],
                                    0, 1};
    SN_TRY(read_scales(k, &list, axes));
    if (p->coord == SNI_RESIZE_CROP) SN_TRY(read_roi(k, &list, axes));
    return sni_resize_run(k, p, axes);
}

/* Brings (X, scales) to (X, no roi, scales) with the coordinates of opset 10. */
static sn_status from_scales(sni_upgrade *u, const char *rounding) {
    sni_node *n = u->node;
    if (n->n_in < 2) return sni_fail(u->err, SN_INVALID_MODEL, "scales are missing");
    int32_t scales = n->in[1];
    SN_TRY(sni_node_resize_inputs(u->graph, n, 3, u->err));
    SN_TRY(sni_node_set_input(u->graph, n, 2, scales, u->err));
    SN_TRY(sni_node_set_input(u->graph, n, 1, SNI_NO_ID, u->err));
    sni_attr coord = sni_attr_of_string("coordinate_transformation_mode", "asymmetric");
    sni_attr nearest = sni_attr_of_string("nearest_mode", rounding);
    SN_TRY(sni_node_set_attr(u->graph, n, &coord, u->err));
    return sni_node_set_attr(u->graph, n, &nearest, u->err);
}

/* Opset 10 rounds down on axes that grow and up on axes that shrink. Where constant scales all go
 * one way, that is a rounding that later opsets have, too. */
static sn_status simple_rounding(sni_upgrade *u, const char **rounding) {
    const sni_value *v = u->node->n_in > 1 ? sni_graph_value(u->graph, u->node->in[1]) : NULL;
    *rounding = "simple";
    if (!v || !v->constant || v->constant->tensor.dtype != SN_FLOAT32) return SN_OK;
    const sni_tensor *scales = NULL;
    SN_TRY(sni_const_load(v->constant, &scales, u->err));
    bool grows = false, shrinks = false;
    for (int64_t i = 0; i < scales->count; i++) {
        grows = grows || ((const float *)scales->data)[i] > 1;
        shrinks = shrinks || ((const float *)scales->data)[i] < 1;
    }
    if (!grows || !shrinks) *rounding = shrinks ? "ceil" : "floor";
    return SN_OK;
}

/* Opset 10 had (X, scales) and no choice of coordinates. */
static sn_status resize_upgrade(sni_upgrade *u) {
    if (u->from >= 11) return SN_OK;
    const char *rounding = NULL;
    SN_TRY(simple_rounding(u, &rounding));
    return from_scales(u, rounding);
}

const sni_op sni_op_Resize = {
    .name = "Resize",
    .versions = SNI_VERSIONS(10, 11, 13, 18, 19),
    .inputs = SNI_FORMALS({"X", "T1"}, {"roi", "T2", SNI_OPTIONAL},
                          {"scales", "float", SNI_OPTIONAL}, {"sizes", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T1"}),
    .types =
        SNI_TYPE_VARS({"T1", SNI_T_NUMBERS | SNI_T_COMPLEX | SNI_T(SN_BOOL) | SNI_T(SN_STRING)},
                      {"T2", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"mode", SNI_ATTR_STRING, offsetof(sni_resize_params, mode), .text = "nearest",
         .choices = "nearest|linear|cubic"},
        {"coordinate_transformation_mode", SNI_ATTR_STRING, offsetof(sni_resize_params, coord),
         .text = "half_pixel",
         .choices = "half_pixel|half_pixel_symmetric|pytorch_half_pixel|align_corners|asymmetric|"
                    "tf_crop_and_resize|tf_half_pixel_for_nn"},
        {"nearest_mode", SNI_ATTR_STRING, offsetof(sni_resize_params, round),
         .text = "round_prefer_floor",
         .choices = "round_prefer_floor|round_prefer_ceil|floor|ceil|simple"},
        {"keep_aspect_ratio_policy", SNI_ATTR_STRING, offsetof(sni_resize_params, keep_aspect),
         .text = "stretch", .choices = "stretch|not_larger|not_smaller"},
        {"antialias", SNI_ATTR_INT, offsetof(sni_resize_params, antialias)},
        {"exclude_outside", SNI_ATTR_INT, offsetof(sni_resize_params, exclude_outside)},
        {"cubic_coeff_a", SNI_ATTR_FLOAT, offsetof(sni_resize_params, cubic_coeff_a),
         .number = -0.75},
        {"extrapolation_value", SNI_ATTR_FLOAT, offsetof(sni_resize_params, extrapolation_value)},
        {"axes", SNI_ATTR_INTS, offsetof(sni_resize_params, axes)}),
    .params_size = sizeof(sni_resize_params),
    .upgrade = resize_upgrade,
    .infer = resize_infer,
    .ref = resize_ref,
};

/* ---- Upsample: Resize by scales, before it was called so ---- */

/* Opset 1 scaled the last two of four axes by attributes. */
static sn_status upsample_scales(sni_upgrade *u) {
    const sni_attr *height = sni_node_attr(u->node, "height_scale");
    const sni_attr *width = sni_node_attr(u->node, "width_scale");
    if (!height || !width || height->kind != SNI_ATTR_FLOAT || width->kind != SNI_ATTR_FLOAT)
        return sni_fail(u->err, SN_INVALID_MODEL, "height_scale or width_scale is missing");
    float scales[4] = {1, 1, height->u.f, width->u.f};
    int32_t value;
    SN_TRY(sni_upgrade_floats(u, scales, 4, &value));
    SN_TRY(sni_node_resize_inputs(u->graph, u->node, 2, u->err));
    SN_TRY(sni_node_set_input(u->graph, u->node, 1, value, u->err));
    sni_node_remove_attr(u->node, "height_scale");
    sni_node_remove_attr(u->node, "width_scale");
    return SN_OK;
}

static sn_status upsample_upgrade(sni_upgrade *u) {
    if (u->from < 7) SN_TRY(upsample_scales(u));
    const sni_attr *mode = sni_node_attr(u->node, "mode");
    if (mode && mode->kind == SNI_ATTR_STRING && sni_str_is(mode->u.s, "bilinear")) {
        sni_attr linear = sni_attr_of_string("mode", "linear");
        SN_TRY(sni_node_set_attr(u->graph, u->node, &linear, u->err));
    }
    SN_TRY(from_scales(u, "floor"));
    u->node->type = SNI_STR("Resize");
    return SN_OK;
}

/* Never seen after import: every version that exists becomes Resize. */
const sni_op sni_op_Upsample = {
    .name = "Upsample",
    .versions = SNI_VERSIONS(1, 7, 9, 10),
    .inputs = SNI_FORMALS({"X", "T"}, {"scales", "float"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .moves = SNI_ATTR_MOVES({"scales", 9, 1, SN_FLOAT32}),
    .upgrade = upsample_upgrade,
};
