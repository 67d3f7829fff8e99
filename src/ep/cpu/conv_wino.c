/* conv_wino.c - blocked convolution by Winograd's method, where a cost model says that it pays. */
#include "cpu/winograd.h"
#include "ep/cpu/blocked.h"

#include <stdlib.h>

typedef struct wino_weights {
    sni_wino_form form;
    float *points, *bias, *slopes; /* the last two may be NULL */
} wino_weights;

/* Any form at all. */
static bool has_form(const sni_conv_geometry *g) {
    sni_wino_form f;
    return sni_wino_form_of(g, g->kernel_h > 1 ? 8 : 1, g->kernel_w > 1 ? 8 : 1, &f);
}

static bool wino_accepts(const sni_choice *c) {
    const sni_blocked_conv_params *p = c->params;
    sni_conv_geometry g;
    bool plain;
    return p->winograd && c->node->n_out == 1 && !sni_choice_given(c, 5) &&
           sni_blocked_geometry(c, &g, &plain) && !plain && has_form(&g);
}

static bool wino_pays(const sni_choice *c) {
    sni_conv_geometry g;
    sni_wino_form form;
    bool plain;
    return sni_blocked_geometry(c, &g, &plain) && sni_wino_choose(&g, &form);
}

/* Points along the axes; what prepare makes for these shapes. */
static uint32_t wino_form(const sni_choice *c) {
    sni_conv_geometry g;
    sni_wino_form form;
    bool plain;
    if (!sni_blocked_geometry(c, &g, &plain) || !sni_wino_choose(&g, &form)) return 0;
    return (uint32_t)(form.t_h << 4 | form.t_w);
}

static sn_status wino_prepare(const sni_choice *c, void **state, sn_error *err) {
    sni_conv_geometry g;
    const sni_loose_float *w;
    wino_weights made = {0};
    bool plain, filled;
    if (!sni_blocked_geometry(c, &g, &plain) || !sni_wino_choose(&g, &made.form))
        return sni_fail(err, SN_INTERNAL, "no form of Winograd convolution");
    SN_TRY(sni_cpu_floats(c, sni_wino_packed_size(&g, &made.form), &made.points, &filled, err));
    if (!filled) {
        SN_TRY(sni_cpu_loose(c, 1, &w, err));
        sni_wino_pack(&g, &made.form, w, made.points, 0);
    }
    SN_TRY(sni_blocked_bias(c, &made.bias, err));
    SN_TRY(sni_blocked_slopes(c, &made.slopes, err));
    return sni_cpu_keep(&made, sizeof made, state, err);
}

static sn_status wino_run(sni_kernel *k) {
    const wino_weights *w = k->state;
    sni_blocked_call call;
    if (sni_out(k, 0)->count == 0) return SN_OK;
    SN_TRY(sni_blocked_call_init(k, w->bias, w->slopes, &call));
    size_t count = sni_wino_scratch_size(&call.geometry, &w->form, k->threads);
    float *scratch = sni_scratch(k, count * sizeof *scratch);
    if (!scratch) return k->err ? k->err->status : SN_NO_MEMORY;
    sni_wino_run(&call.geometry, &w->form, w->points, call.x, call.y, &call.epilogue, k->threads,
                 scratch);
    return SN_OK;
}

const sni_impl sni_cpu_conv_wino = {
    .name = "conv_winograd_f32",
    .op = "BlockedConv",
    .domain = SNI_SINTER_DOMAIN,
    .accepts = wino_accepts,
    .pays = wino_pays,
    .form = wino_form,
    .by_shape = true,
    .prepare = wino_prepare,
    .release = free,
    .packs = 1u << 1 | 1u << 2 | 1u << 4,
    .run = wino_run,
};
