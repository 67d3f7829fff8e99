/* squeeze.c - factors of channels from their means, in blocked layout: two products with one vector
 * each. */
#include "base/threadpool.h"
#include "cpu/blocked/blocked_kernels.h"
#include "cpu/conv/blocked.h"
#include "ops/core/compute.h"

#include <stdlib.h>

enum { X, W, B, V, D }; /* inputs */

typedef struct product {
    int64_t in, out; /* channels */
    float *panels;   /* as sni_blocked_pack_pointwise makes them */
    float *bias;     /* zeros up to whole blocks; NULL: none */
} product;

typedef struct squeeze_weights {
    product first, second;
} squeeze_weights;

static bool is_product(const sni_choice *c, int w, int bias) {
    return c->n_in > w && c->constants[w] && c->constants[w]->tensor.count > 0 &&
           (!sni_choice_given(c, bias) || c->constants[bias]);
}

static bool squeeze_accepts(const sni_choice *c) {
    const sni_squeeze_params *p = c->params;
    sni_conv_epilogue e;
    return sni_choice_is(c, X, SN_FLOAT32) && sni_choice_rank(c, X) == 5 && is_product(c, W, B) &&
           is_product(c, V, D) && p->block == sni_cpu_kernels_get()->block &&
           sni_cpu_act(&p->squeeze.activation, &e.act, &e.p0, &e.p1) &&
           sni_cpu_act(&p->excite.activation, &e.act, &e.p0, &e.p1);
}

static sn_status prepare_product(const sni_choice *c, int w, int bias, product *out,
                                 sn_error *err) {
    out->out = c->constants[w]->tensor.dims[0];
    out->in = c->constants[w]->tensor.dims[1];
    SN_TRY(sni_blocked_pack_pointwise(c, w, &out->panels, err));
    return sni_blocked_bias_of(c, bias, &out->bias, err);
}

static sn_status squeeze_prepare(const sni_choice *c, void **state, sn_error *err) {
    squeeze_weights w = {0};
    SN_TRY(prepare_product(c, W, B, &w.first, err));
    SN_TRY(prepare_product(c, V, D, &w.second, err));
    return sni_cpu_keep(&w, sizeof w, state, err);
}

static sni_span span_of(const product *p, int64_t block) {
    int64_t size = sni_blocks(p->in, block) * sni_blocks(p->out, block) * block * block;
    return (sni_span){.data = p->panels, .bytes = (size_t)size * sizeof(float)};
}

static int squeeze_reads(const void *state, sni_span *spans) {
    const squeeze_weights *w = state;
    int64_t block = sni_cpu_kernels_get()->block;
    spans[0] = span_of(&w->first, block);
    spans[1] = span_of(&w->second, block);
    return 2;
}

/* ---- Products with a vector ---- */

typedef struct product_job {
    const product *p;
    const sni_cpu_kernels *kernels;
    sni_conv_epilogue epilogue;
    const float *x;
    float *y;
} product_job;

/* Output blocks [begin, end), as tiles of one pixel. */
static void run_blocks(void *ctx, int64_t begin, int64_t end) {
    const product_job *j = ctx;
    const sni_conv_kernels *k = j->kernels->conv;
    int64_t block = j->kernels->block, blocks = sni_blocks(j->p->in, block);
    int64_t depth = blocks * block * block;
    sni_conv_epilogue e = j->epilogue;
    sni_conv_tile t = {.x = j->x,
                       .blocks = 1,
                       .channels = block,
                       .last = j->p->in - (blocks - 1) * block,
                       .rows = 1,
                       .taps = blocks,
                       .x_pixel = block,
                       .x_tap = block,
                       .w_out = depth,
                       .w_tap = block * block,
                       .y_block = block,
                       .finish = true,
                       .epilogue = &e};
    for (int64_t b = begin, width; b < end; b += width) {
        width = end - b < SNI_CONV_MOST_WIDTH ? end - b : SNI_CONV_MOST_WIDTH;
        while (!k->pixels[width]) width--;
        t.w = j->p->panels + b * depth;
        t.y = j->y + b * block;
        t.prefetch = (uintptr_t)t.w;
        e.bias = j->p->bias ? j->p->bias + b * block : NULL;
        k->tile[SNI_CONV_BLOCKED_1][width][1](&t);
    }
}

/* A thread gets one stretch of the weights, which may have come to its cache already. */
static void multiply(const sni_kernel *k, const product *p, const sni_activation *act,
                     const float *x, float *y) {
    enum { PIECE = 16384 }; /* weights that are worth a thread's while */
    product_job j = {.p = p, .kernels = sni_cpu_kernels_get(), .x = x, .y = y};
    int64_t block = j.kernels->block, each = sni_blocks(p->in, block) * block * block;
    sni_cpu_act(act, &j.epilogue.act, &j.epilogue.p0, &j.epilogue.p1);
    int64_t blocks = sni_blocks(p->out, block), least = (PIECE + each - 1) / each;
    int threads = k->threads > 0 ? k->threads : sni_threads_available();
    int64_t share = blocks / threads;
    sni_parallel_for(threads, blocks, share > least ? share : least, run_blocks, &j);
}

static sn_status squeeze_run(sni_kernel *k) {
    const sni_squeeze_params *p = k->params;
    const squeeze_weights *w = k->state;
    const sni_tensor *x = sni_in(k, X), *y = sni_out(k, 0);
    int64_t block = p->block, mid = sni_blocks(w->first.out, block) * block;
    int64_t pixels = x->dims[2] * x->dims[3];
    const float *means = x->data;
    void *buffer;
    if (y->count == 0) return SN_OK;
    if (pixels != 1) {
        SN_TRY(sni_scratch_matrix(k, x->dims[0] * x->dims[1], block, sizeof(float), &buffer));
        sni_blocked_means(k, x->data, buffer, x->dims[0] * x->dims[1], pixels);
        means = buffer;
    }
    SN_TRY(sni_scratch_matrix(k, 1, mid, sizeof(float), &buffer));
    for (int64_t n = 0; n < x->dims[0]; n++) {
        multiply(k, &w->first, &p->squeeze.activation, means + n * x->dims[1] * block, buffer);
        multiply(k, &w->second, &p->excite.activation, buffer,
                 (float *)y->data + n * y->dims[1] * block);
    }
    return SN_OK;
}

const sni_impl sni_cpu_squeeze = {
    .name = "squeeze_excite_f32",
    .op = "SqueezeExcite",
    .domain = SNI_SINTER_DOMAIN,
    .accepts = squeeze_accepts,
    .prepare = squeeze_prepare,
    .release = free,
    .packs = 1u << W | 1u << B | 1u << V | 1u << D,
    .reads = squeeze_reads,
    .run = squeeze_run,
};
