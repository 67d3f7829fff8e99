/* layout_channels.c - operators that only pick channels: their results are lists of channels of
 * blocked values. */
#include "opt/layout.h"

static sn_status new_parts(sni_layout_pass *l, int32_t id, sni_channel **out) {
    *out = SNI_NEW_ARRAY(&l->temp, sni_channel, (size_t)sni_layout_channels(l, id));
    return *out ? SN_OK : sni_fail_memory(l->r->err);
}

static void set_parts(sni_layout_pass *l, int32_t id, sni_channel *parts) {
    l->variants[id].parts = parts;
}

static void bury(sni_layout_pass *l, const sni_node *n) {
    l->dead[n->id] = true;
    l->r->count++;
}

static int64_t int_attr(const sni_node *n, const char *name, int64_t otherwise) {
    const sni_attr *a = sni_node_attr(n, name);
    return a && a->kind == SNI_ATTR_INT ? a->u.i : otherwise;
}

/* True for the axis of a value that its channels are along. */
static bool along_channels(const sni_layout_pass *l, int32_t id, int64_t axis) {
    return axis == 1 || axis + l->g->values[id]->type.rank == 1;
}

/* Concat along channels of values some of which are blocked. */
sn_status sni_layout_concat(sni_layout_pass *l, sni_node *n) {
    bool some = false;
    int64_t channels = sni_layout_channels(l, n->out[0]), at = 0;
    if (!channels || !along_channels(l, n->out[0], int_attr(n, "axis", 1))) return SN_OK;
    for (int32_t i = 0; i < n->n_in; i++) {
        if (!sni_layout_channels(l, n->in[i]) || sni_layout_const(l, n->in[i])) return SN_OK;
        some = some || sni_layout_has(l, n->in[i]);
    }
    if (!some) return SN_OK;
    sni_channel *parts;
    SN_TRY(new_parts(l, n->out[0], &parts));
    for (int32_t i = 0; i < n->n_in; i++) {
        int32_t real;
        if (!sni_layout_has(l, n->in[i])) SN_TRY(sni_layout_need(l, n->in[i], n, &real));
        int64_t count = sni_layout_channels(l, n->in[i]);
        for (int64_t c = 0; c < count && at < channels; c++)
            parts[at++] = sni_layout_part(l, n->in[i], c);
    }
    set_parts(l, n->out[0], parts);
    bury(l, n);
    return SN_OK;
}

/* Channels [first, first + count) of a value are those of another. */
static sn_status take(sni_layout_pass *l, int32_t from, int64_t first, int64_t step, int32_t to) {
    sni_channel *parts;
    SN_TRY(new_parts(l, to, &parts));
    int64_t count = sni_layout_channels(l, to);
    for (int64_t c = 0; c < count; c++) parts[c] = sni_layout_part(l, from, first + c * step);
    set_parts(l, to, parts);
    return SN_OK;
}

sn_status sni_layout_split(sni_layout_pass *l, sni_node *n) {
    int64_t channels = sni_layout_channels(l, n->in[0]), at = 0;
    if (!channels || !sni_layout_has(l, n->in[0]) ||
        !along_channels(l, n->in[0], int_attr(n, "axis", 0)))
        return SN_OK;
    for (int32_t i = 0; i < n->n_out; i++) {
        if (n->out[i] == SNI_NO_ID || !sni_layout_channels(l, n->out[i])) return SN_OK;
        at += sni_layout_channels(l, n->out[i]);
    }
    if (at != channels) return SN_OK;
    at = 0;
    for (int32_t i = 0; i < n->n_out; i++) {
        SN_TRY(take(l, n->in[0], at, 1, n->out[i]));
        at += sni_layout_channels(l, n->out[i]);
    }
    bury(l, n);
    return SN_OK;
}

