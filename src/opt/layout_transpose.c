/* layout_transpose.c - transposed convolutions in blocked layout: the outputs of each remainder by
 * the strides, a phase, are an ordinary convolution with every so-many-th tap; their pictures are
 * woven together (InterleavePixels). Where there are few channels, all phases are one convolution
 * with the channels of all. */
#include "opt/layout.h"

#include "opt/rules/rules.h"

#include <string.h>

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
static bool takes_groups(const sni_layout_pass *l, int64_t groups, const int64_t *w) {
    int64_t in = w[0], out = w[1] * groups;
    return groups == 1 ||
           (in % groups == 0 && (sni_blocked_near(in, out, groups, w[2] * w[3], l->block) ||
                                 sni_blocked_merge(in, out, groups, l->block) > 0));
}

/* Both axes of a ConvTranspose that can be taken apart; false for others. */
static bool read_axes(const sni_layout_pass *l, const sni_node *n, const int64_t *w, axis axes[2]) {
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
static sn_status find_ending(sni_layout_pass *l, const sni_node *n, ending *out) {
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

/* Phases [first, first + count) of an axis as one convolution, whose window covers all of theirs.
 */
typedef struct span {
    int64_t first, count;
    int64_t taps, begin, end; /* as of a phase */
} span;

/* False if the phases have different numbers of outputs. */
static bool span_of(const axis *x, int64_t first, int64_t count, span *out) {
    span s = {.first = first, .count = count};
    int64_t after = 0, more = 0;
    bool same = true;
    for (int64_t o = first; o < first + count; o++) {
        phase p;
        phase_of(x, o, &p);
        same = same && (o == first || p.more == more);
        more = p.more;
        s.begin = p.begin > s.begin ? p.begin : s.begin;
        s.end = p.end > s.end ? p.end : s.end;
        after = p.taps - 1 - p.begin > after ? p.taps - 1 - p.begin : after;
    }
    s.taps = s.begin + 1 + after;
    *out = s;
    return same;
}

/* True if one convolution for all phases takes about as few products as one for each: where outputs
 * are few, most of a block of each phase is empty. Winograd's method gains more on the wider
 * window. */
static bool one_for_all(const sni_layout_pass *l, int64_t groups, const int64_t *w,
                        const axis axes[2], span all[2]) {
    int64_t phases = axes[0].stride * axes[1].stride;
    int64_t apart = (w[1] + l->block - 1) / l->block;
    int64_t together = (phases * w[1] + l->block - 1) / l->block;
    return groups == 1 && together < phases * apart &&
           span_of(&axes[0], 0, axes[0].stride, &all[0]) &&
           span_of(&axes[1], 0, axes[1].stride, &all[1]) &&
           8 * together * all[0].taps * all[1].taps <= 9 * apart * w[2] * w[3];
}

/* Which tap of the kernel stands at place `at` of a span's window for phase `o`; -1: none does. */
static int64_t tap_at(const axis *x, const span *s, int64_t o, int64_t at) {
    phase p;
    phase_of(x, o, &p);
    at -= s->begin - p.begin;
    return at < 0 || at >= p.taps ? -1 : p.tap + (p.taps - 1 - at) * x->stride;
}

/* The weights of phase (a, b), (M, C of a group, taps) from (C, M of a group, kernel). */
static void pick_taps(const sni_tensor *w, int64_t groups, const axis axes[2], const span spans[2],
                      int64_t a, int64_t b, float *to) {
    int64_t in = w->dims[0] / groups, out = w->dims[1], rows = w->dims[2], columns = w->dims[3];
    int64_t taps = spans[0].taps * spans[1].taps;
    const float *from = w->data;
    for (int64_t t = 0; t < taps; t++) {
        int64_t i = tap_at(&axes[0], &spans[0], a, t / spans[1].taps);
        int64_t j = tap_at(&axes[1], &spans[1], b, t % spans[1].taps);
        for (int64_t m = 0; m < out * groups; m++)
            for (int64_t c = 0; c < in; c++)
                to[(m * in + c) * taps + t] =
                    i < 0 || j < 0
                        ? 0
                        : from[(((m / out * in + c) * out + m % out) * rows + i) * columns + j];
    }
}

/* A constant vector, `times` after itself. */
static sn_status repeated(sni_layout_pass *l, int32_t id, int64_t times, int32_t *out) {
    const sni_tensor *t;
    float *to;
    if (id == SNI_NO_ID || times == 1) {
        *out = id;
        return SN_OK;
    }
    SN_TRY(sni_const_load(sni_layout_const(l, id), &t, l->r->err));
    SN_TRY(sni_layout_const_floats(l, 1, (int64_t[]){times * t->count}, &to, out));
    for (int64_t i = 0; i < times; i++)
        memcpy(to + i * t->count, t->data, (size_t)t->count * sizeof *to);
    return SN_OK;
}

/* A ConvTranspose that is being replaced. */
typedef struct replaced {
    sni_node *node;
    const sni_tensor *weights;
    axis axes[2];
    ending ending;
    int32_t x; /* its input, blocked */
} replaced;

/* The convolution of the phases of two spans; its channels are theirs, phase after phase. */
static sn_status emit_part(sni_layout_pass *l, const replaced *c, const span spans[2],
                           int32_t *out) {
    sni_node *n = c->node;
    const sni_tensor *w = c->weights;
    const ending *e = &c->ending;
    int64_t groups = ((const sni_conv_params *)n->params)->group;
    int64_t phases = spans[0].count * spans[1].count;
    const int64_t dims[4] = {phases * w->dims[1] * groups, w->dims[0] / groups, spans[0].taps,
                             spans[1].taps};
    const int64_t pads[4] = {spans[0].begin, spans[1].begin, spans[0].end, spans[1].end};
    bool bias = n->n_in > 2 && n->in[2] != SNI_NO_ID;
    int32_t in[5] = {c->x, SNI_NO_ID, SNI_NO_ID, SNI_NO_ID, SNI_NO_ID};
    float *taps;
    SN_TRY(sni_layout_const_floats(l, 4, dims, &taps, &in[1]));
    for (int64_t i = 0; i < phases; i++)
        pick_taps(w, groups, c->axes, spans, spans[0].first + i / spans[1].count,
                  spans[1].first + i % spans[1].count,
                  taps + i * (dims[0] / phases * dims[1] * dims[2] * dims[3]));
    SN_TRY(repeated(l, bias ? n->in[2] : SNI_NO_ID, phases, &in[2]));
    SN_TRY(repeated(l, e->slopes, phases, &in[4]));
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

/* `channels`: of the result, where `parts` is one with the channels of all phases; 0: a part is a
 * phase. */
static sn_status emit_interleave(sni_layout_pass *l, sni_node *n, const axis axes[2],
                                 const int32_t *parts, int32_t count, int64_t channels,
                                 int32_t *out) {
    const int64_t strides[2] = {axes[0].stride, axes[1].stride};
    sni_attr attrs[2];
    SN_TRY(sni_layout_list(l, "strides", strides, 2, &attrs[0]));
    attrs[1] = sni_attr_of_int("channels", channels);
    sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                            .type = "InterleavePixels",
                            .in = parts,
                            .n_in = count,
                            .attrs = attrs,
                            .n_attrs = channels ? 2 : 1};
    return sni_layout_emit(l, n, &node, out);
}

/* All phases, interleaved. */
static sn_status emit_phases(sni_layout_pass *l, const replaced *c, int32_t *out) {
    const axis *axes = c->axes;
    int32_t parts[MOST_PHASES], count = 0;
    int64_t groups = ((const sni_conv_params *)c->node->params)->group;
    span spans[2];
    if (one_for_all(l, groups, c->weights->dims, axes, spans)) {
        SN_TRY(emit_part(l, c, spans, &parts[0]));
        return emit_interleave(l, c->node, axes, parts, 1, c->weights->dims[1], out);
    }
    for (int64_t a = 0; a < axes[0].stride; a++)
        for (int64_t b = 0; b < axes[1].stride; b++) {
            span_of(&axes[0], a, 1, &spans[0]);
            span_of(&axes[1], b, 1, &spans[1]);
            SN_TRY(emit_part(l, c, spans, &parts[count++]));
        }
    *out = parts[0];
    return count > 1 ? emit_interleave(l, c->node, axes, parts, count, 0, out) : SN_OK;
}

sn_status sni_layout_conv_transpose(sni_layout_pass *l, sni_node *n) {
    sni_const *weights = sni_layout_const(l, n->in[1]);
    replaced c = {.node = n};
    int32_t out;
    if (!sni_layout_channels(l, n->in[0]) || !sni_layout_channels(l, n->out[0]) || !weights ||
        weights->tensor.dtype != SN_FLOAT32 || weights->tensor.rank != 4 ||
        weights->tensor.count == 0 ||
        (n->n_in > 2 && n->in[2] != SNI_NO_ID && !sni_layout_const(l, n->in[2])) ||
        !read_axes(l, n, weights->tensor.dims, c.axes))
        return SN_OK;
    SN_TRY(sni_const_load(weights, &c.weights, l->r->err));
    SN_TRY(find_ending(l, n, &c.ending));
    SN_TRY(sni_layout_need(l, n->in[0], n, &c.x));
    SN_TRY(emit_phases(l, &c, &out));
    if (c.ending.node) sni_layout_done(l, c.ending.node, out);
    sni_layout_done(l, n, out);
    return SN_OK;
}
