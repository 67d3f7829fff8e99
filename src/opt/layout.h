/* layout.h - blocked layout over regions of a graph: what the pass and its handlers share.
 *
 * Every value of the graph may have a blocked variant: another value, or a list of channels of
 * other blocked values, which becomes a value (a copy) when somebody needs it. So Concat, Split and
 * channel shuffles cost nothing by themselves. Nodes whose results have a blocked variant are dead;
 * when all nodes have been looked at they are removed, and what plain nodes still use of them is
 * made plain again. */
#ifndef SNI_OPT_LAYOUT_H
#define SNI_OPT_LAYOUT_H

#include "opt/opt.h"
#include "ops/sinter/blocked.h"

typedef struct sni_channel {
    int32_t value;   /* a blocked value */
    int32_t channel; /* of it */
} sni_channel;

typedef struct sni_layout_variant {
    int32_t real;       /* the blocked value; SNI_NO_ID: none so far */
    sni_channel *parts; /* one per channel; NULL: none */
} sni_layout_variant;

typedef struct sni_layout_pass {
    sni_rewrite *r;
    sni_graph *g;
    sni_arena temp; /* until the pass ends */
    int64_t block;
    sni_layout_variant *variants; /* by value id; values that the pass makes have none */
    int32_t n_values;             /* of them */
    bool *dead;                   /* by node id */
    int32_t n_nodes;
    int64_t *channels; /* of blocked values, by value id; 0: not one */
    int32_t n_channels;
} sni_layout_pass;

/* Tries to give the outputs of a node blocked variants; leaves the node alone if it cannot. */
typedef sn_status (*sni_layout_fn)(sni_layout_pass *l, sni_node *n);

/* The handler of an operator; NULL: it takes plain tensors only. */
sni_layout_fn sni_layout_handler(const sni_node *n);
/* Handlers whose results are lists of channels of their inputs: nothing is computed. */
sn_status sni_layout_concat(sni_layout_pass *l, sni_node *n);
sn_status sni_layout_split(sni_layout_pass *l, sni_node *n);
sn_status sni_layout_slice(sni_layout_pass *l, sni_node *n);
sn_status sni_layout_shuffle(sni_layout_pass *l, sni_node *n);
/* A depthwise convolution of a shuffled value: that of the value itself, shuffled. *done tells that
 * it was one. */
sn_status sni_layout_shuffled_conv(sni_layout_pass *l, sni_node *n, bool *done);
/* A transposed convolution, as one convolution for each phase of its strides or for all of them. */
sn_status sni_layout_conv_transpose(sni_layout_pass *l, sni_node *n);

/* ---- layout.c ---- */

static inline bool sni_layout_has(const sni_layout_pass *l, int32_t id) {
    return id >= 0 && id < l->n_values &&
           (l->variants[id].real != SNI_NO_ID || l->variants[id].parts);
}

/* Channels of a float32 value of rank 4, or 3: a line; 0 if it is none or they are not known. */
int64_t sni_layout_channels(const sni_layout_pass *l, int32_t id);

/* True for a line (N,C,W): its blocked variant is that of a picture one row high. */
static inline bool sni_layout_is_line(const sni_layout_pass *l, int32_t id) {
    return l->g->values[id]->type.rank == 3;
}

/* Channel `channel` of a value that has a variant. */
sni_channel sni_layout_part(const sni_layout_pass *l, int32_t id, int64_t channel);

/* A value that the pass has made is blocked, with so many channels. */
void sni_layout_set_channels(sni_layout_pass *l, int32_t blocked, int64_t channels);

/* The blocked variant of a value, made before `before` if there is none yet. */
sn_status sni_layout_need(sni_layout_pass *l, int32_t id, const sni_node *before, int32_t *out);

/* Contents of a constant that no caller can override; NULL: not one. */
sni_const *sni_layout_const(const sni_layout_pass *l, int32_t id);
/* The integers of a list, where inference knows them all. */
bool sni_layout_ints(const sni_layout_pass *l, int32_t id, const int64_t **v, int64_t *count);

/* A new node before `before` with one output, attributes copied from `like` (may be NULL). */
typedef struct sni_layout_node {
    const char *domain, *type;
    const int32_t *in;
    int32_t n_in;
    const sni_node *like;
    const sni_attr *attrs; /* after those of `like` */
    int32_t n_attrs;
} sni_layout_node;
sn_status sni_layout_emit(sni_layout_pass *l, const sni_node *before, const sni_layout_node *node,
                          int32_t *out);

/* A list attribute in the graph's store, and a constant list. */
sn_status sni_layout_list(sni_layout_pass *l, const char *name, const int64_t *v, size_t count,
                          sni_attr *out);
sn_status sni_layout_const_ints(sni_layout_pass *l, const int64_t *v, int64_t count, int32_t *out);
/* A constant whose contents are written to *data. */
sn_status sni_layout_const_floats(sni_layout_pass *l, int rank, const int64_t *dims, float **data,
                                  int32_t *out);
/* A constant (1, blocks, 1, 1, block) of `channels` numbers and then `tail`. */
sn_status sni_layout_const_channels(sni_layout_pass *l, const float *v, int64_t channels,
                                    float tail, int32_t *out);

/* ---- layout_ops.c ---- */

/* True for a constant with one number for each channel of values of this rank, such as (C,1,1). */
bool sni_layout_is_channels(const sni_layout_pass *l, int32_t id, int64_t channels, int rank);
/* Such a constant as a vector. */
sn_status sni_layout_slopes(sni_layout_pass *l, int32_t id, int64_t channels, int32_t *out);

/* Output 0 of a node has become the blocked value `real`. */
void sni_layout_done(sni_layout_pass *l, sni_node *n, int32_t real);

static inline bool sni_layout_given(const sni_node *n, int32_t input) {
    return input < n->n_in && n->in[input] != SNI_NO_ID;
}

/* ---- layout_picture.c ---- */

enum { SNI_LAYOUT_LISTS = 4 }; /* attributes with a number for each spatial axis */

/* Attributes of a node that have a number for each spatial axis (twice: of begins and ends), as
 * they are for its blocked variant. A line has one more axis before its own; where blocks count as
 * an axis (`pools`) there is one behind. Nothing is done along those. */
sn_status sni_layout_longer_lists(sni_layout_pass *l, const sni_node *n, bool pools,
                                  sni_attr out[SNI_LAYOUT_LISTS], int32_t *count);

/* Handlers. */
sn_status sni_layout_pool(sni_layout_pass *l, sni_node *n);
sn_status sni_layout_global_pool(sni_layout_pass *l, sni_node *n);
sn_status sni_layout_reduce(sni_layout_pass *l,
                            sni_node *n); /* ReduceMean, ReduceMax over it all */
sn_status sni_layout_resize(sni_layout_pass *l, sni_node *n);
sn_status sni_layout_pad(sni_layout_pass *l, sni_node *n);

#endif
