/* TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor. */
#include "ops/ml/forest.h"
#include "ops/ml/ml.h"
#include "ops/core/wide.h"

#include "base/threadpool.h"

#include <math.h>

enum { AVERAGE, SUM, MIN, MAX };
enum { GRAIN = 512 }; /* trees walked that are worth a thread */

typedef struct score_job {
    const sni_forest *f;
    const double *x;    /* (rows, width) */
    double *scores;     /* (rows, targets) */
    const double *base; /* targets of them, or NULL */
    int64_t width;
    int32_t aggregate, transform;
    bool
        tell_votes; /* scores stay SNI_TREE_NO_VOTE where no leaf voted; only without base values */
    sni_trees_sum_fn sum; /* NULL: the trees are walked here */
} score_job;

static void add_leaf(const score_job *j, int32_t leaf, double *row, bool *seen) {
    const sni_forest *f = j->f;
    for (int32_t i = f->leaf_weights[leaf]; i < f->leaf_weights[leaf + 1]; i++) {
        double w = f->weights[i].weight, *s = &row[f->weights[i].target];
        if (!seen) {
            *s += w;
            continue;
        }
        bool *first = &seen[f->weights[i].target];
        if (!*first || (j->aggregate == MIN ? w < *s : w > *s)) *s = w;
        *first = true;
    }
}

/* What becomes of a row's sums. Targets without a vote get a plain 0 unless they are to be told. */
static void settle_row(const score_job *j, double *row) {
    const sni_forest *f = j->f;
    for (int64_t t = 0; t < f->targets; t++) {
        if (j->aggregate == AVERAGE && f->n_trees) row[t] /= f->n_trees;
        if (j->base)
            row[t] += j->base[t];
        else if (!j->tell_votes)
            row[t] += 0.0;
    }
}

/* Sums (or extremes, where `seen` has a flag per target) of one row. */
static void score_row(const score_job *j, const double *x, double *row, bool *seen) {
    const sni_forest *f = j->f;
    for (int64_t t = 0; t < f->targets; t++) row[t] = SNI_TREE_NO_VOTE;
    for (int64_t t = 0; seen && t < f->targets; t++) seen[t] = false;
    for (int32_t tree = 0; tree < f->n_trees; tree++)
        add_leaf(j, sni_tree_walk(f, tree, x), row, seen);
    settle_row(j, row);
}

typedef struct score_pieces {
    const score_job *j;
    bool *seen; /* (rows, targets), or NULL */
} score_pieces;

static void score_piece(void *ctx, int64_t begin, int64_t end) {
    const score_pieces *p = ctx;
    int64_t targets = p->j->f->targets;
    for (int64_t r = begin; r < end; r++)
        score_row(p->j, p->j->x + r * p->j->width, p->j->scores + r * targets,
                  p->seen ? p->seen + r * targets : NULL);
}

/* Scores of all rows of input 0, without transforms. */
static sn_status score(sni_kernel *k, score_job *j, sni_ml_rows *rows) {
    const sni_tensor *x = sni_in(k, 0);
    SN_TRY(sni_ml_rows_of(k, x, rows));
    if (rows->rows && rows->width < j->f->features)
        return SNI_KERNEL_FAIL(k, "rows have %lld features, the trees ask for %lld",
                               (long long)rows->width, (long long)j->f->features);
    void *scores = NULL, *seen = NULL;
    int64_t count;
    if (__builtin_mul_overflow(rows->rows, j->f->targets, &count))
        return sni_fail(k->err, SN_LIMIT, "there are too many scores");
    SN_TRY(sni_scratch_array(k, count, sizeof(double), &scores));
    j->scores = scores;
    if (j->sum) {
        SN_TRY(j->sum(k, rows->rows, rows->width, scores));
        for (int64_t r = 0; r < rows->rows; r++) settle_row(j, j->scores + r * j->f->targets);
        return SN_OK;
    }
    SN_TRY(sni_as_f64(k, x, &j->x));
    if (j->aggregate == MIN || j->aggregate == MAX)
        SN_TRY(sni_scratch_array(k, count, sizeof(bool), &seen));
    j->width = rows->width;
    score_pieces pieces = {j, seen};
    int64_t grain = GRAIN / (j->f->n_trees + 1);
    sni_parallel_for(k->threads, rows->rows, grain > 0 ? grain : 1, score_piece, &pieces);
    return SN_OK;
}

