/* blocked.c - blocked convolutions in plain numbers. */
#include "cpu/conv/blocked.h"

#include "base/threadpool.h"
#include "cpu/conv/depthwise/depthwise.h"
#include "ops/core/compute.h"

#include <stdlib.h>
#include <string.h>

static void set_window(sni_conv_geometry *g, const sni_window *w) {
    g->kernel_h = w->kernel[0];
    g->kernel_w = w->kernel[1];
    g->stride_h = w->stride[0];
    g->stride_w = w->stride[1];
    g->dilation_h = w->dilation[0];
    g->dilation_w = w->dilation[1];
    g->pad_top = w->begin[0];
    g->pad_left = w->begin[1];
    g->pad_bottom = w->end[0];
    g->pad_right = w->end[1];
}

static void set_sizes(sni_conv_geometry *g, const int64_t in[2], const int64_t out[2]) {
    g->in_h = in[0];
    g->in_w = in[1];
    g->out_h = out[0];
    g->out_w = out[1];
}

static int64_t known_or_none(sni_dim d) {
    return sni_dim_known(d) ? d : -1;
}

/* Sizes and padding where the input's are known. */
static bool choice_sizes(const sni_choice *c, const sni_window_params *p, sni_window *w,
                         sni_conv_geometry *g) {
    int64_t in[2], out[2] = {-1, -1};
    g->n = known_or_none(c->in[0]->dims[0]);
    for (int i = 0; i < 2; i++) in[i] = known_or_none(c->in[0]->dims[2 + i]);
    if (in[0] >= 0 && in[1] >= 0) {
        if (sni_window_sizes(w, p, in, out, NULL, NULL) != SN_OK) return false;
        sni_window_place(w, p, in, out);
    } else if (p->auto_pad != SNI_PAD_NOTSET && p->auto_pad != SNI_PAD_VALID) {
        for (int i = 0; i < 2; i++) w->begin[i] = w->end[i] = -1;
    }
    set_window(g, w);
    set_sizes(g, in, out);
    return true;
}

static bool any_geometry(const sni_choice *c, sni_conv_geometry *g, bool *plain) {
    const sni_blocked_conv_params *p = c->params;
    const sni_window_params *window = &p->fused.conv.window;
    int rank = sni_choice_rank(c, 0);
    sni_conv_epilogue e;
    sni_window w;
    if (!sni_choice_is(c, 0, SN_FLOAT32) || (rank != 4 && rank != 5) || !c->constants[1] ||
        (sni_choice_given(c, 2) && !c->constants[2]) ||
        (sni_choice_given(c, 4) && !c->constants[4]) || p->block != sni_cpu_kernels_get()->block ||
        !sni_cpu_act(&p->fused.activation, &e.act, &e.p0, &e.p1))
        return false;
    const int64_t *weights = c->constants[1]->tensor.dims;
    if (sni_window_init(&w, window, 2, weights + 2, NULL) != SN_OK) return false;
    *g = (sni_conv_geometry){.in_channels = weights[1] * p->fused.conv.group,
                             .out_channels = weights[0],
                             .groups = p->fused.conv.group};
    *plain = rank == 4;
    return weights[0] > 0 && weights[1] > 0 && choice_sizes(c, window, &w, g);
}

bool sni_blocked_geometry(const sni_choice *c, sni_conv_geometry *g, bool *plain) {
    const sni_blocked_conv_params *p = c->params;
    return !p->indirect.indices.n && any_geometry(c, g, plain);
}

bool sni_blocked_any_geometry(const sni_choice *c, sni_conv_geometry *g) {
    bool plain;
    return any_geometry(c, g, &plain) && !plain;
}

sn_status sni_blocked_origins_new(const sni_indirect *p, sni_blocked_origins **out, sn_error *err) {
    sni_blocked_origins *o = malloc(sizeof *o + p->indices.n * sizeof *o->of);
    if (!o) return sni_fail_memory(err);
    o->count = (int64_t)p->indices.n;
    for (int64_t i = 0; i < o->count; i++) o->of[i] = sni_indirect_origin(p, i);
    *out = o;
    return SN_OK;
}

sn_status sni_blocked_list(sni_kernel *k, const sni_blocked_origins *o, int more, int64_t channels,
                           const float ***out) {
    const sni_tensor *x = sni_in(k, 0);
    int64_t block = x->dims[4], pixels = x->dims[2] * x->dims[3], at = 0;
    void *list;
    SN_TRY(sni_scratch_matrix(k, x->dims[0], channels, sizeof **out, &list));
    *out = list;
    for (int64_t n = 0; n < x->dims[0]; n++)
        for (int64_t c = 0; c < channels; c++) {
            sni_origin from = {.channel = (int32_t)c};
            if (o->count) from = o->of[c];
            const sni_tensor *t = from.tensor ? sni_in(k, more + from.tensor - 1) : x;
            (*out)[at++] = (const float *)t->data +
                           (n * t->dims[1] + from.channel / block) * pixels * block +
                           from.channel % block;
        }
    return SN_OK;
}

sn_status sni_blocked_bias(const sni_choice *c, float **out, sn_error *err) {
    return sni_blocked_bias_of(c, 2, out, err);
}

sn_status sni_blocked_slopes(const sni_choice *c, float **out, sn_error *err) {
    return sni_blocked_bias_of(c, 4, out, err);
}

sn_status sni_blocked_bias_of(const sni_choice *c, int i, float **out, sn_error *err) {
    int64_t block = sni_cpu_kernels_get()->block;
    const sni_tensor *bias;
    float *padded;
    bool filled;
    *out = NULL;
    if (!sni_choice_given(c, i)) return SN_OK;
    int64_t count = c->constants[i]->tensor.count;
    SN_TRY(sni_cpu_floats(c, (size_t)(sni_blocks(count, block) * block), &padded, &filled, err));
    if (!filled) {
        SN_TRY(sni_cpu_weight(c, i, &bias, err));
        memcpy(padded, bias->data, (size_t)count * sizeof *padded);
    }
    *out = padded;
    return SN_OK;
}

