/* Trilu: matrices with one triangle kept and the other set to 0. */
#include "ops/shape_util.h"
#include "ops/tensor_util.h"

#include <inttypes.h>

typedef struct trilu_params {
    int64_t upper;
} trilu_params;

static sn_status trilu_infer(sni_infer *c) {
    sni_list diagonal;
    SN_TRY(sni_infer_list(c, 1, &diagonal));
    if (diagonal.known && diagonal.count != 1)
        return SNI_INFER_FAIL(c, "k has %" PRId64 " elements, not 1", diagonal.count);
    if (sni_infer_shaped(c, 0) && sni_infer_rank(c, 0) < 2)
        return SNI_INFER_FAIL(c, "the input has rank %d: 2 or more are needed",
                              sni_infer_rank(c, 0));
    return sni_infer_same(c);
}

/* Row i keeps columns from i + k on (upper), or up to i + k. */
static sn_status trilu_ref(sni_kernel *k) {
    const trilu_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *diagonal = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    sni_copy_bytes(y->data, x->data, sni_tensor_bytes(x));
    if (y->count == 0) return SN_OK;
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    int64_t offset = diagonal ? sni_index_at(diagonal, 0) : 0;
    offset = offset < -rows ? -rows : offset > columns ? columns : offset;
    size_t width = sni_dtype_width(x->dtype);
    for (int64_t r = 0; r < x->count / columns; r++) {
        int64_t edge = r % rows + offset + (p->upper ? 0 : 1);
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        int64_t from = p->upper ? 0 : edge, to = p->upper ? edge : columns;
        memset(sni_element(y->data, r * columns + from, width), 0, (size_t)(to - from) * width);
    }
    return SN_OK;
}

const sni_op sni_op_Trilu = {
    .name = "Trilu",
    .versions = SNI_VERSIONS(14),
    .inputs = SNI_FORMALS({"input", "T"}, {"k", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"upper", SNI_ATTR_INT, offsetof(trilu_params, upper), .number = 1}),
    .params_size = sizeof(trilu_params),
    .inplace = 1,
    .infer = trilu_infer,
    .ref = trilu_ref,
};
