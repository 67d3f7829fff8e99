/* AveragePool and GlobalAveragePool: the mean of the elements under each window. */
#include "ops/pool.h"

#define BODY "ops/average_pool.inc.c"
#include "ops/each_float.inc.h"
#undef BODY

static sn_status average_ref(sni_kernel *k) {
    static const sni_pool_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(average)};
    return sni_pool_run(k, fns, false);
}

static sn_status global_average_ref(sni_kernel *k) {
    static const sni_pool_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(global_average)};
    return sni_pool_run(k, fns, true);
}

const sni_op sni_op_AveragePool = {
    .name = "AveragePool",
    .versions = SNI_VERSIONS(1, 7, 10, 11, 19, 22),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS(SNI_POOL_PARAMS, {"count_include_pad", SNI_ATTR_INT,
                                           offsetof(sni_pool_params, count_include_pad)}),
    .params_size = sizeof(sni_pool_params),
    .infer = sni_infer_window_pool,
    .ref = average_ref,
};

const sni_op sni_op_GlobalAveragePool = {
    .name = "GlobalAveragePool",
    .versions = SNI_VERSIONS(1, 22),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .infer = sni_infer_global_pool,
    .ref = global_average_ref,
};
