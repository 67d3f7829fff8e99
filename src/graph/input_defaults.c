/* input_defaults.c - inputs with a default as the constants that they default to. */
#include "graph/input_defaults.h"

void sni_graph_fold_input_defaults(sni_graph *g) {
    int32_t left = 0;
    for (int32_t i = 0; i < g->n_inputs; i++) {
        sni_value *v = g->values[g->inputs[i]];
        if (v->constant)
            v->is_input = false;
        else
            g->inputs[left++] = g->inputs[i];
    }
    g->n_inputs = left;
}
