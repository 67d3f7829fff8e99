/* trees.c - tree ensembles over float32 features. Many walks run at once: those of the rows of a
 * batch through one tree or, for few rows, those of the trees of a row. Leaves are added in the
 * order of the reference kernel, so that results have the same bits. */
#include "ops/ml/forest.h"

#include "base/threadpool.h"
#include "cpu/ml/trees.h"
#include "cpu/core/cpu_ep.h"
#include "ops/core/wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = SNI_TREE_LANES,
    ROWS = LANES,                    /* rows that walk through a tree before the next tree */
    LEAST_ROWS = 2 * SNI_TREE_GROUP, /* fewer rows: the trees of each row are walked at once */
    MOST_WIDE = 4,                   /* targets that are summed in registers */
    SPLIT_WALKS = 512                /* walks of few rows that are worth a second thread */
};

typedef struct packed_forest {
    int32_t n_nodes;
    sni_tree_place *nodes;
    int32_t *roots;
    double *dense; /* (leaves, targets) if every leaf has a weight for each target in order */
    bool ones;     /* every leaf has one weight, whose index is the leaf's number */
} packed_forest;

/* ---- Choosing ---- */

/* The float s for which x <= s is the node's condition for every float x; NaN: there is none. */
static float float_split(const sni_tree_node *n) {
    float below = (float)n->split;
    if ((double)below > n->split) below = nextafterf(below, -INFINITY);
    if (n->mode == SNI_TREE_LT && (double)below == n->split) {
        if (below == -INFINITY) return NAN;
        below = nextafterf(below, -INFINITY);
    }
    return below;
}

static bool accepts(const sni_choice *c) {
    const sni_forest *f = sni_trees_forest(c->node->op, c->params);
    if (!f || !sni_choice_is(c, 0, SN_FLOAT32) || !f->n_trees) return false;
    if (f->features > 1 << SNI_TREE_FEATURE_BITS || f->n_nodes > 1 << 29) return false;
    for (int32_t i = 0; i < f->n_nodes; i++) {
        const sni_tree_node *n = &f->nodes[i];
        if ((n->mode != SNI_TREE_LEQ && n->mode != SNI_TREE_LT) || isnan(float_split(n)))
            return false;
    }
    return true;
}

/* ---- Packing ---- */

typedef struct layout {
    const sni_forest *f;
    packed_forest *p;
    int32_t *stack; /* nodes whose true side has been placed; see put_tree */
    bool too_large;
} layout;

static void put_leaf(const layout *l, int32_t leaf) {
    packed_forest *p = l->p;
    p->nodes[p->n_nodes++] = sni_tree_leaf(leaf);
}

/* Places a tree in preorder. A node on the stack waits for its false side; an entry is two numbers:
 * the node of the forest, and its place. */
static void put_tree(layout *l, int32_t root) {
    const sni_forest *f = l->f;
    packed_forest *p = l->p;
    int32_t depth = 0, child = root;
    for (;;) {
        while (child >= 0) {
            l->stack[depth++] = child;
            l->stack[depth++] = p->n_nodes;
            p->nodes[p->n_nodes++].split = float_split(&f->nodes[child]);
            child = f->nodes[child].yes;
        }
        put_leaf(l, ~child);
        if (depth == 0) return;
        int32_t at = l->stack[--depth];
        const sni_tree_node *n = &f->nodes[l->stack[--depth]];
        int32_t skip = p->n_nodes - at;
        if (skip >= 1 << SNI_TREE_SKIP_BITS) l->too_large = true;
        p->nodes[at].link =
            sni_tree_link(n->feature, skip & ((1 << SNI_TREE_SKIP_BITS) - 1), n->missing_is_yes);
        child = n->no;
    }
}

/* True if every leaf has one weight for each target, in order. */
static bool is_dense(const sni_forest *f) {
    for (int32_t leaf = 0; leaf < f->n_leaves; leaf++) {
        int32_t first = f->leaf_weights[leaf];
        if (f->leaf_weights[leaf + 1] - first != f->targets) return false;
        for (int32_t t = 0; t < f->targets; t++)
            if (f->weights[first + t].target != t) return false;
    }
    return true;
}

