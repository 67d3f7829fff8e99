/* forest.c - making, checking and walking forests of decision trees. */
#include "ops/ml/forest.h"

#include "ops/core/tensor_util.h"

#include <math.h>

static sn_status invalid(sn_error *err, const char *what, int64_t value) {
    return sni_fail(err, SN_INVALID_MODEL, "%s (%lld)", what, (long long)value);
}

static sn_status allocate(sni_forest *f, size_t nodes, size_t leaves, size_t weights, size_t trees,
                          sni_arena *arena, sn_error *err) {
    if (f->targets < 0 || f->targets > INT32_MAX)
        return invalid(err, "no number of targets", f->targets);
    if (nodes > INT32_MAX - 1 || leaves > INT32_MAX - 1 || weights > INT32_MAX - 1 ||
        trees > INT32_MAX - 1)
        return sni_fail(err, SN_LIMIT, "the trees have too many nodes");
    f->n_nodes = (int32_t)nodes;
    f->n_leaves = (int32_t)leaves;
    f->n_weights = (int32_t)weights;
    f->n_trees = (int32_t)trees;
    f->nodes = SNI_NEW_ARRAY(arena, sni_tree_node, nodes);
    f->leaf_weights = SNI_NEW_ARRAY(arena, int32_t, leaves + 1);
    f->weights = SNI_NEW_ARRAY(arena, sni_tree_weight, weights);
    f->roots = SNI_NEW_ARRAY(arena, int32_t, trees);
    if (!f->nodes || !f->leaf_weights || !f->weights || !f->roots) return sni_fail_memory(err);
    return SN_OK;
}

static sn_status set_feature(sni_forest *f, sni_tree_node *n, int64_t feature, sn_error *err) {
    if (feature < 0 || feature >= INT32_MAX) return invalid(err, "no feature number", feature);
    n->feature = (int32_t)feature;
    if (feature >= f->features) f->features = feature + 1;
    return SN_OK;
}

/* Counts a parent of each child; the second different one makes it no tree. */
static sn_status adopt(sni_forest *f, int32_t *parent, int32_t node, sn_error *err) {
    const int32_t children[2] = {f->nodes[node].yes, f->nodes[node].no};
    for (int i = 0; i < 2; i++) {
        if (children[i] < 0) continue;
        if (parent[children[i]] != 0 && parent[children[i]] != node + 1)
            return invalid(err, "a node of a tree has two parents", children[i]);
        parent[children[i]] = node + 1;
    }
    return SN_OK;
}

/* ---- Nodes by tree and number ---- */

typedef struct node_index {
    const sni_tree_lists *l;
    int32_t *slots; /* position in the lists + 1; 0: free */
    size_t mask;
    int32_t *starts; /* nodes stand in the order of their numbers: those of tree t from starts[t]
                        to starts[t + 1], and there are no slots; NULL: they do not */
    int64_t n_trees;
} node_index;

static int32_t *index_slot(const node_index *x, int64_t tree, int64_t node) {
    uint64_t h = ((uint64_t)tree * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)node) *
                 UINT64_C(0xD6E8FEB86659FD93);
    for (h ^= h >> 32;; h++) {
        int32_t *slot = &x->slots[h & x->mask];
        if (*slot == 0 ||
            (x->l->tree_ids.v[*slot - 1] == tree && x->l->node_ids.v[*slot - 1] == node))
            return slot;
    }
}

/* How many trees there are if they and their nodes are numbered 0, 1, 2... in the lists; else -1.
 */
static int64_t count_in_order(const sni_tree_lists *l) {
    int64_t trees = 0, next = 0;
    for (size_t i = 0; i < l->node_ids.n; i++, next++) {
        if (l->tree_ids.v[i] == trees && l->node_ids.v[i] == 0) {
            trees++;
            next = 0;
        }
        if (l->tree_ids.v[i] != trees - 1 || l->node_ids.v[i] != next) return -1;
    }
    return trees;
}

/* Position in the lists + 1 of a node; 0: there is none. */
static int32_t find_node(const node_index *x, int64_t tree, int64_t node) {
    if (!x->starts) return *index_slot(x, tree, node);
    if (tree < 0 || tree >= x->n_trees || node < 0) return 0;
    int32_t start = x->starts[tree], end = x->starts[tree + 1];
    return node < end - start ? start + (int32_t)node + 1 : 0;
}

