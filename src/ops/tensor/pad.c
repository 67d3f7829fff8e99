/* Pad: a tensor with more (or, where a pad is negative, fewer) elements at both ends of its axes.
 * CenterCropPad: the same on both sides of some axes, until they have a given length. */
#include "base/checked.h"
#include "ops/core/compute.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"

#include <inttypes.h>

enum { CONSTANT, REFLECT, EDGE, WRAP };

enum { SHORT_ROW = 256 }; /* bytes; many such rows are put into a tensor that is filled already */

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
    sni_copy_box(k, &(sni_box){x->rank, dims, sni_element(y->data, dst, width), to,
                               sni_element(x->data, src, width), from, width});
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
    if (i < -period || i >= 2 * period) i %= period;
    if (i < 0) i += period;
    if (i >= period) i -= period;
    return i < n ? i : period - i;
}

/* Elements [start, end) of an axis of y are those of the input from its element `skip` on. */
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

/* A part of a row before or after the copied input: its elements are every `step`th one (-1, 0 or
 * 1) from `from` on. */
typedef struct stretch {
    int64_t to, from, step, n;
} stretch;

typedef struct pad_job {
    const sni_tensor *x;
    const unsigned char *value; /* of mode constant; NULL: elements are repeated */
    unsigned char *data;
    int rank;
    int64_t in[SN_MAX_RANK], out[SN_MAX_RANK], strides[SN_MAX_RANK];
    int64_t *map[SN_MAX_RANK]; /* where elements are repeated, of all axes but the last */
    axis_part part[SN_MAX_RANK];
    const stretch *stretches; /* of the last axis */
    int64_t n_stretches;
    size_t width;
    bool even;   /* all bytes of the value are the same */
    bool single; /* elements of stretches are copied one by one */
} pad_job;

static void fill_run(const pad_job *j, unsigned char *to, int64_t n) {
    if (n <= 0) return;
    if (n == 1)
        sni_copy_element(to, j->value, j->width);
    else if (j->even)
        memset(to, j->value[0], (size_t)n * j->width);
    else
        sni_fill(to, j->value, n, j->width);
}

/* The input's row of row r of the output; NULL: there is none. */
static const unsigned char *row_of(const pad_job *j, int64_t r) {
    int64_t row = 0;
    for (int d = j->rank - 2; d >= 0; d--) {
        int64_t at = r % j->out[d];
        r /= j->out[d];
        if (j->value) {
            if (at < j->part[d].start || at >= j->part[d].end) return NULL;
            at += j->part[d].skip - j->part[d].start;
        } else {
            at = j->map[d][at];
        }
        row += at * j->strides[d];
    }
    return sni_element(j->x->data, row, j->width);
}

/* Elements [begin, end) of one row. */
static void pad_row(const pad_job *j, const unsigned char *src, unsigned char *dst, int64_t begin,
                    int64_t end) {
    const axis_part *p = &j->part[j->rank - 1];
    int64_t start = p->start > begin ? p->start : begin, stop = p->end < end ? p->end : end;
    if (j->value && (!src || start >= stop)) {
        fill_run(j, sni_element(dst, begin, j->width), end - begin);
        return;
    }
    if (start < stop)
        memcpy(sni_element(dst, start, j->width),
               sni_element(src, p->skip + start - p->start, j->width),
               (size_t)(stop - start) * j->width);
    if (j->value) {
        fill_run(j, sni_element(dst, begin, j->width), start - begin);
        fill_run(j, sni_element(dst, stop, j->width), end - stop);
        return;
    }
    if (j->single) {
        const int64_t *map = j->map[j->rank - 1];
        for (int64_t i = begin; i < start; i++)
            sni_copy_element(sni_element(dst, i, j->width), sni_element(src, map[i], j->width),
                             j->width);
        for (int64_t i = stop; i < end; i++)
            sni_copy_element(sni_element(dst, i, j->width), sni_element(src, map[i], j->width),
                             j->width);
        return;
    }
    for (int64_t i = 0; i < j->n_stretches; i++) {
        const stretch *s = &j->stretches[i];
        int64_t first = s->to > begin ? s->to : begin;
        int64_t last = s->to + s->n < end ? s->to + s->n : end;
        int64_t from = s->from + (first - s->to) * s->step;
        if (first < last)
            sni_copy_strided(sni_element(dst, first, j->width), 1, sni_element(src, from, j->width),
                             s->step, last - first, j->width);
    }
}

/* Elements of y, whatever rows they are in. */
static void pad_elements(void *ctx, int64_t begin, int64_t end) {
    const pad_job *j = ctx;
    int64_t n = j->out[j->rank - 1], row = begin / n;
    unsigned char *dst = sni_element(j->data, row * n, j->width);
    end -= row * n;
    for (begin -= row * n; begin < end; begin = 0, end -= n, row++) {
        pad_row(j, row_of(j, row), dst, begin, end < n ? end : n);
        dst += (size_t)n * j->width;
    }
}