/* Scores with transforms into output 0, for the regressors. */
static sn_status regress(sni_kernel *k, score_job *j) {
    sni_ml_rows rows;
    sni_tensor *y = sni_out(k, 0);
    SN_TRY(score(k, j, &rows));
    int64_t targets = j->f->targets;
    if (y->count != rows.rows * targets)
        return SNI_KERNEL_FAIL(k, "the output has %lld elements", (long long)y->count);
    bool one =
        targets == 1 && (j->transform == SNI_ML_SOFTMAX || j->transform == SNI_ML_SOFTMAX_ZERO);
    for (int64_t r = 0; r < rows.rows && !one; r++) /* softmax of one score says nothing */
        sni_ml_finish(j->transform, j->scores + r * targets, targets);
    sni_store_numbers(y, SN_FLOAT64, j->scores, false);
    return SN_OK;
}

/* Base values as doubles, one per target; NULL if there are none. */
static sn_status base_values(const sni_floats *list, const sni_tensor *tensor, int64_t targets,
                             sni_arena *arena, double **out, sn_error *err) {
    int64_t n = tensor ? tensor->count : (int64_t)list->n;
    *out = NULL;
    if (n == 0) return SN_OK;
    if (tensor && tensor->dtype != SN_FLOAT32 && tensor->dtype != SN_FLOAT64)
        return sni_fail(err, SN_INVALID_MODEL, "base values are neither float nor double");
    if (n != 1 && n != targets)
        return sni_fail(err, SN_INVALID_MODEL, "%lld base values for %lld targets", (long long)n,
                        (long long)targets);
    double *base = SNI_NEW_ARRAY(arena, double, targets);
    if (!base) return sni_fail_memory(err);
    for (int64_t i = 0; i < targets; i++) {
        int64_t from = n == 1 ? 0 : i;
        base[i] = !tensor                       ? (double)list->v[from]
                  : tensor->dtype == SN_FLOAT32 ? (double)((const float *)tensor->data)[from]
                                                : ((const double *)tensor->data)[from];
    }
    *out = base;
    return SN_OK;
}

#define NODE_PARAMS(STRUCT)                                                                     \
    {"nodes_treeids", SNI_ATTR_INTS, offsetof(STRUCT, lists.tree_ids)},                         \
        {"nodes_nodeids", SNI_ATTR_INTS, offsetof(STRUCT, lists.node_ids)},                     \
        {"nodes_featureids", SNI_ATTR_INTS, offsetof(STRUCT, lists.feature_ids)},               \
        {"nodes_truenodeids", SNI_ATTR_INTS, offsetof(STRUCT, lists.true_ids)},                 \
        {"nodes_falsenodeids", SNI_ATTR_INTS, offsetof(STRUCT, lists.false_ids)},               \
        {"nodes_missing_value_tracks_true", SNI_ATTR_INTS, offsetof(STRUCT, lists.missing)},    \
        {"nodes_modes", SNI_ATTR_STRINGS, offsetof(STRUCT, lists.modes)},                       \
        {"nodes_values", SNI_ATTR_FLOATS, offsetof(STRUCT, lists.values)},                      \
        {"nodes_values_as_tensor", SNI_ATTR_TENSOR, offsetof(STRUCT, lists.values_tensor)},     \
        {"nodes_hitrates", SNI_ATTR_FLOATS, offsetof(STRUCT, lists.hitrates)},                  \
        {"nodes_hitrates_as_tensor", SNI_ATTR_TENSOR, offsetof(STRUCT, lists.hitrates_tensor)}, \
        {"base_values", SNI_ATTR_FLOATS, offsetof(STRUCT, base_list)},                          \
        {"base_values_as_tensor", SNI_ATTR_TENSOR, offsetof(STRUCT, base_tensor)}, {            \
        "post_transform", SNI_ATTR_STRING, offsetof(STRUCT, transform),                         \
            .text = "NONE", .choices = SNI_ML_TRANSFORMS                                        \
    }

/* ---- TreeEnsembleRegressor ---- */

typedef struct regressor_params {
    sni_tree_lists lists;
    sni_floats base_list;
    const sni_tensor *base_tensor;
    int64_t n_targets;
    int32_t aggregate, transform;
    sni_forest forest; /* prepared, like base */
    double *base;
} regressor_params;

