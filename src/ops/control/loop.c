/* Loop: a subgraph that runs while a condition holds, at most a given number of times. */
#include "base/checked.h"
#include "ops/core/body_util.h"
#include "ops/core/seq_util.h"
#include "ops/core/shape_util.h"
#include "ops/core/tensor_util.h"
#include "ops/core/wide.h"

#include <inttypes.h>

extern const sni_op sni_op_Unsqueeze;

typedef struct loop_params {
    int32_t body;
} loop_params;

/* ---- Import ---- */

/* A body's input whose list of one element nodes read as they did before, though it is a scalar. */
static sn_status widen_input(sni_upgrade *u, sni_graph *body, sni_value *v) {
    sni_const *axes;
    sni_value *axis, *list;
    sni_node *n;
    int64_t one = 1;
    SN_TRY(sni_const_new(body->store, SN_INT64, 1, &one, &axes, u->err));
    ((int64_t *)axes->tensor.data)[0] = 0;
    SN_TRY(sni_graph_add_const(body, (sni_str){0}, axes, &axis, u->err));
    SN_TRY(sni_graph_add_value(body, (sni_str){0}, &list, u->err));
    SN_TRY(sni_graph_replace_uses(body, v->id, list->id, u->err));
    const int32_t in[] = {v->id, axis->id};
    SN_TRY(sni_graph_add_node(
        body, body->first, &(sni_new_node){SNI_STR(""), SNI_STR("Unsqueeze"), in, 2, &list->id, 1},
        &n, u->err));
    n->name = u->node->name;
    n->version = sni_op_version(&sni_op_Unsqueeze);
    v->type.has_shape = false;
    return SN_OK;
}

/* A body may declare the iteration's number and the condition as lists of one element, which the
 * specification does not allow and other engines pass it then. */
static sn_status loop_upgrade(sni_upgrade *u) {
    const sni_attr *a = sni_node_attr(u->node, "body");
    if (!a || a->kind != SNI_ATTR_GRAPH) return SN_OK;
    sni_graph *body = u->node->subgraphs[a->u.graph];
    for (int32_t i = 0; i < 2 && i < body->n_inputs; i++) {
        sni_value *v = body->values[body->inputs[i]];
        if (v->type.kind != SN_KIND_TENSOR || !v->type.has_shape || v->type.rank != 1) continue;
        SN_TRY(sni_store_tolerate(u->graph->store, sni_node_label(u->graph, u->node), u->err,
                                  "the body declares '%.*s' as a list, and it is a scalar",
                                  SNI_FMT(v->name)));
        SN_TRY(widen_input(u, body, v));
    }
    return SN_OK;
}

/* ---- Inference ---- */

/* The type of a scan output: one more axis in front. */
static sn_status set_scan_output(sni_infer *c, int out, const sni_type *item) {
    if (!item || item->kind != SN_KIND_TENSOR || !item->dtype) return SN_OK;
    SN_TRY(sni_infer_set_type(c, out, item->dtype));
    if (!item->has_shape) return SN_OK;
    if (item->rank >= SN_MAX_RANK)
        return SNI_INFER_FAIL(c, "output %d has a rank above %d", out, SN_MAX_RANK);
    sni_dim dims[SN_MAX_RANK] = {sni_dim_fresh(c->symbols)};
    for (int i = 0; i < item->rank; i++) dims[i + 1] = item->dims[i];
    return sni_infer_set_shape(c, out, item->rank + 1, dims);
}

static sn_status loop_infer(sni_infer *c) {
    const loop_params *p = c->params;
    int n_state = c->n_in > 2 ? c->n_in - 2 : 0;
    if (c->n_out < n_state)
        return SNI_INFER_FAIL(c, "%d outputs for %d carried values", c->n_out, n_state);
    sni_body b = {.graph = p->body,
                  .n_in = 2 + n_state,
                  .n_out = 1 + c->n_out,
                  .lead = 2,
                  .lead_out = 1,
                  .n_state = n_state};
    SN_TRY(sni_body_init(c, &b));
    static const sni_type count = {.kind = SN_KIND_TENSOR, .dtype = SN_INT64, .has_shape = true};
    static const sni_type flag = {.kind = SN_KIND_TENSOR, .dtype = SN_BOOL, .has_shape = true};
    b.in[0] = &count;
    b.in[1] = &flag;
    for (int i = 0; i < n_state; i++) {
        if (!c->in[2 + i]) return SNI_INFER_FAIL(c, "carried value %d is left out", i);
        b.in[2 + i] = c->in[2 + i];
    }
    SN_TRY(sni_body_infer(c, &b));
    for (int i = 0; i < n_state; i++)
        if (b.in[2 + i]) SN_TRY(sni_infer_set_full_type(c, i, b.in[2 + i]));
    for (int i = n_state; i < c->n_out; i++) SN_TRY(set_scan_output(c, i, b.out[1 + i]));
    return SN_OK;
}

