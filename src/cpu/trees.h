/* trees.h - decision trees laid out for walking many at once.
 *
 * Nodes of a tree follow each other so that the child of a true condition is the next one; the
 * other one lies `skip` nodes further on. A leaf's condition is never true and its skip is 0: a
 * walk that has arrived stays. */
#ifndef SNI_CPU_TREES_H
#define SNI_CPU_TREES_H

#include "cpu/kernels.h"

enum {
    SNI_TREE_LANES = 32, /* walks at once */
    SNI_TREE_FEATURE_BITS = 11,
    SNI_TREE_SKIP_BITS = 20
};

typedef struct sni_tree_nodes {
    const float *split;  /* x <= split is true; NaN: a leaf */
    const int32_t *link; /* feature, then skip, then whether a NaN feature counts as true */
} sni_tree_nodes;

static inline int32_t sni_tree_link(int32_t feature, int32_t skip, bool missing) {
    return (int32_t)((uint32_t)feature | (uint32_t)skip << SNI_TREE_FEATURE_BITS |
                     (uint32_t)missing << (SNI_TREE_FEATURE_BITS + SNI_TREE_SKIP_BITS));
}

struct sni_tree_kernels {
    /* Walks SNI_TREE_LANES trees to their leaves: walk l sees the features at x + from[l], begins
     * at node at[l], and ends with its leaf there. */
    void (*walk)(const sni_tree_nodes *n, const float *x, const int32_t *from, int32_t *at);
};

#endif
