/* trees.c - walks through decision trees. */
#include "check.h"

#include "cpu/ml/trees.h"

#include <math.h>
#include <string.h>

enum { LANES = SNI_TREE_LANES };

/* Lays out a random subtree from node `at` on; returns the first node after it. */
static int64_t grow(check *c, sni_tree_place *nodes, int64_t at, int64_t features, int depth) {
    if (depth == 0 || (!c->bench && below(c, 5) == 0)) {
        nodes[at] = sni_tree_leaf((int32_t)at);
        return at + 1;
    }
    int64_t other = grow(c, nodes, at + 1, features, depth - 1);
    nodes[at].split = (float)between(c, -500, 500) * 1e-3f;
    nodes[at].link = sni_tree_link((int32_t)below(c, features), (int32_t)(other - at), below(c, 2));
    return grow(c, nodes, other, features, depth - 1);
}

/* Where the features x lead to. */
static int32_t leaf_of(const sni_tree_place *nodes, const float *x) {
    int32_t node = 0;
    while (!isnan(nodes[node].split)) {
        uint32_t bits = (uint32_t)nodes[node].link;
        float v = x[bits % (1 << SNI_TREE_FEATURE_BITS)];
        bool yes = v <= nodes[node].split || (isnan(v) && bits >> 31);
        node += yes ? 1 : (int32_t)(bits << 1 >> (SNI_TREE_FEATURE_BITS + 1));
    }
    return node;
}

static void walk(check *c) {
    int64_t features = size_of(c, 1, 20, 30);
    int depth = (int)size_of(c, 0, 7, 10), count = (int)size_of(c, 1, 4, 4) * SNI_TREE_GROUP;
    float *x = random_floats(c, LANES * features);
    sni_tree_place *nodes = (sni_tree_place *)unset_floats(c, (int64_t)4 << depth);
    int32_t from[LANES], at[LANES] = {0}, want[LANES] = {0};
    grow(c, nodes, 0, features, depth);
    for (int64_t i = 0; i < LANES * features; i += 7) x[i] = NAN;
    for (int l = 0; l < LANES; l++) {
        from[l] = (int32_t)(l * features);
        if (l < count) want[l] = leaf_of(nodes, x + from[l]);
    }
    CALL(c, 0, count * depth * 12) {
        memset(at, 0, sizeof at);
        c->k->trees->walk(nodes, x, from, at, count);
    }
    if (memcmp(at, want, sizeof at)) fail(c, "a walk ends at another leaf");
    for (int l = 0; l < count; l++)
        if (sni_tree_leaf_number(&nodes[at[l]]) != at[l]) fail(c, "a leaf has another number");
}

const kernel_test tree_tests[] = {{"trees walk, depth 10", walk}, {0}};
