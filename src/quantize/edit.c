/* edit.c - small changes to a graph. */
#include "quantize/quantize.h"

#include "ops/core/op.h"

sn_status sni_q_add_node(sni_graph *g, int32_t before, const sni_qnode *wanted, int32_t *out,
                         sn_error *err) {
    sni_value *v;
    sni_node *n;
    SN_TRY(sni_graph_add_value(g, (sni_str){0}, &v, err));
    sni_new_node made = {
        sni_str_of(wanted->domain), sni_str_of(wanted->op), wanted->in, wanted->n_in, &v->id, 1};
    SN_TRY(sni_graph_add_node(g, before, &made, &n, err));
    n->op = sni_op_find(n->domain, n->type);
    if (!n->op) return sni_fail(err, SN_INTERNAL, "there is no operator %s", wanted->op);
    n->version = sni_op_version(n->op);
    for (int i = 0; i < wanted->n_attrs; i++)
        SN_TRY(sni_node_set_attr(g, n, &wanted->attrs[i], err));
    SN_TRY(sni_node_bind(g, n, err));
    *out = v->id;
    return sni_infer_node(g, n, err);
}

sn_status sni_q_add_const(sni_graph *g, sni_const *c, int32_t *out, sn_error *err) {
    sni_value *v;
    SN_TRY(sni_graph_add_const(g, (sni_str){0}, c, &v, err));
    *out = v->id;
    return SN_OK;
}

sn_status sni_q_add_floats(sni_graph *g, int rank, const int64_t *dims, const float *v,
                           int32_t *out, sn_error *err) {
    sni_const *c;
    SN_TRY(sni_const_new(g->store, SN_FLOAT32, rank, dims, &c, err));
    if (c->tensor.count) memcpy(c->tensor.data, v, sni_tensor_bytes(&c->tensor));
    return sni_q_add_const(g, c, out, err);
}

sn_status sni_q_add_zero(sni_graph *g, sn_dtype dtype, int32_t zero, int32_t *out, sn_error *err) {
    sni_const *c;
    SN_TRY(sni_const_new(g->store, dtype, 0, NULL, &c, err));
    *(uint8_t *)c->tensor.data = (uint8_t)zero;
    return sni_q_add_const(g, c, out, err);
}

int32_t sni_q_after(const sni_graph *g, int32_t id) {
    return id < 0 ? g->first : g->nodes[id]->next;
}

sn_status sni_q_replace_node(sni_graph *g, sni_node *n, int32_t to, sn_error *err) {
    sni_str name = g->values[n->out[0]]->name;
    SN_TRY(sni_graph_replace_uses(g, n->out[0], to, err));
    sni_graph_remove_node(g, n);
    g->values[to]->name = name;
    return SN_OK;
}
