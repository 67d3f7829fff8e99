/* shape_util.c - inference over small integer tensors that hold shapes, axes, indices or sizes. */
#include "ops/core/shape_util.h"

#include "ops/core/tensor_util.h"

#include <inttypes.h>

sn_status sni_infer_list(sni_infer *c, int i, sni_list *out) {
    *out = (sni_list){0};
    if (!sni_infer_given(c, i)) return SN_OK;
    const sni_tensor *exact;
    SN_TRY(sni_infer_known(c, i, &exact));
    if (exact && exact->rank > 1)
        return SNI_INFER_FAIL(c, "input %d has rank %d where a list is needed", i, exact->rank);
    if (exact && (exact->dtype == SN_INT64 || exact->dtype == SN_INT32)) {
        *out = (sni_list){.known = true, .count = exact->count, .exact = exact};
        return SN_OK;
    }
    int32_t count;
    const sni_dim *dims;
    SN_TRY(sni_infer_dims(c, i, &dims, &count));
    if (dims) {
        *out = (sni_list){.known = true, .count = count, .dims = dims};
        return SN_OK;
    }
    if (!sni_infer_shaped(c, i)) return SN_OK;
    int rank = sni_infer_rank(c, i);
    if (rank > 1) return SNI_INFER_FAIL(c, "input %d has rank %d where a list is needed", i, rank);
    if (rank == 0 || sni_dim_known(sni_infer_dim(c, i, 0)))
        *out = (sni_list){.known = true, .count = rank == 0 ? 1 : sni_infer_dim(c, i, 0)};
    return SN_OK;
}

bool sni_list_int(const sni_list *list, int64_t j, int64_t *out) {
    if (list->exact) {
        *out = sni_index_at(list->exact, j);
        return true;
    }
    if (!list->dims || sni_dim_is_symbol(list->dims[j])) return false;
    *out = list->dims[j];
    return true;
}

sni_dim sni_list_item(sni_infer *c, const sni_list *list, int64_t j) {
    int64_t v;
    if (sni_list_int(list, j, &v)) return v < SNI_DIM_LOWEST ? SNI_DIM_LOWEST : v;
    return list->dims ? list->dims[j] : sni_dim_fresh(c->symbols);
}

sni_dim sni_list_dim(sni_infer *c, const sni_list *list, int64_t j) {
    sni_dim d = sni_list_item(c, list, j);
    return d >= 0 || sni_dim_is_symbol(d) ? d : sni_dim_fresh(c->symbols);
}

bool sni_list_is_size(const sni_infer *c, const sni_list *list, int64_t j) {
    return !c->known && list->dims && !strchr(sni_dim_text(c->symbols, list->dims[j]), '?');
}

sn_status sni_infer_axis_set(sni_infer *c, const sni_list *axes, int rank, uint32_t *set,
                             bool *known) {
    uint32_t bits = 0;
    bool all = sni_list_has_elements(axes);
    if (axes->known && axes->count > rank)
        return SNI_INFER_FAIL(c, "%" PRId64 " axes for a tensor of rank %d", axes->count, rank);
    for (int64_t j = 0; all && j < axes->count; j++) {
        int64_t v;
        int axis;
        if (!sni_list_int(axes, j, &v)) {
            all = false;
            break;
        }
        SN_TRY(sni_infer_axis(c, v, rank, &axis));
        if (bits >> axis & 1) return SNI_INFER_FAIL(c, "axis %d stands twice", axis);
        bits |= 1u << axis;
    }
    *set = bits;
    *known = all;
    return SN_OK;
}

sn_status sni_infer_pass_dims(sni_infer *c) {
    if (c->out[0].has_shape && c->out[0].rank > 1) return SN_OK;
    const sni_dim *dims;
    int32_t count;
    SN_TRY(sni_infer_dims(c, 0, &dims, &count));
    return dims ? sni_infer_set_dims(c, 0, count, dims) : SN_OK;
}

