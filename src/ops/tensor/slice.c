/* Slice: every step-th element between start and end of some axes. */
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

/* The elements that start, end and step choose of an axis of `length`: `count` of them from
 * `first` on. The step is not 0. */
typedef struct range {
    int64_t first, step, count;
} range;

static int64_t clamp(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

static range slice_range(int64_t start, int64_t end, int64_t step, int64_t length) {
    if (step == INT64_MIN) step = -INT64_MAX;
    if (start < 0) start += length;
    if (end < 0) end += length;
    range r = {.step = step};
    if (length == 0) return r;
    if (step > 0) {
        r.first = clamp(start, 0, length);
        end = clamp(end, 0, length);
        if (end > r.first) r.count = 1 + (end - r.first - 1) / step;
    } else {
        r.first = clamp(start, 0, length - 1);
        end = clamp(end, -1, length - 1);
        if (r.first > end) r.count = 1 + (r.first - end - 1) / -step;
    }
    return r;
}

/* ---- Inference ---- */

typedef struct bounds {
    sni_list start, end, axes, step;
} bounds;

static const int64_t FAR = 1000000000; /* as an end, exporters mean "all" by this and above */

/* Start or end as a position on an axis whose length is a symbol. */
static sni_dim position(sni_infer *c, const sni_list *list, int j, sni_dim length) {
    int64_t v;
    if (!sni_list_int(list, j, &v)) return sni_dim_min(c->symbols, length, list->dims[j]);
    if (v >= FAR) return length;
    if (v >= 0) return v == 0 ? 0 : sni_dim_min(c->symbols, length, v);
    if (v <= -FAR) return 0;
    return sni_dim_max(c->symbols, 0, sni_dim_sub(c->symbols, length, -v));
}

/* The new length of an axis by entry j of the lists. */
static sn_status sliced_length(sni_infer *c, const bounds *b, int j, sni_dim length, sni_dim *out) {
    int64_t start, end, step = 1;
    bool step_known = !sni_infer_given(c, 4) || sni_list_int(&b->step, j, &step);
    if (step_known && step == 0) return SNI_INFER_FAIL(c, "step %d is 0", j);
    bool start_known = sni_list_int(&b->start, j, &start);
    bool end_known = sni_list_int(&b->end, j, &end);
    *out = sni_dim_fresh(c->symbols);
    if (!step_known) return SN_OK;
    if (sni_dim_known(length) && start_known && end_known) {
        *out = slice_range(start, end, step, length).count;
    } else if (step > 0 && sni_list_has_elements(&b->start) && sni_list_has_elements(&b->end)) {
        sni_dim from = position(c, &b->start, j, length), to = position(c, &b->end, j, length);
        sni_dim n = from == 0 ? to : sni_dim_sub(c->symbols, to, from);
        if (from != 0) n = sni_dim_max(c->symbols, 0, n);
        *out = sni_dim_ceildiv(c->symbols, n, step);
    } else if (step == -1 && start_known && end_known && start == -1 && end <= -FAR) {
        *out = length;
    }
    return SN_OK;
}

/* Elements of the output where the input is a list of integers. */
static sn_status slice_list(sni_infer *c, const bounds *b) {
    sni_list list;
    SN_TRY(sni_infer_list(c, 0, &list));
    int64_t start, end, step = 1;
    if (!sni_list_has_elements(&list) || list.count > SNI_LIST_MAX) return SN_OK;
    if (b->start.count != 1 || !sni_list_int(&b->start, 0, &start) ||
        !sni_list_int(&b->end, 0, &end))
        return SN_OK;
    if (sni_infer_given(c, 4) && !sni_list_int(&b->step, 0, &step)) return SN_OK;
    range r = slice_range(start, end, step, list.count);
    sni_dim dims[SNI_LIST_MAX];
    for (int64_t j = 0; j < r.count; j++) dims[j] = sni_list_item(c, &list, r.first + j * r.step);
    return sni_infer_set_dims(c, 0, (int32_t)r.count, dims);
}

static sn_status check_counts(sni_infer *c, const bounds *b, int rank) {
    int64_t n = b->start.count;
    if ((b->end.known && b->end.count != n) || (b->axes.known && b->axes.count != n) ||
        (b->step.known && b->step.count != n))
        return SNI_INFER_FAIL(c, "starts, ends, axes and steps differ in length");
    if (n > rank) return SNI_INFER_FAIL(c, "%" PRId64 " starts for a tensor of rank %d", n, rank);
    return SN_OK;
}

static sn_status slice_infer(sni_infer *c) {
    bounds b;
    SN_TRY(sni_infer_list(c, 1, &b.start));
    SN_TRY(sni_infer_list(c, 2, &b.end));
    SN_TRY(sni_infer_list(c, 3, &b.axes));
    SN_TRY(sni_infer_list(c, 4, &b.step));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    sni_dim dims[SN_MAX_RANK];
    sni_infer_get_dims(c, 0, dims);
    uint32_t set = 0;
    bool axes_known = true;
    if (b.start.known) SN_TRY(check_counts(c, &b, rank));
    if (sni_infer_given(c, 3)) SN_TRY(sni_infer_axis_set(c, &b.axes, rank, &set, &axes_known));
    if (!axes_known || !b.start.known) {
        for (int i = 0; i < rank; i++) dims[i] = sni_dim_fresh(c->symbols);
        return sni_infer_set_shape(c, 0, rank, dims);
    }
    for (int j = 0; j < b.start.count; j++) {
        int axis = j;
        int64_t v;
        if (sni_infer_given(c, 3) && sni_list_int(&b.axes, j, &v))
            SN_TRY(sni_infer_axis(c, v, rank, &axis));
        SN_TRY(sliced_length(c, &b, j, dims[axis], &dims[axis]));
    }
    SN_TRY(sni_infer_set_shape(c, 0, rank, dims));
    return rank == 1 ? slice_list(c, &b) : SN_OK;
}

/* True if the elements between the bounds are contiguous in memory, from *at on. */
static bool slice_part(sni_infer *c, int out, int64_t *at) {
    bounds b;
    if (sni_infer_list(c, 1, &b.start) != SN_OK || sni_infer_list(c, 2, &b.end) != SN_OK ||
        sni_infer_list(c, 3, &b.axes) != SN_OK || sni_infer_list(c, 4, &b.step) != SN_OK)
        return false;
    int rank = sni_infer_rank(c, 0), widest = 0;
    int64_t strides[SN_MAX_RANK];
    const sni_dim *to = c->out[out].dims, *from = c->in[0]->dims;
    sni_strides(rank, from, strides);
    while (widest < rank && to[widest] == 1) widest++;
    for (int i = widest + 1; i < rank; i++)
        if (to[i] != from[i]) return false;
    *at = 0;
    for (int j = 0; j < b.start.count; j++) {
        int64_t start, end, step = 1, axis = j;
        if (!sni_list_int(&b.start, j, &start) || !sni_list_int(&b.end, j, &end) ||
            (sni_infer_given(c, 4) && !sni_list_int(&b.step, j, &step)) ||
            (sni_infer_given(c, 3) && !sni_list_int(&b.axes, j, &axis)))
            return false;
        if (axis < 0) axis += rank;
        range r = slice_range(start, end, step, from[axis]);
        if (r.count > 1 && step != 1) return false;
        *at += r.first * strides[axis];
    }
    return true;
}

/* ---- Kernel ---- */

static sn_status slice_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *start = sni_in(k, 1), *end = sni_in(k, 2);
    const sni_tensor *axes = sni_in(k, 3), *step = sni_in(k, 4);
    sni_tensor *y = sni_out(k, 0);
    int64_t from[SN_MAX_RANK], to[SN_MAX_RANK], offset = 0;
    sni_strides(x->rank, x->dims, from);
    sni_strides(y->rank, y->dims, to);
    if (y->count == 0) return SN_OK;
    for (int64_t j = 0; j < start->count; j++) {
        int64_t axis = axes ? sni_index_at(axes, j) : j;
        if (axis < 0) axis += x->rank;
        range r = slice_range(sni_index_at(start, j), sni_index_at(end, j),
                              step ? sni_index_at(step, j) : 1, x->dims[axis]);
        offset += r.first * from[axis];
        from[axis] = r.count > 1 ? from[axis] * r.step : 0;
    }
    size_t width = sni_dtype_width(x->dtype);
    sni_copy_box(k, &(sni_box){y->rank, y->dims, y->data, to, sni_element(x->data, offset, width),
                               from, width});
    return SN_OK;
}

