/* conv_phases.c - convolution of stride 2 over a plain picture of few channels, as a network begins
 * with, by Winograd's method: the pixels of even and odd rows and columns become four channels of a
 * picture half as high and wide, over which the convolution has stride 1 and half the taps. */
#include "base/threadpool.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/conv_costs.h"
#include "cpu/conv/winograd/winograd.h"
#include "cpu/conv/blocked.h"
#include "ops/core/compute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PHASES = 4 };

typedef struct phases_weights {
    sni_wino_variant variant;
    float *points, *bias, *slopes; /* the last two may be NULL */
} phases_weights;

/* 1 if taps begin in the middle of a pair of pixels: before an output's first tap lies another of
 * weight 0. */
static int64_t shift_of(int64_t pad) {
    return pad & 1;
}

static int64_t taps_of(int64_t kernel, int64_t pad) {
    return (kernel - 1 + shift_of(pad)) / 2 + 1;
}

/* The convolution over phases. Sizes and pads that are not known stay so. */
static sni_conv_geometry phases_of(const sni_conv_geometry *g) {
    sni_conv_geometry p = *g;
    p.in_channels = PHASES * g->in_channels;
    p.stride_h = p.stride_w = 1;
    p.kernel_h = taps_of(g->kernel_h, g->pad_top);
    p.kernel_w = taps_of(g->kernel_w, g->pad_left);
    p.pad_top = (g->pad_top + shift_of(g->pad_top)) / 2;
    p.pad_left = (g->pad_left + shift_of(g->pad_left)) / 2;
    if (g->in_h >= 0) p.in_h = (g->in_h + 1) / 2;
    if (g->in_w >= 0) p.in_w = (g->in_w + 1) / 2;
    return p;
}

bool sni_conv_phases_supports(const sni_choice *c) {
    sni_conv_geometry g;
    bool plain;
    return c->node->n_out == 1 && !sni_choice_given(c, 5) && sni_blocked_geometry(c, &g, &plain) &&
           plain && g.groups == 1 && g.stride_h == 2 && g.stride_w == 2 && g.dilation_h == 1 &&
           g.dilation_w == 1 && g.kernel_h >= 5 && g.kernel_h <= 7 && g.kernel_w >= 5 &&
           g.kernel_w <= 7;
}

/* A choice as it is, over phases, and by which variant. */
typedef struct phases_choice {
    sni_conv_geometry g, phases;
    sni_wino_variant variant;
} phases_choice;

/* INFINITY where direct sums over phases are quicker. */
static double choose(const sni_choice *c, const sni_costs *costs, phases_choice *out) {
    sni_conv_geometry *g = &out->g, *phases = &out->phases;
    bool plain;
    if (!sni_blocked_geometry(c, g, &plain) || g->pad_top < 0 || g->pad_left < 0 || g->n < 1 ||
        g->out_h < 1 || g->out_w < 1)
        return INFINITY;
    *phases = phases_of(g);
    double limit = sni_wino_part * sni_conv_direct_cost(phases, costs);
    if (!sni_wino_choose(phases, false, limit, costs, &out->variant)) return INFINITY;
    double copied =
        (double)g->n * (double)phases->in_channels * (double)(phases->in_h * phases->in_w);
    return sni_wino_cost(phases, &out->variant, costs) + copied;
}

double sni_conv_phases_cycles(const sni_choice *c, const sni_costs *costs) {
    phases_choice p;
    return choose(c, costs, &p);
}

static bool phases_choose(const sni_choice *c, phases_choice *out) {
    return choose(c, sni_costs_get(), out) < INFINITY;
}

/* Points along the axes, and where the taps begin. */
uint32_t sni_conv_phases_variant(const sni_choice *c) {
    phases_choice p;
    if (!phases_choose(c, &p)) return 0;
    return (uint32_t)(shift_of(p.g.pad_top) << 9 | shift_of(p.g.pad_left) << 8 |
                      p.variant.t_h << 4 | p.variant.t_w);
}

/* The taps of one channel of one filter, (kernel_h, kernel_w), to those of its four phases. */
static void split_taps(const sni_conv_geometry *g, const sni_conv_geometry *phases,
                       const sni_unaligned_float *w, float *to) {
    int64_t down = shift_of(g->pad_top), right = shift_of(g->pad_left);
    for (int64_t i = 0; i < g->kernel_h; i++)
        for (int64_t j = 0; j < g->kernel_w; j++) {
            int64_t h = i + down, v = j + right, phase = h % 2 * 2 + v % 2;
            to[(phase * phases->kernel_h + h / 2) * phases->kernel_w + v / 2] =
                w[i * g->kernel_w + j];
        }
}

