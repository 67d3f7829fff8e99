/* Operators of com.microsoft that ai.onnx has taken over: ExpandDims (Unsqueeze), GatherND,
 * GridSample, Pad, Range, Trilu and Unique. Each becomes its successor. */
#include "ops/core/op.h"

typedef struct old_params {
    int32_t mode, padding;
    int64_t align, upper;
} old_params;

#define FIELD(f) offsetof(old_params, f)

/* Value `in` with shape `dims`. */
static sn_status reshaped(sni_upgrade *u, int32_t in, const int64_t *dims, size_t rank,
                          int32_t *out) {
    int32_t shape = SNI_NO_ID;
    SN_TRY(sni_upgrade_ints(u, dims, rank, &shape));
    return sni_upgrade_insert(u, "Reshape", (int32_t[]){in, shape}, 2, NULL, 0, out);
}

/* The axis is a scalar of int32; Unsqueeze takes a list of int64. */
static sn_status expand_dims_upgrade(sni_upgrade *u) {
    int32_t axis = SNI_NO_ID, axes = SNI_NO_ID, x = u->node->in[0];
    sni_attr to = sni_attr_of_int("to", SN_INT64);
    SN_TRY(sni_upgrade_insert(u, "Cast", (int32_t[]){u->node->in[1]}, 1, &to, 1, &axis));
    SN_TRY(reshaped(u, axis, (int64_t[]){1}, 1, &axes));
    return sni_upgrade_become(u, "Unsqueeze", (int32_t[]){x, axes}, 2, NULL, 0);
}

const sni_op sni_op_ms_ExpandDims = {
    .name = "ExpandDims",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"axis", "int32"}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .flags = SNI_OP_REWRITES,
    .upgrade = expand_dims_upgrade,
};

static sn_status grid_sample_upgrade(sni_upgrade *u) {
    static const char *const modes[] = {"linear", "nearest", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    const old_params *p = u->node->params;
    sni_attr attrs[3] = {sni_attr_of_string("mode", modes[p->mode]),
                         sni_attr_of_string("padding_mode", paddings[p->padding]),
                         sni_attr_of_int("align_corners", p->align)};
    int32_t in[2] = {u->node->in[0], u->node->in[1]};
    return sni_upgrade_become(u, "GridSample", in, 2, attrs, 3);
}

const sni_op sni_op_ms_GridSample = {
    .name = "GridSample",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T1"}, {"Grid", "T1"}),
    .outputs = SNI_FORMALS({"Y", "T2"}),
    .types = SNI_TYPE_VARS({"T1", SNI_T_FLOATS}, {"T2", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"mode", SNI_ATTR_STRING, FIELD(mode), .text = "bilinear",
                          .choices = "bilinear|nearest|bicubic"},
                         {"padding_mode", SNI_ATTR_STRING, FIELD(padding), .text = "zeros",
                          .choices = "zeros|border|reflection"},
                         {"align_corners", SNI_ATTR_INT, FIELD(align)}),
    .params_size = sizeof(old_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = grid_sample_upgrade,
};

/* The pads may be a matrix of one row, and the value a list of one element. */
static sn_status pad_upgrade(sni_upgrade *u) {
    static const char *const modes[] = {"constant", "reflect", "edge"};
    const old_params *p = u->node->params;
    sni_attr mode = sni_attr_of_string("mode", modes[p->mode]);
    int32_t in[3] = {u->node->in[0], SNI_NO_ID, SNI_NO_ID};
    bool value = u->node->n_in > 2 && u->node->in[2] != SNI_NO_ID;
    SN_TRY(reshaped(u, u->node->in[1], (int64_t[]){-1}, 1, &in[1]));
    if (value) SN_TRY(reshaped(u, u->node->in[2], NULL, 0, &in[2]));
    return sni_upgrade_become(u, "Pad", in, value ? 3 : 2, &mode, 1);
}

const sni_op sni_op_ms_Pad = {
    .name = "Pad",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"data", "T"}, {"pads", "int64"}, {"value", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS}),
    .params = SNI_PARAMS({"mode", SNI_ATTR_STRING, FIELD(mode), .text = "constant",
                          .choices = "constant|reflect|edge"}),
    .params_size = sizeof(old_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = pad_upgrade,
};

/* Bounds and step may be lists of one element, and the step may be left out. */
static sn_status range_upgrade(sni_upgrade *u) {
    int32_t in[3] = {SNI_NO_ID, SNI_NO_ID, SNI_NO_ID};
    for (int32_t i = 0; i < 3; i++) {
        if (i < u->node->n_in && u->node->in[i] != SNI_NO_ID)
            SN_TRY(reshaped(u, u->node->in[i], NULL, 0, &in[i]));
        else
            SN_TRY(sni_upgrade_scalar(u, SN_UNDEFINED, 1, &in[i]));
    }
    return sni_upgrade_become(u, "Range", in, 3, NULL, 0);
}

const sni_op sni_op_ms_Range = {
    .name = "Range",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"start", "T"}, {"limit", "T"}, {"delta", "T", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T(SN_FLOAT32) | SNI_T(SN_FLOAT64) | SNI_T(SN_INT16) |
                                     SNI_T(SN_INT32) | SNI_T(SN_INT64)}),
    .flags = SNI_OP_REWRITES,
    .upgrade = range_upgrade,
};

