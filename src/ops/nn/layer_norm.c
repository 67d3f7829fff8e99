/* LayerNormalization and RMSNormalization (SimplifiedLayerNormalization, as exporters wrote it
 * before ONNX had it): the axes from `axis` on brought to mean 0 (the former only) and mean square
 * 1, then scaled and shifted. */
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/core/kernel_hooks.h"
#include "ops/core/tensor_util.h"

#include <math.h>

typedef struct layer_norm_params {
    int64_t axis, stash_type;
    float epsilon;
} layer_norm_params;

#define BODY "ops/nn/layer_norm.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

void sni_normalize(const sni_kernel *k, sn_dtype dtype, int64_t rows, const sni_row_norm *norm) {
    const sni_kernel_hooks *hooks = sni_kernel_hooks_for(k, dtype);
    if (hooks)
        hooks->normalize(k->threads, rows, norm);
    else
        sni_parallel_for(k->threads, rows, 8192 / (norm->n + 1) + 1,
                         dtype == SN_FLOAT64 ? normalize_rows_f64 : normalize_rows_f32,
                         (void *)(uintptr_t)norm);
}

/* Scale and shift must broadcast to X without changing its shape. */
static sn_status check_broadcast(sni_infer *c, int input) {
    if (!sni_infer_shaped(c, input)) return SN_OK;
    int rank = sni_infer_rank(c, 0), own = sni_infer_rank(c, input);
    if (own > rank) return SNI_INFER_FAIL(c, "input %d has rank %d, X %d", input, own, rank);
    for (int i = 0; i < own; i++) {
        sni_dim d = sni_infer_dim(c, input, i), x = sni_infer_dim(c, 0, rank - own + i);
        if (sni_dim_known(d) && sni_dim_known(x) && d != 1 && d != x)
            return SNI_INFER_FAIL(c, "input %d has size %lld where X has %lld", input, (long long)d,
                                  (long long)x);
    }
    return SN_OK;
}

static sn_status layer_norm_infer(sni_infer *c) {
    const layer_norm_params *p = c->params;
    if (p->stash_type < 1 || p->stash_type >= SNI_DTYPE_COUNT ||
        !(SNI_T(p->stash_type) & SNI_T_FLOATS))
        return SNI_INFER_FAIL(c, "stash_type %lld is no floating-point type",
                              (long long)p->stash_type);
    for (int i = 1; i < c->n_out; i++) SN_TRY(sni_infer_set_type(c, i, (sn_dtype)p->stash_type));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int axis, rank = sni_infer_rank(c, 0);
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    for (int i = 1; i < c->n_in; i++) SN_TRY(check_broadcast(c, i));
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = i < axis ? sni_infer_dim(c, 0, i) : 1;
    for (int i = 1; i < c->n_out; i++) SN_TRY(sni_infer_set_shape(c, i, rank, dims));
    return sni_infer_same(c);
}

/* Scale or shift `t` for rows of x from `axis` on: used in place if it covers exactly one row,
 * otherwise repeated to x's whole shape. */
static sn_status spread_out(sni_kernel *k, const sni_tensor *t, const sni_tensor *x, int axis,
                            sn_dtype dtype, sni_spread *out) {
    const void *data;
    SN_TRY(sni_in_as(k, t, dtype, &data));
    *out = (sni_spread){data, 0};
    if (!t) return SN_OK;
    bool plain = true;
    for (int i = 0; i < x->rank; i++) {
        int at = i - (x->rank - t->rank);
        plain &= (at < 0 ? 1 : t->dims[at]) == (i < axis ? 1 : x->dims[i]);
    }
    if (plain) return SN_OK;
    int64_t from[SN_MAX_RANK], to[SN_MAX_RANK];
    void *all;
    SN_TRY(sni_scratch_array(k, x->count, sni_dtype_width(dtype), &all));
    sni_broadcast_strides(t, x->rank, x->dims, from);
    sni_strides(x->rank, x->dims, to);
    sni_copy_box(k, &(sni_box){x->rank, x->dims, all, to, data, from, sni_dtype_width(dtype)});
    *out = (sni_spread){all, sni_tensor_span(x, axis, x->rank)};
    return SN_OK;
}

