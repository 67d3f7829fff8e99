/* conv.c - convolution in float32 as a product of packed weights (M x C*taps) and patches of the
 * input (C*taps x pixels) that are gathered panel by panel, never as a whole. With few pixels the
 * operands change sides: channels of the output lie along the vectors then. */
#include "base/threadpool.h"
#include "cpu/gemm/gemm.h"
#include "cpu/conv/conv_plane.h"
#include "cpu/core/loops.h"
#include "ops/nn/fused.h"
#include "ops/core/long_work.h"
#include "ops/core/wide.h"

#include <stdlib.h>
#include <string.h>

typedef struct packed_conv {
    int64_t groups, m, k; /* rows and depth of one group */
    size_t group_size;    /* floats */
    float *panels;
} packed_conv;

static bool is_float_conv(const sni_choice *c) {
    return sni_choice_is(c, 0, SN_FLOAT32) && c->constants[1] &&
           c->constants[1]->tensor.dtype == SN_FLOAT32;
}

static bool can_fuse(const sni_choice *c) {
    const sni_fused_conv_params *p = c->params;
    sni_epilogue e = {0};
    return sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1);
}

sni_epilogue sni_conv_epilogue_of(const sni_kernel *k) {
    const sni_fused_conv_params *p = k->params;
    const sni_tensor *slopes = sni_in(k, 4);
    sni_epilogue e = {0};
    sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1);
    if (slopes) {
        e.act = SNI_ACT_LEAKY_RELU;
        e.row_slopes = slopes->data;
    }
    return e;
}

/* ---- Dense and grouped ---- */

bool sni_conv_accepts(const sni_choice *c) {
    const sni_window_params *p = &((const sni_conv_params *)c->params)->window;
    if (!is_float_conv(c)) return false;
    const sni_tensor *w = &c->constants[1]->tensor;
    if (w->rank != 5) return w->rank == 3 || w->rank == 4;
    return sni_tensor_span(w, 2, 5) == 1 && sni_ints_are(&p->strides, 1) &&
           sni_ints_are(&p->pads, 0);
}

bool sni_conv_is_volume(const sni_choice *c) {
    return is_float_conv(c) && c->constants[1]->tensor.rank == 5;
}

bool sni_conv_fused_is_volume(const sni_choice *c) {
    return sni_conv_is_volume(c) && can_fuse(c);
}

enum { MOST_SIZE = 1 << 20 }; /* of an axis, as far as costs go */

int64_t sni_conv_pixels(const sni_choice *c) {
    const sni_conv_params *params = c->params;
    const sni_tensor *w = &c->constants[1]->tensor;
    int axes = w->rank - 2;
    int64_t out[SN_MAX_RANK], pixels = 1;
    sni_window window;
    if (sni_choice_rank(c, 0) != w->rank) return -1;
    const sni_dim *in = c->in[0]->dims + 2;
    for (int i = 0; i < axes; i++)
        if (!sni_dim_known(in[i])) return -1;
    if (sni_window_init(&window, &params->window, axes, w->dims + 2, NULL) != SN_OK ||
        sni_window_sizes(&window, &params->window, in, out, NULL, NULL) != SN_OK)
        return -1;
    for (int i = 0; i < axes; i++) pixels *= out[i] < MOST_SIZE ? out[i] : MOST_SIZE;
    return pixels;
}

/* Products that an image's group takes, whole vectors of them. */
static double packed_cost(const sni_choice *c, bool right) {
    const sni_conv_params *params = c->params;
    int64_t nr = sni_cpu_kernels_get()->nr, m = c->constants[1]->tensor.dims[0] / params->group;
    int64_t pixels = sni_conv_pixels(c), along = right ? m : pixels;
    if (pixels < 1) return -1;
    /* Patches by pixel and turned results cost about as much as the products. */
    return (double)((along + nr - 1) / nr * nr) * (double)(right ? 2 * pixels : m);
}

