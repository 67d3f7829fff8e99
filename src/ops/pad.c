/* Pad: a tensor with more (or, where a pad is negative, fewer) elements at both ends of its axes.
 * CenterCropPad: the same on both sides of some axes, until they have a given length. */
#include "base/checked.h"
#include "base/threadpool.h"
#include "ops/shape_util.h"
#include "ops/tensor_util.h"

#include <inttypes.h>

enum { CONSTANT, REFLECT, EDGE, WRAP };

enum { REPEAT_GRAIN = 16384 }; /* elements worth a thread */

/* Writes the part of `x` that shifts into `y` when element 0 of x comes to position shift[axis] of
 * y; the rest of `y` stays. */
static void put_shifted(sni_kernel *k, const sni_tensor *x, sni_tensor *y, const int64_t *shift) {
    size_t width = sni_dtype_width(x->dtype);
    int64_t from[SN_MAX_RANK], to[SN_MAX_RANK], dims[SN_MAX_RANK], src = 0, dst = 0;
    sni_strides(x->rank, x->dims, from);
    sni_strides(y->rank, y->dims, to);
    for (int i = 0; i < x->rank; i++) {
        int64_t skip = shift[i] < 0 ? -shift[i] : 0, start = shift[i] > 0 ? shift[i] : 0;
        int64_t have = x->dims[i] - skip, room = y->dims[i] - start;
        dims[i] = have < room ? have : room;
        if (dims[i] <= 0) return;
        src += skip * from[i];
        dst += start * to[i];
    }
    sni_copy_box(k, x->rank, dims, sni_element(y->data, dst, width), to,
                 sni_element(x->data, src, width), from, width);
}

/* ---- Pad ---- */

typedef struct pad_params {
    int32_t mode;
} pad_params;

/* Entry j of the pads belongs to this axis. */
static sn_status padded_axis(sni_infer *c, const sni_list *axes, int rank, int j, int *axis) {
    int64_t v;
    *axis = j;
    if (!sni_infer_given(c, 3)) return SN_OK;
    if (!sni_list_int(axes, j, &v)) v = 0;
    return sni_infer_axis(c, v, rank, axis);
}

static sn_status padded_length(sni_infer *c, const sni_list *pads, int j, int n, sni_dim *length) {
    const pad_params *p = c->params;
    int64_t before, after, sum;
    sni_dim d = *length;
    if (sni_list_int(pads, j, &before) && sni_list_int(pads, j + n, &after)) {
        if (!sni_add_i64(before, after, &sum) ||
            (sni_dim_known(d) && (!sni_add_i64(d, sum, &sum) || sum < 0)))
            return SNI_INFER_FAIL(c, "pads %" PRId64 " and %" PRId64 " for a length of %s", before,
                                  after, sni_dim_text(c->symbols, d));
        if (sni_dim_known(d)) {
            int64_t left = d + (before < 0 ? before : 0) + (after < 0 ? after : 0);
            if (p->mode != CONSTANT && left <= 0 && sum > 0)
                return SNI_INFER_FAIL(
                    c, "nothing is left of an axis of length %" PRId64 " to pad it with", d);
            *length = sum;
            return SN_OK;
        }
    }
    d = sni_dim_add(c->symbols, d, sni_list_item(c, pads, j));
    d = sni_dim_add(c->symbols, d, sni_list_item(c, pads, j + n));
    *length = d >= 0 || sni_dim_is_symbol(d) ? d : sni_dim_fresh(c->symbols);
    return SN_OK;
}

static sn_status pad_infer(sni_infer *c) {
    sni_list pads, axes;
    SN_TRY(sni_infer_list(c, 1, &pads));
    SN_TRY(sni_infer_list(c, 3, &axes));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    sni_dim dims[SN_MAX_RANK];
    sni_infer_get_dims(c, 0, dims);
    uint32_t set;
    bool known = true;
    if (sni_infer_given(c, 3)) SN_TRY(sni_infer_axis_set(c, &axes, rank, &set, &known));
    if (!known || !sni_list_has_elements(&pads)) {
        for (int i = 0; i < rank; i++) dims[i] = sni_dim_fresh(c->symbols);
        return sni_infer_set_shape(c, 0, rank, dims);
    }
    int64_t n = sni_infer_given(c, 3) ? axes.count : rank;
    if (pads.count != 2 * n)
        return SNI_INFER_FAIL(c, "%" PRId64 " pads for %" PRId64 " axes", pads.count, n);
    for (int j = 0; j < n; j++) {
        int axis;
        SN_TRY(padded_axis(c, &axes, rank, j, &axis));
        SN_TRY(padded_length(c, &pads, j, (int)n, &dims[axis]));
    }
    return sni_infer_set_shape(c, 0, rank, dims);
}

