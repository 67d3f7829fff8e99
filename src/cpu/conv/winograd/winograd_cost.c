/* winograd_cost.c - what a convolution is expected to take directly and by each variant of
 * Winograd's method, in cycles of one thread, and the variant that is expected to be the quickest.
 */
#include "cpu/conv/winograd/winograd_parts.h"

#include "cpu/gemm/emulated.h"
#include "cpu/gemm/inner_product.h"

#include <math.h>

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

static double direct_cost(const sni_conv_geometry *g, const sni_cpu_kernels *k, bool inner_product,
                          bool emulated) {
    double outs = (double)(g->n * g->out_h * g->out_w * sni_blocks(g->out_channels, k->block));
    double taps = (double)(g->in_channels / g->groups * g->kernel_h * g->kernel_w);
    double weights = (double)g->out_channels * taps * sizeof(float);
    double rate = k->block == 16 ? 0.95 : 0.82; /* of the most that two units do */
    bool one = g->groups == 1 && g->in_channels % k->block == 0;
    int64_t pixels = g->out_h * g->out_w;
    if (inner_product && one && sni_inner_product_pays() &&
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
static double taps_cost(const sni_conv_geometry *g, const sni_cpu_kernels *k,
                        const sni_wino_cut *c) {
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
    sni_wino_cut c = sni_wino_cut_of(g, f, 1);
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
    double bytes = sni_wino_traffic(&c, c.most, c.together) * sizeof(float);
    double stream = stream_cost(k, weights, bytes > weights ? bytes - weights : 0);
    return 2000 + both(products / 0.9 + tiles * vector_cost(6 * in + 2.6 * out), stream);
}

enum { TAPS_PAY = 4 }; /* tiles up to which transformed weights come too late from memory */

bool sni_wino_choose(const sni_conv_geometry *g, bool inner_product, bool emulated,
                     sni_wino_variant *variant) {
    static const int points[] = {4, 6, 8, 10};
    sni_conv_geometry known = *g;
    if (known.n < 1) known.n = 1;
    if (known.in_h < 1 || known.in_w < 1 || known.out_h < 1 || known.out_w < 1)
        known.in_h = known.in_w = known.out_h = known.out_w = 40;
    double best = direct_cost(&known, sni_cpu_kernels_get(), inner_product, emulated) * 0.95;
    bool found = false;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        sni_wino_variant f;
        int t_h = g->kernel_h > 1 ? points[i] : 1, t_w = g->kernel_w > 1 ? points[i] : 1;
        if (!sni_wino_variant_of(g, t_h, t_w, &f)) continue;
        f.inner_product = inner_product && sni_wino_takes_inner_product(g);
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
