/* layout_last.c - conversions between blocked layout and channels that are the last axis: a
 * Transpose after FromBlocked, or before ToBlocked, becomes part of it. */
#include "ops/sinter/blocked.h"
#include "opt/opt.h"

static bool is_sinter(const sni_node *n, const char *type) {
    return n && sni_str_is(n->domain, SNI_SINTER_DOMAIN) && sni_str_is(n->type, type);
}

/* True for a Transpose that does this to pictures, or swaps channels and places of lines. */
static bool transposes(const sni_node *n, const int64_t perm[4]) {
    static const int64_t line[3] = {0, 2, 1};
    if (!n || n->domain.n != 0 || !sni_str_is(n->type, "Transpose")) return false;
    const sni_attr *a = sni_node_attr(n, "perm");
    if (!a || a->kind != SNI_ATTR_INTS || (a->count != 3 && a->count != 4)) return false;
    const int64_t *wanted = a->count == 3 ? line : perm;
    for (size_t i = 0; i < a->count; i++)
        if (a->u.ints[i] != wanted[i]) return false;
    return true;
}

static sni_node *producer(const sni_graph *g, const sni_node *n) {
    const sni_value *v = sni_graph_value(g, n->in[0]);
    return sni_value_producer(g, v);
}

/* `conversion` again, of `in`, with its plain side turned, in the place of node `at`. */
static sn_status replace(sni_rewrite *r, sni_node *at, const sni_node *conversion, int32_t in) {
    sni_graph *g = r->graph;
    sni_attr last = sni_attr_of_int("channels_last", 1);
    sni_value *v;
    sni_node *n;
    SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, r->err));
    SN_TRY(sni_graph_add_node(
        g, at->id, &(sni_new_node){conversion->domain, conversion->type, &in, 1, &v->id, 1}, &n,
        r->err));
    for (int32_t i = 0; i < conversion->n_attrs; i++)
        SN_TRY(sni_node_set_attr(g, n, &conversion->attrs[i], r->err));
    SN_TRY(sni_node_set_attr(g, n, &last, r->err));
    n->name = at->name;
    n->op = conversion->op;
    n->version = conversion->version;
    SN_TRY(sni_node_bind(g, n, r->err));
    SN_TRY(sni_graph_replace_uses(g, at->out[0], v->id, r->err));
    sni_graph_remove_node(g, at);
    r->count++;
    return SN_OK;
}

static bool is_plain(const sni_node *conversion) {
    return !((const sni_blocked_params *)conversion->params)->channels_last;
}

sn_status sni_pass_layout_last(sni_rewrite *r) {
    static const int64_t to_last[4] = {0, 2, 3, 1}, from_last[4] = {0, 3, 1, 2};
    sni_node *next;
    for (sni_node *n = sni_graph_first(r->graph); n; n = next) {
        next = sni_graph_next(r->graph, n);
        if (transposes(n, to_last)) {
            sni_node *from = producer(r->graph, n);
            if (is_sinter(from, "FromBlocked") && is_plain(from))
                SN_TRY(replace(r, n, from, from->in[0]));
        } else if (is_sinter(n, "ToBlocked") && is_plain(n)) {
            sni_node *transpose = producer(r->graph, n);
            if (transposes(transpose, from_last)) SN_TRY(replace(r, n, n, transpose->in[0]));
        }
    }
    return SN_OK;
}
