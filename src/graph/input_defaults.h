/* input_defaults.h - inputs with a default as the constants that they default to. */
#ifndef SNI_GRAPH_INPUT_DEFAULTS_H
#define SNI_GRAPH_INPUT_DEFAULTS_H

#include "graph/graph.h"

/* Inputs that have a default are inputs no longer, only constants. */
void sni_graph_fold_input_defaults(sni_graph *g);

#endif
