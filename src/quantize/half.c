/* half.c - the whole model in float16 or bfloat16. Inputs and outputs stay float32; nodes that have
 * no form for the narrow type, or whose numbers leave its range, stay as they are between Casts. */
#include "quantize/quantize.h"

#include "base/floats.h"
#include "ops/core/infer_graph.h"
#include "ops/core/op.h"

#include <math.h>
#include <stdlib.h>

typedef struct narrowing {
    const sni_quantizer *q;
    sni_graph *g;
    sn_dtype dtype;
    float largest;   /* finite number of the type */
    int32_t *narrow; /* by value: what stands for it in the narrow type; SNI_NO_ID: not there yet */
    bool *stays;     /* by node: it is computed in float32 */
    sn_error *err;
} narrowing;

static bool is_float32(const sni_value *v) {
    return v && v->type.kind == SN_KIND_TENSOR && v->type.dtype == SN_FLOAT32;
}

/* ---- Which nodes ---- */

static sni_types types_of(const sni_op *op, const char *type) {
    for (const sni_type_var *t = op->types; t && t->name; t++)
        if (strcmp(t->name, type) == 0) return t->types;
    return sni_dtype_find(sni_str_of(type)) ? SNI_T(sni_dtype_find(sni_str_of(type))) : 0;
}

static const sni_formal *formal_at(const sni_formal *formals, int i) {
    int at = 0;
    while (formals && formals[at].name && at < i && !(formals[at].flags & SNI_VARIADIC)) at++;
    return formals && formals[at].name ? &formals[at] : NULL;
}

/* Whether every float32 operand of the node may be of the narrow type by the operator's
 * description. */
static bool has_form(const narrowing *c, const sni_node *n) {
    if (!n->op || n->n_subgraphs || n->n_captures || (n->op->flags & SNI_OP_CUSTOM)) return false;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        bool in = i < n->n_in;
        int slot = in ? i : i - n->n_in;
        int32_t id = in ? n->in[slot] : n->out[slot];
        if (!is_float32(sni_graph_value(c->g, id))) continue;
        const sni_formal *f = formal_at(in ? n->op->inputs : n->op->outputs, slot);
        if (!f || !(types_of(n->op, f->type) & SNI_T(c->dtype))) return false;
    }
    return true;
}

/* Whether a float32 result's type follows from an input, not from an attribute. */
static bool follows_inputs(const narrowing *c, const sni_node *n) {
    bool makes = false, reads = false;
    for (int i = 0; i < n->n_out; i++) makes |= is_float32(sni_graph_value(c->g, n->out[i]));
    for (int i = 0; i < n->n_in; i++) reads |= is_float32(sni_graph_value(c->g, n->in[i]));
    return !makes || reads;
}

/* Whether a number of the samples, or a weight, is larger than the type holds. */
static bool overflows(const narrowing *c, int32_t id) {
    const sni_observer *o = c->q->seen[id];
    const sni_tensor *t = NULL;
    const sni_value *v = c->g->values[id];
    if (o && o->count) return fmaxf(-o->low, o->high) > c->largest / 2;
    if (!v->constant || sni_const_load(v->constant, &t, NULL) != SN_OK) return false;
    const float *x = t->data;
    for (int64_t i = 0; i < t->count; i++) {
        /* Masks use the lowest float there is, or minus infinity: any large number will do. */
        bool mask = x[i] <= -1e9f;
        if (!mask && !(fabsf(x[i]) <= c->largest)) return true;
    }
    return false;
}

/* Sizes and scales of pictures lose their meaning when they are rounded. */
static bool is_exact(const sni_node *n) {
    return sni_str_is(n->type, "Resize") || sni_str_is(n->type, "Range") ||
           sni_str_is(n->type, "Upsample");
}

static void choose_nodes(narrowing *c) {
    for (const sni_node *n = sni_graph_first(c->g); n; n = sni_graph_next(c->g, n)) {
        bool stays =
            !has_form(c, n) || !follows_inputs(c, n) || is_exact(n) || sni_str_is(n->type, "Cast");
        for (int i = 0; i < n->n_in + n->n_out && !stays; i++) {
            int32_t id = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
            if (is_float32(sni_graph_value(c->g, id))) stays = overflows(c, id);
        }
        c->stays[n->id] = stays;
    }
}

/* ---- Changing the graph ---- */

