/* conv_expand.c - a pointwise convolution and the depthwise one after it, in blocked layout: of a
 * few output channel blocks some rows at a time are expanded into memory that stays in the cache,
 * and the depthwise convolution reads them there. */
#include "base/cpu.h"
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/conv/depthwise/depthwise.h"
#include "cpu/conv/blocked.h"

#include <stdlib.h>
#include <string.h>

enum { X, W, B, V, D }; /* inputs */

typedef struct expand_weights {
    int64_t in, out;    /* channels */
    float *panels;      /* (output blocks, input channels up to whole blocks, block) */
    float *taps;        /* of the depthwise convolution */
    float *bias, *more; /* of both, zeros up to whole blocks; NULL: none */
    sni_blocked_origins *origins;
} expand_weights;

/* The depthwise convolution as far as weights and parameters tell it. */
static bool expand_geometry(const sni_choice *c, sni_conv_geometry *g) {
    const sni_expand_params *p = c->params;
    sni_window w;
    const int64_t *v = c->constants[V]->tensor.dims;
    if (sni_window_init(&w, &p->fused.conv.window, 2, v + 2, NULL) != SN_OK) return false;
    *g = (sni_conv_geometry){.n = 1,
                             .in_channels = v[0],
                             .out_channels = v[0],
                             .groups = v[0],
                             .kernel_h = v[2],
                             .kernel_w = v[3]};
    return true;
}

static bool is_constant(const sni_choice *c, int i) {
    return !sni_choice_given(c, i) || c->constants[i];
}

static bool expand_accepts(const sni_choice *c) {
    const sni_expand_params *p = c->params;
    sni_conv_geometry g;
    sni_conv_epilogue e;
    return sni_choice_is(c, X, SN_FLOAT32) && sni_choice_rank(c, X) == 5 && c->n_in > V &&
           c->constants[W] && c->constants[V] && is_constant(c, B) && is_constant(c, D) &&
           c->constants[W]->tensor.count > 0 && c->constants[V]->tensor.count > 0 &&
           p->block == sni_cpu_kernels_get()->block &&
           sni_cpu_act(&p->fused.activation, &e.act, &e.p0, &e.p1) &&
           sni_cpu_act(&p->activation, &e.act, &e.p0, &e.p1) && expand_geometry(c, &g) &&
           p->fused.conv.group == g.in_channels && sni_depthwise_fits(&g);
}

/* ---- Weights ---- */

static sn_status pack_taps(const sni_choice *c, expand_weights *e, sn_error *err) {
    sni_conv_geometry g;
    const sni_tensor *v;
    bool filled;
    if (!expand_geometry(c, &g)) return sni_fail(err, SN_INTERNAL, "no window");
    SN_TRY(sni_cpu_floats(c, sni_depthwise_packed_size(&g), &e->taps, &filled, err));
    if (filled) return SN_OK;
    SN_TRY(sni_cpu_weight(c, V, &v, err));
    sni_depthwise_pack(&g, v->data, e->taps);
    return SN_OK;
}

static void expand_release(void *state) {
    expand_weights *e = state;
    free(e->origins);
    free(e);
}

static sn_status expand_prepare(const sni_choice *c, void **state, sn_error *err) {
    const sni_expand_params *p = c->params;
    expand_weights e = {.in = c->constants[W]->tensor.dims[1],
                        .out = c->constants[W]->tensor.dims[0]};
    SN_TRY(sni_blocked_pack_pointwise(c, W, &e.panels, err));
    SN_TRY(pack_taps(c, &e, err));
    SN_TRY(sni_blocked_bias_of(c, B, &e.bias, err));
    SN_TRY(sni_blocked_bias_of(c, D, &e.more, err));
    SN_TRY(sni_blocked_origins_new(&p->indirect, &e.origins, err));
    sn_status status = sni_cpu_keep(&e, sizeof e, state, err);
    if (status != SN_OK) free(e.origins);
    return status;
}

/* ---- How a call is cut ---- */