static sn_status trilu_upgrade(sni_upgrade *u) {
    const old_params *p = u->node->params;
    sni_attr upper = sni_attr_of_int("upper", p->upper);
    int32_t n = u->node->n_in, in[2] = {u->node->in[0], n > 1 ? u->node->in[1] : SNI_NO_ID};
    return sni_upgrade_become(u, "Trilu", in, n, &upper, 1);
}

const sni_op sni_op_ms_Trilu = {
    .name = "Trilu",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"X", "T"}, {"k", "int64", SNI_OPTIONAL}),
    .outputs = SNI_FORMALS({"Y", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_FLOATS | SNI_T_INTS | SNI_T(SN_BOOL)}),
    .params = SNI_PARAMS({"upper", SNI_ATTR_INT, FIELD(upper), .number = 1}),
    .params_size = sizeof(old_params),
    .flags = SNI_OP_REWRITES,
    .upgrade = trilu_upgrade,
};

static sn_status gather_nd_upgrade(sni_upgrade *u) {
    int32_t in[2] = {u->node->in[0], SNI_NO_ID};
    sni_attr to = sni_attr_of_int("to", SN_INT64);
    SN_TRY(sni_upgrade_insert(u, "Cast", (int32_t[]){u->node->in[1]}, 1, &to, 1, &in[1]));
    return sni_upgrade_become(u, "GatherND", in, 2, NULL, 0);
}

const sni_op sni_op_ms_GatherND = {
    .name = "GatherND",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"data", "T"}, {"indices", "I"}),
    .outputs = SNI_FORMALS({"output", "T"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}, {"I", SNI_T_INDEX}),
    .flags = SNI_OP_REWRITES,
    .upgrade = gather_nd_upgrade,
};

/* The successor has one more output, the second. The node itself becomes one that nobody reads. */
static sn_status unique_upgrade(sni_upgrade *u) {
    sni_graph *g = u->graph;
    sni_node *n;
    int32_t x = u->node->in[0], made[4] = {SNI_NO_ID, SNI_NO_ID, SNI_NO_ID, SNI_NO_ID};
    static const int place[] = {0, 2, 3};
    for (int i = 0; i < u->node->n_out; i++) {
        sni_value *v;
        SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, u->err));
        made[place[i]] = v->id;
        if (u->node->out[i] != SNI_NO_ID)
            SN_TRY(sni_graph_replace_uses(g, u->node->out[i], v->id, u->err));
    }
    SN_TRY(sni_graph_add_node(g, u->node->id,
                              &(sni_new_node){SNI_STR(""), SNI_STR("Unique"), &x, 1, made, 4}, &n,
                              u->err));
    sni_attr sorted = sni_attr_of_int("sorted", 0);
    n->name = u->node->name;
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(u->err, SN_INTERNAL, "there is no Unique");
    n->version = sni_op_version(n->op);
    SN_TRY(sni_node_set_attr(g, n, &sorted, u->err));
    SN_TRY(sni_node_bind(g, n, u->err));
    SN_TRY(sni_node_resize_outputs(g, u->node, 1, u->err));
    return sni_upgrade_become(u, "Identity", &x, 1, NULL, 0);
}

const sni_op sni_op_ms_Unique = {
    .name = "Unique",
    .domain = "com.microsoft",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"x", "T"}),
    .outputs = SNI_FORMALS({"y", "T"}, {"idx", "int64"}, {"counts", "int64"}),
    .types = SNI_TYPE_VARS({"T", SNI_T_ANY}),
    .flags = SNI_OP_REWRITES,
    .upgrade = unique_upgrade,
};