static sn_status regressor_prepare(void *params, sni_arena *arena, sn_error *err) {
    regressor_params *p = params;
    if (p->n_targets < 1)
        return sni_fail(err, SN_INVALID_MODEL, "n_targets is %lld", (long long)p->n_targets);
    SN_TRY(sni_forest_of_lists(&p->lists, p->n_targets, arena, &p->forest, err));
    return base_values(&p->base_list, p->base_tensor, p->n_targets, arena, &p->base, err);
}

static sn_status regressor_infer(sni_infer *c) {
    const regressor_params *p = c->params;
    return sni_ml_infer_rows(c, p->n_targets);
}

static sn_status run_regressor(sni_kernel *k, sni_trees_sum_fn sum) {
    const regressor_params *p = k->params;
    score_job job = {.f = &p->forest,
                     .base = p->base,
                     .aggregate = p->aggregate,
                     .transform = p->transform,
                     .sum = sum};
    return regress(k, &job);
}

static sn_status regressor_ref(sni_kernel *k) {
    return run_regressor(k, NULL);
}

const sni_op sni_op_TreeEnsembleRegressor = {
    .name = "TreeEnsembleRegressor",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1, 3, 5),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "float"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FEATURES}),
    .params = SNI_PARAMS(
        NODE_PARAMS(regressor_params),
        {"target_treeids", SNI_ATTR_INTS, offsetof(regressor_params, lists.weight_trees)},
        {"target_nodeids", SNI_ATTR_INTS, offsetof(regressor_params, lists.weight_nodes)},
        {"target_ids", SNI_ATTR_INTS, offsetof(regressor_params, lists.weight_targets)},
        {"target_weights", SNI_ATTR_FLOATS, offsetof(regressor_params, lists.weights)},
        {"target_weights_as_tensor", SNI_ATTR_TENSOR,
         offsetof(regressor_params, lists.weights_tensor)},
        {"n_targets", SNI_ATTR_INT, offsetof(regressor_params, n_targets), .number = 1},
        {"aggregate_function", SNI_ATTR_STRING, offsetof(regressor_params, aggregate),
         .text = "SUM", .choices = "AVERAGE|SUM|MIN|MAX"}),
    .params_size = sizeof(regressor_params),
    .prepare = regressor_prepare,
    .infer = regressor_infer,
    .ref = regressor_ref,
};

/* ---- TreeEnsembleClassifier ---- */

typedef struct classifier_params {
    sni_tree_lists lists;
    sni_floats base_list;
    const sni_tensor *base_tensor;
    sni_ml_labels labels;
    int32_t transform;
    sni_forest forest; /* prepared, like what follows */
    double *base;
    int64_t only;  /* the one class that all weights are of, of two; -1: there are several */
    bool positive; /* no weight is below 0 */
} classifier_params;

static sn_status classifier_prepare(void *params, sni_arena *arena, sn_error *err) {
    classifier_params *p = params;
    int64_t classes = sni_ml_label_count(&p->labels);
    if (classes < 1) return sni_fail(err, SN_INVALID_MODEL, "there are no class labels");
    SN_TRY(sni_forest_of_lists(&p->lists, classes, arena, &p->forest, err));
    SN_TRY(base_values(&p->base_list, p->base_tensor, classes, arena, &p->base, err));
    const sni_forest *f = &p->forest;
    p->only = f->n_weights && classes <= 2 ? f->weights[0].target : -1;
    p->positive = true;
    for (int32_t i = 0; i < f->leaf_weights[f->n_leaves]; i++) {
        if (f->weights[i].target != p->only) p->only = -1;
        if (f->weights[i].weight < 0) p->positive = false;
        p->forest.weights[i].weight += 0.0; /* a vote of -0 is one */
    }
    return SN_OK;
}

static sn_status classifier_infer(sni_infer *c) {
    const classifier_params *p = c->params;
    return sni_ml_infer_classifier(c, &p->labels, sni_ml_label_count(&p->labels));
}

/* Two classes and one score, that of the second: the first gets what is left. */
static int64_t binary_row(const classifier_params *p, double *row, int64_t classes) {
    double s = row[p->only] + 0.0;
    if (p->base && classes == 2) s += p->base[1] - p->base[p->only];
    bool rest = p->transform == SNI_ML_PROBIT || (p->transform == SNI_ML_NONE && p->positive);
    int64_t class = s > (p->positive && p->transform == SNI_ML_NONE ? 0.5 : 0.0);
    if (classes == 1) {
        row[0] = s;
        sni_ml_finish(p->transform, row, 1);
        return class ? 0 : -1;
    }
    row[0] = rest ? 1 - s : -s;
    row[1] = s;
    sni_ml_finish(p->transform, row, 2);
    return p->transform == SNI_ML_NONE ? class : sni_ml_argmax(row, 2);
}

