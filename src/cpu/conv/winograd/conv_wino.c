/* conv_wino.c - blocked convolution by Winograd's method, where its cost is the least.
 * Groups that fill whole blocks are convolutions of their own, which threads share out. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/conv_costs.h"
#include "cpu/conv/winograd/winograd.h"
#include "cpu/conv/blocked.h"
#include "ops/core/compute.h"

#include <math.h>
#include <stdlib.h>

typedef struct wino_weights {
    sni_wino_variant variant;
    float *points, *bias, *slopes; /* the last two may be NULL */
    size_t group;                  /* floats of a group's points */
} wino_weights;

/* As the number of a variant: weights are transformed when they are used, products are Winograd
 * inner products. */
enum { TAPS = 256, INNER_PRODUCT = 512 };

/* The convolution of a choice, and that of one of its groups; false if they do not fill blocks. */
static bool geometry_of(const sni_choice *c, sni_conv_geometry *g, sni_conv_geometry *group) {
    bool plain;
    if (!sni_blocked_geometry(c, g, &plain) || plain) return false;
    *group = *g;
    group->in_channels /= g->groups;
    group->out_channels /= g->groups;
    group->groups = 1;
    return sni_blocked_merge(g->in_channels, g->out_channels, g->groups,
                             sni_cpu_kernels_get()->block) == 1;
}

/* Any variant at all. */
static bool has_variant(const sni_conv_geometry *g) {
    sni_wino_variant f;
    int points = g->stride_h == 2 ? 6 : 8;
    return sni_wino_variant_of(g, g->kernel_h > 1 ? points : 1, g->kernel_w > 1 ? points : 1, &f);
}

/* Transformed weights are floats, and more of them than there are taps: in a model of narrow ones
 * they are not worth much memory. */
static bool is_too_large(const sni_choice *c, const sni_conv_geometry *g,
                         const sni_wino_variant *variant) {
    enum { MOST_BYTES = 1 << 20 };
    size_t groups = (size_t)(c->constants[1]->tensor.dims[0] / g->out_channels);
    return c->numerics & SNI_NUMERICS_NARROW &&
           sni_wino_packed_size(g, variant) * groups > MOST_BYTES / sizeof(float);
}

/* The variant for a choice: the one that tuning has chosen, or the quickest by estimate, if it is
 * quicker than direct sums. */
static bool choose(const sni_choice *c, const sni_conv_geometry *g, const sni_costs *costs,
                   sni_wino_variant *variant) {
    bool inner_product = c->numerics & SNI_NUMERICS_INNER_PRODUCT;
    uint32_t number = c->variant % INNER_PRODUCT;
    if (!c->variant) {
        sni_conv_geometry known = sni_conv_known_geometry(g);
        double limit = sni_wino_part * sni_conv_direct_cost(&known, costs);
        return sni_wino_choose(g, inner_product, limit, costs, variant) &&
               !is_too_large(c, g, variant);
    }
    if (number == TAPS) return sni_wino_variant_of_taps(g, variant);
    if (!sni_wino_variant_of(g, (int)number / 16, (int)number % 16, variant)) return false;
    variant->inner_product = c->variant >= INNER_PRODUCT;
    return true;
}

bool sni_conv_winograd_supports(const sni_choice *c) {
    sni_conv_geometry g, group;
    return c->node->n_out == 1 && !sni_choice_given(c, 5) && geometry_of(c, &g, &group) &&
           has_variant(&group);
}

double sni_conv_winograd_cycles(const sni_choice *c, const sni_costs *costs) {
    sni_conv_geometry g, group;
    sni_wino_variant variant;
    if (!geometry_of(c, &g, &group) || !choose(c, &group, costs, &variant)) return INFINITY;
    group = sni_conv_known_geometry(&group);
    return (double)g.groups * sni_wino_cost(&group, &variant, costs) / sni_wino_part;
}

/* Points along the axes; what prepare makes for these shapes. */
uint32_t sni_conv_winograd_variant(const sni_choice *c) {
    sni_conv_geometry g, group;
    sni_wino_variant variant;
    if (!geometry_of(c, &g, &group) || !choose(c, &group, sni_costs_get(), &variant)) return 0;
    return variant.taps ? TAPS
                        : (uint32_t)(16 * variant.t_h + variant.t_w) +
                              (variant.inner_product ? INNER_PRODUCT : 0);
}

sn_status sni_conv_winograd_prepare(const sni_choice *c, void **state, sn_error *err) {
    sni_conv_geometry g, group;
    const sni_unaligned_float *w;
    wino_weights made = {0};
    bool filled;
    if (!geometry_of(c, &g, &group) || !choose(c, &group, sni_costs_get(), &made.variant))
        return sni_fail(err, SN_INTERNAL, "no variant of Winograd convolution");
    made.group = sni_wino_packed_size(&group, &made.variant);
    SN_TRY(sni_cpu_floats(c, made.group * (size_t)g.groups, &made.points, &filled, err));
    if (!filled) {
        size_t taps = (size_t)(group.kernel_h * group.kernel_w);
        size_t each = (size_t)(group.out_channels * group.in_channels) * taps;
        SN_TRY(sni_cpu_unaligned(c, 1, &w, err));
        for (size_t i = 0; i < (size_t)g.groups; i++)
            sni_wino_pack(&group, &made.variant, w + i * each, made.points + i * made.group, 0);
    }
    SN_TRY(sni_blocked_bias(c, &made.bias, err));
    SN_TRY(sni_blocked_slopes(c, &made.slopes, err));
    return sni_cpu_keep(&made, sizeof made, state, err);
}

