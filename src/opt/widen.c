/* widen.c - float16 and bfloat16 arithmetic in float32.
 *
 * Processors without arithmetic on narrow floats convert around every operator. Here whole regions
 * are computed in float32 instead, with conversions at their borders: quicker, and with fewer
 * roundings than the narrow types would have. Inputs and outputs of the graph keep their types. */
#include "opt/opt.h"

#include <stdlib.h>

/* Operators that take float32 wherever they take narrow floats, with no attribute that says which,
 * in order of name. */
static const char *const widened[] = {
    "Abs",
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Celu",
    "Clip",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Cos",
    "Div",
    "Elu",
    "Erf",
    "Exp",
    "Expand",
    "Flatten",
    "GRU",
    "Gather",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "InstanceNormalization",
    "LRN",
    "LSTM",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "MatMul",
    "Max",
    "MaxPool",
    "Mean",
    "Min",
    "Mish",
    "Mul",
    "Neg",
    "PRelu",
    "Pad",
    "Pow",
    "RMSNormalization",
    "RNN",
    "Reciprocal",
    "ReduceL2",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Resize",
    "Selu",
    "Sigmoid",
    "Sin",
    "Slice",
    "Softmax",
    "Softplus",
    "Softsign",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Tanh",
    "Transpose",
    "Unsqueeze",
    "Where",
};

static int compare_names(const void *key, const void *item) {
    const sni_str *name = key;
    const char *other = *(const char *const *)item;
    size_t n = strlen(other);
    int c = memcmp(name->p, other, name->n < n ? name->n : n);
    return c ? c : (name->n > n) - (name->n < n);
}

static bool is_narrow(const sni_value *v) {
    return v && v->type.kind == SN_KIND_TENSOR &&
           (v->type.dtype == SN_FLOAT16 || v->type.dtype == SN_BFLOAT16);
}

/* Operators that compute: a region of movers alone gains nothing. */
static bool computes(const sni_node *n) {
    static const char *const movers[] = {"Concat",  "Expand",    "Flatten",   "Gather",
                                         "Pad",     "Reshape",   "Slice",     "Split",
                                         "Squeeze", "Transpose", "Unsqueeze", "Where"};
    for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
        if (sni_str_is(n->type, movers[i])) return false;
    return true;
}

/* Movers of constants, such as a lookup in a table, take narrow ones and keep them so. */
static bool moves_constants(const sni_graph *g, const sni_node *n) {
    if (computes(n)) return false;
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *v = sni_graph_value(g, n->in[i]);
        if (is_narrow(v) && (!v->constant || v->is_input)) return false;
    }
    return true;
}

/* Whether an operator is among those that are computed in float32. Of com.microsoft it is the one
 * whose sums of integers are often above what float16 holds. */
static bool is_widened(const sni_node *n) {
    if (sni_str_is(n->domain, "com.microsoft")) return sni_str_is(n->type, "MatMulIntegerToFloat");
    return !n->domain.n && bsearch(&n->type, widened, sizeof widened / sizeof *widened,
                                   sizeof *widened, compare_names);
}

static bool can_widen(const sni_graph *g, const sni_node *n) {
    if (!n->op || n->n_subgraphs || moves_constants(g, n) || !is_widened(n)) return false;
    for (int32_t i = 0; i < n->n_out; i++)
        if (is_narrow(sni_graph_value(g, n->out[i]))) return true;
    return false;
}

/* A Cast of `from` before node `before`; its output is a new value of that type. */
static sn_status insert_cast(sni_rewrite *r, int32_t before, int32_t from, sn_dtype to,
                             int32_t *out) {
    sni_graph *g = r->graph;
    sni_value *v;
    sni_node *n;
    SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, r->err));
    v->type = g->values[from]->type; /* shapes are shared: types are never changed in place */
    v->type.dtype = to;
    SN_TRY(sni_graph_add_node(
        g, before, &(sni_new_node){SNI_STR(""), SNI_STR("Cast"), &from, 1, &v->id, 1}, &n, r->err));
    sni_attr attr = sni_attr_of_int("to", to);
    SN_TRY(sni_node_set_attr(g, n, &attr, r->err));
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(r->err, SN_INTERNAL, "there is no Cast");
    n->version = sni_op_version(n->op);
    SN_TRY(sni_node_bind(g, n, r->err));
    *out = v->id;
    return SN_OK;
}

