/* Relu: y = max(x, 0). */
#include "ops/core/elementwise.h"

#define BODY "ops/math/relu.inc.c"
#include "ops/core/each_float.inc.h"
#include "ops/core/each_sint.inc.h"
#undef BODY

static sn_status relu_ref(sni_kernel *k) {
    static const sni_unary_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(relu), SNI_EACH_SINT(relu)};
    return sni_map_unary(k, fns);
}

const sni_op sni_op_Relu = {
    .name = "Relu",
    .versions = SNI_VERSIONS(1, 6, 13, 14),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS | SNI_T_SINTS}),
    .inplace = 1,
    .infer = sni_infer_same,
    .ref = relu_ref,
};
