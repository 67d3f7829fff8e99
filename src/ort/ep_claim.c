/* ep_claim.c - asks providers which nodes they take, and makes convex parts of those. */
#include "ort/ep_host.h"

#include <stdlib.h>
#include <string.h>

/* ---- What providers answer with ---- */

static int by_position(const void *a, const void *b) {
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

static OrtStatus *add_claim(OrtEpGraphSupportInfo *support, const OrtNode *const *nodes,
                            size_t count, ort_claim claim) {
    const OrtGraph *g = support->graph;
    claim.nodes = calloc(count + 1, sizeof *claim.nodes);
    if (!claim.nodes) return ort_fail_memory();
    for (size_t i = 0; i < count; i++) {
        const OrtNode *n = nodes[i];
        if (!n || n->index >= g->node_count || g->nodes[n->index] != n) {
            free(claim.nodes);
            return ort_fail(ORT_INVALID_ARGUMENT, "node %zu of a claim is none of the graph", i);
        }
        claim.nodes[claim.count++] = n->index;
    }
    qsort(claim.nodes, claim.count, sizeof *claim.nodes, by_position);
    ort_claim *place = ort_append((void **)&support->claims, &support->count, sizeof *place);
    if (!place) {
        free(claim.nodes);
        return ort_fail_memory();
    }
    *place = claim;
    return NULL;
}

OrtStatusPtr ort_ep_EpGraphSupportInfo_AddNodesToFuse(OrtEpGraphSupportInfo *support,
                                                      const OrtNode *const *nodes, size_t count,
                                                      const OrtNodeFusionOptions *options) {
    NEED(support);
    NEED(nodes);
    if (!count) return ort_fail(ORT_INVALID_ARGUMENT, "a claim of no nodes");
    ort_claim claim = {.fused = true};
    claim.drop_weights = options && options->drop_constant_initializers;
    return add_claim(support, nodes, count, claim);
}

OrtStatusPtr ort_ep_EpGraphSupportInfo_AddSingleNode(OrtEpGraphSupportInfo *support,
                                                     const OrtNode *node) {
    NEED(support);
    NEED(node);
    return add_claim(support, &node, 1, (ort_claim){.drop_weights = true});
}

OrtStatusPtr ort_ep_EpGraphSupportInfo_LookUpKernel(OrtEpGraphSupportInfo *support,
                                                    const OrtNode *node, const OrtKernelDef **out) {
    NEED(support);
    NEED(node);
    NEED(out);
    const ort_kernel_entry *e = ort_kernel_find(support->registry, node);
    *out = e ? e->def : NULL;
    return NULL;
}

/* ---- Convex parts ---- */

/* Marks what can be reached from a set's outputs through nodes outside of it, in their order. */
static bool is_convex(const OrtGraph *g, const bool *inside, bool *reached) {
    memset(reached, 0, g->node_count * sizeof *reached);
    for (size_t i = 0; i < g->node_count; i++) {
        const OrtNode *n = g->nodes[i];
        if (inside[i] && reached[i]) return false;
        for (size_t o = 0; o < n->output_count; o++) {
            const OrtValueInfo *v = n->outputs[o];
            for (size_t u = 0; v && u < v->use_count; u++) {
                size_t user = v->uses[u].node->index;
                if (reached[i] || (inside[i] && !inside[user])) reached[user] = true;
            }
        }
    }
    return true;
}

/* Who takes a node: 0 the CPU, otherwise a number of a fused claim or of a provider's kernels. */
typedef struct claims {
    ort_host *host;
    size_t *class_of, *level;
    ort_provider **provider_of; /* by class */
    ort_claim *claim_of;        /* by class; of kernels: no nodes */
    size_t class_count;
    bool *inside, *scratch;
} claims;

static size_t add_class(claims *c, ort_provider *p, ort_claim claim) {
    size_t count = c->class_count;
    ort_provider **providers = realloc(c->provider_of, (count + 1) * sizeof(ort_provider *));
    if (providers) c->provider_of = providers;
    ort_claim *list = realloc(c->claim_of, (count + 1) * sizeof *list);
    if (list) c->claim_of = list;
    if (!providers || !list) return 0;
    providers[count] = p;
    list[count] = claim;
    return c->class_count++;
}

static bool is_free(const claims *c, const ort_claim *claim) {
    for (size_t i = 0; i < claim->count; i++)
        if (c->class_of[claim->nodes[i]]) return false;
    return true;
}

static OrtStatus *take_fused(claims *c, ort_provider *p, ort_claim *claim) {
    const OrtGraph *g = c->host->model->graph;
    memset(c->inside, 0, g->node_count * sizeof *c->inside);
    for (size_t i = 0; i < claim->count; i++) c->inside[claim->nodes[i]] = true;
    if (!is_convex(g, c->inside, c->scratch)) {
        ort_log_write(&c->host->logger.log, ORT_LOGGING_LEVEL_WARNING, p->name,
                      "a claim is not convex: its nodes stay on the CPU");
        return NULL;
    }
    size_t number = add_class(c, p, *claim);
    if (!number) return ort_fail_memory();
    claim->nodes = NULL; /* the class's now */
    const ort_claim *kept = &c->claim_of[number];
    for (size_t i = 0; i < kept->count; i++) {
        c->class_of[kept->nodes[i]] = number;
        g->nodes[kept->nodes[i]]->ep = p->name;
    }
    return NULL;
}

/* Control flow stays with the engine, which runs the bodies. */
static bool kernel_runs(const claims *c, const ort_provider *p, size_t node) {
    const OrtNode *n = c->host->model->graph->nodes[node];
    return !n->body_count && ort_kernel_find(p->registry, n);
}

static OrtStatus *take_claims(claims *c, ort_provider *p, OrtEpGraphSupportInfo *support) {
    const OrtGraph *g = c->host->model->graph;
    size_t kernels = 0;
    for (size_t i = 0; i < support->count; i++) {
        ort_claim *claim = &support->claims[i];
        if (!is_free(c, claim)) continue;
        if (claim->fused) {
            ORT_TRY(take_fused(c, p, claim));
            continue;
        }
        if (!kernel_runs(c, p, claim->nodes[0])) continue;
        if (!kernels) kernels = add_class(c, p, (ort_claim){.drop_weights = true});
        if (!kernels) return ort_fail_memory();
        c->class_of[claim->nodes[0]] = kernels;
        g->nodes[claim->nodes[0]]->ep = p->name;
    }
    return NULL;
}

static OrtStatus *ask(claims *c, ort_provider *p) {
    OrtEpGraphSupportInfo support = {
        .graph = c->host->model->graph, .ep = p->ep, .registry = p->registry};
    if (!p->ep->GetCapability) return NULL;
    OrtStatus *failed = p->ep->GetCapability(p->ep, support.graph, &support);
    OrtStatus *status = failed ? NULL : take_claims(c, p, &support);
    if (failed) /* it takes nothing; the session is made without it */
        ort_log_write(&c->host->logger.log, ORT_LOGGING_LEVEL_ERROR, p->name,
                      ort_GetErrorMessage(failed));
    ort_ReleaseStatus(failed);
    for (size_t i = 0; i < support.count; i++) free(support.claims[i].nodes);
    free(support.claims);
    return status;
}

/* How often the class changes on the way to a node: nodes of one class and level are convex. */
static void find_levels(claims *c) {
    const OrtGraph *g = c->host->model->graph;
    for (size_t i = 0; i < g->node_count; i++) {
        const OrtNode *n = g->nodes[i];
        for (size_t k = 0; k < n->input_count + n->implicit_count; k++) {
            const OrtValueInfo *v =
                k < n->input_count ? n->inputs[k] : n->implicit[k - n->input_count];
            if (!v || !v->producer) continue;
            size_t from = v->producer->index;
            size_t level = c->level[from] + (c->class_of[from] != c->class_of[i]);
            if (level > c->level[i]) c->level[i] = level;
        }
    }
}

/* Parts of kernels: one for each level; `alone` makes one for each node. */
static OrtStatus *kernel_parts(claims *c, size_t number, bool alone) {
    const OrtGraph *g = c->host->model->graph;
    const OrtNode **nodes = calloc(g->node_count + 1, sizeof *nodes);
    bool *done = calloc(g->node_count + 1, sizeof *done);
    OrtStatus *status = nodes && done ? NULL : ort_fail_memory();
    for (size_t i = 0; i < g->node_count && !status; i++) {
        if (c->class_of[i] != number || done[i]) continue;
        ort_claim claim = {.drop_weights = true};
        for (size_t k = i; k < g->node_count; k++) {
            if (c->class_of[k] != number || c->level[k] != c->level[i] || (alone && k > i))
                continue;
            nodes[claim.count++] = g->nodes[k];
            done[k] = true;
        }
        status = ort_part_make(c->host, c->provider_of[number], nodes, &claim);
    }
    free(nodes);
    free(done);
    return status;
}

static OrtStatus *fused_part(claims *c, size_t number) {
    const OrtGraph *g = c->host->model->graph;
    const ort_claim *claim = &c->claim_of[number];
    const OrtNode **nodes = calloc(claim->count + 1, sizeof *nodes);
    if (!nodes) return ort_fail_memory();
    for (size_t i = 0; i < claim->count; i++) nodes[i] = g->nodes[claim->nodes[i]];
    OrtStatus *status = ort_part_make(c->host, c->provider_of[number], nodes, claim);
    free(nodes);
    return status;
}

OrtStatus *ort_host_claim(ort_host *host) {
    size_t count = host->model->graph->node_count;
    claims c = {.host = host, .class_count = 1};
    c.class_of = calloc(count + 1, sizeof *c.class_of);
    c.level = calloc(count + 1, sizeof *c.level);
    c.inside = calloc(count + 1, sizeof *c.inside);
    c.scratch = calloc(count + 1, sizeof *c.scratch);
    OrtStatus *status = c.class_of && c.level && c.inside && c.scratch ? NULL : ort_fail_memory();
    for (size_t i = 0; i < host->provider_count && !status; i++)
        status = ask(&c, host->providers[i]);
    if (!status) find_levels(&c);
    bool several = c.class_count > 2; /* parts of different kinds could wait for each other */
    for (size_t i = 1; i < c.class_count && !status; i++)
        status = c.claim_of[i].fused ? fused_part(&c, i) : kernel_parts(&c, i, several);
    for (size_t i = 1; i < c.class_count; i++) free(c.claim_of[i].nodes);
    free(c.class_of);
    free(c.level);
    free(c.inside);
    free(c.scratch);
    free(c.provider_of);
    free(c.claim_of);
    return status;
}