static sn_status build_index(const sni_tree_lists *l, sni_arena *arena, node_index *x,
                             sn_error *err) {
    size_t size = 16;
    *x = (node_index){.l = l, .n_trees = count_in_order(l)};
    if (x->n_trees >= 0) {
        x->starts = SNI_NEW_ARRAY(arena, int32_t, x->n_trees + 1);
        if (!x->starts) return sni_fail_memory(err);
        for (size_t i = 0; i < l->node_ids.n; i++) x->starts[l->tree_ids.v[i] + 1] = (int32_t)i + 1;
        return SN_OK;
    }
    while (size < 2 * l->node_ids.n) size *= 2;
    x->slots = SNI_NEW_ARRAY(arena, int32_t, size);
    x->mask = size - 1;
    if (!x->slots) return sni_fail_memory(err);
    for (size_t i = 0; i < l->node_ids.n; i++) {
        int32_t *slot = index_slot(x, l->tree_ids.v[i], l->node_ids.v[i]);
        if (*slot) return invalid(err, "a tree has two nodes of one number", l->node_ids.v[i]);
        *slot = (int32_t)i + 1;
    }
    return SN_OK;
}

static sn_status parse_mode(sni_str s, uint8_t *mode, sn_error *err) {
    static const char *const names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
    for (uint8_t i = 0; i < 8; i++) {
        if (i != SNI_TREE_MEMBER && sni_str_is(s, names[i])) {
            *mode = i;
            return SN_OK;
        }
    }
    return sni_fail(err, SN_INVALID_MODEL, "'%.*s' is no mode of a node", SNI_FMT(s));
}

static size_t value_count(const sni_floats *list, const sni_tensor *t) {
    return t ? (size_t)t->count : list->n;
}

static double value_at(const sni_floats *list, const sni_tensor *t, size_t i) {
    return t ? sni_number_at(t, (int64_t)i) : (double)list->v[i];
}

static sn_status check_lists(const sni_tree_lists *l, sn_error *err) {
    size_t n = l->node_ids.n, w = l->weight_nodes.n;
    if (l->tree_ids.n != n || l->feature_ids.n != n || l->true_ids.n != n || l->false_ids.n != n ||
        l->modes.n != n || value_count(&l->values, l->values_tensor) != n ||
        (l->missing.n != 0 && l->missing.n != n))
        return invalid(err, "the lists of nodes differ in length", (int64_t)n);
    if (l->weight_trees.n != w || l->weight_targets.n != w ||
        value_count(&l->weights, l->weights_tensor) != w)
        return invalid(err, "the lists of weights differ in length", (int64_t)w);
    if (n >= INT32_MAX || w >= INT32_MAX) return sni_fail(err, SN_LIMIT, "too many nodes");
    const sni_tensor *tensors[2] = {l->values_tensor, l->weights_tensor};
    for (int i = 0; i < 2; i++)
        if (tensors[i] && tensors[i]->dtype != SN_FLOAT32 && tensors[i]->dtype != SN_FLOAT64)
            return invalid(err, "values are neither float nor double", tensors[i]->dtype);
    return SN_OK;
}

/* The child with that number, as forest nodes have it. `leaf_of` numbers the leaves. */
static sn_status find_child(const node_index *x, const uint8_t *modes, const int32_t *place,
                            int64_t tree, int64_t node, int32_t *out, sn_error *err) {
    int32_t at = find_node(x, tree, node);
    if (at == 0) return invalid(err, "a child of a node does not exist", node);
    *out = modes[at - 1] == SNI_TREE_LEAF ? ~place[at - 1] : place[at - 1];
    return SN_OK;
}

/* Positions in the lists to numbers of inner nodes and of leaves. */
static sn_status number_nodes(const sni_tree_lists *l, uint8_t *modes, int32_t *place,
                              int32_t *inner, int32_t *leaves, sn_error *err) {
    *inner = *leaves = 0;
    for (size_t i = 0; i < l->node_ids.n; i++) {
        SN_TRY(parse_mode(l->modes.v[i], &modes[i], err));
        place[i] = modes[i] == SNI_TREE_LEAF ? (*leaves)++ : (*inner)++;
    }
    return SN_OK;
}

static sn_status fill_nodes(const sni_tree_lists *l, const node_index *x, const uint8_t *modes,
                            const int32_t *place, int32_t *parent, sni_forest *f, sn_error *err) {
    for (size_t i = 0; i < l->node_ids.n; i++) {
        if (modes[i] == SNI_TREE_LEAF) continue;
        sni_tree_node *n = &f->nodes[place[i]];
        n->mode = modes[i];
        n->split = value_at(&l->values, l->values_tensor, i);
        n->missing_is_yes = l->missing.n && l->missing.v[i];
        SN_TRY(set_feature(f, n, l->feature_ids.v[i], err));
        SN_TRY(find_child(x, modes, place, l->tree_ids.v[i], l->true_ids.v[i], &n->yes, err));
        SN_TRY(find_child(x, modes, place, l->tree_ids.v[i], l->false_ids.v[i], &n->no, err));
        SN_TRY(adopt(f, parent, place[i], err));
    }
    return SN_OK;
}

