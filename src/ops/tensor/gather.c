/* Gather: whole slices of an axis by index. GatherElements: single elements. GatherND: slices by
 * tuples of indices. */
#include "base/checked.h"
#include "ops/tensor/gather.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

typedef struct axis_params {
    int64_t axis;
} axis_params;

/* Rows [begin, end) of `row` bytes, a constant where the call says so. */
static inline __attribute__((always_inline)) void rows_of(const sni_rows *j, int64_t begin,
                                                          int64_t end, size_t row) {
    unsigned char *dst = j->dst + begin * (int64_t)row;
    const unsigned char *src = j->src + begin / j->period * j->step;
    for (int64_t at = begin % j->period; begin < end; at = 0, src += j->step) {
        int64_t stop = j->period - at < end - begin ? j->period : at + (end - begin);
        begin += stop - at;
        for (; at < stop; at++, dst += row) memcpy(dst, src + j->from[at], row);
    }
}

static void copy_rows(void *ctx, int64_t begin, int64_t end) {
    const sni_rows *j = ctx;
    switch (j->row) {
    case 1:
        rows_of(j, begin, end, 1);
        break;
    case 2:
        rows_of(j, begin, end, 2);
        break;
    case 4:
        rows_of(j, begin, end, 4);
        break;
    case 8:
        rows_of(j, begin, end, 8);
        break;
    case 16:
        rows_of(j, begin, end, 16);
        break;
    default:
        rows_of(j, begin, end, j->row);
    }
}

void sni_copy_rows(int threads, const sni_rows *rows, int64_t count) {
    int64_t cost = rows->row < SNI_ELEMENT_COST ? SNI_ELEMENT_COST : (int64_t)rows->row;
    sni_rows job = *rows;
    sni_share(threads, count, cost, copy_rows, &job);
}

/* An index of an axis as sni_wrap_index gives it, without the call where it needs no change. */
static inline sn_status wrapped(sni_kernel *k, int64_t index, int64_t n, int64_t *out) {
    *out = index;
    return index >= 0 && index < n ? SN_OK : sni_wrap_index(k, "index", index, n, out);
}

/* ---- Gather ---- */

/* Elements of the output where the data is a list of integers. */
static sn_status gather_list(sni_infer *c) {
    sni_list list, index;
    SN_TRY(sni_infer_list(c, 0, &list));
    if (!sni_list_has_elements(&list) || sni_infer_rank(c, 1) > 1) return SN_OK;
    SN_TRY(sni_infer_list(c, 1, &index));
    if (!index.exact || index.count > SNI_LIST_MAX) return SN_OK;
    sni_dim dims[SNI_LIST_MAX];
    for (int64_t j = 0; j < index.count; j++) {
        int64_t at = sni_index_at(index.exact, j);
        if (at < 0) at += list.count;
        if (at < 0 || at >= list.count)
            return SNI_INFER_FAIL(c,
                                  "index %" PRId64 " is out of range for an axis of length "
                                  "%" PRId64,
                                  sni_index_at(index.exact, j), list.count);
        dims[j] = sni_list_item(c, &list, at);
    }
    return sni_infer_set_dims(c, 0, (int32_t)index.count, dims);
}

static sn_status gather_infer(sni_infer *c) {
    const axis_params *p = c->params;
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 0), more = sni_infer_rank(c, 1), axis;
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    if (rank - 1 + more > SN_MAX_RANK)
        return SNI_INFER_FAIL(c, "the output has a rank above %d", SN_MAX_RANK);
    sni_dim dims[SN_MAX_RANK];
    int n = 0;
    for (int i = 0; i < axis; i++) dims[n++] = sni_infer_dim(c, 0, i);
    for (int i = 0; i < more; i++) dims[n++] = sni_infer_dim(c, 1, i);
    for (int i = axis + 1; i < rank; i++) dims[n++] = sni_infer_dim(c, 0, i);
    SN_TRY(sni_infer_set_shape(c, 0, n, dims));
    return rank == 1 && n <= 1 ? gather_list(c) : SN_OK;
}

/* One slice by an index that is known, where all axes before it have one element. */
static bool gather_part(sni_infer *c, int out, int64_t *at) {
    const axis_params *p = c->params;
    int rank = sni_infer_rank(c, 0), axis = (int)(p->axis < 0 ? p->axis + rank : p->axis);
    sni_list index;
    int64_t count, v;
    (void)out;
    if (sni_infer_list(c, 1, &index) != SN_OK || !index.known || index.count != 1 ||
        !sni_list_int(&index, 0, &v) ||
        !sni_shape_count(rank - axis - 1, c->in[0]->dims + axis + 1, &count))
        return false;
    for (int i = 0; i < axis; i++)
        if (sni_infer_dim(c, 0, i) != 1) return false;
    sni_dim length = sni_infer_dim(c, 0, axis);
    if (!sni_dim_known(length)) return false;
    if (v < 0) v += length;
    return v >= 0 && v < length && sni_mul_i64(v, count, at);
}

