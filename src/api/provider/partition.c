/* partition.c - claims become parts, and parts become nodes. */
#include "api/provider/provider.h"

#include "graph/convex.h"
#include "graph/part.h"
#include "ops/core/infer_graph.h"
#include "ops/sinter/group.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct divider {
    sni_engines *engines;
    size_t index; /* of the engine that is asked */
    sni_engine *engine;
    sni_graph *g;
    const sn_ep_graph *offer;
    sn_ep_claims claims;
    int32_t *place; /* by node id: its index in the offer */
    bool *member;   /* by node id: of the part at hand */
    sn_error *err;
} divider;

static sni_share *share(divider *d) {
    return &d->engines->shares[d->index];
}

/* ---- One part ---- */

/* A Part in the place of its members, which go. */
static sn_status replace(divider *d, const sni_cutout *cut, sni_node *const *members, size_t count,
                         sni_provider_part *part) {
    sni_graph *g = d->g;
    sni_arena *arena = &g->store->arena;
    int32_t *out = SNI_NEW_ARRAY(arena, int32_t, cut->n_out), index;
    sni_node *n;
    if (!out) return sni_fail_memory(d->err);
    for (int32_t i = 0; i < cut->n_out; i++) {
        sni_value *old = g->values[cut->out[i]], *v;
        SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, d->err));
        if (!sni_type_copy(&v->type, &old->type, arena)) return sni_fail_memory(d->err);
        v->name = old->name;
        old->name = (sni_str){0};
        out[i] = v->id;
    }
    sni_new_node wanted = {
        SNI_STR("ai.sinter"), SNI_STR("Part"), cut->in, cut->n_in, out, cut->n_out};
    SN_TRY(sni_graph_add_node(g, members[0]->id, &wanted, &n, d->err));
    n->name = sni_arena_str(arena, sni_str_of(part->name));
    if (!n->name.p) return sni_fail_memory(d->err);
    n->op = &sni_op_sinter_part;
    n->version = 1;
    n->params = part;
    SN_TRY(sni_node_add_subgraph(g, n, cut->body, &index, d->err));
    for (int32_t i = 0; i < cut->n_out; i++)
        SN_TRY(sni_graph_replace_uses(g, cut->out[i], out[i], d->err));
    for (size_t i = count; i-- > 0;) sni_graph_remove_node(g, members[i]);
    return sni_graph_sort(g, d->err);
}

static sn_status refuse_all(divider *d, sni_node *const *members, size_t count,
                            const char *reason) {
    for (size_t i = 0; i < count; i++) {
        d->claims.claim[d->place[members[i]->id]] = SNI_UNCLAIMED;
        d->claims.reasons[d->place[members[i]->id]] = reason;
    }
    return SN_OK;
}

/* A name for people: where the part begins and ends. */
static void name_part(divider *d, sni_node *const *members, size_t count, char *name, size_t size) {
    sni_str a = sni_node_label(d->g, members[0]), b = sni_node_label(d->g, members[count - 1]);
    if (count == 1)
        snprintf(name, size, "%.*s", SNI_FMT(a));
    else
        snprintf(name, size, "%.*s .. %.*s (%zu nodes)", SNI_FMT(a), SNI_FMT(b), count);
}

/* Makes a part of the members, in order of the graph, if they are fit to be one. */
static sn_status make_part(divider *d, sni_node *const *members, size_t count) {
    bool convex;
    const sni_node *bad = NULL;
    SN_TRY(sni_convex_check(d->g, d->member, &convex, &bad, d->err));
    char name[256];
    name_part(d, members, count, name, sizeof name);
    if (!convex) {
        sni_engine_log(d->engine, SN_LOG_WARNING,
                       "part '%s' is not convex: '%.*s' is not in it, reads what it makes, and is "
                       "needed in it",
                       name, SNI_FMT(sni_node_label(d->g, bad)));
        return refuse_all(d, members, count, "its part is not convex");
    }
    sni_cutout cut;
    SN_TRY(sni_graph_cut_out(d->g, members, count, &cut, d->err));
    const sn_op_node **views = SNI_NEW_ARRAY(d->offer->arena, const sn_op_node *, count);
    if (!views) return sni_fail_memory(d->err);
    for (size_t i = 0; i < count; i++) views[i] = &d->offer->views[d->place[members[i]->id]];
    sni_compile c = {.engine = d->engine,
                     .body = cut.body,
                     .members = views,
                     .count = count,
                     .name = name,
                     .arena = d->offer->arena};
    sni_provider_part *part = NULL;
    SN_TRY(sni_compile_part(&c, &part, d->err));
    if (!part) return refuse_all(d, members, count, "its part could not be compiled");
    SN_TRY(replace(d, &cut, members, count, part));
    if (d->engines->reported) return SN_OK;
    share(d)->nodes += count;
    share(d)->parts++;
    return SN_OK;
}

