/* part.h - Part of ai.sinter: nodes that a provider runs, as one node. */
#ifndef SNI_OPS_SINTER_PART_H
#define SNI_OPS_SINTER_PART_H

#include "ops/core/op.h"

/* What stands behind a Part: its `params`, the first member of what the provider's side keeps. */
typedef struct sni_part_params {
    const char *provider; /* its name, for plans and profiles */
    sn_status (*run)(sni_kernel *k);
} sni_part_params;

/* The operator; it is in no file and in no table. The node's only subgraph is the body: what it
 * computes, which the engine can run itself. */
extern const sni_op sni_op_sinter_part;

static inline bool sni_is_part(const sni_node *n) {
    return n->op == &sni_op_sinter_part;
}

#endif
