/* depthwise.c - cutting and threads of depthwise convolution. */
#include "cpu/conv/depthwise/depthwise.h"

#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/blocked/blocked_kernels.h"

#include <math.h>
#include <string.h>

enum {
    PIECE = 1 << 13, /* products of blocks that are worth a thread's while */
    WARM = 4096,     /* outputs that are finished while they are near */
    ROW_PIXELS = 48, /* pixels for each thread from which on they share out rows */
    MOST_TAPS = 1024 /* of a window: larger ones are left to loops that can be stopped */
};

/* Input channels of a group, and output channels. */
static int64_t few_of(const sni_conv_geometry *g) {
    return g->in_channels / g->groups;
}

static int64_t shares_of(const sni_conv_geometry *g) {
    return g->out_channels / g->groups;
}

bool sni_depthwise_fits(const sni_conv_geometry *g) {
    int64_t few = few_of(g), shares = shares_of(g);
    return few > 0 && shares > 0 && few <= SNI_DEPTHWISE_FEW && g->groups * few == g->in_channels &&
           g->groups * shares == g->out_channels && g->kernel_h * g->kernel_w <= MOST_TAPS;
}

/* ---- Weights ---- */

size_t sni_depthwise_packed_size(const sni_conv_geometry *g) {
    int64_t block = sni_cpu_kernels_get()->block;
    return (size_t)(sni_blocks(g->out_channels, block) * block * g->kernel_h * g->kernel_w *
                    few_of(g));
}

void sni_depthwise_pack(const sni_conv_geometry *g, const float *w, float *to) {
    int64_t block = sni_cpu_kernels_get()->block, few = few_of(g);
    memset(to, 0, sni_depthwise_packed_size(g) * sizeof *to);
    for (int64_t c = 0; c < g->out_channels; c++)
        for (int64_t i = 0; i < few; i++)
            for (int64_t row = 0; row < g->kernel_h; row++, w += g->kernel_w) {
                int64_t at = ((c / block * g->kernel_h + row) * few + i) * g->kernel_w;
                for (int64_t tap = 0; tap < g->kernel_w; tap++)
                    to[(at + tap) * block + c % block] = w[tap];
            }
}

/* ---- One plane ---- */

/* What the kernels are told of an activation: bounds, or that it follows. */
typedef struct ending {
    float least, most;
    bool finish; /* an activation that the kernels have not got follows */
} ending;

static ending ending_of(const sni_conv_epilogue *e) {
    return (ending){.least = e->act == SNI_ACT_CLIP   ? e->p0
                             : e->act == SNI_ACT_RELU ? 0
                                                      : -INFINITY,
                    .most = e->act == SNI_ACT_CLIP ? e->p1 : INFINITY,
                    .finish =
                        e->act != SNI_ACT_NONE && e->act != SNI_ACT_RELU && e->act != SNI_ACT_CLIP};
}

void sni_depthwise_run_part(const sni_conv_geometry *g, const float *packed,
                            const sni_conv_epilogue *e, const sni_depthwise_part *part) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    const ending end_with = ending_of(e);
    const sni_epilogue after = {.act = e->act,
                                .p0 = e->p0,
                                .p1 = e->p1,
                                .slopes = e->slopes ? e->slopes + part->channels * k->block : NULL};
    sni_depthwise_rows r = {.x = part->x,
                            .x_first = part->x_first,
                            .in_h = g->in_h,
                            .in_w = g->in_w,
                            .x_line = g->in_w * k->block,
                            .y_line = g->out_w * k->block,
                            .left = -g->pad_left,
                            .pixels = g->out_w,
                            .rows = g->kernel_h,
                            .taps = g->kernel_w,
                            .stride_h = g->stride_h,
                            .stride_w = g->stride_w,
                            .dilation_h = g->dilation_h,
                            .dilation_w = g->dilation_w,
                            .few = few_of(g),
                            .shares = shares_of(g),
                            .channel = part->channels * k->block,
                            .channels = g->out_channels,
                            .x_block = g->in_h * g->in_w * k->block,
                            .w = packed +
                                 part->channels * g->kernel_h * few_of(g) * g->kernel_w * k->block,
                            .bias = e->bias ? e->bias + part->channels * k->block : NULL,
                            .least = end_with.least,
                            .most = end_with.most};
    bool near = end_with.finish || e->row_means;
    int64_t most = near ? sni_max(WARM / r.y_line, 1) : g->out_h;
    for (int64_t row = part->from; row < part->to; row += r.count) {
        r.count = sni_min(most, part->to - row);
        r.top = row * g->stride_h - g->pad_top;
        r.y = part->y + row * r.y_line;
        r.residual = e->residual ? e->residual + row * r.y_line : NULL;
        k->depthwise->rows(&r);
        if (end_with.finish) k->finish_row(&after, r.y, 0, NULL, NULL, r.count * r.y_line);
        for (int64_t i = 0; e->row_means && i < r.count; i++)
            k->blocked->mean(r.y + i * r.y_line, e->row_means + (row + i) * k->block, g->out_w);
    }
}

