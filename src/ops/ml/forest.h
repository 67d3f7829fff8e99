/* forest.h - decision trees in the form they are evaluated in, made once per node of the graph. */
#ifndef SNI_OPS_ML_FOREST_H
#define SNI_OPS_ML_FOREST_H

#include "ops/core/op.h"

typedef enum sni_tree_mode {
    SNI_TREE_LEQ,
    SNI_TREE_LT,
    SNI_TREE_GTE,
    SNI_TREE_GT,
    SNI_TREE_EQ,
    SNI_TREE_NEQ,
    SNI_TREE_MEMBER,
    SNI_TREE_LEAF /* only while a forest is made */
} sni_tree_mode;

/* A child is a node's number, or for a leaf the complement (~) of its number. */
typedef struct sni_tree_node {
    double split;
    int32_t feature, yes, no;
    int32_t set, set_size; /* MEMBER: values in `members` */
    uint8_t mode, missing_is_yes;
} sni_tree_node;

typedef struct sni_tree_weight {
    int32_t target;
    double weight;
} sni_tree_weight;

typedef struct sni_forest {
    sni_tree_node *nodes;
    int32_t *roots; /* n_trees children */
    sni_tree_weight *weights;
    int32_t *leaf_weights; /* leaf i has weights [leaf_weights[i], leaf_weights[i + 1]) */
    const double *members;
    int32_t n_nodes, n_trees, n_leaves, n_weights;
    int64_t features; /* the least number of features of a row */
    int64_t targets;
} sni_forest;

/* Attributes of TreeEnsembleClassifier and TreeEnsembleRegressor: nodes are named by tree and
 * number, leaves may have several weights. */
typedef struct sni_tree_lists {
    sni_ints tree_ids, node_ids, feature_ids, true_ids, false_ids, missing;
    sni_strings modes;
    sni_floats values;
    const sni_tensor *values_tensor;
    sni_ints weight_trees, weight_nodes, weight_targets;
    sni_floats weights;
    const sni_tensor *weights_tensor;
    sni_floats hitrates; /* not used by evaluation */
    const sni_tensor *hitrates_tensor;
} sni_tree_lists;

/* Makes a forest in the arena and checks it: every child exists, no node has two parents, targets
 * are below `targets`. */
sn_status sni_forest_of_lists(const sni_tree_lists *l, int64_t targets, sni_arena *arena,
                              sni_forest *out, sn_error *err);

/* Attributes of TreeEnsemble. */
typedef struct sni_tree_indices {
    sni_ints roots, feature_ids, true_ids, false_ids, true_leafs, false_leafs, missing;
    const sni_tensor *modes, *splits, *members, *leaf_weights, *hitrates;
    sni_ints leaf_targets;
} sni_tree_indices;
sn_status sni_forest_of_indices(const sni_tree_indices *l, int64_t targets, sni_arena *arena,
                                sni_forest *out, sn_error *err);

/* The forest of a node of TreeEnsemble, TreeEnsembleClassifier or TreeEnsembleRegressor; NULL if
 * its leaves are not summed. */
const sni_forest *sni_trees_forest(const sni_op *op, const void *params);

/* What sums of votes start from: it stays as it is, told by its sign, where none is added. */
#define SNI_TREE_NO_VOTE (-0.0)

/* Sums of the leaves' weights, tree by tree, to `sums` (rows, targets) for the rows of input 0;
 * SNI_TREE_NO_VOTE where there is no weight. */
typedef sn_status (*sni_trees_sum_fn)(sni_kernel *k, int64_t rows, int64_t width, double *sums);

/* Runs such a node with the sums of `sum`; NULL: by walking the trees one by one. */
sn_status sni_trees_run(sni_kernel *k, sni_trees_sum_fn sum);

/* The leaf that a row of f->features values reaches. */
int32_t sni_tree_walk(const sni_forest *f, int32_t tree, const double *row);

#endif
