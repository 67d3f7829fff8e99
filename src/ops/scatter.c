/* ScatterElements (and Scatter, its old name) and ScatterND: a copy of a tensor with some elements
 * or slices replaced by, or combined with, updates. */
#include "base/floats.h"
#include "ops/shape_util.h"
#include "ops/tensor_util.h"

#include <complex.h>
#include <inttypes.h>

#define BODY "ops/scatter.inc.c"
#include "ops/each_number.inc.h"
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

static sn_status scatter_elements_ref(sni_kernel *k) {
    const scatter_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1), *updates = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    combiner b = {0};
    SN_TRY(combiner_init(k, x->dtype, p->reduction, &b));
    sni_copy_bytes(y->data, x->data, sni_tensor_bytes(x));
    if (index->count == 0) return SN_OK;
    int64_t strides[SN_MAX_RANK];
    sni_strides(x->rank, x->dims, strides);
    int64_t step = strides[axis];
    strides[axis] = 0;
    sni_walk w;
    int last = index->rank - 1;
    int64_t n = last < 0 ? 1 : index->dims[last], own = last < 0 ? 0 : strides[last], i = 0;
    sni_walk_init(&w, last < 0 ? 0 : last, index->dims, 1, (const int64_t *[]){strides});
    do {
        for (int64_t e = 0; e < n; e++, i++) {
            int64_t at = sni_index_at(index, i);
            if (at < 0 || at >= x->dims[axis])
                SN_TRY(sni_wrap_index(k, "index", at, x->dims[axis], &at));
            void *to = sni_element(y->data, w.offset[0] + e * own + at * step, b.width);
            const void *from = sni_element(updates->data, i, b.width);
            if (b.fn)
                combine(&b, to, from, 1);
            else
                sni_copy_element(to, from, b.width);
        }
    } while (sni_walk_next(&w));
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

static sn_status scatter_nd_ref(sni_kernel *k) {
    const scatter_nd_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *index = sni_in(k, 1), *updates = sni_in(k, 2);
    sni_tensor *y = sni_out(k, 0);
    combiner b = {0};
    SN_TRY(combiner_init(k, x->dtype, p->reduction, &b));
    sni_copy_bytes(y->data, x->data, sni_tensor_bytes(x));
    int tuple = (int)index->dims[index->rank - 1];
    int64_t strides[SN_MAX_RANK], row = sni_tensor_span(x, tuple, x->rank);
    sni_strides(x->rank, x->dims, strides);
    if (updates->count == 0) return SN_OK;
    for (int64_t i = 0; i < updates->count / row; i++) {
        int64_t at = 0;
        for (int a = 0; a < tuple; a++) {
            int64_t v;
            SN_TRY(sni_wrap_index(k, "index", sni_index_at(index, i * tuple + a), x->dims[a], &v));
            at += v * strides[a];
        }
        combine(&b, sni_element(y->data, at, b.width), sni_element(updates->data, i * row, b.width),
                row);
    }
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
