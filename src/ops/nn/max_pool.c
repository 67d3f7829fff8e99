/* MaxPool and GlobalMaxPool: the maximum under each window, and its index. */
#include "base/threadpool.h"
#include "ops/nn/pool.h"
#include "ops/core/typed.h"

#include <math.h>

enum { PLACE_GRAIN = 16384 }; /* indices worth a thread */

#define BODY "ops/nn/max_pool.inc.c"
#define LOWEST (-(T)INFINITY)
#define IS_NAN(v) isnan(v)
#include "ops/core/each_float.inc.h"
#undef LOWEST
#undef IS_NAN
#define IS_NAN(v) false
#define LOWEST INT8_MIN
#define TYPE SNI_TYPE_I8
#include "ops/core/one_type.inc.h"
#undef LOWEST
#define LOWEST 0
#define TYPE SNI_TYPE_U8
#include "ops/core/one_type.inc.h"
#undef LOWEST
#undef IS_NAN
#undef BODY

/* Indices within planes become indices within the whole tensor. */
typedef struct place_job {
    const sni_tensor *x;
    int64_t *indices;
    int64_t in_plane, out_plane;
    bool column_major;
} place_job;

/* A row-major index within a plane as a column-major one. */
static int64_t transposed_index(const sni_tensor *x, int64_t index) {
    int64_t at[SN_MAX_RANK], transposed = 0;
    for (int i = x->rank - 1; i >= 2; i--) {
        at[i] = index % x->dims[i];
        index /= x->dims[i];
    }
    for (int i = x->rank - 1; i >= 2; i--) transposed = transposed * x->dims[i] + at[i];
    return transposed;
}

static void place_planes(void *ctx, int64_t begin, int64_t end) {
    const place_job *j = ctx;
    for (int64_t plane = begin; plane < end; plane++) {
        int64_t *v = j->indices + plane * j->out_plane, first = plane * j->in_plane;
        for (int64_t i = 0; j->column_major && i < j->out_plane; i++)
            if (v[i] >= 0) v[i] = transposed_index(j->x, v[i]);
        for (int64_t i = 0; i < j->out_plane; i++) v[i] = v[i] < 0 ? v[i] : v[i] + first;
    }
}

static sn_status max_ref(sni_kernel *k) {
    static const sni_pool_fn fns[SNI_DTYPE_COUNT] = {
        SNI_EACH_FLOAT(max_window), [SN_INT8] = max_window_i8, [SN_UINT8] = max_window_u8};
    const sni_pool_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *indices = sni_out(k, 1);
    SN_TRY(sni_pool_run(k, fns, false));
    if (!indices) return SN_OK;
    place_job job = {.x = x,
                     .indices = indices->data,
                     .in_plane = sni_tensor_span(x, 2, x->rank),
                     .out_plane = sni_tensor_span(indices, 2, indices->rank),
                     .column_major = p->storage_order == 1};
    sni_parallel_for(k->threads, x->dims[0] * x->dims[1], PLACE_GRAIN / (job.out_plane + 1) + 1,
                     place_planes, &job);
    return SN_OK;
}

static sn_status global_max_ref(sni_kernel *k) {
    static const sni_pool_fn fns[SNI_DTYPE_COUNT] = {SNI_EACH_FLOAT(global_max)};
    return sni_pool_run(k, fns, true);
}

const sni_op sni_op_MaxPool = {
    .name = "MaxPool",
    .versions = SNI_VERSIONS(1, 8, 10, 11, 12, 22),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}, {"Indices", "int64", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS | SNI_T(SN_INT8) | SNI_T(SN_UINT8)}),
    .params = SNI_PARAMS(SNI_POOL_PARAMS,
                         {"storage_order", SNI_ATTR_INT, offsetof(sni_pool_params, storage_order)}),
    .params_size = sizeof(sni_pool_params),
    .infer = sni_infer_window_pool,
    .ref = max_ref,
};

const sni_op sni_op_GlobalMaxPool = {
    .name = "GlobalMaxPool",
    .versions = SNI_VERSIONS(1, 22),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .infer = sni_infer_global_pool,
    .ref = global_max_ref,
};