static bool has_ones(const sni_forest *f) {
    for (int32_t leaf = 0; leaf <= f->n_leaves; leaf++)
        if (f->leaf_weights[leaf] != leaf) return false;
    return true;
}

static void release(void *state) {
    packed_forest *p = state;
    if (!p) return;
    free(p->nodes);
    free(p->roots);
    free(p->dense);
    free(p);
}

static bool make_room(const sni_forest *f, packed_forest *p, bool dense) {
    size_t nodes = (size_t)f->n_nodes + (size_t)f->n_nodes + (size_t)f->n_trees;
    p->nodes = aligned_alloc(SNI_ALIGN,
                             (nodes * sizeof *p->nodes + SNI_ALIGN - 1) / SNI_ALIGN * SNI_ALIGN);
    p->roots = malloc((size_t)f->n_trees * sizeof *p->roots);
    if (dense) p->dense = malloc((size_t)f->n_leaves * (size_t)f->targets * sizeof *p->dense + 1);
    return p->nodes && p->roots && (p->dense || !dense);
}

static sn_status prepare(const sni_choice *c, void **state, sn_error *err) {
    const sni_forest *f = sni_trees_forest(c->node->op, c->params);
    packed_forest *p = calloc(1, sizeof *p);
    layout l = {.f = f, .p = p, .too_large = f->n_leaves > 1 << SNI_TREE_LEAF_BITS};
    bool dense = is_dense(f);
    l.stack = malloc((size_t)f->n_nodes * 2 * sizeof *l.stack + 1);
    if (!p || !l.stack || !make_room(f, p, dense)) {
        release(p);
        free(l.stack);
        return sni_fail_memory(err);
    }
    for (int32_t t = 0; t < f->n_trees && !l.too_large; t++) {
        p->roots[t] = p->n_nodes;
        put_tree(&l, f->roots[t]);
    }
    for (int32_t i = 0; dense && i < f->leaf_weights[f->n_leaves]; i++)
        p->dense[i] = f->weights[i].weight;
    p->ones = has_ones(f);
    free(l.stack);
    if (l.too_large) { /* the reference kernel walks it */
        release(p);
        p = NULL;
    }
    *state = p;
    return SN_OK;
}

/* ---- Walking ---- */

typedef struct walk_job {
    const sni_forest *f;
    const packed_forest *p;
    const sni_tree_kernels *kernels;
    const float *x;
    int64_t rows, width;
    double *sums;
} walk_job;

static void add_leaf(const walk_job *j, int32_t node, double *sums) {
    const sni_forest *f = j->f;
    int32_t leaf = sni_tree_leaf_number(&j->p->nodes[node]);
    if (j->p->dense) {
        const double *w = j->p->dense + (int64_t)leaf * f->targets;
        for (int64_t t = 0; t < f->targets; t++) sums[t] += w[t];
        return;
    }
    for (int32_t i = f->leaf_weights[leaf]; i < f->leaf_weights[leaf + 1]; i++)
        sums[f->weights[i].target] += f->weights[i].weight;
}

/* Adds the dense leaves of one row to `wide` targets from `first` on. `wide` is a constant at every
 * call, so that the sums stay in registers from leaf to leaf. */
static inline __attribute__((always_inline)) void add_dense(const walk_job *j, const int32_t *nodes,
                                                            int32_t count, int64_t first, int wide,
                                                            double *sums) {
    double total[MOST_WIDE];
    for (int t = 0; t < wide; t++) total[t] = sums[first + t];
    for (int32_t i = 0; i < count; i++) {
        int64_t leaf = sni_tree_leaf_number(&j->p->nodes[nodes[i]]);
        const double *w = j->p->dense + leaf * j->f->targets + first;
        for (int t = 0; t < wide; t++) total[t] += w[t];
    }
    for (int t = 0; t < wide; t++) sums[first + t] = total[t];
}

