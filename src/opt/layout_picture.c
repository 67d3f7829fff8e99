/* layout_picture.c - operators over the pictures of blocked values: pools, reductions, Resize, Pad.
 */
#include "opt/layout.h"

#include "ops/nn/resize.h"

/* ---- Lists of axes ---- */

sn_status sni_layout_longer_lists(sni_layout_pass *l, const sni_node *n, bool pools,
                                  sni_attr out[SNI_LAYOUT_LISTS], int32_t *count) {
    static const char *const names[SNI_LAYOUT_LISTS] = {"kernel_shape", "strides", "dilations",
                                                        "pads"};
    bool line = sni_layout_is_line(l, n->in[0]);
    *count = 0;
    for (int i = 0; i < SNI_LAYOUT_LISTS; i++) {
        const sni_attr *a = sni_node_attr(n, names[i]);
        int64_t v[6], more = i < 3;
        size_t k = 0;
        if (!a || a->kind != SNI_ATTR_INTS || !a->count || a->count > (line ? 2 : 4)) continue;
        for (size_t j = 0; j < a->count; j++) {
            if (line) v[k++] = more;
            v[k++] = a->u.ints[j];
            if (pools && (line || j % 2 == 1)) v[k++] = more;
        }
        SN_TRY(sni_layout_list(l, names[i], v, k, &out[(*count)++]));
    }
    return SN_OK;
}

/* ---- Pools ---- */

sn_status sni_layout_pool(sni_layout_pass *l, sni_node *n) {
    sni_attr attrs[SNI_LAYOUT_LISTS];
    int32_t n_attrs, in, out;
    if (!sni_layout_has(l, n->in[0]) || !sni_layout_channels(l, n->out[0]) || n->n_out != 1)
        return SN_OK;
    SN_TRY(sni_layout_longer_lists(l, n, true, attrs, &n_attrs));
    SN_TRY(sni_layout_need(l, n->in[0], n, &in));
    sni_layout_node node = {.domain = "",
                            .type = n->op->name,
                            .in = &in,
                            .n_in = 1,
                            .like = n,
                            .attrs = attrs,
                            .n_attrs = n_attrs};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    sni_layout_done(l, n, out);
    return SN_OK;
}

sn_status sni_layout_global_pool(sni_layout_pass *l, sni_node *n) {
    int32_t in[2], out;
    if (!sni_layout_has(l, n->in[0]) || !sni_layout_channels(l, n->out[0])) return SN_OK;
    SN_TRY(sni_layout_need(l, n->in[0], n, &in[0]));
    SN_TRY(sni_layout_const_ints(l, (int64_t[]){2, 3}, 2, &in[1]));
    bool mean = sni_str_is(n->type, "GlobalAveragePool");
    sni_layout_node node = {
        .domain = "", .type = mean ? "ReduceMean" : "ReduceMax", .in = in, .n_in = 2};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    sni_layout_done(l, n, out);
    return SN_OK;
}

/* The picture of a blocked value reduced to one pixel, as (N, C). */
static sn_status reduce_to_matrix(sni_layout_pass *l, sni_node *n, int32_t reduced) {
    const sni_attr attrs[2] = {sni_attr_of_int("block", l->block),
                               sni_attr_of_int("channels", sni_layout_channels(l, n->in[0]))};
    sni_layout_node plain = {.domain = SNI_SINTER_DOMAIN,
                             .type = "FromBlocked",
                             .in = &reduced,
                             .n_in = 1,
                             .attrs = attrs,
                             .n_attrs = 2};
    int32_t in[2], out;
    SN_TRY(sni_layout_emit(l, n, &plain, &in[0]));
    SN_TRY(sni_layout_const_ints(l, (int64_t[]){2, 3}, 2, &in[1]));
    sni_layout_node matrix = {.domain = "", .type = "Squeeze", .in = in, .n_in = 2};
    SN_TRY(sni_layout_emit(l, n, &matrix, &out));
    SN_TRY(sni_graph_replace_uses(l->g, n->out[0], out, l->r->err));
    l->dead[n->id] = true;
    l->r->count++;
    return SN_OK;
}

