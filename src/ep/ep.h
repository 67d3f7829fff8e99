/* ep.h - implementations: ways to run a node that beat its operator's reference kernel where they
 * apply. The planner asks for one; what it makes of a node's constants is shared by all plans. */
#ifndef SNI_EP_EP_H
#define SNI_EP_EP_H

#include "ops/op.h"

/* What an implementation can know of a node when it is chosen. Shapes may be partly unknown. */
typedef struct sni_choice {
    const sni_node *node;
    const void *params;
    int n_in;
    const sni_type *const *in;   /* NULL: left out */
    sni_const *const *constants; /* NULL entries: not part of the model */
} sni_choice;

typedef struct sni_impl {
    const char *name; /* for plans and profiles */
    const char *op;
    const char *domain; /* NULL: ai.onnx */
    /* Decides by types, attributes and constants; `run` must then take every shape. */
    bool (*accepts)(const sni_choice *c);
    /* Once per node and session: what follows from constants alone, such as packed weights. */
    sn_status (*prepare)(const sni_choice *c, void **state, sn_error *err); /* NULL: nothing */
    void (*release)(void *state);
    sn_status (*run)(sni_kernel *k); /* k->state is what prepare made */
} sni_impl;

/* The implementation for a node; NULL: its reference kernel. */
const sni_impl *sni_ep_find(const sni_choice *c);

static inline bool sni_choice_is(const sni_choice *c, int i, sn_dtype dtype) {
    return i < c->n_in && c->in[i] && c->in[i]->kind == SN_KIND_TENSOR && c->in[i]->dtype == dtype;
}

static inline bool sni_choice_given(const sni_choice *c, int i) {
    return i < c->n_in && c->in[i];
}

/* Rank of an input; -1 if not known. */
static inline int sni_choice_rank(const sni_choice *c, int i) {
    return i < c->n_in && c->in[i] && c->in[i]->has_shape ? c->in[i]->rank : -1;
}

#endif
