/* convex.h - sets of nodes that can stand as one node: no path leaves such a set and comes back. */
#ifndef SNI_GRAPH_CONVEX_H
#define SNI_GRAPH_CONVEX_H

#include "graph/graph.h"

/* True if the nodes whose `member` flag is set, by id, are convex. *bad, if set, is otherwise a
 * node outside that reads what they make and that they depend on. SN_NO_MEMORY or SN_OK. */
sn_status sni_convex_check(const sni_graph *g, const bool *member, bool *convex,
                           const sni_node **bad, sn_error *err);

/* Puts the nodes whose `wanted` flag is set into convex sets, as large as linear time finds them:
 * part[id] is the number of the set, from 0, and SNI_NO_ID for other nodes. Nodes are in one set
 * only if edges or a common input connect them there. All sets may become single nodes at once. */
sn_status sni_convex_parts(const sni_graph *g, const bool *wanted, int32_t *part, int32_t *count,
                           sn_error *err);

#endif
