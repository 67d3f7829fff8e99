/* body.h - graphs that are part of a node's description: what the node computes, written out. */
#ifndef SNI_OPS_SINTER_BODY_H
#define SNI_OPS_SINTER_BODY_H

#include "ops/core/op.h"

/* Types of all values of a body by id, for the types of the node's inputs, in the context's arena.
 * Members have no subgraphs. `what` is what messages call it. Those of unknown operators keep the
 * sizes that they are declared with.
 */
sn_status sni_infer_body(const sni_infer *c, const sni_graph *body, const char *what,
                         sni_type **out);

#endif
