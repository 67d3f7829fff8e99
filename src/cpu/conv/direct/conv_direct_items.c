/* conv_direct_items.c - direct convolution: one item of the output, tile after tile or in strips,
 * and what is fetched meanwhile. */
#include "base/lengths.h"
#include "cpu/blocked/blocked_kernels.h"
#include "cpu/conv/direct/conv_direct.h"

#include <string.h>

enum { STRIP = 8 /* tiles of a strip: what they write stays in the first cache */ };

/* What stays the same for the tiles of an item and a chunk of input. */
typedef struct item {
    const sni_direct_job *job;
    int64_t image, group, first_out, width; /* output blocks of the group */
    int64_t first_in, in;                   /* input blocks */
    int64_t channel;                        /* the first one of an input block that is used */
    int64_t row, from_h;                    /* of the output; first row of the kernel used */
    int64_t strip;                          /* tiles that are run in one call; 0: one by one */
    int64_t below;       /* rows of input on to those that come next, if taps lie apart */
    const float *panels; /* weights from output block `panel` and input block `panel_in` on */
    int64_t panel, panel_in;
    const float *next;        /* the weights after these; NULL: none */
    uintptr_t fetch_step;     /* elements with each channel */
    int64_t fetched, segment; /* elements of a segment fetched so far, and all */
    int64_t fetched_segments; /* of an output block, or of a tap of it if those lie apart */
    sni_stretch fetch_rows;   /* of the kernel, if taps lie apart */
    sni_conv_tile tile;
    sni_conv_epilogue epilogue;
} item;

/* Where the next segment of weights to fetch lies; -1: all are fetched. */
static int64_t next_segment(const item *it) {
    const sni_conv_geometry *g = &it->job->g;
    const sni_conv_tile *t = &it->tile;
    int64_t taps = it->job->apart ? (it->fetch_rows.to - it->fetch_rows.from) * g->kernel_w : 1;
    int64_t out = it->fetched_segments / taps, tap = it->fetched_segments % taps;
    if (out >= it->width) return -1;
    if (!it->job->apart) return out * t->w_out;
    return out * t->w_out + (it->fetch_rows.from + tap / g->kernel_w) * t->w_row +
           tap % g->kernel_w * t->w_tap;
}

/* Has a tile of so many channels and taps fetch its share of the weights that come next. */
static void fetch_prefetch(item *it, int64_t steps) {
    sni_conv_tile *t = &it->tile;
    int64_t segment = it->next ? next_segment(it) : -1;
    if (segment < 0) {
        t->prefetch = (uintptr_t)t->w;
        t->prefetch_step = 0;
        return;
    }
    t->prefetch = (uintptr_t)(it->next + segment + it->fetched);
    t->prefetch_step = it->fetch_step * sizeof(float);
    it->fetched += steps * (int64_t)it->fetch_step;
    for (; it->fetched >= it->segment; it->fetched -= it->segment) it->fetched_segments++;
}

/* Has the first tile of output channels fetch input: that of the next pixels of a flat picture or a
 * line, or of the same pixels in the row below. Those that follow find it in the cache. */
static void fetch_input(item *it, int64_t pixels) {
    const sni_direct_job *j = it->job;
    const sni_conv_geometry *g = &j->g;
    sni_conv_tile *t = &it->tile;
    const int64_t size = sizeof(float);
    if (!j->far || it->first_out > 0) {
        t->x_prefetch = (uintptr_t)t->w;
        t->x_prefetch_step = t->x_prefetch_tap = t->x_prefetch_row = t->x_prefetch_block = 0;
        return;
    }
    int64_t below = j->apart ? it->below : g->stride_h;
    int64_t on = j->flat || j->line ? pixels * j->x_pixel : below * g->in_w * j->block;
    t->x_prefetch = (uintptr_t)t->x + (uintptr_t)(on * size);
    t->x_prefetch_step = (uintptr_t)((j->pointwise || j->apart ? j->x_pixel : j->block) * size);
    t->x_prefetch_tap =
        (uintptr_t)((j->pointwise || j->apart ? t->x_tap : j->block * j->block) * size);
    t->x_prefetch_row = (uintptr_t)(t->x_row * size);
    t->x_prefetch_block = (uintptr_t)(t->x_block * size);
}

/* Runs the tile with its input blocks in place of taps, taps in place of rows and rows in place of
 * input blocks: the weights of a tap over all input blocks lie side by side. */
