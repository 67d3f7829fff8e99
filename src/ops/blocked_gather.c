/* GatherChannels: channels of blocked tensors, picked one by one. */
#include "ops/blocked.h"
#include "ops/shape_util.h"

static sn_status check_lists(sni_infer *c, const sni_gather_channels_params *p) {
    int64_t all = 0;
    SN_TRY(sni_infer_block(c, p->block));
    if (p->channels.n != (size_t)c->n_in)
        return SNI_INFER_FAIL(c, "channels has %zu numbers for %d inputs", p->channels.n, c->n_in);
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

static sn_status gather_infer(sni_infer *c) {
    const sni_gather_channels_params *p = c->params;
    sni_dim plain[4], first[4];
    SN_TRY(check_lists(c, p));
    for (int i = 0; i < c->n_in; i++) {
        if (!sni_infer_shaped(c, i)) return SN_OK;
        SN_TRY(sni_infer_unblocked(c, i, p->block, p->channels.v[i], plain));
        for (int a = 0; a < 4; a++) {
            if (i == 0) first[a] = plain[a];
            if (a == 1) continue;
            SN_TRY(sni_infer_join_dim(c, "inputs", a, first[a], plain[a], &first[a]));
        }
    }
    first[1] = (int64_t)p->indices.n;
    return sni_infer_set_blocked(c, first, p->block);
}

/* Copies channel `from` of blocked tensor x to channel `to` of y. */
static void copy_channel(const sni_tensor *x, int64_t from, const sni_tensor *y, int64_t to,
                         int64_t block) {
    int64_t pixels = x->dims[2] * x->dims[3];
    for (int64_t n = 0; n < x->dims[0]; n++) {
        const float *a = (const float *)x->data + (n * x->dims[1] + from / block) * pixels * block +
                         from % block;
        float *b = (float *)y->data + (n * y->dims[1] + to / block) * pixels * block + to % block;
        for (int64_t p = 0; p < pixels; p++) b[p * block] = a[p * block];
    }
}

static sn_status gather_ref(sni_kernel *k) {
    const sni_gather_channels_params *p = k->params;
    const sni_tensor *y = sni_out(k, 0);
    if (y->count) memset(y->data, 0, sni_tensor_bytes(y));
    for (size_t i = 0; i < p->indices.n && y->count; i++) {
        int64_t channel = p->indices.v[i];
        int from = 0;
        while (channel >= p->channels.v[from]) channel -= p->channels.v[from++];
        copy_channel(sni_in(k, from), channel, y, (int64_t)i, p->block);
    }
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
        {"channels", SNI_ATTR_INTS, offsetof(sni_gather_channels_params, channels),
         .required = true},
        {"indices", SNI_ATTR_INTS, offsetof(sni_gather_channels_params, indices),
         .required = true}),
    .params_size = sizeof(sni_gather_channels_params),
    .infer = gather_infer,
    .ref = gather_ref,
};
