/* conv_plain_depthwise.c - convolution of plain pictures with one input channel for each output
 * channel, in float32: a row of output is the sum of rows of input times one weight each, and stays
 * in the first-level cache while its taps are added. */
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/conv_plane.h"
#include "cpu/core/loops.h"
#include "ops/core/long_work.h"

bool sni_conv_plain_depthwise_supports(const sni_choice *c) {
    const sni_conv_params *p = c->params;
    if (!sni_plain_conv_supports(c)) return false;
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

sn_status sni_conv_plain_depthwise_run(sni_kernel *k) {
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
                         .epilogue = sni_plain_conv_epilogue(k),
                         .y = y->data,
                         .channels = conv.out_channels};
    int64_t work = job.p.out_h * job.p.out_w * job.p.kernel_h * job.p.kernel_w;
    bool scales = sni_plane_is_pointwise(&job.p);
    int64_t grain = scales ? sni_cpu_grain(work) : work > 0 ? 32768 / work + 1 : 1;
    if (y->count == 0) return SN_OK;
    if (sni_long_work((double)work)) job.watch = k;
    return sni_long_for(k, conv.batch * conv.out_channels, grain, (double)work,
                        scales ? scale_planes : depthwise_planes, &job);
}