/* ---- Which parts ---- */

static bool computes(const sni_node *n) {
    return n->op && n->op->macs;
}

/* Whether a part is worth the way there and back: so many nodes as the user says, or else one that
 * multiplies matrices, three others, or all that there is. */
static bool is_worth(const divider *d, sni_node *const *members, size_t count) {
    if (d->engine->min_nodes) return count >= (size_t)d->engine->min_nodes;
    if (count >= 3) return true;
    for (size_t i = 0; i < count; i++)
        if (computes(members[i])) return true;
    for (size_t i = 0; i < d->offer->count; i++) {
        bool here = d->member[d->offer->nodes[i]->id];
        if (!here && !d->offer->vetoes[i]) return false;
    }
    return true;
}

/* The nodes for which in[id] is `number`, in order, marked as members. */
static size_t gather(divider *d, const int32_t *in, int32_t number, sni_node **members) {
    size_t count = 0;
    memset(d->member, 0, (size_t)d->g->node_count * sizeof *d->member);
    for (sni_node *n = sni_graph_first(d->g); n; n = sni_graph_next(d->g, n)) {
        if (in[n->id] != number) continue;
        d->member[n->id] = true;
        members[count++] = n;
    }
    return count;
}

/* What the provider wants to be one part each. Nodes made meanwhile are in no claim. */
static sn_status make_exact(divider *d, int32_t *in, sni_node **members, int32_t n_nodes) {
    for (int32_t id = 0; id < n_nodes; id++) {
        int32_t at = d->place[id];
        in[id] = at >= 0 && d->claims.claim[at] != SNI_UNCLAIMED ? d->claims.claim[at] : SNI_NO_ID;
    }
    for (int32_t claim = 0; claim < d->claims.count; claim++) {
        if (!d->claims.exact[claim]) continue;
        size_t count = gather(d, in, claim, members);
        if (count) SN_TRY(make_part(d, members, count));
    }
    return SN_OK;
}

/* Parts of the nodes that the provider takes in any company. */
static sn_status make_free(divider *d, int32_t *in, sni_node **members, bool *wanted,
                           int32_t n_nodes) {
    int32_t count;
    for (int32_t id = 0; id < n_nodes; id++) {
        int32_t at = d->place[id], claim = at >= 0 ? d->claims.claim[at] : SNI_UNCLAIMED;
        wanted[id] = claim != SNI_UNCLAIMED && !d->claims.exact[claim] && !d->g->nodes[id]->removed;
    }
    SN_TRY(sni_convex_parts(d->g, wanted, in, &count, d->err));
    for (int32_t part = 0; part < count; part++) {
        size_t n = gather(d, in, part, members);
        if (!n) continue;
        if (is_worth(d, members, n))
            SN_TRY(make_part(d, members, n));
        else
            SN_TRY(refuse_all(d, members, n, "too few nodes for a part"));
    }
    return SN_OK;
}

/* ---- One engine and one graph ---- */

static sn_status report(divider *d) {
    for (size_t i = 0; i < d->offer->count && !d->engines->reported; i++) {
        if (d->claims.claim[i] != SNI_UNCLAIMED) continue;
        const char *why = d->claims.reasons[i];
        share(d)->refused++;
        if (sni_engines_refuse(d->engines, d->engine, d->g, d->offer->nodes[i],
                               why ? why : "it was not claimed") != SN_OK)
            return sni_fail_memory(d->err);
    }
    return SN_OK;
}

