/* ScatterElements (and Scatter, its old name) and ScatterND: a copy of a tensor with some elements
 * or slices replaced by, or combined with, updates. */
#include "base/floats.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <complex.h>
#include <inttypes.h>

#define BODY "ops/tensor/scatter.inc.c"
#include "ops/core/each_number.inc.h"
#undef BODY

/* ---- Reductions ---- */

enum { NONE, ADD, MUL, MAX, MIN };
#define REDUCTIONS "none|add|mul|max|min"

typedef void (*combine_fn)(void *dst, const void *src);

static void bool_or(void *dst, const void *src) {
    *(uint8_t *)dst = *(uint8_t *)dst || *(const uint8_t *)src;
}

static void bool_and(void *dst, const void *src) {
    *(uint8_t *)dst = *(uint8_t *)dst && *(const uint8_t *)src;
}

static void add_c64(void *dst, const void *src) {
    *(float complex *)dst += *(const float complex *)src;
}

static void mul_c64(void *dst, const void *src) {
    *(float complex *)dst *= *(const float complex *)src;
}

static void add_c128(void *dst, const void *src) {
    *(double complex *)dst += *(const double complex *)src;
}

static void mul_c128(void *dst, const void *src) {
    *(double complex *)dst *= *(const double complex *)src;
}

static const combine_fn combine_fns[5][SNI_DTYPE_COUNT] = {
    [ADD] = {SNI_EACH_NUMBER(scatter_add), [SN_BOOL] = bool_or, [SN_COMPLEX64] = add_c64,
             [SN_COMPLEX128] = add_c128},
    [MUL] = {SNI_EACH_NUMBER(scatter_mul), [SN_BOOL] = bool_and, [SN_COMPLEX64] = mul_c64,
             [SN_COMPLEX128] = mul_c128},
    [MAX] = {SNI_EACH_NUMBER(scatter_max), [SN_BOOL] = bool_or},
    [MIN] = {SNI_EACH_NUMBER(scatter_min), [SN_BOOL] = bool_and},
};

/* How updates reach the output. */
typedef struct combiner {
    combine_fn fn; /* NULL: they replace what was there */
    sn_dtype dtype;
    size_t width;
    bool narrow; /* fn is that of float */
} combiner;

static sn_status combiner_init(sni_kernel *k, sn_dtype dtype, int32_t reduction, combiner *out) {
    combiner b = {.dtype = dtype, .width = sni_dtype_width(dtype)};
    if (reduction != NONE) {
        b.narrow = sni_dtype_get(dtype)->cls == SNI_CLASS_S;
        b.fn = combine_fns[reduction][b.narrow ? SN_FLOAT32 : dtype];
        if (!b.fn)
            return sni_fail(k->err, SN_UNSUPPORTED, "this reduction is not defined for %s",
                            sn_dtype_name(dtype));
    }
    *out = b;
    return SN_OK;
}

/* Brings n updates to consecutive elements. */
static void combine(const combiner *b, void *dst, const void *src, int64_t n) {
    if (!b->fn) {
        if (n == 1)
            sni_copy_element(dst, src, b->width);
        else
            sni_copy_bytes(dst, src, (size_t)n * b->width);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        void *d = sni_element(dst, i, b->width);
        const void *s = sni_element(src, i, b->width);
        if (b->narrow) {
            float wide = sni_narrow_to_f32(b->dtype, d), more = sni_narrow_to_f32(b->dtype, s);
            b->fn(&wide, &more);
            sni_narrow(b->dtype, &wide, d, 1, true);
        } else {
            b->fn(d, s);
        }
    }
}

/* ---- ScatterElements ---- */

typedef struct scatter_params {
    int64_t axis;
    int32_t reduction;
} scatter_params;

static sn_status scatter_elements_infer(sni_infer *c) {
    const scatter_params *p = c->params;
    SN_TRY(sni_infer_same(c));
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1) || !sni_infer_shaped(c, 2)) return SN_OK;
    int rank = sni_infer_rank(c, 0), axis;
    if (sni_infer_rank(c, 1) != rank || sni_infer_rank(c, 2) != rank)
        return SNI_INFER_FAIL(c, "data, indices and updates have ranks %d, %d and %d", rank,
                              sni_infer_rank(c, 1), sni_infer_rank(c, 2));
    SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
    for (int i = 0; i < rank; i++) {
        sni_dim d = sni_infer_dim(c, 0, i), n;
        SN_TRY(sni_infer_join_dim(c, "indices and updates", i, sni_infer_dim(c, 1, i),
                                  sni_infer_dim(c, 2, i), &n));
        if (i != axis && sni_dim_known(d) && sni_dim_known(n) && n > d)
            return SNI_INFER_FAIL(c, "indices have length %" PRId64 " in axis %d, data %" PRId64, n,
                                  i, d);
    }
    return SN_OK;
}