/* As the left operand of the product, or (`right`) turned as the right one. */
static sn_status pack_weights(const sni_choice *c, bool right, void **state, sn_error *err) {
    const sni_conv_params *params = c->params;
    const sni_tensor *w = &c->constants[1]->tensor;
    const sni_unaligned_float *from;
    bool filled;
    packed_conv p = {.groups = params->group};
    p.m = w->dims[0] / p.groups;
    p.k = sni_tensor_span(w, 1, w->rank);
    p.group_size = right ? sni_gemm_packed_b_size(p.k, p.m) : sni_gemm_packed_a_size(p.m, p.k);
    SN_TRY(sni_cpu_floats(c, p.group_size * (size_t)p.groups, &p.panels, &filled, err));
    if (!filled) {
        SN_TRY(sni_cpu_unaligned(c, 1, &from, err));
        for (int64_t g = 0; g < p.groups; g++, from += p.m * p.k) {
            float *to = p.panels + (size_t)g * p.group_size;
            if (right)
                sni_gemm_pack_b(from, 1, p.k, p.k, p.m, to);
            else
                sni_gemm_pack_a(from, p.k, 1, p.m, p.k, to);
        }
    }
    return sni_cpu_keep(&p, sizeof p, state, err);
}

static sn_status conv_prepare(const sni_choice *c, void **state, sn_error *err) {
    return pack_weights(c, false, state, err);
}

/* A volume each of whose outputs sees the input in its own place alone. */
static bool is_flat(const sni_window *w) {
    for (int i = 0; i < w->rank; i++)
        if (w->kernel[i] != 1 || w->stride[i] != 1 || w->begin[i] || w->end[i]) return false;
    return w->rank == 3;
}

sni_plane sni_plane_of(const sni_window *w) {
    int last = w->rank - 1;
    sni_plane p = {.h = 1, .out_h = 1, .kernel_h = 1, .stride_h = 1, .dilation_h = 1};
    p.w = w->in[last];
    p.out_w = w->out[last];
    p.kernel_w = w->kernel[last];
    p.stride_w = w->stride[last];
    p.dilation_w = w->dilation[last];
    p.pad_w = w->begin[last];
    if (last > 0) {
        int64_t planes = is_flat(w) ? w->in[0] : 1;
        p.h = w->in[last - 1] * planes;
        p.out_h = w->out[last - 1] * planes;
        p.kernel_h = w->kernel[last - 1];
        p.stride_h = w->stride[last - 1];
        p.dilation_h = w->dilation[last - 1];
        p.pad_h = w->begin[last - 1];
    }
    return p;
}

