/* qconv.c - QLinearConv and ConvInteger: the choice of the way, and products of packed weights with
 * patches of the input (im2col) that are gathered panel by panel as bytes. */
#include "cpu/int8/qconv.h"

#include "ops/quant/quant.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <stdlib.h>

/* The indices of the operator's inputs; -1: it has none. */
typedef struct places {
    int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
} places;

static const places linear = {0, 1, 2, 3, 4, 5, 6, 7, 8};
static const places integer = {0, -1, 2, 1, -1, 3, -1, -1, -1};

/* ---- Weights ---- */

static bool accepts(const sni_choice *c, const places *p) {
    if (p->w >= c->n_in || !sni_int_is_bytes(c, p->x) || !sni_int_is_bytes(c, p->w) ||
        !c->constants[p->w])
        return false;
    const sni_tensor *w = &c->constants[p->w]->tensor;
    if ((w->rank != 3 && w->rank != 4) || w->count == 0) return false;
    if (!sni_int_is_constant(c, p->w_zero, w->dims[0]) || !sni_int_is_single(c, p->x_zero))
        return false;
    return p->w_scale < 0 ||
           (sni_int_is_single(c, p->x_scale) && sni_int_is_single(c, p->y_scale) &&
            sni_int_is_single(c, p->y_zero) && sni_int_is_constant(c, p->w_scale, w->dims[0]));
}

static bool linear_accepts(const sni_choice *c) {
    return accepts(c, &linear);
}

static bool integer_accepts(const sni_choice *c) {
    return accepts(c, &integer);
}

typedef struct weight_view {
    const uint8_t *w; /* a group's first channel */
    uint8_t flip;
    int64_t taps, channels, depth;
} weight_view;

/* Element p of output channel i: positions are ordered by tap, then by channel. */
static int weight_at(const void *ctx, int64_t i, int64_t p) {
    const weight_view *v = ctx;
    int64_t tap = p / v->depth, channel = p % v->depth;
    if (tap >= v->taps || channel >= v->channels) return 0;
    return (int8_t)(v->w[(i * v->channels + channel) * v->taps + tap] ^ v->flip);
}

typedef struct row_view {
    const uint8_t *w; /* a row of a channel's taps */
    uint8_t flip;
    int64_t taps;
} row_view;

static int tap_at(const void *ctx, int64_t i, int64_t p) {
    const row_view *v = ctx;
    (void)i;
    return p < v->taps ? (int8_t)(v->w[p] ^ v->flip) : 0;
}

/* Packs rows of taps as units. */
static void fill_rows(sni_qconv *p, const sni_tensor *w) {
    row_view v = {w->data, sni_int_flip(w->dtype, true), w->dims[w->rank - 1]};
    int64_t rows = w->count / v.taps;
    for (int64_t r = 0; r < rows; r++, v.w += v.taps)
        for (int64_t u = 0; u < p->row_units; u++)
            p->rows_w[r * p->row_units + u] = sni_int_unit(tap_at, &v, 0, u);
}

static void fill_weights(sni_qconv *p, const sni_tensor *w) {
    int64_t each = p->taps * p->channels;
    uint8_t flip = sni_int_flip(w->dtype, true);
    const uint8_t *data = w->data;
    for (int64_t g = 0; g < p->groups && p->w.panels; g++) {
        weight_view v = {data + g * p->m * each, flip, p->taps, p->channels, p->depth};
        if (p->w.size && !p->few)
            sni_igemm_pack_a(p->m, p->w.units, weight_at, &v, p->w.panels + (size_t)g * p->w.size);
    }
    for (int64_t i = 0; i < p->w.n; i++) {
        int32_t sum = 0;
        for (int64_t t = 0; t < each; t++) {
            int32_t v = (int8_t)(data[i * each + t] ^ flip);
            sum += v;
            if (p->taps_w) p->taps_w[i * each + t] = (float)sni_int_less(v, p->w.zeros[i]);
        }
        p->w.sums[i] = sum;
    }
    if (p->rows_w) fill_rows(p, w);
    if (p->few) sni_qconv_pack_few(p, w);
}

