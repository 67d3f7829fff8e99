/* conv_plane.c - what ways to convolve plain tensors (N,C,W), (N,C,H,W) and (N,C,D,H,W) share:
 * which convolutions they take, their geometry, and rows of the input with zeros around them. */
#include "cpu/conv/conv_plane.h"

/* Float32 input, constant float32 weights, and an activation that kernels have. */
static bool is_float_conv(const sni_choice *c) {
    const sni_fused_conv_params *p = c->params;
    sni_epilogue e = {0};
    return sni_choice_is(c, 0, SN_FLOAT32) && c->constants[1] &&
           c->constants[1]->tensor.dtype == SN_FLOAT32 &&
           sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1);
}

bool sni_plain_conv_supports(const sni_choice *c) {
    const sni_window_params *p = &((const sni_conv_params *)c->params)->window;
    if (!is_float_conv(c)) return false;
    const sni_tensor *w = &c->constants[1]->tensor;
    if (w->rank != 5) return w->rank == 3 || w->rank == 4;
    return sni_tensor_span(w, 2, 5) == 1 && sni_ints_are(&p->strides, 1) &&
           sni_ints_are(&p->pads, 0);
}

bool sni_plain_conv_is_volume(const sni_choice *c) {
    return is_float_conv(c) && c->constants[1]->tensor.rank == 5;
}

sni_epilogue sni_plain_conv_epilogue(const sni_kernel *k) {
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

enum { MOST_SIZE = 1 << 20 }; /* of an axis, as far as costs go */

int64_t sni_plain_conv_pixels(const sni_choice *c) {
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

bool sni_plane_is_pointwise(const sni_plane *p) {
    return p->kernel_h == 1 && p->kernel_w == 1 && p->stride_h == 1 && p->stride_w == 1 &&
           p->pad_h == 0 && p->pad_w == 0 && p->out_h == p->h && p->out_w == p->w;
}
