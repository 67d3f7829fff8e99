/* GatherChannels: channels of blocked tensors, picked one by one. */
#include "ops/sinter/blocked.h"
#include "ops/core/compute.h"
#include "ops/core/shape_util.h"

static sn_status check_lists(sni_infer *c, const sni_indirect *p, int more) {
    int64_t all = 0;
    if (p->channels.n != (size_t)(c->n_in - more + 1))
        return SNI_INFER_FAIL(c, "channels has %zu numbers for %d inputs", p->channels.n,
                              c->n_in - more + 1);
    for (size_t i = 0; i < p->channels.n; i++) {
        if (p->channels.v[i] < 1 || p->channels.v[i] > INT32_MAX)
            return SNI_INFER_FAIL(c, "channels[%zu] is %lld", i, (long long)p->channels.v[i]);
        all += p->channels.v[i];
    }
    for (size_t i = 0; i < p->indices.n; i++)
        if (p->indices.v[i] < 0 || p->indices.v[i] >= all)
            return SNI_INFER_FAIL(c, "indices[%zu] is %lld of %lld channels", i,
                                  (long long)p->indices.v[i], (long long)all);
    return p->indices.n ? SN_OK : SNI_INFER_FAIL(c, "indices is empty");
}

sn_status sni_infer_indirect(sni_infer *c, const sni_indirect *p, int more, int64_t block,
                             sni_dim plain[4], bool *known) {
    sni_dim dims[4];
    *known = false;
    SN_TRY(check_lists(c, p, more));
    for (size_t i = 0; i < p->channels.n; i++) {
        int at = i ? more + (int)i - 1 : 0;
        if (!sni_infer_shaped(c, at)) return SN_OK;
        SN_TRY(sni_infer_unblocked(c, at, block, p->channels.v[i], dims));
        for (int a = 0; a < 4; a++) {
            if (i == 0) plain[a] = dims[a];
            if (a == 1) continue;
            SN_TRY(sni_infer_join_dim(c, "inputs", a, plain[a], dims[a], &plain[a]));
        }
    }
    plain[1] = (int64_t)p->indices.n;
    *known = true;
    return SN_OK;
}

sni_origin sni_indirect_origin(const sni_indirect *p, int64_t i) {
    int64_t channel = p->indices.v[i];
    int32_t from = 0;
    while (channel >= p->channels.v[from]) channel -= p->channels.v[from++];
    return (sni_origin){.tensor = from, .channel = (int32_t)channel};
}

void sni_pick_plain(sni_kernel *k, const sni_indirect *p, int more, int64_t block, float *to) {
    const sni_tensor *x = sni_in(k, 0);
    int64_t pixels = x->dims[2] * x->dims[3], channels = (int64_t)p->indices.n;
    for (int64_t i = 0; i < x->dims[0] * channels; i++) {
        sni_origin o = sni_indirect_origin(p, i % channels);
        const sni_tensor *t = o.tensor ? sni_in(k, more + o.tensor - 1) : x;
        const float *from = (const float *)t->data +
                            (i / channels * t->dims[1] + o.channel / block) * pixels * block +
                            o.channel % block;
        for (int64_t at = 0; at < pixels; at++) to[i * pixels + at] = from[at * block];
    }
}

static sn_status gather_infer(sni_infer *c) {
    const sni_gather_channels_params *p = c->params;
    sni_dim plain[4];
    bool known;
    SN_TRY(sni_infer_block(c, p->block));
    SN_TRY(sni_infer_indirect(c, &p->indirect, 1, p->block, plain, &known));
    return known ? sni_infer_set_blocked(c, plain, p->block) : SN_OK;
}

static sn_status gather_ref(sni_kernel *k) {
    const sni_gather_channels_params *p = k->params;
    const sni_tensor *y = sni_out(k, 0);
    int64_t pixels = y->dims[2] * y->dims[3], channels = (int64_t)p->indirect.indices.n;
    void *plain;
    if (y->count == 0) return SN_OK;
    SN_TRY(sni_scratch_matrix(k, y->dims[0] * channels, pixels, sizeof(float), &plain));
    sni_pick_plain(k, &p->indirect, 1, p->block, plain);
    sni_to_blocked(plain, y->data, y->dims[0], channels, pixels, p->block);
    return SN_OK;
}

const sni_op sni_op_sinter_GatherChannels = {
    .name = "GatherChannels",
    .domain = SNI_SINTER_DOMAIN,
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T", SNI_VARIADIC}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32)}),
    .params = SNI_PARAMS(
        {"block", SNI_ATTR_INT, offsetof(sni_gather_channels_params, block), .required = true},
        SNI_INDIRECT_FIELDS(sni_gather_channels_params, true)),
    .params_size = sizeof(sni_gather_channels_params),
    .infer = gather_infer,
    .ref = gather_ref,
};