/* True if sni_int_windows can compute it: no zero points of weights, no dilation, strides up to 2.
 */
static bool takes_windows(const sni_conv_params *p, const sni_int_weights *w) {
    const sni_window_params *v = &p->window;
    for (size_t i = 0; i < v->dilations.n; i++)
        if (v->dilations.v[i] != 1) return false;
    return !w->has_zero && (v->strides.n == 0 || (v->strides.v[v->strides.n - 1] <= 2));
}

/* Chooses units along rows of taps where that makes no more units than channels would. */
static void choose_units(const sni_conv_params *params, const sni_tensor *w, sni_qconv *p) {
    int group = sni_int_kernels_get()->group;
    int64_t taps = w->dims[w->rank - 1], row = (taps + group - 1) / group;
    int64_t units = p->channels * (p->taps / taps) * row;
    if (taps < 2 || units > p->w.units || !takes_windows(params, &p->w)) return;
    p->few = true;
    p->row_units = row;
    p->w.units = units;
}

/* Depthwise: the further elements of the packed memory are the weights as floats or, where
 * p->row_units is set, as units of rows. */
static void choose_taps(const sni_conv_params *params, const sni_tensor *w, sni_qconv *p) {
    int group = sni_int_kernels_get()->group;
    int64_t taps = w->dims[w->rank - 1];
    bool windows = takes_windows(params, &p->w);
    p->row_units = windows ? (taps + group - 1) / group : 0;
    p->w.more = (size_t)(windows ? w->count / taps * p->row_units : w->count);
}

static sn_status prepare(const sni_choice *c, const places *at, void **state, sn_error *err) {
    const sni_conv_params *params = c->params;
    const sni_tensor *w = &c->constants[at->w]->tensor;
    int group = sni_int_kernels_get()->group;
    bool filled;
    sni_qconv p = {.groups = params->group, .channels = w->dims[1]};
    p.m = w->dims[0] / p.groups;
    p.taps = sni_tensor_span(w, 2, w->rank);
    p.depth = (p.channels + group - 1) / group * group;
    bool one = p.channels == 1 && p.groups > 1 && p.taps < SNI_INT_TAPS;
    p.w = (sni_int_weights){.n = w->dims[0], .k = p.taps * p.channels};
    p.w.units = p.taps * p.depth / group;
    SN_TRY(sni_int_zeros(c, at->w, at->w_zero, &p.w, err));
    if (one)
        choose_taps(params, w, &p);
    else
        choose_units(params, w, &p);
    p.w.size = one ? 0 : sni_igemm_packed_a_size(p.m, p.w.units);
    SN_TRY(sni_int_weights_alloc(c, at->w, at->w_zero, p.groups, &p.w, &filled, err));
    if (one && p.row_units)
        p.rows_w = p.w.extra;
    else if (one)
        p.taps_w = p.w.extra;
    if (!filled) {
        SN_TRY(sni_cpu_weight(c, at->w, &w, err));
        fill_weights(&p, w);
    }
    return sni_cpu_keep(&p, sizeof p, state, err);
}

static sn_status linear_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, &linear, state, err);
}

static sn_status integer_prepare(const sni_choice *c, void **state, sn_error *err) {
    return prepare(c, &integer, state, err);
}

/* ---- Patches ---- */

/* Makes one spatial axis an image that is one row high. */
static void two_axes(sni_window *w) {
    if (w->rank == 2) return;
    w->rank = 2;
    int64_t *const all[] = {w->kernel, w->stride, w->dilation, w->begin, w->end, w->in, w->out};
    for (int i = 0; i < 7; i++) {
        all[i][1] = all[i][0];
        all[i][0] = i == 3 || i == 4 ? 0 : 1;
    }
}