/* A slice along none but the axes of the picture. */
static sn_status slice_picture(sni_layout_pass *l, sni_node *n, const int64_t *axes,
                               int64_t count) {
    enum { MOST = 2, INPUTS = 5 };
    int64_t rank = l->g->values[n->in[0]]->type.rank, moved[MOST];
    int32_t in[INPUTS], out;
    if (count > MOST || n->n_in > INPUTS) return SN_OK;
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 2) return SN_OK;
        moved[i] = axis + 4 - rank; /* the last axis of a blocked line is 3, too */
    }
    for (int32_t i = 0; i < n->n_in; i++) in[i] = n->in[i];
    SN_TRY(sni_layout_need(l, n->in[0], n, &in[0]));
    SN_TRY(sni_layout_const_ints(l, moved, count, &in[3]));
    sni_layout_node node = {.domain = "", .type = "Slice", .in = in, .n_in = n->n_in, .like = n};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    sni_layout_done(l, n, out);
    return SN_OK;
}

/* A slice along channels alone, or along the picture. */
sn_status sni_layout_slice(sni_layout_pass *l, sni_node *n) {
    const int64_t *starts, *axes, *steps;
    int64_t count, n_axes, step = 1, n_steps;
    int64_t channels = sni_layout_channels(l, n->in[0]), left = sni_layout_channels(l, n->out[0]);
    if (!channels || !left || !sni_layout_has(l, n->in[0]) || n->n_in < 4 ||
        !sni_layout_ints(l, n->in[3], &axes, &n_axes) || n_axes < 1)
        return SN_OK;
    if (!along_channels(l, n->in[0], axes[0])) return slice_picture(l, n, axes, n_axes);
    if (n_axes != 1 || !sni_layout_ints(l, n->in[1], &starts, &count) || count != 1) return SN_OK;
    if (n->n_in > 4 && n->in[4] != SNI_NO_ID) {
        if (!sni_layout_ints(l, n->in[4], &steps, &n_steps) || n_steps != 1) return SN_OK;
        step = steps[0];
    }
    int64_t first = starts[0] < 0 ? starts[0] + channels : starts[0];
    if (step < 1 || first < 0 || first >= channels || (left - 1) > (channels - 1 - first) / step)
        return SN_OK;
    SN_TRY(take(l, n->in[0], first, step, n->out[0]));
    bury(l, n);
    return SN_OK;
}

/* The only node that uses a value; NULL if there are more, or it leaves the graph. */
static sni_node *only_user(const sni_graph *g, int32_t id) {
    const sni_value *v = sni_graph_value(g, id);
    return v && v->use_count == 1 ? sni_graph_node(g, v->uses[0].node) : NULL;
}

static bool is_plain(const sni_node *n, const char *type) {
    return n && n->op && n->domain.n == 0 && sni_str_is(n->type, type);
}

static bool swaps_groups(const sni_node *n) {
    static const int64_t wanted[5] = {0, 2, 1, 3, 4};
    const sni_attr *perm = sni_node_attr(n, "perm");
    return perm && perm->kind == SNI_ATTR_INTS && perm->count == 5 &&
           memcmp(perm->u.ints, wanted, sizeof wanted) == 0;
}

/* Reshape to (N, groups, C/groups, H, W), Transpose of the two, Reshape back: a channel shuffle. */
sn_status sni_layout_shuffle(sni_layout_pass *l, sni_node *n) {
    const sni_graph *g = l->g;
    int64_t channels = sni_layout_channels(l, n->in[0]);
    const sni_type *type = &g->values[n->out[0]]->type;
    if (!channels || !sni_layout_has(l, n->in[0]) || sni_layout_is_line(l, n->in[0]) ||
        !type->has_shape || type->rank != 5)
        return SN_OK;
    const sni_dim *from = g->values[n->in[0]]->type.dims;
    int64_t groups = type->dims[1], each = type->dims[2];
    sni_node *transpose = only_user(g, n->out[0]);
    if (groups < 1 || each < 1 || groups > channels || groups * each != channels ||
        type->dims[3] != from[2] || type->dims[4] != from[3] || !is_plain(transpose, "Transpose") ||
        !swaps_groups(transpose))
        return SN_OK;
    sni_node *back = only_user(g, transpose->out[0]);
    if (!is_plain(back, "Reshape") || back->in[0] != transpose->out[0] ||
        sni_layout_channels(l, back->out[0]) != channels || sni_layout_is_line(l, back->out[0]))
        return SN_OK;
    const sni_dim *to = g->values[back->out[0]]->type.dims;
    if (to[0] != from[0] || to[2] != from[2] || to[3] != from[3]) return SN_OK;
    sni_channel *parts;
    SN_TRY(new_parts(l, back->out[0], &parts));
    for (int64_t i = 0; i < groups; i++)
        for (int64_t j = 0; j < each; j++)
            parts[j * groups + i] = sni_layout_part(l, n->in[0], i * each + j);
    set_parts(l, back->out[0], parts);
    bury(l, n);
    bury(l, transpose);
    bury(l, back);
    return SN_OK;
}

