/* winograd.c - cutting and threads of Winograd convolution.
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

#include "base/work_stealing.h"
#include "base/threadpool.h"
#include "cpu/gemm/emulated.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/conv/winograd/winograd_inner_product.h"
#include "cpu/conv/winograd/winograd_parts.h"

#include <math.h>
#include <string.h>

/* ---- Forms ---- */

/* `taps` is 1 to 7, that of a phase 2 to 4. */
static bool axis_variant(int64_t taps, int points, int *t, int *m, int *r) {
    if (taps == 1 ? points != 1 : points != 4 && points != 6 && points != 8 && points != 10)
        return false;
    if (points <= taps && points > 1) return false;
    *t = points;
    *r = (int)taps;
    *m = points - (int)taps + 1;
    return true;
}

enum { STRIDED_POINTS = 6 }; /* most of a phase: 8 err by 1e-4 of the largest result */

/* Taps of a convolution of stride 1, or of a phase; 0: no variant has so many. */
static int64_t axis_taps(int64_t kernel, int64_t stride) {
    bool odd = kernel == 3 || kernel == 5 || kernel == 7;
    if (stride == 1) return odd || kernel == 1 || kernel == 2 || kernel == 4 ? kernel : 0;
    return stride == 2 && odd ? (kernel + 1) / 2 : 0;
}

bool sni_wino_variant_of(const sni_conv_geometry *g, int t_h, int t_w, sni_wino_variant *variant) {
    sni_wino_variant f = {.stride = (int)g->stride_h};
    int64_t taps_h = axis_taps(g->kernel_h, g->stride_h);
    int64_t taps_w = axis_taps(g->kernel_w, g->stride_w);
    if (g->groups != 1 || g->stride_h != g->stride_w || g->dilation_h != 1 || g->dilation_w != 1 ||
        !taps_h || !taps_w || (t_h == t_w && (t_h == 1 || t_h == SNI_WINO_POINTS)))
        return false;
    if (g->stride_h == 2 && (t_h > STRIDED_POINTS || t_w > STRIDED_POINTS)) return false;
    if (!axis_variant(taps_h, t_h, &f.t_h, &f.m_h, &f.r_h) ||
        !axis_variant(taps_w, t_w, &f.t_w, &f.m_w, &f.r_w))
        return false;
    *variant = f;
    return true;
}

bool sni_wino_variant_of_taps(const sni_conv_geometry *g, sni_wino_variant *variant) {
    if (g->kernel_h != 3 || g->kernel_w != 3 || g->stride_h != 1 ||
        !sni_wino_variant_of(g, 6, 6, variant))
        return false;
    variant->taps = true;
    return true;
}

bool sni_wino_can_pair(const sni_conv_geometry *g) {
    enum { LEAST_OUT = 96, LEAST_IN = 64 }; /* channels that are worth looking at all rows */
    int64_t block = sni_cpu_kernels_get()->block;
    return sni_inner_product_pays() && block == SNI_LEFT_STEPS && g->in_channels % block == 0 &&
           g->in_channels >= LEAST_IN && g->out_channels >= LEAST_OUT;
}

/* ---- How a run is cut ---- */

typedef struct cut {
    int64_t tiles_h, tiles_w, tiles; /* the last over all images */
    int64_t in_blocks, out_blocks, pairs, points;
    int64_t v_blocks;  /* blocks of channels of all phases */
    int64_t depth;     /* channels of all points */
    int64_t most;      /* tiles of a block */
    int64_t rows;      /* tiles of a group, */
    int64_t most_rows; /* at most */
    bool inner_product;
    int64_t together;       /* pairs of output channel blocks whose sums are kept at once */
    bool by_channels;       /* threads share a block of tiles */
    int parts;              /* threads */
    int64_t v_step, m_step; /* from point to point; not a multiple of a page */
    int64_t v_group;        /* from group to group of tiles, */
    int64_t v_block;        /* and from block to block of channels */
    size_t v_size, m_size;  /* floats of one block's V, one part's M */
} cut;

