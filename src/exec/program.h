/* program.h - a graph that can be run in any shape: its plans by input shapes, frames to run them
 * in, and the programs of its subgraphs. */
#ifndef SNI_EXEC_PROGRAM_H
#define SNI_EXEC_PROGRAM_H

#include "exec/pool.h"
#include "plan/plan.h"

typedef struct sni_program sni_program;
typedef struct sni_planned sni_planned;

/* What one run of one plan works in. */
typedef struct sni_frame {
    sni_planned *planned;
    sni_datum *slots;       /* by slot; ARENA ones are bound while the workspace's arena stays */
    const sni_datum **refs; /* one per sni_plan.refs; NULL: left out */
    sni_workspace *workspace;
    const unsigned char *bound; /* the arena that the slots point into */
    struct sni_frame *next;     /* while it is idle */
} sni_frame;

/* Builds programs for a graph and its subgraphs; no plan is made yet. The graph, which must not
 * change any more, and the pool must outlive them. The caller frees the program. */
sn_status sni_program_new(const sni_graph *g, sni_pool *pool, sni_program **out, sn_error *err);
void sni_program_free(sni_program *program); /* when nothing runs any more; NULL is fine */

const sni_graph *sni_program_graph(const sni_program *program);

/* The program of subgraph `index` of a node of this program's graph. */
sni_program *sni_program_child(const sni_program *program, const sni_node *node, int32_t index);

/* A frame of the plan for the given input types, planned now if they are new. Its arena is charged
 * to the budget before it is allocated. Thread-safe. */
sn_status sni_program_frame(sni_program *program, const sni_signature *signature,
                            sni_budget *budget, sni_frame **out, sn_error *err);
/* The plan stays as long as the frame is out, even if it is dropped from the cache meanwhile. */
const sni_plan *sni_frame_plan(const sni_frame *frame);

/* What a reference of the frame's plan stands for; NULL: nothing. */
const sni_datum *sni_frame_at(const sni_frame *frame, sni_ref r);

/* Hands a frame back; DYNAMIC and OUTPUT slots must hold nothing any more. Thread-safe. */
void sni_program_return(sni_program *program, sni_frame *frame, sni_budget *budget);

/* Who runs a node on inputs of these types, for steps whose types are known at run time only.
 * Thread-safe. */
sn_status sni_program_choose(sni_program *program, const sni_node *n, const sni_type *const *in,
                             sni_assignment *out, sn_error *err);

sni_pool *sni_program_pool(const sni_program *program);

/* Forgets all plans that no run uses, those of subgraphs included. Thread-safe. */
void sni_program_trim(sni_program *program);

/* Calls fn with every blob of packed data made so far, those of subgraphs included; stops when it
 * fails. The blobs stay as long as the program. Thread-safe. */
typedef sn_status (*sni_packed_fn)(void *ctx, const sni_finished_key *key,
                                   const sni_packed_blob *blob);
sn_status sni_program_packed(sni_program *program, sni_packed_fn fn, void *ctx);

/* Calls fn with the plan that was used last; false if there is none yet. */
bool sni_program_last_plan(sni_program *program, sn_status (*fn)(void *ctx, const sni_plan *plan),
                           void *ctx, sn_status *status);

#endif