typedef struct patches {
    const sni_window *w;
    const sni_int_kernels *kernels;
    const uint8_t *x;           /* the group's first channel */
    const uint8_t *begin, *end; /* of the whole input */
    int64_t channels, depth, plane;
    uint8_t flip, pad;
    bool straight; /* stride 1, and rows of input and output have the same length */
    bool pixels;   /* also one tap and no padding: patches are the input itself */
    /* For each tap of a row: outputs [low, high) have input, output o at element o * stride +
     * shift. */
    int64_t *low, *high, *shift;
} patches;

/* What one tap reads for the columns of a panel: runs of bytes of a channel's plane, and padding
 * elsewhere. */
typedef struct stretch {
    int64_t to, count, from;
} stretch;

typedef struct view {
    int n_runs;
    stretch runs[SNI_INT_NR];
    uint8_t mask[SNI_INT_NR]; /* 255 where there is input */
    int64_t shift;            /* straight: the offset of column 0 in the plane */
    bool all;                 /* no padding, and all columns of the panel */
} view;

/* Adds outputs [first, first + count) of one row, which begin at column `to`, to the view. */
static void view_row(const patches *p, int64_t in_row, int64_t tap, int64_t first, int64_t count,
                     int64_t to, view *v) {
    const sni_window *w = p->w;
    int64_t lo = p->low[tap], hi = p->high[tap], shift = p->shift[tap];
    if (in_row < 0 || in_row >= w->in[0]) return;
    if (lo < first) lo = first;
    if (hi > first + count) hi = first + count;
    if (hi <= lo) return;
    v->runs[v->n_runs++] =
        (stretch){to + lo - first, hi - lo, in_row * w->in[1] + lo * w->stride[1] + shift};
    memset(v->mask + to + lo - first, 255, (size_t)(hi - lo));
}

/* The columns of a panel: outputs n0, n0 + 1, ... (`cols` of them), the first at (row, at). */
typedef struct columns {
    int64_t n0, row, at, cols;
} columns;

/* The view of one tap for a panel. */
static void view_tap(const patches *p, int64_t tap_h, int64_t tap_w, const columns *c, view *v) {
    const sni_window *w = p->w;
    int64_t found = 0, row = c->row, at = c->at;
    v->n_runs = 0;
    memset(v->mask, 0, sizeof v->mask);
    int64_t down = tap_h * w->dilation[0] - w->begin[0];
    v->shift = c->n0 + down * w->in[1] + tap_w * w->dilation[1] - w->begin[1];
    for (int64_t done = 0; done < c->cols; row++, at = 0) {
        int64_t count = w->out[1] - at < c->cols - done ? w->out[1] - at : c->cols - done;
        view_row(p, row * w->stride[0] + down, tap_w, at, count, done, v);
        done += count;
    }
    for (int i = 0; i < v->n_runs; i++) found += v->runs[i].count;
    v->all = found == p->kernels->nr;
}

/* The nr bytes that a tap reads of one channel: in place, or gathered in `copy`. */
static const uint8_t *view_channel(const patches *p, const view *v, int64_t channel,
                                   uint8_t *copy) {
    const uint8_t *x = p->x + channel * p->plane;
    int nr = p->kernels->nr;
    if (p->straight) {
        int64_t at = x - p->begin + v->shift;
        if (at >= 0 && p->end - p->begin - at >= nr) {
            if (v->all) return p->begin + at;
            p->kernels->blend(p->begin + at, v->mask, p->pad, copy);
            return copy;
        }
    }
    if (!v->all) memset(copy, p->pad, (size_t)nr);
    for (int i = 0; i < v->n_runs; i++)
        p->kernels->copy_rows(x + v->runs[i].from, 0, p->w->stride[1], 1, v->runs[i].count,
                              copy + v->runs[i].to, 0);
    return copy;
}

