/* winograd_pack.c - transformed weights of Winograd's method (cpu/conv/winograd/winograd.h). */
#include "base/threadpool.h"
#include "cpu/conv/winograd/winograd_inner_product.h"
#include "cpu/conv/winograd/winograd_parts.h"

#include <string.h>

size_t sni_wino_packed_size(const sni_conv_geometry *g, const sni_wino_variant *variant) {
    int64_t block = sni_cpu_kernels_get()->block;
    int64_t depth =
        variant->taps ? g->kernel_h * g->kernel_w * g->in_channels : sni_wino_depth(g, variant);
    int64_t blocks = sni_blocks(g->out_channels, block), weights = depth * blocks * block;
    if (variant->inner_product)
        weights += sni_ceil_div(blocks, 2) * sni_wino_points(variant) * SNI_WINO_NUMBERS;
    return (size_t)weights;
}

typedef struct pack_job {
    const sni_conv_geometry *g;
    const sni_wino_variant *variant;
    const sni_cpu_kernels *kernels;
    const sni_unaligned_float *w;
    float *to;
} pack_job;

/* Where the points of a phase begin in a pair's weights. */
static void set_points(const pack_job *j, int64_t phase, int64_t nv, float *pair,
                       sni_wino_weights *s) {
    const sni_wino_variant *f = j->variant;
    int64_t channels = j->g->in_channels, row = nv * j->kernels->block;
    int64_t before = 0, first, end;
    for (int64_t point = 0; point < sni_wino_points(f);
         point++, before += (end - first) * channels) {
        sni_wino_phases_at(f, point, &first, &end);
        bool has = phase >= first && phase < end;
        s->u[point] = has ? pair + (before + (phase - first) * channels) * row : NULL;
    }
}

/* Taps (channels, kernel_h, kernel_w, block) to those of a phase (channels, r_h, r_w, block), with
 * zeros for the last ones of odd taps. */
static void pick_taps(const pack_job *j, int64_t phase, int64_t channels, const float *from,
                      float *to) {
    const sni_wino_variant *f = j->variant;
    int64_t block = j->kernels->block, kernel_h = j->g->kernel_h, kernel_w = j->g->kernel_w;
    for (int64_t c = 0; c < channels; c++, from += kernel_h * kernel_w * block)
        for (int64_t i = 0; i < f->r_h; i++)
            for (int64_t k = 0; k < f->r_w; k++, to += block) {
                int64_t h = 2 * i + sni_wino_phase_of(phase).down,
                        w = 2 * k + sni_wino_phase_of(phase).across;
                if (h < kernel_h && w < kernel_w)
                    memcpy(to, from + (h * kernel_w + w) * block, (size_t)block * sizeof *to);
                else
                    memset(to, 0, (size_t)block * sizeof *to);
            }
}

enum { NEAR = 4096 }; /* floats of taps that stay in the first cache */

/* Some channels of one block of output channels from `c` on, as vectors of a tap of all outputs. */
static void pack_transposed(const pack_job *j, const float *transposed, int64_t c, int64_t nv,
                            float *pair, sni_wino_weights *s) {
    float picked[NEAR];
    for (int64_t phase = 0; phase < sni_wino_phases(j->variant); phase++) {
        set_points(j, phase, nv, pair, s);
        for (int64_t point = 0; point < sni_wino_points(j->variant); point++)
            if (s->u[point]) s->u[point] += c * s->next;
        if (j->variant->stride == 2) pick_taps(j, phase, s->channels, transposed, picked);
        s->taps = j->variant->stride == 2 ? picked : transposed;
        j->kernels->wino->weights(s);
    }
}

/* Channels [from, to) of one block of output channels, transposed first so that a vector holds a
 * tap of all outputs. */
