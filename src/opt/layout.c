/* layout.c - the blocked layout over whole bodies of convolutional networks, with conversions at
 * their borders only. */
#include "opt/layout.h"

#include "base/cpu.h"

/* ---- Looking ---- */

int64_t sni_layout_channels(const sni_layout_pass *l, int32_t id) {
    const sni_value *v = sni_graph_value(l->g, id);
    if (!v || v->type.kind != SN_KIND_TENSOR || v->type.dtype != SN_FLOAT32 || !v->type.has_shape ||
        (v->type.rank != 3 && v->type.rank != 4) || v->type.dims[1] < 1 ||
        v->type.dims[1] > INT32_MAX)
        return 0;
    return v->type.dims[1];
}

sni_channel sni_layout_part(const sni_layout_pass *l, int32_t id, int64_t channel) {
    const sni_layout_variant *f = &l->forms[id];
    return f->real != SNI_NO_ID ? (sni_channel){f->real, (int32_t)channel} : f->parts[channel];
}

sni_const *sni_layout_const(const sni_layout_pass *l, int32_t id) {
    const sni_value *v = sni_graph_value(l->g, id);
    return v && !v->is_input ? v->constant : NULL;
}

bool sni_layout_ints(const sni_layout_pass *l, int32_t id, const int64_t **v, int64_t *count) {
    sni_const *c = sni_layout_const(l, id);
    const sni_value *value = sni_graph_value(l->g, id);
    const sni_tensor *t;
    if (c && c->tensor.dtype == SN_INT64 && c->tensor.rank <= 1 &&
        sni_const_load(c, &t, NULL) == SN_OK) {
        *v = t->data;
        *count = t->count;
        return true;
    }
    if (!value || value->is_input || !value->shape_value || value->type.dtype != SN_INT64)
        return false;
    for (int32_t i = 0; i < value->shape_count; i++)
        if (sni_dim_is_symbol(value->shape_value[i])) return false;
    *v = value->shape_value;
    *count = value->shape_count;
    return true;
}

/* ---- Making ---- */

sn_status sni_layout_emit(sni_layout_pass *l, const sni_node *before, const sni_layout_node *node,
                          int32_t *out) {
    sni_graph *g = l->g;
    sn_error *err = l->r->err;
    sni_value *v;
    sni_node *n;
    SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, err));
    SN_TRY(sni_graph_add_node(g, before ? before->id : SNI_NO_ID,
                              &(sni_new_node){sni_str_of(node->domain), sni_str_of(node->type),
                                              node->in, node->n_in, &v->id, 1},
                              &n, err));
    for (int32_t i = 0; node->like && i < node->like->n_attrs; i++)
        SN_TRY(sni_node_set_attr(g, n, &node->like->attrs[i], err));
    for (int32_t i = 0; i < node->n_attrs; i++)
        SN_TRY(sni_node_set_attr(g, n, &node->attrs[i], err));
    if (node->like) n->name = node->like->name;
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(err, SN_INTERNAL, "there is no %s", node->type);
    n->version = sni_op_version(n->op);
    SN_TRY(sni_node_bind(g, n, err));
    *out = v->id;
    return SN_OK;
}

sn_status sni_layout_list(sni_layout_pass *l, const char *name, const int64_t *v, size_t count,
                          sni_attr *out) {
    int64_t *copy = SNI_NEW_ARRAY(&l->r->store->arena, int64_t, count ? count : 1);
    if (!copy) return sni_fail_memory(l->r->err);
    for (size_t i = 0; i < count; i++) copy[i] = v[i];
    *out =
        (sni_attr){.name = sni_str_of(name), .kind = SNI_ATTR_INTS, .count = count, .u.ints = copy};
    return SN_OK;
}

static sn_status add_const(sni_layout_pass *l, sn_dtype dtype, int rank, const int64_t *dims,
                           void **data, int32_t *out) {
    sni_const *c;
    sni_value *v;
    SN_TRY(sni_const_new(l->r->store, dtype, rank, dims, &c, l->r->err));
    SN_TRY(sni_graph_add_const(l->g, (sni_str){0}, c, &v, l->r->err));
    *data = c->tensor.data;
    *out = v->id;
    return SN_OK;
}

sn_status sni_layout_const_ints(sni_layout_pass *l, const int64_t *v, int64_t count, int32_t *out) {
    void *data;
    SN_TRY(add_const(l, SN_INT64, 1, &count, &data, out));
    if (count) memcpy(data, v, (size_t)count * sizeof *v);
    return SN_OK;
}

sn_status sni_layout_const_floats(sni_layout_pass *l, int rank, const int64_t *dims, float **data,
                                  int32_t *out) {
    void *made;
    SN_TRY(add_const(l, SN_FLOAT32, rank, dims, &made, out));
    *data = made;
    return SN_OK;
}

