/* assigned.c - which provider runs which nodes of a session. */
#include "ort/ep_host.h"
#include "sinter_part.h"

#include <stdlib.h>
#include <string.h>

struct OrtEpAssignedNode {
    char *name, *domain, *op;
};

struct OrtEpAssignedSubgraph {
    char *ep;
    OrtEpAssignedNode **nodes;
    size_t count;
};

struct ort_assignment {
    OrtEpAssignedSubgraph **parts;
    size_t count;
};

static void free_part(OrtEpAssignedSubgraph *p) {
    for (size_t i = 0; i < p->count; i++) {
        free(p->nodes[i]->name);
        free(p->nodes[i]->domain);
        free(p->nodes[i]->op);
        free(p->nodes[i]);
    }
    free(p->nodes);
    free(p->ep);
    free(p);
}

void ort_assignment_free(ort_assignment *a) {
    if (!a) return;
    for (size_t i = 0; i < a->count; i++) free_part(a->parts[i]);
    free(a->parts);
    free(a);
}

static OrtEpAssignedSubgraph *add_part(ort_assignment *a, const char *ep) {
    OrtEpAssignedSubgraph *p = calloc(1, sizeof *p);
    if (p && ort_replace_text(&p->ep, ep) && ort_list_add(&a->parts, &a->count, p)) return p;
    if (p) free_part(p);
    return NULL;
}

static bool add_node(OrtEpAssignedSubgraph *p, const char *name, const char *domain,
                     const char *op) {
    OrtEpAssignedNode *n = p ? calloc(1, sizeof *n) : NULL;
    if (!n || !ort_list_add(&p->nodes, &p->count, n)) {
        free(n);
        return false;
    }
    return ort_replace_text(&n->name, name) && ort_replace_text(&n->domain, domain) &&
           ort_replace_text(&n->op, op);
}

static const char cpu[] = "CPUExecutionProvider";

static bool list_engine(ort_assignment *a, const sn_model *model) {
    sn_node_info n;
    bool good = true;
    for (size_t i = 0; good && sn_model_node(model, i, &n); i++)
        good = add_node(add_part(a, cpu), n.name, n.domain, n.op);
    return good;
}

static bool list_host(ort_assignment *a, const ort_host *host) {
    bool good = true;
    for (size_t i = 0; good && i < host->part_count; i++) {
        const ort_part *p = host->parts[i];
        OrtEpAssignedSubgraph *s = NULL;
        for (size_t k = 0; good && k < p->graph->node_count; k++) {
            const OrtNode *n = p->graph->nodes[k];
            if (!s || !p->compiled) s = add_part(a, p->provider->name);
            good = add_node(s, n->name, n->domain, n->op);
        }
    }
    for (size_t i = 0; good && i < host->model->graph->node_count; i++) {
        const OrtNode *n = host->model->graph->nodes[i];
        if (!n->ep) good = add_node(add_part(a, cpu), n->name, n->domain, n->op);
    }
    return good;
}

OrtStatus *ort_assignment_make(OrtSession *session) {
    ort_assignment *a = calloc(1, sizeof *a);
    bool host = session->host && session->host->model;
    if (a && (host ? list_host(a, session->host) : list_engine(a, session->model))) {
        session->assignment = a;
        return NULL;
    }
    ort_assignment_free(a);
    return ort_fail_memory();
}

OrtStatusPtr ort_Session_GetEpGraphAssignmentInfo(const OrtSession *session,
                                                  const OrtEpAssignedSubgraph *const **ep_subgraphs,
                                                  size_t *num_ep_subgraphs) {
    NEED(session);
    NEED(ep_subgraphs);
    NEED(num_ep_subgraphs);
    if (!session->assignment)
        return ort_fail(ORT_FAIL,
                        "Session configuration entry \"session.record_ep_graph_assignment_info\" "
                        "must be set to \"1\" to retrieve EP graph assignment information.");
    *ep_subgraphs = (const OrtEpAssignedSubgraph *const *)session->assignment->parts;
    *num_ep_subgraphs = session->assignment->count;
    return NULL;
}

OrtStatusPtr ort_EpAssignedSubgraph_GetEpName(const OrtEpAssignedSubgraph *ep_subgraph,
                                              const char **out) {
    NEED(ep_subgraph);
    NEED(out);
    *out = ep_subgraph->ep;
    return NULL;
}

OrtStatusPtr ort_EpAssignedSubgraph_GetNodes(const OrtEpAssignedSubgraph *ep_subgraph,
                                             const OrtEpAssignedNode *const **ep_nodes,
                                             size_t *num_ep_nodes) {
    NEED(ep_subgraph);
    NEED(ep_nodes);
    NEED(num_ep_nodes);
    *ep_nodes = (const OrtEpAssignedNode *const *)ep_subgraph->nodes;
    *num_ep_nodes = ep_subgraph->count;
    return NULL;
}

#define TELL(slot, member)                                                                       \
    OrtStatusPtr ort_EpAssignedNode_##slot(const OrtEpAssignedNode *ep_node, const char **out) { \
        NEED(ep_node);                                                                           \
        NEED(out);                                                                               \
        *out = ep_node->member;                                                                  \
        return NULL;                                                                             \
    }
TELL(GetName, name)
TELL(GetDomain, domain)
TELL(GetOperatorType, op)