/* Outputs `mean_out` and `inverse_out` are those of the statistics; -1: not among the outputs. */
static sn_status run_rows(sni_kernel *k, bool centered, int mean_out, int inverse_out) {
    const layer_norm_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *mean = mean_out < 0 ? NULL : sni_out(k, mean_out);
    sni_tensor *inverse = inverse_out < 0 ? NULL : sni_out(k, inverse_out);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    sni_row_norm norm = {
        .n = sni_tensor_span(x, axis, x->rank), .epsilon = p->epsilon, .centered = centered};
    SN_TRY(sni_in_as(k, x, dtype, &norm.x));
    SN_TRY(spread_out(k, sni_in(k, 1), x, axis, dtype, &norm.scale));
    SN_TRY(spread_out(k, sni_in(k, 2), x, axis, dtype, &norm.shift));
    SN_TRY(sni_out_as(k, sni_out(k, 0), dtype, &norm.y));
    SN_TRY(sni_out_as(k, mean, dtype, &norm.mean));
    SN_TRY(sni_out_as(k, inverse, dtype, &norm.inverse));
    sni_normalize(k, dtype, sni_tensor_span(x, 0, axis), &norm);
    sni_out_done(k, sni_out(k, 0), dtype, norm.y);
    sni_out_done(k, mean, dtype, norm.mean);
    sni_out_done(k, inverse, dtype, norm.inverse);
    return SN_OK;
}

static sn_status layer_norm_ref(sni_kernel *k) {
    return run_rows(k, true, 1, 2);
}

static sn_status rms_norm_ref(sni_kernel *k) {
    return run_rows(k, false, -1, 1);
}

#define LAYER_NORM_PARAMS                                                                         \
    SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(layer_norm_params, axis), .number = -1},           \
               {"epsilon", SNI_ATTR_FLOAT, offsetof(layer_norm_params, epsilon), .number = 1e-5}, \
               {"stash_type", SNI_ATTR_INT, offsetof(layer_norm_params, stash_type), .number = 1})

const sni_op sni_op_LayerNormalization = {
    .name = "LayerNormalization",
    .versions = SNI_VERSIONS(1, 17), /* 1: exporters wrote it before ONNX had it */
    .inputs = SNI_FORMALS({"X", "T"}, {"Scale", "T"}, {"B", "T", SNI_OPTIONAL}),
    .outputs =
        SNI_FORMALS({"Y", "T"}, {"Mean", "U", SNI_OPTIONAL}, {"InvStdDev", "U", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"U", SNI_T_FLOATS}),
    .params = LAYER_NORM_PARAMS,
    .params_size = sizeof(layer_norm_params),
    .flags = SNI_OP_LENIENT,
    .infer = layer_norm_infer,
    .ref = layer_norm_ref,
};

const sni_op sni_op_RMSNormalization = {
    .name = "RMSNormalization",
    .versions = SNI_VERSIONS(23),
    .inputs = SNI_FORMALS({"X", "T"}, {"scale", "V"}),
    .outputs = SNI_FORMALS({"Y", "V"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"V", SNI_T_FLOATS}),
    .params = LAYER_NORM_PARAMS,
    .params_size = sizeof(layer_norm_params),
    .infer = layer_norm_infer,
    .ref = rms_norm_ref,
};

const sni_op sni_op_SimplifiedLayerNormalization = {
    .name = "SimplifiedLayerNormalization",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"scale", "V"}),
    .outputs = SNI_FORMALS({"Y", "V"}, {"inv_std_var", "U", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"V", SNI_T_FLOATS}, {"U", SNI_T_FLOATS}),
    .params = LAYER_NORM_PARAMS,
    .params_size = sizeof(layer_norm_params),
    .flags = SNI_OP_LENIENT,
    .infer = layer_norm_infer,
    .ref = rms_norm_ref,
};