static void add_ones(const walk_job *j, const int32_t *nodes, int32_t count, double *sums) {
    const sni_tree_place *places = j->p->nodes;
    for (int32_t i = 0; i < count; i++) {
        int32_t leaf = sni_tree_leaf_number(&places[nodes[i]]);
        sums[j->f->weights[leaf].target] += j->f->weights[leaf].weight;
    }
}

/* Adds the leaves of one row's walks, in their order. */
static void add_leaves(const walk_job *j, const int32_t *nodes, int32_t count, double *sums) {
    int64_t t = 0, targets = j->f->targets;
    if (!j->p->dense && j->p->ones) {
        add_ones(j, nodes, count, sums);
        return;
    }
    if (!j->p->dense) {
        for (int32_t i = 0; i < count; i++) add_leaf(j, nodes[i], sums);
        return;
    }
    for (; t + MOST_WIDE <= targets; t += MOST_WIDE) add_dense(j, nodes, count, t, MOST_WIDE, sums);
    switch (targets - t) {
    case 3:
        add_dense(j, nodes, count, t, 3, sums);
        break;
    case 2:
        add_dense(j, nodes, count, t, 2, sums);
        break;
    case 1:
        add_dense(j, nodes, count, t, 1, sums);
        break;
    default:
        break;
    }
}

/* The number of walks, n rounded up, that a call of the kernel makes. */
static int walks(int64_t n) {
    return n > LANES ? LANES : (int)((n + SNI_TREE_GROUP - 1) / SNI_TREE_GROUP * SNI_TREE_GROUP);
}

/* Up to ROWS rows through one tree after the other: a walk per row. */
static void walk_rows(const walk_job *j, int64_t first, int64_t rows) {
    int32_t from[ROWS], at[ROWS];
    int count = walks(rows);
    for (int64_t r = 0; r < ROWS; r++) from[r] = (int32_t)((r < rows ? r : rows - 1) * j->width);
    for (int32_t tree = 0; tree < j->f->n_trees; tree++) {
        for (int l = 0; l < count; l++) at[l] = j->p->roots[tree];
        j->kernels->walk(j->p->nodes, j->x + first * j->width, from, at, count);
        for (int64_t r = 0; r < rows; r++)
            add_leaf(j, at[r], j->sums + (first + r) * j->f->targets);
    }
}

/* Consecutive trees of one row. */
typedef struct run_of_trees {
    int32_t row, tree, count;
} run_of_trees;

/* The run after r, of at most `most` trees. */
static run_of_trees next_run(run_of_trees r, int32_t n_trees, int32_t most) {
    r.tree += r.count;
    if (r.tree == n_trees) {
        r.tree = 0;
        r.row++;
    }
    r.count = n_trees - r.tree < most ? n_trees - r.tree : most;
    return r;
}

/* at[l] = the leaves of walks [begin, begin + used) of the rows from `first` on, used <= LANES.
 * Walks are counted row by row and within a row tree by tree. */
static void walk_some(const walk_job *j, int64_t first, int64_t begin, int used,
                      int32_t at[LANES]) {
    const int32_t n = j->f->n_trees, end = j->p->n_nodes - 1; /* the last node is a leaf */
    int32_t from[LANES];
    int count = walks(used);
    run_of_trees put = {.row = (int32_t)(begin / n), .tree = (int32_t)(begin % n)};
    for (int l = 0; l < used; l += put.count) {
        put = next_run(put, n, used - l);
        const int32_t x = (int32_t)(put.row * j->width), *roots = j->p->roots + put.tree;
        for (int32_t i = 0; i < put.count; i++) from[l + i] = x;
        for (int32_t i = 0; i < put.count; i++) at[l + i] = roots[i];
    }
    for (int l = used; l < count; l++) {
        from[l] = 0;
        at[l] = end;
    }
    j->kernels->walk(j->p->nodes, j->x + first * j->width, from, at, count);
}

/* Few rows, which would not fill the vectors with one tree: the walks are the trees of one row
 * after the other. */