static void pack_channels(const pack_job *j, int64_t out_block, int64_t from, int64_t to) {
    const sni_conv_geometry *g = j->g;
    const sni_wino_variant *f = j->variant;
    int64_t block = j->kernels->block, taps = g->kernel_h * g->kernel_w, pair = out_block / 2;
    int64_t nv = sni_min(2, sni_blocks(g->out_channels, block) - 2 * pair), out = out_block * block;
    int64_t most = NEAR / (taps * block), depth = sni_wino_depth(g, f);
    float transposed[NEAR];
    sni_wino_weights s = {
        .t_h = f->t_h, .t_w = f->t_w, .r_h = f->r_h, .r_w = f->r_w, .next = nv * block};
    for (int64_t c = from; c < to; c += s.channels) {
        s.channels = sni_min(most, to - c);
        j->kernels->pack_transposed(j->w + (out * g->in_channels + c) * taps, g->in_channels * taps,
                                    sni_min(block, g->out_channels - out), (int)block,
                                    s.channels * taps, transposed);
        pack_transposed(j, transposed, c, nv,
                        j->to + pair * depth * 2 * block + out_block % 2 * block, &s);
    }
}

/* Input channels [begin, end) of all pairs, counted over pairs and then channels. */
static void pack_some(void *ctx, int64_t begin, int64_t end) {
    enum { STRETCH = 16 }; /* channels that both blocks of a pair have in turn */
    const pack_job *j = ctx;
    int64_t channels = j->g->in_channels, to;
    int64_t blocks = sni_blocks(j->g->out_channels, j->kernels->block);
    for (int64_t i = begin; i < end; i = to) {
        int64_t pair = i / channels, from = i % channels;
        to = sni_min(sni_min(i + STRETCH, end), (pair + 1) * channels);
        for (int64_t b = 2 * pair; b < sni_min(2 * pair + 2, blocks); b++)
            pack_channels(j, b, from, from + to - i);
    }
}

/* Output blocks [begin, end) as (channels, taps, block). */
static void pack_taps(void *ctx, int64_t begin, int64_t end) {
    const pack_job *j = ctx;
    int64_t block = j->kernels->block, each = j->g->in_channels * j->g->kernel_h * j->g->kernel_w;
    for (int64_t b = begin; b < end; b++)
        j->kernels->pack_transposed(j->w + b * block * each, each,
                                    sni_min(block, j->g->out_channels - b * block), (int)block,
                                    each, j->to + b * block * each);
}

/* The weights of pairs [begin, end) at all points, those of two blocks, for products by pairs. */
static void pair_some(void *ctx, int64_t begin, int64_t end) {
    const pack_job *j = ctx;
    int64_t block = j->kernels->block, blocks = sni_blocks(j->g->out_channels, block);
    for (int64_t pair = begin; pair < sni_min(end, blocks / 2); pair++) {
        int64_t depth = sni_wino_depth(j->g, j->variant);
        float *at = j->to + pair * depth * 2 * block;
        float *numbers = j->to + sni_wino_numbers_at(depth * blocks * block, j->variant, pair);
        for (int64_t point = 0; point < sni_wino_points(j->variant);
             point++, numbers += SNI_WINO_NUMBERS) {
            int64_t first, last;
            sni_wino_phases_at(j->variant, point, &first, &last);
            int64_t k = (last - first) * j->g->in_channels;
            sni_wino_pair_columns(at, k, numbers);
            at += k * 2 * block;
        }
    }
}

void sni_wino_pack(const sni_conv_geometry *g, const sni_wino_variant *variant,
                   const sni_unaligned_float *w, float *to, int threads) {
    pack_job j = {.g = g, .variant = variant, .kernels = sni_cpu_kernels_get(), .w = w, .to = to};
    int64_t blocks = sni_blocks(g->out_channels, j.kernels->block), pairs = sni_ceil_div(blocks, 2);
    if (variant->taps) {
        sni_parallel_for(threads, blocks, 1, pack_taps, &j);
        return;
    }
    sni_parallel_for(threads, pairs * g->in_channels, 32, pack_some, &j);
    if (variant->inner_product) sni_parallel_for(threads, pairs, 1, pair_some, &j);
}
