/* conv_direct_cut.c - direct convolution: what a call is like, and how its output is cut into
 * pieces that stay in the caches and that threads share. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/conv/direct/conv_direct.h"
#include "ops/core/compute.h"

#include <string.h>

enum {
    PIECE_MACS = 1 << 18, /* products that are worth a thread's while */
    NARROW = 64,          /* input channels up to which strips of large blocks take one */
    FEW = 12,             /* pixels that take no longer than fetching the weights */
    ROW_PIXELS = 48,      /* pixels for each thread from which all of them read all weights */
    LINE_TILES = 4,       /* tiles of a stretch of a line, at least */
    LINE_PARTS = 8        /* stretches of a long line: so many, or twice, ... */
};

/* True if so many items can be shared out almost evenly. */
static bool is_even(int64_t items, int64_t threads) {
    return sni_ceil_div(items, threads) * threads * 20 <= items * 21;
}

static sni_conv_step step_of(const sni_direct_job *j) {
    if (j->g.stride_w == 1) return j->plain ? SNI_CONV_PLAIN_1 : SNI_CONV_BLOCKED_1;
    if (j->g.stride_w == 2) return j->plain ? SNI_CONV_PLAIN_2 : SNI_CONV_BLOCKED_2;
    return SNI_CONV_ANY;
}

/* A small picture is copied with its padding: no tile has taps beside the picture then, and the
 * sums of all its rows stay in the first cache, which lets them take few weights at a time. */
enum { FRAME_W = 16, FRAME = 1 << 18, NEAR = 6144 /* floats: of weights that all rows take */ };

static int64_t frame_w(const sni_conv_geometry *g) {
    return (g->out_w - 1) * g->stride_w + g->kernel_w;
}

static bool is_framed(const sni_direct_job *j) {
    const sni_conv_geometry *g = &j->g;
    int64_t last = frame_w(g) - g->pad_left;
    return !j->plain && g->kernel_w > 1 && g->dilation_w == 1 && g->out_w <= FRAME_W &&
           g->out_h > 3 && (g->pad_left > 0 || last > g->in_w) &&
           g->in_h * frame_w(g) * j->in_blocks * j->block <= FRAME;
}

typedef struct frame_job {
    const sni_conv_geometry *g;
    const float *x;
    float *to;
    int64_t block, width, inside; /* columns of a row: all, and those that are copied */
} frame_job;

static void frame_rows(void *ctx, int64_t begin, int64_t end) {
    const frame_job *f = ctx;
    int64_t left = f->g->pad_left * f->block, inside = f->inside * f->block;
    int64_t line = f->width * f->block;
    for (int64_t i = begin; i < end; i++) {
        float *to = f->to + i * line;
        memset(to, 0, (size_t)left * sizeof *to);
        memcpy(to + left, f->x + i * f->g->in_w * f->block, (size_t)inside * sizeof *to);
        memset(to + left + inside, 0, (size_t)(line - left - inside) * sizeof *to);
    }
}

sn_status sni_direct_frame(sni_kernel *k, sni_direct_job *j) {
    sni_conv_geometry *g = &j->g;
    frame_job f = {.g = g, .x = j->x, .block = j->block, .width = frame_w(g)};
    int64_t blocks = (g->n - 1) * j->image_blocks + j->weights->groups * j->in_blocks;
    int64_t rows = blocks * g->in_h;
    void *buffer;
    if (g->pad_left > f.width) f.width = g->pad_left;
    f.inside = sni_min(g->in_w, f.width - g->pad_left);
    SN_TRY(sni_scratch_matrix(k, rows, f.width * j->block, sizeof(float), &buffer));
    f.to = buffer;
    sni_parallel_for(k->threads, rows, sni_cpu_grain(f.width * j->block), frame_rows, &f);
    j->x = f.to;
    g->in_w = f.width;
    g->pad_left = 0;
    return SN_OK;
}

/* ---- Dilated kernels ---- */

