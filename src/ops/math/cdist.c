/* CDist: the distance of every row of one matrix to every row of another. */
#include "base/threadpool.h"
#include "ops/core/op.h"
#include "ops/core/tensor_util.h"

#include <math.h>

#define BODY "ops/math/cdist.inc.c"
#include "ops/core/each_float.inc.h"
#undef BODY

typedef struct cdist_params {
    int32_t metric; /* 0 squares, 1 their roots */
} cdist_params;

static sn_status cdist_infer(sni_infer *c) {
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    if (sni_infer_rank(c, 0) != 2 || sni_infer_rank(c, 1) != 2)
        return SNI_INFER_FAIL(c, "A and B have ranks %d and %d, not 2", sni_infer_rank(c, 0),
                              sni_infer_rank(c, 1));
    if (sni_dim_differ(sni_infer_dim(c, 0, 1), sni_infer_dim(c, 1, 1)))
        return SNI_INFER_FAIL(c, "rows of %lld and %lld elements",
                              (long long)sni_infer_dim(c, 0, 1), (long long)sni_infer_dim(c, 1, 1));
    return sni_infer_set_shape(c, 0, 2,
                               (sni_dim[]){sni_infer_dim(c, 0, 0), sni_infer_dim(c, 1, 0)});
}

typedef struct cdist_job {
    const sni_tensor *a, *b;
    sni_tensor *y;
    bool root;
} cdist_job;

static void cdist_rows(void *ctx, int64_t begin, int64_t end) {
    const cdist_job *j = ctx;
    size_t width = sni_dtype_width(j->a->dtype);
    int64_t n = j->a->dims[1], rows = j->b->dims[0];
    for (int64_t i = begin; i < end; i++) {
        const void *a = sni_element(j->a->data, i * n, width);
        void *y = sni_element(j->y->data, i * rows, width);
        if (j->a->dtype == SN_FLOAT64)
            distances_f64(a, j->b->data, y, rows, n, j->root);
        else
            distances_f32(a, j->b->data, y, rows, n, j->root);
    }
}

static sn_status cdist_ref(sni_kernel *k) {
    const cdist_params *p = k->params;
    cdist_job j = {sni_in(k, 0), sni_in(k, 1), sni_out(k, 0), p->metric == 1};
    if (j.y->count == 0) return SN_OK;
    int64_t grain = 16384 / (j.b->count + 1) + 1;
    sni_parallel_for(k->threads, j.a->dims[0], grain, cdist_rows, &j);
    return SN_OK;
}

const sni_op sni_op_ms_CDist = {
    .name = "CDist",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T"}, {"B", "T"}),
    .outputs = SNI_FORMALS({"C", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64)}),
    .params = SNI_PARAMS({"metric", SNI_ATTR_STRING, offsetof(cdist_params, metric),
                          .text = "sqeuclidean", .choices = "sqeuclidean|euclidean"}),
    .params_size = sizeof(cdist_params),
    .infer = cdist_infer,
    .ref = cdist_ref,
};