/* A full panel of a pointwise convolution: rows of pixels are interleaved in place. */
static void fill_pixels(const patches *p, int64_t n0, const uint8_t *none, int32_t *panel) {
    const uint8_t *rows[SNI_INT_GROUP];
    int group = p->kernels->group;
    for (int64_t c = 0; c < p->depth; c += group, panel += p->kernels->nr) {
        for (int g = 0; g < group; g++)
            rows[g] = c + g < p->channels ? p->x + (c + g) * p->plane + n0 : none;
        p->kernels->interleave(rows, p->flip, false, panel);
    }
}

static void fill_patches(const void *ctx, int64_t n0, int64_t cols, int32_t *panel) {
    const patches *p = ctx;
    int group = p->kernels->group;
    uint8_t copies[SNI_INT_GROUP][SNI_INT_NR], none[SNI_INT_NR];
    const uint8_t *rows[SNI_INT_GROUP];
    const columns c = {n0, n0 / p->w->out[1], n0 % p->w->out[1], cols};
    view v;
    memset(none, p->flip, sizeof none);
    if (p->pixels && cols == p->kernels->nr) {
        fill_pixels(p, n0, none, panel);
        return;
    }
    for (int64_t h = 0; h < p->w->kernel[0]; h++)
        for (int64_t w = 0; w < p->w->kernel[1]; w++) {
            view_tap(p, h, w, &c, &v);
            for (int64_t i = 0; i < p->depth; i += group, panel += p->kernels->nr) {
                for (int g = 0; g < group; g++)
                    rows[g] = i + g < p->channels ? view_channel(p, &v, i + g, copies[g]) : none;
                p->kernels->interleave(rows, p->flip, false, panel);
            }
        }
}

/* ---- Running ---- */

static sn_status place_spans(sni_kernel *k, patches *p) {
    void *spans;
    int64_t taps = p->w->kernel[1];
    SN_TRY(sni_scratch_array(k, 3 * taps, sizeof(int64_t), &spans));
    p->low = spans;
    p->high = p->low + taps;
    p->shift = p->high + taps;
    for (int64_t t = 0; t < taps; t++)
        sni_window_span(p->w, t, &p->low[t], &p->high[t], &p->shift[t]);
    return SN_OK;
}

