/* settle.h - inputs with a default as the constants that they default to. */
#ifndef SNI_GRAPH_SETTLE_H
#define SNI_GRAPH_SETTLE_H

#include "graph/graph.h"

/* Inputs that have a default are inputs no longer, only constants. */
void sni_graph_settle_inputs(sni_graph *g);

#endif
