/* build.c - steps and shapes of a plan. Nodes are walked once, in order. Each output gets the shape
 * that inference finds for the sizes at hand; integers that shapes are computed from are worked out
 * here and now, so that shape arithmetic leaves no steps. */
#include "ops/core/call.h"
#include "plan/builder.h"

#include <stdlib.h>

/* ---- Shapes ---- */

static bool fully_shaped(const sni_type *t) {
    if (t->kind != SN_KIND_TENSOR || !t->dtype || !t->has_shape) return false;
    for (int i = 0; i < t->rank; i++)
        if (!sni_dim_known(t->dims[i])) return false;
    return true;
}

/* Where output `out` lies in input 0, in elements; -1: it is no part of it. */
static int64_t part_of(sni_infer *c, int out) {
    int64_t at;
    if (out == 0 && (c->op->flags & SNI_OP_VIEW)) return 0;
    if (!c->op->part || !c->in[0] || !fully_shaped(c->in[0]) || !fully_shaped(&c->out[out]))
        return -1;
    return c->op->part(c, out, &at) ? at : -1;
}

static sn_status infer(sni_builder *b, const sni_node *n) {
    sni_arena *a = &b->scratch;
    const sni_type **in = SNI_NEW_ARRAY(a, const sni_type *, n->n_in);
    const sni_tensor **known = SNI_NEW_ARRAY(a, const sni_tensor *, n->n_in);
    sni_const **constants = SNI_NEW_ARRAY(a, sni_const *, n->n_in);
    sni_type *out = SNI_NEW_ARRAY(a, sni_type, n->n_out);
    const sni_dim **out_dims = SNI_NEW_ARRAY(a, const sni_dim *, n->n_out);
    int32_t *counts = SNI_NEW_ARRAY(a, int32_t, n->n_out);
    if (!in || !known || !constants || !out || !out_dims || !counts) return sni_fail_memory(b->err);
    for (int32_t i = 0; i < n->n_in; i++) {
        if (n->in[i] == SNI_NO_ID) continue;
        in[i] = &b->types[n->in[i]];
        const sni_datum *d = &b->common->weights[n->in[i]];
        if (b->known[n->in[i]])
            known[i] = &b->known[n->in[i]]->tensor;
        else if (d->kind == SN_KIND_TENSOR && d->tensor.data && sni_plan_constant(b, n->in[i]))
            known[i] = &d->tensor;
        constants[i] = sni_plan_constant(b, n->in[i]);
    }
    sni_infer c = {.op = n->op,
                   .node = n,
                   .params = n->params,
                   .n_in = n->n_in,
                   .n_out = n->n_out,
                   .in = in,
                   .known = known,
                   .constants = constants,
                   .out = out,
                   .out_dims = out_dims,
                   .out_dims_count = counts,
                   .symbols = b->symbols,
                   .arena = a,
                   .err = b->err};
    SN_TRY(sni_infer_call(&c));
    for (int32_t i = 0; i < n->n_out; i++) {
        if (n->out[i] == SNI_NO_ID) continue;
        b->types[n->out[i]] = out[i];
        b->parts[n->out[i]] = part_of(&c, i);
        if (out_dims[i]) SN_TRY(sni_plan_keep_dims(b, n->out[i], &out[i], out_dims[i], counts[i]));
    }
    return SN_OK;
}

static bool all_outputs_known(const sni_builder *b, const sni_node *n) {
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != SNI_NO_ID && !b->known[n->out[i]]) return false;
    return true;
}

/* ---- Steps ---- */

/* A step is static when every tensor it takes or makes has a known shape. One whose results are
 * known although an operand is not, such as a Reshape to constant sizes, is checked when the
 * operand is there. */
static bool is_static(const sni_builder *b, const sni_node *n) {
    if (n->op->flags & (SNI_OP_ALLOCATES | SNI_OP_SUBGRAPHS)) return false;
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_type *t = n->in[i] == SNI_NO_ID ? NULL : &b->types[n->in[i]];
        if (t && t->kind == SN_KIND_TENSOR && !fully_shaped(t)) return false;
    }
    for (int32_t i = 0; i < n->n_out; i++)
        if (n->out[i] != SNI_NO_ID && !fully_shaped(&b->types[n->out[i]])) return false;
    return true;
}