static void walk_trees(const walk_job *j, int64_t first, int64_t rows) {
    const int32_t n = j->f->n_trees;
    int32_t at[LANES];
    run_of_trees take = {0};
    for (int64_t begin = 0; begin < rows * n; begin += LANES) {
        int used = rows * n - begin < LANES ? (int)(rows * n - begin) : LANES;
        walk_some(j, first, begin, used, at);
        for (int l = 0; l < used; l += take.count) {
            take = next_run(take, n, used - l);
            add_leaves(j, at + l, take.count, j->sums + (first + take.row) * j->f->targets);
        }
    }
}

/* The same with several threads: all walks in parallel, then the sums in order. */
typedef struct split_job {
    const walk_job *job;
    int32_t *leaves; /* of all walks */
} split_job;

static void walk_split(void *ctx, int64_t begin, int64_t end) {
    const split_job *s = ctx;
    int64_t all = s->job->rows * s->job->f->n_trees;
    for (int64_t at = begin * LANES; at < end * LANES && at < all; at += LANES) {
        int32_t leaves[LANES];
        int used = all - at < LANES ? (int)(all - at) : LANES;
        walk_some(s->job, 0, at, used, leaves);
        memcpy(s->leaves + at, leaves, (size_t)used * sizeof *leaves);
    }
}

static sn_status sum_split(sni_kernel *k, const walk_job *j) {
    int64_t n = j->f->n_trees, all = j->rows * n;
    void *leaves = NULL;
    SN_TRY(sni_scratch_array(k, all, sizeof(int32_t), &leaves));
    split_job s = {.job = j, .leaves = leaves};
    sni_parallel_for(k->threads, (all + LANES - 1) / LANES, SPLIT_WALKS / LANES / 2, walk_split,
                     &s);
    for (int64_t r = 0; r < j->rows; r++)
        add_leaves(j, s.leaves + r * n, (int32_t)n, j->sums + r * j->f->targets);
    return SN_OK;
}

/* Blocks [begin, end) of ROWS rows. */
static void walk_blocks(void *ctx, int64_t begin, int64_t end) {
    const walk_job *j = ctx;
    for (int64_t b = begin; b < end; b++) {
        int64_t first = b * ROWS, rows = j->rows - first < ROWS ? j->rows - first : ROWS;
        if (rows >= LEAST_ROWS)
            walk_rows(j, first, rows);
        else
            walk_trees(j, first, rows);
    }
}

static sn_status sum(sni_kernel *k, int64_t rows, int64_t width, double *sums) {
    const sni_forest *f = sni_trees_forest(k->node->op, k->params);
    walk_job job = {.f = f,
                    .p = k->state,
                    .kernels = sni_cpu_kernels_get()->trees,
                    .x = sni_in(k, 0)->data,
                    .rows = rows,
                    .width = width,
                    .sums = sums};
    for (int64_t i = 0; i < rows * f->targets; i++) sums[i] = SNI_TREE_NO_VOTE;
    if (rows <= ROWS && rows * f->n_trees >= SPLIT_WALKS && k->threads != 1)
        return sum_split(k, &job);
    sni_parallel_for(k->threads, (rows + ROWS - 1) / ROWS, 1, walk_blocks, &job);
    return SN_OK;
}

static sn_status run(sni_kernel *k) {
    const sni_tensor *x = sni_in(k, 0);
    int64_t width = x->rank ? x->dims[x->rank - 1] : 1;
    return sni_trees_run(k, k->state && width <= INT32_MAX / ROWS ? sum : NULL);
}

const sni_impl sni_cpu_tree_ensemble = {
    .name = "trees_f32",
    .op = "TreeEnsemble",
    .domain = "ai.onnx.ml",
    .accepts = accepts,
    .prepare = prepare,
    .release = release,
    .run = run,
};

const sni_impl sni_cpu_tree_classifier = {
    .name = "trees_f32",
    .op = "TreeEnsembleClassifier",
    .domain = "ai.onnx.ml",
    .accepts = accepts,
    .prepare = prepare,
    .release = release,
    .run = run,
};

const sni_impl sni_cpu_tree_regressor = {
    .name = "trees_f32",
    .op = "TreeEnsembleRegressor",
    .domain = "ai.onnx.ml",
    .accepts = accepts,
    .prepare = prepare,
    .release = release,
    .run = run,
};
