/* conv_direct_pack.c - weights of direct convolutions: which are accepted, and how they are packed.
 */
#include "cpu/conv/conv_algorithms.h"
#include "cpu/blocked/blocked_kernels.h"
#include "cpu/conv/direct/conv_direct.h"

#include <stdlib.h>

/* From this on taps share few pixels of a tile, and most columns of small pictures lack some. */
enum { WIDE_DILATION = 4 };

static int64_t merged_groups(const sni_conv_geometry *g, int64_t block) {
    return sni_blocked_merge(g->in_channels, g->out_channels, g->groups, block);
}

/* Factors of input channels are those of rows of the weights, or of a copy of the input. */
static bool is_pointwise(const sni_conv_geometry *g) {
    return g->groups == 1 && g->kernel_h == 1 && g->kernel_w == 1;
}

bool sni_conv_direct_supports(const sni_choice *c) {
    sni_conv_geometry g;
    bool plain;
    if (c->node->n_out > 1 || !sni_blocked_geometry(c, &g, &plain)) return false;
    if (plain) return g.groups == 1;
    if (sni_choice_given(c, 5)) return is_pointwise(&g);
    return merged_groups(&g, sni_cpu_kernels_get()->block) > 0;
}

/* `count` channels of one filter from `from` on, which become those from `first` on of the merged
 * group. */
static void pack_channels(const sni_unaligned_float *from, int64_t count, int64_t taps,
                          int64_t in_block, int64_t first, int64_t block, float *to) {
    for (int64_t i = 0; i < count; i++) {
        int64_t channel = first + i;
        float *at = to + (channel / in_block * taps * in_block + channel % in_block) * block;
        for (int64_t tap = 0; tap < taps; tap++) at[tap * in_block * block] = from[i * taps + tap];
    }
}

/* Some filters of one output block: a stretch of input channels at a time, so that what is written
 * to stays in the first cache. */
static void pack_block(const sni_direct_weights *d, const sni_unaligned_float *w, int64_t filter,
                       int64_t count, int64_t block) {
    int64_t in = d->in / d->merged, out = d->out / d->merged, taps = d->taps;
    int64_t depth = sni_blocks(d->in, d->in_block) * d->in_block * taps;
    int64_t group = filter / d->out, o = filter % d->out;
    float *to = d->panels + (group * sni_blocks(d->out, block) + o / block) * depth * block;
    for (int64_t c = 0; c < in; c += block) {
        int64_t some = in - c < block ? in - c : block;
        for (int64_t f = 0; f < count; f++)
            pack_channels(w + ((filter + f) * in + c) * taps, some, taps, d->in_block,
                          (o + f) / out * in + c, block, to + (o + f) % block);
    }
}

static void pack(const sni_direct_weights *d, const sni_unaligned_float *w, int64_t block) {
    int64_t inputs = sni_blocks(d->in, d->in_block) * d->in_block;
    int64_t size = sni_blocks(d->out, block) * block * inputs * d->taps;
    for (int64_t group = 0; group < d->groups; group++) {
        if (d->merged == 1)
            sni_conv_pack_filters(w + group * d->out * d->in * d->taps, d->out, d->in, d->taps,
                                  d->in_block, d->apart, d->panels + group * size);
        for (int64_t o = 0; o < d->out && d->merged > 1; o += block)
            pack_block(d, w, group * d->out + o, d->out - o < block ? d->out - o : block, block);
    }
}

void sni_conv_direct_release(void *state) {
    free(state);
}

static sni_direct_weights weights_of(const sni_conv_geometry *g, bool plain) {
    int64_t block = sni_cpu_kernels_get()->block;
    sni_direct_weights d = {.merged = plain ? 1 : merged_groups(g, block),
                            .in_block = plain ? 1 : block,
                            .taps = g->kernel_h * g->kernel_w,
                            .kernel_w = g->kernel_w};
    d.apart = !plain && d.merged == 1 && g->kernel_w > 1 && g->dilation_w >= WIDE_DILATION;
    d.groups = g->groups / d.merged;
    d.in = g->in_channels / d.groups;
    d.out = g->out_channels / d.groups;
    return d;
}

static sn_status alloc_floats(const sni_choice *c, sni_direct_weights *d, bool *filled,
                              sn_error *err) {
    int64_t block = sni_cpu_kernels_get()->block;
    int64_t depth = sni_blocks(d->in, d->in_block) * d->in_block * d->taps;
    size_t count = (size_t)(d->groups * sni_blocks(d->out, block) * block * depth);
    return sni_cpu_floats(c, count, &d->panels, filled, err);
}

sn_status sni_conv_direct_start(const sni_choice *c, const sni_conv_geometry *g, bool plain,
                                void **state, bool *filled, sn_error *err) {
    sni_direct_weights d = weights_of(g, plain);
    SN_TRY(alloc_floats(c, &d, filled, err));
    return sni_cpu_keep(&d, sizeof d, state, err);
}

void sni_conv_direct_pack(void *state, const sni_unaligned_float *w) {
    pack(state, w, sni_cpu_kernels_get()->block);
}

float sni_conv_direct_weight(const void *state, int64_t out, int64_t in, int64_t tap) {
    const sni_direct_weights *d = state;
    int64_t block = sni_cpu_kernels_get()->block, in_blocks = sni_blocks(d->in, d->in_block);
    int64_t row = (out / block * in_blocks + in / d->in_block) * d->taps + tap;
    return d->panels[(row * d->in_block + in % d->in_block) * block + out % block];
}

void sni_conv_direct_end(void *state, float *bias, float *slopes) {
    sni_direct_weights *d = state;
    d->bias = bias;
    d->slopes = slopes;
}

static sn_status pack_floats(const sni_choice *c, sni_direct_weights *d, sn_error *err) {
    const sni_unaligned_float *w;
    bool filled;
    SN_TRY(alloc_floats(c, d, &filled, err));
    if (filled) return SN_OK;
    SN_TRY(sni_cpu_unaligned(c, 1, &w, err));
    sni_conv_direct_pack(d, w);
    return SN_OK;
}

sn_status sni_conv_direct_prepare(const sni_choice *c, void **state, sn_error *err) {
    sni_conv_geometry g;
    bool plain;
    sni_blocked_geometry(c, &g, &plain);
    sni_direct_weights d = weights_of(&g, plain);
    if (sni_direct_is_half(c, &d))
        SN_TRY(sni_direct_pack_half(c, &d, err));
    else
        SN_TRY(pack_floats(c, &d, err));
    SN_TRY(sni_blocked_bias(c, &d.bias, err));
    SN_TRY(sni_blocked_slopes(c, &d.slopes, err));
    return sni_cpu_keep(&d, sizeof d, state, err);
}
