/* conv_slices.c - convolutions over one and over three axes by the kernels for blocked pictures.
 *
 * A volume is cut into slices along its first axis, each blocked by channels: what an output slice
 * sees are the blocks of as many neighbouring slices as the kernel is deep, which is the input of a
 * convolution over two axes, and the next output slice shares some of them. A line is cut into
 * segments, each of which is a picture one row high with all the columns that its outputs see. */
#include "base/threadpool.h"
#include "cpu/conv/blocked.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/conv_plane.h"
#include "cpu/conv/slices.h"
#include "ops/core/compute.h"
#include "ops/sinter/conv_limits.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_EXTENT = 4096,  /* columns of a line that one output sees */
    LEAST_SEGMENT = 128, /* outputs of a segment */
    SEGMENT = 1 << 16    /* numbers of input that one is to have */
};

/* ---- Weights ---- */

bool sni_slices_plain(int64_t channels) {
    return !sni_fills_input_blocks(channels, sni_cpu_kernels_get()->block);
}

sn_status sni_slices_pack(const sni_choice *c, const sni_slices_variant *f,
                          sni_slices_transpose_fn transpose, const void *ctx, sni_sliced *out,
                          sn_error *err) {
    int64_t block = sni_cpu_kernels_get()->block;
    sni_sliced s = {.variant = *f, .block = f->plain ? 1 : block};
    s.slice = sni_blocks(f->channels, s.block);
    sni_conv_geometry g = {.in_channels = f->depth * s.slice * s.block,
                           .out_channels = f->m,
                           .groups = f->groups,
                           .kernel_h = f->kernel_h,
                           .kernel_w = f->kernel_w};
    bool filled;
    SN_TRY(sni_conv_direct_start(c, &g, f->plain, &s.direct, &filled, err));
    sn_status status = SN_OK;
    if (!filled) {
        size_t count = (size_t)(f->m * (g.in_channels / f->groups) * f->kernel_h * f->kernel_w);
        const sni_unaligned_float *from = NULL;
        float *transposed = calloc(count ? count : 1, sizeof *transposed);
        status = transposed ? sni_cpu_unaligned(c, 1, &from, err) : sni_fail_memory(err);
        if (from) {
            transpose(ctx, from, &s, transposed);
            sni_conv_direct_pack(s.direct, transposed);
        }
        free(transposed);
    }
    if (status != SN_OK)
        sni_conv_direct_release(s.direct);
    else
        *out = s;
    return status;
}

void sni_slices_end(sni_sliced *s, float *bias, float *slopes) {
    s->bias = bias;
    s->slopes = slopes;
    sni_conv_direct_end(s->direct, bias, slopes);
}

void sni_slices_release(void *state) {
    sni_sliced *s = state;
    if (s) sni_conv_direct_release(s->direct);
    free(s);
}

/* ---- Copies ---- */

/* Pictures of `pixels` each, made of the input; images of `out_pixels` of the output. */
typedef struct slices_job {
    const sni_cpu_kernels *kernels;
    const sni_sliced *w;
    const sni_slices_call *call;
    const float *x; /* of the round */
    float *y;
    float *in, *out; /* copies */
    bool line;
    int64_t count, pixels, images, out_pixels, out_blocks;
    int64_t in_step, out_step;      /* elements from channel to channel of x and y */
    int64_t segments, segment_step; /* of a line: outputs from one to the next */
} slices_job;

/* Where picture s comes from: pixels [lo, hi) of it from `from` on. */
static const float *picture_of(const slices_job *j, int64_t s, int64_t *lo, int64_t *hi) {
    const sni_slices_call *c = j->call;
    *lo = 0;
    if (j->line) {
        int64_t at = s % j->segments * j->segment_step * c->stride_w - c->pad_w;
        if (at < 0) *lo = -at < j->pixels ? -at : j->pixels;
        *hi = c->w - at < j->pixels ? c->w - at : j->pixels;
        if (*hi < *lo) *hi = *lo;
        return j->x + s / j->segments * j->w->variant.channels * c->w + (*lo < *hi ? at + *lo : 0);
    }
    int64_t depth = s - c->pad_d;
    *hi = depth >= 0 && depth < c->d ? j->pixels : 0;
    return j->x + (*hi ? depth * j->pixels : 0);
}

