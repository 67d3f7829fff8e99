/* layout_transpose.c - transposed convolutions in blocked layout: the outputs of each remainder by
 * the strides are an ordinary convolution with every so-many-th tap; their pictures are woven
 * together (InterleavePixels). */
#include "opt/layout.h"

#include "opt/rules/rules.h"

enum { MOST_PHASES = 9 };

/* Outputs o, o + stride, ... along one axis. */
typedef struct phase {
    int64_t tap, taps;  /* first tap of the kernel, and how many; the first is the last of the
                           convolution */
    int64_t begin, end; /* padding of the convolution */
    int64_t more;       /* outputs beyond those of the input; may be negative */
} phase;

typedef struct axis {
    int64_t kernel, stride, begin, end, extra;
} axis;

static int64_t ceil_div(int64_t a, int64_t b) { /* b > 0 */
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/* False if outputs of this phase are not a convolution with padding. */
static bool phase_of(const axis *x, int64_t o, phase *out) {
    phase p;
    p.tap = (o + x->begin) % x->stride;
    p.taps = p.tap < x->kernel ? ceil_div(x->kernel - p.tap, x->stride) : 0;
    p.begin = p.taps - 1 - (o + x->begin - p.tap) / x->stride;
    p.more = ceil_div(x->kernel + x->extra - x->begin - x->end - o, x->stride) - 1;
    p.end = p.more + p.taps - 1 - p.begin;
    *out = p;
    return p.taps > 0 && p.begin >= 0 && p.end >= 0;
}

/* ---- Looking ---- */

static int64_t or_else(const sni_ints *v, size_t i, int64_t otherwise) {
    return i < v->n ? v->v[i] : otherwise;
}

/* True if there are kernels for convolutions of these groups. */
static bool takes_groups(const sni_layout *l, int64_t groups, const int64_t *w) {
    int64_t in = w[0], out = w[1] * groups;
    return groups == 1 ||
           (in % groups == 0 && (sni_blocked_near(in, out, groups, w[2] * w[3], l->block) ||
                                 sni_blocked_merge(in, out, groups, l->block) > 0));
}

/* Both axes of a ConvTranspose that can be taken apart; false for others. */
static bool read_axes(const sni_layout *l, const sni_node *n, const int64_t *w, axis axes[2]) {
    const sni_conv_params *p = n->params;
    const sni_attr *extra = sni_node_attr(n, "output_padding");
    if (!takes_groups(l, p->group, w) || !sni_ints_are(&p->window.dilations, 1) ||
        (p->window.auto_pad != SNI_PAD_NOTSET && p->window.auto_pad != SNI_PAD_VALID) ||
        sni_node_attr(n, "output_shape") || (extra && extra->count != 2))
        return false;
    int64_t phases = 1;
    for (size_t i = 0; i < 2; i++) {
        axes[i] = (axis){.kernel = w[2 + i],
                         .stride = or_else(&p->window.strides, i, 1),
                         .extra = extra ? extra->u.ints[i] : 0};
        if (p->window.auto_pad == SNI_PAD_NOTSET) {
            axes[i].begin = or_else(&p->window.pads, i, 0);
            axes[i].end = or_else(&p->window.pads, i + 2, 0);
        }
        if (axes[i].stride > MOST_PHASES) return false;
        phases *= axes[i].stride;
        sni_dim size = l->g->values[n->in[0]]->type.dims[2 + i];
        for (int64_t o = 0; o < axes[i].stride; o++) {
            phase ph;
            if (!phase_of(&axes[i], o, &ph)) return false;
            if (ph.more < 0 && (!sni_dim_known(size) || size + ph.more < 1)) return false;
        }
    }
    return phases <= MOST_PHASES;
}

/* ---- What follows ---- */

/* The end of every phase: attributes, or slopes by channel (SNI_NO_ID: none). */
typedef struct ending {
    sni_node *node; /* NULL: none */
    sni_attr attrs[2];
    int32_t slopes;
} ending;

/* The activation that is all that uses a node's result. */
static sn_status find_ending(sni_layout *l, const sni_node *n, ending *out) {
    const sni_value *v = l->g->values[n->out[0]];
    sni_node *user = v->use_count == 1 ? sni_graph_node(l->g, v->uses[0].node) : NULL;
    int64_t channels = sni_layout_channels(l, n->out[0]);
    sni_ending e;
    *out = (ending){.slopes = SNI_NO_ID};
    if (!user || user->id >= l->n_nodes || v->uses[0].slot != 0 ||
        sni_layout_channels(l, user->out[0]) != channels)
        return SN_OK;
    if (sni_ending_of(l->g, user, &e)) {
        out->node = user;
        return sni_ending_attrs(&e, &l->r->store->arena, out->attrs, l->r->err);
    }
    if (user->domain.n || !sni_str_is(user->type, "PRelu") ||
        !sni_layout_is_channels(l, user->in[1], channels, v->type.rank))
        return SN_OK;
    out->node = user;
    return sni_layout_slopes(l, user->in[1], channels, &out->slopes);
}

/* ---- Making ---- */

/* The weights of one phase, (M, C of a group, taps) from (C, M of a group, kernel). */
static void pick_taps(const sni_tensor *w, int64_t groups, const phase *h, const phase *v,
                      const axis axes[2], float *to) {
    int64_t in = w->dims[0] / groups, out = w->dims[1], rows = w->dims[2], columns = w->dims[3];
    const float *from = w->data;
    for (int64_t m = 0; m < out * groups; m++)
        for (int64_t c = m / out * in; c < (m / out + 1) * in; c++)
            for (int64_t a = h->taps - 1; a >= 0; a--)
                for (int64_t b = v->taps - 1; b >= 0; b--)
                    *to++ =
                        from[((c * out + m % out) * rows + h->tap + a * axes[0].stride) * columns +
                             v->tap + b * axes[1].stride];
}

static sn_status emit_phase(sni_layout *l, sni_node *n, const sni_tensor *w, const phase *h,
                            const phase *v, const axis axes[2], const ending *e, int32_t x,
                            int32_t *out) {
    int64_t groups = ((const sni_conv_params *)n->params)->group;
    const int64_t dims[4] = {w->dims[1] * groups, w->dims[0] / groups, h->taps, v->taps};
    const int64_t pads[4] = {h->begin, v->begin, h->end, v->end};
    bool bias = n->n_in > 2 && n->in[2] != SNI_NO_ID;
    int32_t in[5] = {x, SNI_NO_ID, bias ? n->in[2] : SNI_NO_ID, SNI_NO_ID, e->slopes};
    float *taps;
    SN_TRY(sni_layout_const_floats(l, 4, dims, &taps, &in[1]));
    pick_taps(w, groups, h, v, axes, taps);
    sni_attr attrs[5] = {sni_attr_of_int("block", l->block), sni_attr_of_int("group", groups)};
    int32_t n_attrs = 3;
    SN_TRY(sni_layout_list(l, "pads", pads, 4, &attrs[2]));
    for (int i = 0; e->node && i < 2; i++)
        if (e->attrs[i].kind != SNI_ATTR_NONE) attrs[n_attrs++] = e->attrs[i];
    sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                            .type = "BlockedConv",
                            .in = in,
                            .n_in = e->slopes != SNI_NO_ID ? 5
                                    : bias                 ? 3
                                                           : 2,
                            .attrs = attrs,
                            .n_attrs = n_attrs};
    return sni_layout_emit(l, n, &node, out);
}

