/* BatchNormalization: each channel is normalised to mean 0 and variance 1 (by given statistics, or
 * by its own in training mode), then scaled and shifted. */
#include "base/threadpool.h"
#include "ops/core/compute.h"

#include <math.h>

typedef struct batch_norm_params {
    float epsilon, momentum;
    int64_t training_mode;
} batch_norm_params;

typedef struct norm_job {
    const void *x, *scale, *shift, *mean, *variance;
    void *y;        /* may be NULL */
    void *stats[4]; /* running mean and variance, mean and variance of this batch; may be NULL */
    int64_t batch, channels, plane;
    float epsilon, momentum;
    bool training;
} norm_job;

#define BODY "ops/nn/batch_norm.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static sn_status batch_norm_infer(sni_infer *c) {
    const batch_norm_params *p = c->params;
    if (c->n_out > 1 && !p->training_mode)
        return SNI_INFER_FAIL(c, "%d outputs, but training_mode is 0", c->n_out);
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank == 0) return SNI_INFER_FAIL(c, "the input is a scalar");
    sni_dim channels = rank > 1 ? sni_infer_dim(c, 0, 1) : 1;
    for (int i = 1; i < 5; i++) {
        if (!sni_infer_shaped(c, i)) continue;
        sni_dim n = sni_infer_rank(c, i) == 1 ? sni_infer_dim(c, i, 0) : 0;
        if (sni_infer_rank(c, i) != 1 ||
            (sni_dim_known(n) && sni_dim_known(channels) && n != channels))
            return SNI_INFER_FAIL(c, "input %d has not one element for each of %lld channels", i,
                                  (long long)channels);
    }
    for (int i = 1; i < c->n_out; i++) SN_TRY(sni_infer_set_shape(c, i, 1, &channels));
    return sni_infer_same(c);
}

static sn_status batch_norm_ref(sni_kernel *k) {
    const batch_norm_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    int64_t plane = x->rank > 1 ? sni_tensor_span(x, 2, x->rank) : 1;
    norm_job job = {.batch = x->count ? x->dims[0] : 0, /* sizes beside a 0 may be huge */
                    .channels = x->rank > 1 ? x->dims[1] : 1,
                    .plane = x->count ? plane : 0,
                    .epsilon = p->epsilon,
                    .momentum = p->momentum,
                    .training = p->training_mode != 0};
    SN_TRY(sni_in_as(k, x, dtype, &job.x));
    SN_TRY(sni_in_as(k, sni_in(k, 1), dtype, &job.scale));
    SN_TRY(sni_in_as(k, sni_in(k, 2), dtype, &job.shift));
    SN_TRY(sni_in_as(k, sni_in(k, 3), dtype, &job.mean));
    SN_TRY(sni_in_as(k, sni_in(k, 4), dtype, &job.variance));
    SN_TRY(sni_out_as(k, sni_out(k, 0), dtype, &job.y));
    for (int i = 0; i < 4; i++) SN_TRY(sni_out_as(k, sni_out(k, i + 1), dtype, &job.stats[i]));
    int64_t each = job.batch * job.plane;
    sni_parallel_for(k->threads, job.channels, each > 0 && each < 16384 ? 16384 / each : 1,
                     dtype == SN_FLOAT64 ? channels_f64 : channels_f32, &job);
    sni_out_done(k, sni_out(k, 0), dtype, job.y);
    for (int i = 0; i < 4; i++) sni_out_done(k, sni_out(k, i + 1), dtype, job.stats[i]);
    return SN_OK;
}

/* `spatial` = 0: statistics for each element of an image. The images become vectors of channels:
 * Reshape(BatchNormalization(Flatten(x), ...), Shape(x)). */
static sn_status upgrade_per_element(sni_upgrade *u) {
    if (u->node->n_in < 5 || u->node->n_out > 1)
        return sni_fail(u->err, SN_UNSUPPORTED,
                        "training with statistics for each element (spatial 0) of opset %d",
                        u->from);
    int32_t in[5], shape, all, pair[2], result;
    sni_attr epsilon = sni_attr_of_float("epsilon", 1e-5f);
    const sni_attr *given = sni_node_attr(u->node, "epsilon");
    SN_TRY(sni_upgrade_insert(u, "Shape", u->node->in, 1, NULL, 0, &shape));
    SN_TRY(sni_upgrade_insert(u, "Flatten", u->node->in, 1, NULL, 0, &in[0]));
    SN_TRY(sni_upgrade_ints(u, &(int64_t){-1}, 1, &all));
    for (int i = 1; i < 5; i++) {
        pair[0] = u->node->in[i];
        pair[1] = all;
        SN_TRY(sni_upgrade_insert(u, "Reshape", pair, 2, NULL, 0, &in[i]));
    }
    SN_TRY(
        sni_upgrade_insert(u, "BatchNormalization", in, 5, given ? given : &epsilon, 1, &result));
    return sni_upgrade_to_reshape(u, result, shape);
}

/* Before opset 14 a node was in training mode if it had more than one output. */
static sn_status batch_norm_upgrade(sni_upgrade *u) {
    if (u->from >= 14) return SN_OK;
    int64_t spatial = sni_upgrade_int(u, "spatial", 1), test = sni_upgrade_int(u, "is_test", 0);
    sni_node_remove_attr(u->node, "spatial");
    sni_node_remove_attr(u->node, "is_test");
    int used = 0;
    for (int32_t i = 1; i < u->node->n_out; i++) used |= u->node->out[i] != SNI_NO_ID;
    if (test && used)
        return sni_fail(u->err, SN_INVALID_MODEL, "%d outputs, but is_test is 1", u->node->n_out);
    if (!used) SN_TRY(sni_node_resize_outputs(u->graph, u->node, 1, u->err));
    if (!spatial) return upgrade_per_element(u);
    sni_attr training = sni_attr_of_int("training_mode", used);
    return sni_node_set_attr(u->graph, u->node, &training, u->err);
}

const sni_op sni_op_BatchNormalization = {
    .name = "BatchNormalization",
    .versions = SNI_VERSIONS(1, 6, 7, 9, 14, 15),
    .inputs = SNI_FORMALS({"X", "T"}, {"scale", "T1"}, {"B", "T1"}, {"input_mean", "T2"},
                          {"input_var", "T2"}),
    /* The last two are those of opsets before 14. */
    .outputs = SNI_FORMALS({"Y", "T"}, {"running_mean", "T2", SNI_OPTIONAL},
                           {"running_var", "T2", SNI_OPTIONAL}, {"saved_mean", "T2", SNI_OPTIONAL},
                           {"saved_var", "T2", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"T1", SNI_T_FLOATS}, {"T2", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"epsilon", SNI_ATTR_FLOAT, offsetof(batch_norm_params, epsilon), .number = 1e-5},
        {"momentum", SNI_ATTR_FLOAT, offsetof(batch_norm_params, momentum), .number = 0.9},
        {"training_mode", SNI_ATTR_INT, offsetof(batch_norm_params, training_mode)}),
    .params_size = sizeof(batch_norm_params),
    .upgrade = batch_norm_upgrade,
    .infer = batch_norm_infer,
    .ref = batch_norm_ref,
};