sn_status sni_infer_join_dim(sni_infer *c, const char *what, int axis, sni_dim a, sni_dim b,
                             sni_dim *out) {
    if (sni_dim_known(a) && sni_dim_known(b) && a != b)
        return SNI_INFER_FAIL(c, "%s differ in axis %d: %" PRId64 " and %" PRId64, what, axis, a,
                              b);
    *out = sni_dim_known(a) ? a : sni_dim_known(b) ? b : a;
    return SN_OK;
}

sni_dim sni_dims_product(sni_infer *c, const sni_dim *dims, int from, int to) {
    sni_dim product = 1;
    for (int i = from; i < to; i++) product = sni_dim_mul(c->symbols, product, dims[i]);
    return product;
}

void sni_infer_get_dims(const sni_infer *c, int i, sni_dim dims[SN_MAX_RANK]) {
    for (int a = 0; a < sni_infer_rank(c, i); a++) dims[a] = sni_infer_dim(c, i, a);
}

sn_status sni_infer_shape_of(sni_infer *c, int out, int i) {
    if (!sni_infer_shaped(c, i)) return SN_OK;
    return sni_infer_set_shape(c, out, sni_infer_rank(c, i), c->in[i]->dims);
}

static sn_status union_shape(sni_infer *c, const sni_type *a, const sni_type *b, sni_type *out) {
    out->has_shape = a->has_shape && b->has_shape && a->rank == b->rank;
    out->rank = 0;
    out->dims = NULL;
    if (!out->has_shape) return SN_OK;
    sni_dim *dims = SNI_NEW_ARRAY(c->arena, sni_dim, a->rank);
    if (!dims) return sni_fail_memory(c->err);
    for (int i = 0; i < a->rank; i++) {
        dims[i] = a->dims[i] == b->dims[i] ? a->dims[i] : sni_dim_fresh(c->symbols);
        if (dims[i] == SNI_DIM_FAIL) return sni_fail_memory(c->err);
    }
    out->rank = a->rank;
    out->dims = dims;
    return SN_OK;
}

static sn_status union_at(sni_infer *c, const sni_type *a, const sni_type *b, sni_type *out,
                          int depth);

static sn_status union_inner(sni_infer *c, const sni_type *a, const sni_type *b, sni_type *out,
                             int depth) {
    sni_type *inner = SNI_NEW(c->arena, sni_type);
    if (!inner) return sni_fail_memory(c->err);
    SN_TRY(union_at(c, a, b, inner, depth + 1));
    out->inner = inner;
    return SN_OK;
}

static sn_status union_at(sni_infer *c, const sni_type *a, const sni_type *b, sni_type *out,
                          int depth) {
    if (a->kind == SN_KIND_NONE || b->kind == SN_KIND_NONE) {
        *out = (sni_type){0};
        return SN_OK;
    }
    static const sni_type unknown = {0};
    const sni_type *x = a, *y = b;
    if (a->kind != b->kind && a->kind == SN_KIND_OPTIONAL) x = a->inner ? a->inner : &unknown;
    if (a->kind != b->kind && b->kind == SN_KIND_OPTIONAL) y = b->inner ? b->inner : &unknown;
    if (x != a || y != b) {
        /* A value and an optional one: an optional. */
        *out = (sni_type){.kind = SN_KIND_OPTIONAL};
        return depth == 16 ? SN_OK : union_inner(c, x, y, out, depth);
    }
    if (a->kind != b->kind) return SNI_INFER_FAIL(c, "values of different kinds meet");
    if (a->dtype != b->dtype && a->dtype && b->dtype)
        return SNI_INFER_FAIL(c, "element types %s and %s meet", sn_dtype_name(a->dtype),
                              sn_dtype_name(b->dtype));
    *out = a->dtype ? *a : *b;
    if (a->kind == SN_KIND_TENSOR) return union_shape(c, a, b, out);
    out->inner = NULL;
    if (!a->inner || !b->inner || depth == 16) return SN_OK;
    return union_inner(c, a->inner, b->inner, out, depth);
}

sn_status sni_infer_union(sni_infer *c, const sni_type *a, const sni_type *b, sni_type *out) {
    return union_at(c, a, b, out, 0);
}