static sn_status run_products(sni_kernel *k, sni_qconv_call *c) {
    const sni_qconv *p = c->p;
    const sni_window *w = &c->conv.window;
    int64_t pixels = w->out[0] * w->out[1], plane = w->in[0] * w->in[1];
    size_t width = c->kind == SNI_INT_BYTES ? 1 : sizeof(int32_t);
    patches from = {.w = w,
                    .kernels = sni_int_kernels_get(),
                    .begin = c->x->data,
                    .end = (const uint8_t *)c->x->data + c->x->count,
                    .channels = p->channels,
                    .depth = p->depth,
                    .plane = plane,
                    .flip = sni_int_flip(c->x->dtype, false),
                    .pad = (uint8_t)c->x_zero,
                    .straight = w->stride[0] == 1 && w->stride[1] == 1 && w->in[1] == w->out[1]};
    from.pixels = from.straight && w->kernel[0] == 1 && w->kernel[1] == 1 &&
                  w->in[0] == w->out[0] && w->begin[0] == 0 && w->begin[1] == 0;
    sni_igemm g = {.m = p->m,
                   .n = pixels,
                   .units = p->w.units,
                   .a_signed = true,
                   .packed_a = p->w.panels,
                   .fill = fill_patches,
                   .fill_ctx = &from,
                   .kind = c->kind,
                   .row_mul = c->weights,
                   .zero = c->zero,
                   .low = c->low,
                   .c_row = pixels};
    if (p->few) return sni_qconv_run_few(k, c, g);
    SN_TRY(place_spans(k, &from));
    void *scratch = sni_scratch(k, sni_igemm_scratch_size(&g, k->threads));
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    for (int64_t i = 0; i < c->conv.batch * p->groups; i++) {
        int64_t group = i % p->groups;
        from.x = from.begin + i * p->channels * plane;
        g.packed_a = p->w.panels + (size_t)group * p->w.size;
        g.row_add = c->adds + group * p->m;
        if (c->scales) g.row_scale = c->scales + group * p->m;
        if (c->weights) g.row_mul = c->weights + group * p->m;
        g.c = (char *)c->y->data + (size_t)(i * p->m * pixels) * width;
        sni_igemm_run(&g, k->threads, scratch);
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

/* ---- The operators ---- */

/* Sets c->adds: bias and zero-point corrections per channel; and c->weights where zero points of
 * weights are not 0. With centered taps only the bias remains. */
static sn_status correct(sni_kernel *k, sni_qconv_call *c, const sni_tensor *bias) {
    const sni_qconv *p = c->p;
    void *ints;
    SN_TRY(sni_scratch_array(k, 2 * p->w.n, sizeof(int32_t), &ints));
    c->adds = ints;
    const int32_t *b = bias ? bias->data : NULL;
    if (p->taps_w) {
        for (int64_t i = 0; i < p->w.n; i++) c->adds[i] = b ? b[i] : 0;
        return SN_OK;
    }
    sni_int_corrections(&p->w, sni_int_moved(c->x_zero, c->x->dtype, false), b, c->adds);
    if (!p->w.has_zero) return SN_OK;
    c->weights = c->adds + p->w.n;
    for (int64_t i = 0; i < p->w.n; i++) c->weights[i] = sni_int_less(0, p->w.zeros[i]);
    return SN_OK;
}

static sn_status run(sni_kernel *k, const places *at, sni_qconv_call *c) {
    c->p = k->state;
    c->x = sni_in(k, at->x);
    c->y = sni_out(k, 0);
    c->x_zero = sni_zero_of(sni_in(k, at->x_zero));
    SN_TRY(sni_conv_init(k, &c->conv, c->x, sni_in(k, at->w), c->y));
    if (c->y->count == 0) return SN_OK;
    if (c->x->count == 0) return k->node->op->ref(k);
    two_axes(&c->conv.window);
    SN_TRY(correct(k, c, at->bias < 0 ? NULL : sni_in(k, at->bias)));
    return c->p->taps_w || c->p->rows_w ? sni_qconv_run_taps(k, c) : run_products(k, c);
}

static sn_status linear_run(sni_kernel *k) {
    const sni_qconv *p = k->state;
    const sni_tensor *y = sni_out(k, 0);
    void *scales;
    SN_TRY(sni_scratch_array(k, p->w.n, sizeof(float), &scales));
    sni_qconv_call c = {.kind = SNI_INT_BYTES, .scales = scales};
    c.zero = (float)sni_zero_of(sni_in(k, linear.y_zero));
    c.low = y->dtype == SN_INT8 ? -128 : 0;
    sni_int_scales(*(const float *)sni_in(k, linear.x_scale)->data, sni_in(k, linear.w_scale),
                   *(const float *)sni_in(k, linear.y_scale)->data, p->w.n, c.scales);
    return run(k, &linear, &c);
}

static sn_status integer_run(sni_kernel *k) {
    sni_qconv_call c = {.kind = SNI_INT_SUMS};
    return run(k, &integer, &c);
}

const sni_impl sni_cpu_qlinear_conv = {
    .name = "conv_i8",
    .op = "QLinearConv",
    .accepts = linear_accepts,
    .prepare = linear_prepare,
    .release = free,
    .run = linear_run,
};

const sni_impl sni_cpu_conv_integer = {
    .name = "conv_i8",
    .op = "ConvInteger",
    .accepts = integer_accepts,
    .prepare = integer_prepare,
    .release = free,
    .run = integer_run,
};
