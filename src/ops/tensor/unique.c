/* Unique: the distinct elements of a tensor, or its distinct slices along an axis. */
#include "ops/core/shape_util.h"
#include "ops/core/sort_util.h"
#include "ops/core/tensor_util.h"

typedef struct unique_params {
    int64_t axis;
    bool has_axis; /* false: elements of the flattened input */
    int64_t sorted;
} unique_params;

static sn_status unique_infer(sni_infer *c) {
    const unique_params *p = c->params;
    sni_dim n = sni_dim_fresh(c->symbols), dims[SN_MAX_RANK] = {n}, length = n;
    int rank = 1, axis = 0;
    bool shaped = sni_infer_shaped(c, 0);
    if (shaped && p->has_axis) {
        rank = sni_infer_rank(c, 0);
        SN_TRY(sni_infer_axis(c, p->axis, rank, &axis));
        sni_infer_get_dims(c, 0, dims);
        length = dims[axis];
        dims[axis] = n;
    } else if (shaped) {
        length = sni_dims_product(c, c->in[0]->dims, 0, sni_infer_rank(c, 0));
    } else {
        length = sni_dim_fresh(c->symbols);
    }
    if (shaped || !p->has_axis) SN_TRY(sni_infer_set_shape(c, 0, rank, dims));
    SN_TRY(sni_infer_set_shape(c, 1, 1, &n));
    SN_TRY(sni_infer_set_shape(c, 2, 1, &length));
    return sni_infer_set_shape(c, 3, 1, &n);
}

/* The input as (outer, n, inner); slice i is all of (., i, .). */
typedef struct slices {
    const sni_tensor *x;
    int64_t outer, n, inner;
    sni_compare_fn compare;
    size_t width;
} slices;

static int compare_slices(const void *ctx, int64_t p, int64_t q) {
    const slices *s = ctx;
    for (int64_t o = 0; o < s->outer; o++) {
        for (int64_t i = 0; i < s->inner; i++) {
            int64_t base = o * s->n * s->inner + i;
            int order =
                s->compare(s->x->dtype, sni_element(s->x->data, base + p * s->inner, s->width),
                           sni_element(s->x->data, base + q * s->inner, s->width));
            if (order) return order;
        }
    }
    return 0;
}

static int compare_numbers(const void *ctx, int64_t p, int64_t q) {
    const int64_t *v = ctx;
    return (v[p] > v[q]) - (v[p] < v[q]);
}

/* What was found: `groups` groups of equal slices, in the order of the output. */
typedef struct found {
    int64_t groups;
    int64_t *first;   /* of each group: its first slice */
    int64_t *count;   /* of each group */
    int64_t *inverse; /* of each slice: its group */
} found;

/* Groups in sorted order; then, unless `sorted`, renamed in order of first occurrence. */
static sn_status find_groups(sni_kernel *k, const slices *s, bool sorted, found *f) {
    int64_t *order = NULL, *spare = NULL;
    bool numbers = s->x->dtype == SN_INT64 && s->outer == 1 && s->inner == 1;
    int (*compare)(const void *, int64_t, int64_t) = numbers ? compare_numbers : compare_slices;
    const void *ctx = numbers ? s->x->data : s;
    SN_TRY(sni_scratch_i64(k, s->n, &order));
    SN_TRY(sni_scratch_i64(k, s->n, &spare));
    SN_TRY(sni_scratch_i64(k, s->n, &f->first));
    SN_TRY(sni_scratch_i64(k, s->n, &f->count));
    SN_TRY(sni_scratch_i64(k, s->n, &f->inverse));
    for (int64_t i = 0; i < s->n; i++) order[i] = i;
    SN_TRY(sni_sort_positions(k, order, spare, s->n, compare, ctx));
    f->groups = 0;
    for (int64_t i = 0; i < s->n; i++) {
        if (i == 0 || compare(ctx, order[i - 1], order[i]) != 0) {
            f->first[f->groups] = order[i];
            f->count[f->groups++] = 0;
        }
        f->count[f->groups - 1]++;
        f->inverse[order[i]] = f->groups - 1;
    }
    if (sorted) return SN_OK;
    for (int64_t g = 0; g < f->groups; g++) order[g] = g;
    SN_TRY(sni_sort_positions(k, order, spare, f->groups, compare_numbers, f->first));
    for (int64_t g = 0; g < f->groups; g++) spare[order[g]] = g; /* old group to new */
    for (int64_t i = 0; i < s->n; i++) f->inverse[i] = spare[f->inverse[i]];
    for (int64_t g = 0; g < f->groups; g++) f->count[g] = 0;
    for (int64_t i = s->n - 1; i >= 0; i--) {
        f->first[f->inverse[i]] = i;
        f->count[f->inverse[i]]++;
    }
    return SN_OK;
}

static sn_status put_list(sni_kernel *k, int out, const int64_t *v, int64_t n) {
    if (out >= k->n_out || !k->out[out]) return SN_OK;
    SN_TRY(sni_out_alloc(k, out, SN_INT64, 1, &n));
    sni_copy_bytes(sni_out(k, out)->data, v, (size_t)n * sizeof *v);
    return SN_OK;
}

static sn_status unique_ref(sni_kernel *k) {
    const unique_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0);
    slices s = {.x = x,
                .outer = 1,
                .n = x->count,
                .inner = 1,
                .compare = sni_compare_of(x->dtype),
                .width = sni_dtype_width(x->dtype)};
    int64_t axis = 0, dims[SN_MAX_RANK] = {0};
    int rank = 1;
    if (p->has_axis) {
        SN_TRY(sni_wrap_index(k, "axis", p->axis, x->rank, &axis));
        rank = x->rank;
        for (int i = 0; i < rank; i++) dims[i] = x->dims[i];
        s.outer = sni_tensor_span(x, 0, (int)axis);
        s.n = x->dims[axis];
        s.inner = sni_tensor_span(x, (int)axis + 1, rank);
    }
    found f = {0};
    SN_TRY(find_groups(k, &s, p->sorted != 0, &f));
    dims[axis] = f.groups;
    if (k->n_out > 0 && k->out[0]) {
        SN_TRY(sni_out_alloc(k, 0, x->dtype, rank, dims));
        unsigned char *dst = sni_out(k, 0)->data;
        size_t row = (size_t)s.inner * s.width;
        for (int64_t o = 0; row && o < s.outer; o++)
            for (int64_t g = 0; g < f.groups; g++, dst += row)
                memcpy(dst, sni_element(x->data, (o * s.n + f.first[g]) * s.inner, s.width), row);
    }
    SN_TRY(put_list(k, 1, f.first, f.groups));
    SN_TRY(put_list(k, 2, f.inverse, s.n));
    return put_list(k, 3, f.count, f.groups);
}

const sni_op sni_op_Unique = {
    .name = "Unique",
    .versions = SNI_VERSIONS(11),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs =
        SNI_FORMALS({"Y", "T"}, {"indices", "int64", SNI_OPTIONAL},
                    {"inverse_indices", "int64", SNI_OPTIONAL}, {"counts", "int64", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, offsetof(unique_params, axis),
                          .present = offsetof(unique_params, has_axis) + 1},
                         {"sorted", SNI_ATTR_INT, offsetof(unique_params, sorted), .number = 1}),
    .params_size = sizeof(unique_params),
    .flags = SNI_OP_ALLOCATES,
    .infer = unique_infer,
    .ref = unique_ref,
};
