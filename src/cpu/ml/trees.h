/* trees.h - decision trees in a layout for walking many at once.
 *
 * Nodes are in preorder: the child of a true condition is the next node, the other child is `skip`
 * nodes further on. A leaf's condition is never true and its skip is 0, so that a walk that has
 * arrived stays there. */
#ifndef SNI_CPU_ML_TREES_H
#define SNI_CPU_ML_TREES_H

#include "cpu/core/kernels.h"

#include <string.h>

enum {
    SNI_TREE_LANES = 64, /* walks at once */
    SNI_TREE_GROUP = 16, /* their number is a multiple of this */
    SNI_TREE_FEATURE_BITS = 11,
    SNI_TREE_SKIP_BITS = 20,
    SNI_TREE_LEAF_BITS = 22
};

/* A node: 8 bytes, so that one gather loads both halves. */
typedef struct sni_tree_place {
    float split;  /* the condition is x <= split; NaN: a leaf, with its number in the low bits */
    int32_t link; /* from the low bits: feature, skip, whether a NaN feature makes it true */
} sni_tree_place;

static inline int32_t sni_tree_link(int32_t feature, int32_t skip, bool missing) {
    return (int32_t)((uint32_t)feature | (uint32_t)skip << SNI_TREE_FEATURE_BITS |
                     (uint32_t)missing << (SNI_TREE_FEATURE_BITS + SNI_TREE_SKIP_BITS));
}

static inline sni_tree_place sni_tree_leaf(int32_t leaf) {
    uint32_t bits = 0x7fc00000u | (uint32_t)leaf;
    sni_tree_place n = {.link = 0};
    memcpy(&n.split, &bits, sizeof bits);
    return n;
}

static inline int32_t sni_tree_leaf_number(const sni_tree_place *n) {
    uint32_t bits;
    memcpy(&bits, &n->split, sizeof bits);
    return (int32_t)(bits & ((1u << SNI_TREE_LEAF_BITS) - 1));
}

struct sni_tree_kernels {
    /* Walks `count` trees to their leaves; count is a multiple of SNI_TREE_GROUP, at most
     * SNI_TREE_LANES. Walk l reads the features at x + from[l] and begins at node at[l], which
     * becomes its leaf. */
    void (*walk)(const sni_tree_place *nodes, const float *x, const int32_t *from, int32_t *at,
                 int count);
};

#endif