void sni_direct_trim(sni_direct_job *j) {
    sni_conv_geometry *g = &j->g;
    const sni_direct_weights *w = j->weights;
    int64_t tap = sni_blocks(w->in, w->in_block) * w->in_block * j->block;
    sni_stretch rows =
        sni_dilated_trim(g->in_h, g->out_h, g->stride_h, g->dilation_h, &g->kernel_h, &g->pad_top);
    sni_stretch columns =
        sni_dilated_trim(g->in_w, g->out_w, g->stride_w, g->dilation_w, &g->kernel_w, &g->pad_left);
    j->panels += (rows.from * w->kernel_w + columns.from) * tap;
}

/* Taps of all tiles of a row, which none of them has in part. */
static int64_t count_row_taps(const sni_direct_job *j) {
    const sni_conv_geometry *g = &j->g;
    int64_t taps = 0;
    for (int64_t from = 0, to; from < g->out_w; from = to) {
        to = sni_dilated_band(g, from, g->out_w);
        int64_t tiles = sni_ceil_div(to - from, j->kernels->pixels[j->width]);
        for (int64_t tap = 0; tap < g->kernel_w; tap++) {
            int64_t at = from * g->stride_w - g->pad_left + tap * g->dilation_w;
            if (at >= 0 && at < g->in_w) taps += tiles;
        }
    }
    return taps;
}

/* ---- Items ---- */

/* Cuts a picture of `pixels` (of `depth` input channels each) into spans that fit into the cache, a
 * multiple of `parts` of them where they are few. */
static void cut_flat(sni_direct_job *j, int64_t pixels, int64_t depth, int64_t cache,
                     int64_t parts) {
    int64_t most = j->kernels->pixels[j->width];
    int64_t each = sni_ceil_div(pixels, parts);
    int64_t spans = parts * sni_ceil_div(each * depth, cache);
    j->span = sni_ceil_div(pixels, spans < pixels ? spans : pixels);
    if (j->span > 8 * most) j->span = sni_ceil_div(j->span, most) * most;
    j->spans = sni_ceil_div(pixels, j->span);
    j->item_spans = 1;
}

/* Cuts a line into stretches whose input fits into the cache. Sums at its ends are added in an
 * order that depends on where tiles are, so that the number of threads has no say. */
static void cut_line(sni_direct_job *j, int64_t depth, int64_t cache) {
    const sni_conv_geometry *g = &j->g;
    int64_t most = j->kernels->pixels[j->width], fit = cache / (depth * g->stride_w);
    int64_t spans = sni_ceil_div(g->out_w, sni_max(fit, LINE_TILES * most));
    if (g->out_w >= LINE_PARTS * LINE_TILES * most)
        spans = sni_ceil_div(spans, LINE_PARTS) * LINE_PARTS;
    else if (g->out_w >= 2 * LINE_TILES * most)
        spans = sni_ceil_div(spans, 2) * 2;
    j->span = sni_ceil_div(g->out_w, spans);
    j->spans = sni_ceil_div(g->out_w, j->span);
    j->item_spans = 1;
}

/* Cuts rows into items whose input fits into the cache, a whole number of them for each part. */
static void cut_rows(sni_direct_job *j, int64_t depth, int64_t cache, int64_t parts) {
    const sni_conv_geometry *g = &j->g;
    int64_t each = sni_ceil_div(g->out_h, parts), fit = cache / (g->in_w * g->stride_h * depth);
    int64_t pieces = sni_ceil_div(each, fit < 1 ? 1 : fit);
    while (each % pieces) pieces++;
    j->span = g->out_w;
    j->spans = g->out_h;
    j->item_spans = each / pieces;
}

/* Where there are pixels enough, each thread takes its own stretch of the picture in every layer,
 * so that what it reads is what it has written. Else they share out the output channels, and with
 * them the weights; stretches of the picture only where tiles of channels do not come out even. */