void sni_depthwise_means(const float *row_means, float *means, int64_t planes, int64_t rows) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    for (int64_t i = 0; i < planes; i++)
        k->blocked->mean(row_means + i * rows * k->block, means + i * k->block, rows);
}

/* ---- Threads ---- */

typedef struct job {
    const sni_conv_geometry *g;
    const float *packed, *x;
    float *y;
    const sni_conv_epilogue *e;
    int64_t block, blocks, parts; /* of output; a plane's parts: stretches of its rows */
} job;

/* The plane of input that the kernels are given for a block of output. */
static int64_t input_plane(const job *j, int64_t image, int64_t channels) {
    bool own = few_of(j->g) == 1 && shares_of(j->g) == 1;
    return image * sni_blocks(j->g->in_channels, j->block) + (own ? channels : 0);
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    const sni_conv_geometry *g = j->g;
    for (int64_t i = begin; i < end; i++) {
        int64_t image = i / j->blocks / j->parts, part = i / j->blocks % j->parts;
        int64_t plane = image * j->blocks + i % j->blocks;
        int64_t at = plane * g->out_h * g->out_w * j->block;
        sni_conv_epilogue e = *j->e;
        if (e.residual) e.residual += at;
        if (e.row_means) e.row_means += plane * g->out_h * j->block;
        int64_t from = input_plane(j, image, i % j->blocks);
        sni_depthwise_part p = {.x = j->x + from * g->in_h * g->in_w * j->block,
                                .channels = i % j->blocks,
                                .from = part * g->out_h / j->parts,
                                .to = (part + 1) * g->out_h / j->parts,
                                .y = j->y + at};
        sni_depthwise_run_part(g, j->packed, &e, &p);
    }
}

/* Threads take stretches of the picture or, where it is small, channels, as the convolutions before
 * and after do: what a thread reads is mostly what it has written. */
void sni_depthwise_run(const sni_conv_geometry *g, const float *packed, const float *x, float *y,
                       const sni_conv_epilogue *e, int threads) {
    job j = {.g = g, .packed = packed, .x = x, .y = y, .e = e, .parts = 1};
    if (threads <= 0) threads = sni_threads_available();
    j.block = sni_cpu_kernels_get()->block;
    j.blocks = sni_blocks(g->out_channels, j.block);
    bool large = g->n * g->out_h * g->out_w >= (int64_t)ROW_PIXELS * threads;
    if (g->n % threads != 0 && (large || j.blocks < threads)) j.parts = sni_min(threads, g->out_h);
    int64_t items = g->n * j.blocks * j.parts;
    int64_t work = g->out_h * g->out_w * g->kernel_h * g->kernel_w * few_of(g) / j.parts;
    int64_t grain = sni_max(items / threads, PIECE / sni_max(work, 1));
    sni_parallel_for(threads, items, sni_max(grain, 1), run_parts, &j);
}
