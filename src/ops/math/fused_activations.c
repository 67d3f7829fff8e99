/* Activations that ONNX Runtime's optimiser writes as one operator: Gelu and its relatives with a
 * bias, and softmax, dropout and sums with a bias. Each becomes the operators of ai.onnx that it
 * stands for, which the engine knows how to run and to fuse. */
#include "ops/core/op.h"

typedef struct fused_params {
    float alpha;        /* QuickGelu */
    int64_t axis, seed; /* BiasSoftmax, BiasDropout */
    int64_t inner;      /* BiasSoftmax: how the bias is repeated, which its shape tells too */
} fused_params;

#define FIELD(f) offsetof(fused_params, f)
#define HALVES_AND_FLOAT (SNI_T_HALVES | SNI_T(SN_FLOAT32))

/* Input i of the node, or SNI_NO_ID if it is left out. */
static int32_t input(const sni_upgrade *u, int32_t i) {
    return i < u->node->n_in ? u->node->in[i] : SNI_NO_ID;
}

/* *sum = a + b, or a alone if b is left out. */
static sn_status add_bias(sni_upgrade *u, int32_t a, int32_t b, int32_t *sum) {
    *sum = a;
    if (b == SNI_NO_ID) return SN_OK;
    return sni_upgrade_insert(u, "Add", (int32_t[]){a, b}, 2, NULL, 0, sum);
}

static sn_status become_gelu(sni_upgrade *u, int32_t x, bool tanh) {
    sni_attr approximate = sni_attr_of_string("approximate", tanh ? "tanh" : "none");
    return sni_upgrade_become(u, "Gelu", &x, 1, &approximate, 1);
}

static sn_status gelu_upgrade(sni_upgrade *u) {
    return become_gelu(u, u->node->in[0], false);
}

const sni_op sni_op_ms_Gelu = {
    .name = "Gelu",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .flags = SNI_OP_REWRITES,
    .upgrade = gelu_upgrade,
};

static sn_status bias_gelu_upgrade(sni_upgrade *u) {
    int32_t sum = SNI_NO_ID;
    SN_TRY(add_bias(u, u->node->in[0], u->node->in[1], &sum));
    return become_gelu(u, sum, false);
}

const sni_op sni_op_ms_BiasGelu = {
    .name = "BiasGelu",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"A", "T"}, {"B", "T"}),
    .outputs = SNI_FORMALS({"C", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .flags = SNI_OP_REWRITES,
    .upgrade = bias_gelu_upgrade,
};

static sn_status fast_gelu_upgrade(sni_upgrade *u) {
    int32_t sum = SNI_NO_ID;
    SN_TRY(add_bias(u, u->node->in[0], input(u, 1), &sum));
    return become_gelu(u, sum, true);
}

const sni_op sni_op_ms_FastGelu = {
    .name = "FastGelu",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"bias", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .flags = SNI_OP_REWRITES,
    .upgrade = fast_gelu_upgrade,
};

static sn_status gemm_fast_gelu_upgrade(sni_upgrade *u) {
    int32_t product = SNI_NO_ID, sum = SNI_NO_ID;
    SN_TRY(sni_upgrade_insert(u, "MatMul", u->node->in, 2, NULL, 0, &product));
    SN_TRY(add_bias(u, product, input(u, 2), &sum));
    return become_gelu(u, sum, true);
}

const sni_op sni_op_ms_GemmFastGelu = {
    .name = "GemmFastGelu",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"W", "T"}, {"bias", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", HALVES_AND_FLOAT}),
    .flags = SNI_OP_REWRITES,
    .upgrade = gemm_fast_gelu_upgrade,
};

static sn_status quick_gelu_upgrade(sni_upgrade *u) {
    const fused_params *p = u->node->params;
    sni_attr alpha = sni_attr_of_float("alpha", p->alpha);
    int32_t x = u->node->in[0];
    return sni_upgrade_become(u, "Swish", &x, 1, &alpha, 1);
}

const sni_op sni_op_ms_QuickGelu = {
    .name = "QuickGelu",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"alpha", SNI_ATTR_FLOAT, FIELD(alpha), .number = 1.702}),
    .params_size = sizeof(fused_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = quick_gelu_upgrade,
};

/* Elements [start, end) of the last axis. */
static sn_status slice_last(sni_upgrade *u, int32_t x, int32_t start, int32_t end, int32_t *out) {
    int32_t axis = SNI_NO_ID;
    SN_TRY(sni_upgrade_ints(u, &(int64_t){-1}, 1, &axis));
    return sni_upgrade_insert(u, "Slice", (int32_t[]){x, start, end, axis}, 4, NULL, 0, out);
}