static int32_t add_slot(sni_builder *b, int32_t id, sni_place place, int32_t step) {
    sni_slot *s = &b->plan->slots[b->plan->n_slots];
    *s = (sni_slot){.place = place, .value = id, .first = step, .last = step, .part = -1};
    b->refs[id] = b->plan->n_slots++;
    return b->refs[id];
}

static sn_status place_outputs(sni_builder *b, const sni_node *n, int32_t step, bool dynamic) {
    for (int32_t i = 0; i < n->n_out; i++) {
        if (n->out[i] == SNI_NO_ID) continue;
        int32_t slot = add_slot(b, n->out[i], dynamic ? SNI_PLACE_DYNAMIC : SNI_PLACE_ARENA, step);
        const sni_type *t = &b->types[n->out[i]];
        b->plan->slots[slot].part = b->parts[n->out[i]];
        if (!dynamic)
            SN_TRY(
                sni_tensor_shape(&b->plan->slots[slot].tensor, t->dtype, t->rank, t->dims, b->err));
    }
    return SN_OK;
}

/* Lets a value that is nowhere yet be the contents that are known of it. */
static sn_status place_const(sni_builder *b, int32_t id) {
    sni_plan *p = b->plan;
    const sni_value *v = b->graph->values[id];
    const sni_datum *d = b->known[id];
    if (d) {
        p->known[p->n_known++] = b->known[id];
    } else if (v->constant) {
        d = sni_plan_weight(b, id);
    } else {
        return sni_fail(b->err, SN_INTERNAL, "value '%.*s' has no source", SNI_FMT(v->name));
    }
    b->refs[id] = sni_ref_of_const(p->n_consts);
    p->consts[p->n_consts++] = d;
    return SN_OK;
}

/* Gives a value that is nowhere yet a place, with its contents if it is a constant. */
static sn_status place_loaded(sni_builder *b, int32_t id) {
    const sni_datum *d;
    if (b->refs[id] == SNI_REF_NONE) SN_TRY(place_const(b, id));
    if (b->refs[id] >= 0 || b->known[id]) return SN_OK;
    return sni_plan_load_weight(b, id, &d);
}

/* True if a step runs on what its implementation has made of a constant input. */
static bool is_packed(const sni_builder *b, const sni_step *s, int32_t i) {
    const sni_value *v = b->graph->values[s->node->in[i]];
    return i < s->node->n_in && i < 32 && s->impl && s->state && (s->impl->packs >> i & 1) &&
           v->constant && !v->is_input;
}

/* Marks what a step reads as used by it. */
static sn_status use_inputs(sni_builder *b, const sni_step *s, int32_t step) {
    const sni_node *n = s->node;
    for (int32_t i = 0; i < n->n_in + n->n_captures; i++) {
        if (n->in[i] == SNI_NO_ID) continue;
        if (!is_packed(b, s, i))
            SN_TRY(place_loaded(b, n->in[i]));
        else if (b->refs[n->in[i]] == SNI_REF_NONE)
            SN_TRY(place_const(b, n->in[i]));
        if (b->refs[n->in[i]] >= 0) b->plan->slots[b->refs[n->in[i]]].last = step;
    }
    return SN_OK;
}

static sn_status choose(sni_builder *b, sni_step *s) {
    const sni_node *n = s->node;
    const sni_type **in = SNI_NEW_ARRAY(&b->scratch, const sni_type *, n->n_in);
    if (!in) return sni_fail_memory(b->err);
    for (int32_t i = 0; i < n->n_in; i++)
        if (n->in[i] != SNI_NO_ID) in[i] = &b->types[n->in[i]];
    sni_assignment made;
    SN_TRY(sni_plan_choose(b->common, n, in, &made, b->err));
    s->impl = made.impl;
    s->state = made.state;
    s->numerics = made.numerics;
    return SN_OK;
}

static void add_refs(sni_builder *b, const int32_t *values, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        b->plan->refs[b->plan->n_refs++] =
            values[i] == SNI_NO_ID ? SNI_REF_NONE : b->refs[values[i]];
}

static sn_status add_step(sni_builder *b, const sni_node *n) {
    sni_plan *p = b->plan;
    int32_t index = p->n_steps;
    sni_step *s = &p->steps[index];
    s->node = n;
    s->dynamic = !is_static(b, n);
    s->refs = p->n_refs;
    if (!s->dynamic) SN_TRY(choose(b, s));
    SN_TRY(use_inputs(b, s, index));
    SN_TRY(place_outputs(b, n, index, s->dynamic));
    add_refs(b, n->in, n->n_in + n->n_captures);
    add_refs(b, n->out, n->n_out);
    p->n_steps++;
    return SN_OK;
}