sn_status sni_layout_conv_transpose(sni_layout *l, sni_node *n) {
    sni_const *weights = sni_layout_const(l, n->in[1]);
    const sni_tensor *w;
    axis axes[2];
    ending e;
    int32_t x, parts[MOST_PHASES], out, count = 0;
    if (!sni_layout_channels(l, n->in[0]) || !sni_layout_channels(l, n->out[0]) || !weights ||
        weights->tensor.dtype != SN_FLOAT32 || weights->tensor.rank != 4 ||
        weights->tensor.count == 0 ||
        (n->n_in > 2 && n->in[2] != SNI_NO_ID && !sni_layout_const(l, n->in[2])) ||
        !read_axes(l, n, weights->tensor.dims, axes))
        return SN_OK;
    SN_TRY(sni_const_load(weights, &w, l->r->err));
    SN_TRY(find_ending(l, n, &e));
    SN_TRY(sni_layout_need(l, n->in[0], n, &x));
    for (int64_t a = 0; a < axes[0].stride; a++)
        for (int64_t b = 0; b < axes[1].stride; b++) {
            phase h, v;
            phase_of(&axes[0], a, &h);
            phase_of(&axes[1], b, &v);
            SN_TRY(emit_phase(l, n, w, &h, &v, axes, &e, x, &parts[count++]));
        }
    out = parts[0];
    if (count > 1) {
        sni_attr strides;
        SN_TRY(sni_layout_list(l, "strides", (int64_t[]){axes[0].stride, axes[1].stride}, 2,
                               &strides));
        sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                                .type = "InterleavePixels",
                                .in = parts,
                                .n_in = count,
                                .attrs = &strides,
                                .n_attrs = 1};
        SN_TRY(sni_layout_emit(l, n, &node, &out));
    }
    if (e.node) sni_layout_done(l, e.node, out);
    sni_layout_done(l, n, out);
    return SN_OK;
}
