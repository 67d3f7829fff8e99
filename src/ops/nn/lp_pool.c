/* LpPool and GlobalLpPool: the p-norm of the elements under each window. */
#include "ops/nn/pool.h"

#include <math.h>

#define BODY "ops/nn/lp_pool.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

static const sni_pool_fn lp_fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(lp)};

static sn_status lp_ref(sni_kernel *k) {
    return sni_pool_run(k, lp_fns, false);
}

static sn_status global_lp_ref(sni_kernel *k) {
    return sni_pool_run(k, lp_fns, true);
}

static sn_status check_order(sni_infer *c) {
    int64_t p = ((const sni_pool_params *)c->params)->p;
    return p >= 1 ? SN_OK : SNI_INFER_FAIL(c, "p is %lld, not above 0", (long long)p);
}

static sn_status lp_infer(sni_infer *c) {
    SN_TRY(check_order(c));
    return sni_infer_window_pool(c);
}

static sn_status global_lp_infer(sni_infer *c) {
    SN_TRY(check_order(c));
    return sni_infer_global_pool(c);
}

const sni_op sni_op_LpPool = {
    .name = "LpPool",
    .versions = SNI_VERSIONS(1, 2, 11, 18, 22),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params =
        SNI_PARAMS(SNI_POOL_PARAMS, {"p", SNI_ATTR_INT, offsetof(sni_pool_params, p), .number = 2}),
    .params_size = sizeof(sni_pool_params),
    .upgrade = sni_upgrade_lp_order,
    .infer = lp_infer,
    .ref = lp_ref,
};

const sni_op sni_op_GlobalLpPool = {
    .name = "GlobalLpPool",
    .versions = SNI_VERSIONS(1, 2, 22),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"p", SNI_ATTR_INT, offsetof(sni_pool_params, p), .number = 2}),
    .params_size = sizeof(sni_pool_params),
    .upgrade = sni_upgrade_lp_order,
    .infer = global_lp_infer,
    .ref = global_lp_ref,
};
