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

/* Some nodes of a graph as a body of their own, and where it touches the rest. */
typedef struct sni_cutout {
    sni_graph *body; /* in the same store, with the graph as its parent and its table of symbols */
    int32_t *in;     /* values of the graph that are the body's inputs, in order */
    int32_t n_in;
    int32_t *out; /* values that the nodes make and others use: the body's outputs */
    int32_t n_out;
} sni_cutout;

/* Copies `count` nodes, given in topological order. Constants come along; a default that a caller
 * may override is an input. The graph is not changed. */
sn_status sni_graph_cut_out(sni_graph *g, sni_node *const *nodes, size_t count, sni_cutout *out,
                            sn_error *err);

#endif
