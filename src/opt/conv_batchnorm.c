/* conv_batchnorm.c - BatchNormalization after Conv becomes part of the convolution's weights:
 * with k = scale / sqrt(var + epsilon) per channel, W' = W * k and B' = (B - mean) * k + bias. */
#include "opt/opt.h"

#include <math.h>

enum { SCALE = 1, BIAS = 2, MEAN = 3, VAR = 4 };

static const sni_const *constant_of(const sni_graph *g, int32_t id) {
    const sni_value *v = sni_graph_value(g, id);
    return v && !v->is_input ? v->constant : NULL;
}

/* A 1-D float32 constant of `count` elements. */
static bool is_channel_vector(const sni_graph *g, int32_t id, int64_t count) {
    const sni_const *c = constant_of(g, id);
    return c && c->tensor.dtype == SN_FLOAT32 && c->tensor.rank == 1 && c->tensor.count == count;
}

/* The Conv that feeds a BatchNormalization and can take it in; NULL if there is none. */
static sni_node *matching_conv(const sni_graph *g, const sni_node *bn) {
    if (bn->domain.n || !sni_str_is(bn->type, "BatchNormalization") || bn->n_in < 5) return NULL;
    const sni_attr *training = sni_node_attr(bn, "training_mode");
    if (training && training->u.i != 0) return NULL;
    const sni_value *x = sni_graph_value(g, bn->in[0]);
    if (!x || x->use_count != 1 || bn->n_out != 1) return NULL;
    sni_node *conv = sni_value_producer(g, x);
    if (!conv || conv->domain.n || !sni_str_is(conv->type, "Conv")) return NULL;
    const sni_const *w = constant_of(g, conv->in[1]);
    if (!w || w->tensor.dtype != SN_FLOAT32 || w->tensor.rank < 3) return NULL;
    int64_t channels = w->tensor.dims[0];
    for (int i = SCALE; i <= VAR; i++)
        if (!is_channel_vector(g, bn->in[i], channels)) return NULL;
    if (conv->n_in > 2 && conv->in[2] != SNI_NO_ID && !is_channel_vector(g, conv->in[2], channels))
        return NULL;
    return conv;
}

static sn_status load(const sni_graph *g, int32_t id, const float **out, sn_error *err) {
    const sni_tensor *t;
    *out = NULL;
    if (id == SNI_NO_ID) return SN_OK;
    SN_TRY(sni_const_load(g->values[id]->constant, &t, err));
    *out = t->data;
    return SN_OK;
}

/* Computes W' and B' into new constants. */
static sn_status fold_weights(sni_rewrite *r, const sni_node *conv, const sni_node *bn,
                              sni_const **w_out, sni_const **b_out) {
    const sni_graph *g = r->graph;
    const float *w, *b = NULL, *scale, *bias, *mean, *var;
    SN_TRY(load(g, conv->in[1], &w, r->err));
    if (conv->n_in > 2) SN_TRY(load(g, conv->in[2], &b, r->err));
    SN_TRY(load(g, bn->in[SCALE], &scale, r->err));
    SN_TRY(load(g, bn->in[BIAS], &bias, r->err));
    SN_TRY(load(g, bn->in[MEAN], &mean, r->err));
    SN_TRY(load(g, bn->in[VAR], &var, r->err));
    const sni_tensor *old = &g->values[conv->in[1]]->constant->tensor;
    const sni_attr *epsilon = sni_node_attr(bn, "epsilon");
    double eps = epsilon ? (double)epsilon->u.f : (double)1e-5f;
    int64_t channels = old->dims[0], per_channel = channels ? old->count / channels : 0;
    SN_TRY(sni_const_new(r->store, SN_FLOAT32, old->rank, old->dims, w_out, r->err));
    SN_TRY(sni_const_new(r->store, SN_FLOAT32, 1, &channels, b_out, r->err));
    float *new_w = (*w_out)->tensor.data, *new_b = (*b_out)->tensor.data;
    for (int64_t c = 0; c < channels; c++) {
        double k = (double)scale[c] / sqrt((double)var[c] + eps);
        for (int64_t i = 0; i < per_channel; i++)
            new_w[c * per_channel + i] = (float)((double)w[c * per_channel + i] * k);
        new_b[c] = (float)(((b ? (double)b[c] : 0.0) - (double)mean[c]) * k + (double)bias[c]);
    }
    return SN_OK;
}

static sn_status merge(sni_rewrite *r, sni_node *conv, sni_node *bn) {
    sni_graph *g = r->graph;
    sni_const *w, *b;
    sni_value *w_value, *b_value;
    SN_TRY(fold_weights(r, conv, bn, &w, &b));
    SN_TRY(sni_graph_add_const(g, g->values[conv->in[1]]->name, w, &w_value, r->err));
    SN_TRY(sni_graph_add_const(g, (sni_str){0}, b, &b_value, r->err));
    SN_TRY(sni_node_resize_inputs(g, conv, 3, r->err));
    SN_TRY(sni_node_set_input(g, conv, 1, w_value->id, r->err));
    SN_TRY(sni_node_set_input(g, conv, 2, b_value->id, r->err));
    SN_TRY(sni_graph_replace_uses(g, bn->out[0], conv->out[0], r->err));
    sni_graph_remove_node(g, bn);
    r->count++;
    return SN_OK;
}

sn_status sni_pass_conv_batchnorm(sni_rewrite *r) {
    for (sni_node *n = sni_graph_first(r->graph), *next; n; n = next) {
        next = sni_graph_next(r->graph, n);
        sni_node *conv = n->op ? matching_conv(r->graph, n) : NULL;
        if (conv) SN_TRY(merge(r, conv, n));
    }
    return SN_OK;
}