static void run_transposed(const item *it, int64_t pixels) {
    const sni_direct_job *j = it->job;
    const sni_conv_tile *t = &it->tile;
    sni_conv_tile transposed = *t;
    transposed.blocks = t->rows;
    transposed.x_block = t->x_row;
    transposed.w_block = t->w_row;
    transposed.x_prefetch_block = t->x_prefetch_row;
    transposed.rows = t->taps;
    transposed.x_row = t->x_tap;
    transposed.w_row = t->w_tap;
    transposed.x_prefetch_row = t->x_prefetch_tap;
    transposed.taps = t->blocks;
    transposed.x_tap = t->x_block;
    transposed.w_tap = t->w_block;
    transposed.x_prefetch_tap = t->x_prefetch_block;
    j->kernels->tile[j->step][it->width][pixels](&transposed);
}

/* Runs the tile as it stands. Plain input has few weights, which are near. */
static void run_placed(item *it, int64_t pixels) {
    const sni_direct_job *j = it->job;
    sni_conv_tile *t = &it->tile;
    if (!j->plain) {
        int64_t steps = t->blocks * t->channels * t->rows * t->taps;
        fetch_prefetch(it, steps * sni_max(it->strip, 1));
        fetch_input(it, pixels);
    }
    bool half = j->ends_half && it->width == 1 && it->first_out == j->out_blocks - 1;
    if (it->strip)
        (half ? j->kernels->strips->half
              : j->kernels->strips->strip[0][it->width])[pixels](t, it->strip);
    else if (j->apart)
        run_transposed(it, pixels);
    else
        j->kernels->tile[j->step][it->width][pixels](t);
}

/* Moves the tile `pixels` on, along its row. */
static void move_tile(item *it, int64_t pixels) {
    const sni_direct_job *j = it->job;
    if (it->tile.rows > 0) it->tile.x += pixels * j->x_pixel;
    it->tile.y += pixels * j->block;
    if (it->epilogue.residual) it->epilogue.residual += pixels * j->block;
}

/* So many taps of so many pixels of the tile that starts at output column `column`. */
static void run_taps(item *it, int64_t column, sni_stretch taps, sni_stretch pixels, bool add,
                     bool finish) {
    const int64_t from = taps.from, to = taps.to, lo = pixels.from;
    const sni_direct_job *j = it->job;
    const sni_conv_geometry *g = &j->g;
    sni_conv_tile *t = &it->tile;
    int64_t row = it->row * g->stride_h - g->pad_top + it->from_h * g->dilation_h;
    int64_t at = (column + lo) * g->stride_w - g->pad_left + from * g->dilation_w;
    int64_t w = it->from_h * t->w_row + from * (j->plain ? j->block : t->w_tap);
    bool none = from >= to || t->rows == 0;
    int64_t channel = it->first_in + it->image * j->image_blocks + it->group * j->in_blocks;
    int64_t out = (it->image * j->weights->groups + it->group) * j->out_blocks + it->first_out;
    int64_t y = ((out * g->out_h + it->row) * g->out_w + column + lo) * j->block;
    int64_t scale = j->plain ? 1 : j->block;
    t->x = none ? j->x : j->x + ((channel * g->in_h + row) * g->in_w + at) * scale + it->channel;
    t->w = it->panels + (it->group * j->out_blocks + it->first_out - it->panel) * t->w_out +
           (it->first_in - it->panel_in) * t->w_block + it->channel * j->block + (none ? 0 : w);
    t->y = j->y + y;
    t->taps = none ? 0 : to - from;
    if (j->pointwise) t->taps = none ? 0 : it->in;
    if (j->plain) {
        bool along = g->dilation_w == 1;
        t->channels = t->last = along ? t->taps : 1;
        t->taps = none ? 0 : along ? 1 : to - from;
    }
    t->add = add;
    t->finish = finish;
    it->epilogue.residual = j->epilogue.residual ? j->epilogue.residual + y : NULL;
    run_placed(it, pixels.to - lo);
}

/* Zeros where the sums of a tile will be. */
static void clear_tile(const item *it, int64_t column, int64_t pixels) {
    const sni_direct_job *j = it->job;
    int64_t out = (it->image * j->weights->groups + it->group) * j->out_blocks + it->first_out;
    for (int64_t b = 0; b < it->width; b++) {
        float *y = j->y + (((out + b) * j->g.out_h + it->row) * j->g.out_w + column) * j->block;
        for (int64_t i = 0; i < pixels * j->block; i++) y[i] = 0;
    }
}