/* ---- Kernel ---- */

/* A scan output that grows by one item an iteration. */
typedef struct pile {
    sni_tensor item;    /* type and shape of every item */
    sni_buffer *buffer; /* NULL before the first */
    int64_t count;
} pile;

static sn_status pile_grow(sni_kernel *k, pile *p, size_t needed) {
    if (p->buffer && needed <= p->buffer->bytes) return SN_OK;
    size_t bytes = p->buffer ? p->buffer->bytes : 0;
    bytes = bytes < SIZE_MAX / 2 && 2 * bytes > needed ? 2 * bytes : needed;
    sni_buffer *more = NULL;
    SN_TRY(sni_buffer_new(bytes, k->budget, &more, k->err));
    if (p->buffer) memcpy(more->data, p->buffer->data, p->buffer->bytes);
    sni_buffer_release(p->buffer);
    p->buffer = more;
    return SN_OK;
}

static sn_status pile_add(sni_kernel *k, pile *p, int number, const sni_datum *d) {
    if (d->kind != SN_KIND_TENSOR) return SNI_KERNEL_FAIL(k, "scan output %d is no tensor", number);
    const sni_tensor *t = &d->tensor;
    if (p->count == 0) SN_TRY(sni_tensor_shape(&p->item, t->dtype, t->rank, t->dims, k->err));
    bool same = t->dtype == p->item.dtype && t->rank == p->item.rank;
    for (int i = 0; same && i < t->rank; i++) same = t->dims[i] == p->item.dims[i];
    if (!same)
        return SNI_KERNEL_FAIL(k, "scan output %d has another shape in iteration %" PRId64, number,
                               p->count);
    size_t bytes = sni_tensor_bytes(t), used, needed;
    if (!sni_mul_size(bytes, (size_t)p->count, &used) || !sni_add_size(used, bytes, &needed))
        return sni_fail(k->err, SN_LIMIT, "scan output %d is too large", number);
    SN_TRY(pile_grow(k, p, needed));
    sni_copy_bytes(p->buffer->data + used, t->data, bytes);
    p->count++;
    return SN_OK;
}

/* The pile as a tensor. */
static sn_status pile_finish(sni_kernel *k, pile *p, sni_datum *out) {
    if (!p->buffer) SN_TRY(sni_buffer_new(0, k->budget, &p->buffer, k->err));
    int64_t dims[SN_MAX_RANK + 1];
    dims[0] = p->count;
    for (int i = 0; i < p->item.rank; i++) dims[i + 1] = p->item.dims[i];
    SN_TRY(sni_tensor_shape(&out->tensor, p->item.dtype, p->item.rank + 1, dims, k->err));
    out->kind = SN_KIND_TENSOR;
    out->tensor.buffer = p->buffer;
    out->tensor.data = p->buffer->data;
    p->buffer = NULL;
    return SN_OK;
}

/* A loop under way. */
typedef struct loop {
    int n_state, n_scan;
    sni_datum *state;     /* carried values the body made */
    sni_datum *made;      /* outputs of the iteration under way: condition, carried, scan */
    const sni_datum **in; /* inputs of the next iteration */
    pile *piles;
    int64_t iteration;
    uint8_t flag;
    sni_datum count, condition; /* borrow `iteration` and `flag` */
} loop;

static sn_status loop_init(sni_kernel *k, loop *l) {
    l->n_state = k->n_in > 2 ? k->n_in - 2 : 0;
    l->n_scan = k->n_out - l->n_state;
    SN_TRY(sni_datum_array(k, l->n_state, &l->state));
    SN_TRY(sni_datum_array(k, 1 + k->n_out, &l->made));
    void *in = NULL, *piles = NULL;
    SN_TRY(sni_scratch_array(k, 2 + l->n_state, sizeof *l->in, &in));
    SN_TRY(sni_scratch_array(k, l->n_scan, sizeof *l->piles, &piles));
    memset(piles, 0, (size_t)l->n_scan * sizeof *l->piles);
    l->in = in;
    l->piles = piles;
    l->flag = 1;
    l->count = (sni_datum){.kind = SN_KIND_TENSOR,
                           .tensor = {.dtype = SN_INT64, .count = 1, .data = &l->iteration}};
    l->condition = (sni_datum){.kind = SN_KIND_TENSOR,
                               .tensor = {.dtype = SN_BOOL, .count = 1, .data = &l->flag}};
    l->in[0] = &l->count;
    l->in[1] = &l->condition;
    for (int i = 0; i < l->n_state; i++) l->in[2 + i] = k->in[2 + i];
    return SN_OK;
}

