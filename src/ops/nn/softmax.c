/* Softmax, LogSoftmax and Hardmax along one axis. */
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/core/kernel_hooks.h"
#include "ops/core/tensor_util.h"

#include <math.h>

typedef struct softmax_params {
    int64_t axis;
} softmax_params;

#define BODY "ops/nn/softmax.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

/* y = f(x) for n elements `step` apart. */
typedef void (*lane_fn)(const void *x, void *y, int64_t n, int64_t step);

typedef struct lane_job {
    lane_fn fn;
    const void *x;
    void *y;
    int64_t n, step; /* length of the axis and distance of its elements */
    size_t width;
} lane_job;

static void lane_piece(void *ctx, int64_t begin, int64_t end) {
    const lane_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i / j->step * j->step * j->n + i % j->step;
        j->fn(sni_element(j->x, at, j->width), sni_element(j->y, at, j->width), j->n, j->step);
    }
}

/* Computes the lanes of a job by a kernel hook, which exists for Softmax and its logarithm. */
static void run_hooks(const sni_kernel_hooks *hooks, int threads, const lane_job *j, int64_t count,
                      sn_dtype dtype) {
    sni_lanes lanes = {.dtype = dtype,
                       .x = j->x,
                       .y = j->y,
                       .outer = count / j->n / j->step,
                       .n = j->n,
                       .step = j->step,
                       .logarithm = j->fn == log_softmax_f32 || j->fn == log_softmax_f64};
    hooks->softmax(threads, &lanes);
}

static sn_status run_lanes(sni_kernel *k, const lane_fn table[SNI_DTYPE_COUNT]) {
    const softmax_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    lane_job job = {.fn = table[dtype], .n = 1, .step = 1, .width = sni_dtype_width(dtype)};
    if (x->count == 0) return SN_OK;
    if (x->rank > 0) {
        int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
        job.n = x->dims[axis];
        job.step = sni_tensor_span(x, axis + 1, x->rank);
    }
    SN_TRY(sni_in_as(k, x, dtype, &job.x));
    SN_TRY(sni_out_as(k, y, dtype, &job.y));
    if (k->hooks && job.fn != hardmax_f32 && job.fn != hardmax_f64)
        run_hooks(k->hooks, k->threads, &job, x->count, dtype);
    else
        sni_parallel_for(k->threads, x->count / job.n, 4096 / job.n + 1, lane_piece, &job);
    sni_out_done(k, y, dtype, job.y);
    return SN_OK;
}

static sn_status softmax_ref(sni_kernel *k) {
    static const lane_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(softmax)};
    return run_lanes(k, fns);
}

static sn_status log_softmax_ref(sni_kernel *k) {
    static const lane_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(log_softmax)};
    return run_lanes(k, fns);
}

static sn_status hardmax_ref(sni_kernel *k) {
    static const lane_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(hardmax)};
    return run_lanes(k, fns);
}

static sn_status softmax_infer(sni_infer *c) {
    const softmax_params *p = c->params;
    int axis, rank = sni_infer_shaped(c, 0) ? sni_infer_rank(c, 0) : 0;
    if (rank > 0) SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    return sni_infer_same(c);
}

/* Before opset 13 all axes from `axis` (default 1) on were one. Unless that is the last axis alone,
 * the node becomes Reshape(Softmax(Flatten(x, axis)), Shape(x)). */
static sn_status softmax_upgrade(sni_upgrade *u) {
    if (u->from >= 13) return SN_OK;
    int64_t axis = sni_upgrade_int(u, "axis", 1);
    const sni_value *x = sni_graph_value(u->graph, u->node->n_in ? u->node->in[0] : SNI_NO_ID);
    if (!x) return sni_fail(u->err, SN_INVALID_MODEL, "input 0 is missing");
    int32_t whole = x->id, shape = 0, flat = 0, result = 0;
    sni_attr last = sni_attr_of_int("axis", -1), from = sni_attr_of_int("axis", axis);
    if (axis == -1 || (x->type.has_shape && axis == x->type.rank - 1))
        return sni_node_set_attr(u->graph, u->node, &last, u->err);
    SN_TRY(sni_upgrade_insert(u, "Shape", &whole, 1, NULL, 0, &shape));
    SN_TRY(sni_upgrade_insert(u, "Flatten", &whole, 1, &from, 1, &flat));
    SN_TRY(sni_upgrade_insert(u, u->node->op->name, &flat, 1, &last, 1, &result));
    return sni_upgrade_to_reshape(u, result, shape);
}

#define SOFTMAX_OP(NAME, REF)                                                                 \
    const sni_op sni_op_##NAME = {                                                            \
        .name = #NAME,                                                                        \
        .versions = SNI_VERSIONS(1, 11, 13),                                                  \
        .inputs = SNI_FORMALS({"input", "T"}),                                                \
        .outputs = SNI_FORMALS({"output", "T"}),                                              \
        .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),                                          \
        .params =                                                                             \
            SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(softmax_params, axis), .number = -1}), \
        .params_size = sizeof(softmax_params),                                                \
        .upgrade = softmax_upgrade,                                                           \
        .infer = softmax_infer,                                                               \
        .ref = REF,                                                                           \
    }

SOFTMAX_OP(Softmax, softmax_ref);
SOFTMAX_OP(LogSoftmax, log_softmax_ref);
SOFTMAX_OP(Hardmax, hardmax_ref);

#undef SOFTMAX_OP
