/* LpNormalization and MeanVarianceNormalization: elements along some axes are divided by their
 * norm, or normalised to mean 0 and variance 1. The axes are moved to the end first, and back
 * afterwards. */
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/core/kernel_hooks.h"
#include "ops/core/tensor_util.h"

#include <math.h>

typedef struct lp_params {
    int64_t axis, p;
} lp_params;

typedef struct moment_params {
    sni_ints axes;
} moment_params;

typedef struct rows_job {
    void *work;
    int64_t n, p; /* elements of a row; order of the norm, 0: mean and variance */
} rows_job;

#define BODY "ops/nn/axes_norm.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static sn_status run_axes(sni_kernel *k, const bool *along, int64_t p) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    size_t width = sni_dtype_width(dtype);
    int64_t own[SN_MAX_RANK], dims[SN_MAX_RANK], outside[SN_MAX_RANK], inside[SN_MAX_RANK];
    rows_job job = {.n = 1, .p = p};
    const void *data;
    void *out = NULL;
    int rank = 0;
    if (x->count == 0) return SN_OK;
    sni_strides(x->rank, x->dims, own);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < x->rank; i++) {
            if (along[i] != (pass == 1)) continue;
            dims[rank] = x->dims[i];
            outside[rank++] = own[i];
            if (pass == 1) job.n *= x->dims[i];
        }
    sni_strides(rank, dims, inside);
    SN_TRY(sni_in_as(k, x, dtype, &data));
    SN_TRY(sni_out_as(k, y, dtype, &out));
    const sni_kernel_hooks *hooks = sni_kernel_hooks_for(k, dtype);
    if (hooks && hooks->norm_axes) {
        sni_axes axes = sni_axes_lay_out(x, along);
        hooks->norm_axes(k->threads, &axes, x->count / job.n, data, out, p);
        sni_out_done(k, y, dtype, out);
        return SN_OK;
    }
    SN_TRY(sni_scratch_array(k, x->count, width, &job.work));
    sni_copy_box(k, &(sni_box){rank, dims, job.work, inside, data, outside, width});
    sni_parallel_for(k->threads, x->count / job.n, 8192 / job.n + 1,
                     dtype == SN_FLOAT64 ? rows_f64 : rows_f32, &job);
    sni_copy_box(k, &(sni_box){rank, dims, out, outside, job.work, inside, width});
    sni_out_done(k, y, dtype, out);
    return SN_OK;
}

static sn_status lp_infer(sni_infer *c) {
    const lp_params *p = c->params;
    int axis;
    if (p->p != 1 && p->p != 2) return SNI_INFER_FAIL(c, "p is %lld, not 1 or 2", (long long)p->p);
    if (sni_infer_shaped(c, 0)) SN_TRY(sni_infer_axis(c, p->axis, sni_infer_rank(c, 0), &axis));
    return sni_infer_same(c);
}

static sn_status lp_ref(sni_kernel *k) {
    const lp_params *p = k->params;
    bool along[SN_MAX_RANK] = {false};
    along[p->axis < 0 ? p->axis + sni_in(k, 0)->rank : p->axis] = true;
    return run_axes(k, along, p->p);
}

/* The axes to normalise along: those given, or all but the channels'. */
static const int64_t *axes_of(const moment_params *p, size_t *n) {
    static const int64_t usual[3] = {0, 2, 3};
    *n = p->axes.given ? p->axes.n : 3;
    return p->axes.given ? p->axes.v : usual;
}

static sn_status moment_infer(sni_infer *c) {
    size_t n;
    const int64_t *axes = axes_of(c->params, &n);
    int axis;
    for (size_t i = 0; i < n && sni_infer_shaped(c, 0); i++)
        SN_TRY(sni_infer_axis(c, axes[i], sni_infer_rank(c, 0), &axis));
    return sni_infer_same(c);
}

static sn_status moment_ref(sni_kernel *k) {
    size_t n;
    const int64_t *axes = axes_of(k->params, &n);
    bool along[SN_MAX_RANK] = {false};
    for (size_t i = 0; i < n; i++)
        along[axes[i] < 0 ? axes[i] + sni_in(k, 0)->rank : axes[i]] = true;
    return run_axes(k, along, 0);
}

const sni_op sni_op_LpNormalization = {
    .name = "LpNormalization",
    .versions = SNI_VERSIONS(1, 22),
    .inputs = SNI_FORMALS({"input", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(lp_params, axis), .number = -1},
                         {"p", SNI_ATTR_INT, offsetof(lp_params, p), .number = 2}),
    .params_size = sizeof(lp_params),
    .infer = lp_infer,
    .ref = lp_ref,
};

const sni_op sni_op_MeanVarianceNormalization = {
    .name = "MeanVarianceNormalization",
    .versions = SNI_VERSIONS(1, 9, 13), /* experimental before 9, and the same */
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"axes", SNI_ATTR_INTS, offsetof(moment_params, axes)}),
    .params_size = sizeof(moment_params),
    .infer = moment_infer,
    .ref = moment_ref,
};