static sn_status gather_ref(sni_kernel *k) {
    const axis_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    if (index->count == 0) return SN_OK;
    int64_t row = sni_tensor_span(x, axis + 1, x->rank) * (int64_t)sni_dtype_width(x->dtype);
    int64_t *from = NULL;
    SN_TRY(sni_scratch_i64(k, index->count, &from));
    for (int64_t i = 0; i < index->count; i++) {
        SN_TRY(wrapped(k, sni_index_at(index, i), x->dims[axis], &from[i]));
        from[i] *= row;
    }
    if (y->count == 0) return SN_OK;
    sni_rows job = {.src = x->data,
                    .dst = y->data,
                    .from = from,
                    .period = index->count,
                    .step = row * x->dims[axis],
                    .row = (size_t)row};
    sni_copy_rows(k->threads, &job, index->count * sni_tensor_span(x, 0, axis));
    return SN_OK;
}

const sni_op sni_op_Gather = {
    .name = "Gather",
    .versions = SNI_VERSIONS(1, 11, 13),
    .inputs = SNI_FORMALS({"data", "T"}, {"indices", "Tind"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"Tind", SNI_T_INDEX}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(axis_params, axis)}),
    .params_size = sizeof(axis_params),
    .infer = gather_infer,
    .ref = gather_ref,
    .part = gather_part,
};

/* ---- GatherElements ---- */

static sn_status gather_elements_infer(sni_infer *c) {
    const axis_params *p = c->params;
    SN_TRY(sni_infer_shape_of(c, 0, 1));
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 0), axis;
    if (sni_infer_rank(c, 1) != rank)
        return SNI_INFER_FAIL(c, "data and indices have ranks %d and %d", rank,
                              sni_infer_rank(c, 1));
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    for (int i = 0; i < rank; i++) {
        sni_dim d = sni_infer_dim(c, 0, i), n = sni_infer_dim(c, 1, i);
        if (i != axis && sni_dim_known(d) && sni_dim_known(n) && n > d)
            return SNI_INFER_FAIL(c, "indices have length %" PRId64 " in axis %d, data %" PRId64, n,
                                  i, d);
    }
    return SN_OK;
}

/* Rows along the last axis of the indices. */
typedef struct element_job {
    const sni_tensor *x, *index;
    unsigned char *dst;
    size_t width;
    int64_t strides[SN_MAX_RANK]; /* of the data; 0 along the axis */
    int64_t step, length;         /* of the axis */
    bool last;                    /* the axis is that of the rows */
    _Atomic bool outside;         /* an index is out of range */
} element_job;

/* One row; `width`, `wide` (int64 indices) and `last` (along the last axis) are constants at every
 * call. */
static inline __attribute__((always_inline)) bool gather_row(const element_job *j, int64_t at,
                                                             const unsigned char *src, size_t width,
                                                             bool wide, bool last) {
    const int64_t n = j->index->dims[j->index->rank - 1], length = j->length;
    const int64_t step = (last ? 1 : j->step) * (int64_t)width, own = last ? 0 : (int64_t)width;
    const int64_t *index64 = (const int64_t *)j->index->data + at;
    const int32_t *index32 = (const int32_t *)j->index->data + at;
    unsigned char *dst = j->dst + at * (int64_t)width;
#pragma GCC unroll 4
    for (int64_t i = 0; i < n; i++) {
        int64_t v = wide ? index64[i] : index32[i];
        if (__builtin_expect((uint64_t)v >= (uint64_t)length, 0)) {
            v += v < 0 ? length : 0;
            if ((uint64_t)v >= (uint64_t)length) return false;
        }
        memcpy(dst + i * (int64_t)width, src + v * step + i * own, width);
    }
    return true;
}

static inline __attribute__((always_inline)) bool
gather_width(const element_job *j, int64_t at, const unsigned char *src, bool wide, bool last) {
    switch (j->width) {
    case 1:
        return gather_row(j, at, src, 1, wide, last);
    case 2:
        return gather_row(j, at, src, 2, wide, last);
    case 4:
        return gather_row(j, at, src, 4, wide, last);
    case 8:
        return gather_row(j, at, src, 8, wide, last);
    default:
        return gather_row(j, at, src, 16, wide, last);
    }
}

static void element_rows(void *ctx, int64_t begin, int64_t end) {
    element_job *j = ctx;
    int last = j->index->rank - 1;
    int64_t n = j->index->dims[last];
    bool wide = j->index->dtype == SN_INT64;
    for (int64_t r = begin; r < end; r++) {
        int64_t rest = r, from = 0;
        for (int d = last - 1; d >= 0; d--) {
            from += rest % j->index->dims[d] * j->strides[d];
            rest /= j->index->dims[d];
        }
        const unsigned char *src = sni_element(j->x->data, from, j->width);
        bool fits = wide ? (j->last ? gather_width(j, r * n, src, true, true)
                                    : gather_width(j, r * n, src, true, false))
                         : (j->last ? gather_width(j, r * n, src, false, true)
                                    : gather_width(j, r * n, src, false, false));
        if (!fits) j->outside = true;
    }
}

