/* sliding.c - sliding windows: attribute checks, sizes, and the walk over rows. */
#include "ops/nn/sliding.h"

#include <limits.h>

/* An attribute with one value per axis, `otherwise` where it is not given; all within [low, 2^31).
 */
static sn_status axis_values(const char *what, sni_ints given, int n, int64_t low,
                             int64_t otherwise, int64_t *out, sn_error *err) {
    for (int i = 0; i < n; i++) out[i] = otherwise;
    if (given.n == 0) return SN_OK;
    if (given.n != (size_t)n)
        return sni_fail(err, SN_INVALID_MODEL, "%s has %zu values, not %d", what, given.n, n);
    for (int i = 0; i < n; i++) {
        if (given.v[i] < low || given.v[i] > INT_MAX)
            return sni_fail(err, SN_INVALID_MODEL, "%s[%d] is %lld, outside %lld to %d", what, i,
                            (long long)given.v[i], (long long)low, INT_MAX);
        out[i] = given.v[i];
    }
    return SN_OK;
}

static sn_status kernel_sizes(sni_window *w, const sni_window_params *p, const sni_dim *kernel,
                              sn_error *err) {
    SN_TRY(axis_values("kernel_shape", p->kernel_shape, w->rank, 1, -1, w->kernel, err));
    if (!kernel && p->kernel_shape.n == 0)
        return sni_fail(err, SN_INVALID_MODEL, "kernel_shape is empty");
    for (int i = 0; kernel && i < w->rank; i++) {
        if (!sni_dim_known(kernel[i])) continue;
        if (kernel[i] < 1 || kernel[i] > INT_MAX)
            return sni_fail(err, SN_INVALID_MODEL, "the kernel's size along axis %d is %lld", i,
                            (long long)kernel[i]);
        if (w->kernel[i] >= 0 && w->kernel[i] != kernel[i])
            return sni_fail(err, SN_INVALID_MODEL,
                            "kernel_shape[%d] is %lld but the weights have %lld", i,
                            (long long)w->kernel[i], (long long)kernel[i]);
        w->kernel[i] = kernel[i];
    }
    for (int i = 0; i < w->rank; i++)
        if (w->kernel[i] > 0 && (w->kernel[i] - 1) * w->dilation[i] >= INT_MAX)
            return sni_fail(err, SN_INVALID_MODEL,
                            "a kernel of %lld with dilation %lld is too large along axis %d",
                            (long long)w->kernel[i], (long long)w->dilation[i], i);
    return SN_OK;
}

sn_status sni_window_init(sni_window *w, const sni_window_params *p, int rank,
                          const sni_dim *kernel, sn_error *err) {
    if (rank < 1)
        return sni_fail(err, SN_INVALID_MODEL, "the input has no spatial axis: its rank is %d",
                        rank + 2);
    int64_t pads[2 * SN_MAX_RANK];
    w->rank = rank;
    SN_TRY(axis_values("strides", p->strides, rank, 1, 1, w->stride, err));
    SN_TRY(axis_values("dilations", p->dilations, rank, 1, 1, w->dilation, err));
    SN_TRY(axis_values("pads", p->pads, 2 * rank, 0, 0, pads, err));
    bool explicit_pads = p->auto_pad == SNI_PAD_NOTSET;
    for (int i = 0; i < rank; i++) {
        w->begin[i] = explicit_pads ? pads[i] : 0;
        w->end[i] = explicit_pads ? pads[rank + i] : 0;
    }
    return kernel_sizes(w, p, kernel, err);
}

static bool is_same(const sni_window_params *p) {
    return p->auto_pad == SNI_PAD_SAME_UPPER || p->auto_pad == SNI_PAD_SAME_LOWER;
}