typedef struct expand_job {
    const expand_weights *w;
    const sni_cpu_kernels *kernels;
    sni_conv_geometry g; /* of the depthwise convolution */
    sni_conv_epilogue first, second;
    const float *x;
    const float **list; /* indirect channels, image after image; NULL: those of x */
    float *y, *scratch;
    int64_t block, in_blocks, out_blocks;
    int64_t width; /* output blocks that are expanded at once */
    int64_t lines; /* rows of a band of expanded ones, and their floats for all `width` blocks */
    size_t band;
    int64_t parts;                     /* threads' shares of an image: */
    bool by_rows;                      /* stretches of rows, or else channel blocks */
    sni_span prefetch[SNI_MOST_SPANS]; /* what the next step reads; it is fetched on the way */
    int n_prefetch;
} expand_job;

/* What is left for a part to fetch. */
typedef struct fetching {
    uintptr_t at[SNI_MOST_SPANS], end[SNI_MOST_SPANS];
    int next, count;
} fetching;

enum {
    LINE = 64,      /* bytes that come to the cache together */
    STRIP = 8,      /* tiles at once: what they write stays in the first cache */
    NARROW = 64,    /* input channels up to which large blocks are expanded one by one */
    BAND = 40960,   /* floats of a band of expanded rows, about */
    PIECE = 1 << 18 /* products that are worth a thread's while */
};

/* Rows of the input that one row of output sees, with those between the taps. */
static int64_t reach(const sni_conv_geometry *g) {
    return (g->kernel_h - 1) * g->dilation_h + 1;
}

/* Threads that take rows expand those at their borders twice, but find what they need later, and
 * what they need now, in their own caches. */
static void cut(expand_job *j, int threads) {
    const sni_conv_geometry *g = &j->g;
    const int *pixels = j->kernels->conv->pixels;
    j->block = j->kernels->block;
    j->in_blocks = sni_blocks(j->w->in, j->block);
    j->out_blocks = sni_blocks(j->w->out, j->block);
    /* With large blocks tiles of one have as many products as they need, and less at their ends,
     * but read the input more often. */
    int64_t most = j->block == 16 && j->w->in <= NARROW ? 1 : 2;
    j->width = 1;
    for (int64_t w = 2; w <= sni_min(most, j->out_blocks); w++)
        if (pixels[w]) j->width = w;
    int64_t line = j->width * g->in_w * j->block;
    j->lines = sni_min(sni_max(BAND / line, reach(g) + 3 * g->stride_h), g->in_h);
    j->lines = sni_max(j->lines, sni_min(reach(g), g->in_h));
    j->band = (size_t)(j->lines * line);
    bool whole = g->n % threads == 0;
    j->by_rows = !whole && g->in_h >= 14 * threads * sni_max((reach(g) - g->stride_h) / 2, 1);
    j->parts = whole ? 1 : sni_min(threads, j->by_rows ? g->out_h : j->out_blocks);
}

/* ---- Fetching ---- */

/* A part of a step fetches the same part of what the next step reads: its thread will mostly be the
 * one that reads it. No more than half of the second cache. */
static fetching start_fetching(const expand_job *j, int64_t part) {
    fetching f = {.count = j->n_prefetch};
    uintptr_t room = sni_cpu_cache(2) / 2;
    for (int i = 0; i < f.count; i++) {
        uintptr_t from = (uintptr_t)j->prefetch[i].data, all = j->prefetch[i].bytes;
        uintptr_t parts = (uintptr_t)j->parts, share = all / parts;
        if (share > room) share = room;
        f.at[i] = from + all / parts * (uintptr_t)part;
        f.end[i] = f.at[i] + share;
        room -= share;
    }
    return f;
}

/* Has a strip fetch a line with each channel of each tile, and in the end the next output blocks'
 * weights: an even share by each of the tiles, those of a strip from the i-th on. */
static void fetch_with(fetching *f, sni_conv_tile *t, int64_t channels, int64_t width, int64_t i,
                       int64_t tiles, int64_t some) {
    while (f->next < f->count && f->at[f->next] >= f->end[f->next]) f->next++;
    if (f->next < f->count) {
        t->prefetch = f->at[f->next];
        t->prefetch_step = LINE;
        f->at[f->next] += (uintptr_t)(some * channels) * LINE;
        return;
    }
    uintptr_t all = (uintptr_t)(width * t->w_out) * sizeof(float);
    t->prefetch_step = (all / (uintptr_t)channels + (uintptr_t)tiles - 1) / (uintptr_t)tiles;
    t->prefetch = (uintptr_t)t->w + all + (uintptr_t)(i * channels) * t->prefetch_step;
}

