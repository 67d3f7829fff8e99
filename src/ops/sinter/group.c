/* Group of ai.sinter: elementwise nodes that the optimiser put together so that one pass over
 * memory computes them all. They form the body, a graph whose inputs and outputs are the node's.
 * The body is part of the description, not a subgraph that is run: inference calls its nodes'
 * operators one after the other, and the reference kernel calls their kernels. */
#include "ops/sinter/group.h"

#include "base/checked.h"
#include "ops/core/wide.h"
#include "ops/sinter/body.h"

/* ---- The body ---- */

static bool is_plain(const sni_node *n) {
    const unsigned special =
        SNI_OP_VIEW | SNI_OP_ALLOCATES | SNI_OP_RANDOM | SNI_OP_SUBGRAPHS | SNI_OP_CUSTOM;
    return n->op && n->op->infer && n->op->ref && !(n->op->flags & special) && !n->n_subgraphs;
}

static sn_status check_body(sni_infer *c, const sni_graph **out) {
    const sni_graph *g = sni_group_body(c->node);
    int members = 0;
    if (!g) return SNI_INFER_FAIL(c, "it has no body");
    if (g->n_inputs != c->n_in || g->n_outputs != c->n_out || g->n_captures)
        return SNI_INFER_FAIL(c, "the body has %d inputs and %d outputs, the node %d and %d",
                              g->n_inputs + g->n_captures, g->n_outputs, c->n_in, c->n_out);
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n), members++)
        if (!is_plain(n))
            return SNI_INFER_FAIL(c, "%.*s cannot be part of a group", SNI_FMT(n->type));
    if (members > SNI_GROUP_MEMBERS)
        return SNI_INFER_FAIL(c, "%d nodes are more than the %d of a group", members,
                              SNI_GROUP_MEMBERS);
    for (int i = 0; i < c->n_in; i++)
        if (!c->in[i]) return SNI_INFER_FAIL(c, "input %d is left out", i);
    *out = g;
    return SN_OK;
}

/* ---- Types and shapes ---- */

static sn_status group_infer(sni_infer *c) {
    const sni_graph *g = NULL;
    sni_type *types = NULL;
    SN_TRY(check_body(c, &g));
    SN_TRY(sni_infer_body(c, g, "group", &types));
    for (int i = 0; i < c->n_out; i++) SN_TRY(sni_infer_set_full_type(c, i, &types[g->outputs[i]]));
    return SN_OK;
}

/* ---- The reference kernel ---- */

typedef struct group_call {
    sni_kernel *k;
    const sni_graph *body;
    sni_arena arena;
    sni_symbols *symbols;
    sni_datum *values; /* of the body, by id */
} group_call;

static sn_status infer_call(group_call *c, sni_type **types) {
    sni_kernel *k = c->k;
    sni_type *in = SNI_NEW_ARRAY(&c->arena, sni_type, k->n_in);
    const sni_type **ins = SNI_NEW_ARRAY(&c->arena, const sni_type *, k->n_in);
    const sni_tensor **known = SNI_NEW_ARRAY(&c->arena, const sni_tensor *, k->n_in);
    if (!in || !ins || !known) return sni_fail_memory(k->err);
    for (int i = 0; i < k->n_in; i++) {
        const sni_tensor *t = sni_in(k, i);
        in[i] = (sni_type){SN_KIND_TENSOR, t->dtype, true, t->rank, t->dims, NULL};
        ins[i] = &in[i];
        known[i] = t;
    }
    sni_infer infer = {.op = k->node->op,
                       .node = k->node,
                       .params = k->params,
                       .n_in = k->n_in,
                       .n_out = k->n_out,
                       .in = ins,
                       .known = known,
                       .symbols = c->symbols,
                       .arena = &c->arena,
                       .err = k->err};
    return sni_infer_body(&infer, c->body, "group", types);
}

