/* qconv_nhwc.c - QLinearConvNhwc: convolutions of bytes with channels last, with the addition of a
 * residual. A tile reads its pixels where they lie; places outside the picture are those of a pixel
 * of padding. Where channels do not fill units, and on tiers whose units are words, the places are
 * in a copy of the input with its padding; the taps of a kernel row are then one run of elements.
 * Depthwise convolutions are qconv_nhwc_depthwise.c. */
#include "cpu/int8/qconv_nhwc.h"

#include "base/checked.h"
#include "base/lengths.h"
#include "base/threadpool.h"
#include "ops/core/compute.h"
#include "ops/core/tensor_util.h"

#include <stdlib.h>

enum {
    MOST_TILES = 64,      /* whose places are found together */
    MOST_PLACES = 4096,   /* of one row of tiles */
    SLACK = 64,           /* bytes that may be read behind a picture */
    SMALL_WORK = 1 << 16, /* multiply-accumulates that are not worth a second thread */
    LONG_TILES = 1 << 12  /* units of a tile after which a run asks whether to stop */
};

/* ---- Weights ---- */

static bool accepts(const sni_choice *c) {
    if (c->n_in <= SNI_NHWC_Y_ZERO || !sni_int_is_bytes(c, SNI_NHWC_X) ||
        !sni_int_is_bytes(c, SNI_NHWC_W) || !c->constants[SNI_NHWC_W])
        return false;
    const sni_tensor *w = &c->constants[SNI_NHWC_W]->tensor;
    return w->rank == 4 && w->count > 0 && sni_int_is_single(c, SNI_NHWC_X_SCALE) &&
           sni_int_is_single(c, SNI_NHWC_X_ZERO) && sni_int_is_single(c, SNI_NHWC_Y_SCALE) &&
           sni_int_is_single(c, SNI_NHWC_Y_ZERO) &&
           sni_int_is_constant(c, SNI_NHWC_W_SCALE, w->dims[0]) &&
           sni_int_is_constant(c, SNI_NHWC_W_ZERO, w->dims[0]);
}

typedef struct weight_view {
    const uint8_t *w; /* a group's first channel */
    uint8_t flip;
    int64_t in, taps, wide; /* channels, taps of each, those of a kernel row */
    int64_t run, depth;     /* elements of a tap of the product, rounded up to whole units */
} weight_view;

/* Element p of output channel i: by tap of the product, then by place in its run, which is a
 * channel or, where kernel rows are one run, a tap of the row and its channel. */
static int weight_at(const void *ctx, int64_t i, int64_t p) {
    const weight_view *v = ctx;
    int64_t at = p % v->depth, tap = p / v->depth * (v->run / v->in) + at / v->in;
    if (at >= v->run || tap >= v->taps) return 0;
    return (int8_t)(v->w[(i * v->in + at % v->in) * v->taps + tap] ^ v->flip);
}

static void sum_weights(sni_nhwc_conv *p, const sni_tensor *w) {
    uint8_t flip = sni_int_flip(w->dtype, true);
    const uint8_t *data = w->data;
    for (int64_t i = 0; i < p->w.n; i++) {
        p->w.sums[i] = 0;
        for (int64_t t = 0; t < p->w.k; t++) p->w.sums[i] += (int8_t)(data[i * p->w.k + t] ^ flip);
    }
}

static void fill_weights(sni_nhwc_conv *p, const sni_tensor *w) {
    weight_view v = {.flip = sni_int_flip(w->dtype, true),
                     .in = p->in,
                     .taps = p->w.k / p->in,
                     .wide = w->dims[3],
                     .run = p->run,
                     .depth = p->units * sni_nhwc_kernels_get()->group};
    sum_weights(p, w);
    if (p->depthwise) sni_nhwc_fill_depthwise(p, w);
    for (int64_t g = 0; g < p->groups && !p->depthwise; g++) {
        v.w = (const uint8_t *)w->data + g * p->out * p->w.k;
        sni_igemm_pack_b(p->out, p->w.units, weight_at, &v, p->w.panels + (size_t)g * p->w.size);
    }
}

/* How the product is made of taps: see sni_nhwc_conv. */
static void choose_units(sni_nhwc_conv *p, const sni_conv_params *params, const sni_tensor *w) {
    const sni_window_params *v = &params->window;
    int group = sni_nhwc_kernels_get()->group;
    bool joins = p->groups == 1 && (v->dilations.n < 2 || v->dilations.v[1] == 1);
    p->staged = group != 4 || p->in % group != 0;
    p->joined = p->staged && joins;
    p->run = p->joined ? p->in * w->dims[3] : p->in;
    p->taps = p->joined ? w->dims[2] : w->dims[2] * w->dims[3];
    p->units = sni_ceil_div(p->run, group);
    p->w.units = p->taps * p->units;
    p->w.size = sni_igemm_packed_b_size(p->out, p->w.units);
}