static void cut_items(sni_direct_job *j, int threads) {
    const sni_conv_geometry *g = &j->g;
    int64_t cache = j->block == 16 ? 1 << 18 : 1 << 16; /* floats: half of the second level */
    int64_t taps = g->kernel_h * g->kernel_w, depth = j->in_blocks * j->weights->in_block;
    int64_t images = g->n * j->weights->groups, pixels = g->out_h * g->out_w;
    int64_t most = j->flat || j->line ? pixels : g->out_h;
    bool by_image = images % threads == 0;
    bool by_rows = pixels * g->n >= ROW_PIXELS * threads && (by_image || is_even(most, threads));
    j->tiles = sni_ceil_div(j->out_blocks, j->width);
    j->far = !j->plain && g->n * g->in_h * g->in_w * depth > cache;
    bool by_tiles = !by_rows && is_even(images * j->tiles, threads);
    int64_t parts = (by_rows && !by_image) || (!by_rows && !by_tiles) ? threads : 1;
    int64_t near = j->framed ? NEAR : cache;
    j->chunk = near / (j->width * j->block * j->weights->in_block * taps);
    if (j->chunk < 1) j->chunk = 1;
    j->chunk = sni_ceil_div(j->in_blocks, sni_ceil_div(j->in_blocks, j->chunk));
    if (j->flat)
        cut_flat(j, pixels, depth, cache, parts);
    else if (j->line)
        cut_line(j, depth, cache);
    else
        cut_rows(j, depth, cache, parts);
    while (!by_rows && threads > 1 && j->item_spans > 1 &&
           images * j->tiles * sni_ceil_div(j->spans, j->item_spans) < 4 * threads)
        j->item_spans = (j->item_spans + 1) / 2;
    j->item_rows = sni_ceil_div(j->spans, j->item_spans);
    j->outputs_first = !by_rows && (!by_tiles || j->out_blocks * j->block * depth * taps > cache);
    int64_t items = images * j->item_rows * j->tiles;
    int64_t out = j->out_blocks * j->block; /* a block takes as long however few it has */
    int64_t macs = sni_max(pixels, FEW) * images * j->weights->in * out * taps / items;
    j->grain = macs < PIECE_MACS ? sni_ceil_div(PIECE_MACS, macs + 1) : 1;
    int64_t shares = j->apart ? 4 * threads : threads; /* of work that differs from row to row */
    if ((by_rows || is_even(items, threads)) && j->grain < items / shares)
        j->grain = items / shares;
}

void sni_direct_cut(sni_direct_job *j, int threads) {
    sni_conv_geometry *g = &j->g;
    j->flat = sni_conv_is_flat(g);
    j->line = !j->flat && g->out_h == 1;
    j->pointwise = !j->plain && g->kernel_h == 1 && g->kernel_w == 1;
    j->in_blocks = sni_blocks(j->weights->in, j->weights->in_block);
    if (!j->image_blocks) j->image_blocks = j->weights->groups * j->in_blocks;
    j->out_blocks = sni_blocks(j->weights->out, j->block);
    j->step = step_of(j);
    j->framed = is_framed(j);
    j->apart = j->weights->apart && !j->pointwise;
    j->x_pixel = g->stride_w * (j->plain ? 1 : j->block);
    if (j->flat) {
        g->in_w *= g->in_h;
        g->out_w *= g->out_h;
        g->in_h = g->out_h = 1;
    }
    int64_t most = j->step < SNI_CONV_PLAIN_1 ? SNI_CONV_MOST_WIDTH : 2;
    j->width = sni_conv_width(j->kernels, j->out_blocks, g->out_w, most);
    if (j->framed && j->block == 16 && j->width > 2 && g->out_w > 5) j->width = 2;
    j->strips = j->flat && j->pointwise && j->weights->merged == 1;
    if (j->strips && j->block == 16 && j->weights->in <= NARROW) j->width = 1;
    j->ends_half = j->strips && sni_conv_ends_half(j->kernels, j->weights->out, j->block);
    if (j->ends_half && j->width > 1) j->width = j->out_blocks % 2 ? 2 : 1;
    if (j->apart) j->row_taps = count_row_taps(j);
    cut_items(j, threads);
}
