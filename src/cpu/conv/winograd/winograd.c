/* winograd.c - runs Winograd convolution: transforms, products and threads.
 *
 * What is said of channels holds for those of all phases where the stride is 2, phase after phase.
 *
 * Tiles are taken in blocks whose transformed input stays in the second-level cache. For each
 * block, transformed input is laid out V(point, tile group, channel block, tile, c), where a group
 * is what one product takes; weights are U(pair of output channel blocks, point, channel, 2 c) and
 * stream by once per block; sums are M(point, channel block, tile, c) for a few pairs at a time,
 * which are transformed back while they are still near.
 *
 * Threads take blocks of tiles, or, where there are few tiles and many weights, share each block:
 * first its channels of input, then its channels of output. Every element is computed in the same
 * order in either case. */
#include "cpu/conv/winograd/winograd.h"

#include "base/tensor.h"
#include "base/threadpool.h"
#include "base/work_stealing.h"
#include "cpu/conv/winograd/winograd_inner_product.h"
#include "cpu/conv/winograd/winograd_parts.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static int64_t clamp(int64_t v, int64_t min, int64_t max) {
    return v < min ? min : v > max ? max : v;
}

/* ---- One block of tiles ---- */

typedef struct job {
    const sni_conv_geometry *g;
    const sni_wino_variant *variant;
    const sni_cpu_kernels *kernels;
    const sni_wino_cut *c;
    const float *packed, *x;
    float *y;
    const sni_conv_epilogue *e;
    float least, most; /* what the output transform clamps to */
    bool finish;       /* an activation that it has not got follows */
    float *scratch;
    int64_t first, count; /* by_channels: the block of tiles */
    sni_stealing stealing;
} job;

static const float zeros[2 * SNI_WINO_STRIP * 16]; /* a row of a picture, every other column */

/* Where tile number `tile` (of all images) is. */
static void tile_place(const sni_wino_cut *c, int64_t tile, int64_t *image, int64_t *row,
                       int64_t *column) {
    *column = tile % c->tiles_w;
    *row = tile / c->tiles_w % c->tiles_h;
    *image = tile / c->tiles_w / c->tiles_h;
}

/* Columns, `stride` apart, that begin before `end`. */
static int64_t columns_before(int64_t end, int64_t stride) {
    return end > 0 ? sni_ceil_div(end, stride) : 0;
}

/* Transforms `s->tiles` tiles that lie side by side, from tile `tile` on, of one channel block. */
static void input_strip(const job *j, sni_wino_input *s, int64_t tile, int64_t channel_block) {
    const sni_conv_geometry *g = j->g;
    const sni_wino_variant *f = j->variant;
    int64_t image, row, column, block = j->kernels->block, blocks = j->c->in_blocks;
    int64_t phase = channel_block / blocks, stride = f->stride;
    tile_place(j->c, tile, &image, &row, &column);
    int64_t top = row * f->m_h * stride - g->pad_top, left = column * f->m_w * stride - g->pad_left;
    if (stride == 2) {
        top += sni_wino_phase_of(phase).down;
        left += sni_wino_phase_of(phase).across;
    }
    s->columns = (s->tiles - 1) * s->m_w + s->t_w;
    s->from = sni_min(columns_before(-left, stride), s->columns);
    s->to = clamp(columns_before(g->in_w - left, stride), s->from, s->columns);
    const float *plane =
        j->x + (image * blocks + channel_block % blocks) * g->in_h * g->in_w * block;
    for (int i = 0; i < s->t_h; i++) {
        int64_t at = top + i * stride;
        bool inside = at >= 0 && at < g->in_h && s->from < s->to;
        s->rows[i] = inside ? plane + (at * g->in_w + left + s->from * stride) * block : zeros;
    }
    j->kernels->wino->input(s);
}

