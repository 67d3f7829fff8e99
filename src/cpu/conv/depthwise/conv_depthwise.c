/* conv_depthwise.c - blocked convolution where each channel stays by itself, or among the few of
 * its group. */
#include "cpu/conv/conv_algorithms.h"
#include "cpu/conv/depthwise/depthwise.h"
#include "cpu/conv/blocked.h"

#include <stdlib.h>

typedef struct depthwise_weights {
    float *taps, *bias, *slopes; /* the last two may be NULL */
} depthwise_weights;

_Static_assert((int)SNI_NEAR_CHANNELS <= (int)SNI_DEPTHWISE_FEW,
               "kernels take all groups that are near");

/* True if no others are quicker: groups that fill blocks, and windows that no kernel here is made
 * for, are better off with direct sums; so are, where short vectors have no shuffles, groups that
 * can be merged. */
static bool is_quick(const sni_conv_geometry *g, const sni_cpu_kernels *k) {
    int64_t few = g->in_channels / g->groups, shares = g->out_channels / g->groups;
    bool made = g->kernel_w == 3 && g->stride_w <= 2 && g->dilation_w == 1;
    if (few == 1 && shares == 1) return true;
    if (few == k->block && shares == k->block) return made;
    if (few % k->block == 0 && shares % k->block == 0) return false;
    return k->lanes > 4 || !sni_blocked_merge(g->in_channels, g->out_channels, g->groups, k->block);
}

bool sni_conv_depthwise_supports(const sni_choice *c) {
    const sni_cpu_kernels *k = sni_cpu_kernels_get();
    sni_conv_geometry g;
    bool plain;
    return !sni_choice_given(c, 5) && sni_blocked_geometry(c, &g, &plain) && !plain &&
           sni_blocked_near(g.in_channels, g.out_channels, g.groups, g.kernel_h * g.kernel_w,
                            k->block) &&
           sni_depthwise_fits(&g) && is_quick(&g, k);
}

sn_status sni_conv_depthwise_prepare(const sni_choice *c, void **state, sn_error *err) {
    sni_conv_geometry g;
    const sni_tensor *w;
    depthwise_weights made = {0};
    bool plain, filled;
    sni_blocked_geometry(c, &g, &plain);
    SN_TRY(sni_cpu_floats(c, sni_depthwise_packed_size(&g), &made.taps, &filled, err));
    if (!filled) {
        SN_TRY(sni_cpu_weight(c, 1, &w, err));
        sni_depthwise_pack(&g, w->data, made.taps);
    }
    SN_TRY(sni_blocked_bias(c, &made.bias, err));
    SN_TRY(sni_blocked_slopes(c, &made.slopes, err));
    return sni_cpu_keep(&made, sizeof made, state, err);
}

sn_status sni_conv_depthwise_run(sni_kernel *k) {
    const depthwise_weights *w = k->state;
    sni_blocked_call call;
    sni_blocked_extra extra;
    SN_TRY(sni_blocked_extra_init(k, &extra));
    if (sni_out(k, 0)->count) {
        SN_TRY(sni_blocked_call_init(k, w->bias, w->slopes, &call));
        call.epilogue.row_means = extra.rows;
        sni_depthwise_run(&call.geometry, w->taps, call.x, call.y, &call.epilogue, k->threads);
    }
    sni_blocked_extra_done(&extra);
    return SN_OK;
}