static void loop_free(sni_kernel *k, loop *l) {
    sni_datum_clear_all(l->state, l->state ? l->n_state : 0);
    sni_datum_clear_all(l->made, l->made ? 1 + k->n_out : 0);
    for (int i = 0; l->piles && i < l->n_scan; i++) sni_buffer_release(l->piles[i].buffer);
}

/* Takes over what an iteration made; tells whether to go on. */
static sn_status loop_advance(sni_kernel *k, loop *l, bool *go) {
    const sni_datum *condition = &l->made[0];
    if (condition->kind != SN_KIND_TENSOR || condition->tensor.dtype != SN_BOOL ||
        condition->tensor.count != 1)
        return SNI_KERNEL_FAIL(k, "the body's condition is not one bool");
    *go = *(const uint8_t *)condition->tensor.data != 0;
    for (int i = 0; i < l->n_scan; i++)
        SN_TRY(pile_add(k, &l->piles[i], i, &l->made[1 + l->n_state + i]));
    for (int i = 0; i < l->n_state; i++) {
        sni_datum_clear(&l->state[i]);
        l->state[i] = l->made[1 + i];
        l->made[1 + i] = (sni_datum){0};
        l->in[2 + i] = &l->state[i];
    }
    sni_datum_clear_all(l->made, 1 + k->n_out);
    return SN_OK;
}

/* Once the condition has been read it is the body's, or true where the loop has none. */
static sn_status loop_iterate(sni_kernel *k, loop *l, int64_t most, bool go) {
    const loop_params *p = k->params;
    bool has_condition = k->n_in > 1 && k->in[1];
    for (; go && l->iteration < most; l->iteration++) {
        SN_TRY(sni_poll(k));
        SN_TRY(sni_run_subgraph(k, p->body, l->in, 2 + l->n_state, l->made, 1 + k->n_out));
        SN_TRY(loop_advance(k, l, &go));
        if (!has_condition) go = true;
    }
    return SN_OK;
}

/* The shape of an item of scan output i that no iteration made. */
static sn_status loop_empty(sni_kernel *k, const loop *l, int i) {
    const loop_params *p = k->params;
    const sni_type *type = sni_subgraph_output(k, p->body, 1 + l->n_state + i);
    int64_t dims[SN_MAX_RANK];
    int rank = sni_empty_dims(k, p->body, l->in, type, dims);
    return sni_tensor_shape(&l->piles[i].item, type->dtype, rank, dims, k->err);
}

static sn_status loop_finish(sni_kernel *k, loop *l) {
    for (int i = 0; i < l->n_state; i++) {
        if (l->in[2 + i] == &l->state[i])
            sni_out_give(k, i, &l->state[i]);
        else
            SN_TRY(sni_out_share(k, i, l->in[2 + i]));
    }
    for (int i = 0; i < l->n_scan; i++) {
        sni_datum d = {0};
        if (!l->piles[i].buffer) SN_TRY(loop_empty(k, l, i));
        SN_TRY(pile_finish(k, &l->piles[i], &d));
        sni_out_give(k, l->n_state + i, &d);
    }
    return SN_OK;
}

static sn_status loop_ref(sni_kernel *k) {
    const sni_tensor *most = sni_in(k, 0), *start = sni_in(k, 1);
    if ((most && most->count != 1) || (start && start->count != 1))
        return SNI_KERNEL_FAIL(k, "M and cond have one element");
    loop l = {0};
    sn_status status = loop_init(k, &l);
    if (status == SN_OK)
        status = loop_iterate(k, &l, most ? sni_index_at(most, 0) : INT64_MAX,
                              start ? *(const uint8_t *)start->data != 0 : true);
    if (status == SN_OK) status = loop_finish(k, &l);
    loop_free(k, &l);
    return status;
}

const sni_op sni_op_Loop = {
    .name = "Loop",
    .versions = SNI_VERSIONS(1, 11, 13, 16, 19, 21, 23, 24, 25),
    .inputs = SNI_FORMALS({"M", "int64", SNI_OPTIONAL}, {"cond", "bool", SNI_OPTIONAL},
                          {"v_initial", "V", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .outputs = SNI_FORMALS({"v_final_and_scan_outputs", "V", SNI_VARIADIC | SNI_HETEROGENEOUS}),
    .min_inputs = SNI_MIN_NONE,
    .types = SNI_TYPE_VARS({"V", SNI_T_ALL}),
    .params = SNI_PARAMS({"body", SNI_ATTR_GRAPH, offsetof(loop_params, body), .required = true}),
    .params_size = sizeof(loop_params),
    .flags = SNI_OP_ALLOCATES | SNI_OP_SUBGRAPHS | SNI_OP_REWRITES | SNI_OP_COUNTS,
    .upgrade = loop_upgrade,
    .infer = loop_infer,
    .ref = loop_ref,
};