/* True if these are the axes of a picture, or of a line. */
static bool are_picture(const int64_t *axes, int64_t count, int rank) {
    bool seen[5] = {0};
    if (count != rank - 2) return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (axis < 2 || axis >= rank || seen[axis]) return false;
        seen[axis] = true;
    }
    return true;
}

/* ReduceMean and ReduceMax over the picture. */
sn_status sni_layout_reduce(sni_layout_pass *l, sni_node *n) {
    const int64_t *axes;
    int64_t count;
    const sni_attr *keep = sni_node_attr(n, "keepdims");
    if (!sni_layout_has(l, n->in[0]) || !sni_layout_given(n, 1) ||
        !sni_layout_ints(l, n->in[1], &axes, &count))
        return SN_OK;
    int rank = l->g->values[n->in[0]]->type.rank;
    if (!are_picture(axes, count, rank)) return SN_OK;
    int32_t in[2], out;
    SN_TRY(sni_layout_need(l, n->in[0], n, &in[0]));
    SN_TRY(sni_layout_const_ints(l, (int64_t[]){2, 3}, 2, &in[1]));
    sni_layout_node node = {.domain = "", .type = n->op->name, .in = in, .n_in = 2};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    if (keep && keep->u.i == 0) return reduce_to_matrix(l, n, out);
    sni_layout_done(l, n, out);
    return SN_OK;
}

/* ---- Resize and Pad ---- */

/* Elements [2, 4) of a list of four sizes, whose first two are those of the value `x`; SNI_NO_ID if
 * that is not certain. */
static sn_status picture_sizes(sni_layout_pass *l, sni_node *n, int32_t x, int32_t sizes,
                               int32_t *out) {
    const sni_value *v = sni_graph_value(l->g, sizes);
    const sni_dim *dims = l->g->values[x]->type.dims;
    const int64_t *known;
    int64_t count;
    *out = SNI_NO_ID;
    if (sni_layout_ints(l, sizes, &known, &count)) {
        if (count != 4 || known[0] != dims[0] || known[1] != dims[1]) return SN_OK;
        return sni_layout_const_ints(l, known + 2, 2, out);
    }
    if (!v || !v->shape_value || v->shape_count != 4 || v->type.dtype != SN_INT64 ||
        v->shape_value[0] != dims[0] || v->shape_value[1] != dims[1])
        return SN_OK;
    int32_t in[3] = {sizes};
    SN_TRY(sni_layout_const_ints(l, (int64_t[]){2}, 1, &in[1]));
    SN_TRY(sni_layout_const_ints(l, (int64_t[]){4}, 1, &in[2]));
    sni_layout_node node = {.domain = "", .type = "Slice", .in = in, .n_in = 3};
    return sni_layout_emit(l, n, &node, out);
}

/* The last two of four constant scales, the first two of which are 1; SNI_NO_ID if they are not. */
static sn_status picture_scales(sni_layout_pass *l, int32_t scales, int32_t *out) {
    sni_const *c = sni_layout_const(l, scales);
    const sni_tensor *t;
    float *data;
    *out = SNI_NO_ID;
    if (!c || c->tensor.count != 4 || c->tensor.dtype != SN_FLOAT32) return SN_OK;
    SN_TRY(sni_const_load(c, &t, l->r->err));
    const float *v = t->data;
    if (v[0] != 1 || v[1] != 1) return SN_OK;
    SN_TRY(sni_layout_const_floats(l, 1, (int64_t[]){2}, &data, out));
    memcpy(data, v + 2, 2 * sizeof *data);
    return SN_OK;
}

