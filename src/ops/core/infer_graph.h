/* infer_graph.h - inference over a whole graph, beyond what op.h offers to everybody. */
#ifndef SNI_OPS_INFER_GRAPH_H
#define SNI_OPS_INFER_GRAPH_H

#include "ops/core/op.h"

/* sni_infer_graph() for a main graph whose inputs that are declared as scalars may have any shape,
 * and whose dimensions that share a name may differ: forgets what was inferred from the contrary
 * and infers again. */
sn_status sni_infer_any_inputs(sni_graph *g, sn_error *err);

#endif
