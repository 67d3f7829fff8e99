/* Range: start, start + delta, start + 2 delta, ... below limit. */
#include "base/floats.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>
#include <math.h>

#define BODY "ops/tensor/range.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

typedef int64_t (*count_fn)(const void *start, const void *limit, const void *delta);
typedef void (*fill_fn)(const void *start, const void *delta, void *out, int64_t begin,
                        int64_t end);

typedef struct range_params {
    int64_t stash_type; /* narrow floats are computed in float whatever it says */
} range_params;

/* A scalar input, widened to float where it is a narrow float. */
static const void *scalar(const sni_tensor *t, float *wide) {
    if (sni_dtype_get(t->dtype)->cls != SNI_CLASS_S) return t->data;
    sni_widen(t->dtype, t->data, wide, 1);
    return wide;
}

/* Length where start, limit and delta are dimensions that may be symbols. */
static sn_status symbolic_length(sni_infer *c, sni_dim *out) {
    sni_list list[3];
    for (int i = 0; i < 3; i++) {
        SN_TRY(sni_infer_list(c, i, &list[i]));
        if (!sni_list_has_elements(&list[i]) || list[i].count != 1) return SN_OK;
    }
    sni_dim from = sni_list_item(c, &list[0], 0), to = sni_list_item(c, &list[1], 0);
    int64_t step;
    if (!sni_list_int(&list[2], 0, &step) || step <= 0) return SN_OK;
    sni_dim far = from == 0 ? to : sni_dim_sub(c->symbols, to, from);
    if (from != 0) far = sni_dim_max(c->symbols, 0, far);
    *out = sni_dim_ceildiv(c->symbols, far, step);
    return SN_OK;
}

/* Elements of a short range of integers. */
static sn_status range_list(sni_infer *c, const sni_tensor *start, const sni_tensor *delta,
                            int64_t n) {
    if (n > SNI_LIST_MAX || (start->dtype != SN_INT64 && start->dtype != SN_INT32)) return SN_OK;
    sni_dim dims[SNI_LIST_MAX];
    int64_t a = sni_index_at(start, 0), d = sni_index_at(delta, 0);
    for (int64_t i = 0; i < n; i++) {
        dims[i] = (int64_t)((uint64_t)a + (uint64_t)i * (uint64_t)d);
        if (dims[i] < SNI_DIM_LOWEST) dims[i] = SNI_DIM_LOWEST;
    }
    return sni_infer_set_dims(c, 0, (int32_t)n, dims);
}

static sn_status range_infer(sni_infer *c) {
    static const count_fn counts[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(range_count)};
    const sni_tensor *t[3];
    bool all = true;
    for (int i = 0; i < 3; i++) {
        SN_TRY(sni_infer_known(c, i, &t[i]));
        if (t[i] && t[i]->count != 1)
            return SNI_INFER_FAIL(c, "input %d has %" PRId64 " elements, not 1", i, t[i]->count);
        all = all && t[i];
    }
    sni_dim n = sni_dim_fresh(c->symbols);
    if (!all) {
        SN_TRY(symbolic_length(c, &n));
        return sni_infer_set_shape(c, 0, 1, &n);
    }
    float wide[3];
    sn_dtype dtype = t[0]->dtype;
    count_fn count = counts[sni_dtype_get(dtype)->cls == SNI_CLASS_S ? SN_FLOAT32 : dtype];
    n = count(scalar(t[0], &wide[0]), scalar(t[1], &wide[1]), scalar(t[2], &wide[2]));
    if (n < 0) return SNI_INFER_FAIL(c, "delta is 0, or start, limit or delta is not a number");
    SN_TRY(sni_infer_set_shape(c, 0, 1, &n));
    return range_list(c, t[0], t[2], n);
}

typedef struct range_job {
    fill_fn fill;
    const void *start, *delta;
    void *out;
} range_job;

static void range_piece(void *ctx, int64_t begin, int64_t end) {
    const range_job *j = ctx;
    j->fill(j->start, j->delta, j->out, begin, end);
}

static sn_status range_ref(sni_kernel *k) {
    static const fill_fn fills[SNI_DTYPE_COUNT] = {SNI_EACH_NUMBER(range_fill)};
    const sni_tensor *start = sni_in(k, 0), *delta = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    float wide[2];
    bool narrow = sni_dtype_get(y->dtype)->cls == SNI_CLASS_S;
    range_job j = {.fill = fills[narrow ? SN_FLOAT32 : y->dtype],
                   .start = scalar(start, &wide[0]),
                   .delta = scalar(delta, &wide[1]),
                   .out = y->data};
    if (narrow) SN_TRY(sni_wide_out(k, y, &j.out));
    sni_share(k->threads, y->count, (int64_t)sni_dtype_width(y->dtype), range_piece, &j);
    if (narrow) sni_wide_done(y, j.out);
    return SN_OK;
}

const sni_op sni_op_Range = {
    .name = "Range",
    .versions = SNI_VERSIONS(11, 27),
    .inputs = SNI_FORMALS({"start", "T"}, {"limit", "T"}, {"delta", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS}),
    .params =
        SNI_PARAMS({"stash_type", SNI_ATTR_INT, offsetof(range_params, stash_type), .number = 1}),
    .params_size = sizeof(range_params),
    .infer = range_infer,
    .ref = range_ref,
};