/* Sorts the weights by leaf. Weights of inner nodes are never reached and left out. */
static sn_status fill_weights(const sni_tree_lists *l, const node_index *x, const uint8_t *modes,
                              const int32_t *place, sni_forest *f, sn_error *err) {
    int32_t *start = f->leaf_weights;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < l->weight_nodes.n; i++) {
            int32_t at = find_node(x, l->weight_trees.v[i], l->weight_nodes.v[i]);
            int64_t target = l->weight_targets.v[i];
            if (at == 0)
                return invalid(err, "a weight's node does not exist", l->weight_nodes.v[i]);
            if (target < 0 || target >= f->targets)
                return invalid(err, "a weight's target does not exist", target);
            if (modes[at - 1] != SNI_TREE_LEAF) continue;
            int32_t leaf = place[at - 1];
            if (pass == 0) {
                start[leaf + 1]++;
            } else {
                f->weights[start[leaf]++] =
                    (sni_tree_weight){(int32_t)target, value_at(&l->weights, l->weights_tensor, i)};
            }
        }
        for (int32_t i = 0; pass == 0 && i < f->n_leaves; i++) start[i + 1] += start[i];
    }
    /* The second pass moved every start to its end. */
    for (int32_t i = f->n_leaves; i > 0; i--) start[i] = start[i - 1];
    start[0] = 0;
    return SN_OK;
}

/* Nodes and leaves that are no child of another are roots. */
static void find_roots(const sni_tree_lists *l, const uint8_t *modes, const int32_t *place,
                       const int32_t *parent, const uint8_t *owned, sni_forest *f) {
    f->n_trees = 0;
    for (size_t i = 0; i < l->node_ids.n; i++) {
        if (modes[i] == SNI_TREE_LEAF) {
            if (!owned[place[i]]) f->roots[f->n_trees++] = ~place[i];
        } else if (parent[place[i]] == 0) {
            f->roots[f->n_trees++] = place[i];
        }
    }
}

sn_status sni_forest_of_lists(const sni_tree_lists *l, int64_t targets, sni_arena *arena,
                              sni_forest *out, sn_error *err) {
    SN_TRY(check_lists(l, err));
    size_t n = l->node_ids.n;
    uint8_t *modes = SNI_NEW_ARRAY(arena, uint8_t, n), *owned = SNI_NEW_ARRAY(arena, uint8_t, n);
    int32_t *place = SNI_NEW_ARRAY(arena, int32_t, n), *parent = SNI_NEW_ARRAY(arena, int32_t, n);
    if (!modes || !owned || !place || !parent) return sni_fail_memory(err);
    node_index index;
    int32_t inner, leaves;
    sni_forest f = {.targets = targets};
    SN_TRY(build_index(l, arena, &index, err));
    SN_TRY(number_nodes(l, modes, place, &inner, &leaves, err));
    SN_TRY(allocate(&f, (size_t)inner, (size_t)leaves, l->weight_nodes.n, n, arena, err));
    SN_TRY(fill_nodes(l, &index, modes, place, parent, &f, err));
    SN_TRY(fill_weights(l, &index, modes, place, &f, err));
    for (int32_t i = 0; i < f.n_nodes; i++) {
        if (f.nodes[i].yes < 0) owned[~f.nodes[i].yes] = 1;
        if (f.nodes[i].no < 0) owned[~f.nodes[i].no] = 1;
    }
    find_roots(l, modes, place, parent, owned, &f);
    *out = f;
    return SN_OK;
}

/* ---- Nodes by index ---- */

static sn_status child_of_index(const sni_forest *f, int64_t leaf, int64_t index, int32_t *out,
                                sn_error *err) {
    if (index < 0 || index >= (leaf ? f->n_leaves : f->n_nodes))
        return invalid(err, "a child of a node does not exist", index);
    *out = leaf ? ~(int32_t)index : (int32_t)index;
    return SN_OK;
}

static sn_status check_indices(const sni_tree_indices *l, sn_error *err) {
    size_t n = l->feature_ids.n;
    if (!l->modes || !l->splits || !l->leaf_weights || l->modes->dtype != SN_UINT8)
        return invalid(err, "nodes_modes, nodes_splits or leaf_weights are missing", (int64_t)n);
    if ((size_t)l->modes->count != n || (size_t)l->splits->count != n || l->true_ids.n != n ||
        l->false_ids.n != n || l->true_leafs.n != n || l->false_leafs.n != n ||
        (l->missing.n != 0 && l->missing.n != n))
        return invalid(err, "the lists of nodes differ in length", (int64_t)n);
    if ((size_t)l->leaf_weights->count != l->leaf_targets.n)
        return invalid(err, "the lists of leaves differ in length", l->leaf_weights->count);
    const sni_tensor *tensors[3] = {l->splits, l->leaf_weights, l->members};
    for (int i = 0; i < 3; i++)
        if (tensors[i] && sni_dtype_get(tensors[i]->dtype)->cls != SNI_CLASS_F &&
            sni_dtype_get(tensors[i]->dtype)->cls != SNI_CLASS_S)
            return invalid(err, "values are not floats", tensors[i]->dtype);
    return SN_OK;
}