/* Input channel blocks [from, to), of all phases, of tiles [first, first + count) to V. */
static void input_block(const job *j, int64_t first, int64_t count, int64_t from, int64_t to,
                        float *v) {
    const sni_wino_cut *c = j->c;
    int64_t block = j->kernels->block;
    sni_wino_input s = {.t_h = j->variant->t_h,
                        .t_w = j->variant->t_w,
                        .m_w = j->variant->m_w,
                        .column = j->variant->stride * block,
                        .step = c->v_step};
    int64_t fits = (SNI_WINO_STRIP - s.t_w) / s.m_w + 1;
    fits = sni_min(fits, SNI_WINO_TILES);
    for (int64_t tile = 0; tile < count; tile += s.tiles) {
        int64_t in_row = c->tiles_w - (first + tile) % c->tiles_w;
        s.tiles = (int)sni_min(sni_min(fits, in_row), count - tile);
        for (int64_t b = from; b < to; b++) {
            for (int i = 0; i < s.tiles; i++) {
                int64_t group = (tile + i) / c->rows, at = (tile + i) % c->rows;
                s.v[i] = v + group * c->v_group + b * c->v_block + at * block;
            }
            input_strip(j, &s, first + tile, b);
        }
    }
}

/* Points [from, to) of a block's V for products by pairs. */
static void pair_points(const job *j, int64_t count, int64_t from, int64_t to, float *v) {
    const sni_wino_cut *c = j->c;
    for (int64_t point = from; point < to; point++) {
        int64_t first, last, block = j->kernels->block;
        sni_wino_phases_at(j->variant, point, &first, &last);
        float *at = v + point * c->v_step + first * c->in_blocks * c->v_block;
        float *numbers = v + c->points * c->v_step + point * sni_wino_row_numbers(c->most);
        for (int64_t t = 0; t < count; t += c->rows, at += c->v_group)
            sni_wino_pair_rows(at, c->v_block, (last - first) * j->g->in_channels / block, t,
                               sni_min(c->rows, count - t), c->most, numbers);
    }
}

/* The weights of a pair at a point, which `before` channels of others come before, and how many
 * blocks it has. */
static const float *weights_of(const job *j, int64_t pair, int64_t before, int *nv) {
    const sni_wino_cut *c = j->c;
    int64_t block = j->kernels->block;
    *nv = (int)sni_min(2, c->out_blocks - 2 * pair);
    return j->packed + (pair * c->depth * 2 + before * *nv) * block;
}

/* A point of a pair of output channel blocks. */
typedef struct place {
    int64_t point, pair;
    int nv;
    int64_t phases;
    const float *u, *next; /* its weights, and those that come after them */
} place;

/* `rows` tiles from tile `first` on, whose rows begin at `a`; what is fetched meanwhile, `step`
 * floats with each channel; and where the products go. */
typedef struct tile_group {
    const float *a;
    int64_t first, rows;
    const float *next;
    int64_t step;
    float *to;
} tile_group;

static void multiply_group(const job *j, const place *p, const float *v, const tile_group *t) {
    const sni_wino_cut *c = j->c;
    int64_t block = j->kernels->block, line = 64 / sizeof(float), channels = j->g->in_channels;
    if (!c->inner_product) {
        j->kernels->wino->product((int)t->rows, p->nv, p->phases, channels, t->a, c->v_block, p->u,
                                  t->to, c->most * block, t->next, t->step,
                                  t->step > line ? line : 0);
        return;
    }
    int64_t numbers = c->points * c->v_step + p->point * sni_wino_row_numbers(c->most);
    sni_wino_multiply_inner_product(&(sni_wino_product){
        .nv = p->nv,
        .v = t->a,
        .v_block = c->v_block,
        .k = p->phases * channels,
        .first = t->first,
        .rows = t->rows,
        .most = c->most,
        .row_numbers = v + numbers,
        .column_numbers =
            j->packed + sni_wino_numbers_at(c->depth * c->out_blocks * block, j->variant, p->pair) +
            p->point * SNI_WINO_NUMBERS,
        .u = p->u,
        .to = t->to,
        .to_block = c->most * block,
        .next = t->next,
        .step = t->step});
}

/* All tiles at one point. While the weights are used the next ones are fetched, an even share
 * by each group of tiles: memory delivers no faster. */