/* Updates by rows of the last axis of the indices. Those of one place are of one row if that is
 * the axis, of one column otherwise: who has rows, or columns, to himself has places to himself. */
typedef struct element_job {
    const combiner *b;
    const sni_tensor *index, *updates, *y;
    int64_t strides[SN_MAX_RANK]; /* of the output; 0 along the axis */
    int64_t step, length;         /* of the axis */
    int64_t rows, columns;
    _Atomic bool outside; /* an index is out of range */
} element_job;

/* Columns [begin, end) of the row whose updates are from number `first` on. `width` and `wide`
 * (int64 indices) are constants at every call; width 0: updates are combined. */
static inline __attribute__((always_inline)) bool scatter_row(const element_job *j, int64_t first,
                                                              unsigned char *dst, int64_t begin,
                                                              int64_t end, size_t width,
                                                              bool wide) {
    const int64_t length = j->length, size = (int64_t)(width ? width : j->b->width);
    const int64_t step = j->step * size, own = j->strides[j->index->rank - 1] * size;
    const int64_t *index64 = (const int64_t *)j->index->data + first;
    const int32_t *index32 = (const int32_t *)j->index->data + first;
    const unsigned char *src = (const unsigned char *)j->updates->data + first * size;
    for (int64_t i = begin; i < end; i++) {
        int64_t v = wide ? index64[i] : index32[i];
        v += v < 0 ? length : 0;
        if ((uint64_t)v >= (uint64_t)length) return false;
        if (width)
            memcpy(dst + v * step + i * own, src + i * size, width);
        else
            combine(j->b, dst + v * step + i * own, src + i * size, 1);
    }
    return true;
}

static inline __attribute__((always_inline)) bool scatter_width(const element_job *j, int64_t first,
                                                                unsigned char *dst, int64_t begin,
                                                                int64_t end, bool wide) {
    switch (j->b->fn ? 0 : j->b->width) {
    case 1:
        return scatter_row(j, first, dst, begin, end, 1, wide);
    case 4:
        return scatter_row(j, first, dst, begin, end, 4, wide);
    case 8:
        return scatter_row(j, first, dst, begin, end, 8, wide);
    default:
        return scatter_row(j, first, dst, begin, end, 0, wide);
    }
}

static bool scatter_rows(const element_job *j, int64_t row, int64_t rows, int64_t begin,
                         int64_t end) {
    const sni_tensor *index = j->index;
    for (int64_t r = row; r < rows; r++) {
        int64_t rest = r, to = 0, first = r * j->columns;
        for (int d = index->rank - 2; d >= 0; d--) {
            to += rest % index->dims[d] * j->strides[d];
            rest /= index->dims[d];
        }
        unsigned char *dst = sni_element(j->y->data, to, j->b->width);
        bool fits = index->dtype == SN_INT64 ? scatter_width(j, first, dst, begin, end, true)
                                             : scatter_width(j, first, dst, begin, end, false);
        if (!fits) return false;
    }
    return true;
}

static void some_rows(void *ctx, int64_t begin, int64_t end) {
    element_job *j = ctx;
    if (!scatter_rows(j, begin, end, 0, j->columns)) j->outside = true;
}

static void some_columns(void *ctx, int64_t begin, int64_t end) {
    element_job *j = ctx;
    if (!scatter_rows(j, 0, j->rows, begin, end)) j->outside = true;
}

static sn_status scatter_elements_ref(sni_kernel *k) {
    const scatter_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    combiner b = {0};
    SN_TRY(combiner_init(k, x->dtype, p->reduction, &b));
    sni_copy_shared(k->threads, y->data, x->data, sni_tensor_bytes(x));
    if (index->count == 0) return SN_OK;
    element_job j = {.b = &b,
                     .index = index,
                     .updates = sni_in(k, 2),
                     .y = y,
                     .length = x->dims[axis],
                     .columns = index->dims[index->rank - 1]};
    j.rows = index->count / j.columns;
    sni_strides(x->rank, x->dims, j.strides);
    j.step = j.strides[axis];
    j.strides[axis] = 0;
    if (axis == x->rank - 1)
        sni_share(k->threads, j.rows, SNI_ELEMENT_COST * j.columns, some_rows, &j);
    else
        sni_share(k->threads, j.columns, SNI_ELEMENT_COST * j.rows, some_columns, &j);
    int64_t at;
    for (int64_t i = 0; j.outside && i < index->count; i++)
        SN_TRY(sni_wrap_index(k, "index", sni_index_at(index, i), j.length, &at));
    return SN_OK;
}

const sni_op sni_op_ScatterElements = {
    .name = "ScatterElements",
    .versions = SNI_VERSIONS(11, 13, 16, 18),
    .inputs = SNI_FORMALS({"data", "T"}, {"indices", "Tind"}, {"updates", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"Tind", SNI_T_INDEX}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(scatter_params, axis)},
                         {"reduction", SNI_ATTR_STRING, offsetof(scatter_params, reduction),
                          .text = "none", .choices = REDUCTIONS}),
    .params_size = sizeof(scatter_params),
    .inplace = 1,
    .infer = scatter_elements_infer,
    .ref = scatter_elements_ref,
};