static int64_t limit(int64_t v, int64_t least, int64_t most) {
    return v < least ? least : v > most ? most : v;
}

/* Sets the sizes of a block of at most `most` tiles with the sums of `together` pairs. */
static void cut_block(cut *c, const sni_cpu_kernels *k, int64_t most, int64_t together) {
    int64_t block = k->block;
    c->most = most;
    int64_t groups = sni_ceil_div(most, c->most_rows);
    c->rows = sni_ceil_div(most, groups);
    groups = sni_ceil_div(most, c->rows);
    c->v_block = c->rows * block;
    c->v_group = c->v_blocks * c->v_block;
    c->v_step = groups * c->v_group + block;
    c->v_size = (size_t)(c->points * c->v_step);
    if (c->inner_product)
        c->v_size += (size_t)sni_round_up(c->points * sni_wino_row_numbers(most), block);
    c->together = together;
    c->m_step = c->together * 2 * most * block + block;
    c->m_size = (size_t)(c->points * c->m_step);
}

/* Floats that go through the level behind the second cache for blocks of `most` tiles with
 * `together` pairs at a time. */
static double traffic(const cut *c, const sni_cpu_kernels *k, int64_t most, int64_t together) {
    double cache = (double)sni_cpu_cache(2) / sizeof(float), block = k->block;
    double blocks = ceil((double)c->tiles / (double)most);
    double weights = (double)(c->depth * c->out_blocks) * block;
    double v = (double)(c->points * c->v_blocks * most) * block;
    double m = (double)(c->points * 2 * together * most) * block;
    double rounds = ceil((double)c->pairs / (double)together), sum = 0;
    if (weights > cache / 2 || c->tiles <= most) sum += weights;
    if (v + m > 0.7 * cache) sum += v * (1 + rounds) + 2 * m * rounds;
    return sum * blocks;
}

/* Tiles of a block: what fits the second cache, or more if the weights that then pass by less often
 * outweigh what spills. */
static void cut_tiles(cut *c, const sni_cpu_kernels *k, int64_t least) {
    int64_t cache = (int64_t)(sni_cpu_cache(2) / sizeof(float));
    int64_t tile = c->points * (c->v_blocks + 2) * k->block;
    int64_t fit = limit(cache * 6 / 10 / tile / c->most_rows, 1, 16) * c->most_rows;
    double best = -1;
    int64_t best_most = 0, best_together = 0;
    for (int64_t most = sni_min(fit, least);; most *= 2) {
        most = sni_min(most, least);
        int64_t few = limit(cache / 5 / (c->points * most * 2 * k->block), 1, c->pairs);
        for (int all = 0; all <= 1; all++) {
            int64_t together = all ? c->pairs : few;
            double cost = traffic(c, k, most, together);
            if (best >= 0 && cost >= 0.9 * best) continue;
            best = cost;
            best_most = most;
            best_together = together;
        }
        if (most == least || most >= 16 * fit) break;
    }
    cut_block(c, k, best_most, best_together);
}

enum { TAPS_MOST = 16 }; /* tiles that share weights which are transformed when they are used */

/* Blocks of few tiles, V(tile group, channel block, point, tile, c); threads share out the blocks
 * of output channels and each has the whole V. */
static void cut_taps(cut *c, const sni_cpu_kernels *k) {
    c->rows = k->wino->taps_tiles;
    int64_t groups = sni_ceil_div(sni_min(c->tiles, TAPS_MOST), c->rows);
    c->most = groups * c->rows;
    c->v_step = c->rows * k->block;
    c->v_block = c->points * c->v_step;
    c->v_group = c->in_blocks * c->v_block;
    c->v_size = (size_t)(groups * c->v_group);
    c->m_step = c->most * k->block;
    c->m_size = (size_t)(c->points * c->m_step);
    c->parts = (int)sni_min(c->parts, c->out_blocks);
}

/* Floats of weights that every thread may read, and tiles of a thread whose products take as long
 * as that. */
enum { NEAR_WEIGHTS = 1 << 21, NEAR_TILES = 16 };

