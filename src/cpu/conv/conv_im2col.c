/* conv_im2col.c - convolution in float32 as a matrix product of packed weights and patches of the
 * input, which are gathered panel by panel, never as a whole.
 *
 * Two rows of the table: weights (M x C*taps) times patches (C*taps x pixels), which has pixels
 * along its vectors; and, where there are too few pixels to fill those, patches (pixels x C*taps)
 * times transposed weights (C*taps x M), which has output channels along them. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/conv_plane.h"
#include "cpu/gemm/gemm.h"
#include "ops/core/compute.h"

#include <stdlib.h>
#include <string.h>

typedef struct packed_conv {
    int64_t groups, m, k; /* rows and depth of one group */
    size_t group_size;    /* floats */
    float *panels;
} packed_conv;

/* ---- Weights ---- */

/* As the left operand of the product, or (`right`) transposed as the right one. */
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

/* ---- Weights times patches ---- */

sn_status sni_conv_im2col_prepare(const sni_choice *c, void **state, sn_error *err) {
    return pack_weights(c, false, state, err);
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

sn_status sni_conv_im2col_run(sni_kernel *k) {
    const packed_conv *w = k->state;
    const sni_tensor *x = sni_in(k, 0), *bias = sni_in(k, 2), *added = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    sni_epilogue epilogue = sni_plain_conv_epilogue(k);
    sni_conv conv = {0};
    SN_TRY(sni_conv_init(k, &conv, x, sni_in(k, 1), y));
    sni_plane p = sni_plane_of(&conv.window);
    int64_t pixels = p.out_h * p.out_w, in_pixels = p.h * p.w;
    int64_t channels = conv.in_channels / w->groups;
    if (y->count == 0) return SN_OK;
    sni_gemm_f32 g = {.m = w->m, .n = pixels, .k = w->k, .c_row = pixels, .epilogue = epilogue};
    g.epilogue.residual_row = pixels;
    bool direct = sni_plane_is_pointwise(&p);
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

/* ---- Patches times transposed weights ---- */

enum { FEW_ROWS = 64 }; /* pixels that are multiplied at once */

sn_status sni_conv_few_prepare(const sni_choice *c, void **state, sn_error *err) {
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
    bool direct = sni_plane_is_pointwise(&j->p);
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
sn_status sni_conv_few_run(sni_kernel *k) {
    const packed_conv *w = k->state;
    const sni_tensor *x = sni_in(k, 0), *bias = sni_in(k, 2), *added = sni_in(k, 3);
    sni_tensor *y = sni_out(k, 0);
    sni_epilogue e = sni_plain_conv_epilogue(k);
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
