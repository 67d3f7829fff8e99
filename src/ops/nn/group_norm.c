/* GroupNormalization and InstanceNormalization: each group of an image's channels (the latter: each
 * channel) brought to mean 0 and variance 1, then scaled and shifted channel by channel. */
#include "base/threadpool.h"
#include "ops/core/compute.h"

#include <math.h>

typedef struct group_norm_params {
    float epsilon;
    int64_t num_groups, stash_type;
} group_norm_params;

typedef struct group_job {
    const void *x, *scale, *shift;
    void *y;
    int64_t groups, per_group, plane; /* groups of an image, channels of a group */
    float epsilon;
} group_job;

#define BODY "ops/nn/group_norm.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static sn_status instance_norm_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    if (rank < 2) return SNI_INFER_FAIL(c, "an input of rank %d has no channels", rank);
    sni_dim channels = sni_infer_dim(c, 0, 1);
    for (int i = 1; i < 3; i++) {
        if (!sni_infer_shaped(c, i)) continue;
        if (sni_infer_rank(c, i) != 1)
            return SNI_INFER_FAIL(c, "input %d has rank %d, not 1", i, sni_infer_rank(c, i));
        sni_dim n = sni_infer_dim(c, i, 0);
        if (sni_dim_known(n) && sni_dim_known(channels) && n != channels)
            return SNI_INFER_FAIL(c, "input %d has %lld elements for %lld channels", i,
                                  (long long)n, (long long)channels);
    }
    return sni_infer_same(c);
}

static sn_status group_norm_infer(sni_infer *c) {
    int64_t groups = ((const group_norm_params *)c->params)->num_groups;
    if (groups < 1) return SNI_INFER_FAIL(c, "num_groups is %lld", (long long)groups);
    if (sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) > 1) {
        sni_dim channels = sni_infer_dim(c, 0, 1);
        if (sni_dim_known(channels) && channels % groups)
            return SNI_INFER_FAIL(c, "%lld channels do not divide into %lld groups",
                                  (long long)channels, (long long)groups);
    }
    return instance_norm_infer(c);
}

static sn_status run_groups(sni_kernel *k, int64_t groups) {
    const group_norm_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    if (x->count == 0) return SN_OK;
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    group_job job = {.groups = groups,
                     .per_group = x->dims[1] / groups,
                     .plane = sni_tensor_span(x, 2, x->rank),
                     .epsilon = p->epsilon};
    SN_TRY(sni_in_as(k, x, dtype, &job.x));
    SN_TRY(sni_in_as(k, sni_in(k, 1), dtype, &job.scale));
    SN_TRY(sni_in_as(k, sni_in(k, 2), dtype, &job.shift));
    SN_TRY(sni_out_as(k, y, dtype, &job.y));
    sni_parallel_for(k->threads, x->dims[0] * groups, 16384 / (job.per_group * job.plane) + 1,
                     dtype == SN_FLOAT64 ? normalize_groups_f64 : normalize_groups_f32, &job);
    sni_out_done(k, y, dtype, job.y);
    return SN_OK;
}

static sn_status group_norm_ref(sni_kernel *k) {
    return run_groups(k, ((const group_norm_params *)k->params)->num_groups);
}

static sn_status instance_norm_ref(sni_kernel *k) {
    return run_groups(k, sni_in(k, 0)->dims[1]);
}

/* Opset 18 had one scale and shift for a group; each becomes as many as the group has channels:
 * Reshape(Expand(Unsqueeze(v, 1), [1, channels / groups]), [-1]). */
static sn_status group_norm_upgrade(sni_upgrade *u) {
    int64_t groups = sni_upgrade_int(u, "num_groups", 0);
    if (groups < 1 || u->node->n_in < 3)
        return sni_fail(u->err, SN_INVALID_MODEL, "num_groups is %lld, with %d inputs",
                        (long long)groups, u->node->n_in);
    sni_attr from = sni_attr_of_int("start", 1), to = sni_attr_of_int("end", 2);
    sni_attr range[2] = {from, to}, axis0 = sni_attr_of_int("axis", 0);
    int32_t pair[2], one, count, channels, each, all, v;
    SN_TRY(sni_upgrade_ints(u, &(int64_t){1}, 1, &one));
    SN_TRY(sni_upgrade_ints(u, &groups, 1, &count));
    SN_TRY(sni_upgrade_ints(u, &(int64_t){-1}, 1, &all));
    SN_TRY(sni_upgrade_insert(u, "Shape", u->node->in, 1, range, 2, &channels));
    pair[0] = channels, pair[1] = count;
    SN_TRY(sni_upgrade_insert(u, "Div", pair, 2, NULL, 0, &each));
    pair[0] = one, pair[1] = each;
    SN_TRY(sni_upgrade_insert(u, "Concat", pair, 2, &axis0, 1, &each));
    for (int i = 1; i < 3; i++) {
        pair[0] = u->node->in[i], pair[1] = one;
        SN_TRY(sni_upgrade_insert(u, "Unsqueeze", pair, 2, NULL, 0, &v));
        pair[0] = v, pair[1] = each;
        SN_TRY(sni_upgrade_insert(u, "Expand", pair, 2, NULL, 0, &v));
        pair[0] = v, pair[1] = all;
        SN_TRY(sni_upgrade_insert(u, "Reshape", pair, 2, NULL, 0, &v));
        SN_TRY(sni_node_set_input(u->graph, u->node, i, v, u->err));
    }
    return SN_OK;
}

const sni_op sni_op_GroupNormalization = {
    .name = "GroupNormalization",
    .versions = SNI_VERSIONS(18, 21),
    .inputs = SNI_FORMALS({"X", "T"}, {"scale", "T"}, {"bias", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"epsilon", SNI_ATTR_FLOAT, offsetof(group_norm_params, epsilon), .number = 1e-5},
        {"num_groups", SNI_ATTR_INT, offsetof(group_norm_params, num_groups), .required = true},
        {"stash_type", SNI_ATTR_INT, offsetof(group_norm_params, stash_type), .number = 1}),
    .params_size = sizeof(group_norm_params),
    .upgrade = group_norm_upgrade,
    .infer = group_norm_infer,
    .ref = group_norm_ref,
};

const sni_op sni_op_InstanceNormalization = {
    .name = "InstanceNormalization",
    .versions = SNI_VERSIONS(1, 6, 22),
    .inputs = SNI_FORMALS({"input", "T"}, {"scale", "T"}, {"B", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(
        {"epsilon", SNI_ATTR_FLOAT, offsetof(group_norm_params, epsilon), .number = 1e-5}),
    .params_size = sizeof(group_norm_params),
    .infer = instance_norm_infer,
    .ref = instance_norm_ref,
};