static sn_status gather_elements_ref(sni_kernel *k) {
    const axis_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1);
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    if (index->count == 0) return SN_OK;
    element_job j = {.x = x,
                     .index = index,
                     .dst = sni_out(k, 0)->data,
                     .width = sni_dtype_width(x->dtype),
                     .length = x->dims[axis]};
    sni_strides(x->rank, x->dims, j.strides);
    j.step = j.strides[axis];
    j.strides[axis] = 0;
    j.last = axis == x->rank - 1;
    int64_t n = index->dims[x->rank - 1];
    sni_share(k->threads, index->count / n, SNI_ELEMENT_COST * n, element_rows, &j);
    int64_t at;
    for (int64_t i = 0; j.outside && i < index->count; i++)
        SN_TRY(sni_wrap_index(k, "index", sni_index_at(index, i), j.length, &at));
    return SN_OK;
}

const sni_op sni_op_GatherElements = {
    .name = "GatherElements",
    .versions = SNI_VERSIONS(11, 13),
    .inputs = SNI_FORMALS({"data", "T"}, {"indices", "Tind"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"Tind", SNI_T_INDEX}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(axis_params, axis)}),
    .params_size = sizeof(axis_params),
    .infer = gather_elements_infer,
    .ref = gather_elements_ref,
};

/* ---- GatherND ---- */

static sn_status gather_nd_infer(sni_infer *c) {
    const sni_gather_nd_params *p = c->params;
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 0), q = sni_infer_rank(c, 1);
    if (rank < 1 || q < 1) return SNI_INFER_FAIL(c, "data or indices are scalars");
    if (p->batch_dims < 0 || p->batch_dims >= q || p->batch_dims >= rank)
        return SNI_INFER_FAIL(c, "batch_dims %" PRId64 " for ranks %d and %d", p->batch_dims, rank,
                              q);
    sni_dim dims[2 * SN_MAX_RANK], tuple = sni_infer_dim(c, 1, q - 1);
    int batch = (int)p->batch_dims, n = 0;
    for (; n < batch; n++)
        SN_TRY(sni_infer_join_dim(c, "data and indices", n, sni_infer_dim(c, 0, n),
                                  sni_infer_dim(c, 1, n), &dims[n]));
    if (!sni_dim_known(tuple)) return SN_OK;
    if (tuple < 1 || tuple > rank - batch)
        return SNI_INFER_FAIL(c, "tuples of %" PRId64 " indices for %d axes", tuple, rank - batch);
    for (int i = batch; i < q - 1; i++) dims[n++] = sni_infer_dim(c, 1, i);
    for (int i = batch + (int)tuple; i < rank; i++) dims[n++] = sni_infer_dim(c, 0, i);
    if (n > SN_MAX_RANK) return SNI_INFER_FAIL(c, "the output has a rank above %d", SN_MAX_RANK);
    return sni_infer_set_shape(c, 0, n, dims);
}

static sn_status gather_nd_ref(sni_kernel *k) {
    const sni_gather_nd_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    int batch = (int)p->batch_dims, tuple = (int)index->dims[index->rank - 1];
    int64_t batches = sni_tensor_span(x, 0, batch);
    int64_t per_batch = sni_tensor_span(index, batch, index->rank - 1);
    if (batches == 0 || per_batch == 0) return SN_OK;
    int64_t width = (int64_t)sni_dtype_width(x->dtype), strides[SN_MAX_RANK];
    sni_strides(x->rank, x->dims, strides);
    int64_t *from = NULL;
    SN_TRY(sni_scratch_i64(k, batches * per_batch, &from));
    int64_t batch_step = sni_tensor_span(x, batch, x->rank);
    for (int64_t i = 0; i < batches * per_batch; i++) {
        from[i] = i / per_batch * batch_step;
        for (int a = 0; a < tuple; a++) {
            int64_t at;
            SN_TRY(wrapped(k, sni_index_at(index, i * tuple + a), x->dims[batch + a], &at));
            from[i] += at * strides[batch + a];
        }
        from[i] *= width;
    }
    if (y->count == 0) return SN_OK;
    sni_rows job = {.src = x->data,
                    .dst = y->data,
                    .from = from,
                    .period = batches * per_batch,
                    .row = (size_t)(sni_tensor_span(x, batch + tuple, x->rank) * width)};
    sni_copy_rows(k->threads, &job, batches * per_batch);
    return SN_OK;
}

const sni_op sni_op_GatherND = {
    .name = "GatherND",
    .versions = SNI_VERSIONS(11, 12, 13),
    .inputs = SNI_FORMALS({"data", "T"}, {"indices", "int64"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"batch_dims", SNI_ATTR_INT, offsetof(sni_gather_nd_params, batch_dims)}),
    .params_size = sizeof(sni_gather_nd_params),
    .infer = gather_nd_infer,
    .ref = gather_nd_ref,
};