static cut cut_of(const sni_conv_geometry *g, const sni_wino_variant *f, const sni_cpu_kernels *k,
                  int threads) {
    cut c = {.tiles_h = sni_ceil_div(g->out_h, f->m_h), .tiles_w = sni_ceil_div(g->out_w, f->m_w)};
    c.tiles = g->n * c.tiles_h * c.tiles_w;
    c.in_blocks = sni_blocks(g->in_channels, k->block);
    c.out_blocks = sni_blocks(g->out_channels, k->block);
    c.pairs = sni_ceil_div(c.out_blocks, 2);
    c.points = sni_wino_points(f);
    c.v_blocks = sni_wino_phases(f) * c.in_blocks;
    c.depth = sni_wino_depth(g, f);
    c.parts = threads < 1 ? 1 : (int)sni_min(threads, SNI_MAX_PARTS);
    c.inner_product = f->inner_product;
    c.most_rows =
        f->inner_product ? sni_min(k->wino->rows, sni_inner_product_most()) : k->wino->rows;
    if (f->taps) {
        cut_taps(&c, k);
        return c;
    }
    cut_tiles(&c, k, c.tiles);
    if (c.parts == 1) return c;
    int64_t cache = (int64_t)(sni_cpu_cache(2) / sizeof(float));
    int64_t weights = c.depth * c.out_blocks * k->block;
    int64_t share = sni_ceil_div(c.tiles, c.parts);
    bool far = weights > NEAR_WEIGHTS || (share < NEAR_TILES && weights > cache / 2);
    c.by_channels = share < c.most && far && c.pairs >= c.parts;
    if (c.by_channels) {
        cut_block(&c, k, c.most, sni_min(c.together, sni_ceil_div(c.pairs, c.parts)));
        return c;
    }
    c.parts = (int)sni_min(c.parts, c.tiles);
    int64_t blocks = sni_ceil_div(sni_ceil_div(c.tiles, c.most), c.parts) * c.parts;
    cut_block(&c, k, sni_ceil_div(c.tiles, sni_min(blocks, c.tiles)), c.together);
    return c;
}

size_t sni_wino_scratch_size(const sni_conv_geometry *g, const sni_wino_variant *variant,
                             int threads) {
    cut c = cut_of(g, variant, sni_cpu_kernels_get(), threads);
    size_t blocks = c.by_channels ? 1 : (size_t)c.parts;
    return blocks * c.v_size + (size_t)c.parts * c.m_size;
}

/* ---- What it costs ---- */

/* Cycles to bring in weights, which have left the second cache since the last run: a model's other
 * layers had theirs there in between. What a run reads again comes from less far away. */
static double stream_cost(const sni_cpu_kernels *k, double weights, double again) {
    bool slow = k->block == 16 && !sni_cpu_halves_vectors(); /* beside what they compute */
    return weights / (slow ? 3 : 6) + again / 8;
}

/* Cycles that so many instructions on vectors take, of which two begin at once. */
static double vector_cost(double count) {
    return sni_cpu_halves_vectors() ? count : count / 2;
}

/* Work and streams go on side by side, but not wholly. */
static double both(double work, double stream) {
    return work > stream ? work + 0.35 * stream : stream + 0.35 * work;
}

static double direct_cost(const sni_conv_geometry *g, const sni_cpu_kernels *k, bool pair,
                          bool emulated) {
    double outs = (double)(g->n * g->out_h * g->out_w * sni_blocks(g->out_channels, k->block));
    double taps = (double)(g->in_channels / g->groups * g->kernel_h * g->kernel_w);
    double weights = (double)g->out_channels * taps * sizeof(float);
    double rate = k->block == 16 ? 0.95 : 0.82; /* of the most that two units do */
    bool one = g->groups == 1 && g->in_channels % k->block == 0;
    int64_t pixels = g->out_h * g->out_w;
    if (pair && one && sni_inner_product_pays() &&
        sni_inner_product_suits(pixels, g->out_channels, (int64_t)taps))
        rate = 1.25; /* by pairs of terms */
    double work = vector_cost(outs * taps) / rate;
    if (emulated && one && sni_emulated_suits(pixels, g->out_channels, (int64_t)taps))
        work = sni_emulated_cost(g->n * pixels, g->out_channels, (int64_t)taps);
    /* Weights are not fetched ahead. */
    return both(work, 1.5 * stream_cost(k, weights, 0));
}