/* ---- Depthwise convolutions of shuffled channels ---- */

/* The blocked value all of whose channels, each once, make up another one's list; SNI_NO_ID if
 * there is none. */
static sn_status shuffled_value(sni_layout_pass *l, int32_t id, int32_t *out) {
    const sni_layout_variant *f = &l->variants[id];
    int64_t channels = sni_layout_channels(l, id);
    *out = SNI_NO_ID;
    if (f->real != SNI_NO_ID || !f->parts || l->channels[f->parts[0].value] != channels)
        return SN_OK;
    bool *seen = SNI_NEW_ARRAY(&l->temp, bool, (size_t)channels);
    if (!seen) return sni_fail_memory(l->r->err);
    for (int64_t c = 0; c < channels; c++) {
        if (f->parts[c].value != f->parts[0].value || seen[f->parts[c].channel]) return SN_OK;
        seen[f->parts[c].channel] = true;
    }
    *out = f->parts[0].value;
    return SN_OK;
}

/* A constant whose rows, one for each channel, go where the channels of a list are. */
static sn_status shuffled_const(sni_layout_pass *l, int32_t id, const sni_channel *parts,
                                int32_t *out) {
    const sni_tensor *t;
    float *to;
    SN_TRY(sni_const_load(sni_layout_const(l, id), &t, l->r->err));
    SN_TRY(sni_layout_const_floats(l, t->rank, t->dims, &to, out));
    int64_t each = t->count / t->dims[0];
    for (int64_t c = 0; c < t->dims[0]; c++)
        memcpy(to + parts[c].channel * each, (const float *)t->data + c * each,
               (size_t)each * sizeof *to);
    return SN_OK;
}

sn_status sni_layout_shuffled_conv(sni_layout_pass *l, sni_node *n, bool *done) {
    enum { MOST = 5 };
    const sni_channel *from = l->variants[n->in[0]].parts;
    int64_t channels = sni_layout_channels(l, n->in[0]);
    const int64_t *w = sni_layout_const(l, n->in[1])->tensor.dims;
    int32_t in[MOST], out;
    sni_channel *parts;
    *done = false;
    if (!sni_layout_has(l, n->in[0]) || w[1] != 1 || w[0] != channels || n->n_in > MOST ||
        sni_layout_channels(l, n->out[0]) != channels || (n->n_in > 3 && n->in[3] != SNI_NO_ID))
        return SN_OK;
    SN_TRY(shuffled_value(l, n->in[0], &in[0]));
    if (in[0] == SNI_NO_ID) return SN_OK;
    for (int32_t i = 1; i < n->n_in; i++) {
        in[i] = n->in[i];
        if (in[i] != SNI_NO_ID) SN_TRY(shuffled_const(l, n->in[i], from, &in[i]));
    }
    sni_attr block = sni_attr_of_int("block", l->block);
    sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                            .type = "BlockedConv",
                            .in = in,
                            .n_in = n->n_in,
                            .like = n,
                            .attrs = &block,
                            .n_attrs = 1};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    sni_layout_set_channels(l, out, channels);
    SN_TRY(new_parts(l, n->out[0], &parts));
    for (int64_t c = 0; c < channels; c++) parts[c] = (sni_channel){out, from[c].channel};
    set_parts(l, n->out[0], parts);
    bury(l, n);
    *done = true;
    return SN_OK;
}
