/* conv_costs.c - what convolutions of blocked tensors are expected to take, from coefficients of
 * the microarchitecture (cpu/costs). Estimates do not depend on threads, because results depend on
 * what is chosen by them; they do on the number of images, which share the weights. */
#include "cpu/conv/conv_costs.h"

#include "cpu/conv/blocked.h"
#include "cpu/gemm/emulated.h"

#include <math.h>

const double sni_wino_part = 0.95;

double sni_vector_cycles(double count, const sni_costs *costs) {
    return costs->vectors_halved ? count : count / 2; /* two begin at once */
}

double sni_stream_cycles(double weights, double again, const sni_costs *costs) {
    return weights / costs->conv.stream + again / costs->conv.reread;
}

double sni_overlapped_cycles(double work, double stream, const sni_costs *costs) {
    return fmax(work, stream) + costs->conv.overlap * fmin(work, stream);
}

sni_conv_geometry sni_conv_known_geometry(const sni_conv_geometry *g) {
    enum { MIDDLING = 40 };
    sni_conv_geometry known = *g;
    if (known.n < 1) known.n = 1;
    if (known.in_h < 1 || known.in_w < 1 || known.out_h < 1 || known.out_w < 1)
        known.in_h = known.in_w = known.out_h = known.out_w = MIDDLING;
    return known;
}

static double terms_of(const sni_conv_geometry *g) {
    return (double)(g->in_channels / g->groups * g->kernel_h * g->kernel_w);
}

/* Weights are not fetched ahead as evenly as those of Winograd's method. */
static double with_weights(const sni_conv_geometry *g, double work, const sni_costs *costs) {
    double weights = (double)g->out_channels * terms_of(g) * sizeof(float);
    return sni_overlapped_cycles(work, 1.5 * sni_stream_cycles(weights, 0, costs), costs);
}

/* Products at so much of the peak. */
static double product_cost(const sni_conv_geometry *g, double rate, const sni_costs *costs) {
    int64_t blocks = sni_blocks(g->out_channels, sni_cpu_kernels_get()->block);
    double outs = (double)(g->n * g->out_h * g->out_w * blocks);
    return with_weights(g, sni_vector_cycles(outs * terms_of(g), costs) / rate, costs);
}

double sni_conv_direct_cost(const sni_conv_geometry *g, const sni_costs *costs) {
    return product_cost(g, costs->conv.direct_rate, costs);
}

/* The geometry of a choice, whether its input is blocked or not, or its channels indirect. */
static bool geometry_of(const sni_choice *c, sni_conv_geometry *g) {
    bool plain;
    if (!sni_blocked_geometry(c, g, &plain) && !sni_blocked_any_geometry(c, g)) return false;
    *g = sni_conv_known_geometry(g);
    return true;
}

double sni_conv_direct_cycles(const sni_choice *c, const sni_costs *costs) {
    sni_conv_geometry g;
    return geometry_of(c, &g) ? sni_conv_direct_cost(&g, costs) : INFINITY;
}

double sni_conv_inner_product_cycles(const sni_choice *c, const sni_costs *costs) {
    sni_conv_geometry g;
    return geometry_of(c, &g) ? product_cost(&g, costs->conv.inner_rate, costs) : INFINITY;
}

double sni_conv_emulated_cycles(const sni_choice *c, const sni_costs *costs) {
    sni_conv_geometry g;
    if (!geometry_of(c, &g)) return INFINITY;
    double work = sni_emulated_cost(g.n * g.out_h * g.out_w, g.out_channels, (int64_t)terms_of(&g));
    return with_weights(&g, work, costs);
}