/* Gives each MEMBER node its values: runs that end with NaN, in order of the nodes. */
static sn_status fill_members(const sni_tree_indices *l, sni_forest *f, sni_arena *arena,
                              sn_error *err) {
    int64_t count = l->members ? l->members->count : 0, at = 0;
    if (count >= INT32_MAX) return sni_fail(err, SN_LIMIT, "too many members");
    double *members = SNI_NEW_ARRAY(arena, double, count);
    if (!members) return sni_fail_memory(err);
    for (int64_t i = 0; i < count; i++) members[i] = sni_number_at(l->members, i);
    f->members = members;
    for (int32_t i = 0; i < f->n_nodes; i++) {
        sni_tree_node *n = &f->nodes[i];
        if (n->mode != SNI_TREE_MEMBER) continue;
        n->set = (int32_t)at;
        while (at < count && !isnan(members[at])) at++;
        if (at == count) return invalid(err, "membership_values end before node", i);
        n->set_size = (int32_t)(at++ - n->set);
    }
    return SN_OK;
}

sn_status sni_forest_of_indices(const sni_tree_indices *l, int64_t targets, sni_arena *arena,
                                sni_forest *out, sn_error *err) {
    SN_TRY(check_indices(l, err));
    size_t leaves = l->leaf_targets.n;
    sni_forest f = {.targets = targets};
    SN_TRY(allocate(&f, l->feature_ids.n, leaves, leaves, l->roots.n, arena, err));
    int32_t *parent = SNI_NEW_ARRAY(arena, int32_t, f.n_nodes);
    if (!parent) return sni_fail_memory(err);
    for (int32_t i = 0; i < f.n_nodes; i++) {
        sni_tree_node *n = &f.nodes[i];
        n->mode = ((const uint8_t *)l->modes->data)[i];
        if (n->mode > SNI_TREE_MEMBER) return invalid(err, "no mode of a node", n->mode);
        n->split = sni_number_at(l->splits, i);
        n->missing_is_yes = l->missing.n && l->missing.v[i];
        SN_TRY(set_feature(&f, n, l->feature_ids.v[i], err));
        SN_TRY(child_of_index(&f, l->true_leafs.v[i], l->true_ids.v[i], &n->yes, err));
        SN_TRY(child_of_index(&f, l->false_leafs.v[i], l->false_ids.v[i], &n->no, err));
        SN_TRY(adopt(&f, parent, i, err));
    }
    for (int32_t i = 0; i < f.n_leaves; i++) {
        int64_t target = l->leaf_targets.v[i];
        if (target < 0 || target >= targets)
            return invalid(err, "a weight's target does not exist", target);
        f.weights[i] = (sni_tree_weight){(int32_t)target, sni_number_at(l->leaf_weights, i)};
        f.leaf_weights[i + 1] = i + 1;
    }
    for (int32_t i = 0; i < f.n_trees; i++) {
        SN_TRY(child_of_index(&f, 0, l->roots.v[i], &f.roots[i], err));
        if (parent[f.roots[i]])
            return invalid(err, "a root is another node's child", l->roots.v[i]);
    }
    SN_TRY(fill_members(l, &f, arena, err));
    *out = f;
    return SN_OK;
}

/* ---- Walking ---- */

static bool goes_yes(const sni_forest *f, const sni_tree_node *n, double x) {
    switch ((sni_tree_mode)n->mode) {
    case SNI_TREE_LEQ:
        return x <= n->split;
    case SNI_TREE_LT:
        return x < n->split;
    case SNI_TREE_GTE:
        return x >= n->split;
    case SNI_TREE_GT:
        return x > n->split;
    case SNI_TREE_EQ:
        return x == n->split;
    case SNI_TREE_NEQ:
        return x != n->split;
    default:
        for (int32_t i = 0; i < n->set_size; i++)
            if (f->members[n->set + i] == x) return true;
        return false;
    }
}

int32_t sni_tree_walk(const sni_forest *f, int32_t tree, const double *row) {
    int32_t at = f->roots[tree];
    while (at >= 0) {
        const sni_tree_node *n = &f->nodes[at];
        double x = row[n->feature];
        bool yes = goes_yes(f, n, x) || (n->missing_is_yes && x != x);
        at = yes ? n->yes : n->no;
    }
    return ~at;
}
