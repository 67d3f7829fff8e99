/* conv_direct.c - blocked convolution without a detour: tiles of output in registers, over packed
 * weights. Every output is the same sum in the same order whatever the number of threads. */
#include "base/lengths.h"
#include "base/threadpool.h"
#include "cpu/conv/conv_algorithms.h"
#include "cpu/blocked/blocked_kernels.h"
#include "cpu/conv/blocked.h"
#include "cpu/conv/direct/conv_direct.h"
#include "ops/core/compute.h"
#include "ops/core/long_work.h"

#include <string.h>

enum { TILE_VECTORS = 16 /* sums that a tile has in registers, about */ };

static int threads_of(const sni_kernel *k) {
    return k->threads > 0 ? k->threads : sni_threads_available();
}

/* A residual that lies in y is read before sums are written there: where sums are finished at once
 * that is when they are, else they begin with it. */
static void place_residual(sni_direct_job *j) {
    const sni_conv_geometry *g = &j->g;
    bool inside = g->pad_left == 0 && (g->out_w - 1) * g->stride_w < g->in_w;
    bool at_once = j->pointwise && inside && j->chunk >= j->in_blocks;
    if (j->epilogue.residual != j->y || at_once) return;
    j->onto = true;
    j->epilogue.residual = NULL;
}

/* Merged groups may have to be summed twice: a residual that lies in y is copied. */
static sn_status keep_residual(sni_kernel *k, sni_direct_job *j) {
    int64_t pixels = j->g.out_h * j->g.out_w, planes = j->g.n * j->weights->groups * j->out_blocks;
    void *copy;
    if (j->epilogue.residual != j->y) return SN_OK;
    SN_TRY(sni_scratch_matrix(k, planes, pixels * j->block, sizeof(float), &copy));
    memcpy(copy, j->y, (size_t)(planes * pixels * j->block) * sizeof(float));
    j->epilogue.residual = copy;
    return SN_OK;
}

/* Rounds of a tile that an item takes, about. */
static double item_work(const sni_direct_job *j) {
    double taps = (double)(j->g.kernel_h * j->g.kernel_w) * (double)j->weights->in;
    double outputs = (double)(j->g.n * j->g.out_h * j->g.out_w) * (double)j->out_blocks;
    return taps * outputs * (double)j->weights->groups / (double)j->items / TILE_VECTORS;
}

/* ---- Factors of input channels ---- */

/* Items share slots, each with a buffer for weights of so many floats. */
static sn_status run_in_slots(sni_kernel *k, sni_direct_job *j, int64_t floats) {
    void *buffer;
    j->slots = sni_min(sni_max(j->items / j->grain, 1), 4 * threads_of(k));
    j->scaled_floats = floats;
    SN_TRY(sni_scratch_matrix(k, j->slots, j->scaled_floats, sizeof(float), &buffer));
    j->scaled = buffer;
    return sni_long_for(k, j->slots, 1, item_work(j) * (double)(j->items / j->slots),
                        sni_direct_slots, j);
}

/* Every thread multiplies the weights that it is about to use, where those are fewer than numbers
 * of the picture; */
static sn_status run_scaled_weights(sni_kernel *k, sni_direct_job *j) {
    return run_in_slots(k, j,
                        sni_min(j->width, j->out_blocks) * j->in_blocks * j->block * j->block);
}

/* else a copy of the picture is. */
static sn_status scale_picture(sni_kernel *k, sni_direct_job *j, const sni_tensor *factors) {
    const sni_tensor *x = sni_in(k, 0);
    void *buffer;
    sni_blocked_scaling s = {.x = x->data,
                             .s = factors->data,
                             .images = x->dims[0],
                             .blocks = x->dims[1],
                             .pixels = x->dims[2] * x->dims[3],
                             .block = x->dims[4],
                             .factors = factors->dims[0] * factors->dims[1]};
    SN_TRY(sni_scratch_matrix(k, s.images * s.blocks, s.pixels * s.block, sizeof(float), &buffer));
    s.y = buffer;
    sni_blocked_scale(k, &s);
    j->x = s.y;
    return SN_OK;
}

/* By the numbers that either way multiplies for each input channel, not by how they are shared out:
 * the two round differently. */
static bool weights_are_fewer(const sni_direct_job *j, const sni_tensor *factors) {
    return factors->dims[0] == 1 && j->g.n == 1 &&
           j->out_blocks * j->block * 3 < j->g.in_h * j->g.in_w * 2;
}

sn_status sni_conv_direct_call(sni_kernel *k, const void *state, const sni_blocked_call *call,
                               const sni_tensor *factors) {
    const sni_direct_weights *w = state;
    const sni_cpu_kernels *kernels = sni_cpu_kernels_get();
    sni_direct_job j = {.weights = w,
                        .kernels = kernels->conv,
                        .g = call->geometry,
                        .epilogue = call->epilogue,
                        .x = call->x,
                        .panels = w->panels,
                        .y = call->y,
                        .plain = call->plain,
                        .image_blocks = call->image_blocks,
                        .block = kernels->block};
    if (w->apart) sni_direct_trim(&j);
    sni_direct_cut(&j, threads_of(k));
    if (w->merged > 1) SN_TRY(keep_residual(k, &j));
    place_residual(&j);
    j.items = j.g.n * w->groups * j.item_rows * j.tiles;
    if (factors && j.panels && weights_are_fewer(&j, factors)) {
        j.factors = factors->data;
        return run_scaled_weights(k, &j);
    }
    if (factors) SN_TRY(scale_picture(k, &j, factors));
    if (j.framed) SN_TRY(sni_direct_frame(k, &j));
    if (!j.panels)
        return run_in_slots(k, &j,
                            sni_min(j.width, j.out_blocks) * sni_min(j.chunk, j.in_blocks) *
                                w->in_block * w->taps * j.block);
    return sni_long_for(k, j.items, j.grain, item_work(&j), sni_direct_items, &j);
}

sn_status sni_conv_direct_run(sni_kernel *k) {
    const sni_direct_weights *w = k->state;
    sni_blocked_call call;
    if (sni_out(k, 0)->count == 0) return SN_OK;
    SN_TRY(sni_blocked_call_init(k, w->bias, w->slopes, &call));
    return sni_conv_direct_call(k, w, &call, sni_in(k, 5));
}
