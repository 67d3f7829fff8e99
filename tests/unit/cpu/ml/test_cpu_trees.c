/* test_cpu_trees.c - tree ensembles against the reference kernels: trees of every form, one row and
 * many, missing features, weights for some targets or all. */
#include "versus.h"

#include "ops/ml/forest.h"

enum { MOST_NODES = 4000 };

static versus v;

/* Attributes of a forest under construction. */
static struct {
    int64_t trees[MOST_NODES], ids[MOST_NODES], features[MOST_NODES], yes[MOST_NODES],
        no[MOST_NODES], missing[MOST_NODES];
    float values[MOST_NODES];
    sni_str modes[MOST_NODES];
    int64_t weight_trees[MOST_NODES], weight_nodes[MOST_NODES], weight_targets[MOST_NODES];
    float weights[MOST_NODES];
    size_t n, n_weights;
} f;

typedef struct kind {
    int64_t features, targets;
    int trees, depth;
    bool less_than, missing, sparse, one; /* one: weight for each leaf */
} kind;

static int64_t draw(int64_t n) {
    return (int64_t)(unit_random(&v.seed) % (uint32_t)n);
}

static void add_leaf(const kind *k, int64_t tree, size_t at) {
    f.modes[at] = sni_str_of("LEAF");
    for (int64_t t = 0; t < (k->one ? 1 : k->targets); t++) {
        if (k->sparse && !k->one && draw(2)) continue;
        f.weight_trees[f.n_weights] = tree;
        f.weight_nodes[f.n_weights] = f.ids[at];
        f.weight_targets[f.n_weights] = k->sparse ? draw(k->targets) : t;
        f.weights[f.n_weights++] = versus_float(&v);
    }
}

/* A subtree whose root gets the next number of its tree, which is returned. */
static int64_t add_node(const kind *k, int64_t tree, int depth, int64_t *next) {
    size_t at = f.n++;
    f.trees[at] = tree;
    f.ids[at] = (*next)++;
    f.features[at] = draw(k->features);
    f.values[at] = draw(9) ? versus_float(&v) : 0.25f;
    f.missing[at] = k->missing && draw(2);
    f.yes[at] = f.no[at] = 0;
    if (depth == 0 || (depth < k->depth && draw(4) == 0) || f.n + 64 > MOST_NODES / 2) {
        add_leaf(k, tree, at);
        return f.ids[at];
    }
    f.modes[at] = sni_str_of(k->less_than && draw(2) ? "BRANCH_LT" : "BRANCH_LEQ");
    f.yes[at] = add_node(k, tree, depth - 1, next);
    f.no[at] = add_node(k, tree, depth - 1, next);
    return f.ids[at];
}

static void add_attributes(const kind *k, bool classifier) {
    static const int64_t labels[] = {10, 20, 30, 40, 50, 60, 70, 80};
    eval_ints(&v.e, "nodes_treeids", f.trees, f.n);
    eval_ints(&v.e, "nodes_nodeids", f.ids, f.n);
    eval_ints(&v.e, "nodes_featureids", f.features, f.n);
    eval_ints(&v.e, "nodes_truenodeids", f.yes, f.n);
    eval_ints(&v.e, "nodes_falsenodeids", f.no, f.n);
    eval_ints(&v.e, "nodes_missing_value_tracks_true", f.missing, f.n);
    eval_floats(&v.e, "nodes_values", f.values, f.n);
    eval_attr(&v.e, (sni_attr){.name = sni_str_of("nodes_modes"),
                               .kind = SNI_ATTR_STRINGS,
                               .count = f.n,
                               .u.strings = f.modes});
    eval_ints(&v.e, classifier ? "class_treeids" : "target_treeids", f.weight_trees, f.n_weights);
    eval_ints(&v.e, classifier ? "class_nodeids" : "target_nodeids", f.weight_nodes, f.n_weights);
    eval_ints(&v.e, classifier ? "class_ids" : "target_ids", f.weight_targets, f.n_weights);
    eval_floats(&v.e, classifier ? "class_weights" : "target_weights", f.weights, f.n_weights);
    if (classifier)
        eval_ints(&v.e, "classlabels_int64s", labels, (size_t)k->targets);
    else
        eval_attr(&v.e, sni_attr_of_int("n_targets", k->targets));
}

static void check(const kind *k, int64_t rows, bool classifier) {
    versus_start(&v, "ai.onnx.ml", classifier ? "TreeEnsembleClassifier" : "TreeEnsembleRegressor");
    f.n = f.n_weights = 0;
    for (int t = 0; t < k->trees; t++) {
        int64_t next = 0;
        add_node(k, t, k->depth ? (int)draw(k->depth + 1) : 0, &next);
    }
    if (k->missing) v.special = 5;
    versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){rows, k->features + 1}, NULL);
    add_attributes(k, classifier);
    versus_run(&v, classifier ? 2 : 1, 0); /* the same sums in the same order: the same bits */
}

static void forests_match(void **state) {
    (void)state;
    static const kind kinds[] = {
        {3, 1, 1, 0, false, false, false},   {5, 3, 7, 4, false, false, false},
        {9, 2, 40, 3, true, false, false},   {4, 5, 33, 5, true, true, false},
        {30, 8, 12, 6, false, true, true},   {1, 3, 100, 2, true, false, true},
        {8, 3, 520, 1, false, false, false}, {8, 6, 300, 2, false, true, true, true}};
    static const int64_t rows[] = {0, 1, 2, 7, 16, 33, 64, 65, 200};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
            for (int classifier = 0; classifier < 2; classifier++)
                check(&kinds[i], rows[r], classifier);
}