sn_status sni_blocked_pack_pointwise(const sni_choice *c, int i, float **out, sn_error *err) {
    const sni_unaligned_float *w;
    float *panels;
    bool filled;
    int64_t block = sni_cpu_kernels_get()->block;
    int64_t m = c->constants[i]->tensor.dims[0], in = c->constants[i]->tensor.dims[1];
    int64_t depth = sni_blocks(in, block) * block;
    SN_TRY(
        sni_cpu_floats(c, (size_t)(sni_blocks(m, block) * block * depth), &panels, &filled, err));
    if (!filled) {
        SN_TRY(sni_cpu_unaligned(c, i, &w, err));
        sni_conv_pack_filters(w, m, in, 1, block, false, panels);
    }
    *out = panels;
    return SN_OK;
}

sn_status sni_blocked_extra_init(sni_kernel *k, sni_blocked_extra *out) {
    const sni_tensor *y = sni_out(k, 0), *means = sni_out(k, 1);
    void *buffer;
    *out = (sni_blocked_extra){.planes = y->dims[0] * y->dims[1], .height = y->dims[2]};
    if (!means) return SN_OK;
    SN_TRY(sni_scratch_matrix(k, out->planes * out->height, y->dims[4], sizeof(float), &buffer));
    out->means = means->data;
    out->rows = buffer;
    return SN_OK;
}

void sni_blocked_extra_done(const sni_blocked_extra *e) {
    if (e->means) sni_depthwise_means(e->rows, e->means, e->planes, e->height);
}

void sni_blocked_set_window(sni_conv_geometry *g, const sni_window *w) {
    set_window(g, w);
    set_sizes(g, w->in, w->out);
}

sn_status sni_blocked_call_init(sni_kernel *k, const float *bias, const float *slopes,
                                sni_blocked_call *out) {
    const sni_blocked_conv_params *p = k->params;
    const sni_tensor *x = sni_in(k, 0), *w = sni_in(k, 1), *z = sni_in(k, 3), *y = sni_out(k, 0);
    sni_window window;
    SN_TRY(sni_blocked_window(k, &window, x, w, y));
    *out = (sni_blocked_call){
        .geometry = {.n = x->dims[0],
                     .in_channels = w->dims[1] * p->fused.conv.group,
                     .out_channels = w->dims[0],
                     .groups = p->fused.conv.group},
        .epilogue = {.bias = bias, .slopes = slopes, .residual = z ? z->data : NULL},
        .x = x->data,
        .plain = x->rank == 4,
        .y = y->data};
    sni_blocked_set_window(&out->geometry, &window);
    sni_cpu_act(&p->fused.activation, &out->epilogue.act, &out->epilogue.p0, &out->epilogue.p1);
    if (slopes) out->epilogue.act = SNI_ACT_LEAKY_RELU;
    return SN_OK;
}

/* ---- Tiles ---- */

/* Half cycles that a span takes per channel and tap with tiles of `width` blocks. */
static int64_t span_cost(const sni_conv_kernels *k, int64_t all, int64_t span, int64_t width) {
    int64_t cost = 0;
    for (int64_t done = 0; done < all; done += width) {
        int64_t blocks = all - done < width ? all - done : width;
        int64_t tiles = (span + k->pixels[blocks] - 1) / k->pixels[blocks];
        for (int64_t i = 0; i < 2; i++) { /* tiles of one pixel more, and of one less */
            int64_t larger = span % tiles, pixels = span / tiles + (i == 0);
            int64_t fma = pixels * blocks, loads = pixels + blocks + 1;
            int64_t each = fma > loads ? fma : loads;
            cost += (i == 0 ? larger : tiles - larger) * (each > 9 ? each : 9);
        }
    }
    return cost;
}

int64_t sni_conv_width(const sni_conv_kernels *k, int64_t blocks, int64_t span, int64_t most) {
    int64_t best = -1, chosen = 1;
    for (int64_t width = 1; width <= (most < blocks ? most : blocks); width++) {
        if (!k->pixels[width]) continue;
        int64_t cost = span_cost(k, blocks, span, width);
        if (best >= 0 && cost >= best) continue;
        best = cost;
        chosen = width;
    }
    return chosen;
}

/* ---- How planes are shared out ---- */

static int threads_of(const sni_kernel *k) {
    return k->threads > 0 ? k->threads : sni_threads_available();
}

int64_t sni_blocked_parts(const sni_kernel *k, int64_t images, int64_t pixels, int64_t rows) {
    enum { ROW_PIXELS = 48 }; /* as in conv_direct.c */
    int64_t threads = threads_of(k);
    if (images % threads == 0 || images * pixels < ROW_PIXELS * threads || rows < threads) return 1;
    return threads;
}

sni_blocked_share sni_blocked_share_of(int64_t i, int64_t planes, int64_t parts) {
    int64_t image = i / (planes * parts), rest = i % (planes * parts);
    return (sni_blocked_share){.plane = image * planes + rest % planes, .part = rest / planes};
}

void sni_blocked_for(const sni_kernel *k, int64_t items, int64_t elements,
                     void (*fn)(void *ctx, int64_t begin, int64_t end), void *ctx) {
    int64_t threads = threads_of(k), grain = sni_cpu_grain(elements);
    if (grain < items / threads) grain = items / threads;
    sni_parallel_for(k->threads, items, grain, fn, ctx);
}