/* Pixels of a value; 0 if they are not known. */
static int64_t pixels_of(const sni_layout_pass *l, int32_t id) {
    const sni_type *t = &sni_graph_value(l->g, id)->type;
    bool known = t->has_shape && t->rank == 4 && sni_dim_known(t->dims[2]) &&
                 sni_dim_known(t->dims[3]) && t->dims[2] < INT32_MAX && t->dims[3] < INT32_MAX;
    return known ? t->dims[2] * t->dims[3] : 0;
}

/* True if what is resized grows and nobody goes on with it in blocked layout: the small picture is
 * the one to convert. */
static bool grows_for_plain(const sni_layout_pass *l, const sni_node *n) {
    const sni_value *v = sni_graph_value(l->g, n->out[0]);
    for (int32_t i = 0; i < v->use_count; i++) {
        const sni_node *user = sni_graph_node(l->g, v->uses[i].node);
        if (user && sni_layout_handler(user)) return false;
    }
    return pixels_of(l, n->in[0]) < pixels_of(l, n->out[0]);
}

/* Resize over the picture alone. */
sn_status sni_layout_resize(sni_layout_pass *l, sni_node *n) {
    const sni_resize_params *p = n->params;
    if (grows_for_plain(l, n)) return SN_OK;
    int32_t by = sni_layout_given(n, 2) ? 2 : 3,
            in[4] = {SNI_NO_ID, SNI_NO_ID, SNI_NO_ID, SNI_NO_ID}, out;
    if (!sni_layout_has(l, n->in[0]) || !sni_layout_channels(l, n->out[0]) ||
        sni_layout_is_line(l, n->in[0]) || !sni_layout_given(n, by) || p->axes.n ||
        p->coord == SNI_RESIZE_CROP || p->keep_aspect)
        return SN_OK;
    if (by == 2)
        SN_TRY(picture_scales(l, n->in[by], &in[by]));
    else
        SN_TRY(picture_sizes(l, n, n->in[0], n->in[by], &in[by]));
    if (in[by] == SNI_NO_ID) return SN_OK;
    sni_attr axes;
    SN_TRY(sni_layout_list(l, "axes", (int64_t[]){2, 3}, 2, &axes));
    SN_TRY(sni_layout_need(l, n->in[0], n, &in[0]));
    sni_layout_node node = {.domain = "",
                            .type = "Resize",
                            .in = in,
                            .n_in = by + 1,
                            .like = n,
                            .attrs = &axes,
                            .n_attrs = 1};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    sni_layout_done(l, n, out);
    return SN_OK;
}

/* Pad of the picture's borders. */
sn_status sni_layout_pad(sni_layout_pass *l, sni_node *n) {
    const int64_t *pads;
    int64_t count;
    if (!sni_layout_has(l, n->in[0]) || !sni_layout_channels(l, n->out[0]) ||
        sni_layout_given(n, 3) || !sni_layout_given(n, 1) ||
        !sni_layout_ints(l, n->in[1], &pads, &count))
        return SN_OK;
    int64_t rank = l->g->values[n->in[0]]->type.rank, longer[10] = {0};
    if (count != 2 * rank || pads[0] || pads[1] || pads[rank] || pads[rank + 1]) return SN_OK;
    for (int64_t i = 2; i < rank; i++) {
        longer[i + 4 - rank] = pads[i];
        longer[i + 9 - rank] = pads[rank + i];
    }
    int32_t in[3] = {SNI_NO_ID, SNI_NO_ID, sni_layout_given(n, 2) ? n->in[2] : SNI_NO_ID}, out;
    SN_TRY(sni_layout_need(l, n->in[0], n, &in[0]));
    SN_TRY(sni_layout_const_ints(l, longer, 10, &in[1]));
    sni_layout_node node = {
        .domain = "", .type = "Pad", .in = in, .n_in = sni_layout_given(n, 2) ? 3 : 2, .like = n};
    SN_TRY(sni_layout_emit(l, n, &node, &out));
    sni_layout_done(l, n, out);
    return SN_OK;
}