/* ---- Running ---- */

/* `width` output blocks from `first` on of image n, the band that a thread expands them in, and
 * what it fetches. */
typedef struct part {
    int64_t n, first, width;
    float *band;
    fetching *fetch;
} part;

/* Pixels [from, to), to a band that begins with pixel `start`. */
static void expand_pixels(const expand_job *j, const part *p, int64_t from, int64_t to,
                          int64_t start) {
    const sni_conv_kernels *k = j->kernels->conv;
    const int64_t n = p->n, first = p->first, width = p->width;
    int64_t block = j->block, plane = j->g.in_h * j->g.in_w * block;
    int64_t depth = j->in_blocks * block * block;
    sni_conv_epilogue e = j->first;
    sni_conv_tile t = {.w = j->w->panels + first * depth,
                       .blocks = 1,
                       .channels = j->list ? j->w->in : block,
                       .last = j->w->in - (j->in_blocks - 1) * block,
                       .rows = 1,
                       .taps = j->list ? 1 : j->in_blocks,
                       .x_pixel = block,
                       .x_tap = plane,
                       .w_out = depth,
                       .w_tap = block * block,
                       .y_block = j->lines * j->g.in_w * block,
                       .finish = true,
                       .epilogue = &e};
    const float *x = j->list ? NULL : j->x + n * j->in_blocks * plane;
    if (j->list) t.list = j->list + n * j->w->in;
    if (e.bias) e.bias += first * block;
    int64_t tiles = (to - from + k->pixels[width] - 1) / k->pixels[width];
    bool half = !j->list && width == 1 && first == j->out_blocks - 1 &&
                sni_conv_ends_half(k, j->w->out, block);
    const sni_conv_strip_fn *strip =
        half ? k->strips->half : k->strips->strip[j->list != NULL][width];
    int64_t least = (to - from) / tiles, larger = (to - from) % tiles;
    for (int64_t i = 0, at = from, some; i < tiles; i += some) {
        int64_t pixels = least + (i < larger);
        some = sni_min((i < larger ? larger : tiles) - i, STRIP);
        if (!j->list) t.x = x + at * block;
        t.x_at = at * block;
        t.y = p->band + (at - start) * block;
        fetch_with(p->fetch, &t, j->w->in, width, i, tiles, some);
        strip[pixels](&t, some);
        at += some * pixels;
    }
}

/* Moves expanded rows that are needed again to the front of the band. */
static void keep_rows(const expand_job *j, int64_t width, int64_t from, int64_t to, int64_t start,
                      float *band) {
    int64_t line = j->g.in_w * j->block;
    if (from >= to || from == start) return;
    for (int64_t b = 0; b < width; b++, band += j->lines * line)
        memmove(band, band + (from - start) * line, (size_t)((to - from) * line) * sizeof *band);
}

/* Rows of output [*from, ...) that a band of expanded rows from `start` on gives, `to` at most. */
static int64_t band_end(const expand_job *j, int64_t start, int64_t from, int64_t to) {
    const sni_conv_geometry *g = &j->g;
    int64_t most = (start + j->lines + g->pad_top - reach(g)) / g->stride_h + 1;
    if (start + j->lines >= g->in_h) most = to;
    return sni_min(sni_max(most, from + 1), to);
}