/* Position of the input that position i (counted from the first kept element, of `n` kept ones)
 * repeats. */
static int64_t mirrored(int32_t mode, int64_t i, int64_t n) {
    if (i >= 0 && i < n) return i;
    if (mode == EDGE) return i < 0 ? 0 : n - 1;
    int64_t period = mode == WRAP ? n : 2 * (n - 1);
    if (period == 0) return 0;
    i %= period;
    if (i < 0) i += period;
    return i < n ? i : period - i;
}

/* Elements [start, end) of an axis of y lie as in the input, from its element `skip` on. */
typedef struct axis_part {
    int64_t start, end, skip;
} axis_part;

/* map[i] is the element of an axis of x that element i of y's repeats, but for the part that it
 * returns. */
static axis_part fill_map(int32_t mode, int64_t length, int64_t before, int64_t after, int64_t out,
                          int64_t *map) {
    int64_t skip = before < 0 ? -before : 0, start = before > 0 ? before : 0;
    int64_t kept = length - skip + (after < 0 ? after : 0), end = start + kept;
    if (start > out) start = out;
    if (end > out) end = out;
    if (end < start) end = start;
    for (int64_t i = 0; i < start; i++) map[i] = skip + mirrored(mode, i - before, kept);
    for (int64_t i = end; i < out; i++)
        map[i] = skip + mirrored(mode, i - (before > 0 ? before : 0), kept);
    return (axis_part){start, end, skip};
}

typedef struct repeat_job {
    const sni_tensor *x;
    sni_tensor *y;
    int64_t *map[SN_MAX_RANK], strides[SN_MAX_RANK];
    axis_part part; /* of a row */
    size_t width;
} repeat_job;

/* Rows of y. */
static void repeat_rows(void *ctx, int64_t begin, int64_t end) {
    const repeat_job *j = ctx;
    int last = j->x->rank - 1;
    int64_t n = j->y->dims[last];
    const int64_t *map = j->map[last];
    for (int64_t r = begin; r < end; r++) {
        int64_t rest = r, row = 0;
        for (int d = last - 1; d >= 0; d--) {
            row += j->map[d][rest % j->y->dims[d]] * j->strides[d];
            rest /= j->y->dims[d];
        }
        const unsigned char *src = sni_element(j->x->data, row, j->width);
        unsigned char *dst = sni_element(j->y->data, r * n, j->width);
        for (int64_t i = 0; i < j->part.start; i++)
            sni_copy_element(sni_element(dst, i, j->width), sni_element(src, map[i], j->width),
                             j->width);
        if (j->part.end > j->part.start)
            memcpy(sni_element(dst, j->part.start, j->width),
                   sni_element(src, j->part.skip, j->width),
                   (size_t)(j->part.end - j->part.start) * j->width);
        for (int64_t i = j->part.end; i < n; i++)
            sni_copy_element(sni_element(dst, i, j->width), sni_element(src, map[i], j->width),
                             j->width);
    }
}

/* Modes that repeat elements of the input: a map per axis, then rows. */
static sn_status pad_repeat(sni_kernel *k, const int64_t *before, const int64_t *after) {
    const pad_params *p = k->params;
    repeat_job j = {.x = sni_in(k, 0), .y = sni_out(k, 0)};
    int last = j.x->rank - 1;
    j.width = sni_dtype_width(j.x->dtype);
    sni_strides(j.x->rank, j.x->dims, j.strides);
    for (int i = 0; i <= last; i++) {
        SN_TRY(sni_scratch_i64(k, j.y->dims[i], &j.map[i]));
        j.part = fill_map(p->mode, j.x->dims[i], before[i], after[i], j.y->dims[i], j.map[i]);
        for (int64_t at = j.part.start; i < last && at < j.part.end; at++)
            j.map[i][at] = at - j.part.start + j.part.skip;
    }
    int64_t n = j.y->dims[last];
    sni_parallel_for(k->threads, j.y->count / n, REPEAT_GRAIN / n + 1, repeat_rows, &j);
    return SN_OK;
}

