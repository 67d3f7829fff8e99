/* trees.c - walks through decision trees. */
#include "check.h"

#include "cpu/trees.h"

#include <math.h>
#include <string.h>

enum { LANES = SNI_TREE_LANES };

/* Lays out a random subtree from node `at` on; returns the first node after it. */
static int64_t grow(check *c, float *split, int32_t *link, int64_t at, int64_t features,
                    int depth) {
    if (depth == 0 || (!c->bench && below(c, 5) == 0)) {
        split[at] = NAN;
        link[at] = sni_tree_link(0, 0, false);
        return at + 1;
    }
    int64_t other = grow(c, split, link, at + 1, features, depth - 1);
    split[at] = (float)between(c, -500, 500) * 1e-3f;
    link[at] = sni_tree_link((int32_t)below(c, features), (int32_t)(other - at), below(c, 2));
    return grow(c, split, link, other, features, depth - 1);
}

static void walk(check *c) {
    int64_t features = size_of(c, 1, 20, 30);
    int depth = (int)size_of(c, 0, 7, 10);
    int64_t most = (int64_t)2 << depth;
    float *split = unset_floats(c, most), *x = random_floats(c, LANES * features);
    int32_t *link = (int32_t *)unset_floats(c, most), from[LANES], at[LANES] = {0}, want[LANES];
    grow(c, split, link, 0, features, depth);
    for (int l = 0; l < LANES; l++) from[l] = (int32_t)(l * features);
    for (int64_t i = 0; i < LANES * features; i += 7) x[i] = NAN;
    for (int l = 0; l < LANES; l++) {
        int32_t node = 0;
        while (!isnan(split[node])) {
            uint32_t bits = (uint32_t)link[node];
            float v = x[from[l] + (int32_t)(bits % (1 << SNI_TREE_FEATURE_BITS))];
            bool yes = v <= split[node] || (isnan(v) && bits >> 31);
            node += yes ? 1 : (int32_t)(bits << 1 >> (SNI_TREE_FEATURE_BITS + 1));
        }
        want[l] = node;
    }
    sni_tree_nodes nodes = {split, link};
    CALL(c, 0, LANES * depth * 12) {
        memset(at, 0, sizeof at);
        c->k->trees->walk(&nodes, x, from, at);
    }
    if (memcmp(at, want, sizeof at)) fail(c, "a walk ends at another leaf");
}

const kernel_test tree_tests[] = {{"trees walk, depth 10", walk}, {0}};