static sn_status pack(const sni_choice *c, const phases_choice *p, float *points, sn_error *err) {
    const sni_conv_geometry *g = &p->g, *phases = &p->phases;
    const sni_unaligned_float *w;
    SN_TRY(sni_cpu_unaligned(c, 1, &w, err));
    int64_t filters = g->out_channels * g->in_channels, taps = g->kernel_h * g->kernel_w;
    int64_t split = PHASES * phases->kernel_h * phases->kernel_w;
    float *all = calloc((size_t)(filters * split), sizeof *all);
    if (!all) return sni_fail_memory(err);
    for (int64_t i = 0; i < filters; i++) split_taps(g, phases, w + i * taps, all + i * split);
    sni_wino_pack(phases, &p->variant, all, points, 0);
    free(all);
    return SN_OK;
}

sn_status sni_conv_phases_prepare(const sni_choice *c, void **state, sn_error *err) {
    phases_choice p;
    phases_weights made = {0};
    bool filled;
    if (!phases_choose(c, &p))
        return sni_fail(err, SN_INTERNAL, "no variant of Winograd convolution");
    made.variant = p.variant;
    SN_TRY(
        sni_cpu_floats(c, sni_wino_packed_size(&p.phases, &p.variant), &made.points, &filled, err));
    if (!filled) SN_TRY(pack(c, &p, made.points, err));
    SN_TRY(sni_blocked_bias(c, &made.bias, err));
    SN_TRY(sni_blocked_slopes(c, &made.slopes, err));
    return sni_cpu_keep(&made, sizeof made, state, err);
}

/* ---- Running ---- */

typedef struct split_job {
    const sni_conv_geometry *g, *phases;
    const float *x; /* (n, c, h, w) */
    float *to;      /* (n, blocks, h', w', block) */
    int64_t block, blocks;
} split_job;

/* Two neighbouring pixels of a row for each pixel of a row of phases. */
static void split_line(const float *x, int64_t width, float *to, int64_t block) {
    int64_t pairs = width / 2;
    for (int64_t i = 0; i < pairs; i++) memcpy(to + i * block, x + 2 * i, 2 * sizeof *to);
    if (width % 2) to[pairs * block] = x[width - 1];
}

/* Row `row` of one image's phases in block `b`, zeros where it has no channel or pixel. */
static void split_block(const split_job *j, int64_t image, int64_t row, int64_t b) {
    const sni_conv_geometry *g = j->g, *p = j->phases;
    float *to = j->to + ((image * j->blocks + b) * p->in_h + row) * p->in_w * j->block;
    bool whole = 2 * row + 1 < g->in_h && g->in_w % 2 == 0 && (b + 1) * j->block <= p->in_channels;
    if (!whole) memset(to, 0, (size_t)(p->in_w * j->block) * sizeof *to);
    for (int64_t lane = 0; lane < j->block; lane += 2) {
        int64_t channel = (b * j->block + lane) / PHASES, at = 2 * row + lane % PHASES / 2;
        if (channel >= g->in_channels || at >= g->in_h) continue;
        const float *x = j->x + ((image * g->in_channels + channel) * g->in_h + at) * g->in_w;
        split_line(x, g->in_w, to + lane, j->block);
    }
}

/* Rows [begin, end) of phases, counted over images. */
static void split_rows(void *ctx, int64_t begin, int64_t end) {
    const split_job *j = ctx;
    for (int64_t i = begin; i < end; i++)
        for (int64_t b = 0; b < j->blocks; b++)
            split_block(j, i / j->phases->in_h, i % j->phases->in_h, b);
}

sn_status sni_conv_phases_run(sni_kernel *k) {
    const phases_weights *w = k->state;
    sni_blocked_call call;
    void *buffer;
    if (sni_out(k, 0)->count == 0) return SN_OK;
    SN_TRY(sni_blocked_call_init(k, w->bias, w->slopes, &call));
    sni_conv_geometry p = phases_of(&call.geometry);
    split_job j = {
        .g = &call.geometry, .phases = &p, .x = call.x, .block = sni_cpu_kernels_get()->block};
    j.blocks = sni_blocks(p.in_channels, j.block);
    int64_t line = p.in_w * j.block;
    SN_TRY(sni_scratch_matrix(k, p.n * j.blocks * p.in_h, line, sizeof(float), &buffer));
    j.to = buffer;
    size_t count = sni_wino_scratch_size(&p, &w->variant, k->threads);
    float *scratch = sni_scratch(k, count * sizeof *scratch);
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_parallel_for(k->threads, p.n * p.in_h, sni_cpu_grain(j.blocks * line), split_rows, &j);
    sni_wino_run(&(sni_wino_call){.g = &p,
                                  .variant = &w->variant,
                                  .packed = w->points,
                                  .x = j.to,
                                  .y = call.y,
                                  .epilogue = call.epilogue,
                                  .threads = k->threads,
                                  .scratch = scratch,
                                  .scratch_floats = count});
    return SN_OK;
}