sn_status sni_layout_const_channels(sni_layout_pass *l, const float *v, int64_t channels,
                                    float tail, int32_t *out) {
    int64_t blocks = (channels + l->block - 1) / l->block;
    int64_t dims[5] = {1, blocks, 1, 1, l->block};
    void *data;
    SN_TRY(add_const(l, SN_FLOAT32, 5, dims, &data, out));
    for (int64_t i = 0; i < blocks * l->block; i++) ((float *)data)[i] = i < channels ? v[i] : tail;
    return SN_OK;
}

/* ---- Lists of channels become values ---- */

/* Different values among the channels of a list, in order, and how many channels each has. */
typedef struct sources {
    int32_t *ids;
    int64_t *sizes;
    int32_t n;
} sources;

/* True if the list is whole blocked values one after the other, which can be put together block by
 * block. */
static bool is_concat(const sni_layout_pass *l, const sni_channel *parts, int64_t count,
                      const sources *from) {
    int64_t at = 0;
    for (int32_t i = 0; i < from->n; i++) {
        if (at % l->block || at + from->sizes[i] > count) return false;
        for (int64_t c = 0; c < from->sizes[i]; c++)
            if (parts[at + c].value != from->ids[i] || parts[at + c].channel != c) return false;
        at += from->sizes[i];
    }
    return at == count;
}

/* `out` has space for as many as the list is long. */
static void find_sources(const sni_layout_pass *l, const sni_channel *parts, int64_t count,
                         sources *out) {
    out->n = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t s = 0;
        while (s < out->n && out->ids[s] != parts[i].value) s++;
        if (s < out->n) continue;
        out->ids[out->n] = parts[i].value;
        out->sizes[out->n++] = l->channels[parts[i].value];
    }
}

static sn_status emit_gather(sni_layout_pass *l, const sni_channel *parts, int64_t count,
                             const sources *from, const sni_node *before, int32_t *out) {
    int64_t *indices = SNI_NEW_ARRAY(&l->temp, int64_t, (size_t)count);
    if (!indices) return sni_fail_memory(l->r->err);
    for (int64_t i = 0; i < count; i++) {
        int64_t first = 0;
        for (int32_t s = 0; from->ids[s] != parts[i].value; s++) first += from->sizes[s];
        indices[i] = first + parts[i].channel;
    }
    sni_attr attrs[3] = {sni_attr_of_int("block", l->block)};
    SN_TRY(sni_layout_list(l, "channels", from->sizes, (size_t)from->n, &attrs[1]));
    SN_TRY(sni_layout_list(l, "indices", indices, (size_t)count, &attrs[2]));
    sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                            .type = "GatherChannels",
                            .in = from->ids,
                            .n_in = from->n,
                            .attrs = attrs,
                            .n_attrs = 3};
    return sni_layout_emit(l, before, &node, out);
}

static sn_status make_real(sni_layout_pass *l, const sni_channel *parts, int64_t count,
                           const sni_node *before, int32_t *out) {
    sources from = {.ids = SNI_NEW_ARRAY(&l->temp, int32_t, (size_t)count),
                    .sizes = SNI_NEW_ARRAY(&l->temp, int64_t, (size_t)count)};
    if (!from.ids || !from.sizes) return sni_fail_memory(l->r->err);
    find_sources(l, parts, count, &from);
    if (!is_concat(l, parts, count, &from)) return emit_gather(l, parts, count, &from, before, out);
    sni_attr axis = sni_attr_of_int("axis", 1);
    sni_layout_node node = {.domain = "",
                            .type = "Concat",
                            .in = from.ids,
                            .n_in = from.n,
                            .attrs = &axis,
                            .n_attrs = 1};
    return sni_layout_emit(l, before, &node, out);
}

void sni_layout_set_channels(sni_layout_pass *l, int32_t blocked, int64_t channels) {
    if (blocked < l->n_channels) l->channels[blocked] = channels;
}

sn_status sni_layout_need(sni_layout_pass *l, int32_t id, const sni_node *before, int32_t *out) {
    sni_layout_variant *f = &l->forms[id];
    if (f->real == SNI_NO_ID && f->parts) {
        SN_TRY(make_real(l, f->parts, sni_layout_channels(l, id), before, &f->real));
    } else if (f->real == SNI_NO_ID) {
        sni_attr block = sni_attr_of_int("block", l->block);
        sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                                .type = "ToBlocked",
                                .in = &id,
                                .n_in = 1,
                                .attrs = &block,
                                .n_attrs = 1};
        SN_TRY(sni_layout_emit(l, before, &node, &f->real));
    }
    sni_layout_set_channels(l, f->real, sni_layout_channels(l, id));
    *out = f->real;
    return SN_OK;
}

