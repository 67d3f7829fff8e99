/* DFT and STFT. Computed in double. */
#include "ops/signal/fft.h"

#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

/* ---- DFT ---- */

typedef struct dft_params {
    int64_t inverse, onesided;
} dft_params;

/* Lines along one axis: x is (outer, in, inner, parts), y (outer, out, inner, out_parts). */
typedef struct dft_lines {
    const double *x;
    double *y;
    int64_t in, out, inner, n;
    int parts, out_parts; /* 1: real, 2: real and imaginary */
    bool inverse, half;   /* half: the input is the non-redundant half of a spectrum */
} dft_lines;

static void dft_load(const void *ctx, int64_t line, double *buffer) {
    const dft_lines *l = ctx;
    int64_t stride = l->inner * l->parts;
    const double *x = l->x + (line / l->inner * l->in * l->inner + line % l->inner) * l->parts;
    int64_t bins = l->half ? l->n / 2 + 1 : l->n;
    double sign = l->inverse ? -1 : 1; /* inverse: the conjugate goes in and comes out */
    for (int64_t i = 0; i < bins; i++) {
        bool there = i < l->in;
        buffer[2 * i] = there ? x[i * stride] : 0;
        buffer[2 * i + 1] = there && l->parts == 2 ? sign * x[i * stride + 1] : 0;
    }
    if (!l->half) return;
    buffer[1] = 0;
    if (l->n % 2 == 0) buffer[l->n + 1] = 0;
    for (int64_t i = bins; i < l->n; i++) {
        buffer[2 * i] = buffer[2 * (l->n - i)];
        buffer[2 * i + 1] = -buffer[2 * (l->n - i) + 1];
    }
}

static void dft_store(const void *ctx, int64_t line, const double *buffer) {
    const dft_lines *l = ctx;
    int64_t stride = l->inner * l->out_parts;
    double *y = l->y + (line / l->inner * l->out * l->inner + line % l->inner) * l->out_parts;
    double scale = l->inverse ? 1 / (double)l->n : 1;
    for (int64_t i = 0; i < l->out; i++) {
        y[i * stride] = scale * buffer[2 * i];
        if (l->out_parts == 2)
            y[i * stride + 1] = (l->inverse ? -scale : scale) * buffer[2 * i + 1];
    }
}

static sn_status dft_axis(const sni_tensor *axis, int rank, int *out, sn_error *err) {
    int64_t a = axis && axis->count == 1 ? sni_index_at(axis, 0) : -2;
    if (a < -rank || a >= rank || a == -1 || a == rank - 1)
        return sni_fail(err, SN_BAD_DATA, "axis %lld is no signal axis of a tensor of rank %d",
                        (long long)a, rank);
    *out = (int)(a < 0 ? a + rank : a);
    return SN_OK;
}

static sn_status dft_ref(sni_kernel *k) {
    const dft_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *length = sni_in(k, 1);
    sni_tensor *y = sni_out(k, 0);
    int axis = 0;
    SN_TRY(dft_axis(sni_in(k, 2), x->rank, &axis, k->err));
    dft_lines l = {.inverse = p->inverse != 0, .half = p->inverse && p->onesided};
    l.in = x->dims[axis];
    l.n = length && length->count ? sni_index_at(length, 0) : l.half ? 2 * (l.in - 1) : l.in;
    l.parts = (int)x->dims[x->rank - 1];
    l.out_parts = l.half ? 1 : 2;
    l.inner = sni_tensor_span(x, axis + 1, x->rank - 1);
    l.out = p->onesided && !p->inverse ? l.n / 2 + 1 : l.n;
    if ((l.parts != 1 && l.parts != 2) || l.n < 1 || y->rank != x->rank || y->dims[axis] != l.out ||
        y->dims[y->rank - 1] != l.out_parts)
        return SNI_KERNEL_FAIL(k, "a transform of length %lld does not fit its shapes",
                               (long long)l.n);
    if (y->count == 0) return SN_OK;
    void *memory = NULL;
    SN_TRY(sni_as_f64(k, x, &l.x));
    SN_TRY(sni_scratch_array(k, y->count, sizeof(double), &memory));
    l.y = memory;
    int64_t lines = sni_tensor_span(x, 0, axis) * l.inner;
    SN_TRY(sni_fft_run(k, &(sni_fft_job){l.n, lines, dft_load, dft_store, &l}));
    sni_store_numbers(y, SN_FLOAT64, memory, false);
    return SN_OK;
}

