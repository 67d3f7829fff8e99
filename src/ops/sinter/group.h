/* group.h - Group of ai.sinter: several nodes computed in one pass over memory. */
#ifndef SNI_OPS_SINTER_GROUP_H
#define SNI_OPS_SINTER_GROUP_H

#include "ops/core/op.h"

enum {
    SNI_GROUP_MEMBERS = 64, /* nodes of one body */
    SNI_GROUP_INPUTS = 16,
    SNI_GROUP_OUTPUTS = 8
};

typedef struct sni_group_params {
    int32_t body;
} sni_group_params;

/* The nodes of a Group as a graph of their own; NULL if there is none. */
static inline const sni_graph *sni_group_body(const sni_node *n) {
    const sni_group_params *p = n->params;
    return p && p->body >= 0 && p->body < n->n_subgraphs ? n->subgraphs[p->body] : NULL;
}

static inline bool sni_is_group(const sni_node *n) {
    return sni_str_is(n->type, "Group") && sni_str_is(n->domain, "ai.sinter");
}

#endif
