/* CumSum and CumProd: running sums and products along an axis. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>

#define BODY "ops/math/cum.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

typedef struct cum_params {
    int64_t exclusive, reverse;
} cum_params;

typedef void (*cum_fn)(const void *from, void *to, int64_t n, int64_t step, bool exclusive);
typedef void (*rows_fn)(const void *from, void *to, int64_t n, int64_t step, int64_t width);

enum { NARROW = 4 }; /* so few columns are not worth going row by row */

static sn_status cum_infer(sni_infer *c) {
    sni_list axis;
    SN_TRY(sni_infer_list(c, 1, &axis));
    if (axis.known && axis.count != 1)
        return SNI_INFER_FAIL(c, "axis has %" PRId64 " elements, not 1", axis.count);
    return sni_infer_same(c);
}

static sn_status cum_run(sni_kernel *k, const cum_fn *fns, const rows_fn *rows) {
    const cum_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t axis;
    SN_TRY(sni_wrap_index(k, "axis", sni_index_at(sni_in(k, 1), 0), x->rank, &axis));
    if (x->count == 0) return SN_OK;
    bool narrow = sni_dtype_get(x->dtype)->cls == SNI_CLASS_S;
    sn_dtype dtype = narrow ? SN_FLOAT32 : x->dtype;
    const void *from = x->data;
    void *to = y->data;
    if (narrow) {
        SN_TRY(sni_wide_in(k, x, &from));
        SN_TRY(sni_wide_out(k, y, &to));
    }
    size_t width = sni_dtype_width(dtype);
    int64_t n = x->dims[axis], inner = sni_tensor_span(x, (int)axis + 1, x->rank);
    int64_t first = p->reverse ? (n - 1) * inner : 0, step = p->reverse ? -inner : inner;
    bool by_rows = inner >= NARROW && !p->exclusive;
    for (int64_t i = 0; by_rows && i < x->count / (n * inner); i++) {
        int64_t at = i * n * inner + first;
        rows[dtype](sni_element(from, at, width), sni_element(to, at, width), n, step, inner);
    }
    for (int64_t i = 0; !by_rows && i < x->count / n; i++) {
        int64_t at = i / inner * n * inner + i % inner + first;
        fns[dtype](sni_element(from, at, width), sni_element(to, at, width), n, step,
                   p->exclusive != 0);
    }
    if (narrow) sni_wide_done(y, to);
    return SN_OK;
}

static sn_status cumsum_ref(sni_kernel *k) {
    static const cum_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(cumsum)};
    static const rows_fn rows[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(cumsum_rows)};
    return cum_run(k, fns, rows);
}

static sn_status cumprod_ref(sni_kernel *k) {
    static const cum_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(cumprod)};
    static const rows_fn rows[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(cumprod_rows)};
    return cum_run(k, fns, rows);
}

#define CUM_PARAMS                                                           \
    SNI_PARAMS({"exclusive", SNI_ATTR_INT, offsetof(cum_params, exclusive)}, \
               {"reverse", SNI_ATTR_INT, offsetof(cum_params, reverse)})

const sni_op sni_op_CumSum = {
    .name = "CumSum",
    .versions = SNI_VERSIONS(11, 14),
    .inputs = SNI_FORMALS({"x", "T"}, {"axis", "T2"}),
    .outputs = SNI_FORMALS({"y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}, {"T2", SNI_T_INDEX}),
    .params = CUM_PARAMS,
    .params_size = sizeof(cum_params),
    .inplace = 1,
    .infer = cum_infer,
    .ref = cumsum_ref,
};

const sni_op sni_op_CumProd = {
    .name = "CumProd",
    .versions = SNI_VERSIONS(26),
    .inputs = SNI_FORMALS({"x", "T"}, {"axis", "T2"}),
    .outputs = SNI_FORMALS({"y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}, {"T2", SNI_T_INDEX}),
    .params = CUM_PARAMS,
    .params_size = sizeof(cum_params),
    .inplace = 1,
    .infer = cum_infer,
    .ref = cumprod_ref,
};