sni_depth sni_depth_of(const sni_window *w) {
    if (w->rank < 3 || is_flat(w))
        return (sni_depth){.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    return (sni_depth){.in = w->in[0],
                       .out = w->out[0],
                       .kernel = w->kernel[0],
                       .stride = w->stride[0],
                       .dilation = w->dilation[0],
                       .pad = w->begin[0]};
}

void sni_plane_row(const float *row, int64_t w, int64_t at, int64_t stride, int64_t count,
                   float *to) {
    int64_t i = 0;
    for (; i < count && at < 0; i++, at += stride) to[i] = 0;
    if (stride == 1) {
        int64_t inside = w - at < count - i ? w - at : count - i;
        for (int64_t end = i + (inside > 0 ? inside : 0); i < end; i++, at++) to[i] = row[at];
    } else {
        for (; i < count && at < w; i++, at += stride) to[i] = row[at];
    }
    for (; i < count; i++) to[i] = 0;
}

/* Row `tap` of channel `channel` of the patches: what one tap sees for pixels [n0, n0 + cols). */
static void fill_tap(const sni_plane *p, const float *x, int64_t tap_h, int64_t tap_w, int64_t n0,
                     int64_t cols, float *to) {
    int64_t out_h = n0 / p->out_w, out_w = n0 % p->out_w;
    for (int64_t done = 0; done < cols; out_h++, out_w = 0) {
        int64_t count = p->out_w - out_w < cols - done ? p->out_w - out_w : cols - done;
        int64_t row = out_h * p->stride_h - p->pad_h + tap_h * p->dilation_h;
        int64_t at = out_w * p->stride_w - p->pad_w + tap_w * p->dilation_w;
        if (row >= 0 && row < p->h)
            sni_plane_row(x + row * p->w, p->w, at, p->stride_w, count, to + done);
        else
            for (int64_t i = 0; i < count; i++) to[done + i] = 0;
        done += count;
    }
}

/* Taps [tap_w, tap_w + count) of a row of the kernel at once, which are neighbours in the input, if
 * all of them are inside of it for every pixel; else false. */
static bool fill_taps(const sni_plane *p, const float *x, int64_t tap_h, int64_t tap_w,
                      int64_t count, int64_t n0, int64_t cols, int nr, float *to) {
    int64_t out_h = n0 / p->out_w, out_w = n0 % p->out_w;
    int64_t row = out_h * p->stride_h - p->pad_h + tap_h * p->dilation_h;
    int64_t at = out_w * p->stride_w - p->pad_w + tap_w;
    if (out_w + cols > p->out_w || row < 0 || row >= p->h || at < 0 ||
        at + (cols - 1) * p->stride_w + count > p->w)
        return false;
    sni_cpu_kernels_get()->pack_transposed(x + row * p->w + at, p->stride_w, cols, nr, count, to);
    return true;
}

enum { TAPS = 8 }; /* from which on fill_taps is the quicker one */

static void fill_patches(const void *ctx, int64_t k0, int64_t rows, int64_t n0, int64_t cols,
                         int nr, float *panel) {
    const sni_plane *p = ctx;
    int64_t taps = p->kernel_h * p->kernel_w;
    int64_t channel = k0 / taps, tap_h = k0 % taps / p->kernel_w, tap_w = k0 % p->kernel_w;
    for (int64_t r = 0, count; r < rows; r += count, panel += count * nr) {
        const float *x = p->x + channel * p->h * p->w;
        count = p->kernel_w - tap_w < rows - r ? p->kernel_w - tap_w : rows - r;
        if (count < TAPS || p->stride_w == 1 || p->dilation_w > 1 ||
            !fill_taps(p, x, tap_h, tap_w, count, n0, cols, nr, panel)) {
            count = 1;
            fill_tap(p, x, tap_h, tap_w, n0, cols, panel);
            for (int64_t i = cols; i < nr; i++) panel[i] = 0;
        }
        tap_w += count;
        if (tap_w < p->kernel_w) continue;
        tap_w = 0;
        if (++tap_h < p->kernel_h) continue;
        tap_h = 0;
        channel++;
    }
}

/* True if every pixel's patch is the pixel itself. */
static bool is_pointwise(const sni_plane *p) {
    return p->kernel_h == 1 && p->kernel_w == 1 && p->stride_h == 1 && p->stride_w == 1 &&
           p->pad_h == 0 && p->pad_w == 0 && p->out_h == p->h && p->out_w == p->w;
}

static sn_status run_packed(sni_kernel *k, sni_epilogue epilogue) {
    const packed_conv *w = k->state;
    const sni_tensor *x = sni_in(k, 0), *bias = sni_in(k, 2), *added = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    sni_conv conv = {0};
    SN_TRY(sni_conv_init(k, &conv, x, sni_in(k, 1), y));
    sni_plane p = sni_plane_of(&conv.window);
    int64_t pixels = p.out_h * p.out_w, in_pixels = p.h * p.w;
    int64_t channels = conv.in_channels / w->groups;
    if (y->count == 0) return SN_OK;
    sni_gemm_f32 g = {.m = w->m, .n = pixels, .k = w->k, .c_row = pixels, .epilogue = epilogue};
    g.epilogue.residual_row = pixels;
    bool direct = is_pointwise(&p);
    if (!direct) {
        g.fill = fill_patches;
        g.fill_ctx = &p;
    }
    g.packed_a = w->panels;
    float *scratch = sni_scratch(k, sni_gemm_scratch_size(&g, k->threads) * sizeof *scratch);
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    for (int64_t i = 0; i < conv.batch * w->groups; i++) {
        int64_t group = i % w->groups;
        p.x = (const float *)x->data + i * channels * in_pixels;
        g.packed_a = w->panels + (size_t)group * w->group_size;
        g.b = p.x;
        g.b_row = in_pixels;
        g.b_col = 1;
        g.c = (float *)y->data + i * w->m * pixels;
        if (bias) g.epilogue.row_bias = (const float *)bias->data + group * w->m;
        if (added) g.epilogue.residual = (const float *)added->data + i * w->m * pixels;
        if (epilogue.row_slopes) g.epilogue.row_slopes = epilogue.row_slopes + group * w->m;
        sni_gemm_f32_run(&g, k->threads, scratch);
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

static sn_status conv_run(sni_kernel *k) {
    return run_packed(k, (sni_epilogue){0});
}

static sn_status fused_run(sni_kernel *k) {
    return run_packed(k, sni_conv_epilogue_of(k));
}

bool sni_conv_fused_accepts(const sni_choice *c) {
    return sni_conv_accepts(c) && can_fuse(c);
}

const sni_impl sni_cpu_fused_conv = {
    .name = "conv_gemm_f32",
    .op = "FusedConv",
    .domain = "com.microsoft",
    .accepts = sni_conv_fused_accepts,
    .by_shape = true,
    .prepare = conv_prepare,
    .release = free,
    .packs = 1u << 1,
    .run = fused_run,
};

const sni_impl sni_cpu_conv = {
    .name = "conv_gemm_f32",
    .op = "Conv",
    .accepts = sni_conv_accepts,
    .by_shape = true,
    .prepare = conv_prepare,
    .release = free,
    .packs = 1u << 1,
    .run = conv_run,
};

/* ---- Few pixels: patches (pixels x C*taps) times turned weights (C*taps x M) ---- */

enum { FEW_ROWS = 64 }; /* pixels that are multiplied at once */

/* True if that fills less than half of what tiles with pixels along their vectors would. */
static bool few_pays(const sni_choice *c) {
    double cost = packed_cost(c, true);
    return cost > 0 && 2 * sni_conv_pixels(c) <= sni_cpu_kernels_get()->nr &&
           cost <= packed_cost(c, false);
}

static sn_status few_prepare(const sni_choice *c, void **state, sn_error *err) {
    return pack_weights(c, true, state, err);
}

typedef struct few_job {
    sni_plane p; /* of an image's group */
    sni_gemm_f32 g;
    int64_t pixels, channels, rows; /* rows: most pixels of a block */
    int parts, threads;             /* that share the blocks; of one product */
    float *patches, *sums, *scratch;
    size_t scratch_part;
    float *y;
} few_job;

/* Patches of pixels [n0, n0 + rows), one after the other. */
static void fill_rows(const few_job *j, int64_t n0, int64_t rows, float *to) {
    const sni_plane *p = &j->p;
    for (int64_t n = n0; n < n0 + rows; n++) {
        int64_t top = n / p->out_w * p->stride_h - p->pad_h;
        int64_t left = n % p->out_w * p->stride_w - p->pad_w;
        for (int64_t i = 0; i < j->channels * p->kernel_h; i++, to += p->kernel_w) {
            int64_t row = top + i % p->kernel_h * p->dilation_h;
            if (row >= 0 && row < p->h)
                sni_plane_row(p->x + (i / p->kernel_h * p->h + row) * p->w, p->w, left,
                              p->dilation_w, p->kernel_w, to);
            else
                memset(to, 0, (size_t)p->kernel_w * sizeof *to);
        }
    }
}

static void few_parts(void *ctx, int64_t begin, int64_t end) {
    const few_job *j = ctx;
    int64_t blocks = (j->pixels + j->rows - 1) / j->rows;
    for (int64_t part = begin; part < end; part++) {
        float *patches = j->patches ? j->patches + part * j->rows * j->g.k : NULL;
        float *sums = j->sums ? j->sums + part * j->rows * j->g.n : NULL;
        float *scratch = j->scratch ? j->scratch + (size_t)part * j->scratch_part : NULL;
        int64_t to = (part + 1) * blocks / j->parts;
        for (int64_t b = part * blocks / j->parts; b < to; b++) {
            sni_gemm_f32 g = j->g;
            int64_t n0 = b * j->rows;
            g.m = j->pixels - n0 < j->rows ? j->pixels - n0 : j->rows;
            if (patches) fill_rows(j, n0, g.m, patches);
            g.a = patches ? patches : j->p.x + n0;
            g.c = sums ? sums : j->y;
            sni_gemm_f32_run(&g, j->threads, scratch);
            if (sums)
                sni_cpu_kernels_get()->transpose_matrix(sums, g.n, g.m, g.n, j->y + n0, j->pixels);
        }
    }
}

/* Sizes and memory of a job. */
static sn_status few_init(sni_kernel *k, few_job *j, const packed_conv *w) {
    int threads = k->threads < 1 ? 1 : k->threads;
    bool direct = is_pointwise(&j->p);
    void *patches = NULL, *sums = NULL, *scratch = NULL;
    j->rows = j->pixels < FEW_ROWS ? j->pixels : FEW_ROWS;
    j->parts = (j->pixels + j->rows - 1) / j->rows >= threads ? threads : 1;
    j->threads = j->parts > 1 ? 1 : threads;
    j->g.m = j->rows;
    j->g.n = j->g.c_row = w->m;
    j->g.k = w->k;
    j->g.a_row = direct ? 1 : w->k;
    j->g.a_col = direct ? j->pixels : 1;
    j->g.packed_b = w->panels;
    j->scratch_part = sni_gemm_scratch_size(&j->g, j->threads);
    if (!direct) SN_TRY(sni_scratch_array(k, j->parts * j->rows * w->k, sizeof(float), &patches));
    if (j->pixels > 1)
        SN_TRY(sni_scratch_array(k, j->parts * j->rows * w->m, sizeof(float), &sums));
    if (j->scratch_part)
        SN_TRY(sni_scratch_array(k, j->parts * (int64_t)j->scratch_part, sizeof(float), &scratch));
    j->patches = patches;
    j->sums = sums;
    j->scratch = scratch;
    return SN_OK;
}

/* What is added to sums of several pixels lies as the output does: they are finished there. */
static sn_status run_few(sni_kernel *k, sni_epilogue e) {
    const packed_conv *w = k->state;
    const sni_tensor *x = sni_in(k, 0), *bias = sni_in(k, 2), *added = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    sni_conv conv = {0};
    SN_TRY(sni_conv_init(k, &conv, x, sni_in(k, 1), y));
    few_job j = {.p = sni_plane_of(&conv.window), .channels = conv.in_channels / w->groups};
    j.pixels = j.p.out_h * j.p.out_w;
    if (y->count == 0) return SN_OK;
    SN_TRY(few_init(k, &j, w));
    bool late = added && j.pixels > 1;
    const float *slopes = e.row_slopes;
    for (int64_t i = 0; i < conv.batch * w->groups; i++) {
        int64_t group = i % w->groups, at = i * w->m * j.pixels;
        const float *biases = bias ? (const float *)bias->data + group * w->m : NULL;
        e.residual = added ? (const float *)added->data + at : NULL;
        e.residual_row = j.pixels > 1 ? j.pixels : w->m;
        e.row_bias = late ? biases : NULL;
        e.column_bias = late ? NULL : biases;
        e.row_slopes = late && slopes ? slopes + group * w->m : NULL;
        e.column_slopes = !late && slopes ? slopes + group * w->m : NULL;
        j.g.epilogue = late ? (sni_epilogue){0} : e;
        j.g.packed_b = w->panels + (size_t)group * w->group_size;
        j.p.x = (const float *)x->data + i * j.channels * j.p.h * j.p.w;
        j.y = (float *)y->data + at;
        sni_parallel_for(j.parts, j.parts, 1, few_parts, &j);
        if (late)
            sni_cpu_kernels_get()->finish_tile(&e, NULL, false, j.y, j.pixels, 0, w->m, 0,
                                               j.pixels);
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

static sn_status few_run(sni_kernel *k) {
    return run_few(k, (sni_epilogue){0});
}

static sn_status fused_few_run(sni_kernel *k) {
    return run_few(k, sni_conv_epilogue_of(k));
}

const sni_impl sni_cpu_fused_conv_few = {
    .name = "conv_few_f32",
    .op = "FusedConv",
    .domain = "com.microsoft",
    .accepts = sni_conv_fused_accepts,
    .pays = few_pays,
    .by_shape = true,
    .prepare = few_prepare,
    .release = free,
    .packs = 1u << 1,
    .run = fused_few_run,
};

const sni_impl sni_cpu_conv_few = {
    .name = "conv_few_f32",
    .op = "Conv",
    .accepts = sni_conv_accepts,
    .pays = few_pays,
    .by_shape = true,
    .prepare = few_prepare,
    .release = free,
    .packs = 1u << 1,
    .run = few_run,
};

/* ---- Depthwise: one input channel for each output channel ---- */

static bool depthwise_accepts(const sni_choice *c) {
    const sni_conv_params *p = c->params;
    if (!sni_conv_accepts(c)) return false;
    const sni_tensor *w = &c->constants[1]->tensor;
    return w->dims[1] == 1 && p->group == w->dims[0];
}

typedef struct depthwise_job {
    sni_plane p;
    const sni_cpu_kernels *kernels;
    const float *x, *w, *bias, *added; /* the last two may be NULL */
    float *y;
    int64_t channels;
    sni_epilogue epilogue;
    const sni_kernel *watch; /* NULL unless a plane takes long */
} depthwise_job;

/* Outputs of a row whose tap lies inside the input, and the place of the first. */
static void tap_span(const sni_plane *p, int64_t tap, int64_t *lo, int64_t *hi) {
    int64_t shift = tap * p->dilation_w - p->pad_w;
    *lo = shift >= 0 ? 0 : (-shift + p->stride_w - 1) / p->stride_w;
    *hi = p->w > shift ? (p->w - shift + p->stride_w - 1) / p->stride_w : 0;
    if (*hi > p->out_w) *hi = p->out_w;
}

static void depthwise_row(const depthwise_job *j, const float *x, const float *w, int64_t out_h,
                          float *y) {
    const sni_plane *p = &j->p;
    for (int64_t a = 0; a < p->kernel_h; a++) {
        int64_t row = out_h * p->stride_h - p->pad_h + a * p->dilation_h;
        if (row < 0 || row >= p->h) continue;
        for (int64_t b = 0; b < p->kernel_w; b++) {
            int64_t lo, hi, shift = b * p->dilation_w - p->pad_w;
            float weight = w[a * p->kernel_w + b];
            const float *from = x + row * p->w;
            if (j->watch && sni_stopping(j->watch)) return;
            tap_span(p, b, &lo, &hi);
            if (p->stride_w == 1 && hi > lo)
                j->kernels->axpy(weight, from + lo + shift, y + lo, hi - lo);
            else
                for (int64_t o = lo; o < hi; o++) y[o] += weight * from[o * p->stride_w + shift];
        }
    }
}

/* What ends rows of a channel. */
static sni_epilogue end_of(const depthwise_job *j, int64_t channel) {
    sni_epilogue e = j->epilogue;
    if (e.row_slopes) e.p0 = e.row_slopes[channel];
    return e;
}

/* One tap for each pixel: planes times a number, plus another. */
static void scale_planes(void *ctx, int64_t begin, int64_t end) {
    const depthwise_job *j = ctx;
    const sni_loops *loops = sni_loops_get();
    int64_t n = j->p.h * j->p.w;
    for (int64_t i = begin; i < end; i++) {
        int64_t channel = i % j->channels;
        float *y = j->y + i * n;
        sni_epilogue e = end_of(j, channel);
        loops->center_row(j->x + i * n, y, n, 0, j->w[channel], j->bias ? j->bias[channel] : 0);
        if (j->epilogue.act != SNI_ACT_NONE || j->added)
            j->kernels->finish_row(&e, y, 0, NULL, j->added ? j->added + i * n : NULL, n);
    }
}

static void depthwise_planes(void *ctx, int64_t begin, int64_t end) {
    const depthwise_job *j = ctx;
    const sni_plane *p = &j->p;
    for (int64_t i = begin; i < end; i++) {
        int64_t channel = i % j->channels;
        const float *x = j->x + i * p->h * p->w;
        const float *w = j->w + channel * p->kernel_h * p->kernel_w;
        float *y = j->y + i * p->out_h * p->out_w;
        sni_epilogue e = end_of(j, channel);
        for (int64_t row = 0; row < p->out_h; row++, y += p->out_w) {
            for (int64_t o = 0; o < p->out_w; o++) y[o] = j->bias ? j->bias[channel] : 0;
            depthwise_row(j, x, w, row, y);
            if (j->epilogue.act != SNI_ACT_NONE || j->added)
                j->kernels->finish_row(&e, y, 0, NULL, j->added ? j->added + (y - j->y) : NULL,
                                       p->out_w);
        }
    }
}

static sn_status run_depthwise(sni_kernel *k, sni_epilogue epilogue) {
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1), *bias = sni_in(k, 2);
    const sni_tensor *added = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    sni_conv conv = {0};
    SN_TRY(sni_conv_init(k, &conv, x, w, y));
    depthwise_job job = {.p = sni_plane_of(&conv.window),
                         .kernels = sni_cpu_kernels_get(),
                         .x = x->data,
                         .w = w->data,
                         .bias = bias ? bias->data : NULL,
                         .added = added ? added->data : NULL,
                         .epilogue = epilogue,
                         .y = y->data,
                         .channels = conv.out_channels};
    int64_t work = job.p.out_h * job.p.out_w * job.p.kernel_h * job.p.kernel_w;
    bool scales = is_pointwise(&job.p);
    int64_t grain = scales ? sni_cpu_grain(work) : work > 0 ? 32768 / work + 1 : 1;
    if (y->count == 0) return SN_OK;
    if (sni_long_work((double)work)) job.watch = k;
    return sni_long_for(k, conv.batch * conv.out_channels, grain, (double)work,
                        scales ? scale_planes : depthwise_planes, &job);
}

static sn_status depthwise_run(sni_kernel *k) {
    return run_depthwise(k, (sni_epilogue){0});
}

static sn_status fused_depthwise_run(sni_kernel *k) {
    return run_depthwise(k, sni_conv_epilogue_of(k));
}

static bool fused_depthwise_accepts(const sni_choice *c) {
    return depthwise_accepts(c) && can_fuse(c);
}

const sni_impl sni_cpu_fused_depthwise = {
    .name = "conv_depthwise_f32",
    .op = "FusedConv",
    .domain = "com.microsoft",
    .accepts = fused_depthwise_accepts,
    .run = fused_depthwise_run,
};

const sni_impl sni_cpu_conv_depthwise = {
    .name = "conv_depthwise_f32",
    .op = "Conv",
    .accepts = depthwise_accepts,
    .run = depthwise_run,
};
