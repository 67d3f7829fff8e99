/* winograd_cost.c - what variants of Winograd's method are expected to take, and the one that is
 * expected to be the quickest. */
#include "cpu/conv/conv_costs.h"
#include "cpu/conv/winograd/winograd_parts.h"

#include <math.h>

enum {
    START = 2000,    /* cycles before and after the blocks of tiles */
    WAITING_ROWS = 5 /* a product of fewer rows waits for its sums and its weights */
};

/* Part of products that Winograd's inner product takes, and cycles for each number of V that is
 * brought to one size for it. */
static const double INNER_PART = 0.74, INNER_NUMBER = 6;

/* Products of a variant of taps: 4 rows of points need 4 additions for each of 3 taps and 6 points
 * more, 2 rows none for the taps. */
static double taps_cost(const sni_conv_geometry *g, const sni_wino_cut *c, const sni_costs *costs) {
    static const double RATE = 0.85;
    double each = sni_vector_cycles((double)(c->points * c->rows + 4 * 12 + 2 * 6), costs) / RATE;
    double blocks = ceil((double)c->tiles / (double)c->most);
    double weights = 9.0 * (double)(g->in_channels * g->out_channels) * sizeof(float);
    double work =
        ceil((double)c->tiles / (double)c->rows) * each * (double)(g->in_channels * c->out_blocks);
    return sni_overlapped_cycles(work, sni_stream_cycles(weights, (blocks - 1) * weights, costs),
                                 costs);
}

double sni_wino_cost(const sni_conv_geometry *g, const sni_wino_variant *f,
                     const sni_costs *costs) {
    const sni_conv_costs *p = &costs->conv;
    sni_wino_cut c = sni_wino_cut_of(g, f, 1);
    double tiles = (double)c.tiles, rows = (double)c.rows, block = sni_cpu_kernels_get()->block;
    /* Vectors that the transforms move. */
    double in = (double)f->t_h * (f->m_w + f->t_w) * (double)c.v_blocks;
    double out = ((double)(f->t_h + f->m_h) * f->t_w + (double)f->m_h * (f->t_w + f->m_w)) *
                 (double)c.out_blocks;
    if (f->taps) {
        double moved = (p->transform_in + 2) * in + p->transform_out * out;
        return START + tiles * sni_vector_cycles(moved, costs) + taps_cost(g, &c, costs);
    }
    double products = ceil(tiles / rows) * (rows < WAITING_ROWS ? WAITING_ROWS : rows) *
                      sni_vector_cycles((double)(c.depth * c.out_blocks), costs);
    if (f->inner_product)
        products = INNER_PART * products + INNER_NUMBER * tiles * (double)(c.points * c.v_blocks);
    double weights = (double)(c.depth * c.out_blocks) * block * sizeof(float);
    double bytes = sni_wino_traffic(&c, c.most, c.together) * sizeof(float);
    double stream = sni_stream_cycles(weights, fmax(bytes - weights, 0), costs);
    double moved = p->transform_in * in + p->transform_out * out;
    double work = products / p->product_rate + tiles * sni_vector_cycles(moved, costs);
    return START + sni_overlapped_cycles(work, stream, costs);
}

enum { TAPS_PAY = 4 }; /* tiles up to which transformed weights come too late from memory */

/* The variant of taps, if it takes less than `limit`. */
static bool choose_taps(const sni_conv_geometry *known, double limit, const sni_costs *costs,
                        sni_wino_variant *variant) {
    sni_wino_variant taps;
    if (!sni_wino_variant_of_taps(known, &taps)) return false;
    int64_t tiles =
        known->n * sni_ceil_div(known->out_h, taps.m_h) * sni_ceil_div(known->out_w, taps.m_w);
    if (tiles > TAPS_PAY || sni_wino_cost(known, &taps, costs) >= limit) return false;
    *variant = taps;
    return true;
}

bool sni_wino_choose(const sni_conv_geometry *g, bool inner_product, double limit,
                     const sni_costs *costs, sni_wino_variant *variant) {
    static const int points[] = {4, 6, 8, 10};
    static const double GAIN = 0.92; /* more points round more */
    sni_conv_geometry known = sni_conv_known_geometry(g);
    bool found = false;
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        sni_wino_variant f;
        int t_h = g->kernel_h > 1 ? points[i] : 1, t_w = g->kernel_w > 1 ? points[i] : 1;
        if (!sni_wino_variant_of(g, t_h, t_w, &f)) continue;
        f.inner_product = inner_product && sni_wino_takes_inner_product(g);
        double cost = sni_wino_cost(&known, &f, costs);
        if (cost >= limit * (found ? GAIN : 1)) continue;
        limit = cost;
        *variant = f;
        found = true;
    }
    return choose_taps(&known, limit, costs, variant) || found;
}