static sn_status add_node(sni_builder *b, const sni_node *n) {
    if (!n->op)
        return sni_fail(b->err, SN_UNSUPPORTED, "operator %.*s%s%.*s is not supported",
                        SNI_FMT(n->domain), n->domain.n ? "." : "", SNI_FMT(n->type));
    if (!(n->op->flags & SNI_OP_SUBGRAPHS)) {
        SN_TRY(infer(b, n));
        if (all_outputs_known(b, n)) return SN_OK;
        bool yes;
        SN_TRY(sni_plan_evaluable(b, n, &yes));
        if (yes) return sni_plan_evaluate(b, n);
    }
    return add_step(b, n);
}

/* ---- The whole ---- */

static sn_status set_inputs(sni_builder *b, const sni_signature *signature) {
    const sni_graph *g = b->graph;
    for (int32_t i = 0; i < signature->count; i++) {
        int32_t id = i < g->n_inputs ? g->inputs[i] : g->captures[i - g->n_inputs].value;
        b->plan->inputs[i] = SNI_REF_NONE;
        if (signature->types[i].kind == SN_KIND_NONE && g->values[id]->constant)
            continue; /* left to its default */
        b->plan->inputs[i] = add_slot(b, id, SNI_PLACE_INPUT, -1);
        if (!sni_type_copy(&b->types[id], &signature->types[i], &b->scratch))
            return sni_fail_memory(b->err);
    }
    return SN_OK;
}

/* Values that leave the graph live to the end; planned ones are made where they will stay. */
static sn_status set_outputs(sni_builder *b) {
    const sni_graph *g = b->graph;
    for (int32_t i = 0; i < g->n_outputs; i++) {
        int32_t id = g->outputs[i];
        SN_TRY(place_loaded(b, id));
        b->plan->outputs[i] = b->refs[id];
        if (b->refs[id] < 0) continue;
        sni_slot *s = &b->plan->slots[b->refs[id]];
        if (s->place == SNI_PLACE_ARENA) s->place = SNI_PLACE_OUTPUT;
        s->last = INT32_MAX;
    }
    return SN_OK;
}

static bool is_released(const sni_slot *s) {
    return s->place == SNI_PLACE_DYNAMIC && s->last != INT32_MAX;
}

/* Gives every step the list of dynamic slots that are done after it. */
static sn_status set_releases(sni_plan *p, sn_error *err) {
    for (int32_t i = 0; i < p->n_slots; i++)
        if (is_released(&p->slots[i])) p->steps[p->slots[i].last].n_release++;
    for (int32_t i = 0; i < p->n_steps; i++) {
        sni_step *s = &p->steps[i];
        s->release = SNI_NEW_ARRAY(&p->arena, int32_t, s->n_release);
        if (!s->release) return sni_fail_memory(err);
        s->n_release = 0;
    }
    for (int32_t i = 0; i < p->n_slots; i++) {
        if (!is_released(&p->slots[i])) continue;
        sni_step *s = &p->steps[p->slots[i].last];
        s->release[s->n_release++] = i;
    }
    return SN_OK;
}

/* Copies the tables, made for the most there could be, to the plan's arena in their true size. */
static sn_status keep_table(sni_builder *b, void **table, size_t count, size_t size) {
    void *kept = sni_arena_array(&b->plan->arena, count, size);
    if (!kept) return sni_fail_memory(b->err);
    if (count) memcpy(kept, *table, count * size);
    *table = kept;
    return SN_OK;
}

static sn_status keep_tables(sni_builder *b) {
    sni_plan *p = b->plan;
    void *slots = p->slots, *steps = p->steps, *refs = p->refs, *consts = p->consts;
    SN_TRY(keep_table(b, &slots, (size_t)p->n_slots, sizeof *p->slots));
    SN_TRY(keep_table(b, &steps, (size_t)p->n_steps, sizeof *p->steps));
    SN_TRY(keep_table(b, &refs, (size_t)p->n_refs, sizeof *p->refs));
    SN_TRY(keep_table(b, &consts, (size_t)p->n_consts, sizeof *p->consts));
    p->slots = slots;
    p->steps = steps;
    p->refs = refs;
    p->consts = consts;
    return SN_OK;
}