static void multiply_point(const job *j, int64_t count, const place *p, const float *v,
                           const float *a, float *to) {
    const sni_wino_cut *c = j->c;
    int64_t block = j->kernels->block, groups = sni_ceil_div(count, c->rows);
    int64_t step = sni_ceil_div(p->nv * block, groups);
    tile_group t = {.a = a, .next = p->next, .step = step, .to = to};
    for (; t.first < count; t.first += c->rows) {
        t.rows = sni_min(c->rows, count - t.first);
        multiply_group(j, p, v, &t);
        t.a += c->v_group;
        t.to += c->rows * block;
        t.next += step * p->phases * j->g->in_channels;
    }
}

/* Channels that the points before one have. */
static int64_t channels_before(const job *j, int64_t point) {
    int64_t count = 0, first, last;
    if (j->variant->stride == 1) return point * j->g->in_channels;
    for (int64_t i = 0; i < point; i++) {
        sni_wino_phases_at(j->variant, i, &first, &last);
        count += last - first;
    }
    return count * j->g->in_channels;
}

/* Products of `pairs` pairs of output channel blocks from `pair` on, at one point. */
static void multiply(const job *j, int64_t count, int64_t point, int64_t pair, int64_t pairs,
                     const float *v, float *m) {
    const sni_wino_cut *c = j->c;
    int64_t block = j->kernels->block, before = channels_before(j, point), first, last;
    sni_wino_phases_at(j->variant, point, &first, &last);
    int64_t after = before + (last - first) * j->g->in_channels;
    const float *a = v + point * c->v_step + first * c->in_blocks * c->v_block;
    for (int64_t p = 0; p < pairs; p++) {
        bool wrap = p + 1 == pairs, end = wrap && point + 1 == c->points;
        int other;
        place at = {.point = point, .pair = pair + p, .phases = last - first};
        at.u = weights_of(j, pair + p, before, &at.nv);
        at.next = end    ? at.u
                  : wrap ? weights_of(j, pair, after, &other)
                         : weights_of(j, pair + p + 1, before, &other);
        multiply_point(j, count, &at, v, a, m + point * c->m_step + p * 2 * c->most * block);
    }
}

static void finish_tile(const job *j, const sni_wino_output *s, int64_t out_block) {
    int64_t block = j->kernels->block;
    sni_epilogue e = {.act = j->e->act,
                      .p0 = j->e->p0,
                      .p1 = j->e->p1,
                      .slopes = j->e->slopes ? j->e->slopes + out_block * block : NULL};
    for (int i = 0; i < s->rows; i++)
        j->kernels->finish_row(&e, s->y + i * s->row, 0, NULL, NULL, s->columns * block);
}

/* One block of output channels of all tiles from M. */
static void output_block(const job *j, int64_t first, int64_t count, int64_t out_block,
                         const float *m) {
    const sni_conv_geometry *g = j->g;
    const sni_wino_variant *f = j->variant;
    const sni_wino_cut *c = j->c;
    int64_t block = j->kernels->block;
    sni_wino_output s = {.t_h = f->t_h,
                         .t_w = f->t_w,
                         .m_h = f->m_h,
                         .m_w = f->m_w,
                         .step = c->m_step,
                         .least = j->least,
                         .most = j->most,
                         .bias = j->e->bias ? j->e->bias + out_block * block : NULL,
                         .row = g->out_w * block};
    for (int64_t t = 0; t < count; t++) {
        int64_t image, row, column;
        tile_place(c, first + t, &image, &row, &column);
        row *= f->m_h;
        column *= f->m_w;
        s.rows = (int)sni_min(f->m_h, g->out_h - row);
        s.columns = (int)sni_min(f->m_w, g->out_w - column);
        s.from = m + t * block;
        int64_t at =
            (((image * c->out_blocks + out_block) * g->out_h + row) * g->out_w + column) * block;
        s.y = j->y + at;
        s.residual = j->e->residual ? j->e->residual + at : NULL;
        j->kernels->wino->output(&s);
        if (j->finish) finish_tile(j, &s, out_block);
    }
}

/* What a part does with a block of tiles, in units that others help with. */
typedef enum step {
    INPUT,    /* a block of input channels to V, of one phase */
    PAIR,     /* V at a point for products by pairs */
    MULTIPLY, /* products at a point, of some pairs of output channel blocks, to M */
    OUTPUT    /* one of these blocks to the output */
} step;