/* The length of the output along the axis, whose input length is d. */
static sn_status dft_length(sni_infer *c, sni_dim d, sni_dim *out) {
    const dft_params *p = c->params;
    const sni_dim *given;
    int32_t count;
    SN_TRY(sni_infer_dims(c, 1, &given, &count));
    if (sni_infer_given(c, 1)) {
        if (given && count != 1)
            return SNI_INFER_FAIL(c, "dft_length has %d elements, not 1", (int)count);
        d = given ? given[0] : sni_dim_fresh(c->symbols);
    } else if (p->inverse && p->onesided) {
        if (d == 0) return SNI_INFER_FAIL(c, "an empty spectrum has no inverse");
        d = sni_dim_mul(c->symbols, sni_dim_sub(c->symbols, d, 1), 2);
    }
    if (p->onesided && !p->inverse)
        d = sni_dim_add(c->symbols, sni_dim_floordiv(c->symbols, d, 2), 1);
    *out = d;
    return SN_OK;
}

static sn_status dft_infer(sni_infer *c) {
    const dft_params *p = c->params;
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    int rank = sni_infer_rank(c, 0), axis = -1;
    if (rank < 2) return SNI_INFER_FAIL(c, "a signal of rank %d has no axis to transform", rank);
    sni_dim dims[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) dims[i] = sni_infer_dim(c, 0, i);
    if (sni_dim_known(dims[rank - 1]) && dims[rank - 1] != 1 && dims[rank - 1] != 2)
        return SNI_INFER_FAIL(c, "the last axis has size %lld, not 1 or 2",
                              (long long)dims[rank - 1]);
    const sni_tensor *given = NULL;
    SN_TRY(sni_infer_known(c, 2, &given));
    if (!sni_infer_given(c, 2) || given) {
        SN_TRY(dft_axis(given, rank, &axis, c->err));
        SN_TRY(dft_length(c, dims[axis], &dims[axis]));
    }
    for (int i = 0; axis < 0 && i < rank - 1; i++) dims[i] = sni_dim_fresh(c->symbols);
    dims[rank - 1] = p->inverse && p->onesided ? 1 : 2;
    return sni_infer_set_shape(c, 0, rank, dims);
}

/* The axis was an attribute with default 1. */
static sn_status dft_upgrade(sni_upgrade *u) {
    if (u->from >= 20 || (u->node->n_in > 2 && u->node->in[2] != SNI_NO_ID)) return SN_OK;
    int32_t axis;
    SN_TRY(sni_upgrade_scalar(u, SN_INT64, 1, &axis));
    SN_TRY(sni_node_resize_inputs(u->graph, u->node, 3, u->err));
    return sni_node_set_input(u->graph, u->node, 2, axis, u->err);
}