/* The class with the highest score, of several with the same one the first. Of more than two
 * classes one that got no vote is not chosen, however low the others are, as in ONNX Runtime. */
static int64_t best_class(const classifier_params *p, const double *row, int64_t classes) {
    int64_t best = -1;
    if (classes <= 2 || p->base) return sni_ml_argmax(row, classes);
    for (int64_t i = 0; i < classes; i++) {
        bool voted = !(row[i] == 0 && signbit(row[i]));
        if (voted && (best < 0 || row[i] > row[best])) best = i;
    }
    return best < 0 ? 0 : best;
}

static sn_status run_classifier(sni_kernel *k, sni_trees_sum_fn sum) {
    const classifier_params *p = k->params;
    sni_ml_rows rows;
    score_job job = {
        .f = &p->forest, .base = p->base, .aggregate = SUM, .tell_votes = true, .sum = sum};
    SN_TRY(score(k, &job, &rows));
    sni_tensor *labels = sni_out(k, 0), *scores = sni_out(k, 1);
    int64_t classes = p->forest.targets;
    for (int64_t r = 0; r < rows.rows; r++) {
        double *row = job.scores + r * classes;
        int64_t class;
        if (p->only >= 0) {
            class = binary_row(p, row, classes);
        } else {
            class = best_class(p, row, classes);
            for (int64_t t = 0; t < classes; t++) row[t] += 0.0;
            sni_ml_finish(p->transform, row, classes);
        }
        if (class < 0 && labels && labels->dtype == SN_INT64)
            ((int64_t *)labels->data)[r] = 0;
        else
            sni_ml_put_label(&p->labels, labels, r, class);
    }
    if (scores) sni_store_numbers(scores, SN_FLOAT64, job.scores, false);
    return SN_OK;
}

static sn_status classifier_ref(sni_kernel *k) {
    return run_classifier(k, NULL);
}

const sni_op sni_op_TreeEnsembleClassifier = {
    .name = "TreeEnsembleClassifier",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(1, 3, 5),
    .inputs = SNI_FORMALS({"X", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}, {"Z", "float"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FEATURES}, {"T2", SNI_T(SN_STRING) | SNI_T(SN_INT64)}),
    .params = SNI_PARAMS(
        NODE_PARAMS(classifier_params),
        {"class_treeids", SNI_ATTR_INTS, offsetof(classifier_params, lists.weight_trees)},
        {"class_nodeids", SNI_ATTR_INTS, offsetof(classifier_params, lists.weight_nodes)},
        {"class_ids", SNI_ATTR_INTS, offsetof(classifier_params, lists.weight_targets)},
        {"class_weights", SNI_ATTR_FLOATS, offsetof(classifier_params, lists.weights)},
        {"class_weights_as_tensor", SNI_ATTR_TENSOR,
         offsetof(classifier_params, lists.weights_tensor)},
        {"classlabels_int64s", SNI_ATTR_INTS, offsetof(classifier_params, labels.ints)},
        {"classlabels_strings", SNI_ATTR_STRINGS, offsetof(classifier_params, labels.strings)}),
    .params_size = sizeof(classifier_params),
    .prepare = classifier_prepare,
    .infer = classifier_infer,
    .ref = classifier_ref,
};

/* ---- TreeEnsemble ---- */

typedef struct ensemble_params {
    sni_tree_indices indices;
    int64_t n_targets, aggregate, transform;
    sni_forest forest; /* prepared */
} ensemble_params;

static sn_status ensemble_prepare(void *params, sni_arena *arena, sn_error *err) {
    ensemble_params *p = params;
    if (p->aggregate < AVERAGE || p->aggregate > MAX || p->transform < SNI_ML_NONE ||
        p->transform > SNI_ML_PROBIT || p->n_targets < 1)
        return sni_fail(err, SN_INVALID_MODEL,
                        "aggregate_function %lld, post_transform %lld or n_targets %lld is unknown",
                        (long long)p->aggregate, (long long)p->transform, (long long)p->n_targets);
    return sni_forest_of_indices(&p->indices, p->n_targets, arena, &p->forest, err);
}