/* The experimental form that Slice 10 took over: the same inputs under another name. */
static sn_status dynamic_slice_upgrade(sni_upgrade *u) {
    u->node->type = SNI_STR("Slice");
    return SN_OK;
}

const sni_op sni_op_DynamicSlice = {
    .name = "DynamicSlice",
    .versions = SNI_VERSIONS(1, 10),
    .inputs = SNI_FORMALS({"data", "T"}, {"starts", "Tind"}, {"ends", "Tind"},
                          {"axes", "Tind", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"Tind", SNI_T_INDEX}),
    .upgrade = dynamic_slice_upgrade,
    .infer = slice_infer,
    .ref = slice_ref,
};

const sni_op sni_op_Slice = {
    .name = "Slice",
    .versions = SNI_VERSIONS(1, 10, 11, 13),
    .inputs = SNI_FORMALS({"data", "T"}, {"starts", "Tind"}, {"ends", "Tind"},
                          {"axes", "Tind", SNI_OPTIONAL}, {"steps", "Tind", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"Tind", SNI_T_INDEX}),
    .moves = SNI_ATTR_MOVES({"starts", 10, 1}, {"ends", 10, 2}, {"axes", 10, 3}),
    .infer = slice_infer,
    .part = slice_part,
    .ref = slice_ref,
};
