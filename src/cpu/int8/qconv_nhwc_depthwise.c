/* qconv_nhwc_depthwise.c - convolutions of bytes whose output channels see one channel each, with
 * channels last: a kernel computes one row of outputs for all channels. */
#include "cpu/int8/qconv_nhwc.h"

#include "base/lengths.h"
#include "base/threadpool.h"
#include "ops/core/compute.h"

/* ---- Weights ---- */

static int64_t blocks_of(int64_t channels) {
    return sni_ceil_div(channels, sni_nhwc_kernels_get()->depthwise_block);
}

size_t sni_nhwc_depthwise_size(int64_t channels, const int64_t kernel[2]) {
    return (size_t)(blocks_of(channels) * sni_nhwc_kernels_get()->depthwise_size(kernel));
}

void sni_nhwc_fill_depthwise(sni_nhwc_conv *p, const sni_tensor *w) {
    const sni_nhwc_kernels *kernels = sni_nhwc_kernels_get();
    int64_t size = kernels->depthwise_size(w->dims + 2), block = kernels->depthwise_block;
    int32_t *to = p->w.extra;
    for (int64_t b = 0; b < blocks_of(p->w.n); b++)
        for (int64_t i = 0; i < size; i++)
            *to++ = kernels->depthwise_element(w->data, sni_int_flip(w->dtype, true), p->w.n,
                                               b * block, w->dims + 2, i);
}

/* ---- Running ---- */

typedef struct rows_job {
    const sni_nhwc_call *c;
    const sni_nhwc_kernels *kernels;
    const int32_t *adds; /* in the kernel's order, up to a whole block */
    const float *scales;
    const sni_kernel *kernel;
} rows_job;

/* Output rows [begin, end), counted over all images. */
static void run_rows(void *ctx, int64_t begin, int64_t end) {
    const rows_job *j = ctx;
    const sni_nhwc_call *c = j->c;
    const sni_window *w = &c->window;
    const uint8_t *rows[SNI_INT_TAPS];
    int64_t channels = c->p->w.n, line = w->in[1] * channels;
    sni_nhwc_depthwise d = {.how = &c->finish,
                            .x = rows,
                            .pad = c->pad,
                            .channels = channels,
                            .in = w->in[1],
                            .out = w->out[1],
                            .kernel = {w->kernel[0], w->kernel[1]},
                            .stride = w->stride[1],
                            .dilation = w->dilation[1],
                            .begin = w->begin[1],
                            .flip = sni_int_flip(c->x->dtype, false),
                            .w = c->p->w.extra,
                            .add = j->adds,
                            .scale = j->scales};
    for (int64_t i = begin; i < end && !sni_stopping(j->kernel); i++) {
        for (int64_t h = 0; h < w->kernel[0]; h++) {
            int64_t r = i % w->out[0] * w->stride[0] + h * w->dilation[0] - w->begin[0];
            rows[h] = r < 0 || r >= w->in[0]
                          ? NULL
                          : (const uint8_t *)c->x->data + (i / w->out[0] * w->in[0] + r) * line;
        }
        d.y = (uint8_t *)c->y->data + i * w->out[1] * channels;
        j->kernels->depthwise(&d);
    }
}

sn_status sni_nhwc_run_depthwise(sni_kernel *k, const sni_nhwc_call *c) {
    const sni_nhwc_kernels *kernels = sni_nhwc_kernels_get();
    int64_t channels = c->p->w.n, block = kernels->depthwise_block;
    int64_t padded = blocks_of(channels) * block;
    void *adds, *scales;
    SN_TRY(sni_scratch_array(k, padded, sizeof(int32_t), &adds));
    SN_TRY(sni_scratch_array(k, padded, sizeof(float), &scales));
    for (int64_t i = 0; i < padded; i++) {
        int64_t channel = i / block * block + kernels->depthwise_channel((int)(i % block));
        ((int32_t *)adds)[i] = channel < channels ? c->adds[channel] : 0;
        ((float *)scales)[i] = channel < channels ? c->scales[channel] : 0;
    }
    rows_job j = {.c = c, .kernels = kernels, .adds = adds, .scales = scales, .kernel = k};
    int64_t rows = c->y->dims[0] * c->y->dims[1];
    int64_t work = c->window.out[1] * channels * c->p->w.k;
    sni_parallel_for(k->threads, rows, (1 << 15) / (work + 1) + 1, run_rows, &j);
    return sni_poll(k);
}