/* Replaces uses of a narrow output by a Cast of a float32 value that the node makes instead. */
static sn_status widen_output(sni_rewrite *r, sni_node *n, int32_t slot) {
    sni_graph *g = r->graph;
    const sni_value *old = g->values[n->out[slot]];
    sn_dtype narrow = old->type.dtype;
    int32_t old_id = old->id, cast;
    sni_value *wide;
    SN_TRY(sni_graph_add_value(g, (sni_str){0}, &wide, r->err));
    wide->type = old->type;
    wide->type.dtype = SN_FLOAT32;
    SN_TRY(sni_node_replace_output(g, n, slot, wide->id, r->err));
    SN_TRY(insert_cast(r, n->next, wide->id, narrow, &cast));
    SN_TRY(sni_graph_replace_uses(g, old_id, cast, r->err));
    g->values[cast]->name = old->name;
    sni_graph_remove_dead_values(g);
    return SN_OK;
}

static sn_status widen(sni_rewrite *r, sni_node *n) {
    sni_graph *g = r->graph;
    for (int32_t i = 0; i < n->n_in; i++) {
        int32_t cast;
        if (!is_narrow(sni_graph_value(g, n->in[i]))) continue;
        SN_TRY(insert_cast(r, n->id, n->in[i], SN_FLOAT32, &cast));
        SN_TRY(sni_node_set_input(g, n, i, cast, r->err));
    }
    for (int32_t i = 0; i < n->n_out; i++)
        if (is_narrow(sni_graph_value(g, n->out[i]))) SN_TRY(widen_output(r, n, i));
    r->count++;
    return SN_OK;
}

static bool is_cast_to(const sni_node *n, sn_dtype *to) {
    if (!n || n->domain.n || !sni_str_is(n->type, "Cast")) return false;
    const sni_attr *a = sni_node_attr(n, "to");
    *to = a ? (sn_dtype)a->u.i : SN_UNDEFINED;
    return a != NULL;
}

/* float32 -> narrow -> float32 inside a region is dropped. */
static sn_status drop_round_trips(sni_rewrite *r) {
    sni_graph *g = r->graph;
    for (sni_node *n = sni_graph_first(g), *next; n; n = next) {
        sn_dtype to, inner_to;
        next = sni_graph_next(g, n);
        if (!is_cast_to(n, &to) || to != SN_FLOAT32) continue;
        const sni_value *x = sni_graph_value(g, n->in[0]);
        if (!is_narrow(x)) continue;
        const sni_node *inner = sni_value_producer(g, x);
        if (!is_cast_to(inner, &inner_to)) continue;
        const sni_value *source = sni_graph_value(g, inner->in[0]);
        if (!source || source->type.dtype != SN_FLOAT32) continue;
        SN_TRY(sni_graph_replace_uses(g, n->out[0], source->id, r->err));
        sni_graph_remove_node(g, n);
    }
    return SN_OK;
}

sn_status sni_pass_widen_floats(sni_rewrite *r) {
    sni_graph *g = r->graph;
    bool any = false;
    for (const sni_node *n = sni_graph_first(g); n && !any; n = sni_graph_next(g, n))
        any = can_widen(g, n) && computes(n);
    if (!any) return SN_OK;
    for (sni_node *n = sni_graph_first(g), *next; n; n = next) {
        next = sni_graph_next(g, n);
        if (can_widen(g, n)) SN_TRY(widen(r, n));
    }
    return drop_round_trips(r);
}