static sn_status make_tables(sni_builder *b) {
    sni_plan *p = b->plan;
    const sni_graph *g = b->graph;
    sni_arena *a = &b->scratch;
    size_t nodes = 0, refs = 0;
    for (const sni_node *n = sni_graph_first(g); n; n = sni_graph_next(g, n)) {
        nodes++;
        refs += (size_t)(n->n_in + n->n_captures + n->n_out);
    }
    p->slots = SNI_NEW_ARRAY(a, sni_slot, g->value_count);
    p->steps = SNI_NEW_ARRAY(a, sni_step, nodes);
    p->refs = SNI_NEW_ARRAY(a, sni_ref, refs);
    p->consts = SNI_NEW_ARRAY(a, const sni_datum *, g->value_count);
    p->known = calloc((size_t)g->value_count + 1, sizeof(*p->known));
    p->inputs = SNI_NEW_ARRAY(&p->arena, sni_ref, g->n_inputs + g->n_captures);
    p->outputs = SNI_NEW_ARRAY(&p->arena, sni_ref, g->n_outputs);
    b->types = SNI_NEW_ARRAY(a, sni_type, g->value_count);
    b->refs = SNI_NEW_ARRAY(a, sni_ref, g->value_count);
    b->parts = SNI_NEW_ARRAY(a, int64_t, g->value_count);
    b->known = calloc((size_t)g->value_count + 1, sizeof(*b->known));
    b->symbols = sni_symbols_new();
    if (!p->slots || !p->steps || !p->refs || !p->consts || !p->known || !p->inputs ||
        !p->outputs || !b->types || !b->refs || !b->parts || !b->known || !b->symbols)
        return sni_fail_memory(b->err);
    for (int32_t i = 0; i < g->value_count; i++) {
        b->refs[i] = SNI_REF_NONE;
        if (g->values[i] && g->values[i]->constant) b->types[i] = g->values[i]->type;
    }
    return SN_OK;
}

static sn_status build(sni_builder *b, const sni_signature *signature) {
    SN_TRY(make_tables(b));
    SN_TRY(set_inputs(b, signature));
    for (const sni_node *n = sni_graph_first(b->graph); n; n = sni_graph_next(b->graph, n)) {
        sn_status status = add_node(b, n);
        if (status != SN_OK)
            return sni_fail_context(b->err, status, "node '%.*s' (%.*s)",
                                    SNI_FMT(sni_node_label(b->graph, n)), SNI_FMT(n->type));
    }
    SN_TRY(set_outputs(b));
    SN_TRY(keep_tables(b));
    SN_TRY(set_releases(b->plan, b->err));
    return sni_plan_memory(b->plan, b->err);
}

static void free_datum(sni_datum *d) {
    sni_datum_clear(d);
    free(d);
}

/* Frees what was worked out on the way and is not part of the plan. */
static void free_builder(sni_builder *b) {
    for (int32_t i = 0; b->known && i < b->graph->value_count; i++)
        if (b->known[i] && !sni_ref_is_const(b->refs[i])) free_datum(b->known[i]);
    free(b->known);
    sni_symbols_free(b->symbols);
    sni_arena_free(&b->scratch);
}

static size_t plan_bytes(const sni_plan *p) {
    size_t bytes = sizeof *p + p->arena.used + (size_t)p->n_known * sizeof(sni_datum);
    for (int32_t i = 0; i < p->n_known; i++) bytes += sni_tensor_bytes(&p->known[i]->tensor);
    return bytes;
}

sn_status sni_plan_build(sni_common *common, const sni_signature *signature, sni_plan **out,
                         sn_error *err) {
    sni_builder b = {.graph = common->graph, .common = common, .err = err};
    b.plan = calloc(1, sizeof *b.plan);
    if (!b.plan) return sni_fail_memory(err);
    sni_arena_init(&b.plan->arena, 0);
    sni_arena_init(&b.scratch, 0);
    b.plan->graph = common->graph;
    sn_status status = build(&b, signature);
    free_builder(&b);
    if (status != SN_OK) {
        sni_plan_free(b.plan);
        return status;
    }
    b.plan->bytes = plan_bytes(b.plan);
    *out = b.plan;
    return SN_OK;
}

void sni_plan_free(sni_plan *plan) {
    if (!plan) return;
    for (int32_t i = 0; i < plan->n_known; i++) free_datum(plan->known[i]);
    free(plan->known);
    sni_arena_free(&plan->arena);
    free(plan);
}