/* A tile: first the taps that some of its pixels have in the padding, each over those that have
 * not, then all others at once. */
static void sum_tile(item *it, int64_t column, int64_t pixels, bool first, bool last) {
    const sni_conv_geometry *g = &it->job->g;
    int64_t whole_from = -1, whole_to = -1;
    bool partial = false;
    int64_t start = column * g->stride_w - g->pad_left, reach = (pixels - 1) * g->stride_w;
    for (int64_t tap = 0; tap < g->kernel_w; tap++) {
        int64_t at = start + tap * g->dilation_w;
        if (at >= 0 && at + reach < g->in_w) {
            if (whole_from < 0) whole_from = tap;
            whole_to = tap + 1;
            continue;
        }
        int64_t lo = at >= 0 ? 0 : sni_ceil_div(-at, g->stride_w);
        int64_t hi = at >= g->in_w ? 0 : sni_min(pixels, sni_ceil_div(g->in_w - at, g->stride_w));
        if (lo >= hi) continue;
        if (!partial && first) clear_tile(it, column, pixels);
        partial = true;
        run_taps(it, column, (sni_stretch){tap, tap + 1}, (sni_stretch){lo, hi}, true, false);
    }
    if (whole_from < 0) whole_from = whole_to = 0;
    run_taps(it, column, (sni_stretch){whole_from, whole_to}, (sni_stretch){0, pixels},
             partial || !first, last);
}

/* A tile of merged groups one by one: each group's channels give sums in y, of which the outputs of
 * that group are kept aside until all are there. */
static void run_apart(item *it, int64_t column, int64_t pixels) {
    const sni_direct_job *j = it->job;
    const sni_direct_weights *w = j->weights;
    int64_t in = w->in / w->merged, out = w->out / w->merged, block = j->block;
    int64_t begin = it->first_out * block, end = begin + it->width * block;
    float kept[SNI_CONV_MOST_WIDTH * SNI_CONV_MOST_PIXELS * SNI_MOST_BLOCK];
    const sni_conv_tile *t = &it->tile;
    it->tile.unclear = NULL;
    it->tile.channels = it->tile.last = in;
    for (int64_t o = begin; o < end; o++) {
        if (o == begin || o % out == 0) {
            it->channel = o / out * in;
            sum_tile(it, column, pixels, true, true);
        }
        int64_t b = (o - begin) / block, lane = o % block;
        for (int64_t p = 0; p < pixels; p++)
            kept[(b * pixels + p) * block + lane] = t->y[b * t->y_block + p * block + lane];
    }
    for (int64_t b = 0; b < it->width; b++)
        memcpy(t->y + b * t->y_block, kept + b * pixels * block,
               (size_t)(pixels * block) * sizeof *kept);
    it->channel = 0;
    it->tile.channels = it->tile.last = w->in;
}

static void run_tile(item *it, int64_t column, int64_t pixels, bool first, bool last) {
    bool unclear = false;
    it->tile.unclear = it->job->weights->merged > 1 ? &unclear : NULL;
    sum_tile(it, column, pixels, first, last);
    if (unclear) run_apart(it, column, pixels);
}

/* Columns of output all of whose taps are in the picture. */
typedef struct inner {
    int64_t from, to;
} inner;

static inner inner_columns(const sni_conv_geometry *g) {
    int64_t last = g->in_w - 1 + g->pad_left - (g->kernel_w - 1) * g->dilation_w;
    int64_t from = sni_min(sni_ceil_div(g->pad_left, g->stride_w), g->out_w);
    int64_t to = last < 0 ? 0 : sni_min(last / g->stride_w + 1, g->out_w);
    return (inner){.from = from, .to = sni_max(from, to)};
}

/* Pixels [from, to) of a flat picture, in tiles of nearly the same size. */
static void run_strips(item *it, int64_t from, int64_t to) {
    int64_t tiles = sni_ceil_div(to - from, it->job->kernels->pixels[it->width]);
    int64_t each = (to - from) / tiles, more = (to - from) % tiles;
    for (int64_t i = 0; i < tiles; i += it->strip) {
        int64_t pixels = each + (i < more);
        it->strip = sni_min((i < more ? more : tiles) - i, STRIP);
        run_taps(it, from, (sni_stretch){0, 1}, (sni_stretch){0, pixels}, false, true);
        from += it->strip * pixels;
    }
    it->strip = 0;
}