static sn_status known_size(const sni_window *w, const sni_window_params *p, int i, int64_t in,
                            sni_dim *out, sn_error *err) {
    if (in > INT64_MAX / 4)
        return sni_fail(err, SN_INVALID_MODEL, "the input's size %lld is too large", (long long)in);
    int64_t room = in + w->begin[i] + w->end[i] - sni_window_extent(w, i);
    /* In ceil mode a window may hang over the end, but it must begin before the end padding. */
    bool hangs = p->ceil_mode && room < 0 && room > -w->stride[i] && in > 0;
    if (room < 0 && !hangs)
        return sni_fail(err, SN_INVALID_MODEL,
                        "a window of %lld does not fit into %lld elements with padding %lld and "
                        "%lld along spatial axis %d",
                        (long long)sni_window_extent(w, i), (long long)in, (long long)w->begin[i],
                        (long long)w->end[i], i);
    int64_t s = w->stride[i];
    *out = room / s + 1; /* towards 0: 1 if it hangs over */
    if (p->ceil_mode && room > 0 && room % s && *out * s < in + w->begin[i]) (*out)++;
    return SN_OK;
}

static sni_dim symbolic_size(const sni_window *w, const sni_window_params *p, int i, sni_dim in,
                             sni_symbols *sy) {
    int64_t s = w->stride[i], whole = w->begin[i] + w->end[i], extent = sni_window_extent(w, i);
    sni_dim room =
        whole >= extent ? sni_dim_add(sy, in, whole - extent) : sni_dim_sub(sy, in, extent - whole);
    if (!p->ceil_mode || s == 1) return sni_dim_add(sy, sni_dim_floordiv(sy, room, s), 1);
    return sni_dim_min(sy, sni_dim_add(sy, sni_dim_ceildiv(sy, room, s), 1),
                       sni_dim_ceildiv(sy, sni_dim_add(sy, in, w->begin[i]), s));
}

sn_status sni_window_sizes(const sni_window *w, const sni_window_params *p, const sni_dim *in,
                           sni_dim *out, sni_symbols *symbols, sn_error *err) {
    for (int i = 0; i < w->rank; i++) {
        if (is_same(p))
            out[i] = sni_dim_ceildiv(symbols, in[i], w->stride[i]);
        else if (w->kernel[i] < 0)
            out[i] = sni_dim_fresh(symbols);
        else if (sni_dim_known(in[i]))
            SN_TRY(known_size(w, p, i, in[i], &out[i], err));
        else
            out[i] = symbolic_size(w, p, i, in[i], symbols);
        if (out[i] == SNI_DIM_FAIL) return sni_fail_memory(err);
    }
    return SN_OK;
}

void sni_window_place(sni_window *w, const sni_window_params *p, const int64_t *in,
                      const int64_t *out) {
    for (int i = 0; i < w->rank; i++) {
        w->in[i] = in[i];
        w->out[i] = out[i];
        if (!is_same(p)) continue;
        int64_t need = (out[i] - 1) * w->stride[i] + sni_window_extent(w, i) - in[i];
        if (need < 0) need = 0;
        w->begin[i] = p->auto_pad == SNI_PAD_SAME_UPPER ? need / 2 : need - need / 2;
        w->end[i] = need - w->begin[i];
    }
}

sn_status sni_window_at_run(sni_kernel *k, sni_window *w, const sni_window_params *p,
                            const sni_tensor *x, const sni_tensor *y, const int64_t *kernel) {
    SN_TRY(sni_window_init(w, p, x->rank - 2, kernel, k->err));
    sni_window_place(w, p, x->dims + 2, y->dims + 2);
    return SN_OK;
}

static int64_t rows_product(const sni_window *w, const int64_t *v) {
    int64_t n = 1;
    for (int i = 0; i + 1 < w->rank; i++) n *= v[i];
    return n;
}

int64_t sni_window_in_rows(const sni_window *w) {
    return rows_product(w, w->in);
}

int64_t sni_window_out_rows(const sni_window *w) {
    return rows_product(w, w->out);
}

int64_t sni_window_tap_rows(const sni_window *w) {
    return rows_product(w, w->kernel);
}

void sni_window_origin(const sni_window *w, int64_t out_row, int64_t *origin) {
    for (int i = w->rank - 2; i >= 0; i--) {
        origin[i] = out_row % w->out[i] * w->stride[i] - w->begin[i];
        out_row /= w->out[i];
    }
}