static sn_status pad_ref(sni_kernel *k) {
    const pad_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *pads = sni_in(k, 1), *value = sni_in(k, 2);
    const sni_tensor *axes = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    int64_t before[SN_MAX_RANK] = {0}, after[SN_MAX_RANK] = {0};
    int64_t n = pads->count / 2;
    for (int64_t j = 0; j < n; j++) {
        int64_t axis = axes ? sni_index_at(axes, j) : j;
        if (axis < 0) axis += x->rank;
        before[axis] = sni_index_at(pads, j);
        after[axis] = sni_index_at(pads, j + n);
    }
    if (y->count == 0) return SN_OK;
    if (p->mode != CONSTANT && x->rank > 0) return pad_repeat(k, before, after);
    static const unsigned char zero[16];
    if (value && value->count != 1)
        return SNI_KERNEL_FAIL(k, "constant_value has %" PRId64 " elements, not 1", value->count);
    sni_fill(y->data, value ? value->data : zero, y->count, sni_dtype_width(y->dtype));
    /* A pad beyond the other end of the axis leaves nothing of it. */
    for (int i = 0; i < x->rank; i++)
        if (before[i] < -x->dims[i] || before[i] >= y->dims[i]) return SN_OK;
    put_shifted(k, x, y, before);
    return SN_OK;
}

const sni_op sni_op_Pad = {
    .name = "Pad",
    .versions = SNI_VERSIONS(1, 2, 11, 13, 18, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"data", "T"}, {"pads", "int64"}, {"constant_value", "T", SNI_OPTIONAL},
                          {"axes", "Tind", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"Tind", SNI_T_INDEX}),
    .params = SNI_PARAMS({"mode", SNI_ATTR_STRING, offsetof(pad_params, mode), .text = "constant",
                          .choices = "constant|reflect|edge|wrap"}),
    .params_size = sizeof(pad_params),
    .moves = SNI_ATTR_MOVES({"paddings", 11, 1}, {"pads", 11, 1}, {"value", 11, 2}),
    .infer = pad_infer,
    .ref = pad_ref,
};

/* ---- CenterCropPad ---- */

typedef struct center_params {
    sni_ints axes;
} center_params;

static sn_status center_infer(sni_infer *c) {
    const center_params *p = c->params;
    sni_list shape;
    SN_TRY(sni_infer_list(c, 1, &shape));
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    int64_t n = p->axes.given ? (int64_t)p->axes.n : rank;
    if (n > rank || (shape.known && shape.count != n))
        return SNI_INFER_FAIL(c, "shape has %" PRId64 " elements for %" PRId64 " axes of %d",
                              shape.known ? shape.count : n, n, rank);
    sni_dim dims[SN_MAX_RANK];
    sni_infer_get_dims(c, 0, dims);
    uint32_t seen = 0;
    for (int j = 0; j < n; j++) {
        int axis = j;
        int64_t v;
        if (p->axes.given) SN_TRY(sni_infer_axis(c, p->axes.v[j], rank, &axis));
        if (seen >> axis & 1) return SNI_INFER_FAIL(c, "axis %d stands twice", axis);
        seen |= 1u << axis;
        if (shape.known && sni_list_int(&shape, j, &v) && v < 0)
            return SNI_INFER_FAIL(c, "shape has %" PRId64 " at %d", v, j);
        dims[axis] = shape.known ? sni_list_dim(c, &shape, j) : sni_dim_fresh(c->symbols);
    }
    return sni_infer_set_shape(c, 0, rank, dims);
}

/* An odd difference leaves one more element at the end. */
static sn_status center_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    int64_t shift[SN_MAX_RANK];
    for (int i = 0; i < x->rank; i++) {
        int64_t more = y->dims[i] - x->dims[i];
        shift[i] = more >= 0 ? more / 2 : -(-more / 2);
    }
    if (y->count == 0) return SN_OK;
    memset(y->data, 0, sni_tensor_bytes(y));
    if (x->count) put_shifted(k, x, y, shift);
    return SN_OK;
}

const sni_op sni_op_CenterCropPad = {
    .name = "CenterCropPad",
    .versions = SNI_VERSIONS(18),
    .inputs = SNI_FORMALS({"input_data", "T"}, {"shape", "Tind"}),
    .outputs = SNI_FORMALS({"output_data", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"Tind", SNI_T_INDEX}),
    .params = SNI_PARAMS({"axes", SNI_ATTR_INTS, offsetof(center_params, axes)}),
    .params_size = sizeof(center_params),
    .infer = center_infer,
    .ref = center_ref,
};