static sn_status ensemble_infer(sni_infer *c) {
    const ensemble_params *p = c->params;
    sni_dim rows = 0;
    bool known;
    SN_TRY(sni_ml_row_dim(c, &rows, &known));
    return known ? sni_infer_set_shape(c, 0, 2, (sni_dim[]){rows, p->n_targets}) : SN_OK;
}

static sn_status run_ensemble(sni_kernel *k, sni_trees_sum_fn sum) {
    const ensemble_params *p = k->params;
    score_job job = {.f = &p->forest,
                     .aggregate = (int32_t)p->aggregate,
                     .transform = (int32_t)p->transform,
                     .sum = sum};
    return regress(k, &job);
}

static sn_status ensemble_ref(sni_kernel *k) {
    return run_ensemble(k, NULL);
}

const sni_op sni_op_TreeEnsemble = {
    .name = "TreeEnsemble",
    .domain = SNI_ML,
    .versions = SNI_VERSIONS(5),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64) | SNI_T(SN_FLOAT16)}),
    .params = SNI_PARAMS(
        {"tree_roots", SNI_ATTR_INTS, offsetof(ensemble_params, indices.roots), .required = true},
        {"nodes_featureids", SNI_ATTR_INTS, offsetof(ensemble_params, indices.feature_ids),
         .required = true},
        {"nodes_truenodeids", SNI_ATTR_INTS, offsetof(ensemble_params, indices.true_ids),
         .required = true},
        {"nodes_falsenodeids", SNI_ATTR_INTS, offsetof(ensemble_params, indices.false_ids),
         .required = true},
        {"nodes_trueleafs", SNI_ATTR_INTS, offsetof(ensemble_params, indices.true_leafs),
         .required = true},
        {"nodes_falseleafs", SNI_ATTR_INTS, offsetof(ensemble_params, indices.false_leafs),
         .required = true},
        {"nodes_missing_value_tracks_true", SNI_ATTR_INTS,
         offsetof(ensemble_params, indices.missing)},
        {"nodes_modes", SNI_ATTR_TENSOR, offsetof(ensemble_params, indices.modes),
         .required = true},
        {"nodes_splits", SNI_ATTR_TENSOR, offsetof(ensemble_params, indices.splits),
         .required = true},
        {"membership_values", SNI_ATTR_TENSOR, offsetof(ensemble_params, indices.members)},
        {"leaf_weights", SNI_ATTR_TENSOR, offsetof(ensemble_params, indices.leaf_weights),
         .required = true},
        {"leaf_targetids", SNI_ATTR_INTS, offsetof(ensemble_params, indices.leaf_targets),
         .required = true},
        {"nodes_hitrates", SNI_ATTR_TENSOR, offsetof(ensemble_params, indices.hitrates)},
        {"n_targets", SNI_ATTR_INT, offsetof(ensemble_params, n_targets), .number = 1},
        {"aggregate_function", SNI_ATTR_INT, offsetof(ensemble_params, aggregate), .number = SUM},
        {"post_transform", SNI_ATTR_INT, offsetof(ensemble_params, transform)}),
    .params_size = sizeof(ensemble_params),
    .prepare = ensemble_prepare,
    .infer = ensemble_infer,
    .ref = ensemble_ref,
};

/* ---- For implementations ---- */

static bool sums(int64_t aggregate) {
    return aggregate == SUM || aggregate == AVERAGE;
}

const sni_forest *sni_trees_forest(const sni_op *op, const void *params) {
    if (op == &sni_op_TreeEnsembleClassifier) return &((const classifier_params *)params)->forest;
    if (op == &sni_op_TreeEnsembleRegressor) {
        const regressor_params *p = params;
        return sums(p->aggregate) ? &p->forest : NULL;
    }
    const ensemble_params *p = params;
    return sums(p->aggregate) ? &p->forest : NULL;
}

sn_status sni_trees_run(sni_kernel *k, sni_trees_sum_fn sum) {
    const sni_op *op = k->node->op;
    if (op == &sni_op_TreeEnsembleClassifier) return run_classifier(k, sum);
    if (op == &sni_op_TreeEnsembleRegressor) return run_regressor(k, sum);
    return run_ensemble(k, sum);
}