/* Products of a variant of taps: 4 rows of points need 4 additions for each of 3 taps and 6 points
 * more, 2 rows none for the taps. */
static double taps_cost(const sni_conv_geometry *g, const sni_cpu_kernels *k, const cut *c) {
    double each = vector_cost((double)(c->points * c->rows + 4 * 12 + 2 * 6)) / 0.85;
    double blocks = ceil((double)c->tiles / (double)c->most);
    double weights = 9.0 * (double)(g->in_channels * g->out_channels) * sizeof(float);
    return both(ceil((double)c->tiles / (double)c->rows) * each *
                    (double)(g->in_channels * c->out_blocks),
                stream_cost(k, weights, (blocks - 1) * weights));
}

double sni_wino_cost(const sni_conv_geometry *g, const sni_wino_variant *f) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    if (!f) return direct_cost(g, k, false, false);
    cut c = cut_of(g, f, k, 1);
    double tiles = (double)c.tiles, rows = (double)c.rows;
    /* Vectors that the transforms move. */
    double in = (double)f->t_h * (f->m_w + f->t_w) * (double)c.v_blocks;
    double out = ((double)(f->t_h + f->m_h) * f->t_w + (double)f->m_h * (f->t_w + f->m_w)) *
                 (double)c.out_blocks;
    if (f->taps) return 2000 + tiles * vector_cost(8 * in + 2.6 * out) + taps_cost(g, k, &c);
    /* A product of few rows waits for its sums and its weights. */
    double products =
        ceil(tiles / rows) * (rows < 5 ? 5 : rows) * vector_cost((double)(c.depth * c.out_blocks));
    if (f->inner_product) products = 0.74 * products + 6 * tiles * (double)(c.points * c.v_blocks);
    double weights = (double)(c.depth * c.out_blocks * k->block) * sizeof(float);
    double bytes = traffic(&c, k, c.most, c.together) * sizeof(float);
    double stream = stream_cost(k, weights, bytes > weights ? bytes - weights : 0);
    return 2000 + both(products / 0.9 + tiles * vector_cost(6 * in + 2.6 * out), stream);
}

enum { TAPS_PAY = 4 }; /* tiles up to which transformed weights come too late from memory */

bool sni_wino_choose(const sni_conv_geometry *g, bool pair, bool emulated,
                     sni_wino_variant *variant) {
    static const int points[] = {4, 6, 8, 10};
    sni_conv_geometry known = *g;
    if (known.n < 1) known.n = 1;
    if (known.in_h < 1 || known.in_w < 1 || known.out_h < 1 || known.out_w < 1)
        known.in_h = known.in_w = known.out_h = known.out_w = 40;
    double best = direct_cost(&known, sni_cpu_kernels_get(), pair, emulated) * 0.95;
    bool found = false;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        sni_wino_variant f;
        int t_h = g->kernel_h > 1 ? points[i] : 1, t_w = g->kernel_w > 1 ? points[i] : 1;
        if (!sni_wino_variant_of(g, t_h, t_w, &f)) continue;
        f.inner_product = pair && sni_wino_can_pair(g);
        double cost = sni_wino_cost(&known, &f);
        if (cost >= best * (found ? 0.92 : 1)) continue; /* more points round more */
        best = cost;
        *variant = f;
        found = true;
    }
    sni_wino_variant taps;
    if (!sni_wino_variant_of_taps(g, &taps)) return found;
    int64_t tiles =
        known.n * sni_ceil_div(known.out_h, taps.m_h) * sni_ceil_div(known.out_w, taps.m_w);
    if (tiles > TAPS_PAY || sni_wino_cost(&known, &taps) >= best) return found;
    *variant = taps;
    return true;
}

