/* conv_im2col.c - convolution in float32 as a matrix product of packed weights (M x C*taps) and
 * patches of the input (C*taps x pixels), which are gathered panel by panel, never as a whole. It
 * takes every shape, with pixels along the vectors of its tiles. */
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/conv_plane.h"
#include "cpu/gemm/gemm.h"

typedef struct packed_conv {
    int64_t groups, m, k; /* rows and depth of one group */
    size_t group_size;    /* floats */
    float *panels;
} packed_conv;

sn_status sni_conv_im2col_prepare(const sni_choice *c, void **state, sn_error *err) {
    const sni_conv_params *params = c->params;
    const sni_tensor *w = &c->constants[1]->tensor;
    const sni_unaligned_float *from;
    bool filled;
    packed_conv p = {.groups = params->group};
    p.m = w->dims[0] / p.groups;
    p.k = sni_tensor_span(w, 1, w->rank);
    p.group_size = sni_gemm_packed_a_size(p.m, p.k);
    SN_TRY(sni_cpu_floats(c, p.group_size * (size_t)p.groups, &p.panels, &filled, err));
    if (!filled) {
        SN_TRY(sni_cpu_unaligned(c, 1, &from, err));
        for (int64_t g = 0; g < p.groups; g++, from += p.m * p.k)
            sni_gemm_pack_a(from, p.k, 1, p.m, p.k, p.panels + (size_t)g * p.group_size);
    }
    return sni_cpu_keep(&p, sizeof p, state, err);
}

/* ---- Patches ---- */

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

/* Taps [w, w + count) of row h of a kernel. */
typedef struct taps {
    int64_t h, w, count;
} taps;

/* Taps of a row at once, which are neighbours in the input, if all of them are inside of it for
 * every pixel; else false. */
static bool fill_taps(const sni_plane *p, const float *x, taps t, int64_t n0, int64_t cols, int nr,
                      float *to) {
    int64_t out_h = n0 / p->out_w, out_w = n0 % p->out_w;
    int64_t row = out_h * p->stride_h - p->pad_h + t.h * p->dilation_h;
    int64_t at = out_w * p->stride_w - p->pad_w + t.w;
    if (out_w + cols > p->out_w || row < 0 || row >= p->h || at < 0 ||
        at + (cols - 1) * p->stride_w + t.count > p->w)
        return false;
    sni_cpu_kernels_get()->pack_transposed(x + row * p->w + at, p->stride_w, cols, nr, t.count, to);
    return true;
}

enum { TAPS = 8 }; /* from which on fill_taps is the quicker one */

static void fill_patches(const void *ctx, int64_t k0, int64_t rows, int64_t n0, int64_t cols,
                         int nr, float *panel) {
    const sni_plane *p = ctx;
    int64_t all = p->kernel_h * p->kernel_w;
    int64_t channel = k0 / all, tap_h = k0 % all / p->kernel_w, tap_w = k0 % p->kernel_w;
    for (int64_t r = 0, count; r < rows; r += count, panel += count * nr) {
        const float *x = p->x + channel * p->h * p->w;
        count = p->kernel_w - tap_w < rows - r ? p->kernel_w - tap_w : rows - r;
        if (count < TAPS || p->stride_w == 1 || p->dilation_w > 1 ||
            !fill_taps(p, x, (taps){tap_h, tap_w, count}, n0, cols, nr, panel)) {
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

/* ---- Running ---- */

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