/* X + bias is (..., 2 D): the first half times Gelu of the second. */
static sn_status bias_split_gelu_upgrade(sni_upgrade *u) {
    int32_t sum = 0, width = 0, two = 0, middle = 0, zero = 0, left = 0, right = 0, gate = 0;
    sni_attr last = sni_attr_of_int("start", -1);
    SN_TRY(add_bias(u, u->node->in[0], u->node->in[1], &sum));
    SN_TRY(sni_upgrade_insert(u, "Shape", &sum, 1, &last, 1, &width));
    SN_TRY(sni_upgrade_ints(u, &(int64_t){2}, 1, &two));
    SN_TRY(sni_upgrade_ints(u, &(int64_t){0}, 1, &zero));
    SN_TRY(sni_upgrade_insert(u, "Div", (int32_t[]){width, two}, 2, NULL, 0, &middle));
    SN_TRY(slice_last(u, sum, zero, middle, &left));
    SN_TRY(slice_last(u, sum, middle, width, &right));
    SN_TRY(sni_upgrade_insert(u, "Gelu", &right, 1, NULL, 0, &gate));
    return sni_upgrade_become(u, "Mul", (int32_t[]){left, gate}, 2, NULL, 0);
}

const sni_op sni_op_ms_BiasSplitGelu = {
    .name = "BiasSplitGelu",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"bias", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", HALVES_AND_FLOAT}),
    .flags = SNI_OP_REWRITES,
    .upgrade = bias_split_gelu_upgrade,
};

static sn_status bias_add_upgrade(sni_upgrade *u) {
    int32_t sum = SNI_NO_ID;
    SN_TRY(add_bias(u, u->node->in[0], u->node->in[1], &sum));
    return sni_upgrade_become(u, "Add", (int32_t[]){sum, u->node->in[2]}, 2, NULL, 0);
}

const sni_op sni_op_ms_BiasAdd = {
    .name = "BiasAdd",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"bias", "T"}, {"skip", "T"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", HALVES_AND_FLOAT}),
    .flags = SNI_OP_REWRITES,
    .upgrade = bias_add_upgrade,
};

/* The axes from `axis` on count as one, as they did for Softmax before opset 13. */
static sn_status bias_softmax_upgrade(sni_upgrade *u) {
    const fused_params *p = u->node->params;
    int32_t sum = 0, rows = 0, shape = 0, result = 0;
    sni_attr axis = sni_attr_of_int("axis", p->axis), last = sni_attr_of_int("axis", -1);
    SN_TRY(add_bias(u, u->node->in[0], u->node->in[1], &sum));
    if (p->axis == -1) return sni_upgrade_become(u, "Softmax", &sum, 1, &last, 1);
    SN_TRY(sni_upgrade_insert(u, "Shape", &sum, 1, NULL, 0, &shape));
    SN_TRY(sni_upgrade_insert(u, "Flatten", &sum, 1, &axis, 1, &rows));
    SN_TRY(sni_upgrade_insert(u, "Softmax", &rows, 1, &last, 1, &result));
    return sni_upgrade_to_reshape(u, result, shape);
}

const sni_op sni_op_ms_BiasSoftmax = {
    .name = "BiasSoftmax",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"data", "T"}, {"bias", "T"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"axis", SNI_ATTR_INT, FIELD(axis), .number = 1},
                         {"is_inner_broadcast", SNI_ATTR_INT, FIELD(inner), .required = true}),
    .params_size = sizeof(fused_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = bias_softmax_upgrade,
};

/* Dropout(data + bias) + residual. With a residual the mask cannot be had: the node's own outputs
 * become those of the sum. */
static sn_status bias_dropout_upgrade(sni_upgrade *u) {
    const sni_node *n = u->node;
    const sni_attr *seed = sni_node_attr(n, "seed");
    sni_attr attrs[1];
    int32_t sum = 0, residual = input(u, 2), in[3] = {0, input(u, 3), input(u, 4)}, kept = 0;
    if (seed) attrs[0] = *seed;
    SN_TRY(add_bias(u, n->in[0], n->in[1], &sum));
    in[0] = sum;
    if (residual == SNI_NO_ID) return sni_upgrade_become(u, "Dropout", in, 3, attrs, seed ? 1 : 0);
    const sni_value *mask = n->n_out > 1 ? sni_graph_value(u->graph, n->out[1]) : NULL;
    if (mask && mask->use_count)
        return sni_fail(u->err, SN_UNSUPPORTED, "the mask of a BiasDropout with a residual");
    SN_TRY(sni_upgrade_insert(u, "Dropout", in, 3, attrs, seed ? 1 : 0, &kept));
    SN_TRY(sni_node_resize_outputs(u->graph, u->node, 1, u->err));
    return sni_upgrade_become(u, "Add", (int32_t[]){kept, residual}, 2, NULL, 0);
}

const sni_op sni_op_ms_BiasDropout = {
    .name = "BiasDropout",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"data", "T"}, {"bias", "T"}, {"residual", "T", SNI_OPTIONAL},
                          {"ratio", "T1", SNI_OPTIONAL}, {"training_mode", "bool", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}, {"mask", "bool", SNI_OPTIONAL}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}, {"T1", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"seed", SNI_ATTR_INT, FIELD(seed)}),
    .params_size = sizeof(fused_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = bias_dropout_upgrade,
};