const sni_op sni_op_DFT = {
    .name = "DFT",
    .versions = SNI_VERSIONS(17, 20),
    .inputs = SNI_FORMALS({"input", "T1"}, {"dft_length", "T2", SNI_OPTIONAL},
                          {"axis", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T1"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}, {"T2", SNI_T_INDEX}),
    .params = SNI_PARAMS({"inverse", SNI_ATTR_INT, offsetof(dft_params, inverse)},
                         {"onesided", SNI_ATTR_INT, offsetof(dft_params, onesided)}),
    .params_size = sizeof(dft_params),
    .moves = SNI_ATTR_MOVES({"axis", 20, 2, SN_INT64}),
    .upgrade = dft_upgrade,
    .infer = dft_infer,
    .ref = dft_ref,
};

/* ---- STFT ---- */

typedef struct stft_params {
    int64_t onesided;
} stft_params;

/* x is (batch, samples, parts), y (batch, frames, bins, 2). */
typedef struct stft_lines {
    const double *x, *window; /* window NULL: all ones */
    double *y;
    int64_t samples, step, n, frames, bins;
    int parts;
} stft_lines;

static void stft_load(const void *ctx, int64_t line, double *buffer) {
    const stft_lines *l = ctx;
    const double *x =
        l->x + (line / l->frames * l->samples + line % l->frames * l->step) * l->parts;
    for (int64_t i = 0; i < l->n; i++) {
        double w = l->window ? l->window[i] : 1;
        buffer[2 * i] = w * x[i * l->parts];
        buffer[2 * i + 1] = l->parts == 2 ? w * x[i * l->parts + 1] : 0;
    }
}

static void stft_store(const void *ctx, int64_t line, const double *buffer) {
    const stft_lines *l = ctx;
    memcpy(l->y + line * l->bins * 2, buffer, (size_t)l->bins * 2 * sizeof(double));
}

static sn_status stft_ref(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0), *step = sni_in(k, 1);
    const sni_tensor *window = sni_in(k, 2), *length = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    stft_lines l = {.samples = x->rank >= 2 ? x->dims[1] : 0, .frames = y->dims[1]};
    l.parts = x->rank == 3 ? (int)x->dims[2] : 1;
    l.step = step->count == 1 ? sni_index_at(step, 0) : 0;
    l.n = length && length->count == 1 ? sni_index_at(length, 0) : window ? window->count : 0;
    l.bins = y->dims[2];
    if (x->rank < 2 || x->rank > 3 || (l.parts != 1 && l.parts != 2) || l.step < 1 || l.n < 1 ||
        l.bins > l.n)
        return SNI_KERNEL_FAIL(k, "frames of %lld at steps of %lld do not fit the signal",
                               (long long)l.n, (long long)l.step);
    if (window && window->count != l.n)
        return SNI_KERNEL_FAIL(k, "the window has %lld elements for frames of %lld",
                               (long long)window->count, (long long)l.n);
    if (y->count == 0) return SN_OK;
    if (l.n > l.samples || l.frames > (l.samples - l.n) / l.step + 1 || y->dims[0] != x->dims[0])
        return SNI_KERNEL_FAIL(k, "%lld frames do not fit %lld samples", (long long)l.frames,
                               (long long)l.samples);
    void *memory = NULL;
    SN_TRY(sni_as_f64(k, x, &l.x));
    if (window) SN_TRY(sni_as_f64(k, window, &l.window));
    SN_TRY(sni_scratch_array(k, y->count, sizeof(double), &memory));
    l.y = memory;
    SN_TRY(sni_fft_run(k, &(sni_fft_job){l.n, y->dims[0] * l.frames, stft_load, stft_store, &l}));
    sni_store_numbers(y, SN_FLOAT64, memory, false);
    return SN_OK;
}

static sn_status one_dim(sni_infer *c, int i, const char *what, sni_dim *out) {
    const sni_dim *dims;
    int32_t count;
    SN_TRY(sni_infer_dims(c, i, &dims, &count));
    if (dims && (count != 1 || (!sni_dim_is_symbol(dims[0]) && dims[0] < 1)))
        return SNI_INFER_FAIL(c, "%s is not one number above 0", what);
    *out = dims ? dims[0] : sni_dim_fresh(c->symbols);
    return SN_OK;
}

static sn_status stft_infer(sni_infer *c) {
    const stft_params *p = c->params;
    if (!sni_infer_shaped(c, 0)) return SN_OK;
    if (sni_infer_rank(c, 0) < 2 || sni_infer_rank(c, 0) > 3)
        return SNI_INFER_FAIL(c, "a signal has rank 2 or 3, not %d", sni_infer_rank(c, 0));
    sni_dim step = 0, n = 0, samples = sni_infer_dim(c, 0, 1);
    SN_TRY(one_dim(c, 1, "frame_step", &step));
    if (sni_infer_given(c, 3))
        SN_TRY(one_dim(c, 3, "frame_length", &n));
    else if (sni_infer_shaped(c, 2) && sni_infer_rank(c, 2) == 1)
        n = sni_infer_dim(c, 2, 0);
    else if (sni_infer_given(c, 2))
        n = sni_dim_fresh(c->symbols);
    else
        return SNI_INFER_FAIL(c, "neither a window nor frame_length is given");
    if (sni_dim_known(n) && sni_dim_known(samples) && samples < n)
        return SNI_INFER_FAIL(c, "a signal of %lld samples is shorter than a frame of %lld",
                              (long long)samples, (long long)n);
    sni_symbols *s = c->symbols;
    sni_dim frames = sni_dim_known(step)
                         ? sni_dim_add(s, sni_dim_floordiv(s, sni_dim_sub(s, samples, n), step), 1)
                         : sni_dim_fresh(s);
    sni_dim bins = p->onesided ? sni_dim_add(s, sni_dim_floordiv(s, n, 2), 1) : n;
    return sni_infer_set_shape(c, 0, 4, (sni_dim[]){sni_infer_dim(c, 0, 0), frames, bins, 2});
}

const sni_op sni_op_STFT = {
    .name = "STFT",
    .versions = SNI_VERSIONS(17),
    .inputs = SNI_FORMALS({"signal", "T1"}, {"frame_step", "T2"}, {"window", "T1", SNI_OPTIONAL},
                          {"frame_length", "T2", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T1"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}, {"T2", SNI_T_INDEX}),
    .params = SNI_PARAMS({"onesided", SNI_ATTR_INT, offsetof(stft_params, onesided), .number = 1}),
    .params_size = sizeof(stft_params),
    .infer = stft_infer,
    .ref = stft_ref,
};