typedef struct piece {
    step step;
    int64_t first, count; /* tiles */
    int64_t pair, pairs;
    float *v, *m;
} piece;

enum { POINTS = 4 }; /* of a unit of products */

static void run_unit(void *ctx, int part, const void *work, int64_t unit) {
    const job *j = ctx;
    const piece *p = work;
    (void)part;
    switch (p->step) {
    case INPUT:
        input_block(j, p->first, p->count, unit, unit + 1, p->v);
        break;
    case PAIR:
        pair_points(j, p->count, unit, unit + 1, p->v);
        break;
    case MULTIPLY:
        for (int64_t i = unit * POINTS; i < sni_min((unit + 1) * POINTS, j->c->points); i++)
            multiply(j, p->count, i, p->pair, p->pairs, p->v, p->m);
        break;
    case OUTPUT:
        output_block(j, p->first, p->count, 2 * p->pair + unit,
                     p->m + unit * j->c->most * j->kernels->block);
        break;
    }
}

static void run_step(job *j, int part, piece *p, step which, int64_t units) {
    p->step = which;
    sni_stealing_do(&j->stealing, part, p, units);
}

/* Pairs [from, to) of output channel blocks of a block of tiles. */
static void output_pairs(job *j, int part, piece *p, int64_t from, int64_t to) {
    const sni_wino_cut *c = j->c;
    for (p->pair = from; p->pair < to; p->pair += c->together) {
        p->pairs = sni_min(c->together, to - p->pair);
        run_step(j, part, p, MULTIPLY, sni_ceil_div(c->points, POINTS));
        run_step(j, part, p, OUTPUT, sni_min(2 * p->pairs, c->out_blocks - 2 * p->pair));
    }
}

/* ---- Weights that are transformed when they are used ---- */

enum { TAPS_BLOCKS = 2 }; /* blocks of input channels whose weights stay in the first cache */

/* The sums of one block of output channels over all tiles of a block. */
static void multiply_taps(const job *j, int64_t count, int64_t out_block, const float *v,
                          float *m) {
    const sni_wino_cut *c = j->c;
    int64_t block = j->kernels->block, channels = j->g->in_channels, row = 9 * block;
    int64_t groups = sni_ceil_div(count, c->rows);
    for (int64_t b = 0; b < c->in_blocks; b += TAPS_BLOCKS) {
        int64_t n = sni_min(TAPS_BLOCKS * block, channels - b * block);
        const float *w = j->packed + (out_block * channels + b * block) * row;
        bool end = out_block + 1 == c->out_blocks && b + TAPS_BLOCKS >= c->in_blocks;
        sni_wino_taps s = {.w = w,
                           .channels = n,
                           .v_block = c->v_block,
                           .m_step = c->m_step,
                           .add = b > 0,
                           .next = w,
                           .step = end ? 0 : sni_ceil_div(row, 12 * groups)};
        int64_t fetched = end ? 0 : n * row;
        for (int64_t group = 0; group < groups; group++) {
            s.v = v + group * c->v_group + b * c->v_block;
            s.m = m + group * c->rows * block;
            for (int i = 0; i < j->variant->t_h; i++) {
                s.next = w + fetched;
                j->kernels->wino->taps(i, &s);
                if (!end) fetched += 2 * s.step * n;
            }
        }
    }
}

/* Tiles that a group lacks are zeros. */
static void input_taps(const job *j, int64_t first, int64_t count, float *v) {
    const sni_wino_cut *c = j->c;
    int64_t groups = sni_ceil_div(count, c->rows);
    if (count % c->rows) memset(v + (groups - 1) * c->v_group, 0, (size_t)c->v_group * sizeof *v);
    input_block(j, first, count, 0, c->in_blocks, v);
    j->kernels->wino->taps_scale(v, groups * c->in_blocks);
}

static void run_taps(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    const sni_wino_cut *c = j->c;
    for (int64_t part = begin; part < end; part++) {
        float *v = j->scratch + (size_t)part * (c->v_size + c->m_size), *m = v + c->v_size;
        int64_t last = (part + 1) * c->out_blocks / c->parts;
        for (int64_t first = 0; first < c->tiles; first += c->most) {
            int64_t count = sni_min(c->most, c->tiles - first);
            input_taps(j, first, count, v);
            for (int64_t b = part * c->out_blocks / c->parts; b < last; b++) {
                multiply_taps(j, count, b, v, m);
                output_block(j, first, count, b, m);
            }
        }
    }
}

