/* part.h - copies of a part of a graph. */
#ifndef SNI_GRAPH_PART_H
#define SNI_GRAPH_PART_H

#include "graph/graph.h"

/* What a part begins and ends with: ids of values of the whole graph, each at most once. */
typedef struct sni_part {
    const int32_t *inputs; /* become inputs, whatever made them before */
    size_t n_inputs;
    const int32_t *outputs;
    const sni_str *output_names;
    size_t n_outputs;
} sni_part;

/* A copy, in another store, of the nodes of a main graph that the part's outputs need. Inputs of
 * the graph that they need stay inputs and come first; inputs of the part that nothing needs are
 * left out. Constants are shared (the store must keep them alive). `*forgot` is set if contents of
 * a new input were known, so that types after it may say too much. */
sn_status sni_graph_clone_part(const sni_graph *g, const sni_part *part, sni_store *store,
                               sni_graph **out, bool *forgot, sn_error *err);

#endif