static sn_status prepare(const sni_choice *c, void **state, sn_error *err) {
    const sni_conv_params *params = c->params;
    const sni_tensor *w = &c->constants[SNI_NHWC_W]->tensor;
    bool filled;
    sni_nhwc_conv p = {.groups = params->group, .in = w->dims[1]};
    p.out = w->dims[0] / p.groups;
    p.w = (sni_int_weights){.n = w->dims[0], .k = sni_tensor_span(w, 1, 4)};
    p.depthwise = p.in == 1 && p.out == 1 && p.groups > 1 && p.w.k < SNI_INT_TAPS;
    if (p.depthwise)
        p.w.more = sni_nhwc_depthwise_size(p.w.n, w->dims + 2);
    else
        choose_units(&p, params, w);
    SN_TRY(sni_int_weights_alloc(c, SNI_NHWC_W, SNI_NHWC_W_ZERO, p.groups, &p.w, &filled, err));
    if (!filled) {
        SN_TRY(sni_cpu_weight(c, SNI_NHWC_W, &w, err));
        fill_weights(&p, w);
    }
    return sni_cpu_keep(&p, sizeof p, state, err);
}

/* ---- The staged input ---- */

typedef struct staging {
    const sni_nhwc_call *c;
    const sni_nhwc_kernels *kernels;
    int64_t height, width, channels; /* of a picture with its padding */
    uint8_t *bytes, *pad;            /* pad: a row of padding, before it is staged */
    size_t element;
} staging;

/* Rows [begin, end) of the copy, counted over all images. */
static void stage_rows(void *ctx, int64_t begin, int64_t end) {
    const staging *s = ctx;
    const sni_window *w = &s->c->window;
    uint8_t flip = sni_int_flip(s->c->x->dtype, false);
    int64_t left = sni_min(w->begin[1], s->width);
    int64_t inside = sni_min(s->width - left, w->in[1]), line = s->width * s->channels;
    for (int64_t i = begin; i < end; i++) {
        int64_t row = i % s->height - w->begin[0], image = i / s->height;
        uint8_t *to = s->bytes + (size_t)(i * line) * s->element;
        const uint8_t *from = s->c->x->data;
        bool is_inside = row >= 0 && row < w->in[0];
        if (!is_inside || inside < s->width) s->kernels->stage(s->pad, line, flip, to);
        if (!is_inside) continue;
        from += (image * w->in[0] + row) * w->in[1] * s->channels;
        s->kernels->stage(from, inside * s->channels, flip,
                          to + (size_t)(left * s->channels) * s->element);
    }
}

/* Bytes of the copy; false if the padding is out of proportion to the input. */
static bool measure(staging *s, size_t *bytes) {
    const sni_window *w = &s->c->window;
    int64_t line, count;
    if (!sni_mul_i64(w->out[0] - 1, w->stride[0], &s->height) ||
        !sni_mul_i64(w->out[1] - 1, w->stride[1], &s->width) ||
        !sni_add_i64(s->height, sni_window_extent(w, 0), &s->height) ||
        !sni_add_i64(s->width, sni_window_extent(w, 1), &s->width) ||
        !sni_mul_i64(s->width, s->channels, &line) || !sni_mul_i64(line, s->height, &count) ||
        !sni_mul_i64(count, s->c->x->dims[0], &count) || count >= (int64_t)1 << 32)
        return false;
    *bytes = (size_t)count * s->element + SLACK;
    return count / 8 < s->c->x->count + (1 << 16);
}

static sn_status stage(sni_kernel *k, sni_nhwc_call *c, bool *fits) {
    staging s = {.c = c, .kernels = sni_nhwc_kernels_get(), .channels = c->x->dims[3]};
    size_t bytes;
    s.element = (size_t)(4 / s.kernels->group);
    *fits = measure(&s, &bytes);
    if (!*fits) return SN_OK;
    s.bytes = sni_scratch(k, bytes);
    s.pad = s.bytes ? sni_scratch(k, (size_t)(s.width * s.channels)) : NULL;
    if (!s.pad) return k->err ? k->err->status : SN_NO_MEMORY;
    memset(s.pad, (uint8_t)c->x_zero, (size_t)(s.width * s.channels));
    memset(s.bytes + bytes - SLACK, 0, SLACK);
    int64_t rows = c->x->dims[0] * s.height;
    sni_parallel_for(k->threads, rows, 32768 / (s.width * s.channels) + 1, stage_rows, &s);
    c->from = s.bytes;
    c->height = s.height;
    c->width = s.width;
    c->pixel = s.channels * (int64_t)s.element;
    c->top = c->left = 0;
    return SN_OK;
}

