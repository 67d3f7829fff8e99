/* partition.c - who runs a node: an implementation that accepts it, or its reference kernel. */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 32 }; /* nodes with more run on their reference kernels */

/* Gives a node the finished blobs of a compiled model, if there are any for it. */
static void find_finished(const sni_common *common, const sni_node *n, const char *impl,
                          sni_pack *pack) {
    const sni_finished *f = common->finished;
    uint32_t position = common->positions[n->id];
    size_t low = 0, high = f ? f->count : 0; /* the node's first piece lies between */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sni_finished_key *k = &f->keys[middle];
        bool before = k->graph != common->number ? k->graph < common->number : k->node < position;
        *(before ? &low : &high) = before ? middle + 1 : middle;
    }
    for (size_t i = low; f && i < f->count; i++) {
        const sni_finished_key *k = &f->keys[i];
        if (k->graph != common->number || k->node != position) return;
        if (strncmp(k->impl, impl, SNI_IMPL_NAME - 1) != 0) continue;
        if (!pack->given) pack->given = &f->blobs[i];
        if (pack->given + pack->n_given != &f->blobs[i]) return;
        pack->n_given++;
    }
}

static sn_status prepare(sni_common *common, sni_choice *c, const sni_impl *impl, uint32_t variant,
                         sni_prepared **out, sn_error *err) {
    char name[SNI_IMPL_NAME];
    sni_prepared *p = calloc(1, sizeof *p);
    if (!p) return sni_fail_memory(err);
    p->impl = impl;
    p->variant = variant;
    p->pack.budget = common->packed;
    p->pack.slab = &common->slab;
    sni_candidate_name(impl, variant, name);
    find_finished(common, c->node, name, &p->pack);
    sni_borrows borrows = {.count = 0};
    c->pack = &p->pack;
    c->borrows = &borrows;
    sn_status status = impl->prepare ? impl->prepare(c, &p->state, err) : SN_OK;
    for (int i = 0; i < borrows.count; i++) sni_borrow_end(&borrows.of[i]);
    if (status != SN_OK) {
        sni_pack_clear(&p->pack);
        free(p);
        return status;
    }
    p->next = common->prepared[c->node->id];
    common->prepared[c->node->id] = p;
    *out = p;
    return SN_OK;
}

/* What an earlier plan's implementation made, if it takes the node with any shapes; NULL: nothing.
 */
static sni_prepared *find_kept(sni_prepared *list, const sni_choice *c) {
    for (sni_prepared *p = list; p; p = p->next)
        if (!p->impl->by_shape && p->impl->accepts(c)) return p;
    return NULL;
}

static sni_prepared *find_variant(sni_prepared *list, const sni_impl *impl, uint32_t variant) {
    sni_prepared *p = list;
    while (p && (p->impl != impl || p->variant != variant)) p = p->next;
    return p;
}

/* The choice by measurement for a node; NULL: there is none. */
static const char *find_tuned(const sni_common *common, const sni_node *n) {
    const sni_choosing *choosing = common->choosing;
    for (size_t i = 0; i < choosing->n_tuned; i++) {
        const sni_finished_key *k = &choosing->tuned[i];
        if (k->graph == common->number && k->node == common->positions[n->id]) return k->impl;
    }
    return NULL;
}

/* Who takes a node: what measurements say, what an earlier plan has made, or the least estimate. */
static sn_status assign(sni_common *common, sni_choice *c, sni_prepared **out, sn_error *err) {
    sni_prepared *list = common->prepared[c->node->id];
    const char *tuned = find_tuned(common, c->node);
    sni_candidate who = {NULL, 0};
    *out = NULL;
    if (tuned && sni_ep_named(c, tuned, &who)) {
        c->variant = who.variant;
    } else {
        *out = find_kept(list, c);
        if (*out) return SN_OK;
        who.impl = sni_ep_find(c);
        if (!who.impl) return SN_OK;
        who.variant = who.impl->variant ? who.impl->variant(c) : 0;
    }
    *out = find_variant(list, who.impl, who.variant);
    return *out ? SN_OK : prepare(common, c, who.impl, who.variant, out, err);
}

sn_status sni_plan_choose(sni_common *common, const sni_node *n, const sni_type *const *in,
                          sni_assignment *out, sn_error *err) {
    sni_const *constants[MOST_INPUTS] = {0};
    const sni_choosing *choosing = common->choosing;
    sni_prepared *p;
    *out = (sni_assignment){.impl = NULL};
    if (n->n_in > MOST_INPUTS) return SN_OK;
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *v = sni_graph_value(common->graph, n->in[i]);
        if (v && !v->is_input) constants[i] = v->constant;
    }
    const sni_value *left = n->n_in > 0 ? sni_graph_value(common->graph, n->in[0]) : NULL;
    sni_choice c = {.node = n,
                    .params = n->params,
                    .n_in = n->n_in,
                    .in = in,
                    .left = left ? &left->type : NULL,
                    .constants = constants,
                    .matrix_bytes = common->matrix_bytes,
                    .numerics = choosing->numerics};
    if (choosing->on_choice)
        choosing->on_choice(choosing->on_choice_ctx, common->number, common->positions[n->id], &c);
    SN_TRY(assign(common, &c, &p, err));
    if (!p) return SN_OK;
    *out = (sni_assignment){p->impl, p->state, p->impl->numerics};
    if (p->impl->uses) out->numerics = p->impl->uses(&c, p->state);
    return SN_OK;
}

sn_status sni_common_init(sni_common *common, const sni_graph *g, const sni_choosing *choosing,
                          sni_budget *packed, sn_error *err) {
    *common = (sni_common){.graph = g, .choosing = choosing, .packed = packed};
    common->prepared = calloc((size_t)g->node_count + 1, sizeof(*common->prepared));
    common->weights = calloc((size_t)g->value_count + 1, sizeof(*common->weights));
    common->positions = calloc((size_t)g->node_count + 1, sizeof(*common->positions));
    if (!common->prepared || !common->weights || !common->positions) return sni_fail_memory(err);
    uint32_t position = 0;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        common->positions[n->id] = position++;
    for (int32_t i = 0; i < g->value_count; i++) {
        const sni_value *v = sni_graph_value(g, i);
        const sni_const *w = v && !v->is_input ? v->constant : NULL;
        if (w && w->tensor.dtype == SN_FLOAT32 && w->tensor.rank == 2)
            common->matrix_bytes += (uint64_t)w->tensor.count * sizeof(float);
    }
    return SN_OK;
}

void sni_common_free(sni_common *common) {
    for (int32_t i = 0; common->prepared && i < common->graph->node_count; i++) {
        for (sni_prepared *p = common->prepared[i], *next; p; p = next) {
            next = p->next;
            if (p->impl->release) p->impl->release(p->state);
            p->pack.slab = NULL; /* it goes as a whole */
            sni_pack_clear(&p->pack);
            free(p);
        }
    }
    sni_slab_free(&common->slab);
    free(common->prepared);
    free(common->weights);
    free(common->positions);
}