/* ---- One block of tiles ---- */

typedef struct job {
    const sni_conv_geometry *g;
    const sni_wino_variant *variant;
    const sni_cpu_kernels *kernels;
    const cut *c;
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
static void tile_place(const cut *c, int64_t tile, int64_t *image, int64_t *row, int64_t *column) {
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
    s->to = limit(columns_before(g->in_w - left, stride), s->from, s->columns);
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
    const cut *c = j->c;
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
    const cut *c = j->c;
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
    const cut *c = j->c;
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

/* A group of `rows` tiles from tile t on, whose rows begin at `a`. */
static void multiply_group(const job *j, const place *p, const float *v, const float *a, int64_t t,
                           int64_t rows, const float *next, int64_t step, float *to) {
    const cut *c = j->c;
    int64_t block = j->kernels->block, line = 64 / sizeof(float), channels = j->g->in_channels;
    if (!c->inner_product) {
        j->kernels->wino->product((int)rows, p->nv, p->phases, channels, a, c->v_block, p->u, to,
                                  c->most * block, next, step, step > line ? line : 0);
        return;
    }
    int64_t numbers = c->points * c->v_step + p->point * sni_wino_row_numbers(c->most);
    sni_wino_multiply_inner_product(&(sni_wino_product){
        .nv = p->nv,
        .v = a,
        .v_block = c->v_block,
        .k = p->phases * channels,
        .first = t,
        .rows = rows,
        .most = c->most,
        .row_numbers = v + numbers,
        .column_numbers =
            j->packed + sni_wino_numbers_at(c->depth * c->out_blocks * block, j->variant, p->pair) +
            p->point * SNI_WINO_NUMBERS,
        .u = p->u,
        .to = to,
        .to_block = c->most * block,
        .next = next,
        .step = step});
}

/* All tiles at one point. While the weights are used the next ones are fetched, an even share
 * by each group of tiles: memory delivers no faster. */
static void multiply_point(const job *j, int64_t count, const place *p, const float *v,
                           const float *a, float *to) {
    const cut *c = j->c;
    int64_t block = j->kernels->block, groups = sni_ceil_div(count, c->rows);
    int64_t step = sni_ceil_div(p->nv * block, groups);
    const float *next = p->next;
    for (int64_t t = 0; t < count; t += c->rows) {
        multiply_group(j, p, v, a, t, sni_min(c->rows, count - t), next, step, to);
        a += c->v_group;
        to += c->rows * block;
        next += step * p->phases * j->g->in_channels;
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
    const cut *c = j->c;
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
    const cut *c = j->c;
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
    const cut *c = j->c;
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
    const cut *c = j->c;
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
    const cut *c = j->c;
    int64_t groups = sni_ceil_div(count, c->rows);
    if (count % c->rows) memset(v + (groups - 1) * c->v_group, 0, (size_t)c->v_group * sizeof *v);
    input_block(j, first, count, 0, c->in_blocks, v);
    j->kernels->wino->taps_scale(v, groups * c->in_blocks);
}

static void run_taps(void *ctx, int64_t begin, int64_t end) {
    const job *j = ctx;
    const cut *c = j->c;
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
    const cut *c = j->c;
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
    const cut *c = j->c;
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

void sni_wino_run(const sni_conv_geometry *g, const sni_wino_variant *variant, const float *packed,
                  const float *x, float *y, const sni_conv_epilogue *e, int threads,
                  float *scratch) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    cut c = cut_of(g, variant, k, threads);
    job j;
    j.g = g;
    j.variant = variant;
    j.kernels = k;
    j.c = &c;
    j.packed = packed;
    j.x = x;
    j.y = y;
    j.e = e;
    j.scratch = scratch;
    set_clamp(&j);
    if (!c.by_channels) {
        sni_stealing_init(&j.stealing, c.parts, run_unit, &j);
        sni_parallel_for(c.parts, c.parts, 1, variant->taps ? run_taps : run_blocks, &j);
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
