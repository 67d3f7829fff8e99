/* Col2Im: an image put together from its windows, overlapping elements added. */
#include "ops/nn/col2im.h"

#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"

#include <limits.h>
#include <string.h>

#define BODY "ops/nn/col2im.inc.c"
#include "ops/core/each_float.inc.h"
#include "ops/core/each_uint.inc.h"
#define T float _Complex
#define SUFFIX c64
#include BODY
#undef T
#undef SUFFIX
#define T double _Complex
#define SUFFIX c128
#include BODY
#undef T
#undef SUFFIX
#define T bool
#define SUFFIX b8
#include BODY
#undef T
#undef SUFFIX
#undef BODY

const sni_scatter_fn sni_scatter_windows[SNI_DTYPE_COUNT] = {
    SNI_EACH_FLOAT(scatter),      SNI_EACH_UINT(scatter),         [SN_INT8] = scatter_u8,
    [SN_INT16] = scatter_u16,     [SN_INT32] = scatter_u32,       [SN_INT64] = scatter_u64,
    [SN_COMPLEX64] = scatter_c64, [SN_COMPLEX128] = scatter_c128, [SN_BOOL] = scatter_b8,
};

typedef struct col2im_params {
    sni_window_params window; /* without kernel_shape: that is an input */
} col2im_params;

/* Reads image_shape and block_shape; *known false if one is not known yet. */
static sn_status read_shapes(sni_infer *c, const sni_dim **image, const sni_dim **block, int *rank,
                             bool *known) {
    int32_t n_image, n_block;
    *known = false;
    SN_TRY(sni_infer_dims(c, 1, image, &n_image));
    SN_TRY(sni_infer_dims(c, 2, block, &n_block));
    if (!*image || !*block) return SN_OK;
    if (n_image != n_block || n_image < 1 || n_image > SN_MAX_RANK - 2)
        return SNI_INFER_FAIL(c, "image_shape has %d elements and block_shape %d", n_image,
                              n_block);
    for (int i = 0; i < n_image; i++)
        if ((!sni_dim_is_symbol((*image)[i]) && ((*image)[i] < 0 || (*image)[i] > INT_MAX)) ||
            (!sni_dim_is_symbol((*block)[i]) && ((*block)[i] < 1 || (*block)[i] > INT_MAX)))
            return SNI_INFER_FAIL(c, "image_shape[%d] is %lld and block_shape[%d] is %lld", i,
                                  (long long)(*image)[i], i, (long long)(*block)[i]);
    *rank = n_image;
    *known = true;
    return SN_OK;
}

static sn_status col2im_infer(sni_infer *c) {
    const col2im_params *p = c->params;
    const sni_dim *image, *block;
    sni_dim dims[SN_MAX_RANK], positions[SN_MAX_RANK];
    int rank = 0;
    bool known;
    SN_TRY(read_shapes(c, &image, &block, &rank, &known));
    if (!known || !sni_infer_shaped(c, 0)) return SN_OK;
    if (sni_infer_rank(c, 0) != 3)
        return SNI_INFER_FAIL(c, "the input has rank %d, not 3", sni_infer_rank(c, 0));
    sni_window w;
    SN_TRY(sni_window_init(&w, &p->window, rank, block, c->err));
    SN_TRY(sni_window_sizes(&w, &p->window, image, positions, c->symbols, c->err));
    sni_dim taps = 1, total = 1, rows = sni_infer_dim(c, 0, 1), columns = sni_infer_dim(c, 0, 2);
    for (int i = 0; i < rank; i++) {
        taps = sni_dim_mul(c->symbols, taps, block[i]);
        total = sni_dim_mul(c->symbols, total, positions[i]);
        dims[2 + i] = image[i];
    }
    if (sni_dim_known(total) && sni_dim_known(columns) && total != columns)
        return SNI_INFER_FAIL(c, "%lld columns for %lld window positions", (long long)columns,
                              (long long)total);
    if (sni_dim_known(taps) && sni_dim_known(rows) && rows % taps)
        return SNI_INFER_FAIL(c, "%lld rows do not divide into windows of %lld", (long long)rows,
                              (long long)taps);
    dims[0] = sni_infer_dim(c, 0, 0);
    dims[1] =
        sni_dim_known(taps) ? sni_dim_floordiv(c->symbols, rows, taps) : sni_dim_fresh(c->symbols);
    return sni_infer_set_shape(c, 0, rank + 2, dims);
}

typedef struct image_job {
    sni_window window;
    sni_scatter_fn fn;
    const void *x;
    void *y;
    int64_t columns, plane; /* elements of one channel's windows and image */
    size_t width;
} image_job;

static void image_piece(void *ctx, int64_t begin, int64_t end) {
    const image_job *j = ctx;
    for (int64_t i = begin; i < end; i++)
        j->fn(&j->window, sni_element(j->x, i * j->columns, j->width),
              sni_element(j->y, i * j->plane, j->width));
}

static sn_status col2im_ref(sni_kernel *k) {
    const col2im_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *block = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    int rank = y->rank - 2;
    sn_dtype dtype = sni_compute_dtype(x->dtype);
    image_job job = {.fn = sni_scatter_windows[dtype], .width = sni_dtype_width(dtype)};
    sni_dim positions[SN_MAX_RANK];
    if (y->count == 0) return SN_OK;
    SN_TRY(sni_window_init(&job.window, &p->window, rank, block->data, k->err));
    SN_TRY(sni_window_sizes(&job.window, &p->window, y->dims + 2, positions, NULL, k->err));
    sni_window_place(&job.window, &p->window, y->dims + 2, positions);
    SN_TRY(sni_in_as(k, x, dtype, &job.x));
    SN_TRY(sni_out_as(k, y, dtype, &job.y));
    job.plane = sni_tensor_span(y, 2, y->rank);
    job.columns = x->dims[1] / y->dims[1] * x->dims[2];
    memset(job.y, 0, (size_t)y->count * job.width);
    sni_parallel_for(k->threads, y->dims[0] * y->dims[1], 8192 / (job.columns + 1) + 1, image_piece,
                     &job);
    sni_out_done(k, y, dtype, job.y);
    return SN_OK;
}

const sni_op sni_op_Col2Im = {
    .name = "Col2Im",
    .versions = SNI_VERSIONS(18),
    .inputs = SNI_FORMALS({"input", "T"}, {"image_shape", "int64"}, {"block_shape", "int64"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_NUMBERS | SNI_T_COMPLEX | SNI_T(SN_BOOL)}),
    .params = SNI_PARAMS({"dilations", SNI_ATTR_INTS, offsetof(col2im_params, window.dilations)},
                         {"pads", SNI_ATTR_INTS, offsetof(col2im_params, window.pads)},
                         {"strides", SNI_ATTR_INTS, offsetof(col2im_params, window.strides)}),
    .params_size = sizeof(col2im_params),
    .infer = col2im_infer,
    .ref = col2im_ref,
};
