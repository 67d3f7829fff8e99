/* winograd_cut.c - which variants of Winograd convolution there are, and how a run is cut into
 * blocks of tiles and shared by threads. */
#include "cpu/conv/winograd/winograd_parts.h"

#include "base/work_stealing.h"
#include "cpu/gemm/inner_product.h"
#include "cpu/conv/winograd/winograd_inner_product.h"

#include <math.h>

/* ---- Variants ---- */

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

bool sni_wino_takes_inner_product(const sni_conv_geometry *g) {
    enum { LEAST_OUT = 96, LEAST_IN = 64 }; /* channels that are worth looking at all rows */
    int64_t block = sni_cpu_kernels_get()->block;
    return sni_inner_product_is_quicker() && block == SNI_LEFT_STEPS &&
           g->in_channels % block == 0 && g->in_channels >= LEAST_IN &&
           g->out_channels >= LEAST_OUT;
}

/* ---- Blocks of tiles ---- */

static int64_t limit(int64_t v, int64_t least, int64_t most) {
    return v < least ? least : v > most ? most : v;
}

/* Sets the sizes of a block of at most `most` tiles with the sums of `together` pairs. */
static void cut_block(sni_wino_cut *c, const sni_cpu_kernels *k, int64_t most, int64_t together) {
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

double sni_wino_traffic(const sni_wino_cut *c, int64_t most, int64_t together) {
    double cache = (double)sni_cpu_cache(2) / sizeof(float);
    double block = sni_cpu_kernels_get()->block;
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
static void cut_tiles(sni_wino_cut *c, const sni_cpu_kernels *k, int64_t least) {
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
            double cost = sni_wino_traffic(c, most, together);
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
static void cut_taps(sni_wino_cut *c, const sni_cpu_kernels *k) {
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

sni_wino_cut sni_wino_cut_of(const sni_conv_geometry *g, const sni_wino_variant *f, int threads) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    sni_wino_cut c = {.tiles_h = sni_ceil_div(g->out_h, f->m_h),
                      .tiles_w = sni_ceil_div(g->out_w, f->m_w)};
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
    sni_wino_cut c = sni_wino_cut_of(g, variant, threads);
    size_t blocks = c.by_channels ? 1 : (size_t)c.parts;
    return blocks * c.v_size + (size_t)c.parts * c.m_size;
}
