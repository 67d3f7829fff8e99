/* conv_wino.c - blocked convolution by Winograd's method, where a cost model says that it pays. */
#include "cpu/winograd.h"
#include "ep/cpu/blocked.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct wino_weights {
    sni_wino_form form;
    float *points, *bias, *slopes; /* the last two may be NULL */
} wino_weights;

enum { TAPS = 256 }; /* as the number of a form: weights are transformed when they are used */

/* Any form at all. */
static bool has_form(const sni_conv_geometry *g) {
    sni_wino_form f;
    int points = g->stride_h == 2 ? 6 : 8;
    return sni_wino_form_of(g, g->kernel_h > 1 ? points : 1, g->kernel_w > 1 ? points : 1, &f);
}

/* The form for a choice: the one that its node names, or the quickest by estimate. */
static bool choose(const sni_choice *c, const sni_conv_geometry *g, sni_wino_form *form) {
    const sni_blocked_conv_params *p = c->params;
    if (p->winograd == 1) return sni_wino_choose(g, form);
    if (p->winograd == TAPS) return sni_wino_form_of_taps(g, form);
    return p->winograd > 0 && p->winograd < 256 &&
           sni_wino_form_of(g, (int)p->winograd / 16, (int)p->winograd % 16, form);
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
    return sni_blocked_geometry(c, &g, &plain) && choose(c, &g, &form);
}

/* Points along the axes; what prepare makes for these shapes. */
static uint32_t wino_form(const sni_choice *c) {
    sni_conv_geometry g;
    sni_wino_form form;
    bool plain;
    if (!sni_blocked_geometry(c, &g, &plain) || !choose(c, &g, &form)) return 0;
    return form.taps ? TAPS : (uint32_t)(16 * form.t_h + form.t_w);
}

static sn_status wino_prepare(const sni_choice *c, void **state, sn_error *err) {
    sni_conv_geometry g;
    const sni_loose_float *w;
    wino_weights made = {0};
    bool plain, filled;
    if (!sni_blocked_geometry(c, &g, &plain) || !choose(c, &g, &made.form))
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

/* ---- Ways to measure ---- */

void sni_cpu_wino_settings(const sni_graph *g, const sni_node *n, sni_settings *out) {
    const sni_blocked_conv_params *p = n->params;
    const sni_type *w = &sni_graph_value(g, n->in[1])->type;
    const sni_ints *strides = &p->fused.conv.window.strides;
    *out = (sni_settings){.count = 0};
    if (p->winograd != 1 || !w->has_shape || w->rank != 4) return;
    sni_conv_geometry shape = {.groups = 1,
                               .kernel_h = w->dims[2],
                               .kernel_w = w->dims[3],
                               .stride_h = strides->n > 0 ? strides->v[0] : 1,
                               .stride_w = strides->n > 1 ? strides->v[1] : 1,
                               .dilation_h = 1,
                               .dilation_w = 1};
    *out = (sni_settings){
        .attr = "winograd", .count = 2, .values = {1, 0}, .names = {"as estimated", "direct sums"}};
    for (int points = 4; points <= SNI_WINO_POINTS; points += 2) {
        sni_wino_form form;
        int t_h = shape.kernel_h > 1 ? points : 1, t_w = shape.kernel_w > 1 ? points : 1;
        if (!sni_wino_form_of(&shape, t_h, t_w, &form)) continue;
        snprintf(out->names[out->count], sizeof out->names[0], "Winograd, %dx%d points", t_h, t_w);
        out->values[out->count++] = 16 * t_h + t_w;
    }
    sni_wino_form taps;
    if (!sni_wino_form_of_taps(&shape, &taps)) return;
    snprintf(out->names[out->count], sizeof out->names[0], "Winograd, weights in passing");
    out->values[out->count++] = TAPS;
}
