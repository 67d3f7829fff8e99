/* ArgMax and ArgMin: the position of the largest or smallest element along an axis. */
#include "base/threadpool.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>

enum {
    ARG_COLUMNS = 256, /* columns at a time */
    ARG_LANES = 32,    /* of a row at once */
    GRAIN = 32768      /* elements worth a thread */
};

#define BODY "ops/math/argminmax.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

typedef struct arg_params {
    int64_t axis, keepdims, select_last_index;
} arg_params;

typedef void (*columns_fn)(const void *from, int64_t n, int64_t step, int64_t width, bool last,
                           int64_t *out);
typedef int64_t (*row_fn)(const void *from, int64_t n, bool last);

typedef struct arg_job {
    columns_fn columns;
    row_fn row;
    const void *x;
    int64_t *y;
    size_t width;
    int64_t n, inner, groups; /* groups of ARG_COLUMNS in `inner` */
    bool last;
} arg_job;

static sn_status arg_infer(sni_infer *c) {
    const arg_params *p = c->params;
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0), axis, n = 0;
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    if (sni_infer_dim(c, 0, axis) == 0)
        return SNI_INFER_FAIL(c, "axis %d has no elements to choose from", axis);
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        if (i != axis)
            dims[n++] = sni_infer_dim(c, 0, i);
        else if (p->keepdims)
            dims[n++] = 1;
    }
    return sni_infer_set_shape(c, 0, n, dims);
}

/* Items are rows, or groups of columns. */
static void arg_piece(void *ctx, int64_t begin, int64_t end) {
    const arg_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        if (j->inner == 1) {
            j->y[i] = j->row(sni_element(j->x, i * j->n, j->width), j->n, j->last);
            continue;
        }
        int64_t outer = i / j->groups, column = i % j->groups * ARG_COLUMNS;
        int64_t count = j->inner - column < ARG_COLUMNS ? j->inner - column : ARG_COLUMNS;
        j->columns(sni_element(j->x, outer * j->n * j->inner + column, j->width), j->n, j->inner,
                   count, j->last, j->y + outer * j->inner + column);
    }
}

static sn_status arg_run(sni_kernel *k, const columns_fn *columns, const row_fn *rows) {
    const arg_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    if (x->count == 0) return SN_OK;
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    bool narrow = sni_dtype_get(x->dtype)->cls == SNI_CLASS_S;
    sn_dtype dtype = narrow ? SN_FLOAT32 : x->dtype;
    arg_job j = {.columns = columns[dtype],
                 .row = rows[dtype],
                 .x = x->data,
                 .y = sni_out(k, 0)->data,
                 .width = sni_dtype_width(dtype),
                 .n = x->dims[axis],
                 .inner = sni_tensor_span(x, axis + 1, x->rank),
                 .last = p->select_last_index != 0};
    if (narrow) SN_TRY(sni_wide_in(k, x, &j.x));
    if (j.inner > 1 && j.n > INT32_MAX)
        return SNI_KERNEL_FAIL(k, "an axis of %" PRId64 " elements is too long", j.n);
    j.groups = (j.inner - 1) / ARG_COLUMNS + 1;
    int64_t items = x->count / (j.n * j.inner) * j.groups, each = x->count / items;
    sni_parallel_for(k->threads, items, GRAIN / each + 1, arg_piece, &j);
    return SN_OK;
}

static sn_status argmax_ref(sni_kernel *k) {
    static const columns_fn columns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(argmax)};
    static const row_fn rows[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(argmax_row)};
    return arg_run(k, columns, rows);
}

static sn_status argmin_ref(sni_kernel *k) {
    static const columns_fn columns[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(argmin)};
    static const row_fn rows[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(argmin_row)};
    return arg_run(k, columns, rows);
}

#define ARG_PARAMS                                                                      \
    SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(arg_params, axis)},                      \
               {"keepdims", SNI_ATTR_INT, offsetof(arg_params, keepdims), .number = 1}, \
               {"select_last_index", SNI_ATTR_INT, offsetof(arg_params, select_last_index)})

const sni_op sni_op_ArgMax = {
    .name = "ArgMax",
    .versions = SNI_VERSIONS(1, 11, 12, 13),
    .inputs = SNI_FORMALS({"data", "T"}),
    .outputs = SNI_FORMALS({"reduced", "int64"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .params = ARG_PARAMS,
    .params_size = sizeof(arg_params),
    .infer = arg_infer,
    .ref = argmax_ref,
};

const sni_op sni_op_ArgMin = {
    .name = "ArgMin",
    .versions = SNI_VERSIONS(1, 11, 12, 13),
    .inputs = SNI_FORMALS({"data", "T"}),
    .outputs = SNI_FORMALS({"reduced", "int64"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .params = ARG_PARAMS,
    .params_size = sizeof(arg_params),
    .infer = arg_infer,
    .ref = argmin_ref,
};
