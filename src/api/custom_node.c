/* custom_node.c - what a caller's operator can ask about a node, and its inference. */
#include "api/custom.h"

#include "api/model.h"

#include <stdlib.h>

/* ---- Names and counts ---- */

/* A copy with a NUL in the arena of what is handed out; "" without memory. */
static const char *text_of(const sn_op_node *n, sni_str s) {
    sni_str copy = sni_arena_str(n->arena, s);
    return copy.p ? copy.p : "";
}

const char *sni_node_name_text(const sn_op_node *n) {
    return n ? text_of(n, n->node->name) : "";
}

const char *sni_node_domain_text(const sn_op_node *n) {
    if (!n) return "";
    return n->node->op && n->node->op->domain ? n->node->op->domain : text_of(n, n->node->domain);
}

const char *sni_node_type_text(const sn_op_node *n) {
    if (!n) return "";
    return n->node->op ? n->node->op->name : text_of(n, n->node->type);
}

int64_t sni_node_opset(const sn_op_node *n) {
    return n ? n->node->version : 0;
}

size_t sni_node_inputs(const sn_op_node *n) {
    return n ? (size_t)n->node->n_in : 0;
}

size_t sni_node_outputs(const sn_op_node *n) {
    return n ? (size_t)n->node->n_out : 0;
}

/* ---- Inputs and outputs ---- */

/* Types of a node of a session's graph, or of one that is being inferred; false: none is known. */
static bool value_info(const sn_op_node *n, int32_t id, sn_value_info *out) {
    const sni_value *v = sni_graph_value(n->graph, id);
    return v &&
           sni_describe_type(v->name, &v->type, n->graph->symbols, n->arena, out, NULL) == SN_OK;
}

static bool inferred_info(const sn_op_node *n, const sni_type *type, sn_value_info *out) {
    return type &&
           sni_describe_type((sni_str){0}, type, n->infer->symbols, n->arena, out, NULL) == SN_OK;
}

bool sni_node_input_info(const sn_op_node *n, size_t index, sn_value_info *out) {
    if (!n || !out || index >= sni_node_inputs(n)) return false;
    if (n->infer) return inferred_info(n, n->infer->in[index], out);
    return value_info(n, n->node->in[index], out);
}

bool sni_node_output_info(const sn_op_node *n, size_t index, sn_value_info *out) {
    if (!n || !out || index >= sni_node_outputs(n)) return false;
    if (n->infer) return inferred_info(n, &n->infer->out[index], out);
    return value_info(n, n->node->out[index], out);
}

/* The contents of a constant as a value that nobody destroys: it lives in the arena. NULL where
 * they cannot be read. */
static const sn_value *value_of_const(const sn_op_node *n, sni_const *c) {
    const sni_tensor *t;
    sn_value *v = SNI_NEW(n->arena, sn_value);
    if (!v || sni_const_load(c, &t, NULL) != SN_OK) return NULL;
    sni_value_view(v, t);
    if (!sni_dtype_subbyte(t->dtype)) return v;
    v->data = sni_arena_alloc(n->arena, v->bytes + 1);
    if (!v->data) return NULL;
    sni_subbyte_pack(t->dtype, t->data, v->data, v->count);
    return v;
}

const sn_value *sni_node_constant_input(const sn_op_node *n, size_t index) {
    if (!n || index >= sni_node_inputs(n)) return NULL;
    if (n->infer) {
        sni_const *const *all = n->infer->constants;
        return all && all[index] ? value_of_const(n, all[index]) : NULL;
    }
    const sni_value *v = sni_graph_value(n->graph, n->node->in[index]);
    return v && v->constant && !v->is_input ? value_of_const(n, v->constant) : NULL;
}

/* ---- Attributes ---- */

/* An attribute of that kind; NULL: none, or of another kind. */
static const sni_attr *attr_of(const sn_op_node *n, const char *name, sni_attr_kind kind) {
    const sni_attr *a = n && name ? sni_node_attr(n->node, name) : NULL;
    return a && a->kind == kind ? a : NULL;
}

bool sni_node_get_int(const sn_op_node *n, const char *name, int64_t *out) {
    const sni_attr *a = attr_of(n, name, SNI_ATTR_INT);
    if (a && out) *out = a->u.i;
    return a != NULL;
}

bool sni_node_get_float(const sn_op_node *n, const char *name, float *out) {
    const sni_attr *a = attr_of(n, name, SNI_ATTR_FLOAT);
    if (a && out) *out = a->u.f;
    return a != NULL;
}

static void give(const sn_op_node *n, sni_str s, const char **text, size_t *length) {
    if (text) *text = text_of(n, s);
    if (length) *length = s.n;
}

bool sni_node_get_text(const sn_op_node *n, const char *name, const char **text, size_t *length) {
    const sni_attr *a = attr_of(n, name, SNI_ATTR_STRING);
    if (a) give(n, a->u.s, text, length);
    return a != NULL;
}

bool sni_node_get_ints(const sn_op_node *n, const char *name, const int64_t **v, size_t *count) {
    const sni_attr *a = attr_of(n, name, SNI_ATTR_INTS);
    if (a && v) *v = a->u.ints;
    if (a && count) *count = a->count;
    return a != NULL;
}

bool sni_node_get_floats(const sn_op_node *n, const char *name, const float **v, size_t *count) {
    const sni_attr *a = attr_of(n, name, SNI_ATTR_FLOATS);
    if (a && v) *v = a->u.floats;
    if (a && count) *count = a->count;
    return a != NULL;
}