/* Stretches of a map of n elements outside its part. */
static int64_t find_stretches(const int64_t *map, axis_part part, int64_t n, stretch *to) {
    int64_t count = 0;
    for (int64_t i = 0; i < n;) {
        if (i == part.start && part.end > part.start) {
            i = part.end;
            continue;
        }
        int64_t limit = i < part.start ? part.start : n, run = 1, step = 1;
        if (i + 1 < limit) step = map[i + 1] - map[i];
        if (step < -1 || step > 1) step = 1;
        while (i + run < limit && map[i + run] == map[i] + run * step) run++;
        to[count++] = (stretch){i, map[i], step, run};
        i += run;
    }
    return count;
}

/* Modes that repeat elements of the input: a map for each axis. */
static sn_status map_axes(sni_kernel *k, pad_job *j, const int64_t *before, const int64_t *after) {
    const pad_params *p = k->params;
    int last = j->rank - 1;
    for (int i = 0; i <= last; i++) {
        SN_TRY(sni_scratch_i64(k, j->out[i], &j->map[i]));
        j->part[i] = fill_map(p->mode, j->in[i], before[i], after[i], j->out[i], j->map[i]);
        for (int64_t at = j->part[i].start; i < last && at < j->part[i].end; at++)
            j->map[i][at] = at - j->part[i].start + j->part[i].skip;
    }
    int64_t pads = j->out[last] - (j->part[last].end - j->part[last].start);
    void *buffer = NULL;
    SN_TRY(sni_scratch_array(k, pads, sizeof(stretch), &buffer));
    j->n_stretches = find_stretches(j->map[last], j->part[last], j->out[last], buffer);
    j->stretches = buffer;
    j->single = pads <= 4 && j->part[last].end > j->part[last].start;
    return SN_OK;
}

/* Elements of `length` that a pad takes away: a negative one, of any size. */
static int64_t cut_off(int64_t pad, int64_t length) {
    return pad >= 0 ? 0 : pad < -length ? length : -pad;
}

/* A value around the input: axes without pads are one with the axis before them. */
static void merge_axes(pad_job *j, const int64_t *before, const int64_t *after) {
    int rank = 0;
    for (int i = 0; i < j->rank; i++) {
        int64_t length = j->in[i], out = j->out[i];
        int64_t skip = cut_off(before[i], length), kept = length - skip - cut_off(after[i], length);
        int64_t start = before[i] > 0 ? before[i] : 0;
        if (start > out) start = out;
        int64_t end = kept <= 0 ? start : kept < out - start ? start + kept : out;
        if (rank > 0 && before[i] == 0 && after[i] == 0) {
            axis_part *p = &j->part[rank - 1];
            *p = (axis_part){p->start * length, p->end * length, p->skip * length};
            j->in[rank - 1] *= length;
            j->out[rank - 1] *= length;
            continue;
        }
        j->part[rank] = (axis_part){start, end, skip};
        j->in[rank] = length;
        j->out[rank++] = out;
    }
    j->rank = rank;
}

/* A value everywhere, then the input. */
static sn_status fill_around(sni_kernel *k, const unsigned char *value, const int64_t *before) {
    const sni_tensor *x = sni_in(k, 0);
    sni_tensor *y = sni_out(k, 0);
    sni_fill_shared(k->threads, y->data, value, y->count, sni_dtype_width(y->dtype));
    /* A pad beyond the other end of the axis leaves nothing of it. */
    for (int i = 0; i < x->rank; i++)
        if (before[i] < -x->dims[i] || before[i] >= y->dims[i]) return SN_OK;
    put_shifted(k, x, y, before);
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
    static const unsigned char zero[16];
    if (p->mode == CONSTANT && value && value->count != 1)
        return SNI_KERNEL_FAIL(k, "constant_value has %" PRId64 " elements, not 1", value->count);
    pad_job job = {.x = x, .data = y->data, .rank = x->rank};
    job.width = sni_dtype_width(x->dtype);
    for (int i = 0; i < x->rank; i++) {
        job.in[i] = x->dims[i];
        job.out[i] = y->dims[i];
    }
    if (x->rank == 0) { /* nothing can be added to a single element */
        memcpy(y->data, x->data, job.width);
        return SN_OK;
    }
    if (p->mode == CONSTANT) {
        job.value = value ? value->data : zero;
        job.even = true;
        for (size_t i = 1; i < job.width; i++) job.even = job.even && job.value[i] == job.value[0];
        merge_axes(&job, before, after);
        if ((size_t)job.out[job.rank - 1] * job.width <= SHORT_ROW)
            return fill_around(k, job.value, before);
    } else {
        SN_TRY(map_axes(k, &job, before, after));
    }
    sni_strides(job.rank, job.in, job.strides);
    sni_share(k->threads, y->count, (int64_t)job.width, pad_elements, &job);
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
