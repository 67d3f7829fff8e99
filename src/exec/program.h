/* program.h - a graph that can be run in any shape: its plans by input shapes, frames to run them
 * in, and the programs of its subgraphs. */
#ifndef SNI_EXEC_PROGRAM_H
#define SNI_EXEC_PROGRAM_H

#include "plan/plan.h"

#include <pthread.h>

typedef struct sni_program sni_program;
typedef struct sni_planned sni_planned;

/* The memory of one run of one plan. */
typedef struct sni_frame {
    sni_planned *planned;
    sni_datum *slots;     /* by slot; ARENA and CONST ones are bound once and for all */
    sni_datum **pointers; /* one per sni_plan.pointers; NULL: left out */
    sni_buffer *arena;
    sni_buffer *scratch;    /* kernels' working memory, kept from step to step and run to run */
    size_t scratch_wanted;  /* most bytes that one step has asked for so far */
    struct sni_frame *next; /* while it is idle */
} sni_frame;

/* Builds programs for a graph and its subgraphs. The graph must outlive them. Owned. */
sn_status sni_program_new(const sni_graph *g, sni_program **out, sn_error *err);
void sni_program_free(sni_program *program);

const sni_graph *sni_program_graph(const sni_program *program);

/* The program of subgraph `index` of a node of this program's graph. */
sni_program *sni_program_child(const sni_program *program, const sni_node *node, int32_t index);

/* A frame of the plan for the given input types, planned now if they are new. Its arena is charged
 * to the budget before it is allocated. Thread-safe. */
sn_status sni_program_frame(sni_program *program, const sni_signature *signature,
                            sni_budget *budget, sni_frame **out, sn_error *err);
const sni_plan *sni_frame_plan(const sni_frame *frame);

/* Hands a frame back; DYNAMIC and OUTPUT slots must hold nothing any more. Thread-safe. */
void sni_program_return(sni_program *program, sni_frame *frame, sni_budget *budget);

/* Calls fn with the plan that was used last; false if there is none yet. */
bool sni_program_last_plan(sni_program *program, sn_status (*fn)(void *ctx, const sni_plan *plan),
                           void *ctx, sn_status *status);

#endif
