/* Trilu: matrices with one triangle kept and the other set to 0. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

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

/* Consecutive matrices of `rows` by `columns` elements. */
typedef struct trilu_job {
    const unsigned char *x;
    unsigned char *y;
    int64_t rows, columns, offset;
    size_t width;
    bool upper;
} trilu_job;

/* Row i keeps columns from i + k on (upper), or up to i + k. */
static void trilu_rows(void *ctx, int64_t begin, int64_t end) {
    const trilu_job *j = ctx;
    for (int64_t r = begin; r < end; r++) {
        int64_t edge = r % j->rows + j->offset + (j->upper ? 0 : 1);
        edge = edge < 0 ? 0 : edge > j->columns ? j->columns : edge;
        size_t row = (size_t)j->columns * j->width, cut = (size_t)edge * j->width;
        const unsigned char *x = j->x + (size_t)r * row;
        unsigned char *y = j->y + (size_t)r * row;
        if (j->upper) {
            memset(y, 0, cut);
            sni_copy_bytes(y + cut, x + cut, row - cut);
        } else {
            sni_copy_bytes(y, x, cut);
            memset(y + cut, 0, row - cut);
        }
    }
}

static sn_status trilu_ref(sni_kernel *k) {
    const trilu_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *diagonal = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    if (y->count == 0) return SN_OK;
    int64_t rows = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
    int64_t offset = diagonal ? sni_index_at(diagonal, 0) : 0;
    offset = offset < -rows ? -rows : offset > columns ? columns : offset;
    trilu_job j = {.x = x->data,
                   .y = y->data,
                   .rows = rows,
                   .columns = columns,
                   .offset = offset,
                   .width = sni_dtype_width(x->dtype),
                   .upper = p->upper != 0};
    sni_share(k->threads, x->count / columns, columns * (int64_t)j.width, trilu_rows, &j);
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