/* A tree that is a chain, on either side. */
static void chains_match(void **state) {
    (void)state;
    for (int side = 0; side < 2; side++) {
        const kind k = {2, 1, 1, 0, false, false, false};
        versus_start(&v, "ai.onnx.ml", "TreeEnsembleRegressor");
        f.n = f.n_weights = 0;
        for (int64_t i = 0; i < 301; i++) {
            bool leaf = i % 2 || i == 300;
            size_t at = f.n++;
            f.trees[at] = 0;
            f.ids[at] = i;
            f.features[at] = i % 4 / 2;
            f.values[at] = (float)i / 150.0f - 1.0f;
            f.missing[at] = 0;
            f.yes[at] = leaf ? 0 : side ? i + 1 : i + 2;
            f.no[at] = leaf ? 0 : side ? i + 2 : i + 1;
            f.modes[at] = sni_str_of("BRANCH_LEQ");
            if (leaf) add_leaf(&k, 0, at);
        }
        versus_tensor(&v, SN_FLOAT32, 2, (int64_t[]){50, 2}, NULL);
        add_attributes(&k, false);
        versus_run(&v, 1, 0);
    }
}

static sni_tree_lists lists_of_forest(void) {
    return (sni_tree_lists){.tree_ids = {f.trees, f.n, true},
                            .node_ids = {f.ids, f.n, true},
                            .feature_ids = {f.features, f.n, true},
                            .true_ids = {f.yes, f.n, true},
                            .false_ids = {f.no, f.n, true},
                            .modes = {f.modes, f.n, true},
                            .values = {f.values, f.n, true},
                            .weight_trees = {f.weight_trees, f.n_weights, true},
                            .weight_nodes = {f.weight_nodes, f.n_weights, true},
                            .weight_targets = {f.weight_targets, f.n_weights, true},
                            .weights = {f.weights, f.n_weights, true}};
}

/* Trees and nodes numbered 0, 1, 2... make the same forest as with any other numbers. */
static void numbers_do_not_matter(void **state) {
    (void)state;
    const kind k = {5, 3, 9, 5, true, false, true};
    sni_arena arena;
    sni_forest plain, other;
    sni_arena_init(&arena, 0);
    f.n = f.n_weights = 0;
    for (int t = 0; t < k.trees; t++) {
        int64_t next = 0;
        add_node(&k, t, k.depth, &next);
    }
    sni_tree_lists l = lists_of_forest();
    assert_int_equal(sni_forest_of_lists(&l, k.targets, &arena, &plain, NULL), SN_OK);
    for (size_t i = 0; i < f.n; i++) {
        f.trees[i] = 2 * f.trees[i] - 5;
        f.ids[i] = 3 * f.ids[i] + 7;
        f.yes[i] = 3 * f.yes[i] + 7;
        f.no[i] = 3 * f.no[i] + 7;
    }
    for (size_t i = 0; i < f.n_weights; i++) {
        f.weight_trees[i] = 2 * f.weight_trees[i] - 5;
        f.weight_nodes[i] = 3 * f.weight_nodes[i] + 7;
    }
    assert_int_equal(sni_forest_of_lists(&l, k.targets, &arena, &other, NULL), SN_OK);
    assert_int_equal(plain.n_trees, k.trees);
    assert_int_equal(other.n_trees, k.trees);
    assert_int_equal(plain.n_nodes, other.n_nodes);
    assert_int_equal(plain.n_leaves, other.n_leaves);
    assert_memory_equal(plain.roots, other.roots, (size_t)k.trees * sizeof *plain.roots);
    for (int32_t i = 0; i < plain.n_nodes; i++) {
        assert_int_equal(plain.nodes[i].yes, other.nodes[i].yes);
        assert_int_equal(plain.nodes[i].no, other.nodes[i].no);
    }
    assert_memory_equal(plain.leaf_weights, other.leaf_weights,
                        ((size_t)plain.n_leaves + 1) * sizeof *plain.leaf_weights);
    sni_arena_free(&arena);
}

/* A child or a weight's node that is not there is refused, however nodes are numbered. */
static void missing_nodes_are_refused(void **state) {
    (void)state;
    const kind k = {5, 1, 2, 0, false, false, false};
    for (int shift = 0; shift < 2; shift++) {
        for (int wrong = 0; wrong < 5; wrong++) {
            sni_arena arena;
            sni_forest made;
            sni_arena_init(&arena, 0);
            f.n = f.n_weights = 0;
            for (int t = 0; t < k.trees; t++) {
                int64_t next = shift;
                size_t root = f.n++;
                f.trees[root] = t;
                f.ids[root] = next++;
                f.features[root] = 0;
                f.values[root] = 0.5f;
                f.modes[root] = sni_str_of("BRANCH_LEQ");
                f.yes[root] = add_node(&k, t, 0, &next);
                f.no[root] = add_node(&k, t, 0, &next);
            }
            if (wrong == 1) f.yes[0] = 3 + shift; /* would be the second tree's first */
            if (wrong == 2) f.no[0] = -1;
            if (wrong == 3) f.weight_trees[0] = 2;
            if (wrong == 4) f.weight_nodes[0] = INT64_MAX;
            sni_tree_lists l = lists_of_forest();
            sn_status status = sni_forest_of_lists(&l, k.targets, &arena, &made, NULL);
            assert_int_equal(status, wrong ? SN_INVALID_MODEL : SN_OK);
            sni_arena_free(&arena);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forests_match),
        cmocka_unit_test(numbers_do_not_matter),
        cmocka_unit_test(missing_nodes_are_refused),
        cmocka_unit_test(chains_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
