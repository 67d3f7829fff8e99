/* fold.c - nodes whose inputs are all part of the model are computed once, here. */
#include "base/checked.h"
#include "base/clock.h"
#include "ops/core/call.h"
#include "ops/core/tensor_util.h"
#include "opt/opt.h"

#include <stdlib.h>

/* Bytes of an output, if its shape is known and below the limit. */
static bool output_fits(const sni_type *t, size_t limit) {
    int64_t count;
    size_t bytes;
    if (t->kind != SN_KIND_TENSOR || !t->dtype || !t->has_shape) return false;
    if (!sni_shape_count(t->rank, t->dims, &count)) return false;
    return sni_mul_size((size_t)count, sni_dtype_width(t->dtype), &bytes) && bytes <= limit;
}

/* Multiply-accumulates are charged as if each read a byte: a product of large constants is not
 * worth the wait. -1 (not known) costs nothing here; its operands are charged. */
static size_t arithmetic_cost(const sni_graph *g, const sni_node *n) {
    enum { MOST = 8 };
    const sni_type *in[MOST] = {0};
    sni_type out[MOST] = {{0}};
    if (!n->op->macs || n->n_in > MOST || n->n_out > MOST) return 0;
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != SNI_NO_ID) in[i] = &g->values[n->in[i]]->type;
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != SNI_NO_ID) out[i] = g->values[n->out[i]]->type;
    sni_infer c = {.op = n->op,
                   .node = n,
                   .params = n->params,
                   .n_in = n->n_in,
                   .n_out = n->n_out,
                   .in = in,
                   .out = out};
    int64_t macs = n->op->macs(&c);
    return macs > 0 ? (size_t)macs : 0;
}

static size_t value_cost(const sni_graph *g, int32_t id) {
    const sni_value *v = sni_graph_value(g, id);
    int64_t count;
    if (!v || !v->type.has_shape || !sni_shape_count(v->type.rank, v->type.dims, &count)) return 0;
    return (size_t)count * sni_dtype_width(v->type.dtype);
}

/* Charges a node's folding to what is left of the session's; false if that does not cover it. Many
 * constants that are small one by one must not add up to a bomb. */
static bool charge(sni_rewrite *r, const sni_node *n) {
    size_t cost = arithmetic_cost(r->graph, n);
    for (int32_t i = 0; i < n->n_in; i++)
        if (!sni_add_size(cost, value_cost(r->graph, n->in[i]), &cost)) return false;
    for (int32_t i = 0; i < n->n_out; i++)
        if (!sni_add_size(cost, value_cost(r->graph, n->out[i]), &cost)) return false;
    if (cost > *r->fold_left) return false;
    *r->fold_left -= cost;
    return true;
}

/* Quantised weights stay as they are until rules have had their chance to use them so. */
static bool is_too_early(const sni_rewrite *r, const sni_node *n) {
    return r->stage < SNI_STAGE_FUSE && sni_str_is(n->type, "DequantizeLinear");
}

static bool is_foldable(const sni_rewrite *r, const sni_node *n) {
    const sni_graph *g = r->graph;
    if (is_too_early(r, n)) return false;
    if (!n->op || !n->op->ref || n->n_subgraphs) return false;
    if (n->op->flags & (SNI_OP_RANDOM | SNI_OP_SUBGRAPHS | SNI_OP_ALLOCATES)) return false;
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *v = sni_graph_value(g, n->in[i]);
        if (v && (!v->constant || v->is_input)) return false;
    }
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        if (v && !output_fits(&v->type, r->fold_limit)) return false;
    }
    return n->n_out > 0;
}

/* ---- One number repeated ---- */

enum {
    WIDEST = 16,         /* bytes of an element */
    LAZY_LEAST = 1 << 16 /* bytes from which contents wait until somebody needs them */
};

typedef struct repeated {
    unsigned char element[WIDEST];
} repeated;