/* Columns [from, to) of a row, in tiles of nearly the same size. */
static void run_columns(item *it, int64_t from, int64_t to, inner in, bool first, bool last) {
    const sni_direct_job *j = it->job;
    if (from >= to) return;
    if (j->strips && first && last) {
        run_strips(it, from, to);
        return;
    }
    if (j->weights->merged > 1) in.to = in.from; /* tiles that are looked through one by one */
    int64_t tiles = sni_ceil_div(to - from, j->kernels->pixels[it->width]);
    int64_t each = (to - from) / tiles, more = (to - from) % tiles, placed = 0;
    for (int64_t pixels; from < to; from += pixels) {
        pixels = each + (more-- > 0);
        if (from < in.from || from + pixels > in.to) {
            run_tile(it, from, pixels, first, last);
            placed = 0;
        } else if (placed) {
            move_tile(it, placed);
            run_placed(it, pixels);
            placed = pixels;
        } else {
            run_taps(it, from, (sni_stretch){0, j->g.kernel_w}, (sni_stretch){0, pixels}, !first,
                     last);
            placed = pixels;
        }
    }
}

static void run_span(item *it, int64_t span, bool first, bool last) {
    const sni_direct_job *j = it->job;
    const sni_conv_geometry *g = &j->g;
    bool along = j->flat || j->line;
    it->row = along ? 0 : j->apart ? sni_dilated_row(g, span) : span;
    if (j->apart && !along && j->far && it->first_out == 0) it->below = sni_dilated_below(g, span);
    int64_t column = along ? span * j->span : 0;
    int64_t width = sni_min(j->span, g->out_w - column);
    sni_stretch rows = sni_kernel_rows(g, it->row);
    it->from_h = rows.from;
    it->tile.rows = rows.to - rows.from;
    int64_t end = column + width;
    for (int64_t next; column < end; column = next) {
        next = j->apart ? sni_dilated_band(g, column, end) : end;
        run_columns(it, column, next, inner_columns(g), first, last);
    }
}

static void set_distances(item *it) {
    const sni_direct_job *j = it->job;
    const sni_conv_geometry *g = &j->g;
    int64_t in_block = j->weights->in_block, scale = j->plain ? 1 : j->block;
    sni_conv_tile *t = &it->tile;
    t->x_pixel = j->x_pixel;
    t->x_block = g->in_h * g->in_w * scale;
    t->x_row = g->in_w * g->dilation_h * scale;
    t->x_tap = g->dilation_w * scale;
    bool apart = j->weights->apart;
    t->w_tap = in_block * j->block * (apart ? j->in_blocks : 1);
    t->w_row = t->w_tap * j->weights->kernel_w;
    t->w_out = in_block * j->block * j->in_blocks * j->weights->taps;
    t->w_block = apart ? in_block * j->block : in_block * j->block * j->weights->taps;
    t->y_block = g->out_h * g->out_w * j->block;
    t->channels = t->last = in_block;
    if (j->pointwise) {
        t->x_tap = t->x_block;
        t->w_tap = t->w_block;
    }
    t->prefetch = t->x_prefetch = (uintptr_t)it->panels;
    t->epilogue = &it->epilogue;
}

/* Tiles that fetch weights, each as many as a tile with all taps; of kernels whose taps lie apart,
 * which rows of taps there are to fetch. */
static int64_t count_fetching(item *it, int64_t begin, int64_t end) {
    const sni_direct_job *j = it->job;
    it->fetch_rows = (sni_stretch){.to = 1};
    if (!j->apart) return (end - begin) * sni_ceil_div(j->span, j->kernels->pixels[it->width]);
    int64_t rows = 0, parts = j->line ? j->spans : 1; /* of a row */
    it->fetch_rows = (sni_stretch){.from = j->g.kernel_h};
    for (int64_t span = begin; span < end; span++) {
        sni_stretch some = sni_kernel_rows(&j->g, j->line ? 0 : sni_dilated_row(&j->g, span));
        rows += some.to - some.from;
        it->fetch_rows.from = sni_min(it->fetch_rows.from, some.from);
        it->fetch_rows.to = sni_max(it->fetch_rows.to, some.to);
    }
    int64_t used = (it->fetch_rows.to - it->fetch_rows.from) * j->g.kernel_w;
    return used > 0 ? rows * j->row_taps / (used * parts) : 0;
}

/* Sets out to fetch the weights from input block `first_in` on, of these output blocks or the
 * `next` ones, evenly over the tiles of spans [begin, end). */