/* ---- Threads ---- */

static void run_blocks(void *ctx, int64_t begin, int64_t end) {
    job *j = ctx;
    const sni_wino_cut *c = j->c;
    int64_t blocks = sni_ceil_div(c->tiles, c->most);
    for (int part = (int)begin; part < (int)end; part++) {
        float *v = j->scratch + (size_t)part * (c->v_size + c->m_size);
        int64_t last = (part + 1) * blocks / c->parts;
        for (int64_t b = part * blocks / c->parts; b < last; b++) {
            piece p = {.first = b * c->most, .v = v, .m = v + c->v_size};
            p.count = sni_min(c->most, c->tiles - p.first);
            run_step(j, part, &p, INPUT, c->v_blocks);
            if (c->inner_product) run_step(j, part, &p, PAIR, c->points);
            output_pairs(j, part, &p, 0, c->pairs);
        }
        sni_stealing_help(&j->stealing, part);
    }
}

static void share_input(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    input_block(j, j->first, j->count, begin, end, j->scratch);
}

static void share_points(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    pair_points(j, j->count, begin, end, j->scratch);
}

static void share_output(void *ctx, int64_t begin, int64_t end) {
    job *j = ctx;
    const sni_wino_cut *c = j->c;
    for (int part = (int)begin; part < (int)end; part++) {
        piece p = {.first = j->first, .count = j->count, .v = j->scratch};
        p.m = j->scratch + c->v_size + (size_t)part * c->m_size;
        output_pairs(j, part, &p, part * c->pairs / c->parts, (part + 1) * c->pairs / c->parts);
        sni_stealing_help(&j->stealing, part);
    }
}

static void set_clamp(job *j) {
    const sni_conv_epilogue *e = j->e;
    j->least = -INFINITY;
    j->most = INFINITY;
    if (e->act == SNI_ACT_RELU) j->least = 0;
    if (e->act == SNI_ACT_CLIP) {
        j->least = e->p0;
        j->most = e->p1;
    }
    j->finish = e->act != SNI_ACT_NONE && e->act != SNI_ACT_RELU && e->act != SNI_ACT_CLIP;
}

/* What callers have to keep. */
static void check_call(const sni_wino_call *call) {
    size_t block = (size_t)sni_cpu_kernels_get()->block * sizeof(float);
    assert((uintptr_t)call->packed % block == 0 && (uintptr_t)call->x % block == 0);
    assert((uintptr_t)call->y % block == 0 && (uintptr_t)call->scratch % SNI_ALIGN == 0);
    assert(call->scratch_floats >= sni_wino_scratch_size(call->g, call->variant, call->threads));
    (void)block;
    (void)call;
}

void sni_wino_run(const sni_wino_call *call) {
    sni_wino_cut c = sni_wino_cut_of(call->g, call->variant, call->threads);
    job j;
    check_call(call);
    j.g = call->g;
    j.variant = call->variant;
    j.kernels = sni_cpu_kernels_get();
    j.c = &c;
    j.packed = call->packed;
    j.x = call->x;
    j.y = call->y;
    j.e = &call->epilogue;
    j.scratch = call->scratch;
    set_clamp(&j);
    if (!c.by_channels) {
        sni_stealing_init(&j.stealing, c.parts, run_unit, &j);
        sni_parallel_for(c.parts, c.parts, 1, call->variant->taps ? run_taps : run_blocks, &j);
        return;
    }
    for (j.first = 0; j.first < c.tiles; j.first += c.most) {
        j.count = sni_min(c.most, c.tiles - j.first);
        sni_stealing_init(&j.stealing, c.parts, run_unit, &j);
        sni_parallel_for(c.parts, c.v_blocks, 1, share_input, &j);
        if (c.inner_product) sni_parallel_for(c.parts, c.points, 1, share_points, &j);
        sni_parallel_for(c.parts, c.parts, 1, share_output, &j);
    }
}