/* ScatterElements is what it was renamed to. */
static sn_status scatter_upgrade(sni_upgrade *u) {
    u->node->type = SNI_STR("ScatterElements");
    return SN_OK;
}

const sni_op sni_op_Scatter = {
    .name = "Scatter",
    .versions = SNI_VERSIONS(9, 11),
    .inputs = SNI_FORMALS({"data", "T"}, {"indices", "Tind"}, {"updates", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"Tind", SNI_T_INDEX}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(scatter_params, axis)}),
    .params_size = sizeof(scatter_params),
    .inplace = 1,
    .upgrade = scatter_upgrade,
    .infer = scatter_elements_infer,
    .ref = scatter_elements_ref,
};

/* ---- ScatterND ---- */

typedef struct scatter_nd_params {
    int32_t reduction;
} scatter_nd_params;

static sn_status scatter_nd_infer(sni_infer *c) {
    SN_TRY(sni_infer_same(c));
    if (!sni_infer_shaped(c, 0) || !sni_infer_shaped(c, 1)) return SN_OK;
    int rank = sni_infer_rank(c, 0), q = sni_infer_rank(c, 1);
    if (rank < 1 || q < 1) return SNI_INFER_FAIL(c, "data or indices are scalars");
    sni_dim tuple = sni_infer_dim(c, 1, q - 1);
    if (!sni_dim_known(tuple)) return SN_OK;
    if (tuple > rank)
        return SNI_INFER_FAIL(c, "tuples of %" PRId64 " indices for %d axes", tuple, rank);
    if (!sni_infer_shaped(c, 2)) return SN_OK;
    int n = (int)tuple, want = q - 1 + rank - n;
    if (sni_infer_rank(c, 2) != want)
        return SNI_INFER_FAIL(c, "updates have rank %d, not %d", sni_infer_rank(c, 2), want);
    for (int i = 0; i < want; i++) {
        sni_dim d = i < q - 1 ? sni_infer_dim(c, 1, i) : sni_infer_dim(c, 0, i - (q - 1) + n);
        SN_TRY(sni_infer_join_dim(c, "updates and what they replace", i, d, sni_infer_dim(c, 2, i),
                                  &d));
    }
    return SN_OK;
}

typedef struct nd_job {
    const combiner *b;
    int64_t row, n;        /* elements of an update; how many there are */
    const int64_t *places; /* where they go, in elements */
    void *y;
    const void *src;
} nd_job;

/* Elements [begin, end) of every update, in their order: they may fall on one another. */
static void nd_columns(void *ctx, int64_t begin, int64_t end) {
    const nd_job *j = ctx;
    for (int64_t i = 0; i < j->n; i++)
        combine(j->b, sni_element(j->y, j->places[i] + begin, j->b->width),
                sni_element(j->src, i * j->row + begin, j->b->width), end - begin);
}

static sn_status scatter_nd_ref(sni_kernel *k) {
    const scatter_nd_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1), *updates = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    combiner b = {0};
    SN_TRY(combiner_init(k, x->dtype, p->reduction, &b));
    sni_copy_shared(k->threads, y->data, x->data, sni_tensor_bytes(x));
    int tuple = (int)index->dims[index->rank - 1];
    int64_t strides[SN_MAX_RANK], row = sni_tensor_span(x, tuple, x->rank);
    sni_strides(x->rank, x->dims, strides);
    if (updates->count == 0) return SN_OK;
    nd_job j = {.b = &b, .row = row, .n = updates->count / row, .y = y->data, .src = updates->data};
    int64_t *places = NULL;
    SN_TRY(sni_scratch_i64(k, j.n, &places));
    const int64_t *tuples = index->data;
    for (int64_t i = 0; i < j.n; i++) {
        int64_t at = 0;
        for (int a = 0; a < tuple; a++) {
            int64_t v = tuples[i * tuple + a];
            if (v < 0 || v >= x->dims[a]) SN_TRY(sni_wrap_index(k, "index", v, x->dims[a], &v));
            at += v * strides[a];
        }
        places[i] = at;
    }
    j.places = places;
    sni_share(k->threads, row, j.n * (int64_t)b.width, nd_columns, &j);
    return SN_OK;
}

const sni_op sni_op_ScatterND = {
    .name = "ScatterND",
    .versions = SNI_VERSIONS(11, 13, 16, 18),
    .inputs = SNI_FORMALS({"data", "T"}, {"indices", "int64"}, {"updates", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"reduction", SNI_ATTR_STRING, offsetof(scatter_nd_params, reduction),
                          .text = "none", .choices = REDUCTIONS}),
    .params_size = sizeof(scatter_nd_params),
    .inplace = 1,
    .infer = scatter_nd_infer,
    .ref = scatter_nd_ref,
};