void sni_window_next_tap(const sni_window *w, int64_t *tap) {
    for (int i = w->rank - 2; i >= 0; i--) {
        if (++tap[i] < w->kernel[i]) return;
        tap[i] = 0;
    }
}

int64_t sni_window_in_row(const sni_window *w, const int64_t *origin, const int64_t *tap) {
    int64_t row = 0;
    for (int i = 0; i + 1 < w->rank; i++) {
        int64_t at = origin[i] + tap[i] * w->dilation[i];
        if (at < 0 || at >= w->in[i]) return -1;
        row = row * w->in[i] + at;
    }
    return row;
}

/* The smallest o >= 0 with o * stride >= v. */
static int64_t first_at_least(int64_t v, int64_t stride) {
    return v <= 0 ? 0 : (v - 1) / stride + 1;
}

void sni_window_span(const sni_window *w, int64_t tap, int64_t *lo, int64_t *hi, int64_t *shift) {
    int last = w->rank - 1;
    *shift = tap * w->dilation[last] - w->begin[last];
    *lo = first_at_least(-*shift, w->stride[last]);
    *hi = first_at_least(w->in[last] - *shift, w->stride[last]);
    if (*hi > w->out[last]) *hi = w->out[last];
    if (*lo > *hi) *lo = *hi;
}

/* Taps [from, to) of `count` that are in [low, high) when the first one is at `start`. */
static void taps_within(int64_t start, int64_t step, int64_t count, int64_t low, int64_t high,
                        int64_t *from, int64_t *to) {
    *from = first_at_least(low - start, step);
    *to = first_at_least(high - start, step);
    if (*to > count) *to = count;
    if (*from > *to) *from = *to;
}

void sni_window_last_taps(const sni_window *w, int64_t *from, int64_t *to) {
    int last = w->rank - 1;
    int64_t reach = (w->out[last] - 1) * w->stride[last];
    taps_within(-w->begin[last], w->dilation[last], w->kernel[last], -reach, w->in[last], from, to);
}

bool sni_window_rows_first(const sni_window *w, sni_window_rows *r, int64_t out_row) {
    sni_window_origin(w, out_row, r->origin);
    for (int i = 0; i + 1 < w->rank; i++) {
        taps_within(r->origin[i], w->dilation[i], w->kernel[i], 0, w->in[i], &r->from[i],
                    &r->to[i]);
        if (r->from[i] == r->to[i]) return false;
        r->tap[i] = r->from[i];
    }
    r->in_row = sni_window_in_row(w, r->origin, r->tap);
    return true;
}

bool sni_window_rows_next(const sni_window *w, sni_window_rows *r) {
    for (int i = w->rank - 2; i >= 0; i--) {
        if (++r->tap[i] < r->to[i]) {
            r->in_row = sni_window_in_row(w, r->origin, r->tap);
            return true;
        }
        r->tap[i] = r->from[i];
    }
    return false;
}

int64_t sni_window_taps(const sni_window *w, int axis, int64_t o, bool padding) {
    int64_t from, to;
    taps_within(o * w->stride[axis] - w->begin[axis], w->dilation[axis], w->kernel[axis],
                padding ? -w->begin[axis] : 0, w->in[axis] + (padding ? w->end[axis] : 0), &from,
                &to);
    return to - from;
}

sn_status sni_infer_pool(sni_infer *c, const sni_window_params *p) {
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0);
    sni_window w;
    sni_dim dims[SN_MAX_RANK];
    SN_TRY(sni_window_init(&w, p, rank - 2, NULL, c->err));
    const sni_dim *in = c->in[0]->dims;
    dims[0] = in[0];
    dims[1] = in[1];
    SN_TRY(sni_window_sizes(&w, p, in + 2, dims + 2, c->symbols, c->err));
    for (int i = 0; i < c->n_out; i++) SN_TRY(sni_infer_set_shape(c, i, rank, dims));
    return SN_OK;
}