/* ---- Places ---- */

/* Where the pixels of tiles [first, first + n) lie: (tile, tap, mr). */
typedef struct job {
    const sni_nhwc_call *c;
    const sni_nhwc_kernels *kernels;
    int64_t pixels, tiles, panels; /* in all; panels: of all groups */
    int64_t per_tile, longer;      /* pixels of a tile, tiles that have one more */
    int64_t group_panels;
    int64_t most;  /* tiles of a block */
    bool by_tiles; /* what threads share */
    bool dense;    /* output pixels are input pixels, in their order */
    int parts;
    const uint8_t **places; /* of each part */
    const int64_t *offsets; /* by tap */
    const sni_kernel *kernel;
} job;

static int64_t tile_pixel(const job *j, int64_t i) {
    return j->per_tile * i + sni_min(i, j->longer);
}

/* An output pixel. */
typedef struct pixel {
    int64_t image, row, col;
} pixel;

/* The places of one pixel for all taps, `mr` apart. */
static void place_pixel(const job *j, const pixel *p, const uint8_t **to) {
    const sni_nhwc_call *c = j->c;
    const sni_window *w = &c->window;
    const int mr = j->kernels->mr;
    int64_t across = c->p->joined ? 1 : w->kernel[1];
    int64_t top = p->row * w->stride[0] - c->top, left = p->col * w->stride[1] - c->left;
    for (int64_t h = 0; h < w->kernel[0]; h++) {
        int64_t r = top + h * w->dilation[0], x = left;
        int64_t line = (p->image * c->height + r) * c->width;
        bool inside = r >= 0 && r < c->height;
        for (int64_t v = 0; v < across; v++, to += mr, x += w->dilation[1]) {
            bool is = inside && x >= 0 && x < c->width;
            *to = is ? c->from + (line + x) * c->pixel : c->pad;
        }
    }
}

/* Bytes from a pixel's first tap to the others, where all are inside. */
static void find_offsets(const sni_nhwc_call *c, int64_t *to) {
    const sni_window *w = &c->window;
    int64_t across = c->p->joined ? 1 : w->kernel[1];
    for (int64_t h = 0; h < w->kernel[0]; h++)
        for (int64_t v = 0; v < across; v++)
            *to++ = (h * w->dilation[0] * c->width + v * w->dilation[1]) * c->pixel;
}

static void next_pixel(const sni_window *w, pixel *p) {
    if (++p->col < w->out[1]) return;
    p->col = 0;
    if (++p->row < w->out[0]) return;
    p->row = 0;
    p->image++;
}

/* The places of n pixels from *p on, all of whose taps are inside, and *p behind them; false, and
 * *p as it was, if some are not. */
static bool place_inside(const job *j, pixel *p, int64_t n, const uint8_t **to) {
    const sni_nhwc_call *c = j->c;
    const sni_window *w = &c->window;
    const int mr = j->kernels->mr;
    const int64_t lowest = c->height - sni_window_extent(w, 0);
    const int64_t last = c->width - sni_window_extent(w, 1), step = w->stride[1] * c->pixel;
    const uint8_t *first[SNI_INT_MR] = {NULL};
    pixel at = *p;
    for (int64_t i = 0; i < n; next_pixel(w, &at)) { /* a row of the picture */
        int64_t run = sni_min(n - i, w->out[1] - at.col);
        int64_t top = at.row * w->stride[0] - c->top, left = at.col * w->stride[1] - c->left;
        at.col += run - 1;
        if (top < 0 || left < 0 || top > lowest || at.col * w->stride[1] - c->left > last)
            return false;
        const uint8_t *from = c->from + ((at.image * c->height + top) * c->width + left) * c->pixel;
        for (int64_t end = i + run; i < end; i++, from += step) first[i] = from;
    }
    for (int64_t t = 0; t < c->p->taps; t++, to += mr)
        for (int i = 0; i < mr; i++) to[i] = i < n ? first[i] + j->offsets[t] : first[i];
    *p = at;
    return true;
}

/* The same where the kernel is one tap and output pixels are input pixels. */
static void place_dense(const job *j, int64_t first, int64_t n, const uint8_t **to) {
    const int mr = j->kernels->mr;
    for (int64_t i = first; i < first + n; i++, to += mr) {
        int64_t begin = tile_pixel(j, i), end = tile_pixel(j, i + 1);
        for (int64_t at = begin; at < end; at++) to[at - begin] = j->c->from + at * j->c->pixel;
    }
}