/* Gives every value of the body its shape, and those that members make memory. */
static sn_status place_values(group_call *c, const sni_type *types) {
    const sni_graph *g = c->body;
    sni_kernel *k = c->k;
    unsigned char *memory = NULL;
    size_t total = 0;
    for (int32_t id = 0; id < g->value_count; id++) {
        const sni_value *v = g->values[id];
        if (!v || v->producer == SNI_NO_ID) continue;
        sni_tensor *t = &c->values[id].tensor;
        if (types[id].kind != SN_KIND_TENSOR || !types[id].has_shape)
            return sni_fail(k->err, SN_INTERNAL, "the shape of a value of the group is not known");
        SN_TRY(sni_tensor_shape(t, types[id].dtype, types[id].rank, types[id].dims, k->err));
        c->values[id].kind = SN_KIND_TENSOR;
        size_t bytes = (sni_tensor_bytes(t) + SNI_ALIGN - 1) & ~(size_t)(SNI_ALIGN - 1);
        if (!sni_add_size(total, bytes, &total))
            return sni_fail(k->err, SN_LIMIT, "the values of the group do not fit in memory");
    }
    void *p = NULL;
    SN_TRY(sni_scratch_array(k, (int64_t)total, 1, &p));
    memory = p;
    for (int32_t id = 0; id < g->value_count; id++) {
        if (!g->values[id] || g->values[id]->producer == SNI_NO_ID) continue;
        c->values[id].tensor.data = memory;
        memory +=
            (sni_tensor_bytes(&c->values[id].tensor) + SNI_ALIGN - 1) & ~(size_t)(SNI_ALIGN - 1);
    }
    return SN_OK;
}

static sn_status take_constants(group_call *c) {
    for (int32_t id = 0; id < c->body->value_count; id++) {
        const sni_value *v = c->body->values[id];
        const sni_tensor *t;
        if (!v || !v->constant || v->is_input) continue;
        SN_TRY(sni_const_load(v->constant, &t, c->k->err));
        c->values[id] = (sni_datum){.kind = SN_KIND_TENSOR, .tensor = *t};
        c->values[id].tensor.buffer = NULL;
    }
    return SN_OK;
}

static sn_status call_member(group_call *c, const sni_node *n) {
    const sni_datum **in = SNI_NEW_ARRAY(&c->arena, const sni_datum *, n->n_in);
    sni_datum **out = SNI_NEW_ARRAY(&c->arena, sni_datum *, n->n_out);
    if (!in || !out) return sni_fail_memory(c->k->err);
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != SNI_NO_ID) in[i] = &c->values[n->in[i]];
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != SNI_NO_ID) out[i] = &c->values[n->out[i]];
    sni_kernel m = *c->k;
    m.node = n;
    m.params = n->params;
    m.n_in = n->n_in;
    m.n_out = n->n_out;
    m.in = in;
    m.out = out;
    m.state = NULL;
    return n->op->ref(&m);
}

static sn_status run_body(group_call *c) {
    sni_kernel *k = c->k;
    const sni_graph *g = c->body;
    sni_type *types = NULL;
    c->values = SNI_NEW_ARRAY(&c->arena, sni_datum, g->value_count);
    if (!c->values || !c->symbols) return sni_fail_memory(k->err);
    SN_TRY(infer_call(c, &types));
    SN_TRY(place_values(c, types));
    SN_TRY(take_constants(c));
    for (int i = 0; i < k->n_in; i++) c->values[g->inputs[i]] = *k->in[i];
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n))
        SN_TRY(call_member(c, n));
    for (int i = 0; i < k->n_out; i++) {
        const sni_tensor *made = &c->values[g->outputs[i]].tensor;
        sni_tensor *y = sni_out(k, i);
        if (y && made->count) memmove(y->data, made->data, sni_tensor_bytes(made));
    }
    return SN_OK;
}

static sn_status group_ref(sni_kernel *k) {
    group_call c = {.k = k, .body = sni_group_body(k->node), .symbols = sni_symbols_new()};
    sni_arena_init(&c.arena, 0);
    sn_status status = run_body(&c);
    sni_symbols_free(c.symbols);
    sni_arena_free(&c.arena);
    return status;
}

/* A result may stand on any input of its shape: the reference kernel writes it when everything has
 * been computed. */
const sni_op sni_op_sinter_Group = {
    .name = "Group",
    .domain = "ai.sinter",
    .versions = SNI_VERSIONS(1),
    .inputs = SNI_FORMALS({"inputs", "V", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .outputs = SNI_FORMALS({"outputs", "V", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .types = SNI_TYPE_VARS({"V", SNI_T_ANY & ~SNI_T(SN_STRING)}),
    .params =
        SNI_PARAMS({"body", SNI_ATTR_GRAPH, offsetof(sni_group_params, body), .required = true}),
    .params_size = sizeof(sni_group_params),
    .inplace = (1u << SNI_GROUP_INPUTS) - 1,
    .infer = group_infer,
    .ref = group_ref,
};