static void plan_fetch(item *it, int64_t first_in, bool next, int64_t begin, int64_t end) {
    const sni_direct_job *j = it->job;
    int64_t out = it->first_out + (next ? it->width : 0);
    it->next = NULL;
    it->fetched = it->fetched_segments = 0;
    it->segment = it->in * it->tile.w_block;
    if (out + it->width > j->out_blocks || (j->factors && !next) || !j->panels) return;
    int64_t tiles = count_fetching(it, begin, end);
    if (tiles < 1) return;
    it->next = j->panels + (it->group * j->out_blocks + out) * it->tile.w_out +
               first_in * it->tile.w_block;
    int64_t step = sni_ceil_div(it->width * j->block, tiles);
    it->fetch_step = (uintptr_t)(step > 16 ? 16 : step);
}

/* The weights of an item times the factors of their channels, in `buffer`. */
static void scale_panels(item *it, float *buffer) {
    const sni_direct_job *j = it->job;
    int64_t rows = j->in_blocks * j->block, each = rows * j->block;
    const float *from = j->weights->panels + it->first_out * each;
    for (int64_t b = 0; b < it->width; b++)
        sni_cpu_kernels_get()->blocked->scale_rows(from + b * each, j->factors, buffer + b * each,
                                                   rows);
    it->panels = buffer;
    it->panel = it->first_out;
}

/* The weights of an item and the chunk of input that it has come to as floats, in `buffer`. */
static void widen_panels(item *it, float *buffer) {
    sni_direct_part part = {.first = it->group * it->job->out_blocks + it->first_out,
                            .width = it->width,
                            .first_in = it->first_in,
                            .chunk = it->in};
    sni_direct_widen(it->job, &part, buffer);
    it->panels = buffer;
    it->panel = part.first;
    it->panel_in = it->first_in;
    it->tile.w_out = it->in * it->tile.w_block;
}

static void run_item(const sni_direct_job *j, int64_t group, int64_t row, int64_t tile,
                     float *buffer) {
    item it = {.job = j,
               .panels = j->panels,
               .image = group / j->weights->groups,
               .group = group % j->weights->groups,
               .first_out = tile * j->width,
               .epilogue = j->epilogue};
    int64_t end = sni_min(j->spans, (row + 1) * j->item_spans);
    it.width = sni_min(j->width, j->out_blocks - it.first_out);
    int64_t channel = (it.group * j->out_blocks + it.first_out) * j->block;
    if (it.epilogue.bias) it.epilogue.bias += channel;
    if (it.epilogue.slopes) it.epilogue.slopes += channel;
    set_distances(&it);
    if (buffer && j->panels) scale_panels(&it, buffer);
    bool tails = !j->plain && !j->pointwise && !j->apart; /* a last block of fewer channels */
    int64_t whole = tails ? j->weights->in / j->block : j->in_blocks;
    for (int64_t b = 0, next; b < j->in_blocks; b = next) {
        next = b < whole ? sni_min(b + j->chunk, whole) : j->in_blocks;
        bool last = next == j->in_blocks;
        it.first_in = b;
        it.in = next - b;
        it.tile.blocks = j->pointwise ? 1 : it.in;
        if (!j->plain && last) it.tile.last = j->weights->in - (j->in_blocks - 1) * j->block;
        if (tails) it.tile.channels = it.tile.last;
        if (!j->panels) widen_panels(&it, buffer);
        plan_fetch(&it, last ? 0 : next, last, row * j->item_spans, end);
        for (int64_t span = row * j->item_spans; span < end; span++)
            run_span(&it, span, b == 0 && !j->onto, last);
    }
}

static void run_some(const sni_direct_job *j, int64_t begin, int64_t end, float *buffer) {
    int64_t each = j->item_rows * j->tiles;
    for (int64_t i = begin; i < end; i++) {
        int64_t at = i % each;
        if (j->outputs_first)
            run_item(j, i / each, at % j->item_rows, at / j->item_rows, buffer);
        else
            run_item(j, i / each, at / j->tiles, at % j->tiles, buffer);
    }
}

void sni_direct_items(void *ctx, int64_t begin, int64_t end) {
    run_some(ctx, begin, end, NULL);
}

void sni_direct_slots(void *ctx, int64_t begin, int64_t end) {
    const sni_direct_job *j = ctx;
    for (int64_t s = begin; s < end; s++)
        run_some(j, s * j->items / j->slots, (s + 1) * j->items / j->slots,
                 j->scaled + s * j->scaled_floats);
}