void sni_layout_done(sni_layout_pass *l, sni_node *n, int32_t real) {
    l->forms[n->out[0]].real = real;
    sni_layout_set_channels(l, real, sni_layout_channels(l, n->out[0]));
    l->dead[n->id] = true;
    l->r->count++;
}

/* ---- The pass ---- */

/* The node before which users of a list of channels find it real. It became so where a blocked user
 * needed it, which may be after a plain one: that is moved to `before`. */
static const sni_node *behind_list(sni_layout_pass *l, int32_t id, const sni_node *before) {
    const sni_layout_variant *f = &l->forms[id];
    if (!f->parts || f->real == SNI_NO_ID) return before;
    sni_node *maker = sni_value_producer(l->g, l->g->values[f->real]);
    if (maker == before) return sni_graph_next(l->g, maker);
    sni_graph_move_node(l->g, maker, before->id);
    return before;
}

/* Gives the users of a dead node's output, which are plain nodes and outputs of the graph, a plain
 * tensor again. */
static sn_status restore(sni_layout_pass *l, const sni_node *n, int32_t id) {
    const sni_node *after = sni_graph_next(l->g, n);
    int32_t blocked, plain;
    if (id == SNI_NO_ID || l->g->values[id]->use_count == 0) return SN_OK;
    after = behind_list(l, id, after);
    SN_TRY(sni_layout_need(l, id, after, &blocked));
    const sni_attr attrs[3] = {sni_attr_of_int("block", l->block),
                               sni_attr_of_int("channels", sni_layout_channels(l, id)),
                               sni_attr_of_int("line", 1)};
    sni_layout_node node = {.domain = SNI_SINTER_DOMAIN,
                            .type = "FromBlocked",
                            .in = &blocked,
                            .n_in = 1,
                            .attrs = attrs,
                            .n_attrs = sni_layout_is_line(l, id) ? 3 : 2};
    SN_TRY(sni_layout_emit(l, after, &node, &plain));
    return sni_graph_replace_uses(l->g, id, plain, l->r->err);
}

/* The blocked form of a dead node's output is known by its name from now on. */
static void keep_name(const sni_layout_pass *l, int32_t id) {
    if (id == SNI_NO_ID || l->forms[id].real == SNI_NO_ID) return;
    sni_value *blocked = l->g->values[l->forms[id].real];
    if (!blocked || blocked->stands_for.n) return;
    blocked->stands_for = l->g->values[id]->name;
    blocked->channels = sni_layout_channels(l, id);
}

/* Removes dead nodes, last ones first. */
static sn_status sweep(sni_layout_pass *l) {
    for (int32_t id = l->g->last; id != SNI_NO_ID;) {
        sni_node *n = l->g->nodes[id];
        id = n->prev;
        if (n->id >= l->n_nodes || !l->dead[n->id]) continue;
        for (int32_t i = 0; i < n->n_out; i++) {
            SN_TRY(restore(l, n, n->out[i]));
            keep_name(l, n->out[i]);
        }
        sni_graph_remove_node(l->g, n);
    }
    sni_graph_remove_dead_values(l->g);
    return SN_OK;
}

static sn_status run(sni_layout_pass *l) {
    l->forms = SNI_NEW_ARRAY(&l->temp, sni_layout_variant, (size_t)l->n_values + 1);
    l->dead = SNI_NEW_ARRAY(&l->temp, bool, (size_t)l->n_nodes + 1);
    l->n_channels = l->n_values + 24 * l->n_nodes; /* no handler makes as many values */
    l->channels = SNI_NEW_ARRAY(&l->temp, int64_t, (size_t)l->n_channels + 1);
    if (!l->forms || !l->dead || !l->channels) return sni_fail_memory(l->r->err);
    for (int32_t i = 0; i < l->n_values; i++) l->forms[i].real = SNI_NO_ID;
    for (sni_node *n = sni_graph_first(l->g); n; n = sni_graph_next(l->g, n)) {
        if (n->id >= l->n_nodes || l->dead[n->id]) continue;
        sni_layout_fn handle = sni_layout_handler(n);
        if (handle) SN_TRY(handle(l, n));
    }
    return sweep(l);
}

sn_status sni_pass_layout(sni_rewrite *r) {
    sni_layout_pass l = {.r = r,
                         .g = r->graph,
                         .block = sni_cpu_block(),
                         .n_values = r->graph->value_count,
                         .n_nodes = r->graph->node_count};
    sni_arena_init(&l.temp, 0);
    sn_status status = run(&l);
    sni_arena_free(&l.temp);
    return status;
}
