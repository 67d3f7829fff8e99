/* plan.h - a graph made ready to run for given input shapes: a flat list of steps over slots, with
 * every shape that can be known worked out and every tensor whose size is known placed in one
 * arena. Immutable once built; any number of runs may use it at once, each with a frame of its own
 * (exec/frame.h).
 *
 * A slot is a value of the graph: slot i is value i. */
#ifndef SNI_PLAN_PLAN_H
#define SNI_PLAN_PLAN_H

#include "ep/ep.h"

typedef enum sni_place {
    SNI_PLACE_UNUSED, /* not part of the plan */
    SNI_PLACE_INPUT,  /* bound by the caller: a graph input or capture */
    SNI_PLACE_CONST,  /* contents known: a weight, or worked out from shapes */
    SNI_PLACE_ARENA,  /* at `offset` of the frame's arena */
    SNI_PLACE_OUTPUT, /* of known shape, in memory that becomes a result */
    SNI_PLACE_DYNAMIC /* size known at run time only: memory of its own, freed after its last use */
} sni_place;

typedef struct sni_slot {
    sni_place place;
    sni_tensor tensor;   /* CONST, ARENA, OUTPUT: type and shape; CONST: data too */
    size_t offset;       /* ARENA */
    int32_t first, last; /* steps that make it and use it last; INT32_MAX: to the end */
} sni_slot;

typedef struct sni_step {
    const sni_node *node;
    const sni_impl *impl; /* who runs it; NULL: the reference kernel */
    const void *state;    /* what the implementation prepared; shared by all plans */
    bool dynamic;         /* outputs get shapes and memory at run time */
    int32_t pointers;     /* start of its slots in sni_plan.pointers: inputs, captures, outputs */
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
    int32_t *pointers; /* slot ids of all steps; SNI_NO_ID: left out */
    int32_t n_pointers;
    size_t arena_bytes; /* of a frame */
    size_t lower_bound; /* most bytes of planned tensors that are alive at once */
    sni_datum *known;   /* contents that the plan worked out, owned */
    int32_t n_known, known_capacity;
} sni_plan;

/* What a plan is made for: kinds, element types and shapes of the graph's inputs and then its
 * captures. An input that is left to its default has kind NONE. */
typedef struct sni_signature {
    const sni_type *types;
    int32_t count;
} sni_signature;

/* What implementations made of a node's constants; one per node of a graph, for all its plans. */
typedef struct sni_prepared {
    const sni_impl *impl; /* NULL: nothing yet */
    void *state;
    sni_pack pack; /* the data that the state points to */
} sni_prepared;

/* Frees states and packed data, not the array. */
void sni_prepared_free(sni_prepared *prepared, int32_t count);

/* Builds a plan. `prepared` has an entry for every node id of the graph. Owned. */
sn_status sni_plan_build(const sni_graph *g, const sni_signature *signature, sni_prepared *prepared,
                         sni_plan **out, sn_error *err);
void sni_plan_free(sni_plan *plan);

/* partition.c: sets who runs a step. `types` are by value id. */
sn_status sni_plan_choose(const sni_graph *g, const sni_type *types, sni_prepared *prepared,
                          sni_step *step, sn_error *err);

/* memory.c: gives every planned tensor its offset, sharing memory in place and over time. */
sn_status sni_plan_memory(sni_plan *plan, sn_error *err);

/* Prints steps, slots and memory as text. */
sn_status sni_plan_write(const sni_plan *plan, sn_write_fn write, void *ctx, sn_error *err);

#endif