/* Rows [from, to) of the output. */
static void run_blocks(const expand_job *j, const part *p, int64_t from, int64_t to) {
    const sni_conv_geometry *g = &j->g;
    const int64_t n = p->n, first = p->first, width = p->width;
    int64_t out = g->out_h * g->out_w * j->block, have = 0, start = 0;
    for (int64_t row = from; row < to;) {
        int64_t top = sni_min(sni_max(row * g->stride_h - g->pad_top, 0), g->in_h);
        if (have > top)
            keep_rows(j, width, top, have, start, p->band);
        else
            have = top;
        start = top;
        int64_t end = band_end(j, start, row, to);
        int64_t need = (end - 1) * g->stride_h - g->pad_top + reach(g);
        need = sni_min(sni_max(need, have), g->in_h);
        if (need > have) expand_pixels(j, p, have * g->in_w, need * g->in_w, start * g->in_w);
        have = need;
        for (int64_t b = 0; b < width; b++) {
            sni_depthwise_part rows = {.x = p->band + b * j->lines * g->in_w * j->block,
                                       .x_first = start,
                                       .channels = first + b,
                                       .from = row,
                                       .to = end,
                                       .y = j->y + (n * j->out_blocks + first + b) * out};
            sni_conv_epilogue e = j->second;
            if (e.row_means) e.row_means += (n * j->out_blocks + first + b) * g->out_h * j->block;
            sni_depthwise_run_part(g, j->w->taps, &e, &rows);
        }
        row = end;
    }
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const expand_job *j = ctx;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = i / j->parts, nth = i % j->parts;
        int64_t rows = j->by_rows ? j->parts : 1, blocks = j->by_rows ? 1 : j->parts;
        int64_t row = j->by_rows ? nth : 0, some = j->by_rows ? 0 : nth;
        float *band = j->scratch + (size_t)i * j->band;
        fetching f = start_fetching(j, nth);
        int64_t last = (some + 1) * j->out_blocks / blocks;
        for (int64_t b = some * j->out_blocks / blocks; b < last; b += j->width)
            run_blocks(j, &(part){n, b, sni_min(j->width, last - b), band, &f},
                       row * j->g.out_h / rows, (row + 1) * j->g.out_h / rows);
    }
}

static sn_status expand_run(sni_kernel *k) {
    const sni_expand_params *p = k->params;
    const expand_weights *w = k->state;
    const sni_tensor *x = sni_in(k, X), *y = sni_out(k, 0);
    sni_blocked_extra extra;
    sni_window window;
    SN_TRY(sni_blocked_extra_init(k, &extra));
    if (y->count == 0) {
        sni_blocked_extra_done(&extra);
        return SN_OK;
    }
    SN_TRY(sni_blocked_window(k, &window, x, sni_in(k, V), y));
    expand_job j = {
        .w = w,
        .kernels = sni_cpu_kernels_get(),
        .g = {.n = x->dims[0], .in_channels = w->out, .out_channels = w->out, .groups = w->out},
        .first = {.bias = w->bias},
        .second = {.bias = w->more, .row_means = extra.rows},
        .x = x->data,
        .y = y->data};
    sni_blocked_set_window(&j.g, &window);
    sni_cpu_act(&p->activation, &j.first.act, &j.first.p0, &j.first.p1);
    sni_cpu_act(&p->fused.activation, &j.second.act, &j.second.p0, &j.second.p1);
    int threads = k->threads > 0 ? k->threads : sni_threads_available();
    cut(&j, threads);
    j.n_prefetch = sni_prefetch(k, j.prefetch);
    if (w->origins->count) SN_TRY(sni_blocked_list(k, w->origins, SNI_EXPAND_MORE, w->in, &j.list));
    int64_t items = j.g.n * j.parts;
    j.scratch = sni_scratch(k, (size_t)items * j.band * sizeof *j.scratch);
    if (!j.scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    int64_t work = j.g.in_h * j.g.in_w * w->in * j.out_blocks * j.block / j.parts;
    sni_parallel_for(threads, items, sni_max(items / threads, PIECE / sni_max(work, 1)), run_parts,
                     &j);
    sni_blocked_extra_done(&extra);
    return SN_OK;
}

const sni_impl sni_cpu_expand_depthwise = {
    .name = "expand_depthwise_f32",
    .op = "ExpandDepthwise",
    .domain = SNI_SINTER_DOMAIN,
    .accepts = expand_accepts,
    .prepare = expand_prepare,
    .release = expand_release,
    .packs = 1u << W | 1u << B | 1u << V | 1u << D,
    .run = expand_run,
};