static void place_tiles(const job *j, int64_t first, int64_t n, const uint8_t **to) {
    if (j->dense) {
        place_dense(j, first, n, to);
        return;
    }
    const int mr = j->kernels->mr;
    const sni_window *w = &j->c->window;
    int64_t begin = tile_pixel(j, first), end;
    pixel p = {begin / w->out[1] / w->out[0], begin / w->out[1] % w->out[0], begin % w->out[1]};
    for (int64_t i = first; i < first + n; i++, to += mr * j->c->p->taps, begin = end) {
        end = tile_pixel(j, i + 1);
        if (place_inside(j, &p, end - begin, to)) continue;
        for (int64_t at = begin; at < end; at++, next_pixel(w, &p))
            place_pixel(j, &p, to + (at - begin));
    }
}

/* ---- Products ---- */

/* Tile i, whose places are given, by a panel of weights. */
static void run_tile(const job *j, int64_t i, int64_t panel, const uint8_t *const *places) {
    const sni_nhwc_call *c = j->c;
    const sni_nhwc_conv *p = c->p;
    const sni_nhwc_kernels *kernels = j->kernels;
    int64_t group = p->groups == 1 ? 0 : panel / j->group_panels;
    int64_t column = (panel - group * j->group_panels) * kernels->nr;
    int64_t first = tile_pixel(j, i), rows = tile_pixel(j, i + 1) - first;
    int64_t channel = group * p->out + column, at = first * p->w.n + channel;
    sni_nhwc_tile tile = {.x = places,
                          .shift = group * p->in * (4 / kernels->group),
                          .taps = p->taps,
                          .units = p->units,
                          .w = p->w.panels + (size_t)group * p->w.size +
                               (size_t)(column * p->w.units)};
    bool flips = !p->staged && c->x->dtype == SN_INT8;
    int64_t n = sni_min(kernels->nr, p->out - column);
    sni_nhwc_block block = {.how = &c->finish,
                            .n = n,
                            .add = c->adds + channel,
                            .scale = c->scales + channel,
                            .y = (uint8_t *)c->y->data + at,
                            .r = c->residual ? c->residual + at : NULL,
                            .step = p->w.n};
    kernels->tile[flips][n <= kernels->nr / 2][rows](&tile, &block);
}

/* A share of tiles by a share of panels, tiles in blocks: each panel meets all tiles of a block, so
 * that large weights are read from memory once for each block. */
static void run_share(const job *j, int64_t t0, int64_t t1, int64_t p0, int64_t p1,
                      const uint8_t **places) {
    const int64_t step = j->kernels->mr * j->c->p->taps;
    const bool is_long = j->c->p->w.units * (p1 - p0) > LONG_TILES;
    for (int64_t t = t0; t < t1; t += j->most) {
        int64_t n = sni_min(j->most, t1 - t);
        if ((is_long || t % MOST_TILES == 0) && sni_stopping(j->kernel)) return;
        place_tiles(j, t, n, places);
        for (int64_t p = p0; p < p1; p++)
            for (int64_t i = 0; i < n; i++) run_tile(j, t + i, p, places + i * step);
    }
}

static void run_parts(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    for (int64_t part = begin; part < end; part++) {
        int64_t all = j->by_tiles ? j->tiles : j->panels;
        int64_t from = part * all / j->parts, to = (part + 1) * all / j->parts;
        const uint8_t **places = j->places + part * j->most * j->c->p->taps * j->kernels->mr;
        run_share(j, j->by_tiles ? from : 0, j->by_tiles ? to : j->tiles, j->by_tiles ? 0 : from,
                  j->by_tiles ? j->panels : to, places);
    }
}

/* Threads share tiles, or panels where that divides the work more evenly. */
static void share(job *j, int threads) {
    const sni_nhwc_conv *p = j->c->p;
    int64_t parts = threads < 1 ? 1 : threads;
    double work = (double)j->pixels * (double)p->w.n * (double)p->w.units;
    if (work * j->kernels->group < SMALL_WORK) parts = 1;
    int64_t by_tiles = sni_ceil_div(j->tiles, sni_min(parts, j->tiles)) * j->panels;
    int64_t by_panels = sni_ceil_div(j->panels, sni_min(parts, j->panels)) * j->tiles;
    j->by_tiles = by_tiles <= by_panels;
    j->parts = (int)sni_min(parts, j->by_tiles ? j->tiles : j->panels);
}

