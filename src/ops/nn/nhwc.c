/* Operators of com.microsoft that are others with channels last, or others between DequantizeLinear
 * and QuantizeLinear: QLinearConv, NhwcMaxPool, QLinearReduceMean. Each becomes the operators of
 * ai.onnx that it stands for. */
#include "ops/nn/conv_core.h"
#include "ops/nn/pool.h"
#include "ops/quant/qlinear.h"

enum { MOST_ATTRS = 16, MOST_INPUTS = 9 };

static sni_attr perm_attr(const int64_t *perm, int rank) {
    sni_attr a = {.name = SNI_STR("perm"), .kind = SNI_ATTR_INTS, .count = (size_t)rank};
    a.u.ints = perm;
    return a;
}

/* Turns the node into Transpose(type(Transpose(input 0), other inputs)) with all its attributes but
 * `channels_last`; `rank` is that of input 0. */
static sn_status become_transposed(sni_upgrade *u, const char *type, int rank) {
    int64_t *front = SNI_NEW_ARRAY(&u->graph->store->arena, int64_t, SN_MAX_RANK);
    int64_t *back = SNI_NEW_ARRAY(&u->graph->store->arena, int64_t, SN_MAX_RANK);
    int32_t in[MOST_INPUTS], n_in = u->node->n_in, n_attrs = 0, result = SNI_NO_ID;
    sni_attr attrs[MOST_ATTRS];
    if (!front || !back) return sni_store_no_memory(u->graph->store, u->err);
    if (rank < 3 || rank > SN_MAX_RANK)
        return sni_fail(u->err, SN_INVALID_MODEL, "an input of rank %d has no channels last", rank);
    for (int i = 0; i < rank; i++) {
        front[i] = i == 0 ? 0 : i == 1 ? rank - 1 : i - 1;
        back[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
    }
    for (int32_t i = 0; i < n_in; i++) in[i] = u->node->in[i];
    for (int32_t i = 0; i < u->node->n_attrs && n_attrs < MOST_ATTRS; i++)
        if (!sni_str_is(u->node->attrs[i].name, "channels_last"))
            attrs[n_attrs++] = u->node->attrs[i];
    sni_attr to_front = perm_attr(front, rank), to_back = perm_attr(back, rank);
    SN_TRY(sni_upgrade_insert(u, "Transpose", &in[0], 1, &to_front, 1, &in[0]));
    SN_TRY(sni_upgrade_insert(u, type, in, n_in, attrs, n_attrs, &result));
    return sni_upgrade_become(u, "Transpose", &result, 1, &to_back, 1);
}

/* ---- QLinearConv ---- */

typedef struct conv_params {
    sni_conv_params conv;
    int64_t channels_last;
} conv_params;

/* Rank of an input where the model tells it; 0 if not. */
static int rank_of(const sni_upgrade *u, int32_t i) {
    const sni_value *v = sni_graph_value(u->graph, u->node->in[i]);
    return v && v->type.kind == SN_KIND_TENSOR && v->type.has_shape ? v->type.rank : 0;
}

static sn_status conv_upgrade(sni_upgrade *u) {
    const conv_params *p = u->node->params;
    if (!p->channels_last) {
        sni_node_remove_attr(u->node, "channels_last");
        u->node->domain = SNI_STR("");
        return SN_OK;
    }
    int rank = (int)p->conv.window.kernel_shape.n + 2;
    if (rank == 2) rank = rank_of(u, 3);
    if (rank == 0) rank = rank_of(u, 0);
    return become_transposed(u, "QLinearConv", rank);
}

const sni_op sni_op_ms_QLinearConv = {
    .name = "QLinearConv",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"x", "T1"}, {"x_scale", "float32"}, {"x_zero_point", "T1"}, {"w", "T2"},
                          {"w_scale", "float32"}, {"w_zero_point", "T2"}, {"y_scale", "float32"},
                          {"y_zero_point", "T3"}, {"B", "int32", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"y", "T3"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_BYTES}, {"T2", SNI_T_BYTES}, {"T3", SNI_T_BYTES}),
    .params = SNI_PARAMS(SNI_CONV_FIELDS,
                         {"channels_last", SNI_ATTR_INT, offsetof(conv_params, channels_last)}),
    .params_size = sizeof(conv_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = conv_upgrade,
};

/* ---- NhwcMaxPool ---- */

static sn_status max_pool_upgrade(sni_upgrade *u) {
    const sni_pool_params *p = u->node->params;
    return become_transposed(u, "MaxPool", (int)p->window.kernel_shape.n + 2);
}

const sni_op sni_op_ms_NhwcMaxPool = {
    .name = "NhwcMaxPool",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"x", "T"}),
    .outputs = SNI_FORMALS({"y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .params = SNI_PARAMS(SNI_POOL_PARAMS),
    .params_size = sizeof(sni_pool_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = max_pool_upgrade,
};

/* ---- QLinearReduceMean ---- */

typedef struct mean_params {
    sni_ints axes;
    int64_t keepdims;
} mean_params;

static sn_status mean_upgrade(sni_upgrade *u) {
    const mean_params *p = u->node->params;
    int32_t in[5], n_in = u->node->n_in, v = SNI_NO_ID, axes = SNI_NO_ID, mean = SNI_NO_ID;
    for (int32_t i = 0; i < 5; i++) in[i] = i < n_in ? u->node->in[i] : SNI_NO_ID;
    const sni_value *x = sni_graph_value(u->graph, in[0]);
    sni_attr keep = sni_attr_of_int("keepdims", p->keepdims);
    sni_attr dtype = sni_attr_of_int("output_dtype", x ? x->type.dtype : SN_UNDEFINED);
    if (in[4] == SNI_NO_ID && dtype.u.i == SN_UNDEFINED)
        return sni_fail(u->err, SN_UNSUPPORTED, "neither the type nor the zero point is known");
    SN_TRY(sni_upgrade_insert(u, "DequantizeLinear", in, in[2] == SNI_NO_ID ? 2 : 3, NULL, 0, &v));
    SN_TRY(sni_upgrade_ints(u, p->axes.v, p->axes.n, &axes));
    SN_TRY(sni_upgrade_insert(u, "ReduceMean", (int32_t[]){v, axes}, 2, &keep, 1, &mean));
    if (in[4] != SNI_NO_ID)
        return sni_upgrade_become(u, "QuantizeLinear", (int32_t[]){mean, in[3], in[4]}, 3, NULL, 0);
    return sni_upgrade_become(u, "QuantizeLinear", (int32_t[]){mean, in[3]}, 2, &dtype, 1);
}

const sni_op sni_op_ms_QLinearReduceMean = {
    .name = "QLinearReduceMean",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"data", "T"}, {"data_scale", "float32"},
                          {"data_zero_point", "T", SNI_OPTIONAL}, {"reduced_scale", "float32"},
                          {"reduced_zero_point", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"reduced", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_BYTES}),
    .params =
        SNI_PARAMS({"axes", SNI_ATTR_INTS, offsetof(mean_params, axes), .required = true},
                   {"keepdims", SNI_ATTR_INT, offsetof(mean_params, keepdims), .required = true}),
    .params_size = sizeof(mean_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = mean_upgrade,
};