static sn_status narrow_const(narrowing *c, int32_t id, int32_t *out) {
    const sni_tensor *t;
    sni_const *made;
    SN_TRY(sni_const_load(c->g->values[id]->constant, &t, c->err));
    SN_TRY(sni_const_new(c->g->store, c->dtype, t->rank, t->dims, &made, c->err));
    for (int64_t i = 0; i < t->count; i++) {
        float v = ((const float *)t->data)[i];
        if (v <= -1e9f) v = fmaxf(v, -c->largest);
        sni_narrow(c->dtype, &v, (uint16_t *)made->tensor.data + i, 1, true);
    }
    return sni_q_add_const(c->g, made, out, c->err);
}

static sn_status add_cast(narrowing *c, int32_t from, int32_t before, sn_dtype to, int32_t *out) {
    sni_attr a = sni_attr_of_int("to", to);
    return sni_q_add_node(c->g, before, &(sni_qnode){"", "Cast", &from, 1, &a, 1}, out, c->err);
}

/* What stands for a value in the narrow type; a Cast is put behind what makes it. */
static sn_status narrowed(narrowing *c, int32_t id, int32_t *out) {
    if (c->narrow[id] == SNI_NO_ID) {
        const sni_value *v = c->g->values[id];
        int32_t made;
        if (v->constant)
            SN_TRY(narrow_const(c, id, &made));
        else
            SN_TRY(add_cast(c, id, sni_q_after(c->g, v->producer), c->dtype, &made));
        c->narrow[id] = made;
    }
    *out = c->narrow[id];
    return SN_OK;
}

/* The node reads and makes narrow values; what reads its results in float32 reads a Cast. */
static sn_status narrow_node(narrowing *c, sni_node *n) {
    int32_t base_values = c->q->base->value_count;
    for (int i = 0; i < n->n_in; i++) {
        int32_t id = n->in[i];
        if (id >= base_values || !is_float32(sni_graph_value(c->g, id))) continue;
        SN_TRY(narrowed(c, id, &id));
        SN_TRY(sni_node_set_input(c->g, n, i, id, c->err));
    }
    for (int i = 0; i < n->n_out; i++) {
        int32_t id = n->out[i];
        sni_value *v;
        sni_node *cast;
        if (!is_float32(sni_graph_value(c->g, id))) continue;
        SN_TRY(sni_graph_add_value(c->g, (sni_str){0}, &v, c->err));
        v->type = c->g->values[id]->type;
        v->type.dtype = c->dtype;
        SN_TRY(sni_node_replace_output(c->g, n, i, v->id, c->err));
        c->narrow[id] = v->id;
        sni_new_node made = {SNI_STR(""), SNI_STR("Cast"), &v->id, 1, &id, 1};
        SN_TRY(sni_graph_add_node(c->g, n->next, &made, &cast, c->err));
        sni_attr to = sni_attr_of_int("to", SN_FLOAT32);
        cast->op = sni_op_find(cast->domain, cast->type);
        cast->version = sni_op_version(cast->op);
        SN_TRY(sni_node_set_attr(c->g, cast, &to, c->err));
        SN_TRY(sni_node_bind(c->g, cast, c->err));
    }
    return SN_OK;
}

static sn_status narrow_graph(narrowing *c) {
    choose_nodes(c);
    for (int32_t i = 0; i < c->q->base->node_count; i++)
        if (!c->stays[i]) SN_TRY(narrow_node(c, c->g->nodes[i]));
    return sni_infer_graph(c->g, c->err);
}

static void note_layers(sni_quantizer *q, const narrowing *c) {
    for (size_t i = 0; i < q->n_layers; i++) {
        sni_qlayer *l = &q->layers[i];
        bool stays = c->stays[l->node];
        l->precision = stays ? SN_QUANTIZE_TO_FLOAT : q->o.to;
        l->note = stays ? "its numbers leave the range of the type" : "";
        l->made[q->o.to].bytes = l->bytes / 2;
    }
}

sn_status sni_q_half(sni_quantizer *q, sn_dtype dtype, sni_graph *g, sn_error *err) {
    narrowing c = {.q = q,
                   .g = g,
                   .dtype = dtype,
                   .largest = dtype == SN_FLOAT16 ? 65504.0f : 3.38e38f,
                   .err = err};
    c.narrow = malloc(((size_t)g->value_count + 1) * sizeof *c.narrow);
    c.stays = calloc((size_t)g->node_count + 1, sizeof *c.stays);
    sn_status status = c.narrow && c.stays ? SN_OK : sni_fail_memory(err);
    for (int32_t i = 0; status == SN_OK && i < g->value_count; i++) c.narrow[i] = SNI_NO_ID;
    if (status == SN_OK) status = narrow_graph(&c);
    if (status == SN_OK) note_layers(q, &c);
    free(c.narrow);
    free(c.stays);
    return status;
}
