/* plan.h - a graph made ready to run for given input shapes: a flat list of steps over slots, with
 * every shape that can be known worked out and every tensor whose size is known placed in one
 * arena. Immutable once built; any number of runs may use it at once, each with a frame of its own
 * (sni_frame in exec/program.h).
 *
 * A slot is a value of the graph that is made or bound during a run; slots are numbered densely.
 * What steps point to is a slot or a value whose contents are known (sni_ref). */
#ifndef SNI_PLAN_PLAN_H
#define SNI_PLAN_PLAN_H

#include "ep/ep.h"

typedef enum sni_place {
    SNI_PLACE_INPUT,  /* bound by the caller: a graph input or capture */
    SNI_PLACE_ARENA,  /* at `offset` of the frame's arena */
    SNI_PLACE_OUTPUT, /* of known shape, in memory that becomes a result */
    SNI_PLACE_DYNAMIC /* size known at run time only: memory of its own, freed after its last use */
} sni_place;

typedef struct sni_slot {
    sni_place place;
    int32_t value;       /* id in the graph */
    sni_tensor tensor;   /* ARENA, OUTPUT: type and shape */
    size_t offset;       /* ARENA */
    int32_t first, last; /* steps that make it and use it last; INT32_MAX: to the end */
    int64_t part;        /* it is the elements of its step's input 0 from here on; -1: it is not */
} sni_slot;

/* What a step reads or writes: a slot (0 or more), known contents (sni_ref_const), or nothing. */
typedef int32_t sni_ref;
#define SNI_REF_NONE (-1)
static inline sni_ref sni_ref_of_const(int32_t index) {
    return -2 - index;
}
static inline bool sni_ref_is_const(sni_ref r) {
    return r <= -2;
}
static inline int32_t sni_ref_const(sni_ref r) { /* index into sni_plan.consts */
    return -2 - r;
}

typedef struct sni_step {
    const sni_node *node;
    const sni_impl *impl; /* who runs it; NULL: the reference kernel */
    const void *state;    /* what the implementation prepared; shared by all plans */
    uint32_t numerics;    /* families of numerics that it uses for these shapes */
    bool view;            /* all its results stand in memory already: nothing to run */
    bool dynamic;         /* outputs get shapes and memory at run time; so does `impl` */
    int32_t refs;         /* start of its part of sni_plan.refs: inputs, captures, outputs */
    int32_t *release;     /* DYNAMIC slots that nobody needs after it */
    int32_t n_release;
} sni_step;

typedef struct sni_plan {
    sni_arena arena; /* everything below */
    const sni_graph *graph;
    sni_slot *slots;
    int32_t n_slots;
    sni_step *steps;
    int32_t n_steps;
    sni_ref *refs; /* of all steps */
    int32_t n_refs;
    sni_ref *inputs;          /* by graph input and then capture: a slot, or NONE where a default
                                 stands in */
    sni_ref *outputs;         /* by graph output */
    const sni_datum **consts; /* contents that steps and outputs refer to */
    int32_t n_consts;
    sni_datum **known; /* those of them that the plan worked out, owned */
    int32_t n_known;
    size_t arena_bytes; /* of a frame */
    size_t lower_bound; /* max bytes of planned tensors that are alive at once */
    size_t bytes;       /* of the plan itself, about */
} sni_plan;

/* The references of a step. */
static inline sni_ref *sni_step_inputs(const sni_plan *p, const sni_step *s) {
    return p->refs + s->refs;
}
static inline sni_ref *sni_step_outputs(const sni_plan *p, const sni_step *s) {
    return p->refs + s->refs + s->node->n_in + s->node->n_captures;
}

/* What a plan is made for: kinds, element types and shapes of the graph's inputs and then its
 * captures. An input that is left to its default has kind NONE. */
typedef struct sni_signature {
    const sni_type *types;
    int32_t count;
} sni_signature;

/* What one implementation made of a node's constants. */
typedef struct sni_prepared {
    const sni_impl *impl;
    uint32_t variant; /* sni_impl.variant */
    void *state;
    sni_pack pack; /* the data that the state points to */
    struct sni_prepared *next;
} sni_prepared;

/* Packed data that a compiled model brings: keys and blobs side by side, by rising graph and node,
 * those of one implementation in a row, in the order in which they were asked for. */
typedef struct sni_finished_key {
    uint32_t graph; /* number of the graph, the main one 0, subgraphs in order of their nodes */
    uint32_t node;  /* position in the graph's list of nodes */
    char impl[SNI_IMPL_NAME]; /* sni_candidate_name() */
} sni_finished_key;

typedef struct sni_finished {
    const sni_finished_key *keys;
    const sni_packed_blob *blobs;
    size_t count;
    const unsigned char *data; /* what the blobs are parts of */
    size_t bytes;
} sni_finished;

/* How a session chooses who runs its nodes. */
typedef struct sni_choosing {
    uint32_t numerics;             /* families that are allowed */
    const sni_finished_key *tuned; /* choices by measurement */
    size_t n_tuned;
    /* Told of every choice, with the graph's number and the node's position; NULL: nobody is. */
    void (*on_choice)(void *ctx, uint32_t graph, uint32_t node, const sni_choice *c);
    void *on_choice_ctx;
} sni_choosing;

/* What all plans of a graph share. Guarded by the owner's lock. */
typedef struct sni_common {
    const sni_graph *graph;
    sni_prepared **prepared;      /* by node id: a list, since shapes may decide who runs a node */
    sni_datum *weights;           /* by value id: contents of constants, as far as used; borrowed */
    sni_budget *packed;           /* charged for packed data; NULL: no limit */
    sni_slab slab;                /* where packed data stands */
    const sni_finished *finished; /* NULL: none */
    const sni_choosing *choosing;
    uint32_t number;       /* of the graph, as in sni_finished_key */
    uint32_t *positions;   /* by node id: in the list of nodes */
    uint64_t matrix_bytes; /* of all float32 matrices that are constants */
} sni_common;

/* The graph, `choosing` and `packed` must outlive it. sni_common_free() in any case. */
sn_status sni_common_init(sni_common *common, const sni_graph *g, const sni_choosing *choosing,
                          sni_budget *packed, sn_error *err);
void sni_common_free(sni_common *common); /* after the last plan of the graph */

/* Builds a plan for those inputs; the caller frees it. With the lock held that guards `common`: it
 * may add to what is prepared, which later plans share. Fails where shapes do not fit an operator.
 */
sn_status sni_plan_build(sni_common *common, const sni_signature *signature, sni_plan **out,
                         sn_error *err);
void sni_plan_free(sni_plan *plan);

/* Who runs a node. */
typedef struct sni_assignment {
    const sni_impl *impl; /* NULL: the reference kernel */
    const void *state;
    uint32_t numerics;
} sni_assignment;

/* partition.c: who runs a node whose inputs have the given types (NULL: left out), and what they
 * prepared for it, which stays as long as `common`. With the same lock held. */
sn_status sni_plan_choose(sni_common *common, const sni_node *n, const sni_type *const *in,
                          sni_assignment *out, sn_error *err);

/* memory.c: gives every planned tensor its offset, sharing memory in place and over time, and marks
 * the steps that are views. */
sn_status sni_plan_memory(sni_plan *plan, sn_error *err);

/* Prints steps, slots and memory as text, for people: the format is not fixed. */
sn_status sni_plan_write(const sni_plan *plan, sn_write_fn write, void *ctx, sn_error *err);

#endif