bool sni_node_get_texts(const sn_op_node *n, const char *name, size_t *count) {
    const sni_attr *a = attr_of(n, name, SNI_ATTR_STRINGS);
    if (a && count) *count = a->count;
    return a != NULL;
}

bool sni_node_get_text_at(const sn_op_node *n, const char *name, size_t index, const char **text,
                          size_t *length) {
    const sni_attr *a = attr_of(n, name, SNI_ATTR_STRINGS);
    if (!a || index >= a->count) return false;
    give(n, a->u.strings[index], text, length);
    return true;
}

const sn_value *sni_node_get_tensor(const sn_op_node *n, const char *name) {
    const sni_attr *a = attr_of(n, name, SNI_ATTR_TENSOR);
    return a ? value_of_const(n, a->u.tensor) : NULL;
}

/* ---- Inference ---- */

const sn_op_node *sni_infer_node_of(const sn_op_infer *call) {
    return call ? &call->node : NULL;
}

bool sni_infer_input_info(const sn_op_infer *call, size_t index, sn_value_info *out) {
    return call && sni_node_input_info(&call->node, index, out);
}

/* The dimension that a text stands for: one of an input's, or a name of its own. */
static sni_dim symbol_of(const sni_infer *c, const char *text) {
    if (!text || !*text) return sni_dim_fresh(c->symbols);
    for (int i = 0; i < c->n_in; i++) {
        if (!sni_infer_shaped(c, i)) continue;
        for (int axis = 0; axis < c->in[i]->rank; axis++) {
            sni_dim d = c->in[i]->dims[axis];
            if (!sni_dim_known(d) && strcmp(sni_dim_text(c->symbols, d), text) == 0) return d;
        }
    }
    return sni_dim_named(c->symbols, sni_str_of(text));
}

sn_status sni_infer_set_output(sn_op_infer *call, size_t index, sn_dtype dtype, int rank,
                               const int64_t *dims, const char *const *symbols, sn_error *err) {
    if (!call || rank < -1 || rank > SN_MAX_RANK || (rank > 0 && !dims))
        return sni_fail(err, SN_INVALID_ARGUMENT, "output %zu: rank %d, or dims is NULL", index,
                        rank);
    sni_infer *c = call->c;
    if (index >= (size_t)c->n_out) return SN_OK;
    if (dtype != SN_UNDEFINED) SN_TRY(sni_infer_set_type(c, (int)index, dtype));
    if (rank < 0) return SN_OK;
    sni_dim all[SN_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        all[i] = dims[i] >= 0 ? dims[i] : symbol_of(c, symbols ? symbols[i] : NULL);
        if (all[i] == SNI_DIM_FAIL) return sni_fail_memory(err);
    }
    return sni_infer_set_shape(c, (int)index, rank, all);
}

sn_status sni_custom_infer(sni_infer *c) {
    const sni_custom *custom = (const sni_custom *)c->op;
    if (!custom->given.infer) return SN_OK;
    sn_op_infer call = {.c = c, .node = {.node = c->node, .infer = c, .arena = c->arena}};
    sn_error told = {0};
    sn_status status = custom->given.infer(custom->given.ctx, &call, &told);
    if (status == SN_OK) return SN_OK;
    return sni_fail(c->err, status, "%s",
                    told.message[0] ? told.message : "its shape inference failed");
}

/* ---- Kernels ---- */

static void free_kernel(void *object) {
    sni_custom_kernel *kernel = object;
    const sn_op *op = &kernel->custom->given;
    if (kernel->state && op->destroy) op->destroy(op->ctx, kernel->state);
    free(kernel);
}

/* The store owns the kernel as soon as it exists, so that a failure leaks nothing. */
static sn_status make_kernel(sni_graph *g, sni_node *n, sn_error *err) {
    const sni_custom *custom = (const sni_custom *)n->op;
    sni_custom_kernel *kernel =
        calloc(1, sizeof *kernel + (size_t)n->n_out * sizeof kernel->types[0]);
    if (!kernel) return sni_fail_memory(err);
    kernel->custom = custom;
    SN_TRY(sni_store_own(g->store, kernel, free_kernel, err));
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        kernel->types[i] = v && v->type.kind == SN_KIND_TENSOR ? v->type.dtype : SN_UNDEFINED;
    }
    n->params = kernel;
    if (!custom->given.create) return SN_OK;
    sn_op_node *node = SNI_NEW(&g->store->arena, sn_op_node);
    if (!node) return sni_fail_memory(err);
    *node = (sn_op_node){.graph = g, .node = n, .arena = &g->store->arena};
    sn_error told = {0};
    sn_status status = custom->given.create(custom->given.ctx, node, &kernel->state, &told);
    if (status == SN_OK) return SN_OK;
    return sni_fail(err, status, "node '%.*s' (%s): %s", SNI_FMT(sni_node_label(g, n)), n->op->name,
                    told.message[0] ? told.message : "its kernel could not be made");
}

static sn_status prepare(sni_graph *g, int depth, sn_error *err) {
    SN_TRY(sni_check_nesting(depth, err));
    for (sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        if (n->op && n->op->flags & SNI_OP_CUSTOM) SN_TRY(make_kernel(g, n, err));
        for (int32_t i = 0; i < n->n_subgraphs; i++)
            SN_TRY(prepare(n->subgraphs[i], depth + 1, err));
    }
    return SN_OK;
}

sn_status sni_custom_prepare(sni_graph *graph, sn_error *err) {
    return prepare(graph, 0, err);
}