/* Items are blocks (or channels) of pictures. */
static void copy_in(void *ctx, int64_t begin, int64_t end) {
    const slices_job *j = ctx;
    int64_t block = j->w->block;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % j->w->slice * block, lo, hi;
        int64_t channels = j->w->variant.channels - first;
        const float *from = picture_of(j, i / j->w->slice, &lo, &hi) + first * j->in_step;
        float *to = j->in + i * j->pixels * block;
        memset(to, 0, (size_t)(lo * block) * sizeof *to);
        memset(to + hi * block, 0, (size_t)((j->pixels - hi) * block) * sizeof *to);
        if (hi <= lo) continue;
        if (block == 1)
            memcpy(to + lo, from, (size_t)(hi - lo) * sizeof *to);
        else
            j->kernels->pack_transposed(from, j->in_step, channels < block ? channels : block,
                                        (int)block, hi - lo, to + lo * block);
    }
}

/* Items are blocks of images. */
static void copy_out(void *ctx, int64_t begin, int64_t end) {
    const slices_job *j = ctx;
    int64_t block = j->kernels->block, m = j->w->variant.m;
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / j->out_blocks, first = i % j->out_blocks * block;
        int64_t channels = m - first < block ? m - first : block, pixels = j->out_pixels;
        float *to = j->y + first * j->out_step;
        if (j->line) {
            int64_t at = image % j->segments * j->segment_step;
            to += image / j->segments * m * j->out_step + at;
            if (pixels > j->out_step - at) pixels = j->out_step - at;
        } else {
            to += image * pixels;
        }
        j->kernels->transpose_matrix(j->out + i * j->out_pixels * block, block, pixels, channels,
                                     to, j->out_step);
    }
}

/* ---- Running ---- */

/* Cuts the line into segments whose input stays in the cache, by sizes alone. */
static void cut_line(slices_job *j) {
    const sni_slices_call *c = j->call;
    const sni_slices_variant *f = &j->w->variant;
    int64_t most = SEGMENT / (j->w->slice * j->w->block * c->stride_w);
    if (most < LEAST_SEGMENT) most = LEAST_SEGMENT;
    j->segments = (c->out_w + most - 1) / most;
    if (j->segments > 1) j->segments += j->segments % 2;
    j->segment_step = (c->out_w + j->segments - 1) / j->segments;
    j->count = j->images = c->batch * j->segments;
    j->out_pixels = j->segment_step;
    j->pixels = (j->segment_step - 1) * c->stride_w + (f->kernel_w - 1) * c->dilation_w + 1;
    j->in_step = c->w;
    j->out_step = c->out_w;
}

static void cut_volume(slices_job *j) {
    const sni_slices_call *c = j->call;
    j->count = (c->out_d - 1) * c->stride_d + j->w->variant.depth;
    j->images = c->out_d;
    j->pixels = c->h * c->w;
    j->out_pixels = c->out_h * c->out_w;
    j->in_step = c->d * j->pixels;
    j->out_step = c->out_d * j->out_pixels;
}

static sni_conv_geometry geometry_of(const slices_job *j) {
    const sni_slices_call *c = j->call;
    const sni_slices_variant *f = &j->w->variant;
    sni_conv_geometry g = {.n = j->images,
                           .in_channels = f->depth * j->w->slice * j->w->block,
                           .out_channels = f->m,
                           .groups = f->groups,
                           .in_h = c->h,
                           .in_w = c->w,
                           .out_h = c->out_h,
                           .out_w = c->out_w,
                           .kernel_h = f->kernel_h,
                           .kernel_w = f->kernel_w,
                           .stride_h = c->stride_h,
                           .stride_w = c->stride_w,
                           .dilation_h = c->dilation_h,
                           .dilation_w = c->dilation_w,
                           .pad_top = c->pad_h,
                           .pad_left = c->pad_w};
    if (j->line) {
        g.in_w = j->pixels;
        g.out_w = j->out_pixels;
        g.pad_left = 0;
    }
    return g;
}