static sn_status decode_repeated(sni_const *c, sn_error *err) {
    const repeated *r = c->source;
    SN_TRY(sni_const_own_memory(c, err));
    sni_fill(c->tensor.data, r->element, c->tensor.count, sni_dtype_width(c->tensor.dtype));
    return SN_OK;
}

/* A node that repeats one number, whose result is large enough to be made when it is needed: an
 * implementation that packs it borrows it for a moment. What is above the limit for folding may be
 * made so too, as long as all of it stays below r->made_left. */
static bool is_repeated(const sni_rewrite *r, const sni_node *n) {
    const sni_graph *g = r->graph;
    if (!n->op || n->domain.n || !sni_str_is(n->type, "ConstantOfShape")) return false;
    const sni_value *shape = sni_graph_value(g, n->in[0]), *y = sni_graph_value(g, n->out[0]);
    if (!shape || !shape->constant || shape->is_input || !y || y->type.dtype == SN_STRING)
        return false;
    return output_fits(&y->type, SIZE_MAX) && value_cost(g, y->id) >= LAZY_LEAST;
}

static sn_status fold_repeated(sni_rewrite *r, sni_node *n) {
    const sni_attr *value = sni_node_attr(n, "value");
    const sni_type *type = &r->graph->values[n->out[0]]->type;
    size_t bytes = value_cost(r->graph, n->out[0]);
    size_t *left = bytes <= r->fold_limit ? r->fold_left : r->made_left;
    if (bytes > *left) return SN_OK;
    repeated *source = SNI_NEW(&r->store->arena, repeated);
    if (!source) return sni_fail_memory(r->err);
    if (value) {
        const sni_tensor *t;
        SN_TRY(sni_const_load(value->u.tensor, &t, r->err));
        memcpy(source->element, t->data, sni_dtype_width(t->dtype));
    }
    *left -= bytes;
    sni_const *c;
    sni_value *v;
    sni_tensor shape = {0};
    SN_TRY(sni_tensor_shape(&shape, type->dtype, type->rank, type->dims, r->err));
    SN_TRY(sni_const_new_lazy(r->store, &shape, decode_repeated, source, &c, r->err));
    c->made = true;
    SN_TRY(sni_graph_add_const(r->graph, r->graph->values[n->out[0]]->name, c, &v, r->err));
    SN_TRY(sni_graph_replace_uses(r->graph, n->out[0], v->id, r->err));
    sni_graph_remove_node(r->graph, n);
    r->count++;
    return SN_OK;
}

/* ---- Narrow floats in float32 ---- */

/* A Cast of many float16 or bfloat16 numbers to float32. Contents wait until somebody needs them:
 * what packs narrow numbers never does. */
static bool is_widening(const sni_rewrite *r, const sni_node *n) {
    const sni_graph *g = r->graph;
    if (!n->op || n->domain.n || !sni_str_is(n->type, "Cast")) return false;
    const sni_value *x = sni_graph_value(g, n->in[0]), *y = sni_graph_value(g, n->out[0]);
    if (!x || !x->constant || x->is_input || !y || y->type.dtype != SN_FLOAT32) return false;
    sn_dtype from = x->constant->tensor.dtype;
    return (from == SN_FLOAT16 || from == SN_BFLOAT16) && output_fits(&y->type, SIZE_MAX) &&
           value_cost(g, y->id) >= LAZY_LEAST;
}

static sn_status fold_widening(sni_rewrite *r, sni_node *n) {
    sni_graph *g = r->graph;
    sni_const *c;
    sni_value *v;
    SN_TRY(sni_const_widened(g->values[n->in[0]]->constant, &c, r->err));
    SN_TRY(sni_graph_add_const(g, g->values[n->out[0]]->name, c, &v, r->err));
    SN_TRY(sni_graph_replace_uses(g, n->out[0], v->id, r->err));
    sni_graph_remove_node(g, n);
    r->count++;
    return SN_OK;
}

/* ---- Any node ---- */

static void release_buffer(void *buffer) {
    sni_buffer_release(buffer);
}

