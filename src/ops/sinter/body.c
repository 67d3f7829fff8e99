/* body.c - types and shapes of a body: inference calls its nodes' operators one after the other. */
#include "ops/sinter/body.h"

/* What is known of the body's values, by id. */
typedef struct facts {
    sni_type *types;
    const sni_tensor **known;
    const sni_dim **dims;
    int32_t *dims_count;
} facts;

/* A member of an operator that this build does not know: types as declared, sizes where they are
 * numbers. */
static void take_declared(const sni_graph *g, const sni_node *n, facts *f) {
    for (int32_t i = 0; i < n->n_out; i++) {
        const sni_value *v = sni_graph_value(g, n->out[i]);
        if (!v) continue;
        sni_type *t = &f->types[v->id];
        *t = v->type;
        for (int axis = 0; t->has_shape && axis < t->rank; axis++)
            if (!sni_dim_known(v->type.dims[axis])) t->has_shape = false;
    }
}

/* Arrays of one member's inference. */
static sn_status make_arrays(const sni_infer *c, const sni_node *n, sni_infer *m) {
    m->in = SNI_NEW_ARRAY(c->arena, const sni_type *, n->n_in);
    m->known = SNI_NEW_ARRAY(c->arena, const sni_tensor *, n->n_in);
    m->constants = SNI_NEW_ARRAY(c->arena, sni_const *, n->n_in);
    m->in_dims = SNI_NEW_ARRAY(c->arena, const sni_dim *, n->n_in);
    m->in_dims_count = SNI_NEW_ARRAY(c->arena, int32_t, n->n_in);
    m->out = SNI_NEW_ARRAY(c->arena, sni_type, n->n_out);
    m->out_dims = SNI_NEW_ARRAY(c->arena, const sni_dim *, n->n_out);
    m->out_dims_count = SNI_NEW_ARRAY(c->arena, int32_t, n->n_out);
    bool all = m->in && m->known && m->constants && m->in_dims && m->in_dims_count && m->out &&
               m->out_dims && m->out_dims_count;
    return all ? SN_OK : sni_fail_memory(c->err);
}

static void set_inputs(const sni_graph *g, const sni_node *n, const facts *f, sni_infer *m) {
    const sni_type **in = (const sni_type **)m->in;
    const sni_tensor **known = (const sni_tensor **)m->known;
    sni_const **constants = (sni_const **)m->constants;
    const sni_dim **dims = (const sni_dim **)m->in_dims;
    int32_t *counts = (int32_t *)m->in_dims_count;
    for (int32_t i = 0; i < n->n_in; i++) {
        const sni_value *v = sni_graph_value(g, n->in[i]);
        if (!v) continue;
        in[i] = &f->types[v->id];
        known[i] = f->known[v->id];
        constants[i] = v->is_input ? NULL : v->constant;
        dims[i] = f->dims[v->id];
        counts[i] = f->dims_count[v->id];
    }
}

static sn_status infer_member(const sni_infer *c, const sni_graph *g, const sni_node *n,
                              const char *what, facts *f) {
    sni_infer m = {.op = n->op,
                   .node = n,
                   .params = n->params,
                   .n_in = n->n_in,
                   .n_out = n->n_out,
                   .symbols = c->symbols,
                   .arena = c->arena,
                   .err = c->err};
    SN_TRY(make_arrays(c, n, &m));
    set_inputs(g, n, f, &m);
    if (!c->known) m.known = NULL;
    sn_status status = sni_infer_call(&m);
    if (status != SN_OK)
        return sni_fail_context(c->err, status, "%.*s of the %s", SNI_FMT(n->type), what);
    for (int32_t i = 0; i < n->n_out; i++) {
        if (n->out[i] == SNI_NO_ID) continue;
        f->types[n->out[i]] = m.out[i];
        f->dims[n->out[i]] = m.out_dims[i];
        f->dims_count[n->out[i]] = m.out_dims[i] ? m.out_dims_count[i] : 0;
    }
    return SN_OK;
}

sn_status sni_infer_body(const sni_infer *c, const sni_graph *body, const char *what,
                         sni_type **out) {
    facts f = {.types = SNI_NEW_ARRAY(c->arena, sni_type, body->value_count),
               .known = SNI_NEW_ARRAY(c->arena, const sni_tensor *, body->value_count),
               .dims = SNI_NEW_ARRAY(c->arena, const sni_dim *, body->value_count),
               .dims_count = SNI_NEW_ARRAY(c->arena, int32_t, body->value_count)};
    if (!f.types || !f.known || !f.dims || !f.dims_count) return sni_fail_memory(c->err);
    for (int32_t i = 0; i < body->value_count; i++)
        if (body->values[i] && body->values[i]->constant) f.types[i] = body->values[i]->type;
    for (int i = 0; i < c->n_in; i++) {
        int32_t id = body->inputs[i];
        if (c->in[i]) f.types[id] = *c->in[i];
        f.known[id] = c->known ? c->known[i] : NULL;
        if (!c->in_dims) continue;
        f.dims[id] = c->in_dims[i];
        f.dims_count[id] = c->in_dims_count[i];
    }
    for (const sni_node *n = sni_graph_first(body); n; n = sni_graph_next(body, n)) {
        if (n->op)
            SN_TRY(infer_member(c, body, n, what, &f));
        else
            take_declared(body, n, &f);
    }
    *out = f.types;
    return SN_OK;
}