sn_status sni_slices_run(sni_kernel *k, const sni_sliced *w, const sni_slices_call *call,
                         const sni_epilogue *act) {
    slices_job j = {.kernels = sni_cpu_kernels_get(),
                    .w = w,
                    .call = call,
                    .x = call->x,
                    .y = call->y,
                    .line = call->d == 0};
    int64_t block = j.kernels->block, rounds = j.line ? 1 : call->batch;
    void *in, *out;
    j.out_blocks = sni_blocks(w->variant.m, block);
    if (j.line)
        cut_line(&j);
    else
        cut_volume(&j);
    SN_TRY(sni_scratch_matrix(k, j.count * w->slice, j.pixels * w->block, sizeof(float), &in));
    SN_TRY(
        sni_scratch_matrix(k, j.images * j.out_blocks, j.out_pixels * block, sizeof(float), &out));
    j.in = in;
    j.out = out;
    sni_blocked_call one = {
        .geometry = geometry_of(&j),
        .epilogue = {.act = act->act, .p0 = act->p0, .p1 = act->p1, .bias = w->bias},
        .x = j.in,
        .plain = w->variant.plain,
        .image_blocks = (j.line ? 1 : call->stride_d) * w->slice,
        .y = j.out};
    if (w->slopes) {
        one.epilogue.act = SNI_ACT_LEAKY_RELU;
        one.epilogue.slopes = w->slopes;
    }
    for (int64_t round = 0; round < rounds; round++) {
        sni_blocked_for(k, j.count * w->slice, j.pixels * w->block, copy_in, &j);
        SN_TRY(sni_conv_direct_call(k, w->direct, &one, NULL));
        sni_blocked_for(k, j.images * j.out_blocks, j.out_pixels * block, copy_out, &j);
        j.x += w->variant.channels * j.in_step;
        j.y += w->variant.m * j.out_step;
        SN_TRY(sni_poll(k));
    }
    return SN_OK;
}

/* ---- Conv and FusedConv ---- */

/* True if copies of the input are not much larger than what they are made of, whatever its size. */
static bool window_fits(const sni_window *w) {
    if (w->rank == 1)
        return sni_window_extent(w, 0) <= MOST_EXTENT && w->stride[0] <= sni_window_extent(w, 0);
    return w->dilation[0] == 1 && w->stride[0] <= w->kernel[0] && w->begin[0] < w->kernel[0] &&
           w->end[0] < w->kernel[0];
}

static bool is_const(const sni_choice *c, int i) {
    return !sni_choice_given(c, i) || c->constants[i];
}

/* True for one group, and for groups of a line that fill blocks. */
static bool takes_groups(const sni_tensor *w, int64_t groups) {
    int64_t block = sni_cpu_kernels_get()->block;
    return groups == 1 ||
           (w->rank == 3 && sni_blocked_merge(w->dims[1] * groups, w->dims[0], groups, block) == 1);
}

bool sni_conv_slices_supports(const sni_choice *c) {
    const sni_fused_conv_params *fused = c->params;
    const sni_conv_params *p = &fused->conv;
    const sni_tensor *w = c->constants[1] ? &c->constants[1]->tensor : NULL;
    sni_epilogue e = {0};
    sni_window window;
    return sni_choice_is(c, 0, SN_FLOAT32) && w && w->dtype == SN_FLOAT32 &&
           (w->rank == 3 || w->rank == 5) && w->count > 0 && takes_groups(w, p->group) &&
           is_const(c, 2) && is_const(c, 4) &&
           sni_cpu_act(&fused->activation, &e.act, &e.p0, &e.p1) &&
           sni_window_init(&window, &p->window, w->rank - 2, w->dims + 2, NULL) == SN_OK &&
           window_fits(&window);
}

/* So few pixels that tiles with pixels along their vectors would be half empty. */
static bool is_short(int64_t pixels) {
    return pixels > 0 && 2 * pixels <= sni_cpu_kernels_get()->nr;
}

/* True if blocks of channels are mostly filled (in volumes, those of the output), and a line is
 * long enough for the copies, or short. */
bool sni_conv_slices_suits(const sni_choice *c) {
    const sni_tensor *w = &c->constants[1]->tensor;
    if (!sni_fills_output_block(w->dims[0], sni_cpu_kernels_get()->block)) return false;
    if (w->rank == 5) return !sni_plain_conv_supports(c); /* products of the volume as it is */
    if (is_short(sni_plain_conv_pixels(c))) return true;
    return w->dims[2] > 1 && !sni_slices_plain(w->dims[1]) && sni_choice_rank(c, 0) == 3 &&
           c->in[0]->dims[2] >= SNI_ROWS_MIN_WIDTH;
}

/* (M, C of a group, depth, taps) as (M, depth, C up to whole blocks, taps). */
static void transpose_weights(const void *ctx, const sni_unaligned_float *from, const sni_sliced *s,
                              float *to) {
    const sni_slices_variant *f = &s->variant;
    int64_t taps = f->kernel_h * f->kernel_w, wide = s->slice * s->block / f->groups;
    int64_t channels = f->channels / f->groups;
    (void)ctx;
    for (int64_t m = 0; m < f->m; m++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t d = 0; d < f->depth; d++)
                for (int64_t t = 0; t < taps; t++)
                    to[((m * f->depth + d) * wide + c) * taps + t] =
                        from[((m * channels + c) * f->depth + d) * taps + t];
}