/* ---- Runs ---- */

/* Groups of all images, dealt out to parts. */
typedef struct group_job {
    const wino_weights *w;
    const sni_blocked_call *call;
    sni_conv_geometry g; /* of one group of one image */
    int64_t groups, items;
    int parts;
    float *scratch;
    size_t scratch_part;
} group_job;

static void run_group(const group_job *j, int64_t item, float *scratch) {
    const sni_conv_geometry *g = &j->g;
    sni_conv_epilogue e = j->call->epilogue;
    int64_t group = item % j->groups, channel = group * g->out_channels;
    int64_t x = item * g->in_channels * g->in_h * g->in_w,
            y = item * g->out_channels * g->out_h * g->out_w;
    if (e.bias) e.bias += channel;
    if (e.slopes) e.slopes += channel;
    if (e.residual) e.residual += y;
    sni_wino_run(&(sni_wino_call){.g = g,
                                  .variant = &j->w->variant,
                                  .packed = j->w->points + (size_t)group * j->w->group,
                                  .x = j->call->x + x,
                                  .y = j->call->y + y,
                                  .epilogue = e,
                                  .threads = 1,
                                  .scratch = scratch,
                                  .scratch_floats = j->scratch_part});
}

static void run_groups(void *ctx, int64_t begin, int64_t end) {
    const group_job *j = ctx;
    for (int64_t part = begin; part < end; part++)
        for (int64_t i = part * j->items / j->parts; i < (part + 1) * j->items / j->parts; i++)
            run_group(j, i, j->scratch + (size_t)part * j->scratch_part);
}

static sn_status run_grouped(sni_kernel *k, const sni_blocked_call *call) {
    const sni_conv_geometry *g = &call->geometry;
    group_job j = {.w = k->state, .call = call, .g = *g, .groups = g->groups};
    void *scratch;
    j.g.n = j.g.groups = 1;
    j.g.in_channels /= g->groups;
    j.g.out_channels /= g->groups;
    j.items = g->n * g->groups;
    j.parts = (int)sni_min(j.items, k->threads > 0 ? k->threads : sni_threads_available());
    int64_t size = sni_round_up((int64_t)sni_wino_scratch_size(&j.g, &j.w->variant, 1), 16);
    j.scratch_part = (size_t)size;
    SN_TRY(sni_scratch_matrix(k, j.parts, size, sizeof(float), &scratch));
    j.scratch = scratch;
    sni_parallel_for(k->threads, j.parts, 1, run_groups, &j);
    return SN_OK;
}

sn_status sni_conv_winograd_run(sni_kernel *k) {
    const wino_weights *w = k->state;
    sni_blocked_call call;
    if (sni_out(k, 0)->count == 0) return SN_OK;
    SN_TRY(sni_blocked_call_init(k, w->bias, w->slopes, &call));
    if (call.geometry.groups > 1) return run_grouped(k, &call);
    size_t count = sni_wino_scratch_size(&call.geometry, &w->variant, k->threads);
    float *scratch = sni_scratch(k, count * sizeof *scratch);
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_wino_run(&(sni_wino_call){.g = &call.geometry,
                                  .variant = &w->variant,
                                  .packed = w->points,
                                  .x = call.x,
                                  .y = call.y,
                                  .epilogue = call.epilogue,
                                  .threads = k->threads,
                                  .scratch = scratch,
                                  .scratch_floats = count});
    return SN_OK;
}

/* Every size of tiles that the convolution has, with inner products where those are allowed. */
int sni_conv_winograd_variants(const sni_choice *c, uint32_t *out) {
    sni_conv_geometry g, group;
    sni_wino_variant f;
    int count = 0;
    if (!geometry_of(c, &g, &group)) return 0;
    bool inner_product =
        c->numerics & SNI_NUMERICS_INNER_PRODUCT && sni_wino_takes_inner_product(&group);
    for (int points = 4; points <= SNI_WINO_POINTS; points += 2) {
        int t_h = group.kernel_h > 1 ? points : 1, t_w = group.kernel_w > 1 ? points : 1;
        if (sni_wino_variant_of(&group, t_h, t_w, &f))
            out[count++] = (uint32_t)(16 * t_h + t_w) + (inner_product ? INNER_PRODUCT : 0);
    }
    if (sni_wino_variant_of_taps(&group, &f)) out[count++] = TAPS;
    return count;
}

uint32_t sni_conv_winograd_uses(const sni_choice *c, const void *state) {
    const wino_weights *w = state;
    (void)c;
    return SNI_NUMERICS_WINOGRAD | (w->variant.inner_product ? SNI_NUMERICS_INNER_PRODUCT : 0);
}
