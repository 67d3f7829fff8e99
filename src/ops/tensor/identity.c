/* Identity: y = x, for values of every kind. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

static sn_status identity_infer(sni_infer *c) {
    if (c->in[0]->kind == SN_KIND_NONE) return SN_OK;
    SN_TRY(sni_infer_set_full_type(c, 0, c->in[0]));
    return c->in[0]->kind == SN_KIND_TENSOR ? sni_infer_pass_dims(c) : SN_OK;
}

static sn_status identity_ref(sni_kernel *k) {
    const sni_datum *x = k->in[0];
    sni_datum *y = k->out[0];
    if (x->kind == SN_KIND_TENSOR && y->kind == SN_KIND_TENSOR) {
        sni_copy_shared(k->threads, y->tensor.data, x->tensor.data, sni_tensor_bytes(&x->tensor));
        return SN_OK;
    }
    return y->kind == SN_KIND_NONE ? sni_datum_share(y, x, k->budget, k->err) : SN_OK;
}

const sni_op sni_op_Identity = {
    .name = "Identity",
    .versions = SNI_VERSIONS(1, 13, 14, 16, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"input", "V"}),
    .outputs = SNI_FORMALS({"output", "V"}),
    .types = SNI_TYPE_VARS({"V", SNI_T_ALL}),
    .flags = SNI_OP_VIEW,
    .infer = identity_infer,
    .ref = identity_ref,
};

static sn_status sample_upgrade(sni_upgrade *u) {
    int32_t x = u->node->in[0];
    return sni_upgrade_become(u, "Identity", &x, 1, NULL, 0);
}

const sni_op sni_op_ms_SampleOp = {
    .name = "SampleOp",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS | SNI_T(SN_STRING) | SNI_T(SN_BOOL)}),
    .flags = SNI_OP_REWRITES,
    .upgrade = sample_upgrade,
};