/* Replaces output i of a node by a constant that takes over the tensor's memory. */
static sn_status replace_output(sni_rewrite *r, sni_node *n, int32_t i, sni_datum *d) {
    sni_graph *g = r->graph;
    sni_const *c = SNI_NEW(&r->store->arena, sni_const);
    if (!c) return sni_fail_memory(r->err);
    c->tensor = d->tensor;
    c->store = r->store;
    c->file_bytes = sni_tensor_bytes(&c->tensor);
    c->tensor.buffer = NULL;
    sni_buffer *buffer = d->tensor.buffer;
    d->tensor.buffer = NULL;
    d->kind = SN_KIND_NONE;
    SN_TRY(sni_store_own(r->store, buffer, release_buffer, r->err));
    sni_value *v;
    SN_TRY(sni_graph_add_const(g, g->values[n->out[i]]->name, c, &v, r->err));
    return sni_graph_replace_uses(g, n->out[i], v->id, r->err);
}

static sn_status fold(sni_rewrite *r, sni_node *n, sni_datum *in, const sni_datum **ins,
                      sni_datum *out, bool *folded) {
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *v = sni_graph_value(r->graph, n->in[i]);
        if (!v) continue;
        const sni_tensor *t;
        SN_TRY(sni_const_load(v->constant, &t, r->err));
        in[i].kind = SN_KIND_TENSOR;
        in[i].tensor = *t;
        in[i].tensor.buffer = NULL;
        ins[i] = &in[i];
    }
    /* A node that fails on its constants fails when it is run, where it can be named; a run may
     * never get there. */
    size_t limit = r->fold_limit * 4;
    sni_budget budget = {.limit = limit < *r->fold_left ? limit : *r->fold_left + 1};
    size_t text = r->store->arena.used;
    uint64_t start = sni_now_ns();
    sni_eval_limits limits = {&budget, start + *r->fold_ns_left};
    if (r->deadline_ns && r->deadline_ns < limits.deadline_ns) limits.deadline_ns = r->deadline_ns;
    *folded = sni_eval(n, ins, out, &limits, &r->store->arena, NULL) == SN_OK;
    uint64_t taken = sni_now_ns() - start;
    *r->fold_ns_left -= taken < *r->fold_ns_left ? taken : *r->fold_ns_left;
    text = r->store->arena.used - text; /* it stays there, also if the node fails */
    *r->fold_left -= text < *r->fold_left ? text : *r->fold_left;
    if (!*folded) return SN_OK;
    for (int32_t i = 0; i < n->n_out; i++) {
        if (n->out[i] == SNI_NO_ID) continue;
        if (out[i].tensor.buffer) out[i].tensor.buffer->budget = NULL;
        SN_TRY(replace_output(r, n, i, &out[i]));
    }
    return SN_OK;
}

sn_status sni_pass_fold_constants(sni_rewrite *r) {
    for (sni_node *n = sni_graph_first(r->graph), *next; n; n = next) {
        next = sni_graph_next(r->graph, n);
        if (is_repeated(r, n)) {
            SN_TRY(fold_repeated(r, n));
            continue;
        }
        if (is_widening(r, n)) {
            SN_TRY(fold_widening(r, n));
            continue;
        }
        if (!*r->fold_ns_left || !is_foldable(r, n) || !charge(r, n)) continue;
        sni_datum *data = calloc((size_t)(n->n_in + n->n_out) + 1, sizeof *data);
        const sni_datum **ins = calloc((size_t)n->n_in + 1, sizeof *ins);
        bool folded = false;
        sn_status status = data && ins ? SN_OK : sni_fail_memory(r->err);
        if (status == SN_OK) status = fold(r, n, data, ins, data + n->n_in, &folded);
        for (int32_t i = 0; data && i < n->n_out; i++) {
            sni_datum *d = &data[n->n_in + i];
            if (d->tensor.buffer) d->tensor.buffer->budget = NULL;
            sni_datum_clear(d);
        }
        free(data);
        free(ins);
        if (status != SN_OK) return status;
        if (!folded) continue;
        sni_graph_remove_node(r->graph, n);
        r->count++;
    }
    return SN_OK;
}
