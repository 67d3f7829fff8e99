/* spell.h - operators that other programs do not know, spelled out as functions of older ones, so
 * that what the optimiser made can be written to a file that they read. */
#ifndef SNI_MODEL_SPELL_H
#define SNI_MODEL_SPELL_H

#include "graph/graph.h"

/* The body of a function (ONNX text, one node a line) that computes what a node does with operators
 * of ai.onnx as of version `opset`. Its inputs are x0, x1, ... and its outputs y0, y1, ..., by the
 * places of those that the node has. False if the node is known as it stands, or cannot be said. */
bool sni_spell(const sni_graph *g, const sni_node *n, int64_t opset, sni_arena *arena,
               sni_str *body);

#endif