static sn_status divide(divider *d) {
    sni_graph *g = d->g;
    /* Each part is one node more than the graph had. */
    size_t nodes = (size_t)g->node_count * 2 + 1;
    int32_t n_nodes = g->node_count;
    sni_arena *arena = d->offer->arena;
    d->place = SNI_NEW_ARRAY(arena, int32_t, nodes);
    d->member = SNI_NEW_ARRAY(arena, bool, nodes);
    int32_t *in = SNI_NEW_ARRAY(arena, int32_t, nodes);
    bool *wanted = SNI_NEW_ARRAY(arena, bool, nodes);
    sni_node **members = SNI_NEW_ARRAY(arena, sni_node *, nodes);
    if (!d->place || !d->member || !in || !wanted || !members) return sni_fail_memory(d->err);
    for (size_t i = 0; i < nodes; i++) d->place[i] = in[i] = SNI_NO_ID;
    for (size_t i = 0; i < d->offer->count; i++) d->place[d->offer->nodes[i]->id] = (int32_t)i;
    SN_TRY(make_exact(d, in, members, n_nodes));
    for (size_t i = 0; i < nodes; i++) in[i] = SNI_NO_ID;
    SN_TRY(make_free(d, in, members, wanted, n_nodes));
    return report(d);
}

static sn_status ask_engine(sni_engines *engines, size_t index, sni_graph *g, int depth,
                            sn_error *err) {
    sni_arena arena;
    sn_ep_graph offer;
    divider d = {.engines = engines,
                 .index = index,
                 .engine = engines->of[index],
                 .g = g,
                 .offer = &offer,
                 .err = err};
    sni_arena_init(&arena, 0);
    sn_status status = sni_offer(g, depth, &arena, &offer, err);
    if (status == SN_OK) status = sni_ask(d.engine, &offer, &d.claims, err);
    if (status == SN_OK) status = divide(&d);
    sni_arena_free(&arena);
    return status;
}

/* A subgraph that says what a node computes is not run. */
static bool has_own_body(const sni_node *n) {
    return sni_is_part(n) || sni_is_group(n);
}

static sn_status partition_at(sni_engines *engines, sni_graph *g, int depth, sn_error *err) {
    SN_TRY(sni_check_nesting(depth, err));
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        for (int32_t i = 0; i < n->n_subgraphs && !has_own_body(n); i++)
            SN_TRY(partition_at(engines, n->subgraphs[i], depth + 1, err));
    for (size_t i = 0; i < engines->count; i++) SN_TRY(ask_engine(engines, i, g, depth, err));
    sni_graph_remove_dead_values(g);
    if (engines->reported) return SN_OK;
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        if (!sni_is_part(n)) engines->shares[engines->count].nodes++;
    return SN_OK;
}

sn_status sni_engines_partition(void *ctx, sni_graph *g, sn_error *err) {
    sni_engines *engines = ctx;
    sn_status status = partition_at(engines, g, 0, err);
    engines->reported = true;
    return status == SN_OK ? sni_infer_graph(g, err) : status;
}

/* ---- Tensors from part to part ---- */

/* Inference reads lists and numbers when shapes depend on them: the host needs their contents. */
static bool may_tell_shapes(const sni_value *v) {
    return v->type.kind != SN_KIND_TENSOR || !v->type.has_shape || v->type.rank < 2;
}

static void connect_output(const sni_graph *g, sni_provider_part *p, int32_t i,
                           const sni_value *v) {
    p->readers[i] = 0;
    p->on_host[i] = !v || may_tell_shapes(v);
    for (int32_t u = 0; v && u < v->use_count; u++) {
        const sni_node *user = sni_graph_node(g, v->uses[u].node);
        const sni_provider_part *other = user && sni_is_part(user) ? user->params : NULL;
        if (other && other->engine == p->engine)
            p->readers[i]++;
        else
            p->on_host[i] = true;
    }
}

static void connect_at(sni_graph *g, int depth) {
    for (sni_node *n = sni_graph_first(g); n && depth <= SNI_MAX_NESTING;
         n = sni_graph_next(g, n)) {
        if (!sni_is_part(n)) {
            for (int32_t i = 0; i < n->n_subgraphs; i++) connect_at(n->subgraphs[i], depth + 1);
            continue;
        }
        sni_provider_part *p = (sni_provider_part *)n->params;
        for (int32_t i = 0; i < n->n_out; i++)
            connect_output(g, p, i, sni_graph_value(g, n->out[i]));
    }
}

void sni_engines_connect(sni_graph *g) {
    connect_at(g, 0);
}