static bool is_dense(const sni_nhwc_call *c) {
    const sni_window *w = &c->window;
    return c->p->taps == 1 && w->stride[0] == 1 && w->stride[1] == 1 && c->top == 0 &&
           c->left == 0 && w->out[0] == c->height && w->out[1] == c->width;
}

static sn_status run_products(sni_kernel *k, sni_nhwc_call *c) {
    const sni_nhwc_conv *p = c->p;
    job j = {.c = c,
             .kernels = sni_nhwc_kernels_get(),
             .pixels = c->y->count / p->w.n,
             .most = 1,
             .dense = is_dense(c),
             .kernel = k};
    void *places, *offsets;
    j.tiles = sni_ceil_div(j.pixels, j.kernels->mr);
    j.per_tile = j.pixels / j.tiles;
    j.longer = j.pixels % j.tiles;
    j.group_panels = sni_ceil_div(p->out, j.kernels->nr);
    j.panels = p->groups * j.group_panels;
    share(&j, k->threads);
    int64_t bytes = (j.by_tiles ? j.panels : sni_ceil_div(j.panels, j.parts)) * p->w.units *
                    j.kernels->nr * (int64_t)sizeof(int32_t);
    if (bytes > (int64_t)sni_cpu_cache(2) / 2)
        j.most = sni_max(1, sni_min(MOST_TILES, MOST_PLACES / p->taps));
    SN_TRY(
        sni_scratch_matrix(k, j.parts * j.most * j.kernels->mr, p->taps, sizeof(void *), &places));
    SN_TRY(sni_scratch_array(k, p->taps, sizeof(int64_t), &offsets));
    find_offsets(c, offsets);
    j.places = places;
    j.offsets = offsets;
    sni_parallel_for(j.parts, j.parts, 1, run_parts, &j);
    return sni_poll(k);
}

/* ---- The operator ---- */

/* A pixel of padding, all groups, and what a unit may read behind it. */
static sn_status place_padding(sni_kernel *k, sni_nhwc_call *c) {
    size_t bytes = (size_t)c->x->dims[3] + SLACK;
    uint8_t *pad = sni_scratch(k, bytes);
    if (!pad) return k->err ? k->err->status : SN_NO_MEMORY;
    memset(pad, (uint8_t)c->x_zero, bytes);
    c->pad = pad;
    return SN_OK;
}

static sn_status run(sni_kernel *k) {
    sni_nhwc_call c = {.p = k->state, .x = sni_in(k, SNI_NHWC_X), .y = sni_out(k, 0)};
    const sni_conv_params *params = k->params;
    const sni_tensor *w = sni_in(k, SNI_NHWC_W), *bias = sni_in(k, SNI_NHWC_BIAS);
    const sni_tensor *r = sni_in(k, SNI_NHWC_R);
    bool fits = true;
    void *adds, *scales;
    if (c.p->w.has_zero || (c.p->depthwise && r)) return k->node->op->ref(k);
    SN_TRY(sni_nhwc_window(k, &params->window, c.x, c.y, w->dims + 2, &c.window));
    SN_TRY(sni_scratch_array(k, c.p->w.n, sizeof(int32_t), &adds));
    SN_TRY(sni_scratch_array(k, c.p->w.n, sizeof(float), &scales));
    SN_TRY(sni_nhwc_finish_get(k, c.p->w.n, &c.finish, scales));
    if (c.y->count == 0) return SN_OK;
    if (c.x->count == 0) return k->node->op->ref(k);
    c.x_zero = sni_zero_of(sni_in(k, SNI_NHWC_X_ZERO));
    c.adds = adds;
    c.scales = scales;
    c.residual = r ? r->data : NULL;
    sni_int_corrections(&c.p->w, sni_int_moved(c.x_zero, c.x->dtype, false),
                        bias ? bias->data : NULL, adds);
    SN_TRY(place_padding(k, &c));
    if (c.p->depthwise) return sni_nhwc_run_depthwise(k, &c);
    c.from = c.x->data;
    c.height = c.window.in[0];
    c.width = c.window.in[1];
    c.pixel = c.x->dims[3];
    c.top = c.window.begin[0];
    c.left = c.window.begin[1];
    if (c.p->staged) SN_TRY(stage(k, &c, &fits));
    return fits ? run_products(k, &c) : k->node->op->ref(k);
}

const sni_impl sni_cpu_qlinear_conv_nhwc = {
    .name = "conv_nhwc_i8",
    .op = "QLinearConvNhwc",
    .domain = "ai.sinter",
    .accepts = accepts,
    .prepare = prepare,
    .release = free,
    .run = run,
};