sn_status sni_conv_slices_prepare(const sni_choice *c, void **state, sn_error *err) {
    const int64_t *w = c->constants[1]->tensor.dims,
                  groups = ((const sni_conv_params *)c->params)->group;
    bool line = c->constants[1]->tensor.rank == 3;
    sni_slices_variant f = {.channels = w[1] * groups,
                            .groups = groups,
                            .m = w[0],
                            .depth = line ? 1 : w[2],
                            .kernel_h = line ? 1 : w[3],
                            .kernel_w = line ? w[2] : w[4],
                            .plain = groups == 1 && sni_slices_plain(w[1])};
    sni_sliced s;
    float *bias = NULL, *slopes = NULL;
    SN_TRY(sni_slices_pack(c, &f, transpose_weights, NULL, &s, err));
    sn_status status = sni_blocked_bias(c, &bias, err);
    if (status == SN_OK) status = sni_blocked_slopes(c, &slopes, err);
    sni_slices_end(&s, bias, slopes);
    if (status == SN_OK) status = sni_cpu_keep(&s, sizeof s, state, err);
    if (status != SN_OK) sni_conv_direct_release(s.direct);
    return status;
}

static sni_slices_call call_of(const sni_tensor *x, const sni_tensor *y, const sni_window *w) {
    int last = w->rank - 1;
    sni_slices_call c = {.x = x->data,
                         .y = y->data,
                         .batch = x->dims[0],
                         .h = 1,
                         .w = w->in[last],
                         .out_h = 1,
                         .out_w = w->out[last],
                         .stride_d = 1,
                         .stride_h = 1,
                         .stride_w = w->stride[last],
                         .dilation_h = 1,
                         .dilation_w = w->dilation[last],
                         .pad_w = w->begin[last]};
    if (last == 0) return c;
    c.d = w->in[0];
    c.out_d = w->out[0];
    c.stride_d = w->stride[0];
    c.pad_d = w->begin[0];
    c.h = w->in[1];
    c.out_h = w->out[1];
    c.stride_h = w->stride[1];
    c.dilation_h = w->dilation[1];
    c.pad_h = w->begin[1];
    return c;
}

/* Rows (channels of images) of sums that are finished with what is added to them. */
typedef struct finish_job {
    const sni_cpu_kernels *kernels;
    sni_epilogue epilogue; /* but for what is added and slopes */
    const float *added, *slopes;
    float *y;
    int64_t m, pixels;
} finish_job;

static void finish_rows(void *ctx, int64_t begin, int64_t end) {
    const finish_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        sni_epilogue e = j->epilogue;
        e.residual = j->added + i * j->pixels;
        if (j->slopes) e.row_slopes = j->slopes + i % j->m;
        j->kernels->finish_tile(&e, NULL, false, j->y + i * j->pixels, j->pixels, 0, 1, 0,
                                j->pixels);
    }
}

/* What is added lies as the output does: sums are finished there then. */
sn_status sni_conv_slices_run(sni_kernel *k) {
    const sni_sliced *s = k->state;
    const sni_tensor *x = sni_in(k, 0), *added = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    const sni_fused_conv_params *p = k->params;
    sni_epilogue act = {0};
    sni_conv conv = {0};
    if (y->count == 0) return SN_OK;
    sni_cpu_act(&p->activation, &act.act, &act.p0, &act.p1);
    SN_TRY(sni_conv_init(k, &conv, x, sni_in(k, 1), y));
    sni_slices_call call = call_of(x, y, &conv.window);
    if (!added) return sni_slices_run(k, s, &call, &act);
    sni_sliced bare = *s;
    bare.slopes = NULL;
    SN_TRY(sni_slices_run(k, &bare, &call, &(sni_epilogue){0}));
    finish_job j = {.kernels = sni_cpu_kernels_get(),
                    .epilogue = act,
                    .added = added->data,
                    .slopes = s->slopes,
                    .y = y->data,
                    .m = s->variant.m,
                    .pixels = sni_tensor_span(y, 2, y->rank)};
    if (s->slopes) j.epilogue.act = SNI_ACT_LEAKY_RELU;
    j.epilogue.residual_row = j.pixels;
    sni_blocked_for(k, x->dims[0] * j.m, j.pixels, finish_rows, &j);
    return SN_OK;
}
